/* Views: the same memory under other sizes and strides, or a part of it. No element is touched, so any dtype will do. And what
   writes to a view that nobody else sees. */
#include "rows.h"

#include <string.h>

enum { SHAPE, KEY, DIMS, DIM, STRIDES, OFFSET, DIM1, DIM2, SIZE, STEP, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"shape", "key", "dims", "dim", "strides", "offset", "dim1", "dim2", "size", "step"};

/* An ndarray over the memory of another, from `data` on, with elements of a type; takes the reference to that. */
static PyObject *show_as(PyArray_Descr *descr, PyArrayObject *x, int ndim, const npy_intp *shape, const npy_intp *strides,
                         char *data) {
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, data,
                                          PyArray_FLAGS(x) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED), NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef((PyObject *)x)))
        Py_CLEAR(made);
    return made;
}

/* The same with the elements of x. */
static PyObject *show(PyArrayObject *x, int ndim, const npy_intp *shape, const npy_intp *strides, char *data) {
    return show_as((PyArray_Descr *)Py_NewRef(PyArray_DESCR(x)), x, ndim, shape, strides, data);
}

/* The one array of a call and its options; NULL where it is not an array of at most NATIVE_DIMS dims with elements: one
   without has strides of 0, which say nothing. */
static PyArrayObject *taken(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **options) {
    PyArrayObject *x = (PyArrayObject *)args[0];
    return nargs == 1 && kwnames && PyArray_CheckExact(args[0]) && PyArray_NDIM(x) <= NATIVE_DIMS && PyArray_SIZE(x) &&
                   native_options(args, nargs, kwnames, names, OPTIONS, options)
               ? x
               : NULL;
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

/* One of the dims, counted from the front. */
static bool dim_of(PyObject *option, int ndim, npy_intp *dim) { return whole(option, dim) && *dim >= 0 && *dim < ndim; }

/* All elements */

/* The strides of the elements of x in another shape of as many; false where only a copy could have it. Neighbouring dims of
   x that one step goes through make a piece, and each piece is cut into sizes of its own. */
static bool view_strides(PyArrayObject *x, int ndim, const npy_intp *shape, npy_intp *strides) {
    npy_intp step = PyArray_ITEMSIZE(x), piece = 1, filled = 1;
    int at = ndim - 1;
    bool begins = true;
    for (int i = PyArray_NDIM(x) - 1; i >= 0; i--) {
        if (begins)
            step = PyArray_STRIDE(x, i);
        begins = false; /* a dim of size 1 before another belongs to the piece, whose step is that of its last dim */
        piece *= PyArray_DIM(x, i);
        if (i && (PyArray_DIM(x, i - 1) == 1 || PyArray_STRIDE(x, i - 1) == piece * step))
            continue;
        for (; at >= 0 && (filled < piece || shape[at] == 1); at--) {
            strides[at] = filled * step;
            filled *= shape[at];
        }
        if (filled != piece)
            return false;
        piece = filled = 1;
        begins = true;
    }
    for (; at >= 0; at--) /* of an x without dims */
        strides[at] = step;
    return true;
}

static PyObject *run_view(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp shape[NATIVE_DIMS], strides[NATIVE_DIMS], count = 1;
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    const int ndim = x ? native_sizes(options[SHAPE], shape, NATIVE_DIMS) : -1;
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 1 || __builtin_mul_overflow(count, shape[i], &count))
            return NULL;
    if (ndim < 0 || count != PyArray_SIZE(x))
        return NULL;
    if (!view_strides(x, ndim, shape, strides))
        Py_RETURN_NONE;
    return show(x, ndim, shape, strides, PyArray_BYTES(x));
}

static PyObject *run_unsqueeze(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp dim, step = 0, shape[NATIVE_DIMS + 1], strides[NATIVE_DIMS + 1];
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    const bool stepped = x && !native_is_none(options[STEP]);
    if (!x || (stepped && (!whole(options[STEP], &step) || __builtin_mul_overflow(step, PyArray_ITEMSIZE(x), &step))) || !dim_of(options[DIM], PyArray_NDIM(x) + 1, &dim))
        return NULL;
    const int ndim = PyArray_NDIM(x);
    for (int i = 0; i < ndim; i++) {
        shape[i + (i >= dim)] = PyArray_DIM(x, i);
        strides[i + (i >= dim)] = PyArray_STRIDE(x, i);
    }
    strides[dim] = stepped ? step : dim < ndim ? shape[dim + 1] * strides[dim + 1] : PyArray_ITEMSIZE(x); /* the reach of what is behind */
    shape[dim] = 1;
    return show(x, ndim + 1, shape, strides, PyArray_BYTES(x));
}

