/* Convolutions in one to three dims and their two gradients: what they take, and how they become sums over taps. */
#include "conv.h"

#include "blas.h"
#include "gemm.h"
#include "native.h"
#include "winograd.h"

#include <stdlib.h>

DECLARE_LOOPS(conv_loops, conv_loops);

static const conv_loops *loops;

enum { COUNTS, SHAPE, STRIDE, PADDING, DILATION, GROUPS, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    TAPS = 4096,         /* windows with more taps go to NumPy */
    WORK = 1 << 16,      /* vector operations that are worth a thread */
    LEAST_SENT = 4,      /* fewer outs than this make the weight's gradient along the rows */
    FEW_OUTS = 8, MOST_INNER = 320,
    PLACES = 120,        /* whole tiles of the direct loops of any height */
    LEAST_POSITIONS = 48, /* in an image: fewer are tiles together with those of the next one */
    WEIGHT_BYTES = 256 << 10, /* of weights that stay in the second cache from tile to tile; more are read once for */
    TOGETHER = 6,         /* so many tiles: 512 to 512 channels, 4x4, took 2.9 times as long one by one */
    WIDE_OUTS = 12,       /* fewer leave a vector of them half empty */
    WIDE_BYTES = 2 << 20, /* of weights: more of them come from memory again and again */
    WIDE_POSITIONS = 96,  /* that go over the weights together */
    PACK = 1 << 15,       /* weights whose packing is worth a thread */
};

