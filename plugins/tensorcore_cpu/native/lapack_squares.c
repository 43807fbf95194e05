/* Least squares by LAPACK. */
#include "lapack.h"

#include <math.h>
#include <string.h>

enum { LONG = 64 }; /* elements of few rows that reflections of our own are faster for */

static char *at(char *made, const lapack_job *job, npy_intp i, npy_intp elements) { return made + i * elements * job->size; }

static npy_intp real_size(const lapack_job *job) { return job->kind & 1 ? 8 : 4; }

static double real_at(const lapack_job *job, const char *x) { return job->kind & 1 ? *(const double *)x : *(const float *)x; }
static bool is_zero(const lapack_job *job, const char *x) {
    return real_at(job, x) == 0 && (!lapack_complex(job->kind) || real_at(job, x + real_size(job)) == 0);
}
static double size_at(const lapack_job *job, const char *x) {
    return lapack_complex(job->kind) ? hypot(real_at(job, x), real_at(job, x + real_size(job))) : fabs(real_at(job, x));
}

/* Least squares: `made` are the right sides' memory, as many rows as the longer side has. */

static void call_least_squares(const lapack_job *job, char *a, char *b, const int *line, char *values, int *free_columns, int *rank,
                               char *work, const int *room, char *reals, int *ints, int *info) {
    const lapack_function call = LAPACK(job->routine, job->kind);
    const int *m = &job->rows, *n = &job->columns, *k = &job->wide;
    const float single = (float)job->number;
    const void *rcond = job->kind & 1 ? (const void *)&job->number : (const void *)&single;
    const bool two = lapack_complex(job->kind);
    if (job->routine == GELS)
        call("N", m, n, k, a, m, b, line, work, room, info);
    else if (job->routine == GELSY && two)
        call(m, n, k, a, m, b, line, free_columns, rcond, rank, work, room, reals, info);
    else if (job->routine == GELSY)
        call(m, n, k, a, m, b, line, free_columns, rcond, rank, work, room, info);
    else if (job->routine == GELSD && two)
        call(m, n, k, a, m, b, line, values, rcond, rank, work, room, reals, ints, info);
    else if (job->routine == GELSD)
        call(m, n, k, a, m, b, line, values, rcond, rank, work, room, ints, info);
    else if (two)
        call(m, n, k, a, m, b, line, values, rcond, rank, work, room, reals, info);
    else
        call(m, n, k, a, m, b, line, values, rcond, rank, work, room, info);
}

/* Whether all numbers of a matrix are of such a size, and some are no zeros, that nothing has to be scaled. */
static bool is_ordinary(const lapack_job *job, const char *x, npy_intp count) {
    int small = 1, odd = 0;
    count *= lapack_complex(job->kind) ? 2 : 1;
    if (job->kind & 1) {
        for (npy_intp k = 0; k < count; k++) {
            small &= fabs(((const double *)x)[k]) < 1e-280;
            odd |= !(fabs(((const double *)x)[k]) < 1e280);
        }
    } else {
        for (npy_intp k = 0; k < count; k++) {
            small &= fabsf(((const float *)x)[k]) < 1e-28f;
            odd |= !(fabsf(((const float *)x)[k]) < 1e28f);
        }
    }
    return !small && !odd;
}

/* `count` numbers times one. */
static void scale(const lapack_job *job, char *x, int count, const char *by) {
    const double real = real_at(job, by), imaginary = lapack_complex(job->kind) ? real_at(job, by + real_size(job)) : 0;
    if (job->kind == LAPACK_F32) {
        for (int k = 0; k < count; k++)
            ((float *)x)[k] *= (float)real;
        return;
    }
    if (job->kind == LAPACK_F64) {
        for (int k = 0; k < count; k++)
            ((double *)x)[k] *= real;
        return;
    }
    for (int k = 0; k < count; k++, x += job->size) {
        double parts[2] = {real_at(job, x), lapack_complex(job->kind) ? real_at(job, x + real_size(job)) : 0};
        const double made[2] = {parts[0] * real - parts[1] * imaginary, parts[0] * imaginary + parts[1] * real};
        for (int part = 0; part <= lapack_complex(job->kind); part++)
            if (job->kind & 1)
                ((double *)x)[part] = made[part];
            else
                ((float *)x)[part] = (float)made[part];
    }
}

