/* Reductions of arrays in row-major order over neighbouring dims: all, the last ones, the first ones, some between; and over
   the first and the last ones around others. */
#include "reduce.h"

#include "rows.h"

#include <math.h>
#include <string.h>

DECLARE_LOOPS(reduce_loops, reduce_loops);

static const reduce_loops *loops;

enum { DIM, KEEPDIM, DTYPE, CORRECTION, ROOT, OPTIONS };
static PyObject *names[OPTIONS];

enum { GRAIN = 1 << 15 }; /* elements: what one piece of a long row holds, and a reason for a second thread */

typedef enum { SUM, MEAN, VAR, LARGEST, SMALLEST } what;

/* An array as front x outer x count x inner elements, of which `front` and `count` are reduced; and the shape of the result. */
typedef struct {
    PyArrayObject *array;
    native_type type;
    const reduce_functions *functions;
    npy_intp front, outer, count, inner; /* with a front no inner ones */
    int ndim;
    npy_intp shape[NATIVE_DIMS];
} folded;

/* False where the reduction is of another kind: NumPy's turn. */
static bool fold_around(PyObject *object, PyObject *dim, PyObject *keepdim, folded *made) {
    made->type = native_array_type(object);
    made->array = (PyArrayObject *)object;
    if (made->type == TYPE_NONE || !PyArray_IS_C_CONTIGUOUS(made->array) || !PyArray_SIZE(made->array))
        return false;
    int ndim = PyArray_NDIM(made->array);
    bool reduced[NATIVE_DIMS], keep = keepdim && PyObject_IsTrue(keepdim) == 1;
    bool all = !dim || dim == Py_None;
    for (int i = 0; i < ndim; i++)
        reduced[i] = all;
    if (!all) {
        bool tuple = PyTuple_CheckExact(dim);
        Py_ssize_t given = tuple ? PyTuple_GET_SIZE(dim) : 1;
        for (Py_ssize_t k = 0; k < given; k++) {
            PyObject *one = tuple ? PyTuple_GET_ITEM(dim, k) : dim;
            if (!PyLong_CheckExact(one))
                return false;
            long i = PyLong_AsLong(one);
            if (i < 0 || i >= ndim) {
                PyErr_Clear();
                return false;
            }
            reduced[i] = true;
        }
        if (!given)
            return false;
    }
    made->front = made->outer = made->count = made->inner = 1;
    made->ndim = 0;
    bool begun = false, ended = false;
    for (int i = 0; i < ndim; i++) {
        npy_intp size = PyArray_DIM(made->array, i);
        if (!reduced[i] || keep)
            made->shape[made->ndim++] = reduced[i] ? 1 : size;
        if (size == 1)
            continue;
        if (reduced[i] ? ended && (made->front > 1 || made->outer > 1) : made->front > 1)
            return false;
        if (reduced[i] && ended) { /* what was reduced stands before what is kept */
            made->front = made->count;
            made->outer = made->inner;
            made->count = made->inner = 1;
            ended = false;
        }
        begun |= reduced[i];
        ended |= begun && !reduced[i];
        *(reduced[i] ? &made->count : begun ? &made->inner : &made->outer) *= size;
    }
    made->functions = made->type <= TYPE_F64 ? &loops->of[made->type] : NULL;
    return true;
}

static bool fold(PyObject *object, PyObject *dim, PyObject *keepdim, folded *made) {
    return fold_around(object, dim, keepdim, made) && made->front == 1;
}

/* Work: rows, or strips of columns, both in pieces of a length that does not depend on the number of threads. */

typedef struct {
    const folded *fold;
    what kind;
    npy_intp pieces, length;  /* of each row or column */
    npy_intp strips;          /* of the columns; 1 where rows are reduced */
    const double *centre;     /* [outer, inner], for VAR */
    double *parts;            /* [front, outer, pieces, inner] */
    int64_t *places;          /* the same, where they are asked for */
} work;

