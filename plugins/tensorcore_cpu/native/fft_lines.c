/* Lines along one dim over threads: in one piece, or long ones cut into rows, whose columns and rows are transformed. */
#include "fft_lines.h"

#include "fft_plans.h"
#include "turn.h"

#include <string.h>

DECLARE_LOOPS(fft_loops, fft_loops);
DECLARE_LOOPS(turn_loops, turn_loops);
static const fft_loops *loops;
static const turn_loops *turns;

enum { GRAIN = 1 << 14, NEAR = 1 << 13 };  /* elements a thread; bytes */
enum { CUT_ONE = 256, CUT_MANY = 1024 };   /* complex numbers from which on single lines, and many, are cut */
enum { CUT_NEAR = 4 << 20 };               /* bytes of lines that many short ones are cut up to */
enum { LINE = 64 };                        /* bytes that memory brings at a time */

typedef struct {
    fft_way way;
    fft_loop one, many;
    int lanes, ndim; /* dims that count lines */
    npy_intp lines, group, sizes[NATIVE_DIMS], from_steps[NATIVE_DIMS], to_steps[NATIVE_DIMS];
    const char *from;
    char *to;
    size_t work;
    const fft_cut *cut; /* where lines are cut */
    const fft_cut_loops *cut_loops;
    bool held; /* whether they go by way of copies side by side */
    bool wide, failed;
} dim_run;

/* Where lines begin. */
static void place(const dim_run *run, npy_intp line, npy_intp count, const char **from, char **to) {
    for (npy_intp i = 0; i < count; i++) {
        npy_intp rest = line + i, in = 0, out = 0;
        for (int d = run->ndim - 1; d >= 0; d--) {
            const npy_intp at = d ? rest % run->sizes[d] : rest;
            rest = d ? rest / run->sizes[d] : 0;
            in += at * run->from_steps[d];
            out += at * run->to_steps[d];
        }
        from[i] = run->from + in;
        to[i] = run->to + out;
    }
}

/* Memory for a run's work, which says so where there is none. */
static void *work_of(dim_run *run, size_t bytes) {
    void *work = native_scratch(bytes);
    if (!work)
        __atomic_store_n(&run->failed, true, __ATOMIC_RELAXED);
    return work;
}

/* Lines in one piece, as many side by side as there are lanes */

static void run_lines(void *context, npy_intp begin, npy_intp end) {
    dim_run *run = context;
    char near[NEAR] __attribute__((aligned(64))), *work = near;
    if (run->work > NEAR && !(work = work_of(run, run->work)))
        return;
    const npy_intp last = end * run->group < run->lines ? end * run->group : run->lines;
    for (npy_intp line = begin * run->group; line < last;) {
        const char *from[FFT_LANES];
        char *to[FFT_LANES];
        npy_intp count = last - line < run->group ? last - line : run->group;
        const bool many = run->group > 1 && 4 * count >= run->lanes; /* fewer are faster one by one */
        count = many ? count : 1;
        place(run, line, count, from, to);
        for (npy_intp i = count; many && i < run->lanes; i++)
            from[i] = from[count - 1];
        (many ? run->many : run->one)(&run->way, from, to, (int)count, work);
        line += count;
    }
    if (work != near)
        native_scratch_free(work, run->work);
}

static bool are_many(const dim_run *run) { return 4 * run->lines >= run->lanes; } /* fewer are faster one by one */

static void start_lines(dim_run *run) {
    run->group = are_many(run) ? run->lanes : 1;
    run->work = (size_t)(4 * fft_room(run->way.plan) * run->group * (run->wide ? 8 : 4));
    const npy_intp cost = run->way.plan->n * run->group;
    native_parallel((run->lines + run->group - 1) / run->group, cost < GRAIN ? GRAIN / cost : 1, run_lines, run);
}

/* Lines that are cut */

/* One of them, of complex numbers side by side, into `made` and from there. */
typedef struct {
    dim_run *run;
    bool forward;
    double scale;
    const char *from;
    char *to;
    void *made;
} cut_line;

