/* Looks at the windows of convolutions and pools that find nothing wrong, and images whose elements are dealt out; what may be
   wrong, the function in Python says. */
#include "shortcuts.h"

enum { DIMS = 3 };

static bool all_ints(PyObject *sizes) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sizes); i++)
        if (!PyLong_CheckExact(PySequence_Fast_GET_ITEM(sizes, i)))
            return false;
    return true;
}

/* An int for each of some dims, or a tuple or list of one for each, as a tuple; NULL where it is neither. */
static PyObject *spread(PyObject *value, Py_ssize_t ndim) {
    const bool one = PyLong_CheckExact(value);
    if (!one && ((!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) || PySequence_Fast_GET_SIZE(value) != ndim ||
                 !all_ints(value)))
        return NULL;
    if (PyTuple_CheckExact(value))
        return Py_NewRef(value);
    PyObject *made = PyTuple_New(ndim);
    for (Py_ssize_t i = 0; made && i < ndim; i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(one ? value : PyList_GET_ITEM(value, i)));
    return made;
}

/* conv.py: spread(op, name, value, ndim) */
static PyObject *run_spread(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const long ndim = nargs == 4 && !kwnames && PyLong_CheckExact(args[3]) ? PyLong_AsLong(args[3]) : 0;
    return ndim < 1 || ndim > DIMS ? NULL : spread(args[2], ndim);
}

/* Numbers of a tuple of `count` ints that are small enough for sums of their products; false where it is none. */
static bool numbers(PyObject *tuple, Py_ssize_t count, Py_ssize_t *made) {
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != count)
        return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        int overflow;
        PyObject *one = PyTuple_GET_ITEM(tuple, i);
        made[i] = PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : INT64_MIN;
        if (made[i] < INT32_MIN || made[i] > INT32_MAX)
            return false;
    }
    return true;
}

/* conv.py: positive(op, name, values, least=1) */
static PyObject *run_positive(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 3 || nargs > 4 || kwnames || !PyTuple_CheckExact(args[2]) || (nargs == 4 && !PyLong_CheckExact(args[3])))
        return NULL;
    Py_ssize_t values[DIMS];
    const Py_ssize_t count = PyTuple_GET_SIZE(args[2]), least = nargs == 4 ? PyLong_AsLong(args[3]) : 1;
    if (count > DIMS || !numbers(args[2], count, values))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (values[i] < least)
            return NULL;
    Py_RETURN_NONE;
}

/* conv.py: window_counts(sizes, kernel, stride, padding, dilation), of steps of at least one */
static PyObject *run_window_counts(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t given[5][DIMS];
    const Py_ssize_t count = nargs == 5 && !kwnames && PyTuple_CheckExact(args[0]) ? PyTuple_GET_SIZE(args[0]) : 0;
    if (count < 1 || count > DIMS)
        return NULL;
    for (int i = 0; i < 5; i++)
        if (!numbers(args[i], count, given[i]))
            return NULL;
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        const Py_ssize_t free = given[0][i] + 2 * given[3][i] - given[4][i] * (given[1][i] - 1) - 1;
        PyObject *one = given[2][i] < 1 || free < 0 ? NULL : PyLong_FromSsize_t(free / given[2][i] + 1);
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* conv.py: _turned_windows(op, sizes, window, stride, padding, output_padding, dilation), of numbers that are right */
static PyObject *run_turned_windows(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { SIZES, WINDOW, STRIDE, PADDING, EXTRA, DILATION, GIVEN };
    Py_ssize_t n[GIVEN][DIMS];
    const Py_ssize_t count = nargs == GIVEN + 1 && !kwnames && PyTuple_CheckExact(args[1]) ? PyTuple_GET_SIZE(args[1]) : 0;
    PyObject *tuples[GIVEN] = {NULL}, *made = count && count <= DIMS ? PyTuple_New(count) : NULL;
    bool usual = made;
    for (int k = 0; usual && k < GIVEN; k++)
        usual = (tuples[k] = spread(args[1 + k], count)) && numbers(tuples[k], count, n[k]);
    for (Py_ssize_t i = 0; usual && i < count; i++) {
        const Py_ssize_t stride = n[STRIDE][i], dilation = n[DILATION][i], most = stride > dilation ? stride : dilation;
        const Py_ssize_t all = (n[SIZES][i] - 1) * stride - 2 * n[PADDING][i] + dilation * (n[WINDOW][i] - 1) + n[EXTRA][i] + 1;
        PyObject *size = stride < 1 || dilation < 1 || n[PADDING][i] < 0 || n[EXTRA][i] < 0 || n[EXTRA][i] >= most || all < 1
                             ? NULL : PyLong_FromSsize_t(all);
        usual = size;
        if (size)
            PyTuple_SET_ITEM(made, i, size);
    }
    PyObject *found = usual ? PyTuple_Pack(4, tuples[STRIDE], tuples[PADDING], tuples[DILATION], made) : NULL;
    for (int k = 0; k < GIVEN; k++)
        Py_XDECREF(tuples[k]);
    Py_XDECREF(made);
    return found;
}

/* The array of a tensor of that dtype and so many dims; NULL where it is none. */
static PyArrayObject *array_of(PyObject *tensor, PyObject *dtype, Py_ssize_t ndim) {
    if (!is_whole(tensor) || SLOT(tensor, DTYPE) != dtype || !PyArray_CheckExact(SLOT(tensor, NATIVE)))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)SLOT(tensor, NATIVE);
    return PyArray_NDIM(array) == ndim ? array : NULL;
}

