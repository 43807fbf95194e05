/* The pictures that windows of convolutions lie in, and memory for them. */
#ifndef TENSORCORE_NATIVE_CONV_WINDOWS_H
#define TENSORCORE_NATIVE_CONV_WINDOWS_H

#include "conv.h"
#include "conv_call.h"

/* Memory that is given back together. */
typedef struct {
    void *blocks[6];
    size_t sizes[6];
    int count;
} conv_rooms;

/* Room for so many bytes, and CONV_SLACK more; NULL where there is no memory. */
void *conv_room(conv_rooms *all, ptrdiff_t bytes);
void conv_give_back(conv_rooms *all);

/* Fills in the lengths, and copies images with zeros around them, of elements of `size` bytes; NULL where there is no memory. Who
   reads nothing but what is multiplied has images without zeros around them stay where they lie: to copy 64 of 6x14x14 took a
   tenth of the time for 16 outs. */
const void *conv_padded(conv_rooms *all, conv_images *m, size_t size, bool may_lie);

/* The windows of `conv` in padded images, whose rows are `split` by phase if they are to be read in vectors of positions: where
   each tap is, and the way from one output to the next. */
const void *conv_windows(conv_rooms *all, const convolution *c, conv_images *m, ptrdiff_t *offsets, ptrdiff_t *move, bool split,
                         bool may_lie);

/* The items of windows, a channel's tap each, from what its taps are; NULL where there is no memory. */
ptrdiff_t *conv_items(conv_rooms *all, ptrdiff_t channels, ptrdiff_t channel, const ptrdiff_t *taps, ptrdiff_t count);

/* A copy with steps of one along dims whose windows are one element: of the others nothing is read. */
convolution conv_narrowed(const convolution *c);

/* Makes one row of rows of outputs that follow one another in the picture; `move` is the way along depth and height. */
void conv_join_rows(ptrdiff_t *counts, ptrdiff_t *move);

#endif
