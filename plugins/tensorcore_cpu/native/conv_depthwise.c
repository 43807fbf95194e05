/* Convolutions in which each out sums over one channel, and their inputs' gradients: square windows with steps of one, or forward of
   two, plane by plane. */
#include "conv.h"
#include "conv_call.h"
#include "native.h"

#include <stdlib.h>

DECLARE_LOOPS(conv_loops, conv_loops);

enum { WORK = 1 << 16 }; /* vector operations that are worth a thread */

static const conv_real_loops *real_of(const convolution *c) { return &PICK(conv_loops)->real[c->type == TYPE_F64]; }

bool depthwise_fits(const convolution *c) {
    const ptrdiff_t kernel = c->kernel[1];
    const bool gradient = c->wanted == CONV_INPUT_GRADIENT;
    if (c->wanted == CONV_WEIGHT_GRADIENT || c->channels != 1 || (gradient && c->outs != 1) || c->kernel[0] != 1 || c->padding[0] != 0 ||
        c->stride[0] != 1 || c->kernel[2] != kernel || (kernel != 3 && kernel != 5 && kernel != 7))
        return false;
    const ptrdiff_t step = c->stride[2];
    for (int d = 1; d < 3; d++)
        if (c->stride[d] != step || (step != 1 && (step != 2 || gradient)) || c->dilation[d] != 1 || (gradient && c->padding[d] >= kernel))
            return false;
    return true;
}

typedef struct {
    conv_planes job;
    const conv_real_loops *real;
    _Atomic bool failed;
} depthwise_work;

static void depthwise_body(void *context, npy_intp begin, npy_intp end) {
    depthwise_work *work = context;
    void *space = aligned_alloc(64, ((size_t)work->real->planes_room(&work->job) + 63) / 64 * 64);
    if (space)
        work->real->planes(&work->job, space, begin, end);
    else
        work->failed = true;
    free(space);
}

bool depthwise_run(const convolution *c) {
    const bool gradient = c->wanted == CONV_INPUT_GRADIENT;
    const ptrdiff_t *from = gradient ? c->counts : c->sizes, *made = gradient ? c->sizes : c->counts, kernel = c->kernel[1];
    depthwise_work work = {.real = real_of(c),
                           .job = {.from = gradient ? c->y : c->x, .weight = c->weight, .bias = c->bias,
                                   .made = (void *)(gradient ? c->x : c->y), .channels = c->groups, .outs = c->outs,
                                   .depth = c->counts[0], .kernel = kernel, .step = c->stride[2], .turned = gradient}};
    for (int d = 0; d < 2; d++) {
        work.job.sizes[d] = from[d + 1];
        work.job.counts[d] = made[d + 1];
        work.job.before[d] = gradient ? kernel - 1 - c->padding[d + 1] : c->padding[d + 1];
    }
    const ptrdiff_t strip = work.real->plane_strip / work.job.step, each = strip * made[2] * c->taps * c->outs / 16 + 1;
    const ptrdiff_t strips = (made[1] + strip - 1) / strip;
    native_parallel(c->images * c->groups * made[0] * strips, WORK / each + 1, depthwise_body, &work);
    return !work.failed;
}
