/* The loops of the convolutions, in float and double. */
#include "../conv.h"
#include "isa.h"
#include "zip.h"

#include <string.h>

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

/* Tiles: as many accumulators as leave registers for what is multiplied. */
#if defined(__AVX512F__)
enum { ROWS = 8, VECTORS = 3, WEIGHT_ROWS = 6, WEIGHT_VECTORS = 4, DIRECT_VECTORS = 6 };
#define ROW_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define TILE_WIDTHS(height) TILE_OF(height, 1) TILE_OF(height, 2) TILE_OF(height, 3)
#define DIRECT_TILES(X) X(1, 6) X(2, 6) X(4, 5) X(8, 3) /* outs, vectors of positions */
enum { WIDE_LEAST = 5, WIDE_HEIGHT = 12 };
#define WIDE_HEIGHTS(X) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) /* positions: rows of any length are cut into such runs */
#elif defined(__AVX2__)
enum { ROWS = 6, VECTORS = 2, WEIGHT_ROWS = 6, WEIGHT_VECTORS = 2, DIRECT_VECTORS = 6 };
#define ROW_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define TILE_WIDTHS(height) TILE_OF(height, 1) TILE_OF(height, 2)
#define DIRECT_TILES(X) X(1, 6) X(2, 4) X(4, 3) X(6, 2)
enum { WIDE_LEAST = 3, WIDE_HEIGHT = 6 };
#define WIDE_HEIGHTS(X) X(3) X(4) X(5) X(6)
#else
enum { ROWS = 4, VECTORS = 2, WEIGHT_ROWS = 4, WEIGHT_VECTORS = 2, DIRECT_VECTORS = 6 };
#define ROW_HEIGHTS(X) X(1) X(2) X(3) X(4)
#define TILE_WIDTHS(height) TILE_OF(height, 1) TILE_OF(height, 2)
#define DIRECT_TILES(X) X(1, 6) X(2, 4) X(4, 2)
enum { WIDE_LEAST = 2, WIDE_HEIGHT = 4 };
#define WIDE_HEIGHTS(X) X(2) X(3) X(4)
#endif
enum {
    COPY = 1 << 15, /* bytes of windows side by side that stay in the first cache, */
    COPIES = 1 << 18, /* of those of several tiles, */
    SENT = VECTOR == 64 ? 1 << 19 : 1 << 18, /* and of what was sent, that stay in the second cache */
    GATHERED = 32,  /* pairs of a channel and a tap */
    DIRECT_TAPS = 9,
    WIDE_VECTORS = 2,
    PLANE_ROWS = 8, PLANE_STRIP = 32, /* rows of outputs under one vector, and that are copied together */
    PLANE_KERNEL = 7,                 /* the widest window of planes */
    PIXELS = 4, PIXEL_SUMS = 8,       /* beside each other, and vectors of their channels, that are summed at once */
    ROW_HEIGHT = VECTOR == 64 ? 12 : VECTOR == 32 ? 6 : 4, /* outputs beside each other, in two vectors of outs, that are summed at once */
    WIDE_INNER = 192, /* channels times taps whose weights stay in the first cache */
};

typedef int32_t __attribute__((may_alias)) four_bytes;
typedef int16_t __attribute__((may_alias)) two_bytes;

/* Every second element of two bytes: rows are shorter than what GCC makes vectors of. */
static void spread_halves(char *to, const char *from, ptrdiff_t count) {
    ptrdiff_t i = 0;
#if defined(__AVX512BW__)
    for (; i < count; i += 16) { /* what is left over is not read */
        const ptrdiff_t rest = count - i;
        const __mmask32 read = rest < 16 ? (1u << (2 * rest - 1)) - 1 : UINT32_MAX >> 1;
        const __m512i pairs = _mm512_maskz_loadu_epi16(read, from + 4 * i);
        _mm512_mask_cvtepi32_storeu_epi16(to + 2 * i, (__mmask16)(rest < 16 ? (1u << rest) - 1 : 0xffff), pairs);
    }
#endif
    for (; i < count; i++)
        ((two_bytes *)to)[i] = ((const two_bytes *)from)[2 * i];
}

