/* Triangles of matrices: tril and triu, into new memory and in place; both factors that lie in one matrix, of any type. */
#include "rows.h"
#include "spread.h"

#include <string.h>

DECLARE_LOOPS(spread_loops, spread_loops);

static const spread_loops *loops;

enum { UPPER, DIAGONAL, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 16, /* elements a thread */
    MASKED = 4096,   /* bytes of matrices of which a mask says what is left */
};

typedef struct {
    char *out;
    const char *x;
    npy_intp rows, columns, size, diagonal;
    bool upper;
    const char *mask; /* of `masked` small matrices: bytes of all ones where they are kept */
    npy_intp masked;
} triangle;

/* The first column of the other part, of a row. */
static npy_intp edge_of(const triangle *run, npy_intp row) {
    const npy_intp edge = row + run->diagonal + !run->upper;
    return edge < 0 ? 0 : edge > run->columns ? run->columns : edge;
}

/* `rows` rows that are kept or not as a whole. */
static void keep_rows(char *out, const char *x, npy_intp bytes, bool kept) {
    if (!kept)
        memset(out, 0, (size_t)bytes);
    else if (x != out)
        memcpy(out, x, (size_t)bytes);
}

static void run_triangle_rows(void *context, npy_intp begin, npy_intp end) {
    const triangle *run = context;
    const npy_intp length = run->columns * run->size;
    for (npy_intp rows; begin < end; begin += rows) {
        const npy_intp row = begin % run->rows, edge = edge_of(run, row);
        /* Rows under the triangle are of one kind to the last one, those over it to its first one. */
        rows = edge == run->columns ? run->rows - row : edge ? 1 : -(run->diagonal + !run->upper) - row + 1;
        rows = rows < run->rows - row ? rows : run->rows - row;
        rows = rows < end - begin ? rows : end - begin;
        char *out = run->out + begin * length;
        const char *x = run->x + begin * length;
        if (rows > 1 || !edge || edge == run->columns) {
            keep_rows(out, x, rows * length, (edge == 0) == run->upper);
            continue;
        }
        keep_rows(out, x, edge * run->size, !run->upper);
        keep_rows(out + edge * run->size, x + edge * run->size, length - edge * run->size, run->upper);
    }
}

static void run_small_triangles(void *context, npy_intp begin, npy_intp end) {
    const triangle *run = context;
    const npy_intp bytes = run->rows * run->columns * run->size;
    for (; begin < end; begin += run->masked)
        loops->keep(run->x + begin * bytes, run->mask, run->out + begin * bytes,
                                 (end - begin < run->masked ? end - begin : run->masked) * bytes);
}

/* Many small matrices, as one row under a mask. */
static void run_masked_triangles(triangle *run, npy_intp matrices) {
    char mask[MASKED];
    const npy_intp row = run->columns * run->size, bytes = run->rows * row;
    for (npy_intp i = 0; i < run->rows; i++) {
        const npy_intp edge = edge_of(run, i) * run->size;
        memset(mask + i * row, run->upper ? 0 : 0xff, (size_t)edge);
        memset(mask + i * row + edge, run->upper ? 0xff : 0, (size_t)(row - edge));
    }
    for (run->masked = 1; run->masked * 2 * bytes <= MASKED && run->masked * 2 <= matrices; run->masked *= 2)
        memcpy(mask + run->masked * bytes, mask, (size_t)(run->masked * bytes));
    run->mask = mask;
    native_evenly(matrices, native_grain(GRAIN, run->rows * run->columns), run_small_triangles, run);
}

static PyObject *run_triangle(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    double diagonal;
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    const native_type parts = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const bool writes = kernel->data != NULL;
    if (type == TYPE_NONE && parts == TYPE_NONE)
        return NULL;
    if ((writes && !PyArray_ISWRITEABLE(x)) || PyArray_NDIM(x) < 2 || !PyArray_SIZE(x) ||
        (writes && !PyArray_IS_C_CONTIGUOUS(x)) || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_double(options[DIAGONAL], &diagonal) || !options[UPPER] || !PyBool_Check(options[UPPER]) || diagonal > 1e9 ||
        diagonal < -1e9)
        return NULL;
    int ndim = PyArray_NDIM(x);
    const bool dense = PyArray_IS_C_CONTIGUOUS(x); /* else a copy in row-major order is written over */
    PyArrayObject *made = writes               ? (PyArrayObject *)Py_NewRef(x)
                          : !dense             ? native_dense(args[0])
                          : parts != TYPE_NONE ? native_empty_complex(ndim, PyArray_DIMS(x), parts)
                                               : native_empty(ndim, PyArray_DIMS(x), type);
    if (!made)
        return NULL;
    triangle run = {PyArray_BYTES(made), PyArray_BYTES(dense ? x : made), PyArray_DIM(x, ndim - 2), PyArray_DIM(x, ndim - 1),
                    PyArray_ITEMSIZE(x), (npy_intp)diagonal, options[UPPER] == Py_True, NULL, 0};
    const npy_intp matrix = run.rows * run.columns;
    if (ndim > 2 && matrix * run.size <= MASKED)
        run_masked_triangles(&run, PyArray_SIZE(x) / matrix);
    else
        native_evenly(PyArray_SIZE(x) / run.columns, native_grain(GRAIN, run.columns), run_triangle_rows, &run);
    return (PyObject *)made;
}

