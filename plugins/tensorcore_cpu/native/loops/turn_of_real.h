/* Turning small blocks of matrices for one type, which REAL, V, V_U, LANES, ZIP and F describe. */

ALWAYS_INLINE V F(load)(const REAL *from) { return *(const V_U *)from; }
ALWAYS_INLINE void F(store)(REAL *to, V value) { *(V_U *)to = value; }

#if VECTOR >= 32
/* A block in registers: 16 bytes each of rows far apart in one of them, and what is left is to turn within these parts. In halves
   that takes a third of the instructions, and in quarters no permutations of two registers, each of which overwrites the one
   that says how: a block took 65 cycles in the place of 88 on a Zen 4, as long as a copy. */
ALWAYS_INLINE void F(turn_by_parts)(const REAL *from, ptrdiff_t from_step, ptrdiff_t rows, V *a) {
    enum { PART = 16 / sizeof(REAL), PARTS = VECTOR / 16 };
    typedef REAL part __attribute__((vector_size(16)));
    typedef REAL part_u __attribute__((vector_size(16), aligned(1), may_alias));
    V b[LANES];
#pragma GCC unroll 4
    for (int side = 0; side < PARTS; side++)
#pragma GCC unroll 4
        for (int i = 0; i < PART; i++) {
            part parts[PARTS];
#pragma GCC unroll 4
            for (int p = 0; p < PARTS; p++) {
                const int row = p * PART + i;
                parts[p] = row < rows ? (part)*(const part_u *)(from + row * from_step + side * PART) : (part){0};
            }
            a[side * PART + i] = F(join)(parts);
        }
#pragma GCC unroll 4
    for (int round = 1; round < PART; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; i++) {
            const int at = i / (PART / 2) * PART + i % (PART / 2);
            b[2 * i] = F(zip_parts)(a[at], a[at + PART / 2], 0);
            b[2 * i + 1] = F(zip_parts)(a[at], a[at + PART / 2], PART / 2);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            a[i] = b[i];
    }
}
#endif

/* One of whole rows: each round takes one bit of the row's number to the column's. */
ALWAYS_INLINE void F(turn_by_rows)(const REAL *from, ptrdiff_t from_step, ptrdiff_t rows, V *a) {
    V b[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        a[i] = i < rows ? F(load)(from + i * from_step) : (V){0};
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
}

/* LANES x LANES elements: to[j * to_step + i] = from[i * from_step + j], zeros from `rows` on. Rows that are not there cost nothing
   where they are whole registers, and in quarters as much as others. */
ALWAYS_INLINE void F(turn)(const REAL *from, ptrdiff_t from_step, ptrdiff_t rows, REAL *to, ptrdiff_t to_step) {
    V a[LANES];
#if VECTOR >= 32
    if (VECTOR == 32 || rows == LANES)
        F(turn_by_parts)(from, from_step, rows, a);
    else
#endif
        F(turn_by_rows)(from, from_step, rows, a);
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
