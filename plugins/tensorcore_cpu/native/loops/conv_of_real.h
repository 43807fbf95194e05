/* The loops of conv.c for one type, which REAL, V, V_U, LANES, ZIP and F describe; included once for each.

   A tile of outputs is a matrix product whose right side is gathered on the way: for a run of positions, the elements
   under each tap of each channel are copied side by side, once for all outs. The copy is small beside the product: each of its
   elements is used once for each out. (Implicit GEMM, as in Chetlur et al. 2014, "cuDNN: Efficient Primitives for Deep Learning".) */

enum { F(PLACE) = LANES, F(COLUMNS) = VECTORS * LANES, F(STRIDE) = F(COLUMNS) + LANES, F(WEIGHT_COLUMNS) = WEIGHT_VECTORS * LANES,
       F(WIDE) = WIDE_VECTORS * LANES };

#include "tile_of_real.h"

static ptrdiff_t F(packed_size)(ptrdiff_t outs, ptrdiff_t inner) {
    return at_least((outs + ROWS - 1) / ROWS * ROWS, (outs + F(WIDE) - 1) / F(WIDE) * F(WIDE)) * inner;
}

/* The weights with ROWS outs side by side; those that are too many are zeros. */
static void F(pack)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t inner = job->channels * job->taps;
    REAL *to = (REAL *)job->packed + begin * ROWS * inner;
    for (ptrdiff_t o = begin * ROWS; o < at_most(end * ROWS, job->outs); o += ROWS) {
        const REAL *weight = (const REAL *)job->weight + o * job->weight_out;
        const ptrdiff_t rows = at_most(ROWS, job->outs - o);
        if (job->weight_solid && (int)ROWS <= (int)LANES) {
            /* Its vectors may reach behind a column: behind the last one of [begin, end), where another thread packs, not. */
            _Static_assert((int)ROWS > (int)LANES || (int)LANES <= 2 * (int)ROWS, "they reach into one column");
            const bool last = o + ROWS >= at_most(end * ROWS, job->outs);
            F(transpose)(weight, job->weight_out, rows, inner - last, to, ROWS);
            to += inner * ROWS;
            for (ptrdiff_t r = 0; last && r < ROWS; r++)
                to[r - ROWS] = r < rows ? weight[r * job->weight_out + inner - 1] : 0;
            continue;
        }
        for (ptrdiff_t c = 0; c < job->channels; c++, weight += job->weight_channel) {
            for (ptrdiff_t t = 0; t < job->taps; t++, to += ROWS) {
                const REAL *from = weight + job->weight_at[t];
                if (rows == ROWS) {
#pragma GCC unroll 8
                    for (ptrdiff_t r = 0; r < ROWS; r++)
                        to[r] = from[r * job->weight_out];
                } else {
                    for (ptrdiff_t r = 0; r < ROWS; r++)
                        to[r] = r < rows ? from[r * job->weight_out] : 0;
                }
            }
        }
    }
}

/* A run of positions beside each other in one row of one image. */
typedef struct {
    ptrdiff_t length, from, to; /* where its windows start in the images, and where it is written */
} F(run);

/* A tile's positions as they are read, and as they are written: rows that are written one behind the other are one target. */
typedef struct {
    ptrdiff_t count, targets;
    F(run) runs[F(COLUMNS)], joined[F(COLUMNS)];
} F(cut);

/* Pairs of a channel and a tap whose copy stays in a cache while all outs go over it. */
static ptrdiff_t F(pairs_at_once)(const conv_job *job) {
    const ptrdiff_t bytes = job->shares > 1 ? COPIES / job->shares : COPY;
    return at_most(at_least(job->channels * job->taps, 1), bytes / (F(STRIDE) * (ptrdiff_t)sizeof(REAL)));
}

