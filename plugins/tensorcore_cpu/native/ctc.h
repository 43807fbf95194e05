/* Connectionist temporal classification: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_CTC_H
#define TENSORCORE_NATIVE_CTC_H

#include "types.h"

/* Log-probabilities (length, batch, classes); of each sample the classes of its states, whether each may follow the one two
   before it, how many frames it has and the number of its last state. */
typedef struct {
    ptrdiff_t length, batch, classes, states;
    const void *x;
    const int64_t *labels;
    const bool *skips;
    const ptrdiff_t *frames, *lasts;
    bool infinite; /* the gradient of an infinite loss is 0 */
} ctc_what;

enum { CTC_ROWS = 6, CTC_VECTOR = 16 }; /* of scratch, and the elements by which each is longer than the states */

/* Each takes one sample, and scratch. */
typedef struct {
    void (*forward)(const ctc_what *what, ptrdiff_t sample, void *losses, void *alpha, void *scratch);
    void (*backward)(const ctc_what *what, ptrdiff_t sample, const void *g, const void *alpha, void *out, void *scratch);
} ctc_of_real;

typedef struct {
    ctc_of_real of[2]; /* TYPE_F32, TYPE_F64 */
} ctc_loops;

#endif