static void reduce_piece(const work *job, npy_intp number) {
    const folded *of = job->fold;
    const reduce_functions *run = of->functions;
    npy_intp strip = number % job->strips, piece = number / job->strips % job->pieces, outer = number / job->strips / job->pieces;
    npy_intp first = piece * job->length, rows = of->count - first < job->length ? of->count - first : job->length;
    npy_intp column = strip * STRIP, width = of->inner - column < STRIP ? of->inner - column : STRIP;
    const char *data = PyArray_BYTES(of->array) + ((outer * of->count + first) * of->inner + column) * TYPE_SIZE[of->type];
    double *into = job->parts + (outer * job->pieces + piece) * of->inner + column;
    int64_t *places = job->places ? job->places + (outer * job->pieces + piece) * of->inner + column : NULL;
    const double *centre = job->centre ? job->centre + outer * of->inner + column : NULL;
    bool largest = job->kind == LARGEST;
    if (of->inner == 1) {
        if (job->kind <= MEAN) {
            *into = run->sum(data, rows);
        } else if (job->kind == VAR) {
            *into = run->away(data, rows, *centre);
        } else if (places) {
            *places = run->place(data, rows, largest);
            *into = of->type == TYPE_F32 ? ((const float *)data)[*places] : ((const double *)data)[*places];
            *places += first;
        } else {
            *into = run->extreme(data, rows, largest);
        }
        return;
    }
    if (job->kind <= VAR) {
        memset(into, 0, (size_t)width * sizeof *into);
        if (job->kind == VAR)
            run->away_strip(data, rows, of->inner, width, centre, into);
        else
            run->sum_strip(data, rows, of->inner, width, into);
        return;
    }
    float narrow[STRIP];
    void *values = of->type == TYPE_F32 ? (void *)narrow : (void *)into;
    memcpy(values, data, (size_t)width * TYPE_SIZE[of->type]);
    if (places) {
        run->place_strip(data, rows, of->inner, width, largest, values, places);
        for (npy_intp j = 0; j < width; j++)
            places[j] += first;
    } else {
        run->extreme_strip(data, rows, of->inner, width, largest, values);
    }
    for (npy_intp j = 0; of->type == TYPE_F32 && j < width; j++)
        into[j] = narrow[j];
}

static void reduce_pieces(void *context, npy_intp begin, npy_intp end) {
    const work *job = context;
    const folded *of = job->fold;
    if (of->inner == 1 && job->pieces == 1 && job->kind <= MEAN) { /* many short rows: no more than the sums */
        npy_intp row = of->count * TYPE_SIZE[of->type];
        for (npy_intp i = begin; i < end; i++)
            job->parts[i] = of->functions->sum(PyArray_BYTES(of->array) + i * row, of->count);
        return;
    }
    for (npy_intp i = begin; i < end; i++)
        reduce_piece(context, i);
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
                if ((job->kind == LARGEST ? x > made[j] : x < made[j]) || (x != x && made[j] == made[j])) {
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
    const folded *of = job->fold;
    const npy_intp inner = of->inner, rows = job->pieces * inner;
    for (npy_intp outer = 0; job->pieces > 1 && outer < of->front * of->outer; outer++)
        join_rows(job, outer * rows, inner, job->pieces, inner);
    for (npy_intp i = 0; of->front > 1 && i < of->outer; i++)
        join_rows(job, i * rows, 1, of->front, of->outer * rows);
}

/* Room for parts and, behind them, places: on the stack for those of a short call, which would wait for the heap. */
enum { ROOM = 1024 };

typedef struct {
    double here[ROOM];
    double *heap;
} room;

static bool reduce(const folded *of, what kind, const double *centre, bool with_places, room *space, work *job) {
    npy_intp rows = GRAIN / of->inner < 256 ? 256 : GRAIN / of->inner; /* of a piece */
    job->fold = of;
    job->kind = kind;
    job->centre = centre;
    job->strips = (of->inner + STRIP - 1) / STRIP;
    job->pieces = (of->count + rows - 1) / rows;
    /* Alike, so that two threads take as long; from a line of the cache to another where elements lie in a row, else of as
       many rows as are added at once. */
    const npy_intp even = of->inner == 1 ? 64 : 8;
    job->length = rows = ((of->count + job->pieces - 1) / job->pieces + even - 1) / even * even;
    job->pieces = (of->count + rows - 1) / rows;
    npy_intp outer = of->front * of->outer, parts = outer * job->pieces * of->inner;
    const npy_intp words = with_places ? 2 * parts : parts;
    space->heap = NULL;
    if (words > ROOM && !(space->heap = PyMem_RawMalloc((size_t)words * sizeof(double)))) {
        PyErr_NoMemory();
        return false;
    }
    job->parts = space->heap ? space->heap : space->here;
    job->places = with_places ? (int64_t *)(job->parts + parts) : NULL;
    npy_intp length = of->count < rows ? of->count : rows, width = of->inner < STRIP ? of->inner : STRIP;
    npy_intp grain = GRAIN / (length * width);
    native_parallel(outer * job->pieces * job->strips, grain > 0 ? grain : 1, reduce_pieces, job);
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

/* A new array of the reduced values, divided by `divisor`. */
static PyObject *values_of(const folded *of, const work *job, double divisor, bool root) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, of->type);
    if (!made)
        return NULL;
    /* A sum beyond the dtype is infinite, and so is its mean, as in PyTorch. */
    const bool narrow = of->type == TYPE_F32, first_rounded = narrow && job->kind == MEAN;
    const npy_intp runs = job->pieces == 1 ? 1 : of->outer, length = job->pieces == 1 ? of->outer * of->inner : of->inner;
    for (npy_intp run = 0; run < runs; run++) {
        const double *parts = job->parts + run * job->pieces * of->inner;
        if (narrow)
            values_f32(parts, (float *)PyArray_DATA(made) + run * length, length, first_rounded, divisor, root);
        else
            values_f64(parts, (double *)PyArray_DATA(made) + run * length, length, first_rounded, divisor, root);
    }
    return (PyObject *)made;
}

