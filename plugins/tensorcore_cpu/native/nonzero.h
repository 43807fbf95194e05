/* Places that are not zero: what each instruction set counts and lists. */
#ifndef TENSORCORE_NATIVE_NONZERO_H
#define TENSORCORE_NATIVE_NONZERO_H

#include "types.h"

typedef struct {
    /* By the logarithm of the element's size: an element counts where any of its bits is set, but for the sign's if `real`. */
    ptrdiff_t (*count[4])(const void *data, ptrdiff_t size, bool real);
    /* The places in data[0..size), in order; how many. `places` has room for `size`. */
    ptrdiff_t (*list[4])(const void *data, ptrdiff_t size, bool real, int64_t *places);
    /* Those of the elements whose mask is set, behind one another. */
    ptrdiff_t (*pick[4])(const void *data, const uint8_t *mask, ptrdiff_t size, void *picked);
} nonzero_loops;

#endif
