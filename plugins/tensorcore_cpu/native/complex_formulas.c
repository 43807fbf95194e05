/* Functions of complex numbers that are several steps elsewhere: options and broadcasting, and running sums of exponentials. */
#include "complex_numbers.h"

#include "plan.h"
#include "rows.h"

DECLARE_LOOPS(complex_formula_loops, complex_formula_loops);

static const complex_formula_loops *loops;

enum { OUT, VALUE, ALPHA, OPTIONS };
static PyObject *names[OPTIONS], *dim_name, *by_name;
static const char *const NAMES[OPTIONS] = {"out", "value", "alpha"};

enum { GRAIN = 1 << 13 }; /* elements a thread, of cheap ones */

typedef struct {
    int loop, inputs, grain;
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

/* The loop over operands with parts of one type, of which those in `numbers` may be numbers of Python. */
static PyObject *computed(const complex_op *op, complex_run *run, PyObject *const *args, const bool *numbers, PyObject *out) {
    native_operand operands[PLAN_OPERANDS];
    double wide[PLAN_OPERANDS][2] = {{0}};
    float narrow[PLAN_OPERANDS][2];
    native_type type = TYPE_NONE;
    for (int k = 0; k < op->inputs; k++)
        type = type == TYPE_NONE ? native_complex_type(args[k]) : type;
    if (type == TYPE_NONE)
        return NULL;
    for (int k = 0; k < op->inputs; k++) {
        operands[k].array = (PyArrayObject *)args[k];
        if (native_complex_type(args[k]) == type)
            continue;
        if (!numbers[k] || !read_number(args[k], wide[k]))
            return NULL; /* two dtypes */
        narrow[k][0] = (float)wide[k][0];
        narrow[k][1] = (float)wide[k][1];
        operands[k].array = NULL;
        operands[k].data = type == TYPE_F32 ? (char *)narrow[k] : (char *)wide[k];
    }
    native_plan plan;
    run->loop = loops->of[op->loop][type];
    if (!native_plan_inputs(&plan, operands, op->inputs))
        return NULL;
    PyObject *made = native_plan_complex_result(&plan, operands, type, out == Py_None ? NULL : out);
    if (made)
        native_plan_run(&plan, op->grain, run_rows, run);
    return made;
}

static PyObject *run_formula(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const complex_op *op = kernel->data;
    PyObject *options[OPTIONS] = {NULL};
    if (nargs != op->inputs || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    complex_run run = {NULL, {1, 0}};
    PyObject *number = options[op->loop == COMPLEX_add_scaled ? ALPHA : VALUE];
    const bool numbers[PLAN_OPERANDS] = {op->loop == COMPLEX_div, op->loop == COMPLEX_div, op->loop == COMPLEX_lerp};
    return number && !read_number(number, run.number) ? NULL : computed(op, &run, args, numbers, options[OUT]);
}

PyObject *native_complex_pair(int loop, PyObject *x, PyObject *y, PyObject *out) {
    complex_run run = {NULL, {1, 0}};
    const bool numbers[2] = {true, true};
    return computed(&(complex_op){loop, 2, GRAIN}, &run, (PyObject *const[]){x, y}, numbers, out);
}

PyObject *native_complex_one(int loop, PyObject *x, PyObject *out) {
    complex_run run = {NULL, {1, 0}};
    return computed(&(complex_op){loop, 1, GRAIN}, &run, &x, (const bool[]){false}, out);
}

/* Whether two numbers are one, written over the first: (x, other, by), of which `other` may be a number. */
static PyObject *run_compare(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *by = NULL;
    if (nargs != 2 || !kwnames || !native_options(args, nargs, kwnames, &by_name, 1, &by) || !by || !PyUnicode_Check(by) ||
        native_complex_type(args[0]) == TYPE_NONE)
        return NULL;
    const bool same = PyUnicode_CompareWithASCIIString(by, "eq") == 0, other = PyUnicode_CompareWithASCIIString(by, "ne") == 0;
    return same || other ? native_complex_pair(same ? COMPLEX_eq : COMPLEX_ne, args[0], args[1], args[0]) : NULL;
}

static PyObject *run_reciprocal(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL}, *one = NULL, *made = NULL;
    if (nargs == 1 && (!kwnames || native_options(args, nargs, kwnames, names, 1, options)) && (one = PyFloat_FromDouble(1)))
        made = native_complex_pair(COMPLEX_div, one, args[0], options[OUT]);
    Py_XDECREF(one);
    return made;
}

/* Powers; to the few that are products or quotients of one or two by those. */
static PyObject *run_pow(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const complex_op any = {COMPLEX_pow, 2, 1 << 9};
    PyObject *options[OPTIONS] = {NULL}, *one, *made;
    double power = 0;
    if (nargs != 2 || (kwnames && !native_options(args, nargs, kwnames, names, 1, options)) ||
        (native_complex_type(args[0]) == TYPE_NONE && native_complex_type(args[1]) == TYPE_NONE))
        return NULL;
    const bool number = native_double(args[1], &power), over = power == -1 || power == -2, whole = power == 2 || power == 3;
    if (!number || !(over || whole) || !native_is_none(options[OUT])) {
        complex_run run = {NULL, {1, 0}};
        return computed(&any, &run, args, (const bool[]){true, true}, options[OUT]);
    }
    made = power == -1 ? Py_NewRef(args[0]) : native_complex_pair(COMPLEX_mul, args[0], args[0], NULL);
    if (made && power == 3)
        Py_SETREF(made, native_complex_pair(COMPLEX_mul, made, args[0], NULL));
    if (!made || !over || !(one = PyLong_FromLong(1)))
        return made;
    Py_SETREF(made, native_complex_pair(COMPLEX_div, one, made, NULL));
    Py_DECREF(one);
    return made;
}

/* Along a dim */

typedef struct {
    const char *x;
    char *made;
    npy_intp count, inner, size;
    void (*run)(const char *x, char *made, ptrdiff_t step, ptrdiff_t count);
} running_run;

static void run_lines(void *context, npy_intp begin, npy_intp end) {
    const running_run *run = context;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp start = (i / run->inner * run->count * run->inner + i % run->inner) * run->size;
        run->run(run->x + start, run->made + start, run->inner * run->size, run->count);
    }
}

