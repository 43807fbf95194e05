/* Picks and reductions by an index with a number for each element, whatever its sizes. */
#ifndef TENSORCORE_NATIVE_EACH_H
#define TENSORCORE_NATIVE_EACH_H

#include "native.h"

/* gather: the elements of x at the index along `dim`. NULL, with an exception or without. */
PyObject *native_gather_each(PyArrayObject *x, PyObject *index, int dim);

/* scatter_reduce of x, an index and a source into x itself (`place`) or a copy, one element after the other. */
PyObject *native_reduce_each(PyObject *const *args, int dim, PyObject *reduce, bool include_self, bool place);

#endif
