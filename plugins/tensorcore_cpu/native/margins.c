/* multi_margin_loss and multilabel_margin_loss, and their gradients. */
#include "margins.h"

#include "rows.h"

#include <stdlib.h>

DECLARE_LOOPS(margin_loops, margin_loops);

static const margin_loops *loops;

enum { P, MARGIN, REDUCTION, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 14 }; /* scores a thread */

/* One call: its operands in row-major order. */
typedef struct {
    margin_shape shape;
    const margin_of_real *of;
    native_type type;
    native_reduction reduction;
    npy_intp rows;
    PyArrayObject *x, *target, *weight, *g;
    const void *slope;
    npy_intp step;
    double factor;
    double *sums;
    void *out;
    _Atomic bool short_of_memory;
} margin_call;

static void end_call(margin_call *call) {
    Py_XDECREF(call->x);
    Py_XDECREF(call->target);
    Py_XDECREF(call->weight);
    Py_XDECREF(call->g);
}

/* Fills the call from (x, target[, weight]) and the options; false where it is not for this kernel. */
static bool begin_call(margin_call *call, bool several, PyObject *const *args, PyObject *const *options) {
    *call = (margin_call){.type = native_real_type(args[0]), .reduction = native_reduction_named(options[REDUCTION])};
    if (call->type == TYPE_NONE || call->reduction == REDUCTION_UNKNOWN || native_array_type(args[1]) != TYPE_I64)
        return false;
    PyArrayObject *x = (PyArrayObject *)args[0], *target = (PyArrayObject *)args[1];
    const int wanted = several ? 2 : 1;
    if (PyArray_NDIM(x) != 2 || !PyArray_SIZE(x) || PyArray_NDIM(target) != wanted ||
        !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(target), wanted))
        return false;
    call->rows = PyArray_DIM(x, 0);
    call->shape.n = PyArray_DIM(x, 1);
    PyObject *weight = several ? Py_None : args[2];
    if (!several) {
        if (!options[P] || !PyLong_Check(options[P]) || !native_double(options[MARGIN], &call->shape.margin))
            return false;
        call->shape.p = (int)PyLong_AsLong(options[P]);
        if (call->shape.p != 1 && call->shape.p != 2)
            return false;
        if (weight != Py_None && (native_real_type(weight) != call->type || PyArray_NDIM((PyArrayObject *)weight) != 1 ||
                                  PyArray_DIM((PyArrayObject *)weight, 0) != call->shape.n))
            return false;
    }
    call->target = native_dense(args[1]);
    if (!call->target)
        return false;
    call->shape.target = PyArray_DATA(call->target);
    bool known = true; /* NumPy's kernel says what is wrong with a class that is none */
    for (npy_intp i = 0, count = PyArray_SIZE(call->target); i < count; i++)
        known &= call->shape.target[i] >= (several ? -1 : 0) && call->shape.target[i] < call->shape.n;
    call->x = known ? native_dense(args[0]) : NULL;
    call->weight = known && weight != Py_None ? native_dense(weight) : NULL;
    if (!call->x || (weight != Py_None && !call->weight)) {
        end_call(call);
        return false;
    }
    call->shape.weight = call->weight ? PyArray_DATA(call->weight) : NULL;
    call->of = &loops->of[call->type];
    return true;
}

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    margin_call *call = context;
    unsigned char space[1024], *marks = call->shape.n <= (npy_intp)sizeof space ? space : malloc((size_t)call->shape.n);
    if (!marks)
        call->short_of_memory = true;
    else if (call->sums)
        call->of->sums(&call->shape, PyArray_DATA(call->x), call->sums, begin, end, marks);
    else
        call->of->backward(&call->shape, PyArray_DATA(call->x), call->slope, call->step, call->factor, call->out, begin, end,
                           marks);
    if (marks != space)
        free(marks);
}

static void each_row(margin_call *call) {
    /* Several labels are as many rounds over a row. */
    const npy_intp work = call->shape.p ? call->shape.n : call->shape.n * 8;
    native_evenly(call->rows, native_grain(GRAIN, work), run_rows, call);
}

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool several = kernel->data != NULL;
    PyObject *options[OPTIONS], *answer = NULL;
    margin_call call;
    if (nargs != (several ? 2 : 3) || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !begin_call(&call, several, args, options))
        return NULL;
    double space[64];
    call.sums = call.rows <= 64 ? space : malloc((size_t)call.rows * sizeof *call.sums);
    if (call.sums)
        each_row(&call);
    if (!call.sums || call.short_of_memory) {
        PyErr_NoMemory();
    } else if (call.reduction == REDUCTION_NONE) {
        PyArrayObject *made = native_empty(1, &call.rows, call.type);
        for (npy_intp i = 0; made && i < call.rows; i++) {
            if (call.type == TYPE_F32)
                ((float *)PyArray_DATA(made))[i] = (float)call.sums[i];
            else
                ((double *)PyArray_DATA(made))[i] = call.sums[i];
        }
        answer = (PyObject *)made;
    } else {
        double total = 0;
        for (npy_intp i = 0; i < call.rows; i++)
            total += call.sums[i];
        answer = native_number_array(call.reduction == REDUCTION_MEAN ? total / (double)call.rows : total, call.type);
    }
    if (call.sums != space)
        free(call.sums);
    end_call(&call);
    return answer;
}

/* (g, x, target[, weight]); the gradient of x. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool several = kernel->data != NULL;
    PyObject *options[OPTIONS];
    margin_call call;
    if (nargs != (several ? 3 : 4) || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !begin_call(&call, several, args + 1, options))
        return NULL;
    PyArrayObject *made = NULL;
    const bool one = call.reduction != REDUCTION_NONE;
    if (native_real_type(args[0]) == call.type && PyArray_SIZE((PyArrayObject *)args[0]) == (one ? 1 : call.rows) &&
        (call.g = native_dense(args[0])))
        made = native_empty(2, PyArray_DIMS(call.x), call.type);
    if (made) {
        call.slope = PyArray_DATA(call.g);
        call.step = !one;
        call.factor = 1 / ((double)call.shape.n * (call.reduction == REDUCTION_MEAN ? (double)call.rows : 1));
        call.out = PyArray_DATA(made);
        each_row(&call);
    }
    end_call(&call);
    if (made && call.short_of_memory) {
        PyErr_NoMemory();
        Py_CLEAR(made);
    }
    if (!made)
        return NULL;
    return several ? Py_BuildValue("NO", made, Py_None) : Py_BuildValue("NOO", made, Py_None, Py_None);
}

int margins_init(void) {
    static const char *const words[OPTIONS] = {"p", "margin", "reduction", "needs"};
    loops = PICK(margin_loops);
    return native_intern(names, words, OPTIONS);
}

const native_spec margins_kernels[] = {
    {"multi_margin_loss", run_forward, NULL},
    {"multi_margin_loss_backward", run_backward, NULL},
    {"multilabel_margin_loss", run_forward, "s"},
    {"multilabel_margin_loss_backward", run_backward, "s"},
    {NULL, NULL, NULL},
};
