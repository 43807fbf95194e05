/* Rows of a table, bag by bag, for one type. */

/* What `vectors` vectors of columns of rows [first, stop) make; both that and the mode are constants where it is called. */
ALWAYS_INLINE void F(bag_columns)(const bag_run *run, ptrdiff_t first, ptrdiff_t stop, ptrdiff_t column, REAL *made, int vectors,
                                  int mode) {
    const REAL *table = (const REAL *)run->table + column, *scales = run->scales;
    V all[COLUMNS];
    for (int v = 0; v < vectors; v++)
        all[v] = (V){0} + (mode == BAG_LARGEST && stop > first ? (REAL)-INFINITY : 0);
    for (ptrdiff_t i = first; i < stop; i++) {
        const REAL *row = table + run->index[i] * run->width, by = scales ? scales[i] : 1;
        for (int v = 0; v < vectors; v++) {
            const V x = V_AT(row, v * LANES);
            if (mode == BAG_LARGEST) {
                const VI better = (x > all[v]) | (x != x);
                all[v] = (V)(((VI)x & better) | ((VI)all[v] & ~better));
            } else {
                all[v] += x * by;
            }
        }
    }
    for (int v = 0; v < vectors; v++)
        *(V_U *)(made + column + v * LANES) = mode == BAG_MEAN && stop - first > 1 ? all[v] / (REAL)(stop - first) : all[v];
}

ALWAYS_INLINE void F(bags_in)(const bag_run *run, ptrdiff_t begin, ptrdiff_t end, int mode) {
    const ptrdiff_t width = run->width;
    for (ptrdiff_t bag = begin; bag < end; bag++) {
        const ptrdiff_t first = run->offsets[bag];
        const ptrdiff_t stop = bag + 1 < run->bags || run->last ? run->offsets[bag + 1] : run->count;
        REAL *made = (REAL *)run->made + bag * width;
        ptrdiff_t k = 0;
        for (; k + COLUMNS * LANES <= width; k += COLUMNS * LANES)
            F(bag_columns)(run, first, stop, k, made, COLUMNS, mode);
        for (; k + 2 * LANES <= width; k += 2 * LANES)
            F(bag_columns)(run, first, stop, k, made, 2, mode);
        for (; k < width && width >= LANES; k += LANES) /* the last vector begins where a whole one fits */
            F(bag_columns)(run, first, stop, k + LANES <= width ? k : width - LANES, made, 1, mode);
        for (ptrdiff_t j = k; j < width; j++)
            made[j] = mode == BAG_LARGEST && stop > first ? (REAL)-INFINITY : 0;
        for (ptrdiff_t i = first; k < width && i < stop; i++) {
            const REAL *row = (const REAL *)run->table + run->index[i] * width;
            const REAL by = run->scales ? ((const REAL *)run->scales)[i] : 1;
            for (ptrdiff_t j = 0; j < width; j++)
                made[j] = mode != BAG_LARGEST ? made[j] + row[j] * by : row[j] > made[j] || row[j] != row[j] ? row[j] : made[j];
        }
        for (; mode == BAG_MEAN && stop - first > 1 && k < width; k++)
            made[k] /= (REAL)(stop - first);
    }
}

static void F(bags)(const bag_run *run, ptrdiff_t begin, ptrdiff_t end) {
    if (run->mode == BAG_SUM)
        F(bags_in)(run, begin, end, BAG_SUM);
    else if (run->mode == BAG_MEAN)
        F(bags_in)(run, begin, end, BAG_MEAN);
    else
        F(bags_in)(run, begin, end, BAG_LARGEST);
}

static void F(bag_dots)(const bag_dots *run, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t width = run->width;
    for (ptrdiff_t i = begin; i < end; i++) {
        const REAL *a = (const REAL *)run->left + run->left_index[i] * width;
        const REAL *b = (const REAL *)run->right + run->right_index[i] * width;
        V all[COLUMNS] = {{0}};
        ptrdiff_t k = 0;
        for (; k + COLUMNS * LANES <= width; k += COLUMNS * LANES)
            for (int v = 0; v < COLUMNS; v++)
                all[v] += V_AT(a, k + v * LANES) * V_AT(b, k + v * LANES);
        for (; k + LANES <= width; k += LANES)
            all[0] += V_AT(a, k) * V_AT(b, k);
        const V sums = (all[0] + all[1]) + (all[2] + all[3]);
        REAL sum = 0;
        for (int j = 0; j < LANES; j++)
            sum += sums[j];
        for (; k < width; k++)
            sum += a[k] * b[k];
        ((REAL *)run->made)[i] = sum;
    }
}
