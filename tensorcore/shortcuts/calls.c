/* Calls of kernels: what goes in and what comes out. */
#include "shortcuts.h"

enum { OPERANDS = 16 };

/* tensor.py: new_tensor(native, dtype, device); in inference mode tensors are marked */
static PyObject *run_new_tensor(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs != 3 || kwnames || counts(INFERENCE) ? NULL : new_tensor(args[0], args[1], args[2]);
}

/* A result, or several, as tensors of one dtype, or each of its own. */
static PyObject *tensors_of(PyObject *native, PyObject *dtype, PyObject *device) {
    if (!PyTuple_CheckExact(native) && !PyList_CheckExact(native))
        return new_tensor(native, dtype, device);
    const bool several = PyTuple_CheckExact(dtype);
    if (several && PyTuple_GET_SIZE(dtype) < PySequence_Fast_GET_SIZE(native))
        return PyErr_Format(PyExc_IndexError, "apply: expected a dtype for each result, got %R", dtype);
    PyObject *made = PyTuple_New(PySequence_Fast_GET_SIZE(native));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(made); i++) {
        PyObject *one = new_tensor(PySequence_Fast_GET_ITEM(native, i), several ? PyTuple_GET_ITEM(dtype, i) : dtype, device);
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* record(op, inputs, options, made); -1 with an exception. */
static int put_on_tape(PyObject *record, PyObject *op, PyObject *inputs, PyObject *options, PyObject *made) {
    PyObject *grads = PyObject_GetAttr(op, shortcut_names[A_GRADS]);
    const int wanted = grads ? PyObject_IsTrue(grads) : -1;
    Py_XDECREF(grads);
    if (wanted <= 0)
        return wanted;
    PyObject *results = PyTuple_CheckExact(made) ? PySequence_List(made) : Py_NewRef(made);
    PyObject *done = results ? PyObject_CallFunctionObjArgs(record, op, inputs, options, results, NULL) : NULL;
    Py_XDECREF(results);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

PyObject *apply_call(PyObject *record, PyObject *again, PyObject *op, PyObject *given, PyObject *options, PyObject *told, PyObject *dtype) {
    PyObject *natives[OPERANDS];
    if (counts(INFERENCE) || !(PyTuple_CheckExact(given) || PyList_CheckExact(given)))
        return NULL;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(given);
    PyObject **inputs = PySequence_Fast_ITEMS(given);
    if (!count || count > OPERANDS || (options != Py_None && !PyDict_CheckExact(options)) ||
        !is_whole(inputs[0]))
        return NULL;
    PyObject *device = SLOT(inputs[0], DEVICE);
    bool recorded = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (inputs[i] != Py_None && (!is_whole(inputs[i]) || SLOT(inputs[i], DEVICE) != device))
            return NULL;
        natives[i] = inputs[i] == Py_None ? Py_None : SLOT(inputs[i], NATIVE);
        recorded |= inputs[i] != Py_None && SLOT(inputs[i], NODE) != Py_None;
    }
    if (recorded && counts(THREADS))
        return NULL;
    dtype = Py_NewRef(dtype == Py_None ? SLOT(inputs[0], DTYPE) : dtype);
    Py_INCREF(device);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_INCREF(natives[i]); /* what finds a kernel, and a kernel, may let other threads run, which may give a tensor another array */
    PyObject *variadic = PyObject_GetAttr(op, shortcut_names[A_VARIADIC]);
    PyObject *name = variadic == Py_False ? PyObject_GetAttr(op, shortcut_names[A_KERNEL]) : NULL;
    PyObject *kernel = name ? kernel_of(device, name) : NULL, *words = options == Py_None ? NULL : options;
    PyObject *native = kernel ? PyObject_VectorcallDict(kernel, natives, (size_t)count, words) : NULL;
    if (kernel && !native && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        if (again)
            native = asked_again(again, device, name, natives, count, words);
        else
            PyErr_Clear(); /* the function makes room, and asks again */
    }
    PyObject *made = native ? tensors_of(native, dtype, device) : NULL;
    Py_XDECREF(variadic);
    Py_XDECREF(name);
    if (made && recorded && put_on_tape(record, op, given, told, made))
        Py_CLEAR(made);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(natives[i]);
    Py_XDECREF(native);
    Py_XDECREF(kernel);
    Py_DECREF(dtype);
    Py_DECREF(device);
    return made;
}

/* calls.py: apply(op, inputs, options=None, *, dtype=None) of tensors of one device, with what records, and what asks a kernel that found
   no memory a second time */
static PyObject *run_apply(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 2 || nargs > 3)
        return NULL;
    PyObject *options = nargs == 3 ? args[2] : Py_None, *dtype = Py_None;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        if (PyTuple_GET_ITEM(kwnames, i) != shortcut_names[A_DTYPE])
            return NULL;
        dtype = args[nargs + i];
    }
    return apply_call(self->known[0], self->known[1], args[0], args[1], options, options, dtype);
}

