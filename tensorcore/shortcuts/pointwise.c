/* Elementwise calls of one tensor, of two or three, or of a tensor and numbers. */
#include "shortcuts.h"

/* What an op's short way has to know besides, see elementwise_way; TRAITS is how it is recorded, in bits, AGAIN asks a kernel that found no
   memory a second time. */
enum { OP, TRAITS = 6, AGAIN };
enum { MOST_DIMS = 8 }; /* of arrays that kernels in C take */
enum {
    DIFFERENTIABLE = 1,
    KEEPS = 2,
    KEEPS_OUT = 4,
    /* Whether the formula of the second word's operand names that of the first. */
    INPUT_FOR_INPUT = 8,
    INPUT_FOR_OTHER = 16,
    OTHER_FOR_INPUT = 32,
    OTHER_FOR_OTHER = 64
};

/* Whether a set has the dtype; None has all. */
static bool has(PyObject *set, PyObject *dtype) { return set == Py_None || PySet_Contains(set, dtype) == 1; }

/* Whether the kernel takes a number of single precision beside that tensor of a half type. */
static bool beside_narrow(const shortcut *self, PyObject *tensor) {
    PyObject *native = SLOT(tensor, NATIVE);
    if (!has(self->known[OP_NARROW], SLOT(tensor, DTYPE)) || !PyArray_CheckExact(native) || PyArray_NDIM((PyArrayObject *)native) > MOST_DIMS)
        return false;
    PyObject *names = PyObject_GetAttr(SLOT(tensor, DEVICE), shortcut_names[A_NARROW_NUMBERS]);
    const bool found = names && PySet_Contains(names, self->known[OP_NAME]) == 1;
    Py_XDECREF(names);
    PyErr_Clear();
    return found;
}

bool plain_number(const shortcut *self, PyObject *one, PyObject *tensor) {
    const bool whole = PyLong_CheckExact(one);
    if (!whole && !PyFloat_CheckExact(one))
        return false;
    PyObject *dtype = SLOT(tensor, DTYPE);
    if (has(self->known[OP_FLOATS], dtype) || beside_narrow(self, tensor))
        return true;
    int overflow = 0;
    const long long value = whole ? PyLong_AsLongLongAndOverflow(one, &overflow) : 0;
    return whole && !overflow && value >= INT32_MIN && value <= INT32_MAX && has(self->known[OP_INTEGERS], dtype);
}

static PyObject *node_of(PyObject *made, PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *const *edges, long traits) {
    PyObject *node = node_type->tp_alloc(node_type, 0);
    if (!node)
        return NULL;
    const bool first = edges[0] != Py_None, second = edges[1] != Py_None;
    const bool keeps[2] = {((traits & INPUT_FOR_INPUT) && first) || ((traits & INPUT_FOR_OTHER) && second),
                           ((traits & OTHER_FOR_INPUT) && first) || ((traits & OTHER_FOR_OTHER) && second)};
    PyObject *saved = PyTuple_New(traits & KEEPS ? count : 0), *tied = PyTuple_New(count);
    for (Py_ssize_t i = 0; saved && tied && i < count; i++) {
        PyTuple_SET_ITEM(tied, i, Py_NewRef(edges[i]));
        if (traits & KEEPS)
            PyTuple_SET_ITEM(saved, i, Py_NewRef(keeps[i] ? args[i] : Py_None));
    }
    PLACE(node, node_slots[N_OP]) = Py_NewRef(op);
    PLACE(node, node_slots[N_EDGES]) = tied;
    PLACE(node, node_slots[N_SAVED]) = saved;
    PLACE(node, node_slots[N_EXTRA]) = Py_NewRef(Py_None);
    PLACE(node, node_slots[N_DTYPE]) = Py_NewRef(SLOT(made, DTYPE));
    PyObject *shape = PLACE(node, node_slots[N_SHAPE]) = PyObject_GetAttr(SLOT(made, NATIVE), shortcut_names[A_SHAPE]);
    PyObject *version = traits & KEEPS_OUT ? version_of(made) : Py_None;
    if (version && (traits & KEEPS_OUT)) {
        PLACE(node, node_slots[N_VERSION]) = Py_NewRef(version);
        PLACE(node, node_slots[N_OUT]) = Py_NewRef(SLOT(made, NATIVE));
    }
    const bool complete = saved && tied && shape && version;
    PyObject *order = PLACE(node, node_slots[N_ORDER]) = complete ? PyObject_CallNoArgs(next_order) : NULL;
    if (!order)
        Py_CLEAR(node);
    return node;
}

PyObject *asked_again(PyObject *again, PyObject *device, PyObject *name, PyObject *const *natives, Py_ssize_t count, PyObject *given_options) {
    PyObject *type, *error, *trace, *made = NULL, *given = PyTuple_New(count);
    PyObject *options = given_options ? Py_NewRef(given_options) : PyDict_New();
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace)
        PyException_SetTraceback(error, trace);
    for (Py_ssize_t i = 0; given && i < count; i++)
        PyTuple_SET_ITEM(given, i, Py_NewRef(natives[i]));
    if (given && options)
        made = PyObject_CallFunctionObjArgs(again, device, name, given, options, error, NULL);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    Py_XDECREF(given);
    Py_XDECREF(options);
    return made;
}

