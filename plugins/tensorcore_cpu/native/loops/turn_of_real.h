/* Turning small blocks of matrices for one type, which REAL, V, V_U, LANES, ZIP and F describe. */

ALWAYS_INLINE V F(load)(const REAL *from) { return *(const V_U *)from; }
ALWAYS_INLINE void F(store)(REAL *to, V value) { *(V_U *)to = value; }

/* LANES x LANES elements: to[j * to_step + i] = from[i * from_step + j], zeros from `rows` on. */
ALWAYS_INLINE void F(turn)(const REAL *from, ptrdiff_t from_step, ptrdiff_t rows, REAL *to, ptrdiff_t to_step) {
    V a[LANES], b[LANES];
#if VECTOR == 32
    /* Halves of two rows in one register: what is left is to turn within the halves, with a third of the instructions. */
    enum { HALF = LANES / 2 };
    typedef REAL half __attribute__((vector_size(VECTOR / 2)));
    typedef REAL half_u __attribute__((vector_size(VECTOR / 2), aligned(1), may_alias));
#pragma GCC unroll 8
    for (int i = 0; i < HALF; i++)
#pragma GCC unroll 2
        for (int side = 0; side < 2; side++) {
            const REAL *upper = from + i * from_step + side * HALF;
            const half above = i < rows ? (half)*(const half_u *)upper : (half){0};
            const half under = HALF + i < rows ? (half)*(const half_u *)(upper + HALF * from_step) : (half){0};
            a[side * HALF + i] = F(join)(above, under);
        }
#pragma GCC unroll 4
    for (int round = 1; round < HALF; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; i++) {
            const int at = i / (HALF / 2) * HALF + i % (HALF / 2);
            b[2 * i] = F(zip_halves)(a[at], a[at + HALF / 2], 0);
            b[2 * i + 1] = F(zip_halves)(a[at], a[at + HALF / 2], LANES / 4);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            a[i] = b[i];
    }
#else
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        a[i] = i < rows ? F(load)(from + i * from_step) : (V){0};
    /* Each round takes one bit of the row's number to the column's. */
#pragma GCC unroll 4
    for (int round = 1; round < LANES; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; i++) {
            b[2 * i] = ZIP(a[i], a[i + LANES / 2], 0);
            b[2 * i + 1] = ZIP(a[i], a[i + LANES / 2], LANES / 2);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            a[i] = b[i];
    }
#endif
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        F(store)(to + i * to_step, a[i]);
}

/* to[j * to_step + i] = from[i * from_step + j] for i < rows and up to LANES columns j; nothing is written behind the last row. */
ALWAYS_INLINE void F(turn_out)(const REAL *from, ptrdiff_t from_step, ptrdiff_t rows, ptrdiff_t columns, REAL *to,
                               ptrdiff_t to_step) {
    for (ptrdiff_t i = 0; i < rows; i += LANES) {
        const ptrdiff_t down = rows - i < LANES ? rows - i : LANES;
        if (down == LANES && columns == LANES) {
            F(turn)(from + i * from_step, from_step, LANES, to + i, to_step);
            continue;
        }
        for (ptrdiff_t c = 0; c < columns; c++)
            for (ptrdiff_t r = 0; r < down; r++)
                to[c * to_step + i + r] = from[(i + r) * from_step + c];
    }
}

/* Up to LANES small planes turned over: element j of plane i to made[j * LANES + i], zeros behind the last plane. */
ALWAYS_INLINE void F(turn_planes)(const REAL *x, ptrdiff_t plane, ptrdiff_t planes, REAL *made) {
    for (ptrdiff_t j = 0; j < plane && plane >= LANES; j += LANES) {
        const ptrdiff_t at = j + LANES <= plane ? j : plane - LANES; /* the last ones may come twice */
        F(turn)(x + at, plane, planes, made + at * LANES, LANES);
    }
    for (ptrdiff_t j = 0; j < plane && plane < LANES; j++)
        for (ptrdiff_t i = 0; i < LANES; i++)
            made[j * LANES + i] = i < planes ? x[i * plane + j] : 0;
}

/* The sum of each of LANES vectors: neighbours in halves, as often as it takes. */
ALWAYS_INLINE void F(sum_each)(const V *vectors, REAL *made) {
    V a[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        a[i] = vectors[i];
#pragma GCC unroll 4
    for (int count = LANES / 2; count; count /= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
            a[i] = ZIP(a[i], a[i + count], 0) + ZIP(a[i], a[i + count], LANES / 2);
    }
    F(store)(made, a[0]);
}
