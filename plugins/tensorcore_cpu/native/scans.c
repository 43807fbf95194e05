/* Running sums of integers and complex numbers, running products: strips of columns along a dim. Sums of floats are in reduce.c. */
#include "scans.h"

#include "complex_numbers.h"
#include "rows.h"

DECLARE_LOOPS(scan_loops, scan_loops);

enum { DIM, DTYPE, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 15 }; /* elements that are worth a second thread */

typedef struct {
    scan_loop loop;
    const char *x;
    char *made;
    npy_intp count, inner, strips, size; /* of the dim, elements behind it, strips of them, bytes of one */
} scan_run;

static void run_strips(void *context, npy_intp begin, npy_intp end) {
    const scan_run *run = context;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp column = i % run->strips * SCAN_STRIP, rest = run->inner - column;
        const npy_intp offset = (i / run->strips * run->count * run->inner + column) * run->size;
        run->loop(run->x + offset, run->made + offset, run->count, run->inner, rest < SCAN_STRIP ? rest : SCAN_STRIP);
    }
}

static PyObject *scanned(PyObject *object, PyObject *dim, native_type type, bool pairs, scan_loop loop) {
    PyArrayObject *x = (PyArrayObject *)object;
    if (!loop || !dim || !PyLong_CheckExact(dim) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_SIZE(x))
        return NULL;
    const long at = PyLong_AsLong(dim);
    if (at < 0 || at >= PyArray_NDIM(x)) {
        PyErr_Clear();
        return NULL;
    }
    PyArrayObject *made = pairs ? native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type)
                                : native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (!made)
        return NULL;
    npy_intp outer;
    scan_run run = {.loop = loop, .x = PyArray_BYTES(x), .made = PyArray_BYTES(made), .count = PyArray_DIM(x, (int)at),
                    .size = TYPE_SIZE[type]};
    native_around(x, (int)at, &outer, &run.inner);
    run.inner *= pairs ? 2 : 1;
    run.strips = (run.inner + SCAN_STRIP - 1) / SCAN_STRIP;
    native_parallel(outer * run.strips, native_grain(GRAIN, run.count * (run.inner < SCAN_STRIP ? run.inner : SCAN_STRIP)),
                    run_strips, &run);
    return (PyObject *)made;
}

static bool read_dim(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **dim) {
    PyObject *options[OPTIONS];
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_is_none(options[DTYPE]))
        return false;
    *dim = options[DIM];
    return true;
}

static PyObject *run_sums(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dim;
    if (!read_dim(args, nargs, kwnames, &dim))
        return NULL;
    const native_type parts = native_complex_type(args[0]), type = parts == TYPE_NONE ? native_array_type(args[0]) : parts;
    return type == TYPE_NONE ? NULL : scanned(args[0], dim, type, parts != TYPE_NONE, PICK(scan_loops)->sum[type]);
}

static PyObject *run_products(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dim;
    const native_type type = native_array_type(args[0]);
    return type == TYPE_NONE || !read_dim(args, nargs, kwnames, &dim)
               ? NULL
               : scanned(args[0], dim, type, false, PICK(scan_loops)->product[type]);
}

int scans_init(void) {
    static const char *const words[OPTIONS] = {"dim", "dtype"};
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(words[i])))
            return -1;
    return 0;
}

const native_spec scans_kernels[] = {
    {"cumprod", run_products, NULL},
    {"cumsum_beneath", run_sums, NULL},
    {NULL, NULL, NULL},
};
