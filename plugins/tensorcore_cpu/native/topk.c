/* The k largest or smallest of rows, by insertion where k is small; sort.c has all others. */
#include "rows.h"
#include "scatter.h"

#include <string.h>

DECLARE_LOOPS(scatter_loops, scatter_loops);

static const scatter_loops *loops;

enum { DIM, K, LARGEST, SORTED, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "k", "largest", "sorted"};

enum {
    GRAIN = 1 << 14, /* elements a thread */
    SHORT_ROW = 128, /* elements */
    MOST_KEPT = 128, /* the k up to which insertion is fast */
};

typedef struct {
    const char *x;
    char *values;
    int64_t *places;
    npy_intp n, k, size;
    native_type type;
    bool largest;
} top_run;

static void run_top_rows(void *context, npy_intp begin, npy_intp end) {
    const top_run *run = context;
    for (; begin < end; begin++)
        loops->top[run->type](run->x + begin * run->n * run->size, run->n, run->k, run->largest,
                              run->values + begin * run->k * run->size, run->places + begin * run->k);
}

static PyObject *run_topk(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *answer = NULL;
    double k, dim;
    native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    PyArrayObject *array = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || !loops->top[type] || !PyArray_SIZE(array) || !kwnames ||
        !native_options(args, nargs, kwnames, names, OPTIONS, options) || !native_double(options[K], &k) || k < 1 ||
        k > MOST_KEPT || !native_double(options[DIM], &dim) || dim < 0 || dim != PyArray_NDIM(array) - 1)
        return NULL;
    const int last = (int)dim;
    const npy_intp n = PyArray_DIM(array, last);
    if (k > (double)n)
        return NULL;
    if (n <= SHORT_ROW && k * 16 > (double)n && PyArray_SIZE(array) >= 8 * n) /* sort.c puts such rows in order side by side */
        return NULL;
    PyArrayObject *x = native_dense(args[0]);
    if (!x)
        return NULL;
    npy_intp shape[NATIVE_DIMS];
    memcpy(shape, PyArray_DIMS(x), (size_t)(last + 1) * sizeof *shape);
    shape[last] = (npy_intp)k;
    PyArrayObject *values = native_empty(last + 1, shape, type), *at = native_empty(last + 1, shape, TYPE_I64);
    if (values && at) {
        top_run run = {PyArray_BYTES(x), PyArray_BYTES(values), PyArray_DATA(at), n, shape[last],
                       TYPE_SIZE[type], type, !options[LARGEST] || options[LARGEST] == Py_True};
        native_evenly(PyArray_SIZE(x) / run.n, native_grain(GRAIN, run.n), run_top_rows, &run);
        answer = PyTuple_Pack(2, (PyObject *)values, (PyObject *)at);
    }
    Py_XDECREF(values);
    Py_XDECREF(at);
    Py_DECREF(x);
    return answer;
}

int topk_init(void) {
    loops = PICK(scatter_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec topk_kernels[] = {
    {"topk", run_topk, NULL},
    {NULL, NULL, NULL},
};
