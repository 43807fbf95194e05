/* Functions of one element that are several steps elsewhere: options, broadcasting, and numbers taken apart. */
#include "formulas.h"

#include "cast.h"
#include "complex_numbers.h"
#include "elementwise.h"
#include "folds.h"
#include "halves.h"
#include "integers.h"
#include "plan.h"
#include "rows.h"

#include <float.h>
#include <math.h>
#define NO_IMPORT_UFUNC /* of its table of functions, which nothing here calls */
#include <numpy/ufuncobject.h>
#include <string.h>

DECLARE_LOOPS(formula_loops, formula_loops);
DECLARE_LOOPS(elementwise_loops, elementwise_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const formula_loops *loops;
static const elementwise_loops *products;

enum { OUT, EPS, LAMBD, VALUE, NAN_VALUE, POSINF, NEGINF, NEGATIVE_SLOPE, THRESHOLD, ALPHA, ORDER, OPTIONS };
enum { DIM, KEEPDIM, DTYPE, POWER, WHOLE_OPTIONS };
static PyObject *whole_names[WHOLE_OPTIONS];
static const char *const WHOLE_NAMES[WHOLE_OPTIONS] = {"dim", "keepdim", "dtype", "p"};
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"out", "eps", "lambd", "value", "nan", "posinf", "neginf", "negative_slope",
                                           "threshold", "alpha", "n"};

enum { GRAIN = 1 << 13, PIECE = 2048 }; /* elements a thread, and of half types that are converted at a time */

typedef struct {
    int loop, inputs;
} formula_op;

typedef struct {
    formula_loop loop;
    double numbers[3];
} formula_run;

static void run_rows(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const formula_run *run = context;
    run->loop(run->numbers, data, steps, count);
}

static bool number(PyObject *option, double missing, double *value) {
    *value = missing;
    return native_is_none(option) || native_double(option, value);
}

/* The options that an op has, as its loop wants them. */
static bool read_numbers(int loop, native_type type, PyObject *const *options, double *numbers) {
    const double most = type == TYPE_F32 ? FLT_MAX : DBL_MAX;
    double eps;
    switch (loop) {
    case FORMULA_hardshrink:
    case FORMULA_softshrink:
        return number(options[LAMBD], 0.5, numbers) && (numbers[0] >= 0 || loop == FORMULA_hardshrink);
    case FORMULA_threshold:
        return number(options[THRESHOLD], 0, numbers) && number(options[VALUE], 0, numbers + 1);
    case FORMULA_nan_to_num_kept:
        numbers[1] = most;
        return number(options[NAN_VALUE], 0, numbers);
    case FORMULA_nan_to_num:
        return number(options[NAN_VALUE], 0, numbers) && number(options[POSINF], most, numbers + 1) &&
               number(options[NEGINF], -most, numbers + 2);
    case FORMULA_logit:
        if (!number(options[EPS], -INFINITY, &eps))
            return false;
        numbers[0] = eps;
        numbers[1] = eps == -INFINITY ? INFINITY : 1 - eps;
        return true;
    case FORMULA_leaky_relu_backward:
        return number(options[NEGATIVE_SLOPE], 0.01, numbers);
    case FORMULA_add_scaled:
        return number(options[ALPHA], 1, numbers);
    case FORMULA_addcdiv:
    case FORMULA_addcmul:
        return number(options[VALUE], 1, numbers);
    default:
        return true;
    }
}

/* Whether integers of the type can be those numbers, which are cut off at the point. */
static bool are_within(native_type type, const double *numbers) {
    const int bits = 8 * TYPE_SIZE[type] < 54 ? 8 * TYPE_SIZE[type] : 54; /* of which a double holds all */
    const double most = ldexp(1, type == TYPE_U8 ? 8 : bits - 1), least = type == TYPE_U8 ? 0 : -most;
    for (int k = 0; k < 3; k++)
        if (!(trunc(numbers[k]) >= least && trunc(numbers[k]) < most))
            return false;
    return true;
}

