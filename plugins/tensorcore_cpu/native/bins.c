/* Histograms: how much weight falls into each bin, of points of several dims or of numbers in equal bins. Bins of equal width are
   found by a product, whose neighbours are looked at; others by halving. Sums are double, and in the order of the points. */
#include "cast.h"
#include "halves.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>

DECLARE_LOOPS(cast_loops, cast_loops);

enum { BINS, LOW, HIGH, OPTIONS };
static PyObject *names[OPTIONS];

/* The bin of a number that is within the edges: the last whose left edge is not over it. */
#define FIND(name, type)                                                                                      \
    static inline npy_intp name(const type *edges, npy_intp bins, double scale, type x) {                     \
        const double guess = ((double)x - (double)edges[0]) * scale;                                          \
        npy_intp at = guess > 0 ? (guess < (double)(bins - 1) ? (npy_intp)guess : bins - 1) : 0;              \
        at -= at > 0 && x < edges[at];                                                                        \
        at += at < bins - 1 && x >= edges[at + 1];                                                            \
        if ((at > 0 && x < edges[at]) || (at < bins - 1 && x >= edges[at + 1])) {                             \
            npy_intp low = 0, high = bins;                                                                    \
            while (high - low > 1) {                                                                          \
                const npy_intp middle = (low + high) / 2;                                                     \
                *(x >= edges[middle] ? &low : &high) = middle;                                                \
            }                                                                                                 \
            at = low;                                                                                         \
        }                                                                                                     \
        return at;                                                                                            \
    }
FIND(find_f32, float)
FIND(find_f64, double)

typedef struct {
    int dims;
    npy_intp bins[NATIVE_DIMS];
    double scale[NATIVE_DIMS];
    const void *edges[NATIVE_DIMS];
} bin_shape;

#define COUNT(name, type, find)                                                                               \
    static void name(const bin_shape *of, const type *x, const type *weight, npy_intp count, double *sums) {  \
        for (npy_intp i = 0; i < count; i++, x += of->dims) {                                                 \
            npy_intp place = 0;                                                                               \
            bool inside = true;                                                                               \
            for (int k = 0; k < of->dims && inside; k++) {                                                    \
                const type *edges = of->edges[k];                                                             \
                inside = x[k] >= edges[0] && x[k] <= edges[of->bins[k]];                                      \
                place = inside ? place * of->bins[k] + find(edges, of->bins[k], of->scale[k], x[k]) : 0;      \
            }                                                                                                 \
            if (inside)                                                                                       \
                sums[place] += weight ? (double)weight[i] : 1;                                                \
        }                                                                                                     \
    }
COUNT(count_f32, float, find_f32)
COUNT(count_f64, double, find_f64)

/* Places as PyTorch rounds them, in the numbers' own type. */
#define EQUAL(name, type)                                                                                     \
    static void name(const type *x, npy_intp count, npy_intp bins, type low, type high, double *sums) {       \
        for (npy_intp i = 0; i < count; i++)                                                                  \
            if (x[i] >= low && x[i] <= high) {                                                                \
                const npy_intp at = (npy_intp)((x[i] - low) * (type)bins / (high - low));                     \
                sums[at < bins ? at : bins - 1] += 1;                                                         \
            }                                                                                                 \
    }
EQUAL(equal_f32, float)
EQUAL(equal_f64, double)

/* Of a half type, in which each step is rounded and the number of bins too. */
static void equal_halves(native_type half, const uint16_t *x, npy_intp count, npy_intp bins, double low, double high,
                         double *sums) {
    enum { PIECE = 256 };
    const cast_loops *casts = PICK(cast_loops);
    const float first = (float)native_rounded(low, half), last = (float)native_rounded(high, half);
    const float many = (float)native_rounded((double)bins, half), span = (float)native_rounded(last - first, half);
    float held[PIECE], at[PIECE];
    uint16_t narrow[PIECE];
    for (npy_intp begin = 0; begin < count; begin += PIECE) {
        const npy_intp piece = count - begin < PIECE ? count - begin : PIECE;
        casts->cast[half][TYPE_F32]((char *const[]){(char *)(x + begin), (char *)held}, (const ptrdiff_t[]){2, 4}, piece);
        for (int step = 0; step < 3; step++) {
            for (npy_intp i = 0; i < piece; i++)
                at[i] = step == 0 ? held[i] - first : step == 1 ? at[i] * many : at[i] / span;
            casts->cast[TYPE_F32][half]((char *const[]){(char *)at, (char *)narrow}, (const ptrdiff_t[]){4, 2}, piece);
            casts->cast[half][TYPE_F32]((char *const[]){(char *)narrow, (char *)at}, (const ptrdiff_t[]){2, 4}, piece);
        }
        for (npy_intp i = 0; i < piece; i++)
            if (held[i] >= first && held[i] <= last)
                sums[at[i] < (float)bins ? (npy_intp)at[i] : bins - 1] += 1;
    }
}

