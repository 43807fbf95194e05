/* Functions of complex numbers that are several steps elsewhere: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_COMPLEX_FORMULAS_H
#define TENSORCORE_NATIVE_COMPLEX_FORMULAS_H

#include "types.h"

/* X(name, inputs) */
#define COMPLEX_FORMULAS(X) X(add, 2) X(sub, 2) X(mul, 2) X(div, 2) X(sinc, 1) X(sigmoid, 1) X(silu, 1) X(exp2, 1) X(rsqrt, 1) X(pow, 2) X(add_scaled, 2) X(logaddexp, 2) X(addcmul, 3) X(addcdiv, 3) X(lerp, 3) \
    X(neg, 1) X(conj_physical, 1) X(eq, 2) X(ne, 2)

#define COMPLEX_FORMULA_NUMBER(name, inputs) COMPLEX_##name,
enum { COMPLEX_FORMULAS(COMPLEX_FORMULA_NUMBER) COMPLEX_FORMULA_COUNT };

/* As a native_loop, with one complex number as an option. */
typedef void (*complex_loop)(const double *number, char *const *data, const ptrdiff_t *steps, ptrdiff_t count);

typedef struct {
    complex_loop of[COMPLEX_FORMULA_COUNT][TYPE_F64 + 1]; /* by the type of the parts */
    /* The cross products of `count` lines of three numbers, a step apart. */
    void (*cross[TYPE_F64 + 1])(const void *x, const void *y, void *made, ptrdiff_t step, ptrdiff_t count);
    /* Running products of `count` numbers, a step apart in both arrays; the same of the logarithms of sums of exponentials. */
    void (*products[TYPE_F64 + 1])(const char *x, char *made, ptrdiff_t step, ptrdiff_t count);
    void (*running[TYPE_F64 + 1])(const char *x, char *made, ptrdiff_t step, ptrdiff_t count);
} complex_formula_loops;

#endif
