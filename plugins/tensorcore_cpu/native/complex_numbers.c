/* Complex numbers as pairs of floats: what goes twice as fast, or more, than NumPy's loops over them. */
#include "complex_numbers.h"

#include "elementwise.h"
#include "pairs.h"
#include "reduce.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(pair_loops, pair_loops);
DECLARE_LOOPS(reduce_loops, reduce_loops);
DECLARE_LOOPS(elementwise_loops, elementwise_loops);

enum { DIM, KEEPDIM, DTYPE, OUT, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "keepdim", "dtype", "out"};

enum { GRAIN = 1 << 14 }; /* numbers a thread, and of a piece of a long row */

/* Arrays */

native_type native_complex_type(PyObject *object) {
    if (!PyArray_CheckExact(object))
        return TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)object;
    if (PyArray_NDIM(x) > NATIVE_DIMS || !PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x))
        return TYPE_NONE;
    return PyArray_TYPE(x) == NPY_CFLOAT ? TYPE_F32 : PyArray_TYPE(x) == NPY_CDOUBLE ? TYPE_F64 : TYPE_NONE;
}

PyArrayObject *native_empty_complex(int ndim, const npy_intp *shape, native_type type) {
    PyArray_Descr *descr = PyArray_DescrFromType(type == TYPE_F32 ? NPY_CFLOAT : NPY_CDOUBLE);
    if (!descr)
        return NULL;
    npy_intp bytes = 2 * TYPE_SIZE[type];
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            bytes = 0; /* NumPy says what is wrong */
    if (bytes >= NATIVE_LINES)
        return native_memory_array(descr, ndim, shape, NULL, (size_t)bytes);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, NULL, NULL, 0, NULL);
}

/* Element by element */

typedef struct {
    native_loop loop;
    char *from, *to;
    npy_intp size;
} parts_run;

static void run_parts(void *context, npy_intp begin, npy_intp end) {
    const parts_run *run = context;
    char *const data[2] = {run->from + begin * run->size, run->to + begin * run->size};
    const ptrdiff_t steps[2] = {run->size, run->size};
    run->loop(data, steps, end - begin);
}

/* Negation, of parts of either type, and with data square roots, of floats. */
static PyObject *run_each(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    PyObject *out = NULL;
    if (type == TYPE_NONE || (kwnames && !native_options(args, nargs, kwnames, &names[OUT], 1, &out)) ||
        !PyArray_IS_C_CONTIGUOUS(x) || (kernel->data && type != TYPE_F32))
        return NULL;
    PyArrayObject *made = native_is_none(out) ? native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(x), type) : (PyArrayObject *)out;
    if (!made)
        return NULL;
    if (!native_is_none(out)) {
        if (native_complex_type(out) != type || !PyArray_SAMESHAPE(made, x) || !PyArray_IS_C_CONTIGUOUS(made) ||
            !PyArray_ISWRITEABLE(made) || (PyArray_BYTES(made) != PyArray_BYTES(x) && native_overlap(made, x)))
            return NULL;
        Py_INCREF(out);
    }
    parts_run run = {PICK(elementwise_loops)->compute[OP_neg][type], PyArray_BYTES(x), PyArray_BYTES(made), TYPE_SIZE[type]};
    if (kernel->data) {
        run.loop = PICK(pair_loops)->root_f32;
        run.size *= 2;
    }
    native_parallel(PyArray_NBYTES(x) / run.size, kernel->data ? GRAIN / 4 : 4 * GRAIN, run_parts, &run);
    return (PyObject *)made;
}

/* Sums */

typedef struct {
    native_type type;
    PyArrayObject *array;
    npy_intp outer, count, inner; /* of which `count` are reduced */
    int ndim;
    npy_intp shape[NATIVE_DIMS]; /* of the result */
} folded;

