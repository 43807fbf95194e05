/* The loops of gemm.c for one type, which REAL, V, V_U, LANES, ZIP and F describe; included once for each.

   Tiles of HEIGHT rows and VECTORS vectors of columns over packed operands, blocked so that a panel of the right side stays in
   the first cache and the rows of the left side in the second (Goto and van de Geijn 2008, "Anatomy of high-performance
   matrix multiplication"). The left side's rows are copied, not interleaved: each of them is read as a stream. */

#include "tile_of_real.h"

enum { F(WIDTH) = VECTORS * LANES, F(LEFT_STEP) = INNER + LANES, F(LANES) = LANES };

static const REAL F(zeros)[F(WIDTH)];

ALWAYS_INLINE void F(copy)(REAL *to, const REAL *from, ptrdiff_t count) {
    ptrdiff_t i = 0;
    for (; i + LANES <= count; i += LANES)
        F(store)(to + i, F(load)(from + i));
    for (; i < count; i++)
        to[i] = from[i];
}

/* Columns of a left side that is turned over, so many as a tile has rows, one after the other: a tile reads one stream, and to
   turn them into rows took three times as long. Strips begin in different sets of the first cache. */
enum { F(STRIP_PAD) = LANES };

ALWAYS_INLINE ptrdiff_t F(strip)(ptrdiff_t inner) { return HEIGHT * inner + F(STRIP_PAD); }

static void F(pack_strips)(const REAL *from, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t inner, REAL *to) {
    const ptrdiff_t whole = rows / HEIGHT, rest = rows % HEIGHT, strip = F(strip)(inner);
    for (ptrdiff_t k = 0; k < inner; k++, from += step, to += HEIGHT) {
        for (ptrdiff_t s = 0; s < whole; s++)
            memcpy(to + s * strip, from + s * HEIGHT, HEIGHT * sizeof(REAL));
        for (ptrdiff_t r = 0; r < rest; r++)
            to[whole * strip + r] = from[whole * HEIGHT + r];
    }
}

static void F(pack_left)(const gemm_job *job, const gemm_part *part, void *packed) {
    const REAL *from = (const REAL *)job->left + part->row * job->left_row + part->first * job->left_inner;
    REAL *to = packed;
    if (part->strips)
        F(pack_strips)(from, job->left_inner, part->rows, part->inner, to);
    else if (job->left_inner == 1)
        for (ptrdiff_t r = 0; r < part->rows; r++)
            F(copy)(to + r * F(LEFT_STEP), from + r * job->left_row, part->inner);
    else if (job->left_row == 1)
        F(transpose)(from, job->left_inner, part->inner, part->rows, to, F(LEFT_STEP));
    else
        for (ptrdiff_t r = 0; r < part->rows; r++)
            for (ptrdiff_t k = 0; k < part->inner; k++)
                to[r * F(LEFT_STEP) + k] = from[r * job->left_row + k * job->left_inner];
}

/* Rows of the right side, whose columns lie side by side, one after the other: memory is read in the order in which it lies. */
static void F(pack_rows)(const REAL *from, ptrdiff_t step, ptrdiff_t inner, ptrdiff_t columns, REAL *to) {
    const ptrdiff_t panels = columns / F(WIDTH), rest = columns % F(WIDTH), panel = inner * F(WIDTH);
    for (ptrdiff_t k = 0; k < inner; k++, from += step, to += F(WIDTH)) {
        for (ptrdiff_t p = 0; p < panels; p++)
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                F(store)(to + p * panel + v * LANES, F(load)(from + p * F(WIDTH) + v * LANES));
        if (rest) {
            REAL *last = to + panels * panel;
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                F(store)(last + v * LANES, (V){0});
            F(copy)(last, from + panels * F(WIDTH), rest);
        }
    }
}

