/* softmax and log_softmax along one dim, and their gradients; logarithms of sums of powers. */
#include "softmax.h"

#include "folds.h"
#include "halves.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(softmax_loops, softmax_loops);

static const softmax_loops *loops;
enum { DIM, KEEPDIM, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 14, /* elements a thread */
    ROOM = 1 << 12,  /* of half types that are floats at a time */
};

typedef struct {
    int op;
    int inputs;
} softmax_op;

typedef struct {
    softmax_rows rows;
    softmax_columns columns;
    native_lines x, y;
    char *out;
    npy_intp n, inner, tiles, size;
    bool one; /* columns of a gradient: x is one number, of which there is a line */
    native_type type;
    int inputs;
    _Atomic bool out_of_memory;
} softmax_run;

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    const softmax_run *run = context;
    const char *x = run->x.data, *y = run->y.data;
    const softmax_lines lines = {x + begin * run->x.step * run->size, y + begin * run->y.step * run->size, run->x.step,
                                 run->y.step, run->out + begin * run->n * run->inner * run->size, end - begin, run->n, run->inner};
    run->rows(&lines);
}

/* Rows of a half type as floats. */
static void widen_rows(native_type half, const native_lines *lines, npy_intp first, npy_intp rows, npy_intp row, float *to) {
    for (npy_intp r = 0, some; r < rows; r += some) {
        some = lines->step == row ? rows : 1;
        native_widen(half, lines->data + (first + r) * lines->step * TYPE_SIZE[half], to + r * row, some * row);
    }
}

/* A few rows at a time, which stay in the first cache as floats. */
static void run_half_rows(void *context, npy_intp begin, npy_intp end) {
    softmax_run *run = context;
    const npy_intp row = run->n * run->inner, most = row < ROOM ? ROOM / row : 1, room = (most * row + 15) / 16 * 16;
    float *const x = aligned_alloc(64, (size_t)room * 3 * sizeof *x);
    if (!x) {
        run->out_of_memory = true;
        return;
    }
    float *const y = x + room, *const made = y + room;
    for (npy_intp rows; begin < end; begin += rows) {
        rows = end - begin < most ? end - begin : most;
        widen_rows(run->type, &run->x, begin, rows, row, x);
        if (run->inputs == 2)
            widen_rows(run->type, &run->y, begin, rows, row, y);
        run->rows(&(softmax_lines){(char *)x, (char *)(run->inputs == 2 ? y : x), row, row, (char *)made, rows, run->n, run->inner});
        native_narrow(run->type, made, run->out + begin * row * run->size, rows * row);
    }
    free(x);
}

static void run_columns(void *context, npy_intp begin, npy_intp end) {
    const softmax_run *run = context;
    const char *x = run->x.data, *y = run->y.data;
    for (; begin < end; begin++) {
        npy_intp column = begin % run->tiles * COLUMNS, rest = run->inner - column;
        npy_intp start = (begin / run->tiles * run->n * run->inner + column) * run->size;
        run->columns(run->one ? x : x + start, run->one ? 0 : run->inner, y + start, run->out + start, run->n, run->inner,
                     rest < COLUMNS ? rest : COLUMNS);
    }
}

