/* Reductions of rows and of strips of columns of integers and bools, counts of what is not zero, extremes of half types. */
#include "loop.h"
#include "zip.h"

#include "../reduce_integers.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <string.h>

/* Sums of TERM, an expression in x, in `part`, which holds those of a block. */
enum { BLOCK = 1 << 15 };

#define ROW_SUM(name, type, part, TERM)                                                                       \
    static int64_t name(const void *row, ptrdiff_t count) {                                                   \
        const type *data = row;                                                                               \
        int64_t sum = 0;                                                                                      \
        for (ptrdiff_t begin = 0; begin < count; begin += BLOCK) {                                            \
            const ptrdiff_t end = count - begin < BLOCK ? count : begin + BLOCK;                              \
            part block = 0;                                                                                   \
            for (ptrdiff_t i = begin; i < end; i++) {                                                         \
                const type x = data[i];                                                                       \
                block += (part)(TERM);                                                                        \
            }                                                                                                 \
            sum += block;                                                                                     \
        }                                                                                                     \
        return sum;                                                                                           \
    }

#define STRIP_SUM(name, type, part, TERM)                                                                     \
    static void name##_strip(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, int64_t *into) { \
        ptrdiff_t row = 0;                                                                                    \
        for (; row + 8 <= rows; row += 8) {                                                                   \
            const type *at = (const type *)data + row * step;                                                 \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                part eight = 0;                                                                               \
                for (int k = 0; k < 8; k++) {                                                                 \
                    const type x = at[k * step + j];                                                          \
                    eight += (part)(TERM);                                                                    \
                }                                                                                             \
                into[j] += eight;                                                                             \
            }                                                                                                 \
        }                                                                                                     \
        for (; row < rows; row++) {                                                                           \
            const type *at = (const type *)data + row * step;                                                 \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                const type x = at[j];                                                                         \
                into[j] += (part)(TERM);                                                                      \
            }                                                                                                 \
        }                                                                                                     \
    }

#define SUMS(name, type, part, TERM) ROW_SUM(name, type, part, TERM) STRIP_SUM(name, type, part, TERM)

/* Sums that do not wait for one another, of half a line of the cache at a time: rows of the widest elements that begin anywhere
   cross half as many as by 64 bytes, and are read as fast as the last cache gives them. */
enum { CHAINS = 4, WIDE = (VECTOR < 32 ? VECTOR : 32) / 8 };
typedef int64_t wide __attribute__((vector_size(WIDE * 8)));
typedef wide wide_anywhere __attribute__((aligned(1), may_alias));

static int64_t sum_i64(const void *row, ptrdiff_t count) {
    const int64_t *data = row;
    wide of[CHAINS] = {{0}};
    ptrdiff_t i = 0;
    for (; i + CHAINS * WIDE <= count; i += CHAINS * WIDE)
        for (int k = 0; k < CHAINS; k++)
            of[k] += *(const wide_anywhere *)(data + i + k * WIDE);
    for (; i + WIDE <= count; i += WIDE)
        of[0] += *(const wide_anywhere *)(data + i);
    const wide all = (of[0] + of[1]) + (of[2] + of[3]);
    int64_t sum = 0;
    for (int k = 0; k < WIDE; k++)
        sum += all[k];
    for (; i < count; i++)
        sum += data[i];
    return sum;
}

