/* Calls that write over their first tensor. */
#include "shortcuts.h"

/* What the short way of an elementwise op has to know besides, see usual_write: FIRST is where the first number may stand; of one operand the dtypes
   whose elements it leaves as they are stand in the place of the op. */
enum { FIRST, OPERANDS = 6, FACTORS, WRITTEN_OP = 9, UNCHANGED = WRITTEN_OP };

bool fits(PyObject *one, PyObject *other) {
    PyArrayObject *x = (PyArrayObject *)one, *y = (PyArrayObject *)other;
    const int more = PyArray_NDIM(x) - PyArray_NDIM(y);
    for (int i = 0; i < PyArray_NDIM(y); i++)
        if (more < 0 || (PyArray_DIM(y, i) != 1 && PyArray_DIM(y, i) != PyArray_DIM(x, more + i)))
            return false;
    return more >= 0;
}

/* Whether a tensor stands beside `input` in a call that writes there, and has neither a history nor its memory. */
static bool stands_beside(PyObject *input, PyObject *other) {
    PyObject *version = SLOT(input, VERSION);
    return is_tensor(other) && is_whole(other) && SLOT(other, DEVICE) == SLOT(input, DEVICE) && PyArray_CheckExact(SLOT(other, NATIVE)) &&
           fits(SLOT(input, NATIVE), SLOT(other, NATIVE)) &&
           (version == Py_None || SLOT(other, VERSION) != version || other == input) &&
           (SLOT(other, NODE) == Py_None || taping_of_thread() == NOT_RECORDING);
}

/* What such a tensor holds that need not be converted; borrowed, NULL for all others. */
static PyObject *beside(PyObject *input, PyObject *other) {
    return stands_beside(input, other) && SLOT(other, DTYPE) == SLOT(input, DTYPE) ? SLOT(other, NATIVE) : NULL;
}

PyObject *run_kernel(PyObject *device, PyObject *name, PyObject **given, Py_ssize_t count, PyObject *keywords) {
    const Py_ssize_t all = count + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    for (Py_ssize_t i = 0; i < all; i++) /* a kernel may let other threads run, which may give a tensor another array */
        Py_INCREF(given[i]);
    Py_INCREF(device);
    PyObject *kernel = kernel_of(device, name), *made = NULL;
    if (kernel && PyObject_IsTrue(kernel) == 1)
        made = PyObject_Vectorcall(kernel, given, (size_t)count, keywords);
    for (Py_ssize_t i = 0; i < all; i++)
        Py_DECREF(given[i]);
    Py_DECREF(device);
    Py_XDECREF(kernel);
    return made;
}

PyObject *noted(PyObject *input, PyObject *done, PyObject *answer) {
    if (!done)
        return NULL;
    Py_DECREF(done);
    if (note_write(input))
        return Py_NewRef(answer);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_SystemError, "overwrite: expected a tensor whose version counts writes, got another");
    return NULL;
}

PyObject *copied(PyObject *input, PyObject *made) {
    static PyObject *copy;
    PyObject *given[] = {SLOT(input, NATIVE), made};
    return copy || (copy = PyUnicode_InternFromString("copy")) ? run_kernel(SLOT(input, DEVICE), copy, given, 2, NULL) : NULL;
}

PyObject *writing_keywords(PyObject *factor) {
    static PyObject *out, *alone, *last;
    if ((!out && !(out = PyUnicode_InternFromString("out"))) || (!alone && !(alone = PyTuple_Pack(1, out))))
        return NULL;
    if (factor && (!last || PyTuple_GET_ITEM(last, 1) != factor))
        Py_XSETREF(last, PyTuple_Pack(2, out, factor));
    return Py_XNewRef(factor ? last : alone);
}

/* compare_over(given[0], given[1], by=the op's name) on the device of `input`; of one operand whether it is 0. NULL without an exception
   where the device lacks that kernel. */