static void run_blocks(cut_line *line, const fft_plan *plan, npy_intp begin, npy_intp end, bool rows) {
    dim_run *run = line->run;
    const size_t bytes = (size_t)(4 * fft_room(plan) * run->lanes * (run->wide ? 8 : 4));
    void *work = work_of(run, bytes);
    for (npy_intp block = begin; work && block < end; block++) {
        if (rows)
            run->cut_loops->rows(run->cut, line->forward, line->scale, line->made, line->to, block, work);
        else
            run->cut_loops->columns(run->cut, line->forward, line->from, line->made, block, work);
    }
    if (work)
        native_scratch_free(work, bytes);
}

/* The last block, which may begin within the one before it, goes with that. */
static void run_columns(void *context, npy_intp begin, npy_intp end) {
    cut_line *line = context;
    const fft_cut *cut = line->run->cut;
    const npy_intp whole = cut->columns / line->run->lanes;
    run_blocks(line, cut->down, begin, end < whole ? end : fft_blocks(cut->columns, line->run->lanes), false);
}

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    cut_line *line = context;
    const fft_cut *cut = line->run->cut;
    const npy_intp whole = cut->rows / line->run->lanes;
    run_blocks(line, cut->along, begin, end < whole ? end : fft_blocks(cut->rows, line->run->lanes), true);
}

static void transform_cut(dim_run *run, bool forward, double scale, const char *from, char *to, void *made) {
    cut_line line = {run, forward, scale, from, to, made};
    const fft_cut *cut = run->cut;
    const npy_intp down = cut->rows * run->lanes, along = cut->columns * run->lanes;
    native_parallel(cut->columns / run->lanes, down < GRAIN ? GRAIN / down : 1, run_columns, &line);
    native_parallel(cut->rows / run->lanes, along < GRAIN ? GRAIN / along : 1, run_rows, &line);
}

/* Elements of `size` bytes, `step` bytes apart, to places `to_step` bytes apart, line by line within each of them, so that lines of
   memory are read, or written, once; lines beside one another are turned over. */
typedef float four __attribute__((may_alias));
typedef double eight __attribute__((may_alias, aligned(4)));
typedef double sixteen __attribute__((may_alias, vector_size(16), aligned(8)));
#define MOVE(type)                                                                         \
    for (npy_intp j = 0; j < count; j++)                                                   \
        for (npy_intp i = 0; i < lines; i++)                                               \
            *(type *)(to[i] + j * to_step) = *(const type *)(from[i] + j * step);
static void move(const char *const *from, npy_intp step, char *const *to, npy_intp to_step, npy_intp lines, npy_intp count,
                 int size) {
    bool from_beside = ((uintptr_t)from[0] | (uintptr_t)step) % (size_t)size == 0;
    bool to_beside = ((uintptr_t)to[0] | (uintptr_t)to_step) % (size_t)size == 0;
    for (npy_intp i = 1; i < lines; i++) {
        from_beside &= from[i] == from[0] + i * size;
        to_beside &= to[i] == to[0] + i * size;
    }
    const npy_intp room = lines > 1 ? (from_beside ? to[1] - to[0] : from[1] - from[0]) : 0;
    if (size <= 8 && from_beside && to_step == size)
        turns->turn[size == 4 ? 2 : 3](from[0], step, to[0], room, lines, count);
    else if (size <= 8 && to_beside && step == size)
        turns->turn[size == 4 ? 2 : 3](from[0], room, to[0], to_step, count, lines);
    else if (size == 4) {
        MOVE(four)
    } else if (size == 8) {
        MOVE(eight)
    } else {
        MOVE(sixteen)
    }
}

static bool is_from_real(const fft_way *way) { return way->kind == FFT_REAL_TO_COMPLEX || way->kind == FFT_REAL_TO_HALF; }
static bool is_to_real(const fft_way *way) { return way->kind == FFT_HALF_TO_REAL; }

