/* LU of large real matrices by products: LAPACK's getrf, with its conventions. */
#ifndef TENSORCORE_NATIVE_LAPACK_LU_H
#define TENSORCORE_NATIVE_LAPACK_LU_H

#include "types.h"

/* Matrices lie row after row here, `line` elements apart. */
typedef struct {
    ptrdiff_t width; /* the most columns of a panel */
    ptrdiff_t spare; /* rows of zeros behind those of a panel, at least */
    /* Factors of a panel's `columns`, of no fewer rows, with `panel` and `top` to work in: columns `step` elements apart, and a
       square of `width` with a vector's room behind it. Swaps count from `first` on. Answers where the first zero pivot is, from 1
       on, or 0. */
    int (*panel)(void *a, ptrdiff_t line, ptrdiff_t rows, ptrdiff_t columns, void *panel, ptrdiff_t step, void *top, int *pivots,
                 int first);
    /* So many columns of rows that are swapped; a is the row of the number `first`. */
    void (*swap)(void *a, ptrdiff_t line, ptrdiff_t columns, const int *pivots, ptrdiff_t count, int first);
    /* The columns of a block row by its triangle, the lower or the upper one, with its diagonal or with ones there: where they are, and as
       their opposites. */
    void (*solve[2][2])(const void *triangle, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t columns, void *a, void *opposite, ptrdiff_t line);
    bool (*is_finite)(const void *x, ptrdiff_t count);
} lapack_lu_real;

typedef struct {
    lapack_lu_real real[2]; /* float, double */
} lapack_lu_loops;

#endif
