/* Whole quotients of integers, what is left, and powers: the loops that each instruction set fills. No divisor is 0. */
#ifndef TENSORCORE_NATIVE_DIVISION_H
#define TENSORCORE_NATIVE_DIVISION_H

#include "types.h"

enum { DIVISION_FLOOR, DIVISION_TRUNC, DIVISION_REMAINDER, DIVISION_FMOD, DIVISION_POWER, DIVISIONS };

typedef struct {
    native_loop of[DIVISIONS][TYPES]; /* of integers */
} division_loops;

#endif
