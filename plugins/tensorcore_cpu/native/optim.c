/* Optimizer steps over a whole list of parameters at once: one pass over memory, no arrays in between. */
#include "optim.h"

#include "cast.h"
#include "rows.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

DECLARE_LOOPS(optim_loops, optim_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const optim_loops *loops;
static const cast_loops *casts;

enum {
    LR, WEIGHT_DECAY, MOMENTUM, DAMPENING, BETA1, BETA2, EPS, NUMBERS, /* numbers */
    NESTEROV = NUMBERS, MAXIMIZE, FIRST, DECOUPLED, STEPS, FACTOR, OPTIONS,
};
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"lr", "weight_decay", "momentum", "dampening", "beta1", "beta2", "eps",
                                           "nesterov", "maximize", "first", "decoupled", "steps", "factor"};

enum {
    GRAIN = 1 << 14, /* elements a thread */
    MOST_ARRAYS = 5,
    GRADIENT = 1, /* the array that is not written */
    PIECE = 512,  /* elements of a half type that are floats at a time */
};

typedef struct {
    step_numbers numbers;
    step_loop loop;
    native_type type;
    Py_ssize_t params;
    step_arrays *arrays;
    npy_intp *ends; /* of each parameter in the row of all of their elements */
    atomic_bool odd;
} step_call;

static void end_call(step_call *call) {
    free(call->arrays);
    free(call->ends);
}

static char **array_of(step_arrays *of, int k) {
    char **const arrays[MOST_ARRAYS] = {&of->param, &of->grad, &of->one, &of->two, &of->three};
    return arrays[k];
}

/* The elements of a list's array, which has to be dense, of that type and size, and alone in its memory. */
static char *elements(PyObject *list, Py_ssize_t i, native_type type, npy_intp size, bool written) {
    PyObject *object = PyList_Check(list) ? PyList_GET_ITEM(list, i) : PyTuple_GET_ITEM(list, i);
    if (native_array_type(object) != type)
        return NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_IS_C_CONTIGUOUS(array) || PyArray_SIZE(array) != size || (written && !PyArray_ISWRITEABLE(array)))
        return NULL;
    return PyArray_BYTES(array);
}

/* Fills the arrays from lists: params, grads, and what is remembered, each None or as long as the first. False where one is
   not for this kernel. */
static bool begin_call(step_call *call, PyObject *const *lists, int count) {
    for (int k = 0; k < count; k++) {
        if (k > 1 && lists[k] == Py_None)
            continue;
        if (!PyList_Check(lists[k]) && !PyTuple_Check(lists[k]))
            return false;
        Py_ssize_t length = Py_SIZE(lists[k]);
        if (k && length != call->params)
            return false;
        call->params = length;
    }
    if (!call->params)
        return false;
    PyObject *first = PyList_Check(lists[0]) ? PyList_GET_ITEM(lists[0], 0) : PyTuple_GET_ITEM(lists[0], 0);
    call->type = native_array_type(first);
    call->arrays = calloc((size_t)call->params, sizeof *call->arrays);
    call->ends = calloc((size_t)call->params, sizeof *call->ends);
    bool fits = native_is_floating(call->type) && call->arrays && call->ends;
    npy_intp end = 0;
    for (Py_ssize_t i = 0; fits && i < call->params; i++) {
        PyObject *param = PyList_Check(lists[0]) ? PyList_GET_ITEM(lists[0], i) : PyTuple_GET_ITEM(lists[0], i);
        npy_intp size = PyArray_Check(param) ? PyArray_SIZE((PyArrayObject *)param) : -1;
        for (int k = 0; fits && k < count; k++)
            if (k < 2 || lists[k] != Py_None)
                fits = (*array_of(&call->arrays[i], k) = elements(lists[k], i, call->type, size, k != GRADIENT)) != NULL;
        call->ends[i] = end += size;
    }
    if (!fits)
        end_call(call);
    return fits;
}

/* Elements of a half type: each piece of the arrays as floats, so that a step is rounded once. */
static void step_halves(const step_call *call, step_arrays *of, npy_intp first, npy_intp count) {
    _Alignas(64) float space[MOST_ARRAYS][PIECE];
    static const ptrdiff_t in[2] = {sizeof(uint16_t), sizeof(float)}, out[2] = {sizeof(float), sizeof(uint16_t)};
    step_arrays wide = *of;
    for (int k = 0; k < MOST_ARRAYS; k++)
        if (*array_of(of, k))
            *array_of(&wide, k) = (char *)space[k];
    for (npy_intp end = first + count, piece; first < end; first += piece) {
        piece = end - first < PIECE ? end - first : PIECE;
        for (int k = 0; k < MOST_ARRAYS; k++)
            if (*array_of(of, k))
                casts->cast[call->type][TYPE_F32]((char *[]){*array_of(of, k) + first * in[0], (char *)space[k]}, in, piece);
        call->loop(&call->numbers, &wide, 0, piece);
        for (int k = 0; k < MOST_ARRAYS; k++)
            if (*array_of(of, k) && k != GRADIENT)
                casts->cast[TYPE_F32][call->type]((char *[]){(char *)space[k], *array_of(of, k) + first * in[0]}, out, piece);
    }
}

