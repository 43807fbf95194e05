/* Products whose left side has many zeros, as behind a ReLU: rows of it as lists of what is not zero. Included once for each
   type, behind gemm_of_real.h.

   What is left out would have added zeros, so the bits are those of `multiply`; where the right side has what times zero is no
   zero, nothing is left out. An element of a list takes a load for each product and one of its own, so rows that are mostly
   full are made in tiles, as ever. */

typedef struct {
    REAL *values, *partial;
    int32_t *places;
    int32_t *starts; /* of the blocks of each row as they lie now, and the end */
    int32_t *order;  /* which row that is; the `full` ones, which are no lists, lie in front */
    int32_t *full;
    int32_t *live; /* of these, behind whether that is worth it */
} F(lists);

/* The parts of a room, which begins at an address divisible by 64; answers with the end. */
static char *F(lay_lists)(char *room, ptrdiff_t rows, ptrdiff_t inner, F(lists) *made) {
    const ptrdiff_t elements = rows * (inner + LANES) / LANES * LANES + 2 * LANES;
    made->values = (REAL *)room;
    made->partial = made->values + elements;
    made->places = (int32_t *)(made->partial + rows * PANELS * F(WIDTH));
    made->starts = made->places + elements;
    made->order = made->starts + rows * (BLOCKS + 1);
    made->full = made->order + rows;
    made->live = made->full + 1;
    return (char *)(made->live + 1) + F(live_bytes)(rows, inner);
}

static ptrdiff_t F(lists_bytes)(ptrdiff_t rows, ptrdiff_t inner) {
    F(lists) unused;
    char *const room = (char *)64; /* any: nothing is read or written */
    return F(lay_lists)(room, rows, inner, &unused) - room;
}

static bool F(nearly_full)(const REAL *row, ptrdiff_t inner, ptrdiff_t live) {
    int32_t found = 0;
    for (ptrdiff_t k = 0; k < inner; k++)
        found += row[k] != 0;
    return FULL_OF * (ptrdiff_t)found > FULL * live;
}

static void F(swap_rows)(REAL *a, REAL *b, ptrdiff_t inner) {
    for (ptrdiff_t k = 0; k < inner; k++) {
        const REAL value = a[k];
        a[k] = b[k];
        b[k] = value;
    }
}

/* The rows of packed ones that are not nearly full as lists, in blocks; they come to lie behind the others. Answers whether
   there are enough of them to be worth it; if not, all lie as they did. */
static bool F(list)(const gemm_part *part, void *packed, void *room) {
    REAL *left = packed;
    F(lists) of;
    F(lay_lists)(room, part->rows, part->inner, &of);
    ptrdiff_t full = 0, end = part->rows;
    const ptrdiff_t live = F(live_of)(left, F(LEFT_STEP), part->rows, part->inner, of.places); /* tiles make no others */
    for (ptrdiff_t r = 0; r < part->rows; r++) {
        of.order[r] = F(nearly_full)(left + r * F(LEFT_STEP), part->inner, live); /* until it is known which row lies there */
        full += of.order[r];
    }
    if (FEW_LISTS * (part->rows - full) < part->rows)
        return false;
    *of.full = (int32_t)full;
    for (ptrdiff_t at = 0; at < full; at++) {
        const bool stays = of.order[at];
        of.order[at] = (int32_t)at;
        if (stays)
            continue;
        while (!of.order[--end])
            of.order[end] = (int32_t)end;
        of.order[at] = (int32_t)end;
        of.order[end] = (int32_t)at;
        F(swap_rows)(left + at * F(LEFT_STEP), left + end * F(LEFT_STEP), part->inner);
    }
    while (end > full) {
        end--;
        of.order[end] = (int32_t)end;
    }
    *of.live = F(find_live_rows)(left, F(LEFT_STEP), full, part->inner, of.live + 1);
    int32_t found = 0;
    for (ptrdiff_t i = full; i < part->rows; i++) {
        int32_t *starts = of.starts + i * (BLOCKS + 1);
        for (ptrdiff_t b = 0; b < BLOCKS; b++) {
            const ptrdiff_t k = b * BLOCK, count = part->inner - k < BLOCK ? part->inner - k : BLOCK;
            starts[b] = found;
            if (count > 0)
                found += F(compress)(left + i * F(LEFT_STEP) + k, count, (int32_t)(k * F(WIDTH)), F(WIDTH),
                                     of.values + found, of.places + found);
        }
        starts[BLOCKS] = found;
    }
    return true;
}

