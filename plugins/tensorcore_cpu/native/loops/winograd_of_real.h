/* The loops of winograd.c for one type, which REAL, V, V_U, LANES, ZIP and F describe; included once for each.

   F(2x2, 3x3) of Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks": 16 multiplications where 4 windows of
   9 taps take 36. Inputs d, taps g and outputs y of one tile along one dim are
       y0 = m0 + m1 + m2,   y1 = m1 - m2 - m3   with
       m0 = (d0 - d2) g0,   m1 = (d1 + d2) (g0 + g1 + g2) / 2,   m2 = (d2 - d1) (g0 - g1 + g2) / 2,   m3 = (d1 - d3) g2,
   and in two dims the same of that. No output meets an input outside of its own window, so that a NaN goes no further; but an
   infinity becomes a NaN, and what is not finite is made once more elsewhere.

   Channels lie in the lanes, whatever the sizes of the images are: pixels are turned on the way in and on the way out, and
   between that there is a product of matrices for each of the 16 places, of rows of tiles and columns of outs. */

#include "tile_of_real.h"

enum { F(WIDTH) = VECTORS * LANES, F(STEP) = INNER + LANES /* from tile to tile: not a power of two */ };

static const REAL F(zeros)[F(WIDTH)];

static ptrdiff_t F(whole)(ptrdiff_t count) { return (count + LANES - 1) / LANES * LANES; }
static ptrdiff_t F(widths)(ptrdiff_t count) { return (count + F(WIDTH) - 1) / F(WIDTH); }

/* Weights: of one block of outs, for INNER channels after the other, for each place (channel, out). */

static ptrdiff_t F(weights_size)(const winograd_job *job) { return PLACES * job->channels * F(WIDTH); }

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

static void F(weights)(const winograd_job *job, void *room, ptrdiff_t block) {
    REAL *made = room, g[(TAPS + LANES) * LANES] __attribute__((aligned(VECTOR)));
    for (ptrdiff_t c = 0; c < job->channels; c++) {
        const ptrdiff_t first = c / INNER * INNER, inner = at_most(INNER, job->channels - first);
        for (ptrdiff_t lane = 0; lane < F(WIDTH); lane += LANES) {
            const ptrdiff_t o = block * F(WIDTH) + lane, rows = at_most(LANES, job->outs - o);
            REAL *to = made + PLACES * first * F(WIDTH) + (c - first) * F(WIDTH) + lane;
            V u[4][3];
            if (rows == LANES)
                F(taps)(job, o, c, LANES, g);
            else if (rows > 0)
                F(taps)(job, o, c, rows, g);
            else
                memset(g, 0, sizeof g);
#pragma GCC unroll 4
            for (int x = 0; x < 3; x++) {
                V down[3];
#pragma GCC unroll 4
                for (int y = 0; y < 3; y++)
                    down[y] = F(load)(g + (job->turned ? TAPS - 1 - (3 * y + x) : 3 * y + x) * LANES);
                const V outer = down[0] + down[2];
                u[0][x] = down[0];
                u[1][x] = (outer + down[1]) * (REAL)0.5;
                u[2][x] = (outer - down[1]) * (REAL)0.5;
                u[3][x] = down[2];
            }
#pragma GCC unroll 4
            for (int y = 0; y < 4; y++) {
                const V outer = u[y][0] + u[y][2];
                const ptrdiff_t place = inner * F(WIDTH);
                F(store)(to + (4 * y) * place, u[y][0]);
                F(store)(to + (4 * y + 1) * place, (outer + u[y][1]) * (REAL)0.5);
                F(store)(to + (4 * y + 2) * place, (outer - u[y][1]) * (REAL)0.5);
                F(store)(to + (4 * y + 3) * place, u[y][2]);
            }
        }
    }
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
    return F(whole)(channels) * (1 + (2 * at_most(job->rows, job->down) + 2) * (2 * job->columns + 2));
}

