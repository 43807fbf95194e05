/* Products of floats by the unit that multiplies tiles of bfloat16 (AMX): a float is the sum of three numbers of eight bits, its high,
   middle and low part, so that a product of two floats is the sum of nine of theirs. The three smallest are left out: together they are at
   most 2^-24 of it, by which rounding may change a float as well (Henry, Tang and Heinecke 2019, "Leveraging the bfloat16 Artificial
   Intelligence Datatype For Higher-Precision Computations"). Sums are floats; errors are half of those of sums in single precision, since
   the unit adds two exact products at a time. Denormals are zeros to it: blocks of very large or small numbers are scaled by powers of
   two meanwhile, and where some are too small beside others, the product is left to those who have such. */
#include "gemm_thirds.h"

#include "gemm_bf16.h"
#include "native.h"
#include "turn.h"

#include <stdlib.h>
#include <string.h>

static bool wanted = true;
static bool are_here(void);

PyObject *native_thirds(PyObject *module, PyObject *wants) {
    if (wants != Py_None)
        wanted = wants == Py_True;
    return PyBool_FromLong(wanted && are_here());
}

#ifdef BF16_TILES
DECLARE_LOOPS(turn_loops, turn_loops);

enum {
    LINE = 64, LANES = 16,    /* bytes, and floats of a vector */
    SIDE = 32,                /* rows of a block, columns of a panel: two tiles of */
    STEP = 32,                /* numbers of the inner dim each, */
    THIRD = SIDE * LINE,      /* bytes of a step of one third of a block, and of all three */
    STEP_BYTES = 3 * THIRD,
    DEPTH = 128,              /* of the inner dim that go together: a block and a panel of it stay in the first cache, */
    GROUP = 32,               /* and so many panels in the second one */
    LARGEST = 58, LEAST = -50, /* powers of two between which numbers have to be, if only scaled by another: sums of their products are
                                 finite, and no part of one is a denormal */
    DENORMAL = -149,          /* of the least float */
    NEAR = 1 << 16,           /* bytes of room on the stack */
    FAR = 1 << 18,            /* and of a left side that is fetched ahead */
    LEAST_SIDE = 96, LEAST_SHORT = 48, SHORT = 128, /* rows and columns from which on this pays, also where the inner dim is short */
    INFINITE = 0x7f800000,    /* the bits of a float from which on it is not finite */
};

/* A block of one side: the thirds of each step one after the other, and the power of two by which they are scaled. */
typedef struct {
    char *thirds;
    int power;
} block;

/* Packing */

/* Bits of the largest of numbers, taken without their signs, and of the least that is not zero, less one: lane by lane. */
typedef struct {
    __m512i most, least;
} range;

/* The power of two by which numbers of a range are scaled, zero for most. Answers false where one is not finite, or some are too small
   beside others. */
BF16_TARGET static bool power_for(range of, int *power) {
    const uint32_t bits = _mm512_reduce_max_epu32(of.most);
    const int most = (int)(bits >> 23) - 127, field = (int)(_mm512_reduce_min_epu32(of.least) >> 23); /* 511 where all are zeros */
    const int least = field ? field - 127 : DENORMAL;
    *power = most < LARGEST && least >= LEAST ? 0 : (int)at_most(LARGEST - 1 - most, 127);
    return bits < INFINITE && least + *power >= LEAST;
}

/* `some` floats, zeros behind them. */
BF16_INLINE __m512 some_floats(const float *from, ptrdiff_t some) {
    const __mmask16 in = some >= LANES ? UINT16_MAX : (__mmask16)((1u << at_least(some, 0)) - 1);
    return _mm512_maskz_loadu_ps(in, from);
}

/* The parts of numbers, each as a float whose last 16 bits are zeros: rounded ones, so that what is left is small. */
typedef struct {
    __m512i part[3];
} parts;

