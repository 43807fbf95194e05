/* What is made of LAPACK's factors at once: Q and R, P, L and U, determinants, inverses. */
#include "lapack.h"

#include <math.h>
#include <string.h>

static char *at(char *made, const lapack_job *job, npy_intp i, npy_intp elements) { return made + i * elements * job->size; }

static npy_intp real_size(const lapack_job *job) { return job->kind & 1 ? 8 : 4; }

/* A real number, and the parts of one that may be complex. */
static double real_at(const lapack_job *job, const char *x) { return job->kind & 1 ? *(const double *)x : *(const float *)x; }
static double imaginary_at(const lapack_job *job, const char *x) {
    return lapack_complex(job->kind) ? real_at(job, x + real_size(job)) : 0;
}
static void put_real(const lapack_job *job, char *to, double number) {
    if (job->kind & 1)
        *(double *)to = number;
    else
        *(float *)to = (float)number;
}
static void put(const lapack_job *job, char *to, double real, double imaginary) {
    put_real(job, to, real);
    if (lapack_complex(job->kind))
        put_real(job, to + real_size(job), imaginary);
}

/* Rows of the triangle on and above (`upper`), or below, the diagonal of a matrix; zeros elsewhere. */
static void triangle(const lapack_job *job, const char *from, npy_intp row, npy_intp column, char *to, npy_intp rows,
                     npy_intp columns, bool upper) {
    const npy_intp size = job->size;
    const lapack_matrices turned = {.data = (char *)from, .rows = columns, .columns = rows, .row = column, .column = row};
    lapack_copy(&turned, 0, size, to, columns);
    for (npy_intp i = 0; i < rows; i++, to += columns * size) {
        const npy_intp first = upper ? 0 : i, end = upper && i < columns ? i : columns;
        if (first < end)
            memset(to + first * size, 0, (size_t)((end - first) * size));
    }
}

/* Q and R: `wide` columns of Q and rows of R, `made` and `more`; R alone where there is no `made`. */

static npy_intp qr_line(const lapack_job *job) { return job->by_products ? lapack_qr_line(job->kind, job->rows) : job->rows; }

/* What LAPACK or products work in. */
static npy_intp qr_room(const lapack_job *job) {
    const npy_intp asked = job->room.work * job->size;
    const npy_intp wide = job->wide > job->columns ? job->wide : job->columns;
    const npy_intp ours = job->by_products ? lapack_qr_scratch(job->kind, job->rows, job->least, wide) : 0;
    return (asked > ours ? asked + 63 : ours + 63) / 64 * 64;
}

static bool qr_by_products(const lapack_job *job, npy_intp i, char *a, char *taus, char *scratch) {
    const npy_intp rows = job->rows, columns = job->columns, line = qr_line(job);
    lapack_copy(&job->x, i, job->size, a, line);
    if (!lapack_qr_factor(job->kind, rows, columns, job->least, a, line, taus, scratch))
        return false;
    triangle(job, a, job->size, line * job->size, at(job->more, job, i, job->wide * columns), job->wide, columns, true);
    char *q = job->made ? at(job->made, job, i, rows * job->wide) : NULL;
    return !q || lapack_qr_product(job->kind, rows, job->least, job->wide, a, line, q, rows, scratch);
}

static void qr_one(const lapack_job *job, npy_intp i, char *scratch) {
    const npy_intp rows = job->rows, columns = job->columns;
    char *a = scratch + qr_room(job);
    char *taus = a + rounded_up(qr_line(job) * columns * job->size, 16);
    int info;
    if (job->by_products && qr_by_products(job, i, a, taus, scratch))
        return;
    lapack_copy(&job->x, i, job->size, a, rows);
    LAPACK(GEQRF, job->kind)(&job->rows, &job->columns, a, &job->rows, taus, scratch, &job->room.work, &info);
    triangle(job, a, job->size, rows * job->size, at(job->more, job, i, job->wide * columns), job->wide, columns, true);
    if (!job->made)
        return;
    char *q = at(job->made, job, i, rows * job->wide);
    memcpy(q, a, (size_t)(rows * job->least * job->size));
    memset(at(q, job, 1, rows * job->least), 0, (size_t)(rows * (job->wide - job->least) * job->size));
    LAPACK(ORGQR, job->kind)(&job->rows, &job->wide, &job->least, q, &job->rows, taus, scratch, &job->room.work, &info);
}

