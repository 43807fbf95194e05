/* Fused nests at work: blocks, loads, reductions and their pieces. No Python object is touched in here. */
#include "fused.h"

#include "activate.h"
#include "cast.h"
#include "elementwise.h"
#include "fused_reduce.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(elementwise_loops, elementwise_loops);
DECLARE_LOOPS(cast_loops, cast_loops);
DECLARE_LOOPS(activate_loops, activate_loops);
DECLARE_LOOPS(chain_loops, chain_loops);

static const elementwise_loops *loops;
static const cast_loops *casts;
static const activate_loops *activations;
static const chain_loops *chains;

enum {
    PIECE = 1 << 15,  /* elements of a long row that are reduced by themselves, whatever the number of threads */
    SMALL = 1 << 14,  /* bytes of scratch space that the stack has room for */
    FEW = 48,         /* values, and loads, of which there is room on the stack */
    SPREAD = 256,     /* elements of a number that an activation meets side by side */
};

typedef struct {
    char *data;
    ptrdiff_t step;
} reference;

typedef struct {
    const fused_nest *nest;
    PyArrayObject *const *arrays;
    const fused_view *views;
    char *table;
    fused_partial *partials; /* [reduction of the phase, row, piece] */
    npy_intp pieces;
    const fused_phase *phase;
    _Atomic bool failed; /* for want of memory */
} run_state;

/* A stretch of the space, and the rows that it lies in. */
typedef struct {
    npy_intp begin, count, row, rows;
    char *space;
    reference *refs;
    fused_partial *partials; /* one for each reduction of the phase, `apart` from one another; NULL where rows are short */
    npy_intp apart;
} block;

int fused_run_init(void) {
    loops = PICK(elementwise_loops);
    casts = PICK(cast_loops);
    activations = PICK(activate_loops);
    chains = PICK(chain_loops);
    fused_reduce_init();
    return 0;
}

/* Steps */

static char *place_of(const run_state *run, const block *at, const fused_value *value) {
    ptrdiff_t size = TYPE_SIZE[value->type];
    switch (value->place) {
    case PLACE_ARRAY:
        return PyArray_BYTES(run->arrays[value->at]) + (value->row ? at->row : at->begin) * size;
    case PLACE_TABLE:
        return run->table + value->at + at->row * size;
    default:
        return at->space + value->at;
    }
}

static void spread(native_type type, const char *element, char *to, npy_intp count) {
    char *const data[2] = {(char *)element, to};
    const ptrdiff_t steps[2] = {0, TYPE_SIZE[type]};
    casts->cast[type][type](data, steps, count);
}

static void load(const run_state *run, const block *at, const fused_step *step) {
    const fused_value *value = &run->nest->values[step->made];
    const fused_view *view = &run->views[step->op];
    reference *ref = &at->refs[step->made];
    npy_intp begin = step->row ? at->row : at->begin, count = step->row ? at->rows : at->count;
    int last = view->ndim - 1;
    ref->data = view->data;
    ref->step = 0;
    if (last < 0)
        return;
    ptrdiff_t size = TYPE_SIZE[value->type], inner = view->steps[last];
    npy_intp place[NATIVE_DIMS], rest = begin;
    for (int i = last; i > 0; i--) {
        place[i] = rest % view->shape[i];
        rest /= view->shape[i];
    }
    place[0] = rest;
    char *from = view->data;
    for (int i = 0; i <= last; i++)
        from += place[i] * view->steps[i];
    if (place[last] + count <= view->shape[last] && (inner == size || (!inner && !step->row))) {
        ref->data = from;
        ref->step = inner;
        return;
    }
    char *to = at->space + value->at;
    ref->data = to;
    ref->step = size;
    const ptrdiff_t moves[2] = {inner, size};
    native_loop copy = casts->cast[value->type][value->type];
    for (;;) {
        npy_intp piece = view->shape[last] - place[last];
        piece = piece < count ? piece : count;
        char *const data[2] = {from, to};
        copy(data, moves, piece);
        count -= piece;
        if (!count)
            return;
        to += piece * size;
        from -= place[last] * inner;
        place[last] = 0;
        for (int i = last - 1; i >= 0; i--) {
            bool carry = ++place[i] == view->shape[i];
            from += carry ? -(view->shape[i] - 1) * view->steps[i] : view->steps[i];
            if (!carry)
                break;
            place[i] = 0;
        }
    }
}

