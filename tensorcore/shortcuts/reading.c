/* Elements by index: the views that ints, slices, None and Ellipsis make, and copies of what tensors and lists name; parts in a row. */
#include "shortcuts.h"

/* What the short way of subscripts has to know: what shows a part, what shows one element of a dim, and what puts in a dim; the dtypes
   of indices and of masks. */
enum { SHOW_SLICE, SHOW_SELECT, SHOW_NEW_DIM, INDEX_DTYPE, MASK_DTYPE };

/* show(input, {name: value}), which is released. */
static PyObject *shown_by(PyObject *show, PyObject *input, PyObject *name, PyObject *value) {
    PyObject *options = value ? PyDict_New() : NULL, *made = NULL;
    if (options && !PyDict_SetItem(options, name, value)) {
        PyObject *const given[] = {input, options};
        made = PyObject_Vectorcall(show, given, 2, NULL);
    }
    Py_XDECREF(options);
    Py_XDECREF(value);
    return made;
}

/* What a key without tensors and lists shows; NULL without an exception where it is another key, or wrong. */
static PyObject *part(const shortcut *self, PyObject *input, PyObject *key) {
    PyObject *shape = PyObject_GetAttr(SLOT(input, NATIVE), shortcut_names[A_SHAPE]), *found = shape ? simple_key(key, shape) : NULL;
    if (found && found != Py_None) {
        PyObject *show = self->known[PyTuple_GET_ITEM(found, 1) == Py_True ? SHOW_SLICE : SHOW_SELECT];
        PyObject *made = shown_by(show, input, shortcut_names[A_KEY], Py_NewRef(PyTuple_GET_ITEM(found, 0)));
        Py_DECREF(found);
        Py_DECREF(shape);
        return made;
    }
    PyObject *at = found ? new_dim_of(key, PyTuple_GET_SIZE(shape)) : NULL, *made = NULL;
    if (at && at != Py_None)
        made = shown_by(self->known[SHOW_NEW_DIM], input, shortcut_names[A_DIM], Py_NewRef(at));
    Py_XDECREF(at);
    Py_XDECREF(found);
    Py_XDECREF(shape);
    return made;
}

/* A list of ints of Python's own as an array of the device; NULL of others. */
static PyObject *listed(PyObject *list, PyObject *device) {
    npy_intp count = PyList_GET_SIZE(list);
    PyObject *made = count ? PyArray_SimpleNew(1, &count, NPY_INT64) : NULL, *native = NULL;
    npy_int64 *to = made ? PyArray_DATA((PyArrayObject *)made) : NULL;
    bool fits = to && PyList_GET_SIZE(list) == count; /* a new array may collect garbage, whose finalizers may change the list */
    for (npy_intp i = 0; fits && i < count; i++) {
        int overflow = 0;
        PyObject *one = PyList_GET_ITEM(list, i);
        fits = PyLong_CheckExact(one);
        to[i] = fits ? PyLong_AsLongLongAndOverflow(one, &overflow) : 0;
        fits = fits && !overflow;
    }
    if (fits)
        native = PyObject_CallMethodOneArg(device, shortcut_names[A_FROM_HOST], made);
    Py_XDECREF(made);
    return native;
}

/* Adds to `natives` what one item of a key names along the next dim, or several: None for all of a dim. False where that is for the
   function in Python, or with an exception. */
