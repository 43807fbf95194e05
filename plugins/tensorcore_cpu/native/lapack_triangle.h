/* Systems with a triangle of any size and a few right sides. */
#ifndef TENSORCORE_NATIVE_LAPACK_TRIANGLE_H
#define TENSORCORE_NATIVE_LAPACK_TRIANGLE_H

#include "types.h"

/* A real triangle whose rows (`by_rows`), or columns, are `step` elements apart and have their own elements side by side. */
typedef struct {
    const void *a;
    ptrdiff_t step, n;
    bool by_rows, upper, unit;
} lapack_triangle;

typedef struct {
    ptrdiff_t group; /* right sides that are solved together */
    /* `count` right sides that lie side by side, `line` elements apart, become the answers. No bit of one depends on the others. */
    void (*solve)(const lapack_triangle *of, void *b, ptrdiff_t line, ptrdiff_t count);
} lapack_triangle_real;

typedef struct {
    lapack_triangle_real real[2]; /* float, double */
} lapack_triangle_loops;

#endif
