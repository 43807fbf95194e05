/* Products of bfloat16 matrices by the instruction that adds two of them to a float at once (AVX512_BF16, from the Zen 4 and the
   Cooper Lake on): twice as many multiplications as in single precision, whose kernels take these where it is missing.

   Sums are floats, in the order of the inner dim by twos, and rounded once; denormals are zeros to the instruction. */
#include "gemm_bf16.h"

#include "native.h"
#include "turn.h"

#include <stdlib.h>
#include <string.h>

#ifdef BF16_PAIRS
#include <cpuid.h>

DECLARE_LOOPS(turn_loops, turn_loops);

enum {
    HEIGHT = 12, LANES = 16,         /* rows of a tile, floats of a vector */
    WORK = 1 << 15,                  /* multiplications under which packing is not worth it */
    STRIP_ROWS = 64, STRIP_COLUMNS = 128, /* that are worth strips */
    PART = 1 << 22,                  /* multiplications that are worth a second thread */
    GROUP = 16, FEW_GROUP = 4,       /* panels that are packed together for tiles, and for a single block of rows, */
    TOGETHER = 128,                  /* and rows times these whose sums stay in the second cache; */
    PACKED = 4,                      /* panels that are worth a copy of each block of rows; */
    TILES_DEPTH = 128,               /* pairs of a block of rows and a panel that stay in the first one */
};

bool bf16_here(void) {
    unsigned a = 0, b, c, d;
    static int known = -1;
    if (known < 0)
        known = __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1;
    return known && native_chosen_isa == ISA_AVX512;
}

/* Rows times a panel */

#define ROWS(rows) _Pragma("GCC unroll 16") for (int r = 0; r < rows; r++)
#define VECTORS(rows) ROWS(rows) for (int v = 0; v < 2; v++)

/* The sums over all pairs of a panel and those of each row, which lie at `from`. */
#define SUMS(rows, from)                                                                                                      \
    for (ptrdiff_t k = 0; k < count; k++) {                                                                                   \
        const __m512bh one = (__m512bh)_mm512_loadu_si512(panel + k * BF16_WIDTH);                                            \
        const __m512bh other = (__m512bh)_mm512_loadu_si512(panel + k * BF16_WIDTH + LANES);                                  \
        ROWS(rows) {                                                                                                          \
            int32_t pair;                                                                                                     \
            memcpy(&pair, from, sizeof pair);                                                                                 \
            const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);                                                          \
            made[r][0] = _mm512_dpbf16_ps(made[r][0], one, both);                                                             \
            made[r][1] = _mm512_dpbf16_ps(made[r][1], other, both);                                                           \
        }                                                                                                                     \
    }

/* Some rows times `count` pairs of a panel, added to their sums where there are any, and finished where `to` is given. */
#define TILE(rows)                                                                                                            \
    BF16_TARGET static void tile_##rows(const bf16_rows *all, ptrdiff_t row, const uint32_t *panel, ptrdiff_t first,          \
                                        ptrdiff_t count, float *sums, const bf16_columns *to) {                               \
        __m512 made[rows][2];                                                                                                 \
        VECTORS(rows) made[r][v] = first ? _mm512_loadu_ps(sums + (row + r) * BF16_WIDTH + v * LANES) : _mm512_setzero_ps();  \
        if (all->strips) {                                                                                                    \
            const uint16_t *left = all->left + 2 * (row * all->pairs + first * rows);                                         \
            SUMS(rows, left + 2 * (k * rows + r))                                                                             \
        } else {                                                                                                              \
            const uint16_t *left = all->left + row * all->left_row + 2 * first;                                               \
            const ptrdiff_t step = all->left_row;                                                                             \
            SUMS(rows, left + r * step + 2 * k)                                                                               \
        }                                                                                                                     \
        if (!to) {                                                                                                            \
            VECTORS(rows) _mm512_storeu_ps(sums + (row + r) * BF16_WIDTH + v * LANES, made[r][v]);                            \
            return;                                                                                                           \
        }                                                                                                                     \
        if (all->before)                                                                                                      \
            VECTORS(rows) made[r][v] = _mm512_add_ps(made[r][v], bf16_before(all, row + r, to, v));                           \
        ROWS(rows) bf16_finish(all, row + r, to, made[r][0], made[r][1]);                                                     \
    }
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
HEIGHTS(TILE)
#define NAMED(rows) [rows] = tile_##rows,
static void (*const tiles[HEIGHT + 1])(const bf16_rows *, ptrdiff_t, const uint32_t *, ptrdiff_t, ptrdiff_t, float *,
                                       const bf16_columns *) = {HEIGHTS(NAMED)};

