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
    LOOK = 1024, /* elements between looks at whether any, or all, is decided */
    ROOM = 256,
    FEW = 64, /* elements of rows that are turned over, but for sums and counts */
    NARROW = 16, WIDE = 8, MANY = 64, /* columns of which WIDE rows are one, where they are MANY */
};

typedef enum { SUM, COUNT, ANY, ALL, PRODUCT, LARGEST, SMALLEST } what; /* products are of int64 */

typedef struct {
    const native_fold *of;
    const integer_functions *run;
    what kind;
    native_cut cut;
    int64_t *parts;  /* [front, outer, pieces, inner] */
    int64_t *places; /* the same, where they are asked for */
    int64_t *made; /* the result's own elements where they are int64, else NULL: one part of each is the result */
    int64_t here[ROOM], *heap; /* where both are otherwise: those of a short call would wait for the heap */
} work;

/* Whether any, or all, of a row are not zero. */
static bool decided(const work *job, const char *row, npy_intp count) {
    const bool all = job->kind == ALL;
    bool answer = all;
    for (npy_intp i = 0; i < count && answer == all; i += LOOK) {
        const npy_intp piece = count - i < LOOK ? count - i : LOOK;
        const npy_intp found = job->run->count(row + i * TYPE_SIZE[job->of->type], piece);
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
    int64_t *into = job->parts + at->part, *places = job->places + at->part;
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
        job->run->place_strip(at->data, at->rows, step, at->width, job->kind == LARGEST, into, places);
        for (npy_intp j = 0; j < at->width; j++)
            places[j] += at->first;
    } else {
        job->run->extreme_strip(at->data, at->rows, step, at->width, job->kind == LARGEST, into);
    }
}

/* Columns that are fewer than a vector has elements: WIDE rows are one of as many times the columns, and what is left of the rows is
   another; their parts come together behind them. */
static void reduce_narrow(const work *job, const native_piece *at) {
    const native_fold *of = job->of;
    const npy_intp inner = of->inner, wide = inner * WIDE, whole = at->rows / WIDE, rest = at->rows % WIDE;
    int64_t parts[(WIDE + 1) * NARROW], places[(WIDE + 1) * NARROW];
    work part = {.of = of, .run = job->run, .kind = job->kind, .parts = parts, .places = job->places ? places : NULL};
    reduce_strip(&part, &(native_piece){.data = at->data, .rows = whole, .width = wide}, wide);
    if (rest)
        reduce_strip(&part, &(native_piece){.data = at->data + whole * wide * TYPE_SIZE[of->type], .rows = rest, .width = inner, .part = wide}, inner);
    for (npy_intp j = 0; j < inner; j++) {
        for (npy_intp k = 0; job->places && k < WIDE + (rest > 0); k++) {
            int64_t *place = places + k * inner + j;
            *place = k < WIDE ? *place * WIDE + k : *place + whole * WIDE;
        }
        int64_t made = parts[j], place = job->places ? places[j] : 0;
        for (npy_intp k = 1; k < WIDE + (rest > 0); k++) {
            const int64_t x = parts[k * inner + j], here = job->places ? places[k * inner + j] : 0;
            if (job->kind <= COUNT) {
                made += x;
            } else if (job->kind == PRODUCT) {
                made *= x;
            } else if (job->kind == ANY || job->kind == LARGEST ? x > made : x < made) {
                made = x;
                place = here;
            } else if (x == made && here < place) {
                place = here;
            }
        }
        job->parts[at->part + j] = made;
        if (job->places)
            job->places[at->part + j] = place + at->first;
    }
}

static void reduce_units(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    const native_fold *of = job->of;
    for (npy_intp i = begin; i < end; i++) {
        const native_piece at = native_piece_of(of, &job->cut, INTEGER_STRIP, i);
        if (of->inner == 1)
            reduce_row(job, &at);
        else if (of->inner <= NARROW && at.rows >= MANY)
            reduce_narrow(job, &at);
        else
            reduce_strip(job, &at, of->inner);
    }
}