/* The loop over operands of one type, which are arrays. */
static PyObject *computed(int loop, int inputs, PyObject *const *args, PyObject *const *options, const double *numbers) {
    native_operand operands[PLAN_OPERANDS];
    native_type type = TYPE_NONE;
    bool dense = true;
    for (int k = 0; k < inputs; k++) {
        native_type one = native_array_type(args[k]);
        if (one == TYPE_NONE || (k && one != type))
            return NULL; /* a number, or two dtypes */
        type = one;
        operands[k].array = (PyArrayObject *)args[k];
        dense &= PyArray_IS_C_CONTIGUOUS(operands[k].array) && PyArray_SAMESHAPE(operands[k].array, operands[0].array);
    }
    formula_run run = {.loop = loops->of[loop][type], .numbers = {0}};
    if (!run.loop)
        return NULL;
    if (numbers)
        memcpy(run.numbers, numbers, sizeof run.numbers);
    else if (!read_numbers(loop, type, options, run.numbers))
        return NULL;
    if (!native_is_floating(type) && type != TYPE_BOOL && !are_within(type, run.numbers))
        return NULL;
    PyObject *out = options[OUT] == Py_None ? NULL : options[OUT];
    if (dense && !out && PyArray_SIZE(operands[0].array) <= GRAIN) { /* the whole of an ordinary small call */
        PyArrayObject *first = operands[0].array, *made = native_empty(PyArray_NDIM(first), PyArray_DIMS(first), type);
        char *data[PLAN_OPERANDS];
        ptrdiff_t steps[PLAN_OPERANDS];
        for (int k = 0; made && k <= inputs; k++) {
            data[k] = PyArray_BYTES(k < inputs ? operands[k].array : made);
            steps[k] = TYPE_SIZE[type];
        }
        if (made)
            run.loop(run.numbers, data, steps, PyArray_SIZE(first));
        return (PyObject *)made;
    }
    native_plan plan;
    if (!native_plan_inputs(&plan, operands, inputs))
        return NULL;
    PyObject *made = native_plan_result(&plan, operands, type, out);
    if (made)
        native_plan_run(&plan, GRAIN, run_rows, &run);
    return made;
}

static PyObject *run_formula(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const formula_op *op = kernel->data;
    PyObject *options[OPTIONS] = {NULL};
    if (nargs != op->inputs || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    double weight, numbers[3] = {0};
    if (op->loop == FORMULA_add_scaled && native_is_half(native_array_type(args[0])))
        return number(options[ALPHA], 1, &weight)
                   ? native_add_scaled_halves(args[0], args[1], weight, options[OUT] == Py_None ? NULL : options[OUT])
                   : NULL;
    if (op->loop == FORMULA_lerp && PyFloat_CheckExact(args[2])) { /* one weight is one of two formulas for all elements */
        weight = PyFloat_AS_DOUBLE(args[2]);
        numbers[0] = fabs(weight) < 0.5 ? weight : 1 - weight;
        return computed(fabs(weight) < 0.5 ? FORMULA_lerp_near : FORMULA_lerp_far, 2, args, options, numbers);
    }
    const bool kept = op->loop == FORMULA_nan_to_num && native_is_none(options[POSINF]) && native_is_none(options[NEGINF]);
    return computed(kept ? FORMULA_nan_to_num_kept : op->loop, op->inputs, args, options, NULL);
}

/* Digamma and its first derivative; the others are NumPy's. */
static PyObject *run_polygamma(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[ORDER] ||
        !PyLong_CheckExact(options[ORDER]))
        return NULL;
    const long order = PyLong_AsLong(options[ORDER]);
    if (order != 0 && order != 1) {
        PyErr_Clear(); /* of an order beyond C's ints */
        return NULL;
    }
    return computed(order ? FORMULA_trigamma : FORMULA_digamma, 1, args, options, NULL);
}

typedef struct {
    const char *x;
    char *mantissa;
    int32_t *exponent;
    native_type type;
} parts_run;

static void run_parts(void *context, npy_intp begin, npy_intp end) {
    const parts_run *run = context;
    npy_intp start = begin * TYPE_SIZE[run->type];
    loops->parts[run->type](run->x + start, run->mantissa + start, run->exponent + begin, end - begin);
}

static PyObject *run_frexp(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type = nargs == 1 && !kwnames ? native_real_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || !PyArray_IS_C_CONTIGUOUS(x))
        return NULL;
    PyArrayObject *mantissa = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    PyArrayObject *exponent = mantissa ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_I32) : NULL;
    if (!exponent) {
        Py_XDECREF(mantissa);
        return NULL;
    }
    parts_run run = {PyArray_BYTES(x), PyArray_BYTES(mantissa), PyArray_DATA(exponent), type};
    native_parallel(PyArray_SIZE(x), GRAIN, run_parts, &run);
    return Py_BuildValue("(NN)", mantissa, exponent);
}

typedef struct {
    const char *x, *y;
    char *made;
    native_type type;
} pairs_run;

