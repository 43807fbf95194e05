/* Elementwise kernels: what they take, and which loop runs. */
#include "elementwise.h"

#include "cast.h"
#include "fused.h"
#include "halves.h"
#include "one_row.h"
#include "plan.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(elementwise_loops, elementwise_loops);
DECLARE_LOOPS(cast_loops, cast_loops);
DECLARE_LOOPS(half_loops, half_loops);

numpy_loop numpy_power;
static numpy_loop power_of_doubles;

static const elementwise_loops *loops;
static const cast_loops *casts;
static const half_loops *halves;

enum { OUT, APPROXIMATE, NEGATIVE_SLOPE, OPTIONS };
static PyObject *names[OPTIONS], *tanh_name;

enum {
    GRAIN = 1 << 15, /* elements of cheap ops a thread: under it, waking one costs more than it saves */
    FUNCTION_GRAIN = 1 << 13,
    PIECE = 512, /* elements that go through a buffer at a time */
    LINE = 64, FAR = 1 << 20, /* bytes of a line of the caches, and of an operand that is no longer in the second one */
    PAST_CACHES = 32 << 20, /* bytes of a result that the last cache does not keep until somebody reads it */
};

typedef struct {
    int op;
    int inputs;
    bool gives_bool;
    bool function; /* so dear that operands that do not lie in a row are copied to one first */
} elementwise_op;

/* Rows */

typedef struct {
    native_loop loop, in, out; /* out is NULL where the loop writes the result itself */
    unsigned numbers;          /* a bit for each operand that is a number, in the loop's type already */
    int inputs, computed, stored; /* sizes of an operand's element in the loop and in memory */
    bool far, past; /* whether operands come from beyond the second cache, and whether the result goes past the caches */
} buffered;

/* Asks for what is copied next, while something is computed: rows in steps are left by what a processor foresees. */
static void fetch(const char *from, ptrdiff_t step, ptrdiff_t count) {
    const ptrdiff_t size = step < 0 ? -step : step, wide = size < LINE ? LINE : size;
    for (ptrdiff_t at = 0; at < count * size; at += wide)
        __builtin_prefetch(from + (step < 0 ? -at : at));
}

static void run_buffered(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const buffered *through = context;
    _Alignas(64) char space[PLAN_OPERANDS][PIECE * 8];
    char *at[PLAN_OPERANDS];
    ptrdiff_t inner[PLAN_OPERANDS];
    const int last = through->inputs;
    const bool alike = through->out && through->computed == through->stored && steps[last] == through->stored;
    const bool past = alike && through->past && count >= PIECE, direct = !through->out || (alike && !past);
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE, rest = count - begin - piece;
        for (int k = 0; k < last; k++) {
            char *const ends[2] = {data[k] + begin * steps[k], space[k]};
            const ptrdiff_t moves[2] = {steps[k], through->computed};
            if (through->numbers >> k & 1)
                memcpy(space[k], ends[0], (size_t)through->computed);
            else if (steps[k] || !begin)
                through->in(ends, moves, steps[k] ? piece : 1);
            if (through->far && steps[k])
                fetch(ends[0] + piece * steps[k], steps[k], rest < PIECE ? rest : PIECE);
            at[k] = space[k];
            inner[k] = steps[k] ? through->computed : 0;
        }
        char *const result = data[last] + begin * steps[last];
        at[last] = direct ? result : space[last];
        inner[last] = direct ? steps[last] : through->computed;
        through->loop(at, inner, piece);
        if (past) {
            casts->stream(result, space[last], piece * through->stored);
        } else if (!direct) {
            char *const ends[2] = {space[last], result};
            const ptrdiff_t moves[2] = {through->computed, steps[last]};
            through->out(ends, moves, piece);
        }
    }
    if (past)
        native_streamed();
}

