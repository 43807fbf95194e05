/* What kernels are given and what they make: options, numbers, element types, new arrays. */
#include "native.h"

#include <string.h>

/* Options */

bool native_options(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject *const *names, int count,
                    PyObject **values) {
    for (int i = 0; i < count; i++)
        values[i] = NULL;
    Py_ssize_t given = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = 0;
        while (i < count && names[i] != name)
            i++;
        /* The compiler interns keywords; a name made at run time is another object with the same letters. */
        for (i = i < count ? i : 0; i < count && names[i] != name && PyUnicode_Compare(names[i], name); i++)
            continue;
        if (i == count)
            return false;
        values[i] = args[nargs + k];
    }
    return true;
}

int native_sizes(PyObject *object, npy_intp *sizes, int most) {
    bool tuple = object && PyTuple_Check(object);
    if (!tuple && !(object && PyList_CheckExact(object)))
        return -1;
    Py_ssize_t count = tuple ? PyTuple_GET_SIZE(object) : PyList_GET_SIZE(object);
    if (count > most)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = tuple ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i);
        if (!PyLong_Check(one))
            return -1;
        sizes[i] = PyLong_AsSsize_t(one);
        if (sizes[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
    }
    return (int)count;
}

bool native_double(PyObject *object, double *number) {
    if (!object || !(PyFloat_Check(object) || PyLong_Check(object)))
        return false;
    *number = PyFloat_AsDouble(object);
    if (*number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return true;
}

/* Element types */

static int bfloat16_number = -1;
static PyArray_Descr *bfloat16_descr;

PyObject *native_set_bfloat16(PyObject *module, PyObject *descr) {
    if (!PyArray_DescrCheck(descr))
        return PyErr_Format(PyExc_TypeError, "set_bfloat16: expected a dtype, got %R", Py_TYPE(descr));
    Py_XSETREF(bfloat16_descr, (PyArray_Descr *)Py_NewRef(descr));
    bfloat16_number = bfloat16_descr->type_num;
    Py_RETURN_NONE;
}

static const signed char NUMBERS[TYPES] = {NPY_FLOAT, NPY_DOUBLE, -1, NPY_HALF, NPY_BYTE, NPY_SHORT,
                                           NPY_INT32, NPY_INT64, NPY_UBYTE, NPY_BOOL};
static unsigned char types_by_number[NPY_HALF + 1];
static PyObject *numpy_name; /* interned: where a dtype of ours keeps NumPy's */

static native_type type_of_number(int number) {
    return number <= NPY_HALF ? (native_type)types_by_number[number] : number == bfloat16_number ? TYPE_BF16 : TYPE_NONE;
}

native_type native_array_type(PyObject *object) {
    if (!PyArray_CheckExact(object))
        return TYPE_NONE;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_NDIM(array) > NATIVE_DIMS || !PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array))
        return TYPE_NONE;
    return type_of_number(PyArray_TYPE(array));
}

native_type native_complex_type(PyObject *object) {
    if (!PyArray_CheckExact(object))
        return TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)object;
    if (PyArray_NDIM(x) > NATIVE_DIMS || !PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x))
        return TYPE_NONE;
    return PyArray_TYPE(x) == NPY_CFLOAT ? TYPE_F32 : PyArray_TYPE(x) == NPY_CDOUBLE ? TYPE_F64 : TYPE_NONE;
}

native_type native_descr_type(PyObject *object) {
    if (!PyArray_DescrCheck(object) || !PyArray_ISNBO(((PyArray_Descr *)object)->byteorder))
        return TYPE_NONE;
    return type_of_number(((PyArray_Descr *)object)->type_num);
}

native_type native_dtype_type(PyObject *dtype) {
    PyObject *descr = PyObject_GetAttr(dtype, numpy_name);
    const native_type type = descr ? native_descr_type(descr) : TYPE_NONE;
    Py_XDECREF(descr);
    return type;
}

