/* Small kernels that take an array as one row of elements: which of them are among a few, elements put by number, also plane by
   plane, the exclusive or of bits; and the elements of a diagonal. */
#include "folds.h"
#include "rows.h"

#include <string.h>

enum { DIM, KEEPDIM, ACCUMULATE, DIM1, DIM2, SHAPE, OUT, OPTIONS };
enum { GRAIN = 1 << 14 }; /* elements a thread */
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "keepdim", "accumulate", "dim1", "dim2", "shape", "out"};

static bool of_options(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **options) {
    return !kwnames || native_options(args, nargs, kwnames, names, OPTIONS, options);
}

#define AMONG(suffix, type)                                                                                   \
    static void among_##suffix(const void *xs, npy_intp count, const void *others, npy_intp few, uint8_t *made) { \
        for (npy_intp i = 0; i < count; i++) {                                                                \
            const type x = ((const type *)xs)[i];                                                             \
            uint8_t found = 0;                                                                                \
            for (npy_intp k = 0; k < few; k++)                                                                \
                found |= x == ((const type *)others)[k];                                                      \
            made[i] = found;                                                                                  \
        }                                                                                                     \
    }
AMONG(f32, float)
AMONG(f64, double)
AMONG(b8, uint8_t)
AMONG(b16, uint16_t)
AMONG(b32, uint32_t)
AMONG(b64, uint64_t)

static PyObject *run_isin(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type type = nargs == 2 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || type == TYPE_BF16 || type == TYPE_F16 || native_array_type(args[1]) != type)
        return NULL;
    PyArrayObject *x = native_dense(args[0]), *among = x ? native_dense(args[1]) : NULL;
    PyArrayObject *made = among ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_BOOL) : NULL;
    if (made)
        (type == TYPE_F32            ? among_f32
         : type == TYPE_F64          ? among_f64
         : TYPE_SIZE[type] == 1      ? among_b8
         : TYPE_SIZE[type] == 2      ? among_b16
         : TYPE_SIZE[type] == 4      ? among_b32
                                     : among_b64)(PyArray_DATA(x), PyArray_SIZE(x), PyArray_DATA(among), PyArray_SIZE(among), PyArray_DATA(made));
    Py_XDECREF(x);
    Py_XDECREF(among);
    return (PyObject *)made;
}

/* Whether so many bytes are none of an array in row-major order. */
static bool lies_apart(const void *data, npy_intp bytes, PyArrayObject *x) {
    const char *begin = data;
    return begin + bytes <= PyArray_BYTES(x) || begin >= PyArray_BYTES(x) + PyArray_NBYTES(x);
}

/* Adds an element to another; of bools, whether any is true. */
static inline void add_element(native_type type, char *to, const char *from) {
#define ADD(TYPE, type)                                                                                       \
    case TYPE: *(type *)to += *(const type *)from; break;
    switch (type) {
        ADD(TYPE_F32, float)
        ADD(TYPE_F64, double)
        ADD(TYPE_I8, int8_t)
        ADD(TYPE_I16, int16_t)
        ADD(TYPE_I32, int32_t)
        ADD(TYPE_I64, int64_t)
        ADD(TYPE_U8, uint8_t)
    case TYPE_BOOL: *(uint8_t *)to |= *(const uint8_t *)from; break;
    default: break;
    }
#undef ADD
}

#define PUT_ELEMENTS(type)                                                                                    \
    for (npy_intp i = 0; i < count; i++)                                                                      \
        ((type *)to)[at[i] < 0 ? at[i] + size : at[i]] = ((const type *)from)[i];                             \
    break;

typedef struct {
    uint64_t real, imaginary;
} pair_64;

/* Writes elements of so many bytes in order, so that of equal places the last one counts. */
static void put_elements(char *to, npy_intp size, const char *from, const int64_t *at, npy_intp count, int bytes) {
    switch (bytes) {
    case 1:
        PUT_ELEMENTS(uint8_t)
    case 2:
        PUT_ELEMENTS(uint16_t)
    case 4:
        PUT_ELEMENTS(uint32_t)
    case 8:
        PUT_ELEMENTS(uint64_t)
    default:
        PUT_ELEMENTS(pair_64)
    }
}

