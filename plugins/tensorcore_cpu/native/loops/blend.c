/* The loops of sums of a few weighted slices. */
#include "../blend.h"
#include "loop.h"

#include <string.h>

/* Of single elements: `taps` is a constant where there are two or four. */
#define BLEND_ROW(type, TAPS)                                                                                 \
    INDEPENDENT for (ptrdiff_t j = 0; j < count; j++) {                                                       \
        type sum = weights[j] * x[index[j]];                                                                  \
        for (ptrdiff_t t = 1; t < TAPS; t++)                                                                  \
            sum += weights[t * count + j] * x[index[t * count + j]];                                          \
        made[j] = sum;                                                                                        \
    }

#define BLEND(suffix, type)                                                                                   \
    static void blend_##suffix(const blending *job, ptrdiff_t begin, ptrdiff_t end) {                         \
        const ptrdiff_t taps = job->taps, count = job->count, inner = job->inner;                             \
        const int32_t *index = job->index;                                                                    \
        const type *weights = job->weights;                                                                   \
        const type *x = (const type *)job->x + begin * job->size * inner;                                     \
        type *made = (type *)job->made + begin * count * inner;                                               \
        for (ptrdiff_t o = begin; o < end; o++, x += job->size * inner, made += count * inner) {              \
            if (inner == 1 && taps == 2) {                                                                    \
                BLEND_ROW(type, 2)                                                                            \
            } else if (inner == 1 && taps == 4) {                                                             \
                BLEND_ROW(type, 4)                                                                            \
            } else if (inner == 1) {                                                                          \
                BLEND_ROW(type, taps)                                                                         \
            }                                                                                                 \
            for (ptrdiff_t j = 0; j < count && inner > 1; j++) {                                              \
                type *to = made + j * inner;                                                                  \
                for (ptrdiff_t t = 0; t < taps; t += 2) {                                                     \
                    const bool both = t + 1 < taps;                                                           \
                    const ptrdiff_t at = t * count + j, next = both ? at + count : at;                        \
                    const type *a = x + index[at] * inner, *b = x + index[next] * inner;                      \
                    const type v = weights[at], w = weights[next];                                            \
                    if (!t && both)                                                                           \
                        INDEPENDENT for (ptrdiff_t i = 0; i < inner; i++)                                     \
                            to[i] = v * a[i] + w * b[i];                                                      \
                    else if (both)                                                                            \
                        INDEPENDENT for (ptrdiff_t i = 0; i < inner; i++)                                     \
                            to[i] = to[i] + v * a[i] + w * b[i];                                              \
                    else                                                                                      \
                        INDEPENDENT for (ptrdiff_t i = 0; i < inner; i++)                                     \
                            to[i] = t ? to[i] + v * a[i] : v * a[i];                                          \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }                                                                                                         \
    static void spread_##suffix(const blending *job, ptrdiff_t begin, ptrdiff_t end) {                        \
        const ptrdiff_t taps = job->taps, count = job->count, inner = job->inner;                             \
        const int32_t *index = job->index;                                                                    \
        const type *weights = job->weights, *made = (const type *)job->made + begin * count * inner;          \
        type *x = (type *)job->x + begin * job->size * inner;                                                 \
        memset(x, 0, (size_t)((end - begin) * job->size * inner) * sizeof(type));                             \
        for (ptrdiff_t o = begin; o < end; o++, x += job->size * inner, made += count * inner)                \
            for (ptrdiff_t t = 0; t < taps; t++)                                                              \
                for (ptrdiff_t j = 0; j < count; j++) {                                                       \
                    const type w = weights[t * count + j];                                                    \
                    const type *from = made + j * inner;                                                      \
                    type *to = x + index[t * count + j] * inner;                                              \
                    if (inner == 1)                                                                           \
                        *to += w * *from;                                                                     \
                    else                                                                                      \
                        INDEPENDENT for (ptrdiff_t i = 0; i < inner; i++)                                     \
                            to[i] += w * from[i];                                                             \
                }                                                                                             \
    }
BLEND(f32, float)
BLEND(f64, double)

const blend_loops ISA(blend_loops) = {{blend_f32, blend_f64}, {spread_f32, spread_f64}};
