/* Copies whose rows are short: what lies side by side on both sides moves as one element or as one row, and rows are copied many
   in a call. */
#include "copies.h"

#include "cast.h"
#include "shuffle.h"
#include "spread.h"

#include <string.h>

DECLARE_LOOPS(spread_loops, spread_loops);
DECLARE_LOOPS(cast_loops, cast_loops);
DECLARE_LOOPS(shuffle_loops, shuffle_loops);

enum {
    ROW_BYTES = 2048,     /* of rows that are worth a call each */
    BLOCK_BYTES = 1 << 14, /* that are copied before the next rows are looked for */
    VECTOR_BYTES = 64,    /* of rows that others are turned around or repeated in */
    FEW_ROWS = 16,        /* that are not worth a call */
};

void native_copy_rows(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, ptrdiff_t bytes) {
    PICK(spread_loops)->copy_rows(from, down, to, to_down, rows, bytes);
}

void native_pick_rows(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, const ptrdiff_t *at,
                      ptrdiff_t count, int size) {
    PICK(shuffle_loops)->pick_rows[native_log_size(size)](from, down, to, to_down, rows, at, count);
}

static void swap_dims(native_plan *plan, int i, int j) {
    const npy_intp size = plan->shape[i];
    plan->shape[i] = plan->shape[j];
    plan->shape[j] = size;
    for (int k = 0; k < plan->operands; k++) {
        const npy_intp step = plan->steps[k][i];
        plan->steps[k][i] = plan->steps[k][j];
        plan->steps[k][j] = step;
    }
}

static bool lies_along(const native_plan *plan, int dim, int sign) {
    return plan->steps[0][dim] == sign * plan->sizes[0] && plan->steps[1][dim] == plan->sizes[1];
}

/* Whether what both sides have along all dims but the last one begins where elements of so many bytes may. */
static bool lies_at_multiples(const native_plan *plan, npy_intp bytes) {
    for (int k = 0; k < 2; k++) {
        if ((uintptr_t)plan->data[k] % (uintptr_t)bytes)
            return false;
        for (int i = 0; i < plan->ndim - 1; i++)
            if (plan->steps[k][i] % bytes)
                return false;
    }
    return true;
}

/* The dim along which elements lie side by side on both sides becomes the last one; those that make up an element of 2, 4 or 8
   bytes are one from then on. */
static void widen(native_plan *plan) {
    for (int i = plan->ndim - 2; i >= 0; i--)
        if (lies_along(plan, i, 1)) {
            swap_dims(plan, i, plan->ndim - 1);
            break;
        }
    const int last = plan->ndim - 1;
    const npy_intp bytes = last < 0 ? 0 : plan->shape[last] * plan->sizes[0];
    if (last < 1 || !lies_along(plan, last, 1) || (bytes != 2 && bytes != 4 && bytes != 8) || !lies_at_multiples(plan, bytes))
        return;
    plan->count /= plan->shape[last];
    plan->sizes[0] = plan->sizes[1] = (int)bytes;
    plan->ndim--;
}

/* Blocks of rows: some along one dim, and all along the dims between that one and the rows. */
typedef struct {
    const native_plan *plan;
    rows_loop move;       /* or, where that is NULL, elements of each row at: */
    const ptrdiff_t *at;
    int along;
    npy_intp inner;         /* rows for each along the dim */
    npy_intp blocks, block; /* along the dim, and rows of each */
    npy_intp length;        /* of a row, as the loop counts */
} row_moves;

static void move_blocks(void *context, npy_intp begin, npy_intp end) {
    const row_moves *run = context;
    const native_plan *plan = run->plan;
    const npy_intp *shape = plan->shape, *from_steps = plan->steps[0], *to_steps = plan->steps[1];
    const int along = run->along, last = plan->ndim - 1;
    for (npy_intp unit = begin; unit < end; unit++) {
        const npy_intp first = unit % run->blocks * run->block, left = shape[along] - first;
        npy_intp rest = unit / run->blocks, place[NATIVE_DIMS] = {0};
        const char *from = plan->data[0] + first * from_steps[along];
        char *to = plan->data[1] + first * to_steps[along];
        for (int i = along - 1; i >= 0; rest /= shape[i--]) {
            from += rest % shape[i] * from_steps[i];
            to += rest % shape[i] * to_steps[i];
        }
        for (npy_intp k = 0; k < run->inner; k++) {
            const npy_intp rows = left < run->block ? left : run->block;
            if (run->move)
                run->move(from, from_steps[along], to, to_steps[along], rows, run->length);
            else
                native_pick_rows(from, from_steps[along], to, to_steps[along], rows, run->at, run->length, plan->sizes[0]);
            for (int i = last - 1; i > along; i--) {
                from += from_steps[i];
                to += to_steps[i];
                if (++place[i] < shape[i])
                    break;
                from -= shape[i] * from_steps[i];
                to -= shape[i] * to_steps[i];
                place[i] = 0;
            }
        }
    }
}

