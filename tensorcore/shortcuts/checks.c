/* Looks at arguments that find nothing wrong; what may be wrong, the function in Python says. */
#include "shortcuts.h"

static bool any_tensor(PyObject *one) { return tensor_type && PyObject_TypeCheck(one, tensor_type); }

/* operands.py: check_tensors(op, **given), and check_optional, which has something to know */
static PyObject *run_check_tensors(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 1 || !kwnames)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++)
        if (!any_tensor(args[1 + i]) && !(self->known[0] && args[1 + i] == Py_None))
            return NULL;
    Py_RETURN_NONE;
}

/* operands.py: lifted(op, *inputs), where all tensors are on the device of the first */
static PyObject *run_lifted(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 2 || kwnames || !is_tensor(args[1]))
        return NULL;
    for (Py_ssize_t i = 1; i < nargs; i++)
        if (is_tensor(args[i]) ? SLOT(args[i], DEVICE) != SLOT(args[1], DEVICE) : any_tensor(args[i]))
            return NULL;
    PyObject *made = PyTuple_New(nargs - 1);
    for (Py_ssize_t i = 1; made && i < nargs; i++)
        PyTuple_SET_ITEM(made, i - 1, Py_NewRef(args[i]));
    return made;
}

/* operands.py: plain(value), of Python's own ints and floats, and of tensors with dims */
static PyObject *run_plain(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 1 || kwnames)
        return NULL;
    PyObject *native = is_tensor(args[0]) ? SLOT(args[0], NATIVE) : NULL;
    const bool same = PyLong_CheckExact(args[0]) || PyFloat_CheckExact(args[0]) || PyTuple_CheckExact(args[0]) ||
                      (native && PyArray_CheckExact(native) && PyArray_NDIM((PyArrayObject *)native));
    return same ? Py_NewRef(args[0]) : NULL;
}

/* reduce.py: stored(op, made, out, *inputs) without `out` */
static PyObject *run_stored(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs < 3 || kwnames || args[2] != Py_None ? NULL : Py_NewRef(args[1]);
}

/* An int of Python's own that is small enough, as most are; else `missing`. */
static Py_ssize_t number(PyObject *one, Py_ssize_t missing) {
    int overflow;
    if (!PyLong_CheckExact(one))
        return missing;
    const long value = PyLong_AsLongAndOverflow(one, &overflow);
    return overflow ? missing : (Py_ssize_t)value;
}

Py_ssize_t wrapped(PyObject *dim, Py_ssize_t ndim) {
    const Py_ssize_t span = ndim > 1 ? ndim : 1, at = number(dim, NO_DIM);
    return at < -span || at >= span ? NO_DIM : at + (at < 0 ? span : 0);
}

/* rules.py: wrap_dim(op, dim, ndim) */
static PyObject *run_wrap_dim(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t ndim = nargs == 3 && !kwnames ? number(args[2], -1) : -1, at = ndim < 0 ? NO_DIM : wrapped(args[1], ndim);
    return at == NO_DIM ? NULL : PyLong_FromSsize_t(at);
}

/* rules.py: wrap_dims(op, dim, ndim) of an int, or a tuple or list of them */
static PyObject *run_wrap_dims(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t ndim = nargs == 3 && !kwnames ? number(args[2], -1) : -1;
    if (ndim < 0 || ndim > 63)
        return NULL;
    const bool one = PyLong_CheckExact(args[1]);
    if (!one && !PyTuple_CheckExact(args[1]) && !PyList_CheckExact(args[1]))
        return NULL;
    const Py_ssize_t count = one ? 1 : PySequence_Fast_GET_SIZE(args[1]);
    PyObject *made = PyTuple_New(count);
    uint64_t seen = 0;
    for (Py_ssize_t i = 0; made && i < count; i++) {
        const Py_ssize_t at = wrapped(one ? args[1] : PySequence_Fast_GET_ITEM(args[1], i), ndim);
        PyObject *dim = at == NO_DIM || seen >> at & 1 ? NULL : PyLong_FromSsize_t(at);
        if (!dim) {
            Py_CLEAR(made);
            break;
        }
        seen |= UINT64_C(1) << at;
        PyTuple_SET_ITEM(made, i, dim);
    }
    return made;
}

