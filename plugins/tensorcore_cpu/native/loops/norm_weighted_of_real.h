/* Gradients of rows whose elements each have a weight, for one type: sums over a row, and sums over all rows by column. */

/* Adds a block's sums by column to the wide ones, and begins anew. */
ALWAYS_INLINE void F(emptied)(REAL *block, double *total, ptrdiff_t n) {
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {
        total[i] += block[i];
        block[i] = 0;
    }
}

/* A row's gradient: the share of the distance from the mean, and the mean of the gradient, of the sums over the row. */
typedef struct {
    const REAL *x, *g;
    REAL *out, middle, scale, mixed, shift;
} F(row_back);

/* From column `first` on, by the sums of the whole row. */
ALWAYS_INLINE F(row_back) F(row_by_sums)(const norm_rows *of, ptrdiff_t r, ptrdiff_t first, WIDE total, WIDE products) {
    const ptrdiff_t n = of->n;
    const REAL middle = of->centre ? ((const REAL *)of->mean)[r] : 0;
    const REAL scale = 1 / (REAL)sqrt(((const REAL *)of->var)[r] + (REAL)of->eps);
    return (F(row_back)){(const REAL *)of->x + r * n + first, (const REAL *)of->g + r * of->g_step + first, (REAL *)of->out + r * n + first,
                         middle, scale, (REAL)(products * scale / (WIDE)n) * scale * scale, of->centre ? (REAL)(total / (WIDE)n) * scale : 0};
}

static void F(row_sums)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count, void *to) {
    WIDE *sums = to;
    for (ptrdiff_t r = first; r < first + count; r++) {
        WIDE total = 0, products = 0;
        F(weighted_sums)((const REAL *)of->g + r * of->g_step, of->weight, (const REAL *)of->x + r * of->n, of->n,
                         of->centre ? ((const REAL *)of->mean)[r] : 0, &total, &products);
        *sums++ = total;
        *sums++ = products;
    }
}

/* One way over so many rows for all three gradients; `rows` and `adds` are constants where this is called. */
ALWAYS_INLINE void F(rows_through)(const F(row_back) *of, int rows, bool adds, const REAL *w, REAL *weight_block, REAL *bias_block,
                                   ptrdiff_t n) {
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {
        REAL weight = weight_block[i], bias = bias_block[i];
        for (int k = 0; k < rows; k++) {
            const REAL g = of[k].g[i], distance = of[k].x[i] - of[k].middle;
            const REAL made = g * w[i] * of[k].scale - (distance * of[k].mixed + of[k].shift);
            of[k].out[i] = adds ? of[k].out[i] + made : made;
            weight += g * (distance * of[k].scale);
            bias += g;
        }
        weight_block[i] = weight;
        bias_block[i] = bias;
    }
}

ALWAYS_INLINE void F(one_or_two_through)(const norm_rows *of, const F(row_back) *row, ptrdiff_t rows, const REAL *w, REAL *weight_block,
                                         REAL *bias_block, ptrdiff_t n) {
    if (rows == 2 && of->adds)
        F(rows_through)(row, 2, true, w, weight_block, bias_block, n);
    else if (rows == 2)
        F(rows_through)(row, 2, false, w, weight_block, bias_block, n);
    else if (of->adds)
        F(rows_through)(row, 1, true, w, weight_block, bias_block, n);
    else
        F(rows_through)(row, 1, false, w, weight_block, bias_block, n);
}

/* Every row has all weights, and all gradients are asked for. Two rows together read and write the sums by column once, which are
   two stores in three otherwise: rows of 512 took 0.87 of the time in the second cache of an Emerald Rapids, 0.94 in the third. */
static void F(weighted_rows_back)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count, double *weight_total,
                                  double *bias_total, REAL *weight_block, REAL *bias_block) {
    const ptrdiff_t n = of->n, together = n * (ptrdiff_t)sizeof(REAL) > PAIR_BYTES ? 1 : 2;
    for (ptrdiff_t done = 0, rows; done < count; done += rows) {
        rows = count - done < together ? 1 : together;
        F(row_back) row[2];
        WIDE sums[4];
        F(row_sums)(of, first + done, rows, sums);
        for (ptrdiff_t k = 0; k < rows; k++)
            row[k] = F(row_by_sums)(of, first + done + k, 0, sums[2 * k], sums[2 * k + 1]);
        F(one_or_two_through)(of, row, rows, of->weight, weight_block, bias_block, n);
        if ((done + rows) % NORM_BLOCK == 0 || done + rows == count) {
            if (weight_total)
                F(emptied)(weight_block, weight_total, n);
            if (bias_total)
                F(emptied)(bias_block, bias_total, n);
        }
    }
}

static void F(columns_back)(const norm_rows *of, ptrdiff_t rows, const void *row_sums, ptrdiff_t first, ptrdiff_t count,
                            void *weight, void *bias) {
    const WIDE *sums = row_sums;
    REAL weight_block[NORM_STRIP] = {0}, bias_block[NORM_STRIP] = {0};
    double weight_total[NORM_STRIP] = {0}, bias_total[NORM_STRIP] = {0};
    for (ptrdiff_t r = 0, some; r < rows; r += some) {
        F(row_back) row[2];
        some = rows - r < 2 ? 1 : 2;
        for (ptrdiff_t k = 0; k < some; k++)
            row[k] = F(row_by_sums)(of, r + k, first, sums[2 * (r + k)], sums[2 * (r + k) + 1]);
        F(one_or_two_through)(of, row, some, (const REAL *)of->weight + first, weight_block, bias_block, count);
        if ((r + some) % NORM_BLOCK == 0 || r + some == rows) {
            F(emptied)(weight_block, weight_total, count);
            F(emptied)(bias_block, bias_total, count);
        }
    }
    for (ptrdiff_t i = 0; i < count && weight; i++)
        ((REAL *)weight)[first + i] = (REAL)weight_total[i];
    for (ptrdiff_t i = 0; i < count && bias; i++)
        ((REAL *)bias)[first + i] = (REAL)bias_total[i];
}
