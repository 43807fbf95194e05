/* The loops of the elementwise family. */
#include "angles.h"
#include "functions.h"
#include "loop.h"
#include "polynomials.h"
#include "power.h"
#include "quotients.h"
#include "special.h"
#include "wide.h"

#include "../elementwise.h"

#define UNARY_OF(suffix, type, name, expression) UNARY_LOOP(name##_##suffix, type, type, expression)
#define UNARY_AHEAD_OF(suffix, type, name, expression) UNARY_BY(EACH_AHEAD, name##_##suffix, type, type, expression)
#define BINARY_AHEAD_OF(suffix, type, name, expression) BINARY_BY(EACH_AHEAD, name##_##suffix, type, type, expression)
#define TEST_OF(suffix, type, name, expression) UNARY_LOOP(name##_##suffix, type, uint8_t, expression)
#define BINARY_OF(suffix, type, name, expression) BINARY_LOOP(name##_##suffix, type, type, expression)
#define COMPARE_OF(suffix, type, name, expression) BINARY_LOOP(name##_##suffix, type, uint8_t, expression)
/* With an op that has another name, or another suffix, for each type. */
#define FUNCTION_OF(suffix, type, name) UNARY_LOOP(name##_##suffix, type, type, name##__##suffix(x))
#define LIBM_OF(name, function)                                                                               \
    UNARY_LOOP(name##_f32, float, float, function##f(x)) UNARY_LOOP(name##_f64, double, double, function(x))

/* Arithmetic */

NARROW_VECTORS
REALS(UNARY_AHEAD_OF, neg, -x)
UNARY_AHEAD_OF(f32, float, abs, fabsf(x))
UNARY_AHEAD_OF(f64, double, abs, fabs(x))
INTEGERS(UNARY_AHEAD_OF, abs, x < 0 ? -x : x)
REALS(UNARY_AHEAD_OF, square, x * x)
REALS(UNARY_AHEAD_OF, cube, x * x * x)
FLOATS(UNARY_AHEAD_OF, relu, x <= 0 ? 0 : x) /* NaN stays */
INTEGERS(UNARY_AHEAD_OF, relu, x > 0 ? x : 0)
REALS(UNARY_AHEAD_OF, sign, (x > 0) - (x < 0)) /* 0 for NaN */
WIDE_VECTORS
#ifdef __AVX512F__
WIDE_LOOP(sqrt_f32, sqrt_wide)
UNARY_LOOP(sqrt_f64, double, double, sqrt(x))
#else
LIBM_OF(sqrt, sqrt)
#endif
FLOATS(UNARY_OF, reciprocal, 1 / x)
FLOATS(UNARY_OF, reciprocal_square, 1 / (x * x))
UNARY_LOOP(rsqrt_f32, float, float, 1 / sqrtf(x))
UNARY_LOOP(rsqrt_f64, double, double, 1 / sqrt(x))
LIBM_OF(floor, floor)
LIBM_OF(ceil, ceil)
LIBM_OF(trunc, trunc)
LIBM_OF(round, rint)
INTEGERS(UNARY_OF, bitwise_not, ~x)
UNARY_LOOP(bitwise_not_bool, uint8_t, uint8_t, x == 0)

NARROW_VECTORS
REALS(BINARY_AHEAD_OF, add, x + y)
REALS(BINARY_AHEAD_OF, sub, x - y)
REALS(BINARY_AHEAD_OF, mul, x * y)
FLOATS(BINARY_AHEAD_OF, div, x / y)
/* A NaN on either side is the result. Beside a number that is none one comparison tells. */
#define EXTREME_LOOP(suffix, type, name, beats, not_beyond)                                                   \
    BINARY_LOOP(name##_of_both_##suffix, type, type, ((x beats y) | (x != x)) ? x : y)                        \
    static void name##_##suffix(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                 \
        const bool number = count && !steps[1] && steps[0] == sizeof(type) && steps[2] == sizeof(type);       \
        const type *a = (const type *)data[0], y = number ? *(const type *)data[1] : 0;                       \
        type *made = (type *)data[2];                                                                         \
        if (!number || y != y) {                                                                              \
            name##_of_both_##suffix(data, steps, count);                                                      \
            return;                                                                                           \
        }                                                                                                     \
        EACH_AHEAD(type, const type x = a[i]; made[i] = x not_beyond y ? y : x;)                              \
    }
FLOATS(EXTREME_LOOP, maximum, >, <=)
FLOATS(EXTREME_LOOP, minimum, <, >=)
INTEGERS(BINARY_OF, maximum, x > y ? x : y)
INTEGERS(BINARY_OF, minimum, x < y ? x : y)
INTEGERS(BINARY_AHEAD_OF, bitwise_and, x & y)
INTEGERS(BINARY_AHEAD_OF, bitwise_or, x | y)
INTEGERS(BINARY_AHEAD_OF, bitwise_xor, x ^ y)
WIDE_VECTORS
/* NaN on the left stays. */
UNARY_LOOP(angle_f32, float, float, x < 0 ? 3.14159265358979323846f : x != x ? x : 0)
UNARY_LOOP(angle_f64, double, double, x < 0 ? 3.14159265358979323846 : x != x ? x : 0)
FLOATS(BINARY_OF, nextafter, next_after(x, y))
BINARY_LOOP(hypot_f32, float, float, hypot_f32_of(x, y))
BINARY_LOOP(hypot_f64, double, double, hypot_f64_of(x, y))
BINARY_LOOP(logaddexp_f32, float, float, log_of_sum_f32(x, y, 1, 0.69314718055994530942f, 1))
BINARY_LOOP(logaddexp_f64, double, double, log_of_sum_f64(x, y, 1, 0.69314718055994530942, 1))
BINARY_LOOP(logaddexp2_f32, float, float, log_of_sum_f32(x, y, 0.69314718055994530942f, 1, 1.44269504088896340736f))
BINARY_LOOP(logaddexp2_f64, double, double, log_of_sum_f64(x, y, 0.69314718055994530942, 1, 1.44269504088896340736))

FLOATS(DIVISION_LOOP, fmod)
FLOATS(DIVISION_LOOP, remainder)
FLOATS(DIVISION_LOOP, floor_divide)

/* The order is the second operand. */
FLOATS(CHEBYSHEV_LOOP, chebyshev_polynomial_t, 't', x)
FLOATS(CHEBYSHEV_LOOP, chebyshev_polynomial_u, 'u', x)
FLOATS(CHEBYSHEV_LOOP, chebyshev_polynomial_v, 'v', x)
FLOATS(CHEBYSHEV_LOOP, chebyshev_polynomial_w, 'w', x)
FLOATS(CHEBYSHEV_LOOP, shifted_chebyshev_polynomial_t, 't', 2 * x - 1)
FLOATS(CHEBYSHEV_LOOP, shifted_chebyshev_polynomial_u, 'u', 2 * x - 1)
FLOATS(CHEBYSHEV_LOOP, shifted_chebyshev_polynomial_v, 'v', 2 * x - 1)
FLOATS(CHEBYSHEV_LOOP, shifted_chebyshev_polynomial_w, 'w', 2 * x - 1)
FLOATS(POLYNOMIAL_LOOP, hermite_polynomial_h, 0, x, 2 * x, HERMITE_H_NEXT)
FLOATS(POLYNOMIAL_LOOP, hermite_polynomial_he, 0, x, x, HERMITE_HE_NEXT)
FLOATS(POLYNOMIAL_LOOP, laguerre_polynomial_l, 0, x, 1 - x, LAGUERRE_NEXT)
FLOATS(POLYNOMIAL_LOOP, legendre_polynomial_p, 0, x, x, LEGENDRE_NEXT)

/* Functions */

/* Those of wide.h where the instruction set has it. */
#ifdef __AVX512F__
#define WIDE_OF(name) WIDE_LOOP(name##_f32, name##_wide) FUNCTION_OF(f64, double, name)
#else
#define WIDE_OF(name) FLOATS(FUNCTION_OF, name)
#endif
WIDE_OF(exp)
WIDE_OF(log)
WIDE_OF(tanh)
WIDE_OF(sigmoid)
WIDE_OF(silu)
WIDE_OF(gelu)
WIDE_OF(gelu_tanh)
FLOATS(FUNCTION_OF, expm1)
FLOATS(FUNCTION_OF, log1p)
FLOATS(FUNCTION_OF, erf)
FLOATS(FUNCTION_OF, erfinv)
UNARY_LOOP(erfc_f32, float, float, whole_erfc_f32(x))
UNARY_LOOP(erfc_f64, double, double, whole_erfc_f64(x))
UNARY_LOOP(ndtr_f32, float, float, 0.5f * whole_erfc_f32(x * -0.70710678118654752440f))
UNARY_LOOP(ndtr_f64, double, double, 0.5 * whole_erfc_f64(x * -0.70710678118654752440))
#define BESSEL_OF(suffix, type, name, order, scaled) UNARY_LOOP(name##_##suffix, type, type, (type)bessel_i(x, order, scaled))
FLOATS(BESSEL_OF, i0, 0, false)
FLOATS(BESSEL_OF, i0e, 0, true)
FLOATS(BESSEL_OF, i1, 1, false)
FLOATS(BESSEL_OF, i1e, 1, true)
FLOATS(BESSEL_OF, modified_bessel_i0, 0, false)
FLOATS(BESSEL_OF, modified_bessel_i1, 1, false)

/* Tests and comparisons */

FLOATS(TEST_OF, isnan, x != x)
UNARY_LOOP(isinf_f32, float, uint8_t, fabsf(x) == INFINITY)
UNARY_LOOP(isinf_f64, double, uint8_t, fabs(x) == INFINITY)
UNARY_LOOP(isfinite_f32, float, uint8_t, fabsf(x) < INFINITY)
UNARY_LOOP(isfinite_f64, double, uint8_t, fabs(x) < INFINITY)
REALS(TEST_OF, logical_not, x == 0)
UNARY_LOOP(logical_not_bool, uint8_t, uint8_t, x == 0)

REALS(COMPARE_OF, eq, x == y)
REALS(COMPARE_OF, ne, x != y)
REALS(COMPARE_OF, lt, x < y)
REALS(COMPARE_OF, le, x <= y)
REALS(COMPARE_OF, gt, x > y)
REALS(COMPARE_OF, ge, x >= y)
REALS(COMPARE_OF, logical_and, (x != 0) & (y != 0))
REALS(COMPARE_OF, logical_or, (x != 0) | (y != 0))
REALS(COMPARE_OF, logical_xor, (x != 0) ^ (y != 0))
/* Bools are bytes, of which all but 0 are true: a view of other bytes as bools has more than 0 and 1. */
BINARY_LOOP(and_bool, uint8_t, uint8_t, (x != 0) & (y != 0))
BINARY_LOOP(or_bool, uint8_t, uint8_t, (x | y) != 0)
BINARY_LOOP(xor_bool, uint8_t, uint8_t, (x != 0) ^ (y != 0))
BINARY_LOOP(same_bool, uint8_t, uint8_t, (x != 0) == (y != 0))

/* With more than two operands */

/* x between two bounds, mostly numbers. A NaN among the three is the result. */
#define CLAMP_LOOP(suffix, type, name)                                                                        \
    /* Bounds in rows, or the same throughout where their step, 0 or 1, is 0. */                              \
    ALWAYS_INLINE void name##_row_##suffix(const type *x, const type *low, ptrdiff_t l, const type *high, ptrdiff_t h, type *made, \
                                           ptrdiff_t count) {                                                 \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                                   \
            /* One comparison a choice: GCC makes vectors of such alone. */                                   \
            const type least = low[i * l], most = high[i * h];                                                \
            type value = x[i] <= least ? least : x[i];                                                        \
            value = least != least ? least : value;                                                           \
            value = value >= most ? most : value;                                                             \
            made[i] = most != most ? most : value;                                                            \
        }                                                                                                     \
    }                                                                                                         \
    static void name##_##suffix(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                 \
        const ptrdiff_t size = sizeof(type);                                                                  \
        const type *a = (const type *)data[0], *y = (const type *)data[1], *z = (const type *)data[2];        \
        const type low = *y, high = *z;                                                                       \
        type *made = (type *)data[3];                                                                         \
        const bool dense = steps[0] == size && steps[3] == size, ordered = low == low && high == high;        \
        if (dense && steps[1] == size && steps[2] == size) {                                                  \
            name##_row_##suffix(a, y, 1, z, 1, made, count);                                                  \
        } else if (dense && steps[1] == size && steps[2] == 0) {                                              \
            name##_row_##suffix(a, y, 1, &high, 0, made, count);                                              \
        } else if (dense && steps[1] == 0 && steps[2] == size) {                                              \
            name##_row_##suffix(a, &low, 0, z, 1, made, count);                                               \
        } else if (dense && steps[1] == 0 && steps[2] == 0 && ordered) {                                      \
            EACH_AHEAD(type, type x = a[i]; x = x < low ? low : x; made[i] = x > high ? high : x;)            \
        } else {                                                                                              \
            for (ptrdiff_t i = 0; i < count; i++) {                                                           \
                const type x = AT(const type, 0), least = AT(const type, 1), most = AT(const type, 2);        \
                const type raised = (x > least) | (x != x) ? x : least;                                       \
                AT(type, 3) = (raised < most) | (raised != raised) ? raised : most;                           \
            }                                                                                                 \
        }                                                                                                     \
    }