/* views_part.py: diagonal_options(op, shape, offset, dim1, dim2) */
static PyObject *run_diagonal(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 5 || kwnames || !PyTuple_Check(args[1]) || !PyLong_CheckExact(args[2]))
        return NULL;
    const Py_ssize_t ndim = PyTuple_GET_SIZE(args[1]), first = wrapped(args[3], ndim), second = wrapped(args[4], ndim);
    if (first == NO_DIM || second == NO_DIM || first == second)
        return NULL;
    PyObject *made = PyDict_New(), *one = PyLong_FromSsize_t(first), *other = PyLong_FromSsize_t(second);
    if (!made || !one || !other || PyDict_SetItem(made, shortcut_names[A_OFFSET], args[2]) ||
        PyDict_SetItem(made, shortcut_names[A_DIM1], one) || PyDict_SetItem(made, shortcut_names[A_DIM2], other))
        Py_CLEAR(made);
    Py_XDECREF(one);
    Py_XDECREF(other);
    return made;
}

/* scatter.py: _usual(input, dim, index, src), where the call is usual; with the dtype of indices */
static PyObject *run_usual_places(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 4 || kwnames || !is_whole(args[0]) || !is_whole(args[2]) || !is_whole(args[3]) ||
        SLOT(args[2], DTYPE) != self->known[0] || SLOT(args[3], DTYPE) != SLOT(args[0], DTYPE) ||
        SLOT(args[3], DEVICE) != SLOT(args[0], DEVICE) || SLOT(args[2], DEVICE) != SLOT(args[0], DEVICE) ||
        !PyArray_CheckExact(SLOT(args[0], NATIVE)) || !PyArray_CheckExact(SLOT(args[2], NATIVE)) ||
        !PyArray_CheckExact(SLOT(args[3], NATIVE)))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE), *index = (PyArrayObject *)SLOT(args[2], NATIVE);
    PyArrayObject *source = (PyArrayObject *)SLOT(args[3], NATIVE);
    const int ndim = PyArray_NDIM(x);
    const Py_ssize_t at = ndim ? wrapped(args[1], ndim) : NO_DIM;
    if (at == NO_DIM || PyArray_NDIM(index) != ndim || PyArray_NDIM(source) != ndim)
        return NULL;
    for (int i = 0; i < ndim; i++) {
        const npy_intp size = PyArray_DIM(index, i);
        if (!size || (i != at && size > PyArray_DIM(x, i)) || (source != x && size > PyArray_DIM(source, i)))
            return NULL;
    }
    return PyLong_FromSsize_t(at);
}

bool is_whole_slice(PyObject *one) {
    const PySliceObject *slice = (const PySliceObject *)one;
    return PySlice_Check(one) && slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

PyObject *new_dim_of(PyObject *key, Py_ssize_t ndim) {
    if (!PyTuple_CheckExact(key))
        return key == Py_None ? PyLong_FromLong(0) : Py_NewRef(Py_None);
    const Py_ssize_t count = PyTuple_GET_SIZE(key);
    Py_ssize_t at = -1, rest = -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GET_ITEM(key, i);
        if (one == Py_None && at < 0)
            at = i;
        else if (one == Py_Ellipsis && rest < 0)
            rest = i;
        else if (!is_whole_slice(one))
            Py_RETURN_NONE;
    }
    const Py_ssize_t free = ndim - count + 1 + (rest >= 0);
    if (at < 0 || free < 0)
        Py_RETURN_NONE;
    return PyLong_FromSsize_t(rest >= 0 && rest < at ? at + free - 1 : at);
}

/* parse.py: new_dim(key, ndim) */
static PyObject *run_new_dim(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs != 2 || kwnames ? NULL : new_dim_of(args[0], number(args[1], -1));
}

/* labels.py: is_plain(input, target, weight, size_average, ignore_index, reduce, reduction), where the answer is yes; with the
   dtypes of scores, that of labels, and the reductions */
static PyObject *run_plain_classes(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 7 || kwnames || !is_whole(args[0]) || !is_whole(args[1]) || args[2] != Py_None || args[3] != Py_None ||
        !PyLong_CheckExact(args[4]) || args[5] != Py_None || !PyUnicode_CheckExact(args[6]))
        return NULL;
    PyObject *scores = SLOT(args[0], NATIVE), *labels = SLOT(args[1], NATIVE);
    if (!PyArray_CheckExact(scores) || !PyArray_CheckExact(labels) || PyArray_NDIM((PyArrayObject *)scores) != 2 ||
        PyArray_NDIM((PyArrayObject *)labels) != 1 || PyArray_DIM((PyArrayObject *)scores, 0) != PyArray_DIM((PyArrayObject *)labels, 0) ||
        SLOT(args[1], DTYPE) != self->known[1] || PySet_Contains(self->known[0], SLOT(args[0], DTYPE)) != 1)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->known[2]); i++)
        if (args[6] == PyTuple_GET_ITEM(self->known[2], i)) /* interned, as words in programs are */
            Py_RETURN_TRUE;
    return NULL;
}

