/* The inner loop of matrix products and convolutions, and turning whole matrices, for one type, which REAL, V, V_U, LANES, ZIP and
   F describe. */

#include "turn_of_real.h"

/* made[r, c] = before[r, c] + sum over k of rows[r * row_step + k * inner_step] * columns[k * columns_step + c] for
   `height` rows and `vectors` vectors of columns, which stay in registers: both are constants where it is called. `order`, if
   there is one, names the row of `before` and `made` that row r is; `places`, if there are any, the `inner` ones of k, on the left
   alone where what they meet is `packed`. */
ALWAYS_INLINE void F(tile_in_order)(const REAL *rows, ptrdiff_t row_step, ptrdiff_t inner_step, const REAL *columns,
                                    ptrdiff_t columns_step, ptrdiff_t inner, const REAL *before, ptrdiff_t before_step,
                                    REAL *made, ptrdiff_t made_step, const int32_t *order, const int32_t *places,
                                    bool packed, int height, int vectors) {
    V sums[16][4];
#pragma GCC unroll 16
    for (int r = 0; r < height; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[r][v] = (V){0};
    }
    /* What is made comes while the sums are, one row of it after the other: all at once, they kept what is multiplied waiting. */
    const ptrdiff_t turn = inner / height + 1;
    for (ptrdiff_t k = 0, r = 0; k < inner; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            __builtin_prefetch(made + (order ? order[r] : r) * made_step + v * LANES, 1);
        const ptrdiff_t end = k + turn < inner ? k + turn : inner;
        for (; k < end; k++) {
            const REAL *const lefts = places ? rows + places[k] * inner_step : rows;
            const REAL *const rights = places && !packed ? columns + places[k] * columns_step : columns;
            V right[4];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                right[v] = F(load)(rights + v * LANES);
#pragma GCC unroll 16
            for (int i = 0; i < height; i++) {
                const REAL left = lefts[i * row_step];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    sums[i][v] += right[v] * left;
            }
            if (!places)
                rows += inner_step;
            if (!places || packed)
                columns += columns_step;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < height; r++) {
        const ptrdiff_t row = order ? order[r] : r;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            F(store)(made + row * made_step + v * LANES, sums[r][v] + F(load)(before + row * before_step + v * LANES));
    }
}

ALWAYS_INLINE void F(tile)(const REAL *rows, ptrdiff_t row_step, ptrdiff_t inner_step, const REAL *columns,
                           ptrdiff_t columns_step, ptrdiff_t inner, const REAL *before, ptrdiff_t before_step,
                           REAL *made, ptrdiff_t made_step, int height, int vectors) {
    F(tile_in_order)(rows, row_step, inner_step, columns, columns_step, inner, before, before_step, made, made_step, NULL,
                     NULL, false, height, vectors);
}

/* to[j * to_step + i] = from[i * from_step + j] for i < rows and j < columns, zeros to whole vectors of i. A row's lines are
   read one after the other: rows far apart, one line of each, took products of many rows 2 % longer. */
static void F(transpose)(const REAL *from, ptrdiff_t from_step, ptrdiff_t rows, ptrdiff_t columns, REAL *to,
                         ptrdiff_t to_step) {
    for (ptrdiff_t i = 0; i < rows; i += LANES) {
        ptrdiff_t down = rows - i < LANES ? rows - i : LANES;
        for (ptrdiff_t j = 0; j < columns; j += LANES) {
            ptrdiff_t across = columns - j < LANES ? columns - j : LANES;
            if (across == LANES && down == LANES) {
                F(turn)(from + i * from_step + j, from_step, LANES, to + j * to_step + i, to_step);
                continue;
            }
            if (across == LANES) {
                F(turn)(from + i * from_step + j, from_step, down, to + j * to_step + i, to_step);
                continue;
            }
            for (ptrdiff_t c = 0; c < across; c++)
                for (ptrdiff_t r = 0; r < LANES; r++)
                    to[(j + c) * to_step + i + r] = r < down ? from[(i + r) * from_step + j + c] : 0;
        }
    }
}
