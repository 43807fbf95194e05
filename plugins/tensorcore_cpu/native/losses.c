/* mse_loss, smooth_l1_loss and its kin, soft_margin_loss, binary_cross_entropy of chances and of scores, and their gradients. */
#include "losses.h"

#include "elementwise.h"
#include "reduce.h"
#include "rows.h"

#include <math.h>

DECLARE_LOOPS(loss_loops, loss_loops);
DECLARE_LOOPS(reduce_loops, reduce_loops);
DECLARE_LOOPS(elementwise_loops, elementwise_loops);

static const loss_loops *loops;

enum { REDUCTION, NEEDS, LIMIT, SCALE, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 15, FUNCTION_GRAIN = 1 << 13 }; /* elements a thread */

typedef struct {
    int loss;
    int operands; /* two of them, and weights: of each element, then of the positive ones, which have to be None but where losses are weighed */
} loss_op;

typedef struct {
    int loss;
    native_type type;
    const char *x, *target, *g;
    char *out;
    bool one;
    double factor;
    loss_shape shape;
    const char *weight, *positive; /* of each element, and of those whose target is 1; NULL where there are none */
} loss_run;

static npy_intp grain_of(int loss) { return loss == LOGISTIC || loss >= CHANCE ? FUNCTION_GRAIN : GRAIN; }

/* The numbers that a loss takes: of those that take none nothing is read. */
static bool read_shape(const loss_op *op, PyObject *const *options, loss_shape *shape) {
    *shape = (loss_shape){0, 1};
    return op->loss != SMOOTH_L1 ? !options[LIMIT] && !options[SCALE]
                                 : native_double(options[LIMIT], &shape->limit) && native_double(options[SCALE], &shape->scale);
}

/* The common type of x and the target where they lie alike, in row-major order. */
static native_type both(PyObject *const *args) {
    native_type type = native_real_type(args[0]);
    if (type == TYPE_NONE || native_real_type(args[1]) != type)
        return TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0], *target = (PyArrayObject *)args[1];
    if (PyArray_NDIM(x) != PyArray_NDIM(target) ||
        !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(target), PyArray_NDIM(x)) || !PyArray_IS_C_CONTIGUOUS(x) ||
        !PyArray_IS_C_CONTIGUOUS(target) || !PyArray_SIZE(x))
        return TYPE_NONE;
    return type;
}

/* The same where there are no weights. */
static native_type operands(const loss_op *op, PyObject *const *args) {
    for (int k = 2; k < op->operands; k++)
        if (args[k] != Py_None)
            return TYPE_NONE;
    return both(args);
}

/* An array of that type which broadcasts to the shape of x, written out: a new reference; NULL with an exception or without. */
static PyArrayObject *weights_for(PyArrayObject *x, PyObject *object, native_type type) {
    PyArrayObject *weight = (PyArrayObject *)object, *made;
    if (native_real_type(object) != type || PyArray_NDIM(weight) > PyArray_NDIM(x))
        return NULL;
    const int missing = PyArray_NDIM(x) - PyArray_NDIM(weight);
    for (int i = 0; i < PyArray_NDIM(weight); i++)
        if (PyArray_DIM(weight, i) != 1 && PyArray_DIM(weight, i) != PyArray_DIM(x, i + missing))
            return NULL;
    if (!missing && PyArray_SAMESHAPE(x, weight))
        return native_dense(object);
    if ((made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type)) && PyArray_CopyInto(made, weight))
        Py_CLEAR(made);
    return made;
}

enum { PIECE = 512 };

/* Losses times their weights. Where positive targets weigh more, the rest of their loss is added: no difference of large numbers. */
#define WEIGHED(name, type, TYPE)                                                                             \
    static void name(const loss_run *run, npy_intp begin, npy_intp end) {                                     \
        type soft[PIECE], ones[PIECE];                                                                        \
        for (int i = 0; run->positive && i < PIECE; i++)                                                      \
            ones[i] = 1;                                                                                      \
        for (npy_intp count; begin < end; begin += count) {                                                   \
            count = end - begin < PIECE ? end - begin : PIECE;                                                \
            const type *x = (const type *)run->x + begin, *y = (const type *)run->target + begin;             \
            const type *weight = (const type *)run->weight, *positive = (const type *)run->positive;          \
            type *out = (type *)run->out + begin;                                                             \
            loops->of[run->loss][TYPE].each(x, y, out, count, run->shape);                                    \
            if (positive)                                                                                     \
                loops->of[run->loss][TYPE].each(x, ones, soft, count, run->shape);                            \
            for (npy_intp i = 0; positive && i < count; i++) /* `soft` is NaN for infinity, a zero times x */ \
                out[i] += (positive[begin + i] - 1) * y[i] * (x[i] == INFINITY ? 0 : soft[i]);                \
            for (npy_intp i = 0; weight && i < count; i++)                                                    \
                out[i] *= weight[begin + i];                                                                  \
        }                                                                                                     \
    }