/* put(x, index, source, accumulate=False, out=None): numbers below 0 count from the end; `out` is x, or nothing. */
static PyObject *run_put(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type parts = nargs == 3 ? native_complex_type(args[0]) : TYPE_NONE;
    const bool pairs = parts != TYPE_NONE;
    const native_type type = pairs ? parts : nargs == 3 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !of_options(args, nargs, kwnames, options) || native_array_type(args[1]) != TYPE_I64 ||
        (pairs ? native_complex_type(args[2]) : native_array_type(args[2])) != type)
        return NULL;
    const bool adds = options[ACCUMULATE] == Py_True;
    PyArrayObject *x = (PyArrayObject *)args[0], *index = native_dense(args[1]), *source = index ? native_dense(args[2]) : NULL;
    const npy_intp count = source ? PyArray_SIZE(index) : 0, size = PyArray_SIZE(x);
    const npy_intp bytes = PyArray_ITEMSIZE(x);
    const int64_t *at = source ? PyArray_DATA(index) : NULL;
    const bool writes = !native_is_none(options[OUT]);
    bool fits = source && PyArray_SIZE(source) == count && (!adds || !native_is_half(type)) &&
                (!writes || (options[OUT] == args[0] && PyArray_ISCARRAY(x) && lies_apart(at, count * (npy_intp)sizeof *at, x) &&
                             lies_apart(PyArray_DATA(source), count * bytes, x)));
    bool inside = true; /* without a branch */
    for (npy_intp i = 0; i < count; i++)
        inside &= at[i] >= -size && at[i] < size;
    fits &= inside;
    PyArrayObject *made = !fits ? NULL : writes ? (PyArrayObject *)Py_NewRef(x) : pairs ? (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER) : native_copied(x, type);
    if (made && !adds)
        put_elements(PyArray_BYTES(made), size, PyArray_BYTES(source), at, count, (int)bytes);
    for (npy_intp i = 0; made && adds && i < count; i++) {
        char *to = PyArray_BYTES(made) + (at[i] < 0 ? at[i] + size : at[i]) * bytes;
        const char *from = PyArray_BYTES(source) + i * bytes;
        if (pairs)
            add_element(type, to + bytes / 2, from + bytes / 2);
        add_element(type, to, from);
    }
    Py_XDECREF(index);
    Py_XDECREF(source);
    return (PyObject *)made;
}

/* Planes of values, and larger ones in which `at` says where each of them is. */
typedef struct {
    const int64_t *at;
    char *values, *all;
    npy_intp count, plane, bytes; /* elements of each, and bytes of one */
    bool back;                    /* from the larger ones to the values */
    _Atomic bool outside;
} unpooling;

static void unpool_planes(void *context, npy_intp begin, npy_intp end) {
    unpooling *run = context;
    for (npy_intp i = begin; i < end; i++) {
        char *all = run->all + i * run->plane * run->bytes, *value = run->values + i * run->count * run->bytes;
        const int64_t *at = run->at + i * run->count;
        if (!run->back)
            memset(all, 0, (size_t)(run->plane * run->bytes));
        for (npy_intp k = 0; k < run->count; k++, value += run->bytes) {
            if (at[k] < 0 || at[k] >= run->plane)
                run->outside = true;
            else if (run->bytes == 4)
                memcpy(run->back ? value : all + at[k] * 4, run->back ? all + at[k] * 4 : value, 4);
            else
                memcpy(run->back ? value : all + at[k] * run->bytes, run->back ? all + at[k] * run->bytes : value, (size_t)run->bytes);
        }
    }
}

