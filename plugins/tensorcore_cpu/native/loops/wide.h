/* Functions of sixteen floats at a time, for AVX-512: where functions.h divides or takes a power of two apart, instructions
   of this set do it. What they give beside NaN, infinities and denormals is what functions.h gives.

   Each works on a few vectors in place, step by step for all of them: a step waits for the one before, and the processor
   does not look far enough ahead to find the next vector by itself. How many is a constant where they are called. */
#ifndef TENSORCORE_NATIVE_WIDE_H
#define TENSORCORE_NATIVE_WIDE_H

#include "functions.h"
#include "loop.h"

#ifdef __AVX512F__
#include <immintrin.h>

enum { WIDE_FEW = 4, WIDE_MOST = 8 };

#define EACH(x) _mm512_set1_ps(x)
#define WIDE_ALL _Pragma("GCC unroll 8") for (int k = 0; k < count; k++)

/* Horner's rule, the highest power first. */
ALWAYS_INLINE void wide_series(const __m512 *x, __m512 *made, int count, const float *factors, int terms) {
    WIDE_ALL made[k] = EACH(factors[0]);
#pragma GCC unroll 16
    for (int i = 1; i < terms; i++)
        WIDE_ALL made[k] = _mm512_fmadd_ps(made[k], x[k], EACH(factors[i]));
}
#define WIDE_SERIES(x, made, ...)                                                                             \
    wide_series(x, made, count, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

/* 2^(i / 16), and what rounding it to a float left out. */
static const float sixteenth_power[16] = {
    1.0f, 1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f, 1.29683959f, 1.35425556f,
    1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f, 1.68179286f, 1.75625217f, 1.8340081f, 1.91520655f};
static const float sixteenth_rest[16] = {
    0.0f, 4.8334702e-8f, -1.307754e-8f, 5.3862223e-8f, 3.7976353e-8f, 4.4968381e-8f, -4.0189995e-8f, -1.0123349e-8f,
    2.4203235e-8f, -4.5008989e-8f, 8.0709048e-9f, 9.8362172e-9f, -2.4755327e-8f, -9.2357704e-9f, -1.1239278e-8f, 9.8453281e-9f};

/* Of a table of 32 the one whose number the last five bits are. Zen 4 makes it where it multiplies, one of 16 elsewhere. */
#define WIDE_OF_32(table, x)                                                                                  \
    _mm512_permutex2var_ps(_mm512_loadu_ps(table), _mm512_castps_si512(x), _mm512_loadu_ps((table) + 16))

/* The one closer to 0; the number, where the other is NaN. */
#define WIDE_SMALL(r) _mm512_range_ps(r, EACH(0.03f), 2)

/* e^x: x = n ln 2 + r, where n is a number of sixteenths, which adding `magic` rounds to and whose last four bits
   choose a factor. The exponent is made of n, so that infinities and NaN come from there; r, which they leave without
   meaning, need only be small. What the factor's rounding left out comes in where it is multiplied by r, in the same
   instruction. Exact to 0.56 units in the last place, and to 0.77 where that is a denormal's. */
ALWAYS_INLINE void exp_wide(__m512 *x, int count) {
    const __m512 magic = EACH(MAGIC_F32 / 16), factors = _mm512_loadu_ps(sixteenth_power), rests = _mm512_loadu_ps(sixteenth_rest);
    __m512 n[WIDE_MOST], r[WIDE_MOST], factor[WIDE_MOST], part[WIDE_MOST];
    WIDE_ALL r[k] = _mm512_fmadd_ps(x[k], EACH(1.44269504088896340736f), magic);
    WIDE_ALL factor[k] = _mm512_permutexvar_ps(_mm512_castps_si512(r[k]), factors);
    WIDE_ALL part[k] = _mm512_permutexvar_ps(_mm512_castps_si512(r[k]), rests);
    WIDE_ALL n[k] = _mm512_sub_ps(r[k], magic);
    WIDE_ALL r[k] = _mm512_fnmadd_ps(n[k], EACH(LN2_HIGH_F32), x[k]);
    WIDE_ALL r[k] = WIDE_SMALL(_mm512_fnmadd_ps(n[k], EACH(LN2_LOW_F32), r[k]));
    WIDE_ALL part[k] = _mm512_fmadd_ps(factor[k], r[k], part[k]);
    WIDE_SERIES(r, x, 0.16667047f, 0.50001626f, 1);
    WIDE_ALL x[k] = _mm512_scalef_ps(_mm512_fmadd_ps(part[k], x[k], factor[k]), n[k]);
}

/* 2^(i / 32) times 1.0000066757, with which the largest of their roundings is 3.4e-8 of its number and not 5.6e-8. */
static const float power_of_32[32] = {
    1.0000067f, 1.021904f, 1.0442808f, 1.0671475f, 1.090515f, 1.1143942f, 1.1387962f, 1.1637326f,
    1.1892151f, 1.2152555f, 1.2418661f, 1.2690594f, 1.2968482f, 1.3252455f, 1.3542646f, 1.3839191f,
    1.414223f, 1.4451904f, 1.476836f, 1.5091745f, 1.5422211f, 1.5759914f, 1.610501f, 1.6457665f,
    1.6818041f, 1.7186308f, 1.7562639f, 1.794721f, 1.8340204f, 1.8741802f, 1.9152193f, 1.9571571f};

/* 1 / (1 + e^-x) as less / all. In thirty-seconds of ln 2, e^-x is scale * (c + r) / (d - r), so that one division serves
   both and nothing of a series is left; with these c and d, whose quotient takes the table's factor out again, that is
   e^r to 2.7e-8. To 3.3 units in the last place. */
ALWAYS_INLINE void wide_logistic(const __m512 *x, __m512 *less, __m512 *all, int count) {
    const __m512 magic = EACH(MAGIC_F32 / 32);
    __m512 n[WIDE_MOST], r[WIDE_MOST], scale[WIDE_MOST];
    WIDE_ALL r[k] = _mm512_fmadd_ps(x[k], EACH(-1.44269504088896340736f), magic);
    WIDE_ALL scale[k] = WIDE_OF_32(power_of_32, r[k]);
    WIDE_ALL n[k] = _mm512_sub_ps(r[k], magic);
    WIDE_ALL r[k] = _mm512_fnmsub_ps(n[k], EACH(LN2_HIGH_F32), x[k]);
    WIDE_ALL scale[k] = _mm512_scalef_ps(scale[k], n[k]);
    WIDE_ALL r[k] = WIDE_SMALL(_mm512_fnmadd_ps(n[k], EACH(LN2_LOW_F32), r[k]));
    WIDE_ALL less[k] = _mm512_sub_ps(EACH(2.0000215f), r[k]);
    WIDE_ALL all[k] = _mm512_fmadd_ps(scale[k], _mm512_add_ps(EACH(2.000008f), r[k]), less[k]);
}

ALWAYS_INLINE void sigmoid_wide(__m512 *x, int count) {
    __m512 less[WIDE_MOST], all[WIDE_MOST];
    wide_logistic(x, less, all, count);
    WIDE_ALL x[k] = _mm512_div_ps(less[k], all[k]);
}

ALWAYS_INLINE void silu_wide(__m512 *x, int count) {
    __m512 less[WIDE_MOST], all[WIDE_MOST];
    wide_logistic(x, less, all, count);
    WIDE_ALL x[k] = _mm512_mul_ps(x[k], _mm512_div_ps(less[k], all[k]));
}

/* As in functions.h. */
ALWAYS_INLINE void gelu_tanh_wide(__m512 *x, int count) {
    __m512 inner[WIDE_MOST], less[WIDE_MOST], all[WIDE_MOST];
    const __m512 twice = EACH(2 * 0.79788456080286535588f), cubic = EACH(2 * 0.79788456080286535588f * 0.044715f);
    WIDE_ALL inner[k] = _mm512_mul_ps(x[k], _mm512_fmadd_ps(cubic, _mm512_mul_ps(x[k], x[k]), twice));
    wide_logistic(inner, less, all, count);
    WIDE_ALL x[k] = _mm512_mul_ps(x[k], _mm512_div_ps(less[k], all[k]));
}

/* tanh(i / 2) */
static const float tanh_of_halves[32] = {
    0.0f, 0.46211717f, 0.7615942f, 0.90514827f, 0.9640276f, 0.9866143f, 0.9950548f, 0.9981779f,
    0.9993293f, 0.99975324f, 0.9999092f, 0.9999666f, 0.9999877f, 0.99999547f, 0.99999833f, 0.9999994f,
    0.99999976f, 0.99999994f, 1.0f, 1.0f};

/* tanh(c + u) = (q tanh c + u) / (q + u tanh c), c the nearest half, q = u / tanh u a series of u^2 exact to 2e-8. From 8.75
   on it is 1. All instructions are 14, of which a Zen 4 makes two of 512 bits a cycle and one that multiplies. To 2.8 units
   in the last place. */
ALWAYS_INLINE void tanh_wide(__m512 *x, int count) {
    const __m512 sign = EACH(-0.0f), magic = EACH(MAGIC_F32 / 2);
    __m512 u[WIDE_MOST], at[WIDE_MOST], q[WIDE_MOST];
    /* The second operand is the result where one is NaN. */
    WIDE_ALL u[k] = _mm512_min_ps(EACH(9.25f), _mm512_andnot_ps(sign, x[k]));
    WIDE_ALL at[k] = _mm512_add_ps(u[k], magic);
    WIDE_ALL u[k] = _mm512_sub_ps(u[k], _mm512_sub_ps(at[k], magic));
    WIDE_ALL at[k] = WIDE_OF_32(tanh_of_halves, at[k]);
    WIDE_ALL q[k] = _mm512_mul_ps(u[k], u[k]);
    WIDE_ALL q[k] = _mm512_fmadd_ps(_mm512_fmadd_ps(q[k], EACH(-0.02203937f), EACH(0.33332981f)), q[k], EACH(1));
    WIDE_ALL u[k] = _mm512_div_ps(_mm512_fmadd_ps(at[k], q[k], u[k]), _mm512_fmadd_ps(at[k], u[k], q[k]));
    WIDE_ALL x[k] = _mm512_or_ps(u[k], _mm512_and_ps(sign, x[k]));
}

/* With x = 2^n (1 + f), f from -1/4 to 1/2: n ln 2 + f - f^2 / 2 + f^3 times a series in f. Of a negative number the
   mantissa is NaN, of 0 and infinity the exponent is what the logarithm is. */
ALWAYS_INLINE void log_wide(__m512 *x, int count) {
    __m512 n[WIDE_MOST], f[WIDE_MOST], series[WIDE_MOST];
    WIDE_ALL f[k] = _mm512_getmant_ps(x[k], _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    WIDE_ALL n[k] = _mm512_sub_ps(_mm512_getexp_ps(x[k]), _mm512_getexp_ps(f[k]));
    WIDE_ALL f[k] = _mm512_sub_ps(f[k], EACH(1));
    WIDE_SERIES(f, series, 0.042871978133916855f, -0.09561339765787125f, 0.11680682003498077f, -0.12639310956001282f,
                0.14268305897712708f, -0.16660816967487335f, 0.20000140368938446f, -0.25000056624412537f,
                0.3333333432674408f, -0.5f);
    WIDE_ALL series[k] = _mm512_mul_ps(_mm512_mul_ps(f[k], f[k]), series[k]);
    WIDE_ALL series[k] = _mm512_fmadd_ps(n[k], EACH(LN2_LOW_F32), series[k]);
    WIDE_ALL x[k] = _mm512_fmadd_ps(n[k], EACH(LN2_HIGH_F32), _mm512_add_ps(f[k], series[k]));
}

/* Rounded to the nearest as the instruction rounds, which takes twice as long: a test counts all floats of two
   binades. Denormals would lose digits on the way; 0, infinity, negative numbers and NaN have no inverse root to begin with. */
ALWAYS_INLINE __m512 sqrt_of_vector(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), least = _mm512_set1_epi32(0x0c800000); /* 2^-102: its last place is normal */
    if (_mm512_cmpge_epu32_mask(_mm512_sub_epi32(bits, least), _mm512_set1_epi32(0x7f800000 - 0x0c800000)))
        return _mm512_sqrt_ps(x);
    __m512 inverse = _mm512_rsqrt14_ps(x), root = _mm512_mul_ps(x, inverse), half = _mm512_mul_ps(inverse, EACH(0.5f));
    __m512 wrong = _mm512_fnmadd_ps(root, half, EACH(0.5f));
    root = _mm512_fmadd_ps(root, wrong, root);
    half = _mm512_fmadd_ps(half, wrong, half);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(root, root, x), half, root);
}