/* Short rows, turned over. */
static void reduce_turned(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    _Alignas(64) char tile[TURNED_BYTES];
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp first = i * job->cut.turned, rows = native_turned_rows(job->of, &job->cut, first, tile);
        reduce_strip(job, &(native_piece){.data = tile, .rows = job->of->count, .width = rows, .part = first}, rows);
    }
}

/* Rows of one piece each, of which sums, counts and extremes are made with no more than what is asked for. */
static void reduce_whole_rows(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    const native_fold *of = job->of;
    const npy_intp row = of->count * TYPE_SIZE[of->type];
    const char *data = PyArray_BYTES(of->array);
    if (job->kind <= COUNT) {
        int64_t (*const run)(const void *, ptrdiff_t) = job->kind == SUM ? job->run->sum : job->run->count;
        for (npy_intp i = begin; i < end; i++)
            job->parts[i] = run(data + i * row, of->count);
        return;
    }
    for (npy_intp i = begin; i < end; i++)
        job->parts[i] = job->run->extreme(data + i * row, of->count, job->kind == LARGEST);
}

/* Brings `count` rows of parts, `step` apart, together in the first one, which is `width` long. */
static void join_rows(const work *job, npy_intp first, npy_intp width, npy_intp count, npy_intp step) {
    for (npy_intp row = 1; row < count; row++)
        for (npy_intp j = first; j < first + width; j++) {
            int64_t *made = job->parts + j, x = made[row * step];
            if (job->kind <= COUNT) {
                *made += x;
            } else if (job->kind == PRODUCT) {
                *made *= x;
            } else if (job->kind == ANY || job->kind == LARGEST ? x > *made : x < *made) {
                *made = x;
                if (job->places)
                    job->places[j] = job->places[j + row * step];
            }
        }
}

static bool reduce(work *job, bool with_places) {
    const native_fold *of = job->of;
    job->cut = native_cut_fold(of, INTEGER_STRIP, job->kind <= COUNT ? native_few_added(of->type) : FEW);
    if ((job->kind == ANY || job->kind == ALL) && of->inner == 1 && job->cut.pieces > 1) { /* a row is looked at until it is decided */
        job->cut.pieces = 1;
        job->cut.length = of->count;
        job->cut.units = of->front * of->outer;
    }
    const npy_intp inner = of->inner, pieces = job->cut.pieces, parts = of->front * of->outer * pieces * inner;
    const npy_intp words = with_places ? 2 * parts : parts;
    const bool direct = job->made && !with_places && pieces == 1 && of->front == 1;
    job->heap = NULL;
    if (!direct && words > ROOM && !(job->heap = PyMem_RawMalloc((size_t)words * sizeof(int64_t)))) {
        PyErr_NoMemory();
        return false;
    }
    job->parts = direct ? job->made : job->heap ? job->heap : job->here;
    job->places = with_places ? job->parts + parts : NULL;
    const bool whole = of->inner == 1 && pieces == 1 && !with_places && (job->kind <= COUNT || job->kind >= LARGEST);
    native_parallel(job->cut.units, job->cut.grain, job->cut.turned ? reduce_turned : whole ? reduce_whole_rows : reduce_units, job);
    for (npy_intp outer = 0; pieces > 1 && outer < of->front * of->outer; outer++)
        join_rows(job, outer * pieces * inner, inner, pieces, inner);
    for (npy_intp i = 0; of->front > 1 && i < of->outer; i++)
        join_rows(job, i * pieces, 1, of->front, of->outer * pieces);
    return true;
}

/* Results */

