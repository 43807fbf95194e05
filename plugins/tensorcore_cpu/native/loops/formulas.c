/* The loops of formulas. Functions of floats are computed in double, from polynomials that are good to 1e-11 (interpolated at
   Chebyshev's points); those of doubles are left to NumPy. */
#include "angles.h"
#include "bessel.h"
#include "functions.h"
#include "gamma.h"
#include "half.h"
#include "loop.h"
#include "normal.h"
#include "wide.h"
#include "wide_angles.h"
#include "wide_double.h"

#include "../formulas.h"

/* atan of 0 <= t <= 1 */
ALWAYS_INLINE double atan_of_one(double t) {
    bool far = t > 0.41421356237309504880; /* tan(pi / 8): from there on pi / 4 + atan((t - 1) / (t + 1)) */
    double x = far ? (t - 1) / (t + 1) : t, z = x * x;
    double made = x + x * z * P7(z, -0.04043145455873264, 0.07135287552138535, -0.09028976882101468, 0.11107494603271033,
                                 -0.14285612492240532, 0.1999999891704028, -0.3333333333144022);
    return far ? PI / 4 + made : made;
}

ALWAYS_INLINE float atan_of_f32(float x) {
    double size = abs__f64(x);
    bool steep = size > 1;
    double made = atan_of_one(steep ? 1 / size : size);
    return (float)signed_as_f64(steep ? PI / 2 - made : made, x);
}

ALWAYS_INLINE float atan2_of_f32(float y, float x) {
    double up = abs__f64(y), across = abs__f64(x), low = up < across ? up : across, high = up < across ? across : up;
    double part = low / high;
    part = low == high ? (high == 0 ? 0 : 1) : part; /* two zeros, two infinities */
    double made = atan_of_one(part);
    made = up > across ? PI / 2 - made : made;
    made = (int32_t)bits_f32(x) < 0 ? PI - made : made;
    made = x != x || y != y ? NAN : made;
    return (float)signed_as_f64(made, y);
}

/* asin of 0 <= s, from 1/2 on pi / 2 less twice this of the root; NaN over 1 */
ALWAYS_INLINE double asin_part(double s, bool *far) {
    *far = s > 0.5;
    double z = *far ? (1 - s) * 0.5 : s * s, x = *far ? sqrt(z) : s;
    return x + x * z * P8(z, 0.029317325604912285, 0.005433409887131855, 0.019309346189809867, 0.022131964555369556,
                          0.03039767195351239, 0.04464235707939131, 0.07500000600759216, 0.1666666666549084);
}
ALWAYS_INLINE float asin_of_f32(float x) {
    bool far;
    double part = asin_part(abs__f64(x), &far);
    return (float)signed_as_f64(far ? PI / 2 - 2 * part : part, x);
}
ALWAYS_INLINE float acos_of_f32(float x) {
    bool far;
    double part = asin_part(abs__f64(x), &far), near = PI / 2 - (x < 0 ? -part : part);
    return (float)(far ? (x < 0 ? PI - 2 * part : 2 * part) : near);
}

ALWAYS_INLINE float sinh_of_f32(float x) {
    double size = abs__f64(x), less = expm1__f64(size > 700 ? 700 : size);
    return (float)signed_as_f64(0.5 * (less + less / (less + 1)), x);
}
ALWAYS_INLINE float cosh_of_f32(float x) {
    double grown = exp__f64(abs__f64(x));
    return (float)(0.5 * grown + 0.5 / grown);
}
/* log((1 + x) / (1 - x)) / 2: with the quotient within [0.68, 1.38) times p = 2^k, of (1 + x - p (1 - x)) / (1 + x + p (1 - x)), which
   is x itself for small ones. */
