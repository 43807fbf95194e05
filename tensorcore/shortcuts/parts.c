/* Views of all parts of a tensor along a dim. */
#include "shortcuts.h"

/* From so many parts on they share a trail. The collector of cycles then sees one object of each, the tensor, in the place of four:
   those of 33,000 rows made it look at all of the program's, twice, which took ten times as long as the views. */
enum { SHARING = 8 };

static PyObject *all, *one, *words; /* :, 1, and the name of a kernel's option */

static bool fill_constants(void) {
    return (all || (all = PySlice_New(NULL, NULL, NULL))) && (one || (one = PyLong_FromLong(1))) &&
           (words || (words = PyTuple_Pack(1, shortcut_names[A_KEY])));
}

/* (:, ..., part), and takes the reference to that. */
static PyObject *key_of(Py_ssize_t dim, PyObject *part) {
    PyObject *key = part ? PyTuple_New(dim + 1) : NULL;
    if (!key) {
        Py_XDECREF(part);
        return NULL;
    }
    for (Py_ssize_t k = 0; k < dim; k++)
        PyTuple_SET_ITEM(key, k, Py_NewRef(all));
    PyTuple_SET_ITEM(key, dim, part);
    return key;
}

static PyObject *options_of(PyObject *key) {
    PyObject *options = key ? PyDict_New() : NULL;
    if (options && PyDict_SetItem(options, shortcut_names[A_KEY], key))
        Py_CLEAR(options);
    return options;
}

/* Whether each part has elements, and an address of its own, from which its place can be told. */
static bool can_share(PyObject *native, Py_ssize_t dim, PyObject *cuts, Py_ssize_t count) {
    PyArrayObject *array = (PyArrayObject *)native;
    if (count < SHARING || !PyArray_CheckExact(native) || dim >= PyArray_NDIM(array) || !PyArray_SIZE(array) ||
        !PyArray_STRIDE(array, (int)dim))
        return false;
    Py_ssize_t before = -1;
    for (Py_ssize_t i = 0; cuts && i <= count; i++) {
        PyObject *cut = PyList_GET_ITEM(cuts, i);
        const Py_ssize_t at = PyLong_CheckExact(cut) ? PyLong_AsSsize_t(cut) : -1; /* too large a one is -1 too */
        if (at <= before || at > PyArray_DIM(array, (int)dim)) {
            PyErr_Clear();
            return false;
        }
        before = at;
    }
    return true;
}

/* Also written out in tape/memory.py, for who asks there. */
PyObject *own_trail(PyObject *tensor) {
    PyObject *shared = Py_NewRef(SLOT(tensor, TRAIL)), *where = PyTuple_GET_ITEM(shared, 3), *made = NULL;
    PyArrayObject *array = (PyArrayObject *)SLOT(tensor, NATIVE);
    Py_ssize_t address, stride, dim;
    int single;
    if (fill_constants() && PyArg_ParseTuple(where, "nnnp", &address, &stride, &dim, &single)) {
        const Py_ssize_t at = ((Py_ssize_t)PyArray_BYTES(array) - address) / stride;
        PyObject *start = PyLong_FromSsize_t(at), *stop = single ? NULL : PyLong_FromSsize_t(at + PyArray_DIM(array, (int)dim));
        PyObject *part = single ? Py_XNewRef(start) : start && stop ? PySlice_New(start, stop, one) : NULL;
        PyObject *key = key_of(dim, part);
        PyObject *options = options_of(key);
        if (options)
            made = PyTuple_Pack(5, PyTuple_GET_ITEM(shared, 0), PyTuple_GET_ITEM(shared, 1), PyTuple_GET_ITEM(shared, 2), options,
                                PyTuple_GET_ITEM(shared, 4));
        if (made)
            Py_SETREF(SLOT(tensor, TRAIL), Py_NewRef(made));
        Py_XDECREF(start);
        Py_XDECREF(stop);
        Py_XDECREF(key);
        Py_XDECREF(options);
    }
    Py_DECREF(shared);
    return made;
}

/* views.py: several_views(op, input, options, step, keys), with what records */
static PyObject *run_several(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 5 || kwnames || !is_whole(args[1]) || !PyList_CheckExact(args[4]))
        return NULL;
    const taping how = taping_of_thread();
    if (how == UNUSUAL)
        return NULL;
    PyObject *input = args[1], *step = args[3], *keys = args[4], *made = PyTuple_New(PyList_GET_SIZE(keys));
    PyObject *name = PyObject_GetAttr(step, shortcut_names[A_KERNEL]);
    PyObject *kernel = name ? kernel_of(SLOT(input, DEVICE), name) : NULL, *own = Py_NewRef(SLOT(input, NATIVE));
    if (!kernel)
        Py_CLEAR(made);
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(made); i++) {
        PyObject *key = PyList_GET_ITEM(keys, i), *native = PyObject_VectorcallDict(kernel, &own, 1, key);
        PyObject *one = native ? view_of(input, native, step, key, shortcut_names[A_SEVERAL], how) : NULL;
        Py_XDECREF(native);
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    if (made && how == RECORDING && PyTuple_GET_SIZE(made) && SLOT(input, NODE) != Py_None) {
        PyObject *list = PySequence_List(made), *done = NULL, *inputs = PyTuple_Pack(1, input);
        if (list && inputs)
            done = PyObject_CallFunctionObjArgs(self->known[0], args[0], inputs, args[2], list, NULL);
        if (!done)
            Py_CLEAR(made);
        Py_XDECREF(list);
        Py_XDECREF(inputs);
        Py_XDECREF(done);
    }
    Py_XDECREF(name);
    Py_XDECREF(kernel);
    Py_DECREF(own);
    return made;
}

