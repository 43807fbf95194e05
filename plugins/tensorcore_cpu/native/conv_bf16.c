/* Convolutions of bfloat16 as products whose right side is gathered from the picture panel by panel, where the processor adds two
   products of them to a float at once: their sums, and the input's gradient with steps of one. */
#include "conv_windows.h"
#include "gemm_bf16.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

#ifdef BF16_PAIRS
enum {
    ROWS = 8,         /* outs under which gathering is not worth it, */
    RUN_ROWS = 2,     /* and so many for each run of a panel's columns */
    WEIGHT_OUTS = 4,  /* that are worth a panel of the gradient by weight */
    PART = 1 << 20,   /* multiplications that are worth a thread */
};

/* Elements that lie side by side in the picture: column j of a panel, of those in the mask, at from + j. */
typedef struct {
    ptrdiff_t from;
    uint32_t mask;
} run;

/* made[image, row, position] = the sum over items of left[row, item] * images[image, position + item], for each group. */
typedef struct {
    const uint16_t *images;
    ptrdiff_t image, group, move[2]; /* steps of the picture: image, group, and outputs along depth and height */
    ptrdiff_t count, counts[3];      /* images; outputs of each, which lie side by side along the width */
    const ptrdiff_t *items;          /* of a window: a channel's tap each */
    ptrdiff_t inner, panels;
    const bf16_rows *rows;           /* of each group */
    ptrdiff_t made_image;
    _Atomic bool failed;
} sums_work;

/* What the columns of a panel are: answers how many runs they come in, and where they go. */
static int cut(const sums_work *work, ptrdiff_t panel, run *runs, bf16_columns *to) {
    const ptrdiff_t positions = conv_product(work->counts), width = work->counts[2];
    int count = 0;
    ptrdiff_t at = panel * BF16_WIDTH;
    to->column = 0;
    to->parts = 0;
    for (ptrdiff_t lane = 0, length; lane < BF16_WIDTH && at < work->count * positions; lane += length, at += length) {
        const ptrdiff_t image = at / positions, position = at % positions, row = position / width, x = position % width;
        length = width - x < BF16_WIDTH - lane ? width - x : BF16_WIDTH - lane;
        const uint32_t mask = (uint32_t)((((uint64_t)1 << length) - 1) << lane);
        runs[count++] = (run){image * work->image + row / work->counts[1] * work->move[0] + row % work->counts[1] * work->move[1] +
                                  x - lane, mask};
        const ptrdiff_t made = image * work->made_image + position - lane;
        if (to->parts && to->part[to->parts - 1].at == made)
            to->part[to->parts - 1].mask |= mask;
        else
            to->part[to->parts++] = (bf16_part){made, mask};
    }
    return count;
}

BF16_INLINE __m512i gathered(const uint16_t *item, const run *runs, int count) {
    if (count == 1 && runs->mask == UINT32_MAX)
        return _mm512_loadu_si512(item + runs->from);
    __m512i made = _mm512_setzero_si512();
    _Pragma("GCC unroll 6") for (int i = 0; i < count; i++)
        made = _mm512_mask_loadu_epi16(made, runs[i].mask, item + runs[i].from);
    return made;
}

BF16_INLINE void gather_some(const uint16_t *images, const ptrdiff_t *items, ptrdiff_t inner, const run *runs, int count,
                             uint32_t *panel) {
    ptrdiff_t k = 0;
    for (; k + 1 < inner; k += 2, panel += BF16_WIDTH)
        bf16_interleave(gathered(images + items[k], runs, count), gathered(images + items[k + 1], runs, count), panel);
    if (k < inner)
        bf16_interleave(gathered(images + items[k], runs, count), _mm512_setzero_si512(), panel);
}

/* Pairs of items of all columns; a constant number of runs keeps their masks in registers. */
BF16_TARGET static void gather(const uint16_t *images, const ptrdiff_t *items, ptrdiff_t inner, const run *runs, int count,
                               uint32_t *panel) {
#define CASE(count)                                            \
    case count:                                                \
        gather_some(images, items, inner, runs, count, panel); \
        break;
    switch (count) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
    default:
        gather_some(images, items, inner, runs, count, panel);
    }
