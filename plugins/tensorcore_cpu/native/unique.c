/* Distinct bools and slices, and runs of equal ones. */
#include "distinct.h"
#include "nonzero.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(nonzero_loops, nonzero_loops);

static const nonzero_loops *loops;

enum { DIM, OPTIONS };
static PyObject *names[OPTIONS];

/* How many runs there are; the first element of each, the run that each element belongs to, and how long they are. NaN is equal to
   nothing. */
#define RUNS(suffix, type, OF)                                                                                  \
    static npy_intp count_##suffix(const type *x, npy_intp count) {                                           \
        npy_intp runs = 1;                                                                                    \
        for (npy_intp i = 1; i < count; i++)                                                                  \
            runs += !(OF(x[i]) == OF(x[i - 1]));                                                              \
        return runs;                                                                                          \
    }                                                                                                         \
    static void runs_##suffix(const type *x, npy_intp count, type *values, int64_t *inverse, int64_t *lengths) { \
        npy_intp runs = -1;                                                                                   \
        for (npy_intp i = 0; i < count; i++) { /* without a branch that nobody can foresee */                 \
            const bool begins = !i || !(OF(x[i]) == OF(x[i - 1]));                                            \
            runs += begins;                                                                                   \
            values[runs] = begins ? x[i] : values[runs];                                                      \
            lengths[runs] = i + 1;                                                                            \
            inverse[i] = runs;                                                                                \
        }                                                                                                     \
        for (npy_intp run = runs; run > 0; run--)                                                             \
            lengths[run] -= lengths[run - 1];                                                                 \
    }
#define ITSELF(x) (x)
#define IS_FALSE(x) (!(x)) /* of other bytes that are seen as bools several are true */
RUNS(f32, float, ITSELF)
RUNS(f64, double, ITSELF)
RUNS(bool, uint8_t, IS_FALSE)
RUNS(b8, uint8_t, ITSELF)
RUNS(b16, uint16_t, ITSELF)
RUNS(b32, uint32_t, ITSELF)
RUNS(b64, uint64_t, ITSELF)

/* Calls the function for the elements of a type: floats as floats, bools as such, others as the bits of their size. */
#define OF_TYPE(name, x, ...)                                                                                 \
    (type == TYPE_F32         ? name##_f32(x, __VA_ARGS__)                                                    \
     : type == TYPE_F64       ? name##_f64(x, __VA_ARGS__)                                                    \
     : type == TYPE_BOOL      ? name##_bool(x, __VA_ARGS__)                                                   \
     : TYPE_SIZE[type] == 1   ? name##_b8(x, __VA_ARGS__)                                                     \
     : TYPE_SIZE[type] == 2   ? name##_b16(x, __VA_ARGS__)                                                    \
     : TYPE_SIZE[type] == 4   ? name##_b32(x, __VA_ARGS__)                                                    \
                              : name##_b64(x, __VA_ARGS__))

/* Slices along a dim, as rows one after the other */

/* Of two rows of n elements: which of them comes first, as the sign of what is answered; a NaN comes before nothing, and nothing before it.
   And whether they are equal. */
#define ORDERS(suffix, type, OF)                                                                              \
    static int order_##suffix(const void *one, const void *other, npy_intp n) {                               \
        const type *x = one, *y = other;                                                                      \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            if (OF(x[i]) != OF(y[i]))                                                                         \
                return OF(x[i]) < OF(y[i]) ? -1 : 1;                                                          \
        return 0;                                                                                             \
    }
#define IS_TRUE(x) (!!(x))
ORDERS(f32, float, ITSELF)
ORDERS(f64, double, ITSELF)
ORDERS(i8, int8_t, ITSELF)
ORDERS(i16, int16_t, ITSELF)
ORDERS(i32, int32_t, ITSELF)
ORDERS(i64, int64_t, ITSELF)
ORDERS(u8, uint8_t, ITSELF)
ORDERS(bool, uint8_t, IS_TRUE)

typedef int (*row_order)(const void *one, const void *other, npy_intp n);
static const row_order ROW_ORDERS[TYPES] = {
    [TYPE_F32] = order_f32, [TYPE_F64] = order_f64, [TYPE_I8] = order_i8, [TYPE_I16] = order_i16,
    [TYPE_I32] = order_i32, [TYPE_I64] = order_i64, [TYPE_U8] = order_u8, [TYPE_BOOL] = order_bool,
};

