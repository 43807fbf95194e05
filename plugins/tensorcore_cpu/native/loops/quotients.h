/* Whole quotients of floats and what they leave, as NumPy defines them, but that a remainder of 0 has the sign of x, as in PyTorch. */
#ifndef TENSORCORE_NATIVE_QUOTIENTS_H
#define TENSORCORE_NATIVE_QUOTIENTS_H

#include "functions.h"

#include <string.h>

/* By a division in double: while the quotient is easy it may have been rounded up to a whole number, no more. What is left of x after
   that many ys has few bits, since it is small, and a multiple of y's last place or of x's: with one rounding it is exact. With two
   it is for floats alone, and a product of 52 bits. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define TAKEN(size, times, by) __builtin_fma(-(times), by, size)
static const double EASY_f32 = 0x1p52, EASY_f64 = 0x1p52;
enum { FAR_IN_STEPS = 1 };
#else
#define TAKEN(size, times, by) ((size) - (times) * (by))
static const double EASY_f32 = 0x1p28, EASY_f64 = 0; /* none */
enum { FAR_IN_STEPS = 0 };
#endif

/* What is left of x after whole ys, with the sign of x, where their quotient is easy: NaN of an infinity and after zeros. */
ALWAYS_INLINE double left_of(double x, double y) {
    const double size = abs__f64(x), by = abs__f64(y), left = TAKEN(size, trunc(size / by), by);
    const double below = size < INFINITY ? size : NAN;
    return signed_as_f64(by == INFINITY ? below : left < 0 ? left + by : left, x);
}

/* Finite numbers whose quotient is not easy. */
ALWAYS_INLINE bool is_far(double x, double y, double easy) {
    return (abs__f64(x / y) >= easy) & (abs__f64(x) < INFINITY) & (y != 0);
}

enum { QUOTIENTS = 512 }; /* whose parts stay in the first cache */

/* The same of such numbers among others: 52 bits of the quotient at a time, of all together, as long as one is not done. A quotient
   that is no double is left to libm, which takes its bits one by one. */
static void left_of_far(const double *x, const double *y, double *made, ptrdiff_t count) {
    double left[QUOTIENTS], by[QUOTIENTS], sign[QUOTIENTS]; /* the sign: of what is left, beside that of x */
    for (ptrdiff_t i = 0; i < count; i++) {
        const bool far = FAR_IN_STEPS & is_far(x[i], y[i], EASY_f64) & (abs__f64(x[i] / y[i]) < INFINITY);
        left[i] = far ? abs__f64(x[i]) : 0;
        by[i] = far ? abs__f64(y[i]) : 1;
        sign[i] = 1;
    }
    int64_t more = FAR_IN_STEPS;
    while (more) {
        more = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            const double times = trunc(left[i] / by[i]), rest = TAKEN(left[i], times, by[i]);
            sign[i] = rest < 0 ? -sign[i] : sign[i];
            left[i] = abs__f64(rest);
            more |= times >= EASY_f64;
        }
    }
    for (ptrdiff_t i = 0; i < count; i++)
        made[i] = signed_as_f64((sign[i] < 0) & (left[i] > 0) ? by[i] - left[i] : left[i], x[i]);
    for (ptrdiff_t i = 0; i < count; i++)
        if (!FAR_IN_STEPS || abs__f64(x[i] / y[i]) == INFINITY)
            made[i] = fmod(x[i], y[i]);
}

/* The three kinds of division from x, y and what is left. */
#define KINDS_OF_DIVISION(suffix, type, floored)                                                              \
    ALWAYS_INLINE type fmod_from_##suffix(type x, type y, type left) { return left; }                         \
    ALWAYS_INLINE type remainder_from_##suffix(type x, type y, type left) {                                   \
        const type other = (left < 0) != (y < 0) ? left + y : left;                                           \
        return left == 0 ? left : other;                                                                      \
    }                                                                                                         \
    ALWAYS_INLINE type floor_divide_from_##suffix(type x, type y, type left) {                                \
        const type whole = (x - left) / y, below = (left != 0) & ((left < 0) != (y < 0)) ? whole - 1 : whole; \
        const type low = floored(below), near = below - low > (type)0.5 ? low + 1 : low, plain = x / y;       \
        const type signed_near = below == 0 ? signed_as_##suffix(0, plain) : near;                            \
        return y == 0 ? plain : signed_near;                                                                  \
    }
KINDS_OF_DIVISION(f32, float, floorf)
KINDS_OF_DIVISION(f64, double, floor)

/* A piece of an operand, side by side: where it lies, or gathered. */
#define PIECE_OF(suffix, type)                                                                                \
    ALWAYS_INLINE const type *piece_of_##suffix(const char *from, ptrdiff_t step, type *gathered, ptrdiff_t count) { \
        if (step == sizeof(type))                                                                             \
            return (const type *)from;                                                                        \
        for (ptrdiff_t i = 0; i < count; i++)                                                                 \
            gathered[i] = *(const type *)(from + i * step);                                                   \
        return gathered;                                                                                      \
    }
PIECE_OF(f32, float)
PIECE_OF(f64, double)

/* The operands of a piece stay where they are until it is done: the result may take the place of one. */
#define DIVISION_LOOP(suffix, type, name)                                                                     \
    static void name##_##suffix(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                 \
        for (ptrdiff_t begin = 0; begin < count; begin += QUOTIENTS) {                                        \
            const ptrdiff_t piece = count - begin < QUOTIENTS ? count - begin : QUOTIENTS;                    \
            type xs[QUOTIENTS], ys[QUOTIENTS], made[QUOTIENTS];                                               \
            const type *x = piece_of_##suffix(data[0] + begin * steps[0], steps[0], xs, piece);               \
            const type *y = piece_of_##suffix(data[1] + begin * steps[1], steps[1], ys, piece);               \
            char *to = data[2] + begin * steps[2];                                                            \
            int far = 0;                                                                                      \
            for (ptrdiff_t i = 0; i < piece; i++) {                                                           \
                made[i] = name##_from_##suffix(x[i], y[i], (type)left_of(x[i], y[i]));                        \
                far |= is_far(x[i], y[i], EASY_##suffix);                                                     \
            }                                                                                                 \
            if (far) {                                                                                        \
                double a[QUOTIENTS], b[QUOTIENTS], left[QUOTIENTS];                                           \
                for (ptrdiff_t i = 0; i < piece; i++) {                                                       \
                    a[i] = x[i];                                                                              \
                    b[i] = y[i];                                                                              \
                }                                                                                             \
                left_of_far(a, b, left, piece);                                                               \
                for (ptrdiff_t i = 0; i < piece; i++)                                                         \
                    made[i] = is_far(x[i], y[i], EASY_##suffix) ? name##_from_##suffix(x[i], y[i], (type)left[i]) : made[i]; \
            }                                                                                                 \
            if (steps[2] == sizeof(type))                                                                     \
                memcpy(to, made, (size_t)piece * sizeof(type));                                               \
            else                                                                                              \
                for (ptrdiff_t i = 0; i < piece; i++)                                                         \
                    *(type *)(to + i * steps[2]) = made[i];                                                   \
        }                                                                                                     \
    }

#endif
