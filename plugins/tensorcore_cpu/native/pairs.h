/* Rows of pairs: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_PAIRS_H
#define TENSORCORE_NATIVE_PAIRS_H

#include "types.h"

typedef struct {
    /* Adds the sums of the first and of the second elements of `count` pairs to made[2]; by float or double. */
    void (*sum[TYPE_F64 + 1])(const void *x, ptrdiff_t count, double *made);
    /* Their product as complex numbers. */
    void (*product[TYPE_F64 + 1])(const void *x, ptrdiff_t count, double *made);
    native_loop times[TYPE_F64 + 1]; /* products of complex numbers that lie side by side */
    native_loop root_f32; /* square roots of complex numbers that lie side by side, with parts of float */
} pair_loops;

#endif
