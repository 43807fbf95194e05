/* Reductions of floats: sums, means, variances, extremes, products. What is counted in integers is handed on. */
#include "reduce.h"

#include "cast.h"
#include "folds.h"
#include "halves.h"
#include "integers.h"
#include "rows.h"

#include <math.h>
#include <string.h>

DECLARE_LOOPS(reduce_loops, reduce_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const reduce_loops *loops;

enum { DIM, KEEPDIM, DTYPE, CORRECTION, ROOT, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    GRAIN = 1 << 15, /* elements that are worth a second thread */
    FEW = 64,        /* elements of rows that are turned over, but for sums */
    NARROW = 16, WIDE = 8, MANY = 64, /* columns of which WIDE rows are one, where they are MANY */
};

typedef enum { SUM, MEAN, APART, VAR, LARGEST, SMALLEST, PRODUCT } what; /* sums up to VAR */

typedef struct {
    const native_fold *fold;
    const reduce_functions *run;
    what kind;
    native_cut cut;
    const double *centre; /* [outer, inner], for APART and VAR */
    double *parts;        /* [front, outer, pieces, inner] */
    int64_t *places;      /* the same, where they are asked for */
} work;

static bool is_real(native_type type) { return type == TYPE_F32 || type == TYPE_F64; }
static bool is_integer(native_type type) { return type >= TYPE_I8 && type < TYPE_NONE; }

static void reduce_row(const work *job, const native_piece *at) {
    const reduce_functions *run = job->run;
    double *into = job->parts + at->part;
    if (job->kind <= MEAN) {
        *into = run->sum(at->data, at->rows);
    } else if (job->kind <= VAR) {
        *into = (job->kind == VAR ? run->away : run->apart)(at->data, at->rows, job->centre[at->kept]);
    } else if (job->kind == PRODUCT) {
        *into = run->product(at->data, at->rows);
    } else if (job->places) {
        const npy_intp place = run->place(at->data, at->rows, job->kind == LARGEST);
        *into = job->fold->type == TYPE_F32 ? ((const float *)at->data)[place] : ((const double *)at->data)[place];
        job->places[at->part] = place + at->first;
    } else {
        *into = run->extreme(at->data, at->rows, job->kind == LARGEST);
    }
}

/* Columns whose rows are `step` elements apart. */
static void reduce_strip(const work *job, const native_piece *at, npy_intp step) {
    const native_fold *of = job->fold;
    const reduce_functions *run = job->run;
    double *into = job->parts + at->part;
    if (job->kind <= VAR) {
        memset(into, 0, (size_t)at->width * sizeof *into);
        if (job->kind >= APART)
            (job->kind == VAR ? run->away_strip : run->apart_strip)(at->data, at->rows, step, at->width, job->centre + at->kept, into);
        else
            run->sum_strip(at->data, at->rows, step, at->width, into);
        return;
    }
    float narrow[STRIP];
    void *values = of->type == TYPE_F32 ? (void *)narrow : (void *)into;
    memcpy(values, at->data, (size_t)at->width * TYPE_SIZE[of->type]);
    if (job->places) {
        int64_t *places = job->places + at->part;
        run->place_strip(at->data, at->rows, step, at->width, job->kind == LARGEST, values, places);
        for (npy_intp j = 0; j < at->width; j++)
            places[j] += at->first;
    } else if (job->kind == PRODUCT) {
        run->product_strip(at->data, at->rows, step, at->width, values);
    } else {
        run->extreme_strip(at->data, at->rows, step, at->width, job->kind == LARGEST, values);
    }
    for (npy_intp j = 0; of->type == TYPE_F32 && j < at->width; j++)
        into[j] = narrow[j];
}

/* Rounded as the products of elements are. */
static double product_of(native_type type, double x, double y) { return type == TYPE_F32 ? (float)x * (float)y : x * y; }

/* Columns that are fewer than a vector has elements: WIDE rows are one of as many times the columns, and what is left of the rows is
   another; their parts come together behind them. */
static void reduce_narrow(const work *job, const native_piece *at) {
    const native_fold *of = job->fold;
    const npy_intp inner = of->inner, wide = inner * WIDE, whole = at->rows / WIDE, rest = at->rows % WIDE;
    double parts[(WIDE + 1) * NARROW], centre[WIDE * NARROW];
    int64_t places[(WIDE + 1) * NARROW];
    work part = *job;
    part.parts = parts;
    part.places = job->places ? places : NULL;
    part.centre = centre;
    for (npy_intp k = 0; job->centre && k < wide; k++)
        centre[k] = job->centre[at->kept + k % inner];
    reduce_strip(&part, &(native_piece){.data = at->data, .rows = whole, .width = wide}, wide);
    if (rest)
        reduce_strip(&part, &(native_piece){.data = at->data + whole * wide * TYPE_SIZE[of->type], .rows = rest, .width = inner, .part = wide}, inner);
    for (npy_intp j = 0; j < inner; j++) {
        double made = parts[j];
        int64_t place = job->places ? places[j] * WIDE : 0;
        for (npy_intp k = 1; k < WIDE + (rest > 0); k++) {
            const double x = parts[k * inner + j];
            const int64_t here = !job->places ? 0 : k < WIDE ? places[k * inner + j] * WIDE + k : places[k * inner + j] + whole * WIDE;
            if (job->kind <= VAR || job->kind == PRODUCT) {
                made = job->kind == PRODUCT ? product_of(of->type, made, x) : made + x;
                continue;
            }
            const bool better = job->kind == LARGEST ? x > made : x < made, alike = x == made || (x != x && made != made);
            if (better || (x != x && made == made) || (alike && here < place)) {
                made = x;
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
    const native_fold *of = job->fold;
    const native_cut *cut = &job->cut;
    for (npy_intp i = begin; i < end; i++) {
        const native_piece at = native_piece_of(of, cut, STRIP, i);
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
        const npy_intp first = i * job->cut.turned, rows = native_turned_rows(job->fold, &job->cut, first, tile);
        reduce_strip(job, &(native_piece){.data = tile, .rows = job->fold->count, .width = rows, .part = first, .kept = first}, rows);
    }
}

/* Rows of one piece each, of which sums, products and extremes are made with no more than what is asked for. */
static void reduce_whole_rows(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    const native_fold *of = job->fold;
    const npy_intp row = of->count * TYPE_SIZE[of->type];
    const char *data = PyArray_BYTES(of->array);
    if (job->kind <= MEAN)
        for (npy_intp i = begin; i < end; i++)
            job->parts[i] = job->run->sum(data + i * row, of->count);
    else if (job->kind == PRODUCT)
        for (npy_intp i = begin; i < end; i++)
            job->parts[i] = job->run->product(data + i * row, of->count);
    else
        for (npy_intp i = begin; i < end; i++)
            job->parts[i] = job->run->extreme(data + i * row, of->count, job->kind == LARGEST);
}

/* Brings `count` rows of parts, `step` apart, together in the first one, which is `width` long. */
static void join_rows(const work *job, npy_intp first, npy_intp width, npy_intp count, npy_intp step) {
    for (npy_intp begin = first; begin < first + width; begin += STRIP) {
        double lost[STRIP], *made = job->parts + begin;
        const npy_intp columns = first + width - begin < STRIP ? first + width - begin : STRIP;
        memset(lost, 0, (size_t)columns * sizeof *lost);
        for (npy_intp row = 1; row < count; row++) {
            const double *parts = made + row * step;
            if (job->kind <= VAR) {
                for (npy_intp j = 0; j < columns; j++) {
                    double before = made[j], x = parts[j], after = before + x, part = after - before;
                    lost[j] += (before - (after - part)) + (x - part);
                    made[j] = after;
                }
                continue;
            }
            for (npy_intp j = 0; j < columns; j++) {
                double x = parts[j];
                if (job->kind == PRODUCT)
                    made[j] = product_of(job->fold->type, made[j], x);
                else if ((job->kind == LARGEST ? x > made[j] : x < made[j]) || (x != x && made[j] == made[j])) {
                    made[j] = x;
                    if (job->places)
                        job->places[begin + j] = job->places[begin + j + row * step];
                }
            }
        }
        for (npy_intp j = 0; job->kind <= VAR && j < columns; j++)
            made[j] += lost[j] == lost[j] ? lost[j] : 0;
    }
}

static void join(const work *job) {
    const native_fold *of = job->fold;
    const npy_intp inner = of->inner, rows = job->cut.pieces * inner;
    for (npy_intp outer = 0; job->cut.pieces > 1 && outer < of->front * of->outer; outer++)
        join_rows(job, outer * rows, inner, job->cut.pieces, inner);
    for (npy_intp i = 0; of->front > 1 && i < of->outer; i++)
        join_rows(job, i * rows, 1, of->front, of->outer * rows);
}

/* Room for parts and, behind them, places: on the stack for those of a short call, which would wait for the heap. */
enum { ROOM = 1024 };

typedef struct {
    double here[ROOM];
    double *heap;
} room;

static bool reduce(const native_fold *of, what kind, const double *centre, bool with_places, room *space, work *job) {
    *job = (work){.fold = of, .run = &loops->of[of->type], .kind = kind, .cut = native_cut_fold(of, STRIP, kind <= MEAN ? native_few_added(of->type) : FEW), .centre = centre};
    const npy_intp pieces = of->front * of->outer * job->cut.pieces, parts = pieces * of->inner;
    const npy_intp words = with_places ? 2 * parts : parts;
    space->heap = NULL;
    if (words > ROOM && !(space->heap = PyMem_RawMalloc((size_t)words * sizeof(double)))) {
        PyErr_NoMemory();
        return false;
    }
    job->parts = space->heap ? space->heap : space->here;
    job->places = with_places ? (int64_t *)(job->parts + parts) : NULL;
    const bool whole = of->inner == 1 && job->cut.pieces == 1 && kind != APART && kind != VAR && !with_places;
    native_parallel(job->cut.units, job->cut.grain, job->cut.turned ? reduce_turned : whole ? reduce_whole_rows : reduce_units, job);
    join(job);
    return true;
}

/* The value of each result, divided and its root taken, as elements of `type`. What is asked for does not change from one result
   to the next: the compiler makes a loop of vectors for each case. */
#define VALUES(name, type)                                                                                        \
    static void name(const double *parts, type *values, npy_intp count, bool first_rounded, double divisor, bool root) { \
        for (npy_intp j = 0; j < count; j++) {                                                                    \
            double value = first_rounded ? (type)parts[j] : parts[j];                                             \
            value = divisor == 1 ? value : value / divisor;                                                       \
            values[j] = (type)(root ? sqrt(value) : value);                                                       \
        }                                                                                                         \
    }

VALUES(values_f32, float)
VALUES(values_f64, double)

/* Of a half type: by way of floats, a few at a time. */
static void values_half(const double *parts, char *values, npy_intp count, bool first_rounded, double divisor, bool root,
                        native_type type) {
    float narrow[STRIP];
    const ptrdiff_t steps[2] = {sizeof *narrow, TYPE_SIZE[type]};
    for (npy_intp begin = 0; begin < count; begin += STRIP) {
        const npy_intp few = count - begin < STRIP ? count - begin : STRIP;
        char *const data[2] = {(char *)narrow, values + begin * TYPE_SIZE[type]};
        values_f32(parts + begin, narrow, few, first_rounded, divisor, root);
        PICK(cast_loops)->cast[TYPE_F32][type](data, steps, few);
    }
}

/* A new array of the reduced values, divided by `divisor`. */
static PyObject *values_of(const native_fold *of, const work *job, double divisor, bool root) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, of->type);
    if (!made)
        return NULL;
    /* A sum beyond the dtype is infinite, and so is its mean, as in PyTorch; half types are summed as floats. */
    const bool first_rounded = of->type != TYPE_F64 && job->kind == MEAN;
    const npy_intp pieces = job->cut.pieces, runs = pieces == 1 ? 1 : of->outer, length = of->outer * of->inner / runs;
    for (npy_intp run = 0; run < runs; run++) {
        const double *parts = job->parts + run * pieces * of->inner;
        char *values = PyArray_BYTES(made) + run * length * TYPE_SIZE[of->type];
        if (of->type == TYPE_F32)
            values_f32(parts, (float *)values, length, first_rounded, divisor, root);
        else if (of->type == TYPE_F64)
            values_f64(parts, (double *)values, length, first_rounded, divisor, root);
        else
            values_half(parts, values, length, first_rounded, divisor, root, of->type);
    }
    return (PyObject *)made;
}

static PyObject *places_of(const native_fold *of, const work *job) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, TYPE_I64);
    for (npy_intp outer = 0; made && outer < of->outer; outer++)
        memcpy((int64_t *)PyArray_DATA(made) + outer * of->inner, job->places + outer * job->cut.pieces * of->inner,
               (size_t)of->inner * sizeof(int64_t));
    return (PyObject *)made;
}