/* conv.py: checked(op, ndim, input, weight, bias, transposed, groups) of tensors with a batch dim */
static PyObject *run_checked(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    int overflow;
    if (nargs != 7 || kwnames || !PyLong_CheckExact(args[1]) || !PyLong_CheckExact(args[6]) || !is_whole(args[2]))
        return NULL;
    const Py_ssize_t ndim = PyLong_AsLong(args[1]), groups = PyLong_AsLongAndOverflow(args[6], &overflow);
    PyObject *dtype = SLOT(args[2], DTYPE);
    PyArrayObject *x = array_of(args[2], dtype, ndim + 2), *weight = array_of(args[3], dtype, ndim + 2);
    PyArrayObject *bias = args[4] == Py_None ? NULL : array_of(args[4], dtype, 1);
    if (!x || !weight || (!bias && args[4] != Py_None) || PyArray_TYPE(x) == NPY_BOOL || groups < 1 || overflow)
        return NULL;
    for (int i = 2; i < ndim + 2; i++)
        if (PyArray_DIM(weight, i) < 1)
            return NULL;
    const npy_intp first = PyArray_DIM(weight, 0), second = PyArray_DIM(weight, 1);
    npy_intp both;
    if (first % groups || __builtin_mul_overflow(second, groups, &both))
        return NULL;
    const bool transposed = args[5] == Py_True;
    const npy_intp outs = transposed ? both : first;
    if (PyArray_DIM(x, 1) != (transposed ? first : both) || !outs || (bias && PyArray_DIM(bias, 0) != outs))
        return NULL;
    Py_RETURN_NONE;
}

/* pool.py: batched(op, input, ndim) of a tensor that has a batch dim */
static PyObject *run_batched(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 3 || kwnames || !is_whole(args[1]) || !PyArray_CheckExact(SLOT(args[1], NATIVE)) || !PyLong_CheckExact(args[2]))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[1], NATIVE);
    if (PyArray_NDIM(x) != PyLong_AsLong(args[2]) + 2)
        return NULL;
    for (int i = 1; i < PyArray_NDIM(x); i++)
        if (!PyArray_DIM(x, i))
            return NULL;
    return PyTuple_Pack(2, args[1], Py_True);
}

/* An int, or a tuple of them. */
static bool of_ints(PyObject *one) {
    if (!PyTuple_CheckExact(one))
        return PyLong_CheckExact(one);
    bool ints = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(one); i++)
        ints &= PyLong_CheckExact(PyTuple_GET_ITEM(one, i));
    return ints;
}

/* An array seen in other sizes; a dense one without strides. */
static PyArrayObject *seen(PyArrayObject *x, int ndim, const npy_intp *shape, const npy_intp *strides) {
    PyArray_Descr *dtype = PyArray_DESCR(x);
    Py_INCREF(dtype);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, strides, PyArray_DATA(x), PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE, NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(x)))
        Py_CLEAR(made);
    return (PyArrayObject *)made;
}

/* What the short ways of pools know: what checks windows, the op and the name of its kernel, apply and apply_into. */
enum { CHECKED, OP, KERNEL, APPLY, APPLY_INTO };

