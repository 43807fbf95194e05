/* The loops of softmax for one type. */

/* Columns */

/* The largest of each column, and the sum of e^(x - top), which go to `out` too where it is given. Every other element has a sum
   of its own, which halves the roundings. */
ALWAYS_INLINE void F(column_powers)(const REAL *x, REAL *out, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t width, REAL *top,
                                    REAL *total) {
    REAL other[COLUMNS] = {0};
    for (ptrdiff_t i = 0; i < width; i++) {
        top[i] = -(REAL)INFINITY;
        total[i] = 0;
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        const REAL *row = x + k * inner;
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            top[i] = row[i] > top[i] ? row[i] : top[i];
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        const REAL *row = x + k * inner;
        REAL power[COLUMNS], *made = out ? out + k * inner : power, *sum = k % 2 ? other : total;
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++) {
            REAL one = F(exp_)(row[i] - top[i]);
            made[i] = one;
            sum[i] += one;
        }
    }
    INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
        total[i] += other[i];
}

static void F(softmax_columns)(const void *from, ptrdiff_t same, const void *unused, void *to, ptrdiff_t n,
                               ptrdiff_t inner, ptrdiff_t width) {
    REAL top[COLUMNS], total[COLUMNS], *out = to;
    F(column_powers)(from, out, n, inner, width, top, total);
    for (ptrdiff_t k = 0; k < n; k++, out += inner)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            out[i] /= total[i];
}

static void F(log_softmax_columns)(const void *from, ptrdiff_t same, const void *unused, void *to, ptrdiff_t n,
                                   ptrdiff_t inner, ptrdiff_t width) {
    const REAL *x = from;
    REAL top[COLUMNS], total[COLUMNS], *out = to;
    F(column_powers)(x, NULL, n, inner, width, top, total);
    for (ptrdiff_t i = 0; i < width; i++)
        total[i] = F(log_)(total[i]);
    for (ptrdiff_t k = 0; k < n; k++, out += inner, x += inner)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            out[i] = x[i] - top[i] - total[i];
}

static void F(softmax_back_columns)(const void *from, ptrdiff_t apart, const void *made, void *to, ptrdiff_t n,
                                    ptrdiff_t inner, ptrdiff_t width) {
    const REAL *g = from, *y = made;
    REAL total[COLUMNS] = {0}, *out = to;
    for (ptrdiff_t k = 0; k < n; k++)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            total[i] += g[k * apart + i] * y[k * inner + i];
    for (ptrdiff_t k = 0; k < n; k++, out += inner, g += apart, y += inner)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            out[i] = y[i] * (g[i] - total[i]);
}

static void F(log_softmax_back_columns)(const void *from, ptrdiff_t apart, const void *made, void *to, ptrdiff_t n,
                                        ptrdiff_t inner, ptrdiff_t width) {
    const REAL *g = from, *y = made;
    REAL total[COLUMNS] = {0}, *out = to;
    for (ptrdiff_t k = 0; k < n; k++)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            total[i] += g[k * apart + i];
    for (ptrdiff_t k = 0; k < n; k++, out += inner, g += apart, y += inner)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            out[i] = g[i] - F(exp_)(y[i]) * total[i];
}

/* Rows of at most NARROW elements, such as the scores of ten classes: turned over, so that a vector holds one element of each of
   LANES rows, where they would take one vector each and its maximum and sum from lane to lane. */

/* What lies behind the last row, up to a whole vector of them, becomes zero. */
ALWAYS_INLINE void F(turn_rows)(const REAL *x, ptrdiff_t step, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t wide, REAL *to) {
    for (ptrdiff_t k = 0; k < n; k++) {
        for (ptrdiff_t r = 0; r < rows; r++)
            to[k * COLUMNS + r] = x[r * step + k];
        for (ptrdiff_t r = rows; r < wide; r++)
            to[k * COLUMNS + r] = 0;
    }
}

