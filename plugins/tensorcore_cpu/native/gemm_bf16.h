/* Rows of bfloat16 times panels of 32 columns, by the instruction that adds two products of them to a float at once: what products
   of matrices share with convolutions. */
#ifndef TENSORCORE_NATIVE_GEMM_BF16_H
#define TENSORCORE_NATIVE_GEMM_BF16_H

#include "gemm.h"

#if defined(NATIVE_X86) && (defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10)
#define BF16_PAIRS
#include <immintrin.h>

#define BF16_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define BF16_INLINE BF16_TARGET __attribute__((always_inline)) static inline

enum {
    BF16_WIDTH = 32,  /* columns of a panel */
    BF16_DEPTH = 192, /* pairs of the inner dim that go together: a panel of them and the rows beside it stay in the first cache */
};

/* made[i, j] = before[i, j] + the sum over k of left[i, k] * right[k, j]: all but the right side, which comes in panels. */
typedef struct {
    ptrdiff_t rows, left_row, pairs;
    const uint16_t *left; /* rows whose elements lie side by side, an even number of them, `left_row` apart; */
    bool strips;          /* or as many rows as a tile has pair by pair, which are read faster */
    const uint16_t *before;
    ptrdiff_t before_row, before_column; /* the latter is one, or zero for a number of each row; NULL for none */
    uint16_t *made;
    ptrdiff_t made_row;
} bf16_rows;

/* Where columns of a panel go: column j, of those in the mask, to made[row * made_row + at + j]. */
typedef struct {
    ptrdiff_t at;
    uint32_t mask;
} bf16_part;

typedef struct {
    ptrdiff_t column; /* of what comes before */
    int parts;
    bf16_part part[BF16_WIDTH];
} bf16_columns;

/* Whether this machine has the instruction, and may use it. */
bool bf16_here(void);

/* All rows times the pairs [first, first + count) of a panel: a pair of one column in each 32 bits. `sums` is room for
   rows * BF16_WIDTH floats where not all pairs go together, and may be NULL where they do; with the last pairs the result is
   rounded and written. */
void bf16_multiply(const bf16_rows *all, const uint32_t *panel, ptrdiff_t first, ptrdiff_t count, float *sums,
                   const bf16_columns *to);

/* Fills in `pairs` and where the left side of a product is: where it lies, or a copy, in the strips of bf16_rows for who has many
   panels. `room` is to be freed; false where there is no memory. */
bool bf16_left(const gemm_job *job, bool strips, bf16_rows *rows, void **room);

/* How many pairs go together: parts of about one size. */
static inline ptrdiff_t bf16_depth(ptrdiff_t pairs) {
    const ptrdiff_t parts = (pairs + BF16_DEPTH - 1) / BF16_DEPTH;
    return (pairs + parts - 1) / parts;
}

/* 32 pairs of one element of each. */
BF16_INLINE void bf16_interleave(__m512i one, __m512i other, uint32_t *panel) {
    static const short places[2][32] = {
        {0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    _mm512_storeu_si512(panel, _mm512_permutex2var_epi16(one, _mm512_loadu_si512(places[0]), other));
    _mm512_storeu_si512(panel + 16, _mm512_permutex2var_epi16(one, _mm512_loadu_si512(places[1]), other));
}
#endif

#endif
