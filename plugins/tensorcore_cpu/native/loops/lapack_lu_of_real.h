/* LU of a panel of columns, for one type, which REAL, V, LANES and F describe (Golub and Van Loan, Matrix Computations, 3.4).

   Columns lie side by side in the panel, and a few of them, a group, are made one after the other: a pass over a column takes away
   what the ones before it in the group are to it, and looks for the largest number. Then the group is taken away from all columns
   behind it in one pass. A row that was chosen moves to the top, and zeros take its place in the panel, so that
   passes go over whole vectors and change nothing there. */

enum { F(LU_CHUNK) = PASS * LANES, F(LU_SPARE) = 2 * PASS * LANES };

ALWAYS_INLINE V F(lu_sizes)(V x) { return (V)((VI)x & WITHOUT_SIGN); }

/* From a column, as many before it as `before` says are taken away, each by its number of `times`, and the last one is scaled
   meanwhile. Answers with the row of the largest number then, the first one of equals, whose size is *most; -1 of zeros alone. */
ALWAYS_INLINE ptrdiff_t F(lu_pass)(REAL *column, ptrdiff_t step, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t before,
                                   const REAL *times, REAL scale, REAL *most) {
    V best = {0};
    VI where = {0};
    for (ptrdiff_t i = begin; i < end; i += F(LU_CHUNK)) {
        V here[PASS];
        REAL *const at = column + i;
#pragma GCC unroll 4
        for (int r = 0; r < PASS; r++)
            here[r] = F(load)(at + r * LANES);
        const REAL *other = at - before * step;
        for (ptrdiff_t k = 0; k + 1 < before; k++, other += step)
#pragma GCC unroll 4
            for (int r = 0; r < PASS; r++)
                here[r] -= F(load)(other + r * LANES) * times[k];
        if (before)
#pragma GCC unroll 4
            for (int r = 0; r < PASS; r++) {
                const V factor = F(load)(at - step + r * LANES) * scale;
                F(store)(at - step + r * LANES, factor);
                here[r] -= factor * times[before - 1];
                F(store)(at + r * LANES, here[r]);
            }
        const V one = F(larger)(F(lu_sizes)(here[0]), F(lu_sizes)(here[1]));
        const V two = F(larger)(F(lu_sizes)(here[2]), F(lu_sizes)(here[3]));
        const V sizes = F(larger)(one, two);
        const VI more = sizes > best;
        best = (V)(((VI)sizes & more) | ((VI)best & ~more));
        where = (((VI){0} + (INT)i) & more) | (where & ~more);
    }
    REAL largest = 0;
    for (int lane = 0; lane < (int)LANES; lane++)
        largest = best[lane] > largest ? best[lane] : largest;
    *most = largest;
    if (largest == 0)
        return -1;
    ptrdiff_t first = end;
    for (int lane = 0; lane < (int)LANES; lane++)
        first = best[lane] == largest && where[lane] < first ? where[lane] : first;
    while (column[first] != largest && column[first] != -largest)
        first++;
    return first;
}

/* The columns from `next` on, from which a whole group before them is taken away. */
static void F(lu_update)(REAL *panel, ptrdiff_t step, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t next, ptrdiff_t columns,
                         const REAL *top) {
    const REAL *const group = panel + (next - GROUP) * step, *const times = top + (next - GROUP) * WIDTH;
    for (ptrdiff_t i = begin; i < end; i += 2 * LANES) {
        V one[GROUP], two[GROUP];
#pragma GCC unroll 8
        for (int k = 0; k < GROUP; k++) {
            one[k] = F(load)(group + k * step + i);
            two[k] = F(load)(group + k * step + i + LANES);
        }
        for (ptrdiff_t c = next; c < columns; c++) {
            REAL *const at = panel + c * step + i;
            V here = F(load)(at), there = F(load)(at + LANES);
#pragma GCC unroll 8
            for (int k = 0; k < GROUP; k++) {
                here -= one[k] * times[k * WIDTH + c];
                there -= two[k] * times[k * WIDTH + c];
            }
            F(store)(at, here);
            F(store)(at + LANES, there);
        }
    }
}

/* Row `pivot` becomes row j of the top, where the rows of the group before it are taken away from what is behind column j, and row
   j goes where it was. */