/* fused.py: what a kernel of one result makes of tensors of one device, none of them recorded, with its name and what asks again
   where there was no memory; None where that is not the call */
static PyObject *run_fused(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 3 || kwnames || counts(INFERENCE) || !PyTuple_CheckExact(args[0]) || !PyDict_CheckExact(args[1]))
        Py_RETURN_NONE;
    PyObject **inputs = PySequence_Fast_ITEMS(args[0]), *natives[OPERANDS];
    const Py_ssize_t count = PyTuple_GET_SIZE(args[0]);
    if (!count || count > OPERANDS || !is_whole(inputs[0]))
        Py_RETURN_NONE;
    PyObject *device = SLOT(inputs[0], DEVICE), *dtype = args[2] == Py_None ? SLOT(inputs[0], DTYPE) : args[2];
    for (Py_ssize_t i = 0; i < count; i++) {
        if (inputs[i] != Py_None &&
            (!is_whole(inputs[i]) || SLOT(inputs[i], DEVICE) != device || SLOT(inputs[i], NODE) != Py_None))
            Py_RETURN_NONE;
        natives[i] = inputs[i] == Py_None ? Py_None : SLOT(inputs[i], NATIVE);
    }
    PyObject *kernel = kernel_of(device, self->known[0]);
    const int there = kernel ? PyObject_IsTrue(kernel) : -1;
    if (there <= 0) {
        Py_XDECREF(kernel);
        return there ? NULL : Py_NewRef(Py_None);
    }
    Py_INCREF(dtype);
    Py_INCREF(device);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_INCREF(natives[i]);
    PyObject *native = PyObject_VectorcallDict(kernel, natives, (size_t)count, args[1]), *made = NULL;
    if (!native && PyErr_ExceptionMatches(PyExc_MemoryError))
        native = asked_again(self->known[1], device, self->known[0], natives, count, args[1]);
    if (native && (!PyTuple_CheckExact(native) || PyTuple_GET_SIZE(native)))
        made = new_tensor(PyTuple_CheckExact(native) ? PyTuple_GET_ITEM(native, 0) : native, dtype, device);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(natives[i]);
    Py_XDECREF(native);
    Py_DECREF(kernel);
    Py_DECREF(dtype);
    Py_DECREF(device);
    return made;
}

/* Whether input, x and y are of one dtype and device and have sizes that fit, x and y of so many dims, and two numbers follow, where
   there are any; `dtypes` are those of which kernels take such numbers. */