/* Of one tile: elements of its copy and of its products. */
static ptrdiff_t F(copied)(const conv_job *job) { return F(pairs_at_once)(job) * F(STRIDE); }
static ptrdiff_t F(products)(const conv_job *job) { return (job->outs + ROWS - 1) / ROWS * ROWS * F(COLUMNS); }

static ptrdiff_t F(tile_room)(const conv_job *job) {
    return job->together *
           ((F(copied)(job) + F(products)(job)) * (ptrdiff_t)sizeof(REAL) + (ptrdiff_t)sizeof(F(cut)));
}

static const REAL F(zeros)[F(COLUMNS)];

/* The products of `height` outs, added to what was made before or to zeros. */
ALWAYS_INLINE void F(packed_tile)(const REAL *rows, const REAL *columns, ptrdiff_t inner, REAL *made, bool first, int height,
                                  int vectors) {
    F(tile)(rows, 1, ROWS, columns, F(STRIDE), inner, first ? F(zeros) : made, first ? 0 : F(COLUMNS), made, F(COLUMNS), height,
            vectors);
}

/* The same of outs whose weights are read where they lie, for pairs [begin, end). */
ALWAYS_INLINE void F(lying_tile)(const conv_job *job, ptrdiff_t o, ptrdiff_t begin, ptrdiff_t end, const REAL *columns,
                                 REAL *made, int height, int vectors) {
    const REAL *rows[ROWS];
    V sums[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < height; r++) {
        rows[r] = (const REAL *)job->weight + (o + r) * job->weight_out;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            sums[r][v] = (V){0};
            __builtin_prefetch(made + r * F(COLUMNS) + v * LANES, 1);
        }
    }
    ptrdiff_t channel = begin / job->taps * job->weight_channel, tap = begin % job->taps;
    for (ptrdiff_t pair = begin; pair < end; channel += job->weight_channel, tap = 0)
        for (; tap < job->taps && pair < end; tap++, pair++, columns += F(STRIDE)) {
            const ptrdiff_t at = channel + job->weight_at[tap];
            V right[VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                right[v] = F(load)(columns + v * LANES);
#pragma GCC unroll 16
            for (int r = 0; r < height; r++) {
                const REAL left = rows[r][at];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    sums[r][v] += right[v] * left;
            }
        }
#pragma GCC unroll 16
    for (int r = 0; r < height; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            REAL *to = made + r * F(COLUMNS) + v * LANES;
            F(store)(to, begin ? sums[r][v] + F(load)(to) : sums[r][v]);
        }
}

/* One function for each: the outs that remain behind whole tiles, and the last positions, take no longer than they are. */
typedef void (*F(product_tile))(const conv_job *job, ptrdiff_t o, ptrdiff_t begin, ptrdiff_t end, const REAL *columns,
                                REAL *made);
#define TILE_OF(height, vectors)                                                                                           \
    static void F(packed_##height##x##vectors)(const conv_job *job, ptrdiff_t o, ptrdiff_t begin, ptrdiff_t end,           \
                                               const REAL *columns, REAL *made) {                                          \
        F(packed_tile)((const REAL *)job->packed + o * job->channels * job->taps + begin * ROWS, columns, end - begin, made, \
                       begin == 0, height, vectors);                                                                       \
    }                                                                                                                      \
    static void F(lying_##height##x##vectors)(const conv_job *job, ptrdiff_t o, ptrdiff_t begin, ptrdiff_t end,            \
                                              const REAL *columns, REAL *made) {                                           \
        F(lying_tile)(job, o, begin, end, columns, made, height, vectors);                                                 \
    }
#define TILE(height) TILE_WIDTHS(height)
ROW_HEIGHTS(TILE)
#undef TILE_OF
#define TILE_OF(height, vectors) [vectors] = {F(packed_##height##x##vectors), F(lying_##height##x##vectors)},
#undef TILE
#define TILE(height) [height] = {TILE_WIDTHS(height)},
static const F(product_tile) F(product_tiles)[ROWS + 1][VECTORS + 1][2] = {ROW_HEIGHTS(TILE)};
#undef TILE
#undef TILE_OF

