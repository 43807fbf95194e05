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

/* Whole rows of so few columns that many of them go as one, which has each column several times. */
ALWAYS_INLINE bool F(repeats)(ptrdiff_t n, ptrdiff_t inner, ptrdiff_t width) { return width == inner && inner <= NARROW && n >= COLUMNS; }

/* PART(begin, w) for the elements of those rows: `w` of them from `begin` on. */
#define EACH_REPEATED(count, wide, PART)                                                                      \
    for (ptrdiff_t begin = 0; begin < (count); begin += wide) {                                               \
        const ptrdiff_t w = (count) - begin < wide ? (count) - begin : wide;                                  \
        INDEPENDENT for (ptrdiff_t i = 0; i < w; i++)                                                         \
            PART;                                                                                             \
    }

/* As column_powers: top and total hold each column's number wherever it is met in a row of `wide`. */
static void F(repeated_powers)(const REAL *x, REAL *out, ptrdiff_t count, ptrdiff_t inner, ptrdiff_t wide, REAL *top, REAL *total) {
    REAL most[NARROW], sum[NARROW] = {0}, power[COLUMNS];
    for (ptrdiff_t i = 0; i < wide; i++) {
        top[i] = -(REAL)INFINITY;
        total[i] = 0;
    }
    EACH_REPEATED(count, wide, top[i] = x[begin + i] > top[i] ? x[begin + i] : top[i])
    memcpy(most, top, (size_t)inner * sizeof *most);
    for (ptrdiff_t i = inner; i < wide; i++)
        most[i % inner] = top[i] > most[i % inner] ? top[i] : most[i % inner];
    for (ptrdiff_t i = 0; i < wide; i++)
        top[i] = most[i % inner];
    for (ptrdiff_t begin = 0; begin < count; begin += wide) {
        const ptrdiff_t w = count - begin < wide ? count - begin : wide;
        REAL *made = out ? out + begin : power;
        INDEPENDENT for (ptrdiff_t i = 0; i < w; i++) {
            const REAL one = F(exp_)(x[begin + i] - top[i]);
            made[i] = one;
            total[i] += one;
        }
    }
    for (ptrdiff_t i = 0; i < wide; i++)
        sum[i % inner] += total[i];
    for (ptrdiff_t i = 0; i < wide; i++)
        total[i] = sum[i % inner];
}

static void F(softmax_columns)(const void *from, ptrdiff_t same, const void *unused, void *to, ptrdiff_t n,
                               ptrdiff_t inner, ptrdiff_t width) {
    REAL top[COLUMNS], total[COLUMNS], *out = to;
    if (F(repeats)(n, inner, width)) {
        const ptrdiff_t wide = COLUMNS / inner * inner, count = n * inner;
        F(repeated_powers)(from, out, count, inner, wide, top, total);
        EACH_REPEATED(count, wide, out[begin + i] /= total[i])
        return;
    }
    F(column_powers)(from, out, n, inner, width, top, total);
    for (ptrdiff_t k = 0; k < n; k++, out += inner)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            out[i] /= total[i];
}

static void F(log_softmax_columns)(const void *from, ptrdiff_t same, const void *unused, void *to, ptrdiff_t n,
                                   ptrdiff_t inner, ptrdiff_t width) {
    const REAL *x = from;
    REAL top[COLUMNS], total[COLUMNS], *out = to;
    const bool repeats = F(repeats)(n, inner, width);
    const ptrdiff_t wide = repeats ? COLUMNS / inner * inner : width, count = n * inner;
    if (repeats)
        F(repeated_powers)(x, NULL, count, inner, wide, top, total);
    else
        F(column_powers)(x, NULL, n, inner, width, top, total);
    for (ptrdiff_t i = 0; i < wide; i++)
        total[i] = F(log_)(total[i]);
    if (repeats) {
        EACH_REPEATED(count, wide, out[begin + i] = x[begin + i] - top[i] - total[i])
        return;
    }
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