NARROW_VECTORS
REALS(CLAMP_LOOP, clamp)

/* x, and the slope beside it. */
FLOATS(BINARY_AHEAD_OF, leaky_relu, x > 0 ? x : x * y)
WIDE_VECTORS

/* By the size of the elements; x and y may each be one value. */
#define WHERE_LOOP(suffix, type)                                                                              \
    UNARY_LOOP(taken_##suffix, type, type, x)                                                                 \
    static void where_##suffix(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                  \
        const uint8_t *choice = (const uint8_t *)data[0];                                                     \
        const type *a = (const type *)data[1], *b = (const type *)data[2];                                    \
        type *made = (type *)data[3];                                                                         \
        const ptrdiff_t size = sizeof(type);                                                                  \
        bool dense = steps[0] == 1 && steps[3] == size;                                                       \
        if (dense && steps[1] == size && steps[2] == size) {                                                  \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                               \
                type x = a[i], y = b[i];                                                                      \
                made[i] = choice[i] ? x : y;                                                                  \
            }                                                                                                 \
        } else if (dense && steps[1] == size && steps[2] == 0) {                                              \
            type y = *b;                                                                                      \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                               \
                type x = a[i];                                                                                \
                made[i] = choice[i] ? x : y;                                                                  \
            }                                                                                                 \
        } else if (dense && steps[1] == 0 && steps[2] == size) {                                              \
            type x = *a;                                                                                      \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                               \
                type y = b[i];                                                                                \
                made[i] = choice[i] ? x : y;                                                                  \
            }                                                                                                 \
        } else if (dense && steps[1] == 0 && steps[2] == 0) {                                                 \
            type x = *a, y = *b;                                                                              \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)                                                 \
                made[i] = choice[i] ? x : y;                                                                  \
        } else if (count && !steps[0]) { /* a choice for the whole row */                                     \
            char *const ends[2] = {data[*choice ? 1 : 2], data[3]};                                           \
            const ptrdiff_t moves[2] = {steps[*choice ? 1 : 2], steps[3]};                                    \
            taken_##suffix(ends, moves, count);                                                               \
        } else {                                                                                              \
            for (ptrdiff_t i = 0; i < count; i++)                                                             \
                AT(type, 3) = AT(const uint8_t, 0) ? AT(const type, 1) : AT(const type, 2);                   \
        }                                                                                                     \
    }
