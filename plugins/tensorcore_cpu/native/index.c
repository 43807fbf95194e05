/* Copies of whole rows to other places: cat, stack, index_select; gather, which picks single elements; and sums of rows. */
#include "index.h"

#include "each.h"
#include "rows.h"
#include "shuffle.h"

#include <stdatomic.h>
#include <string.h>

DECLARE_LOOPS(index_loops, index_loops);

static const index_loops *loops;

enum { DIM, SHAPE, INDEX, SIZE, OUT, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 17, /* bytes that are a reason for a second thread */
    EACH_GRAIN = 1 << 15, /* the same where each element has a number of its own */
    LONG = 1 << 11,  /* bytes of a part's row that are worth a call */
    JOINED = 1 << 13, /* bytes of the result that are written by one part after the other */
    /* Bytes of a result that is written to in any order, or of rows of one that is larger, or larger than some of the last cache:
       else it is written in order, for the sake of what fetches lines ahead. */
    NEAR = 2 << 20, NEAR_ROW = 640, FAR_ROW = 192,
    PARTS = 64, /* arrays that are joined here */
};

static bool whole(PyObject *number, npy_intp *value) {
    if (!number || !PyLong_CheckExact(number))
        return false;
    *value = PyLong_AsSsize_t(number);
    if (*value == -1 && PyErr_Occurred())
        PyErr_Clear();
    return *value >= 0;
}

static npy_intp product(const npy_intp *shape, int begin, int end) {
    npy_intp made = 1;
    for (int i = begin; i < end; i++)
        made *= shape[i];
    return made;
}

/* cat and stack */

typedef struct {
    int parts;
    const char *data[PARTS]; /* NULL of one whose rows do not lie evenly apart */
    npy_intp down[PARTS];    /* bytes from a row of the part to its next */
    npy_intp end[PARTS];     /* of the part within a row of the result, in bytes */
    npy_intp row, whole;     /* bytes of one, and of all */
    char *made;
} joined;

static npy_intp part_start(const joined *job, int part) { return part ? job->end[part - 1] : 0; }

/* Any piece of the result, where parts lie in one piece each. */
static void join_bytes(void *context, npy_intp begin, npy_intp end) {
    const joined *job = context;
    npy_intp row = begin / job->row, at = begin % job->row;
    int part = 0;
    while (job->end[part] <= at)
        part++;
    while (begin < end) {
        npy_intp first = part_start(job, part), length = job->end[part] - first;
        npy_intp count = job->end[part] - at < end - begin ? job->end[part] - at : end - begin;
        native_move(job->made + begin, job->data[part] + row * length + (at - first), count, job->whole);
        begin += count;
        at += count;
        if (at == job->end[part] && ++part == job->parts) {
            part = 0;
            at = 0;
            row++;
        }
    }
}

/* Rows of the result, some of them part by part, while they are in the first cache. */
static void join_rows(void *context, npy_intp begin, npy_intp end) {
    const joined *job = context;
    const bool near = job->whole <= NEAR || job->row <= (job->whole < NATIVE_PAST ? NEAR_ROW : FAR_ROW);
    const npy_intp block = near ? 1 + JOINED / job->row : 1;
    for (; begin < end; begin += block)
        for (int k = 0; k < job->parts; k++)
            if (job->data[k])
                native_copy_rows(job->data[k] + begin * job->down[k], job->down[k],
                                 job->made + begin * job->row + part_start(job, k), job->row,
                                 end - begin < block ? end - begin : block, job->end[k] - part_start(job, k));
}

static void weave(void *context, npy_intp begin, npy_intp end) {
    const joined *job = context;
    loops->weave(job->data, job->parts, job->end[0], job->made, begin, end);
}

/* Whether the parts are dense and give each row as much as one element has. */
static bool weaves(const joined *job, bool dense) {
    const npy_intp bytes = job->end[0];
    for (int k = 0; k < job->parts && dense; k++)
        dense = job->end[k] == (k + 1) * bytes && is_element(job->data[k], bytes);
    return dense;
}

