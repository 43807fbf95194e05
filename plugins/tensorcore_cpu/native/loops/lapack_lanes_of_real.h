/* Factors of as many small matrices as a vector has elements, for one type: vector i + j * rows holds element [i, j] of each of them. What is done
   to an element is done in the order of the loops over one matrix, and so has its bits. Each answers with a bit for each matrix at which LAPACK
   would stop (a pivot is zero, it is not definite), or whose squares are out of range: those go one by one. */

ALWAYS_INLINE unsigned F(bits_of)(VI where, int count) {
    unsigned bits = 0;
    for (int m = 0; m < count; m++)
        bits |= (unsigned)(where[m] != 0) << m;
    return bits;
}

/* `turned` is room for as much. */
ALWAYS_INLINE void F(take_in)(const lapack_group *of, int rows, int columns, V *made, V *turned) {
    const ptrdiff_t size = sizeof(REAL), plane = (ptrdiff_t)rows * columns;
    const bool by_rows = of->column == size && of->row == columns * size, by_columns = of->row == size && of->column == rows * size;
    bool dense = of->count == LANES && plane >= LANES && (by_rows || by_columns);
    for (int m = 1; m < LANES && dense; m++)
        dense = of->at[m] == of->at[0] + m * plane * size;
    if (dense) {
        F(turn_planes)((const REAL *)of->at[0], plane, LANES, (REAL *)(by_columns ? made : turned));
        for (int j = 0; j < columns && !by_columns; j++)
            for (int i = 0; i < rows; i++)
                made[j * rows + i] = turned[i * columns + j];
        return;
    }
    for (int m = 0; m < LANES; m++) {
        const char *const from = of->at[m];
        for (int j = 0; j < columns; j++)
            for (int i = 0; i < rows; i++)
                ((REAL *)made)[(j * rows + i) * LANES + m] = *(const REAL *)(from + i * of->row + j * of->column);
    }
}

ALWAYS_INLINE void F(give_out)(const V *made, int plane, int count, REAL *to, int to_step) {
    F(turn_out)((const REAL *)made, LANES, plane, count, to, to_step);
}

/* Exchanges element k of a column with the one under it that is `here`; then takes `other`, times what is at k now, away from those under it. */
ALWAYS_INLINE void F(exchange)(V *column, const V *other, int k, int n, const VI *here) {
    const V was = column[k];
    V now = was;
    for (int i = k + 1; i < n; i++)
        now = PICKED(here[i], column[i], now);
    column[k] = now;
    for (int i = k + 1; i < n; i++) {
        const V x = PICKED(here[i], was, column[i]);
        column[i] = other ? x - other[i] * now : x;
    }
}

ALWAYS_INLINE VI F(lu_lanes)(V *a, int n, VI *pivots) {
    const VI magnitude = (VI){0} + (INT)(sizeof(REAL) == 4 ? INT32_MAX : INT64_MAX);
    VI stopped = {0}, here[n];
    for (int k = 0; k < n; k++) {
        V *const column = a + k * n;
        V most = (V)((VI)column[k] & magnitude);
        VI pivot = (VI){0} + (INT)k;
        for (int i = k + 1; i < n; i++) {
            const V size = (V)((VI)column[i] & magnitude);
            const VI more = size > most;
            pivot = (((VI){0} + (INT)i) & more) | (pivot & ~more);
            most = PICKED(more, size, most);
        }
        pivots[k] = pivot + 1;
        stopped |= most == 0;
        for (int i = k + 1; i < n; i++)
            here[i] = pivot == (INT)i;
        for (int j = 0; j < k; j++)
            F(exchange)(a + j * n, NULL, k, n, here);
        F(exchange)(column, NULL, k, n, here);
        for (int i = k + 1; i < n; i++)
            column[i] /= column[k];
        for (int j = k + 1; j < n; j++)
            F(exchange)(a + j * n, column, k, n, here);
    }
    return stopped;
}

/* `count` right sides by a triangle, or by one turned over: sums are taken away from what lies in registers. */
ALWAYS_INLINE void F(some_by_triangle)(const V *a, int n, bool upper, bool turned, bool unit, V *b, int count) {
    const int down = turned ? n : 1, across = turned ? 1 : n;
    const bool from_below = upper != turned;
    for (int step = 0; step < n; step++) {
        const int k = from_below ? n - 1 - step : step;
        V x[AT_ONCE];
        for (int c = 0; c < count; c++)
            x[c] = b[c * n + k];
        for (int done = 0; done < step; done++) {
            const int i = from_below ? n - 1 - done : done;
            const V by = a[k * down + i * across];
            for (int c = 0; c < count; c++)
                x[c] -= by * b[c * n + i];
        }
        for (int c = 0; c < count; c++)
            b[c * n + k] = unit ? x[c] : x[c] / a[k * (n + 1)];
    }
}

ALWAYS_INLINE void F(lanes_by_triangle)(const V *a, int n, bool upper, bool turned, bool unit, V *b, int count) {
    int c = 0;
    for (; c + AT_ONCE <= count; c += AT_ONCE)
        F(some_by_triangle)(a, n, upper, turned, unit, b + c * n, AT_ONCE);
    for (; c < count; c++)
        F(some_by_triangle)(a, n, upper, turned, unit, b + c * n, 1);
}

