/* Convolutions whose windows are one element: products of matrices, one for each image and group. With steps over one, of a copy
   of the elements that are in a window. */
#include "blas.h"
#include "conv_call.h"
#include "gemm.h"
#include "native.h"

#include <string.h>

enum {
    LEAST_POSITIONS = 32, /* in an image: fewer are tiles together with those of the next one, unless they fill */
    WHOLE = 16,           /* vectors: 256 to 256, 4x4, takes 0.83 of the time then, 512 to 512, 5x5, took 1.17 */
    WORK = 1 << 16,       /* vector operations that are worth a thread */
    PARTS = 16,           /* of the images, whose sums for the gradient by weight are made apart, */
    PARTS_BYTES = 1 << 19, /* where they take no more than about this */
};

/* Whether some positions of the input are in no window, so that those that are lie apart. */
static bool skips(const convolution *c) { return conv_product(c->sizes) != conv_product(c->counts); }

bool pointwise_fits(const convolution *c) {
    for (int d = 0; d < 3; d++)
        if (c->kernel[d] != 1 || c->padding[d] != 0 || (c->counts[d] - 1) * c->stride[d] >= c->sizes[d])
            return false;
    return true;
}

bool pointwise_pays(const convolution *c) {
    const ptrdiff_t positions = conv_product(c->counts);
    return positions >= LEAST_POSITIONS || positions % WHOLE == 0;
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
        job.left = conv_at(job.left, group * work->weight, work->size);
        job.right = conv_at(job.right, image * work->right_image + group * work->right, work->size);
        job.made = (void *)conv_at(job.made, image * work->made_image + group * work->made, work->size);
        if (work->bias) {
            for (ptrdiff_t o = 0; o < job.rows; o++)
                fill_row((void *)conv_at(job.made, o * job.made_row, work->size),
                         conv_at(work->bias, group * job.rows + o, work->size), job.columns, work->size);
            job.before = job.made;
            job.before_row = job.made_row;
        }
        if (!gemm_run(work->type, &job))
            work->failed = true;
    }
}

