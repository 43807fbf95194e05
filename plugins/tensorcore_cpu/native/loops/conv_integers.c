/* The loops of convolutions of integers: each tap's row times a number of the weight, added to a row of the result, which stays in
   the first cache. Integers wrap around, so that those without a sign serve both kinds. */
#include "isa.h"

#include "../conv_integers.h"

typedef struct {
    ptrdiff_t first, count, from; /* outputs along a row whose windows have the tap inside, and where the first one's lies */
} tap_span;

/* Of the tap that lies `shift` behind the start of a window. */
ALWAYS_INLINE tap_span span_of(ptrdiff_t counts, ptrdiff_t size, ptrdiff_t stride, ptrdiff_t shift) {
    const ptrdiff_t first = shift < 0 ? (stride == 1 ? -shift : (stride - 1 - shift) / stride) : 0, room = size - 1 - shift;
    const ptrdiff_t last = room < 0 ? -1 : stride == 1 ? room : room / stride;
    return (tap_span){first, (last < counts ? last + 1 : counts) - first, first * stride + shift};
}

/* Where the tap of an output lies along a dim, negative where that is outside. */
ALWAYS_INLINE ptrdiff_t tap_at(const convolution *c, int d, ptrdiff_t output, ptrdiff_t tap) {
    const ptrdiff_t at = output * c->stride[d] - c->padding[d] + tap * c->dilation[d];
    return at < c->sizes[d] ? at : -1;
}

enum { TOGETHER = 4, PIECE = 256 }; /* rows that are added in one pass, of so many elements */