#undef CASE
}

static void sums_body(void *context, npy_intp begin, npy_intp end) {
    sums_work *work = context;
    const ptrdiff_t pairs = work->rows->pairs, depth = bf16_depth(pairs);
    const size_t panel_bytes = (size_t)(depth * BF16_WIDTH) * sizeof(uint32_t);
    char *room = aligned_alloc(64, panel_bytes + (pairs > depth ? (size_t)(work->rows->rows * BF16_WIDTH) * sizeof(float) : 0));
    if (!room) {
        work->failed = true;
        return;
    }
    for (npy_intp i = begin; i < end; i++) {
        const ptrdiff_t group = i / work->panels;
        const uint16_t *images = work->images + group * work->group;
        run runs[BF16_WIDTH];
        bf16_columns to;
        const int count = cut(work, i % work->panels, runs, &to);
        for (ptrdiff_t first = 0; first < pairs; first += depth) {
            const ptrdiff_t some = pairs - first < depth ? pairs - first : depth, rest = work->inner - 2 * first;
            gather(images, work->items + 2 * first, rest < 2 * some ? rest : 2 * some, runs, count, (uint32_t *)room);
            bf16_multiply(work->rows + group, (uint32_t *)room, first, some, (float *)(room + panel_bytes), &to);
        }
    }
    free(room);
}

/* The sums of all groups from a weight of (rows, inner) for each. */
static bool run_sums(sums_work *work, ptrdiff_t groups, ptrdiff_t rows, const uint16_t *weight, const uint16_t *bias,
                     uint16_t *made) {
    const ptrdiff_t positions = conv_product(work->counts), each = rows * work->inner * BF16_WIDTH;
    conv_join_rows(work->counts, work->move);
    work->panels = (work->count * positions + BF16_WIDTH - 1) / BF16_WIDTH;
    work->made_image = groups * rows * positions;
    bf16_rows *const all = calloc((size_t)groups, sizeof *all);
    void **const left = calloc((size_t)groups, sizeof *left);
    bool good = all && left;
    for (ptrdiff_t g = 0; good && g < groups; g++) {
        const gemm_job job = {.rows = rows, .inner = work->inner, .left = weight + g * rows * work->inner,
                              .left_row = work->inner, .left_inner = 1};
        all[g] = (bf16_rows){.rows = rows, .before = bias ? bias + g * rows : NULL, .before_row = 1,
                             .made = made + g * rows * positions, .made_row = positions};
        good = bf16_left(&job, true, all + g, left + g);
    }
    work->rows = all;
    if (good)
        native_parallel(groups * work->panels, PART / each + 1, sums_body, work);
    for (ptrdiff_t g = 0; left && g < groups; g++)
        free(left[g]);
    free(left);
    free(all);
    return good && !work->failed;
}

static bool make_sums(const convolution *given) {
    const convolution narrow = conv_narrowed(given), *const c = &narrow;
    conv_rooms all = {.count = 0};
    conv_images m;
    ptrdiff_t taps[CONV_MOST_TAPS], move[3];
    const void *images = conv_windows(&all, c, &m, taps, move, true, true);
    sums_work work = {.images = images, .image = m.image, .group = c->channels * m.channel, .move = {move[0], move[1]},
                      .count = c->images, .inner = c->channels * c->taps};
    memcpy(work.counts, c->counts, sizeof work.counts);
    work.items = images ? conv_items(&all, c->channels, m.channel, taps, c->taps) : NULL;
    const bool done = work.items && run_sums(&work, c->groups, c->outs, c->weight, c->bias, (uint16_t *)c->y);
    conv_give_back(&all);
    return done;
}