/* An activation takes two rows; a number beside one is spread a little at a time. */
static void activate(const fused_step *step, char *const *data, const ptrdiff_t *steps, npy_intp count) {
    _Alignas(64) char space[2][SPREAD * 8];
    activate_loop loop = activations->of[step->op][step->type];
    ptrdiff_t size = TYPE_SIZE[step->type];
    int x = step->sources - 1; /* the gradient comes first */
    bool mixed = step->sources > 1 && steps[0] != steps[1];
    npy_intp most = mixed ? SPREAD : count;
    for (int k = 0; mixed && k < 2; k++)
        if (!steps[k])
            spread(step->type, data[k], space[k], SPREAD);
    for (npy_intp begin = 0; begin < count; begin += most) {
        npy_intp piece = count - begin < most ? count - begin : most;
        const char *rows[2];
        for (int k = 0; k < step->sources; k++)
            rows[k] = mixed && !steps[k] ? space[k] : data[k] + begin * steps[k];
        loop(step->numbers, rows[x], rows[0], data[step->sources] + begin * size, piece);
    }
}

static void run_places(const run_state *run, const block *at, const fused_step *step, char *const *data,
                       const ptrdiff_t *steps, npy_intp count) {
    char *places[FUSED_SOURCES];
    for (int k = 0; k < step->places; k++) {
        const fused_value *value = &run->nest->values[step->place[k]];
        places[k] = place_of(run, at, value);
        at->refs[step->place[k]] = (reference){places[k], TYPE_SIZE[value->type]};
    }
    if (step->kind == STEP_WRITTEN)
        step->written((const char *const *)data, steps, places, count);
    else
        chains->run[step->type](step->chain, step->ops, (const char *const *)data, steps, places, count);
}

static void compute(const run_state *run, const block *at, const fused_step *step) {
    const fused_value *value = &run->nest->values[step->made];
    char *data[FUSED_SOURCES + 1];
    ptrdiff_t steps[FUSED_SOURCES + 1], size = TYPE_SIZE[value->type], any = 0;
    int64_t held[FUSED_SOURCES];
    for (int k = 0; k < step->sources; k++) {
        data[k] = at->refs[step->source[k]].data;
        steps[k] = at->refs[step->source[k]].step;
        any |= steps[k];
        if (!steps[k]) { /* the result may take its place */
            memcpy(&held[k], data[k], TYPE_SIZE[run->nest->values[step->source[k]].type]);
            data[k] = (char *)&held[k];
        }
    }
    npy_intp wanted = step->row ? at->rows : at->count, count = any ? wanted : 1;
    if (step->kind == STEP_CHAIN || step->kind == STEP_WRITTEN) {
        run_places(run, at, step, data, steps, wanted);
        return;
    }
    char *made = data[step->sources] = place_of(run, at, value);
    steps[step->sources] = size;
    if (step->kind == STEP_COMPUTE)
        loops->compute[step->op][step->type](data, steps, count);
    else if (step->kind == STEP_CAST)
        casts->cast[step->type][value->type](data, steps, count);
    else if (step->kind == STEP_ACTIVATE)
        activate(step, data, steps, count);
    else
        step->loop(data, &count, steps, step->loop_data);
    bool kept = !any && wanted > 1 && !step->row && value->place == PLACE_SCRATCH; /* the same throughout: one is enough */
    if (!any && wanted > 1 && !kept)
        spread(value->type, made, made, wanted);
    at->refs[step->made] = (reference){made, kept ? 0 : size};
}

/* Reductions */

static void reduce(const run_state *run, const block *at, const fused_step *step, int number) {
    reference from = at->refs[step->source[0]], *made = &at->refs[step->made];
    if (at->partials) {
        fused_add(&at->partials[number * at->apart], step, fused_reduced(step, from.data, from.step, at->count), 0);
        return;
    }
    const fused_value *value = &run->nest->values[step->made];
    npy_intp width = run->nest->width;
    ptrdiff_t size = TYPE_SIZE[value->type];
    *made = (reference){place_of(run, at, value), size};
    for (npy_intp i = 0; i < at->rows; i++)
        fused_finish(run->nest, step, made->data + i * size,
               fused_reduced(step, from.data + i * width * from.step, from.step, width));
}

static void expand(const run_state *run, const block *at, const fused_step *step) {
    const fused_value *value = &run->nest->values[step->made];
    reference from = at->refs[step->source[0]], *made = &at->refs[step->made];
    *made = (reference){from.data, 0};
    if (at->rows == 1)
        return;
    ptrdiff_t size = TYPE_SIZE[value->type];
    npy_intp width = at->count / at->rows;
    *made = (reference){at->space + value->at, size};
    for (npy_intp i = 0; i < at->rows; i++)
        spread(value->type, from.data + i * from.step, made->data + i * width * size, width);
}

