/* What programs ask a tensor about. */
#include "shortcuts.h"

/* A tensor, of a subclass too, of a call with nothing else; NULL where it is none. */
static PyObject *asked(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs == 1 && !kwnames && tensor_type && PyObject_TypeCheck(args[0], tensor_type) ? args[0] : NULL;
}

static PyArrayObject *array_of(PyObject *tensor) {
    PyObject *native = tensor ? SLOT(tensor, NATIVE) : NULL;
    return native && PyArray_CheckExact(native) ? (PyArrayObject *)native : NULL;
}

/* tensor.py: requires_grad */
static PyObject *run_requires_grad(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *tensor = asked(args, nargs, kwnames), *node = tensor ? SLOT(tensor, NODE) : NULL;
    return node ? Py_NewRef(node == Py_None ? Py_False : Py_True) : NULL;
}

/* tensor.py: is_leaf; it knows the op of leaves */
static PyObject *run_is_leaf(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *tensor = asked(args, nargs, kwnames), *node = tensor ? SLOT(tensor, NODE) : NULL;
    if (!node)
        return NULL;
    const bool leaf = node == Py_None || (Py_IS_TYPE(node, node_type) && NODE_SLOT(node, N_OP) == self->known[0]);
    return Py_NewRef(leaf ? Py_True : Py_False);
}

/* tensor.py: numel(tensor) */
static PyObject *run_count(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *array = array_of(asked(args, nargs, kwnames));
    return array ? PyLong_FromSsize_t(PyArray_SIZE(array)) : NULL;
}

/* tensor.py: dim(tensor) */
static PyObject *run_dim(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *array = array_of(asked(args, nargs, kwnames));
    return array ? PyLong_FromLong(PyArray_NDIM(array)) : NULL;
}

/* tensor.py: storage_offset(tensor), where no tracer wants to know who asks */
static PyObject *run_storage_offset(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *array = array_of(asked(args, nargs, kwnames)), *all = array;
    if (!array || counts(TRACERS))
        return NULL;
    while (PyArray_BASE(all) && PyArray_Check(PyArray_BASE(all)))
        all = (PyArrayObject *)PyArray_BASE(all);
    const npy_intp begin = PyArray_BYTES(array) - PyArray_BYTES(all), bytes = PyArray_ITEMSIZE(array);
    return begin < 0 || begin % bytes ? NULL : PyLong_FromSsize_t(begin / bytes);
}

/* tensor.py: data_ptr(tensor), likewise */
static PyObject *run_data_ptr(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *array = array_of(asked(args, nargs, kwnames));
    return array && !counts(TRACERS) ? PyLong_FromVoidPtr(PyArray_DATA(array)) : NULL;
}

/* tensor.py: stride(tensor) */
static PyObject *run_stride(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static PyObject *strides;
    PyObject *tensor = asked(args, nargs, kwnames);
    if (!tensor || !SLOT(tensor, NATIVE) || !SLOT(tensor, DEVICE) || (!strides && !(strides = PyUnicode_InternFromString("strides"))))
        return NULL;
    return PyObject_CallMethodOneArg(SLOT(tensor, DEVICE), strides, SLOT(tensor, NATIVE));
}

/* tensor.py: is_contiguous(tensor) */
static PyObject *run_is_contiguous(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *array = array_of(asked(args, nargs, kwnames));
    return array ? PyBool_FromLong(PyArray_IS_C_CONTIGUOUS(array)) : NULL;
}

/* convert.py: contiguous(tensor) of one that is */
static PyObject *run_contiguous(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyArrayObject *array = array_of(asked(args, nargs, kwnames));
    return array && PyArray_IS_C_CONTIGUOUS(array) ? Py_NewRef(args[0]) : NULL;
}

