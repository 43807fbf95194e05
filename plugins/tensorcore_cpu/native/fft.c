/* Fourier transforms of moderate sizes: what they take, plans, lines over threads. Longer ones are SciPy's. */
#include "fft.h"

#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(fft_loops, fft_loops);
static const fft_loops *loops;

enum { DIMS, FORWARD, SCALE, SIZE, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dims", "forward", "scale", "size"};

enum { LANES = 16 }; /* the most of any set */
enum { GRAIN = 1 << 14, NEAR = 1 << 13 }; /* elements a thread; bytes */

/* Plans: the ones used last, by size and type, under the GIL; a run holds on to its own. */

typedef struct kept_plan {
    fft_plan plan;
    struct kept_plan *inner; /* of the plan's own inner one */
    bool pairs, wide;
    int users;
    unsigned long used;
    char *memory;
} kept_plan;

enum { KEPT = 32 };
static kept_plan *kept[KEPT];
static unsigned long clock_of_uses;

static void drop(kept_plan *one) {
    if (--one->users == 0) {
        if (one->inner)
            drop(one->inner);
        free(one->memory);
        free(one);
    }
}

/* The factors of n up to a prime, odd ones first, then fours, and a two; false, without any, where there is a larger one. */
static bool split(fft_plan *plan, ptrdiff_t n, int most) {
    plan->n = n;
    plan->count = 0;
    ptrdiff_t rest = n;
    for (int p = 3; p <= most && rest > 1; p += 2)
        for (; rest % p == 0; rest /= p) /* a product of smaller ones is gone by then */
            plan->factors[plan->count++] = p;
    for (int p = 4; p >= 2; p -= 2)
        for (; rest % p == 0; rest /= p)
            plan->factors[plan->count++] = p;
    if (rest != 1)
        plan->count = 0;
    return rest == 1;
}

static bool has_loop(int p) { return p <= 5; }

/* The size of the transforms that make a convolution of n numbers with a chirp: of factors that have loops. */
static ptrdiff_t inner_size(ptrdiff_t n) {
    fft_plan plan;
    ptrdiff_t size = 2 * n - 1;
    while (!split(&plan, size, 5))
        size++;
    return size;
}

/* e^(-2 pi i k / n) to the last place of both types: of an angle of at most an eighth of a turn. */
static void put_root(char **to, bool wide, ptrdiff_t k, ptrdiff_t n) {
    k %= n;
    const ptrdiff_t eighth = 8 * k / n;
    const ptrdiff_t turned = eighth == 0 || eighth == 7 ? 0 : (eighth + 1) / 2; /* quarters of a turn that are taken off */
    const long double angle = 2 * 3.14159265358979323846264338327950288L * (4 * k - (eighth == 7 ? 4 : turned) * n) / (4 * n);
    const long double c = cosl(angle), s = -sinl(angle);
    const long double real[] = {c, s, -c, -s}, imaginary[] = {s, -c, -s, c};
    if (wide) {
        double *one = (double *)*to;
        one[0] = (double)real[turned];
        one[1] = (double)imaginary[turned];
    } else {
        float *one = (float *)*to;
        one[0] = (float)real[turned];
        one[1] = (float)imaginary[turned];
    }
    *to += wide ? 16 : 8;
}

static kept_plan *find_plan(ptrdiff_t n, bool pairs, bool wide);

/* The transform of a chirp's inverse over the inner size, in double, with `work` for two lines of that and what a transform needs. */
static void put_filter(char **to, bool wide, ptrdiff_t n, const fft_plan *inner, double *work) {
    double *line = work, *made = line + 2 * inner->n;
    memset(line, 0, (size_t)inner->n * 2 * sizeof *line);
    for (ptrdiff_t k = 0; k < n; k++) {
        char *at = (char *)(line + 2 * k);
        put_root(&at, true, k * k, 2 * n);
        line[2 * k + 1] = -line[2 * k + 1];
        if (k)
            memcpy(line + 2 * (inner->n - k), line + 2 * k, 2 * sizeof *line);
    }
    const fft_way way = {inner, FFT_COMPLEX, true, 1 / (double)inner->n, inner->n, 16, 16};
    const char *from = (const char *)line;
    char *into = (char *)made;
    loops->one[true](&way, &from, &into, 1, made + 2 * inner->n);
    for (ptrdiff_t k = 0; k < 2 * inner->n; k++, *to += wide ? 8 : 4) {
        if (wide)
            *(double *)*to = made[k];
        else
            *(float *)*to = (float)made[k];
    }
}

/* A chirp and its filter. */
static bool put_chirp(kept_plan *made, char **to) {
    fft_plan *plan = &made->plan;
    const ptrdiff_t size = inner_size(plan->n);
    kept_plan *in_double = find_plan(size, false, true);
    made->inner = in_double ? find_plan(size, false, made->wide) : NULL;
    double *work = made->inner ? malloc((size_t)(4 * size + 4 * (size + 1)) * sizeof *work) : NULL;
    if (work) {
        plan->inner = &made->inner->plan;
        plan->chirp = *to;
        for (ptrdiff_t k = 0; k < plan->n; k++)
            put_root(to, made->wide, k * k, 2 * plan->n);
        plan->filter = *to;
        put_filter(to, made->wide, plan->n, &in_double->plan, work);
        free(work);
    }
    if (in_double)
        drop(in_double);
    return work != NULL;
}

static kept_plan *new_plan(ptrdiff_t n, bool pairs, bool wide) {
    kept_plan *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    fft_plan *plan = &made->plan;
    made->pairs = pairs;
    made->wide = wide;
    made->users = 1;
    const bool chirped = !split(plan, n, FFT_PRIME);
    size_t count = (size_t)((pairs ? n : 0) + (chirped ? n + inner_size(n) : 0));
    for (ptrdiff_t i = 0, length = n; i < plan->count; length /= plan->factors[i++])
        count += (size_t)(length / plan->factors[i] * (plan->factors[i] - 1) + (has_loop(plan->factors[i]) ? 0 : plan->factors[i]));
    char *at = made->memory = malloc((count + 1) * (wide ? 16 : 8));
    if (!at || (chirped && !put_chirp(made, &at))) {
        drop(made);
        return NULL;
    }
    for (ptrdiff_t i = 0, length = n; i < plan->count; length /= plan->factors[i++]) {
        const ptrdiff_t p = plan->factors[i];
        plan->twiddles[i] = at;
        for (ptrdiff_t k = 0; k < length / p; k++)
            for (ptrdiff_t j = 1; j < p; j++)
                put_root(&at, wide, j * k, length);
        plan->roots[i] = at;
        for (ptrdiff_t k = 0; k < p && !has_loop((int)p); k++)
            put_root(&at, wide, k, p);
    }
    plan->halves = pairs ? at : NULL;
    for (ptrdiff_t k = 0; k < n && pairs; k++)
        put_root(&at, wide, k, 2 * n);
    return made;
}

/* The plan for n numbers, to be dropped after use; NULL with an exception. */
static kept_plan *find_plan(ptrdiff_t n, bool pairs, bool wide) {
    int oldest = 0;
    kept_plan *one = NULL;
    for (int i = 0; i < KEPT && !one; i++) {
        if (kept[i] && kept[i]->plan.n == n && kept[i]->pairs == pairs && kept[i]->wide == wide)
            one = kept[i];
        else if (!kept[i] || (kept[oldest] && kept[i]->used < kept[oldest]->used))
            oldest = i;
    }
    if (!one) {
        if (!(one = new_plan(n, pairs, wide)))
            return (kept_plan *)PyErr_NoMemory();
        if (kept[oldest])
            drop(kept[oldest]);
        kept[oldest] = one;
    }
    one->used = ++clock_of_uses;
    one->users++;
    return one;
}

/* One dim */

typedef struct {
    fft_way way;
    fft_loop one, many;
    int lanes, ndim; /* dims that count lines */
    npy_intp lines, group, sizes[NATIVE_DIMS], from_steps[NATIVE_DIMS], to_steps[NATIVE_DIMS];
    const char *from;
    char *to;
    size_t work;
    bool failed;
} dim_run;

static void run_lines(void *context, npy_intp begin, npy_intp end) {
    dim_run *run = context;
    char near[NEAR] __attribute__((aligned(64))), *work = near;
    if (run->work > NEAR && !(work = native_scratch(run->work))) {
        __atomic_store_n(&run->failed, true, __ATOMIC_RELAXED);
        return;
    }
    const npy_intp last = end * run->group < run->lines ? end * run->group : run->lines;
    for (npy_intp line = begin * run->group; line < last;) {
        const char *from[LANES];
        char *to[LANES];
        npy_intp count = last - line < run->group ? last - line : run->group;
        const bool many = run->group > 1 && 4 * count >= run->lanes; /* fewer are faster one by one */
        count = many ? count : 1;
        for (npy_intp i = 0; i < count; i++) {
            npy_intp rest = line + i, in = 0, out = 0;
            for (int d = run->ndim - 1; d >= 0; d--) {
                const npy_intp at = d ? rest % run->sizes[d] : rest;
                rest = d ? rest / run->sizes[d] : 0;
                in += at * run->from_steps[d];
                out += at * run->to_steps[d];
            }
            from[i] = run->from + in;
            to[i] = run->to + out;
        }
        for (npy_intp i = count; many && i < run->lanes; i++)
            from[i] = from[count - 1];
        (many ? run->many : run->one)(&run->way, from, to, (int)count, work);
        line += count;
    }
    if (work != near)
        native_scratch_free(work, run->work);
}

/* How many complex numbers a transform of `size` makes at a time, where real ones come in pairs. */
static ptrdiff_t complex_size(fft_kind kind, ptrdiff_t size) {
    return (kind == FFT_REAL_TO_HALF || kind == FFT_HALF_TO_REAL) && size % 2 == 0 ? size / 2 : size;
}

/* Transforms along a dim, from one array into another or into itself; false with an exception. */
static bool run_dim(PyArrayObject *x, PyArrayObject *made, int dim, fft_kind kind, ptrdiff_t size, bool forward, double scale) {
    const int type = PyArray_TYPE(made);
    const bool wide = type == NPY_DOUBLE || type == NPY_CDOUBLE;
    const ptrdiff_t n = complex_size(kind, size);
    kept_plan *plan = find_plan(n, n != size, wide);
    if (!plan)
        return false;
    dim_run run = {
        .way = {&plan->plan, kind, forward, scale, size, PyArray_STRIDE(x, dim), PyArray_STRIDE(made, dim)},
        .one = loops->one[wide], .many = loops->many[wide], .lanes = loops->lanes[wide], .lines = 1,
        .from = PyArray_BYTES(x), .to = PyArray_BYTES(made),
    };
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (d != dim) {
            run.sizes[run.ndim] = PyArray_DIM(x, d);
            run.from_steps[run.ndim] = PyArray_STRIDE(x, d);
            run.to_steps[run.ndim++] = PyArray_STRIDE(made, d);
            run.lines *= PyArray_DIM(x, d);
        }
    const bool many = 4 * run.lines >= run.lanes;
    run.group = many ? run.lanes : 1;
    run.work = (size_t)(4 * fft_room(&plan->plan) * run.group * (wide ? 8 : 4));
    const npy_intp cost = n * run.group;
    native_parallel((run.lines + run.group - 1) / run.group, cost < GRAIN ? GRAIN / cost : 1, run_lines, &run);
    drop(plan);
    if (run.failed)
        PyErr_NoMemory();
    return !run.failed;
}

/* The kernels */

typedef struct {
    int count, dims[NATIVE_DIMS];
    bool forward;
    double scale;
    npy_intp size;
} call;

/* Whether each of the sizes along the dims is made here: sizes of the last one as `last` says. */
static bool made_here(PyArrayObject *x, const call *one, fft_kind last) {
    fft_plan plan;
    for (int i = 0; i < one->count; i++) {
        const bool ends = i == one->count - 1;
        const npy_intp size = ends ? one->size : PyArray_DIM(x, one->dims[i]);
        const npy_intp n = complex_size(ends ? last : FFT_COMPLEX, size);
        if (size < 1 || size > FFT_MOST || (n > FFT_CHIRP && !split(&plan, n, FFT_PRIME)))
            return false;
    }
    return true;
}

/* Looks at everything of a call but the array's type. */
static bool read_call(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, call *one) {
    PyObject *options[OPTIONS];
    if (nargs != 1 || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) || !options[DIMS] ||
        !options[FORWARD] || !options[SCALE] || !PyTuple_CheckExact(options[DIMS]) || !PyFloat_CheckExact(options[SCALE]) ||
        !PyBool_Check(options[FORWARD]) || !PyArray_CheckExact(args[0]))
        return false;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int ndim = PyArray_NDIM(x);
    one->count = (int)PyTuple_GET_SIZE(options[DIMS]);
    if (ndim > NATIVE_DIMS || one->count < 1 || one->count > ndim || !PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x) ||
        !PyArray_SIZE(x))
        return false;
    for (int i = 0; i < one->count; i++) {
        PyObject *dim = PyTuple_GET_ITEM(options[DIMS], i);
        const long at = PyLong_CheckExact(dim) ? PyLong_AsLong(dim) : -1;
        if (at < 0 || at >= ndim) {
            PyErr_Clear();
            return false;
        }
        one->dims[i] = (int)at;
    }
    one->forward = options[FORWARD] == Py_True;
    one->scale = PyFloat_AS_DOUBLE(options[SCALE]);
    one->size = PyArray_DIM(x, one->dims[one->count - 1]);
    if (options[SIZE]) {
        one->size = PyLong_CheckExact(options[SIZE]) ? PyLong_AsSsize_t(options[SIZE]) : -1;
        if (one->size < 1) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

/* Whether the transform is as long as the last of the dims: only halves of spectra say another size. */
static bool of_own_size(PyArrayObject *x, const call *one) { return one->size == PyArray_DIM(x, one->dims[one->count - 1]); }

static PyArrayObject *new_array(PyArrayObject *x, int dim, npy_intp size, int number) {
    npy_intp shape[NATIVE_DIMS], bytes = 1;
    PyArray_Descr *descr = PyArray_DescrFromType(number);
    if (!descr)
        return NULL;
    memcpy(shape, PyArray_DIMS(x), (size_t)PyArray_NDIM(x) * sizeof *shape);
    shape[dim] = size;
    for (int i = 0; i < PyArray_NDIM(x); i++)
        bytes *= shape[i];
    bytes *= PyDataType_ELSIZE(descr);
    if (bytes >= NATIVE_LINES)
        return native_memory_array(descr, PyArray_NDIM(x), shape, NULL, (size_t)bytes);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(x), shape, NULL, NULL, 0, NULL);
}

