/* What is counted and looked for: how often each number is met, the least and the largest of indices, places in sorted rows. */
#include "rows.h"
#include "scatter.h"

#include <string.h>

DECLARE_LOOPS(scatter_loops, scatter_loops);

static const scatter_loops *loops;

enum { WEIGHTS, MINLENGTH, RIGHT, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"weights", "minlength", "right"};

enum { SIDE_BY_SIDE = 8, GRAIN = 1 << 10 }; /* searches at a time, and of a thread */

/* The array in one piece, with its type, where there is one and no option of another name; a new reference. */
static PyArrayObject *one_piece(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **options, native_type *type) {
    *type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    const bool fine = *type != TYPE_NONE && *type != TYPE_BF16 && *type != TYPE_F16 &&
                      (!kwnames || native_options(args, nargs, kwnames, names, OPTIONS, options));
    return fine ? native_dense(args[0]) : NULL;
}

#define BOUNDS(suffix, type)                                                                                  \
    static void bounds_##suffix(const void *from, npy_intp count, int64_t *low, int64_t *high) {              \
        const type *x = from;                                                                                 \
        type least = x[0], most = x[0];                                                                       \
        for (npy_intp i = 1; i < count; i++) {                                                                \
            least = x[i] < least ? x[i] : least;                                                              \
            most = x[i] > most ? x[i] : most;                                                                 \
        }                                                                                                     \
        *low = least;                                                                                         \
        *high = most;                                                                                         \
    }
BOUNDS(i8, int8_t)
BOUNDS(i16, int16_t)
BOUNDS(i32, int32_t)
BOUNDS(u8, uint8_t)

bool native_integer_bounds(PyArrayObject *x, native_type type, int64_t *low, int64_t *high) {
    static void (*const FIND[TYPES])(const void *, npy_intp, int64_t *, int64_t *) = {
        [TYPE_I8] = bounds_i8, [TYPE_I16] = bounds_i16, [TYPE_I32] = bounds_i32, [TYPE_U8] = bounds_u8};
    if (!PyArray_SIZE(x) || (type != TYPE_I64 && !FIND[type]))
        return false;
    if (type == TYPE_I64)
        loops->bounds(PyArray_DATA(x), PyArray_SIZE(x), low, high);
    else
        FIND[type](PyArray_DATA(x), PyArray_SIZE(x), low, high);
    return true;
}

static const bool LOWEST = false, HIGHEST = true;

/* lowest(x) and highest(x): ints of Python. */
static PyObject *run_bound(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    native_type type;
    int64_t low, high;
    PyArrayObject *x = one_piece(args, nargs, kwnames, options, &type);
    PyObject *made = x && native_integer_bounds(x, type, &low, &high) ? PyLong_FromLongLong(kernel->data == &HIGHEST ? high : low) : NULL;
    Py_XDECREF(x);
    return made;
}

enum { FEW_NUMBERS = 512, TURNS = 4 };

/* How often each number is met. Of few, neighbours are counted apart: who adds to what was just written waits for it. */
#define TIMES(type)                                                                                           \
    {                                                                                                         \
        const type *number = PyArray_DATA(x);                                                                 \
        for (; apart && i + TURNS <= count; i += TURNS)                                                       \
            for (int k = 0; k < TURNS; k++)                                                                   \
                parts[k][number[i + k]]++;                                                                    \
        for (; i < count; i++)                                                                                \
            times[number[i]]++;                                                                               \
    }

static void count_times(PyArrayObject *x, native_type type, int64_t *times, npy_intp length) {
    int64_t parts[TURNS][FEW_NUMBERS];
    npy_intp i = 0, count = PyArray_SIZE(x);
    const bool apart = length <= FEW_NUMBERS && count > FEW_NUMBERS;
    for (int k = 0; apart && k < TURNS; k++)
        memset(parts[k], 0, (size_t)length * sizeof **parts);
    memset(times, 0, (size_t)length * sizeof *times);
    if (type == TYPE_I64)
        TIMES(int64_t)
    else if (type == TYPE_I32)
        TIMES(int32_t)
    else
        TIMES(uint8_t)
    for (npy_intp n = 0; apart && n < length; n++)
        for (int k = 0; k < TURNS; k++)
            times[n] += parts[k][n];
}