static PyObject *run_permute(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp dims[NATIVE_DIMS], shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    unsigned seen = 0;
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    const int ndim = x ? native_sizes(options[DIMS], dims, NATIVE_DIMS) : -1;
    if (ndim < 0 || ndim != PyArray_NDIM(x))
        return NULL;
    for (int i = 0; i < ndim; i++) {
        if (dims[i] < 0 || dims[i] >= ndim || seen & 1u << dims[i])
            return NULL;
        seen |= 1u << dims[i];
        shape[i] = PyArray_DIM(x, (int)dims[i]);
        strides[i] = PyArray_STRIDE(x, (int)dims[i]);
    }
    return show(x, ndim, shape, strides, PyArray_BYTES(x));
}

static PyObject *run_expand(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    const int ndim = x ? native_sizes(options[SHAPE], shape, NATIVE_DIMS) : -1, extra = x ? ndim - PyArray_NDIM(x) : -1;
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

/* Some of them, or some more than once */

/* Ints and slices, as many as there are dims or fewer. */
static PyObject *run_index(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *key;
    npy_intp shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    int ndim = 0;
    bool nothing = false;
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    if (!x || !(key = options[KEY]) || !PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) > PyArray_NDIM(x))
        return NULL;
    char *data = PyArray_BYTES(x);
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        PyObject *one = i < PyTuple_GET_SIZE(key) ? PyTuple_GET_ITEM(key, i) : NULL;
        const npy_intp size = PyArray_DIM(x, i), stride = PyArray_STRIDE(x, i);
        Py_ssize_t start = 0, stop = size, step = 1, count = size;
        if (one && PyLong_CheckExact(one)) {
            if (!whole(one, &start))
                return NULL;
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
        nothing |= !count;
        data += start * stride;
        shape[ndim] = count;
        strides[ndim++] = stride * step;
    }
    if (nothing) { /* it begins where it would with elements, unless that is not in the memory */
        PyArrayObject *all = native_owner(x);
        if (!PyArray_ISONESEGMENT(all) || data < PyArray_BYTES(all) || data > PyArray_BYTES(all) + PyArray_NBYTES(all))
            return NULL;
    }
    return show(x, ndim, shape, strides, data);
}

