/* Short rows, each of one number or copied, and copies of rows of any length that leave alone what is between them. */
#ifndef TENSORCORE_NATIVE_SPREAD_H
#define TENSORCORE_NATIVE_SPREAD_H

#include "types.h"

enum { SPREAD_VECTOR = 32 }; /* bytes: what is behind a shorter row of one number is written too, up to as many from its start */

/* to[i][j] = from[i][j] for i < rows and j < width, whose rows are `down` and `to_down` bytes apart, and elements of `from` `along`:
   0, or as many as one has. */
typedef void (*spread_loop)(const char *from, ptrdiff_t down, ptrdiff_t along, char *to, ptrdiff_t to_down, ptrdiff_t rows,
                            ptrdiff_t width);

/* Rows of so many bytes, of which not one more is read or written, to memory that does not overlap theirs. */
typedef void (*rows_loop)(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, ptrdiff_t bytes);

typedef struct {
    spread_loop spread[4]; /* by the logarithm of an element's size: 1, 2, 4, 8 bytes */
    rows_loop copy_rows;
    /* to[i] = from[i] & mask[i] for bytes. */
    void (*keep)(const char *from, const char *mask, char *to, ptrdiff_t bytes);
} spread_loops;

#endif
