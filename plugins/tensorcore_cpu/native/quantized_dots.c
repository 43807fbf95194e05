/* Products of bytes by the instruction that adds four of them to an int at once (AVX512_VNNI, from the Zen 4 and the Cascade Lake on). */
#include "native.h"
#include "quantized.h"
#include "turn.h"

#include <string.h>

#if defined(NATIVE_X86) && (defined(__clang__) ? __clang_major__ >= 7 : __GNUC__ >= 8)
#include <cpuid.h>
#include <immintrin.h>

#define DOTS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define DOTS_INLINE DOTS __attribute__((always_inline)) static inline
/* Sums are vectors of ints to the compiler too: of __m512i, which are its vectors of longs, GCC keeps copies in memory. */
typedef int32_t vints __attribute__((vector_size(64)));
#define DOT(sum, bytes, signed_bytes) ((sum) = (vints)_mm512_dpbusd_epi32((__m512i)(sum), bytes, signed_bytes))
#define EACH(i, count) _Pragma("GCC unroll 16") for (int i = 0; i < (count); i++)

DECLARE_LOOPS(turn_loops, turn_loops);

enum {
    BYTES = 64, LANES = 16,  /* of a vector, and ints */
    SUMS = 16, ROWS = 4,     /* of a tile, each a vector of its own; its rows */
    WIDTH = 32, HEIGHT = 12, /* columns of a panel; rows that go by one at a time */
};

bool int8_dots_here(void) {
    unsigned a, b, c = 0, d;
    static int known = -1;
    if (known < 0)
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 11 & 1;
    return known && native_chosen_isa == ISA_AVX512;
}

/* Sums of `rows` rows by `columns` columns that lie `apart` bytes from one to the next. The instruction takes a byte without a sign
   and one with: the weight goes 128 up, and 128 times a row's total is taken off in the end. What is over 32 bits meanwhile wraps, and
   comes back. */
DOTS_INLINE void add(vints *sums, const int8_t *left, ptrdiff_t row, const int8_t *weight, ptrdiff_t apart, ptrdiff_t inner,
                     const int rows, const int columns) {
    const __m512i up = _mm512_set1_epi8((char)0x80);
    __m512i right[8];
    EACH(i, rows * columns) sums[i] = (vints){0};
    ptrdiff_t k = 0;
    for (; k + BYTES <= inner; k += BYTES) {
        EACH(c, columns) right[c] = _mm512_xor_si512(_mm512_loadu_si512(weight + c * apart + k), up);
        EACH(r, rows) {
            const __m512i one = _mm512_loadu_si512(left + r * row + k);
            EACH(c, columns) DOT(sums[r * columns + c], right[c], one);
        }
    }
    if (k < inner) { /* the left side goes on with zeros */
        const __mmask64 some = ((__mmask64)1 << (inner - k)) - 1;
        EACH(c, columns) right[c] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, weight + c * apart + k), up);
        EACH(r, rows) {
            const __m512i one = _mm512_loadu_si512(left + r * row + k);
            EACH(c, columns) DOT(sums[r * columns + c], right[c], one);
        }
    }
}

/* The total of each of sixteen vectors, in its place. */
DOTS_INLINE __m512i totals(const vints *x) {
    __m512i two[8], four[4], half[2];
    EACH(i, 8) {
        const __m512i one = (__m512i)x[2 * i], other = (__m512i)x[2 * i + 1];
        two[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(one, other), _mm512_unpackhi_epi32(one, other));
    }
    EACH(i, 4) four[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(two[2 * i], two[2 * i + 1]),
                                          _mm512_unpackhi_epi64(two[2 * i], two[2 * i + 1]));
    EACH(i, 2) half[i] = _mm512_add_epi32(_mm512_shuffle_i32x4(four[2 * i], four[2 * i + 1], 0x88),
                                          _mm512_shuffle_i32x4(four[2 * i], four[2 * i + 1], 0xdd));
    return _mm512_add_epi32(_mm512_shuffle_i32x4(half[0], half[1], 0x88), _mm512_shuffle_i32x4(half[0], half[1], 0xdd));
}

/* Of instructions that name their rounding: those are not made one of, so that a product and a sum stay two roundings. */
enum { ROUNDED = _MM_FROUND_CUR_DIRECTION };

/* What the whole numbers of columns are worth. */
DOTS_INLINE __m512 factors(const int8_product *all, __mmask16 there, ptrdiff_t column) {
    const __m512 scale = all->each ? _mm512_maskz_loadu_ps(there, all->scale + column) : _mm512_set1_ps(*all->scale);
    return _mm512_mul_round_ps(scale, _mm512_set1_ps(all->step), ROUNDED);
}

