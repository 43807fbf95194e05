/* Cheap ops on vectors, with the bits of their loops in elementwise.c: each is one rounding, or the same expression. They are lists of
   expressions of vectors x and y and of `zero`, written in what as_f32.h or as_f64.h define. */
#ifndef TENSORCORE_NATIVE_VECTOR_OPS_H
#define TENSORCORE_NATIVE_VECTOR_OPS_H

#include "isa.h"

#include <math.h>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h> /* all there is without AVX; the other one takes the compiler a quarter of a second */
#endif

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

#define CHOOSE F(CHOOSE)
#define ROOT F(ROOT)
#define STREAM F(STREAM)
#define WITHOUT_SIGN F(WITHOUT_SIGN)
#define WITHOUT_SIGN_f32 INT32_MAX
#define WITHOUT_SIGN_f64 INT64_MAX

/* X(name, expression) of the vector x, and of x and y. */
#define VECTOR_UNARY(X)                                                                                       \
    X(neg, -x)                                                                                                \
    X(abs, (V)((VI)x & WITHOUT_SIGN))                                                                       \
    X(square, x * x)                                                                                          \
    X(cube, x * x * x)                                                                                        \
    X(relu, CHOOSE(x <= zero, zero, x))                                                                       \
    X(sqrt, ROOT(x))                                                                                          \
    X(rsqrt, 1 / ROOT(x))                                                                                     \
    X(reciprocal, 1 / x)                                                                                      \
    X(reciprocal_square, 1 / (x * x))                                                                         \
    X(twice, x + x)
#define VECTOR_BINARY(X)                                                                                      \
    X(add, x + y)                                                                                             \
    X(sub, x - y)                                                                                             \
    X(rsub, y - x)                                                                                            \
    X(mul, x * y)                                                                                             \
    X(div, x / y)                                                                                             \
    X(rdiv, y / x)                                                                                            \
    X(maximum, CHOOSE((x > y) | (x != x), x, y))                                                              \
    X(rmaximum, CHOOSE((y > x) | (y != y), y, x))                                                             \
    X(minimum, CHOOSE((x < y) | (x != x), x, y))                                                              \
    X(rminimum, CHOOSE((y < x) | (y != y), y, x))                                                             \
    X(leaky_relu, CHOOSE(x > zero, x, x * y))                                                                 \
    X(raise, CHOOSE(x < y, y, x))                                                                             \
    X(lower, CHOOSE(x > y, y, x))
/* X(name, expression of x and y): a mask. */
#define VECTOR_TESTS(X)                                                                                       \
    X(isnan, x != x)                                                                                          \
    X(isinf, (V)((VI)x & WITHOUT_SIGN) == INFINITY)                                                           \
    X(isfinite, (V)((VI)x & WITHOUT_SIGN) < INFINITY)                                                         \
    X(logical_not, x == zero)
#define VECTOR_COMPARE(X)                                                                                     \
    X(eq, x == y)                                                                                             \
    X(ne, x != y)                                                                                             \
    X(lt, x < y)                                                                                              \
    X(le, x <= y)                                                                                             \
    X(gt, x > y)                                                                                              \
    X(ge, x >= y)                                                                                             \
    X(logical_and, (x != zero) & (y != zero))                                                                 \
    X(logical_or, (x != zero) | (y != zero))                                                                  \
    X(logical_xor, (x != zero) ^ (y != zero))

#endif
