/* Views, and writes to the memory that they share. */
#include "shortcuts.h"

/* Whether autograd may have to do with tensors of the dtype. */
static bool differentiable(PyObject *dtype) {
    static PyObject *last; /* most programs have few of them */
    static bool answer;
    if (dtype != last) {
        PyObject *one = PyObject_GetAttr(dtype, shortcut_names[A_FLOATING]);
        PyObject *other = one ? PyObject_GetAttr(dtype, shortcut_names[A_COMPLEX]) : NULL;
        answer = !other || PyObject_IsTrue(one) || PyObject_IsTrue(other);
        PyErr_Clear();
        Py_XDECREF(one);
        Py_XDECREF(other);
        Py_XSETREF(last, Py_NewRef(dtype));
    }
    return answer;
}

/* version.watch(made). Most views are gone before the next ones are taken: places at the end are free then. */
static int watch(PyObject *version, PyObject *made) {
    PyObject *ref = PyWeakref_NewRef(made, NULL); /* which may collect garbage, whose finalizers may take views too */
    int failed = -1;
    if (!ref)
        return -1;
    PyObject_GC_UnTrack(ref); /* it holds nothing, as it calls nobody: the collector has nothing to look for there */
    PyObject *views = VERSION_SLOT(version, VIEWS);
    if (!views || !PyList_CheckExact(views)) {
        if ((views = PyList_New(1))) {
            PyList_SET_ITEM(views, 0, Py_NewRef(ref));
            Py_XSETREF(VERSION_SLOT(version, VIEWS), views);
            failed = 0;
        }
    } else {
        Py_ssize_t count = PyList_GET_SIZE(views), live = count;
        for (PyObject *last; live; live--) {
            last = PyList_GET_ITEM(views, live - 1);
            if (!PyWeakref_CheckRef(last) || PyWeakref_GET_OBJECT(last) != Py_None)
                break;
        }
        if (live < count) {
            failed = PyList_SetSlice(views, live + 1, count, NULL);
            failed |= PyList_SetItem(views, live, Py_NewRef(ref));
        } else if (count < PyLong_AsSsize_t(VERSION_SLOT(version, LIMIT))) {
            failed = PyList_Append(views, ref);
        } else {
            PyObject *done = PyObject_CallMethod(version, "watch", "O", made);
            failed = done ? 0 : -1;
            Py_XDECREF(done);
        }
    }
    Py_DECREF(ref);
    return failed;
}

PyObject *trail_of(PyObject *input, PyObject *op, PyObject *options, PyObject *kind) {
    if (SLOT(input, TRAIL) == Py_None)
        return PyTuple_Pack(5, input, Py_None, op, options, kind ? kind : shortcut_names[A_PLAIN]);
    /* A new tuple may collect garbage, whose finalizers may ask for the origin. */
    PyObject *before = is_shared_trail(SLOT(input, TRAIL)) ? own_trail(input) : Py_NewRef(SLOT(input, TRAIL));
    if (!before)
        return NULL;
    const bool taken = PyTuple_CheckExact(before);
    PyObject *base = taken ? Py_NewRef(PyTuple_GET_ITEM(before, 0)) : PyObject_GetAttr(before, shortcut_names[A_BASE]);
    PyObject *own = kind || taken ? Py_NewRef(kind ? kind : PyTuple_GET_ITEM(before, 4)) : PyObject_GetAttr(before, shortcut_names[A_KIND]);
    PyObject *made = base && own ? PyTuple_Pack(5, base, before, op, options, own) : NULL;
    Py_DECREF(before);
    Py_XDECREF(base);
    Py_XDECREF(own);
    return made;
}

PyObject *version_of(PyObject *input) {
    PyObject *version = SLOT(input, VERSION);
    if (version != Py_None)
        return version;
    static PyObject *blank; /* as Version() fills it; copied, which spares its frame */
    if (!blank && !(blank = PyObject_CallNoArgs((PyObject *)version_type)))
        return NULL;
    if ((version = version_type->tp_alloc(version_type, 0))) {
        for (int i = 0; i < VERSION_SLOTS; i++)
            VERSION_SLOT(version, i) = Py_XNewRef(VERSION_SLOT(blank, i));
        Py_SETREF(SLOT(input, VERSION), version);
    }
    return version;
}

PyObject *view_on_trail(PyObject *input, PyObject *native, PyObject *trail, taping how) {
    PyObject *version = Py_XNewRef(version_of(input));
    PyObject *made = version ? new_tensor(native, SLOT(input, DTYPE), SLOT(input, DEVICE)) : NULL;
    if (made) {
        Py_SETREF(SLOT(made, VERSION), Py_NewRef(version));
        Py_SETREF(SLOT(made, TRAIL), Py_NewRef(trail));
        if (how == RECORDING && differentiable(SLOT(input, DTYPE)) && watch(version, made))
            Py_CLEAR(made);
    }
    Py_XDECREF(version);
    return made;
}

