/* One value for every element, of a new array or of one that is there, or around the elements of another; numbers evenly apart. */
#include "cast.h"
#include "halves.h"
#include "index.h"
#include "rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

DECLARE_LOOPS(index_loops, index_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const index_loops *loops;
enum { SHAPE, KEY, VALUE, OPTIONS };
static PyObject *dtype_name, *numpy_name, *names[OPTIONS], *spaced_names[2];
static const char *const NAMES[OPTIONS] = {"shape", "key", "value"};

enum { GRAIN = 1 << 18 }; /* bytes a thread */

typedef struct {
    char *to;
    const char *value;
    int size;
} fill_run;

static void fill_part(void *context, npy_intp begin, npy_intp end) {
    const fill_run *run = context;
    loops->fill(run->to, run->value, run->size, begin, end);
}

/* Whether a number of Python's is a value of that type without a look at roundings, overflows and warnings. */
static bool holds(native_type type, PyObject *number) {
    const bool floats = type == TYPE_F32 || type == TYPE_F64 || type == TYPE_F16 || type == TYPE_BF16;
    if (PyBool_Check(number))
        return true;
    if (PyFloat_CheckExact(number)) {
        const double value = PyFloat_AS_DOUBLE(number), most = type == TYPE_F64 ? INFINITY : type == TYPE_F32 ? FLT_MAX : 65504;
        return floats && (value != value || fabs(value) <= most || isinf(value));
    }
    if (!PyLong_CheckExact(number))
        return false;
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow)
        return false;
    if (type == TYPE_BOOL)
        return value == 0 || value == 1;
    if (floats)
        return value >= -65504 && value <= 65504;
    const int bits = 8 * TYPE_SIZE[type];
    return type == TYPE_U8 ? value >= 0 && value < 256 : bits == 64 || (value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1));
}

/* Writes a number of Python's to all elements of an array in one piece but those from `begin` to `end`; false, with nothing
   written, where its dtype does not simply hold it: NumPy says what becomes of it. */
static bool fill_around(PyArrayObject *x, native_type type, PyObject *number, npy_intp begin, npy_intp end) {
    const npy_intp size = PyArray_SIZE(x);
    uint64_t value = 0;
    if (!holds(type, number))
        return false;
    if (size && PyArray_SETITEM(x, (char *)&value, number)) {
        PyErr_Clear();
        return false;
    }
    fill_run run = {PyArray_BYTES(x), (const char *)&value, TYPE_SIZE[type]};
    if (begin)
        native_evenly(begin, GRAIN / run.size, fill_part, &run);
    run.to += end * run.size;
    if (end < size)
        native_evenly(size - end, GRAIN / run.size, fill_part, &run);
    return true;
}

/* Complex numbers with parts of that type are filled alike. */
static bool fill_pairs(PyArrayObject *x, native_type type, PyObject *number) {
    float narrow[2];
    const bool is_complex = PyComplex_CheckExact(number);
    if ((uintptr_t)PyArray_DATA(x) % sizeof(uint64_t) || (!is_complex && !holds(type, number)))
        return false;
    const Py_complex value = is_complex ? PyComplex_AsCComplex(number) : (Py_complex){PyFloat_AsDouble(number), 0};
    const double parts[2] = {value.real, value.imag};
    for (int i = 0; type == TYPE_F32 && i < 2; i++) {
        if (isfinite(parts[i]) && fabs(parts[i]) > FLT_MAX)
            return false;
        narrow[i] = (float)parts[i];
    }
    fill_run run = {PyArray_BYTES(x), type == TYPE_F32 ? (const char *)narrow : (const char *)parts, 2 * TYPE_SIZE[type]};
    native_evenly(PyArray_SIZE(x), GRAIN / run.size, fill_part, &run);
    return true;
}

bool native_fill(PyArrayObject *x, native_type type, PyObject *number) { return fill_around(x, type, number, 0, 0); }

static PyObject *run_fill(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const native_type parts = nargs == 2 && !kwnames ? native_complex_type(args[0]) : TYPE_NONE;
    const native_type type = parts != TYPE_NONE ? parts : nargs == 2 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (type == TYPE_NONE || !PyArray_ISONESEGMENT(x) || !PyArray_ISWRITEABLE(x) || !(parts == TYPE_NONE ? native_fill : fill_pairs)(x, type, args[1]))
        return NULL;
    return Py_NewRef(args[0]);
}

