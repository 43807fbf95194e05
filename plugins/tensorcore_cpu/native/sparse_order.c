/* Sparse tensors in the order of their indices, each once: places in row-major order are sorted by their digits, and values of one
   place are added up as they came. */
#include "rows.h"

#include <string.h>

enum { SHAPE, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"shape"};

enum { DIGIT = 8, DIGITS = 1 << DIGIT };

typedef struct {
    int64_t place;
    int64_t from; /* which element is there */
} placed;

/* The places of elements in row-major order, with false where one lies outside, and whether they rise. */
static bool places_of(const int64_t *indices, int dims, const npy_intp *shape, npy_intp stored, placed *made, bool *rise) {
    int64_t before = -1;
    *rise = true;
    for (npy_intp k = 0; k < stored; k++) {
        int64_t place = 0;
        for (int i = 0; i < dims; i++) {
            const int64_t number = indices[i * stored + k];
            if (number < 0 || number >= shape[i])
                return false;
            place = place * shape[i] + number;
        }
        made[k] = (placed){place, k};
        *rise &= place > before;
        before = place;
    }
    return true;
}

/* Sorted by place, those of one place as they came: digit by digit, the lowest first. In `x` or in `other`, which is answered. */
static placed *sorted(placed *x, placed *other, npy_intp stored, int64_t most) {
    for (int shift = 0; shift < 64 && (most >> shift); shift += DIGIT) {
        npy_intp starts[DIGITS + 1] = {0};
        for (npy_intp k = 0; k < stored; k++)
            starts[((x[k].place >> shift) & (DIGITS - 1)) + 1]++;
        for (int i = 0; i < DIGITS; i++)
            starts[i + 1] += starts[i];
        for (npy_intp k = 0; k < stored; k++)
            other[starts[(x[k].place >> shift) & (DIGITS - 1)]++] = x[k];
        placed *const swapped = x;
        x = other;
        other = swapped;
    }
    return x;
}

#define ADD_UP(REAL)                                                                                          \
    for (npy_intp k = 0; k < stored; k++) {                                                                   \
        const REAL *row = (const REAL *)values + order[k].from * width;                                       \
        const bool first = !k || order[k].place != order[k - 1].place;                                        \
        REAL *sum = (REAL *)made + (at += first) * width;                                                     \
        for (npy_intp j = 0; j < width; j++)                                                                  \
            sum[j] = first ? row[j] : sum[j] + row[j];                                                        \
    }

/* Values in order, of one place added up. */
static void add_up(const placed *order, npy_intp stored, const void *values, npy_intp width, native_type type, void *made) {
    npy_intp at = -1;
    if (type == TYPE_F32)
        ADD_UP(float)
    else
        ADD_UP(double)
}

/* The indices of each place once, in order. */
static void indices_of(const placed *order, npy_intp stored, const int64_t *indices, int dims, npy_intp found, int64_t *made) {
    for (int i = 0; i < dims; i++) {
        npy_intp at = 0;
        for (npy_intp k = 0; k < stored; k++)
            if (!k || order[k].place != order[k - 1].place)
                made[i * found + at++] = indices[i * stored + order[k].from];
    }
}

/* (indices, values): both in order, each index once. */
static PyObject *run_coalesce(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *answer = NULL;
    npy_intp shape[NATIVE_DIMS], sizes[NATIVE_DIMS], most = 1, width = 1;
    const native_type type = nargs == 2 ? native_real_type(args[1]) : TYPE_NONE;
    PyArrayObject *indices = (PyArrayObject *)args[0], *values = (PyArrayObject *)args[1], *kept = NULL, *sums = NULL;
    if (type == TYPE_NONE || native_array_type(args[0]) != TYPE_I64 || PyArray_NDIM(indices) != 2 || PyArray_NDIM(values) < 1 || !kwnames ||
        !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[SHAPE])
        return NULL;
    const int dims = native_sizes(options[SHAPE], shape, NATIVE_DIMS);
    const npy_intp stored = PyArray_DIM(indices, 1);
    if (dims < 1 || PyArray_DIM(indices, 0) != dims || PyArray_DIM(values, 0) != stored)
        return NULL;
    for (int i = 0; i < dims; i++)
        if (__builtin_mul_overflow(most, shape[i], &most))
            return NULL;
    for (int i = 1; i < PyArray_NDIM(values); i++)
        width *= sizes[i] = PyArray_DIM(values, i);
    const size_t size = sizeof(placed) * ((size_t)stored + 1);
    placed *const space = native_scratch(2 * size), *order = space;
    if (!space)
        return PyErr_NoMemory();
    indices = native_dense(args[0]);
    values = native_dense(args[1]);
    bool rise, inside = indices && values && places_of(PyArray_DATA(indices), dims, shape, stored, space, &rise);
    if (inside) {
        if (!rise)
            order = sorted(space, space + stored + 1, stored, most - 1);
        npy_intp found = stored > 0;
        for (npy_intp k = 1; k < stored; k++)
            found += order[k].place != order[k - 1].place;
        sizes[0] = found;
        kept = native_empty(2, (npy_intp[]){dims, found}, TYPE_I64);
        sums = native_empty(PyArray_NDIM(values), sizes, type);
        if (kept && sums) {
            Py_BEGIN_ALLOW_THREADS;
            indices_of(order, stored, PyArray_DATA(indices), dims, found, PyArray_DATA(kept));
            add_up(order, stored, PyArray_DATA(values), width, type, PyArray_DATA(sums));
            Py_END_ALLOW_THREADS;
            answer = PyTuple_Pack(2, kept, sums);
        }
    }
    native_scratch_free(space, 2 * size);
    Py_XDECREF(indices);
    Py_XDECREF(values);
    Py_XDECREF(kept);
    Py_XDECREF(sums);
    return answer;
}

int sparse_order_init(void) { return native_intern(names, NAMES, OPTIONS); }

const native_spec sparse_order_kernels[] = {
    {"sparse_coalesce", run_coalesce, NULL},
    {NULL, NULL, NULL},
};
