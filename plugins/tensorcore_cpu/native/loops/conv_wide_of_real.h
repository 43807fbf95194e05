/* The loops of convolutions that have outs enough to fill vectors, for one type; included after conv_of_real.h.

   A tile is a run of positions of one row, whose inputs are read one by one where they lie, and some vectors of outs: nothing is
   copied, the rows may be short, and a step between the windows costs nothing. What is made is turned on the way out. */

static ptrdiff_t F(wide_outs)(ptrdiff_t outs) { return (outs + F(WIDE) - 1) / F(WIDE); }

/* The weights of blocks [begin, end) of outs, with the outs side by side. */
static void F(wide_pack)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t inner = job->channels * job->taps;
    for (ptrdiff_t o = begin * F(WIDE); o < at_most(end * F(WIDE), job->outs); o += F(WIDE))
        F(transpose)((const REAL *)job->weight + o * job->weight_out, job->weight_out, at_most(F(WIDE), job->outs - o), inner,
                     (REAL *)job->packed + o * inner, F(WIDE));
}

/* What channels [begin, end) add to `height` positions, which begin at `image`. */
ALWAYS_INLINE void F(wide_tile)(const conv_job *job, const REAL *image, const REAL *columns, ptrdiff_t begin, ptrdiff_t end,
                                const REAL *before, ptrdiff_t before_step, REAL *made, int height, int vectors, int step) {
    V sums[WIDE_HEIGHT][WIDE_VECTORS];
    const ptrdiff_t each = step ? step : job->move[2];
#pragma GCC unroll 16
    for (int r = 0; r < height; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[r][v] = (V){0};
    for (const REAL *channel = image + begin * job->channel; begin < end; begin++, channel += job->channel)
        for (ptrdiff_t t = 0; t < job->taps; t++, columns += F(WIDE)) {
            const REAL *row = channel + job->offsets[t];
            V right[WIDE_VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                right[v] = F(load)(columns + v * LANES);
#pragma GCC unroll 16
            for (int r = 0; r < height; r++) {
                const REAL left = row[r * each];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    sums[r][v] += right[v] * left;
            }
        }
#pragma GCC unroll 16
    for (int r = 0; r < height; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            F(store)(made + r * F(WIDE) + v * LANES, sums[r][v] + F(load)(before + r * before_step + v * LANES));
}

typedef void (*F(wide_function))(const conv_job *job, const REAL *image, const REAL *columns, ptrdiff_t begin, ptrdiff_t end,
                                 const REAL *before, ptrdiff_t before_step, REAL *made);
#define TILE_OF(height, vectors, step)                                                                                     \
    static void F(wide_##height##x##vectors##x##step)(const conv_job *job, const REAL *image, const REAL *columns,        \
                                                      ptrdiff_t begin, ptrdiff_t end, const REAL *before,                 \
                                                      ptrdiff_t before_step, REAL *made) {                                \
        F(wide_tile)(job, image, columns, begin, end, before, before_step, made, height, vectors, step);                  \
    }
#define TILE(height)                                                                                \
    TILE_OF(height, 1, 0) TILE_OF(height, 1, 1) TILE_OF(height, 1, 2) TILE_OF(height, 2, 0) TILE_OF(height, 2, 1) TILE_OF(height, 2, 2)
WIDE_HEIGHTS(TILE)
#undef TILE
#undef TILE_OF
#define TILE_OF(height, vectors, step) [vectors - 1][step] = F(wide_##height##x##vectors##x##step)
#define TILE(height) \
    [height] = {TILE_OF(height, 1, 0), TILE_OF(height, 1, 1), TILE_OF(height, 1, 2), \
                TILE_OF(height, 2, 0), TILE_OF(height, 2, 1), TILE_OF(height, 2, 2)},
static const F(wide_function) F(wide_functions)[WIDE_HEIGHT + 1][WIDE_VECTORS][3] = {WIDE_HEIGHTS(TILE)};
#undef TILE
#undef TILE_OF

/* The position of all images at which a piece begins. */
static ptrdiff_t F(wide_start)(const conv_job *job, ptrdiff_t piece) {
    return piece / job->pieces * job->counts[2] + job->counts[2] * (piece % job->pieces) / job->pieces;
}

static ptrdiff_t F(wide_room)(const conv_job *job) {
    return job->together * ((job->counts[2] + job->pieces - 1) / job->pieces) * F(WIDE) * (ptrdiff_t)sizeof(REAL);
}

/* Counts pieces of rows of outputs; `together` of them go over the weights at once. */
static void F(wide)(const conv_job *job, void *room, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t width = job->counts[2], pieces = job->pieces, rows_of_image = job->counts[0] * job->counts[1];
    const ptrdiff_t some = at_least(1, WIDE_INNER / job->taps);
    const ptrdiff_t step = job->move[2] <= 2 ? job->move[2] : 0; /* those of one and two have loops of their own */
    REAL *const made = room;
    for (ptrdiff_t piece = begin, last; piece < end; piece = last) {
        const ptrdiff_t first = F(wide_start)(job, piece);
        last = at_most(piece + job->together, end);
        for (ptrdiff_t o = 0; o < job->outs; o += F(WIDE)) {
            const ptrdiff_t outs = at_most(F(WIDE), job->outs - o), vectors = (outs + LANES - 1) / LANES;
            REAL bias[F(WIDE)] = {0};
            for (ptrdiff_t i = 0; job->bias && i < outs; i++)
                bias[i] = ((const REAL *)job->bias)[o + i];
            for (ptrdiff_t c = 0; c < job->channels; c += some) {
                const REAL *columns = (const REAL *)job->packed + (o * job->channels + c * F(WIDE)) * job->taps;
                for (ptrdiff_t i = piece; i < last; i++) {
                    const ptrdiff_t row = i / pieces, z = row % rows_of_image / job->counts[1], y = row % job->counts[1];
                    const ptrdiff_t start = F(wide_start)(job, i), count = F(wide_start)(job, i + 1) - start;
                    const ptrdiff_t parts = (count + WIDE_HEIGHT - 1) / WIDE_HEIGHT;
                    const REAL *image = (const REAL *)job->images + row / rows_of_image * job->image + z * job->move[0] +
                                        y * job->move[1] + (start - row * width) * job->move[2];
                    for (ptrdiff_t part = 0, x = 0, next; part < parts; part++, x = next) {
                        next = count * (part + 1) / parts;
                        REAL *to = made + (start - first + x) * F(WIDE);
                        F(wide_functions)[next - x][vectors - 1][step](
                            job, image + x * job->move[2], columns, c, at_most(c + some, job->channels), c ? to : bias,
                            c ? F(WIDE) : 0, to);
                    }
                }
            }
            /* Rows of one image lie behind each other. */
            for (ptrdiff_t i = piece, next; i < last; i = next) {
                const ptrdiff_t image = i / pieces / rows_of_image, start = F(wide_start)(job, i);
                next = at_most(last, (image + 1) * rows_of_image * pieces);
                REAL *to = (REAL *)job->made + image * job->made_image + start - image * rows_of_image * width;
                for (ptrdiff_t lane = 0; lane < outs; lane += LANES)
                    F(turn_out)(made + (start - first) * F(WIDE) + lane, F(WIDE), F(wide_start)(job, next) - start,
                                at_most(LANES, outs - lane), to + (o + lane) * job->made_out, job->made_out);
            }
        }
    }
}
