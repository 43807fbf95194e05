/* Singular values, and eigenvalues of any square matrices, by LAPACK. */
#include "lapack.h"

#include <math.h>
#include <string.h>

static char *at(char *made, const lapack_job *job, npy_intp i, npy_intp elements) { return made + i * elements * job->size; }

static npy_intp real_size(const lapack_job *job) { return job->kind & 1 ? 8 : 4; }

/* Where the parts of a thread's scratch begin: the work space, real numbers, ints, and what a kernel has beside them. */
static npy_intp reals_at(const lapack_job *job) { return rounded_up(job->room.work * job->size, 16); }
static npy_intp ints_at(const lapack_job *job) { return reals_at(job) + rounded_up(job->room.reals * real_size(job), 16); }
static npy_intp rest_at(const lapack_job *job) { return ints_at(job) + rounded_up(job->room.ints * (npy_intp)sizeof(int), 16); }
static char *reals_of(const lapack_job *job, char *scratch) { return scratch + reals_at(job); }
static int *ints_of(const lapack_job *job, char *scratch) { return (int *)(scratch + ints_at(job)); }
static char *rest_of(const lapack_job *job, char *scratch) { return scratch + rest_at(job); }
static void set_scratch(lapack_job *job, npy_intp rest) { job->scratch = rest_at(job) + rest; }

static const int ASK = -1;
static const double MOST_WORK = 5e8; /* that LAPACK has where reflections are ours: its few products gain nothing by threads */
enum { IS_NAN = -4 }; /* gesdd's answer */

/* Whether all numbers of a matrix are smaller than that; NaN is not. */
static bool all_below(const lapack_job *job, const char *x, double limit) {
    const npy_intp count = (npy_intp)job->rows * job->columns * (lapack_complex(job->kind) ? 2 : 1);
    const float single = (float)limit;
    int odd = 0;
    if (job->kind & 1)
        for (npy_intp k = 0; k < count; k++)
            odd |= !(fabs(((const double *)x)[k]) < limit);
    else
        for (npy_intp k = 0; k < count; k++)
            odd |= !(fabsf(((const float *)x)[k]) < single);
    return !odd;
}

/* Singular values: `made` is U, `more` the adjoint of V. */

/* Of a matrix of `rows`, whose columns, and those of U, are `line` apart. */
static void call_svd(const lapack_job *job, const int *rows, char *x, const int *line, char *values, char *u, char *vh, const int *right,
                     char *scratch, int *info) {
    int *ints = ints_of(job, scratch);
    if (lapack_complex(job->kind))
        LAPACK(GESDD, job->kind)(job->options, rows, &job->columns, x, line, values, u, line, vh, right, scratch, &job->room.work,
                                 reals_of(job, scratch), ints, info);
    else
        LAPACK(GESDD, job->kind)(job->options, rows, &job->columns, x, line, values, u, line, vh, right, scratch, &job->room.work,
                                 ints, info);
}

/* So many more rows than columns that LAPACK begins with Q and R. Here that is done first, because LAPACK looks at the matrix it is given
   for its largest number, element after element, which takes longer than to factor one of ten columns. */
static bool is_tall(const lapack_job *job) { return job->options[0] != 'A' && 6.0 * job->rows >= 11.0 * job->columns; }

/* Bytes of what products work in. */
static npy_intp products_room(const lapack_job *job) {
    return job->by_products ? rounded_up(lapack_qr_scratch(job->kind, job->rows, job->columns, job->columns), 16) : 0;
}

