/* Sums of rows and of strips of columns, of their distances from a centre and of the squares of these: sum, apart and away of
   reduce.h. */
#ifndef TENSORCORE_NATIVE_SUMS_LOOPS_H
#define TENSORCORE_NATIVE_SUMS_LOOPS_H

#include "half.h"
#include "loop.h"
#include "zip.h"

#include "../reduce.h"

#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Adds with what the addition loses (Neumaier's form of Kahan's sum would compare; Knuth's needs no comparison). */
ALWAYS_INLINE void add_exactly(double *sum, double *lost, double x) {
    double before = *sum, after = before + x, part = after - before;
    *lost += (before - (after - part)) + (x - part);
    *sum = after;
}

/* Blocks of so many additions a lane, in four lanes of vectors; then the sum goes on in double. */
enum { FLUSH_f32 = 16, FLUSH_f64 = 8 };

/* A row of so many bytes, which is not in the first cache, is read by FEW instructions and not by CHAINS, each from 128 bytes to the
   next: what a Zen 4 fetches before it is asked for follows single instructions. 40 MB from memory take 4 % less. */
enum { FAR = 1 << 15, FEW = 4 };

/* Rows are read by 32 bytes at most, which two loads of a cycle do as one of 64 does, and half as often across a line of the
   cache: rows that begin anywhere then keep up with the second cache. */
enum { ROW_VECTOR = VECTOR < 32 ? VECTOR : 32, ROW_F32 = ROW_VECTOR / 4, ROW_F64 = ROW_VECTOR / 8, CHAINS = 8 };

typedef float row_f32 __attribute__((vector_size(ROW_VECTOR)));
typedef double row_f64 __attribute__((vector_size(ROW_VECTOR)));
typedef int32_t row_i32 __attribute__((vector_size(ROW_VECTOR)));
typedef int64_t row_i64 __attribute__((vector_size(ROW_VECTOR)));
typedef float half_f32 __attribute__((vector_size(ROW_VECTOR / 2)));
typedef uint16_t half_u16 __attribute__((vector_size(ROW_VECTOR / 2)));

/* A vector from anywhere in memory, of half types in float; number k of some in a row, in any order of their elements; and one
   element. */
#define LOAD(suffix, type, lanes)                                                                             \
    ALWAYS_INLINE row_##suffix load_##suffix(const type *from) {                                              \
        row_##suffix made;                                                                                    \
        memcpy(&made, from, sizeof made);                                                                     \
        return made;                                                                                          \
    }                                                                                                         \
    ALWAYS_INLINE row_##suffix load_in_##suffix(const type *from, int k) {                                    \
        return load_##suffix(from + k * lanes);                                                               \
    }                                                                                                         \
    ALWAYS_INLINE type one_##suffix(type x) { return x; }
LOAD(f32, float, ROW_F32)
LOAD(f64, double, ROW_F64)

/* GCC 12 makes four and five instructions of these where there is one. */
#if defined(__AVX2__)
ALWAYS_INLINE row_i32 load_bits(const uint16_t *from) {
    return (row_i32)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
}
ALWAYS_INLINE row_f64 in_double(half_f32 x) { return (row_f64)_mm256_cvtps_pd((__m128)x); }
#else
ALWAYS_INLINE row_i32 load_bits(const uint16_t *from) {
    half_u16 bits;
    memcpy(&bits, from, sizeof bits);
    return __builtin_convertvector(bits, row_i32);
}
ALWAYS_INLINE row_f64 in_double(half_f32 x) { return __builtin_convertvector(x, row_f64); }
#endif

ALWAYS_INLINE row_f32 load_bf16(const uint16_t *from) { return (row_f32)(load_bits(from) << 16); }
/* A vector of pairs is two of floats: first and second elements. */
ALWAYS_INLINE row_f32 load_in_bf16(const uint16_t *from, int k) {
    row_i32 pairs;
    memcpy(&pairs, from + k / 2 * 2 * ROW_F32, sizeof pairs);
    return (row_f32)(k % 2 ? pairs & ~0xffff : pairs << 16);
}
ALWAYS_INLINE float one_bf16(uint16_t x) { return bf16_value(x); }

