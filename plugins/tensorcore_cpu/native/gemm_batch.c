/* Batches of matrix products: which of them it is, and those of small matrices in one loop; long sums of few rows and columns as such. */
#include "gemm_batch.h"

#include "rows.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(gemm_many_loops, gemm_many_loops);

enum {
    MANY_CALL = 32, /* what one of many products costs beside its multiplications: so many elements, */
    MANY_MOVE = 8,  /* each as much as so many of them */
};

gemm_job gemm_job_of(const gemm_batch *all, npy_intp i) {
    const npy_intp size = TYPE_SIZE[all->type];
    gemm_job job = all->job;
    npy_intp rest = i, left = 0, right = 0;
    for (int d = all->ndim - 1; d >= 0; d--) {
        npy_intp at = rest % all->shape[d];
        rest /= all->shape[d];
        left += at * all->left[d];
        right += at * all->right[d];
    }
    job.left = (const char *)job.left + left * size;
    job.right = (const char *)job.right + right * size;
    job.made = (char *)job.made + i * job.rows * job.columns * size;
    return job;
}

void gemm_turn_over(gemm_batch *all) {
    const gemm_job job = all->job;
    all->job = (gemm_job){.rows = job.columns, .inner = job.inner, .columns = job.rows,
                          .left = job.right, .left_row = job.right_column, .left_inner = job.right_inner,
                          .right = job.left, .right_inner = job.left_inner, .right_column = job.left_row,
                          .before = job.before, .before_row = job.before_column, .before_column = job.before_row,
                          .alpha = job.alpha, .beta = job.beta, .made = job.made, .made_row = job.rows};
    for (int d = 0; d < all->ndim; d++) {
        const npy_intp step = all->left[d];
        all->left[d] = all->right[d];
        all->right[d] = step;
    }
}

gemm_many_loop gemm_pick_many(gemm_batch *all) {
    const native_type type = all->type;
    const gemm_job *job = &all->job;
    const npy_intp rows = job->rows, columns = job->columns, inner = job->inner;
    const bool known = type == TYPE_F32 || type == TYPE_F64 || type == TYPE_I32 || type == TYPE_I64;
    if (!all->ndim || !known || job->pairs || job->before || inner > MANY_INNER || rows > MANY_WORK || columns > MANY_WORK ||
        rows * columns > MANY_WORK || rows * columns * inner > MANY_WORK)
        return NULL;
    if ((columns == 1 && rows > 1 && job->left_row == 1) || (rows == 1 && columns > 1 && job->right_column != 1))
        gemm_turn_over(all);
    else if (columns > 1 && job->right_column != 1 && inner * (columns + MANY_LANES) > MANY_ROOM)
        return NULL;
    int kept = 0;
    for (int d = 1; d < all->ndim; d++) {
        if (all->left[kept] == all->left[d] * all->shape[d] && all->right[kept] == all->right[d] * all->shape[d]) {
            all->shape[kept] *= all->shape[d];
        } else {
            all->shape[++kept] = all->shape[d];
        }
        all->left[kept] = all->left[d];
        all->right[kept] = all->right[d];
    }
    all->ndim = kept + 1;
    return PICK(gemm_many_loops)->pick[type == TYPE_I32 ? 2 : type == TYPE_I64 ? 3 : type](job);
}

static void many_body(void *context, npy_intp begin, npy_intp end) {
    const gemm_batch *all = context;
    const int last = all->ndim - 1;
    while (begin < end) {
        const gemm_job job = gemm_job_of(all, begin);
        const npy_intp rest = all->shape[last] - begin % all->shape[last], count = rest < end - begin ? rest : end - begin;
        all->many(&job, count, all->left[last], all->right[last]);
        begin += count;
    }
}

void gemm_run_many(gemm_batch *all, npy_intp count) {
    const gemm_job *job = &all->job;
    const npy_intp made = job->rows * job->columns, moved = made + (job->rows + job->columns) * job->inner;
    native_parallel(count, native_grain(GEMM_WORK, made * job->inner + MANY_MOVE * (MANY_CALL + moved)), many_body, all);
}

/* Rows and columns at most; columns at least where rows are more than as many; terms at least; and those of a part. */
enum { TALL_SIDE = 16, TALL_FEW = 4, TALL_LEAST = 1024, TALL_PART = 128 };

bool gemm_is_tall(native_type type, const gemm_job *job) {
    return (type == TYPE_F32 || type == TYPE_F64) && !job->pairs && job->rows > 1 && job->columns > 1 &&
           job->rows <= TALL_SIDE && job->columns <= TALL_SIDE && (job->rows <= TALL_FEW || job->columns >= TALL_FEW) &&
           job->inner >= TALL_LEAST && (job->left_inner != 1 || job->right_inner != 1);
}

static void add_to(native_type type, char *sums, const char *others, npy_intp count) {
    for (npy_intp i = 0; i < count; i++)
        if (type == TYPE_F32)
            ((float *)sums)[i] += ((const float *)others)[i];
        else
            ((double *)sums)[i] += ((const double *)others)[i];
}

bool gemm_run_tall(native_type type, const gemm_job *job) {
    const npy_intp size = TYPE_SIZE[type], whole = job->inner / TALL_PART, rest = job->inner % TALL_PART, one = job->rows * job->columns;
    npy_intp parts = whole + (rest > 0);
    char *sums = malloc((size_t)(parts * one * size));
    if (!sums)
        return false;
    gemm_batch all = {.type = type, .ndim = 1, .shape = {whole}, .left = {TALL_PART * job->left_inner},
                      .right = {TALL_PART * job->right_inner}, .job = *job};
    all.job.before = NULL;
    all.job.made = sums;
    all.job.inner = TALL_PART;
    all.many = PICK(gemm_many_loops)->pick[type](&all.job);
    native_parallel(whole, native_grain(GEMM_WORK / 4, one * TALL_PART), many_body, &all);
    if (rest) {
        gemm_job last = gemm_job_of(&all, whole - 1);
        last.left = (const char *)last.left + TALL_PART * job->left_inner * size;
        last.right = (const char *)last.right + TALL_PART * job->right_inner * size;
        last.made = sums + whole * one * size;
        last.inner = rest;
        PICK(gemm_many_loops)->pick[type](&last)(&last, 1, 0, 0);
    }
    for (; parts > 1; parts -= parts / 2)
        add_to(type, sums, sums + (parts - parts / 2) * one * size, parts / 2 * one);
    for (npy_intp i = 0; job->before && i < job->rows; i++)
        add_to(type, sums + i * job->columns * size, (const char *)job->before + i * job->before_row * size, job->columns);
    memcpy(job->made, sums, (size_t)(one * size));
    free(sums);
    return true;
}
