/* Products of floats by the unit that multiplies tiles of bfloat16 (AMX): a float is the sum of three numbers of eight bits, its high,
   middle and low part, so that a product of two floats is the sum of nine of theirs. The three smallest are left out: together they are at
   most 2^-24 of it, by which rounding may change a float as well (Henry, Tang and Heinecke 2019, "Leveraging the bfloat16 Artificial
   Intelligence Datatype For Higher-Precision Computations"). Sums are floats to which the unit adds two exact
   products at a time; long ones are added up in parts. Denormals are zeros to it: blocks of very large or small numbers are scaled by
   powers of two meanwhile, and where some are too small beside others, the product is left to those who have such. */
#include "thirds.h"

#include "native.h"

static bool wanted = true;

#ifdef BF16_TILES
enum {
    LINE = 64, LANES = 16,         /* bytes, and floats of a vector */
    SIDE = THIRDS_SIDE, STEP = THIRDS_STEP,
    THIRD = SIDE * LINE,           /* bytes of a step of one third of a block */
    LARGEST = 58, LEAST = -50,     /* powers of two between which numbers have to be, if only scaled by another: sums of their products are
                                     finite, and no part of one is a denormal */
    INFINITE = 0x7f800000,         /* the bits of a float from which on it is not finite */
    DENORMAL = -149,               /* the power of the least float */
};

static bool are_here(void) { return bf16_here() && bf16_tiles_take(SIDE); }
bool thirds_wanted(void) { return wanted && are_here(); }

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
        for (; k + STEP <= count; k += STEP, to += THIRDS_BYTES)
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

/* Columns of numbers that lie side by side in each of `count` rows of the inner dim, or in half of them where they are pairs (gemm.h);
   those of the next panel come from memory meanwhile. */
BF16_INLINE void pack_columns(const float *from, ptrdiff_t row, ptrdiff_t columns, ptrdiff_t count, bool pairs, char *thirds, bool scaled,
                              __m512 factor, range *found) {
    const __m512 zero = _mm512_setzero_ps();
    for (ptrdiff_t k = 0; k < count; k += STEP, thirds += THIRDS_BYTES)
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

static const range NONE_YET = {{0}, {-1, -1, -1, -1, -1, -1, -1, -1}};

BF16_TARGET bool thirds_pack_rows(const float *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t count, thirds_block *made) {
    const __m512 one = _mm512_set1_ps(1);
    range found = NONE_YET;
    pack_rows(from, row, rows, count, made->thirds, false, one, &found);
    const bool good = power_for(found, &made->power);
    if (good && made->power)
        pack_rows(from, row, rows, count, made->thirds, true, _mm512_scalef_ps(one, _mm512_set1_ps((float)made->power)), &found);
    return good;
}

BF16_TARGET void thirds_pack_rows_as_they_are(const float *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t count, thirds_block *made) {
    pack_rows(from, row, rows, count, made->thirds, true, _mm512_set1_ps(1), NULL);
    made->power = 0;
}

BF16_TARGET bool thirds_pack_columns(const float *from, ptrdiff_t row, ptrdiff_t columns, ptrdiff_t count, bool pairs, thirds_block *made) {
    const __m512 one = _mm512_set1_ps(1);
    range found = NONE_YET;
    pack_columns(from, row, columns, count, pairs, made->thirds, false, one, &found);
    const bool good = power_for(found, &made->power);
    if (good && made->power)
        pack_columns(from, row, columns, count, pairs, made->thirds, true,
                     _mm512_scalef_ps(one, _mm512_set1_ps((float)made->power)), &found);
    return good;
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
    for (ptrdiff_t s = 0; s < steps; s++, left += THIRDS_BYTES, right += THIRDS_BYTES) {
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

void thirds_begin(void) { bf16_tiles_begin(SIDE); }

/* Adds sums, which are `power` powers of two too large, to what was there before. */
BF16_TARGET static void add_sums(const thirds_place *to, int power, const float *sums) {
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

void thirds_multiply(const thirds_block *left, const thirds_block *right, ptrdiff_t steps, const thirds_place *to, float *sums) {
    const bool tall = to->rows > LANES, wide = to->columns > LANES, whole = to->rows == SIDE && to->columns == SIDE;
    if (whole && !(to->before && to->apart) && !left->power && !right->power) {
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

void thirds_end(void) { bf16_tiles_end(); }
#else
bool thirds_wanted(void) { return false; }
#endif

PyObject *native_thirds(PyObject *module, PyObject *wants) {
    if (wants != Py_None)
        wanted = wants == Py_True;
    return PyBool_FromLong(thirds_wanted());
}