static PyObject *compared(const shortcut *self, PyObject *input, PyObject **given, Py_ssize_t count) {
    static PyObject *over, *by, *equal, *zero;
    if (!over && (!(over = PyUnicode_InternFromString("compare_over")) || !(equal = PyUnicode_InternFromString("eq")) ||
                  !(zero = PyLong_FromLong(0)) || !(by = Py_BuildValue("(N)", PyUnicode_InternFromString("by")))))
        return NULL;
    PyObject *operands[] = {given[0], count > 1 ? given[1] : zero, count > 1 ? self->known[OP_NAME] : equal};
    return run_kernel(SLOT(input, DEVICE), over, operands, 2, by);
}

/* inplace.py: overwritten(input, others, a factor by its name) */
static PyObject *run_overwritten(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { MOST = 3 };
    PyObject *given[MOST + 2], *done, *factor = kwnames && PyTuple_GET_SIZE(kwnames) == 1 ? PyTuple_GET_ITEM(kwnames, 0) : NULL;
    const Py_ssize_t count = nargs == 2 && PyTuple_CheckExact(args[1]) ? 1 + PyTuple_GET_SIZE(args[1]) : MOST + 1;
    if (count > MOST || count != PyLong_AsSsize_t(self->known[OPERANDS]) || !is_free(args[0]))
        return NULL;
    if (count == 1 && !kwnames && PySet_Contains(self->known[UNCHANGED], SLOT(args[0], DTYPE)) == 1)
        return noted(args[0], Py_NewRef(Py_None), Py_True);
    if (!(self->known[OP_ACCEPTS] == Py_None || PySet_Contains(self->known[OP_ACCEPTS], SLOT(args[0], DTYPE)) == 1))
        return NULL;
    if (kwnames && (!factor || self->known[OP_RESULT] != Py_None || PySet_Contains(self->known[FACTORS], factor) != 1 ||
                    !(PyFloat_CheckExact(args[2]) || PyLong_CheckExact(args[2]))))
        return NULL;
    PyObject *input = args[0], *device = SLOT(input, DEVICE), *result = self->known[OP_RESULT], *converted = NULL;
    const bool same = result == Py_None || result == SLOT(input, DTYPE);
    given[0] = given[count] = SLOT(input, NATIVE);
    given[count + 1] = factor ? args[2] : NULL;
    for (Py_ssize_t i = 1; i < count; i++) {
        PyObject *other = PyTuple_GET_ITEM(args[1], i - 1);
        given[i] = i >= PyLong_AsSsize_t(self->known[FIRST]) && plain_number(self, other, input) ? other : beside(input, other);
        if (!given[i] && same && count == 2 && !kwnames && stands_beside(input, other))
            given[i] = converted = known_operand(self->known[WRITTEN_OP], input, other);
        if (!given[i])
            return NULL;
    }
    if (same) {
        PyObject *keywords = writing_keywords(factor);
        done = keywords ? run_kernel(device, self->known[OP_NAME], given, count, keywords) : NULL;
        Py_XDECREF(keywords);
    } else if (!(done = compared(self, input, given, count)) && !PyErr_Occurred()) {
        PyObject *made = run_kernel(device, self->known[OP_NAME], given, count, NULL);
        done = made ? copied(input, made) : NULL;
        Py_XDECREF(made);
    }
    Py_XDECREF(converted);
    return noted(input, done, Py_True);
}

/* inplace.py: overwrite(name, input, result), where neither has a history and both have one dtype, device and shape */
static PyObject *run_overwrite(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 3 || kwnames || !is_free(args[1]) || SLOT(args[1], TRAIL) != Py_None)
        return NULL;
    PyObject *made = beside(args[1], args[2]);
    if (!made || SLOT(args[2], NODE) != Py_None || !fits(made, SLOT(args[1], NATIVE)))
        return NULL;
    return noted(args[1], copied(args[1], made), args[1]);
}

bool is_aside(PyObject *input, PyObject *one) {
    if (!PyObject_TypeCheck(one, tensor_type))
        return true;
    return is_whole(one) && SLOT(one, NODE) == Py_None &&
           (one == input || SLOT(one, VERSION) == Py_None || SLOT(one, VERSION) != SLOT(input, VERSION));
}