/* made[image, group] = weight[group] times right[image, group], plus a bias for each row. `turned` takes the weight's transpose. */
static bool run(const convolution *c, bool turned, const void *right, const void *made) {
    const ptrdiff_t positions = c->sizes[0] * c->sizes[1] * c->sizes[2], inner = turned ? c->outs : c->channels;
    const ptrdiff_t rows = turned ? c->channels : c->outs;
    pointwise_work work = {
        .type = c->type, .size = c->size, .groups = c->groups, .right_image = c->groups * inner * positions,
        .made_image = c->groups * rows * positions, .weight = c->outs * c->channels, .right = inner * positions,
        .made = rows * positions, .bias = c->bias,
        .job = {.rows = rows, .columns = positions, .inner = inner, .left = c->weight, .left_row = turned ? 1 : c->channels,
                .left_inner = turned ? c->channels : 1, .right = right, .right_inner = positions, .right_column = 1,
                .made = (void *)made, .made_row = positions}};
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

/* The sums over images for the gradient by weight: in parts, each of some images one after the other, which are then added
   up. How many does not depend on the number of threads, so neither do the sums. */
typedef struct {
    const convolution *c;
    ptrdiff_t parts, each, weight, positions; /* images of a part; elements of a group's weight */
    char *sums;                               /* [group, part], the first of each group's in the result */
    _Atomic bool failed;
} weight_work;

static void *part_of(const weight_work *work, ptrdiff_t group, ptrdiff_t part) {
    return part ? work->sums + ((group * (work->parts - 1) + part - 1) * work->weight) * (ptrdiff_t)work->c->size
                : (void *)conv_at(work->c->weight, group * work->weight, work->c->size);
}

/* made[group, part] = the sum over the part's images of sent[image, group] times x[image, group] transposed. */
static void weight_body(void *context, npy_intp begin, npy_intp end) {
    weight_work *work = context;
    const convolution *c = work->c;
    const ptrdiff_t positions = work->positions;
    for (npy_intp i = begin; i < end; i++) {
        const ptrdiff_t group = i / work->parts, part = i % work->parts, first = part * work->each;
        const ptrdiff_t last = first + work->each < c->images ? first + work->each : c->images;
        for (ptrdiff_t image = first; image < last && !work->failed; image++) {
            gemm_job job = {.rows = c->outs, .columns = c->channels, .inner = positions, .left_row = positions,
                            .left_inner = 1, .right_inner = 1, .right_column = positions, .made_row = c->channels};
            job.left = conv_at(c->y, (image * c->groups + group) * c->outs * positions, c->size);
            job.right = conv_at(c->x, (image * c->groups + group) * c->channels * positions, c->size);
            job.made = part_of(work, group, part);
            job.before = image > first ? job.made : NULL;
            job.before_row = c->channels;
            if (!gemm_run(c->type, &job))
                work->failed = true;
        }
    }
}

static void add_to(void *into, const void *from, ptrdiff_t count, size_t size) {
    if (size == sizeof(float))
        for (ptrdiff_t i = 0; i < count; i++)
            ((float *)into)[i] += ((const float *)from)[i];
    else
        for (ptrdiff_t i = 0; i < count; i++)
            ((double *)into)[i] += ((const double *)from)[i];
}

static bool run_weight(const convolution *c) {
    weight_work work = {.c = c, .weight = c->outs * c->channels, .positions = conv_product(c->sizes)};
    const ptrdiff_t bytes = c->groups * work.weight * (ptrdiff_t)c->size;
    const ptrdiff_t room = PARTS_BYTES / bytes + 1, most = room < PARTS ? room : PARTS;
    work.each = (c->images + most - 1) / most;
    work.parts = (c->images + work.each - 1) / work.each;
    const ptrdiff_t count = c->groups * work.parts, product_work = work.weight * work.positions / 16 + 1;
    if (!native_blas_ready(work.weight * work.positions))
        return false;
    const size_t size = (size_t)((work.parts - 1) * bytes);
    work.sums = size ? native_scratch(size) : NULL;
    if (size && !work.sums)
        return false;
    if (count < 2 * native_threads())
        for (ptrdiff_t i = 0; i < count; i++)
            weight_body(&work, i, i + 1);
    else
        native_parallel(count, WORK / (product_work * work.each) + 1, weight_body, &work);
    for (ptrdiff_t i = 0; i < count; i++)
        if (i % work.parts)
            add_to(part_of(&work, i / work.parts, 0), part_of(&work, i / work.parts, i % work.parts), work.weight, c->size);
    if (size)
        native_scratch_free(work.sums, size);
    return !work.failed;
}

/* The positions of an input that are in a window, side by side. */

typedef struct {
    const convolution *c;
    char *dense;
} dense_work;

#define ROWS(type)                                                                                                          \
    for (ptrdiff_t z = 0; z < c->counts[0]; z++)                                                                            \
        for (ptrdiff_t y = 0; y < c->counts[1]; y++) {                                                                      \
            type *const wide = (type *)plane + (z * c->stride[0] * c->sizes[1] + y * c->stride[1]) * c->sizes[2];           \
            type *const dense = (type *)work->dense + (i * c->counts[0] + z) * c->counts[1] * c->counts[2] + y * c->counts[2]; \
            for (ptrdiff_t x = 0; x < c->counts[2]; x++)                                                                    \
                MOVE(dense[x], wide[x * c->stride[2]]);                                                                     \
        }

static void gather_body(void *context, npy_intp begin, npy_intp end) {
    const dense_work *work = context;
    const convolution *c = work->c;
    for (npy_intp i = begin; i < end; i++) {
        const void *plane = conv_at(c->x, i * conv_product(c->sizes), c->size);
#define MOVE(dense, wide) dense = wide
        if (c->size == sizeof(float))
            ROWS(float)
        else
            ROWS(double)
#undef MOVE
    }
}

static void spread_body(void *context, npy_intp begin, npy_intp end) {
    const dense_work *work = context;
    const convolution *c = work->c;
    for (npy_intp i = begin; i < end; i++) {
        void *plane = (void *)conv_at(c->x, i * conv_product(c->sizes), c->size);
        memset(plane, 0, (size_t)conv_product(c->sizes) * c->size);
#define MOVE(dense, wide) wide = dense
        if (c->size == sizeof(float))
            ROWS(float)
        else
            ROWS(double)
#undef MOVE
    }
}

static bool run_wanted(const convolution *c) {
    if (c->wanted == CONV_WEIGHT_GRADIENT)
        return run_weight(c);
    return c->wanted == CONV_SUMS ? run(c, false, c->x, c->y) : run(c, true, c->y, c->x);
}

bool pointwise_run(const convolution *c) {
    if (!skips(c))
        return run_wanted(c);
    const ptrdiff_t planes = c->images * c->groups * c->channels, positions = conv_product(c->counts);
    const size_t size = (size_t)(planes * positions) * c->size;
    dense_work work = {.c = c, .dense = native_scratch(size)};
    if (!work.dense)
        return false;
    convolution inner = *c;
    memcpy(inner.sizes, c->counts, sizeof inner.sizes);
    inner.x = work.dense;
    const ptrdiff_t grain = WORK / positions + 1;
    if (c->wanted != CONV_INPUT_GRADIENT)
        native_parallel(planes, grain, gather_body, &work);
    const bool done = run_wanted(&inner);
    if (done && c->wanted == CONV_INPUT_GRADIENT)
        native_parallel(planes, grain, spread_body, &work);
    native_scratch_free(work.dense, size);
    return done;
}
