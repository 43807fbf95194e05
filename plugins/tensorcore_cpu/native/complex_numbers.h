/* Complex numbers as pairs of floats: their arrays, and the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_COMPLEX_NUMBERS_H
#define TENSORCORE_NATIVE_COMPLEX_NUMBERS_H

#include "native.h"

/* The type of the parts of an array of complex numbers, TYPE_F32 or TYPE_F64; TYPE_NONE for anything else. */
native_type native_complex_type(PyObject *object);

/* A new C-contiguous array of complex numbers with parts of that type. */
PyArrayObject *native_empty_complex(int ndim, const npy_intp *shape, native_type type);

#endif
