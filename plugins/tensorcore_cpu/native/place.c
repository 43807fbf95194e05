/* scatter, index_copy, index_fill, masked_scatter and take: elements of any type copied where an index or a mask says, one after
   the other, so that of equal indices the last counts. */
#include "index.h"
#include "plan.h"
#include "rows.h"

#include <stdatomic.h>
#include <string.h>

DECLARE_LOOPS(index_loops, index_loops);

static const index_loops *loops;

enum { DIM, OUT, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 14,             /* elements a thread */
    FEW_COLUMNS = 16, ROWS = 64, /* that are written one after the other, and rows of which lines stay in the first cache */
};

/* A complex number with parts of double. */
typedef struct {
    uint64_t parts[2];
} pair;

/* The bytes of an element of an array, whatever its type, that can be read as one integer or pair of them; else 0. */
static int element_of(PyObject *object) {
    const native_type type = native_array_type(object);
    if (type != TYPE_NONE)
        return TYPE_SIZE[type];
    if (native_complex_type(object) == TYPE_NONE)
        return 0;
    PyArrayObject *x = (PyArrayObject *)object;
    uintptr_t places = (uintptr_t)PyArray_BYTES(x);
    for (int i = 0; i < PyArray_NDIM(x); i++)
        places |= (uintptr_t)PyArray_STRIDE(x, i);
    return places % sizeof(uint64_t) ? 0 : (int)PyArray_ITEMSIZE(x);
}

/* Whether both are arrays of one type. */
static bool alike(PyObject *one, PyObject *other) {
    return element_of(other) && PyArray_TYPE((PyArrayObject *)one) == PyArray_TYPE((PyArrayObject *)other);
}

static PyArrayObject *copy_of(PyArrayObject *x) {
    const native_type type = native_array_type((PyObject *)x);
    return type == TYPE_NONE ? (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER) : native_copied(x, type);
}

/* The index as dense int64 of the dims of x, with every place inside of dim `dim`, unless that is looked at `later`; NULL, with
   an exception or without. */
static PyArrayObject *checked(PyObject *object, PyArrayObject *x, int dim, bool later) {
    PyArrayObject *index = (PyArrayObject *)object;
    if (native_array_type(object) != TYPE_I64 || PyArray_NDIM(index) != PyArray_NDIM(x))
        return NULL;
    for (int i = 0; i < PyArray_NDIM(x); i++)
        if (i != dim && PyArray_DIM(index, i) > PyArray_DIM(x, i))
            return NULL;
    return later ? native_dense(object) : native_index_inside(object, PyArray_DIM(x, dim));
}

#define PUT_ROW(type)                                                                                         \
    for (npy_intp k = 0; k < width; k++)                                                                      \
        ((type *)to)[along ? at[k] : k + at[k] * step] = ((const type *)from)[one ? 0 : k];

/* A row of the index at `at`: `to` is its place in the result but for the index, `step` that of the dim in elements. */
static void put_row(int element, char *to, const char *from, bool one, const int64_t *at, npy_intp width, bool along,
                    npy_intp step) {
    switch (element) {
    case 1:
        PUT_ROW(uint8_t)
        break;
    case 2:
        PUT_ROW(uint16_t)
        break;
    case 4:
        PUT_ROW(uint32_t)
        break;
    case 8:
        PUT_ROW(uint64_t)
        break;
    default:
        PUT_ROW(pair)
    }
}

typedef struct {
    PyArrayObject *made, *index;
    int element, dim;
    const char *from;
    bool one;
} put_run;

/* Some columns of some rows of the index. */
static void put(const put_run *run, npy_intp row, npy_intp rows, npy_intp column, npy_intp columns) {
    const int last = PyArray_NDIM(run->index) - 1, size = run->element;
    const npy_intp width = PyArray_DIM(run->index, last), step = PyArray_STRIDE(run->made, run->dim) / size;
    const bool along = run->dim == last;
    const int64_t *at = (const int64_t *)PyArray_DATA(run->index) + row * width + column;
    const char *from = run->one ? run->from : run->from + (row * width + column) * size;
    npy_intp place[NATIVE_DIMS] = {0};
    for (int i = last - 1; i >= 0; row /= PyArray_DIM(run->index, i--))
        place[i] = row % PyArray_DIM(run->index, i);
    for (; rows > 0; rows--) {
        char *to = PyArray_BYTES(run->made) + (along ? 0 : column * size);
        for (int i = 0; i < last; i++)
            to += i == run->dim ? 0 : place[i] * PyArray_STRIDE(run->made, i);
        put_row(run->element, to, from, run->one, at, columns, along, step);
        at += width;
        from += run->one ? 0 : width * size;
        for (int i = last - 1; i >= 0 && ++place[i] == PyArray_DIM(run->index, i); i--)
            place[i] = 0;
    }
}

