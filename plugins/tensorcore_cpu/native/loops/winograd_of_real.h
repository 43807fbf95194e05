/* The loops of winograd.c for one type, which REAL, V, V_U, LANES, ZIP and F describe; included once for each.

   With a step of one this is F(2x2, 3x3) of Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks": 16
   multiplications where 4 windows of 9 taps take 36. Inputs d, taps g and outputs y of one tile along one dim are
       y0 = m0 + m1 + m2,   y1 = m1 - m2 - m3   with
       m0 = (d0 - d2) g0,   m1 = (d1 + d2) (g0 + g1 + g2) / 2,   m2 = (d2 - d1) (g0 - g1 + g2) / 2,   m3 = (d1 - d3) g2,
   and in two dims the same of that. With a step of two the taps g0 and g2 meet the even pixels as F(2, 2), and g1 the odd ones:
       y0 = m0 + m1,   y1 = m1 + m2   with
       m0 = (d0 - d2) g0 + d1 g1,   m1 = d2 (g0 + g2),   m2 = (d4 - d2) g2 + d3 g1,
   which are 25 multiplications. The gradient of its input has even pixels that two taps meet and odd ones that one does: from
   d0, d1 and d2 sent, with the taps last first, come
       y0 = m0 + m1,   y1 = m1 + m2,   d1 g1,   and d0 g1 or d2 g1   with
       m0 = (d0 - d1) g0,   m1 = d1 (g0 + g2),   m2 = (d2 - d1) g2,
   the odd ones in front of the even ones or behind, as the padding is odd or even: 16 outputs for 25 multiplications.
   No output meets an input outside of its own window, so that a NaN goes no further; but an
   infinity becomes a NaN, and what is not finite is made once more elsewhere.

   Channels lie in the lanes, whatever the sizes of the images are: pixels are turned on the way in and on the way out, and
   between that there are products of matrices for each place, of rows of tiles and columns of outs. */

#include "tile_of_real.h"

enum { F(WIDTH) = VECTORS * LANES, F(STEP) = INNER + LANES /* from tile to tile: not a power of two */ };

static const REAL F(zeros)[F(WIDTH)];

static ptrdiff_t F(whole)(ptrdiff_t count) { return (count + LANES - 1) / LANES * LANES; }
static ptrdiff_t F(widths)(ptrdiff_t count) { return (count + F(WIDTH) - 1) / F(WIDTH); }

/* One dim of a tile */

enum { F(INPUTS), F(WEIGHTS), F(OUTPUTS), F(SENT), F(TAPS) };

/* The last two are of the weight's gradient: what the chain rule makes of the lines above. What was sent is multiplied by the
   inputs, and sums of that over tiles are those of the weights. */
ALWAYS_INLINE void F(along)(int what, winograd_kind kind, const V *d, V *made) {
    if (what == F(INPUTS) && kind == WINOGRAD_ONE) {
        made[0] = d[0] - d[2];
        made[1] = d[1] + d[2];
        made[2] = d[2] - d[1];
        made[3] = d[1] - d[3];
    } else if (what == F(INPUTS) && kind == WINOGRAD_TWO) {
        made[0] = d[0] - d[2];
        made[1] = d[1];
        made[2] = d[2];
        made[3] = d[4] - d[2];
        made[4] = d[3];
    } else if (what == F(INPUTS)) {
        made[0] = d[0] - d[1];
        made[1] = d[1];
        made[2] = d[2] - d[1];
        made[3] = d[3];
    } else if (what == F(WEIGHTS) && kind == WINOGRAD_ONE) {
        const V outer = d[0] + d[2];
        made[0] = d[0];
        made[1] = (outer + d[1]) * (REAL)0.5;
        made[2] = (outer - d[1]) * (REAL)0.5;
        made[3] = d[2];
    } else if (what == F(WEIGHTS)) {
        made[0] = d[0];
        made[1] = d[1];
        made[2] = d[0] + d[2];
        made[3] = d[2];
    } else if (what == F(OUTPUTS) && kind == WINOGRAD_ONE) {
        made[0] = d[0] + (d[1] + d[2]);
        made[1] = (d[1] - d[2]) - d[3];
    } else if (what == F(OUTPUTS)) {
        made[0] = d[0] + d[1];
        made[1] = d[1] + d[2];
        if (kind == WINOGRAD_TWO_TURNED) {
            made[2] = d[3];
            made[3] = d[4];
        }
    } else if (what == F(SENT) && kind == WINOGRAD_ONE) {
        made[0] = d[0];
        made[1] = d[0] + d[1];
        made[2] = d[0] - d[1];
        made[3] = -d[1];
    } else if (what == F(SENT)) {
        made[0] = d[0];
        made[1] = d[0] + d[1];
        made[2] = d[1];
    } else if (kind == WINOGRAD_ONE) {
        const V sum = (d[1] + d[2]) * (REAL)0.5;
        made[0] = d[0] + sum;
        made[1] = (d[1] - d[2]) * (REAL)0.5;
        made[2] = sum + d[3];
    } else {
        made[0] = d[0] + d[2];
        made[1] = d[1];
        made[2] = d[2] + d[3];
    }
}