ALWAYS_INLINE float atanh_of_f32(float x) {
    double size = abs__f64(x), above = 1 + size, below = 1 - size;
    int64_t k = (int64_t)((bits_f64(above / below) + 0x000a000000000000) >> 52) - 1023;
    double p = power_of_two_f64(k), s = (1 - p + size * (1 + p)) / (1 + p + size * (1 - p)), z = s * s;
    double made = s + s * z * P6(z, 0.08, 0.0909073, 0.11111121, 0.1428571428, 0.2, 0.33333333333333333);
    made += 0.34657359027997265471 * (real_f64(bits_f64(6755399441055744.0) + (uint64_t)k) - 6755399441055744.0);
    made = size == 1 ? INFINITY : size > 1 ? NAN : made;
    return (float)signed_as_f64(made, x);
}

/* The square of a float is a double. */
ALWAYS_INLINE float asinh_of_f32(float x) {
    double size = abs__f64(x), square = size * size, made = log1p__f64(size + square / (1 + sqrt(square + 1)));
    return (float)signed_as_f64(size == INFINITY ? INFINITY : made, x);
}
/* At the first float over 1 it is over 2^-12, beside which what a double rounds at 1 is nothing. */
ALWAYS_INLINE float acosh_of_f32(float x) {
    double above = x < 1 ? NAN : (double)x - 1;
    return (float)log__f64(1 + (above + sqrt(above * (above + 2))));
}

/* 2^n times 2^r, where x = n + r is taken apart without a loss; the powers of ln 2 over factorials. */
ALWAYS_INLINE float exp2_of_f32(float x) {
    float y = x < -150 ? -150 : x > 129 ? 129 : x, shifted = y + MAGIC_F32, r = y - (shifted - MAGIC_F32);
    int32_t n = (int32_t)(bits_f32(shifted) - bits_f32(MAGIC_F32)), half = halved_f32(n);
    float made = P8(r, 1.5252734e-5f, 1.5403530e-4f, 1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 0.24022651f, 0.69314718f, 1);
    return made * power_of_two_f32(half) * power_of_two_f32(n - half);
}

/* The elements of a dense result, with x, y and z as they are given for the i-th. */
#define FORMULA_ROW(type, inputs, first, second, third, BODY)                                                 \
    {                                                                                                         \
        type *out = (type *)data[inputs];                                                                     \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                                   \
            type x = first, y = second, z = third, made;                                                      \
            (void)y, (void)z;                                                                                 \
            BODY;                                                                                             \
            out[i] = made;                                                                                    \
        }                                                                                                     \
    }

/* `BODY` of x, y and z, of the type `type`, sets `made`; a, b and c are the options. Operands lie in rows, or the second is a number,
   or of two the first, as a gradient that comes from a sum. */
#define FORMULA_OF(suffix, type, name, inputs, BODY)                                                          \
    static void name##_##suffix(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { \
        const type a = (type)numbers[0], b = (type)numbers[1], c = (type)numbers[2];                          \
        const ptrdiff_t size = sizeof(type);                                                                  \
        const bool dense = steps[inputs] == size && (inputs < 3 || steps[2] == size);                         \
        const type *xs = (const type *)data[0], *ys = (const type *)data[inputs > 1 ? 1 : 0],                 \
                   *zs = (const type *)data[inputs > 2 ? 2 : 0];                                              \
        (void)a, (void)b, (void)c;                                                                            \
        if (dense && steps[0] == size && (inputs < 2 || steps[1] == size)) {                                  \
            FORMULA_ROW(type, inputs, xs[i], ys[i], zs[i], BODY)                                              \
        } else if (inputs > 1 && dense && steps[0] == size && !steps[1]) {                                    \
            const type number = *ys;                                                                          \
            FORMULA_ROW(type, inputs, xs[i], number, zs[i], BODY)                                             \
        } else if (inputs == 2 && dense && !steps[0] && steps[1] == size) {                                   \
            const type number = *xs;                                                                          \
            FORMULA_ROW(type, inputs, number, ys[i], number, BODY)                                            \
        } else {                                                                                              \
            for (ptrdiff_t i = 0; i < count; i++) {                                                           \
                type x = AT(const type, 0), y = AT(const type, inputs > 1 ? 1 : 0),                           \
                     z = AT(const type, inputs > 2 ? 2 : 0), made;                                            \
                (void)y, (void)z;                                                                             \
                BODY;                                                                                         \
                AT(type, inputs) = made;                                                                      \
            }                                                                                                 \
        }                                                                                                     \
    }

