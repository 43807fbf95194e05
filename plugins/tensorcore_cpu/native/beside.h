/* Sums, differences, products and quotients of short rows beside a number for each, or beside other rows. */
#ifndef TENSORCORE_NATIVE_BESIDE_H
#define TENSORCORE_NATIVE_BESIDE_H

#include "types.h"

enum { BESIDE_VECTOR = 32 }; /* bytes that a row has at least */

enum { BESIDE_ADD, BESIDE_SUB, BESIDE_MUL, BESIDE_DIV, BESIDE_SUB_FROM, BESIDE_DIV_INTO, BESIDE_OPS };

/* made[i][j] = rows[i][j] op others[i] or op others[i][j] (or the other way round) for i < count and j < width: rows and others are so
   many bytes apart, those of the result lie one behind the other, and may be the rows themselves. */
typedef void (*beside_loop)(const char *rows, ptrdiff_t down, const char *others, ptrdiff_t apart, char *made, ptrdiff_t count,
                            ptrdiff_t width);

typedef struct {
    beside_loop numbers[2], rows[2]; /* of float and double */
} beside_op;

typedef struct {
    beside_op ops[BESIDE_OPS];
} beside_loops;

#endif
