/* Functions of complex numbers that are several steps elsewhere: options and broadcasting, and running sums of exponentials. */
#include "complex_formulas.h"

#include "plan.h"
#include "rows.h"

DECLARE_LOOPS(complex_formula_loops, complex_formula_loops);

static const complex_formula_loops *loops;

enum { OUT, VALUE, ALPHA, OPTIONS };
static PyObject *names[OPTIONS], *dim_name;
static const char *const NAMES[OPTIONS] = {"out", "value", "alpha"};

typedef struct {
    int loop, inputs, grain; /* elements a thread */
} complex_op;

typedef struct {
    complex_loop loop;
    double number[2];
} complex_run;

static void run_rows(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const complex_run *run = context;
    run->loop(run->number, data, steps, count);
}

/* A number of Python as two parts. */
static bool read_number(PyObject *object, double *parts) {
    if (PyComplex_CheckExact(object)) {
        const Py_complex number = PyComplex_AsCComplex(object);
        parts[0] = number.real;
        parts[1] = number.imag;
        return true;
    }
    return native_double(object, parts);
}

static PyObject *run_formula(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const complex_op *op = kernel->data;
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == op->inputs ? native_complex_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    complex_run run = {loops->of[op->loop][type], {1, 0}};
    PyObject *number = options[op->loop == COMPLEX_add_scaled ? ALPHA : VALUE];
    if (number && !read_number(number, run.number))
        return NULL;
    native_operand operands[PLAN_OPERANDS];
    double weight[2] = {0};
    float narrow[2];
    for (int k = 0; k < op->inputs; k++) {
        operands[k].array = (PyArrayObject *)args[k];
        if (native_complex_type(args[k]) == type)
            continue;
        if (op->loop != COMPLEX_lerp || k != 2 || !read_number(args[k], weight))
            return NULL; /* two dtypes */
        narrow[0] = (float)weight[0];
        narrow[1] = (float)weight[1];
        operands[k].array = NULL;
        operands[k].data = type == TYPE_F32 ? (char *)narrow : (char *)weight;
    }
    native_plan plan;
    if (!native_plan_inputs(&plan, operands, op->inputs))
        return NULL;
    PyObject *made = native_plan_complex_result(&plan, operands, type, options[OUT] == Py_None ? NULL : options[OUT]);
    if (made)
        native_plan_run(&plan, op->grain, run_rows, &run);
    return made;
}

/* Along a dim */

typedef struct {
    const char *x;
    char *made;
    npy_intp count, inner, size;
    native_type type;
} running_run;

static void run_lines(void *context, npy_intp begin, npy_intp end) {
    const running_run *run = context;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp start = (i / run->inner * run->count * run->inner + i % run->inner) * run->size;
        loops->running[run->type](run->x + start, run->made + start, run->inner * run->size, run->count);
    }
}

static PyObject *run_logcumsumexp(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *option = NULL;
    npy_intp dim;
    const native_type type = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, &dim_name, 1, &option) || !option || !PyLong_CheckExact(option))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    dim = PyLong_AsSsize_t(option);
    if (dim < 0 || dim >= PyArray_NDIM(x) || !PyArray_IS_C_CONTIGUOUS(x)) {
        PyErr_Clear();
        return NULL;
    }
    PyArrayObject *made = native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (!made || !PyArray_SIZE(made))
        return (PyObject *)made;
    running_run run = {PyArray_BYTES(x), PyArray_BYTES(made), PyArray_DIM(x, (int)dim), 1, PyArray_ITEMSIZE(x), type};
    for (int i = (int)dim + 1; i < PyArray_NDIM(x); i++)
        run.inner *= PyArray_DIM(x, i);
    native_parallel(PyArray_SIZE(x) / run.count, native_grain(1 << 9, run.count), run_lines, &run);
    return (PyObject *)made;
}

int complex_formulas_init(void) {
    loops = PICK(complex_formula_loops);
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    return dim_name || (dim_name = PyUnicode_InternFromString("dim")) ? 0 : -1;
}

#define SPEC(name, inputs, grain) {#name "_beneath", run_formula, &(const complex_op){COMPLEX_##name, inputs, grain}, .ordered = true}

const native_spec complex_formulas_kernels[] = {
    SPEC(sinc, 1, 1 << 9),
    SPEC(logaddexp, 2, 1 << 9),
    SPEC(add_scaled, 2, 1 << 13),
    SPEC(addcmul, 3, 1 << 13),
    SPEC(addcdiv, 3, 1 << 12),
    SPEC(lerp, 3, 1 << 12),
    {"logcumsumexp_beneath", run_logcumsumexp, NULL},
    {NULL},
};