static PyObject *run_softmax(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const softmax_op *op = kernel->data;
    PyObject *option;
    if (nargs != op->inputs || !kwnames || !native_options(args, nargs, kwnames, &names[DIM], 1, &option) || !option)
        return NULL;
    const native_type found = native_array_type(args[0]), type = native_is_half(found) ? found : native_real_type(args[0]);
    PyArrayObject *first = (PyArrayObject *)args[0], *second = (PyArrayObject *)args[nargs - 1];
    int ndim = type == TYPE_NONE ? 0 : PyArray_NDIM(first);
    long dim = PyLong_Check(option) ? PyLong_AsLong(option) : -1;
    if (type == TYPE_NONE || !native_has_dim(first, dim) || !PyArray_SIZE(first)) {
        PyErr_Clear();
        return NULL;
    }
    if (native_array_type(args[nargs - 1]) != type || PyArray_NDIM(second) != ndim ||
        !PyArray_CompareLists(PyArray_DIMS(first), PyArray_DIMS(second), ndim))
        return NULL;
    const softmax_of_real *of = &loops->of[type == TYPE_F64];
    softmax_run run = {.rows = of->rows[op->op], .columns = of->columns[op->op], .n = native_length(first, (int)dim),
                       .size = TYPE_SIZE[type], .type = type, .inputs = op->inputs};
    npy_intp before;
    native_around(first, (int)dim, &before, &run.inner);
    PyArrayObject *made = NULL;
    run.one = op->inputs == 2 && run.inner > 1 && !PyArray_IS_C_CONTIGUOUS(first) && native_uniform(first);
    const npy_intp row = run.n * run.inner; /* few columns go as rows, many of them at a time; others are what one copy of all holds */
    const bool rows = run.inner == 1 || (before > 1 && softmax_goes_by_rows(run.n, run.inner));
    run.one &= !rows;
    if (native_is_half(type) && !rows)
        return NULL;
    if (native_lines_of(first, run.one ? COLUMNS : rows ? row : PyArray_SIZE(first), &run.x) &&
        native_lines_of(second, rows ? row : PyArray_SIZE(first), &run.y))
        made = native_empty(ndim, PyArray_DIMS(first), type);
    if (made) {
        run.out = PyArray_BYTES(made);
        if (rows) {
            native_evenly(before, native_grain(GRAIN, row), native_is_half(type) ? run_half_rows : run_rows, &run);
        } else {
            run.tiles = (run.inner + COLUMNS - 1) / COLUMNS;
            npy_intp tile = run.inner < COLUMNS ? run.inner : COLUMNS;
            native_evenly(before * run.tiles, native_grain(GRAIN, run.n * tile), run_columns, &run);
        }
    }
    Py_XDECREF(run.x.owner);
    Py_XDECREF(run.y.owner);
    if (run.out_of_memory)
        Py_CLEAR(made);
    return (PyObject *)made;
}

typedef struct {
    const softmax_of_real *of;
    class_scores scores; /* whose `top` becomes the result */
    native_type type;
    npy_intp tiles;
    bool by_rows;
} sums_run;

/* An infinite largest element is the result, but where a NaN stands in its line. */
#define ADD_LOGARITHMS(type)                                                                                  \
    for (npy_intp k = first; k < first + count; k++) {                                                        \
        type *made = (type *)scores->top + k;                                                                 \
        if (!isinf(*made)) {                                                                                  \
            *made += ((const type *)scores->less)[k];                                                         \
            continue;                                                                                         \
        }                                                                                                     \
        const type *x = (const type *)scores->x + k / inner * n * inner + k % inner;                          \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            *made = x[i * inner] != x[i * inner] ? x[i * inner] : *made;                                      \
    }

static void run_sums(void *context, npy_intp begin, npy_intp end) {
    const sums_run *run = context;
    const class_scores *scores = &run->scores;
    const npy_intp n = scores->n, inner = scores->inner;
    for (npy_intp tile = begin; tile < end; tile++) {
        const npy_intp column = tile % run->tiles * COLUMNS, rest = inner - column;
        const npy_intp first = run->by_rows ? begin * inner : tile / run->tiles * inner + column;
        const npy_intp count = run->by_rows ? (end - begin) * inner : rest < COLUMNS ? rest : COLUMNS;
        run->of->statistics(scores, first, count);
        if (run->type == TYPE_F32)
            ADD_LOGARITHMS(float)
        else
            ADD_LOGARITHMS(double)
        if (run->by_rows) /* all rows in one call */
            break;
    }
}

