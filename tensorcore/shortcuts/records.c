/* How a call of one result gets on the tape while every thread records, with nothing unusual switched on. */
#include "shortcuts.h"

/* An attribute of an op, which holds it; borrowed, NULL with an exception. */
static PyObject *fact(PyObject *op, int name) {
    PyObject *found = PyObject_GetAttr(op, shortcut_names[name]);
    Py_XDECREF(found);
    return found;
}

/* Whether gradients of a dtype are numbers of that dtype; -1 with an exception. */
static int takes_part(PyObject *dtype) {
    PyObject *floating = PyObject_GetAttr(dtype, shortcut_names[A_FLOATING]);
    PyObject *wide = floating && floating != Py_True ? PyObject_GetAttr(dtype, shortcut_names[A_COMPLEX]) : NULL;
    const int found = floating == Py_True || wide == Py_True ? 1 : floating && wide ? 0 : -1;
    Py_XDECREF(floating);
    Py_XDECREF(wide);
    return found;
}

/* The nodes that the inputs came from, None for those that have none; NULL where the function in Python has to look. */
static PyObject *edges_of(PyObject *inputs) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(inputs);
    PyObject *edges = PyTuple_New(count);
    for (Py_ssize_t i = 0; edges && i < count; i++) {
        PyObject *one = PySequence_Fast_GET_ITEM(inputs, i);
        PyObject *edge = PyObject_TypeCheck(one, tensor_type) ? SLOT(one, NODE) : Py_None;
        if (edge)
            PyTuple_SET_ITEM(edges, i, Py_NewRef(edge));
        else
            Py_CLEAR(edges);
    }
    return edges;
}

/* Those inputs that a formula of a recorded one names, None in the place of the others; `needed` says by which. */
static PyObject *saved_of(PyObject *inputs, PyObject *edges, PyObject *needed) {
    const Py_ssize_t count = PyTuple_GET_SIZE(edges);
    if (!PyTuple_CheckExact(needed) || PyTuple_GET_SIZE(needed) != count)
        return NULL;
    PyObject *saved = PyTuple_New(count);
    for (Py_ssize_t i = 0; saved && i < count; i++) {
        PyObject *by = PyTuple_GET_ITEM(needed, i);
        bool kept = false;
        for (Py_ssize_t k = 0; PyTuple_CheckExact(by) && k < PyTuple_GET_SIZE(by); k++) {
            const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(by, k));
            kept |= at >= 0 && at < count && PyTuple_GET_ITEM(edges, at) != Py_None;
        }
        PyTuple_SET_ITEM(saved, i, Py_NewRef(kept ? PySequence_Fast_GET_ITEM(inputs, i) : Py_None));
    }
    return saved;
}

/* The options with the shapes and dtypes of inputs that formulas ask for by name. */
static PyObject *options_of(PyObject *options, PyObject *inputs, PyObject *traits) {
    if (!PyTuple_GET_SIZE(traits))
        return Py_NewRef(options);
    PyObject *made = options == Py_None ? PyDict_New() : PyDict_Copy(options);
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(traits); i++) {
        PyObject *trait = PyTuple_GET_ITEM(traits, i);
        const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(trait, 1));
        PyObject *one = at >= 0 && at < PySequence_Fast_GET_SIZE(inputs) ? PySequence_Fast_GET_ITEM(inputs, at) : NULL;
        PyObject *value = !one ? NULL : one == Py_None ? Py_NewRef(Py_None) : PyObject_GetAttr(one, PyTuple_GET_ITEM(trait, 2));
        if (!value || PyDict_SetItem(made, PyTuple_GET_ITEM(trait, 0), value))
            Py_CLEAR(made);
        Py_XDECREF(value);
    }
    return made;
}

PyObject *record_call(PyObject *op, PyObject *inputs, PyObject *given_options, PyObject *made) {
    if (!tensor_type || !is_whole(made) || counts(THREADS) || !(PyTuple_CheckExact(inputs) || PyList_CheckExact(inputs)) ||
        !(given_options == Py_None || PyDict_CheckExact(given_options)))
        return NULL;
    const int part = takes_part(SLOT(made, DTYPE));
    if (part <= 0)
        return part ? NULL : Py_NewRef(Py_None);
    if (fact(SLOT(made, DEVICE), A_WRAPS) != Py_None || fact(op, A_VARIADIC) != Py_False)
        return NULL;
    PyObject *traits = fact(op, A_TRAITS), *keeps = traits ? fact(op, A_KEEPS_INPUTS) : NULL;
    PyObject *needed = keeps ? fact(op, A_NEEDED_FOR) : NULL, *keeps_out = needed ? fact(op, A_KEEPS_OUT) : NULL;
    if (!keeps_out || !PyTuple_CheckExact(traits))
        return NULL;
    const bool keeps_result = keeps_out == Py_True;
    PyObject *edges = edges_of(inputs), *saved = NULL, *options = NULL, *shape = NULL, *version = NULL, *node = NULL;
    if (edges)
        saved = keeps == Py_True ? saved_of(inputs, edges, needed) : PyTuple_New(0);
    if (saved && (options = options_of(given_options, inputs, traits)))
        shape = PyObject_GetAttr(SLOT(made, NATIVE), shortcut_names[A_SHAPE]);
    if (shape && (version = keeps_result ? version_of(made) : Py_None))
        node = node_type->tp_alloc(node_type, 0);
    if (node) {
        NODE_SLOT(node, N_OP) = Py_NewRef(op);
        NODE_SLOT(node, N_EDGES) = Py_NewRef(edges);
        NODE_SLOT(node, N_SAVED) = Py_NewRef(saved);
        NODE_SLOT(node, N_OPTIONS) = Py_NewRef(options);
        NODE_SLOT(node, N_EXTRA) = Py_NewRef(Py_None);
        NODE_SLOT(node, N_SHAPE) = Py_NewRef(shape);
        NODE_SLOT(node, N_DTYPE) = Py_NewRef(SLOT(made, DTYPE));
        NODE_SLOT(node, N_OUT) = Py_NewRef(keeps_result ? SLOT(made, NATIVE) : Py_None);
        NODE_SLOT(node, N_VERSION) = Py_NewRef(version);
        if (!(NODE_SLOT(node, N_ORDER) = PyObject_CallNoArgs(next_order)))
            Py_CLEAR(node);
    }
    if (node)
        Py_SETREF(SLOT(made, NODE), Py_NewRef(node));
    PyObject *done = node ? Py_NewRef(Py_None) : NULL;
    Py_XDECREF(node);
    Py_XDECREF(shape);
    Py_XDECREF(options);
    Py_XDECREF(saved);
    Py_XDECREF(edges);
    return done;
}

/* record.py: record(op, inputs, options, made) of one tensor, on a device that is nobody's wrapper */
static PyObject *run_record(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs != 4 || kwnames ? NULL : record_call(args[0], args[1], args[2], args[3]);
}

const shortcut_spec record_shortcuts[] = {{"record", run_record}, {NULL, NULL}};
