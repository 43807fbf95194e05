/* Many right sides of real triangles by products, which lapack_sides.c makes and an inverse of lapack_lu.c wants too. */
#ifndef TENSORCORE_NATIVE_LAPACK_SIDES_H
#define TENSORCORE_NATIVE_LAPACK_SIDES_H

#include "lapack.h"
#include "lapack_lu.h"

/* A matrix of n rows with a triangle on either side of its diagonal: rows are `row` elements apart, and columns `column`. */
typedef struct {
    const lapack_lu_real *loops;
    native_type type;
    npy_intp size, n;
    char *a;
    npy_intp row, column;
    char *diagonal; /* its blocks, row after row, where `column` is not 1 */
} lapack_triangles;

enum { LAPACK_PUT_OFF = 128 }; /* rows whose products with others are made at once */

/* Rows of right sides by the lower triangle, from row `from` on, before which they are zeros, or by the upper one, from the last row to the
   first; `unit` says that the diagonal is ones. `wide` columns of rows that are `side_line` elements apart, and room for LAPACK_PUT_OFF such
   rows. False where there is no memory. */
bool lapack_eliminate(const lapack_triangles *of, npy_intp from, bool upper, bool unit, char *columns, char *room, npy_intp side_line,
                      npy_intp wide);

/* Elements from line to line of so many, which begin at whole lines of memory and do not fall on one another. */
npy_intp lapack_apart(lapack_kind kind, npy_intp count);

/* Row k comes from row order[k] once rows were swapped from the first to the last: swaps [from, to), which count from 1 on. */
void lapack_order(const int *pivots, npy_intp from, npy_intp to, npy_intp rows, int *order);

#endif
