/* Distances of pairs, and running logarithms of sums: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_LINES_H
#define TENSORCORE_NATIVE_LINES_H

#include "types.h"

enum { SUM_COLUMNS = 64 }; /* columns that go through a loop at most */
enum { PAIR_ROWS = 4 }; /* rows whose distances are made side by side */

typedef enum { PAIR_EUCLID, PAIR_SIZES, PAIR_LARGEST, PAIR_NORMS } pair_norm; /* p of 2, 1 and infinity */

typedef struct {
    const char *x, *packed; /* the rows, and panels of `panel` columns of others, turned over, the last filled up with zeros */
    char *made;
    ptrdiff_t rows, width;
    ptrdiff_t others; /* how many; 0 where they are the rows themselves, each of which meets those behind it alone */
} pairs_run;

typedef struct {
    ptrdiff_t panel[2]; /* TYPE_F32, TYPE_F64 */
    void (*pairs[2][PAIR_NORMS])(const pairs_run *run, ptrdiff_t first); /* of PAIR_ROWS rows from `first` on with all others */
    void (*long_pairs[2][PAIR_NORMS])(const pairs_run *run, ptrdiff_t first); /* where `packed` is the others as they lie */
    /* log(e^x[0] + ... + e^x[i]) for each i: of one row, and of columns side by side, whose rows are `inner` elements apart. */
    void (*row_sums[2])(const void *x, void *made, ptrdiff_t n);
    void (*column_sums[2])(const void *x, void *made, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t width);
    void (*short_sums[2])(const void *x, void *made, ptrdiff_t n, ptrdiff_t rows); /* of up to SUM_COLUMNS short rows */
    /* Cross products of halves, bfloat16 and float16, whose three parts are `step` elements apart; each product is rounded, as in PyTorch. */
    void (*crosses[2])(const uint16_t *x, const uint16_t *y, uint16_t *made, ptrdiff_t lines, ptrdiff_t step);
    void (*added[2])(const void *x, double beta, const void *row, double factor, void *made, ptrdiff_t n); /* beta * x + factor * row */
} line_loops;

#endif
