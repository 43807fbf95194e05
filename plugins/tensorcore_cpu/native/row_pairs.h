/* Numbers of two rows each, one of each side: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_ROW_PAIRS_H
#define TENSORCORE_NATIVE_ROW_PAIRS_H

#include "types.h"

/* Of `rows` rows of `width` elements, each behind the one before. */
typedef void (*row_pairs_loop)(const void *x, const void *y, void *made, ptrdiff_t rows, ptrdiff_t width, double eps);

typedef struct {
    row_pairs_loop cosine[2]; /* TYPE_F32, TYPE_F64 */
    row_pairs_loop euclid[2]; /* the root of the squares of x - y + eps */
    row_pairs_loop sizes[2];  /* the sum of their sizes */
} row_pairs_loops;

#endif
