/* Matrix products of float and double numbers in any layout: matmul, linear, addmm. */
#include "gemm.h"

#include "blas.h"
#include "gemm_small.h"
#include "native.h"

#include <stdlib.h>

DECLARE_LOOPS(gemm_loops, gemm_loops);

static const gemm_loops *loops;

enum { BETA, ALPHA, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    WORK = 1 << 22,          /* multiplications that are worth a second thread */
    PACKED_BYTES = 4 << 20,  /* of the right side at a time: it stays in the last cache */
    WHOLE_BYTES = 300 << 10, /* rows of the left side that stay in one piece, and so in the second cache */
    LEFT_COLUMNS = 256,      /* with more of them packing the left side pays; with fewer, reading it where it lies took 2 to 8 % less */
    LEFT_ALIAS = 4096,       /* bytes from row to row that lie in the same lines of the first cache */
    PACKING_COLUMNS = 8,     /* packing a row takes about as long as multiplying it by so many columns */
    ZEROS_WORK = 1 << 20,    /* multiplications for which it pays to look for zeros on the left side, */
    ZEROS_COLUMNS = 64,      /* where each of its elements is multiplied so often: */
    ZEROS_LOOKS = 16,        /* of four times so many elements */
    ZEROS_SEEN = 8,          /* so many have to be zeros, */
    ZEROS_ROWS = 2,          /* and then half of what one looks at in so many of as many rows */
    DOT_ROWS = 12,           /* at most so many rows, with sums of at least so many numbers, go without any packing */
    DOT_INNER = 128,
    DOT_WORK = 1 << 18,      /* multiplications of these, which wait for memory, that are worth a second thread */
};

