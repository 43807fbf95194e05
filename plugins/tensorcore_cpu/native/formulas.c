/* Functions of one element that are several steps elsewhere: options, broadcasting, and numbers taken apart. */
#include "formulas.h"

#include "cast.h"
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
DECLARE_LOOPS(half_loops, half_loops);

static const formula_loops *loops;
static const elementwise_loops *products;
static const cast_loops *casts;
static const half_loops *halves;

enum { OUT, EPS, LAMBD, VALUE, NAN_VALUE, POSINF, NEGINF, NEGATIVE_SLOPE, THRESHOLD, ALPHA, ORDER, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"out", "eps", "lambd", "value", "nan", "posinf", "neginf", "negative_slope",
                                           "threshold", "alpha", "n"};

enum { GRAIN = 1 << 13, PIECE = 512 }; /* elements a thread, and of half types that are converted at a time */

typedef struct {
    int loop, inputs;
} formula_op;

typedef struct {
    formula_loop loop;
    double numbers[3];
    native_type half; /* of operands and result where the loop is of floats */
    int inputs;
    bool numbered;
    native_loop direct; /* of halves and the number as they are, without a buffer; NULL where there is none */
} formula_run;

static void run_rows(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const formula_run *run = context;
    run->loop(run->numbers, data, steps, count);
}

/* The same of half types: piece by piece as floats, rounded once. */
static void run_halves(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const formula_run *run = context;
    const native_loop in = casts->cast[run->half][TYPE_F32], out = casts->cast[TYPE_F32][run->half];
    _Alignas(64) float space[PLAN_OPERANDS][PIECE];
    char *at[PLAN_OPERANDS];
    ptrdiff_t inner[PLAN_OPERANDS];
    const int last = run->inputs;
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        for (int k = 0; k <= last; k++) {
            at[k] = (char *)space[k];
            inner[k] = steps[k] || k == last ? (ptrdiff_t)sizeof(float) : 0;
            if (k < last && (steps[k] || !begin)) /* a number is there from the first piece on */
                in((char *const[]){data[k] + begin * steps[k], at[k]}, (const ptrdiff_t[]){steps[k], sizeof(float)}, steps[k] ? piece : 1);
        }
        run->loop(run->numbers, at, inner, piece);
        out((char *const[]){at[last], data[last] + begin * steps[last]}, (const ptrdiff_t[]){sizeof(float), steps[last]}, piece);
    }
}

/* The same in registers. */
static void run_direct(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const formula_run *run = context;
    float number = (float)run->numbers[0];
    char *ends[PLAN_OPERANDS + 1];
    ptrdiff_t apart[PLAN_OPERANDS + 1];
    for (int k = 0; k <= run->inputs + 1; k++) { /* the number is the last operand, or beyond what is read */
        const int from = k <= run->inputs ? k : run->inputs;
        ends[k] = data[from];
        apart[k] = steps[from];
    }
    if (run->numbered) {
        ends[run->inputs] = (char *)&number;
        apart[run->inputs] = 0;
    }
    run->direct(ends, apart, count);
}

/* The loop of halves for a formula, by the bit of its number where it has one. */
static native_loop direct_loop(int loop, native_type type) {
    static const struct {
        int formula, op, numbers;
    } KNOWN[] = {{FORMULA_addcmul, OP_addcmul, 8}, {FORMULA_addcdiv, OP_addcdiv, 8}, {FORMULA_lerp_near, OP_lerp_near, 4},
                 {FORMULA_lerp_far, OP_lerp_far, 4}, {FORMULA_copysign, OP_copysign, 0}};
    const native_loop(*of)[HALF_NUMBERS] = type == TYPE_F16 ? halves->f16 : halves->bf16;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (KNOWN[i].formula == loop)
            return of[KNOWN[i].op][KNOWN[i].numbers];
    return NULL;
}

static bool number(PyObject *option, double missing, double *value) {
    *value = missing;
    return native_is_none(option) || native_double(option, value);
}

