/* mse_loss, smooth_l1_loss and its kin, soft_margin_loss, binary_cross_entropy of chances and of scores, and their gradients. */
#include "losses.h"

#include "rows.h"

DECLARE_LOOPS(loss_loops, loss_loops);

static const loss_loops *loops;

enum { REDUCTION, NEEDS, LIMIT, SCALE, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 15, FUNCTION_GRAIN = 1 << 13 }; /* elements a thread */

typedef struct {
    int loss;
    int operands; /* two of them, and weights, which have to be None here */
} loss_op;

typedef struct {
    int loss;
    native_type type;
    const char *x, *target, *g;
    char *out;
    bool one;
    double factor;
    loss_shape shape;
} loss_run;

static npy_intp grain_of(int loss) { return loss == LOGISTIC || loss >= CHANCE ? FUNCTION_GRAIN : GRAIN; }

/* The numbers that a loss takes: of those that take none nothing is read. */
static bool read_shape(const loss_op *op, PyObject *const *options, loss_shape *shape) {
    *shape = (loss_shape){0, 1};
    return op->loss != SMOOTH_L1 ? !options[LIMIT] && !options[SCALE]
                                 : native_double(options[LIMIT], &shape->limit) && native_double(options[SCALE], &shape->scale);
}

/* The common type of x and the target where they lie alike, in row-major order, and there are no weights. */
static native_type operands(const loss_op *op, PyObject *const *args) {
    native_type type = native_real_type(args[0]);
    if (type == TYPE_NONE || native_real_type(args[1]) != type)
        return TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0], *target = (PyArrayObject *)args[1];
    if (PyArray_NDIM(x) != PyArray_NDIM(target) ||
        !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(target), PyArray_NDIM(x)) || !PyArray_IS_C_CONTIGUOUS(x) ||
        !PyArray_IS_C_CONTIGUOUS(target) || !PyArray_SIZE(x))
        return TYPE_NONE;
    for (int k = 2; k < op->operands; k++)
        if (args[k] != Py_None)
            return TYPE_NONE;
    return type;
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

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const loss_op *op = kernel->data;
    PyObject *options[OPTIONS];
    loss_shape shape;
    if (nargs != op->operands || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        options[NEEDS] || !read_shape(op, options, &shape))
        return NULL;
    native_type type = operands(op, args);
    native_reduction reduction = native_reduction_named(options[REDUCTION]);
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

/* (g, x, target, ...); the gradient of the target where it is asked for is that of x, negated. */
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
    for (int k = 1; k < op->operands; k++)
        if (PyTuple_GET_ITEM(needs, k) != Py_False)
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
    PyObject *answer = PyTuple_New(op->operands);
    for (int k = 0; answer && k < op->operands; k++)
        PyTuple_SET_ITEM(answer, k, Py_NewRef(k ? Py_None : (PyObject *)made));
    Py_DECREF(made);
    return answer;
}

int losses_init(void) {
    static const char *const words[OPTIONS] = {"reduction", "needs", "limit", "scale"};
    loops = PICK(loss_loops);
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(words[i])))
            return -1;
    return 0;
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
