/* The loops of distances of pairs, and of running logarithms of sums. */
#include "functions.h"
#include "half.h"
#include "loop.h"

#include "../lines.h"

#include <math.h>

enum { TERMS = 16, LONG_TERMS = 64 }; /* squares that are added up before their sum is added to the others; of long rows */

/* What a difference of two elements is in a sum of squares, in one of sizes, and to the largest of them, which NaN is; and what such sums
   are to one another. */
#define SQUARE(V, VI, most, sum, x) sum += (x) * (x)
#define SIZE_OF(V, VI, most, x) ((V)((VI)(x) & ((VI){0} + most)))
#define SIZE(V, VI, most, sum, x) sum += SIZE_OF(V, VI, most, x)
#define SUM(V, VI, most, sum, x) sum += (x)
#define LARGEST(V, VI, most, sum, x)                                                                          \
    do {                                                                                                      \
        const V size = SIZE_OF(V, VI, most, x);                                                               \
        const VI more = (VI)((size > sum) | (size != size));                                                  \
        sum = (V)(((VI)size & more) | ((VI)sum & ~more));                                                     \
    } while (0)
#define AS_IT_IS(x) (x)

#define PAIRS(name, suffix, type, V, V_U, VI, most, LANES, add, join, root)                                   \
    static void name##_##suffix(const pairs_run *run, ptrdiff_t first) {                                       \
        enum { PANEL = 2 * LANES };                                                                           \
        const ptrdiff_t rows = run->rows, width = run->width, columns = run->others ? run->others : rows;     \
        const type *x[PAIR_ROWS];                                                                             \
        for (int r = 0; r < PAIR_ROWS; r++)                                                                   \
            x[r] = (const type *)run->x + (first + r < rows ? first + r : rows - 1) * width;                  \
        for (ptrdiff_t start = run->others ? 0 : (first + 1) / PANEL * PANEL; start < columns; start += PANEL) { \
            const type *packed = (const type *)run->packed + start * width;                                   \
            V all[PAIR_ROWS][2] = {0};                                                                        \
            for (ptrdiff_t k = 0; k < width;) {                                                               \
                const ptrdiff_t end = k + TERMS < width ? k + TERMS : width;                                  \
                V sums[PAIR_ROWS][2] = {0};                                                                   \
                for (; k < end; k++) {                                                                        \
                    const V low = *(const V_U *)(packed + k * PANEL), high = *(const V_U *)(packed + k * PANEL + LANES); \
                    for (int r = 0; r < PAIR_ROWS; r++) {                                                     \
                        const V near = low - x[r][k], far = high - x[r][k];                                   \
                        add(V, VI, most, sums[r][0], near);                                                   \
                        add(V, VI, most, sums[r][1], far);                                                    \
                    }                                                                                         \
                }                                                                                             \
                for (int r = 0; r < PAIR_ROWS; r++) {                                                         \
                    join(V, VI, most, all[r][0], sums[r][0]);                                                 \
                    join(V, VI, most, all[r][1], sums[r][1]);                                                 \
                }                                                                                             \
            }                                                                                                 \
            const ptrdiff_t stop = columns - start < PANEL ? columns - start : PANEL;                         \
            for (ptrdiff_t i = first; i < first + PAIR_ROWS && i < rows; i++) {                               \
                const type *squares = (const type *)all[i - first];                                           \
                const ptrdiff_t behind = run->others ? 0 : i + 1; /* the first of its columns */              \
                type *made = (type *)run->made + (run->others ? i * columns : i * (2 * rows - i - 1) / 2) + start - behind; \
                INDEPENDENT for (ptrdiff_t j = behind > start ? behind - start : 0; j < stop; j++)            \
                    made[j] = root(squares[j]);                                                               \
            }                                                                                                 \
        }                                                                                                     \
    }
