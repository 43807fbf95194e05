/* Activations that are made of several ops elsewhere, and slopes of those that are not: one pass each. */
#include "activate.h"

#include "cast.h"
#include "fused.h"
#include "plan.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(activate_loops, activate_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const activate_loops *loops;
static const cast_loops *casts;

enum { ALPHA, SCALE, INPUT_SCALE, BETA, THRESHOLD, APPROXIMATE, OPTIONS };
static PyObject *names[OPTIONS], *tanh_name;
static const char *const NAMES[OPTIONS] = {"alpha", "scale", "input_scale", "beta", "threshold", "approximate"};

enum {
    GRAIN = 1 << 13, /* elements a thread */
    BLOCK = 256,     /* elements that lie anyhow, or are of a half type, are taken so many at a time */
};

typedef struct {
    int loop;
    bool slope; /* takes the gradient before x */
    enum { PLAIN, SELU, CELU } unit;
} activate_op;

typedef struct {
    activate_loop loop;
    double numbers[3];
    const char *x, *g;
    char *out;
    native_type type, inside; /* in memory and in the loop: half types are floats there */
    int inputs;
} activate_run;

/* A row whose elements lie anyhow or are halves, block by block through memory where they lie side by side. */
static void run_rows(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const activate_run *run = context;
    double space[3][BLOCK];
    const int out = run->inputs;
    const native_loop in = casts->cast[run->type][run->inside], back = casts->cast[run->inside][run->type];
    const ptrdiff_t wide = TYPE_SIZE[run->inside];
    for (ptrdiff_t begin = 0; begin < count; begin += BLOCK) {
        const ptrdiff_t block = count - begin < BLOCK ? count - begin : BLOCK;
        char *at[3];
        for (int k = 0; k <= out; k++) {
            const bool direct = steps[k] == wide && run->type == run->inside;
            char *const ends[2] = {data[k] + begin * steps[k], (char *)space[k]};
            at[k] = ends[!direct];
            if (k < out && !direct && (steps[k] || !begin)) /* a number is there from the first block on */
                in(ends, (const ptrdiff_t[]){steps[k], wide}, block);
        }
        run->loop(run->numbers, at[out - 1], at[0], at[out], block);
        if (at[out] == (char *)space[out])
            back((char *const[]){at[out], data[out] + begin * steps[out]}, (const ptrdiff_t[]){wide, steps[out]}, block);
    }
}

static void run_part(void *context, npy_intp begin, npy_intp end) {
    const activate_run *run = context;
    const npy_intp size = TYPE_SIZE[run->type], start = begin * size;
    if (run->type == run->inside) {
        run->loop(run->numbers, run->x + start, run->g + start, run->out + start, end - begin);
        return;
    }
    char *const data[3] = {(char *)run->g + start, run->inputs > 1 ? (char *)run->x + start : run->out + start, run->out + start};
    run_rows(context, data, (const ptrdiff_t[]){size, size, size}, end - begin);
}

static bool number(PyObject *option, double missing, double *value) {
    *value = missing;
    return !option || native_double(option, value);
}

static bool read_numbers(const activate_op *op, int *loop, double *numbers, PyObject *const *options) {
    double alpha, scale, input_scale;
    switch (*loop) {
    case ACTIVATE_ELU:
    case SLOPE_ELU:
        if (!number(options[ALPHA], 1, &alpha) || !number(options[SCALE], 1, &scale) ||
            !number(options[INPUT_SCALE], 1, &input_scale))
            return false;
        if (op->unit == SELU) {
            alpha = 1.6732632423543772848170429916717;
            scale = 1.0507009873554804934193349852946;
        } else if (op->unit == CELU) {
            input_scale = 1 / alpha;
        }
        numbers[0] = alpha * scale;
        numbers[1] = input_scale;
        numbers[2] = scale;
        return true;
    case ACTIVATE_SOFTPLUS:
    case SLOPE_SOFTPLUS:
        return number(options[BETA], 1, &numbers[0]) && number(options[THRESHOLD], 20, &numbers[1]) && numbers[0] > 0;
    case SLOPE_GELU:
        if (options[APPROXIMATE] && PyUnicode_Check(options[APPROXIMATE]) &&
            !PyUnicode_Compare(options[APPROXIMATE], tanh_name))
            *loop = SLOPE_GELU_TANH;
        return true;
    default:
        return true;
    }
}

