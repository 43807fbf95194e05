/* Short ways through the functions of the frontend that most calls pass. Tensor stays a class in Python: its slots are read and
   filled where the class says that they lie. */
#define SHORTCUTS_MODULE
#include "shortcuts.h"

Py_ssize_t shortcut_slots[SLOTS], version_slots[VERSION_SLOTS], node_slots[NODE_SLOTS];
PyTypeObject *tensor_type, *size_type, *version_type, *node_type;
PyObject *next_order, *shortcut_names[NAMES];
static Py_ssize_t unusual_slots[UNUSUAL_SLOTS];
static PyObject *unusual, *mode, *old_shape; /* the last is the function in Python */

static const char *const NAME_TEXTS[NAMES] = {
    "kernels", "kernel", "variadic", "grads", "shape", "base", "kind", "is_floating_point", "is_complex", "dtype", "plain",
    "several", "unrecorded", "input_shape", "enabled", "key", "params", "array", "as_native", "offset", "dim1", "dim2", "addmm", "beta", "alpha",
    "type", "levels", "own_generator", "random", "device", "host", "_default", "copy",
    "_lock", "_capsule", "_unused", "_normal", "acquire", "release", "allocate", "full", "process", "threads", "draw_over", "generator", "share_host", "wraps", "traits",
    "keeps_inputs", "needed_for", "keeps_out", "capabilities", "values", "to_host", "narrow_numbers", "from_host", "dim", "promoted", "takes_out", "keepdim", "out",
};
static const char *const TENSOR_NAMES[SLOTS] = {"native", "dtype", "device", "node", "version", "trail", "inference"};
static const char *const VERSION_NAMES[VERSION_SLOTS] = {"count", "stamp", "views", "limit"};
static const char *const NODE_NAMES[NODE_SLOTS] = {"op", "edges", "saved", "options", "extra", "shape", "dtype", "order",
                                                  "grad", "out", "version"};
static const char *const UNUSUAL_NAMES[UNUSUAL_SLOTS] = {"threads", "inference", "vmaps", "tracers"};

bool is_whole(PyObject *one) {
    if (!is_tensor(one))
        return false;
    for (int i = 0; i < FILLED; i++)
        if (!SLOT(one, i))
            return false;
    return true;
}

bool counts(int counter) {
    PyObject *number = PLACE(unusual, unusual_slots[counter]);
    return !number || PyObject_IsTrue(number);
}

taping taping_of_thread(void) {
    if (!counts(THREADS))
        return RECORDING;
    PyObject *plain = PyObject_GetAttr(mode, shortcut_names[A_PLAIN]);
    PyObject *enabled = plain ? PyObject_GetAttr(mode, shortcut_names[A_ENABLED]) : NULL;
    const taping found = !enabled ? UNUSUAL : plain == Py_True ? RECORDING : enabled == Py_False ? NOT_RECORDING : UNUSUAL;
    PyErr_Clear();
    Py_XDECREF(plain);
    Py_XDECREF(enabled);
    return found;
}

PyObject *thread_switch(PyObject *name) { return PyObject_GetAttr(mode, name); }

PyObject *new_tensor(PyObject *native, PyObject *dtype, PyObject *device) {
    PyObject *made = tensor_type->tp_alloc(tensor_type, 0);
    if (made) {
        SLOT(made, NATIVE) = Py_NewRef(native);
        SLOT(made, DTYPE) = Py_NewRef(dtype);
        SLOT(made, DEVICE) = Py_NewRef(device);
        SLOT(made, NODE) = Py_NewRef(Py_None);
        SLOT(made, VERSION) = Py_NewRef(Py_None);
        SLOT(made, TRAIL) = Py_NewRef(Py_None);
    }
    return made;
}

PyObject *kernel_of(PyObject *device, PyObject *name) {
    PyObject *kernels = PyObject_GetAttr(device, shortcut_names[A_KERNELS]), *kernel = NULL;
    if (kernels && PyDict_Check(kernels) && (kernel = PyDict_GetItemWithError(kernels, name)))
        Py_INCREF(kernel);
    else if (kernels && !PyErr_Occurred())
        kernel = PyObject_GetItem(kernels, name); /* one that was not asked for before */
    Py_XDECREF(kernels);
    return kernel;
}

/* Properties */

/* The Size that was made last: programs ask one shape again and again, and nobody can change it. */
static PyObject *latest_size;

static bool is_latest(PyArrayObject *array) {
    const int ndim = PyArray_NDIM(array);
    bool same = latest_size && Py_IS_TYPE(latest_size, size_type) && PyTuple_GET_SIZE(latest_size) == ndim;
    for (int i = 0; same && i < ndim; i++)
        same = PyLong_AsSsize_t(PyTuple_GET_ITEM(latest_size, i)) == PyArray_DIM(array, i);
    return same;
}