/* Rows of the right side whose elements are pairs, two of each: a, b and -b, a. */
static void F(pack_pairs)(const gemm_job *job, const gemm_part *part, REAL *to) {
    const ptrdiff_t panel = part->inner * F(WIDTH);
    for (ptrdiff_t k = part->first; k < part->first + part->inner; k += 2, to += 2 * F(WIDTH)) {
        const REAL *from = (const REAL *)job->right + k / 2 * job->right_inner + part->column;
        REAL *row = to;
        for (ptrdiff_t rest = part->columns; rest > 0; rest -= F(WIDTH), from += F(WIDTH), row += panel) {
            REAL last[F(WIDTH)] = {0};
            const REAL *here = rest < F(WIDTH) ? last : from;
            if (rest < F(WIDTH))
                F(copy)(last, from, rest);
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                const V x = F(load)(here + v * LANES);
                F(store)(row + v * LANES, x);
                F(store)(row + F(WIDTH) + v * LANES, F(times_i)(x));
            }
        }
    }
}

static void F(pack_right)(const gemm_job *job, const gemm_part *part, void *packed) {
    if (job->pairs) {
        F(pack_pairs)(job, part, packed);
        return;
    }
    const REAL *from = (const REAL *)job->right + part->first * job->right_inner + part->column * job->right_column;
    REAL *to = packed;
    if (job->right_column == 1 && job->right_inner != 1) {
        F(pack_rows)(from, job->right_inner, part->inner, part->columns, to);
        return;
    }
    for (ptrdiff_t j = 0; j < part->columns; j += F(WIDTH), to += part->inner * F(WIDTH), from += F(WIDTH) * job->right_column) {
        const ptrdiff_t width = part->columns - j < F(WIDTH) ? part->columns - j : F(WIDTH);
        if (width < F(WIDTH) && (job->right_inner != 1 || width <= F(WIDTH) - LANES))
            memset(to, 0, (size_t)(part->inner * F(WIDTH)) * sizeof(REAL));
        if (job->right_inner == 1)
            F(transpose)(from, job->right_column, width, part->inner, to, F(WIDTH));
        else
            for (ptrdiff_t k = 0; k < part->inner; k++)
                for (ptrdiff_t c = 0; c < width; c++)
                    to[k * F(WIDTH) + c] = from[k * job->right_inner + c * job->right_column];
    }
}

/* A tile of one half of a vector: the last of 200 columns are eight, for which whole vectors took twice the time. */
typedef REAL F(half) __attribute__((vector_size(VECTOR / 2)));
typedef REAL F(half_u) __attribute__((vector_size(VECTOR / 2), aligned(1), may_alias));

ALWAYS_INLINE void F(half_tile)(const REAL *rows, ptrdiff_t row_step, ptrdiff_t inner_step, const REAL *columns,
                                ptrdiff_t columns_step, ptrdiff_t inner, const REAL *before, ptrdiff_t before_step,
                                REAL *made, ptrdiff_t made_step, const int32_t *order, const int32_t *places, int height) {
    F(half) sums[16];
#pragma GCC unroll 16
    for (int r = 0; r < height; r++)
        sums[r] = (F(half)){0};
    for (ptrdiff_t i = 0; i < inner; i++) {
        const ptrdiff_t k = places ? places[i] : i;
        const F(half) right = *(const F(half_u) *)(columns + k * columns_step);
#pragma GCC unroll 16
        for (int r = 0; r < height; r++)
            sums[r] += right * rows[r * row_step + k * inner_step];
    }
#pragma GCC unroll 16
    for (int r = 0; r < height; r++) {
        const ptrdiff_t row = order ? order[r] : r;
        *(F(half_u) *)(made + row * made_step) = sums[r] + *(const F(half_u) *)(before + row * before_step);
    }
}

/* Tiles of each height and number of vectors, over packed rows, over rows as they lie, over packed ones that belong in another
   order, over strips, and over rows of which only what stands in `places` is multiplied. */
typedef void (*F(tile_function))(const REAL *rows, ptrdiff_t rows_step, const REAL *columns, ptrdiff_t columns_step,
                                 ptrdiff_t inner, const REAL *before, ptrdiff_t before_step, REAL *made,
                                 ptrdiff_t made_step, const int32_t *order, const int32_t *places);

