/* Batches of small products of one type, which REAL, LANES and F describe; included once for each.

   Both sides are read where they lie, but for a right side whose columns are apart, and nothing is written behind a row: columns are
   covered by vectors of the largest width that fits them, the last of which begins so early that it ends where they end. Rows go in
   blocks of up to MOST_ROWS, the last of which begins early as well. What is covered twice is made twice, to the same bits. Sums begin
   with -0, so that one of a single product is that product, its sign included. */

#include "tile_of_real.h"

ALWAYS_INLINE ptrdiff_t F(parts)(ptrdiff_t count, ptrdiff_t most) { return (count + most - 1) / most; }

/* The right side of a job with its columns side by side, rows of them `step` apart. */
ALWAYS_INLINE void F(turn_over)(const gemm_job *job, const REAL *right, REAL *room, ptrdiff_t step) {
    if (job->right_inner == 1 && job->columns >= LANES && job->inner >= LANES) {
        F(transpose)(right, job->right_column, job->columns, job->inner, room, step);
        return;
    }
    for (ptrdiff_t k = 0; k < job->inner; k++)
        for (ptrdiff_t c = 0; c < job->columns; c++)
            room[k * step + c] = right[c * job->right_column + k * job->right_inner];
}

/* A block of `height` rows by one vector of columns, or two, the other `second` columns behind the one: constants where it is called,
   as `inner` is if it is one. */
