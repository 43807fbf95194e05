/* Windows of 3x3 with fewer multiplications: what the entries hand to the loops. All of it is in elements. */
#ifndef TENSORCORE_NATIVE_WINOGRAD_H
#define TENSORCORE_NATIVE_WINOGRAD_H

#include "types.h"

/* Windows with a step of one, whose inputs' gradients are such windows too; with a step of two; and the inputs' gradients of
   those. */
typedef enum { WINOGRAD_ONE, WINOGRAD_TWO, WINOGRAD_TWO_TURNED, WINOGRAD_KINDS } winograd_kind;

/* How a tile is made along one dim: from its pixels the inputs of products, from three taps four weights, and from sums of
   products the outputs. Each term is a product of an input and a weight, and the sum that it belongs to. */
enum { WINOGRAD_TERMS = 5, WINOGRAD_WEIGHTS = 4, WINOGRAD_OUTPUTS = 4 };
typedef struct {
    int pixels, reach, apart;                    /* as many; how far they reach; from tile to tile */
    int inputs, sums, outputs, terms;
    struct {
        int input, weight, sum;
    } term[WINOGRAD_TERMS];
} winograd_tile;

static const winograd_tile WINOGRAD_TILES[WINOGRAD_KINDS] = {
    {4, 4, 2, 4, 4, 2, 4, {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}}},
    {5, 5, 4, 5, 3, 2, 5, {{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 2}, {4, 1, 2}}},
    {4, 3, 2, 4, 5, 4, 5, {{0, 0, 0}, {1, 2, 1}, {2, 3, 2}, {1, 1, 3}, {3, 1, 4}}},
};

/* An input of images, and the outputs whose windows of 3x3 lie in it, cut into tiles and blocks of tiles: several rows of them,
   which may go on in the next image, or a part of one row. Images are C-contiguous. */
typedef struct {
    winograd_kind kind;
    int from[2][WINOGRAD_TERMS], to[2][WINOGRAD_OUTPUTS]; /* where a tile's pixels and outputs lie along each dim */
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
       block of channels, sum by sum, of which there are 16 for each; and the gradient that these sums are, with whether
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