/* The rows of the tile that begins at `row`: all of about one height, since one of few rows waits for its sums. */
static ptrdiff_t height(ptrdiff_t all, ptrdiff_t row) {
    const ptrdiff_t tiles_left = (all - row + HEIGHT - 1) / HEIGHT;
    return (all - row + tiles_left - 1) / tiles_left;
}

void bf16_multiply(const bf16_rows *all, uint32_t *panel, ptrdiff_t first, ptrdiff_t count, float *sums, const bf16_columns *to) {
    const bf16_columns *const last = first + count == all->pairs ? to : NULL;
    if (all->tiles) {
        bf16_tiles_multiply(all, panel, first, count, sums, last);
        return;
    }
    for (ptrdiff_t row = 0, rows; row < all->rows; row += rows) {
        rows = height(all->rows, row);
        tiles[rows](all, row, panel, first, count, sums, last);
    }
}

/* The left side with its elements side by side, `row` of them in each with zeros at the end; NULL where there is no memory. */
static uint16_t *packed_left(const gemm_job *job, ptrdiff_t row) {
    uint16_t *made = aligned_alloc(64, ((size_t)(job->rows * row) * sizeof *made + 63) / 64 * 64);
    if (made && job->left_row == 1 && job->left_inner != 1)
        PICK(turn_loops)->turn[1](job->left, job->left_inner * 2, (char *)made, row * 2, job->rows, job->inner);
    for (ptrdiff_t i = 0; made && i < job->rows; i++) {
        const uint16_t *from = (const uint16_t *)job->left + i * job->left_row;
        if (job->left_inner == 1)
            memcpy(made + i * row, from, (size_t)job->inner * sizeof *made);
        else
            for (ptrdiff_t k = 0; job->left_row != 1 && k < job->inner; k++)
                made[i * row + k] = from[k * job->left_inner];
        memset(made + i * row + job->inner, 0, (size_t)(row - job->inner) * sizeof *made);
    }
    return made;
}

/* The pairs of each tile's rows side by side. */
static uint16_t *in_strips(const bf16_rows *rows) {
    uint16_t *made = malloc((size_t)(rows->rows * rows->pairs * 2) * sizeof *made);
    for (ptrdiff_t row = 0, high; made && row < rows->rows; row += high) {
        high = height(rows->rows, row);
        PICK(turn_loops)->turn[2]((const char *)(rows->left + row * rows->left_row), rows->left_row * 2,
                                  (char *)(made + 2 * row * rows->pairs), high * 4, rows->pairs, high);
    }
    return made;
}

bool bf16_left(const gemm_job *job, bool strips, bf16_rows *rows, void **room) {
    rows->pairs = (job->inner + 1) / 2;
    rows->left = job->left;
    rows->left_row = job->left_row;
    rows->tiles = bf16_tiles_take(job->rows);
    *room = NULL;
    strips &= !rows->tiles;
    const ptrdiff_t unit = rows->tiles ? 2 * BF16_STEP : 2, aligned = rows->tiles ? 2 * BF16_STEP : strips ? 2 : 1;
    if (job->left_inner != 1 || job->inner % unit || job->left_row % aligned || (uintptr_t)job->left % (2 * (size_t)aligned)) {
        rows->left_row = (job->inner + unit - 1) / unit * unit;
        if (!(rows->left = *room = packed_left(job, rows->left_row)))
            return false;
    }
    uint16_t *made = strips ? in_strips(rows) : NULL;
    if (made) {
        free(*room);
        rows->left = *room = made;
        rows->strips = true;
    }
    return true;
}

/* Products of matrices */

bool gemm_takes_bf16(const gemm_job *job) {
    return bf16_here() && job->rows * job->columns * job->inner >= WORK;
}