/* Of R, in the columns of a, whether LAPACK's estimates of its largest and smallest singular value are less than 1 / rcond apart. */
static bool has_full_rank(const lapack_job *job, const char *a, char *scratch) {
    static const int LARGEST = 1, SMALLEST = 2;
    const lapack_function estimate = LAPACK(LAIC1, job->kind);
    const npy_intp size = job->size, line = job->rows;
    char *const ends[] = {scratch, scratch + job->columns * size}; /* the vectors that go with either value */
    double values[2] = {size_at(job, a), size_at(job, a)};
    for (int end = 0; end < 2; end++) {
        memset(ends[end], 0, (size_t)size);
        if (job->kind & 1)
            *(double *)ends[end] = 1;
        else
            *(float *)ends[end] = 1;
    }
    for (int j = 1; j < job->columns && values[0] > 0; j++) {
        const char *w = a + j * line * size, *corner = w + j * size;
        for (int end = 0; end < 2; end++) {
            double sine[2] = {0}, cosine[2] = {0}, next = 0;
            float single = (float)values[end], narrow = 0;
            if (job->kind & 1)
                estimate(end ? &SMALLEST : &LARGEST, &j, ends[end], values + end, w, corner, &next, sine, cosine);
            else
                estimate(end ? &SMALLEST : &LARGEST, &j, ends[end], &single, w, corner, &narrow, sine, cosine);
            values[end] = job->kind & 1 ? next : narrow;
            scale(job, ends[end], j, (const char *)sine);
            memcpy(ends[end] + j * size, cosine, (size_t)size);
        }
        if (values[0] * job->number > values[1])
            return false;
    }
    return values[0] > 0;
}

/* The length of a vector of real numbers, which is made to be 1. */
static double normalize(const lapack_job *job, char *x) {
    double sum = 0;
    for (npy_intp k = 0; k < job->least; k++)
        sum += real_at(job, x + k * job->size) * real_at(job, x + k * job->size);
    const double length = sqrt(sum), by = 1 / length;
    const float narrow = (float)by;
    scale(job, x, job->least, job->kind & 1 ? (const char *)&by : (const char *)&narrow);
    return length;
}

/* The same of an R whose columns are not ordered, as LAPACK orders them because its estimates follow the columns: here a vector of any
   signs goes through R and R', which lengthen none by more than the largest value, and another one through their inverses. The values
   are as good as found then, and MARGIN is for what is left to be wrong about. */
static bool has_surely_full_rank(const lapack_job *job, const char *a, npy_intp line, char *scratch) {
    enum { STEPS = 6, MARGIN = 3 };
    char *const ends[] = {scratch, scratch + job->least * job->size};
    double largest = 0, smallest = INFINITY;
    uint32_t signs = 1;
    for (int k = 0; k < job->least; k++, signs = signs * 1664525 + 1013904223)
        if (job->kind & 1)
            ((double *)ends[0])[k] = signs >> 31 ? 1 : -1;
        else
            ((float *)ends[0])[k] = signs >> 31 ? 1 : -1;
    normalize(job, ends[0]);
    memcpy(ends[1], ends[0], (size_t)(job->least * job->size));
    for (int step = 0; step < STEPS; step++) {
        const bool turned = step % 2;
        lapack_qr_by_r(job->kind, job->least, a, line, turned, ends[0]);
        lapack_loops_of(job->kind)->triangular_line(a, line, job->least, turned, !turned, false, ends[1]);
        const double lengths[] = {normalize(job, ends[0]), normalize(job, ends[1])};
        if (!(lengths[0] > 0 && lengths[1] > 0 && lengths[0] < INFINITY && lengths[1] < INFINITY))
            return false;
        largest = lengths[0] > largest ? lengths[0] : largest;
        smallest = 1 / lengths[1] < smallest ? 1 / lengths[1] : smallest;
    }
    return largest * job->number * MARGIN <= smallest;
}

