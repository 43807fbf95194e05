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
};

typedef enum { SUM, COUNT, ANY, ALL, PRODUCT, LARGEST, SMALLEST } what; /* products are of rows of int64 */

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

static void reduce_strip(const work *job, const native_piece *at) {
    const npy_intp inner = job->of->inner;
    int64_t *into = job->parts + at->part, *places = job->places + at->part;
    if (job->kind <= ALL) {
        memset(into, 0, (size_t)at->width * sizeof *into);
        (job->kind == SUM ? job->run->sum_strip : job->run->count_strip)(at->data, at->rows, inner, at->width, into);
        for (npy_intp j = 0; (job->kind == ANY || job->kind == ALL) && j < at->width; j++)
            into[j] = job->kind == ANY ? into[j] > 0 : into[j] == at->rows;
    } else if (job->places) {
        job->run->place_strip(at->data, at->rows, inner, at->width, job->kind == LARGEST, into, places);
        for (npy_intp j = 0; j < at->width; j++)
            places[j] += at->first;
    } else {
        job->run->extreme_strip(at->data, at->rows, inner, at->width, job->kind == LARGEST, into);
    }
}

static void reduce_pieces(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    const native_fold *of = job->of;
    const npy_intp row = of->count * TYPE_SIZE[of->type];
    const bool short_rows = of->inner == 1 && job->cut.pieces == 1; /* many of them: no more than what is asked for */
    if (short_rows && job->kind <= COUNT) {
        int64_t (*const run)(const void *, ptrdiff_t) = job->kind == SUM ? job->run->sum : job->run->count;
        for (npy_intp i = begin; i < end; i++)
            job->parts[i] = run(PyArray_BYTES(of->array) + i * row, of->count);
        return;
    }
    if (short_rows && job->kind >= LARGEST && !job->places) {
        for (npy_intp i = begin; i < end; i++)
            job->parts[i] = job->run->extreme(PyArray_BYTES(of->array) + i * row, of->count, job->kind == LARGEST);
        return;
    }
    for (npy_intp i = begin; i < end; i++) {
        const native_piece at = native_piece_of(of, &job->cut, INTEGER_STRIP, i);
        (of->inner == 1 ? reduce_row : reduce_strip)(job, &at);
    }
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
    job->cut = native_cut_fold(of, INTEGER_STRIP);
    if ((job->kind == ANY || job->kind == ALL) && of->inner == 1) { /* a row is looked at until it is decided */
        job->cut.pieces = 1;
        job->cut.length = of->count;
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
    native_parallel(of->front * of->outer * pieces * job->cut.strips, job->cut.grain, reduce_pieces, job);
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
    return of->type == TYPE_I64 && of->inner == 1 ? reduced(of, PRODUCT, TYPE_I64) : NULL;
}

PyObject *native_integer_extreme(const native_fold *of, bool largest) {
    return PICK(integer_loops)->of[of->type].extreme ? reduced(of, largest ? LARGEST : SMALLEST, of->type) : NULL;
}

PyObject *native_integer_place(const native_fold *of, bool largest, bool with_values) {
    work job = {.of = of, .run = &PICK(integer_loops)->of[of->type], .kind = largest ? LARGEST : SMALLEST};
    if (!job.run->place || !reduce(&job, true))
        return NULL;
    PyArrayObject *places = array_of(&job, job.places, TYPE_I64);
    PyObject *made = (PyObject *)places;
    PyMem_RawFree(job.heap);
    if (with_values && places) {
        PyArrayObject *values = values_at(of, PyArray_DATA(places));
        made = values ? PyTuple_Pack(2, values, places) : NULL;
        Py_XDECREF(values);
        Py_DECREF(places);
    }
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
