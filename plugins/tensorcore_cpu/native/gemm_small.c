/* Small products of vectors, and with a scaled tensor added: one sum after the other, of floats in double precision and of integers
   in 64 bits, whose last ones are those of shorter ones. */
#include "gemm_small.h"

typedef struct {
    const char *data;
    npy_intp shape[3], steps[3]; /* batch, rows, columns; bytes */
    bool batch, vector;
} small_side;

enum {
    SMALL_WORK = 1 << 12, /* multiplications up to which starting anything else takes longer, */
    SMALL_VECTOR = 256,   /* where loops of ours read a matrix as vectors, and the vector beside it */
    LONG = 16,            /* elements side by side that they may be for */
};

static bool read_small(PyObject *object, bool left, bool turned, small_side *side) {
    PyArrayObject *x = (PyArrayObject *)object;
    const int ndim = PyArray_NDIM(x);
    if (ndim < 1 + turned || ndim > 3 || !PyArray_SIZE(x))
        return false;
    *side = (small_side){PyArray_BYTES(x), {1, 1, 1}, {0}, ndim == 3, ndim == 1};
    for (int i = 0; i < ndim; i++) {
        const int at = ndim > 1 ? i + 3 - ndim : left ? 2 : 1, to = turned && at ? 3 - at : at;
        side->shape[to] = PyArray_DIM(x, i);
        side->steps[to] = PyArray_STRIDE(x, i);
    }
    return true;
}

#define SMALL_PRODUCT(type, wide, times_by, plus_by)                                                          \
    for (npy_intp b = 0; b < batch; b++)                                                                      \
        for (npy_intp i = 0; i < x.shape[1]; i++)                                                             \
            for (npy_intp j = 0; j < y.shape[2]; j++) {                                                       \
                const char *one = x.data + b * x.steps[0] + i * x.steps[1];                                   \
                const char *other = y.data + b * y.steps[0] + j * y.steps[2];                                 \
                wide sum = 0;                                                                                 \
                for (npy_intp k = 0; k < inner; k++, one += x.steps[2], other += y.steps[1])                  \
                    sum += (wide) * (const type *)one * (wide) * (const type *)other;                         \
                sum *= times_by;                                                                              \
                if (added)                                                                                    \
                    sum += plus_by * (wide) * (const type *)(added + b * step[0] + i * step[1] + j * step[2]); \
                ((type *)PyArray_DATA(made))[(b * x.shape[1] + i) * y.shape[2] + j] = (type)sum;              \
            }

/* The same of pairs of parts; a factor that is real is a complex number to NumPy and PyTorch as well, where a part is infinite. */
#define SMALL_PAIRS(type)                                                                                     \
    for (npy_intp b = 0; b < batch; b++)                                                                      \
        for (npy_intp i = 0; i < x.shape[1]; i++)                                                             \
            for (npy_intp j = 0; j < y.shape[2]; j++) {                                                       \
                const char *one = x.data + b * x.steps[0] + i * x.steps[1];                                   \
                const char *other = y.data + b * y.steps[0] + j * y.steps[2];                                 \
                Py_complex sum = {0, 0};                                                                      \
                for (npy_intp k = 0; k < inner; k++, one += x.steps[2], other += y.steps[1]) {                \
                    const Py_complex term = times(PAIR(type, one), PAIR(type, other));                        \
                    sum.real += term.real;                                                                    \
                    sum.imag += term.imag;                                                                    \
                }                                                                                             \
                if (alpha.real != 1 || alpha.imag)                                                            \
                    sum = times(sum, alpha);                                                                  \
                if (added) {                                                                                  \
                    const char *more = added + b * step[0] + i * step[1] + j * step[2];                       \
                    const Py_complex term = plain ? PAIR(type, more) : times(PAIR(type, more), beta);         \
                    sum.real += term.real;                                                                    \
                    sum.imag += term.imag;                                                                    \
                }                                                                                             \
                type *to = (type *)PyArray_DATA(made) + 2 * ((b * x.shape[1] + i) * y.shape[2] + j);          \
                to[0] = (type)sum.real;                                                                       \
                to[1] = (type)sum.imag;                                                                       \
            }
#define PAIR(type, at) ((Py_complex){(double)((const type *)(at))[0], (double)((const type *)(at))[1]})

