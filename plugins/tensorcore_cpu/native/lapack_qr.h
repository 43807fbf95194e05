/* Reflections of large real matrices by products: LAPACK's geqrf, orgqr and ormqr, with its conventions. */
#ifndef TENSORCORE_NATIVE_LAPACK_QR_H
#define TENSORCORE_NATIVE_LAPACK_QR_H

#include "types.h"

typedef struct {
    ptrdiff_t width; /* the most columns of a panel */
    /* Reflections of up to `width` columns, `line` elements apart, of no fewer rows. `panel` has the reflections' vectors row after
       row afterwards, with the ones and zeros that geqrf leaves out, and so has the matrix, column after column; r has what belongs
       there on and above the diagonal, and `triangle` is -T, where the product of the reflections is I - V T V': all three are
       `width` elements from line to line. False where squares leave the range of the type, or something is not finite. */
    bool (*reflect)(void *a, ptrdiff_t line, ptrdiff_t rows, ptrdiff_t columns, void *panel, void *taus, void *triangle, void *r);
    /* The triangle of so many reflections with these factors, from V' V, row after row and `width` apart. */
    void (*triangle_of)(const void *taus, ptrdiff_t columns, const void *products, void *triangle);
    bool (*is_finite)(const void *x, ptrdiff_t count);
    /* x times R, whose columns are `line` apart, or by R turned over. */
    void (*by_r)(const void *a, ptrdiff_t line, ptrdiff_t n, bool turned, void *x);
} lapack_qr_real;

typedef struct {
    lapack_qr_real real[2]; /* float, double */
} lapack_qr_loops;

#endif
