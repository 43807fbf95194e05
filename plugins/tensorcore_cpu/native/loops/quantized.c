/* Floats rounded to whole numbers of a step, and sums of products of such with bytes by pairs of 16 bits. */
#include "../quantized.h"

#include "../turn.h"
#include "isa.h"
#include "rows.h"

#include <string.h>

typedef int8_t vbytes __attribute__((vector_size(VECTOR / 4)));
typedef int16_t vhalf __attribute__((vector_size(VECTOR / 2)));
#if !defined(__SSE2__)
typedef int8_t vwide_bytes __attribute__((vector_size(VECTOR / 2)));
#endif
typedef int16_t vshort __attribute__((vector_size(VECTOR)));
typedef vshort vshort_u __attribute__((aligned(1), may_alias));
typedef vbytes vbytes_u __attribute__((aligned(1), may_alias));
typedef vhalf vhalf_u __attribute__((aligned(1), may_alias));

enum {
    SHORTS = VECTOR / 2, STREAMS = 4,     /* of a vector; of a range */
    FEW = 4,                              /* columns that one row goes by at once */
    ROWS = 4, WIDTH = 2 * LANES_F32,      /* of the left side and columns that go together; */
    DEPTH = 256,                          /* as many numbers of each, which the first cache holds */
};

extern const turn_loops ISA(turn_loops);

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

static void finish(const int8_product *all, const int32_t *restrict sums, ptrdiff_t row, ptrdiff_t column, ptrdiff_t count) {
    float *restrict made = all->made + row * all->columns + column;
    const float *restrict scale = all->scale + (all->each ? column : 0), *restrict bias = all->bias ? all->bias + column : NULL;
    const float step = all->step, one = *scale * step;
    if (all->each)
        for (ptrdiff_t j = 0; j < count; j++)
            made[j] = (float)sums[j] * (scale[j] * step);
    else
        for (ptrdiff_t j = 0; j < count; j++)
            made[j] = (float)sums[j] * one;
    for (ptrdiff_t j = 0; bias && j < count; j++)
        made[j] += bias[j];
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
#if VECTOR == 64
    return (vshort)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)from));
#elif VECTOR == 32
    return (vshort)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)from));
#elif defined(__SSE2__)
    const __m128i one = _mm_loadl_epi64((const __m128i *)from);
    return (vshort)_mm_srai_epi16(_mm_unpacklo_epi8(one, one), 8);
#else
    vwide_bytes one;
    memcpy(&one, from, sizeof one);
    return __builtin_convertvector(one, vshort);
#endif
}

ALWAYS_INLINE int32_t total(vi x) {
    int32_t sum = 0;
    for (int k = 0; k < LANES_F32; k++)
        sum += x[k];
    return sum;
}

/* A row by some columns, along the numbers of each. */
ALWAYS_INLINE void add(vi *sums, const int16_t *left, const int8_t *weight, ptrdiff_t apart, int columns) {
    const vshort one = *(const vshort_u *)left;
    _Pragma("GCC unroll 4") for (int c = 0; c < columns; c++) sums[c] += pairs(one, widened(weight + c * apart));
}

ALWAYS_INLINE void dots(const int8_product *all, ptrdiff_t row, ptrdiff_t column, int columns) {
    vi sums[FEW];
    int32_t totals[FEW];
    const int16_t *left = (const int16_t *)all->left + row * all->row;
    const int8_t *weight = all->weight + column * all->inner;
    const ptrdiff_t whole = all->inner / SHORTS * SHORTS, rest = all->inner - whole;
    _Pragma("GCC unroll 4") for (int c = 0; c < columns; c++) sums[c] = (vi){0};
    for (ptrdiff_t k = 0; k < whole; k += SHORTS)
        add(sums, left + k, weight + k, all->inner, columns);
    if (rest) { /* the left side goes on with zeros */
        int8_t end[FEW][SHORTS] = {{0}};
        for (int c = 0; c < columns; c++)
            memcpy(end[c], weight + c * all->inner + whole, (size_t)rest);
        add(sums, left + whole, end[0], SHORTS, columns);
    }
    _Pragma("GCC unroll 4") for (int c = 0; c < columns; c++) totals[c] = total(sums[c]);
    finish(all, totals, row, column, columns);
}

