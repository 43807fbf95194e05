/* Fourier transforms: what fft.c tells the loops. */
#ifndef TENSORCORE_NATIVE_FFT_H
#define TENSORCORE_NATIVE_FFT_H

#include "types.h"

/* The largest factor and the largest sizes that are made in one piece here, of such factors and of others. */
enum { FFT_FACTORS = 16, FFT_PRIME = 61, FFT_MOST = 1 << 11, FFT_CHIRP = 1 << 10 };

/* The complex transform of n numbers as passes, one for each factor of n: float or double throughout. A size with a larger prime
   is a convolution with a chirp instead, by way of transforms of another size. */
typedef struct fft_plan {
    ptrdiff_t n;
    const struct fft_plan *inner;      /* of at least 2 n - 1 numbers, and then there are no factors; else NULL */
    const void *chirp, *filter;        /* pairs e^(-pi i k^2 / n); the transform of their inverses, over the inner size */
    int count, factors[FFT_FACTORS];
    const void *twiddles[FFT_FACTORS]; /* pairs e^(-2 pi i j k / length), k outermost, j from 1 to the factor */
    const void *roots[FFT_FACTORS];    /* pairs e^(-2 pi i k / factor) of a factor that has no loop of its own */
    const void *halves;                /* pairs e^(-2 pi i k / 2n), for real numbers in pairs; NULL where they come singly */
} fft_plan;

/* A line that is cut into rows, of which it is a matrix: element j of its transform is a sum over columns and, within each, over
   rows, so that columns are transformed, each number is turned by e^(-2 pi i row column / n), and rows are transformed (Bailey
   1990, "FFTs in external or hierarchical memory"). Both go as many side by side as a register has lanes: a block. The last block
   begins early where lanes do not divide the matrix. A turn is the product of two, one for the row and the column's place in its
   block, and one for the row and the block: all of them would be as many as the line's numbers. */
typedef struct {
    ptrdiff_t n, rows, columns;
    const fft_plan *down, *along; /* the transforms of a column and of a row */
    const void *near;             /* of each row real parts for all lanes, then imaginary ones */
    const void *far;              /* pairs of each block's rows */
    const void *half_near, *half_far; /* likewise e^(-2 pi i k / 2n), k = 1 + lanes block + lane, for real numbers; or NULL */
} fft_cut;

typedef enum { FFT_COMPLEX, FFT_REAL_TO_COMPLEX, FFT_REAL_TO_HALF, FFT_HALF_TO_REAL } fft_kind;

typedef struct {
    const fft_plan *plan;
    fft_kind kind;
    bool forward;
    double scale;
    ptrdiff_t size;                /* real numbers of a line, for the last two kinds */
    ptrdiff_t from_step, to_step;  /* bytes between the elements of a line */
} fft_way;

/* The elements of each of the four arrays that a plan works in, for each lane. */
static inline ptrdiff_t fft_room(const fft_plan *plan) { return (plan->inner ? plan->inner->n : plan->n) + 1; }

/* Transforms `lines` lines, at most as many as there are lanes, in `work`: four times fft_room elements of each lane, on a cache
   line. All of a line is read before any of it is written. */
typedef void (*fft_loop)(const fft_way *way, const char *const *from, char *const *to, int lines, void *work);

/* Lines that are cut. A block's numbers lie beside one another, real parts of all lanes and then imaginary ones, block after block
   of a row, one more than there are: rows a power of two apart would share few places in the caches. */
typedef struct {
    /* The columns of a block, from complex numbers side by side into `made`, in `work` as above for the transform of a column. */
    void (*columns)(const fft_cut *cut, bool forward, const char *from, void *made, ptrdiff_t block, void *work);
    /* The rows of a block, from there to complex numbers side by side. */
    void (*rows)(const fft_cut *cut, bool forward, double scale, const void *made, char *to, ptrdiff_t block, void *work);
    /* The first n + 1 elements of the spectrum of 2 n real numbers from that of their pairs, in place; imaginary parts have a
       factor of their own. */
    void (*unpair)(const fft_cut *cut, char *line, double scale, double other);
    /* The way back, of the spectrum's conjugate where it goes forward. */
    void (*pair)(const fft_cut *cut, bool forward, const char *from, char *to);
    /* Real numbers as complex ones; the second half of n numbers as conjugates of the first, in reverse. */
    void (*widen)(const char *from, char *to, ptrdiff_t count);
    void (*mirror)(char *line, ptrdiff_t n);
} fft_cut_loops;

typedef struct {
    fft_loop one[2], many[2]; /* of float and double: one line, or `lanes` side by side in vectors */
    int lanes[2];
    fft_cut_loops cut[2];
} fft_loops;

static inline ptrdiff_t fft_blocks(ptrdiff_t count, ptrdiff_t lanes) { return (count + lanes - 1) / lanes; }

/* Where a block begins. */
static inline ptrdiff_t fft_begin(ptrdiff_t block, ptrdiff_t count, ptrdiff_t lanes) {
    return block * lanes + lanes <= count ? block * lanes : count - lanes;
}

#endif