ALWAYS_INLINE void F(turn_rows_back)(const REAL *from, ptrdiff_t n, ptrdiff_t rows, REAL *out) {
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < n; k++)
            out[r * n + k] = from[k * COLUMNS + r];
}

static void F(narrow_rows)(const softmax_lines *of, softmax_columns columns) {
    REAL x[NARROW * COLUMNS], y[NARROW * COLUMNS];
    for (ptrdiff_t first = 0, rows; first < of->count; first += rows) {
        rows = of->count - first < COLUMNS ? of->count - first : COLUMNS;
        const ptrdiff_t wide = (rows + LANES - 1) & -(ptrdiff_t)LANES;
        F(turn_rows)((const REAL *)of->x + first * of->x_step, of->x_step, of->n, rows, wide, x);
        if (of->y)
            F(turn_rows)((const REAL *)of->y + first * of->y_step, of->y_step, of->n, rows, wide, y);
        columns(x, COLUMNS, y, x, of->n, COLUMNS, wide);
        F(turn_rows_back)(x, of->n, rows, (REAL *)of->out + first * of->n);
    }
}

/* Rows */

/* e^(x - top) into out; answers the sum. Tails go through a full vector of their own. */
ALWAYS_INLINE WIDE F(powers)(const REAL *x, REAL *out, ptrdiff_t n, REAL top) {
    WIDE total = 0;
    for (; n >= LANES; ) {
        ptrdiff_t piece = (n < ROW_BLOCK ? n : ROW_BLOCK) & -(ptrdiff_t)LANES;
        F(exp_less)(x, top, out, piece);
        total += F(row_sum)(out, piece);
        x += piece;
        out += piece;
        n -= piece;
    }
    if (n) {
        REAL tail[LANES];
        V fill = -(REAL)INFINITY - (V){0};
        memcpy(tail, &fill, sizeof tail);
        memcpy(tail, x, (size_t)n * sizeof *tail);
        F(exp_less)(tail, top, tail, LANES);
        memcpy(out, tail, (size_t)n * sizeof *tail);
        for (ptrdiff_t i = 0; i < n; i++)
            total += tail[i];
    }
    return total;
}

/* The same without keeping the powers. */
ALWAYS_INLINE WIDE F(powers_sum)(const REAL *x, ptrdiff_t n, REAL top) {
    REAL space[ROW_BLOCK];
    WIDE total = 0;
    for (ptrdiff_t begin = 0; begin < n; begin += ROW_BLOCK)
        total += F(powers)(x + begin, space, n - begin < ROW_BLOCK ? n - begin : ROW_BLOCK, top);
    return total;
}

static void F(softmax_rows)(const softmax_lines *of) {
    if (of->n <= NARROW) {
        F(narrow_rows)(of, F(softmax_columns));
        return;
    }
    const REAL *x = of->x;
    const ptrdiff_t n = of->n;
    REAL *out = of->out;
    for (ptrdiff_t row = 0; row < of->count; row++, x += of->x_step, out += n) {
        REAL by = (REAL)(1 / F(powers)(x, out, n, F(row_max)(x, n)));
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] *= by;
    }
}

static void F(log_softmax_rows)(const softmax_lines *of) {
    if (of->n <= NARROW) {
        F(narrow_rows)(of, F(log_softmax_columns));
        return;
    }
    const REAL *x = of->x;
    const ptrdiff_t n = of->n;
    REAL *out = of->out;
    for (ptrdiff_t row = 0; row < of->count; row++, x += of->x_step, out += n) {
        REAL top = F(row_max)(x, n), less = (REAL)log((double)F(powers_sum)(x, n, top));
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
            out[i] = x[i] - top - less;
    }
}

static void F(softmax_back_rows)(const softmax_lines *of) {
    if (of->n <= NARROW) {
        F(narrow_rows)(of, F(softmax_back_columns));
        return;
    }
    const REAL *g = of->x, *y = of->y;
    const ptrdiff_t n = of->n;
    REAL *out = of->out;
    for (ptrdiff_t row = 0; row < of->count; row++, g += of->x_step, y += of->y_step, out += n) {
        WIDE total = 0;
#define TERM(AT, i) AT(g, i) * AT(y, i)
        ADD_UP(total, n, TERM)
#undef TERM
        REAL less = (REAL)total;
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
            out[i] = y[i] * (g[i] - less);
    }
}

