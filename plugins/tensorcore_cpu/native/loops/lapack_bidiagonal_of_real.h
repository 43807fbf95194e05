/* Two diagonals of a matrix, for one type (Golub and Van Loan, Matrix Computations, 5.4.8), by one pass over it for each column:
   that takes away what the last two reflections come to and adds up the products for the next left one, and some columns at a
   time, while they are near, those for the next right one, by the row as it is before that reflects it (Howell, Demmel, Fulton,
   Hammarling and Marmol 2008, "Cache efficient bidiagonalization using BLAS 2.5 operators"). Rows end in zeros, and so do all
   vectors. */

static lapack_bidiagonal_room F(bidiagonal_room)(ptrdiff_t rows, ptrdiff_t columns, bool vectors) {
    lapack_bidiagonal_room made = {.line = F(line)((int)columns), .left_line = F(line)((int)(rows + LANES))};
    made.left = (rows + SPARE) * made.line;
    made.diagonal = made.left + (vectors ? columns : 2) * made.left_line;
    made.above = made.diagonal + made.line;
    made.taus = made.above + made.line;
    made.right_taus = made.taus + made.line;
    made.rest = made.right_taus + made.line;
    made.total = made.rest + made.line + 3 * made.left_line;
    return made;
}

/* What is to be taken away, u z' + w v', and the next left vector. */
typedef struct {
    const REAL *u, *w, *v, *next;
    REAL *z;
} F(two_sides);