static PyObject *get_shape(PyObject *self, void *unused) {
    PyObject *native = SLOT(self, NATIVE);
    if (!native || !PyArray_CheckExact(native))
        return PyObject_CallOneArg(old_shape, self);
    if (is_latest((PyArrayObject *)native))
        return Py_NewRef(latest_size);
    PyArrayObject *array = (PyArrayObject *)Py_NewRef(native); /* a new Size may collect garbage, whose finalizers may write x.data */
    const int ndim = PyArray_NDIM(array);
    PyObject *made = size_type->tp_alloc(size_type, ndim);
    for (int i = 0; made && i < ndim; i++) {
        PyObject *one = PyLong_FromSsize_t(PyArray_DIM(array, i));
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    Py_DECREF(array);
    if (made)
        Py_XSETREF(latest_size, Py_NewRef(made));
    return made;
}

static PyObject *get_ndim(PyObject *self, void *unused) {
    PyObject *native = SLOT(self, NATIVE);
    if (native && PyArray_CheckExact(native))
        return PyLong_FromLong(PyArray_NDIM((PyArrayObject *)native));
    PyObject *shape = PyObject_CallOneArg(old_shape, self);
    const Py_ssize_t ndim = shape ? PyObject_Size(shape) : -1;
    Py_XDECREF(shape);
    return ndim < 0 ? NULL : PyLong_FromSsize_t(ndim);
}

static PyGetSetDef properties[] = {
    {"shape", get_shape, NULL, "The size of each dim.", NULL},
    {"ndim", get_ndim, NULL, "The number of dims.", NULL},
    {NULL},
};

/* Functions with a short way before them */

static PyObject *call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    const shortcut *self = (const shortcut *)object;
    if (self->code && PyFunction_GET_CODE(self->function) != self->code)
        return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
    PyObject *made = self->run(self, args, PyVectorcall_NARGS(nargsf), kwnames);
    return made || PyErr_Occurred() ? made : PyObject_Vectorcall(self->function, args, nargsf, kwnames);
}

static PyObject *attribute(PyObject *object, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(object, name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((shortcut *)object)->function, name); /* its name, and the like */
    }
    return found;
}

static void release(PyObject *object) {
    shortcut *self = (shortcut *)object;
    Py_XDECREF(self->function);
    Py_XDECREF(self->code);
    for (int i = 0; i < KNOWN; i++)
        Py_XDECREF(self->known[i]);
    PyObject_Free(object);
}

static PyObject *bound(PyObject *self, PyObject *object, PyObject *type) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyMemberDef members[] = {
    {"__wrapped__", T_OBJECT, offsetof(shortcut, function), READONLY, "The function in Python."},
    {NULL},
};

static PyObject *described(PyObject *object, void *unused) {
    return PyObject_GetAttrString(((shortcut *)object)->function, "__doc__");
}

/* For pickles and copies: the name under which its function's module has it. */
static PyObject *reduce(PyObject *object, PyObject *unused) {
    return PyObject_GetAttrString(((shortcut *)object)->function, "__qualname__");
}

static shortcut *made_before(PyObject *function, shortcut_way run, PyObject *const *known);

/* The same short way before a twin of the function, which is open while that runs what the function ran. */
static PyObject *around(PyObject *object, PyObject *twin) {
    const shortcut *self = (const shortcut *)object;
    shortcut *made = made_before(twin, self->run, self->known);
    if (made && made->code && self->code)
        Py_SETREF(made->code, Py_NewRef(self->code));
    return (PyObject *)made;
}

static PyMethodDef methods[] = {
    {"around", around, METH_O, "The same short way before a twin of the function."},
    {"__reduce__", reduce, METH_NOARGS, "The name that a pickle keeps."},
    {NULL},
};

static PyGetSetDef facts[] = {
    {"__doc__", described, NULL, NULL, NULL},
    {NULL},
};

static PyTypeObject shortcut_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorcore.shortcuts.shortcut",
    .tp_basicsize = sizeof(shortcut),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(shortcut, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_getattro = attribute,
    .tp_descr_get = bound,
    .tp_members = members,
    .tp_getset = facts,
    .tp_methods = methods,
    .tp_dealloc = release,
};

static shortcut *made_before(PyObject *function, shortcut_way run, PyObject *const *known) {
    shortcut *made = PyObject_New(shortcut, &shortcut_type);
    if (made) {
        made->vectorcall = call;
        made->run = run;
        made->function = Py_NewRef(function);
        made->code = PyFunction_Check(function) ? Py_NewRef(PyFunction_GET_CODE(function)) : NULL;
        for (int k = 0; k < KNOWN; k++)
            made->known[k] = Py_XNewRef(known[k]);
    }
    return made;
}

