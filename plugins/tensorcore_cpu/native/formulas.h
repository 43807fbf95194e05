/* Functions of one element that are several steps elsewhere: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_FORMULAS_H
#define TENSORCORE_NATIVE_FORMULAS_H

#include "types.h"

/* X(name, inputs); the options that an op takes stand in formulas.c. */
#define FORMULAS(X)                                                                                           \
    X(hardswish, 1) X(hardsigmoid, 1) X(hardshrink, 1) X(softshrink, 1) X(threshold, 1) X(nan_to_num, 1) X(logit, 1) X(frac, 1) X(lgamma, 1) X(digamma, 1) X(trigamma, 1) \
    X(atan, 1) X(asin, 1) X(acos, 1) X(sin, 1) X(cos, 1) X(tan, 1) X(atanh, 1) X(asinh, 1) X(acosh, 1) X(sinh, 1) X(cosh, 1) X(exp2, 1) X(log2, 1) X(log10, 1) \
    X(sinc, 1) X(spherical_bessel_j0, 1) X(bessel_j0, 1) X(bessel_j1, 1) X(bessel_y0, 1) X(bessel_y1, 1) X(airy_ai, 1) \
    X(modified_bessel_k0, 1) X(modified_bessel_k1, 1) X(scaled_modified_bessel_k0, 1) X(scaled_modified_bessel_k1, 1) \
    X(erfcx, 1) X(log_ndtr, 1) X(ndtri, 1)                                                                    \
    X(relu_backward, 2) X(leaky_relu_backward, 2) X(tanh_backward, 2) X(sigmoid_backward, 2)                  \
    X(hardsigmoid_backward, 2) X(hardswish_backward, 2)                                                       \
    X(entr, 1) X(atan2, 2) X(copysign, 2) X(fmax, 2) X(fmin, 2) X(heaviside, 2) X(xlogy, 2) X(xlog1py, 2) X(gcd, 2) X(lcm, 2) X(bitwise_left_shift, 2) X(bitwise_right_shift, 2) X(igamma, 2) X(igammac, 2) X(zeta, 2) \
    X(add_scaled, 2) X(addcdiv, 3) X(addcmul, 3) X(lerp, 3)

#define FORMULA_NUMBER(name, inputs) FORMULA_##name,
enum {
    FORMULAS(FORMULA_NUMBER)
    FORMULA_ldexp, /* whose second operand has a type of its own */
    FORMULA_digamma_left, /* of doubles under 0, beside that of 1 - x */
    FORMULA_polygamma, /* of orders from 2 on */
    /* Where the weight is one number, under a half and over. */
    FORMULA_lerp_near, FORMULA_lerp_far,
    /* Where infinities become the largest and the least number, which is a clamp. */
    FORMULA_nan_to_num_kept, FORMULA_COUNT
};

/* As a native_loop, with the op's options as numbers. */
typedef void (*formula_loop)(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count);

typedef struct {
    /* NULL where there is none: NumPy's turn, or of sin and cos its loop. Those of half types take floats, where the ones of floats do not round as they do. */
    formula_loop of[FORMULA_COUNT][TYPES];
    double (*squares[2])(const void *x, ptrdiff_t count); /* their sum */
    void (*pairs[2])(const void *x, const void *y, void *made, ptrdiff_t count); /* x and y side by side */
    void (*parts[2])(const void *x, void *mantissa, int32_t *exponent, ptrdiff_t count); /* TYPE_F32, TYPE_F64 */
} formula_loops;

#endif
