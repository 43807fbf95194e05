/* The methods by which a backend draws: they look at a draw's kind and options, and lend its generator to what draws. */
#include "draws.h"

#include <math.h>

static PyObject *draw_words, *draw_normals, *draw_places, *draw_rejections, *overwrite_words, *overwrite_normals; /* functions of the module */

/* The arguments of a draw that are given by name. */
typedef struct {
    PyObject *const *values;
    PyObject *names;
} draw_options;

/* Borrowed; NULL where it is not given. */
static PyObject *option(const draw_options *options, int name) {
    for (Py_ssize_t i = 0; options->names && i < PyTuple_GET_SIZE(options->names); i++)
        if (PyTuple_GET_ITEM(options->names, i) == draw_names[name])
            return options->values[i];
    return NULL;
}

static bool number_of(const draw_options *options, int name, double otherwise, double *number) {
    PyObject *found = option(options, name);
    *number = otherwise;
    return !found || native_double(found, number);
}

/* How many elements a shape has, at most `most`; -1 where it is none. */
static npy_intp size_of(PyObject *shape, npy_intp most) {
    npy_intp sizes[NATIVE_DIMS], count = 1;
    const int ndim = native_sizes(shape, sizes, NATIVE_DIMS);
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] < 0)
            return -1;
        if (!sizes[i])
            return 0;
        count = count > most / sizes[i] ? most : count * sizes[i];
    }
    return ndim < 0 ? -1 : count;
}

/* What native_random is given as `a` and `b`; false where its generator has to draw, or to say what is wrong. */
static bool parameters(int kind, const draw_options *options, double *a, double *b) {
    const double large = 1e30, whole = (double)(INT64_C(1) << 53);
    *a = *b = 0;
    switch (kind) {
    case UNIFORM:
        return number_of(options, O_LOW, 0, a) && number_of(options, O_HIGH, 1, b) && -large < *a && *a < *b && *b < large;
    case SLOPES:
        return number_of(options, O_LOW, 0, a) && number_of(options, O_HIGH, 1, b) && -large < *a && *a <= *b && *b < large &&
               option(options, O_INPUT);
    case NORMAL:
    case SERIAL_NORMAL:
        return number_of(options, O_MEAN, 0, a) && number_of(options, O_STD, 1, b) && *b >= 0;
    case LOG_NORMAL:
        return number_of(options, O_MEAN, 1, a) && number_of(options, O_STD, 2, b) && *b > 0;
    case CAUCHY:
        return number_of(options, O_MEDIAN, 0, a) && number_of(options, O_SIGMA, 1, b) && *b > 0;
    case GEOMETRIC:
        if (!number_of(options, O_PROBABILITY, 0, a) || !(*a > 0) || !(*a < 1))
            return false;
        *a = log1p(-*a);
        return true;
    case BERNOULLI: {
        PyObject *probability = option(options, O_PROBABILITY);
        if (!probability || !number_of(options, O_ONE, 1, b))
            return false;
        if (PyArray_CheckExact(probability))
            return *b == 1;
        *a = PyFloat_CheckExact(probability) ? PyFloat_AS_DOUBLE(probability) : -1;
        return *a >= 0 && *a <= 1;
    }
    case EXPONENTIAL:
        if (!number_of(options, O_RATE, 1, a) || !(*a > 0) || !(*a < large))
            return false;
        *a = -1.0 / *a;
        return true;
    case INTEGERS: {
        PyObject *low = option(options, O_LOW), *high = option(options, O_HIGH);
        /* From a span of 2**28 on the generator draws two words for an integer. */
        if (!low || !high || !PyLong_CheckExact(low) || !PyLong_CheckExact(high) || !native_double(low, a) || !native_double(high, b) ||
            !(-whole < *a) || !(*a < *b) || !(*b < whole) || *b - *a >= 1 << 28)
            return false;
        *b -= *a;
        return true;
    }
    default:
        return kind == PERMUTATION || kind == RANDOM;
    }
}

/* Draws whose parameters are arrays; None where their generator has to make them, or to say what is wrong. */
static PyObject *drawn_each(int kind, PyObject *const *args, const draw_options *options) {
    PyObject *first = option(options, kind == GAMMA ? O_ALPHA : kind == POISSON ? O_RATE : O_COUNT);
    PyObject *second = kind == BINOMIAL ? option(options, O_PROBABILITY) : NULL;
    if (!first || (kind == BINOMIAL && !second))
        Py_RETURN_NONE;
    PyObject *dtype = PyObject_GetAttr(args[2], draw_names[A_NUMPY]), *made = NULL;
    PyObject *const given[] = {args[3], draw_rejections, args[0], args[1], dtype, first, second};
    if (dtype)
        made = PyObject_VectorcallMethod(draw_names[A_LEND_NORMAL], given, second ? 7 : 6, NULL);
    Py_XDECREF(dtype);
    return made;
}

/* An array of draws of (kind, shape, dtype, generator, **options), bit for bit those of the generator's own method; None where that has
   to make them, or to say what is wrong. */