/* Of each result the first of its `pieces` parts. */
static void copy_parts(const work *job, const int64_t *parts, native_type type, char *made) {
    const native_fold *of = job->of;
    const bool half = type == TYPE_BF16 || type == TYPE_F16;
    const native_loop convert = PICK(cast_loops)->cast[TYPE_I64][half ? TYPE_I16 : type];
    const npy_intp runs = job->cut.pieces == 1 ? 1 : of->outer, length = of->outer * of->inner / runs;
    const ptrdiff_t steps[2] = {sizeof *parts, TYPE_SIZE[type]};
    for (npy_intp run = 0; run < runs; run++) {
        char *const data[2] = {(char *)(parts + run * job->cut.pieces * of->inner), made + run * length * TYPE_SIZE[type]};
        convert(data, steps, length);
    }
    for (npy_intp i = 0; half && i < of->outer * of->inner; i++)
        ((int16_t *)made)[i] = native_key_bits(((const int16_t *)made)[i]);
}

static PyArrayObject *array_of(const work *job, const int64_t *parts, native_type type) {
    PyArrayObject *made = native_empty(job->of->ndim, job->of->shape, type);
    if (made)
        copy_parts(job, parts, type, PyArray_BYTES(made));
    return made;
}

/* The elements at some places along the reduced dim. */
static PyArrayObject *values_at(const native_fold *of, const int64_t *places) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, of->type);
    const npy_intp size = TYPE_SIZE[of->type];
    for (npy_intp outer = 0, i = 0; made && outer < of->outer; outer++)
        for (npy_intp j = 0; j < of->inner; j++, i++)
            memcpy(PyArray_BYTES(made) + i * size,
                   PyArray_BYTES(of->array) + ((outer * of->count + places[i]) * of->inner + j) * size, (size_t)size);
    return made;
}

static PyObject *reduced(const native_fold *of, what kind, native_type type) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, type);
    if (!made)
        return NULL;
    work job = {.of = of, .run = &PICK(integer_loops)->of[of->type], .kind = kind};
    job.made = type == TYPE_I64 ? PyArray_DATA(made) : NULL;
    if (!reduce(&job, false)) {
        Py_DECREF(made);
        return NULL;
    }
    if (job.parts != job.made)
        copy_parts(&job, job.parts, type, PyArray_BYTES(made));
    PyMem_RawFree(job.heap);
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
    work job = {.of = of, .run = &PICK(integer_loops)->of[of->type], .kind = largest ? LARGEST : SMALLEST};
    if (!job.run->place || !reduce(&job, true))
        return NULL;
    const bool halves = native_is_half(of->type); /* whose keys make one number of both zeros */
    PyArrayObject *places = array_of(&job, job.places, TYPE_I64);
    PyObject *made = (PyObject *)places;
    if (with_values && places) {
        PyArrayObject *values = halves ? values_at(of, PyArray_DATA(places)) : array_of(&job, job.parts, of->type);
        made = values ? PyTuple_Pack(2, values, places) : NULL;
        Py_XDECREF(values);
        Py_DECREF(places);
    }
    PyMem_RawFree(job.heap);
    return made;
}

/* count_nonzero, any and all. */
static PyObject *run_count(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const what kind = *(const what *)kernel->data;
    PyObject *options[OPTIONS] = {NULL}, *made = NULL;
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    native_fold of;
    if (type == TYPE_NONE || (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    PyArrayObject *dense = native_dense(args[0]);
    if (dense && native_fold_around(&of, (PyObject *)dense, type, options[DIM], options[KEEPDIM]))
        made = reduced(&of, kind, kind == COUNT ? TYPE_I64 : TYPE_BOOL);
    Py_XDECREF(dense);
    return made;
}

int reduce_integers_init(void) {
    static const char *const words[OPTIONS] = {"dim", "keepdim"};
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(words[i])))
            return -1;
    return 0;
}

const native_spec reduce_integers_kernels[] = {
    {"count_nonzero", run_count, &(const what){COUNT}},
    {"any", run_count, &(const what){ANY}},
    {"all", run_count, &(const what){ALL}},
    {NULL, NULL, NULL},
};
