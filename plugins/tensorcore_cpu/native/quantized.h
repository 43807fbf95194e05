/* Rows of floats, rounded to eight bits, times the rows of an int8 matrix: sums of integers, so that no instruction set changes a bit. */
#ifndef TENSORCORE_NATIVE_QUANTIZED_H
#define TENSORCORE_NATIVE_QUANTIZED_H

#include "types.h"

enum { INT8_PAD = 64 }; /* rounded rows have a multiple of so many elements, zeros at the end */

/* made[i, j] = (the sum over k of left[i, k] * weight[j, k]) * (scale[j] * step) + bias[j], each operation rounded. */
typedef struct {
    ptrdiff_t rows, columns, inner, row; /* `row` elements from one rounded row to the next */
    const void *left;                    /* rounded: int16, or int8 for int8_multiply_dots */
    const int32_t *totals;               /* of each rounded row: for int8_multiply_dots alone */
    const int8_t *weight;
    const float *scale, *bias; /* the latter is NULL where there is none */
    bool each;                 /* whether each column has a scale of its own */
    float step;
    float *made;
} int8_product;

typedef struct {
    /* The largest of -x and of x, at least 0; false where there is a NaN. */
    bool (*range)(const float *x, ptrdiff_t count, float *below, float *above);
    /* A row of whole numbers of steps, at least -zero, and zeros up to `padded` elements. */
    void (*round_short)(const float *x, ptrdiff_t count, ptrdiff_t padded, float inverse, int zero, int16_t *made);
    /* The same as bytes; their sum. */
    int32_t (*round_bytes)(const float *x, ptrdiff_t count, ptrdiff_t padded, float inverse, int zero, int8_t *made);
    /* Rows [row, last) of the columns [column, end). */
    void (*multiply)(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t end);
} quantized_loops;

/* By the instruction that adds four products of bytes to an int (AVX512_VNNI): whether it is here and may be used, and the same as
   `multiply`. */
bool int8_dots_here(void);
void int8_multiply_dots(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t end);

#endif