static PyObject *diagonal_of(PyArrayObject *x, PyObject *const *options) {
    npy_intp offset, first, second, shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    int ndim = 0;
    if (!whole(options[OFFSET], &offset) || !dim_of(options[DIM1], PyArray_NDIM(x), &first) ||
        !dim_of(options[DIM2], PyArray_NDIM(x), &second) || first == second)
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

static PyObject *run_diagonal(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    return x ? diagonal_of(x, options) : NULL;
}

/* Zeros of a shape with x on a diagonal. */
static PyObject *run_undiagonal(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp shape[NATIVE_DIMS];
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    const native_type type = x ? native_array_type(args[0]) : TYPE_NONE, parts = x ? native_complex_type(args[0]) : TYPE_NONE;
    const int ndim = type != TYPE_NONE || parts != TYPE_NONE ? native_sizes(options[SHAPE], shape, NATIVE_DIMS) : -1;
    PyArrayObject *made = ndim < 0 || ndim != PyArray_NDIM(x) + 1 ? NULL
                          : parts != TYPE_NONE                    ? native_empty_complex(ndim, shape, parts)
                                                                  : native_empty(ndim, shape, type);
    PyArrayObject *there = made ? (PyArrayObject *)diagonal_of(made, options) : NULL;
    if (made)
        memset(PyArray_DATA(made), 0, (size_t)PyArray_NBYTES(made));
    PyObject *copied = NULL;
    if (there && PyArray_SAMESHAPE(there, x))
        copied = parts == TYPE_NONE ? native_copied_over(x, there) : PyArray_CopyInto(there, x) ? NULL : Py_NewRef(there);
    if (!copied)
        Py_CLEAR(made);
    Py_XDECREF(copied);
    Py_XDECREF(there);
    return (PyObject *)made;
}

/* Slices along a dim, `step` apart: how many there are in its place, their elements last. */
static PyObject *run_windows(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp dim, size, step, shape[NATIVE_DIMS + 1], strides[NATIVE_DIMS + 1];
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    if (!x || !dim_of(options[DIM], PyArray_NDIM(x), &dim) || !whole(options[SIZE], &size) || !whole(options[STEP], &step) ||
        size < 1 || size > PyArray_DIM(x, (int)dim) || step < 1)
        return NULL;
    const int ndim = PyArray_NDIM(x);
    for (int i = 0; i < ndim; i++) {
        shape[i] = PyArray_DIM(x, i);
        strides[i] = PyArray_STRIDE(x, i);
    }
    shape[ndim] = size;
    strides[ndim] = strides[dim];
    shape[dim] = (shape[dim] - size) / step + 1;
    if (__builtin_mul_overflow(strides[dim], step, &strides[dim]))
        return NULL;
    return show(x, ndim + 1, shape, strides, PyArray_BYTES(x));
}

static PyObject *run_as_strided(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp offset, shape[NATIVE_DIMS], strides[NATIVE_DIMS];
    PyArrayObject *x = taken(args, nargs, kwnames, options);
    const int ndim = x && whole(options[OFFSET], &offset) ? native_sizes(options[SHAPE], shape, NATIVE_DIMS) : -1;
    if (ndim < 0 || native_sizes(options[STRIDES], strides, NATIVE_DIMS) != ndim)
        return NULL;
    PyArrayObject *all = native_owner(x);
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

/* Complex numbers as pairs of floats along a new last dim. */
static PyObject *run_as_real(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *x = (PyArrayObject *)args[0];
    npy_intp shape[NATIVE_DIMS + 1], strides[NATIVE_DIMS + 1];
    if (nargs != 1 || kwnames || !PyArray_CheckExact(args[0]) || PyArray_NDIM(x) > NATIVE_DIMS || !PyArray_SIZE(x) ||
        !PyArray_ISNOTSWAPPED(x) || (PyArray_TYPE(x) != NPY_CFLOAT && PyArray_TYPE(x) != NPY_CDOUBLE))
        return NULL;
    const int ndim = PyArray_NDIM(x);
    for (int i = 0; i < ndim; i++) {
        shape[i] = PyArray_DIM(x, i);
        strides[i] = PyArray_STRIDE(x, i);
    }
    shape[ndim] = 2;
    strides[ndim] = PyArray_ITEMSIZE(x) / 2;
    return show_as(PyArray_DescrFromType(PyArray_TYPE(x) == NPY_CFLOAT ? NPY_FLOAT : NPY_DOUBLE), x, ndim + 1, shape, strides,
                   PyArray_BYTES(x));
}

/* Pairs of floats along the last dim, each beside the other, as complex numbers. */
static PyObject *run_as_complex(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (nargs != 1 || kwnames || !PyArray_CheckExact(args[0]) || !PyArray_NDIM(x) || !PyArray_SIZE(x) ||
        !PyArray_ISNOTSWAPPED(x) || (PyArray_TYPE(x) != NPY_FLOAT && PyArray_TYPE(x) != NPY_DOUBLE))
        return NULL;
    const int last = PyArray_NDIM(x) - 1;
    if (PyArray_DIM(x, last) != 2 || PyArray_STRIDE(x, last) != PyArray_ITEMSIZE(x))
        return NULL;
    return show_as(PyArray_DescrFromType(PyArray_TYPE(x) == NPY_FLOAT ? NPY_CFLOAT : NPY_CDOUBLE), x, last, PyArray_DIMS(x),
                   PyArray_STRIDES(x), PyArray_BYTES(x));
}

int view_init(void) {
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec view_kernels[] = {
    {"view", run_view, NULL},
    {"unsqueeze", run_unsqueeze, NULL},
    {"permute", run_permute, NULL},
    {"expand", run_expand, NULL},
    {"index", run_index, NULL},
    {"diagonal", run_diagonal, NULL},
    {"undiagonal", run_undiagonal, NULL},
    {"windows", run_windows, NULL},
    {"as_strided", run_as_strided, NULL},
    {"view_as_real", run_as_real, NULL},
    {"view_as_complex", run_as_complex, NULL},
    {NULL, NULL, NULL},
};
