/* A triangle with a few right sides, for one type, which REAL, V, LANES and F describe (Golub and Van Loan, Matrix Computations,
   3.1).

   BLOCK rows at a time are solved with the right sides across a vector. Before that, where rows of the triangle lie side by side,
   what is known is taken away from them, as sums along the rows; where columns do, what was solved is taken away from all other
   rows after that. Sums along rows leave the block that is cut short to the end, and columns have it at the beginning, so that what
   is added up or changed is whole vectors. */

enum { F(TRIANGLE_SIDES) = (int)LANES < SIDES ? (int)LANES : SIDES, F(TRIANGLE_SUMS) = ROWS * F(TRIANGLE_SIDES) };

/* One block by its own triangle, element [i, j] of which is at a[i * row + j * column]; the right sides lie across vectors. */
ALWAYS_INLINE void F(triangle_block)(const REAL *a, ptrdiff_t row, ptrdiff_t column, ptrdiff_t n, bool upper, bool unit, V *x) {
#pragma GCC unroll 16
    for (ptrdiff_t step = 0; step < n; step++) {
        const ptrdiff_t k = upper ? n - 1 - step : step;
        if (!unit)
            x[k] /= a[k * (row + column)];
        for (ptrdiff_t i = upper ? 0 : k + 1; i < (upper ? k : n); i++)
            x[i] -= x[k] * a[i * row + k * column];
    }
}