/* Those whose squares are out of range go through LAPACK, which scales them. */
static unsigned qr_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count);
    return job->lanes->qr_together(&group, job->rows, job->columns, job->wide,
                                   job->made ? at(job->made, job, i, (npy_intp)job->rows * job->wide) : NULL,
                                   at(job->more, job, i, (npy_intp)job->wide * job->columns));
}

static PyObject *run_qr(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = qr_one, .routine = GEQRF};
    const bool alone = kernel->data != NULL;
    bool complete = false;
    if (nargs != 1 || (alone ? kwnames != NULL : !lapack_options(args, nargs, kwnames, options) || !lapack_bool(options[LAPACK_COMPLETE], &complete)) ||
        !lapack_begin(&job, args[0]))
        return NULL;
    job.wide = complete ? job.rows : job.least;
    const npy_intp count = lapack_count(&job.x);
    lapack_side_by_side(&job, qr_together, job.rows > job.columns ? job.rows : job.columns, count);
    if (!lapack_room_known(&job, job.rows, job.columns, job.wide, 1)) {
        npy_cdouble first, second, x;
        int ask = -1, info;
        LAPACK(GEQRF, job.kind)(&job.rows, &job.columns, &x, &job.rows, &x, &first, &ask, &info);
        LAPACK(ORGQR, job.kind)(&job.rows, &job.wide, &job.least, &x, &job.rows, &x, &second, &ask, &info);
        const bool more = real_at(&job, (char *)&first) < real_at(&job, (char *)&second);
        lapack_room_keep(&job, more ? &second : &first, 0, 0);
    }
    job.by_products = job.shares_out = !job.lanes && lapack_qr_pays(job.kind, job.rows, job.columns);
    job.scratch = qr_room(&job) + rounded_up(qr_line(&job) * job.columns * job.size, 16) + job.least * job.size;
    PyArrayObject *made[] = {alone ? NULL : lapack_new_matrices(&job.x, job.rows, job.wide, job.kind),
                             lapack_new_rows(&job.x, job.wide, job.columns, job.kind)};
    if ((alone || made[0]) && made[1]) {
        job.made = alone ? NULL : PyArray_BYTES(made[0]);
        job.more = PyArray_BYTES(made[1]);
    }
    return lapack_finish(&job, count, (alone ? 2.0 : 4.0) * job.rows * job.columns * job.least, made + alone, 2 - alone, 2 - alone);
}

/* Factors and row swaps: x and z. */

static bool begin_factors(lapack_job *job, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, npy_intp *count) {
    if (nargs != 2 || kwnames || !lapack_begin(job, args[0]) || !lapack_read_pivots(args[1], &job->z) || job->z.rows != job->least ||
        job->x.batch != job->z.batch)
        return false;
    *count = lapack_count(&job->x);
    return !memcmp(job->x.sizes, job->z.sizes, (size_t)job->x.batch * sizeof *job->x.sizes);
}

static int swapped_with(const lapack_job *job, const char *swaps, npy_intp k) { return *(const int *)(swaps + k * job->z.row) - 1; }

/* The permutation of the rows that are swapped with others one after the other. */
static void permutation_one(const lapack_job *job, npy_intp i, int *order) {
    const npy_intp rows = job->rows, size = job->size;
    const char *swaps = lapack_at(&job->z, i);
    char *p = at(job->values, job, i, rows * rows);
    for (int k = 0; k < rows; k++)
        order[k] = k;
    for (int k = 0; k < job->least; k++) {
        const int there = swapped_with(job, swaps, k), one = order[k];
        order[k] = order[there];
        order[there] = one;
    }
    memset(p, 0, (size_t)(rows * rows * size));
    for (npy_intp k = 0; k < rows; k++)
        put(job, p + (order[k] * rows + k) * size, 1, 0);
}

