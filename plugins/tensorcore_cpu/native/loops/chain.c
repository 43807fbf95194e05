/* The loops of chains: a tile of vectors at a time, through all ops of the chain. */
#include "functions.h"
#include "wide.h"

#include "../chain.h"

#include <math.h>
#include <string.h>

#ifdef NATIVE_X86
#include <immintrin.h>
#endif

enum {
    TILE = 8, /* vectors: with them a predicted jump for each op weighs little, and they fit the registers */
    SIDE = 4, /* of them that a function takes side by side: what it needs beside the tile fits too */
};

/* The bits of a where the mask is set, else those of b; and square roots: GCC knows neither of vectors in C. */
#if defined(__AVX512F__)
#define CHOOSE_f32(condition, a, b) (vf) _mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)(condition)), (__m512)(b), (__m512)(a))
#define CHOOSE_f64(condition, a, b) (vd) _mm512_mask_blend_pd(_mm512_movepi64_mask((__m512i)(condition)), (__m512d)(b), (__m512d)(a))
#define STREAM_f32(to, x) _mm512_stream_ps(to, (__m512)(x))
#define STREAM_f64(to, x) _mm512_stream_pd(to, (__m512d)(x))
#define ROOT_f32(x) (vf) _mm512_sqrt_ps((__m512)(x))
#define ROOT_f64(x) (vd) _mm512_sqrt_pd((__m512d)(x))
#elif defined(__AVX2__)
#define CHOOSE_f32(condition, a, b) (vf) _mm256_blendv_ps((__m256)(b), (__m256)(a), (__m256)(condition))
#define CHOOSE_f64(condition, a, b) (vd) _mm256_blendv_pd((__m256d)(b), (__m256d)(a), (__m256d)(condition))
#define STREAM_f32(to, x) _mm256_stream_ps(to, (__m256)(x))
#define STREAM_f64(to, x) _mm256_stream_pd(to, (__m256d)(x))
#define ROOT_f32(x) (vf) _mm256_sqrt_ps((__m256)(x))
#define ROOT_f64(x) (vd) _mm256_sqrt_pd((__m256d)(x))
#else
#define STREAM_f32(to, x) *(vf *)(to) = x
#define STREAM_f64(to, x) *(vd *)(to) = x
#define CHOOSE_f32(condition, a, b) (vf)(((vi)(a) & (condition)) | ((vi)(b) & ~(condition)))
#define CHOOSE_f64(condition, a, b) (vd)(((vl)(a) & (condition)) | ((vl)(b) & ~(condition)))
ALWAYS_INLINE vf root_of_lanes_f32(vf x) {
    for (int i = 0; i < LANES_F32; i++)
        x[i] = sqrtf(x[i]);
    return x;
}
ALWAYS_INLINE vd root_of_lanes_f64(vd x) {
    for (int i = 0; i < LANES_F64; i++)
        x[i] = sqrt(x[i]);
    return x;
}
#define ROOT_f32 root_of_lanes_f32
#define ROOT_f64 root_of_lanes_f64
#endif

#include "as_f32.h"
#define MASK vi
#define CHOOSE CHOOSE_f32
#define ROOT ROOT_f32
#define STREAM STREAM_f32
#ifdef __AVX512F__
#define WIDE_FUNCTIONS
#endif
#define WITHOUT_SIGN INT32_MAX
#include "chain_of_real.h"
#include "as_f64.h"
#define MASK vl
#define CHOOSE CHOOSE_f64
#define ROOT ROOT_f64
#define STREAM STREAM_f64
#define WITHOUT_SIGN INT64_MAX
#include "chain_of_real.h"

const chain_loops ISA(chain_loops) = {{chain_f32, chain_f64}};