/* Entries */

static bool options(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int count, PyObject **values) {
    for (int i = 0; i < OPTIONS; i++)
        values[i] = NULL;
    return nargs == 1 && (!kwnames || native_options(args, nargs, kwnames, names, count, values));
}

/* Sum, mean and the extremes; the kernel's data tell which. */
static PyObject *run_reduction(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames) {
    what kind = *(const what *)kernel->data;
    PyObject *given[OPTIONS];
    native_fold of;
    work job;
    room space;
    if (!options(args, nargs, kwnames, DTYPE + 1, given) ||
        !native_fold_around(&of, args[0], native_array_type(args[0]), given[DIM], given[KEEPDIM]))
        return NULL;
    if (is_integer(of.type) && kind == SUM) {
        /* Unless told, NumPy widens all but the widest. */
        const native_type usual = of.type == TYPE_I64 ? TYPE_I64 : TYPE_NONE;
        const native_type type = native_is_none(given[DTYPE]) ? usual : native_dtype_type(given[DTYPE]);
        return is_integer(type) && type != TYPE_BOOL ? native_integer_sum(&of, type) : NULL;
    }
    if (!native_is_none(given[DTYPE]) || (is_integer(of.type) && kind == MEAN))
        return NULL;
    if (!is_real(of.type) && kind >= LARGEST)
        return native_integer_extreme(&of, kind == LARGEST);
    if (!reduce(&of, kind, NULL, false, &space, &job))
        return NULL;
    PyObject *made = values_of(&of, &job, kind == MEAN ? (double)(of.front * of.count) : 1, false);
    PyMem_RawFree(space.heap);
    return made;
}

