/* Products with short sums, for the type that REAL, V, LANES and F describe: to pack sides, and to choose a tile for each panel of
   columns, would take longer than to multiply. Both sides are read where they lie, but for a right side that is turned over, of which
   a panel is packed for all rows. Rows and columns of a part are covered once, so that `before` may be what is made; sums go from the
   first to the last of the inner dim, as those of tiles do. */

enum { F(THIN_ROWS) = 4 }; /* of a block, with two vectors of columns */

/* `right` is the first of the columns, and `step` goes from one of its rows to the next. */
ALWAYS_INLINE void F(thin_block)(const gemm_job *job, const REAL *right, ptrdiff_t step, ptrdiff_t row, ptrdiff_t column, int height,
                                 int vectors) {
    const REAL *left = (const REAL *)job->left + row * job->left_row;
    const REAL *before = job->before ? (const REAL *)job->before + row * job->before_row + column : F(zeros);
    const ptrdiff_t before_row = job->before ? job->before_row : 0;
    V sums[F(THIN_ROWS)][2];
#pragma GCC unroll 4
    for (int r = 0; r < height; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[r][v] = F(load)(before + r * before_row + v * LANES);
    for (ptrdiff_t k = 0; k < job->inner; k++, left += job->left_inner, right += step) {
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

ALWAYS_INLINE void F(thin_rows)(const gemm_job *job, const gemm_part *part, const REAL *right, ptrdiff_t step, ptrdiff_t column,
                                int vectors) {
    ptrdiff_t row = part->row;
    const ptrdiff_t end = row + part->rows;
    for (; row + 4 <= end; row += 4)
        F(thin_block)(job, right, step, row, column, 4, vectors);
    if (end - row == 3)
        F(thin_block)(job, right, step, row, column, 3, vectors);
    else if (end - row == 2)
        F(thin_block)(job, right, step, row, column, 2, vectors);
    else if (end - row == 1)
        F(thin_block)(job, right, step, row, column, 1, vectors);
}

/* The rows and columns of a part, and all of the inner dim. */
static void F(thin)(const gemm_job *job, const gemm_part *part) {
    const gemm_job own = *job; /* nothing that is written may be part of it: its numbers stay in registers */
    REAL panel[GEMM_THIN * F(WIDTH)];
    gemm_part one = *part;
    const ptrdiff_t end = part->column + part->columns;
    for (; one.column < end; one.column += F(WIDTH)) {
        one.columns = end - one.column < F(WIDTH) ? end - one.column : F(WIDTH);
        const bool lies = own.right_column == 1;
        const REAL *right = lies ? (const REAL *)own.right + one.column : panel;
        const ptrdiff_t step = lies ? own.right_inner : F(WIDTH);
        ptrdiff_t done = 0;
        if (!lies)
            F(pack_right)(&own, &one, panel);
        if (one.columns == 2 * LANES) {
            F(thin_rows)(&own, &one, right, step, one.column, 2);
            continue;
        }
        if (one.columns >= LANES) {
            F(thin_rows)(&own, &one, right, step, one.column, 1);
            done = LANES;
        }
        for (; done < one.columns; done++)
            for (ptrdiff_t row = one.row; row < one.row + one.rows; row++) {
                const ptrdiff_t column = one.column + done;
                REAL sum = own.before ? ((const REAL *)own.before)[row * own.before_row + column] : 0;
                for (ptrdiff_t k = 0; k < own.inner; k++)
                    sum += ((const REAL *)own.left)[row * own.left_row + k * own.left_inner] * right[k * step + done];
                ((REAL *)own.made)[row * own.made_row + column] = sum;
            }
    }
}