/* One block of the rows that are lists, by some panels of columns. Between blocks their sums lie in `partial`. */
ALWAYS_INLINE void F(list_block)(const gemm_job *job, const gemm_part *part, const F(lists) *of, const REAL *columns,
                                 ptrdiff_t block, int panels) {
    const ptrdiff_t step = part->inner * F(WIDTH), wide = panels * F(WIDTH);
    const bool last = (block + 1) * BLOCK >= part->inner, whole = part->columns == wide;
    const int32_t *next_starts = of->starts + *of->full * (BLOCKS + 1) + block;
    ptrdiff_t next_first = next_starts[0], next_count = next_starts[1] - next_first;
    for (ptrdiff_t i = *of->full; i < part->rows; i++) {
        const ptrdiff_t count = next_count;
        const REAL *values = of->values + next_first;
        const int32_t *places = of->places + next_first;
        if (i + 1 < part->rows) { /* known and near when this row's loop ends, which is hard to foresee */
            next_starts += BLOCKS + 1;
            next_first = next_starts[0];
            next_count = next_starts[1] - next_first;
            __builtin_prefetch(of->values + next_first);
            __builtin_prefetch(of->places + next_first);
        }
        REAL *made = (REAL *)job->made + (part->row + of->order[i]) * job->made_row + part->column;
        if (last)
#pragma GCC unroll 8
            for (int v = 0; v < VECTORS * panels; v++)
                __builtin_prefetch(made + v * LANES, 1);
        if (!count && block && !last)
            continue;
        REAL *partial = of->partial + i * PANELS * F(WIDTH);
        V sums[VECTORS * PANELS];
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS * panels; v++)
            sums[v] = block ? F(load)(partial + v * LANES) : (V){0};
        for (ptrdiff_t e = 0; e < count; e++) {
            const REAL left = values[e], *at = columns + places[e];
#pragma GCC unroll 4
            for (int p = 0; p < panels; p++)
#pragma GCC unroll 2
                for (int v = 0; v < VECTORS; v++)
                    sums[p * VECTORS + v] += F(load)(at + p * step + v * LANES) * left;
        }
        const REAL *before = NULL;
        if (part->first)
            before = made;
        else if (job->before)
            before = (const REAL *)job->before + (part->row + of->order[i]) * job->before_row + part->column;
        const bool direct = last && whole;
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS * panels; v++)
            F(store)((direct ? made : partial) + v * LANES,
                     direct ? sums[v] + (before ? F(load)(before + v * LANES) : (V){0}) : sums[v]);
        if (last && !whole)
            for (ptrdiff_t c = 0; c < part->columns; c++)
                made[c] = partial[c] + (before ? before[c] : 0);
    }
}

/* The rows that are lists, by the columns of a part, which are at most PANELS panels. */
static void F(multiply_listed)(const gemm_job *job, const gemm_part *part, const F(lists) *of, const REAL *columns) {
    const ptrdiff_t panels = (part->columns + F(WIDTH) - 1) / F(WIDTH);
    for (ptrdiff_t block = 0; block * BLOCK < part->inner; block++)
        switch (panels) {
        case 1: F(list_block)(job, part, of, columns, block, 1); break;
        case 2: F(list_block)(job, part, of, columns, block, 2); break;
        case 3: F(list_block)(job, part, of, columns, block, 3); break;
#if VECTOR < 64
        case 4: F(list_block)(job, part, of, columns, block, 4); break;
#endif
        }
}

static void F(multiply_lists)(const gemm_job *job, const gemm_part *part, const void *left, const void *right, void *panel,
                              void *room) {
    F(lists) of;
    F(lay_lists)(room, part->rows, part->inner, &of);
    const F(lefts) lefts = F(lefts_of)(job, part, left);
    const ptrdiff_t all = (part->columns + F(WIDTH) - 1) / F(WIDTH), turns = (all + PANELS - 1) / PANELS;
    for (ptrdiff_t turn = 0; turn < turns; turn++) { /* of about as many panels each: few are no less work for a list's elements */
        const ptrdiff_t j = all * turn / turns * F(WIDTH), end = all * (turn + 1) / turns * F(WIDTH);
        gemm_part some = *part;
        some.column += j;
        some.columns = (end < part->columns ? end : part->columns) - j;
        const REAL *columns = right ? (const REAL *)right + j * part->inner : panel;
        if (!right)
            F(pack_right)(job, &some, panel);
        const ptrdiff_t panels = (some.columns + F(WIDTH) - 1) / F(WIDTH);
        const bool finite = F(is_finite)(columns, panels * F(WIDTH) * part->inner);
        for (ptrdiff_t p = 0; p < panels; p++) {
            gemm_part one = some;
            one.column += p * F(WIDTH);
            one.columns = some.columns - p * F(WIDTH) < F(WIDTH) ? some.columns - p * F(WIDTH) : F(WIDTH);
            one.rows = finite ? *of.full : part->rows;
            one.live = finite && *of.live ? of.live + 1 : NULL;
            F(tiles)(job, &one, &lefts, columns + p * F(WIDTH) * part->inner, F(WIDTH), of.order);
        }
        if (finite)
            F(multiply_listed)(job, &some, &of, columns);
    }
}
