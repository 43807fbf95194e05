/* Eigenvectors of a symmetric tridiagonal matrix by divide and conquer. */
#ifndef TENSORCORE_NATIVE_LAPACK_DIVIDE_H
#define TENSORCORE_NATIVE_LAPACK_DIVIDE_H

#include "types.h"

typedef struct {
    /* Of k roots, row after row, where row j has each pole less root j: numbers [begin, end) of the vector whose outer product with itself
       has just these roots, with the signs of `z`. */
    void (*weights)(ptrdiff_t k, const void *rows, const void *poles, const void *z, void *made, ptrdiff_t begin, ptrdiff_t end);
    /* Rows [begin, end) become vectors of length 1, the weights over the row, whose element p is that of number order[p], from 1 on. `room`
       is for one row. */
    void (*vectors)(ptrdiff_t k, void *rows, const void *weights, const int *order, void *room, ptrdiff_t begin, ptrdiff_t end);
} lapack_divide_real;

typedef struct {
    lapack_divide_real real[2]; /* float, double */
} lapack_divide_loops;

#endif
