/* Systems with a triangle: a few right sides by loops of our own, many real ones by products, others by BLAS with a share of the columns on
   each thread. */
#include "lapack.h"
#include "lapack_triangle.h"

#include <limits.h>
#include <string.h>

DECLARE_LOOPS(lapack_triangle_loops, lapack_triangle_loops);

enum {
    FEW = 2,               /* right sides for which turning over a batch of triangles does not pay */
    SOME = 32,             /* right sides up to which loops of our own are faster than BLAS */
    SHARED_WORK = 1 << 21, /* twice the multiplications that are worth a second thread: half of a square is a triangle */
    SHARE = 16,            /* right sides, of which a thread takes a multiple */
    ALONE = 32,            /* rows of a matrix whose batch of right sides is solved one by one; NumPy's joins larger ones */
};

static char *at(char *made, const lapack_job *job, npy_intp i, npy_intp elements) { return made + i * elements * job->size; }

/* Right sides beside one another, of which threads take some each. */
typedef struct {
    const lapack_triangle *of;
    const lapack_triangle_real *loops;
    char *made;
    npy_intp size;
} few_sides;

static void solve_few(void *context, npy_intp begin, npy_intp end) {
    const few_sides *sides = context;
    sides->loops->solve(sides->of, sides->made + begin * sides->of->n * sides->size, sides->of->n, end - begin);
}

bool lapack_few_pay(lapack_kind kind, npy_intp wide) { return wide <= SOME && !lapack_complex(kind); }

/* Of a matrix whose rows, or columns, lie side by side. */
static void solve_lying(const lapack_job *job, const char *data, npy_intp step, bool by_rows, bool upper, bool unit, char *made,
                        npy_intp wide) {
    const npy_intp n = job->rows;
    const lapack_triangle of = {data, step / job->size, n, by_rows, upper, unit};
    few_sides sides = {&of, &PICK(lapack_triangle_loops)->real[job->kind], made, job->size};
    const npy_intp group = sides.loops->group, groups = SHARED_WORK / (n * n * group) + 1;
    native_parallel(wide, groups * group, solve_few, &sides);
}

void lapack_solve_few(const lapack_job *job, npy_intp i, bool upper, bool turned, bool unit, char *made, npy_intp wide,
                      char *scratch) {
    const npy_intp row = job->x.row, column = job->x.column, size = job->size;
    if (row == size && column % size == 0)
        solve_lying(job, lapack_at(&job->x, i), column, turned, upper != turned, unit, made, wide);
    else if (column == size && row % size == 0)
        solve_lying(job, lapack_at(&job->x, i), row, !turned, upper != turned, unit, made, wide);
    else {
        lapack_copy(&job->x, i, size, scratch, job->rows);
        solve_lying(job, scratch, job->rows * size, turned, upper != turned, unit, made, wide);
    }
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

/* From the right it is the triangle turned over, and rows of right sides. */
static void triangular_few(const lapack_job *job, npy_intp i, char *made, char *scratch) {
    const npy_intp n = job->rows, rows = job->y.rows, size = job->size;
    const bool upper = job->options[1] == 'U', unit = job->options[2] == 'U';
    if (job->options[0] == 'L') {
        lapack_copy(&job->y, i, size, made, rows);
        lapack_solve_few(job, i, upper, false, unit, made, job->wide, scratch);
        return;
    }
    char *const turned = scratch + n * n * size;
    const lapack_matrices y = {.data = lapack_at(&job->y, i), .rows = n, .columns = rows, .row = job->y.column,
                               .column = job->y.row};
    lapack_copy(&y, 0, size, turned, n);
    lapack_solve_few(job, i, upper, true, unit, turned, rows, scratch);
    const lapack_matrices back = {.data = turned, .rows = rows, .columns = n, .row = n * size, .column = size};
    lapack_copy(&back, 0, size, made, rows);
}

static void triangular_one(const lapack_job *job, npy_intp i, char *scratch) {
    int line;
    char *made = at(job->made, job, i, (npy_intp)job->wide * (int)job->y.rows);
    const int rows = (int)job->y.rows;
    if (job->by_products) {
        triangular_few(job, i, made, scratch);
        return;
    }
    if (job->by_blocks && lapack_triangle_solve(job->kind, &job->x, i, job->options[1] == 'U', job->options[2] == 'U', job->options[0] == 'L',
                                                &job->y, made, scratch))
        return;
    lapack_copy(&job->y, i, job->size, made, rows);
    const bool by_rows = job->x.column == job->size, by_columns = job->x.row == job->size;
    const npy_intp step = by_rows ? job->x.row : job->x.column;
    const bool lies = (by_rows || by_columns) && step % job->size == 0 && step / job->size < INT_MAX;
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
    const npy_intp sides = left ? job.y.columns : job.y.rows;
    if (job.small || (left && job.wide > FEW && count >= LAPACK_LANES)) /* what is turned over is used several times */
        lapack_side_by_side(&job, triangular_together, job.rows, count);
    const bool ours = !job.small && !job.lanes;
    job.by_products = ours && lapack_few_pay(job.kind, sides);
    job.by_blocks = ours && lapack_sides_pay(job.kind, job.rows, sides);
    job.shares_out = job.by_products || job.by_blocks;
    const npy_intp square = (npy_intp)job.rows * (job.rows + (job.by_products && !left ? sides : 0)) * job.size;
    const npy_intp blocks = job.by_blocks ? lapack_sides_scratch(job.kind, job.rows) : 0;
    job.scratch = blocks > square ? blocks : square;
    PyArrayObject *made = lapack_new_matrices(&job.x, job.y.rows, job.wide, job.kind);
    job.made = made ? PyArray_BYTES(made) : NULL;
    return lapack_finish(&job, count, (double)job.rows * job.y.rows * job.wide, &made, 1, 1);
}

const native_spec lapack_triangular_kernels[] = {
    {"solve_triangular", run_solve_triangular, NULL},
    {NULL, NULL, NULL},
};
