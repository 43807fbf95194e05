/* Products of sparse matrices and dense ones: each row of one is a bag of rows of the dense matrix, times the values. */
#include "sparse.h"

#include "bags.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(bag_loops, bag_loops);

static const bag_loops *loops;

enum { COUNT, COMPRESSED, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"count", "compressed", "needs"};

enum { PIECE = 1 << 10, GRAIN = 1 << 14 /* multiplications a thread */ };

/* A matrix of `count` rows and `across` columns with `stored` elements, and a dense one of `across` rows. */
typedef struct {
    native_type type;
    bool compressed; /* `rows` are where each row begins, and the end of the last; else the row of each element */
    npy_intp count, across, stored, width;
    PyArrayObject *rows, *columns, *values, *dense;
} sparse_call;

static void end_call(sparse_call *call) {
    Py_XDECREF(call->rows);
    Py_XDECREF(call->columns);
    Py_XDECREF(call->values);
    Py_XDECREF(call->dense);
}

bool native_lines_rise(const int64_t *starts, npy_intp lines, npy_intp stored) {
    for (npy_intp i = 0; i < lines; i++)
        if (starts[i + 1] < starts[i])
            return false;
    return starts[0] == 0 && starts[lines] == stored;
}

/* Takes (rows, columns, values, dense) and the options; false where they are for NumPy, with an exception or without. */
static bool begin_call(sparse_call *call, PyObject *const *args, PyObject *const *options) {
    double count;
    *call = (sparse_call){.type = native_real_type(args[2]), .compressed = options[COMPRESSED] == Py_True};
    if (call->type == TYPE_NONE || native_real_type(args[3]) != call->type || native_array_type(args[0]) != TYPE_I64 ||
        native_array_type(args[1]) != TYPE_I64 || !native_double(options[COUNT], &count))
        return false;
    for (int k = 0; k < 4; k++)
        if (PyArray_NDIM((PyArrayObject *)args[k]) != (k == 3 ? 2 : 1))
            return false;
    call->count = (npy_intp)count;
    call->stored = PyArray_DIM((PyArrayObject *)args[2], 0);
    call->across = PyArray_DIM((PyArrayObject *)args[3], 0);
    call->width = PyArray_DIM((PyArrayObject *)args[3], 1);
    if (PyArray_DIM((PyArrayObject *)args[1], 0) != call->stored ||
        PyArray_DIM((PyArrayObject *)args[0], 0) != (call->compressed ? call->count + 1 : call->stored))
        return false;
    if ((call->columns = native_index_inside(args[1], call->across)) &&
        (call->rows = call->compressed ? native_dense(args[0]) : native_index_inside(args[0], call->count)) &&
        (call->values = native_dense(args[2])) && (call->dense = native_dense(args[3])) &&
        (!call->compressed || native_lines_rise(PyArray_DATA(call->rows), call->count, call->stored)))
        return true;
    end_call(call);
    return false;
}

/* Numbers of lines that should be in order, and where each line begins. */
typedef struct {
    const int64_t *line;
    int64_t *starts;
    npy_intp stored, lines;
    _Atomic bool wrong;
} line_run;

/* Of each line the place behind its last element here; of one that goes on in the next part nothing, for that will write there. */
static void end_lines(void *context, npy_intp begin, npy_intp end) {
    line_run *run = context;
    const int64_t *line = run->line;
    npy_intp last = end;
    while (end < run->stored && last > begin && line[last - 1] == line[end])
        last--;
    for (npy_intp done = begin, stop; done < end; done = stop) {
        stop = done + PIECE < end ? done + PIECE : end;
        if ((line[done] | loops->falls(line, done ? done : 1, stop)) < 0 || line[stop - 1] >= run->lines) {
            run->wrong = true;
            return;
        }
        for (npy_intp k = done; k < stop && k < last; k++) /* of each line the last is what stays */
            run->starts[line[k] + 1] = k + 1;
    }
}

