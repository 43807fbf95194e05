/* Plans of Fourier transforms, by size and type: made and looked for under the GIL; a run holds on to its own. */
#ifndef TENSORCORE_NATIVE_FFT_PLANS_H
#define TENSORCORE_NATIVE_FFT_PLANS_H

#include "fft.h"

enum { FFT_LANES = 16 }; /* the most of any set */

typedef struct fft_kept {
    fft_plan plan;
    fft_cut cut;               /* in its place, of a line that is cut */
    struct fft_kept *parts[2]; /* of the plans that this one goes by way of */
    ptrdiff_t n;
    bool pairs, wide;
    int lanes; /* that a cut is made for, else 0 */
    int users;
    unsigned long used;
    char *memory;
} fft_kept;

/* The factors of n up to a prime, odd ones first, then fours, and a two; false, without any, where there is a larger one. */
bool fft_split(fft_plan *plan, ptrdiff_t n, int most);

/* How many rows a line of n numbers is cut into; 0 where it is not, as it is too long, too short or has a large prime factor. */
ptrdiff_t fft_rows(ptrdiff_t n);

/* The plan for n numbers, with tables for twice as many real ones in pairs, cut for so many lanes or in one piece, to be dropped
   after use; NULL with an exception. */
fft_kept *fft_find(ptrdiff_t n, bool pairs, bool wide, int lanes);
void fft_drop(fft_kept *one);

#endif
