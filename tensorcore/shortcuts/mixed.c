/* Elementwise calls whose operands are of several dtypes, that have met before. */
#include "shortcuts.h"

enum { MOST = 4 };

/* Whether it is a float of Python's own, or an int of 32 bits. */
static bool is_small_number(PyObject *one) {
    int overflow = 0;
    if (!PyLong_CheckExact(one))
        return PyFloat_CheckExact(one);
    const long long value = PyLong_AsLongLongAndOverflow(one, &overflow);
    return !overflow && value >= INT32_MIN && value <= INT32_MAX;
}

/* The device that all tensors are on, borrowed; NULL where an operand is unusual. `tied` is whether one has a history. */
static PyObject *device_of(PyObject *const *args, Py_ssize_t count, bool *tied) {
    PyObject *device = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = args[i];
        if (!is_tensor(one)) {
            if (!is_small_number(one))
                return NULL;
            continue;
        }
        if (!is_whole(one) || !PyArray_CheckExact(SLOT(one, NATIVE)) || (device && SLOT(one, DEVICE) != device))
            return NULL;
        device = SLOT(one, DEVICE);
        *tied |= SLOT(one, NODE) != Py_None;
    }
    return device;
}

/* What Op.promoted has of these operands: the dtype they are computed in, the result's, and what numbers become. */
static PyObject *entry_of(PyObject *op, PyObject *device, PyObject *const *args, Py_ssize_t count) {
    PyObject *promoted = PyObject_GetAttr(op, shortcut_names[A_PROMOTED]), *entry = NULL;
    PyObject *key = promoted && PyDict_CheckExact(promoted) && PyDict_GET_SIZE(promoted) ? PyTuple_New(1 + 2 * count) : NULL;
    if (key) {
        PyTuple_SET_ITEM(key, 0, Py_NewRef(device));
        for (Py_ssize_t i = 0; i < count; i++) {
            const bool tensor = is_tensor(args[i]);
            PyObject *kind = tensor ? SLOT(args[i], DTYPE) : (PyObject *)Py_TYPE(args[i]);
            const bool single = !tensor || !PyArray_NDIM((PyArrayObject *)SLOT(args[i], NATIVE));
            PyTuple_SET_ITEM(key, 1 + 2 * i, Py_NewRef(kind));
            PyTuple_SET_ITEM(key, 2 + 2 * i, Py_NewRef(single ? Py_True : Py_False));
        }
        entry = PyDict_GetItemWithError(promoted, key);
        if (entry && PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 3)
            Py_INCREF(entry);
        else
            entry = NULL;
    }
    Py_XDECREF(promoted);
    Py_XDECREF(key);
    return entry;
}

/* An operand as the kernel takes it. */
static PyObject *native_of(PyObject *one, PyObject *device, PyObject *compute, PyObject *number) {
    static PyObject *cast, *words;
    if (!is_tensor(one) && number == Py_True) {
        const long value = PyLong_CheckExact(one) ? PyLong_AsLong(one) : -1;
        return value >= 0 && value <= INT8_MAX ? Py_NewRef(one) : NULL;
    }
    if (!is_tensor(one))
        return number == Py_None || (PyObject *)Py_TYPE(one) == number ? Py_NewRef(one) : PyObject_CallOneArg(number, one);
    if (SLOT(one, DTYPE) == compute)
        return Py_NewRef(SLOT(one, NATIVE));
    if ((!cast && !(cast = PyUnicode_InternFromString("cast"))) || (!words && !(words = PyTuple_Pack(1, shortcut_names[A_DTYPE]))))
        return NULL;
    PyObject *given[] = {SLOT(one, NATIVE), compute};
    return run_kernel(device, cast, given, 1, words);
}

