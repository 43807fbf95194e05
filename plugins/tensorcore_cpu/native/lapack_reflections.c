/* Householder's reflections: by products where they are faster (lapack_qr.c), else by LAPACK. */
#include "lapack.h"

#include <string.h>

static const int ASK = -1;
enum { FEW = 16 }; /* rows or columns to multiply by reflections, whose triangles would take longer than that */

static char *at(char *made, const lapack_job *job, npy_intp i, npy_intp elements) { return made + i * elements * job->size; }

/* A thread's scratch: what LAPACK works in, what products do, for `reflections` and up to `wide` columns, and the rest. */
static char *room_of(const lapack_job *job, char *scratch) { return scratch + rounded_up(job->room.work * job->size, 16); }

static npy_intp products_room(const lapack_job *job, npy_intp rows, npy_intp reflections, npy_intp wide) {
    return job->by_products ? rounded_up(lapack_qr_scratch(job->kind, rows, reflections, wide), 16) : 0;
}

static void set_scratch(lapack_job *job, npy_intp rows, npy_intp reflections, npy_intp wide, npy_intp rest) {
    job->by_products = job->shares_out = !job->lanes && lapack_qr_pays(job->kind, rows, reflections);
    job->scratch = rounded_up(job->room.work * job->size, 16) + products_room(job, rows, reflections, wide) + rest;
}

static void geqrf_one(const lapack_job *job, npy_intp i, char *scratch) {
    char *made = at(job->made, job, i, (npy_intp)job->rows * job->columns);
    char *taus = at(job->more, job, i, job->least);
    int info;
    if (job->by_products) {
        const npy_intp line = lapack_qr_line(job->kind, job->rows);
        char *const room = room_of(job, scratch);
        char *const a = line == job->rows ? made : room + products_room(job, job->rows, job->least, job->columns);
        lapack_copy(&job->x, i, job->size, a, line);
        if (lapack_qr_factor(job->kind, job->rows, job->columns, job->least, a, line, taus, room)) {
            for (npy_intp j = 0; j < job->columns && a != made; j++)
                memcpy(at(made, job, j, job->rows), at(a, job, j, line), (size_t)(job->rows * job->size));
            return;
        }
    }
    lapack_copy(&job->x, i, job->size, made, job->rows);
    LAPACK(GEQRF, job->kind)(&job->rows, &job->columns, made, &job->rows, taus, scratch, &job->room.work, &info);
}

/* Those whose squares are out of range go through LAPACK, which scales them. */
static unsigned geqrf_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count);
    return job->lanes->reflections_together(&group, job->rows, job->columns, at(job->made, job, i, (npy_intp)job->rows * job->columns),
                                            at(job->more, job, i, job->least));
}

static PyObject *run_geqrf(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    lapack_job job = {.one = geqrf_one, .routine = GEQRF};
    if (nargs != 1 || kwnames || !lapack_begin(&job, args[0]))
        return NULL;
    lapack_side_by_side(&job, geqrf_together, job.rows > job.columns ? job.rows : job.columns, lapack_count(&job.x));
    if (!lapack_room_known(&job, job.rows, job.columns, 0, 0)) {
        npy_cdouble answer, x;
        int info;
        LAPACK(GEQRF, job.kind)(&job.rows, &job.columns, &x, &job.rows, &x, &answer, &ASK, &info);
        lapack_room_keep(&job, &answer, 0, 0);
    }
    const npy_intp line = lapack_qr_line(lapack_real(job.kind), job.rows);
    set_scratch(&job, job.rows, job.least, job.columns, line > job.rows ? line * job.columns * job.size : 0);
    PyArrayObject *made[] = {lapack_new_matrices(&job.x, job.rows, job.columns, job.kind),
                             lapack_new_vectors(&job.x, job.least, lapack_number(job.kind))};
    if (made[0] && made[1]) {
        job.made = PyArray_BYTES(made[0]);
        job.more = PyArray_BYTES(made[1]);
    }
    return lapack_finish(&job, lapack_count(&job.x), 2.0 * job.rows * job.columns * job.least, made, 2, 2);
}

/* z are the reflections' factors, `wide` of them; side by side in the scratch. */
static char *factors_at(const lapack_job *job, npy_intp i, char *scratch) {
    lapack_copy(&job->z, i, job->size, scratch, job->wide);
    return scratch;
}

static void product_one(const lapack_job *job, npy_intp i, char *scratch) {
    char *made = at(job->made, job, i, (npy_intp)job->rows * job->columns), *room = room_of(job, scratch);
    char *taus = factors_at(job, i, room + products_room(job, job->rows, job->wide, job->columns));
    int info;
    if (job->by_products) {
        char *a = taus + rounded_up(job->wide * job->size, 16);
        lapack_copy(&job->x, i, job->size, a, job->rows);
        if (lapack_qr_triangles(job->kind, job->rows, job->wide, a, job->rows, taus, room) &&
            lapack_qr_product(job->kind, job->rows, job->wide, job->columns, a, job->rows, made, job->rows, room))
            return;
    }
    lapack_copy(&job->x, i, job->size, made, job->rows);
    LAPACK(ORGQR, job->kind)(&job->rows, &job->columns, &job->wide, made, &job->rows, taus, scratch, &job->room.work, &info);
}