static void unpack_one(const lapack_job *job, npy_intp i, char *scratch) {
    const npy_intp rows = job->rows, size = job->size;
    const char *lu = lapack_at(&job->x, i);
    char *lower = at(job->made, job, i, rows * job->least);
    permutation_one(job, i, (int *)scratch);
    triangle(job, lu, job->x.row, job->x.column, lower, rows, job->least, false);
    for (npy_intp k = 0; k < job->least; k++)
        put(job, lower + k * (job->least + 1) * size, 1, 0);
    triangle(job, lu, job->x.row, job->x.column, at(job->more, job, i, (npy_intp)job->least * job->columns), job->least, job->columns,
             true);
}

static PyObject *run_unpack_lu(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    lapack_job job = {.one = unpack_one, .calls_none = true};
    npy_intp count;
    if (nargs != 2 || args[1] == Py_None || !begin_factors(&job, args, nargs, kwnames, &count))
        return NULL;
    for (npy_intp i = 0; i < count; i++) /* what is wrong is NumPy's to say */
        for (npy_intp k = 0; k < job.least; k++) {
            const int there = swapped_with(&job, lapack_at(&job.z, i), k);
            if (there < 0 || there >= job.rows)
                return NULL;
        }
    job.scratch = job.rows * (npy_intp)sizeof(int);
    PyArrayObject *made[] = {lapack_new_rows(&job.x, job.rows, job.rows, job.kind), lapack_new_rows(&job.x, job.rows, job.least, job.kind),
                             lapack_new_rows(&job.x, job.least, job.columns, job.kind)};
    if (made[0] && made[1] && made[2]) {
        job.values = PyArray_BYTES(made[0]);
        job.made = PyArray_BYTES(made[1]);
        job.more = PyArray_BYTES(made[2]);
    }
    return lapack_finish(&job, count, 4.0 * job.rows * job.rows, made, 3, 3);
}

/* Determinants: products in double precision, rounded once. */

static void determinant_one(const lapack_job *job, npy_intp i, char *scratch) {
    const char *lu = lapack_at(&job->x, i), *swaps = lapack_at(&job->z, i);
    double real = 1, imaginary = 0;
    if (!lapack_complex(job->kind)) {
        for (npy_intp k = 0; k < job->rows; k++) {
            const double x = real_at(job, lu + k * (job->x.row + job->x.column));
            real *= swapped_with(job, swaps, k) == k ? x : -x;
        }
        put_real(job, at(job->made, job, i, 1), real);
        return;
    }
    for (npy_intp k = 0; k < job->rows; k++) {
        const char *x = lu + k * (job->x.row + job->x.column);
        const double sign = swapped_with(job, swaps, k) == k ? 1 : -1, a = sign * real_at(job, x), b = sign * imaginary_at(job, x);
        const double was = real;
        real = was * a - imaginary * b;
        imaginary = was * b + imaginary * a;
    }
    put(job, at(job->made, job, i, 1), real, imaginary);
}

enum { LENGTHS = 6 }; /* of single precision, whose product is a double's without loss */

