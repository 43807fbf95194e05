/* An index with a number for each element that is smaller than the array in dims other than its own: gather, and what is
   combined at places. The work is that of the index; where all sizes agree, index.c and scatter.c have rows to go through. */
#include "each.h"

#include "rows.h"

/* Elements of x at the places of an index, row by row of the index; `other` has the index's shape, or is larger. */
typedef struct {
    int ndim, dim;
    const npy_intp *shape, *steps, *other_steps; /* of the index; in bytes of x and of the other array */
    npy_intp step;                               /* bytes of x along `dim` */
    const int64_t *index;
    char *x, *other;
    const char *base; /* of x, whose elements each have a count */
    int32_t *counts;
} each_walk;

/* One row: element k of the index is at x + k * across + at[k] * step, and belongs to other + k * other_step. */
typedef void (*each_row)(const each_walk *walk, char *x, npy_intp across, char *other, npy_intp other_step, const int64_t *at,
                         npy_intp count);

static void walk_rows(const each_walk *walk, each_row row) {
    const int last = walk->ndim - 1;
    npy_intp place[NATIVE_DIMS] = {0}, rows = 1;
    const int64_t *at = walk->index;
    char *x = walk->x, *other = walk->other;
    for (int i = 0; i < last; i++)
        rows *= walk->shape[i];
    for (; rows > 0; rows--, at += walk->shape[last]) {
        row(walk, x, last == walk->dim ? 0 : walk->steps[last], other, walk->other_steps[last], at, walk->shape[last]);
        for (int i = last - 1; i >= 0; i--) {
            const npy_intp step = i == walk->dim ? 0 : walk->steps[i];
            x += step;
            other += walk->other_steps[i];
            if (++place[i] < walk->shape[i])
                break;
            place[i] = 0;
            x -= step * walk->shape[i];
            other -= walk->other_steps[i] * walk->shape[i];
        }
    }
}

#define EACH(name, type, expression)                                                                          \
    static void name(const each_walk *walk, char *x, npy_intp across, char *other, npy_intp other_step,       \
                     const int64_t *at, npy_intp count) {                                                     \
        for (npy_intp k = 0; k < count; k++, x += across, other += other_step) {                              \
            type *place = (type *)(x + at[k] * walk->step), *one = (type *)other;                             \
            expression;                                                                                       \
        }                                                                                                     \
    }

EACH(pick_1, uint8_t, *one = *place)
EACH(pick_2, uint16_t, *one = *place)
EACH(pick_4, uint32_t, *one = *place)
EACH(pick_8, uint64_t, *one = *place)

