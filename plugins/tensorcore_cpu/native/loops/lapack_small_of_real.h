/* Small factorisations of one type, which REAL and F describe; included once for each. Element [i, j] is at i + j * line.

   Up to four rows are written out where they lie. More are copied into columns of 8 or 16, `wide`: a constant where it is called, so that
   what is done to a column is done to whole vectors. What is not to change keeps its value: zero times infinity would not leave it. */

ALWAYS_INLINE REAL F(size_of)(REAL x) { return x < 0 ? -x : x; }

ALWAYS_INLINE void F(swap)(REAL *x, int one, int other) {
    const REAL was = x[one];
    x[one] = x[other];
    x[other] = was;
}

ALWAYS_INLINE int F(lu_of)(REAL *a, int n, int *pivots) {
    int info = 0;
#pragma GCC unroll 4
    for (int k = 0; k < n; k++) {
        REAL *const column = a + k * n;
        int pivot = k;
        REAL most = F(size_of)(column[k]);
#pragma GCC unroll 4
        for (int i = k + 1; i < n; i++) {
            const REAL size = F(size_of)(column[i]);
            pivot = size > most ? i : pivot;
            most = size > most ? size : most;
        }
        pivots[k] = pivot + 1;
        if (most == 0) {
            info = info ? info : k + 1;
            continue;
        }
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            F(swap)(a + j * n, k, pivot);
        const REAL by = column[k];
#pragma GCC unroll 4
        for (int i = k + 1; i < n; i++)
            column[i] /= by;
#pragma GCC unroll 4
        for (int j = k + 1; j < n; j++) {
            const REAL times = a[k + j * n];
#pragma GCC unroll 4
            for (int i = k + 1; i < n; i++)
                a[i + j * n] -= column[i] * times;
        }
    }
    return info;
}

ALWAYS_INLINE void F(widen)(const REAL *a, int line, int rows, int columns, bool turned, REAL *made, int wide) {
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < wide; i++)
            made[j * wide + i] = i >= rows ? 0 : turned ? a[i * line + j] : a[j * line + i];
}

ALWAYS_INLINE void F(narrow)(const REAL *a, int rows, int columns, bool turned, REAL *made, int wide) {
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            made[turned ? i * rows + j : j * rows + i] = a[j * wide + i];
}

/* What is done to a column is written by whole vectors: a number that is written by itself, and read as a part of one, is waited for. */
typedef REAL F(eight) __attribute__((vector_size(8 * sizeof(REAL)), aligned(1), may_alias));
typedef INT F(places) __attribute__((vector_size(8 * sizeof(REAL))));

/* Eight elements of a column from `first` on: element `pivot` is `there`, then k is `here`, and those behind k, or before it, are divided by
   that, or have that times `other` taken away. */
ALWAYS_INLINE void F(change)(REAL *column, const REAL *other, int first, int k, REAL here, int pivot, REAL there, bool before) {
    const F(places) place = (F(places)){0, 1, 2, 3, 4, 5, 6, 7} + (INT)first;
    const F(places) at_pivot = place == (INT)pivot, at_k = place == (INT)k, changed = before ? place < (INT)k : place > (INT)k;
    const F(places) given = (F(places))*(const F(eight) *)(column + first);
    const F(places) was = ((F(places))((F(eight)){0} + there) & at_pivot) | (given & ~at_pivot);
    F(eight) made;
    if (other)
        made = (F(eight))was - *(const F(eight) *)(other + first) * here;
    else
        made = (F(eight))was / here;
    const F(places) all = ((F(places))made & changed) | ((F(places))((F(eight)){0} + here) & at_k) | (was & ~(changed | at_k));
    *(F(eight) *)(column + first) = (F(eight))all;
}

ALWAYS_INLINE void F(take)(REAL *one, const REAL *other, int k, REAL here, int pivot, REAL there, bool before, int wide) {
    for (int first = before ? 0 : k / 8 * 8; first < (before ? k + 1 : wide); first += 8)
        F(change)(one, other, first, k, here, pivot, there, before);
}