static bool fits_product(PyObject *const *tensors, PyObject *dims, PyObject *const *numbers, PyObject *dtypes) {
    PyArrayObject *arrays[3];
    for (int i = 0; i < 3; i++) {
        PyObject *one = tensors[i];
        if (!is_whole(one) || SLOT(one, DTYPE) != SLOT(tensors[0], DTYPE) || SLOT(one, DEVICE) != SLOT(tensors[0], DEVICE) ||
            !PyArray_CheckExact(SLOT(one, NATIVE)))
            return false;
        arrays[i] = (PyArrayObject *)SLOT(one, NATIVE);
    }
    if (!PyTuple_CheckExact(dims) || PyTuple_GET_SIZE(dims) != 2 || PySet_Contains(dtypes, SLOT(tensors[0], DTYPE)) != 1)
        return false;
    for (int i = 0; numbers && i < 2; i++)
        if (!PyLong_CheckExact(numbers[i]) && !PyFloat_CheckExact(numbers[i]))
            return false;
    PyArrayObject *c = arrays[0], *a = arrays[1], *b = arrays[2];
    const int across = PyArray_NDIM(a), down = PyArray_NDIM(b), ndim = across - (down == 1), shift = ndim - PyArray_NDIM(c);
    if (across < 2 || across != PyLong_AsLong(PyTuple_GET_ITEM(dims, 0)) || down != PyLong_AsLong(PyTuple_GET_ITEM(dims, 1)) ||
        PyArray_DIM(a, across - 1) != PyArray_DIM(b, down > 1 ? down - 2 : 0) || shift < 0 ||
        (across > 2 && PyArray_DIM(a, 0) != PyArray_DIM(b, 0)))
        return false;
    for (int i = shift; i < ndim; i++) {
        const npy_intp size = i == across - 1 ? PyArray_DIM(b, down - 1) : PyArray_DIM(a, i), have = PyArray_DIM(c, i - shift);
        if (have != 1 && have != size)
            return false;
    }
    return true;
}

/* A factor beside integers, cut off; NULL where not all of them have it. */
static PyObject *whole_factor(PyObject *number) {
    const double value = PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) : PyLong_CheckExact(number) ? PyLong_AsDouble(number) : -1;
    PyErr_Clear();
    return value >= 0 && value <= INT8_MAX ? PyLong_FromLong((long)value) : NULL;
}

/* affine.py: _add_product(op, input, x, y, dims, beta, alpha, out) of one dtype and device, whose sizes fit, by the kernel of
   that name; with what records, the dtypes, those of integers, and what stores a result of another shape than that of `out` */
static PyObject *run_add_product(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { RECORD, DTYPES, WHOLE, STORE };
    if (nargs != 8 || kwnames)
        return NULL;
    const bool whole = !fits_product(args + 1, args[4], args + 5, self->known[DTYPES]);
    PyObject *beta = whole ? NULL : Py_NewRef(args[5]), *alpha = whole ? NULL : Py_NewRef(args[6]);
    if (whole && (!fits_product(args + 1, args[4], NULL, self->known[WHOLE]) || !(beta = whole_factor(args[5])) ||
                  !(alpha = whole_factor(args[6])))) {
        Py_XDECREF(beta);
        return NULL;
    }
    PyObject *kernel = kernel_of(SLOT(args[1], DEVICE), shortcut_names[A_ADDMM]), *made = NULL;
    PyObject *inputs = kernel && PyObject_IsTrue(kernel) == 1 ? PyTuple_Pack(3, args[1], args[2], args[3]) : NULL;
    PyObject *options = inputs ? PyDict_New() : NULL;
    if (options && !PyDict_SetItem(options, shortcut_names[A_BETA], beta) && !PyDict_SetItem(options, shortcut_names[A_ALPHA], alpha))
        made = args[7] == Py_None ? apply_call(self->known[RECORD], NULL, args[0], inputs, options, options, Py_None)
                                  : apply_into_call(self->known[STORE], args[0], inputs, options, SLOT(args[1], DTYPE), args[7]);
    if (made == Py_None)
        Py_CLEAR(made);
    Py_DECREF(beta);
    Py_DECREF(alpha);
    Py_XDECREF(kernel);
    Py_XDECREF(inputs);
    Py_XDECREF(options);
    return made;
}