static PyObject *drawn(PyObject *const *args, const draw_options *options) {
    enum { MOST_PLACES = 200000000 };
    double a, b;
    PyObject *shape = args[1], *generator = args[3];
    const int kind = draw_kind(args[0]);
    if (kind == MULTINOMIAL) {
        PyObject *weights = option(options, O_WEIGHTS), *again = option(options, O_REPLACEMENT);
        PyObject *count = PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) == 1 ? PyTuple_GET_ITEM(shape, 0) : NULL;
        if (!weights || !count || !PyLong_CheckExact(count))
            Py_RETURN_NONE;
        PyObject *const given[] = {generator, draw_places, weights, count, again && again != Py_False ? Py_True : Py_False};
        return PyObject_VectorcallMethod(draw_names[A_LEND], given, 5, NULL);
    }
    if (kind >= GAMMA && kind <= BINOMIAL)
        return drawn_each(kind, args, options);
    const npy_intp count = kind == UNKNOWN ? -1 : size_of(shape, NPY_MAX_INTP);
    if (count < 0 || !parameters(kind, options, &a, &b) ||
        (kind == PERMUTATION && (count < 2 || count > MOST_PLACES || PyTuple_GET_SIZE(shape) != 1)))
        Py_RETURN_NONE;
    PyObject *each = kind == BERNOULLI ? option(options, O_PROBABILITY) : NULL;
    PyObject *dtype = PyObject_GetAttr(args[2], draw_names[A_NUMPY]), *made = NULL;
    PyObject *first = each ? Py_NewRef(each) : PyFloat_FromDouble(a), *second = PyFloat_FromDouble(b);
    if (dtype && first && second) {
        const bool serial = kind > MULTINOMIAL || (kind == NORMAL && count < FEW_NORMALS);
        PyObject *const words[] = {generator, draw_words, args[0], shape, dtype, first, second, option(options, O_INPUT)};
        PyObject *const normals[] = {generator, draw_normals, args[0], shape, dtype, first, second};
        made = serial ? PyObject_VectorcallMethod(draw_names[A_LEND_NORMAL], normals, 7, NULL)
                      : PyObject_VectorcallMethod(draw_names[A_LEND], words, kind == SLOPES ? 8 : 7, NULL);
    }
    Py_XDECREF(dtype);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return made;
}

/* backend.py: random(kind, shape, dtype, generator, **options); `method` is that of the class */
static PyObject *run_random(PyObject *method, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs == 4 && args[3] != Py_None) {
        PyObject *made = drawn(args, &(draw_options){args + nargs, kwnames});
        if (made != Py_None)
            return made;
        Py_DECREF(made);
    }
    return PyObject_Vectorcall(method, args, nargs, kwnames);
}

/* backend.py: draw_over(native, kind, generator, **options), draws over an array in row-major order, bit for bit as `random` makes them;
   False, and nothing drawn, where that has to make them, or to say what is wrong */
PyObject *native_draw_over(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const draw_options options = {args + nargs, kwnames};
    const int kind = nargs == 3 && PyArray_CheckExact(args[0]) ? draw_kind(args[1]) : UNKNOWN;
    double a, b;
    if (kind >= UNKNOWN || kind == MULTINOMIAL || !parameters(kind, &options, &a, &b))
        Py_RETURN_FALSE;
    PyObject *each = option(&options, O_PROBABILITY);
    if (each && PyArray_CheckExact(each)) /* which may share memory with what is written */
        Py_RETURN_FALSE;
    PyObject *first = PyFloat_FromDouble(a), *second = PyFloat_FromDouble(b), *made = NULL;
    if (first && second) {
        const bool serial = kind > MULTINOMIAL || (kind == NORMAL && PyArray_SIZE((PyArrayObject *)args[0]) < FEW_NORMALS);
        PyObject *const given[] = {args[2], serial ? overwrite_normals : overwrite_words, args[0], args[1], first, second};
        made = PyObject_VectorcallMethod(draw_names[serial ? A_LEND_NORMAL : A_LEND], given, 6, NULL);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    if (made)
        Py_SETREF(made, PyBool_FromLong(made != Py_None));
    return made;
}

/* A method that draws behind a look at what it is given. */
PyObject *native_drawing(PyObject *module, PyObject *method) {
    static PyMethodDef definition = {"random", (PyCFunction)(void (*)(void))run_random, METH_FASTCALL | METH_KEYWORDS,
                                     "A new array of random numbers: drawn in C, or by the generator itself."};
    static const struct {
        PyObject **function;
        const char *name;
    } needed[] = {{&draw_words, "random"}, {&draw_normals, "serial_normals"}, {&draw_places, "multinomial"}, {&draw_rejections, "rejections"},
                  {&overwrite_words, "overwrite_random"}, {&overwrite_normals, "overwrite_normals"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!*needed[i].function && !(*needed[i].function = PyObject_GetAttrString(module, needed[i].name)))
            return NULL;
    return PyCFunction_New(&definition, method);
}
