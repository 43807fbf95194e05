/* The loops of conv.c for one type, which REAL, V, V_U, LANES, ZIP and F describe; included once for each.

   A tile of outputs is a matrix product whose right side is gathered on the way: for a run of positions, the elements
   under each tap of each channel are copied side by side, once for all outs. The copy is small beside the product: each of its
   elements is used once for each out. (Implicit GEMM, as in Chetlur et al. 2014, "cuDNN: Efficient Primitives for Deep Learning".) */

enum { F(COLUMNS) = VECTORS * LANES, F(STRIDE) = F(COLUMNS) + LANES, F(WEIGHT_COLUMNS) = WEIGHT_VECTORS * LANES };

#include "tile_of_real.h"

static ptrdiff_t F(packed_size)(ptrdiff_t outs, ptrdiff_t inner) { return (outs + ROWS - 1) / ROWS * ROWS * inner; }

/* The weights with ROWS outs side by side; those that are too many are zeros. */
static void F(pack)(const conv_job *job) {
    REAL *to = job->packed;
    const REAL *weight = job->weight;
    for (ptrdiff_t o = 0; o < job->outs; o += ROWS)
        for (ptrdiff_t c = 0; c < job->channels; c++)
            for (ptrdiff_t t = 0; t < job->taps; t++)
                for (ptrdiff_t r = 0; r < ROWS; r++)
                    *to++ = o + r < job->outs
                                ? weight[(o + r) * job->weight_out + c * job->weight_channel + job->weight_at[t]]
                                : 0;
}

/* A run of positions beside each other in one row of one image. */
typedef struct {
    ptrdiff_t length, from, to; /* where its windows start in the images, and where it is written */
} F(run);

/* Channels whose copy stays in the second cache while all outs go over it. */
static ptrdiff_t F(channels_at_once)(const conv_job *job) {
    ptrdiff_t each = job->taps * F(STRIDE) * (ptrdiff_t)sizeof(REAL);
    return at_most(job->channels, at_least(1, COPY / at_least(each, 1)));
}

static ptrdiff_t F(tile_room)(const conv_job *job) {
    ptrdiff_t copied = F(channels_at_once)(job) * job->taps * F(STRIDE);
    ptrdiff_t products = (job->outs + ROWS - 1) / ROWS * ROWS * F(COLUMNS);
    return (copied + products) * (ptrdiff_t)sizeof(REAL) + F(COLUMNS) * (ptrdiff_t)sizeof(F(run));
}

