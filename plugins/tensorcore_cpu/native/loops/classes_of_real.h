/* The loops of the losses of classes for one type: what they keep of each row of scores, the losses, and their gradients. */

/* Of batches of few columns, whose places lie side by side. */
ALWAYS_INLINE void F(narrow_statistics)(const REAL *x, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t count, REAL *top, REAL *less) {
    REAL turned[TURNED], most[COLUMNS], total[COLUMNS];
    const ptrdiff_t row = n * inner, together = F(turned_rows)(row);
    for (ptrdiff_t first = 0, rows; first < count; first += rows) {
        rows = count - first < together ? count - first : together;
        const ptrdiff_t wide = (rows + LANES - 1) & -(ptrdiff_t)LANES;
        F(turn_rows)(x + first * row, row, row, rows, wide, turned);
        for (ptrdiff_t j = 0; j < inner; j++) {
            F(column_powers)(turned + j * wide, NULL, n, inner * wide, wide, most, total);
            for (ptrdiff_t r = 0; r < wide; r++)
                total[r] = F(log_)(total[r]);
            for (ptrdiff_t r = 0; r < rows; r++) {
                top[(first + r) * inner + j] = most[r];
                less[(first + r) * inner + j] = total[r];
            }
        }
    }
}

/* What the rows of class_backward do, for those. */
ALWAYS_INLINE void F(narrow_backward)(const REAL *x, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t count, const REAL *top,
                                      const REAL *less, const REAL *amounts, REAL *out) {
    REAL turned[TURNED], of[3][TURNED];
    const ptrdiff_t row = n * inner, together = F(turned_rows)(row);
    for (ptrdiff_t first = 0, rows; first < count; first += rows) {
        rows = count - first < together ? count - first : together;
        const ptrdiff_t wide = (rows + LANES - 1) & -(ptrdiff_t)LANES;
        F(turn_rows)(x + first * row, row, row, rows, wide, turned);
        F(turn_rows)(top + first * inner, inner, inner, rows, wide, of[0]);
        F(turn_rows)(less + first * inner, inner, inner, rows, wide, of[1]);
        F(turn_rows)(amounts + first * inner, inner, inner, rows, wide, of[2]);
        for (ptrdiff_t k = 0; k < row; k++) {
            REAL *line = turned + k * wide;
            const ptrdiff_t place = k % inner * wide;
            INDEPENDENT for (ptrdiff_t r = 0; r < wide; r++)
                line[r] = F(exp_)(line[r] - of[0][place + r] - of[1][place + r]) * of[2][place + r];
        }
        F(turn_rows_back)(turned, row, rows, wide, out + first * row);
    }
}

static void F(class_statistics)(const class_scores *of, ptrdiff_t first, ptrdiff_t count) {
    const REAL *x = of->x;
    REAL *top = (REAL *)of->top + first, *less = (REAL *)of->less + first;
    if (softmax_goes_by_rows(of->n, of->inner) && (of->inner > 1 || of->n <= NARROW)) {
        F(narrow_statistics)(x + first * of->n, of->n, of->inner, count / of->inner, top, less);
        return;
    }
    if (of->inner == 1 && of->n >= LANES && of->n <= SHORT_ROW) {
        REAL powers[TURNED], high[LANES], total[LANES];
        const REAL *row = x + first * of->n;
        for (ptrdiff_t done = 0, rows; done < count; done += rows) {
            rows = F(rows_together)(of->n, count - done);
            F(powers_of_rows)(row + done * of->n, of->n, of->n, rows, powers, high, total);
            for (ptrdiff_t r = 0; r < LANES; r++)
                total[r] = F(log_)(total[r]);
            memcpy(top + done, high, (size_t)rows * sizeof *top);
            memcpy(less + done, total, (size_t)rows * sizeof *less);
        }
        return;
    }
    if (of->inner == 1) {
        for (ptrdiff_t k = 0; k < count; k++) {
            const REAL *row = x + (first + k) * of->n;
            top[k] = F(row_max)(row, of->n);
            less[k] = (REAL)log((double)F(powers_sum)(row, of->n, top[k]));
        }
        return;
    }
    const REAL *start = x + first / of->inner * of->n * of->inner + first % of->inner;
    if (F(repeats)(of->n, of->inner, count)) {
        REAL high[COLUMNS], total[COLUMNS];
        F(repeated_powers)(start, NULL, of->n * of->inner, of->inner, COLUMNS / of->inner * of->inner, high, total);
        memcpy(top, high, (size_t)count * sizeof *top);
        memcpy(less, total, (size_t)count * sizeof *less);
    } else {
        F(column_powers)(start, NULL, of->n, of->inner, count, top, less);
    }
    for (ptrdiff_t k = 0; k < count; k++)
        less[k] = F(log_)(less[k]);
}

