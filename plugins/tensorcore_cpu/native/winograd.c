/* Windows of 3x3 with fewer multiplications: where that pays, and how it is cut among the threads. */
#include "winograd.h"

#include "conv_call.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(winograd_loops, winograd_loops);

enum {
    LEAST = 24,             /* channels and outs: fewer leave lanes empty, and turning the pixels is not small beside the products */
    LEAST_SUMMED = 16,      /* of those that a sum is made of, with steps of one: 16 to 32 took 0.7 to 0.8 of the time on a Zen 4 */
    TILES = 48,             /* of a block: its products and inputs stay in the second cache */
    MOST_COLUMNS = 64,      /* tiles of a row in one block */
    GRADIENT_TILES = 96,    /* the length of a sum before it is added to the others */
    GRADIENT_BYTES = 2 << 20, /* what comes in and is sent, and lies ready for all products at a time */
    SUMS = WINOGRAD_WEIGHTS * WINOGRAD_WEIGHTS, /* that the gradient of one weight is made of */
    WORK = 1 << 16,         /* vector operations that are worth a thread, */
    SUM_WORK = 1 << 10,     /* those of sums, each with the 16 products of a tile, */
    TRANSFORMED = 1 << 16,  /* and bytes of weights, pixels or sums that are transformed: ten microseconds */
};

/* Multiplications of a tile and what goes with them, beside 9 of an output, of a weight that is transformed, and of a gradient of
   one; measured. */
static const struct {
    ptrdiff_t tile, weight, gradient;
} COSTS[WINOGRAD_KINDS] = {{20, 120, 600}, {27, 120, 270}, {18, 10, 0}};

bool winograd_fits(const convolution *c) {
    for (int d = 1; d < 3; d++)
        if (c->kernel[d] != 3 || c->stride[d] > 2 || c->stride[d] != c->stride[1] || c->dilation[d] != 1 ||
            c->padding[d] < 0 || c->padding[d] > 2)
            return false;
    return c->kernel[0] == 1 && c->sizes[0] == 1 && c->stride[0] == 1 && !c->padding[0];
}

static winograd_kind kind_of(const convolution *c) {
    return c->stride[1] == 1 ? WINOGRAD_ONE : c->wanted == CONV_INPUT_GRADIENT ? WINOGRAD_TWO_TURNED : WINOGRAD_TWO;
}

bool winograd_pays(const convolution *c) {
    const winograd_kind kind = kind_of(c);
    const ptrdiff_t *made = c->wanted == CONV_INPUT_GRADIENT ? c->sizes : c->counts, outputs = WINOGRAD_TILES[kind].outputs;
    const bool back = c->wanted == CONV_INPUT_GRADIENT;
    const ptrdiff_t least = kind == WINOGRAD_ONE && c->wanted != CONV_WEIGHT_GRADIENT ? LEAST_SUMMED : LEAST;
    if ((back ? c->channels : c->outs) < LEAST || (back ? c->outs : c->channels) < least)
        return false;
    const ptrdiff_t tiles = parts_of(made[1], outputs) * parts_of(made[2], outputs);
    const ptrdiff_t sums = 9 * made[1] * made[2] / (kind == WINOGRAD_TWO_TURNED ? 4 : 1);
    return c->images * (sums - COSTS[kind].tile * tiles) >=
           (c->wanted == CONV_WEIGHT_GRADIENT ? COSTS[kind].gradient : COSTS[kind].weight);
}

static void cut(winograd_job *job, ptrdiff_t tiles) {
    job->down = parts_of(job->made_height, WINOGRAD_TILES[job->kind].outputs);
    job->across = parts_of(job->made_width, WINOGRAD_TILES[job->kind].outputs);
    job->parts = parts_of(job->across, MOST_COLUMNS);
    job->columns = parts_of(job->across, job->parts);
    const ptrdiff_t all = job->images * job->down, most = job->parts > 1 || job->columns >= tiles ? 1 : tiles / job->columns;
    job->rows = parts_of(all, parts_of(all, most));
    job->tiles = job->rows * job->columns;
    job->blocks = parts_of(all, job->rows) * job->parts;
}

/* Sums */

typedef struct {
    const winograd_job *job;
    const winograd_real_loops *real;
    size_t size;                        /* of an element */
    ptrdiff_t weights_size, inputs_size; /* bytes of one block each */
    char *weights, *inputs;             /* of all blocks, where they are made before */
    _Atomic bool failed;                /* for want of memory, or since something is not finite */
} sums_work;

static void weights_body(void *context, npy_intp begin, npy_intp end) {
    sums_work *work = context;
    for (npy_intp o = begin; o < end; o++)
        work->real->weights(work->job, work->weights + o * work->weights_size, o);
}

static void inputs_body(void *context, npy_intp begin, npy_intp end) {
    sums_work *work = context;
    const size_t size = (size_t)work->real->spare_size(work->job) * work->size;
    void *spare = native_scratch(size);
    for (npy_intp b = begin; spare && b < end; b++)
        work->real->inputs(work->job, work->inputs + b * work->inputs_size, spare, b);
    if (spare)
        native_scratch_free(spare, size);
    else
        work->failed = true;
}