static void run_elements(void *context, npy_intp begin, npy_intp end) {
    step_call *call = context;
    Py_ssize_t low = 0, high = call->params - 1;
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (call->ends[middle] > begin)
            high = middle;
        else
            low = middle + 1;
    }
    for (; begin < end; low++) {
        npy_intp start = low ? call->ends[low - 1] : 0, stop = call->ends[low] < end ? call->ends[low] : end;
        if (stop > begin && call->loop && native_is_half(call->type))
            step_halves(call, &call->arrays[low], begin - start, stop - begin);
        else if (stop > begin && call->loop)
            call->loop(&call->numbers, &call->arrays[low], begin - start, stop - begin);
        else if (stop > begin &&
                 loops->unscale[call->type](call->arrays[low].param + (begin - start) * TYPE_SIZE[call->type], stop - begin,
                                            call->numbers.factor))
            atomic_store(&call->odd, true);
        begin = stop;
    }
}

static void run_params(void *context, npy_intp begin, npy_intp end) {
    step_call *call = context;
    for (; begin < end; begin++)
        run_elements(call, begin ? call->ends[begin - 1] : 0, call->ends[begin]);
}

/* On one thread a step begins with the parameters that the last one left in the caches: to and fro over 1e6 numbers in 100 tensors, whose
   gradients and state are larger than the second cache of a Xeon, took 0.92 of the time. Each is updated whole, so that its last bits do not
   depend on the way. */
static PyObject *run_call(step_call *call) {
    const npy_intp count = call->ends[call->params - 1];
    if (count > GRAIN && call->params > 1 && native_threads() == 1)
        native_blocks(call->params, 1, 2 * count * TYPE_SIZE[call->type], run_params, call);
    else if (count)
        native_parallel(count, GRAIN, run_elements, call);
    end_call(call);
    Py_RETURN_NONE;
}

static bool read_numbers(step_numbers *numbers, PyObject *const *options) {
    double *const into[NUMBERS] = {&numbers->lr, &numbers->weight_decay, &numbers->momentum, &numbers->dampening,
                                   &numbers->beta1, &numbers->beta2, &numbers->eps};
    bool *const switches[] = {&numbers->nesterov, &numbers->maximize, &numbers->first, &numbers->decoupled};
    for (int i = 0; i < NUMBERS; i++)
        if (options[i] && !native_double(options[i], into[i]))
            return false;
    for (int i = NESTEROV; i <= DECOUPLED; i++) {
        int truth = options[i] ? PyObject_IsTrue(options[i]) : 0;
        if (truth < 0) {
            PyErr_Clear();
            return false;
        }
        *switches[i - NESTEROV] = truth;
    }
    return true;
}

static PyObject *run_sgd(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    step_call call = {.params = 0};
    if (nargs != 3 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[LR] ||
        options[STEPS] || !read_numbers(&call.numbers, options) || !begin_call(&call, args, 3))
        return NULL;
    call.loop = loops->sgd[native_is_half(call.type) ? TYPE_F32 : call.type];
    return run_call(&call);
}

static PyObject *run_adam(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    step_call call = {.params = 0};
    if (nargs != 5 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[LR] ||
        !options[BETA1] || !options[BETA2] || !options[EPS] || !options[STEPS] || !PyList_Check(options[STEPS]) ||
        !read_numbers(&call.numbers, options) || args[2] == Py_None || args[3] == Py_None || !begin_call(&call, args, 5))
        return NULL;
    bool fits = PyList_GET_SIZE(options[STEPS]) == call.params;
    double before = -1, size = 0, correction = 0;
    for (Py_ssize_t i = 0; fits && i < call.params; i++) {
        double steps = 0;
        fits = native_double(PyList_GET_ITEM(options[STEPS], i), &steps);
        if (steps != before) { /* most have had as many as the one before */
            correction = sqrt(1 - pow(call.numbers.beta2, steps));
            size = call.numbers.lr / (1 - pow(call.numbers.beta1, steps));
            before = steps;
        }
        call.arrays[i].size = size;
        call.arrays[i].correction = correction;
    }
    if (!fits) {
        end_call(&call);
        return NULL;
    }
    call.loop = loops->adam[native_is_half(call.type) ? TYPE_F32 : call.type];
    return run_call(&call);
}

static PyObject *run_unscale(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *lists[2];
    step_call call = {.params = 0};
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_double(options[FACTOR], &call.numbers.factor))
        return NULL;
    lists[0] = lists[1] = args[0];
    if (!begin_call(&call, lists, 2))
        return NULL;
    if (native_is_half(call.type)) { /* NumPy rounds the factor first */
        end_call(&call);
        return NULL;
    }
    PyObject *done = run_call(&call);
    Py_XDECREF(done);
    PyArrayObject *made = done ? native_empty(0, NULL, TYPE_BOOL) : NULL;
    if (made)
        *(npy_bool *)PyArray_DATA(made) = atomic_load(&call.odd);
    return (PyObject *)made;
}

int optim_init(void) {
    loops = PICK(optim_loops);
    casts = PICK(cast_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec optim_kernels[] = {
    {"sgd_step", run_sgd, NULL},
    {"adam_step", run_adam, NULL},
    {"unscale", run_unscale, NULL},
    {NULL, NULL, NULL},
};
