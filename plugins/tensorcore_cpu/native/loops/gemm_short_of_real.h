/* Products of one row with many short ones, for one type: a vector holds the sums of as many of them, which are turned over. */

#ifdef __AVX512F__
/* Columns of two to four elements, a constant where it is called, that lie one behind the other: how many were made. */
ALWAYS_INLINE ptrdiff_t F(by_few)(const REAL *left, const REAL *right, REAL *made, ptrdiff_t columns, int inner) {
    ptrdiff_t done = 0;
    for (; done + LANES <= columns; done += LANES, right += LANES * inner) {
        V x[4];
        for (int i = 0; i < inner; i++)
            x[i] = F(load)(right + i * LANES);
        V sum = {0};
        for (int k = 0; k < inner; k++)
            sum += (V)F(every)((const void *)x, inner, k) * left[k];
        F(store)(made + done, sum);
    }
    return done;
}
#endif

static void F(by_short_columns)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t inner = job->inner, step = job->right_column;
    const REAL *left = job->left, *right = (const REAL *)job->right + begin * step;
    REAL *made = job->made;
    const ptrdiff_t first = begin;
    ptrdiff_t few = 0;
#ifdef __AVX512F__
    if (step == inner && inner == 2)
        few = F(by_few)(left, right, made + begin, end - begin, 2);
    else if (step == inner && inner == 3)
        few = F(by_few)(left, right, made + begin, end - begin, 3);
    else if (step == inner && inner == 4)
        few = F(by_few)(left, right, made + begin, end - begin, 4);
#endif
    begin += few;
    right += few * step;
    /* Whole vectors of each row are read, and none of what is behind the last one of the job. */
    const REAL *const last = (const REAL *)job->right + (job->columns - 1) * step + inner;
    for (; begin + LANES <= end && step > 0 && last - right >= (LANES - 1) * step + LANES; begin += LANES, right += LANES * step) {
        _Alignas(VECTOR) REAL turned[LANES * LANES];
        F(turn)(right, step, LANES, turned, LANES);
        V sum = F(load)(turned) * left[0];
        for (ptrdiff_t k = 1; k < inner; k++)
            sum += F(load)(turned + k * LANES) * left[k];
        F(store)(made + begin, sum);
    }
    for (; begin < end; begin++, right += step) {
        REAL sum = left[0] * right[0];
        for (ptrdiff_t k = 1; k < inner; k++)
            sum += left[k] * right[k];
        made[begin] = sum;
    }
    F(finish)(job, first, end);
}