/* Whether numbers are at least 0, in order and under `lines`; then `starts` has where each line begins, and the end of the last. */
static bool starts_of(const int64_t *line, npy_intp stored, npy_intp lines, int64_t *starts) {
    line_run run = {line, starts, stored, lines, false};
    memset(starts, 0, sizeof *starts * (size_t)(lines + 1));
    native_parallel(stored, GRAIN, end_lines, &run);
    for (npy_intp i = 0; i < lines && !run.wrong; i++)
        starts[i + 1] = starts[i + 1] ? starts[i + 1] : starts[i];
    return !run.wrong;
}

bool native_by_line(const int64_t *line, const int64_t *other, const void *values, npy_intp stored, npy_intp lines, size_t size,
                    sparse_lines *made) {
    const size_t most = sizeof(int64_t) * (size_t)(lines + 1 + stored) + size * (size_t)stored;
    int64_t *const starts = native_scratch(most), *const others = starts + lines + 1;
    *made = (sparse_lines){starts, other, values, starts, most};
    if (!starts)
        return PyErr_NoMemory() != NULL;
    if (starts_of(line, stored, lines, starts))
        return true;
    made->others = others;
    made->values = others + stored;
    memset(starts, 0, sizeof *starts * (size_t)(lines + 1));
    for (npy_intp k = 0; k < stored; k++)
        starts[line[k] + 1]++;
    for (npy_intp i = 0; i < lines; i++)
        starts[i + 1] += starts[i];
    char *const to = (char *)(others + stored);
    for (npy_intp k = 0; k < stored; k++) { /* each start moves to where the next line begins */
        const int64_t at = starts[line[k]]++;
        others[at] = other[k];
        if (size == sizeof(float))
            memcpy(to + at * (ptrdiff_t)sizeof(float), (const char *)values + k * (ptrdiff_t)sizeof(float), sizeof(float));
        else
            memcpy(to + at * (ptrdiff_t)sizeof(double), (const char *)values + k * (ptrdiff_t)sizeof(double), sizeof(double));
    }
    memmove(starts + 1, starts, sizeof *starts * (size_t)lines);
    starts[0] = 0;
    return true;
}

void native_lines_end(sparse_lines *lines) {
    if (lines->space)
        native_scratch_free(lines->space, lines->bytes);
}

void native_spread_lines(const int64_t *starts, npy_intp lines, int64_t *line) {
    for (npy_intp i = 0; i < lines; i++)
        for (int64_t k = starts[i]; k < starts[i + 1]; k++)
            line[k] = i;
}

static void run_bags(void *context, npy_intp begin, npy_intp end) {
    const bag_run *run = context;
    loops->of[run->type](run, begin, end);
}

/* Of each line the sum of the rows of `table` that its elements name, times their values. */
static PyArrayObject *add_up(const sparse_call *call, const sparse_lines *of, npy_intp lines, const void *table) {
    PyArrayObject *made = native_empty(2, (npy_intp[]){lines, call->width}, call->type);
    if (made && lines && call->width) {
        bag_run run = {.table = table, .scales = of->values, .made = PyArray_DATA(made), .index = of->others, .offsets = of->starts,
                       .bags = lines, .count = call->stored, .width = call->width, .last = true, .mode = BAG_SUM, .type = call->type};
        native_evenly(lines, native_grain(GRAIN, call->width * (1 + call->stored / lines)), run_bags, &run);
    }
    return made;
}

/* (rows, columns, values, dense) */
static PyObject *run_product(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    PyArrayObject *made = NULL;
    sparse_call call;
    if (nargs != 4 || !kwnames || !native_options(args, nargs, kwnames, names, NEEDS, options) || !begin_call(&call, args, options))
        return NULL;
    sparse_lines of = {PyArray_DATA(call.rows), PyArray_DATA(call.columns), PyArray_DATA(call.values), NULL, 0};
    if (call.compressed || native_by_line(of.starts, of.others, of.values, call.stored, call.count, (size_t)TYPE_SIZE[call.type], &of))
        made = add_up(&call, &of, call.count, PyArray_DATA(call.dense));
    native_lines_end(&of);
    end_call(&call);
    return (PyObject *)made;
}

