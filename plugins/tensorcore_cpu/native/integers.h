/* Reductions of integers and bools, and extremes of half types: what reduce.c hands on. */
#ifndef TENSORCORE_NATIVE_INTEGERS_H
#define TENSORCORE_NATIVE_INTEGERS_H

#include "folds.h"

/* New arrays; NULL, with an exception or without where the elements are of no type for that. The sum has that integer type. */
PyObject *native_integer_sum(const native_fold *of, native_type type);
/* Of rows of int64. */
PyObject *native_integer_product(const native_fold *of);
PyObject *native_integer_extreme(const native_fold *of, bool largest);
/* Places along the reduced dim, of a fold without a front; with the values there as a tuple. */
PyObject *native_integer_place(const native_fold *of, bool largest, bool with_values);

#endif
