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

/* Rows of at most NARROW elements, such as the scores of ten classes, or of a few columns: turned over, so that a vector holds one
   element of each of LANES rows, where they would take one vector each and its maximum and sum from lane to lane. */

/* How many rows of so many elements are turned over at a time, whole vectors of them. */
ALWAYS_INLINE ptrdiff_t F(turned_rows)(ptrdiff_t n) {
    const ptrdiff_t most = n <= NARROW ? COLUMNS : TURNED / n;
    return most & -(ptrdiff_t)LANES;
}

static void F(narrow_rows)(const softmax_lines *of, softmax_columns columns) {
    REAL x[TURNED], y[TURNED], *out = of->out;
    const ptrdiff_t row = of->n * of->inner, most = F(turned_rows)(row);
    for (ptrdiff_t first = 0, rows; first < of->count; first += rows) {
        rows = of->count - first < most ? of->count - first : most;
        const ptrdiff_t wide = (rows + LANES - 1) & -(ptrdiff_t)LANES;
        F(turn_rows)((const REAL *)of->x + first * of->x_step, of->x_step, row, rows, wide, x);
        if (of->y)
            F(turn_rows)((const REAL *)of->y + first * of->y_step, of->y_step, row, rows, wide, y);
        for (ptrdiff_t j = 0; j < of->inner; j++)
            columns(x + j * wide, of->inner * wide, y + j * wide, x + j * wide, of->n, of->inner * wide, wide);
        F(turn_rows_back)(x, row, rows, wide, out + first * row);
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

/* Rows that are a few vectors long, LANES of them together: their sums are made in lanes and then of all rows at once, and what
   lies behind a row in its last vector is minus infinity, whose power is nothing. */

ALWAYS_INLINE ptrdiff_t F(padded)(ptrdiff_t n) { return (n + LANES - 1) & -(ptrdiff_t)LANES; }

/* Fills top, total and the powers of at most LANES rows, which lie F(padded)(n) apart. */
ALWAYS_INLINE void F(powers_of_rows)(const REAL *x, ptrdiff_t step, ptrdiff_t n, ptrdiff_t rows, REAL *powers, REAL *top,
                                     REAL *total) {
    const ptrdiff_t apart = F(padded)(n);
    const V least = -(REAL)INFINITY - (V){0};
    V lanes[LANES] = {{0}};
    for (ptrdiff_t r = 0; r < rows; r++) {
        const REAL *row = x + r * step;
        V most = least;
#define ROW_LARGEST(i) most = F(larger)(V_AT(row, i), most)
        EACH_VECTOR(n, ROW_LARGEST);
#undef ROW_LARGEST
        lanes[r] = most;
    }
    *(V_U *)top = F(largest_of_lanes)(lanes);
    for (ptrdiff_t r = 0; r < rows; r++) {
        const REAL *row = x + r * step, high = top[r];
        REAL *to = powers + r * apart;
        *(V_U *)(to + apart - LANES) = least;
#define ROW_LESS(i) *(V_U *)(to + (i)) = V_AT(row, i) - high
        EACH_VECTOR(n, ROW_LESS);
#undef ROW_LESS
    }
    F(exp_less)(powers, 0, powers, rows * apart);
    for (ptrdiff_t r = 0; r < LANES; r++) {
        const REAL *power = powers + r * apart;
        V a = {0}, b = {0}, c = {0}, d = {0}; /* as many roundings as ADD_UP has */
        ptrdiff_t i = r < rows ? 0 : apart;
        for (; i + 4 * LANES <= apart; i += 4 * LANES) {
            a += V_AT(power, i);
            b += V_AT(power, i + LANES);
            c += V_AT(power, i + 2 * LANES);
            d += V_AT(power, i + 3 * LANES);
        }
        for (; i < apart; i += LANES)
            a += V_AT(power, i);
        lanes[r] = (a + b) + (c + d);
    }
    *(V_U *)total = F(sums_of_lanes)(lanes);
}

/* How many of `left` rows go together. */
ALWAYS_INLINE ptrdiff_t F(rows_together)(ptrdiff_t n, ptrdiff_t left) {
    const ptrdiff_t most = TURNED / F(padded)(n) < LANES ? TURNED / F(padded)(n) : LANES;
    return left < most ? left : most;
}

#define POWER_OVER(i) *(V_U *)(out + (i)) = V_AT(power, i) / factor
#define LESS_LOGARITHM(i) *(V_U *)(out + (i)) = V_AT(x, i) - high - factor
static void F(short_rows)(const softmax_lines *of, bool logarithms) {
    const ptrdiff_t n = of->n, apart = F(padded)(n);
    REAL powers[TURNED], top[LANES], total[LANES];
    for (ptrdiff_t first = 0, rows; first < of->count; first += rows) {
        const REAL *x = (const REAL *)of->x + first * of->x_step;
        REAL *out = (REAL *)of->out + first * n;
        rows = F(rows_together)(n, of->count - first);
        F(powers_of_rows)(x, of->x_step, n, rows, powers, top, total);
        for (ptrdiff_t r = 0; r < LANES; r++)
            total[r] = logarithms ? F(log_)(total[r]) : total[r];
        for (ptrdiff_t r = 0; r < rows; r++, x += of->x_step, out += n) {
            const REAL *power = powers + r * apart, factor = total[r], high = top[r];
            if (logarithms) {
                EACH_VECTOR(n, LESS_LOGARITHM);
            } else {
                EACH_VECTOR(n, POWER_OVER);
            }
        }
    }
}
#undef POWER_OVER
#undef LESS_LOGARITHM

static void F(softmax_rows)(const softmax_lines *of) {
    if (of->n <= NARROW || of->inner > 1) {
        F(narrow_rows)(of, F(softmax_columns));
        return;
    }
    if (of->n >= LANES && of->n <= SHORT_ROW) {
        F(short_rows)(of, false);
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
    if (of->n <= NARROW || of->inner > 1) {
        F(narrow_rows)(of, F(log_softmax_columns));
        return;
    }
    if (of->n >= LANES && of->n <= SHORT_ROW) {
        F(short_rows)(of, true);
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
    if (of->n <= NARROW || of->inner > 1) {
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
    if (of->n <= NARROW || of->inner > 1) {
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
    F(column_powers)(x + first / of->inner * of->n * of->inner + first % of->inner, NULL, of->n, of->inner, count, top,
                     less);
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
    for (ptrdiff_t at = first; at < first + count; at++) {
        int64_t class = of->target[at];
        if (class >= 0 && class < n && class != of->ignored)
            out[F(class_place)(of, at, class)] -= amounts[at];
    }
}

static double F(class_total)(const void *x, ptrdiff_t n) { return (double)F(row_sum)(x, n); }
