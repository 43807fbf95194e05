/* Sums of a few weighted slices along a dim, as resized images are, and the adjoint. */
#include "blend.h"

#include "native.h"
#include "rows.h"

#include <stdlib.h>

DECLARE_LOOPS(blend_loops, blend_loops);

enum { DIM, SIZE, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 14 }; /* multiplications that are worth a thread */

typedef struct {
    blending job;
    void (*run)(const blending *job, ptrdiff_t begin, ptrdiff_t end);
} blend_run;

static void blend_body(void *context, npy_intp begin, npy_intp end) {
    const blend_run *work = context;
    work->run(&work->job, begin, end);
}

/* (x, index, weights), and with data their adjoint, of x of `size` slices: index and weights are (taps, slices). */
static PyObject *run_blend(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool back = kernel->data != NULL;
    PyObject *given[OPTIONS];
    const native_type type = nargs == 3 ? native_real_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, given) ||
        native_array_type(args[1]) != TYPE_I64 || native_array_type(args[2]) != type || !given[DIM] || !PyLong_CheckExact(given[DIM]) ||
        (back && (!given[SIZE] || !PyLong_CheckExact(given[SIZE]))))
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *index = (PyArrayObject *)args[1], *weights = (PyArrayObject *)args[2];
    const npy_intp dim = PyLong_AsSsize_t(given[DIM]), asked = back ? PyLong_AsSsize_t(given[SIZE]) : 0;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    const int ndim = PyArray_NDIM(x);
    if (dim < 0 || dim >= ndim || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(index) || !PyArray_IS_C_CONTIGUOUS(weights) ||
        PyArray_NDIM(index) != 2 || !PyArray_SAMESHAPE(index, weights) || !PyArray_SIZE(index) || !PyArray_SIZE(x))
        return NULL;
    const npy_intp size = back ? asked : PyArray_DIM(x, (int)dim), count = PyArray_DIM(index, 1), taps = PyArray_DIM(index, 0);
    if (size < 1 || size > INT32_MAX || (back && PyArray_DIM(x, (int)dim) != count) ||
        !native_inside(PyArray_DATA(index), PyArray_SIZE(index), size))
        return NULL;
    npy_intp shape[NATIVE_DIMS], before, inner;
    for (int i = 0; i < ndim; i++)
        shape[i] = i == dim ? (back ? size : count) : PyArray_DIM(x, i);
    native_around(x, (int)dim, &before, &inner);
    int32_t *at = malloc((size_t)(taps * count) * sizeof *at);
    PyArrayObject *made = at ? native_empty(ndim, shape, type) : NULL;
    if (made) {
        for (npy_intp i = 0; i < taps * count; i++)
            at[i] = (int32_t)((const int64_t *)PyArray_DATA(index))[i];
        const blend_loops *loops = PICK(blend_loops);
        blend_run work = {{.x = PyArray_DATA(back ? made : x), .made = PyArray_DATA(back ? x : made), .index = at,
                           .weights = PyArray_DATA(weights), .taps = taps, .size = size, .count = count, .inner = inner},
                          back ? loops->spread[type] : loops->blend[type]};
        native_evenly(before, native_grain(GRAIN, taps * count * inner), blend_body, &work);
    }
    free(at);
    return (PyObject *)made;
}

int blend_init(void) {
    static const char *const letters[OPTIONS] = {"dim", "size"};
    return native_intern(names, letters, OPTIONS);
}

const native_spec blend_kernels[] = {
    {"blend", run_blend, NULL, .dense = true},
    {"blend_gradient", run_blend, "b", .dense = true},
    {NULL},
};
