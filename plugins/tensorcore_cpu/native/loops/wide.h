/* Functions of sixteen floats at a time, for AVX-512: where functions.h divides or takes a power of two apart, instructions
   of this set do it. What they give beside NaN, infinities and denormals is what functions.h gives. */
#ifndef TENSORCORE_NATIVE_WIDE_H
#define TENSORCORE_NATIVE_WIDE_H

#include "functions.h"
#include "loop.h"

#ifdef __AVX512F__
#include <immintrin.h>

#define EACH(x) _mm512_set1_ps(x)

/* Horner's rule, the highest power first. */
ALWAYS_INLINE __m512 wide_series(__m512 x, const float *factors, int count) {
    __m512 made = EACH(factors[0]);
#pragma GCC unroll 16
    for (int i = 1; i < count; i++)
        made = _mm512_fmadd_ps(made, x, EACH(factors[i]));
    return made;
}
#define WIDE_SERIES(x, ...) wide_series(x, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

ALWAYS_INLINE __m512 exp_wide(__m512 x) {
    /* The second operand is the result where one is NaN. */
    x = _mm512_max_ps(EACH(-104), _mm512_min_ps(EACH(89), x));
    __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, EACH(1.44269504088896340736f), EACH(MAGIC_F32)), EACH(MAGIC_F32));
    __m512 r = _mm512_fnmadd_ps(n, EACH(0.693145751953125f), x);
    r = _mm512_fnmadd_ps(n, EACH(1.42860682030941723e-6f), r);
    __m512 made = WIDE_SERIES(r, 0.0013926250831497612f, 0.0083632328836826182f, 0.041666554212984150f,
                              0.16666576666119928f, 0.5f, 1, 1);
    return _mm512_scalef_ps(made, n);
}

/* With x = 2^n (1 + f), f from -1/4 to 1/2: n ln 2 + f - f^2 / 2 + f^3 times a series in f. Of a negative number the
   mantissa is NaN, of 0 and infinity the exponent is what the logarithm is. */
ALWAYS_INLINE __m512 log_wide(__m512 x) {
    __m512 mantissa = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    __m512 n = _mm512_sub_ps(_mm512_getexp_ps(x), _mm512_getexp_ps(mantissa));
    __m512 f = _mm512_sub_ps(mantissa, EACH(1)), square = _mm512_mul_ps(f, f);
    __m512 series = WIDE_SERIES(f, 0.042871978133916855f, -0.09561339765787125f, 0.11680682003498077f,
                                -0.12639310956001282f, 0.14268305897712708f, -0.16660816967487335f,
                                0.20000140368938446f, -0.25000056624412537f, 0.3333333432674408f, -0.5f);
    __m512 small = _mm512_fmadd_ps(n, EACH(1.42860682030941723e-6f), _mm512_mul_ps(square, series));
    return _mm512_fmadd_ps(n, EACH(0.693145751953125f), _mm512_add_ps(f, small));
}

/* Rounded to the nearest as the instruction rounds, which takes twice as long: a test counts all floats of two
   binades. Denormals would lose digits on the way; 0, infinity, negative numbers and NaN have no inverse root to begin with. */
ALWAYS_INLINE __m512 sqrt_wide(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), least = _mm512_set1_epi32(0x0c800000); /* 2^-102: its last place is normal */
    if (_mm512_cmpge_epu32_mask(_mm512_sub_epi32(bits, least), _mm512_set1_epi32(0x7f800000 - 0x0c800000)))
        return _mm512_sqrt_ps(x);
    __m512 inverse = _mm512_rsqrt14_ps(x), root = _mm512_mul_ps(x, inverse), half = _mm512_mul_ps(inverse, EACH(0.5f));
    __m512 wrong = _mm512_fnmadd_ps(root, half, EACH(0.5f));
    root = _mm512_fmadd_ps(root, wrong, root);
    half = _mm512_fmadd_ps(half, wrong, half);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(root, root, x), half, root);
}

/* As gelu_share_f32, with 1 / (y + 3) by a step of Newton's from 14 bits. */
ALWAYS_INLINE __m512 gelu_wide(__m512 x) {
    const __m512 sign = EACH(-0.0f);
    __m512 y = _mm512_min_ps(EACH(1e30f), _mm512_add_ps(_mm512_andnot_ps(sign, x), EACH(3))), u = _mm512_rcp14_ps(y);
    u = _mm512_fmadd_ps(_mm512_fnmadd_ps(y, u, EACH(1)), u, u);
    __m512 series = WIDE_SERIES(u, -497.824033231f, 927.564951563f, -644.001873172f, 177.912247068f, -16.9220121137f,
                                10.2350496735f, 2.9943214473f, 1.20391940991f, 0.398833890853f);
    __m512 power = _mm512_mul_ps(_mm512_mul_ps(x, x), EACH(-0.72134752044448170368f));
    power = _mm512_max_ps(EACH(-200), power); /* 2 to which is 0 */
    __m512 n = _mm512_sub_ps(_mm512_add_ps(power, EACH(MAGIC_F32)), EACH(MAGIC_F32)), r = _mm512_sub_ps(power, n);
    __m512 bell = WIDE_SERIES(r, 0.00133908633647f, 0.00967603191832f, 0.0555035711422f, 0.240221074853f, 0.693147188026f,
                              1.00000007545f);
    __m512 tail = _mm512_mul_ps(_mm512_scalef_ps(bell, n), _mm512_mul_ps(u, series));
    __mmask16 right = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm512_mul_ps(x, _mm512_mask_sub_ps(tail, right, EACH(1), tail));
}

/* A loop of the elementwise family over `function` of sixteen floats; what does not lie in a row passes through one vector. */
#define WIDE_LOOP(name, function)                                                                             \
    static void name(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                            \
        if (steps[0] == 4 && steps[1] == 4) {                                                                 \
            const float *x = (const float *)data[0];                                                          \
            float *made = (float *)data[1];                                                                   \
            ptrdiff_t i = 0;                                                                                  \
            for (; i + 16 <= count; i += 16)                                                                  \
                _mm512_storeu_ps(made + i, function(_mm512_loadu_ps(x + i)));                                 \
            if (i < count) {                                                                                  \
                const __mmask16 rest = (__mmask16)((1u << (count - i)) - 1);                                  \
                _mm512_mask_storeu_ps(made + i, rest, function(_mm512_mask_loadu_ps(EACH(1), rest, x + i)));  \
            }                                                                                                 \
            return;                                                                                           \
        }                                                                                                     \
        for (ptrdiff_t begin = 0; begin < count; begin += 16) {                                               \
            float space[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};                               \
            const ptrdiff_t piece = count - begin < 16 ? count - begin : 16;                                  \
            for (ptrdiff_t i = 0; i < piece; i++)                                                             \
                space[i] = *(const float *)(data[0] + (begin + i) * steps[0]);                                \
            _mm512_storeu_ps(space, function(_mm512_loadu_ps(space)));                                        \
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

ALWAYS_INLINE void exp_less_f32(const float *x, float less, float *out, ptrdiff_t count) {
    ptrdiff_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(out + i, exp_wide(_mm512_sub_ps(_mm512_loadu_ps(x + i), EACH(less))));
    if (i < count) {
        const __mmask16 rest = (__mmask16)((1u << (count - i)) - 1);
        _mm512_mask_storeu_ps(out + i, rest, exp_wide(_mm512_sub_ps(_mm512_maskz_loadu_ps(rest, x + i), EACH(less))));
    }
#else
    INDEPENDENT for (; i < count; i++)
        out[i] = exp__f32(x[i] - less);
#endif
}

#endif
