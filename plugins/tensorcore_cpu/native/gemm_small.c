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

static bool read_small(PyObject *object, bool left, small_side *side) {
    PyArrayObject *x = (PyArrayObject *)object;
    const int ndim = PyArray_NDIM(x);
    if (ndim < 1 || ndim > 3 || !PyArray_SIZE(x))
        return false;
    *side = (small_side){PyArray_BYTES(x), {1, 1, 1}, {0}, ndim == 3, ndim == 1};
    for (int i = 0; i < ndim; i++) {
        const int to = ndim > 1 ? i + 3 - ndim : left ? 2 : 1;
        side->shape[to] = PyArray_DIM(x, i);
        side->steps[to] = PyArray_STRIDE(x, i);
    }
    return true;
}

#define SMALL_PRODUCT(type, wide, alpha, beta)                                                                \
    for (npy_intp b = 0; b < batch; b++)                                                                      \
        for (npy_intp i = 0; i < x.shape[1]; i++)                                                             \
            for (npy_intp j = 0; j < y.shape[2]; j++) {                                                       \
                const char *one = x.data + b * x.steps[0] + i * x.steps[1];                                   \
                const char *other = y.data + b * y.steps[0] + j * y.steps[2];                                 \
                wide sum = 0;                                                                                 \
                for (npy_intp k = 0; k < inner; k++, one += x.steps[2], other += y.steps[1])                  \
                    sum += (wide) * (const type *)one * (wide) * (const type *)other;                         \
                sum *= alpha;                                                                                 \
                if (added)                                                                                    \
                    sum += beta * (wide) * (const type *)(added + b * step[0] + i * step[1] + j * step[2]);   \
                ((type *)PyArray_DATA(made))[(b * x.shape[1] + i) * y.shape[2] + j] = (type)sum;              \
            }

PyObject *gemm_small(native_type type, PyObject *left, PyObject *right, PyArrayObject *input, double alpha, double beta) {
    small_side x, y;
    if (native_is_half(type) || type == TYPE_BOOL || !read_small(left, true, &x) || !read_small(right, false, &y) || x.shape[2] != y.shape[1] ||
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
        if (shift < 0 || native_array_type((PyObject *)input) != type)
            return NULL;
        for (int i = 0; i < PyArray_NDIM(input); i++) {
            if (PyArray_DIM(input, i) != 1 && PyArray_DIM(input, i) != shape[i + shift])
                return NULL;
            step[at[i + shift]] = PyArray_DIM(input, i) == 1 ? 0 : PyArray_STRIDE(input, i);
        }
        added = PyArray_BYTES(input);
    }
    PyArrayObject *made = native_empty(ndim, shape, type);
    if (!made)
        return NULL;
    const uint64_t whole = (uint64_t)(int64_t)alpha, part = (uint64_t)(int64_t)beta; /* of integers */
    switch (type) {
    case TYPE_F32: SMALL_PRODUCT(float, double, alpha, beta) break;
    case TYPE_F64: SMALL_PRODUCT(double, double, alpha, beta) break;
    case TYPE_I8: SMALL_PRODUCT(int8_t, uint64_t, whole, part) break;
    case TYPE_I16: SMALL_PRODUCT(int16_t, uint64_t, whole, part) break;
    case TYPE_I32: SMALL_PRODUCT(int32_t, uint64_t, whole, part) break;
    case TYPE_I64: SMALL_PRODUCT(int64_t, uint64_t, whole, part) break;
    default: SMALL_PRODUCT(uint8_t, uint64_t, whole, part)
    }
    return (PyObject *)made;
}