/* Every `step`th element of a row, side by side. */
static void spread_out(char *to, const char *from, ptrdiff_t count, ptrdiff_t step, size_t size) {
    if (size == 4 && step == 2) /* a constant step becomes vectors */
        for (ptrdiff_t i = 0; i < count; i++)
            ((four_bytes *)to)[i] = ((const four_bytes *)from)[2 * i];
    else if (size == 4)
        for (ptrdiff_t i = 0; i < count; i++)
            ((four_bytes *)to)[i] = ((const four_bytes *)from)[step * i];
    else if (size == 2 && step == 2)
        spread_halves(to, from, count);
    else if (size == 2)
        for (ptrdiff_t i = 0; i < count; i++)
            ((two_bytes *)to)[i] = ((const two_bytes *)from)[step * i];
    else
        for (ptrdiff_t i = 0; i < count; i++)
            memcpy(to + 8 * i, from + 8 * i * step, 8);
}

/* Zeros of a few elements: memset would take longer to begin. */
static void clear(char *to, ptrdiff_t count, size_t size) {
    if (size == sizeof(two_bytes))
        for (ptrdiff_t i = 0; i < count; i++)
            ((two_bytes *)to)[i] = 0;
    else
        for (ptrdiff_t i = 0; i < count * (ptrdiff_t)(size / sizeof(four_bytes)); i++)
            ((four_bytes *)to)[i] = 0;
}

/* A row of a picture, mostly a short one: a call would take longer than the copy. Its last block begins where a whole one fits. */
ALWAYS_INLINE void copy_row(char *to, const char *from, ptrdiff_t bytes) {
    enum { BLOCK = 16, MOST = 256 };
    if (bytes < BLOCK || bytes > MOST) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (ptrdiff_t i = 0; i < bytes - BLOCK; i += BLOCK)
        memcpy(to + i, from + i, BLOCK);
    memcpy(to + bytes - BLOCK, from + bytes - BLOCK, BLOCK);
}

/* Rows whose elements lie side by side, with zeros around them: nothing is written twice. */
static void pad_rows(const conv_images *m, const char *from, char *to, const ptrdiff_t *low, const ptrdiff_t *high, size_t size) {
    const ptrdiff_t before = low[2] + m->before[2], count = high[2] - low[2];
    ptrdiff_t z = -m->before[0], y = -m->before[1];
    for (ptrdiff_t left = m->padded[0] * m->padded[1]; left; left--, y++, to += m->row * (ptrdiff_t)size) {
        if (y == m->padded[1] - m->before[1]) {
            y = -m->before[1];
            z++;
        }
        if (z < low[0] || z >= high[0] || y < low[1] || y >= high[1]) {
            memset(to, 0, (size_t)m->row * size);
            continue;
        }
        clear(to, before, size);
        copy_row(to + before * (ptrdiff_t)size, from + (z * m->steps[2] + y * m->steps[3] + low[2]) * (ptrdiff_t)size,
                 count * (ptrdiff_t)size);
        clear(to + (before + count) * (ptrdiff_t)size, m->row - before - count, size);
    }
}