/* False where the triangle is not finite, or has no answer: the matrix is for LAPACK then, which scales it. */
static bool svd_by_triangle(const lapack_job *job, npy_intp i, char *x, char *values, char *u, char *vh, char *scratch) {
    const npy_intp rows = job->rows, n = job->columns, size = job->size;
    const bool vectors = job->options[0] != 'N';
    static const double ONE[2] = {1, 0}, ZERO[2] = {0, 0};
    static const float ONE_F32[2] = {1, 0};
    const void *one = job->kind & 1 ? (const void *)ONE : (const void *)ONE_F32;
    char *r = x + rows * n * size, *inner = r + n * n * size, *taus = inner + n * n * size;
    char *room = x + rounded_up((rows + 2 * n + 1) * n * size, 16);
    int info;
    const lapack_matrices triangle = {.data = r, .rows = n, .columns = n, .row = size, .column = n * size};
    if (!job->by_products)
        LAPACK(GEQRF, job->kind)(&job->rows, &job->columns, x, &job->rows, taus, scratch, &job->room.work, &info);
    else if (!lapack_qr_factor(job->kind, rows, n, n, x, rows, taus, room))
        return false;
    for (npy_intp j = 0; j < n; j++) {
        memcpy(r + j * n * size, x + j * rows * size, (size_t)((j + 1) * size));
        memset(r + (j * n + j + 1) * size, 0, (size_t)((n - j - 1) * size));
    }
    if (!job->by_diagonals)
        call_svd(job, &job->columns, r, &job->columns, values, inner, vectors ? vh : r, &job->columns, scratch, job->info + i);
    else if (!lapack_bidiagonal_svd(job->kind, &triangle, 0, values, vectors ? inner : NULL, n, vh, n, room + products_room(job)))
        return false;
    if (job->info[i] || !vectors)
        return !job->info[i];
    for (npy_intp j = 0; j < n && job->by_products; j++) {
        memcpy(at(u, job, j, rows), at(inner, job, j, n), (size_t)(n * size));
        memset(at(u, job, j, rows) + n * size, 0, (size_t)((rows - n) * size));
    }
    if (job->by_products)
        return lapack_qr_times(job->kind, true, false, rows, n, n, x, rows, u, rows, room);
    LAPACK(ORGQR, job->kind)(&job->rows, &job->columns, &job->columns, x, &job->rows, taus, scratch, &job->room.work, &info);
    LAPACK(GEMM, job->kind)("N", "N", &job->rows, &job->columns, &job->columns, one, x, &job->rows, inner, &job->columns, ZERO, u, &job->rows);
    return true;
}

static void svd_one(const lapack_job *job, npy_intp i, char *scratch) {
    const bool vectors = job->options[0] != 'N', full = job->options[0] == 'A';
    const int left = full ? job->rows : job->least, right = full ? job->columns : job->least;
    char *x = rest_of(job, scratch), *values = job->values + i * job->least * real_size(job);
    char *u = vectors ? at(job->made, job, i, (npy_intp)job->rows * left) : x;
    char *vh = vectors ? at(job->more, job, i, (npy_intp)right * job->columns) : x;
    job->info[i] = 0;
    if (job->by_diagonals && !is_tall(job) &&
        lapack_bidiagonal_svd(job->kind, &job->x, i, values, vectors ? u : NULL, left, vh, right, x))
        return;
    lapack_copy(&job->x, i, job->size, x, job->rows);
    if (!all_below(job, x, INFINITY)) { /* LAPACK says so of NaN, and never ends with infinities */
        job->info[i] = IS_NAN;
        return;
    }
    const double large = job->kind & 1 ? 1e280 : 1e28; /* LAPACK scales matrices of such numbers, and of the smallest */
    if (is_tall(job) && all_below(job, x, large) && !all_below(job, x, 1 / large)) {
        if (svd_by_triangle(job, i, x, values, u, vh, scratch))
            return;
        lapack_copy(&job->x, i, job->size, x, job->rows);
    }
    call_svd(job, &job->rows, x, &job->rows, values, u, vh, &right, scratch, job->info + i);
}

/* Those that have no answer there, or none that is exact enough, go through LAPACK. */
static unsigned svd_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count);
    const bool vectors = job->options[0] != 'N';
    memset(job->info + i, 0, (size_t)count * sizeof *job->info);
    return job->lanes->svd_together(&group, job->rows, job->columns, job->values + i * job->least * real_size(job),
                                    vectors ? at(job->made, job, i, (npy_intp)job->rows * job->least) : NULL,
                                    vectors ? at(job->more, job, i, (npy_intp)job->least * job->columns) : NULL);
}

static void ask_svd(lapack_job *job) {
    npy_cdouble answer, x;
    int info, ints;
    if (lapack_complex(job->kind))
        LAPACK(GESDD, job->kind)(job->options, &job->rows, &job->columns, &x, &job->rows, &x, &x, &job->rows, &x, &job->columns,
                                 &answer, &ASK, &x, &ints, &info);
    else
        LAPACK(GESDD, job->kind)(job->options, &job->rows, &job->columns, &x, &job->rows, &x, &x, &job->rows, &x, &job->columns,
                                 &answer, &ASK, &ints, &info);
    const int least = job->least, most = job->rows + job->columns - least;
    const int many = 5 * least + 7, more = 2 * most + 2 * least + 1; /* LAPACK's own numbers, times `least` */
    lapack_room_keep(job, &answer, !lapack_complex(job->kind) ? 1 : least * (many > more ? many : more) + 7 * least, 8 * least);
}