static PyObject *places_of(const folded *of, const work *job) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, TYPE_I64);
    for (npy_intp outer = 0; made && outer < of->outer; outer++)
        memcpy((int64_t *)PyArray_DATA(made) + outer * of->inner, job->places + outer * job->pieces * of->inner,
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
    folded of;
    work job;
    room space;
    if (!options(args, nargs, kwnames, DTYPE + 1, given) || (given[DTYPE] && given[DTYPE] != Py_None) ||
        !fold_around(args[0], given[DIM], given[KEEPDIM], &of) || !of.functions)
        return NULL;
    if (!reduce(&of, kind, NULL, false, &space, &job))
        return NULL;
    PyObject *made = values_of(&of, &job, kind == MEAN ? (double)(of.front * of.count) : 1, false);
    PyMem_RawFree(space.heap);
    return made;
}

typedef struct {
    what kind;
    bool with_values;
} place_kind;

static PyObject *run_place(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const place_kind *asked = kernel->data;
    PyObject *given[OPTIONS];
    folded of;
    work job;
    room space;
    if (!options(args, nargs, kwnames, KEEPDIM + 1, given) || !fold(args[0], given[DIM], given[KEEPDIM], &of) ||
        !of.functions || (asked->with_values && !given[DIM]))
        return NULL;
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

static PyObject *run_var(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    bool with_mean = kernel->data != NULL;
    PyObject *given[OPTIONS];
    folded of;
    work job;
    room space, second;
    if (!options(args, nargs, kwnames, OPTIONS, given) || given[DTYPE] || !given[CORRECTION] || !given[ROOT] ||
        !fold(args[0], given[DIM], given[KEEPDIM], &of) || !of.functions)
        return NULL;
    double correction = PyFloat_AsDouble(given[CORRECTION]);
    if (correction == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    if (!reduce(&of, MEAN, NULL, false, &space, &job))
        return NULL;
    PyObject *mean = with_mean ? values_of(&of, &job, (double)of.count, false) : NULL, *made = NULL;
    /* The centres side by side, in the precision of the elements: what they miss is a part of the variance. */
    npy_intp results = of.outer * of.inner;
    double *centre = PyMem_RawMalloc((size_t)results * 2 * sizeof(double)), *missed = centre + results;
    if (!centre)
        PyErr_NoMemory();
    for (npy_intp i = 0; centre && i < results; i++) {
        double exact = job.parts[i / of.inner * job.pieces * of.inner + i % of.inner] / (double)of.count;
        centre[i] = of.type == TYPE_F32 ? (float)exact : exact;
        missed[i] = exact - centre[i];
    }
    PyMem_RawFree(space.heap);
    second.heap = NULL;
    if (centre && (mean || !with_mean) && reduce(&of, VAR, centre, false, &second, &job)) {
        for (npy_intp i = 0; i < results; i++) {
            double *part = job.parts + i / of.inner * job.pieces * of.inner + i % of.inner;
            double less = (double)of.count * missed[i] * missed[i];
            *part = *part > less ? *part - less : *part;
        }
        double free = (double)of.count - correction;
        made = values_of(&of, &job, free > 0 ? free : 0, given[ROOT] == Py_True);
        PyMem_RawFree(second.heap);
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
    folded of;
    work job;
    room space;
    if (!fold(x, dim, keepdim, &of) || !of.functions)
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

/* Of bools, over all or the last dims. */
static PyObject *run_truth(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    bool (*test)(const uint8_t *, ptrdiff_t) = kernel->data ? loops->any : loops->all;
    PyObject *given[OPTIONS];
    folded of;
    if (!options(args, nargs, kwnames, KEEPDIM + 1, given) || !fold(args[0], given[DIM], given[KEEPDIM], &of) ||
        of.type != TYPE_BOOL || of.inner != 1)
        return NULL;
    PyArrayObject *made = native_empty(of.ndim, of.shape, TYPE_BOOL);
    for (npy_intp i = 0; made && i < of.outer; i++)
        ((npy_bool *)PyArray_DATA(made))[i] = test((const uint8_t *)PyArray_BYTES(of.array) + i * of.count, of.count);
    return (PyObject *)made;
}

typedef struct {
    const folded *of;
    char *made;
} scan_work;

static void scan_part(void *context, npy_intp begin, npy_intp end) {
    const scan_work *job = context;
    const folded *of = job->of;
    npy_intp strips = (of->inner + STRIP - 1) / STRIP;
    for (npy_intp i = begin; i < end; i++) {
        npy_intp column = i % strips * STRIP, width = of->inner - column < STRIP ? of->inner - column : STRIP;
        npy_intp offset = (i / strips * of->count * of->inner + column) * TYPE_SIZE[of->type];
        double carry = 0;
        if (of->inner == 1)
            of->functions->scan(PyArray_BYTES(of->array) + offset, job->made + offset, of->count, &carry);
        else
            of->functions->scan_strip(PyArray_BYTES(of->array) + offset, job->made + offset, of->count, of->inner, width);
    }
}

static PyObject *run_cumsum(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    folded of;
    if (!options(args, nargs, kwnames, DTYPE + 1, given) || (given[DTYPE] && given[DTYPE] != Py_None) || !given[DIM] ||
        !PyLong_CheckExact(given[DIM]) || !fold(args[0], given[DIM], NULL, &of) || !of.functions)
        return NULL;
    PyArrayObject *made = native_empty(PyArray_NDIM(of.array), PyArray_DIMS(of.array), of.type);
    if (!made)
        return NULL;
    scan_work job = {&of, PyArray_BYTES(made)};
    npy_intp grain = GRAIN / (of.count * (of.inner < STRIP ? of.inner : STRIP));
    native_parallel(of.outer * ((of.inner + STRIP - 1) / STRIP), grain > 0 ? grain : 1, scan_part, &job);
    return (PyObject *)made;
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
    {"sum", run_reduction, &(const what){SUM}},
    {"mean", run_reduction, &(const what){MEAN}},
    {"amax", run_reduction, &(const what){LARGEST}},
    {"amin", run_reduction, &(const what){SMALLEST}},
    {"argmax", run_place, &(const place_kind){LARGEST, false}},
    {"argmin", run_place, &(const place_kind){SMALLEST, false}},
    {"max_dim", run_place, &(const place_kind){LARGEST, true}},
    {"min_dim", run_place, &(const place_kind){SMALLEST, true}},
    {"var", run_var, NULL},
    {"var_mean", run_var, &(const bool){true}},
    {"any", run_truth, &(const bool){true}},
    {"all", run_truth, NULL},
    {"cumsum", run_cumsum, NULL},
    {NULL, NULL, NULL},
};