static PyObject *run_activate(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const activate_op *op = kernel->data;
    PyObject *options[OPTIONS] = {NULL};
    activate_run run = {.numbers = {0}};
    int loop = op->loop;
    if (nargs != 1 + op->slope || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)) ||
        !read_numbers(op, &loop, run.numbers, options))
        return NULL;
    native_type type = native_array_type(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[nargs - 1], *g = (PyArrayObject *)args[0];
    if (!native_is_floating(type) || native_array_type(args[nargs - 1]) != type || !PyArray_SAMESHAPE(x, g))
        return NULL;
    run.type = type;
    run.inside = native_is_half(type) ? TYPE_F32 : type;
    run.loop = loops->of[loop][run.inside];
    run.inputs = (int)nargs;
    if (!PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(g)) {
        const native_operand operands[2] = {{.array = g}, {.array = x}};
        native_plan plan;
        PyObject *laid = native_plan_inputs(&plan, operands, run.inputs) ? native_plan_result(&plan, operands, type, NULL) : NULL;
        if (laid)
            native_plan_run(&plan, GRAIN, run_rows, &run);
        return laid;
    }
    PyArrayObject *made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (!made)
        return NULL;
    run.x = PyArray_BYTES(x);
    run.g = PyArray_BYTES(g);
    run.out = PyArray_BYTES(made);
    native_parallel(PyArray_SIZE(x), GRAIN, run_part, &run);
    return (PyObject *)made;
}

int activate_init(void) {
    loops = PICK(activate_loops);
    casts = PICK(cast_loops);
    if (native_intern(names, NAMES, OPTIONS))
        return -1;
    tanh_name = PyUnicode_InternFromString("tanh");
    return tanh_name ? 0 : -1;
}

const native_spec activate_kernels[] = {
    {"elu", run_activate, &(const activate_op){ACTIVATE_ELU, false, PLAIN}},
    {"selu", run_activate, &(const activate_op){ACTIVATE_ELU, false, SELU}},
    {"celu", run_activate, &(const activate_op){ACTIVATE_ELU, false, CELU}},
    {"softplus", run_activate, &(const activate_op){ACTIVATE_SOFTPLUS, false}},
    {"mish", run_activate, &(const activate_op){ACTIVATE_MISH, false}},
    {"log_sigmoid", run_activate, &(const activate_op){ACTIVATE_LOG_SIGMOID, false}},
    {"exponential_unit_backward", run_activate, &(const activate_op){SLOPE_ELU, true}},
    {"softplus_backward", run_activate, &(const activate_op){SLOPE_SOFTPLUS, true}},
    {"mish_backward", run_activate, &(const activate_op){SLOPE_MISH, true}},
    {"log_sigmoid_backward", run_activate, &(const activate_op){SLOPE_LOG_SIGMOID, true}},
    {"gelu_backward", run_activate, &(const activate_op){SLOPE_GELU, true}},
    {"silu_backward", run_activate, &(const activate_op){SLOPE_SILU, true}},
    {NULL, NULL, NULL},
};

PyObject *activate_describe(void) {
    PyObject *made = PyDict_New();
    for (const native_spec *spec = activate_kernels; made && spec->name; spec++) {
        PyObject *inputs = PyLong_FromLong(1 + ((const activate_op *)spec->data)->slope);
        if (!inputs || PyDict_SetItemString(made, spec->name, inputs))
            Py_CLEAR(made);
        Py_XDECREF(inputs);
    }
    return made;
}

bool activate_find(PyObject *name, PyObject *given, int *loop, double *numbers) {
    PyObject *options[OPTIONS] = {NULL};
    const char *wanted = PyUnicode_AsUTF8(name);
    const native_spec *spec = activate_kernels;
    while (wanted && spec->name && strcmp(spec->name, wanted))
        spec++;
    Py_ssize_t known = 0;
    for (int i = 0; i < OPTIONS; i++)
        known += (options[i] = PyDict_GetItemWithError(given, names[i])) != NULL;
    if (!wanted || PyErr_Occurred())
        return false;
    *loop = spec->name ? ((const activate_op *)spec->data)->loop : 0;
    if (!spec->name || known != PyDict_GET_SIZE(given) || !read_numbers(spec->data, loop, numbers, options)) {
        PyErr_Format(PyExc_ValueError, "fuse: expected an activation and its options, got %R with %R", name, given);
        return false;
    }
    return true;
}
