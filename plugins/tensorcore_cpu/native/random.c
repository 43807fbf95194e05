/* Random numbers: new arrays of draws from the state of a NumPy generator, whose lock the caller holds. */
#include "random.h"

#include "rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

DECLARE_LOOPS(random_loops, random_loops);

static const random_loops *loops;

/* Names of kinds of draws, in their order, then of options and attributes; interned. */
enum {
    UNIFORM, NORMAL, BERNOULLI, INTEGERS, EXPONENTIAL, PERMUTATION, CAUCHY, GEOMETRIC, RANDOM, MULTINOMIAL, SERIAL_NORMAL, LOG_NORMAL,
    UNKNOWN,
    O_LOW = UNKNOWN, O_HIGH, O_MEAN, O_STD, O_PROBABILITY, O_ONE, O_RATE, O_WEIGHTS, O_REPLACEMENT, O_MEDIAN, O_SIGMA, A_NUMPY, A_LEND,
    A_LEND_NORMAL, NAMES,
    FLIPS = -1 /* ones with a probability each */
};
static const char *const TEXTS[NAMES] = {
    "uniform", "normal", "bernoulli", "integers", "exponential", "permutation", "cauchy", "geometric", "random", "multinomial",
    "serial_normal", "log_normal", "low", "high", "mean", "std", "probability", "one", "rate", "weights", "replacement", "median",
    "sigma", "numpy", "lend", "lend_normal",
};
static PyObject *names[NAMES], *draw_words, *draw_normals, *draw_places; /* the last are functions of the module */

enum { MANY = 1 << 14 }; /* numbers for which it is worth letting go of the GIL */

/* What NumPy's capsule holds begins with the state. */
typedef struct {
    void *state;
} bit_generator;

static int kind_named(PyObject *name) {
    int kind = 0;
    while (kind < UNKNOWN && name != names[kind])
        kind++;
    return kind;
}

static void fill(int kind, native_type type, twister_state *state, void *out, npy_intp count, double a, double b,
                 const void *each) {
    if (kind == UNIFORM && type == TYPE_F32)
        loops->uniform_f32(state, out, count, (float)a, (float)b);
    else if (kind == UNIFORM)
        loops->uniform_f64(state, out, count, a, b);
    else if (kind == NORMAL)
        loops->normal_f32(state, out, count, (float)a, (float)b);
    else if (kind == BERNOULLI && type == TYPE_F32)
        loops->bernoulli_f32(state, out, count, a, (float)b);
    else if (kind == BERNOULLI)
        loops->bernoulli_f64(state, out, count, a, b);
    else if (kind == EXPONENTIAL && type == TYPE_F32)
        loops->exponential_f32(state, out, count, a);
    else if (kind == EXPONENTIAL)
        loops->exponential_f64(state, out, count, a);
    else if (kind == FLIPS && type == TYPE_F32)
        loops->flips_f32(state, each, out, count);
    else if (kind == FLIPS)
        loops->flips_f64(state, each, out, count);
    else if (kind == CAUCHY && type == TYPE_F32)
        loops->cauchy_f32(state, out, count, a, b);
    else if (kind == CAUCHY)
        loops->cauchy_f64(state, out, count, a, b);
    else if (kind == GEOMETRIC && type == TYPE_F32)
        loops->geometric_f32(state, out, count, a);
    else if (kind == GEOMETRIC)
        loops->geometric_f64(state, out, count, a);
    else if (kind == RANDOM && type == TYPE_F32)
        loops->random_f32(state, out, count);
    else if (kind == RANDOM && type == TYPE_F64)
        loops->random_f64(state, out, count);
    else if (kind == RANDOM)
        loops->random_i64(state, out, count);
    else if (kind == PERMUTATION)
        loops->shuffle(state, out, count);
    else if (type == TYPE_F32)
        loops->integers_f32(state, out, count, (int32_t)a, (uint32_t)b);
    else
        loops->integers(state, out, count, (int64_t)a, (uint32_t)b);
}

#define ALL_WITHIN(type)                                              \
    for (npy_intp i = 0; i < size; i++) {                             \
        const type p = ((const type *)PyArray_DATA(x))[i];            \
        within &= p >= 0 && p <= 1;                                   \
    }

