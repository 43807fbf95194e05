/* Where images are read, for one type: whole places and how far a coordinate is behind them. */

/* The places of one block along one dim: up to four elements that each is between, -1 where there is none, their weights and
   the slopes of these. */
typedef struct {
    INT at[4][SAMPLE_BLOCK];
    REAL by[4][SAMPLE_BLOCK], slope[4][SAMPLE_BLOCK];
} F(sample_line);

/* The place inside that one outside stands for, and its slope: 0 at the bounds themselves, as in PyTorch. */
ALWAYS_INLINE REAL F(padded)(REAL x, REAL size, int padding, bool corners, REAL *slope) {
    if (padding == SAMPLE_ZEROS)
        return x;
    if (padding == SAMPLE_REFLECTION) {
        const REAL low = corners ? 0 : (REAL)-0.5, span = corners ? size - 1 : size;
        const REAL from = x - low, away = F(abs_)(from), flips = F(floor_)(away / span), extra = away - flips * span;
        const bool even = flips - 2 * F(floor_)(flips / 2) == 0;
        *slope = span == 0 ? 0 : (from < 0) == even ? -*slope : *slope;
        x = span == 0 ? x * 0 : even ? extra + low : span - extra + low;
    }
    const REAL last = size - 1;
    *slope = x > 0 && x < last ? *slope : 0;
    return x > 0 ? (x < last ? x : last) : 0; /* NaN is the first element */
}

/* A whole number as an index where it is one of the image's, else -1. */
ALWAYS_INLINE INT F(inside)(REAL x, REAL size) { return x >= 0 && x < size ? (INT)x : -1; }

/* Works out a line from a block of coordinates along a dim of that length. */
ALWAYS_INLINE void F(place)(int mode, int padding, bool corners, const REAL *grid, ptrdiff_t length, F(sample_line) *line) {
    const REAL size = (REAL)length, scale = corners ? (size - 1) / 2 : size / 2, shift = corners ? 0 : (REAL)0.5;
    INDEPENDENT for (ptrdiff_t p = 0; p < SAMPLE_BLOCK; p++) {
        REAL slope = scale, x = (grid[p] + 1) * scale - shift;
        if (mode != SAMPLE_CUBIC)
            x = F(padded)(x, size, padding, corners, &slope);
        if (mode == SAMPLE_NEAREST) {
            line->at[0][p] = F(inside)(F(round_)(x), size);
            line->by[0][p] = 1;
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
        const REAL a = (REAL)-0.75, away[4] = {t + 1, t, 1 - t, 2 - t};
        for (int k = 0; k < 4; k++) {
            REAL unused = 0, d = away[k], sign = k < 2 ? scale : -scale;
            line->at[k][p] = F(inside)(F(padded)(low + (REAL)(k - 1), size, padding, corners, &unused), size);
            line->by[k][p] = k == 1 || k == 2 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
            line->slope[k][p] = sign * (k == 1 || k == 2 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a);
        }
    }
}

#define PADDED(mode)                                                                                          \
    if (what->padding == SAMPLE_ZEROS)                                                                        \
        F(place)(mode, SAMPLE_ZEROS, corners, along, what->size[i], &lines[i]);                               \
    else if (what->padding == SAMPLE_BORDER)                                                                  \
        F(place)(mode, SAMPLE_BORDER, corners, along, what->size[i], &lines[i]);                              \
    else                                                                                                      \
        F(place)(mode, SAMPLE_REFLECTION, corners, along, what->size[i], &lines[i])

/* The lines of all dims of a block, whose first `count` places are there. */
static void F(place_block)(const sample_what *what, const REAL *grid, ptrdiff_t count, F(sample_line) *lines) {
    REAL along[SAMPLE_BLOCK] = {0};
    const bool corners = what->corners;
    for (int i = 0; i < what->dims; i++) {
        for (ptrdiff_t p = 0; p < count; p++)
            along[p] = grid[p * what->dims + what->dims - 1 - i]; /* x, the place along the last dim, comes first */
        if (what->mode == SAMPLE_LINEAR) {
            PADDED(SAMPLE_LINEAR);
        } else if (what->mode == SAMPLE_NEAREST) {
            PADDED(SAMPLE_NEAREST);
        } else {
            PADDED(SAMPLE_CUBIC);
        }
    }
}

#undef PADDED
