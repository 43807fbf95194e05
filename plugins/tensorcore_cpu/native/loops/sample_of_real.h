/* Images read at places, and the gradients, for one type. */

enum { F(MOST_TAPS) = 16 };

/* The elements of a plane that each place of a block is made of: their flat indices, -1 for what is outside, and weights. */
typedef struct {
    INT at[F(MOST_TAPS)][SAMPLE_BLOCK] __attribute__((aligned(64)));
    REAL by[F(MOST_TAPS)][SAMPLE_BLOCK] __attribute__((aligned(64)));
} F(sample_taps);

/* How many elements of one dim make a place. */
ALWAYS_INLINE int F(reach)(const sample_what *what) {
    return what->mode == SAMPLE_NEAREST ? 1 : what->mode == SAMPLE_LINEAR ? 2 : 4;
}

ALWAYS_INLINE int F(taps_of)(const sample_what *what) {
    const int reach = F(reach)(what);
    return what->dims == 3 ? reach * reach * reach : reach * reach;
}

/* Which element of each dim combination k has: the last dim's change the fastest. */
ALWAYS_INLINE void F(choose)(int k, int reach, int dims, int *chosen) {
    chosen[2] = 0;
    for (int i = dims - 1; i >= 0; i--, k /= reach)
        chosen[i] = k % reach;
}

/* All combinations of the dims' elements. */
ALWAYS_INLINE void F(combine_for)(const sample_what *what, const F(sample_line) *lines, F(sample_taps) *taps, int reach,
                                  int dims) {
    const INT rows = (INT)what->size[1], columns = (INT)what->size[2];
    for (int k = 0; k < (dims == 3 ? reach * reach * reach : reach * reach); k++) {
        int chosen[3];
        F(choose)(k, reach, dims, chosen);
        const INT *first = lines[0].at[chosen[0]], *second = lines[1].at[chosen[1]], *third = lines[2].at[chosen[2]];
        const REAL *by = lines[0].by[chosen[0]], *times = lines[1].by[chosen[1]], *more = lines[2].by[chosen[2]];
        INT *at = taps->at[k];
        REAL *weight = taps->by[k];
        INDEPENDENT for (ptrdiff_t p = 0; p < SAMPLE_BLOCK; p++) {
            const INT outside = first[p] | second[p], plane = first[p] * rows + second[p];
            at[p] = dims == 3 ? ((outside | third[p]) < 0 ? -1 : plane * columns + third[p]) : outside < 0 ? -1 : plane;
            weight[p] = reach == 1 ? 1 : dims == 3 ? by[p] * times[p] * more[p] : by[p] * times[p];
        }
    }
}

static void F(combine)(const sample_what *what, const F(sample_line) *lines, F(sample_taps) *taps) {
    if (what->mode == SAMPLE_CUBIC)
        F(combine_for)(what, lines, taps, 4, 2);
    else if (what->mode == SAMPLE_NEAREST && what->dims == 3)
        F(combine_for)(what, lines, taps, 1, 3);
    else if (what->mode == SAMPLE_NEAREST)
        F(combine_for)(what, lines, taps, 1, 2);
    else if (what->dims == 3)
        F(combine_for)(what, lines, taps, 2, 3);
    else
        F(combine_for)(what, lines, taps, 2, 2);
}

/* One element as `gathered` takes them. */
ALWAYS_INLINE REAL F(at_or_zero)(const REAL *x, INT at) { return at < 0 ? 0 : x[at]; }

/* A block of places of each channel. Each count of taps has loops of its own: in one function the weights of all of them would be
   fetched for each block. */
ALWAYS_INLINE void F(read_block)(const sample_what *what, const F(sample_taps) *taps, const REAL *x, REAL *out,
                                 ptrdiff_t count, int all) {
    for (ptrdiff_t c = 0; c < what->channels; c++, x += what->plane, out += what->places) {
        ptrdiff_t p = 0;
        for (; p + LANES <= count; p += LANES) {
            V sum = F(gathered)(x, *(const VI *)&taps->at[0][p]);
            if (all > 1)
                sum *= V_AT(taps->by[0], p);
            for (int k = 1; k < all; k++)
                sum += F(gathered)(x, *(const VI *)&taps->at[k][p]) * V_AT(taps->by[k], p);
            *(V_U *)(out + p) = sum;
        }
        for (; p < count; p++) {
            REAL sum = F(at_or_zero)(x, taps->at[0][p]);
            if (all > 1)
                sum *= taps->by[0][p];
            for (int k = 1; k < all; k++)
                sum += F(at_or_zero)(x, taps->at[k][p]) * taps->by[k][p];
            out[p] = sum;
        }
    }
}