/* rules.py: whole(op, name, value) */
static PyObject *run_whole(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return nargs == 3 && PyLong_CheckExact(args[2]) ? Py_NewRef(args[2]) : NULL;
}

static bool ints(PyObject *sizes) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sizes); i++)
        if (!PyLong_CheckExact(PySequence_Fast_GET_ITEM(sizes, i)))
            return false;
    return true;
}

/* rules.py: as_shape(op, sizes), of a tuple of ints, alone or in another one */
static PyObject *run_as_shape(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 2 || kwnames || !PyTuple_CheckExact(args[1]))
        return NULL;
    PyObject *sizes = args[1], *first = PyTuple_GET_SIZE(sizes) == 1 ? PyTuple_GET_ITEM(sizes, 0) : NULL;
    if (first && (PyTuple_Check(first) || PyList_CheckExact(first)))
        sizes = first;
    return !ints(sizes) ? NULL : PyTuple_CheckExact(sizes) ? Py_NewRef(sizes) : PySequence_Tuple(sizes);
}

/* Sizes of `count` elements, a tuple or a list, with the one that is -1 worked out; NULL where they are no ints that fit. */
static PyObject *filled(PyObject *sizes, Py_ssize_t count) {
    const Py_ssize_t ndim = PySequence_Fast_GET_SIZE(sizes);
    Py_ssize_t known = 1, hole = -1;
    for (Py_ssize_t i = 0; i < ndim; i++) {
        const Py_ssize_t size = number(PySequence_Fast_GET_ITEM(sizes, i), -2);
        if (size < -1 || (size == -1 && hole >= 0))
            return NULL;
        if (size == -1)
            hole = i;
        else if (__builtin_mul_overflow(known, size, &known))
            return NULL;
    }
    if (hole < 0 ? known != count : !known || count % known)
        return NULL;
    if (hole < 0 && PyTuple_CheckExact(sizes))
        return Py_NewRef(sizes);
    PyObject *made = PyTuple_New(ndim), *size = made && hole >= 0 ? PyLong_FromSsize_t(count / known) : NULL;
    if (made && hole >= 0 && !size)
        Py_CLEAR(made);
    for (Py_ssize_t i = 0; made && i < ndim; i++)
        PyTuple_SET_ITEM(made, i, i == hole ? size : Py_NewRef(PySequence_Fast_GET_ITEM(sizes, i)));
    return made;
}

/* shape.py: _sizes(op, input, sizes), of ints that fit, one of which may be -1 */
static PyObject *run_sizes(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 3 || kwnames || !is_tensor(args[1]) || !PyTuple_CheckExact(args[2]) || !SLOT(args[1], NATIVE) ||
        !PyArray_CheckExact(SLOT(args[1], NATIVE)))
        return NULL;
    PyObject *sizes = args[2], *first = PyTuple_GET_SIZE(sizes) == 1 ? PyTuple_GET_ITEM(sizes, 0) : NULL;
    if (first && (PyTuple_Check(first) || PyList_CheckExact(first)))
        sizes = first;
    return filled(sizes, PyArray_SIZE((PyArrayObject *)SLOT(args[1], NATIVE)));
}

/* rules.py: infer_size(op, sizes, numel) */
static PyObject *run_infer_size(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Py_ssize_t count = nargs == 3 && !kwnames && PyTuple_CheckExact(args[1]) ? number(args[2], -1) : -1;
    return count < 0 ? NULL : filled(args[1], count);
}

/* operands.py: common_device(op, inputs), where it is that of the first */
static PyObject *run_common_device(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 2 || kwnames || !(PyTuple_CheckExact(args[1]) || PyList_CheckExact(args[1])))
        return NULL;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(args[1]);
    PyObject **inputs = PySequence_Fast_ITEMS(args[1]);
    if (!count || !is_tensor(inputs[0]) || !SLOT(inputs[0], DEVICE))
        return NULL;
    for (Py_ssize_t i = 1; i < count; i++)
        if (inputs[i] != Py_None && (!is_tensor(inputs[i]) || SLOT(inputs[i], DEVICE) != SLOT(inputs[0], DEVICE)))
            return NULL;
    return Py_NewRef(SLOT(inputs[0], DEVICE));
}