/* `product` is a type in which products do not overflow with a sign. */
#define CONVOLVED(bits, type, product)                                                                        \
    /* Adds `many` rows, `apart` elements from one to the next, each times its number. */                     \
    ALWAYS_INLINE void add_rows_##bits(type *restrict to, const type *restrict from, ptrdiff_t here, ptrdiff_t apart, \
                                       const type *restrict by, ptrdiff_t away, ptrdiff_t many, ptrdiff_t count) { \
        ptrdiff_t k = 0;                                                                                      \
        for (; k + TOGETHER <= many; k += TOGETHER) {                                                         \
            const type *row = from + k * apart;                                                               \
            const product a = by[k * away], b = by[(k + 1) * away], c = by[(k + 2) * away], d = by[(k + 3) * away]; \
            for (ptrdiff_t i = 0; i < count; i++, row += here)                                                \
                to[i] = (type)(to[i] + row[0] * a + row[apart] * b + row[2 * apart] * c + row[3 * apart] * d); \
        }                                                                                                     \
        for (; k < many; k++)                                                                                 \
            for (ptrdiff_t i = 0; i < count; i++)                                                             \
                to[i] = (type)(to[i] + (product)by[k * away] * from[k * apart + i * here]);                   \
    }                                                                                                         \
    ALWAYS_INLINE void add_all_##bits(type *restrict to, const type *restrict from, ptrdiff_t here, ptrdiff_t apart, \
                                      const type *restrict by, ptrdiff_t away, ptrdiff_t many, ptrdiff_t count) { \
        if (here == 1)                                                                                        \
            add_rows_##bits(to, from, 1, apart, by, away, many, count);                                       \
        else                                                                                                  \
            add_rows_##bits(to, from, here, apart, by, away, many, count);                                    \
    }                                                                                                         \
    /* The same to elements that are apart. */                                                                \
    static void spread_##bits(type *to, ptrdiff_t there, const type *from, ptrdiff_t apart, const type *by, ptrdiff_t away, \
                              ptrdiff_t many, ptrdiff_t count) {                                              \
        for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {                                            \
            const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;                            \
            type sums[PIECE];                                                                                 \
            for (ptrdiff_t i = 0; i < piece; i++)                                                             \
                sums[i] = 0;                                                                                  \
            add_rows_##bits(sums, from + begin, 1, apart, by, away, many, piece);                             \
            for (ptrdiff_t i = 0; i < piece; i++)                                                             \
                to[(begin + i) * there] = (type)(to[(begin + i) * there] + sums[i]);                          \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    static void sums_##bits(const convolution *c, ptrdiff_t begin, ptrdiff_t end) {                           \
        const ptrdiff_t plane = conv_product(c->sizes), wide = c->sizes[2], row = c->counts[2];               \
        type *to = (type *)c->y + begin * conv_product(c->counts);                                            \
        for (ptrdiff_t i = begin; i < end; i++) {                                                             \
            const ptrdiff_t out = i % (c->groups * c->outs), image = i / (c->groups * c->outs);               \
            const type *x = (const type *)c->x + (image * c->groups + out / c->outs) * c->channels * plane;   \
            const type *weight = (const type *)c->weight + out * c->channels * c->taps;                       \
            const type bias = c->bias ? ((const type *)c->bias)[out] : 0;                                     \
            for (ptrdiff_t deep = 0; deep < c->counts[0]; deep++)                                             \
                for (ptrdiff_t high = 0; high < c->counts[1]; high++, to += row) {                            \
                    for (ptrdiff_t k = 0; k < row; k++)                                                       \
                        to[k] = bias;                                                                         \
                    for (ptrdiff_t tap = 0, d = 0; d < c->kernel[0]; d++)                                     \
                        for (ptrdiff_t h = 0; h < c->kernel[1]; h++) {                                        \
                            const ptrdiff_t z = tap_at(c, 0, deep, d), y = tap_at(c, 1, high, h);             \
                            for (ptrdiff_t w = 0; w < c->kernel[2]; w++, tap++) {                             \
                                const tap_span span = span_of(row, wide, c->stride[2], w * c->dilation[2] - c->padding[2]); \
                                if (z >= 0 && y >= 0 && span.count > 0)                                       \
                                    add_all_##bits(to + span.first, x + (z * c->sizes[1] + y) * wide + span.from, c->stride[2], \
                                                   plane, weight + tap, c->taps, c->channels, span.count);    \
                            }                                                                                 \
                        }                                                                                     \
                }                                                                                             \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    static void gradients_##bits(const convolution *c, ptrdiff_t begin, ptrdiff_t end) {                      \
        const ptrdiff_t plane = conv_product(c->sizes), outputs = conv_product(c->counts), row = c->counts[2]; \
        for (ptrdiff_t i = begin; i < end; i++) {                                                             \
            const ptrdiff_t channel = i % (c->groups * c->channels), image = i / (c->groups * c->channels);   \
            const ptrdiff_t group = channel / c->channels;                                                    \
            type *to = (type *)c->x + i * plane;                                                              \
            const type *sent = (const type *)c->y + (image * c->groups + group) * c->outs * outputs;          \
            const type *weight = (const type *)c->weight + (group * c->outs * c->channels + channel % c->channels) * c->taps; \
            for (ptrdiff_t k = 0; k < plane; k++)                                                             \
                to[k] = 0;                                                                                    \
            for (ptrdiff_t tap = 0, d = 0; d < c->kernel[0]; d++)                                             \
                for (ptrdiff_t h = 0; h < c->kernel[1]; h++)                                                  \
                    for (ptrdiff_t w = 0; w < c->kernel[2]; w++, tap++) {                                     \
                        const tap_span span = span_of(row, c->sizes[2], c->stride[2], w * c->dilation[2] - c->padding[2]); \
                        for (ptrdiff_t deep = 0; span.count > 0 && deep < c->counts[0]; deep++)               \
                            for (ptrdiff_t high = 0; high < c->counts[1]; high++) {                           \
                                const ptrdiff_t z = tap_at(c, 0, deep, d), y = tap_at(c, 1, high, h);         \
                                const type *from = sent + (deep * c->counts[1] + high) * row + span.first;    \
                                if (z < 0 || y < 0)                                                           \
                                    continue;                                                                 \
                                type *at = to + (z * c->sizes[1] + y) * c->sizes[2] + span.from;              \
                                if (c->stride[2] == 1)                                                        \
                                    add_rows_##bits(at, from, 1, outputs, weight + tap, c->channels * c->taps, c->outs, span.count); \
                                else                                                                          \
                                    spread_##bits(at, c->stride[2], from, outputs, weight + tap, c->channels * c->taps, c->outs, \
                                                  span.count);                                                \
                            }                                                                                 \
                    }                                                                                         \
        }                                                                                                     \
    }

CONVOLVED(8, uint8_t, uint32_t)
CONVOLVED(16, uint16_t, uint32_t)
CONVOLVED(32, uint32_t, uint32_t)
CONVOLVED(64, uint64_t, uint64_t)

const conv_integer_loops ISA(conv_integer_loops) = {{sums_8, sums_16, sums_32, sums_64},
                                                    {gradients_8, gradients_16, gradients_32, gradients_64}};