#define UPTO_SIX(x) ((x) < 0 ? 0 : (x) > 6 ? 6 : (x)) /* NaN stays */

FLOATS(FORMULA_OF, hardswish, 1, made = x * UPTO_SIX(x + 3) / 6)
FLOATS(FORMULA_OF, hardsigmoid, 1, made = UPTO_SIX(x + 3) / 6)
FLOATS(FORMULA_OF, hardshrink, 1, made = x >= -a && x <= a ? 0 : x)
FLOATS(FORMULA_OF, softshrink, 1, made = x - (x < -a ? -a : x > a ? a : x))
REALS(FORMULA_OF, threshold, 1, made = x <= a ? b : x)
FLOATS(FORMULA_OF, nan_to_num, 1, made = x != x ? a : x == INFINITY ? b : x == -INFINITY ? c : x)
FLOATS(FORMULA_OF, nan_to_num_kept, 1, made = x < -b ? -b : x; made = made > b ? b : made; made = x != x ? a : made)
FORMULA_OF(f32, float, frac, 1, made = x - truncf(x))
FORMULA_OF(f64, double, frac, 1, made = x - trunc(x))
/* Kept within [a, b], which are infinite where there is no eps. */
#define LOGIT(log_of) y = x < a ? a : x > b ? b : x; made = log_of(y / (1 - y))
#ifdef __AVX512F__
/* By the logarithm that the kernel log has there, so that one kernel has the bits of several. */
static void logit_f32(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const __m512 low = _mm512_set1_ps((float)numbers[0]), high = _mm512_set1_ps((float)numbers[1]);
    const bool from_row = steps[0] == sizeof(float), to_row = steps[1] == sizeof(float);
    float line[16] = {0};
    for (ptrdiff_t start = 0; start < count; start += 16) {
        const ptrdiff_t end = count - start < 16 ? count : start + 16;
        const __mmask16 there = (__mmask16)(0xffff >> (16 - (end - start)));
        for (ptrdiff_t i = start; !from_row && i < end; i++)
            line[i - start] = AT(const float, 0);
        __m512 x = _mm512_maskz_loadu_ps(there, from_row ? (const float *)data[0] + start : line);
        __m512 y = _mm512_min_ps(high, _mm512_max_ps(low, x)); /* of two, the second where one is NaN */
        y = log_wide_one(_mm512_div_ps(y, _mm512_sub_ps(EACH(1), y)));
        _mm512_mask_storeu_ps(to_row ? (float *)data[1] + start : line, there, y);
        for (ptrdiff_t i = start; !to_row && i < end; i++)
            AT(float, 1) = line[i - start];
    }
}
#else
FORMULA_OF(f32, float, logit, 1, LOGIT(log__f32))
#endif
FORMULA_OF(f64, double, logit, 1, LOGIT(log__f64))
/* Of half types PyTorch rounds each step: these take floats that are halves, and what they make is rounded as all is. */
#define HALVED_LOGIT(rounded) y = x < a ? a : x > b ? b : x; y = rounded(y / rounded(1 - y)); made = log__f32(y)
#define BF16_ROUNDED(x) bf16_value(bf16_of(x))
#define F16_ROUNDED(x) f16_value(f16_of(x))
FORMULA_OF(bf16, float, logit, 1, HALVED_LOGIT(BF16_ROUNDED))
FORMULA_OF(f16, float, logit, 1, HALVED_LOGIT(F16_ROUNDED))

#ifdef __AVX512F__
#define ALONG(name, function)                                                                                 \
    static void name##_f32(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { \
        function(data, steps, count);                                                                         \
    }
