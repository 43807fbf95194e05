/* Products of one row with a matrix that is read where it lies, for one type of floats. */

/* What is left to do with the sums of columns [begin, end). */
static void F(finish)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end) {
    REAL *made = job->made;
    const REAL *before = job->before, alpha = (REAL)job->alpha, beta = (REAL)job->beta;
    if (!before && alpha != 1) {
        for (ptrdiff_t j = begin; j < end; j++)
            made[j] *= alpha;
    } else if (before && job->before_column == 1) {
        INDEPENDENT for (ptrdiff_t j = begin; j < end; j++)
            made[j] = made[j] * alpha + before[j] * beta;
    } else if (before) {
        for (ptrdiff_t j = begin; j < end; j++)
            made[j] = made[j] * alpha + before[j * job->before_column] * beta;
    }
}

/* `height` columns, a constant where it is called, of at least LANES elements that lie side by side. The last vector begins early,
   and what it has in common with the one before counts once. */
ALWAYS_INLINE void F(dot_columns)(const REAL *left, const REAL *right, ptrdiff_t step, ptrdiff_t inner, REAL *made, int height) {
    V sums[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        sums[i] = (V){0};
    ptrdiff_t k = 0;
    for (; k + LANES <= inner; k += LANES) {
        const V x = F(load)(left + k);
#pragma GCC unroll 16
        for (int i = 0; i < height; i++)
            sums[i] += x * F(load)(right + i * step + k);
    }
    if (k < inner) {
        VI fresh;
        for (int lane = 0; lane < LANES; lane++)
            fresh[lane] = lane >= LANES - (inner - k) ? -1 : 0;
        k = inner - LANES;
        const V x = (V)((VI)F(load)(left + k) & fresh);
#pragma GCC unroll 16
        for (int i = 0; i < height; i++)
            sums[i] += x * (V)((VI)F(load)(right + i * step + k) & fresh);
    }
    REAL all[LANES];
    F(sum_each)(sums, all);
    memcpy(made, all, (size_t)height * sizeof *made);
}

static void F(by_long_columns)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t step = job->right_column;
    const REAL *left = job->left, *right = job->right;
    REAL *made = job->made;
    /* Whole pages apart, so many columns would share a few lines of the first cache. */
    const bool many = end - begin >= LANES && step * (ptrdiff_t)sizeof(REAL) % 4096;
    ptrdiff_t j = begin;
    for (; many && j + LANES <= end; j += LANES)
        F(dot_columns)(left, right + j * step, step, job->inner, made + j, LANES);
    if (many && j < end) {
        F(dot_columns)(left, right + (end - LANES) * step, step, job->inner, made + end - LANES, LANES);
        j = end;
    }
    enum { FEW = LANES < 4 ? LANES : 4 };
    for (; j + FEW <= end; j += FEW)
        F(dot_columns)(left, right + j * step, step, job->inner, made + j, FEW);
    for (; j < end; j++)
        F(dot_columns)(left, right + j * step, step, job->inner, made + j, 1);
    F(finish)(job, begin, end);
}

/* Sums of rows that each come times an element on the left: those of even ones and of odd ones, so that they wait less for each other. */
ALWAYS_INLINE void F(sum_rows)(const gemm_job *job, ptrdiff_t column, int vectors) {
    const ptrdiff_t step = job->right_inner, left_step = job->left_inner;
    const REAL *left = job->left, *right = (const REAL *)job->right + column;
    V even[4], odd[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        even[v] = odd[v] = (V){0};
    ptrdiff_t k = 0;
    for (; k + 2 <= job->inner; k += 2, right += 2 * step) {
        const REAL one = left[k * left_step], other = left[(k + 1) * left_step];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            even[v] += F(load)(right + v * LANES) * one;
            odd[v] += F(load)(right + step + v * LANES) * other;
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        if (k < job->inner)
            even[v] += F(load)(right + v * LANES) * left[k * left_step];
        F(store)((REAL *)job->made + column + v * LANES, even[v] + odd[v]);
    }
}

static void F(by_long_rows)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end) {
    ptrdiff_t j = begin;
    for (; j + 4 * LANES <= end; j += 4 * LANES)
        F(sum_rows)(job, j, 4);
    for (; j + LANES <= end; j += LANES)
        F(sum_rows)(job, j, 1);
    if (j < end && end - begin >= LANES) {
        F(sum_rows)(job, end - LANES, 1);
        j = end;
    }
    for (; j < end; j++) {
        const REAL *left = job->left, *right = (const REAL *)job->right + j;
        REAL sums[2] = {0};
        for (ptrdiff_t k = 0; k < job->inner; k++)
            sums[k & 1] += right[k * job->right_inner] * left[k * job->left_inner];
        ((REAL *)job->made)[j] = sums[0] + sums[1];
    }
    F(finish)(job, begin, end);
}
