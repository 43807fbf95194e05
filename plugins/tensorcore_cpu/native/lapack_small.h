/* Factors of small real matrices and what is solved with them, where LAPACK's calls cost more than their work. Matrices lie column after
   column, as LAPACK's do, and what is answered means what its routines' answers mean. */
#ifndef TENSORCORE_NATIVE_LAPACK_SMALL_H
#define TENSORCORE_NATIVE_LAPACK_SMALL_H

#include "types.h"

enum {
    LAPACK_SMALL = 16,    /* rows up to which these are faster */
    LAPACK_TOGETHER = 32, /* rows up to which a group of matrices is */
    LAPACK_LANES = 16     /* the most matrices in a group */
};

/* Matrices of one size, wherever they lie: element [i, j] of matrix m is at at[m] + i * row + j * column. From
   `count` on, the last one again. */
typedef struct {
    const char *at[LAPACK_LANES];
    ptrdiff_t row, column;
    int count;
} lapack_group;

typedef struct {
    /* getrf of a square matrix: swaps from 1 on; answers where the first zero on the diagonal is, from 1 on, or 0. */
    int (*lu)(void *a, int n, int *pivots);
    /* getrs, `count` right sides: by the factors, or by them turned over. */
    void (*lu_solve)(const void *a, int line, int n, bool turned, const int *pivots, void *b, int count);
    /* The identity's, in new memory. */
    void (*lu_inverse)(const void *a, int n, const int *pivots, void *made);
    /* trsm from the left. */
    void (*triangular)(const void *a, int line, int n, bool upper, bool turned, bool unit, void *b, int count);
    /* trsv of any size: rows (`rows`), or columns, of the triangle are `line` elements apart. */
    void (*triangular_line)(const void *a, ptrdiff_t line, int n, bool rows, bool upper, bool unit, void *b);
    /* potrf. */
    int (*cholesky)(void *a, int n, bool upper);

    /* The same for a group of up to `lanes` matrices, whose results lie one behind the other. The answers have a bit for each matrix that goes
       by itself: it has no factors, or squares that are out of range. */
    int lanes;
    unsigned (*lu_together)(const lapack_group *of, int n, void *made, int *pivots);
    unsigned (*inverse_together)(const lapack_group *of, int n, void *made);
    unsigned (*cholesky_together)(const lapack_group *of, int n, bool upper, void *made);
    /* By a triangle, or by one turned over; or, where there are row swaps, by the factors. */
    void (*solve_together)(const lapack_group *of, int n, bool upper, bool turned, bool unit, const lapack_group *swaps,
                           const lapack_group *right, int columns, void *made);
    /* `wide` columns of Q, column after column, where there is room for them, and rows of R, row after row. */
    unsigned (*qr_together)(const lapack_group *of, int rows, int columns, int wide, void *q, void *r);
    /* geqrf. */
    unsigned (*reflections_together)(const lapack_group *of, int rows, int columns, void *made, void *taus);
    /* orgqr, of `wide` reflections. */
    void (*product_together)(const lapack_group *of, const lapack_group *taus, int rows, int columns, int wide, void *made);
    /* Of symmetric ones, of which a triangle is read: values from the smallest on, with vectors, column after column, where there is room. */
    unsigned (*eigh_together)(const lapack_group *of, int n, bool upper, void *values, void *vectors);
    /* Singular values from the largest on, with as many columns of U and rows of the adjoint of V, both column after column. */
    unsigned (*svd_together)(const lapack_group *of, int rows, int columns, void *values, void *u, void *vh);
} lapack_small_real;

typedef struct {
    lapack_small_real real[2]; /* float, double */
} lapack_small_loops;

#endif