#define INTEGER_SUMS(suffix, type, part)                                                                      \
    SUMS(sum_##suffix, type, part, x) SUMS(count_##suffix, type, part, x != 0)
INTEGER_SUMS(i8, int8_t, int32_t)
INTEGER_SUMS(i16, int16_t, int32_t)
INTEGER_SUMS(i32, int32_t, int64_t)
INTEGER_SUMS(u8, uint8_t, int32_t)
STRIP_SUM(sum_i64, int64_t, int64_t, x)
SUMS(count_i64, int64_t, int64_t, x != 0)
SUMS(count_f32, float, int32_t, x != 0)
SUMS(count_f64, double, int64_t, x != 0)
SUMS(count_half, uint16_t, int32_t, (x & 0x7fff) != 0)

/* Four vectors of products beside one another, which do not wait for each other. */
static int64_t product(const int64_t *row, ptrdiff_t count) {
    int64_t last[LANES_F64], made = 1;
    ptrdiff_t i = 0;
    if (count >= 4 * LANES_F64) {
        vl all[4];
        for (int k = 0; k < 4; k++)
            all[k] = *(const vl_u *)(row + k * LANES_F64);
        for (i = 4 * LANES_F64; i + 4 * LANES_F64 <= count; i += 4 * LANES_F64)
            for (int k = 0; k < 4; k++)
                all[k] *= *(const vl_u *)(row + i + k * LANES_F64);
        all[0] = (all[0] * all[1]) * (all[2] * all[3]);
        memcpy(last, all, sizeof last);
        for (int k = 0; k < LANES_F64; k++)
            made *= last[k];
    }
    for (; i < count; i++)
        made *= row[i];
    return made;
}

/* Extremes of KEY, those of places of PLACE_KEY, which the first of equal ones has. */
#define EXTREMES(name, type, index, KEY, PLACE_KEY, beats)                                                    \
    ALWAYS_INLINE type name##_key(const type *data, ptrdiff_t count) {                                        \
        type best = PLACE_KEY(data[0]);                                                                       \
        for (ptrdiff_t i = 0; i < count; i++) {                                                               \
            const type x = PLACE_KEY(data[i]);                                                                \
            best = x beats best ? x : best;                                                                   \
        }                                                                                                     \
        return best;                                                                                          \
    }                                                                                                         \
    static int64_t name(const void *row, ptrdiff_t count) {                                                   \
        const type *data = row;                                                                               \
        type best = KEY(data[0]);                                                                             \
        for (ptrdiff_t i = 0; i < count; i++) {                                                               \
            const type x = KEY(data[i]);                                                                      \
            best = x beats best ? x : best;                                                                   \
        }                                                                                                     \
        return best;                                                                                          \
    }                                                                                                         \
    static ptrdiff_t name##_place(const void *row, ptrdiff_t count, int64_t *key) {                           \
        const type *data = row;                                                                               \
        type best = 0;                                                                                        \
        ptrdiff_t found = 0;                                                                                  \
        /* The block with the extreme is found first, so that only that one is searched. */                   \
        for (ptrdiff_t i = 0; i < count; i += 1024) {                                                         \
            const type one = name##_key(data + i, count - i < 1024 ? count - i : 1024);                       \
            found = !i || one beats best ? i : found;                                                         \
            best = !i || one beats best ? one : best;                                                         \
        }                                                                                                     \
        for (; count - found >= 32; found += 32) {                                                            \
            int here = 0;                                                                                     \
            for (int k = 0; k < 32; k++)                                                                      \
                here |= PLACE_KEY(data[found + k]) == best;                                                   \
            if (here)                                                                                         \
                break;                                                                                        \
        }                                                                                                     \
        while (PLACE_KEY(data[found]) != best)                                                                \
            found++;                                                                                          \
        *key = best;                                                                                          \
        return found;                                                                                         \
    }                                                                                                         \
    static void name##_strip(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, int64_t *into) { \
        const type *at = data;                                                                                \
        type best[STRIP];                                                                             \
        for (ptrdiff_t j = 0; j < width; j++)                                                                 \
            best[j] = KEY(at[j]);                                                                             \
        for (ptrdiff_t row = 1; row < rows; row++) {                                                          \
            at += step;                                                                                       \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                const type x = KEY(at[j]), before = best[j];                                                  \
                best[j] = x beats before ? x : before;                                                        \
            }                                                                                                 \
        }                                                                                                     \
        for (ptrdiff_t j = 0; j < width; j++)                                                                 \
            into[j] = best[j];                                                                                \
    }                                                                                                         \
    static void name##_place_strip(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, int64_t *keys, \
                                   int64_t *places) {                                                         \
        const type *at = data;                                                                                \
        type best[STRIP];                                                                             \
        index found[STRIP] = {0};                                                                     \
        for (ptrdiff_t j = 0; j < width; j++)                                                                 \
            best[j] = PLACE_KEY(at[j]);                                                                       \
        for (ptrdiff_t row = 1; row < rows; row++) {                                                          \
            const index here = (index)row;                                                                    \
            at += step;                                                                                       \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                const type x = PLACE_KEY(at[j]), before = best[j];                                            \
                best[j] = x beats before ? x : before;                                                        \
                found[j] = x beats before ? here : found[j];                                                  \
            }                                                                                                 \
        }                                                                                                     \
        for (ptrdiff_t j = 0; j < width; j++) {                                                               \
            keys[j] = best[j];                                                                                \
            places[j] = found[j];                                                                             \
        }                                                                                                     \
    }

