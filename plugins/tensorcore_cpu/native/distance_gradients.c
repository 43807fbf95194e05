/* Gradients of the distances of the rows of two matrices, of those of two batches, and of all pairs of the rows of one. */
#include "distance_gradients.h"

#include "rows.h"

DECLARE_LOOPS(pull_loops, pull_loops);

static const pull_loops *loops;
static PyObject *power_name;

enum { GRAIN = 1 << 15 }; /* differences a thread */

typedef struct {
    pull_loop loop;
    const char *x, *y, *g, *distances;
    char *made;
    npy_intp rows, others, width, size;
} pull_run;

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    const pull_run *run = context;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp row = i * run->width * run->size, beside = i * run->others * run->size;
        run->loop(run->x + row, run->y + i / run->rows * run->others * run->width * run->size, run->g + beside,
                  run->distances + beside, run->others, run->width, run->made + row);
    }
}

/* What stands for all pairs of n rows, in one row, as a matrix with both halves alike and zeros between; NULL without memory. */
static char *as_matrix(const char *pairs, npy_intp n, native_type type) {
    char *made = PyMem_RawCalloc((size_t)(n * n + 1), (size_t)TYPE_SIZE[type]);
#define UNFOLD(type)                                                                                          \
    for (npy_intp i = 0, at = 0; i < n; i++)                                                                  \
        for (npy_intp j = i + 1; j < n; j++, at++)                                                            \
            ((type *)made)[i * n + j] = ((type *)made)[j * n + i] = ((const type *)pairs)[at];
    if (made && type == TYPE_F32)
        UNFOLD(float)
    else if (made)
        UNFOLD(double)
    return made;
}

/* Whether an array has the type, and so many dims in row-major order. */
static bool is_dense(PyObject *object, native_type type, int ndim) {
    return native_real_type(object) == type && PyArray_NDIM((PyArrayObject *)object) == ndim &&
           PyArray_IS_C_CONTIGUOUS((PyArrayObject *)object);
}

/* distances_gradient(g, x, y, distances, p): with regard to x. Without y of all pairs of rows of x, g and distances in one row. */
static PyObject *run_gradient(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *option = NULL;
    double p;
    const native_type type = nargs == 4 ? native_real_type(args[1]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, &power_name, 1, &option) || !option ||
        !native_double(option, &p) || (p != 1 && p != 2 && p != Py_HUGE_VAL))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    const bool pairs = args[2] == Py_None;
    const int beside = pairs ? 1 : ndim;
    if (ndim < 2 || (pairs && ndim != 2) || !is_dense(args[1], type, ndim) || (!pairs && !is_dense(args[2], type, ndim)) ||
        !is_dense(args[0], type, beside) || !is_dense(args[3], type, beside) || !PyArray_SIZE(x))
        return NULL;
    PyArrayObject *y = pairs ? x : (PyArrayObject *)args[2];
    pull_run run = {.loop = loops->of[p == 1 ? PULL_SIZES : p == 2 ? PULL_EUCLID : PULL_LARGEST][type], .x = PyArray_BYTES(x),
                    .y = PyArray_BYTES(y), .g = PyArray_BYTES((PyArrayObject *)args[0]),
                    .distances = PyArray_BYTES((PyArrayObject *)args[3]), .rows = PyArray_DIM(x, ndim - 2),
                    .others = PyArray_DIM(y, ndim - 2), .width = PyArray_DIM(x, ndim - 1), .size = TYPE_SIZE[type]};
    const npy_intp lines = PyArray_SIZE(x) / run.width, wanted = pairs ? run.rows * (run.rows - 1) / 2 : lines * run.others;
    for (int k = 0; k <= 3; k += 3)
        if (PyArray_SIZE((PyArrayObject *)args[k]) != wanted)
            return NULL;
    for (int i = 0; i < ndim && !pairs; i++)
        if (i != ndim - 2 && PyArray_DIM(x, i) != PyArray_DIM(y, i))
            return NULL;
    char *matrices[2] = {NULL, NULL};
    if (pairs) {
        run.g = matrices[0] = as_matrix(run.g, run.rows, type);
        run.distances = matrices[1] = as_matrix(run.distances, run.rows, type);
    }
    PyArrayObject *made = run.g && run.distances ? native_empty(ndim, PyArray_DIMS(x), type) : (PyArrayObject *)PyErr_NoMemory();
    if (made) {
        run.made = PyArray_BYTES(made);
        native_evenly(lines, native_grain(GRAIN, run.others * run.width), run_rows, &run);
    }
    PyMem_RawFree(matrices[0]);
    PyMem_RawFree(matrices[1]);
    return (PyObject *)made;
}

int distance_gradients_init(void) {
    loops = PICK(pull_loops);
    return power_name || (power_name = PyUnicode_InternFromString("p")) ? 0 : -1;
}

const native_spec distance_gradients_kernels[] = {
    {"distances_gradient", run_gradient, NULL, .dense = true},
    {NULL},
};
