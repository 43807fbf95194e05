/* LU of large real matrices in blocks, so that most of its work is products of matrices: a panel of columns is factored by loops of
   its own, and what lies behind it changes by its rows of U, which the panel's triangle gives, and one product (Golub and Van Loan,
   Matrix Computations, 3.2.11 and 3.4.1). Matrices lie row after row meanwhile, so that what is swapped lies side by side. The next
   panel's columns come first, and it is factored while other threads take what is behind it. */
#include "gemm.h"
#include "lapack_sides.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(lapack_lu_loops, lapack_lu_loops);

enum {
    LEAST = 32,         /* rows and columns from which on this is faster, */
    TALL = 32,          /* and how many times as many rows as columns end that: panels are all there is then */
    PIECE = 64,         /* columns behind a panel that are changed at once */
    INVERTED = 64,      /* columns of an inverse that are made at once */
    LINE = 64,          /* bytes of a line of memory */
    GIVEN = 64,         /* rows of the factors that are turned into columns at once */
    COPIED = 1 << 15,   /* elements that are worth a second thread to copy them */
    SHARED = 1 << 23,   /* rows times columns times steps that are worth a second thread at all */
    LARGE = 512,        /* columns past which blocks are wider than a panel: what is behind them comes from memory less often, */
    LARGER = 1024,      /* and past which still wider, while one thread's panels are little beside the products of others */
    WIDE = 64,
    WIDER = 128,
};

typedef struct {
    const lapack_lu_real *loops;
    native_type type;
    npy_intp size, rows, columns, least, line, step;
    bool shared; /* among threads */
    char *a, *opposite, *panel, *top, *inverse, *lower[2]; /* parts of the scratch */
    const lapack_matrices *x;
    npy_intp matrix;
    char *made;
    int *pivots, *places, info; /* `places` are those of an inverse's columns */
    _Atomic bool failed;
} lu_work;

/* Columns [from, to), in blocks of `width`, of which the one from k on is made. */
typedef struct {
    lu_work *work;
    npy_intp from, to, width, k;
    char *lower, *next_lower; /* what is below that block and the next one, NULL where one thread does all */
} lu_blocks;

bool lapack_lu_pays(lapack_kind kind, npy_intp rows, npy_intp columns) {
    return !lapack_complex(kind) && at_most(rows, columns) >= LEAST && rows <= TALL * columns &&
           !gemm_real(lapack_type(kind))->slower_than_blas;
}

/* Columns of a block of so many. */
static npy_intp width_of(const lu_work *work, npy_intp columns) {
    return columns > LARGER ? WIDER : columns > LARGE ? WIDE : work->loops->width;
}

/* The parts: the matrix, opposites of a block row, what belongs to a panel, for an inverse as large a matrix, and for threads what is
   below a block and below the next one. */
static npy_intp cut(lu_work *work, lapack_kind kind, npy_intp rows, npy_intp columns, bool inverse, char *scratch) {
    work->loops = &PICK(lapack_lu_loops)->real[kind];
    work->type = lapack_type(kind);
    work->size = TYPE_SIZE[work->type];
    work->rows = rows;
    work->columns = columns;
    work->least = at_most(rows, columns);
    work->shared = rows * columns * work->least >= SHARED && native_threads() > 1;
    const npy_intp width = work->loops->width, wide = width_of(work, work->least), line = LINE / work->size;
    work->line = lapack_apart(kind, columns);
    work->step = lapack_apart(kind, rows + work->loops->spare);
    const npy_intp block = inverse && wide < LAPACK_PUT_OFF ? LAPACK_PUT_OFF : wide;
    const npy_intp sizes[] = {rows * work->line, block * work->line, work->step * width,
                              width * width + line, inverse ? rows * work->line : 0, inverse ? rows : 0, work->shared ? rows * wide : 0,
                              work->shared ? rows * wide : 0};
    char *places;
    char **const parts[] = {&work->a, &work->opposite, &work->panel, &work->top, &work->inverse, &places, &work->lower[0], &work->lower[1]};
    npy_intp total = 0;
    scratch = scratch ? scratch + -(uintptr_t)scratch % LINE : NULL;
    for (int i = 0; i < (int)(sizeof parts / sizeof *parts); i++) {
        *parts[i] = scratch ? scratch + total * work->size : NULL;
        total += rounded_up(sizes[i], line);
    }
    work->places = (int *)places;
    return total * work->size + LINE;
}

