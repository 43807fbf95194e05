/* LSTM, GRU and Elman's network over a whole sequence, forward and backward: what they take. */
#include "recurrent_steps.h"

#include "blas.h"
#include "gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES, REVERSE, NONLINEARITY, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];

static const ptrdiff_t GATES[] = {4, 3, 1};

/* Arguments */

static PyArrayObject *contiguous(PyObject *object, native_type type) {
    if (!object || object == Py_None || native_array_type(object) != type)
        return NULL;
    return (PyArrayObject *)PyArray_GETCONTIGUOUS((PyArrayObject *)object);
}

static void end_call(recurrent_call *of) {
    Py_CLEAR(of->x);
    Py_CLEAR(of->weight);
    Py_CLEAR(of->bias);
    Py_CLEAR(of->h0);
    Py_CLEAR(of->c0);
    free(of->first);
    of->first = NULL;
}

static bool read_steps(recurrent_call *of, PyObject *sizes) {
    if (!sizes || !PyTuple_CheckExact(sizes))
        return false;
    of->steps = PyTuple_GET_SIZE(sizes);
    of->first = malloc((size_t)(2 * of->steps + 1) * sizeof *of->first);
    if (!of->first)
        return false;
    of->count = of->first + of->steps;
    ptrdiff_t start = 0;
    for (ptrdiff_t i = 0; i < of->steps; i++) {
        const ptrdiff_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i)), at = of->reverse ? of->steps - 1 - i : i;
        if (n < 1 || n > of->batch)
            return false;
        of->first[at] = start;
        of->count[at] = n;
        start += n;
    }
    return start == of->rows;
}

/* Natives gates, weight, (bias of a GRU,) h0, (c0 of an LSTM). False where the call is not for us. */
static bool read_call(recurrent_call *of, recurrent_network kind, PyObject *const *natives, PyObject **given) {
    const bool middle = kind == GRU;
    *of = (recurrent_call){.kind = kind, .gates = GATES[kind], .type = native_array_type(natives[0])};
    if ((of->type != TYPE_F32 && of->type != TYPE_F64) || native_array_type(natives[1]) != of->type || !given[REVERSE])
        return false;
    of->reverse = given[REVERSE] == Py_True;
    if (kind == RNN) {
        if (!given[NONLINEARITY] || !PyUnicode_Check(given[NONLINEARITY]))
            return false;
        of->relu = PyUnicode_CompareWithASCIIString(given[NONLINEARITY], "relu") == 0;
    }
    of->weight = (PyArrayObject *)Py_NewRef(natives[1]);
    of->x = contiguous(natives[0], of->type);
    of->h0 = contiguous(natives[2 + middle], of->type);
    if (kind == LSTM)
        of->c0 = contiguous(natives[3], of->type);
    if (middle)
        of->bias = contiguous(natives[2], of->type);
    if (!of->x || !of->h0 || (kind == LSTM && !of->c0) || (middle && natives[2] != Py_None && !of->bias) ||
        PyArray_NDIM(of->x) != 2 || PyArray_NDIM(of->h0) != 2 || PyArray_NDIM(of->weight) != 2)
        return false;
    of->rows = PyArray_DIM(of->x, 0);
    of->batch = PyArray_DIM(of->h0, 0);
    of->size = PyArray_DIM(of->h0, 1);
    const npy_intp bytes = TYPE_SIZE[of->type];
    return of->size > 0 && of->rows > 0 && PyArray_DIM(of->x, 1) == of->gates * of->size &&
           PyArray_DIM(of->weight, 0) == of->gates * of->size && PyArray_DIM(of->weight, 1) == of->size &&
           PyArray_STRIDE(of->weight, 0) % bytes == 0 && PyArray_STRIDE(of->weight, 1) % bytes == 0 &&
           (!of->c0 || PyArray_SAMESHAPE(of->c0, of->h0)) &&
           (!of->bias || PyArray_SIZE(of->bias) == of->gates * of->size) && read_steps(of, given[SIZES]);
}

static PyArrayObject *new_rows(const recurrent_call *of, ptrdiff_t width) {
    return native_empty(2, (npy_intp[]){of->rows, width}, of->type);
}

static PyArrayObject *copy_of(PyArrayObject *array) { return (PyArrayObject *)PyArray_NewCopy(array, NPY_CORDER); }

/* A tuple that takes the references over, NULL meaning None; drops all of them where `failed`. */
static PyObject *results(PyArrayObject **made, int count, bool failed) {
    PyObject *tuple = failed ? NULL : PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        if (tuple)
            PyTuple_SET_ITEM(tuple, i, made[i] ? (PyObject *)made[i] : Py_NewRef(Py_None));
        else
            Py_XDECREF(made[i]);
    }
    if (!tuple && !PyErr_Occurred())
        PyErr_NoMemory();
    return tuple;
}

