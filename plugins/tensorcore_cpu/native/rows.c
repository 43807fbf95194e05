/* What the families that work on rows, planes and losses share. */
#include "rows.h"

#include "cast.h"
#include "index.h"
#include "plan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(index_loops, index_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

enum {
    PIECE = 512, MOST_BYTES = 8, /* elements that are made at a time, and of each */
    LINE = 64,
    COPIED = 1 << 15, /* elements that are worth a thread */
};

static PyObject *reduction_names[REDUCTION_UNKNOWN];

native_type native_real_type(PyObject *object) {
    native_type type = native_array_type(object);
    return type == TYPE_F32 || type == TYPE_F64 ? type : TYPE_NONE;
}

static void run_loop(void *loop, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    (*(native_loop *)loop)(data, steps, count);
}

typedef struct {
    native_loop loop;
    int inputs, size; /* bytes of the result's element */
} streamed;

/* A result that goes past the caches, whose lines are not fetched first: pieces of it are made in the first cache. Not in the
   place of an operand, whose lines are there anyway. */
static void run_streamed(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const streamed *run = context;
    const int last = run->inputs;
    bool plain = steps[last] != run->size || run->size > MOST_BYTES || count < PIECE;
    for (int k = 0; k < last; k++)
        plain |= data[k] == data[last];
    if (plain) {
        run->loop(data, steps, count);
        return;
    }
    _Alignas(LINE) char space[PIECE * MOST_BYTES];
    char *at[PLAN_OPERANDS];
    const ptrdiff_t head = -(ptrdiff_t)((uintptr_t)data[last] / (size_t)run->size) & (LINE / run->size - 1);
    if (head)
        run->loop(data, steps, head);
    for (ptrdiff_t begin = head; begin < count; begin += PIECE) {
        const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        for (int k = 0; k < last; k++)
            at[k] = data[k] + begin * steps[k];
        at[last] = space;
        run->loop(at, steps, piece);
        PICK(cast_loops)->stream(data[last] + begin * run->size, space, piece * run->size);
    }
    native_streamed();
}

void native_plan_loop(native_plan *plan, npy_intp grain, native_loop loop, npy_intp past) {
    const int last = plan->operands - 1;
    streamed run = {loop, last, plan->sizes[last]};
    if (plan->count * run.size >= past)
        native_plan_run(plan, grain, run_streamed, &run);
    else
        native_plan_run(plan, grain, run_loop, &loop);
}

typedef struct {
    native_loop loop;
    int operands;
    char *data[PLAN_OPERANDS];
    ptrdiff_t steps[PLAN_OPERANDS];
} dense;

static void run_dense(void *context, npy_intp begin, npy_intp end) {
    const dense *run = context;
    char *at[PLAN_OPERANDS];
    for (int k = 0; k < run->operands; k++)
        at[k] = run->data[k] + begin * run->steps[k];
    run->loop(at, run->steps, end - begin);
}

PyObject *native_dense_loop(const native_operand *operands, int inputs, native_type type, PyObject *out, npy_intp grain,
                            native_loop loop, npy_intp past) {
    PyArrayObject *first = NULL, *made = (PyArrayObject *)out;
    if (out && (native_array_type(out) != type || !PyArray_ISCARRAY(made)))
        return NULL;
    dense run = {.loop = loop, .operands = inputs + 1};
    for (int k = 0; k < inputs; k++) {
        PyArrayObject *array = operands[k].array;
        run.data[k] = array ? PyArray_BYTES(array) : (char *)operands[k].data;
        run.steps[k] = array ? PyArray_ITEMSIZE(array) : 0;
        if (!array)
            continue;
        const bool same = out && run.data[k] == PyArray_BYTES(made) && run.steps[k] == TYPE_SIZE[type] && PyArray_SAMESHAPE(array, made);
        if (!PyArray_IS_C_CONTIGUOUS(array) || (out && !same && native_overlap(array, made)))
            return NULL;
        if (first && PyArray_NDIM(first) && PyArray_NDIM(array) && !PyArray_SAMESHAPE(array, first))
            return NULL;
        first = first && PyArray_NDIM(first) ? first : array;
        run.steps[k] = PyArray_NDIM(array) ? run.steps[k] : 0;
    }
    const npy_intp count = first ? PyArray_SIZE(first) : past;
    if (count * TYPE_SIZE[type] >= past || (out && !PyArray_SAMESHAPE(made, first)))
        return NULL;
    made = out ? (PyArrayObject *)Py_NewRef(out) : native_empty(PyArray_NDIM(first), PyArray_DIMS(first), type);
    if (!made)
        return NULL;
    run.data[inputs] = PyArray_BYTES(made);
    run.steps[inputs] = TYPE_SIZE[type];
    npy_intp bytes = 0;
    for (int k = 0; k <= inputs; k++)
        bytes += count * run.steps[k];
    native_passing(count, grain, bytes, run_dense, &run);
    return (PyObject *)made;
}