#if defined(__F16C__)
ALWAYS_INLINE row_f32 load_f16(const uint16_t *from) { return (row_f32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)); }
ALWAYS_INLINE float one_f16(uint16_t x) { return _cvtsh_ss(x); }
#else
ALWAYS_INLINE row_f32 load_f16(const uint16_t *from) {
    const row_i32 bits = load_bits(from), size = (row_i32)((row_f32)((bits & 0x7fff) << 13) * 0x1p112f); /* as f16_value */
    return (row_f32)(size | (0x7f800000 & (size >= 0x47800000)) | (bits & 0x8000) << 16);
}
ALWAYS_INLINE float one_f16(uint16_t x) { return f16_value(x); }
#endif
ALWAYS_INLINE row_f32 load_in_f16(const uint16_t *from, int k) { return load_f16(from + k * ROW_F32); }

/* The sums of blocks, in double; for doubles with what the additions lose. */
typedef struct {
    row_f64 sum, lost;
} wide_sum;

ALWAYS_INLINE void add_block_f32(wide_sum *to, row_f32 block) {
    half_f32 halves[2];
    memcpy(halves, &block, sizeof block);
    to->sum += in_double(halves[0]) + in_double(halves[1]);
}

ALWAYS_INLINE void add_block_f64(wide_sum *to, row_f64 block) {
    row_f64 before = to->sum, after = before + block, part = after - before;
    to->lost += (before - (after - part)) + (block - part);
    to->sum = after;
}

ALWAYS_INLINE double total_f32(wide_sum of, double rest) {
    double lanes[ROW_F64];
    memcpy(lanes, &of.sum, sizeof lanes);
    for (int width = ROW_F64 / 2; width; width /= 2)
        for (int k = 0; k < width; k++)
            lanes[k] += lanes[k + width];
    return lanes[0] + rest;
}

ALWAYS_INLINE double total_f64(wide_sum of, double rest) {
    double sum = rest, lost = 0, lanes_lost = 0;
    for (int k = 0; k < ROW_F64; k++) {
        add_exactly(&sum, &lost, of.sum[k]);
        lanes_lost += of.lost[k];
    }
    lost += lanes_lost;
    return lost == lost ? sum + lost : sum; /* infinities lose a NaN */
}

/* All bits of the last `n` lanes are those from TAIL + n on. */
static const int32_t TAIL_f32[2 * ROW_F32] = {[ROW_F32 ... 2 * ROW_F32 - 1] = -1};
static const int64_t TAIL_f64[2 * ROW_F64] = {[ROW_F64 ... 2 * ROW_F64 - 1] = -1};

/* Elements up to `end`, so many vectors at a time, to the chains from number `first` on. */
#define ADD_CHAINS(from, lanes, first, chains, end, expression)                                               \
    for (; i < (end); i += (chains) * lanes)                                                                  \
        for (int k = 0; k < (chains); k++) {                                                                  \
            x = load_in_##from(data + i, k);                                                                  \
            s[(first) + k] += expression;                                                                     \
        }

