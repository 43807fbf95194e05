/* Products of bfloat16 matrices by the instruction that adds two of them to a float at once (AVX512_BF16, from the Zen 4 and the
   Cooper Lake on): twice as many multiplications as in single precision, whose kernels take these where it is missing.

   Sums are floats, in the order of the inner dim by twos, and rounded once; denormals are zeros to the instruction. */
#include "gemm.h"

#include "native.h"
#include "turn.h"

#include <stdlib.h>
#include <string.h>

#if defined(NATIVE_X86) && (defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10)
#include <cpuid.h>
#include <immintrin.h>

DECLARE_LOOPS(turn_loops, turn_loops);

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

enum {
    WIDTH = 32, HEIGHT = 12, LANES = 16, /* columns of a panel, rows of a tile, floats of a vector */
    PAIRS = 256,                         /* of the inner dim at a time: a panel and the rows beside it stay in the first cache */
    FEW_ROWS = 8, WORK = 1 << 15,        /* rows and multiplications under which packing is not worth it */
    PART = 1 << 22,                      /* multiplications that are worth a second thread */
};

bool gemm_takes_bf16(const gemm_job *job) {
    unsigned a = 0, b, c, d;
    static int known = -1;
    if (known < 0)
        known = __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1;
    return known && native_chosen_isa == ISA_AVX512 && job->rows >= FEW_ROWS && job->rows * job->columns * job->inner >= WORK;
}

typedef struct {
    const gemm_job *job;
    const uint16_t *left; /* rows whose elements lie side by side, two by two */
    ptrdiff_t left_row, pairs;
    _Atomic bool failed;
} work;

/* The pairs [first, first + count) of columns [column, column + width) as vectors of sixteen columns; what is missing is zeros. */
TARGET static void pack_panel(const work *all, ptrdiff_t column, ptrdiff_t width, ptrdiff_t first, ptrdiff_t count, uint32_t *panel) {
    const gemm_job *job = all->job;
    const uint16_t *right = (const uint16_t *)job->right + column * job->right_column + 2 * first * job->right_inner;
    const bool odd = 2 * (first + count) > job->inner;
    const ptrdiff_t whole = odd ? count - 1 : count;
    if (width < WIDTH || odd)
        memset(panel, 0, (size_t)(count * WIDTH) * sizeof *panel);
    if (job->right_inner == 1 && job->right_column % 2 == 0 && (uintptr_t)right % 4 == 0) {
        if (whole)
            PICK(turn_loops)->turn[2]((const char *)right, job->right_column * 2, (char *)panel, WIDTH * 4, whole, width);
    } else if (job->right_column == 1 && width == WIDTH) {
        short places[2][32];
        for (int i = 0; i < 32; i++) {
            places[0][i] = (short)(i / 2 + i % 2 * 32);
            places[1][i] = (short)(places[0][i] + 16);
        }
        const __m512i low = _mm512_loadu_si512(places[0]), high = _mm512_loadu_si512(places[1]);
        for (ptrdiff_t k = 0; k < whole; k++) {
            const uint16_t *at = right + 2 * k * job->right_inner;
            const __m512i one = _mm512_loadu_si512(at), other = _mm512_loadu_si512(at + job->right_inner);
            _mm512_storeu_si512(panel + k * WIDTH, _mm512_permutex2var_epi16(one, low, other));
            _mm512_storeu_si512(panel + k * WIDTH + LANES, _mm512_permutex2var_epi16(one, high, other));
        }
    } else {
        for (ptrdiff_t k = 0; k < whole; k++)
            for (ptrdiff_t j = 0; j < width; j++) {
                const uint16_t *at = right + 2 * k * job->right_inner + j * job->right_column;
                panel[k * WIDTH + j] = at[0] | (uint32_t)at[job->right_inner] << 16;
            }
    }
    for (ptrdiff_t j = 0; odd && j < width; j++)
        panel[whole * WIDTH + j] = right[2 * whole * job->right_inner + j * job->right_column];
}

/* `rows` rows times a panel, added to their sums. */
#define TILE(rows)                                                                                            \
    TARGET static void tile_##rows(const uint16_t *left, ptrdiff_t step, const uint32_t *panel, ptrdiff_t count, \
                                   float *sums) {                                                             \
        __m512 made[rows][2];                                                                                 \
        for (int r = 0; r < rows; r++)                                                                        \
            for (int v = 0; v < 2; v++)                                                                       \
                made[r][v] = _mm512_loadu_ps(sums + r * WIDTH + v * LANES);                                   \
        for (ptrdiff_t k = 0; k < count; k++) {                                                               \
            const __m512bh one = (__m512bh)_mm512_loadu_si512(panel + k * WIDTH);                             \
            const __m512bh other = (__m512bh)_mm512_loadu_si512(panel + k * WIDTH + LANES);                   \
            _Pragma("GCC unroll 16") for (int r = 0; r < rows; r++) {                                         \
                int32_t pair;                                                                                 \
                memcpy(&pair, left + r * step + 2 * k, sizeof pair);                                          \
                const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);                                      \
                made[r][0] = _mm512_dpbf16_ps(made[r][0], one, both);                                         \
                made[r][1] = _mm512_dpbf16_ps(made[r][1], other, both);                                       \
            }                                                                                                 \
        }                                                                                                     \
        for (int r = 0; r < rows; r++)                                                                        \
            for (int v = 0; v < 2; v++)                                                                       \
                _mm512_storeu_ps(sums + r * WIDTH + v * LANES, made[r][v]);                                   \
    }