/* With steps of one: the sums over what was sent, with windows turned around. */
static bool make_input_gradient(const convolution *c) {
    conv_rooms all = {.count = 0};
    conv_images m = {.data = c->y, .images = c->images, .channels = c->outs * c->groups, .phases = 1};
    memcpy(m.steps, c->steps, sizeof m.steps);
    for (int d = 0; d < 3; d++) {
        m.sizes[d] = c->counts[d];
        m.before[d] = (c->kernel[d] - 1) * c->dilation[d] - c->padding[d];
        m.padded[d] = c->sizes[d] + (c->kernel[d] - 1) * c->dilation[d];
    }
    const void *images = conv_padded(&all, &m, c->size, true);
    ptrdiff_t taps[CONV_MOST_TAPS], tap = 0;
    for (ptrdiff_t z = c->kernel[0] - 1; z >= 0; z--)
        for (ptrdiff_t y = c->kernel[1] - 1; y >= 0; y--)
            for (ptrdiff_t x = c->kernel[2] - 1; x >= 0; x--)
                taps[tap++] = z * c->dilation[0] * m.plane + y * c->dilation[1] * m.row + x * c->dilation[2];
    sums_work work = {.images = images, .image = m.image, .group = c->outs * m.channel, .move = {m.plane, m.row},
                      .count = c->images, .inner = c->outs * c->taps};
    memcpy(work.counts, c->sizes, sizeof work.counts);
    work.items = images ? conv_items(&all, c->outs, m.channel, taps, c->taps) : NULL;
    uint16_t *const turned = work.items ? conv_room(&all, c->groups * c->channels * work.inner * (ptrdiff_t)c->size) : NULL;
    const uint16_t *from = c->weight; /* (group, out, channel, tap) becomes (group, channel, out, tap) */
    for (ptrdiff_t i = 0; turned && i < c->groups * c->outs; i++)
        for (ptrdiff_t j = 0; j < c->channels; j++, from += c->taps)
            memcpy(turned + ((i / c->outs * c->channels + j) * c->outs + i % c->outs) * c->taps, from, (size_t)c->taps * c->size);
    const bool done = turned && run_sums(&work, c->groups, c->channels, turned, NULL, (uint16_t *)c->x);
    conv_give_back(&all);
    return done;
}

/* With larger steps, positions as far apart as those meet the same taps: each such phase is a sum by itself. */
typedef struct {
    ptrdiff_t first[3], counts[3]; /* its first position along each dim, and how many it has */
    ptrdiff_t taps[CONV_MOST_TAPS], which[CONV_MOST_TAPS], count; /* where in the picture, and which of the window */
} phase;

/* How far from position q of a phase the output lies that its tap meets; false where it meets none. */
static bool meets(const convolution *c, int d, ptrdiff_t first, ptrdiff_t tap, ptrdiff_t *shift) {
    const ptrdiff_t at = first + c->padding[d] - tap * c->dilation[d];
    *shift = at / c->stride[d];
    return at % c->stride[d] == 0;
}

static void find_taps(const convolution *c, const conv_images *m, phase *of) {
    ptrdiff_t shift[3];
    of->count = 0;
    for (int d = 0; d < 3; d++)
        of->counts[d] = (c->sizes[d] - of->first[d] - 1) / c->stride[d] + 1;
    for (ptrdiff_t t = 0; t < c->taps; t++) {
        const ptrdiff_t tap[3] = {t / c->kernel[2] / c->kernel[1], t / c->kernel[2] % c->kernel[1], t % c->kernel[2]};
        bool all = true;
        for (int d = 0; d < 3; d++)
            all &= meets(c, d, of->first[d], tap[d], shift + d);
        if (!all)
            continue;
        of->taps[of->count] = (m->before[0] + shift[0]) * m->plane + (m->before[1] + shift[1]) * m->row + m->before[2] + shift[2];
        of->which[of->count++] = t;
    }
}