/* Sixteen sums, row by row of `columns`, of which `there` exist, scaled and written. */
DOTS_INLINE void finish(const int8_product *all, const vints *sums, ptrdiff_t row, ptrdiff_t column, ptrdiff_t there, const int rows,
                        const int columns) {
    const __mmask16 some = (__mmask16)((1u << there) - 1);
    const __m512i places = _mm512_and_si512(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                            _mm512_set1_epi32(columns - 1));
    int32_t off[SUMS];
    EACH(i, SUMS) off[i] = i / columns < rows ? (int32_t)((uint32_t)all->totals[row + i / columns] << 7) : 0;
    const __m512 factor = _mm512_permutexvar_ps(places, factors(all, some, column));
    const __m512i whole = _mm512_sub_epi32(totals(sums), _mm512_loadu_si512(off));
    __m512 made = _mm512_mul_round_ps(_mm512_cvtepi32_ps(whole), factor, ROUNDED);
    if (all->bias)
        made = _mm512_add_round_ps(made, _mm512_permutexvar_ps(places, _mm512_maskz_loadu_ps(some, all->bias + column)), ROUNDED);
    float *to = all->made + row * all->columns + column;
    EACH(r, rows) _mm512_mask_storeu_ps(to + r * all->columns - r * columns, (__mmask16)(some << (r * columns)), made);
}

/* A tile of rows by columns that all exist. */
#define TILE(rows, columns)                                                                                                   \
    DOTS static void tile_##rows(const int8_product *all, ptrdiff_t row, ptrdiff_t column) {                                  \
        vints sums[SUMS];                                                                                                   \
        EACH(i, SUMS) sums[i] = (vints){0};                                                                       \
        add(sums, (const int8_t *)all->left + row * all->row, all->row, all->weight + column * all->inner, all->inner,         \
            all->inner, rows, columns);                                                                                       \
        finish(all, sums, row, column, columns, rows, columns);                                                               \
    }
TILE(2, 8)
TILE(3, 4)
TILE(4, 4)

/* One row: columns by eight, whose places in memory there are registers for. */
DOTS static void tile_1(const int8_product *all, ptrdiff_t row, ptrdiff_t column) {
    vints sums[SUMS];
    const int8_t *left = (const int8_t *)all->left + row * all->row, *weight = all->weight + column * all->inner;
    add(sums, left, all->row, weight, all->inner, all->inner, 1, 8);
    add(sums + 8, left, all->row, weight + 8 * all->inner, all->inner, all->inner, 1, 8);
    finish(all, sums, row, column, SUMS, 1, SUMS);
}

/* Up to four rows by one column. */
DOTS static void tile_last(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column) {
    for (; row < last; row++) {
        vints sums[SUMS];
        EACH(i, SUMS) sums[i] = (vints){0};
        add(sums, (const int8_t *)all->left + row * all->row, all->row, all->weight + column * all->inner, all->inner, all->inner, 1, 1);
        finish(all, sums, row, column, 1, 1, SUMS);
    }
}

static void multiply_few(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t end) {
    static void (*const tiles[])(const int8_product *, ptrdiff_t, ptrdiff_t) = {NULL, tile_1, tile_2, tile_3, tile_4};
    static const int widths[] = {0, 16, 8, 4, 4};
    for (ptrdiff_t next; column < end; column = next) { /* so many columns stay in the first cache while the rows go by */
        next = end - column < SUMS ? end : column + SUMS;
        for (ptrdiff_t i = row, rows; i < last; i += rows) {
            ptrdiff_t j = column;
            rows = last - i < ROWS ? last - i : ROWS;
            for (; j + widths[rows] <= next; j += widths[rows])
                tiles[rows](all, i, j);
            for (; j < next; j++)
                tile_last(all, i, i + rows, j);
        }
    }
}

/* Many rows: the weight is packed into panels, four bytes of one column beside those of the next, so that each lane has the sum of its
   own column, and a sum's vectors need not be added up. */

typedef struct {
    const int8_product *of;
    const int8_t *panel;
    ptrdiff_t fours, column;
    __mmask16 there[2];
    __m512 factor[2], bias[2];
} panel_run;