static void run_pairs(void *context, npy_intp begin, npy_intp end) {
    const pairs_run *run = context;
    const npy_intp start = begin * TYPE_SIZE[run->type];
    loops->pairs[run->type](run->x + start, run->y + start, run->made + 2 * start, end - begin);
}

/* Complex numbers of two arrays of one shape; others are NumPy's. */
static PyObject *run_complex(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 2 && !kwnames ? native_real_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || native_real_type(args[1]) != type)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[1];
    if (!PyArray_SAMESHAPE(x, y) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(y))
        return NULL;
    PyArrayObject *made = native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (!made)
        return NULL;
    pairs_run run = {PyArray_BYTES(x), PyArray_BYTES(y), PyArray_BYTES(made), type};
    native_parallel(PyArray_SIZE(x), GRAIN, run_pairs, &run);
    return (PyObject *)made;
}

/* NumPy's loops for cosines and sines, by TYPE_F32 and TYPE_F64. */
static numpy_loop cosines[2], sines[2];

typedef struct {
    const char *size, *angle;
    char *made;
    native_type type;
} polar_run;

static void run_polar_part(void *context, npy_intp begin, npy_intp end) {
    enum { PIECE = 256 };
    const polar_run *run = context;
    const npy_intp width = TYPE_SIZE[run->type], steps[2] = {width, width};
    const ptrdiff_t rows[3] = {width, width, width};
    _Alignas(64) char parts[2][PIECE * sizeof(double)];
    for (npy_intp count; begin < end; begin += count) {
        count = end - begin < PIECE ? end - begin : PIECE;
        for (int k = 0; k < 2; k++) {
            const numpy_loop *of = k ? &sines[run->type] : &cosines[run->type];
            char *ends[2] = {(char *)run->angle + begin * width, parts[k]};
            char *const factors[3] = {(char *)run->size + begin * width, parts[k], parts[k]};
            of->loop(ends, &count, steps, of->beside);
            products->compute[OP_mul][run->type](factors, rows, count);
        }
        loops->pairs[run->type](parts[0], parts[1], run->made + 2 * begin * width, count);
    }
}

/* Complex numbers of sizes and angles that have one shape; others are NumPy's. */
static PyObject *run_polar(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 2 && !kwnames ? native_real_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || native_real_type(args[1]) != type || !cosines[type].loop || !sines[type].loop)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[1];
    if (!PyArray_SAMESHAPE(x, y) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(y))
        return NULL;
    PyArrayObject *made = native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (made)
        native_parallel(PyArray_SIZE(x), GRAIN, run_polar_part,
                        &(polar_run){PyArray_BYTES(x), PyArray_BYTES(y), PyArray_BYTES(made), type});
    return (PyObject *)made;
}

/* Norms of order 2, those along dims and of half types in reduce.c. */
static PyObject *run_norm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[WHOLE_OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    double power = 0;
    if (type > TYPE_F16 || (kwnames && !native_options(args, nargs, kwnames, whole_names, WHOLE_OPTIONS, options)) ||
        !native_is_none(options[DTYPE]) || !native_double(options[POWER], &power) || power != 2)
        return NULL;
    if (type > TYPE_F64 || !native_is_none(options[DIM]) || (options[KEEPDIM] && options[KEEPDIM] != Py_False))
        return native_norm_along(args[0], options[DIM], options[KEEPDIM]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    return PyArray_ISONESEGMENT(x) ? native_number_array(sqrt(loops->squares[type](PyArray_DATA(x), PyArray_SIZE(x))), type) : NULL;
}

int formulas_init(void) {
    loops = PICK(formula_loops);
    products = PICK(elementwise_loops);
    for (native_type type = TYPE_F32; type <= TYPE_F64; type++)
        if (!cosines[type].loop && !(native_numpy_loop("cos", type, &cosines[type]) && native_numpy_loop("sin", type, &sines[type])))
            return -1;
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    for (int i = 0; i < WHOLE_OPTIONS; i++)
        if (!whole_names[i] && !(whole_names[i] = PyUnicode_InternFromString(WHOLE_NAMES[i])))
            return -1;
    return 0;
}

#define FORMULA_SPEC(name, inputs) {#name, run_formula, &(const formula_op){FORMULA_##name, inputs}, .ordered = true},

const native_spec formulas_kernels[] = {
    FORMULAS(FORMULA_SPEC)
    {"polygamma", run_polygamma, NULL, .ordered = true},
    {"frexp", run_frexp, NULL},
    {"complex", run_complex, NULL},
    {"polar", run_polar, NULL},
    {"norm", run_norm, NULL, .dense = true},
    {NULL, NULL, NULL},
};
