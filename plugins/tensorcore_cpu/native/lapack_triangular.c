/* Systems with a triangle: column by column, by products, or by BLAS with a share of the columns on each thread. */
#include "gemm.h"
#include "lapack.h"

#include <limits.h>
#include <string.h>

enum {
    FEW = 2,     /* right sides that a triangle is read for by itself; */
    SOME = 32,   /* and up to which so many rows are worth products: */
    LARGE = 384,
    SHARE = 16,  /* right sides, of which a thread takes a multiple */
    ALONE = 32,  /* rows of a matrix whose batch of right sides is solved one by one; for larger ones NumPy's kernel joins their columns */
};

static char *at(char *made, const lapack_job *job, npy_intp i, npy_intp elements) { return made + i * elements * job->size; }

static native_type type_of(const lapack_job *job) { return job->kind == LAPACK_F32 ? TYPE_F32 : TYPE_F64; }

/* A triangle whose rows (`by_rows`), or columns, are `step` elements apart, right sides that become the answers, and room for as many. */
typedef struct {
    const lapack_job *job;
    const char *a;
    npy_intp step;
    bool by_rows;
    char *made, *room;
} triangle;

/* `count` rows from `first` on of all right sides: to the room, or back. */
static void move_rows(const triangle *of, npy_intp first, npy_intp count, bool back) {
    const npy_intp bytes = count * of->job->size;
    for (npy_intp j = 0; j < of->job->wide; j++) {
        char *const there = of->made + (j * of->job->rows + first) * of->job->size, *const here = of->room + j * bytes;
        memcpy(back ? there : here, back ? here : there, (size_t)bytes);
    }
}

/* What lies in the room becomes its opposite. */
static void turn_signs(const triangle *of, npy_intp count) {
    for (npy_intp k = 0; k < count * of->job->wide; k++)
        if (of->job->kind == LAPACK_F32)
            ((float *)of->room)[k] *= -1;
        else
            ((double *)of->room)[k] *= -1;
}

/* Half of the rows, what they take from the others by a product, and the others; a few by substitution. False where there is no memory. */
static bool solve_rows(const triangle *of, npy_intp first, npy_intp count) {
    const lapack_job *job = of->job;
    const npy_intp n = job->rows, size = job->size, step = of->step;
    const bool upper = job->options[1] == 'U';
    if (count <= LAPACK_SMALL) {
        move_rows(of, first, count, false);
        lapack_loops_of(job->kind)->triangular(of->a + first * (step + 1) * size, (int)step, (int)count, upper != of->by_rows,
                                               of->by_rows, job->options[2] == 'U', of->room, job->wide);
        move_rows(of, first, count, true);
        return true;
    }
    const npy_intp half = (count / 2 + LAPACK_SMALL - 1) / LAPACK_SMALL * LAPACK_SMALL, own = upper ? count - half : half;
    const npy_intp known = upper ? first + half : first, next = upper ? first : first + half;
    if (!solve_rows(of, known, own))
        return false;
    move_rows(of, known, own, false);
    turn_signs(of, own);
    char *const others = of->made + next * size;
    const gemm_job product = {
        .rows = job->wide, .columns = count - own, .inner = own, .left = of->room, .left_row = own, .left_inner = 1,
        .right = of->a + (of->by_rows ? next * step + known : known * step + next) * size, .right_inner = of->by_rows ? 1 : step,
        .right_column = of->by_rows ? step : 1, .before = others, .before_row = n, .made = others, .made_row = n};
    return gemm_run(type_of(job), &product) && solve_rows(of, next, count - own);
}

/* Columns of the right sides by BLAS. */
typedef struct {
    const lapack_job *job;
    const char *factor;
    char *made;
    int line, rows;
    char options[4];
} blas_call;

static void solve_columns(void *context, npy_intp begin, npy_intp end) {
    static const double ONE[2] = {1, 0};
    static const float ONE_F32[2] = {1, 0};
    const blas_call *call = context;
    const lapack_job *job = call->job;
    const int columns = (int)(end - begin);
    LAPACK(TRSM, job->kind)(call->options, call->options + 1, call->options + 3, call->options + 2, &call->rows, &columns,
                            job->kind & 1 ? (const void *)ONE : (const void *)ONE_F32, call->factor, &call->line,
                            call->made + begin * call->rows * job->size, &call->rows);
}

