/* Reductions of rows and of strips of columns: extremes, running sums, and the sums of sums.h. */
#include "sums.h"

#include <math.h>
#include <string.h>

/* The larger and the smaller of two rows of elements, the second where one of them is NaN, and whether one is. GCC makes masks of
   comparisons, and three instructions of each of these. */
#if defined(__AVX2__)
#define ROWS_OF_TWO(suffix, mask, ps)                                                                                      \
    ALWAYS_INLINE row_##suffix larger_##suffix(row_##suffix x, row_##suffix y) { return _mm256_max_##ps(x, y); }           \
    ALWAYS_INLINE row_##suffix smaller_##suffix(row_##suffix x, row_##suffix y) { return _mm256_min_##ps(x, y); }          \
    ALWAYS_INLINE row_##mask unordered_##suffix(row_##suffix x, row_##suffix y) {                                          \
        return (row_##mask)_mm256_cmp_##ps(x, y, _CMP_UNORD_Q);                                                            \
    }
#else
#define CHOSEN(suffix, mask, is_x) (row_##suffix)(((row_##mask)x & (is_x)) | ((row_##mask)y & ~(is_x)))
#define ROWS_OF_TWO(suffix, mask, ps)                                                                                      \
    ALWAYS_INLINE row_##suffix larger_##suffix(row_##suffix x, row_##suffix y) { return CHOSEN(suffix, mask, x > y); }     \
    ALWAYS_INLINE row_##suffix smaller_##suffix(row_##suffix x, row_##suffix y) { return CHOSEN(suffix, mask, x < y); }    \
    ALWAYS_INLINE row_##mask unordered_##suffix(row_##suffix x, row_##suffix y) { return (x != x) | (y != y); }
#endif
ROWS_OF_TWO(f32, i32, ps)
ROWS_OF_TWO(f64, i64, pd)

/* The larger and the smaller of whole registers without NaN. */
#if defined(__AVX512F__)
#define WIDE_OF_TWO(suffix, vector, ps)                                                                                    \
    ALWAYS_INLINE vector larger_wide_##suffix(vector x, vector y) { return (vector)_mm512_max_##ps(x, y); }                \
    ALWAYS_INLINE vector smaller_wide_##suffix(vector x, vector y) { return (vector)_mm512_min_##ps(x, y); }
#else /* which are as wide as rows are read */
#define WIDE_OF_TWO(suffix, vector, ps)                                                                                    \
    ALWAYS_INLINE vector larger_wide_##suffix(vector x, vector y) { return larger_##suffix(x, y); }                        \
    ALWAYS_INLINE vector smaller_wide_##suffix(vector x, vector y) { return smaller_##suffix(x, y); }
#endif
WIDE_OF_TWO(f32, vf, ps)
WIDE_OF_TWO(f64, vd, pd)

/* The extreme of a row that is FAR, up to what no longer fills 128 bytes, and how much that is: with as few instructions as can be, since
   a processor asks memory for what those that it has begun will read (a Zen 4 begins 320): 40 MB took 10 % less with AVX-512. Instead of looks for
   a NaN there are sums, which are NaN for infinities of both signs too: then the answer is 0, and nothing is found. */
