/* Tiles of a matrix whose rows become columns. */
#ifndef TENSORCORE_NATIVE_TURN_H
#define TENSORCORE_NATIVE_TURN_H

#include "types.h"

/* to[i][j] = from[j][i] for i < rows and j < columns, where neighbours along i lie side by side in `from` and neighbours
   along j in `to`; the steps are those of the other dim, in bytes. The two may not overlap. */
typedef void (*turn_loop)(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step, ptrdiff_t rows, ptrdiff_t columns);

typedef struct {
    turn_loop turn[4]; /* by the logarithm of an element's size: 1, 2, 4, 8 bytes */
} turn_loops;

#endif
