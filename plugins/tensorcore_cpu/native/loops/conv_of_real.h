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

/* Channels whose copy stays in the second cache while all outs go over it. */
static ptrdiff_t F(channels_at_once)(const conv_job *job) {
    ptrdiff_t each = job->shares * job->taps * F(STRIDE) * (ptrdiff_t)sizeof(REAL);
    return at_most(job->channels, at_least(1, COPY / at_least(each, 1)));
}

/* Of one tile: elements of its copy and of its products. */
static ptrdiff_t F(copied)(const conv_job *job) { return F(channels_at_once)(job) * job->taps * F(STRIDE); }
static ptrdiff_t F(products)(const conv_job *job) { return (job->outs + ROWS - 1) / ROWS * ROWS * F(COLUMNS); }

static ptrdiff_t F(tile_room)(const conv_job *job) {
    return job->together *
           ((F(copied)(job) + F(products)(job)) * (ptrdiff_t)sizeof(REAL) + (ptrdiff_t)sizeof(F(cut)));
}

static const REAL F(zeros)[F(COLUMNS)];

/* The product of ROWS outs, added to what was made before or to zeros. */
static void F(multiply)(const REAL *rows, const REAL *columns, ptrdiff_t inner, REAL *made, bool first) {
    F(tile)(rows, 1, ROWS, columns, F(STRIDE), inner, first ? F(zeros) : made, first ? 0 : F(COLUMNS), made, F(COLUMNS),
            ROWS, VECTORS);
}

/* The same of ROWS outs whose weights are read where they lie, for channels [begin, end); those that are too many are the last. */
static void F(multiply_lying)(const conv_job *job, ptrdiff_t o, ptrdiff_t begin, ptrdiff_t end, const REAL *columns,
                              REAL *made) {
    const REAL *rows[ROWS];
    V sums[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
        rows[r] = (const REAL *)job->weight + at_most(o + r, job->outs - 1) * job->weight_out;
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            sums[r][v] = (V){0};
            __builtin_prefetch(made + r * F(COLUMNS) + v * LANES, 1);
        }
    }
    for (ptrdiff_t c = begin; c < end; c++)
        for (ptrdiff_t t = 0; t < job->taps; t++, columns += F(STRIDE)) {
            const ptrdiff_t at = c * job->weight_channel + job->weight_at[t];
            V right[VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                right[v] = F(load)(columns + v * LANES);
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++) {
                const REAL left = rows[r][at];
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; v++)
                    sums[r][v] += right[v] * left;
            }
        }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            REAL *to = made + r * F(COLUMNS) + v * LANES;
            F(store)(to, begin ? sums[r][v] + F(load)(to) : sums[r][v]);
        }
}

/* Copies what is under the taps of channels [begin, end) in one run. Whole vectors: what is too much is overwritten by the
   next run, or lies between two rows of the copy. */
ALWAYS_INLINE void F(gather_vectors)(const conv_job *job, ptrdiff_t start, ptrdiff_t begin, ptrdiff_t end, REAL *to,
                                     int vectors) {
    for (ptrdiff_t c = begin; c < end; c++) {
        const REAL *channel = (const REAL *)job->images + c * job->channel + start;
        for (ptrdiff_t t = 0; t < job->taps; t++, to += F(STRIDE)) {
            const REAL *from = channel + job->offsets[t];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                F(store)(to + v * LANES, F(load)(from + v * LANES));
        }
    }
}

static void F(gather)(const conv_job *job, const F(run) *run, ptrdiff_t begin, ptrdiff_t end, REAL *to) {
    if (run->length <= LANES)
        F(gather_vectors)(job, run->from, begin, end, to, 1);
    else if (run->length <= 2 * LANES)
        F(gather_vectors)(job, run->from, begin, end, to, 2);
    else
        F(gather_vectors)(job, run->from, begin, end, to, VECTORS);
}

/* All runs of a tile, for so many channels at a time that what is copied lies in the first cache until the last run is there. */
static void F(gather_tile)(const conv_job *job, const F(cut) *cut, ptrdiff_t begin, ptrdiff_t end, REAL *copy) {
    const ptrdiff_t step = at_least(1, GATHERED / at_least(job->taps, 1));
    for (ptrdiff_t c = begin; c < end; c += step, copy += step * job->taps * F(STRIDE)) {
        REAL *to = copy;
        for (ptrdiff_t i = 0; i < cut->count; to += cut->runs[i++].length)
            F(gather)(job, &cut->runs[i], c, at_most(c + step, end), to);
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

/* Some tiles side by side, for all outs: ROWS outs of some channels stay in the first cache while each tile goes over them. */
static void F(tiles)(const conv_job *job, void *room, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t positions = job->count * job->counts[0] * job->counts[1] * job->counts[2];
    const ptrdiff_t at_once = F(channels_at_once)(job), inner = job->channels * job->taps;
    const ptrdiff_t copied = F(copied)(job), made = F(products)(job), tiles = (positions + F(COLUMNS) - 1) / F(COLUMNS);
    REAL *copies = room, *products = copies + job->together * copied;
    F(cut) *cuts = (F(cut) *)(products + job->together * made);
    for (ptrdiff_t group = begin; group < end; group++) {
        const ptrdiff_t first = group * job->together, together = at_most(job->together, tiles - first);
        for (ptrdiff_t t = 0; t < together; t++)
            F(cut_tile)(job, first + t, &cuts[t]);
        for (ptrdiff_t c = 0; c < job->channels; c += at_once) {
            const ptrdiff_t end_of_copy = at_most(c + at_once, job->channels), done = c * job->taps;
            for (ptrdiff_t t = 0; t < together; t++)
                F(gather_tile)(job, &cuts[t], c, end_of_copy, copies + t * copied);
            for (ptrdiff_t o = 0; o < job->outs; o += ROWS)
                for (ptrdiff_t t = 0; t < together; t++) {
                    const REAL *copy = copies + t * copied;
                    REAL *to = products + t * made + o * F(COLUMNS);
                    if (job->packed)
                        F(multiply)((const REAL *)job->packed + o * inner + done * ROWS, copy,
                                    (end_of_copy - c) * job->taps, to, c == 0);
                    else
                        F(multiply_lying)(job, o, c, end_of_copy, copy, to);
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