ALWAYS_INLINE void F(transform)(const winograd_job *job, REAL *made, REAL *spare, ptrdiff_t block, F(layout) layout) {
    const ptrdiff_t channels = F(whole)(job->channels), place = job->tiles * layout.step;
    REAL *const zeros = spare;
    memset(zeros, 0, (size_t)channels * sizeof(REAL));
    ptrdiff_t at = 0, tile = 0;
    for (piece piece; next_piece(job, block, &at, &piece);) {
        const ptrdiff_t top = 2 * piece.row - job->before[0], left = 2 * piece.column - job->before[1];
        F(pixels) p = {.data = spare + channels, .channels = channels, .low = at_least(top, 0), .left = at_least(left, 0)};
        p.high = at_least(0, at_most(top + 2 * piece.rows + 2, job->height) - p.low);
        p.wide = at_least(0, at_most(left + 2 * piece.columns + 2, job->width) - p.left);
        F(read)((const REAL *)job->data + piece.image * job->image, job->channels, job->height, job->width, &p);
        for (ptrdiff_t i = 0; i < piece.rows * piece.columns; i++, tile++) {
            const ptrdiff_t y = top + 2 * (i / piece.columns), x = left + 2 * (i % piece.columns);
            const REAL *from[PLACES];
            for (int n = 0; n < PLACES; n++)
                from[n] = F(pixel)(&p, zeros, y + n / 4, x + n % 4);
            for (ptrdiff_t c = 0; c < channels; c += LANES) {
                REAL *to = made + c / layout.some * PLACES * place + c % layout.some + tile * layout.step;
                V d[4][4];
#pragma GCC unroll 4
                for (int n = 0; n < 4; n++) {
                    const V a = F(load)(from[n] + c), b = F(load)(from[4 + n] + c);
                    const V e = F(load)(from[8 + n] + c), f = F(load)(from[12 + n] + c);
                    d[0][n] = a - e;
                    d[1][n] = b + e;
                    d[2][n] = e - b;
                    d[3][n] = b - f;
                }
#pragma GCC unroll 4
                for (int n = 0; n < 4; n++) {
                    F(store)(to + (4 * n) * place, d[n][0] - d[n][2]);
                    F(store)(to + (4 * n + 1) * place, d[n][1] + d[n][2]);
                    F(store)(to + (4 * n + 2) * place, d[n][2] - d[n][1]);
                    F(store)(to + (4 * n + 3) * place, d[n][1] - d[n][3]);
                }
            }
        }
    }
}

static ptrdiff_t F(inputs_size)(const winograd_job *job) {
    return (job->channels + INNER - 1) / INNER * PLACES * job->tiles * F(STEP);
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
    const ptrdiff_t sums = (PLACES + 4) * job->tiles * F(WIDTH);
    return at_least(F(pixels_size)(job, at_least(job->channels, job->gradient ? job->outs : 0)), sums);
}

