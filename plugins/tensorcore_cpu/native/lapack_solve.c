/* Factors of matrices by LAPACK, and what is solved with them. */
#include "lapack.h"

#include <limits.h>
#include <string.h>

/* Whether all of a kernel's arguments are there, with the arrays first and no option but known ones. */
static bool given(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int arrays, PyObject **options) {
    return nargs == arrays && lapack_options(args, nargs, kwnames, options);
}

static double cube(const lapack_job *job) { return (double)job->rows * job->columns * job->least; }

static char *at(char *made, const lapack_job *job, npy_intp i, npy_intp elements) { return made + i * elements * job->size; }

/* The other triangle of a square matrix, without the diagonal, becomes zeros. */
static void clear(const lapack_job *job, char *made, bool upper) {
    const npy_intp n = job->rows;
    for (npy_intp column = 0; column < n; column++) {
        const npy_intp first = upper ? 0 : column + 1, end = upper ? column : n;
        memset(made + (column * n + first) * job->size, 0, (size_t)((end - first) * job->size));
    }
}

enum { ALONE = 32 }; /* rows of a matrix whose right sides are solved one by one; for larger ones NumPy's kernel joins their columns */

/* LU */

static void lu_one(const lapack_job *job, npy_intp i, char *scratch) {
    char *made = at(job->made, job, i, (npy_intp)job->rows * job->columns);
    int *pivots = job->pivots + i * job->least;
    if (job->by_products && lapack_lu_factor(job->kind, &job->x, i, made, pivots, job->info + i, scratch))
        return;
    lapack_copy(&job->x, i, job->size, made, job->rows);
    if (job->small)
        job->info[i] = job->small->lu(made, job->rows, pivots);
    else
        LAPACK(GETRF, job->kind)(&job->rows, &job->columns, made, &job->rows, pivots, job->info + i);
}

static unsigned lu_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count);
    memset(job->info + i, 0, (size_t)count * sizeof(int));
    return job->lanes->lu_together(&group, job->rows, at(job->made, job, i, (npy_intp)job->rows * job->rows), job->pivots + i * job->rows);
}

static PyObject *run_lu_factor(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    lapack_job job = {.one = lu_one};
    if (nargs != 1 || kwnames || !lapack_begin(&job, args[0]))
        return NULL;
    job.small = job.rows == job.columns ? lapack_small_of(&job, job.rows) : NULL;
    if (job.rows == job.columns)
        lapack_side_by_side(&job, lu_together, job.rows, lapack_count(&job.x));
    job.by_products = job.shares_out = !job.lanes && lapack_lu_pays(job.kind, job.rows, job.columns);
    job.scratch = job.by_products ? lapack_lu_scratch(job.kind, job.rows, job.columns, false) : 0;
    PyArrayObject *made[] = {lapack_new_matrices(&job.x, job.rows, job.columns, job.kind),
                             lapack_new_vectors(&job.x, job.least, NPY_INT32), lapack_new_vectors(&job.x, -1, NPY_INT32)};
    if (made[0] && made[1] && made[2]) {
        job.made = PyArray_BYTES(made[0]);
        job.pivots = (int *)PyArray_DATA(made[1]);
        job.info = (int *)PyArray_DATA(made[2]);
    }
    return lapack_finish(&job, lapack_count(&job.x), cube(&job), made, 3, 3);
}

/* Pivots i of a batch side by side: where they lie, or in `scratch`. */
static int *pivots_at(const lapack_matrices *pivots, npy_intp i, int *scratch) {
    const char *first = lapack_at(pivots, i);
    if (pivots->row == sizeof(int))
        return (int *)first;
    for (npy_intp k = 0; k < pivots->rows; k++)
        scratch[k] = *(const int *)(first + k * pivots->row);
    return scratch;
}

/* Rows of the right sides change places, forwards or back. */
static void swap_rows(const lapack_job *job, const int *pivots, bool back, char *made) {
    const npy_intp n = job->rows;
    for (npy_intp c = 0; c < job->wide; c++)
        for (npy_intp step = 0; step < n; step++) {
            const npy_intp k = back ? n - 1 - step : step, other = pivots[k] - 1;
            if (job->kind == LAPACK_F32) {
                float *const column = (float *)made + c * n, was = column[k];
                column[k] = column[other];
                column[other] = was;
            } else {
                double *const column = (double *)made + c * n, was = column[k];
                column[k] = column[other];
                column[other] = was;
            }
        }
}

