/* Rows of bfloat16 times panels of 32 columns, by the instruction that adds two products of them to a float at once: what products
   of matrices share with convolutions. */
#ifndef TENSORCORE_NATIVE_GEMM_BF16_H
#define TENSORCORE_NATIVE_GEMM_BF16_H

#include "gemm.h"

#if defined(NATIVE_X86) && (defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10)
#define BF16_PAIRS
#include <immintrin.h>

#if defined(__linux__) && (defined(__clang__) ? __clang_major__ >= 11 : __GNUC__ >= 11)
#define BF16_TILES /* and an assembler that knows them */
#endif

#define BF16_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define BF16_INLINE BF16_TARGET __attribute__((always_inline)) static inline

enum {
    BF16_WIDTH = 32,  /* columns of a panel */
    BF16_DEPTH = 192, /* pairs of the inner dim that go together: a panel of them and the rows beside it stay in the first cache; */
    BF16_STEP = 16,   /* a multiple of so many, which a tile of a panel has */
    BF16_TALL = 32,   /* rows of a block of tiles */
};

/* made[i, j] = before[i, j] + the sum over k of left[i, k] * right[k, j]: all but the right side, which comes in panels. */
typedef struct {
    ptrdiff_t rows, left_row, pairs;
    const uint16_t *left; /* rows whose elements lie side by side, an even number of them, `left_row` apart; */
    bool strips;          /* or as many rows as a tile has pair by pair, which are read faster; */
    bool tiles;           /* or rows for bf16_tiles_multiply: whole steps of them, from a cache line on */
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

/* All rows times the pairs [first, first + count) of a panel: a pair of one column in each 32 bits, with room for a whole number
   of steps. `sums` is room for rows * BF16_WIDTH floats where not all pairs go together, and may be NULL where they do; with the
   last pairs the result is rounded and written. */
void bf16_multiply(const bf16_rows *all, uint32_t *panel, ptrdiff_t first, ptrdiff_t count, float *sums, const bf16_columns *to);

/* By the processor's unit for tiles, for `rows` with `tiles`, if it has one that takes so many rows. */
bool bf16_tiles_take(ptrdiff_t rows);
void bf16_tiles_multiply(const bf16_rows *all, uint32_t *panel, ptrdiff_t first, ptrdiff_t count, float *sums,
                         const bf16_columns *to);

/* The same step by step, for blocks of at most BF16_TALL rows: what a thread begins it must end. Adds `pairs`, whole steps of them,
   each `left_step` elements behind the one before, to the sums of a block, whose rows are `sums_row` apart and which are there if
   there is `more`; and writes sums of rows of BF16_WIDTH. */
void bf16_tiles_begin(ptrdiff_t rows);
void bf16_tiles_add(ptrdiff_t rows, const uint16_t *left, ptrdiff_t left_row, ptrdiff_t left_step, const uint32_t *panel,
                    ptrdiff_t pairs, bool more, float *sums, ptrdiff_t sums_row);
void bf16_tiles_end(void);
void bf16_tiles_write(const bf16_rows *all, ptrdiff_t row, ptrdiff_t rows, const float *sums, const bf16_columns *to);

/* The pairs [first, first + count) of columns [column, column + width) of a job's right side as a panel; what is missing is zeros. */
void bf16_pack_panel(const gemm_job *job, ptrdiff_t column, ptrdiff_t width, ptrdiff_t first, ptrdiff_t count, uint32_t *panel);

/* Fills in `pairs` and where the left side of a product is: where it lies, or a copy, in the strips of bf16_rows for who has many
   panels. `room` is to be freed; false where there is no memory. */
bool bf16_left(const gemm_job *job, bool strips, bf16_rows *rows, void **room);

static inline ptrdiff_t bf16_whole_steps(ptrdiff_t pairs) { return (pairs + BF16_STEP - 1) / BF16_STEP * BF16_STEP; }

/* How many pairs go together: parts of about one size. */
static inline ptrdiff_t bf16_depth(ptrdiff_t pairs) {
    const ptrdiff_t parts = (pairs + BF16_DEPTH - 1) / BF16_DEPTH;
    return bf16_whole_steps((pairs + parts - 1) / parts);
}

BF16_INLINE __m512 bf16_widened(__m256i halves) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* What comes before in a row, of columns [v * 16, ...). */
BF16_INLINE __m512 bf16_before(const bf16_rows *all, ptrdiff_t row, const bf16_columns *to, int v) {
    const uint16_t *from = all->before + row * all->before_row;
    if (!all->before_column)
        return bf16_widened(_mm256_set1_epi16((short)*from));
    return bf16_widened(_mm256_maskz_loadu_epi16((__mmask16)(to->part[0].mask >> (v * 16)), from + to->column + v * 16));
}

/* Writes the sums of one row, rounded to even. */
BF16_INLINE void bf16_finish(const bf16_rows *all, ptrdiff_t row, const bf16_columns *to, __m512 low, __m512 high) {
    const __m512i made = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    uint16_t *at = all->made + row * all->made_row;
    if (to->part[0].mask == UINT32_MAX)
        _mm512_storeu_si512(at + to->part[0].at, made);
    else
        for (const bf16_part *part = to->part; part < to->part + to->parts; part++)
            _mm512_mask_storeu_epi16(at + part->at, part->mask, made);
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
