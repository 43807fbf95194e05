/* The gradient by weight of convolutions of bfloat16, where the processor adds two products of them to a float at once: the sums
   over pairs of neighbouring positions. A channel's tap is a row that is read where it lies in the picture, and what was sent comes
   in panels of 32 outs. */
#include "conv_windows.h"
#include "gemm_bf16.h"
#include "native.h"
#include "turn.h"

#include <stdlib.h>
#include <string.h>

#ifdef BF16_PAIRS
DECLARE_LOOPS(turn_loops, turn_loops);

enum {
    HEIGHT = 12, LANES = 16, /* items of a tile, floats of a vector */
    PART = 1 << 20,          /* multiplications that are worth a thread, */
    TILES_PART = 1 << 23,    /* and those by tiles */
    CHUNK = 256,             /* positions whose items are copied for tiles, rows of them apart by a vector more: */
    CHUNK_ROW = CHUNK + 2 * LANES, /* the last of them is stored whole */
};

typedef struct {
    const convolution *c;
    const uint16_t *images;                  /* the padded picture */
    ptrdiff_t image, group, move[2];         /* its steps, as in conv_bf16.c */
    ptrdiff_t counts[3], pairs;              /* positions of an image along each dim, and pairs of them */
    const ptrdiff_t *items;                  /* of a window: a channel's tap each */
    ptrdiff_t inner, tiles, panels;          /* how many; of a group */
    ptrdiff_t parts, panel_pairs;            /* panels go by themselves or all together; pairs of one, in whole steps */
    _Atomic bool failed;
    const uint16_t *from;                    /* what was sent, with an even number of positions in a row */
    uint32_t *sent;                          /* the same as [group, panel, image, pair, out], and zeros behind the last image */
} weight_work;

/* Puts what was sent for images [begin, end) of [group, panel, image] into pairs of neighbours, 32 outs side by side. */
static void pack_body(void *context, npy_intp begin, npy_intp end) {
    const weight_work *work = context;
    const convolution *c = work->c;
    for (npy_intp i = begin; i < end; i++) {
        const ptrdiff_t image = i % c->images, panel = i / c->images % work->panels, group = i / c->images / work->panels;
        const ptrdiff_t first = panel * BF16_WIDTH, step = 2 * work->pairs;
        const ptrdiff_t outs = c->outs - first < BF16_WIDTH ? c->outs - first : BF16_WIDTH;
        const uint16_t *from = work->from + ((image * c->groups + group) * c->outs + first) * step;
        uint32_t *to = work->sent + ((group * work->panels + panel) * work->panel_pairs + image * work->pairs) * BF16_WIDTH;
        if (image == c->images - 1)
            memset(to + work->pairs * BF16_WIDTH, 0, (size_t)((work->panel_pairs - c->images * work->pairs) * BF16_WIDTH) * sizeof *to);
        if (outs < BF16_WIDTH)
            memset(to, 0, (size_t)(work->pairs * BF16_WIDTH) * sizeof *to);
        PICK(turn_loops)->turn[2]((const char *)from, step * 2, (char *)to, BF16_WIDTH * 4, work->pairs, outs);
    }
}

#define ROWS(rows) _Pragma("GCC unroll 16") for (int r = 0; r < rows; r++)

/* The sums of some items over all images, whose pairs of positions are `sent`; of so many vectors of outs. */
#define TILE(rows, vectors)                                                                                                   \
    BF16_TARGET static void tile_##rows##_##vectors(const weight_work *work, const uint16_t *image, const ptrdiff_t *items,   \
                                                    const uint32_t *sent, float (*sums)[BF16_WIDTH]) {                        \
        __m512 made[rows][vectors];                                                                                           \
        ROWS(rows) for (int v = 0; v < vectors; v++) made[r][v] = _mm512_setzero_ps();                                        \
        for (ptrdiff_t i = 0; i < work->c->images; i++, image += work->image)                                                 \
            for (ptrdiff_t z = 0; z < work->counts[0]; z++)                                                                   \
                for (ptrdiff_t y = 0; y < work->counts[1]; y++) {                                                             \
                    const uint16_t *const row = image + z * work->move[0] + y * work->move[1];                                \
                    for (ptrdiff_t x = 0; x < work->counts[2]; x += 2, sent += BF16_WIDTH) {                                  \
                        __m512i outs[vectors];                                                                                \
                        for (int v = 0; v < vectors; v++)                                                                     \
                            outs[v] = _mm512_loadu_si512(sent + v * LANES);                                                   \
                        ROWS(rows) {                                                                                          \
                            int32_t pair;                                                                                     \
                            memcpy(&pair, row + items[r] + x, sizeof pair);                                                   \
                            const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);                                          \
                            for (int v = 0; v < vectors; v++)                                                                 \
                                made[r][v] = _mm512_dpbf16_ps(made[r][v], (__m512bh)outs[v], both);                           \
                        }                                                                                                     \
                    }                                                                                                         \
                }                                                                                                             \
        ROWS(rows) for (int v = 0; v < vectors; v++) _mm512_storeu_ps(sums[r] + v * LANES, made[r][v]);                       \
    }
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
HEIGHTS(TILES)
#define NAMED(rows) [rows] = {tile_##rows##_1, tile_##rows##_2},
static void (*const tiles[HEIGHT + 1][2])(const weight_work *, const uint16_t *, const ptrdiff_t *, const uint32_t *,
                                          float (*)[BF16_WIDTH]) = {HEIGHTS(NAMED)};