/* Blocks of tiles where all weights are ready, blocks of outs where all inputs are. */
static void sums_body(void *context, npy_intp begin, npy_intp end) {
    sums_work *work = context;
    const winograd_job *job = work->job;
    const ptrdiff_t outs = parts_of(job->outs, work->real->outs), own = work->weights ? work->inputs_size : work->weights_size;
    const size_t size = (size_t)own + (size_t)work->real->spare_size(job) * work->size;
    char *room = native_scratch(size);
    work->failed |= !room;
    for (npy_intp i = begin; i < end && !work->failed; i++) {
        if (work->weights)
            work->real->inputs(job, room, room + own, i);
        else
            work->real->weights(job, room, i);
        for (ptrdiff_t n = 0; n < (work->weights ? outs : job->blocks); n++) {
            const char *inputs = work->weights ? room : work->inputs + n * work->inputs_size;
            const char *weights = work->weights ? work->weights + n * work->weights_size : room;
            if (!work->real->sums(job, inputs, weights, room + own, work->weights ? i : n, work->weights ? n : i))
                work->failed = true;
        }
    }
    if (room)
        native_scratch_free(room, size);
}

static bool make_sums(native_type type, winograd_job *job) {
    sums_work work = {.job = job, .real = &PICK(winograd_loops)->real[type == TYPE_F64], .size = TYPE_SIZE[type]};
    cut(job, TILES);
    work.weights_size = work.real->weights_size(job) * (ptrdiff_t)work.size;
    work.inputs_size = work.real->inputs_size(job) * (ptrdiff_t)work.size;
    const ptrdiff_t outs = parts_of(job->outs, work.real->outs);
    const bool weights_first = outs * work.weights_size <= job->blocks * work.inputs_size;
    const size_t size = (size_t)(weights_first ? outs * work.weights_size : job->blocks * work.inputs_size);
    char *ready = native_scratch(size);
    if (!ready)
        return false;
    if (weights_first) {
        work.weights = ready;
        native_parallel(outs, TRANSFORMED / work.weights_size + 1, weights_body, &work);
        native_parallel(job->blocks, SUM_WORK / (job->tiles * job->channels * outs) + 1, sums_body, &work);
    } else {
        work.inputs = ready;
        native_parallel(job->blocks, TRANSFORMED / work.inputs_size + 1, inputs_body, &work);
        if (!work.failed)
            native_parallel(outs, SUM_WORK / (job->blocks * job->tiles * job->channels) + 1, sums_body, &work);
    }
    native_scratch_free(ready, size);
    return !work.failed;
}

/* The weight's gradient */

typedef struct {
    const winograd_job *job;
    const winograd_real_loops *real;
    size_t size;
    ptrdiff_t inputs_size, sent_size, sums_size; /* bytes of a block */
    ptrdiff_t first, count;                      /* the blocks of tiles that are ready */
    char *inputs, *sent, *sums;
    _Atomic bool failed;
} gradient_work;

static void ready_body(void *context, npy_intp begin, npy_intp end) {
    gradient_work *work = context;
    const size_t size = (size_t)work->real->spare_size(work->job) * work->size;
    void *spare = native_scratch(size);
    for (npy_intp i = begin; spare && i < end; i++) {
        work->real->gradient_inputs(work->job, work->inputs + i * work->inputs_size, spare, work->first + i);
        work->real->gradient_sent(work->job, work->sent + i * work->sent_size, spare, work->first + i);
    }
    if (spare)
        native_scratch_free(spare, size);
    else
        work->failed = true;
}

static ptrdiff_t tiles_of(const winograd_job *job, ptrdiff_t block) {
    const ptrdiff_t first = block / job->parts * job->rows, column = block % job->parts * job->columns;
    const ptrdiff_t rows = job->images * job->down - first, columns = job->across - column;
    return (rows < job->rows ? rows : job->rows) * (columns < job->columns ? columns : job->columns);
}

/* What the blocks of tiles that are ready add to one of the sums. */
static void add_products(const gradient_work *work, char *sums, ptrdiff_t sum) {
    for (ptrdiff_t i = 0; i < work->count; i++)
        work->real->gradient_products(work->job, work->inputs + i * work->inputs_size, work->sent + i * work->sent_size, sums,
                                      sum, tiles_of(work->job, work->first + i), !(work->first + i));
}

static void products_body(void *context, npy_intp begin, npy_intp end) {
    const gradient_work *work = context;
    for (npy_intp sum = begin; sum < end; sum++)
        add_products(work, work->sums + sum / SUMS * work->sums_size, sum);
}

/* Counts blocks of channels. Where there is no room for the sums of all of them, all tiles are ready. */
static void gradient_body(void *context, npy_intp begin, npy_intp end) {
    gradient_work *work = context;
    char *own = work->sums ? NULL : native_scratch((size_t)work->sums_size);
    for (npy_intp block = begin; block < end && !work->failed; block++) {
        for (ptrdiff_t sum = 0; own && sum < SUMS; sum++)
            add_products(work, own, block * SUMS + sum);
        const char *sums = own ? own : work->sums ? work->sums + block * work->sums_size : NULL;
        if (!sums || !work->real->gradient(work->job, sums, block))
            work->failed = true;
    }
    if (own)
        native_scratch_free(own, (size_t)work->sums_size);
}