static void run_dots(void *context, npy_intp begin, npy_intp end) {
    const bag_dots *run = context;
    loops->dots[run->type](run, begin, end);
}

/* (g, rows, columns, values, dense): of the values each product of two rows, of the dense matrix that of the turned one. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS], *answer = NULL;
    sparse_call call;
    if (nargs != 5 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[NEEDS] ||
        !PyTuple_Check(options[NEEDS]) || PyTuple_GET_SIZE(options[NEEDS]) != 4 || !begin_call(&call, args + 1, options))
        return NULL;
    PyArrayObject *g = NULL, *made[2] = {NULL, NULL};
    const size_t bytes = call.compressed ? sizeof(int64_t) * (size_t)(call.stored + 1) : 0;
    int64_t *const own = call.compressed ? native_scratch(bytes) : NULL;
    const int64_t *const rows = call.compressed ? own : PyArray_DATA(call.rows), *const columns = PyArray_DATA(call.columns);
    bool done = native_real_type(args[0]) == call.type && PyArray_NDIM((PyArrayObject *)args[0]) == 2 &&
                PyArray_DIM((PyArrayObject *)args[0], 0) == call.count && PyArray_DIM((PyArrayObject *)args[0], 1) == call.width &&
                (rows || PyErr_NoMemory()) && (g = native_dense(args[0]));
    if (done && own)
        native_spread_lines(PyArray_DATA(call.rows), call.count, own);
    if (done && PyTuple_GET_ITEM(options[NEEDS], 2) == Py_True && (done = (made[0] = native_empty(1, &call.stored, call.type)) != NULL)) {
        bag_dots run = {PyArray_DATA(g), PyArray_DATA(call.dense), rows, columns, PyArray_DATA(made[0]), call.width, call.type};
        native_evenly(call.stored, native_grain(GRAIN, call.width + 1), run_dots, &run);
    }
    if (done && PyTuple_GET_ITEM(options[NEEDS], 3) == Py_True) {
        sparse_lines of = {NULL};
        done = native_by_line(columns, rows, PyArray_DATA(call.values), call.stored, call.across, (size_t)TYPE_SIZE[call.type], &of) &&
               (made[1] = add_up(&call, &of, call.across, PyArray_DATA(g)));
        native_lines_end(&of);
    }
    if (done)
        answer = PyTuple_Pack(4, Py_None, Py_None, made[0] ? (PyObject *)made[0] : Py_None, made[1] ? (PyObject *)made[1] : Py_None);
    if (own)
        native_scratch_free(own, bytes);
    Py_XDECREF(made[0]);
    Py_XDECREF(made[1]);
    Py_XDECREF(g);
    end_call(&call);
    return answer;
}

/* (line): numbers in order, each under `count`. */
static PyObject *run_starts(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    double count;
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, COMPRESSED, options) || !native_double(options[COUNT], &count))
        return NULL;
    const npy_intp lines = (npy_intp)count;
    PyArrayObject *line = native_array_type(args[0]) == TYPE_I64 ? native_dense(args[0]) : NULL, *made = NULL;
    const npy_intp stored = line ? PyArray_SIZE(line) : 0;
    const int64_t *number = line ? PyArray_DATA(line) : NULL;
    if (line && (made = native_empty(1, (npy_intp[]){lines + 1}, TYPE_I64)) && !starts_of(number, stored, lines, PyArray_DATA(made)))
        Py_CLEAR(made);
    Py_XDECREF(line);
    return (PyObject *)made;
}

int sparse_init(void) {
    loops = PICK(bag_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec sparse_kernels[] = {
    {"line_starts", run_starts, NULL},
    {"sparse_matmul", run_product, NULL},
    {"sparse_matmul_backward", run_backward, NULL},
    {NULL, NULL, NULL},
};
