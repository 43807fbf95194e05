/* Random numbers: new arrays of draws from the state of a NumPy generator, whose lock the caller holds. */
#include "draws.h"
#include "random.h"

#include "cast.h"
#include "halves.h"
#include "rows.h"

#include <math.h>
#include <string.h>

DECLARE_LOOPS(random_loops, random_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const random_loops *loops;

/* The first are those of kinds, in their order. */
static const char *const TEXTS[DRAW_NAMES] = {
    "uniform", "normal", "bernoulli", "integers", "exponential", "permutation", "cauchy", "geometric", "random", "slopes", "multinomial",
    "serial_normal", "log_normal", "gamma", "poisson", "binomial", "low", "high", "mean", "std", "probability", "one", "rate", "weights", "replacement", "median",
    "sigma", "numpy", "lend", "lend_normal", "input", "alpha", "count",
};
PyObject *draw_names[DRAW_NAMES];

int draw_kind(PyObject *name) {
    int kind = 0;
    while (kind < UNKNOWN && name != draw_names[kind])
        kind++;
    return kind;
}

enum { BLOCK = FEW_NORMALS }; /* normals that are made together */

/* Ones, and where x is at most 0 a number from low to high. */
#define SLOPES_OF(suffix, type)                                                                               \
    static void slopes_##suffix(twister_state *state, const type *x, type *out, npy_intp count, double low, double high) { \
        enum { PIECE = 512 };                                                                                 \
        double drawn[PIECE];                                                                                  \
        for (npy_intp begin = 0; begin < count; begin += PIECE) {                                             \
            const npy_intp end = count - begin < PIECE ? count : begin + PIECE;                               \
            npy_intp below = 0;                                                                               \
            for (npy_intp i = begin; i < end; i++)                                                            \
                below += x[i] <= 0;                                                                           \
            loops->uniform_f64(state, drawn, below, low, high);                                               \
            for (npy_intp i = begin, k = 0; i < end; i++)                                                     \
                out[i] = x[i] <= 0 ? (type)drawn[k++] : 1;                                                    \
        }                                                                                                     \
    }
SLOPES_OF(f32, float)
SLOPES_OF(f64, double)

/* Blocks of normals by the C library's functions, which PyTorch calls; of an uneven count the last block is drawn anew. */
static void normal_f64(twister_state *state, double *out, npy_intp count, double mean, double deviation) {
    const double two_pi = 2.0 * 3.141592653589793;
    loops->uniform_f64(state, out, count, 0, 1);
    for (npy_intp begin = 0; begin < count; begin += BLOCK) {
        if (begin + BLOCK > count)
            loops->uniform_f64(state, out + (begin = count - BLOCK), BLOCK, 0, 1);
        for (double *x = out + begin; x < out + begin + BLOCK / 2; x++) {
            const double radius = sqrt(-2.0 * log(1.0 - x[0])), angle = two_pi * x[BLOCK / 2];
            x[0] = radius * cos(angle);
            x[BLOCK / 2] = radius * sin(angle);
        }
    }
    for (npy_intp i = 0; i < count; i++)
        out[i] = fma(out[i], deviation, mean);
}

