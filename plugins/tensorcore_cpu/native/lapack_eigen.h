/* Eigenvalues of one symmetric real matrix of middle size, where LAPACK's ways cost more than their work. */
#ifndef TENSORCORE_NATIVE_LAPACK_EIGEN_H
#define TENSORCORE_NATIVE_LAPACK_EIGEN_H

#include "types.h"

/* Rows up to which these are faster: with vectors, those whose two squares the second cache holds. */
enum { LAPACK_EIGENVECTORS_F32 = 320, LAPACK_EIGENVECTORS_F64 = 192, LAPACK_EIGENVALUES = 512 };

typedef struct {
    /* Elements from one row of the square to the next, and bytes of all that is worked in: the square comes first. */
    ptrdiff_t (*line)(int n);
    ptrdiff_t (*room)(int n, bool vectors);
    /* Of a matrix that lies column after column in the room, `line` elements apart, and of which a triangle is read: values from
       the smallest on, with vectors, column after column, where there is room for them. False where there is no answer: some
       number is not finite, or it took too long; the matrix is for LAPACK then. */
    bool (*eigen)(void *room, int n, bool upper, void *values, void *vectors);
} lapack_eigen_real;

typedef struct {
    lapack_eigen_real real[2]; /* float, double */
} lapack_eigen_loops;

#endif
