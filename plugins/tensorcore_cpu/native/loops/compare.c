/* The loops of comparisons whose answers are numbers of the operands' own type. */
#include "loop.h"

#include "../compare.h"

/* A choice of two constants: a mask over ones, where a bool would be converted. */
#define OVER_OF(suffix, type, name, expression) BINARY_LOOP(name##_##suffix, type, type, (expression) ? 1 : 0)

REALS(OVER_OF, eq, x == y)
REALS(OVER_OF, ne, x != y)
REALS(OVER_OF, lt, x < y)
REALS(OVER_OF, le, x <= y)
REALS(OVER_OF, gt, x > y)
REALS(OVER_OF, ge, x >= y)
REALS(OVER_OF, logical_and, (x != 0) & (y != 0))
REALS(OVER_OF, logical_or, (x != 0) | (y != 0))
REALS(OVER_OF, logical_xor, (x != 0) ^ (y != 0))

#define OVER_ENTRIES(name)                                                                                    \
    [OVER_##name] = {[TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64, [TYPE_I8] = name##_i8,                 \
                     [TYPE_I16] = name##_i16, [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8},

const compare_loops ISA(compare_loops) = {.over = {COMPARE_OPS(OVER_ENTRIES)}};
