/* Eigenvalues of symmetric matrices, and singular values of any, of as many small ones as a vector has elements, by Jacobi's rotations (Golub
   and Van Loan, Matrix Computations, 8.5, and Hestenes' of columns, 8.6.3). They lie as in lapack_lanes_of_real.h, scaled by powers of two.
   A matrix that needs no rotation gets none, so that no bit depends on who shares a group. Each answers with a bit for each matrix that
   goes by itself: some number is not finite, or out of range, a singular value is too small for its vector, or it took too long. */

/* The rotation of two coordinates, of which `y` says how much they have to do with each other, x and z what each is by itself: its tangent and
   sine, and what `rotate` needs (Rutishauser's). None where it is not asked for. */
typedef struct {
    V tangent, sine, rest;
} F(rotation);

ALWAYS_INLINE V F(without_sign)(V x) { return (V)((VI)x & WITHOUT_SIGN); }

ALWAYS_INLINE F(rotation) F(rotation_of)(V x, V y, V z, VI asked) {
    const V apart = z - x, twice = y + y, below = F(without_sign)(apart) + ROOT(apart * apart + twice * twice);
    const V tangent = PICKED(asked, CHOOSE(apart < 0, -twice, twice) / below, (V){0}), cosine = 1 / ROOT(1 + tangent * tangent);
    const V sine = tangent * cosine;
    return (F(rotation)){tangent, sine, sine / (1 + cosine)};
}

ALWAYS_INLINE void F(rotate)(V *one, V *other, F(rotation) by) {
    const V x = *one, y = *other;
    *one = x - by.sine * (y + by.rest * x);
    *other = y + by.sine * (x - by.rest * y);
}

/* Divides by the power of two that is just below the largest size, and answers with it; 1 where all are zeros. `odd` has those out of range. */
ALWAYS_INLINE V F(scaled)(V *all, int count, VI *odd) {
    const INT one = sizeof(REAL) == 4 ? 0x3f800000 : (INT)0x3ff0000000000000;
    const INT exponent = sizeof(REAL) == 4 ? 0x7f800000 : (INT)0x7ff0000000000000;
    const REAL largest = (REAL)(sizeof(REAL) == 4 ? 1e30 : 1e290), smallest = (REAL)(sizeof(REAL) == 4 ? 1e-25 : 1e-270);
    V most = {0};
    VI inside = (VI){0} == 0;
    for (int k = 0; k < count; k++) {
        const V size = F(without_sign)(all[k]);
        inside &= size < largest;
        most = CHOOSE(size > most, size, most);
    }
    *odd |= ~inside | ((most < smallest) & (most > 0));
    const VI power = (VI)CHOOSE(most > 0, (V)((VI)most & exponent), (V){0} + 1), inverse = 2 * one - power;
    for (int k = 0; k < count; k++)
        all[k] *= (V)inverse;
    return (V)power;
}

ALWAYS_INLINE bool F(any)(VI where) { return F(bits_of)(where, LANES) != 0; }

/* Exchanges vectors of two places where that is wanted. */
ALWAYS_INLINE void F(exchange_where)(VI wanted, V *one, V *other, int count) {
    for (int k = 0; k < count; k++) {
        const V was = one[k];
        one[k] = CHOOSE(wanted, other[k], was);
        other[k] = CHOOSE(wanted, was, other[k]);
    }
}

/* Sweeps over a symmetric matrix, of which the elements above the diagonal are read: the diagonal is the eigenvalues then, and the columns of
   `vectors`, if there are any, belong to them. */
ALWAYS_INLINE VI F(sweeps_over_symmetric)(V *a, int n, V *vectors) {
    const REAL least = (sizeof(REAL) == 4 ? FLT_EPSILON : DBL_EPSILON) / 4; /* beside a largest element of 1 to 2 */
    VI left = {0};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        left = (VI){0};
        for (int q = 1; q < n; q++)
            for (int p = 0; p < q; p++) {
                V *const above = a + q * n + p;
                const VI asked = F(without_sign)(*above) > least;
                const F(rotation) by = F(rotation_of)(a[p * n + p], *above, a[q * n + q], asked);
                left |= asked;
                a[p * n + p] -= by.tangent * *above;
                a[q * n + q] += by.tangent * *above;
                *above = CHOOSE(asked, (V){0}, *above);
                for (int r = 0; r < p; r++)
                    F(rotate)(a + p * n + r, a + q * n + r, by);
                for (int r = p + 1; r < q; r++)
                    F(rotate)(a + r * n + p, a + q * n + r, by);
                for (int r = q + 1; r < n; r++)
                    F(rotate)(a + r * n + p, a + r * n + q, by);
                for (int r = 0; vectors && r < n; r++)
                    F(rotate)(vectors + p * n + r, vectors + q * n + r, by);
            }
        if (!F(any)(left))
            break;
    }
    return left;
}

ALWAYS_INLINE void F(set_identity)(V *made, int n) {
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            made[j * n + i] = (V){0} + (REAL)(i == j);
}