/* One matrix of P, L and U each, of elements of `size` bytes; `order` is room for a number a row. P is NULL where nobody wants it. */
static void unpack_matrix(const char *lu, const int32_t *swaps, npy_intp rows, npy_intp columns, npy_intp size, const char *one,
                          npy_intp *order, char *p, char *lower, char *upper) {
    const npy_intp least = rows < columns ? rows : columns;
    for (npy_intp i = 0; p && i < rows; i++)
        order[i] = i;
    for (npy_intp i = 0; p && i < least; i++) {
        const npy_intp there = swaps[i] - 1, held = order[i];
        order[i] = order[there];
        order[there] = held;
    }
    for (npy_intp i = 0; p && i < rows; i++)
        memcpy(p + (order[i] * rows + i) * size, one, (size_t)size);
    for (npy_intp i = 0; i < rows; i++) {
        const npy_intp before = i < least ? i : least;
        memcpy(lower + i * least * size, lu + i * columns * size, (size_t)(before * size));
        if (i < least) {
            memcpy(lower + (i * least + i) * size, one, (size_t)size);
            memcpy(upper + (i * columns + i) * size, lu + (i * columns + i) * size, (size_t)((columns - i) * size));
        }
    }
}

static PyArrayObject *zeros_like(PyArrayObject *x, npy_intp rows, npy_intp columns) {
    npy_intp shape[NATIVE_DIMS];
    const int ndim = PyArray_NDIM(x);
    memcpy(shape, PyArray_DIMS(x), (size_t)ndim * sizeof *shape);
    shape[ndim - 2] = rows;
    shape[ndim - 1] = columns;
    return (PyArrayObject *)PyArray_Zeros(ndim, shape, (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(x)), 0);
}

/* (factors, pivots or None): P, which is None without pivots, L and U. Those of LAPACK's types that have pivots are its files'. */
static PyObject *run_unpack_lu(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { MOST = 1024, WIDEST = 16 }; /* rows, and bytes of an element */
    if (nargs != 2 || kwnames || (native_array_type(args[0]) == TYPE_NONE && native_complex_type(args[0]) == TYPE_NONE))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *swaps = args[1] == Py_None ? NULL : (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    const npy_intp rows = ndim < 2 ? 0 : PyArray_DIM(x, ndim - 2), columns = ndim < 2 ? 0 : PyArray_DIM(x, ndim - 1);
    const npy_intp least = rows < columns ? rows : columns, size = PyArray_ITEMSIZE(x);
    if (!PyArray_SIZE(x) || rows > MOST || !least || !PyArray_IS_C_CONTIGUOUS(x))
        return NULL;
    if (swaps && (native_array_type(args[1]) != TYPE_I32 || !PyArray_IS_C_CONTIGUOUS(swaps) || PyArray_NDIM(swaps) != ndim - 1 ||
                  PyArray_DIM(swaps, ndim - 2) != least || !PyArray_CompareLists(PyArray_DIMS(swaps), PyArray_DIMS(x), ndim - 2)))
        return NULL;
    for (npy_intp i = 0; swaps && i < PyArray_SIZE(swaps); i++) /* what is wrong is NumPy's to say */
        if (((const int32_t *)PyArray_DATA(swaps))[i] < 1 || ((const int32_t *)PyArray_DATA(swaps))[i] > rows)
            return NULL;
    PyArrayObject *p = swaps ? zeros_like(x, rows, rows) : NULL, *lower = zeros_like(x, rows, least), *upper = zeros_like(x, least, columns);
    char one[WIDEST];
    npy_intp order[MOST];
    bool good = lower && upper && (p || !swaps) && !PyArray_SETITEM(lower, PyArray_DATA(lower), Py_True);
    if (good)
        memcpy(one, PyArray_DATA(lower), (size_t)size);
    for (npy_intp i = 0, count = PyArray_SIZE(x) / (rows * columns); good && i < count; i++)
        unpack_matrix(PyArray_BYTES(x) + i * rows * columns * size, swaps ? (const int32_t *)PyArray_DATA(swaps) + i * least : NULL, rows,
                      columns, size, one, order, p ? PyArray_BYTES(p) + i * rows * rows * size : NULL,
                      PyArray_BYTES(lower) + i * rows * least * size, PyArray_BYTES(upper) + i * least * columns * size);
    PyObject *made = good ? PyTuple_Pack(3, p ? (PyObject *)p : Py_None, lower, upper) : NULL;
    Py_XDECREF(p);
    Py_XDECREF(lower);
    Py_XDECREF(upper);
    return made;
}

int triangles_init(void) {
    loops = PICK(spread_loops);
    names[UPPER] = PyUnicode_InternFromString("upper");
    names[DIAGONAL] = PyUnicode_InternFromString("diagonal");
    return names[UPPER] && names[DIAGONAL] ? 0 : -1;
}

const native_spec triangles_kernels[] = {
    {"tri", run_triangle, NULL},
    {"keep_triangle", run_triangle, "w"},
    {"unpack_lu_beneath", run_unpack_lu, NULL},
    {NULL, NULL, NULL},
};
