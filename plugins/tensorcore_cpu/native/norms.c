/* Norms along dims: of order 2 in one pass, others of the sizes of elements, raised to their power in a pass of their own; distances
   of rows of orders that lines.c does not know; sums that leave out what is no number. */
#include "elementwise.h"
#include "formulas.h"
#include "plan.h"
#include "rows.h"

#include <math.h>
#include <string.h>

DECLARE_LOOPS(formula_loops, formula_loops);
DECLARE_LOOPS(elementwise_loops, elementwise_loops);

static const formula_loops *loops;
static const elementwise_loops *elements;
static numpy_loop numpy_powers; /* of doubles */

enum { DIM, KEEPDIM, DTYPE, POWER, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "keepdim", "dtype", "p"};

enum { GRAIN = 1 << 13, PIECE = 2048 };

/* Elements to a power, where they lie. */
static void raise(native_type type, double power, char *data, ptrdiff_t step, ptrdiff_t count) {
    const float narrow = (float)power;
    char *at[3] = {data, type == TYPE_F32 ? (char *)&narrow : (char *)&power, data};
    const ptrdiff_t steps[3] = {step, 0, step};
    if (type == TYPE_F32)
        elements->compute[OP_power][TYPE_F32](at, steps, count);
    else
        numpy_powers.loop(at, &count, steps, numpy_powers.beside);
}

/* Of sizes: what is summed. */
static void powers(native_type type, double power, char *data, ptrdiff_t step, ptrdiff_t count) {
    char *const there[2] = {data, data};
    const ptrdiff_t own[2] = {step, step};
    if (power == 3)
        elements->compute[OP_cube][type](there, own, count);
    else if (power == 2)
        elements->compute[OP_square][type](there, own, count);
    else if (power != 1 && !isinf(power))
        raise(type, power, data, step, count);
}

/* Whether elements are there. */
#define SOME(name, type)                                                                                        \
    static void name(const char *x, ptrdiff_t step, char *made, ptrdiff_t to, ptrdiff_t count) {                \
        for (ptrdiff_t i = 0; i < count; i++)                                                                   \
            *(type *)(made + i * to) = *(const type *)(x + i * step) != 0;                                      \
    }

SOME(some_f32, float)
SOME(some_f64, double)

typedef struct {
    native_type type;
    double power;
} powers_run;

/* What is summed, or the sizes of which the largest or the smallest is found. */
static void run_powers(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const powers_run *run = context;
    const double power = run->power;
    for (ptrdiff_t begin = 0, few; begin < count; begin += few) {
        few = count - begin < PIECE ? count - begin : PIECE;
        char *const at[2] = {data[0] + begin * steps[0], data[1] + begin * steps[1]};
        if (power == 0) {
            (run->type == TYPE_F32 ? some_f32 : some_f64)(at[0], steps[0], at[1], steps[1], few);
            continue;
        }
        elements->compute[OP_abs][run->type](at, steps, few);
        powers(run->type, power, at[1], steps[1], few);
    }
}

typedef struct {
    native_type type;
    double power;
    char *data;
} roots_run;

static void run_roots(void *context, npy_intp begin, npy_intp end) {
    const roots_run *run = context;
    const int size = TYPE_SIZE[run->type];
    raise(run->type, run->power, run->data + begin * size, size, end - begin);
}

static PyObject *norm_of_order(PyObject *x, native_type type, double power, PyObject *dim, PyObject *keepdim) {
    const native_operand operand = {.array = (PyArrayObject *)x};
    native_plan plan;
    if (!PyArray_SIZE(operand.array) || !native_plan_inputs(&plan, &operand, 1))
        return NULL;
    PyObject *sizes = native_plan_result(&plan, &operand, type, NULL);
    if (!sizes)
        return NULL;
    native_plan_run(&plan, GRAIN, run_powers, &(powers_run){type, power});
    const native_extent kind = power == INFINITY ? EXTENT_LARGEST : power == -INFINITY ? EXTENT_SMALLEST : EXTENT_SUM;
    PyObject *made = native_reduced_along(sizes, kind, dim, keepdim);
    Py_DECREF(sizes);
    if (made && power != 0 && power != 1 && !isinf(power))
        native_evenly(PyArray_SIZE((PyArrayObject *)made), GRAIN, run_roots,
                      &(roots_run){type, 1 / power, PyArray_BYTES((PyArrayObject *)made)});
    return made;
}

PyObject *native_norm_along(PyObject *x, double power, PyObject *dim, PyObject *keepdim) {
    return power == 2 ? native_reduced_along(x, EXTENT_EUCLID, dim, keepdim) : norm_of_order(x, native_array_type(x), power, dim, keepdim);
}

