/* What the families of complex numbers share. */
#ifndef TENSORCORE_NATIVE_COMPLEX_NUMBERS_H
#define TENSORCORE_NATIVE_COMPLEX_NUMBERS_H

#include "complex_formulas.h"
#include "native.h"

/* A loop of complex_formulas.h over one array, or two operands, arrays or numbers, that broadcast; NULL without an exception where they are others. */
PyObject *native_complex_one(int loop, PyObject *x, PyObject *out);
PyObject *native_complex_pair(int loop, PyObject *x, PyObject *y, PyObject *out);

#endif
