/* Symmetric eigenvalue problems of middle size for one type: both triangles of a square, with zeros behind its rows and below
   them, so that every loop is over whole vectors of rows. Householder's reflections make it tridiagonal, from the last row to the
   first (Golub and Van Loan, Matrix Computations, 8.3.1; EISPACK's tred2), and sweeps of QL with Wilkinson's shifts diagonal
   (8.3.3; EISPACK's tql2). */

/* The square, three vectors, the reflections' product, and two vectors in double. */
static ptrdiff_t F(room)(int n, bool vectors) {
    const ptrdiff_t wide = F(wide)(n), line = F(line)(n);
    return (wide * line * (vectors ? 2 : 1) + 3 * line) * (ptrdiff_t)sizeof(REAL) + 2 * line * (ptrdiff_t)sizeof(double);
}

/* Both triangles from the one that is read: false where a number is not finite. Divided by `power`, a power of two. */
static bool F(square)(REAL *a, ptrdiff_t line, int n, bool upper, double *power) {
    const ptrdiff_t wide = F(wide)(n);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = n; j < line; j++)
            a[i * line + j] = 0;
    memset(a + n * line, 0, (size_t)((wide - n) * line) * sizeof(REAL));
    for (ptrdiff_t i = 0; i < wide; i += LANES) {
        for (ptrdiff_t j = 0; j < i; j += LANES) {
            REAL *const below = a + i * line + j, *const above = a + j * line + i;
            F(turn)(upper ? below : above, line, LANES, upper ? above : below, line);
        }
        for (ptrdiff_t r = i; r < i + LANES; r++)
            for (ptrdiff_t c = i; c < r; c++)
                if (upper)
                    a[c * line + r] = a[r * line + c];
                else
                    a[r * line + c] = a[c * line + r];
    }
    return F(scale_to_one)(a, n * line, power);
}

