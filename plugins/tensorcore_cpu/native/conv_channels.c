/* Convolutions of pictures whose channels are innermost, and of what is made so are they: with windows of one element products of
   matrices whose rows are pixels, with those of few channels ones whose rows are windows, and where each out sums over one channel sums
   over taps in vectors of channels. */
#include "blas.h"
#include "conv.h"
#include "conv_call.h"
#include "gemm.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(conv_loops, conv_loops);

enum {
    WORK = 1 << 16,           /* vector operations that are worth a thread */
    NARROW = 4, WINDOW = 512, /* channels, and elements of a window, at most */
    OUTS = 16,                /* and whole vectors of outs, that are for products with windows */
};

static bool lies_so(const convolution *c) {
    const bool gradient = c->wanted == CONV_INPUT_GRADIENT;
    const ptrdiff_t *sizes = gradient ? c->counts : c->sizes, channels = (gradient ? c->outs : c->channels) * c->groups;
    ptrdiff_t step = channels;
    if (c->wanted == CONV_WEIGHT_GRADIENT || channels == 1 || c->steps[1] != 1 || conv_product(sizes) == 1)
        return false;
    for (int d = 2; d >= 0; step *= sizes[d], d--)
        if (sizes[d] > 1 && c->steps[d + 2] != step)
            return false;
    return c->images == 1 || c->steps[0] == step;
}

static bool all_are(const ptrdiff_t *three, ptrdiff_t value) { return three[0] == value && three[1] == value && three[2] == value; }

static bool is_depthwise(const convolution *c) {
    return c->channels == 1 && c->outs == 1 && (c->wanted == CONV_SUMS || all_are(c->stride, 1));
}

static bool is_product(const convolution *c) {
    return c->taps == 1 && all_are(c->padding, 0) && (c->wanted == CONV_SUMS || conv_product(c->sizes) == conv_product(c->counts));
}

/* Elements of a padded row, as far as windows reach. */
static ptrdiff_t row_of(const convolution *c) { return ((c->counts[2] - 1) * c->stride[2] + c->kernel[2]) * c->channels; }

/* Few channels, as pictures have: what is made, channel by channel, would take as long to turn over as to sum. */
static bool is_narrow(const convolution *c) {
    return c->wanted == CONV_SUMS && c->groups == 1 && c->channels <= NARROW && c->taps * c->channels <= WINDOW &&
           c->outs % OUTS == 0 && c->stride[2] < c->kernel[2] && c->kernel[0] == 1 && c->padding[0] == 0 && c->stride[0] == 1 &&
           all_are(c->dilation, 1) && c->kernel[1] * row_of(c) <= INT32_MAX && !(winograd_fits(c) && winograd_pays(c));
}

bool channels_fits(const convolution *c) { return lies_so(c) && (is_depthwise(c) || is_product(c) || is_narrow(c)); }

/* Sums over taps */

typedef struct {
    conv_pixels job;
    const conv_real_loops *real;
} pixels_work;

static void pixels_body(void *context, npy_intp begin, npy_intp end) {
    const pixels_work *work = context;
    work->real->pixels(&work->job, begin, end);
}

