/* Reductions whose parts are integers: sums and extremes of integers and bools, extremes of half types, and counts of elements of
   any type that are not zero. */
#include "reduce_integers.h"

#include "cast.h"
#include "integers.h"
#include "rows.h"

#include <string.h>

DECLARE_LOOPS(integer_loops, integer_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

enum { DIM, KEEPDIM, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    AT_ONCE = 32, /* bytes of rows that are reduced several at once */
    LOOK = 1024, /* elements between looks at whether any, or all, is decided */
    FEW = 64, FEW_ADDED = 24, FEW_LONG = 8, /* elements of rows that are turned over: any, of sums and counts, and of those of int64 */
};

typedef enum { SUM, COUNT, ANY, ALL, PRODUCT, LARGEST, SMALLEST } what; /* products are of int64 */

#define PART int64_t
#define PART_TYPE TYPE_I64
#define FUNCTIONS integer_functions
#include "reduce_ways.h"

/* Whether any, or all, of a row are not zero. */
static bool decided(const work *job, const char *row, npy_intp count) {
    const bool all = job->kind == ALL;
    bool answer = all;
    for (npy_intp i = 0; i < count && answer == all; i += LOOK) {
        const npy_intp piece = count - i < LOOK ? count - i : LOOK;
        const npy_intp found = job->run->count(row + i * TYPE_SIZE[job->fold->type], piece);
        answer = all ? found == piece : found > 0;
    }
    return answer;
}

static void reduce_row(const work *job, const native_piece *at) {
    int64_t *into = job->parts + at->part;
    if (job->kind == SUM) {
        *into = job->run->sum(at->data, at->rows);
    } else if (job->kind == COUNT) {
        *into = job->run->count(at->data, at->rows);
    } else if (job->kind <= ALL) {
        *into = decided(job, at->data, at->rows);
    } else if (job->kind == PRODUCT) {
        *into = PICK(integer_loops)->product((const int64_t *)at->data, at->rows);
    } else if (job->places) {
        job->places[at->part] = at->first + job->run->place(at->data, at->rows, job->kind == LARGEST, into);
    } else {
        *into = job->run->extreme(at->data, at->rows, job->kind == LARGEST);
    }
}

/* Columns whose rows are `step` elements apart. */
static void reduce_strip(const work *job, const native_piece *at, npy_intp step) {
    int64_t *into = job->parts + at->part;
    if (job->kind <= ALL) {
        memset(into, 0, (size_t)at->width * sizeof *into);
        (job->kind == SUM ? job->run->sum_strip : job->run->count_strip)(at->data, at->rows, step, at->width, into);
        for (npy_intp j = 0; (job->kind == ANY || job->kind == ALL) && j < at->width; j++)
            into[j] = job->kind == ANY ? into[j] > 0 : into[j] == at->rows;
    } else if (job->kind == PRODUCT) {
        for (npy_intp row = 0; row < at->rows; row++)
            for (npy_intp j = 0; j < at->width; j++) {
                const int64_t x = ((const int64_t *)at->data)[row * step + j];
                into[j] = row ? into[j] * x : x;
            }
    } else if (job->places) {
        int64_t *places = job->places + at->part;
        job->run->place_strip(at->data, at->rows, step, at->width, job->kind == LARGEST, into, places);
        for (npy_intp j = 0; j < at->width; j++)
            places[j] += at->first;
    } else {
        job->run->extreme_strip(at->data, at->rows, step, at->width, job->kind == LARGEST, into);
    }
}

static bool goes_by_rows(const work *job) { return job->kind <= COUNT || job->kind >= LARGEST; }

static rows_loop rows_loop_of(const integer_functions *run, what kind) {
    return kind == SUM ? run->sums : kind == LARGEST ? run->largest_rows : kind == SMALLEST ? run->smallest_rows : NULL;
}

static void reduce_rows(const work *job, const char *data, npy_intp rows, int64_t *into) {
    const npy_intp count = job->fold->count, row = count * TYPE_SIZE[job->fold->type];
    const rows_loop loop = rows_loop_of(job->run, job->kind);
    if (loop) {
        loop(data, rows, count, into);
        return;
    }
    if (job->kind <= COUNT) {
        int64_t (*const run)(const void *, ptrdiff_t) = job->kind == SUM ? job->run->sum : job->run->count;
        for (npy_intp i = 0; i < rows; i++)
            into[i] = run(data + i * row, count);
        return;
    }
    for (npy_intp i = 0; i < rows; i++)
        into[i] = job->run->extreme(data + i * row, count, job->kind == LARGEST);
}

static void join_rows(const work *job, int64_t *made, int64_t *places, npy_intp width, npy_intp count, npy_intp step) {
    for (npy_intp row = 1; row < count; row++)
        for (npy_intp j = 0; j < width; j++) {
            const npy_intp k = row * step + j;
            const int64_t x = made[k], best = made[j];
            if (job->kind <= COUNT) {
                made[j] += x;
            } else if (job->kind == PRODUCT) {
                made[j] *= x;
            } else if ((job->kind == ANY || job->kind == LARGEST ? x > best : x < best) || (x == best && places && places[k] < places[j])) {
                made[j] = x;
                if (places)
                    places[j] = places[k];
            }
        }
}

static void write_results(const work *job, const int64_t *parts, npy_intp to, npy_intp count) {
    const bool half = native_is_half(job->type);
    char *made = job->made + to * TYPE_SIZE[job->type];
    const ptrdiff_t steps[2] = {sizeof *parts, TYPE_SIZE[job->type]};
    if ((const char *)parts == made)
        return;
    PICK(cast_loops)->cast[TYPE_I64][half ? TYPE_I16 : job->type]((char *const[]){(char *)parts, made}, steps, count);
    for (npy_intp i = 0; half && i < count; i++)
        ((int16_t *)made)[i] = native_key_bits(((const int16_t *)made)[i]);
}

/* The elements at some places along the reduced dim. */
static void copy_from(const native_fold *of, const int64_t *places, char *made) {
    const npy_intp size = TYPE_SIZE[of->type], row = of->row ? of->row : of->count * of->inner * size;
    for (npy_intp outer = 0; outer < of->outer; outer++)
        for (npy_intp j = 0; j < of->inner; j++, made += size)
            memcpy(made, PyArray_BYTES(of->array) + outer * row + (*places++ * of->inner + j) * size, (size_t)size);
}

static work work_of(const native_fold *of, what kind, native_type type, bool with_places) {
    work job = {.fold = of, .run = &PICK(integer_loops)->of[of->type], .kind = kind, .type = type, .divisor = 1};
    const bool at_once = !with_places && rows_loop_of(job.run, kind); /* all rows that are as long as a vector */
    const npy_intp few = at_once ? AT_ONCE / TYPE_SIZE[of->type] - 1 : kind > COUNT ? FEW : of->type == TYPE_I64 ? FEW_LONG : FEW_ADDED;
    job.cut = native_cut_fold(of, STRIP, few);
    if ((kind == ANY || kind == ALL) && of->inner == 1 && job.cut.pieces > 1) { /* a row is looked at until it is decided */
        job.cut.pieces = 1;
        job.cut.length = of->count;
        job.cut.units = of->front * of->outer;
    }
    return job;
}

static PyObject *reduced(const native_fold *of, what kind, native_type type) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, type);
    if (!made)
        return NULL;
    work job = work_of(of, kind, type, false);
    room space;
    job.made = PyArray_BYTES(made);
    if (!reduce(&job, &space))
        Py_CLEAR(made);
    return (PyObject *)made;
}

