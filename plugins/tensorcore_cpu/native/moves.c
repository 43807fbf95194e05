/* Kernels that only move elements, or add them up, for complex numbers: those of single precision are as large as integers of 64 bits,
   which every kernel that moves elements knows; others, and sums, are pairs of parts, one dim more. */
#include "moves.h"

#include <math.h>
#include <string.h>

/* For each argument: `d` for numbers that move; in pairs also `i` for an index or a mask with a place for each of them. */
static const native_moving MOVING[] = {
    {"cat", "d", "d"},          {"constant_pad", "d"},     {"edge_pad", "d"},           {"embedding", "d-"},         {"flip", "d"},
    {"gather", "d-", "di"},     {"index_add", NULL, "d-d"}, {"index_copy", "d-d"}, {"index_fill", "d-d"},       {"index_put", "dd", "dd"},
    {"index_select", "d-", "d-"}, {"index_tensors", "d", "d"}, {"masked_fill", "d-d", "did"}, {"masked_scatter", "d-d"}, {"masked_select", "d-"},
    {"nan_to_num", NULL, "d"},
    {"roll", "d"},             {"rot90", "d"},              {"scatter", "d-d"},   {"stack", "d", "d"},
    {"take", "d-"},             {"take_rows", "d", "d"},   {"undiagonal", "d"},         {"where", "-dd", "idd"},
};

enum { MOST = 12 }; /* arguments */

const native_moving *native_moves(const char *name) {
    for (size_t i = 0; i < sizeof MOVING / sizeof *MOVING; i++)
        if (!strcmp(name, MOVING[i].name))
            return &MOVING[i];
    return NULL;
}

static bool is_complex(PyObject *one) { return native_complex_type(one) == TYPE_F32; }

static PyObject *seen_as(PyObject *array, int type) {
    return PyArray_View((PyArrayObject *)array, PyArray_DescrFromType(type), NULL);
}

/* The parts of a number of Python's as floats; false for anything else, and where parts of that type are infinite and it is not. */
static bool read_parts(PyObject *one, float *parts, native_type type) {
    if (!PyFloat_CheckExact(one) && !PyLong_CheckExact(one) && !PyComplex_CheckExact(one))
        return false;
    const Py_complex number = PyComplex_AsCComplex(one);
    parts[0] = (float)number.real;
    parts[1] = (float)number.imag;
    const bool fits = type == TYPE_F64 || (isfinite(number.real) == isfinite(parts[0]) && isfinite(number.imag) == isfinite(parts[1]));
    const bool good = fits && !PyErr_Occurred();
    PyErr_Clear(); /* of an int beyond all doubles */
    return good;
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
    float parts[2];
    if (!read_parts(one, parts, TYPE_F32))
        return NULL;
    int64_t bits;
    memcpy(&bits, parts, sizeof bits);
    return PyLong_FromLongLong(bits);
}

/* What a kernel of floats gets for an argument; NULL, with an exception or without, for what is not in row-major order or of that type. */
static PyObject *as_pairs(PyObject *one, native_type type, bool number) {
    if (PyList_CheckExact(one) && number) {
        PyObject *made = PyList_New(PyList_GET_SIZE(one));
        for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(made); i++) {
            PyObject *item = as_pairs(PyList_GET_ITEM(one, i), type, true);
            if (item)
                PyList_SET_ITEM(made, i, item);
            else
                Py_CLEAR(made);
        }
        return made;
    }
    if (number && PyArray_CheckExact(one)) {
        PyArrayObject *x = (PyArrayObject *)one;
        if (native_complex_type(one) != type || PyArray_NDIM(x) == NATIVE_DIMS || !PyArray_IS_C_CONTIGUOUS(x))
            return NULL;
        return native_as_pairs(x, type);
    }
    if (!number) {
        const native_type places = native_array_type(one);
        if ((places != TYPE_I64 && places != TYPE_BOOL) || PyArray_NDIM((PyArrayObject *)one) == NATIVE_DIMS)
            return NULL;
        return native_with_pairs((PyArrayObject *)one, (PyArray_Descr *)Py_NewRef(PyArray_DESCR((PyArrayObject *)one)), 0);
    }
    float small[2];
    if (!read_parts(one, small, type))
        return NULL;
    PyArrayObject *made = native_empty(1, &(npy_intp){2}, type);
    const Py_complex value = PyComplex_AsCComplex(one);
    for (int i = 0; made && i < 2; i++)
        if (type == TYPE_F32)
            ((float *)PyArray_DATA(made))[i] = small[i];
        else
            ((double *)PyArray_DATA(made))[i] = i ? value.imag : value.real;
    return (PyObject *)made;
}