/* A pool of an image of floats without a batch dim, off the tape, which its array gets and loses again. */
static PyObject *pool_of_one(const shortcut *self, PyObject *input, PyObject *options) {
    PyArrayObject *x = (PyArrayObject *)SLOT(input, NATIVE), *whole, *part = NULL;
    const int ndim = PyArray_NDIM(x);
    npy_intp shape[DIMS + 2] = {1}, strides[DIMS + 2] = {PyArray_NBYTES(x)};
    memcpy(shape + 1, PyArray_DIMS(x), (size_t)ndim * sizeof *shape);
    memcpy(strides + 1, PyArray_STRIDES(x), (size_t)ndim * sizeof *strides);
    PyObject *kernel = kernel_of(SLOT(input, DEVICE), self->known[KERNEL]), *native = NULL, *made = NULL;
    whole = kernel && PyObject_IsTrue(kernel) == 1 ? seen(x, ndim + 1, shape, strides) : NULL;
    if (whole)
        native = PyObject_VectorcallDict(kernel, (PyObject *const *)&whole, 1, options);
    if (native && PyArray_CheckExact(native) && PyArray_NDIM((PyArrayObject *)native) == ndim + 1)
        part = seen((PyArrayObject *)native, ndim, PyArray_DIMS((PyArrayObject *)native) + 1, PyArray_STRIDES((PyArrayObject *)native) + 1);
    if (part)
        made = new_tensor((PyObject *)part, SLOT(input, DTYPE), SLOT(input, DEVICE));
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* the function makes room, or says what is wrong */
    Py_XDECREF(kernel);
    Py_XDECREF(whole);
    Py_XDECREF(native);
    Py_XDECREF(part);
    return made;
}

/* A pool of a tensor with so many dims behind the channels, of windows in ints. */
static PyObject *pooled(const shortcut *self, PyObject *name, PyObject *dims, PyObject *input, PyObject *const *window, PyObject *ceil, PyObject *means,
                        PyObject *out) {
    if (!PyLong_CheckExact(dims) || !is_whole(input) || !PyArray_CheckExact(SLOT(input, NATIVE)) || !of_ints(window[0]) ||
        (window[1] != Py_None && !of_ints(window[1])) || !of_ints(window[2]) || !of_ints(window[3]) || !PyBool_Check(ceil))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)SLOT(input, NATIVE);
    const long count = PyLong_AsLong(dims);
    const int ndim = PyArray_NDIM(x);
    const bool one = ndim == count + 1;
    if (count < 1 || count > DIMS || (!one && ndim != count + 2) || PyArray_TYPE(x) == NPY_BOOL || PyArray_ISCOMPLEX(x) ||
        (one && (out != Py_None || SLOT(input, NODE) != Py_None || PyArray_ISINTEGER(x) || counts(INFERENCE))))
        return NULL;
    npy_intp sizes[DIMS];
    for (int i = 0; i <= count; i++) {
        const npy_intp size = PyArray_DIM(x, ndim - 1 - (int)count + i);
        if (!size)
            return NULL;
        if (i)
            sizes[i - 1] = size;
    }
    PyObject *all = tuple_of(sizes, (int)count), *made = NULL;
    PyObject *const given[] = {name, all, window[0], window[1], window[2], window[3], ceil, Py_None, means};
    PyObject *options = all ? PyObject_Vectorcall(self->known[CHECKED], given, 9, NULL) : NULL, *inputs = options && !one ? PyTuple_Pack(1, input) : NULL;
    PyObject *const call[] = {self->known[OP], inputs, options, SLOT(input, DTYPE), out};
    if (options && one)
        made = pool_of_one(self, input, options);
    else if (inputs)
        made = out == Py_None ? PyObject_Vectorcall(self->known[APPLY], call, 3, NULL) : PyObject_Vectorcall(self->known[APPLY_INTO], call, 5, NULL);
    if (made == Py_None) /* what is unusual about the place is for the function to see */
        Py_CLEAR(made);
    Py_XDECREF(all);
    Py_XDECREF(options);
    Py_XDECREF(inputs);
    return made;
}

/* pool.py: max_pool2d(input, kernel_size, stride, ...) and other pools, of real numbers, without indices or a divisor; they know besides their
   name, how many dims have windows, and their words with what those are where they are left out. */
