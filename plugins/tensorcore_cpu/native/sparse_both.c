/* Products of two sparse matrices, row by row: each row of the product is a sum of rows of the second matrix (Gustavson 1978,
   "Two fast algorithms for sparse matrices"). Which columns a row has is noted in bits, and in bits of those words that have some, so
   that they are found in order without sorting. */
#include "sparse.h"

#include "rows.h"

#include <string.h>

enum { GRAIN = 1 << 14 /* multiplications a thread */, BITS = 64, MOST = 1 << 28 /* columns of sums */ };

enum { SHAPE, COMPRESSED, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"shape", "compressed"};

/* A matrix by rows. */
typedef struct {
    const int64_t *starts, *columns;
    const void *values;
    npy_intp rows, stored;
} by_rows;

typedef struct {
    by_rows a, b;
    npy_intp across;
    bool wide;        /* float64 */
    int64_t *starts;  /* of the product; first of each row how many columns it has, in the place of the next */
    int64_t *columns; /* NULL while they are counted */
    void *values;
    _Atomic bool out_of_memory;
} product_call;

/* The columns of one row. */
typedef struct {
    uint64_t *some, *words; /* bits of the words that have some, and the words */
} row_bits;

static inline void note(row_bits bits, int64_t column) {
    const int64_t word = column / BITS;
    bits.words[word] |= 1ull << (column % BITS);
    bits.some[word / BITS] |= 1ull << (word % BITS);
}

static size_t words_for(size_t count) { return (count + BITS - 1) / BITS; }

/* Runs `each` with the column for those of a row, in order, and forgets them. */
#define EACH_COLUMN(bits, wide_words, each)                                                                   \
    for (size_t i = 0; i < (wide_words); i++)                                                                 \
        for (uint64_t some = (bits).some[i]; (bits).some[i] = 0, some; some &= some - 1) {                    \
            const size_t word = i * BITS + (size_t)__builtin_ctzll(some);                                     \
            for (uint64_t left = (bits).words[word]; (bits).words[word] = 0, left; left &= left - 1) {        \
                const int64_t column = (int64_t)(word * BITS) + __builtin_ctzll(left);                        \
                each;                                                                                         \
            }                                                                                                 \
        }

/* Adds the rows of b that a row of a names, into `sums`. */
#define ADD_ROWS(REAL)                                                                                        \
    for (int64_t k = call->a.starts[row]; k < call->a.starts[row + 1]; k++) {                                 \
        const REAL by = ((const REAL *)call->a.values)[k];                                                    \
        const int64_t of = call->a.columns[k];                                                                \
        for (int64_t j = call->b.starts[of]; j < call->b.starts[of + 1]; j++) {                               \
            const int64_t column = call->b.columns[j];                                                        \
            ((REAL *)sums)[column] += by * ((const REAL *)call->b.values)[j];                                 \
            note(bits, column);                                                                               \
        }                                                                                                     \
    }                                                                                                         \
    EACH_COLUMN(bits, some, (call->columns[at] = column, ((REAL *)call->values)[at++] = ((REAL *)sums)[column],  \
                             ((REAL *)sums)[column] = 0))

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    product_call *call = context;
    const size_t words = words_for((size_t)call->across), some = words_for(words), element = call->wide ? sizeof(double) : sizeof(float);
    const size_t bytes = (words + some) * sizeof(uint64_t) + (call->columns ? (size_t)call->across * element : 0);
    char *space = native_scratch(bytes ? bytes : 1);
    if (!space) {
        call->out_of_memory = true;
        return;
    }
    memset(space, 0, bytes);
    const row_bits bits = {(uint64_t *)space, (uint64_t *)space + some};
    void *const sums = (uint64_t *)space + some + words;
    for (npy_intp row = begin; row < end; row++) {
        int64_t at = call->columns ? call->starts[row] : 0, found = 0;
        if (!call->columns) {
            for (int64_t k = call->a.starts[row]; k < call->a.starts[row + 1]; k++)
                for (int64_t of = call->a.columns[k], j = call->b.starts[of]; j < call->b.starts[of + 1]; j++)
                    note(bits, call->b.columns[j]);
            EACH_COLUMN(bits, some, (found++, (void)column))
            call->starts[row + 1] = found;
        } else if (call->wide) {
            ADD_ROWS(double)
        } else {
            ADD_ROWS(float)
        }
    }
    native_scratch_free(space, bytes ? bytes : 1);
}