static PyObject *run_svd(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = svd_one, .routine = GESDD};
    bool full, vectors;
    if (nargs != 1 || !lapack_options(args, nargs, kwnames, options) || !lapack_bool(options[LAPACK_FULL], &full) ||
        !lapack_bool(options[LAPACK_VECTORS], &vectors) || !lapack_begin(&job, args[0]))
        return NULL;
    job.options[0] = !vectors ? 'N' : full && job.rows != job.columns ? 'A' : 'S';
    const npy_intp matrices = lapack_count(&job.x);
    if (job.options[0] != 'A')
        lapack_by_rotations(&job, svd_together, matrices);
    if (!lapack_room_known(&job, job.rows, job.columns, job.options[0], 0))
        ask_svd(&job);
    job.by_products = !job.lanes && is_tall(&job) && lapack_qr_pays(job.kind, job.rows, job.columns);
    job.by_diagonals = !job.lanes && lapack_bidiagonal_pays(job.kind, is_tall(&job) ? job.columns : job.rows, job.columns, vectors);
    job.calls_none = job.by_diagonals && !vectors && (job.by_products || !is_tall(&job));
    npy_intp rest = rounded_up(((npy_intp)job.rows + (is_tall(&job) ? 2 * job.columns + 1 : 0)) * job.columns * job.size, 16);
    rest += products_room(&job);
    if (job.by_diagonals && is_tall(&job))
        rest += lapack_bidiagonal_scratch(job.kind, job.columns, job.columns, vectors);
    else if (job.by_diagonals)
        rest = at_least(rest, lapack_bidiagonal_scratch(job.kind, job.rows, job.columns, vectors));
    set_scratch(&job, rest);
    PyArrayObject *made[4] = {lapack_new_vectors(&job.x, job.least, lapack_number(lapack_real(job.kind))),
                              lapack_new_vectors(&job.x, -1, NPY_INT32)};
    if (vectors) {
        made[2] = lapack_new_matrices(&job.x, job.rows, full ? job.rows : job.least, job.kind);
        made[3] = lapack_new_matrices(&job.x, full ? job.columns : job.least, job.columns, job.kind);
    }
    if (made[0] && made[1] && (!vectors || (made[2] && made[3]))) {
        job.values = PyArray_BYTES(made[0]);
        job.info = (int *)PyArray_DATA(made[1]);
        job.made = vectors ? PyArray_BYTES(made[2]) : NULL;
        job.more = vectors ? PyArray_BYTES(made[3]) : NULL;
    }
    const int count = vectors ? 4 : 2;
    const double work = 16.0 * job.rows * job.columns * job.least;
    return lapack_finish(&job, matrices, job.by_diagonals && work > MOST_WORK ? MOST_WORK : work, made, count, count);
}

/* Eigenvalues of any square matrix, as complex numbers: `number` is not 0 where vectors are wanted. */

enum { FAILED = -1 };

/* LAPACK's pairs of columns are the real and the imaginary part of a vector and its conjugate. */
#define PAIRED(name, type)                                                                                    \
    static void name(npy_intp n, const char *found, const char *packed, char *values, char *vectors) {        \
        const type *real = (const type *)found, *imaginary = real + n, *from = (const type *)packed;          \
        type(*value)[2] = (type(*)[2])values, (*vector)[2] = (type(*)[2])vectors;                             \
        for (npy_intp k = 0; k < n; k++) {                                                                    \
            value[k][0] = real[k];                                                                            \
            value[k][1] = imaginary[k];                                                                       \
        }                                                                                                     \
        for (npy_intp k = 0; vectors && k < n; k++) {                                                         \
            const bool pair = imaginary[k] > 0 && k + 1 < n;                                                  \
            for (npy_intp i = 0; i < n; i++) {                                                                \
                vector[k * n + i][0] = from[k * n + i];                                                       \
                vector[k * n + i][1] = pair ? from[(k + 1) * n + i] : 0;                                      \
                if (pair) {                                                                                   \
                    vector[(k + 1) * n + i][0] = from[k * n + i];                                             \
                    vector[(k + 1) * n + i][1] = -from[(k + 1) * n + i];                                      \
                }                                                                                             \
            }                                                                                                 \
            k += pair;                                                                                        \
        }                                                                                                     \
    }