/* Eigenvalues from the smallest to the largest, and the column of each, where columns are wanted. */
static unsigned F(eigh_together)(const lapack_group *of, int n, bool upper, void *values, void *vectors) {
    VI odd = {0};
#define BODY(n)                                                                           \
    {                                                                                     \
        V a[n * n], columns[n * n], found[LAPACK_SMALL];                                  \
        F(take_in)(of, n, n, a, columns);                                                 \
        for (int j = 0; j < n; j++)                                                       \
            for (int i = 0; i < j; i++) {                                                 \
                a[j * n + i] = a[upper ? j * n + i : i * n + j];                          \
                a[i * n + j] = (V){0};                                                    \
            }                                                                             \
        const V power = F(scaled)(a, n * n, &odd);                                        \
        if (vectors)                                                                      \
            F(set_identity)(columns, n);                                                  \
        odd |= F(sweeps_over_symmetric)(a, n, vectors ? columns : NULL);                  \
        for (int k = 0; k < n; k++)                                                       \
            found[k] = a[k * n + k];                                                      \
        for (int k = 0; k < n; k++)                                                       \
            for (int j = k + 1; j < n; j++) {                                             \
                const VI less = found[j] < found[k];                                      \
                F(exchange_where)(less, found + k, found + j, 1);                         \
                if (vectors)                                                              \
                    F(exchange_where)(less, columns + k * n, columns + j * n, n);         \
            }                                                                             \
        for (int k = 0; k < n; k++)                                                       \
            found[k] *= power;                                                            \
        F(give_out)(found, n, of->count, values, n);                                      \
        if (vectors)                                                                      \
            F(give_out)(columns, n * n, of->count, vectors, n * n);                       \
    }
    EACH_SIZE_TOGETHER(n, BODY)
#undef BODY
    return F(bits_of)(odd, of->count);
}

/* Rotates columns until each two of them are at right angles, and as many of `right`. */
ALWAYS_INLINE VI F(sweeps_over_columns)(V *a, int rows, int columns, V *right) {
    const REAL least = (REAL)(sizeof(REAL) == 4 ? FLT_EPSILON : DBL_EPSILON) * F(root)((REAL)rows); /* what a sum of products may be off */
    VI left = {0};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        left = (VI){0};
        for (int q = 1; q < columns; q++)
            for (int p = 0; p < q; p++) {
                V *const one = a + p * rows, *const other = a + q * rows;
                V x = {0}, y = {0}, z = {0};
                for (int r = 0; r < rows; r++) {
                    x += one[r] * one[r];
                    y += one[r] * other[r];
                    z += other[r] * other[r];
                }
                const VI asked = F(without_sign)(y) > least * ROOT(x * z);
                const F(rotation) by = F(rotation_of)(x, y, z, asked);
                left |= asked;
                for (int r = 0; r < rows; r++)
                    F(rotate)(one + r, other + r, by);
                for (int r = 0; right && r < columns; r++)
                    F(rotate)(right + p * columns + r, right + q * columns + r, by);
            }
        if (!F(any)(left))
            break;
    }
    return left;
}

/* Of at least as many rows as columns: the lengths of the columns, once they are at right angles, are the singular values, and what they are by
   their lengths is the left side. */
ALWAYS_INLINE VI F(svd_of_columns)(V *a, int rows, int columns, V *found, V *right) {
    const REAL shortest = (REAL)(sizeof(REAL) == 4 ? 3e-9 : 1e-75); /* whose square, squared, is still in range */
    VI odd = F(sweeps_over_columns)(a, rows, columns, right);
    for (int k = 0; k < columns; k++) {
        V square = {0};
        for (int r = 0; r < rows; r++)
            square += a[k * rows + r] * a[k * rows + r];
        found[k] = ROOT(square);
        odd |= ~(found[k] > shortest);
        const V by = 1 / found[k];
        for (int r = 0; right && r < rows; r++)
            a[k * rows + r] *= by;
    }
    for (int k = 0; k < columns; k++)
        for (int j = k + 1; j < columns; j++) {
            const VI more = found[j] > found[k];
            F(exchange_where)(more, found + k, found + j, 1);
            if (right) {
                F(exchange_where)(more, a + k * rows, a + j * rows, rows);
                F(exchange_where)(more, right + k * columns, right + j * columns, columns);
            }
        }
    return odd;
}

/* Singular values from the largest to the smallest; with vectors also U, as many columns as there are values, and the adjoint of V. */
static unsigned F(svd_together)(const lapack_group *of, int rows, int columns, void *values, void *u, void *vh) {
    const bool wide = rows < columns;
    const int tall = wide ? columns : rows, least = wide ? rows : columns;
    lapack_group turned = *of;
    if (wide) {
        turned.row = of->column;
        turned.column = of->row;
    }
    VI odd = {0};
#define BODY(least)                                                                       \
    {                                                                                     \
        V a[LAPACK_TOGETHER * least], b[LAPACK_TOGETHER * least], right[least * least], found[LAPACK_SMALL]; \
        F(take_in)(&turned, tall, least, a, b);                                           \
        const V power = F(scaled)(a, tall * least, &odd);                                 \
        if (u)                                                                            \
            F(set_identity)(right, least);                                                \
        odd |= F(svd_of_columns)(a, tall, least, found, u ? right : NULL);                \
        for (int k = 0; k < least; k++)                                                   \
            found[k] *= power;                                                            \
        F(give_out)(found, least, of->count, values, least);                              \
        const V *const left = wide ? right : a, *const other = wide ? a : right;          \
        for (int i = 0; u && i < least; i++)                                              \
            for (int j = 0; j < columns; j++)                                             \
                b[j * least + i] = other[i * columns + j];                                \
        if (u) {                                                                          \
            F(give_out)(left, rows * least, of->count, u, rows * least);                  \
            F(give_out)(b, least * columns, of->count, vh, least * columns);              \
        }                                                                                 \
    }
    EACH_SIZE_TOGETHER(least, BODY)
#undef BODY
    return F(bits_of)(odd, of->count);
}