/* One vector in four by the instruction: the unit for it works beside those that multiply. */
ALWAYS_INLINE void sqrt_wide(__m512 *x, int count) {
    WIDE_ALL x[k] = k % 4 ? sqrt_of_vector(x[k]) : _mm512_sqrt_ps(x[k]);
}

/* As gelu_share_f32, with 1 / (y + 3) by a step of Newton's from 14 bits. */
ALWAYS_INLINE void gelu_wide(__m512 *x, int count) {
    __m512 y[WIDE_MOST], u[WIDE_MOST], n[WIDE_MOST], tail[WIDE_MOST];
    WIDE_ALL y[k] = _mm512_min_ps(EACH(1e30f), _mm512_add_ps(_mm512_andnot_ps(EACH(-0.0f), x[k]), EACH(3)));
    WIDE_ALL u[k] = _mm512_rcp14_ps(y[k]);
    WIDE_ALL u[k] = _mm512_fmadd_ps(_mm512_fnmadd_ps(y[k], u[k], EACH(1)), u[k], u[k]);
    WIDE_SERIES(u, tail, -497.824033231f, 927.564951563f, -644.001873172f, 177.912247068f, -16.9220121137f, 10.2350496735f,
                2.9943214473f, 1.20391940991f, 0.398833890853f);
    WIDE_ALL tail[k] = _mm512_mul_ps(u[k], tail[k]);
    WIDE_ALL y[k] = _mm512_mul_ps(_mm512_mul_ps(x[k], x[k]), EACH(-0.72134752044448170368f));
    WIDE_ALL y[k] = _mm512_max_ps(EACH(-200), y[k]); /* 2 to which is 0 */
    WIDE_ALL n[k] = _mm512_sub_ps(_mm512_add_ps(y[k], EACH(MAGIC_F32)), EACH(MAGIC_F32));
    WIDE_ALL y[k] = _mm512_sub_ps(y[k], n[k]);
    WIDE_SERIES(y, u, 0.00133908633647f, 0.00967603191832f, 0.0555035711422f, 0.240221074853f, 0.693147188026f,
                1.00000007545f);
    WIDE_ALL tail[k] = _mm512_mul_ps(_mm512_scalef_ps(u[k], n[k]), tail[k]);
    WIDE_ALL {
        __mmask16 right = _mm512_cmp_ps_mask(x[k], _mm512_setzero_ps(), _CMP_GT_OQ);
        x[k] = _mm512_mul_ps(x[k], _mm512_mask_sub_ps(tail[k], right, EACH(1), tail[k]));
    }
}