static bool run_depthwise(const convolution *c) {
    const bool gradient = c->wanted == CONV_INPUT_GRADIENT;
    const ptrdiff_t *made = gradient ? c->sizes : c->counts;
    const size_t room = (size_t)(c->taps * c->groups) * c->size;
    char *weight = native_scratch(room); /* a row of channels for each tap, for gradients from the last to the first */
    pixels_work work = {.real = &PICK(conv_loops)->real[c->type == TYPE_F64],
                        .job = {.from = gradient ? c->y : c->x, .made = (void *)(gradient ? c->x : c->y), .weight = weight,
                                .bias = c->bias, .channels = c->groups}};
    if (!weight)
        return false;
    for (ptrdiff_t t = 0; t < c->taps; t++)
        for (ptrdiff_t k = 0; k < c->groups; k++)
            memcpy(weight + (size_t)((gradient ? c->taps - 1 - t : t) * c->groups + k) * c->size,
                   conv_at(c->weight, k * c->taps + t, c->size), c->size);
    for (int d = 0; d < 3; d++) {
        work.job.sizes[d] = (gradient ? c->counts : c->sizes)[d];
        work.job.counts[d] = made[d];
        work.job.kernel[d] = c->kernel[d];
        work.job.stride[d] = c->stride[d];
        work.job.dilation[d] = c->kernel[d] == 1 ? 1 : c->dilation[d];
        work.job.before[d] = gradient ? work.job.dilation[d] * (c->kernel[d] - 1) - c->padding[d] : c->padding[d];
    }
    const ptrdiff_t each = made[2] * c->taps * (c->groups / 16 + 1);
    native_parallel(c->images * made[0] * made[1], WORK / each + 1, pixels_body, &work);
    native_scratch_free(weight, room);
    return true;
}

/* Rows of outputs as products with windows */

typedef struct {
    conv_rows job;
    const conv_real_loops *real;
    size_t room;
    _Atomic bool failed;
} rows_work;

static void rows_body(void *context, npy_intp begin, npy_intp end) {
    rows_work *work = context;
    void *room = aligned_alloc(64, (work->room + 63) / 64 * 64);
    if (room)
        work->real->over_rows(&work->job, room, begin, end);
    else
        work->failed = true;
    free(room);
}

/* The weight's row for each place of a window, and the bias or zeros in front of them. */
static void lay_weight(const convolution *c, conv_rows *job, char *bias, int32_t *places) {
    const size_t wide = (size_t)c->outs * c->size;
    char *weight = bias + wide;
    if (c->bias)
        memcpy(bias, c->bias, wide);
    else
        memset(bias, 0, wide);
    job->bias = bias;
    job->weight = weight;
    for (ptrdiff_t t = 0; t < c->taps; t++)
        for (ptrdiff_t k = 0; k < c->channels; k++, weight += wide) {
            *places++ = (int32_t)(t / c->kernel[2] * job->row + t % c->kernel[2] * c->channels + k);
            for (ptrdiff_t o = 0; o < c->outs; o++)
                memcpy(weight + (size_t)o * c->size, conv_at(c->weight, (o * c->channels + k) * c->taps + t, c->size), c->size);
        }
}

static bool run_narrow(const convolution *c) {
    int32_t places[WINDOW];
    rows_work work = {.real = &PICK(conv_loops)->real[c->type == TYPE_F64],
                      .job = {.from = c->x, .made = (void *)c->y, .places = places, .channels = c->channels, .outs = c->outs,
                              .inner = c->taps * c->channels, .row = row_of(c), .kernel = c->kernel[1]}};
    for (int d = 0; d < 2; d++) {
        work.job.sizes[d] = c->sizes[d + 1];
        work.job.counts[d] = c->counts[d + 1];
        work.job.stride[d] = c->stride[d + 1];
        work.job.before[d] = c->padding[d + 1];
    }
    work.room = (size_t)(c->kernel[1] * work.job.row) * c->size;
    const size_t room = (size_t)((work.job.inner + 1) * c->outs) * c->size;
    char *space = native_scratch(room);
    if (!space)
        return false;
    lay_weight(c, &work.job, space, places);
    const ptrdiff_t each = c->counts[2] * c->taps * c->channels * (c->outs / 16 + 1);
    native_parallel(c->images * c->sizes[0] * c->counts[1], WORK / each + 1, rows_body, &work);
    native_scratch_free(space, room);
    return !work.failed;
}

/* Products */

typedef struct {
    const convolution *c;
    char *dense;
} gather_work;