#define FAR_EXTREME(name, type, suffix, vector, better, beats)                                                \
    static ptrdiff_t name##_far(const type *data, ptrdiff_t count, type *best) {                              \
        enum { EACH = VECTOR / sizeof(type), REGISTERS = 128 / VECTOR, STEP = EACH * REGISTERS };             \
        vector m[REGISTERS], s[REGISTERS] = {{0}};                                                            \
        ptrdiff_t i = 0;                                                                                      \
        for (int k = 0; k < REGISTERS; k++)                                                                   \
            m[k] = *(const vector##_u *)data;                                                                 \
        for (; i + STEP <= count; i += STEP)                                                                  \
            for (int k = 0; k < REGISTERS; k++) {                                                             \
                const vector x = *(const vector##_u *)(data + i + k * EACH);                                  \
                m[k] = better##_wide_##suffix(x, m[k]);                                                       \
                s[k] += x;                                                                                    \
            }                                                                                                 \
        for (int k = 0; k < STEP; k++) {                                                                      \
            if (s[k / EACH][k % EACH] != s[k / EACH][k % EACH])                                               \
                return 0;                                                                                     \
            *best = m[k / EACH][k % EACH] beats *best ? m[k / EACH][k % EACH] : *best;                        \
        }                                                                                                     \
        return i;                                                                                             \
    }

/* NaN is looked for beside the extreme, in two rows of elements at once. */
#define ROW_EXTREME(name, type, suffix, mask, lanes, better, beats)                                           \
    static type name(const type *data, ptrdiff_t count) {                                                     \
        type best = data[0];                                                                                  \
        if (count < lanes) {                                                                                  \
            for (ptrdiff_t i = 1; i < count; i++)                                                             \
                best = ((data[i] beats best) | (data[i] != data[i])) ? data[i] : best;                        \
            return best;                                                                                      \
        }                                                                                                     \
        ptrdiff_t i = count * (ptrdiff_t)sizeof(type) < FAR ? 0 : name##_far(data, count, &best);             \
        row_##suffix m[CHAINS];                                                                               \
        row_##mask nan = {0};                                                                                 \
        for (int k = 0; k < CHAINS; k++)                                                                      \
            m[k] = load_##suffix(data);                                                                       \
        for (; i + CHAINS * lanes <= count; i += CHAINS * lanes)                                              \
            for (int k = 0; k < CHAINS; k += 2) {                                                             \
                const row_##suffix x = load_##suffix(data + i + k * lanes), y = load_##suffix(data + i + (k + 1) * lanes); \
                m[k] = better##_##suffix(x, m[k]);                                                            \
                m[k + 1] = better##_##suffix(y, m[k + 1]);                                                    \
                nan |= unordered_##suffix(x, y);                                                              \
            }                                                                                                 \
        for (int step = CHAINS / 2; step; step /= 2)                                                          \
            for (int k = 0; k < step; k++)                                                                    \
                m[k] = better##_##suffix(m[k + step], m[k]);                                                  \
        row_##suffix all = m[0];                                                                              \
        for (; i < count; i += lanes) { /* the last begins where a whole one fits */                          \
            const row_##suffix x = load_##suffix(data + (i + lanes <= count ? i : count - lanes));            \
            all = better##_##suffix(x, all);                                                                  \
            nan |= unordered_##suffix(x, x);                                                                  \
        }                                                                                                     \
        type last[lanes];                                                                                     \
        int none = 1;                                                                                         \
        memcpy(last, &all, sizeof last);                                                                      \
        for (int k = 0; k < lanes; k++)                                                                       \
            none &= !nan[k];                                                                                  \
        for (int k = 0; k < lanes; k++)                                                                       \
            best = last[k] beats best ? last[k] : best;                                                       \
        return none ? best : (type)NAN;                                                                       \
    }

/* Of rows one after another, as many at once as a vector has elements; those with a NaN among them one by one. */
#define ROW_EXTREMES(name, type, suffix, mask, lanes, better)                                                 \
    static void name##_of_rows(const type *data, ptrdiff_t rows, ptrdiff_t count, double *into) {             \
        ptrdiff_t i = 0;                                                                                      \
        for (; count >= lanes && count <= 4 * CHAINS * lanes && i + lanes <= rows; i += lanes) {               \
            row_##suffix best[lanes];                                                                         \
            row_##mask nan = {0};                                                                             \
            for (int k = 0; k < lanes; k++) {                                                                 \
                const type *at = data + (i + k) * count;                                                      \
                row_##suffix all = load_##suffix(at + count - lanes), x;                                      \
                nan |= unordered_##suffix(all, all);                                                          \
                for (ptrdiff_t j = 0; j + lanes < count; j += lanes) {                                        \
                    x = load_##suffix(at + j);                                                                \
                    nan |= unordered_##suffix(x, x);                                                          \
                    all = better##_##suffix(x, all);                                                          \
                }                                                                                             \
                best[k] = all;                                                                                \
            }                                                                                                 \
            for (int half = lanes / 2; half; half /= 2)                                                       \
                for (int k = 0; k < half; k++)                                                                \
                    best[k] = better##_##suffix(ROW_ZIP_##suffix(best[k], best[k + half], 0),                 \
                                                ROW_ZIP_##suffix(best[k], best[k + half], lanes / 2));        \
            bool none = true;                                                                                 \
            for (int k = 0; k < lanes; k++)                                                                   \
                none &= !nan[k];                                                                              \
            for (int k = 0; k < lanes; k++)                                                                   \
                into[i + k] = none ? best[0][k] : name(data + (i + k) * count, count);                        \
        }                                                                                                     \
        for (; i < rows; i++)                                                                                 \
            into[i] = name(data + i * count, count);                                                          \
    }

