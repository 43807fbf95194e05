/* Views with other sizes, or with the dims in another order, of numbers that are right. What shows them records them too. */
#include "shortcuts.h"

enum { SHOW }; /* what all of them know: what shows the view, see viewing */

/* show(input, {name: value}), and takes the reference to the value. */
static PyObject *shown(PyObject *show, PyObject *input, const char *name, PyObject *value) {
    PyObject *options = value ? PyDict_New() : NULL, *made = NULL;
    if (options && !PyDict_SetItemString(options, name, value)) {
        PyObject *const given[] = {input, options};
        made = PyObject_Vectorcall(show, given, 2, NULL);
    }
    Py_XDECREF(options);
    Py_XDECREF(value);
    return made;
}

PyObject *shown_in_shape(PyObject *show, PyObject *kernel, PyObject *input, PyObject *shape) {
    static PyObject *words;
    PyObject *given[] = {SLOT(input, NATIVE), shape}, *native = NULL, *made = NULL;
    if (shape && (words || (words = PyTuple_Pack(1, shortcut_names[A_SHAPE]))))
        native = run_kernel(SLOT(input, DEVICE), kernel, given, 1, words);
    PyObject *options = native && native != Py_None ? PyDict_New() : NULL;
    if (options && !PyDict_SetItem(options, shortcut_names[A_SHAPE], shape)) {
        PyObject *const call[] = {input, options, native};
        made = PyObject_Vectorcall(show, call, 3, NULL);
    }
    Py_XDECREF(options);
    Py_XDECREF(native);
    Py_XDECREF(shape);
    return made;
}

/* The array of a call of a tensor and some numbers, one by one or in a tuple or list, which are read; NULL of others. */
static PyArrayObject *read_numbers(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, npy_intp *numbers, Py_ssize_t *count) {
    if (nargs < 2 || kwnames || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)))
        return NULL;
    PyObject *const *given = args + 1;
    *count = nargs - 1;
    if (nargs == 2 && (PyTuple_Check(args[1]) || PyList_CheckExact(args[1]))) {
        given = PySequence_Fast_ITEMS(args[1]);
        *count = PySequence_Fast_GET_SIZE(args[1]);
    }
    if (*count > NPY_MAXDIMS)
        return NULL;
    for (Py_ssize_t i = 0; i < *count; i++) {
        int overflow = 0;
        if (!PyLong_CheckExact(given[i]) || ((numbers[i] = PyLong_AsLongAndOverflow(given[i], &overflow)) == -1 && overflow) || overflow)
            return NULL;
    }
    return (PyArrayObject *)SLOT(args[0], NATIVE);
}

/* shape.py: expand(input, *sizes), and broadcast_to(input, size), which takes one tuple or list alone */
static PyObject *run_expanded(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    npy_intp sizes[NPY_MAXDIMS];
    Py_ssize_t count;
    if (self->known[1] == Py_True && (nargs != 2 || PyLong_Check(args[1])))
        return NULL;
    PyArrayObject *x = read_numbers(args, nargs, kwnames, sizes, &count);
    const Py_ssize_t extra = x ? count - PyArray_NDIM(x) : -1;
    if (extra < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        const npy_intp have = i < extra ? 1 : PyArray_DIM(x, (int)(i - extra));
        if (i >= extra && sizes[i] == -1)
            sizes[i] = have;
        if (sizes[i] < 0 || (have != 1 && have != sizes[i]))
            return NULL;
    }
    return shown(self->known[SHOW], args[0], "shape", tuple_of(sizes, (int)count));
}

/* shape.py: view(input, *sizes), and reshape, of a dense array alone, as it may copy others; they know what shows the view, the name of
   its kernel, and whether the array has to be dense. One of the sizes may be -1. */
static PyObject *run_viewed(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { KERNEL = 1, DENSE };
    npy_intp sizes[NPY_MAXDIMS], elements = 1;
    Py_ssize_t count, open = -1;
    PyArrayObject *x = read_numbers(args, nargs, kwnames, sizes, &count);
    if (!x || (self->known[DENSE] == Py_True && !PyArray_IS_C_CONTIGUOUS(x)))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (sizes[i] == -1 && open < 0)
            open = i;
        else if (sizes[i] < 0 || __builtin_mul_overflow(elements, sizes[i], &elements))
            return NULL;
    }
    if (open >= 0 && elements)
        sizes[open] = PyArray_SIZE(x) / elements;
    if (open >= 0 ? !elements || sizes[open] * elements != PyArray_SIZE(x) : elements != PyArray_SIZE(x))
        return NULL;
    return shown_in_shape(self->known[SHOW], self->known[KERNEL], args[0], tuple_of(sizes, (int)count));
}