/* The number of all arguments of a call that writes to its first one and changes nothing else; 0 for other calls. */
static Py_ssize_t is_usual(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (nargs < 1 || all > MOST_ARGUMENTS || !tensor_type || !is_free(args[0]))
        return 0;
    for (Py_ssize_t i = 1; i < all; i++)
        if (!is_aside(args[0], args[i]))
            return 0;
    return all;
}

/* inplace.py: the form with an underscore of an op; it knows the op's function, its own name, what makes calls directly, or None, and
   overwrite. */
static PyObject *run_inplace(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { FUNCTION, TITLE, DIRECTLY, OVERWRITE };
    PyObject *given[MOST_ARGUMENTS + 1], *input = args[0], *answer = NULL;
    const Py_ssize_t all = counts(INFERENCE) ? 0 : is_usual(args, nargs, kwnames);
    if (!all)
        return NULL;
    if (self->known[DIRECTLY] != Py_None) {
        PyObject *others = PyTuple_New(nargs - 1), *done = NULL;
        for (Py_ssize_t i = 1; others && i < nargs; i++)
            PyTuple_SET_ITEM(others, i - 1, Py_NewRef(args[i]));
        given[0] = input;
        given[1] = others;
        memcpy(given + 2, args + nargs, (size_t)(all - nargs) * sizeof *given);
        if (others)
            done = PyObject_Vectorcall(self->known[DIRECTLY], given, 2, kwnames);
        Py_XDECREF(others);
        Py_XDECREF(done); /* a bool */
        if (!done || done == Py_True)
            return done ? Py_NewRef(input) : NULL;
    }
    memcpy(given, args, (size_t)all * sizeof *given);
    PyObject *before = given[0] = new_tensor(SLOT(input, NATIVE), SLOT(input, DTYPE), SLOT(input, DEVICE)), *native;
    PyObject *made = before ? PyObject_Vectorcall(self->known[FUNCTION], given, (size_t)nargs, kwnames) : NULL;
    if (made && is_whole(made) && SLOT(made, NODE) == Py_None && SLOT(input, TRAIL) == Py_None && (native = beside(input, made)) &&
        fits(native, SLOT(input, NATIVE)))
        answer = noted(input, native == SLOT(input, NATIVE) ? Py_NewRef(native) : copied(input, native), input);
    else if (made)
        answer = PyObject_CallFunctionObjArgs(self->known[OVERWRITE], self->known[TITLE], input, made, NULL);
    Py_XDECREF(made);
    Py_XDECREF(before);
    return answer;
}

/* writing.py: the method with an underscore; it knows the function, the method's name, and whether elements are read after others were
   written. */
static PyObject *run_written_form(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { FUNCTION, TITLE, COMPARES };
    PyObject *given[MOST_ARGUMENTS + 2] = {self->known[TITLE], Py_True};
    const Py_ssize_t all = is_usual(args, nargs, kwnames);
    for (Py_ssize_t i = 1; i < nargs; i++)
        if (args[i] == args[0] && self->known[COMPARES] == Py_True)
            return NULL;
    memcpy(given + 2, args, (size_t)all * sizeof *given);
    return all ? PyObject_Vectorcall(self->known[FUNCTION], given, (size_t)nargs + 2, kwnames) : NULL;
}

/* writing.py: the same op without an underscore, whose result is new, or copied to `out`, the last word; it knows the function, the op's
   name, and what stores a result of another shape than that of `out`. */
static PyObject *run_copied_form(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { FUNCTION, TITLE, STORE };
    PyObject *given[MOST_ARGUMENTS + 3] = {NULL, self->known[TITLE], Py_False}, *made;
    const Py_ssize_t words = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (nargs < 1 || nargs + words > MOST_ARGUMENTS || !is_tensor(args[0]))
        return NULL;
    memcpy(given + 3, args, (size_t)(nargs + words) * sizeof *given);
    for (Py_ssize_t i = 0; i < words; i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, i), shortcut_names[A_OUT]) == 0)
            given[0] = i == words - 1 && args[nargs + i] != Py_None ? args[nargs + i] : Py_None;
    if (!given[0])
        return PyObject_Vectorcall(self->known[FUNCTION], given + 1, (size_t)nargs + 2, kwnames);
    PyObject *others = given[0] != Py_None ? PyTuple_GetSlice(kwnames, 0, words - 1) : NULL;
    if (!others)
        return NULL;
    made = placed_call(self->known[FUNCTION], self->known[TITLE], self->known[STORE], given, nargs + 3, words > 1 ? others : NULL);
    Py_DECREF(others);
    if (made == Py_None)
        Py_CLEAR(made);
    return made;
}