/* Copies a part of any strides to where it belongs. */
static bool join_strided(PyArrayObject *part, PyArrayObject *made, int dim, npy_intp start) {
    const int extra = PyArray_NDIM(made) - PyArray_NDIM(part);
    npy_intp strides[NATIVE_DIMS];
    for (int i = 0; i < PyArray_NDIM(part); i++)
        strides[i] = PyArray_STRIDE(made, i + (i >= dim ? extra : 0));
    return native_copied_into(part, PyArray_BYTES(made) + start, strides);
}

/* The array of `out` as one to write dense rows to; NULL where it is none of that shape. */
static PyArrayObject *place_of(PyObject *out, int ndim, const npy_intp *shape, native_type type, native_type parts) {
    PyArrayObject *place = (PyArrayObject *)out;
    const bool fits = native_array_type(out) == type && native_complex_type(out) == parts && PyArray_ISCARRAY(place) && PyArray_NDIM(place) == ndim &&
                      PyArray_CompareLists(PyArray_DIMS(place), shape, ndim);
    return fits ? (PyArrayObject *)Py_NewRef(out) : NULL;
}

static PyObject *run_join(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    bool stack = kernel->data != NULL;
    PyObject *given[OPTIONS];
    npy_intp dim, shape[NATIVE_DIMS], length = 0;
    if (nargs != 1 || !PyList_CheckExact(args[0]) || !kwnames ||
        !native_options(args, nargs, kwnames, names, OPTIONS, given) || !whole(given[DIM], &dim))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(args[0]);
    native_type type = TYPE_NONE, parts = TYPE_NONE; /* one of the two, of complex numbers the second */
    PyArrayObject *first = NULL;
    joined job = {0};
    bool dense = true, regular = true;
    if (count > PARTS)
        return NULL;
    for (Py_ssize_t k = 0; k < count; k++) {
        const native_type one = native_array_type(PyList_GET_ITEM(args[0], k)), part = one == TYPE_NONE ? native_complex_type(PyList_GET_ITEM(args[0], k)) : TYPE_NONE;
        PyArrayObject *array = (PyArrayObject *)PyList_GET_ITEM(args[0], k);
        if ((one == TYPE_NONE && part == TYPE_NONE) || (first && (one != type || part != parts)))
            return NULL;
        type = one;
        parts = part;
        if (!PyArray_SIZE(array))
            return NULL;
        if (!first) {
            first = array;
            if (PyArray_NDIM(array) + stack > NATIVE_DIMS || dim >= PyArray_NDIM(array) + stack)
                return NULL;
        }
        int ndim = PyArray_NDIM(array);
        if (ndim != PyArray_NDIM(first))
            return NULL;
        for (int i = 0; i < ndim; i++)
            if (PyArray_DIM(array, i) != PyArray_DIM(first, i) && (stack || i != dim))
                return NULL;
        const npy_intp elements = product(PyArray_DIMS(array), (int)dim, ndim), bytes = elements * PyArray_ITEMSIZE(array);
        dense &= PyArray_IS_C_CONTIGUOUS(array);
        const bool even = native_rows_apart(array, elements, &job.down[job.parts]);
        job.data[job.parts] = even ? PyArray_BYTES(array) : NULL;
        regular &= even;
        job.row += bytes;
        job.end[job.parts++] = job.row;
        length += stack ? 1 : PyArray_DIM(array, (int)dim);
    }
    if (!first)
        return NULL;
    int ndim = PyArray_NDIM(first) + stack;
    for (int i = 0; i < ndim; i++)
        shape[i] = i == dim ? length : PyArray_DIM(first, i - (stack && i > dim));
    const npy_intp rows = product(shape, 0, (int)dim);
    PyArrayObject *made = given[OUT] ? place_of(given[OUT], ndim, shape, type, parts)
                          : type == TYPE_NONE ? native_empty_complex(ndim, shape, parts)
                                              : native_empty(ndim, shape, type);
    if (!made)
        return NULL;
    job.made = PyArray_BYTES(made);
    job.whole = rows * job.row;
    if (dense && (rows == 1 || job.row >= LONG * job.parts))
        native_passing(job.whole, GRAIN, 2 * job.whole, join_bytes, &job);
    else
        native_evenly(rows, GRAIN / job.row + 1, weaves(&job, dense) ? weave : join_rows, &job);
    for (int k = 0; !regular && k < job.parts; k++)
        if (!job.data[k] && !join_strided((PyArrayObject *)PyList_GET_ITEM(args[0], k), made, (int)dim, part_start(&job, k))) {
            Py_DECREF(made);
            return NULL;
        }
    return (PyObject *)made;
}

