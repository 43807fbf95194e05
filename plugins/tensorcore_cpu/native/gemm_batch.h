/* Batches of matrix products, and those of small matrices in one loop. */
#ifndef TENSORCORE_NATIVE_GEMM_BATCH_H
#define TENSORCORE_NATIVE_GEMM_BATCH_H

#include "gemm_many.h"
#include "gemm_vectors.h"
#include "native.h"

typedef struct {
    native_type type;
    int ndim; /* of the batch */
    npy_intp shape[NATIVE_DIMS], left[NATIVE_DIMS], right[NATIVE_DIMS]; /* and its steps in elements */
    gemm_job job;
    gemm_vector_loop vector; /* NULL where the job has more than one row, or a matrix that no such loop reads */
    gemm_many_loop many;     /* NULL where each product is one by itself */
    bool tall;               /* each is a sum of many short ones */
    _Atomic bool failed;
} gemm_batch;

/* The job of product i. */
gemm_job gemm_job_of(const gemm_batch *all, npy_intp i);

/* One column as one row, or the other way: the same sums. */
void gemm_turn_over(gemm_batch *all);

/* The loop for a batch of small products, with the batch's dims in as few as there can be; else NULL. */
gemm_many_loop gemm_pick_many(gemm_batch *all);
void gemm_run_many(gemm_batch *all, npy_intp count);

/* A product of few rows and columns whose sums are long, which is one of many short ones, side by side, that are added up in pairs;
   false where there is no memory. */
bool gemm_is_tall(native_type type, const gemm_job *job);
bool gemm_run_tall(native_type type, const gemm_job *job);

#endif
