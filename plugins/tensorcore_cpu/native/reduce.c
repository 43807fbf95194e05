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

/* So many elements of a row are reduced faster turned over, as measured on a Zen 4. */
enum { FEW = 64, FEW_DOUBLES = 4, FEW_FLOATS = 8 }; /* the second and third where rows are reduced several at once */

typedef enum { SUM, MEAN, SQUARES, APART, VAR, LARGEST, SMALLEST, PRODUCT } what; /* sums up to VAR */

#define PART double
#define PART_TYPE TYPE_F64
#define FUNCTIONS reduce_functions
#include "reduce_ways.h"

static bool is_real(native_type type) { return type == TYPE_F32 || type == TYPE_F64; }
static bool is_integer(native_type type) { return type >= TYPE_I8 && type < TYPE_NONE; }

static void reduce_row(const work *job, const native_piece *at) {
    const reduce_functions *run = job->run;
    double *into = job->parts + at->part;
    if (job->kind <= MEAN) {
        *into = run->sum(at->data, at->rows);
    } else if (job->kind == SQUARES) {
        *into = run->squares(at->data, at->rows);
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
            (job->kind == SQUARES ? run->squares_strip : run->sum_strip)(at->data, at->rows, step, at->width, into);
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

static bool goes_by_rows(const work *job) { return job->kind != APART && job->kind != VAR; }

static void reduce_rows(const work *job, const char *data, npy_intp rows, double *into) {
    const npy_intp count = job->fold->count, row = count * TYPE_SIZE[job->fold->type];
    if (job->kind <= SQUARES)
        (job->kind == SQUARES ? job->run->squares_of_rows : job->run->sums)(data, rows, count, into);
    else if (job->kind == PRODUCT)
        for (npy_intp i = 0; i < rows; i++)
            into[i] = job->run->product(data + i * row, count);
    else
        job->run->extremes(data, rows, count, job->kind == LARGEST, into);
}

static void join_sums(double *made, npy_intp width, npy_intp count, npy_intp step) {
    for (npy_intp begin = 0; begin < width; begin += STRIP) {
        double lost[STRIP];
        const npy_intp columns = width - begin < STRIP ? width - begin : STRIP;
        memset(lost, 0, (size_t)columns * sizeof *lost);
        for (npy_intp row = 1; row < count; row++)
            for (npy_intp j = 0; j < columns; j++) {
                double before = made[begin + j], x = made[row * step + begin + j], after = before + x, part = after - before;
                lost[j] += (before - (after - part)) + (x - part);
                made[begin + j] = after;
            }
        for (npy_intp j = 0; j < columns; j++)
            made[begin + j] += lost[j] == lost[j] ? lost[j] : 0;
    }
}

static void join_rows(const work *job, double *made, int64_t *places, npy_intp width, npy_intp count, npy_intp step) {
    if (job->kind <= VAR) {
        join_sums(made, width, count, step);
        return;
    }
    for (npy_intp row = 1; row < count; row++)
        for (npy_intp j = 0; j < width; j++) {
            const npy_intp k = row * step + j;
            const double x = made[k], best = made[j];
            if (job->kind == PRODUCT) {
                made[j] = product_of(job->fold->type, best, x);
                continue;
            }
            const bool better = job->kind == LARGEST ? x > best : x < best, alike = x == best || (x != x && best != best);
            if (better || (x != x && best == best) || (alike && places && places[k] < places[j])) {
                made[j] = x;
                if (places)
                    places[j] = places[k];
            }
        }
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

/* A sum beyond the dtype is infinite, and so is its mean, as in PyTorch; half types are summed as floats. */
static void write_results(const work *job, const double *parts, npy_intp to, npy_intp count) {
    const bool first_rounded = job->type != TYPE_F64 && job->kind == MEAN;
    char *made = job->made + to * TYPE_SIZE[job->type];
    if (job->type == TYPE_F32)
        values_f32(parts, (float *)made, count, first_rounded, job->divisor, job->root);
    else if (job->type != TYPE_F64)
        values_half(parts, made, count, first_rounded, job->divisor, job->root, job->type);
    else if ((const char *)parts != made)
        values_f64(parts, (double *)made, count, false, job->divisor, job->root);
}

static npy_intp few_of(native_type type, what kind, bool with_places) {
    const bool at_once = kind != APART && kind != VAR && kind != PRODUCT && !with_places;
    return !at_once ? FEW : type == TYPE_F64 ? FEW_DOUBLES : FEW_FLOATS;
}

static work work_of(const native_fold *of, what kind, bool with_places) {
    work job = {.fold = of, .run = &loops->of[of->type], .kind = kind, .type = of->type, .divisor = 1};
    job.cut = native_cut_fold(of, STRIP, few_of(of->type, kind, with_places));
    return job;
}

/* An array that is dense in some order, or one of rows that are apart. */
static bool fold_anywhere(native_fold *of, PyObject *x, what kind, bool with_places, PyObject *const *given) {
    const native_type type = native_array_type(x);
    if (native_fold_around(of, x, type, given[DIM], given[KEEPDIM]))
        return !with_places || of->front == 1;
    if (native_fold_slices(of, x, type, given[DIM], given[KEEPDIM]))
        return !with_places || of->front == 1;
    return (is_real(type) || (native_is_half(type) && kind <= SQUARES)) &&
           native_fold_apart(of, x, type, given[DIM], given[KEEPDIM], few_of(type, kind, with_places));
}

/* The parts of a job are in the room then. */
static bool reduce_to_parts(work *job, const native_fold *of, what kind, const double *centre, room *space) {
    *job = work_of(of, kind, false);
    job->centre = centre;
    return reduce(job, space);
}

/* A new array of the reduced values, divided by `divisor`. */
static PyObject *reduced(const native_fold *of, what kind, const double *centre, double divisor, bool root) {
    PyArrayObject *made = native_empty(of->ndim, of->shape, of->type);
    work job = work_of(of, kind, false);
    room space;
    if (!made)
        return NULL;
    job.centre = centre;
    job.made = PyArray_BYTES(made);
    job.divisor = divisor;
    job.root = root;
    if (!reduce(&job, &space))
        Py_CLEAR(made);
    return (PyObject *)made;
}

/* The same of parts that are in a room. */
static PyObject *values_of(work *job, double divisor, bool root) {
    PyArrayObject *made = native_empty(job->fold->ndim, job->fold->shape, job->type);
    if (made) {
        job->made = PyArray_BYTES(made);
        job->divisor = divisor;
        job->root = root;
        write_from_parts(job, NULL);
    }
    return (PyObject *)made;
}

/* What lies otherwise comes again in row-major order, and has the bits of that. */
static bool is_dense(PyObject *x) { return native_array_type(x) != TYPE_NONE && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x); }

/* Where kept and reduced dims lie in turns; NULL without an exception where it is not for a copy either. */
static PyObject *reduced_copy(native_fold *of, PyObject *x, what kind, PyObject *const *given, bool root) {
    const native_type type = native_array_type(x);
    if (!(is_real(type) || (native_is_half(type) && kind < LARGEST)) || !native_fold_copied(of, x, type, given[DIM], given[KEEPDIM]))
        return NULL;
    PyObject *made = reduced(of, kind, NULL, kind == MEAN ? (double)of->count : 1, root);
    Py_DECREF(of->array);
    return made;
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
    if (!options(args, nargs, kwnames, DTYPE + 1, given))
        return NULL;
    if (!fold_anywhere(&of, args[0], kind, false, given))
        return native_is_none(given[DTYPE]) && is_dense(args[0]) ? reduced_copy(&of, args[0], kind, given, false) : NULL;
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
    return reduced(&of, kind, NULL, kind == MEAN ? (double)(of.front * of.count) : 1, false);
}

/* Half types by way of floats. */
static PyObject *run_product(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS], *made = NULL;
    native_fold of;
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if ((type > TYPE_F16 && type != TYPE_I64) || !options(args, nargs, kwnames, DTYPE + 1, given) || !native_is_none(given[DTYPE]))
        return NULL;
    const bool half = native_is_half(type);
    PyObject *x = half ? native_converted((PyArrayObject *)args[0], type, TYPE_F32) : Py_NewRef(args[0]);
    if (x && (native_fold_around(&of, x, half ? TYPE_F32 : type, given[DIM], given[KEEPDIM]) ||
              native_fold_slices(&of, x, half ? TYPE_F32 : type, given[DIM], given[KEEPDIM])))
        made = type == TYPE_I64 ? native_integer_product(&of) : reduced(&of, PRODUCT, NULL, 1, false);
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
    if (!options(args, nargs, kwnames, KEEPDIM + 1, given) || (asked->with_values && !given[DIM]) ||
        !fold_anywhere(&of, args[0], asked->kind, true, given) ||
        (native_is_none(given[DIM]) && !PyArray_IS_C_CONTIGUOUS(of.array))) /* places among all are those in row-major order */
        return NULL;
    if (!is_real(of.type))
        return native_integer_place(&of, asked->kind == LARGEST, asked->with_values);
    PyArrayObject *places = native_empty(of.ndim, of.shape, TYPE_I64);
    PyArrayObject *values = places && asked->with_values ? native_empty(of.ndim, of.shape, of.type) : NULL;
    PyObject *made = NULL;
    if (places && (values || !asked->with_values)) {
        work job = work_of(&of, asked->kind, true);
        room space;
        job.made = values ? PyArray_BYTES(values) : NULL;
        job.places = PyArray_DATA(places);
        if (reduce(&job, &space))
            made = values ? PyTuple_Pack(2, values, places) : Py_NewRef(places);
    }
    Py_XDECREF(values);
    Py_XDECREF(places);
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
    const npy_intp results = of->outer * of->inner, count = of->front * of->count;
    work job;
    room space;
    for (npy_intp i = 0; i < results; i++) {
        const double mean = *part_of(means, i) / (double)count;
        centre[i] = of->type == TYPE_F64 ? mean : (float)mean;
    }
    for (npy_intp k = 1; k < of->front; k++) /* pieces find theirs by their own place */
        memcpy(centre + k * results, centre, (size_t)results * sizeof *centre);
    if (!reduce_to_parts(&job, of, APART, centre, &space))
        return false;
    for (npy_intp i = 0; i < results; i++)
        missed[i] = *part_of(&job, i) / (double)count;
    PyMem_RawFree(space.heap);
    return true;
}

/* Of the squares of distances from a centre that misses the mean by so much: nothing where they differ by their rounding. */
static double squares_about_mean(const native_fold *of, double squares, double missed) {
    const double less = (double)(of->front * of->count) * missed * missed;
    if (squares <= less && squares < INFINITY)
        return 0;
    return squares > less ? squares - less : squares; /* also infinities and NaN */
}

/* Squares of a float past 2**64, or under 2**-52, leave what a float can hold. */
static bool is_in_range(const native_fold *of, double squares) { return squares < 1e34 && squares > 2e-31 * (double)(of->front * of->count); }

/* Adds to each sum the square of how far an element is from its centre, or from the one that all have. */
static void add_squares(const native_fold *of, npy_intp from, npy_intp width, const double *centre, bool one, double *sums) {
    const char *data = PyArray_BYTES(of->array) + from * TYPE_SIZE[of->type];
    const ptrdiff_t steps[2] = {TYPE_SIZE[of->type], sizeof(float)};
    float x[STRIP];
    if (of->type == TYPE_F32)
        memcpy(x, data, (size_t)width * sizeof *x);
    else
        PICK(cast_loops)->cast[of->type][TYPE_F32]((char *const[]){(char *)data, (char *)x}, steps, width);
    for (npy_intp j = 0; j < width; j++) {
        const double away = x[j] - centre[one ? 0 : j];
        sums[j] += away * away;
    }
}

/* Sums of squares that left the range of float, of a row or of columns from `first` on, once more in double, as PyTorch's all are. */
static void mend_squares(const work *job, npy_intp first, npy_intp width, const double *centre, const double *missed) {
    const native_fold *of = job->fold;
    const npy_intp inner = of->inner, start = first / inner * of->count * inner + first % inner, wide = inner > 1 ? width : STRIP;
    const npy_intp whole = of->outer * of->count; /* elements of each of the front, which has no inner ones */
    double sums[STRIP];
    memset(sums, 0, (size_t)(wide < of->count * inner ? wide : of->count * inner) * sizeof *sums);
    for (npy_intp row = 0; inner > 1 && row < of->count; row++)
        add_squares(of, start + row * inner, width, centre + first, false, sums);
    for (npy_intp k = 0; inner == 1 && k < of->front; k++)
        for (npy_intp i = 0; i < of->count; i += STRIP)
            add_squares(of, start + k * whole + i, of->count - i < STRIP ? of->count - i : STRIP, centre + first, true, sums);
    for (npy_intp j = 1; inner == 1 && j < STRIP && j < of->count; j++)
        sums[0] += sums[j];
    for (npy_intp j = 0; j < width; j++)
        *part_of(job, first + j) = squares_about_mean(of, sums[j], missed[first + j]);
}

static void mend_all_squares(const work *job, const double *centre, const double *missed) {
    const native_fold *of = job->fold;
    const npy_intp results = of->outer * of->inner;
    for (npy_intp first = 0, width; first < results; first += width) {
        const npy_intp rest = of->inner - first % of->inner;
        bool good = true;
        width = rest < STRIP ? rest : STRIP;
        for (npy_intp j = 0; j < width; j++)
            good &= is_in_range(of, *part_of(job, first + j));
        if (!good)
            mend_squares(job, first, width, centre, missed);
    }
}

static PyObject *var_of(const native_fold *of, double correction, bool root, bool with_mean) {
    work job;
    room space;
    if (!reduce_to_parts(&job, of, MEAN, NULL, &space))
        return NULL;
    const double count = (double)(of->front * of->count);
    PyObject *mean = with_mean ? values_of(&job, count, false) : NULL, *made = NULL;
    const npy_intp results = of->outer * of->inner;
    double *centre = PyMem_RawMalloc((size_t)(results * (of->front + 1)) * sizeof(double)), *missed = centre + results * of->front;
    if (!centre)
        PyErr_NoMemory();
    const bool found = centre && (mean || !with_mean) && find_centres(of, &job, centre, missed);
    PyMem_RawFree(space.heap);
    if (found && reduce_to_parts(&job, of, VAR, centre, &space)) {
        bool good = true;
        for (npy_intp i = 0; i < results; i++) {
            double *part = part_of(&job, i);
            *part = squares_about_mean(of, *part, missed[i]);
            good &= is_in_range(of, *part);
        }
        if (!good && (of->type == TYPE_F32 || of->type == TYPE_BF16))
            mend_all_squares(&job, centre, missed);
        made = values_of(&job, count > correction ? count - correction : 0, root);
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

PyObject *native_spread_along(PyObject *x, double correction, bool root, bool with_mean, PyObject *dim, PyObject *keepdim) {
    native_fold of;
    const native_type type = native_array_type(x);
    const bool lies = !is_integer(type) && native_fold_around(&of, x, type, dim, keepdim);
    if (!lies && (is_integer(type) || !is_dense(x) || !native_fold_copied(&of, x, type, dim, keepdim)))
        return NULL;
    PyObject *made = var_of(&of, correction, root, with_mean);
    if (!lies)
        Py_DECREF(of.array);
    return made;
}

static PyObject *run_var(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    if (!options(args, nargs, kwnames, OPTIONS, given) || given[DTYPE] || !given[CORRECTION] || !given[ROOT])
        return NULL;
    double correction = PyFloat_AsDouble(given[CORRECTION]);
    if (correction == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    return native_spread_along(args[0], correction, given[ROOT] == Py_True, kernel->data != NULL, given[DIM], given[KEEPDIM]);
}

PyObject *native_reduced_along(PyObject *x, native_extent extent, PyObject *dim, PyObject *keepdim) {
    static const what KINDS[] = {[EXTENT_SUM] = SUM, [EXTENT_LARGEST] = LARGEST, [EXTENT_SMALLEST] = SMALLEST, [EXTENT_EUCLID] = SQUARES};
    PyObject *const given[OPTIONS] = {[DIM] = dim, [KEEPDIM] = keepdim};
    const bool root = extent == EXTENT_EUCLID;
    native_fold of;
    if (fold_anywhere(&of, x, KINDS[extent], false, given))
        return is_integer(of.type) ? NULL : reduced(&of, KINDS[extent], NULL, 1, root);
    return reduced_copy(&of, x, KINDS[extent], given, root);
}

int reduce_init(void) {
    static const char *const words[OPTIONS] = {"dim", "keepdim", "dtype", "correction", "root"};
    loops = PICK(reduce_loops);
    return native_intern(names, words, OPTIONS);
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
