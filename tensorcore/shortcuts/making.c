/* New tensors: of one value, and of draws of the generator that no program names, outside of vmap. */
#include "shortcuts.h"

/* What a short way of this file has to know: what finds this thread's generator, the class that says where tensors are made, the
   namespace with the default dtype, the classes of dtypes and devices, and what notes a write. */
enum { OF_THREAD, PLACES, DTYPES, DTYPE_CLASS, DEVICE_CLASS, WRITTEN };
/* Of `filled`: what makes a number one of a dtype, and what asks for memory a second time. */
enum { AS_SCALAR = OF_THREAD, AGAIN = WRITTEN };

/* device.random(kind, shape, dtype, its generator, **options); NULL without an exception where the function in Python has to. */
static PyObject *drawn(const shortcut *self, PyObject *kind, PyObject *shape, PyObject *dtype, PyObject *device,
                       PyObject *const *options, PyObject *kwnames) {
    enum { FIXED = 5, OPTIONS = 4 };
    const Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    PyObject *levels = count > OPTIONS ? NULL : thread_switch(shortcut_names[A_LEVELS]);
    const bool alone = levels && PyTuple_CheckExact(levels) && !PyTuple_GET_SIZE(levels);
    Py_XDECREF(levels);
    PyObject *source = alone ? PyObject_GetAttr(device, shortcut_names[A_OWN_GENERATOR]) : NULL;
    if (source == Py_None) {
        PyObject *find = PyObject_CallNoArgs(self->known[OF_THREAD]);
        Py_SETREF(source, find ? PyObject_CallNoArgs(find) : NULL);
        Py_XDECREF(find);
    }
    if (!source)
        return NULL;
    PyObject *given[FIXED + OPTIONS] = {device, kind, shape, dtype, source};
    for (Py_ssize_t i = 0; i < count; i++)
        given[FIXED + i] = options[i];
    PyObject *made = PyObject_VectorcallMethod(shortcut_names[A_RANDOM], given, FIXED, kwnames);
    if (!made && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the function makes room, and asks again */
    Py_DECREF(source);
    return made;
}

/* Whether it is a tuple of sizes, of fewer than 2**63 elements before the first that is 0. */
static bool are_sizes(PyObject *shape) {
    Py_ssize_t count = 1;
    if (!PyTuple_CheckExact(shape))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        int overflow;
        PyObject *one = PyTuple_GET_ITEM(shape, i);
        const long size = PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : -1;
        if (size < 0 || __builtin_mul_overflow(count, size, &count))
            return false;
    }
    return true;
}

/* random.py: draw(op, kind, shape, dtype, device, generator, **options) */
static PyObject *run_draw(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 6 || args[5] != Py_None || !are_sizes(args[2]))
        return NULL;
    return drawn(self, args[1], args[2], args[3], args[4], args + nargs, kwnames);
}

/* The device of new tensors where that is the host, which stores every dtype, and is found already; a new reference. */
static PyObject *place(const shortcut *self, PyObject *device) {
    PyObject *host = PyObject_GetAttr(self->known[PLACES], shortcut_names[A_HOST]);
    PyObject *chosen = host ? PyObject_GetAttr(self->known[PLACES], shortcut_names[A_DEVICE]) : NULL;
    const bool here = chosen && PyObject_TypeCheck(host, (PyTypeObject *)self->known[DEVICE_CLASS]) &&
                      (device == host || (device == Py_None && (chosen == Py_None || chosen == host)));
    Py_XDECREF(chosen);
    if (!here)
        Py_CLEAR(host);
    return host;
}

/* The sizes that a program gives one by one or in a tuple; borrowed, NULL where they are none. */
static PyObject *sizes_of(PyObject *given) {
    if (!PyTuple_CheckExact(given))
        return NULL;
    if (PyTuple_GET_SIZE(given) == 1 && PyTuple_CheckExact(PyTuple_GET_ITEM(given, 0)))
        given = PyTuple_GET_ITEM(given, 0);
    return are_sizes(given) ? given : NULL;
}