/* operands.py: result_type(*values), of tensors of one dtype, which numbers beside them do not change */
static PyObject *run_result_type(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dtype = NULL;
    bool fractions = false, numbers = false;
    if (kwnames)
        return NULL;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (is_whole(args[i])) {
            if (dtype && SLOT(args[i], DTYPE) != dtype)
                return NULL;
            dtype = SLOT(args[i], DTYPE);
        } else if (PyFloat_CheckExact(args[i])) {
            fractions = true;
        } else if (PyLong_CheckExact(args[i])) {
            numbers = true;
        } else {
            return NULL;
        }
    }
    if (!dtype || (numbers && dtype == self->known[0]))
        return NULL;
    if (fractions) {
        PyObject *floating = PyObject_GetAttr(dtype, shortcut_names[A_FLOATING]);
        Py_XDECREF(floating);
        if (floating != Py_True)
            return NULL;
    }
    return Py_NewRef(dtype);
}

/* rules.py: broadcast(op, *shapes) */
static PyObject *run_broadcast(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t sizes[NPY_MAXDIMS], ndim = 0;
    if (nargs < 2 || kwnames)
        return NULL;
    for (Py_ssize_t k = 1; k < nargs; k++) {
        if (!PyTuple_Check(args[k]) || PyTuple_GET_SIZE(args[k]) > NPY_MAXDIMS)
            return NULL;
        ndim = PyTuple_GET_SIZE(args[k]) > ndim ? PyTuple_GET_SIZE(args[k]) : ndim;
    }
    for (Py_ssize_t i = 0; i < ndim; i++)
        sizes[i] = 1;
    for (Py_ssize_t k = 1; k < nargs; k++) {
        const Py_ssize_t shift = ndim - PyTuple_GET_SIZE(args[k]);
        for (Py_ssize_t i = shift; i < ndim; i++) {
            const Py_ssize_t size = number(PyTuple_GET_ITEM(args[k], i - shift), -1);
            if (size < 0 || (size != 1 && sizes[i] != 1 && size != sizes[i]))
                return NULL;
            sizes[i] = sizes[i] == 1 ? size : sizes[i];
        }
    }
    PyObject *made = PyTuple_New(ndim);
    for (Py_ssize_t i = 0; made && i < ndim; i++) {
        PyObject *size = PyLong_FromSsize_t(sizes[i]);
        if (size)
            PyTuple_SET_ITEM(made, i, size);
        else
            Py_CLEAR(made);
    }
    return made;
}

PyObject *tuple_of(const npy_intp *numbers, int count) {
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *one = PyLong_FromSsize_t(numbers[i]);
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* views_part.py: _strided_options(input, size, stride, storage_offset, op), of sizes and strides that lead from the first element
   of an array to none behind its last */
static PyObject *run_strided(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 4 || nargs > 5 || kwnames || !is_whole(args[0]) || !PyArray_CheckExact(SLOT(args[0], NATIVE)) ||
        !PyTuple_CheckExact(args[1]) || !PyTuple_CheckExact(args[2]) || PyTuple_GET_SIZE(args[1]) != PyTuple_GET_SIZE(args[2]))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)SLOT(args[0], NATIVE), *all = x;
    while (PyArray_BASE(all) && PyArray_Check(PyArray_BASE(all)))
        all = (PyArrayObject *)PyArray_BASE(all);
    const npy_intp bytes = PyArray_ITEMSIZE(x), begin = PyArray_BYTES(x) - PyArray_BYTES(all);
    npy_intp steps[NPY_MAXDIMS], offset = 0, reach = 0, part;
    if (!PyArray_SIZE(x) || begin < 0 || begin % bytes)
        return NULL;
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        if (PyArray_STRIDE(x, i) < 0 || PyArray_STRIDE(x, i) % bytes)
            return NULL;
        steps[i] = PyArray_STRIDE(x, i) / bytes;
        reach += (PyArray_DIM(x, i) - 1) * steps[i];
    }
    if (args[3] != Py_None && (offset = number(args[3], -1) - begin / bytes) < 0)
        return NULL;
    reach -= offset;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); i++) {
        const Py_ssize_t size = number(PyTuple_GET_ITEM(args[1], i), 0), step = number(PyTuple_GET_ITEM(args[2], i), -1);
        if (size < 1 || step < 0 || __builtin_mul_overflow(size - 1, step, &part) || __builtin_sub_overflow(reach, part, &reach))
            return NULL;
    }
    if (reach < 0)
        return NULL;
    Py_INCREF(x); /* new tuples may collect garbage, whose finalizers may write x.data */
    PyObject *shape = tuple_of(PyArray_DIMS(x), PyArray_NDIM(x)), *strides = tuple_of(steps, PyArray_NDIM(x)), *made = NULL;
    static PyObject *names; /* of the options: text that is made anew each time takes as long as the view */
    if (shape && strides && (names || (names = PyTuple_Pack(4, shortcut_names[A_SHAPE], PyUnicode_InternFromString("strides"), shortcut_names[A_OFFSET], PyUnicode_InternFromString("own")))))
        made = Py_BuildValue("{OOOOOnO(OOi)}", PyTuple_GET_ITEM(names, 0), args[1], PyTuple_GET_ITEM(names, 1), args[2], shortcut_names[A_OFFSET],
                             offset, PyTuple_GET_ITEM(names, 3), shape, strides, 0);
    Py_DECREF(x);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return made;
}

