/* Gradients of the distances of rows: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_DISTANCE_GRADIENTS_H
#define TENSORCORE_NATIVE_DISTANCE_GRADIENTS_H

#include "types.h"

enum { PULL_SIZES, PULL_EUCLID, PULL_LARGEST, PULL_COUNT };

/* Writes the gradient of one row: what each of `others` rows y, that of the distance to it, `g`, and that distance add to it. */
typedef void (*pull_loop)(const void *x, const void *y, const void *g, const void *distances, ptrdiff_t others, ptrdiff_t width,
                          void *made);

typedef struct {
    pull_loop of[PULL_COUNT][TYPE_F64 + 1];
} pull_loops;

#endif