/* A dtype, the default one where none is named; borrowed, NULL where it is none. */
static PyObject *dtype_of(const shortcut *self, PyObject *dtype) {
    if (dtype == Py_None)
        dtype = PyDict_GetItemWithError(self->known[DTYPES], shortcut_names[A_DEFAULT]);
    return dtype && (PyObject *)Py_TYPE(dtype) == self->known[DTYPE_CLASS] ? dtype : NULL;
}

/* again(device, "full", (shape, value), {"dtype": dtype}, error), with the exception that is set. */
static PyObject *filled_again(const shortcut *self, PyObject *device, PyObject *shape, PyObject *value, PyObject *dtype) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace)
        PyException_SetTraceback(error, trace);
    PyObject *made = PyObject_CallFunction(self->known[AGAIN], "OO(OO){OO}O", device, shortcut_names[A_FULL], shape, value,
                                           shortcut_names[A_DTYPE], dtype, error);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return made;
}

/* create.py: _filled(op, size, value, dtype, device, requires_grad, out) of a new tensor off the tape */
static PyObject *run_filled(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 7 || kwnames || args[5] != Py_False || args[6] != Py_None || counts(INFERENCE))
        return NULL;
    PyObject *shape = sizes_of(args[1]), *dtype = shape ? dtype_of(self, args[3]) : NULL, *native = NULL, *made = NULL;
    PyObject *device = dtype ? place(self, args[4]) : NULL;
    if (!device)
        return NULL;
    Py_INCREF(dtype);
    PyObject *value = NULL;
    if (args[2] == Py_None) {
        PyObject *const given[] = {device, shape, dtype};
        value = PyLong_FromLong(0);
        native = PyObject_VectorcallMethod(shortcut_names[A_ALLOCATE], given, 3, NULL);
    } else {
        const long bit = PyLong_CheckExact(args[2]) && Py_ABS(Py_SIZE(args[2])) <= 1 ? PyLong_AsLong(args[2]) : -1;
        PyObject *const asked[] = {args[0], args[2], dtype, shape};
        value = bit == 0 || bit == 1 ? Py_NewRef(args[2]) : PyObject_Vectorcall(self->known[AS_SCALAR], asked, 4, NULL);
        PyObject *kernel = value ? kernel_of(device, shortcut_names[A_FULL]) : NULL;
        static PyObject *by_name;
        if (kernel && (by_name || (by_name = PyTuple_Pack(1, shortcut_names[A_DTYPE])))) {
            PyObject *const given[] = {shape, value, dtype};
            native = PyObject_Vectorcall(kernel, given, 2, by_name);
        }
        Py_XDECREF(kernel);
    }
    if (value && !native && PyErr_ExceptionMatches(PyExc_MemoryError))
        native = filled_again(self, device, shape, value, dtype);
    if (native)
        made = new_tensor(native, dtype, device);
    Py_XDECREF(native);
    Py_XDECREF(value);
    Py_DECREF(dtype);
    Py_DECREF(device);
    return made;
}

/* random.py: created(op, kind, size, out, dtype, device, requires_grad, generator, default, **options) of a new tensor off the
   tape */
static PyObject *run_created(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 8 || nargs > 9 || args[3] != Py_None || args[6] != Py_False || args[7] != Py_None || counts(INFERENCE))
        return NULL;
    PyObject *shape = sizes_of(args[2]), *made = NULL;
    PyObject *dtype = shape ? dtype_of(self, args[4] == Py_None && nargs == 9 ? args[8] : args[4]) : NULL;
    PyObject *device = dtype ? place(self, args[5]) : NULL;
    if (!device)
        return NULL;
    Py_INCREF(dtype);
    PyObject *native = drawn(self, args[1], shape, dtype, device, args + nargs, kwnames);
    if (native)
        made = new_tensor(native, dtype, device);
    Py_XDECREF(native);
    Py_DECREF(dtype);
    Py_DECREF(device);
    return made;
}

