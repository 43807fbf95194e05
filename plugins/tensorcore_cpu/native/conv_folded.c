/* The inputs' gradients of convolutions, which transposed ones are too, as products whose columns are added up where their windows
   lie: each number that was sent is multiplied once for each tap, where sums over taps also multiply the zeros around them. */
#include "blas.h"
#include "conv.h"
#include "conv_call.h"
#include "gemm.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(conv_loops, conv_loops);

enum {
    COLUMNS = 64,             /* so many positions make a product worth while: images with fewer go together */
    PRODUCTS_BYTES = 256 << 10, /* that stay in the second cache until they are added, */
    PLANES_BYTES = 256 << 10,   /* beside the planes that they are added to */
    LEAST_ROWS = 48,          /* of a product */
    MOST_PLANE = 1 << 22,     /* elements */
    ADDING = 6,               /* multiplications of vectors that take as long as adding one */
    WORK = 1 << 16,           /* vector operations that are worth a thread */
};

static const conv_real_loops *real_of(const convolution *c) { return &PICK(conv_loops)->real[c->type == TYPE_F64]; }

/* A plane with all that windows reach, also outside of what is wanted. */
static ptrdiff_t plane_size(const convolution *c, int dim) {
    return at_least((c->counts[dim] - 1) * c->stride[dim] + (c->kernel[dim] - 1) * c->dilation[dim] + 1,
                    c->padding[dim] + c->sizes[dim]);
}

bool folded_fits(const convolution *c) {
    double elements = 1;
    for (int d = 0; d < 3; d++)
        elements *= (double)plane_size(c, d) + (double)c->stride[d];
    return c->wanted == CONV_INPUT_GRADIENT && elements < MOST_PLANE;
}

/* Multiplications along a dim that sums over taps take, for each phase of the step. */
static double summed(const convolution *c, int dim) {
    const ptrdiff_t step = c->stride[dim];
    double found = 0;
    for (ptrdiff_t phase = 0; phase < at_most(step, c->sizes[dim]); phase++) {
        ptrdiff_t taps = 0;
        for (ptrdiff_t k = 0; k < c->kernel[dim]; k++)
            taps += (phase + c->padding[dim] - k * c->dilation[dim]) % step == 0;
        found += (double)(taps * ((c->sizes[dim] - phase - 1) / step + 1));
    }
    return found;
}

bool folded_pays(const convolution *c) {
    const double lanes = (double)real_of(c)->lanes, width = (double)c->counts[2], inner = (double)c->outs;
    const double folded = (double)(c->taps * conv_product(c->counts));
    const double rows = (double)parts_of(c->counts[2], real_of(c)->lanes) * lanes / width;
    return folded * (inner + ADDING * rows) < summed(c, 0) * summed(c, 1) * summed(c, 2) * inner * taps_gradient_cost(c);
}

typedef struct {
    const convolution *c;
    const conv_real_loops *real;
    conv_fold fold;
    ptrdiff_t offsets[CONV_MOST_TAPS];
    ptrdiff_t positions, columns, step;      /* of an image; of a product, and from one of its rows to the next */
    ptrdiff_t images, channels, rows;        /* of a part; rows of a product */
    ptrdiff_t image_parts, channel_parts;
    size_t sent_bytes, products_bytes, planes_bytes;
    _Atomic bool failed;
} folded_work;

/* The product of pairs [begin, end) of a channel and a tap, counted from the group's first channel, and all sent to a part. */
static bool multiply(folded_work *work, ptrdiff_t group, ptrdiff_t begin, ptrdiff_t end, const void *sent, ptrdiff_t sent_step,
                     ptrdiff_t columns, void *products) {
    const convolution *c = work->c;
    const ptrdiff_t inner = c->channels * c->taps;
    gemm_job job = {.rows = end - begin, .columns = columns, .inner = c->outs, .left_row = 1, .left_inner = inner,
                    .left = conv_at(c->weight, group * c->outs * inner + begin, c->size), .right = sent,
                    .right_inner = sent_step, .right_column = 1, .made = products, .made_row = work->step};
    return gemm_run(c->type, &job);
}