WHERE_LOOP(1, uint8_t)
WHERE_LOOP(2, uint16_t)
WHERE_LOOP(4, uint32_t)
WHERE_LOOP(8, uint64_t)

#define FLOAT_ENTRIES(name) [OP_##name][TYPE_F32] = name##_f32, [OP_##name][TYPE_F64] = name##_f64,
#define INTEGER_ENTRIES(name)                                                                                 \
    [OP_##name][TYPE_I8] = name##_i8, [OP_##name][TYPE_I16] = name##_i16, [OP_##name][TYPE_I32] = name##_i32, \
    [OP_##name][TYPE_I64] = name##_i64, [OP_##name][TYPE_U8] = name##_u8,
#define ENTRIES(name) FLOAT_ENTRIES(name) INTEGER_ENTRIES(name)
#define BOOL_ENTRY(name, loop) [OP_##name][TYPE_BOOL] = loop,

const elementwise_loops ISA(elementwise_loops) = {.compute = {
    ENTRIES(neg) ENTRIES(abs) ENTRIES(square) ENTRIES(cube) ENTRIES(relu) ENTRIES(sign) FLOAT_ENTRIES(sqrt)
    FLOAT_ENTRIES(rsqrt) FLOAT_ENTRIES(reciprocal) FLOAT_ENTRIES(reciprocal_square) FLOAT_ENTRIES(floor)
    FLOAT_ENTRIES(ceil) FLOAT_ENTRIES(trunc) FLOAT_ENTRIES(round) INTEGER_ENTRIES(bitwise_not)
    BOOL_ENTRY(bitwise_not, bitwise_not_bool)
    POLYNOMIAL_OPS(FLOAT_ENTRIES) FLOAT_ENTRIES(angle) FLOAT_ENTRIES(fmod) FLOAT_ENTRIES(remainder)
    FLOAT_ENTRIES(floor_divide) FLOAT_ENTRIES(nextafter) FLOAT_ENTRIES(hypot) FLOAT_ENTRIES(logaddexp)
    FLOAT_ENTRIES(logaddexp2) FUNCTION_OPS(FLOAT_ENTRIES) FLOAT_ENTRIES(gelu) FLOAT_ENTRIES(gelu_tanh) FLOAT_ENTRIES(leaky_relu)
    FLOAT_ENTRIES(isnan) FLOAT_ENTRIES(isinf) FLOAT_ENTRIES(isfinite) ENTRIES(logical_not)
    BOOL_ENTRY(logical_not, logical_not_bool)
    ENTRIES(add) ENTRIES(sub) ENTRIES(mul) FLOAT_ENTRIES(div) ENTRIES(maximum) ENTRIES(minimum)
    INTEGER_ENTRIES(bitwise_and) INTEGER_ENTRIES(bitwise_or) INTEGER_ENTRIES(bitwise_xor)
    BOOL_ENTRY(add, or_bool) BOOL_ENTRY(mul, and_bool) BOOL_ENTRY(maximum, or_bool) BOOL_ENTRY(minimum, and_bool)
    BOOL_ENTRY(bitwise_and, and_bool) BOOL_ENTRY(bitwise_or, or_bool) BOOL_ENTRY(bitwise_xor, xor_bool)
    COMPARE_OPS(ENTRIES)
    BOOL_ENTRY(eq, same_bool) BOOL_ENTRY(ne, xor_bool) BOOL_ENTRY(logical_and, and_bool)
    BOOL_ENTRY(logical_or, or_bool) BOOL_ENTRY(logical_xor, xor_bool)
    [OP_power] = {[TYPE_F32] = power_f32}, ENTRIES(clamp)
    [OP_where] = {where_4, where_8, where_2, where_2, where_1, where_2, where_4, where_8, where_1, where_1},
}};
