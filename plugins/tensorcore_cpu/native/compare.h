/* Comparisons whose answers are numbers of the operands' own type: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_COMPARE_H
#define TENSORCORE_NATIVE_COMPARE_H

#include "elementwise.h"

#define COMPARISON_NUMBER(name) OVER_##name,
enum { COMPARE_OPS(COMPARISON_NUMBER) COMPARISONS };

typedef struct {
    native_loop over[COMPARISONS][TYPES]; /* NULL where there is none */
} compare_loops;

#endif