typedef struct {
    row_order order;
    const char *data;
    npy_intp count, width, bytes; /* rows, elements of each, and their bytes */
} row_set;

static int row_compare(const row_set *rows, int64_t i, int64_t j) {
    return rows->order(rows->data + i * rows->bytes, rows->data + j * rows->bytes, rows->width);
}

/* The numbers of the rows in order, equal ones as they come: runs of few by insertion, merged two by two. Answers with the one of both
   arrays that they lie in. */
static int64_t *sorted_rows(const row_set *rows, int64_t *at, int64_t *other) {
    enum { FEW = 8 };
    for (npy_intp begin = 0; begin < rows->count; begin += FEW)
        for (npy_intp i = begin; i < rows->count && i < begin + FEW; i++) {
            npy_intp k = i;
            for (; k > begin && row_compare(rows, at[k - 1], i) > 0; k--)
                at[k] = at[k - 1];
            at[k] = i;
        }
    for (npy_intp run = FEW; run < rows->count; run *= 2) {
        for (npy_intp begin = 0; begin < rows->count; begin += 2 * run) {
            const npy_intp middle = begin + run < rows->count ? begin + run : rows->count;
            const npy_intp end = middle + run < rows->count ? middle + run : rows->count;
            for (npy_intp i = begin, j = middle, k = begin; k < end; k++)
                other[k] = j == end || (i < middle && row_compare(rows, at[i], at[j]) <= 0) ? at[i++] : at[j++];
        }
        int64_t *swap = at;
        at = other;
        other = swap;
    }
    return at;
}

static bool any_nan(native_type type, const void *data, npy_intp count) {
    bool found = false;
    for (npy_intp i = 0; i < count; i++)
        found |= type == TYPE_F32 ? ((const float *)data)[i] != ((const float *)data)[i]
                                  : ((const double *)data)[i] != ((const double *)data)[i];
    return found;
}

/* An array with its dims in another order: dim `from` in the place of `to`, in row-major order. */
static PyArrayObject *with_dim_at(PyArrayObject *x, int from, int to) {
    npy_intp axes[NATIVE_DIMS];
    const int ndim = PyArray_NDIM(x);
    for (int i = 0, next = 0; i < ndim; i++) {
        next += next == from;
        axes[i] = i == to ? from : next++;
    }
    PyArray_Dims order = {axes, ndim};
    PyArrayObject *turned = (PyArrayObject *)PyArray_Transpose(x, &order);
    PyArrayObject *made = turned ? native_dense((PyObject *)turned) : NULL;
    Py_XDECREF(turned);
    return made;
}

/* The slices of x along a dim, sorted first or as they come: the first of each run of equal ones, the run of each, and their lengths. */
static PyObject *unique_slices(PyArrayObject *x, native_type type, int dim, bool sorted) {
    PyArrayObject *lines = with_dim_at(x, dim, 0), *values = NULL, *inverse = NULL, *lengths = NULL;
    if (!lines)
        return NULL;
    const npy_intp n = PyArray_DIM(lines, 0), width = PyArray_SIZE(lines) / n;
    const row_set rows = {ROW_ORDERS[type], PyArray_BYTES(lines), n, width, width * TYPE_SIZE[type]};
    int64_t *room = NULL, *at = NULL, runs = 0;
    npy_intp shape[NATIVE_DIMS];
    memcpy(shape, PyArray_DIMS(lines), (size_t)PyArray_NDIM(lines) * sizeof *shape);
    const bool unordered = sorted && (type == TYPE_F32 || type == TYPE_F64) && any_nan(type, rows.data, n * width);
    if (!unordered && (inverse = native_empty(1, &n, TYPE_I64)) && (room = PyMem_RawMalloc(3 * (size_t)n * sizeof *room))) {
        int64_t *places = PyArray_DATA(inverse), *starts = room + 2 * n;
        at = sorted ? sorted_rows(&rows, room, room + n) : NULL;
        for (npy_intp i = 0; i < n; i++) {
            const int64_t row = at ? at[i] : i;
            if (!i || row_compare(&rows, at ? at[i - 1] : i - 1, row))
                starts[runs++] = i;
            places[row] = runs - 1;
        }
        shape[0] = (npy_intp)runs;
        values = native_empty(PyArray_NDIM(lines), shape, type);
        lengths = values ? native_empty(1, shape, TYPE_I64) : NULL;
        for (npy_intp k = 0; lengths && k < runs; k++) {
            memcpy(PyArray_BYTES(values) + k * rows.bytes, rows.data + (at ? at[starts[k]] : starts[k]) * rows.bytes, (size_t)rows.bytes);
            ((int64_t *)PyArray_DATA(lengths))[k] = (k + 1 < runs ? starts[k + 1] : n) - starts[k];
        }
    } else if (inverse) {
        PyErr_NoMemory();
    }
    PyMem_RawFree(room);
    Py_DECREF(lines);
    if (lengths && dim)
        Py_SETREF(values, with_dim_at(values, 0, dim));
    return native_all_three(values, inverse, lengths);
}

