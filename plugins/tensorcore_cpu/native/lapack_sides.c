/* Many right sides of real triangles, so that most of the work is products of matrices: a few rows by a triangle of their own, what these
   take from the rest of their block, and then what the whole block takes from all others (Golub and Van Loan, Matrix Computations,
   3.1.4). Rows lie one after the other meanwhile; threads share the columns, a few of which go through all rows in the second cache. */
#include "lapack_sides.h"

#include "gemm.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(lapack_lu_loops, lapack_lu_loops);

enum {
    LEAST = 32,       /* rows, */
    LEAST_SIDES = 33, /* and right sides, from which on this is faster than one by one */
    PIECE = 256,      /* right sides that go through the rows at once */
    SHARED = 1 << 22, /* multiplications that are worth a second thread */
    LINE = 64,        /* bytes of a line of memory */
};

npy_intp lapack_apart(lapack_kind kind, npy_intp count) { return lapack_qr_line(kind, rounded_up(count, LINE / TYPE_SIZE[lapack_type(kind)])); }

void lapack_order(const int *pivots, npy_intp from, npy_intp to, npy_intp rows, int *order) {
    for (npy_intp row = 0; row < rows; row++)
        order[row] = (int)row;
    for (npy_intp k = from; k < to; k++) {
        const int other = pivots[k] - 1, was = order[k];
        order[k] = order[other];
        order[other] = was;
    }
}

/* By triangles */

static char *at(const lapack_triangles *of, npy_intp row, npy_intp column) { return of->a + (row * of->row + column * of->column) * of->size; }

/* `wide` columns of rows `line` elements apart, and the opposites of some of them. */
typedef struct {
    char *columns, *room;
    npy_intp line, wide;
} right_sides;

/* Rows [k, next) by their own triangle. */
static void solve(const lapack_triangles *of, npy_intp k, npy_intp next, bool upper, bool unit, const right_sides *sides, char *opposite) {
    const npy_intp width = of->loops->width;
    const bool lies = of->column == 1;
    of->loops->solve[upper][unit](lies ? at(of, k, k) : of->diagonal + k * width * of->size, lies ? of->row : width, next - k, sides->wide,
                                  sides->columns + k * sides->line * of->size, opposite, sides->line);
}

/* What rows [k, next), whose opposites are there, take from rows [from, to). */
static bool take_away(const lapack_triangles *of, npy_intp k, npy_intp next, const char *opposite, npy_intp from, npy_intp to,
                      const right_sides *sides) {
    char *const made = sides->columns + from * sides->line * of->size;
    const gemm_job job = {.rows = to - from, .columns = sides->wide, .inner = next - k,
                          .left = at(of, from, k), .left_row = of->row, .left_inner = of->column,
                          .right = opposite, .right_inner = sides->line, .right_column = 1,
                          .before = made, .before_row = sides->line, .made = made, .made_row = sides->line};
    return !job.rows || gemm_run(of->type, &job);
}

bool lapack_eliminate(const lapack_triangles *of, npy_intp from, bool upper, bool unit, char *columns, char *room, npy_intp side_line,
                      npy_intp wide) {
    const npy_intp width = of->loops->width, row = side_line * of->size, n = of->n;
    const right_sides sides = {columns, room, side_line, wide};
    bool good = true;
    for (npy_intp block = from, end; !upper && block < n; block = end) {
        end = at_most(block + LAPACK_PUT_OFF, n);
        for (npy_intp k = block, next; k < end && good; k = next) {
            char *const opposite = room + (k - block) * row;
            next = at_most(k + width, end);
            solve(of, k, next, false, unit, &sides, opposite);
            good = next < end ? take_away(of, k, next, opposite, next, end, &sides) : take_away(of, block, end, room, end, n, &sides);
        }
    }
    for (npy_intp end = n, block; upper && end; end = block) {
        block = (end - 1) / LAPACK_PUT_OFF * LAPACK_PUT_OFF;
        for (npy_intp next = end, k; next > block && good; next = k) {
            k = block + (next - 1 - block) / width * width;
            char *const opposite = room + (k - block) * row;
            solve(of, k, next, true, unit, &sides, opposite);
            good = k > block ? take_away(of, k, next, opposite, block, k, &sides) : take_away(of, block, end, room, 0, block, &sides);
        }
    }
    return good;
}

