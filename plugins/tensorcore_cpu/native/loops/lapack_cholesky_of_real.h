/* A panel of a Cholesky factor, for one type, which REAL, V, LANES and F describe (Golub and Van Loan, Matrix Computations,
   4.2.5). */

/* The square at the top, row after row in `square` afterwards, and the inverses of its diagonal. */
static bool F(cholesky_square)(REAL *a, ptrdiff_t line, ptrdiff_t n, REAL *square, REAL *inverses) {
    for (ptrdiff_t j = 0; j < n; j++) { /* what is above the diagonal is not read */
        REAL *const row = square + j * WIDTH;
        for (ptrdiff_t i = j; i < n; i++)
            row[i] = a[j * line + i];
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        REAL *const row = square + j * WIDTH;
        if (!(row[j] > 0) || !(row[j] < (REAL)INFINITY))
            return false;
        const REAL root = (REAL)(sizeof(REAL) == 4 ? sqrtf((float)row[j]) : sqrt((double)row[j]));
        inverses[j] = 1 / root;
        row[j] = root;
        for (ptrdiff_t i = j + 1; i < n; i++)
            row[i] /= root;
        for (ptrdiff_t c = j + 1; c < n; c++) {
            REAL *const other = square + c * WIDTH;
            const V times = (V){0} + row[c];
            for (ptrdiff_t i = c / LANES * LANES; i < n; i += LANES)
                F(store)(other + i, F(load)(other + i) - F(load)(row + i) * times);
        }
    }
    for (ptrdiff_t j = 0; j < n; j++)
        memcpy(a + j * line + j, square + j * WIDTH + j, (size_t)(n - j) * sizeof(REAL));
    return true;
}

/* Rows of a panel below its square, STRIP vectors of them. */
ALWAYS_INLINE void F(cholesky_strip)(REAL *a, ptrdiff_t line, ptrdiff_t columns, const REAL *square, const REAL *inverses,
                                     REAL *opposite) {
    for (ptrdiff_t j = 0; j < columns; j++) {
        V here[STRIP];
#pragma GCC unroll 4
        for (int v = 0; v < STRIP; v++)
            here[v] = F(load)(a + j * line + v * LANES);
        for (ptrdiff_t k = 0; k < j; k++)
#pragma GCC unroll 4
            for (int v = 0; v < STRIP; v++)
                here[v] += F(load)(opposite + k * line + v * LANES) * square[k * WIDTH + j];
#pragma GCC unroll 4
        for (int v = 0; v < STRIP; v++) {
            here[v] *= inverses[j];
            F(store)(a + j * line + v * LANES, here[v]);
            F(store)(opposite + j * line + v * LANES, -here[v]);
        }
    }
}

static bool F(cholesky_panel)(void *a, ptrdiff_t line, ptrdiff_t rows, ptrdiff_t columns, void *opposite) {
    REAL square[WIDTH * WIDTH + LANES] = {0}, inverses[WIDTH];
    if (!F(cholesky_square)(a, line, columns, square, inverses))
        return false;
    for (ptrdiff_t i = columns; i < rows; i += STRIP * LANES)
        F(cholesky_strip)((REAL *)a + i, line, columns, square, inverses, (REAL *)opposite + i);
    return true;
}