/* False where the dims are no neighbours: NumPy's turn. */
static bool fold(PyObject *object, PyObject *dim, PyObject *keepdim, folded *made) {
    made->type = native_complex_type(object);
    made->array = (PyArrayObject *)object;
    if (made->type == TYPE_NONE || !PyArray_IS_C_CONTIGUOUS(made->array) || !PyArray_SIZE(made->array))
        return false;
    const int ndim = PyArray_NDIM(made->array);
    npy_intp dims[NATIVE_DIMS];
    const bool all = native_is_none(dim), keep = keepdim && PyObject_IsTrue(keepdim) == 1;
    const int given = all ? 0 : native_sizes(dim, dims, NATIVE_DIMS);
    bool reduced[NATIVE_DIMS];
    for (int i = 0; i < ndim; i++)
        reduced[i] = all;
    for (int k = 0; k < given; k++) {
        if (dims[k] < 0 || dims[k] >= ndim)
            return false;
        reduced[dims[k]] = true;
    }
    made->outer = made->count = made->inner = 1;
    made->ndim = 0;
    for (int i = 0; i < ndim; i++) {
        const npy_intp size = PyArray_DIM(made->array, i);
        if (!reduced[i] || keep)
            made->shape[made->ndim++] = reduced[i] ? 1 : size;
        if (reduced[i] && made->inner > 1 && size > 1)
            return false;
        *(reduced[i] ? &made->count : made->count > 1 ? &made->inner : &made->outer) *= size;
    }
    return all || given > 0;
}

typedef struct {
    const folded *of;
    npy_intp pieces, length; /* of each row */
    double *parts;           /* [outer, pieces, inner, 2] */
} sum_run;

static void sum_rows(void *context, npy_intp begin, npy_intp end) {
    const sum_run *run = context;
    const folded *of = run->of;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp first = i % run->pieces * run->length, rest = of->count - first;
        const char *row = PyArray_BYTES(of->array) + (i / run->pieces * of->count + first) * 2 * TYPE_SIZE[of->type];
        PICK(pair_loops)->sum[of->type](row, rest < run->length ? rest : run->length, run->parts + 2 * i);
    }
}

static void sum_strips(void *context, npy_intp begin, npy_intp end) {
    const sum_run *run = context;
    const folded *of = run->of;
    const npy_intp wide = 2 * of->inner, strips = (wide + STRIP - 1) / STRIP;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp column = i % strips * STRIP, rest = wide - column;
        const char *data = PyArray_BYTES(of->array) + (i / strips * of->count * wide + column) * TYPE_SIZE[of->type];
        PICK(reduce_loops)->of[of->type].sum_strip(data, of->count, wide, rest < STRIP ? rest : STRIP,
                                                   run->parts + i / strips * wide + column);
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
    folded of;
    if (nargs != 1 || (kwnames && !native_options(args, nargs, kwnames, names, OUT, options)) ||
        !native_is_none(options[DTYPE]) || !fold(args[0], options[DIM], options[KEEPDIM], &of))
        return NULL;
    PyArrayObject *made = native_empty_complex(of.ndim, of.shape, of.type);
    sum_run run = {.of = &of, .pieces = of.inner == 1 ? (of.count + GRAIN - 1) / GRAIN : 1, .length = GRAIN};
    const npy_intp numbers = 2 * of.outer * of.inner;
    if (made && !(run.parts = PyMem_RawCalloc((size_t)(numbers * run.pieces), sizeof(double)))) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    if (!made)
        return NULL;
    if (of.inner == 1)
        native_parallel(of.outer * run.pieces, native_grain(GRAIN, of.count), sum_rows, &run);
    else
        native_parallel(of.outer * ((2 * of.inner + STRIP - 1) / STRIP),
                        native_grain(2 * GRAIN, of.count * (2 * of.inner < STRIP ? 2 * of.inner : STRIP)), sum_strips, &run);
    for (npy_intp i = 0; i < numbers; i += 2) {
        double sum[2] = {0};
        for (npy_intp piece = 0; piece < run.pieces; piece++)
            for (int k = 0; k < 2; k++)
                sum[k] += run.parts[i * run.pieces + 2 * piece + k];
        store(made, of.type, i, sum);
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
    folded of;
    if (nargs != 1 || (kwnames && !native_options(args, nargs, kwnames, names, OUT, options)) ||
        !native_is_none(options[DTYPE]) || !fold(args[0], options[DIM], options[KEEPDIM], &of) || of.inner != 1)
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
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    return 0;
}

const native_spec complex_numbers_kernels[] = {
    {"neg_beneath", run_each, NULL},
    {"sqrt_beneath", run_each, "r"},
    {"sum_beneath", run_sum, NULL},
    {"mean_beneath", run_sum, "m"},
    {"prod_beneath", run_prod, NULL},
    {NULL, NULL, NULL},
};