ALONG(atan, atan_along)
ALONG(tan, tan_along)
ALONG(sinh, sinh_along)
ALONG(cosh, cosh_along)
static void atan2_f32(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    loop_of_rows(data, steps, count, atan2_of_row);
}
#else
FORMULA_OF(f32, float, atan, 1, made = atan_of_f32(x))
FORMULA_OF(f32, float, atan2, 2, made = atan2_of_f32(x, y))
FORMULA_OF(f32, float, sinh, 1, made = sinh_of_f32(x))
FORMULA_OF(f32, float, cosh, 1, made = cosh_of_f32(x))
FORMULA_OF(f32, float, near_tan, 1, made = tan_of_f32(x))
FORMULA_OF(f32, float, far_tan, 1, made = tanf(x))
#endif
FORMULA_OF(f32, float, asin, 1, made = asin_of_f32(x))
FORMULA_OF(f32, float, acos, 1, made = acos_of_f32(x))
FORMULA_OF(f32, float, atanh, 1, made = atanh_of_f32(x))
FORMULA_OF(f32, float, asinh, 1, made = asinh_of_f32(x))
FORMULA_OF(f32, float, acosh, 1, made = acosh_of_f32(x))
FORMULA_OF(f32, float, exp2, 1, made = exp2_of_f32(x))
FORMULA_OF(f32, float, entr, 1, made = x == 0 ? 0 : -x * log__f32(x); made = x < 0 ? -INFINITY : made)
#ifdef __AVX512F__
#define LOG_TO_BASE(name, logs, two, natural)                                                                 \
    ALWAYS_INLINE void name##_wide(__m512 *x, int count) {                                                    \
        WIDE_ALL {                                                                                            \
            __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x[k]));                                      \
            __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x[k], 1));                                  \
            __m256 first = _mm512_cvtpd_ps(log_to_base(low, logs, two, natural));                             \
            x[k] = _mm512_insertf32x8(_mm512_castps256_ps512(first),                                          \
                                      _mm512_cvtpd_ps(log_to_base(high, logs, two, natural)), 1);             \
        }                                                                                                     \
    }                                                                                                         \
    WIDE_LOOP(name##_along, name##_wide)                                                                      \
    ALONG(name, name##_along)
LOG_TO_BASE(log2, log2_of_16, 1, 1.44269504088896340736)
LOG_TO_BASE(log10, log10_of_16, 0.30102999566398119521, 0.43429448190325182765)
#else
FORMULA_OF(f32, float, log2, 1, made = (float)(log__f64(x) * 1.44269504088896340736))
FORMULA_OF(f32, float, log10, 1, made = (float)(log__f64(x) * 0.43429448190325182765))
#endif
FORMULA_OF(f32, float, lgamma, 1, made = lgamma_of_f32(x))
FORMULA_OF(f32, float, digamma, 1, made = digamma_of_f32(x))
FORMULA_OF(f64, double, digamma_left, 2, made = digamma_left_of_f64(x, y))
FORMULA_OF(f64, double, trigamma, 1, made = trigamma_of_f64(x))
FORMULA_OF(f32, float, trigamma, 1, made = trigamma_of_f32(x))
FORMULA_OF(f32, float, erfcx, 1, made = erfcx_of_f32(x))
FORMULA_OF(f32, float, log_ndtr, 1, made = log_ndtr_of_f32(x))
FORMULA_OF(f32, float, ndtri, 1, made = ndtri_of_f32(x))

/* sin(x) / x, 1 at 0 and 0 at the infinities; of sinc the angle is rounded to a float, as PyTorch rounds it. */
#define OVER(sine, angle) ((angle) == 0 ? 1 : (sine) / (angle))
#define OR_NOTHING(x, made) ((x) == INFINITY || (x) == -INFINITY ? 0 : (made))
FORMULA_OF(f32, float, near_sinc, 1, float angle = x * (float)PI; made = (float)OVER(sine_of_f32(angle), angle))
FORMULA_OF(f32, float, far_sinc, 1, float angle = x * (float)PI; made = (float)OVER(sin((double)angle), angle))
#define ANY_SINE(x) (abs__f64(x) < TURNS_MOST ? sine_of_f64(x) : sin(x)) /* whatever lies beside it */
FORMULA_OF(f64, double, near_sinc, 1, double angle = x * PI; made = OVER(sine_of_f64(angle), angle))
FORMULA_OF(f64, double, far_sinc, 1, double angle = x * PI; made = OVER(ANY_SINE(angle), angle))
FORMULA_OF(f32, float, near_spherical_bessel_j0, 1, made = (float)OVER(sine_of_f32(x), x))
FORMULA_OF(f32, float, far_spherical_bessel_j0, 1, made = (float)OR_NOTHING(x, OVER(sin((double)x), x)))
FORMULA_OF(f64, double, near_spherical_bessel_j0, 1, made = OVER(sine_of_f64(x), x))
FORMULA_OF(f64, double, far_spherical_bessel_j0, 1, made = OR_NOTHING(x, OVER(ANY_SINE(x), x)))
FORMULA_OF(f64, double, near_sin, 1, made = sine_of_f64(x))
FORMULA_OF(f64, double, far_sin, 1, made = ANY_SINE(x))
FORMULA_OF(f64, double, near_cos, 1, made = cosine_of_f64(x))
FORMULA_OF(f64, double, far_cos, 1, made = abs__f64(x) < TURNS_MOST ? cosine_of_f64(x) : cos(x))

/* Where the polynomials of angles end, the C library goes on: piece by piece. */
#define NEAR_OR_FAR(suffix, type, name, limit)                                                                \
    static void name##_##suffix(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { \
        enum { PIECE = 512 };                                                                                 \
        for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {                                            \
            const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;                            \
            char *const at[2] = {data[0] + begin * steps[0], data[1] + begin * steps[1]};                     \
            type most = 0;                                                                                    \
            for (ptrdiff_t i = 0; i < piece; i++) {                                                           \
                type size = abs__##suffix(*(const type *)(at[0] + i * steps[0]));                             \
                most = size > most ? size : most;                                                             \
            }                                                                                                 \
            (most < (limit) ? near_##name##_##suffix : far_##name##_##suffix)(numbers, at, steps, piece);      \
        }                                                                                                     \
    }
#ifndef __AVX512F__
NEAR_OR_FAR(f32, float, tan, TAN_MOST)
#endif
NEAR_OR_FAR(f32, float, sinc, TAN_MOST / 4)
NEAR_OR_FAR(f32, float, spherical_bessel_j0, TAN_MOST)
NEAR_OR_FAR(f64, double, sinc, TURNS_MOST / PI)
NEAR_OR_FAR(f64, double, spherical_bessel_j0, TURNS_MOST)
NEAR_OR_FAR(f64, double, sin, TURNS_MOST)
NEAR_OR_FAR(f64, double, cos, TURNS_MOST)

/* Two numbers */

FORMULA_OF(f32, float, copysign, 2, made = signed_as_f32(abs__f32(x), y))
FORMULA_OF(f64, double, copysign, 2, made = signed_as_f64(abs__f64(x), y))
/* By whole powers of two, rounded once: no product of a float and such a double is. Beyond these powers there is 0, or an infinity. */
FORMULA_OF(f32, float, ldexp, 2, made = (float)(x * power_of_two_f64((int64_t)(y < -600 ? -600 : y > 600 ? 600 : y))))
FORMULA_OF(f64, double, ldexp, 2, made = ldexp(x, (int)(y < -2200 ? -2200 : y > 2200 ? 2200 : y)))

/* The other one where one is NaN. */
FLOATS(FORMULA_OF, fmax, 2, made = (x >= y) | (y != y) ? x : y)
FLOATS(FORMULA_OF, fmin, 2, made = (x <= y) | (y != y) ? x : y)
REALS(FORMULA_OF, heaviside, 2, made = x == 0 ? y : x > 0)
#define TIMES_LOG(log_of) made = y != y ? y : x == 0 ? 0 : x * log_of(y)
FORMULA_OF(f32, float, xlogy, 2, TIMES_LOG(log__f32))
FORMULA_OF(f64, double, xlogy, 2, TIMES_LOG(log__f64))
FORMULA_OF(f32, float, xlog1py, 2, TIMES_LOG(log1p__f32))
FORMULA_OF(f64, double, xlog1py, 2, TIMES_LOG(log1p__f64))
#define BF16_LOG(x) BF16_ROUNDED(log__f32(x))
#define BF16_LOG1P(x) BF16_ROUNDED(log1p__f32(x))
#define F16_LOG(x) F16_ROUNDED(log__f32(x))
#define F16_LOG1P(x) F16_ROUNDED(log1p__f32(x))
FORMULA_OF(bf16, float, xlogy, 2, TIMES_LOG(BF16_LOG))
FORMULA_OF(bf16, float, xlog1py, 2, TIMES_LOG(BF16_LOG1P))
FORMULA_OF(f16, float, xlogy, 2, TIMES_LOG(F16_LOG))
FORMULA_OF(f16, float, xlog1py, 2, TIMES_LOG(F16_LOG1P))

static void igamma_f32(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    incomplete_gammas(data, steps, count, false);
}
static void igammac_f32(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    incomplete_gammas(data, steps, count, true);
}
FORMULA_OF(f32, float, zeta, 2, made = (float)hurwitz_zeta(x, y))
/* The order plus 1, and its factorial with a sign. */
FORMULA_OF(f32, float, polygamma, 1, made = (float)(numbers[1] * hurwitz_zeta(numbers[0], x)))

/* Euclid's; of the least number of a type, whose size is none of its numbers, in one type more. */
ALWAYS_INLINE uint64_t common_divisor(uint64_t x, uint64_t y) {
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}
ALWAYS_INLINE uint64_t size_of(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }
#define DIVISOR common_divisor(size_of(x), size_of(y))
#define GCD(suffix, type, name) FORMULA_OF(suffix, type, name, 2, made = (type)DIVISOR)
#define LCM(suffix, type, name)                                                                               \
    FORMULA_OF(suffix, type, name, 2, uint64_t d = DIVISOR; type m = d ? (type)(x / (int64_t)d * y) : 0;        \
               made = m < 0 ? (type)-m : m)
INTEGERS(GCD, gcd)
INTEGERS(LCM, lcm)

/* Past all bits nothing is left, or the sign. */
#define IS_SHIFT(type) ((uint64_t)(int64_t)y < 8 * sizeof(type))
#define SHIFTS(suffix, type, wide)                                                                            \
    FORMULA_OF(suffix, type, bitwise_left_shift, 2,                                                           \
               made = IS_SHIFT(type) ? (type)((wide)x << ((wide)y & (8 * sizeof(wide) - 1))) : 0)             \
    FORMULA_OF(suffix, type, bitwise_right_shift, 2,                                                          \
               made = IS_SHIFT(type) ? (type)(x >> ((wide)y & (8 * sizeof(type) - 1))) : x < 0 ? (type)-1 : 0)
SHIFTS(i8, int8_t, uint32_t)
SHIFTS(i16, int16_t, uint32_t)
SHIFTS(i32, int32_t, uint32_t)
SHIFTS(i64, int64_t, uint64_t)
SHIFTS(u8, uint8_t, uint32_t)

/* Three */

FLOATS(FORMULA_OF, addcdiv, 3, made = x + (y * a) / z)
/* Products are rounded before they are added to, so that one kernel has the bits of several. */
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
REALS(FORMULA_OF, add_scaled, 2, made = x + (y * a))
REALS(FORMULA_OF, addcmul, 3, made = x + ((y * a) * z))
/* Slopes: x is the gradient, y the result, or of leaky_relu what that was of. */
FLOATS(FORMULA_OF, relu_backward, 2, made = y <= 0 ? 0 : x)
FLOATS(FORMULA_OF, leaky_relu_backward, 2, made = y > 0 ? x : x * a)
FLOATS(FORMULA_OF, tanh_backward, 2, made = x * (1 - (y * y)))
FLOATS(FORMULA_OF, sigmoid_backward, 2, made = x * ((1 - y) * y))
FLOATS(FORMULA_OF, hardsigmoid_backward, 2, made = 1; made = x * (made / 6); made = (y > -3) & (y < 3) ? made : 0)
FLOATS(FORMULA_OF, hardswish_backward, 2, made = x * ((y / 3) + 0.5f); made = y < 3 ? made : x; made = y <= -3 ? 0 : made)
/* From whichever end is nearer, so that both come out exactly. */
FLOATS(FORMULA_OF, lerp, 3, made = z < 0.5f && z > -0.5f ? x + (z * (y - x)) : y - ((y - x) * (1 - z)))
FLOATS(FORMULA_OF, lerp_near, 2, made = x + (a * (y - x)))
FLOATS(FORMULA_OF, lerp_far, 2, made = y - ((y - x) * a))
#if !defined(__clang__)
#pragma GCC pop_options
#endif

/* Sixteen sums beside one another, in double. */
#define SQUARES(name, type)                                                                                   \
    static double name(const void *from, ptrdiff_t count) {                                                   \
        const type *x = from;                                                                                 \
        double lanes[16] = {0}, all = 0;                                                                      \
        ptrdiff_t i = 0;                                                                                      \
        for (; i + 16 <= count; i += 16)                                                                      \
            for (int k = 0; k < 16; k++)                                                                      \
                lanes[k] += (double)x[i + k] * x[i + k];                                                      \
        for (; i < count; i++)                                                                                \
            lanes[0] += (double)x[i] * x[i];                                                                  \
        for (int k = 0; k < 16; k++)                                                                          \
            all += lanes[k];                                                                                  \
        return all;                                                                                           \
    }
SQUARES(squares_f32, float)
SQUARES(squares_f64, double)

/* Mantissa and exponent; a denormal is made a normal number first. */
#define PARTS(name, type, uint, int_of, bits_of, real_of, digits, bias)                                        \
    static void name(const void *from, void *to, int32_t *exponent, ptrdiff_t count) {                        \
        const type *xs = from;                                                                                \
        type *out = to;                                                                                       \
        const uint mask = ((uint)2 * bias + 3) << digits;                                                     \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                                   \
            type x = xs[i];                                                                                   \
            uint bits = bits_of(x);                                                                           \
            bool raised = !(bits & mask);                                                                     \
            bits = raised ? bits_of(x * (type)18014398509481984.0) : bits; /* 2^54 */                         \
            int_of found = (int_of)((bits & mask) >> digits) - bias - (raised ? 54 : 0);                        \
            bool plain = x != 0 && (bits & mask) != mask;                                                     \
            out[i] = plain ? real_of((bits & ~mask) | (uint)bias << digits) : x;                              \
            exponent[i] = plain ? (int32_t)found : 0;                                                         \
        }                                                                                                     \
    }
PARTS(parts_f32, float, uint32_t, int32_t, bits_f32, real_f32, 23, 126)
PARTS(parts_f64, double, uint64_t, int64_t, bits_f64, real_f64, 52, 1022)

#define PAIRS(suffix, type)                                                                                   \
    static void pairs_##suffix(const void *first, const void *second, void *made, ptrdiff_t count) {          \
        const type *x = first, *y = second;                                                                   \
        type *out = made;                                                                                     \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                                   \
            out[2 * i] = x[i];                                                                                \
            out[2 * i + 1] = y[i];                                                                            \
        }                                                                                                     \
    }
