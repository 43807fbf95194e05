/* Reductions of consecutive segments along a dim, each from one bound to the next. */
#include "rows.h"

#include <math.h>

enum { DIM, REDUCE, INITIAL, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "reduce", "initial"};

typedef enum { SUM, MEAN, PROD, LARGEST, SMALLEST, KINDS } reducing;
static const char *const WORDS[KINDS] = {"sum", "mean", "prod", "amax", "amin"};
static const double STARTS[KINDS] = {0, 0, 1, -INFINITY, INFINITY};

enum { GRAIN = 1 << 14 }; /* elements a thread */

typedef struct {
    const void *x;
    void *out;
    const int64_t *bounds;                /* segments + 1 for each of what lies before the dim */
    npy_intp segments, size, after, each; /* elements along the dim, behind it, and of one of what lies before it */
    reducing kind;
    bool started; /* whether empty segments have a mean */
    double start;
} segments_run;

/* One number a segment is summed in double precision, rows are added to a row. */
#define REDUCE_SEGMENTS(name, type)                                                                           \
    static inline type name##_joined(reducing kind, type made, type x) {                                      \
        return kind <= MEAN      ? made + x                                                                   \
               : kind == PROD    ? made * x                                                                   \
               : kind == LARGEST ? (x > made || x != x ? x : made)                                            \
                                 : (x < made || x != x ? x : made);                                           \
    }                                                                                                         \
    static void name(void *context, npy_intp begin, npy_intp end) {                                           \
        const segments_run *run = context;                                                                    \
        for (npy_intp at = begin; at < end; at++) {                                                           \
            const npy_intp before = at / run->segments, segment = at % run->segments;                         \
            const int64_t *bound = run->bounds + before * (run->segments + 1) + segment;                      \
            const type *x = (const type *)run->x + (before * run->size + bound[0]) * run->after;              \
            const npy_intp count = (npy_intp)(bound[1] - bound[0]);                                           \
            type *out = (type *)run->out + at * run->after;                                                   \
            const type over = run->kind != MEAN ? 1 : (type)count;                                            \
            if (run->kind == MEAN && !count) {                                                                \
                for (npy_intp k = 0; k < run->after; k++)                                                     \
                    out[k] = run->started ? (type)run->start : (type)NAN;                                     \
            } else if (run->after == 1 && run->kind <= MEAN) {                                                \
                double sum = run->start;                                                                      \
                for (npy_intp i = 0; i < count; i++)                                                          \
                    sum += x[i];                                                                              \
                *out = (type)(sum / (double)over);                                                            \
            } else {                                                                                          \
                for (npy_intp k = 0; k < run->after; k++)                                                     \
                    out[k] = (type)run->start;                                                                \
                for (npy_intp i = 0; i < count; i++, x += run->after)                                         \
                    for (npy_intp k = 0; k < run->after; k++)                                                 \
                        out[k] = name##_joined(run->kind, out[k], x[k]);                                      \
                for (npy_intp k = 0; run->kind == MEAN && k < run->after; k++)                                \
                    out[k] /= over;                                                                           \
            }                                                                                                 \
        }                                                                                                     \
    }
REDUCE_SEGMENTS(segments_f32, float)
REDUCE_SEGMENTS(segments_f64, double)

static bool in_order(const segments_run *run, npy_intp rows) {
    for (npy_intp i = 0; i < rows * (run->segments + 1); i++) {
        const bool first = i % (run->segments + 1) == 0;
        if (run->bounds[i] < (first ? 0 : run->bounds[i - 1]) || run->bounds[i] > run->size)
            return false;
    }
    return true;
}

/* segment_reduce(x, bounds, dim, reduce, initial), of bounds that never fall and are all within the dim. */
static PyObject *run_segments(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 2 ? native_real_type(args[0]) : TYPE_NONE;
    segments_run run = {.kind = KINDS};
    if (type == TYPE_NONE || native_array_type(args[1]) != TYPE_I64 || !kwnames ||
        !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIM] || !PyLong_CheckExact(options[DIM]) ||
        !options[REDUCE] || !PyUnicode_Check(options[REDUCE]))
        return NULL;
    for (int i = 0; i < KINDS; i++)
        if (!PyUnicode_CompareWithASCIIString(options[REDUCE], WORDS[i]))
            run.kind = (reducing)i;
    PyArrayObject *x = (PyArrayObject *)args[0], *bounds = (PyArrayObject *)args[1], *made = NULL;
    const int dim = (int)PyLong_AsLong(options[DIM]), ndim = PyArray_NDIM(x);
    run.started = !native_is_none(options[INITIAL]);
    if (run.kind == KINDS || dim < 0 || dim >= ndim || PyArray_NDIM(bounds) != dim + 1 || !PyArray_DIM(bounds, dim) ||
        !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(bounds), dim) ||
        (run.started && !native_double(options[INITIAL], &run.start)))
        return NULL;
    if (!run.started)
        run.start = STARTS[run.kind];
    npy_intp before = 1, shape[NATIVE_DIMS];
    run.after = 1;
    for (int i = 0; i < ndim; i++) {
        shape[i] = i == dim ? PyArray_DIM(bounds, dim) - 1 : PyArray_DIM(x, i);
        *(i < dim ? &before : &run.after) *= i == dim ? 1 : shape[i];
    }
    run.size = PyArray_DIM(x, dim);
    run.segments = shape[dim];
    x = native_dense(args[0]);
    bounds = x ? native_dense(args[1]) : NULL;
    if (bounds) {
        run.x = PyArray_DATA(x);
        run.bounds = PyArray_DATA(bounds);
        if (in_order(&run, before) && (made = native_empty(ndim, shape, type))) {
            run.out = PyArray_DATA(made);
            const npy_intp count = before * run.segments, work = count ? run.size * before * run.after / count : 0;
            native_parallel(count, native_grain(GRAIN, work + 1), type == TYPE_F32 ? segments_f32 : segments_f64, &run);
        }
    }
    Py_XDECREF(x);
    Py_XDECREF(bounds);
    return (PyObject *)made;
}

int segments_init(void) {
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    return 0;
}

const native_spec segments_kernels[] = {{"segment_reduce", run_segments, NULL}, {NULL, NULL, NULL}};
