/* Products with short sums, for the type that REAL, V, LANES and F describe: to pack sides, and to choose a tile for each panel of
   columns, would take longer than to multiply. Both sides are read where they lie. Rows and columns of a part are covered once, so
   that `before` may be what is made; sums go from the first to the last of the inner dim, as those of tiles do. */

enum { F(THIN_ROWS) = 4 }; /* of a block, with two vectors of columns */

ALWAYS_INLINE void F(thin_block)(const gemm_job *job, ptrdiff_t row, ptrdiff_t column, int height, int vectors) {
    const REAL *left = (const REAL *)job->left + row * job->left_row;
    const REAL *right = (const REAL *)job->right + column;
    const REAL *before = job->before ? (const REAL *)job->before + row * job->before_row + column : F(zeros);
    const ptrdiff_t before_row = job->before ? job->before_row : 0;
    V sums[F(THIN_ROWS)][2];
#pragma GCC unroll 4
    for (int r = 0; r < height; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[r][v] = F(load)(before + r * before_row + v * LANES);
    for (ptrdiff_t k = 0; k < job->inner; k++, left += job->left_inner, right += job->right_inner) {
        const V one = F(load)(right), other = vectors > 1 ? F(load)(right + LANES) : one;
#pragma GCC unroll 4
        for (int r = 0; r < height; r++) {
            const REAL by = left[r * job->left_row];
            sums[r][0] += one * by;
            if (vectors > 1)
                sums[r][1] += other * by;
        }
    }
    REAL *made = (REAL *)job->made + row * job->made_row + column;
#pragma GCC unroll 4
    for (int r = 0; r < height; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            F(store)(made + r * job->made_row + v * LANES, sums[r][v]);
}

ALWAYS_INLINE void F(thin_rows)(const gemm_job *job, const gemm_part *part, ptrdiff_t column, int vectors) {
    ptrdiff_t row = part->row;
    const ptrdiff_t end = row + part->rows;
    for (; row + 4 <= end; row += 4)
        F(thin_block)(job, row, column, 4, vectors);
    if (end - row == 3)
        F(thin_block)(job, row, column, 3, vectors);
    else if (end - row == 2)
        F(thin_block)(job, row, column, 2, vectors);
    else if (end - row == 1)
        F(thin_block)(job, row, column, 1, vectors);
}

/* The rows and columns of a part, and all of the inner dim, of a job whose right_column is 1. */
static void F(thin)(const gemm_job *job, const gemm_part *part) {
    const gemm_job own = *job; /* nothing that is written may be part of it: its numbers stay in registers */
    ptrdiff_t column = part->column;
    const ptrdiff_t end = column + part->columns;
    for (; column + 2 * LANES <= end; column += 2 * LANES)
        F(thin_rows)(&own, part, column, 2);
    for (; column + LANES <= end; column += LANES)
        F(thin_rows)(&own, part, column, 1);
    for (; column < end; column++)
        for (ptrdiff_t row = part->row; row < part->row + part->rows; row++) {
            REAL sum = own.before ? ((const REAL *)own.before)[row * own.before_row + column] : 0;
            for (ptrdiff_t k = 0; k < own.inner; k++)
                sum += ((const REAL *)own.left)[row * own.left_row + k * own.left_inner] *
                       ((const REAL *)own.right)[k * own.right_inner + column];
            ((REAL *)own.made)[row * own.made_row + column] = sum;
        }
}
