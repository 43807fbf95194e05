/* New tensors: of one value, and of draws of the generator that no program names, outside of vmap. */
#include "shortcuts.h"

#include <math.h>

/* What a short way of this file has to know: what finds this thread's generator, the class that says where tensors are made, the
   namespace with the default dtype, the classes of dtypes and devices, and where the process's generator is; then what notes a write,
   and of a method which kind of numbers it draws, and its parameters: their names, those of the draw, and their values where they are
   not given. */
enum { OF_THREAD, PLACES, DTYPES, DTYPE_CLASS, DEVICE_CLASS, SOURCES, WRITTEN, METHOD };
/* Of `filled`: what makes a number one of a dtype, and what asks for memory a second time. */
enum { AS_SCALAR = OF_THREAD, AGAIN = SOURCES };

enum { OPTIONS = 4 }; /* of a draw */

/* Whether no vmap is under way on this thread. */
static bool is_alone(void) {
    if (!counts(VMAPS))
        return true;
    PyObject *levels = thread_switch(shortcut_names[A_LEVELS]);
    const bool alone = levels && PyTuple_CheckExact(levels) && !PyTuple_GET_SIZE(levels);
    Py_XDECREF(levels);
    return alone;
}

/* What draws for a device where programs give no generator: its own, the process's or this thread's; NULL with an exception. */
static PyObject *source_of(const shortcut *self, PyObject *device) {
    PyObject *source = PyObject_GetAttr(device, shortcut_names[A_OWN_GENERATOR]);
    if (source != Py_None)
        return source;
    PyObject *threads = PyObject_GetAttr(self->known[SOURCES], shortcut_names[A_THREADS]);
    const int own = threads ? PyObject_IsTrue(threads) : -1;
    Py_XDECREF(threads);
    Py_SETREF(source, own < 0 ? NULL : PyObject_GetAttr(self->known[SOURCES], shortcut_names[A_PROCESS]));
    if (source && (own || source == Py_None)) {
        PyObject *find = PyObject_CallNoArgs(self->known[OF_THREAD]);
        Py_SETREF(source, find ? PyObject_CallNoArgs(find) : NULL);
        Py_XDECREF(find);
    }
    return source;
}

/* device.random(kind, shape, dtype, its generator, **options); NULL without an exception where the function in Python has to. */
static PyObject *drawn(const shortcut *self, PyObject *kind, PyObject *shape, PyObject *dtype, PyObject *device,
                       PyObject *const *options, PyObject *kwnames) {
    enum { FIXED = 5 };
    const Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    PyObject *source = count > OPTIONS || !is_alone() ? NULL : source_of(self, device);
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

/* as_scalar(op, value, dtype, shape); without a call of a float that every floating dtype holds, and of 0 and 1. */
static PyObject *scalar_of(const shortcut *self, PyObject *op, PyObject *value, PyObject *dtype, PyObject *shape) {
    const long bit = PyLong_CheckExact(value) && Py_ABS(Py_SIZE(value)) <= 1 ? PyLong_AsLong(value) : -1;
    if (bit == 0 || bit == 1)
        return Py_NewRef(value);
    if (PyFloat_CheckExact(value) && fabs(PyFloat_AS_DOUBLE(value)) <= 65504) {
        PyObject *floating = PyObject_GetAttr(dtype, shortcut_names[A_FLOATING]);
        Py_XDECREF(floating);
        if (floating == Py_True)
            return Py_NewRef(value);
    }
    PyObject *const asked[] = {op, value, dtype, shape};
    return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->known[AS_SCALAR], asked, 4, NULL);
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
        value = scalar_of(self, args[0], args[2], dtype, shape);
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

/* device.draw_over(native, kind, its generator, **options), where the device has that: whether it drew; -1 with an exception. */
static int drew_over(const shortcut *self, PyObject *kind, PyObject *native, PyObject *device, PyObject *const *options,
                     PyObject *kwnames) {
    enum { FIXED = 3 };
    const Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    PyObject *way = count > OPTIONS || !is_alone() ? Py_NewRef(Py_None) : PyObject_GetAttr(device, shortcut_names[A_DRAW_OVER]);
    PyObject *source = way && way != Py_None ? source_of(self, device) : NULL, *done = NULL;
    if (source) {
        PyObject *given[FIXED + OPTIONS] = {native, kind, source};
        for (Py_ssize_t i = 0; i < count; i++)
            given[FIXED + i] = options[i];
        done = PyObject_Vectorcall(way, given, FIXED, kwnames);
    }
    const int drew = way == Py_None ? 0 : done ? done == Py_True : -1;
    Py_XDECREF(done);
    Py_XDECREF(source);
    Py_XDECREF(way);
    return drew;
}

/* copy(native, device.random(...)) */
static PyObject *copied_over(const shortcut *self, PyObject *kind, PyObject *native, PyObject *dtype, PyObject *device,
                             PyObject *const *options, PyObject *kwnames) {
    PyObject *copy = kernel_of(device, shortcut_names[A_COPY]), *made = NULL, *done = NULL;
    PyObject *shape = copy ? PyObject_GetAttr(native, shortcut_names[A_SHAPE]) : NULL;
    if (shape)
        made = drawn(self, kind, shape, dtype, device, options, kwnames);
    if (made) {
        PyObject *const given[] = {native, made};
        done = PyObject_Vectorcall(copy, given, 2, NULL);
    }
    Py_XDECREF(made);
    Py_XDECREF(shape);
    Py_XDECREF(copy);
    return done;
}

/* A tensor in row-major order that nobody differentiates, filled with draws of that kind. */
static PyObject *filled_with(const shortcut *self, PyObject *input, PyObject *kind, PyObject *const *options, PyObject *kwnames) {
    if (!is_free(input) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)SLOT(input, NATIVE)))
        return NULL;
    PyObject *native = Py_NewRef(SLOT(input, NATIVE)), *device = Py_NewRef(SLOT(input, DEVICE));
    const int drew = drew_over(self, kind, native, device, options, kwnames);
    PyObject *done = drew > 0   ? Py_NewRef(Py_None)
                     : drew < 0 ? NULL
                                : copied_over(self, kind, native, SLOT(input, DTYPE), device, options, kwnames);
    if (done && !note_write(input))
        Py_SETREF(done, PyErr_Occurred() ? NULL : PyObject_CallOneArg(self->known[WRITTEN], input));
    PyObject *filled = done ? Py_NewRef(input) : NULL;
    Py_XDECREF(done);
    Py_DECREF(device);
    Py_DECREF(native);
    return filled;
}