npy_intp lapack_lu_scratch(lapack_kind kind, npy_intp rows, npy_intp columns, bool inverse) {
    lu_work work;
    return cut(&work, kind, rows, columns, inverse, NULL);
}

static char *at(const lu_work *work, npy_intp row, npy_intp column) { return work->a + (row * work->line + column) * work->size; }

/* A copy of what is below a block, which other threads read: next to it lies what is changed meanwhile, and processors that fetch what
   comes after each row would take that from one another. */
static void keep_lower(lu_work *work, char *lower, npy_intp k, npy_intp next) {
    const npy_intp bytes = (next - k) * work->size;
    for (npy_intp row = next; row < work->rows; row++)
        memcpy(lower + (row - next) * bytes, at(work, row, k), (size_t)bytes);
}

/* Columns [begin, end) behind a block of `own`: rows are swapped, those beside it become rows of U, and those below change. `lower` is a
   copy of what is below the block, or NULL. */
static void change(lu_work *work, npy_intp k, npy_intp own, npy_intp begin, npy_intp end, const char *lower) {
    const npy_intp width = work->loops->width;
    work->loops->swap(at(work, k, begin), work->line, end - begin, work->pivots + k, own, (int)k + 1);
    for (npy_intp first = k, count; first < k + own; first += count) {
        count = at_most(width, k + own - first);
        const npy_intp next = first + count;
        const bool last = next == k + own; /* then the product is one of all rows of the block */
        const npy_intp done = last ? k : first, below = last ? work->rows : k + own;
        char *const opposite = work->opposite + ((first - k) * work->line + begin) * work->size;
        char *const made = at(work, next, begin);
        work->loops->solve[false][true](at(work, first, first), work->line, count, end - begin, at(work, first, begin), opposite, work->line);
        const gemm_job job = {.rows = below - next, .columns = end - begin, .inner = next - done,
                              .left = last && lower ? lower : at(work, next, done),
                              .left_row = last && lower ? own : work->line, .left_inner = 1,
                              .right = work->opposite + ((done - k) * work->line + begin) * work->size,
                              .right_inner = work->line, .right_column = 1,
                              .before = made, .before_row = work->line, .made = made, .made_row = work->line};
        if (job.rows && !gemm_run(work->type, &job))
            work->failed = true;
    }
}

static void factor(lu_work *work, npy_intp from, npy_intp to);

/* The columns from which on a step's other pieces begin: behind the next block, if there is one. */
static npy_intp others_of(const lu_blocks *of) {
    return at_most(of->k + 2 * of->width, at_most(of->to, of->work->least));
}

/* They end at the same columns in each step, so that most of them stay in the cache of the thread that changed them before. */
static npy_intp pieces_of(const lu_blocks *of) {
    const npy_intp after = others_of(of);
    return after < of->to ? (of->to + PIECE - 1) / PIECE - after / PIECE : 0;
}

/* Pieces of a step: first the next block, then other columns behind the one at hand. */
static void step_body(void *context, npy_intp begin, npy_intp end) {
    const lu_blocks *of = context;
    lu_work *work = of->work;
    const npy_intp k = of->k, last = at_most(of->to, work->least), next = at_most(k + of->width, last);
    const npy_intp after = others_of(of);
    for (npy_intp i = begin; i < end; i++)
        if (i) {
            const npy_intp piece = (after / PIECE + i - 1) * PIECE;
            change(work, k, next - k, piece < after ? after : piece, at_most(piece + PIECE, of->to), of->lower);
        } else if (next < last) {
            change(work, k, next - k, next, after, of->lower);
            factor(work, next, after);
            if (of->lower)
                keep_lower(work, of->next_lower, next, after);
        }
}