/* kernel(*natives, **options, out=the first) */
static PyObject *placed(PyObject *op, PyObject *inputs, PyObject *options, PyObject *more) {
    static PyObject *out;
    PyObject *natives[MOST_ARGUMENTS], *input = PyTuple_GET_ITEM(inputs, 0), *device = Py_NewRef(SLOT(input, DEVICE)), *done = NULL;
    const Py_ssize_t count = PyTuple_GET_SIZE(inputs);
    for (Py_ssize_t i = 0; i < count; i++)
        natives[i] = Py_NewRef(SLOT(PyTuple_GET_ITEM(inputs, i), NATIVE));
    PyObject *name = PyObject_GetAttr(op, shortcut_names[A_KERNEL]), *kernel = name ? kernel_of(device, name) : NULL;
    PyObject *all = kernel ? PyDict_Copy(options) : NULL;
    if (all && (out || (out = PyUnicode_InternFromString("out"))) && !PyDict_SetItem(all, out, natives[0]) &&
        (!more || !PyDict_Update(all, more)))
        done = PyObject_VectorcallDict(kernel, natives, (size_t)count, all);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(natives[i]);
    Py_DECREF(device);
    Py_XDECREF(name);
    Py_XDECREF(kernel);
    Py_XDECREF(all);
    return done;
}

/* kernel(*natives, **options) into a new tensor, recorded; of those with a history, complex numbers are looked at closer. */
static PyObject *apart(PyObject *record, PyObject *op, PyObject *inputs, PyObject *options, PyObject *more) {
    PyObject *const *given = PySequence_Fast_ITEMS(inputs);
    bool tied = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++)
        tied |= SLOT(given[i], NODE) != Py_None;
    PyObject *wide = tied ? PyObject_GetAttr(SLOT(given[0], DTYPE), shortcut_names[A_COMPLEX]) : Py_NewRef(Py_False);
    PyObject *all = wide != Py_False ? NULL : more ? PyDict_Copy(options) : Py_NewRef(options);
    PyObject *made = all && (!more || !PyDict_Update(all, more)) ? apply_call(record, NULL, op, inputs, all, options, Py_None) : NULL;
    Py_XDECREF(wide);
    Py_XDECREF(all);
    return made;
}

/* writing.py: call(op, inputs, options, error, write); it knows what kernels get besides, by the op's name, what says of an IndexError
   what is wrong, and what records. */
static PyObject *run_place(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { MORE, OUTSIDE, RECORD };
    if (nargs != 5 || kwnames || !PyBool_Check(args[4]) || !PyTuple_CheckExact(args[1]) || !PyTuple_GET_SIZE(args[1]) ||
        !PyDict_CheckExact(args[2]))
        return NULL;
    const bool writes = args[4] == Py_True;
    PyObject *const *inputs = PySequence_Fast_ITEMS(args[1]);
    const Py_ssize_t count = PyTuple_GET_SIZE(args[1]);
    if (writes && !is_usual(inputs, count, NULL))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_whole(inputs[i]) || SLOT(inputs[i], DEVICE) != SLOT(inputs[0], DEVICE))
            return NULL;
    PyObject *name = PyObject_GetAttrString(args[0], "name"), *done = NULL;
    PyObject *more = name ? PyDict_GetItemWithError(self->known[MORE], name) : NULL;
    if (name && !PyErr_Occurred())
        done = writes ? placed(args[0], args[1], args[2], more) : apart(self->known[RECORD], args[0], args[1], args[2], more);
    Py_XDECREF(name);
    if (!done && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_IndexError)) {
        PyObject *type, *wrong, *trace;
        PyErr_Fetch(&type, &wrong, &trace);
        PyErr_NormalizeException(&type, &wrong, &trace);
        done = PyObject_CallFunctionObjArgs(self->known[OUTSIDE], args[0], args[3], wrong, NULL);
        Py_CLEAR(done); /* it raises */
        Py_XDECREF(type);
        Py_XDECREF(wrong);
        Py_XDECREF(trace);
    }
    return writes ? noted(inputs[0], done, inputs[0]) : done;
}