/* made[image, channel, position] of one phase. */
static bool make_phase(const convolution *c, const conv_images *m, const void *images, const phase *of, uint16_t *made) {
    const ptrdiff_t inner = c->outs * of->count;
    if (!of->count) {
        memset(made, 0, (size_t)(c->images * c->groups * c->channels * conv_product(of->counts)) * sizeof *made);
        return true;
    }
    conv_rooms all = {.count = 0};
    sums_work work = {.images = images, .image = m->image, .group = c->outs * m->channel, .move = {m->plane, m->row},
                      .count = c->images, .inner = inner};
    memcpy(work.counts, of->counts, sizeof work.counts);
    work.items = conv_items(&all, c->outs, m->channel, of->taps, of->count);
    uint16_t *const turned = work.items ? conv_room(&all, c->groups * c->channels * inner * (ptrdiff_t)sizeof *turned) : NULL;
    const uint16_t *from = c->weight; /* (group, out, channel, tap) becomes (group, channel, out, tap) */
    for (ptrdiff_t i = 0; turned && i < c->groups * c->outs; i++)
        for (ptrdiff_t j = 0; j < c->channels; j++, from += c->taps)
            for (ptrdiff_t t = 0; t < of->count; t++)
                turned[((i / c->outs * c->channels + j) * c->outs + i % c->outs) * of->count + t] = from[of->which[t]];
    const bool done = turned && run_sums(&work, c->groups, c->channels, turned, NULL, made);
    conv_give_back(&all);
    return done;
}

typedef struct {
    const convolution *c;
    const phase *last;  /* of those along the width, which have the same rows */
    uint16_t **made;    /* of each of them */
} merge_work;

/* Rows of all phases along the width become rows of the picture. */
BF16_TARGET static void merge_body(void *context, npy_intp begin, npy_intp end) {
    const merge_work *work = context;
    const convolution *c = work->c;
    const ptrdiff_t *first = work->last->first, *n = work->last->counts, step = c->stride[2], width = c->sizes[2];
    for (npy_intp i = begin; i < end; i++) {
        const ptrdiff_t y = i % n[1], z = i / n[1] % n[0], plane = i / n[1] / n[0];
        const ptrdiff_t line = (plane * c->sizes[0] + first[0] + z * c->stride[0]) * c->sizes[1] + first[1] + y * c->stride[1];
        uint16_t *to = (uint16_t *)c->x + line * width;
        ptrdiff_t q = 0;
        if (step == 2) {
            const uint16_t *even = work->made[0] + i * ((width + 1) / 2), *odd = work->made[1] + i * (width / 2);
            for (; 2 * q + 64 <= width; q += 32)
                bf16_interleave(_mm512_loadu_si512(even + q), _mm512_loadu_si512(odd + q), (uint32_t *)(to + 2 * q));
        }
        for (ptrdiff_t p = 0; p < step && p < width; p++) {
            const ptrdiff_t count = (width - p - 1) / step + 1;
            const uint16_t *from = work->made[p] + i * count;
            for (ptrdiff_t k = q; k < count; k++)
                to[k * step + p] = from[k];
        }
    }
}

static bool make_strided_input_gradient(const convolution *c) {
    conv_rooms all = {.count = 0};
    conv_images m = {.data = c->y, .images = c->images, .channels = c->outs * c->groups, .phases = 1};
    memcpy(m.steps, c->steps, sizeof m.steps);
    for (int d = 0; d < 3; d++) {
        ptrdiff_t low = 0, high = c->counts[d], shift;
        for (ptrdiff_t first = 0; first < c->stride[d] && first < c->sizes[d]; first++)
            for (ptrdiff_t tap = 0; tap < c->kernel[d]; tap++)
                if (meets(c, d, first, tap, &shift)) {
                    const ptrdiff_t last = (c->sizes[d] - 1 - first) / c->stride[d] + shift + 1;
                    low = shift < low ? shift : low;
                    high = last > high ? last : high;
                }
        m.sizes[d] = c->counts[d];
        m.before[d] = -low;
        m.padded[d] = high - low;
    }
    const void *images = conv_padded(&all, &m, c->size, true);
    const ptrdiff_t width = (c->sizes[2] - 1) / c->stride[2] + 1, steps = c->stride[2] < c->sizes[2] ? c->stride[2] : c->sizes[2];
    const ptrdiff_t planes = c->images * c->groups * c->channels;
    const ptrdiff_t most = planes * ((c->sizes[0] - 1) / c->stride[0] + 1) * ((c->sizes[1] - 1) / c->stride[1] + 1) * width;
    uint16_t *const room = images ? conv_room(&all, most * steps * (ptrdiff_t)sizeof *room) : NULL;
    phase *const of = room ? conv_room(&all, sizeof *of) : NULL;
    uint16_t **const made = of ? conv_room(&all, steps * (ptrdiff_t)sizeof *made) : NULL;
    bool done = made != NULL;
    for (ptrdiff_t p = 0; done && p < steps; p++)
        made[p] = room + p * most;
    for (ptrdiff_t z = 0; done && z < c->stride[0] && z < c->sizes[0]; z++)
        for (ptrdiff_t y = 0; done && y < c->stride[1] && y < c->sizes[1]; y++) {
            for (ptrdiff_t x = 0; done && x < steps; x++) {
                memcpy(of->first, (ptrdiff_t[]){z, y, x}, sizeof of->first);
                find_taps(c, &m, of);
                done = make_phase(c, &m, images, of, made[x]);
            }
            merge_work work = {c, of, made};
            if (done)
                native_parallel(planes * of->counts[0] * of->counts[1], PART / (64 * c->sizes[2]) + 1, merge_body, &work);
        }
    conv_give_back(&all);
    return done;
}

