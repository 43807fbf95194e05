/* Pools: the largest and the mean of windows of (batch, channels, *sizes), and their gradients. */
#include "pool.h"

#include "rows.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(pool_loops, pool_loops);

static const pool_loops *loops;

enum { COUNTS, KERNEL, STRIDE, PADDING, DILATION, COUNT_PADDING, DIVISOR, SHAPE, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"counts", "kernel", "stride", "padding", "dilation", "count_padding", "divisor",
                                           "shape"};

enum { GRAIN = 1 << 14, ON_STACK = 16 << 10 }; /* elements of the input a thread; bytes */

enum { MAX, PLACES, MAX_BACK, MEAN, MEAN_BACK, EVEN, EVEN_BACK };

typedef struct {
    int op;
    int inputs;
} pool_op;

typedef struct {
    pool_windows windows;
    const pool_of_real *of;
    const pool_of_whole *whole; /* of integers, else NULL */
    int op;
    npy_intp plane, results, size; /* elements of a plane and of its results, bytes of one */
    const char *in[3];
    char *out;
    _Atomic bool failed; /* for want of memory */
} pool_run;

/* Three options of numbers that take no more than 32 bits, as in PyTorch: what is made of them fits into twice as many. */
static bool triple(PyObject *option, int dims, ptrdiff_t *values, ptrdiff_t missing, ptrdiff_t least) {
    npy_intp found[3];
    if (native_sizes(option, found, 3) != dims)
        return false;
    for (int i = 0; i < 3; i++) {
        values[i] = i < 3 - dims ? missing : found[i - (3 - dims)];
        if (values[i] < least || values[i] > INT32_MAX)
            return false;
    }
    return true;
}

static bool read_windows(pool_windows *windows, PyObject *const *options, const npy_intp *sizes, int dims, bool mean) {
    *windows = (pool_windows){.dilation = {1, 1, 1}};
    for (int i = 0; i < 3; i++)
        windows->size[i] = i < 3 - dims ? 1 : sizes[i - (3 - dims)];
    if (!triple(options[COUNTS], dims, windows->count, 1, 1) || !triple(options[KERNEL], dims, windows->kernel, 1, 1) ||
        !triple(options[STRIDE], dims, windows->stride, 1, 1) || !triple(options[PADDING], dims, windows->padding, 0, 0))
        return false;
    for (int i = 0; i < 3; i++) /* one window has no next one: a longer step than the padded input is as good as one */
        if (windows->count[i] == 1 && windows->stride[i] > windows->size[i] + 2 * windows->padding[i])
            windows->stride[i] = 1;
    if (!mean)
        return triple(options[DILATION], dims, windows->dilation, 1, 1);
    windows->count_padding = options[COUNT_PADDING] == Py_True;
    return native_is_none(options[DIVISOR]) || (native_double(options[DIVISOR], &windows->divisor) && windows->divisor != 0);
}

/* Whether the scratch for such windows is within what memory can be. */
static bool has_room(const pool_windows *of) {
    const double taps = (double)of->kernel[0] * (double)of->kernel[1] * (double)of->kernel[2];
    return taps + 2 * (double)of->stride[2] * (double)pool_phase(of) < (double)(INT64_C(1) << 40);
}

enum { SMALL_LEAST = 4 }; /* planes that are worth being turned over */

/* Small planes side by side; false where each is for itself. The mean of a whole one is a sum in double where it is not very small. */
static bool run_small(const pool_run *run, npy_intp begin, npy_intp end) {
    static const pool_small_op ops[] = {[MAX] = POOL_SMALL_MAX, [MAX_BACK] = POOL_SMALL_MAX_BACK, [MEAN] = POOL_SMALL_MEAN,
                                        [MEAN_BACK] = POOL_SMALL_MEAN_BACK, [EVEN] = POOL_SMALL_EVEN, [EVEN_BACK] = POOL_SMALL_EVEN_BACK};
    const bool is_small = run->plane <= POOL_SMALL && run->results <= POOL_SMALL && end - begin >= SMALL_LEAST;
    if (!is_small || run->op == PLACES || (run->op == MEAN && run->results == 1 && run->plane > POOL_FEW))
        return false;
    const npy_intp plane = begin * run->plane * run->size, results = begin * run->results * run->size;
    const bool back = run->op == MAX_BACK || run->op == MEAN_BACK || run->op == EVEN_BACK;
    const void *const in[] = {run->in[0] + (back ? results : plane), run->in[1] + plane, run->in[2] + results};
    _Alignas(POOL_VECTOR) char space[ON_STACK];
    const npy_intp most = run->plane > run->results ? run->plane : run->results;
    const size_t wanted = (size_t)(POOL_SMALL_SIDES * most * POOL_VECTOR);
    char *scratch = wanted <= ON_STACK ? space : aligned_alloc(POOL_VECTOR, wanted);
    const bool made = scratch && run->of->small(&run->windows, ops[run->op], in, run->out + (back ? plane : results), end - begin, scratch);
    if (scratch != space)
        free(scratch);
    return made;
}