static PyObject *run_pool(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { NAME = APPLY_INTO + 1, NDIM, NAMES, DEFAULTS };
    enum { SIZE, STRIDE, PADDING, DILATION, CEIL, INDICES, MEAN_CEIL = DILATION, COUNTS = CEIL, DIVISOR = INDICES, WORDS };
    static PyObject *one;
    PyObject *values[WORDS] = {NULL}, *out = Py_None, *means = NULL, *made = NULL;
    const Py_ssize_t count = PyTuple_GET_SIZE(self->known[NAMES]);
    const bool largest = PyTuple_GET_ITEM(self->known[DEFAULTS], CEIL) == Py_False; /* where of means stands whether padding counts */
    if (nargs < 1 || nargs - 1 > count || (!one && !(one = PyLong_FromLong(1))))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = i < nargs - 1 ? args[1 + i] : PyTuple_GET_ITEM(self->known[DEFAULTS], i);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        Py_ssize_t i = nargs - 1;
        while (i < count && PyTuple_GET_ITEM(self->known[NAMES], i) != PyTuple_GET_ITEM(kwnames, k))
            i++;
        if (i < count)
            values[i] = args[nargs + k];
        else if (!largest && count > DIVISOR && PyTuple_GET_ITEM(kwnames, k) == shortcut_names[A_OUT])
            out = args[nargs + k];
        else
            return NULL;
    }
    if (largest ? values[INDICES] != Py_False : !PyBool_Check(values[COUNTS]) || (count > DIVISOR && values[DIVISOR] != Py_None))
        return NULL;
    PyObject *const window[] = {values[SIZE], values[STRIDE], values[PADDING], largest ? values[DILATION] : one};
    if (largest && is_whole(args[0]) && PyArray_Check(SLOT(args[0], NATIVE)) && PyArray_ISINTEGER((PyArrayObject *)SLOT(args[0], NATIVE)))
        return NULL;
    if (largest || (means = PyTuple_Pack(2, values[COUNTS], Py_None)))
        made = pooled(self, self->known[NAME], self->known[NDIM], args[0], window, values[largest ? CEIL : MEAN_CEIL], largest ? Py_None : means, out);
    Py_XDECREF(means);
    return made;
}

/* adaptive_pool.py: _wanted(op, sizes, output_size), of an int, a tuple or a list, in which None keeps a size */
static PyObject *run_wanted(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool usual = nargs == 3 && !kwnames && PyTuple_CheckExact(args[1]);
    const Py_ssize_t ndim = usual ? PyTuple_GET_SIZE(args[1]) : 0;
    if (ndim < 1 || ndim > DIMS)
        return NULL;
    const bool one = PyLong_CheckExact(args[2]), several = PyTuple_CheckExact(args[2]) || PyList_CheckExact(args[2]);
    if (!one && (!several || PySequence_Fast_GET_SIZE(args[2]) != ndim))
        return NULL;
    PyObject *made = PyTuple_New(ndim);
    for (Py_ssize_t i = 0; made && i < ndim; i++) {
        PyObject *size = one ? args[2] : PySequence_Fast_GET_ITEM(args[2], i);
        int overflow;
        size = size == Py_None ? PyTuple_GET_ITEM(args[1], i) : size;
        if (PyLong_CheckExact(size) && PyLong_AsLongAndOverflow(size, &overflow) >= 0 && !overflow)
            PyTuple_SET_ITEM(made, i, Py_NewRef(size));
        else
            Py_CLEAR(made);
    }
    return made;
}

enum { DEALT_DIMS = 8 };

/* A dense tensor off the tape in the shape `split`, its dims in another order, as new memory of `shape`, which has `ndim` dims. */
static PyObject *dealt(const shortcut *self, PyObject *input, int count, const npy_intp *split, const int *order, int ndim,
                       const npy_intp *shape) {
    PyArrayObject *x = (PyArrayObject *)Py_NewRef(SLOT(input, NATIVE)), *turned, *whole = NULL;
    npy_intp steps[DEALT_DIMS], sizes[DEALT_DIMS], strides[DEALT_DIMS], step = PyArray_ITEMSIZE(x);
    for (int i = count - 1; i >= 0; step *= split[i--])
        steps[i] = step;
    for (int i = 0; i < count; i++) {
        sizes[i] = split[order[i]];
        strides[i] = steps[order[i]];
    }
    PyObject *kernel = kernel_of(SLOT(input, DEVICE), self->known[0]), *copy = NULL, *made = NULL;
    turned = kernel ? seen(x, count, sizes, strides) : NULL;
    if (turned)
        copy = PyObject_CallOneArg(kernel, (PyObject *)turned);
    if (copy && copy != (PyObject *)turned && PyArray_CheckExact(copy) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)copy))
        whole = seen((PyArrayObject *)copy, ndim, shape, NULL);
    if (whole)
        made = new_tensor((PyObject *)whole, SLOT(input, DTYPE), SLOT(input, DEVICE));
    if (!made && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the function makes room, and asks again */
    Py_DECREF(x);
    Py_XDECREF(kernel);
    Py_XDECREF(turned);
    Py_XDECREF(copy);
    Py_XDECREF(whole);
    return made;
}