static void run_steps(const run_state *run, const block *at, const fused_step *steps, int count) {
    int number = 0;
    for (const fused_step *step = steps, *end = steps + count; step < end; step++) {
        if (step->kind == STEP_LOAD)
            load(run, at, step);
        else if (step->kind == STEP_REDUCE)
            reduce(run, at, step, number++);
        else if (step->kind == STEP_EXPAND)
            expand(run, at, step);
        else
            compute(run, at, step);
    }
}

/* Threads */

typedef struct {
    reference few[FEW];
    _Alignas(64) char small[SMALL];
    void *heap;
} workspace;

/* Room for a thread's references and scratch; false, and the run marked as failed, where there is no memory. */
static bool enter(run_state *run, workspace *room, block *at) {
    const fused_nest *nest = run->nest;
    size_t refs = nest->value_count > FEW ? (size_t)nest->value_count * sizeof(reference) : 0;
    size_t scratch = nest->scratch > SMALL ? (size_t)nest->scratch + 64 : 0;
    room->heap = NULL;
    *at = (block){.space = room->small, .refs = room->few};
    if (refs + scratch) {
        refs = (refs + 63) & ~(size_t)63;
        if (!(room->heap = malloc(refs + scratch))) {
            run->failed = true;
            return false;
        }
        if (refs)
            at->refs = room->heap;
        if (scratch)
            at->space = (char *)(((uintptr_t)room->heap + refs + 63) & ~(uintptr_t)63);
    }
    for (int i = 0; i < nest->value_count; i++)
        at->refs[i] = (reference){(char *)&nest->values[i].number, 0};
    return true;
}

/* Chains may have stored past the caches. */
static void leave(workspace *room) {
    native_streamed();
    free(room->heap);
}

/* Blocks of a stretch of units: elements, or whole rows where there are reductions. */
static void run_blocks(void *context, npy_intp begin, npy_intp end) {
    run_state *run = context;
    const fused_nest *nest = run->nest;
    const fused_phase *phase = &nest->phases[0];
    npy_intp unit = nest->row_ndim < nest->ndim ? nest->width : 1, most = nest->block / unit;
    workspace room;
    block at;
    if (!enter(run, &room, &at))
        return;
    for (; begin < end; begin += most) {
        npy_intp units = end - begin < most ? end - begin : most;
        at.begin = begin * unit;
        at.count = units * unit;
        at.row = begin;
        at.rows = units;
        run_steps(run, &at, phase->steps, phase->count);
    }
    leave(&room);
}

/* What earlier phases made of the row. */
static void know_row(const run_state *run, block *at, npy_intp row) {
    at->row = row;
    at->rows = 1;
    for (int i = 0; i < run->nest->value_count; i++) {
        const fused_value *value = &run->nest->values[i];
        if (value->row && value->place != PLACE_NUMBER && value->place != PLACE_LOADED)
            at->refs[i] = (reference){place_of(run, at, value), TYPE_SIZE[value->type]};
    }
}

static void run_piece(const run_state *run, block *at, const fused_phase *phase, npy_intp row, npy_intp piece) {
    const fused_nest *nest = run->nest;
    npy_intp first = piece * PIECE, end = nest->width - first < PIECE ? nest->width : first + PIECE;
    at->partials = run->partials + row * run->pieces + piece;
    at->apart = nest->rows * run->pieces;
    for (int k = 0; k < phase->partials; k++)
        at->partials[k * at->apart] = (fused_partial){0, 0, false};
    for (; first < end; first += nest->block) {
        at->begin = row * nest->width + first;
        at->count = end - first < nest->block ? end - first : nest->block;
        run_steps(run, at, phase->steps, phase->count);
    }
}

static void end_phase(const run_state *run, block *at, const fused_phase *phase, npy_intp row) {
    int number = 0;
    for (int s = 0; s < phase->count; s++) {
        const fused_step *step = &phase->steps[s];
        if (step->kind != STEP_REDUCE)
            continue;
        fused_partial *pieces = run->partials + number++ * run->nest->rows * run->pieces + row * run->pieces, sum = pieces[0];
        for (npy_intp piece = 1; piece < run->pieces; piece++)
            fused_add(&sum, step, pieces[piece].value, pieces[piece].lost);
        const fused_value *value = &run->nest->values[step->made];
        fused_finish(run->nest, step, place_of(run, at, value), sum.lost == sum.lost ? sum.value + sum.lost : sum.value);
    }
    run_steps(run, at, phase->row_steps, phase->row_count);
}

