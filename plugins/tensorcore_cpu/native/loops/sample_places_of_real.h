/* Where images are read, for one type: whole places and how far a coordinate is behind them. */

/* The places of one block along one dim: up to four elements that each is between, -1 where there is none, their weights and
   the slopes of these. */
typedef struct {
    INT at[4][SAMPLE_BLOCK];
    REAL by[4][SAMPLE_BLOCK], slope[4][SAMPLE_BLOCK];
} F(sample_line);

/* What comes next is written without branches, so that all of a loop becomes vectors: & and | in the place of && and ||. */

/* The place inside that one outside stands for, and its slope: 0 at the bounds themselves, as in PyTorch. */
#define STEP(x) F(step)(x, steps)
ALWAYS_INLINE REAL F(padded)(REAL x, REAL size, int padding, bool corners, int steps, REAL *slope) {
    if (padding == SAMPLE_ZEROS)
        return x;
    const REAL last = STEP(size - 1);
    if (padding == SAMPLE_REFLECTION) {
        const REAL low = corners ? 0 : (REAL)-0.5, span = corners ? size - 1 : size;
        const REAL from = STEP(x - low), away = F(abs_)(from), flips = F(floor_)(STEP(away / span));
        const REAL extra = STEP(away - STEP(flips * span)), turned = STEP(span - extra);
        const REAL odd = flips - 2 * F(floor_)(flips / 2), sign = from < 0 ? (REAL)-1 : (REAL)1;
        *slope *= odd == 0 ? sign : -sign;
        x = STEP((odd == 0 ? extra : turned) + low);
    }
    *slope = (x > 0) & (x < last) ? *slope : 0;
    x = x > 0 ? x : 0; /* NaN is the first element, and so is all of a plane that has no other (span is 0) */
    return x < last ? x : last;
}

/* A whole number as an index where it is one of the image's, else -1. */
ALWAYS_INLINE INT F(inside)(REAL x, REAL size) {
    x = (x >= 0) & (x < size) ? x : -1;
    return (INT)x;
}

/* Works out a line from the first `count` of a block of coordinates along a dim of that length. */
ALWAYS_INLINE void F(place)(int mode, int padding, bool corners, int steps, const REAL *grid, ptrdiff_t length, ptrdiff_t count,
                            F(sample_line) *line) {
    const REAL size = (REAL)length, scale = corners ? (size - 1) / 2 : size / 2, shift = corners ? 0 : (REAL)0.5;
    INDEPENDENT for (ptrdiff_t p = 0; p < count; p++) {
        REAL slope = scale, x = STEP(STEP(STEP(grid[p] + 1) * scale) - shift);
        if (mode != SAMPLE_CUBIC)
            x = F(padded)(x, size, padding, corners, steps, &slope);
        if (mode == SAMPLE_NEAREST) {
            line->at[0][p] = F(inside)(F(round_)(x), size);
            continue;
        }
        const REAL low = F(floor_)(x), t = x - low;
        if (mode == SAMPLE_LINEAR) {
            line->at[0][p] = F(inside)(low, size);
            line->at[1][p] = F(inside)(low + 1, size);
            line->by[0][p] = 1 - t;
            line->by[1][p] = t;
            line->slope[0][p] = -slope;
            line->slope[1][p] = slope;
            continue;
        }
        /* Keys' kernel at the distances 1 + t, t, 1 - t and 2 - t. */
        const REAL a = (REAL)-0.75, away[4] = {STEP(t + 1), t, STEP(1 - t), STEP(2 - t)};
        for (int k = 0; k < 4; k++) {
            REAL unused = 0, d = away[k], sign = k < 2 ? scale : -scale;
            line->at[k][p] = F(inside)(F(padded)(STEP(low + (REAL)(k - 1)), size, padding, corners, steps, &unused), size);
            line->by[k][p] = k == 1 || k == 2 ? STEP(STEP(STEP(STEP(STEP((a + 2) * d) - (a + 3)) * d) * d) + 1)
                                              : STEP(STEP(STEP(STEP(STEP(STEP(a * d) - 5 * a) * d) + 8 * a) * d) - 4 * a);
            line->slope[k][p] = sign * (k == 1 || k == 2 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a);
        }
    }
}

/* Of half types, which take more steps than they are worth loops of their own for. What is behind `count` is outside. */
static __attribute__((noinline)) void F(place_halves)(const sample_what *what, const REAL *grid, ptrdiff_t count, int dim,
                                                      F(sample_line) *line) {
    if (count < SAMPLE_BLOCK) {
        memset(line->at, 0xff, sizeof line->at);
        memset(line->by, 0, sizeof line->by);
    }
    F(place)(what->mode, what->padding, what->corners, what->steps, grid, what->size[dim], count, line);
}

#define PADDED(mode)                                                                                          \
    if (what->padding == SAMPLE_ZEROS)                                                                        \
        F(place)(mode, SAMPLE_ZEROS, corners, SAMPLE_FULL, along[i], what->size[i], SAMPLE_BLOCK, &lines[i]); \
    else if (what->padding == SAMPLE_BORDER)                                                                  \
        F(place)(mode, SAMPLE_BORDER, corners, SAMPLE_FULL, along[i], what->size[i], SAMPLE_BLOCK, &lines[i]); \
    else                                                                                                      \
        F(place)(mode, SAMPLE_REFLECTION, corners, SAMPLE_FULL, along[i], what->size[i], SAMPLE_BLOCK, &lines[i])

/* A block's coordinates dim by dim: x, the place along the last dim, comes first in the grid. What is read back as vectors is
   written as vectors, since a load waits for smaller stores to reach the cache. */
static void F(split)(const sample_what *what, const REAL *grid, ptrdiff_t count, REAL along[3][SAMPLE_BLOCK]) {
    const int dims = what->dims;
    ptrdiff_t p = 0;
    if (count < SAMPLE_BLOCK)
        memset(along, 0, (size_t)dims * sizeof *along);
    for (; dims == 2 && p + LANES <= count; p += LANES) {
        const V low = *(const V_U *)(grid + 2 * p), high = *(const V_U *)(grid + 2 * p + LANES);
        *(V_U *)(along[1] + p) = F(unzip)(low, high, 0);
        *(V_U *)(along[0] + p) = F(unzip)(low, high, 1);
    }
    for (; p < count; p++)
        for (int i = 0; i < dims; i++)
            along[i][p] = grid[p * dims + dims - 1 - i];
}

/* The lines of all dims of a block, whose first `count` places are there. */
static void F(place_block)(const sample_what *what, const REAL *grid, ptrdiff_t count, F(sample_line) *lines) {
    REAL along[3][SAMPLE_BLOCK];
    const bool corners = what->corners;
    F(split)(what, grid, count, along);
    for (int i = 0; i < what->dims; i++) {
        if (sizeof(REAL) == sizeof(float) && what->steps) {
            F(place_halves)(what, along[i], count, i, &lines[i]);
        } else if (what->mode == SAMPLE_LINEAR) {
            PADDED(SAMPLE_LINEAR);
        } else if (what->mode == SAMPLE_NEAREST) {
            PADDED(SAMPLE_NEAREST);
        } else {
            PADDED(SAMPLE_CUBIC);
        }
    }
}

#undef PADDED
#undef STEP
