/* What is done along one dim, or with matrices: (input, dim and other words, out=). */
#include "shortcuts.h"

/* What such a call has to know, see along_way: the dtypes it accepts, those of its results, in which None is the input's, the class of
   several results or None, its words, what they are where they are left out, what records, what stores a result of another shape than
   that of `out`, and what asks a kernel that found no memory a second time. Words that may be left out are bools, but for "dim"; others count elements along it.
   What works on matrices has no dim, and its words are bools and ints; it knows besides what the kernel is always told, the words that
   it is never told, which are usual as they are left out, how many words may be given by position, and whether the matrices are square; None of what takes any dims. */
enum { OP, ACCEPTS, RESULT, ANSWER, WORDS, DEFAULTS, RECORD, STORE, AGAIN, OF_MATRICES };
enum { TOLD, UNTOLD, POSITIONS, SQUARE }; /* of that */
enum { MOST_WORDS = 4 };

static PyObject *of_matrices(const shortcut *self, int one) {
    return self->known[OF_MATRICES] == Py_None ? NULL : PyTuple_GET_ITEM(self->known[OF_MATRICES], one);
}

/* The words of a call, in their order, and its place; false where it has others. */
static bool is_read(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values, PyObject **out) {
    const Py_ssize_t count = PyTuple_GET_SIZE(self->known[WORDS]);
    PyObject *positions = of_matrices(self, POSITIONS);
    if (nargs < 1 || nargs - 1 > (positions ? PyLong_AsSsize_t(positions) : count) || count > MOST_WORDS)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = i < nargs - 1 ? args[1 + i] : PyTuple_GET_ITEM(self->known[DEFAULTS], i);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k), *value = args[nargs + k];
        Py_ssize_t i = nargs - 1;
        while (i < count && PyTuple_GET_ITEM(self->known[WORDS], i) != name)
            i++;
        if (i < count)
            values[i] = value;
        else if (name == shortcut_names[A_OUT])
            *out = value;
        else if (name != shortcut_names[A_DTYPE] || value != Py_None)
            return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyBool_Check(PyTuple_GET_ITEM(self->known[DEFAULTS], i)) ? !PyBool_Check(values[i]) : !PyLong_CheckExact(values[i]))
            return false;
    return true;
}

/* What the kernel of matrices gets by name; NULL where they are none, or where the kernel would have to be told what it cannot know. */
static PyObject *told(const shortcut *self, PyObject *const *values, PyArrayObject *array) {
    const int ndim = PyArray_NDIM(array);
    if ((of_matrices(self, SQUARE) != Py_None && ndim < 2) || (of_matrices(self, SQUARE) == Py_True && PyArray_DIM(array, ndim - 1) != PyArray_DIM(array, ndim - 2)))
        return NULL;
    PyObject *made = PyDict_Copy(of_matrices(self, TOLD));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(self->known[WORDS]); i++) {
        PyObject *name = PyTuple_GET_ITEM(self->known[WORDS], i);
        const bool untold = PySequence_Contains(of_matrices(self, UNTOLD), name) == 1;
        if (untold ? values[i] != PyTuple_GET_ITEM(self->known[DEFAULTS], i) : PyDict_SetItem(made, name, values[i]))
            Py_CLEAR(made);
    }
    return made;
}

/* What the kernel gets by name, with the dim counted from the front; NULL where that is none, or where it has fewer elements than are
   asked for. */
static PyObject *options_of(const shortcut *self, PyObject *const *values, PyArrayObject *array) {
    const Py_ssize_t count = PyTuple_GET_SIZE(self->known[WORDS]);
    Py_ssize_t at = NO_DIM;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyTuple_GET_ITEM(self->known[WORDS], i) == shortcut_names[A_DIM])
            at = wrapped(values[i], PyArray_NDIM(array));
    PyObject *made = at == NO_DIM ? NULL : PyDict_New(), *dim = PyLong_FromSsize_t(at);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *name = PyTuple_GET_ITEM(self->known[WORDS], i);
        const bool is_dim = name == shortcut_names[A_DIM];
        const Py_ssize_t number = is_dim || PyBool_Check(values[i]) ? 1 : wrapped(values[i], NPY_MAX_INT);
        if (!dim || number < 1 || number > PyArray_DIM(array, (int)at) || PyDict_SetItem(made, name, is_dim ? dim : values[i]))
            Py_CLEAR(made);
    }
    Py_XDECREF(dim);
    return made;
}

/* The dtypes of the results. */
static PyObject *kinds_of(PyObject *result, PyObject *input) {
    if (!PyTuple_CheckExact(result))
        return Py_NewRef(result == Py_None ? SLOT(input, DTYPE) : result);
    PyObject *made = PyTuple_New(PyTuple_GET_SIZE(result));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(made); i++)
        PyTuple_SET_ITEM(made, i, kinds_of(PyTuple_GET_ITEM(result, i), input));
    return made;
}

/* Results of names as the class that has them; takes the reference. */
static PyObject *answered(PyObject *answer, PyObject *made) {
    PyObject *given = made && answer != Py_None && PyTuple_CheckExact(made) ? PyTuple_Pack(1, made) : NULL;
    if (given)
        Py_SETREF(made, PyTuple_Type.tp_new((PyTypeObject *)answer, given, NULL));
    Py_XDECREF(given);
    return made;
}

/* A function that works along a dim, or with matrices, where there are elements. What picks some keeps where they were, which recording has to be told:
   that is for the function. */
