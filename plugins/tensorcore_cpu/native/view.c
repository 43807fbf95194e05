/* Views of whole arrays and of parts: the same memory under other sizes and strides. Of elements of any kind. */
#include "native.h"

enum { SHAPE, KEY, DIMS, DIM, OPTIONS };
static PyObject *names[OPTIONS];

/* An ndarray over the memory of another, from `data` on; NULL strides are those of row-major order. */
static PyObject *over(PyArrayObject *x, int ndim, const npy_intp *shape, const npy_intp *strides, char *data) {
    PyArray_Descr *descr = PyArray_DESCR(x);
    Py_INCREF(descr);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, data,
                                          PyArray_FLAGS(x) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED), NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef((PyObject *)x)))
        Py_CLEAR(made);
    return made;
}

/* The one array operand and the one option; false where there is anything else. */
static bool operands(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int option, PyArrayObject **x,
                     PyObject **value) {
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, &names[option], 1, value) || !*value ||
        !PyArray_CheckExact(args[0]))
        return false;
    *x = (PyArrayObject *)args[0];
    return PyArray_NDIM(*x) <= NATIVE_DIMS;
}

/* A tuple of ints; how many, -1 where it is something else. */
static int ints(PyObject *tuple, npy_intp *values, int most) {
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > most)
        return -1;
    const int count = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; i < count; i++) {
        PyObject *one = PyTuple_GET_ITEM(tuple, i);
        if (!PyLong_CheckExact(one))
            return -1;
        values[i] = PyLong_AsSsize_t(one);
        if (values[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
    }
    return count;
}

/* Whether there is but one way to write the strides of the array: in row-major order, without sizes of 0 and 1. */
static bool plain(PyArrayObject *x) {
    for (int i = 0; i < PyArray_NDIM(x); i++)
        if (PyArray_DIM(x, i) < 2)
            return false;
    return PyArray_IS_C_CONTIGUOUS(x);
}

static PyObject *run_view(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *x;
    PyObject *option;
    npy_intp shape[NATIVE_DIMS], count = 1;
    if (!operands(args, nargs, kwnames, SHAPE, &x, &option) || !plain(x))
        return NULL;
    const int ndim = ints(option, shape, NATIVE_DIMS);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 1 || __builtin_mul_overflow(count, shape[i], &count))
            return NULL;
    return ndim < 0 || count != PyArray_SIZE(x) ? NULL : over(x, ndim, shape, NULL, PyArray_BYTES(x));
}

static PyObject *run_unsqueeze(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *x;
    PyObject *option;
    npy_intp shape[NATIVE_DIMS + 1];
    if (!operands(args, nargs, kwnames, DIM, &x, &option) || !plain(x) || !PyLong_CheckExact(option))
        return NULL;
    const int ndim = PyArray_NDIM(x);
    const long dim = PyLong_AsLong(option);
    if (dim == -1 && PyErr_Occurred())
        PyErr_Clear();
    if (dim < 0 || dim > ndim)
        return NULL;
    for (int i = 0; i <= ndim; i++)
        shape[i] = i == dim ? 1 : PyArray_DIM(x, i - (i > dim));
    return over(x, ndim + 1, shape, NULL, PyArray_BYTES(x));
}

static PyObject *run_permute(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *x;
    PyObject *option;
    npy_intp dims[NATIVE_DIMS], shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    unsigned seen = 0;
    if (!operands(args, nargs, kwnames, DIMS, &x, &option))
        return NULL;
    const int ndim = ints(option, dims, NATIVE_DIMS);
    if (ndim != PyArray_NDIM(x) || !PyArray_SIZE(x))
        return NULL;
    for (int i = 0; i < ndim; i++) {
        if (dims[i] < 0 || dims[i] >= ndim || seen & 1u << dims[i])
            return NULL;
        seen |= 1u << dims[i];
        shape[i] = PyArray_DIM(x, (int)dims[i]);
        strides[i] = PyArray_STRIDE(x, (int)dims[i]);
    }
    return over(x, ndim, shape, strides, PyArray_BYTES(x));
}

/* Ints and slices, as many as there are dims or fewer. */
static PyObject *run_index(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *x;
    PyObject *key;
    npy_intp shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    int ndim = 0;
    if (!operands(args, nargs, kwnames, KEY, &x, &key) || !PyTuple_CheckExact(key) ||
        PyTuple_GET_SIZE(key) > PyArray_NDIM(x))
        return NULL;
    char *data = PyArray_BYTES(x);
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        PyObject *one = i < PyTuple_GET_SIZE(key) ? PyTuple_GET_ITEM(key, i) : NULL;
        const npy_intp size = PyArray_DIM(x, i), stride = PyArray_STRIDE(x, i);
        Py_ssize_t start = 0, stop = size, step = 1, count = size;
        if (one && PyLong_CheckExact(one)) {
            start = PyLong_AsSsize_t(one);
            if (start == -1 && PyErr_Occurred()) {
                PyErr_Clear();
                return NULL;
            }
            start += start < 0 ? size : 0;
            if (start < 0 || start >= size)
                return NULL;
            data += start * stride;
            continue;
        }
        if (one) {
            if (!PySlice_Check(one))
                return NULL;
            if (PySlice_Unpack(one, &start, &stop, &step)) {
                PyErr_Clear();
                return NULL;
            }
            count = PySlice_AdjustIndices(size, &start, &stop, step);
        }
        if (!count) /* the other kernel knows where nothing begins */
            return NULL;
        data += start * stride;
        shape[ndim] = count;
        strides[ndim++] = stride * step;
    }
    return over(x, ndim, shape, strides, data);
}

int view_init(void) {
    static const char *const NAMES[OPTIONS] = {"shape", "key", "dims", "dim"};
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    return 0;
}

const native_spec view_kernels[] = {
    {"view", run_view, NULL},
    {"unsqueeze", run_unsqueeze, NULL},
    {"permute", run_permute, NULL},
    {"index", run_index, NULL},
    {NULL, NULL, NULL},
};
