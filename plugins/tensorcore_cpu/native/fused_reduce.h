/* What a nest's reductions make of a row in the cache, and of the pieces of a longer one. */
#ifndef TENSORCORE_NATIVE_FUSED_REDUCE_H
#define TENSORCORE_NATIVE_FUSED_REDUCE_H

#include "fused.h"

/* Of a piece, and what its sum lost by rounding. */
typedef struct {
    double value, lost;
    bool begun;
} fused_partial;

void fused_reduce_init(void);

/* Of `count` elements that lie side by side, or of one that stands for all where `stride` is 0. */
double fused_reduced(const fused_step *step, const char *row, ptrdiff_t stride, npy_intp count);

/* Puts a piece's value to those of the pieces before it, in their order. */
void fused_add(fused_partial *sum, const fused_step *step, double value, double lost);

/* Stores the value of a whole row. */
void fused_finish(const fused_nest *nest, const fused_step *step, char *to, double value);

#endif