static bool named(const shortcut *self, PyObject *one, PyArrayObject *array, PyObject *device, PyObject *natives) {
    const Py_ssize_t at = PyList_GET_SIZE(natives);
    if (is_whole_slice(one))
        return !PyList_Append(natives, Py_None);
    if (PyList_CheckExact(one)) {
        PyObject *made = counts(TRACERS) ? NULL : listed(one, device);
        const bool done = made && !PyList_Append(natives, made);
        Py_XDECREF(made);
        return done;
    }
    if (!is_whole(one) || SLOT(one, DEVICE) != device || !PyArray_CheckExact(SLOT(one, NATIVE)))
        return false;
    PyArrayObject *given = (PyArrayObject *)SLOT(one, NATIVE);
    const int dims = PyArray_NDIM(given);
    if (!dims || SLOT(one, DTYPE) == self->known[INDEX_DTYPE])
        return dims && !PyList_Append(natives, (PyObject *)given);
    if (SLOT(one, DTYPE) != self->known[MASK_DTYPE] || at + dims > PyArray_NDIM(array))
        return false;
    for (int i = 0; i < dims; i++)
        if (PyArray_DIM(given, i) != PyArray_DIM(array, (int)at + i))
            return false;
    static PyObject *name;
    PyObject *operand[] = {(PyObject *)given}, *places = NULL, *list = NULL;
    if (name || (name = PyUnicode_InternFromString("nonzero_by_dim")))
        places = run_kernel(device, name, operand, 1, NULL);
    if (places && PySequence_Size(places) == dims)
        list = PySequence_List(places);
    const bool done = list && !PyList_SetSlice(natives, at, at, list);
    Py_XDECREF(places);
    Py_XDECREF(list);
    return done;
}

/* Whether arrays of indices, or None, are of one shape, at least one of them, and no dim of what they index is empty. */
static bool are_alike(PyObject *natives, PyArrayObject *array) {
    PyArrayObject *first = NULL;
    bool alike = PyArray_SIZE(array);
    for (Py_ssize_t i = 0; alike && i < PyList_GET_SIZE(natives); i++) {
        PyObject *one = PyList_GET_ITEM(natives, i);
        if (one == Py_None)
            continue;
        alike = PyArray_CheckExact(one) && (!first || PyArray_SAMESHAPE(first, (PyArrayObject *)one));
        first = (PyArrayObject *)one;
    }
    return alike && first;
}

/* The elements that tensors of indices and masks, lists of ints and whole slices name, off the tape. */
static PyObject *picked(const shortcut *self, PyObject *input, PyObject *key) {
    static PyObject *name, *words;
    if (SLOT(input, NODE) != Py_None || counts(INFERENCE) || (!name && !(name = PyUnicode_InternFromString("index_tensors"))) ||
        (!words && !(words = Py_BuildValue("(s)", "indices"))))
        return NULL;
    /* A new list may collect garbage, whose finalizers may write x.data. */
    PyArrayObject *array = (PyArrayObject *)Py_NewRef(SLOT(input, NATIVE));
    PyObject *dtype = Py_NewRef(SLOT(input, DTYPE)), *device = Py_NewRef(SLOT(input, DEVICE)), *natives = PyList_New(0), *made = NULL;
    const Py_ssize_t count = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    bool usual = natives;
    for (Py_ssize_t i = 0; usual && i < count; i++)
        usual = named(self, PyTuple_CheckExact(key) ? PyTuple_GET_ITEM(key, i) : key, array, device, natives);
    usual = usual && PyList_GET_SIZE(natives) <= PyArray_NDIM(array);
    while (usual && PyList_GET_SIZE(natives) && PyList_GET_ITEM(natives, PyList_GET_SIZE(natives) - 1) == Py_None)
        usual = !PyList_SetSlice(natives, PyList_GET_SIZE(natives) - 1, PyList_GET_SIZE(natives), NULL);
    PyObject *indices = usual && are_alike(natives, array) ? PyList_AsTuple(natives) : NULL;
    if (indices) {
        PyObject *given[] = {(PyObject *)array, indices}, *native = run_kernel(device, name, given, 1, words);
        if (native)
            made = new_tensor(native, dtype, device);
        Py_XDECREF(native);
    }
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* an index outside, or a lack of memory: the function makes the call again and says so */
    Py_XDECREF(indices);
    Py_XDECREF(natives);
    Py_DECREF(array);
    Py_DECREF(dtype);
    Py_DECREF(device);
    return made;
}

static bool is_index(PyObject *one) { return is_tensor(one) || PyList_CheckExact(one); }