/* index_select, take_rows and gather */

static void select_rows(void *context, npy_intp begin, npy_intp end) { loops->select_rows(context, begin, end); }

/* A few elements of each row. */
static void select_few(void *context, npy_intp begin, npy_intp end) {
    const picked *job = context;
    const npy_intp bytes = job->inner * job->element, down = job->size * bytes, to_down = job->count * bytes;
    ptrdiff_t at[SHUFFLED];
    for (npy_intp j = 0; j < job->count; j++)
        at[j] = job->index[j];
    native_pick_rows(job->data + begin * down, down, job->made + begin * to_down, to_down, end - begin, at, job->count, (int)bytes);
}

typedef struct {
    picked job;
    bool (*run)(const picked *job, ptrdiff_t begin, ptrdiff_t end);
    atomic_bool outside;
} gathering;

static void gather(void *context, npy_intp begin, npy_intp end) {
    gathering *work = context;
    if (!work->run(&work->job, begin, end))
        atomic_store(&work->outside, true);
}

/* An index for each row of the result, as an operand or as an option, or one for each element. */
typedef enum { ROWS, HOST_ROWS, ELEMENTS } pick_kind;

static PyObject *run_pick(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const pick_kind kind = kernel->data ? *(const pick_kind *)kernel->data : ROWS;
    const bool each = kind == ELEMENTS;
    PyObject *given[OPTIONS];
    npy_intp dim, shape[NATIVE_DIMS];
    if (nargs != (kind == HOST_ROWS ? 1 : 2) || !kwnames ||
        !native_options(args, nargs, kwnames, names, kind == HOST_ROWS ? OPTIONS : 1, given) || !whole(given[DIM], &dim))
        return NULL;
    PyObject *at = kind == HOST_ROWS ? given[INDEX] : args[1];
    native_type type = native_array_type(args[0]);
    if (type == TYPE_NONE || !at || native_array_type(at) != TYPE_I64)
        return NULL;
    PyArrayObject *array = (PyArrayObject *)args[0], *index = (PyArrayObject *)at;
    int ndim = PyArray_NDIM(array), axis = (int)dim;
    bool whole_rows = PyArray_IS_C_CONTIGUOUS(array) && PyArray_IS_C_CONTIGUOUS(index) && PyArray_NDIM(index) == ndim;
    for (int i = 0; each && whole_rows && i < ndim; i++)
        whole_rows = i == axis || PyArray_DIM(index, i) == PyArray_DIM(array, i);
    if (each && !whole_rows)
        return native_gather_each(array, at, axis);
    if (dim >= ndim || !PyArray_IS_C_CONTIGUOUS(array) || !PyArray_IS_C_CONTIGUOUS(index) || !PyArray_SIZE(index) ||
        !PyArray_SIZE(array) || (!each && PyArray_NDIM(index) != 1) ||
        (!each && !native_inside(PyArray_DATA(index), PyArray_SIZE(index), PyArray_DIM(array, axis))))
        return NULL;
    for (int i = 0; i < ndim; i++)
        shape[i] = i == axis ? PyArray_DIM(index, each ? i : 0) : PyArray_DIM(array, i);
    PyArrayObject *made = native_empty(ndim, shape, type);
    if (!made)
        return NULL;
    picked job = {PyArray_BYTES(array), PyArray_DATA(index), PyArray_BYTES(made), product(shape, 0, axis),
                  PyArray_DIM(array, axis), shape[axis], product(shape, axis + 1, ndim), TYPE_SIZE[type]};
    const bool along = each && job.inner == 1;
    npy_intp rows = along ? job.outer : job.outer * job.count, bytes = (along ? job.count : job.inner) * job.element;
    if (!each && job.outer > 1 && job.count <= SHUFFLED && is_element(job.data, bytes)) {
        native_evenly(job.outer, GRAIN / (job.count * bytes) + 1, select_few, &job);
        return (PyObject *)made;
    }
    if (!each) {
        native_evenly(rows, GRAIN / bytes + 1, select_rows, &job);
        return (PyObject *)made;
    }
    gathering work = {job, along ? loops->gather_along : loops->gather_rows};
    native_evenly(rows, EACH_GRAIN / bytes + 1, gather, &work);
    if (atomic_load(&work.outside))
        Py_CLEAR(made); /* NumPy says which */
    return (PyObject *)made;
}

