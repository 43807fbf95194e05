/* x to the power of y, of floats. With AVX-512 it is 2^(y log2 x), in double. Elsewhere NumPy's loop is fast where x is above 0 and the
   result is no corner; where not, it takes 20 to 400 ns an element, and takes along what stands beside. */
#ifndef TENSORCORE_NATIVE_POWER_H
#define TENSORCORE_NATIVE_POWER_H

#include "functions.h"
#include "loop.h"
#include "wide_double.h"

#include "../elementwise.h"

#include <float.h>
#include <math.h>
#include <string.h>

#ifdef __AVX512F__
/* The size of eight powers, off by at most 1e-8 of itself before it is a float: whole powers that a float holds come out exactly. */
ALWAYS_INLINE __m256 size_of_powers(__m256 base, __m256 y) {
    __m512d power = _mm512_mul_pd(_mm512_cvtps_pd(y), log_to_base(_mm512_cvtps_pd(base), log2_of_16, 1, 1.44269504088896340736));
    return _mm512_cvtpd_ps(power_of_two_wide(power));
}

/* With the sign and the corners of IEEE 754. */
ALWAYS_INLINE __m512 power_of_vector(__m512 x, __m512 y) {
    const __m512 sign = _mm512_set1_ps(-0.0f), one = _mm512_set1_ps(1), base = _mm512_andnot_ps(sign, x);
    __m256 low = size_of_powers(_mm512_castps512_ps256(base), _mm512_castps512_ps256(y));
    __m256 high = size_of_powers(_mm512_extractf32x8_ps(base, 1), _mm512_extractf32x8_ps(y, 1));
    __m512 made = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    const __mmask16 none = _mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_EQ_OQ), ones = _mm512_cmp_ps_mask(base, one, _CMP_EQ_OQ);
    made = _mm512_mask_mov_ps(made, ones & _mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), one);
    const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
    if (negative) {
        const __m512 half = _mm512_mul_ps(y, _mm512_set1_ps(0.5f));
        const __mmask16 whole = _mm512_cmp_ps_mask(_mm512_roundscale_ps(y, _MM_FROUND_FLOOR), y, _CMP_EQ_OQ);
        const __mmask16 odd = whole & _mm512_cmp_ps_mask(_mm512_roundscale_ps(half, _MM_FROUND_FLOOR), half, _CMP_NEQ_OQ);
        const __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ) &
                                _mm512_cmp_ps_mask(base, _mm512_set1_ps(INFINITY), _CMP_LT_OQ);
        made = _mm512_mask_or_ps(made, negative & odd, made, sign);
        made = _mm512_mask_mov_ps(made, below & ~whole, _mm512_set1_ps(NAN));
    }
    return _mm512_mask_mov_ps(made, none | _mm512_cmp_ps_mask(x, one, _CMP_EQ_OQ), one);
}

static void power_of_row(const float *x, const float *y, float *made, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i += 16) {
        const __mmask16 there = count - i < 16 ? (__mmask16)((1u << (count - i)) - 1) : (__mmask16)-1;
        const __m512 power = power_of_vector(_mm512_maskz_loadu_ps(there, x + i), _mm512_maskz_loadu_ps(there, y + i));
        _mm512_mask_storeu_ps(made + i, there, power);
    }
}
#else
/* Whether the size of an element is left to the formula below: by itself, so that its bits do not depend on its neighbours. The
   logarithm is off by less than half of it, and the result between 2^-125 and 2^125. */
ALWAYS_INLINE bool is_corner(float x, float y) {
    const float base = abs__f32(x), size = abs__f32(y), power = (float)(int32_t)(bits_f32(base) - 0x3f800000u) * 0x1p-23f * size;
    return !((base >= FLT_MIN) & (base <= FLT_MAX) & ((size >= FLT_MIN) | (size == 0)) & (power < 86) & (power > -86));
}

/* In double; powers of e that would be denormal numbers take long, and are 0 as floats. */
ALWAYS_INLINE float size_of_power(float x, float y) {
    const double base = abs__f64(x), power = log__f64(base) * y, least = power < -104 ? -104 : power;
    double size = exp__f64(least > 100 ? 100 : least);
    size = power < -104 ? 0 : size;
    return (float)(((base == 1) & (y == y)) ? 1 : size);
}

/* With the sign and the corners of IEEE 754. */
ALWAYS_INLINE float signed_power(float x, float y, float size) {
    const bool whole = floorf(y) == y, odd = whole & (floorf(0.5f * y) != 0.5f * y);
    const float turned = odd ? signed_as_f32(size, x) : size, made = ((x < 0) & !whole & (x >= -FLT_MAX)) ? NAN : turned;
    return ((y == 0) | (x == 1)) ? 1 : made;
}

static void power_of_row(const float *x, const float *y, float *made, ptrdiff_t count) {
    static const ptrdiff_t dense[3] = {sizeof(float), sizeof(float), sizeof(float)};
    float own[ROW_PIECE], xs[ROW_PIECE], ys[ROW_PIECE];
    int corners = 0, negative = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        corners += is_corner(x[i], y[i]);
        negative += x[i] < 0;
    }
    if (!corners && !negative && numpy_power.loop) {
        char *data[3] = {(char *)x, (char *)y, (char *)made};
        numpy_power.loop(data, &count, dense, numpy_power.beside);
        return;
    }
    if (corners || !numpy_power.loop)
        for (ptrdiff_t i = 0; i < count; i++)
            own[i] = size_of_power(x[i], y[i]);
    if (corners < count && numpy_power.loop) {
        char *data[3] = {(char *)xs, (char *)ys, (char *)xs};
        for (ptrdiff_t i = 0; i < count; i++) {
            const bool corner = is_corner(x[i], y[i]);
            xs[i] = corner ? 1 : abs__f32(x[i]);
            ys[i] = corner ? 1 : y[i];
        }
        numpy_power.loop(data, &count, dense, numpy_power.beside);
        for (ptrdiff_t i = 0; i < count; i++)
            own[i] = is_corner(x[i], y[i]) ? own[i] : xs[i];
    }
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
        made[i] = signed_power(x[i], y[i], own[i]);
}
#endif

static void power_f32(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    loop_of_rows(data, steps, count, power_of_row);
}

#endif