/* Complex transforms along the first `count` of the dims, in place but for the first, which reads `x`. */
static bool run_dims(PyArrayObject *x, PyArrayObject *made, const call *one, int count, double scale) {
    for (int i = 0; i < count; i++) {
        const bool real = !PyArray_ISCOMPLEX(x);
        if (!run_dim(x, made, one->dims[i], real ? FFT_REAL_TO_COMPLEX : FFT_COMPLEX, PyArray_DIM(x, one->dims[i]), one->forward,
                     i == count - 1 ? scale : 1))
            return false;
        x = made;
    }
    return true;
}

static PyObject *finished(PyArrayObject *made, bool good) {
    if (!good)
        Py_CLEAR(made);
    return (PyObject *)made;
}

static PyObject *run_c2c(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    call one;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!read_call(args, nargs, kwnames, &one) || !of_own_size(x, &one) || !made_here(x, &one, FFT_COMPLEX))
        return NULL;
    const int type = PyArray_TYPE(x);
    const bool wide = type == NPY_DOUBLE || type == NPY_CDOUBLE;
    if (!wide && type != NPY_FLOAT && type != NPY_CFLOAT)
        return NULL;
    PyArrayObject *made = new_array(x, one.dims[0], PyArray_DIM(x, one.dims[0]), wide ? NPY_CDOUBLE : NPY_CFLOAT);
    return finished(made, made && run_dims(x, made, &one, one.count, one.scale));
}

