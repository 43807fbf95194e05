/* Normalisations: one kernel for layer, group, instance, RMS and batch norm, which differ in the view and the dims. */
#include "norm.h"

#include "halves.h"
#include "norm_halves.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(norm_loops, norm_loops);

static const norm_loops *loops;

enum { VIEW, DIMS, AFFINE, EPS, CENTRE, NEEDS, INTO, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"view", "dims", "affine", "eps", "centre", "needs", "into"};

enum {
    GRAIN = 1 << 14, /* elements a thread */
    BLOCKS = 32,     /* of rows at most whose sums for weight and bias are taken apart */
    MOST = 12,       /* dims of a view */
    LONG_ROW = 1 << 17, /* bytes, of which a row has too many for the second cache to hold it, its gradients and their sums */
    FAR = 4 << 20,   /* bytes of x of which the caches hold little, after what other ops read and wrote */
};

/* One call. The view is over rows (trailing dims are normalised) or over channels (all dims but the second). */
typedef struct {
    const norm_of_real *of;
    native_type type, half; /* x and the result are of the second, where that is not TYPE_NONE */
    int ndim;
    npy_intp view[MOST];
    bool reduced[MOST], by_channel, inside; /* channels innermost in memory: each position is a row of them */
    double eps;
    bool centre;
    npy_intp n, inner, turns, rows;      /* over rows */
    npy_intp batch, channels;            /* over channels */
    PyArrayObject *x, *weight, *bias;
    norm_rows over_rows;
    norm_channels over_channels;
    npy_intp block, weights;
    double *totals;
    _Atomic bool out_of_memory;
} norm_call;

static void end_call(norm_call *call) {
    Py_XDECREF(call->x);
    Py_XDECREF(call->weight);
    Py_XDECREF(call->bias);
}

static npy_intp product(const npy_intp *sizes, int begin, int end) {
    npy_intp made = 1;
    for (int i = begin; i < end; i++)
        made *= sizes[i];
    return made;
}

/* How the weights, in the shape `affine`, lie over the view; false where they lie in another way than norm.h says. */
static bool place_weights(norm_call *call, const npy_intp *affine, int first) {
    int begin = 0, end = call->ndim;
    while (begin < end && affine[begin] == 1)
        begin++;
    while (end > begin && affine[end - 1] == 1)
        end--;
    for (int i = begin; i < end; i++)
        if (affine[i] != call->view[i])
            return false;
    call->turns = 1;
    call->inner = call->n;
    if (begin == end)
        return true;
    if ((end < first && product(call->view, end, first) != 1) || (begin > first && product(call->view, first, begin) != 1))
        return false;
    call->turns = begin < first ? product(call->view, begin, first) : 1;
    call->inner = end > first ? product(call->view, end, call->ndim) : call->n;
    return true;
}

static bool read_view(norm_call *call, PyObject *const *options, bool weighted) {
    npy_intp dims[MOST], given[MOST], affine[MOST];
    call->ndim = native_sizes(options[VIEW], call->view, MOST);
    int count = native_sizes(options[DIMS], dims, MOST), sizes = native_sizes(options[AFFINE], given, MOST);
    if (call->ndim < 1 || count < 1 || sizes < 0 || sizes > call->ndim || !native_double(options[EPS], &call->eps) ||
        !options[CENTRE] || !PyBool_Check(options[CENTRE]))
        return false;
    call->centre = options[CENTRE] == Py_True;
    for (int i = 0; i < call->ndim; i++)
        affine[i] = i < call->ndim - sizes ? 1 : given[i - (call->ndim - sizes)];
    int first = call->ndim - count;
    bool trailing = first >= 0, all_but_second = count == call->ndim - 1 && call->ndim >= 2;
    for (int k = 0; k < count; k++) {
        if (dims[k] < 0 || dims[k] >= call->ndim)
            return false;
        trailing &= dims[k] == first + k;
        all_but_second &= dims[k] == (k ? k + 1 : 0);
        call->reduced[dims[k]] = true;
    }
    if (trailing) {
        call->n = product(call->view, first, call->ndim);
        call->rows = product(call->view, 0, first);
        call->turns = 1;
        call->inner = call->n;
        return !weighted || place_weights(call, affine, first);
    }
    if (!all_but_second)
        return false;
    call->by_channel = true;
    call->batch = call->view[0];
    call->channels = call->view[1];
    call->inner = product(call->view, 2, call->ndim);
    for (int i = 0; weighted && i < call->ndim; i++)
        if (affine[i] != (i == 1 ? call->channels : 1))
            return false;
    return true;
}