typedef struct {
    const gemm_job *job;
    bf16_rows rows;
    _Atomic bool failed;
} work;

BF16_TARGET void bf16_pack_panel(const gemm_job *job, ptrdiff_t column, ptrdiff_t width, ptrdiff_t first, ptrdiff_t count,
                                 uint32_t *panel) {
    const uint16_t *right = (const uint16_t *)job->right + column * job->right_column + 2 * first * job->right_inner;
    const bool odd = 2 * (first + count) > job->inner;
    const ptrdiff_t whole = odd ? count - 1 : count;
    if (width < BF16_WIDTH || odd)
        memset(panel, 0, (size_t)(count * BF16_WIDTH) * sizeof *panel);
    if (job->right_inner == 1 && job->right_column % 2 == 0 && (uintptr_t)right % 4 == 0) {
        if (whole)
            PICK(turn_loops)->turn[2]((const char *)right, job->right_column * 2, (char *)panel, BF16_WIDTH * 4, whole, width);
    } else if (job->right_column == 1 && width == BF16_WIDTH) {
        for (ptrdiff_t k = 0; k < whole; k++) {
            const uint16_t *at = right + 2 * k * job->right_inner;
            bf16_interleave(_mm512_loadu_si512(at), _mm512_loadu_si512(at + job->right_inner), panel + k * BF16_WIDTH);
        }
    } else {
        for (ptrdiff_t k = 0; k < whole; k++)
            for (ptrdiff_t j = 0; j < width; j++) {
                const uint16_t *at = right + 2 * k * job->right_inner + j * job->right_column;
                panel[k * BF16_WIDTH + j] = at[0] | (uint32_t)at[job->right_inner] << 16;
            }
    }
    for (ptrdiff_t j = 0; odd && j < width; j++)
        panel[whole * BF16_WIDTH + j] = right[2 * whole * job->right_inner + j * job->right_column];
}

static void run_panels(void *context, npy_intp begin, npy_intp end) {
    work *all = context;
    const bf16_rows *rows = &all->rows;
    const ptrdiff_t depth = bf16_depth(rows->pairs), width = BF16_WIDTH;
    const size_t panel_bytes = (size_t)(depth * width) * sizeof(uint32_t);
    char *room = aligned_alloc(64, panel_bytes + (rows->pairs > depth ? (size_t)(rows->rows * width) * sizeof(float) : 0));
    if (!room) {
        all->failed = true;
        return;
    }
    for (npy_intp p = begin; p < end; p++) {
        const ptrdiff_t column = p * width, rest = all->job->columns - column;
        const bf16_columns to = {column, 1, {{column, rest < width ? (1u << rest) - 1 : UINT32_MAX}}};
        for (ptrdiff_t first = 0; first < rows->pairs; first += depth) {
            const ptrdiff_t count = rows->pairs - first < depth ? rows->pairs - first : depth;
            bf16_pack_panel(all->job, column, rest < width ? rest : width, first, count, (uint32_t *)room);
            bf16_multiply(rows, (uint32_t *)room, first, count, (float *)(room + panel_bytes), &to);
        }
    }
    free(room);
}

/* Rows of a block step by step, each a line: rows that lie powers of two apart would fill few sets of the first cache. */
BF16_TARGET static void pack_block(const uint16_t *from, ptrdiff_t from_row, ptrdiff_t rows, ptrdiff_t steps, uint16_t *to) {
    for (ptrdiff_t s = 0; s < steps; s++)
        for (ptrdiff_t r = 0; r < rows; r++)
            _mm512_store_si512(to + (s * BF16_TALL + r) * 2 * BF16_STEP, _mm512_loadu_si512(from + r * from_row + s * 2 * BF16_STEP));
}

