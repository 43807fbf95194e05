/* Gradients of elements that were picked along a dim: zeros with each in its place, or with the sum of those that share one. */
#include "rows.h"

#include <string.h>

enum { DIM, SIZE, UNIQUE, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 14, /* elements that are worth a second thread */
    STRIP = 512,     /* columns that go together */
};

/* Lines of `count` rows of `inner` columns that become lines of `size` rows. */
typedef struct {
    const char *x;
    const int64_t *at;
    char *made;
    npy_intp count, size, inner, strips;
    native_type type;
    bool unique;
} pick_run;

#define PUT(type, sign)                                                                                       \
    for (npy_intp i = 0; i < run->count; i++, x += inner, at += inner)                                        \
        for (npy_intp j = 0; j < width; j++)                                                                  \
            ((type *)made)[at[j] * inner + j] sign((const type *)run->x)[x + j];

static void put_strip(const pick_run *run, npy_intp line, npy_intp column, npy_intp width) {
    const npy_intp inner = run->inner, size = TYPE_SIZE[run->type];
    const int64_t *at = run->at + line * run->count * inner + column;
    npy_intp x = line * run->count * inner + column;
    char *made = run->made + (line * run->size * inner + column) * size;
    if (!run->unique && run->type == TYPE_F32)
        PUT(float, +=)
    else if (!run->unique)
        PUT(double, +=)
    else if (size == 2)
        PUT(uint16_t, =)
    else if (size == 4)
        PUT(uint32_t, =)
    else
        PUT(uint64_t, =)
}

static void put_lines(void *context, npy_intp begin, npy_intp end) {
    const pick_run *run = context;
    const npy_intp row = run->inner * TYPE_SIZE[run->type], line = run->size * row;
    if (run->strips == 1)
        memset(run->made + begin * line, 0, (size_t)((end - begin) * line));
    for (; begin < end; begin++) {
        const npy_intp column = begin % run->strips * STRIP, rest = run->inner - column, width = rest < STRIP ? rest : STRIP;
        char *made = run->made + begin / run->strips * line + column * TYPE_SIZE[run->type];
        for (npy_intp i = 0; run->strips > 1 && i < run->size; i++)
            memset(made + i * row, 0, (size_t)(width * TYPE_SIZE[run->type]));
        put_strip(run, begin / run->strips, column, width);
    }
}

/* (x, at), alike in shape; the result has `size` elements along the dim. */
static PyObject *run_put(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    double dim, size;
    if (nargs != 2 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_double(options[DIM], &dim) || !native_double(options[SIZE], &size))
        return NULL;
    const native_type type = native_array_type(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0], *at = (PyArrayObject *)args[1], *made = NULL;
    const bool unique = options[UNIQUE] != Py_False;
    if (type == TYPE_NONE || !(unique ? native_is_floating(type) : type <= TYPE_F64) || native_array_type(args[1]) != TYPE_I64 ||
        !PyArray_SAMESHAPE(x, at) || dim < 0 || dim >= PyArray_NDIM(x) || !PyArray_SIZE(x))
        return NULL;
    npy_intp shape[NATIVE_DIMS], before;
    memcpy(shape, PyArray_DIMS(x), (size_t)PyArray_NDIM(x) * sizeof *shape);
    shape[(int)dim] = (npy_intp)size;
    pick_run run = {.count = PyArray_DIM(x, (int)dim), .size = (npy_intp)size, .type = type, .unique = unique};
    native_around(x, (int)dim, &before, &run.inner);
    run.strips = (run.inner + STRIP - 1) / STRIP;
    PyArrayObject *from = native_dense(args[0]), *places = from ? native_index_inside(args[1], run.size) : NULL;
    if (places)
        made = native_empty(PyArray_NDIM(x), shape, type);
    if (made) {
        run.x = PyArray_BYTES(from);
        run.at = PyArray_DATA(places);
        run.made = PyArray_BYTES(made);
        const npy_intp longer = run.size > run.count ? run.size : run.count;
        native_evenly(before * run.strips, native_grain(GRAIN, longer * (run.inner < STRIP ? run.inner : STRIP)), put_lines, &run);
    }
    Py_XDECREF(from);
    Py_XDECREF(places);
    return (PyObject *)made;
}

int picks_init(void) {
    static const char *const words[OPTIONS] = {"dim", "size", "unique"};
    return native_intern(names, words, OPTIONS);
}

const native_spec picks_kernels[] = {{"put_picked", run_put, NULL}, {NULL, NULL, NULL}};
