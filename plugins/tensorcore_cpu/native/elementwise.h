/* The elementwise family: its ops, and the table of loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_ELEMENTWISE_H
#define TENSORCORE_NATIVE_ELEMENTWISE_H

#include "types.h"

/* Ops by what they take and give: X(name). */
#define UNARY_OPS(X)                                                                                          \
    X(neg) X(abs) X(angle) X(square) X(relu) X(sign) X(sqrt) X(rsqrt) X(reciprocal) X(floor) X(ceil) X(trunc) X(round) \
    X(bitwise_not)
#define FUNCTION_OPS(X) /* worth a buffer */                                                                  \
    X(exp) X(expm1) X(log) X(log1p) X(tanh) X(sigmoid) X(silu) X(erf) X(erfc) X(erfinv) X(ndtr)              \
    X(i0) X(i0e) X(i1) X(i1e) X(modified_bessel_i0) X(modified_bessel_i1)
#define UNARY_TEST_OPS(X) X(isnan) X(isinf) X(isfinite) X(logical_not)                    /* give bools */
#define BINARY_OPS(X)                                                                                         \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(bitwise_and) X(bitwise_or) X(bitwise_xor)             \
    X(fmod) X(remainder) X(floor_divide) X(nextafter) X(hypot) X(logaddexp) X(logaddexp2)
/* Orthogonal polynomials, of any order. */
#define POLYNOMIAL_OPS(X)                                                                                     \
    X(chebyshev_polynomial_t) X(chebyshev_polynomial_u) X(chebyshev_polynomial_v) X(chebyshev_polynomial_w)   \
    X(shifted_chebyshev_polynomial_t) X(shifted_chebyshev_polynomial_u) X(shifted_chebyshev_polynomial_v)     \
    X(shifted_chebyshev_polynomial_w) X(hermite_polynomial_h) X(hermite_polynomial_he)                        \
    X(laguerre_polynomial_l) X(legendre_polynomial_p)
#define COMPARE_OPS(X)                                                                                        \
    X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or) X(logical_xor) /* give bools */

#define OP_NUMBER(name) OP_##name,
enum {
    UNARY_OPS(OP_NUMBER) FUNCTION_OPS(OP_NUMBER) UNARY_TEST_OPS(OP_NUMBER) BINARY_OPS(OP_NUMBER)
    POLYNOMIAL_OPS(OP_NUMBER) COMPARE_OPS(OP_NUMBER)
    /* Those with entries of their own. */
    OP_gelu, OP_gelu_tanh, OP_leaky_relu, OP_cube, OP_reciprocal_square, OP_power, OP_clamp, OP_where, OPS,
    OP_add_scaled = OPS, OP_addcmul, OP_addcdiv, OP_lerp_near, OP_lerp_far, OP_copysign, /* of halves: those of others are formulas */
    ALL_OPS
};

/* A loop of NumPy's, and what it wants to have beside; no loop where NumPy has none. */
typedef struct {
    void (*loop)(char **data, const ptrdiff_t *count, const ptrdiff_t *steps, void *beside);
    void *beside;
} numpy_loop;
extern numpy_loop numpy_power; /* of floats */

/* The loop of one of NumPy's functions whose operands are all of that type, float or double; none where NumPy lacks it. False with an
   exception where there is no such function. */
bool native_numpy_loop(const char *name, native_type type, numpy_loop *found);
bool native_ufunc_loop(const char *module, const char *name, native_type type, numpy_loop *found); /* of any library's ufunc */

typedef struct {
    native_loop compute[ALL_OPS][TYPES]; /* NULL where there is none: NumPy's turn */
} elementwise_loops;

/* Loops of the half types, by which operands are numbers, a bit for each: of those they read a float. NULL where there is none:
   elements pass through a buffer of floats. */
enum { HALF_NUMBERS = 9 };
typedef struct {
    native_loop bf16[ALL_OPS][HALF_NUMBERS], f16[ALL_OPS][HALF_NUMBERS];
} half_loops;

#endif
