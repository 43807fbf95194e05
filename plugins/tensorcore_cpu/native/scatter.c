/* What is added at places: index_add, scatter_add, sums of slices; and masked_fill. */
#include "scatter.h"

#include "each.h"
#include "elementwise.h"
#include "plan.h"
#include "rows.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(scatter_loops, scatter_loops);
DECLARE_LOOPS(elementwise_loops, elementwise_loops);

static const scatter_loops *loops;
static const elementwise_loops *elementwise;

enum { DIM, ALPHA, OUT, REDUCE, INCLUDE_SELF, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "alpha", "out", "reduce", "include_self"};
static PyObject *sum_name;

enum {
    GRAIN = 1 << 14, /* elements a thread */
    BATCHES = 8,     /* that are worth sharing out as they are */
    SLICED = 4,      /* elements of a slice that share a number */
    LISTED = 16,     /* elements of a slice from which on it pays to find all that goes to one place */
};

/* Indices */

static bool extremes(PyArrayObject *array, int64_t *low, int64_t *high) {
    loops->bounds(PyArray_DATA(array), PyArray_SIZE(array), low, high);
    return PyArray_SIZE(array) > 0;
}

static PyObject *run_bounds(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    int64_t low = 0, high = -1;
    if (nargs != 1 || kwnames || native_array_type(args[0]) != TYPE_I64)
        return NULL;
    PyArrayObject *index = native_dense(args[0]);
    if (!index)
        return NULL;
    if (!extremes(index, &low, &high)) {
        low = 0;
        high = -1;
    }
    Py_DECREF(index);
    return Py_BuildValue("(LL)", (long long)low, (long long)high);
}

typedef struct {
    slice_sums sums;
    native_type type;
    native_start start;
    place_list list; /* without `first` where the slices are too short for one */
} sum_run;

/* Places from `begin` to `end` of all (before, size): what is added to one of them is added by one thread, in order. */
static void run_sums(void *context, npy_intp begin, npy_intp end) {
    const sum_run *run = context;
    const slice_sums *sums = &run->sums;
    if (!run->list.first)
        native_begin_with(&run->start, sums->into, begin * sums->after, (end - begin) * sums->after);
    if (sums->after == 1 && begin % sums->size == 0 && end % sums->size == 0) {
        loops->add_batches[run->type](sums, begin / sums->size, end / sums->size);
        return;
    }
    while (begin < end) {
        npy_intp batch = begin / sums->size, first = begin % sums->size, rest = sums->size - first;
        npy_intp last = first + (rest < end - begin ? rest : end - begin);
        if (run->list.first)
            loops->add_listed[run->type](sums, &run->list, batch, first, last);
        else
            loops->add_slices[run->type](sums, batch, first, last);
        begin += last - first;
    }
}

bool native_sums_of(native_type type) { return type != TYPE_NONE && loops->add_slices[type]; }

/* The slices of each place in their order. */
static void list_places(const slice_sums *sums, int32_t *first, int32_t *next) {
    memset(first, -1, (size_t)sums->size * sizeof *first);
    for (npy_intp i = sums->count - 1; i >= 0; i--) {
        next[i] = first[sums->index[i]];
        first[sums->index[i]] = (int32_t)i;
    }
}