static PyObject *run_full(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dtype;
    npy_intp shape[NATIVE_DIMS];
    if (nargs != 2 || !kwnames || !native_options(args, nargs, kwnames, &dtype_name, 1, &dtype) || !dtype)
        return NULL;
    const int ndim = native_sizes(args[0], shape, NATIVE_DIMS);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0)
            return NULL;
    if (ndim < 0)
        return NULL;
    const native_type type = native_dtype_type(dtype), parts = type == TYPE_NONE && !PyErr_Occurred() ? native_dtype_parts(dtype) : TYPE_NONE;
    if (PyErr_Occurred())
        return NULL;
    PyArrayObject *made = type != TYPE_NONE    ? native_empty(ndim, shape, type)
                          : parts != TYPE_NONE ? native_empty_complex(ndim, shape, parts)
                                               : NULL;
    if (!made)
        PyErr_Clear(); /* the other kernel says that there is no room */
    else if (!(type != TYPE_NONE ? native_fill(made, type, args[1]) : fill_pairs(made, parts, args[1])))
        Py_CLEAR(made);
    return (PyObject *)made;
}

/* Counted from both ends, as PyTorch counts: the step is of the dtype, and a product and its sum are rounded once, of floats in
   double and of doubles in the widest type that there is. */
#define SPACED(name, type, wide)                                                                              \
    static void name(type *to, type start, type end, npy_intp steps) {                                        \
        const wide step = (type)((type)(end - start) / (type)(steps > 1 ? steps - 1 : 1));                    \
        for (npy_intp i = 0; i < steps; i++)                                                                  \
            to[i] = (type)(i < steps / 2 || steps == 1 ? (wide)start + step * (wide)i                         \
                                                       : (wide)end - step * (wide)(steps - 1 - i));           \
    }
SPACED(spaced_f32, float, double)
SPACED(spaced_f64, double, long double)

/* Of a half type, in which each step is rounded: pieces go through floats. */
static void spaced_halves(native_type half, uint16_t *to, double from, double end, npy_intp steps) {
    enum { PIECE = 256 };
    const cast_loops *casts = PICK(cast_loops);
    const float first = (float)native_rounded(from, half), last = (float)native_rounded(end, half);
    const float span = (float)native_rounded(last - first, half), parts = (float)native_rounded((double)(steps - 1), half);
    const float step = steps > 1 ? (float)native_rounded(span / parts, half) : 0;
    float wide[PIECE];
    for (npy_intp begin = 0; begin < steps; begin += PIECE) {
        const npy_intp piece = steps - begin < PIECE ? steps - begin : PIECE, turn = steps == 1 ? 1 : steps / 2 - begin;
        char *const out[] = {(char *)wide, (char *)(to + begin)}, *const in[] = {(char *)(to + begin), (char *)wide};
        for (npy_intp i = 0; i < piece; i++)
            wide[i] = step * (float)(i < turn ? begin + i : steps - 1 - begin - i);
        casts->cast[TYPE_F32][half](out, (const ptrdiff_t[]){4, 2}, piece);
        casts->cast[half][TYPE_F32](in, (const ptrdiff_t[]){2, 4}, piece);
        for (npy_intp i = 0; i < piece; i++)
            wide[i] = i < turn ? first + wide[i] : last - wide[i];
        casts->cast[TYPE_F32][half](out, (const ptrdiff_t[]){4, 2}, piece);
    }
}

static PyObject *run_linspace(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[2], *descr;
    double start, end, wanted;
    if (nargs != 3 || !kwnames || !native_options(args, nargs, kwnames, spaced_names, 2, options) || options[0] != Py_None ||
        !options[1] || !native_double(args[0], &start) || !native_double(args[1], &end) || !PyLong_CheckExact(args[2]) ||
        !native_double(args[2], &wanted) || wanted < 0 || wanted > 1e9 || !(descr = PyObject_GetAttr(options[1], numpy_name)))
        return NULL;
    const native_type type = native_descr_type(descr);
    const npy_intp steps = (npy_intp)wanted;
    Py_DECREF(descr);
    PyArrayObject *made = native_is_floating(type) ? native_empty(1, &steps, type) : NULL;
    if (made && native_is_half(type))
        spaced_halves(type, PyArray_DATA(made), start, end, steps);
    else if (made && type == TYPE_F32)
        spaced_f32(PyArray_DATA(made), (float)start, (float)end, steps);
    else if (made)
        spaced_f64(PyArray_DATA(made), start, end, steps);
    return (PyObject *)made;
}

