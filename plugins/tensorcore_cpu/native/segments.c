/* Reductions of consecutive segments along a dim, each from one bound to the next; of rows of a table that are numbered, bag by bag. */
#include "bags.h"
#include "rows.h"

#include <math.h>

DECLARE_LOOPS(bag_loops, bag_loops);

enum { DIM, REDUCE, INITIAL, LENGTHS, WHOLE, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "reduce", "initial", "lengths", "whole"};

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

/* The bounds of each row, of its segments' lengths or as they are given, into `bounds`; false where one of them is before the one
   before it or outside, or where a row's last one is not its end and `whole`. */
static bool bounds_of(const int64_t *given, bool lengths, bool whole, npy_intp rows, const segments_run *run, int64_t *bounds) {
    for (npy_intp row = 0; row < rows; row++) {
        int64_t at = 0;
        for (npy_intp i = 0; i <= run->segments; i++, bounds++) {
            const int64_t one = lengths && !i ? 0 : *given++, least = lengths ? 0 : at;
            if (one < least || one > run->size - (at - least))
                return false;
            *bounds = at = one + (at - least);
        }
        if (whole && at != run->size)
            return false;
    }
    return true;
}

/* segment_reduce(x, given, dim, reduce, initial, lengths, whole) */
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
    PyArrayObject *x = (PyArrayObject *)args[0], *given = (PyArrayObject *)args[1], *made = NULL;
    const int dim = (int)PyLong_AsLong(options[DIM]), ndim = PyArray_NDIM(x);
    const bool lengths = options[LENGTHS] == Py_True, whole = options[WHOLE] == Py_True;
    run.started = !native_is_none(options[INITIAL]);
    if (run.kind == KINDS || dim < 0 || dim >= ndim || PyArray_NDIM(given) != dim + 1 || !(lengths || PyArray_DIM(given, dim)) ||
        !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(given), dim) ||
        (run.started && !native_double(options[INITIAL], &run.start)))
        return NULL;
    if (!run.started)
        run.start = STARTS[run.kind];
    npy_intp before = 1, shape[NATIVE_DIMS];
    run.after = 1;
    run.segments = PyArray_DIM(given, dim) - !lengths;
    for (int i = 0; i < ndim; i++) {
        shape[i] = i == dim ? run.segments : PyArray_DIM(x, i);
        *(i < dim ? &before : &run.after) *= i == dim ? 1 : shape[i];
    }
    run.size = PyArray_DIM(x, dim);
    const size_t size = (size_t)(before * (run.segments + 1)) * sizeof *run.bounds;
    int64_t *bounds = native_scratch(size ? size : 1);
    x = bounds ? native_dense(args[0]) : (PyArrayObject *)PyErr_NoMemory();
    given = x ? native_dense(args[1]) : NULL;
    if (given && bounds_of(PyArray_DATA(given), lengths, whole, before, &run, bounds) &&
        (made = native_empty(ndim, shape, type))) {
        run.x = PyArray_DATA(x);
        run.bounds = bounds;
        run.out = PyArray_DATA(made);
        const npy_intp count = before * run.segments, work = count ? run.size * before * run.after / count : 0;
        native_evenly(count, native_grain(GRAIN, work + 1), type == TYPE_F32 ? segments_f32 : segments_f64, &run);
    }
    if (bounds)
        native_scratch_free(bounds, size ? size : 1);
    Py_XDECREF(x);
    Py_XDECREF(given);
    return (PyObject *)made;
}

/* Bags: rows of a table, added up, averaged, or the largest taken. */

enum { MODE, LAST, PADDING, BAG_OPTIONS };
static PyObject *bag_names[BAG_OPTIONS];

static void run_bags(void *context, npy_intp begin, npy_intp end) {
    const bag_run *run = context;
    PICK(bag_loops)->of[run->type](run, begin, end);
}

static bool in_order(const bag_run *run) {
    int64_t before = 0;
    for (npy_intp i = 0; i < run->bags + run->last; before = run->offsets[i++])
        if (run->offsets[i] < before || run->offsets[i] > run->count)
            return false;
    return !run->bags || !run->offsets[0];
}

/* Leaves out the indices that are `padding`, and what their rows are times; answers with the memory of what is left, which is `bytes`
   long and to be freed, or NULL with an exception. */
