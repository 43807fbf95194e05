/* Arrays in row-major order over neighbouring dims: all, the last ones, the first ones, some between; and over the first and the
   last ones around others. */
#include "folds.h"

enum { GRAIN = 1 << 15 }; /* elements: what one piece of a long row holds, and a reason for a second thread */

bool native_fold_around(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim) {
    made->type = type;
    made->array = (PyArrayObject *)object;
    if (type == TYPE_NONE || !PyArray_IS_C_CONTIGUOUS(made->array) || !PyArray_SIZE(made->array))
        return false;
    int ndim = PyArray_NDIM(made->array);
    bool reduced[NATIVE_DIMS], keep = keepdim && PyObject_IsTrue(keepdim) == 1;
    bool all = native_is_none(dim);
    for (int i = 0; i < ndim; i++)
        reduced[i] = all;
    if (!all) {
        bool tuple = PyTuple_CheckExact(dim);
        Py_ssize_t given = tuple ? PyTuple_GET_SIZE(dim) : 1;
        for (Py_ssize_t k = 0; k < given; k++) {
            PyObject *one = tuple ? PyTuple_GET_ITEM(dim, k) : dim;
            if (!PyLong_CheckExact(one))
                return false;
            long i = PyLong_AsLong(one);
            if (i < 0 || i >= ndim) {
                PyErr_Clear();
                return false;
            }
            reduced[i] = true;
        }
        if (!given)
            return false;
    }
    made->front = made->outer = made->count = made->inner = 1;
    made->ndim = 0;
    bool begun = false, ended = false;
    for (int i = 0; i < ndim; i++) {
        npy_intp size = PyArray_DIM(made->array, i);
        if (!reduced[i] || keep)
            made->shape[made->ndim++] = reduced[i] ? 1 : size;
        if (size == 1)
            continue;
        if (reduced[i] ? ended && (made->front > 1 || made->outer > 1) : made->front > 1)
            return false;
        if (reduced[i] && ended) { /* what was reduced stands before what is kept */
            made->front = made->count;
            made->outer = made->inner;
            made->count = made->inner = 1;
            ended = false;
        }
        begun |= reduced[i];
        ended |= begun && !reduced[i];
        *(reduced[i] ? &made->count : begun ? &made->inner : &made->outer) *= size;
    }
    return true;
}

bool native_folded(native_fold *made, PyObject *object, native_type type, PyObject *dim, PyObject *keepdim) {
    return native_fold_around(made, object, type, dim, keepdim) && made->front == 1;
}

native_cut native_cut_fold(const native_fold *of, npy_intp strip) {
    const npy_intp rows = GRAIN / of->inner < 256 ? 256 : GRAIN / of->inner; /* of a piece */
    native_cut cut = {.strips = (of->inner + strip - 1) / strip, .pieces = (of->count + rows - 1) / rows};
    /* Alike, so that two threads take as long; from a line of the cache to another where elements lie in a row, else of as
       many rows as are added at once. */
    const npy_intp even = of->inner == 1 ? 64 : 8;
    cut.length = ((of->count + cut.pieces - 1) / cut.pieces + even - 1) / even * even;
    cut.pieces = (of->count + cut.length - 1) / cut.length;
    const npy_intp length = of->count < cut.length ? of->count : cut.length, width = of->inner < strip ? of->inner : strip;
    cut.grain = GRAIN / (length * width) > 0 ? GRAIN / (length * width) : 1;
    return cut;
}