static PyObject *run_norm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    double power = 0;
    if (type > TYPE_F16 || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)) ||
        !native_is_none(options[DTYPE]) || !native_double(options[POWER], &power))
        return NULL;
    if (power != 2)
        return type <= TYPE_F64 ? norm_of_order(args[0], type, power, options[DIM], options[KEEPDIM]) : NULL;
    if (type > TYPE_F64 || !native_is_none(options[DIM]) || (options[KEEPDIM] && options[KEEPDIM] != Py_False))
        return native_reduced_along(args[0], EXTENT_EUCLID, options[DIM], options[KEEPDIM]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    return PyArray_ISONESEGMENT(x) ? native_number_array(sqrt(loops->squares[type](PyArray_DATA(x), PyArray_SIZE(x))), type) : NULL;
}

/* Distances */

typedef struct {
    native_type type;
    double power;
    const char *x, *y;                      /* y is x where the rows of one are compared */
    char *made;
    npy_intp matrices, rows, others, width; /* others is 0 then */
} distance_run;

/* The size of each difference of a row and those at `y`, one row of `width` elements after the other; how many of them are not zero, where
   that is asked, is a NaN where one of them is. */
#define DISTANCES(suffix, real)                                                                                     \
    static void differences_##suffix(const real *x, const real *y, real *away, npy_intp rows, npy_intp width) {     \
        for (npy_intp j = 0; j < rows; j++)                                                                         \
            for (npy_intp k = 0; k < width; k++) {                                                                  \
                const real one = x[k] - y[j * width + k];                                                           \
                away[j * width + k] = one < 0 ? -one : one;                                                         \
            }                                                                                                       \
    }                                                                                                               \
    static double unlike_##suffix(const real *x, const real *y, npy_intp width) {                                   \
        double all = 0;                                                                                             \
        for (npy_intp begin = 0, end; begin < width; begin = end) {                                                 \
            int32_t count = 0, none = 0;                                                                            \
            end = width - begin < PIECE ? width : begin + PIECE;                                                    \
            for (npy_intp k = begin; k < end; k++) {                                                                \
                const real one = x[k] - y[k];                                                                       \
                count += one != 0;                                                                                  \
                none |= one != one;                                                                                 \
            }                                                                                                       \
            all += none ? NAN : count;                                                                              \
        }                                                                                                           \
        return all;                                                                                                 \
    }                                                                                                               \
    static double total_##suffix(const real *x, npy_intp count) {                                                   \
        double sums[16] = {0};                                                                                      \
        npy_intp k = 0;                                                                                             \
        for (; k + 16 <= count; k += 16)                                                                            \
            for (int l = 0; l < 16; l++)                                                                            \
                sums[l] += x[k + l];                                                                                \
        for (int l = 0; k < count; k++, l++)                                                                        \
            sums[l] += x[k];                                                                                        \
        for (int half = 8; half; half /= 2)                                                                         \
            for (int l = 0; l < half; l++)                                                                          \
                sums[l] += sums[l + half];                                                                          \
        return sums[0];                                                                                             \
    }                                                                                                               \
    /* Of one row and `rows` others that lie one after the other. */                                                \
    static void distances_##suffix(const distance_run *run, const real *x, const real *y, real *made, npy_intp rows) {\
        real away[PIECE];                                                                                           \
        const npy_intp width = run->width, together = width < PIECE ? PIECE / width : 1;                            \
        if (run->power == 0) {                                                                                      \
            for (npy_intp j = 0; j < rows; j++)                                                                     \
                made[j] = (real)unlike_##suffix(x, y + j * width, width);                                           \
            return;                                                                                                 \
        }                                                                                                           \
        for (npy_intp j = 0, few; j < rows; j += few) {                                                             \
            few = rows - j < together ? rows - j : together;                                                        \
            double whole = 0;                                                                                       \
            for (npy_intp k = 0, part; k < width; k += part) {                                                      \
                part = width - k < PIECE ? width - k : PIECE;                                                       \
                differences_##suffix(x + k, y + j * width + k, away, few, part);                                    \
                powers(run->type, run->power, (char *)away, sizeof(real), few * part);                              \
                whole += few == 1 ? total_##suffix(away, part) : 0;                                                 \
            }                                                                                                       \
            for (npy_intp r = 0; r < few; r++)                                                                      \
                made[j + r] = (real)(few == 1 ? whole : total_##suffix(away + r * width, width));                   \
        }                                                                                                           \
        raise(run->type, 1 / run->power, (char *)made, sizeof(real), rows);                                         \
    }

DISTANCES(f32, float)
DISTANCES(f64, double)

static void run_distances(void *context, npy_intp begin, npy_intp end) {
    const distance_run *run = context;
    const int size = TYPE_SIZE[run->type];
    for (; begin < end; begin++) {
        const npy_intp matrix = begin / run->rows, i = begin % run->rows, n = run->rows;
        const char *x = run->x + begin * run->width * size;
        const char *y = run->others ? run->y + matrix * run->others * run->width * size : x + run->width * size;
        const npy_intp at = run->others ? begin * run->others : i * n - i * (i + 1) / 2, others = run->others ? run->others : n - 1 - i;
        if (run->type == TYPE_F32)
            distances_f32(run, (const float *)x, (const float *)y, (float *)(run->made + at * size), others);
        else
            distances_f64(run, (const double *)x, (const double *)y, (double *)(run->made + at * size), others);
    }
}

