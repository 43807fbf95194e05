/* A call of attention: what the kernels of real numbers share with the one of bfloat16. */
#ifndef TENSORCORE_NATIVE_ATTENTION_CALL_H
#define TENSORCORE_NATIVE_ATTENTION_CALL_H

#include "attention.h"
#include "gemm.h"
#include "native.h"

/* An array of four dims: data, and steps in elements. */
typedef struct {
    char *data;
    npy_intp step[4];
} source;

typedef struct {
    native_type type, real; /* of the arrays, and of the numbers that are computed with: halves become floats on their way */
    size_t stored, bytes;   /* of one of these, one of those */
    const gemm_real_loops *gemm;
    const attention_real_loops *loops;
    npy_intp batch, heads, groups, rows, columns, features, width;
    source query, key, value, sent;
    PyArrayObject *mask;
    npy_intp mask_step[4]; /* in bytes, 0 where it is broadcast */
    bool truth, causal;
    double scale;
    npy_intp block_rows;   /* at most ROWS */
    npy_intp splits;       /* of the rows of one head in the forward kernel */
    char *made, *sums;     /* C-contiguous */
    const char *kept;      /* the sums that the forward kernel left */
    char *of_query, *of_key, *of_value; /* gradients, NULL where not wanted */
    _Atomic bool failed;
} attention;

static inline void *moved(const void *data, npy_intp elements, size_t bytes) {
    return (char *)data + elements * (npy_intp)bytes;
}

static inline char *head_of(const source *from, npy_intp batch, npy_intp head, size_t stored) {
    return moved(from->data, batch * from->step[0] + head * from->step[1], stored);
}

static inline attention_part part_at(const attention *a, npy_intp batch, npy_intp head, npy_intp row, npy_intp column,
                                     npy_intp rows, npy_intp columns, void *scores) {
    attention_part part = {.rows = rows, .columns = columns, .step = a->gemm->left_step, .scores = scores,
                           .allowed = a->causal ? row + 1 - column : columns, .scale = a->scale};
    if (a->mask) {
        part.mask = PyArray_BYTES(a->mask) + batch * a->mask_step[0] + head * a->mask_step[1] +
                    row * a->mask_step[2] + column * a->mask_step[3];
        part.mask_row = a->mask_step[2];
        part.mask_column = a->mask_step[3];
        part.truth = a->truth;
    }
    return part;
}

/* Forward, of bfloat16 where the processor multiplies tiles of them; `loops` are those of floats, and so are sums. */
bool attention_takes_bf16(PyObject *query);
void attention_forward_bf16(void *context, npy_intp begin, npy_intp end);

#endif
