/* nonzero, masked_select and their counts: a first pass counts, a second one lists. */
#include "nonzero.h"

#include "rows.h"

#include <string.h>

DECLARE_LOOPS(nonzero_loops, nonzero_loops);

static const nonzero_loops *loops;

enum { BLOCK = 512 }; /* elements that are listed at a time, into a place of their own */

static bool is_real(native_type type) { return type <= TYPE_F16; }

/* Lists the places of a dense array: column d of `columns` gets the index in dim d of each. */
static void list(PyArrayObject *array, native_type type, int64_t **columns) {
    int last = PyArray_NDIM(array) - 1;
    npy_intp width = PyArray_DIM(array, last), at[NATIVE_DIMS] = {0}, rows = PyArray_SIZE(array) / (width ? width : 1);
    const char *data = PyArray_BYTES(array);
    int64_t places[BLOCK];
    npy_intp found = 0;
    for (npy_intp row = 0; row < rows; row++) {
        npy_intp before = found;
        for (npy_intp first = 0; first < width; first += BLOCK) {
            npy_intp some = width - first < BLOCK ? width - first : BLOCK;
            npy_intp more = loops->list[native_log_size(TYPE_SIZE[type])](data, some, is_real(type), places);
            for (npy_intp k = 0; k < more; k++)
                columns[last][found + k] = first + places[k];
            found += more;
            data += some * TYPE_SIZE[type];
        }
        for (int d = 0; d < last; d++)
            for (npy_intp k = before; k < found; k++)
                columns[d][k] = at[d];
        for (int d = last - 1; d >= 0 && ++at[d] == PyArray_DIM(array, d); d--)
            at[d] = 0;
    }
}

/* As one matrix with its columns side by side in memory, or as a tuple of columns. */
static PyObject *run_nonzero(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool pairs = nargs == 1 && !kwnames && native_complex_type(args[0]) != TYPE_NONE;
    const native_type type = pairs ? TYPE_BOOL : nargs == 1 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !PyArray_NDIM((PyArrayObject *)args[0]))
        return NULL;
    PyArrayObject *array = pairs ? native_not_zero(args[0]) : native_dense(args[0]);
    if (!array)
        return NULL;
    int ndim = PyArray_NDIM(array);
    npy_intp count = loops->count[native_log_size(TYPE_SIZE[type])](PyArray_DATA(array), PyArray_SIZE(array), is_real(type));
    int64_t *columns[NATIVE_DIMS];
    PyObject *made = kernel->data ? PyTuple_New(ndim)
                                  : (PyObject *)native_empty_ordered(2, (npy_intp[]){count, ndim}, TYPE_I64, (int[]){1, 0});
    for (int d = 0; made && d < ndim; d++) {
        if (kernel->data) {
            PyArrayObject *column = native_empty(1, &count, TYPE_I64);
            if (!column) {
                Py_CLEAR(made);
                break;
            }
            PyTuple_SET_ITEM(made, d, (PyObject *)column);
            columns[d] = PyArray_DATA(column);
        } else {
            columns[d] = (int64_t *)PyArray_DATA((PyArrayObject *)made) + d * count;
        }
    }
    if (made && count)
        list(array, type, columns);
    Py_DECREF(array);
    return made;
}

static PyObject *run_count(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 1 || kwnames || native_array_type(args[0]) != TYPE_BOOL || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[0]))
        return NULL;
    PyArrayObject *mask = (PyArrayObject *)args[0];
    return PyLong_FromSsize_t(loops->count[0](PyArray_DATA(mask), PyArray_SIZE(mask), false));
}

static PyObject *run_select(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type = nargs == 2 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || native_array_type(args[1]) != TYPE_BOOL)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *mask = (PyArrayObject *)args[1];
    if (PyArray_NDIM(x) != PyArray_NDIM(mask) || !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(mask), PyArray_NDIM(x)) ||
        !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(mask))
        return NULL;
    npy_intp size = PyArray_SIZE(x), count = loops->count[0](PyArray_DATA(mask), size, false), found = 0;
    PyArrayObject *made = native_empty(1, &count, type);
    _Alignas(8) char picked[BLOCK * 8];
    for (npy_intp first = 0; made && first < size; first += BLOCK) {
        npy_intp some = size - first < BLOCK ? size - first : BLOCK, bytes = TYPE_SIZE[type];
        npy_intp more = loops->pick[native_log_size(TYPE_SIZE[type])](PyArray_BYTES(x) + first * bytes,
                                                    (const uint8_t *)PyArray_BYTES(mask) + first, some, picked);
        memcpy(PyArray_BYTES(made) + found * bytes, picked, (size_t)(more * bytes));
        found += more;
    }
    return (PyObject *)made;
}

int nonzero_init(void) {
    loops = PICK(nonzero_loops);
    return 0;
}

const native_spec nonzero_kernels[] = {
    {"nonzero", run_nonzero, NULL},
    {"nonzero_by_dim", run_nonzero, &(const bool){true}},
    {"count_true", run_count, NULL, .dense = true},
    {"masked_select", run_select, NULL},
    {NULL, NULL, NULL},
};