/* Whether an array of that type and shape lies in one piece, and all of it is from 0 to 1. */
static bool probabilities(PyObject *object, native_type type, int ndim, const npy_intp *shape) {
    PyArrayObject *x = (PyArrayObject *)object;
    if (native_real_type(object) != type || PyArray_NDIM(x) != ndim || !PyArray_CompareLists(PyArray_DIMS(x), shape, ndim) ||
        !PyArray_IS_C_CONTIGUOUS(x))
        return false;
    const npy_intp size = PyArray_SIZE(x);
    bool within = true;
    if (type == TYPE_F32) {
        ALL_WITHIN(float)
    } else {
        ALL_WITHIN(double)
    }
    return within;
}

/* Whether there is a loop for numbers of that type. */
static bool drawn_as(int kind, native_type type, double a, double b) {
    const double whole = 1 << 24; /* up to which floats have all whole numbers */
    switch (kind) {
    case NORMAL:
        return type == TYPE_F32;
    case PERMUTATION:
        return type == TYPE_I64;
    case INTEGERS:
        return type == TYPE_I64 || (type == TYPE_F32 && -whole <= a && a + b <= whole);
    case RANDOM:
        return type == TYPE_I64 || type == TYPE_F32 || type == TYPE_F64;
    default:
        return type == TYPE_F32 || type == TYPE_F64;
    }
}

/* (capsule, kind, shape, dtype, a, b) -> an array, or None where these are not drawn here. The numbers are low and high,
   mean and deviation, the probability (which may be an array of them) and the value of a one, the least integer and how many
   there are, what an exponential draw is times or a geometric one is over, or median and half width. */
PyObject *native_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NATIVE_DIMS], count = 1;
    double a, b;
    if (nargs != 6 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "random: expected a capsule and five more arguments, got %zd in all", nargs);
    int kind = kind_named(args[1]);
    int ndim = native_sizes(args[2], shape, NATIVE_DIMS);
    native_type type = native_descr_type(args[3]);
    if (kind == BERNOULLI && PyArray_Check(args[4])) {
        if ((type != TYPE_F32 && type != TYPE_F64) || ndim < 0 || !probabilities(args[4], type, ndim, shape))
            Py_RETURN_NONE;
        kind = FLIPS;
        a = 0;
    } else if (!native_double(args[4], &a)) {
        Py_RETURN_NONE;
    }
    if (kind >= MULTINOMIAL || ndim < 0 || !native_double(args[5], &b) || !drawn_as(kind, type, a, b))
        Py_RETURN_NONE;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0 || (shape[i] && count > NPY_MAX_INTP / 16 / shape[i]))
            Py_RETURN_NONE;
        count *= shape[i];
    }
    if (!count || (kind == NORMAL && count < 16))
        Py_RETURN_NONE;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    if (!generator)
        return NULL;
    PyArrayObject *made = native_empty(ndim, shape, type);
    if (!made)
        return NULL;
    void *out = PyArray_DATA(made);
    const void *each = kind == FLIPS ? PyArray_DATA((PyArrayObject *)args[4]) : NULL;
    if (count < MANY) {
        fill(kind, type, generator->state, out, count, a, b, each);
    } else {
        Py_BEGIN_ALLOW_THREADS
        fill(kind, type, generator->state, out, count, a, b, each);
        Py_END_ALLOW_THREADS
    }
    return (PyObject *)made;
}

/* Normals one by one, each of which float64 is, or what e is to the power of each. Begins with `kept` where there is one, and leaves the
   second of the last pair there; whether there is any. */
static bool serial_normals(twister_state *state, bool raised, native_type type, void *out, npy_intp count, double mean, double deviation,
                           bool has, double *kept) {
    enum { PIECE = 512 };
    const double two_pi = 2.0 * 3.141592653589793;
    double normals[PIECE + 1];
    for (npy_intp begin = 0; begin < count; begin += PIECE) {
        const int piece = count - begin < PIECE ? (int)(count - begin) : PIECE, missing = piece - has, end = piece + missing % 2;
        normals[0] = *kept;
        if (missing)
            loops->uniform_f64(state, normals + has, missing + missing % 2, 0, 1);
        for (int i = has; i < end; i += 2) {
            const double radius = sqrt(-2.0 * log1p(-normals[i + 1])), angle = two_pi * normals[i];
            normals[i] = radius * cos(angle);
            normals[i + 1] = radius * sin(angle);
        }
        for (int i = 0; i < piece; i++) {
            const double normal = fma(normals[i], deviation, mean), value = raised ? exp(normal) : normal;
            if (type == TYPE_F32)
                ((float *)out)[begin + i] = (float)value;
            else
                ((double *)out)[begin + i] = value;
        }
        has = missing % 2;
        *kept = normals[end - 1];
    }
    return has;
}