/* The call where operands are of other dtypes than one; None where that is unusual too. */
static PyObject *mixed(const shortcut *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *made = known_call(self->known[OP], args, count, NULL, self->known[AGAIN]);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

/* calls.py: what a usual call gives; None where it is not one, or where the kernel raises: the function makes the call again then
   and says what is wrong. */
static PyObject *run_usual(const shortcut *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames) {
    enum { MOST = 3, RECORDED = 2 }; /* operands, and those of calls that are recorded here */
    if (count < 1 || count > MOST || kwnames || counts(INFERENCE) || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)))
        Py_RETURN_NONE;
    PyObject *dtype = SLOT(args[0], DTYPE), *device = SLOT(args[0], DEVICE), *natives[MOST] = {SLOT(args[0], NATIVE)};
    PyObject *edges[MOST] = {SLOT(args[0], NODE), Py_None, Py_None};
    bool tied = edges[0] != Py_None;
    if (!has(self->known[OP_ACCEPTS], dtype))
        return mixed(self, args, count);
    for (Py_ssize_t i = 1; i < count; i++) {
        const bool tensor = is_tensor(args[i]);
        if (tensor ? !is_whole(args[i]) || SLOT(args[i], DTYPE) != dtype || SLOT(args[i], DEVICE) != device
                   : !plain_number(self, args[i], args[0]))
            return mixed(self, args, count);
        natives[i] = tensor ? SLOT(args[i], NATIVE) : args[i];
        edges[i] = tensor ? SLOT(args[i], NODE) : Py_None;
        tied |= edges[i] != Py_None;
    }
    if (tied && count > RECORDED)
        Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < count; i++) { /* what finds a kernel, and a kernel, may let other threads run, which may give a tensor another array */
        Py_INCREF(natives[i]);
        Py_INCREF(edges[i]);
    }
    const long traits = PyLong_AsLong(self->known[TRAITS]);
    const taping how = tied && (traits & DIFFERENTIABLE) ? taping_of_thread() : NOT_RECORDING;
    PyObject *kernel = how == UNUSUAL ? NULL : kernel_of(device, self->known[OP_NAME]), *array = NULL, *made = NULL;
    PyObject *native = kernel ? PyObject_Vectorcall(kernel, natives, (size_t)count, NULL) : NULL;
    const bool short_of_memory = kernel && !native && PyErr_ExceptionMatches(PyExc_MemoryError);
    if (short_of_memory)
        native = asked_again(self->known[AGAIN], device, self->known[OP_NAME], natives, count, NULL);
    if (native && (array = PyObject_GetAttr(device, shortcut_names[A_ARRAY])) && (PyObject *)Py_TYPE(native) != array)
        Py_SETREF(native, PyObject_CallMethodOneArg(device, shortcut_names[A_AS_NATIVE], native));
    if (native && array)
        made = new_tensor(native, self->known[OP_RESULT] == Py_None ? dtype : self->known[OP_RESULT], device);
    if (made && how == RECORDING) {
        PyObject *node = node_of(made, self->known[OP], args, count, edges, traits);
        if (node)
            Py_SETREF(SLOT(made, NODE), node);
        else
            Py_CLEAR(made);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_DECREF(natives[i]);
        Py_DECREF(edges[i]);
    }
    Py_XDECREF(native);
    Py_XDECREF(array);
    Py_XDECREF(kernel);
    if (!made && !short_of_memory && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception))) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return made;
}

/* calls.py: the call of an elementwise op, with a place too; it knows besides of how many operands, and less than none where kernels of the
   op do not write to a place of any layout. */
static PyObject *run_elementwise(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { OPERANDS = 9 };
    const long operands = PyLong_AsLong(self->known[OPERANDS]);
    PyObject *given[4], *out = NULL, *made;
    if (nargs != labs(operands))
        return NULL;
    if (kwnames && PyTuple_GET_SIZE(kwnames)) {
        out = PyTuple_GET_SIZE(kwnames) == 1 && PyTuple_GET_ITEM(kwnames, 0) == shortcut_names[A_OUT] ? args[nargs] : NULL;
        if (!out || (out != Py_None && operands < 0))
            return NULL;
    }
    given[0] = out;
    memcpy(given + 1, args, (size_t)nargs * sizeof *given);
    made = out && out != Py_None ? place_call(self, given, nargs + 1, NULL) : run_usual(self, args, nargs, NULL);
    if (made == Py_None)
        Py_CLEAR(made);
    return made;
}

/* Whether two tensors are arrays of so many dims, whose sizes fit for a product; FLOATS and INTEGERS are those numbers. */
static bool fits_product(const shortcut *self, PyObject *const *args) {
    if (!is_whole(args[0]) || !is_whole(args[1]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)) || !PyArray_CheckExact(SLOT(args[1], NATIVE)))
        return false;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE), *y = (PyArrayObject *)SLOT(args[1], NATIVE);
    const int ndim = PyArray_NDIM(x), other = PyArray_NDIM(y);
    return ndim == PyLong_AsLong(self->known[OP_FLOATS]) && other == PyLong_AsLong(self->known[OP_INTEGERS]) &&
           PyArray_DIM(x, ndim - 1) == PyArray_DIM(y, other > 1 ? other - 2 : 0) && (ndim != 3 || PyArray_DIM(x, 0) == PyArray_DIM(y, 0));
}

/* products.py: a usual call of a product */
static PyObject *run_product(const shortcut *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames) {
    return count == 2 && !kwnames && fits_product(self, args) ? run_usual(self, args, count, NULL) : Py_NewRef(Py_None);
}

/* products.py: the same into a place, which comes first, and is none of the operands */
static PyObject *run_product_into(const shortcut *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames) {
    const bool usual = count == 3 && !kwnames && args[0] != args[1] && args[0] != args[2] && fits_product(self, args + 1);
    return usual ? place_call(self, args, count, NULL) : Py_NewRef(Py_None);
}

const shortcut_spec pointwise_shortcuts[] = {
    {"elementwise", run_elementwise}, {"product", run_product}, {"product_into", run_product_into}, {NULL, NULL}};