static void put_rows(void *context, npy_intp begin, npy_intp end) {
    const put_run *run = context;
    put(run, begin, end - begin, 0, PyArray_DIM(run->index, PyArray_NDIM(run->index) - 1));
}

static void put_columns(void *context, npy_intp begin, npy_intp end) {
    const put_run *run = context;
    const npy_intp width = PyArray_DIM(run->index, PyArray_NDIM(run->index) - 1);
    put(run, 0, PyArray_SIZE(run->index) / width, begin, end - begin);
}

typedef struct {
    picked job;
    native_start start;
    atomic_bool outside;
} row_run;

/* Along the last dim of a new array: as much as the second cache holds is begun, then looked at and written. */
static void put_new_rows(void *context, npy_intp begin, npy_intp end) {
    row_run *run = context;
    const picked *job = &run->job;
    const npy_intp rows = native_grain(BEGUN / job->element, job->size);
    for (; begin < end; begin += rows) {
        const npy_intp last = end - begin < rows ? end : begin + rows;
        native_begin_with(&run->start, job->made, begin * job->size, (last - begin) * job->size);
        if (!loops->scatter_along(job, begin, last)) {
            atomic_store(&run->outside, true);
            return;
        }
    }
}

/* No two threads write to one place: along the last dim each row of the index has its own, along another each column. */
static void put_all(put_run *run) {
    const int last = PyArray_NDIM(run->index) - 1;
    const npy_intp count = PyArray_SIZE(run->index), width = PyArray_DIM(run->index, last);
    if (!count)
        return;
    const npy_intp columns = native_grain(GRAIN, count / width);
    if (run->dim == last)
        native_evenly(count / width, native_grain(GRAIN, width), put_rows, run);
    else
        native_parallel(width, columns < 16 ? 16 : columns, put_columns, run);
}

/* The first elements along each dim of x, as many as `like` has, in row-major order; NULL, with an exception or without. */
static PyArrayObject *first_of(PyArrayObject *x, PyArrayObject *like) {
    bool same = true;
    if (PyArray_NDIM(x) != PyArray_NDIM(like))
        return NULL;
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        same &= PyArray_DIM(x, i) == PyArray_DIM(like, i);
        if (PyArray_DIM(x, i) < PyArray_DIM(like, i))
            return NULL;
    }
    if (same)
        return native_dense((PyObject *)x);
    PyObject *part = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(PyArray_DESCR(x)), PyArray_NDIM(x),
                                          PyArray_DIMS(like), PyArray_STRIDES(x), PyArray_DATA(x), NPY_ARRAY_ALIGNED, NULL);
    PyArrayObject *made = part ? native_dense(part) : NULL;
    if ((PyObject *)made == part && made && PyArray_SetBaseObject(made, Py_NewRef((PyObject *)x)))
        Py_CLEAR(made);
    Py_XDECREF(part);
    return made;
}

