/* Convolutions of any kind as sums over taps, and their gradients. */
#include "conv.h"
#include "conv_windows.h"
#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(conv_loops, conv_loops);

enum {
    WORK = 1 << 16,      /* vector operations that are worth a thread */
    LEAST_SENT = 4,      /* fewer outs than this make the weight's gradient along the rows */
    LINES = 512,         /* of the first cache */
    PLACES = 60,         /* whole tiles of the direct loops of any height */
    WEIGHT_BYTES = 256 << 10, /* of weights that stay in the second cache from tile to tile; more are read once for */
    TOGETHER = 6,         /* so many tiles: 512 to 512 channels, 4x4, took 2.9 times as long one by one */
    WIDE_BYTES = 2 << 20, /* of weights: more of them come from memory again and again */
    WIDE_POSITIONS = 96,  /* that go over the weights together */
    FEW = 4,              /* pieces of a thread */
    SPLIT = 2,            /* sums of vectors that take as long as copying one element */
    PACK = 1 << 15,       /* weights whose packing is worth a thread */
};

static const conv_real_loops *real_of(const convolution *c) { return &PICK(conv_loops)->real[c->type == TYPE_F64]; }

/* Sums over taps */

typedef struct {
    const conv_job *job;
    const conv_real_loops *real;
    _Atomic bool failed;
} tiles_work;

static void tiles_body(void *context, npy_intp begin, npy_intp end) {
    tiles_work *work = context;
    void *space = aligned_alloc(64, ((size_t)work->real->tile_room(work->job) + 63) / 64 * 64);
    if (space)
        work->real->tiles(work->job, space, begin, end);
    else
        work->failed = true;
    free(space);
}

static void direct_body(void *context, npy_intp begin, npy_intp end) {
    tiles_work *work = context;
    work->real->direct(work->job, begin, end);
}

bool wide_fits(const convolution *c) {
    return c->wanted == CONV_SUMS && c->counts[2] >= real_of(c)->wide_least;
}

static double filled(ptrdiff_t count, ptrdiff_t unit) { return (double)((count + unit - 1) / unit * unit) / (double)count; }

/* What copying the elements of all phases apart adds to a sum. */
static double split_of(const convolution *c) {
    const double elements = (double)(real_of(c)->lanes * conv_product(c->stride)) / (double)(c->outs * c->taps);
    return c->stride[2] > 1 ? SPLIT * elements : 0;
}

/* What the ways cost by what was measured on a Zen 4, as times of a sum whose vectors are full and whose operands lie in the first
   cache. Windows that are read where they lie leave lanes empty behind each row, and wait for the second cache unless many taps
   use what comes; copies cost cycles for each run of a tile's positions, which all outs share. */
static double direct_cost(const conv_job *job, const conv_real_loops *real) {
    const ptrdiff_t whole = job->outs / real->rows * real->rows;
    const double vectors = (double)(real->columns / real->lanes);
    const double lines = (double)(job->channels * job->taps) / (double)job->row_taps * (vectors + 1);
    const double missing = lines > LINES ? 1 - LINES / lines : 0;
    ptrdiff_t rest = job->outs > whole ? 2 : 0;
    while (whole + rest < job->outs)
        rest = 2 * rest < real->rows ? 2 * rest : real->rows;
    return filled(job->counts[2], real->lanes) * (double)(whole + rest) / (double)job->outs * (1 + 1.5 * missing / (double)job->row_taps);
}

static double tiles_cost(const conv_job *job, const conv_real_loops *real) {
    const double vectors = (double)(real->columns / real->lanes);
    return 1 + (12.5 + 2.5 * (double)real->columns / (double)job->counts[2]) / (vectors * (double)job->outs);
}

