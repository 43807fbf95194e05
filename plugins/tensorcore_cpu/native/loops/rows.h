/* Sums and extremes of rows. A template of loops is included after as_f32.h and again after as_f64.h, which name the
   element type REAL, a wider one WIDE, an integer of its size INT, vectors V of LANES elements (V_U anywhere in memory,
   VI of integers), ZIP of zip.h for them, and the functions for it F(name). */
#ifndef TENSORCORE_NATIVE_ROWS_LOOPS_H
#define TENSORCORE_NATIVE_ROWS_LOOPS_H

#include "functions.h"
#include "loop.h"
#include "zip.h"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { ROW_BLOCK = 2048 }; /* elements summed in their own precision; the sums of blocks are added in the wider one */

#define V_AT(x, i) (*(const V_U *)((x) + (i)))
#define REAL_AT(x, i) ((x)[i])

/* Adds TERM(AT, i), an expression in AT(array, i), for i below n to `total`. Error: that of a block's LANES * 4 sums. */
#define ADD_UP(total, n, TERM)                                                                                \
    for (ptrdiff_t begin = 0; begin < (n); begin += ROW_BLOCK) {                                              \
        ptrdiff_t end = (n) - begin < ROW_BLOCK ? (n) : begin + ROW_BLOCK, i = begin;                         \
        V a = {0}, b = {0}, c = {0}, d = {0};                                                                 \
        REAL rest = 0;                                                                                        \
        for (; i + 4 * LANES <= end; i += 4 * LANES) {                                                        \
            a += TERM(V_AT, i);                                                                               \
            b += TERM(V_AT, i + LANES);                                                                       \
            c += TERM(V_AT, i + 2 * LANES);                                                                   \
            d += TERM(V_AT, i + 3 * LANES);                                                                   \
        }                                                                                                     \
        for (; i + LANES <= end; i += LANES)                                                                  \
            a += TERM(V_AT, i);                                                                               \
        for (; i < end; i++)                                                                                  \
            rest += TERM(REAL_AT, i);                                                                         \
        total += F(lanes_sum)((a + b) + (c + d)) + rest;                                                      \
    }

/* The same for two sums at once, so that the elements are read once. */
#define ADD_UP_BOTH(total, n, TERM, other, OTHER)                                                             \
    for (ptrdiff_t begin = 0; begin < (n); begin += ROW_BLOCK) {                                              \
        ptrdiff_t end = (n) - begin < ROW_BLOCK ? (n) : begin + ROW_BLOCK, i = begin;                         \
        V a = {0}, b = {0}, c = {0}, d = {0};                                                                 \
        REAL rest = 0, other_rest = 0;                                                                        \
        for (; i + 2 * LANES <= end; i += 2 * LANES) {                                                        \
            a += TERM(V_AT, i);                                                                               \
            b += TERM(V_AT, i + LANES);                                                                       \
            c += OTHER(V_AT, i);                                                                              \
            d += OTHER(V_AT, i + LANES);                                                                      \
        }                                                                                                     \
        for (; i + LANES <= end; i += LANES) {                                                                \
            a += TERM(V_AT, i);                                                                               \
            c += OTHER(V_AT, i);                                                                              \
        }                                                                                                     \
        for (; i < end; i++) {                                                                                \
            rest += TERM(REAL_AT, i);                                                                         \
            other_rest += OTHER(REAL_AT, i);                                                                  \
        }                                                                                                     \
        total += F(lanes_sum)(a + b) + rest;                                                                  \
        other += F(lanes_sum)(c + d) + other_rest;                                                            \
    }

/* The larger of two in each lane; b where one is NaN. */
#if defined(__AVX512F__)
ALWAYS_INLINE vf larger_f32(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
ALWAYS_INLINE vd larger_f64(vd a, vd b) { return (vd)_mm512_max_pd((__m512d)a, (__m512d)b); }
#elif defined(__AVX2__)
ALWAYS_INLINE vf larger_f32(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
ALWAYS_INLINE vd larger_f64(vd a, vd b) { return (vd)_mm256_max_pd((__m256d)a, (__m256d)b); }
#elif defined(__SSE2__)
ALWAYS_INLINE vf larger_f32(vf a, vf b) { return (vf)_mm_max_ps((__m128)a, (__m128)b); }
ALWAYS_INLINE vd larger_f64(vd a, vd b) { return (vd)_mm_max_pd((__m128d)a, (__m128d)b); }
#else
ALWAYS_INLINE vf larger_f32(vf a, vf b) {
    vi first = a > b;
    return (vf)(((vi)a & first) | ((vi)b & ~first));
}
ALWAYS_INLINE vd larger_f64(vd a, vd b) {
    vl first = a > b;
    return (vd)(((vl)a & first) | ((vl)b & ~first));
}
#endif

#define LANES_PLUS(a, b) (a) + (b)

/* DO(i) for vectors from element i on that cover a row of at least LANES elements: the last one begins where a whole one fits. */
#define EACH_VECTOR(n, DO)                                                                                    \
    for (ptrdiff_t i = 0; i + LANES < (n); i += LANES) {                                                      \
        DO(i);                                                                                                \
    }                                                                                                         \
    DO((n) - LANES)

#include "as_f32.h"
#include "rows_of_real.h"
#include "as_f64.h"
#include "rows_of_real.h"

#endif
