/* Convolutions of small planes that have a window of their own each: what the loops that each instruction set fills are told. */
#ifndef TENSORCORE_NATIVE_CONV_SMALL_H
#define TENSORCORE_NATIVE_CONV_SMALL_H

#include "conv_call.h"

enum { SMALL_VECTOR = 64, SMALL_SIDES = 3 }; /* bytes of the widest vector; arrays of windows beside those of planes in the room */

/* An element of a plane that a window reaches, and with which of its taps. */
typedef struct {
    int32_t place, tap;
} small_pair;

typedef struct {
    const convolution *c;
    const small_pair *pairs;       /* of all outputs, one after the other, */
    const int32_t *ends;           /* behind those of each */
    ptrdiff_t plane, outputs;      /* elements of a plane and of its outputs */
} small_job;

typedef struct {
    ptrdiff_t lanes; /* channels that are made at once */
    void (*run)(const small_job *job, void *room, ptrdiff_t begin, ptrdiff_t end); /* counts groups of so many */
} small_real_loops;

typedef struct {
    small_real_loops real[2]; /* of float and double */
} conv_small_loops;

#endif
