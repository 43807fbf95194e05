/* Draws that take as many random words as it takes: Poisson, binomial and gamma numbers, number for number those of
   tensorcore/backend/rejection.py, which says whose methods they are. */
#include "draws.h"
#include "random.h"

#include "rows.h"

#include <float.h>
#include <math.h>

DECLARE_LOOPS(random_loops, random_loops);

enum { KEEPS_GIL = 64 /* elements up to which it is not let go of */, LEAST = 8, BLOCK = 256 };

/* Uniform float64 numbers, drawn in blocks, and normals in pairs. */
typedef struct {
    const random_loops *loops;
    twister_state *state, before; /* before the block */
    double values[BLOCK];
    int at, block;
    double kept;
    bool has;
} stream;

static double uniform(stream *from) {
    if (from->at == from->block) {
        from->before = *from->state;
        from->loops->uniform_f64(from->state, from->values, from->block, 0, 1);
        from->at = 0;
    }
    return from->values[from->at++];
}

/* Leaves the state where the last number was taken. */
static void end_stream(stream *from) {
    if (from->before.position < 0)
        return;
    *from->state = from->before;
    if (from->at)
        from->loops->uniform_f64(from->state, from->values, from->at, 0, 1);
}

static double normal(stream *from) {
    if ((from->has = !from->has)) {
        const double angle = 2.0 * 3.141592653589793 * uniform(from), radius = sqrt(-2.0 * log1p(-uniform(from)));
        from->kept = radius * sin(angle);
        return radius * cos(angle);
    }
    return from->kept;
}

static double log_factorial(double k) {
    int sign;
    return lgamma_r(k + 1.0, &sign);
}

static double poisson(stream *from, double rate) {
    if (rate == 0)
        return 0;
    if (rate < 10) {
        const double end = exp(-rate);
        double product = 1, count = 0;
        while ((product *= uniform(from)) > end)
            count++;
        return count;
    }
    const double logarithm = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = uniform(from) - 0.5, v = uniform(from), us = 0.5 - fabs(u);
        const double k = us ? floor((2 * a / us + b) * u + rate + 0.43) : -1;
        if (us >= 0.07 && v <= accepted)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v) + log(inverse) - log(a / (us * us) + b) <= -rate + k * logarithm - log_factorial(k))
            return k;
    }
}

/* By the gaps between successes, which are geometric. */
static double few(stream *from, double count, double probability) {
    const double logarithm = log1p(-probability);
    for (double total = 0, found = 0;; found++) {
        const double u = uniform(from);
        total += u ? ceil(log(u) / logarithm) : INFINITY;
        if (total > count)
            return found;
    }
}

