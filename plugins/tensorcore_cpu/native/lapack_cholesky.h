/* Cholesky factors of large real matrices by products: LAPACK's potrf. */
#ifndef TENSORCORE_NATIVE_LAPACK_CHOLESKY_H
#define TENSORCORE_NATIVE_LAPACK_CHOLESKY_H

#include "types.h"

typedef struct {
    ptrdiff_t width; /* columns of a panel */
    ptrdiff_t spare; /* elements behind each column that may be written */
    /* A panel of `columns`, `line` elements apart, of no fewer rows, and below its triangle the opposite of what it becomes, in
       columns of its own. False where a number on the diagonal is not positive, or not finite. */
    bool (*panel)(void *a, ptrdiff_t line, ptrdiff_t rows, ptrdiff_t columns, void *opposite);
} lapack_cholesky_real;

typedef struct {
    lapack_cholesky_real real[2]; /* float, double */
} lapack_cholesky_loops;

#endif