/* EXTREME_ROWS rows of some columns at a time, whose extremes stay in registers. */
enum { EXTREME_ROWS = 32, EXTREME_VECTORS = 4 };
#define EXTREME_COLUMNS(name, type, suffix, mask, lanes, better)                                              \
    ALWAYS_INLINE void name##_columns(const type *at, ptrdiff_t rows, ptrdiff_t step, type *values, int vectors) { \
        row_##suffix m[EXTREME_VECTORS], not_one = (row_##suffix){0} + (type)NAN;                             \
        row_##mask nan[EXTREME_VECTORS];                                                                      \
        for (int v = 0; v < vectors; v++) {                                                                   \
            m[v] = load_##suffix(values + v * lanes);                                                         \
            nan[v] = unordered_##suffix(m[v], m[v]);                                                          \
        }                                                                                                     \
        ptrdiff_t row = 0;                                                                                    \
        for (; row + 2 <= rows; row += 2, at += 2 * step)                                                     \
            for (int v = 0; v < vectors; v++) {                                                               \
                const row_##suffix x = load_##suffix(at + v * lanes), y = load_##suffix(at + step + v * lanes); \
                m[v] = better##_##suffix(y, better##_##suffix(x, m[v]));                                      \
                nan[v] |= unordered_##suffix(x, y);                                                           \
            }                                                                                                 \
        for (int v = 0; v < vectors; v++) {                                                                   \
            if (row < rows) {                                                                                 \
                const row_##suffix x = load_##suffix(at + v * lanes);                                         \
                m[v] = better##_##suffix(x, m[v]);                                                            \
                nan[v] |= unordered_##suffix(x, x);                                                           \
            }                                                                                                 \
            m[v] = (row_##suffix)(((row_##mask)m[v] & ~nan[v]) | ((row_##mask)not_one & nan[v]));             \
            memcpy(values + v * lanes, &m[v], sizeof m[v]);                                                   \
        }                                                                                                     \
    }

#define STRIP_EXTREME(name, type, suffix, mask, lanes, better, index, beats)                                  \
    EXTREME_COLUMNS(name, type, suffix, mask, lanes, better)                                                  \
    static void name(const type *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, type *values) {       \
        for (ptrdiff_t row = 1; row < rows; row += EXTREME_ROWS) {                                            \
            const ptrdiff_t some = rows - row < EXTREME_ROWS ? rows - row : EXTREME_ROWS;                     \
            const type *at = data + row * step;                                                               \
            ptrdiff_t j = 0;                                                                                  \
            for (; j + EXTREME_VECTORS * lanes <= width; j += EXTREME_VECTORS * lanes)                        \
                name##_columns(at + j, some, step, values + j, EXTREME_VECTORS);                              \
            for (; j < width && width >= lanes; j += lanes) { /* the last begins where a whole one fits */    \
                const ptrdiff_t from = j + lanes <= width ? j : width - lanes;                                \
                name##_columns(at + from, some, step, values + from, 1);                                      \
            }                                                                                                 \
            for (; j < width; j++)                                                                            \
                for (ptrdiff_t k = 0; k < some; k++) {                                                        \
                    const type x = at[k * step + j];                                                          \
                    values[j] = ((x beats values[j]) | (x != x)) ? x : values[j];                             \
                }                                                                                             \
        }                                                                                                     \
    }                                                                                                         \
    static void name##_place(const type *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, type *values, \
                             int64_t *places) {                                                               \
        index at_row[STRIP] = {0};                                                                            \
        for (ptrdiff_t row = 1; row < rows; row++) {                                                          \
            const type *at = data + row * step;                                                               \
            index here = (index)row;                                                                          \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                type x = at[j], best = values[j];                                                             \
                /* The first NaN stays. */                                                                    \
                bool better = (x beats best) | ((x != x) & (best == best));                                   \
                values[j] = better ? x : best;                                                                \
                at_row[j] = better ? here : at_row[j];                                                        \
            }                                                                                                 \
        }                                                                                                     \
        for (ptrdiff_t j = 0; j < width; j++)                                                                 \
            places[j] = at_row[j];                                                                            \
    }

