/* tan, atan, atan2, sinh and cosh of sixteen floats at a time, for AVX-512, in float; to 1.3 units in the last place. */
#ifndef TENSORCORE_NATIVE_WIDE_ANGLES_H
#define TENSORCORE_NATIVE_WIDE_ANGLES_H

#include "wide.h"

#define TAN_MOST 1e5f /* from where on tan is left to the C library */

#ifdef __AVX512F__

/* base + atan(x), |x| up to 1, where `rest` is what rounding the base and x left out. */
ALWAYS_INLINE void wide_turn(__m512 *x, const __m512 *base, const __m512 *rest, int count) {
    __m512 z[WIDE_MOST], series[WIDE_MOST], sum[WIDE_MOST];
    WIDE_ALL z[k] = _mm512_mul_ps(x[k], x[k]);
    WIDE_SERIES(z, series, -0.0017936053f, 0.010914528f, -0.031177694f, 0.057957431f, -0.084034402f, 0.10952182f, -0.14264241f,
                0.19998548f, -0.33333299f);
    WIDE_ALL series[k] = _mm512_fmadd_ps(_mm512_mul_ps(x[k], z[k]), series[k], rest[k]);
    WIDE_ALL sum[k] = _mm512_add_ps(base[k], x[k]);
    WIDE_ALL series[k] = _mm512_add_ps(series[k], _mm512_sub_ps(x[k], _mm512_sub_ps(sum[k], base[k])));
    WIDE_ALL x[k] = _mm512_add_ps(sum[k], series[k]);
}

#define RIGHT_ANGLE 1.57079637f
#define RIGHT_ANGLE_REST -4.37113883e-8f

/* Over 1 it is pi / 2 - atan(1 / x). */
ALWAYS_INLINE void atan_wide(__m512 *x, int count) {
    const __m512 sign = EACH(-0.0f);
    __m512 slope[WIDE_MOST], base[WIDE_MOST], rest[WIDE_MOST];
    WIDE_ALL {
        const __m512 size = _mm512_andnot_ps(sign, x[k]);
        const __mmask16 steep = _mm512_cmp_ps_mask(size, EACH(1), _CMP_GT_OQ);
        slope[k] = _mm512_mask_div_ps(size, steep, EACH(-1), size);
        base[k] = _mm512_maskz_mov_ps(steep, EACH(RIGHT_ANGLE));
        rest[k] = _mm512_maskz_mov_ps(steep, EACH(RIGHT_ANGLE_REST));
    }
    wide_turn(slope, base, rest, count);
    WIDE_ALL x[k] = _mm512_or_ps(slope[k], _mm512_and_ps(sign, x[k]));
}