/* Copies what is under pairs [begin, end) of a channel and a tap in one run. Whole vectors, or 0 for half a one: what is too much
   is overwritten by the next run, or lies between two rows of the copy. */
ALWAYS_INLINE void F(gather_vectors)(const conv_job *job, ptrdiff_t start, ptrdiff_t begin, ptrdiff_t end, REAL *to,
                                     int vectors) {
    const REAL *channel = (const REAL *)job->images + begin / job->taps * job->channel + start;
    ptrdiff_t tap = begin % job->taps;
    for (ptrdiff_t pair = begin; pair < end; channel += job->channel, tap = 0)
        for (; tap < job->taps && pair < end; tap++, pair++, to += F(STRIDE)) {
            const REAL *from = channel + job->offsets[tap];
            if (!vectors)
                memcpy(to, from, LANES / 2 * sizeof(REAL));
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                F(store)(to + v * LANES, F(load)(from + v * LANES));
        }
}

static void F(gather)(const conv_job *job, const F(run) *run, ptrdiff_t begin, ptrdiff_t end, REAL *to) {
    if (run->length <= LANES / 2)
        F(gather_vectors)(job, run->from, begin, end, to, 0);
    else if (run->length <= LANES)
        F(gather_vectors)(job, run->from, begin, end, to, 1);
    else if (run->length <= 2 * LANES)
        F(gather_vectors)(job, run->from, begin, end, to, 2);
    else
        F(gather_vectors)(job, run->from, begin, end, to, VECTORS);
}

/* All runs of a tile, for so many pairs at a time that what is copied lies in the first cache until the last run is there. */
static void F(gather_tile)(const conv_job *job, const F(cut) *cut, ptrdiff_t begin, ptrdiff_t end, REAL *copy) {
    for (ptrdiff_t pair = begin; pair < end; pair += GATHERED, copy += GATHERED * F(STRIDE)) {
        REAL *to = copy;
        for (ptrdiff_t i = 0; i < cut->count; to += cut->runs[i++].length)
            F(gather)(job, &cut->runs[i], pair, at_most(pair + GATHERED, end), to);
    }
}

/* Writes the products of one out where its runs lie. */
static void F(deliver)(const conv_job *job, const F(run) *runs, ptrdiff_t count, ptrdiff_t o, const REAL *from) {
    const REAL bias = job->bias ? ((const REAL *)job->bias)[o] : 0;
    for (ptrdiff_t i = 0; i < count; from += runs[i++].length) {
        REAL *target = (REAL *)job->made + o * job->made_out + runs[i].to;
        if (job->made_step[2] == 1)
            for (ptrdiff_t x = 0; x < runs[i].length; x++)
                target[x] = from[x] + bias;
        else
            for (ptrdiff_t x = 0; x < runs[i].length; x++)
                target[x * job->made_step[2]] = from[x] + bias;
    }
}

/* Positions are counted over images, depth, height and width; a tile is F(COLUMNS) of them. */
static void F(cut_tile)(const conv_job *job, ptrdiff_t tile, F(cut) *cut) {
    const ptrdiff_t plane = job->counts[1] * job->counts[2], positions = job->count * job->counts[0] * plane;
    const ptrdiff_t first = tile * F(COLUMNS), last = at_most(first + F(COLUMNS), positions);
    cut->count = cut->targets = 0;
    for (ptrdiff_t at = first; at < last;) {
        ptrdiff_t x = at % job->counts[2], y = at / job->counts[2] % job->counts[1];
        ptrdiff_t z = at / plane % job->counts[0], image = at / plane / job->counts[0];
        F(run) *run = &cut->runs[cut->count++], *before = cut->targets ? &cut->joined[cut->targets - 1] : NULL;
        run->length = at_most(job->counts[2] - x, last - at);
        run->from = image * job->image + z * job->move[0] + y * job->move[1] + x;
        run->to = image * job->made_image + z * job->made_step[0] + y * job->made_step[1] + x * job->made_step[2];
        at += run->length;
        if (before && job->made_step[2] == 1 && before->to + before->length == run->to)
            before->length += run->length;
        else
            cut->joined[cut->targets++] = *run;
    }
}