/* Whether R has no zero on its diagonal and, where it is asked for, surely all of its rank. */
static bool is_solvable(const lapack_job *job, const char *a, npy_intp line, char *scratch) {
    for (npy_intp j = 0; j < job->least; j++)
        if (is_zero(job, a + j * (line + 1) * job->size))
            return false;
    return job->routine != GELSY || has_surely_full_rank(job, a, line, scratch);
}

/* gels, or gelsy where the rank is full, but for their looks at numbers one after the other, which take longer than few columns do:
   false where the matrix has not that rank. */
static bool by_triangle(const lapack_job *job, char *a, char *b, char *taus, int *order, char *reals, char *scratch, int *info) {
    static const double ONE[2] = {1, 0};
    static const float ONE_F32[2] = {1, 0};
    const int *m = &job->rows, *n = &job->columns, *k = &job->wide, *room = &job->room.work;
    const void *one = job->kind & 1 ? (const void *)ONE : (const void *)ONE_F32;
    if (job->routine == GELS)
        LAPACK(GEQRF, job->kind)(m, n, a, m, taus, scratch, room, info);
    else if (lapack_complex(job->kind))
        LAPACK(GEQP3, job->kind)(m, n, a, m, order, taus, scratch, room, reals, info);
    else
        LAPACK(GEQP3, job->kind)(m, n, a, m, order, taus, scratch, room, info);
    for (npy_intp j = 0; j < *n; j++)
        if (is_zero(job, a + j * (*m + 1) * job->size))
            return false;
    if (job->routine == GELSY && !has_full_rank(job, a, scratch))
        return false;
    LAPACK(ORMQR, job->kind)("L", lapack_complex(job->kind) ? "C" : "T", m, k, n, a, m, taus, b, m, scratch, room, info);
    LAPACK(TRSM, job->kind)("L", "U", "N", "N", n, k, one, a, m, b, m);
    for (npy_intp c = 0; c < *k && job->routine == GELSY; c++) {
        char *column = b + c * *m * job->size;
        memcpy(scratch, column, (size_t)(*n * job->size));
        for (npy_intp j = 0; j < *n; j++)
            memcpy(column + (order[j] - 1) * job->size, scratch + j * job->size, (size_t)job->size);
    }
    return true;
}

/* The same by products, where the rank is full as the columns stand: the right sides go through the reflections behind them. */
static bool by_products(const lapack_job *job, char *a, char *b, char *scratch) {
    const npy_intp rows = job->rows, columns = job->columns, size = job->size, line = lapack_qr_line(job->kind, rows);
    char *const right = a + line * columns * size, *const taus = right + line * job->wide * size, *const room = taus + columns * size;
    for (npy_intp j = columns - 1; j > 0 && line > rows; j--)
        memmove(a + j * line * size, a + j * rows * size, (size_t)(rows * size));
    for (npy_intp j = 0; j < job->wide; j++)
        memcpy(right + j * line * size, b + j * rows * size, (size_t)(rows * size));
    if (!lapack_qr_factor(job->kind, rows, columns + job->wide, columns, a, line, taus, room))
        return false;
    if (!is_solvable(job, a, line, scratch) || !lapack_qr_solve(job->kind, columns, job->wide, a, line, right, line, room))
        return false;
    for (npy_intp j = 0; j < job->wide; j++)
        memcpy(b + j * rows * size, right + j * line * size, (size_t)(rows * size));
    return true;
}