static inline Py_complex times(Py_complex x, Py_complex y) {
    return (Py_complex){x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real};
}

static native_type type_of(PyObject *array, bool pairs) { return pairs ? native_complex_type(array) : native_array_type(array); }

static PyObject *made_small(native_type type, bool pairs, PyObject *left, PyObject *right, PyArrayObject *input, Py_complex alpha, Py_complex beta,
                            gemm_turned turned) {
    small_side x, y;
    if ((pairs && type != TYPE_F32 && type != TYPE_F64) || native_is_half(type) || type == TYPE_BOOL || !read_small(left, true, turned.left, &x) ||
        !read_small(right, false, turned.right, &y) || x.shape[2] != y.shape[1] ||
        (x.batch && y.batch && x.shape[0] != y.shape[0]))
        return NULL;
    const npy_intp batch = x.batch ? x.shape[0] : y.shape[0], inner = x.shape[2];
    const npy_intp most = (x.vector || y.vector) && batch == 1 && inner >= LONG ? SMALL_VECTOR : SMALL_WORK;
    if (batch > SMALL_WORK || x.shape[1] > SMALL_WORK || y.shape[2] > SMALL_WORK || inner > SMALL_WORK ||
        batch * x.shape[1] * y.shape[2] * inner > most)
        return NULL;
    npy_intp shape[3], step[3] = {0};
    int ndim = 0, at[3];
    const npy_intp sizes[3] = {batch, x.shape[1], y.shape[2]};
    const bool there[3] = {x.batch || y.batch, !x.vector, !y.vector};
    for (int i = 0; i < 3; i++)
        if (there[i]) {
            at[ndim] = i;
            shape[ndim++] = sizes[i];
        }
    const char *added = NULL;
    if (input) {
        const int shift = ndim - PyArray_NDIM(input);
        if (shift < 0 || type_of((PyObject *)input, pairs) != type)
            return NULL;
        for (int i = 0; i < PyArray_NDIM(input); i++) {
            if (PyArray_DIM(input, i) != 1 && PyArray_DIM(input, i) != shape[i + shift])
                return NULL;
            step[at[i + shift]] = PyArray_DIM(input, i) == 1 ? 0 : PyArray_STRIDE(input, i);
        }
        added = PyArray_BYTES(input);
    }
    PyArrayObject *made = pairs ? native_empty_complex(ndim, shape, type) : native_empty(ndim, shape, type);
    if (!made)
        return NULL;
    const bool plain = beta.real == 1 && !beta.imag, real = type == TYPE_F32 || type == TYPE_F64;
    const uint64_t whole = real ? 0 : (uint64_t)(int64_t)alpha.real, part = real ? 0 : (uint64_t)(int64_t)beta.real; /* of integers */
    switch (type) {
    case TYPE_F32:
        if (pairs) {
            SMALL_PAIRS(float)
        } else
            SMALL_PRODUCT(float, double, alpha.real, beta.real)
        break;
    case TYPE_F64:
        if (pairs) {
            SMALL_PAIRS(double)
        } else
            SMALL_PRODUCT(double, double, alpha.real, beta.real)
        break;
    case TYPE_I8: SMALL_PRODUCT(int8_t, uint64_t, whole, part) break;
    case TYPE_I16: SMALL_PRODUCT(int16_t, uint64_t, whole, part) break;
    case TYPE_I32: SMALL_PRODUCT(int32_t, uint64_t, whole, part) break;
    case TYPE_I64: SMALL_PRODUCT(int64_t, uint64_t, whole, part) break;
    default: SMALL_PRODUCT(uint8_t, uint64_t, whole, part)
    }
    return (PyObject *)made;
}

PyObject *gemm_small(native_type type, PyObject *left, PyObject *right, PyArrayObject *input, double alpha, double beta) {
    return made_small(type, false, left, right, input, (Py_complex){alpha, 0}, (Py_complex){beta, 0}, (gemm_turned){false, false});
}

PyObject *gemm_small_complex(native_type type, PyObject *left, PyObject *right, PyArrayObject *input, Py_complex alpha, Py_complex beta,
                             gemm_turned turned) {
    return native_complex_type(right) == type ? made_small(type, true, left, right, input, alpha, beta, turned) : NULL;
}