native_type native_dtype_parts(PyObject *dtype) {
    PyObject *descr = PyObject_GetAttr(dtype, numpy_name);
    const int number = descr && PyArray_DescrCheck(descr) ? ((PyArray_Descr *)descr)->type_num : NPY_NOTYPE;
    Py_XDECREF(descr);
    return number == NPY_CFLOAT ? TYPE_F32 : number == NPY_CDOUBLE ? TYPE_F64 : TYPE_NONE;
}

/* Arrays */

static _Thread_local int waiting; /* how many of these, which are borrowed */
static _Thread_local PyArrayObject *awaited[NATIVE_PLACES];

void native_await(PyObject *const *places, Py_ssize_t count) {
    for (waiting = 0; waiting < count; waiting++)
        awaited[waiting] = (PyArrayObject *)places[waiting];
}

static bool is_like(PyArrayObject *place, int ndim, const npy_intp *shape, PyArray_Descr *descr, const npy_intp *strides) {
    if (PyArray_NDIM(place) != ndim || PyArray_TYPE(place) != descr->type_num || !PyArray_CompareLists(PyArray_DIMS(place), shape, ndim))
        return false;
    for (int i = 0; strides && i < ndim; i++)
        if (shape[i] != 1 && PyArray_STRIDE(place, i) != strides[i])
            return false;
    return strides || PyArray_IS_C_CONTIGUOUS(place);
}

/* Takes the reference to the dtype. */
static PyArrayObject *new_array(int ndim, const npy_intp *shape, PyArray_Descr *descr, const npy_intp *strides) {
    if (!descr)
        return NULL;
    for (int i = 0; i < waiting; i++)
        if (is_like(awaited[i], ndim, shape, descr, strides)) {
            PyArrayObject *const place = awaited[i];
            waiting--;
            memmove(awaited + i, awaited + i + 1, (size_t)(waiting - i) * sizeof *awaited); /* results are made in their order */
            Py_DECREF(descr);
            return (PyArrayObject *)Py_NewRef(place);
        }
    npy_intp size = PyDataType_ELSIZE(descr);
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(size, shape[i], &size))
            size = 0; /* NumPy says what is wrong */
    if (size >= NATIVE_LINES)
        return native_memory_array(descr, ndim, shape, strides, (size_t)size);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, NULL, 0, NULL);
}

static PyArrayObject *new_ordered(int ndim, const npy_intp *shape, PyArray_Descr *descr, const int *axes) {
    npy_intp strides[NATIVE_DIMS], step = descr ? PyDataType_ELSIZE(descr) : 0;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[axes[i]] = step;
        step *= shape[axes[i]];
    }
    return new_array(ndim, shape, descr, step ? strides : NULL);
}

static PyArray_Descr *descr_of(native_type type) {
    return type == TYPE_BF16 ? (PyArray_Descr *)Py_NewRef(bfloat16_descr) : PyArray_DescrFromType(NUMBERS[type]);
}

static PyArray_Descr *complex_descr_of(native_type type) {
    return PyArray_DescrFromType(type == TYPE_F32 ? NPY_CFLOAT : NPY_CDOUBLE);
}

PyArrayObject *native_empty(int ndim, const npy_intp *shape, native_type type) {
    return new_array(ndim, shape, descr_of(type), NULL);
}

PyArrayObject *native_empty_ordered(int ndim, const npy_intp *shape, native_type type, const int *axes) {
    return new_ordered(ndim, shape, descr_of(type), axes);
}

PyArrayObject *native_empty_complex(int ndim, const npy_intp *shape, native_type type) {
    return new_array(ndim, shape, complex_descr_of(type), NULL);
}

PyArrayObject *native_empty_complex_ordered(int ndim, const npy_intp *shape, native_type type, const int *axes) {
    return new_ordered(ndim, shape, complex_descr_of(type), axes);
}

/* Pairs */