PyArrayObject *native_sum_slices(PyArrayObject *x, native_type type, bool place, const slice_sums *sums, npy_intp padding) {
    sum_run run = {*sums, type, {NULL}};
    const bool listed = sums->after >= LISTED && sums->count <= INT32_MAX, half = native_is_half(type);
    if (half && !listed)
        return NULL;
    PyArrayObject *made = place ? (PyArrayObject *)Py_NewRef((PyObject *)x) : native_started(x, type, &run.start);
    if (!made)
        return NULL;
    run.sums.into = PyArray_DATA(made);
    const npy_intp places = sums->before * sums->size, threads = native_threads();
    const size_t room = (size_t)(sums->size + sums->count) * sizeof(int32_t);
    int32_t *list = listed ? native_scratch(room) : NULL;
    if (half && !list) {
        Py_DECREF(made);
        return NULL;
    }
    if (list) {
        list_places(sums, list, list + sums->size);
        run.list = (place_list){list, list + sums->size, run.start.from, run.start.from && !run.start.step};
    }
    npy_intp grain = native_grain(2 * GRAIN, sums->after * (1 + sums->count / sums->size));
    /* Each piece looks at all numbers: no more pieces than threads where that is what takes the time. */
    if (!list && grain < (places + threads - 1) / threads)
        grain = (places + threads - 1) / threads;
    if (sums->after == 1 && sums->before >= BATCHES) /* whole ones */
        grain = (grain + sums->size - 1) / sums->size * sums->size;
    native_parallel(places, grain, run_sums, &run);
    if (list)
        native_scratch_free(list, room);
    if (padding >= 0)
        memset(PyArray_BYTES(made) + padding * sums->after * TYPE_SIZE[type], 0, (size_t)(sums->after * TYPE_SIZE[type]));
    return made;
}

/* Sums at places */

/* The array that is written: `out`, which holds the values of x already, or a copy of x. */
static PyArrayObject *target_of(PyObject *x, PyObject *out) {
    if (!native_is_none(out))
        return out == x && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x) && PyArray_ISWRITEABLE((PyArrayObject *)x)
                   ? (PyArrayObject *)Py_NewRef(out) : NULL;
    return NULL;
}

static bool at_dim(PyObject *option, int ndim, int *dim) {
    double value;
    if (!native_double(option, &value) || value < 0 || value >= ndim)
        return false;
    *dim = (int)value;
    return true;
}

/* The source in row-major order, times ALPHA, NULL or a number: a new reference; NULL, with an exception or without. */
static PyArrayObject *scaled(PyArrayObject *source, PyObject *alpha, native_type type) {
    native_operand operands[2];
    double factor = 1;
    PyArrayObject *from = native_dense((PyObject *)source);
    if (!from || !alpha || (native_double(alpha, &factor) && (factor == 1 || (type == TYPE_BOOL && factor))))
        return from;
    PyArrayObject *made = NULL;
    operands[0].array = from;
    if (elementwise->compute[OP_mul][type] && native_number(alpha, type, &operands[1]))
        made = (PyArrayObject *)native_dense_loop(operands, 2, type, NULL, GRAIN, elementwise->compute[OP_mul][type], PY_SSIZE_T_MAX);
    Py_DECREF(from);
    return made;
}

/* x, or `out`, which is x then, and slices of the source times ALPHA along `dim` at the numbers of an index of that dim. */
static PyObject *added_slices(PyArrayObject *x, PyObject *numbers, PyArrayObject *source, int dim, native_type type,
                              PyObject *alpha, PyObject *out) {
    PyArrayObject *index = native_index_inside(numbers, PyArray_DIM(x, dim)), *from = NULL, *made = NULL;
    const bool place = !native_is_none(out);
    bool fits = index && PyArray_SIZE(index) == PyArray_DIM(source, dim);
    for (int i = 0; fits && i < PyArray_NDIM(x); i++)
        fits = i == dim || PyArray_DIM(source, i) == PyArray_DIM(x, i);
    if (place)
        fits = fits && out == (PyObject *)x && PyArray_IS_C_CONTIGUOUS(x) && PyArray_ISWRITEABLE(x) && !native_overlap(x, source) &&
               !native_overlap(x, index);
    if (fits && (from = scaled(source, alpha, type))) {
        slice_sums sums = {NULL, PyArray_DATA(from), PyArray_DATA(index), .count = PyArray_SIZE(index)};
        sums.size = PyArray_DIM(x, dim);
        native_around(x, dim, &sums.before, &sums.after);
        made = native_sum_slices(x, type, place, &sums, -1);
    }
    Py_XDECREF(index);
    Py_XDECREF(from);
    return (PyObject *)made;
}