static void fill_at_once(int kind, native_type type, twister_state *state, void *out, npy_intp count, double a, double b,
                         const void *each) {
    if (kind == UNIFORM && type == TYPE_F32)
        loops->uniform_f32(state, out, count, (float)a, (float)b);
    else if (kind == UNIFORM)
        loops->uniform_f64(state, out, count, a, b);
    else if (kind == NORMAL && type == TYPE_F64)
        normal_f64(state, out, count, a, b);
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
    else if (kind == SLOPES && type == TYPE_F32)
        slopes_f32(state, each, out, count, a, b);
    else if (kind == SLOPES)
        slopes_f64(state, each, out, count, a, b);
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

/* The lower end in the place of the upper one, to which rounding may lead, zeros of both signs being one number. */
static void leave_out(uint16_t *x, npy_intp count, const uint16_t *ends) {
    const uint16_t mask = ends[1] & 0x7fff ? 0xffff : 0x7fff, high = ends[1] & mask;
    for (npy_intp i = 0; i < count; i++)
        x[i] = (x[i] & mask) == high ? ends[0] : x[i];
}

/* Halves are rounded floats; of an uneven count of normals the last block is drawn once, over some of the one before. */
static void fill_halves(int kind, native_type type, twister_state *state, char *out, npy_intp count, double a, double b,
                        const char *each) {
    enum { PIECE = 512 };
    float made[PIECE], chances[PIECE];
    const native_loop in = PICK(cast_loops)->cast[type][TYPE_F32], back = PICK(cast_loops)->cast[TYPE_F32][type];
    const ptrdiff_t half = TYPE_SIZE[type], full = sizeof(float);
    const npy_intp whole = kind == NORMAL ? count / BLOCK * BLOCK : count;
    const float limits[2] = {(float)a, (float)b};
    uint16_t ends[2];
    back((char *const[]){(char *)limits, (char *)ends}, (const ptrdiff_t[]){full, half}, 2);
    if (kind == RANDOM) { /* up to where they have all whole numbers */
        kind = INTEGERS;
        a = 0;
        b = type == TYPE_F16 ? (1 << 11) + 1 : (1 << 8) + 1;
    }
    for (npy_intp begin = 0, piece; begin < count; begin += piece) {
        piece = whole - begin < PIECE ? whole - begin : PIECE;
        if (!piece)
            begin = count - (piece = BLOCK);
        if (each)
            in((char *const[]){(char *)each + begin * half, (char *)chances}, (const ptrdiff_t[]){half, full}, piece);
        fill_at_once(kind, TYPE_F32, state, made, piece, a, b, each ? chances : NULL);
        back((char *const[]){(char *)made, out + begin * half}, (const ptrdiff_t[]){full, half}, piece);
        if (kind == UNIFORM)
            leave_out((uint16_t *)out + begin, piece, ends);
    }
}

/* The same, without the GIL where it takes a while. */
static void fill(int kind, native_type type, twister_state *state, void *out, npy_intp count, double a, double b,
                 const void *each) {
    PyThreadState *thread = count < MANY ? NULL : PyEval_SaveThread();
    if (native_is_half(type))
        fill_halves(kind, type, state, out, count, a, b, each);
    else
        fill_at_once(kind, type, state, out, count, a, b, each);
    if (thread)
        PyEval_RestoreThread(thread);
}

#define ALL_WITHIN(type)                                              \
    for (npy_intp i = 0; i < size; i++) {                             \
        const type p = ((const type *)PyArray_DATA(x))[i];            \
        within &= p >= 0 && p <= 1;                                   \
    }

/* The same of halves, by their bits: up to those of 1, or of the other zero. */
static bool halves_within(const uint16_t *x, npy_intp size, uint16_t one) {
    bool within = true;
    for (npy_intp i = 0; i < size; i++)
        within &= x[i] <= one || x[i] == 0x8000;
    return within;
}

/* Whether it is an array of that type and shape which lies in one piece. */
static bool lies_so(PyObject *object, native_type type, int ndim, const npy_intp *shape) {
    PyArrayObject *x = (PyArrayObject *)object;
    return native_array_type(object) == type && PyArray_NDIM(x) == ndim && PyArray_CompareLists(PyArray_DIMS(x), shape, ndim) &&
           PyArray_IS_C_CONTIGUOUS(x);
}

/* The same, and whether all of it is from 0 to 1. */
static bool probabilities(PyObject *object, native_type type, int ndim, const npy_intp *shape) {
    PyArrayObject *x = (PyArrayObject *)object;
    if (!lies_so(object, type, ndim, shape))
        return false;
    const npy_intp size = PyArray_SIZE(x);
    bool within = true;
    if (native_is_half(type)) {
        within = halves_within(PyArray_DATA(x), size, type == TYPE_BF16 ? 0x3f80 : 0x3c00);
    } else if (type == TYPE_F32) {
        ALL_WITHIN(float)
    } else {
        ALL_WITHIN(double)
    }
    return within;
}

/* Whether there is a loop for numbers of that type. */
static bool drawn_as(int kind, native_type type, double a, double b) {
    const double whole = type == TYPE_F16 ? 1 << 11 : type == TYPE_BF16 ? 1 << 8 : 1 << 24; /* up to which they have all whole numbers */
    switch (kind) {
    case NORMAL:
        return native_is_floating(type);
    case PERMUTATION:
        return type == TYPE_I64;
    case INTEGERS:
        return type == TYPE_I64 || ((type == TYPE_F32 || native_is_half(type)) && -whole <= a && a + b <= whole);
    case RANDOM:
        return type == TYPE_I64 || native_is_floating(type);
    case UNIFORM:
        return type == TYPE_F32 || type == TYPE_F64 || (native_is_half(type) && a == (float)a && b == (float)b); /* ends rounded once */
    default:
        return native_is_floating(type);
    }
}

/* (capsule, kind, shape, dtype, a, b[, each]) -> an array, or None where these are not drawn here. The numbers are low and high,
   mean and deviation, the probability (which may be an array of them) and the value of a one, the least integer and how many
   there are, what an exponential draw is times or a geometric one is over, or median and half width. Beside low and high of slopes
   stands the array whose elements they are for. Complex numbers are drawn part by part, normal ones with half the variance in each. */
PyObject *native_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NATIVE_DIMS], count = 1;
    double a, b;
    if (nargs < 6 || nargs > 7 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "random: expected a capsule and five or six more arguments, got %zd in all", nargs);
    int kind = draw_kind(args[1]);
    int ndim = native_sizes(args[2], shape, NATIVE_DIMS);
    const int number = PyArray_DescrCheck(args[3]) && PyArray_ISNBO(((PyArray_Descr *)args[3])->byteorder) ? ((PyArray_Descr *)args[3])->type_num : NPY_NOTYPE;
    const bool pairs = (number == NPY_CFLOAT || number == NPY_CDOUBLE) && (kind == NORMAL || kind == UNIFORM);
    native_type type = !pairs ? native_descr_type(args[3]) : number == NPY_CFLOAT ? TYPE_F32 : TYPE_F64;
    if (kind == BERNOULLI && PyArray_Check(args[4])) {
        if (!native_is_floating(type) || ndim < 0 || !probabilities(args[4], type, ndim, shape))
            Py_RETURN_NONE;
        kind = FLIPS;
        a = 0;
    } else if (!native_double(args[4], &a)) {
        Py_RETURN_NONE;
    }
    if (kind >= MULTINOMIAL || ndim < 0 || !native_double(args[5], &b) || !drawn_as(kind, type, a, b) || (kind == SLOPES) != (nargs == 7) ||
        (kind == SLOPES && !lies_so(args[6], type, ndim, shape)))
        Py_RETURN_NONE;
    PyObject *each = kind == FLIPS ? args[4] : kind == SLOPES ? args[6] : NULL;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0 || (shape[i] && count > NPY_MAX_INTP / 16 / shape[i]))
            Py_RETURN_NONE;
        count *= shape[i];
    }
    count *= 1 + pairs;
    if (!count || (kind == NORMAL && count < FEW_NORMALS))
        Py_RETURN_NONE;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    if (!generator)
        return NULL;
    if (pairs && kind == NORMAL)
        b /= sqrt(2.0);
    PyArrayObject *made = (pairs ? native_empty_complex : native_empty)(ndim, shape, type);
    if (!made)
        return NULL;
    fill(kind, type, generator->state, PyArray_DATA(made), count, a, b,
         each ? PyArray_DATA((PyArrayObject *)each) : NULL);
    return (PyObject *)made;
}

