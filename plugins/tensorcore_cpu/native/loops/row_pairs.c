/* The loops of cosines and distances of two rows. Sums are made in double precision, row by row; roots and quotients of BLOCK rows side by
   side. */
#include "../row_pairs.h"
#include "loop.h"

#include <math.h>

enum { BLOCK = 64 };
/* A body for the widths of points and boxes, which it knows then, and one for all others. */
#define EACH_WIDTH(width, body)      \
    switch (width) {                 \
    case 2: body(2); break;          \
    case 3: body(3); break;          \
    case 4: body(4); break;          \
    default: body(width); break;     \
    }

ALWAYS_INLINE double greater(double x, double least) { return x > least || x != x ? x : least; }

#define LOOPS(suffix, type)                                                                                             \
    /* The products of two rows, as four sums that do not wait for one another. */                                      \
    ALWAYS_INLINE double dot_##suffix(const type *x, const type *y, ptrdiff_t width) {                                  \
        double sums[4] = {0};                                                                                           \
        ptrdiff_t k = 0;                                                                                                \
        for (; k + 4 <= width; k += 4)                                                                                  \
            _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) sums[l] += (double)x[k + l] * (double)y[k + l];         \
        _Pragma("GCC unroll 4") for (; k < width; k++) sums[0] += (double)x[k] * (double)y[k];                          \
        return (sums[0] + sums[2]) + (sums[1] + sums[3]);                                                               \
    }                                                                                                                   \
    /* A row whose sums overflow, or are no numbers: as the formula has it. */                                          \
    static double slowly_##suffix(const type *x, const type *y, ptrdiff_t width, double one, double other) {            \
        double sum = 0;                                                                                                 \
        for (ptrdiff_t k = 0; k < width; k++)                                                                           \
            sum += x[k] / one * (y[k] / other);                                                                         \
        return sum;                                                                                                     \
    }                                                                                                                   \
    ALWAYS_INLINE void cosine_of_##suffix(const type *x, const type *y, type *made, ptrdiff_t rows, ptrdiff_t width,    \
                                          double eps) {                                                                 \
        for (ptrdiff_t first = 0; first < rows; first += BLOCK, made += BLOCK) {                                        \
            const ptrdiff_t count = rows - first < BLOCK ? rows - first : BLOCK;                                        \
            double dots[BLOCK], xs[BLOCK], ys[BLOCK];                                                                   \
            for (ptrdiff_t i = 0; i < count; i++) {                                                                     \
                const type *const one = x + (first + i) * width, *const other = y + (first + i) * width;                \
                dots[i] = dot_##suffix(one, other, width);                                                              \
                xs[i] = dot_##suffix(one, one, width);                                                                  \
                ys[i] = dot_##suffix(other, other, width);                                                              \
            }                                                                                                           \
            int odd = 0;                                                                                                \
            for (ptrdiff_t i = 0; i < count; i++) {                                                                     \
                xs[i] = greater(sqrt(xs[i]), eps);                                                                      \
                ys[i] = greater(sqrt(ys[i]), eps);                                                                      \
                odd |= !(dots[i] - dots[i] == 0);                                                                       \
                made[i] = (type)(dots[i] / (xs[i] * ys[i]));                                                            \
            }                                                                                                           \
            for (ptrdiff_t i = 0; i < count && odd; i++)                                                                \
                if (!(dots[i] - dots[i] == 0))                                                                          \
                    made[i] = (type)slowly_##suffix(x + (first + i) * width, y + (first + i) * width, width, xs[i], ys[i]); \
        }                                                                                                               \
    }                                                                                                                   \
    static void cosine_##suffix(const void *x, const void *y, void *made, ptrdiff_t rows, ptrdiff_t width, double eps) { \
        EACH_WIDTH(width, COSINE_##suffix)                                                                              \
    }                                                                                                                   \
    ALWAYS_INLINE void distance_of_##suffix(const type *x, const type *y, type *made, ptrdiff_t rows, ptrdiff_t width,  \
                                            type eps, bool euclid) {                                                    \
        for (ptrdiff_t first = 0; first < rows; first += BLOCK, made += BLOCK) {                                        \
            const ptrdiff_t count = rows - first < BLOCK ? rows - first : BLOCK;                                        \
            double sums[BLOCK];                                                                                         \
            for (ptrdiff_t i = 0; i < count; i++) {                                                                     \
                double sum = 0;                                                                                         \
                _Pragma("GCC unroll 4") for (ptrdiff_t k = (first + i) * width; k < (first + i + 1) * width; k++) {     \
                    const double away = (type)((type)(x[k] - y[k]) + eps);                                              \
                    sum += euclid ? away * away : away < 0 ? -away : away;                                              \
                }                                                                                                       \
                sums[i] = sum;                                                                                          \
            }                                                                                                           \
            for (ptrdiff_t i = 0; i < count; i++)                                                                       \
                made[i] = (type)(euclid ? sqrt(sums[i]) : sums[i]);                                                     \
        }                                                                                                               \
    }                                                                                                                   \
    static void euclid_##suffix(const void *x, const void *y, void *made, ptrdiff_t rows, ptrdiff_t width, double eps) { \
        EACH_WIDTH(width, EUCLID_##suffix)                                                                              \
    }                                                                                                                   \
    static void sizes_##suffix(const void *x, const void *y, void *made, ptrdiff_t rows, ptrdiff_t width, double eps) { \
        EACH_WIDTH(width, SIZES_##suffix)                                                                               \
    }

#define COSINE_f32(width) cosine_of_f32(x, y, made, rows, width, eps)
#define COSINE_f64(width) cosine_of_f64(x, y, made, rows, width, eps)
#define EUCLID_f32(width) distance_of_f32(x, y, made, rows, width, (float)eps, true)
#define EUCLID_f64(width) distance_of_f64(x, y, made, rows, width, eps, true)
#define SIZES_f32(width) distance_of_f32(x, y, made, rows, width, (float)eps, false)
#define SIZES_f64(width) distance_of_f64(x, y, made, rows, width, eps, false)

LOOPS(f32, float)
LOOPS(f64, double)

const row_pairs_loops ISA(row_pairs_loops) = {
    {cosine_f32, cosine_f64}, {euclid_f32, euclid_f64}, {sizes_f32, sizes_f64}};
