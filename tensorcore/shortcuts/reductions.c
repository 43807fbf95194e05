/* Reductions over everything, or over dims. */
#include "shortcuts.h"

/* What the short way of a reduction has to know besides, see reduced_way: what that of calls with a place knows, but for numbers, which
   it has none of. AGAIN asks a kernel that found no memory a second time, WITH_DIMS is whether calls with a dim are usual too, or what takes
   those, which gives None where it does not. */
enum { OP, AGAIN = OP_FLOATS, WITH_DIMS = 9 };
enum { MOST_DIMS = 8 };

/* An int, or some of them, as a tuple counted from the front; NULL where one is no dim or is there twice. */
static PyObject *dims_of(PyObject *dim, Py_ssize_t ndim) {
    const bool several = PyTuple_CheckExact(dim) || PyList_CheckExact(dim);
    const Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(dim) : 1;
    npy_intp found[MOST_DIMS];
    if (!ndim || ndim > MOST_DIMS || !count || count > ndim)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = several ? PySequence_Fast_GET_ITEM(dim, i) : dim;
        if (!PyLong_CheckExact(one) || (found[i] = wrapped(one, ndim)) == NO_DIM)
            return NULL;
        for (Py_ssize_t k = 0; k < i; k++)
            if (found[k] == found[i])
                return NULL;
    }
    return tuple_of(found, (int)count);
}

/* dim, keepdim and out of a call by position or by name; false where it has others. */
static bool is_read(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **dim, PyObject **keepdim, PyObject **out) {
    *dim = nargs > 1 ? args[1] : Py_None;
    *keepdim = nargs > 2 ? args[2] : Py_False;
    *out = Py_None;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (name == shortcut_names[A_DIM] && nargs < 2)
            *dim = args[nargs + i];
        else if (name == shortcut_names[A_KEEPDIM] && nargs < 3)
            *keepdim = args[nargs + i];
        else if (name == shortcut_names[A_OUT])
            *out = args[nargs + i];
        else
            return false;
    }
    return true;
}

/* The names of what a kernel is told of dims; borrowed. */
static PyObject *both_words(void) {
    static PyObject *both;
    return both || (both = PyTuple_Pack(2, shortcut_names[A_DIM], shortcut_names[A_KEEPDIM])) ? both : NULL;
}

static PyObject *options_of(PyObject *dims, PyObject *keepdim) {
    return Py_BuildValue("{OOOO}", shortcut_names[A_DIM], dims, shortcut_names[A_KEEPDIM], keepdim);
}

/* The kernel's result as a tensor, on the tape where `tied`; NULL where the function has to look. */
static PyObject *reduced(const shortcut *self, PyObject *input, PyObject *dims, PyObject *keepdim, PyObject *words, bool tied) {
    PyObject *device = Py_NewRef(SLOT(input, DEVICE)), *result = self->known[OP_RESULT], *options = NULL, *array = NULL, *made = NULL;
    PyObject *given[] = {Py_NewRef(SLOT(input, NATIVE)), dims, keepdim}, *dtype = Py_NewRef(result == Py_None ? SLOT(input, DTYPE) : result);
    PyObject *native = run_kernel(device, self->known[OP_NAME], given, 1, words);
    if (!native && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        options = dims ? options_of(dims, keepdim) : NULL;
        native = asked_again(self->known[AGAIN], device, self->known[OP_NAME], given, 1, options);
        Py_CLEAR(options);
    }
    Py_DECREF(given[0]);
    if (native && (array = PyObject_GetAttr(device, shortcut_names[A_ARRAY])) && (PyObject *)Py_TYPE(native) != array)
        Py_SETREF(native, PyObject_CallMethodOneArg(device, shortcut_names[A_AS_NATIVE], native));
    if (native && array)
        made = new_tensor(native, dtype, device);
    if (made && tied) {
        options = options_of(dims ? dims : Py_None, keepdim);
        if (!options || !recorded_call(self->known[OP], &input, 1, options, made))
            Py_CLEAR(made);
    }
    Py_XDECREF(options);
    Py_XDECREF(array);
    Py_XDECREF(native);
    Py_DECREF(dtype);
    Py_DECREF(device);
    return made;
}

