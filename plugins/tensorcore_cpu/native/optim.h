/* Optimizer steps: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_OPTIM_H
#define TENSORCORE_NATIVE_OPTIM_H

#include "types.h"

/* The numbers of a step; each loop reads those that it knows. */
typedef struct {
    double lr, weight_decay, momentum, dampening, beta1, beta2, eps, factor;
    bool nesterov, maximize, first, decoupled;
} step_numbers;

/* One parameter: its elements, its gradient and what the optimizer remembers of it. */
typedef struct {
    char *param, *grad, *one, *two, *three; /* NULL where there is no such */
    double size, correction;                /* of Adam's steps so far */
} step_arrays;

typedef void (*step_loop)(const step_numbers *numbers, const step_arrays *arrays, ptrdiff_t first, ptrdiff_t count);

typedef struct {
    step_loop sgd[2], adam[2]; /* TYPE_F32, TYPE_F64 */
    /* Multiplies the gradients in place; whether one of them is not finite. */
    bool (*unscale[2])(void *grad, ptrdiff_t count, double factor);
} optim_loops;

#endif