/* Of the point (x, y): of the lesser over the greater, from the axis that is nearer. */
ALWAYS_INLINE __m512 atan2_of_vector(__m512 y, __m512 x) {
    const __m512 sign = EACH(-0.0f), up = _mm512_andnot_ps(sign, y), across = _mm512_andnot_ps(sign, x);
    const __m512 low = _mm512_min_ps(up, across), high = _mm512_max_ps(up, across);
    __m512 slope = _mm512_div_ps(low, high);
    const __mmask16 back = _mm512_movepi32_mask(_mm512_castps_si512(x)), steep = _mm512_cmp_ps_mask(up, across, _CMP_GT_OQ);
    const __mmask16 even = _mm512_cmp_ps_mask(up, across, _CMP_EQ_OQ); /* two zeros, two infinities */
    const __mmask16 none = _mm512_cmp_ps_mask(high, _mm512_setzero_ps(), _CMP_EQ_OQ);
    slope = _mm512_mask_mov_ps(slope, even, EACH(1));
    slope = _mm512_mask_mov_ps(slope, none, _mm512_setzero_ps());
    /* What rounding the quotient left out, times about 1 / (1 + slope^2). */
    const __mmask16 plain = _mm512_cmp_ps_mask(high, EACH(0x1p-100f), _CMP_GE_OQ) & _mm512_cmp_ps_mask(high, EACH(0x1p100f), _CMP_LE_OQ);
    __m512 left = _mm512_maskz_mul_ps(plain, _mm512_fnmadd_ps(slope, high, low), _mm512_rcp14_ps(high));
    left = _mm512_mul_ps(left, _mm512_fnmadd_ps(_mm512_mul_ps(slope, slope), EACH(0.5f), EACH(1)));
    slope = _mm512_mask_xor_ps(slope, back ^ steep, slope, sign);
    left = _mm512_mask_xor_ps(left, back ^ steep, left, sign);
    const __mmask16 straight = back & ~steep;
    __m512 base = _mm512_mask_mov_ps(_mm512_maskz_mov_ps(steep, EACH(RIGHT_ANGLE)), straight, EACH(2 * RIGHT_ANGLE));
    __m512 rest = _mm512_mask_mov_ps(_mm512_maskz_mov_ps(steep, EACH(RIGHT_ANGLE_REST)), straight, EACH(2 * RIGHT_ANGLE_REST));
    rest = _mm512_add_ps(rest, left);
    wide_turn(&slope, &base, &rest, 1);
    slope = _mm512_mask_mov_ps(slope, _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q), EACH(NAN));
    return _mm512_or_ps(slope, _mm512_and_ps(sign, y));
}

static void atan2_of_row(const float *y, const float *x, float *made, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i += 16) {
        const __mmask16 there = count - i < 16 ? (__mmask16)((1u << (count - i)) - 1) : (__mmask16)-1;
        const __m512 angle = atan2_of_vector(_mm512_maskz_loadu_ps(there, y + i), _mm512_maskz_loadu_ps(there, x + i));
        _mm512_mask_storeu_ps(made + i, there, angle);
    }
}

/* Where tan_wide ends: the C library's, one at a time. */
static __attribute__((noinline)) __m512 tan_of_far(__m512 x, __m512 made, unsigned far) {
    float from[16], to[16];
    _mm512_storeu_ps(from, x);
    _mm512_storeu_ps(to, made);
    for (; far; far &= far - 1)
        to[__builtin_ctz(far)] = tanf(from[__builtin_ctz(far)]);
    return _mm512_loadu_ps(to);
}

/* x = n pi / 2 + r, |r| up to pi / 4, with pi / 2 in three parts: r is right to twice as many digits, and so is its tangent, of
   which every second quarter has the inverse: one step of Newton's from 14 bits, which makes more than a division would. */
