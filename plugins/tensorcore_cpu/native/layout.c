/* Where the elements of an array lie in its memory: what a backend is asked for most, as functions of the module. */
#include "plan.h"

PyArrayObject *native_owner(PyArrayObject *x) {
    while (PyArray_BASE(x) && PyArray_Check(PyArray_BASE(x)))
        x = (PyArrayObject *)PyArray_BASE(x);
    return x;
}

static PyObject *steps_of(PyArrayObject *x) {
    int ndim = PyArray_NDIM(x);
    PyObject *made = PyTuple_New(ndim);
    npy_intp size = PyArray_ITEMSIZE(x), dense = 1;
    bool none = !PyArray_SIZE(x); /* without elements NumPy's own are 0, unless they came from elsewhere */
    for (int i = 0; i < ndim; i++)
        none &= !PyArray_STRIDE(x, i);
    for (int i = ndim - 1; made && i >= 0; i--) {
        PyObject *one = PyLong_FromSsize_t(none ? dense : PyArray_STRIDE(x, i) / size);
        dense *= PyArray_DIM(x, i) ? PyArray_DIM(x, i) : 1;
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

bool native_kept_order(PyArrayObject *made, bool aligned, PyObject *const *args, Py_ssize_t nargs, int *axes) {
    native_plan plan = {.ndim = PyArray_NDIM(made)};
    if (plan.ndim > NATIVE_DIMS || !PyArray_SIZE(made))
        return false;
    if (aligned && nargs && PyList_CheckExact(args[0])) {
        nargs = PyList_GET_SIZE(args[0]);
        args = PySequence_Fast_ITEMS(args[0]);
    }
    for (Py_ssize_t k = 0; aligned && k < nargs; k++) {
        if (!PyArray_CheckExact(args[k]))
            continue;
        PyArrayObject *one = (PyArrayObject *)args[k];
        const int missing = plan.ndim - PyArray_NDIM(one);
        if (missing < 0 || plan.operands == PLAN_OPERANDS)
            return false;
        for (int i = missing; i < plan.ndim; i++)
            plan.steps[plan.operands][i] = PyArray_DIM(one, i - missing) == 1 ? 0 : PyArray_STRIDE(one, i - missing);
        plan.operands++;
    }
    native_plan_order(&plan, plan.operands, axes);
    return true;
}

bool native_lies_so(PyArrayObject *made, const int *axes, bool *but_for_ones) {
    npy_intp step = PyArray_ITEMSIZE(made);
    bool so = *but_for_ones = true;
    for (int i = PyArray_NDIM(made) - 1; i >= 0; i--) {
        const bool there = PyArray_STRIDE(made, axes[i]) == step;
        so &= there;
        *but_for_ones &= there || PyArray_DIM(made, axes[i]) == 1;
        step *= PyArray_DIM(made, axes[i]);
    }
    return so;
}

/* What NumPy makes of arrays without dims here and there. */
static bool is_scalar(PyObject *x) { return !PyArray_Check(x) && PyArray_CheckScalar(x); }

static PyObject *refuse(const char *name, PyObject *x) {
    return PyErr_Format(PyExc_TypeError, "%s: expected an array, got %R", name, Py_TYPE(x));
}

PyObject *native_strides(PyObject *module, PyObject *x) {
    if (is_scalar(x))
        return PyTuple_New(0);
    return PyArray_Check(x) ? steps_of((PyArrayObject *)x) : refuse("strides", x);
}

PyObject *native_layout(PyObject *module, PyObject *x) {
    if (is_scalar(x))
        return Py_BuildValue("(()i)", 0);
    if (!PyArray_Check(x))
        return refuse("layout", x);
    PyArrayObject *array = (PyArrayObject *)x;
    PyObject *strides = steps_of(array);
    npy_intp start = PyArray_BYTES(array) - PyArray_BYTES(native_owner(array)), size = PyArray_ITEMSIZE(array);
    return strides ? Py_BuildValue("(Nn)", strides, start / size - (start % size < 0)) : NULL;
}

PyObject *native_data_pointer(PyObject *module, PyObject *x) {
    PyObject *array = is_scalar(x) ? PyArray_FromScalar(x, NULL) : PyArray_Check(x) ? Py_NewRef(x) : refuse("data_pointer", x);
    PyObject *made = array ? PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array)) : NULL;
    Py_XDECREF(array);
    return made;
}

PyObject *native_is_contiguous(PyObject *module, PyObject *x) {
    if (is_scalar(x))
        Py_RETURN_TRUE;
    return PyArray_Check(x) ? PyBool_FromLong(PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x)) : refuse("is_contiguous", x);
}
