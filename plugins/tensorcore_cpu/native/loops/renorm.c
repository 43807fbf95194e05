/* The loops of slices that are shortened to a norm. */
#include "loop.h"

#include "../renorm.h"

#include <math.h>

/* The sum of sizes or of squares in double, in sixteen parts where there are so many. */
#define SIZES_OF(name, type, OF)                                                                              \
    ALWAYS_INLINE double name(const type *x, ptrdiff_t count) {                                               \
        double total = 0;                                                                                     \
        if (count >= 16) {                                                                                    \
            double sums[16] = {0};                                                                            \
            for (; count >= 16; count -= 16, x += 16)                                                         \
                for (int lane = 0; lane < 16; lane++)                                                         \
                    sums[lane] += OF((double)x[lane]);                                                        \
            for (int lane = 0; lane < 8; lane++)                                                              \
                total += sums[lane] + sums[lane + 8];                                                         \
        }                                                                                                     \
        for (; count; count--, x++)                                                                           \
            total += OF((double)*x);                                                                          \
        return total;                                                                                         \
    }
#define SQUARE(one) ((one) * (one))
SIZES_OF(sizes_f32, float, fabs)
SIZES_OF(squares_f32, float, SQUARE)
SIZES_OF(sizes_f64, double, fabs)
SIZES_OF(squares_f64, double, SQUARE)

enum { SLICES = 64 }; /* at a time, whose roots and factors are made side by side */

/* The norms first, then the elements, each multiplied once as its own type. */
#define SHORTEN(suffix, type)                                                                                 \
    ALWAYS_INLINE void shorten_some_##suffix(const shorten_run *run, ptrdiff_t first, ptrdiff_t count, ptrdiff_t after, bool square) { \
        const ptrdiff_t step = run->n * after;                                                                \
        const type *x = (const type *)run->from + first * after;                                              \
        type *out = (type *)run->to + first * after, factors[SLICES];                                         \
        double totals[SLICES] = {0};                                                                          \
        for (ptrdiff_t i = 0; i < run->before; i++)                                                           \
            for (ptrdiff_t at = 0; at < count; at++) {                                                        \
                const type *slice = x + i * step + at * after;                                                \
                if (after == 1)                                                                               \
                    totals[at] += square ? SQUARE((double)*slice) : fabs((double)*slice);                     \
                else                                                                                          \
                    totals[at] += square ? squares_##suffix(slice, after) : sizes_##suffix(slice, after);     \
            }                                                                                                 \
        for (ptrdiff_t at = 0; at < count; at++) {                                                            \
            const type size = (type)(square ? sqrt(totals[at]) : totals[at]), most = (type)run->most;         \
            factors[at] = size > most ? most / (size + (type)1e-7) : 1;                                       \
        }                                                                                                     \
        for (ptrdiff_t i = 0; i < run->before; i++)                                                           \
            for (ptrdiff_t at = 0; at < count; at++) {                                                        \
                const ptrdiff_t start = i * step + at * after;                                                \
                if (after == 1)                                                                               \
                    out[start] = x[start] * factors[at];                                                      \
                else                                                                                          \
                    INDEPENDENT for (ptrdiff_t k = 0; k < after; k++)                                         \
                        out[start + k] = x[start + k] * factors[at];                                          \
            }                                                                                                 \
    }                                                                                                         \
    static void shorten_##suffix(const shorten_run *given, ptrdiff_t begin, ptrdiff_t end) {                  \
        const shorten_run run = *given;                                                                       \
        for (; begin < end; begin += SLICES) {                                                                \
            const ptrdiff_t count = end - begin < SLICES ? end - begin : SLICES;                              \
            if (run.after == 1 && run.p == 2)                                                                 \
                shorten_some_##suffix(&run, begin, count, 1, true);                                           \
            else if (run.after == 1)                                                                          \
                shorten_some_##suffix(&run, begin, count, 1, false);                                          \
            else                                                                                              \
                shorten_some_##suffix(&run, begin, count, run.after, run.p == 2);                             \
        }                                                                                                     \
    }
SHORTEN(f32, float)
SHORTEN(f64, double)

const renorm_loops ISA(renorm_loops) = {.shorten = {shorten_f32, shorten_f64}};
