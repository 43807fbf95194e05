/* Activations and their slopes: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_ACTIVATE_H
#define TENSORCORE_NATIVE_ACTIVATE_H

#include "types.h"

enum {
    ACTIVATE_ELU, ACTIVATE_SOFTPLUS, ACTIVATE_MISH, ACTIVATE_LOG_SIGMOID, /* each with its gradient behind it below */
    SLOPE_ELU, SLOPE_SOFTPLUS, SLOPE_MISH, SLOPE_LOG_SIGMOID, SLOPE_GELU, SLOPE_GELU_TANH, SLOPE_SILU, ACTIVATIONS
};

/* elu: the factor below 0, that of x in the exponent, the factor above 0. softplus: beta, threshold. */
typedef void (*activate_loop)(const double *numbers, const void *x, const void *g, void *out, ptrdiff_t count);

typedef struct {
    activate_loop of[ACTIVATIONS][2]; /* TYPE_F32, TYPE_F64 */
} activate_loops;

#endif