/* `split` is what it takes to bring what lies under one tap side by side, where the windows' step is not one: wide sums do without. */
static taps_way cheapest(const conv_job *job, const conv_real_loops *real, bool wide, double split) {
    const double direct = direct_cost(job, real) + split, tiles = tiles_cost(job, real) + split;
    const double sideways = wide ? 1.07 * filled(job->outs, real->lanes) : HUGE_VAL;
    return sideways <= direct && sideways <= tiles ? TAPS_WIDE : direct <= tiles ? TAPS_DIRECT : TAPS_TILES;
}

double taps_gradient_cost(const convolution *c) {
    const ptrdiff_t row_taps = at_least(1, c->kernel[2] / c->stride[2]), taps = at_least(1, c->taps / conv_product(c->stride));
    const conv_job job = {.outs = c->channels, .channels = c->outs, .taps = taps, .row_taps = row_taps,
                          .counts = {1, 1, (c->sizes[2] + c->stride[2] - 1) / c->stride[2]}};
    const double direct = direct_cost(&job, real_of(c)), tiles = tiles_cost(&job, real_of(c));
    return direct < tiles ? direct : tiles;
}

static void pack_body(void *context, npy_intp begin, npy_intp end) {
    tiles_work *work = context;
    work->real->pack(work->job, begin, end);
}

static void wide_pack_body(void *context, npy_intp begin, npy_intp end) {
    tiles_work *work = context;
    work->real->wide_pack(work->job, begin, end);
}

static void wide_body(void *context, npy_intp begin, npy_intp end) {
    tiles_work *work = context;
    void *space = aligned_alloc(64, ((size_t)work->real->wide_room(work->job) + 63) / 64 * 64);
    if (space)
        work->real->wide(work->job, space, begin, end);
    else
        work->failed = true;
    free(space);
}

static bool run_wide(conv_job *job, const conv_real_loops *real) {
    tiles_work work = {job, real, false};
    const ptrdiff_t inner = job->channels * job->taps, rows = job->count * job->counts[0] * job->counts[1], threads = native_threads();
    job->together = at_least(1, WIDE_POSITIONS / job->counts[2]);
    job->pieces = at_least(1, job->counts[2] / WIDE_POSITIONS);
    if (threads > 1 && job->pieces > 1 && rows * job->pieces < FEW * threads)
        job->pieces *= 2; /* so that the threads end together */
    const ptrdiff_t each = inner * job->outs * (job->counts[2] / job->pieces) / 16 + 1;
    native_parallel(real->wide_outs(job->outs), PACK / (inner * real->columns) + 1, wide_pack_body, &work);
    native_parallel(rows * job->pieces, (WORK / (each * job->together) + 1) * job->together, wide_body, &work);
    return !work.failed;
}

/* `job` comes as a copy: how it is cut is decided here. */
static bool run(conv_job *job, const conv_real_loops *real, size_t size, taps_way how) {
    tiles_work work = {job, real, false};
    ptrdiff_t inner = job->channels * job->taps, positions = job->counts[0] * job->counts[1] * job->counts[2];
    if (!positions)
        return true;
    if (job->wide)
        return run_wide(job, real);
    const ptrdiff_t tiles = (job->count * positions + real->columns - 1) / real->columns, threads = native_threads();
    const ptrdiff_t rounds = (tiles + threads * TOGETHER - 1) / (threads * TOGETHER);
    const bool direct = (how == TAPS_BY_RULE ? cheapest(job, real, false, 0) : how) == TAPS_DIRECT;
    const bool large = job->outs * inner * (ptrdiff_t)size > WEIGHT_BYTES;
    job->together = large ? (tiles + threads * rounds - 1) / (threads * rounds) : 1;
    job->shares = large ? TOGETHER : 1; /* whatever the threads are: sums are then made in one order */
    if (large && !direct)
        job->packed = NULL; /* read where they lie: packing took a fifth of the time */
    else
        native_parallel((job->outs + real->rows - 1) / real->rows, PACK / (inner * real->rows + 1) + 1, pack_body, &work);
    if (direct) {
        native_parallel(real->direct_places(job), (WORK / (inner * job->outs + 1) / PLACES + 1) * PLACES, direct_body, &work);
        return true;
    }
    const ptrdiff_t groups = (tiles + job->together - 1) / job->together;
    native_parallel(groups, WORK / (inner * job->outs * job->together + 1) + 1, tiles_body, &work);
    return !work.failed;
}

