/* The states that labels of ctc_loss stand for: blank, label, blank, ... */
#include "shortcuts.h"

static npy_int64 label_at(PyArrayObject *labels, const char *at) {
    return PyArray_TYPE(labels) == NPY_INT32 ? *(const npy_int32 *)at : *(const npy_int64 *)at;
}

/* How many labels each sample has; false where they are no ints from 0 on. */
static bool read_counts(PyObject *counts, Py_ssize_t *longest, Py_ssize_t *together) {
    *longest = *together = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(counts); i++) {
        int overflow;
        PyObject *one = PyTuple_GET_ITEM(counts, i);
        const long count = PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : -1;
        if (count < 0 || count > INT32_MAX)
            return false;
        *longest = count > *longest ? count : *longest;
        *together += count;
    }
    return true;
}

/* The states of labels that are right, and whether each may follow the one two before it. */
static PyObject *states_of(PyArrayObject *given, PyObject *const *args) {
    Py_ssize_t longest, together;
    if (!read_counts(args[1], &longest, &together))
        return NULL;
    const Py_ssize_t batch = PyTuple_GET_SIZE(args[1]), in_a_row = PyArray_NDIM(given) == 1;
    if (!PyArray_ISBEHAVED_RO(given) ||
        (PyArray_TYPE(given) != NPY_INT64 && PyArray_TYPE(given) != NPY_INT32) ||
        !(in_a_row ? PyArray_DIM(given, 0) == together
                   : PyArray_NDIM(given) == 2 && PyArray_DIM(given, 0) == batch && PyArray_DIM(given, 1) >= longest))
        return NULL;
    npy_intp shape[2] = {batch, 2 * longest + 1};
    const npy_intp step = PyArray_STRIDE(given, in_a_row ? 0 : 1);
    const npy_int64 blank = PyLong_AsLongLong(args[2]), classes = PyLong_AsLongLong(args[3]);
    PyObject *labels = PyArray_SimpleNew(2, shape, NPY_INT64), *skips = labels ? PyArray_ZEROS(2, shape, NPY_BOOL, 0) : NULL;
    const char *from = PyArray_BYTES(given);
    bool usual = skips && !PyErr_Occurred();
    for (Py_ssize_t i = 0; usual && i < batch; i++) {
        const Py_ssize_t count = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[1], i));
        npy_int64 *row = (npy_int64 *)PyArray_DATA((PyArrayObject *)labels) + i * shape[1];
        npy_bool *skip = (npy_bool *)PyArray_DATA((PyArrayObject *)skips) + i * shape[1];
        const char *at = in_a_row ? from : from + i * PyArray_STRIDE(given, 0);
        for (npy_intp k = 0; k < shape[1]; k++)
            row[k] = blank;
        for (Py_ssize_t k = 0; k < count; k++, at += step) {
            row[2 * k + 1] = label_at(given, at);
            usual = usual && row[2 * k + 1] >= 0 && row[2 * k + 1] < classes;
        }
        for (npy_intp k = 3; k < shape[1]; k += 2)
            skip[k] = row[k] != row[k - 2];
        from = in_a_row ? at : from;
    }
    PyObject *made = usual ? PyTuple_Pack(2, labels, skips) : NULL;
    Py_XDECREF(labels);
    Py_XDECREF(skips);
    return made;
}

/* ctc.py: _states(targets, counts, blank, classes) */
static PyObject *run_states(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 4 || kwnames || !is_whole(args[0]) || !PyTuple_CheckExact(args[1]) || !PyLong_CheckExact(args[2]) ||
        !PyLong_CheckExact(args[3]))
        return NULL;
    PyObject *host = PyObject_CallMethodOneArg(SLOT(args[0], DEVICE), shortcut_names[A_TO_HOST], SLOT(args[0], NATIVE));
    PyObject *made = host && PyArray_CheckExact(host) ? states_of((PyArrayObject *)host, args) : NULL;
    Py_XDECREF(host);
    return made;
}

const shortcut_spec state_shortcuts[] = {{"states", run_states}, {NULL, NULL}};
