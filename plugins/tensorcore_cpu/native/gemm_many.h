/* Batches of small matrix products: what gemm.c hands to their loops. */
#ifndef TENSORCORE_NATIVE_GEMM_MANY_H
#define TENSORCORE_NATIVE_GEMM_MANY_H

#include "gemm.h"

enum {
    MANY_WORK = 1 << 16, /* multiplications of one product up to which packing its sides takes longer than it saves */
    MANY_INNER = 128,    /* numbers in one sum */
    MANY_ROOM = 4096,    /* elements of a right side that is turned over first, on a thread's stack, */
    MANY_LANES = 16,     /* with rows of whole vectors */
};

/* `count` products: the first is the job, whose sides lie so many elements before those of the next; results follow one another. */
typedef void (*gemm_many_loop)(const gemm_job *job, ptrdiff_t count, ptrdiff_t left_step, ptrdiff_t right_step);

typedef struct {
    gemm_many_loop (*pick[4])(const gemm_job *job); /* of float, double, integers of 32 and of 64 bits */
} gemm_many_loops;

#endif
