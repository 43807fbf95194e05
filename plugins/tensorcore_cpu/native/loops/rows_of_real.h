/* The functions of rows.h for one type. */

ALWAYS_INLINE REAL F(lanes_sum)(V v) {
    REAL at[LANES];
    memcpy(at, &v, sizeof at);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            at[i] += at[i + half];
    return at[0];
}

ALWAYS_INLINE WIDE F(row_sum)(const REAL *x, ptrdiff_t n) {
    WIDE total = 0;
#define TERM(AT, i) AT(x, i)
    ADD_UP(total, n, TERM)
#undef TERM
    return total;
}

/* The largest of a row, NaN left out; minus infinity of nothing. */
ALWAYS_INLINE REAL F(row_max)(const REAL *x, ptrdiff_t n) {
    REAL top = -(REAL)INFINITY, at[LANES];
    ptrdiff_t i = 0;
    if (n >= LANES) {
        V a = top - (V){0}, b = a;
        for (; i + 2 * LANES <= n; i += 2 * LANES) {
            a = F(larger)(V_AT(x, i), a);
            b = F(larger)(V_AT(x, i + LANES), b);
        }
        if (i + LANES <= n) {
            a = F(larger)(V_AT(x, i), a);
            i += LANES;
        }
        a = F(larger)(a, b);
        memcpy(at, &a, sizeof at);
        for (int k = 0; k < LANES; k++)
            top = at[k] > top ? at[k] : top;
    }
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

/* Of vectors that each belong to a row: the sums, or the largest, of all rows, in their order. */
#define OF_LANES(name, JOIN)                                                                                  \
    ALWAYS_INLINE V F(name)(V *rows) {                                                                        \
        for (int half = LANES / 2; half; half /= 2)                                                           \
            for (int k = 0; k < half; k++) {                                                                  \
                const V one = rows[k], two = rows[k + half];                                                  \
                const V low = ZIP(one, two, 0), high = ZIP(one, two, LANES / 2);                              \
                rows[k] = JOIN(low, high);                                                                    \
            }                                                                                                 \
        return rows[0];                                                                                       \
    }
OF_LANES(sums_of_lanes, LANES_PLUS)
OF_LANES(largest_of_lanes, F(larger))
#undef OF_LANES

/* Element k of row r goes to [k][r], in rows of `wide`. What lies behind the last row becomes zero. */
ALWAYS_INLINE void F(turn_rows)(const REAL *x, ptrdiff_t step, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t wide, REAL *to) {
    for (ptrdiff_t k = 0; k < n; k++) {
        for (ptrdiff_t r = 0; r < rows; r++)
            to[k * wide + r] = x[r * step + k];
        for (ptrdiff_t r = rows; r < wide; r++)
            to[k * wide + r] = 0;
    }
}

ALWAYS_INLINE void F(turn_rows_back)(const REAL *from, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t wide, REAL *out) {
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < n; k++)
            out[r * n + k] = from[k * wide + r];
}