ALWAYS_INLINE void F(lu_choose)(REAL *panel, ptrdiff_t step, ptrdiff_t columns, ptrdiff_t j, ptrdiff_t pivot, ptrdiff_t group,
                                REAL *top) {
    REAL *const row = top + j * WIDTH;
    for (ptrdiff_t c = 0; c < columns; c++) {
        REAL *const column = panel + c * step;
        row[c] = column[pivot];
        column[pivot] = column[j];
        column[j] = 0;
    }
    for (ptrdiff_t c = j + 1; c < columns; c += LANES) { /* what is written behind the row is its successor's room */
        V here = F(load)(row + c);
        for (ptrdiff_t k = group; k < j; k++)
            here -= F(load)(top + k * WIDTH + c) * row[k];
        F(store)(row + c, here);
    }
}

static int F(lu_panel)(void *a, ptrdiff_t line, ptrdiff_t rows, ptrdiff_t columns, void *panel, ptrdiff_t step, void *top,
                       int *pivots, int first) {
    REAL *const made = panel, scale = 1;
    int info = 0;
    const ptrdiff_t end = (rows + F(LU_CHUNK) - 1) / F(LU_CHUNK) * F(LU_CHUNK);
    for (ptrdiff_t c = 0; c < columns; c += LANES)
        F(turn_out)((const REAL *)a + c, line, rows, columns - c < LANES ? columns - c : LANES, made + c * step, step);
    for (ptrdiff_t c = 0; c < columns; c++)
        memset(made + c * step + rows, 0, (size_t)(end + F(LU_CHUNK) - rows) * sizeof(REAL));
    for (ptrdiff_t j = 0; j < columns; j++) {
        const ptrdiff_t group = j / GROUP * GROUP, begin = j / LANES * LANES, before = j - group;
        REAL *const column = made + j * step, times[GROUP], most;
        for (ptrdiff_t k = 0; k < before; k++)
            times[k] = ((REAL *)top)[(group + k) * WIDTH + j];
        ptrdiff_t pivot = before ? F(lu_pass)(column, step, begin, end, before, times, scale, &most)
                                 : F(lu_pass)(column, step, begin, end, 0, times, scale, &most);
        if (pivot < 0) {
            pivot = j;
            info = info ? info : (int)j + 1;
        }
        pivots[j] = (int)pivot + first;
        F(lu_choose)(made, step, columns, j, pivot, group, top);
        scale = 1;
        if (most >= F(LEAST) && most <= 1 / F(LEAST))
            scale = 1 / ((REAL *)top)[j * WIDTH + j];
        else if (most > 0)
            for (ptrdiff_t i = j + 1; i < rows; i++)
                column[i] /= ((REAL *)top)[j * WIDTH + j];
        if (before == GROUP - 1 || j + 1 == columns) {
            for (ptrdiff_t i = begin; i < end; i += LANES)
                F(store)(column + i, F(load)(column + i) * scale);
            if (j + 1 < columns)
                F(lu_update)(made, step, begin, end, j + 1, columns, top);
        }
    }
    for (ptrdiff_t j = 0; j < columns; j++)
        memcpy((REAL *)a + j * line, (const REAL *)top + j * WIDTH, (size_t)columns * sizeof(REAL));
    for (ptrdiff_t i = columns; i < rows; i += LANES)
        F(turn_out)(made + i, step, columns, rows - i < LANES ? rows - i : LANES, (REAL *)a + i * line, line);
    return info;
}

static void F(lu_swap)(void *a, ptrdiff_t line, ptrdiff_t columns, const int *pivots, ptrdiff_t count, int first) {
    for (ptrdiff_t k = 0; k < count; k++) {
        REAL *const one = (REAL *)a + k * line, *const other = (REAL *)a + (pivots[k] - first) * line;
        if (one != other)
            INDEPENDENT for (ptrdiff_t c = 0; c < columns; c++) {
                const REAL was = one[c];
                one[c] = other[c];
                other[c] = was;
            }
    }
}

/* `count` vectors of a row, by its number of the diagonal, become what they are, and their opposites. */
ALWAYS_INLINE void F(lu_finish)(const REAL *by, bool unit, V *here, REAL *a, REAL *opposite, int count) {
    const REAL size = *by < 0 ? -*by : *by, times = 1 / *by;
#pragma GCC unroll 4
    for (int v = 0; v < count; v++) {
        if (!unit)
            here[v] = size >= F(LEAST) && size <= 1 / F(LEAST) ? here[v] * times : here[v] / *by;
        F(store)(a + v * LANES, here[v]);
        F(store)(opposite + v * LANES, -here[v]);
    }
}

