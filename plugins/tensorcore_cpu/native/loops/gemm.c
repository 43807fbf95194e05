/* The loops of the matrix products: of float and double numbers, and of integers of 32 and 64 bits. */
#include "../gemm.h"
#include "isa.h"
#include "zip.h"

#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* Tiles: as many accumulators as leave registers for what is multiplied, and smaller heights for what remains. Left rows that
   are not packed take a register each for their address, and with twelve of them 1 % more time. */
#if defined(__AVX512F__)
enum { HEIGHT = 12, VECTORS = 2, READS_LEFT = 1, ROWS = 192, SLOWER_THAN_BLAS = 0 };
#define HEIGHTS(X, vectors) X(12, vectors) X(8, vectors) X(4, vectors) X(2, vectors) X(1, vectors)
#elif defined(__AVX2__)
enum { HEIGHT = 6, VECTORS = 2, READS_LEFT = 1, ROWS = 144, SLOWER_THAN_BLAS = 0 };
#define HEIGHTS(X, vectors) X(6, vectors) X(4, vectors) X(2, vectors) X(1, vectors)
#else
enum { HEIGHT = 4, VECTORS = 2, READS_LEFT = 0, ROWS = 96, SLOWER_THAN_BLAS = 1 };
#define HEIGHTS(X, vectors) X(4, vectors) X(2, vectors) X(1, vectors)
#endif
#define TILES(X) HEIGHTS(X, 0) HEIGHTS(X, 1) HEIGHTS(X, 2) /* 0 is half a vector */
enum { PACKED, LYING, ORDERED, STRIPPED, LIVE, TILE_KINDS }; /* what the left rows of a tile are */
enum { MANY_REGISTERS = VECTOR == 64 }; /* 32 of them: sixteen sums and what they are of */
/* Lists of what is not zero: of blocks of the inner dim, of which PANELS panels of the right side stay in the first cache. Rows
   that are fuller than FULL of FULL_OF are no lists, and fewer lists than one of FEW_LISTS rows are not worth their making. */
enum { BLOCK = 64, PANELS = MANY_REGISTERS ? 3 : 4, FULL = 3, FULL_OF = 4, FEW_LISTS = 8 };
enum { ALIVE = 15, ALIVE_OF = 16 }; /* at most so much of a tile's inner dim, for it to be looked up */
enum { INNER = 256, BLOCKS = INNER / BLOCK, FEW_TILES = 2 /* of rows, for which packing the right side does not pay */ };

/* What is not zero of `count` elements, and where: `first`, and `step` more for each element before it. Answers how many; up to
   a vector behind them is written too. */
#if defined(__AVX512F__)
static int32_t compress_f32(const float *from, ptrdiff_t count, int32_t first, int32_t step, float *values, int32_t *places) {
    const __m512i ramp = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i at = _mm512_add_epi32(_mm512_set1_epi32(first), _mm512_mullo_epi32(ramp, _mm512_set1_epi32(step)));
    int32_t found = 0;
    for (ptrdiff_t k = 0; k < count; k += 16) {
        const __mmask16 inside = (__mmask16)(count - k < 16 ? (1 << (count - k)) - 1 : -1);
        const __m512 x = _mm512_maskz_loadu_ps(inside, from + k);
        const __mmask16 there = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        const int more = __builtin_popcount(there); /* before the stores: GCC 12 spills 16 bits around TSan's calls, and counts 32 */
        _mm512_storeu_ps(values + found, _mm512_maskz_compress_ps(there, x));
        _mm512_storeu_si512(places + found, _mm512_maskz_compress_epi32(there, at));
        found += more;
        at = _mm512_add_epi32(at, _mm512_set1_epi32(16 * step));
    }
    return found;
}

static int32_t compress_f64(const double *from, ptrdiff_t count, int32_t first, int32_t step, double *values, int32_t *places) {
    const __m256i ramp = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i at = _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_mullo_epi32(ramp, _mm256_set1_epi32(step)));
    int32_t found = 0;
    for (ptrdiff_t k = 0; k < count; k += 8) {
        const __mmask8 inside = (__mmask8)(count - k < 8 ? (1 << (count - k)) - 1 : -1);
        const __m512d x = _mm512_maskz_loadu_pd(inside, from + k);
        const __mmask8 there = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_NEQ_UQ);
        const int more = __builtin_popcount(there);
        _mm512_storeu_pd(values + found, _mm512_maskz_compress_pd(there, x));
        _mm256_storeu_si256((__m256i *)(places + found), _mm256_maskz_compress_epi32(there, at));
        found += more;
        at = _mm256_add_epi32(at, _mm256_set1_epi32(8 * step));
    }
    return found;
}
#endif

#define COMPRESS(name, real)                                                                                            \
    static int32_t name(const real *from, ptrdiff_t count, int32_t first, int32_t step, real *values, int32_t *places) { \
        int32_t found = 0;                                                                                              \
        for (ptrdiff_t k = 0; k < count; k++) { /* without branches, which zeros would make hard to foresee */          \
            values[found] = from[k];                                                                                    \
            places[found] = first + (int32_t)k * step;                                                                  \
            found += from[k] != 0;                                                                                      \
        }                                                                                                               \
        return found;                                                                                                   \
    }
#if !defined(__AVX512F__)
COMPRESS(compress_f32, float)
COMPRESS(compress_f64, double)
#endif
COMPRESS(compress_i32, int32_t)
COMPRESS(compress_i64, int64_t)

#include "as_f32.h"
#include "gemm_of_real.h"
#include "gemm_lists_of_real.h"
#include "gemm_thin_of_real.h"
#include "as_f64.h"
#include "gemm_of_real.h"
#include "gemm_lists_of_real.h"
#include "gemm_thin_of_real.h"
#include "as_i32.h"
#include "gemm_of_real.h"
#include "gemm_lists_of_real.h"
#include "gemm_thin_of_real.h"
#include "as_i64.h"
#include "gemm_of_real.h"
#include "gemm_lists_of_real.h"
#include "gemm_thin_of_real.h"

/* No BLAS multiplies integers. */
const gemm_loops ISA(gemm_loops) = {.real = {GEMM_LOOPS(f32, SLOWER_THAN_BLAS), GEMM_LOOPS(f64, SLOWER_THAN_BLAS),
                                             GEMM_LOOPS(i32, false), GEMM_LOOPS(i64, false)}};