/* Writes the sums of some items, rounded to even: made[out, item]. */
BF16_TARGET static void store(const float (*sums)[BF16_WIDTH], ptrdiff_t rows, ptrdiff_t outs, ptrdiff_t inner, uint16_t *made) {
    uint16_t halves[BF16_TALL][BF16_WIDTH];
    for (ptrdiff_t r = 0; r < rows; r++)
        _mm512_storeu_si512(halves[r], (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums[r] + LANES), _mm512_loadu_ps(sums[r])));
    PICK(turn_loops)->turn[1]((const char *)halves, sizeof halves[0], (char *)made, inner * 2, outs, rows);
}

/* Counts [group, panel, tile]. Images are added one after the other, whatever the threads are. */
static void tiles_body(void *context, npy_intp begin, npy_intp end) {
    const weight_work *work = context;
    const convolution *c = work->c;
    for (npy_intp i = begin; i < end; i++) {
        const ptrdiff_t tile = i % work->tiles, panel = i / work->tiles % work->panels, group = i / work->tiles / work->panels;
        const ptrdiff_t first = tile * work->inner / work->tiles, rows = (tile + 1) * work->inner / work->tiles - first;
        const uint32_t *sent = work->sent + (group * work->panels + panel) * work->panel_pairs * BF16_WIDTH;
        const ptrdiff_t out = panel * BF16_WIDTH, outs = c->outs - out < BF16_WIDTH ? c->outs - out : BF16_WIDTH;
        float sums[HEIGHT][BF16_WIDTH] = {{0}};
        tiles[rows][outs > LANES](work, work->images + group * work->group, work->items + first, sent, sums);
        store((const float (*)[BF16_WIDTH])sums, rows, outs, work->inner,
              (uint16_t *)c->weight + (group * c->outs + out) * work->inner + first);
    }
}

/* Items of positions [begin, begin + count), which are counted through all images, side by side; zeros up to a whole step. */
BF16_TARGET static void copy_items(const weight_work *work, const uint16_t *images, const ptrdiff_t *items, ptrdiff_t rows,
                                   ptrdiff_t begin, ptrdiff_t count, uint16_t *to) {
    const ptrdiff_t width = work->counts[2], height = work->counts[1], whole = bf16_whole_steps(count / 2) * 2;
    for (ptrdiff_t at = 0, length; at < count; at += length) {
        const ptrdiff_t line = (begin + at) / width, x = (begin + at) % width, y = line % height, plane = line / height;
        const uint16_t *from = images + plane / work->counts[0] * work->image + plane % work->counts[0] * work->move[0] +
                               y * work->move[1] + x;
        length = width - x < count - at ? width - x : count - at;
        for (ptrdiff_t k = 0; k < length; k += 2 * LANES) {
            const __mmask32 in = length - k < 2 * LANES ? (1u << (length - k)) - 1 : UINT32_MAX;
            for (ptrdiff_t r = 0; r < rows; r++)
                _mm512_storeu_si512(to + r * CHUNK_ROW + at + k, _mm512_maskz_loadu_epi16(in, from + items[r] + k));
        }
    }
    for (ptrdiff_t r = 0; r < rows && whole > count; r++)
        memset(to + r * CHUNK_ROW + count, 0, (size_t)(whole - count) * sizeof *to);
}

