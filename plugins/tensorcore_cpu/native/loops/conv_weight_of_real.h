/* The loops of the weight's gradient of convolutions for one type; included after conv_of_real.h. */

/* For the weight's gradient: `sent` of images [begin, end), with the outs of each block side by side for each position, and
   zeros to whole vectors. */
static ptrdiff_t F(block_width)(const conv_weight_job *job, ptrdiff_t block) {
    const ptrdiff_t whole = (job->outs + LANES - 1) / LANES * LANES;
    return at_most(F(WEIGHT_COLUMNS), whole - block * F(WEIGHT_COLUMNS));
}

static REAL *F(turned_at)(const conv_weight_job *job, ptrdiff_t image, ptrdiff_t block) {
    const ptrdiff_t positions = job->counts[0] * job->counts[1] * job->counts[2];
    const ptrdiff_t whole = (job->outs + LANES - 1) / LANES * LANES;
    return (REAL *)job->turned + positions * (image * whole + block * F(WEIGHT_COLUMNS));
}

static void F(turn_sent)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t positions = job->counts[0] * job->counts[1] * job->counts[2];
    for (ptrdiff_t image = begin; image < end; image++) {
        for (ptrdiff_t first = 0, block = 0; first < job->outs; first += F(WEIGHT_COLUMNS), block++) {
            REAL *to = F(turned_at)(job, image, block);
            const ptrdiff_t width = F(block_width)(job, block), outs = at_most(job->outs - first, width);
            const REAL *from = (const REAL *)job->sent + image * job->sent_image + first * job->sent_out;
            F(transpose)(from, job->sent_out, outs, positions, to, width);
        }
    }
}

/* Rows [begin, end) of outputs, counted over depth and height, of images [first, last). */
typedef struct {
    ptrdiff_t first, last, begin, end;
} F(weight_part);

/* One tile: rows are (channel, tap) pairs, columns are outs; what a part adds to the sums. `sent` and `rows` are those of
   image 0. */
ALWAYS_INLINE void F(weight_tile)(const conv_weight_job *job, const F(weight_part) *part, const REAL *const *rows,
                                  const REAL *sent_of, ptrdiff_t sent_image, V *sums, int vectors) {
    V found[WEIGHT_ROWS][WEIGHT_VECTORS];
    for (int r = 0; r < WEIGHT_ROWS; r++)
        for (int v = 0; v < vectors; v++)
            found[r][v] = (V){0};
    for (ptrdiff_t image = part->first; image < part->last; image++) {
        const REAL *sent = sent_of + image * sent_image + part->begin * job->counts[2] * vectors * LANES;
        ptrdiff_t z = part->begin ? part->begin / job->counts[1] : 0, y = part->begin - z * job->counts[1];
        for (ptrdiff_t i = part->begin; i < part->end; i++) {
            const ptrdiff_t row = image * job->image + z * job->move[0] + y * job->move[1];
            for (ptrdiff_t x = row; x < row + job->counts[2]; x++, sent += vectors * LANES) {
                V right[WEIGHT_VECTORS];
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    right[v] = F(load)(sent + v * LANES);
#pragma GCC unroll 16
                for (int r = 0; r < WEIGHT_ROWS; r++) {
                    const REAL left = rows[r][x];
#pragma GCC unroll 8
                    for (int v = 0; v < vectors; v++)
                        found[r][v] += right[v] * left;
                }
            }
            if (++y == job->counts[1]) {
                y = 0;
                z++;
            }
        }
    }
    for (int r = 0; r < WEIGHT_ROWS; r++)
        for (int v = 0; v < vectors; v++)
            sums[r * WEIGHT_VECTORS + v] += found[r][v];
}