/* pdist and cdist, of matrices in row-major order: see lines.c. */
static PyObject *run_distances_of(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *order = NULL;
    const Py_ssize_t count = kernel->data ? 2 : 1;
    distance_run run = {.type = nargs == count && kwnames ? native_real_type(args[0]) : TYPE_NONE, .matrices = 1};
    if (run.type == TYPE_NONE || !native_options(args, nargs, kwnames, &names[POWER], 1, &order) || !native_double(order, &run.power) ||
        !(run.power >= 0) || isinf(run.power) || native_real_type(args[count - 1]) != run.type)
        return NULL;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[count - 1];
    const int ndim = PyArray_NDIM(x);
    if (ndim < 2 || (count == 1 && ndim > 2) || PyArray_NDIM(y) != ndim || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(y) ||
        !PyArray_SIZE(x) || !PyArray_SIZE(y) || PyArray_DIM(x, ndim - 1) != PyArray_DIM(y, ndim - 1) ||
        !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(y), ndim - 2))
        return NULL;
    npy_intp shape[NATIVE_DIMS];
    for (int i = 0; i < ndim - 2; i++)
        run.matrices *= shape[i] = PyArray_DIM(x, i);
    run.rows = shape[ndim - 2] = PyArray_DIM(x, ndim - 2);
    run.others = shape[ndim - 1] = count > 1 ? PyArray_DIM(y, ndim - 2) : 0;
    run.width = PyArray_DIM(x, ndim - 1);
    const npy_intp pairs = run.rows * (run.rows - 1) / 2;
    PyArrayObject *made = count > 1 ? native_empty(ndim, shape, run.type) : native_empty(1, &pairs, run.type);
    if (!made)
        return NULL;
    run.x = PyArray_BYTES(x);
    run.y = PyArray_BYTES(y);
    run.made = PyArray_BYTES(made);
    native_evenly(run.matrices * run.rows, native_grain(GRAIN, run.width * (count > 1 ? run.others : run.rows)), run_distances, &run);
    return (PyObject *)made;
}

#define COUNT_NAN(type, IS_NAN, WRITE)                                                                        \
    for (npy_intp i = 0; i < count; i++) {                                                                    \
        type *const at = (type *)PyArray_DATA(x) + i;                                                         \
        const bool nan = IS_NAN(*at);                                                                         \
        found |= nan;                                                                                         \
        if (WRITE && nan)                                                                                     \
            *at = 0;                                                                                          \
    }                                                                                                         \
    return found;
#define IS_NAN(x) ((x) != (x))
#define IS_NAN_BF16(x) (((x) & 0x7fff) > 0x7f80)
#define IS_NAN_F16(x) (((x) & 0x7fff) > 0x7c00)

/* Whether any element of an array in one piece is no number; with `write` those become zeros. */
static bool has_nan(PyArrayObject *x, native_type type, bool write) {
    const npy_intp count = PyArray_SIZE(x);
    bool found = false;
    switch (type) {
    case TYPE_F32:
        COUNT_NAN(float, IS_NAN, write)
    case TYPE_F64:
        COUNT_NAN(double, IS_NAN, write)
    case TYPE_BF16:
        COUNT_NAN(uint16_t, IS_NAN_BF16, write)
    default:
        COUNT_NAN(uint16_t, IS_NAN_F16, write)
    }
}

/* A sum that is no number is the sign of an element that is none: mostly there is none, and the sum is what was asked for. */
static PyObject *run_nansum(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (!native_is_floating(type) || (kwnames && !native_options(args, nargs, kwnames, names, KEEPDIM + 1, options)))
        return NULL;
    PyObject *made = native_reduced_along(args[0], EXTENT_SUM, options[DIM], options[KEEPDIM]);
    if (!made || !has_nan((PyArrayObject *)made, type, false))
        return made;
    Py_DECREF(made);
    PyArrayObject *x = native_copied((PyArrayObject *)args[0], type);
    if (!x)
        return NULL;
    has_nan(x, type, true);
    made = native_reduced_along((PyObject *)x, EXTENT_SUM, options[DIM], options[KEEPDIM]);
    Py_DECREF(x);
    return made;
}

int norms_init(void) {
    loops = PICK(formula_loops);
    elements = PICK(elementwise_loops);
    if (!numpy_powers.loop && !native_numpy_loop("power", TYPE_F64, &numpy_powers))
        return -1;
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec norms_kernels[] = {
    {"norm", run_norm, NULL, .dense = true},
    {"nansum", run_nansum, NULL, .dense = true},
    {"pdist_beneath", run_distances_of, NULL, .dense = true},
    {"cdist_beneath", run_distances_of, "two", .dense = true},
    {NULL, NULL, NULL},
};