/* Along both: from `some` x `some` vectors to `wanted` x `wanted`. Vector n is at each[n] + step, or at data + n * step. */
ALWAYS_INLINE void F(along_both)(int what, winograd_kind kind, int some, int wanted, const REAL *const *each, const REAL *data,
                                 ptrdiff_t step, V *made) {
    V down[WINOGRAD_TERMS * WINOGRAD_TERMS];
#pragma GCC unroll 5
    for (int x = 0; x < some; x++) {
        V from[WINOGRAD_TERMS], to[WINOGRAD_TERMS];
#pragma GCC unroll 5
        for (int y = 0; y < some; y++)
            from[y] = F(load)(each ? each[y * some + x] + step : data + (y * some + x) * step);
        F(along)(what, kind, from, to);
#pragma GCC unroll 5
        for (int y = 0; y < wanted; y++)
            down[y * some + x] = to[y];
    }
#pragma GCC unroll 5
    for (int y = 0; y < wanted; y++)
        F(along)(what, kind, down + y * some, made + y * wanted);
}

/* Weights: of one block of outs, for INNER channels after the other, for each place (channel, out). */

static ptrdiff_t F(weights_size)(const winograd_job *job) { return WEIGHTS * job->channels * F(WIDTH); }

/* The taps of one channel with `rows` outs in the lanes. More is read than 9 taps, but for the last channel. */
ALWAYS_INLINE void F(taps)(const winograd_job *job, ptrdiff_t o, ptrdiff_t c, ptrdiff_t rows, REAL *made) {
    enum { OVER = (TAPS + LANES - 1) / LANES * LANES - TAPS };
    const REAL *from = (const REAL *)job->weight + o * job->weight_out + c * job->weight_channel;
    const REAL *end = (const REAL *)job->weight + (job->outs - 1) * job->weight_out +
                      (job->channels - 1) * job->weight_channel + TAPS;
    if (end - (from + (rows - 1) * job->weight_out + TAPS) >= OVER) {
#pragma GCC unroll 8
        for (int t = 0; t < TAPS; t += LANES)
            F(turn)(from + t, job->weight_out, rows, made + t * LANES, LANES);
        return;
    }
    for (ptrdiff_t t = 0; t < TAPS; t++)
        for (ptrdiff_t r = 0; r < LANES; r++)
            made[t * LANES + r] = r < rows ? from[r * job->weight_out + t] : 0;
}

ALWAYS_INLINE void F(weights_of)(winograd_kind kind, const winograd_job *job, REAL *made, ptrdiff_t block) {
    REAL g[(TAPS + LANES) * LANES] __attribute__((aligned(VECTOR)));
    for (ptrdiff_t c = 0; c < job->channels; c++) {
        const ptrdiff_t first = c / INNER * INNER, place = at_most(INNER, job->channels - first) * F(WIDTH);
        for (ptrdiff_t lane = 0; lane < F(WIDTH); lane += LANES) {
            const ptrdiff_t o = block * F(WIDTH) + lane, rows = at_most(LANES, job->outs - o);
            REAL *to = made + WEIGHTS * first * F(WIDTH) + (c - first) * F(WIDTH) + lane;
            V u[WEIGHTS];
            if (rows == LANES)
                F(taps)(job, o, c, LANES, g);
            else if (rows > 0)
                F(taps)(job, o, c, rows, g);
            else
                memset(g, 0, sizeof g);
            F(along_both)(F(WEIGHTS), kind, 3, WINOGRAD_WEIGHTS, NULL, job->turned ? g + (TAPS - 1) * LANES : g,
                          job->turned ? -LANES : LANES, u);
#pragma GCC unroll 16
            for (int n = 0; n < WEIGHTS; n++)
                F(store)(to + n * place, u[n]);
        }
    }
}

static void F(weights)(const winograd_job *job, void *made, ptrdiff_t block) {
    if (job->kind == WINOGRAD_ONE)
        F(weights_of)(WINOGRAD_ONE, job, made, block);
    else
        F(weights_of)(WINOGRAD_TWO, job, made, block);
}