/* Writes the sums of some tiles of a block of outs: whole vectors of pairs where there are any. */
static void F(deliver_weight)(const conv_weight_job *job, const REAL *sums, ptrdiff_t block, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t inner = job->channels * job->taps, last = at_most(end * WEIGHT_ROWS, inner);
    const ptrdiff_t outs = at_most(job->outs, (block + 1) * F(WEIGHT_COLUMNS));
    for (ptrdiff_t o = block * F(WEIGHT_COLUMNS); o < outs; o += LANES) {
        const ptrdiff_t across = at_most(LANES, outs - o);
        const REAL *from = sums + o - block * F(WEIGHT_COLUMNS);
        for (ptrdiff_t pair = begin * WEIGHT_ROWS; pair < last; pair += LANES, from += LANES * F(WEIGHT_COLUMNS)) {
            REAL *to = (REAL *)job->made + o * inner + pair;
            const ptrdiff_t down = at_most(LANES, last - pair);
            if (across == LANES && down == LANES) {
                F(turn)(from, F(WEIGHT_COLUMNS), LANES, to, inner);
                continue;
            }
            for (ptrdiff_t i = 0; i < across; i++)
                for (ptrdiff_t r = 0; r < down; r++)
                    to[i * inner + r] = from[r * F(WEIGHT_COLUMNS) + i];
        }
    }
}

/* Tiles of WEIGHT_ROWS (channel, tap) pairs, for all outs. Parts of what was sent, of whole images or of whole rows, go round
   outside: one of them stays in the second cache. Where all of it does, some tiles go round outside, and their sums stay there. */
static void F(weight_tiles)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t inner = job->channels * job->taps, outs = (job->outs + LANES - 1) / LANES * LANES;
    const ptrdiff_t blocks = (job->outs + F(WEIGHT_COLUMNS) - 1) / F(WEIGHT_COLUMNS);
    const ptrdiff_t each = WEIGHT_ROWS * WEIGHT_VECTORS, rows_of_image = job->counts[0] * job->counts[1];
    const ptrdiff_t of_block = (inner + WEIGHT_ROWS - 1) / WEIGHT_ROWS * each;
    const ptrdiff_t row_bytes = job->counts[2] * outs * (ptrdiff_t)sizeof(REAL);
    const ptrdiff_t at_once = at_least(1, SENT / row_bytes), some = at_most(at_once, rows_of_image);
    const ptrdiff_t images = some < rows_of_image ? 1 : at_once / rows_of_image;
    const ptrdiff_t sent_image = rows_of_image * job->counts[2] * outs;
    const ptrdiff_t tiles_at_once = images >= job->count ? LANES : end - begin;
    for (ptrdiff_t first = begin; first < end; first += tiles_at_once) {
        const ptrdiff_t last = at_most(first + tiles_at_once, end);
        for (ptrdiff_t block = 0; block < blocks; block++)
            memset((V *)job->sums + block * of_block + first * each, 0, (size_t)((last - first) * each) * sizeof(V));
        for (F(weight_part) part = {0}; part.first < job->count; part.first = part.end == rows_of_image ? part.last : part.first,
                           part.begin = part.end == rows_of_image ? 0 : part.end) {
            part.last = at_most(part.first + images, job->count);
            part.end = at_most(part.begin + some, rows_of_image);
            for (ptrdiff_t tile = first; tile < last; tile++) {
                const REAL *rows[WEIGHT_ROWS];
                for (ptrdiff_t r = 0; r < WEIGHT_ROWS; r++) {
                    ptrdiff_t pair = at_most(tile * WEIGHT_ROWS + r, inner - 1);
                    rows[r] = (const REAL *)job->images + pair / job->taps * job->channel + job->offsets[pair % job->taps];
                }
                for (ptrdiff_t block = 0; block < blocks; block++) {
                    const REAL *sent = F(turned_at)(job, 0, block);
                    V *into = (V *)job->sums + block * of_block + tile * each;
                    const ptrdiff_t vectors = F(block_width)(job, block) / LANES;
                    if (vectors == 1)
                        F(weight_tile)(job, &part, rows, sent, sent_image, into, 1);
                    else if (vectors == 2)
                        F(weight_tile)(job, &part, rows, sent, sent_image, into, 2);
                    else if (vectors == 3)
                        F(weight_tile)(job, &part, rows, sent, sent_image, into, WEIGHT_VECTORS < 3 ? WEIGHT_VECTORS : 3);
                    else
                        F(weight_tile)(job, &part, rows, sent, sent_image, into, WEIGHT_VECTORS);
                }
            }
        }
        for (ptrdiff_t block = 0; block < blocks; block++)
            F(deliver_weight)(job, (const REAL *)((V *)job->sums + block * of_block + first * each), block, first, last);
    }
}