/* None, or an array of that type and so many elements, or beside halves one of theirs; *array is a dense one of that type. */
static bool optional(PyObject *object, native_type type, native_type half, npy_intp size, PyArrayObject **array) {
    if (native_is_none(object))
        return true;
    const native_type found = native_array_type(object);
    if ((found != type && (found != half || half == TYPE_NONE)) || PyArray_SIZE((PyArrayObject *)object) != size)
        return false;
    if (found != type)
        return (*array = (PyArrayObject *)native_converted((PyArrayObject *)object, half, type)) && PyArray_IS_C_CONTIGUOUS(*array);
    return (*array = native_dense(object)) != NULL;
}

/* The dims from the largest stride to the smallest where the channels are innermost, of pictures and volumes: results of lines
   are row-major (tensorcore.backend.layouts). */
static void channels_inside(int ndim, int *axes) {
    axes[0] = 0;
    for (int i = 1; i < ndim - 1; i++)
        axes[i] = i + 1;
    axes[ndim - 1] = 1;
}

static bool lies_inside(PyArrayObject *x) {
    const int ndim = PyArray_NDIM(x);
    int axes[MOST];
    npy_intp step = PyArray_ITEMSIZE(x);
    if (ndim < 4 || ndim > 5 || PyArray_IS_C_CONTIGUOUS(x))
        return false;
    channels_inside(ndim, axes);
    for (int i = ndim - 1; i >= 0; step *= PyArray_DIM(x, axes[i--]))
        if (PyArray_DIM(x, axes[i]) != 1 && PyArray_STRIDE(x, axes[i]) != step)
            return false;
    return true;
}

/* A new array that lies as x does: row-major, or with the channels innermost. */
static PyArrayObject *new_like_x(const norm_call *call) {
    int axes[MOST];
    if (!call->inside)
        return native_empty(PyArray_NDIM(call->x), PyArray_DIMS(call->x), call->half != TYPE_NONE ? call->half : call->type);
    channels_inside(PyArray_NDIM(call->x), axes);
    return native_empty_ordered(PyArray_NDIM(call->x), PyArray_DIMS(call->x), call->type, axes);
}

/* x where it lies, if that is with the channels innermost and they are what is normalised; else dense. */
static bool take_x(norm_call *call, PyArrayObject *x) {
    call->inside = call->by_channel && PyArray_NDIM(x) == call->ndim && PyArray_CompareLists(PyArray_DIMS(x), call->view, call->ndim) &&
                   lies_inside(x);
    if (call->inside) {
        call->batch *= call->inner;
        call->inner = 1;
    }
    call->x = call->inside ? (PyArrayObject *)Py_NewRef(x) : native_dense((PyObject *)x);
    return call->x != NULL;
}

/* Fills the call from (x, weight, bias) and the options; false where it is not for this kernel. `halves` is whether rows of a half
   type are. */