/* By tiles: a block of rows after the other meets the panels of a group, each part of the inner dim by itself. */
static void run_groups(void *context, npy_intp begin, npy_intp end) {
    work *all = context;
    const bf16_rows *rows = &all->rows;
    const gemm_job *job = all->job;
    const ptrdiff_t whole = bf16_whole_steps(rows->pairs), width = BF16_WIDTH, square = BF16_TALL * BF16_WIDTH;
    const ptrdiff_t fit = job->rows > BF16_TALL ? GROUP : FEW_GROUP, most = end - begin < fit ? end - begin : fit;
    const ptrdiff_t blocks = TOGETHER / BF16_TALL;
    uint32_t *const packed = aligned_alloc(64, (size_t)((whole * width + blocks * square) * most) * sizeof *packed);
    if (!packed) {
        all->failed = true;
        return;
    }
    float *const sums = (float *)(packed + whole * width * most);
    uint16_t block[BF16_TALL * 2 * TILES_DEPTH] __attribute__((aligned(64)));
    for (npy_intp p = begin; p < end; p += most) {
        const ptrdiff_t group = end - p < most ? end - p : most;
        bf16_columns to[GROUP];
        for (ptrdiff_t g = 0; g < group; g++) {
            const ptrdiff_t column = (p + g) * width, rest = job->columns - column;
            to[g] = (bf16_columns){column, 1, {{column, rest < width ? (1u << rest) - 1 : UINT32_MAX}}};
        }
        for (ptrdiff_t top = 0; top < job->rows; top += TOGETHER)
            for (ptrdiff_t first = 0; first < whole; first += TILES_DEPTH) {
                const ptrdiff_t count = whole - first < TILES_DEPTH ? whole - first : TILES_DEPTH, last = top + TOGETHER;
                const ptrdiff_t some = rows->pairs - first < count ? rows->pairs - first : count;
                uint32_t *const part = packed + first * width * group;
                for (ptrdiff_t g = 0; top == 0 && g < group; g++) {
                    const ptrdiff_t rest = job->columns - to[g].column;
                    uint32_t *const panel = part + g * count * width;
                    bf16_pack_panel(job, to[g].column, rest < width ? rest : width, first, some, panel);
                    memset(panel + some * width, 0, (size_t)((count - some) * width) * sizeof *panel);
                }
                for (ptrdiff_t row = top; row < job->rows && row < last; row += BF16_TALL) {
                    const ptrdiff_t high = job->rows - row < BF16_TALL ? job->rows - row : BF16_TALL;
                    const uint16_t *left = rows->left + row * rows->left_row + 2 * first;
                    ptrdiff_t left_row = rows->left_row, left_step = 2 * BF16_STEP;
                    if (group >= PACKED) {
                        pack_block(left, left_row, high, count / BF16_STEP, block);
                        left = block;
                        left_row = left_step;
                        left_step *= BF16_TALL;
                    }
                    bf16_tiles_begin(high);
                    for (ptrdiff_t g = 0; g < group; g++) {
                        float *const made = sums + ((row - top) / BF16_TALL * group + g) * square;
                        bf16_tiles_add(high, left, left_row, left_step, part + g * count * width, count, first > 0, made, width);
                        if (first + count == whole)
                            bf16_tiles_write(rows, row, high, made, to + g);
                    }
                }
            }
        bf16_tiles_end();
    }
    free(packed);
}

bool gemm_run_bf16(const gemm_job *job) {
    work all = {.job = job,
                .rows = {.rows = job->rows, .before = job->before, .before_row = job->before_row, .before_column = 1,
                         .made = job->made, .made_row = job->made_row}};
    void *room;
    /* One thread would make the strips while the others wait, who then fetch them from its core: 256 x 256 took 102 us on two, and 82 so. */
    const bool strips = native_threads() == 1 && job->columns >= STRIP_COLUMNS && job->rows >= STRIP_ROWS;
    if (!bf16_left(job, strips, &all.rows, &room))
        return false;
    const npy_intp panels = (job->columns + BF16_WIDTH - 1) / BF16_WIDTH, each = job->rows * job->inner * BF16_WIDTH;
    const npy_intp grain = job->rows * job->columns * job->inner < PART ? panels : PART / 4 / each + 1;
    native_parallel(panels, grain, all.rows.tiles ? run_groups : run_panels, &all);
    free(room);
    return !all.failed;
}
#else
bool gemm_takes_bf16(const gemm_job *job) { return false; }
bool gemm_run_bf16(const gemm_job *job) { return false; }
#endif