/* Of arrays of one type, the source at least as large as the index along each dim, or of a number. */
static PyObject *run_scatter(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    double number;
    const int element = nargs == 3 ? element_of(args[0]) : 0;
    if (!element || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !native_double(options[DIM], &number))
        return NULL;
    const native_type type = native_array_type(args[0]); /* TYPE_NONE of complex numbers */
    PyArrayObject *x = (PyArrayObject *)args[0], *index = NULL, *source = NULL, *made = NULL;
    int dim = (int)number;
    bool place = !native_is_none(options[OUT]);
    if (dim < 0 || dim >= PyArray_NDIM(x) || !PyArray_SIZE(x) ||
        (place && (options[OUT] != args[0] || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_ISWRITEABLE(x))))
        return NULL;
    native_operand value;
    bool array = alike(args[0], args[2]);
    if (!array && (type == TYPE_NONE || !native_number(args[2], type, &value)))
        return NULL;
    source = (PyArrayObject *)args[2];
    const int last = PyArray_NDIM(x) - 1;
    bool rows = !place && dim == last && element <= 8 && PyArray_NDIM((PyArrayObject *)args[1]) == last + 1;
    for (int i = 0; i < last && rows; i++)
        rows = PyArray_DIM((PyArrayObject *)args[1], i) == PyArray_DIM(x, i);
    if (!(index = checked(args[1], x, dim, rows)))
        return NULL;
    bool fits = !place || !native_overlap(index, x);
    if (array)
        fits = fits && (!place || !native_overlap(source, x));
    source = fits && array ? first_of(source, index) : NULL;
    const bool ready = fits && (source || !array);
    if (ready && rows) {
        row_run run = {.start = {NULL}};
        if ((made = type == TYPE_NONE ? copy_of(x) : native_started(x, type, &run.start))) {
            const npy_intp width = PyArray_DIM(index, last), size = PyArray_DIM(x, last), count = PyArray_SIZE(x) / size;
            run.job = (picked){array ? PyArray_BYTES(source) : value.data, PyArray_DATA(index), PyArray_BYTES(made), count, size,
                               width, 1, element, !array};
            native_evenly(count, native_grain(GRAIN, width + size), put_new_rows, &run);
            if (atomic_load(&run.outside))
                Py_CLEAR(made); /* NumPy says which */
        }
    } else if (ready) {
        made = place ? (PyArrayObject *)Py_NewRef(args[0]) : copy_of(x);
        if (made)
            put_all(&(put_run){made, index, element, dim, array ? PyArray_BYTES(source) : value.data, !array});
    }
    Py_DECREF(index);
    Py_XDECREF(source);
    return (PyObject *)made;
}

/* The array that gets written: `out`, which has to be x itself, or a copy of x. NULL, with an exception or without. */
static PyArrayObject *target(PyArrayObject *x, PyObject *out) {
    if (native_is_none(out))
        return copy_of(x);
    if (out != (PyObject *)x || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_ISWRITEABLE(x))
        return NULL;
    return (PyArrayObject *)Py_NewRef(out);
}

/* Whether an array may be read while x is written. */
static bool apart(PyArrayObject *one, PyArrayObject *x, PyObject *out) {
    return native_is_none(out) || !native_overlap(one, x);
}

/* Whether all numbers of a dense index are inside of `size`; negative ones count from the end where they may. */
static bool all_inside(PyArrayObject *index, npy_intp size, bool negative) {
    const int64_t *at = PyArray_DATA(index);
    const uint64_t shift = negative ? (uint64_t)size : 0;
    bool inside = true;
    for (npy_intp k = 0, count = PyArray_SIZE(index); k < count; k++)
        inside &= (uint64_t)at[k] + shift < (uint64_t)size + shift;
    return inside;
}

#define COPY_ELEMENTS(type, TO, FROM, COUNT)                                                                  \
    for (npy_intp k = 0; k < (COUNT); k++)                                                                    \
        ((type *)to)[TO] = ((const type *)from)[FROM];

/* One value `count` times. */
static void fill(char *to, const char *from, npy_intp count, int element) {
    switch (element) {
    case 1:
        COPY_ELEMENTS(uint8_t, k, 0, count)
        break;
    case 2:
        COPY_ELEMENTS(uint16_t, k, 0, count)
        break;
    case 4:
        COPY_ELEMENTS(uint32_t, k, 0, count)
        break;
    case 8:
        COPY_ELEMENTS(uint64_t, k, 0, count)
        break;
    default:
        COPY_ELEMENTS(pair, k, 0, count)
    }
}

/* A few numbers go to one column after the other of some rows, many along each row. */
#define PUT_ELEMENTS(type)                                                                                    \
    for (npy_intp rows; outer > 0; outer -= rows, to += rows * size * (npy_intp)sizeof(type)) {               \
        rows = count > FEW_COLUMNS ? 1 : outer < ROWS ? outer : ROWS;                                         \
        for (npy_intp k = 0; rows > 1 && k < count; k++) {                                                    \
            type *place = (type *)to + at[k] + (at[k] < 0 ? size : 0);                                        \
            const type *value = (const type *)from + (one ? 0 : k);                                           \
            for (npy_intp i = 0; i < rows; i++, place += size, value += one ? 0 : count)                      \
                *place = *value;                                                                              \
        }                                                                                                     \
        if (rows == 1)                                                                                        \
            COPY_ELEMENTS(type, at[k] + (at[k] < 0 ? size : 0), one ? 0 : k, count)                           \
        from += one ? 0 : rows * count * (npy_intp)sizeof(type);                                              \
    }