/* Which row row swaps, from 1 on, put where. */
ALWAYS_INLINE void F(order_of)(const VI *swaps, int n, VI *made) {
    INT *const order = (INT *)made;
    for (int k = 0; k < n; k++)
        made[k] = (VI){0} + (INT)k;
    for (int k = 0; k < n; k++)
        for (int m = 0; m < LANES; m++) {
            const ptrdiff_t here = k * LANES + m, there = (swaps[k][m] - 1) * LANES + m;
            const INT was = order[here];
            order[here] = order[there];
            order[there] = was;
        }
}

/* Right sides in that order, or out of it. */
ALWAYS_INLINE void F(reorder)(const V *b, int n, int count, const VI *order, bool back, V *made) {
    for (int c = 0; c < count; c++)
        for (int k = 0; k < n; k++)
            for (int m = 0; m < LANES; m++) {
                const ptrdiff_t one = (c * n + k) * LANES + m, other = (c * n + order[k][m]) * LANES + m;
                ((REAL *)made)[back ? other : one] = ((const REAL *)b)[back ? one : other];
            }
}

/* By both triangles; right sides are in order, or their solutions come so. */
ALWAYS_INLINE void F(by_factors)(const V *a, int n, bool turned, V *b, int count) {
    F(lanes_by_triangle)(a, n, turned, turned, !turned, b, count);
    F(lanes_by_triangle)(a, n, !turned, turned, turned, b, count);
}

static unsigned F(lu_together)(const lapack_group *of, int n, void *made, int *pivots) {
    VI swaps[LAPACK_TOGETHER], stopped;
#define BODY(n)                                     \
    {                                               \
        V a[n * n], room[n * n];                    \
        F(take_in)(of, n, n, a, room);              \
        stopped = F(lu_lanes)(a, n, swaps);         \
        F(give_out)(a, n * n, of->count, made, n * n); \
    }
    EACH_SIZE_TOGETHER(n, BODY)
#undef BODY
    for (int m = 0; m < of->count; m++)
        for (int k = 0; k < n; k++)
            *pivots++ = (int)swaps[k][m];
    return F(bits_of)(stopped, of->count);
}

static unsigned F(inverse_together)(const lapack_group *of, int n, void *made) {
    VI swaps[LAPACK_TOGETHER], order[LAPACK_TOGETHER], stopped;
    const V one = (V){0} + 1;
#define BODY(n)                                                             \
    {                                                                       \
        V a[n * n], b[n * n];                                               \
        F(take_in)(of, n, n, a, b);                                         \
        stopped = F(lu_lanes)(a, n, swaps);                                 \
        F(order_of)(swaps, n, order);                                       \
        for (int j = 0; j < n; j++)                                         \
            for (int i = 0; i < n; i++)                                     \
                b[j * n + i] = PICKED(order[i] == (INT)j, one, (V){0});     \
        F(by_factors)(a, n, false, b, n);                                   \
        F(give_out)(b, n * n, of->count, made, n * n);                      \
    }
    EACH_SIZE_TOGETHER(n, BODY)
#undef BODY
    return F(bits_of)(stopped, of->count);
}

static unsigned F(cholesky_together)(const lapack_group *of, int n, bool upper, void *made) {
    V a[n * n], room[n * n];
    VI good = (VI){0} == 0;
    const int down = upper ? n : 1, across = upper ? 1 : n;
    F(take_in)(of, n, n, a, room);
    for (int j = 0; j < n; j++) {
        V *const diagonal = a + j * (n + 1);
        good &= *diagonal > 0;
        V root = *diagonal;
        for (int m = 0; m < LANES; m++)
            root[m] = F(root)(root[m]);
        *diagonal = root;
        for (int i = j + 1; i < n; i++) {
            a[i * down + j * across] /= root;
            a[j * down + i * across] = (V){0}; /* the other triangle */
        }
        for (int c = j + 1; c < n; c++)
            for (int i = c; i < n; i++)
                a[i * down + c * across] -= a[i * down + j * across] * a[c * down + j * across];
    }
    F(give_out)(a, n * n, of->count, made, n * n);
    return F(bits_of)(~good, of->count);
}

