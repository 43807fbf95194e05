/* Eigenvalues of symmetric and Hermitian matrices: of small and middle-sized real ones by loops of our own, of others by LAPACK. */
#include "lapack.h"
#include "lapack_eigen.h"

#include <string.h>

DECLARE_LOOPS(lapack_eigen_loops, lapack_eigen_loops);

static const int ASK = -1;

static npy_intp rounded(npy_intp bytes) { return (bytes + 15) / 16 * 16; }

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
static npy_intp reals_at(const lapack_job *job) { return rounded(job->room.work * job->size); }
static npy_intp ints_at(const lapack_job *job) { return reals_at(job) + rounded(job->room.reals * real_size(job)); }
static npy_intp rest_at(const lapack_job *job) { return ints_at(job) + rounded(job->room.ints * (npy_intp)sizeof(int)); }

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
    job.scratch = ours > lapacks ? ours : lapacks;
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
    return lapack_finish(&job, matrices, 8.0 * job.rows * job.rows * job.rows, made, count, count);
}

const native_spec lapack_eigen_kernels[] = {
    {"eigh", run_eigh, NULL},
    {NULL, NULL, NULL},
};