/* Whether a device's arrays hold values; false with an exception too. */
static bool holds_values(PyObject *device) {
    PyObject *can = PyObject_GetAttr(device, shortcut_names[A_CAPABILITIES]);
    PyObject *values = can ? PyObject_GetAttr(can, shortcut_names[A_VALUES]) : NULL;
    Py_XDECREF(can);
    Py_XDECREF(values);
    return values == Py_True;
}

/* The value of a tensor of one element, which the device hands to the host; NULL where it is none. */
static PyObject *value_of(PyObject *tensor) {
    PyArrayObject *array = array_of(tensor);
    if (!array || PyArray_SIZE(array) != 1 || !SLOT(tensor, DEVICE) || !holds_values(SLOT(tensor, DEVICE)))
        return NULL;
    PyObject *host = PyObject_CallMethodOneArg(SLOT(tensor, DEVICE), shortcut_names[A_TO_HOST], (PyObject *)array), *value = NULL;
    if (host && PyArray_CheckExact(host) && PyArray_SIZE((PyArrayObject *)host) == 1)
        value = PyArray_GETITEM((PyArrayObject *)host, PyArray_BYTES((PyArrayObject *)host));
    Py_XDECREF(host);
    return value;
}

/* tensor.py: __bool__(tensor) */
static PyObject *run_is_true(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *value = value_of(asked(args, nargs, kwnames));
    const int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

/* tensor.py: item(tensor), of numbers that are Python's own as they come from an array */
static PyObject *run_item(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *value = value_of(asked(args, nargs, kwnames));
    const bool own = value && (PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || PyComplex_CheckExact(value));
    if (!own)
        Py_CLEAR(value);
    return value;
}

/* convert.py: cpu(tensor) of one that is there; it knows the class that says where the host is */
static PyObject *run_on_host(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *tensor = asked(args, nargs, kwnames), *host = tensor ? PyObject_GetAttr(self->known[0], shortcut_names[A_HOST]) : NULL;
    Py_XDECREF(host);
    return host && host == SLOT(tensor, DEVICE) ? Py_NewRef(tensor) : NULL;
}

/* dtypes.py: what a class of limits keeps for a dtype; it knows that by classes */
static PyObject *run_limits(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *kept = nargs == 2 && !kwnames ? PyDict_GetItemWithError(self->known[0], args[0]) : NULL;
    PyObject *made = kept && PyDict_Check(kept) ? PyDict_GetItemWithError(kept, args[1]) : NULL;
    if (PyErr_Occurred())
        PyErr_Clear(); /* what has no hash is no dtype, of which the function says so */
    return Py_XNewRef(made);
}

/* The facade: is_cuda and the like; it knows the kind of device */
static PyObject *run_is_on(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *tensor = asked(args, nargs, kwnames), *device = tensor ? SLOT(tensor, DEVICE) : NULL;
    PyObject *kind = device ? PyObject_GetAttr(device, shortcut_names[A_TYPE]) : NULL;
    PyObject *made = kind ? PyObject_RichCompare(kind, self->known[0], Py_EQ) : NULL;
    Py_XDECREF(kind);
    return made;
}

/* formats.py: Size.__getitem__ */
PyObject *item_of_size(PyObject *self, PyObject *key) {
    PyObject *found = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    if (!found || !PySlice_Check(key))
        return found;
    PyObject *made = size_type->tp_alloc(size_type, PyTuple_GET_SIZE(found));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(found); i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(PyTuple_GET_ITEM(found, i)));
    Py_DECREF(found);
    return made;
}

const shortcut_spec asked_shortcuts[] = {
    {"requires_grad", run_requires_grad}, {"is_leaf", run_is_leaf}, {"count", run_count},
    {"is_on", run_is_on}, {"dim", run_dim}, {"storage_offset", run_storage_offset}, {"data_ptr", run_data_ptr},
    {"is_contiguous", run_is_contiguous}, {"stride", run_stride}, {"contiguous", run_contiguous}, {"is_true", run_is_true},
    {"item", run_item}, {"on_host", run_on_host}, {"limits", run_limits}, {NULL, NULL},
};