#define TILE_OF(name, step, inner_step, in_order, at, height, vectors)                                                  \
    static void F(name##_##height##x##vectors)(const REAL *rows, ptrdiff_t rows_step, const REAL *columns,        \
                                               ptrdiff_t columns_step, ptrdiff_t inner, const REAL *before,       \
                                               ptrdiff_t before_step, REAL *made, ptrdiff_t made_step,            \
                                               const int32_t *order, const int32_t *places) {                     \
        if (vectors)                                                                                              \
            F(tile_in_order)(rows, step, inner_step, columns, columns_step, inner, before, before_step, made,     \
                             made_step, in_order, at, false, height, vectors);                                    \
        else                                                                                                      \
            F(half_tile)(rows, step, inner_step, columns, columns_step, inner, before, before_step, made,         \
                         made_step, in_order, at, height);                                                        \
    }
#define TILE(height, vectors)                                                                                     \
    TILE_OF(packed, F(LEFT_STEP), 1, NULL, NULL, height, vectors)                                                 \
    TILE_OF(lying, rows_step, 1, NULL, NULL, height, vectors)                                                     \
    TILE_OF(ordered, F(LEFT_STEP), 1, order, NULL, height, vectors)                                               \
    TILE_OF(stripped, 1, rows_step, NULL, NULL, height, vectors)                                                  \
    TILE_OF(live, rows_step, 1, order, places, height, vectors)
TILES(TILE)
#undef TILE
#undef TILE_OF
#define PACKED_TILE(height, vectors) [height][vectors] = F(packed_##height##x##vectors),
#define LYING_TILE(height, vectors) [height][vectors] = F(lying_##height##x##vectors),
#define ORDERED_TILE(height, vectors) [height][vectors] = F(ordered_##height##x##vectors),
#define STRIPPED_TILE(height, vectors) [height][vectors] = F(stripped_##height##x##vectors),
#define LIVE_TILE(height, vectors) [height][vectors] = F(live_##height##x##vectors),
static const F(tile_function) F(tile_functions)[TILE_KINDS][HEIGHT + 1][VECTORS + 1] = {
    [PACKED] = {TILES(PACKED_TILE)},
    [LYING] = {TILES(LYING_TILE)},
    [ORDERED] = {TILES(ORDERED_TILE)},
    [STRIPPED] = {TILES(STRIPPED_TILE)},
    [LIVE] = {TILES(LIVE_TILE)},
};
#undef PACKED_TILE
#undef LYING_TILE
#undef ORDERED_TILE
#undef STRIPPED_TILE
#undef LIVE_TILE

/* The left rows of a part: row r at at + r / HEIGHT * tall + r % HEIGHT * one. `step`, from row to row, or in strips from one
   element of a row to the next, is for tiles that do not know it. */
typedef struct {
    int kind;
    const REAL *at;
    ptrdiff_t one, tall, step;
} F(lefts);

ALWAYS_INLINE F(lefts) F(lefts_of)(const gemm_job *job, const gemm_part *part, const REAL *packed) {
    const REAL *at = packed ? packed : (const REAL *)job->left + part->row * job->left_row + part->first * job->left_inner;
    if (part->strips)
        return (F(lefts)){STRIPPED, at, 1, packed ? F(strip)(part->inner) : HEIGHT, packed ? HEIGHT : job->left_inner};
    const ptrdiff_t step = packed ? F(LEFT_STEP) : job->left_row;
    return (F(lefts)){packed ? PACKED : LYING, at, step, HEIGHT * step, step};
}

/* What is not zero in all of a tile's rows: how many of the inner dim, then which. As behind a ReLU that a unit never passes. */
ALWAYS_INLINE ptrdiff_t F(live_step)(ptrdiff_t inner) { return 1 + inner + LANES; }

static ptrdiff_t F(live_bytes)(ptrdiff_t rows, ptrdiff_t inner) {
    return (rows + HEIGHT - 1) / HEIGHT * F(live_step)(inner) * (ptrdiff_t)sizeof(int32_t);
}