static bool F(sums)(const winograd_job *job, const void *inputs, const void *weights, void *spare, ptrdiff_t block,
                    ptrdiff_t outs_block) {
    REAL *products = spare, *pixels = products + PLACES * job->tiles * F(WIDTH);
    ptrdiff_t at = 0, tiles = 0;
    piece piece;
    while (next_piece(job, block, &at, &piece))
        tiles += piece.rows * piece.columns;
    for (ptrdiff_t c = 0; c < job->channels; c += INNER) {
        const ptrdiff_t inner = at_most(INNER, job->channels - c);
        for (int place = 0; place < PLACES; place++) {
            const REAL *rows = (const REAL *)inputs + (c / INNER * PLACES + place) * job->tiles * F(STEP);
            const REAL *columns = (const REAL *)weights + (PLACES * c + place * inner) * F(WIDTH);
            REAL *made = products + place * job->tiles * F(WIDTH);
            for (ptrdiff_t i = 0, height; i < tiles; i += height) {
                height = F(height)(tiles - i);
                REAL *to = made + i * F(WIDTH);
                F(tiles)[height](rows + i * F(STEP), columns, inner, c ? to : F(zeros), c ? F(WIDTH) : 0, to);
            }
        }
    }
    const ptrdiff_t first = outs_block * F(WIDTH), outs = at_most(F(WIDTH), job->outs - first);
    const ptrdiff_t plane = job->made_height * job->made_width, place = job->tiles * F(WIDTH);
    const REAL *bias = job->bias ? (const REAL *)job->bias + first : NULL;
    V odd = {0};
    at = 0;
    for (ptrdiff_t tile = 0; next_piece(job, block, &at, &piece);) {
        const ptrdiff_t top = 2 * piece.row, left = 2 * piece.column;
        const ptrdiff_t high = at_most(2 * piece.rows, job->made_height - top);
        const ptrdiff_t wide = at_most(2 * piece.columns, job->made_width - left);
        for (ptrdiff_t i = 0; i < piece.rows * piece.columns; i++, tile++) {
            const ptrdiff_t y = 2 * (i / piece.columns), x = 2 * (i % piece.columns);
            REAL *const to = pixels + (y * wide + x) * F(WIDTH);
            for (ptrdiff_t lane = 0; lane < outs; lane += LANES) {
                const REAL *m = products + tile * F(WIDTH) + lane;
                V down[2][4], more = {0};
#pragma GCC unroll 4
                for (int n = 0; n < 4; n++) {
                    const V b = F(load)(m + (4 + n) * place), e = F(load)(m + (8 + n) * place);
                    down[0][n] = F(load)(m + n * place) + (b + e);
                    down[1][n] = (b - e) - F(load)(m + (12 + n) * place);
                }
                if (bias && outs - lane >= LANES)
                    more = F(load)(bias + lane);
                else if (bias)
                    for (ptrdiff_t n = 0; n < outs - lane; n++)
                        more[n] = bias[lane + n];
#pragma GCC unroll 2
                for (int n = 0; n < 2; n++) {
                    const V one = down[n][0] + (down[n][1] + down[n][2]), other = (down[n][1] - down[n][2]) - down[n][3];
                    odd += (one - one) + (other - other);
                    if (y + n == high)
                        break;
                    F(store)(to + n * wide * F(WIDTH) + lane, one + more);
                    if (x + 1 < wide)
                        F(store)(to + (n * wide + 1) * F(WIDTH) + lane, other + more);
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

/* The weight's gradient: what the chain rule makes of the lines above. What was sent becomes (y0, y0 + y1, y0 - y1, -y1), the
   products are sums over tiles, and g0 = m0 + (m1 + m2) / 2, g1 = (m1 - m2) / 2, g2 = (m1 + m2) / 2 + m3. */

static ptrdiff_t F(gradient_channels)(const winograd_job *job) { return F(widths)(job->channels); }
static ptrdiff_t F(sent_step)(const winograd_job *job) { return F(whole)(job->outs) + LANES; }

static ptrdiff_t F(gradient_inputs_size)(const winograd_job *job) {
    return F(widths)(job->channels) * PLACES * job->tiles * F(WIDTH);
}

static ptrdiff_t F(gradient_sent_size)(const winograd_job *job) { return PLACES * job->tiles * F(sent_step)(job); }

static ptrdiff_t F(gradient_sums_size)(const winograd_job *job) { return PLACES * job->outs * F(WIDTH); }

static void F(gradient_inputs)(const winograd_job *job, void *made, void *spare, ptrdiff_t block) {
    F(transform)(job, made, spare, block, (F(layout)){F(WIDTH), F(WIDTH)});
}

static void F(gradient_sent)(const winograd_job *job, void *room, void *spare, ptrdiff_t block) {
    const ptrdiff_t outs = F(whole)(job->outs), step = F(sent_step)(job), place = job->tiles * step;
    REAL *const made = room, *const zeros = spare;
    memset(zeros, 0, (size_t)outs * sizeof(REAL));
    ptrdiff_t at = 0, tile = 0;
    for (piece piece; next_piece(job, block, &at, &piece);) {
        F(pixels) p = {.data = zeros + outs, .channels = outs, .low = 2 * piece.row, .left = 2 * piece.column};
        p.high = at_most(2 * piece.rows, job->made_height - p.low);
        p.wide = at_most(2 * piece.columns, job->made_width - p.left);
        F(read)((const REAL *)job->made + piece.image * job->made_image, job->outs, job->made_height, job->made_width, &p);
        for (ptrdiff_t i = 0; i < piece.rows * piece.columns; i++, tile++) {
            const ptrdiff_t y = p.low + 2 * (i / piece.columns), x = p.left + 2 * (i % piece.columns);
            const REAL *from[4];
            for (int n = 0; n < 4; n++)
                from[n] = F(pixel)(&p, zeros, y + n / 2, x + n % 2);
            for (ptrdiff_t o = 0; o < outs; o += LANES) {
                REAL *to = made + tile * step + o;
                V down[4][2];
#pragma GCC unroll 2
                for (int n = 0; n < 2; n++) {
                    const V a = F(load)(from[n] + o), b = F(load)(from[2 + n] + o);
                    down[0][n] = a;
                    down[1][n] = a + b;
                    down[2][n] = a - b;
                    down[3][n] = -b;
                }
#pragma GCC unroll 4
                for (int n = 0; n < 4; n++) {
                    F(store)(to + (4 * n) * place, down[n][0]);
                    F(store)(to + (4 * n + 1) * place, down[n][0] + down[n][1]);
                    F(store)(to + (4 * n + 2) * place, down[n][0] - down[n][1]);
                    F(store)(to + (4 * n + 3) * place, -down[n][1]);
                }
            }
        }
    }
}

/* Counts places of blocks of channels. */
static void F(gradient_products)(const winograd_job *job, const void *inputs, const void *sent, void *sums, ptrdiff_t product,
                                 ptrdiff_t tiles, bool first) {
    const ptrdiff_t step = F(sent_step)(job);
    const REAL *rows = (const REAL *)sent + product % PLACES * job->tiles * step;
    const REAL *columns = (const REAL *)inputs + product * job->tiles * F(WIDTH);
    REAL *made = (REAL *)sums + product % PLACES * job->outs * F(WIDTH);
    for (ptrdiff_t o = 0, height; o < job->outs; o += height) {
        height = F(height)(job->outs - o);
        REAL *to = made + o * F(WIDTH);
        F(gradient_tiles)[height](rows + o, step, columns, tiles, first ? F(zeros) : to, first ? 0 : F(WIDTH), to);
    }
}

static bool F(gradient)(const winograd_job *job, const void *sums, ptrdiff_t block) {
    const REAL *products = sums;
    const ptrdiff_t place = job->outs * F(WIDTH);
    REAL odd = 0;
    for (ptrdiff_t o = 0; o < job->outs; o++)
        for (ptrdiff_t lane = 0; lane < F(WIDTH) && block * F(WIDTH) + lane < job->channels; lane += LANES) {
            const ptrdiff_t c = block * F(WIDTH) + lane, some = at_most(LANES, job->channels - c);
            const REAL *m = products + o * F(WIDTH) + lane;
            V down[3][4];
            REAL taps[TAPS][LANES] __attribute__((aligned(VECTOR)));
#pragma GCC unroll 4
            for (int n = 0; n < 4; n++) {
                const V b = F(load)(m + (4 + n) * place), e = F(load)(m + (8 + n) * place), sum = (b + e) * (REAL)0.5;
                down[0][n] = F(load)(m + n * place) + sum;
                down[1][n] = (b - e) * (REAL)0.5;
                down[2][n] = sum + F(load)(m + (12 + n) * place);
            }
#pragma GCC unroll 4
            for (int n = 0; n < 3; n++) {
                const V sum = (down[n][1] + down[n][2]) * (REAL)0.5;
                F(store)(taps[3 * n], down[n][0] + sum);
                F(store)(taps[3 * n + 1], (down[n][1] - down[n][2]) * (REAL)0.5);
                F(store)(taps[3 * n + 2], sum + down[n][3]);
            }
            REAL *to = (REAL *)job->gradient + (o * job->channels + c) * TAPS;
            for (ptrdiff_t i = 0; i < some; i++)
                for (int t = 0; t < TAPS; t++, to++) {
                    *to = taps[t][i];
                    odd += *to - *to;
                }
        }
    return odd == 0;
}

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