/* max_unpool(x, indices, shape=...), and its adjoint of the larger planes. */
static PyObject *run_unpool(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool back = kernel->data != NULL;
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || native_array_type(args[1]) != TYPE_I64 || !of_options(args, nargs, kwnames, options))
        return NULL;
    PyArrayObject *given = (PyArrayObject *)args[0], *indices = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(given);
    npy_intp shape[NATIVE_DIMS];
    unpooling run = {.count = 1, .plane = 1, .bytes = TYPE_SIZE[type], .back = back};
    if (ndim < 3 || PyArray_NDIM(indices) != ndim || (!back && native_sizes(options[SHAPE], shape, NATIVE_DIMS) != ndim))
        return NULL;
    for (int i = 0; i < ndim; i++) {
        const npy_intp small = PyArray_DIM(indices, i), large = back ? PyArray_DIM(given, i) : shape[i];
        if ((!back && PyArray_DIM(given, i) != small) || (i < 2 && small != large) || large < 0)
            return NULL;
        run.count *= i < 2 ? 1 : small;
        run.plane *= i < 2 ? 1 : large;
    }
    PyArrayObject *from = native_dense(args[0]), *at = from ? native_dense(args[1]) : NULL;
    PyArrayObject *made = at ? native_empty(ndim, back ? PyArray_DIMS(indices) : shape, type) : NULL;
    if (made) {
        run.at = PyArray_DATA(at);
        run.values = PyArray_BYTES(back ? made : from);
        run.all = PyArray_BYTES(back ? from : made);
        native_evenly(PyArray_DIM(indices, 0) * PyArray_DIM(indices, 1), native_grain(GRAIN, run.count + run.plane), unpool_planes, &run);
        if (run.outside)
            Py_CLEAR(made); /* NumPy's turn, which says so */
    }
    Py_XDECREF(from);
    Py_XDECREF(at);
    return (PyObject *)made;
}

/* xor_bits of 64-bit elements, over any dims. */
static PyObject *run_xor(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    native_fold of;
    if ((type != TYPE_F64 && type != TYPE_I64) || !of_options(args, nargs, kwnames, options) || !options[DIM] ||
        !PyTuple_CheckExact(options[DIM]))
        return NULL;
    const bool none = !PyTuple_GET_SIZE(options[DIM]); /* which an array without dims has */
    if (none && PyArray_NDIM((PyArrayObject *)args[0]))
        return NULL;
    PyObject *dims = none ? Py_None : options[DIM];
    const bool lies = native_folded(&of, args[0], type, dims, options[KEEPDIM]);
    if (!lies && !native_fold_copied(&of, args[0], type, dims, options[KEEPDIM]))
        return NULL;
    PyArrayObject *made = (PyArrayObject *)PyArray_ZEROS(of.ndim, of.shape, NPY_UINT64, false);
    const uint64_t *x = PyArray_DATA(of.array);
    uint64_t *to = made ? PyArray_DATA(made) : NULL;
    for (npy_intp i = 0; made && i < of.outer; i++, to += of.inner) {
        uint64_t all = 0; /* of elements side by side, in a register */
        for (npy_intp j = 0; of.inner == 1 && j < of.count; j++)
            all ^= *x++;
        if (of.inner == 1)
            *to = all;
        for (npy_intp j = 0; of.inner != 1 && j < of.count; j++, x += of.inner)
            for (npy_intp k = 0; k < of.inner; k++)
                to[k] ^= x[k];
    }
    if (!lies)
        Py_DECREF(of.array);
    return (PyObject *)made;
}

/* take_diagonal of a matrix. */
static PyObject *run_diagonal(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type parts = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    const native_type type = parts != TYPE_NONE ? parts : nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || PyArray_NDIM(x) != 2 || !of_options(args, nargs, kwnames, options) || !options[DIM1] || !options[DIM2] ||
        !PyLong_CheckExact(options[DIM1]) || !PyLong_CheckExact(options[DIM2]))
        return NULL;
    const long one = PyLong_AsLong(options[DIM1]), other = PyLong_AsLong(options[DIM2]);
    if ((one != 0 && one != 1) || other != 1 - one)
        return NULL;
    const npy_intp count = PyArray_DIM(x, 0) < PyArray_DIM(x, 1) ? PyArray_DIM(x, 0) : PyArray_DIM(x, 1);
    PyArrayObject *made = parts != TYPE_NONE ? native_empty_complex(1, &count, type) : native_empty(1, &count, type);
    const npy_intp step = PyArray_STRIDE(x, 0) + PyArray_STRIDE(x, 1), bytes = PyArray_ITEMSIZE(x);
    for (npy_intp i = 0; made && i < count; i++)
        memcpy(PyArray_BYTES(made) + i * bytes, PyArray_BYTES(x) + i * step, (size_t)bytes);
    return (PyObject *)made;
}

int flat_init(void) {
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec flat_kernels[] = {
    {"isin", run_isin, NULL}, {"put", run_put, NULL}, {"xor_bits", run_xor, NULL}, {"take_diagonal", run_diagonal, NULL},
    {"max_unpool", run_unpool, NULL}, {"max_unpool_gradient", run_unpool, "g"}, {NULL, NULL, NULL},
};
