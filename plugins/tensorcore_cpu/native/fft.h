/* Fourier transforms: what fft.c tells the loops. */
#ifndef TENSORCORE_NATIVE_FFT_H
#define TENSORCORE_NATIVE_FFT_H

#include "types.h"

enum { FFT_FACTORS = 16, FFT_PRIME = 61, FFT_MOST = 1 << 11 }; /* the largest factor and the largest size made here; SciPy's go through longer lines faster */

/* The complex transform of n numbers as passes, one for each factor of n: float or double throughout. */
typedef struct {
    ptrdiff_t n;
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

/* Transforms `lines` lines, at most as many as there are lanes, in `work`: 4 n elements (2 n + 2 more for half lines) of each
   lane, on a cache line. All of a line is read before any of it is written. */
typedef void (*fft_loop)(const fft_way *way, const char *const *from, char *const *to, int lines, void *work);

typedef struct {
    fft_loop one[2], many[2]; /* of float and double: one line, or `lanes` side by side in vectors */
    int lanes[2];
} fft_loops;

#endif
