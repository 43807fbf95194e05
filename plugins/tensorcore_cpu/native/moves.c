/* Kernels that only move elements, for complex numbers of single precision: they are as large as integers of 64 bits, which every
   such kernel knows. Those of double precision have no such twin. */
#include "moves.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *moves;
} MOVING[] = {
    {"cat", "d"},         {"constant_pad", "d"},  {"edge_pad", "d"},        {"embedding", "d-"},     {"flip", "d"},
    {"gather", "d-"},     {"index_copy", "d-d"},  {"index_fill", "d-d"},    {"index_put", "dd"},     {"index_select", "d-"},
    {"index_tensors", "d"}, {"masked_fill", "d-d"}, {"masked_scatter", "d-d"}, {"masked_select", "d-"},
    {"put", "d-d"},       {"roll", "d"},          {"rot90", "d"},           {"scatter", "d-d"},      {"stack", "d"},
    {"take", "d-"},       {"take_rows", "d"},       {"undiagonal", "d"},
    {"where", "-dd"},
};

enum { MOST = 12 }; /* arguments */

const char *native_moves(const char *name) {
    for (size_t i = 0; i < sizeof MOVING / sizeof *MOVING; i++)
        if (!strcmp(name, MOVING[i].name))
            return MOVING[i].moves;
    return NULL;
}

static bool is_complex(PyObject *one) { return native_complex_type(one) == TYPE_F32; }

static PyObject *seen_as(PyObject *array, int type) {
    return PyArray_View((PyArrayObject *)array, PyArray_DescrFromType(type), NULL);
}

/* What a kernel of integers gets for an array, a list of them or a number; NULL without an exception for anything else. */
static PyObject *as_integers(PyObject *one) {
    if (is_complex(one))
        return seen_as(one, NPY_INT64);
    if (PyList_CheckExact(one)) {
        const Py_ssize_t count = PyList_GET_SIZE(one);
        PyObject *made = PyList_New(count);
        for (Py_ssize_t i = 0; made && i < count; i++) {
            PyObject *item = is_complex(PyList_GET_ITEM(one, i)) ? seen_as(PyList_GET_ITEM(one, i), NPY_INT64) : NULL;
            if (item)
                PyList_SET_ITEM(made, i, item);
            else
                Py_CLEAR(made);
        }
        return made;
    }
    if (!PyFloat_CheckExact(one) && !PyLong_CheckExact(one) && !PyComplex_CheckExact(one))
        return NULL;
    const Py_complex number = PyComplex_AsCComplex(one);
    const float parts[2] = {(float)number.real, (float)number.imag};
    if (PyErr_Occurred() || isfinite(number.real) != isfinite(parts[0]) || isfinite(number.imag) != isfinite(parts[1])) {
        PyErr_Clear(); /* of an int beyond all doubles */
        return NULL;
    }
    int64_t bits;
    memcpy(&bits, parts, sizeof bits);
    return PyLong_FromLongLong(bits);
}

static bool is_called(PyObject *name, const char *letters) { return !PyUnicode_CompareWithASCIIString(name, letters); }

PyObject *native_moved(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    bool found = false, good = all <= MOST && nargs == (Py_ssize_t)strlen(kernel->moves);
    for (Py_ssize_t i = 0; good && i < nargs && !found; i++)
        found = kernel->moves[i] == 'd' &&
                is_complex(PyList_CheckExact(args[i]) && PyList_GET_SIZE(args[i]) ? PyList_GET_ITEM(args[i], 0) : args[i]);
    if (!found)
        return NULL;
    PyObject *given[MOST], *made = NULL;
    Py_ssize_t count = 0;
    for (; good && count < all; count += good) {
        PyObject *one = args[count], *name = count < nargs ? NULL : PyTuple_GET_ITEM(kwnames, count - nargs);
        const bool moves = name ? (is_called(name, "value") || is_called(name, "out")) && one != Py_None
                                : kernel->moves[count] == 'd';
        given[count] = moves ? as_integers(one) : name && one == Py_True && is_called(name, "accumulate") ? NULL : Py_NewRef(one);
        good = given[count] != NULL;
    }
    if (good)
        made = PyObject_Vectorcall((PyObject *)kernel, given, (size_t)nargs, kwnames);
    for (Py_ssize_t i = 0; made && i < count; i++)
        if (made == given[i] && made != args[i]) { /* what was written over */
            Py_DECREF(made);
            made = Py_NewRef(args[i]);
            break;
        }
    while (count)
        Py_DECREF(given[--count]);
    if (!made || !PyArray_CheckExact(made) || PyArray_TYPE((PyArrayObject *)made) != NPY_INT64)
        return made;
    PyObject *numbers = seen_as(made, NPY_CFLOAT);
    Py_DECREF(made);
    return numbers;
}
