/* Distinct elements without a look at the dims: what unique.c hands on. */
#ifndef TENSORCORE_NATIVE_DISTINCT_H
#define TENSORCORE_NATIVE_DISTINCT_H

#include "native.h"

/* (values, inverse, lengths); NULL where one is missing, or has no place. Takes the references. */
PyObject *native_all_three(PyArrayObject *values, PyArrayObject *inverse, PyArrayObject *lengths);

/* Those of a dense array that has elements, in order, where each element is among them, and how often each occurs; NULL, with an
   exception or without, where the type is a half or bool. */
PyObject *native_distinct(PyArrayObject *x, native_type type);

#endif
