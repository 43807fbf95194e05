/* The softmax of values that have a number each, over those of the same number, and its gradient. */
#include "rows.h"

#include <math.h>
#include <string.h>

enum { COUNT, LOG, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"count", "log", "needs"};

typedef struct {
    const void *x, *g; /* g is NULL forward */
    const int64_t *line;
    void *made, *most, *sums;
    npy_intp stored, lines;
    bool log;
} softmax_call;

/* Of the values e**(x - most) is left in `made`, and its sums. */
#define OF_REAL(REAL, EXP, LOGARITHM)                                                                         \
    static void powers_##REAL(const softmax_call *call) {                                                     \
        const REAL *x = call->x;                                                                              \
        REAL *made = call->made, *most = call->most, *sums = call->sums;                                      \
        for (npy_intp i = 0; i < call->lines; i++)                                                            \
            most[i] = (REAL)-INFINITY, sums[i] = 0;                                                           \
        for (npy_intp k = 0; k < call->stored; k++) {                                                         \
            REAL *of = most + call->line[k];                                                                  \
            *of = x[k] > *of || x[k] != x[k] ? x[k] : *of;                                                    \
        }                                                                                                     \
        for (npy_intp k = 0; k < call->stored; k++)                                                           \
            sums[call->line[k]] += made[k] = EXP(x[k] - most[call->line[k]]);                                 \
    }                                                                                                         \
    static void forward_##REAL(const softmax_call *call) {                                                    \
        const REAL *x = call->x;                                                                              \
        REAL *made = call->made, *most = call->most, *sums = call->sums;                                      \
        powers_##REAL(call);                                                                                  \
        for (npy_intp i = 0; call->log && i < call->lines; i++)                                               \
            sums[i] = LOGARITHM(sums[i]);                                                                     \
        for (npy_intp k = 0; k < call->stored; k++) {                                                         \
            const int64_t of = call->line[k];                                                                 \
            made[k] = call->log ? x[k] - most[of] - sums[of] : made[k] / sums[of];                            \
        }                                                                                                     \
    }                                                                                                         \
    static void backward_##REAL(const softmax_call *call) {                                                   \
        const REAL *g = call->g;                                                                              \
        REAL *made = call->made, *totals = call->most, *sums = call->sums;                                    \
        powers_##REAL(call);                                                                                  \
        memset(totals, 0, sizeof(REAL) * (size_t)call->lines);                                                \
        for (npy_intp k = 0; k < call->stored; k++) {                                                         \
            made[k] /= sums[call->line[k]];                                                                   \
            totals[call->line[k]] += call->log ? g[k] : g[k] * made[k];                                       \
        }                                                                                                     \
        for (npy_intp k = 0; k < call->stored; k++) {                                                         \
            const REAL total = totals[call->line[k]];                                                         \
            made[k] = call->log ? g[k] - made[k] * total : made[k] * (g[k] - total);                          \
        }                                                                                                     \
    }

OF_REAL(float, expf, logf)
OF_REAL(double, exp, log)

/* (values, line), or before them what was sent. */
static PyArrayObject *run(PyObject *const *args, PyObject *sent, PyObject *const *options) {
    const native_type type = native_real_type(args[0]);
    double count;
    if (type == TYPE_NONE || PyArray_NDIM((PyArrayObject *)args[0]) != 1 || !options[LOG] || !native_double(options[COUNT], &count) ||
        (sent && (native_real_type(sent) != type || !PyArray_SAMESHAPE((PyArrayObject *)sent, (PyArrayObject *)args[0]))))
        return NULL;
    PyArrayObject *x = native_dense(args[0]), *g = sent ? native_dense(sent) : NULL, *line = NULL, *made = NULL;
    const size_t size = (size_t)TYPE_SIZE[type] * ((size_t)count + 1);
    char *space = NULL;
    softmax_call call = {.stored = PyArray_DIM((PyArrayObject *)args[0], 0), .lines = (npy_intp)count, .log = options[LOG] == Py_True};
    if (x && (g || !sent) && (line = native_index_inside(args[1], call.lines)) && PyArray_SIZE(line) == call.stored &&
        ((space = native_scratch(2 * size)) || PyErr_NoMemory()) && (made = native_empty(1, &call.stored, type))) {
        call.x = PyArray_DATA(x);
        call.g = g ? PyArray_DATA(g) : NULL;
        call.line = PyArray_DATA(line);
        call.made = PyArray_DATA(made);
        call.most = space;
        call.sums = space + size;
        Py_BEGIN_ALLOW_THREADS;
        if (type == TYPE_F32)
            (sent ? backward_float : forward_float)(&call);
        else
            (sent ? backward_double : forward_double)(&call);
        Py_END_ALLOW_THREADS;
    }
    if (space)
        native_scratch_free(space, 2 * size);
    Py_XDECREF(x);
    Py_XDECREF(g);
    Py_XDECREF(line);
    return made;
}

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    if (nargs != 2 || !kwnames || !native_options(args, nargs, kwnames, names, NEEDS, options))
        return NULL;
    return (PyObject *)run(args, NULL, options);
}

static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    if (nargs != 3 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    PyArrayObject *made = run(args + 1, args[0], options);
    PyObject *answer = made ? PyTuple_Pack(2, made, Py_None) : NULL;
    Py_XDECREF(made);
    return answer;
}

int sparse_softmax_init(void) { return native_intern(names, NAMES, OPTIONS); }

const native_spec sparse_softmax_kernels[] = {
    {"sparse_softmax", run_forward, NULL},
    {"sparse_softmax_backward", run_backward, NULL},
    {NULL, NULL, NULL},
};
