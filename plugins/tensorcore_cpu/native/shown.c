/* Views that stretch, cross or restride memory, and where arrays lie. No element is touched, so any dtype will do. */
#include "rows.h"

enum { SHAPE, STRIDES, OFFSET, DIM1, DIM2, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"shape", "strides", "offset", "dim1", "dim2"};

/* The one array of a call and its options; false where it is not an array of at most NATIVE_DIMS dims with elements: one
   without has strides of 0, which say nothing. */
static bool taken(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **options) {
    return nargs == 1 && PyArray_CheckExact(args[0]) && PyArray_NDIM((PyArrayObject *)args[0]) <= NATIVE_DIMS &&
           PyArray_SIZE((PyArrayObject *)args[0]) &&
           (!kwnames || native_options(args, nargs, kwnames, names, OPTIONS, options));
}

static bool whole(PyObject *option, npy_intp *number) {
    if (!option || !PyLong_CheckExact(option))
        return false;
    *number = PyLong_AsSsize_t(option);
    if (*number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return true;
}

static PyObject *show(PyArrayObject *x, int ndim, const npy_intp *shape, const npy_intp *strides, char *data) {
    PyArray_Descr *descr = (PyArray_Descr *)Py_NewRef(PyArray_DESCR(x));
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, data,
                                          PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE, NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef((PyObject *)x)))
        Py_CLEAR(made);
    return made;
}

static PyObject *run_expand(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    npy_intp shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!taken(args, nargs, kwnames, options))
        return NULL;
    int ndim = native_sizes(options[SHAPE], shape, NATIVE_DIMS), extra = ndim - PyArray_NDIM(x);
    if (extra < 0)
        return NULL;
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        npy_intp have = PyArray_DIM(x, i), want = shape[extra + i];
        if (want < 0 || (have != want && have != 1))
            return NULL;
        strides[extra + i] = have == 1 && want != 1 ? 0 : PyArray_STRIDE(x, i);
    }
    for (int i = extra - 1; i >= 0; i--) /* a new dim of size 1 reaches over what is behind it */
        strides[i] = shape[i] == 1 && PyArray_NDIM(x) ? shape[i + 1] * strides[i + 1] : 0;
    return show(x, ndim, shape, strides, PyArray_BYTES(x));
}

static PyObject *run_diagonal(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    npy_intp offset, first, second, shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!taken(args, nargs, kwnames, options) || !whole(options[OFFSET], &offset) || !whole(options[DIM1], &first) ||
        !whole(options[DIM2], &second))
        return NULL;
    int ndim = 0;
    if (first < 0 || second < 0 || first >= PyArray_NDIM(x) || second >= PyArray_NDIM(x) || first == second)
        return NULL;
    for (int i = 0; i < PyArray_NDIM(x); i++)
        if (i != first && i != second) {
            shape[ndim] = PyArray_DIM(x, i);
            strides[ndim++] = PyArray_STRIDE(x, i);
        }
    npy_intp down = PyArray_DIM(x, first), across = PyArray_DIM(x, second);
    *(offset < 0 ? &down : &across) -= offset < 0 ? -offset : offset;
    npy_intp length = down < across ? down : across;
    if (length < 0)
        length = 0;
    npy_intp start = !length      ? 0
                     : offset < 0 ? -offset * PyArray_STRIDE(x, first)
                                  : offset * PyArray_STRIDE(x, second);
    shape[ndim] = length;
    strides[ndim++] = PyArray_STRIDE(x, first) + PyArray_STRIDE(x, second);
    return show(x, ndim, shape, strides, PyArray_BYTES(x) + start);
}

/* The array whose memory x shows: the end of the chain of bases that are arrays. */
static PyArrayObject *owner(PyArrayObject *x) {
    while (PyArray_BASE(x) && PyArray_Check(PyArray_BASE(x)))
        x = (PyArrayObject *)PyArray_BASE(x);
    return x;
}

static PyObject *run_as_strided(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    npy_intp offset, shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!taken(args, nargs, kwnames, options) || !whole(options[OFFSET], &offset))
        return NULL;
    int ndim = native_sizes(options[SHAPE], shape, NATIVE_DIMS);
    if (ndim < 0 || native_sizes(options[STRIDES], strides, NATIVE_DIMS) != ndim)
        return NULL;
    PyArrayObject *all = owner(x);
    if (!PyArray_ISONESEGMENT(all))
        return NULL;
    npy_intp size = PyArray_ITEMSIZE(x), room = PyArray_NBYTES(all), reach;
    npy_intp start = PyArray_BYTES(x) - PyArray_BYTES(all);
    if (__builtin_mul_overflow(offset, size, &offset) || __builtin_add_overflow(start, offset, &start) || start < 0)
        return NULL;
    npy_intp end = start;
    for (int i = 0; i < ndim; i++) {
        /* No elements, steps back or out of the memory: NumPy's constructor says what is wrong. */
        if (shape[i] < 1 || strides[i] < 0 || __builtin_mul_overflow(strides[i], size, &strides[i]) ||
            __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) || __builtin_add_overflow(end, reach, &end))
            return NULL;
    }
    return end > room - size ? NULL : show(x, ndim, shape, strides, PyArray_BYTES(all) + start);
}

/* Functions of the module */

static PyObject *steps_of(PyArrayObject *x) {
    int ndim = PyArray_NDIM(x);
    PyObject *made = PyTuple_New(ndim);
    npy_intp size = PyArray_ITEMSIZE(x), dense = 1;
    bool none = !PyArray_SIZE(x); /* without elements NumPy's own are 0, unless they came from elsewhere */
    for (int i = 0; i < ndim; i++)
        none &= !PyArray_STRIDE(x, i);
    for (int i = ndim - 1; made && i >= 0; i--) {
        PyObject *one = PyLong_FromSsize_t(none ? dense : PyArray_STRIDE(x, i) / size);
        dense *= PyArray_DIM(x, i) ? PyArray_DIM(x, i) : 1;
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

PyObject *native_strides(PyObject *module, PyObject *x) {
    if (PyArray_CheckScalar(x) && !PyArray_Check(x)) /* what NumPy makes of arrays without dims here and there */
        return PyTuple_New(0);
    return PyArray_Check(x) ? steps_of((PyArrayObject *)x)
                            : PyErr_Format(PyExc_TypeError, "strides: expected an array, got %R", Py_TYPE(x));
}

PyObject *native_layout(PyObject *module, PyObject *x) {
    if (PyArray_CheckScalar(x) && !PyArray_Check(x))
        return Py_BuildValue("(()i)", 0);
    if (!PyArray_Check(x))
        return PyErr_Format(PyExc_TypeError, "layout: expected an array, got %R", Py_TYPE(x));
    PyArrayObject *array = (PyArrayObject *)x;
    PyObject *strides = steps_of(array);
    npy_intp start = PyArray_BYTES(array) - PyArray_BYTES(owner(array)), size = PyArray_ITEMSIZE(array);
    return strides ? Py_BuildValue("(Nn)", strides, start / size - (start % size < 0)) : NULL;
}

int shown_init(void) {
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    return 0;
}

const native_spec shown_kernels[] = {
    {"expand", run_expand, NULL},
    {"diagonal", run_diagonal, NULL},
    {"as_strided", run_as_strided, NULL},
    {NULL, NULL, NULL},
};