/* Some tiles side by side, for all outs: ROWS outs of some pairs stay in the first cache while each tile goes over them. */
static void F(tiles)(const conv_job *job, void *room, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t positions = job->count * job->counts[0] * job->counts[1] * job->counts[2];
    const ptrdiff_t at_once = F(pairs_at_once)(job), inner = job->channels * job->taps;
    const ptrdiff_t copied = F(copied)(job), made = F(products)(job), tiles = (positions + F(COLUMNS) - 1) / F(COLUMNS);
    REAL *copies = room, *products = copies + job->together * copied;
    F(cut) *cuts = (F(cut) *)(products + job->together * made);
    for (ptrdiff_t group = begin; group < end; group++) {
        const ptrdiff_t first = group * job->together, together = at_most(job->together, tiles - first);
        for (ptrdiff_t t = 0; t < together; t++)
            F(cut_tile)(job, first + t, &cuts[t]);
        for (ptrdiff_t pair = 0; pair < inner || pair == 0; pair += at_once) {
            const ptrdiff_t last = at_most(pair + at_once, inner);
            for (ptrdiff_t t = 0; t < together; t++)
                F(gather_tile)(job, &cuts[t], pair, last, copies + t * copied);
            for (ptrdiff_t o = 0; o < job->outs; o += ROWS)
                for (ptrdiff_t t = 0; t < together; t++) {
                    const ptrdiff_t rest = positions - (first + t) * F(COLUMNS);
                    const ptrdiff_t vectors = at_most((rest + LANES - 1) / LANES, VECTORS);
                    F(product_tiles)[at_most(ROWS, job->outs - o)][vectors][!job->packed](
                        job, o, pair, last, copies + t * copied, products + t * made + o * F(COLUMNS));
                }
        }
        for (ptrdiff_t t = 0; t < together; t++)
            for (ptrdiff_t o = 0; o < job->outs; o++)
                F(deliver)(job, cuts[t].joined, cuts[t].targets, o, products + t * made + o * F(COLUMNS));
    }
}

/* Too few outs to share a copy: vectors of positions are read where they lie. A vector is up to LANES positions of one row;
   several of them go through the taps together, as many as leave registers for the sums of some outs. */
typedef struct {
    ptrdiff_t x, y, z, from, to; /* where the next vector begins: in its image, in the images, in what is made */
} F(place);

static F(place) F(place_of)(const conv_job *job, ptrdiff_t at, ptrdiff_t each) {
    F(place) made = {at % each * LANES, at / each % job->counts[1], at / each / job->counts[1] % job->counts[0], 0, 0};
    const ptrdiff_t image = at / each / job->counts[1] / job->counts[0];
    made.from = image * job->image + made.z * job->move[0] + made.y * job->move[1] + made.x;
    made.to = image * job->made_image + made.z * job->made_step[0] + made.y * job->made_step[1] + made.x * job->made_step[2];
    return made;
}

static void F(next_place)(const conv_job *job, F(place) *at) {
    at->x += LANES;
    at->from += LANES;
    at->to += LANES * job->made_step[2];
    if (at->x < job->counts[2])
        return;
    at->from += job->move[1] - at->x;
    at->to += job->made_step[1] - at->x * job->made_step[2];
    at->x = 0;
    if (++at->y < job->counts[1])
        return;
    at->from += job->move[0] - at->y * job->move[1];
    at->to += job->made_step[0] - at->y * job->made_step[1];
    at->y = 0;
    if (++at->z < job->counts[0])
        return;
    at->from += job->image - at->z * job->move[0];
    at->to += job->made_image - at->z * job->made_step[0];
    at->z = 0;
}