/* The sums of all groups: those of many small groups side by side on the threads. The pointers of the job are those of the
   first group, and the steps go from one group to the next. */
typedef struct {
    const conv_job *job;
    const conv_real_loops *real;
    size_t size;
    taps_way how;
    ptrdiff_t images, weight, bias, made, packed;
    _Atomic bool failed;
} groups_work;

static void groups_body(void *context, npy_intp begin, npy_intp end) {
    groups_work *work = context;
    for (npy_intp g = begin; g < end; g++) {
        conv_job job = *work->job;
        job.images = conv_at(job.images, g * work->images, work->size);
        job.weight = conv_at(job.weight, g * work->weight, work->size);
        job.bias = job.bias ? conv_at(job.bias, g * work->bias, work->size) : NULL;
        job.made = (void *)conv_at(job.made, g * work->made, work->size);
        job.packed = (void *)conv_at(job.packed, g * work->packed, work->size);
        if (!run(&job, work->real, work->size, work->how))
            work->failed = true;
    }
}

static bool run_groups(groups_work *work, ptrdiff_t groups) {
    const conv_job *job = work->job;
    const ptrdiff_t each = job->count * job->counts[0] * job->counts[1] * job->counts[2] * job->channels * job->taps *
                           job->outs / 16 + 1;
    if (groups < 2 * native_threads())
        for (ptrdiff_t g = 0; g < groups; g++)
            groups_body(work, g, g + 1);
    else
        native_parallel(groups, WORK / each + 1, groups_body, work);
    return !work->failed;
}

/* Room for the packed weights of all groups, and how far it is from one to the next. */
static void *packed_room(conv_rooms *all, const convolution *c, ptrdiff_t outs, ptrdiff_t inner, ptrdiff_t *step) {
    *step = real_of(c)->packed_size(outs, inner) + CONV_SLACK;
    return conv_room(all, c->groups * *step * (ptrdiff_t)c->size);
}

/* conv */

static bool make_sums(const convolution *c, taps_way how) {
    conv_rooms all = {.count = 0};
    conv_images m;
    ptrdiff_t offsets[CONV_MOST_TAPS], straight[CONV_MOST_TAPS], positions = c->counts[0] * c->counts[1] * c->counts[2];
    conv_job job = {.count = c->images, .channels = c->channels, .taps = c->taps, .row_taps = c->kernel[2],
                    .offsets = offsets, .outs = c->outs,
                    .weight_out = c->channels * c->taps, .weight_channel = c->taps, .weight_at = straight,
                    .weight_solid = true, .counts = {c->counts[0], c->counts[1], c->counts[2]},
                    .made_image = c->outs * c->groups * positions, .made_out = positions,
                    .made_step = {c->counts[1] * c->counts[2], c->counts[2], 1}};
    for (ptrdiff_t t = 0; t < c->taps; t++)
        straight[t] = t;
    if (how == TAPS_BY_RULE)
        how = cheapest(&job, real_of(c), wide_fits(c) && c->outs * c->channels * c->taps * (ptrdiff_t)c->size <= WIDE_BYTES,
                       split_of(c));
    job.wide = how == TAPS_WIDE;
    const void *padded = conv_windows(&all, c, &m, offsets, job.move, !job.wide, job.wide);
    groups_work work = {.job = &job, .real = real_of(c), .size = c->size, .how = how,
                        .images = c->channels * m.channel,
                        .weight = c->outs * c->channels * c->taps, .bias = c->outs, .made = c->outs * positions};
    job.packed = padded ? packed_room(&all, c, c->outs, c->channels * c->taps, &work.packed) : NULL;
    job.image = m.image;
    job.channel = m.channel;
    job.images = padded;
    job.weight = c->weight;
    job.bias = c->bias;
    job.made = (void *)c->y;
    bool done = job.packed && run_groups(&work, c->groups);
    conv_give_back(&all);
    return done;
}

