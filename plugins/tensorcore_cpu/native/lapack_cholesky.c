/* Cholesky factors of large real matrices in blocks, so that most of their work is products of matrices: a panel of columns is made
   by loops of its own, and what lies behind it changes by products of its rows with one another, of which only those on and below
   the diagonal are made (Golub and Van Loan, Matrix Computations, 4.2.6). Columns lie side by side; of an upper triangle they are its
   rows. The next panel's columns come first, and it is made while other threads take what is behind it. */
#include "gemm.h"
#include "lapack.h"
#include "lapack_cholesky.h"

#include <string.h>

DECLARE_LOOPS(lapack_cholesky_loops, lapack_cholesky_loops);

enum {
    LEAST = 40,       /* rows from which on this is faster */
    PIECE = 64,       /* columns behind a panel that are changed at once, or copied: above their diagonal there is work in vain */
    NEARBY = 1024,    /* bytes between columns, or any number of times so many, that make them fall on one another */
    LINE = 64,        /* bytes of a line of memory */
    SHARED = 1 << 23, /* the third power of the rows that are worth a second thread */
    AHEAD = 2,        /* panels at hand: one whose products are made, and the next one */
};

typedef struct {
    const lapack_cholesky_real *loops;
    native_type type;
    npy_intp size, n, line;
    char *a, *opposites[AHEAD]; /* parts of the scratch */
    char *x, *made;
    npy_intp row, column; /* steps of x, turned over where its upper triangle is read */
    bool upper;
    npy_intp k; /* the first column of the panel at hand */
    _Atomic bool failed;
} cholesky_work;

bool lapack_cholesky_pays(lapack_kind kind, npy_intp n) {
    return !lapack_complex(kind) && n >= LEAST && !gemm_real(lapack_type(kind))->slower_than_blas;
}

static npy_intp cut(cholesky_work *work, lapack_kind kind, npy_intp n, char *scratch) {
    work->loops = &PICK(lapack_cholesky_loops)->real[kind];
    work->type = lapack_type(kind);
    work->size = TYPE_SIZE[work->type];
    work->n = n;
    const npy_intp line = LINE / work->size, whole = (n + work->loops->spare + line - 1) / line * line;
    work->line = whole + (whole * work->size % NEARBY ? 0 : line);
    scratch = scratch ? scratch + -(uintptr_t)scratch % LINE : NULL;
    work->a = scratch;
    npy_intp total = n * work->line * work->size;
    for (int i = 0; i < AHEAD; i++) {
        work->opposites[i] = scratch ? scratch + total : NULL;
        total += work->loops->width * work->line * work->size;
    }
    return total + LINE;
}

npy_intp lapack_cholesky_scratch(lapack_kind kind, npy_intp n) {
    cholesky_work work;
    return cut(&work, kind, n, NULL);
}

/* Of two elements in one column, which lie side by side. */
static char *at(const cholesky_work *work, npy_intp row, npy_intp column) {
    return work->a + (column * work->line + row) * work->size;
}

static char *opposite_of(const cholesky_work *work, npy_intp k) { return work->opposites[k / work->loops->width % AHEAD]; }

static void make_panel(cholesky_work *work, npy_intp k) {
    char *const opposite = opposite_of(work, k) + k * work->size;
    if (!work->loops->panel(at(work, k, k), work->line, work->n - k, at_most(work->loops->width, work->n - k), opposite))
        work->failed = true;
}

/* Columns [begin, end) behind the panel at hand, from their first row on. */
static void change(cholesky_work *work, npy_intp begin, npy_intp end) {
    const npy_intp k = work->k;
    char *const made = at(work, begin, begin);
    const gemm_job job = {.rows = end - begin, .columns = work->n - begin, .inner = work->loops->width,
                          .left = opposite_of(work, k) + begin * work->size, .left_row = 1, .left_inner = work->line,
                          .right = at(work, begin, k), .right_inner = work->line, .right_column = 1,
                          .before = made, .before_row = work->line, .made = made, .made_row = work->line};
    if (!gemm_run(work->type, &job))
        work->failed = true;
}

/* Pieces of a step: the next panel, and then other columns behind the one at hand. */
static void step_body(void *context, npy_intp begin, npy_intp end) {
    cholesky_work *work = context;
    const npy_intp next = work->k + work->loops->width, after = at_most(next + work->loops->width, work->n);
    for (npy_intp i = begin; i < end; i++)
        if (i) {
            change(work, after + (i - 1) * PIECE, at_most(after + i * PIECE, work->n));
        } else {
            change(work, next, after);
            make_panel(work, next);
        }
}

/* Columns come from where they are, and go where they belong, in pieces, each from its first row on. */
static void take_body(void *context, npy_intp begin, npy_intp end) {
    cholesky_work *work = context;
    for (npy_intp first = begin * PIECE; first < at_most(end * PIECE, work->n); first += PIECE) {
        const lapack_matrices part = {.data = work->x + first * (work->row + work->column), .rows = work->n - first,
                                      .columns = at_most(PIECE, work->n - first), .row = work->row, .column = work->column};
        lapack_copy(&part, 0, work->size, at(work, first, first), work->line);
    }
}

static void give_body(void *context, npy_intp begin, npy_intp end) {
    cholesky_work *work = context;
    for (npy_intp first = begin * PIECE; first < at_most(end * PIECE, work->n); first += PIECE) {
        const npy_intp down = work->n - first, columns = at_most(PIECE, down), line = work->line * work->size;
        const lapack_matrices lower = {.data = at(work, first, first), .rows = down, .columns = columns, .row = work->size,
                                       .column = line};
        const lapack_matrices upper = {.data = lower.data, .rows = columns, .columns = down, .row = line, .column = work->size};
        lapack_copy(work->upper ? &upper : &lower, 0, work->size, work->made + first * (work->n + 1) * work->size, work->n);
    }
}

bool lapack_cholesky_factor(lapack_kind kind, bool upper, const lapack_matrices *x, npy_intp i, char *made, char *scratch) {
    cholesky_work work = {.x = lapack_at(x, i), .made = made, .row = upper ? x->column : x->row,
                          .column = upper ? x->row : x->column, .upper = upper};
    cut(&work, kind, x->rows, scratch);
    const npy_intp n = work.n, width = work.loops->width, copies = (n + PIECE - 1) / PIECE;
    const bool shared = n * n * n >= SHARED;
    native_parallel(copies, shared ? 1 : copies, take_body, &work);
    make_panel(&work, 0);
    for (; work.k + width < n && !work.failed; work.k += width) {
        const npy_intp after = at_most(work.k + 2 * width, n), pieces = 1 + (n - after + PIECE - 1) / PIECE;
        native_parallel(pieces, shared ? 1 : pieces, step_body, &work);
    }
    if (!work.failed)
        native_parallel(copies, shared ? 1 : copies, give_body, &work);
    return !work.failed;
}