/* Of elements `from` in memory, which are `type` in registers. */
#define ROW_SUM(name, from, stored, suffix, type, mask, lanes, expression)                                    \
    ALWAYS_INLINE wide_sum name##_wide(const void *row, ptrdiff_t count, double centre, double *rest) {       \
        typedef row_##mask mask_anywhere __attribute__((aligned(1), may_alias));                              \
        const stored *data = row;                                                                             \
        const type c = (type)centre;                                                                          \
        const bool far = count * (ptrdiff_t)sizeof(stored) >= FAR;                                            \
        wide_sum sum = {{0}, {0}};                                                                            \
        ptrdiff_t i = 0;                                                                                      \
        (void)c;                                                                                              \
        while (count - i >= lanes) {                                                                          \
            row_##suffix s[CHAINS] = {{0}}, x;                                                                \
            ptrdiff_t end = i + (count - i) / (CHAINS * lanes) * (CHAINS * lanes);                            \
            end = end - i > FLUSH_##suffix * CHAINS * lanes ? i + FLUSH_##suffix * CHAINS * lanes : end;      \
            if (far && end - i == FLUSH_##suffix * CHAINS * lanes)                                            \
                ADD_CHAINS(from, lanes, 0, FEW, end - FLUSH_##suffix * (CHAINS - FEW) * lanes, expression)    \
            if (far && end - i == FLUSH_##suffix * (CHAINS - FEW) * lanes)                                    \
                ADD_CHAINS(from, lanes, FEW, CHAINS - FEW, end, expression)                                   \
            ADD_CHAINS(from, lanes, 0, CHAINS, end, expression)                                               \
            if (count - i < CHAINS * lanes) { /* what is left belongs to the last block: a short row has no other */ \
                for (int k = 0; k < CHAINS && count - i >= lanes; k++, i += lanes) {                          \
                    x = load_##from(data + i);                                                                \
                    s[k] += expression;                                                                       \
                }                                                                                             \
                if (i < count) { /* the last vector but for what is counted already */                        \
                    x = load_##from(data + count - lanes);                                                    \
                    row_##suffix all = expression;                                                            \
                    s[CHAINS - 1] += (row_##suffix)((row_##mask)all & *(const mask_anywhere *)(TAIL_##suffix + (count - i))); \
                    i = count;                                                                                \
                }                                                                                             \
            }                                                                                                 \
            add_block_##suffix(&sum, ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));      \
        }                                                                                                     \
        *rest = 0;                                                                                            \
        for (; i < count; i++) {                                                                              \
            type x = one_##from(data[i]);                                                                     \
            *rest += expression;                                                                              \
        }                                                                                                     \
        return sum;                                                                                           \
    }                                                                                                         \
    static double name(const void *row, ptrdiff_t count, double centre) {                                     \
        double rest;                                                                                          \
        const wide_sum sum = name##_wide(row, count, centre, &rest);                                          \
        return total_##suffix(sum, rest);                                                                     \
    }

/* The sum of so many of s. */
#define PAIRS_1(k) s[k]
#define PAIRS_4(k) ((s[k] + s[k + 1]) + (s[k + 2] + s[k + 3]))
#define PAIRS_8(k) (PAIRS_4(k) + PAIRS_4(k + 4))

#if VECTOR > 16
#define ROW_ZIP_f32 ZIP_8
#define ROW_ZIP_f64 ZIP_4
#else
#define ROW_ZIP_f32 ZIP_4
#define ROW_ZIP_f64 ZIP_2
#endif

/* The totals of as many rows as a vector has doubles, by the additions of one. */

ALWAYS_INLINE row_f64 totals_f32(const wide_sum *of) {
    row_f64 rows[ROW_F64];
    for (int k = 0; k < ROW_F64; k++)
        rows[k] = of[k].sum;
    for (int half = ROW_F64 / 2; half; half /= 2)
        for (int k = 0; k < half; k++)
            rows[k] = ROW_ZIP_f64(rows[k], rows[k + half], 0) + ROW_ZIP_f64(rows[k], rows[k + half], ROW_F64 / 2);
    return rows[0];
}

/* Element k of each vector goes to vector k. */
ALWAYS_INLINE void turn_rows(row_f64 *of) {
    for (int step = 1; step < ROW_F64; step *= 2) {
        row_f64 made[ROW_F64];
        for (int k = 0; k < ROW_F64 / 2; k++) {
            made[2 * k] = ROW_ZIP_f64(of[k], of[k + ROW_F64 / 2], 0);
            made[2 * k + 1] = ROW_ZIP_f64(of[k], of[k + ROW_F64 / 2], ROW_F64 / 2);
        }
        memcpy(of, made, sizeof made);
    }
}

ALWAYS_INLINE row_f64 totals_f64(const wide_sum *of) {
    row_f64 sums[ROW_F64], losses[ROW_F64], lost;
    wide_sum all = {{0}, {0}};
    for (int k = 0; k < ROW_F64; k++) {
        sums[k] = of[k].sum;
        losses[k] = of[k].lost;
    }
    turn_rows(sums);
    turn_rows(losses);
    all.sum += sums[0];
    lost = losses[0];
    for (int k = 1; k < ROW_F64; k++) {
        add_block_f64(&all, sums[k]);
        lost += losses[k];
    }
    lost += all.lost;
    return all.sum + (row_f64)((row_i64)lost & (lost == lost));
}

/* Rows one after another, some at once: what is added from lane to lane, and waited for, is that of all of them. A row that is one
   block has the sums that ROW_SUM would give it; `n` vectors behind whole rounds of chains, of which there are some or none, are
   known to the compiler, or all sums of few elements would wait for a jump. */
#define ROW_SUMS(from, stored, suffix, mask, lanes)                                                                           \
    ALWAYS_INLINE wide_sum block_of_##from(const stored *data, ptrdiff_t count, bool more, int n) {                           \
        typedef row_##mask mask_anywhere __attribute__((aligned(1), may_alias));                                              \
        row_##suffix s[CHAINS], last = load_##from(data + count - lanes);                                                     \
        wide_sum sum = {{0}, {0}};                                                                                            \
        last = (row_##suffix)((row_##mask)last & *(const mask_anywhere *)(TAIL_##suffix + count % lanes));                    \
        for (int k = 0; k < CHAINS && more; k++)                                                                              \
            s[k] = load_in_##from(data, k);                                                                                   \
        for (data += more ? CHAINS * lanes : 0; more && (count -= CHAINS * lanes) >= CHAINS * lanes; data += CHAINS * lanes)  \
            for (int k = 0; k < CHAINS; k++)                                                                                  \
                s[k] += load_in_##from(data, k);                                                                              \
        for (int k = 0; k < n; k++)                                                                                           \
            s[k] = more ? s[k] + load_##from(data + k * lanes) : load_##from(data + k * lanes);                               \
        const int used = more ? CHAINS : n;                                                                                   \
        const row_##suffix upper = used > 3 ? s[2] + s[3] : s[2], fourth = used > 5 ? s[4] + s[5] : s[4];                     \
        row_##suffix all = used > 1 ? s[0] + s[1] : s[0];                                                                     \
        all = used > 2 ? all + upper : all;                                                                                   \
        last = used > 7 ? s[6] + (s[7] + last) : used > 6 ? s[6] + last : last;                                               \
        all += used > 4 ? fourth + last : last;                                                                               \
        add_block_##suffix(&sum, all);                                                                                        \
        return sum;                                                                                                           \
    }                                                                                                                         \
    ALWAYS_INLINE ptrdiff_t sums_by_##from(const stored *row, ptrdiff_t rows, ptrdiff_t count, bool more, int n, double *into) {\
        ptrdiff_t i = 0;                                                                                                      \
        for (; i + ROW_F64 <= rows; i += ROW_F64) {                                                                           \
            wide_sum of[ROW_F64];                                                                                             \
            for (int k = 0; k < ROW_F64; k++)                                                                                 \
                of[k] = block_of_##from(row + (i + k) * count, count, more, n);                                               \
            const row_f64 made = totals_##suffix(of);                                                                         \
            memcpy(into + i, &made, sizeof made);                                                                             \
        }                                                                                                                     \
        return i;                                                                                                             \
    }                                                                                                                         \
    static void sums_##from(const void *data, ptrdiff_t rows, ptrdiff_t count, double *into) {                                \
        ptrdiff_t i = 0;                                                                                                      \
        if (count >= lanes && count < FLUSH_##suffix * CHAINS * lanes)                                                        \
            switch (count / lanes < CHAINS ? count / lanes : CHAINS + count / lanes % CHAINS) {                               \
            case 1: i = sums_by_##from(data, rows, count, false, 1, into); break;                                             \
            case 2: i = sums_by_##from(data, rows, count, false, 2, into); break;                                             \
            case 3: i = sums_by_##from(data, rows, count, false, 3, into); break;                                             \
            case 4: i = sums_by_##from(data, rows, count, false, 4, into); break;                                             \
            case 5: i = sums_by_##from(data, rows, count, false, 5, into); break;                                             \
            case 6: i = sums_by_##from(data, rows, count, false, 6, into); break;                                             \
            case 7: i = sums_by_##from(data, rows, count, false, 7, into); break;                                             \
            case CHAINS + 0: i = sums_by_##from(data, rows, count, true, 0, into); break;                                     \
            case CHAINS + 1: i = sums_by_##from(data, rows, count, true, 1, into); break;                                     \
            case CHAINS + 2: i = sums_by_##from(data, rows, count, true, 2, into); break;                                     \
            case CHAINS + 3: i = sums_by_##from(data, rows, count, true, 3, into); break;                                     \
            case CHAINS + 4: i = sums_by_##from(data, rows, count, true, 4, into); break;                                     \
            case CHAINS + 5: i = sums_by_##from(data, rows, count, true, 5, into); break;                                     \
            case CHAINS + 6: i = sums_by_##from(data, rows, count, true, 6, into); break;                                     \
            case CHAINS + 7: i = sums_by_##from(data, rows, count, true, 7, into); break;                                     \
            }                                                                                                                 \
        for (; i < rows; i++)                                                                                                 \
            into[i] = sum_of_##from((const stored *)data + i * count, count, 0);                                              \
    }

/* Columns are read by the widest vectors: each is a sum of its own, whatever stands beside it. 400 kB in the second cache take 5 us
   with half as many instructions, and took 7. */
typedef float strip_f32 __attribute__((vector_size(VECTOR)));
typedef double strip_f64 __attribute__((vector_size(VECTOR)));
typedef int32_t strip_i32 __attribute__((vector_size(VECTOR)));
typedef int64_t strip_i64 __attribute__((vector_size(VECTOR)));
enum { LANES_f32 = VECTOR / 4, LANES_f64 = VECTOR / 8 };
static const int32_t STRIP_TAIL_f32[2 * LANES_f32] = {[LANES_f32 ... 2 * LANES_f32 - 1] = -1};
static const int64_t STRIP_TAIL_f64[2 * LANES_f64] = {[LANES_f64 ... 2 * LANES_f64 - 1] = -1};

#define LOAD_STRIP(suffix, type)                                                                              \
    ALWAYS_INLINE strip_##suffix load_strip_##suffix(const type *from) {                                      \
        strip_##suffix made;                                                                                  \
        memcpy(&made, from, sizeof made);                                                                     \
        return made;                                                                                          \
    }
LOAD_STRIP(f32, float)
LOAD_STRIP(f64, double)
#if defined(__AVX512F__)
ALWAYS_INLINE strip_f32 load_strip_bf16(const uint16_t *from) {
    return (strip_f32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), 16);
}
ALWAYS_INLINE strip_f32 load_strip_f16(const uint16_t *from) {
    return (strip_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
}
ALWAYS_INLINE void in_doubles(strip_f32 x, strip_f64 *low, strip_f64 *high) {
    *low = (strip_f64)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x));
    *high = (strip_f64)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1));
}
#else
ALWAYS_INLINE strip_f32 load_strip_bf16(const uint16_t *from) { return load_bf16(from); }
ALWAYS_INLINE strip_f32 load_strip_f16(const uint16_t *from) { return load_f16(from); }
ALWAYS_INLINE void in_doubles(strip_f32 x, strip_f64 *low, strip_f64 *high) {
    half_f32 halves[2];
    memcpy(halves, &x, sizeof x);
    *low = in_double(halves[0]);
    *high = in_double(halves[1]);
}
#endif

