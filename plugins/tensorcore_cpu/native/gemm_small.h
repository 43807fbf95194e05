/* Products for which starting anything else takes longer. */
#ifndef TENSORCORE_NATIVE_GEMM_SMALL_H
#define TENSORCORE_NATIVE_GEMM_SMALL_H

#include "native.h"

/* alpha * left @ right + beta * input for arrays of one to three dims, whose elements are of `type`, float or double; `input`
   is NULL or broadcasts to the result. NULL without an exception where that is not for us. */
PyObject *gemm_small(native_type type, PyObject *left, PyObject *right, PyArrayObject *input, double alpha, double beta);

#endif
