/* scatter: elements of any type written where an index says, one after the other, so that of equal indices the last counts. */
#include "plan.h"
#include "rows.h"

#include <string.h>

enum { DIM, OUT, OPTIONS };
static PyObject *names[OPTIONS];

/* The index as dense int64 of the dims of x, with every place inside of dim `dim`; NULL, with an exception or without. */
static PyArrayObject *checked(PyObject *object, PyArrayObject *x, int dim) {
    PyArrayObject *index = (PyArrayObject *)object;
    if (native_array_type(object) != TYPE_I64 || PyArray_NDIM(index) != PyArray_NDIM(x))
        return NULL;
    for (int i = 0; i < PyArray_NDIM(x); i++)
        if (i != dim && PyArray_DIM(index, i) > PyArray_DIM(x, i))
            return NULL;
    index = native_dense(object);
    const int64_t *at = index ? PyArray_DATA(index) : NULL;
    uint64_t size = (uint64_t)PyArray_DIM(x, dim), wrong = 0;
    for (npy_intp k = 0, count = index ? PyArray_SIZE(index) : 0; k < count; k++)
        wrong |= (uint64_t)at[k] >= size;
    if (wrong)
        Py_CLEAR(index);
    return index;
}

#define PUT_ROW(type)                                                                                         \
    for (npy_intp k = 0; k < width; k++)                                                                      \
        ((type *)to)[along ? at[k] : k + at[k] * step] = ((const type *)from)[one ? 0 : k];

/* A row of the index at `at`: `to` is its place in the result but for the index, `step` that of the dim in elements. */
static void put_row(native_type type, char *to, const char *from, bool one, const int64_t *at, npy_intp width, bool along,
                    npy_intp step) {
    switch (TYPE_SIZE[type]) {
    case 1:
        PUT_ROW(uint8_t)
        break;
    case 2:
        PUT_ROW(uint16_t)
        break;
    case 4:
        PUT_ROW(uint32_t)
        break;
    default:
        PUT_ROW(uint64_t)
    }
}

static void put(PyArrayObject *made, native_type type, int dim, PyArrayObject *index, const char *from, bool one) {
    int last = PyArray_NDIM(index) - 1;
    npy_intp width = PyArray_DIM(index, last), place[NATIVE_DIMS] = {0}, step = PyArray_STRIDE(made, dim) / TYPE_SIZE[type];
    const int64_t *at = PyArray_DATA(index);
    for (npy_intp rest = width ? PyArray_SIZE(index) / width : 0; rest > 0; rest--) {
        char *to = PyArray_BYTES(made);
        for (int i = 0; i < last; i++)
            to += i == dim ? 0 : place[i] * PyArray_STRIDE(made, i);
        put_row(type, to, from, one, at, width, dim == last, step);
        at += width;
        from += one ? 0 : width * TYPE_SIZE[type];
        for (int i = last - 1; i >= 0 && ++place[i] == PyArray_DIM(index, i); i--)
            place[i] = 0;
    }
}

/* Of arrays of one type, where index and source have one shape, or of a number. */
static PyObject *run_scatter(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    double number;
    native_type type = nargs == 3 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_double(options[DIM], &number))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *index = NULL, *source = NULL, *made = NULL;
    int dim = (int)number;
    bool place = !native_is_none(options[OUT]);
    if (dim < 0 || dim >= PyArray_NDIM(x) || !PyArray_SIZE(x) ||
        (place && (options[OUT] != args[0] || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_ISWRITEABLE(x))))
        return NULL;
    native_operand value;
    bool array = native_array_type(args[2]) == type;
    if (!array && !native_number(args[2], type, &value))
        return NULL;
    source = (PyArrayObject *)args[2];
    if (!(index = checked(args[1], x, dim)))
        return NULL;
    bool fits = !place || !native_overlap(index, x);
    if (array)
        fits = fits && PyArray_NDIM(source) == PyArray_NDIM(index) &&
               PyArray_CompareLists(PyArray_DIMS(source), PyArray_DIMS(index), PyArray_NDIM(index)) &&
               (!place || !native_overlap(source, x));
    source = fits && array ? native_dense(args[2]) : NULL;
    if (fits && (source || !array))
        made = place ? (PyArrayObject *)Py_NewRef(args[0]) : (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER);
    if (made)
        put(made, type, dim, index, array ? PyArray_BYTES(source) : value.data, !array);
    Py_DECREF(index);
    Py_XDECREF(source);
    return (PyObject *)made;
}

int place_init(void) {
    names[DIM] = PyUnicode_InternFromString("dim");
    names[OUT] = PyUnicode_InternFromString("out");
    return names[DIM] && names[OUT] ? 0 : -1;
}

const native_spec place_kernels[] = {
    {"scatter", run_scatter, NULL},
    {NULL, NULL, NULL},
};
