/* Kernels that only move elements, or add them up, for complex numbers. */
#ifndef TENSORCORE_NATIVE_MOVES_H
#define TENSORCORE_NATIVE_MOVES_H

#include "native.h"

/* A letter for each positional argument of a kernel: `d` for the elements that move. In `pairs`, a dim more, `i` stands for an index or a
   mask with a place for each of them; NULL where the kernel cannot be called so. `moves` is NULL where it adds elements up. */
typedef struct native_moving {
    const char *name, *moves, *pairs;
} native_moving;

/* What is known of the kernel of that name; NULL where it does more. */
const native_moving *native_moves(const char *name);

/* The call of such a kernel with its complex numbers as integers of the same size, or as pairs; NULL without an exception where it has none. */
PyObject *native_moved(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

#endif
