/* Softmax, its logarithm and what losses make of them: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_SOFTMAX_H
#define TENSORCORE_NATIVE_SOFTMAX_H

#include "types.h"

enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD, SOFTMAX_OPS };
enum { COLUMNS = 128 }; /* that go through a loop over columns at most */
enum { NARROW = 16 };   /* elements of rows that go through it, turned over */
enum { TURNED = NARROW * COLUMNS }; /* elements that are turned over at a time */

enum { FEW = 32, SHORT = 128 };     /* columns below which rows of them are turned over, and elements of such rows at most */

/* Whether lines of n elements, `inner` apart, go many batches at a time. */
static inline bool softmax_goes_by_rows(ptrdiff_t n, ptrdiff_t inner) { return inner == 1 || (inner < FEW && n * inner <= SHORT); }

/* `count` rows of n elements, or of n times `inner` whose columns are lines of n. The forward loops read x alone, y is NULL; the backward ones g = x and the result y. */
typedef struct {
    const void *x, *y;
    ptrdiff_t x_step, y_step; /* from a row to the next */
    void *out;
    ptrdiff_t count, n, inner;
} softmax_lines;
typedef void (*softmax_rows)(const softmax_lines *of);
/* n rows of `width` elements, `inner` elements apart, those of x `apart`; each column by itself. */
typedef void (*softmax_columns)(const void *x, ptrdiff_t apart, const void *y, void *out, ptrdiff_t n, ptrdiff_t inner,
                                ptrdiff_t width);

/* Scores (batch, n, inner) and the classes (batch, inner) that they are for. */
typedef struct {
    const void *x;
    const int64_t *target;
    const void *weight; /* of each class, or NULL */
    void *top, *less;   /* of each place: the largest score, and the logarithm of the sum of exp(x - top) */
    void *each;         /* of each place: the weight of its class, 0 where it is ignored */
    ptrdiff_t n, inner;
    int64_t ignored;
} class_scores;

typedef struct {
    softmax_rows rows[SOFTMAX_OPS];
    softmax_columns columns[SOFTMAX_OPS];
    /* Fills top and less for the places from `first` on: of whole batches where they go by rows, else of `count` columns of one. */
    void (*statistics)(const class_scores *scores, ptrdiff_t first, ptrdiff_t count);
    /* Fills each, and puts the weighted loss of each place to `losses`; top is NULL where x holds logarithms. */
    void (*losses)(const class_scores *scores, void *losses, ptrdiff_t first, ptrdiff_t count);
    /* The gradient of the scores of those places, from the gradient of each loss. */
    void (*backward)(const class_scores *scores, const void *gradients, void *out, ptrdiff_t first, ptrdiff_t count);
    double (*total)(const void *x, ptrdiff_t n);
} softmax_of_real;

typedef struct {
    softmax_of_real of[2]; /* TYPE_F32, TYPE_F64 */
} softmax_loops;

#endif