PAIRED(paired_f32, float)
PAIRED(paired_f64, double)

static void call_eig(const lapack_job *job, char *x, char *values, char *vectors, char *work, const int *room, char *reals, int *info) {
    const char *wanted = job->number ? "V" : "N";
    const int n = job->rows;
    if (lapack_complex(job->kind))
        LAPACK(GEEV, job->kind)("N", wanted, &n, x, &n, values, vectors, &n, vectors, &n, work, room, reals, info);
    else
        LAPACK(GEEV, job->kind)("N", wanted, &n, x, &n, values, values + n * job->size, vectors, &n, vectors, &n, work, room, info);
}

static void eig_one(const lapack_job *job, npy_intp i, char *scratch) {
    const npy_intp n = job->rows, square = n * n * job->size;
    const bool direct = lapack_complex(job->kind), vectors = job->number != 0;
    const npy_intp made_size = direct ? job->size : 2 * job->size;
    char *x = rest_of(job, scratch), *found = x + rounded_up(square, 16), *packed = found + rounded_up(2 * n * job->size, 16);
    char *values = job->values + i * n * made_size, *made = vectors ? job->made + i * n * n * made_size : NULL;
    lapack_copy(&job->x, i, job->size, x, n);
    if (!all_below(job, x, INFINITY)) {
        const npy_intp count = 2 * n;
        for (npy_intp k = 0; k < count + (vectors ? count * n : 0); k++) {
            char *to = k < count ? values : made;
            if (job->kind & 1)
                ((double *)to)[k < count ? k : k - count] = NAN;
            else
                ((float *)to)[k < count ? k : k - count] = NAN;
        }
        job->info[i] = FAILED;
        return;
    }
    call_eig(job, x, direct ? values : found, direct ? (vectors ? made : x) : packed, scratch, &job->room.work,
             reals_of(job, scratch), job->info + i);
    if (!direct)
        (job->kind & 1 ? paired_f64 : paired_f32)(n, found, packed, values, made);
}

static PyObject *run_eig(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = eig_one, .routine = GEEV};
    bool vectors;
    if (nargs != 1 || !lapack_options(args, nargs, kwnames, options) || !lapack_bool(options[LAPACK_VECTORS], &vectors) ||
        !lapack_begin(&job, args[0]) || job.rows != job.columns)
        return NULL;
    job.number = vectors;
    if (!lapack_room_known(&job, job.rows, vectors, 0, 0)) {
        npy_cdouble answer, x;
        int info;
        call_eig(&job, (char *)&x, (char *)&x, (char *)&x, (char *)&answer, &ASK, (char *)&x, &info);
        lapack_room_keep(&job, &answer, 2 * job.rows, 0);
    }
    const npy_intp square = (npy_intp)job.rows * job.rows * job.size;
    set_scratch(&job, rounded_up(square, 16) + rounded_up(2 * job.rows * job.size, 16) + square);
    const lapack_kind kind = lapack_real(job.kind) + LAPACK_C64;
    PyArrayObject *made[3] = {lapack_new_vectors(&job.x, job.rows, lapack_number(kind)), lapack_new_vectors(&job.x, -1, NPY_INT32),
                              vectors ? lapack_new_matrices(&job.x, job.rows, job.rows, kind) : NULL};
    if (made[0] && made[1] && (!vectors || made[2])) {
        job.values = PyArray_BYTES(made[0]);
        job.info = (int *)PyArray_DATA(made[1]);
        job.made = vectors ? PyArray_BYTES(made[2]) : NULL;
    }
    const int count = vectors ? 3 : 2;
    return lapack_finish(&job, lapack_count(&job.x), 20.0 * job.rows * job.rows * job.rows, made, count, count);
}

const native_spec lapack_values_kernels[] = {
    {"svd", run_svd, NULL},
    {"eig", run_eig, NULL},
    {NULL, NULL, NULL},
};