/* NaN is the largest and the smallest. Of bools, true ones of which are bytes other than 0, a sum is whether any is true, and a product whether all are. */
#define COMBINE(suffix, type, plus, times, low, high)                                                         \
    EACH(add_##suffix, type, *place = (type)(*place plus *one))                                               \
    EACH(multiply_##suffix, type, *place = (type)(*place times *one))                                         \
    EACH(most_##suffix, type, *place = *one > *place || *one != *one ? *one : *place)                         \
    EACH(least_##suffix, type, *place = *one < *place || *one != *one ? *one : *place)                        \
    EACH(zero_##suffix, type, (void)one; *place = 0)                                                          \
    EACH(one_##suffix, type, (void)one; *place = 1)                                                           \
    EACH(lowest_##suffix, type, (void)one; *place = low)                                                      \
    EACH(highest_##suffix, type, (void)one; *place = high)
/* Only the counts of places that the index names are ever written, and read; each is divided once. */
#define COUNTED(type) walk->counts[((char *)place - walk->base) / (ptrdiff_t)sizeof(type)]
#define COUNT(suffix, type)                                                                                   \
    EACH(uncounted_##suffix, type, (void)one; COUNTED(type) = 0)                                              \
    EACH(itself_##suffix, type, (void)one; COUNTED(type) = 1)                                                 \
    EACH(count_##suffix, type, (void)one; COUNTED(type) += 1)
#define MEAN(suffix, type, quotient)                                                                        \
    COUNT(suffix, type)                                                                                       \
    EACH(divide_##suffix, type, (void)one; *place = quotient(*place, COUNTED(type)); COUNTED(type) = 1)
#define RATIO(a, b) ((a) / (b))
#define FLOORED(a, b) ((a) / (b) - ((a) % (b) < 0))
COMBINE(f32, float, +, *, -__builtin_inff(), __builtin_inff())
COMBINE(f64, double, +, *, -__builtin_inf(), __builtin_inf())
COMBINE(i8, int8_t, +, *, INT8_MIN, INT8_MAX)
COMBINE(i16, int16_t, +, *, INT16_MIN, INT16_MAX)
COMBINE(i32, int32_t, +, *, INT32_MIN, INT32_MAX)
COMBINE(i64, int64_t, +, *, INT64_MIN, INT64_MAX)
COMBINE(u8, uint8_t, +, *, 0, UINT8_MAX)
COMBINE(bool, uint8_t, |, &&, 0, 1)
MEAN(f32, float, RATIO)
MEAN(f64, double, RATIO)
MEAN(i8, int8_t, FLOORED)
MEAN(i16, int16_t, FLOORED)
MEAN(i32, int32_t, FLOORED)
MEAN(i64, int64_t, FLOORED)
MEAN(u8, uint8_t, RATIO)

/* Complex numbers, which have no order. A quotient is by a complex number, as NumPy and PyTorch have it: beside a part that is infinite
   there is none but NaN. */
typedef struct {
    float real, imaginary;
} pair_f32;
typedef struct {
    double real, imaginary;
} pair_f64;
#define SUM(type, a, b) ((type){(a).real + (b).real, (a).imaginary + (b).imaginary})
#define TIMES(type, a, b)                                                                                     \
    ((type){(a).real * (b).real - (a).imaginary * (b).imaginary, (a).real * (b).imaginary + (a).imaginary * (b).real})
#define COMBINE_PAIRS(suffix, type)                                                                           \
    EACH(add_##suffix, type, *place = SUM(type, *place, *one))                                                \
    EACH(multiply_##suffix, type, *place = TIMES(type, *place, *one))                                         \
    EACH(zero_##suffix, type, (void)one; *place = ((type){0, 0}))                                             \
    EACH(one_##suffix, type, (void)one; *place = ((type){1, 0}))
#define RATIO_f32(a, b) ((pair_f32){((a).real + (a).imaginary * 0) / (float)(b), ((a).imaginary - (a).real * 0) / (float)(b)})
#define RATIO_f64(a, b) ((pair_f64){((a).real + (a).imaginary * 0) / (b), ((a).imaginary - (a).real * 0) / (b)})
COMBINE_PAIRS(c32, pair_f32)
COMBINE_PAIRS(c64, pair_f64)
COUNT(c32, pair_f32)
COUNT(c64, pair_f64)
EACH(pick_16, pair_f64, *one = *place)
enum { C32 = TYPES, C64, KINDS };

/* All of them, by 1 where nothing is counted: that too is a complex number. */
static void divide_pairs(int type, void *data, const int32_t *counts, npy_intp count) {
    pair_f32 *single = data;
    pair_f64 *wide = data;
    for (npy_intp i = 0; i < count; i++) {
        const int32_t by = counts[i] ? counts[i] : 1;
        if (type == C32)
            single[i] = RATIO_f32(single[i], by);
        else
            wide[i] = RATIO_f64(wide[i], by);
    }
}

/* The type of an array's elements, or one of those two; TYPE_NONE is none that combines here. */
static int kind_of(PyObject *array) {
    const native_type parts = native_complex_type(array), type = native_array_type(array);
    return parts == TYPE_F32 ? C32 : parts == TYPE_F64 ? C64 : type == TYPE_NONE ? KINDS : (int)type;
}

#define OF_NUMBERS(name)                                                                                      \
    [TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64, [TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16,         \
    [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8
#define OF_PAIRS(name) [C32] = name##_c32, [C64] = name##_c64
#define OF_ALL(name) {OF_NUMBERS(name), [TYPE_BOOL] = name##_bool}

/* What a reduction begins with where the array's own values do not count, and how it goes on. */
static const struct {
    const char *name;
    each_row begin[KINDS], combine[KINDS];
} REDUCTIONS[] = {
    {"sum", {OF_NUMBERS(zero), OF_PAIRS(zero), [TYPE_BOOL] = zero_bool}, {OF_NUMBERS(add), OF_PAIRS(add), [TYPE_BOOL] = add_bool}},
    {"mean", {OF_NUMBERS(zero), OF_PAIRS(zero)}, {OF_NUMBERS(add), OF_PAIRS(add)}},
    {"prod", {OF_NUMBERS(one), OF_PAIRS(one), [TYPE_BOOL] = one_bool}, {OF_NUMBERS(multiply), OF_PAIRS(multiply), [TYPE_BOOL] = multiply_bool}},
    {"amax", OF_ALL(lowest), OF_ALL(most)},
    {"amin", OF_ALL(highest), OF_ALL(least)},
};
static const each_row ITSELF[KINDS] = {OF_NUMBERS(itself), OF_PAIRS(itself)}, UNCOUNTED[KINDS] = {OF_NUMBERS(uncounted), OF_PAIRS(uncounted)},
                      COUNTS[KINDS] = {OF_NUMBERS(count), OF_PAIRS(count)}, DIVIDES[KINDS] = {OF_NUMBERS(divide)};

/* The index as dense int64 whose numbers are inside and whose sizes fit into `array` but for `dim`; with `source`, into that
   too. A new reference; NULL, with an exception or without. */
static PyArrayObject *fitting(PyObject *object, PyArrayObject *array, int dim, PyArrayObject *source) {
    PyArrayObject *index = (PyArrayObject *)object;
    const int ndim = PyArray_NDIM(array);
    if (native_array_type(object) != TYPE_I64 || !ndim || dim < 0 || dim >= ndim || PyArray_NDIM(index) != ndim ||
        !PyArray_SIZE(index) || (source && PyArray_NDIM(source) != ndim))
        return NULL;
    for (int i = 0; i < ndim; i++)
        if ((i != dim && PyArray_DIM(index, i) > PyArray_DIM(array, i)) ||
            (source && PyArray_DIM(index, i) > PyArray_DIM(source, i)))
            return NULL;
    return native_index_inside(object, PyArray_DIM(array, dim));
}

PyObject *native_gather_each(PyArrayObject *x, PyObject *at, int dim) {
    static const each_row PICKS[] = {[1] = pick_1, [2] = pick_2, [4] = pick_4, [8] = pick_8, [16] = pick_16};
    const int type = kind_of((PyObject *)x);
    PyArrayObject *index = type == KINDS ? NULL : fitting(at, x, dim, NULL), *made = NULL;
    if (index)
        made = type >= C32 ? native_empty_complex(PyArray_NDIM(x), PyArray_DIMS(index), type == C32 ? TYPE_F32 : TYPE_F64)
                           : native_empty(PyArray_NDIM(x), PyArray_DIMS(index), (native_type)type);
    if (made)
        walk_rows(&(each_walk){PyArray_NDIM(x), dim, PyArray_DIMS(index), PyArray_STRIDES(x), PyArray_STRIDES(made),
                               PyArray_STRIDE(x, dim), PyArray_DATA(index), PyArray_BYTES(x), PyArray_BYTES(made)},
                  PICKS[PyArray_ITEMSIZE(x)]);
    Py_XDECREF(index);
    return (PyObject *)made;
}

PyObject *native_reduce_each(PyObject *const *args, int dim, PyObject *reduce, bool include_self, bool place) {
    PyArrayObject *x = (PyArrayObject *)args[0], *source = (PyArrayObject *)args[2];
    const int type = kind_of(args[0]);
    size_t how = 0;
    while (how < sizeof REDUCTIONS / sizeof *REDUCTIONS && PyUnicode_CompareWithASCIIString(reduce, REDUCTIONS[how].name))
        how++;
    if (type == KINDS || how == sizeof REDUCTIONS / sizeof *REDUCTIONS || !REDUCTIONS[how].combine[type] ||
        kind_of(args[2]) != type || (place && (!PyArray_IS_C_CONTIGUOUS(x) || !PyArray_ISWRITEABLE(x) ||
        native_overlap(x, source) || native_overlap(x, (PyArrayObject *)args[1]))))
        return NULL;
    PyArrayObject *index = fitting(args[1], x, dim, source), *made = NULL;
    if (!index)
        return NULL;
    const bool mean = how == 1;
    const size_t room = (size_t)PyArray_SIZE(x) * sizeof(int32_t);
    int32_t *counts = mean ? native_scratch(room) : NULL;
    if (!mean || counts)
        made = place ? (PyArrayObject *)Py_NewRef(args[0])
               : type >= C32 ? (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER)
                             : native_copied(x, (native_type)type);
    if (made) {
        const each_walk walk = {PyArray_NDIM(x), dim, PyArray_DIMS(index), PyArray_STRIDES(made), PyArray_STRIDES(source),
                                PyArray_STRIDE(made, dim), PyArray_DATA(index), PyArray_BYTES(made), PyArray_BYTES(source),
                                PyArray_BYTES(made), counts};
        if (!include_self)
            walk_rows(&walk, REDUCTIONS[how].begin[type]);
        if (mean) {
            if (type >= C32)
                memset(counts, 0, room);
            walk_rows(&walk, (include_self ? ITSELF : UNCOUNTED)[type]);
            walk_rows(&walk, COUNTS[type]);
        }
        walk_rows(&walk, REDUCTIONS[how].combine[type]);
        if (mean && type >= C32)
            divide_pairs(type, PyArray_DATA(made), counts, PyArray_SIZE(made));
        else if (mean)
            walk_rows(&walk, DIVIDES[type]);
    }
    if (counts)
        native_scratch_free(counts, room);
    Py_DECREF(index);
    return (PyObject *)made;
}