/* The shortest of the solutions, by the reflections of the matrix turned over: x = Q [y; 0] where R' y = b (Golub and Van Loan, 5.6.2). */
static bool by_turned_products(const lapack_job *job, npy_intp i, char *a, char *b, char *scratch) {
    const npy_intp rows = job->rows, columns = job->columns, size = job->size, line = lapack_qr_line(job->kind, columns);
    char *const taus = a + line * rows * size, *const room = taus + rounded_up(rows * size, 16);
    lapack_matrices turned = job->x;
    turned.rows = columns;
    turned.columns = rows;
    turned.row = job->x.column;
    turned.column = job->x.row;
    lapack_copy(&turned, i, size, a, line);
    for (npy_intp j = 0; j < rows; j++)
        if (!is_ordinary(job, a + j * line * size, columns))
            return false;
    if (!lapack_qr_factor(job->kind, columns, rows, rows, a, line, taus, room) || !is_solvable(job, a, line, scratch))
        return false;
    for (npy_intp j = 0; j < job->wide; j++)
        lapack_loops_of(job->kind)->triangular_line(a, line, job->rows, true, false, false, b + j * columns * size);
    return lapack_qr_times(job->kind, true, false, columns, rows, job->wide, a, line, b, columns, room);
}

static void least_squares_one(const lapack_job *job, npy_intp i, char *scratch) {
    const int line = job->rows > job->columns ? job->rows : job->columns;
    char *reals = scratch + rounded_up(job->room.work * job->size, 16), *ints = reals + rounded_up(job->room.reals * real_size(job), 16);
    char *free_columns = ints + rounded_up(job->room.ints * (npy_intp)sizeof(int), 16), *a = free_columns + rounded_up(job->columns * 4, 16);
    char *b = at(job->made, job, i, (npy_intp)line * job->wide), *values = job->values + i * job->least * real_size(job);
    int rank = 0;
    lapack_copy(&job->x, i, job->size, a, job->rows);
    lapack_copy(&job->y, i, job->size, b, line);
    for (npy_intp column = 0; column < job->wide; column++)
        memset(b + (column * line + job->rows) * job->size, 0, (size_t)((line - job->rows) * job->size));
    memset(values, 0, (size_t)(job->least * real_size(job)));
    memset(free_columns, 0, (size_t)job->columns * 4);
    if (job->routine <= GELSY && job->rows >= job->columns && is_ordinary(job, a, (npy_intp)job->rows * job->columns) &&
        is_ordinary(job, b, (npy_intp)job->rows * job->wide)) {
        char *taus = a + (npy_intp)job->rows * job->columns * job->size;
        if (job->by_products && by_products(job, a, b, scratch)) {
            job->info[i] = 0;
            job->ranks[i] = job->routine == GELSY ? job->columns : 0;
            return;
        }
        if (job->by_products)
            lapack_copy(&job->x, i, job->size, a, job->rows);
        if (by_triangle(job, a, b, taus, (int *)free_columns, reals, scratch, job->info + i)) {
            job->ranks[i] = job->routine == GELSY ? job->columns : 0;
            return;
        }
        lapack_copy(&job->x, i, job->size, a, job->rows);
        lapack_copy(&job->y, i, job->size, b, line);
        memset(free_columns, 0, (size_t)job->columns * 4);
    } else if (job->by_products && is_ordinary(job, b, (npy_intp)job->rows * job->wide)) {
        if (by_turned_products(job, i, a, b, scratch)) {
            job->info[i] = 0;
            job->ranks[i] = job->routine == GELSY ? job->rows : 0;
            return;
        }
        lapack_copy(&job->x, i, job->size, a, job->rows);
        lapack_copy(&job->y, i, job->size, b, line);
        for (npy_intp column = 0; column < job->wide; column++)
            memset(b + (column * line + job->rows) * job->size, 0, (size_t)((line - job->rows) * job->size));
    }
    call_least_squares(job, a, b, &line, values, (int *)free_columns, &rank, scratch, &job->room.work, reals, (int *)ints, job->info + i);
    job->ranks[i] = rank;
}

