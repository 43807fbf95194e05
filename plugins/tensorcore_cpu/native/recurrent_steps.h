/* Recurrent layers: what a call says, from the entries to the steps. */
#ifndef TENSORCORE_NATIVE_RECURRENT_STEPS_H
#define TENSORCORE_NATIVE_RECURRENT_STEPS_H

#include "native.h"
#include "recurrent.h"

typedef enum { LSTM, GRU, RNN } recurrent_network;

/* Its arrays are new references, C-contiguous; NULL where there is none. Sequences come with the longest first. */
typedef struct {
    recurrent_network kind;
    native_type type;
    ptrdiff_t gates, rows, size, batch; /* rows of all steps together */
    ptrdiff_t steps, *first, *count;    /* of each step in the order in which they are taken */
    bool reverse, relu;
    bool for_h0; /* whether the gradient of h0 is wanted */
    PyArrayObject *x, *weight, *bias, *h0, *c0; /* the weight may lie anyhow */
} recurrent_call;

/* All steps over the arrays of `all`, which begin at row and unit 0. False where there is no memory. Call it with the GIL. */
bool recurrent_run(const recurrent_call *of, const recurrent_part *all, bool backward);

#endif
