/* Eigenvalues of symmetric and Hermitian matrices: of small and middle-sized real ones by loops of our own, of others by LAPACK, whose
   reflections are multiplied by products of ours where there are vectors. */
#include "lapack.h"
#include "lapack_eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

DECLARE_LOOPS(lapack_eigen_loops, lapack_eigen_loops);

static const int ASK = -1;

static npy_intp real_size(const lapack_job *job) { return job->kind & 1 ? 8 : 4; }

static int real_of(const lapack_job *job, const void *number) {
    return (int)(job->kind & 1 ? *(const double *)number : *(const float *)number);
}

/* The loops of a matrix that has a size for them; NULL where it is LAPACK's. */
static const lapack_eigen_real *loops_of(const lapack_job *job) {
    const int with_vectors = job->kind & 1 ? LAPACK_EIGENVECTORS_F64 : LAPACK_EIGENVECTORS_F32;
    const int most = job->options[0] == 'V' ? with_vectors : LAPACK_EIGENVALUES;
    return lapack_complex(job->kind) || job->rows > most ? NULL : &PICK(lapack_eigen_loops)->real[job->kind];
}

static void call_eigh(const lapack_job *job, char *x, char *values, char *work, const int *room, char *reals, const int *most_reals,
                      int *ints, const int *most_ints, int *info) {
    if (lapack_complex(job->kind))
        LAPACK(SYEVD, job->kind)(job->options, job->options + 1, &job->rows, x, &job->rows, values, work, room, reals, most_reals,
                                 ints, most_ints, info);
    else
        LAPACK(SYEVD, job->kind)(job->options, job->options + 1, &job->rows, x, &job->rows, values, work, room, ints, most_ints,
                                 info);
}

/* LAPACK's work space, real numbers and ints lie one after the other in the scratch, behind them the matrix where no vectors are
   wanted. */
static npy_intp reals_at(const lapack_job *job) { return rounded_up(job->room.work * job->size, 64); }
static npy_intp ints_at(const lapack_job *job) { return reals_at(job) + rounded_up(job->room.reals * real_size(job), 64); }
static npy_intp rest_at(const lapack_job *job) { return ints_at(job) + rounded_up(job->room.ints * (npy_intp)sizeof(int), 64); }

/* Vectors by LAPACK's divide and conquer, and LAPACK's reflections by products (Golub and Van Loan, Matrix Computations, 8.3 and 8.4). */

enum { COLUMNS_AT_ONCE = 64 }; /* at most, that sytrd changes a matrix by */

static bool by_products(const lapack_job *job) {
    return job->options[0] == 'V' && !loops_of(job) && lapack_qr_pays(job->kind, job->rows, job->rows);
}

/* The parts: the matrix, its factors and what is beside the diagonal, a matrix of vectors, and what is worked in. */
static npy_intp cut_products(const lapack_job *job, char *scratch, char **matrix, char **taus, char **beside, char **vectors, char **work) {
    const npy_intp n = job->rows, size = job->size, divide = lapack_divide_room(job->kind, n), sytrd = COLUMNS_AT_ONCE * n * size;
    const npy_intp reflect = lapack_qr_scratch(job->kind, n, n, n), most = sytrd > reflect ? sytrd : reflect;
    const npy_intp sizes[] = {lapack_qr_line(job->kind, n) * n * size, n * size, n * size, n * n * size, most > divide ? most : divide};
    char **const parts[] = {matrix, taus, beside, vectors, work};
    npy_intp total = 0;
    for (int i = 0; i < 5; i++) {
        *parts[i] = scratch ? scratch + total : NULL;
        total += rounded_up(sizes[i], 64);
    }
    return total;
}

/* Whether squares of such numbers are in range; syevd scales others first. */
static bool in_range(const lapack_job *job, const char *diagonal, const char *beside) {
    const double least = job->kind == LAPACK_F32 ? FLT_MIN / FLT_EPSILON : DBL_MIN / DBL_EPSILON;
    double largest = 0;
    for (npy_intp i = 0; i < job->rows; i++) {
        const double one = fabs(lapack_number_at(job->kind, diagonal, i)), other = i + 1 < job->rows ? fabs(lapack_number_at(job->kind, beside, i)) : 0;
        if (!(one + other <= DBL_MAX))
            return false;
        largest = one > largest ? one : largest;
        largest = other > largest ? other : largest;
    }
    return largest > sqrt(least) && largest < 1 / sqrt(least);
}