/* The dim that is asked for, -1 for none; false where it is no dim of an array that has elements. */
static bool read_dim(PyArrayObject *x, PyObject *option, long *dim) {
    *dim = native_is_none(option) ? -1 : PyLong_CheckExact(option) ? PyLong_AsLong(option) : NATIVE_DIMS;
    PyErr_Clear();
    return PyArray_SIZE(x) && (native_is_none(option) || (*dim >= 0 && *dim < PyArray_NDIM(x)));
}

/* Of slices, or of all elements of x: values, the run of each in the shape of x, lengths. */
static PyObject *run_unique_consecutive(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    long dim;
    if (type == TYPE_NONE || type == TYPE_F16 || type == TYPE_BF16 ||
        (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)) || !read_dim((PyArrayObject *)args[0], options[DIM], &dim))
        return NULL;
    if (dim >= 0)
        return unique_slices((PyArrayObject *)args[0], type, (int)dim, false);
    PyArrayObject *x = native_dense(args[0]);
    if (!x)
        return NULL;
    const npy_intp count = PyArray_SIZE(x), runs = OF_TYPE(count, PyArray_DATA(x), count);
    PyArrayObject *values = native_empty(1, &runs, type), *lengths = native_empty(1, &runs, TYPE_I64);
    PyArrayObject *inverse = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_I64);
    if (values && lengths && inverse)
        OF_TYPE(runs, PyArray_DATA(x), count, PyArray_DATA(values), PyArray_DATA(inverse), PyArray_DATA(lengths));
    Py_DECREF(x);
    return native_all_three(values, inverse, lengths);
}

/* Distinct bools, of which every byte but 0 is true. */
static PyObject *unique_bools(PyArrayObject *x) {
    const uint8_t *data = PyArray_DATA(x);
    const npy_intp count = PyArray_SIZE(x), trues = loops->count[0](data, count, false), falses = count - trues;
    const npy_intp found = (trues > 0) + (falses > 0);
    PyArrayObject *values = native_empty(1, &found, TYPE_BOOL), *lengths = native_empty(1, &found, TYPE_I64);
    PyArrayObject *inverse = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_I64);
    if (values && lengths && inverse) {
        uint8_t *value = PyArray_DATA(values);
        int64_t *length = PyArray_DATA(lengths), *place = PyArray_DATA(inverse);
        value[0] = !falses;
        length[0] = falses ? falses : trues;
        if (found > 1) {
            value[1] = true;
            length[1] = trues;
        }
        for (npy_intp i = 0; i < count; i++)
            place[i] = data[i] && falses;
    }
    return native_all_three(values, inverse, lengths);
}

/* Distinct slices, or distinct elements. */
static PyObject *run_unique(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    long dim;
    if (type == TYPE_NONE || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)) ||
        !read_dim((PyArrayObject *)args[0], options[DIM], &dim))
        return NULL;
    if (dim >= 0)
        return ROW_ORDERS[type] ? unique_slices((PyArrayObject *)args[0], type, (int)dim, true) : NULL;
    PyArrayObject *x = native_dense(args[0]);
    PyObject *made = !x ? NULL : type == TYPE_BOOL ? unique_bools(x) : native_distinct(x, type);
    Py_XDECREF(x);
    return made;
}

int unique_init(void) {
    loops = PICK(nonzero_loops);
    return names[DIM] || (names[DIM] = PyUnicode_InternFromString("dim")) ? 0 : -1;
}

const native_spec unique_kernels[] = {
    {"unique", run_unique, NULL},
    {"unique_consecutive", run_unique_consecutive, NULL},
    {NULL, NULL, NULL},
};