/* The elements of an array that lies in one piece and may be written, and their type; 0 of all others. */
static npy_intp writable(PyObject *object, native_type *type) {
    PyArrayObject *x = (PyArrayObject *)object;
    *type = native_array_type(object);
    return *type != TYPE_NONE && PyArray_IS_C_CONTIGUOUS(x) && PyArray_ISWRITEABLE(x) ? PyArray_SIZE(x) : 0;
}

/* (capsule, array, kind, a, b) -> the array, over which numbers are drawn, or None where these are not drawn here: as native_random. */
PyObject *native_overwrite_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    native_type type;
    double a, b;
    if (nargs != 5 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "overwrite_random: expected a capsule and four more arguments, got %zd in all", nargs);
    const int kind = draw_kind(args[2]);
    const npy_intp count = writable(args[1], &type);
    if (!count || kind >= MULTINOMIAL || kind == PERMUTATION || kind == SLOPES || (kind == NORMAL && count < FEW_NORMALS) ||
        !native_double(args[3], &a) || !native_double(args[4], &b) || !drawn_as(kind, type, a, b))
        Py_RETURN_NONE;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    if (!generator)
        return NULL;
    fill(kind, type, generator->state, PyArray_DATA((PyArrayObject *)args[1]), count, a, b, NULL);
    return Py_NewRef(args[1]);
}

/* Normals one by one, each of which float64 is, or what e is to the power of each. Begins with `kept` where there is one, and leaves the
   second of the last pair there; whether there is any. */