static void F(read)(const sample_what *what, const void *x, const void *places, void *out, ptrdiff_t begin, ptrdiff_t end) {
    const REAL *grid = places;
    F(sample_line) lines[3];
    F(sample_taps) taps;
    const int all = F(taps_of)(what);
    for (; begin < end; begin += SAMPLE_BLOCK) {
        const ptrdiff_t count = end - begin < SAMPLE_BLOCK ? end - begin : SAMPLE_BLOCK;
        F(place_block)(what, grid + begin * what->dims, count, lines);
        F(combine)(what, lines, &taps);
        switch (all) {
        case 1: F(read_block)(what, &taps, x, (REAL *)out + begin, count, 1); break;
        case 4: F(read_block)(what, &taps, x, (REAL *)out + begin, count, 4); break;
        case 8: F(read_block)(what, &taps, x, (REAL *)out + begin, count, 8); break;
        default: F(read_block)(what, &taps, x, (REAL *)out + begin, count, 16);
        }
    }
}

static void F(spread)(const sample_what *what, const void *gradient, const void *places, void *to, ptrdiff_t first,
                      ptrdiff_t stop) {
    const REAL *grid = places;
    F(sample_line) lines[3];
    F(sample_taps) taps;
    const int all = F(taps_of)(what);
    for (ptrdiff_t begin = 0; begin < what->places; begin += SAMPLE_BLOCK) {
        const ptrdiff_t count = what->places - begin < SAMPLE_BLOCK ? what->places - begin : SAMPLE_BLOCK;
        F(place_block)(what, grid + begin * what->dims, count, lines);
        F(combine)(what, lines, &taps);
        for (ptrdiff_t c = first; c < stop; c++) {
            const REAL *g = (const REAL *)gradient + c * what->places + begin;
            REAL *out = (REAL *)to + c * what->plane;
            for (int k = 0; k < all; k++)
                for (ptrdiff_t p = 0; p < count; p++)
                    if (taps.at[k][p] >= 0)
                        out[taps.at[k][p]] += g[p] * taps.by[k][p];
        }
    }
}

/* Products of the gradient with what each tap reads, over all channels, come first: the slopes of the weights are the same for
   all of them. */
static void F(slope)(const sample_what *what, const void *gradient, const void *from, const void *places, void *to,
                     ptrdiff_t begin, ptrdiff_t end) {
    const REAL *grid = places;
    F(sample_line) lines[3];
    F(sample_taps) taps;
    REAL dots[F(MOST_TAPS)][SAMPLE_BLOCK] __attribute__((aligned(64)));
    const int reach = F(reach)(what), all = F(taps_of)(what), dims = what->dims;
    for (; begin < end; begin += SAMPLE_BLOCK) {
        const ptrdiff_t count = end - begin < SAMPLE_BLOCK ? end - begin : SAMPLE_BLOCK;
        F(place_block)(what, grid + begin * dims, count, lines);
        F(combine)(what, lines, &taps);
        for (int k = 0; k < all; k++)
            for (ptrdiff_t p = 0; p < count; p++)
                dots[k][p] = 0;
        for (ptrdiff_t c = 0; c < what->channels; c++) {
            const REAL *g = (const REAL *)gradient + c * what->places + begin, *x = (const REAL *)from + c * what->plane;
            for (int k = 0; k < all; k++) {
                ptrdiff_t p = 0;
                for (; p + LANES <= count; p += LANES)
                    *(V_U *)&dots[k][p] += V_AT(g, p) * F(gathered)(x, *(const VI *)&taps.at[k][p]);
                for (; p < count; p++)
                    dots[k][p] += g[p] * F(at_or_zero)(x, taps.at[k][p]);
            }
        }
        for (int i = 0; i < dims; i++) {
            REAL *out = (REAL *)to + begin * dims + dims - 1 - i, sums[SAMPLE_BLOCK] = {0};
            const int near = i == 0, far = i == 2 ? 1 : 2; /* the other dims */
            for (int k = 0; k < all; k++) {
                int chosen[3];
                F(choose)(k, reach, dims, chosen);
                const REAL *slope = lines[i].slope[chosen[i]], *by = lines[near].by[chosen[near]];
                const REAL *more = lines[far].by[chosen[far]];
                for (ptrdiff_t p = 0; p < count; p++)
                    sums[p] += dots[k][p] * (slope[p] * (dims == 3 ? by[p] * more[p] : by[p]));
            }
            for (ptrdiff_t p = 0; p < count; p++)
                out[p * dims] = sums[p];
        }
    }
}