static PyObject *run_index_add(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    int dim;
    native_type type = nargs == 3 ? native_array_type(args[0]) : TYPE_NONE;
    if (!(native_sums_of(type) || native_is_half(type)) || native_array_type(args[2]) != type || !kwnames ||
        !native_options(args, nargs, kwnames, names, OPTIONS, options))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *source = (PyArrayObject *)args[2];
    if (!at_dim(options[DIM], PyArray_NDIM(x), &dim) || PyArray_NDIM(source) != PyArray_NDIM(x) || !PyArray_SIZE(x))
        return NULL;
    return added_slices(x, args[1], source, dim, type, options[ALPHA], options[OUT]);
}

typedef struct {
    slice_sums sums;
    native_type type;
    native_start start;
    atomic_bool outside;
} place_run;

/* Pieces of (before, after): each place along the dim is summed by one thread. */
static void run_places(void *context, npy_intp begin, npy_intp end) {
    const place_run *run = context;
    if (run->sums.after == 1) {
        loops->add_along[run->type](&run->sums, begin, end);
        return;
    }
    while (begin < end) {
        npy_intp batch = begin / run->sums.after, first = begin % run->sums.after, rest = run->sums.after - first;
        npy_intp last = first + (rest < end - begin ? rest : end - begin);
        loops->add_places[run->type](&run->sums, batch, first, last);
        begin += last - first;
    }
}

/* Along the last dim: as much as the second cache holds is begun, then looked at and added to. */
static void run_rows(void *context, npy_intp begin, npy_intp end) {
    place_run *run = context;
    const slice_sums *sums = &run->sums;
    const npy_intp rows = native_grain(BEGUN / TYPE_SIZE[run->type], sums->size);
    for (; begin < end; begin += rows) {
        const npy_intp last = end - begin < rows ? end : begin + rows;
        native_begin_with(&run->start, sums->into, begin * sums->size, (last - begin) * sums->size);
        if (!loops->add_along[run->type](sums, begin, last)) {
            atomic_store(&run->outside, true);
            return;
        }
    }
}

/* An index whose numbers depend on the place along `dim` alone, as one of that dim: a new reference, or NULL. */
static PyArrayObject *one_for_each_slice(PyArrayObject *index, int dim) {
    for (int i = 0; i < PyArray_NDIM(index); i++)
        if (i != dim && PyArray_STRIDE(index, i) && PyArray_DIM(index, i) != 1)
            return NULL;
    if (PyArray_SIZE(index) < SLICED * PyArray_DIM(index, dim))
        return NULL;
    PyObject *line = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(PyArray_DESCR(index)), 1,
                                          PyArray_DIMS(index) + dim, PyArray_STRIDES(index) + dim, PyArray_DATA(index),
                                          NPY_ARRAY_ALIGNED, NULL);
    if (!line || !PyArray_SetBaseObject((PyArrayObject *)line, Py_NewRef((PyObject *)index)))
        return (PyArrayObject *)line;
    Py_DECREF(line);
    return NULL;
}