/* (capsule, kept, kind, shape, dtype, mean, deviation) -> an array and the second of the last pair of normals, or None where there is
   none left over: float64 normals one by one, the `kept` one first unless it is None. None where these are not drawn here. */
PyObject *native_serial_normals(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NATIVE_DIMS], count = 1;
    double mean, deviation, kept = 0;
    if (nargs != 7 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "serial_normals: expected a capsule and six more arguments, got %zd in all", nargs);
    const int ndim = native_sizes(args[3], shape, NATIVE_DIMS);
    const native_type type = native_descr_type(args[4]);
    const bool has = args[1] != Py_None, raised = args[2] == names[LOG_NORMAL];
    for (int i = 0; i < ndim; i++)
        count = shape[i] > 0 && count <= NPY_MAX_INTP / 16 / shape[i] ? count * shape[i] : 0;
    if (ndim < 0 || count < 1 || (type != TYPE_F32 && type != TYPE_F64) || !native_double(args[5], &mean) ||
        !native_double(args[6], &deviation) || (has && !PyFloat_CheckExact(args[1])))
        Py_RETURN_NONE;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    PyArrayObject *made = generator ? native_empty(ndim, shape, type) : NULL;
    if (!made)
        return NULL;
    if (has)
        kept = PyFloat_AS_DOUBLE(args[1]);
    void *out = PyArray_DATA(made);
    bool further;
    if (count < MANY) {
        further = serial_normals(generator->state, raised, type, out, count, mean, deviation, has, &kept);
    } else {
        Py_BEGIN_ALLOW_THREADS
        further = serial_normals(generator->state, raised, type, out, count, mean, deviation, has, &kept);
        Py_END_ALLOW_THREADS
    }
    return further ? Py_BuildValue("(Nd)", made, kept) : Py_BuildValue("(NO)", made, Py_None);
}

/* The places of the `count` largest of each row's weights over what is drawn, the largest first, and of equal ones the lower
   place; 0 over 0 is the least. `drawn` and `best` are room for a row and for `count`. */
static void choose(twister_state *state, const float *weights, npy_intp rows, npy_intp columns, npy_intp count, float *drawn,
                   float *best, int64_t *places) {
    for (npy_intp row = 0; row < rows; row++, weights += columns, places += count) {
        loops->exponential_f32(state, drawn, columns, -1.0);
        for (npy_intp i = 0; i < columns; i++)
            drawn[i] = weights[i] / drawn[i];
        npy_intp held = 0;
        for (npy_intp i = 0; i < columns; i++) {
            const float value = drawn[i] >= 0 ? drawn[i] : -1.0f;
            if (held == count && !(value > best[count - 1]))
                continue;
            npy_intp at = held < count ? held++ : count - 1;
            for (; at && value > best[at - 1]; at--) {
                best[at] = best[at - 1];
                places[at] = places[at - 1];
            }
            best[at] = value;
            places[at] = i;
        }
    }
}

/* Whether all weights are at least 0 and finite, and some weight of each row is above 0. */
static bool weighty(const float *weights, npy_intp rows, npy_intp columns) {
    bool fine = true;
    for (npy_intp row = 0; row < rows; row++, weights += columns) {
        float most = 0;
        for (npy_intp i = 0; i < columns; i++) {
            fine &= weights[i] >= 0 && weights[i] <= FLT_MAX;
            most = weights[i] > most ? weights[i] : most;
        }
        fine &= most > 0;
    }
    return fine;
}