/* Takes that away from some vectors of columns, and adds up all rows, times `next` each, in z. */
ALWAYS_INLINE void F(take_away)(REAL *a, ptrdiff_t line, ptrdiff_t first, ptrdiff_t rows, const F(two_sides) *by, REAL scale,
                                ptrdiff_t at, const int count) {
    V zs[CHUNK], vs[CHUNK], sums[CHUNK];
#pragma GCC unroll 4
    for (int k = 0; k < count; k++) {
        zs[k] = *(const V *)(by->z + at + k * LANES);
        vs[k] = *(const V *)(by->v + at + k * LANES);
        sums[k] = (V){0};
    }
    const REAL *const u = by->u, *const w = by->w, *const next = by->next;
    for (ptrdiff_t i = first; i < rows; i++) {
        REAL *const row = a + i * line + at;
        const REAL by_z = u[i], by_v = w[i], times = next[i];
#pragma GCC unroll 4
        for (int k = 0; k < count; k++) {
            const V x = *(const V *)(row + k * LANES) - by_z * zs[k] - by_v * vs[k];
            *(V *)(row + k * LANES) = x;
            sums[k] += times * x;
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < count; k++)
        *(V *)(by->z + at + k * LANES) = sums[k] * scale;
}

/* Adds products of rows and a vector to `made`: up to LANES - 1 more than there are. */
static void F(rows_by)(const REAL *a, ptrdiff_t line, ptrdiff_t rows, const REAL *x, ptrdiff_t vectors, REAL *made) {
    enum { TOGETHER = (int)LANES < ROWS ? (int)LANES : ROWS };
    for (ptrdiff_t i = 0; i < rows; i += LANES) {
        V sums[LANES];
        REAL each[LANES];
#pragma GCC unroll 4
        for (int r = 0; r < LANES; r += TOGETHER) {
            V parts[TOGETHER];
#pragma GCC unroll 4
            for (int k = 0; k < TOGETHER; k++)
                parts[k] = (V){0};
            if (i + r < rows) {
                const REAL *row = a + (i + r) * line;
                for (ptrdiff_t j = 0; j < vectors; j++, row += LANES) {
                    const V by = *(const V *)(x + j * LANES);
#pragma GCC unroll 4
                    for (int k = 0; k < TOGETHER; k++)
                        parts[k] += *(const V *)(row + k * line) * by;
                }
            }
#pragma GCC unroll 4
            for (int k = 0; k < TOGETHER; k++)
                sums[r + k] = parts[k];
        }
        F(sum_each)(sums, each);
        F(store)(made + i, F(load)(made + i) + F(load)(each));
    }
}

/* The reflection of a vector that begins with `first`, and of which `rest` are the other squares: the identity less x x' times the
   answer, where x begins with *begins and goes on as the vector; 0 where there is none. *beta is what it leaves. */
ALWAYS_INLINE REAL F(reflection)(double first, double rest, REAL *beta, REAL *begins) {
    const double none = sizeof(REAL) == 4 ? 1e-30 : 1e-280; /* squares so small lose digits, and count for nothing beside 1 */
    const double total = rest + first * first;
    *beta = (REAL)first;
    *begins = 0;
    if (!(rest > 0 && total > none))
        return 0;
    const double length = sqrt(total);
    *beta = (REAL)(first > 0 ? -length : length);
    *begins = (REAL)(first > 0 ? first + length : first - length);
    return (REAL)(1 / (length * (length + fabs(first))));
}

/* Vectors as geqrf keeps them: they begin with 1, and so do their factors, which were `scales`. */
static void F(with_ones)(REAL *x, ptrdiff_t line, ptrdiff_t first, ptrdiff_t length, ptrdiff_t count, REAL *scales) {
    for (ptrdiff_t k = 0; k < count; k++) {
        REAL *const begins = x + k * line + first + k;
        const REAL is = *begins, by = is ? 1 / is : 0;
        for (ptrdiff_t i = 0; i < length - first - k; i++)
            begins[i] *= by;
        scales[k] *= is * is;
    }
}

static bool F(bidiagonal)(void *in, ptrdiff_t rows, ptrdiff_t columns, bool vectors, double *power) {
    const lapack_bidiagonal_room room = F(bidiagonal_room)(rows, columns, vectors);
    const ptrdiff_t line = room.line, left_line = room.left_line, whole = (columns + LANES - 1) / LANES;
    REAL *const a = in, *const left = a + room.left, *const d = a + room.diagonal, *const above = a + room.above;
    REAL *const taus = a + room.taus, *const right_taus = a + room.right_taus;
    REAL *const z = a + room.rest, *const w = z + line, *const x = w + left_line, *const column = x + left_line;
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = columns; j < line; j++)
            a[i * line + j] = 0;
    memset(a + rows * line, 0, (size_t)(SPARE * line) * sizeof(REAL));
    memset(left, 0, (size_t)((vectors ? columns : 2) * left_line) * sizeof(REAL));
    memset(z, 0, (size_t)(line + 3 * left_line) * sizeof(REAL));
    if (!F(scale_to_one)(a, rows * line, power))
        return false;
    REAL *u = left, begins;
    F(two_sides) by = {w, w, z, u, z};
    V sums = {0};
    for (ptrdiff_t i = 0; i < rows; i++)
        u[i] = a[i * line];
    for (ptrdiff_t i = 1; i < rows; i += LANES)
        sums += F(load)(u + i) * F(load)(u + i);
    for (ptrdiff_t k = 0;; k++) {
        const REAL scale = F(reflection)(u[k], F(lanes_sum)(sums), d + k, &begins);
        taus[k] = scale;
        u[k] = begins;
        if (!scale)
            memset(u + k, 0, (size_t)(rows - k) * sizeof(REAL));
        if (k + 1 == columns)
            break;
        REAL *const row = a + k * line, *const following = left + (vectors ? k + 1 : (k + 1) & 1) * left_line;
        const ptrdiff_t from = (k + 1) / LANES, down = rows - k - 1;
        const ptrdiff_t most = PANEL / ((down + 1) * LANES * (ptrdiff_t)sizeof(REAL)) / CHUNK * CHUNK + CHUNK;
        V squares = {0}, product = {0};
        by.next = u;
        for (ptrdiff_t i = k + 1; i < rows; i += LANES)
            F(store)(x + i, (V){0});
        for (ptrdiff_t panel = from; panel < whole; panel += most) {
            const ptrdiff_t end = whole - panel < most ? whole : panel + most, begin = panel * LANES;
#define DO(count) F(take_away)(a, line, k, rows, &by, scale, begin + at, count)
            EACH_CHUNK(end - panel, DO)
#undef DO
            for (ptrdiff_t j = panel; j < end; j++) {
                const ptrdiff_t before = k + 1 - j * LANES;
                const V ys = *(const V *)(z + j * LANES);
                V r = *(const V *)(row + j * LANES) - begins * ys;
                if (before >= 0) { /* the reflections go on behind the diagonal, and the norm has no element more than that */
                    r = F(only)(r, ~F(first_lanes)(before));
                    *(V *)(row + j * LANES) = r;
                    product += r * ys;
                    r = F(only)(r, ~F(first_lanes)(before + 1));
                } else {
                    *(V *)(row + j * LANES) = r;
                    product += r * ys;
                }
                squares += r * r;
            }
            F(rows_by)(row + line + begin, line, down, row + begin, end - panel, x + k + 1);
        }
        memset(row, 0, (size_t)(from * LANES) * sizeof(REAL));
        REAL right_begins;
        const REAL second = z[k + 1], along = F(lanes_sum)(product);
        const REAL right = F(reflection)(row[k + 1], F(lanes_sum)(squares), above + k, &right_begins), beta = above[k];
        right_taus[k] = right;
        row[k + 1] = right_begins;
        if (!right)
            memset(row, 0, (size_t)line * sizeof(REAL));
        for (ptrdiff_t i = k + 1; i < rows; i++)
            column[i] = a[i * line + k + 1];
        sums = (V){0};
        for (ptrdiff_t i = k + 1; i < rows; i += LANES) { /* the next column, after both reflections */
            const V us = F(load)(u + i), was = F(load)(column + i) - us * second;
            const V turned = right * (F(load)(x + i) - us * along - beta * was);
            V next = was - turned * right_begins;
            F(store)(w + i, turned);
            F(store)(following + i, next);
            if (i == k + 1)
                next = F(only)(next, ~F(first_lanes)(1));
            sums += next * next;
        }
        by.u = u;
        by.v = row;
        u = following;
    }
    if (vectors) {
        F(with_ones)(left, left_line, 0, rows, columns, taus);
        F(with_ones)(a, line, 1, columns, columns - 1, right_taus);
    }
    return true;
}

