/* Losses by margins: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_MARGINS_H
#define TENSORCORE_NATIVE_MARGINS_H

#include "types.h"

/* One call: rows of n scores. */
typedef struct {
    ptrdiff_t n;
    int p; /* 1 or 2; 0 where a row has several labels, ended by -1 */
    double margin;
    const void *weight;    /* of each class, or NULL */
    const int64_t *target; /* a class for each row, or n labels */
} margin_shape;

typedef struct {
    /* Adds up what counts in rows [begin, end): a number for each. `marks` are n bytes of scratch. */
    void (*sums)(const margin_shape *of, const void *x, double *sums, ptrdiff_t begin, ptrdiff_t end, unsigned char *marks);
    /* The gradient of x, where that of row i is g[i * step] times `factor`. */
    void (*backward)(const margin_shape *of, const void *x, const void *g, ptrdiff_t step, double factor, void *out,
                     ptrdiff_t begin, ptrdiff_t end, unsigned char *marks);
} margin_of_real;

typedef struct {
    margin_of_real of[2]; /* TYPE_F32, TYPE_F64 */
} margin_loops;

#endif