/* Entries */

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const recurrent_network kind = *(const recurrent_network *)kernel->data;
    PyObject *given[OPTIONS];
    recurrent_call of = {0};
    if (nargs != (kind == RNN ? 3 : 4) || !native_options(args, nargs, kwnames, names, OPTIONS, given) ||
        !read_call(&of, kind, args, given)) {
        end_call(&of);
        PyErr_Clear();
        return NULL;
    }
    PyArrayObject *made = new_rows(&of, of.size), *h = copy_of(of.h0), *c = kind == LSTM ? copy_of(of.c0) : NULL;
    PyArrayObject *acts = new_rows(&of, of.gates * of.size), *prev = new_rows(&of, of.size);
    PyArrayObject *inner = kind == RNN ? NULL : new_rows(&of, of.size);
    PyArrayObject *before = kind == LSTM ? new_rows(&of, of.size) : NULL;
    bool done = made && h && acts && prev && (kind != LSTM || (c && before)) && (kind == RNN || inner);
    if (done) {
        const recurrent_part all = {
            .size = of.size, .relu = of.relu, .x = PyArray_DATA(of.x), .bias = of.bias ? PyArray_DATA(of.bias) : NULL,
            .acts = PyArray_DATA(acts), .made = PyArray_DATA(made), .prev = PyArray_DATA(prev), .h = PyArray_DATA(h),
            .c = c ? PyArray_DATA(c) : NULL, .inner = inner ? PyArray_DATA(inner) : NULL,
            .before = before ? PyArray_DATA(before) : NULL,
        };
        done = recurrent_run(&of, &all, false);
    }
    end_call(&of);
    if (kind == LSTM)
        return results((PyArrayObject *[]){made, h, c, acts, prev, before, inner}, 7, !done);
    if (kind == GRU)
        return results((PyArrayObject *[]){made, h, acts, prev, inner}, 5, !done);
    return results((PyArrayObject *[]){made, h, acts, prev}, 4, !done);
}

/* The gradient that came for a result of the forward kernel. Answers false where it is none that we take. */
static bool read_gradient(PyObject *list, int at, PyArrayObject *like, native_type type, PyArrayObject **made) {
    PyObject *one = PyList_GET_ITEM(list, at);
    *made = contiguous(one, type);
    return one == Py_None || (*made && PyArray_SAMESHAPE(*made, like));
}

/* The state's gradient, to be changed. */
static PyArrayObject *begin_state(PyArrayObject *gradient, PyArrayObject *like, native_type type) {
    if (gradient)
        return copy_of(gradient);
    PyArrayObject *made = native_empty(2, PyArray_DIMS(like), type);
    if (made)
        memset(PyArray_DATA(made), 0, (size_t)PyArray_NBYTES(made));
    return made;
}

/* Rows of the state before the first step that add nothing to the gradient of the weight: those of a state of zeros, where what
   they are multiplied by is finite. */
static ptrdiff_t rows_of_zeros(const recurrent_call *of, const recurrent_part *all) {
    if (of->reverse)
        return 0;
    const ptrdiff_t count = of->count[0] * of->size, wide = count * of->gates;
    bool nothing = true;
    for (ptrdiff_t i = 0; nothing && i < count; i++)
        nothing = of->type == TYPE_F32 ? ((const float *)all->prev)[i] == 0 : ((const double *)all->prev)[i] == 0;
    for (ptrdiff_t i = 0; nothing && i < wide; i++)
        nothing = of->type == TYPE_F32 ? isfinite(((const float *)all->dz)[i]) : isfinite(((const double *)all->dz)[i]);
    return nothing && of->count[0] < of->rows ? of->count[0] : 0;
}

static PyArrayObject *sums_of_rows(PyArrayObject *x, native_type type) {
    const npy_intp rows = PyArray_DIM(x, 0), width = PyArray_DIM(x, 1);
    PyArrayObject *made = native_empty(1, &width, type);
    for (npy_intp j = 0; made && j < width; j++) {
        double sum = 0;
        for (npy_intp r = 0; r < rows; r++)
            sum += type == TYPE_F32 ? ((const float *)PyArray_DATA(x))[r * width + j]
                                    : ((const double *)PyArray_DATA(x))[r * width + j];
        if (type == TYPE_F32)
            ((float *)PyArray_DATA(made))[j] = (float)sum;
        else
            ((double *)PyArray_DATA(made))[j] = sum;
    }
    return made;
}

static bool is_saved(PyObject *object, const recurrent_call *of, ptrdiff_t width) {
    return native_array_type(object) == of->type && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)object) &&
           PyArray_SIZE((PyArrayObject *)object) == of->rows * width;
}

