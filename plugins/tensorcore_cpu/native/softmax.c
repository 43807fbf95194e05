/* softmax and log_softmax along one dim, and their gradients. */
#include "softmax.h"

#include "rows.h"

DECLARE_LOOPS(softmax_loops, softmax_loops);

static const softmax_loops *loops;
static PyObject *dim_name;

enum { GRAIN = 1 << 14 }; /* elements a thread */

typedef struct {
    int op;
    int inputs;
} softmax_op;

typedef struct {
    softmax_rows rows;
    softmax_columns columns;
    native_lines x, y;
    char *out;
    npy_intp n, inner, tiles, size;
    bool one; /* columns of a gradient: x is one number, of which there is a line */
} softmax_run;

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    const softmax_run *run = context;
    const char *x = run->x.data, *y = run->y.data;
    const softmax_lines lines = {x + begin * run->x.step * run->size, y + begin * run->y.step * run->size, run->x.step,
                                 run->y.step, run->out + begin * run->n * run->size, end - begin, run->n};
    run->rows(&lines);
}

static void run_columns(void *context, npy_intp begin, npy_intp end) {
    const softmax_run *run = context;
    const char *x = run->x.data, *y = run->y.data;
    for (; begin < end; begin++) {
        npy_intp column = begin % run->tiles * COLUMNS, rest = run->inner - column;
        npy_intp start = (begin / run->tiles * run->n * run->inner + column) * run->size;
        run->columns(run->one ? x : x + start, run->one ? 0 : run->inner, y + start, run->out + start, run->n, run->inner,
                     rest < COLUMNS ? rest : COLUMNS);
    }
}

static PyObject *run_softmax(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const softmax_op *op = kernel->data;
    PyObject *option;
    if (nargs != op->inputs || !kwnames || !native_options(args, nargs, kwnames, &dim_name, 1, &option) || !option)
        return NULL;
    native_type type = native_real_type(args[0]);
    PyArrayObject *first = (PyArrayObject *)args[0], *second = (PyArrayObject *)args[nargs - 1];
    int ndim = type == TYPE_NONE ? 0 : PyArray_NDIM(first);
    long dim = PyLong_Check(option) ? PyLong_AsLong(option) : -1;
    if (dim < 0 || dim >= ndim || !PyArray_SIZE(first)) {
        PyErr_Clear();
        return NULL;
    }
    if (native_real_type(args[nargs - 1]) != type || PyArray_NDIM(second) != ndim ||
        !PyArray_CompareLists(PyArray_DIMS(first), PyArray_DIMS(second), ndim))
        return NULL;
    const softmax_of_real *of = &loops->of[type];
    softmax_run run = {.rows = of->rows[op->op], .columns = of->columns[op->op], .n = PyArray_DIM(first, dim),
                       .size = TYPE_SIZE[type]};
    npy_intp before;
    native_around(first, (int)dim, &before, &run.inner);
    PyArrayObject *made = NULL;
    run.one = op->inputs == 2 && run.inner > 1 && !PyArray_IS_C_CONTIGUOUS(first) && native_uniform(first);
    /* Columns are what one copy of all elements holds. */
    if (native_lines_of(first, run.one ? COLUMNS : run.inner == 1 ? run.n : PyArray_SIZE(first), &run.x) &&
        native_lines_of(second, run.inner == 1 ? run.n : PyArray_SIZE(first), &run.y))
        made = native_empty(ndim, PyArray_DIMS(first), type);
    if (made) {
        run.out = PyArray_BYTES(made);
        if (run.inner == 1) {
            native_parallel(before, native_grain(GRAIN, run.n), run_rows, &run);
        } else {
            run.tiles = (run.inner + COLUMNS - 1) / COLUMNS;
            npy_intp tile = run.inner < COLUMNS ? run.inner : COLUMNS;
            native_parallel(before * run.tiles, native_grain(GRAIN, run.n * tile), run_columns, &run);
        }
    }
    Py_XDECREF(run.x.owner);
    Py_XDECREF(run.y.owner);
    return (PyObject *)made;
}

int softmax_init(void) {
    loops = PICK(softmax_loops);
    dim_name = PyUnicode_InternFromString("dim");
    return dim_name ? 0 : -1;
}

const native_spec softmax_kernels[] = {
    {"softmax", run_softmax, &(const softmax_op){SOFTMAX, 1}},
    {"log_softmax", run_softmax, &(const softmax_op){LOG_SOFTMAX, 1}},
    {"softmax_backward", run_softmax, &(const softmax_op){SOFTMAX_BACKWARD, 2}},
    {"log_softmax_backward", run_softmax, &(const softmax_op){LOG_SOFTMAX_BACKWARD, 2}},
    {NULL, NULL, NULL},
};
