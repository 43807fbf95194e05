/* Rows of a table by number, and the gradient of the table. */
#include "index.h"
#include "rows.h"
#include "scatter.h"

DECLARE_LOOPS(index_loops, index_loops);

static const index_loops *loops;

enum { ROWS, PADDING, BY_COUNT, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"rows", "padding", "by_count"};

enum { GRAIN = 1 << 16 }; /* elements a thread */

static void copy_rows(void *context, npy_intp begin, npy_intp end) { loops->select_rows(context, begin, end); }

static PyObject *run_embedding(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    PyArrayObject *table = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || PyArray_NDIM(table) != 2 || !PyArray_IS_C_CONTIGUOUS(table))
        return NULL;
    PyArrayObject *index = native_index_inside(args[1], PyArray_DIM(table, 0)), *made = NULL;
    if (!index)
        return NULL;
    int ndim = PyArray_NDIM(index);
    npy_intp shape[NATIVE_DIMS + 1], count = PyArray_SIZE(index), width = PyArray_DIM(table, 1);
    if (ndim < NATIVE_DIMS) {
        for (int i = 0; i < ndim; i++)
            shape[i] = PyArray_DIM(index, i);
        shape[ndim] = width;
        made = native_empty(ndim + 1, shape, type);
    }
    if (made && count && width) {
        picked run = {PyArray_BYTES(table), PyArray_DATA(index), PyArray_BYTES(made), 1, PyArray_DIM(table, 0), count, width,
                      TYPE_SIZE[type]};
        native_evenly(count, native_grain(GRAIN, width), copy_rows, &run);
    }
    Py_DECREF(index);
    return (PyObject *)made;
}

static PyObject *run_embedding_gradient(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                        PyObject *kwnames) {
    PyObject *options[OPTIONS];
    double rows, padding = -1;
    native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    if (!native_is_floating(type) || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        options[BY_COUNT] == Py_True || !native_double(options[ROWS], &rows) ||
        (!native_is_none(options[PADDING]) && !native_double(options[PADDING], &padding)))
        return NULL;
    PyArrayObject *index = native_index_inside(args[1], (npy_intp)rows), *g = NULL, *made = NULL;
    PyArrayObject *sent = (PyArrayObject *)args[0];
    npy_intp width = PyArray_NDIM(sent) ? PyArray_DIM(sent, PyArray_NDIM(sent) - 1) : 0, shape[2] = {(npy_intp)rows, width};
    if (index && PyArray_SIZE(sent) == PyArray_SIZE(index) * width && width && rows && padding < rows)
        g = native_dense(args[0]);
    if (g) {
        static const double NOTHING = 0;
        PyArrayObject *none = (PyArrayObject *)PyArray_NewFromDescr(
            &PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(sent)), 2, shape, (npy_intp[]){0, 0}, (void *)&NOTHING,
            NPY_ARRAY_ALIGNED, NULL);
        slice_sums sums = {NULL, PyArray_DATA(g), PyArray_DATA(index), 1, PyArray_SIZE(index), shape[0], width};
        if (none)
            made = native_sum_slices(none, type, false, &sums, (npy_intp)padding);
        Py_XDECREF(none);
    }
    Py_XDECREF(index);
    Py_XDECREF(g);
    return (PyObject *)made;
}

int embedding_init(void) {
    loops = PICK(index_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec embedding_kernels[] = {
    {"embedding", run_embedding, NULL},
    {"embedding_gradient", run_embedding_gradient, NULL},
    {NULL, NULL, NULL},
};
