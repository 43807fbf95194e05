/* The steps of recurrent layers: one product and one cell for each. */
#include "recurrent_steps.h"

#include "gemm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(recurrent_loops, recurrent_loops);

enum {
    ROWS = 48,            /* whose products lie on the stack while the cell takes them */
    STACK = 32768,        /* bytes: gates x ROWS x the width of a tile */
    WORK = 1 << 20,       /* multiplications of one step that are worth a second thread */
    LINE = 64,            /* bytes that come into a cache together */
    OWN_ROWS = 4,         /* of the batch that a thread may take through all steps by itself, */
    OWN_BYTES = 1 << 20,  /* where the weight fits its second cache */
};

/* Some rows of the batch, and units in chunks as wide as a tile, for which the products and the cell are made together. */
typedef struct {
    const recurrent_call *of;
    const recurrent_part *all;
    const gemm_real_loops *real;
    recurrent_cell cell;
    bool backward;
    size_t bytes;                     /* of an element */
    ptrdiff_t inner, at_once, blocks; /* the inner dim of the products, and how it is cut */
    ptrdiff_t chunks, slot;           /* and elements of one packed panel */
    ptrdiff_t per_chunk;              /* products of a chunk: one for each gate, or one */
    char *packed, *left;              /* the weight in panels [chunk, product, block]; the rows of one step */
    gemm_job right;
    ptrdiff_t first;                  /* of its rows of the batch */
    ptrdiff_t start, rows;            /* of the step whose cell runs; no cell runs where there are none */
    ptrdiff_t product_rows;           /* of the product before it */
    bool alike;                       /* its rows are one and the same, as those of a state of zeros: one is made for all */
} work;

static void *moved(const void *data, ptrdiff_t elements, size_t bytes) {
    return data ? (char *)data + elements * (ptrdiff_t)bytes : NULL;
}

static recurrent_cell cell_of(const recurrent_call *of, bool backward) {
    const recurrent_real_loops *cells = &PICK(recurrent_loops)->real[of->type];
    switch (of->kind) {
    case LSTM:
        return backward ? cells->lstm_backward : cells->lstm;
    case GRU:
        return backward ? cells->gru_backward : cells->gru;
    default:
        return backward ? cells->rnn_backward : cells->rnn;
    }
}

static void pack_body(void *context, npy_intp begin, npy_intp end) {
    const work *w = context;
    const ptrdiff_t width = w->real->width, size = w->of->size;
    for (npy_intp chunk = begin; chunk < end; chunk++)
        for (ptrdiff_t p = 0; p < w->per_chunk; p++)
            for (ptrdiff_t b = 0; b < w->blocks; b++) {
                gemm_part part = {0, 0, p * size + chunk * width, at_most(width, size - chunk * width),
                                  b * w->at_once, at_most(w->at_once, w->inner - b * w->at_once)};
                char *to = w->packed + ((chunk * w->per_chunk + p) * w->blocks + b) * w->slot * (ptrdiff_t)w->bytes;
                w->real->pack_right(&w->right, &part, to);
            }
}

/* A row of one of the blocks of the left side. */
static ptrdiff_t left_at(const work *w, ptrdiff_t block, ptrdiff_t row) {
    return (block * w->of->batch + w->first + row) * w->real->left_step;
}

/* The left side of the next products: rows of `inner` elements. */
static void set_left(work *w, const void *rows, ptrdiff_t count) {
    gemm_job job = {.left = rows, .left_row = w->inner, .left_inner = 1};
    for (ptrdiff_t b = 0; b < w->blocks; b++) {
        gemm_part part = {0, count, 0, 0, b * w->at_once, at_most(w->at_once, w->inner - b * w->at_once)};
        w->real->pack_left(&job, &part, moved(w->left, left_at(w, b, 0), w->bytes));
    }
    w->product_rows = count;
}

/* Rows [begin, end) of an array whose rows have `runs` times the units of a layer: those of one part, without the line that came
   with the part before. Always inline, since a function that does nothing else is left out by GCC. */
static inline __attribute__((always_inline)) void fetch(const work *w, const void *array, ptrdiff_t runs, bool first,
                                                        ptrdiff_t units, ptrdiff_t begin, ptrdiff_t end) {
    if (!array)
        return;
    const uintptr_t run = (uintptr_t)w->of->size * w->bytes, wide = (uintptr_t)units * w->bytes;
    for (ptrdiff_t i = begin * runs; i < end * runs; i++) {
        const uintptr_t at = (uintptr_t)array + (uintptr_t)i * run;
        for (uintptr_t line = (at + (first ? 0 : LINE - 1)) / LINE * LINE; line < at + wide; line += LINE)
            __builtin_prefetch((const void *)line, 0, 2);
    }
}