/* A half type's other sign, or none: of its bits one, NaN's too. */
static PyObject *signed_anew(const elementwise_op *op, native_type type, const native_operand *operands, PyObject *out) {
    static const int16_t sign = INT16_MIN, rest = INT16_MAX;
    const bool turned = op->op == OP_neg;
    const native_loop loop = loops->compute[turned ? OP_bitwise_xor : OP_bitwise_and][TYPE_I16];
    const native_operand both[2] = {operands[0], {.data = (char *)(turned ? &sign : &rest)}};
    PyObject *made = native_dense_loop(both, 2, type, out, GRAIN, loop, PAST_CACHES);
    native_plan plan;
    if (made || PyErr_Occurred() || !native_plan_inputs(&plan, both, 2))
        return made;
    if ((made = native_plan_result(&plan, both, type, out)))
        native_plan_loop(&plan, GRAIN, loop, PAST_CACHES);
    return made;
}

/* Which operands are numbers, a bit for each. */
static unsigned numbers_of(const elementwise_op *op, const native_operand *operands) {
    unsigned numbers = 0;
    for (int k = 0; k < op->inputs; k++)
        numbers |= operands[k].array ? 0 : 1u << k;
    return numbers;
}

static PyObject *evaluate(const elementwise_op *op, native_type type, const native_operand *operands, PyObject *out) {
    const bool half = native_is_half(type);
    if (half && (op->op == OP_neg || op->op == OP_abs))
        return signed_anew(op, type, operands, out);
    const native_type inside = half ? TYPE_F32 : type, result = op->gives_bool ? TYPE_BOOL : type;
    const native_loop through_floats = loops->compute[op->op][inside];
    const native_loop(*own)[HALF_NUMBERS] = type == TYPE_F16 ? halves->f16 : halves->bf16;
    const native_loop loop = half ? own[op->op][numbers_of(op, operands)] : through_floats;
    if ((!loop && !through_floats) || (half && op->op == OP_nextafter)) /* whose step is that of the type itself */
        return NULL;
    const npy_intp grain = op->function || half ? FUNCTION_GRAIN : GRAIN;
    if (loop) {
        PyObject *made = native_dense_loop(operands, op->inputs, result, out, grain, loop, PAST_CACHES);
        if (made || PyErr_Occurred())
            return made;
    }
    native_plan plan;
    if (!native_plan_inputs(&plan, operands, op->inputs))
        return NULL;
    PyObject *made = native_plan_result(&plan, operands, result, out);
    if (!made)
        return NULL;
    if ((type == TYPE_F32 || type == TYPE_F64) && native_run_beside(&plan, native_even_grain(plan.count, grain), op->op))
        return made;
    bool apart = !loop;
    for (int k = 0; op->function && plan.ndim && k < plan.operands; k++)
        apart |= plan.steps[k][plan.ndim - 1] != TYPE_SIZE[type];
    if (apart) {
        buffered through = {through_floats, casts->cast[type][inside], op->gives_bool ? NULL : casts->cast[inside][type],
                            numbers_of(op, operands), op->inputs, TYPE_SIZE[inside], TYPE_SIZE[type], plan.count * TYPE_SIZE[type] >= FAR,
                            plan.count * TYPE_SIZE[type] >= PAST_CACHES};
        native_plan_run(&plan, grain, run_buffered, &through);
    } else {
        native_plan_loop(&plan, grain, loop, PAST_CACHES);
    }
    return made;
}

/* Entries */

/* The operands' common type, which numbers take on; beside halves they are floats. TYPE_NONE where they have none, or where one is
   neither an array nor a number. */
static native_type common_type(PyObject *const *args, int count, native_operand *operands) {
    native_type type = TYPE_NONE;
    for (int k = 0; k < count; k++) {
        native_type one = native_array_type(args[k]);
        if (one == TYPE_NONE) {
            if (!PyFloat_CheckExact(args[k]) && !PyLong_CheckExact(args[k]))
                return TYPE_NONE;
            operands[k].array = NULL;
            continue;
        }
        if (type != TYPE_NONE && one != type)
            return TYPE_NONE;
        type = one;
        operands[k].array = (PyArrayObject *)args[k];
    }
    for (int k = 0; type != TYPE_NONE && k < count; k++)
        if (!operands[k].array && !native_number(args[k], native_is_half(type) ? TYPE_F32 : type, &operands[k]))
            return TYPE_NONE;
    return type;
}