WEIGHED(weighed_f32, float, TYPE_F32)
WEIGHED(weighed_f64, double, TYPE_F64)

static void weighed_part(void *context, npy_intp begin, npy_intp end) {
    const loss_run *run = context;
    (run->type == TYPE_F32 ? weighed_f32 : weighed_f64)(run, begin, end);
}

static double weighed_total(void *context, npy_intp begin, npy_intp end) {
    const loss_run *run = context;
    return PICK(reduce_loops)->of[run->type].sum(run->out + begin * TYPE_SIZE[run->type], end - begin);
}

/* The losses with weights, of which one is there. */
static PyObject *weighed(const loss_op *op, PyObject *const *args, native_reduction reduction, loss_shape shape) {
    const native_type type = both(args);
    PyArrayObject *x = (PyArrayObject *)args[0], *weights[2] = {NULL, NULL}, *made = NULL;
    if (type == TYPE_NONE || reduction == REDUCTION_UNKNOWN)
        return NULL;
    bool good = true;
    for (int k = 2; good && k < op->operands; k++)
        good = args[k] == Py_None || (weights[k - 2] = weights_for(x, args[k], type));
    PyObject *answer = NULL;
    if (good && (made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type))) {
        const npy_intp count = PyArray_SIZE(x);
        double total;
        loss_run run = {op->loss, type, PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)args[1]), .shape = shape, .out = PyArray_BYTES(made),
                        .weight = weights[0] ? PyArray_BYTES(weights[0]) : NULL, .positive = weights[1] ? PyArray_BYTES(weights[1]) : NULL};
        native_parallel(count, grain_of(op->loss), weighed_part, &run);
        if (reduction == REDUCTION_NONE)
            answer = Py_NewRef((PyObject *)made);
        else if (native_sum_of_parts(count, GRAIN, weighed_total, &run, &total))
            answer = native_number_array(reduction == REDUCTION_MEAN ? total / (double)count : total, type);
    }
    Py_XDECREF(made);
    Py_XDECREF(weights[0]);
    Py_XDECREF(weights[1]);
    return answer;
}

static void each_part(void *context, npy_intp begin, npy_intp end) {
    const loss_run *run = context;
    npy_intp start = begin * TYPE_SIZE[run->type];
    loops->of[run->loss][run->type].each(run->x + start, run->target + start, run->out + start, end - begin, run->shape);
}

static double total_part(void *context, npy_intp begin, npy_intp end) {
    const loss_run *run = context;
    npy_intp start = begin * TYPE_SIZE[run->type];
    return loops->of[run->loss][run->type].total(run->x + start, run->target + start, end - begin, run->shape);
}

static void backward_part(void *context, npy_intp begin, npy_intp end) {
    const loss_run *run = context;
    npy_intp start = begin * TYPE_SIZE[run->type];
    loops->of[run->loss][run->type].backward(run->x + start, run->target + start, run->g + (run->one ? 0 : start),
                                             run->one, run->factor, run->out + start, end - begin, run->shape);
}

