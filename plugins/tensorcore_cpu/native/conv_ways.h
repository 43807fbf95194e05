/* Which way a convolution is made. */
#ifndef TENSORCORE_NATIVE_CONV_WAYS_H
#define TENSORCORE_NATIVE_CONV_WAYS_H

#include "conv_call.h"

/* A product of matrices, few multiplications, planes of one channel each, a product whose columns are added up, and sums over
   taps in each way of taps_way. */
typedef enum { CONV_PRODUCT, CONV_WINOGRAD, CONV_DEPTHWISE, CONV_FOLDED, CONV_SMALL, CONV_TAPS, CONV_WIDE, CONV_DIRECT, CONV_TILES, CONV_WAYS } conv_way;

/* The way that the fixed rules take. */
conv_way conv_ruled(const convolution *c);
bool conv_make(const convolution *c, conv_way way);

/* Puts the way that was measured for these sizes to `way`, where programs ask for that. True where it is the caller's turn to
   measure: nobody has, and nobody else is at it. */
bool conv_recall(const convolution *c, conv_way *way);

/* Runs each way that fits several times, keeps the fastest for these sizes, and answers it: the rules' where none is clearly
   faster. Everything must be C-contiguous. */
conv_way conv_measure(const convolution *c, conv_way ruled);
void conv_forget(void);

#endif