static unsigned product_together(const lapack_job *job, npy_intp i, int count) {
    const lapack_group group = lapack_group_at(&job->x, i, count), factors = lapack_group_at(&job->z, i, count);
    job->lanes->product_together(&group, &factors, job->rows, job->columns, job->wide,
                                 at(job->made, job, i, (npy_intp)job->rows * job->columns));
    return 0;
}

/* The reflections' factors of a job: false where they are not for LAPACK. */
static bool read_factors(lapack_job *job, PyObject *factors, npy_intp *count) {
    if (lapack_read(factors, 1, &job->z) != job->kind || !lapack_join(&job->x, &job->z, count))
        return false;
    job->wide = (int)job->z.rows;
    return job->wide <= job->least;
}

static PyObject *run_householder_product(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                                         PyObject *kwnames) {
    lapack_job job = {.one = product_one, .routine = ORGQR};
    npy_intp count;
    if (nargs != 2 || kwnames || !lapack_begin(&job, args[0]) || job.rows < job.columns || !read_factors(&job, args[1], &count))
        return NULL;
    lapack_side_by_side(&job, product_together, job.rows, count);
    if (!lapack_room_known(&job, job.rows, job.columns, job.wide, 0)) {
        npy_cdouble answer, x;
        int info;
        LAPACK(ORGQR, job.kind)(&job.rows, &job.columns, &job.wide, &x, &job.rows, &x, &answer, &ASK, &info);
        lapack_room_keep(&job, &answer, 0, 0);
    }
    set_scratch(&job, job.rows, job.wide, job.columns, rounded_up(job.wide * job.size, 16) + (npy_intp)job.rows * job.columns * job.size);
    PyArrayObject *made = lapack_new_matrices(&job.x, job.rows, job.columns, job.kind);
    job.made = made ? PyArray_BYTES(made) : NULL;
    return lapack_finish(&job, count, 2.0 * job.rows * job.columns * job.wide, &made, 1, 1);
}

/* x are the reflections, y what they are multiplied with. */
static void ormqr_one(const lapack_job *job, npy_intp i, char *scratch) {
    const int rows = (int)job->y.rows, columns = (int)job->y.columns;
    const bool left = job->options[0] == 'L';
    const int others = left ? columns : rows;
    char *made = at(job->made, job, i, (npy_intp)rows * columns), *room = room_of(job, scratch);
    char *taus = factors_at(job, i, room + products_room(job, job->rows, job->wide, others));
    int info, line;
    lapack_copy(&job->y, i, job->size, made, rows);
    if (job->by_products) {
        char *a = taus + rounded_up(job->wide * job->size, 16);
        lapack_copy(&job->x, i, job->size, a, job->rows);
        if (lapack_qr_triangles(job->kind, job->rows, job->wide, a, job->rows, taus, room) &&
            lapack_qr_times(job->kind, left, job->options[1] != 'N', job->rows, job->wide, others, a, job->rows, made, rows, room))
            return;
        lapack_copy(&job->y, i, job->size, made, rows);
    }
    const char *vectors = lapack_columns(&job->x, i, job->size, taus + rounded_up(job->wide * job->size, 16), &line);
    LAPACK(ORMQR, job->kind)(job->options, job->options + 1, &rows, &columns, &job->wide, vectors, &line, taus, made, &rows,
                             scratch, &job->room.work, &info);
}

static PyObject *run_ormqr(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[LAPACK_OPTIONS];
    lapack_job job = {.one = ormqr_one, .routine = ORMQR};
    bool left, transpose;
    npy_intp count;
    if (nargs != 3 || !lapack_options(args, nargs, kwnames, options) || !lapack_bool(options[LAPACK_LEFT], &left) ||
        !lapack_bool(options[LAPACK_TRANSPOSE], &transpose) || !lapack_begin(&job, args[0]) || !read_factors(&job, args[1], &count) ||
        lapack_read(args[2], 2, &job.y) != job.kind || job.y.batch != job.x.batch ||
        job.rows != (left ? job.y.rows : job.y.columns) || !lapack_join(&job.x, &job.y, &count) || !lapack_join(&job.x, &job.z, &count))
        return NULL;
    const int rows = (int)job.y.rows, columns = (int)job.y.columns;
    job.options[0] = left ? 'L' : 'R';
    job.options[1] = !transpose ? 'N' : lapack_complex(job.kind) ? 'C' : 'T';
    if (!lapack_room_known(&job, rows, columns, job.wide, job.options[0] << 8 | job.options[1])) {
        npy_cdouble answer, x;
        int info;
        LAPACK(ORMQR, job.kind)(job.options, job.options + 1, &rows, &columns, &job.wide, &x, &job.rows, &x, &x, &rows, &answer,
                                &ASK, &info);
        lapack_room_keep(&job, &answer, 0, 0);
    }
    const int others = left ? columns : rows;
    set_scratch(&job, job.rows, others < FEW ? 0 : job.wide, others,
                rounded_up(job.wide * job.size, 16) + (npy_intp)job.rows * job.columns * job.size);
    PyArrayObject *made = lapack_new_matrices(&job.y, rows, columns, job.kind);
    job.made = made ? PyArray_BYTES(made) : NULL;
    return lapack_finish(&job, count, 4.0 * rows * columns * job.wide, &made, 1, 1);
}

const native_spec lapack_reflections_kernels[] = {
    {"geqrf", run_geqrf, NULL},
    {"householder_product", run_householder_product, NULL},
    {"ormqr", run_ormqr, NULL},
    {NULL, NULL, NULL},
};