ALWAYS_INLINE int F(lu_wide)(REAL *given, int n, int *pivots, int wide) {
    REAL a[MOST_WIDE * MOST_WIDE];
    int info = 0;
    F(widen)(given, n, n, n, false, a, wide);
    for (int k = 0; k < n; k++) {
        REAL *const column = a + k * wide;
        int pivot = k;
        REAL most = F(size_of)(column[k]);
        for (int i = k + 1; i < n; i++) {
            const REAL size = F(size_of)(column[i]);
            pivot = size > most ? i : pivot;
            most = size > most ? size : most;
        }
        pivots[k] = pivot + 1;
        if (most == 0) {
            info = info ? info : k + 1;
            continue;
        }
        for (int j = 0; j < k; j++)
            F(swap)(a + j * wide, k, pivot);
        F(take)(column, NULL, k, column[pivot], pivot, column[k], false, wide);
        for (int j = k + 1; j < n; j++) {
            REAL *const one = a + j * wide;
            F(take)(one, column, k, one[pivot], pivot, one[k], false, wide);
        }
    }
    F(narrow)(a, n, n, false, given, wide);
    return info;
}

static int F(lu)(void *a, int n, int *pivots) {
    int info;
#define BODY(n) info = F(lu_of)(a, n, pivots)
#define WIDE_BODY(wide) info = F(lu_wide)(a, n, pivots, wide)
    EACH_SIZE(n, BODY, WIDE_BODY)
#undef BODY
#undef WIDE_BODY
    return info;
}

/* One right side by a triangle: columns of it are taken away as soon as what they are multiplied by is known; or, turned over, sums of
   them are. */
ALWAYS_INLINE void F(by_triangle)(const REAL *a, int line, int n, bool upper, bool turned, bool unit, REAL *b) {
#pragma GCC unroll 4
    for (int step = 0; step < n; step++) {
        const int k = upper == turned ? step : n - 1 - step, first = upper ? 0 : k + 1, end = upper ? k : n;
        const REAL *const column = a + k * line;
        if (turned) {
            REAL sum = b[k];
#pragma GCC unroll 4
            for (int i = 0; i < end - first; i++) { /* what was solved first comes first */
                const int from = upper ? i : end - 1 - i;
                sum -= column[from] * b[from];
            }
            b[k] = unit ? sum : sum / column[k];
            continue;
        }
        const REAL x = unit ? b[k] : b[k] / column[k];
        b[k] = x;
#pragma GCC unroll 4
        for (int i = first; i < end; i++)
            b[i] -= column[i] * x;
    }
}

/* Several right sides by a lower triangle, or an upper one. */
ALWAYS_INLINE void F(by_wide_triangle)(const REAL *a, int n, bool upper, bool unit, REAL *b, int count, int wide) {
    for (int step = 0; step < n; step++) {
        const int k = upper ? n - 1 - step : step;
        for (int c = 0; c < count; c++) {
            REAL *const one = b + c * wide;
            const REAL x = unit ? one[k] : one[k] / a[k * wide + k];
            F(take)(one, a + k * wide, k, x, k, x, upper, wide);
        }
    }
}

