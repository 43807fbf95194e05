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