/* calls.py: a reduction: (input, dim=None, keepdim=False, *, out=None) */
static PyObject *run_reduced(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dim, *keepdim, *out, *dims = NULL, *made;
    if (nargs < 1 || nargs > 3 || counts(INFERENCE) || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)) ||
        PySet_Contains(self->known[OP_ACCEPTS], SLOT(args[0], DTYPE)) != 1 || !is_read(args, nargs, kwnames, &dim, &keepdim, &out) ||
        !PyBool_Check(keepdim) || (dim == Py_None && keepdim == Py_True) || !both_words())
        return NULL;
    if (dim != Py_None && self->known[WITH_DIMS] != Py_True) {
        if ((made = PyObject_Vectorcall(self->known[WITH_DIMS], args, (size_t)nargs, kwnames)) == Py_None)
            Py_CLEAR(made);
        return made;
    }
    if (PyLong_CheckExact(dim) && !PyArray_NDIM((PyArrayObject *)SLOT(args[0], NATIVE)) && wrapped(dim, 0) != NO_DIM) {
        dim = Py_None; /* of one element */
        keepdim = Py_False;
    }
    const bool tied = SLOT(args[0], NODE) != Py_None;
    const taping how = tied ? taping_of_thread() : NOT_RECORDING;
    if (how == UNUSUAL || (dim != Py_None && !(dims = dims_of(dim, PyArray_NDIM((PyArrayObject *)SLOT(args[0], NATIVE))))))
        return NULL;
    PyObject *given[] = {out, args[0], dims, keepdim}, *words = dims ? both_words() : NULL;
    if (out == Py_None)
        made = reduced(self, args[0], dims, keepdim, words, how == RECORDING);
    else if ((made = place_call(self, given, 2, words)) == Py_None)
        Py_CLEAR(made);
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the function makes the call again, and says what is wrong */
    Py_XDECREF(dims);
    return made;
}

/* One of both extremes: that of the short way to a place, `into`, as a new tensor or there. */
static PyObject *extreme(PyObject *into, PyObject *input, PyObject *dims, PyObject *keepdim, PyObject *words, PyObject *out) {
    PyObject *given[] = {out, input, dims, keepdim}, *natives[] = {SLOT(input, NATIVE), dims, keepdim}, *made;
    if (out) {
        made = place_call((const shortcut *)into, given, 2, words);
        if (made == Py_None)
            Py_CLEAR(made);
        return made;
    }
    PyObject *native = run_kernel(SLOT(input, DEVICE), ((const shortcut *)into)->known[OP_NAME], natives, 1, words);
    made = native ? new_tensor(native, SLOT(input, DTYPE), SLOT(input, DEVICE)) : NULL;
    Py_XDECREF(native);
    return made;
}

/* Whether two tensors take the extremes of a third one each. */
static bool are_places(PyObject *out, PyObject *input) {
    if (!PyTuple_CheckExact(out) || PyTuple_GET_SIZE(out) != 2)
        return false;
    PyObject *const *places = &PyTuple_GET_ITEM(out, 0);
    for (int i = 0; i < 2; i++)
        if (!is_whole(places[i]) || !is_free(places[i]) || SLOT(places[i], TRAIL) != Py_None || places[i] == input || SLOT(places[i], DTYPE) != SLOT(input, DTYPE) ||
            SLOT(places[i], DEVICE) != SLOT(input, DEVICE))
            return false;
    return places[0] != places[1] && is_aside(places[0], places[1]);
}

/* extreme.py: aminmax(input, dim=None, keepdim=False, out=None) of a tensor off the tape that has elements; it knows the short ways of both
   extremes to a place, and the class of both. */
static PyObject *run_both(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { LEAST, LARGEST, ANSWER };
    PyObject *dim, *keepdim, *out, *dims = NULL, *pair[2] = {NULL}, *made = NULL;
    if (nargs != 1 || counts(INFERENCE) || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)) ||
        SLOT(args[0], NODE) != Py_None || !PyArray_SIZE((PyArrayObject *)SLOT(args[0], NATIVE)) ||
        PySet_Contains(((const shortcut *)self->known[LEAST])->known[OP_ACCEPTS], SLOT(args[0], DTYPE)) != 1 ||
        !is_read(args, nargs, kwnames, &dim, &keepdim, &out) || !PyBool_Check(keepdim) || (dim == Py_None && keepdim == Py_True) ||
        (out != Py_None && !are_places(out, args[0])))
        return NULL;
    if (dim != Py_None && (!PyLong_CheckExact(dim) || !(dims = dims_of(dim, PyArray_NDIM((PyArrayObject *)SLOT(args[0], NATIVE))))))
        return NULL;
    PyObject *words = dims ? both_words() : NULL;
    for (int i = 0; i < 2 && (!dims || words) && (!i || pair[0]); i++)
        pair[i] = extreme(self->known[i], args[0], dims, keepdim, words, out == Py_None ? NULL : PyTuple_GET_ITEM(out, i));
    PyObject *both = pair[0] && pair[1] ? PyTuple_Pack(2, pair[0], pair[1]) : NULL, *given = both ? PyTuple_Pack(1, both) : NULL;
    if (given)
        made = PyTuple_Type.tp_new((PyTypeObject *)self->known[ANSWER], given, NULL);
    else if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* the function makes the call again: it makes room, or says what is wrong */
    Py_XDECREF(dims);
    Py_XDECREF(pair[0]);
    Py_XDECREF(pair[1]);
    Py_XDECREF(both);
    Py_XDECREF(given);
    return made;
}

const shortcut_spec reduction_shortcuts[] = {{"reduced", run_reduced}, {"both", run_both}, {NULL, NULL}};