/* Columns from `from` on, where all before them were taken away. Rows are swapped in the columns behind a block, not in those before. */
static void factor_blocks(lu_blocks *of) {
    lu_work *work = of->work;
    const npy_intp last = at_most(of->to, work->least);
    of->width = width_of(work, last - of->from);
    const npy_intp first = at_most(of->from + of->width, last);
    factor(work, of->from, first);
    if (of->lower)
        keep_lower(work, of->lower, of->from, first);
    for (of->k = of->from; of->k < last; of->k += of->width) {
        native_parallel(pieces_of(of) + 1, of->lower ? 1 : pieces_of(of) + 1, step_body, of);
        char *const done = of->lower;
        of->lower = of->next_lower;
        of->next_lower = done;
    }
    of->k = last;
}

/* Blocks [begin, end) have their rows swapped as in those behind them. */
static void swap_body(void *context, npy_intp begin, npy_intp end) {
    const lu_blocks *of = context;
    lu_work *work = of->work;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp column = of->from + i * of->width, next = column + of->width;
        work->loops->swap(at(work, next, column), work->line, of->width, work->pivots + next, of->k - next, (int)next + 1);
    }
}

/* Columns [from, to), where all before them were taken away; rows are swapped in these columns alone. */
static void factor(lu_work *work, npy_intp from, npy_intp to) {
    if (to - from <= work->loops->width) {
        const int info = work->loops->panel(at(work, from, from), work->line, work->rows - from, to - from, work->panel, work->step,
                                            work->top, work->pivots + from, (int)from + 1);
        if (info && !work->info)
            work->info = (int)from + info;
        return;
    }
    lu_blocks of = {.work = work, .from = from, .to = to};
    factor_blocks(&of);
    swap_body(&of, 0, (of.k - from) / of.width);
}

static lu_blocks whole(lu_work *work) {
    return (lu_blocks){.work = work, .to = work->columns, .lower = work->shared ? work->lower[0] : NULL,
                       .next_lower = work->shared ? work->lower[1] : NULL};
}

static void take_body(void *context, npy_intp begin, npy_intp end) {
    lu_work *work = context;
    const lapack_matrices *x = work->x;
    const lapack_matrices rows = {.data = lapack_at(x, work->matrix) + begin * x->row, .rows = work->columns,
                                  .columns = end - begin, .row = x->column, .column = x->row};
    lapack_copy(&rows, 0, work->size, at(work, begin, 0), work->line);
}

/* Columns [begin, end) of a matrix that lies as the one at hand go where they belong. */
static void give(lu_work *work, const char *from, npy_intp begin, npy_intp end) {
    const lapack_matrices columns = {.data = (char *)from + begin * work->size, .rows = work->rows, .columns = end - begin,
                                     .row = work->line * work->size, .column = work->size};
    char *const made = work->made + begin * work->rows * work->size;
    lapack_copy(&columns, 0, work->size, made, work->rows);
    if (!work->loops->is_finite(made, (end - begin) * work->rows))
        work->failed = true;
}

static void give_body(void *context, npy_intp begin, npy_intp end) {
    lu_work *work = ((const lu_blocks *)context)->work;
    give(work, work->a, begin, end);
}

/* Columns [begin, end) of the factors of several threads. Rows are swapped on the way: in place, each would come from the cache of the
   thread that made it, and be written there. */
static void give_swapped_body(void *context, npy_intp begin, npy_intp end) {
    const lu_blocks *of = context;
    lu_work *work = of->work;
    int *const order = malloc((size_t)work->rows * sizeof *order);
    char *const room = malloc((size_t)(GIVEN * of->width * work->size));
    work->failed = work->failed || !order || !room;
    for (npy_intp column = begin, next; column < end && order && room; column = next) {
        const npy_intp block = column / of->width * of->width;
        next = at_most(end, block + of->width);
        lapack_order(work->pivots, block + of->width, of->k, work->rows, order);
        const npy_intp row_bytes = (next - column) * work->size;
        for (npy_intp row = 0, count; row < work->rows; row += count) {
            count = at_most(GIVEN, work->rows - row);
            for (npy_intp r = 0; r < count; r++)
                memcpy(room + r * row_bytes, at(work, order[row + r], column), (size_t)row_bytes);
            const lapack_matrices columns = {.data = room, .rows = count, .columns = next - column, .row = row_bytes, .column = work->size};
            lapack_copy(&columns, 0, work->size, work->made + (column * work->rows + row) * work->size, work->rows);
        }
    }
    if (!work->loops->is_finite(work->made + begin * work->rows * work->size, (end - begin) * work->rows))
        work->failed = true;
    free(order);
    free(room);
}