PyArrayObject *native_flipped(PyArrayObject *x, native_type type, const npy_intp *dims, int count, const int *axes) {
    native_operand operand = {.array = x};
    native_plan plan;
    if (!native_plan_inputs(&plan, &operand, 1))
        return NULL;
    for (int k = 0; k < count; k++) {
        const npy_intp i = dims[k];
        if (i < 0 || i >= plan.ndim)
            return NULL;
        plan.data[0] += (plan.shape[i] - 1) * plan.steps[0][i];
        plan.steps[0][i] = -plan.steps[0][i];
    }
    PyArrayObject *made = axes ? native_empty_ordered(plan.ndim, plan.shape, type, axes) : native_empty(plan.ndim, plan.shape, type);
    if (!made || !plan.count)
        return made;
    PyObject *written = native_plan_result(&plan, &operand, type, (PyObject *)made);
    Py_DECREF(made);
    if (!written)
        return NULL;
    native_plan_copy(&plan, COPIED);
    return (PyArrayObject *)written;
}

PyArrayObject *native_dense(PyObject *object) {
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_IS_C_CONTIGUOUS(array))
        return (PyArrayObject *)Py_NewRef(object);
    const native_type type = native_array_type(object);
    PyArrayObject *made = type == TYPE_NONE ? NULL : native_flipped(array, type, NULL, 0, NULL);
    return made || PyErr_Occurred() ? made : (PyArrayObject *)PyArray_NewCopy(array, NPY_CORDER);
}

#define NOT_ZERO(suffix, type)                                                                                \
    static void not_zero_##suffix(const type *parts, uint8_t *made, npy_intp count) {                         \
        for (npy_intp i = 0; i < count; i++)                                                                  \
            made[i] = (parts[2 * i] != 0) | (parts[2 * i + 1] != 0);                                          \
    }
NOT_ZERO(f32, float)
NOT_ZERO(f64, double)

PyArrayObject *native_not_zero(PyObject *array) {
    PyArrayObject *x = native_dense(array), *made = x ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_BOOL) : NULL;
    if (made && native_complex_type(array) == TYPE_F32)
        not_zero_f32(PyArray_DATA(x), PyArray_DATA(made), PyArray_SIZE(x));
    else if (made)
        not_zero_f64(PyArray_DATA(x), PyArray_DATA(made), PyArray_SIZE(x));
    Py_XDECREF(x);
    return made;
}

bool native_uniform(PyArrayObject *x) {
    for (int i = 0; i < PyArray_NDIM(x); i++)
        if (PyArray_DIM(x, i) != 1 && PyArray_STRIDE(x, i))
            return false;
    return true;
}

bool native_rows_apart(PyArrayObject *x, npy_intp n, npy_intp *step) {
    npy_intp length = 1, rows = 1, size = PyArray_ITEMSIZE(x);
    *step = n * size;
    for (int i = PyArray_NDIM(x) - 1; i >= 0; i--) {
        const npy_intp count = PyArray_DIM(x, i), stride = PyArray_STRIDE(x, i);
        if (count == 1)
            continue;
        if (length < n) {
            if (stride != length * size)
                return false;
            length *= count;
        } else {
            if (rows == 1)
                *step = stride;
            else if (stride != rows * *step)
                return false;
            rows *= count;
        }
    }
    return length == n; /* a dim that rows divide ends elsewhere */
}

bool native_lines_of(PyArrayObject *array, npy_intp n, native_lines *lines) {
    npy_intp step = n * PyArray_ITEMSIZE(array);
    if (!PyArray_IS_C_CONTIGUOUS(array) && native_uniform(array)) {
        const native_start start = {PyArray_BYTES(array), 0, (int)PyArray_ITEMSIZE(array)};
        lines->owner = native_empty(1, &n, native_array_type((PyObject *)array));
        if (lines->owner)
            native_begin_with(&start, PyArray_BYTES(lines->owner), 0, n);
        step = 0;
    } else if (PyArray_IS_C_CONTIGUOUS(array) || (native_rows_apart(array, n, &step) && step % PyArray_ITEMSIZE(array) == 0)) {
        lines->owner = (PyArrayObject *)Py_NewRef((PyObject *)array);
    } else {
        step = n * PyArray_ITEMSIZE(array);
        lines->owner = native_dense((PyObject *)array);
    }
    lines->step = step / PyArray_ITEMSIZE(array);
    lines->data = lines->owner ? PyArray_DATA(lines->owner) : NULL;
    return lines->owner != NULL;
}

void native_around(PyArrayObject *array, int dim, npy_intp *before, npy_intp *after) {
    *before = *after = 1;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (i != dim)
            *(i < dim ? before : after) *= PyArray_DIM(array, i);
}

native_reduction native_reduction_named(PyObject *name) {
    for (int i = 0; name && PyUnicode_Check(name) && i < REDUCTION_UNKNOWN; i++)
        if (name == reduction_names[i] || !PyUnicode_Compare(name, reduction_names[i]))
            return (native_reduction)i;
    return REDUCTION_UNKNOWN;
}