/* affine.py: added_over(input, (x, y), beta=1, alpha=1), whether it was done; with the dims of x and y, and the dtypes */
static PyObject *run_added_over(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static PyObject *one, *words;
    if (nargs != 2 || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != 2 || !is_free(args[0]) ||
        (!one && !(one = PyLong_FromLong(1))) ||
        (!words && !(words = PyTuple_Pack(2, shortcut_names[A_BETA], shortcut_names[A_ALPHA]))))
        return NULL;
    PyObject *tensors[] = {args[0], PyTuple_GET_ITEM(args[1], 0), PyTuple_GET_ITEM(args[1], 1)}, *numbers[] = {one, one};
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (name != shortcut_names[A_BETA] && name != shortcut_names[A_ALPHA])
            return NULL;
        numbers[name == shortcut_names[A_ALPHA]] = args[2 + i];
    }
    if (!is_aside(args[0], tensors[1]) || !is_aside(args[0], tensors[2]) || !fits_product(tensors, self->known[0], numbers, self->known[1]))
        return NULL;
    PyObject *given[] = {SLOT(tensors[0], NATIVE), SLOT(tensors[1], NATIVE), SLOT(tensors[2], NATIVE), numbers[0], numbers[1]};
    PyObject *made = run_kernel(SLOT(args[0], DEVICE), shortcut_names[A_ADDMM], given, 3, words), *answer = NULL;
    const bool fits = made && PyArray_CheckExact(made) && PyArray_CheckExact(SLOT(args[0], NATIVE)) &&
                      PyArray_SAMESHAPE((PyArrayObject *)made, (PyArrayObject *)SLOT(args[0], NATIVE));
    if (fits)
        answer = noted(args[0], copied(args[0], made), Py_True);
    else if (!made && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the complete call makes room */
    Py_XDECREF(made);
    return answer;
}

/* Whether tensors are arrays of one dtype and device, none of them recorded, that fit along the dim, or along a new one where they are
   stacked; it is counted from the front then. Their arrays, and the sizes of all of them together, without a new dim. */
static bool fit(PyObject *const *tensors, Py_ssize_t count, bool stacked, long *dim, PyObject *natives, npy_intp *sizes, int *ndim) {
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *one = tensors[k];
        if (!is_whole(one) || SLOT(one, NODE) != Py_None || SLOT(one, DTYPE) != SLOT(tensors[0], DTYPE) ||
            SLOT(one, DEVICE) != SLOT(tensors[0], DEVICE) || !PyArray_CheckExact(SLOT(one, NATIVE)))
            return false;
        PyArrayObject *array = (PyArrayObject *)SLOT(one, NATIVE);
        if (!k) {
            *ndim = PyArray_NDIM(array);
            *dim += *dim < 0 ? *ndim + stacked : 0;
            if (*dim < 0 || *dim >= *ndim + stacked)
                return false;
            for (int i = 0; i < *ndim; i++) /* a 0-d array has no sizes to copy */
                sizes[i] = stacked || i != *dim ? PyArray_DIM(array, i) : 0;
        }
        if (PyArray_NDIM(array) != *ndim || (!stacked && __builtin_add_overflow(sizes[*dim], PyArray_DIM(array, (int)*dim), sizes + *dim)))
            return false;
        for (int i = 0; i < *ndim; i++)
            if ((stacked || i != *dim) && PyArray_DIM(array, i) != sizes[i])
                return false;
        PyList_SET_ITEM(natives, k, Py_NewRef(array));
    }
    return count > 0;
}

/* The arrays of a list of such tensors; NULL for others, and with an exception. The list is new before anything is looked at: it may
   collect garbage, whose finalizers may write to what is joined. */
static PyObject *fitting(PyObject *tensors, PyObject *given_dim, bool stacked, long *dim, npy_intp *sizes, int *ndim) {
    int overflow = 0;
    if (!(PyTuple_CheckExact(tensors) || PyList_CheckExact(tensors)) || (given_dim && !PyLong_CheckExact(given_dim)))
        return NULL;
    *dim = given_dim ? PyLong_AsLongAndOverflow(given_dim, &overflow) : 0;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(tensors);
    PyObject *natives = PyList_New(count);
    if (natives && (overflow || PySequence_Fast_GET_SIZE(tensors) != count ||
                    !fit(PySequence_Fast_ITEMS(tensors), count, stacked, dim, natives, sizes, ndim)))
        Py_CLEAR(natives);
    return natives;
}

