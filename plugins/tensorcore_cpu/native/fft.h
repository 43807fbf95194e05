/* Fourier transforms: what fft.c tells the loops. */
#ifndef TENSORCORE_NATIVE_FFT_H
#define TENSORCORE_NATIVE_FFT_H

#include "types.h"

/* The largest factor and the largest sizes made here, of such factors and of others; SciPy's go through longer lines faster. */
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

typedef struct {
    fft_loop one[2], many[2]; /* of float and double: one line, or `lanes` side by side in vectors */
    int lanes[2];
} fft_loops;

#endif
