/* Slices shortened to a norm: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_RENORM_H
#define TENSORCORE_NATIVE_RENORM_H

#include "types.h"

/* An array as (before, n, after); p is 1 or 2. */
typedef struct {
    ptrdiff_t before, n, after;
    double p, most;
    const char *from;
    char *to;
} shorten_run;

/* Makes the slices [begin, end) of n. */
typedef void (*renorm_shorten)(const shorten_run *run, ptrdiff_t begin, ptrdiff_t end);

typedef struct {
    renorm_shorten shorten[2]; /* TYPE_F32, TYPE_F64 */
} renorm_loops;

#endif