/* The dims in their order but for two, which are swapped. */
static PyObject *swapped(Py_ssize_t ndim, Py_ssize_t one, Py_ssize_t other) {
    PyObject *made = PyTuple_New(ndim);
    for (Py_ssize_t i = 0; made && i < ndim; i++) {
        PyObject *dim = PyLong_FromSsize_t(i == one ? other : i == other ? one : i);
        if (dim)
            PyTuple_SET_ITEM(made, i, dim);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* The key of all elements without dims of size 1: that of the number `dim`, or of all where it is NO_DIM. */
static PyObject *solid(PyArrayObject *array, Py_ssize_t dim) {
    static PyObject *all, *first;
    if ((!all && !(all = PySlice_New(NULL, NULL, NULL))) || (!first && !(first = PyLong_FromLong(0))))
        return NULL;
    PyObject *made = PyTuple_New(PyArray_NDIM(array));
    for (int i = 0; made && i < PyArray_NDIM(array); i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(PyArray_DIM(array, i) == 1 && (dim == NO_DIM || dim == i) ? first : all));
    return made;
}

/* shape.py: a method that shows a tensor anew, of one that is no view and has no history; with the kernel's name and its option, and
   what the option is made of. */
static PyObject *run_reshaped(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { KERNEL, WORDS, WAY };
    if (nargs < 1 || kwnames || !is_whole(args[0]) || SLOT(args[0], NODE) != Py_None || SLOT(args[0], TRAIL) != Py_None ||
        !PyArray_CheckExact(SLOT(args[0], NATIVE)) || !is_counted(args[0]))
        return NULL;
    PyObject *input = args[0], *option = NULL;
    PyArrayObject *array = (PyArrayObject *)SLOT(input, NATIVE);
    const char way = *PyUnicode_AsUTF8(self->known[WAY]);
    const Py_ssize_t ndim = PyArray_NDIM(array), dim = nargs > 1 ? wrapped(args[1], ndim + (way == 'u')) : NO_DIM;
    const Py_ssize_t other = nargs > 2 ? wrapped(args[2], ndim) : NO_DIM;
    if (way == 't' && nargs == 1 && ndim == 2)
        option = swapped(2, 0, 1);
    else if (way == 'd' && nargs == 3 && ndim && dim != NO_DIM && other != NO_DIM)
        option = swapped(ndim, dim, other);
    else if (way == 's' && (nargs == 1 || (nargs == 2 && ndim && dim != NO_DIM)))
        option = solid(array, dim);
    else if (way == 'u' && nargs == 2 && dim != NO_DIM)
        option = PyLong_FromSsize_t(dim);
    if (!option)
        return NULL;
    PyObject *given[] = {(PyObject *)array, option};
    PyObject *made = run_kernel(SLOT(input, DEVICE), self->known[KERNEL], given, 1, self->known[WORDS]);
    Py_DECREF(option);
    if (made && !note_write(input))
        Py_CLEAR(made);
    if (!made)
        return NULL;
    Py_SETREF(SLOT(input, NATIVE), made);
    return Py_NewRef(input);
}

/* older.py: a call with its numbers by keyword; it knows the function. */
static PyObject *run_newer(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs > 3 ? NULL : PyObject_Vectorcall(self->known[0], args, (size_t)nargs, kwnames);
}

const shortcut_spec write_shortcuts[] = {
    {"overwritten", run_overwritten}, {"overwrite", run_overwrite}, {"inplace", run_inplace}, {"written_form", run_written_form},
    {"copied_form", run_copied_form},
    {"place", run_place}, {"reshaped", run_reshaped}, {"newer", run_newer}, {NULL, NULL},
};
