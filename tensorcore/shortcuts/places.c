/* Calls whose results go into `out`. */
#include "shortcuts.h"

/* Whether arrays broadcast to just the shape of `place`. */
static bool fill(PyObject *place, PyObject *const *natives, Py_ssize_t count) {
    PyArrayObject *to = (PyArrayObject *)place;
    const int ndim = PyArray_NDIM(to);
    bool whole = false;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (!PyArray_Check(natives[k]))
            continue; /* a number */
        if (!fits(place, natives[k]))
            return false;
        whole |= PyArray_NDIM((PyArrayObject *)natives[k]) == ndim;
    }
    for (int i = 0; whole && i < ndim; i++) {
        bool found = PyArray_DIM(to, i) == 1;
        for (Py_ssize_t k = 0; !found && k < count; k++) {
            PyArrayObject *one = (PyArrayObject *)natives[k];
            const int at = PyArray_Check(natives[k]) ? i - ndim + PyArray_NDIM(one) : -1;
            found = at >= 0 && PyArray_DIM(one, at) == PyArray_DIM(to, i);
        }
        whole = found;
    }
    return whole;
}

/* Whether arrays broadcast to a part of `place` alone, which a kernel that works by elements would fill with copies of its result. */
static bool repeats(PyObject *place, PyObject *const *natives, Py_ssize_t count) {
    for (Py_ssize_t k = 0; k < count; k++)
        if (PyArray_Check(natives[k]) && !fits(place, natives[k]))
            return false;
    return !fill(place, natives, count);
}

/* Whether `out` is a tensor whose memory is its own and that takes a result without being changed but in its values. */
static bool is_place(PyObject *out) { return !counts(INFERENCE) && is_free(out) && SLOT(out, TRAIL) == Py_None; }

/* Whether none of the tensors has a history, or the memory of that one. */
static bool is_apart(PyObject *place, PyObject *const *tensors, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (tensors[i] == place || !is_aside(place, tensors[i]))
            return false;
    return true;
}

/* "out" and those names; the last ones are kept, since one place in a program calls again and again. */
static PyObject *with_out(PyObject *kwnames) {
    static PyObject *last, *made;
    PyObject *alone = writing_keywords(NULL);
    if (!alone || !kwnames || !PyTuple_GET_SIZE(kwnames))
        return alone;
    if (last != kwnames) {
        PyObject *more = PySequence_Concat(alone, kwnames);
        if (more) {
            Py_XSETREF(last, Py_NewRef(kwnames));
            Py_XSETREF(made, more);
        }
    }
    Py_DECREF(alone);
    return last == kwnames ? Py_NewRef(made) : NULL;
}

/* Whether all kernels of the device that make one array take a place for it, and not only those of elementwise ops. */
static bool takes_out(PyObject *device) {
    PyObject *answer = PyObject_GetAttr(device, shortcut_names[A_TAKES_OUT]);
    PyErr_Clear();
    Py_XDECREF(answer);
    return answer == Py_True;
}

/* store(the op's name, a result of another shape, out) */
static PyObject *stored(PyObject *store, PyObject *op, PyObject *native, PyObject *out) {
    PyObject *name = PyObject_GetAttrString(op, "name"), *answer = NULL;
    PyObject *made = name ? new_tensor(native, SLOT(out, DTYPE), SLOT(out, DEVICE)) : NULL;
    if (made)
        answer = PyObject_CallFunctionObjArgs(store, name, made, out, NULL);
    Py_XDECREF(name);
    Py_XDECREF(made);
    return answer;
}

/* What a kernel gave that was to write to `out`, whose native is `place`: that tensor; NULL where an exception says why not. Takes the
   reference to `done`. */
static PyObject *answered(PyObject *store, PyObject *op, PyObject *done, PyObject *place, PyObject *out) {
    if (done == place)
        return noted(out, done, out);
    PyObject *answer = done && PyArray_CheckExact(done) ? stored(store, op, done, out) : done ? Py_NewRef(Py_None) : NULL;
    if (!done && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception))) {
        PyErr_Clear();
        answer = Py_NewRef(Py_None);
    }
    Py_XDECREF(done);
    return answer;
}

/* calls.py: the usual call of an op that puts its result into a tensor: (out, input[, others], options by their names); it knows what the
   usual way of the op does, whether the result has the operands' shape, and what stores one of another shape than that of `out`. None
   where it is not one, or where the kernel raises. */