PyObject *view_of(PyObject *input, PyObject *native, PyObject *op, PyObject *options, PyObject *kind, taping how) {
    PyObject *trail = trail_of(input, op, options, how == NOT_RECORDING ? shortcut_names[A_UNRECORDED] : kind);
    PyObject *made = trail ? view_on_trail(input, native, trail, how) : NULL;
    Py_XDECREF(trail);
    return made;
}

/* A node that keeps nothing but the options of `op`, with the shape of `input` where its formula asks for that. */
static PyObject *node_of(PyObject *input, PyObject *made, PyObject *op, PyObject *options, bool asks_shape) {
    PyObject *node = node_type->tp_alloc(node_type, 0);
    if (!node)
        return NULL;
    PyObject **const place[] = {
        &PLACE(node, node_slots[N_OP]), &PLACE(node, node_slots[N_EDGES]), &PLACE(node, node_slots[N_SAVED]),
        &PLACE(node, node_slots[N_OPTIONS]), &PLACE(node, node_slots[N_EXTRA]), &PLACE(node, node_slots[N_SHAPE]),
        &PLACE(node, node_slots[N_DTYPE]), &PLACE(node, node_slots[N_ORDER]),
    };
    *place[N_OP] = Py_NewRef(op);
    PyObject *const edge = Py_NewRef(SLOT(input, NODE));
    if ((*place[N_EDGES] = PyTuple_New(1)))
        PyTuple_SET_ITEM(*place[N_EDGES], 0, edge);
    else
        Py_DECREF(edge);
    *place[N_SAVED] = PyTuple_New(0);
    *place[N_OPTIONS] = asks_shape ? PyDict_Copy(options) : Py_NewRef(options);
    *place[N_EXTRA] = Py_NewRef(Py_None);
    *place[N_SHAPE] = PyObject_GetAttr(SLOT(made, NATIVE), shortcut_names[A_SHAPE]);
    *place[N_DTYPE] = Py_NewRef(SLOT(made, DTYPE));
    bool complete = *place[N_EDGES] && *place[N_SAVED] && *place[N_OPTIONS] && *place[N_SHAPE] &&
                    (*place[N_ORDER] = PyObject_CallNoArgs(next_order));
    if (complete && asks_shape) {
        PyObject *shape = PyObject_GetAttr(SLOT(input, NATIVE), shortcut_names[A_SHAPE]);
        complete = shape && !PyDict_SetItem(*place[N_OPTIONS], shortcut_names[A_INPUT_SHAPE], shape);
        Py_XDECREF(shape);
    }
    if (!complete)
        Py_CLEAR(node);
    return node;
}

/* views.py: show(input, options, native=None) of an op, with the name of its kernel, whether its formula asks for a shape, and
   what makes the view's dtype of the input's, or None */
static PyObject *run_show(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 2 || nargs > 3 || kwnames || !is_whole(args[0]) || !PyDict_CheckExact(args[1]))
        return NULL;
    const taping how = taping_of_thread();
    if (how == UNUSUAL)
        return NULL;
    PyObject *input = args[0], *op = self->known[0], *native;
    if (nargs == 3 && args[2] != Py_None) {
        native = Py_NewRef(args[2]);
    } else {
        PyObject *kernel = kernel_of(SLOT(input, DEVICE), self->known[1]), *own = Py_NewRef(SLOT(input, NATIVE));
        native = kernel ? PyObject_VectorcallDict(kernel, &own, 1, args[1]) : NULL;
        Py_XDECREF(kernel);
        Py_DECREF(own);
        if (!native)
            return NULL;
    }
    PyObject *made = view_of(input, native, op, args[1], NULL, how), *dtype;
    if (made && self->known[3] != Py_None) {
        if ((dtype = PyObject_CallOneArg(self->known[3], SLOT(input, DTYPE))))
            Py_SETREF(SLOT(made, DTYPE), dtype);
        else
            Py_CLEAR(made);
    }
    if (made && how == RECORDING && SLOT(input, NODE) != Py_None) {
        PyObject *node = node_of(input, made, op, args[1], self->known[2] == Py_True);
        if (node)
            Py_SETREF(SLOT(made, NODE), node);
        else
            Py_CLEAR(made);
    }
    Py_DECREF(native);
    return made;
}