static PyObject *narrowed(const double *sums, int ndim, const npy_intp *shape, native_type type) {
    if (native_is_half(type)) {
        PyObject *wide = narrowed(sums, ndim, shape, TYPE_F32);
        PyObject *half = wide ? native_converted((PyArrayObject *)wide, TYPE_F32, type) : NULL;
        Py_XDECREF(wide);
        return half;
    }
    PyArrayObject *made = native_empty(ndim, shape, type);
    for (npy_intp i = 0, count = made ? PyArray_SIZE(made) : 0; i < count; i++) {
        if (type == TYPE_F32)
            ((float *)PyArray_DATA(made))[i] = (float)sums[i];
        else
            ((double *)PyArray_DATA(made))[i] = sums[i];
    }
    return (PyObject *)made;
}

/* The edges of each dim, vectors of at least two numbers in a row; false for what NumPy's kernel takes. */
static bool read_edges(PyObject *list, native_type type, bin_shape *of, npy_intp *whole) {
    *whole = 1;
    for (int k = 0; k < of->dims; k++) {
        PyObject *one = PyList_GET_ITEM(list, k);
        if (native_real_type(one) != type || PyArray_NDIM((PyArrayObject *)one) != 1 ||
            !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)one) || PyArray_SIZE((PyArrayObject *)one) < 2)
            return false;
        of->edges[k] = PyArray_DATA((PyArrayObject *)one);
        const npy_intp bins = of->bins[k] = PyArray_SIZE((PyArrayObject *)one) - 1;
        const double first = type == TYPE_F32 ? ((const float *)of->edges[k])[0] : ((const double *)of->edges[k])[0];
        const double last = type == TYPE_F32 ? ((const float *)of->edges[k])[bins] : ((const double *)of->edges[k])[bins];
        of->scale[k] = last > first ? (double)bins / (last - first) : 0;
        if (__builtin_mul_overflow(*whole, bins, whole))
            return false;
    }
    return true;
}

/* (points (n, dims), weight (n) or None, a list of edges) */
static PyObject *run_histogram(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 3 && !kwnames ? native_real_type(args[0]) : TYPE_NONE;
    bin_shape of;
    npy_intp whole;
    if (type == TYPE_NONE || !PyList_CheckExact(args[2]) || PyArray_NDIM((PyArrayObject *)args[0]) != 2)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *weight = NULL;
    of.dims = (int)PyList_GET_SIZE(args[2]);
    if (of.dims < 1 || of.dims > NATIVE_DIMS || PyArray_DIM(x, 1) != of.dims || !read_edges(args[2], type, &of, &whole) ||
        (args[1] != Py_None && (native_real_type(args[1]) != type || PyArray_SIZE((PyArrayObject *)args[1]) != PyArray_DIM(x, 0))))
        return NULL;
    PyObject *made = NULL;
    double space[64] = {0}, *sums = whole <= 64 ? space : calloc((size_t)whole, sizeof *sums);
    x = sums ? native_dense(args[0]) : NULL;
    weight = x && args[1] != Py_None ? native_dense(args[1]) : NULL;
    if (x && (weight || args[1] == Py_None)) {
        const npy_intp count = PyArray_DIM(x, 0);
        if (type == TYPE_F32)
            count_f32(&of, PyArray_DATA(x), weight ? PyArray_DATA(weight) : NULL, count, sums);
        else
            count_f64(&of, PyArray_DATA(x), weight ? PyArray_DATA(weight) : NULL, count, sums);
        made = narrowed(sums, of.dims, of.bins, type);
    }
    Py_XDECREF(x);
    Py_XDECREF(weight);
    if (sums != space)
        free(sums);
    return made;
}

/* (a vector), and the options of `histc` */
static PyObject *run_histc(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    const native_type type = nargs == 1 && kwnames ? native_array_type(args[0]) : TYPE_NONE;
    double low, high, wanted;
    if (type == TYPE_NONE || !native_is_floating(type) || PyArray_NDIM((PyArrayObject *)args[0]) != 1 ||
        !native_options(args, nargs, kwnames, names, OPTIONS, options) || !native_double(options[BINS], &wanted) ||
        !native_double(options[LOW], &low) || !native_double(options[HIGH], &high) || !(wanted >= 1) || wanted > 1e9)
        return NULL;
    const bool half = native_is_half(type);
    const bool apart = half ? native_rounded(native_rounded(high, type) - native_rounded(low, type), type) > 0
                            : type == TYPE_F32 ? (float)low < (float)high : low < high;
    const npy_intp bins = (npy_intp)wanted;
    PyArrayObject *x = apart ? native_dense(args[0]) : NULL;
    if (!x)
        return NULL;
    PyObject *made = NULL;
    double space[128] = {0}, *sums = bins <= 128 ? space : calloc((size_t)bins, sizeof *sums);
    if (sums) {
        if (half)
            equal_halves(type, PyArray_DATA(x), PyArray_SIZE(x), bins, low, high, sums);
        else if (type == TYPE_F32)
            equal_f32(PyArray_DATA(x), PyArray_SIZE(x), bins, (float)low, (float)high, sums);
        else
            equal_f64(PyArray_DATA(x), PyArray_SIZE(x), bins, low, high, sums);
        made = narrowed(sums, 1, &bins, type);
    }
    Py_DECREF(x);
    if (sums != space)
        free(sums);
    return made;
}

int bins_init(void) {
    static const char *const words[OPTIONS] = {"bins", "low", "high"};
    return native_intern(names, words, OPTIONS);
}

const native_spec bins_kernels[] = {
    {"histogram", run_histogram, NULL},
    {"histc", run_histc, NULL},
    {NULL, NULL, NULL},
};