static bool begin_call(norm_call *call, PyObject *const *args, PyObject *const *options, bool halves) {
    bool weighted = !native_is_none(args[1]) || !native_is_none(args[2]);
    *call = (norm_call){.type = native_array_type(args[0]), .half = TYPE_NONE};
    if (halves && native_is_half(call->type)) {
        call->half = call->type;
        call->type = TYPE_F32;
    }
    if (call->type != TYPE_F32 && call->type != TYPE_F64)
        return false;
    if (!PyArray_SIZE((PyArrayObject *)args[0]) || !read_view(call, options, weighted) ||
        product(call->view, 0, call->ndim) != PyArray_SIZE((PyArrayObject *)args[0]))
        return false;
    if (call->by_channel && call->half != TYPE_NONE &&
        (call->inner == 1 || call->batch * call->inner > NORM_CHANNEL || lies_inside((PyArrayObject *)args[0])))
        return false;
    call->of = &loops->of[call->type];
    call->weights = call->by_channel ? call->channels : call->turns * (call->n / call->inner);
    if (!optional(args[1], call->type, call->half, call->weights, &call->weight) ||
        !optional(args[2], call->type, call->half, call->weights, &call->bias) || !take_x(call, (PyArrayObject *)args[0])) {
        end_call(call);
        return false;
    }
    void *x = PyArray_DATA(call->x), *weight = call->weight ? PyArray_DATA(call->weight) : NULL;
    void *bias = call->bias ? PyArray_DATA(call->bias) : NULL;
    call->over_rows = (norm_rows){call->n, call->inner, call->turns, call->eps, call->centre, x, weight, bias};
    call->over_channels =
        (norm_channels){call->batch, call->channels, call->inner, call->eps, call->centre, false, x, weight, bias};
    call->over_rows.far = call->half == TYPE_NONE && PyArray_NBYTES(call->x) >= FAR && call->n * TYPE_SIZE[call->type] >= NORM_LONG;
    return true;
}

static void forward_rows(void *context, npy_intp begin, npy_intp end) {
    const norm_call *call = context;
    call->of->rows(&call->over_rows, begin, end - begin);
}

typedef void (*channel_loop)(const norm_channels *of, ptrdiff_t first, ptrdiff_t count);
typedef struct {
    const norm_call *call;
    channel_loop loop;
} channel_run;

static void run_channels(void *context, npy_intp begin, npy_intp end) {
    const channel_run *run = context;
    const npy_intp most = norm_channels_together(run->call->inner);
    for (; begin < end; begin++) {
        npy_intp rest = run->call->channels - begin * most;
        run->loop(&run->call->over_channels, begin * most, rest < most ? rest : most);
    }
}

/* Rows of a batch by statistics that are given, which need not go to one thread. */
static void run_batch(void *context, npy_intp begin, npy_intp end) {
    const norm_call *call = context;
    const npy_intp most = norm_channels_together(call->inner), row = call->channels * call->inner * TYPE_SIZE[call->type];
    norm_channels part = call->over_channels;
    part.batch = end - begin;
    part.x = (const char *)part.x + begin * row;
    part.out = (char *)part.out + begin * row;
    for (npy_intp c = 0; c < call->channels; c += most)
        call->of->channels(&part, c, call->channels - c < most ? call->channels - c : most);
}

static void each_channel(const norm_call *call, channel_loop loop) {
    const npy_intp most = norm_channels_together(call->inner);
    channel_run run = {call, loop};
    native_parallel((call->channels + most - 1) / most, native_grain(GRAIN, call->batch * call->inner * most), run_channels,
                    &run);
}

static bool forward(norm_call *call) {
    const npy_intp row_grain = native_grain(GRAIN, call->n), channel_grain = native_grain(GRAIN, call->batch * call->inner);
    if (call->half != TYPE_NONE)
        return call->by_channel ? native_norm_half_channels(call->of, &call->over_channels, call->half, channel_grain)
                                : native_norm_half_rows(call->of, &call->over_rows, call->rows, call->half, row_grain);
    if (call->by_channel)
        each_channel(call, call->of->channels);
    else
        native_blocks(call->rows, row_grain, 2 * call->rows * call->n * TYPE_SIZE[call->type], forward_rows, call);
    return true;
}

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *answer = NULL;
    norm_call call;
    if (nargs != 3 || !kwnames || !native_options(args, nargs, kwnames, names, NEEDS, options) ||
        !begin_call(&call, args, options, true))
        return NULL;
    npy_intp kept[MOST];
    for (int i = 0; i < call.ndim; i++)
        kept[i] = call.reduced[i] ? 1 : call.view[i];
    PyArrayObject *made = new_like_x(&call);
    PyArrayObject *var = native_empty(call.ndim, kept, call.type);
    PyArrayObject *mean = call.centre ? native_empty(call.ndim, kept, call.type) : (PyArrayObject *)Py_NewRef(Py_None);
    if (made && mean && var) {
        call.over_rows.out = call.over_channels.out = PyArray_DATA(made);
        call.over_rows.mean = call.over_channels.mean = call.centre ? PyArray_DATA(mean) : NULL;
        call.over_rows.var = call.over_channels.var = PyArray_DATA(var);
        answer = forward(&call) ? PyTuple_Pack(3, (PyObject *)made, (PyObject *)mean, (PyObject *)var) : NULL;
    }
    Py_XDECREF(made);
    Py_XDECREF(mean);
    Py_XDECREF(var);
    end_call(&call);
    return answer;
}

