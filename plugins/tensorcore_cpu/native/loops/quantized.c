/* Floats rounded to whole numbers of a step, and sums of products of such with bytes by pairs of 16 bits. */
#include "../quantized.h"

#include "isa.h"
#include "rows.h"

#include <string.h>

typedef int8_t vbytes __attribute__((vector_size(VECTOR / 4)));
typedef int16_t vhalf __attribute__((vector_size(VECTOR / 2)));
typedef int8_t vwide_bytes __attribute__((vector_size(VECTOR / 2)));
typedef int16_t vshort __attribute__((vector_size(VECTOR)));
typedef vshort vshort_u __attribute__((aligned(1), may_alias));
typedef vbytes vbytes_u __attribute__((aligned(1), may_alias));
typedef vhalf vhalf_u __attribute__((aligned(1), may_alias));

enum { SHORTS = VECTOR / 2, STREAMS = 4, ROWS = 4, UNIT = 4 };

static bool range(const float *x, ptrdiff_t count, float *below, float *above) {
    vf low[STREAMS] = {0}, high[STREAMS] = {0};
    vi odd = {0};
    bool odd_end = false;
    ptrdiff_t i = 0;
    for (; i + STREAMS * LANES_F32 <= count; i += STREAMS * LANES_F32)
        _Pragma("GCC unroll 4") for (int s = 0; s < STREAMS; s++) {
            const vf one = *(const vf_u *)(x + i + s * LANES_F32);
            low[s] = larger_f32(-one, low[s]);
            high[s] = larger_f32(one, high[s]);
            odd |= one != one;
        }
    float down = 0, up = 0;
    for (; i < count; i++) {
        odd_end |= x[i] != x[i];
        down = -x[i] > down ? -x[i] : down;
        up = x[i] > up ? x[i] : up;
    }
    for (int s = 0; s < STREAMS; s++)
        for (int k = 0; k < LANES_F32; k++) {
            down = low[s][k] > down ? low[s][k] : down;
            up = high[s][k] > up ? high[s][k] : up;
        }
    for (int k = 0; k < LANES_F32; k++)
        odd_end |= odd[k] != 0;
    *below = down;
    *above = up;
    return !odd_end;
}

/* A product and what is added to it stay two roundings, as the same ops one after the other have them. */
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

/* Numbers up to 2**22 in size are rounded to even by this sum, whose last bits are then the number. */
static const float WHOLE = 12582912.0f;

static inline int rounded(float x, float inverse, int least) {
    union {
        float real;
        int32_t bits;
    } made = {x * inverse + WHOLE}, none = {WHOLE};
    const int found = made.bits - none.bits;
    return found > least ? found : least;
}

static inline vi rounded_all(vf x, float inverse, int least) {
    const vi made = (vi)(x * inverse + WHOLE) - (vi)((vf){0} + WHOLE), smaller = made < least;
    return (smaller & least) | (~smaller & made);
}

static void round_short(const float *x, ptrdiff_t count, ptrdiff_t padded, float inverse, int zero, int16_t *made) {
    ptrdiff_t i = 0;
    for (; i + LANES_F32 <= count; i += LANES_F32)
        *(vhalf_u *)(made + i) = __builtin_convertvector(rounded_all(*(const vf_u *)(x + i), inverse, -zero), vhalf);
    for (; i < count; i++)
        made[i] = (int16_t)rounded(x[i], inverse, -zero);
    memset(made + count, 0, (size_t)(padded - count) * sizeof *made);
}

static int32_t round_bytes(const float *x, ptrdiff_t count, ptrdiff_t padded, float inverse, int zero, int8_t *made) {
    vi sums = {0};
    int32_t sum = 0;
    ptrdiff_t i = 0;
    for (; i + LANES_F32 <= count; i += LANES_F32) {
        const vi one = rounded_all(*(const vf_u *)(x + i), inverse, -zero);
        sums += one;
        *(vbytes_u *)(made + i) = __builtin_convertvector(one, vbytes);
    }
    for (; i < count; i++)
        sum += made[i] = (int8_t)rounded(x[i], inverse, -zero);
    for (int k = 0; k < LANES_F32; k++)
        sum += sums[k];
    memset(made + count, 0, (size_t)(padded - count));
    return sum;
}