/* Right sides, RIGHT columns at a time, by a triangle, or, where there are row swaps, by both triangles of the factors. */
static void F(solve_together)(const lapack_group *of, int n, bool upper, bool turned, bool unit, const lapack_group *swaps,
                              const lapack_group *right, int columns, void *made) {
    V a[n * n], b[n * RIGHT], room[n * (n > RIGHT ? n : RIGHT)];
    VI pivots[LAPACK_TOGETHER], order[LAPACK_TOGETHER];
    lapack_group next = *right;
    F(take_in)(of, n, n, a, room);
    if (swaps) {
        for (int k = 0; k < n; k++)
            for (int m = 0; m < LANES; m++)
                ((INT *)pivots)[k * LANES + m] = *(const int *)(swaps->at[m] + k * swaps->row);
        F(order_of)(pivots, n, order);
    }
    for (int first = 0; first < columns; first += RIGHT) {
        const int wide = columns - first < RIGHT ? columns - first : RIGHT;
        V *answer = b;
        F(take_in)(&next, n, wide, b, room);
        if (swaps) {
            answer = room;
            if (!turned)
                F(reorder)(b, n, wide, order, false, room);
            F(by_factors)(a, n, turned, turned ? b : room, wide);
            if (turned)
                F(reorder)(b, n, wide, order, true, room);
        } else {
            F(lanes_by_triangle)(a, n, upper, turned, unit, b, wide);
        }
        F(give_out)(answer, n * wide, of->count, (REAL *)made + first * n, n * columns);
        for (int m = 0; m < LANES; m++)
            next.at[m] += wide * next.column;
    }
}

/* Takes tau v times (v's product with each column) away from the columns; v begins with a one at row k. Householder's reflection. */
ALWAYS_INLINE void F(reflect)(const V *v, V tau, int k, int rows, V *columns, int count) {
    for (int c = 0; c < count; c++) {
        V *const column = columns + c * rows;
        V by = column[k];
        for (int i = k + 1; i < rows; i++)
            by += v[i] * column[i];
        by *= tau;
        column[k] -= by;
        for (int i = k + 1; i < rows; i++)
            column[i] -= by * v[i];
    }
}

/* As LAPACK's geqr2, with its signs. */
ALWAYS_INLINE VI F(reflections)(V *a, int rows, int columns, V *taus) {
    const VI sign = (VI){0} + (INT)(sizeof(REAL) == 4 ? INT32_MIN : INT64_MIN);
    const REAL largest = (REAL)(sizeof(REAL) == 4 ? 1e30 : 1e290), smallest = (REAL)(sizeof(REAL) == 4 ? 1e-25 : 1e-270);
    VI odd = {0};
    for (int k = 0; k < (rows < columns ? rows : columns); k++) {
        V *const v = a + k * rows;
        const V first = v[k];
        V squares = first * first;
        VI any = {0};
        for (int i = k + 1; i < rows; i++) {
            squares += v[i] * v[i];
            any |= v[i] != 0;
        }
        odd |= any & ~((squares < largest) & (squares > smallest));
        V length = squares;
        for (int m = 0; m < LANES; m++)
            length[m] = F(root)(length[m]);
        const V turned = (V)((VI)length | (~(VI)first & sign)); /* its sign is the other one */
        const V by = PICKED(any, 1 / (first - turned), (V){0});
        taus[k] = PICKED(any, (turned - first) / turned, (V){0});
        v[k] = PICKED(any, turned, first);
        for (int i = k + 1; i < rows; i++)
            v[i] *= by;
        F(reflect)(v, taus[k], k, rows, v + rows, columns - k - 1);
    }
    return odd;
}

/* As org2r. */
ALWAYS_INLINE void F(product)(const V *a, const V *taus, int rows, int columns, int wide, V *made) {
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            made[j * rows + i] = (V){0} + (REAL)(i == j);
    for (int k = wide - 1; k >= 0; k--)
        F(reflect)(a + k * rows, taus[k], k, rows, made + k * rows, columns - k);
}

static unsigned F(reflections_together)(const lapack_group *of, int rows, int columns, void *made, void *taus) {
    V a[rows * columns], room[rows * columns], factors[LAPACK_TOGETHER];
    const int least = rows < columns ? rows : columns;
    F(take_in)(of, rows, columns, a, room);
    const VI odd = F(reflections)(a, rows, columns, factors);
    F(give_out)(a, rows * columns, of->count, made, rows * columns);
    F(give_out)(factors, least, of->count, taus, least);
    return F(bits_of)(odd, of->count);
}

static void F(product_together)(const lapack_group *of, const lapack_group *taus, int rows, int columns, int wide, void *made) {
    V a[rows * columns], room[rows * columns], factors[LAPACK_TOGETHER];
    F(take_in)(taus, wide, 1, factors, room);
    F(take_in)(of, rows, columns, a, room);
    F(product)(a, factors, rows, columns, wide, room);
    F(give_out)(room, rows * columns, of->count, made, rows * columns);
}

static unsigned F(qr_together)(const lapack_group *of, int rows, int columns, int wide, void *q, void *r) {
    const int least = rows < columns ? rows : columns;
    V a[rows * columns], made[wide * (rows > columns ? rows : columns)], taus[LAPACK_TOGETHER];
    F(take_in)(of, rows, columns, a, made);
    const VI odd = F(reflections)(a, rows, columns, taus);
    for (int j = 0; j < wide; j++)
        for (int i = 0; i < columns; i++)
            made[j * columns + i] = j <= i && j < least ? a[i * rows + j] : (V){0};
    F(give_out)(made, wide * columns, of->count, r, wide * columns);
    if (q) {
        F(product)(a, taus, rows, wide, least, made);
        F(give_out)(made, rows * wide, of->count, q, rows * wide);
    }
    return F(bits_of)(odd, of->count);
}