static void F(log_softmax_back_rows)(const softmax_lines *of) {
    if (of->n <= NARROW) {
        F(narrow_rows)(of, F(log_softmax_back_columns));
        return;
    }
    const REAL *g = of->x, *y = of->y;
    const ptrdiff_t n = of->n;
    REAL *out = of->out;
    for (ptrdiff_t row = 0; row < of->count; row++, g += of->x_step, y += of->y_step, out += n) {
        REAL total = (REAL)F(row_sum)(g, n), share[ROW_BLOCK];
        for (ptrdiff_t begin = 0; begin < n; begin += ROW_BLOCK) {
            ptrdiff_t piece = n - begin < ROW_BLOCK ? n - begin : ROW_BLOCK;
            F(exp_less)(y + begin, 0, share, piece);
            INDEPENDENT for (ptrdiff_t i = 0; i < piece; i++)
                out[begin + i] = g[begin + i] - share[i] * total;
        }
    }
}

/* Losses of classes */

ALWAYS_INLINE void F(narrow_statistics)(const REAL *x, ptrdiff_t n, ptrdiff_t count, REAL *top, REAL *less) {
    REAL turned[NARROW * COLUMNS], most[COLUMNS], total[COLUMNS];
    for (ptrdiff_t first = 0, rows; first < count; first += rows) {
        rows = count - first < COLUMNS ? count - first : COLUMNS;
        const ptrdiff_t wide = (rows + LANES - 1) & -(ptrdiff_t)LANES;
        F(turn_rows)(x + first * n, n, n, rows, wide, turned);
        F(column_powers)(turned, NULL, n, COLUMNS, wide, most, total);
        for (ptrdiff_t r = 0; r < wide; r++)
            total[r] = F(log_)(total[r]);
        memcpy(top + first, most, (size_t)rows * sizeof *top);
        memcpy(less + first, total, (size_t)rows * sizeof *less);
    }
}

/* What the rows of class_backward do, for narrow ones. */
ALWAYS_INLINE void F(narrow_backward)(const REAL *x, ptrdiff_t n, ptrdiff_t count, const REAL *top, const REAL *less,
                                      const REAL *amounts, REAL *out) {
    REAL turned[NARROW * COLUMNS], of[3][COLUMNS];
    for (ptrdiff_t first = 0, rows; first < count; first += rows) {
        rows = count - first < COLUMNS ? count - first : COLUMNS;
        const ptrdiff_t wide = (rows + LANES - 1) & -(ptrdiff_t)LANES;
        F(turn_rows)(x + first * n, n, n, rows, wide, turned);
        F(turn_rows)(top + first, 1, 1, rows, wide, of[0]);
        F(turn_rows)(less + first, 1, 1, rows, wide, of[1]);
        F(turn_rows)(amounts + first, 1, 1, rows, wide, of[2]);
        for (ptrdiff_t k = 0; k < n; k++) {
            REAL *row = turned + k * COLUMNS;
            INDEPENDENT for (ptrdiff_t r = 0; r < wide; r++)
                row[r] = F(exp_)(row[r] - of[0][r] - of[1][r]) * of[2][r];
        }
        F(turn_rows_back)(turned, n, rows, out + first * n);
    }
}