static void F(triangle_diagonal)(const lapack_triangle *of, ptrdiff_t first, ptrdiff_t n, REAL *b, ptrdiff_t line,
                                 ptrdiff_t count) {
    const ptrdiff_t row = of->by_rows ? of->step : 1, column = of->by_rows ? 1 : of->step;
    const REAL *const a = (const REAL *)of->a + first * (of->step + 1);
    REAL across[BLOCK * LANES], back[LANES * LANES];
    V x[BLOCK];
    b += first;
    if (n == BLOCK) {
        for (ptrdiff_t i = 0; i < BLOCK; i += LANES)
            F(turn)(b + i, line, count, across + i * LANES, LANES);
    } else {
        memset(across, 0, sizeof across);
        for (ptrdiff_t i = 0; i < n; i++)
            for (ptrdiff_t c = 0; c < count; c++)
                across[i * LANES + c] = b[c * line + i];
    }
    for (ptrdiff_t i = 0; i < BLOCK; i++)
        x[i] = F(load)(across + i * LANES);
    if (n < BLOCK)
        F(triangle_block)(a, row, column, n, of->upper, of->unit, x);
    else if (of->upper)
        F(triangle_block)(a, row, column, BLOCK, true, of->unit, x);
    else
        F(triangle_block)(a, row, column, BLOCK, false, of->unit, x);
    for (ptrdiff_t i = 0; i < BLOCK; i++)
        F(store)(across + i * LANES, x[i]);
    if (n == BLOCK) {
        for (ptrdiff_t i = 0; i < BLOCK; i += LANES) {
            F(turn)(across + i * LANES, LANES, LANES, back, LANES);
            for (ptrdiff_t c = 0; c < count; c++)
                F(store)(b + c * line + i, F(load)(back + c * LANES));
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t c = 0; c < count; c++)
            b[c * line + i] = across[i * LANES + c];
}

/* From `rows` rows of right sides, the products of as many rows of the triangle with the `inner` elements that are known. */
ALWAYS_INLINE void F(triangle_sums)(const REAL *a, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t inner, const REAL *known, REAL *b,
                                    ptrdiff_t line, int count) {
    for (ptrdiff_t i = 0; i < rows; i += ROWS, a += ROWS * step) {
        V sums[F(TRIANGLE_SUMS)];
        REAL added[F(TRIANGLE_SUMS)];
        const ptrdiff_t second = i + 1 < rows ? step : 0;
#pragma GCC unroll 16
        for (int k = 0; k < F(TRIANGLE_SUMS); k++)
            sums[k] = (V){0};
        for (ptrdiff_t j = 0; j < inner; j += LANES) {
            const V one = F(load)(a + j), other = F(load)(a + second + j);
#pragma GCC unroll 8
            for (int c = 0; c < count; c++) {
                const V x = F(load)(known + c * line + j);
                sums[c * ROWS] += one * x;
                sums[c * ROWS + 1] += other * x;
            }
        }
        for (int k = 0; k < count * ROWS; k += LANES)
            F(sum_each)(sums + k, added + k);
        for (int c = 0; c < count; c++) {
            b[c * line + i] -= added[c * ROWS];
            if (second)
                b[c * line + i + 1] -= added[c * ROWS + 1];
        }
    }
}

/* From `rows` rows of right sides, whole vectors of them, `inner` columns of the triangle times what is known. */
ALWAYS_INLINE void F(triangle_columns)(const REAL *a, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t inner, const REAL *known, REAL *b,
                                       ptrdiff_t line, int count, int vectors) {
    for (ptrdiff_t i = 0; i < rows; i += vectors * LANES) {
        V made[F(TRIANGLE_SUMS)];
#pragma GCC unroll 8
        for (int c = 0; c < count; c++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                made[c * ROWS + v] = F(load)(b + c * line + i + v * LANES);
        const REAL *column = a + i;
        for (ptrdiff_t k = 0; k < inner; k++, column += step) {
            V here[ROWS];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                here[v] = F(load)(column + v * LANES);
#pragma GCC unroll 8
            for (int c = 0; c < count; c++)
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    made[c * ROWS + v] -= here[v] * known[c * line + k];
        }
#pragma GCC unroll 8
        for (int c = 0; c < count; c++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                F(store)(b + c * line + i + v * LANES, made[c * ROWS + v]);
    }
}

/* What a block of `n` rows from `first` on and the others beside it mean to each other, for up to a group of right sides. */
ALWAYS_INLINE void F(triangle_beside)(const lapack_triangle *of, ptrdiff_t first, ptrdiff_t n, REAL *b, ptrdiff_t line, int count) {
    const REAL *const a = of->a;
    const ptrdiff_t step = of->step, after = first + n;
    if (of->by_rows && of->upper)
        F(triangle_sums)(a + first * step + after, step, n, of->n - after, b + after, b + first, line, count);
    else if (of->by_rows)
        F(triangle_sums)(a + first * step, step, n, first, b, b + first, line, count);
    else {
        const ptrdiff_t from = of->upper ? 0 : after, rows = of->upper ? first : of->n - after;
        const ptrdiff_t whole = rows / (ROWS * LANES) * (ROWS * LANES);
        const REAL *const columns = a + first * step + from;
        F(triangle_columns)(columns, step, whole, n, b + first, b + from, line, count, ROWS);
        F(triangle_columns)(columns + whole, step, rows - whole, n, b + first, b + from + whole, line, count, 1);
    }
}

static void F(triangle_some)(const lapack_triangle *of, ptrdiff_t first, ptrdiff_t n, REAL *b, ptrdiff_t line, ptrdiff_t count) {
    switch (count) {
    case 1: F(triangle_beside)(of, first, n, b, line, 1); break;
    case 2: F(triangle_beside)(of, first, n, b, line, 2); break;
    case 3: F(triangle_beside)(of, first, n, b, line, F(TRIANGLE_SIDES) < 3 ? 2 : 3); break;
    case 4: F(triangle_beside)(of, first, n, b, line, F(TRIANGLE_SIDES) < 4 ? 2 : 4); break;
    default: F(triangle_beside)(of, first, n, b, line, F(TRIANGLE_SIDES));
    }
}

static void F(triangle_solve)(const lapack_triangle *of, void *b, ptrdiff_t line, ptrdiff_t count) {
    const ptrdiff_t n = of->n, odd = n % BLOCK;
    const bool odd_first = !of->by_rows; /* else last */
    for (ptrdiff_t done = 0, now; done < n; done += now) {
        now = odd && (odd_first ? !done : n - done == odd) ? odd : BLOCK;
        const ptrdiff_t first = of->upper ? n - done - now : done;
        for (ptrdiff_t c = 0, few; c < count; c += few) {
            REAL *const side = (REAL *)b + c * line;
            few = count - c >= F(TRIANGLE_SIDES) ? F(TRIANGLE_SIDES) : count - c > 4 ? 4 : count - c;
            if (of->by_rows)
                F(triangle_some)(of, first, now, side, line, few);
            F(triangle_diagonal)(of, first, now, side, line, few);
            if (!of->by_rows)
                F(triangle_some)(of, first, now, side, line, few);
        }
    }
}