/* Single elements along a last dim of `size`, for each of `outer` rows. */
static void put_elements(int element, char *to, const char *from, bool one, const int64_t *at, npy_intp count, npy_intp size,
                         npy_intp outer) {
    switch (element) {
    case 1:
        PUT_ELEMENTS(uint8_t)
        break;
    case 2:
        PUT_ELEMENTS(uint16_t)
        break;
    case 4:
        PUT_ELEMENTS(uint32_t)
        break;
    case 8:
        PUT_ELEMENTS(uint64_t)
        break;
    default:
        PUT_ELEMENTS(pair)
    }
}

/* Slices along a dim of (outer, size, inner), from (outer, count, inner) or of one value. */
typedef struct {
    int element;
    char *to;
    const char *from;
    bool one;
    const int64_t *at;
    npy_intp count, size, inner;
} slice_run;

static void put_slices(void *context, npy_intp begin, npy_intp end) {
    const slice_run *run = context;
    const npy_intp bytes = run->inner * run->element;
    char *to = run->to + begin * run->size * bytes;
    const char *from = run->from + (run->one ? 0 : begin * run->count * bytes);
    if (run->inner == 1) {
        put_elements(run->element, to, from, run->one, run->at, run->count, run->size, end - begin);
        return;
    }
    for (; begin < end; begin++, to += run->size * bytes)
        for (npy_intp k = 0; k < run->count; k++) {
            char *slice = to + (run->at[k] + (run->at[k] < 0 ? run->size : 0)) * bytes;
            if (run->one) {
                fill(slice, from, run->inner, run->element);
            } else {
                memcpy(slice, from, (size_t)bytes);
                from += bytes;
            }
        }
}

/* index_copy and index_fill: slices along a dim, at a vector of numbers, get those of a source or one value. */
static PyObject *run_slices(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool one = kernel->data != NULL;
    PyObject *options[OPTIONS];
    double number;
    const int element = nargs == 3 ? element_of(args[0]) : 0;
    if (!element || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !native_double(options[DIM], &number) ||
        native_array_type(args[1]) != TYPE_I64 || !alike(args[0], args[2]))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *index = (PyArrayObject *)args[1], *source = (PyArrayObject *)args[2];
    const int dim = (int)number, ndim = PyArray_NDIM(x);
    if (dim < 0 || dim >= ndim || !PyArray_SIZE(x) || !PyArray_IS_C_CONTIGUOUS(index) || PyArray_NDIM(index) != 1 ||
        PyArray_NDIM(source) != (one ? 0 : ndim) || !PyArray_IS_C_CONTIGUOUS(source) ||
        !all_inside(index, PyArray_DIM(x, dim), one) || !apart(index, x, options[OUT]) || !apart(source, x, options[OUT]))
        return NULL;
    const npy_intp count = PyArray_DIM(index, 0), size = PyArray_DIM(x, dim);
    npy_intp outer = 1, inner = 1;
    for (int i = 0; i < ndim; i++) {
        outer *= i < dim ? PyArray_DIM(x, i) : 1;
        inner *= i > dim ? PyArray_DIM(x, i) : 1;
        if (!one && PyArray_DIM(source, i) != (i == dim ? count : PyArray_DIM(x, i)))
            return NULL;
    }
    PyArrayObject *made = target(x, options[OUT]);
    if (!made)
        return NULL;
    slice_run run = {element, PyArray_BYTES(made), PyArray_BYTES(source), one, PyArray_DATA(index), count, size, inner};
    native_evenly(outer, native_grain(GRAIN, count * inner), put_slices, &run);
    return (PyObject *)made;
}

