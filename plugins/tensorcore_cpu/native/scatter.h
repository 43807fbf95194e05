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

/* Of each place the first of the slices that go there, of each slice the next one, -1 where there is none; and where the
   values before the sums are: NULL for `into` itself, `one` for a single value. */
typedef struct {
    const int32_t *first, *next;
    const void *start;
    bool one;
} place_list;

/* NULL for half types, but for lists: sums of those are rounded once. */
typedef struct {
    /* One of `before`, and of its slices those whose place is in [first, last). */
    void (*add_slices[TYPES])(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last);
    /* All of `before` from `first` to `last`, where `after` is 1. */
    void (*add_batches[TYPES])(const slice_sums *of, ptrdiff_t first, ptrdiff_t last);
    /* As add_slices by a list, and what no slice is added to begins there too. */
    void (*add_listed[TYPES])(const slice_sums *of, const place_list *list, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last);
    /* Where each element has an index of its own, for some columns of one of `before`; the places have been looked at. */
    void (*add_places[TYPES])(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last);
    /* The same where `after` is 1, from `begin` to `end` of `before`: false as soon as a place is not inside. */
    bool (*add_along[TYPES])(const slice_sums *of, ptrdiff_t begin, ptrdiff_t end);
    /* The k largest of a row, or the smallest, in order, and where they are; NaN is the largest, of equals the first. */
    void (*top[TYPES])(const void *x, ptrdiff_t n, ptrdiff_t k, bool largest, void *values, int64_t *places);
    /* The smallest and the largest; the other way round of nothing. */
    void (*bounds)(const int64_t *index, ptrdiff_t count, int64_t *low, int64_t *high);
} scatter_loops;

#endif
