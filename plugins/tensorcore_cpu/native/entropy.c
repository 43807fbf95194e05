/* nll_loss and cross_entropy with classes as targets, and their gradients. cross_entropy keeps two numbers of each row in
   the place of its logarithms: the backward pass computes those again, which costs less than writing and reading them. */
#include "cast.h"
#include "halves.h"
#include "rows.h"
#include "softmax.h"

#include <stdlib.h>

DECLARE_LOOPS(softmax_loops, softmax_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const softmax_loops *loops;
static const cast_loops *casts;

enum { REDUCTION, IGNORE_INDEX, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 14,
    KEPT = 3,       /* of each place: the largest score, the logarithm of the sum, the weight */
    ROOM = 1 << 12, /* elements of rows of a half type that are floats at a time */
};

/* One call: its operands in row-major order, and what each piece of it does. */
typedef struct {
    class_scores scores;
    const softmax_of_real *of;
    PyArrayObject *x, *target, *weight;
    native_type type, half; /* the scores are of the second, where that is not TYPE_NONE */
    native_reduction reduction;
    npy_intp places;
    void *losses;
    void *gradients;
    char *out;
} class_call;

static void end_call(class_call *call) {
    Py_XDECREF(call->x);
    Py_XDECREF(call->target);
    Py_XDECREF(call->weight);
}

/* Fills the call from (x, target, weight) and the options; false where it is not for this kernel. `halves` is whether rows of a half
   type are, which have room as floats. */
static bool begin_call(class_call *call, PyObject *x, PyObject *target, PyObject *weight, PyObject *const *options, bool halves) {
    *call = (class_call){.type = native_real_type(x), .half = TYPE_NONE, .reduction = native_reduction_named(options[REDUCTION])};
    const native_type given = native_array_type(x);
    if (halves && native_is_half(given) && PyArray_NDIM((PyArrayObject *)x) == 2 && PyArray_DIM((PyArrayObject *)x, 1) <= ROOM) {
        call->half = given;
        call->type = TYPE_F32;
    }
    if (call->type == TYPE_NONE || call->reduction == REDUCTION_UNKNOWN || native_array_type(target) != TYPE_I64 ||
        !options[IGNORE_INDEX] || !PyLong_Check(options[IGNORE_INDEX]))
        return false;
    PyArrayObject *array = (PyArrayObject *)x, *classes = (PyArrayObject *)target;
    int ndim = PyArray_NDIM(array);
    if (ndim < 2 || !PyArray_SIZE(array) || PyArray_NDIM(classes) != ndim - 1 ||
        PyArray_DIM(classes, 0) != PyArray_DIM(array, 0) ||
        !PyArray_CompareLists(PyArray_DIMS(classes) + 1, PyArray_DIMS(array) + 2, ndim - 2))
        return false;
    call->scores.n = PyArray_DIM(array, 1);
    if (!native_is_none(weight) && (native_real_type(weight) != call->type || PyArray_NDIM((PyArrayObject *)weight) != 1 ||
                                    PyArray_DIM((PyArrayObject *)weight, 0) != call->scores.n))
        return false;
    call->scores.ignored = PyLong_AsLongLong(options[IGNORE_INDEX]);
    if (call->scores.ignored == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    native_around(array, 1, &call->places, &call->scores.inner);
    call->places *= call->scores.inner;
    call->x = native_dense(x);
    call->target = native_dense(target);
    call->weight = native_is_none(weight) ? NULL : native_dense(weight);
    if (!call->x || !call->target || (!call->weight && !native_is_none(weight))) {
        end_call(call);
        return false;
    }
    call->of = &loops->of[call->type];
    call->scores.x = PyArray_DATA(call->x);
    call->scores.target = PyArray_DATA(call->target);
    call->scores.weight = call->weight ? PyArray_DATA(call->weight) : NULL;
    return true;
}

/* Whether every target is a class or ignored: NumPy's kernel says what is wrong with another. */
static bool known_classes(const class_call *call) {
    if (native_inside(call->scores.target, call->places, call->scores.n))
        return true;
    for (npy_intp i = 0; i < call->places; i++) {
        int64_t class = call->scores.target[i];
        if ((class < 0 || class >= call->scores.n) && class != call->scores.ignored)
            return false;
    }
    return true;
}

typedef void (*place_step)(class_call *call, npy_intp first, npy_intp count);
typedef struct {
    class_call *call;
    place_step step;
} place_run;

/* Places of one batch that lie side by side go together. */
static void run_places(void *context, npy_intp begin, npy_intp end) {
    const place_run *run = context;
    npy_intp inner = run->call->scores.inner;
    if (inner == 1) {
        run->step(run->call, begin, end - begin);
        return;
    }
    while (begin < end) {
        npy_intp count = inner - begin % inner;
        count = count < COLUMNS ? count : COLUMNS;
        count = count < end - begin ? count : end - begin;
        run->step(run->call, begin, count);
        begin += count;
    }
}

static void each_place(class_call *call, place_step step, bool cheap) {
    place_run run = {call, step};
    native_parallel(call->places, cheap ? GRAIN : native_grain(GRAIN, call->scores.n), run_places, &run);
}

/* Rows of halves: a few of them are floats at a time. */
static void forward_halves(class_call *call, npy_intp first, npy_intp count) {
    _Alignas(64) float space[ROOM];
    const npy_intp n = call->scores.n;
    for (npy_intp end = first + count, rows; first < end; first += rows) {
        class_scores some = call->scores;
        rows = end - first < ROOM / n ? end - first : ROOM / n;
        casts->cast[call->half][TYPE_F32]((char *[]){(char *)some.x + first * n * TYPE_SIZE[call->half], (char *)space},
                                          (const ptrdiff_t[]){TYPE_SIZE[call->half], sizeof *space}, rows * n);
        some.x = space;
        some.target += first;
        some.top = (float *)some.top + first;
        some.less = (float *)some.less + first;
        some.each = (float *)some.each + first;
        call->of->statistics(&some, 0, rows);
        call->of->losses(&some, (float *)call->losses + first, 0, rows);
    }
}

static void forward_step(class_call *call, npy_intp first, npy_intp count) {
    if (call->scores.top)
        call->of->statistics(&call->scores, first, count);
    call->of->losses(&call->scores, call->losses, first, count);
}

static void backward_step(class_call *call, npy_intp first, npy_intp count) {
    call->of->backward(&call->scores, call->gradients, call->out, first, count);
}

/* The losses as asked for: of each place, or their sum, over that of the weights where it is a mean. */
static PyObject *finished(const class_call *call, PyArrayObject *losses, double weights) {
    if (call->reduction == REDUCTION_NONE)
        return call->half == TYPE_NONE ? Py_NewRef((PyObject *)losses) : native_converted(losses, call->type, call->half);
    double total = call->of->total(call->losses, call->places);
    PyObject *made = native_number_array(call->reduction == REDUCTION_MEAN ? total / weights : total, call->type);
    if (made && call->half != TYPE_NONE)
        Py_SETREF(made, native_converted((PyArrayObject *)made, call->type, call->half));
    return made;
}

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    bool of_scores = kernel->data != NULL;
    PyObject *options[OPTIONS], *answer = NULL;
    class_call call;
    if (nargs != 3 || !kwnames || !native_options(args, nargs, kwnames, names, 2, options) ||
        !begin_call(&call, args[0], args[1], args[2], options, of_scores))
        return NULL;
    npy_intp inner = call.scores.inner, rows = call.places / inner, size = TYPE_SIZE[call.type];
    npy_intp kept_shape[3] = {KEPT, rows, inner};
    PyArrayObject *losses = NULL, *kept = NULL;
    if (known_classes(&call)) {
        losses = native_empty(PyArray_NDIM(call.target), PyArray_DIMS(call.target), call.type);
        kept = native_empty(of_scores ? 3 : 2, of_scores ? kept_shape : kept_shape + 1, call.type);
    }
    if (losses && kept) {
        call.losses = PyArray_DATA(losses);
        char *data = PyArray_BYTES(kept);
        if (of_scores) {
            call.scores.top = data;
            call.scores.less = data + call.places * size;
            data += 2 * call.places * size;
        }
        call.scores.each = data;
        each_place(&call, call.half != TYPE_NONE ? forward_halves : forward_step, !of_scores);
        double weights = call.reduction == REDUCTION_NONE ? 1 : call.of->total(call.scores.each, call.places);
        PyObject *made = finished(&call, losses, weights), *sum = native_number_array(weights, call.type);
        if (made && sum)
            answer = PyTuple_Pack(3, made, kept, sum);
        Py_XDECREF(made);
        Py_XDECREF(sum);
    }
    Py_XDECREF(losses);
    Py_XDECREF(kept);
    end_call(&call);
    return answer;
}

/* The gradient of each place's loss, weighted: 0 for what is ignored, also where that is everything and the mean is NaN. */
static bool spread_gradient(class_call *call, PyArrayObject *g, const void *each, double weights) {
    npy_intp size = TYPE_SIZE[call->type];
    call->gradients = malloc((size_t)(call->places * size));
    if (!call->gradients) {
        PyErr_NoMemory();
        return false;
    }
    bool one_each = call->reduction == REDUCTION_NONE;
    double factor = one_each ? 0 : native_number_in(g) / (call->reduction == REDUCTION_MEAN ? weights : 1);
    if (call->type == TYPE_F32) {
        const float *from = PyArray_DATA(g), *weight = each;
        for (npy_intp i = 0; i < call->places; i++)
            ((float *)call->gradients)[i] = weight[i] ? weight[i] * (one_each ? from[i] : (float)factor) : 0;
    } else {
        const double *from = PyArray_DATA(g), *weight = each;
        for (npy_intp i = 0; i < call->places; i++)
            ((double *)call->gradients)[i] = weight[i] ? weight[i] * (one_each ? from[i] : factor) : 0;
    }
    return true;
}

/* (g, x, target, weight, kept, weights), as the forward pass left the last two. NumPy's cross_entropy leaves three. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    bool of_scores = kernel->data != NULL;
    PyObject *options[OPTIONS], *answer = NULL;
    class_call call;
    if (nargs != 6 || !kwnames || !native_options(args, nargs, kwnames, names, 3, options))
        return NULL;
    native_type type = native_real_type(args[1]);
    if (type == TYPE_NONE || native_real_type(args[0]) != type || native_real_type(args[4]) != type ||
        native_real_type(args[5]) != type || !begin_call(&call, args[1], args[2], args[3], options, false))
        return NULL;
    PyArrayObject *kept = (PyArrayObject *)args[4], *weights = (PyArrayObject *)args[5], *g = NULL, *made = NULL;
    npy_intp wanted = call.reduction == REDUCTION_NONE ? call.places : 1;
    if (PyArray_SIZE(kept) == (of_scores ? KEPT : 1) * call.places && PyArray_IS_C_CONTIGUOUS(kept) &&
        PyArray_SIZE(weights) == 1 && PyArray_SIZE((PyArrayObject *)args[0]) == wanted)
        g = native_dense(args[0]);
    if (g)
        made = native_empty(PyArray_NDIM(call.x), PyArray_DIMS(call.x), type);
    if (made) {
        const char *data = PyArray_BYTES(kept), *each = data;
        npy_intp row = call.places * TYPE_SIZE[type];
        if (of_scores) {
            call.scores.top = (void *)data;
            call.scores.less = (void *)(data + row);
            each = data + 2 * row;
        }
        call.out = PyArray_BYTES(made);
        if (spread_gradient(&call, g, each, native_number_in(weights))) {
            each_place(&call, backward_step, false);
            answer = PyTuple_Pack(3, (PyObject *)made, Py_None, Py_None);
        }
        free(call.gradients);
    }
    Py_XDECREF(made);
    Py_XDECREF(g);
    end_call(&call);
    return answer;
}

int entropy_init(void) {
    loops = PICK(softmax_loops);
    casts = PICK(cast_loops);
    names[REDUCTION] = PyUnicode_InternFromString("reduction");
    names[IGNORE_INDEX] = PyUnicode_InternFromString("ignore_index");
    names[NEEDS] = PyUnicode_InternFromString("needs");
    return names[REDUCTION] && names[IGNORE_INDEX] && names[NEEDS] ? 0 : -1;
}

static const bool of_scores = true;

const native_spec entropy_kernels[] = {
    {"nll_loss", run_forward, NULL},
    {"nll_loss_backward", run_backward, NULL},
    {"cross_entropy", run_forward, &of_scores},
    {"cross_entropy_backward", run_backward, &of_scores},
    {NULL, NULL, NULL},
};