/* join.py: _fitting(tensors, dim) */
static PyObject *run_fitting(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    int ndim = 0;
    long dim;
    npy_intp sizes[NPY_MAXDIMS];
    PyObject *natives = nargs == 2 && !kwnames ? fitting(args[0], args[1], false, &dim, sizes, &ndim) : NULL;
    PyObject *shape = natives ? tuple_of(sizes, ndim) : NULL;
    if (!shape) {
        Py_XDECREF(natives);
        return NULL;
    }
    return Py_BuildValue("(NlN)", natives, dim, shape);
}

/* A kernel's result in at least so many dims: others of size 1 stand in front. Takes the reference. */
static PyObject *in_dims(PyObject *device, PyObject *native, long least) {
    static PyObject *view, *words;
    npy_intp sizes[NPY_MAXDIMS];
    if (!native || !PyArray_CheckExact(native) || PyArray_NDIM((PyArrayObject *)native) >= least)
        return native;
    if ((!view && !(view = PyUnicode_InternFromString("view"))) || (!words && !(words = PyTuple_Pack(1, shortcut_names[A_SHAPE]))))
        return NULL;
    const int ndim = PyArray_NDIM((PyArrayObject *)native);
    for (int i = 0; i < least; i++)
        sizes[i] = i < least - ndim ? 1 : PyArray_DIM((PyArrayObject *)native, i - (int)(least - ndim));
    PyObject *given[] = {native, tuple_of(sizes, (int)least)};
    Py_SETREF(native, given[1] ? run_kernel(device, view, given, 1, words) : NULL);
    Py_XDECREF(given[1]);
    return native;
}

/* Tensors joined by the kernel "cat" or "stack", in `out` unless that is None; of new ones the result has at least so many dims. */
static PyObject *joined(PyObject *tensors, PyObject *given_dim, bool stacked, PyObject *out, long least) {
    static PyObject *names[2], *words[2];
    if (!words[1] && (!(names[0] = PyUnicode_InternFromString("cat")) || !(names[1] = PyUnicode_InternFromString("stack")) ||
                      !(words[0] = PyTuple_Pack(2, shortcut_names[A_DIM], shortcut_names[A_SHAPE])) ||
                      !(words[1] = PyTuple_Pack(1, shortcut_names[A_DIM]))))
        return NULL;
    int ndim = 0;
    long dim;
    npy_intp sizes[NPY_MAXDIMS + 1];
    PyObject *natives = fitting(tensors, given_dim, stacked, &dim, sizes, &ndim), *made = NULL, *native = NULL;
    if (!natives)
        return NULL;
    if (stacked) {
        memmove(sizes + dim + 1, sizes + dim, (size_t)(ndim++ - dim) * sizeof *sizes);
        sizes[dim] = PyList_GET_SIZE(natives);
    }
    PyObject *first = PySequence_Fast_GET_ITEM(tensors, 0), *dtype = Py_NewRef(SLOT(first, DTYPE)), *device = Py_NewRef(SLOT(first, DEVICE));
    PyObject *given[3] = {natives, PyLong_FromLong(dim), stacked ? NULL : tuple_of(sizes, ndim)};
    const bool ready = given[1] && (stacked || given[2]);
    if (ready && out != Py_None)
        made = kernel_into(out, tensors, names[stacked], given, words[stacked], ndim, sizes);
    else if (ready && (native = in_dims(device, run_kernel(device, names[stacked], given, 1, words[stacked]), least)))
        made = new_tensor(native, dtype, device);
    if (!native && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* the function makes room, and asks again */
    Py_XDECREF(native);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(given[i]);
    Py_DECREF(dtype);
    Py_DECREF(device);
    return made;
}

/* join.py: cat(tensors, dim=0, out=None) and stack of them; it knows whether it is that */
static PyObject *run_joined(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dim = nargs > 1 ? args[1] : NULL, *out = Py_None;
    if (nargs < 1 || nargs > 2 || counts(INFERENCE))
        return NULL;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        if (PyTuple_GET_ITEM(kwnames, i) == shortcut_names[A_OUT])
            out = args[nargs + i];
        else if (PyTuple_GET_ITEM(kwnames, i) == shortcut_names[A_DIM] && nargs < 2)
            dim = args[nargs + i];
        else
            return NULL;
    }
    return joined(args[0], dim, self->known[0] == Py_True, out, 0);
}