BF16_INLINE parts parts_in(__m512 x) {
    const __m512i half = _mm512_set1_epi32(1 << 15), kept = _mm512_set1_epi32(-(1 << 16));
    const __m512i high = _mm512_and_si512(_mm512_add_epi32((__m512i)x, half), kept);
    const __m512 rest = _mm512_sub_ps(x, (__m512)high);
    const __m512i middle = _mm512_and_si512(_mm512_add_epi32((__m512i)rest, half), kept);
    return (parts){{high, middle, (__m512i)_mm512_sub_ps(rest, (__m512)middle)}};
}

/* Stores the thirds of two vectors, one in the first half of each pair and one in the second, as a line of each; as they are and with their
   range, or times a factor. */
BF16_INLINE void store_thirds(__m512 one, __m512 other, char *to, bool scaled, __m512 factor, range *found) {
    if (!scaled) {
        const __m512i sign = _mm512_set1_epi32(INT32_MIN), last = _mm512_set1_epi32(-1);
        const __m512i size = _mm512_andnot_si512(sign, (__m512i)one), next = _mm512_andnot_si512(sign, (__m512i)other);
        found->most = _mm512_max_epu32(found->most, _mm512_max_epu32(size, next));
        found->least = _mm512_min_epu32(found->least, _mm512_min_epu32(_mm512_add_epi32(size, last), _mm512_add_epi32(next, last)));
    }
    const parts first = parts_in(scaled ? _mm512_mul_ps(one, factor) : one);
    const parts second = parts_in(scaled ? _mm512_mul_ps(other, factor) : other);
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        _mm512_store_si512(to + i * THIRD,
                           _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(first.part[i], 16), second.part[i]));
}

/* Rows of numbers whose `count` of the inner dim lie side by side. Pairs are of numbers half a step apart. */
BF16_INLINE void pack_rows(const float *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t count, char *thirds, bool scaled, __m512 factor,
                           range *found) {
    for (ptrdiff_t r = 0; r < rows; r++, from += row) {
        char *to = thirds + r * LINE;
        ptrdiff_t k = 0;
        for (; k + STEP <= count; k += STEP, to += STEP_BYTES)
            store_thirds(_mm512_loadu_ps(from + k), _mm512_loadu_ps(from + k + LANES), to, scaled, factor, found);
        if (k < count)
            store_thirds(some_floats(from + k, count - k), some_floats(from + k + LANES, count - k - LANES), to, scaled, factor, found);
    }
}

/* Of complex numbers a + bi, -b and a: i times them. */
BF16_INLINE __m512 turned_round(__m512 x) {
    const __m512i signs = _mm512_set1_epi64(1LL << 31);
    return (__m512)_mm512_xor_si512((__m512i)_mm512_permute_ps(x, 0xb1), signs);
}

/* Columns of numbers that lie side by side in each of `count` rows of the inner dim, or in half of them where they are pairs (gemm.h); those
   of the next panel come from memory meanwhile. */
BF16_INLINE void pack_columns(const float *from, ptrdiff_t row, ptrdiff_t columns, ptrdiff_t count, bool pairs, char *thirds, bool scaled,
                              __m512 factor, range *found) {
    const __m512 zero = _mm512_setzero_ps();
    for (ptrdiff_t k = 0; k < count; k += STEP, thirds += STEP_BYTES)
        for (ptrdiff_t j = 0; j < STEP / 2; j++) {
            const float *one = from + (pairs ? (k + j) / 2 : k + j) * row, *other = one + (pairs ? STEP / 4 : STEP / 2) * row;
            const bool first = k + j < count, second = k + j + STEP / 2 < count;
            for (int v = 0; v < 2 && v * LANES < columns; v++) {
                __m512 x = first ? some_floats(one + v * LANES, columns - v * LANES) : zero;
                __m512 y = second ? some_floats(other + v * LANES, columns - v * LANES) : zero;
                if (pairs && j % 2) {
                    x = turned_round(x);
                    y = turned_round(y);
                }
                store_thirds(x, y, thirds + j * LINE + v * (THIRD / 2), scaled, factor, found);
            }
            for (ptrdiff_t line = 0; !scaled && line < SIDE; line += LANES) {
                __builtin_prefetch(one + SIDE + line, 0, 2);
                __builtin_prefetch(other + SIDE + line, 0, 2);
            }
        }
}