PyObject *place_call(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { OP, ALIKE = 6, STORE };
    PyObject *given[MOST_ARGUMENTS], *out = args[0], *done = NULL;
    const Py_ssize_t count = nargs - 1, options = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (count < 1 || nargs + options > MOST_ARGUMENTS || !is_place(out) || !is_whole(args[1]))
        Py_RETURN_NONE;
    PyObject *device = SLOT(out, DEVICE), *dtype = SLOT(args[1], DTYPE), *result = self->known[OP_RESULT];
    const bool same = result == Py_None || result == dtype, alike = self->known[ALIKE] != Py_False;
    if (SLOT(out, DTYPE) != (same ? dtype : result) ||
        !(self->known[OP_ACCEPTS] == Py_None || PySet_Contains(self->known[OP_ACCEPTS], dtype) == 1))
        Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = args[1 + i];
        const bool number = i && plain_number(self, one, args[1]);
        if (!number && (!is_tensor(one) || !is_aside(out, one) || SLOT(one, DTYPE) != dtype || SLOT(one, DEVICE) != device ||
                        !PyArray_CheckExact(SLOT(one, NATIVE))))
            Py_RETURN_NONE;
        given[i] = number ? one : SLOT(one, NATIVE);
    }
    const bool writes = (alike && same) || takes_out(device);
    if (alike ? !fill(SLOT(out, NATIVE), given, count) : !writes || repeats(SLOT(out, NATIVE), given, count))
        Py_RETURN_NONE;
    PyObject *place = Py_NewRef(SLOT(out, NATIVE)), *keywords = writes ? with_out(kwnames) : Py_XNewRef(kwnames);
    given[count] = place;
    memcpy(given + count + writes, args + nargs, (size_t)options * sizeof *given);
    if (keywords || !writes)
        done = run_kernel(device, self->known[OP_NAME], given, count, keywords);
    if (done && alike) { /* wherever it is */
        Py_SETREF(done, writes ? Py_NewRef(done) : copied(out, done));
        Py_XSETREF(done, done ? Py_NewRef(place) : NULL);
    }
    PyObject *answer = answered(self->known[STORE], self->known[OP], done, place, out);
    Py_DECREF(place);
    Py_XDECREF(keywords);
    return answer;
}

/* What a kernel gave that was to write to several tensors, whose natives are `places`: those, once all writes are noted; None where a
   shape is another, or where the kernel raised. Takes the reference to `done`. */
static PyObject *all_answered(PyObject *done, PyObject *places, PyObject *out) {
    if (!done && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception)))
        PyErr_Clear();
    PyObject *answer = PyErr_Occurred() ? NULL : done == places ? PySequence_Tuple(out) : Py_NewRef(Py_None);
    for (Py_ssize_t i = 0; answer && done == places && i < PyTuple_GET_SIZE(answer); i++) {
        PyObject *noticed = noted(PyTuple_GET_ITEM(answer, i), Py_NewRef(Py_None), Py_True);
        if (!noticed)
            Py_CLEAR(answer);
        Py_XDECREF(noticed);
    }
    Py_XDECREF(done);
    return answer;
}

/* Whether a kernel of that device may write a result of that dtype to a tensor, beside these inputs. */
static bool takes_place(PyObject *out, PyObject *device, PyObject *dtype, PyObject *const *inputs, Py_ssize_t count) {
    return is_tensor(out) && is_place(out) && SLOT(out, DEVICE) == device && SLOT(out, DTYPE) == dtype &&
           PyArray_CheckExact(SLOT(out, NATIVE)) && is_apart(out, inputs, count);
}

PyObject *kernel_into(PyObject *out, PyObject *tensors, PyObject *name, PyObject *const *given, PyObject *words, int ndim, const npy_intp *shape) {
    PyObject *const *inputs = PySequence_Fast_ITEMS(tensors), *device = SLOT(inputs[0], DEVICE);
    PyObject *all[MOST_ARGUMENTS] = {given[0]};
    if (!takes_place(out, device, SLOT(inputs[0], DTYPE), inputs, PySequence_Fast_GET_SIZE(tensors)) || !takes_out(device) ||
        PyArray_NDIM((PyArrayObject *)SLOT(out, NATIVE)) != ndim ||
        !PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)SLOT(out, NATIVE)), shape, ndim))
        return NULL;
    PyObject *place = all[1] = Py_NewRef(SLOT(out, NATIVE)), *keywords = with_out(words);
    memcpy(all + 2, given + 1, (size_t)PyTuple_GET_SIZE(words) * sizeof *all);
    PyObject *done = keywords ? run_kernel(device, name, all, 1, keywords) : NULL, *answer = NULL;
    if (done == place)
        answer = noted(out, Py_NewRef(done), out);
    else if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* the function makes the call again, and says what is wrong */
    Py_XDECREF(done);
    Py_XDECREF(keywords);
    Py_DECREF(place);
    return answer;
}

