/* Sums of a few weighted slices: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_BLEND_H
#define TENSORCORE_NATIVE_BLEND_H

#include "types.h"

/* made[o, j, i] = the sum over t of weights[t, j] * x[o, index[t, j], i], or for the adjoint x[o, index[t, j], i] = the sum over all t and
   j that say so of weights[t, j] * made[o, j, i]. */
typedef struct {
    void *x, *made;
    const int32_t *index;
    const void *weights;
    ptrdiff_t taps, size, count, inner; /* rows of the index; of the dim of x, of made, and elements behind it */
} blending;

typedef struct {
    void (*blend[2])(const blending *job, ptrdiff_t begin, ptrdiff_t end); /* of `o`; TYPE_F32, TYPE_F64 */
    void (*spread[2])(const blending *job, ptrdiff_t begin, ptrdiff_t end);
} blend_loops;

#endif
