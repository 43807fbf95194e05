/* The loops of conv.c for one type, which REAL, V, V_U, LANES, ZIP and F describe; included once for each.

   A tile of outputs is a matrix product whose right side is gathered on the way: for a run of positions, the elements
   under each tap of each channel are copied side by side, once for all outs. The copy is small beside the product: each of its
   elements is used once for each out. (Implicit GEMM, as in Chetlur et al. 2014, "cuDNN: Efficient Primitives for Deep Learning".) */

enum { F(PLACE) = LANES, F(COLUMNS) = VECTORS * LANES, F(STRIDE) = F(COLUMNS) + LANES, F(WEIGHT_COLUMNS) = WEIGHT_VECTORS * LANES };

#include "tile_of_real.h"

static ptrdiff_t F(packed_size)(ptrdiff_t outs, ptrdiff_t inner) { return (outs + ROWS - 1) / ROWS * ROWS * inner; }

/* The weights with ROWS outs side by side; those that are too many are zeros. */
static void F(pack)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t inner = job->channels * job->taps;
    REAL *to = (REAL *)job->packed + begin * ROWS * inner;
    for (ptrdiff_t o = begin * ROWS; o < at_most(end * ROWS, job->outs); o += ROWS) {
        const REAL *weight = (const REAL *)job->weight + o * job->weight_out;
        const ptrdiff_t rows = at_most(ROWS, job->outs - o);
        if (job->weight_solid && (int)ROWS <= (int)LANES) {
            F(transpose)(weight, job->weight_out, rows, inner, to, ROWS);
            to += inner * ROWS;
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

#ifndef CONV_LOOPS
#define CONV_LOOPS(suffix)                                                                                    \
    {                                                                                                         \
        .rows = ROWS, .columns = COLUMNS_##suffix, .lanes = PLACE_##suffix,                                   \
        .packed_size = packed_size_##suffix, .pack = pack_##suffix, .tile_room = tile_room_##suffix,          \
        .tiles = tiles_##suffix, .direct_places = direct_places_##suffix, .direct = direct_##suffix, .weight_columns = WEIGHT_COLUMNS_##suffix,        \
        .turn = turn_sent_##suffix, .weight_rows = WEIGHT_ROWS, .weight_tiles = weight_tiles_##suffix,             \
        .weight_direct = weight_direct_##suffix,                                                              \
    }
#endif
