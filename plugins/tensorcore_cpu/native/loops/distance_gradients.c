/* The loops of gradients of distances: of sums of sizes, of Euclid's, of the largest size. Rows at no distance pull nowhere. */
#include "../distance_gradients.h"
#include "loop.h"

#include <string.h>

#define PULL(name, suffix, type, before, share)                                                               \
    static void name##_##suffix(const void *from, const void *others_from, const void *sent, const void *away, ptrdiff_t others, \
                                ptrdiff_t width, void *to) {                                                  \
        const type *x = from, *g = sent, *distances = away;                                                   \
        type *made = to;                                                                                      \
        memset(made, 0, (size_t)width * sizeof *made);                                                        \
        for (ptrdiff_t j = 0; j < others; j++) {                                                              \
            const type *y = (const type *)others_from + j * width, distance = distances[j];                   \
            const type pull = before;                                                                         \
            if (distance == 0 || pull == 0)                                                                   \
                continue;                                                                                     \
            INDEPENDENT for (ptrdiff_t i = 0; i < width; i++) {                                               \
                const type d = x[i] - y[i];                                                                   \
                made[i] += share;                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }

#define PULLS(suffix, type)                                                                                   \
    PULL(sizes, suffix, type, g[j], d > 0 ? pull : d < 0 ? -pull : 0)                                         \
    PULL(euclid, suffix, type, g[j] / distance, d * pull)                                                     \
    PULL(largest, suffix, type, g[j], d == distance ? pull : d == -distance ? -pull : 0)

PULLS(f32, float)
PULLS(f64, double)

const pull_loops ISA(pull_loops) = {{{sizes_f32, sizes_f64}, {euclid_f32, euclid_f64}, {largest_f32, largest_f64}}};
