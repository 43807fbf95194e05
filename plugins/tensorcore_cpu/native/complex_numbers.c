/* Complex numbers as pairs of floats: what goes twice as fast, or more, than NumPy's loops over them. */
#include "complex_numbers.h"

#include "cast.h"
#include "elementwise.h"
#include "folds.h"
#include "pairs.h"
#include "reduce.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(pair_loops, pair_loops);
DECLARE_LOOPS(cast_loops, cast_loops);
DECLARE_LOOPS(reduce_loops, reduce_loops);
DECLARE_LOOPS(elementwise_loops, elementwise_loops);

enum { DIM, KEEPDIM, DTYPE, OUT, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "keepdim", "dtype", "out"};

enum { GRAIN = 1 << 14 }; /* numbers a thread, and of a piece of a long row */

/* Element by element */

typedef struct {
    native_loop loop;
    int operands; /* with the result, as the last one */
    char *data[3];
    npy_intp size;
} parts_run;

static void run_parts(void *context, npy_intp begin, npy_intp end) {
    const parts_run *run = context;
    char *data[3];
    const ptrdiff_t steps[3] = {run->size, run->size, run->size};
    for (int k = 0; k < run->operands; k++)
        data[k] = run->data[k] + begin * run->size;
    run->loop(data, steps, end - begin);
}

/* Whether an array has that type, the shape of another one and its order in memory. */
static bool lies_as(PyObject *object, native_type type, PyArrayObject *x) {
    return native_complex_type(object) == type && PyArray_SAMESHAPE((PyArrayObject *)object, x) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)object);
}

/* The loops over one array or two that lie alike, into a new one or into `out`: those of the parts, a letter's at a time, or of pairs. */
static PyObject *run_alike(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const char op = *(const char *)kernel->data;
    const int inputs = op == '-' || op == 'r' ? 1 : 2;
    const native_type type = nargs == inputs ? native_complex_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    PyObject *out = NULL;
    if (type == TYPE_NONE || (kwnames && !native_options(args, nargs, kwnames, &names[OUT], 1, &out)) || (op == 'r' && type != TYPE_F32) ||
        !lies_as(args[0], type, x) || !lies_as(args[inputs - 1], type, x))
        return NULL;
    const bool given = !native_is_none(out);
    PyArrayObject *made = given ? (PyArrayObject *)Py_NewRef(out) : native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type);
    bool fits = made && (!given || (lies_as(out, type, x) && PyArray_ISWRITEABLE(made)));
    for (int k = 0; k < inputs && fits && given; k++)
        fits = PyArray_BYTES(made) == PyArray_BYTES((PyArrayObject *)args[k]) || !native_overlap(made, (PyArrayObject *)args[k]);
    if (!fits) {
        Py_XDECREF(made);
        return NULL;
    }
    const bool pairs = op == 'r' || op == '*';
    const native_loop loop = op == 'r' ? PICK(pair_loops)->root_f32
                             : pairs   ? PICK(pair_loops)->times[type]
                                       : PICK(elementwise_loops)->compute[op == '+' ? OP_add : op == 's' ? OP_sub : OP_neg][type];
    parts_run run = {loop, inputs + 1, {PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)args[inputs - 1])}, (pairs ? 2 : 1) * TYPE_SIZE[type]};
    run.data[inputs] = PyArray_BYTES(made);
    native_evenly(PyArray_NBYTES(x) / run.size, op == 'r' ? GRAIN / 4 : pairs ? GRAIN : 4 * GRAIN, run_parts, &run);
    return (PyObject *)made;
}

/* Others lie apart, are broadcast, or are numbers. */
static PyObject *run_each(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *made = run_alike(kernel, args, nargs, kwnames), *out = NULL;
    const char op = *(const char *)kernel->data;
    if (made || PyErr_Occurred() || nargs != (op == '-' ? 1 : 2) || (kwnames && !native_options(args, nargs, kwnames, &names[OUT], 1, &out)))
        return made;
    if (op == '-')
        return native_complex_one(COMPLEX_neg, args[0], out);
    return native_complex_pair(op == '+' ? COMPLEX_add : op == 's' ? COMPLEX_sub : COMPLEX_mul, args[0], args[1], out);
}

/* Sums */

typedef struct {
    const native_fold *of;
    native_fold real; /* the same with twice as many columns */
    native_cut cut;
    double *parts; /* [outer, pieces, inner, 2] */
} sum_run;

static void sum_rows(void *context, npy_intp begin, npy_intp end) {
    const sum_run *run = context;
    const native_fold *of = run->of;
    const npy_intp pieces = run->cut.pieces, length = run->cut.length;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp outer = pieces == 1 ? i : i / pieces, first = (i - outer * pieces) * length, rest = of->count - first;
        const char *row = PyArray_BYTES(of->array) + (outer * of->count + first) * 2 * TYPE_SIZE[of->type];
        PICK(pair_loops)->sum[of->type](row, rest < length ? rest : length, run->parts + 2 * i);
    }
}