/* order.py: permute(input, *order) */
static PyObject *run_permuted(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    npy_intp dims[NPY_MAXDIMS];
    Py_ssize_t count;
    uint64_t seen = 0;
    PyArrayObject *x = read_numbers(args, nargs, kwnames, dims, &count);
    if (!x || count != PyArray_NDIM(x))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        dims[i] += dims[i] < 0 ? count : 0;
        if (dims[i] < 0 || dims[i] >= count || seen >> dims[i] & 1)
            return NULL;
        seen |= UINT64_C(1) << dims[i];
    }
    return shown(self->known[SHOW], args[0], "dims", tuple_of(dims, (int)count));
}

/* order.py: transpose(input, dim0, dim1) and its other names; it knows whether the first dim moves to the place of the second alone,
   as of movedim */
static PyObject *run_transposed(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    npy_intp dims[NPY_MAXDIMS];
    if (nargs != 3 || kwnames || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)))
        return NULL;
    const int ndim = PyArray_NDIM((PyArrayObject *)SLOT(args[0], NATIVE));
    const Py_ssize_t one = ndim ? wrapped(args[1], ndim) : NO_DIM, other = ndim ? wrapped(args[2], ndim) : NO_DIM;
    if (one == NO_DIM || other == NO_DIM)
        return NULL;
    for (int i = 0; i < ndim; i++)
        dims[i] = i;
    for (Py_ssize_t i = one; self->known[1] == Py_True && i != other; i += one < other ? 1 : -1)
        dims[i] = dims[i + (one < other ? 1 : -1)];
    if (self->known[1] != Py_True)
        dims[one] = other;
    dims[other] = one;
    return shown(self->known[SHOW], args[0], "dims", tuple_of(dims, ndim));
}

/* views_part.py: as_strided(input, size, stride), which knows what makes the options, and the view; a place in memory is asked of the
   Python, where the compiler hears of it */
static PyObject *run_as_strided(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { OPTIONS = 1, GIVEN = 3 };
    static PyObject *name, *words;
    if (nargs < 3 || nargs > 4 || (nargs == 4 && args[3] != Py_None) || kwnames || !is_whole(args[0]) ||
        (!name && !(name = PyUnicode_InternFromString("as_strided"))) ||
        (!words && !(words = PyTuple_Pack(3, shortcut_names[A_SHAPE], PyUnicode_InternFromString("strides"), shortcut_names[A_OFFSET]))))
        return NULL;
    for (int i = 1; i < 3; i++)
        if (!PyTuple_CheckExact(args[i]) && !PyList_CheckExact(args[i]))
            return NULL;
    PyObject *size = PySequence_Tuple(args[1]), *stride = PySequence_Tuple(args[2]), *given[GIVEN + 1] = {NULL}, *made = NULL;
    PyObject *const asked[] = {args[0], size, stride, Py_None};
    PyObject *options = size && stride ? PyObject_Vectorcall(self->known[OPTIONS], asked, 4, NULL) : NULL;
    if (options && PyDict_Check(options)) {
        given[0] = SLOT(args[0], NATIVE);
        for (int i = 0; i < GIVEN; i++)
            given[1 + i] = PyDict_GetItemWithError(options, PyTuple_GET_ITEM(words, i));
    }
    PyObject *native = given[1] && given[2] && given[3] ? run_kernel(SLOT(args[0], DEVICE), name, given, 1, words) : NULL;
    if (native) {
        PyObject *const call[] = {args[0], options, native};
        made = PyObject_Vectorcall(self->known[SHOW], call, 3, NULL);
    }
    Py_XDECREF(size);
    Py_XDECREF(stride);
    Py_XDECREF(options);
    Py_XDECREF(native);
    return made;
}

const shortcut_spec shown_shortcuts[] = {
    {"expanded", run_expanded}, {"viewed", run_viewed}, {"permuted", run_permuted}, {"transposed", run_transposed}, {"as_strided", run_as_strided}, {NULL, NULL},
};
