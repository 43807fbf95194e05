/* The loops of the convolutions, in float and double. */
#include "../conv.h"
#include "isa.h"
#include "zip.h"

#include <string.h>

/* Tiles: as many accumulators as leave registers for what is multiplied. */
#if defined(__AVX512F__)
enum { ROWS = 8, VECTORS = 3, WEIGHT_ROWS = 6, WEIGHT_VECTORS = 4 };
#elif defined(__AVX2__)
enum { ROWS = 6, VECTORS = 2, WEIGHT_ROWS = 6, WEIGHT_VECTORS = 2 };
#else
enum { ROWS = 4, VECTORS = 2, WEIGHT_ROWS = 4, WEIGHT_VECTORS = 2 };
#endif
enum { LEAST_OUTS = 3, COPY = 1 << 18 };

static ptrdiff_t at_most(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t at_least(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* Every `step`th element of a row, side by side. */
static void spread_out(char *to, const char *from, ptrdiff_t count, ptrdiff_t step, size_t size) {
    if (size == 4)
        for (ptrdiff_t i = 0; i < count; i++)
            memcpy(to + 4 * i, from + 4 * i * step, 4);
    else
        for (ptrdiff_t i = 0; i < count; i++)
            memcpy(to + 8 * i, from + 8 * i * step, 8);
}

/* Copies images [begin, end) of images x channels with their zeros; elements of `size` bytes. */
static void pad(const conv_images *m, void *padded, ptrdiff_t begin, ptrdiff_t end, size_t size) {
    for (ptrdiff_t one = begin; one < end; one++) {
        const char *from = (const char *)m->data +
                           ((one / m->channels) * m->steps[0] + (one % m->channels) * m->steps[1]) * (ptrdiff_t)size;
        char *to = (char *)padded + one * m->channel * (ptrdiff_t)size;
        memset(to, 0, (size_t)m->channel * size);
        /* The part of the source that the copy holds. */
        ptrdiff_t low[3], high[3];
        for (int d = 0; d < 3; d++) {
            low[d] = at_least(0, -m->before[d]);
            high[d] = at_most(m->sizes[d], m->padded[d] - m->before[d]);
        }
        for (ptrdiff_t z = low[0]; z < high[0]; z++) {
            for (ptrdiff_t y = low[1]; y < high[1]; y++) {
                const char *row = from + (z * m->steps[2] + y * m->steps[3]) * (ptrdiff_t)size;
                char *made = to + ((z + m->before[0]) * m->padded[1] + y + m->before[1]) * m->row * (ptrdiff_t)size;
                if (m->phases == 1 && m->steps[4] == 1 && high[2] > low[2]) {
                    memcpy(made + (low[2] + m->before[2]) * (ptrdiff_t)size, row + low[2] * (ptrdiff_t)size,
                           (size_t)(high[2] - low[2]) * size);
                    continue;
                }
                for (ptrdiff_t phase = 0; phase < m->phases; phase++) {
                    /* The first place of this phase that holds an element. */
                    ptrdiff_t place = low[2] + m->before[2], last = high[2] + m->before[2];
                    place += (phase - place % m->phases + m->phases) % m->phases;
                    ptrdiff_t count = place < last ? (last - place + m->phases - 1) / m->phases : 0;
                    spread_out(made + (phase * m->phase + place / m->phases) * (ptrdiff_t)size,
                               row + (place - m->before[2]) * m->steps[4] * (ptrdiff_t)size, count,
                               m->phases * m->steps[4], size);
                }
            }
        }
    }
}

#define REAL float
#define V vf
#define V_U vf_u
#define LANES LANES_F32
#define F(name) name##_f32
#define ZIP ZIP_FLOAT
#include "conv_of_real.h"
#undef REAL
#undef V
#undef V_U
#undef LANES
#undef F
#undef ZIP
#define REAL double
#define V vd
#define V_U vd_u
#define LANES LANES_F64
#define F(name) name##_f64
#define ZIP ZIP_DOUBLE
#include "conv_of_real.h"

const conv_loops ISA(conv_loops) = {.pad = pad, .real = {CONV_LOOPS(f32), CONV_LOOPS(f64)}};
