/* Running sums and products: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_SCANS_H
#define TENSORCORE_NATIVE_SCANS_H

#include "types.h"

enum { SCAN_STRIP = 512 }; /* columns that are scanned together */

/* `lines` lines after one another, each of `rows` rows, `step` elements apart, each of `width` columns; where there are several lines
   a row is nothing but its columns. From the last row to the first where `back` is true. */
typedef struct {
    ptrdiff_t lines, rows, step, width;
    bool back;
} scan_shape;

/* What is made of a column's elements up to each of them. */
typedef void (*scan_loop)(const void *x, void *made, const scan_shape *of);

/* The same with where it is found; never from the last row. */
typedef void (*scan_places_loop)(const void *x, void *made, int64_t *places, const scan_shape *of);

typedef struct {
    scan_loop sum[TYPES];   /* in double where elements are floats; NULL where there is none */
    scan_loop pair_sum[2];  /* of complex numbers as pairs of columns */
    scan_loop product[TYPES];
    scan_places_loop largest[TYPES], smallest[TYPES];
} scan_loops;

#endif
