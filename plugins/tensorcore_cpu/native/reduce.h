/* Reductions: what each instruction set computes of one row, or of a strip of rows below one another. */
#ifndef TENSORCORE_NATIVE_REDUCE_H
#define TENSORCORE_NATIVE_REDUCE_H

#include "types.h"

enum { STRIP = 512 }; /* columns that are reduced together */

/* Sums are double whatever the elements are: blocks of a few elements a lane are added in the elements' own precision, those of
   half types in float, and doubles with what their additions lose. `apart` is the distance from a centre, `away` its square. */
typedef struct {
    double (*sum)(const void *row, ptrdiff_t count);
    void (*sums)(const void *data, ptrdiff_t rows, ptrdiff_t count, double *into); /* of rows one after another */
    double (*squares)(const void *row, ptrdiff_t count);
    void (*squares_of_rows)(const void *data, ptrdiff_t rows, ptrdiff_t count, double *into);
    double (*apart)(const void *row, ptrdiff_t count, double centre);
    double (*away)(const void *row, ptrdiff_t count, double centre);
    /* Adds `rows` rows of `width` columns, `step` elements apart, to into[width]. */
    void (*sum_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, double *into);
    void (*squares_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, double *into);
    void (*apart_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, const double *centre, double *into);
    void (*away_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, const double *centre, double *into);
    /* The extreme of a row, the first NaN if there is one; `largest` or the smallest. */
    double (*extreme)(const void *row, ptrdiff_t count, bool largest);
    void (*extremes)(const void *data, ptrdiff_t rows, ptrdiff_t count, bool largest, double *into);
    ptrdiff_t (*place)(const void *row, ptrdiff_t count, bool largest);
    /* Of each column: values[width] and places[width] begin as those of row 0. */
    void (*extreme_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, bool largest, void *values);
    void (*place_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, bool largest, void *values,
                        int64_t *places);
    /* In the elements' own type, as PyTorch takes them; values[width] begin as those of row 0. */
    double (*product)(const void *row, ptrdiff_t count);
    void (*product_strip)(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, void *values);
    /* Running sums; `carry` is what stands before, and after. */
    void (*scan)(const void *row, void *made, ptrdiff_t count, double *carry);
    void (*scan_strip)(const void *data, void *made, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width);
} reduce_functions;

typedef struct {
    reduce_functions of[TYPE_F16 + 1]; /* float and double; of half types sums alone */
    bool (*any)(const uint8_t *row, ptrdiff_t count);
    bool (*all)(const uint8_t *row, ptrdiff_t count);
} reduce_loops;

#endif