static void run_whole(const pool_run *run, npy_intp begin, npy_intp end) {
    for (; begin < end; begin++) {
        const char *plane = run->in[0] + begin * run->plane * run->size;
        const npy_intp results = begin * run->results;
        if (run->op == MAX)
            run->whole->max(&run->windows, plane, run->out + results * run->size);
        else if (run->op == MEAN)
            run->whole->mean(&run->windows, plane, run->out + results * run->size);
        else
            run->whole->places(&run->windows, plane, run->in[1] + results * run->size, (int64_t *)run->out + results);
    }
}

static void run_planes(void *context, npy_intp begin, npy_intp end) {
    pool_run *run = context;
    if (run->whole) {
        run_whole(run, begin, end);
        return;
    }
    if (run_small(run, begin, end))
        return;
    _Alignas(64) char space[ON_STACK];
    size_t wanted = pool_scratch(&run->windows);
    void *scratch = wanted <= ON_STACK ? space : malloc(wanted);
    if (!scratch)
        run->failed = true;
    for (; begin < end && scratch; begin++) {
        npy_intp plane = begin * run->plane * run->size, results = begin * run->results * run->size;
        switch (run->op) {
        case MAX:
            run->of->max(&run->windows, run->in[0] + plane, run->out + results, scratch);
            break;
        case PLACES:
            run->of->places(&run->windows, run->in[0] + plane, run->in[1] + results,
                            (int64_t *)run->out + begin * run->results, scratch);
            break;
        case MAX_BACK:
            run->of->max_back(&run->windows, run->in[0] + results, run->in[1] + plane, run->in[2] + results,
                              run->out + plane, scratch);
            break;
        case MEAN:
            run->of->mean(&run->windows, run->in[0] + plane, run->out + results, scratch);
            break;
        case MEAN_BACK:
            run->of->mean_back(&run->windows, run->in[0] + results, run->out + plane, scratch);
            break;
        case EVEN:
            run->of->even(&run->windows, run->in[0] + plane, run->out + results, scratch);
            break;
        default:
            run->of->even_back(&run->windows, run->in[0] + results, run->out + plane, scratch);
        }
    }
    if (scratch != space)
        free(scratch);
}

/* Runs over all planes; gives up the result where there was no memory. */
static PyArrayObject *over_planes(pool_run *run, npy_intp planes, PyArrayObject *made) {
    run->out = PyArray_BYTES(made);
    native_evenly(planes, native_grain(GRAIN, run->plane + run->results), run_planes, run);
    if (!run->failed)
        return made;
    Py_DECREF(made);
    return (PyArrayObject *)PyErr_NoMemory();
}

