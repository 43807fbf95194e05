/* Casts and copies: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_CAST_H
#define TENSORCORE_NATIVE_CAST_H

#include "types.h"

typedef struct {
    /* From, to. The diagonal copies. The two half types go to and from float alone: others pass through it. */
    native_loop cast[TYPES][TYPES];
    /* Of doubles the floats that become the same float16: NumPy rounds to it once. */
    native_loop odd;
    /* Bytes to memory that does not overlap theirs, past the caches; `native_streamed` of copies.h has to follow the last of them. */
    void (*stream)(char *to, const char *from, ptrdiff_t bytes);
    /* Rows of elements of 1, 2, 4 and 8 bytes from the last one, to which `from` points, to the first. */
    void (*backwards[4])(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step, ptrdiff_t rows, ptrdiff_t count);
} cast_loops;

#endif