/* (capsule, weights, count) -> places drawn without replacement, of each row; None where these are not drawn here. */
PyObject *native_multinomial(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    enum { FEW = 64 };
    if (nargs != 3 || !PyCapsule_CheckExact(args[0]) || !PyLong_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "multinomial: expected a capsule, an array and an int, got %zd arguments", nargs);
    const npy_intp count = PyLong_AsSsize_t(args[2]);
    if (native_real_type(args[1]) != TYPE_F32 || count < 1 || count > FEW) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyArrayObject *x = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    const npy_intp columns = ndim ? PyArray_DIM(x, ndim - 1) : 0, rows = ndim == 2 ? PyArray_DIM(x, 0) : 1;
    const float *weights = PyArray_DATA(x);
    if (ndim < 1 || ndim > 2 || !PyArray_IS_C_CONTIGUOUS(x) || !rows || columns < count || columns > 1 << 24 ||
        !weighty(weights, rows, columns))
        Py_RETURN_NONE;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    if (!generator)
        return NULL;
    const npy_intp shape[2] = {ndim == 2 ? rows : count, count};
    PyArrayObject *made = native_empty(ndim, shape, TYPE_I64);
    float *drawn = native_scratch(columns * sizeof(float)), best[FEW];
    if (!made || !drawn) {
        Py_XDECREF(made);
        native_scratch_free(drawn, columns * sizeof(float));
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    if (rows * columns < MANY) {
        choose(generator->state, weights, rows, columns, count, drawn, best, PyArray_DATA(made));
    } else {
        Py_BEGIN_ALLOW_THREADS
        choose(generator->state, weights, rows, columns, count, drawn, best, PyArray_DATA(made));
        Py_END_ALLOW_THREADS
    }
    native_scratch_free(drawn, columns * sizeof(float));
    return (PyObject *)made;
}

/* The arguments of a draw that are given by name. */
typedef struct {
    PyObject *const *values;
    PyObject *names;
} draw_options;

/* Borrowed; NULL where it is not given. */
static PyObject *option(const draw_options *options, int name) {
    for (Py_ssize_t i = 0; options->names && i < PyTuple_GET_SIZE(options->names); i++)
        if (PyTuple_GET_ITEM(options->names, i) == names[name])
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

/* An array of draws of (kind, shape, dtype, generator, **options), bit for bit those of the generator's own method; None where that has
   to make them, or to say what is wrong. */
static PyObject *drawn(PyObject *const *args, const draw_options *options) {
    enum { FEW = 16, MOST_PLACES = 200000000 };
    double a, b;
    PyObject *shape = args[1], *generator = args[3];
    const int kind = kind_named(args[0]);
    if (kind == MULTINOMIAL) {
        PyObject *weights = option(options, O_WEIGHTS), *again = option(options, O_REPLACEMENT);
        PyObject *count = PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) == 1 ? PyTuple_GET_ITEM(shape, 0) : NULL;
        if (!weights || !count || !PyLong_CheckExact(count) || (again != Py_False && size_of(shape, 2) != 1))
            Py_RETURN_NONE;
        PyObject *const given[] = {generator, draw_places, weights, count};
        return PyObject_VectorcallMethod(names[A_LEND], given, 4, NULL);
    }
    const npy_intp count = kind == UNKNOWN ? -1 : size_of(shape, NPY_MAX_INTP);
    if (count < 0 || !parameters(kind, options, &a, &b) ||
        (kind == PERMUTATION && (count < 2 || count > MOST_PLACES || PyTuple_GET_SIZE(shape) != 1)))
        Py_RETURN_NONE;
    PyObject *each = kind == BERNOULLI ? option(options, O_PROBABILITY) : NULL;
    PyObject *dtype = PyObject_GetAttr(args[2], names[A_NUMPY]), *made = NULL;
    PyObject *first = each ? Py_NewRef(each) : PyFloat_FromDouble(a), *second = PyFloat_FromDouble(b);
    if (dtype && first && second) {
        const bool serial = kind > MULTINOMIAL || (kind == NORMAL && count < FEW);
        PyObject *const words[] = {generator, draw_words, args[0], shape, dtype, first, second};
        PyObject *const normals[] = {generator, draw_normals, args[0], shape, dtype, first, second};
        made = serial ? PyObject_VectorcallMethod(names[A_LEND_NORMAL], normals, 7, NULL)
                      : PyObject_VectorcallMethod(names[A_LEND], words, 7, NULL);
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

/* A method that draws behind a look at what it is given. */
PyObject *native_drawing(PyObject *module, PyObject *method) {
    static PyMethodDef definition = {"random", (PyCFunction)(void (*)(void))run_random, METH_FASTCALL | METH_KEYWORDS,
                                     "A new array of random numbers: drawn in C, or by the generator itself."};
    if (!draw_places && (!(draw_words = PyObject_GetAttrString(module, "random")) ||
                         !(draw_normals = PyObject_GetAttrString(module, "serial_normals")) ||
                         !(draw_places = PyObject_GetAttrString(module, "multinomial"))))
        return NULL;
    return PyCFunction_New(&definition, method);
}

int random_init(void) {
    loops = PICK(random_loops);
    for (int i = 0; i < NAMES; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(TEXTS[i])))
            return -1;
    return 0;
}
