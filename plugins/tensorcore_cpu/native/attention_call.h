/* A call of attention: what the kernels of real numbers share with the one of bfloat16. */
#ifndef TENSORCORE_NATIVE_ATTENTION_CALL_H
#define TENSORCORE_NATIVE_ATTENTION_CALL_H

#include "attention.h"
#include "gemm.h"
#include "halves.h"
#include "native.h"

#include <string.h>

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
    _Atomic bool unfit;    /* some number is not one that thirds of bfloat16 take */
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

/* Rows of a head of `width` numbers each; steps in numbers. */
typedef struct {
    const char *data;
    npy_intp row, step;
} lines;

/* Rows [first, first + rows) of a head as numbers that are computed with: halves are converted into the room. */
static inline lines lines_of(const attention *a, const source *from, npy_intp batch, npy_intp head, npy_intp first, npy_intp rows,
                      npy_intp width, void *room) {
    const npy_intp step = from->step[2];
    const char *data = moved(head_of(from, batch, head, a->stored), first * step, a->stored);
    if (!native_is_half(a->type))
        return (lines){data, step, from->step[3]};
    const bool beside = step == width && from->step[3] == 1;
    for (npy_intp r = 0; r < (beside ? 1 : rows); r++)
        native_widen_apart(a->type, moved(data, r * step, a->stored), from->step[3], (float *)room + r * width,
                           beside ? rows * width : width);
    return (lines){room, width, 1};
}

/* Rows [first, first + rows) of a head, `width` numbers each side by side in the room. */
static inline float *dense_rows(const attention *a, const source *from, npy_intp batch, npy_intp head, npy_intp first, npy_intp rows,
                                npy_intp width, float *room) {
    const lines found = lines_of(a, from, batch, head, first, rows, width, room);
    for (npy_intp r = 0; r < rows && (const char *)room != found.data; r++) {
        const float *const row = (const float *)found.data + r * found.row;
        if (found.step == 1)
            memcpy(room + r * width, row, (size_t)width * sizeof *room);
        for (npy_intp k = 0; found.step != 1 && k < width; k++)
            room[r * width + k] = row[k * found.step];
    }
    return room;
}

/* Where numbers of a result are made, from `element` on: there, or in the room, from which `keep` rounds them to halves. */
static inline char *place_of(const attention *a, char *result, npy_intp element, char *room) {
    return native_is_half(a->type) ? room : moved(result, element, a->bytes);
}

static inline void keep(const attention *a, const char *made, char *result, npy_intp element, npy_intp count) {
    if (native_is_half(a->type))
        native_narrow(a->type, (const float *)made, moved(result, element, a->stored), count);
}

/* Room for `count` elements from the next cache line on, `at` bytes behind the start, which is NULL where only sizes are asked for. */
static inline void *attention_take(char *start, size_t *at, ptrdiff_t count, size_t bytes) {
    void *const found = start ? start + *at : NULL;
    *at += (size_t)rounded_up(count * (ptrdiff_t)bytes, 64);
    return found;
}

/* Forward, of bfloat16 where the processor multiplies tiles of them; `loops` are those of floats, and so are sums. */
bool attention_takes_bf16(PyObject *query);
void attention_forward_bf16(void *context, npy_intp begin, npy_intp end);

/* Of floats and of what is converted to them, by the same unit (thirds.h), where that pays. What they leave `unfit` is for others. */
bool attention_takes_thirds(const attention *a, bool back);
void attention_forward_thirds(void *context, npy_intp begin, npy_intp end);
void attention_backward_thirds(void *context, npy_intp begin, npy_intp end);

#endif