static PyObject *run_along(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *values[MOST_WORDS], *out = Py_None, *made = NULL;
    if (nargs < 1 || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)) || counts(INFERENCE) ||
        PySet_Contains(self->known[ACCEPTS], SLOT(args[0], DTYPE)) != 1 || !is_read(self, args, nargs, kwnames, values, &out))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)SLOT(args[0], NATIVE);
    if (!PyArray_NDIM(array) || !PyArray_SIZE(array) || (SLOT(args[0], NODE) != Py_None && self->known[ANSWER] != Py_None))
        return NULL;
    PyObject *options = of_matrices(self, TOLD) ? told(self, values, array) : options_of(self, values, array), *inputs = options ? PyTuple_Pack(1, args[0]) : NULL;
    PyObject *kinds = inputs ? kinds_of(self->known[RESULT], args[0]) : NULL;
    if (kinds && out == Py_None)
        made = apply_call(self->known[RECORD], self->known[AGAIN], self->known[OP], inputs, options, options, kinds);
    else if (kinds)
        made = apply_into_call(self->known[STORE], self->known[OP], inputs, options, kinds, out);
    if (made == Py_None)
        Py_CLEAR(made);
    made = answered(self->known[ANSWER], made);
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the function makes the call again, and says what is wrong */
    Py_XDECREF(kinds);
    Py_XDECREF(options);
    Py_XDECREF(inputs);
    return made;
}

/* Whether two arrays have size 3 along the dim and else shapes that broadcast, equal ones where the call may be recorded: the formulas of
   its gradient do not broadcast. */
static bool are_crossed(PyArrayObject *x, PyArrayObject *y, Py_ssize_t dim, bool recorded) {
    if (dim == NO_DIM || !PyArray_NDIM(x) || PyArray_NDIM(x) != PyArray_NDIM(y) || PyArray_DIM(x, (int)dim) != 3 || PyArray_DIM(y, (int)dim) != 3)
        return false;
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        const npy_intp one = PyArray_DIM(x, i), other = PyArray_DIM(y, i);
        if (!one || !other || (one != other && (recorded || (one != 1 && other != 1))))
            return false;
    }
    return true;
}

/* Whether values can be looked for in a sorted sequence: one of one dim, or of the leading dims of the values. */
static bool are_sought(PyArrayObject *sequence, PyArrayObject *values) {
    const int ndim = PyArray_NDIM(sequence);
    return ndim == 1 || (ndim && ndim == PyArray_NDIM(values) && PyArray_CompareLists(PyArray_DIMS(sequence), PyArray_DIMS(values), ndim - 1));
}

/* products.py: cross(input, other, dim, out=None), and buckets.py: searchsorted(sorted_sequence, input, right=False, out=None), of two
   tensors of one dtype and device; they know what the ways above do, of one word, and how many arguments may be given by position. */
static PyObject *run_pair(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { MOST_GIVEN = ANSWER };
    PyObject *value = nargs > 2 ? args[2] : PyTuple_GET_ITEM(self->known[DEFAULTS], 0), *out = Py_None, *made = NULL;
    PyObject *word = PyTuple_GET_ITEM(self->known[WORDS], 0);
    if (nargs < 2 || nargs > PyLong_AsSsize_t(self->known[MOST_GIVEN]) || counts(INFERENCE))
        return NULL;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        if (PyTuple_GET_ITEM(kwnames, k) == shortcut_names[A_OUT])
            out = args[nargs + k];
        else if (PyTuple_GET_ITEM(kwnames, k) == word && nargs < 3)
            value = args[nargs + k];
        else
            return NULL;
    }
    for (int i = 0; i < 2; i++)
        if (!is_whole(args[i]) || !PyArray_CheckExact(SLOT(args[i], NATIVE)) || SLOT(args[i], DTYPE) != SLOT(args[0], DTYPE) ||
            SLOT(args[i], DEVICE) != SLOT(args[0], DEVICE))
            return NULL;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE), *y = (PyArrayObject *)SLOT(args[1], NATIVE);
    const bool along = word == shortcut_names[A_DIM], recorded = SLOT(args[0], NODE) != Py_None || SLOT(args[1], NODE) != Py_None;
    const Py_ssize_t dim = along ? wrapped(value, PyArray_NDIM(x)) : NO_DIM;
    if (PySet_Contains(self->known[ACCEPTS], SLOT(args[0], DTYPE)) != 1 || (along ? !are_crossed(x, y, dim, recorded) : !PyBool_Check(value) || !are_sought(x, y)))
        return NULL;
    PyObject *told = along ? PyLong_FromSsize_t(dim) : Py_NewRef(value), *options = told ? PyDict_New() : NULL;
    PyObject *inputs = options && !PyDict_SetItem(options, word, told) ? PyTuple_Pack(2, args[0], args[1]) : NULL;
    PyObject *kind = self->known[RESULT] == Py_None ? SLOT(args[0], DTYPE) : self->known[RESULT];
    if (inputs && out == Py_None)
        made = apply_call(self->known[RECORD], self->known[AGAIN], self->known[OP], inputs, options, options, kind);
    else if (inputs)
        made = apply_into_call(self->known[STORE], self->known[OP], inputs, options, kind, out);
    if (made == Py_None)
        Py_CLEAR(made);
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the function makes the call again, and says what is wrong */
    Py_XDECREF(told);
    Py_XDECREF(options);
    Py_XDECREF(inputs);
    return made;
}

const shortcut_spec along_shortcuts[] = {{"along", run_along}, {"pair", run_pair}, {NULL, NULL}};