/* Rows i and, with `two`, `next` behind it, from which rows [from, to) are taken away; of two, so that what is loaded serves both. */
ALWAYS_INLINE void F(lu_rows)(const REAL *triangle, ptrdiff_t step, REAL *a, REAL *opposite, ptrdiff_t line, ptrdiff_t i, ptrdiff_t next,
                              ptrdiff_t from, ptrdiff_t to, bool two, bool unit, int count) {
    const REAL *const one = triangle + i * step, *const other = triangle + next * step;
    V here[STRIP], there[STRIP];
#pragma GCC unroll 4
    for (int v = 0; v < count; v++) {
        here[v] = F(load)(a + i * line + v * LANES);
        there[v] = two ? F(load)(a + next * line + v * LANES) : here[v];
    }
    for (ptrdiff_t k = from; k < to; k++)
#pragma GCC unroll 4
        for (int v = 0; v < count; v++) {
            const V known = F(load)(opposite + k * line + v * LANES);
            here[v] += known * one[k];
            if (two)
                there[v] += known * other[k];
        }
    F(lu_finish)(one + i, unit, here, a + i * line, opposite + i * line, count);
    if (!two)
        return;
#pragma GCC unroll 4
    for (int v = 0; v < count; v++)
        there[v] -= here[v] * other[i];
    F(lu_finish)(other + next, unit, there, a + next * line, opposite + next * line, count);
}

/* `count` vectors of columns, from the first row on, or of an upper triangle from the last. */
ALWAYS_INLINE void F(lu_strip)(const REAL *triangle, ptrdiff_t step, ptrdiff_t rows, REAL *a, REAL *opposite, ptrdiff_t line, bool upper,
                               bool unit, int count) {
    ptrdiff_t done = 0;
    for (; done + 2 <= rows; done += 2) {
        const ptrdiff_t i = upper ? rows - 1 - done : done;
        F(lu_rows)(triangle, step, a, opposite, line, i, upper ? i - 1 : i + 1, upper ? i + 1 : 0, upper ? rows : i, true, unit, count);
    }
    if (done < rows) {
        const ptrdiff_t i = upper ? 0 : done;
        F(lu_rows)(triangle, step, a, opposite, line, i, i, upper ? 1 : 0, upper ? rows : i, false, unit, count);
    }
}

/* The last columns, fewer than a vector: what is behind them is others'. */
ALWAYS_INLINE void F(lu_rest)(const REAL *triangle, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t columns, REAL *a, REAL *opposite,
                              ptrdiff_t line, bool upper, bool unit) {
    REAL here[WIDTH * LANES] = {0}, other[WIDTH * LANES];
    for (ptrdiff_t i = 0; i < rows; i++)
        memcpy(here + i * LANES, a + i * line, (size_t)columns * sizeof(REAL));
    F(lu_strip)(triangle, step, rows, here, other, LANES, upper, unit, 1);
    for (ptrdiff_t i = 0; i < rows; i++) {
        memcpy(a + i * line, here + i * LANES, (size_t)columns * sizeof(REAL));
        memcpy(opposite + i * line, other + i * LANES, (size_t)columns * sizeof(REAL));
    }
}

#define SOLVE(name, upper, unit)                                                                              \
    static void F(name)(const void *triangle, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t columns, void *a, void *opposite, ptrdiff_t line) { \
        REAL *at = a, *other = opposite;                                                                      \
        ptrdiff_t c = 0;                                                                                      \
        for (; c + STRIP * (ptrdiff_t)LANES <= columns; c += STRIP * LANES)                                   \
            F(lu_strip)(triangle, step, rows, at + c, other + c, line, upper, unit, STRIP);                   \
        for (; c + (ptrdiff_t)LANES <= columns; c += LANES)                                                   \
            F(lu_strip)(triangle, step, rows, at + c, other + c, line, upper, unit, 1);                       \
        if (c < columns)                                                                                      \
            F(lu_rest)(triangle, step, rows, columns - c, at + c, other + c, line, upper, unit);              \
    }
SOLVE(lu_lower, false, false)
SOLVE(lu_lower_unit, false, true)
SOLVE(lu_upper, true, false)
SOLVE(lu_upper_unit, true, true)
#undef SOLVE

static bool F(lu_is_finite)(const void *x, ptrdiff_t count) {
    const REAL *at = x;
    INT odd = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        odd |= !(at[i] - at[i] == 0);
    return !odd;
}