/* Takes away u w' + w u', and adds up the rows, times `next` each, in `made`: a few vectors of the columns, all rows. */
ALWAYS_INLINE void F(two_sides_of)(REAL *a, ptrdiff_t line, ptrdiff_t rows, const REAL *u, const REAL *w, const REAL *next,
                                   REAL *made, ptrdiff_t at, const int count) {
    V us[CHUNK], ws[CHUNK], sums[CHUNK];
#pragma GCC unroll 4
    for (int k = 0; k < count; k++) {
        us[k] = *(const V *)(u + at + k * LANES);
        ws[k] = *(const V *)(w + at + k * LANES);
        sums[k] = (V){0};
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        REAL *const row = a + i * line + at;
        const REAL by_w = u[i], by_u = w[i], by = next[i];
#pragma GCC unroll 4
        for (int k = 0; k < count; k++) {
            const V x = *(const V *)(row + k * LANES) - by_w * ws[k] - by_u * us[k];
            *(V *)(row + k * LANES) = x;
            sums[k] += by * x;
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < count; k++)
        *(V *)(made + at + k * LANES) = sums[k];
}

/* The same of u w' times `scale`. */
ALWAYS_INLINE void F(one_side_of)(REAL *a, ptrdiff_t line, ptrdiff_t rows, const REAL *u, REAL scale, const REAL *w,
                                  const REAL *next, REAL *made, ptrdiff_t at, const int count) {
    V ws[CHUNK], sums[CHUNK];
#pragma GCC unroll 4
    for (int k = 0; k < count; k++) {
        ws[k] = *(const V *)(w + at + k * LANES) * scale;
        sums[k] = (V){0};
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        REAL *const row = a + i * line + at;
        const REAL by_w = u[i], by = next[i];
#pragma GCC unroll 4
        for (int k = 0; k < count; k++) {
            const V x = *(const V *)(row + k * LANES) - by_w * ws[k];
            *(V *)(row + k * LANES) = x;
            sums[k] += by * x;
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < count; k++)
        *(V *)(made + at + k * LANES) = sums[k];
}

/* The diagonal and what is beside it, with signs. Row k keeps what it was reflected by, zeros from element k on: the reflection is
   the identity less u u' times `scales`[k], 0 where there is none. What it does to the square is done one row later, when the
   products with the next one are made of what is in registers then. */
static void F(tridiagonal)(REAL *a, ptrdiff_t line, int n, double *d, double *beside, REAL *scales, REAL *w, REAL *made) {
    const double none = sizeof(REAL) == 4 ? 1e-30 : 1e-280; /* squares so small lose digits, and count for nothing beside 1 */
    memset(w, 0, (size_t)line * sizeof(REAL));
    const REAL *u = w;
    for (ptrdiff_t k = n - 1; k > 0; k--) {
        REAL *const row = a + k * line;
        const REAL by_w = u[k], by_u = w[k], first = row[k - 1] - by_w * w[k - 1] - by_u * u[k - 1];
        const ptrdiff_t vectors = k / LANES + 1; /* those with elements of the row; all of them end in zeros */
        V squares = {0}, product = {0};
        d[k] = row[k] - by_w * by_u - by_u * by_w;
        for (ptrdiff_t j = 0; j < vectors; j++) {
            V x = *(const V *)(row + j * LANES) - by_w * *(const V *)(w + j * LANES) - by_u * *(const V *)(u + j * LANES);
            x = F(only)(x, F(first_lanes)(k - 1 - j * LANES));
            *(V *)(row + j * LANES) = x;
            squares += x * x;
        }
        const double rest = F(lanes_sum)(squares), total = rest + (double)first * first, length = sqrt(total);
        beside[k - 1] = first;
        scales[k] = 0;
        if (rest > 0 && total > none) {
            beside[k - 1] = first > 0 ? -length : length;
            row[k - 1] = (REAL)(first - beside[k - 1]);
            scales[k] = (REAL)(1 / (length * (length + fabs((double)first))));
        } else {
            memset(row, 0, (size_t)(vectors * LANES) * sizeof(REAL));
        }
#define DO(count) F(two_sides_of)(a, line, k, u, w, row, made, at, count)
        EACH_CHUNK(vectors, DO)
#undef DO
        for (ptrdiff_t j = 0; j < vectors; j++)
            product += *(const V *)(made + j * LANES) * *(const V *)(row + j * LANES);
        const REAL scale = scales[k], half = scale * F(lanes_sum)(product) / 2;
        for (ptrdiff_t j = 0; j < vectors; j++) {
            const V x = scale * (*(const V *)(made + j * LANES) - half * *(const V *)(row + j * LANES));
            *(V *)(w + j * LANES) = F(only)(x, F(first_lanes)(k - j * LANES));
        }
        u = row;
    }
    d[0] = *a;
}

/* The product of the reflections, and of the signs that make all numbers beside the diagonal positive, row after row. */
static void F(product_of_reflections)(const REAL *a, ptrdiff_t line, int n, const double *beside, const REAL *scales, REAL *w,
                                      REAL *q) {
    memset(q, 0, (size_t)(F(wide)(n) * line) * sizeof(REAL));
    q[(n - 1) * (line + 1)] = 1;
    for (ptrdiff_t k = n - 1; k > 0; k--)
        q[(k - 1) * (line + 1)] = beside[k - 1] < 0 ? -q[k * (line + 1)] : q[k * (line + 1)];
    memset(w, 0, (size_t)line * sizeof(REAL));
    for (ptrdiff_t k = 1; k < n; k++) { /* takes away what the products with row k come to, and makes those with the next one */
        const REAL *const u = a + k * line, *const next = k + 1 < n ? u + line : u;
        const REAL scale = scales[k];
#define DO(count) F(one_side_of)(q, line, k + 1, u, scale, w, next, w, at, count)
        EACH_CHUNK(k / LANES + 1, DO)
#undef DO
    }
}

/* What sweeps work on: the diagonal, the squares of what is beside it, which is positive, and eigenvectors as rows, NULL where none
   are wanted. */
typedef struct {
    double *d, *squares;
    REAL *a;
    ptrdiff_t line, vectors;
} F(ql_matrix);

typedef struct {
    REAL cosines[GROUP], sines[GROUP];
} F(rotations);

/* The rotation of rows i + 1 and i. The squares of cosine and sine are made to add up to one: an eigenvector takes part in several
   rotations for each row of the matrix, and its length would be off by as many roundings. */
ALWAYS_INLINE void F(next_rotation)(ql_state *at, const F(ql_matrix) *of, int i, F(rotations) *made, int k) {
    double cosine2, sine2;
    ql_step(at, of->d, of->squares, i, &cosine2, &sine2);
    const REAL cosine = F(root)((REAL)fabs(cosine2)), sine = F(root)((REAL)sine2);
    const REAL less = ((cosine * cosine - 1) + sine * sine) / 2;
    made->cosines[k] = (REAL)copysign(cosine - cosine * less, cosine2);
    made->sines[k] = sine - sine * less;
}

/* Rotates `count` pairs of rows, from row i + 1 and i on towards the first: some vectors of columns. */
ALWAYS_INLINE void F(rotate_rows)(const F(ql_matrix) *of, ptrdiff_t i, ptrdiff_t from, ptrdiff_t to, const F(rotations) *by,
                                  const int count) {
    for (ptrdiff_t at = from; at < to; at++) {
        REAL *row = of->a + (i + 1) * of->line + at * LANES;
        V high = *(const V *)row;
#pragma GCC unroll 4
        for (int k = 0; k < count; k++, row -= of->line) {
            const V low = *(const V *)(row - of->line);
            const V sine_high = by->sines[k] * high, cosine_low = by->cosines[k] * low; /* so the next one waits for one step */
            *(V *)row = by->cosines[k] * high + by->sines[k] * low;
            high = cosine_low - sine_high;
        }
        *(V *)row = high;
    }
}

/* A sweep over rows `last` to `first`. A rotation has to wait for the one before, and the processor turns eigenvectors meanwhile:
   some columns by the last group of rotations after each of the next. */
ALWAYS_INLINE void F(sweep)(const F(ql_matrix) *of, int first, int last) {
    ql_state at = ql_begin(of->d, of->squares, first, last);
    int i = last - 1;
    F(rotations) known, next;
    if (of->a && i - GROUP + 1 >= first) {
        for (int k = 0; k < GROUP; k++)
            F(next_rotation)(&at, of, i - k, &known, k);
        for (i -= GROUP; i - GROUP + 1 >= first; i -= GROUP) {
            for (int k = 0; k < GROUP; k++) {
                F(next_rotation)(&at, of, i - k, &next, k);
                F(rotate_rows)(of, i + GROUP, of->vectors * k / GROUP, of->vectors * (k + 1) / GROUP, &known, GROUP);
            }
            known = next;
        }
        F(rotate_rows)(of, i + GROUP, 0, of->vectors, &known, GROUP);
    }
    for (; of->a && i >= first; i--) {
        F(next_rotation)(&at, of, i, &known, 0);
        F(rotate_rows)(of, i, 0, of->vectors, &known, 1);
    }
#pragma GCC unroll 4
    for (double unused; i >= first; i--)
        ql_step(&at, of->d, of->squares, i, &unused, &unused);
    of->squares[first] = at.sine2 * at.pivot2;
    of->d[first] = at.shift + at.along;
    for (ptrdiff_t k = 0; of->a && at.sign && k < of->vectors; k++) /* so that what is beside the diagonal is positive */
        *(V *)(of->a + first * of->line + k * LANES) *= -1;
}

/* Sweeps until nothing is left beside the diagonal; false where that takes too many. */
ALWAYS_INLINE bool F(ql)(const F(ql_matrix) *of, int n) {
    const double eps = (sizeof(REAL) == 4 ? FLT_EPSILON : DBL_EPSILON) / 2;
    int left = SWEEPS * n;
    for (int first = 0; first < n; first++)
        for (;;) {
            int last = first;
            while (last < n - 1 && !(of->squares[last] <= eps * eps * fabs(of->d[last] * of->d[last + 1]) + LEAST_SQUARE))
                last++;
            if (last < n - 1)
                of->squares[last] = 0;
            if (last == first)
                break;
            if (!left--)
                return false;
            F(sweep)(of, first, last);
        }
    return true;
}

static bool F(eigen)(void *room, int n, bool upper, void *values, void *vectors) {
    const ptrdiff_t line = F(line)(n), wide = F(wide)(n);
    REAL *const a = room, *const w = a + wide * line, *const made = w + line, *const scales = made + line, *const q = scales + line;
    double *const d = (double *)(vectors ? q + wide * line : q), *const beside = d + line;
    double power;
    if (!F(square)(a, line, n, upper, &power))
        return false;
    F(tridiagonal)(a, line, n, d, beside, scales, w, made);
    if (vectors) {
        F(product_of_reflections)(a, line, n, beside, scales, w, q);
        for (ptrdiff_t i = 0; i < wide; i += LANES)
            for (ptrdiff_t j = 0; j < wide; j += LANES)
                F(turn)(q + i * line + j, line, LANES, a + j * line + i, line);
    }
    for (int k = 0; k < n - 1; k++)
        beside[k] *= beside[k];
    const F(ql_matrix) with = {d, beside, a, line, wide / LANES}, without = {d, beside, NULL, 0, 0};
    if (!(vectors ? F(ql)(&with, n) : F(ql)(&without, n)))
        return false;
    for (int k = 0; k < n; k++) {
        int place = 0;
        for (int j = 0; j < n; j++)
            place += j < k ? d[j] <= d[k] : d[j] < d[k];
        ((REAL *)values)[place] = (REAL)(d[k] * power);
        if (vectors)
            memcpy((REAL *)vectors + (ptrdiff_t)place * n, a + k * line, (size_t)n * sizeof(REAL));
    }
    return true;
}