/* The natives of the places of several results; NULL where one is none. */
static PyObject *natives_of(PyObject *out, PyObject *device, PyObject *dtypes, PyObject *const *inputs, Py_ssize_t count) {
    if (!(PyTuple_Check(out) || PyList_CheckExact(out)) || PySequence_Fast_GET_SIZE(out) != PyTuple_GET_SIZE(dtypes))
        return NULL;
    PyObject *const *places = PySequence_Fast_ITEMS(out), *made = PyTuple_New(PyTuple_GET_SIZE(dtypes));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(dtypes); i++)
        if (takes_place(places[i], device, PyTuple_GET_ITEM(dtypes, i), inputs, count) && is_apart(places[i], places, i))
            PyTuple_SET_ITEM(made, i, Py_NewRef(SLOT(places[i], NATIVE)));
        else
            Py_CLEAR(made);
    return made;
}

PyObject *apply_into_call(PyObject *store, PyObject *op, PyObject *tensors, PyObject *options, PyObject *dtype, PyObject *out) {
    enum { OPERANDS = 8 };
    if (!PyTuple_CheckExact(tensors) || !PyDict_CheckExact(options))
        return NULL;
    PyObject **inputs = PySequence_Fast_ITEMS(tensors), *given[2 * OPERANDS + 1], *name, *value;
    const Py_ssize_t count = PyTuple_GET_SIZE(tensors), more = PyDict_GET_SIZE(options);
    const bool several = PyTuple_CheckExact(dtype);
    if (!count || count > OPERANDS || more > OPERANDS || !is_whole(inputs[0]))
        return NULL;
    PyObject *device = SLOT(inputs[0], DEVICE);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_whole(inputs[i]) || SLOT(inputs[i], DEVICE) != device)
            return NULL;
        given[i] = SLOT(inputs[i], NATIVE);
    }
    if (!takes_out(device) || !(several || (takes_place(out, device, dtype, inputs, count) && !repeats(SLOT(out, NATIVE), given, count))))
        return NULL;
    PyObject *place = several ? natives_of(out, device, dtype, inputs, count) : Py_NewRef(SLOT(out, NATIVE));
    if (!place)
        return NULL;
    PyObject *alone = writing_keywords(NULL), *keywords = PyTuple_New(more + 1);
    Py_ssize_t at = 0;
    given[count] = place;
    if (alone && keywords)
        PyTuple_SET_ITEM(keywords, 0, Py_NewRef(PyTuple_GET_ITEM(alone, 0)));
    for (Py_ssize_t i = 1; keywords && PyDict_Next(options, &at, &name, &value); i++) {
        PyTuple_SET_ITEM(keywords, i, Py_NewRef(name));
        given[count + i] = value;
    }
    PyObject *kernel = alone && keywords ? PyObject_GetAttr(op, shortcut_names[A_KERNEL]) : NULL;
    PyObject *done = kernel ? run_kernel(device, kernel, given, count, keywords) : NULL;
    PyObject *answer = several ? all_answered(done, place, out) : answered(store, op, done, place, out);
    Py_XDECREF(kernel);
    Py_XDECREF(alone);
    Py_XDECREF(keywords);
    Py_DECREF(place);
    return answer;
}

/* calls.py: apply_into(op, inputs, options, dtype, out), apply with a place for its one result, or a tuple of dtypes with places for all
   of them; it knows what stores one of another shape */
static PyObject *run_apply_into(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs != 5 || kwnames ? NULL : apply_into_call(self->known[0], args[0], args[1], args[2], args[3], args[4]);
}

/* output.py: store(op, made, out, *inputs, all_of_it) where both are alike, and no input has to do with the memory of `out` */
static PyObject *run_store(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 3 || !is_whole(args[1]) || SLOT(args[1], NODE) != Py_None || !is_place(args[2]) || args[1] == args[2])
        return NULL;
    PyObject *made = args[1], *out = args[2], *version = SLOT(out, VERSION);
    if (SLOT(made, DTYPE) != SLOT(out, DTYPE) || SLOT(made, DEVICE) != SLOT(out, DEVICE) ||
        !PyArray_CheckExact(SLOT(made, NATIVE)) ||
        !PyArray_SAMESHAPE((PyArrayObject *)SLOT(made, NATIVE), (PyArrayObject *)SLOT(out, NATIVE)))
        return NULL;
    for (Py_ssize_t i = 3; i <= nargs; i++) {
        PyObject *one = i < nargs ? args[i] : made;
        if (one == out ? kwnames != NULL
                       : PyObject_TypeCheck(one, tensor_type) &&
                             (!is_whole(one) || (version != Py_None && SLOT(one, VERSION) == version)))
            return NULL;
    }
    return noted(out, copied(out, SLOT(made, NATIVE)), out);
}

