/* Products of one row with a matrix: most of their time is reading the matrix, so nothing of it is copied. Of integers, and of floats with
   many short columns. */
#ifndef TENSORCORE_NATIVE_GEMM_VECTORS_H
#define TENSORCORE_NATIVE_GEMM_VECTORS_H

#include "gemm.h"

/* Columns [begin, end) of a job of one row, with nothing to add. */
typedef void (*gemm_vector_loop)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end);

typedef struct {
    gemm_vector_loop by_rows[TYPES];    /* where right_column is 1; NULL but for integers */
    gemm_vector_loop by_columns[TYPES]; /* where left_inner and right_inner are 1 */
    gemm_vector_loop by_short_columns[2]; /* the same for floats and doubles, up to */
    ptrdiff_t short_inner[2];                /* elements of a column */
} gemm_vector_loops;

#endif