/* `outs` outs from the first one of `packed`, at `vectors` places: both are constants where it is called. */
ALWAYS_INLINE void F(direct_tile)(const conv_job *job, const F(run) *runs, ptrdiff_t o, ptrdiff_t real_outs, int outs,
                                  int vectors) {
    const REAL *by = (const REAL *)job->packed + o * job->channels * job->taps;
    const REAL *from[DIRECT_VECTORS];
    V sums[ROWS][DIRECT_VECTORS];
    for (int v = 0; v < vectors; v++)
        from[v] = (const REAL *)job->images + runs[v].from;
#pragma GCC unroll 8
    for (int r = 0; r < outs; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sums[r][v] = (V){0};
    for (ptrdiff_t c = 0, channel = 0; c < job->channels; c++, channel += job->channel) {
        for (ptrdiff_t t = 0; t < job->taps; t++, by += ROWS) {
            const ptrdiff_t at = channel + job->offsets[t];
            V found[DIRECT_VECTORS];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                found[v] = F(load)(from[v] + at);
#pragma GCC unroll 8
            for (int r = 0; r < outs; r++) {
                const REAL weight = by[r];
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    sums[r][v] += found[v] * weight;
            }
        }
    }
    for (int r = 0; r < outs && r < real_outs; r++) {
        const REAL bias = job->bias ? ((const REAL *)job->bias)[o + r] : 0;
        for (int v = 0; v < vectors; v++) {
            REAL *to = (REAL *)job->made + (o + r) * job->made_out + runs[v].to;
            if (runs[v].length == LANES && job->made_step[2] == 1) {
                F(store)(to, sums[r][v] + bias);
                continue;
            }
            REAL made[LANES];
            F(store)(made, sums[r][v] + bias);
            for (ptrdiff_t i = 0; i < runs[v].length; i++)
                to[i * job->made_step[2]] = made[i];
        }
    }
}

/* One function for each: their sums fill the registers. */
#define TILE(outs, vectors)                                                                                       \
    static void F(direct_##outs##x##vectors)(const conv_job *job, const F(run) *runs, ptrdiff_t o, ptrdiff_t rest) { \
        F(direct_tile)(job, runs, o, rest, outs, vectors);                                                        \
    }
DIRECT_TILES(TILE)
#undef TILE

typedef struct {
    int outs, vectors;
    void (*run)(const conv_job *job, const F(run) *runs, ptrdiff_t o, ptrdiff_t rest);
} F(direct_size);
#define TILE(outs, vectors) {outs, vectors, F(direct_##outs##x##vectors)},
static const F(direct_size) F(direct_sizes)[] = {DIRECT_TILES(TILE)};
#undef TILE

static ptrdiff_t F(direct_places)(const conv_job *job) {
    return job->count * job->counts[0] * job->counts[1] * ((job->counts[2] + LANES - 1) / LANES);
}

/* Counts places; a place that is there several times, to fill up a tile, is written several times. */
static void F(direct)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t each = (job->counts[2] + LANES - 1) / LANES;
    for (ptrdiff_t o = 0; o < job->outs; o += ROWS) {
        const ptrdiff_t rest = at_most(ROWS, job->outs - o);
        const F(direct_size) *size = F(direct_sizes);
        while (size->outs < rest)
            size++;
        F(place) place = F(place_of)(job, begin, each);
        for (ptrdiff_t at = begin; at < end;) {
            F(run) runs[DIRECT_VECTORS];
            for (int v = 0; v < size->vectors; v++) {
                if (at == end) {
                    runs[v] = runs[v - 1];
                    continue;
                }
                runs[v] = (F(run)){at_most(LANES, job->counts[2] - place.x), place.from, place.to};
                F(next_place)(job, &place);
                at++;
            }
            size->run(job, runs, o, rest);
        }
    }
}