PAIRS(f32, float)
PAIRS(f64, double)

#define FLOAT_ENTRIES(name) [FORMULA_##name] = {[TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64},
#define ALL_ENTRIES(name)                                                                                     \
    [FORMULA_##name] = {[TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64, [TYPE_BF16] = name##_bf16, [TYPE_F16] = name##_f16},
#define REAL_ENTRIES(name, ...)                                                                               \
    [FORMULA_##name] = {[TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64, [TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16, \
                        [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8, __VA_ARGS__},
#define SINGLE_ENTRY(name) [FORMULA_##name] = {[TYPE_F32] = name##_f32},
#define DOUBLE_ENTRY(name) [FORMULA_##name] = {[TYPE_F64] = name##_f64},
#define INTEGER_ENTRIES(name)                                                                                 \
    [FORMULA_##name] = {[TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16, [TYPE_I32] = name##_i32,              \
                        [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8},

const formula_loops ISA(formula_loops) = {
    .of = {FLOAT_ENTRIES(hardswish) FLOAT_ENTRIES(hardsigmoid) FLOAT_ENTRIES(hardshrink) FLOAT_ENTRIES(softshrink) REAL_ENTRIES(threshold)
           FLOAT_ENTRIES(nan_to_num) FLOAT_ENTRIES(nan_to_num_kept) ALL_ENTRIES(logit) SINGLE_ENTRY(atan) SINGLE_ENTRY(asin)
           SINGLE_ENTRY(acos) DOUBLE_ENTRY(sin) DOUBLE_ENTRY(cos) SINGLE_ENTRY(tan) SINGLE_ENTRY(atanh) SINGLE_ENTRY(asinh) SINGLE_ENTRY(acosh) SINGLE_ENTRY(sinh) SINGLE_ENTRY(cosh)
           SINGLE_ENTRY(exp2) SINGLE_ENTRY(log2) SINGLE_ENTRY(log10) SINGLE_ENTRY(atan2) SINGLE_ENTRY(entr) FLOAT_ENTRIES(copysign) FLOAT_ENTRIES(ldexp) FLOAT_ENTRIES(fmax) FLOAT_ENTRIES(fmin) 
           REAL_ENTRIES(heaviside, [TYPE_BOOL] = heaviside_u8)
           ALL_ENTRIES(xlogy) ALL_ENTRIES(xlog1py) INTEGER_ENTRIES(gcd) INTEGER_ENTRIES(lcm)
           INTEGER_ENTRIES(bitwise_left_shift) INTEGER_ENTRIES(bitwise_right_shift)
           REAL_ENTRIES(add_scaled) FLOAT_ENTRIES(addcdiv) REAL_ENTRIES(addcmul) FLOAT_ENTRIES(lerp) FLOAT_ENTRIES(lerp_near) FLOAT_ENTRIES(lerp_far)
           FLOAT_ENTRIES(frac) FLOAT_ENTRIES(lgamma) SINGLE_ENTRY(digamma) DOUBLE_ENTRY(digamma_left) FLOAT_ENTRIES(trigamma) FLOAT_ENTRIES(relu_backward) FLOAT_ENTRIES(leaky_relu_backward)
           FLOAT_ENTRIES(hardsigmoid_backward) FLOAT_ENTRIES(hardswish_backward)
           FLOAT_ENTRIES(tanh_backward) FLOAT_ENTRIES(sigmoid_backward) FLOAT_ENTRIES(sinc) FLOAT_ENTRIES(spherical_bessel_j0) SINGLE_ENTRY(bessel_j0)
           SINGLE_ENTRY(bessel_j1) SINGLE_ENTRY(bessel_y0) SINGLE_ENTRY(bessel_y1) FLOAT_ENTRIES(airy_ai)
           SINGLE_ENTRY(modified_bessel_k0) SINGLE_ENTRY(modified_bessel_k1) SINGLE_ENTRY(scaled_modified_bessel_k0)
           SINGLE_ENTRY(scaled_modified_bessel_k1) SINGLE_ENTRY(igamma) SINGLE_ENTRY(igammac) SINGLE_ENTRY(zeta) SINGLE_ENTRY(polygamma)
           SINGLE_ENTRY(erfcx) SINGLE_ENTRY(log_ndtr) SINGLE_ENTRY(ndtri)},
    .squares = {squares_f32, squares_f64},
    .pairs = {pairs_f32, pairs_f64},
    .parts = {parts_f32, parts_f64},
};