/* LU's and LDL's: x are the factors, y the right sides, z the swaps. */
static void factors_one(const lapack_job *job, npy_intp i, char *scratch) {
    int line, info;
    char *made = at(job->made, job, i, (npy_intp)job->rows * job->wide);
    int *pivots = pivots_at(&job->z, i, (int *)scratch);
    char *const room = scratch + ((size_t)job->rows * 4 + 15) / 16 * 16;
    if (job->by_blocks && lapack_lu_solve(job->kind, &job->x, i, pivots, job->options[0] != 'N', &job->y, made, room))
        return;
    lapack_copy(&job->y, i, job->size, made, job->rows);
    if (job->by_products) {
        const bool turned = job->options[0] != 'N';
        if (!turned)
            swap_rows(job, pivots, false, made);
        lapack_solve_few(job, i, turned, turned, !turned, made, job->wide, room);
        lapack_solve_few(job, i, !turned, turned, turned, made, job->wide, room);
        if (turned)
            swap_rows(job, pivots, true, made);
        return;
    }
    const char *factors = lapack_columns(&job->x, i, job->size, room, &line);
    if (job->small)
        job->small->lu_solve(factors, line, job->rows, job->options[0] != 'N', pivots, made, job->wide);
    else
        LAPACK(job->routine, job->kind)(job->options, &job->rows, &job->wide, factors, &line, pivots, made, &job->rows, &info);
}

static unsigned factors_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count), swaps = lapack_group_at(&job->z, i, count),
                       right = lapack_group_at(&job->y, i, count);
    job->lanes->solve_together(&group, job->rows, true, job->options[0] != 'N', false, &swaps, &right, job->wide,
                               at(job->made, job, i, (npy_intp)job->rows * job->wide));
    return 0;
}

/* A job of factors, swaps and right sides, which broadcast. */
static PyObject *solve_by(lapack_job *job, PyObject *const *args) {
    npy_intp count;
    if (!lapack_begin(job, args[0]) || !lapack_read_pivots(args[1], &job->z) || lapack_read(args[2], 2, &job->y) != job->kind ||
        job->rows != job->columns || job->y.rows != job->rows || job->z.rows != job->rows ||
        (!job->x.batch && job->y.batch && job->rows > ALONE) || !lapack_join(&job->x, &job->z, &count) || !lapack_join(&job->x, &job->y, &count) ||
        !lapack_join(&job->x, &job->z, &count))
        return NULL;
    job->wide = (int)job->y.columns;
    job->small = job->routine == GETRS ? lapack_small_of(job, job->rows) : NULL;
    if (job->routine == GETRS)
        lapack_side_by_side(job, factors_together, job->rows, count);
    const bool ours = job->routine == GETRS && !job->small && !job->lanes;
    job->by_products = ours && lapack_few_pay(job->kind, job->wide);
    job->by_blocks = ours && lapack_sides_pay(job->kind, job->rows, job->wide);
    job->shares_out = job->by_products || job->by_blocks;
    const npy_intp square = (npy_intp)job->rows * job->rows * job->size;
    const npy_intp blocks = job->by_blocks ? lapack_sides_scratch(job->kind, job->rows) : 0;
    job->scratch = job->rows * 4 + 16 + (blocks > square ? blocks : square);
    PyArrayObject *made = lapack_new_matrices(&job->x, job->rows, job->wide, job->kind);
    job->made = made ? PyArray_BYTES(made) : NULL;
    return lapack_finish(job, count, 2.0 * job->rows * job->rows * job->wide, &made, 1, 1);
}

static PyObject *run_lu_solve(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = factors_one, .routine = GETRS};
    if (!given(args, nargs, kwnames, 3, options) || !options[LAPACK_WAY] || !PyUnicode_Check(options[LAPACK_WAY]) ||
        PyUnicode_GET_LENGTH(options[LAPACK_WAY]) != 1)
        return NULL;
    job.options[0] = (char)PyUnicode_READ_CHAR(options[LAPACK_WAY], 0);
    return strchr("NTC", job.options[0]) ? solve_by(&job, args) : NULL;
}

static PyObject *run_ldl_solve(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = factors_one, .options = "L"};
    bool hermitian;
    if (!given(args, nargs, kwnames, 3, options) || !lapack_bool(options[LAPACK_HERMITIAN], &hermitian) ||
        !PyArray_Check(args[0]))
        return NULL;
    job.routine = hermitian && PyArray_ISCOMPLEX((PyArrayObject *)args[0]) ? HETRS : SYTRS;
    return solve_by(&job, args);
}