/* conv_input_gradient: for each phase of the stride its own sum, over the taps that reach that phase. */

static ptrdiff_t floor_divide(ptrdiff_t a, ptrdiff_t b) { return a / b - (a % b < 0); }

/* Of a tap along one dim: the phase of inputs that it reaches, and the output that the first of them meets. */
typedef struct {
    ptrdiff_t phase, reach;
} tap_meeting;

static bool make_input_gradient(const convolution *c, taps_way how) {
    ptrdiff_t least[3];
    tap_meeting meetings[CONV_MOST_TAPS + 2], *meets[3];
    conv_images m = {.data = c->y, .images = c->images, .channels = c->outs * c->groups, .phases = 1};
    memcpy(m.steps, c->steps, sizeof m.steps);
    for (int d = 0; d < 3; d++) {
        m.sizes[d] = c->counts[d];
        /* Input x meets output (x + padding - k * dilation) / stride. */
        least[d] = floor_divide(c->padding[d] - (c->kernel[d] - 1) * c->dilation[d], c->stride[d]);
        ptrdiff_t most = floor_divide(c->sizes[d] - 1 + c->padding[d], c->stride[d]);
        m.before[d] = -least[d];
        m.padded[d] = most - least[d] + 1;
        meets[d] = d ? meets[d - 1] + c->kernel[d - 1] : meetings;
        for (ptrdiff_t k = 0; k < c->kernel[d]; k++) {
            const ptrdiff_t from = c->padding[d] - k * c->dilation[d], phase = -from - floor_divide(-from, c->stride[d]) * c->stride[d];
            meets[d][k] = (tap_meeting){phase, (phase + from) / c->stride[d] - least[d]};
        }
    }
    conv_rooms all = {.count = 0};
    ptrdiff_t offsets[CONV_MOST_TAPS], places[CONV_MOST_TAPS], plane = c->sizes[0] * c->sizes[1] * c->sizes[2];
    const void *padded = conv_padded(&all, &m, c->size, false);
    conv_job job = {.image = m.image, .channel = m.channel, .move = {m.padded[1] * m.row, m.row, 1}, .count = c->images,
                    .channels = c->outs, .row_taps = at_least(1, c->kernel[2] / c->stride[2]), .offsets = offsets,
                    .weight_out = c->taps, .weight_channel = c->channels * c->taps,
                    .weight_at = places, .outs = c->channels, .made_image = c->channels * c->groups * plane,
                    .made_out = plane,
                    .made_step = {c->stride[0] * c->sizes[1] * c->sizes[2], c->stride[1] * c->sizes[2], c->stride[2]}};
    groups_work work = {.job = &job, .real = real_of(c), .size = c->size, .how = how,
                        .images = c->outs * m.channel,
                        .weight = c->outs * c->channels * c->taps, .made = c->channels * plane};
    job.packed = padded ? packed_room(&all, c, c->channels, c->outs * c->taps, &work.packed) : NULL;
    job.images = padded;
    job.weight = c->weight;
    bool done = job.packed != NULL;
    const ptrdiff_t *s = c->stride;
    for (ptrdiff_t phase = 0; done && phase < s[0] * s[1] * s[2]; phase++) {
        const ptrdiff_t f[3] = {phase / (s[1] * s[2]), phase / s[2] % s[1], phase % s[2]};
        for (int d = 0; d < 3; d++)
            job.counts[d] = f[d] < c->sizes[d] ? (c->sizes[d] - f[d] - 1) / s[d] + 1 : 0;
        job.taps = 0;
        for (ptrdiff_t z = 0, tap = 0; z < c->kernel[0]; z++)
            for (ptrdiff_t y = 0; y < c->kernel[1]; y++)
                for (ptrdiff_t x = 0; x < c->kernel[2]; x++, tap++) {
                    const tap_meeting *const of[3] = {&meets[0][z], &meets[1][y], &meets[2][x]};
                    if (of[0]->phase != f[0] || of[1]->phase != f[1] || of[2]->phase != f[2])
                        continue;
                    offsets[job.taps] = (of[0]->reach * m.padded[1] + of[1]->reach) * m.row + of[2]->reach;
                    places[job.taps++] = tap;
                }
        job.made = (void *)conv_at(c->x, (f[0] * c->sizes[1] + f[1]) * c->sizes[2] + f[2], c->size);
        done = run_groups(&work, c->groups);
    }
    conv_give_back(&all);
    return done;
}

