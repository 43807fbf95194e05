/* Functions of eight doubles at a time, for AVX-512: logarithms to a base and powers, for results that are rounded to floats. */
#ifndef TENSORCORE_NATIVE_WIDE_DOUBLE_H
#define TENSORCORE_NATIVE_WIDE_DOUBLE_H

#include "isa.h"

#ifdef __AVX512F__
#include <immintrin.h>

/* 16 / i and logarithms of i / 16, i from 12 to 24 by its last four bits. */
static const double inverse_of_16[16] = {
    1.0, 0.9411764705882353, 0.8888888888888888, 0.8421052631578947,
    0.8, 0.7619047619047619, 0.7272727272727273, 0.6956521739130435,
    0.6666666666666666, 0.0, 0.0, 0.0,
    1.3333333333333333, 1.2307692307692308, 1.1428571428571428, 1.0666666666666667};
static const double log2_of_16[16] = {
    0.0, 0.0874628412503394, 0.16992500144231237, 0.2479275134435855,
    0.32192809488736235, 0.3923174227787603, 0.45943161863729726, 0.5235619560570128,
    0.5849625007211562, 0.0, 0.0, 0.0,
    -0.4150374992788438, -0.2995602818589078, -0.19264507794239588, -0.09310940439148147};
static const double log10_of_16[16] = {
    0.0, 0.02632893872234915, 0.05115252244738129, 0.07463361829690418,
    0.09691001300805642, 0.11809931207799448, 0.13830269816628146, 0.1576078533616681,
    0.17609125905568124, 0.0, 0.0, 0.0,
    -0.12493873660829995, -0.09017663034908802, -0.057991946977686754, -0.028028723600243537};
#define OF_16(table, x)                                                                                       \
    _mm512_permutex2var_pd(_mm512_loadu_pd(table), _mm512_castpd_si512(x), _mm512_loadu_pd((table) + 8))

/* The logarithm of x = 2^n m, m from 3/4 to 3/2, to a base: n `two`, that of the nearest i / 16, and `natural` times that of
   what m is of it, 1 + f with f up to 0.044; to 4e-11. NaN, 0 and infinity as in log_wide. */
ALWAYS_INLINE __m512d log_to_base(__m512d x, const double *logs, double two, double natural) {
    const __m512d magic = _mm512_set1_pd(0x1.8p52 / 16);
    __m512d m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan), at = _mm512_add_pd(m, magic);
    __m512d n = _mm512_sub_pd(_mm512_getexp_pd(x), _mm512_getexp_pd(m));
    __m512d f = _mm512_fmsub_pd(m, OF_16(inverse_of_16, at), _mm512_set1_pd(1)), series = _mm512_set1_pd(natural / 7);
#pragma GCC unroll 6
    for (int k = 6; k; k--)
        series = _mm512_fmadd_pd(series, f, _mm512_set1_pd(k % 2 ? natural / k : -natural / k));
    return _mm512_fmadd_pd(series, f, _mm512_fmadd_pd(n, _mm512_set1_pd(two), OF_16(logs, at)));
}

/* 2^(i / 16) */
static const double power_of_16[16] = {
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
    1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927,
    1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
    1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};

/* 2^x = 2^n 2^(i / 16) 2^r, r up to 1 / 32; to 4e-11. NaN passes through; below -200 it is what 2^-200 is, no float but 0. */
ALWAYS_INLINE __m512d power_of_two_wide(__m512d x) {
    const __m512d magic = _mm512_set1_pd(0x1.8p52 / 16);
    x = _mm512_max_pd(_mm512_set1_pd(-200), x); /* the second where one is NaN */
    __m512d at = _mm512_add_pd(x, magic), n = _mm512_sub_pd(at, magic), factor = OF_16(power_of_16, at);
    __m512d r = _mm512_range_pd(_mm512_sub_pd(x, n), _mm512_set1_pd(0.04), 2); /* the number, of an infinity less itself */
    __m512d series = _mm512_set1_pd(0.0096181291076284772);
    series = _mm512_fmadd_pd(series, r, _mm512_set1_pd(0.055504108664821580));
    series = _mm512_fmadd_pd(series, r, _mm512_set1_pd(0.24022650695910071));
    series = _mm512_fmadd_pd(series, r, _mm512_set1_pd(0.69314718055994531));
    return _mm512_scalef_pd(_mm512_fmadd_pd(_mm512_mul_pd(factor, r), series, factor), n);
}

#endif

#endif