/* Pixels of a piece with the channels in the lanes: rows [low, low + high) and columns [left, left + wide). */
typedef struct {
    REAL *data;
    ptrdiff_t channels, low, high, left, wide;
} F(pixels);

static void F(read)(const REAL *image, ptrdiff_t channels, ptrdiff_t height, ptrdiff_t width, F(pixels) *p) {
    const ptrdiff_t plane = height * width;
    if (p->wide == width)
        F(transpose)(image + p->low * width, plane, channels, p->high * width, p->data, p->channels);
    else
        for (ptrdiff_t y = 0; y < p->high; y++)
            F(transpose)(image + (p->low + y) * width + p->left, plane, channels, p->wide,
                         p->data + y * p->wide * p->channels, p->channels);
}

/* Where a pixel's channels are, or zeros. */
ALWAYS_INLINE const REAL *F(pixel)(const F(pixels) *p, const REAL *zeros, ptrdiff_t y, ptrdiff_t x) {
    const bool inside = y >= p->low && y < p->low + p->high && x >= p->left && x < p->left + p->wide;
    return inside ? p->data + ((y - p->low) * p->wide + x - p->left) * p->channels : zeros;
}

/* Inputs: of one block of tiles, for some channels after the other, for each place (tile, channel). */
typedef struct {
    ptrdiff_t some, step; /* channels, and from tile to tile */
} F(layout);

/* Zeros for pixels that are missing, and the pixels under the tiles of a piece. */
static ptrdiff_t F(pixels_size)(const winograd_job *job, ptrdiff_t channels) {
    const winograd_tile *t = &WINOGRAD_TILES[job->kind];
    const ptrdiff_t rows = at_most(job->rows, job->down) - 1, columns = job->columns - 1;
    return F(whole)(channels) * (1 + (t->apart * rows + t->reach) * (t->apart * columns + t->reach));
}

ALWAYS_INLINE void F(transform_of)(winograd_kind kind, const winograd_job *job, REAL *made, REAL *spare, ptrdiff_t block,
                                   F(layout) layout) {
    const winograd_tile t = WINOGRAD_TILES[kind];
    const ptrdiff_t channels = F(whole)(job->channels), place = job->tiles * layout.step;
    REAL *const zeros = spare;
    memset(zeros, 0, (size_t)channels * sizeof(REAL));
    ptrdiff_t at = 0, tile = 0;
    for (piece piece; next_piece(job, block, &at, &piece);) {
        const ptrdiff_t top = t.apart * piece.row - job->before[0], left = t.apart * piece.column - job->before[1];
        F(pixels) p = {.data = spare + channels, .channels = channels, .low = at_least(top, 0), .left = at_least(left, 0)};
        p.high = at_least(0, at_most(top + t.apart * (piece.rows - 1) + t.reach, job->height) - p.low);
        p.wide = at_least(0, at_most(left + t.apart * (piece.columns - 1) + t.reach, job->width) - p.left);
        F(read)((const REAL *)job->data + piece.image * job->image, job->channels, job->height, job->width, &p);
        for (ptrdiff_t i = 0; i < piece.rows * piece.columns; i++, tile++) {
            const ptrdiff_t y = top + t.apart * (i / piece.columns), x = left + t.apart * (i % piece.columns);
            const REAL *from[WINOGRAD_TERMS * WINOGRAD_TERMS];
            for (int n = 0; n < t.pixels * t.pixels; n++)
                from[n] = F(pixel)(&p, zeros, y + job->from[0][n / t.pixels], x + job->from[1][n % t.pixels]);
            for (ptrdiff_t c = 0; c < channels; c += LANES) {
                REAL *to = made + c / layout.some * t.inputs * t.inputs * place + c % layout.some + tile * layout.step;
                V inputs[WINOGRAD_TERMS * WINOGRAD_TERMS];
                F(along_both)(F(INPUTS), kind, t.pixels, t.inputs, from, NULL, c, inputs);
#pragma GCC unroll 25
                for (int n = 0; n < t.inputs * t.inputs; n++)
                    F(store)(to + n * place, inputs[n]);
            }
        }
    }
}

static void F(transform)(const winograd_job *job, REAL *made, REAL *spare, ptrdiff_t block, F(layout) layout) {
    if (job->kind == WINOGRAD_ONE)
        F(transform_of)(WINOGRAD_ONE, job, made, spare, block, layout);
    else if (job->kind == WINOGRAD_TWO)
        F(transform_of)(WINOGRAD_TWO, job, made, spare, block, layout);
    else
        F(transform_of)(WINOGRAD_TWO_TURNED, job, made, spare, block, layout);
}

