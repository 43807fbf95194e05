/* Whole quotients of integers and what is left: the loops that each instruction set fills. No divisor is 0. */
#ifndef TENSORCORE_NATIVE_DIVISION_H
#define TENSORCORE_NATIVE_DIVISION_H

#include "types.h"

enum { DIVISION_FLOOR, DIVISION_TRUNC, DIVISION_REMAINDER, DIVISION_FMOD, DIVISIONS };

typedef struct {
    native_loop of[DIVISIONS][TYPES]; /* of integers */
} division_loops;

#endif
