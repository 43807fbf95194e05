/* Convolutions as sums over taps: what the entries hand to the loops. All of it is in elements, dims are (depth, height, width). */
#ifndef TENSORCORE_NATIVE_CONV_H
#define TENSORCORE_NATIVE_CONV_H

#include "types.h"

/* Images with zeros around them, and each row split by phase: with a stride of s, the elements x, x + s, x + 2s, ... lie side
   by side, so that the windows of neighbouring outputs do too. Reads may run over a row's end by less than SLACK. */
typedef struct {
    const void *data;
    ptrdiff_t images, channels, sizes[3]; /* of the source */
    ptrdiff_t steps[5];                   /* of the source: image, channel, depth, height, width */
    ptrdiff_t before[3], padded[3];       /* zeros in front (negative: what is cut off), and sizes with all of them */
    ptrdiff_t phases, phase;              /* the stride along the width, and the length of one phase of a row */
    ptrdiff_t row, plane, channel, image; /* lengths in the padded copy */
} conv_images;

enum { CONV_SLACK = 64 };

/* made[image, o, z, y, x] = bias[o] + sum over channels c and taps t of weight[o, c, t] * images[image, c, position + t]. */
typedef struct {
    const void *images;                     /* the padded copy, at the first channel of the group */
    ptrdiff_t image, channel, move[3];      /* from one image, channel, and output along each dim to the next */
    ptrdiff_t count, channels, taps;        /* images, channels, taps */
    ptrdiff_t row_taps;                     /* taps of one row, about */
    const ptrdiff_t *offsets;               /* of each tap from the window's first element */
    const void *weight;                     /* as weight[o * weight_out + c * weight_channel + at[t]] */
    ptrdiff_t weight_out, weight_channel;
    bool weight_solid;                      /* the channels and taps of an out lie side by side, in this order */
    const ptrdiff_t *weight_at;
    const void *bias;                       /* NULL for none */
    void *made;
    ptrdiff_t outs, counts[3];
    ptrdiff_t made_image, made_out, made_step[3];
    void *packed;                           /* room for the weights side by side, see packed_size */
    bool wide;                              /* vectors of outs; move[2] is then the stride */
    ptrdiff_t together, shares, pieces;     /* tiles that go over the weights at once, what the room for their copies is cut into, and
                                               each row of outputs */
} conv_job;

/* made[o, c, t] = sum over images and positions of sent[image, o, position] * images[image, c, position + t]. */
typedef struct {
    const void *images;
    ptrdiff_t image, channel, move[3];
    ptrdiff_t count, channels, taps;
    const ptrdiff_t *offsets;
    const void *sent;                       /* C-contiguous rows of outputs */
    ptrdiff_t sent_image, sent_out;
    const void *sent_end;                   /* of all of them */
    ptrdiff_t outs, counts[3];
    void *made;                             /* (outs, channels, taps) */
    void *turned;                           /* room for `sent` with weight_columns outs side by side */
    void *sums;                             /* room for tiles of weight_rows x weight_columns, aligned to a vector */
} conv_weight_job;

/* Planes of one channel each under square windows with steps of one or of two; `before` zeros lie in front of each dim, and as many
   behind as the windows reach. A weight that is turned is read from its last tap to its first. */
typedef struct {
    const void *from, *weight, *bias;       /* NULL for none */
    void *made;
    ptrdiff_t channels, outs, depth;        /* outs of a channel; planes of an image's channel */
    ptrdiff_t sizes[2], counts[2], before[2], kernel, step;
    bool turned;
} conv_planes;

/* Pictures whose channels lie side by side, each of which has an out; `before` zeros lie in front of each dim. */
typedef struct {
    const void *from, *weight, *bias;       /* the weight as rows of channels, one for each tap; NULL for none */
    void *made;
    ptrdiff_t channels, sizes[3], counts[3], kernel[3], stride[3], dilation[3], before[3];
} conv_pixels;

/* Pictures whose channels lie side by side, all of which each out sums over. Element places[k] of a window, from where it begins in
   padded rows of `row` elements, meets row k of the weight, which has one for each out: whole vectors of them. */
typedef struct {
    const void *from, *weight, *bias;
    void *made;
    const int32_t *places;
    ptrdiff_t channels, outs, inner, row, kernel; /* `inner` places; rows of a window */
    ptrdiff_t sizes[2], counts[2], stride[2], before[2];
} conv_rows;

/* Rows of products, one for each pair of a channel and a tap, and the planes to which they are added: of each channel one for each
   image, with all that windows reach, and with rows split by phase. */
typedef struct {
    ptrdiff_t images, taps, step, positions; /* from one row to the next; positions of an image in a row */
    const ptrdiff_t *offsets;                /* of each tap from a plane's beginning */
    ptrdiff_t counts[3], move[2];            /* positions, and from one to the next in a plane */
    ptrdiff_t plane, height, row, phases, phase; /* lengths */
    ptrdiff_t before[3], sizes[3];           /* what is cut off in front, and what is wanted */
} conv_fold;

typedef struct {
    ptrdiff_t rows, columns;                /* of a tile: outs and positions */
    ptrdiff_t lanes;                        /* positions of one row that `direct` takes at once */
    ptrdiff_t (*packed_size)(ptrdiff_t outs, ptrdiff_t inner);
    void (*pack)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end); /* counts `rows` of outs */
    ptrdiff_t (*tile_room)(const conv_job *job);
    void (*tiles)(const conv_job *job, void *room, ptrdiff_t begin, ptrdiff_t end); /* counts tiles `together` */
    ptrdiff_t (*direct_places)(const conv_job *job);
    void (*direct)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end);
    ptrdiff_t wide_least;                   /* positions of a row from which on it can be cut into runs */
    ptrdiff_t (*wide_outs)(ptrdiff_t outs); /* blocks of outs */
    void (*wide_pack)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end); /* counts those */
    ptrdiff_t (*wide_room)(const conv_job *job);
    void (*wide)(const conv_job *job, void *room, ptrdiff_t begin, ptrdiff_t end); /* counts pieces of rows of outputs */
    ptrdiff_t plane_strip;                  /* rows of outputs that are made together, half as many with steps of two */
    ptrdiff_t (*planes_room)(const conv_planes *job);
    void (*planes)(const conv_planes *job, void *room, ptrdiff_t begin, ptrdiff_t end); /* counts strips */
    void (*pixels)(const conv_pixels *job, ptrdiff_t begin, ptrdiff_t end); /* counts rows of outputs */
    void (*over_rows)(const conv_rows *job, void *room, ptrdiff_t begin, ptrdiff_t end); /* counts these too */
    ptrdiff_t weight_columns;               /* outs of a tile of the weight's gradient */
    void (*turn)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end);
    ptrdiff_t weight_rows;                  /* of a tile of the weight's gradient */
    void (*weight_tiles)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end);
    void (*weight_direct)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end);
    void (*fold)(const conv_fold *job, const void *products, void *planes, ptrdiff_t begin, ptrdiff_t end); /* counts pairs */
    void (*unfold_planes)(const conv_fold *job, const void *planes, ptrdiff_t image, ptrdiff_t channels, void *made);
} conv_real_loops;

typedef struct {
    void (*pad)(const conv_images *images, void *padded, ptrdiff_t begin, ptrdiff_t end, size_t size);
    conv_real_loops real[2]; /* float, double */
} conv_loops;

#endif