/* Rounds the floats beside halves as PyTorch does. */
static void round_numbers(native_type type, int count, native_operand *operands) {
    for (int k = 0; k < count; k++)
        if (!operands[k].array) {
            native_retype_number(&operands[k], TYPE_F32, type);
            native_retype_number(&operands[k], type, TYPE_F32);
        }
}

static PyObject *none_is_missing(PyObject *option) { return option == Py_None ? NULL : option; }

/* The half type of all arrays among them, where there is a number too. */
static native_type half_beside_numbers(PyObject *const *args, Py_ssize_t count, PyArrayObject **array) {
    native_type type = TYPE_NONE;
    bool numbers = false;
    for (Py_ssize_t k = 0; k < count; k++) {
        numbers |= !PyArray_Check(args[k]);
        if (!PyArray_Check(args[k]))
            continue;
        const native_type one = native_descr_type((PyObject *)PyArray_DESCR((PyArrayObject *)args[k]));
        if (!native_is_half(one) || (type != TYPE_NONE && one != type))
            return TYPE_NONE;
        type = one;
        *array = (PyArrayObject *)args[k];
    }
    return numbers ? type : TYPE_NONE;
}

/* What NumPy's kernel makes of halves beside numbers as floats, of what no loop takes: by itself it would round numbers, or give
   floats. NULL where there are none, with an exception that stands already, or without. */
static PyObject *widened(const native_kernel *kernel, bool rounds, PyObject *const *args, Py_ssize_t count, PyObject *out) {
    PyArrayObject *half = NULL;
    const native_type type = PyErr_Occurred() ? TYPE_NONE : half_beside_numbers(args, count, &half);
    if (type == TYPE_NONE)
        return NULL;
    PyObject *wide[PLAN_OPERANDS] = {NULL}, *made;
    bool good = true;
    for (Py_ssize_t k = 0; good && k < count; k++) {
        native_operand number;
        float held;
        if (PyArray_Check(args[k])) {
            wide[k] = PyArray_FromArray((PyArrayObject *)args[k], PyArray_DescrFromType(NPY_FLOAT), NPY_ARRAY_FORCECAST);
        } else if (native_number(args[k], TYPE_F32, &number)) {
            if (rounds)
                round_numbers(type, 1, &number);
            memcpy(&held, number.data, sizeof held);
            wide[k] = PyFloat_FromDouble(held);
        }
        good = wide[k] != NULL;
    }
    made = good ? PyObject_Vectorcall(kernel->fallback, wide, (size_t)count, NULL) : NULL;
    PyObject *array = made ? PyArray_FromAny(made, NULL, 0, 0, 0, NULL) : NULL;
    Py_CLEAR(made);
    if (array && out)
        made = PyArray_CopyInto((PyArrayObject *)out, (PyArrayObject *)array) ? NULL : Py_NewRef(out);
    else if (array && PyArray_TYPE((PyArrayObject *)array) == NPY_FLOAT)
        made = PyArray_FromArray((PyArrayObject *)array, (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(half)),
                                 NPY_ARRAY_FORCECAST);
    else
        made = Py_XNewRef(array);
    Py_XDECREF(array);
    for (Py_ssize_t k = 0; k < count; k++)
        Py_XDECREF(wide[k]);
    return made;
}

