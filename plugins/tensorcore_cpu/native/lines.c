/* What goes along a dim one element after the other, and what looks at whole tensors: running
   logarithms of sums, cross products, equality; distances of pairs. */
#include "lines.h"

#include "rows.h"

#include <math.h>
#include <string.h>

DECLARE_LOOPS(line_loops, line_loops);

static const line_loops *loops;

enum { DIM, KEEPDIM, POWER, OPTIONS };
static PyObject *names[OPTIONS], *addr_names[3];
static const char *const NAMES[OPTIONS] = {"dim", "keepdim", "p"};

enum { GRAIN = 1 << 14, SHORT = 16, LONG_WIDTH = 128 }; /* elements a thread; of rows that are summed side by side; of rows that lie as they are */
enum { NARROW = SUM_COLUMNS / 4 };                      /* columns that are too few for a loop */

typedef struct {
    const char *x, *y;
    char *values;
    npy_intp size, after; /* of the dim, and of all behind it */
} line_run;

typedef struct {
    void (*pairs)(const pairs_run *run, ptrdiff_t first);
    pairs_run run;
    native_type type;
    const char *others;  /* the rows that those of a batch meet, which are packed matrix by matrix */
    bool as_they_lie;    /* long rows, of which too few meet to fill a panel */
    _Atomic bool failed; /* there was no memory for that */
} distances;

/* The array, of that type, and the dim of a call, and the run over it; false where it is not for these. */
static bool begin(PyObject *const *args, native_type type, Py_ssize_t nargs, PyObject *kwnames, int arrays, PyObject **options,
                  line_run *run, npy_intp *lines, int *dim) {
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || nargs != arrays || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIM] ||
        !PyLong_CheckExact(options[DIM]) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_SIZE(x))
        return false;
    *dim = (int)PyLong_AsLong(options[DIM]);
    if (*dim < 0 || *dim >= PyArray_NDIM(x))
        return false;
    npy_intp before;
    native_around(x, *dim, &before, &run->after);
    run->size = PyArray_DIM(x, *dim);
    run->x = PyArray_BYTES(x);
    *lines = before * run->after;
    return true;
}

typedef struct {
    line_run of;
    npy_intp tiles;
    native_type type;
} log_sums;

/* Short columns, of which few lie side by side: those of as many matrices as go through a loop, in a copy. */
static void run_narrow_sums(const log_sums *run, npy_intp begin, npy_intp end) {
    char tile[SHORT * SUM_COLUMNS * sizeof(double)] __attribute__((aligned(64)));
    const npy_intp n = run->of.size, part = run->of.after * TYPE_SIZE[run->type], most = SUM_COLUMNS / run->of.after;
    for (npy_intp at = begin, count; at < end; at += count) {
        count = end - at < most ? end - at : most;
        const npy_intp row = count * part;
        for (npy_intp k = 0; k < count; k++)
            for (npy_intp i = 0; i < n; i++)
                memcpy(tile + i * row + k * part, run->of.x + ((at + k) * n + i) * part, (size_t)part);
        loops->column_sums[run->type](tile, tile, n, count * run->of.after, count * run->of.after);
        for (npy_intp k = 0; k < count; k++)
            for (npy_intp i = 0; i < n; i++)
                memcpy(run->of.values + ((at + k) * n + i) * part, tile + i * row + k * part, (size_t)part);
    }
}

static void run_log_sums(void *context, npy_intp begin, npy_intp end) {
    const log_sums *run = context;
    const npy_intp n = run->of.size, inner = run->of.after, size = TYPE_SIZE[run->type];
    if (inner == 1 && n <= SHORT) {
        for (npy_intp row = begin; row < end; row += SUM_COLUMNS)
            loops->short_sums[run->type](run->of.x + row * n * size, run->of.values + row * n * size, n,
                                         end - row < SUM_COLUMNS ? end - row : SUM_COLUMNS);
        return;
    }
    if (inner <= NARROW && n <= SHORT) {
        run_narrow_sums(run, begin, end);
        return;
    }
    for (npy_intp tile = begin; tile < end; tile++) {
        const npy_intp column = tile % run->tiles * SUM_COLUMNS, start = (tile / run->tiles * n * inner + column) * size;
        const npy_intp width = inner - column < SUM_COLUMNS ? inner - column : SUM_COLUMNS;
        if (inner == 1)
            loops->row_sums[run->type](run->of.x + start, run->of.values + start, n);
        else
            loops->column_sums[run->type](run->of.x + start, run->of.values + start, n, inner, width);
    }
}

