/* index_tensors and index_put: the elements at places that arrays of numbers name, one array for each of some neighbouring
   dims, read, written, or added to. */
#include "halves.h"
#include "index.h"
#include "rows.h"
#include "scatter.h"

#include <string.h>

DECLARE_LOOPS(index_loops, index_loops);

static const index_loops *loops;

enum { INDICES, ACCUMULATE, OUT, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 17 }; /* bytes that are a reason for a second thread */

/* What the indices name: rows of (before, size, after) at `at`, numbers from 0 to size. */
typedef struct {
    int first, last;      /* the dims that have an index */
    int ndim;             /* of the indices */
    npy_intp shape[NATIVE_DIMS];
    npy_intp before, size, count, after;
    const int64_t *at;
    PyArrayObject *owner; /* of `at` */
} named;

/* An index as dense int64 of that shape: a new reference; NULL, with an exception or without, where it is something else. */
static PyArrayObject *spread(PyObject *object, int ndim, const npy_intp *shape) {
    PyArrayObject *index = (PyArrayObject *)object;
    if (PyArray_NDIM(index) == ndim && PyArray_CompareLists(PyArray_DIMS(index), shape, ndim))
        return native_dense(object);
    PyArrayObject *made = native_empty(ndim, shape, TYPE_I64);
    if (made && PyArray_CopyInto(made, index)) /* broadcasts */
        Py_CLEAR(made);
    return made;
}

/* Reads the option; false, with an exception or without, where it is not for this kernel. */
static bool read_indices(PyArrayObject *x, PyObject *option, named *found) {
    if (!option || !PyTuple_CheckExact(option) || PyTuple_GET_SIZE(option) > PyArray_NDIM(x) || !PyArray_SIZE(x))
        return false;
    *found = (named){.first = -1};
    for (int i = 0; i < PyTuple_GET_SIZE(option); i++) {
        PyObject *one = PyTuple_GET_ITEM(option, i);
        if (one == Py_None)
            continue;
        if (native_array_type(one) != TYPE_I64 || (found->first >= 0 && found->last != i - 1))
            return false;
        const int ndim = PyArray_NDIM((PyArrayObject *)one);
        if (found->first < 0) {
            found->first = i;
        }
        found->last = i;
        for (; found->ndim < ndim; found->ndim++) {
            memmove(found->shape + 1, found->shape, (size_t)found->ndim * sizeof *found->shape);
            found->shape[0] = 1;
        }
        for (int d = 0; d < ndim; d++) {
            npy_intp size = PyArray_DIM((PyArrayObject *)one, d), *have = &found->shape[found->ndim - ndim + d];
            if (size != 1 && *have != 1 && size != *have)
                return false;
            *have = *have == 1 ? size : *have;
        }
    }
    if (found->first < 0)
        return false;
    found->before = found->size = found->count = found->after = 1;
    for (int d = 0; d < found->ndim; d++)
        found->count *= found->shape[d];
    for (int i = 0; i < PyArray_NDIM(x); i++)
        *(i < found->first ? &found->before : i <= found->last ? &found->size : &found->after) *= PyArray_DIM(x, i);
    if (!found->count || found->ndim + PyArray_NDIM(x) > NATIVE_DIMS)
        return false;
    PyArrayObject *index = spread(PyTuple_GET_ITEM(option, found->first), found->ndim, found->shape), *at = NULL;
    if (!index)
        return false;
    const npy_intp size = PyArray_DIM(x, found->first);
    if (found->first == found->last && native_inside(PyArray_DATA(index), found->count, size)) {
        found->owner = index;
        found->at = PyArray_DATA(index);
        return true;
    }
    bool inside = (at = native_empty(1, &found->count, TYPE_I64)) &&
                  loops->add_places(PyArray_DATA(at), found->count, PyArray_DATA(index), size, true);
    Py_DECREF(index);
    for (int i = found->first + 1; inside && i <= found->last; i++) {
        inside = (index = spread(PyTuple_GET_ITEM(option, i), found->ndim, found->shape)) &&
                 loops->add_places(PyArray_DATA(at), found->count, PyArray_DATA(index), PyArray_DIM(x, i), false);
        Py_XDECREF(index);
    }
    if (!inside) {
        Py_XDECREF(at);
        return false;
    }
    found->owner = at;
    found->at = PyArray_DATA(at);
    return true;
}

/* The dims of what is read: those before, those of the indices, those behind. */
static int result_shape(PyArrayObject *x, const named *found, npy_intp *shape) {
    int ndim = 0;
    for (int i = 0; i < found->first; i++)
        shape[ndim++] = PyArray_DIM(x, i);
    for (int i = 0; i < found->ndim; i++)
        shape[ndim++] = found->shape[i];
    for (int i = found->last + 1; i < PyArray_NDIM(x); i++)
        shape[ndim++] = PyArray_DIM(x, i);
    return ndim;
}