PyObject *native_with_pairs(PyArrayObject *x, PyArray_Descr *descr, npy_intp step) {
    const int ndim = PyArray_NDIM(x);
    npy_intp shape[NATIVE_DIMS + 1], strides[NATIVE_DIMS + 1];
    for (int i = 0; i < ndim; i++) {
        shape[i] = PyArray_DIM(x, i);
        strides[i] = PyArray_STRIDE(x, i);
    }
    shape[ndim] = 2;
    strides[ndim] = step;
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim + 1, shape, strides, PyArray_DATA(x), PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE, NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef((PyObject *)x)))
        Py_CLEAR(made);
    return made;
}

PyObject *native_as_pairs(PyArrayObject *x, native_type type) {
    return native_with_pairs(x, PyArray_DescrFromType(NUMBERS[type]), TYPE_SIZE[type]);
}

PyObject *native_of_pairs(PyArrayObject *pairs, native_type type) {
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type == TYPE_F32 ? NPY_CFLOAT : NPY_CDOUBLE),
                                          PyArray_NDIM(pairs) - 1, PyArray_DIMS(pairs), PyArray_STRIDES(pairs), PyArray_DATA(pairs),
                                          NPY_ARRAY_WRITEABLE, NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef((PyObject *)pairs)))
        Py_CLEAR(made);
    return made;
}

PyObject *native_allocate(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "allocate: expected a shape and a dtype, got %zd arguments", nargs);
    npy_intp sizes[NATIVE_DIMS];
    PyArray_Dims shape = {sizes, native_sizes(args[0], sizes, NATIVE_DIMS)};
    const bool many = shape.len < 0; /* dims, or sizes of other kinds, of which NumPy makes memory of its own */
    if (many && PyArray_IntpConverter(args[0], &shape) != NPY_SUCCEED)
        return NULL;
    PyObject *descr = PyObject_GetAttr(args[1], numpy_name), *made = NULL;
    if (descr && !PyArray_DescrCheck(descr)) {
        PyErr_Format(PyExc_TypeError, "allocate: expected a dtype, got %R", args[1]);
        Py_CLEAR(descr);
    }
    npy_intp size = descr ? PyDataType_ELSIZE((PyArray_Descr *)descr) : 0;
    bool fits = true, negative = false;
    for (int i = 0; i < shape.len; i++) {
        negative |= shape.ptr[i] < 0;
        fits &= !__builtin_mul_overflow(size, shape.ptr[i], &size);
    }
    if (descr && !fits && !negative)
        Py_SETREF(descr, PyErr_NoMemory());
    if (descr && !negative && size >= NATIVE_LINES)
        made = (PyObject *)native_memory_array((PyArray_Descr *)descr, shape.len, shape.ptr, NULL, (size_t)size);
    else if (descr) /* NumPy says what is wrong with a negative size */
        made = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)descr, shape.len, shape.ptr, NULL, NULL, 0, NULL);
    if (many)
        PyDimMem_FREE(shape.ptr);
    return made;
}

static void bounds(PyArrayObject *array, const char **first, const char **end) {
    *first = *end = PyArray_BYTES(array);
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp size = PyArray_DIM(array, i), step = PyArray_STRIDE(array, i);
        if (!size) {
            *end = *first;
            return;
        }
        *(step < 0 ? first : end) += (size - 1) * step;
    }
    *end += PyArray_ITEMSIZE(array);
}

bool native_overlap(PyArrayObject *one, PyArrayObject *other) {
    const char *first, *end, *other_first, *other_end;
    bounds(one, &first, &end);
    bounds(other, &other_first, &other_end);
    return first < other_end && other_first < end;
}

int native_intern(PyObject **names, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i])))
            return -1;
    return 0;
}

int native_arrays_init(void) {
    memset(types_by_number, TYPE_NONE, sizeof types_by_number);
    for (int type = 0; type < TYPES; type++)
        if (NUMBERS[type] >= 0)
            types_by_number[(int)NUMBERS[type]] = (unsigned char)type;
#if NPY_SIZEOF_LONG == 8
    types_by_number[NPY_LONGLONG] = TYPE_I64;
#endif
    numpy_name = PyUnicode_InternFromString("numpy");
    return numpy_name ? 0 : -1;
}