static void log_determinant_one(const lapack_job *job, npy_intp i, char *scratch) {
    const char *lu = lapack_at(&job->x, i), *swaps = lapack_at(&job->z, i);
    double real = 1, imaginary = 0, sum = 0, product = 1;
    for (npy_intp k = 0; k < job->rows; k++) {
        const char *x = lu + k * (job->x.row + job->x.column);
        double a = real_at(job, x), b = imaginary_at(job, x);
        const double length = lapack_complex(job->kind) ? hypot(a, b) : fabs(a), was = real;
        const double turn = swapped_with(job, swaps, k) == k ? 1 : -1;
        if (lapack_complex(job->kind)) {
            a = length == 0 ? 0 : a * (turn / length);
            b = length == 0 ? 0 : b * (turn / length);
        } else if (!isnan(a)) {
            a = length == 0 ? 0 : copysign(turn, a * turn);
        }
        real = lapack_complex(job->kind) ? was * a - imaginary * b : was * a;
        imaginary = was * b + imaginary * a;
        product *= length;
        if (job->kind & 1 || k % LENGTHS == LENGTHS - 1 || k == job->rows - 1) {
            sum += log(product);
            product = 1;
        }
    }
    put(job, at(job->made, job, i, 1), real, imaginary);
    put_real(job, job->values + i * real_size(job), sum);
}

static PyObject *run_determinant(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool logarithm = kernel->data != NULL;
    lapack_job job = {.one = logarithm ? log_determinant_one : determinant_one, .calls_none = true};
    npy_intp count;
    if (!begin_factors(&job, args, nargs, kwnames, &count) || job.rows != job.columns)
        return NULL;
    PyArrayObject *made[] = {lapack_new_vectors(&job.x, -1, lapack_number(job.kind)),
                             logarithm ? lapack_new_vectors(&job.x, -1, lapack_number(lapack_real(job.kind))) : NULL};
    if (made[0] && (!logarithm || made[1])) {
        job.made = PyArray_BYTES(made[0]);
        job.values = logarithm ? PyArray_BYTES(made[1]) : NULL;
    }
    return lapack_finish(&job, count, 10.0 * job.rows, made, logarithm ? 2 : 1, logarithm ? 2 : 1);
}

/* The inverse of a matrix from its triangular factor; info is where the first zero is. */

/* Answers whether LAPACK takes the factor, whose diagonal has no zeros and is real there; for others two systems with the identity are solved. */
static bool find_zero(const lapack_job *job, npy_intp i) {
    const char *factor = lapack_at(&job->x, i);
    bool real = true;
    job->info[i] = 0;
    for (npy_intp k = job->rows; k-- > 0;) {
        const char *x = factor + k * (job->x.row + job->x.column);
        if (real_at(job, x) == 0 && imaginary_at(job, x) == 0)
            job->info[i] = (int)k + 1;
        real = real && imaginary_at(job, x) == 0;
    }
    return real && !job->info[i];
}

static void put_unit(const lapack_job *job, char *made) {
    const npy_intp n = job->rows;
    memset(made, 0, (size_t)(n * n * job->size));
    for (npy_intp k = 0; k < n; k++)
        put(job, made + k * (n + 1) * job->size, 1, 0);
}

/* The other triangle of a Hermitian matrix. */
static void mirror(const lapack_job *job, char *made, bool upper, char *turned) {
    const npy_intp n = job->rows, size = job->size;
    lapack_copy(&(lapack_matrices){.data = made, .rows = n, .columns = n, .row = n * size, .column = size}, 0, size, turned, n);
    for (npy_intp j = 0; j < n; j++) {
        const npy_intp first = upper ? j + 1 : 0, end = upper ? n : j;
        for (npy_intp k = first; k < end && lapack_complex(job->kind); k++)
            put(job, turned + (j * n + k) * size, real_at(job, turned + (j * n + k) * size), -imaginary_at(job, turned + (j * n + k) * size));
        memcpy(made + (j * n + first) * size, turned + (j * n + first) * size, (size_t)((end - first) * size));
    }
}

