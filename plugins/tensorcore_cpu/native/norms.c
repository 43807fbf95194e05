/* Norms along dims: of order 2 in one pass, others of the sizes of elements, raised to their power in a pass of their own. */
#include "elementwise.h"
#include "formulas.h"
#include "plan.h"
#include "rows.h"

#include <math.h>
#include <string.h>

DECLARE_LOOPS(formula_loops, formula_loops);
DECLARE_LOOPS(elementwise_loops, elementwise_loops);

static const formula_loops *loops;
static const elementwise_loops *elements;
static numpy_loop numpy_powers; /* of doubles */

enum { DIM, KEEPDIM, DTYPE, POWER, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "keepdim", "dtype", "p"};

enum { GRAIN = 1 << 13, PIECE = 2048 };

/* Elements to a power, where they lie. */
static void raise(native_type type, double power, char *data, ptrdiff_t step, ptrdiff_t count) {
    const float narrow = (float)power;
    char *at[3] = {data, type == TYPE_F32 ? (char *)&narrow : (char *)&power, data};
    const ptrdiff_t steps[3] = {step, 0, step};
    if (type == TYPE_F32)
        elements->compute[OP_power][TYPE_F32](at, steps, count);
    else
        numpy_powers.loop(at, &count, steps, numpy_powers.beside);
}

/* Whether elements are there. */
#define SOME(name, type)                                                                                        \
    static void name(const char *x, ptrdiff_t step, char *made, ptrdiff_t to, ptrdiff_t count) {                \
        for (ptrdiff_t i = 0; i < count; i++)                                                                   \
            *(type *)(made + i * to) = *(const type *)(x + i * step) != 0;                                      \
    }

SOME(some_f32, float)
SOME(some_f64, double)

typedef struct {
    native_type type;
    double power;
} powers_run;

/* What is summed, or the sizes of which the largest or the smallest is found. */
static void run_powers(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const powers_run *run = context;
    const double power = run->power;
    for (ptrdiff_t begin = 0, few; begin < count; begin += few) {
        few = count - begin < PIECE ? count - begin : PIECE;
        char *const at[2] = {data[0] + begin * steps[0], data[1] + begin * steps[1]};
        char *const there[2] = {at[1], at[1]};
        const ptrdiff_t own[2] = {steps[1], steps[1]};
        if (power == 0) {
            (run->type == TYPE_F32 ? some_f32 : some_f64)(at[0], steps[0], at[1], steps[1], few);
            continue;
        }
        elements->compute[OP_abs][run->type](at, steps, few);
        if (power == 3)
            elements->compute[OP_cube][run->type](there, own, few);
        else if (power != 1 && !isinf(power))
            raise(run->type, power, at[1], steps[1], few);
    }
}

typedef struct {
    native_type type;
    double power;
    char *data;
} roots_run;

static void run_roots(void *context, npy_intp begin, npy_intp end) {
    const roots_run *run = context;
    const int size = TYPE_SIZE[run->type];
    raise(run->type, run->power, run->data + begin * size, size, end - begin);
}

static PyObject *norm_of_order(PyObject *x, native_type type, double power, PyObject *dim, PyObject *keepdim) {
    const native_operand operand = {.array = (PyArrayObject *)x};
    native_plan plan;
    if (!PyArray_SIZE(operand.array) || !native_plan_inputs(&plan, &operand, 1))
        return NULL;
    PyObject *sizes = native_plan_result(&plan, &operand, type, NULL);
    if (!sizes)
        return NULL;
    native_plan_run(&plan, GRAIN, run_powers, &(powers_run){type, power});
    const native_extent kind = power == INFINITY ? EXTENT_LARGEST : power == -INFINITY ? EXTENT_SMALLEST : EXTENT_SUM;
    PyObject *made = native_reduced_along(sizes, kind, dim, keepdim);
    Py_DECREF(sizes);
    if (made && power != 0 && power != 1 && !isinf(power))
        native_parallel(PyArray_SIZE((PyArrayObject *)made), GRAIN, run_roots,
                        &(roots_run){type, 1 / power, PyArray_BYTES((PyArrayObject *)made)});
    return made;
}

static PyObject *run_norm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    double power = 0;
    if (type > TYPE_F16 || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)) ||
        !native_is_none(options[DTYPE]) || !native_double(options[POWER], &power))
        return NULL;
    if (power != 2)
        return type <= TYPE_F64 ? norm_of_order(args[0], type, power, options[DIM], options[KEEPDIM]) : NULL;
    if (type > TYPE_F64 || !native_is_none(options[DIM]) || (options[KEEPDIM] && options[KEEPDIM] != Py_False))
        return native_reduced_along(args[0], EXTENT_EUCLID, options[DIM], options[KEEPDIM]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    return PyArray_ISONESEGMENT(x) ? native_number_array(sqrt(loops->squares[type](PyArray_DATA(x), PyArray_SIZE(x))), type) : NULL;
}

int norms_init(void) {
    loops = PICK(formula_loops);
    elements = PICK(elementwise_loops);
    if (!numpy_powers.loop && !native_numpy_loop("power", TYPE_F64, &numpy_powers))
        return -1;
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    return 0;
}

const native_spec norms_kernels[] = {
    {"norm", run_norm, NULL, .dense = true},
    {NULL, NULL, NULL},
};
