/* Images read at any places, and the gradients of the images and of the places: what `grid_sample` takes. */
#include "sample.h"

#include "halves.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(sample_loops, sample_loops);

static const sample_loops *loops;

enum { MODE, PADDING_MODE, ALIGN_CORNERS, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"mode", "padding_mode", "align_corners", "needs"};
static const char *const MODES[SAMPLE_MODES] = {"bilinear", "nearest", "bicubic"};
static const char *const PADDINGS[SAMPLE_PADDINGS] = {"zeros", "border", "reflection"};

enum { GRAIN = 1 << 13 }; /* elements read a thread */

typedef struct {
    const sample_of_real *of;
    sample_what what;
    npy_intp size, blocks; /* bytes of an element; blocks of places in a sample */
    const char *x, *grid, *g;
    char *out;
} sample_run;

static int word(PyObject *option, const char *const *words, int count) {
    for (int i = 0; option && PyUnicode_Check(option) && i < count; i++)
        if (!PyUnicode_CompareWithASCIIString(option, words[i]))
            return i;
    return -1;
}

/* What x (batch, channels, *sizes) and grid (batch, *counts, dims) ask for; false for what NumPy's kernel takes. */
static bool read_what(PyObject *const *args, PyObject *const *options, native_type type, sample_what *what) {
    if (!native_is_floating(type) || native_array_type(args[0]) != type || native_array_type(args[1]) != type)
        return false;
    PyArrayObject *x = (PyArrayObject *)args[0], *grid = (PyArrayObject *)args[1];
    const int ndim = PyArray_NDIM(x);
    if (ndim < 4 || ndim > 5 || PyArray_NDIM(grid) != ndim || PyArray_DIM(grid, ndim - 1) != ndim - 2 ||
        PyArray_DIM(grid, 0) != PyArray_DIM(x, 0) || !PyArray_SIZE(x) || !PyArray_SIZE(grid))
        return false;
    *what = (sample_what){.dims = ndim - 2, .size = {1, 1, 1}, .plane = 1, .channels = PyArray_DIM(x, 1), .places = 1};
    for (int i = 0; i < what->dims; i++) {
        what->plane *= what->size[i] = PyArray_DIM(x, i + 2);
        what->places *= PyArray_DIM(grid, i + 1);
    }
    what->mode = word(options[MODE], MODES, SAMPLE_MODES);
    what->padding = word(options[PADDING_MODE], PADDINGS, SAMPLE_PADDINGS);
    what->corners = options[ALIGN_CORNERS] == Py_True;
    /* Flat indices of float planes are 32 bits wide. */
    return what->mode >= 0 && what->padding >= 0 && what->plane <= INT32_MAX && (what->mode != SAMPLE_CUBIC || ndim == 4);
}

/* Over blocks of places, those of one sample after those of another: what each sample's part is. */
#define EACH_SAMPLE(run, begin, end, DO)                                                                                   \
    for (npy_intp stop; begin < end; begin = stop) {                                                                       \
        const npy_intp sample = begin / (run)->blocks, first = sample * (run)->blocks;                                     \
        stop = end < first + (run)->blocks ? end : first + (run)->blocks;                                                  \
        const npy_intp from = (begin - first) * SAMPLE_BLOCK;                                                              \
        const npy_intp to = stop == first + (run)->blocks ? (run)->what.places : (stop - first) * SAMPLE_BLOCK;            \
        const npy_intp image = sample * (run)->what.channels * (run)->what.plane * (run)->size;                            \
        const npy_intp results = sample * (run)->what.channels * (run)->what.places * (run)->size;                         \
        const npy_intp places = sample * (run)->what.places * (run)->what.dims * (run)->size;                              \
        DO;                                                                                                                \
    }

static void read_blocks(void *context, npy_intp begin, npy_intp end) {
    const sample_run *run = context;
    EACH_SAMPLE(run, begin, end, run->of->read(&run->what, run->x + image, run->grid + places, run->out + results, from, to))
}

static void slope_blocks(void *context, npy_intp begin, npy_intp end) {
    const sample_run *run = context;
    EACH_SAMPLE(run, begin, end,
                run->of->slope(&run->what, run->g + results, run->x + image, run->grid + places, run->out + places, from, to))
}

static void spread_planes(void *context, npy_intp begin, npy_intp end) {
    const sample_run *run = context;
    const sample_what *what = &run->what;
    memset(run->out + begin * what->plane * run->size, 0, (size_t)((end - begin) * what->plane * run->size));
    for (npy_intp stop; begin < end; begin = stop) {
        const npy_intp sample = begin / what->channels, first = sample * what->channels;
        stop = end < first + what->channels ? end : first + what->channels;
        run->of->spread(what, run->g + first * what->places * run->size, run->grid + sample * what->places * what->dims * run->size,
                        run->out + first * what->plane * run->size, begin - first, stop - first);
    }
}

static npy_intp taps_of(const sample_what *what) {
    return what->mode == SAMPLE_NEAREST ? 1 : what->mode == SAMPLE_CUBIC ? 16 : what->dims == 3 ? 8 : 4;
}