static bool normals_at_once(twister_state *state, bool raised, native_type type, void *out, npy_intp count, double mean,
                            double deviation, bool has, double *kept) {
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

/* The same, without the GIL where it takes a while: the array, of which the reference is taken, and the second of the last pair or None. */
static PyObject *serial_normals(PyObject *capsule, PyObject *kept, PyObject *kind, native_type type, PyArrayObject *made, double mean,
                                double deviation) {
    const bit_generator *generator = PyCapsule_GetPointer(capsule, "BitGenerator");
    if (!generator || !made) {
        Py_XDECREF(made);
        return NULL;
    }
    const bool has = kept != Py_None, raised = kind == draw_names[LOG_NORMAL];
    const npy_intp count = PyArray_SIZE(made);
    double last = has ? PyFloat_AS_DOUBLE(kept) : 0;
    void *out = PyArray_DATA(made);
    bool further;
    if (count < MANY) {
        further = normals_at_once(generator->state, raised, type, out, count, mean, deviation, has, &last);
    } else {
        Py_BEGIN_ALLOW_THREADS
        further = normals_at_once(generator->state, raised, type, out, count, mean, deviation, has, &last);
        Py_END_ALLOW_THREADS
    }
    PyObject *left = further ? PyFloat_FromDouble(last) : Py_NewRef(Py_None), *both = left ? PyTuple_Pack(2, made, left) : NULL;
    Py_XDECREF(left);
    Py_DECREF(made);
    return both;
}

/* Such an answer whose floats become a shorter type; takes the reference. */
static PyObject *narrowed(PyObject *both, native_type type) {
    PyArrayObject *wide = both ? (PyArrayObject *)PyTuple_GET_ITEM(both, 0) : NULL;
    PyArrayObject *made = wide ? native_empty(PyArray_NDIM(wide), PyArray_DIMS(wide), type) : NULL;
    PyObject *answer = NULL;
    if (made) {
        char *const data[] = {PyArray_BYTES(wide), PyArray_BYTES(made)};
        PICK(cast_loops)->cast[TYPE_F32][type](data, (const ptrdiff_t[]){4, 2}, PyArray_SIZE(wide));
        answer = PyTuple_Pack(2, made, PyTuple_GET_ITEM(both, 1));
    }
    Py_XDECREF(made);
    Py_XDECREF(both);
    return answer;
}

/* (capsule, kept, kind, shape, dtype, mean, deviation) -> an array and the second of the last pair of normals, or None where there is
   none left over: float64 normals one by one, the `kept` one first unless it is None. None where these are not drawn here. */
PyObject *native_serial_normals(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NATIVE_DIMS], count = 1;
    double mean, deviation;
    if (nargs != 7 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "serial_normals: expected a capsule and six more arguments, got %zd in all", nargs);
    const int ndim = native_sizes(args[3], shape, NATIVE_DIMS);
    native_type type = native_descr_type(args[4]);
    const native_type wanted = type;
    type = native_is_half(wanted) ? TYPE_F32 : wanted;
    for (int i = 0; i < ndim; i++)
        count = shape[i] > 0 && count <= NPY_MAX_INTP / 16 / shape[i] ? count * shape[i] : 0;
    if (ndim < 0 || count < 1 || (type != TYPE_F32 && type != TYPE_F64) || !native_double(args[5], &mean) ||
        !native_double(args[6], &deviation) || (args[1] != Py_None && !PyFloat_CheckExact(args[1])))
        Py_RETURN_NONE;
    PyObject *both = serial_normals(args[0], args[1], args[2], type, native_empty(ndim, shape, type), mean, deviation);
    return type == wanted ? both : narrowed(both, wanted);
}

/* (capsule, kept, array, kind, mean, deviation) -> the same of the array, over which they are drawn. */
PyObject *native_overwrite_normals(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    native_type type;
    double mean, deviation;
    if (nargs != 6 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "overwrite_normals: expected a capsule and five more arguments, got %zd in all", nargs);
    if (!writable(args[2], &type) || (type != TYPE_F32 && type != TYPE_F64) || !native_double(args[4], &mean) ||
        !native_double(args[5], &deviation) || (args[1] != Py_None && !PyFloat_CheckExact(args[1])))
        Py_RETURN_NONE;
    return serial_normals(args[0], args[1], args[3], type, (PyArrayObject *)Py_NewRef(args[2]), mean, deviation);
}

int random_init(void) {
    loops = PICK(random_loops);
    return native_intern(draw_names, TEXTS, DRAW_NAMES);
}