/* The options that an op has, as its loop wants them. */
static bool read_numbers(int loop, native_type type, PyObject *const *options, double *numbers) {
    static const double LARGEST[] = {[TYPE_F32] = FLT_MAX, [TYPE_F64] = DBL_MAX, [TYPE_BF16] = 0x1.fep127, [TYPE_F16] = 65504};
    const double most = native_is_floating(type) ? LARGEST[type] : 0;
    double eps, lambd;
    switch (loop) {
    case FORMULA_hardshrink:
        numbers[0] = number(options[LAMBD], 0.5, &lambd) ? native_rounded(lambd, type) : NAN;
        return numbers[0] == numbers[0];
    case FORMULA_softshrink:
        return number(options[LAMBD], 0.5, numbers) && numbers[0] >= 0;
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
        numbers[0] = native_rounded(eps, type);
        numbers[1] = native_rounded(1 - numbers[0], type);
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

/* NumPy's loops for cosines and sines of floats. */
static numpy_loop cosine, sine;

#define BY_NUMPY(name, of)                                                                                     \
    static void name(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {     \
        of.loop((char *[]){data[0], data[1]}, &count, steps, of.beside);                                      \
    }
BY_NUMPY(cosines_of_floats, cosine)
BY_NUMPY(sines_of_floats, sine)

/* The loop of floats: ours, or NumPy's where that is as fast. */
static formula_loop of_floats(int loop) {
    return loop == FORMULA_sin ? sines_of_floats : loop == FORMULA_cos ? cosines_of_floats : loops->of[loop][TYPE_F32];
}

/* The loop over operands of one type, of which some are numbers. */
static PyObject *computed(int loop, int inputs, PyObject *const *args, PyObject *const *options, const double *numbers) {
    native_operand operands[PLAN_OPERANDS];
    native_type type = TYPE_NONE;
    PyArrayObject *first = NULL;
    bool dense = true, numbers_beside = false;
    for (int k = 0; k < inputs; k++) {
        native_type one = native_array_type(args[k]);
        operands[k].array = one == TYPE_NONE ? NULL : (PyArrayObject *)args[k];
        if (one == TYPE_NONE && (PyFloat_CheckExact(args[k]) || PyLong_CheckExact(args[k]))) {
            numbers_beside = true;
            continue;
        }
        if (one == TYPE_NONE || (first && one != type))
            return NULL;
        type = one;
        first = first ? first : operands[k].array;
        dense &= PyArray_IS_C_CONTIGUOUS(operands[k].array) && PyArray_SAMESHAPE(operands[k].array, first);
    }
    if (!first || (numbers_beside && native_is_half(type))) /* whose numbers are not rounded alike by all */
        return NULL;
    for (int k = 0; k < inputs; k++)
        if (!operands[k].array && !native_number(args[k], type, &operands[k]))
            return NULL;
    const bool half = native_is_half(type);
    formula_run run = {.loop = loops->of[loop][type], .numbers = {0}, .half = type, .inputs = inputs};
    if ((half || type == TYPE_F32) && !run.loop) /* halves where the formula rounds nothing on its way */
        run.loop = of_floats(loop);
    run.direct = half ? direct_loop(loop, type) : NULL;
    run.numbered = loop != FORMULA_copysign;
    const native_rows rows = run.direct ? run_direct : half ? run_halves : run_rows;
    if (!run.loop)
        return NULL;
    if (numbers)
        memcpy(run.numbers, numbers, sizeof run.numbers);
    else if (!read_numbers(loop, type, options, run.numbers))
        return NULL;
    if (!native_is_floating(type) && type != TYPE_BOOL && !are_within(type, run.numbers))
        return NULL;
    PyObject *out = options[OUT] == Py_None ? NULL : options[OUT];
    if (dense && !out && PyArray_SIZE(first) <= GRAIN) { /* the whole of an ordinary small call */
        PyArrayObject *made = native_empty(PyArray_NDIM(first), PyArray_DIMS(first), type);
        char *data[PLAN_OPERANDS];
        ptrdiff_t steps[PLAN_OPERANDS];
        for (int k = 0; made && k <= inputs; k++) {
            PyArrayObject *one = k < inputs ? operands[k].array : made;
            data[k] = one ? PyArray_BYTES(one) : operands[k].data;
            steps[k] = one ? TYPE_SIZE[type] : 0;
        }
        if (made)
            rows(&run, data, steps, PyArray_SIZE(first));
        return (PyObject *)made;
    }
    native_plan plan;
    if (!native_plan_inputs(&plan, operands, inputs))
        return NULL;
    PyObject *made = native_plan_result(&plan, operands, type, out);
    if (made)
        native_plan_run(&plan, GRAIN, rows, &run);
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

/* Whether floats are such as the sum of a zeta function is short for: it begins at the element and goes up past 0. */
static bool are_near(PyObject *object) {
    PyArrayObject *x = native_dense(object);
    bool near = x != NULL;
    for (npy_intp i = 0, count = x ? PyArray_SIZE(x) : 0; i < count; i++)
        near &= !(((const float *)PyArray_DATA(x))[i] < -64);
    Py_XDECREF(x);
    return near;
}

/* Digamma and its derivatives, those of floats from the second one on by Hurwitz' zeta function; the others are NumPy's. */
static PyObject *run_polygamma(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[ORDER] ||
        !PyLong_CheckExact(options[ORDER]))
        return NULL;
    const long order = PyLong_AsLong(options[ORDER]);
    if (order < 0 || order > 33) { /* whose factorial no float holds, or an order beyond C's ints */
        PyErr_Clear();
        return NULL;
    }
    if (order > 1) {
        double numbers[3] = {(double)order + 1, order % 2 ? 1 : -1};
        for (long k = 2; k <= order; k++)
            numbers[1] *= (double)k;
        return native_array_type(args[0]) == TYPE_F32 && are_near(args[0]) ? computed(FORMULA_polygamma, 1, args, options, numbers) : NULL;
    }
    return computed(order ? FORMULA_trigamma : FORMULA_digamma, 1, args, options, NULL);
}

/* x times two to the power of integers, as floats; halves are floats beside them. */
static PyObject *run_ldexp(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE, of = nargs == 2 ? native_array_type(args[1]) : TYPE_NONE;
    if (!native_is_floating(type) || of == TYPE_NONE || native_is_floating(of) || of == TYPE_BOOL ||
        (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    const bool half = native_is_half(type);
    const native_type inside = half ? TYPE_F32 : type;
    PyObject *out = native_is_none(options[OUT]) ? NULL : options[OUT], *made = NULL;
    PyObject *given[2] = {half ? native_converted((PyArrayObject *)args[0], type, inside) : Py_NewRef(args[0]),
                          native_converted((PyArrayObject *)args[1], of, inside)};
    if (half)
        options[OUT] = NULL;
    if (given[0] && given[1])
        made = computed(FORMULA_ldexp, 2, given, options, NULL);
    Py_XDECREF(given[0]);
    Py_XDECREF(given[1]);
    if (!made || !half)
        return made;
    PyObject *narrow = native_converted((PyArrayObject *)made, inside, type);
    Py_DECREF(made);
    if (narrow && out)
        Py_SETREF(narrow, PyArray_CopyInto((PyArrayObject *)out, (PyArrayObject *)narrow) ? NULL : Py_NewRef(out));
    return narrow;
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
    native_evenly(PyArray_SIZE(x), GRAIN, run_parts, &run);
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

/* Two real arrays of one type in row-major order and of one shape, copied where they are not or where they broadcast: new references;
   false, with an exception or without. */
static bool alike(PyObject *const *args, native_type type, PyArrayObject **both) {
    const native_operand operands[2] = {{.array = (PyArrayObject *)args[0]}, {.array = (PyArrayObject *)args[1]}};
    native_plan plan;
    both[0] = both[1] = NULL;
    if (type == TYPE_NONE || native_real_type(args[1]) != type || !native_plan_inputs(&plan, operands, 2))
        return false;
    for (int k = 0; k < 2; k++) {
        PyArrayObject *one = operands[k].array;
        if (PyArray_IS_C_CONTIGUOUS(one) && PyArray_NDIM(one) == plan.ndim && PyArray_CompareLists(PyArray_DIMS(one), plan.shape, plan.ndim)) {
            both[k] = (PyArrayObject *)Py_NewRef((PyObject *)one);
            continue;
        }
        PyArrayObject *stretched = (PyArrayObject *)PyArray_NewFromDescr(
            &PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(one)), plan.ndim, plan.shape, plan.steps[k],
            PyArray_DATA(one), NPY_ARRAY_ALIGNED, NULL); /* of this call, which holds `one` */
        both[k] = stretched ? native_copied(stretched, type) : NULL;
        Py_XDECREF(stretched);
    }
    if (both[0] && both[1])
        return true;
    Py_CLEAR(both[0]);
    Py_CLEAR(both[1]);
    return false;
}

/* Complex numbers of two arrays, which broadcast. */
static PyObject *run_complex(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 2 && !kwnames ? native_real_type(args[0]) : TYPE_NONE;
    PyArrayObject *both[2];
    if (!alike(args, type, both))
        return NULL;
    PyArrayObject *made = native_empty_complex(PyArray_NDIM(both[0]), PyArray_DIMS(both[0]), type);
    if (made)
        native_evenly(PyArray_SIZE(made), GRAIN, run_pairs,
                      &(pairs_run){PyArray_BYTES(both[0]), PyArray_BYTES(both[1]), PyArray_BYTES(made), type});
    Py_DECREF(both[0]);
    Py_DECREF(both[1]);
    return (PyObject *)made;
}

typedef struct {
    const char *size, *angle;
    char *made;
    native_type type;
} polar_run;

static void run_polar_part(void *context, npy_intp begin, npy_intp end) {
    enum { PIECE = 256 };
    const polar_run *run = context;
    const npy_intp width = TYPE_SIZE[run->type], steps[2] = {width, width};
    const double none[3] = {0};
    const ptrdiff_t rows[3] = {width, width, width};
    _Alignas(64) char parts[2][PIECE * sizeof(double)];
    for (npy_intp count; begin < end; begin += count) {
        count = end - begin < PIECE ? end - begin : PIECE;
        for (int k = 0; k < 2; k++) {
            const formula_loop of = run->type == TYPE_F32 ? of_floats(k ? FORMULA_sin : FORMULA_cos)
                                                          : loops->of[k ? FORMULA_sin : FORMULA_cos][run->type];
            char *const ends[2] = {(char *)run->angle + begin * width, parts[k]};
            char *const factors[3] = {(char *)run->size + begin * width, parts[k], parts[k]};
            of(none, ends, steps, count);
            products->compute[OP_mul][run->type](factors, rows, count);
        }
        loops->pairs[run->type](parts[0], parts[1], run->made + 2 * begin * width, count);
    }
}

/* Complex numbers of sizes and angles, which broadcast. */
static PyObject *run_polar(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 2 && !kwnames ? native_real_type(args[0]) : TYPE_NONE;
    PyArrayObject *both[2];
    if (type == TYPE_NONE || !alike(args, type, both))
        return NULL;
    PyArrayObject *made = native_empty_complex(PyArray_NDIM(both[0]), PyArray_DIMS(both[0]), type);
    if (made)
        native_evenly(PyArray_SIZE(made), GRAIN, run_polar_part,
                      &(polar_run){PyArray_BYTES(both[0]), PyArray_BYTES(both[1]), PyArray_BYTES(made), type});
    Py_DECREF(both[0]);
    Py_DECREF(both[1]);
    return (PyObject *)made;
}

int formulas_init(void) {
    loops = PICK(formula_loops);
    products = PICK(elementwise_loops);
    casts = PICK(cast_loops);
    halves = PICK(half_loops);
    if (!cosine.loop && !(native_numpy_loop("cos", TYPE_F32, &cosine) && native_numpy_loop("sin", TYPE_F32, &sine)))
        return -1;
    return native_intern(names, NAMES, OPTIONS);
}

#define FORMULA_SPEC(name, inputs) {#name, run_formula, &(const formula_op){FORMULA_##name, inputs}, .ordered = true},

const native_spec formulas_kernels[] = {
    FORMULAS(FORMULA_SPEC)
    {"polygamma", run_polygamma, NULL, .ordered = true},
    {"frexp", run_frexp, NULL},
    {"ldexp", run_ldexp, NULL, .ordered = true},
    {"complex", run_complex, NULL},
    {"polar", run_polar, NULL},
    {NULL, NULL, NULL},
};