static PyObject *before(PyObject *module, PyObject *args) {
    const shortcut_spec *const tables[] = {view_shortcuts, part_shortcuts, call_shortcuts, check_shortcuts, pointwise_shortcuts, window_shortcuts,
                                           literal_shortcuts, asked_shortcuts, making_shortcuts, record_shortcuts, write_shortcuts, place_shortcuts, reading_shortcuts, state_shortcuts, mixed_shortcuts,
                                           reduction_shortcuts, along_shortcuts, shown_shortcuts};
    const char *name;
    PyObject *function, *known[KNOWN] = {NULL};
    if (!PyArg_ParseTuple(args, "sO|OOOOOOOOOO", &name, &function, &known[0], &known[1], &known[2], &known[3], &known[4], &known[5],
                          &known[6], &known[7], &known[8], &known[9]))
        return NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const shortcut_spec *spec = tables[i]; spec->name; spec++)
            if (!strcmp(spec->name, name))
                return (PyObject *)made_before(function, spec->run, known);
    return PyErr_Format(PyExc_ValueError, "before: expected the name of a short way, got '%s'", name);
}

/* Where the slots of a class lie; false with an exception where it lacks one. */
static bool find_slots(PyTypeObject *type, const char *const *wanted, int count, Py_ssize_t *found) {
    for (int i = 0; i < count; i++) {
        PyObject *one = PyDict_GetItemString(type->tp_dict, wanted[i]);
        if (!one || !Py_IS_TYPE(one, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "learn: expected %s to have a slot '%s', got none", type->tp_name, wanted[i]);
            return false;
        }
        found[i] = ((PyMemberDescrObject *)one)->d_member->offset;
    }
    return true;
}

static PyObject *learn(PyObject *module, PyObject *args) {
    PyTypeObject *tensor, *size, *version, *node;
    PyObject *counters, *switches, *clock;
    if (!PyArg_ParseTuple(args, "O!O!O!O!OOO", &PyType_Type, &tensor, &PyType_Type, &size, &PyType_Type, &version, &PyType_Type,
                          &node, &counters, &switches, &clock) ||
        !find_slots(tensor, TENSOR_NAMES, SLOTS, shortcut_slots) ||
        !find_slots(version, VERSION_NAMES, VERSION_SLOTS, version_slots) ||
        !find_slots(node, NODE_NAMES, NODE_SLOTS, node_slots) ||
        !find_slots(Py_TYPE(counters), UNUSUAL_NAMES, UNUSUAL_SLOTS, unusual_slots))
        return NULL;
    PyObject *shape = PyDict_GetItemString(tensor->tp_dict, "shape");
    if (!shape)
        return PyErr_Format(PyExc_TypeError, "learn: expected a class with a shape, got %s", tensor->tp_name);
    if (!(old_shape = PyObject_GetAttrString(shape, "fget")))
        return NULL;
    tensor_type = (PyTypeObject *)Py_NewRef(tensor);
    size_type = (PyTypeObject *)Py_NewRef(size);
    version_type = (PyTypeObject *)Py_NewRef(version);
    node_type = (PyTypeObject *)Py_NewRef(node);
    unusual = Py_NewRef(counters);
    mode = Py_NewRef(switches);
    next_order = Py_NewRef(clock);
    /* As tuple's own, or subscripts would find it by name each time. */
    PyObject *item = PyDict_GetItemString(PyTuple_Type.tp_dict, "__getitem__");
    if (item && Py_IS_TYPE(item, &PyWrapperDescr_Type)) {
        PyObject *own = PyDescr_NewWrapper(size, ((PyWrapperDescrObject *)item)->d_base, item_of_size);
        const int failed = !own || PyObject_SetAttrString((PyObject *)size, "__getitem__", own);
        Py_XDECREF(own);
        if (failed)
            return NULL;
    }
    PyObject *made = PyDict_New();
    for (PyGetSetDef *one = properties; made && one->name; one++) {
        PyObject *descriptor = PyDescr_NewGetSet(tensor, one);
        if (!descriptor || PyDict_SetItemString(made, one->name, descriptor))
            Py_CLEAR(made);
        Py_XDECREF(descriptor);
    }
    return made;
}

static PyMethodDef functions[] = {
    {"learn", learn, METH_VARARGS, "Tells where the slots of the classes lie; the properties that Tensor gets."},
    {"before", before, METH_VARARGS, "The short way of a name before a function, with what it has to know besides."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_shortcuts", "Short ways in C through the frontend.", -1, functions,
};

PyMODINIT_FUNC PyInit__shortcuts(void) {
    import_array();
    for (int i = 0; i < NAMES; i++)
        if (!(shortcut_names[i] = PyUnicode_InternFromString(NAME_TEXTS[i])))
            return NULL;
    PyObject *made = PyType_Ready(&shortcut_type) ? NULL : PyModule_Create(&definition);
    if (made && PyModule_AddObjectRef(made, "shortcut", (PyObject *)&shortcut_type))
        Py_CLEAR(made);
    return made;
}