static PyObject *run_logcumsumexp(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    log_sums run;
    npy_intp lines;
    int dim;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (nargs == 1 && kwnames && PyTuple_GET_SIZE(kwnames) == 1 && native_real_type(args[0]) != TYPE_NONE && !PyArray_IS_C_CONTIGUOUS(x)) {
        PyObject *dense[2] = {(PyObject *)native_dense(args[0]), args[1]};
        PyObject *made = dense[0] ? run_logcumsumexp(kernel, dense, nargs, kwnames) : NULL;
        Py_XDECREF(dense[0]);
        return made;
    }
    run.type = native_real_type(args[0]);
    const bool fits = begin(args, run.type, nargs, kwnames, 1, options, &run.of, &lines, &dim);
    PyArrayObject *made = fits ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), run.type) : NULL;
    if (!made)
        return NULL;
    run.of.values = PyArray_BYTES(made);
    run.tiles = (run.of.after + SUM_COLUMNS - 1) / SUM_COLUMNS;
    const npy_intp width = run.of.after < SUM_COLUMNS ? run.of.after : SUM_COLUMNS;
    native_parallel(lines / run.of.after * run.tiles, native_grain(GRAIN / 4, run.of.size * width), run_log_sums, &run);
    return (PyObject *)made;
}

/* In `wide`, in which products of integers wrap around. */
#define CROSS(type, wide)                                                                                     \
    for (npy_intp line = 0; line < lines; line++) {                                                           \
        const npy_intp step = run.after, at = line / step * 3 * step + line % step;                           \
        const type *x = (const type *)run.x + at, *y = (const type *)run.y + at;                              \
        type *made = (type *)run.values + at;                                                                 \
        const wide a = x[0], b = x[step], c = x[2 * step], d = y[0], e = y[step], f = y[2 * step];            \
        made[0] = (type)(b * f - c * e);                                                                      \
        made[step] = (type)(c * d - a * f);                                                                   \
        made[2 * step] = (type)(a * e - b * d);                                                               \
    }

/* A copy of x in row-major order, repeated to the shape that it has together with `other`, of as many dims; NULL where there is none. */
static PyArrayObject *stretched(PyArrayObject *x, PyArrayObject *other) {
    npy_intp shape[NATIVE_DIMS];
    if (PyArray_SAMESHAPE(x, other))
        return native_dense((PyObject *)x);
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        const npy_intp one = PyArray_DIM(x, i), two = PyArray_DIM(other, i);
        shape[i] = one == 1 ? two : one;
        if (two != shape[i] && two != 1)
            return NULL;
    }
    PyArrayObject *made = native_empty(PyArray_NDIM(x), shape, native_array_type((PyObject *)x));
    if (made && PyArray_CopyInto(made, x))
        Py_CLEAR(made);
    return made;
}

static PyObject *run_cross(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *first = (PyArrayObject *)args[0], *second = (PyArrayObject *)args[nargs > 1];
    const native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || type == TYPE_BOOL || native_array_type(args[1]) != type)
        return NULL;
    if (kwnames && PyTuple_GET_SIZE(kwnames) == 1 && PyArray_NDIM(first) == PyArray_NDIM(second) &&
        !(PyArray_IS_C_CONTIGUOUS(first) && PyArray_IS_C_CONTIGUOUS(second) && PyArray_SAMESHAPE(first, second))) {
        /* The same of copies that lie in row-major order. */
        PyArrayObject *one = stretched(first, second), *other = one ? stretched(second, first) : NULL;
        PyObject *dense[3] = {(PyObject *)one, (PyObject *)other, args[2]};
        PyObject *made = other ? run_cross(kernel, dense, nargs, kwnames) : NULL;
        Py_XDECREF(one);
        Py_XDECREF(other);
        return made;
    }
    PyObject *options[OPTIONS];
    line_run run;
    npy_intp lines;
    int dim;
    if (!begin(args, type, nargs, kwnames, 2, options, &run, &lines, &dim))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[1];
    if (run.size != 3 || !PyArray_IS_C_CONTIGUOUS(y) || !PyArray_SAMESHAPE(x, y))
        return NULL;
    PyArrayObject *made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (!made)
        return NULL;
    run.y = PyArray_BYTES(y);
    run.values = PyArray_BYTES(made);
    if (type == TYPE_F32)
        CROSS(float, float)
    else if (type == TYPE_F64)
        CROSS(double, double)
    else if (native_is_half(type))
        loops->crosses[type == TYPE_F16](PyArray_DATA(x), PyArray_DATA(y), PyArray_DATA(made), lines, run.after);
    else if (TYPE_SIZE[type] == 1)
        CROSS(uint8_t, uint32_t)
    else if (TYPE_SIZE[type] == 2)
        CROSS(uint16_t, uint32_t)
    else if (TYPE_SIZE[type] == 4)
        CROSS(uint32_t, uint32_t)
    else
        CROSS(uint64_t, uint64_t)
    return (PyObject *)made;
}

