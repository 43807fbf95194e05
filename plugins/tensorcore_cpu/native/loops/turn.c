/* Turned tiles: blocks in registers. The last block of a row or a column begins where a whole one still fits. */
#include "loop.h"

#include "../turn.h"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Of N elements that lie in a row each: the compiler makes exchanges of whole vectors. */
#define TURN_FEW(name, type, N)                                                                               \
    static __attribute__((noinline)) void name##_##N(const type *from, char *to, ptrdiff_t to_step, ptrdiff_t columns) { \
        INDEPENDENT for (ptrdiff_t j = 0; j < columns; j++)                                                   \
            for (int k = 0; k < N; k++)                                                                       \
                ((type *)(to + k * to_step))[j] = from[N * j + k];                                            \
    }

#define TURN(name, type, SIDE, block)                                                                         \
    TURN_FEW(name, type, 2) TURN_FEW(name, type, 3) TURN_FEW(name, type, 4)                                   \
    static void name(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step, ptrdiff_t rows,      \
                     ptrdiff_t columns) {                                                                     \
        if (rows > 1 && rows <= 4 && columns >= 16 && from_step == rows * (ptrdiff_t)sizeof(type)) {          \
            (rows == 2 ? name##_2 : rows == 3 ? name##_3 : name##_4)((const type *)from, to, to_step, columns); \
            return;                                                                                           \
        }                                                                                                     \
        if (rows < SIDE || columns < SIDE) {                                                                  \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                for (ptrdiff_t j = 0; j < columns; j++)                                                       \
                    ((type *)(to + i * to_step))[j] = ((const type *)(from + j * from_step))[i];              \
            return;                                                                                           \
        }                                                                                                     \
        for (ptrdiff_t i = 0;; i = i + 2 * SIDE <= rows ? i + SIDE : rows - SIDE) {                           \
            for (ptrdiff_t j = 0;; j = j + 2 * SIDE <= columns ? j + SIDE : columns - SIDE) {                 \
                block(from + j * from_step + i * sizeof(type), from_step, to + i * to_step + j * sizeof(type), to_step); \
                if (j == columns - SIDE)                                                                      \
                    break;                                                                                    \
            }                                                                                                 \
            if (i == rows - SIDE)                                                                             \
                break;                                                                                        \
        }                                                                                                     \
    }

#define PLAIN_BLOCK(name, type, SIDE)                                                                         \
    ALWAYS_INLINE void name(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step) {             \
        for (int i = 0; i < SIDE; i++)                                                                        \
            for (int j = 0; j < SIDE; j++)                                                                    \
                ((type *)(to + i * to_step))[j] = ((const type *)(from + j * from_step))[i];                  \
    }

#ifdef __SSE2__
/* Rows are woven in pairs, then pairs of pairs, then those: what is left are columns. */
ALWAYS_INLINE void block_8(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step) {
    __m128i x[8], y[4];
    for (int i = 0; i < 8; i++)
        x[i] = _mm_loadl_epi64((const __m128i *)(from + i * from_step));
    for (int i = 0; i < 4; i++)
        y[i] = _mm_unpacklo_epi8(x[2 * i], x[2 * i + 1]);
    for (int i = 0; i < 2; i++) {
        x[2 * i] = _mm_unpacklo_epi16(y[2 * i], y[2 * i + 1]);
        x[2 * i + 1] = _mm_unpackhi_epi16(y[2 * i], y[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        y[2 * i] = _mm_unpacklo_epi32(x[i], x[i + 2]);
        y[2 * i + 1] = _mm_unpackhi_epi32(x[i], x[i + 2]);
    }
    for (int i = 0; i < 4; i++) {
        _mm_storel_epi64((__m128i *)(to + 2 * i * to_step), y[i]);
        _mm_storel_epi64((__m128i *)(to + (2 * i + 1) * to_step), _mm_unpackhi_epi64(y[i], y[i]));
    }
}

ALWAYS_INLINE void block_16(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step) {
    __m128i x[8], low[4], high[4]; /* the first four columns, and the others */
    for (int i = 0; i < 8; i++)
        x[i] = _mm_loadu_si128((const __m128i *)(from + i * from_step));
    for (int i = 0; i < 4; i++) {
        low[i] = _mm_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
        high[i] = _mm_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        x[2 * i] = _mm_unpacklo_epi32(low[2 * i], low[2 * i + 1]);
        x[2 * i + 1] = _mm_unpackhi_epi32(low[2 * i], low[2 * i + 1]);
        x[2 * i + 4] = _mm_unpacklo_epi32(high[2 * i], high[2 * i + 1]);
        x[2 * i + 5] = _mm_unpackhi_epi32(high[2 * i], high[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        const int k = i < 2 ? i : i + 2; /* of the columns from 2 * i on, those of the first four rows */
        _mm_storeu_si128((__m128i *)(to + 2 * i * to_step), _mm_unpacklo_epi64(x[k], x[k + 2]));
        _mm_storeu_si128((__m128i *)(to + (2 * i + 1) * to_step), _mm_unpackhi_epi64(x[k], x[k + 2]));
    }
}
#else
PLAIN_BLOCK(block_8, uint8_t, 8)
PLAIN_BLOCK(block_16, uint16_t, 8)
#endif

#ifdef __AVX2__
/* Halves of two rows in one register spare the exchanges between halves, which are the slowest. */
ALWAYS_INLINE __m256 two_halves(const char *low, const char *high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)low)), _mm_loadu_ps((const float *)high), 1);
}

ALWAYS_INLINE void half_block_32(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step) {
    __m256 a = two_halves(from, from + 4 * from_step), b = two_halves(from + from_step, from + 5 * from_step);
    __m256 c = two_halves(from + 2 * from_step, from + 6 * from_step), d = two_halves(from + 3 * from_step, from + 7 * from_step);
    __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
    _mm256_storeu_ps((float *)to, _mm256_shuffle_ps(ab, cd, 0x44));
    _mm256_storeu_ps((float *)(to + to_step), _mm256_shuffle_ps(ab, cd, 0xee));
    ab = _mm256_unpackhi_ps(a, b), cd = _mm256_unpackhi_ps(c, d);
    _mm256_storeu_ps((float *)(to + 2 * to_step), _mm256_shuffle_ps(ab, cd, 0x44));
    _mm256_storeu_ps((float *)(to + 3 * to_step), _mm256_shuffle_ps(ab, cd, 0xee));
}

ALWAYS_INLINE void block_32(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step) {
    half_block_32(from, from_step, to, to_step);
    half_block_32(from + 16, from_step, to + 4 * to_step, to_step);
}

ALWAYS_INLINE __m256d two_pairs(const char *low, const char *high) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd((const double *)low)), _mm_loadu_pd((const double *)high), 1);
}

ALWAYS_INLINE void block_64(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step) {
    for (int half = 0; half < 2; half++, from += 16, to += 2 * to_step) {
        __m256d a = two_pairs(from, from + 2 * from_step), b = two_pairs(from + from_step, from + 3 * from_step);
        _mm256_storeu_pd((double *)to, _mm256_unpacklo_pd(a, b));
        _mm256_storeu_pd((double *)(to + to_step), _mm256_unpackhi_pd(a, b));
    }
}
#else
PLAIN_BLOCK(block_32, uint32_t, 8)
PLAIN_BLOCK(block_64, uint64_t, 4)
#endif

TURN(turn_8, uint8_t, 8, block_8)
TURN(turn_16, uint16_t, 8, block_16)
TURN(turn_32, uint32_t, 8, block_32)
TURN(turn_64, uint64_t, 4, block_64)

const turn_loops ISA(turn_loops) = {{turn_8, turn_16, turn_32, turn_64}};