/* conv_weight_gradient */

typedef struct {
    const conv_weight_job *job;
    const conv_real_loops *real;
} weight_work;

static void turn_body(void *context, npy_intp begin, npy_intp end) {
    weight_work *work = context;
    work->real->turn(work->job, begin, end);
}

static void weight_tiles_body(void *context, npy_intp begin, npy_intp end) {
    weight_work *work = context;
    work->real->weight_tiles(work->job, begin, end);
}

static void weight_direct_body(void *context, npy_intp begin, npy_intp end) {
    weight_work *work = context;
    work->real->weight_direct(work->job, begin, end);
}

static bool make_weight_gradient(const convolution *c, taps_way how) {
    conv_rooms all = {.count = 0};
    conv_images m;
    const conv_real_loops *real = real_of(c);
    ptrdiff_t offsets[CONV_MOST_TAPS], positions = c->counts[0] * c->counts[1] * c->counts[2], inner = c->channels * c->taps;
    conv_weight_job job = {.count = c->images, .channels = c->channels, .taps = c->taps, .offsets = offsets,
                           .sent_image = c->outs * c->groups * positions, .sent_out = positions, .outs = c->outs};
    const void *padded = conv_windows(&all, c, &m, offsets, job.move, true, false);
    bool done = padded != NULL, direct = how == TAPS_BY_RULE ? c->outs < LEAST_SENT : how == TAPS_DIRECT;
    ptrdiff_t tiles = (inner + real->weight_rows - 1) / real->weight_rows;
    ptrdiff_t blocks = (c->outs + real->weight_columns - 1) / real->weight_columns;
    if (done && !direct) {
        job.turned = conv_room(&all, c->images * blocks * positions * real->weight_columns * (ptrdiff_t)c->size);
        job.sums = conv_room(&all, tiles * blocks * real->weight_rows * real->weight_columns * (ptrdiff_t)c->size);
        done = job.turned && job.sums;
    }
    for (int d = 0; d < 3; d++)
        job.counts[d] = c->counts[d];
    job.image = m.image;
    job.channel = m.channel;
    const ptrdiff_t each = c->images * positions;
    if (done && direct) {
        job.images = padded;
        job.sent = c->y;
        job.sent_end = conv_at(job.sent, c->images * job.sent_image, c->size);
        job.made = (void *)c->weight;
        weight_work work = {&job, real};
        native_parallel(c->groups * c->outs * c->channels, WORK * 8 / (each * c->taps) + 1, weight_direct_body, &work);
    }
    for (ptrdiff_t g = 0; done && !direct && g < c->groups; g++) {
        job.images = conv_at(padded, g * c->channels * m.channel, c->size);
        job.sent = conv_at(c->y, g * c->outs * positions, c->size);
        job.made = (void *)conv_at((void *)c->weight, g * c->outs * inner, c->size);
        weight_work work = {&job, real};
        native_parallel(c->images, WORK / (positions * c->outs) + 1, turn_body, &work);
        native_parallel(tiles, WORK / (each * blocks * real->weight_rows) + 1, weight_tiles_body, &work);
    }
    conv_give_back(&all);
    return done;
}

bool taps_run(const convolution *c, taps_way how) {
    return c->wanted == CONV_SUMS             ? make_sums(c, how)
           : c->wanted == CONV_INPUT_GRADIENT ? make_input_gradient(c, how)
                                              : make_weight_gradient(c, how);
}