/* A matrix and its right sides */

typedef struct {
    lapack_triangles both;
    lapack_kind kind;
    lapack_matrices matrix, sides; /* one of each */
    struct {
        bool upper, unit;
    } triangles[2]; /* that the right sides go by */
    int turns;
    const int *in, *out; /* where a row of right sides comes from, and goes; NULL where it stays */
    bool by_rows;        /* rows of answers lie side by side, not columns */
    char *made;
    npy_intp piece;
    _Atomic bool failed;
} work;

bool lapack_sides_pay(lapack_kind kind, npy_intp n, npy_intp wide) {
    return !lapack_complex(kind) && n >= LEAST && wide >= LEAST_SIDES && !gemm_real(lapack_type(kind))->slower_than_blas;
}

npy_intp lapack_sides_scratch(lapack_kind kind, npy_intp n) {
    return n * PICK(lapack_lu_loops)->real[kind].width * TYPE_SIZE[lapack_type(kind)] + LINE;
}

static lapack_matrices turned_over(const lapack_matrices *x) {
    return (lapack_matrices){.data = x->data, .rows = x->columns, .columns = x->rows, .row = x->column, .column = x->row};
}

static lapack_matrices one_of(const lapack_matrices *x, npy_intp i) {
    return (lapack_matrices){.data = lapack_at(x, i), .rows = x->rows, .columns = x->columns, .row = x->row, .column = x->column};
}

static void take_diagonal(const work *w) {
    const lapack_triangles *of = &w->both;
    const npy_intp width = of->loops->width;
    for (npy_intp k = 0; k < of->n; k += width) {
        const npy_intp own = at_most(width, of->n - k);
        const lapack_matrices rows = {.data = at(of, k, k), .rows = own, .columns = own, .row = w->matrix.column, .column = w->matrix.row};
        lapack_copy(&rows, 0, of->size, of->diagonal + k * width * of->size, width);
    }
}

/* Right sides [first, first + count) to `columns`, whose rows are `row` bytes apart; `room` is as large. */
static void take_sides(const work *w, npy_intp first, npy_intp count, char *columns, npy_intp row, char *room) {
    const npy_intp n = w->both.n, size = w->both.size;
    const lapack_matrices *sides = &w->sides;
    const char *from = sides->data + first * sides->column;
    npy_intp down = sides->row;
    if (sides->column != size) {
        lapack_matrices rows = turned_over(sides);
        rows.data = (char *)from;
        rows.rows = count;
        lapack_copy(&rows, 0, size, room, count);
        from = room;
        down = count * size;
    }
    for (npy_intp k = 0; k < n; k++)
        memcpy(columns + k * row, from + (w->in ? w->in[k] : k) * down, (size_t)(count * size));
}

static void give_sides(work *w, npy_intp first, npy_intp count, const char *columns, npy_intp row, char *room) {
    const npy_intp n = w->both.n, size = w->both.size, bytes = count * size;
    bool finite = true;
    for (npy_intp k = 0; k < n && finite; k++)
        finite = w->both.loops->is_finite(columns + k * row, count);
    if (!finite) {
        w->failed = true;
        return;
    }
    const npy_intp step = w->by_rows ? w->sides.columns * size : bytes;
    char *const to = w->by_rows ? w->made + first * size : room;
    for (npy_intp k = 0; k < n; k++)
        memcpy(to + (w->out ? w->out[k] : k) * step, columns + k * row, (size_t)bytes);
    if (w->by_rows)
        return;
    const lapack_matrices made = {.data = room, .rows = n, .columns = count, .row = bytes, .column = size};
    lapack_copy(&made, 0, size, w->made + first * n * size, n);
}

