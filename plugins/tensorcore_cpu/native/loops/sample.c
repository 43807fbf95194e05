/* The loops of images read at any places. */
#include "half.h"
#include "rows.h"

#include "../sample.h"

ALWAYS_INLINE float floor__f32(float x) { return __builtin_floorf(x); }
ALWAYS_INLINE double floor__f64(double x) { return __builtin_floor(x); }
ALWAYS_INLINE float round__f32(float x) { return __builtin_rintf(x); }
ALWAYS_INLINE double round__f64(double x) { return __builtin_rint(x); }

/* A step on the way to a place. */
ALWAYS_INLINE float step_f32(float x, int steps) {
    return steps == SAMPLE_BF16 ? bf16_value(bf16_of(x)) : steps == SAMPLE_F16 ? f16_value(f16_of(x)) : x;
}
ALWAYS_INLINE double step_f64(double x, int steps) { return x; }

/* A product and a sum stay two roundings: between two elements the gradient of a place has a jump, and which side a place is on
   is as PyTorch rounds it. */
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

#include "as_f32.h"
#include "sample_places_of_real.h"
#include "as_f64.h"
#include "sample_places_of_real.h"

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC pop_options
#endif

/* x[at] in each lane, or 0 where there is none: what is outside is not read, and an infinity at the edge stays there. */
#if defined(__AVX512F__)
ALWAYS_INLINE vf gathered_f32(const float *x, vi at) {
    const __mmask16 there = _mm512_cmpge_epi32_mask((__m512i)at, _mm512_setzero_si512());
    return (vf)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, (__m512i)at, x, 4);
}
ALWAYS_INLINE vd gathered_f64(const double *x, vl at) {
    const __mmask8 there = _mm512_cmpge_epi64_mask((__m512i)at, _mm512_setzero_si512());
    return (vd)_mm512_mask_i64gather_pd(_mm512_setzero_pd(), there, (__m512i)at, x, 8);
}
#elif defined(__AVX2__)
ALWAYS_INLINE vf gathered_f32(const float *x, vi at) {
    return (vf)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, (__m256i)at, (__m256)~at, 4);
}
ALWAYS_INLINE vd gathered_f64(const double *x, vl at) {
    return (vd)_mm256_mask_i64gather_pd(_mm256_setzero_pd(), x, (__m256i)at, (__m256d)~at, 8);
}
#else
ALWAYS_INLINE vf gathered_f32(const float *x, vi at) {
    vf found;
    for (int lane = 0; lane < LANES_F32; lane++)
        found[lane] = at[lane] < 0 ? 0 : x[at[lane]];
    return found;
}
ALWAYS_INLINE vd gathered_f64(const double *x, vl at) {
    vd found;
    for (int lane = 0; lane < LANES_F64; lane++)
        found[lane] = at[lane] < 0 ? 0 : x[at[lane]];
    return found;
}
#endif

#include "as_f32.h"
#include "sample_of_real.h"
#include "as_f64.h"
#include "sample_of_real.h"

const sample_loops ISA(sample_loops) = {{
    {read_f32, spread_f32, slope_f32},
    {read_f64, spread_f64, slope_f64},
}};