/* Of one vector. */
#define WIDE_ONE(function)                                                                                    \
    ALWAYS_INLINE __m512 function##_one(__m512 x) {                                                           \
        function(&x, 1);                                                                                      \
        return x;                                                                                             \
    }
WIDE_ONE(exp_wide)
WIDE_ONE(log_wide)

/* A loop of the elementwise family over `function`; what does not lie in a row passes through one vector. */
#define WIDE_LOOP(name, function)                                                                             \
    static void name(char *const *data, const ptrdiff_t *steps, ptrdiff_t size) {                             \
        if (steps[0] == 4 && steps[1] == 4) {                                                                 \
            const float *from = (const float *)data[0];                                                       \
            float *made = (float *)data[1];                                                                   \
            const int count = WIDE_FEW;                                                                       \
            __m512 x[WIDE_FEW];                                                                               \
            ptrdiff_t i = 0;                                                                                  \
            for (; i + 16 * count <= size; i += 16 * count) {                                                 \
                WIDE_ALL x[k] = _mm512_loadu_ps(from + i + 16 * k);                                           \
                function(x, count);                                                                           \
                WIDE_ALL _mm512_storeu_ps(made + i + 16 * k, x[k]);                                           \
            }                                                                                                 \
            for (; i < size; i += 16) {                                                                       \
                const __mmask16 rest = size - i < 16 ? (__mmask16)((1u << (size - i)) - 1) : (__mmask16)-1;   \
                x[0] = _mm512_mask_loadu_ps(EACH(1), rest, from + i);                                         \
                function(x, 1);                                                                               \
                _mm512_mask_storeu_ps(made + i, rest, x[0]);                                                  \
            }                                                                                                 \
            return;                                                                                           \
        }                                                                                                     \
        for (ptrdiff_t begin = 0; begin < size; begin += 16) {                                                \
            float space[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};                               \
            const ptrdiff_t piece = size - begin < 16 ? size - begin : 16;                                    \
            for (ptrdiff_t i = 0; i < piece; i++)                                                             \
                space[i] = *(const float *)(data[0] + (begin + i) * steps[0]);                                \
            __m512 x = _mm512_loadu_ps(space);                                                                \
            function(&x, 1);                                                                                  \
            _mm512_storeu_ps(space, x);                                                                       \
            for (ptrdiff_t i = 0; i < piece; i++)                                                             \
                *(float *)(data[1] + (begin + i) * steps[1]) = space[i];                                      \
        }                                                                                                     \
    }