/* Adds a vector of floats to some columns; doubles with what they lose. */
ALWAYS_INLINE void add_columns_f32(double *into, double *lost, strip_f32 x) {
    typedef strip_f64 anywhere __attribute__((aligned(1), may_alias));
    strip_f64 low, high;
    in_doubles(x, &low, &high);
    *(anywhere *)into += low;
    *(anywhere *)(into + LANES_f64) += high;
}

ALWAYS_INLINE void add_columns_f64(double *into, double *lost, strip_f64 x) {
    typedef strip_f64 anywhere __attribute__((aligned(1), may_alias));
    const strip_f64 before = *(anywhere *)into, after = before + x, part = after - before;
    *(anywhere *)lost += (before - (after - part)) + (x - part);
    *(anywhere *)into = after;
}

ALWAYS_INLINE void add_column_f32(double *into, double *lost, float x) { *into += x; }
ALWAYS_INLINE void add_column_f64(double *into, double *lost, double x) { add_exactly(into, lost, x); }

ALWAYS_INLINE strip_f32 centres_f32(const double *from) {
    strip_f32 made;
    for (int k = 0; k < LANES_f32; k++)
        made[k] = (float)from[k];
    return made;
}

ALWAYS_INLINE strip_f64 centres_f64(const double *from) { return load_strip_f64(from); }

