/* Recurrent layers: what the entries hand to the loops. A cell is what follows the product of one step. */
#ifndef TENSORCORE_NATIVE_RECURRENT_H
#define TENSORCORE_NATIVE_RECURRENT_H

#include "types.h"

/* Some rows and some units of one step. Arrays begin at the first of them; a row of x, acts, dx and dz holds the units of
   each gate side by side, one of the others only units. Which of them a cell uses stands in loops/recurrent_of_real.h. */
typedef struct {
    ptrdiff_t rows, width;   /* of this part */
    ptrdiff_t size;          /* units of the layer */
    const void *z;           /* the products of each gate, */
    ptrdiff_t z_row, z_gate; /* so far from one row and from one gate to the next */
    const void *x, *bias, *prev;
    void *acts, *made, *before, *inner, *h, *c;
    const void *grads; /* of `made`; NULL for none */
    void *dh, *dc, *dx, *dz;
    bool relu;
} recurrent_part;

typedef void (*recurrent_cell)(const recurrent_part *part);

typedef struct {
    recurrent_cell lstm, gru, rnn, lstm_backward, gru_backward, rnn_backward;
} recurrent_real_loops;

typedef struct {
    recurrent_real_loops real[2]; /* float, double */
} recurrent_loops;

#endif
