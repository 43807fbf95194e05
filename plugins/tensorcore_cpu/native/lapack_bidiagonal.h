/* Two diagonals from one real matrix, for its singular values. */
#ifndef TENSORCORE_NATIVE_LAPACK_BIDIAGONAL_H
#define TENSORCORE_NATIVE_LAPACK_BIDIAGONAL_H

#include "types.h"

/* Where the parts of the room lie, in elements, and how long they are: the matrix comes first, row after row and `line` apart. */
typedef struct {
    ptrdiff_t line;              /* of a row of the matrix, and of one of the vectors of the left side, */
    ptrdiff_t left_line, left;   /* which begin at `left`; those of the right side are in the rows of the matrix */
    ptrdiff_t diagonal, above;   /* of as many elements as there are columns, as have */
    ptrdiff_t taus, right_taus;  /* the factors of the reflections */
    ptrdiff_t rest, total;
} lapack_bidiagonal_room;

/* Vectors of one side as rows of whole vectors of the processor. */
typedef struct {
    void *rows;
    ptrdiff_t line, length;
} lapack_vectors;

typedef struct {
    lapack_bidiagonal_room (*room)(ptrdiff_t rows, ptrdiff_t columns, bool vectors);
    /* A matrix of no fewer rows than columns, of which the rows alone are filled in: its diagonal, what is above that, and
       what both are to be multiplied by. With vectors, vector k has what geqrf keeps of a reflection, from element k on for the
       left side, and from k + 1 on for the right one. False where a number is not finite. */
    bool (*bidiagonal)(void *room, ptrdiff_t rows, ptrdiff_t columns, bool vectors, double *power);
    /* The product of `count` reflections, whose vectors begin at element `first` and one later each: its columns as rows. What is
       made was zeros, as many rows of them as fill vectors. */
    void (*product)(const void *vectors, ptrdiff_t line, ptrdiff_t first, ptrdiff_t count, const void *taus,
                    const lapack_vectors *made);
    /* Singular values, in no order, in the place of the diagonal, and n vectors of both sides turned with them; `work` has room for
       2 n + 1 doubles. False where that takes too many sweeps. */
    bool (*sweeps)(ptrdiff_t n, void *diagonal, const void *above, void *work, const lapack_vectors *left,
                   const lapack_vectors *right);
} lapack_bidiagonal_real;

typedef struct {
    lapack_bidiagonal_real real[2]; /* float, double */
} lapack_bidiagonal_loops;

#endif
