/* What the families that work on rows, planes and losses share: dense operands, options, sums on threads. */
#ifndef TENSORCORE_NATIVE_ROWS_H
#define TENSORCORE_NATIVE_ROWS_H

#include "copies.h"
#include "native.h"
#include "plan.h"

/* TYPE_F32 or TYPE_F64 of an array of such, else TYPE_NONE. */
native_type native_real_type(PyObject *object);

/* A copy in row-major order of an array of that type, turned around along `count` dims; NULL without an exception where one of them
   is not there. What lies crosswise is turned over tile by tile, on threads. */
PyArrayObject *native_flipped(PyArrayObject *x, native_type type, const npy_intp *dims, int count, const int *axes);

/* Which complex numbers are not zero, as bools in row-major order: a new reference; NULL with an exception. */
PyArrayObject *native_not_zero(PyObject *array);

/* The array itself or a copy of it in row-major order: a new reference; NULL with an exception. */
PyArrayObject *native_dense(PyObject *array);

/* Rows of elements that lie side by side. */
typedef struct {
    const void *data;
    npy_intp step;        /* elements from a row to the next: 0 where all of them are one */
    PyArrayObject *owner; /* of the memory: a new reference */
} native_lines;

/* The elements of an array of float or double as rows of n, in row-major order: where they lie if they do so, else a copy, which is
   one row where all elements lie in one place. False with an exception. */
bool native_lines_of(PyArrayObject *array, npy_intp n, native_lines *lines);

/* Whether the elements of an array, as rows of n in row-major order, lie side by side in each row, and rows so many bytes apart. */
bool native_rows_apart(PyArrayObject *array, npy_intp n, npy_intp *step);

/* Whether all elements lie in one place. */
bool native_uniform(PyArrayObject *array);

/* Whether an array has a dim, and its size; without dims it is a row of one element, whose dim is 0. */
static inline bool native_has_dim(PyArrayObject *array, long dim) { return dim >= 0 && dim < (PyArray_NDIM(array) ? PyArray_NDIM(array) : 1); }
static inline npy_intp native_length(PyArrayObject *array, int dim) { return PyArray_NDIM(array) ? PyArray_DIM(array, dim) : 1; }

/* The products of the sizes before `dim` and after it. */
void native_around(PyArrayObject *array, int dim, npy_intp *before, npy_intp *after);

/* Whether all numbers are at least 0 and under `size`; on several threads. */
bool native_inside(const int64_t *index, npy_intp count, npy_intp size);

/* The least and the largest of at least one integer of a dense array; false for other types, bools among them. */
bool native_integer_bounds(PyArrayObject *x, native_type type, int64_t *low, int64_t *high);

/* An index of int64 in row-major order whose numbers are all inside: a new reference; NULL, with an exception or without. */
PyArrayObject *native_index_inside(PyObject *index, npy_intp size);

/* A loop over the rows of a plan, whose result goes past the caches where it has `past` bytes or more. */
void native_plan_loop(native_plan *plan, npy_intp grain, native_loop loop, npy_intp past);

/* The whole of an ordinary call: arrays of one shape in row-major order, and numbers, through a loop to `out`, which is such an
   array, or to a new one where that is NULL; arrays without dims are numbers too. NULL where they are others, where `out` shares some memory with one that is not itself,
   or where the result has `past` bytes or more, without an exception. */
PyObject *native_dense_loop(const native_operand *operands, int inputs, native_type type, PyObject *out, npy_intp grain,
                            native_loop loop, npy_intp past);

/* A new array in row-major order with the values of x, which has that type. */
PyArrayObject *native_copied(PyArrayObject *x, native_type type);

/* What a result begins with, before a kernel changes some of it: a part is copied by the thread that changes it, so that it
   comes from the cache the second time. */
typedef struct {
    const char *from; /* NULL where the result has its values already */
    int step;         /* the bytes of an element; 0 where all elements are the one at `from` */
    int size;
} native_start;

/* A new array in row-major order for the values of x, and where they come from. */
PyArrayObject *native_started(PyArrayObject *x, native_type type, native_start *start);

enum { BEGUN = 1 << 19 }; /* bytes that are begun before the first of them changes: they stay in the second cache */

/* The values of `count` elements from number `begin` on, to their place in the result that begins at `made`. */
void native_begin_with(const native_start *start, char *made, npy_intp begin, npy_intp count);

/* What `sums` (scatter.h) adds to the values of x: into x itself (`place`), or into a new array. The place `padding` becomes
   zero, where it is not negative. NULL without an exception for short slices of half types, whose sums are rounded once. Each sum has its
   order whatever the number of threads. */
struct slice_sums;
bool native_sums_of(native_type type); /* whether it takes that type, long slices or short: not half types */
PyArrayObject *native_sum_slices(PyArrayObject *x, native_type type, bool place, const struct slice_sums *sums, npy_intp padding);

typedef enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM, REDUCTION_UNKNOWN } native_reduction;
native_reduction native_reduction_named(PyObject *name);

/* A 0-d array of a real type; NULL with an exception. */
PyObject *native_number_array(double number, native_type type);

/* The number in a 0-d array of a real type. */
double native_number_in(PyArrayObject *array);

/* Fills an array of that type, whose elements lie in one piece, with a number; false where that is none of the type. */
bool native_fill(PyArrayObject *x, native_type type, PyObject *number);

/* At least 1: as many rows of `size` elements as make `grain` elements. */
static inline npy_intp native_grain(npy_intp grain, npy_intp size) {
    return size >= grain ? 1 : grain / (size ? size : 1);
}

/* Sums, extremes, or roots of the sums of squares along some dims of an array of floats, of half types no extremes; NULL, with an
   exception or without. */
typedef enum { EXTENT_SUM, EXTENT_LARGEST, EXTENT_SMALLEST, EXTENT_EUCLID } native_extent;
PyObject *native_reduced_along(PyObject *x, native_extent kind, PyObject *dim, PyObject *keepdim);

/* The variance, or its root, of floats along some dims, or a tuple of it and the mean; NULL, with an exception or without. */
PyObject *native_spread_along(PyObject *x, double correction, bool root, bool with_mean, PyObject *dim, PyObject *keepdim);

/* The norm of an order of floats along some dims; NULL, with an exception or without. */
PyObject *native_norm_along(PyObject *x, double power, PyObject *dim, PyObject *keepdim);

typedef double (*native_part)(void *context, npy_intp begin, npy_intp end);

/* The sum of part(begin, end) over pieces of `grain` of [0, count): the same whatever the number of threads.
   False with an exception where there is no memory. */
bool native_sum_of_parts(npy_intp count, npy_intp grain, native_part part, void *context, double *sum);

#endif