PyObject *native_integer_sum(const native_fold *of, native_type type) {
    return PICK(integer_loops)->of[of->type].sum ? reduced(of, SUM, type) : NULL;
}

PyObject *native_integer_product(const native_fold *of) {
    return of->type == TYPE_I64 ? reduced(of, PRODUCT, TYPE_I64) : NULL;
}

PyObject *native_integer_extreme(const native_fold *of, bool largest) {
    return PICK(integer_loops)->of[of->type].extreme ? reduced(of, largest ? LARGEST : SMALLEST, of->type) : NULL;
}

PyObject *native_integer_place(const native_fold *of, bool largest, bool with_values) {
    work job = work_of(of, largest ? LARGEST : SMALLEST, of->type, true);
    room space;
    if (!job.run->place)
        return NULL;
    const bool halves = native_is_half(of->type); /* whose keys make one number of both zeros */
    PyArrayObject *places = native_empty(of->ndim, of->shape, TYPE_I64);
    PyArrayObject *values = places && with_values ? native_empty(of->ndim, of->shape, of->type) : NULL;
    PyObject *made = NULL;
    if (places && (values || !with_values)) {
        job.made = values && !halves ? PyArray_BYTES(values) : NULL;
        job.places = PyArray_DATA(places);
        if (reduce(&job, &space)) {
            if (values && halves)
                copy_from(of, PyArray_DATA(places), PyArray_BYTES(values));
            made = values ? PyTuple_Pack(2, values, places) : Py_NewRef(places);
        }
    }
    Py_XDECREF(values);
    Py_XDECREF(places);
    return made;
}

/* count_nonzero, any and all. */
static PyObject *run_count(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const what kind = *(const what *)kernel->data;
    PyObject *options[OPTIONS] = {NULL}, *made = NULL;
    const bool pairs = nargs == 1 && native_complex_type(args[0]) != TYPE_NONE;
    const native_type type = pairs ? TYPE_BOOL : nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    native_fold of;
    if (type == TYPE_NONE || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    if (!pairs && native_fold_slices(&of, args[0], type, options[DIM], options[KEEPDIM]))
        return reduced(&of, kind, kind == COUNT ? TYPE_I64 : TYPE_BOOL);
    PyArrayObject *dense = pairs ? native_not_zero(args[0]) : native_dense(args[0]);
    if (dense && native_fold_around(&of, (PyObject *)dense, type, options[DIM], options[KEEPDIM]))
        made = reduced(&of, kind, kind == COUNT ? TYPE_I64 : TYPE_BOOL);
    Py_XDECREF(dense);
    return made;
}

int reduce_integers_init(void) {
    static const char *const words[OPTIONS] = {"dim", "keepdim"};
    return native_intern(names, words, OPTIONS);
}

const native_spec reduce_integers_kernels[] = {
    {"count_nonzero", run_count, &(const what){COUNT}},
    {"any", run_count, &(const what){ANY}},
    {"all", run_count, &(const what){ALL}},
    {NULL, NULL, NULL},
};