#define FAMILY(suffix, type, mask, lanes, index, vector)                                                       \
    FAR_EXTREME(largest_##suffix, type, suffix, vector, larger, >)                                            \
    FAR_EXTREME(smallest_##suffix, type, suffix, vector, smaller, <)                                          \
    ROW_EXTREME(largest_##suffix, type, suffix, mask, lanes, larger, >)                                       \
    ROW_EXTREME(smallest_##suffix, type, suffix, mask, lanes, smaller, <)                                     \
    ROW_EXTREMES(largest_##suffix, type, suffix, mask, lanes, larger)                                         \
    ROW_EXTREMES(smallest_##suffix, type, suffix, mask, lanes, smaller)                                       \
    static void extremes_##suffix(const void *data, ptrdiff_t rows, ptrdiff_t count, bool largest, double *into) { \
        (largest ? largest_##suffix##_of_rows : smallest_##suffix##_of_rows)(data, rows, count, into);        \
    }                                                                                                         \
    STRIP_EXTREME(largest_strip_##suffix, type, suffix, mask, lanes, larger, index, >)                                                     \
    STRIP_EXTREME(smallest_strip_##suffix, type, suffix, mask, lanes, smaller, index, <)                                                    \
    static double extreme_##suffix(const void *row, ptrdiff_t count, bool largest) {                          \
        return largest ? largest_##suffix(row, count) : smallest_##suffix(row, count);                        \
    }                                                                                                         \
    static ptrdiff_t place_##suffix(const void *row, ptrdiff_t count, bool largest) {                         \
        /* The block with the extreme is found first, so that only that one is searched. */                   \
        const type *data = row;                                                                               \
        type best = data[0];                                                                                  \
        ptrdiff_t found = 0;                                                                                  \
        for (ptrdiff_t i = 0; i < count && best == best; i += 1024) {                                         \
            type one = (type)extreme_##suffix(data + i, count - i < 1024 ? count - i : 1024, largest);        \
            if ((largest ? one > best : one < best) || one != one) {                                          \
                best = one;                                                                                   \
                found = i;                                                                                    \
            }                                                                                                 \
        }                                                                                                     \
        /* By 32 as long as it is not among them. */                                                          \
        for (int here = 0; !here && count - found >= 32; found += here ? 0 : 32)                              \
            for (int k = 0; k < 32; k++)                                                                      \
                here |= best == best ? data[found + k] == best : data[found + k] != data[found + k];          \
        /* Of the last 32 the first; what stands before `found` is no extreme. */                             \
        const ptrdiff_t few = count < 32 ? count : 32;                                                        \
        found = count - found < few ? count - few : found;                                                    \
        uint32_t bits = 0;                                                                                    \
        if (few == 32)                                                                                        \
            for (int k = 0; k < 32; k++)                                                                      \
                bits |= (uint32_t)(best == best ? data[found + k] == best : data[found + k] != data[found + k]) << k; \
        else                                                                                                  \
            for (ptrdiff_t k = 0; k < few; k++)                                                               \
                bits |= (uint32_t)(best == best ? data[k] == best : data[k] != data[k]) << k;                 \
        found += __builtin_ctz(bits);                                                                         \
        return found;                                                                                         \
    }                                                                                                         \
    static void extreme_strip_##suffix(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width,     \
                                       bool largest, void *values) {                                          \
        (largest ? largest_strip_##suffix : smallest_strip_##suffix)(data, rows, step, width, values);        \
    }                                                                                                         \
    static void place_strip_##suffix(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width,       \
                                     bool largest, void *values, int64_t *places) {                           \
        (largest ? largest_strip_##suffix##_place : smallest_strip_##suffix##_place)(data, rows, step, width, \
                                                                                     values, places);         \
    }                                                                                                         \
    static void scan_##suffix(const void *row, void *result, ptrdiff_t count, double *carry) {                \
        const type *data = row;                                                                               \
        type *made = result;                                                                                  \
        double before = *carry;                                                                               \
        ptrdiff_t i = 0;                                                                                      \
        /* Sums within four do not wait for those before; one addition of four does. */                       \
        for (; i + 4 <= count; i += 4) {                                                                      \
            double a = data[i], b = a + data[i + 1], c = data[i + 2], d = c + data[i + 3];                    \
            made[i] = (type)(before + a);                                                                     \
            made[i + 1] = (type)(before + b);                                                                 \
            made[i + 2] = (type)(before + (b + c));                                                           \
            before += b + d;                                                                                  \
            made[i + 3] = (type)before;                                                                       \
        }                                                                                                     \
        for (; i < count; i++)                                                                                \
            made[i] = (type)(before += data[i]);                                                              \
        *carry = before;                                                                                      \
    }                                                                                                         \
    static void scan_strip_##suffix(const void *data, void *made, ptrdiff_t rows, ptrdiff_t step,             \
                                    ptrdiff_t width) {                                                        \
        double sums[STRIP] = {0};                                                                             \
        for (ptrdiff_t row = 0; row < rows; row++) {                                                          \
            const type *at = (const type *)data + row * step;                                                 \
            type *to = (type *)made + row * step;                                                             \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                double sum = sums[j] + at[j];                                                                 \
                sums[j] = sum;                                                                                \
                to[j] = (type)sum;                                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }

FAMILY(f32, float, i32, ROW_F32, int32_t, vf)
FAMILY(f64, double, i64, ROW_F64, int64_t, vd)

/* Four vectors of products beside one another, in the elements' own type, as PyTorch takes them. */
#define PRODUCT(name, type, vector, lanes)                                                                    \
    static double name(const void *from, ptrdiff_t count) {                                                   \
        const type *x = from;                                                                                 \
        type last[lanes], rest = 1;                                                                           \
        ptrdiff_t i = 0;                                                                                      \
        if (count >= lanes) {                                                                                 \
            vector all[4];                                                                                    \
            for (int k = 0; k < 4; k++)                                                                       \
                all[k] = (vector){0} + 1;                                                                     \
            for (; i + 4 * lanes <= count; i += 4 * lanes)                                                    \
                for (int k = 0; k < 4; k++)                                                                   \
                    all[k] *= *(const vector##_u *)(x + i + k * lanes);                                       \
            for (int k = 0; k < 4 && i + lanes <= count; k++, i += lanes)                                     \
                all[k] *= *(const vector##_u *)(x + i);                                                       \
            all[0] = (all[0] * all[1]) * (all[2] * all[3]);                                                   \
            memcpy(last, all, sizeof last);                                                                   \
            for (int k = 0; k < lanes; k += 2) /* none waits for what was stored together */                  \
                rest *= last[k] * last[k + 1];                                                                \
        }                                                                                                     \
        for (; i < count; i++)                                                                                \
            rest *= x[i];                                                                                     \
        return rest;                                                                                          \
    }
PRODUCT(product_f32, float, vf, LANES_F32)
PRODUCT(product_f64, double, vd, LANES_F64)

#define STRIP_PRODUCT(name, type)                                                                             \
    static void name(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, void *values) {       \
        type *made = values;                                                                                  \
        ptrdiff_t row = 1;                                                                                    \
        for (; row + 4 <= rows; row += 4) {                                                                   \
            const type *at = (const type *)data + row * step;                                                 \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)                                                 \
                made[j] *= (at[j] * at[step + j]) * (at[2 * step + j] * at[3 * step + j]);                    \
        }                                                                                                     \
        for (; row < rows; row++) {                                                                           \
            const type *at = (const type *)data + row * step;                                                 \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)                                                 \
                made[j] *= at[j];                                                                             \
        }                                                                                                     \
    }
STRIP_PRODUCT(product_strip_f32, float)
STRIP_PRODUCT(product_strip_f64, double)

static bool any_byte(const uint8_t *row, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i += 4096) {
        uint8_t found = 0;
        for (ptrdiff_t k = i, end = count - i < 4096 ? count : i + 4096; k < end; k++)
            found |= row[k];
        if (found)
            return true;
    }
    return false;
}

static bool all_bytes(const uint8_t *row, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i += 4096) {
        uint8_t found = 1;
        for (ptrdiff_t k = i, end = count - i < 4096 ? count : i + 4096; k < end; k++)
            found &= row[k];
        if (!found)
            return false;
    }
    return true;
}

#define SUMS(from, columns)                                                                                   \
    .sum = sum_##from, .sums = sums_##from, .squares = squares_##from, .squares_of_rows = sums_squares_##from,                     \
    .squares_strip = squares_strip_##from, .apart = apart_##from, .away = away_##from, .sum_strip = sum_##columns##_##from,       \
    .apart_strip = apart_strip_##from, .away_strip = away_strip_##from
#define FUNCTIONS(suffix)                                                                                     \
    {SUMS(suffix, columns), .extreme = extreme_##suffix, .extremes = extremes_##suffix, .place = place_##suffix, .extreme_strip = extreme_strip_##suffix, \
     .place_strip = place_strip_##suffix, .product = product_##suffix, .product_strip = product_strip_##suffix, .scan = scan_##suffix, .scan_strip = scan_strip_##suffix}

const reduce_loops ISA(reduce_loops) = {
    {[TYPE_F32] = FUNCTIONS(f32), [TYPE_F64] = FUNCTIONS(f64), [TYPE_BF16] = {SUMS(bf16, halves)}, [TYPE_F16] = {SUMS(f16, halves)}},
    any_byte, all_bytes,
};