/* The same by tiles: counts [group, part of the panels, block of items]. */
static void blocks_body(void *context, npy_intp begin, npy_intp end) {
    weight_work *work = context;
    const convolution *c = work->c;
    const ptrdiff_t panels = work->parts > 1 ? 1 : work->panels, positions = 2 * c->images * work->pairs;
    typedef float square[BF16_TALL][BF16_WIDTH];
    char *const room = aligned_alloc(64, (size_t)panels * sizeof(square) + BF16_TALL * CHUNK_ROW * sizeof(uint16_t));
    if (!room) {
        work->failed = true;
        return;
    }
    square *const sums = (square *)room;
    uint16_t *const left = (uint16_t *)(sums + panels);
    for (npy_intp i = begin; i < end; i++) {
        const ptrdiff_t tile = i % work->tiles, panel = i / work->tiles % work->parts, group = i / work->tiles / work->parts;
        const ptrdiff_t first = tile * work->inner / work->tiles, rows = (tile + 1) * work->inner / work->tiles - first;
        const uint32_t *const sent = work->sent + (group * work->panels + panel) * work->panel_pairs * BF16_WIDTH;
        bf16_tiles_begin(rows);
        for (ptrdiff_t at = 0; at < positions; at += CHUNK) {
            const ptrdiff_t count = positions - at < CHUNK ? positions - at : CHUNK;
            copy_items(work, work->images + group * work->group, work->items + first, rows, at, count, left);
            for (ptrdiff_t p = 0; p < panels; p++)
                bf16_tiles_add(rows, left, CHUNK_ROW, 2 * BF16_STEP, sent + (p * work->panel_pairs + at / 2) * BF16_WIDTH,
                               bf16_whole_steps(count / 2), at > 0, sums[p][0], BF16_WIDTH);
        }
        bf16_tiles_end();
        for (ptrdiff_t p = 0; p < panels; p++) {
            const ptrdiff_t out = (panel + p) * BF16_WIDTH, outs = c->outs - out < BF16_WIDTH ? c->outs - out : BF16_WIDTH;
            store((const float (*)[BF16_WIDTH])sums[p], rows, outs, work->inner,
                  (uint16_t *)c->weight + (group * c->outs + out) * work->inner + first);
        }
    }
    free(room);
}

/* Rows with an odd number of positions get a zero behind them, which is multiplied with whatever follows in the picture. */
static const void *even_rows(conv_rooms *all, const weight_work *work) {
    const convolution *c = work->c;
    const ptrdiff_t *n = work->counts, channels = c->groups * c->outs, plane = conv_product(n);
    conv_images m = {.data = c->y, .images = c->images, .channels = channels, .sizes = {n[0], n[1], n[2]}, .phases = 1,
                     .steps = {channels * plane, plane, n[1] * n[2], n[2], 1}, .padded = {n[0], n[1], n[2] + 1}};
    return conv_padded(all, &m, c->size, false);
}

static bool is_finite(const uint16_t *made, ptrdiff_t count) {
    bool finite = true;
    for (ptrdiff_t i = 0; i < count; i++)
        finite &= (made[i] & 0x7f80) != 0x7f80;
    return finite;
}

bool conv_weight_bf16(const convolution *given) {
    const convolution narrow = conv_narrowed(given), *const c = &narrow;
    conv_rooms all = {.count = 0};
    conv_images m;
    ptrdiff_t taps[CONV_MOST_TAPS], move[3];
    weight_work work = {.c = c, .images = conv_windows(&all, c, &m, taps, move, true, c->counts[2] % 2 == 0),
                        .inner = c->channels * c->taps, .from = c->y};
    work.items = work.images ? conv_items(&all, c->channels, m.channel, taps, c->taps) : NULL;
    work.image = m.image;
    work.group = c->channels * m.channel;
    memcpy(work.move, move, sizeof work.move);
    memcpy(work.counts, c->counts, sizeof work.counts);
    conv_join_rows(work.counts, work.move);
    const bool odd = work.counts[2] % 2;
    if (odd && work.items) {
        work.from = even_rows(&all, &work);
        work.counts[2]++;
    }
    work.pairs = conv_product(work.counts) / 2;
    const bool by_tiles = bf16_tiles_take(work.inner);
    const ptrdiff_t height = by_tiles ? BF16_TALL : HEIGHT;
    work.tiles = (work.inner + height - 1) / height;
    work.panels = (c->outs + BF16_WIDTH - 1) / BF16_WIDTH;
    work.parts = by_tiles && c->groups * work.tiles >= 2 * native_threads() ? 1 : work.panels; /* which copy the items again */
    work.panel_pairs = bf16_whole_steps(c->images * work.pairs);
    const ptrdiff_t packs = c->groups * work.panels * c->images, lines = c->groups * work.panels * work.panel_pairs;
    const ptrdiff_t pieces = c->groups * work.parts * work.tiles;
    const ptrdiff_t each = c->images * work.pairs * height * BF16_WIDTH * (work.panels / work.parts);
    const bool good = work.items && work.from && (uintptr_t)work.from % sizeof(uint32_t) == 0;
    work.sent = good ? conv_room(&all, lines * BF16_WIDTH * (ptrdiff_t)sizeof *work.sent) : NULL;
    if (work.sent) {
        native_parallel(packs, PART / (work.pairs * BF16_WIDTH * 16) + 1, pack_body, &work);
        native_parallel(pieces, (by_tiles ? TILES_PART : PART) / each + 1, by_tiles ? blocks_body : tiles_body, &work);
    }
    const bool done = work.sent && !work.failed;
    conv_give_back(&all);
    return done && (!odd || is_finite(c->weight, c->groups * c->outs * work.inner)); /* zero times infinity is no part of a sum */
}
#else
bool conv_weight_bf16(const convolution *c) { return false; }
#endif