static sample_run run_of(const sample_what *what, native_type type) {
    return (sample_run){.of = &loops->of[type], .what = *what, .size = TYPE_SIZE[type],
                        .blocks = (what->places + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK};
}

/* The same call with floats in the place of halves, whose places are rounded at each step all the same. */
static PyObject *with_floats(const native_kernel *kernel, native_type half, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames) {
    static const int steps[TYPES] = {[TYPE_BF16] = SAMPLE_BF16, [TYPE_F16] = SAMPLE_F16};
    native_kernel stepping = *kernel;
    stepping.data = &steps[half];
    return native_widened(&stepping, args, nargs, kwnames);
}

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    sample_what what;
    const native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    if (!native_options(args, nargs, kwnames, names, OPTIONS, options) || !read_what(args, options, type, &what))
        return NULL;
    if (native_is_half(type))
        return with_floats(kernel, type, args, nargs, kwnames);
    what.steps = kernel->data ? *(const int *)kernel->data : SAMPLE_FULL;
    PyArrayObject *x = native_dense(args[0]), *grid = x ? native_dense(args[1]) : NULL, *made = NULL;
    if (grid) {
        npy_intp shape[NATIVE_DIMS] = {PyArray_DIM(x, 0), PyArray_DIM(x, 1)};
        memcpy(shape + 2, PyArray_DIMS(grid) + 1, (size_t)what.dims * sizeof *shape);
        made = native_empty(what.dims + 2, shape, type);
    }
    if (made) {
        sample_run run = run_of(&what, type);
        run.x = PyArray_BYTES(x), run.grid = PyArray_BYTES(grid), run.out = PyArray_BYTES(made);
        npy_intp work = SAMPLE_BLOCK * (what.channels + 4) * taps_of(&what);
        native_parallel(PyArray_DIM(x, 0) * run.blocks, native_grain(GRAIN, work), read_blocks, &run);
    }
    Py_XDECREF(x);
    Py_XDECREF(grid);
    return (PyObject *)made;
}

/* (g, x, grid) and `needs`; the gradients of x and of grid. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS];
    sample_what what;
    const native_type type = nargs == 3 ? native_array_type(args[0]) : TYPE_NONE;
    if (!native_options(args, nargs, kwnames, names, OPTIONS, options) || !read_what(args + 1, options, type, &what))
        return NULL;
    what.steps = kernel->data ? *(const int *)kernel->data : SAMPLE_FULL;
    PyObject *needs = options[NEEDS];
    PyArrayObject *dense[3] = {NULL}, *image = NULL, *places = NULL;
    const npy_intp planes = PyArray_DIM((PyArrayObject *)args[1], 0) * what.channels;
    if (!needs || !PyTuple_Check(needs) || PyTuple_GET_SIZE(needs) != 2 ||
        PyArray_SIZE((PyArrayObject *)args[0]) != planes * what.places)
        return NULL;
    if (native_is_half(type))
        return with_floats(kernel, type, args, nargs, kwnames);
    bool ready = true;
    for (int k = 0; k < 3; k++)
        ready = ready && (dense[k] = native_dense(args[k]));
    sample_run run = run_of(&what, type);
    const npy_intp taps = taps_of(&what);
    if (ready) {
        run.g = PyArray_BYTES(dense[0]), run.x = PyArray_BYTES(dense[1]), run.grid = PyArray_BYTES(dense[2]);
        image = PyTuple_GET_ITEM(needs, 0) == Py_True ? native_empty(what.dims + 2, PyArray_DIMS(dense[1]), type) : NULL;
        places = PyTuple_GET_ITEM(needs, 1) == Py_True ? native_empty(what.dims + 2, PyArray_DIMS(dense[2]), type) : NULL;
        ready = !PyErr_Occurred();
    }
    if (ready && image) {
        run.out = PyArray_BYTES(image);
        native_evenly(planes, native_grain(GRAIN, what.plane + what.places * taps), spread_planes, &run);
    }
    if (ready && places) {
        run.out = PyArray_BYTES(places);
        if (what.mode == SAMPLE_NEAREST)
            memset(run.out, 0, (size_t)PyArray_NBYTES(places));
        else
            native_parallel(planes / what.channels * run.blocks,
                            native_grain(GRAIN, SAMPLE_BLOCK * (what.channels + 4) * taps), slope_blocks, &run);
    }
    for (int k = 0; k < 3; k++)
        Py_XDECREF(dense[k]);
    PyObject *answer = ready ? Py_BuildValue("OO", image ? (PyObject *)image : Py_None, places ? (PyObject *)places : Py_None)
                             : NULL;
    Py_XDECREF(image);
    Py_XDECREF(places);
    return answer;
}

int sample_init(void) {
    loops = PICK(sample_loops);
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec sample_kernels[] = {
    {"grid_sample", run_forward, NULL},
    {"grid_sample_backward", run_backward, NULL},
    {NULL, NULL, NULL},
};