#define BOTH_EXTREMES(suffix, type, index, KEY_LARGEST, PLACE_LARGEST, KEY_SMALLEST, PLACE_SMALLEST)          \
    EXTREMES(largest_##suffix, type, index, KEY_LARGEST, PLACE_LARGEST, >)                                    \
    EXTREMES(smallest_##suffix, type, index, KEY_SMALLEST, PLACE_SMALLEST, <)                                 \
    static int64_t extreme_##suffix(const void *row, ptrdiff_t count, bool largest) {                         \
        return (largest ? largest_##suffix : smallest_##suffix)(row, count);                                  \
    }                                                                                                         \
    static ptrdiff_t place_##suffix(const void *row, ptrdiff_t count, bool largest, int64_t *key) {           \
        return (largest ? largest_##suffix##_place : smallest_##suffix##_place)(row, count, key);             \
    }                                                                                                         \
    static void extreme_##suffix##_strip(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, bool largest, \
                                         int64_t *into) {                                                     \
        (largest ? largest_##suffix##_strip : smallest_##suffix##_strip)(data, rows, step, width, into);      \
    }                                                                                                         \
    static void place_##suffix##_strip(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, bool largest, \
                                       int64_t *keys, int64_t *places) {                                      \
        (largest ? largest_##suffix##_place_strip : smallest_##suffix##_place_strip)(data, rows, step, width, keys, places); \
    }

#define SAME(x) (x)
#define INTEGER_EXTREMES(suffix, type, index) BOTH_EXTREMES(suffix, type, index, SAME, SAME, SAME, SAME)
INTEGER_EXTREMES(i8, int8_t, int32_t)
INTEGER_EXTREMES(i16, int16_t, int32_t)
INTEGER_EXTREMES(i32, int32_t, int32_t)
INTEGER_EXTREMES(i64, int64_t, int64_t)
INTEGER_EXTREMES(u8, uint8_t, int32_t)
/* Where other bytes are seen as bools several are true, and the first of those is the place of the largest. */
#define IS_TRUE(x) ((x) != 0)
BOTH_EXTREMES(bool, uint8_t, int32_t, SAME, IS_TRUE, SAME, IS_TRUE)

/* Of rows one after another, as many at once as a vector has elements: what goes from lane to lane is joined for all of them. */
typedef int32_t narrow __attribute__((vector_size(WIDE * 8)));
typedef narrow narrow_anywhere __attribute__((aligned(1), may_alias));
enum { NARROW = 2 * WIDE };
#if VECTOR > 16
#define ZIP_wide ZIP_4
#define ZIP_narrow ZIP_8
#else
#define ZIP_wide ZIP_2
#define ZIP_narrow ZIP_4
#endif

/* GCC 12 makes three instructions of these where there is one or two. */
#if defined(__AVX512VL__)
#define EXTREME_wide(max, x, y) (wide)_mm256_##max##_epi64((__m256i)(x), (__m256i)(y))
#endif
#if defined(__AVX2__)
#define EXTREME_narrow(max, x, y) (narrow)_mm256_##max##_epi32((__m256i)(x), (__m256i)(y))
#endif
#define CHOSEN(x, y, is_x) (((x) & (is_x)) | ((y) & ~(is_x)))
#ifdef EXTREME_wide
ALWAYS_INLINE wide larger_wide(wide x, wide y) { return EXTREME_wide(max, x, y); }
ALWAYS_INLINE wide smaller_wide(wide x, wide y) { return EXTREME_wide(min, x, y); }
#else
ALWAYS_INLINE wide larger_wide(wide x, wide y) { return CHOSEN(x, y, x > y); }
ALWAYS_INLINE wide smaller_wide(wide x, wide y) { return CHOSEN(x, y, x < y); }
#endif
#ifdef EXTREME_narrow
ALWAYS_INLINE narrow larger_narrow(narrow x, narrow y) { return EXTREME_narrow(max, x, y); }
ALWAYS_INLINE narrow smaller_narrow(narrow x, narrow y) { return EXTREME_narrow(min, x, y); }
#else
ALWAYS_INLINE narrow larger_narrow(narrow x, narrow y) { return CHOSEN(x, y, x > y); }
ALWAYS_INLINE narrow smaller_narrow(narrow x, narrow y) { return CHOSEN(x, y, x < y); }
#endif

#define AT_ONCE(name, type, vector, lanes, LAST, JOIN, one)                                                   \
    static void name(const void *data, ptrdiff_t rows, ptrdiff_t count, int64_t *into) {                      \
        const ptrdiff_t new = (count - 1) % lanes + 1; /* elements of the last vector, which begins early */  \
        vector is_new;                                                                                        \
        ptrdiff_t i = 0;                                                                                      \
        for (int k = 0; k < lanes; k++)                                                                       \
            is_new[k] = k < lanes - new ? 0 : -1;                                                             \
        (void)is_new;                                                                                         \
        for (; count >= lanes && count < 32 * lanes && i + lanes <= rows; i += lanes) {                        \
            vector of[lanes];                                                                                 \
            for (int k = 0; k < lanes; k++) {                                                                 \
                const type *row = (const type *)data + (i + k) * count;                                       \
                vector all = LAST(*(const vector##_anywhere *)(row + count - lanes), is_new);                 \
                for (ptrdiff_t j = 0; j + lanes < count; j += lanes) {                                        \
                    const vector x = *(const vector##_anywhere *)(row + j);                                   \
                    all = JOIN(x, all);                                                                       \
                }                                                                                             \
                of[k] = all;                                                                                  \
            }                                                                                                 \
            for (int half = lanes / 2; half; half /= 2)                                                       \
                for (int k = 0; k < half; k++) {                                                              \
                    const vector x = ZIP_##vector(of[k], of[k + half], 0), y = ZIP_##vector(of[k], of[k + half], lanes / 2); \
                    of[k] = JOIN(x, y);                                                                       \
                }                                                                                             \
            for (int k = 0; k < lanes; k++)                                                                   \
                into[i + k] = of[0][k];                                                                       \
        }                                                                                                     \
        for (; i < rows; i++)                                                                                 \
            into[i] = one((const type *)data + i * count, count);                                             \
    }
#define ADDED(x, y) ((x) + (y))
#define ALL_OF_IT(x, is_new) (x)
#define WHAT_IS_NEW(x, is_new) ((x) & (is_new))
AT_ONCE(sums_i64, int64_t, wide, WIDE, WHAT_IS_NEW, ADDED, sum_i64)
AT_ONCE(largest_rows_i64, int64_t, wide, WIDE, ALL_OF_IT, larger_wide, largest_i64)
AT_ONCE(smallest_rows_i64, int64_t, wide, WIDE, ALL_OF_IT, smaller_wide, smallest_i64)
AT_ONCE(largest_rows_i32, int32_t, narrow, NARROW, ALL_OF_IT, larger_narrow, largest_i32)
AT_ONCE(smallest_rows_i32, int32_t, narrow, NARROW, ALL_OF_IT, smaller_narrow, smallest_i32)

/* Without a condition, of which GCC 12 makes no vectors in a reduction. */
ALWAYS_INLINE int16_t chosen(int16_t key, int16_t nan, bool is_nan) {
    const int16_t all = (int16_t)-is_nan;
    return (int16_t)(key ^ ((key ^ nan) & all));
}

/* `infinity` is its bits, over which those of NaN are. */
#define HALF_EXTREMES(suffix, infinity)                                                                       \
    ALWAYS_INLINE int16_t order_of_##suffix(int16_t x, int16_t nan) {                                         \
        const int16_t size = (int16_t)(x & 0x7fff);                                                           \
        return chosen(native_key_bits(x), nan, size > infinity);                                              \
    }                                                                                                         \
    ALWAYS_INLINE int16_t value_of_##suffix(int16_t x, int16_t nan) {                                         \
        const int16_t size = (int16_t)(x & 0x7fff), sign = (int16_t)(x >> 15);                                \
        return chosen((int16_t)((size ^ sign) - sign), nan, size > infinity);                                 \
    }                                                                                                         \
    ALWAYS_INLINE int16_t up_##suffix(int16_t x) { return order_of_##suffix(x, INT16_MAX); }                  \
    ALWAYS_INLINE int16_t down_##suffix(int16_t x) { return order_of_##suffix(x, INT16_MIN); }                \
    ALWAYS_INLINE int16_t value_up_##suffix(int16_t x) { return value_of_##suffix(x, INT16_MAX); }            \
    ALWAYS_INLINE int16_t value_down_##suffix(int16_t x) { return value_of_##suffix(x, INT16_MIN); }          \
    BOTH_EXTREMES(suffix, int16_t, int32_t, up_##suffix, value_up_##suffix, down_##suffix, value_down_##suffix)
HALF_EXTREMES(bf16, 0x7f80)
HALF_EXTREMES(f16, 0x7c00)

#define COUNTS(suffix) .count = count_##suffix, .count_strip = count_##suffix##_strip
#define PLACES(suffix)                                                                                        \
    .extreme = extreme_##suffix, .extreme_strip = extreme_##suffix##_strip, .place = place_##suffix,          \
    .place_strip = place_##suffix##_strip
#define ALL_OF(suffix) .sum = sum_##suffix, .sum_strip = sum_##suffix##_strip, COUNTS(suffix), PLACES(suffix)

const integer_loops ISA(integer_loops) = {.product = product, .of = {
    [TYPE_F32] = {COUNTS(f32)}, [TYPE_F64] = {COUNTS(f64)}, [TYPE_BF16] = {COUNTS(half), PLACES(bf16)},
    [TYPE_F16] = {COUNTS(half), PLACES(f16)}, [TYPE_I8] = {ALL_OF(i8)}, [TYPE_I16] = {ALL_OF(i16)},
    [TYPE_I32] = {ALL_OF(i32), .largest_rows = largest_rows_i32, .smallest_rows = smallest_rows_i32},
    [TYPE_I64] = {ALL_OF(i64), .sums = sums_i64, .largest_rows = largest_rows_i64, .smallest_rows = smallest_rows_i64},
    [TYPE_U8] = {ALL_OF(u8)}, [TYPE_BOOL] = {.sum = count_u8, .sum_strip = count_u8_strip, COUNTS(u8), PLACES(bool)},
}};