static PyObject *run_r2c(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    call one;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!read_call(args, nargs, kwnames, &one) || !of_own_size(x, &one) || !made_here(x, &one, FFT_REAL_TO_HALF) ||
        (PyArray_TYPE(x) != NPY_FLOAT && PyArray_TYPE(x) != NPY_DOUBLE))
        return NULL;
    const int last = one.dims[one.count - 1];
    PyArrayObject *made = new_array(x, last, one.size / 2 + 1, PyArray_TYPE(x) == NPY_DOUBLE ? NPY_CDOUBLE : NPY_CFLOAT);
    return finished(made, made &&
                              run_dim(x, made, last, FFT_REAL_TO_HALF, one.size, one.forward, one.count == 1 ? one.scale : 1) &&
                              run_dims(made, made, &one, one.count - 1, one.scale));
}

static PyObject *run_c2r(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    call one;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!read_call(args, nargs, kwnames, &one) || !made_here(x, &one, FFT_HALF_TO_REAL) ||
        (PyArray_TYPE(x) != NPY_CFLOAT && PyArray_TYPE(x) != NPY_CDOUBLE))
        return NULL;
    const int last = one.dims[one.count - 1];
    if (PyArray_DIM(x, last) != one.size / 2 + 1)
        return NULL;
    PyArrayObject *between = one.count == 1 ? (PyArrayObject *)Py_NewRef(x)
                                            : new_array(x, last, PyArray_DIM(x, last), PyArray_TYPE(x));
    PyArrayObject *made = between ? new_array(x, last, one.size, PyArray_TYPE(x) == NPY_CDOUBLE ? NPY_DOUBLE : NPY_FLOAT) : NULL;
    const bool good = made && run_dims(x, between, &one, one.count - 1, 1) &&
                      run_dim(between, made, last, FFT_HALF_TO_REAL, one.size, one.forward, one.scale);
    Py_XDECREF(between);
    return good ? (PyObject *)made : finished(made, false);
}

int fft_init(void) {
    loops = PICK(fft_loops);
    for (int i = 0; i < OPTIONS; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(NAMES[i])))
            return -1;
    return 0;
}

const native_spec fft_kernels[] = {
    {"fft_c2c", run_c2c, NULL},
    {"fft_r2c", run_r2c, NULL},
    {"fft_c2r", run_c2r, NULL},
    {NULL, NULL, NULL},
};