/* Odd sizes of real numbers are transformed as complex ones, where there is room for these. */
static bool comes_in_pairs(const fft_way *way) { return way->kind != FFT_COMPLEX && way->size % 2 == 0; }

/* Whether lines go by way of copies: numbers are apart, or there is no room. */
static bool must_be_held(const dim_run *run) {
    const fft_way *way = &run->way;
    const npy_intp number = run->wide ? 16 : 8;
    return way->from_step != (is_from_real(way) ? number / 2 : number) || way->to_step != (is_to_real(way) ? number / 2 : number) ||
           (way->size % 2 && (way->kind == FFT_REAL_TO_HALF || way->kind == FFT_HALF_TO_REAL));
}

/* A line whose numbers lie side by side, perhaps into its own place. */
static void run_cut_line(dim_run *run, const char *from, char *to, void *made) {
    const fft_way *way = &run->way;
    const fft_cut *cut = run->cut;
    const fft_cut_loops *one = run->cut_loops;
    const size_t number = run->wide ? 16 : 8;
    if (is_from_real(way) && comes_in_pairs(way)) {
        transform_cut(run, true, 1, from, to, made);
        one->unpair(cut, to, way->scale, way->forward ? way->scale : -way->scale);
        if (way->kind == FFT_REAL_TO_COMPLEX)
            one->mirror(to, way->size);
    } else if (is_from_real(way)) {
        one->widen(from, to, way->size);
        transform_cut(run, way->forward, way->scale, to, to, made);
        memset(to + number / 2, 0, number / 2);
    } else if (way->kind == FFT_COMPLEX) {
        transform_cut(run, way->forward, way->scale, from, to, made);
    } else if (comes_in_pairs(way)) {
        one->pair(cut, way->forward, from, to);
        transform_cut(run, false, way->scale, to, to, made);
    } else { /* in its own place */
        memset(to + number / 2, 0, number / 2);
        one->mirror(to, way->size);
        transform_cut(run, way->forward, way->scale, to, to, made);
    }
}

/* The bytes of a line's copy: an odd number of lines of memory, of which many a power of two apart would share few places in the
   caches. */
static npy_intp held_room(const dim_run *run) {
    const npy_intp numbers = run->way.kind == FFT_REAL_TO_COMPLEX ? run->way.size : run->cut->n + 1;
    return (numbers * (run->wide ? 16 : 8) + LINE - 1) / LINE * LINE | LINE;
}

static void run_cut_lines(void *context, npy_intp begin, npy_intp end) {
    dim_run *run = context;
    const fft_way *way = &run->way;
    const bool from_real = is_from_real(way), to_real = is_to_real(way);
    const npy_intp number = run->wide ? 16 : 8, room = held_room(run), half = way->size / 2 + 1;
    const npy_intp step = from_real ? number / 2 : number; /* of copies */
    const npy_intp to_step = to_real && comes_in_pairs(way) ? number / 2 : number;
    const npy_intp last = end * run->group < run->lines ? end * run->group : run->lines;
    const size_t bytes = run->work + (size_t)(run->held ? run->group * room : 0);
    char *made = work_of(run, bytes);
    for (npy_intp line = begin * run->group; made && line < last; line += run->group) {
        const char *from[FFT_LANES];
        char *to[FFT_LANES], *held[FFT_LANES];
        const npy_intp lines = last - line < run->group ? last - line : run->group;
        place(run, line, lines, from, to);
        for (npy_intp i = 0; i < lines; i++)
            held[i] = made + run->work + i * room;
        if (run->held)
            move(from, way->from_step, held, step, lines, to_real ? half : way->size, (int)step);
        for (npy_intp i = 0; i < lines; i++)
            run_cut_line(run, run->held ? held[i] : from[i], run->held ? held[i] : to[i], made);
        if (run->held)
            move((const char *const *)held, to_step, to, way->to_step, lines, way->kind == FFT_REAL_TO_HALF ? half : way->size,
                 (int)(to_real ? number / 2 : number));
    }
    if (made)
        native_scratch_free(made, bytes);
}

