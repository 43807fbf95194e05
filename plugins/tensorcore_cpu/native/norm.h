/* Normalisations: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_NORM_H
#define TENSORCORE_NATIVE_NORM_H

#include "types.h"

/* Rows of n elements, each normalised by itself. Row r takes the weights from (r % turns) * (n / inner) on, one for every
   `inner` elements. */
typedef struct {
    ptrdiff_t n, inner, turns;
    double eps;
    bool centre;
    const void *x, *weight, *bias; /* weight and bias may be NULL */
    void *mean, *var;              /* of each row; mean is NULL where `centre` is false */
    void *out;
    const void *g;
    ptrdiff_t g_step; /* from a row of g to the next */
    bool far;         /* long rows from memory, to memory: what is next is asked for early */
    bool adds;        /* gradients of x are added to what `out` holds: by weighted rows alone */
} norm_rows;

/* Channels of (batch, channels, inner), each normalised over batch and inner. */
typedef struct {
    ptrdiff_t batch, channels, inner;
    double eps;
    bool centre;
    bool given; /* mean and var are there already */
    const void *x, *weight, *bias;
    void *mean, *var;
    void *out;
    const void *g;
    ptrdiff_t g_batch, g_channel; /* elements of g from one to the next: 0 where all of them are one, of which there is a line */
    void *weight_gradient, *bias_gradient; /* NULL where they are not asked for; out likewise */
} norm_channels;

/* Elements from one block of sums by column to the next in `space`, whose blocks begin at lines of the cache: their vectors are read
   and written once a row. In blocks across lines the gradients of 64 rows of 512 took 1.2 times as long on an Emerald Rapids. */
static inline ptrdiff_t norm_padded(ptrdiff_t n) { return (n + 15) / 16 * 16; }

enum {
    NORM_LONG = 24 << 10,           /* bytes of a row from which on mean and variance take one way over it */
    NORM_CHANNELS = 64,             /* columns that a loop over channels of a few elements takes at most */
    NORM_INNER = NORM_CHANNELS / 2, /* elements of such channels at most */
    NORM_STRIP = 2048,              /* columns of long rows, whose sums stay in the first cache */
};

/* How many channels of so many elements go together. */
static inline ptrdiff_t norm_channels_together(ptrdiff_t inner) { return inner <= NORM_INNER ? NORM_CHANNELS / inner : 1; }

typedef struct {
    void (*rows)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count);
    /* The gradients of x (unless `out` is NULL) and of weight and bias, which are added to rows of WIDE numbers of their
       own (unless they are NULL). `space`, at a line of the cache, has room for two blocks of sums. */
    void (*rows_back)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count, double *weight, double *bias, void *space);
    /* The same of long rows with a weight for each element, in two ways over them: two sums of each row, of the type's WIDE, and from these the
       gradients of some columns at a time, at most NORM_STRIP, of weight and bias too (unless they are NULL). */
    void (*row_sums)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count, void *sums);
    void (*columns_back)(const norm_rows *of, ptrdiff_t rows, const void *sums, ptrdiff_t first, ptrdiff_t count, void *weight, void *bias);
    /* The channels from `first` on, at most norm_channels_together of them. */
    void (*channels)(const norm_channels *of, ptrdiff_t first, ptrdiff_t count);
    void (*channels_back)(const norm_channels *of, ptrdiff_t first, ptrdiff_t count);
} norm_of_real;

typedef struct {
    norm_of_real of[2]; /* TYPE_F32, TYPE_F64 */
} norm_loops;

#endif