static int32_t F(live_of)(const REAL *rows, ptrdiff_t step, ptrdiff_t height, ptrdiff_t inner, int32_t *places) {
    REAL any[INNER + LANES], unused[INNER + LANES];
    ptrdiff_t k = 0;
    for (; k + LANES <= inner; k += LANES) {
        VI bits = {0}; /* but a float's sign, which a zero may have, there is one in each number that is not zero */
        for (ptrdiff_t r = 0; r < height; r++)
            bits |= (VI)F(load)(rows + r * step + k);
        F(store)(any + k, (V)((REAL)0.5 == 0 ? bits : bits << 1));
    }
    for (; k < inner; k++) {
        any[k] = 0;
        for (ptrdiff_t r = 0; r < height; r++)
            any[k] = rows[r * step + k] != 0 ? 1 : any[k];
    }
    return F(compress)(any, inner, 0, 1, unused, places);
}

static bool F(find_live_rows)(const REAL *left, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t inner, int32_t *live) {
    ptrdiff_t found = 0, all = 0;
    for (ptrdiff_t i = 0; i < rows; i += HEIGHT, live += F(live_step)(inner)) {
        const ptrdiff_t height = rows - i < HEIGHT ? rows - i : HEIGHT;
        *live = F(live_of)(left + i * step, step, height, inner, live + 1);
        found += *live;
        all += inner;
    }
    return ALIVE_OF * found <= ALIVE * all;
}

static bool F(find_live)(const gemm_job *job, const gemm_part *part, const void *left, int32_t *live) {
    const F(lefts) lefts = F(lefts_of)(job, part, left);
    return F(find_live_rows)(lefts.at, lefts.step, part->rows, part->inner, live);
}

static bool F(is_finite)(const REAL *x, ptrdiff_t count) {
    V sum = {0}, other = {0};
    for (ptrdiff_t i = 0; i < count; i += 2 * LANES) {
        sum += F(load)(x + i) * 0;
        other += F(load)(x + i + LANES) * 0;
    }
    sum += other;
    for (int l = 0; l < LANES; l++)
        if (sum[l] != 0)
            return false;
    return true;
}

/* The rows of a part by one panel of columns. `order` names the row that each of them is; NULL where they lie in order. */
static void F(tiles)(const gemm_job *job, const gemm_part *part, const F(lefts) *left, const REAL *columns, ptrdiff_t step,
                     const int32_t *order) {
    const ptrdiff_t width = part->columns, vectors = width <= LANES / 2 ? 0 : (width + LANES - 1) / LANES;
    const F(tile_function)(*const plain)[VECTORS + 1] = F(tile_functions)[left->kind];
    for (ptrdiff_t i = 0, height; i < part->rows; i += height) {
        ptrdiff_t rest = part->rows - i;
        for (height = rest < HEIGHT ? rest : HEIGHT; !plain[height][1]; height--)
            continue;
        const int32_t *const live = part->live ? part->live + i / HEIGHT * F(live_step)(part->inner) : NULL;
        const F(tile_function) tile = F(tile_functions)[live ? LIVE : order ? ORDERED : left->kind][height][vectors];
        const int32_t *const places = live ? live + 1 : NULL;
        const ptrdiff_t inner = live ? *live : part->inner;
        const REAL *rows = left->at + i / HEIGHT * left->tall + i % HEIGHT * left->one;
        const ptrdiff_t first = part->row + (order ? 0 : i); /* of which the rows in `order` are counted */
        const int32_t *at = order ? order + i : NULL;
        REAL *made = (REAL *)job->made + first * job->made_row + part->column;
        const REAL *before = F(zeros);
        ptrdiff_t before_step = 0;
        if (part->first) {
            before = made;
            before_step = job->made_row;
        } else if (job->before) {
            before = (const REAL *)job->before + first * job->before_row + part->column;
            before_step = job->before_row;
        }
        if (width % LANES == 0 || width == LANES / 2) {
            tile(rows, left->step, columns, step, inner, before, before_step, made, job->made_row, at, places);
            continue;
        }
        REAL room[HEIGHT * F(WIDTH)];
        if (before != F(zeros)) {
            for (ptrdiff_t r = 0; r < height; r++) {
                memset(room + r * F(WIDTH), 0, sizeof(REAL) * F(WIDTH));
                F(copy)(room + r * F(WIDTH), before + (at ? at[r] : r) * before_step, width);
            }
            before = room;
            before_step = F(WIDTH);
        }
        (live ? tile : plain[height][vectors])(rows, left->step, columns, step, inner, before, before_step, room, F(WIDTH), NULL,
                                               places);
        for (ptrdiff_t r = 0; r < height; r++)
            F(copy)(made + (at ? at[r] : r) * job->made_row, room + r * F(WIDTH), width);
    }
}

