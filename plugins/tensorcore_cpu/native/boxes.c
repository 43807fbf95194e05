/* The largest elements of windows that are not evenly apart, and where they are: those that cover a plane, and those at drawn places. */
#include "halves.h"
#include "pool.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(pool_loops, pool_loops);

enum { COUNTS, KERNEL, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 13 }; /* elements a thread */

typedef struct {
    native_type type, half; /* which one numbers drawn are of where they are here as floats, TYPE_NONE where none */
    npy_intp size[3], count[3], kernel[3]; /* (depth, height, width), 1 for what a plane lacks */
    npy_intp plane, results;
    const char *x, *drawn; /* `dims` numbers for each plane; NULL where windows cover the plane */
    int dims;
    char *values;
    int64_t *out;
    _Atomic bool short_of_memory;
} box_run;

/* Where window i of those that cover a dim begins and ends. */
static inline npy_intp even_start(npy_intp i, npy_intp size, npy_intp count) { return i * size / count; }
static inline npy_intp even_stop(npy_intp i, npy_intp size, npy_intp count) { return ((i + 1) * size + count - 1) / count; }

/* Rounded as PyTorch rounds, in the type of the numbers drawn. */
#define DRAWN_START(name, type)                                                                               \
    static npy_intp name(npy_intp i, npy_intp size, npy_intp count, npy_intp kernel, type drawn) {            \
        if (i == count - 1)                                                                                   \
            return size - kernel;                                                                             \
        const type alpha = (type)(size - kernel) / (type)(count - 1);                                         \
        return (npy_intp)(((type)i + drawn) * alpha) - (npy_intp)(drawn * alpha);                             \
    }
DRAWN_START(start_f32, float)
DRAWN_START(start_f64, double)

/* The same with each step rounded to a half type. */
static npy_intp start_half(npy_intp i, npy_intp size, npy_intp count, npy_intp kernel, double drawn, native_type half) {
#define STEP(x) native_rounded(x, half)
    if (i == count - 1)
        return size - kernel;
    const double alpha = STEP(STEP((double)(size - kernel)) / STEP((double)(count - 1)));
    return (npy_intp)STEP(STEP(STEP((double)i) + drawn) * alpha) - (npy_intp)STEP(drawn * alpha);
#undef STEP
}

/* Where windows begin and end along a dim of plane number `plane`. */
static void lay_out(const box_run *run, npy_intp plane, int dim, npy_intp *starts, npy_intp *stops) {
    const npy_intp size = run->size[dim], count = run->count[dim], kernel = run->kernel[dim];
    const int mine = dim - (3 - run->dims); /* which of the plane's own dims */
    for (npy_intp i = 0; i < count; i++) {
        if (!run->drawn || mine < 0) {
            starts[i] = even_start(i, size, count);
            stops[i] = even_stop(i, size, count);
            continue;
        }
        /* Of two numbers the first places the columns; of three the first places the depth. */
        const npy_intp at = plane * run->dims + (run->dims == 2 ? 1 - mine : mine);
        npy_intp start = run->half != TYPE_NONE ? start_half(i, size, count, kernel, ((const float *)run->drawn)[at], run->half)
                         : run->type == TYPE_F32 ? start_f32(i, size, count, kernel, ((const float *)run->drawn)[at])
                                                 : start_f64(i, size, count, kernel, ((const double *)run->drawn)[at]);
        /* Whatever was drawn, windows stay inside. */
        starts[i] = start < 0 ? 0 : start > size - kernel ? size - kernel : start;
        stops[i] = starts[i] + kernel;
    }
}

/* Whether rows of a window are long enough for vectors, which find the largest first and then where it is. */
static bool fills_vectors(npy_intp length) { return length >= POOL_LANES && length <= INT32_MAX; }

/* The first of the largest elements, the last NaN where there is one, of each window of a plane. Rows of whole lines are one. */
#define SEARCH(name, type)                                                                                    \
    static void name(const box_run *run, const type *x, npy_intp *const *starts, npy_intp *const *stops, type *values, int64_t *out) { \
        ptrdiff_t (*const largest)(const void *, ptrdiff_t) = PICK(pool_loops)->of[sizeof(type) == 8].largest;     \
        for (npy_intp d = 0; d < run->count[0]; d++)                                                          \
            for (npy_intp h = 0; h < run->count[1]; h++)                                                      \
                for (npy_intp w = 0; w < run->count[2]; w++) {                                                \
                    npy_intp found = (starts[0][d] * run->size[1] + starts[1][h]) * run->size[2] + starts[2][w]; \
                    type most = -INFINITY;                                                                    \
                    const npy_intp width = stops[2][w] - starts[2][w], lines = stops[1][h] - starts[1][h];    \
                    const npy_intp step = width == run->size[2] ? lines : 1;                                  \
                    for (npy_intp i = starts[0][d]; i < stops[0][d]; i++)                                     \
                        for (npy_intp j = starts[1][h]; j < stops[1][h]; j += step) {                         \
                            const npy_intp row = (i * run->size[1] + j) * run->size[2];                       \
                            const npy_intp begin = starts[2][w], end = begin + step * width;                  \
                            const bool whole = fills_vectors(end - begin);                                    \
                            for (npy_intp k = whole ? begin + largest(x + row + begin, end - begin) : begin,  \
                                          last = whole ? k + 1 : end; k < last; k++)                          \
                                if (x[row + k] > most || x[row + k] != x[row + k]) {                          \
                                    most = x[row + k];                                                        \
                                    found = row + k;                                                          \
                                }                                                                             \
                        }                                                                                     \
                    *values++ = x[found];                                                                     \
                    *out++ = found;                                                                           \
                }                                                                                             \
    }
