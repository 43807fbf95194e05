/* Convolutions of small planes that have a window of their own each, and both their gradients: the same element of many channels in a
   vector, so that windows, steps and dilations may be any. */
#include "conv_small.h"

#include "native.h"

#include <stdlib.h>

DECLARE_LOOPS(conv_small_loops, conv_small_loops);

enum {
    PLANE = 256, TAPS = 64, /* elements of a plane, of its outputs and of a window at most */
    CHANNELS = 8,           /* at least */
    WORK = 1 << 14,         /* vector operations that are worth a thread */
    EASY = 8 * 8,           /* elements of a plane up to which this is faster than a way of planes with steps of one */
};

bool small_fits(const convolution *c) {
    for (int d = 0; d < 3; d++)
        if (c->sizes[d] > PLANE || c->counts[d] > PLANE)
            return false;
    return c->channels == 1 && c->outs == 1 && c->groups >= CHANNELS && c->taps <= TAPS && conv_product(c->sizes) <= PLANE &&
           conv_product(c->counts) <= PLANE;
}

bool small_pays(const convolution *c) { return !depthwise_fits(c) || c->stride[2] > 1 || conv_product(c->sizes) <= EASY; }

/* The pairs of all outputs, in the order of the taps. */
static void list_pairs(const convolution *c, small_pair *pairs, int32_t *ends) {
    int32_t count = 0;
    ptrdiff_t at[3], k[3];
    for (at[0] = 0; at[0] < c->counts[0]; at[0]++)
        for (at[1] = 0; at[1] < c->counts[1]; at[1]++)
            for (at[2] = 0; at[2] < c->counts[2]; at[2]++) {
                int32_t tap = 0;
                for (k[0] = 0; k[0] < c->kernel[0]; k[0]++)
                    for (k[1] = 0; k[1] < c->kernel[1]; k[1]++)
                        for (k[2] = 0; k[2] < c->kernel[2]; k[2]++, tap++) {
                            ptrdiff_t place = 0;
                            for (int d = 0; d < 3 && place >= 0; d++) {
                                const ptrdiff_t x = at[d] * c->stride[d] - c->padding[d] + k[d] * c->dilation[d];
                                place = x < 0 || x >= c->sizes[d] ? -1 : place * c->sizes[d] + x;
                            }
                            if (place >= 0)
                                pairs[count++] = (small_pair){(int32_t)place, tap};
                        }
                *ends++ = count;
            }
}

typedef struct {
    small_job job;
    const small_real_loops *real;
    _Atomic bool failed;
} small_work;

static void small_body(void *context, npy_intp begin, npy_intp end) {
    small_work *work = context;
    const ptrdiff_t vectors = work->job.plane + work->job.outputs + SMALL_SIDES * work->job.c->taps;
    void *room = aligned_alloc(SMALL_VECTOR, (size_t)(vectors * SMALL_VECTOR));
    if (room)
        work->real->run(&work->job, room, begin, end);
    else
        work->failed = true;
    free(room);
}

bool small_run(const convolution *c) {
    const ptrdiff_t plane = conv_product(c->sizes), outputs = conv_product(c->counts);
    small_pair *pairs = malloc((size_t)(outputs * c->taps) * sizeof *pairs);
    int32_t *ends = malloc((size_t)outputs * sizeof *ends);
    small_work work = {.job = {c, pairs, ends, plane, outputs}, .real = &PICK(conv_small_loops)->real[c->type == TYPE_F64],
                       .failed = !pairs || !ends};
    if (!work.failed) {
        list_pairs(c, pairs, ends);
        const ptrdiff_t groups = (c->groups + work.real->lanes - 1) / work.real->lanes;
        native_parallel(groups, WORK / (c->images * (ends[outputs - 1] + plane + outputs)) + 1, small_body, &work);
    }
    free(pairs);
    free(ends);
    return !work.failed;
}
