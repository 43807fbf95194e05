/* Products for which starting anything else takes longer. */
#ifndef TENSORCORE_NATIVE_GEMM_SMALL_H
#define TENSORCORE_NATIVE_GEMM_SMALL_H

#include "native.h"

/* alpha * left @ right + beta * input for arrays of one to three dims, whose elements are of `type`, float or double; `input`
   is NULL or broadcasts to the result. NULL without an exception where that is not for us. */
PyObject *gemm_small(native_type type, PyObject *left, PyObject *right, PyArrayObject *input, double alpha, double beta);

/* Which side comes with its last two dims swapped. */
typedef struct {
    bool left, right;
} gemm_turned;

/* The same of complex numbers, whose parts are of `type`. */
PyObject *gemm_small_complex(native_type type, PyObject *left, PyObject *right, PyArrayObject *input, Py_complex alpha, Py_complex beta,
                             gemm_turned turned);

#endif
