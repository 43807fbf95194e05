/* Losses of differences and of yes-or-no scores: the loops that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_LOSSES_H
#define TENSORCORE_NATIVE_LOSSES_H

#include "types.h"

enum { SQUARED_ERROR, LOGISTIC, SMOOTH_L1, CHANCE, SOFT_MARGIN, LOSSES };

/* Of SMOOTH_L1: where a difference begins to count as itself, and what all losses are times. */
typedef struct {
    double limit, scale;
} loss_shape;

typedef struct {
    struct {
        void (*each)(const void *x, const void *target, void *out, ptrdiff_t count, loss_shape shape);
        double (*total)(const void *x, const void *target, ptrdiff_t count, loss_shape shape);
        /* The gradient of x, where that of each loss is g[i], or g[0] for all of them (`one`), times `factor`. */
        void (*backward)(const void *x, const void *target, const void *g, bool one, double factor, void *out,
                         ptrdiff_t count, loss_shape shape);
    } of[LOSSES][2]; /* TYPE_F32, TYPE_F64 */
} loss_loops;

#endif
