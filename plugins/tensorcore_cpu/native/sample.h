/* Images read at any places: what is asked for, and the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_SAMPLE_H
#define TENSORCORE_NATIVE_SAMPLE_H

#include "types.h"

enum { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC, SAMPLE_MODES };
enum { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION, SAMPLE_PADDINGS };

enum { SAMPLE_FULL, SAMPLE_BF16, SAMPLE_F16 }; /* what places are rounded to at each step, as PyTorch rounds those of half types */

enum { SAMPLE_BLOCK = 64 }; /* places whose weights are worked out at a time */

/* Images (channels, *size) at `places` places of `dims` coordinates each, the last dim of the image first. */
typedef struct {
    int dims, mode, padding, steps;
    bool corners;
    ptrdiff_t size[3], plane, channels, places;
} sample_what;

/* Each takes places [begin, end) of one image. */
typedef struct {
    void (*read)(const sample_what *what, const void *x, const void *grid, void *out, ptrdiff_t begin, ptrdiff_t end);
    /* The gradient of the image: adds to planes [first, stop) of `out`, for all places in turn. */
    void (*spread)(const sample_what *what, const void *g, const void *grid, void *out, ptrdiff_t first, ptrdiff_t stop);
    /* The gradient of the places. */
    void (*slope)(const sample_what *what, const void *g, const void *x, const void *grid, void *out, ptrdiff_t begin,
                  ptrdiff_t end);
} sample_of_real;

typedef struct {
    sample_of_real of[2]; /* TYPE_F32, TYPE_F64 */
} sample_loops;

#endif