/* The same of a call's arguments, and the tensors in lists of them. */
static bool all_apart(PyObject *place, PyObject *const *args, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        const bool list = PyTuple_Check(args[i]) || PyList_Check(args[i]);
        if (!(list ? is_apart(place, PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i])) : is_apart(place, args + i, 1)))
            return false;
        for (Py_ssize_t k = 0; list && k < PySequence_Fast_GET_SIZE(args[i]); k++)
            if (PyTuple_Check(PySequence_Fast_GET_ITEM(args[i], k)) || PyList_Check(PySequence_Fast_GET_ITEM(args[i], k)))
                return false;
    }
    return true;
}

/* Whether a result can be copied into `place` as it is. */
static bool is_alike(PyObject *made, PyObject *place) {
    return is_whole(made) && made != place && SLOT(made, NODE) == Py_None && SLOT(made, DTYPE) == SLOT(place, DTYPE) &&
           SLOT(made, DEVICE) == SLOT(place, DEVICE) && PyArray_CheckExact(SLOT(made, NATIVE)) &&
           PyArray_SAMESHAPE((PyArrayObject *)SLOT(made, NATIVE), (PyArrayObject *)SLOT(place, NATIVE));
}

/* Several results in the tensors of `out`, as what the call gives: a tuple, or one of names. */
static PyObject *places_of(PyObject *out, PyObject *made) {
    PyObject *places = PySequence_Tuple(out);
    if (places && !PyTuple_CheckExact(made) && PyTuple_Check(made))
        Py_SETREF(places, PyObject_CallObject((PyObject *)Py_TYPE(made), places));
    return places;
}

/* output.py: free_place(out, inputs), where the answer is yes */
static PyObject *run_free_place(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 2 || kwnames || !(PyTuple_CheckExact(args[1]) || PyList_CheckExact(args[1])))
        return NULL;
    return is_tensor(args[0]) && is_place(args[0]) && all_apart(args[0], args + 1, 1) ? Py_NewRef(Py_True) : NULL;
}

PyObject *placed_call(PyObject *function, PyObject *title, PyObject *store, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *out = args[0];
    const bool several = PyTuple_Check(out) || PyList_Check(out);
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), count = several ? PySequence_Fast_GET_SIZE(out) : 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *place = several ? PySequence_Fast_GET_ITEM(out, i) : out;
        if (!is_tensor(place) || !is_place(place) || !all_apart(place, args + 1, all - 1))
            Py_RETURN_NONE;
        for (Py_ssize_t k = 0; k < i; k++)
            if (!is_aside(place, PySequence_Fast_GET_ITEM(out, k)) || place == PySequence_Fast_GET_ITEM(out, k))
                Py_RETURN_NONE;
    }
    PyObject *made = PyObject_Vectorcall(function, args + 1, (size_t)nargs - 1, kwnames), *answer = NULL;
    if (!made)
        return NULL;
    bool usual = several ? (PyTuple_Check(made) || PyList_Check(made)) && PySequence_Fast_GET_SIZE(made) == count &&
                               PySequence_Fast_GET_SIZE(out) == count
                         : true;
    for (Py_ssize_t i = 0; usual && i < count; i++)
        usual = is_alike(several ? PySequence_Fast_GET_ITEM(made, i) : made, several ? PySequence_Fast_GET_ITEM(out, i) : out);
    if (!usual && !several && is_whole(made) && made != out && SLOT(made, NODE) == Py_None && SLOT(made, DTYPE) == SLOT(out, DTYPE))
        answer = PyObject_CallFunctionObjArgs(store, title, made, out, NULL);
    else if (!usual)
        answer = Py_NewRef(Py_None);
    else if (!several)
        answer = noted(out, copied(out, SLOT(made, NATIVE)), out);
    for (Py_ssize_t i = 0; usual && several && i < count; i++) {
        PyObject *place = PySequence_Fast_GET_ITEM(out, i);
        PyObject *done = noted(place, copied(place, SLOT(PySequence_Fast_GET_ITEM(made, i), NATIVE)), Py_True);
        usual = done != NULL;
        Py_XDECREF(done);
    }
    if (usual && several)
        answer = places_of(out, made);
    Py_DECREF(made);
    return answer;
}

/* signature.py: (out, *what the function is called with): the function's results without `out`, copied there; it knows the function, its
   name, and what stores a result whose shape `out` has to take. None where something is unusual, of results too: the function sees to it
   then, once more. */
static PyObject *run_placed(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { FUNCTION, TITLE, STORE };
    return placed_call(self->known[FUNCTION], self->known[TITLE], self->known[STORE], args, nargs, kwnames);
}

const shortcut_spec place_shortcuts[] = {
    {"into", place_call}, {"apply_into", run_apply_into}, {"store", run_store}, {"placed", run_placed}, {"free_place", run_free_place}, {NULL, NULL},
};