/* Adds to the product of ROWS outs. */
static void F(multiply)(const REAL *rows, const REAL *columns, ptrdiff_t inner, REAL *made) {
    F(tile)(rows, 1, ROWS, columns, F(STRIDE), inner, made, F(COLUMNS), made, F(COLUMNS), ROWS, VECTORS);
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

/* Positions are counted over images, depth, height and width; a tile is F(COLUMNS) of them, for all outs. */
static void F(tiles)(const conv_job *job, void *room, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t plane = job->counts[1] * job->counts[2], positions = job->count * job->counts[0] * plane;
    const ptrdiff_t at_once = F(channels_at_once)(job), inner = job->channels * job->taps;
    REAL *copy = room, *products = copy + at_once * job->taps * F(STRIDE);
    F(run) *runs = (F(run) *)(products + (job->outs + ROWS - 1) / ROWS * ROWS * F(COLUMNS));
    for (ptrdiff_t tile = begin; tile < end; tile++) {
        ptrdiff_t first = tile * F(COLUMNS), last = at_most(first + F(COLUMNS), positions), count = 0;
        for (ptrdiff_t at = first; at < last;) {
            ptrdiff_t x = at % job->counts[2], y = at / job->counts[2] % job->counts[1];
            ptrdiff_t z = at / plane % job->counts[0], image = at / plane / job->counts[0];
            F(run) *run = &runs[count++];
            run->length = at_most(job->counts[2] - x, last - at);
            run->from = image * job->image + z * job->move[0] + y * job->move[1] + x;
            run->to = image * job->made_image + z * job->made_step[0] + y * job->made_step[1] + x * job->made_step[2];
            at += run->length;
        }
        memset(products, 0, (size_t)((job->outs + ROWS - 1) / ROWS * ROWS * F(COLUMNS)) * sizeof(REAL));
        for (ptrdiff_t c = 0; c < job->channels; c += at_once) {
            const ptrdiff_t end_of_copy = at_most(c + at_once, job->channels), done = c * job->taps;
            REAL *to = copy;
            for (ptrdiff_t i = 0; i < count; to += runs[i++].length)
                F(gather)(job, &runs[i], c, end_of_copy, to);
            for (ptrdiff_t o = 0; o < job->outs; o += ROWS)
                F(multiply)((const REAL *)job->packed + o * inner + done * ROWS, copy, (end_of_copy - c) * job->taps,
                            products + o * F(COLUMNS));
        }
        for (ptrdiff_t o = 0; o < job->outs; o++)
            F(deliver)(job, runs, count, o, products + o * F(COLUMNS));
    }
}

/* Too few outs to share a copy: each row of outputs on its own. Counts images x outs. */
static void F(direct)(const conv_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const REAL *weight = job->weight;
    for (ptrdiff_t one = begin; one < end; one++) {
        ptrdiff_t image = one / job->outs, o = one % job->outs;
        const REAL bias = job->bias ? ((const REAL *)job->bias)[o] : 0;
        const REAL *images = (const REAL *)job->images + image * job->image;
        REAL *made = (REAL *)job->made + image * job->made_image + o * job->made_out;
        for (ptrdiff_t z = 0; z < job->counts[0]; z++) {
            for (ptrdiff_t y = 0; y < job->counts[1]; y++) {
                const REAL *row = images + z * job->move[0] + y * job->move[1];
                REAL *to = made + z * job->made_step[0] + y * job->made_step[1];
                for (ptrdiff_t x = 0; x < job->counts[2]; x += 2 * LANES) {
                    V sum = (V){0} + bias, next = sum;
                    for (ptrdiff_t c = 0; c < job->channels; c++) {
                        const REAL *by = weight + o * job->weight_out + c * job->weight_channel;
                        const REAL *from = row + c * job->channel + x;
                        for (ptrdiff_t t = 0; t < job->taps; t++) {
                            sum += F(load)(from + job->offsets[t]) * by[job->weight_at[t]];
                            next += F(load)(from + job->offsets[t] + LANES) * by[job->weight_at[t]];
                        }
                    }
                    REAL both[2 * LANES];
                    F(store)(both, sum);
                    F(store)(both + LANES, next);
                    ptrdiff_t length = at_most(2 * LANES, job->counts[2] - x);
                    if (job->made_step[2] == 1)
                        memcpy(to + x, both, (size_t)length * sizeof(REAL));
                    else
                        for (ptrdiff_t i = 0; i < length; i++)
                            to[(x + i) * job->made_step[2]] = both[i];
                }
            }
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

/* One tile: rows are (channel, tap) pairs, columns are outs; what one image adds to the sums. */
ALWAYS_INLINE void F(weight_tile)(const conv_weight_job *job, const REAL *const *rows, const REAL *sent, V *sums,
                                  int vectors) {
    V found[WEIGHT_ROWS][WEIGHT_VECTORS];
    for (int r = 0; r < WEIGHT_ROWS; r++)
        for (int v = 0; v < vectors; v++)
            found[r][v] = (V){0};
    for (ptrdiff_t z = 0; z < job->counts[0]; z++) {
        for (ptrdiff_t y = 0; y < job->counts[1]; y++) {
            const ptrdiff_t row = z * job->move[0] + y * job->move[1];
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
        }
    }
    for (int r = 0; r < WEIGHT_ROWS; r++)
        for (int v = 0; v < vectors; v++)
            sums[r * WEIGHT_VECTORS + v] += found[r][v];
}

/* Tiles of WEIGHT_ROWS (channel, tap) pairs, for all outs. The images go round outside: one of them stays in the cache. */
static void F(weight_tiles)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t inner = job->channels * job->taps;
    const ptrdiff_t blocks = (job->outs + F(WEIGHT_COLUMNS) - 1) / F(WEIGHT_COLUMNS);
    const ptrdiff_t each = WEIGHT_ROWS * WEIGHT_VECTORS;
    V *sums = (V *)job->sums;
    memset(sums + begin * blocks * each, 0, (size_t)((end - begin) * blocks * each) * sizeof(V));
    for (ptrdiff_t image = 0; image < job->count; image++) {
        const REAL *images = (const REAL *)job->images + image * job->image;
        for (ptrdiff_t tile = begin; tile < end; tile++) {
            const REAL *rows[WEIGHT_ROWS];
            for (ptrdiff_t r = 0; r < WEIGHT_ROWS; r++) {
                ptrdiff_t pair = at_most(tile * WEIGHT_ROWS + r, inner - 1);
                rows[r] = images + pair / job->taps * job->channel + job->offsets[pair % job->taps];
            }
            for (ptrdiff_t block = 0; block < blocks; block++) {
                const REAL *sent = F(turned_at)(job, image, block);
                V *into = sums + (tile * blocks + block) * each;
                const ptrdiff_t vectors = F(block_width)(job, block) / LANES;
                if (vectors == 1)
                    F(weight_tile)(job, rows, sent, into, 1);
                else if (vectors == 2)
                    F(weight_tile)(job, rows, sent, into, 2);
                else if (vectors == 3)
                    F(weight_tile)(job, rows, sent, into, WEIGHT_VECTORS < 3 ? WEIGHT_VECTORS : 3);
                else
                    F(weight_tile)(job, rows, sent, into, WEIGHT_VECTORS);
            }
        }
    }
    for (ptrdiff_t tile = begin; tile < end; tile++)
        for (ptrdiff_t o = 0; o < job->outs; o++)
            for (ptrdiff_t r = 0; r < WEIGHT_ROWS && tile * WEIGHT_ROWS + r < inner; r++)
                ((REAL *)job->made)[o * inner + tile * WEIGHT_ROWS + r] =
                    ((const REAL *)(sums + (tile * blocks + o / F(WEIGHT_COLUMNS)) * each))[r * F(WEIGHT_COLUMNS) +
                                                                                        o % F(WEIGHT_COLUMNS)];
}

/* Too few outs to fill a vector: vectors go along the rows of positions instead. Counts (out, channel) pairs. */
static void F(weight_direct)(const conv_weight_job *job, ptrdiff_t begin, ptrdiff_t end) {
    for (ptrdiff_t one = begin; one < end; one++) {
        ptrdiff_t o = one / job->channels, c = one % job->channels;
        REAL *made = (REAL *)job->made + one * job->taps;
        for (ptrdiff_t t = 0; t < job->taps; t++) {
            V sum = {0};
            REAL rest = 0;
            for (ptrdiff_t image = 0; image < job->count; image++) {
                const REAL *sent = (const REAL *)job->sent + image * job->sent_image + o * job->sent_out;
                const REAL *from = (const REAL *)job->images + image * job->image + c * job->channel + job->offsets[t];
                for (ptrdiff_t z = 0; z < job->counts[0]; z++) {
                    for (ptrdiff_t y = 0; y < job->counts[1]; y++, sent += job->counts[2]) {
                        const REAL *row = from + z * job->move[0] + y * job->move[1];
                        ptrdiff_t x = 0;
                        for (; x + LANES <= job->counts[2]; x += LANES)
                            sum += F(load)(row + x) * F(load)(sent + x);
                        for (; x < job->counts[2]; x++)
                            rest += row[x] * sent[x];
                    }
                }
            }
            REAL lanes[LANES];
            F(store)(lanes, sum);
            for (int i = 0; i < LANES; i++)
                rest += lanes[i];
            made[t] = rest;
        }
    }
}

#ifndef CONV_LOOPS
#define CONV_LOOPS(suffix)                                                                                    \
    {                                                                                                         \
        .rows = ROWS, .columns = COLUMNS_##suffix, .least_outs = LEAST_OUTS,                                  \
        .packed_size = packed_size_##suffix, .pack = pack_##suffix, .tile_room = tile_room_##suffix,          \
        .tiles = tiles_##suffix, .direct = direct_##suffix, .weight_columns = WEIGHT_COLUMNS_##suffix,        \
        .turn = turn_sent_##suffix, .weight_rows = WEIGHT_ROWS, .weight_tiles = weight_tiles_##suffix,             \
        .weight_direct = weight_direct_##suffix,                                                              \
    }
#endif