/* g, what the forward kernel got, and what it kept: acts, prev, then before and inner of an LSTM, inner of a GRU. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const recurrent_network kind = *(const recurrent_network *)kernel->data;
    PyObject *given[OPTIONS];
    const int inputs = kind == RNN ? 3 : 4, kept = kind == LSTM ? 4 : kind == GRU ? 3 : 2;
    recurrent_call of = {0};
    PyArrayObject *grads = NULL, *of_h = NULL, *of_c = NULL;
    bool ours = nargs == 1 + inputs + kept && PyList_CheckExact(args[0]) &&
                PyList_GET_SIZE(args[0]) == (kind == LSTM ? 3 : 2) &&
                native_options(args, nargs, kwnames, names, OPTIONS, given) && given[NEEDS] &&
                PyTuple_CheckExact(given[NEEDS]) && PyTuple_GET_SIZE(given[NEEDS]) == inputs &&
                read_call(&of, kind, args + 1, given);
    PyObject *const *saved = args + 1 + inputs;
    for (int i = 0; ours && i < kept; i++)
        ours = is_saved(saved[i], &of, i ? of.size : of.gates * of.size);
    npy_intp shape[2] = {of.rows, of.size};
    PyArrayObject *like = ours ? (PyArrayObject *)saved[1] : NULL;
    ours = ours && PyArray_NDIM(like) == 2 && PyArray_CompareLists(PyArray_DIMS(like), shape, 2) &&
           read_gradient(args[0], 0, like, of.type, &grads) && read_gradient(args[0], 1, of.h0, of.type, &of_h) &&
           (kind != LSTM || read_gradient(args[0], 2, of.h0, of.type, &of_c));
    if (!ours) {
        end_call(&of);
        Py_XDECREF(grads);
        Py_XDECREF(of_h);
        Py_XDECREF(of_c);
        PyErr_Clear();
        return NULL;
    }
    recurrent_part all = {.size = of.size, .relu = of.relu};
    PyArrayObject *dh = begin_state(of_h, of.h0, of.type), *dc = kind == LSTM ? begin_state(of_c, of.c0, of.type) : NULL;
    PyArrayObject *dx = new_rows(&of, of.gates * of.size), *dz = kind == GRU ? new_rows(&of, of.gates * of.size) : NULL;
    PyArrayObject *dw = NULL, *db = NULL;
    bool done = dh && dx && (kind != LSTM || dc) && (kind != GRU || dz);
    if (done) {
        all.acts = PyArray_DATA((PyArrayObject *)saved[0]);
        all.prev = PyArray_DATA(like);
        all.before = kind == LSTM ? PyArray_DATA((PyArrayObject *)saved[2]) : NULL;
        all.inner = kind == RNN ? NULL : PyArray_DATA((PyArrayObject *)saved[kept - 1]);
        all.grads = grads ? PyArray_DATA(grads) : NULL;
        all.dh = PyArray_DATA(dh);
        all.dc = dc ? PyArray_DATA(dc) : NULL;
        all.dx = PyArray_DATA(dx);
        all.dz = PyArray_DATA(dz ? dz : dx);
        of.for_h0 = PyTuple_GET_ITEM(given[NEEDS], kind == GRU ? 3 : 2) == Py_True;
        done = recurrent_run(&of, &all, true);
    }
    if (done && PyTuple_GET_ITEM(given[NEEDS], 1) == Py_True) {
        const ptrdiff_t wide = of.gates * of.size, none = rows_of_zeros(&of, &all), bytes = TYPE_SIZE[of.type];
        dw = native_empty(2, (npy_intp[]){wide, of.size}, of.type);
        gemm_job job = {.rows = wide, .columns = of.size, .inner = of.rows - none,
                        .left = (const char *)all.dz + none * wide * bytes, .left_row = 1, .left_inner = wide,
                        .right = (const char *)all.prev + none * of.size * bytes, .right_inner = of.size, .right_column = 1,
                        .made = dw ? PyArray_DATA(dw) : NULL, .made_row = of.size};
        done = dw && native_blas_ready(wide * of.size * of.rows) && gemm_run(of.type, &job);
    }
    if (done && kind == GRU && PyTuple_GET_ITEM(given[NEEDS], 2) == Py_True) {
        db = sums_of_rows(dz, of.type);
        done = db != NULL;
    }
    if (!of.for_h0)
        Py_CLEAR(dh);
    Py_XDECREF(dz);
    Py_XDECREF(grads);
    Py_XDECREF(of_h);
    Py_XDECREF(of_c);
    end_call(&of);
    if (kind == LSTM)
        return results((PyArrayObject *[]){dx, dw, dh, dc}, 4, !done);
    if (kind == GRU)
        return results((PyArrayObject *[]){dx, dw, db, dh}, 4, !done);
    return results((PyArrayObject *[]){dx, dw, dh}, 3, !done);
}

int recurrent_init(void) {
    static const char *const words[OPTIONS] = {"sizes", "reverse", "nonlinearity", "needs"};
    return native_intern(names, words, OPTIONS);
}

const native_spec recurrent_kernels[] = {
    {"lstm_steps", run_forward, &(const recurrent_network){LSTM}},
    {"gru_steps", run_forward, &(const recurrent_network){GRU}},
    {"rnn_steps", run_forward, &(const recurrent_network){RNN}},
    {"lstm_steps_backward", run_backward, &(const recurrent_network){LSTM}},
    {"gru_steps_backward", run_backward, &(const recurrent_network){GRU}},
    {"rnn_steps_backward", run_backward, &(const recurrent_network){RNN}},
    {NULL, NULL, NULL},
};