/* Elements at numbers into the flattened array. */
static PyObject *run_take(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const int element = nargs == 2 && !kwnames ? element_of(args[0]) : 0;
    if (!element || native_array_type(args[1]) != TYPE_I64)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *index = (PyArrayObject *)args[1];
    const npy_intp size = PyArray_SIZE(x), count = PyArray_SIZE(index);
    if (!size || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(index) || !all_inside(index, size, true))
        return NULL;
    const native_type type = native_array_type(args[0]), parts = native_complex_type(args[0]);
    PyArrayObject *made = parts == TYPE_NONE ? native_empty(PyArray_NDIM(index), PyArray_DIMS(index), type)
                                             : native_empty_complex(PyArray_NDIM(index), PyArray_DIMS(index), parts);
    if (!made)
        return NULL;
    const int64_t *at = PyArray_DATA(index);
    const char *from = PyArray_BYTES(x);
    char *to = PyArray_BYTES(made);
    switch (element) {
    case 1:
        COPY_ELEMENTS(uint8_t, k, at[k] + (at[k] < 0 ? size : 0), count)
        break;
    case 2:
        COPY_ELEMENTS(uint16_t, k, at[k] + (at[k] < 0 ? size : 0), count)
        break;
    case 4:
        COPY_ELEMENTS(uint32_t, k, at[k] + (at[k] < 0 ? size : 0), count)
        break;
    case 8:
        COPY_ELEMENTS(uint64_t, k, at[k] + (at[k] < 0 ? size : 0), count)
        break;
    default:
        COPY_ELEMENTS(pair, k, at[k] + (at[k] < 0 ? size : 0), count)
    }
    return (PyObject *)made;
}

/* The elements of a source, one after the other, where a mask of the same shape is true; without a branch on the mask. */
#define PUT_MASKED(type)                                                                                      \
    for (npy_intp k = 0, next = 0; k < size && next < count; k++) {                                           \
        type *place = (type *)to + k;                                                                         \
        const type there = *place, wanted = ((const type *)from)[next];                                       \
        *place = mask[k] ? wanted : there;                                                                    \
        next += mask[k] != 0;                                                                                 \
    }

static PyObject *run_masked(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const int element = nargs == 3 ? element_of(args[0]) : 0;
    if (!element || native_array_type(args[1]) != TYPE_BOOL || !alike(args[0], args[2]) ||
        (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)) || options[DIM])
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *chosen = (PyArrayObject *)args[1], *source = (PyArrayObject *)args[2];
    const npy_intp size = PyArray_SIZE(x);
    if (PyArray_NDIM(chosen) != PyArray_NDIM(x) ||
        !PyArray_CompareLists(PyArray_DIMS(chosen), PyArray_DIMS(x), PyArray_NDIM(x)) || !PyArray_IS_C_CONTIGUOUS(chosen) ||
        !PyArray_IS_C_CONTIGUOUS(source) || !apart(chosen, x, options[OUT]) || !apart(source, x, options[OUT]))
        return NULL;
    const uint8_t *mask = PyArray_DATA(chosen);
    npy_intp count = 0;
    for (npy_intp k = 0; k < size; k++)
        count += mask[k] != 0;
    if (count > PyArray_SIZE(source))
        return NULL;
    PyArrayObject *made = target(x, options[OUT]);
    if (!made)
        return NULL;
    const char *from = PyArray_BYTES(source);
    char *to = PyArray_BYTES(made);
    switch (element) {
    case 1:
        PUT_MASKED(uint8_t)
        break;
    case 2:
        PUT_MASKED(uint16_t)
        break;
    case 4:
        PUT_MASKED(uint32_t)
        break;
    case 8:
        PUT_MASKED(uint64_t)
        break;
    default:
        PUT_MASKED(pair)
    }
    return (PyObject *)made;
}

int place_init(void) {
    loops = PICK(index_loops);
    names[DIM] = PyUnicode_InternFromString("dim");
    names[OUT] = PyUnicode_InternFromString("out");
    return names[DIM] && names[OUT] ? 0 : -1;
}

const native_spec place_kernels[] = {
    {"scatter", run_scatter, NULL},
    {"index_copy", run_slices, NULL},
    {"index_fill", run_slices, &(const bool){true}},
    {"take", run_take, NULL, .dense = true},
    {"masked_scatter", run_masked, NULL, .dense = true},
    {NULL, NULL, NULL},
};
