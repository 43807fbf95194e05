/* Slices shortened to a norm. */
#include "renorm.h"

#include "rows.h"

DECLARE_LOOPS(renorm_loops, renorm_loops);

static const renorm_loops *loops;

enum { DIM, P, MAXNORM, OUT, OPTIONS };
static PyObject *names[OPTIONS];

typedef struct {
    renorm_shorten shorten;
    shorten_run of;
} renorm_run;

static void run_slices(void *context, npy_intp begin, npy_intp end) {
    const renorm_run *run = context;
    run->shorten(&run->of, begin, end);
}

static PyObject *run_renorm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    renorm_run run;
    shorten_run *of = &run.of;
    const native_type type = nargs == 1 && kwnames ? native_real_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIM] ||
        !PyLong_CheckExact(options[DIM]) || !native_double(options[P], &of->p) || (of->p != 1 && of->p != 2) ||
        !native_double(options[MAXNORM], &of->most) || !PyArray_SIZE((PyArrayObject *)args[0]))
        return NULL;
    const long dim = PyLong_AsLong(options[DIM]);
    if (dim < 0 || dim >= PyArray_NDIM((PyArrayObject *)args[0])) {
        PyErr_Clear();
        return NULL;
    }
    const bool place = !native_is_none(options[OUT]);
    PyArrayObject *out = (PyArrayObject *)options[OUT], *given = (PyArrayObject *)args[0];
    if (place && (native_real_type(options[OUT]) != type || !PyArray_ISWRITEABLE(out) || !PyArray_SAMESHAPE(out, given)))
        return NULL;
    /* Where slices are written one after the other, and read by then. */
    const bool there = place && PyArray_ISCARRAY(out) && (out == given || !native_overlap(out, given));
    PyArrayObject *x = native_dense(args[0]);
    PyArrayObject *made = there ? (PyArrayObject *)Py_NewRef(options[OUT]) : x ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type) : NULL;
    if (made) {
        native_around(x, (int)dim, &of->before, &of->after);
        of->n = PyArray_DIM(x, dim);
        of->from = PyArray_BYTES(x);
        of->to = PyArray_BYTES(made);
        run.shorten = loops->shorten[type];
        native_evenly(of->n, native_grain(1 << 14, of->before * of->after), run_slices, &run);
    }
    Py_XDECREF(x);
    if (made && place && !there) {
        const bool written = !PyArray_CopyInto(out, made);
        Py_DECREF(made);
        made = written ? (PyArrayObject *)Py_NewRef(options[OUT]) : NULL;
    }
    return (PyObject *)made;
}

int renorm_init(void) {
    loops = PICK(renorm_loops);
    static const char *const words[OPTIONS] = {"dim", "p", "maxnorm", "out"};
    return native_intern(names, words, OPTIONS);
}

const native_spec renorm_kernels[] = {
    {"renorm", run_renorm, NULL},
    {NULL, NULL, NULL},
};