static void select_rows(void *context, npy_intp begin, npy_intp end) { loops->select_rows(context, begin, end); }

static PyObject *run_read(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    named found;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, 1, options) ||
        !PyArray_IS_C_CONTIGUOUS(x) || !read_indices(x, options[INDICES], &found))
        return NULL;
    npy_intp shape[NATIVE_DIMS];
    const int ndim = result_shape(x, &found, shape);
    PyArrayObject *made = native_empty(ndim, shape, type);
    if (made) {
        picked job = {PyArray_BYTES(x), found.at, PyArray_BYTES(made), found.before, found.size, found.count, found.after,
                      TYPE_SIZE[type]};
        native_evenly(found.before * found.count, GRAIN / (found.after * TYPE_SIZE[type]) + 1, select_rows, &job);
    }
    Py_DECREF(found.owner);
    return (PyObject *)made;
}

/* Writes in order, so that of equal places the last one counts. */
static void put_rows(const named *found, char *to, const char *from, bool one, int element) {
    const npy_intp row = found->after * element, plane = found->size * row;
    for (npy_intp b = 0; b < found->before; b++, to += plane)
        for (npy_intp i = 0; i < found->count; i++) {
            char *place = to + found->at[i] * row;
            if (!one) {
                memcpy(place, from, (size_t)row);
                from += row;
                continue;
            }
            for (npy_intp k = 0; k < row; k += element)
                memcpy(place + k, from, (size_t)element);
        }
}

/* Written, or added with `add`, to x itself (`place`) or to a copy. NULL, with an exception or without, where it is not for us. */
static PyObject *put(PyArrayObject *x, PyArrayObject *values, native_type type, PyObject *indices, bool add, bool place) {
    PyArrayObject *made = NULL, *from = NULL;
    named found;
    if ((add && !native_sums_of(type) && !native_is_half(type)) ||
        (place && (!PyArray_IS_C_CONTIGUOUS(x) || !PyArray_ISWRITEABLE(x) || native_overlap(x, values))) ||
        !read_indices(x, indices, &found))
        return NULL;
    npy_intp shape[NATIVE_DIMS];
    const int ndim = result_shape(x, &found, shape);
    const bool one = !PyArray_NDIM(values) && !add;
    bool fits = one || (PyArray_NDIM(values) == ndim && PyArray_CompareLists(PyArray_DIMS(values), shape, ndim));
    if (place && native_overlap(x, found.owner))
        fits = false;
    if (fits && (from = native_dense((PyObject *)values))) {
        slice_sums sums = {NULL, PyArray_DATA(from), found.at, found.before, found.count, found.size, found.after};
        if (add) {
            made = native_sum_slices(x, type, place, &sums, -1);
        } else if ((made = place ? (PyArrayObject *)Py_NewRef(x) : native_copied(x, type))) {
            put_rows(&found, PyArray_BYTES(made), PyArray_BYTES(from), one, TYPE_SIZE[type]);
        }
    }
    Py_XDECREF(from);
    Py_DECREF(found.owner);
    return (PyObject *)made;
}

/* Sums of halves, which are floats until all of them are made: slices where they lie, what is shorter as a whole. */
static PyObject *add_halves(PyArrayObject *x, PyArrayObject *values, native_type half, PyObject *indices, bool place) {
    PyObject *there = put(x, values, half, indices, true, place);
    if (there || PyErr_Occurred())
        return there;
    PyObject *wide = native_converted(x, half, TYPE_F32), *added = wide ? native_converted(values, half, TYPE_F32) : NULL;
    PyObject *sums = added ? put((PyArrayObject *)wide, (PyArrayObject *)added, TYPE_F32, indices, true, false) : NULL;
    PyObject *made = sums ? native_converted((PyArrayObject *)sums, TYPE_F32, half) : NULL;
    if (made && place)
        Py_SETREF(made, native_copied_over((PyArrayObject *)made, x));
    Py_XDECREF(wide);
    Py_XDECREF(added);
    Py_XDECREF(sums);
    return made;
}

static PyObject *run_put(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        native_array_type(args[1]) != type)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *values = (PyArrayObject *)args[1];
    const bool add = options[ACCUMULATE] == Py_True, place = !native_is_none(options[OUT]);
    if (place && options[OUT] != args[0])
        return NULL;
    if (add && native_is_half(type))
        return place && !PyArray_ISWRITEABLE(x) ? NULL : add_halves(x, values, type, options[INDICES], place);
    return put(x, values, type, options[INDICES], add, place);
}

int at_init(void) {
    static const char *const NAMES[OPTIONS] = {"indices", "accumulate", "out"};
    loops = PICK(index_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec at_kernels[] = {
    {"index_tensors", run_read, NULL},
    {"index_put", run_put, NULL},
    {NULL, NULL, NULL},
};