#define OTHER(x, y) ((x) != (y))
/* By their bits, of which those below the sign are over `most` in a NaN, and all zero in a zero. */
#define OTHER_HALF(x, y, most) (((x) != (y) || ((x) & 0x7fff) > (most)) && (((x) | (y)) & 0x7fff))
#define OTHER_BF16(x, y) OTHER_HALF(x, y, 0x7f80)
#define OTHER_F16(x, y) OTHER_HALF(x, y, 0x7c00)
#define DIFFER(type, OTHER)                                                                                   \
    for (npy_intp begin = 0; same && begin < count; begin += 1024) {                                          \
        npy_intp end = begin + 1024 < count ? begin + 1024 : count;                                           \
        int unequal = 0;                                                                                      \
        for (npy_intp i = begin; i < end; i++)                                                                \
            unequal |= OTHER(((const type *)a)[i], ((const type *)b)[i]);                                     \
        same = !unequal;                                                                                      \
    }

/* Stops behind the first thousand among which two differ. */
static PyObject *run_equal(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type = nargs == 2 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    const native_type parts = nargs == 2 && !kwnames ? native_complex_type(args[0]) : TYPE_NONE;
    if (parts != TYPE_NONE ? native_complex_type(args[1]) != parts
                           : type == TYPE_NONE || native_array_type(args[1]) != type)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[1];
    if (!PyArray_SAMESHAPE(x, y) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(y))
        return NULL;
    const char *a = PyArray_BYTES(x), *b = PyArray_BYTES(y);
    const npy_intp count = PyArray_SIZE(x) * (parts == TYPE_NONE ? 1 : 2);
    bool same = true;
    type = parts == TYPE_NONE ? type : parts;
    if (type == TYPE_F32)
        DIFFER(float, OTHER)
    else if (type == TYPE_F64)
        DIFFER(double, OTHER)
    else if (type == TYPE_BF16)
        DIFFER(uint16_t, OTHER_BF16)
    else if (type == TYPE_F16)
        DIFFER(uint16_t, OTHER_F16)
    else
        same = !memcmp(a, b, (size_t)(count * TYPE_SIZE[type]));
    if (!same && type == TYPE_BOOL) /* several bytes are true, where other bytes are seen as bools */
        return NULL;
    return PyBool_FromLong(same);
}

/* Room for panels of columns of so many rows, as pairs_run says, all zeros; NULL where there is no memory. */
static char *room_for(npy_intp rows, npy_intp width, native_type type) {
    const npy_intp panel = loops->panel[type];
    return PyMem_RawCalloc((size_t)((rows + panel - 1) / panel * panel * width + 1), (size_t)TYPE_SIZE[type]);
}

static void pack_rows(const char *x, npy_intp rows, npy_intp width, native_type type, char *packed) {
    const npy_intp panel = loops->panel[type], size = TYPE_SIZE[type];
    for (npy_intp j = 0; j < rows; j++) {
        const npy_intp start = j / panel * panel * width + j % panel;
        const void *row = x + j * width * size;
        if (type == TYPE_F32)
            for (npy_intp k = 0; k < width; k++)
                ((float *)packed)[start + k * panel] = ((const float *)row)[k];
        else
            for (npy_intp k = 0; k < width; k++)
                ((double *)packed)[start + k * panel] = ((const double *)row)[k];
    }
}