/* Counts parts: some channels of a group for some images. */
static void folded_body(void *context, npy_intp begin, npy_intp end) {
    folded_work *work = context;
    const convolution *c = work->c;
    const ptrdiff_t size = (ptrdiff_t)c->size;
    char *room = aligned_alloc(64, work->sent_bytes + work->products_bytes + work->planes_bytes);
    char *products = room + work->sent_bytes, *planes = products + work->products_bytes;
    if (!room)
        work->failed = true;
    for (npy_intp i = begin; i < end && !work->failed; i++) {
        const ptrdiff_t group = i / work->channel_parts % c->groups, image = i / work->channel_parts / c->groups * work->images;
        const ptrdiff_t channel = i % work->channel_parts * work->channels;
        const ptrdiff_t channels = at_most(work->channels, c->channels - channel), images = at_most(work->images, c->images - image);
        const char *sent = conv_at(c->y, (image * c->groups + group) * c->outs * work->positions, c->size);
        ptrdiff_t sent_step = work->positions;
        if (work->images > 1) { /* those of all images side by side */
            sent_step = work->columns;
            for (ptrdiff_t o = 0; o < c->outs; o++)
                for (ptrdiff_t n = 0; n < images; n++)
                    memcpy(room + (o * sent_step + n * work->positions) * size,
                           sent + (n * c->groups * c->outs + o) * work->positions * size, (size_t)(work->positions * size));
            sent = room;
        }
        memset(planes, 0, work->planes_bytes);
        conv_fold fold = work->fold;
        fold.images = images;
        const ptrdiff_t first = channel * c->taps, last = (channel + channels) * c->taps;
        for (ptrdiff_t pair = first, next; pair < last && !work->failed; pair = next) {
            next = at_most(pair + work->rows, last);
            if (!multiply(work, group, pair, next, sent, sent_step, images * work->positions, products))
                work->failed = true;
            work->real->fold(&fold, products, planes, pair - first, next - first);
        }
        for (ptrdiff_t n = 0; n < images; n++)
            work->real->unfold_planes(&fold, planes, n, channels,
                                      (void *)conv_at(c->x, (((image + n) * c->groups + group) * c->channels + channel) *
                                                                conv_product(c->sizes), c->size));
    }
    free(room);
}

bool folded_run(const convolution *c) {
    folded_work work = {.c = c, .real = real_of(c), .positions = conv_product(c->counts)};
    conv_fold *fold = &work.fold;
    ptrdiff_t sizes[3];
    for (int d = 0; d < 3; d++) {
        sizes[d] = plane_size(c, d);
        fold->counts[d] = c->counts[d];
        fold->before[d] = c->padding[d];
        fold->sizes[d] = c->sizes[d];
    }
    fold->phases = c->stride[2];
    fold->phase = parts_of(sizes[2], fold->phases);
    /* A row that is added ends with a whole vector. Where that reached into the next one, which is read next, adding took three times
       as long: what has just been written in part is not handed on. */
    const bool follow = c->counts[0] * c->counts[1] > 1;
    const ptrdiff_t reach = follow ? parts_of(c->counts[2], work.real->lanes) * work.real->lanes : 0;
    fold->row = at_least(fold->phases * fold->phase, parts_of(reach, c->stride[1]));
    fold->height = sizes[1];
    fold->move[0] = c->stride[0] * sizes[1] * fold->row;
    fold->move[1] = c->stride[1] * fold->row;
    fold->plane = sizes[0] * sizes[1] * fold->row + work.real->lanes; /* whole vectors reach behind the last row */
    fold->offsets = work.offsets;
    fold->taps = c->taps;
    for (ptrdiff_t t = 0; t < c->taps; t++) {
        const ptrdiff_t z = t / (c->kernel[1] * c->kernel[2]), y = t / c->kernel[2] % c->kernel[1];
        const ptrdiff_t x = t % c->kernel[2] * c->dilation[2];
        work.offsets[t] = (z * c->dilation[0] * sizes[1] + y * c->dilation[1]) * fold->row + x % fold->phases * fold->phase +
                          x / fold->phases;
    }
    const ptrdiff_t size = (ptrdiff_t)c->size;
    work.images = at_least(1, at_most(c->images, COLUMNS / work.positions));
    work.columns = work.images * work.positions;
    work.step = parts_of(work.columns, work.real->lanes) * work.real->lanes;
    fold->step = work.step;
    fold->positions = work.positions;
    work.rows = at_least(LEAST_ROWS, PRODUCTS_BYTES / (work.step * size) / LEAST_ROWS * LEAST_ROWS);
    work.channels = at_least(1, at_most(work.rows / c->taps, PLANES_BYTES / (work.images * fold->plane * size)));
    work.channels = at_most(work.channels, c->channels);
    work.rows = at_most(work.rows, work.channels * c->taps);
    work.image_parts = parts_of(c->images, work.images);
    work.channel_parts = parts_of(c->channels, work.channels);
    const size_t line = 63;
    work.sent_bytes = work.images > 1 ? ((size_t)(c->outs * work.columns * size) + line) & ~line : 0;
    work.products_bytes = ((size_t)((work.rows * work.step + CONV_SLACK) * size) + line) & ~line;
    work.planes_bytes = ((size_t)(work.channels * work.images * fold->plane * size) + line) & ~line;
    const ptrdiff_t all = work.channels * c->taps * work.columns * c->outs / 16 + 1;
    if (!native_blas_ready(work.rows * work.columns * c->outs))
        return false;
    native_parallel(work.image_parts * c->groups * work.channel_parts, WORK / all + 1, folded_body, &work);
    return !work.failed;
}