static PyObject *run_elementwise(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames) {
    const elementwise_op *op = kernel->data;
    native_operand operands[PLAN_OPERANDS];
    PyObject *out = NULL;
    if (nargs != op->inputs || (kwnames && !native_options(args, nargs, kwnames, &names[OUT], 1, &out)))
        return NULL;
    native_type type = common_type(args, op->inputs, operands);
    const bool rounds = op->op != OP_mul && op->op != OP_div && op->op != OP_floor_divide; /* whose numbers keep single precision */
    if (rounds && native_is_half(type))
        round_numbers(type, op->inputs, operands);
    out = none_is_missing(out);
    PyObject *made = type == TYPE_NONE ? NULL : evaluate(op, type, operands, out);
    return made ? made : widened(kernel, rounds, args, nargs, out);
}

/* Where no operand is a NaN, which integers are not. */
static PyObject *run_whole(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    return type == TYPE_NONE || native_is_floating(type) ? NULL : run_elementwise(kernel, args, nargs, kwnames);
}

static PyObject *run_gelu(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const elementwise_op exact = {OP_gelu, 1, false, true}, by_tanh = {OP_gelu_tanh, 1, false, true};
    native_operand operand;
    PyObject *const taken[] = {names[APPROXIMATE], names[OUT]};
    PyObject *given[] = {NULL, NULL};
    if (nargs != 1 || (kwnames && !native_options(args, nargs, kwnames, taken, 2, given)))
        return NULL;
    bool as_tanh = given[0] && PyUnicode_Check(given[0]) && !PyUnicode_Compare(given[0], tanh_name);
    native_type type = common_type(args, 1, &operand);
    return type == TYPE_NONE ? NULL : evaluate(as_tanh ? &by_tanh : &exact, type, &operand, none_is_missing(given[1]));
}

static PyObject *run_leaky_relu(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    static const elementwise_op op = {OP_leaky_relu, 2, false, false};
    native_operand operands[2];
    PyObject *const taken[] = {names[NEGATIVE_SLOPE], names[OUT]};
    PyObject *given[] = {NULL, NULL};
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, taken, 2, given) || !given[0])
        return NULL;
    native_type type = common_type(args, 1, operands);
    if (!native_is_floating(type) || !native_number(given[0], native_is_half(type) ? TYPE_F32 : type, &operands[1]))
        return NULL;
    return evaluate(&op, type, operands, none_is_missing(given[1]));
}

/* Ones in the place of an array's elements, NaN's too. */
static PyObject *ones_for(const native_operand *x, native_type type, PyObject *out) {
    native_plan plan;
    if (type == TYPE_BOOL || (out && !PyArray_ISONESEGMENT((PyArrayObject *)out)) || !native_plan_inputs(&plan, x, 1))
        return NULL;
    PyObject *made = native_plan_result(&plan, x, type, out), *one = made ? PyLong_FromLong(1) : NULL;
    if (made && (!one || !native_fill((PyArrayObject *)made, type, one)))
        Py_CLEAR(made);
    Py_XDECREF(one);
    return made;
}

static void run_powers(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    power_of_doubles.loop((char *[]){data[0], data[1], data[2]}, &count, steps, power_of_doubles.beside);
}

/* Powers of doubles by NumPy's loop. */
static PyObject *raised(const native_operand *operands, PyObject *out) {
    native_plan plan;
    if (!power_of_doubles.loop || !native_plan_inputs(&plan, operands, 2))
        return NULL;
    PyObject *made = native_plan_result(&plan, operands, TYPE_F64, out);
    if (made)
        native_plan_run(&plan, FUNCTION_GRAIN, run_powers, NULL);
    return made;
}