/* Asks for what the cell will read and write, one of `turns` parts of it at each of its products: it comes meanwhile, where
   waiting for it took the cell two thirds of its time. */
static void fetch_cell(const work *w, const recurrent_part *part, bool first, ptrdiff_t turn, ptrdiff_t turns) {
    const ptrdiff_t begin = part->rows * turn / turns, end = part->rows * (turn + 1) / turns, gates = w->of->gates;
    fetch(w, part->x, gates, first, part->width, begin, end);
    fetch(w, part->acts, gates, first, part->width, begin, end);
    fetch(w, part->dx, gates, first, part->width, begin, end);
    fetch(w, part->dz != part->dx ? part->dz : NULL, gates, first, part->width, begin, end);
    fetch(w, part->made, 1, first, part->width, begin, end);
    fetch(w, part->before, 1, first, part->width, begin, end);
    fetch(w, part->inner, 1, first, part->width, begin, end);
    fetch(w, part->grads, 1, first, part->width, begin, end);
}

/* Product p of a chunk for some rows, before the cell of a part. */
static void multiply(const work *w, ptrdiff_t chunk, ptrdiff_t p, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t columns,
                     void *made, ptrdiff_t made_row, const void *before, const recurrent_part *part_after) {
    gemm_job job = {.made = made, .made_row = made_row, .before = before, .before_row = made_row};
    for (ptrdiff_t b = 0; b < w->blocks; b++) {
        fetch_cell(w, part_after, !chunk, p * w->blocks + b, w->per_chunk * w->blocks);
        const ptrdiff_t inner = at_most(w->at_once, w->inner - b * w->at_once);
        gemm_part part = {0, rows, 0, columns, b, inner};
        w->real->multiply(&job, &part, moved(w->left, left_at(w, b, row), w->bytes),
                          moved(w->packed, ((chunk * w->per_chunk + p) * w->blocks + b) * w->slot, w->bytes), NULL, NULL);
    }
}

/* The arrays at a row of the sequences, a row of the batch and a unit. */
static recurrent_part part_at(const work *w, ptrdiff_t row, ptrdiff_t of_batch, ptrdiff_t unit) {
    recurrent_part part = *w->all;
    const ptrdiff_t size = part.size, wide = row * w->of->gates * size + unit, narrow = row * size + unit;
    const ptrdiff_t state = of_batch * size + unit;
    part.x = moved(part.x, wide, w->bytes);
    part.acts = moved(part.acts, wide, w->bytes);
    part.dx = moved(part.dx, wide, w->bytes);
    part.dz = moved(part.dz, wide, w->bytes);
    part.made = moved(part.made, narrow, w->bytes);
    part.before = moved(part.before, narrow, w->bytes);
    part.inner = moved(part.inner, narrow, w->bytes);
    part.prev = moved(part.prev, narrow, w->bytes);
    part.grads = moved(part.grads, narrow, w->bytes);
    part.bias = moved(part.bias, unit, w->bytes);
    part.h = moved(part.h, state, w->bytes);
    part.c = moved(part.c, state, w->bytes);
    part.dh = moved(part.dh, state, w->bytes);
    part.dc = moved(part.dc, state, w->bytes);
    return part;
}

static void forward_body(void *context, npy_intp begin, npy_intp end) {
    const work *w = context;
    _Alignas(64) char products[STACK];
    const ptrdiff_t width = w->real->width, lanes = w->real->lanes;
    for (npy_intp chunk = begin; chunk < end; chunk++) {
        const ptrdiff_t unit = chunk * width, units = at_most(width, w->of->size - unit);
        const ptrdiff_t columns = 2 * units <= lanes ? lanes / 2 : parts_of(units, lanes) * lanes;
        for (ptrdiff_t row = 0; row < w->rows; row += ROWS) {
            recurrent_part part = part_at(w, w->start + row, w->first + row, unit);
            part.rows = at_most(ROWS, w->rows - row);
            part.width = units;
            part.z = products;
            part.z_row = w->alike ? 0 : width;
            part.z_gate = ROWS * width;
            for (ptrdiff_t gate = 0; gate < w->of->gates; gate++)
                multiply(w, chunk, gate, row, w->alike ? 1 : part.rows, columns,
                         moved(products, gate * part.z_gate, w->bytes), width, NULL, &part);
            w->cell(&part);
        }
    }
}