/* Sums where index and source have one shape, which is that of x but for the dim; anything else element by element. */
static PyObject *run_scatter(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    int dim;
    native_type type = nargs == 3 ? native_array_type(args[0]) : TYPE_NONE;
    const bool pairs = nargs == 3 && type == TYPE_NONE && native_complex_type(args[0]) != TYPE_NONE;
    if ((type == TYPE_NONE && !pairs) || native_array_type(args[2]) != type || native_array_type(args[1]) != TYPE_I64 || !kwnames ||
        !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[REDUCE] ||
        !PyUnicode_Check(options[REDUCE]) || (!native_is_none(options[OUT]) && options[OUT] != args[0]))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *source = (PyArrayObject *)args[2], *from = NULL, *made = NULL;
    int ndim = PyArray_NDIM(x);
    if (!at_dim(options[DIM], ndim, &dim) || PyArray_NDIM(source) != ndim || !PyArray_SIZE(source))
        return NULL;
    bool sums = native_sums_of(type) && options[INCLUDE_SELF] != Py_False &&
                !PyUnicode_Compare(options[REDUCE], sum_name) && PyArray_NDIM((PyArrayObject *)args[1]) == ndim;
    for (int i = 0; i < ndim && sums; i++)
        sums = (i == dim || PyArray_DIM(source, i) == PyArray_DIM(x, i)) &&
               PyArray_DIM((PyArrayObject *)args[1], i) == PyArray_DIM(source, i);
    if (!sums)
        return native_reduce_each(args, dim, options[REDUCE], options[INCLUDE_SELF] != Py_False, options[OUT] == args[0]);
    if (!native_is_none(options[OUT]) && (native_overlap(x, source) || native_overlap(x, (PyArrayObject *)args[1])))
        return NULL;
    PyArrayObject *line = one_for_each_slice((PyArrayObject *)args[1], dim);
    if (line) {
        made = (PyArrayObject *)added_slices(x, (PyObject *)line, source, dim, type, NULL, options[OUT]);
        Py_DECREF(line);
        return (PyObject *)made;
    }
    if (PyErr_Occurred())
        return NULL;
    place_run run = {{.count = PyArray_DIM(source, dim), .size = PyArray_DIM(x, dim)}, type};
    native_around(x, dim, &run.sums.before, &run.sums.after);
    const bool place = !native_is_none(options[OUT]), rows = !place && run.sums.after == 1;
    PyArrayObject *index = rows ? native_dense(args[1]) : native_index_inside(args[1], run.sums.size);
    if (index && (from = native_dense(args[2])))
        made = place ? target_of(args[0], options[OUT]) : native_started(x, type, &run.start);
    if (made) {
        run.sums.into = PyArray_DATA(made);
        run.sums.from = PyArray_DATA(from);
        run.sums.index = PyArray_DATA(index);
        if (rows) {
            native_evenly(run.sums.before, native_grain(GRAIN, run.sums.count + run.sums.size), run_rows, &run);
            if (atomic_load(&run.outside))
                Py_CLEAR(made); /* NumPy says which */
        } else {
            native_begin_with(&run.start, PyArray_BYTES(made), 0, PyArray_SIZE(made));
            native_evenly(run.sums.before * run.sums.after, native_grain(GRAIN, run.sums.count), run_places, &run);
        }
    }
    Py_XDECREF(index);
    Py_XDECREF(from);
    return (PyObject *)made;
}

/* What a mask leaves */

static void run_where(void *loop, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    (*(native_loop *)loop)(data, steps, count);
}

static PyObject *run_masked_fill(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_operand operands[3];
    PyObject *out = NULL;
    if (nargs != 3 || (kwnames && !native_options(args, nargs, kwnames, &names[OUT], 1, &out)))
        return NULL;
    native_type type = native_array_type(args[0]);
    if (type == TYPE_NONE || native_array_type(args[1]) != TYPE_BOOL)
        return NULL;
    operands[0].array = (PyArrayObject *)args[1];
    operands[1].array = (PyArrayObject *)args[2];
    operands[2].array = (PyArrayObject *)args[0];
    if (native_array_type(args[2]) == TYPE_NONE ? !native_number(args[2], type, &operands[1])
                                                : native_array_type(args[2]) != type)
        return NULL;
    native_loop loop = elementwise->compute[OP_where][type];
    PyObject *made = native_dense_loop(operands, 3, type, out = native_is_none(out) ? NULL : out, GRAIN, loop, NATIVE_PAST);
    native_plan plan;
    if (made || PyErr_Occurred() || !native_plan_inputs(&plan, operands, 3))
        return made;
    if ((made = native_plan_result(&plan, operands, type, out)))
        native_plan_run(&plan, GRAIN, run_where, &loop);
    return made;
}

int scatter_init(void) {
    loops = PICK(scatter_loops);
    elementwise = PICK(elementwise_loops);
    if (native_intern(names, NAMES, OPTIONS))
        return -1;
    sum_name = PyUnicode_InternFromString("sum");
    return sum_name ? 0 : -1;
}

const native_spec scatter_kernels[] = {
    {"index_bounds", run_bounds, NULL},
    {"index_add", run_index_add, NULL},
    {"scatter_reduce", run_scatter, NULL},
    {"masked_fill", run_masked_fill, NULL},
    {NULL, NULL, NULL},
};