/* random_fill.py: _fill(op, input, kind, generator, **options) of a tensor in row-major order that nobody differentiates */
static PyObject *run_fill(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 4 || args[3] != Py_None || !is_free(args[1]))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)SLOT(args[1], NATIVE);
    if (!PyArray_IS_C_CONTIGUOUS(array))
        return NULL;
    PyObject *target = Py_NewRef((PyObject *)array), *device = Py_NewRef(SLOT(args[1], DEVICE)), *dtype = SLOT(args[1], DTYPE);
    PyObject *copy = kernel_of(device, shortcut_names[A_COPY]), *made = NULL, *done = NULL;
    PyObject *shape = copy ? PyObject_GetAttr(target, shortcut_names[A_SHAPE]) : NULL;
    if (shape)
        made = drawn(self, args[2], shape, dtype, device, args + nargs, kwnames);
    if (made) {
        PyObject *const given[] = {target, made};
        done = PyObject_Vectorcall(copy, given, 2, NULL);
    }
    if (done)
        Py_SETREF(done, PyObject_CallOneArg(self->known[WRITTEN], args[1]));
    PyObject *filled = done ? Py_NewRef(args[1]) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(made);
    Py_XDECREF(shape);
    Py_XDECREF(copy);
    Py_DECREF(device);
    Py_DECREF(target);
    return filled;
}

/* twister.py: lend(self, draw, *arguments), and lend_normal, which knows something: it hands on the kept normal behind the capsule,
   and keeps what comes back beside the numbers */
static PyObject *run_lend(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { MOST = 8 };
    const bool keeps = self->known[0] != NULL;
    if (nargs < 2 || nargs > MOST || kwnames)
        return NULL;
    PyObject *lock = PyObject_GetAttr(args[0], shortcut_names[A_LOCK]), *made = NULL;
    PyObject *capsule = lock ? PyObject_GetAttr(args[0], shortcut_names[A_CAPSULE]) : NULL;
    PyObject *held = capsule ? PyObject_CallMethodNoArgs(lock, shortcut_names[A_ACQUIRE]) : NULL;
    if (held) {
        PyObject *given[MOST + 1] = {capsule}, *kept = NULL, *type, *error, *trace;
        if (keeps)
            given[1] = kept = PyObject_GetAttr(args[0], shortcut_names[A_NORMAL]);
        for (Py_ssize_t i = 2; i < nargs; i++)
            given[i - 1 + keeps] = args[i];
        made = keeps && !kept ? NULL : PyObject_Vectorcall(args[1], given, nargs - 1 + keeps, NULL);
        bool failed = false, drawn = made && made != Py_None;
        if (drawn && keeps) {
            PyObject *values = NULL, *further = NULL;
            failed = !PyArg_ParseTuple(made, "OO", &values, &further) || PyObject_SetAttr(args[0], shortcut_names[A_NORMAL], further);
            drawn = !failed && (kept == Py_None || !PyArray_Check(values) || PyArray_SIZE((PyArrayObject *)values) != 1);
            Py_SETREF(made, Py_XNewRef(values));
        }
        failed = failed || (drawn && PyObject_SetAttr(args[0], shortcut_names[A_UNUSED], Py_False));
        PyErr_Fetch(&type, &error, &trace);
        PyObject *released = PyObject_CallMethodNoArgs(lock, shortcut_names[A_RELEASE]);
        if (failed || !released)
            Py_CLEAR(made);
        if (released && type)
            PyErr_Restore(type, error, trace);
        Py_XDECREF(released);
        Py_XDECREF(kept);
    }
    Py_XDECREF(held);
    Py_XDECREF(capsule);
    Py_XDECREF(lock);
    return made;
}

const shortcut_spec making_shortcuts[] = {{"filled", run_filled}, {"draw", run_draw}, {"created", run_created}, {"fill", run_fill}, {"lend", run_lend},
                                         {NULL, NULL}};