/* The same of few rows that are long: a pair at a time, as they lie, in two vectors of sums. */
#define LONG_PAIRS(name, suffix, type, V, V_U, VI, most, LANES, add, join, root)                              \
    static void name##_long_##suffix(const pairs_run *run, ptrdiff_t first) {                                 \
        const ptrdiff_t rows = run->rows, width = run->width, columns = run->others ? run->others : rows;     \
        for (ptrdiff_t i = first; i < first + PAIR_ROWS && i < rows; i++) {                                   \
            const type *x = (const type *)run->x + i * width;                                                 \
            const ptrdiff_t behind = run->others ? 0 : i + 1; /* the first of its columns */                  \
            type *made = (type *)run->made + (run->others ? i * columns : i * (2 * rows - i - 1) / 2);        \
            for (ptrdiff_t j = behind; j < columns; j++) {                                                    \
                const type *y = (const type *)run->packed + j * width;                                        \
                V all[2] = {0}, total = {0};                                                                  \
                ptrdiff_t k = 0;                                                                              \
                while (k + 2 * LANES <= width) {                                                              \
                    V sums[2] = {0};                                                                          \
                    for (int term = 0; term < LONG_TERMS && k + 2 * LANES <= width; term++, k += 2 * LANES) { \
                        const V near = *(const V_U *)(y + k) - *(const V_U *)(x + k);                         \
                        const V far = *(const V_U *)(y + k + LANES) - *(const V_U *)(x + k + LANES);          \
                        add(V, VI, most, sums[0], near);                                                      \
                        add(V, VI, most, sums[1], far);                                                       \
                    }                                                                                         \
                    join(V, VI, most, all[0], sums[0]);                                                       \
                    join(V, VI, most, all[1], sums[1]);                                                       \
                }                                                                                             \
                join(V, VI, most, all[0], all[1]);                                                            \
                for (; k < width; k++) {                                                                      \
                    const V rest = {y[k] - x[k]}; /* and zeros, which change no sum */                        \
                    add(V, VI, most, all[0], rest);                                                           \
                }                                                                                             \
                for (int lane = 0; lane < LANES; lane++) {                                                    \
                    const V one = {all[0][lane]};                                                             \
                    join(V, VI, most, total, one);                                                            \
                }                                                                                             \
                made[j - behind] = root(total[0]);                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }

#define DISTANCES(...) PAIRS(__VA_ARGS__) LONG_PAIRS(__VA_ARGS__)
DISTANCES(euclid, f32, float, vf, vf_u, vi, INT32_MAX, LANES_F32, SQUARE, SUM, sqrtf)
DISTANCES(euclid, f64, double, vd, vd_u, vl, INT64_MAX, LANES_F64, SQUARE, SUM, sqrt)
DISTANCES(sizes, f32, float, vf, vf_u, vi, INT32_MAX, LANES_F32, SIZE, SUM, AS_IT_IS)
DISTANCES(sizes, f64, double, vd, vd_u, vl, INT64_MAX, LANES_F64, SIZE, SUM, AS_IT_IS)
DISTANCES(largest, f32, float, vf, vf_u, vi, INT32_MAX, LANES_F32, LARGEST, LARGEST, AS_IT_IS)
DISTANCES(largest, f64, double, vd, vd_u, vl, INT64_MAX, LANES_F64, LARGEST, LARGEST, AS_IT_IS)

/* A running sum is `sum` times e^top, with the largest element so far as `top`: one power an element, in double. Two equal infinities
   are no distance apart. */
ALWAYS_INLINE void add_power(double x, double *top, double *sum) {
    const double away = x == *top ? 0 : x - *top, power = exp__f64(-abs__f64(away));
    *sum = away > 0 ? *sum * power + 1 : *sum + power;
    *top = x > *top ? x : *top;
}

/* Columns `apart` from one another, and short rows as such ones. */
#define COLUMN_SUMS(suffix, type)                                                                             \
    ALWAYS_INLINE void sums_beside_##suffix(const type *x, type *made, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t width, ptrdiff_t apart) { \
        double top[SUM_COLUMNS], sum[SUM_COLUMNS];                                                            \
        for (ptrdiff_t k = 0; k < width; k++) {                                                               \
            top[k] = -INFINITY;                                                                               \
            sum[k] = 0;                                                                                       \
        }                                                                                                     \
        for (ptrdiff_t i = 0; i < n; i++, x += inner, made += inner)                                          \
            INDEPENDENT for (ptrdiff_t k = 0; k < width; k++) {                                               \
                add_power(x[k * apart], top + k, sum + k);                                                    \
                made[k * apart] = (type)(top[k] + log__f64(sum[k]));                                          \
            }                                                                                                 \
    }                                                                                                         \
    static void column_sums_##suffix(const void *from, void *to, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t width) { \
        sums_beside_##suffix(from, to, n, inner, width, 1);                                                   \
    }                                                                                                         \
    static void short_sums_##suffix(const void *from, void *to, ptrdiff_t n, ptrdiff_t rows) {                \
        sums_beside_##suffix(from, to, n, 1, rows, n);                                                        \
    }