PyObject *native_number_array(double number, native_type type) {
    PyArrayObject *made = native_empty(0, NULL, type);
    if (made && type == TYPE_F32)
        *(float *)PyArray_DATA(made) = (float)number;
    else if (made)
        *(double *)PyArray_DATA(made) = number;
    return (PyObject *)made;
}

double native_number_in(PyArrayObject *array) {
    return PyArray_TYPE(array) == NPY_FLOAT ? *(float *)PyArray_DATA(array) : *(double *)PyArray_DATA(array);
}

typedef struct {
    native_part part;
    void *context;
    npy_intp grain;
    double *sums;
} sum_state;

static void run_parts(void *argument, npy_intp begin, npy_intp end) {
    const sum_state *state = argument;
    for (; begin < end; begin += state->grain) {
        npy_intp stop = begin + state->grain < end ? begin + state->grain : end;
        state->sums[begin / state->grain] = state->part(state->context, begin, stop);
    }
}

bool native_sum_of_parts(npy_intp count, npy_intp grain, native_part part, void *context, double *sum) {
    double few[16];
    npy_intp parts = (count + grain - 1) / grain;
    double *sums = parts <= 16 ? few : malloc((size_t)parts * sizeof *sums);
    if (!sums) {
        PyErr_NoMemory();
        return false;
    }
    sum_state state = {part, context, grain, sums};
    if (count)
        native_parallel(count, grain, run_parts, &state);
    long double total = 0;
    for (npy_intp i = 0; i < parts; i++)
        total += sums[i];
    *sum = (double)total;
    if (sums != few)
        free(sums);
    return true;
}

int rows_init(void) {
    reduction_names[REDUCTION_NONE] = PyUnicode_InternFromString("none");
    reduction_names[REDUCTION_MEAN] = PyUnicode_InternFromString("mean");
    reduction_names[REDUCTION_SUM] = PyUnicode_InternFromString("sum");
    return reduction_names[0] && reduction_names[1] && reduction_names[2] ? 0 : -1;
}

/* Indices and copies */

typedef struct {
    const int64_t *index;
    npy_intp size;
    atomic_bool outside;
} inside_run;

static void look_inside(void *context, npy_intp begin, npy_intp end) {
    inside_run *run = context;
    if (!PICK(index_loops)->inside(run->index + begin, end - begin, run->size))
        atomic_store(&run->outside, true);
}

bool native_inside(const int64_t *index, npy_intp count, npy_intp size) {
    inside_run run = {.index = index, .size = size};
    if (count)
        native_evenly(count, 1 << 15, look_inside, &run);
    return !atomic_load(&run.outside);
}

PyArrayObject *native_index_inside(PyObject *index, npy_intp size) {
    PyArrayObject *made = native_array_type(index) == TYPE_I64 ? native_dense(index) : NULL;
    if (made && !native_inside(PyArray_DATA(made), PyArray_SIZE(made), size))
        Py_CLEAR(made);
    return made;
}

typedef struct {
    char *to;
    const char *from;
    npy_intp whole;
} byte_copy;

static void copy_bytes(void *context, npy_intp begin, npy_intp end) {
    const byte_copy *run = context;
    native_move(run->to + begin, run->from + begin, end - begin, run->whole);
}

PyArrayObject *native_copied(PyArrayObject *x, native_type type) {
    if (!PyArray_IS_C_CONTIGUOUS(x))
        return native_dense((PyObject *)x);
    PyArrayObject *made = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (made && PyArray_SIZE(x) > 0) {
        byte_copy run = {PyArray_BYTES(made), PyArray_BYTES(x), PyArray_NBYTES(x)};
        native_passing(PyArray_NBYTES(x), 1 << 17, 2 * PyArray_NBYTES(x), copy_bytes, &run);
    }
    return made;
}

PyArrayObject *native_started(PyArrayObject *x, native_type type, native_start *start) {
    const bool one = native_uniform(x);
    *start = (native_start){NULL, one ? 0 : TYPE_SIZE[type], TYPE_SIZE[type]};
    if (!one && !PyArray_IS_C_CONTIGUOUS(x))
        return native_copied(x, type);
    start->from = PyArray_BYTES(x);
    return native_empty(PyArray_NDIM(x), PyArray_DIMS(x), type);
}

void native_begin_with(const native_start *start, char *made, npy_intp begin, npy_intp count) {
    static const char NOTHING[8];
    const size_t size = (size_t)start->size;
    if (!start->from || !count)
        return;
    made += begin * start->size;
    if (start->step) {
        memcpy(made, start->from + begin * start->size, (size_t)count * size);
    } else if (!memcmp(start->from, NOTHING, size)) {
        memset(made, 0, (size_t)count * size);
    } else {
        for (npy_intp i = 0; i < count; i++)
            memcpy(made + i * start->size, start->from, size);
    }
}