/* Right sides by a triangle, or, where there are row swaps, by both triangles of the factors; MOST_WIDE of them at a time. */
ALWAYS_INLINE void F(solve_wide)(const REAL *given, int line, int n, bool upper, bool turned, bool unit, const int *pivots, REAL *right,
                                 int count, int wide) {
    REAL a[MOST_WIDE * MOST_WIDE], b[MOST_WIDE * MOST_WIDE];
    F(widen)(given, line, n, n, turned, a, wide);
    for (int first = 0; first < count; first += MOST_WIDE, right += MOST_WIDE * n) {
        const int here = count - first < MOST_WIDE ? count - first : MOST_WIDE;
        F(widen)(right, n, n, here, false, b, wide);
        for (int c = 0; pivots && !turned && c < here; c++)
            for (int k = 0; k < n; k++)
                F(swap)(b + c * wide, k, pivots[k] - 1);
        if (pivots)
            F(by_wide_triangle)(a, n, false, !turned, b, here, wide);
        F(by_wide_triangle)(a, n, pivots ? true : upper != turned, pivots ? turned : unit, b, here, wide);
        for (int c = 0; pivots && turned && c < here; c++)
            for (int k = n - 1; k >= 0; k--)
                F(swap)(b + c * wide, k, pivots[k] - 1);
        F(narrow)(b, n, here, false, right, wide);
    }
}

static void F(triangular)(const void *a, int line, int n, bool upper, bool turned, bool unit, void *b, int count) {
#define BODY(n)                     \
    for (int c = 0; c < count; c++) \
    F(by_triangle)(a, line, n, upper, turned, unit, (REAL *)b + c * n)
#define WIDE_BODY(wide) F(solve_wide)(a, line, n, upper, turned, unit, NULL, b, count, wide)
    EACH_SIZE(n, BODY, WIDE_BODY)
#undef BODY
#undef WIDE_BODY
}

ALWAYS_INLINE void F(lu_solve_of)(const REAL *a, int line, int n, bool turned, const int *pivots, REAL *b, int count) {
    for (; count--; b += n) {
        if (turned) {
            F(by_triangle)(a, line, n, true, true, false, b);
            F(by_triangle)(a, line, n, false, true, true, b);
#pragma GCC unroll 4
            for (int k = n - 1; k >= 0; k--)
                F(swap)(b, k, pivots[k] - 1);
            continue;
        }
#pragma GCC unroll 4
        for (int k = 0; k < n; k++)
            F(swap)(b, k, pivots[k] - 1);
        F(by_triangle)(a, line, n, false, false, true, b);
        F(by_triangle)(a, line, n, true, false, false, b);
    }
}

static void F(lu_solve)(const void *a, int line, int n, bool turned, const int *pivots, void *b, int count) {
#define BODY(n) F(lu_solve_of)(a, line, n, turned, pivots, b, count)
#define WIDE_BODY(wide) F(solve_wide)(a, line, n, true, turned, false, pivots, b, count, wide)
    EACH_SIZE(n, BODY, WIDE_BODY)
#undef BODY
#undef WIDE_BODY
}

static void F(lu_inverse)(const void *a, int n, const int *pivots, void *made) {
    memset(made, 0, (size_t)(n * n) * sizeof(REAL));
    for (int k = 0; k < n; k++)
        ((REAL *)made)[k * (n + 1)] = 1;
    F(lu_solve)(a, n, n, false, pivots, made, n);
}

ALWAYS_INLINE REAL F(root)(REAL x) { return (REAL)(sizeof(REAL) == 4 ? sqrtf((float)x) : sqrt((double)x)); }

/* The factor of the lower triangle, or of the upper one as if it were turned over. */
ALWAYS_INLINE int F(cholesky_of)(REAL *a, int n, bool upper) {
    const int down = upper ? n : 1, across = upper ? 1 : n;
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        REAL rest = a[j * (n + 1)];
#pragma GCC unroll 4
        for (int k = 0; k < j; k++)
            rest -= a[j * down + k * across] * a[j * down + k * across];
        a[j * (n + 1)] = rest;
        if (!(rest > 0))
            return j + 1;
        const REAL root = F(root)(rest);
        a[j * (n + 1)] = root;
#pragma GCC unroll 4
        for (int i = j + 1; i < n; i++) {
            REAL sum = a[i * down + j * across];
#pragma GCC unroll 4
            for (int k = 0; k < j; k++)
                sum -= a[i * down + k * across] * a[j * down + k * across];
            a[i * down + j * across] = sum / root;
        }
    }
    return 0;
}

