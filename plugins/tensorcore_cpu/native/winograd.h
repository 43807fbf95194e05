/* Windows of 3x3 with fewer multiplications: what the entries hand to the loops. All of it is in elements. */
#ifndef TENSORCORE_NATIVE_WINOGRAD_H
#define TENSORCORE_NATIVE_WINOGRAD_H

#include "types.h"

/* An input of images, and the outputs whose windows of 3x3 lie side by side in it, cut into tiles of 2x2 outputs and blocks of
   tiles: several rows of them, which may go on in the next image, or a part of one row. Images are C-contiguous. */
typedef struct {
    ptrdiff_t images, channels, outs;            /* of one group */
    const void *data;
    ptrdiff_t image, height, width, before[2];   /* from image to image; sizes; zeros above and to the left */
    const void *weight;                          /* as weight[o * weight_out + c * weight_channel + tap] */
    ptrdiff_t weight_out, weight_channel;
    bool turned;                                 /* the taps come last first */
    const void *bias;                            /* NULL for none */
    void *made;                                  /* what comes out; for the weight's gradient what was sent */
    ptrdiff_t made_image, made_height, made_width;
    ptrdiff_t down, across;                      /* tiles of an image */
    ptrdiff_t rows, parts, columns, tiles;       /* of a block: rows of tiles, how many share one row, tiles of a row, and of all */
    ptrdiff_t blocks;
    void *gradient;                              /* the weight's: (outs, channels, 3, 3) */
} winograd_job;

/* Sizes are elements of the rooms that the others take. */
typedef struct {
    ptrdiff_t outs;                              /* of a block of weights */
    ptrdiff_t (*weights_size)(const winograd_job *job); /* of one block of outs */
    ptrdiff_t (*inputs_size)(const winograd_job *job);  /* of one block of tiles */
    ptrdiff_t (*spare_size)(const winograd_job *job);   /* for `inputs` and `sums` */
    void (*weights)(const winograd_job *job, void *made, ptrdiff_t block);
    void (*inputs)(const winograd_job *job, void *made, void *spare, ptrdiff_t block);
    /* The outputs of a block of tiles for a block of outs; answers whether all of them are finite. */
    bool (*sums)(const winograd_job *job, const void *inputs, const void *weights, void *spare, ptrdiff_t tiles, ptrdiff_t outs);

    /* The weight's gradient: what comes in and what was sent, of one block of tiles; what their products add to the sums of one
       block of channels, product by product, of which there are 16 for each; and the gradient that these sums are, with whether
       it is finite. */
    ptrdiff_t (*gradient_inputs_size)(const winograd_job *job);
    ptrdiff_t (*gradient_sent_size)(const winograd_job *job);
    ptrdiff_t (*gradient_sums_size)(const winograd_job *job);
    ptrdiff_t (*gradient_channels)(const winograd_job *job); /* how many blocks */
    void (*gradient_inputs)(const winograd_job *job, void *made, void *spare, ptrdiff_t block);
    void (*gradient_sent)(const winograd_job *job, void *made, void *spare, ptrdiff_t block);
    void (*gradient_products)(const winograd_job *job, const void *inputs, const void *sent, void *sums, ptrdiff_t product,
                              ptrdiff_t tiles, bool first);
    bool (*gradient)(const winograd_job *job, const void *sums, ptrdiff_t channels);
} winograd_real_loops;

typedef struct {
    winograd_real_loops real[2]; /* float, double */
} winograd_loops;

#endif