/* Half types by way of floats. */
static PyObject *run_product(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS], *made = NULL;
    native_fold of;
    work job;
    room space;
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if ((type > TYPE_F16 && type != TYPE_I64) || !options(args, nargs, kwnames, DTYPE + 1, given) || !native_is_none(given[DTYPE]))
        return NULL;
    const bool half = native_is_half(type);
    PyObject *x = half ? native_converted((PyArrayObject *)args[0], type, TYPE_F32) : Py_NewRef(args[0]);
    if (x && native_fold_around(&of, x, half ? TYPE_F32 : type, given[DIM], given[KEEPDIM])) {
        if (type == TYPE_I64) {
            made = native_integer_product(&of);
        } else if (reduce(&of, PRODUCT, NULL, false, &space, &job)) {
            made = values_of(&of, &job, 1, false);
            PyMem_RawFree(space.heap);
        }
    }
    Py_XDECREF(x);
    if (made && half)
        Py_SETREF(made, native_converted((PyArrayObject *)made, TYPE_F32, type));
    return made;
}

typedef struct {
    what kind;
    bool with_values;
} place_kind;

static PyObject *run_place(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const place_kind *asked = kernel->data;
    PyObject *given[OPTIONS];
    native_fold of;
    work job;
    room space;
    if (!options(args, nargs, kwnames, KEEPDIM + 1, given) || (asked->with_values && !given[DIM]) ||
        !native_folded_anyhow(&of, args[0], native_array_type(args[0]), given[DIM], given[KEEPDIM]) ||
        (native_is_none(given[DIM]) && !PyArray_IS_C_CONTIGUOUS(of.array))) /* places among all are those in row-major order */
        return NULL;
    if (!is_real(of.type))
        return native_integer_place(&of, asked->kind == LARGEST, asked->with_values);
    if (!reduce(&of, asked->kind, NULL, true, &space, &job))
        return NULL;
    PyObject *places = places_of(&of, &job), *made = places;
    if (asked->with_values && places) {
        PyObject *values = values_of(&of, &job, 1, false);
        made = values ? PyTuple_Pack(2, values, places) : NULL;
        Py_XDECREF(values);
        Py_DECREF(places);
    }
    PyMem_RawFree(space.heap);
    return made;
}

