/* Linear maps by int8 weights of floats that are rounded to eight bits first. */
#include "quantized.h"

#include "rows.h"

#include <float.h>
#include <math.h>

DECLARE_LOOPS(quantized_loops, quantized_loops);

enum {
    LONGEST = 1 << 17,   /* numbers of a sum: 127 * 128 each, so that it has 31 bits */
    READ = 1 << 16,      /* floats that are worth a second thread when they are read once, */
    PART = 1 << 20,      /* multiplications that are */
    PIECES = 64,         /* of the floats, at most */
    UNIT = 32,           /* columns that go together */
    BLOCK = 1 << 18,     /* bytes of the left side that stay in the second cache */
};

typedef struct {
    const quantized_loops *loops;
    int8_product product;
    const float *x;
    npy_intp count, piece;
    float below[PIECES], above[PIECES];
    _Atomic bool odd;
    float inverse;
    int zero;
    bool dots;
    char *left;
    int32_t *totals;
} work;

static void find_range(void *context, npy_intp begin, npy_intp end) {
    work *all = context;
    for (npy_intp p = begin; p < end; p++) {
        const npy_intp first = p * all->piece, rest = all->count - first;
        if (!all->loops->range(all->x + first, rest < all->piece ? rest : all->piece, &all->below[p], &all->above[p]))
            all->odd = true;
    }
}

static void round_rows(void *context, npy_intp begin, npy_intp end) {
    work *all = context;
    const npy_intp inner = all->product.inner, row = all->product.row;
    for (npy_intp i = begin; i < end; i++) {
        const float *x = all->x + i * inner;
        if (all->dots)
            all->totals[i] = all->loops->round_bytes(x, inner, row, all->inverse, all->zero, (int8_t *)all->left + i * row);
        else
            all->loops->round_short(x, inner, row, all->inverse, all->zero, (int16_t *)all->left + i * row);
    }
}

static void multiply(void *context, npy_intp begin, npy_intp end) {
    const work *all = context;
    const int8_product *of = &all->product;
    const ptrdiff_t last = end * UNIT < of->columns ? end * UNIT : of->columns, size = all->dots ? 1 : 2;
    const ptrdiff_t height = BLOCK / (of->row * size) > 4 ? BLOCK / (of->row * size) / 4 * 4 : 4;
    for (ptrdiff_t row = 0; row < of->rows; row += height)
        (all->dots ? int8_multiply_dots : all->loops->multiply)(of, row, of->rows - row < height ? of->rows : row + height,
                                                                begin * UNIT, last);
}

/* The step and the whole number that stands for 0, so that the range, 0 included, is 127 steps wide. False where the step is no
   ordinary number, which is for NumPy.

   Whole numbers less that zero are bytes with a sign, and -128 is none of them. Both ends of the range are a and b steps from 0,
   a + b = 127 but for some units in the last place, and both round to at most 128 in all: if b rounds to 0, a does not reach 127.5, and
   otherwise what is above 0 has at most 127 steps. What is below is cut at -zero. */
static bool find_step(work *all, npy_intp pieces) {
    float below = 0, above = 0;
    for (npy_intp p = 0; p < pieces; p++) {
        below = all->below[p] > below ? all->below[p] : below;
        above = all->above[p] > above ? all->above[p] : above;
    }
    const float wide = above + below, step = wide / 127;
    if (wide && !(step >= FLT_MIN && step <= FLT_MAX))
        return false;
    all->product.step = wide ? step : 1;
    all->inverse = 1 / all->product.step;
    const float zero = nearbyintf(below / all->product.step);
    all->zero = zero > 127 ? 127 : (int)zero;
    return true;
}

static bool run_work(work *all) {
    const int8_product *of = &all->product;
    const npy_intp most = (all->count + READ - 1) / READ, pieces = most < PIECES ? most : PIECES;
    all->piece = (all->count + pieces - 1) / pieces;
    native_parallel(pieces, 1, find_range, all);
    if (all->odd || !find_step(all, pieces))
        return false;
    native_parallel(of->rows, native_grain(READ, of->inner), round_rows, all);
    native_parallel((of->columns + UNIT - 1) / UNIT, native_grain(PART / UNIT, of->rows * of->inner), multiply, all);
    return true;
}

static bool is_f32(PyObject *one, int ndim, npy_intp size) {
    return native_array_type(one) == TYPE_F32 && PyArray_NDIM((PyArrayObject *)one) == ndim && PyArray_SIZE((PyArrayObject *)one) == size &&
           PyArray_IS_C_CONTIGUOUS((PyArrayObject *)one);
}

static PyObject *run_linear(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 4 || kwnames || native_array_type(args[0]) != TYPE_F32 || native_array_type(args[1]) != TYPE_I8)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *weight = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    if (!ndim || PyArray_NDIM(weight) != 2 || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(weight) || !PyArray_SIZE(x))
        return NULL;
    const npy_intp columns = PyArray_DIM(weight, 0), inner = PyArray_DIM(weight, 1);
    const bool each = !is_f32(args[2], 0, 1), biased = args[3] != Py_None;
    if (!columns || inner != PyArray_DIM(x, ndim - 1) || inner > LONGEST || (each && !is_f32(args[2], 1, columns)) ||
        (biased && !is_f32(args[3], 1, columns)))
        return NULL;
    npy_intp shape[NATIVE_DIMS];
    for (int d = 0; d < ndim; d++)
        shape[d] = d < ndim - 1 ? PyArray_DIM(x, d) : columns;
    work all = {.loops = PICK(quantized_loops), .x = PyArray_DATA(x), .count = PyArray_SIZE(x), .dots = int8_dots_here()};
    const npy_intp rows = all.count / inner, row = (inner + INT8_PAD - 1) / INT8_PAD * INT8_PAD;
    const size_t left = (size_t)(rows * row) * (all.dots ? 1 : 2), size = left + (size_t)rows * sizeof(int32_t);
    PyArrayObject *made = native_empty(ndim, shape, TYPE_F32);
    if (!made)
        return NULL;
    if (!(all.left = native_scratch(size))) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    all.totals = (int32_t *)(all.left + left);
    all.product = (int8_product){.rows = rows, .columns = columns, .inner = inner, .row = row, .left = all.left, .totals = all.totals,
                                 .weight = PyArray_DATA(weight), .scale = PyArray_DATA((PyArrayObject *)args[2]), .each = each,
                                 .bias = biased ? PyArray_DATA((PyArrayObject *)args[3]) : NULL, .made = PyArray_DATA(made)};
    const bool done = run_work(&all);
    native_scratch_free(all.left, size);
    if (!done)
        Py_CLEAR(made);
    return (PyObject *)made;
}

const native_spec quantized_kernels[] = {
    {"linear_int8", run_linear, .dense = true},
    {NULL, NULL, NULL},
};