static bool is_called(PyObject *name, const char *letters) { return !PyUnicode_CompareWithASCIIString(name, letters); }

/* What the kernel, called with `given`, made of arguments that were complex: itself where it was written over, else a new array. */
static PyObject *written_over(PyObject *made, PyObject *const *given, PyObject *const *args, Py_ssize_t count) {
    for (Py_ssize_t i = 0; made && i < count; i++)
        if (made == given[i] && made != args[i]) {
            Py_DECREF(made);
            return Py_NewRef(args[i]);
        }
    return made;
}

PyObject *native_moved(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    const char *moves = kernel->moves->moves, *pairs = kernel->moves->pairs, *kinds = pairs ? pairs : moves;
    native_type type = TYPE_NONE;
    if (all > MOST || nargs != (Py_ssize_t)strlen(kinds))
        return NULL;
    for (Py_ssize_t i = 0; i < nargs && type == TYPE_NONE; i++)
        if (kinds[i] == 'd')
            type = native_complex_type(PyList_CheckExact(args[i]) && PyList_GET_SIZE(args[i]) ? PyList_GET_ITEM(args[i], 0) : args[i]);
    bool summed = !moves;
    for (Py_ssize_t i = nargs; i < all; i++)
        summed |= args[i] == Py_True && is_called(PyTuple_GET_ITEM(kwnames, i - nargs), "accumulate");
    const bool paired = summed || type == TYPE_F64;
    if (type == TYPE_NONE || (paired && !pairs))
        return NULL;
    PyObject *given[MOST], *made = NULL;
    Py_ssize_t count = 0;
    bool good = true;
    for (; good && count < all; count += good) {
        PyObject *one = args[count], *name = count < nargs ? NULL : PyTuple_GET_ITEM(kwnames, count - nargs);
        const bool moved = name ? (is_called(name, "value") || is_called(name, "out")) && one != Py_None : kinds[count] == 'd';
        if (paired)
            given[count] = moved || (!name && kinds[count] != '-') ? as_pairs(one, type, moved) : Py_NewRef(one);
        else
            given[count] = moved ? as_integers(one) : Py_NewRef(one);
        for (Py_ssize_t i = 0; name && moved && i < nargs; i++)
            if (given[count] && one == args[i]) /* one array for a kernel that writes over it, too */
                Py_SETREF(given[count], Py_NewRef(given[i]));
        good = given[count] != NULL;
    }
    if (good) /* sums and pairs that the kernel in C does not take are NumPy's as they are */
        made = paired ? kernel->run(kernel, given, nargs, kwnames) : PyObject_Vectorcall((PyObject *)kernel, given, (size_t)nargs, kwnames);
    made = written_over(made, given, args, count);
    while (count)
        Py_DECREF(given[--count]);
    if (!made || !PyArray_CheckExact(made))
        return made;
    if (PyArray_TYPE((PyArrayObject *)made) == NPY_INT64)
        Py_SETREF(made, seen_as(made, NPY_CFLOAT));
    else if (paired && native_complex_type(made) == TYPE_NONE)
        Py_SETREF(made, native_of_pairs((PyArrayObject *)made, type));
    return made;
}
