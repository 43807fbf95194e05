/* The elementwise family: its ops, and the table of loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_ELEMENTWISE_H
#define TENSORCORE_NATIVE_ELEMENTWISE_H

#include "types.h"

/* Ops by what they take and give: X(name). */
#define UNARY_OPS(X)                                                                                          \
    X(neg) X(abs) X(square) X(relu) X(sign) X(sqrt) X(rsqrt) X(reciprocal) X(floor) X(ceil) X(trunc) X(round) \
    X(bitwise_not)
#define FUNCTION_OPS(X) X(exp) X(expm1) X(log) X(log1p) X(tanh) X(sigmoid) X(silu) X(erf) /* worth a buffer */
#define UNARY_TEST_OPS(X) X(isnan) X(isinf) X(isfinite) X(logical_not)                    /* give bools */
#define BINARY_OPS(X)                                                                                         \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(bitwise_and) X(bitwise_or) X(bitwise_xor)
#define COMPARE_OPS(X)                                                                                        \
    X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or) X(logical_xor) /* give bools */

#define OP_NUMBER(name) OP_##name,
enum {
    UNARY_OPS(OP_NUMBER) FUNCTION_OPS(OP_NUMBER) UNARY_TEST_OPS(OP_NUMBER) BINARY_OPS(OP_NUMBER) COMPARE_OPS(OP_NUMBER)
    /* Those with entries of their own. */
    OP_gelu, OP_gelu_tanh, OP_leaky_relu, OP_cube, OP_reciprocal_square, OP_clamp, OP_where, OPS
};

typedef struct {
    native_loop compute[OPS][TYPES]; /* NULL where there is none: NumPy's turn */
} elementwise_loops;

#endif
