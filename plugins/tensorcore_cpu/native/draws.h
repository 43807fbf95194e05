/* Draws by the name of their kind: what the methods of a backend and the functions that take a state share. */
#ifndef TENSORCORE_NATIVE_DRAWS_H
#define TENSORCORE_NATIVE_DRAWS_H

#include "native.h"

/* Kinds of draws, then options and attributes. */
enum {
    UNIFORM, NORMAL, BERNOULLI, INTEGERS, EXPONENTIAL, PERMUTATION, CAUCHY, GEOMETRIC, RANDOM, SLOPES, MULTINOMIAL, SERIAL_NORMAL, LOG_NORMAL,
    GAMMA, POISSON, BINOMIAL,
    UNKNOWN,
    O_LOW = UNKNOWN, O_HIGH, O_MEAN, O_STD, O_PROBABILITY, O_ONE, O_RATE, O_WEIGHTS, O_REPLACEMENT, O_MEDIAN, O_SIGMA, A_NUMPY, A_LEND,
    A_LEND_NORMAL, O_INPUT, O_ALPHA, O_COUNT, DRAW_NAMES,
    FLIPS = -1 /* ones with a probability each */
};
extern PyObject *draw_names[DRAW_NAMES]; /* interned */

enum { FEW_NORMALS = 16 }; /* fewer are drawn one by one */

/* The kind of that name, UNKNOWN where there is none. */
int draw_kind(PyObject *name);

#endif