static ptrdiff_t at_least(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* Arguments */

static bool read_three(PyObject *given, int dims, ptrdiff_t fill, ptrdiff_t *made) {
    if (!given || !PyTuple_Check(given) || PyTuple_GET_SIZE(given) != dims)
        return false;
    for (int d = 0; d < 3 - dims; d++)
        made[d] = fill;
    for (int d = 0; d < dims; d++) {
        made[3 - dims + d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, d));
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Sizes from shapes and options; false where it is not for us. `shape` is that of the input, `window` that of the weight. */
static bool read_call(convolution *c, PyObject **given, int ndim, const npy_intp *shape, const npy_intp *window,
                      native_type type) {
    int dims = ndim - 2;
    if (dims < 1 || dims > 3 || !read_three(given[STRIDE], dims, 1, c->stride) ||
        !read_three(given[PADDING], dims, 0, c->padding) || !read_three(given[DILATION], dims, 1, c->dilation) ||
        !given[GROUPS])
        return false;
    c->groups = PyLong_AsSsize_t(given[GROUPS]);
    if (c->groups < 1) {
        PyErr_Clear();
        return false;
    }
    for (int d = 0; d < 3; d++) {
        int at = d - (3 - dims);
        c->sizes[d] = at < 0 ? 1 : shape[2 + at];
        c->kernel[d] = at < 0 ? 1 : window[2 + at];
        if (c->sizes[d] < 1 || c->kernel[d] < 1)
            return false;
    }
    c->images = shape[0];
    c->channels = window[1];
    c->outs = window[0] / c->groups;
    c->taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    c->size = TYPE_SIZE[type];
    c->real = &loops->real[type == TYPE_F64];
    return c->images > 0 && c->channels > 0 && c->outs > 0 && c->taps <= TAPS;
}

static bool is_real(PyObject *object, native_type *type) {
    *type = native_array_type(object);
    return *type == TYPE_F32 || *type == TYPE_F64;
}

/* An array's steps in elements, for a dim of its own each: image, channel, depth, height, width. */
static bool read_steps(PyArrayObject *array, size_t size, ptrdiff_t *steps) {
    int ndim = PyArray_NDIM(array);
    for (int i = 0; i < 5; i++) {
        int at = i < 2 ? i : i - (5 - ndim);
        npy_intp step = at < 2 && i >= 2 ? 0 : PyArray_STRIDE(array, at);
        if (step % (npy_intp)size)
            return false;
        steps[i] = step / (npy_intp)size;
    }
    return true;
}

/* Memory that is given back together */

typedef struct {
    void *blocks[6];
    size_t sizes[6];
    int count;
} rooms;

static void *room(rooms *all, ptrdiff_t bytes) {
    const size_t size = (size_t)bytes + CONV_SLACK;
    void *block = native_scratch(size);
    if (block) {
        all->sizes[all->count] = size;
        all->blocks[all->count++] = block;
    }
    return block;
}

static void give_back(rooms *all) {
    for (; all->count; all->count--)
        native_scratch_free(all->blocks[all->count - 1], all->sizes[all->count - 1]);
}

/* Padded images */

typedef struct {
    const conv_images *images;
    void *padded;
    size_t size;
} padding_work;

static void pad_body(void *context, npy_intp begin, npy_intp end) {
    padding_work *work = context;
    loops->pad(work->images, work->padded, begin, end, work->size);
}

/* Fills in the lengths, and copies; NULL where there is no memory. */
static void *make_padded(rooms *all, conv_images *m, size_t size) {
    m->phase = (m->padded[2] + m->phases - 1) / m->phases;
    m->row = m->phases * m->phase;
    m->channel = m->padded[0] * m->padded[1] * m->row;
    m->image = m->channels * m->channel;
    ptrdiff_t total = m->images * m->image;
    char *padded = room(all, (total + CONV_SLACK) * (ptrdiff_t)size);
    if (!padded)
        return NULL;
    for (size_t i = 0; i < CONV_SLACK * size; i++)
        padded[(size_t)total * size + i] = 0;
    padding_work work = {m, padded, size};
    native_parallel(m->images * m->channels, WORK / (m->channel + 1) + 1, pad_body, &work);
    return padded;
}

/* The windows of `conv` in padded images: where each tap is. */
static void *make_windows(rooms *all, const convolution *c, PyArrayObject *x, conv_images *m, ptrdiff_t *offsets,
                          ptrdiff_t *move, bool wide) {
    *m = (conv_images){.data = PyArray_DATA(x), .images = c->images, .channels = c->channels * c->groups,
                       .phases = wide ? 1 : c->stride[2]};
    if (!read_steps(x, c->size, m->steps))
        return NULL;
    for (int d = 0; d < 3; d++) {
        m->sizes[d] = c->sizes[d];
        m->before[d] = c->padding[d];
        m->padded[d] = (c->counts[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1;
    }
    void *padded = make_padded(all, m, c->size);
    ptrdiff_t *next = offsets;
    for (ptrdiff_t z = 0; z < c->kernel[0]; z++)
        for (ptrdiff_t y = 0; y < c->kernel[1]; y++)
            for (ptrdiff_t k = 0; k < c->kernel[2]; k++) {
                ptrdiff_t x_at = k * c->dilation[2];
                *next++ = (z * c->dilation[0] * m->padded[1] + y * c->dilation[1]) * m->row +
                          x_at % m->phases * m->phase + x_at / m->phases;
            }
    move[0] = c->stride[0] * m->padded[1] * m->row;
    move[1] = c->stride[1] * m->row;
    move[2] = wide ? c->stride[2] : 1;
    return padded;
}

/* Sums over taps */

typedef struct {
    const conv_job *job;
    const conv_real_loops *real;
    bool failed;
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

/* Whether what is under one tile stays in the first cache, and rows fill vectors. */
static bool fills_lanes(ptrdiff_t inner, ptrdiff_t width, const conv_real_loops *real) {
    const ptrdiff_t filled = (width + real->lanes - 1) / real->lanes * real->lanes;
    return inner <= MOST_INNER && 8 * width >= 5 * filled;
}

/* Whether the windows are read where they lie: for few outs a copy does not pay. */
static bool is_direct(const conv_job *job, const conv_real_loops *real) {
    return job->outs <= FEW_OUTS || fills_lanes(job->channels * job->taps, job->counts[2], real);
}

/* Whether vectors of outs pay beside vectors of positions. */
static bool is_wide(const convolution *c) {
    return c->stride[2] <= 2 && c->outs >= WIDE_OUTS && c->outs * c->channels * c->taps * (ptrdiff_t)c->size <= WIDE_BYTES && c->counts[2] >= c->real->wide_least &&
           !fills_lanes(c->channels * c->taps, c->counts[2], c->real);
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
    const ptrdiff_t inner = job->channels * job->taps, each = inner * job->outs * job->counts[2] / 16 + 1;
    job->together = at_least(1, WIDE_POSITIONS / job->counts[2]);
    native_parallel(real->wide_outs(job->outs), PACK / (inner * real->columns) + 1, wide_pack_body, &work);
    native_parallel(job->count * job->counts[0] * job->counts[1], (WORK / (each * job->together) + 1) * job->together, wide_body,
                    &work);
    return !work.failed;
}

/* `job` comes as a copy: how it is cut is decided here. */
static bool run(conv_job *job, const conv_real_loops *real, size_t size) {
    tiles_work work = {job, real, false};
    ptrdiff_t inner = job->channels * job->taps, positions = job->counts[0] * job->counts[1] * job->counts[2];
    if (!positions)
        return true;
    if (job->wide)
        return run_wide(job, real);
    const ptrdiff_t tiles = (job->count * positions + real->columns - 1) / real->columns, threads = native_threads();
    const ptrdiff_t rounds = (tiles + threads * TOGETHER - 1) / (threads * TOGETHER);
    const bool direct = is_direct(job, real), large = job->outs * inner * (ptrdiff_t)size > WEIGHT_BYTES;
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
    ptrdiff_t images, weight, bias, made, packed;
    _Atomic bool failed;
} groups_work;

static const void *at(const void *data, ptrdiff_t elements, size_t size) {
    return (const char *)data + elements * (ptrdiff_t)size;
}

static void groups_body(void *context, npy_intp begin, npy_intp end) {
    groups_work *work = context;
    for (npy_intp g = begin; g < end; g++) {
        conv_job job = *work->job;
        job.images = at(job.images, g * work->images, work->size);
        job.weight = at(job.weight, g * work->weight, work->size);
        job.bias = job.bias ? at(job.bias, g * work->bias, work->size) : NULL;
        job.made = (void *)at(job.made, g * work->made, work->size);
        job.packed = (void *)at(job.packed, g * work->packed, work->size);
        if (!run(&job, work->real, work->size))
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
static void *packed_room(rooms *all, const convolution *c, ptrdiff_t outs, ptrdiff_t inner, ptrdiff_t *step) {
    *step = c->real->packed_size(outs, inner) + CONV_SLACK;
    return room(all, c->groups * *step * (ptrdiff_t)c->size);
}

/* Windows of one element side by side: products of matrices, one for each image and group */

static bool is_pointwise(const convolution *c) {
    ptrdiff_t positions = 1;
    for (int d = 0; d < 3; d++) {
        if (c->kernel[d] != 1 || c->stride[d] != 1 || c->padding[d] != 0)
            return false;
        positions *= c->sizes[d];
    }
    return positions >= LEAST_POSITIONS;
}

typedef struct {
    native_type type;
    gemm_job job;
    size_t size;
    ptrdiff_t groups, right_image, made_image, weight, right, made; /* steps from an image or a group to the next */
    const void *bias;
    _Atomic bool failed;
} pointwise_work;

static void fill_row(void *to, const void *value, ptrdiff_t count, size_t size) {
    if (size == sizeof(float))
        for (ptrdiff_t i = 0; i < count; i++)
            ((float *)to)[i] = *(const float *)value;
    else
        for (ptrdiff_t i = 0; i < count; i++)
            ((double *)to)[i] = *(const double *)value;
}

static void pointwise_body(void *context, npy_intp begin, npy_intp end) {
    pointwise_work *work = context;
    for (npy_intp i = begin; i < end && !work->failed; i++) {
        const ptrdiff_t image = i / work->groups, group = i % work->groups;
        gemm_job job = work->job;
        job.left = at(job.left, group * work->weight, work->size);
        job.right = at(job.right, image * work->right_image + group * work->right, work->size);
        job.made = (void *)at(job.made, image * work->made_image + group * work->made, work->size);
        if (work->bias) {
            for (ptrdiff_t o = 0; o < job.rows; o++)
                fill_row((void *)at(job.made, o * job.made_row, work->size),
                         at(work->bias, group * job.rows + o, work->size), job.columns, work->size);
            job.before = job.made;
            job.before_row = job.made_row;
        }
        if (!gemm_run(work->type, &job))
            work->failed = true;
    }
}

/* made[image, group] = weight[group] times right[image, group], plus a bias for each row. `turned` takes the weight's transpose. */
static bool run_pointwise(const convolution *c, native_type type, bool turned, const void *weight, const void *right,
                          const void *bias, void *made) {
    const ptrdiff_t positions = c->sizes[0] * c->sizes[1] * c->sizes[2], inner = turned ? c->outs : c->channels;
    const ptrdiff_t rows = turned ? c->channels : c->outs;
    pointwise_work work = {
        .type = type, .size = c->size, .groups = c->groups, .right_image = c->groups * inner * positions,
        .made_image = c->groups * rows * positions, .weight = c->outs * c->channels, .right = inner * positions,
        .made = rows * positions, .bias = bias,
        .job = {.rows = rows, .columns = positions, .inner = inner, .left = weight, .left_row = turned ? 1 : c->channels,
                .left_inner = turned ? c->channels : 1, .right = right, .right_inner = positions, .right_column = 1,
                .made = made, .made_row = positions}};
    const ptrdiff_t count = c->images * c->groups, each = rows * positions * inner / 16 + 1;
    if (!native_blas_ready(rows * positions * inner))
        return false;
    if (count < 2 * native_threads())
        for (ptrdiff_t i = 0; i < count; i++)
            pointwise_body(&work, i, i + 1);
    else
        native_parallel(count, WORK / each + 1, pointwise_body, &work);
    return !work.failed;
}

/* made[group] = the sum over images of sent[image, group] times x[image, group] transposed. */
static bool run_pointwise_weight(const convolution *c, native_type type, const void *sent, const void *x, void *made) {
    const ptrdiff_t positions = c->sizes[0] * c->sizes[1] * c->sizes[2];
    bool done = native_blas_ready(c->outs * c->channels * positions);
    for (ptrdiff_t group = 0; done && group < c->groups; group++)
        for (ptrdiff_t image = 0; done && image < c->images; image++) {
            gemm_job job = {.rows = c->outs, .columns = c->channels, .inner = positions, .left_row = positions,
                            .left_inner = 1, .right_inner = 1, .right_column = positions, .made_row = c->channels};
            job.left = at(sent, (image * c->groups + group) * c->outs * positions, c->size);
            job.right = at(x, (image * c->groups + group) * c->channels * positions, c->size);
            job.made = (void *)at(made, group * c->outs * c->channels, c->size);
            job.before = image ? job.made : NULL;
            job.before_row = c->channels;
            done = gemm_run(type, &job);
        }
    return done;
}

/* Windows of 3x3 with fewer multiplications, for each group */

typedef enum { SUMS, INPUT_GRADIENT, WEIGHT_GRADIENT } wanted;

/* `x` and `y` are what comes in and what comes out of the convolution, `height` and `width` those of `y`; of the three the one
   that is wanted is written. False where it is not for us, and where the sums over taps have to make it. */
static bool run_winograd(const convolution *c, native_type type, wanted what, const ptrdiff_t *counts, const void *x,
                         const void *weight, const void *bias, const void *y) {
    const ptrdiff_t planes[2] = {c->sizes[1] * c->sizes[2], counts[1] * counts[2]};
    const bool turned = what == INPUT_GRADIENT;
    bool done = winograd_fits(c, turned ? c->sizes : counts, what == WEIGHT_GRADIENT);
    for (ptrdiff_t g = 0; done && g < c->groups; g++) {
        const void *in = at(x, g * c->channels * planes[0], c->size), *out = at(y, g * c->outs * planes[1], c->size);
        const void *taps = at(weight, g * c->outs * c->channels * c->taps, c->size);
        const ptrdiff_t in_image = c->groups * c->channels * planes[0], out_image = c->groups * c->outs * planes[1];
        winograd_job job = {.images = c->images, .weight = taps, .turned = turned,
                            .bias = bias ? at(bias, g * c->outs, c->size) : NULL};
        job.channels = turned ? c->outs : c->channels;
        job.outs = turned ? c->channels : c->outs;
        job.data = turned ? out : in;
        job.image = turned ? out_image : in_image;
        job.height = turned ? counts[1] : c->sizes[1];
        job.width = turned ? counts[2] : c->sizes[2];
        job.made = (void *)(turned ? in : out);
        job.made_image = turned ? in_image : out_image;
        job.made_height = turned ? c->sizes[1] : counts[1];
        job.made_width = turned ? c->sizes[2] : counts[2];
        job.weight_out = turned ? c->taps : c->channels * c->taps;
        job.weight_channel = turned ? c->channels * c->taps : c->taps;
        for (int d = 0; d < 2; d++)
            job.before[d] = turned ? 2 - c->padding[1 + d] : c->padding[1 + d];
        job.gradient = what == WEIGHT_GRADIENT ? (void *)taps : NULL;
        done = what == WEIGHT_GRADIENT ? winograd_gradient(type, &job) : winograd_sums(type, &job);
    }
    return done;
}

/* conv */

static PyObject *convolve(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type, other;
    if (nargs != 3 || !native_options(args, nargs, kwnames, names, OPTIONS, given) || !is_real(args[0], &type) ||
        !is_real(args[1], &other) || other != type)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *weight = (PyArrayObject *)args[1], *bias = NULL;
    int ndim = PyArray_NDIM(x);
    if (args[2] != Py_None) {
        bias = (PyArrayObject *)args[2];
        if (native_array_type(args[2]) != type || PyArray_NDIM(bias) != 1 || !PyArray_IS_C_CONTIGUOUS(bias))
            return NULL;
    }
    convolution c;
    if (PyArray_NDIM(weight) != ndim || !read_call(&c, given, ndim, PyArray_DIMS(x), PyArray_DIMS(weight), type) ||
        !read_three(given[COUNTS], ndim - 2, 1, c.counts) || c.counts[0] < 1 || c.counts[1] < 1 || c.counts[2] < 1 ||
        PyArray_DIM(x, 1) != c.channels * c.groups || (bias && PyArray_DIM(bias, 0) != c.outs * c.groups))
        return NULL;

    npy_intp shape[5] = {c.images, c.outs * c.groups};
    for (int i = 2; i < ndim; i++)
        shape[i] = c.counts[i + 3 - ndim];
    PyArrayObject *solid = (PyArrayObject *)PyArray_GETCONTIGUOUS(weight);
    PyArrayObject *made = solid ? native_empty(ndim, shape, type) : NULL;
    if (made && is_pointwise(&c)) {
        PyArrayObject *right = (PyArrayObject *)PyArray_GETCONTIGUOUS(x);
        if (!right || !run_pointwise(&c, type, false, PyArray_DATA(solid), PyArray_DATA(right),
                                     bias ? PyArray_DATA(bias) : NULL, PyArray_DATA(made)))
            Py_CLEAR(made);
        Py_XDECREF(right);
        Py_DECREF(solid);
        return (PyObject *)made;
    }
    if (made && PyArray_IS_C_CONTIGUOUS(x) &&
        run_winograd(&c, type, SUMS, c.counts, PyArray_DATA(x), PyArray_DATA(solid), bias ? PyArray_DATA(bias) : NULL,
                     PyArray_DATA(made))) {
        Py_DECREF(solid);
        return (PyObject *)made;
    }
    rooms all = {.count = 0};
    conv_images m;
    ptrdiff_t offsets[TAPS], straight[TAPS], positions = c.counts[0] * c.counts[1] * c.counts[2];
    conv_job job = {.count = c.images, .channels = c.channels, .taps = c.taps, .offsets = offsets, .outs = c.outs,
                    .weight_out = c.channels * c.taps, .weight_channel = c.taps, .weight_at = straight,
                    .weight_solid = true, .wide = is_wide(&c),
                    .made_image = c.outs * c.groups * positions, .made_out = positions,
                    .made_step = {c.counts[1] * c.counts[2], c.counts[2], 1}};
    for (ptrdiff_t t = 0; t < c.taps; t++)
        straight[t] = t;
    const void *padded = made ? make_windows(&all, &c, x, &m, offsets, job.move, job.wide) : NULL;
    groups_work work = {.job = &job, .real = c.real, .size = c.size, .images = c.channels * m.channel,
                        .weight = c.outs * c.channels * c.taps, .bias = c.outs, .made = c.outs * positions};
    job.packed = padded ? packed_room(&all, &c, c.outs, c.channels * c.taps, &work.packed) : NULL;
    for (int d = 0; d < 3; d++)
        job.counts[d] = c.counts[d];
    job.image = m.image;
    job.channel = m.channel;
    job.images = padded;
    job.weight = PyArray_DATA(solid);
    job.bias = bias ? PyArray_DATA(bias) : NULL;
    job.made = made ? PyArray_DATA(made) : NULL;
    bool done = job.packed && run_groups(&work, c.groups);
    give_back(&all);
    Py_XDECREF(solid);
    if (!done)
        Py_CLEAR(made); /* NumPy's turn, which also knows what to say when there is no memory */
    return (PyObject *)made;
}

/* conv_input_gradient: for each phase of the stride its own sum, over the taps that reach that phase. */

static ptrdiff_t floor_divide(ptrdiff_t a, ptrdiff_t b) { return a / b - (a % b < 0); }

static PyObject *input_gradient(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type, other;
    if (nargs != 2 || !native_options(args, nargs, kwnames, names, OPTIONS, given) || !is_real(args[0], &type) ||
        !is_real(args[1], &other) || other != type)
        return NULL;
    PyArrayObject *sent = (PyArrayObject *)args[0], *weight = (PyArrayObject *)args[1];
    int ndim = PyArray_NDIM(sent);
    npy_intp shape[5];
    if (ndim < 3 || ndim > 5 || !given[SHAPE] || !PyTuple_Check(given[SHAPE]) || PyTuple_GET_SIZE(given[SHAPE]) != ndim)
        return NULL;
    for (int i = 0; i < ndim; i++)
        shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given[SHAPE], i));
    convolution c;
    if (PyErr_Occurred() || PyArray_NDIM(weight) != ndim || PyArray_DIM(sent, 0) != shape[0] ||
        PyArray_DIM(sent, 1) != PyArray_DIM(weight, 0) ||
        !read_call(&c, given, ndim, shape, PyArray_DIMS(weight), type)) {
        PyErr_Clear();
        return NULL;
    }
    ptrdiff_t least[3];
    conv_images m = {.data = PyArray_DATA(sent), .images = c.images, .channels = c.outs * c.groups, .phases = 1};
    if (!read_steps(sent, c.size, m.steps))
        return NULL;
    for (int d = 0; d < 3; d++) {
        int axis = d - (5 - ndim);
        m.sizes[d] = axis < 0 ? 1 : PyArray_DIM(sent, 2 + axis);
        if (m.sizes[d] < 1)
            return NULL;
        /* Input x meets output (x + padding - k * dilation) / stride. */
        least[d] = floor_divide(c.padding[d] - (c.kernel[d] - 1) * c.dilation[d], c.stride[d]);
        ptrdiff_t most = floor_divide(c.sizes[d] - 1 + c.padding[d], c.stride[d]);
        m.before[d] = -least[d];
        m.padded[d] = most - least[d] + 1;
    }
    PyArrayObject *solid = (PyArrayObject *)PyArray_GETCONTIGUOUS(weight);
    PyArrayObject *made = solid ? native_empty(ndim, shape, type) : NULL;
    if (made && is_pointwise(&c)) {
        PyArrayObject *right = (PyArrayObject *)PyArray_GETCONTIGUOUS(sent);
        if (!right ||
            !run_pointwise(&c, type, true, PyArray_DATA(solid), PyArray_DATA(right), NULL, PyArray_DATA(made)))
            Py_CLEAR(made);
        Py_XDECREF(right);
        Py_DECREF(solid);
        return (PyObject *)made;
    }
    if (made && PyArray_IS_C_CONTIGUOUS(sent) &&
        run_winograd(&c, type, INPUT_GRADIENT, m.sizes, PyArray_DATA(made), PyArray_DATA(solid), NULL, PyArray_DATA(sent))) {
        Py_DECREF(solid);
        return (PyObject *)made;
    }
    rooms all = {.count = 0};
    ptrdiff_t offsets[TAPS], places[TAPS], plane = c.sizes[0] * c.sizes[1] * c.sizes[2];
    const void *padded = made ? make_padded(&all, &m, c.size) : NULL;
    conv_job job = {.image = m.image, .channel = m.channel, .move = {m.padded[1] * m.row, m.row, 1}, .count = c.images,
                    .channels = c.outs, .offsets = offsets, .weight_out = c.taps, .weight_channel = c.channels * c.taps,
                    .weight_at = places, .outs = c.channels, .made_image = c.channels * c.groups * plane,
                    .made_out = plane,
                    .made_step = {c.stride[0] * c.sizes[1] * c.sizes[2], c.stride[1] * c.sizes[2], c.stride[2]}};
    groups_work work = {.job = &job, .real = c.real, .size = c.size, .images = c.outs * m.channel,
                        .weight = c.outs * c.channels * c.taps, .made = c.channels * plane};
    job.packed = padded ? packed_room(&all, &c, c.channels, c.outs * c.taps, &work.packed) : NULL;
    job.images = padded;
    job.weight = solid ? PyArray_DATA(solid) : NULL;
    bool done = job.packed != NULL;
    const ptrdiff_t *s = c.stride;
    for (ptrdiff_t phase = 0; done && phase < s[0] * s[1] * s[2]; phase++) {
        const ptrdiff_t f[3] = {phase / (s[1] * s[2]), phase / s[2] % s[1], phase % s[2]};
        for (int d = 0; d < 3; d++)
            job.counts[d] = f[d] < c.sizes[d] ? (c.sizes[d] - f[d] - 1) / s[d] + 1 : 0;
        job.taps = 0;
        for (ptrdiff_t tap = 0; tap < c.taps; tap++) {
            const ptrdiff_t k[3] = {tap / (c.kernel[1] * c.kernel[2]), tap / c.kernel[2] % c.kernel[1], tap % c.kernel[2]};
            ptrdiff_t reach[3];
            bool meets = true;
            for (int d = 0; d < 3; d++) {
                ptrdiff_t distance = f[d] + c.padding[d] - k[d] * c.dilation[d];
                meets &= distance % s[d] == 0;
                reach[d] = floor_divide(distance, s[d]) - least[d];
            }
            if (!meets)
                continue;
            offsets[job.taps] = (reach[0] * m.padded[1] + reach[1]) * m.row + reach[2];
            places[job.taps++] = tap;
        }
        job.made = (void *)at(PyArray_DATA(made), (f[0] * c.sizes[1] + f[1]) * c.sizes[2] + f[2], c.size);
        done = run_groups(&work, c.groups);
    }
    give_back(&all);
    Py_XDECREF(solid);
    if (!done)
        Py_CLEAR(made);
    return (PyObject *)made;
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

static PyObject *weight_gradient(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type, other;
    if (nargs != 2 || !native_options(args, nargs, kwnames, names, OPTIONS, given) || !is_real(args[0], &type) ||
        !is_real(args[1], &other) || other != type)
        return NULL;
    PyArrayObject *sent = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    int ndim = PyArray_NDIM(x);
    npy_intp window[5];
    if (ndim < 3 || ndim > 5 || PyArray_NDIM(sent) != ndim || !given[SHAPE] || !PyTuple_Check(given[SHAPE]) ||
        PyTuple_GET_SIZE(given[SHAPE]) != ndim)
        return NULL;
    for (int i = 0; i < ndim; i++)
        window[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given[SHAPE], i));
    convolution c;
    if (PyErr_Occurred() || PyArray_DIM(sent, 0) != PyArray_DIM(x, 0) || PyArray_DIM(sent, 1) != window[0] ||
        !read_call(&c, given, ndim, PyArray_DIMS(x), window, type) || PyArray_DIM(x, 1) != c.channels * c.groups) {
        PyErr_Clear();
        return NULL;
    }
    for (int d = 0; d < 3; d++) {
        int axis = d - (5 - ndim);
        c.counts[d] = axis < 0 ? 1 : PyArray_DIM(sent, 2 + axis);
        if (c.counts[d] < 1)
            return NULL;
    }
    PyArrayObject *solid = (PyArrayObject *)PyArray_GETCONTIGUOUS(sent);
    PyArrayObject *made = solid ? native_empty(ndim, window, type) : NULL;
    if (made && is_pointwise(&c)) {
        PyArrayObject *right = (PyArrayObject *)PyArray_GETCONTIGUOUS(x);
        if (!right || !run_pointwise_weight(&c, type, PyArray_DATA(solid), PyArray_DATA(right), PyArray_DATA(made)))
            Py_CLEAR(made);
        Py_XDECREF(right);
        Py_DECREF(solid);
        return (PyObject *)made;
    }
    if (made && PyArray_IS_C_CONTIGUOUS(x) &&
        run_winograd(&c, type, WEIGHT_GRADIENT, c.counts, PyArray_DATA(x), PyArray_DATA(made), NULL, PyArray_DATA(solid))) {
        Py_DECREF(solid);
        return (PyObject *)made;
    }
    rooms all = {.count = 0};
    conv_images m;
    const conv_real_loops *real = c.real;
    ptrdiff_t offsets[TAPS], positions = c.counts[0] * c.counts[1] * c.counts[2], inner = c.channels * c.taps;
    conv_weight_job job = {.count = c.images, .channels = c.channels, .taps = c.taps, .offsets = offsets,
                           .sent_image = c.outs * c.groups * positions, .sent_out = positions, .outs = c.outs};
    const void *padded = made ? make_windows(&all, &c, x, &m, offsets, job.move, false) : NULL;
    bool done = padded != NULL, direct = c.outs < LEAST_SENT;
    ptrdiff_t tiles = (inner + real->weight_rows - 1) / real->weight_rows;
    ptrdiff_t blocks = (c.outs + real->weight_columns - 1) / real->weight_columns;
    if (done && !direct) {
        job.turned = room(&all, c.images * blocks * positions * real->weight_columns * (ptrdiff_t)c.size);
        job.sums = room(&all, tiles * blocks * real->weight_rows * real->weight_columns * (ptrdiff_t)c.size);
        done = job.turned && job.sums;
    }
    for (int d = 0; d < 3; d++)
        job.counts[d] = c.counts[d];
    job.image = m.image;
    job.channel = m.channel;
    const ptrdiff_t each = c.images * positions;
    if (done && direct) {
        job.images = padded;
        job.sent = PyArray_DATA(solid);
        job.sent_end = at(job.sent, c.images * job.sent_image, c.size);
        job.made = PyArray_DATA(made);
        weight_work work = {&job, real};
        native_parallel(c.groups * c.outs * c.channels, WORK * 8 / (each * c.taps) + 1, weight_direct_body, &work);
    }
    for (ptrdiff_t g = 0; done && !direct && g < c.groups; g++) {
        job.images = at(padded, g * c.channels * m.channel, c.size);
        job.sent = at(PyArray_DATA(solid), g * c.outs * positions, c.size);
        job.made = (void *)at(PyArray_DATA(made), g * c.outs * inner, c.size);
        weight_work work = {&job, real};
        native_parallel(c.images, WORK / (positions * c.outs) + 1, turn_body, &work);
        native_parallel(tiles, WORK / (each * blocks * real->weight_rows) + 1, weight_tiles_body, &work);
    }
    give_back(&all);
    Py_XDECREF(solid);
    if (!done)
        Py_CLEAR(made);
    return (PyObject *)made;
}

const native_spec conv_kernels[] = {
    {"conv", convolve, NULL},
    {"conv_input_gradient", input_gradient, NULL},
    {"conv_weight_gradient", weight_gradient, NULL},
    {NULL},
};

int conv_init(void) {
    static const char *const letters[OPTIONS] = {"counts", "shape", "stride", "padding", "dilation", "groups"};
    loops = PICK(conv_loops);
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(letters[i])))
            return -1;
    return 0;
}