/* Blocks of rows, each with sums of its own for the gradients of weight and bias. The last rows go first: of tensors larger than
   the last cache, it holds what the forward pass came to at the end. */
static void backward_rows(void *context, npy_intp begin, npy_intp end) {
    norm_call *call = context;
    void *space = aligned_alloc(64, (size_t)(2 * norm_padded(call->n) * TYPE_SIZE[call->type]));
    if (!space)
        call->out_of_memory = true;
    for (; space && begin < end; begin += call->block) {
        const npy_intp rows = at_most(call->block, end - begin);
        double *totals = call->totals ? call->totals + begin / call->block * 2 * call->weights : NULL;
        call->of->rows_back(&call->over_rows, begin, rows, totals, totals ? totals + call->weights : NULL, space);
    }
    free(space);
}

/* The sums of the blocks into one gradient, of weight or bias. */
static void add_blocks(const norm_call *call, npy_intp blocks, npy_intp start, PyArrayObject *into) {
    double *total = call->totals + start;
    for (npy_intp k = 1; k < blocks; k++) {
        const double *one = total + k * 2 * call->weights;
        for (npy_intp i = 0; i < call->weights; i++)
            total[i] += one[i];
    }
    for (npy_intp i = 0; i < call->weights; i++)
        if (call->type == TYPE_F32)
            ((float *)PyArray_DATA(into))[i] = (float)total[i];
        else
            ((double *)PyArray_DATA(into))[i] = total[i];
}

/* Long rows by strips of columns: the sums of a strip stay in the first cache, and are whole at once. */

typedef struct {
    const norm_call *call;
    npy_intp size; /* of what one row's sums take */
    char *sums;
    void *weight, *bias;
} long_run;

static void sum_long_rows(void *context, npy_intp begin, npy_intp end) {
    const long_run *run = context;
    run->call->of->row_sums(&run->call->over_rows, begin, end - begin, run->sums + begin * run->size);
}

static void differentiate_strips(void *context, npy_intp begin, npy_intp end) {
    const long_run *run = context;
    const norm_call *call = run->call;
    for (; begin < end; begin++) {
        const npy_intp first = begin * NORM_STRIP, rest = call->n - first;
        call->of->columns_back(&call->over_rows, call->rows, run->sums, first, rest < NORM_STRIP ? rest : NORM_STRIP, run->weight, run->bias);
    }
}

static bool differentiate_long_rows(const norm_call *call, PyArrayObject *weight, PyArrayObject *bias) {
    const npy_intp size = 2 * (call->type == TYPE_F32 ? sizeof(double) : sizeof(long double));
    long_run run = {call, size, malloc((size_t)(call->rows * size)), weight ? PyArray_DATA(weight) : NULL, bias ? PyArray_DATA(bias) : NULL};
    if (!run.sums)
        return false;
    native_parallel(call->rows, 1, sum_long_rows, &run);
    native_parallel((call->n + NORM_STRIP - 1) / NORM_STRIP, native_grain(GRAIN, call->rows * NORM_STRIP), differentiate_strips, &run);
    free(run.sums);
    return true;
}