/* Exponents for which a product or a root is exact; all others of floats. */
static PyObject *run_pow(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const struct {
        double exponent;
        elementwise_op op;
        bool floats_only;
    } KNOWN[] = {
        {2, {OP_square, 1}, false}, {3, {OP_cube, 1}, false},       {0.5, {OP_sqrt, 1}, true},
        {-1, {OP_reciprocal, 1}, true}, {-0.5, {OP_rsqrt, 1}, true}, {-2, {OP_reciprocal_square, 1}, true},
    };
    static const elementwise_op any = {OP_power, 2, false, true}, product = {OP_mul, 2, false, false};
    native_operand operands[2];
    PyObject *out = NULL, *made;
    if (nargs != 2 || (kwnames && !native_options(args, nargs, kwnames, &names[OUT], 1, &out)))
        return NULL;
    out = none_is_missing(out);
    native_type type = native_array_type(args[0]);
    bool whole = PyLong_CheckExact(args[1]), floating = native_is_floating(type);
    if (type != TYPE_NONE && (whole || (PyFloat_CheckExact(args[1]) && floating))) {
        double exponent = whole ? PyLong_AsDouble(args[1]) : PyFloat_AS_DOUBLE(args[1]);
        if (exponent == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return NULL;
        }
        operands[0].array = (PyArrayObject *)args[0];
        if (exponent == 0 && (made = ones_for(operands, type, out)))
            return made;
        if (exponent == 1 && type != TYPE_BOOL && native_number(args[1], native_is_half(type) ? TYPE_F32 : type, &operands[1]) &&
            (made = evaluate(&product, type, operands, out)))
            return made;
        for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
            if (exponent == KNOWN[i].exponent && (floating || !KNOWN[i].floats_only))
                return (made = evaluate(&KNOWN[i].op, type, operands, out)) ? made : widened(kernel, true, args, nargs, out);
    }
    type = common_type(args, 2, operands);
    if (native_is_half(type))
        round_numbers(type, 2, operands);
    if (type == TYPE_F64)
        return raised(operands, out);
    made = type == TYPE_F32 || native_is_half(type) ? evaluate(&any, type, operands, out) : NULL;
    return made ? made : widened(kernel, true, args, nargs, out);
}

PyObject *native_add_scaled_halves(PyObject *x, PyObject *y, double factor, PyObject *out) {
    static const elementwise_op op = {OP_add_scaled, 3, false, false};
    const float number = (float)factor;
    native_operand operands[3];
    const native_type type = common_type((PyObject *[]){x, y}, 2, operands);
    if (!native_is_half(type))
        return NULL;
    operands[2] = (native_operand){.data = (char *)&operands[2].number};
    memcpy(operands[2].data, &number, sizeof number);
    round_numbers(type, 3, operands);
    return evaluate(&op, type, operands, out);
}

static PyObject *run_where(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_operand operands[3];
    PyObject *out = NULL;
    if (nargs != 3 || (kwnames && !native_options(args, nargs, kwnames, &names[OUT], 1, &out)))
        return NULL;
    native_type type = common_type(args + 1, 2, operands + 1);
    if (type == TYPE_NONE || native_array_type(args[0]) != TYPE_BOOL)
        return NULL;
    operands[0].array = (PyArrayObject *)args[0];
    for (int k = 1; k < 3; k++) /* elements are copied as they are */
        if (!operands[k].array && native_is_half(type))
            native_retype_number(&operands[k], TYPE_F32, type);
    native_loop loop = loops->compute[OP_where][type];
    out = none_is_missing(out);
    PyObject *made = native_dense_loop(operands, 3, type, out, GRAIN, loop, PAST_CACHES);
    native_plan plan;
    if (made || PyErr_Occurred() || !native_plan_inputs(&plan, operands, 3))
        return made;
    made = native_plan_result(&plan, operands, type, out);
    if (made)
        native_plan_loop(&plan, GRAIN, loop, PAST_CACHES);
    return made;
}

#define OP_NAME(name) [OP_##name] = {#name, 1, false},
#define TEST_NAME(name) [OP_##name] = {#name, 1, true},
#define BINARY_NAME(name) [OP_##name] = {#name, 2, false},
#define COMPARE_NAME(name) [OP_##name] = {#name, 2, true},

