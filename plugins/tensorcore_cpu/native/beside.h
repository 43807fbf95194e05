/* Sums, differences, products and quotients of short rows beside a number for each. */
#ifndef TENSORCORE_NATIVE_BESIDE_H
#define TENSORCORE_NATIVE_BESIDE_H

#include "types.h"

enum { BESIDE_VECTOR = 32 }; /* bytes that a row has at least */

enum { BESIDE_ADD, BESIDE_SUB, BESIDE_MUL, BESIDE_DIV, BESIDE_SUB_FROM, BESIDE_DIV_INTO, BESIDE_OPS };

/* made[i][j] = rows[i][j] op numbers[i] (or the other way round) for i < count and j < width: rows and numbers are so many bytes
   apart, those of the result lie one behind the other, and may be the rows themselves. */
typedef void (*beside_loop)(const char *rows, ptrdiff_t down, const char *numbers, ptrdiff_t apart, char *made, ptrdiff_t count,
                            ptrdiff_t width);

typedef struct {
    beside_loop loops[BESIDE_OPS][2]; /* of float and double */
} beside_loops;

#endif