static void triangular_one(const lapack_job *job, npy_intp i, char *scratch) {
    int line;
    char *made = at(job->made, job, i, (npy_intp)job->wide * (int)job->y.rows);
    const int rows = (int)job->y.rows;
    lapack_copy(&job->y, i, job->size, made, rows);
    const bool by_rows = job->x.column == job->size, by_columns = job->x.row == job->size;
    const npy_intp step = by_rows ? job->x.row : job->x.column;
    const bool lies = (by_rows || by_columns) && step % job->size == 0 && step / job->size < INT_MAX;
    if (job->lines && lies) {
        for (int c = 0; c < job->wide; c++)
            job->lines->triangular_line(lapack_at(&job->x, i), step / job->size, rows, by_rows, job->options[1] == 'U', job->options[2] == 'U',
                                        made + (npy_intp)c * rows * job->size);
        return;
    }
    if (job->by_products) {
        if (!lies)
            lapack_copy(&job->x, i, job->size, scratch, rows);
        const triangle of = {job, lies ? lapack_at(&job->x, i) : scratch, lies ? step / job->size : rows, lies && by_rows, made,
                             scratch + (npy_intp)rows * rows * job->size};
        if (solve_rows(&of, 0, rows))
            return;
        lapack_copy(&job->y, i, job->size, made, rows);
    }
    blas_call call = {job, NULL, made, 0, rows, {job->options[0], job->options[1], job->options[2], 'N'}};
    if (!job->small && by_rows && lies && step >= job->rows * job->size) { /* one turned over */
        call.options[1] = call.options[1] == 'U' ? 'L' : 'U';
        call.options[3] = 'T';
        call.factor = lapack_at(&job->x, i);
        call.line = (int)(step / job->size);
    } else {
        call.factor = lapack_columns(&job->x, i, job->size, scratch, &line);
        call.line = line;
    }
    if (job->small) {
        job->small->triangular(call.factor, call.line, rows, job->options[1] == 'U', false, job->options[2] == 'U', made, job->wide);
        return;
    }
    const npy_intp share = (job->wide / native_threads() + SHARE - 1) / SHARE * SHARE;
    native_parallel(job->wide, job->options[0] == 'L' && share ? share : job->wide, solve_columns, &call);
}

static unsigned triangular_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count), right = lapack_group_at(&job->y, i, count);
    job->lanes->solve_together(&group, job->rows, job->options[1] == 'U', false, job->options[2] == 'U', NULL, &right, job->wide,
                               at(job->made, job, i, (npy_intp)job->rows * job->wide));
    return 0;
}

static PyObject *run_solve_triangular(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = triangular_one};
    bool upper, left, unit;
    npy_intp count;
    if (nargs != 2 || !lapack_options(args, nargs, kwnames, options) || !lapack_bool(options[LAPACK_UPPER], &upper) ||
        !lapack_bool(options[LAPACK_LEFT], &left) || !lapack_bool(options[LAPACK_UNIT], &unit) || !lapack_begin(&job, args[0]) ||
        lapack_read(args[1], 2, &job.y) != job.kind || job.rows != job.columns ||
        job.rows != (left ? job.y.rows : job.y.columns) || (left && !job.x.batch && job.y.batch && job.rows > ALONE) ||
        !lapack_join(&job.x, &job.y, &count))
        return NULL;
    job.options[0] = left ? 'L' : 'R';
    job.options[1] = upper ? 'U' : 'L';
    job.options[2] = unit ? 'U' : 'N';
    job.wide = (int)job.y.columns;
    job.small = left ? lapack_small_of(&job, job.rows) : NULL;
    job.lines = left && !job.small && job.wide <= FEW ? lapack_loops_of(job.kind) : NULL;
    if (job.small || (left && !job.lines && count >= LAPACK_LANES)) /* what is turned over is worth it where there is more to do with it */
        lapack_side_by_side(&job, triangular_together, job.rows, count);
    job.by_products = job.shares_out = left && !job.lines && !job.lanes && job.rows >= LARGE && job.wide <= SOME && !lapack_complex(job.kind) &&
                                       !gemm_real(type_of(&job))->slower_than_blas;
    job.scratch = ((npy_intp)job.rows + (job.by_products ? job.wide : 0)) * job.rows * job.size;
    PyArrayObject *made = lapack_new_matrices(&job.x, job.y.rows, job.wide, job.kind);
    job.made = made ? PyArray_BYTES(made) : NULL;
    return lapack_finish(&job, count, (double)job.rows * job.y.rows * job.wide, &made, 1, 1);
}

const native_spec lapack_triangular_kernels[] = {
    {"solve_triangular", run_solve_triangular, NULL},
    {NULL, NULL, NULL},
};
