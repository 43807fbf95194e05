/* The loops of slices that are shortened to a norm. */
#include "loop.h"

#include "../runs.h"

#include <math.h>

/* The sum of sizes or of squares in double, in sixteen parts. */
#define SIZES_OF(name, type, OF)                                                                              \
    ALWAYS_INLINE double name(const type *x, ptrdiff_t count) {                                               \
        double sums[16] = {0}, total = 0;                                                                     \
        ptrdiff_t k = 0;                                                                                      \
        for (; k + 16 <= count; k += 16)                                                                      \
            for (int lane = 0; lane < 16; lane++)                                                             \
                sums[lane] += OF((double)x[k + lane]);                                                        \
        for (; k < count; k++)                                                                                \
            total += OF((double)x[k]);                                                                        \
        for (int lane = 0; lane < 8; lane++)                                                                  \
            total += sums[lane] + sums[lane + 8];                                                             \
        return total;                                                                                         \
    }
#define SQUARE(one) ((one) * (one))
SIZES_OF(sizes_f32, float, fabs)
SIZES_OF(squares_f32, float, SQUARE)
SIZES_OF(sizes_f64, double, fabs)
SIZES_OF(squares_f64, double, SQUARE)

/* The norm first, then the elements, each multiplied once as its own type. */
#define SHORTEN(suffix, type)                                                                                 \
    static void shorten_##suffix(const shorten_run *run, ptrdiff_t at) {                                      \
        const ptrdiff_t after = run->after;                                                                   \
        const bool square = run->p == 2;                                                                      \
        double total = 0;                                                                                     \
        for (ptrdiff_t i = 0; i < run->before; i++) {                                                         \
            const type *x = (const type *)run->from + (i * run->n + at) * after;                              \
            total += square ? squares_##suffix(x, after) : sizes_##suffix(x, after);                          \
        }                                                                                                     \
        const type size = (type)(square ? sqrt(total) : total), most = (type)run->most;                       \
        const type factor = size > most ? most / (size + (type)1e-7) : 1;                                     \
        for (ptrdiff_t i = 0; i < run->before; i++) {                                                         \
            const ptrdiff_t start = (i * run->n + at) * after;                                                \
            const type *x = (const type *)run->from + start;                                                  \
            type *out = (type *)run->to + start;                                                              \
            INDEPENDENT for (ptrdiff_t k = 0; k < after; k++)                                                 \
                out[k] = x[k] * factor;                                                                       \
        }                                                                                                     \
    }
SHORTEN(f32, float)
SHORTEN(f64, double)

const runs_loops ISA(runs_loops) = {.shorten = {shorten_f32, shorten_f64}};