/* Copies images [begin, end) of images x channels with their zeros; elements of `size` bytes. */
static void pad(const conv_images *m, void *padded, ptrdiff_t begin, ptrdiff_t end, size_t size) {
    for (ptrdiff_t one = begin; one < end; one++) {
        const char *from = (const char *)m->data +
                           ((one / m->channels) * m->steps[0] + (one % m->channels) * m->steps[1]) * (ptrdiff_t)size;
        char *to = (char *)padded + one * m->channel * (ptrdiff_t)size;
        const bool same = m->phases == 1 && m->steps[4] == 1 && m->steps[3] == m->sizes[2] &&
                          m->steps[2] == m->sizes[1] * m->sizes[2] && !m->before[0] && !m->before[1] && !m->before[2] &&
                          m->padded[0] == m->sizes[0] && m->padded[1] == m->sizes[1] && m->padded[2] == m->sizes[2];
        if (same) {
            memcpy(to, from, (size_t)m->channel * size);
            continue;
        }
        /* The part of the source that the copy holds. */
        ptrdiff_t low[3], high[3];
        for (int d = 0; d < 3; d++) {
            low[d] = at_least(0, -m->before[d]);
            high[d] = at_most(m->sizes[d], m->padded[d] - m->before[d]);
        }
        if (m->phases == 1 && m->steps[4] == 1 && high[2] > low[2]) {
            pad_rows(m, from, to, low, high, size);
            continue;
        }
        memset(to, 0, (size_t)m->channel * size);
        for (ptrdiff_t phase = 0; phase < m->phases; phase++) {
            /* The first place of this phase that holds an element. */
            ptrdiff_t place = low[2] + m->before[2], last = high[2] + m->before[2];
            place += (phase - place % m->phases + m->phases) % m->phases;
            const ptrdiff_t count = place < last ? (last - place + m->phases - 1) / m->phases : 0;
            const char *source = from + (place - m->before[2]) * m->steps[4] * (ptrdiff_t)size;
            char *target = to + (phase * m->phase + place / m->phases) * (ptrdiff_t)size;
            for (ptrdiff_t z = low[0]; z < high[0]; z++) {
                for (ptrdiff_t y = low[1]; y < high[1]; y++) {
                    const char *row = source + (z * m->steps[2] + y * m->steps[3]) * (ptrdiff_t)size;
                    char *made = target + ((z + m->before[0]) * m->padded[1] + y + m->before[1]) * m->row * (ptrdiff_t)size;
                    spread_out(made, row, count, m->phases * m->steps[4], size);
                }
            }
        }
    }
}

#include "as_f32.h"
#include "conv_of_real.h"
#include "conv_wide_of_real.h"
#include "conv_depthwise_of_real.h"
#include "conv_pixels_of_real.h"
#include "conv_rows_of_real.h"
#include "conv_weight_of_real.h"
#include "conv_folded_of_real.h"
#include "as_f64.h"
#include "conv_of_real.h"
#include "conv_wide_of_real.h"
#include "conv_depthwise_of_real.h"
#include "conv_pixels_of_real.h"
#include "conv_rows_of_real.h"
#include "conv_weight_of_real.h"
#include "conv_folded_of_real.h"

#define CONV_LOOPS(suffix)                                                                                             \
    {                                                                                                                  \
        .rows = ROWS, .columns = COLUMNS_##suffix, .lanes = PLACE_##suffix, .packed_size = packed_size_##suffix,       \
        .pack = pack_##suffix, .tile_room = tile_room_##suffix, .tiles = tiles_##suffix,                               \
        .direct_places = direct_places_##suffix, .direct = direct_##suffix, .wide_outs = wide_outs_##suffix,           \
        .wide_least = WIDE_LEAST, .wide_pack = wide_pack_##suffix, .wide_room = wide_room_##suffix, .wide = wide_##suffix,\
        .plane_strip = PLANE_STRIP, .planes_room = planes_room_##suffix, .planes = planes_##suffix,                    \
        .pixels = pixels_##suffix, .over_rows = rows_##suffix,                                                         \
        .weight_columns = WEIGHT_COLUMNS_##suffix, .turn = turn_sent_##suffix, .weight_rows = WEIGHT_ROWS,             \
        .weight_tiles = weight_tiles_##suffix, .weight_direct = weight_direct_##suffix,                                \
        .fold = fold_##suffix, .unfold_planes = unfold_planes_##suffix,                                                \
    }

const conv_loops ISA(conv_loops) = {.pad = pad, .real = {CONV_LOOPS(f32), CONV_LOOPS(f64)}};