static bool differentiate_rows(norm_call *call, PyArrayObject *weight, PyArrayObject *bias) {
    if (call->over_rows.inner == 1 && call->turns == 1 && call->weight && call->over_rows.out && (weight || bias) &&
        call->n * TYPE_SIZE[call->type] >= LONG_ROW)
        return differentiate_long_rows(call, weight, bias);
    npy_intp least = native_grain(GRAIN, call->n);
    call->block = (call->rows + BLOCKS - 1) / BLOCKS;
    call->block = call->block > least ? call->block : least;
    npy_intp blocks = (call->rows + call->block - 1) / call->block;
    if (weight || bias) {
        call->totals = calloc((size_t)(blocks * 2 * call->weights), sizeof *call->totals);
        if (!call->totals)
            return false;
    }
    native_blocks(call->rows, call->block, 3 * call->rows * call->n * TYPE_SIZE[call->type], backward_rows, call);
    if (weight)
        add_blocks(call, blocks, 0, weight);
    if (bias)
        add_blocks(call, blocks, call->weights, bias);
    free(call->totals);
    return !call->out_of_memory;
}

/* A new array like the one it is the gradient of, where it is asked for. */
static bool gradient_of(const norm_call *call, PyArrayObject *array, PyObject *needed, PyArrayObject **made) {
    *made = NULL;
    if (!array || needed != Py_True)
        return true;
    *made = array == call->x ? new_like_x(call) : native_empty(PyArray_NDIM(array), PyArray_DIMS(array), call->type);
    return *made != NULL;
}

/* What was sent as one line, in the order of an x whose channels lie inside. */
static bool lying_lines(const norm_call *call, PyArrayObject *sent, native_lines *lines) {
    if (!PyArray_SAMESHAPE(sent, call->x))
        return false;
    PyArrayObject *lying = lies_inside(sent) ? (PyArrayObject *)Py_NewRef(sent) : new_like_x(call);
    if (!lying || (lying != sent && PyArray_CopyInto(lying, sent))) {
        Py_XDECREF(lying);
        return false;
    }
    *lines = (native_lines){.data = PyArray_DATA(lying), .owner = lying};
    return true;
}

/* Whether the gradient of x can be added there while it is made: that of rows which have all weights, whose gradients are made too. */
static bool adds_into(const norm_call *call, PyObject *into, PyArrayObject *g, PyObject *needs) {
    if (native_is_none(into) || native_array_type(into) != call->type || call->by_channel || call->over_rows.inner != 1 || call->turns != 1 ||
        !call->weight || (PyTuple_GET_ITEM(needs, 1) != Py_True && PyTuple_GET_ITEM(needs, 2) != Py_True))
        return false;
    PyArrayObject *array = (PyArrayObject *)into;
    return PyArray_IS_C_CONTIGUOUS(array) && PyArray_SAMESHAPE(array, call->x) && !native_overlap(array, call->x) && !native_overlap(array, g);
}

static PyObject *or_none(PyArrayObject *array) { return array ? (PyObject *)array : Py_None; }