static void run_pairs(void *context, npy_intp begin, npy_intp end) {
    for (npy_intp i = begin; i < end; i++)
        ((distances *)context)->pairs(&((distances *)context)->run, i * PAIR_ROWS);
}

/* Matrices of a batch, each a thread's own. */
static void run_batch(void *context, npy_intp begin, npy_intp end) {
    distances *all = context;
    const npy_intp size = TYPE_SIZE[all->type], rows = all->run.rows, width = all->run.width, others = all->run.others;
    char *packed = all->as_they_lie ? NULL : room_for(others, width, all->type);
    if (!packed && !all->as_they_lie)
        all->failed = true;
    for (npy_intp i = begin; !all->failed && i < end; i++) {
        pairs_run run = all->run;
        const char *lying = all->others + i * others * width * size;
        run.x += i * rows * width * size;
        run.made += i * rows * others * size;
        run.packed = packed ? packed : lying;
        if (packed)
            pack_rows(lying, others, width, all->type, packed);
        for (npy_intp first = 0; first < rows; first += PAIR_ROWS)
            all->pairs(&run, first);
    }
    PyMem_RawFree(packed);
}

/* Distances of all rows of the matrices x to all of y, or where that is NULL of the rows of one to those behind each. */
static PyObject *distances_of(PyArrayObject *x, PyArrayObject *y, native_type type, pair_norm norm) {
    const int ndim = PyArray_NDIM(x);
    const npy_intp rows = PyArray_DIM(x, ndim - 2), width = PyArray_DIM(x, ndim - 1), others = y ? PyArray_DIM(y, ndim - 2) : 0;
    npy_intp shape[NATIVE_DIMS] = {rows * (rows - 1) / 2}, count = 1;
    for (int i = 0; i < ndim - 2; i++)
        count *= shape[i] = PyArray_DIM(x, i);
    if (y) {
        shape[ndim - 2] = rows;
        shape[ndim - 1] = others;
    }
    PyArrayObject *made = native_empty(y ? ndim : 1, shape, type);
    if (!made)
        return NULL;
    distances all = {loops->pairs[type][norm], {PyArray_BYTES(x), NULL, PyArray_BYTES(made), rows, width, others}, type,
                     y ? PyArray_BYTES(y) : NULL};
    all.as_they_lie = width >= LONG_WIDTH && (y ? others : rows) < loops->panel[type];
    if (all.as_they_lie)
        all.pairs = loops->long_pairs[type][norm];
    const npy_intp work = PAIR_ROWS * (y ? others : rows) * width, blocks = (rows + PAIR_ROWS - 1) / PAIR_ROWS;
    if (count > 1) {
        native_parallel(count, native_grain(8 * GRAIN, work * blocks), run_batch, &all);
    } else if (all.as_they_lie) {
        all.run.packed = y ? all.others : all.run.x;
        native_parallel(blocks, native_grain(8 * GRAIN, work), run_pairs, &all);
    } else {
        char *packed = room_for(y ? others : rows, width, type);
        all.failed = !packed;
        if (packed) {
            pack_rows(y ? all.others : all.run.x, y ? others : rows, width, type, packed);
            all.run.packed = packed;
            native_parallel(blocks, native_grain(8 * GRAIN, work), run_pairs, &all);
        }
        PyMem_RawFree(packed);
    }
    if (all.failed) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return (PyObject *)made;
}

/* pdist and cdist: of pairs of rows of one matrix, and of the rows of two, or of the matrices of two batches. */
static PyObject *run_distances(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *power = NULL;
    double p = 0;
    const Py_ssize_t matrices = kernel->data ? 2 : 1;
    const native_type type = nargs == matrices && kwnames ? native_real_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !native_options(args, nargs, kwnames, &names[POWER], 1, &power) || !native_double(power, &p) ||
        (p != 2 && p != 1 && p != INFINITY))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = matrices > 1 ? (PyArrayObject *)args[1] : NULL;
    const int ndim = PyArray_NDIM(x);
    for (Py_ssize_t i = 0; i < matrices; i++) {
        PyArrayObject *one = (PyArrayObject *)args[i];
        if (native_real_type(args[i]) != type || PyArray_NDIM(one) != ndim || ndim < 2 || (!y && ndim > 2) || ndim > NATIVE_DIMS ||
            !PyArray_IS_C_CONTIGUOUS(one) || PyArray_DIM(one, ndim - 1) != PyArray_DIM(x, ndim - 1) || (y && !PyArray_SIZE(one)))
            return NULL;
        for (int d = 0; d < ndim - 2; d++)
            if (PyArray_DIM(one, d) != PyArray_DIM(x, d))
                return NULL;
    }
    return distances_of(x, y, type, p == 2 ? PAIR_EUCLID : p == 1 ? PAIR_SIZES : PAIR_LARGEST);
}