static void sides_body(void *context, npy_intp begin, npy_intp end) {
    work *w = context;
    const npy_intp n = w->both.n, size = w->both.size, line = lapack_apart(w->kind, w->piece), row = line * size;
    const size_t bytes = (size_t)((n + LAPACK_PUT_OFF) * row + n * row);
    char *const columns = native_scratch(bytes);
    if (!columns) {
        w->failed = true;
        return;
    }
    char *const opposite = columns + n * row, *const room = opposite + LAPACK_PUT_OFF * row;
    for (npy_intp i = begin; i < end && !w->failed; i++) {
        const npy_intp first = i * w->piece, count = at_most(w->piece, w->sides.columns - first);
        take_sides(w, first, count, columns, row, room);
        for (int turn = 0; turn < w->turns && !w->failed; turn++)
            if (!lapack_eliminate(&w->both, 0, w->triangles[turn].upper, w->triangles[turn].unit, columns, opposite, line, count))
                w->failed = true;
        if (!w->failed)
            give_sides(w, first, count, columns, row, room);
    }
    native_scratch_free(columns, bytes);
}

/* Runs what is described but for the sizes. */
static bool run(work *w, lapack_kind kind, char *scratch) {
    const npy_intp n = w->matrix.rows, wide = w->sides.columns, size = TYPE_SIZE[lapack_type(kind)];
    if (w->matrix.row % size || w->matrix.column % size)
        return false;
    w->kind = kind;
    w->both = (lapack_triangles){.loops = &PICK(lapack_lu_loops)->real[kind], .type = lapack_type(kind), .size = size, .n = n, .a = w->matrix.data,
                                 .row = w->matrix.row / size, .column = w->matrix.column / size, .diagonal = scratch + -(uintptr_t)scratch % LINE};
    if (w->both.column != 1)
        take_diagonal(w);
    const bool shared = n * n * wide >= SHARED;
    const npy_intp share = shared ? rounded_up((wide + native_threads() - 1) / native_threads(), LINE / size) : wide;
    w->piece = at_most(PIECE, share);
    const npy_intp pieces = (wide + w->piece - 1) / w->piece;
    native_parallel(pieces, shared ? 1 : pieces, sides_body, w);
    return !w->failed;
}

bool lapack_lu_solve(lapack_kind kind, const lapack_matrices *factors, npy_intp i, const int *pivots, bool turned,
                     const lapack_matrices *sides, char *made, char *scratch) {
    const npy_intp n = factors->rows;
    int *const order = malloc((size_t)n * sizeof *order);
    if (!order)
        return false;
    lapack_order(pivots, 0, n, n, order);
    work w = {.matrix = one_of(factors, i), .sides = one_of(sides, i), .triangles = {{false, !turned}, {true, turned}}, .turns = 2, .made = made};
    if (turned) /* U is the lower triangle then, and the rows change places at last */
        w.matrix = turned_over(&w.matrix);
    *(turned ? &w.out : &w.in) = order;
    const bool good = run(&w, kind, scratch);
    free(order);
    return good;
}

bool lapack_triangle_solve(lapack_kind kind, const lapack_matrices *x, npy_intp i, bool upper, bool unit, bool left,
                           const lapack_matrices *sides, char *made, char *scratch) {
    work w = {.matrix = one_of(x, i), .sides = one_of(sides, i), .triangles = {{upper == left, unit}}, .turns = 1, .by_rows = !left, .made = made};
    if (!left) { /* X T = B says that T turned over times X turned over is B turned over */
        w.matrix = turned_over(&w.matrix);
        w.sides = turned_over(&w.sides);
    }
    return run(&w, kind, scratch);
}