static PyObject *run_unpack_pivots(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_matrices pivots;
    if (!given(args, nargs, kwnames, 1, options) || !options[LAPACK_ROWS] || !PyLong_CheckExact(options[LAPACK_ROWS]) ||
        !lapack_read_pivots(args[0], &pivots))
        return NULL;
    const Py_ssize_t rows = PyLong_AsSsize_t(options[LAPACK_ROWS]);
    const npy_intp count = lapack_count(&pivots);
    PyArrayObject *made = rows < 0 ? NULL : lapack_new_vectors(&pivots, rows, NPY_INT64);
    if (!made)
        return NULL;
    for (npy_intp i = 0; i < count; i++) {
        int64_t *order = (int64_t *)PyArray_DATA(made) + i * rows;
        const char *swaps = lapack_at(&pivots, i);
        for (npy_intp k = 0; k < rows; k++)
            order[k] = k;
        for (npy_intp k = 0; k < pivots.rows; k++) {
            const npy_intp there = *(const int *)(swaps + k * pivots.row) - 1;
            if (there < 0 || there >= rows || k >= rows) { /* NumPy's says so */
                Py_DECREF(made);
                return NULL;
            }
            const int64_t one = order[k];
            order[k] = order[there];
            order[there] = one;
        }
    }
    return (PyObject *)made;
}

/* Inverses: of a singular matrix, what dividing by the zero gives. */

static void inverse_one(const lapack_job *job, npy_intp i, char *scratch) {
    const npy_intp n = job->rows, whole = n * n * job->size;
    int *pivots = (int *)scratch, failed;
    char *made = at(job->made, job, i, n * n), *rest = scratch + (n * 4 + 15) / 16 * 16;
    if (job->small) {
        lapack_copy(&job->x, i, job->size, rest, n);
        job->info[i] = job->small->lu(rest, (int)n, pivots);
        job->small->lu_inverse(rest, (int)n, pivots, made);
        return;
    }
    if (job->by_products && lapack_lu_inverse(job->kind, &job->x, i, made, pivots, rest)) {
        job->info[i] = 0;
        return;
    }
    lapack_copy(&job->x, i, job->size, made, n);
    LAPACK(GETRF, job->kind)(&job->rows, &job->rows, made, &job->rows, pivots, job->info + i);
    if (!job->info[i]) {
        LAPACK(GETRI, job->kind)(&job->rows, made, &job->rows, pivots, rest, &job->room.work, &failed);
        return;
    }
    memcpy(rest, made, (size_t)whole);
    memset(made, 0, (size_t)whole);
    for (npy_intp k = 0; k < n; k++)
        if (job->kind & 1)
            *(double *)(made + k * (n + 1) * job->size) = 1;
        else
            *(float *)(made + k * (n + 1) * job->size) = 1;
    LAPACK(GETRS, job->kind)("N", &job->rows, &job->rows, rest, &job->rows, pivots, made, &job->rows, &failed);
}

static unsigned inverse_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count);
    memset(job->info + i, 0, (size_t)count * sizeof(int));
    return job->lanes->inverse_together(&group, job->rows, at(job->made, job, i, (npy_intp)job->rows * job->rows));
}

static PyObject *run_inverse(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    lapack_job job = {.one = inverse_one, .routine = GETRI};
    if (nargs != 1 || kwnames || !lapack_begin(&job, args[0]) || job.rows != job.columns)
        return NULL;
    job.small = lapack_small_of(&job, job.rows);
    lapack_side_by_side(&job, inverse_together, job.rows, lapack_count(&job.x));
    if (!lapack_room_known(&job, job.rows, 0, 0, 0)) {
        npy_cdouble answer;
        int ask = -1, info, pivot;
        LAPACK(GETRI, job.kind)(&job.rows, &answer, &job.rows, &pivot, &answer, &ask, &info);
        lapack_room_keep(&job, &answer, 0, 0);
    }
    const npy_intp square = (npy_intp)job.rows * job.rows;
    job.scratch = (job.room.work > square ? job.room.work : square) * job.size;
    job.by_products = job.shares_out = !job.small && !job.lanes && lapack_lu_pays(job.kind, job.rows, job.rows);
    const npy_intp products = job.by_products ? lapack_lu_scratch(job.kind, job.rows, job.rows, true) : 0;
    job.scratch = (job.scratch > products ? job.scratch : products) + job.rows * 4 + 16;
    PyArrayObject *made[] = {lapack_new_matrices(&job.x, job.rows, job.rows, job.kind),
                             lapack_new_vectors(&job.x, -1, NPY_INT32)};
    if (made[0] && made[1]) {
        job.made = PyArray_BYTES(made[0]);
        job.info = (int *)PyArray_DATA(made[1]);
    }
    return lapack_finish(&job, lapack_count(&job.x), 3 * cube(&job), made, 2, 2);
}

/* Hermitian matrices */

static bool is_nan(const lapack_job *job, const char *element) {
    const bool two = lapack_complex(job->kind);
    if (job->kind & 1) {
        const double *x = (const double *)element;
        return x[0] != x[0] || (two && x[1] != x[1]);
    }
    const float *x = (const float *)element;
    return x[0] != x[0] || (two && x[1] != x[1]);
}