typedef struct {
    native_type type;
    PyArrayObject *x, *column, *row, *made;
    double beta, alpha;
} outer_run;

static double element_of(PyArrayObject *vector, npy_intp i) {
    const char *at = PyArray_BYTES(vector) + i * PyArray_STRIDE(vector, 0);
    return PyArray_ITEMSIZE(vector) == sizeof(float) ? *(const float *)at : *(const double *)at;
}

static void run_outer_rows(void *context, npy_intp begin, npy_intp end) {
    const outer_run *run = context;
    for (; begin < end; begin++) {
        double factor = element_of(run->column, begin);
        factor = run->type == TYPE_F32 ? (float)run->alpha * (float)factor : run->alpha * factor;
        loops->added[run->type](PyArray_BYTES(run->x) + begin * PyArray_STRIDE(run->x, 0), run->beta, PyArray_DATA(run->row), factor,
                                PyArray_BYTES(run->made) + begin * PyArray_STRIDE(run->made, 0), PyArray_DIM(run->row, 0));
    }
}

/* addr: beta times a matrix whose rows lie in rows, and alpha times each product of an element of one vector and one of another. */
static PyObject *run_addr(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[3] = {NULL};
    outer_run run = {.type = nargs == 3 && kwnames ? native_real_type(args[0]) : TYPE_NONE};
    if (run.type == TYPE_NONE || native_real_type(args[1]) != run.type || native_real_type(args[2]) != run.type ||
        !native_options(args, nargs, kwnames, addr_names, 3, options) || !native_double(options[0], &run.beta) ||
        !native_double(options[1], &run.alpha))
        return NULL;
    run.x = (PyArrayObject *)args[0];
    run.column = (PyArrayObject *)args[1];
    run.row = (PyArrayObject *)args[2];
    const int size = TYPE_SIZE[run.type];
    if (PyArray_NDIM(run.x) != 2 || PyArray_NDIM(run.column) != 1 || PyArray_NDIM(run.row) != 1 ||
        PyArray_DIM(run.x, 0) != PyArray_DIM(run.column, 0) || PyArray_DIM(run.x, 1) != PyArray_DIM(run.row, 0) ||
        PyArray_STRIDE(run.x, 1) != size || !PyArray_IS_C_CONTIGUOUS(run.row))
        return NULL;
    const bool place = !native_is_none(options[2]);
    if (place && (options[2] != args[0] || !PyArray_ISWRITEABLE(run.x) || native_overlap(run.x, run.row) ||
                  native_overlap(run.x, run.column)))
        return NULL;
    run.made = place ? (PyArrayObject *)Py_NewRef(args[0]) : native_empty(2, PyArray_DIMS(run.x), run.type);
    if (run.made)
        native_evenly(PyArray_DIM(run.x, 0), native_grain(2 * GRAIN, PyArray_DIM(run.row, 0)), run_outer_rows, &run);
    return (PyObject *)run.made;
}

int lines_init(void) {
    loops = PICK(line_loops);
    if (native_intern(names, NAMES, OPTIONS))
        return -1;
    static const char *const words[3] = {"beta", "alpha", "out"};
    return native_intern(addr_names, words, 3);
}

const native_spec lines_kernels[] = {
    {"logcumsumexp", run_logcumsumexp, NULL, .dense = true},
    {"cross", run_cross, NULL},
    {"equal", run_equal, NULL},
    {"pdist", run_distances, NULL},
    {"cdist", run_distances, "two", .dense = true},
    {"addr", run_addr, NULL},
    {NULL, NULL, NULL},
};