/* The product of reflections, the last one first, whose columns are rows here (Golub and Van Loan, 5.1.6): as many of them at a
   time as a vector has lanes, so that their products with a reflection's vector are summed together. */
static void F(product)(const void *vectors, ptrdiff_t line, ptrdiff_t first, ptrdiff_t count, const void *taus,
                       const lapack_vectors *made) {
    const ptrdiff_t whole = (made->length + LANES - 1) / LANES, rows = count + first;
    REAL *const q = made->rows;
    for (ptrdiff_t j = 0; j < rows; j++)
        q[j * (made->line + 1)] = 1;
    for (ptrdiff_t k = count - 1; k >= 0; k--) {
        const ptrdiff_t begin = (k + first) / LANES;
        const REAL *const u = (const REAL *)vectors + k * line, tau = ((const REAL *)taus)[k];
        for (ptrdiff_t j = begin * LANES; j < rows; j += LANES) {
            REAL *const block = q + j * made->line, each[LANES];
            V sums[LANES];
#pragma GCC unroll 16
            for (int r = 0; r < LANES; r++)
                sums[r] = (V){0};
            for (ptrdiff_t i = begin; i < whole; i++) {
                const V by = *(const V *)(u + i * LANES);
#pragma GCC unroll 16
                for (int r = 0; r < LANES; r++)
                    sums[r] += by * *(const V *)(block + r * made->line + i * LANES);
            }
            F(sum_each)(sums, each);
            F(store)(each, F(load)(each) * tau);
            for (ptrdiff_t i = begin; i < whole; i++) {
                const V by = *(const V *)(u + i * LANES);
#pragma GCC unroll 16
                for (int r = 0; r < LANES; r++)
                    *(V *)(block + r * made->line + i * LANES) -= by * each[r];
            }
        }
    }
}