ALWAYS_INLINE int F(cholesky_wide)(REAL *given, int n, bool upper, int wide) {
    REAL a[MOST_WIDE * MOST_WIDE];
    int info = 0;
    F(widen)(given, n, n, n, upper, a, wide);
    for (int k = 0; k < n && !info; k++) {
        REAL *const column = a + k * wide;
        if (!(column[k] > 0)) {
            info = k + 1;
            break;
        }
        const REAL root = F(root)(column[k]);
        F(take)(column, NULL, k, root, k, root, false, wide);
        for (int j = k + 1; j < n; j++) /* what is above the diagonal, nobody reads */
            F(take)(a + j * wide, column, j - 1, column[j], j - 1, column[j], false, wide);
    }
    F(narrow)(a, n, n, upper, given, wide);
    return info;
}

static int F(cholesky)(void *a, int n, bool upper) {
    int info;
#define BODY(n) info = F(cholesky_of)(a, n, upper)
#define WIDE_BODY(wide) info = F(cholesky_wide)(a, n, upper, wide)
    EACH_SIZE(n, BODY, WIDE_BODY)
#undef BODY
#undef WIDE_BODY
    return info;
}

/* Rows of a triangle, from `k` on, beside the `done` elements that are solved, which begin at b: sums are taken away from `made`. Nothing that was
   written lately is read as a part of a vector. */
ALWAYS_INLINE void F(beside_solved)(const REAL *a, ptrdiff_t line, const REAL *b, int done, REAL *made, int rows) {
    V sums[LANES] = {{0}};
    int i = 0;
    for (; i + LANES <= done; i += LANES)
        for (int r = 0; r < rows; r++)
            sums[r] += *(const V_U *)(a + r * line + i) * *(const V_U *)(b + i);
    for (int r = 0; r < rows; r++) {
        REAL sum = (REAL)F(lanes_sum)(sums[r]);
        for (int k = i; k < done; k++)
            sum += a[r * line + k] * b[k];
        made[r] -= sum;
    }
}

/* One right side by a triangle of any size whose rows lie `line` elements apart: LANES rows at a time. */
static void F(by_rows)(const REAL *a, ptrdiff_t line, int n, bool upper, bool unit, REAL *b) {
    for (int done = 0, few; done < n; done += few) {
        few = n - done < LANES ? n - done : LANES;
        const int first = upper ? n - done - few : done;
        const REAL *const rows = a + first * line;
        REAL *const x = b + first, *const solved = upper ? x + few : b;
        const int from = upper ? first + few : 0;
        if (few == LANES)
            F(beside_solved)(rows + from, line, solved, done, x, LANES);
        else
            F(beside_solved)(rows + from, line, solved, done, x, few);
        for (int step = 0; step < few; step++) {
            const int k = upper ? few - 1 - step : step;
            x[k] = unit ? x[k] : x[k] / rows[k * line + first + k];
            for (int r = upper ? 0 : k + 1; r < (upper ? k : few); r++)
                x[r] -= rows[r * line + first + k] * x[k];
        }
    }
}

/* The same of one whose columns do. */
static void F(by_columns)(const REAL *a, ptrdiff_t line, int n, bool upper, bool unit, REAL *b) {
    for (int step = 0; step < n; step++) {
        const int k = upper ? n - 1 - step : step, from = upper ? 0 : k + 1, end = upper ? k : n;
        const REAL *const column = a + k * line;
        const REAL x = unit ? b[k] : b[k] / column[k];
        b[k] = x;
        INDEPENDENT for (int i = from; i < end; i++)
            b[i] -= column[i] * x;
    }
}

static void F(triangular_line)(const void *a, ptrdiff_t line, int n, bool rows, bool upper, bool unit, void *b) {
    if (rows)
        F(by_rows)(a, line, n, upper, unit, b);
    else
        F(by_columns)(a, line, n, upper, unit, b);
}
