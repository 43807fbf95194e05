/* The loops of distances of pairs. */
#include "loop.h"

#include "../lines.h"

#include <math.h>

enum { TERMS = 128 }; /* squares that are added up before their sum is added to the others */

#define PAIRS(suffix, type, V, V_U, LANES, root)                                                              \
    static void pairs_##suffix(const pairs_run *run, ptrdiff_t first) {                                       \
        enum { PANEL = 2 * LANES };                                                                           \
        const ptrdiff_t rows = run->rows, width = run->width;                                                 \
        const type *x[PAIR_ROWS];                                                                             \
        for (int r = 0; r < PAIR_ROWS; r++)                                                                   \
            x[r] = (const type *)run->x + (first + r < rows ? first + r : rows - 1) * width;                  \
        for (ptrdiff_t start = (first + 1) / PANEL * PANEL; start < rows; start += PANEL) {                   \
            const type *packed = (const type *)run->packed + start * width;                                   \
            V all[PAIR_ROWS][2] = {0};                                                                        \
            for (ptrdiff_t k = 0; k < width;) {                                                               \
                const ptrdiff_t end = k + TERMS < width ? k + TERMS : width;                                  \
                V sums[PAIR_ROWS][2] = {0};                                                                   \
                for (; k < end; k++) {                                                                        \
                    const V low = *(const V_U *)(packed + k * PANEL), high = *(const V_U *)(packed + k * PANEL + LANES); \
                    for (int r = 0; r < PAIR_ROWS; r++) {                                                     \
                        const V near = low - x[r][k], far = high - x[r][k];                                   \
                        sums[r][0] += near * near;                                                            \
                        sums[r][1] += far * far;                                                              \
                    }                                                                                         \
                }                                                                                             \
                for (int r = 0; r < PAIR_ROWS; r++) {                                                         \
                    all[r][0] += sums[r][0];                                                                  \
                    all[r][1] += sums[r][1];                                                                  \
                }                                                                                             \
            }                                                                                                 \
            const ptrdiff_t stop = rows - start < PANEL ? rows - start : PANEL;                               \
            for (ptrdiff_t i = first; i < first + PAIR_ROWS && i < rows; i++) {                               \
                const type *squares = (const type *)all[i - first];                                           \
                type *made = (type *)run->made + i * (2 * rows - i - 1) / 2 + start - i - 1;                  \
                INDEPENDENT for (ptrdiff_t j = i + 1 > start ? i + 1 - start : 0; j < stop; j++)              \
                    made[j] = root(squares[j]);                                                               \
            }                                                                                                 \
        }                                                                                                     \
    }
PAIRS(f32, float, vf, vf_u, LANES_F32, sqrtf)
PAIRS(f64, double, vd, vd_u, LANES_F64, sqrt)

const line_loops ISA(line_loops) = {{2 * LANES_F32, 2 * LANES_F64}, {pairs_f32, pairs_f64}};
