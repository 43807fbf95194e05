/* Random numbers: new arrays of draws from the state of a NumPy generator, whose lock the caller holds. */
#include "random.h"

#include "rows.h"

#include <string.h>

DECLARE_LOOPS(random_loops, random_loops);

static const random_loops *loops;
static PyObject *uniform_name, *normal_name, *bernoulli_name, *integers_name;

enum { MANY = 1 << 14 }; /* numbers for which it is worth letting go of the GIL */

/* What NumPy's capsule holds begins with the state. */
typedef struct {
    void *state;
} bit_generator;

typedef enum { UNIFORM, NORMAL, BERNOULLI, INTEGERS, UNKNOWN } draw_kind;

static draw_kind kind_named(PyObject *name) {
    return name == uniform_name ? UNIFORM : name == normal_name ? NORMAL : name == bernoulli_name ? BERNOULLI
           : name == integers_name ? INTEGERS : UNKNOWN;
}

static void fill(draw_kind kind, native_type type, twister_state *state, void *out, npy_intp count, double a, double b) {
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
    else
        loops->integers(state, out, count, (int64_t)a, (uint32_t)b);
}

/* (capsule, kind, shape, dtype, a, b) -> an array, or None where these are not drawn here. The numbers are low and high,
   mean and deviation, the probability and the value of a one, or the least integer and how many there are. */
PyObject *native_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NATIVE_DIMS], count = 1;
    double a, b;
    if (nargs != 6 || !PyCapsule_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "random: expected a capsule and five more arguments, got %zd in all", nargs);
    draw_kind kind = kind_named(args[1]);
    int ndim = native_sizes(args[2], shape, NATIVE_DIMS);
    native_type type = native_descr_type(args[3]);
    bool real = type == TYPE_F32 || type == TYPE_F64;
    if (kind == UNKNOWN || ndim < 0 || !native_double(args[4], &a) || !native_double(args[5], &b) ||
        !(kind == INTEGERS ? type == TYPE_I64 : kind == NORMAL ? type == TYPE_F32 : real))
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
    if (count < MANY) {
        fill(kind, type, generator->state, out, count, a, b);
    } else {
        Py_BEGIN_ALLOW_THREADS
        fill(kind, type, generator->state, out, count, a, b);
        Py_END_ALLOW_THREADS
    }
    return (PyObject *)made;
}

int random_init(void) {
    loops = PICK(random_loops);
    uniform_name = PyUnicode_InternFromString("uniform");
    normal_name = PyUnicode_InternFromString("normal");
    bernoulli_name = PyUnicode_InternFromString("bernoulli");
    integers_name = PyUnicode_InternFromString("integers");
    return uniform_name && normal_name && bernoulli_name && integers_name ? 0 : -1;
}