COLUMN_SUMS(f32, float)
COLUMN_SUMS(f64, double)

enum { FEW = 64 };
#define FAR 600 /* e^-FAR is a number as exact as others */

/* FEW elements share a `top`, so that powers and logarithms are made side by side, where the first of them, or what was before, is not
   far below it; else each has its own. */
#define ROW_SUMS(suffix, type)                                                                                \
    static void row_sums_##suffix(const void *from, void *to, ptrdiff_t n) {                                  \
        double top = -INFINITY, sum = 0, powers[FEW];                                                         \
        for (ptrdiff_t begin = 0; begin < n; begin += FEW) {                                                  \
            const type *x = (const type *)from + begin;                                                       \
            type *made = (type *)to + begin;                                                                  \
            const ptrdiff_t count = n - begin < FEW ? n - begin : FEW;                                        \
            const double least = x[0] > top ? x[0] : top;                                                     \
            double most = least;                                                                              \
            for (ptrdiff_t i = 0; i < count; i++)                                                             \
                most = x[i] > most ? x[i] : most;                                                             \
            if (most - least <= FAR) {                                                                        \
                sum *= exp__f64(top - most);                                                                  \
                top = most;                                                                                   \
                for (ptrdiff_t i = 0; i < count; i++)                                                         \
                    powers[i] = exp__f64(x[i] - top);                                                         \
                for (ptrdiff_t i = 0; i < count; i++)                                                         \
                    powers[i] = sum += powers[i];                                                             \
                for (ptrdiff_t i = 0; i < count; i++)                                                         \
                    made[i] = (type)(top + log__f64(powers[i]));                                              \
            } else {                                                                                          \
                for (ptrdiff_t i = 0; i < count; i++) {                                                       \
                    add_power(x[i], &top, &sum);                                                              \
                    made[i] = (type)(top + log__f64(sum));                                                    \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }
ROW_SUMS(f32, float)
ROW_SUMS(f64, double)

#define ADDED(suffix, type)                                                                                   \
    static void added_##suffix(const void *from, double beta, const void *row, double factor, void *to, ptrdiff_t n) { \
        const type *x = (const type *)from, *y = (const type *)row;                                           \
        const type a = (type)beta, b = (type)factor;                                                          \
        type *made = (type *)to;                                                                              \
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)                                                         \
            made[i] = a * x[i] + b * y[i];                                                                    \
    }
ADDED(f32, float)
ADDED(f64, double)

#define CROSSES(half)                                                                                         \
    ALWAYS_INLINE uint16_t less_##half(const uint16_t *x, const uint16_t *y, ptrdiff_t one, ptrdiff_t two) {  \
        const float first = half##_value(half##_of(half##_value(x[one]) * half##_value(y[two])));             \
        return half##_of(first - half##_value(half##_of(half##_value(x[two]) * half##_value(y[one]))));       \
    }                                                                                                         \
    static void crosses_##half(const uint16_t *x, const uint16_t *y, uint16_t *made, ptrdiff_t lines, ptrdiff_t step) { \
        for (ptrdiff_t line = 0; line < lines; line++) {                                                      \
            const ptrdiff_t at = line / step * 3 * step + line % step;                                        \
            made[at] = less_##half(x + at, y + at, step, 2 * step);                                           \
            made[at + step] = less_##half(x + at, y + at, 2 * step, 0);                                       \
            made[at + 2 * step] = less_##half(x + at, y + at, 0, step);                                       \
        }                                                                                                     \
    }
CROSSES(bf16)
CROSSES(f16)

const line_loops ISA(line_loops) = {{2 * LANES_F32, 2 * LANES_F64},
                                        {{euclid_f32, sizes_f32, largest_f32}, {euclid_f64, sizes_f64, largest_f64}},
                                        {{euclid_long_f32, sizes_long_f32, largest_long_f32},
                                         {euclid_long_f64, sizes_long_f64, largest_long_f64}},
                                        {row_sums_f32, row_sums_f64},
                                        {column_sums_f32, column_sums_f64},
                                        {short_sums_f32, short_sums_f64},
                                        {crosses_bf16, crosses_f16},
                                        {added_f32, added_f64}};