/* The result of op's kernel of those operands, an array of the device's. */
static PyObject *computed(PyObject *op, PyObject *device, PyObject *const *args, Py_ssize_t count, PyObject *options, PyObject *entry,
                          PyObject *again) {
    PyObject *natives[MOST] = {NULL}, *array = NULL, *made = NULL;
    bool whole = true;
    for (Py_ssize_t i = 0; whole && i < count; i++)
        whole = (natives[i] = native_of(args[i], device, PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 2))) != NULL;
    PyObject *name = whole ? PyObject_GetAttr(op, shortcut_names[A_KERNEL]) : NULL, *kernel = name ? kernel_of(device, name) : NULL;
    if (kernel && (array = PyObject_GetAttr(device, shortcut_names[A_ARRAY])))
        made = PyObject_VectorcallDict(kernel, natives, (size_t)count, options);
    if (array && !made && PyErr_ExceptionMatches(PyExc_MemoryError))
        made = asked_again(again, device, name, natives, count, options);
    if (made && (PyObject *)Py_TYPE(made) != array)
        Py_SETREF(made, PyObject_CallMethodOneArg(device, shortcut_names[A_AS_NATIVE], made));
    for (Py_ssize_t i = 0; i < count; i++)
        Py_XDECREF(natives[i]);
    Py_XDECREF(name);
    Py_XDECREF(kernel);
    Py_XDECREF(array);
    return made;
}

bool recorded_call(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *options, PyObject *made) {
    PyObject *grads = PyObject_GetAttr(op, shortcut_names[A_GRADS]), *inputs = NULL;
    const int wanted = grads ? PyObject_IsTrue(grads) : -1;
    bool done = !wanted;
    if (wanted == 1 && (inputs = PyTuple_New(count))) {
        for (Py_ssize_t i = 0; i < count; i++)
            PyTuple_SET_ITEM(inputs, i, Py_NewRef(args[i]));
        PyObject *answer = record_call(op, inputs, options ? options : Py_None, made);
        done = answer != NULL;
        Py_XDECREF(answer);
    }
    Py_XDECREF(grads);
    Py_XDECREF(inputs);
    return done;
}

PyObject *known_call(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *options, PyObject *again) {
    bool tied = false;
    PyObject *device = count < 1 || count > MOST || counts(INFERENCE) ? NULL : device_of(args, count, &tied);
    const taping how = !device ? UNUSUAL : tied ? taping_of_thread() : NOT_RECORDING;
    PyObject *entry = how == UNUSUAL ? NULL : entry_of(op, device, args, count), *made = NULL;
    if (entry) {
        Py_INCREF(device);
        PyObject *native = computed(op, device, args, count, options, entry, again);
        made = native ? new_tensor(native, PyTuple_GET_ITEM(entry, 1), device) : NULL;
        if (made && how == RECORDING && !recorded_call(op, args, count, options, made))
            Py_CLEAR(made);
        Py_XDECREF(native);
        Py_DECREF(device);
        Py_DECREF(entry);
    }
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the function makes the call again, and says what is wrong */
    return made;
}

PyObject *known_operand(PyObject *op, PyObject *input, PyObject *other) {
    PyObject *const both[] = {input, other};
    bool tied = false;
    PyObject *device = is_tensor(other) ? device_of(both, 2, &tied) : NULL, *made = NULL;
    PyObject *entry = device ? entry_of(op, device, both, 2) : NULL;
    if (entry && PyTuple_GET_ITEM(entry, 0) == SLOT(input, DTYPE) && PyTuple_GET_ITEM(entry, 1) == SLOT(input, DTYPE))
        made = native_of(other, device, SLOT(input, DTYPE), Py_None);
    Py_XDECREF(entry);
    if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return made;
}

/* mixed.py: _known(op, inputs, options); it knows what asks a kernel that found no memory a second time. */
static PyObject *run_known(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 3 || kwnames || !(PyTuple_CheckExact(args[1]) || PyList_CheckExact(args[1])) ||
        !(args[2] == Py_None || PyDict_CheckExact(args[2])))
        Py_RETURN_NONE;
    PyObject *inputs = PySequence_Tuple(args[1]);
    PyObject *made = inputs ? known_call(args[0], PySequence_Fast_ITEMS(inputs), PyTuple_GET_SIZE(inputs),
                                         args[2] == Py_None || !PyDict_GET_SIZE(args[2]) ? NULL : args[2], self->known[0])
                            : NULL;
    Py_XDECREF(inputs);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

const shortcut_spec mixed_shortcuts[] = {{"known", run_known}, {NULL, NULL}};
