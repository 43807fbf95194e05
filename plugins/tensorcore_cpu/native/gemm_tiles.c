/* Products of bfloat16 by the unit that multiplies tiles of 16 rows of 64 bytes (AMX, from the Sapphire Rapids on): sixteen times as
   many multiplications a cycle as the instruction of gemm_bf16.c has. Its sums, too, are floats over pairs in the order of the inner
   dim, and denormals are zeros. The instructions are written out: GCC 12 has a load that does not say that it reads memory. */
#include "gemm_bf16.h"

#include "native.h"

#include <string.h>

#ifdef BF16_TILES
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SIDE = 16, LINE = 64,          /* rows of a tile, bytes of each */
    FEW_ROWS = 3,                  /* under which most of a tile would be empty */
    ASK = 0x1023, TILES_STATE = 18 /* ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA of the system's headers */
};

/* Whether the processor has tiles and the system keeps them for this process, which has to ask once. */
static bool tiles_here(void) {
    static int known = -1;
    if (known < 0) {
        unsigned a, b, c = 0, d = 0;
        uint32_t low = 0, high = 0;
        if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_OSXSAVE)
            __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        const bool kept = (low >> 17 & 3) == 3, has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 22 & 1 && d >> 24 & 1;
        known = kept && has && syscall(SYS_arch_prctl, ASK, TILES_STATE) == 0;
    }
    return known;
}

bool bf16_tiles_take(ptrdiff_t rows) { return rows >= FEW_ROWS && tiles_here(); }

/* Registers: 0 to 3 the sums of a block, two tiles of rows times two of a panel, 4 and 5 its rows, 6 and 7 the panel. */
#define LOAD(tile, from, step) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((ptrdiff_t)(step)) : "memory")
#define STORE(tile, to, step) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((ptrdiff_t)(step)) : "memory")
#define ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::)
#define MULTIPLY(made, left, right) __asm__ volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #made ::)