/* Whether there are dims and they lie beside one another: the first of them and how many. */
static bool neighbours(PyObject *dim, int ndim, npy_intp *first, int *count) {
    npy_intp dims[NATIVE_DIMS];
    *count = native_is_none(dim) ? ndim : native_sizes(dim, dims, NATIVE_DIMS);
    *first = native_is_none(dim) || *count < 1 ? 0 : dims[0];
    for (int k = 0; !native_is_none(dim) && k < *count; k++)
        if (dims[k] != *first + k)
            return false;
    return *count >= 1 && *first >= 0 && *first + *count <= ndim;
}

static PyObject *run_logsumexp(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    PyArrayObject *x = (PyArrayObject *)args[0];
    const native_type type = nargs == 1 ? native_real_type(args[0]) : TYPE_NONE;
    npy_intp shape[NATIVE_DIMS], before = 1, first;
    if (type == TYPE_NONE || !PyArray_SIZE(x) || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    const int ndim = PyArray_NDIM(x);
    const bool kept = options[KEEPDIM] && PyObject_IsTrue(options[KEEPDIM]) == 1;
    sums_run run = {.of = &loops->of[type], .scores = {.n = 1, .inner = 1}, .type = type};
    native_fold turned = {0};
    int left = 0, count;
    const bool beside = neighbours(options[DIM], ndim, &first, &count);
    if (!beside) {
        if (!native_fold_copied(&turned, args[0], type, options[DIM], options[KEEPDIM]))
            return NULL;
        run.scores.n = turned.count;
        before = turned.outer;
        left = turned.ndim;
        memcpy(shape, turned.shape, sizeof shape);
    }
    for (int i = 0; beside && i < ndim; i++) {
        const bool reduced = i >= first && i < first + count;
        *(reduced ? &run.scores.n : i < first ? &before : &run.scores.inner) *= PyArray_DIM(x, i);
        if (!reduced || kept)
            shape[left++] = reduced ? 1 : PyArray_DIM(x, i);
    }
    const npy_intp inner = run.scores.inner, places = before * inner;
    PyArrayObject *dense = beside ? native_dense(args[0]) : turned.array, *made = dense ? native_empty(left, shape, type) : NULL;
    const size_t bytes = (size_t)places * TYPE_SIZE[type];
    char few[256], *less = !made || bytes <= sizeof few ? few : PyMem_RawMalloc(bytes);
    if (made && less) {
        run.scores.x = PyArray_DATA(dense);
        run.scores.top = PyArray_DATA(made);
        run.scores.less = less;
        run.tiles = (inner + COLUMNS - 1) / COLUMNS;
        run.by_rows = softmax_goes_by_rows(run.scores.n, inner);
        native_parallel(before * run.tiles, native_grain(GRAIN, run.scores.n * (inner < COLUMNS ? inner : COLUMNS)), run_sums, &run);
    } else if (made) {
        Py_CLEAR(made);
        PyErr_NoMemory();
    }
    if (less != few)
        PyMem_RawFree(less);
    Py_XDECREF(dense);
    return (PyObject *)made;
}

int softmax_init(void) {
    loops = PICK(softmax_loops);
    names[DIM] = PyUnicode_InternFromString("dim");
    names[KEEPDIM] = PyUnicode_InternFromString("keepdim");
    return names[DIM] && names[KEEPDIM] ? 0 : -1;
}

const native_spec softmax_kernels[] = {
    {"softmax", run_softmax, &(const softmax_op){SOFTMAX, 1}},
    {"log_softmax", run_softmax, &(const softmax_op){LOG_SOFTMAX, 1}},
    {"softmax_backward", run_softmax, &(const softmax_op){SOFTMAX_BACKWARD, 2}},
    {"log_softmax_backward", run_softmax, &(const softmax_op){LOG_SOFTMAX_BACKWARD, 2}},
    {"logsumexp", run_logsumexp, NULL},
    {NULL, NULL, NULL},
};