static bool make_gradient(native_type type, winograd_job *job) {
    gradient_work work = {.job = job, .real = &PICK(winograd_loops)->real[type == TYPE_F64], .size = TYPE_SIZE[type]};
    cut(job, GRADIENT_TILES);
    work.inputs_size = work.real->gradient_inputs_size(job) * (ptrdiff_t)work.size;
    work.sent_size = work.real->gradient_sent_size(job) * (ptrdiff_t)work.size;
    work.sums_size = work.real->gradient_sums_size(job) * (ptrdiff_t)work.size;
    const ptrdiff_t each = work.inputs_size + work.sent_size, channels = work.real->gradient_channels(job);
    const bool all_sums = channels * work.sums_size < job->blocks * each;
    ptrdiff_t at_once = GRADIENT_BYTES / each > native_threads() ? GRADIENT_BYTES / each : native_threads();
    at_once = at_once < job->blocks && all_sums ? at_once : job->blocks;
    const size_t size = (size_t)(at_once * each + (all_sums ? channels * work.sums_size : 0));
    work.inputs = native_scratch(size);
    if (!work.inputs)
        return false;
    work.sent = work.inputs + at_once * work.inputs_size;
    work.sums = all_sums ? work.sent + at_once * work.sent_size : NULL;
    for (; work.first < job->blocks && !work.failed; work.first += at_once) {
        work.count = job->blocks - work.first < at_once ? job->blocks - work.first : at_once;
        native_parallel(work.count, TRANSFORMED / each + 1, ready_body, &work);
        const ptrdiff_t grain = WORK / (work.count * job->tiles * job->outs) + 1;
        if (all_sums && !work.failed)
            native_parallel(SUMS * channels, grain, products_body, &work);
    }
    work.first = 0;
    if (!work.failed)
        native_parallel(channels, TRANSFORMED / work.sums_size + 1, gradient_body, &work);
    native_scratch_free(work.inputs, size);
    return !work.failed;
}

/* Where a tile's pixels and outputs lie along a dim. */
static void place(winograd_job *job, int d, ptrdiff_t padding, bool turned) {
    job->before[d] = turned ? 2 - padding : padding;
    for (int n = 0; n < WINOGRAD_TERMS; n++)
        job->from[d][n] = n;
    for (int n = 0; n < WINOGRAD_OUTPUTS; n++)
        job->to[d][n] = n;
    if (job->kind != WINOGRAD_TWO_TURNED)
        return;
    const int odd_first = padding % 2;
    const int to[WINOGRAD_OUTPUTS] = {odd_first, 2 + odd_first, odd_first ? 2 : 1, odd_first ? 0 : 3};
    memcpy(job->to[d], to, sizeof to);
    job->before[d] = !padding;
    job->from[d][3] = odd_first ? 0 : 2;
}

bool winograd_run(const convolution *c) {
    const ptrdiff_t planes[2] = {c->sizes[1] * c->sizes[2], c->counts[1] * c->counts[2]};
    const bool turned = c->wanted == CONV_INPUT_GRADIENT;
    bool done = true;
    for (ptrdiff_t g = 0; done && g < c->groups; g++) {
        const void *x = conv_at(c->x, g * c->channels * planes[0], c->size), *y = conv_at(c->y, g * c->outs * planes[1], c->size);
        const void *weight = conv_at(c->weight, g * c->outs * c->channels * c->taps, c->size);
        const ptrdiff_t x_image = c->groups * c->channels * planes[0], y_image = c->groups * c->outs * planes[1];
        winograd_job job = {.kind = kind_of(c), .images = c->images, .weight = weight, .turned = turned,
                            .bias = c->bias ? conv_at(c->bias, g * c->outs, c->size) : NULL};
        job.channels = turned ? c->outs : c->channels;
        job.outs = turned ? c->channels : c->outs;
        job.data = turned ? y : x;
        job.image = turned ? y_image : x_image;
        job.height = turned ? c->counts[1] : c->sizes[1];
        job.width = turned ? c->counts[2] : c->sizes[2];
        job.made = (void *)(turned ? x : y);
        job.made_image = turned ? x_image : y_image;
        job.made_height = turned ? c->sizes[1] : c->counts[1];
        job.made_width = turned ? c->sizes[2] : c->counts[2];
        job.weight_out = turned ? c->taps : c->channels * c->taps;
        job.weight_channel = turned ? c->channels * c->taps : c->taps;
        for (int d = 0; d < 2; d++)
            place(&job, d, c->padding[1 + d], turned);
        job.gradient = c->wanted == CONV_WEIGHT_GRADIENT ? (void *)weight : NULL;
        done = job.gradient ? make_gradient(c->type, &job) : make_sums(c->type, &job);
    }
    return done;
}