static void finish(const int8_product *all, int32_t sum, ptrdiff_t row, ptrdiff_t column) {
    const float made = (float)sum * (all->scale[all->each ? column : 0] * all->step);
    all->made[row * all->columns + column] = all->bias ? made + all->bias[column] : made;
}
#if !defined(__clang__)
#pragma GCC pop_options
#endif

/* The sums of the products of two neighbours each. */
ALWAYS_INLINE vi pairs(vshort a, vshort b) {
#if VECTOR == 64
    return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VECTOR == 32
    return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return ((vi)a >> 16) * ((vi)b >> 16) + ((vi)a << 16 >> 16) * ((vi)b << 16 >> 16);
#endif
}

ALWAYS_INLINE vshort widened(const int8_t *from) {
    vwide_bytes one;
    memcpy(&one, from, sizeof one);
    return __builtin_convertvector(one, vshort);
}

ALWAYS_INLINE int32_t total(vi x) {
    int32_t sum = 0;
    for (int k = 0; k < LANES_F32; k++)
        sum += x[k];
    return sum;
}

/* Adds what `rows` rows of the left side make with a vector of each column. */
ALWAYS_INLINE void add(vi (*sums)[UNIT], const int16_t *left, ptrdiff_t row, const int8_t *weight, ptrdiff_t column, int rows,
                       int columns) {
    vshort right[UNIT];
    _Pragma("GCC unroll 4") for (int c = 0; c < columns; c++) right[c] = widened(weight + c * column);
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
        const vshort one = *(const vshort_u *)(left + r * row);
        _Pragma("GCC unroll 4") for (int c = 0; c < columns; c++) sums[r][c] += pairs(one, right[c]);
    }
}

ALWAYS_INLINE void tile(const int8_product *all, ptrdiff_t row, ptrdiff_t column, int rows, int columns) {
    vi sums[ROWS][UNIT];
    const int16_t *left = (const int16_t *)all->left + row * all->row;
    const int8_t *weight = all->weight + column * all->inner;
    const ptrdiff_t whole = all->inner / SHORTS * SHORTS, rest = all->inner - whole;
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
        _Pragma("GCC unroll 4") for (int c = 0; c < columns; c++) sums[r][c] = (vi){0};
    for (ptrdiff_t k = 0; k < whole; k += SHORTS)
        add(sums, left + k, all->row, weight + k, all->inner, rows, columns);
    if (rest) {
        int8_t end[UNIT][SHORTS] = {{0}};
        for (int c = 0; c < columns; c++)
            memcpy(end[c], weight + c * all->inner + whole, (size_t)rest);
        add(sums, left + whole, all->row, end[0], SHORTS, rows, columns);
    }
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
        _Pragma("GCC unroll 4") for (int c = 0; c < columns; c++) finish(all, total(sums[r][c]), row + r, column + c);
}

/* Four rows by as many columns as there are registers for. Some columns stay in the first cache while the rows go by, and four rows while
   those columns do. */
static void multiply(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t end) {
    enum { BROAD = VECTOR == 64 ? 4 : 2, SPAN = 16 };
    for (ptrdiff_t next; column < end; column = next) {
        ptrdiff_t i = row;
        next = end - column < SPAN ? end : column + SPAN;
        for (; i + ROWS <= last; i += ROWS) {
            ptrdiff_t j = column;
            for (; j + BROAD <= next; j += BROAD)
                tile(all, i, j, ROWS, BROAD);
            for (; j < next; j++)
                tile(all, i, j, ROWS, 1);
        }
        for (; i < last; i++) {
            ptrdiff_t j = column;
            for (; j + UNIT <= next; j += UNIT)
                tile(all, i, j, 1, UNIT);
            for (; j < next; j++)
                tile(all, i, j, 1, 1);
        }
    }
}

const quantized_loops ISA(quantized_loops) = {range, round_short, round_bytes, multiply};
