/* Running sums and products: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_SCANS_H
#define TENSORCORE_NATIVE_SCANS_H

#include "types.h"

enum { SCAN_STRIP = 512 }; /* columns that are scanned together */

/* Of `rows` rows, `step` elements apart, each of `width` columns: what is made of a column's elements up to each of them. */
typedef void (*scan_loop)(const void *x, void *made, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width);

/* The same with where it is found. */
typedef void (*scan_places_loop)(const void *x, void *made, int64_t *places, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width);

typedef struct {
    scan_loop sum[TYPES]; /* in double where elements are floats; NULL where there is none */
    scan_loop product[TYPES];
    scan_places_loop largest[TYPES], smallest[TYPES]; /* of integers */
} scan_loops;

#endif