/* False where the matrix is for syevd: it is not finite, squares leave the range of the type, or there is no answer or no memory. */
static bool eigh_by_products(const lapack_job *job, npy_intp i, char *values, char *made, char *scratch) {
    char *matrix, *taus, *beside, *other, *work;
    cut_products(job, scratch, &matrix, &taus, &beside, &other, &work);
    const int n = job->rows, line = (int)lapack_qr_line(job->kind, n), sytrd_room = COLUMNS_AT_ONCE * n;
    lapack_matrices lower = job->x;
    if (job->options[1] == 'U') {
        lower.row = job->x.column;
        lower.column = job->x.row;
    }
    int info;
    lapack_copy(&lower, i, job->size, matrix, line);
    LAPACK(SYTRD, job->kind)("L", &n, matrix, &line, values, beside, taus, work, &sytrd_room, &info);
    if (info || !in_range(job, values, beside) || !lapack_divide(job->kind, n, values, beside, made, other, work))
        return false;
    char *const vectors = matrix + job->size; /* a reflection leaves the rows before it as they are */
    return lapack_qr_triangles(job->kind, n - 1, n - 1, vectors, line, taus, work) &&
           lapack_qr_times(job->kind, true, false, n - 1, n - 1, n, vectors, line, made + job->size, n, work);
}

static void eigh_one(const lapack_job *job, npy_intp i, char *scratch) {
    const npy_intp n = job->rows;
    const bool vectors = job->options[0] == 'V';
    const lapack_eigen_real *loops = loops_of(job);
    char *values = job->values + i * n * real_size(job), *made = vectors ? job->made + i * n * n * job->size : NULL;
    if (loops) {
        lapack_copy(&job->x, i, job->size, scratch, loops->line(job->rows));
        job->info[i] = 0;
        if (loops->eigen(scratch, job->rows, job->options[1] == 'U', values, made))
            return;
    } else if (by_products(job) && eigh_by_products(job, i, values, made, scratch)) {
        job->info[i] = 0;
        return;
    }
    char *x = vectors ? made : scratch + rest_at(job);
    lapack_copy(&job->x, i, job->size, x, n);
    call_eigh(job, x, values, scratch, &job->room.work, scratch + reals_at(job), &job->room.reals, (int *)(scratch + ints_at(job)),
              &job->room.ints, job->info + i);
}

/* Those that have no answer there go by themselves. */
static unsigned eigh_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count);
    const npy_intp n = job->rows;
    memset(job->info + i, 0, (size_t)count * sizeof *job->info);
    return job->lanes->eigh_together(&group, job->rows, job->options[1] == 'U', job->values + i * n * job->size,
                                     job->options[0] == 'V' ? job->made + i * n * n * job->size : NULL);
}

static PyObject *run_eigh(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = eigh_one, .routine = SYEVD};
    bool upper, vectors;
    if (nargs != 1 || !lapack_options(args, nargs, kwnames, options) || !lapack_bool(options[LAPACK_UPPER], &upper) ||
        !lapack_bool(options[LAPACK_VECTORS], &vectors) || !lapack_begin(&job, args[0]) || job.rows != job.columns)
        return NULL;
    job.options[0] = vectors ? 'V' : 'N';
    job.options[1] = upper ? 'U' : 'L';
    const npy_intp matrices = lapack_count(&job.x);
    lapack_by_rotations(&job, eigh_together, matrices);
    if (!lapack_room_known(&job, job.rows, job.options[0], job.options[1], 0)) {
        npy_cdouble answer, x, most = {0};
        int info, ints = 0;
        call_eigh(&job, (char *)&x, (char *)&x, (char *)&answer, &ASK, (char *)&most, &ASK, &ints, &ASK, &info);
        lapack_room_keep(&job, &answer, lapack_complex(job.kind) ? real_of(&job, &most) : 0, ints);
    }
    const lapack_eigen_real *loops = loops_of(&job);
    const npy_intp lapacks = rest_at(&job) + (vectors ? 0 : (npy_intp)job.rows * job.rows * job.size);
    const npy_intp ours = loops ? loops->room(job.rows, vectors) : 0;
    char *unused;
    const npy_intp products = by_products(&job) ? cut_products(&job, NULL, &unused, &unused, &unused, &unused, &unused) : 0;
    job.scratch = ours > lapacks ? ours : lapacks;
    job.scratch = products > job.scratch ? products : job.scratch;
    job.calls_none = loops != NULL;
    PyArrayObject *made[3] = {lapack_new_vectors(&job.x, job.rows, lapack_number(lapack_real(job.kind))),
                              lapack_new_vectors(&job.x, -1, NPY_INT32),
                              vectors ? lapack_new_matrices(&job.x, job.rows, job.rows, job.kind) : NULL};
    if (made[0] && made[1] && (!vectors || made[2])) {
        job.values = PyArray_BYTES(made[0]);
        job.info = (int *)PyArray_DATA(made[1]);
        job.made = vectors ? PyArray_BYTES(made[2]) : NULL;
    }
    const int count = vectors ? 3 : 2;
    const double cube = (double)job.rows * job.rows * job.rows; /* by products, LAPACK's threads are for the reflections alone */
    return lapack_finish(&job, matrices, by_products(&job) ? 4 * cube / 3 : 8 * cube, made, count, count);
}

const native_spec lapack_eigen_kernels[] = {
    {"eigh", run_eigh, NULL},
    {NULL, NULL, NULL},
};