/* A share, `turn` of `turns`, of what is read next: `count` rows of `length` elements, `step` apart. It comes from memory while
   tiles are made of something else: rows far apart are a way that no processor foresees. */
ALWAYS_INLINE void F(fetch)(const REAL *from, ptrdiff_t step, ptrdiff_t count, ptrdiff_t length, ptrdiff_t turn,
                            ptrdiff_t turns) {
    for (ptrdiff_t i = count * turn / turns, end = count * (turn + 1) / turns; i < end; i++) {
        const char *last = (const char *)(from + i * step + length - 1);
        for (const char *line = (const char *)(from + i * step); line <= last; line += 64)
            __builtin_prefetch(line, 0, 2);
        __builtin_prefetch(last, 0, 2);
    }
}

static void F(multiply)(const gemm_job *job, const gemm_part *part, const void *left, const void *right, void *panel,
                        const gemm_part *next) {
    const F(lefts) lefts = F(lefts_of)(job, part, left);
    const ptrdiff_t panels = (part->columns + F(WIDTH) - 1) / F(WIDTH), turns = (part->rows + HEIGHT - 1) / HEIGHT;
    for (ptrdiff_t j = 0; j < part->columns; j += F(WIDTH)) {
        gemm_part one = *part;
        one.column += j;
        one.columns = part->columns - j < F(WIDTH) ? part->columns - j : F(WIDTH);
        const REAL *columns = (const REAL *)right + j * part->inner;
        ptrdiff_t step = F(WIDTH);
        if (!right && one.columns % LANES == 0 && job->right_column == 1 && part->rows <= FEW_TILES * HEIGHT) {
            columns = (const REAL *)job->right + part->first * job->right_inner + one.column;
            step = job->right_inner;
        } else if (!right) {
            F(pack_right)(job, &one, panel);
            columns = panel;
        }
        if (one.live && (step != F(WIDTH) || !F(is_finite)(columns, part->inner * F(WIDTH))))
            one.live = NULL; /* what is left out would not have added zeros */
        const int32_t *const live = one.live;
        const ptrdiff_t rest = part->columns - j - F(WIDTH);
        const bool lies = !left && !j, more = !right && rest > 0 && job->right_column == 1;
        if (!lies && !more && !next) {
            F(tiles)(job, &one, &lefts, columns, step, NULL);
            continue;
        }
        for (ptrdiff_t turn = 0; turn < turns; turn++) {
            F(lefts) here = lefts;
            here.at += turn * lefts.tall;
            one.live = live ? live + turn * F(live_step)(part->inner) : NULL;
            const ptrdiff_t left_over = part->rows - turn * HEIGHT;
            one.row = part->row + turn * HEIGHT;
            one.rows = left_over < HEIGHT ? left_over : HEIGHT;
            if (lies && left_over > HEIGHT) {
                const REAL *then = here.at + here.tall;
                const ptrdiff_t count = left_over < 2 * HEIGHT ? left_over - HEIGHT : HEIGHT;
                if (part->strips)
                    F(fetch)(then, here.step, part->inner, count, 0, 1);
                else
                    F(fetch)(then, here.step, count, part->inner, 0, 1);
            }
            if (more)
                F(fetch)((const REAL *)job->right + part->first * job->right_inner + one.column + F(WIDTH),
                         job->right_inner, part->inner, rest < F(WIDTH) ? rest : F(WIDTH), turn, turns);
            if (next)
                F(fetch)((const REAL *)job->left + next->row + next->first * job->left_inner, job->left_inner,
                         next->inner, next->rows, j / F(WIDTH) * turns + turn, panels * turns);
            F(tiles)(job, &one, &here, columns, step, NULL);
        }
    }
}

