/* Rows added at places, and the largest of rows: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_SCATTER_H
#define TENSORCORE_NATIVE_SCATTER_H

#include "types.h"

/* Slices of (before, count, after) added to (before, size, after) at index[0..count). */
typedef struct slice_sums {
    void *into;
    const void *from;
    const int64_t *index;
    ptrdiff_t before, count, size, after;
} slice_sums;

typedef struct {
    /* One of `before`, and of its slices those whose place is in [first, last). */
    void (*add_slices[2])(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last); /* TYPE_F32, TYPE_F64 */
    /* The same where each element has an index of its own, for some columns of one of `before`. */
    void (*add_places[2])(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last);
    /* The k largest of a row, or the smallest, in order, and where they are; NaN is the largest, of equals the first. */
    void (*top[2])(const void *x, ptrdiff_t n, ptrdiff_t k, bool largest, void *values, int64_t *places);
    /* The smallest and the largest; the other way round of nothing. */
    void (*bounds)(const int64_t *index, ptrdiff_t count, int64_t *low, int64_t *high);
} scatter_loops;

#endif