ALWAYS_INLINE void tan_wide(__m512 *x, int count) {
    const __m512 magic = EACH(MAGIC_F32), sign = EACH(-0.0f);
    __m512 at[WIDE_MOST], r[WIDE_MOST], low[WIDE_MOST], z[WIDE_MOST], series[WIDE_MOST];
    WIDE_ALL at[k] = _mm512_fmadd_ps(x[k], EACH(0.63661977236758134308f), magic);
    WIDE_ALL {
        const __m512 n = _mm512_sub_ps(at[k], magic), middle = EACH(7.5497901264e-8f), turns = _mm512_mul_ps(n, middle);
        const __m512 first = _mm512_fnmadd_ps(n, EACH(1.5707962513f), x[k]), second = _mm512_sub_ps(first, turns);
        low[k] = _mm512_sub_ps(_mm512_sub_ps(first, second), turns);
        low[k] = _mm512_sub_ps(low[k], _mm512_fmsub_ps(n, middle, turns));
        low[k] = _mm512_fmadd_ps(n, EACH(1.7151245e-15f), low[k]);
        r[k] = _mm512_add_ps(second, low[k]);
        low[k] = _mm512_sub_ps(low[k], _mm512_sub_ps(r[k], second));
    }
    WIDE_ALL z[k] = _mm512_mul_ps(r[k], r[k]);
    WIDE_SERIES(z, series, 0.0044316794f, -2.0285039e-5f, 0.010920374f, 0.021250404f, 0.0540659f, 0.13332612f, 0.33333351f);
    WIDE_ALL low[k] = _mm512_fmadd_ps(low[k], z[k], low[k]);
    WIDE_ALL series[k] = _mm512_fmadd_ps(_mm512_mul_ps(r[k], z[k]), series[k], low[k]);
    WIDE_ALL {
        const __mmask16 odd = _mm512_test_epi32_mask(_mm512_castps_si512(at[k]), _mm512_set1_epi32(1));
        const __mmask16 none = _mm512_cmp_ps_mask(x[k], _mm512_setzero_ps(), _CMP_EQ_OQ);
        const __mmask16 far = _mm512_cmp_ps_mask(_mm512_andnot_ps(sign, x[k]), EACH(TAN_MOST), _CMP_GE_OQ);
        const __m512 whole = _mm512_add_ps(r[k], series[k]), left = _mm512_sub_ps(series[k], _mm512_sub_ps(whole, r[k]));
        const __m512 inverse = _mm512_rcp14_ps(_mm512_xor_ps(whole, sign));
        __m512 wrong = _mm512_fmadd_ps(inverse, left, _mm512_fmadd_ps(inverse, whole, EACH(1)));
        __m512 made = _mm512_mask_fmadd_ps(inverse, odd, wrong, inverse);
        made = _mm512_mask_mov_ps(made, (__mmask16)~odd, whole);
        made = _mm512_mask_mov_ps(made, none, x[k]);
        x[k] = far ? tan_of_far(x[k], made, far) : made;
    }
}

/* Halves of e^|x|, as `half` and `rest`, and of its inverse. */
ALWAYS_INLINE void wide_halves(const __m512 *x, __m512 *half, __m512 *rest, __m512 *other, int count) {
    WIDE_ALL half[k] = _mm512_andnot_ps(EACH(-0.0f), x[k]);
    wide_exp(half, rest, count);
    WIDE_ALL other[k] = _mm512_div_ps(EACH(0.25f), half[k]);
}

ALWAYS_INLINE void cosh_wide(__m512 *x, int count) {
    __m512 half[WIDE_MOST], rest[WIDE_MOST], other[WIDE_MOST];
    wide_halves(x, half, rest, other, count);
    WIDE_ALL x[k] = _mm512_add_ps(half[k], other[k]);
}

/* Under 1 by a series. Elsewhere the rest goes back in: under a power of two, half of e^x may be over it, with fewer digits. */
ALWAYS_INLINE void sinh_wide(__m512 *x, int count) {
    __m512 half[WIDE_MOST], rest[WIDE_MOST], other[WIDE_MOST], z[WIDE_MOST], series[WIDE_MOST];
    wide_halves(x, half, rest, other, count);
    WIDE_ALL z[k] = _mm512_mul_ps(x[k], x[k]);
    WIDE_SERIES(z, series, 2.8169512e-6f, 0.00019836160f, 0.0083333501f, 0.16666667f);
    WIDE_ALL {
        const __mmask16 large = _mm512_cmp_ps_mask(z[k], EACH(1), _CMP_GE_OQ);
        const __mmask16 finite = _mm512_cmp_ps_mask(half[k], EACH(INFINITY), _CMP_LT_OQ);
        const __m512 size = _mm512_mask_add_ps(half[k], finite, half[k], _mm512_sub_ps(rest[k], other[k]));
        const __m512 sign = _mm512_and_ps(EACH(-0.0f), x[k]);
        x[k] = _mm512_mask_fmadd_ps(x[k], (__mmask16)~large, _mm512_mul_ps(z[k], series[k]), x[k]);
        x[k] = _mm512_mask_or_ps(x[k], large, size, sign);
    }
}

WIDE_LOOP(sinh_along, sinh_wide)
WIDE_LOOP(cosh_along, cosh_wide)
WIDE_LOOP(atan_along, atan_wide)
WIDE_LOOP(tan_along, tan_wide)

#endif

#endif