/* What the step before sends back through the weight, added to what did not go through it in a GRU, then the cell of this step. */
static void backward_body(void *context, npy_intp begin, npy_intp end) {
    const work *w = context;
    const ptrdiff_t width = w->real->width;
    for (npy_intp chunk = begin; chunk < end; chunk++) {
        const ptrdiff_t unit = chunk * width;
        recurrent_part part = part_at(w, w->start, w->first, unit);
        part.width = at_most(width, w->of->size - unit);
        part.rows = w->rows;
        if (w->product_rows)
            multiply(w, chunk, 0, 0, w->product_rows, part.width, part.dh, part.size, w->of->kind == GRU ? part.dh : NULL, &part);
        if (w->rows)
            w->cell(&part);
    }
}

/* Some rows of the batch through one step; a thread that has taken rows of its own does not share it. */
static void run_step(work *w) {
    const ptrdiff_t rows = at_least(w->rows, w->product_rows);
    const bool much = rows * w->of->gates * w->of->size * w->of->size >= WORK;
    if (rows)
        native_parallel(w->chunks, much ? 1 : w->chunks, w->backward ? backward_body : forward_body, w);
}

static bool are_alike(const char *rows, ptrdiff_t count, size_t bytes) {
    return count > 1 && !memcmp(rows, rows + bytes, (size_t)(count - 1) * bytes);
}

static void begin_step(work *w, ptrdiff_t step, ptrdiff_t end) {
    w->start = w->of->first[step] + w->first;
    w->rows = at_least(0, at_most(end, w->of->count[step]) - w->first);
}

/* Rows [begin, end) of the batch through all steps: none of them needs another. */
static void sequences_body(void *context, npy_intp begin, npy_intp end) {
    work w = *(const work *)context;
    const recurrent_call *of = w.of;
    w.first = begin;
    if (!w.backward) {
        for (ptrdiff_t step = 0; step < of->steps; step++) {
            begin_step(&w, step, end);
            const recurrent_part part = part_at(&w, w.start, w.first, 0);
            memcpy((void *)part.prev, part.h, (size_t)(w.rows * of->size) * w.bytes);
            w.alike = are_alike(part.prev, w.rows, (size_t)of->size * w.bytes);
            set_left(&w, part.prev, w.rows);
            run_step(&w);
        }
        return;
    }
    for (ptrdiff_t step = of->steps - 1; step >= 0; step--) {
        begin_step(&w, step, end);
        run_step(&w);
        set_left(&w, moved(w.all->dz, w.start * of->gates * of->size, w.bytes), w.rows);
    }
    w.rows = 0;
    if (of->for_h0)
        run_step(&w);
}

bool recurrent_run(const recurrent_call *of, const recurrent_part *all, bool backward) {
    const gemm_real_loops *real = gemm_real(of->type);
    const ptrdiff_t inner = backward ? of->gates * of->size : of->size, blocks = parts_of(inner, real->most_inner);
    work w = {.of = of, .all = all, .real = real, .cell = cell_of(of, backward), .backward = backward,
              .bytes = TYPE_SIZE[of->type], .inner = inner, .at_once = parts_of(inner, blocks), .blocks = blocks,
              .chunks = parts_of(of->size, real->width), .per_chunk = backward ? 1 : of->gates,
              .right = {.right = PyArray_DATA(of->weight),
                        .right_inner = PyArray_STRIDE(of->weight, !backward) / (npy_intp)TYPE_SIZE[of->type],
                        .right_column = PyArray_STRIDE(of->weight, backward) / (npy_intp)TYPE_SIZE[of->type]}};
    w.slot = w.at_once * real->width;
    const size_t packed = (size_t)(w.chunks * w.per_chunk * blocks * w.slot) * w.bytes;
    const size_t left = (size_t)(of->batch * real->left_step * blocks) * w.bytes;
    w.packed = native_scratch(packed);
    w.left = native_scratch(left);
    const bool done = w.packed && w.left;
    if (done) {
        native_parallel(w.chunks, inner * of->gates * of->size < WORK ? w.chunks : 1, pack_body, &w);
        const ptrdiff_t own = at_least(OWN_ROWS, parts_of(of->batch, native_threads()));
        const bool apart = own < of->batch && packed <= OWN_BYTES && own * of->steps * of->gates * of->size * of->size >= WORK;
        if (apart)
            native_parallel(of->batch, own, sequences_body, &w);
        else
            sequences_body(&w, 0, of->batch);
    }
    native_scratch_free(w.packed, packed);
    native_scratch_free(w.left, left);
    return done;
}