/* join.py: hstack(tensors, out=None) and others like it; it knows the dim and the fewest dims of a result, of hstack the most that they
   are, for it joins vectors end to end. Alike tensors that lack the last of those dims, or the first ones too, are stacked. */
static PyObject *run_beside(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t more = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (nargs != 1 || more > 1 || (more && PyTuple_GET_ITEM(kwnames, 0) != shortcut_names[A_OUT]) || counts(INFERENCE) ||
        !(PyTuple_CheckExact(args[0]) || PyList_CheckExact(args[0])) || !PySequence_Fast_GET_SIZE(args[0]))
        return NULL;
    PyObject *first = PySequence_Fast_GET_ITEM(args[0], 0), *out = more ? args[1] : Py_None;
    if (!is_whole(first) || !PyArray_CheckExact(SLOT(first, NATIVE)))
        return NULL;
    const int ndim = PyArray_NDIM((PyArrayObject *)SLOT(first, NATIVE));
    long dim = PyLong_AsLong(self->known[0]), least = PyLong_AsLong(self->known[1]);
    if (self->known[2] == Py_True && ndim < least) {
        least = ndim;
        dim = ndim - 1;
    }
    const long lacks = ndim < least ? least - ndim : 0;
    if (dim < 0 || lacks >= least || (lacks > 1 && out != Py_None))
        return NULL;
    PyObject *at = PyLong_FromLong(lacks ? dim - lacks + 1 : dim);
    PyObject *made = at ? joined(args[0], at, lacks > 0, out, least) : NULL;
    Py_XDECREF(at);
    return made;
}

/* split.py: _keys(dim, cuts) */
static PyObject *run_keys(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static PyObject *all, *one;
    const bool cuts = nargs == 2 && PyList_CheckExact(args[1]) && PyList_GET_SIZE(args[1]) > 0;
    if (nargs != 2 || kwnames || !PyLong_CheckExact(args[0]) || !(cuts || PyLong_CheckExact(args[1])))
        return NULL;
    if ((!all && !(all = PySlice_New(NULL, NULL, NULL))) || (!one && !(one = PyLong_FromLong(1))))
        return NULL;
    const Py_ssize_t dim = PyLong_AsSsize_t(args[0]), count = cuts ? PyList_GET_SIZE(args[1]) - 1 : PyLong_AsSsize_t(args[1]);
    PyObject *made = dim >= 0 && dim < NPY_MAXDIMS && count >= 0 ? PyList_New(count) : NULL;
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *options = PyDict_New(), *key = options ? PyTuple_New(dim + 1) : NULL, *part = NULL;
        if (key && cuts) {
            PyObject *start = PyList_GET_ITEM(args[1], i), *stop = PyList_GET_ITEM(args[1], i + 1);
            const int back = PyObject_RichCompareBool(stop, start, Py_LT);
            part = back < 0 ? NULL : PySlice_New(start, back ? start : stop, one);
        } else if (key) {
            part = PyLong_FromSsize_t(i);
        }
        for (Py_ssize_t k = 0; key && k < dim; k++)
            PyTuple_SET_ITEM(key, k, Py_NewRef(all));
        if (key)
            PyTuple_SET_ITEM(key, dim, part); /* NULL too */
        if (!part || PyDict_SetItem(options, shortcut_names[A_KEY], key)) {
            Py_XDECREF(options);
            Py_CLEAR(made);
        } else {
            PyList_SET_ITEM(made, i, options);
        }
        Py_XDECREF(key);
    }
    return made;
}

const shortcut_spec call_shortcuts[] = {
    {"new_tensor", run_new_tensor}, {"apply", run_apply}, {"add_product", run_add_product}, {"added_over", run_added_over}, {"fused", run_fused},
    {"fitting", run_fitting}, {"joined", run_joined}, {"beside", run_beside}, {"keys", run_keys}, {NULL, NULL},
};
