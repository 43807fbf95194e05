/* Running sums, sums from the end, running products, running extremes: strips of columns along a dim, many short lines a call. */
#include "scans.h"

#include "folds.h"
#include "reduce.h"
#include "rows.h"

DECLARE_LOOPS(scan_loops, scan_loops);
DECLARE_LOOPS(reduce_loops, reduce_loops);

enum { DIM, DTYPE, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 15, /* elements that are worth a second thread */
    SHORT_LINE = 64,             /* elements of a line that is not worth a call */
};

typedef struct {
    scan_loop loop;
    scan_places_loop with_places; /* NULL where there are none */
    const char *x;
    char *made;
    int64_t *places;
    npy_intp count, inner, strips, size; /* of the dim, elements behind it, strips of them, bytes of one */
    bool back;                           /* from the end */
} scan_run;

static void run_strips(void *context, npy_intp begin, npy_intp end) {
    const scan_run *run = context;
    for (npy_intp i = begin, lines; i < end; i += lines) {
        const npy_intp column = i % run->strips * SCAN_STRIP, rest = run->inner - column;
        const npy_intp first = i / run->strips * run->count * run->inner + column, offset = first * run->size;
        lines = run->strips == 1 ? end - begin : 1;
        const scan_shape shape = {lines, run->count, run->inner, rest < SCAN_STRIP ? rest : SCAN_STRIP, run->back};
        if (run->with_places)
            run->with_places(run->x + offset, run->made + offset, run->places + first, &shape);
        else
            run->loop(run->x + offset, run->made + offset, &shape);
    }
}

/* With `run`'s loop along a dim, into a new array. */
static PyObject *scanned(scan_run *run, PyObject *object, PyObject *dim, native_type type, bool pairs) {
    PyArrayObject *x = (PyArrayObject *)object;
    if (!(run->loop || run->with_places) || !dim || !PyLong_CheckExact(dim) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_SIZE(x))
        return NULL;
    const long at = PyLong_AsLong(dim);
    if (!native_has_dim(x, at)) {
        PyErr_Clear();
        return NULL;
    }
    PyArrayObject *made = pairs ? native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type)
                                : native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    PyArrayObject *places = made && run->with_places ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_I64) : NULL;
    if (!made || (run->with_places && !places)) {
        Py_XDECREF(made);
        return NULL;
    }
    npy_intp outer;
    run->x = PyArray_BYTES(x);
    run->made = PyArray_BYTES(made);
    run->places = places ? PyArray_DATA(places) : NULL;
    run->count = native_length(x, (int)at);
    run->size = TYPE_SIZE[type];
    native_around(x, (int)at, &outer, &run->inner);
    run->inner *= pairs ? 2 : 1;
    run->strips = (run->inner + SCAN_STRIP - 1) / SCAN_STRIP;
    native_evenly(outer * run->strips, native_grain(GRAIN, run->count * (run->inner < SCAN_STRIP ? run->inner : SCAN_STRIP)),
                  run_strips, run);
    return places ? Py_BuildValue("(NN)", made, places) : (PyObject *)made;
}

static bool read_dim(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **dim) {
    PyObject *options[OPTIONS];
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_is_none(options[DTYPE]))
        return false;
    *dim = options[DIM];
    return true;
}

typedef struct {
    const native_fold *of;
    const reduce_functions *run;
    char *made;
} long_run;

static void run_long_lines(void *context, npy_intp begin, npy_intp end) {
    const long_run *job = context;
    const native_fold *of = job->of;
    const npy_intp strips = (of->inner + STRIP - 1) / STRIP;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp column = i % strips * STRIP, width = of->inner - column < STRIP ? of->inner - column : STRIP;
        const npy_intp offset = (i / strips * of->count * of->inner + column) * TYPE_SIZE[of->type];
        double carry = 0;
        if (of->inner == 1)
            job->run->scan(PyArray_BYTES(of->array) + offset, job->made + offset, of->count, &carry);
        else
            job->run->scan_strip(PyArray_BYTES(of->array) + offset, job->made + offset, of->count, of->inner, width);
    }
}

/* cumsum of long lines of floats, whose sums are double. */
static PyObject *run_long_sums(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    native_fold of;
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !native_is_none(options[DTYPE]) ||
        !options[DIM] || !PyLong_CheckExact(options[DIM]) || !native_folded(&of, args[0], native_real_type(args[0]), options[DIM], NULL))
        return NULL;
    if (of.inner <= 4 ? of.inner > 1 || of.count <= SHORT_LINE : of.inner * of.count <= SHORT_LINE * SHORT_LINE && of.outer > 1)
        return NULL;
    PyArrayObject *made = native_empty(PyArray_NDIM(of.array), PyArray_DIMS(of.array), of.type);
    const npy_intp grain = GRAIN / (of.count * (of.inner < STRIP ? of.inner : STRIP));
    if (made)
        native_parallel(of.outer * ((of.inner + STRIP - 1) / STRIP), grain > 0 ? grain : 1, run_long_lines,
                        &(long_run){&of, &PICK(reduce_loops)->of[of.type], PyArray_BYTES(made)});
    return (PyObject *)made;
}

/* cumsum of other lines, and with data cumsum_back. */
static PyObject *run_sums(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dim;
    if (!read_dim(args, nargs, kwnames, &dim))
        return NULL;
    const native_type parts = native_complex_type(args[0]), type = parts == TYPE_NONE ? native_array_type(args[0]) : parts;
    const scan_loops *loops = PICK(scan_loops);
    if (type == TYPE_NONE)
        return NULL;
    scan_run run = {.loop = parts != TYPE_NONE ? loops->pair_sum[parts] : loops->sum[type], .back = kernel->data != NULL};
    return scanned(&run, args[0], dim, type, parts != TYPE_NONE);
}

static PyObject *run_products(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dim;
    const native_type type = read_dim(args, nargs, kwnames, &dim) ? native_array_type(args[0]) : TYPE_NONE;
    return type == TYPE_NONE ? NULL : scanned(&(scan_run){.loop = PICK(scan_loops)->product[type]}, args[0], dim, type, false);
}

/* cummax, and with data cummin. */
static PyObject *run_extremes(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dim;
    const native_type type = read_dim(args, nargs, kwnames, &dim) ? native_array_type(args[0]) : TYPE_NONE;
    const scan_loops *loops = PICK(scan_loops);
    if (type == TYPE_NONE)
        return NULL;
    return scanned(&(scan_run){.with_places = (kernel->data ? loops->smallest : loops->largest)[type]}, args[0], dim, type, false);
}

int scans_init(void) {
    static const char *const words[OPTIONS] = {"dim", "dtype"};
    return native_intern(names, words, OPTIONS);
}

const native_spec scans_kernels[] = {
    {"cumprod", run_products, .dense = true},
    {"cumsum", run_long_sums, .dense = true},
    {"cumsum_beneath", run_sums, .dense = true},
    {"cumsum_back", run_sums, "b", .dense = true},
    {"cummax", run_extremes, .dense = true},
    {"cummin", run_extremes, "n", .dense = true},
    {NULL, NULL, NULL},
};
