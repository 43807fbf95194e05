/* Rows of a few elements, picked by place. */
#ifndef TENSORCORE_NATIVE_SHUFFLE_H
#define TENSORCORE_NATIVE_SHUFFLE_H

#include "types.h"

enum { SHUFFLED = 16 }; /* elements of a row at most */

typedef struct {
    /* to[i][j] = from[i][at[j]] for i < rows and j < count, up to SHUFFLED; rows are `down` and `to_down` bytes apart. By the
       logarithm of an element's size: 1, 2, 4, 8 bytes. Nothing is read outside of what is picked in all of the rows. */
    void (*pick_rows[4])(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, const ptrdiff_t *at,
                         ptrdiff_t count);
} shuffle_loops;

#endif