static void F(class_statistics)(const class_scores *of, ptrdiff_t first, ptrdiff_t count) {
    const REAL *x = of->x;
    REAL *top = (REAL *)of->top + first, *less = (REAL *)of->less + first;
    if (of->inner == 1 && of->n <= NARROW) {
        F(narrow_statistics)(x + first * of->n, of->n, count, top, less);
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
    F(column_powers)(x + first / of->inner * of->n * of->inner + first % of->inner, NULL, of->n, of->inner, count, top,
                     less);
    for (ptrdiff_t k = 0; k < count; k++)
        less[k] = F(log_)(less[k]);
}

/* With `inner` known to be 1 nothing is divided. */
ALWAYS_INLINE void F(losses_of)(const class_scores *of, ptrdiff_t inner, void *to, ptrdiff_t first, ptrdiff_t count) {
    const REAL *x = of->x, *weight = of->weight, *top = of->top, *less = of->less;
    REAL *each = of->each, *losses = to;
    for (ptrdiff_t at = first; at < first + count; at++) {
        int64_t class = of->target[at];
        if (class == of->ignored || class < 0 || class >= of->n) {
            each[at] = losses[at] = 0;
            continue;
        }
        REAL score = x[(at / inner * of->n + class) * inner + at % inner];
        if (top)
            score = score - top[at] - less[at];
        each[at] = weight ? weight[class] : 1;
        losses[at] = -score * each[at];
    }
}

static void F(class_losses)(const class_scores *of, void *to, ptrdiff_t first, ptrdiff_t count) {
    if (of->inner == 1)
        F(losses_of)(of, 1, to, first, count);
    else
        F(losses_of)(of, of->inner, to, first, count);
}

ALWAYS_INLINE void F(less_at_classes)(const class_scores *of, ptrdiff_t inner, const REAL *amounts, REAL *out, ptrdiff_t first,
                                      ptrdiff_t count) {
    const ptrdiff_t n = of->n;
    for (ptrdiff_t at = first; at < first + count; at++) {
        int64_t class = of->target[at];
        if (class >= 0 && class < n && class != of->ignored)
            out[(at / inner * n + class) * inner + at % inner] -= amounts[at];
    }
}

static void F(class_backward)(const class_scores *of, const void *gradients, void *to, ptrdiff_t first, ptrdiff_t count) {
    const REAL *x = of->x, *top = of->top, *less = of->less, *amounts = gradients;
    REAL *out = to;
    ptrdiff_t n = of->n, inner = of->inner;
    ptrdiff_t start = first / inner * n * inner + first % inner;
    if (!top) {
        for (ptrdiff_t k = 0; inner > 1 && k < n; k++)
            memset(out + start + k * inner, 0, (size_t)count * sizeof *out);
        if (inner == 1)
            memset(out + start, 0, (size_t)(count * n) * sizeof *out);
    } else if (inner == 1 && n <= NARROW) {
        F(narrow_backward)(x + first * n, n, count, top + first, less + first, amounts + first, out + first * n);
    } else if (inner == 1) {
        for (ptrdiff_t r = first; r < first + count; r++) {
            const REAL *row = x + r * n;
            REAL *made = out + r * n, high = top[r], low = less[r], amount = amounts[r];
            for (ptrdiff_t begin = 0; begin < n; begin += ROW_BLOCK) {
                REAL share[ROW_BLOCK];
                ptrdiff_t piece = n - begin < ROW_BLOCK ? n - begin : ROW_BLOCK;
                INDEPENDENT for (ptrdiff_t i = 0; i < piece; i++)
                    share[i] = row[begin + i] - high;
                for (ptrdiff_t i = piece; i % LANES; i++)
                    share[i] = 0;
                F(exp_less)(share, low, share, (piece + LANES - 1) & -(ptrdiff_t)LANES);
                INDEPENDENT for (ptrdiff_t i = 0; i < piece; i++)
                    made[begin + i] = share[i] * amount;
            }
        }
    } else {
        for (ptrdiff_t k = 0; k < n; k++) {
            const REAL *row = x + start + k * inner;
            REAL *made = out + start + k * inner;
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
                made[i] = F(exp_)(row[i] - top[first + i] - less[first + i]) * amounts[first + i];
        }
    }
    if (inner == 1)
        F(less_at_classes)(of, 1, amounts, out, first, count);
    else
        F(less_at_classes)(of, inner, amounts, out, first, count);
}

static double F(class_total)(const void *x, ptrdiff_t n) { return (double)F(row_sum)(x, n); }
