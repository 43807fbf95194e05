/* Kernels of single precision for the two half types. */
#ifndef TENSORCORE_NATIVE_HALVES_H
#define TENSORCORE_NATIVE_HALVES_H

#include "plan.h"

/* How the results of the kernel of that name are rounded where its operands are of a half type; NULL where it does not take them. */
const char *native_rounds(const char *name);

/* The kernel's run with operands of one half type converted to float; NULL without an exception where they are others. */
PyObject *native_widened(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* A new array of another type with the values of one, whose memory order it has; between the half types and float. */
PyObject *native_converted(PyArrayObject *x, native_type from, native_type to);

/* `count` elements side by side: halves, or each `step` halves from the one before, to floats, and floats rounded to halves. */
void native_widen(native_type half, const void *from, float *to, npy_intp count);
void native_widen_apart(native_type half, const void *from, npy_intp step, float *to, npy_intp count);
void native_narrow(native_type half, const float *from, void *to, npy_intp count);

/* x + factor * y of two arrays of one half type, rounded once; NULL without an exception where they are others. */
PyObject *native_add_scaled_halves(PyObject *x, PyObject *y, double factor, PyObject *out);

/* The float that stands beside halves as one of them, and back: the number of an operand takes on another type. */
void native_retype_number(native_operand *operand, native_type from, native_type to);

/* A number as one of a half type; as it is where the type is another. */
double native_rounded(double number, native_type type);

#endif