/* What Stirling's formula of log(k!) lacks. */
static double tail(double k) {
    static const double FIRST[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                   0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
    if (k <= 9)
        return FIRST[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* By transformed rejection. */
static double many(stream *from, double count, double probability) {
    const double deviation = sqrt(count * probability * (1 - probability)), b = 1.15 + 2.53 * deviation;
    const double a = -0.0873 + 0.0248 * b + 0.01 * probability, c = count * probability + 0.5, accepted = 0.92 - 4.2 / b;
    const double ratio = probability / (1 - probability), alpha = (2.83 + 5.1 / b) * deviation, m = floor((count + 1) * probability);
    for (;;) {
        const double u = uniform(from) - 0.5, v = uniform(from), us = 0.5 - fabs(u);
        const double k = us ? floor((2 * a / us + b) * u + c) : -1;
        if (us >= 0.07 && v <= accepted)
            return k;
        if (k < 0 || k > count)
            continue;
        const double left = log(v * alpha / (a / (us * us) + b));
        const double bound = (m + 0.5) * log((m + 1) / (ratio * (count - m + 1))) + (count + 1) * log((count - m + 1) / (count - k + 1)) +
                             (k + 0.5) * log(ratio * (count - k + 1) / (k + 1)) + tail(m) + tail(count - m) - tail(k) - tail(count - k);
        if (left <= bound)
            return k;
    }
}

static double binomial(stream *from, double count, double probability) {
    if (count <= 0 || probability <= 0)
        return 0;
    if (probability >= 1)
        return count;
    const double low = probability < 1.0 - probability ? probability : 1.0 - probability;
    const double made = count * low >= 10 ? many(from, count, low) : few(from, count, low);
    return probability <= 0.5 ? made : count - made;
}

/* PyTorch writes some as float constants in a kernel that otherwise computes in double precision. */
static double gamma_of(stream *from, double alpha, bool single) {
    const double third = (double)(1.0f / 3.0f), squeeze = (double)0.0331f;
    double scale = 1;
    if (alpha < 1) {
        if (alpha == 0)
            return 0;
        const double power = single ? (double)(1.0f / (float)alpha) : 1.0 / alpha;
        scale = pow(1.0 - uniform(from), power);
        alpha = single ? (double)((float)alpha + 1.0f) : alpha + 1.0;
    }
    const double d = single ? (double)((float)alpha - (float)third) : alpha - third, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double x = normal(from), y = 1.0 + c * x;
        if (y <= 0)
            continue;
        const double v = y * y * y, u = 1.0 - uniform(from), square = x * x;
        if (u < 1.0 - squeeze * square * square || log(u) < 0.5 * square + d * (1.0 - v + log(v)))
            return scale * d * v;
    }
}

static double at(PyArrayObject *x, npy_intp i) {
    return PyArray_ITEMSIZE(x) == sizeof(float) ? ((const float *)PyArray_DATA(x))[i] : ((const double *)PyArray_DATA(x))[i];
}

/* Whether all parameters are such as numbers can be drawn for, and some number takes a word: else Python says what is wrong. */
static bool drawable(int kind, PyArrayObject *first, PyArrayObject *second) {
    bool some = false;
    for (npy_intp i = 0; i < PyArray_SIZE(first); i++) {
        const double x = at(first, i), p = second ? at(second, i) : 0;
        if (!(x >= 0) || isinf(x) || isnan(p))
            return false;
        some |= x > 0 && (kind != BINOMIAL || (p > 0 && p < 1));
    }
    return some;
}

static void draw_each(int kind, stream *from, PyArrayObject *first, PyArrayObject *second, native_type type, void *out) {
    const npy_intp count = PyArray_SIZE(first);
    from->block = from->at = count * 2 < LEAST ? LEAST : count * 2 < BLOCK ? (int)count * 2 : BLOCK;
    from->before.position = -1; /* of no state */
    for (npy_intp i = 0; i < count; i++) {
        const double x = at(first, i);
        double made = kind == POISSON ? poisson(from, x) : kind == BINOMIAL ? binomial(from, x, at(second, i)) : gamma_of(from, x, type == TYPE_F32);
        if (type == TYPE_F32)
            ((float *)out)[i] = kind == GAMMA && (float)made < FLT_MIN ? FLT_MIN : (float)made;
        else
            ((double *)out)[i] = kind == GAMMA && made < DBL_MIN ? DBL_MIN : made;
    }
    end_stream(from);
}

/* (capsule, kept, kind, shape, dtype, first[, second]) -> an array and the second of the last pair of normals, or None where there is none
   left over; None where these are not drawn here. */
PyObject *native_rejections(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs < 6 || nargs > 7 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "rejections: expected a capsule and five or six more arguments, got %zd in all", nargs);
    npy_intp shape[NATIVE_DIMS];
    const int ndim = native_sizes(args[3], shape, NATIVE_DIMS), kind = draw_kind(args[2]);
    const native_type type = native_descr_type(args[4]);
    PyArrayObject *inputs[2] = {(PyArrayObject *)args[5], nargs == 7 ? (PyArrayObject *)args[6] : NULL}, *made = NULL;
    if (ndim < 0 || (type != TYPE_F32 && type != TYPE_F64) || (args[1] != Py_None && !PyFloat_CheckExact(args[1])) ||
        (kind == BINOMIAL) != (nargs == 7))
        Py_RETURN_NONE;
    for (int k = 0; k < nargs - 5; k++)
        if (native_real_type(args[5 + k]) == TYPE_NONE || PyArray_NDIM(inputs[k]) != ndim ||
            !PyArray_CompareLists(PyArray_DIMS(inputs[k]), shape, ndim))
            Py_RETURN_NONE;
    PyArrayObject *first = native_dense(args[5]), *second = nargs == 7 ? native_dense(args[6]) : NULL;
    PyObject *both = NULL, *left = NULL;
    const bit_generator *generator = PyCapsule_GetPointer(args[0], "BitGenerator");
    if (generator && first && (second || nargs == 6)) {
        if (!drawable(kind, first, second)) {
            both = Py_NewRef(Py_None);
        } else if ((made = native_empty(ndim, shape, type))) {
            stream from;
            from.loops = PICK(random_loops);
            from.state = generator->state;
            from.has = args[1] != Py_None;
            from.kept = from.has ? PyFloat_AS_DOUBLE(args[1]) : 0;
            if (PyArray_SIZE(first) <= KEEPS_GIL) {
                draw_each(kind, &from, first, second, type, PyArray_DATA(made));
            } else {
                Py_BEGIN_ALLOW_THREADS;
                draw_each(kind, &from, first, second, type, PyArray_DATA(made));
                Py_END_ALLOW_THREADS;
            }
            left = from.has ? PyFloat_FromDouble(from.kept) : Py_NewRef(Py_None);
            both = left ? PyTuple_Pack(2, made, left) : NULL;
        }
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(made);
    Py_XDECREF(left);
    return both;
}
