/* Products of one row with a matrix: most of their time is reading the matrix, so nothing of it is copied. */
#ifndef TENSORCORE_NATIVE_GEMM_VECTORS_H
#define TENSORCORE_NATIVE_GEMM_VECTORS_H

#include "gemm.h"

/* Columns [begin, end) of a job of one row; of integers with nothing to add, and times one. */
typedef void (*gemm_vector_loop)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end);

typedef struct {
    /* Of integers; NULL for others. */
    gemm_vector_loop by_rows[TYPES];    /* where right_column is 1 */
    gemm_vector_loop by_columns[TYPES]; /* where left_inner and right_inner are 1 */
    /* Of floats and doubles, likewise, where as many elements as a vector has `lanes` lie side by side, or at most so many. */
    gemm_vector_loop by_long_rows[2], by_long_columns[2], by_short_columns[2];
    ptrdiff_t lanes[2];
} gemm_vector_loops;

#endif
