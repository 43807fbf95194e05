/* The pictures that windows of convolutions lie in: copies with zeros around them, and where each tap is. */
#include "conv_windows.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(conv_loops, conv_loops);

enum { PAD = 1 << 12 }; /* images' elements whose copying is worth a thread, which then finds in its cache what it copied */

void *conv_room(conv_rooms *all, ptrdiff_t bytes) {
    const size_t size = (size_t)bytes + CONV_SLACK;
    void *block = native_scratch(size);
    if (block) {
        all->sizes[all->count] = size;
        all->blocks[all->count++] = block;
    }
    return block;
}

void conv_give_back(conv_rooms *all) {
    for (; all->count; all->count--)
        native_scratch_free(all->blocks[all->count - 1], all->sizes[all->count - 1]);
}

typedef struct {
    const conv_images *images;
    void *padded;
    size_t size;
} padding_work;

static void pad_body(void *context, npy_intp begin, npy_intp end) {
    padding_work *work = context;
    PICK(conv_loops)->pad(work->images, work->padded, begin, end, work->size);
}

static bool lies(const conv_images *m) {
    for (int d = 0; d < 3; d++)
        if (m->before[d] || m->padded[d] > m->sizes[d])
            return false;
    return m->phases == 1 && m->steps[4] == 1;
}

/* A padding may ask for more than numbers count. */
const void *conv_padded(conv_rooms *all, conv_images *m, size_t size, bool may_lie) {
    ptrdiff_t total, bytes;
    if (may_lie && lies(m)) {
        m->image = m->steps[0];
        m->channel = m->steps[1];
        m->plane = m->steps[2];
        m->row = m->steps[3];
        return m->data;
    }
    m->phase = (m->padded[2] + m->phases - 1) / m->phases;
    m->row = m->phases * m->phase;
    if (__builtin_mul_overflow(m->padded[0], m->padded[1], &m->channel) ||
        __builtin_mul_overflow(m->channel, m->row, &m->channel) ||
        __builtin_mul_overflow(m->channel, m->channels, &m->image) || __builtin_mul_overflow(m->image, m->images, &total) ||
        __builtin_mul_overflow(total + CONV_SLACK, (ptrdiff_t)size, &bytes) || bytes < 0 || bytes > PTRDIFF_MAX / 2)
        return NULL;
    char *padded = conv_room(all, bytes);
    if (!padded)
        return NULL;
    m->plane = m->padded[1] * m->row;
    for (size_t i = 0; i < CONV_SLACK * size; i++)
        padded[(size_t)total * size + i] = 0;
    padding_work work = {m, padded, size};
    native_parallel(m->images * m->channels, PAD / (m->channel + 1) + 1, pad_body, &work);
    return padded;
}

const void *conv_windows(conv_rooms *all, const convolution *c, conv_images *m, ptrdiff_t *offsets, ptrdiff_t *move, bool split,
                         bool may_lie) {
    *m = (conv_images){.data = c->x, .images = c->images, .channels = c->channels * c->groups,
                       .phases = split ? c->stride[2] : 1};
    memcpy(m->steps, c->steps, sizeof m->steps);
    for (int d = 0; d < 3; d++) {
        m->sizes[d] = c->sizes[d];
        m->before[d] = c->padding[d];
        m->padded[d] = (c->counts[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1;
    }
    const void *images = conv_padded(all, m, c->size, may_lie);
    ptrdiff_t *next = offsets;
    for (ptrdiff_t z = 0; z < c->kernel[0]; z++)
        for (ptrdiff_t y = 0; y < c->kernel[1]; y++)
            for (ptrdiff_t k = 0; k < c->kernel[2]; k++) {
                ptrdiff_t x_at = k * c->dilation[2];
                *next++ = z * c->dilation[0] * m->plane + y * c->dilation[1] * m->row +
                          (split ? x_at % m->phases * m->phase + x_at / m->phases : x_at);
            }
    move[0] = c->stride[0] * m->plane;
    move[1] = c->stride[1] * m->row;
    move[2] = split ? 1 : c->stride[2];
    return images;
}

ptrdiff_t *conv_items(conv_rooms *all, ptrdiff_t channels, ptrdiff_t channel, const ptrdiff_t *taps, ptrdiff_t count) {
    ptrdiff_t *made = conv_room(all, channels * count * (ptrdiff_t)sizeof *made);
    for (ptrdiff_t i = 0; made && i < channels * count; i++)
        made[i] = i / count * channel + taps[i % count];
    return made;
}

convolution conv_narrowed(const convolution *c) {
    convolution made = *c;
    for (int d = 0; d < 3; d++)
        if (c->kernel[d] == 1 && !c->padding[d]) {
            made.sizes[d] = c->counts[d];
            made.steps[2 + d] *= c->stride[d];
            made.stride[d] = 1;
        }
    return made;
}

void conv_join_rows(ptrdiff_t *counts, ptrdiff_t *move) {
    for (int d = 1; d >= 0; d--)
        if (move[d] == counts[2] && (d == 1 || counts[1] == 1)) {
            counts[2] *= counts[d];
            counts[d] = 1;
        }
}
