/* Reflections of a panel of columns, for one type, which REAL, V, LANES and F describe (Golub and Van Loan, Matrix
   Computations, 5.1 and 5.2; triangles of Schreiber and Van Loan 1989, "A storage-efficient WY representation for products of
   Householder transformations").

   The panel is turned over, so that a row of it is a few vectors, whose columns are reflected vector by vector. One pass over a
   vector's rows applies a reflection, and adds up what the next one needs: the products of its column with all others, which
   are the norm, what the others change by, and the next column of the triangle. What the columns of earlier vectors do to a
   vector is done in two passes: so each pass goes over one vector of a row, of which long columns have to come from the second
   cache. */

enum { F(QR_WIDTH) = VECTORS * LANES < WIDEST ? VECTORS * LANES : WIDEST, F(QR_GROUP) = (int)LANES < GROUP ? (int)LANES : GROUP };

/* To each row, its element in `column` times `by`; the answer is the sum of the products of the next column with all of them after
   that. Without `by` nothing changes, and `column` is -1. */
ALWAYS_INLINE V F(qr_pass)(REAL *row, ptrdiff_t rows, ptrdiff_t column, const REAL *by) {
    const REAL next = by ? by[column + 1] : 0;
    const V times = by ? F(load)(by) : (V){0};
    const REAL *element = row + column;
    V sum = {0};
    for (ptrdiff_t begin = 0; begin < rows; begin += CHUNK) {
        const ptrdiff_t end = rows - begin < CHUNK ? rows : begin + CHUNK;
        V parts[AT_ONCE];
#pragma GCC unroll 8
        for (int r = 0; r < AT_ONCE; r++)
            parts[r] = (V){0};
#define ROW(r)                                                                                                \
    {                                                                                                         \
        REAL y = element[1];                                                                                  \
        V here = F(load)(row);                                                                                \
        if (by) {                                                                                             \
            const REAL x = *element;                                                                          \
            y += x * next;                                                                                    \
            here += times * x;                                                                                \
            F(store)(row, here);                                                                              \
        }                                                                                                     \
        parts[r] += here * y;                                                                                 \
        row += F(QR_WIDTH);                                                                                   \
        element += F(QR_WIDTH);                                                                               \
    }
        ptrdiff_t i = begin;
        for (; i + AT_ONCE <= end; i += AT_ONCE)
#pragma GCC unroll 8
            for (int r = 0; r < AT_ONCE; r++)
                ROW(r)
        for (; i < end; i++)
            ROW(0)
#undef ROW
#pragma GCC unroll 8
        for (int half = AT_ONCE / 2; half; half /= 2)
#pragma GCC unroll 4
            for (int r = 0; r < half; r++)
                parts[r] += parts[r + half];
        sum += parts[0];
    }
    return sum;
}

/* Products of QR_GROUP columns with a vector of them: a vector for each. */
static void F(qr_products)(const REAL *columns, const REAL *vector, ptrdiff_t rows, REAL *made) {
    V sums[F(QR_GROUP)];
    for (int c = 0; c < F(QR_GROUP); c++)
        F(store)(made + c * LANES, (V){0});
    for (ptrdiff_t begin = 0; begin < rows; begin += CHUNK) {
        const ptrdiff_t end = rows - begin < CHUNK ? rows : begin + CHUNK;
#pragma GCC unroll 16
        for (int c = 0; c < F(QR_GROUP); c++)
            sums[c] = (V){0};
        for (ptrdiff_t i = begin; i < end; i++, columns += F(QR_WIDTH), vector += F(QR_WIDTH)) {
            const V here = F(load)(vector);
#pragma GCC unroll 16
            for (int c = 0; c < F(QR_GROUP); c++)
                sums[c] += here * columns[c];
        }
#pragma GCC unroll 16
        for (int c = 0; c < F(QR_GROUP); c++)
            F(store)(made + c * LANES, F(load)(made + c * LANES) + sums[c]);
    }
}

/* Adds QR_GROUP columns times a vector each to a vector of columns. */
static void F(qr_add)(const REAL *columns, REAL *vector, ptrdiff_t rows, const REAL *by) {
    V times[F(QR_GROUP)];
#pragma GCC unroll 16
    for (int c = 0; c < F(QR_GROUP); c++)
        times[c] = F(load)(by + c * LANES);
    for (ptrdiff_t i = 0; i < rows; i++, columns += F(QR_WIDTH), vector += F(QR_WIDTH)) {
        V sum = F(load)(vector), other = {0};
#pragma GCC unroll 8
        for (int c = 0; c < F(QR_GROUP); c += 2) {
            sum += times[c] * columns[c];
            other += times[c + 1] * columns[c + 1];
        }
        F(store)(vector, sum + other);
    }
}

