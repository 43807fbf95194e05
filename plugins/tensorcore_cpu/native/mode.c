/* The most frequent element along a dim: each element is counted in a table of those met before, so that none is sorted. */
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM, KEEPDIM, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 13 }; /* elements a thread */

typedef struct {
    const char *x;
    char *values;
    int64_t *places;
    npy_intp size, after; /* of the dim, and of all behind it */
    int bits;             /* of a place in the table, which has at least two for each element of a line */
    _Atomic bool failed;
} mode_run;

typedef struct {
    uint64_t key;
    uint32_t count, last; /* how often it was met, and where along the dim lastly */
} met_element;

/* Two elements are equal that have one key: both zeros are one element, and so are all NaN, which is over all numbers. */
static uint64_t key_f32(float x) {
    uint32_t bits;
    x = x == 0 ? 0 : x != x ? NAN : x;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static uint64_t key_f64(double x) {
    uint64_t bits;
    x = x == 0 ? 0 : x != x ? NAN : x;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
#define key_of_whole(x) ((uint64_t)(x))
#define key_of_bool(x) ((uint64_t)((x) != 0)) /* of other bytes that are seen as bools several are true */
#define FLOAT_BELOW(x, y) ((x) < (y) || ((x) == (x) && (y) != (y)))
#define BELOW(x, y) ((x) < (y))
#define BOOL_BELOW(x, y) (!(x) && (y))

#define MODES(suffix, type, KEY, IS_BELOW)                                                                    \
    static void modes_##suffix(void *context, npy_intp first, npy_intp end) {                                 \
        mode_run *run = context;                                                                              \
        const npy_intp step = run->after, size = run->size, places = (npy_intp)1 << run->bits;                \
        const int shift = 64 - run->bits;                                                                     \
        uint32_t *table = malloc((size_t)places * sizeof *table);                                             \
        met_element *met = malloc((size_t)size * sizeof *met);                                                \
        run->failed |= !table || !met;                                                                        \
        for (npy_intp line = first; table && met && line < end; line++) {                                     \
            const type *x = (const type *)run->x + line / step * size * step + line % step;                   \
            uint32_t count = 0, best = 0;                                                                     \
            memset(table, 0, (size_t)places * sizeof *table);                                                 \
            for (npy_intp i = 0; i < size; i++) {                                                             \
                const uint64_t key = KEY(x[i * step]);                                                        \
                npy_intp at = (npy_intp)(key * 0x9e3779b97f4a7c15u >> shift); /* 2^64 over the golden ratio */ \
                while (table[at] && met[table[at] - 1].key != key)                                            \
                    at = (at + 1) & (places - 1);                                                             \
                if (!table[at]) {                                                                             \
                    met[count] = (met_element){key, 0, 0};                                                    \
                    table[at] = ++count;                                                                      \
                }                                                                                             \
                met_element *one = met + table[at] - 1;                                                       \
                one->count++;                                                                                 \
                one->last = (uint32_t)i;                                                                      \
            }                                                                                                 \
            for (uint32_t k = 1; k < count; k++)                                                              \
                if (met[k].count > met[best].count ||                                                         \
                    (met[k].count == met[best].count && IS_BELOW(x[met[k].last * step], x[met[best].last * step]))) \
                    best = k;                                                                                 \
            run->places[line] = met[best].last;                                                               \
            ((type *)run->values)[line] = x[met[best].last * step];                                           \
        }                                                                                                     \
        free(table);                                                                                          \
        free(met);                                                                                            \
    }
MODES(f32, float, key_f32, FLOAT_BELOW)
MODES(f64, double, key_f64, FLOAT_BELOW)
MODES(i8, int8_t, key_of_whole, BELOW)
MODES(i16, int16_t, key_of_whole, BELOW)
MODES(i32, int32_t, key_of_whole, BELOW)
MODES(i64, int64_t, key_of_whole, BELOW)
MODES(u8, uint8_t, key_of_whole, BELOW)
MODES(bool, uint8_t, key_of_bool, BOOL_BELOW)

static const native_body BODIES[TYPES] = {
    [TYPE_F32] = modes_f32, [TYPE_F64] = modes_f64, [TYPE_I8] = modes_i8, [TYPE_I16] = modes_i16,
    [TYPE_I32] = modes_i32, [TYPE_I64] = modes_i64, [TYPE_U8] = modes_u8, [TYPE_BOOL] = modes_bool,
};

static PyObject *run_mode(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    mode_run run = {.bits = 2};
    npy_intp before, shape[NATIVE_DIMS];
    int ndim = 0;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const native_type type = nargs == 1 && kwnames ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !BODIES[type] || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIM] ||
        !PyLong_CheckExact(options[DIM]) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_SIZE(x))
        return NULL;
    const long dim = PyLong_AsLong(options[DIM]);
    if (!native_has_dim(x, dim) || native_length(x, (int)dim) > INT32_MAX) {
        PyErr_Clear();
        return NULL;
    }
    for (int i = 0; i < PyArray_NDIM(x); i++)
        if (i != dim || (options[KEEPDIM] && PyObject_IsTrue(options[KEEPDIM]) == 1))
            shape[ndim++] = i == dim ? 1 : PyArray_DIM(x, i);
    PyArrayObject *values = native_empty(ndim, shape, type), *places = values ? native_empty(ndim, shape, TYPE_I64) : NULL;
    if (!places) {
        Py_XDECREF(values);
        return NULL;
    }
    native_around(x, (int)dim, &before, &run.after);
    run.size = native_length(x, (int)dim);
    run.x = PyArray_BYTES(x);
    run.values = PyArray_BYTES(values);
    run.places = PyArray_DATA(places);
    while (((npy_intp)1 << run.bits) < 2 * run.size)
        run.bits++;
    native_evenly(before * run.after, native_grain(GRAIN, run.size), BODIES[type], &run);
    PyObject *made = Py_BuildValue("(NN)", values, places);
    if (run.failed) {
        Py_XDECREF(made);
        return PyErr_NoMemory();
    }
    return made;
}

int mode_init(void) {
    static const char *const words[OPTIONS] = {"dim", "keepdim"};
    return native_intern(names, words, OPTIONS);
}

const native_spec mode_kernels[] = {
    {"mode_dim", run_mode, NULL, .dense = true},
    {NULL, NULL, NULL},
};
