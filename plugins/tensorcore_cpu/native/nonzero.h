/* Places that are not zero: what each instruction set counts and lists. */
#ifndef TENSORCORE_NATIVE_NONZERO_H
#define TENSORCORE_NATIVE_NONZERO_H

#include "types.h"

enum { RUNS_F32, RUNS_F64, RUNS_BOOL, RUNS_BITS, RUNS = RUNS_BITS + 4 }; /* the last ones by the logarithm of the size */

typedef struct {
    /* By the logarithm of the element's size: an element counts where any of its bits is set, but for the sign's if `real`. */
    ptrdiff_t (*count[4])(const void *data, ptrdiff_t size, bool real);
    /* The places in data[0..size), in order; how many. `places` has room for `size`. */
    ptrdiff_t (*list[4])(const void *data, ptrdiff_t size, bool real, int64_t *places);
    /* Those of the elements whose mask is set, behind one another. */
    ptrdiff_t (*pick[4])(const void *data, const uint8_t *mask, ptrdiff_t size, void *picked);
    /* By what is compared: elements of x that are not equal to the one before them, also x[0] to x[-1]; how many, and these behind
       one another. NaN is equal to nothing, and of other bytes than 0 that are seen as bools all are true. */
    ptrdiff_t (*count_changes[RUNS])(const void *x, ptrdiff_t size);
    ptrdiff_t (*pick_changes[RUNS])(const void *x, ptrdiff_t size, void *picked);
} nonzero_loops;

#endif