static void pack(const int8_product *all, ptrdiff_t column, ptrdiff_t width, int8_t *panel) {
    const int8_t *from = all->weight + column * all->inner;
    const ptrdiff_t whole = all->inner / 4, rest = all->inner % 4;
    if (width < WIDTH || rest)
        memset(panel, 0, (size_t)((all->inner + 3) / 4 * WIDTH * 4));
    if (all->inner % 4 == 0 && (uintptr_t)from % 4 == 0)
        PICK(turn_loops)->turn[2]((const char *)from, all->inner, (char *)panel, WIDTH * 4, whole, width);
    else
        for (ptrdiff_t j = 0; j < width; j++) {
            for (ptrdiff_t k = 0; k < whole; k++)
                memcpy(panel + (k * WIDTH + j) * 4, from + j * all->inner + k * 4, 4);
            memcpy(panel + (whole * WIDTH + j) * 4, from + j * all->inner + whole * 4, (size_t)rest);
        }
}

#define PANEL(rows)                                                                                                           \
    DOTS static void panel_##rows(const panel_run *run, ptrdiff_t row) {                                                      \
        const int8_product *of = run->of;                                                                                     \
        const int8_t *left = (const int8_t *)of->left + row * of->row;                                                        \
        const __m512i up = _mm512_set1_epi8((char)0x80);                                                                      \
        vints sums[rows][2];                                                                                                  \
        EACH(r, rows) EACH(v, 2) sums[r][v] = (vints){0} - (int32_t)((uint32_t)of->totals[row + r] << 7);                     \
        for (ptrdiff_t k = 0; k < run->fours; k++) {                                                                          \
            const __m512i one = _mm512_xor_si512(_mm512_loadu_si512(run->panel + k * WIDTH * 4), up);                         \
            const __m512i other = _mm512_xor_si512(_mm512_loadu_si512(run->panel + k * WIDTH * 4 + BYTES), up);               \
            EACH(r, rows) {                                                                                                   \
                int32_t four;                                                                                                 \
                memcpy(&four, left + r * of->row + k * 4, sizeof four);                                                       \
                DOT(sums[r][0], one, _mm512_set1_epi32(four));                                                                \
                DOT(sums[r][1], other, _mm512_set1_epi32(four));                                                              \
            }                                                                                                                 \
        }                                                                                                                     \
        EACH(r, rows) EACH(v, 2) {                                                                                            \
            __m512 made = _mm512_mul_round_ps(_mm512_cvtepi32_ps((__m512i)sums[r][v]), run->factor[v], ROUNDED);                       \
            if (of->bias)                                                                                                     \
                made = _mm512_add_round_ps(made, run->bias[v], ROUNDED);                                                      \
            _mm512_mask_storeu_ps(of->made + (row + r) * of->columns + run->column + v * LANES, run->there[v], made);         \
        }                                                                                                                     \
    }
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
HEIGHTS(PANEL)
#define NAMED(rows) [rows] = panel_##rows,

DOTS static void multiply_panel(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t width, int8_t *room) {
    static void (*const panels[HEIGHT + 1])(const panel_run *, ptrdiff_t) = {HEIGHTS(NAMED)};
    panel_run run = {.of = all, .panel = room, .fours = (all->inner + 3) / 4, .column = column};
    pack(all, column, width, room);
    for (int v = 0; v < 2; v++) {
        const ptrdiff_t some = width - v * LANES < 0 ? 0 : width - v * LANES < LANES ? width - v * LANES : LANES;
        const ptrdiff_t at = column + (some ? v * LANES : 0);
        run.there[v] = (__mmask16)((1u << some) - 1);
        run.factor[v] = factors(all, run.there[v], at);
        run.bias[v] = all->bias ? _mm512_maskz_loadu_ps(run.there[v], all->bias + at) : _mm512_setzero_ps();
    }
    for (ptrdiff_t rows; row < last; row += rows) { /* heights of about one size: few rows wait for their sums */
        const ptrdiff_t left = (last - row + HEIGHT - 1) / HEIGHT;
        rows = (last - row + left - 1) / left;
        panels[rows](&run, row);
    }
}

/* Whether so few rows go without panels: to pack one takes about as long as the totals of that many. 16 rows of 1024 by 1024 columns took
   87 us so on a Zen 4, and 118 by panels. */
static bool is_few(ptrdiff_t rows, ptrdiff_t inner) { return rows <= 4 + inner / 64; }

void int8_multiply_dots(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t end) {
    const size_t size = (size_t)(all->inner + 3) / 4 * WIDTH * 4;
    int8_t *room = is_few(last - row, all->inner) ? NULL : native_scratch(size);
    if (!room)
        multiply_few(all, row, last, column, end);
    for (; room && column < end; column += WIDTH)
        multiply_panel(all, row, last, column, end - column < WIDTH ? end - column : WIDTH, room);
    if (room)
        native_scratch_free(room, size);
}
#else
bool int8_dots_here(void) { return false; }
void int8_multiply_dots(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t end) {}
#endif