/* Numbers of any steps as rows of `wide` side by side, in the room. */
static const float *side_by_side(const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t rows, ptrdiff_t columns, float *room,
                                 ptrdiff_t wide) {
    if (row == 1)
        PICK(turn_loops)->turn[2]((const char *)from, column * (ptrdiff_t)sizeof *from, (char *)room, wide * (ptrdiff_t)sizeof *room, rows,
                                  columns);
    else
        for (ptrdiff_t r = 0; r < rows; r++)
            for (ptrdiff_t c = 0; c < columns; c++)
                room[r * wide + c] = from[r * row + c * column];
    return room;
}

/* A block of rows and a panel of columns, as they are or scaled; false where they cannot be. */
BF16_TARGET static bool pack_left(const gemm_job *job, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t first, ptrdiff_t count, float *room,
                                  block *made) {
    const float *from = (const float *)job->left + row * job->left_row + first * job->left_inner;
    ptrdiff_t step = job->left_row;
    if (job->left_inner != 1)
        from = side_by_side(from, job->left_row, job->left_inner, rows, count, room, step = DEPTH);
    const __m512 one = _mm512_set1_ps(1);
    range found = {_mm512_setzero_si512(), _mm512_set1_epi32(-1)};
    pack_rows(from, step, rows, count, made->thirds, false, one, &found);
    const bool good = power_for(found, &made->power);
    if (good && made->power)
        pack_rows(from, step, rows, count, made->thirds, true, _mm512_scalef_ps(one, _mm512_set1_ps((float)made->power)), &found);
    return good;
}

BF16_TARGET static bool pack_right(const gemm_job *job, ptrdiff_t column, ptrdiff_t columns, ptrdiff_t first, ptrdiff_t count, float *room,
                                   block *made) {
    const float *from = (const float *)job->right + (job->pairs ? column + first / 2 * job->right_inner
                                                                : column * job->right_column + first * job->right_inner);
    ptrdiff_t step = job->right_inner;
    if (job->right_column != 1 && !job->pairs)
        from = side_by_side(from, job->right_inner, job->right_column, count, columns, room, step = SIDE);
    const __m512 one = _mm512_set1_ps(1);
    range found = {_mm512_setzero_si512(), _mm512_set1_epi32(-1)};
    pack_columns(from, step, columns, count, job->pairs, made->thirds, false, one, &found);
    const bool good = power_for(found, &made->power);
    if (good && made->power)
        pack_columns(from, step, columns, count, job->pairs, made->thirds, true,
                     _mm512_scalef_ps(one, _mm512_set1_ps((float)made->power)), &found);
    return good;
}

/* The g-th of so many shares of a block of rows on its way from memory. */
static void fetch_left(const gemm_job *job, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t first, ptrdiff_t count, ptrdiff_t g,
                       ptrdiff_t shares) {
    const char *from = (const char *)((const float *)job->left + row * job->left_row + first * job->left_inner);
    const bool beside = job->left_inner == 1;
    const ptrdiff_t lines = beside ? rows : count, bytes = (beside ? count : rows) * (ptrdiff_t)sizeof(float);
    const ptrdiff_t step = (beside ? job->left_row : job->left_inner) * (ptrdiff_t)sizeof(float);
    for (ptrdiff_t i = g * lines / shares; i < (g + 1) * lines / shares; i++)
        for (ptrdiff_t at = 0; at < bytes; at += LINE)
            __builtin_prefetch(from + i * step + at, 0, 2);
}

/* Tiles

   Registers: 0 to 3 the sums of a block, two tiles of rows times two of columns, 4 and 5 its rows, 6 and 7 its columns. */
#define LOAD(tile, from, step) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((ptrdiff_t)(step)) : "memory")
#define STORE(tile, to, step) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((ptrdiff_t)(step)) : "memory")
#define ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::)
#define MULTIPLY(made, left, right) __asm__ volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #made ::)

#define ROWS(third)                                      \
    LOAD(4, left + third * THIRD, LINE);                 \
    if (tall)                                            \
        LOAD(5, left + third * THIRD + THIRD / 2, LINE);