/* (rows, columns, values) as a matrix by rows; false where they are none, with an exception or without. */
static bool read_rows(PyArrayObject *const *parts, bool compressed, const npy_intp *shape, native_type type, by_rows *made,
                      sparse_lines *lines) {
    const npy_intp stored = PyArray_DIM(parts[2], 0);
    *made = (by_rows){PyArray_DATA(parts[0]), PyArray_DATA(parts[1]), PyArray_DATA(parts[2]), shape[0], stored};
    if (PyArray_DIM(parts[1], 0) != stored || PyArray_DIM(parts[0], 0) != (compressed ? shape[0] + 1 : stored) ||
        !native_inside(made->columns, stored, shape[1]))
        return false;
    if (compressed)
        return native_lines_rise(made->starts, shape[0], stored);
    if (!native_inside(made->starts, stored, shape[0]) ||
        !native_by_line(made->starts, made->columns, made->values, stored, shape[0], (size_t)TYPE_SIZE[type], lines))
        return false;
    *made = (by_rows){lines->starts, lines->others, lines->values, shape[0], stored};
    return true;
}

/* The columns of each row are counted, then they are made. */
static PyObject *multiply(product_call *call, native_type type, bool compressed) {
    PyArrayObject *starts = native_empty(1, (npy_intp[]){call->a.rows + 1}, TYPE_I64), *columns = NULL, *values = NULL, *rows = NULL;
    PyObject *answer = NULL;
    if (!starts)
        return NULL;
    const npy_intp each = call->a.rows ? call->a.stored / call->a.rows * (call->b.rows ? call->b.stored / call->b.rows + 1 : 1) + 1 : 1;
    const npy_intp grain = native_grain(GRAIN + call->across, each); /* a thread clears a row of sums first */
    call->starts = PyArray_DATA(starts);
    call->starts[0] = 0;
    native_parallel(call->a.rows, grain, run_rows, call);
    for (npy_intp i = 0; !call->out_of_memory && i < call->a.rows; i++)
        call->starts[i + 1] += call->starts[i];
    const npy_intp found = call->out_of_memory ? 0 : call->starts[call->a.rows];
    columns = native_empty(1, &found, TYPE_I64);
    values = native_empty(1, &found, type);
    rows = compressed ? (PyArrayObject *)Py_NewRef(starts) : native_empty(1, &found, TYPE_I64);
    if (columns && values && rows && !call->out_of_memory) {
        call->columns = PyArray_DATA(columns);
        call->values = PyArray_DATA(values);
        native_parallel(call->a.rows, grain, run_rows, call);
        if (!compressed)
            native_spread_lines(call->starts, call->a.rows, PyArray_DATA(rows));
    }
    if (call->out_of_memory)
        PyErr_NoMemory();
    else if (columns && values && rows)
        answer = PyTuple_Pack(3, rows, columns, values);
    Py_DECREF(starts);
    Py_XDECREF(columns);
    Py_XDECREF(values);
    Py_XDECREF(rows);
    return answer;
}

/* (rows, columns, values) of two matrices, of `shape` (rows, inner, columns); answers with those of their product, in order. */
static PyObject *run_product(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *answer = NULL;
    npy_intp shape[3];
    const native_type type = nargs == 6 ? native_real_type(args[2]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !options[SHAPE] || native_sizes(options[SHAPE], shape, 3) != 3 || shape[2] > MOST || !options[COMPRESSED] ||
        !PyTuple_Check(options[COMPRESSED]) || PyTuple_GET_SIZE(options[COMPRESSED]) != 2)
        return NULL;
    for (int k = 0; k < 6; k++)
        if (native_array_type(args[k]) != (k % 3 == 2 ? type : TYPE_I64) || PyArray_NDIM((PyArrayObject *)args[k]) != 1)
            return NULL;
    const bool compressed[2] = {PyTuple_GET_ITEM(options[COMPRESSED], 0) == Py_True, PyTuple_GET_ITEM(options[COMPRESSED], 1) == Py_True};
    PyArrayObject *parts[6] = {NULL};
    sparse_lines lines[2] = {{NULL}};
    product_call call = {.across = shape[2], .wide = type == TYPE_F64};
    bool ready = true;
    for (int k = 0; ready && k < 6; k++)
        ready = (parts[k] = native_dense(args[k])) != NULL;
    if (ready && read_rows(parts, compressed[0], shape, type, &call.a, &lines[0]) &&
        read_rows(parts + 3, compressed[1], shape + 1, type, &call.b, &lines[1]))
        answer = multiply(&call, type, compressed[0]);
    for (int k = 0; k < 2; k++)
        native_lines_end(&lines[k]);
    for (int k = 0; k < 6; k++)
        Py_XDECREF(parts[k]);
    return answer;
}

int sparse_both_init(void) { return native_intern(names, NAMES, OPTIONS); }

const native_spec sparse_both_kernels[] = {
    {"sparse_product", run_product, NULL},
    {NULL, NULL, NULL},
};