static npy_intp grain(npy_intp other) { return rounded_up(COPIED / other + 1, LINE / 4); }

bool lapack_lu_factor(lapack_kind kind, const lapack_matrices *x, npy_intp i, char *made, int *pivots, int *info, char *scratch) {
    lu_work work = {.x = x, .matrix = i, .made = made, .pivots = pivots};
    cut(&work, kind, x->rows, x->columns, false, scratch);
    native_parallel(work.rows, grain(work.columns), take_body, &work);
    lu_blocks of = whole(&work);
    factor_blocks(&of);
    if (!work.shared)
        swap_body(&of, 0, of.k / of.width);
    native_parallel(work.columns, grain(work.rows), work.shared ? give_swapped_body : give_body, &of);
    *info = work.info;
    return !work.failed;
}

/* Columns [begin, end) of the inverse of both factors: those of the identity by L, which are zeros above, and these by U. */
static void invert(lu_work *work, npy_intp begin, npy_intp end) {
    const npy_intp n = work->rows, width = work->loops->width, line = work->line, size = work->size, wide = end - begin;
    const lapack_triangles both = {work->loops, work->type, size, n, work->a, line, 1, NULL};
    char *const columns = work->inverse + begin * size, *const opposite = work->opposite + begin * size;
    for (npy_intp i = 0; i < n; i++) {
        memset(columns + i * line * size, 0, (size_t)(wide * size));
        if (i >= begin && i < end && work->type == TYPE_F32)
            ((float *)(columns + i * line * size))[i - begin] = 1;
        else if (i >= begin && i < end)
            ((double *)(columns + i * line * size))[i - begin] = 1;
    }
    if (!lapack_eliminate(&both, begin / width * width, false, true, columns, opposite, line, wide) ||
        !lapack_eliminate(&both, 0, true, false, columns, opposite, line, wide))
        work->failed = true;
}

/* Columns [begin, end) of the inverse, each to the place where the swaps of rows, as columns, put it. */
static void give_inverse(lu_work *work, npy_intp begin, npy_intp end) {
    const npy_intp bytes = work->rows * work->size, count = end - begin;
    char *const room = malloc((size_t)(bytes * count));
    const lapack_matrices columns = {.data = work->inverse + begin * work->size, .rows = work->rows, .columns = count,
                                     .row = work->line * work->size, .column = work->size};
    if (!room) {
        work->failed = true;
        return;
    }
    lapack_copy(&columns, 0, work->size, room, work->rows);
    if (!work->loops->is_finite(room, count * work->rows))
        work->failed = true;
    for (npy_intp j = 0; j < count; j++)
        memcpy(work->made + work->places[begin + j] * bytes, room + j * bytes, (size_t)bytes);
    free(room);
}

static void invert_body(void *context, npy_intp begin, npy_intp end) {
    lu_work *work = context;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp from = i * INVERTED, to = at_most(from + INVERTED, work->columns);
        invert(work, from, to);
        give_inverse(work, from, to);
    }
}

bool lapack_lu_inverse(lapack_kind kind, const lapack_matrices *x, npy_intp i, char *made, int *pivots, char *scratch) {
    lu_work work = {.x = x, .matrix = i, .made = made, .pivots = pivots};
    cut(&work, kind, x->rows, x->columns, true, scratch);
    const npy_intp n = work.rows;
    native_parallel(n, grain(n), take_body, &work);
    lu_blocks of = whole(&work);
    factor_blocks(&of);
    const npy_intp blocks = n / of.width;
    native_parallel(blocks, work.shared ? 1 : blocks + 1, swap_body, &of);
    for (npy_intp k = 0; k < n; k++) /* an infinite pivot has an inverse, which may be of a matrix without infinities */
        work.failed = work.failed || !work.loops->is_finite(at(&work, k, 0), n);
    if (work.info || work.failed)
        return false;
    lapack_order(work.pivots, 0, n, n, work.places); /* a row that comes from there is a column that goes there */
    const npy_intp pieces = (n + INVERTED - 1) / INVERTED;
    native_parallel(pieces, work.shared ? 1 : pieces, invert_body, &work);
    return !work.failed;
}