static void sum_strips(void *context, npy_intp begin, npy_intp end) {
    const sum_run *run = context;
    for (npy_intp i = begin; i < end; i++) {
        const native_piece at = native_piece_of(&run->real, &run->cut, STRIP, i);
        PICK(reduce_loops)->of[run->of->type].sum_strip(at.data, at.rows, run->real.inner, at.width, run->parts + at.part);
    }
}

static void store(PyArrayObject *made, native_type type, npy_intp at, const double *number) {
    for (int k = 0; k < 2; k++)
        if (type == TYPE_F32)
            ((float *)PyArray_DATA(made))[at + k] = (float)number[k];
        else
            ((double *)PyArray_DATA(made))[at + k] = number[k];
}

/* Sums, rounded to the dtype, by a complex number, as PyTorch does it: beside a part that is infinite there is none but NaN. */
#define DIVIDE(name, type)                                                                                    \
    static __attribute__((noinline)) void name(type *numbers, npy_intp count, double divisor) {               \
        for (npy_intp i = 0; i < count; i += 2) {                                                             \
            const double real = numbers[i], imaginary = numbers[i + 1];                                       \
            numbers[i] = (type)((real + imaginary * 0) / divisor);                                            \
            numbers[i + 1] = (type)((imaginary - real * 0) / divisor);                                        \
        }                                                                                                     \
    }
DIVIDE(divide_f32, float)
DIVIDE(divide_f64, double)

/* Sums and means; those of short rows in one piece each. */
static PyObject *run_sum(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    native_fold of;
    if (nargs != 1 || (kwnames && !native_options(args, nargs, kwnames, names, OUT, options)) ||
        !native_is_none(options[DTYPE]) ||
        !native_folded(&of, args[0], native_complex_type(args[0]), options[DIM], options[KEEPDIM]))
        return NULL;
    PyArrayObject *made = native_empty_complex(of.ndim, of.shape, of.type);
    sum_run run = {.of = &of, .real = of, .cut = {.pieces = (of.count + GRAIN - 1) / GRAIN, .length = GRAIN}};
    const npy_intp wide = run.real.inner *= 2, numbers = of.outer * wide;
    if (of.inner > 1)
        run.cut = native_cut_fold(&run.real, STRIP, 0);
    const npy_intp pieces = run.cut.pieces;
    if (made && !(run.parts = PyMem_RawCalloc((size_t)(numbers * pieces), sizeof(double)))) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    if (!made)
        return NULL;
    if (of.inner == 1)
        native_parallel(of.outer * pieces, native_grain(GRAIN, of.count), sum_rows, &run);
    else
        native_parallel(of.outer * pieces * run.cut.strips, run.cut.grain, sum_strips, &run);
    const native_loop convert = PICK(cast_loops)->cast[TYPE_F64][of.type];
    const npy_intp runs = pieces == 1 ? 1 : of.outer, length = numbers / runs;
    const ptrdiff_t steps[2] = {sizeof(double), TYPE_SIZE[of.type]};
    for (npy_intp i = 0; i < runs; i++) {
        double *parts = run.parts + i * pieces * length;
        for (npy_intp piece = 1; piece < pieces; piece++)
            for (npy_intp j = 0; j < length; j++)
                parts[j] += parts[piece * length + j];
        char *const data[2] = {(char *)parts, PyArray_BYTES(made) + i * length * TYPE_SIZE[of.type]};
        convert(data, steps, length);
    }
    if (kernel->data && of.type == TYPE_F32)
        divide_f32(PyArray_DATA(made), numbers, (double)of.count);
    else if (kernel->data)
        divide_f64(PyArray_DATA(made), numbers, (double)of.count);
    PyMem_RawFree(run.parts);
    return (PyObject *)made;
}

/* Of all elements. */
static PyObject *run_prod(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    native_fold of;
    if (nargs != 1 || (kwnames && !native_options(args, nargs, kwnames, names, OUT, options)) ||
        !native_is_none(options[DTYPE]) ||
        !native_folded(&of, args[0], native_complex_type(args[0]), options[DIM], options[KEEPDIM]) || of.inner != 1)
        return NULL;
    PyArrayObject *made = native_empty_complex(of.ndim, of.shape, of.type);
    for (npy_intp i = 0; made && i < of.outer; i++) {
        double product[2];
        PICK(pair_loops)->product[of.type](PyArray_BYTES(of.array) + i * of.count * 2 * TYPE_SIZE[of.type], of.count, product);
        store(made, of.type, 2 * i, product);
    }
    return (PyObject *)made;
}

int complex_numbers_init(void) {
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec complex_numbers_kernels[] = {
    {"neg_beneath", run_each, "-", .ordered = true},
    {"sqrt_beneath", run_alike, "r"},
    {"add_beneath", run_each, "+", .ordered = true},
    {"sub_beneath", run_each, "s", .ordered = true},
    {"mul_beneath", run_each, "*", .ordered = true},
    {"sum_beneath", run_sum, NULL},
    {"mean_beneath", run_sum, "m"},
    {"prod_beneath", run_prod, NULL},
    {NULL, NULL, NULL},
};