#endif

/* out[i] = e^(x[i] - less); out may be x. */
ALWAYS_INLINE void exp_less_f64(const double *x, double less, double *out, ptrdiff_t count) {
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
        out[i] = exp__f64(x[i] - less);
}

ALWAYS_INLINE void exp_less_f32(const float *x, float less, float *out, ptrdiff_t size) {
    ptrdiff_t i = 0;
#ifdef __AVX512F__
    __m512 y[WIDE_FEW];
    for (; i + 16 * WIDE_FEW <= size; i += 16 * WIDE_FEW) {
        const int count = WIDE_FEW;
        WIDE_ALL y[k] = _mm512_sub_ps(_mm512_loadu_ps(x + i + 16 * k), EACH(less));
        exp_wide(y, count);
        WIDE_ALL _mm512_storeu_ps(out + i + 16 * k, y[k]);
    }
    for (; i < size; i += 16) {
        const __mmask16 rest = size - i < 16 ? (__mmask16)((1u << (size - i)) - 1) : (__mmask16)-1;
        _mm512_mask_storeu_ps(out + i, rest, exp_wide_one(_mm512_sub_ps(_mm512_maskz_loadu_ps(rest, x + i), EACH(less))));
    }
#else
    INDEPENDENT for (; i < size; i++)
        out[i] = exp__f32(x[i] - less);
#endif
}

#endif