/* Counts rows of outputs, whose pixels come to lie side by side. */
static void gather_body(void *context, npy_intp begin, npy_intp end) {
    const gather_work *work = context;
    const convolution *c = work->c;
    const size_t pixel = (size_t)(c->channels * c->groups) * c->size;
    for (npy_intp i = begin; i < end; i++) {
        const ptrdiff_t y = i % c->counts[1] * c->stride[1], z = i / c->counts[1] % c->counts[0] * c->stride[0];
        const ptrdiff_t row = ((i / c->counts[1] / c->counts[0]) * c->sizes[0] + z) * c->sizes[1] + y;
        for (ptrdiff_t x = 0; x < c->counts[2]; x++)
            memcpy(work->dense + (size_t)(i * c->counts[2] + x) * pixel,
                   (const char *)c->x + (size_t)(row * c->sizes[2] + x * c->stride[2]) * pixel, pixel);
    }
}

/* One number for each pixel: their row, which fills vectors where a column does not. */
static bool run_row(const convolution *c, const void *from, const void *to, ptrdiff_t pixels, ptrdiff_t inner) {
    const gemm_job job = {.rows = 1, .columns = pixels, .inner = inner, .left = c->weight, .left_row = inner, .left_inner = 1,
                          .right = from, .right_inner = 1, .right_column = inner,
                          .before = c->bias ? to : NULL, .before_row = pixels, .made = (void *)to, .made_row = pixels};
    for (ptrdiff_t i = 0; c->bias && i < pixels; i++)
        memcpy((void *)conv_at(to, i, c->size), c->bias, c->size);
    return gemm_run(c->type, &job);
}

/* made[pixel] = from[pixel] times the weight of each group, plus a bias. */
static bool run_groups(const convolution *c, const void *from, const void *to, ptrdiff_t pixels, ptrdiff_t inner, ptrdiff_t columns) {
    const bool gradient = c->wanted == CONV_INPUT_GRADIENT;
    bool done = true;
    for (ptrdiff_t g = 0; g < c->groups && done; g++) {
        const gemm_job job = {.rows = pixels, .columns = columns, .inner = inner,
                              .left = conv_at(from, g * inner, c->size), .left_row = c->groups * inner, .left_inner = 1,
                              .right = conv_at(c->weight, g * c->outs * c->channels, c->size),
                              .right_inner = gradient ? c->channels : 1, .right_column = gradient ? 1 : c->channels,
                              .before = c->bias ? conv_at(c->bias, g * c->outs, c->size) : NULL, .before_row = 0,
                              .made = (void *)conv_at(to, g * columns, c->size), .made_row = c->groups * columns};
        done = gemm_run(c->type, &job);
    }
    return done;
}

static bool run_product(const convolution *c) {
    const bool gradient = c->wanted == CONV_INPUT_GRADIENT, skips = conv_product(c->sizes) != conv_product(c->counts);
    const ptrdiff_t rows = c->images * conv_product(c->counts), inner = gradient ? c->outs : c->channels;
    const ptrdiff_t columns = gradient ? c->channels : c->outs;
    const size_t room = skips ? (size_t)(rows * c->channels * c->groups) * c->size : 0;
    gather_work work = {.c = c, .dense = room ? native_scratch(room) : NULL};
    if (!native_blas_ready(rows * inner * columns) || (room && !work.dense)) {
        if (work.dense)
            native_scratch_free(work.dense, room);
        return false;
    }
    if (room)
        native_parallel(c->images * c->counts[0] * c->counts[1], WORK / (c->counts[2] * (c->channels * c->groups / 16 + 1)) + 1,
                        gather_body, &work);
    const void *from = gradient ? c->y : room ? work.dense : c->x, *to = gradient ? c->x : c->y;
    const bool done = columns == 1 && c->groups == 1 ? run_row(c, from, to, rows, inner) : run_groups(c, from, to, rows, inner, columns);
    if (room)
        native_scratch_free(work.dense, room);
    return done;
}

bool channels_run(const convolution *c) {
    return is_depthwise(c) ? run_depthwise(c) : is_product(c) ? run_product(c) : run_narrow(c);
}