PyObject *elementwise_describe(void) {
    static const struct {
        const char *name;
        int inputs;
        bool gives_bool;
    } DESCRIBED[OPS] = {
        UNARY_OPS(OP_NAME) FUNCTION_OPS(OP_NAME) UNARY_TEST_OPS(TEST_NAME) BINARY_OPS(BINARY_NAME)
        POLYNOMIAL_OPS(BINARY_NAME)        COMPARE_OPS(COMPARE_NAME) OP_NAME(gelu) OP_NAME(gelu_tanh) BINARY_NAME(leaky_relu) OP_NAME(cube)
        OP_NAME(reciprocal_square) BINARY_NAME(power) [OP_clamp] = {"clamp", 3, false}, [OP_where] = {"where", 3, false},
    };
    PyObject *made = PyDict_New();
    for (int op = 0; made && op < OPS; op++) {
        unsigned types = 0;
        for (int type = 0; type < TYPES; type++)
            types |= loops->compute[op][type] ? 1u << type : 0;
        PyObject *one = Py_BuildValue("iiOI", op, DESCRIBED[op].inputs, DESCRIBED[op].gives_bool ? Py_True : Py_False, types);
        if (!one || PyDict_SetItemString(made, DESCRIBED[op].name, one))
            Py_CLEAR(made);
        Py_XDECREF(one);
    }
    return made;
}

int elementwise_init(void) {
    if (!numpy_power.loop && !(native_numpy_loop("power", TYPE_F32, &numpy_power) &&
                               native_numpy_loop("power", TYPE_F64, &power_of_doubles)))
        return -1;
    loops = PICK(elementwise_loops);
    casts = PICK(cast_loops);
    halves = PICK(half_loops);
    names[OUT] = PyUnicode_InternFromString("out");
    names[APPROXIMATE] = PyUnicode_InternFromString("approximate");
    names[NEGATIVE_SLOPE] = PyUnicode_InternFromString("negative_slope");
    tanh_name = PyUnicode_InternFromString("tanh");
    return names[OUT] && names[APPROXIMATE] && names[NEGATIVE_SLOPE] && tanh_name ? 0 : -1;
}

#define UNARY_SPEC(name) {#name, run_elementwise, &(const elementwise_op){OP_##name, 1, false, false}},
#define FUNCTION_SPEC(name) {#name, run_elementwise, &(const elementwise_op){OP_##name, 1, false, true}},
#define TEST_SPEC(name) {#name, run_elementwise, &(const elementwise_op){OP_##name, 1, true, false}},
#define BINARY_SPEC(name) {#name, run_elementwise, &(const elementwise_op){OP_##name, 2, false, false}},
#define POLYNOMIAL_SPEC(name) {#name, run_elementwise, &(const elementwise_op){OP_##name, 2, false, true}},
#define COMPARE_SPEC(name) {#name, run_elementwise, &(const elementwise_op){OP_##name, 2, true, false}},

const native_spec elementwise_kernels[] = {
    UNARY_OPS(UNARY_SPEC) FUNCTION_OPS(FUNCTION_SPEC) UNARY_TEST_OPS(TEST_SPEC) BINARY_OPS(BINARY_SPEC)
    POLYNOMIAL_OPS(POLYNOMIAL_SPEC) COMPARE_OPS(COMPARE_SPEC)
    {"clamp", run_elementwise, &(const elementwise_op){OP_clamp, 3, false, false}},
    {"clamp_min", run_elementwise, &(const elementwise_op){OP_maximum, 2, false, false}},
    {"clamp_max", run_elementwise, &(const elementwise_op){OP_minimum, 2, false, false}},
    {"fmax", run_whole, &(const elementwise_op){OP_maximum, 2, false, false}},
    {"fmin", run_whole, &(const elementwise_op){OP_minimum, 2, false, false}},
    {"gelu", run_gelu, NULL},
    {"leaky_relu", run_leaky_relu, NULL},
    {"prelu", run_elementwise, &(const elementwise_op){OP_leaky_relu, 2, false, false}},
    {"pow", run_pow, NULL},
    {"where", run_where, NULL},
    {NULL, NULL, NULL},
};
