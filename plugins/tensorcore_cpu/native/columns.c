/* Windows of images as columns, and columns and windows along a dim added up where they lie. */
#include "rows.h"

#include <string.h>

enum { COUNTS, KERNEL, STRIDE, PADDING, DILATION, SHAPE, DIM, SIZE, STEP, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"counts", "kernel", "stride", "padding", "dilation", "shape", "dim", "size", "step"};

enum { GRAIN = 1 << 14 }; /* elements of the columns a thread */

typedef struct {
    npy_intp size[2], count[2], kernel[2], stride[2], padding[2], dilation[2];
    const char *from;
    char *to;
} column_run;

/* The numbers of the windows whose tap `k` along dim `i` is in the image: [*begin, *end). */
static void reach(const column_run *run, int i, npy_intp k, npy_intp *begin, npy_intp *end) {
    const npy_intp first = k * run->dilation[i] - run->padding[i], step = run->stride[i];
    *begin = first < 0 ? (-first + step - 1) / step : 0;
    *end = first >= run->size[i] ? 0 : (run->size[i] - 1 - first) / step + 1;
    *end = *end > run->count[i] ? run->count[i] : *end;
    *begin = *begin > *end ? *end : *begin;
}

/* One channel: of its image, its taps * windows elements; and the way back, into an image of zeros. */
#define CHANNELS(suffix, type, ADDED)                                                                         \
    static void unfold_##suffix(void *context, npy_intp channel, npy_intp last) {                             \
        const column_run *run = context;                                                                      \
        const npy_intp windows = run->count[0] * run->count[1], plane = run->size[0] * run->size[1];          \
        for (; channel < last; channel++) {                                                                   \
            const type *image = (const type *)run->from + channel * plane;                                    \
            type *column = (type *)run->to + channel * run->kernel[0] * run->kernel[1] * windows;             \
            for (npy_intp tap = 0; tap < run->kernel[0] * run->kernel[1]; tap++, column += windows) {         \
                npy_intp top, bottom, left, right, step = run->stride[1];                                     \
                reach(run, 0, tap / run->kernel[1], &top, &bottom);                                           \
                reach(run, 1, tap % run->kernel[1], &left, &right);                                           \
                memset(column, 0, (size_t)(top * run->count[1]) * sizeof(type));                              \
                for (npy_intp row = top; row < bottom; row++) {                                               \
                    const npy_intp y = row * run->stride[0] + tap / run->kernel[1] * run->dilation[0] - run->padding[0]; \
                    const type *pixel = image + y * run->size[1] + tap % run->kernel[1] * run->dilation[1] - run->padding[1]; \
                    type *line = column + row * run->count[1];                                                \
                    for (npy_intp i = 0; i < left; i++)                                                       \
                        line[i] = 0;                                                                          \
                    for (npy_intp i = left; i < right; i++)                                                   \
                        line[i] = pixel[i * step];                                                            \
                    for (npy_intp i = right; i < run->count[1]; i++)                                          \
                        line[i] = 0;                                                                          \
                }                                                                                             \
                memset(column + bottom * run->count[1], 0, (size_t)((run->count[0] - bottom) * run->count[1]) * sizeof(type)); \
            }                                                                                                 \
        }                                                                                                     \
    }                                                                                                         \
    static void fold_##suffix(void *context, npy_intp channel, npy_intp last) {                               \
        const column_run *run = context;                                                                      \
        const npy_intp windows = run->count[0] * run->count[1], plane = run->size[0] * run->size[1];          \
        for (; channel < last; channel++) {                                                                   \
            type *image = (type *)run->to + channel * plane;                                                  \
            const type *column = (const type *)run->from + channel * run->kernel[0] * run->kernel[1] * windows; \
            memset(image, 0, (size_t)plane * sizeof(type));                                                   \
            for (npy_intp tap = 0; tap < run->kernel[0] * run->kernel[1]; tap++, column += windows) {         \
                npy_intp top, bottom, left, right, step = run->stride[1];                                     \
                reach(run, 0, tap / run->kernel[1], &top, &bottom);                                           \
                reach(run, 1, tap % run->kernel[1], &left, &right);                                           \
                for (npy_intp row = top; row < bottom; row++) {                                               \
                    const npy_intp y = row * run->stride[0] + tap / run->kernel[1] * run->dilation[0] - run->padding[0]; \
                    type *pixel = image + y * run->size[1] + tap % run->kernel[1] * run->dilation[1] - run->padding[1]; \
                    const type *line = column + row * run->count[1];                                          \
                    for (npy_intp i = left; i < right; i++)                                                   \
                        pixel[i * step] ADDED line[i];                                                           \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }
CHANNELS(f32, float, +=)
CHANNELS(f64, double, +=)
CHANNELS(c32, float _Complex, +=)
CHANNELS(c64, double _Complex, +=)
CHANNELS(bool, uint8_t, |=) /* where a sum is whether any is true */

static bool pair(PyObject *option, npy_intp *values, npy_intp least) {
    return option && native_sizes(option, values, 2) == 2 && values[0] >= least && values[1] >= least;
}

/* unfold: (batch, channels, height, width) to (batch, channels * taps, windows); fold: the way back, to `shape`. */
static PyObject *run_columns(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool back = *(const char *)kernel->data == 'f';
    PyObject *options[OPTIONS] = {NULL};
    const native_type parts = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    const native_type type = parts != TYPE_NONE ? parts : nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    static const native_body PAIRS[2][2] = {{unfold_c32, unfold_c64}, {fold_c32, fold_c64}};
    static const native_body BODIES[2][TYPES] = {{[TYPE_F32] = unfold_f32, [TYPE_F64] = unfold_f64, [TYPE_BOOL] = unfold_bool},
                                                 {[TYPE_F32] = fold_f32, [TYPE_F64] = fold_f64, [TYPE_BOOL] = fold_bool}};
    PyArrayObject *given = (PyArrayObject *)args[0];
    column_run run;
    npy_intp image[NATIVE_DIMS];
    if (type == TYPE_NONE || !BODIES[back][type] || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !pair(options[COUNTS], run.count, 1) || !pair(options[KERNEL], run.kernel, 1) || !pair(options[STRIDE], run.stride, 1) ||
        !pair(options[PADDING], run.padding, 0) || !pair(options[DILATION], run.dilation, 1) || PyArray_NDIM(given) != (back ? 3 : 4))
        return NULL;
    if (!back)
        memcpy(image, PyArray_DIMS(given), 4 * sizeof *image);
    else if (!options[SHAPE] || native_sizes(options[SHAPE], image, NATIVE_DIMS) != 4)
        return NULL;
    const npy_intp taps = run.kernel[0] * run.kernel[1], windows = run.count[0] * run.count[1];
    const npy_intp columns[3] = {image[0], image[1] * taps, windows};
    if (image[2] < 1 || image[3] < 1 || (back && !PyArray_CompareLists(PyArray_DIMS(given), columns, 3)))
        return NULL;
    run.size[0] = image[2];
    run.size[1] = image[3];
    PyArrayObject *dense = native_dense(args[0]);
    PyArrayObject *made = !dense               ? NULL
                          : parts == TYPE_NONE ? native_empty(back ? 4 : 3, back ? image : columns, type)
                                               : native_empty_complex(back ? 4 : 3, back ? image : columns, type);
    if (made) {
        run.from = PyArray_BYTES(dense);
        run.to = PyArray_BYTES(made);
        native_evenly(image[0] * image[1], native_grain(GRAIN, taps * windows), parts == TYPE_NONE ? BODIES[back][type] : PAIRS[back][type], &run);
    }
    Py_XDECREF(dense);
    return (PyObject *)made;
}

/* Windows along a dim, whose elements lie last: (before, count, after, size) to (before, all, after). */
typedef struct {
    npy_intp count, after, size, step, all;
    const char *from;
    char *to;
} window_run;

/* The last windows first: each sum begins with the first elements of windows, as when all of those are added at once. */
#define UNWINDOWS(suffix, type)                                                                               \
    static void unwindows_##suffix(void *context, npy_intp begin, npy_intp end) {                             \
        const window_run *run = context;                                                                      \
        const npy_intp plane = run->all * run->after, windows = run->count * run->after * run->size;          \
        for (npy_intp i = begin; i < end; i++) {                                                              \
            const type *from = (const type *)run->from + i * windows;                                         \
            type *to = (type *)run->to + i * plane;                                                           \
            memset(to, 0, (size_t)plane * sizeof *to);                                                        \
            for (npy_intp w = run->count - 1; w >= 0; w--)                                                    \
                for (npy_intp k = 0; k < run->after; k++) {                                                   \
                    const type *window = from + (w * run->after + k) * run->size;                             \
                    type *place = to + w * run->step * run->after + k;                                        \
                    for (npy_intp j = 0; j < run->size; j++)                                                  \
                        place[j * run->after] += window[j];                                                   \
                }                                                                                             \
        }                                                                                                     \
    }
UNWINDOWS(f32, float)
UNWINDOWS(f64, double)
UNWINDOWS(c32, float _Complex)
UNWINDOWS(c64, double _Complex)

/* unwindows(x, shape, dim, size, step) */
static PyObject *run_unwindows(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type parts = nargs == 1 ? native_complex_type(args[0]) : TYPE_NONE;
    const native_type type = parts != TYPE_NONE ? parts : nargs == 1 ? native_real_type(args[0]) : TYPE_NONE;
    PyArrayObject *given = (PyArrayObject *)args[0], *made = NULL;
    npy_intp shape[NATIVE_DIMS], before = 1;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIM] ||
        !options[SIZE] || !options[STEP] || !PyLong_CheckExact(options[DIM]) || !PyLong_CheckExact(options[SIZE]) ||
        !PyLong_CheckExact(options[STEP]))
        return NULL;
    const int ndim = native_sizes(options[SHAPE], shape, NATIVE_DIMS), dim = (int)PyLong_AsLong(options[DIM]);
    if (ndim < 1 || dim < 0 || dim >= ndim || PyArray_NDIM(given) != ndim + 1)
        return NULL;
    window_run run = {.count = PyArray_DIM(given, dim), .after = 1, .all = shape[dim]};
    run.size = PyLong_AsSsize_t(options[SIZE]);
    run.step = PyLong_AsSsize_t(options[STEP]);
    bool fits = PyArray_DIM(given, ndim) == run.size && run.size > 0 && run.size <= run.all && run.step > 0 && run.count > 0 &&
                run.count - 1 <= (run.all - run.size) / run.step;
    for (int i = 0; i < ndim; i++) {
        fits &= i == dim || PyArray_DIM(given, i) == shape[i];
        *(i < dim ? &before : &run.after) *= i == dim ? 1 : shape[i];
    }
    PyArrayObject *dense = fits ? native_dense(args[0]) : NULL;
    static const native_body UNWINDOWED[2][2] = {{unwindows_f32, unwindows_f64}, {unwindows_c32, unwindows_c64}};
    if (dense && (made = parts == TYPE_NONE ? native_empty(ndim, shape, type) : native_empty_complex(ndim, shape, type))) {
        run.from = PyArray_BYTES(dense);
        run.to = PyArray_BYTES(made);
        native_evenly(before, native_grain(GRAIN, run.all * run.after), UNWINDOWED[parts != TYPE_NONE][type], &run);
    }
    Py_XDECREF(dense);
    return (PyObject *)made;
}

int columns_init(void) {
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec columns_kernels[] = {{"unfold", run_columns, "u"}, {"fold", run_columns, "f"}, {"unwindows", run_unwindows, NULL}, {NULL, NULL, NULL}};
