/* Normalisations of half types, whose rows and channels are floats one after the other and not all at once. */
#ifndef TENSORCORE_NATIVE_NORM_HALVES_H
#define TENSORCORE_NATIVE_NORM_HALVES_H

#include "native.h"
#include "norm.h"

enum { NORM_CHANNEL = 1 << 16 }; /* elements of a channel that stays in the second cache as floats, twice */

/* All `count` rows, or all channels of more than one element side by side: x and out are of the half type, all else floats. On threads;
   false where there is no memory. */
bool native_norm_half_rows(const norm_of_real *of, const norm_rows *rows, npy_intp count, native_type half, npy_intp grain);
bool native_norm_half_channels(const norm_of_real *of, const norm_channels *channels, native_type half, npy_intp grain);

#endif
