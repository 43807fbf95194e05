/* Cosines and distances of two rows each, which lie in the same order on both sides. */
#include "row_pairs.h"

#include "rows.h"

DECLARE_LOOPS(row_pairs_loops, row_pairs_loops);

enum { EPS, POWER, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 13, ROOTS = 8 }; /* elements a thread, of which a row's roots and quotient are worth so many */

typedef struct {
    row_pairs_loop loop;
    const char *x, *y;
    char *made;
    npy_intp width, size;
    double eps;
} run;

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    const run *all = context;
    const npy_intp start = begin * all->width * all->size;
    all->loop(all->x + start, all->y + start, all->made + begin * all->size, end - begin, all->width, all->eps);
}

/* The rows are those of the last dim. */
static PyObject *run_pairs(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const row_pairs_loops *loops = PICK(row_pairs_loops);
    const bool cosine = kernel->data != NULL;
    PyObject *options[OPTIONS] = {NULL};
    double p = 2;
    run all;
    const native_type type = nargs == 2 && kwnames ? native_real_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || native_real_type(args[1]) != type || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_double(options[EPS], &all.eps) || (!cosine && (!native_double(options[POWER], &p) || (p != 1 && p != 2))))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    if (!ndim || !PyArray_SAMESHAPE(x, y) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(y) || !PyArray_SIZE(x))
        return NULL;
    PyArrayObject *made = native_empty(ndim - 1, PyArray_DIMS(x), type);
    if (!made)
        return NULL;
    all.loop = cosine ? loops->cosine[type] : p == 2 ? loops->euclid[type] : loops->sizes[type];
    all.x = PyArray_BYTES(x);
    all.y = PyArray_BYTES(y);
    all.made = PyArray_BYTES(made);
    all.width = PyArray_DIM(x, ndim - 1);
    all.size = TYPE_SIZE[type];
    native_evenly(PyArray_SIZE(made), native_grain(GRAIN, all.width + ROOTS), run_rows, &all);
    return (PyObject *)made;
}

int row_pairs_init(void) {
    static const char *const words[OPTIONS] = {"eps", "p"};
    return native_intern(names, words, OPTIONS);
}

const native_spec row_pairs_kernels[] = {
    {"cosine_similarity", run_pairs, "cosine", .dense = true},
    {"pairwise_distance", run_pairs, NULL, .dense = true},
    {NULL, NULL, NULL},
};