/* (g, x, weight, bias, mean, var). An array `into` that the gradient of x is added to is given back in its place; any other way it is left. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *answer = NULL;
    norm_call call;
    if (nargs != 6 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[NEEDS] ||
        !PyTuple_Check(options[NEEDS]) || PyTuple_GET_SIZE(options[NEEDS]) != 3 || native_real_type(args[0]) == TYPE_NONE ||
        !begin_call(&call, args + 1, options, false))
        return NULL;
    npy_intp statistics = call.by_channel ? call.channels : call.rows;
    PyArrayObject *mean = NULL, *var = NULL, *made[3] = {NULL}, *inputs[3] = {call.x, call.weight, call.bias};
    native_lines g = {NULL};
    /* Channels are what one copy of all elements holds, or a line of one number. */
    PyArrayObject *arrived = (PyArrayObject *)args[0];
    const bool one = call.by_channel && !PyArray_IS_C_CONTIGUOUS(arrived) && native_uniform(arrived);
    const npy_intp line = !call.by_channel ? call.n : !one ? PyArray_SIZE(call.x) : call.inner > NORM_CHANNELS ? call.inner : NORM_CHANNELS;
    bool ready = PyArray_SIZE((PyArrayObject *)args[0]) == PyArray_SIZE(call.x) && native_real_type(args[0]) == call.type &&
                 native_is_none(args[4]) == !call.centre &&
                 (call.inside && !one ? lying_lines(&call, arrived, &g) : native_lines_of(arrived, line, &g)) &&
                 optional(args[4], call.type, TYPE_NONE, statistics, &mean) &&
                 optional(args[5], call.type, TYPE_NONE, statistics, &var) && var;
    call.over_rows.adds = ready && PyTuple_GET_ITEM(options[NEEDS], 0) == Py_True && adds_into(&call, options[INTO], arrived, options[NEEDS]);
    for (int k = 0; ready && k < 3; k++)
        if (!k && call.over_rows.adds)
            made[k] = (PyArrayObject *)Py_NewRef(options[INTO]);
        else
            ready = gradient_of(&call, inputs[k], PyTuple_GET_ITEM(options[NEEDS], k), &made[k]);
    if (ready) {
        call.over_rows.g = call.over_channels.g = g.data;
        call.over_rows.g_step = g.step;
        call.over_channels.g_channel = one ? 0 : call.inner;
        call.over_channels.g_batch = one ? 0 : call.channels * call.inner;
        call.over_rows.mean = call.over_channels.mean = mean ? PyArray_DATA(mean) : NULL;
        call.over_rows.var = call.over_channels.var = PyArray_DATA(var);
        call.over_rows.out = call.over_channels.out = made[0] ? PyArray_DATA(made[0]) : NULL;
        call.over_channels.weight_gradient = made[1] ? PyArray_DATA(made[1]) : NULL;
        call.over_channels.bias_gradient = made[2] ? PyArray_DATA(made[2]) : NULL;
        if (call.by_channel)
            each_channel(&call, call.of->channels_back);
        else if (!differentiate_rows(&call, made[1], made[2]))
            PyErr_NoMemory();
        if (!PyErr_Occurred())
            answer = PyTuple_Pack(3, or_none(made[0]), or_none(made[1]), or_none(made[2]));
    }
    for (int k = 0; k < 3; k++)
        Py_XDECREF(made[k]);
    Py_XDECREF(g.owner);
    Py_XDECREF(mean);
    Py_XDECREF(var);
    end_call(&call);
    return answer;
}

/* (x, mean, var, weight, bias): each channel by statistics that are given. */
static PyObject *run_by(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    double eps;
    if (nargs != 5 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_double(options[EPS], &eps))
        return NULL;
    native_type type = native_real_type(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0], *others[4] = {NULL}, *made = NULL;
    if (type == TYPE_NONE || PyArray_NDIM(x) < 2 || !PyArray_SIZE(x))
        return NULL;
    norm_call call = {.of = &loops->of[type], .type = type, .half = TYPE_NONE};
    call.batch = PyArray_DIM(x, 0);
    call.channels = PyArray_DIM(x, 1);
    npy_intp before;
    native_around(x, 1, &before, &call.inner);
    bool ready = !native_is_none(args[1]) && !native_is_none(args[2]);
    for (int k = 0; ready && k < 4; k++)
        ready = optional(args[k + 1], type, TYPE_NONE, call.channels, &others[k]);
    call.by_channel = true;
    call.ndim = PyArray_NDIM(x);
    memcpy(call.view, PyArray_DIMS(x), (size_t)call.ndim * sizeof *call.view);
    if (ready && take_x(&call, x))
        made = new_like_x(&call);
    if (made) {
        call.over_channels = (norm_channels){call.batch, call.channels, call.inner, eps, true, true, PyArray_DATA(call.x),
                                             others[2] ? PyArray_DATA(others[2]) : NULL,
                                             others[3] ? PyArray_DATA(others[3]) : NULL, PyArray_DATA(others[0]),
                                             PyArray_DATA(others[1]), PyArray_DATA(made)};
        if (call.channels <= norm_channels_together(call.inner))
            native_parallel(call.batch, native_grain(GRAIN, call.channels * call.inner), run_batch, &call);
        else
            each_channel(&call, call.of->channels);
    }
    for (int k = 0; k < 4; k++)
        Py_XDECREF(others[k]);
    end_call(&call);
    return (PyObject *)made;
}

int norm_init(void) {
    loops = PICK(norm_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec norm_kernels[] = {
    {"standardize", run_forward, NULL},
    {"standardize_backward", run_backward, NULL},
    {"standardize_by", run_by, NULL},
    {NULL, NULL, NULL},
};
