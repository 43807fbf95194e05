/* The loops of division.h. Short integers are divided as floats and longer ones as doubles, which are many at a time: a quotient
   that is no whole number is further from the next one than its rounding, below 2^24 and 2^53. Powers are products of squares,
   which wrap around as products do. */
#include "loop.h"

#include "../division.h"

#include <math.h>

/* `real` is that type, `most` its largest number: over it is the least number's quotient by -1, which wraps around. */
#define DIVIDED(suffix, type, real, truncated, most)                                                          \
    ALWAYS_INLINE type whole_##suffix(real quotient) {                                                        \
        return (type)(quotient > (real)(most) ? quotient - 2 * ((real)(most) + 1) : quotient);                \
    }                                                                                                         \
    ALWAYS_INLINE real rest_##suffix(type x, type y) { return (real)x - truncated((real)x / (real)y) * (real)y; } \
    ALWAYS_INLINE bool turns_##suffix(real rest, type y) { return (rest < 0) != (y < 0) && rest != 0; }       \
    ALWAYS_INLINE type floor_of_##suffix(type x, type y) {                                                    \
        return whole_##suffix(truncated((real)x / (real)y) - (turns_##suffix(rest_##suffix(x, y), y) ? 1 : 0)); \
    }                                                                                                         \
    ALWAYS_INLINE type trunc_of_##suffix(type x, type y) { return whole_##suffix(truncated((real)x / (real)y)); } \
    ALWAYS_INLINE type remainder_of_##suffix(type x, type y) {                                                \
        const real rest = rest_##suffix(x, y);                                                                \
        return (type)(rest + (turns_##suffix(rest, y) ? (real)y : 0));                                        \
    }                                                                                                         \
    ALWAYS_INLINE type fmod_of_##suffix(type x, type y) { return (type)rest_##suffix(x, y); }

#define LOOPS(suffix, type)                                                                                   \
    BINARY_LOOP(floor_##suffix, type, type, floor_of_##suffix(x, y))                                          \
    BINARY_LOOP(trunc_##suffix, type, type, trunc_of_##suffix(x, y))                                          \
    BINARY_LOOP(remainder_##suffix, type, type, remainder_of_##suffix(x, y))                                  \
    BINARY_LOOP(fmod_##suffix, type, type, fmod_of_##suffix(x, y))

DIVIDED(i8, int8_t, float, truncf, INT8_MAX)
DIVIDED(i16, int16_t, float, truncf, INT16_MAX)
DIVIDED(i32, int32_t, double, trunc, INT32_MAX)
DIVIDED(u8, uint8_t, float, truncf, UINT8_MAX)
DIVIDED(near, int64_t, double, trunc, INT64_C(1) << 52)
LOOPS(i8, int8_t)
LOOPS(i16, int16_t)
LOOPS(i32, int32_t)
LOOPS(u8, uint8_t)
LOOPS(near, int64_t)

/* By the processor's division, which has no answer to the least number by -1. */
ALWAYS_INLINE int64_t trunc_of_far(int64_t x, int64_t y) { return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y; }
ALWAYS_INLINE int64_t fmod_of_far(int64_t x, int64_t y) { return y == -1 ? 0 : x % y; }
ALWAYS_INLINE bool turns_far(int64_t rest, int64_t y) { return rest && (rest ^ y) < 0; }
ALWAYS_INLINE int64_t floor_of_far(int64_t x, int64_t y) { return trunc_of_far(x, y) - (turns_far(fmod_of_far(x, y), y) ? 1 : 0); }
ALWAYS_INLINE int64_t remainder_of_far(int64_t x, int64_t y) {
    const int64_t rest = fmod_of_far(x, y);
    return rest + (turns_far(rest, y) ? y : 0);
}
LOOPS(far, int64_t)

/* Whether all are so small that doubles divide them. */
static bool are_near(const char *data, ptrdiff_t step, ptrdiff_t count) {
    const uint64_t half = UINT64_C(1) << 51;
    uint64_t bits = 0;
    if (step == sizeof(int64_t))
        for (ptrdiff_t i = 0; i < count; i++)
            bits |= (uint64_t)((const int64_t *)data)[i] + half;
    else
        for (ptrdiff_t i = 0; i < (step ? count : 1); i++)
            bits |= (uint64_t) * (const int64_t *)(data + i * step) + half;
    return !(bits >> 52);
}

#define IN_PIECES(name)                                                                                       \
    static void name##_i64(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                      \
        enum { PIECE = 512 };                                                                                 \
        for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {                                            \
            const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;                            \
            char *const at[3] = {data[0] + begin * steps[0], data[1] + begin * steps[1], data[2] + begin * steps[2]}; \
            const bool near = are_near(at[0], steps[0], piece) && are_near(at[1], steps[1], piece);           \
            (near ? name##_near : name##_far)(at, steps, piece);                                              \
        }                                                                                                     \
    }
IN_PIECES(floor)
IN_PIECES(trunc)
IN_PIECES(remainder)
IN_PIECES(fmod)

/* `bits` is an unsigned type as wide or wider. To a negative power 1 and -1 are what they are, and all others are cut off to 0. */
#define POWER(suffix, type, bits)                                                                             \
    ALWAYS_INLINE type power_of_##suffix(type x, type y) {                                                    \
        bits made = 1, square = (bits)x;                                                                      \
        if (y < 0)                                                                                            \
            return x == 1 || (x == (type)-1 && !(y & 1)) ? 1 : x == (type)-1 ? (type)-1 : 0;                  \
        for (uint64_t left = (uint64_t)y; left; left >>= 1) {                                                 \
            if (left & 1)                                                                                     \
                made *= square;                                                                               \
            square *= square;                                                                                 \
        }                                                                                                     \
        return (type)made;                                                                                    \
    }                                                                                                         \
    BINARY_LOOP(power_##suffix, type, type, power_of_##suffix(x, y))

POWER(i8, int8_t, uint32_t)
POWER(i16, int16_t, uint32_t)
POWER(i32, int32_t, uint32_t)
POWER(i64, int64_t, uint64_t)
POWER(u8, uint8_t, uint32_t)

#define ENTRIES(name)                                                                                         \
    {[TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16, [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8}

const division_loops ISA(division_loops) = {
    .of = {[DIVISION_FLOOR] = ENTRIES(floor), [DIVISION_TRUNC] = ENTRIES(trunc), [DIVISION_REMAINDER] = ENTRIES(remainder),
           [DIVISION_FMOD] = ENTRIES(fmod), [DIVISION_POWER] = ENTRIES(power)},
};
