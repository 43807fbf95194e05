/* Runs of equal elements, and slices shortened to a norm. */
#include "rows.h"

#include <math.h>
#include <string.h>

enum { DIM, P, MAXNORM, OPTIONS };
static PyObject *names[OPTIONS];

/* How many runs there are; the first element of each, the run that each element belongs to, and how long they are. NaN is equal to
   nothing. */
#define RUNS(suffix, type)                                                                                    \
    static npy_intp count_##suffix(const type *x, npy_intp count) {                                           \
        npy_intp runs = 1;                                                                                    \
        for (npy_intp i = 1; i < count; i++)                                                                  \
            runs += !(x[i] == x[i - 1]);                                                                      \
        return runs;                                                                                          \
    }                                                                                                         \
    static void runs_##suffix(const type *x, npy_intp count, type *values, int64_t *inverse, int64_t *lengths) { \
        npy_intp runs = -1;                                                                                   \
        for (npy_intp i = 0; i < count; i++) { /* without a branch that nobody can foresee */                 \
            const bool begins = !i || !(x[i] == x[i - 1]);                                                    \
            runs += begins;                                                                                   \
            values[runs] = begins ? x[i] : values[runs];                                                      \
            lengths[runs] = i + 1;                                                                            \
            inverse[i] = runs;                                                                                \
        }                                                                                                     \
        for (npy_intp run = runs; run > 0; run--)                                                             \
            lengths[run] -= lengths[run - 1];                                                                 \
    }
RUNS(f32, float)
RUNS(f64, double)
RUNS(b8, uint8_t)
RUNS(b16, uint16_t)
RUNS(b32, uint32_t)
RUNS(b64, uint64_t)

/* Calls the function for the elements of a type: floats as floats, others as the bits of their size. */
#define OF_TYPE(name, x, ...)                                                                                 \
    (type == TYPE_F32         ? name##_f32(x, __VA_ARGS__)                                                    \
     : type == TYPE_F64       ? name##_f64(x, __VA_ARGS__)                                                    \
     : TYPE_SIZE[type] == 1   ? name##_b8(x, __VA_ARGS__)                                                     \
     : TYPE_SIZE[type] == 2   ? name##_b16(x, __VA_ARGS__)                                                    \
     : TYPE_SIZE[type] == 4   ? name##_b32(x, __VA_ARGS__)                                                    \
                              : name##_b64(x, __VA_ARGS__))

/* Of all elements of x: values, the run of each element in the shape of x, lengths. */
static PyObject *run_unique_consecutive(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || type == TYPE_F16 || type == TYPE_BF16 || !PyArray_SIZE((PyArrayObject *)args[0]) ||
        (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)) || !native_is_none(options[DIM]))
        return NULL;
    PyArrayObject *x = native_dense(args[0]);
    if (!x)
        return NULL;
    const npy_intp count = PyArray_SIZE(x), runs = OF_TYPE(count, PyArray_DATA(x), count);
    PyArrayObject *values = native_empty(1, &runs, type), *lengths = native_empty(1, &runs, TYPE_I64);
    PyArrayObject *inverse = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_I64);
    if (values && lengths && inverse)
        OF_TYPE(runs, PyArray_DATA(x), count, PyArray_DATA(values), PyArray_DATA(inverse), PyArray_DATA(lengths));
    Py_DECREF(x);
    if (values && lengths && inverse)
        return Py_BuildValue("NNN", values, inverse, lengths);
    Py_XDECREF(values);
    Py_XDECREF(lengths);
    Py_XDECREF(inverse);
    return NULL;
}

typedef struct {
    native_type type;
    npy_intp before, n, after;
    double p, most;
    const char *from;
    char *to;
} renorm_run;

/* Slice `at` of (before, n, after): its norm as a sum in double, then the elements, each multiplied once as its own type. */
#define SHORTEN(name, type)                                                                                   \
    static void name(const renorm_run *run, npy_intp at) {                                                    \
        const bool square = run->p == 2;                                                                      \
        double total = 0;                                                                                     \
        for (npy_intp i = 0; i < run->before; i++) {                                                          \
            const type *x = (const type *)run->from + (i * run->n + at) * run->after;                         \
            double sums[8] = {0};                                                                             \
            npy_intp k = 0;                                                                                   \
            for (; k + 8 <= run->after; k += 8)                                                               \
                for (int lane = 0; lane < 8; lane++) {                                                        \
                    const double one = x[k + lane], size = fabs(one);                                         \
                    sums[lane] += size * (square ? size : 1);                                                 \
                }                                                                                             \
            for (; k < run->after; k++)                                                                       \
                sums[0] += fabs((double)x[k]) * (square ? fabs((double)x[k]) : 1);                            \
            total += ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])); \
        }                                                                                                     \
        const type size = (type)(square ? sqrt(total) : total), most = (type)run->most;                  \
        const type factor = size > most ? most / (size + (type)1e-7) : 1;                                     \
        for (npy_intp i = 0; i < run->before; i++) {                                                          \
            const npy_intp start = (i * run->n + at) * run->after;                                            \
            const type *x = (const type *)run->from + start;                                                  \
            type *out = (type *)run->to + start;                                                              \
            for (npy_intp k = 0; k < run->after; k++)                                                         \
                out[k] = x[k] * factor;                                                                       \
        }                                                                                                     \
    }
SHORTEN(shorten_f32, float)
SHORTEN(shorten_f64, double)

static void run_slices(void *context, npy_intp begin, npy_intp end) {
    const renorm_run *run = context;
    for (; begin < end; begin++)
        (run->type == TYPE_F32 ? shorten_f32 : shorten_f64)(run, begin);
}

static PyObject *run_renorm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    renorm_run run = {.type = nargs == 1 && kwnames ? native_real_type(args[0]) : TYPE_NONE};
    if (run.type == TYPE_NONE || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIM] ||
        !PyLong_CheckExact(options[DIM]) || !native_double(options[P], &run.p) || (run.p != 1 && run.p != 2) ||
        !native_double(options[MAXNORM], &run.most) || !PyArray_SIZE((PyArrayObject *)args[0]))
        return NULL;
    const long dim = PyLong_AsLong(options[DIM]);
    if (dim < 0 || dim >= PyArray_NDIM((PyArrayObject *)args[0])) {
        PyErr_Clear();
        return NULL;
    }
    PyArrayObject *x = native_dense(args[0]);
    PyArrayObject *made = x ? native_empty(PyArray_NDIM(x), PyArray_DIMS(x), run.type) : NULL;
    if (made) {
        native_around(x, (int)dim, &run.before, &run.after);
        run.n = PyArray_DIM(x, dim);
        run.from = PyArray_BYTES(x);
        run.to = PyArray_BYTES(made);
        native_parallel(run.n, native_grain(1 << 14, run.before * run.after), run_slices, &run);
    }
    Py_XDECREF(x);
    return (PyObject *)made;
}

int runs_init(void) {
    static const char *const words[OPTIONS] = {"dim", "p", "maxnorm"};
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(words[i])))
            return -1;
    return 0;
}

const native_spec runs_kernels[] = {
    {"unique_consecutive", run_unique_consecutive, NULL},
    {"renorm", run_renorm, NULL},
    {NULL, NULL, NULL},
};
