/* Matrix products: what the entries hand to the loops. Steps are in elements. */
#ifndef TENSORCORE_NATIVE_GEMM_H
#define TENSORCORE_NATIVE_GEMM_H

#include "types.h"

enum { GEMM_WORK = 1 << 19 }; /* multiplications that are worth a second thread: 9 us of a Zen 4, of which its call takes 1 */
enum { GEMM_THIN = 16 }; /* numbers of a short sum, at most: both sides are read where they lie */

/* made[i, j] = before[i, j] + sum over k of left[i, k] * right[k, j]. */
typedef struct {
    ptrdiff_t rows, columns, inner;
    const void *left;
    ptrdiff_t left_row, left_inner;
    const void *right;
    ptrdiff_t right_inner, right_column;
    const void *before; /* NULL for zeros; its columns lie side by side */
    ptrdiff_t before_row;
    /* Of products by vectors alone, which are alpha times the sum and beta times what was before: */
    double alpha, beta;
    ptrdiff_t before_column;
    void *made; /* its columns lie side by side */
    ptrdiff_t made_row;
    /* Complex numbers as pairs of real ones, `inner` and `columns` of which are even: left rows and made ones have them as they lie, and
       of row k of the right side, `right_inner` after the one before, come two: a + bi there is a, b in row 2 k and -b, a in the next. */
    bool pairs;
} gemm_job;

/* A part of a product: rows [row, row + rows), columns [column, column + columns), and inner [first, first + inner). */
typedef struct {
    ptrdiff_t row, rows, column, columns, first, inner;
    bool strips; /* the left side, whose rows lie side by side, is packed in strips of `height` rows */
    const int32_t *live; /* of each `height` rows what `find_live` found; NULL where nothing is left out */
} gemm_part;

typedef struct {
    ptrdiff_t height, width;     /* of a tile */
    ptrdiff_t lanes;             /* of a vector: columns come in whole ones where what is made has room for them */
    ptrdiff_t most_rows;         /* of a part: so many packed rows stay in the second cache */
    ptrdiff_t most_inner;        /* of a part: so much of a packed panel stays in the first cache */
    ptrdiff_t left_step;         /* from one packed row to the next */
    bool reads_left;             /* `multiply` takes NULL for left rows whose elements lie side by side */
    bool slower_than_blas;       /* where large products go to NumPy's BLAS */
    /* The rows of a part side by side, `left_step` apart, or its strips: into room for `rows`, rounded up to `height`, of them. */
    void (*pack_left)(const gemm_job *job, const gemm_part *part, void *packed);
    /* The columns of a part in panels of `width`; what is missing in the last one is zeros. */
    void (*pack_right)(const gemm_job *job, const gemm_part *part, void *packed);
    /* A part from what was packed. The right side may be NULL: each of its panels is then packed in `panel`, just before all
       rows of the part are multiplied by it, or read where it lies if that does not pay. `next`, if there is one, are rows of the
       left side, side by side in its columns, that are packed after these: they come from memory meanwhile. */
    void (*multiply)(const gemm_job *job, const gemm_part *part, const void *left, const void *right, void *panel,
                     const gemm_part *next);
    /* Products whose left side has many zeros. The packed rows of a part as lists, in a room of `lists_bytes`: answers whether
       that is worth it; the rows lie in another order then, and `multiply_lists` takes them. `panel` has `panels` panels there. */
    ptrdiff_t panels;
    ptrdiff_t (*lists_bytes)(ptrdiff_t rows, ptrdiff_t inner);
    bool (*list)(const gemm_part *part, void *left, void *room);
    void (*multiply_lists)(const gemm_job *job, const gemm_part *part, const void *left, const void *right, void *panel,
                           void *room);
    /* Which of the inner dim is not zero in all rows of a tile, so that `multiply` leaves out the others: of the packed rows of a
       part, or, with NULL, of rows that lie side by side, into a room of `live_bytes`. Answers whether that is worth it. */
    ptrdiff_t (*live_bytes)(ptrdiff_t rows, ptrdiff_t inner);
    bool (*find_live)(const gemm_job *job, const gemm_part *part, const void *left, int32_t *live);
    /* Columns [begin, end) of a job whose left_inner and right_inner are 1. */
    void (*dots)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end);
    /* The rows and columns of a part of a job whose sums have at most GEMM_THIN numbers; `before` may be what is made. */
    void (*thin)(const gemm_job *job, const gemm_part *part);
} gemm_real_loops;

typedef struct {
    gemm_real_loops real[4]; /* float, double, integers of 32 and of 64 bits */
} gemm_loops;

/* The loops for TYPE_F32, TYPE_F64, TYPE_I32 or TYPE_I64, for families that make their products part by part. */
const gemm_real_loops *gemm_real(native_type type);

/* Runs a product of numbers of one of these types, on several threads where that pays; sizes of at least 1. Answers
   false where there is no memory; something may have been written then. Call it with the GIL, or from a body of
   native_parallel. */
bool gemm_run(native_type type, const gemm_job *job);

/* Products of bfloat16, whose steps are in elements as well: whether this machine has them for such a job, and one as gemm_run is. */
bool gemm_takes_bf16(const gemm_job *job);
bool gemm_run_bf16(const gemm_job *job);

#endif