/* The array of a dense tensor with elements, off the tape, and a number over 1; NULL where it is none. */
static PyArrayObject *dealt_of(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int least, npy_intp *number) {
    if (nargs != 2 || kwnames || !is_whole(args[0]) || SLOT(args[0], NODE) != Py_None || counts(INFERENCE) ||
        !PyArray_CheckExact(SLOT(args[0], NATIVE)) || !PyLong_CheckExact(args[1]))
        return NULL;
    int overflow;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE);
    *number = PyLong_AsLongAndOverflow(args[1], &overflow);
    return PyArray_NDIM(x) < least || PyArray_NDIM(x) > DEALT_DIMS - 2 || !PyArray_SIZE(x) || !PyArray_IS_C_CONTIGUOUS(x) ||
                   *number < 2 || *number > INT32_MAX
               ? NULL
               : x;
}

/* pad.py: _pixel_shuffle(input, upscale_factor), and the other way; they know the name of the kernel that copies */
static PyObject *run_pixels(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, bool back) {
    npy_intp r, split[DEALT_DIMS], shape[DEALT_DIMS];
    PyArrayObject *x = dealt_of(args, nargs, kwnames, 3, &r);
    if (!x)
        return NULL;
    const int ndim = PyArray_NDIM(x), n = ndim - 3;
    int order[DEALT_DIMS];
    const npy_intp *sizes = PyArray_DIMS(x);
    if (back ? sizes[n + 1] % r || sizes[n + 2] % r : sizes[n] % (r * r))
        return NULL;
    for (int i = 0; i < n; i++) {
        order[i] = i;
        split[i] = shape[i] = sizes[i];
    }
    static const int orders[2][5] = {{0, 3, 1, 4, 2}, {0, 2, 4, 1, 3}};
    for (int i = 0; i < 5; i++)
        order[n + i] = n + orders[back][i];
    const npy_intp channels = sizes[n], height = sizes[n + 1], width = sizes[n + 2];
    const npy_intp parts[2][5] = {{channels / (r * r), r, r, height, width}, {channels, height / r, r, width / r, r}};
    const npy_intp ends[2][3] = {{channels / (r * r), height * r, width * r}, {channels * r * r, height / r, width / r}};
    memcpy(split + n, parts[back], sizeof parts[back]);
    memcpy(shape + n, ends[back], sizeof ends[back]);
    return dealt(self, args[0], n + 5, split, order, ndim, shape);
}

static PyObject *run_pixel_shuffle(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return run_pixels(self, args, nargs, kwnames, false);
}

static PyObject *run_pixel_unshuffle(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return run_pixels(self, args, nargs, kwnames, true);
}

/* pad.py: _channel_shuffle(input, groups) */
static PyObject *run_channel_shuffle(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    npy_intp groups, split[DEALT_DIMS];
    PyArrayObject *x = dealt_of(args, nargs, kwnames, 3, &groups);
    if (!x || PyArray_DIM(x, 1) % groups)
        return NULL;
    const int ndim = PyArray_NDIM(x);
    int order[DEALT_DIMS] = {0, 2, 1};
    split[0] = PyArray_DIM(x, 0);
    split[1] = groups;
    split[2] = PyArray_DIM(x, 1) / groups;
    for (int i = 3; i <= ndim; i++) {
        order[i] = i;
        split[i] = PyArray_DIM(x, i - 1);
    }
    return dealt(self, args[0], ndim + 1, split, order, ndim, PyArray_DIMS(x));
}

const shortcut_spec window_shortcuts[] = {
    {"spread", run_spread}, {"positive", run_positive}, {"window_counts", run_window_counts}, {"batched", run_batched},
    {"turned_windows", run_turned_windows}, {"wanted_sizes", run_wanted}, {"convolution_checked", run_checked}, {"pool", run_pool},
    {"pixel_shuffle", run_pixel_shuffle}, {"pixel_unshuffle", run_pixel_unshuffle}, {"channel_shuffle", run_channel_shuffle},
    {NULL, NULL},
};