void bf16_tiles_begin(ptrdiff_t rows) {
    struct {
        uint8_t palette, start, unused[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1};
    const ptrdiff_t first = rows < SIDE ? rows : SIDE, heights[8] = {first, first, rows - first, rows - first,
                                                                     first, rows - first, SIDE, SIDE};
    for (int i = 0; i < 8; i++) {
        shapes.rows[i] = (uint8_t)heights[i];
        shapes.bytes[i] = heights[i] ? LINE : 0;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
}

/* A block of rows, one or two tiles of them, times `count` pairs. */
#define BLOCK(name, second)                                                                                             \
    static void name(const uint16_t *left, ptrdiff_t left_row, ptrdiff_t left_step, const uint32_t *panel,              \
                     ptrdiff_t count, bool more, float *sums, ptrdiff_t sums_row) {                                     \
        const ptrdiff_t step = sums_row * sizeof *sums, line = BF16_WIDTH * sizeof *panel;                              \
        float *const below = sums + SIDE * sums_row;                                                                    \
        if (more) {                                                                                                     \
            LOAD(0, sums, step);                                                                                        \
            LOAD(1, sums + SIDE, step);                                                                                 \
            if (second) {                                                                                               \
                LOAD(2, below, step);                                                                                   \
                LOAD(3, below + SIDE, step);                                                                            \
            }                                                                                                           \
        } else {                                                                                                        \
            ZERO(0);                                                                                                    \
            ZERO(1);                                                                                                    \
            if (second) {                                                                                               \
                ZERO(2);                                                                                                \
                ZERO(3);                                                                                                \
            }                                                                                                           \
        }                                                                                                               \
        for (ptrdiff_t k = 0; k < count; k += BF16_STEP, left += left_step, panel += BF16_STEP * BF16_WIDTH) {          \
            LOAD(6, panel, line);                                                                                       \
            LOAD(4, left, 2 * left_row);                                                                                \
            MULTIPLY(0, 4, 6);                                                                                          \
            LOAD(7, panel + SIDE, line);                                                                                \
            MULTIPLY(1, 4, 7);                                                                                          \
            if (second) {                                                                                               \
                LOAD(5, left + SIDE * left_row, 2 * left_row);                                                          \
                MULTIPLY(2, 5, 6);                                                                                      \
                MULTIPLY(3, 5, 7);                                                                                      \
            }                                                                                                           \
        }                                                                                                               \
        STORE(0, sums, step);                                                                                           \
        STORE(1, sums + SIDE, step);                                                                                    \
        if (second) {                                                                                                   \
            STORE(2, below, step);                                                                                      \
            STORE(3, below + SIDE, step);                                                                               \
        }                                                                                                               \
    }
BLOCK(one_tile, false)
BLOCK(two_tiles, true)

void bf16_tiles_add(ptrdiff_t rows, const uint16_t *left, ptrdiff_t left_row, ptrdiff_t left_step, const uint32_t *panel,
                    ptrdiff_t pairs, bool more, float *sums, ptrdiff_t sums_row) {
    (rows > SIDE ? two_tiles : one_tile)(left, left_row, left_step, panel, pairs, more, sums, sums_row);
}

void bf16_tiles_end(void) { __asm__ volatile("tilerelease" ::); }

BF16_TARGET void bf16_tiles_write(const bf16_rows *all, ptrdiff_t row, ptrdiff_t rows, const float *sums, const bf16_columns *to) {
    for (ptrdiff_t r = 0; r < rows; r++, sums += BF16_WIDTH) {
        __m512 low = _mm512_loadu_ps(sums), high = _mm512_loadu_ps(sums + SIDE);
        if (all->before) {
            low = _mm512_add_ps(low, bf16_before(all, row + r, to, 0));
            high = _mm512_add_ps(high, bf16_before(all, row + r, to, 1));
        }
        bf16_finish(all, row + r, to, low, high);
    }
}

void bf16_tiles_multiply(const bf16_rows *all, uint32_t *panel, ptrdiff_t first, ptrdiff_t count, float *sums,
                         const bf16_columns *to) {
    float made[BF16_TALL * BF16_WIDTH] __attribute__((aligned(LINE)));
    const ptrdiff_t whole = bf16_whole_steps(count);
    ptrdiff_t begun = 0;
    memset(panel + count * BF16_WIDTH, 0, (size_t)((whole - count) * BF16_WIDTH) * sizeof *panel);
    for (ptrdiff_t row = 0, rows; row < all->rows; row += rows) {
        rows = all->rows - row < BF16_TALL ? all->rows - row : BF16_TALL;
        if (rows != begun)
            bf16_tiles_begin(begun = rows);
        float *const at = first || !to ? sums + row * BF16_WIDTH : made;
        bf16_tiles_add(rows, all->left + row * all->left_row + 2 * first, all->left_row, 2 * BF16_STEP, panel, whole, first > 0, at, BF16_WIDTH);
        if (to)
            bf16_tiles_write(all, row, rows, at, to);
    }
    bf16_tiles_end();
}
#elif defined(BF16_PAIRS)
bool bf16_tiles_take(ptrdiff_t rows) { return false; }
void bf16_tiles_multiply(const bf16_rows *all, uint32_t *panel, ptrdiff_t first, ptrdiff_t count, float *sums,
                         const bf16_columns *to) {}
void bf16_tiles_begin(ptrdiff_t rows) {}
void bf16_tiles_add(ptrdiff_t rows, const uint16_t *left, ptrdiff_t left_row, ptrdiff_t left_step, const uint32_t *panel,
                    ptrdiff_t pairs, bool more, float *sums, ptrdiff_t sums_row) {}
void bf16_tiles_end(void) {}
void bf16_tiles_write(const bf16_rows *all, ptrdiff_t row, ptrdiff_t rows, const float *sums, const bf16_columns *to) {}
#endif