#define COLUMNS(third)                                    \
    LOAD(6, right + third * THIRD, LINE);                 \
    if (wide)                                             \
        LOAD(7, right + third * THIRD + THIRD / 2, LINE);
#define ADD                \
    MULTIPLY(0, 4, 6);     \
    if (wide)              \
        MULTIPLY(1, 4, 7); \
    if (tall)              \
        MULTIPLY(2, 5, 6); \
    if (tall && wide)      \
        MULTIPLY(3, 5, 7);

/* One or two tiles of rows times one or two of columns, added to what was there before unless that is NULL. */
__attribute__((always_inline)) static inline void multiply(const char *left, const char *right, ptrdiff_t steps, const float *before,
                                                           ptrdiff_t before_row, float *made, ptrdiff_t made_row, bool tall, bool wide) {
    const ptrdiff_t step = made_row * (ptrdiff_t)sizeof *made, before_step = before_row * (ptrdiff_t)sizeof *made;
    if (before) {
        LOAD(0, before, before_step);
        LOAD(1, before + LANES, before_step);
        LOAD(2, before + LANES * before_row, before_step);
        LOAD(3, before + LANES * before_row + LANES, before_step);
    } else {
        ZERO(0);
        ZERO(1);
        ZERO(2);
        ZERO(3);
    }
    for (ptrdiff_t s = 0; s < steps; s++, left += STEP_BYTES, right += STEP_BYTES) {
        COLUMNS(2) ROWS(0) ADD
        COLUMNS(1) ADD
        ROWS(1) ADD
        COLUMNS(0) ADD
        ROWS(2) ADD
        ROWS(0) ADD
    }
    STORE(0, made, step);
    if (wide)
        STORE(1, made + LANES, step);
    if (tall)
        STORE(2, made + LANES * made_row, step);
    if (tall && wide)
        STORE(3, made + LANES * made_row + LANES, step);
}

