/* Products of matrices of floats by thirds of bfloat16 (thirds.c). */
#include "gemm_thirds.h"

#include "native.h"
#include "thirds.h"
#include "turn.h"

#ifdef BF16_TILES
DECLARE_LOOPS(turn_loops, turn_loops);

enum {
    LINE = 64,                /* bytes */
    SIDE = THIRDS_SIDE, STEP = THIRDS_STEP,
    DEPTH = 128,              /* of the inner dim that go together: a block and a panel of it stay in the first cache, */
    GROUP = 32,               /* and so many panels in the second one */
    NEAR = 1 << 16,           /* bytes of room on the stack */
    FAR = 1 << 18,            /* and of a left side that is fetched ahead */
    LEAST_SIDE = 96, LEAST_SHORT = 48, SHORT = 128, /* rows and columns from which on this pays, also where the inner dim is short */
};

/* Numbers of any steps as rows of `wide` side by side, in the room. */
static const float *side_by_side(const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t rows, ptrdiff_t columns, float *room,
                                 ptrdiff_t wide) {
    if (row == 1)
        PICK(turn_loops)->turn[2]((const char *)from, column * (ptrdiff_t)sizeof *from, (char *)room, wide * (ptrdiff_t)sizeof *room, rows,
                                  columns);
    else
        for (ptrdiff_t r = 0; r < rows; r++)
            for (ptrdiff_t c = 0; c < columns; c++)
                room[r * wide + c] = from[r * row + c * column];
    return room;
}

static bool pack_left(const gemm_job *job, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t first, ptrdiff_t count, float *room,
                      thirds_block *made) {
    const float *from = (const float *)job->left + row * job->left_row + first * job->left_inner;
    ptrdiff_t step = job->left_row;
    if (job->left_inner != 1)
        from = side_by_side(from, job->left_row, job->left_inner, rows, count, room, step = DEPTH);
    return thirds_pack_rows(from, step, rows, count, made);
}

static bool pack_right(const gemm_job *job, ptrdiff_t column, ptrdiff_t columns, ptrdiff_t first, ptrdiff_t count, float *room,
                       thirds_block *made) {
    const float *from = (const float *)job->right + (job->pairs ? column + first / 2 * job->right_inner
                                                                : column * job->right_column + first * job->right_inner);
    ptrdiff_t step = job->right_inner;
    if (job->right_column != 1 && !job->pairs)
        from = side_by_side(from, job->right_inner, job->right_column, count, columns, room, step = SIDE);
    return thirds_pack_columns(from, step, columns, count, job->pairs, made);
}

/* The g-th of so many shares of a block of rows on its way from memory. */
static void fetch_left(const gemm_job *job, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t first, ptrdiff_t count, ptrdiff_t g,
                       ptrdiff_t shares) {
    const char *from = (const char *)((const float *)job->left + row * job->left_row + first * job->left_inner);
    const bool beside = job->left_inner == 1;
    const ptrdiff_t lines = beside ? rows : count, bytes = (beside ? count : rows) * (ptrdiff_t)sizeof(float);
    const ptrdiff_t step = (beside ? job->left_row : job->left_inner) * (ptrdiff_t)sizeof(float);
    for (ptrdiff_t i = g * lines / shares; i < (g + 1) * lines / shares; i++)
        for (ptrdiff_t at = 0; at < bytes; at += LINE)
            __builtin_prefetch(from + i * step + at, 0, 2);
}

/* A thread's part: all columns with some blocks of rows, or all rows with some panels. */
typedef struct {
    const gemm_job *job;
    bool by_rows;
    ptrdiff_t depth;
    _Atomic bool failed;
} work;

static void run_part(void *context, npy_intp begin, npy_intp end) {
    work *all = context;
    const gemm_job *job = all->job;
    const ptrdiff_t depth = all->depth, bytes = depth / STEP * THIRDS_BYTES, panels = at_most(GROUP, parts_of(job->columns, SIDE));
    const ptrdiff_t top = all->by_rows ? begin * SIDE : 0, bottom = all->by_rows ? at_most(end * SIDE, job->rows) : job->rows;
    const ptrdiff_t from = all->by_rows ? 0 : begin * SIDE, to = all->by_rows ? job->columns : at_most(end * SIDE, job->columns);
    const size_t total = (size_t)(bytes * (panels + 1)) + (THIRDS_SUMS + SIDE * DEPTH) * sizeof(float);
    char near[NEAR] __attribute__((aligned(LINE))), *const room = total <= NEAR ? near : native_scratch(total);
    if (!room) {
        all->failed = true;
        return;
    }
    float *const sums = (float *)(room + bytes * (panels + 1)), *const turned = sums + THIRDS_SUMS;
    thirds_block left = {room, 0}, right[GROUP];
    for (ptrdiff_t g = 0; g < panels; g++)
        right[g].thirds = room + (g + 1) * bytes;
    const bool fetches = (bottom - top) * job->inner * (ptrdiff_t)sizeof(float) >= FAR;
    thirds_begin();
    for (ptrdiff_t column = from; column < to; column += panels * SIDE)
        for (ptrdiff_t first = 0; first < job->inner && !all->failed; first += depth) {
            const ptrdiff_t count = at_most(depth, job->inner - first), steps = parts_of(count, STEP);
            const ptrdiff_t wide = at_most(panels * SIDE, to - column);
            const float *const before = first ? job->made : job->before;
            const ptrdiff_t before_row = first ? job->made_row : job->before_row;
            for (ptrdiff_t g = 0; g * SIDE < wide; g++)
                if (!pack_right(job, column + g * SIDE, at_most(SIDE, wide - g * SIDE), first, count, turned, &right[g]))
                    all->failed = true;
            for (ptrdiff_t row = top; row < bottom && !all->failed; row += SIDE) {
                const ptrdiff_t rows = at_most(SIDE, bottom - row);
                if (!pack_left(job, row, rows, first, count, turned, &left))
                    all->failed = true;
                for (ptrdiff_t g = 0; g * SIDE < wide; g++) {
                    const ptrdiff_t at = column + g * SIDE;
                    const thirds_place here = {rows, at_most(SIDE, wide - g * SIDE), before_row, job->made_row,
                                        before ? before + row * before_row + at : NULL, (float *)job->made + row * job->made_row + at,
                                               job->inner > THIRDS_LONG};
                    if (row + SIDE < bottom && fetches)
                        fetch_left(job, row + SIDE, at_most(SIDE, bottom - row - SIDE), first, count, g, parts_of(wide, SIDE));
                    thirds_multiply(&left, &right[g], steps, &here, sums);
                }
            }
        }
    thirds_end();
    if (room != near)
        native_scratch_free(room, total);
}

bool gemm_takes_thirds(const gemm_job *job) {
    const ptrdiff_t least = at_most(job->rows, job->columns);
    return least >= (job->inner > SHORT ? LEAST_SIDE : LEAST_SHORT) && thirds_wanted() && job->before != job->made;
}

bool gemm_run_thirds(const gemm_job *job) {
    const ptrdiff_t parts = parts_of(job->inner, DEPTH), threads = native_threads();
    work all = {.job = job, .by_rows = job->rows >= job->columns, .depth = rounded_up(parts_of(job->inner, parts), STEP)};
    const ptrdiff_t units = parts_of(all.by_rows ? job->rows : job->columns, SIDE);
    native_parallel(units, job->rows * job->columns * job->inner < GEMM_WORK ? units : parts_of(units, threads), run_part, &all);
    return !all.failed;
}
#else
bool gemm_takes_thirds(const gemm_job *job) { return false; }
bool gemm_run_thirds(const gemm_job *job) { return false; }
#endif