/* Each of floats a product and a sum in double, each rounded, as NumPy's arrays have them: never one multiply-add. */
#if defined(__clang__)
#define APART
#define ROUNDED_APART _Pragma("clang fp contract(off)")
#else
#define APART __attribute__((optimize("fp-contract=off")))
#define ROUNDED_APART
#endif
#define COUNTED(name, type)                                                                                   \
    APART static void name(type *to, double start, double step, npy_intp length) {                            \
        ROUNDED_APART                                                                                         \
        for (npy_intp i = 0; i < length; i++)                                                                 \
            to[i] = (type)(start + step * (double)i);                                                         \
    }
COUNTED(counted_f32, float)
COUNTED(counted_f64, double)

/* (start, step, length): integers as int64, or numbers of Python's in double, to a floating dtype; below 2**53 a double holds each. */
static PyObject *run_arange(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const double exact = (double)(INT64_C(1) << 53);
    PyObject *dtype, *descr;
    double start, step, wanted;
    if (nargs != 3 || !kwnames || !native_options(args, nargs, kwnames, &dtype_name, 1, &dtype) || !dtype ||
        !native_double(args[0], &start) || !native_double(args[1], &step) || !PyLong_CheckExact(args[2]) ||
        !native_double(args[2], &wanted) || wanted < 0 || wanted > 1e9 || !(fabs(start) + fabs(step) * wanted < exact) ||
        !(descr = PyObject_GetAttr(dtype, numpy_name)))
        return NULL;
    const native_type type = native_descr_type(descr);
    const bool whole = PyLong_CheckExact(args[0]) && PyLong_CheckExact(args[1]);
    const npy_intp length = (npy_intp)wanted;
    Py_DECREF(descr);
    PyArrayObject *made = type == TYPE_F32 || type == TYPE_F64 || (type == TYPE_I64 && whole) ? native_empty(1, &length, type) : NULL;
    if (made && type == TYPE_F32)
        counted_f32(PyArray_DATA(made), start, step, length);
    else if (made && type == TYPE_F64)
        counted_f64(PyArray_DATA(made), start, step, length);
    else if (made)
        for (npy_intp i = 0; i < length; i++)
            ((int64_t *)PyArray_DATA(made))[i] = (int64_t)start + (int64_t)step * i;
    return (PyObject *)made;
}

/* (rows, columns): ones where the row is the column, zeros elsewhere. */
static PyObject *run_eye(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dtype, *descr;
    npy_intp shape[2];
    for (int i = 0; i < 2; i++) {
        int overflow = 0;
        shape[i] = nargs == 2 && PyLong_CheckExact(args[i]) ? PyLong_AsLongAndOverflow(args[i], &overflow) : 0;
        if (shape[i] < 1 || overflow)
            return NULL;
    }
    if (!kwnames || !native_options(args, nargs, kwnames, &dtype_name, 1, &dtype) || !dtype || shape[0] > (1 << 30) / shape[1] ||
        !(descr = PyObject_GetAttr(dtype, numpy_name)))
        return NULL;
    const native_type type = native_descr_type(descr);
    Py_DECREF(descr);
    PyArrayObject *made = type == TYPE_NONE ? NULL : native_empty(2, shape, type);
    if (!made || !native_fill(made, type, Py_False)) {
        Py_XDECREF(made);
        return NULL;
    }
    const npy_intp count = shape[0] < shape[1] ? shape[0] : shape[1], size = TYPE_SIZE[type];
    char *one = PyArray_BYTES(made);
    if (PyArray_SETITEM(made, one, Py_True))
        Py_CLEAR(made);
    for (npy_intp i = 1; made && i < count; i++)
        memcpy(one + i * (shape[1] + 1) * size, one, (size_t)size);
    return (PyObject *)made;
}

/* The parts of complex numbers as one dim more, without a reference to their array. */
static PyArrayObject *as_reals(PyArrayObject *x, native_type type) {
    npy_intp shape[NATIVE_DIMS], steps[NATIVE_DIMS];
    const int ndim = PyArray_NDIM(x);
    memcpy(shape, PyArray_DIMS(x), (size_t)ndim * sizeof *shape);
    memcpy(steps, PyArray_STRIDES(x), (size_t)ndim * sizeof *steps);
    shape[ndim] = 2;
    steps[ndim] = TYPE_SIZE[type];
    return (PyArrayObject *)PyArray_New(&PyArray_Type, ndim + 1, shape, type == TYPE_F32 ? NPY_FLOAT : NPY_DOUBLE, steps, PyArray_DATA(x), 0,
                                        NPY_ARRAY_BEHAVED, NULL);
}

