/* Attention: what the entries hand to the loops, some rows of scores with some of their columns. */
#ifndef TENSORCORE_NATIVE_ATTENTION_H
#define TENSORCORE_NATIVE_ATTENTION_H

#include "types.h"

/* Steps are in elements but those of the mask, which are in bytes. Rows of scores have room for whole vectors. */
typedef struct {
    ptrdiff_t rows, columns, step;
    ptrdiff_t allowed;               /* columns that row 0 meets, at most; each further row meets one more */
    void *scores;                    /* scaled products; what is made of them takes their place */
    const void *mask;                /* at row and column 0; NULL for none */
    ptrdiff_t mask_row, mask_column; /* 0 where it is broadcast */
    bool truth;                      /* whether it is of bools, and not of numbers to add */
    void *top, *total;               /* of each row: the largest score, the sum of powers relative to it */
    void *made;                      /* rows that were made of former columns: `width` numbers each; NULL for none */
    ptrdiff_t width;
    const void *sums;                /* of each row: the logarithm of the sum of powers */
    void *slopes;                    /* gradients of the weights, laid out as the scores */
    void *dots;                      /* of each row: the sum of weights times their gradients */
    double scale;
} attention_part;

typedef struct {
    /* scores to powers; brings top and total up to date, and what was made so far. */
    void (*powers)(const attention_part *part);
    /* What was made divided by the totals; the sums from top and total, to `dots`. */
    void (*finish)(const attention_part *part);
    /* scores to weights, with the sums that `finish` left. */
    void (*weights)(const attention_part *part);
    /* Adds to dots; then, in another call, slopes to the gradients of unscaled scores. */
    void (*sum_slopes)(const attention_part *part);
    void (*slopes)(const attention_part *part);
    void (*scale)(void *rows, ptrdiff_t count, ptrdiff_t width, ptrdiff_t step, double factor);
} attention_real_loops;

typedef struct {
    attention_real_loops real[2]; /* float, double */
} attention_loops;

#endif