/* The part of result number i. */
static double *part_of(const work *job, npy_intp i) {
    const npy_intp inner = job->fold->inner;
    return job->parts + i / inner * job->cut.pieces * inner + i % inner;
}

/* A centre near the mean of each result in the precision of the elements, and what it misses: the distances from it are small, and
   their sum is more exact than that of the elements. */
static bool find_centres(const native_fold *of, const work *means, double *centre, double *missed) {
    const npy_intp results = of->outer * of->inner;
    work job;
    room space;
    for (npy_intp i = 0; i < results; i++) {
        const double mean = *part_of(means, i) / (double)of->count;
        centre[i] = of->type == TYPE_F64 ? mean : (float)mean;
    }
    if (!reduce(of, APART, centre, false, &space, &job))
        return false;
    for (npy_intp i = 0; i < results; i++)
        missed[i] = *part_of(&job, i) / (double)of->count;
    PyMem_RawFree(space.heap);
    return true;
}

static PyObject *run_var(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    bool with_mean = kernel->data != NULL;
    PyObject *given[OPTIONS];
    native_fold of;
    work job;
    room space;
    if (!options(args, nargs, kwnames, OPTIONS, given) || given[DTYPE] || !given[CORRECTION] || !given[ROOT] ||
        !native_folded_anyhow(&of, args[0], native_array_type(args[0]), given[DIM], given[KEEPDIM]) || is_integer(of.type))
        return NULL;
    double correction = PyFloat_AsDouble(given[CORRECTION]);
    if (correction == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    if (!reduce(&of, MEAN, NULL, false, &space, &job))
        return NULL;
    PyObject *mean = with_mean ? values_of(&of, &job, (double)of.count, false) : NULL, *made = NULL;
    const npy_intp results = of.outer * of.inner;
    double *centre = PyMem_RawMalloc((size_t)results * 2 * sizeof(double)), *missed = centre + results;
    if (!centre)
        PyErr_NoMemory();
    const bool found = centre && (mean || !with_mean) && find_centres(&of, &job, centre, missed);
    PyMem_RawFree(space.heap);
    if (found && reduce(&of, VAR, centre, false, &space, &job)) {
        for (npy_intp i = 0; i < results; i++) {
            double *part = part_of(&job, i), less = (double)of.count * missed[i] * missed[i];
            *part = *part > less ? *part - less : *part;
        }
        double free = (double)of.count - correction;
        made = values_of(&of, &job, free > 0 ? free : 0, given[ROOT] == Py_True);
        PyMem_RawFree(space.heap);
    }
    PyMem_RawFree(centre);
    if (!with_mean)
        return made;
    PyObject *both = made && mean ? PyTuple_Pack(2, made, mean) : NULL;
    Py_XDECREF(made);
    Py_XDECREF(mean);
    return both;
}

PyObject *native_norm_along(PyObject *x, PyObject *dim, PyObject *keepdim) {
    native_fold of;
    work job;
    room space;
    if (!native_folded_anyhow(&of, x, native_array_type(x), dim, keepdim) || is_integer(of.type))
        return NULL;
    double *centre = PyMem_RawCalloc((size_t)(of.outer * of.inner), sizeof *centre);
    if (!centre)
        return PyErr_NoMemory();
    PyObject *made = NULL;
    if (reduce(&of, VAR, centre, false, &space, &job)) {
        made = values_of(&of, &job, 1, true);
        PyMem_RawFree(space.heap);
    }
    PyMem_RawFree(centre);
    return made;
}

int reduce_init(void) {
    static const char *const words[OPTIONS] = {"dim", "keepdim", "dtype", "correction", "root"};
    loops = PICK(reduce_loops);
    for (int i = 0; i < OPTIONS; i++)
        if (!(names[i] = PyUnicode_InternFromString(words[i])))
            return -1;
    return 0;
}

const native_spec reduce_kernels[] = {
    {"sum", run_reduction, &(const what){SUM}, .dense = true},
    {"mean", run_reduction, &(const what){MEAN}, .dense = true},
    {"amax", run_reduction, &(const what){LARGEST}, .dense = true},
    {"amin", run_reduction, &(const what){SMALLEST}, .dense = true},
    {"argmax", run_place, &(const place_kind){LARGEST, false}, .dense = true},
    {"argmin", run_place, &(const place_kind){SMALLEST, false}, .dense = true},
    {"max_dim", run_place, &(const place_kind){LARGEST, true}, .dense = true},
    {"min_dim", run_place, &(const place_kind){SMALLEST, true}, .dense = true},
    {"prod", run_product, NULL, .dense = true},
    {"var", run_var, NULL, .dense = true},
    {"var_mean", run_var, &(const bool){true}, .dense = true},
    {NULL, NULL, NULL},
};
