/* Two diagonals made one by sweeps of QR with shifts, for one type, and the vectors of both sides turned with them (Golub and
   Van Loan, Matrix Computations, 8.6.2; LAPACK's bdsqr). The diagonals are double for both types. A rotation has to wait for the
   one before, some 50 cycles with a root and a division in them, and the processor turns vectors meanwhile, which lie as rows:
   some of their columns by the last group of rotations after each of the next. */

/* Vectors as rows, in whole vectors of columns. */
typedef struct {
    REAL *rows;
    ptrdiff_t line, vectors;
} F(side);

typedef struct {
    REAL cosines[GROUP], sines[GROUP];
} F(rotations);

/* Rotates `count` pairs of rows, from rows i and i + 1 on towards the last: some vectors of columns. */
ALWAYS_INLINE void F(rotate)(const F(side) *of, ptrdiff_t i, ptrdiff_t part, const F(rotations) *by, const int count) {
    const ptrdiff_t end = of->vectors * (part + 1) / GROUP;
    for (ptrdiff_t at = of->vectors * part / GROUP; at < end; at++) {
        REAL *row = of->rows + i * of->line + at * LANES;
        V first = *(const V *)row;
#pragma GCC unroll 4
        for (int k = 0; k < count; k++, row += of->line) {
            const V next = *(const V *)(row + of->line), less = by->sines[k] * first, more = by->cosines[k] * next;
            *(V *)row = by->cosines[k] * first + by->sines[k] * next; /* the next one waits for one step */
            first = more - less;
        }
        *(V *)row = first;
    }
}

/* The squares of cosine and sine are made to add up to one: a vector takes part in several rotations for each row of the matrix,
   and its length would be off by as many roundings. */
ALWAYS_INLINE void F(keep)(F(rotations) *in, int k, rotation made) {
    if (sizeof(REAL) == sizeof(double)) { /* floats have so few roundings as it is */
        const double less = ((made.cosine * made.cosine - 1) + made.sine * made.sine) / 2;
        made.cosine -= made.cosine * less;
        made.sine -= made.sine * less;
    }
    in->cosines[k] = (REAL)made.cosine;
    in->sines[k] = (REAL)made.sine;
}

/* A sweep over rows `first` to `last`. Of e, elements before the first and behind the last row may be written. */
static void F(sweep)(double *d, double *e, ptrdiff_t first, ptrdiff_t last, double shift, const F(side) *left,
                     const F(side) *right) {
    F(rotations) lefts, rights, next_lefts, next_rights;
    sweep_state at = sweep_begin(d, e, first, shift);
    ptrdiff_t i = first;
    rotation one, other;
    if (i + GROUP <= last) {
        for (int k = 0; k < GROUP; k++) {
            sweep_step(&at, d, e, i + k, &one, &other);
            F(keep)(&rights, k, one);
            F(keep)(&lefts, k, other);
        }
        for (i += GROUP; i + GROUP <= last; i += GROUP) {
            for (int k = 0; k < GROUP; k++) {
                sweep_step(&at, d, e, i + k, &one, &other);
                F(keep)(&next_rights, k, one);
                F(keep)(&next_lefts, k, other);
                F(rotate)(right, i - GROUP, k, &rights, GROUP);
                F(rotate)(left, i - GROUP, k, &lefts, GROUP);
            }
            rights = next_rights;
            lefts = next_lefts;
        }
        for (int k = 0; k < GROUP; k++) {
            F(rotate)(right, i - GROUP, k, &rights, GROUP);
            F(rotate)(left, i - GROUP, k, &lefts, GROUP);
        }
    }
    for (; i < last; i++) {
        sweep_step(&at, d, e, i, &one, &other);
        F(keep)(&rights, 0, one);
        F(keep)(&lefts, 0, other);
        for (int k = 0; k < GROUP; k++) {
            F(rotate)(right, i, k, &rights, 1);
            F(rotate)(left, i, k, &lefts, 1);
        }
    }
    e[last - 1] = at.f;
    e[first - 1] = 0; /* as it was: the first rotation's length is no number of the matrix */
}

/* Sweeps until nothing is left above the diagonal but what counts for nothing beside the largest number; false where that takes too
   many. Values are not in order then, and none is negative. */
static bool F(sweeps)(ptrdiff_t n, void *diagonal, const void *above, void *room, const lapack_vectors *lefts,
                      const lapack_vectors *rights) {
    const F(side) left = {lefts->rows, lefts->line, (lefts->length + LANES - 1) / LANES};
    const F(side) right = {rights->rows, rights->line, (rights->length + LANES - 1) / LANES};
    double *const d = room, *const e = d + n + 1;
    double largest = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        d[k] = ((const REAL *)diagonal)[k];
        e[k] = k + 1 < n ? ((const REAL *)above)[k] : 0;
        largest = larger_of(largest, larger_of(fabs(d[k]), fabs(e[k])));
    }
    const double nothing = largest * (sizeof(REAL) == 4 ? FLT_EPSILON : DBL_EPSILON) / 4;
    ptrdiff_t left_over = SWEEPS * n;
    for (ptrdiff_t last = n - 1; last > 0;) {
        if (fabs(e[last - 1]) <= nothing) {
            e[--last] = 0;
            continue;
        }
        ptrdiff_t first = last - 1;
        double least = smaller_of(fabs(d[last]), fabs(d[first]));
        while (first > 0 && fabs(e[first - 1]) > nothing) {
            first--;
            least = smaller_of(least, fabs(d[first]));
        }
        if (!left_over--)
            return false;
        F(sweep)(d, e, first, last, least <= nothing ? 0 : sweep_shift(d, e, first, last), &left, &right);
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        if (d[k] < 0)
            for (ptrdiff_t j = 0; j < right.vectors; j++)
                *(V *)(right.rows + k * right.line + j * LANES) *= -1;
        ((REAL *)diagonal)[k] = (REAL)fabs(d[k]);
    }
    return true;
}