enum { WIDEST = 2 * STRIP }; /* columns of rows that are taken together */

/* Adds N rows to sums[width]: what they are together in the elements' own precision. A function of its own keeps the places of
   eight rows in registers. Sixteen rows would be more lines than a set of the cache has places, where they lie 4 kB apart. */
#define STRIP_ROWS(N, name, from, stored, suffix, type, mask, expression)                                     \
    static __attribute__((noinline)) void name##_##N(const stored *data, ptrdiff_t step, ptrdiff_t width,     \
                                                     const double *centre, double *sums, double *lost) {      \
        enum { LANES = LANES_##suffix };                                                                      \
        typedef strip_##mask mask_anywhere __attribute__((aligned(1), may_alias));                            \
        for (ptrdiff_t begin = 0; begin < width && width >= LANES; begin += LANES) {                          \
            const ptrdiff_t j = width - begin < LANES ? width - LANES : begin; /* the last: some of it again */ \
            const strip_##suffix c = centres_##suffix(centre + j);                                            \
            strip_##suffix s[N];                                                                              \
            (void)c;                                                                                          \
            for (int k = 0; k < N; k++) {                                                                     \
                const strip_##suffix x = load_strip_##from(data + k * step + j);                              \
                s[k] = expression;                                                                            \
            }                                                                                                 \
            s[0] = PAIRS_##N(0);                                                                              \
            if (j < begin)                                                                                    \
                s[0] = (strip_##suffix)((strip_##mask)s[0] & *(const mask_anywhere *)(STRIP_TAIL_##suffix + (width - begin))); \
            add_columns_##suffix(sums + j, lost + j, s[0]);                                                   \
        }                                                                                                     \
        for (ptrdiff_t j = 0; j < width && width < LANES; j++) {                                              \
            const type c = (type)centre[j];                                                                   \
            type s[N];                                                                                        \
            (void)c;                                                                                          \
            for (int k = 0; k < N; k++) {                                                                     \
                const type x = one_##from(data[k * step + j]);                                                \
                s[k] = expression;                                                                            \
            }                                                                                                 \
            add_column_##suffix(sums + j, lost + j, PAIRS_##N(0));                                            \
        }                                                                                                     \
    }

/* Sums that begin at a line of the cache, wherever `into` does. */
#define STRIP_SUM(name, from, stored, suffix, type, mask, EXACT, expression)                                  \
    STRIP_ROWS(8, name, from, stored, suffix, type, mask, expression)                                         \
    STRIP_ROWS(4, name, from, stored, suffix, type, mask, expression)                                         \
    STRIP_ROWS(1, name, from, stored, suffix, type, mask, expression)                                         \
    static void name(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, const double *centre, \
                     double *into) {                                                                          \
        _Alignas(64) double sums[WIDEST], lost[EXACT ? WIDEST : 1];                                           \
        const stored *at = data;                                                                              \
        ptrdiff_t row = 0;                                                                                    \
        memset(sums, 0, (size_t)width * sizeof *sums);                                                        \
        memset(lost, 0, EXACT ? (size_t)width * sizeof *lost : sizeof lost);                                  \
        for (; row + 8 <= rows; row += 8)                                                                     \
            name##_8(at + row * step, step, width, centre, sums, lost);                                       \
        for (; row + 4 <= rows; row += 4)                                                                     \
            name##_4(at + row * step, step, width, centre, sums, lost);                                       \
        for (; row < rows; row++)                                                                             \
            name##_1(at + row * step, step, width, centre, sums, lost);                                       \
        for (ptrdiff_t j = 0; j < width; j++)                                                                 \
            into[j] += EXACT && lost[j] == lost[j] ? sums[j] + lost[j] : sums[j];                             \
    }

/* Rows of some vectors and a bit: as many of them are one row of whole vectors, each column several times. Most vectors of a row by
   itself lie on two lines of the cache, and the bit is read as a vector too: 8.6 us for rows of 33 floats that take 4 in this way. */
#define SUM_OF_COLUMNS(name, strip, stored, suffix)                                                           \
    static void name(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, double *into) {       \
        static const double nothing[WIDEST];                                                                  \
        ptrdiff_t together = LANES_##suffix;                                                                  \
        while (together > 1 && together / 2 * width % LANES_##suffix == 0)                                    \
            together /= 2;                                                                                    \
        const ptrdiff_t whole = step == width && width > LANES_##suffix && together * width <= WIDEST ? rows / together : 0; \
        if (together > 1 && whole >= 8) {                                                                     \
            double sums[WIDEST] = {0};                                                                        \
            strip(data, whole, together * width, together * width, nothing, sums);                            \
            for (ptrdiff_t k = 0; k < together; k++)                                                          \
                for (ptrdiff_t j = 0; j < width; j++)                                                         \
                    into[j] += sums[k * width + j];                                                           \
            data = (const stored *)data + whole * together * width;                                           \
            rows -= whole * together;                                                                         \
        }                                                                                                     \
        strip(data, rows, step, width, nothing, into);                                                        \
    }

#define ALL_SUMS(from, stored, suffix, type, mask, lanes, EXACT)                                              \
    ROW_SUM(sum_of_##from, from, stored, suffix, type, mask, lanes, x)                                        \
    ROW_SUMS(from, stored, suffix, mask, lanes)                                                               \
    ROW_SUM(apart_##from, from, stored, suffix, type, mask, lanes, (x - c))                                   \
    ROW_SUM(away_##from, from, stored, suffix, type, mask, lanes, ((x - c) * (x - c)))                        \
    STRIP_SUM(sum_strip_of_##from, from, stored, suffix, type, mask, EXACT, x)                                \
    STRIP_SUM(apart_strip_##from, from, stored, suffix, type, mask, EXACT, (x - c))                           \
    STRIP_SUM(away_strip_##from, from, stored, suffix, type, mask, EXACT, ((x - c) * (x - c)))                \
    static double sum_##from(const void *row, ptrdiff_t count) { return sum_of_##from(row, count, 0); }       \
    SUM_OF_COLUMNS(sum_columns_##from, sum_strip_of_##from, stored, suffix)

/* Sums of squares: those of elements that are squares once they are in registers. */
#define ALL_SQUARES(from, stored, suffix, type, mask, lanes, EXACT)                                           \
    ALWAYS_INLINE row_##suffix load_squares_##from(const stored *at) { return load_##from(at) * load_##from(at); } \
    ALWAYS_INLINE strip_##suffix load_strip_squares_##from(const stored *at) {                                \
        return load_strip_##from(at) * load_strip_##from(at);                                                 \
    }                                                                                                         \
    ALWAYS_INLINE row_##suffix load_in_squares_##from(const stored *at, int k) {                              \
        return load_in_##from(at, k) * load_in_##from(at, k);                                                 \
    }                                                                                                         \
    ALWAYS_INLINE type one_squares_##from(stored x) { return one_##from(x) * one_##from(x); }                 \
    ROW_SUM(sum_of_squares_##from, squares_##from, stored, suffix, type, mask, lanes, x)                      \
    ROW_SUMS(squares_##from, stored, suffix, mask, lanes)                                                     \
    STRIP_SUM(strip_of_squares_##from, squares_##from, stored, suffix, type, mask, EXACT, x)                  \
    static double squares_##from(const void *row, ptrdiff_t count) { return sum_of_squares_##from(row, count, 0); } \
    SUM_OF_COLUMNS(squares_strip_##from, strip_of_squares_##from, stored, suffix)

ALL_SUMS(f32, float, f32, float, i32, ROW_F32, false)
ALL_SUMS(f64, double, f64, double, i64, ROW_F64, true)
ALL_SUMS(bf16, uint16_t, f32, float, i32, ROW_F32, false)
ALL_SUMS(f16, uint16_t, f32, float, i32, ROW_F32, false)
ALL_SQUARES(f32, float, f32, float, i32, ROW_F32, false)
ALL_SQUARES(f64, double, f64, double, i64, ROW_F64, true)
ALL_SQUARES(bf16, uint16_t, f32, float, i32, ROW_F32, false)
ALL_SQUARES(f16, uint16_t, f32, float, i32, ROW_F32, false)

/* Half types have digits to spare in float: 32 rows, eight at a time, are added there before the sums go on in double. Two vectors
   are as `load_in` has them; AHEAD and BEHIND put their elements in order. */
#define HALF_STRIP(from, AHEAD, BEHIND)                                                                       \
    static __attribute__((noinline)) void add_eight_##from(const uint16_t *data, ptrdiff_t step, ptrdiff_t width, float *sums) { \
        typedef row_f32 some __attribute__((may_alias));                                                      \
        for (ptrdiff_t j = 0; j < width; j += 2 * ROW_F32) {                                                  \
            row_f32 s[8];                                                                                     \
            for (int k = 0; k < 8; k++)                                                                       \
                s[k] = load_in_##from(data + k * step + j, 0);                                                \
            *(some *)(sums + j) += PAIRS_8(0);                                                                \
            for (int k = 0; k < 8; k++)                                                                       \
                s[k] = load_in_##from(data + k * step + j, 1);                                                \
            *(some *)(sums + j + ROW_F32) += PAIRS_8(0);                                                      \
        }                                                                                                     \
    }                                                                                                         \
    static void sum_halves_##from(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, double *into) { \
        _Alignas(64) float sums[STRIP];                                                                       \
        const uint16_t *at = data;                                                                            \
        const ptrdiff_t whole = width / (2 * ROW_F32) * (2 * ROW_F32);                                        \
        ptrdiff_t row = 0;                                                                                    \
        while (row + 8 <= rows) {                                                                             \
            memset(sums, 0, (size_t)whole * sizeof *sums);                                                    \
            for (int k = 0; k < 4 && row + 8 <= rows; k++, row += 8)                                          \
                add_eight_##from(at + row * step, step, whole, sums);                                         \
            for (ptrdiff_t j = 0; j < whole; j += 2 * ROW_F32) {                                              \
                const row_f32 a = load_f32(sums + j), b = load_f32(sums + j + ROW_F32);                       \
                add_rows_columns(into + j, AHEAD(a, b));                                                      \
                add_rows_columns(into + j + ROW_F32, BEHIND(a, b));                                           \
            }                                                                                                 \
        }                                                                                                     \
        sum_columns_##from(at + row * step, rows - row, step, whole, into);                                   \
        sum_columns_##from(at + whole, rows, step, width - whole, into + whole);                              \
    }

ALWAYS_INLINE void add_rows_columns(double *into, row_f32 x) {
    typedef row_f64 anywhere __attribute__((aligned(1), may_alias));
    half_f32 halves[2];
    memcpy(halves, &x, sizeof x);
    for (int k = 0; k < 2; k++)
        *(anywhere *)(into + k * ROW_F64) += in_double(halves[k]);
}

#define FIRST_OF(a, b) a
#define SECOND_OF(a, b) b
#if VECTOR > 16
#define LOWER_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER_PAIRS(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define LOWER_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UPPER_PAIRS(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif
HALF_STRIP(bf16, LOWER_PAIRS, UPPER_PAIRS)
HALF_STRIP(f16, FIRST_OF, SECOND_OF)

#endif