/* The only option, a dim that is counted from the front. */
static bool read_dim(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, npy_intp *dim) {
    PyObject *option = NULL;
    if (!kwnames || !native_options(args, nargs, kwnames, &dim_name, 1, &option) || !option || !PyLong_CheckExact(option))
        return false;
    *dim = PyLong_AsSsize_t(option);
    if (*dim < 0)
        PyErr_Clear();
    return *dim >= 0;
}

/* logcumsumexp, or with data cumprod */
static PyObject *run_running(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    npy_intp dim;
    const native_type type = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || !read_dim(args, nargs, kwnames, &dim) || dim >= PyArray_NDIM(x) || !PyArray_IS_C_CONTIGUOUS(x))
        return NULL;
    PyArrayObject *made = native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (!made || !PyArray_SIZE(made))
        return (PyObject *)made;
    running_run run = {PyArray_BYTES(x), PyArray_BYTES(made), PyArray_DIM(x, (int)dim), 1, PyArray_ITEMSIZE(x),
                       kernel->data ? loops->products[type] : loops->running[type]};
    for (int i = (int)dim + 1; i < PyArray_NDIM(x); i++)
        run.inner *= PyArray_DIM(x, i);
    native_evenly(PyArray_SIZE(x) / run.count, native_grain(kernel->data ? GRAIN : 1 << 9, run.count), run_lines, &run);
    return (PyObject *)made;
}

/* x in row-major order, repeated to a shape; NULL with an exception where it does not go there. */
static PyArrayObject *stretched(PyArrayObject *x, int ndim, const npy_intp *shape, native_type type) {
    if (PyArray_IS_C_CONTIGUOUS(x) && PyArray_NDIM(x) == ndim && PyArray_CompareLists(PyArray_DIMS(x), shape, ndim))
        return (PyArrayObject *)Py_NewRef((PyObject *)x);
    PyArrayObject *made = native_empty_complex(ndim, shape, type);
    if (made && PyArray_CopyInto(made, x))
        Py_CLEAR(made);
    return made;
}

static PyObject *run_cross(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 2 ? native_complex_type(args[0]) : TYPE_NONE;
    native_operand operands[2];
    native_plan plan;
    npy_intp dim;
    if (type == TYPE_NONE || native_complex_type(args[1]) != type || !read_dim(args, nargs, kwnames, &dim))
        return NULL;
    for (int k = 0; k < 2; k++)
        operands[k].array = (PyArrayObject *)args[k];
    if (!native_plan_inputs(&plan, operands, 2) || dim >= plan.ndim || plan.shape[dim] != 3)
        return NULL;
    PyArrayObject *x = stretched(operands[0].array, plan.ndim, plan.shape, type);
    PyArrayObject *y = x ? stretched(operands[1].array, plan.ndim, plan.shape, type) : NULL;
    PyArrayObject *made = y ? native_empty_complex(plan.ndim, plan.shape, type) : NULL;
    npy_intp step = 1;
    for (int i = (int)dim + 1; i < plan.ndim; i++)
        step *= plan.shape[i];
    if (made)
        loops->cross[type](PyArray_DATA(x), PyArray_DATA(y), PyArray_DATA(made), step, plan.count / 3);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return (PyObject *)made;
}

int complex_formulas_init(void) {
    loops = PICK(complex_formula_loops);
    dim_name = PyUnicode_InternFromString("dim");
    by_name = PyUnicode_InternFromString("by");
    return dim_name && by_name ? native_intern(names, NAMES, OPTIONS) : -1;
}

#define SPEC(name, inputs, grain) \
    {#name "_beneath", run_formula, &(const complex_op){COMPLEX_##name, inputs, grain}, .ordered = true}

const native_spec complex_formulas_kernels[] = {
    SPEC(div, 2, GRAIN / 2),
    SPEC(sinc, 1, 1 << 9),
    SPEC(sigmoid, 1, 1 << 9),
    SPEC(silu, 1, 1 << 9),
    SPEC(logaddexp, 2, 1 << 9),
    SPEC(add_scaled, 2, GRAIN),
    SPEC(addcmul, 3, GRAIN),
    SPEC(addcdiv, 3, GRAIN / 2),
    SPEC(lerp, 3, GRAIN / 2),
    SPEC(exp2, 1, 1 << 9),
    SPEC(rsqrt, 1, 1 << 9),
    {"conj_physical", run_formula, &(const complex_op){COMPLEX_conj_physical, 1, GRAIN}, .ordered = true},
    {"compare_over_beneath", run_compare, NULL},
    {"reciprocal_beneath", run_reciprocal, NULL, .ordered = true},
    {"pow_beneath", run_pow, NULL, .ordered = true},
    {"logcumsumexp_beneath", run_running, NULL},
    {"cumprod_beneath", run_running, "products"},
    {"cross_beneath", run_cross, NULL},
    {NULL},
};
