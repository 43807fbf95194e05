/* Pools: the windows, and the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_POOL_H
#define TENSORCORE_NATIVE_POOL_H

#include "types.h"

/* Windows over (depth, height, width); what a pool of fewer dims lacks has size 1. */
typedef struct {
    ptrdiff_t size[3], count[3], kernel[3], stride[3], padding[3], dilation[3];
    bool count_padding;
    double divisor; /* 0 where it is the number of elements */
} pool_windows;

enum { POOL_LANES = 16 }; /* loops over the results of a row run to a multiple of this, in scratch */

static inline ptrdiff_t pool_padded(const pool_windows *windows) {
    return (windows->count[2] + POOL_LANES - 1) / POOL_LANES * POOL_LANES;
}

/* A row of the input with its padding is split into as many phases as the stride is: each step from one window to the next
   is then one element. So long is each. */
static inline ptrdiff_t pool_phase(const pool_windows *windows) {
    ptrdiff_t reach = pool_padded(windows) + (windows->kernel[2] - 1) * windows->dilation[2] / windows->stride[2] + 1;
    ptrdiff_t row = (windows->size[2] + 2 * windows->padding[2]) / windows->stride[2] + 1;
    return reach > row ? reach : row;
}

/* How many bytes of scratch a loop over one plane needs. */
static inline size_t pool_scratch(const pool_windows *windows) {
    ptrdiff_t taps = windows->kernel[0] * windows->kernel[1] * windows->kernel[2];
    return (size_t)(2 * windows->stride[2] * pool_phase(windows) + 3 * pool_padded(windows) + taps) * 8;
}

/* What is made of many small planes at once. */
typedef enum {
    POOL_SMALL_MAX, POOL_SMALL_MEAN, POOL_SMALL_MAX_BACK, POOL_SMALL_MEAN_BACK, POOL_SMALL_EVEN, POOL_SMALL_EVEN_BACK
} pool_small_op;
enum {
    POOL_SMALL = 576, /* elements of such a plane at most, and its results */
    POOL_FEW = 8,     /* of one whose mean is no sum in double */
    POOL_SMALL_SIDES = 5, POOL_VECTOR = 64, /* arrays of as many vectors, the widest of so many bytes, that are its scratch */
};

/* Each runs over one plane: all of one channel of one sample. */
typedef struct {
    void (*max)(const pool_windows *windows, const void *x, void *made, void *scratch);
    /* Where the first of the maxima `made` are, the last NaN where they are NaN: flat indices. */
    void (*places)(const pool_windows *windows, const void *x, const void *made, int64_t *indices, void *scratch);
    void (*max_back)(const pool_windows *windows, const void *g, const void *x, const void *made, void *out, void *scratch);
    void (*mean)(const pool_windows *windows, const void *x, void *made, void *scratch);
    void (*mean_back)(const pool_windows *windows, const void *g, void *out, void *scratch);
    /* Windows that cover the sizes evenly: of `windows` only size and count count. */
    void (*even)(const pool_windows *windows, const void *x, void *made, void *scratch);
    void (*even_back)(const pool_windows *windows, const void *g, void *out, void *scratch);
    /* Where in a row of at least POOL_LANES elements, and no more than INT32_MAX, the first of the largest is, or the last NaN. */
    ptrdiff_t (*largest)(const void *row, ptrdiff_t count);
    /* Small planes, with the inputs that the loop over one plane has; false where a NaN or a long row asks for that. */
    bool (*small)(const pool_windows *windows, pool_small_op op, const void *const *in, void *out, ptrdiff_t planes,
                  void *scratch);
} pool_of_real;

/* The same of integers, which have no gradients: means are cut off, and sums wrap around. */
typedef struct {
    void (*max)(const pool_windows *windows, const void *x, void *made);
    void (*places)(const pool_windows *windows, const void *x, const void *made, int64_t *indices);
    void (*mean)(const pool_windows *windows, const void *x, void *made);
} pool_of_whole;

typedef struct {
    pool_of_real of[2]; /* TYPE_F32, TYPE_F64 */
    pool_of_whole whole[TYPES];
} pool_loops;

#endif