/* complex.py: _are_pairs(input), where the answer is yes; else the function looks closer */
static PyObject *run_are_pairs(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 1 || kwnames || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)SLOT(args[0], NATIVE), *owner = array;
    const int last = PyArray_NDIM(array) - 1;
    const npy_intp size = PyArray_ITEMSIZE(array);
    if (last < 0 || !PyArray_SIZE(array) || PyArray_STRIDE(array, last) != size)
        return NULL;
    while (PyArray_BASE(owner) && PyArray_Check(PyArray_BASE(owner)))
        owner = (PyArrayObject *)PyArray_BASE(owner);
    npy_intp odd = PyArray_BYTES(array) - PyArray_BYTES(owner);
    for (int i = 0; i < last; i++)
        odd |= PyArray_STRIDE(array, i);
    return odd % (2 * size) ? NULL : Py_NewRef(Py_True);
}

bool is_free(PyObject *tensor) {
    if (!is_whole(tensor) || SLOT(tensor, NODE) != Py_None || !PyArray_CheckExact(SLOT(tensor, NATIVE)))
        return false;
    PyObject *trail = SLOT(tensor, TRAIL), *base = PyTuple_CheckExact(trail) ? PyTuple_GET_ITEM(trail, 0) : NULL;
    if (trail != Py_None && (!base || !is_whole(base) || SLOT(base, NODE) != Py_None))
        return false;
    if (SLOT(base ? base : tensor, MARK))
        return false;
    PyArrayObject *array = (PyArrayObject *)SLOT(tensor, NATIVE);
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (!PyArray_STRIDE(array, i) && PyArray_SIZE(array)) /* as those of an array without elements may be */
            return false;
    return true;
}

/* inplace.py: is_free(tensor), where the answer is yes; else the function looks closer */
static PyObject *run_is_free(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs == 1 && !kwnames && is_free(args[0]) ? Py_NewRef(Py_True) : NULL;
}

/* inplace.py: check_writable(op, tensor) */
static PyObject *run_check_writable(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs == 2 && !kwnames && is_free(args[1]) ? Py_NewRef(Py_None) : NULL;
}

/* output.py: check_apart(op, target, inputs, *, all_of_it), where no input has to do with the memory */
static PyObject *run_check_apart(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 3 || !is_whole(args[1]) || !PyTuple_CheckExact(args[2]))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[2]); i++) {
        PyObject *one = PyTuple_GET_ITEM(args[2], i);
        if (one == args[1] ? kwnames != NULL
                           : PyObject_TypeCheck(one, tensor_type) &&
                                 (!is_whole(one) || (SLOT(one, VERSION) != Py_None && SLOT(one, VERSION) == SLOT(args[1], VERSION))))
            return NULL;
    }
    Py_RETURN_NONE;
}

bool is_counted(PyObject *tensor) {
    PyObject *version = PyObject_TypeCheck(tensor, tensor_type) ? SLOT(tensor, VERSION) : NULL;
    PyObject *count = version && Py_IS_TYPE(version, version_type) ? VERSION_SLOT(version, COUNT) : NULL;
    int overflow = 0;
    return version == Py_None ||
           (count && PyLong_CheckExact(count) && PyLong_AsLongAndOverflow(count, &overflow) >= 0 && !overflow);
}

/* One write to the memory of each: nothing is done where it answers false, but with an exception. */
static bool note_writes(PyObject *const *tensors, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_counted(tensors[i]))
            return false;
    PyObject *stamp = PyObject_CallNoArgs(next_order);
    bool noted = stamp != NULL;
    for (Py_ssize_t i = 0; noted && i < count; i++) {
        PyObject *version = version_of(tensors[i]);
        PyObject *more = version ? PyLong_FromLong(PyLong_AsLong(VERSION_SLOT(version, COUNT)) + 1) : NULL;
        noted = more != NULL;
        if (noted) {
            Py_XSETREF(VERSION_SLOT(version, COUNT), more);
            Py_XSETREF(VERSION_SLOT(version, STAMP), Py_NewRef(stamp));
        }
    }
    Py_XDECREF(stamp);
    return noted;
}

bool note_write(PyObject *tensor) { return note_writes(&tensor, 1); }

/* output.py: written(*tensors) */
static PyObject *run_written(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return tensor_type && !kwnames && note_writes(args, nargs) ? Py_NewRef(Py_None) : NULL;
}

/* An end or a step of a slice that key.indices() reads as C does: None, or an int of Python's own that is small enough. */
static bool is_usual_end(PyObject *one) {
    int overflow = 0;
    return one == Py_None || (PyLong_CheckExact(one) && (PyLong_AsLongAndOverflow(one, &overflow), !overflow));
}