/* Where the score of a class lies for a place; a division took longer than the rest of a loss. */
ALWAYS_INLINE ptrdiff_t F(class_place)(const class_scores *of, ptrdiff_t at, int64_t class) {
    return of->inner == 1 ? at * of->n + class : (at / of->inner * of->n + class) * of->inner + at % of->inner;
}

static void F(class_losses)(const class_scores *of, void *to, ptrdiff_t first, ptrdiff_t count) {
    const REAL *x = of->x, *weight = of->weight, *top = of->top, *less = of->less;
    const ptrdiff_t n = of->n, inner = of->inner;
    REAL *each = of->each, *losses = to;
    INDEPENDENT for (ptrdiff_t at = first; at < first + count; at++) {
        const int64_t given = of->target[at];
        const bool counts = ((uint64_t)given < (uint64_t)n) & (given != of->ignored);
        const int64_t class = counts ? given : 0;
        const REAL score = x[inner == 1 ? at * n + class : F(class_place)(of, at, class)] - (top ? top[at] : 0) - (less ? less[at] : 0);
        each[at] = !counts ? 0 : weight ? weight[class] : 1;
        losses[at] = counts ? -score * each[at] : 0;
    }
}

static void F(class_backward)(const class_scores *of, const void *gradients, void *to, ptrdiff_t first, ptrdiff_t count) {
    const REAL *x = of->x, *top = of->top, *less = of->less, *amounts = gradients;
    REAL *out = to;
    ptrdiff_t n = of->n, inner = of->inner;
    ptrdiff_t start = first / inner * n * inner + first % inner;
    if (!top) {
        const bool rows = softmax_goes_by_rows(n, inner);
        for (ptrdiff_t k = 0; !rows && k < n; k++)
            memset(out + start + k * inner, 0, (size_t)count * sizeof *out);
        if (rows)
            memset(out + start, 0, (size_t)(count * n) * sizeof *out);
    } else if (softmax_goes_by_rows(n, inner) && (inner > 1 || n <= NARROW)) {
        F(narrow_backward)(x + first * n, n, inner, count / inner, top + first, less + first, amounts + first, out + first * n);
    } else if (inner == 1) {
        for (ptrdiff_t r = first; r < first + count; r++) {
            const REAL *row = x + r * n;
            REAL *made = out + r * n, tail[LANES] = {0};
            const ptrdiff_t whole = n & -(ptrdiff_t)LANES;
            F(exp_times)(row, top[r], less[r], amounts[r], made, whole);
            if (whole == n)
                continue;
            memcpy(tail, row + whole, (size_t)(n - whole) * sizeof *tail);
            F(exp_times)(tail, top[r], less[r], amounts[r], tail, LANES);
            memcpy(made + whole, tail, (size_t)(n - whole) * sizeof *tail);
        }
    } else {
        for (ptrdiff_t k = 0; k < n; k++) {
            const REAL *row = x + start + k * inner;
            REAL *made = out + start + k * inner;
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
                made[i] = F(exp_)(row[i] - top[first + i] - less[first + i]) * amounts[first + i];
        }
    }
    for (ptrdiff_t at = first; at < first + count; at++) {
        int64_t class = of->target[at];
        if (class >= 0 && class < n && class != of->ignored)
            out[F(class_place)(of, at, class)] -= amounts[at];
    }
}

static double F(class_total)(const void *x, ptrdiff_t n) { return (double)F(row_sum)(x, n); }