static ptrdiff_t at_most(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t at_least(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }
static ptrdiff_t parts_of(ptrdiff_t count, ptrdiff_t most) { return (count + most - 1) / most; }
static ptrdiff_t rounded_up(ptrdiff_t count, ptrdiff_t unit) { return parts_of(count, unit) * unit; }

/* One product */

typedef struct {
    const gemm_job *job;
    const gemm_real_loops *real;
    size_t size;
    gemm_part part;      /* all rows; the columns and the inner part at hand */
    bool left_lies;      /* the left side is read where it lies */
    bool lists;          /* its rows may be lists of what is not zero */
    bool zeros;          /* all rows of a tile may be zero here and there */
    bool strips;         /* its rows lie side by side, and are packed in strips */
    char *right;         /* packed, NULL where one piece has all rows and packs panel by panel */
    ptrdiff_t rows, columns, groups; /* of one piece, and pieces beside each other */
    _Atomic bool failed;
} product;

static void pack_body(void *context, npy_intp begin, npy_intp end) {
    product *all = context;
    const ptrdiff_t width = all->real->width;
    gemm_part part = all->part;
    part.column += begin * width;
    part.columns = at_most(end * width, all->part.columns) - begin * width;
    all->real->pack_right(all->job, &part, all->right + begin * width * part.inner * (ptrdiff_t)all->size);
}

/* The rows that are packed after those of a part: further ones, or the first ones of the next inner part; none has no `inner`. */
static gemm_part part_after(const product *all, const gemm_part *part) {
    const ptrdiff_t row = part->row + all->rows;
    gemm_part next = *part;
    next.row = row < all->job->rows ? row : 0;
    next.rows = at_most(all->rows, all->job->rows - next.row);
    if (row >= all->job->rows) {
        next.first += part->inner;
        next.inner = at_most(part->inner, all->job->inner - next.first);
    }
    return next;
}

static void multiply_body(void *context, npy_intp begin, npy_intp end) {
    product *all = context;
    const gemm_real_loops *real = all->real;
    const ptrdiff_t left_bytes =
        all->left_lies ? 0 : rounded_up(all->rows * real->left_step * (ptrdiff_t)all->size, 64);
    const ptrdiff_t panel_width = real->width * (all->lists ? real->panels : 1);
    const ptrdiff_t panel_bytes = all->right ? 0 : rounded_up(all->part.inner * panel_width * (ptrdiff_t)all->size, 64);
    const ptrdiff_t lists_bytes = all->lists ? rounded_up(real->lists_bytes(all->rows, all->part.inner), 64) : 0;
    const ptrdiff_t live_bytes = all->zeros ? rounded_up(real->live_bytes(all->rows, all->part.inner), 64) : 0;
    const ptrdiff_t bytes = left_bytes + panel_bytes + lists_bytes + live_bytes;
    char *room = bytes ? aligned_alloc(64, (size_t)bytes) : NULL;
    if (!room && bytes) {
        all->failed = true;
        return;
    }
    char *left = all->left_lies ? NULL : room, *panel = room ? room + left_bytes : NULL;
    char *lists = room + left_bytes + panel_bytes;
    int32_t *live = (int32_t *)(lists + lists_bytes);
    const bool alone = end - begin == parts_of(all->job->rows, all->rows) * all->groups; /* else another thread may have it */
    ptrdiff_t packed = -1;
    bool listed = false, leaves_out = false;
    for (npy_intp i = begin; i < end; i++) {
        gemm_part part = all->part;
        const ptrdiff_t row = i / all->groups, group = i % all->groups;
        part.row = row * all->rows;
        part.rows = at_most(all->rows, all->job->rows - part.row);
        part.column += group * all->columns;
        part.columns = at_most(all->columns, all->part.columns - group * all->columns);
        if (left && packed != row) {
            real->pack_left(all->job, &part, left);
            listed = all->lists && real->list(&part, left, lists);
        }
        if (packed != row)
            leaves_out = all->zeros && !listed && real->find_live(all->job, &part, left, live);
        part.live = leaves_out ? live : NULL;
        packed = row;
        const gemm_part after = part_after(all, &part);
        const gemm_part *next = left && alone && all->job->left_row == 1 && after.inner > 0 ? &after : NULL;
        const char *right =
            all->right ? all->right + group * all->columns * part.inner * (ptrdiff_t)all->size : NULL;
        if (listed)
            real->multiply_lists(all->job, &part, left, right, panel, lists);
        else
            real->multiply(all->job, &part, left, right, panel, next);
    }
    free(room);
}

typedef struct {
    const gemm_job *job;
    const gemm_real_loops *real;
} dots_work;

static void dots_body(void *context, npy_intp begin, npy_intp end) {
    const dots_work *work = context;
    work->real->dots(work->job, begin, end);
}

/* Rows and columns of the pieces: those of all the ways to cut whose slowest thread is done first. Of two such ways the one
   that leaves the rows together, since nobody then waits until the right side is packed, else the one of more pieces, which
   leaves less to wait for when another program delays a thread. A left side that fits the second cache of each thread and is read
   where it lies costs none of them more for being read by all, nor for more pieces, but where each panel is fetched during the
   one before: of 256 columns in two halves the one took 165 us with a neighbour on its core, and the other 108. */
static void cut(product *all, ptrdiff_t columns, ptrdiff_t threads) {
    const gemm_real_loops *real = all->real;
    const bool whole = all->job->rows * all->part.inner * (ptrdiff_t)all->size <= WHOLE_BYTES;
    const bool free = whole && all->left_lies, fine = free && all->job->right_column != 1;
    const ptrdiff_t most = whole ? rounded_up(all->job->rows, real->height) : real->most_rows;
    const ptrdiff_t least = parts_of(all->job->rows, most), packing = free ? 0 : PACKING_COLUMNS;
    double shortest = -1;
    for (ptrdiff_t across = 1; across <= (fine ? 4 : 2) * threads; across *= 2)
        for (ptrdiff_t down = least; down < least + 2 * threads; down++) {
            const ptrdiff_t rows = at_most(rounded_up(parts_of(all->job->rows, down), real->height), most);
            const ptrdiff_t wide = rounded_up(parts_of(columns, across), real->width);
            const ptrdiff_t pieces = parts_of(all->job->rows, rows) * parts_of(columns, wide);
            const ptrdiff_t step = native_step(pieces, threads), rounds = parts_of(parts_of(pieces, step), threads) * step;
            const double time = (double)(rounds * rows) * (double)(wide + packing);
            const bool finer = fine ? rows >= all->job->rows : all->rows < all->job->rows;
            if (shortest < 0 || time < shortest || (time == shortest && finer)) {
                shortest = time;
                all->rows = rows;
                all->columns = wide;
            }
            if (threads == 1)
                return;
        }
}

static bool is_zero(native_type type, const gemm_job *job, ptrdiff_t row, ptrdiff_t k) {
    const ptrdiff_t at = row * job->left_row + k * job->left_inner;
    return type == TYPE_F32 ? ((const float *)job->left)[at] == 0 : ((const double *)job->left)[at] == 0;
}

/* Whether the left side seems to have many zeros, as behind a ReLU: a few looks tell that there are none. */
static bool has_zeros(native_type type, const gemm_job *job) {
    if (job->columns < ZEROS_COLUMNS || job->rows * job->columns * job->inner < ZEROS_WORK)
        return false;
    int zeros = 0;
    for (ptrdiff_t i = 0; i < 4 * ZEROS_LOOKS; i++)
        zeros += is_zero(type, job, i * 37 % (4 * ZEROS_LOOKS) * job->rows / (4 * ZEROS_LOOKS),
                         i * job->inner / (4 * ZEROS_LOOKS));
    return zeros >= ZEROS_SEEN;
}

/* Where it has, whether many of its rows seem to have many of them; what is zero in all rows, tiles leave out as well. */
static bool has_zero_rows(native_type type, const gemm_job *job) {
    int of_row[ZEROS_LOOKS] = {0}, columns = 0, rows = 0;
    for (ptrdiff_t j = 0; j < ZEROS_LOOKS; j++) {
        int zeros[ZEROS_LOOKS], here = 0;
        for (ptrdiff_t i = 0; i < ZEROS_LOOKS; i++)
            here += zeros[i] = is_zero(type, job, i * job->rows / ZEROS_LOOKS, (2 * j + 1) * job->inner / (2 * ZEROS_LOOKS));
        columns += here < ZEROS_LOOKS;
        for (ptrdiff_t i = 0; i < ZEROS_LOOKS; i++)
            of_row[i] += here < ZEROS_LOOKS && zeros[i];
    }
    for (ptrdiff_t i = 0; i < ZEROS_LOOKS; i++)
        rows += 2 * of_row[i] >= columns;
    return rows >= ZEROS_ROWS;
}

const gemm_real_loops *gemm_real(native_type type) { return &loops->real[type]; }

bool gemm_run(native_type type, const gemm_job *job) {
    const gemm_real_loops *real = &loops->real[type];
    if (job->rows <= DOT_ROWS && job->inner >= DOT_INNER && job->left_inner == 1 && job->right_inner == 1) {
        dots_work work = {job, real};
        native_parallel(job->columns, rounded_up(DOT_WORK / (job->rows * job->inner) + 1, 4), dots_body, &work);
        return true;
    }
    if (native_blas_run(type, job))
        return true;
    product all = {.job = job, .real = real, .size = TYPE_SIZE[type]};
    const ptrdiff_t threads = job->rows * job->columns * job->inner < WORK ? 1 : native_threads();
    const ptrdiff_t inner = parts_of(job->inner, parts_of(job->inner, real->most_inner));
    const ptrdiff_t most = PACKED_BYTES / (inner * (ptrdiff_t)all.size) / real->width * real->width;
    const ptrdiff_t columns = at_most(rounded_up(job->columns, real->width), most);
    all.part.inner = inner;
    const bool zeros = has_zeros(type, job);
    all.lists = zeros && has_zero_rows(type, job);
    all.strips = !all.lists && job->left_row == 1 && job->left_inner != 1;
    const ptrdiff_t left_step = all.strips ? job->left_inner : job->left_row;
    all.left_lies = !all.lists && real->reads_left && (all.strips || job->left_inner == 1) && job->columns <= LEFT_COLUMNS &&
                    left_step * (ptrdiff_t)all.size % LEFT_ALIAS;
    all.zeros = zeros && !all.strips;
    cut(&all, at_most(columns, job->columns), threads);
    const ptrdiff_t row_parts = parts_of(job->rows, all.rows);
    if (row_parts > 1) {
        all.right = aligned_alloc(64, (size_t)rounded_up(columns * inner * (ptrdiff_t)all.size, 64));
        if (!all.right)
            return false;
    }
    for (ptrdiff_t column = 0; column < job->columns && !all.failed; column += columns) {
        for (ptrdiff_t first = 0; first < job->inner && !all.failed; first += inner) {
            all.part = (gemm_part){0, job->rows, column, at_most(columns, job->columns - column), first,
                                   at_most(inner, job->inner - first), all.strips};
            all.groups = parts_of(all.part.columns, all.columns);
            const ptrdiff_t panels = parts_of(all.part.columns, real->width), pieces = row_parts * all.groups;
            if (all.right)
                native_parallel(panels, threads > 1 ? 2 : panels, pack_body, &all);
            native_parallel(pieces, threads > 1 ? 1 : pieces, multiply_body, &all);
        }
    }
    free(all.right);
    return !all.failed;
}

/* Batches */

typedef struct {
    native_type type;
    int ndim; /* of the batch */
    npy_intp shape[NATIVE_DIMS], left[NATIVE_DIMS], right[NATIVE_DIMS]; /* and its steps in elements */
    gemm_job job;
    _Atomic bool failed;
} batch;

static void batch_body(void *context, npy_intp begin, npy_intp end) {
    batch *all = context;
    const npy_intp size = TYPE_SIZE[all->type];
    for (npy_intp i = begin; i < end && !all->failed; i++) {
        gemm_job job = all->job;
        npy_intp rest = i, left = 0, right = 0;
        for (int d = all->ndim - 1; d >= 0; d--) {
            npy_intp at = rest % all->shape[d];
            rest /= all->shape[d];
            left += at * all->left[d];
            right += at * all->right[d];
        }
        job.left = (const char *)job.left + left * size;
        job.right = (const char *)job.right + right * size;
        job.made = (char *)job.made + i * job.rows * job.columns * size;
        if (!gemm_run(all->type, &job))
            all->failed = true;
    }
}

/* Arguments */

typedef struct {
    char *data;
    int ndim;
    npy_intp shape[NATIVE_DIMS], steps[NATIVE_DIMS]; /* in elements */
} operand;

static bool read_operand(PyObject *object, native_type type, bool turned, operand *made) {
    PyArrayObject *array = (PyArrayObject *)object;
    made->data = PyArray_BYTES(array);
    made->ndim = PyArray_NDIM(array);
    if (made->ndim < 2)
        return false;
    for (int i = 0; i < made->ndim; i++) {
        int from = turned && i >= made->ndim - 2 ? 2 * made->ndim - 3 - i : i;
        made->shape[i] = PyArray_DIM(array, from);
        made->steps[i] = PyArray_STRIDE(array, from) / TYPE_SIZE[type];
        if (!made->shape[i] || PyArray_STRIDE(array, from) % TYPE_SIZE[type])
            return false;
    }
    return true;
}

/* Makes rows of the dims in front, where one step goes through all of them; else leaves them. */
static void fold(operand *x) {
    npy_intp rows = 1, step = 0;
    for (int i = x->ndim - 2; i >= 0; i--) {
        if (x->shape[i] != 1) {
            if (rows == 1)
                step = x->steps[i];
            else if (x->steps[i] != step * rows)
                return;
            rows *= x->shape[i];
        }
    }
    x->shape[1] = x->shape[x->ndim - 1];
    x->steps[1] = x->steps[x->ndim - 1];
    x->shape[0] = rows;
    x->steps[0] = step;
    x->ndim = 2;
}

/* A product of two operands; NULL without an exception where it is not for us. */
static PyObject *multiply(native_type type, operand *x, operand *y, const void *before, ptrdiff_t before_row) {
    npy_intp shape[NATIVE_DIMS];
    int ndim = x->ndim > y->ndim ? x->ndim : y->ndim, dims = x->ndim;
    for (int i = 0; i < dims; i++)
        shape[i] = x->shape[i];
    if (y->ndim == 2) {
        shape[dims - 1] = y->shape[1];
        if (dims > 2)
            fold(x);
    }
    batch all = {.type = type, .ndim = (x->ndim > y->ndim ? x->ndim : y->ndim) - 2};
    npy_intp count = 1;
    for (int d = 0; d < all.ndim; d++) {
        const int a = d - (all.ndim + 2 - x->ndim), b = d - (all.ndim + 2 - y->ndim);
        const npy_intp mine = a < 0 ? 1 : x->shape[a], other = b < 0 ? 1 : y->shape[b];
        if (mine != other && mine != 1 && other != 1)
            return NULL;
        all.shape[d] = mine == 1 ? other : mine;
        all.left[d] = mine == 1 ? 0 : x->steps[a];
        all.right[d] = other == 1 ? 0 : y->steps[b];
        if (y->ndim > 2)
            shape[d] = all.shape[d];
        count *= all.shape[d];
    }
    gemm_job *job = &all.job;
    *job = (gemm_job){.rows = x->shape[x->ndim - 2], .inner = x->shape[x->ndim - 1], .columns = y->shape[y->ndim - 1],
                      .left = x->data, .left_row = x->steps[x->ndim - 2], .left_inner = x->steps[x->ndim - 1],
                      .right = y->data, .right_inner = y->steps[y->ndim - 2], .right_column = y->steps[y->ndim - 1],
                      .before = before, .before_row = before_row};
    const npy_intp work = job->rows * job->columns * job->inner;
    if (job->inner != y->shape[y->ndim - 2] ||
        (loops->real[type].slower_than_blas && work > 1 << 15) || (work > 1 << 12 && (job->columns < 4 || (job->rows == 1 && job->right_inner != 1))))
        return NULL;
    if (!native_blas_ready(work))
        return NULL;
    if (y->ndim > 2) {
        shape[ndim - 2] = job->rows;
        shape[ndim - 1] = job->columns;
    }
    PyArrayObject *made = native_empty(ndim, shape, type);
    if (!made)
        return NULL;
    job->made = PyArray_DATA(made);
    job->made_row = job->columns;
    if (count == 1) {
        all.failed = !gemm_run(type, job);
    } else {
        const npy_intp grain = at_least(1, work < WORK ? WORK / work : 1);
        native_parallel(count, work > 16 * WORK && count < 2 * native_threads() ? count : grain, batch_body, &all);
    }
    if (all.failed) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return (PyObject *)made;
}

static bool one_type(PyObject *x, PyObject *y, native_type *type) {
    *type = native_array_type(x);
    return (*type == TYPE_F32 || *type == TYPE_F64) && native_array_type(y) == *type;
}

/* Which operand comes with its last two dims swapped. */
typedef struct {
    bool left, right;
} turns;

static PyObject *run_matmul(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const turns *turned = kernel->data;
    native_type type;
    operand x, y;
    if (nargs != 2 || kwnames || !one_type(args[0], args[1], &type))
        return NULL;
    if (!turned->left && !turned->right &&
        (PyArray_NDIM((PyArrayObject *)args[0]) == 1 || PyArray_NDIM((PyArrayObject *)args[1]) == 1))
        return gemm_small(type, args[0], args[1], NULL, 1, 0);
    if (!read_operand(args[0], type, turned->left, &x) || !read_operand(args[1], type, turned->right, &y))
        return NULL;
    return multiply(type, &x, &y, NULL, 0);
}

static PyObject *run_linear(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type;
    operand x, weight;
    if (nargs != 3 || kwnames || !one_type(args[0], args[1], &type) || !read_operand(args[0], type, false, &x) ||
        !read_operand(args[1], type, true, &weight) || weight.ndim != 2)
        return NULL;
    const void *before = NULL;
    if (args[2] != Py_None) {
        PyArrayObject *bias = (PyArrayObject *)args[2];
        if (native_array_type(args[2]) != type || PyArray_NDIM(bias) != 1 || PyArray_DIM(bias, 0) != weight.shape[1] ||
            !PyArray_IS_C_CONTIGUOUS(bias))
            return NULL;
        before = PyArray_DATA(bias);
    }
    return multiply(type, &x, &weight, before, 0);
}

static PyObject *run_addmm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type;
    operand x, y;
    if (nargs != 3 || !native_options(args, nargs, kwnames, names, OPTIONS, given) || !given[ALPHA] || !given[BETA] ||
        !one_type(args[1], args[2], &type))
        return NULL;
    const double alpha = PyFloat_AsDouble(given[ALPHA]), beta = PyFloat_AsDouble(given[BETA]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    PyArrayObject *input = (PyArrayObject *)args[0];
    if (!read_operand(args[1], type, false, &x) || !read_operand(args[2], type, false, &y) || x.ndim != 2 || y.ndim != 2 ||
        alpha != 1 || (beta != 0 && beta != 1))
        return gemm_small(type, args[1], args[2], beta != 0 ? input : NULL, alpha, beta);
    if (beta == 0)
        return multiply(type, &x, &y, NULL, 0);
    if (native_array_type(args[0]) != type)
        return NULL;
    const int ndim = PyArray_NDIM(input);
    const npy_intp rows = ndim > 1 ? PyArray_DIM(input, ndim - 2) : 1;
    if (ndim < 1 || ndim > 2 || PyArray_DIM(input, ndim - 1) != y.shape[1] ||
        PyArray_STRIDE(input, ndim - 1) != TYPE_SIZE[type] || (rows != 1 && rows != x.shape[0]) ||
        (rows != 1 && PyArray_STRIDE(input, 0) % TYPE_SIZE[type]))
        return gemm_small(type, args[1], args[2], input, 1, 1);
    return multiply(type, &x, &y, PyArray_DATA(input), rows == 1 ? 0 : PyArray_STRIDE(input, 0) / TYPE_SIZE[type]);
}

int gemm_init(void) {
    static const char *const words[OPTIONS] = {"beta", "alpha"};
    loops = PICK(gemm_loops);
    for (int i = 0; i < OPTIONS; i++)
        if (!(names[i] = PyUnicode_InternFromString(words[i])))
            return -1;
    return 0;
}

const native_spec gemm_kernels[] = {
    {"matmul", run_matmul, &(const turns){false, false}},
    {"matmul_nt", run_matmul, &(const turns){false, true}},
    {"matmul_tn", run_matmul, &(const turns){true, false}},
    {"linear", run_linear, NULL},
    {"addmm", run_addmm, NULL},
    {NULL, NULL, NULL},
};