/* The gradient of a leaf, borrowed: None where it has none, NULL where it is for the function in Python to say. */
static PyObject *gradient_of(const shortcut *self, PyObject *one) {
    if (!is_tensor(one) && (PyObject *)Py_TYPE(one) != self->known[1])
        return NULL;
    PyObject *node = SLOT(one, NODE);
    if (!node || !Py_IS_TYPE(node, node_type) || NODE_SLOT(node, N_OP) != self->known[0])
        return NULL;
    PyObject *grad = NODE_SLOT(node, N_GRAD);
    return grad && (grad == Py_None || is_whole(grad)) ? grad : NULL;
}

/* algorithm.py: with_gradients(group) of parameters that are all of one kind; it knows the op of leaves and Parameter */
static PyObject *run_with_gradients(const shortcut *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given = nargs == 1 && !kwnames && tensor_type && PyDict_CheckExact(args[0])
                          ? PyDict_GetItemWithError(args[0], shortcut_names[A_PARAMS]) : NULL;
    if (!given || !PyList_CheckExact(given))
        return NULL;
    PyObject *params = PyList_New(0), *gradients = PyList_New(0), *device = NULL, *dtype = NULL, *kind = NULL, *made = NULL;
    bool usual = params && gradients;
    for (Py_ssize_t i = 0; usual && i < PyList_GET_SIZE(given); i++) {
        PyObject *one = PyList_GET_ITEM(given, i), *grad = gradient_of(self, one);
        if (grad == Py_None)
            continue;
        usual = grad && SLOT(one, DEVICE) && SLOT(one, DTYPE);
        if (usual && !kind) {
            device = SLOT(one, DEVICE);
            dtype = SLOT(one, DTYPE);
            kind = (PyObject *)Py_TYPE(SLOT(grad, NATIVE));
        }
        usual = usual && SLOT(one, DEVICE) == device && SLOT(one, DTYPE) == dtype &&
                (PyObject *)Py_TYPE(SLOT(grad, NATIVE)) == kind && !PyList_Append(params, one) && !PyList_Append(gradients, grad);
    }
    if (usual)
        made = kind ? Py_BuildValue("{(OOO):(OO)}", device, dtype, kind, params, gradients) : PyDict_New();
    Py_XDECREF(params);
    Py_XDECREF(gradients);
    return made;
}

const shortcut_spec check_shortcuts[] = {
    {"check_tensors", run_check_tensors}, {"lifted", run_lifted}, {"plain", run_plain}, {"stored", run_stored},
    {"wrap_dim", run_wrap_dim}, {"wrap_dims", run_wrap_dims}, {"diagonal_options", run_diagonal}, {"plain_classes", run_plain_classes}, {"usual_places", run_usual_places},
    {"new_dim", run_new_dim}, {"whole", run_whole}, {"as_shape", run_as_shape},
    {"broadcast", run_broadcast}, {"result_type", run_result_type}, {"sizes", run_sizes}, {"infer_size", run_infer_size}, {"common_device", run_common_device},
    {"strided_options", run_strided}, {"with_gradients", run_with_gradients}, {NULL, NULL},
};