static void F(qr_take)(const REAL *a, ptrdiff_t line, ptrdiff_t rows, ptrdiff_t columns, REAL *panel) {
    for (ptrdiff_t c = 0; c < columns; c += LANES) {
        const ptrdiff_t count = columns - c < LANES ? columns - c : LANES;
        const REAL *from = a + c * line;
        REAL *to = panel + c;
        ptrdiff_t i = 0;
        for (; i + LANES <= rows; i += LANES)
            if (count == LANES)
                F(turn)(from + i, line, LANES, to + i * F(QR_WIDTH), F(QR_WIDTH));
            else
                F(turn)(from + i, line, count, to + i * F(QR_WIDTH), F(QR_WIDTH));
        for (; i < rows; i++)
            for (ptrdiff_t k = 0; k < LANES; k++)
                to[i * F(QR_WIDTH) + k] = k < count ? from[k * line + i] : 0;
    }
}

static void F(qr_give)(const REAL *panel, ptrdiff_t rows, ptrdiff_t columns, REAL *a, ptrdiff_t line) {
    for (ptrdiff_t c = 0; c < columns; c += LANES)
        F(turn_out)(panel + c, F(QR_WIDTH), rows, columns - c < LANES ? columns - c : LANES, a + c * line, line);
}

/* The next column of a triangle, of up to `most` columns: of the products of its vector with the ones before. */
ALWAYS_INLINE void F(qr_extend)(REAL *triangle, ptrdiff_t column, const REAL *products, REAL tau, ptrdiff_t most) {
    REAL *made = triangle + column * F(QR_WIDTH);
    for (ptrdiff_t i = 0; i < most; i += LANES) {
        V sum = {0};
        for (ptrdiff_t k = i; k < column; k++) /* columns before that end above */
            sum += F(load)(triangle + k * F(QR_WIDTH) + i) * products[k];
        F(store)(made + i, sum * -tau);
    }
    made[column] = -tau;
}

static void F(qr_triangle_of)(const void *taus, ptrdiff_t columns, const void *products, void *triangle) {
    for (ptrdiff_t j = 0; j < columns; j++)
        F(qr_extend)(triangle, j, (const REAL *)products + j * F(QR_WIDTH), ((const REAL *)taus)[j], F(QR_WIDTH));
}

/* Reflections of the columns of one vector, whose own triangle and R begin at `triangle` and r; answers whether all squares were in
   range. What is scaled to have a first element of 1 is so at the end, when nobody reads it as it was. */
static bool F(qr_columns)(REAL *panel, ptrdiff_t rows, ptrdiff_t columns, REAL *taus, REAL *triangle, REAL *r) {
    REAL scales[LANES] = {0}, by[LANES], products[LANES], tails[LANES];
    V sums = F(qr_pass)(panel + F(QR_WIDTH), rows - 1, -1, NULL);
    for (ptrdiff_t j = 0; j < columns; j++) {
        REAL *const row = panel + j * F(QR_WIDTH), *const next = row + F(QR_WIDTH);
        F(store)(tails, sums);
        const REAL alpha = row[j], tail = tails[j], all = alpha * alpha + tail;
        REAL beta = alpha, tau = 0, scale = 0;
        if (tail >= F(LEAST) && all <= F(MOST)) {
            beta = (REAL)copysign(sqrt((double)all), -(double)alpha);
            tau = (beta - alpha) / beta;
            scale = 1 / (alpha - beta);
        } else if (!(all <= F(MOST)) || (alpha != 0 && !(all >= F(LEAST)))) {
            return false;
        } else {
            for (ptrdiff_t i = j + 1; i < rows; i++)
                if (panel[i * F(QR_WIDTH) + j] != 0)
                    return false;
        }
        taus[j] = tau;
        scales[j] = scale;
        for (int c = 0; c < LANES; c++) {
            const REAL product = row[c] + scale * tails[c];
            products[c] = product * scales[c];
            tails[c] = c > j ? tau * product : 0;
            by[c] = tails[c] * -scale;
        }
        F(qr_extend)(triangle, j, products, tau, LANES);
        for (int c = 0; c < LANES; c++)
            row[c] -= tails[c];
        row[j] = beta;
        if (j + 1 == columns)
            break;
        const REAL x = next[j];
        for (int c = 0; c < LANES; c++)
            next[c] += by[c] * x;
        sums = F(qr_pass)(next + F(QR_WIDTH), rows - j - 2, j, by);
    }
    for (ptrdiff_t i = 0; i < columns; i++) {
        REAL *const row = panel + i * F(QR_WIDTH);
        for (ptrdiff_t c = 0; c < columns; c++) {
            if (c >= i)
                r[c * F(QR_WIDTH) + i] = row[c];
            row[c] = c < i ? row[c] * scales[c] : c == i ? 1 : 0;
        }
    }
    const V times = F(load)(scales);
    for (ptrdiff_t i = columns; i < rows; i++)
        F(store)(panel + i * F(QR_WIDTH), F(load)(panel + i * F(QR_WIDTH)) * times);
    return true;
}