/* Several rows: pairs of a column's numbers lie beside those of the next column, so that each lane has the sum of its own. */
typedef struct {
    ptrdiff_t first, pairs, column, width;
    int16_t at[DEPTH / 2][WIDTH][2];
} panel;

static void pack(const int8_product *all, panel *to) {
    const ptrdiff_t rest = all->inner - to->first, count = rest < DEPTH ? rest : DEPTH;
    int16_t lines[WIDTH][DEPTH];
    to->pairs = (count + 1) / 2;
    for (ptrdiff_t j = 0; j < to->width; j++) {
        const int8_t *from = all->weight + (to->column + j) * all->inner + to->first;
        ptrdiff_t k = 0;
        for (; k + SHORTS <= count; k += SHORTS)
            *(vshort_u *)(lines[j] + k) = widened(from + k);
        for (; k < count; k++)
            lines[j][k] = from[k];
        if (count % 2)
            lines[j][count] = 0;
    }
    if (to->width < WIDTH)
        memset(to->at, 0, (size_t)to->pairs * sizeof to->at[0]);
    ISA(turn_loops).turn[2]((const char *)lines, sizeof lines[0], (char *)to->at, sizeof to->at[0], to->pairs, to->width);
}

/* Some rows by a panel, added to their sums so far, which lie as ints where the results will be. */
ALWAYS_INLINE void rows_by(const int8_product *all, const panel *by, ptrdiff_t row, int rows) {
    vi sums[ROWS][2];
    int32_t line[WIDTH] = {0};
    const int16_t *left = (const int16_t *)all->left + row * all->row + by->first;
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
        if (by->first)
            memcpy(line, all->made + (row + r) * all->columns + by->column, (size_t)by->width * sizeof *line);
        sums[r][0] = *(const vi_u *)line;
        sums[r][1] = *(const vi_u *)(line + LANES_F32);
    }
    for (ptrdiff_t k = 0; k < by->pairs; k++) {
        const vshort one = *(const vshort_u *)by->at[k][0], other = *(const vshort_u *)by->at[k][LANES_F32];
        _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
            int32_t two;
            memcpy(&two, left + r * all->row + 2 * k, sizeof two);
            const vshort both = (vshort)((vi){0} + two);
            sums[r][0] += pairs(both, one);
            sums[r][1] += pairs(both, other);
        }
    }
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
        *(vi_u *)line = sums[r][0];
        *(vi_u *)(line + LANES_F32) = sums[r][1];
        if (by->first + 2 * by->pairs >= all->inner)
            finish(all, line, row + r, by->column, by->width);
        else
            memcpy(all->made + (row + r) * all->columns + by->column, line, (size_t)by->width * sizeof *line);
    }
}

static void multiply(const int8_product *all, ptrdiff_t row, ptrdiff_t last, ptrdiff_t column, ptrdiff_t end) {
    panel by;
    if (last - row < ROWS) {
        for (; row < last; row++) {
            ptrdiff_t j = column;
            for (; j + FEW <= end; j += FEW)
                dots(all, row, j, FEW);
            for (; j < end; j++)
                dots(all, row, j, 1);
        }
        return;
    }
    for (by.column = column; by.column < end; by.column += WIDTH) {
        by.width = end - by.column < WIDTH ? end - by.column : WIDTH;
        for (by.first = 0; by.first < all->inner; by.first += DEPTH) {
            ptrdiff_t i = row;
            pack(all, &by);
            for (; i + ROWS <= last; i += ROWS)
                rows_by(all, &by, i, ROWS);
            if (i + 2 <= last) {
                rows_by(all, &by, i, 2);
                i += 2;
            }
            if (i < last)
                rows_by(all, &by, i, 1);
        }
    }
}

const quantized_loops ISA(quantized_loops) = {range, round_short, round_bytes, multiply};
