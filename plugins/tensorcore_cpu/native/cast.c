/* Casts and copies. */
#include "cast.h"

#include "plan.h"

DECLARE_LOOPS(cast_loops, cast_loops);

static const cast_loops *casts;
static PyObject *dtype_name, *numpy_name;

enum {
    GRAIN = 1 << 15,
    PIECE = 1024, /* elements that pass through float at a time, between a half type and anything but float */
};

typedef struct {
    native_loop first, second;
} through_float;

static void run_loop(void *loop, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    (*(native_loop *)loop)(data, steps, count);
}

static void run_through_float(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const through_float *by = context;
    float space[PIECE];
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        char *const in[2] = {data[0] + begin * steps[0], (char *)space};
        char *const out[2] = {(char *)space, data[1] + begin * steps[1]};
        const ptrdiff_t in_steps[2] = {steps[0], sizeof *space}, out_steps[2] = {sizeof *space, steps[1]};
        by->first(in, in_steps, piece);
        by->second(out, out_steps, piece);
    }
}

/* Whether two elements of the array lie in one place: NumPy lays the copy out in an order of its own. */
static bool repeats(PyArrayObject *array) {
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (!PyArray_STRIDE(array, i) && PyArray_DIM(array, i) > 1)
            return true;
    return false;
}

static PyObject *copied(PyArrayObject *array, native_type from, native_type to, PyObject *out) {
    native_loop loop = casts->cast[from][to];
    through_float by = {casts->cast[from][TYPE_F32], casts->cast[TYPE_F32][to]};
    /* Twice rounded: NumPy rounds a double to float16 once. */
    if (!loop && (from == TYPE_F64 || !by.first || !by.second))
        return NULL;
    native_operand operand = {.array = array};
    native_plan plan;
    if (!native_plan_inputs(&plan, &operand, 1))
        return NULL;
    if (out && PyArray_Check(out) && !native_plan_stretch(&plan, (PyArrayObject *)out))
        return NULL;
    PyObject *made = native_plan_result(&plan, &operand, to, out);
    if (!made)
        return NULL;
    plan.copies = from == to;
    if (loop)
        native_plan_run(&plan, GRAIN, run_loop, &loop);
    else
        native_plan_run(&plan, GRAIN, run_through_float, &by);
    return made;
}

static PyObject *run_cast(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *dtype;
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, &dtype_name, 1, &dtype) || !dtype)
        return NULL;
    native_type from = native_array_type(args[0]);
    if (from == TYPE_NONE || repeats((PyArrayObject *)args[0]))
        return NULL;
    PyObject *descr = PyObject_GetAttr(dtype, numpy_name);
    if (!descr)
        return NULL;
    native_type to = native_descr_type(descr);
    Py_DECREF(descr);
    return to == TYPE_NONE ? NULL : copied((PyArrayObject *)args[0], from, to, NULL);
}

static PyObject *run_clone(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type = nargs == 1 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    return type == TYPE_NONE || repeats((PyArrayObject *)args[0]) ? NULL
                                                                  : copied((PyArrayObject *)args[0], type, type, NULL);
}

static PyObject *run_contiguous(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames) {
    native_type type = nargs == 1 && !kwnames ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE)
        return NULL;
    PyArrayObject *array = (PyArrayObject *)args[0], *out = native_empty(PyArray_NDIM(array), PyArray_DIMS(array), type);
    if (!out)
        return NULL;
    PyObject *made = copied(array, type, type, (PyObject *)out);
    Py_DECREF(out);
    return made;
}

/* Into the memory of the first array. */
static PyObject *run_copy(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs != 2 || kwnames)
        return NULL;
    native_type to = native_array_type(args[0]), from = native_array_type(args[1]);
    return to == TYPE_NONE || from == TYPE_NONE ? NULL : copied((PyArrayObject *)args[1], from, to, args[0]);
}

int cast_init(void) {
    casts = PICK(cast_loops);
    dtype_name = PyUnicode_InternFromString("dtype");
    numpy_name = PyUnicode_InternFromString("numpy");
    return dtype_name && numpy_name ? 0 : -1;
}

const native_spec cast_kernels[] = {
    {"cast", run_cast, NULL},
    {"clone", run_clone, NULL},
    {"contiguous", run_contiguous, NULL},
    {"copy", run_copy, NULL},
    {NULL, NULL, NULL},
};
