/* Chains: ops one after the other on a value that stays in registers. */
#ifndef TENSORCORE_NATIVE_CHAIN_H
#define TENSORCORE_NATIVE_CHAIN_H

#include "types.h"

enum { CHAIN_OPS = 32, CHAIN_OPERANDS = 16 };

/* X(name): of the value alone, and of the value x and an operand y. The forms with an r have y on the left. */
#define CHAIN_UNARY(X) \
    X(neg) X(abs) X(square) X(cube) X(relu) X(sqrt) X(rsqrt) X(reciprocal) X(reciprocal_square) X(twice)
#define CHAIN_FUNCTION(X) /* of the value alone too, but some dozen instructions */                           \
    X(exp) X(log) X(tanh) X(sigmoid) X(silu) X(gelu) X(gelu_tanh)
#define CHAIN_BINARY(X)                                                                                       \
    X(add) X(sub) X(rsub) X(mul) X(div) X(rdiv) X(maximum) X(rmaximum) X(minimum) X(rminimum) X(leaky_relu)  \
    X(raise) X(lower) /* to a bound that is no NaN */

/* `stream` is a store past the caches, for what is too large to be there when it is read: the line is not fetched first.
   `native_streamed` of copies.h has to follow the last of them. */
#define CHAIN_CODE(name) CHAIN_##name,
enum { CHAIN_store, CHAIN_stream, CHAIN_UNARY(CHAIN_CODE) CHAIN_FUNCTION(CHAIN_CODE) CHAIN_BINARY(CHAIN_CODE) CHAIN_CODES };

typedef struct {
    unsigned char code, operand; /* the operand's number; for a store that of the place */
} chain_op;

static inline bool chain_stores(unsigned char code) { return code <= CHAIN_stream; }

/* Begins with operand 0. A step is the size of an element, or 0 where the operand is one number; places lie in a row. */
typedef void (*chain_loop)(const chain_op *ops, int count, const char *const *operands, const ptrdiff_t *steps,
                           char *const *places, ptrdiff_t size);

typedef struct {
    chain_loop run[2]; /* TYPE_F32, TYPE_F64 */
} chain_loops;

/* The same of ops that a generated file has in it (loops/written.h), of operands and places of several types. */
typedef void (*written_loop)(const char *const *operands, const ptrdiff_t *steps, char *const *places, ptrdiff_t size);

#endif