/* A slice with every number filled in, inside `size`; NULL where parse.py's whole() has to look. */
static PyObject *filled(PyObject *key, Py_ssize_t size) {
    const PySliceObject *slice = (const PySliceObject *)key;
    Py_ssize_t start, stop, step;
    if (!is_usual_end(slice->start) || !is_usual_end(slice->stop) || !is_usual_end(slice->step))
        return NULL;
    if (PySlice_Unpack(key, &start, &stop, &step) || step < 1) {
        PyErr_Clear();
        return NULL;
    }
    PySlice_AdjustIndices(size, &start, &stop, step);
    PyObject *numbers[] = {PyLong_FromSsize_t(start), PyLong_FromSsize_t(stop > start ? stop : start), PyLong_FromSsize_t(step)};
    PyObject *made = numbers[0] && numbers[1] && numbers[2] ? PySlice_New(numbers[0], numbers[1], numbers[2]) : NULL;
    for (int i = 0; i < 3; i++)
        Py_XDECREF(numbers[i]);
    return made;
}

/* parse.py: whole(key, size) */
static PyObject *run_whole_slice(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 2 || kwnames || !PySlice_Check(args[0]) || !PyLong_CheckExact(args[1]))
        return NULL;
    const Py_ssize_t size = PyLong_AsSsize_t(args[1]);
    return size < 0 ? NULL : filled(args[0], size);
}

/* An int that is inside `size`, or a slice with every number filled in; with whether it is a slice that leaves something out.
   NULL for others. */
static PyObject *named(PyObject *one, PyObject *length, PyObject **last) {
    const Py_ssize_t size = PyLong_CheckExact(length) ? PyLong_AsSsize_t(length) : -1;
    if (size < 0)
        return NULL;
    if (PyLong_CheckExact(one)) {
        int overflow;
        const long at = PyLong_AsLongAndOverflow(one, &overflow);
        *last = Py_False;
        return !overflow && -size <= at && at < size ? Py_NewRef(one) : NULL;
    }
    if (!PySlice_Check(one))
        return NULL;
    const PySliceObject *slice = (const PySliceObject *)one;
    if (slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None)
        return Py_NewRef(one);
    *last = Py_True;
    return filled(one, size);
}

PyObject *simple_key(PyObject *key, PyObject *shape) {
    PyObject *last = NULL, *both = NULL;
    const Py_ssize_t ndim = PyTuple_GET_SIZE(shape), given = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    const bool many = PyTuple_CheckExact(key);
    if (!many && !PyLong_CheckExact(key) && !PySlice_Check(key))
        Py_RETURN_NONE;
    Py_ssize_t free = many ? ndim - given + 1 : -1, count = given;
    for (Py_ssize_t i = 0; many && i < given; i++) {
        PyObject *one = PyTuple_GET_ITEM(key, i);
        if (one == Py_Ellipsis && free >= 0) {
            count += free - 1;
            free = -2; /* was there */
        } else if (!PyLong_CheckExact(one) && !PySlice_Check(one)) {
            Py_RETURN_NONE;
        }
    }
    if (count > ndim || !ndim)
        Py_RETURN_NONE;
    PyObject *made = PyTuple_New(count);
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; made && i < given; i++) {
        PyObject *one = many ? PyTuple_GET_ITEM(key, i) : key;
        if (one == Py_Ellipsis) {
            static PyObject *all;
            if (!all && !(all = PySlice_New(NULL, NULL, NULL)))
                Py_CLEAR(made);
            for (Py_ssize_t k = 0; made && k < ndim - given + 1; k++)
                PyTuple_SET_ITEM(made, at++, Py_NewRef(all));
            continue;
        }
        PyObject *found = named(one, PyTuple_GET_ITEM(shape, at), &last);
        if (found && !many && PySlice_Check(one)) { /* which is a view, also where it leaves nothing out */
            Py_SETREF(found, filled(one, PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, 0))));
            last = Py_True;
        }
        if (found)
            PyTuple_SET_ITEM(made, at++, found);
        else
            Py_CLEAR(made);
    }
    if (made && last)
        both = PyTuple_Pack(2, made, last);
    Py_XDECREF(made);
    return both;
}

/* parse.py: simple(key, shape) */
static PyObject *run_simple(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs != 2 || kwnames || !PyTuple_CheckExact(args[1]) ? NULL : simple_key(args[0], args[1]);
}

const shortcut_spec view_shortcuts[] = {
    {"whole_slice", run_whole_slice}, {"simple", run_simple}, {"show", run_show}, {"are_pairs", run_are_pairs},
    {"is_free", run_is_free}, {"check_writable", run_check_writable}, {"check_apart", run_check_apart}, {"written", run_written},
    {NULL, NULL},
};