static void run_whole_rows(void *context, npy_intp begin, npy_intp end) {
    run_state *run = context;
    workspace room;
    block at;
    if (!enter(run, &room, &at))
        return;
    for (npy_intp row = begin; row < end; row++) {
        know_row(run, &at, row);
        for (int p = 0; p < run->nest->phase_count; p++) {
            for (npy_intp piece = 0; piece < run->pieces; piece++)
                run_piece(run, &at, &run->nest->phases[p], row, piece);
            end_phase(run, &at, &run->nest->phases[p], row);
        }
    }
    leave(&room);
}

static void run_pieces(void *context, npy_intp begin, npy_intp end) {
    run_state *run = context;
    workspace room;
    block at;
    if (!enter(run, &room, &at))
        return;
    for (npy_intp row = -1; begin < end; begin++) {
        if (row != begin / run->pieces)
            know_row(run, &at, row = begin / run->pieces);
        run_piece(run, &at, run->phase, row, begin % run->pieces);
    }
    leave(&room);
}

static void end_rows(run_state *run) {
    workspace room;
    block at;
    if (!enter(run, &room, &at))
        return;
    for (npy_intp row = 0; row < run->nest->rows; row++) {
        know_row(run, &at, row);
        end_phase(run, &at, run->phase, row);
    }
    leave(&room);
}

static bool run_long_rows(run_state *run) {
    const fused_nest *nest = run->nest;
    int most = 1;
    for (int p = 0; p < nest->phase_count; p++)
        most = nest->phases[p].partials > most ? nest->phases[p].partials : most;
    run->pieces = (nest->width + PIECE - 1) / PIECE;
    size_t bytes = (size_t)(most * nest->rows * run->pieces) * sizeof(fused_partial);
    char *memory = malloc(bytes + (size_t)nest->table);
    if (!memory)
        return false;
    run->partials = (fused_partial *)memory;
    run->table = memory + bytes;
    if (nest->rows >= 4 * (npy_intp)native_threads()) {
        native_parallel(nest->rows, 1, run_whole_rows, run);
    } else {
        for (int p = 0; p < nest->phase_count && !run->failed; p++) {
            run->phase = &nest->phases[p];
            native_parallel(nest->rows * run->pieces, 1, run_pieces, run);
            end_rows(run);
        }
    }
    free(memory);
    return !run->failed;
}

/* The array with the dims of the space, or of its first ones: steps of 0 where it is broadcast. */
static void look_at(const fused_nest *nest, const fused_load *of, PyArrayObject *array, fused_view *view) {
    int ndim = PyArray_NDIM(array), shift = of->aligned - ndim, dims = of->aligned;
    view->data = PyArray_BYTES(array);
    view->ndim = 0;
    bool spread_out = false; /* anything but one element */
    for (int i = 0; i < dims; i++) {
        npy_intp size = nest->shape[i];
        if (size == 1)
            continue;
        npy_intp step = i < shift || PyArray_DIM(array, i - shift) == 1 ? 0 : PyArray_STRIDE(array, i - shift);
        int last = view->ndim - 1;
        spread_out |= step != 0;
        if (last >= 0 && view->steps[last] == size * step) {
            view->shape[last] *= size;
            view->steps[last] = step;
        } else {
            view->shape[view->ndim] = size;
            view->steps[view->ndim++] = step;
        }
    }
    if (!spread_out)
        view->ndim = 0;
}

bool fused_run(const fused_nest *nest, PyArrayObject *const *arrays) {
    if (!nest->count)
        return true;
    fused_view few[FEW], *views = few;
    if (nest->load_count > FEW && !(views = malloc((size_t)nest->load_count * sizeof *views)))
        return false;
    for (int i = 0; i < nest->load_count; i++)
        look_at(nest, &nest->loads[i], arrays[nest->loads[i].array], &views[i]);
    run_state run = {.nest = nest, .arrays = arrays, .views = views};
    bool done = true;
    if (nest->long_rows) {
        done = run_long_rows(&run);
    } else {
        npy_intp unit = nest->row_ndim < nest->ndim ? nest->width : 1, most = nest->block / unit;
        npy_intp grain = (nest->grain / unit + most - 1) / most * most;
        native_parallel(nest->count / unit, grain > most ? grain : most, run_blocks, &run);
        done = !run.failed;
    }
    if (views != few)
        free(views);
    return done;
}