static npy_intp product(const ptrdiff_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

static PyObject *run_pool(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const pool_op *op = kernel->data;
    PyObject *options[OPTIONS];
    if (nargs != op->inputs || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    PyArrayObject *inputs[3] = {NULL}, *made = NULL;
    const native_type type = native_array_type(args[0]);
    const bool real = type == TYPE_F32 || type == TYPE_F64, whole = op->op == MAX || op->op == MEAN || op->op == PLACES;
    for (int k = 0; k < nargs; k++)
        if (type == TYPE_NONE || (!real && !(whole && loops->whole[type].max)) || native_array_type(args[k]) != type)
            return NULL;
    /* The shape of the planes is that of the input, which the gradient of a mean gets as an option. */
    npy_intp shape[NATIVE_DIMS];
    PyArrayObject *source = (PyArrayObject *)args[op->op == MAX_BACK];
    int ndim = PyArray_NDIM(source);
    if (op->op == MEAN_BACK)
        ndim = native_sizes(options[SHAPE], shape, NATIVE_DIMS);
    else
        memcpy(shape, PyArray_DIMS(source), (size_t)ndim * sizeof *shape);
    bool mean = op->op == MEAN || op->op == MEAN_BACK;
    pool_run run = {.of = real ? &loops->of[type] : NULL, .whole = real ? NULL : &loops->whole[type], .op = op->op, .size = TYPE_SIZE[type]};
    if (ndim < 3 || ndim > 5 || !read_windows(&run.windows, options, shape + 2, ndim - 2, mean) ||
        !has_room(&run.windows))
        return NULL;
    run.plane = product(run.windows.size);
    run.results = product(run.windows.count);
    npy_intp planes = shape[0] * shape[1], results[NATIVE_DIMS] = {shape[0], shape[1]};
    for (int i = 2; i < ndim; i++)
        results[i] = run.windows.count[5 - ndim + i - 2];
    if (!run.plane || planes <= 0)
        return NULL;
    /* Every operand but the source has the shape of the results. */
    for (int k = 0; k < nargs; k++) {
        bool is_source = !(op->op == MEAN_BACK) && k == (op->op == MAX_BACK);
        PyArrayObject *one = (PyArrayObject *)args[k];
        if (!is_source && (PyArray_NDIM(one) != ndim || !PyArray_CompareLists(PyArray_DIMS(one), results, ndim)))
            return NULL;
    }
    bool backward = op->op == MAX_BACK || op->op == MEAN_BACK, ready = true;
    for (int k = 0; k < nargs; k++) {
        inputs[k] = native_dense(args[k]);
        ready &= inputs[k] != NULL;
        run.in[k] = ready ? PyArray_BYTES(inputs[k]) : NULL;
    }
    if (ready)
        made = native_empty(ndim, backward ? shape : results, op->op == PLACES ? TYPE_I64 : type);
    if (made)
        made = over_planes(&run, planes, made);
    for (int k = 0; k < nargs; k++)
        Py_XDECREF(inputs[k]);
    return (PyObject *)made;
}

/* Windows that cover the sizes evenly: the input and how many, or their gradient and the shape of the input. */
static PyObject *run_even(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const pool_op *op = kernel->data;
    PyObject *options[OPTIONS];
    const bool backward = op->op == EVEN_BACK;
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    native_type type = native_real_type(args[0]);
    if (type == TYPE_NONE)
        return NULL;
    PyArrayObject *given = (PyArrayObject *)args[0];
    npy_intp shape[NATIVE_DIMS], other[NATIVE_DIMS];
    const int ndim = PyArray_NDIM(given), found = native_sizes(options[backward ? SHAPE : COUNTS], other, NATIVE_DIMS);
    if (ndim < 3 || ndim > 5 || found != (backward ? ndim : ndim - 2))
        return NULL;
    memcpy(shape, PyArray_DIMS(given), (size_t)ndim * sizeof *shape);
    pool_run run = {.of = &loops->of[type], .op = op->op, .size = TYPE_SIZE[type]};
    run.windows = (pool_windows){.size = {1, 1, 1}, .count = {1, 1, 1}, .kernel = {1, 1, 1}, .stride = {1, 1, 1},
                                 .dilation = {1, 1, 1}};
    for (int i = 2; i < ndim; i++) {
        run.windows.size[5 - ndim + i - 2] = backward ? other[i] : shape[i];
        run.windows.count[5 - ndim + i - 2] = backward ? shape[i] : other[i - 2];
        shape[i] = backward ? other[i] : other[i - 2];
    }
    for (int i = 0; i < 3; i++)
        if (run.windows.size[i] < 1 || run.windows.count[i] < 1)
            return NULL;
    if (backward && (other[0] != shape[0] || other[1] != shape[1]))
        return NULL;
    run.plane = product(run.windows.size);
    run.results = product(run.windows.count);
    const npy_intp planes = shape[0] * shape[1];
    PyArrayObject *dense = planes > 0 ? native_dense(args[0]) : NULL;
    PyArrayObject *made = dense ? native_empty(ndim, shape, type) : NULL;
    if (made) {
        run.in[0] = PyArray_BYTES(dense);
        made = over_planes(&run, planes, made);
    }
    Py_XDECREF(dense);
    return (PyObject *)made;
}

int pool_init(void) {
    loops = PICK(pool_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec pool_kernels[] = {
    {"max_pool", run_pool, &(const pool_op){MAX, 1}},
    {"max_pool_indices", run_pool, &(const pool_op){PLACES, 2}},
    {"max_pool_gradient", run_pool, &(const pool_op){MAX_BACK, 3}},
    {"avg_pool", run_pool, &(const pool_op){MEAN, 1}},
    {"avg_pool_gradient", run_pool, &(const pool_op){MEAN_BACK, 1}},
    {"adaptive_avg_pool", run_even, &(const pool_op){EVEN, 1}},
    {"adaptive_avg_pool_gradient", run_even, &(const pool_op){EVEN_BACK, 1}},
    {NULL, NULL, NULL},
};