/* add_rows: a job with the function that suits its type */

typedef struct {
    added job;
    void (*run)(const added *job, ptrdiff_t begin, ptrdiff_t end);
} adding;

static void add_body(void *context, npy_intp begin, npy_intp end) {
    const adding *work = context;
    work->run(&work->job, begin, end);
}

static PyObject *run_add_rows(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    npy_intp dim, size, shape[NATIVE_DIMS];
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, given) ||
        !whole(given[DIM], &dim) || !whole(given[SIZE], &size) || !given[INDEX] ||
        native_array_type(given[INDEX]) != TYPE_I64)
        return NULL;
    const native_type type = native_array_type(args[0]);
    PyArrayObject *array = (PyArrayObject *)args[0], *index = (PyArrayObject *)given[INDEX];
    if ((type != TYPE_F32 && type != TYPE_F64) || dim >= PyArray_NDIM(array) || !PyArray_IS_C_CONTIGUOUS(index) ||
        PyArray_NDIM(index) != 1 || PyArray_DIM(index, 0) != PyArray_DIM(array, (int)dim) || !PyArray_SIZE(array) ||
        !native_inside(PyArray_DATA(index), PyArray_SIZE(index), size))
        return NULL;
    const int ndim = PyArray_NDIM(array);
    for (int i = 0; i < ndim; i++)
        shape[i] = i == dim ? size : PyArray_DIM(array, i);
    PyArrayObject *solid = (PyArrayObject *)PyArray_GETCONTIGUOUS(array);
    PyArrayObject *made = solid ? native_empty(ndim, shape, type) : NULL;
    if (made) {
        adding work = {{PyArray_BYTES(solid), PyArray_DATA(index), PyArray_BYTES(made), product(shape, 0, (int)dim), size,
                        PyArray_SIZE(index), product(shape, (int)dim + 1, ndim), TYPE_SIZE[type]},
                       loops->add_rows[type]};
        native_parallel(work.job.outer, GRAIN / ((size + work.job.count) * work.job.inner * work.job.element) + 1, add_body,
                        &work);
    }
    Py_XDECREF(solid);
    return (PyObject *)made;
}

int index_init(void) {
    loops = PICK(index_loops);
    names[DIM] = PyUnicode_InternFromString("dim");
    names[SHAPE] = PyUnicode_InternFromString("shape");
    names[INDEX] = PyUnicode_InternFromString("index");
    names[SIZE] = PyUnicode_InternFromString("size");
    names[OUT] = PyUnicode_InternFromString("out");
    return names[OUT] && names[DIM] && names[SHAPE] && names[INDEX] && names[SIZE] ? 0 : -1;
}

const native_spec index_kernels[] = {
    {"cat", run_join, NULL},
    {"stack", run_join, &(const bool){true}},
    {"index_select", run_pick, NULL, .dense = true},
    {"take_rows", run_pick, &(const pick_kind){HOST_ROWS}},
    {"gather", run_pick, &(const pick_kind){ELEMENTS}},
    {"add_rows", run_add_rows, NULL},
    {NULL, NULL, NULL},
};
