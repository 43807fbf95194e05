/* Python's numbers, and lists of them, as arrays. */
#include "shortcuts.h"

enum { DEEPEST = 8 };
typedef enum { BOOLS, INTS, FLOATS, OTHER } number_kind;

static number_kind kind_of(PyObject *one) {
    return PyFloat_CheckExact(one) ? FLOATS : PyLong_CheckExact(one) ? INTS : PyBool_Check(one) ? BOOLS : OTHER;
}

static bool is_row(PyObject *one) { return PyList_CheckExact(one) || PyTuple_CheckExact(one); }

/* The widest kind of the numbers below `one`, which has the `dims` of `shape`; OTHER where it has not, or has no numbers. */
static number_kind widest(PyObject *one, const npy_intp *shape, int dims) {
    if (!dims)
        return kind_of(one);
    if (!is_row(one) || PySequence_Fast_GET_SIZE(one) != *shape)
        return OTHER;
    number_kind found = BOOLS;
    for (npy_intp i = 0; i < *shape && found != OTHER; i++) {
        const number_kind kind = widest(PySequence_Fast_GET_ITEM(one, i), shape + 1, dims - 1);
        found = kind > found ? kind : found;
    }
    return found;
}

/* Writes the numbers below `one` from `out` on, and answers with the place behind them; NULL with an exception. Nothing of Python's
   own runs meanwhile, so the lists are what they were. */
static char *filled(PyObject *one, const npy_intp *shape, int dims, int type, char *out) {
    if (dims) {
        for (npy_intp i = 0; out && i < *shape; i++)
            out = filled(PySequence_Fast_GET_ITEM(one, i), shape + 1, dims - 1, type, out);
        return out;
    }
    if (type == NPY_BOOL) {
        *(npy_bool *)out = one == Py_True;
        return out + sizeof(npy_bool);
    }
    if (type == NPY_INT64) {
        *(npy_int64 *)out = PyLong_AsLongLong(one);
        return *(npy_int64 *)out == -1 && PyErr_Occurred() ? NULL : out + sizeof(npy_int64);
    }
    const double value = PyFloat_CheckExact(one) ? PyFloat_AS_DOUBLE(one) : PyLong_AsDouble(one);
    if (value == -1.0 && PyErr_Occurred())
        return NULL;
    if (type == NPY_DOUBLE) {
        *(npy_double *)out = value;
        return out + sizeof(npy_double);
    }
    *(npy_float *)out = (npy_float)value;
    return out + sizeof(npy_float);
}

/* literal.py: plain_array(data, wanted, floats) of numbers of one row, or of rows of equal lengths; `wanted` is None or NumPy's dtype,
   `floats` the one of floats where none is wanted */
static PyObject *run_plain_array(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    npy_intp shape[DEEPEST];
    int dims = 0;
    if (nargs != 3 || kwnames || !PyArray_DescrCheck(args[2]) || (args[1] != Py_None && !PyArray_DescrCheck(args[1])))
        return NULL;
    PyObject *first = args[0];
    for (; is_row(first); first = PySequence_Fast_GET_ITEM(first, 0)) {
        if (dims == DEEPEST || !(shape[dims++] = PySequence_Fast_GET_SIZE(first)))
            return NULL;
    }
    const number_kind kind = widest(args[0], shape, dims);
    if (kind == OTHER)
        return NULL;
    const PyArray_Descr *asked = (const PyArray_Descr *)(args[1] == Py_None ? args[2] : args[1]);
    const int type = args[1] == Py_None && kind != FLOATS ? (kind == INTS ? NPY_INT64 : NPY_BOOL) : asked->type_num;
    const bool fits = type == NPY_FLOAT || type == NPY_DOUBLE || (type == NPY_INT64 && kind != FLOATS) || (type == NPY_BOOL && kind == BOOLS);
    if (!fits)
        return NULL;
    PyObject *made = PyArray_SimpleNew(dims, shape, type);
    if (made && !filled(args[0], shape, dims, type, PyArray_DATA((PyArrayObject *)made))) {
        PyErr_Clear(); /* a number too large: the function says which */
        Py_CLEAR(made);
    }
    return made;
}

const shortcut_spec literal_shortcuts[] = {{"plain_array", run_plain_array}, {NULL, NULL}};
