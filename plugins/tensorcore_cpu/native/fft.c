/* Fourier transforms: what they take. Sizes that are not made here are SciPy's. */
#include "fft_lines.h"

#include <string.h>

enum { DIMS, FORWARD, SCALE, SIZE, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dims", "forward", "scale", "size"};

typedef struct {
    int count, dims[NATIVE_DIMS];
    bool forward;
    double scale;
    npy_intp size;
} call;

/* Whether each of the sizes along the dims is made here: sizes of the last one as `last` says. */
static bool made_here(PyArrayObject *x, const call *one, fft_kind last) {
    for (int i = 0; i < one->count; i++) {
        const bool ends = i == one->count - 1;
        if (!fft_fits(ends ? last : FFT_COMPLEX, ends ? one->size : PyArray_DIM(x, one->dims[i])))
            return false;
    }
    return true;
}

/* Looks at everything of a call but the array's type. */
static bool read_call(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, call *one) {
    PyObject *options[OPTIONS];
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIMS] ||
        !options[FORWARD] || !options[SCALE] || !PyTuple_CheckExact(options[DIMS]) || !PyFloat_CheckExact(options[SCALE]) ||
        !PyBool_Check(options[FORWARD]) || !PyArray_CheckExact(args[0]))
        return false;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int ndim = PyArray_NDIM(x);
    one->count = (int)PyTuple_GET_SIZE(options[DIMS]);
    if (ndim > NATIVE_DIMS || one->count < 1 || one->count > ndim || !PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x) ||
        !PyArray_SIZE(x))
        return false;
    for (int i = 0; i < one->count; i++) {
        PyObject *dim = PyTuple_GET_ITEM(options[DIMS], i);
        const long at = PyLong_CheckExact(dim) ? PyLong_AsLong(dim) : -1;
        if (at < 0 || at >= ndim) {
            PyErr_Clear();
            return false;
        }
        one->dims[i] = (int)at;
    }
    one->forward = options[FORWARD] == Py_True;
    one->scale = PyFloat_AS_DOUBLE(options[SCALE]);
    one->size = PyArray_DIM(x, one->dims[one->count - 1]);
    if (options[SIZE]) {
        one->size = PyLong_CheckExact(options[SIZE]) ? PyLong_AsSsize_t(options[SIZE]) : -1;
        if (one->size < 1) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Whether the transform is as long as the last of the dims: only halves of spectra say another size. */
static bool of_own_size(PyArrayObject *x, const call *one) { return one->size == PyArray_DIM(x, one->dims[one->count - 1]); }

static PyArrayObject *new_array(PyArrayObject *x, int dim, npy_intp size, int number) {
    npy_intp shape[NATIVE_DIMS], bytes = 1;
    PyArray_Descr *descr = PyArray_DescrFromType(number);
    if (!descr)
        return NULL;
    memcpy(shape, PyArray_DIMS(x), (size_t)PyArray_NDIM(x) * sizeof *shape);
    shape[dim] = size;
    for (int i = 0; i < PyArray_NDIM(x); i++)
        bytes *= shape[i];
    bytes *= PyDataType_ELSIZE(descr);
    if (bytes >= NATIVE_LINES)
        return native_memory_array(descr, PyArray_NDIM(x), shape, NULL, (size_t)bytes);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(x), shape, NULL, NULL, 0, NULL);
}

/* Complex transforms along the first `count` of the dims, in place but for the first, which reads `x`. */
static bool run_dims(PyArrayObject *x, PyArrayObject *made, const call *one, int count, double scale) {
    for (int i = 0; i < count; i++) {
        const bool real = !PyArray_ISCOMPLEX(x);
        if (!fft_along(x, made, one->dims[i], real ? FFT_REAL_TO_COMPLEX : FFT_COMPLEX, PyArray_DIM(x, one->dims[i]), one->forward,
                     i == count - 1 ? scale : 1))
            return false;
        x = made;
    }
    return true;
}

static PyObject *finished(PyArrayObject *made, bool good) {
    if (!good)
        Py_CLEAR(made);
    return (PyObject *)made;
}

static PyObject *run_c2c(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    call one;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!read_call(args, nargs, kwnames, &one) || !of_own_size(x, &one) || !made_here(x, &one, FFT_COMPLEX))
        return NULL;
    const int type = PyArray_TYPE(x);
    const bool wide = type == NPY_DOUBLE || type == NPY_CDOUBLE;
    if (!wide && type != NPY_FLOAT && type != NPY_CFLOAT)
        return NULL;
    PyArrayObject *made = new_array(x, one.dims[0], PyArray_DIM(x, one.dims[0]), wide ? NPY_CDOUBLE : NPY_CFLOAT);
    return finished(made, made && run_dims(x, made, &one, one.count, one.scale));
}

static PyObject *run_r2c(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    call one;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!read_call(args, nargs, kwnames, &one) || !of_own_size(x, &one) || !made_here(x, &one, FFT_REAL_TO_HALF) ||
        (PyArray_TYPE(x) != NPY_FLOAT && PyArray_TYPE(x) != NPY_DOUBLE))
        return NULL;
    const int last = one.dims[one.count - 1];
    PyArrayObject *made = new_array(x, last, one.size / 2 + 1, PyArray_TYPE(x) == NPY_DOUBLE ? NPY_CDOUBLE : NPY_CFLOAT);
    return finished(made, made &&
                              fft_along(x, made, last, FFT_REAL_TO_HALF, one.size, one.forward, one.count == 1 ? one.scale : 1) &&
                              run_dims(made, made, &one, one.count - 1, one.scale));
}

static PyObject *run_c2r(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    call one;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!read_call(args, nargs, kwnames, &one) || !made_here(x, &one, FFT_HALF_TO_REAL) ||
        (PyArray_TYPE(x) != NPY_CFLOAT && PyArray_TYPE(x) != NPY_CDOUBLE))
        return NULL;
    const int last = one.dims[one.count - 1];
    if (PyArray_DIM(x, last) != one.size / 2 + 1)
        return NULL;
    PyArrayObject *between = one.count == 1 ? (PyArrayObject *)Py_NewRef(x)
                                            : new_array(x, last, PyArray_DIM(x, last), PyArray_TYPE(x));
    PyArrayObject *made = between ? new_array(x, last, one.size, PyArray_TYPE(x) == NPY_CDOUBLE ? NPY_DOUBLE : NPY_FLOAT) : NULL;
    const bool good = made && run_dims(x, between, &one, one.count - 1, 1) &&
                      fft_along(between, made, last, FFT_HALF_TO_REAL, one.size, one.forward, one.scale);
    Py_XDECREF(between);
    return good ? (PyObject *)made : finished(made, false);
}

int fft_init(void) {
    fft_lines_init();
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec fft_kernels[] = {
    {"fft_c2c", run_c2c, NULL},
    {"fft_r2c", run_r2c, NULL},
    {"fft_c2r", run_c2r, NULL},
    {NULL, NULL, NULL},
};
