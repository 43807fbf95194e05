/* Convolutions in one to three dims and their two gradients: what they take, and which way they are made. */
#include "conv_ways.h"
#include "rows.h"

enum { COUNTS, SHAPE, STRIDE, PADDING, DILATION, GROUPS, OPTIONS };
static PyObject *names[OPTIONS];
static const char by_rule; /* the data of kernels that never ask which way was measured */

/* Arguments */

static bool read_three(PyObject *given, int dims, ptrdiff_t fill, ptrdiff_t *made) {
    if (!given || !PyTuple_Check(given) || PyTuple_GET_SIZE(given) != dims)
        return false;
    for (int d = 0; d < 3 - dims; d++)
        made[d] = fill;
    for (int d = 0; d < dims; d++) {
        made[3 - dims + d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, d));
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Sizes from shapes and options; false where it is not for us. `shape` is that of the input, `window` that of the weight. */
static bool read_call(convolution *c, PyObject **given, int ndim, const npy_intp *shape, const npy_intp *window,
                      native_type type) {
    int dims = ndim - 2;
    if (dims < 1 || dims > 3 || !read_three(given[STRIDE], dims, 1, c->stride) ||
        !read_three(given[PADDING], dims, 0, c->padding) || !read_three(given[DILATION], dims, 1, c->dilation) ||
        !given[GROUPS])
        return false;
    c->groups = PyLong_AsSsize_t(given[GROUPS]);
    if (c->groups < 1) {
        PyErr_Clear();
        return false;
    }
    for (int d = 0; d < 3; d++) {
        int at = d - (3 - dims);
        c->sizes[d] = at < 0 ? 1 : shape[2 + at];
        c->kernel[d] = at < 0 ? 1 : window[2 + at];
        if (c->sizes[d] < 1 || c->kernel[d] < 1 || c->padding[d] > PTRDIFF_MAX / 16) /* padded sizes are sums of some of these */
            return false;
    }
    c->images = shape[0];
    c->channels = window[1];
    c->outs = window[0] / c->groups;
    c->taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    c->type = type;
    c->size = TYPE_SIZE[type];
    return c->images > 0 && c->channels > 0 && c->outs > 0 && c->taps <= CONV_MOST_TAPS;
}

/* Whether arrays of that type are for us: of integers those of two of the three kinds. */
static bool is_taken(PyObject *object, conv_wanted wanted, native_type *type) {
    *type = native_array_type(object);
    const bool known = *type != TYPE_NONE && *type != TYPE_F16 && *type != TYPE_BOOL;
    return known && (native_is_floating(*type) || wanted != CONV_WEIGHT_GRADIENT);
}

/* An array's steps in elements, for a dim of its own each: image, channel, depth, height, width. */
static bool read_steps(PyArrayObject *array, size_t size, ptrdiff_t *steps) {
    int ndim = PyArray_NDIM(array);
    for (int i = 0; i < 5; i++) {
        int at = i < 2 ? i : i - (5 - ndim);
        npy_intp step = at < 2 && i >= 2 ? 0 : PyArray_STRIDE(array, at);
        if (step % (npy_intp)size)
            return false;
        steps[i] = step / (npy_intp)size;
    }
    return true;
}

/* A step of one for one that leads out of the padded input, along dims with a single window: nothing is as long as a step then. */
static void shorten_steps(convolution *c) {
    for (int d = 0; d < 3; d++)
        if (c->counts[d] == 1 && c->stride[d] > c->sizes[d] + 2 * c->padding[d])
            c->stride[d] = 1;
}

/* What an operand and a result are to a call. */
static void point_to(convolution *c, PyArrayObject *source, PyArrayObject *other, PyArrayObject *made) {
    const void *from = PyArray_DATA(source), *by = PyArray_DATA(other), *to = PyArray_DATA(made);
    c->x = c->wanted == CONV_INPUT_GRADIENT ? to : from;
    c->weight = c->wanted == CONV_WEIGHT_GRADIENT ? to : by;
    c->y = c->wanted == CONV_SUMS ? to : c->wanted == CONV_INPUT_GRADIENT ? from : by;
}

/* A new array of that shape with the channels innermost, from a source that has them so. */
static PyObject *run_channels(convolution *c, PyArrayObject *source, PyArrayObject *weight, int ndim, const npy_intp *shape) {
    static const int axes[3][5] = {{0, 2, 1}, {0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    PyArrayObject *by = native_dense((PyObject *)weight);
    PyArrayObject *made = by ? native_empty_ordered(ndim, shape, c->type, axes[ndim - 3]) : NULL;
    if (made) {
        point_to(c, source, by, made);
        if (!channels_run(c))
            Py_CLEAR(made); /* NumPy's turn */
    }
    Py_XDECREF(by);
    return (PyObject *)made;
}

/* A new array of that shape, of integers. */
static PyObject *run_integers(convolution *c, PyArrayObject *source, PyArrayObject *other, int ndim, const npy_intp *shape) {
    PyArrayObject *from = native_dense((PyObject *)source), *by = from ? native_dense((PyObject *)other) : NULL;
    PyArrayObject *made = by ? native_empty(ndim, shape, c->type) : NULL;
    if (made) {
        point_to(c, from, by, made);
        integers_run(c);
    }
    Py_XDECREF(from);
    Py_XDECREF(by);
    return (PyObject *)made;
}

/* A new array of that shape, from what the windows lie in and the other operand. */
static PyObject *run(const native_kernel *kernel, convolution *c, PyArrayObject *source, PyArrayObject *other, int ndim,
                     const npy_intp *shape) {
    shorten_steps(c);
    if (!native_is_floating(c->type))
        return run_integers(c, source, other, ndim, shape);
    const bool halves = c->type == TYPE_BF16;
    if (halves && !conv_takes_bf16(c))
        return NULL;
    conv_way way = halves ? CONV_WAYS : conv_ruled(c);
    if (!halves && read_steps(source, c->size, c->steps) && channels_fits(c))
        return run_channels(c, source, other, ndim, shape);
    const bool measure = !halves && kernel->data != &by_rule && conv_recall(c, &way);
    /* Sums over taps copy their pictures anyhow; rows whose elements lie apart are put side by side faster all at once. */
    const bool apart = !halves && PyArray_DIM(source, ndim - 1) > 1 && PyArray_STRIDE(source, ndim - 1) != (npy_intp)c->size;
    source = measure || apart || way < CONV_TAPS ? native_dense((PyObject *)source) : (PyArrayObject *)Py_NewRef(source);
    other = source ? native_dense((PyObject *)other) : NULL;
    PyArrayObject *made = other && read_steps(source, c->size, c->steps) ? native_empty(ndim, shape, c->type) : NULL;
    if (made) {
        point_to(c, source, other, made);
        if (measure)
            way = conv_measure(c, way);
        if (!(halves ? conv_run_bf16(c) : conv_make(c, way)) && !(way == CONV_WINOGRAD && conv_make(c, CONV_TAPS)))
            Py_CLEAR(made); /* NumPy's turn, which also knows what to say when there is no memory */
    }
    Py_XDECREF(source);
    Py_XDECREF(other);
    return (PyObject *)made;
}

static PyObject *convolve(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type, other;
    if (nargs != 3 || !native_options(args, nargs, kwnames, names, OPTIONS, given) || !is_taken(args[0], CONV_SUMS, &type) ||
        !is_taken(args[1], CONV_SUMS, &other) || other != type)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *weight = (PyArrayObject *)args[1], *bias = NULL;
    int ndim = PyArray_NDIM(x);
    if (args[2] != Py_None) {
        bias = (PyArrayObject *)args[2];
        if (native_array_type(args[2]) != type || PyArray_NDIM(bias) != 1 || !PyArray_IS_C_CONTIGUOUS(bias))
            return NULL;
    }
    convolution c = {.wanted = CONV_SUMS};
    if (PyArray_NDIM(weight) != ndim || !read_call(&c, given, ndim, PyArray_DIMS(x), PyArray_DIMS(weight), type) ||
        !read_three(given[COUNTS], ndim - 2, 1, c.counts) || c.counts[0] < 1 || c.counts[1] < 1 || c.counts[2] < 1 ||
        PyArray_DIM(x, 1) != c.channels * c.groups || (bias && PyArray_DIM(bias, 0) != c.outs * c.groups))
        return NULL;

    npy_intp shape[5] = {c.images, c.outs * c.groups};
    for (int i = 2; i < ndim; i++)
        shape[i] = c.counts[i + 3 - ndim];
    c.bias = bias ? PyArray_DATA(bias) : NULL;
    return run(kernel, &c, x, weight, ndim, shape);
}

static PyObject *input_gradient(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type, other;
    if (nargs != 2 || !native_options(args, nargs, kwnames, names, OPTIONS, given) ||
        !is_taken(args[0], CONV_INPUT_GRADIENT, &type) ||
        !is_taken(args[1], CONV_INPUT_GRADIENT, &other) || other != type)
        return NULL;
    PyArrayObject *sent = (PyArrayObject *)args[0], *weight = (PyArrayObject *)args[1];
    int ndim = PyArray_NDIM(sent);
    npy_intp shape[5];
    if (ndim < 3 || ndim > 5 || !given[SHAPE] || !PyTuple_Check(given[SHAPE]) || PyTuple_GET_SIZE(given[SHAPE]) != ndim)
        return NULL;
    for (int i = 0; i < ndim; i++)
        shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given[SHAPE], i));
    convolution c = {.wanted = CONV_INPUT_GRADIENT};
    if (PyErr_Occurred() || PyArray_NDIM(weight) != ndim || PyArray_DIM(sent, 0) != shape[0] ||
        PyArray_DIM(sent, 1) != PyArray_DIM(weight, 0) ||
        !read_call(&c, given, ndim, shape, PyArray_DIMS(weight), type)) {
        PyErr_Clear();
        return NULL;
    }
    for (int d = 0; d < 3; d++) {
        int axis = d - (5 - ndim);
        c.counts[d] = axis < 0 ? 1 : PyArray_DIM(sent, 2 + axis);
        if (c.counts[d] < 1)
            return NULL;
    }
    return run(kernel, &c, sent, weight, ndim, shape);
}

static PyObject *weight_gradient(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type, other;
    if (nargs != 2 || !native_options(args, nargs, kwnames, names, OPTIONS, given) ||
        !is_taken(args[0], CONV_WEIGHT_GRADIENT, &type) ||
        !is_taken(args[1], CONV_WEIGHT_GRADIENT, &other) || other != type)
        return NULL;
    PyArrayObject *sent = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    int ndim = PyArray_NDIM(x);
    npy_intp window[5];
    if (ndim < 3 || ndim > 5 || PyArray_NDIM(sent) != ndim || !given[SHAPE] || !PyTuple_Check(given[SHAPE]) ||
        PyTuple_GET_SIZE(given[SHAPE]) != ndim)
        return NULL;
    for (int i = 0; i < ndim; i++)
        window[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given[SHAPE], i));
    convolution c = {.wanted = CONV_WEIGHT_GRADIENT};
    if (PyErr_Occurred() || PyArray_DIM(sent, 0) != PyArray_DIM(x, 0) || PyArray_DIM(sent, 1) != window[0] ||
        !read_call(&c, given, ndim, PyArray_DIMS(x), window, type) || PyArray_DIM(x, 1) != c.channels * c.groups) {
        PyErr_Clear();
        return NULL;
    }
    for (int d = 0; d < 3; d++) {
        int axis = d - (5 - ndim);
        c.counts[d] = axis < 0 ? 1 : PyArray_DIM(sent, 2 + axis);
        if (c.counts[d] < 1)
            return NULL;
    }
    return run(kernel, &c, x, sent, ndim, window);
}

const native_spec conv_kernels[] = {
    {"conv", convolve, NULL},
    {"conv_input_gradient", input_gradient, NULL},
    {"conv_weight_gradient", weight_gradient, NULL},
    {"conv_by_rule", convolve, &by_rule},
    {"conv_input_gradient_by_rule", input_gradient, &by_rule},
    {"conv_weight_gradient_by_rule", weight_gradient, &by_rule},
    {NULL},
};

int conv_init(void) {
    static const char *const letters[OPTIONS] = {"counts", "shape", "stride", "padding", "dilation", "groups"};
    if (native_intern(names, letters, OPTIONS))
        return -1;
    conv_forget();
    return 0;
}