static void begin_tiles(void) {
    struct {
        uint8_t palette, start, unused[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.rows[i] = LANES;
        shapes.bytes[i] = LINE;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
}

/* A block of a thread's part: where it is, and what it is added to. */
typedef struct {
    ptrdiff_t rows, columns, before_row, made_row;
    const float *before; /* NULL for zeros */
    float *made;
} place;

/* Adds sums, which are `power` powers of two too large, to what was there before. */
BF16_TARGET static void add_sums(const place *to, int power, const float *sums) {
    const __m512 back = _mm512_set1_ps((float)-power);
    for (ptrdiff_t r = 0; r < to->rows; r++, sums += SIDE)
        for (ptrdiff_t j = 0; j < to->columns; j += LANES) {
            const __mmask16 in = to->columns - j < LANES ? (__mmask16)((1u << (to->columns - j)) - 1) : UINT16_MAX;
            __m512 sum = _mm512_scalef_ps(_mm512_load_ps(sums + j), back);
            if (to->before)
                sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(in, to->before + r * to->before_row + j));
            _mm512_mask_storeu_ps(to->made + r * to->made_row + j, in, sum);
        }
}

static void multiply_block(const block *left, const block *right, ptrdiff_t steps, const place *to, float *sums) {
    const bool tall = to->rows > LANES, wide = to->columns > LANES, whole = to->rows == SIDE && to->columns == SIDE;
    if (whole && !left->power && !right->power) {
        multiply(left->thirds, right->thirds, steps, to->before, to->before_row, to->made, to->made_row, true, true);
        return;
    }
    if (tall && wide)
        multiply(left->thirds, right->thirds, steps, NULL, 0, sums, SIDE, true, true);
    else if (tall)
        multiply(left->thirds, right->thirds, steps, NULL, 0, sums, SIDE, true, false);
    else
        multiply(left->thirds, right->thirds, steps, NULL, 0, sums, SIDE, false, wide);
    add_sums(to, left->power + right->power, sums);
}

/* A thread's part: all columns with some blocks of rows, or all rows with some panels. */
typedef struct {
    const gemm_job *job;
    bool by_rows;
    ptrdiff_t depth;
    _Atomic bool failed;
} work;

static void run_part(void *context, npy_intp begin, npy_intp end) {
    work *all = context;
    const gemm_job *job = all->job;
    const ptrdiff_t depth = all->depth, bytes = depth / STEP * STEP_BYTES, panels = at_most(GROUP, parts_of(job->columns, SIDE));
    const ptrdiff_t top = all->by_rows ? begin * SIDE : 0, bottom = all->by_rows ? at_most(end * SIDE, job->rows) : job->rows;
    const ptrdiff_t from = all->by_rows ? 0 : begin * SIDE, to = all->by_rows ? job->columns : at_most(end * SIDE, job->columns);
    const size_t total = (size_t)(bytes * (panels + 1)) + (SIDE * SIDE + SIDE * DEPTH) * sizeof(float);
    char near[NEAR] __attribute__((aligned(LINE))), *const room = total <= NEAR ? near : native_scratch(total);
    if (!room) {
        all->failed = true;
        return;
    }
    float *const sums = (float *)(room + bytes * (panels + 1)), *const turned = sums + SIDE * SIDE;
    block left = {room, 0}, right[GROUP];
    for (ptrdiff_t g = 0; g < panels; g++)
        right[g].thirds = room + (g + 1) * bytes;
    const bool fetches = (bottom - top) * job->inner * (ptrdiff_t)sizeof(float) >= FAR;
    begin_tiles();
    for (ptrdiff_t column = from; column < to; column += panels * SIDE)
        for (ptrdiff_t first = 0; first < job->inner && !all->failed; first += depth) {
            const ptrdiff_t count = at_most(depth, job->inner - first), steps = parts_of(count, STEP);
            const ptrdiff_t wide = at_most(panels * SIDE, to - column);
            const float *const before = first ? job->made : job->before;
            const ptrdiff_t before_row = first ? job->made_row : job->before_row;
            for (ptrdiff_t g = 0; g * SIDE < wide; g++)
                if (!pack_right(job, column + g * SIDE, at_most(SIDE, wide - g * SIDE), first, count, turned, &right[g]))
                    all->failed = true;
            for (ptrdiff_t row = top; row < bottom && !all->failed; row += SIDE) {
                const ptrdiff_t rows = at_most(SIDE, bottom - row);
                if (!pack_left(job, row, rows, first, count, turned, &left))
                    all->failed = true;
                for (ptrdiff_t g = 0; g * SIDE < wide; g++) {
                    const ptrdiff_t at = column + g * SIDE;
                    const place here = {rows, at_most(SIDE, wide - g * SIDE), before_row, job->made_row,
                                        before ? before + row * before_row + at : NULL, (float *)job->made + row * job->made_row + at};
                    if (row + SIDE < bottom && fetches)
                        fetch_left(job, row + SIDE, at_most(SIDE, bottom - row - SIDE), first, count, g, parts_of(wide, SIDE));
                    multiply_block(&left, &right[g], steps, &here, sums);
                }
            }
        }
    bf16_tiles_end();
    if (room != near)
        native_scratch_free(room, total);
}

static bool are_here(void) { return bf16_here() && bf16_tiles_take(SIDE); }

bool gemm_takes_thirds(const gemm_job *job) {
    const ptrdiff_t least = at_most(job->rows, job->columns);
    return wanted && least >= (job->inner > SHORT ? LEAST_SIDE : LEAST_SHORT) && are_here() && job->before != job->made;
}

bool gemm_run_thirds(const gemm_job *job) {
    const ptrdiff_t parts = parts_of(job->inner, DEPTH), threads = native_threads();
    work all = {.job = job, .by_rows = job->rows >= job->columns, .depth = rounded_up(parts_of(job->inner, parts), STEP)};
    const ptrdiff_t units = parts_of(all.by_rows ? job->rows : job->columns, SIDE);
    native_parallel(units, job->rows * job->columns * job->inner < GEMM_WORK ? units : parts_of(units, threads), run_part, &all);
    return !all.failed;
}
#else
static bool are_here(void) { return false; }
bool gemm_takes_thirds(const gemm_job *job) { return false; }
bool gemm_run_thirds(const gemm_job *job) { return false; }
#endif
