/* Kernels that only move elements, for complex numbers of single precision. */
#ifndef TENSORCORE_NATIVE_MOVES_H
#define TENSORCORE_NATIVE_MOVES_H

#include "native.h"

/* Which positional arguments of the kernel of that name hold the elements that it moves, a letter each: 'd', or '-' for indices and
   masks; NULL where it does more than move them. */
const char *native_moves(const char *name);

/* The call of such a kernel with its complex numbers as integers of the same size; NULL without an exception where it has none. */
PyObject *native_moved(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

#endif
