/* Factors of small real matrices and what is solved with them, where LAPACK's calls cost more than their work. Matrices lie column after
   column, as LAPACK's do, and what is answered means what its routines' answers mean. */
#ifndef TENSORCORE_NATIVE_LAPACK_SMALL_H
#define TENSORCORE_NATIVE_LAPACK_SMALL_H

#include "types.h"

enum { LAPACK_SMALL = 16 }; /* rows up to which these are faster */

typedef struct {
    /* getrf of a square matrix: swaps from 1 on; answers where the first zero on the diagonal is, from 1 on, or 0. */
    int (*lu)(void *a, int n, int *pivots);
    /* getrs, `count` right sides: by the factors, or by them turned over. */
    void (*lu_solve)(const void *a, int line, int n, bool turned, const int *pivots, void *b, int count);
    /* The identity's, in new memory. */
    void (*lu_inverse)(const void *a, int n, const int *pivots, void *made);
    /* trsm from the left. */
    void (*triangular)(const void *a, int line, int n, bool upper, bool turned, bool unit, void *b, int count);
    /* potrf. */
    int (*cholesky)(void *a, int n, bool upper);
} lapack_small_real;

typedef struct {
    lapack_small_real real[2]; /* float, double */
} lapack_small_loops;

#endif