static ptrdiff_t F(inputs_size)(const winograd_job *job) {
    return (job->channels + INNER - 1) / INNER * places(WINOGRAD_TILES[job->kind].inputs) * job->tiles * F(STEP);
}

static void F(inputs)(const winograd_job *job, void *made, void *spare, ptrdiff_t block) {
    F(transform)(job, made, spare, block, (F(layout)){INNER, F(STEP)});
}

/* Outputs */

#define TILE(height)                                                                                                  \
    static void F(tile_of_##height)(const REAL *rows, const REAL *columns, ptrdiff_t inner, const REAL *before,       \
                                    ptrdiff_t before_step, REAL *made) {                                              \
        F(tile)(rows, F(STEP), 1, columns, F(WIDTH), inner, before, before_step, made, F(WIDTH), height, VECTORS);    \
    }                                                                                                                 \
    static void F(gradient_tile_of_##height)(const REAL *rows, ptrdiff_t step, const REAL *columns, ptrdiff_t inner,  \
                                             const REAL *before, ptrdiff_t before_step, REAL *made) {                 \
        F(tile)(rows, 1, step, columns, F(WIDTH), inner, before, before_step, made, F(WIDTH), height, VECTORS);       \
    }
HEIGHTS(TILE)
#undef TILE
#define TILE(height) [height] = F(tile_of_##height),
static void (*const F(tiles)[HEIGHT + 1])(const REAL *, const REAL *, ptrdiff_t, const REAL *, ptrdiff_t,
                                          REAL *) = {HEIGHTS(TILE)};
#undef TILE
#define TILE(height) [height] = F(gradient_tile_of_##height),
static void (*const F(gradient_tiles)[HEIGHT + 1])(const REAL *, ptrdiff_t, const REAL *, ptrdiff_t, const REAL *, ptrdiff_t,
                                                   REAL *) = {HEIGHTS(TILE)};
#undef TILE

/* The largest height that there is for so many rows. */
static ptrdiff_t F(height)(ptrdiff_t rows) {
    ptrdiff_t height = at_most(rows, HEIGHT);
    while (!F(tiles)[height])
        height--;
    return height;
}

static ptrdiff_t F(spare_size)(const winograd_job *job) {
    const winograd_tile *t = &WINOGRAD_TILES[job->kind];
    const ptrdiff_t sums = ((places(t->sums) + places(t->outputs)) * job->tiles + 1) * F(WIDTH);
    return at_least(F(pixels_size)(job, at_least(job->channels, job->gradient ? job->outs : 0)), sums);
}

static void F(add_products)(const winograd_job *job, const REAL *inputs, const REAL *weights, REAL *made, ptrdiff_t tiles) {
    const winograd_tile *t = &WINOGRAD_TILES[job->kind];
    for (ptrdiff_t c = 0, begun = 0; c < job->channels; c += INNER) {
        const ptrdiff_t inner = at_most(INNER, job->channels - c);
        for (int n = 0; n < places(t->terms); n++) {
            const int a = n / t->terms, b = n % t->terms, sum = t->term[a].sum * t->sums + t->term[b].sum;
            const ptrdiff_t input = c / INNER * places(t->inputs) + t->term[a].input * t->inputs + t->term[b].input;
            const ptrdiff_t weight = WEIGHTS * c + (t->term[a].weight * WINOGRAD_WEIGHTS + t->term[b].weight) * inner;
            const bool first = !(begun >> sum & 1);
            for (ptrdiff_t i = 0, height; i < tiles; i += height) {
                height = F(height)(tiles - i);
                REAL *to = made + (sum * job->tiles + i) * F(WIDTH);
                F(tiles)[height](inputs + (input * job->tiles + i) * F(STEP), weights + weight * F(WIDTH), inner,
                                 first ? F(zeros) : to, first ? 0 : F(WIDTH), to);
            }
            begun |= (ptrdiff_t)1 << sum;
        }
    }
}

