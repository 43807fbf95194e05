/* The half types as floats and back: one element, and as many as a vector has floats. */
#ifndef TENSORCORE_NATIVE_HALF_H
#define TENSORCORE_NATIVE_HALF_H

#include "isa.h"

#include <string.h>

#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

/* bfloat16: the upper half of a float, rounded to even. */

ALWAYS_INLINE float bf16_value(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

ALWAYS_INLINE uint16_t bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)(x != x ? ((bits >> 16) & 0x8000) | 0x7fc0 : rounded);
}

/* float16 */

#ifdef __F16C__
ALWAYS_INLINE float f16_value(uint16_t half) { return _cvtsh_ss(half); }
ALWAYS_INLINE uint16_t f16_of(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }
#else
ALWAYS_INLINE float f16_value(uint16_t half) {
    /* The bits in a float's place are the number times 2^-112, denormals included; infinity and NaN come out too small. */
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    float x;
    memcpy(&x, &bits, 4);
    x *= 0x1p112f;
    memcpy(&bits, &x, 4);
    bits = bits >= 0x47800000 ? bits | 0x7f800000 : bits;
    bits |= sign;
    memcpy(&x, &bits, 4);
    return x;
}

ALWAYS_INLINE uint16_t f16_of(float x) {
    uint32_t bits, sign;
    memcpy(&bits, &x, 4);
    sign = bits & 0x80000000;
    bits ^= sign;
    /* Adding a number whose last place is the half's last place rounds to it. */
    uint32_t place = (bits & 0x7f800000) + 0x06800000; /* 2^13 times the number's power of two */
    place = place < 0x3f000000 ? 0x3f000000 : place;   /* denormals of the half share one place: 2^-24 */
    float size, shift;
    memcpy(&size, &bits, 4);
    memcpy(&shift, &place, 4);
    float rounded = (size + shift) - shift, counted = rounded + 0.5f; /* whose last place is 2^-24 while it is under 1 */
    uint32_t normal, small;
    memcpy(&normal, &rounded, 4);
    memcpy(&small, &counted, 4);
    uint32_t made = rounded < 0x1p-14f ? small - 0x3f000000 : (normal - 0x38000000) >> 13;
    made = rounded >= 65536.0f ? 0x7c00 : made;
    made = bits > 0x7f800000 ? 0x7e00 | ((bits >> 13) & 0x3ff) : bits > 0x477fffff ? 0x7c00 : made;
    return (uint16_t)(made | (sign >> 16));
}
#endif

/* Two vectors of floats at a time, from as many halves as a vector holds, and back: in their order, or whichever way is cheaper where
   all that counts is that they come back the same way. */

typedef uint32_t vu __attribute__((vector_size(VECTOR)));
typedef uint32_t vu_u __attribute__((vector_size(VECTOR), aligned(1), may_alias));
typedef uint16_t vh_u __attribute__((vector_size(VECTOR / 2), aligned(1), may_alias));
typedef struct {
    vf x[2];
} vf_pair;

ALWAYS_INLINE vf_pair bf16_ordered(const void *from) {
    const vh_u *halves = from;
    return (vf_pair){{(vf)(__builtin_convertvector(halves[0], vu) << 16), (vf)(__builtin_convertvector(halves[1], vu) << 16)}};
}

/* A bfloat16 is the upper half of a float: every second one is there already, the others one shift away. */
ALWAYS_INLINE vf_pair bf16_pair(const void *from) {
    const vu both = *(const vu_u *)from;
    return (vf_pair){{(vf)(both << 16), (vf)(both & 0xffff0000)}};
}

/* With the bfloat16 in the upper half; a NaN keeps some of its bits. */
ALWAYS_INLINE vu bf16_rounded(vf x) {
    const vu bits = (vu)x, made = bits + 0x7fff + (bits >> 16 & 1);
#if defined(__AVX512F__)
    const __mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
    return (vu)_mm512_mask_or_epi32((__m512i)made, nan, (__m512i)bits, _mm512_set1_epi32(0x400000));
#else
    const vu nan = (vu)(x != x);
    return (made & ~nan) | ((bits | 0x400000) & nan);
#endif
}

#if defined(__AVX512F__)
/* Numbers of the upper halves of 32 elements, as an instruction finds them in two registers. */
static const uint16_t upper_halves[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                          33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
#endif
ALWAYS_INLINE void bf16_in_order(void *to, vf_pair of) {
#if defined(__AVX512F__)
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16((__m512i)bf16_rounded(of.x[0]), _mm512_loadu_si512(upper_halves),
                                                      (__m512i)bf16_rounded(of.x[1])));
#else
    for (int half = 0; half < 2; half++)
        ((vh_u *)to)[half] = __builtin_convertvector(bf16_rounded(of.x[half]) >> 16, vh_u);
#endif
}

ALWAYS_INLINE void bf16_join(void *to, vf_pair of) {
    *(vu_u *)to = bf16_rounded(of.x[0]) >> 16 | (bf16_rounded(of.x[1]) & 0xffff0000);
}

#if defined(__AVX512F__)
ALWAYS_INLINE vf f16_load(const char *from) { return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)); }
ALWAYS_INLINE void f16_store(char *to, vf x) {
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__F16C__)
ALWAYS_INLINE vf f16_load(const char *from) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)); }
ALWAYS_INLINE void f16_store(char *to, vf x) {
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
}
#else
ALWAYS_INLINE vf f16_load(const char *from) {
    uint16_t halves[LANES_F32];
    vf made;
    memcpy(halves, from, sizeof halves);
    for (int i = 0; i < LANES_F32; i++)
        made[i] = f16_value(halves[i]);
    return made;
}
ALWAYS_INLINE void f16_store(char *to, vf x) {
    uint16_t halves[LANES_F32];
    for (int i = 0; i < LANES_F32; i++)
        halves[i] = f16_of(x[i]);
    memcpy(to, halves, sizeof halves);
}
#endif

ALWAYS_INLINE vf_pair f16_pair(const void *from) { return (vf_pair){{f16_load(from), f16_load((const char *)from + VECTOR / 2)}}; }
ALWAYS_INLINE vf_pair f16_ordered(const void *from) { return f16_pair(from); }
ALWAYS_INLINE void f16_join(void *to, vf_pair of) {
    f16_store(to, of.x[0]);
    f16_store((char *)to + VECTOR / 2, of.x[1]);
}

#endif