/* -T, of which `count` columns are known, turned over or not, times as many vectors. */
ALWAYS_INLINE void F(qr_by_triangle)(const REAL *triangle, ptrdiff_t count, bool turned, const REAL *given, REAL *made) {
    for (ptrdiff_t i = 0; i < count; i++) {
        V sum = {0};
        for (ptrdiff_t k = turned ? 0 : i; k < (turned ? i + 1 : count); k++)
            sum += F(load)(given + k * LANES) * (turned ? triangle[i * F(QR_WIDTH) + k] : triangle[k * F(QR_WIDTH) + i]);
        F(store)(made + i * LANES, sum);
    }
}

static bool F(qr_reflect)(void *a, ptrdiff_t line, ptrdiff_t rows, ptrdiff_t columns, void *panel, void *taus, void *triangle,
                          void *r) {
    REAL products[F(QR_WIDTH) * LANES], times[F(QR_WIDTH) * LANES], *const rows_of = panel;
    F(qr_take)(a, line, rows, columns, panel);
    memset(triangle, 0, sizeof(REAL) * F(QR_WIDTH) * F(QR_WIDTH));
    for (ptrdiff_t j = 0; j < columns; j += LANES) {
        const ptrdiff_t count = columns - j < LANES ? columns - j : LANES;
        REAL *const vector = rows_of + j, *const own = (REAL *)triangle + j * F(QR_WIDTH);
        REAL *const above = (REAL *)r + j * F(QR_WIDTH);
        for (ptrdiff_t k = 0; k < j; k += F(QR_GROUP))
            F(qr_products)(rows_of + k * F(QR_WIDTH) + k, vector + k * F(QR_WIDTH), rows - k, products + k * LANES);
        F(qr_by_triangle)(triangle, j, true, products, times);
        for (ptrdiff_t k = 0; k < j; k += F(QR_GROUP))
            F(qr_add)(rows_of + k * F(QR_WIDTH) + k, vector + k * F(QR_WIDTH), rows - k, times + k * LANES);
        for (ptrdiff_t i = 0; i < j; i++)
            for (ptrdiff_t c = 0; c < LANES; c++) {
                if (c < count)
                    above[c * F(QR_WIDTH) + i] = vector[i * F(QR_WIDTH) + c];
                vector[i * F(QR_WIDTH) + c] = 0;
            }
        if (!F(qr_columns)(vector + j * F(QR_WIDTH), rows - j, count, (REAL *)taus + j, own + j, above + j))
            return false;
        for (ptrdiff_t k = 0; k < j; k += F(QR_GROUP))
            F(qr_products)(rows_of + j * F(QR_WIDTH) + k, vector + j * F(QR_WIDTH), rows - j, products + k * LANES);
        F(qr_by_triangle)(triangle, j, false, products, times);
        for (ptrdiff_t c = 0; c < count; c++) /* times the vector's own triangle */
            for (ptrdiff_t i = 0; i < j; i++) {
                REAL sum = 0;
                for (ptrdiff_t k = 0; k <= c; k++)
                    sum += times[i * LANES + k] * own[c * F(QR_WIDTH) + j + k];
                own[c * F(QR_WIDTH) + i] = sum;
            }
    }
    F(qr_give)(panel, rows, columns, a, line);
    return true;
}

static bool F(qr_is_finite)(const void *x, ptrdiff_t count) {
    const REAL *at = x;
    INT odd = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        odd |= !(at[i] - at[i] == 0);
    return !odd;
}

static void F(qr_by_r)(const void *a, ptrdiff_t line, ptrdiff_t n, bool turned, void *x) {
    REAL *const made = x;
    for (ptrdiff_t step = 0; step < n; step++) { /* in an order in which nothing is written that is read later */
        const ptrdiff_t j = turned ? n - 1 - step : step;
        const REAL *column = (const REAL *)a + j * line, was = made[j];
        V sums = {0};
        ptrdiff_t i = 0;
        if (!turned)
            INDEPENDENT for (; i < j; i++)
                made[i] += column[i] * was;
        for (; i + LANES <= j; i += LANES)
            sums += F(load)(column + i) * F(load)(made + i);
        REAL sum = (REAL)F(lanes_sum)(sums);
        for (; i < j; i++)
            sum += column[i] * made[i];
        made[j] = column[j] * was + sum;
    }
}