static void move_rows(const native_plan *plan, npy_intp grain, rows_loop move, const ptrdiff_t *at, npy_intp length) {
    const int last = plan->ndim - 1;
    const npy_intp bytes = plan->shape[last] * plan->sizes[0];
    row_moves run = {.plan = plan, .move = move, .at = at, .along = last - 1, .inner = 1, .length = length};
    while (run.along && plan->shape[run.along] < FEW_ROWS && plan->shape[run.along - 1] >= plan->shape[run.along])
        run.inner *= plan->shape[run.along--];
    run.block = 1 + BLOCK_BYTES / (bytes * run.inner);
    run.blocks = (plan->shape[run.along] + run.block - 1) / run.block;
    npy_intp units = run.blocks;
    for (int i = 0; i < run.along; i++)
        units *= plan->shape[i];
    native_parallel(units, 1 + native_even_grain(plan->count, grain) / (run.block * run.inner * plan->shape[last]), move_blocks, &run);
}

void native_move(char *to, const char *from, npy_intp bytes, npy_intp whole) {
    if (whole < NATIVE_PAST) {
        native_copy_rows(from, bytes, to, bytes, 1, bytes);
    } else {
        PICK(cast_loops)->stream(to, from, bytes);
        native_streamed();
    }
}

typedef struct {
    native_loop loop;
    npy_intp size, whole; /* bytes of an element and of all */
} moving;

static void run_moves(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const moving *run = context;
    if (steps[0] == run->size && steps[1] == run->size && data[0] != data[1])
        native_move(data[1], data[0], count * run->size, run->whole);
    else
        run->loop(data, steps, count);
}

/* Innermost dims of the result that have a few elements together, as matrices of 3 by 3 or numbers that are repeated have, become
   one last dim; answers with how many, and where in the source, or with 0 where elements lie side by side in the source outside. */
static npy_intp few_picked(native_plan *plan, ptrdiff_t *at) {
    const npy_intp size = plan->sizes[0];
    bool inside[NATIVE_DIMS] = {false};
    npy_intp count = 1;
    int left = plan->ndim;
    at[0] = 0;
    for (int i = plan->ndim - 1; i >= 0; i--) {
        const npy_intp step = plan->steps[0][i], more = plan->shape[i] * count;
        if (inside[i] || plan->steps[1][i] != count * size || more > SHUFFLED || step % size)
            continue;
        if (!step && more * size > VECTOR_BYTES)
            continue;
        for (npy_intp j = count; j < more; j++)
            at[j] = at[j - count] + step / size;
        count = more;
        inside[i] = true;
        left--;
        i = plan->ndim; /* from the last one on */
    }
    if (count == 1 || !left)
        return 0;
    for (int i = 0; i < plan->ndim; i++)
        if (!inside[i] && plan->steps[0][i] == size && plan->shape[i] > 1)
            return 0;
    left = 0;
    for (int i = 0; i < plan->ndim; i++)
        if (!inside[i])
            swap_dims(plan, i, left++);
    plan->ndim = left + 1;
    plan->shape[left] = count;
    return count;
}

void native_plan_copy(native_plan *plan, npy_intp grain) {
    if (!plan->count)
        return;
    widen(plan);
    const int last = plan->ndim - 1, size = plan->sizes[0];
    ptrdiff_t at[SHUFFLED];
    npy_intp few;
    if (last > 0 && lies_along(plan, last, 1) && plan->shape[last] * size < ROW_BYTES && plan->data[0] != plan->data[1]) {
        move_rows(plan, grain, PICK(spread_loops)->copy_rows, NULL, plan->shape[last] * size);
    } else if (last > 0 && lies_along(plan, last, -1) && plan->shape[last] * size > VECTOR_BYTES) {
        move_rows(plan, grain, PICK(cast_loops)->backwards[native_log_size(size)], NULL, plan->shape[last]);
    } else if ((few = few_picked(plan, at))) {
        move_rows(plan, grain, NULL, at, few);
    } else {
        static const native_type OF_SIZE[] = {TYPE_U8, TYPE_I16, TYPE_I32, TYPE_I64};
        const native_type type = OF_SIZE[native_log_size(size)];
        moving moves = {PICK(cast_loops)->cast[type][type], size, plan->count * size};
        plan->copies = true;
        native_plan_run(plan, grain, run_moves, &moves);
    }
}