SEARCH(search_f32, float)
SEARCH(search_f64, double)

static void run_planes(void *context, npy_intp begin, npy_intp end) {
    box_run *run = context;
    const npy_intp wanted = 2 * (run->count[0] + run->count[1] + run->count[2]);
    npy_intp space[256], *places = wanted <= 256 ? space : malloc((size_t)wanted * sizeof *places), *next = places;
    npy_intp *starts[3], *stops[3];
    if (!places) {
        run->short_of_memory = true;
        return;
    }
    for (int i = 0; i < 3; i++) {
        starts[i] = next;
        stops[i] = next + run->count[i];
        next += 2 * run->count[i];
    }
    for (npy_intp plane = begin; plane < end; plane++) {
        for (int i = 0; i < 3 && (run->drawn || plane == begin); i++)
            lay_out(run, plane, i, starts[i], stops[i]);
        if (run->type == TYPE_F32)
            search_f32(run, (const float *)run->x + plane * run->plane, starts, stops, (float *)run->values + plane * run->results,
                       run->out + plane * run->results);
        else
            search_f64(run, (const double *)run->x + plane * run->plane, starts, stops, (double *)run->values + plane * run->results,
                       run->out + plane * run->results);
    }
    if (places != space)
        free(places);
}

/* (x, drawn) or (x): values, and their flat indices within each plane. */
static PyObject *run_boxes(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool drawn = kernel->data != NULL;
    PyObject *options[OPTIONS];
    box_run run = {.size = {1, 1, 1}, .count = {1, 1, 1}, .kernel = {1, 1, 1}, .plane = 1, .results = 1};
    run.half = drawn ? *(const native_type *)kernel->data : TYPE_NONE;
    if (nargs != 1 + drawn || !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    if (drawn && native_is_half(native_array_type(args[0]))) {
        native_kernel stepping = *kernel;
        const native_type half = native_array_type(args[0]);
        stepping.data = &half;
        return native_widened(&stepping, args, nargs, kwnames);
    }
    if ((run.type = native_real_type(args[0])) == TYPE_NONE)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int ndim = PyArray_NDIM(x), dims = run.dims = ndim - 2;
    npy_intp counts[3], kernels[3] = {1, 1, 1}, shape[NATIVE_DIMS];
    if (dims < 1 || dims > 3 || !PyArray_SIZE(x) || native_sizes(options[COUNTS], counts, 3) != dims ||
        (drawn && native_sizes(options[KERNEL], kernels, 3) != dims))
        return NULL;
    memcpy(shape, PyArray_DIMS(x), 2 * sizeof *shape);
    for (int i = 0; i < dims; i++) {
        const npy_intp size = PyArray_DIM(x, i + 2);
        if (counts[i] < 1 || kernels[i] < 1 || kernels[i] > size)
            return NULL;
        run.plane *= run.size[3 - dims + i] = size;
        run.results *= shape[i + 2] = run.count[3 - dims + i] = counts[i];
        run.kernel[3 - dims + i] = kernels[i];
    }
    const npy_intp planes = shape[0] * shape[1];
    if (drawn && (dims == 1 || native_real_type(args[1]) != run.type || PyArray_SIZE((PyArrayObject *)args[1]) != planes * dims))
        return NULL;
    PyArrayObject *dense = native_dense(args[0]), *numbers = dense && drawn ? native_dense(args[1]) : NULL;
    PyArrayObject *values = dense && (numbers || !drawn) ? native_empty(ndim, shape, run.type) : NULL;
    PyArrayObject *made = values ? native_empty(ndim, shape, TYPE_I64) : NULL;
    if (made) {
        run.values = PyArray_BYTES(values);
        run.x = PyArray_BYTES(dense);
        run.drawn = drawn ? PyArray_BYTES(numbers) : NULL;
        run.out = PyArray_DATA(made);
        native_evenly(planes, native_grain(GRAIN, run.plane + run.results), run_planes, &run);
        if (run.short_of_memory) {
            PyErr_NoMemory();
            Py_CLEAR(made);
        }
    }
    Py_XDECREF(dense);
    Py_XDECREF(numbers);
    if (made)
        return Py_BuildValue("(NN)", values, made);
    Py_XDECREF(values);
    return NULL;
}

int boxes_init(void) {
    static const char *const words[OPTIONS] = {"counts", "kernel"};
    return native_intern(names, words, OPTIONS);
}

const native_spec boxes_kernels[] = {
    {"adaptive_max", run_boxes, NULL},
    {"fractional_max", run_boxes, &(const native_type){TYPE_NONE}},
    {NULL, NULL, NULL},
};