#define BLOCK(width)                                                                                                    \
    typedef REAL F(v##width) __attribute__((vector_size((width) * sizeof(REAL))));                                      \
    typedef REAL F(v##width##_u) __attribute__((vector_size((width) * sizeof(REAL)), aligned(1), may_alias));           \
    ALWAYS_INLINE void F(block_##width)(const gemm_job *job, const REAL *left, const REAL *right, ptrdiff_t right_step, \
                                        ptrdiff_t inner, REAL *made, ptrdiff_t second, int height, int vectors) {       \
        F(v##width) sums[MOST_ROWS][2];                                                                                 \
        const ptrdiff_t row_step = job->left_row, inner_step = job->left_inner;                                         \
        _Pragma("GCC unroll 4") for (int r = 0; r < height; r++)                                                        \
            _Pragma("GCC unroll 2") for (int v = 0; v < vectors; v++) sums[r][v] = -(F(v##width)){0};                   \
        _Pragma("GCC unroll 4") for (ptrdiff_t k = 0; k < inner; k++) {                                                 \
            const REAL *const here = right + k * right_step;                                                            \
            const F(v##width) one = *(const F(v##width##_u) *)here;                                                     \
            const F(v##width) other = vectors > 1 ? (F(v##width))*(const F(v##width##_u) *)(here + second) : one;     \
            _Pragma("GCC unroll 4") for (int r = 0; r < height; r++) {                                                  \
                const REAL by = left[r * row_step + k * inner_step];                                                    \
                sums[r][0] += one * by;                                                                                 \
                if (vectors > 1)                                                                                        \
                    sums[r][1] += other * by;                                                                           \
            }                                                                                                           \
        }                                                                                                               \
        _Pragma("GCC unroll 4") for (int r = 0; r < height; r++) {                                                      \
            *(F(v##width##_u) *)(made + r * job->made_row) = sums[r][0];                                                \
            if (vectors > 1)                                                                                            \
                *(F(v##width##_u) *)(made + r * job->made_row + second) = sums[r][1];                                   \
        }                                                                                                               \
    }

#define PRODUCTS(width, height)                                                                                         \
    ALWAYS_INLINE void F(run_##height##x##width)(const gemm_job *job, ptrdiff_t count, ptrdiff_t left_step,             \
                                                 ptrdiff_t right_step, ptrdiff_t inner) {                               \
        REAL room[MANY_ROOM];                                                                                           \
        const REAL *left = job->left, *given = job->right;                                                              \
        REAL *made = job->made;                                                                                         \
        const ptrdiff_t rows = job->rows, columns = job->columns;                                                       \
        const bool turned = columns > 1 && job->right_column != 1;                                                      \
        const ptrdiff_t step = turned ? F(parts)(columns, LANES) * LANES : job->right_inner;                            \
        for (; count--; left += left_step, given += right_step, made += rows * columns) {                               \
            const REAL *const right = turned ? room : given;                                                            \
            if (turned)                                                                                                 \
                F(turn_over)(job, given, room, step);                                                                   \
            for (ptrdiff_t i = 0; i < rows; i += height) {                                                              \
                const ptrdiff_t row = i < rows - height ? i : rows - height;                                            \
                const REAL *const lefts = left + row * job->left_row;                                                   \
                REAL *const to = made + row * columns;                                                                  \
                ptrdiff_t j = 0;                                                                                        \
                for (; columns - j > width; j += 2 * (width))                                                           \
                    F(block_##width)(job, lefts, right + j, step, inner, to + j,                                        \
                                     columns - j < 2 * (width) ? columns - j - (width) : (width), height, 2);           \
                if (j < columns)                                                                                        \
                    F(block_##width)(job, lefts, right + columns - (width), step, inner, to + columns - (width), 0,     \
                                     height, 1);                                                                        \
            }                                                                                                           \
        }                                                                                                               \
    }                                                                                                                   \
    static void F(products_##height##x##width)(const gemm_job *job, ptrdiff_t count, ptrdiff_t left_step,               \
                                               ptrdiff_t right_step) {                                                  \
        const gemm_job own = *job; /* nothing that is written may be part of it: its numbers stay in registers */       \
        if ((width) * sizeof(REAL) > VECTOR)                                                                            \
            return; /* never picked */                                                                                  \
        if ((width) <= MOST_UNROLLED && own.inner == 2)                                                                 \
            F(run_##height##x##width)(&own, count, left_step, right_step, 2);                                           \
        else if ((width) <= MOST_UNROLLED && own.inner == 3)                                                            \
            F(run_##height##x##width)(&own, count, left_step, right_step, 3);                                           \
        else                                                                                                            \
            F(run_##height##x##width)(&own, count, left_step, right_step, own.inner);                                   \
    }

#define PRODUCTS_OF(width) BLOCK(width) EACH_HEIGHT(PRODUCTS, width)
EACH_WIDTH(PRODUCTS_OF)

/* One column, and on both sides the inner dim side by side: each sum is a vector of four. */
ALWAYS_INLINE void F(dot_block)(const gemm_job *job, const REAL *left, const REAL *right, REAL *made, int height) {
    F(v4) sums[4];
    REAL rest[4] = {0};
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        sums[r] = (F(v4)){0};
    ptrdiff_t k = 0;
    for (; k + 4 <= job->inner; k += 4) {
        const F(v4) by = *(const F(v4_u) *)(right + k);
#pragma GCC unroll 4
        for (int r = 0; r < height; r++)
            sums[r] += by * *(const F(v4_u) *)(left + r * job->left_row + k);
    }
    for (; k < job->inner; k++) {
#pragma GCC unroll 4
        for (int r = 0; r < height; r++)
            rest[r] += left[r * job->left_row + k] * right[k];
    }
    const F(v4) a = ZIP_4(sums[0], sums[2], 0) + ZIP_4(sums[0], sums[2], 2);
    const F(v4) b = ZIP_4(sums[1], sums[3], 0) + ZIP_4(sums[1], sums[3], 2);
    const F(v4) whole = ZIP_4(a, b, 0) + ZIP_4(a, b, 2);
#pragma GCC unroll 4
    for (int r = 0; r < height; r++)
        made[r] = whole[r] + rest[r];
}

#define DOTS(width, height)                                                                                             \
    static void F(dots_##height)(const gemm_job *job, ptrdiff_t count, ptrdiff_t left_step, ptrdiff_t right_step) {     \
        const REAL *left = job->left, *right = job->right;                                                              \
        REAL *made = job->made;                                                                                         \
        for (; count--; left += left_step, right += right_step, made += job->rows)                                      \
            for (ptrdiff_t i = 0; i < job->rows; i += height) {                                                         \
                const ptrdiff_t row = i < job->rows - height ? i : job->rows - height;                                  \
                F(dot_block)(job, left + row * job->left_row, right, made + row, height);                               \
            }                                                                                                           \
    }
EACH_HEIGHT(DOTS, )

#define NAMED(width, height) [height] = F(products_##height##x##width),
#define NAMED_OF(width) [width] = {EACH_HEIGHT(NAMED, width)},
#define NAMED_DOTS(width, height) [height] = F(dots_##height),

static gemm_many_loop F(pick)(const gemm_job *job) {
    static const gemm_many_loop products[][MOST_ROWS + 1] = {EACH_WIDTH(NAMED_OF)};
    static const gemm_many_loop dots[] = {EACH_HEIGHT(NAMED_DOTS, )};
    const ptrdiff_t height = F(parts)(job->rows, F(parts)(job->rows, MOST_ROWS));
    if (job->columns == 1 && job->inner >= 4 && job->left_inner == 1 && job->right_inner == 1)
        return dots[height];
    ptrdiff_t width = 1;
    while (2 * width <= job->columns && 2 * width <= LANES)
        width *= 2;
    return products[width][height];
}

#undef BLOCK
#undef PRODUCTS
#undef PRODUCTS_OF
#undef DOTS
#undef NAMED
#undef NAMED_OF
#undef NAMED_DOTS
