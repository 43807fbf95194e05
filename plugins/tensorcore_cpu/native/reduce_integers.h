/* Reductions whose parts are integers: what each instruction set computes of one row, or of a strip of rows below one another. */
#ifndef TENSORCORE_NATIVE_REDUCE_INTEGERS_H
#define TENSORCORE_NATIVE_REDUCE_INTEGERS_H

#include "reduce.h"

/* Sums wrap around. The extremes of half types are those of their keys: integers in the order of the numbers, past all of which
   is NaN (`native_key_bits` gives the number back); where they are is told by keys that make one number of both zeros. */
typedef void (*rows_loop)(const void *data, ptrdiff_t rows, ptrdiff_t count, int64_t *into);

typedef struct {
    int64_t (*sum)(const void *row, ptrdiff_t count);
    int64_t (*count)(const void *row, ptrdiff_t count); /* of what is not zero */
    int64_t (*extreme)(const void *row, ptrdiff_t count, bool largest);
    ptrdiff_t (*place)(const void *row, ptrdiff_t count, bool largest, int64_t *key); /* the first one */
    rows_loop sums, largest_rows, smallest_rows; /* of rows one after another; NULL where short ones are better turned over */
    /* Of `rows` rows of `width` columns, `step` elements apart; sums and counts are added to into[width]. */
    void (*sum_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, int64_t *into);
    void (*count_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, int64_t *into);
    void (*extreme_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, bool largest, int64_t *into);
    void (*place_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, bool largest, int64_t *keys,
                        int64_t *places);
} integer_functions;

typedef struct {
    int64_t (*product)(const int64_t *row, ptrdiff_t count); /* wraps around */
    integer_functions of[TYPES]; /* NULL where there is none: sums of floats, extremes of float and double */
} integer_loops;

/* The bits of a half type's number from its key, and back: the lower ones turn around under zero. */
static inline int16_t native_key_bits(int16_t key) { return (int16_t)(key ^ ((key >> 15) & 0x7fff)); }

#endif