/* Few rows, and on both sides the inner dim side by side: sums of vectors, and nothing is copied. */
ALWAYS_INLINE void F(dot_tile)(const gemm_job *job, ptrdiff_t row, ptrdiff_t column, int height, int width) {
    const REAL *left = (const REAL *)job->left + row * job->left_row;
    const REAL *right = (const REAL *)job->right + column * job->right_column;
    V sums[16];
    REAL rest[16] = {0};
#pragma GCC unroll 16
    for (int i = 0; i < height * width; i++)
        sums[i] = (V){0};
    ptrdiff_t k = 0;
    for (; k + LANES <= job->inner; k += LANES) {
        V a[4];
#pragma GCC unroll 4
        for (int r = 0; r < height; r++)
            a[r] = F(load)(left + r * job->left_row + k);
#pragma GCC unroll 4
        for (int c = 0; c < width; c++) {
            const V b = F(load)(right + c * job->right_column + k);
#pragma GCC unroll 4
            for (int r = 0; r < height; r++)
                sums[r * width + c] += a[r] * b;
        }
    }
    for (; k < job->inner; k++)
        for (int r = 0; r < height; r++)
            for (int c = 0; c < width; c++)
                rest[r * width + c] += left[r * job->left_row + k] * right[c * job->right_column + k];
    REAL whole[16];
    if (height * width % LANES == 0)
        for (int first = 0; first < height * width; first += LANES)
            F(sum_each)(sums + first, whole + first);
    else
        for (int i = 0; i < height * width; i++) {
            REAL lanes[LANES];
            F(store)(lanes, sums[i]);
            for (int half = LANES / 2; half; half /= 2)
                for (int l = 0; l < half; l++)
                    lanes[l] += lanes[l + half];
            whole[i] = lanes[0];
        }
#pragma GCC unroll 4
    for (int r = 0; r < height; r++) {
#pragma GCC unroll 4
        for (int c = 0; c < width; c++) {
            REAL sum = rest[r * width + c] + whole[r * width + c];
            if (job->before)
                sum += ((const REAL *)job->before)[(row + r) * job->before_row + column + c];
            ((REAL *)job->made)[(row + r) * job->made_row + column + c] = sum;
        }
    }
}

#define DOT_TILE(height, width)                          \
    case 4 * (height) + (width):                         \
        F(dot_tile)(job, row, column, height, width);    \
        break;
#define DOT_TILES(height) DOT_TILE(height, 1) DOT_TILE(height, 2) DOT_TILE(height, 3) DOT_TILE(height, 4)

/* Tiles are as large as fits: one sum by itself waits for each of its additions. */
static void F(dots)(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t most = job->rows > 2 && !MANY_REGISTERS ? 2 : 4;
    for (ptrdiff_t column = begin, width; column < end; column += width) {
        width = end - column < most ? end - column : most;
        for (ptrdiff_t row = 0, height; row < job->rows; row += height) {
            height = job->rows - row < 4 ? job->rows - row : 4;
            switch (4 * height + width) {
                DOT_TILES(1)
                DOT_TILES(2)
                DOT_TILES(3)
                DOT_TILES(4)
            }
        }
    }
}

#ifndef GEMM_LOOPS
#define GEMM_LOOPS(suffix, slower)                                                                              \
    {                                                                                                         \
        .height = HEIGHT, .width = WIDTH_##suffix, .lanes = LANES_##suffix, .most_rows = ROWS,                \
        .most_inner = INNER, .left_step = LEFT_STEP_##suffix, .reads_left = READS_LEFT,                       \
        .slower_than_blas = slower,                                                                           \
        .pack_left = pack_left_##suffix, .pack_right = pack_right_##suffix, .multiply = multiply_##suffix,    \
        .dots = dots_##suffix, .thin = thin_##suffix,                                                         \
        .panels = PANELS, .lists_bytes = lists_bytes_##suffix, .list = list_##suffix,                         \
        .multiply_lists = multiply_lists_##suffix, .live_bytes = live_bytes_##suffix,                         \
        .find_live = find_live_##suffix,                                                                      \
    }
#endif
