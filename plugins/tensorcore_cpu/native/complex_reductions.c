/* Norms and variances of complex numbers: as those of their parts, or of their sizes. */
#include "native.h"
#include "rows.h"

#include <math.h>

enum { DIM, KEEPDIM, DTYPE, POWER, CORRECTION, ROOT, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "keepdim", "dtype", "p", "correction", "root"};

enum { GRAIN = 1 << 13 }; /* numbers a thread */

typedef struct {
    const void *x;
    void *made;
} sizes_run;

#define SIZES(suffix, real, length)                                                                           \
    static void sizes_##suffix(void *context, npy_intp begin, npy_intp end) {                                 \
        const sizes_run *run = context;                                                                       \
        const real *x = run->x;                                                                               \
        for (npy_intp i = begin; i < end; i++)                                                                \
            ((real *)run->made)[i] = length(x[2 * i], x[2 * i + 1]);                                          \
    }
SIZES(f32, float, hypotf)
SIZES(f64, double, hypot)

static PyObject *sizes_of(PyArrayObject *x, native_type type) {
    PyArrayObject *made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (made)
        native_evenly(PyArray_SIZE(x), GRAIN, type == TYPE_F32 ? sizes_f32 : sizes_f64, &(sizes_run){PyArray_DATA(x), PyArray_DATA(made)});
    return (PyObject *)made;
}

/* The dims to reduce of the pairs of x as those of x itself: all of them for None; the last one of the pairs too, where that is asked. */
static PyObject *dims_of(PyArrayObject *x, PyObject *dim, bool pairs) {
    const bool all = native_is_none(dim), few = !all && PyTuple_CheckExact(dim);
    const int ndim = PyArray_NDIM(x);
    if (!all && !few)
        return NULL;
    const Py_ssize_t count = all ? ndim : PyTuple_GET_SIZE(dim);
    PyObject *made = PyTuple_New(count + pairs);
    for (Py_ssize_t i = 0; made && i < count + pairs; i++) {
        PyObject *one = i == count ? PyLong_FromLong(ndim) : all ? PyLong_FromSsize_t(i) : Py_NewRef(PyTuple_GET_ITEM(dim, i));
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* An array without its last dim, which is one of size 1: takes the reference, and may be given NULL. */
static PyObject *without_last(PyObject *object) {
    PyArrayObject *x = (PyArrayObject *)object;
    PyArray_Dims shape = {object ? PyArray_DIMS(x) : NULL, object ? PyArray_NDIM(x) - 1 : 0};
    PyObject *made = object ? PyArray_Newshape(x, &shape, NPY_CORDER) : NULL;
    Py_XDECREF(object);
    return made;
}

static PyObject *run_norm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS] = {NULL}, *made = NULL;
    const native_type type = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    double power;
    if (type == TYPE_NONE || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, given)) || !native_is_none(given[DTYPE]) ||
        !native_double(given[POWER], &power) || !PyArray_SIZE((PyArrayObject *)args[0]))
        return NULL;
    PyArrayObject *x = native_dense(args[0]);
    if (!x)
        return NULL;
    if (power != 2) {
        PyObject *sizes = sizes_of(x, type);
        made = sizes ? native_norm_along(sizes, power, given[DIM], given[KEEPDIM]) : NULL;
        Py_XDECREF(sizes);
    } else if (PyArray_NDIM(x) < NATIVE_DIMS) { /* squares of sizes are sums of those of their parts */
        const bool keeps = given[KEEPDIM] == Py_True;
        PyObject *pairs = native_as_pairs(x, type), *dims = pairs ? dims_of(x, given[DIM], true) : NULL;
        made = dims ? native_norm_along(pairs, 2, dims, given[KEEPDIM]) : NULL;
        made = keeps ? without_last(made) : made;
        Py_XDECREF(dims);
        Py_XDECREF(pairs);
    }
    Py_DECREF(x);
    return made;
}

/* The sums of both parts' variances in the place of the first ones, or the roots of those. */
#define ADD_PARTS(suffix, real, root_of)                                                                      \
    static void add_parts_##suffix(const real *parts, real *made, npy_intp count, bool root) {                \
        for (npy_intp i = 0; i < count; i++) {                                                                \
            const real sum = parts[2 * i] + parts[2 * i + 1];                                                 \
            made[i] = root ? root_of(sum) : sum;                                                              \
        }                                                                                                     \
    }
ADD_PARTS(f32, float, sqrtf)
ADD_PARTS(f64, double, sqrt)

/* A new array of them, for an array of pairs in row-major order. */
static PyObject *parts_added(PyArrayObject *parts, native_type type, bool root) {
    PyArrayObject *made = native_empty(PyArray_NDIM(parts) - 1, PyArray_DIMS(parts), type);
    if (made && type == TYPE_F32)
        add_parts_f32(PyArray_DATA(parts), PyArray_DATA(made), PyArray_SIZE(made), root);
    else if (made)
        add_parts_f64(PyArray_DATA(parts), PyArray_DATA(made), PyArray_SIZE(made), root);
    return (PyObject *)made;
}

/* var, or with data var_mean */
static PyObject *run_var(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS] = {NULL}, *made = NULL;
    const native_type type = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    const bool with_mean = kernel->data != NULL;
    double correction;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, given) || given[DTYPE] || given[POWER] ||
        !native_double(given[CORRECTION], &correction) || !given[ROOT])
        return NULL;
    PyArrayObject *x = native_dense(args[0]);
    const bool fits = x && PyArray_NDIM(x) > 0 && PyArray_NDIM(x) < NATIVE_DIMS;
    PyObject *pairs = fits ? native_as_pairs(x, type) : NULL, *dims = pairs ? dims_of(x, given[DIM], false) : NULL;
    PyObject *both = dims ? native_spread_along(pairs, correction, false, with_mean, dims, given[KEEPDIM]) : NULL;
    PyObject *parts = both && with_mean ? PyTuple_GET_ITEM(both, 0) : both;
    if (parts && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)parts))
        made = parts_added((PyArrayObject *)parts, type, given[ROOT] == Py_True);
    if (made && with_mean) {
        PyObject *mean = native_of_pairs((PyArrayObject *)PyTuple_GET_ITEM(both, 1), type);
        Py_SETREF(made, mean ? PyTuple_Pack(2, made, mean) : NULL);
        Py_XDECREF(mean);
    }
    Py_XDECREF(both);
    Py_XDECREF(dims);
    Py_XDECREF(pairs);
    Py_XDECREF(x);
    return made;
}

int complex_reductions_init(void) {
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec complex_reductions_kernels[] = {
    {"norm_beneath", run_norm, NULL},
    {"var_beneath", run_var, NULL},
    {"var_mean_beneath", run_var, &(const bool){true}},
    {NULL, NULL, NULL},
};
