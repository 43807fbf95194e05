/* Convolutions of integers: what the loops that each instruction set fills are told. */
#ifndef TENSORCORE_NATIVE_CONV_INTEGERS_H
#define TENSORCORE_NATIVE_CONV_INTEGERS_H

#include "conv_call.h"

/* Planes [begin, end) of the result, of all images: outputs, or the input's gradient. */
typedef void (*integer_planes)(const convolution *c, ptrdiff_t begin, ptrdiff_t end);

typedef struct {
    integer_planes sums[4], gradients[4]; /* by the logarithm of an element's size */
} conv_integer_loops;

#endif
