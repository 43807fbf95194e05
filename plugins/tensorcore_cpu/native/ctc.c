/* ctc_loss and its gradient: what they take. */
#include "ctc.h"

#include "rows.h"

#include <stdlib.h>

DECLARE_LOOPS(ctc_loops, ctc_loops);

static const ctc_loops *loops;

enum { FRAMES, COUNTS, INFINITE, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 10 }; /* states and classes of all frames a thread */

/* One call: log-probabilities, classes of the states, which may follow the one two before, then alpha and g where it goes back. */
typedef struct {
    ctc_what what;
    const ctc_of_real *of;
    native_type type;
    PyArrayObject *dense[5];
    npy_intp *lengths;
    void *losses, *out;
    _Atomic bool short_of_memory;
} ctc_call;

static void end_call(ctc_call *call) {
    for (int k = 0; k < 5; k++)
        Py_XDECREF(call->dense[k]);
    free(call->lengths);
}

static bool has_shape(PyObject *array, int ndim, npy_intp first, npy_intp second, npy_intp third) {
    const npy_intp shape[3] = {first, second, third};
    return PyArray_NDIM((PyArrayObject *)array) == ndim && PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)array), shape, ndim);
}

static bool read_lengths(ctc_call *call, PyObject *const *options) {
    const ctc_what *what = &call->what;
    const int batch = (int)what->batch;
    call->lengths = malloc(2 * (size_t)batch * sizeof *call->lengths);
    if (!call->lengths || native_sizes(options[FRAMES], call->lengths, batch) != batch ||
        native_sizes(options[COUNTS], call->lengths + batch, batch) != batch)
        return false;
    for (int i = 0; i < batch; i++) {
        call->lengths[batch + i] *= 2;
        if (call->lengths[i] < 0 || call->lengths[i] > what->length || call->lengths[batch + i] < 0 ||
            call->lengths[batch + i] >= what->states)
            return false;
    }
    call->what.frames = call->lengths;
    call->what.lasts = call->lengths + batch;
    return true;
}

/* Fills the call from (log_probs, labels, skips) and the options; false where it is not for this kernel. */
static bool begin_call(ctc_call *call, PyObject *const *args, PyObject *const *options) {
    *call = (ctc_call){.type = native_real_type(args[0])};
    if (call->type == TYPE_NONE || native_array_type(args[1]) != TYPE_I64 || native_array_type(args[2]) != TYPE_BOOL)
        return false;
    PyArrayObject *x = (PyArrayObject *)args[0], *labels = (PyArrayObject *)args[1];
    if (PyArray_NDIM(x) != 3 || !PyArray_SIZE(x) || PyArray_NDIM(labels) != 2 || PyArray_DIM(x, 1) > INT32_MAX)
        return false;
    call->what = (ctc_what){.length = PyArray_DIM(x, 0), .batch = PyArray_DIM(x, 1), .classes = PyArray_DIM(x, 2),
                            .states = PyArray_DIM(labels, 1), .infinite = options[INFINITE] == Py_True};
    if (!has_shape(args[1], 2, call->what.batch, call->what.states, 0) ||
        !has_shape(args[2], 2, call->what.batch, call->what.states, 0) || !read_lengths(call, options))
        return false;
    for (int k = 0; k < 3; k++)
        if (!(call->dense[k] = native_dense(args[k])))
            return false;
    call->what.x = PyArray_DATA(call->dense[0]);
    call->what.labels = PyArray_DATA(call->dense[1]);
    call->what.skips = PyArray_DATA(call->dense[2]);
    for (npy_intp i = 0; i < call->what.batch * call->what.states; i++)
        if (call->what.labels[i] < 0 || call->what.labels[i] >= call->what.classes)
            return false; /* NumPy's kernel says what is wrong with it */
    call->of = &loops->of[call->type];
    return true;
}

static void run_samples(void *context, npy_intp begin, npy_intp end) {
    ctc_call *call = context;
    void *scratch = malloc((size_t)(CTC_ROWS * (call->what.states + CTC_VECTOR)) * TYPE_SIZE[call->type]);
    if (!scratch)
        call->short_of_memory = true;
    for (; scratch && begin < end; begin++) {
        if (call->dense[3])
            call->of->backward(&call->what, begin, PyArray_DATA(call->dense[4]), PyArray_DATA(call->dense[3]), call->out, scratch);
        else
            call->of->forward(&call->what, begin, call->losses, call->out, scratch);
    }
    free(scratch);
}

static bool each_sample(ctc_call *call) {
    const npy_intp work = call->what.length * (call->what.states + call->what.classes / 8 + 1);
    native_parallel(call->what.batch, native_grain(GRAIN, work), run_samples, call);
    if (call->short_of_memory)
        PyErr_NoMemory();
    return !call->short_of_memory;
}

/* The losses, and alpha: the logarithms of the sums over all paths up to each of a sample's own frames, and state. */
static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *answer = NULL;
    if (nargs != 3 || !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    ctc_call call;
    PyArrayObject *losses = NULL, *alpha = NULL;
    if (begin_call(&call, args, options)) {
        const npy_intp shape[3] = {call.what.length, call.what.batch, call.what.states};
        losses = native_empty(1, shape + 1, call.type);
        alpha = losses ? native_empty(3, shape, call.type) : NULL;
    }
    if (alpha) {
        call.losses = PyArray_DATA(losses);
        call.out = PyArray_DATA(alpha);
        if (each_sample(&call))
            answer = Py_BuildValue("OO", losses, alpha);
    }
    Py_XDECREF(losses);
    Py_XDECREF(alpha);
    end_call(&call);
    return answer;
}

/* (g, log_probs, labels, skips, alpha); the gradient of the log-probabilities. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    if (nargs != 5 || !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    ctc_call call;
    PyArrayObject *made = NULL;
    if (begin_call(&call, args + 1, options) && native_real_type(args[0]) == call.type && native_real_type(args[4]) == call.type &&
        has_shape(args[0], 1, call.what.batch, 0, 0) &&
        has_shape(args[4], 3, call.what.length, call.what.batch, call.what.states) && (call.dense[3] = native_dense(args[4])) &&
        (call.dense[4] = native_dense(args[0])) && (made = native_empty(3, PyArray_DIMS(call.dense[0]), call.type))) {
        call.out = PyArray_DATA(made);
        if (!each_sample(&call))
            Py_CLEAR(made);
    }
    end_call(&call);
    return made ? Py_BuildValue("NOO", made, Py_None, Py_None) : NULL;
}

int ctc_init(void) {
    static const char *const words[OPTIONS] = {"frames", "counts", "infinite", "needs"};
    loops = PICK(ctc_loops);
    return native_intern(names, words, OPTIONS);
}

const native_spec ctc_kernels[] = {
    {"ctc_loss", run_forward, NULL},
    {"ctc_loss_backward", run_backward, NULL},
    {NULL, NULL, NULL},
};