/* split.py: _slices(op, input, dim, cuts) of what is not recorded, with the ops that show one part and one slice */
static PyObject *run_slices(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool cut = nargs == 4 && PyList_CheckExact(args[3]);
    if (nargs != 4 || kwnames || !is_whole(args[1]) || SLOT(args[1], NODE) != Py_None || !PyLong_CheckExact(args[2]) ||
        !(cut || PyLong_CheckExact(args[3])))
        return NULL;
    const taping how = taping_of_thread();
    const Py_ssize_t dim = PyLong_AsSsize_t(args[2]), count = cut ? PyList_GET_SIZE(args[3]) - 1 : PyLong_AsSsize_t(args[3]);
    if (how == UNUSUAL || dim < 0 || dim >= NPY_MAXDIMS || count < 1 || !fill_constants())
        return NULL;
    PyObject *input = args[1], *step = self->known[!cut], *cuts = cut ? args[3] : NULL;
    PyObject *kind = how == NOT_RECORDING ? shortcut_names[A_UNRECORDED] : args[0] == Py_None ? NULL : shortcut_names[A_SEVERAL];
    PyObject *name = PyObject_GetAttr(step, shortcut_names[A_KERNEL]), *own = Py_NewRef(SLOT(input, NATIVE)), *shared = NULL;
    PyObject *kernel = name ? kernel_of(SLOT(input, DEVICE), name) : NULL, *made = kernel ? PyTuple_New(count) : NULL;
    const bool sharing = made && can_share(own, dim, cuts, count);
    if (sharing) {
        PyArrayObject *array = (PyArrayObject *)own;
        const Py_ssize_t address = (Py_ssize_t)PyArray_BYTES(array), stride = PyArray_STRIDE(array, (int)dim);
        PyObject *where = Py_BuildValue("(nnnO)", address, stride, dim, cut ? Py_False : Py_True);
        if (!where || !(shared = trail_of(input, step, where, kind)))
            Py_CLEAR(made);
        Py_XDECREF(where);
    }
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *part = cut ? NULL : PyLong_FromSsize_t(i);
        if (cut) {
            PyObject *start = PyList_GET_ITEM(cuts, i), *stop = PyList_GET_ITEM(cuts, i + 1);
            const int back = PyObject_RichCompareBool(stop, start, Py_LT);
            part = back < 0 ? NULL : PySlice_New(start, back ? start : stop, one);
        }
        PyObject *key = key_of(dim, part), *given[2] = {own, key}, *view = NULL;
        PyObject *native = key ? PyObject_Vectorcall(kernel, given, 1, words) : NULL;
        PyObject *options = native && !sharing ? options_of(key) : NULL;
        if (native && sharing)
            view = view_on_trail(input, native, shared, how);
        else if (options)
            view = view_of(input, native, step, options, kind, how);
        if (view)
            PyTuple_SET_ITEM(made, i, view);
        else
            Py_CLEAR(made);
        Py_XDECREF(native);
        Py_XDECREF(options);
        Py_XDECREF(key);
    }
    Py_XDECREF(name);
    Py_XDECREF(kernel);
    Py_XDECREF(shared);
    Py_DECREF(own);
    return made;
}

/* split.py: split(tensor, sizes or one size, dim=0), and split_with_sizes; it knows what `_slices` knows, and behind that the ops of parts
   of one size, or None, and of parts of given sizes. */
static PyObject *run_split(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { EVEN = 2, GIVEN };
    const Py_ssize_t more = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (nargs < 2 || nargs + more > 3 || (more && PyTuple_GET_ITEM(kwnames, 0) != shortcut_names[A_DIM]) || !is_whole(args[0]) ||
        !PyArray_CheckExact(SLOT(args[0], NATIVE)))
        return NULL;
    int wide;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE);
    const bool even = PyLong_CheckExact(args[1]);
    const Py_ssize_t dim = !PyArray_NDIM(x) ? NO_DIM : nargs + more > 2 ? wrapped(args[2], PyArray_NDIM(x)) : 0;
    if (dim == NO_DIM || (even ? self->known[EVEN] == Py_None : !PyTuple_CheckExact(args[1]) && !PyList_CheckExact(args[1])))
        return NULL;
    const npy_intp all = PyArray_DIM(x, (int)dim), size = even ? PyLong_AsLongAndOverflow(args[1], &wide) : 0;
    const Py_ssize_t count = !even ? PySequence_Fast_GET_SIZE(args[1]) : size > 0 ? (all - 1) / size + 1 : 0;
    PyObject *at = all > 0 && count > 0 ? PyLong_FromSsize_t(dim) : NULL, *cuts = at ? PyList_New(count + 1) : NULL, *made = NULL;
    npy_intp end = 0;
    for (Py_ssize_t i = 0; cuts && i <= count; i++) {
        int overflow = 0;
        PyObject *one = even || !i ? NULL : i - 1 < PySequence_Fast_GET_SIZE(args[1]) ? PySequence_Fast_GET_ITEM(args[1], i - 1) : Py_None;
        const npy_intp part = !i ? 0 : even ? size : PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : -1;
        PyObject *cut = part < 0 || overflow || (!even && part > all - end) ? NULL : PyLong_FromSsize_t(part > all - end ? all : end + part);
        end += part;
        if (cut)
            PyList_SET_ITEM(cuts, i, cut);
        else
            Py_CLEAR(cuts);
    }
    if (cuts && end >= all) {
        PyObject *const given[] = {self->known[even ? EVEN : GIVEN], args[0], at, cuts};
        made = run_slices(self, given, 4, NULL);
    }
    Py_XDECREF(at);
    Py_XDECREF(cuts);
    return made;
}

const shortcut_spec part_shortcuts[] = {{"several_views", run_several}, {"slices", run_slices}, {"split", run_split}, {NULL, NULL}};