static void inverse_one(const lapack_job *job, npy_intp i, char *scratch) {
    static const double ONE[2] = {1, 0};
    static const float ONE_F32[2] = {1, 0};
    const npy_intp n = job->rows;
    int line, info;
    const void *one = job->kind & 1 ? (const void *)ONE : (const void *)ONE_F32;
    const char *adjoint = lapack_complex(job->kind) ? "C" : "T";
    char *made = at(job->made, job, i, n * n);
    const bool upper = job->options[0] == 'U';
    if (find_zero(job, i) && !job->small) {
        lapack_copy(&job->x, i, job->size, made, n);
        LAPACK(POTRI, job->kind)(job->options, &job->rows, made, &job->rows, &info);
        mirror(job, made, upper, scratch);
        return;
    }
    const char *factor = lapack_columns(&job->x, i, job->size, scratch, &line);
    put_unit(job, made);
    if (job->small) { /* by the loops that solve_triangular has, of the factor and of the factor turned over */
        char *turned = scratch + n * n * job->size;
        for (npy_intp j = 0; j < n; j++)
            for (npy_intp k = 0; k < n; k++)
                memcpy(turned + (j * n + k) * job->size, factor + (k * line + j) * job->size, (size_t)job->size);
        job->small->triangular(upper ? turned : factor, upper ? (int)n : line, (int)n, false, false, false, made, (int)n);
        job->small->triangular(upper ? factor : turned, upper ? line : (int)n, (int)n, true, false, false, made, (int)n);
        return;
    }
    for (int half = 0; half < 2; half++)
        LAPACK(TRSM, job->kind)("L", job->options, upper == !half ? adjoint : "N", "N", &job->rows, &job->rows, one, factor, &line, made,
                                &job->rows);
}

static unsigned inverse_together(const lapack_job *job, npy_intp i, int count) {
    double unit[LAPACK_TOGETHER * LAPACK_TOGETHER];
    const npy_intp n = job->rows;
    const bool upper = job->options[0] == 'U';
    char *made = at(job->made, job, i, n * n);
    const lapack_group group = lapack_group_at(&job->x, i, count);
    lapack_group right = {.row = job->size, .column = n * job->size, .count = count};
    put_unit(job, (char *)unit);
    for (int m = 0; m < LAPACK_LANES; m++)
        right.at[m] = (char *)unit;
    job->lanes->solve_together(&group, (int)n, upper, upper, false, NULL, &right, (int)n, made);
    for (int m = 0; m < LAPACK_LANES; m++)
        right.at[m] = at(made, job, m < count ? m : count - 1, n * n);
    job->lanes->solve_together(&group, (int)n, upper, !upper, false, NULL, &right, (int)n, made);
    for (int m = 0; m < count; m++)
        find_zero(job, i + m);
    return 0;
}

static PyObject *run_cholesky_inverse(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = inverse_one};
    bool upper;
    if (nargs != 1 || !lapack_options(args, nargs, kwnames, options) || !lapack_bool(options[LAPACK_UPPER], &upper) ||
        !lapack_begin(&job, args[0]) || job.rows != job.columns)
        return NULL;
    job.options[0] = upper ? 'U' : 'L';
    job.small = lapack_small_of(&job, job.rows);
    lapack_side_by_side(&job, inverse_together, job.rows, lapack_count(&job.x));
    job.scratch = 2 * (npy_intp)job.rows * job.rows * job.size;
    PyArrayObject *made[] = {lapack_new_matrices(&job.x, job.rows, job.rows, job.kind), lapack_new_vectors(&job.x, -1, NPY_INT32)};
    if (made[0] && made[1]) {
        job.made = PyArray_BYTES(made[0]);
        job.info = (int *)PyArray_DATA(made[1]);
    }
    return lapack_finish(&job, lapack_count(&job.x), 2.0 * job.rows * job.rows * job.rows, made, 2, 2);
}

const native_spec lapack_factors_kernels[] = {
    {"qr", run_qr, NULL},
    {"qr_triangle", run_qr, "alone"},
    {"unpack_lu", run_unpack_lu, NULL},
    {"determinant", run_determinant, NULL},
    {"log_determinant", run_determinant, "log"},
    {"cholesky_inverse", run_cholesky_inverse, NULL},
    {NULL, NULL, NULL},
};