ALWAYS_INLINE bool F(sums_of)(winograd_kind kind, const winograd_job *job, const void *inputs, const void *weights, REAL *sums,
                              ptrdiff_t block, ptrdiff_t outs_block) {
    const winograd_tile t = WINOGRAD_TILES[kind];
    REAL *const unused = sums + places(t.sums) * job->tiles * F(WIDTH), *const pixels = unused + F(WIDTH);
    ptrdiff_t at = 0, tiles = 0;
    piece piece;
    while (next_piece(job, block, &at, &piece))
        tiles += piece.rows * piece.columns;
    F(add_products)(job, inputs, weights, sums, tiles);
    const ptrdiff_t first = outs_block * F(WIDTH), outs = at_most(F(WIDTH), job->outs - first);
    const ptrdiff_t plane = job->made_height * job->made_width, place = job->tiles * F(WIDTH);
    const REAL *bias = job->bias ? (const REAL *)job->bias + first : NULL;
    V odd = {0};
    at = 0;
    for (ptrdiff_t tile = 0; next_piece(job, block, &at, &piece);) {
        const ptrdiff_t top = t.outputs * piece.row, left = t.outputs * piece.column;
        const ptrdiff_t high = at_most(t.outputs * piece.rows, job->made_height - top);
        const ptrdiff_t wide = at_most(t.outputs * piece.columns, job->made_width - left);
        for (ptrdiff_t i = 0; i < piece.rows * piece.columns; i++, tile++) {
            const ptrdiff_t y = t.outputs * (i / piece.columns), x = t.outputs * (i % piece.columns);
            REAL *to[WINOGRAD_OUTPUTS * WINOGRAD_OUTPUTS];
            for (int n = 0; n < t.outputs * t.outputs; n++) {
                const ptrdiff_t row = y + job->to[0][n / t.outputs], column = x + job->to[1][n % t.outputs];
                to[n] = row < high && column < wide ? pixels + (row * wide + column) * F(WIDTH) : unused;
            }
            for (ptrdiff_t lane = 0; lane < outs; lane += LANES) {
                V made[WINOGRAD_OUTPUTS * WINOGRAD_OUTPUTS], more = {0};
                F(along_both)(F(OUTPUTS), kind, t.sums, t.outputs, NULL, sums + tile * F(WIDTH) + lane, place, made);
                if (bias && outs - lane >= LANES)
                    more = F(load)(bias + lane);
                else if (bias)
                    for (ptrdiff_t n = 0; n < outs - lane; n++)
                        more[n] = bias[lane + n];
#pragma GCC unroll 16
                for (int n = 0; n < t.outputs * t.outputs; n++) {
                    odd += made[n] - made[n];
                    F(store)(to[n] + lane, made[n] + more);
                }
            }
        }
        REAL *made = (REAL *)job->made + piece.image * job->made_image + first * plane + top * job->made_width + left;
        for (ptrdiff_t lane = 0; lane < outs; lane += LANES) {
            const ptrdiff_t some = at_most(LANES, outs - lane);
            if (wide == job->made_width)
                F(turn_out)(pixels + lane, F(WIDTH), high * wide, some, made + lane * plane, plane);
            else
                for (ptrdiff_t y = 0; y < high; y++)
                    F(turn_out)(pixels + y * wide * F(WIDTH) + lane, F(WIDTH), wide, some,
                                made + lane * plane + y * job->made_width, plane);
        }
    }
    REAL sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += odd[i];
    return sum == 0;
}

static bool F(sums)(const winograd_job *job, const void *inputs, const void *weights, void *spare, ptrdiff_t block,
                    ptrdiff_t outs) {
    if (job->kind == WINOGRAD_ONE)
        return F(sums_of)(WINOGRAD_ONE, job, inputs, weights, spare, block, outs);
    if (job->kind == WINOGRAD_TWO)
        return F(sums_of)(WINOGRAD_TWO, job, inputs, weights, spare, block, outs);
    return F(sums_of)(WINOGRAD_TWO_TURNED, job, inputs, weights, spare, block, outs);
}

#include "winograd_weight_of_real.h"

#ifndef WINOGRAD_LOOPS
#define WINOGRAD_LOOPS(suffix)                                                                                          \
    {                                                                                                                   \
        .outs = WIDTH_##suffix, .weights_size = weights_size_##suffix, .inputs_size = inputs_size_##suffix,             \
        .spare_size = spare_size_##suffix, .weights = weights_##suffix, .inputs = inputs_##suffix, .sums = sums_##suffix, \
        .gradient_inputs_size = gradient_inputs_size_##suffix, .gradient_sent_size = gradient_sent_size_##suffix,       \
        .gradient_sums_size = gradient_sums_size_##suffix, .gradient_channels = gradient_channels_##suffix,             \
        .gradient_inputs = gradient_inputs_##suffix, .gradient_sent = gradient_sent_##suffix,                           \
        .gradient_products = gradient_products_##suffix, .gradient = gradient_##suffix,                                 \
    }
#endif