static void *leave_out(bag_run *run, int64_t padding, size_t *bytes) {
    const npy_intp bounds = run->bags + run->last;
    const size_t size = (size_t)TYPE_SIZE[run->type];
    *bytes = sizeof(int64_t) * (size_t)(run->count + bounds) + size * (size_t)run->count;
    int64_t *const index = native_scratch(*bytes), *const offsets = index + run->count;
    if (!index)
        return PyErr_NoMemory();
    char *const scales = (char *)(offsets + bounds);
    npy_intp kept = 0, bag = 0;
    for (npy_intp i = 0; i <= run->count; i++) {
        for (; bag < bounds && run->offsets[bag] == i; bag++)
            offsets[bag] = kept;
        if (i == run->count || run->index[i] == padding)
            continue;
        if (run->scales)
            memcpy(scales + (size_t)kept * size, (const char *)run->scales + (size_t)i * size, size);
        index[kept++] = run->index[i];
    }
    run->index = index;
    run->offsets = offsets;
    run->scales = run->scales ? scales : NULL;
    run->count = kept;
    return index;
}

/* bag(table, index, offsets[, scales], mode, last, padding) */
static PyObject *run_bag(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[BAG_OPTIONS];
    const native_type type = nargs == 3 || nargs == 4 ? native_real_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, bag_names, BAG_OPTIONS, options) || !options[MODE] ||
        !PyUnicode_Check(options[MODE]) || (nargs == 4 && native_array_type(args[3]) != type))
        return NULL;
    PyArrayObject *table = (PyArrayObject *)args[0];
    for (int k = 1; k < nargs; k++)
        if ((k < 3 && native_array_type(args[k]) != TYPE_I64) || PyArray_NDIM((PyArrayObject *)args[k]) != 1 ||
            !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[k]))
            return NULL;
    bag_run run = {.table = PyArray_DATA(table), .scales = nargs == 4 ? PyArray_DATA((PyArrayObject *)args[3]) : NULL,
                   .index = PyArray_DATA((PyArrayObject *)args[1]), .offsets = PyArray_DATA((PyArrayObject *)args[2]),
                   .count = PyArray_DIM((PyArrayObject *)args[1], 0), .last = options[LAST] == Py_True, .mode = BAG_SUM, .type = type};
    run.bags = PyArray_DIM((PyArrayObject *)args[2], 0) - run.last;
    if (!PyUnicode_CompareWithASCIIString(options[MODE], "mean"))
        run.mode = BAG_MEAN;
    else if (!PyUnicode_CompareWithASCIIString(options[MODE], "max"))
        run.mode = BAG_LARGEST;
    if (PyArray_NDIM(table) != 2 || !PyArray_IS_C_CONTIGUOUS(table) || run.bags < 1 || !in_order(&run) ||
        (nargs == 4 && PyArray_DIM((PyArrayObject *)args[3], 0) != run.count) ||
        !native_inside(run.index, run.count, PyArray_DIM(table, 0)))
        return NULL;
    size_t bytes = 0;
    void *left = NULL;
    if (!native_is_none(options[PADDING])) {
        const long long padding = PyLong_Check(options[PADDING]) ? PyLong_AsLongLong(options[PADDING]) : -1;
        if (padding < 0) {
            PyErr_Clear();
            return NULL;
        }
        if (!(left = leave_out(&run, padding, &bytes)))
            return NULL;
    }
    run.width = PyArray_DIM(table, 1);
    PyArrayObject *made = native_empty(2, (npy_intp[]){run.bags, run.width}, type);
    if (made) {
        run.made = PyArray_DATA(made);
        native_evenly(run.bags, native_grain(GRAIN, run.width * (1 + run.count / run.bags)), run_bags, &run);
    }
    if (left)
        native_scratch_free(left, bytes);
    return (PyObject *)made;
}

int segments_init(void) {
    bag_names[MODE] = PyUnicode_InternFromString("mode");
    bag_names[LAST] = PyUnicode_InternFromString("last");
    bag_names[PADDING] = PyUnicode_InternFromString("padding");
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec segments_kernels[] = {
    {"segment_reduce", run_segments, NULL},
    {"bag", run_bag, NULL, .dense = true},
    {NULL, NULL, NULL},
};