TILE(12)
TILE(4)
TILE(1)

/* bfloat16 of floats: the upper half, rounded to even; NaN stays one. */
TARGET static __m256i rounded(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i up = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(_mm512_srli_epi32(bits, 16), one));
    const __m512i quiet = _mm512_or_si512(_mm512_and_si512(bits, _mm512_set1_epi32((int)0x80000000)), _mm512_set1_epi32(0x7fc00000));
    const __m512i made = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_add_epi32(bits, up), quiet);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(made, 16));
}

TARGET static __m512 widened(__mmask16 mask, const uint16_t *from) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}

TARGET static void store(const gemm_job *job, ptrdiff_t column, ptrdiff_t width, const float *sums) {
    for (ptrdiff_t i = 0; i < job->rows; i++)
        for (ptrdiff_t j = 0; j < width; j += LANES) {
            const __mmask16 mask = width - j < LANES ? (__mmask16)((1 << (width - j)) - 1) : (__mmask16)-1;
            __m512 x = _mm512_loadu_ps(sums + i * WIDTH + j);
            if (job->before)
                x = _mm512_add_ps(x, widened(mask, (const uint16_t *)job->before + i * job->before_row + column + j));
            _mm256_mask_storeu_epi16((uint16_t *)job->made + i * job->made_row + column + j, mask, rounded(x));
        }
}

TARGET static void run_panels(void *context, npy_intp begin, npy_intp end) {
    work *all = context;
    const gemm_job *job = all->job;
    const size_t panel_bytes = PAIRS * WIDTH * sizeof(uint32_t), sum_bytes = (size_t)job->rows * WIDTH * sizeof(float);
    char *room = aligned_alloc(64, panel_bytes + sum_bytes);
    if (!room) {
        all->failed = true;
        return;
    }
    uint32_t *panel = (uint32_t *)room;
    float *sums = (float *)(room + panel_bytes);
    for (npy_intp p = begin; p < end; p++) {
        const ptrdiff_t column = p * WIDTH, width = job->columns - column < WIDTH ? job->columns - column : WIDTH;
        memset(sums, 0, sum_bytes);
        for (ptrdiff_t first = 0; first < all->pairs; first += PAIRS) {
            const ptrdiff_t count = all->pairs - first < PAIRS ? all->pairs - first : PAIRS;
            pack_panel(all, column, width, first, count, panel);
            for (ptrdiff_t i = 0; i < job->rows;) {
                const ptrdiff_t rest = job->rows - i;
                const uint16_t *left = all->left + i * all->left_row + 2 * first;
                (rest >= HEIGHT ? tile_12 : rest >= 4 ? tile_4 : tile_1)(left, all->left_row, panel, count, sums + i * WIDTH);
                i += rest >= HEIGHT ? HEIGHT : rest >= 4 ? 4 : 1;
            }
        }
        store(job, column, width, sums);
    }
    free(room);
}

/* The left side with its elements side by side, an even number of them; NULL where there is no memory. */
static uint16_t *packed_left(const gemm_job *job, ptrdiff_t row) {
    uint16_t *made = malloc((size_t)(job->rows * row) * sizeof *made);
    if (made && job->left_row == 1)
        PICK(turn_loops)->turn[1](job->left, job->left_inner * 2, (char *)made, row * 2, job->rows, job->inner);
    for (ptrdiff_t i = 0; made && i < job->rows; i++) {
        const uint16_t *from = (const uint16_t *)job->left + i * job->left_row;
        for (ptrdiff_t k = 0; job->left_row != 1 && k < job->inner; k++)
            made[i * row + k] = from[k * job->left_inner];
        if (row > job->inner)
            made[i * row + job->inner] = 0;
    }
    return made;
}

bool gemm_run_bf16(const gemm_job *job) {
    work all = {.job = job, .left = job->left, .left_row = job->left_row, .pairs = (job->inner + 1) / 2};
    uint16_t *packed = NULL;
    if (job->left_inner != 1 || job->inner % 2) {
        all.left_row = 2 * all.pairs;
        if (!(all.left = packed = packed_left(job, all.left_row)))
            return false;
    }
    const npy_intp panels = (job->columns + WIDTH - 1) / WIDTH, each = job->rows * job->inner * WIDTH;
    native_parallel(panels, job->rows * job->columns * job->inner < PART ? panels : PART / 4 / each + 1, run_panels, &all);
    free(packed);
    return !all.failed;
}
#else
bool gemm_takes_bf16(const gemm_job *job) { return false; }
bool gemm_run_bf16(const gemm_job *job) { return false; }
#endif