static void negated_part(void *context, npy_intp begin, npy_intp end) {
    const loss_run *run = context;
    const ptrdiff_t width = TYPE_SIZE[run->type], steps[2] = {width, width};
    char *const ends[2] = {(char *)run->x + begin * width, run->out + begin * width};
    PICK(elementwise_loops)->compute[OP_neg][run->type](ends, steps, end - begin);
}

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const loss_op *op = kernel->data;
    PyObject *options[OPTIONS];
    loss_shape shape;
    if (nargs != op->operands || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        options[NEEDS] || !read_shape(op, options, &shape))
        return NULL;
    native_type type = operands(op, args);
    native_reduction reduction = native_reduction_named(options[REDUCTION]);
    if (type == TYPE_NONE && op->operands > 2)
        return weighed(op, args, reduction, shape);
    if (type == TYPE_NONE || reduction == REDUCTION_UNKNOWN)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    npy_intp count = PyArray_SIZE(x);
    loss_run run = {op->loss, type, PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)args[1]), .shape = shape};
    if (reduction == REDUCTION_NONE) {
        PyArrayObject *made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
        if (made) {
            run.out = PyArray_BYTES(made);
            native_parallel(count, grain_of(op->loss), each_part, &run);
        }
        return (PyObject *)made;
    }
    double total;
    if (!native_sum_of_parts(count, grain_of(op->loss), total_part, &run, &total))
        return NULL;
    return native_number_array(reduction == REDUCTION_MEAN ? total / (double)count : total, type);
}

/* (g, x, target, ...). The gradient of the target of a loss of differences is that of x, negated. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const loss_op *op = kernel->data;
    PyObject *options[OPTIONS], *needs;
    loss_shape shape;
    if (nargs != op->operands + 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !read_shape(op, options, &shape))
        return NULL;
    native_type type = operands(op, args + 1);
    native_reduction reduction = native_reduction_named(options[REDUCTION]);
    needs = options[NEEDS];
    if (type == TYPE_NONE || reduction == REDUCTION_UNKNOWN || native_real_type(args[0]) != type || !needs ||
        !PyTuple_Check(needs) || PyTuple_GET_SIZE(needs) != op->operands)
        return NULL;
    const bool differs = op->loss == SQUARED_ERROR || op->loss == SMOOTH_L1, other = PyTuple_GET_ITEM(needs, 1) == Py_True;
    for (int k = 1; k < op->operands; k++)
        if (PyTuple_GET_ITEM(needs, k) != Py_False && !(k == 1 && differs && other))
            return NULL;
    PyArrayObject *g = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    npy_intp count = PyArray_SIZE(x);
    bool one = reduction != REDUCTION_NONE;
    if (!PyArray_IS_C_CONTIGUOUS(g) || PyArray_SIZE(g) != (one ? 1 : count))
        return NULL;
    PyArrayObject *made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (!made)
        return NULL;
    loss_run run = {op->loss, type, PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)args[2]), PyArray_BYTES(g),
                    PyArray_BYTES(made), one, reduction == REDUCTION_MEAN ? 1 / (double)count : 1, shape};
    native_parallel(count, grain_of(op->loss), backward_part, &run);
    PyArrayObject *turned = other ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type) : NULL;
    PyObject *answer = other && !turned ? NULL : PyTuple_New(op->operands);
    if (turned)
        native_parallel(count, GRAIN, negated_part, &(loss_run){.type = type, .x = run.out, .out = PyArray_BYTES(turned)});
    for (int k = 0; answer && k < op->operands; k++)
        PyTuple_SET_ITEM(answer, k, Py_NewRef(!k ? (PyObject *)made : k == 1 && turned ? (PyObject *)turned : Py_None));
    Py_DECREF(made);
    Py_XDECREF(turned);
    return answer;
}

int losses_init(void) {
    static const char *const words[OPTIONS] = {"reduction", "needs", "limit", "scale"};
    loops = PICK(loss_loops);
    return native_intern(names, words, OPTIONS);
}

static const loss_op mse = {SQUARED_ERROR, 2}, logits = {LOGISTIC, 4}, smooth = {SMOOTH_L1, 2}, chance = {CHANCE, 3}, margin = {SOFT_MARGIN, 2};

const native_spec losses_kernels[] = {
    {"mse_loss", run_forward, &mse},
    {"mse_loss_backward", run_backward, &mse},
    {"smooth_l1_loss", run_forward, &smooth},
    {"smooth_l1_loss_backward", run_backward, &smooth},
    {"soft_margin_loss", run_forward, &margin},
    {"soft_margin_loss_backward", run_backward, &margin},
    {"binary_cross_entropy", run_forward, &chance},
    {"binary_cross_entropy_backward", run_backward, &chance},
    {"binary_cross_entropy_with_logits", run_forward, &logits},
    {"binary_cross_entropy_with_logits_backward", run_backward, &logits},
    {NULL, NULL, NULL},
};