/* random_fill.py: _fill(op, input, kind, generator, **options) */
static PyObject *run_fill(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs == 4 && args[3] == Py_None ? filled_with(self, args[1], args[2], args + nargs, kwnames) : NULL;
}

/* random_fill.py: uniform_(input, ...) and others like it, of Python's own numbers, without a generator */
static PyObject *run_draws_over(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *params = PyTuple_GET_ITEM(self->known[METHOD], 1), *names = PyTuple_GET_ITEM(self->known[METHOD], 2);
    PyObject *defaults = PyTuple_GET_ITEM(self->known[METHOD], 3), *options[OPTIONS] = {NULL}, *filled = NULL;
    const Py_ssize_t count = PyTuple_GET_SIZE(params);
    if (nargs < 1 || nargs - 1 > count)
        return NULL;
    for (Py_ssize_t i = 1; i < nargs; i++)
        options[i - 1] = args[i];
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        Py_ssize_t at = 0;
        while (at < count && PyTuple_GET_ITEM(params, at) != name)
            at++;
        if (at < count ? options[at] != NULL : name != shortcut_names[A_GENERATOR] || args[nargs + i] != Py_None)
            return NULL;
        if (at < count)
            options[at] = args[nargs + i];
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!options[i])
            options[i] = PyTuple_GET_ITEM(defaults, i);
        else if (!PyFloat_CheckExact(options[i]) && !PyLong_CheckExact(options[i]))
            return NULL;
    }
    bool ready = true;
    for (Py_ssize_t i = 0; i < count; i++)
        ready = (options[i] = ready ? PyNumber_Float(options[i]) : NULL) != NULL;
    if (ready)
        filled = filled_with(self, args[0], PyTuple_GET_ITEM(self->known[METHOD], 0), options, names);
    else if (PyErr_Occurred())
        PyErr_Clear(); /* an int past the floats, of which the function says so */
    for (Py_ssize_t i = 0; i < count; i++)
        Py_XDECREF(options[i]);
    return filled;
}

/* arrays.py: _usual(ndarray), of an array that may be written, whose strides are steps of its elements; with the class that says where
   the host is, the dtypes by NumPy's, and the class of devices */
static PyObject *run_from_numpy(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 1 || kwnames || !PyArray_CheckExact(args[0]) || !PyArray_ISWRITEABLE((PyArrayObject *)args[0]) || counts(INFERENCE))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)args[0];
    PyObject *dtype = PyArray_ISNOTSWAPPED(array) ? PyDict_GetItemWithError(self->known[1], (PyObject *)PyArray_DESCR(array)) : NULL;
    if (!dtype) {
        PyErr_Clear();
        return NULL;
    }
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (PyArray_STRIDE(array, i) < 0 || PyArray_STRIDE(array, i) % PyArray_ITEMSIZE(array))
            return NULL;
    PyObject *host = PyObject_GetAttr(self->known[0], shortcut_names[A_HOST]), *native = NULL, *made = NULL;
    if (host && PyObject_TypeCheck(host, (PyTypeObject *)self->known[2]))
        native = PyObject_CallMethodOneArg(host, shortcut_names[A_SHARE_HOST], args[0]);
    if (native)
        made = new_tensor(native, dtype, host);
    Py_XDECREF(native);
    Py_XDECREF(host);
    return made;
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

const shortcut_spec making_shortcuts[] = {{"filled", run_filled}, {"draw", run_draw}, {"created", run_created}, {"fill", run_fill}, {"draws_over", run_draws_over},
                                         {"lend", run_lend}, {"from_numpy", run_from_numpy}, {NULL, NULL}};