/* index.py: getitem(self, key) */
static PyObject *run_getitem(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 2 || kwnames || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)))
        return NULL;
    bool by_index = is_index(args[1]);
    for (Py_ssize_t i = 0; !by_index && PyTuple_CheckExact(args[1]) && i < PyTuple_GET_SIZE(args[1]); i++)
        by_index = is_index(PyTuple_GET_ITEM(args[1], i));
    return by_index ? picked(self, args[0], args[1]) : part(self, args[0], args[1]);
}

/* views_part.py: narrow(input, dim, start, length) of ints inside the tensor; it knows what shows a part. */
static PyObject *run_narrow(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static PyObject *all, *one;
    if (nargs != 4 || kwnames || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)) || !PyLong_CheckExact(args[2]) ||
        !PyLong_CheckExact(args[3]) || (!all && !(all = PySlice_New(NULL, NULL, NULL))) || (!one && !(one = PyLong_FromLong(1))))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE);
    int overflow, other;
    long start = PyLong_AsLongAndOverflow(args[2], &overflow);
    const long length = PyLong_AsLongAndOverflow(args[3], &other);
    const Py_ssize_t dim = PyArray_NDIM(x) ? wrapped(args[1], PyArray_NDIM(x)) : NO_DIM;
    const bool back = start < 0 && dim != NO_DIM; /* counted from the end */
    start += back ? PyArray_DIM(x, (int)dim) : 0;
    if (overflow || other || dim == NO_DIM || start < 0 || length < 0 || length > PyArray_DIM(x, (int)dim) ||
        start > PyArray_DIM(x, (int)dim) - length)
        return NULL;
    PyObject *begin = back ? PyLong_FromLong(start) : Py_NewRef(args[2]), *stop = PyLong_FromLong(start + length);
    PyObject *part = begin && stop ? PySlice_New(begin, stop, one) : NULL;
    PyObject *key = part ? PyTuple_New(dim + 1) : NULL;
    for (Py_ssize_t i = 0; key && i <= dim; i++)
        PyTuple_SET_ITEM(key, i, Py_NewRef(i < dim ? all : part));
    Py_XDECREF(begin);
    Py_XDECREF(stop);
    Py_XDECREF(part);
    return shown_by(self->known[SHOW_SLICE], args[0], shortcut_names[A_KEY], key);
}

/* flat.py: flatten(input, start_dim=0, end_dim=-1), and ravel(input), which makes a view of one dim too; they know what shows the
   view and the name of its kernel, and whether it is ravel. */
static PyObject *run_flattened(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { SHOW, KERNEL, ALWAYS };
    if (nargs < 1 || nargs > 3 || kwnames || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)))
        return NULL;
    const bool always = self->known[ALWAYS] == Py_True;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE);
    const int ndim = PyArray_NDIM(x);
    const Py_ssize_t start = nargs > 1 ? wrapped(args[1], ndim) : 0, end = nargs > 2 ? wrapped(args[2], ndim) : ndim - 1;
    if (!ndim || (always && nargs > 1) || start == NO_DIM || end == NO_DIM || start > end || (always && !PyArray_IS_C_CONTIGUOUS(x)))
        return NULL;
    if (start == end && !always)
        return Py_NewRef(args[0]);
    npy_intp sizes[NPY_MAXDIMS], all = 1;
    for (Py_ssize_t i = start; i <= end; i++)
        all *= PyArray_DIM(x, (int)i);
    for (int i = 0; i < ndim; i++)
        sizes[i <= start ? i : i - (i < end ? i - start : end - start)] = i < start || i > end ? PyArray_DIM(x, i) : all;
    return shown_in_shape(self->known[SHOW], self->known[KERNEL], args[0], tuple_of(sizes, ndim - (int)(end - start)));
}

const shortcut_spec reading_shortcuts[] = {{"getitem", run_getitem}, {"flattened", run_flattened}, {"narrow", run_narrow}, {NULL, NULL}};
