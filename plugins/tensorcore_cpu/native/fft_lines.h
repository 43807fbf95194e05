/* Fourier transforms of all lines along one dim. */
#ifndef TENSORCORE_NATIVE_FFT_LINES_H
#define TENSORCORE_NATIVE_FFT_LINES_H

#include "fft.h"
#include "native.h"

/* Whether lines of a size are made here; real numbers are counted one by one. */
bool fft_fits(fft_kind kind, npy_intp size);

/* Transforms along a dim, from one array into another or into itself; false with an exception. */
bool fft_along(PyArrayObject *x, PyArrayObject *made, int dim, fft_kind kind, npy_intp size, bool forward, double scale);

void fft_lines_init(void);

#endif