static PyObject *run_lstsq(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const DRIVERS[] = {"gels", "gelsy", "gelsd", "gelss"};
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = least_squares_one};
    if (nargs != 2 || !lapack_options(args, nargs, kwnames, options) || !options[LAPACK_DRIVER] || !options[LAPACK_RCOND] ||
        !PyUnicode_Check(options[LAPACK_DRIVER]) || !PyFloat_Check(options[LAPACK_RCOND]) || !lapack_begin(&job, args[0]) ||
        lapack_read(args[1], 2, &job.y) != job.kind || job.y.rows != job.rows || job.y.batch != job.x.batch ||
        memcmp(job.x.sizes, job.y.sizes, (size_t)job.x.batch * sizeof *job.x.sizes))
        return NULL;
    int driver = 0;
    while (driver < 4 && PyUnicode_CompareWithASCIIString(options[LAPACK_DRIVER], DRIVERS[driver]))
        driver++;
    if (driver == 4)
        return NULL;
    job.routine = GELS + driver;
    job.number = PyFloat_AS_DOUBLE(options[LAPACK_RCOND]);
    job.wide = (int)job.y.columns;
    const int line = job.rows > job.columns ? job.rows : job.columns;
    if (!lapack_room_known(&job, job.rows, job.columns, job.wide, 0)) {
        npy_cdouble answer, x, reals = {0};
        const int ask = -1;
        int info, ints = 0, free_column = 0, rank;
        call_least_squares(&job, (char *)&x, (char *)&x, &line, (char *)&x, &free_column, &rank, (char *)&answer, &ask, (char *)&reals,
                           &ints, &info);
        const double asked = driver == 2 && lapack_complex(job.kind) ? real_at(&job, (char *)&reals) : 0;
        lapack_room_keep(&job, &answer, asked > 5.0 * line ? (int)asked : 5 * line, ints);
    }
    job.scratch = rounded_up(job.room.work * job.size, 16) + rounded_up(job.room.reals * real_size(&job), 16) +
                  rounded_up(job.room.ints * (npy_intp)sizeof(int), 16) + rounded_up(job.columns * 4, 16) +
                  ((npy_intp)job.rows + 1) * job.columns * job.size;
    const bool long_rows = job.rows < job.columns && !lapack_complex(job.kind) && job.columns >= LONG;
    job.by_products = job.routine <= GELSY && (long_rows || lapack_qr_pays(job.kind, job.rows, job.columns));
    if (job.by_products) {
        const npy_intp wide = job.rows >= job.columns ? job.columns + job.wide : job.wide; /* that are copied, or changed in their place */
        const npy_intp copied = job.rows >= job.columns ? wide : job.rows;
        const npy_intp more = lapack_qr_line(job.kind, line) * copied - (npy_intp)job.rows * job.columns;
        job.scratch += more * job.size + lapack_qr_scratch(job.kind, line, job.least, wide);
    }
    PyArrayObject *made[] = {lapack_new_matrices(&job.x, line, job.wide, job.kind), lapack_new_vectors(&job.x, -1, NPY_INT64),
                             lapack_new_vectors(&job.x, job.least, lapack_number(lapack_real(job.kind))),
                             lapack_new_vectors(&job.x, -1, NPY_INT32)};
    if (made[0] && made[1] && made[2] && made[3]) {
        job.made = PyArray_BYTES(made[0]);
        job.ranks = (int64_t *)PyArray_DATA(made[1]);
        job.values = PyArray_BYTES(made[2]);
        job.info = (int *)PyArray_DATA(made[3]);
    }
    return lapack_finish(&job, lapack_count(&job.x), 8.0 * job.rows * job.columns * job.least, made, 4, 4);
}

const native_spec lapack_squares_kernels[] = {
    {"lstsq", run_lstsq, NULL},
    {NULL, NULL, NULL},
};