/* The first `count` elements of a row, and zeros; what lies behind them is read. */
ALWAYS_INLINE V F(first_of)(const REAL *row, VI mask) { return (V)((VI)F(load)(row) & mask); }

/* Too few outs to fill a vector: vectors go along the rows of positions instead, for some taps at once. Where no whole vector
   is left of a row, or where what was sent ends, the rest counts as zeros on both sides. */
ALWAYS_INLINE void F(weight_taps)(const conv_weight_job *job, const REAL *sent, const REAL *images, const ptrdiff_t *offsets,
                                  VI mask, REAL *made, ptrdiff_t real_taps, int taps) {
    const ptrdiff_t width = job->counts[2], whole = width / LANES * LANES;
    const REAL *from[DIRECT_TAPS];
    V sums[DIRECT_TAPS];
#pragma GCC unroll 16
    for (int t = 0; t < taps; t++) {
        sums[t] = (V){0};
        from[t] = images + offsets[t < real_taps ? t : 0];
    }
    for (ptrdiff_t image = 0; image < job->count; image++) {
        const REAL *row_sent = sent + image * job->sent_image;
        for (ptrdiff_t z = 0; z < job->counts[0]; z++) {
            for (ptrdiff_t y = 0; y < job->counts[1]; y++, row_sent += width) {
                const ptrdiff_t row = image * job->image + z * job->move[0] + y * job->move[1];
                for (ptrdiff_t x = 0; x < whole; x += LANES) {
                    const V by = F(load)(row_sent + x);
#pragma GCC unroll 16
                    for (int t = 0; t < taps; t++)
                        sums[t] += F(load)(from[t] + row + x) * by;
                }
                if (whole == width)
                    continue;
                V by;
                if (row_sent + whole + LANES <= (const REAL *)job->sent_end) {
                    by = F(first_of)(row_sent + whole, mask);
                } else {
                    REAL last[LANES] = {0};
                    memcpy(last, row_sent + whole, (size_t)(width - whole) * sizeof(REAL));
                    by = F(load)(last);
                }
#pragma GCC unroll 16
                for (int t = 0; t < taps; t++)
                    sums[t] += F(first_of)(from[t] + row + whole, mask) * by;
            }
        }
    }
    for (int t = 0; t < taps && t < real_taps; t++) {
        REAL lanes[LANES];
        F(store)(lanes, sums[t]);
        for (int half = LANES / 2; half; half /= 2)
            for (int i = 0; i < half; i++)
                lanes[i] += lanes[i + half];
        made[t] = lanes[0];
    }
}

/* Counts (out, channel) pairs of all groups. */
static void F(weight_direct)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end) {
    VI mask;
    for (int i = 0; i < LANES; i++)
        mask[i] = i < job->counts[2] % LANES ? -1 : 0;
    for (ptrdiff_t one = begin; one < end; one++) {
        const ptrdiff_t o = one / job->channels, c = one % job->channels;
        const REAL *sent = (const REAL *)job->sent + o * job->sent_out;
        const REAL *images = (const REAL *)job->images + (o / job->outs * job->channels + c) * job->channel;
        for (ptrdiff_t t = 0; t < job->taps; t += DIRECT_TAPS) {
            REAL *made = (REAL *)job->made + one * job->taps + t;
            const ptrdiff_t *offsets = job->offsets + t, rest = job->taps - t;
            if (rest == 1)
                F(weight_taps)(job, sent, images, offsets, mask, made, rest, 1);
            else if (rest <= 3)
                F(weight_taps)(job, sent, images, offsets, mask, made, rest, 3);
            else if (rest <= 5)
                F(weight_taps)(job, sent, images, offsets, mask, made, rest, 5);
            else
                F(weight_taps)(job, sent, images, offsets, mask, made, rest, DIRECT_TAPS);
        }
    }
}