/* Few lines leave threads to the parts of each. */
static void start_cut_lines(dim_run *run) {
    const fft_cut *cut = run->cut;
    const npy_intp number = run->wide ? 16 : 8;
    run->group = run->held ? LINE / number : 1; /* neighbours share lines of memory */
    run->work = (size_t)(cut->rows * (fft_blocks(cut->columns, run->lanes) + 1) * run->lanes * number);
    const npy_intp groups = (run->lines + run->group - 1) / run->group, cost = cut->n * run->group;
    if (groups < native_threads())
        run_cut_lines(run, 0, groups);
    else
        native_parallel(groups, cost < GRAIN ? GRAIN / cost : 1, run_cut_lines, run);
}

/* What is made of a size */

/* How many complex numbers a transform of `size` makes at a time: real ones come in pairs, but in one piece those whose whole
   spectrum is asked for. */
static npy_intp complex_size(fft_kind kind, npy_intp size, bool cut) {
    const bool pairs = kind == FFT_REAL_TO_HALF || kind == FFT_HALF_TO_REAL || (cut && kind == FFT_REAL_TO_COMPLEX);
    return pairs && size % 2 == 0 ? size / 2 : size;
}

static bool can_be_cut(fft_kind kind, npy_intp size) { return fft_rows(complex_size(kind, size, true)); }

static bool fits_in_one(fft_kind kind, npy_intp size) {
    fft_plan plan;
    const npy_intp n = complex_size(kind, size, false);
    return n <= FFT_CHIRP || (n <= FFT_MOST && fft_split(&plan, n, FFT_PRIME));
}

bool fft_fits(fft_kind kind, npy_intp size) { return size >= 1 && (fits_in_one(kind, size) || can_be_cut(kind, size)); }

bool fft_along(PyArrayObject *x, PyArrayObject *made, int dim, fft_kind kind, npy_intp size, bool forward, double scale) {
    const int type = PyArray_TYPE(made);
    const bool wide = type == NPY_DOUBLE || type == NPY_CDOUBLE;
    dim_run run = {
        .way = {NULL, kind, forward, scale, size, PyArray_STRIDE(x, dim), PyArray_STRIDE(made, dim)},
        .one = loops->one[wide], .many = loops->many[wide], .lanes = loops->lanes[wide], .lines = 1,
        .from = PyArray_BYTES(x), .to = PyArray_BYTES(made), .cut_loops = &loops->cut[wide], .wide = wide,
    };
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (d != dim) {
            run.sizes[run.ndim] = PyArray_DIM(x, d);
            run.from_steps[run.ndim] = PyArray_STRIDE(x, d);
            run.to_steps[run.ndim++] = PyArray_STRIDE(made, d);
            run.lines *= PyArray_DIM(x, d);
        }
    run.held = must_be_held(&run);
    const npy_intp each = complex_size(kind, size, false);
    const bool near = run.lines * each <= CUT_NEAR / (wide ? 16 : 8); /* beyond, lines side by side are read one after the other */
    const npy_intp least = !are_many(&run) ? CUT_ONE : run.held || !near ? FFT_MOST + 1 : CUT_MANY;
    const bool cut = each >= least && can_be_cut(kind, size);
    const npy_intp n = complex_size(kind, size, cut);
    fft_kept *plan = fft_find(n, n != size, wide, cut ? run.lanes : 0);
    if (!plan)
        return false;
    if (cut) {
        run.cut = &plan->cut;
        start_cut_lines(&run);
    } else {
        run.way.plan = &plan->plan;
        start_lines(&run);
    }
    fft_drop(plan);
    if (run.failed)
        PyErr_NoMemory();
    return !run.failed;
}

void fft_lines_init(void) {
    loops = PICK(fft_loops);
    turns = PICK(turn_loops);
}