static bool is_zero(PyObject *number) {
    const Py_complex value = PyComplex_AsCComplex(number);
    PyErr_Clear(); /* of what is no number, which is -1 then */
    return value.real == 0 && value.imag == 0 && !signbit(value.real) && !signbit(value.imag);
}

/* Fills `made`, in row-major order, and puts x in it from `start` on. */
static bool pad_with(PyArrayObject *made, PyArrayObject *x, native_type type, const Py_ssize_t *start, PyObject *value) {
    npy_intp begin = 0, inner = 1; /* elements before the first of x; of a slice along its first dim */
    for (int i = 0; i < PyArray_NDIM(x); i++)
        begin += start[i] * (PyArray_STRIDE(made, i) / TYPE_SIZE[type]);
    for (int i = 1; i < PyArray_NDIM(x); i++)
        inner *= PyArray_DIM(made, i) == PyArray_DIM(x, i) ? PyArray_DIM(made, i) : 0;
    const npy_intp end = begin + inner * PyArray_DIM(x, 0); /* of what is not filled: all of x in one piece, or nothing */
    return fill_around(made, type, value, inner ? begin : 0, inner ? end : 0) &&
           native_copied_into(x, PyArray_BYTES(made) + begin * TYPE_SIZE[type], PyArray_STRIDES(made));
}

/* An array at a key of slices within an array of one value, which is 0 of complex numbers. */
static PyObject *run_pad(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    npy_intp shape[NATIVE_DIMS];
    const native_type parts = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    const native_type type = parts != TYPE_NONE || nargs != 1 ? parts : native_array_type(args[0]);
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[VALUE] ||
        !options[KEY] || !PyTuple_CheckExact(options[KEY]) || (parts != TYPE_NONE && !is_zero(options[VALUE])))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int ndim = PyArray_NDIM(x);
    if (!ndim || ndim == NATIVE_DIMS || !PyArray_SIZE(x) || native_sizes(options[SHAPE], shape, NATIVE_DIMS) != ndim ||
        PyTuple_GET_SIZE(options[KEY]) != ndim)
        return NULL;
    Py_ssize_t start[NATIVE_DIMS] = {0}, stop, step;
    for (int i = 0; i < ndim; i++) {
        PyObject *one = PyTuple_GET_ITEM(options[KEY], i);
        if (!PySlice_Check(one))
            return NULL;
        if (PySlice_Unpack(one, &start[i], &stop, &step)) {
            PyErr_Clear();
            return NULL;
        }
        if (start[i] < 0 || step != 1 || stop - start[i] != PyArray_DIM(x, i) || stop > shape[i])
            return NULL;
    }
    PyArrayObject *made = (parts != TYPE_NONE ? native_empty_complex : native_empty)(ndim, shape, type);
    if (!made)
        return NULL;
    if (parts == TYPE_NONE)
        return pad_with(made, x, type, start, options[VALUE]) ? (PyObject *)made : (Py_DECREF(made), NULL);
    PyArrayObject *within = as_reals(made, type), *from = as_reals(x, type);
    if (!within || !from || !pad_with(within, from, type, start, Py_False))
        Py_CLEAR(made);
    Py_XDECREF(within);
    Py_XDECREF(from);
    return (PyObject *)made;
}

int fill_init(void) {
    if (native_intern(names, NAMES, OPTIONS))
        return -1;
    loops = PICK(index_loops);
    dtype_name = PyUnicode_InternFromString("dtype");
    numpy_name = PyUnicode_InternFromString("numpy");
    spaced_names[0] = PyUnicode_InternFromString("base");
    spaced_names[1] = dtype_name;
    return dtype_name && numpy_name && spaced_names[0] ? 0 : -1;
}

const native_spec fill_kernels[] = {
    {"fill", run_fill, NULL},
    {"full", run_full, NULL},
    {"linspace", run_linspace, NULL},
    {"arange", run_arange, NULL},
    {"eye", run_eye, NULL},
    {"constant_pad", run_pad, NULL},
    {NULL, NULL, NULL},
};