/* bincount(x, weights=None, minlength): of numbers from 0 on, without weights. */
static PyObject *run_bincount(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    native_type type;
    int64_t low, high;
    PyArrayObject *x = one_piece(args, nargs, kwnames, options, &type), *made = NULL;
    if (x && (type == TYPE_I64 || type == TYPE_I32 || type == TYPE_U8) && native_is_none(options[WEIGHTS]) && options[MINLENGTH] && PyLong_CheckExact(options[MINLENGTH]) &&
        native_integer_bounds(x, type, &low, &high) && low >= 0 && high < 1 << 30) {
        const npy_intp least = PyLong_AsSsize_t(options[MINLENGTH]), length = high + 1 > least ? high + 1 : least;
        if (!PyErr_Occurred() && (made = native_empty(1, &length, TYPE_I64)))
            count_times(x, type, PyArray_DATA(made), length);
    }
    Py_XDECREF(x);
    return (PyObject *)made;
}

typedef struct {
    const void *rows, *values;
    int64_t *places;
    npy_intp length, each; /* of a row, and values that are looked for in it */
} search;

/* Halves the rows of some searches at a time, which wait for their memory together. NaN is looked for behind all numbers. */
#define SEARCH(name, type, BEFORE)                                                                            \
    static void name(void *context, npy_intp begin, npy_intp end) {                                           \
        const search *run = context;                                                                          \
        const type *values = run->values;                                                                     \
        for (npy_intp i = begin; i < end;) {                                                                  \
            const npy_intp row = i / run->each, rest = (row + 1) * run->each < end ? (row + 1) * run->each : end; \
            const type *x = (const type *)run->rows + row * run->length;                                      \
            const npy_intp many = rest - i < SIDE_BY_SIDE ? rest - i : SIDE_BY_SIDE;                          \
            npy_intp at[SIDE_BY_SIDE] = {0};                                                                  \
            for (npy_intp left = run->length, half; left; left -= half) {                                     \
                half = (left + 1) / 2;                                                                        \
                for (npy_intp k = 0; k < many; k++)                                                           \
                    at[k] += BEFORE(x[at[k] + half - 1], values[i + k]) ? half : 0;                           \
            }                                                                                                 \
            for (npy_intp k = 0; k < many; k++)                                                               \
                run->places[i + k] = at[k];                                                                   \
            i += many;                                                                                        \
        }                                                                                                     \
    }
#define LESS(x, value) !((x) >= (value))
#define AT_MOST(x, value) !((x) > (value))
SEARCH(left_f32, float, LESS)
SEARCH(right_f32, float, AT_MOST)
SEARCH(left_f64, double, LESS)
SEARCH(right_f64, double, AT_MOST)
SEARCH(left_i64, int64_t, LESS)
SEARCH(right_i64, int64_t, AT_MOST)

/* Whether a row ends with NaN, which the searches take for less than what they look for. */
static bool ends_with_nan(const void *rows, native_type type, npy_intp count, npy_intp length) {
    bool found = false;
    for (npy_intp row = 1; row <= count && type != TYPE_I64; row++) {
        const npy_intp at = row * length - 1;
        found |= type == TYPE_F32 ? ((const float *)rows)[at] != ((const float *)rows)[at]
                                  : ((const double *)rows)[at] != ((const double *)rows)[at];
    }
    return found;
}

/* searchsorted(rows, values, right=False), of rows of their own, or one for all values. */
static PyObject *run_search(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    if ((type != TYPE_F32 && type != TYPE_F64 && type != TYPE_I64) || native_array_type(args[1]) != type ||
        (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    PyArrayObject *rows = native_dense(args[0]), *values = rows ? native_dense(args[1]) : NULL, *made = NULL;
    const int ndim = rows ? PyArray_NDIM(rows) : 0;
    const npy_intp length = ndim ? PyArray_DIM(rows, ndim - 1) : 0, count = values ? PyArray_SIZE(values) : 0;
    if (length && count && !ends_with_nan(PyArray_DATA(rows), type, PyArray_SIZE(rows) / length, length) &&
        (made = native_empty(PyArray_NDIM(values), PyArray_DIMS(values), TYPE_I64))) {
        search run = {PyArray_DATA(rows), PyArray_DATA(values), PyArray_DATA(made), length,
                      ndim == 1 ? count : PyArray_DIM(values, PyArray_NDIM(values) - 1)};
        const bool right = options[RIGHT] == Py_True;
        native_evenly(count, GRAIN,
                      type == TYPE_F32   ? (right ? right_f32 : left_f32)
                      : type == TYPE_F64 ? (right ? right_f64 : left_f64)
                                         : (right ? right_i64 : left_i64), &run);
    }
    Py_XDECREF(rows);
    Py_XDECREF(values);
    return (PyObject *)made;
}

int counts_init(void) {
    loops = PICK(scatter_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec counts_kernels[] = {
    {"lowest", run_bound, &LOWEST}, {"highest", run_bound, &HIGHEST}, {"bincount", run_bincount, NULL},
    {"searchsorted", run_search, NULL}, {NULL, NULL, NULL},
};