static void cholesky_one(const lapack_job *job, npy_intp i, char *scratch) {
    char *made = at(job->made, job, i, (npy_intp)job->rows * job->rows);
    if (job->by_products && lapack_cholesky_factor(job->kind, job->options[0] == 'U', &job->x, i, made, scratch)) {
        job->info[i] = 0;
        clear(job, made, job->options[0] == 'L');
        return;
    }
    lapack_copy(&job->x, i, job->size, made, job->rows);
    if (job->small)
        job->info[i] = job->small->cholesky(made, job->rows, job->options[0] == 'U');
    else
        LAPACK(POTRF, job->kind)(job->options, &job->rows, made, &job->rows, job->info + i);
    clear(job, made, job->options[0] == 'L');
    for (npy_intp k = 0; k < job->rows && !job->info[i]; k++) /* OpenBLAS goes on at NaN, which is not positive either */
        if (is_nan(job, made + k * (job->rows + 1) * job->size))
            job->info[i] = (int)k + 1;
}

static unsigned cholesky_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count);
    memset(job->info + i, 0, (size_t)count * sizeof(int));
    return job->lanes->cholesky_together(&group, job->rows, job->options[0] == 'U', at(job->made, job, i, (npy_intp)job->rows * job->rows));
}

static PyObject *run_cholesky(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = cholesky_one};
    bool upper;
    if (!given(args, nargs, kwnames, 1, options) || !lapack_bool(options[LAPACK_UPPER], &upper) || !lapack_begin(&job, args[0]) ||
        job.rows != job.columns)
        return NULL;
    job.options[0] = upper ? 'U' : 'L';
    job.small = lapack_small_of(&job, job.rows);
    lapack_side_by_side(&job, cholesky_together, job.rows, lapack_count(&job.x));
    job.by_products = job.shares_out = !job.small && !job.lanes && lapack_cholesky_pays(job.kind, job.rows);
    job.scratch = job.by_products ? lapack_cholesky_scratch(job.kind, job.rows) : 0;
    PyArrayObject *made[] = {lapack_new_matrices(&job.x, job.rows, job.rows, job.kind),
                             lapack_new_vectors(&job.x, -1, NPY_INT32)};
    if (made[0] && made[1]) {
        job.made = PyArray_BYTES(made[0]);
        job.info = (int *)PyArray_DATA(made[1]);
    }
    return lapack_finish(&job, lapack_count(&job.x), cube(&job) / 2, made, 2, 2);
}

static void ldl_one(const lapack_job *job, npy_intp i, char *scratch) {
    char *made = at(job->made, job, i, (npy_intp)job->rows * job->rows);
    lapack_copy(&job->x, i, job->size, made, job->rows);
    LAPACK(job->routine, job->kind)("L", &job->rows, made, &job->rows, job->pivots + i * job->rows, scratch, &job->room.work,
                                    job->info + i);
    clear(job, made, true);
}

static PyObject *run_ldl_factor(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = ldl_one};
    bool hermitian;
    if (!given(args, nargs, kwnames, 1, options) || !lapack_bool(options[LAPACK_HERMITIAN], &hermitian) ||
        !lapack_begin(&job, args[0]) || job.rows != job.columns)
        return NULL;
    job.routine = hermitian && lapack_complex(job.kind) ? HETRF : SYTRF;
    if (!lapack_room_known(&job, job.rows, 0, 0, 0)) {
        npy_cdouble answer;
        int ask = -1, info, pivot;
        LAPACK(job.routine, job.kind)("L", &job.rows, &answer, &job.rows, &pivot, &answer, &ask, &info);
        lapack_room_keep(&job, &answer, 0, 0);
    }
    job.scratch = job.room.work * job.size;
    PyArrayObject *made[] = {lapack_new_matrices(&job.x, job.rows, job.rows, job.kind),
                             lapack_new_vectors(&job.x, job.rows, NPY_INT32), lapack_new_vectors(&job.x, -1, NPY_INT32)};
    if (made[0] && made[1] && made[2]) {
        job.made = PyArray_BYTES(made[0]);
        job.pivots = (int *)PyArray_DATA(made[1]);
        job.info = (int *)PyArray_DATA(made[2]);
    }
    return lapack_finish(&job, lapack_count(&job.x), cube(&job) / 2, made, 3, 3);
}

const native_spec lapack_solve_kernels[] = {
    {"lu_factor", run_lu_factor, NULL},
    {"lu_solve", run_lu_solve, NULL},
    {"unpack_pivots", run_unpack_pivots, NULL},
    {"inverse", run_inverse, NULL},
    {"cholesky", run_cholesky, NULL},
    {"ldl_factor", run_ldl_factor, NULL},
    {"ldl_solve", run_ldl_solve, NULL},
    {NULL, NULL, NULL},
};