/* Whether few multiplications in single precision are faster than all of them so, by cycles that were measured on a Zen 4: 64 to
   64 channels, 14x14, 16 images, took 1113 us and 1240 us, 512 to 512, 7x7, 29 ms and 18 ms. */
static bool winograd_is_faster(const convolution *c, const ptrdiff_t *counts, ptrdiff_t rows, ptrdiff_t sources, ptrdiff_t runs) {
    convolution wide = *c;
    wide.type = TYPE_F32;
    wide.size = sizeof(float);
    if (c->stride[1] != 1 || c->stride[2] != 1 || !winograd_fits(&wide) || !winograd_pays(&wide))
        return false;
    const double tiles = (double)(c->images * ((counts[1] + 1) / 2) * ((counts[2] + 1) / 2)), both = (double)(rows * sources);
    const double panels = (double)((c->images * conv_product(counts) + BF16_WIDTH - 1) / BF16_WIDTH);
    const double winograd = both * (1.1 * tiles + 15) + 6 * tiles * (double)(rows + sources);
    const double packing = c->wanted == CONV_SUMS ? 5 : 13;
    return winograd < panels * (9.5 * both + 4.5 * (double)sources * (double)(3 + 6 * runs)) + packing * both;
}

static bool has_steps(const convolution *c) { return c->stride[0] != 1 || c->stride[1] != 1 || c->stride[2] != 1; }

bool conv_takes_bf16(const convolution *c) {
    const bool sums = c->wanted == CONV_SUMS;
    if (!bf16_here())
        return false;
    if (c->wanted == CONV_WEIGHT_GRADIENT)
        return c->outs >= WEIGHT_OUTS;
    const ptrdiff_t *const counts = sums ? c->counts : c->sizes, rows = sums ? c->outs : c->channels;
    if (!sums && has_steps(c) && !bf16_tiles_take(rows))
        return false;
    const ptrdiff_t steps = sums ? 1 : c->stride[2], line = (counts[2] - 1) / steps + 1;
    const ptrdiff_t runs = 1 + (BF16_WIDTH - 1) / (pointwise_fits(c) ? conv_product(counts) : line);
    return rows >= ROWS && rows >= RUN_ROWS * runs &&
           (bf16_tiles_take(rows) || !winograd_is_faster(c, counts, rows, sums ? c->channels : c->outs, runs));
}

bool conv_run_bf16(const convolution *c) {
    return c->wanted == CONV_SUMS             ? make_sums(c)
           : c->wanted != CONV_INPUT_GRADIENT ? conv_weight_bf16(c)
           : has_steps(c)                     ? make_strided_input_gradient(c)
                                              : make_input_gradient(c);
}
#else
bool conv_takes_bf16(const convolution *c) { return false; }
bool conv_run_bf16(const convolution *c) { return false; }
#endif
