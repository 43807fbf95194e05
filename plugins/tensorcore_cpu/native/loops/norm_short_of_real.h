/* Normalisations of short rows for one type: sums from lane to lane of one row after the other would take most of their time. */

/* Rows of at most NORM_NARROW elements, turned over: a vector holds one element of each of LANES rows. False where the weights of a
   row are several and not those of the next one. */
static bool F(narrow_rows)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count) {
    const ptrdiff_t n = of->n, weights = n / of->inner;
    const REAL *w = of->weight, *b = of->bias;
    REAL turned[NORM_NARROW * NORM_TURNED], mean[NORM_TURNED], scale[NORM_TURNED], shift[NORM_TURNED];
    if (weights > 1 && of->turns > 1)
        return false;
    for (ptrdiff_t last = first + count, rows; first < last; first += rows) {
        rows = last - first < NORM_TURNED ? last - first : NORM_TURNED;
        const ptrdiff_t wide = (rows + LANES - 1) & -(ptrdiff_t)LANES;
        F(turn_rows)((const REAL *)of->x + first * n, n, n, rows, wide, turned);
        for (ptrdiff_t r = 0; r < wide; r++)
            mean[r] = scale[r] = shift[r] = 0;
        for (ptrdiff_t k = 0; k < n && of->centre; k++)
            INDEPENDENT for (ptrdiff_t r = 0; r < wide; r++)
                mean[r] += turned[k * wide + r];
        for (ptrdiff_t r = 0; r < wide; r++)
            mean[r] /= (REAL)n;
        for (ptrdiff_t k = 0; k < n; k++)
            INDEPENDENT for (ptrdiff_t r = 0; r < wide; r++) {
                const REAL away = turned[k * wide + r] - mean[r];
                scale[r] += away * away;
            }
        for (ptrdiff_t r = 0; r < wide; r++)
            scale[r] /= (REAL)n;
        if (of->centre)
            memcpy((REAL *)of->mean + first, mean, (size_t)rows * sizeof *mean);
        memcpy((REAL *)of->var + first, scale, (size_t)rows * sizeof *scale);
        INDEPENDENT for (ptrdiff_t r = 0; r < wide; r++)
            scale[r] = 1 / (REAL)sqrt(scale[r] + (REAL)of->eps);
        for (ptrdiff_t r = 0; weights == 1 && (w || b) && r < rows; r++) {
            const ptrdiff_t at = of->turns > 1 ? (first + r) % of->turns : 0;
            scale[r] *= w ? w[at] : 1;
            shift[r] = b ? b[at] : 0;
        }
        for (ptrdiff_t k = 0; k < n; k++) {
            const REAL by = w && weights > 1 ? w[k / of->inner] : 1, more = b && weights > 1 ? b[k / of->inner] : 0;
            REAL *row = turned + k * wide;
            INDEPENDENT for (ptrdiff_t r = 0; r < wide; r++)
                row[r] = (row[r] - mean[r]) * scale[r] * by + (shift[r] + more);
        }
        F(turn_rows_back)(turned, n, rows, wide, (REAL *)of->out + first * n);
    }
    return true;
}

/* Rows that are a few vectors long, LANES of them together: their sums are made in lanes and then of all rows at once. The last vector
   of a row begins where a whole one fits, and `keep` is what the one before it has not. */
static void F(short_rows)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count) {
    const ptrdiff_t n = of->n;
    const VI keep = F(kept_lanes)(n);
    for (ptrdiff_t last = first + count, rows; first < last; first += rows) {
        REAL mean[LANES] = {0}, scale[LANES];
        V lanes[LANES] = {{0}};
        const REAL *x = (const REAL *)of->x + first * n;
        rows = last - first < LANES ? last - first : LANES;
        for (ptrdiff_t r = 0; r < rows && of->centre; r++) {
            for (ptrdiff_t i = 0; i + LANES < n; i += LANES)
                lanes[r] += V_AT(x + r * n, i);
            lanes[r] += (V)((VI)V_AT(x + r * n, n - LANES) & keep);
        }
        if (of->centre) {
            *(V_U *)mean = F(sums_of_lanes)(lanes) / (REAL)n;
            memcpy((REAL *)of->mean + first, mean, (size_t)rows * sizeof *mean);
        }
        for (ptrdiff_t r = 0; r < rows; r++) {
            V squares = {0}, away;
            for (ptrdiff_t i = 0; i + LANES < n; i += LANES) {
                away = V_AT(x + r * n, i) - mean[r];
                squares += away * away;
            }
            away = (V)((VI)(V_AT(x + r * n, n - LANES) - mean[r]) & keep);
            lanes[r] = squares + away * away;
        }
        *(V_U *)scale = F(sums_of_lanes)(lanes) / (REAL)n;
        memcpy((REAL *)of->var + first, scale, (size_t)rows * sizeof *scale);
        for (ptrdiff_t r = 0; r < LANES; r++)
            scale[r] = 1 / (REAL)sqrt(scale[r] + (REAL)of->eps);
        for (ptrdiff_t r = 0; r < rows; r++)
            F(scaled_row)(of, first + r, mean[r], scale[r], false);
    }
}
