/* Matrix products of real and complex numbers and of integers in any layout, and batches of them: matmul, linear, addmm. */
#include "gemm.h"

#include "blas.h"
#include "gemm_batch.h"
#include "gemm_small.h"
#include "rows.h"

#include <math.h>

DECLARE_LOOPS(gemm_vector_loops, gemm_vector_loops);

enum { SHORT_COLUMNS = 64, SHORTEST = 4 }; /* that are worth being turned over; elements that take a few exchanges */
enum { VECTOR_BYTES = 1 << 19 }; /* of a matrix that is in the second cache: BLAS comes back less often to each of its rows */
enum { VECTOR_WORK = 1 << 18 }; /* multiplications of one row, which wait for memory, that are worth a second thread */

#define WHOLE 9007199254740992.0 /* up to which doubles are whole numbers of integers' factors */

enum { BETA, ALPHA, OPTIONS };
static PyObject *names[OPTIONS];

/* Batches */

static void vector_body(void *context, npy_intp begin, npy_intp end) {
    const gemm_batch *all = context;
    all->vector(&all->job, begin, end);
}

static void batch_body(void *context, npy_intp begin, npy_intp end) {
    gemm_batch *all = context;
    for (npy_intp i = begin; i < end && !all->failed; i++) {
        const gemm_job job = gemm_job_of(all, i);
        if (all->vector)
            all->vector(&job, 0, job.columns);
        else if (!(all->tall ? gemm_run_tall : gemm_run)(all->type, &job))
            all->failed = true;
    }
}

/* Arguments */

typedef struct {
    char *data;
    int ndim;
    npy_intp shape[NATIVE_DIMS], steps[NATIVE_DIMS]; /* in elements */
    bool vector; /* a matrix of one row or column, whose dim the result lacks */
} operand;

static bool is_short(native_type type) { return type == TYPE_I8 || type == TYPE_I16 || type == TYPE_U8; }
static bool is_integer(native_type type) { return type == TYPE_I32 || type == TYPE_I64 || is_short(type); }

static bool read_operand(PyObject *object, native_type type, bool turned, operand *made) {
    PyArrayObject *array = (PyArrayObject *)object;
    made->data = PyArray_BYTES(array);
    made->ndim = PyArray_NDIM(array);
    made->vector = false;
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

/* A vector as a row on the left side or a column on the right one. */
static bool read_vector(PyObject *object, native_type type, bool left, operand *made) {
    PyArrayObject *array = (PyArrayObject *)object;
    const npy_intp size = PyArray_DIM(array, 0), step = PyArray_STRIDE(array, 0) / TYPE_SIZE[type];
    *made = (operand){PyArray_BYTES(array), 2, {1, 1}, {0, 0}, true};
    made->shape[left] = size;
    made->steps[left] = step;
    return size && PyArray_STRIDE(array, 0) % TYPE_SIZE[type] == 0;
}

/* A side of complex numbers, as pairs of real ones that lie side by side along its rows, or a copy that has them so: `copy` is what
   holds that. */
static bool read_pairs(PyObject *object, native_type type, bool left, bool turned, operand *made, PyObject **copy) {
    if (PyArray_NDIM((PyArrayObject *)object) < 2 || !read_operand(object, type, turned, made))
        return false;
    if (made->steps[made->ndim - 1] != 2) {
        PyArrayObject *array = (PyArrayObject *)object;
        PyObject *view = turned ? PyArray_SwapAxes(array, made->ndim - 2, made->ndim - 1) : Py_NewRef(object);
        *copy = view ? (PyObject *)PyArray_NewCopy((PyArrayObject *)view, NPY_CORDER) : NULL;
        Py_XDECREF(view);
        if (!*copy || !read_operand(*copy, type, false, made))
            return false;
    }
    made->shape[made->ndim - 1] *= 2;
    if (left)
        made->steps[made->ndim - 1] = 1;
    else
        made->shape[made->ndim - 2] *= 2;
    return true;
}

static bool read_side(PyObject *object, native_type type, bool left, bool turned, operand *made) {
    return PyArray_NDIM((PyArrayObject *)object) == 1 && !turned ? read_vector(object, type, left, made)
                                                                 : read_operand(object, type, turned, made);
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

/* What is added to a product, in elements, and the scales: alpha * product + beta * added. */
typedef struct {
    const void *data; /* NULL for nothing */
    ptrdiff_t row, column;
    double alpha, beta;
} addend;

static const addend NOTHING = {.column = 1, .alpha = 1, .beta = 1};

/* Whether floats of so many short rows times a vector are for a loop of ours: BLAS is faster at rows of half a vector. */
static bool by_short_rows(npy_intp lanes, npy_intp rows, npy_intp inner) {
    return rows >= SHORT_COLUMNS && inner <= lanes && (2 * inner != lanes || inner <= SHORTEST);
}

/* The loop for a product of one row, or of one column that is turned over to be one. */
static gemm_vector_loop vector_loop(native_type type, const gemm_job *job) {
    const gemm_vector_loops *loops = PICK(gemm_vector_loops);
    const bool turned = job->rows != 1, sides = job->left_inner == 1 && job->right_inner == 1;
    if ((turned && job->columns != 1) || type == TYPE_BF16)
        return NULL;
    const npy_intp many = turned ? job->rows : job->columns;
    const npy_intp apart = turned ? job->left_row : job->right_column;
    if (is_short(type) || is_integer(type))
        return job->before || job->alpha != 1 ? NULL : sides ? loops->by_columns[type] : apart == 1 || many == 1 ? loops->by_rows[type] : NULL;
    const npy_intp lanes = loops->lanes[type];
    if (sides && many > 1)
        return by_short_rows(lanes, many, job->inner) ? loops->by_short_columns[type]
               : job->inner >= lanes                  ? loops->by_long_columns[type]
                                                      : NULL;
    const bool near = many >= lanes && many * job->inner * TYPE_SIZE[type] <= VECTOR_BYTES;
    return !sides && apart == 1 && near ? loops->by_long_rows[type] : NULL;
}

/* A product of two operands, of complex numbers where `pairs`; NULL without an exception where it is not for us. */
static PyObject *multiply(native_type type, bool pairs, operand *x, operand *y, const addend *added) {
    npy_intp shape[NATIVE_DIMS];
    int ndim = x->ndim > y->ndim ? x->ndim : y->ndim, dims = x->ndim;
    for (int i = 0; i < dims; i++)
        shape[i] = x->shape[i];
    if (y->ndim == 2) {
        shape[dims - 1] = y->shape[1];
        if (dims > 2)
            fold(x);
    }
    gemm_batch all = {.type = type, .ndim = (x->ndim > y->ndim ? x->ndim : y->ndim) - 2};
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
                      .before = added->data, .before_row = added->row, .before_column = added->column,
                      .alpha = added->alpha, .beta = added->beta, .pairs = pairs};
    const npy_intp work = job->rows * job->columns * job->inner;
    const bool own = job->left == job->right && job->left_inner == 1 && job->right_inner == 1; /* for which NumPy has a slower function */
    const bool narrow = (job->columns < 4 && !own) || (job->rows == 1 && job->right_inner != 1), integer = is_integer(type);
    const bool halves = type == TYPE_BF16;
    const npy_intp rows = job->rows, columns = job->columns;
    all.tall = gemm_is_tall(type, job);
    if (job->inner != y->shape[y->ndim - 2] || (halves && !gemm_takes_bf16(job)))
        return NULL;
    const bool blas = !integer && !halves && gemm_real(type)->slower_than_blas && work > 1 << 15;
    all.many = count > 1 && !blas ? gemm_pick_many(&all) : NULL;
    const bool small = all.many || all.tall; /* whose loops are ours with any library */
    all.vector = pairs || small ? NULL : vector_loop(type, job);
    if (all.vector && job->rows != 1)
        gemm_turn_over(&all);
    const bool scaled = added->alpha != 1 || (added->data && (added->beta != 1 || added->column != 1));
    if ((is_short(type) && !all.vector) || (scaled && !all.vector) || ((x->vector || y->vector) && !integer && !all.vector) ||
        (!integer && !halves && !small && !all.vector && (blas || (narrow && work > 1 << 12))))
        return NULL;
    if (!integer && !halves && !small && !all.vector && !native_blas_ready(work))
        return NULL;
    if (y->ndim > 2) {
        shape[ndim - 2] = rows;
        shape[ndim - 1] = columns;
    }
    if (pairs)
        shape[ndim - 1] /= 2;
    if (x->vector) {
        shape[ndim - 2] = shape[ndim - 1];
        ndim--;
    }
    if (y->vector)
        ndim--;
    PyArrayObject *made = pairs ? native_empty_complex(ndim, shape, type) : native_empty(ndim, shape, type);
    if (!made)
        return NULL;
    job->made = PyArray_DATA(made);
    job->made_row = job->columns;
    if (count == 1 && all.vector) {
        native_parallel(job->columns, native_grain(VECTOR_WORK, job->inner), vector_body, &all);
    } else if (count == 1) {
        all.failed = !(all.tall ? gemm_run_tall : gemm_run)(type, job);
    } else if (all.many) {
        gemm_run_many(&all, count);
    } else {
        const npy_intp worth = all.tall ? GEMM_WORK / 4 : GEMM_WORK, grain = work < worth ? worth / work : 1;
        native_parallel(count, work > 128 * GEMM_WORK && count < 2 * native_threads() ? count : grain, batch_body, &all);
    }
    if (all.failed) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return (PyObject *)made;
}

static bool one_type(PyObject *x, PyObject *y, native_type *type) {
    *type = native_array_type(x);
    return (*type == TYPE_F32 || *type == TYPE_F64 || *type == TYPE_BF16 || is_integer(*type)) && native_array_type(y) == *type;
}

/* Shorter integers as ones of 32 bits, whose last bits are those of the product. NULL without an exception where they are not
   all of one type, or the product is not for us. */
static PyObject *widened(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    enum { MOST = 3 + OPTIONS };
    const Py_ssize_t count = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *wide[MOST] = {NULL}, *made = NULL;
    const native_type type = native_array_type(args[1]);
    const int number = PyArray_TYPE((PyArrayObject *)args[1]);
    bool good = count <= MOST;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        const bool array = i < nargs && args[i] != Py_None;
        good = !array || native_array_type(args[i]) == type;
        if (good)
            good = (wide[i] = array ? PyArray_Cast((PyArrayObject *)args[i], NPY_INT32) : Py_NewRef(args[i]));
    }
    if (good && (made = kernel->run(kernel, wide, nargs, kwnames)))
        Py_SETREF(made, PyArray_Cast((PyArrayObject *)made, number));
    for (Py_ssize_t i = 0; i < MOST; i++)
        Py_XDECREF(wide[i]);
    return made;
}

typedef struct {
    native_run run;
    gemm_turned turned;
} product;

static PyObject *run_product(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *made = ((const product *)kernel->data)->run(kernel, args, nargs, kwnames);
    return made || PyErr_Occurred() || nargs < 2 || !is_short(native_array_type(args[1])) ? made
                                                                                          : widened(kernel, args, nargs, kwnames);
}

static const Py_complex ONE = {1, 0};

static PyObject *complex_matmul(PyObject *const *args, native_type type, gemm_turned turned) {
    operand x, y;
    PyObject *copies[2] = {NULL};
    PyObject *small = gemm_small_complex(type, args[0], args[1], NULL, ONE, ONE, turned);
    if (small || PyErr_Occurred())
        return small;
    const bool good = native_complex_type(args[1]) == type && read_pairs(args[0], type, true, turned.left, &x, &copies[0]) &&
                      read_pairs(args[1], type, false, turned.right, &y, &copies[1]);
    PyObject *made = good ? multiply(type, true, &x, &y, &NOTHING) : NULL;
    Py_XDECREF(copies[0]);
    Py_XDECREF(copies[1]);
    return made;
}

static PyObject *matmul(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const gemm_turned turned = ((const product *)kernel->data)->turned;
    native_type type;
    operand x, y;
    if (nargs != 2 || kwnames)
        return NULL;
    if ((type = native_complex_type(args[0])) != TYPE_NONE)
        return complex_matmul(args, type, turned);
    if (!one_type(args[0], args[1], &type))
        return NULL;
    if (!is_integer(type) && !turned.left && !turned.right &&
        (PyArray_NDIM((PyArrayObject *)args[0]) == 1 || PyArray_NDIM((PyArrayObject *)args[1]) == 1)) {
        PyObject *made = gemm_small(type, args[0], args[1], NULL, 1, 0);
        if (made || PyErr_Occurred())
            return made;
    }
    if (!read_side(args[0], type, true, turned.left, &x) || !read_side(args[1], type, false, turned.right, &y))
        return NULL;
    return multiply(type, false, &x, &y, &NOTHING);
}

static PyObject *linear(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    native_type type;
    operand x, weight;
    if (nargs == 3 && !kwnames && (type = native_complex_type(args[0])) != TYPE_NONE)
        return gemm_small_complex(type, args[0], args[1], args[2] == Py_None ? NULL : (PyArrayObject *)args[2], ONE, ONE,
                                  (gemm_turned){false, true});
    if (nargs != 3 || kwnames || !one_type(args[0], args[1], &type) || !read_side(args[0], type, true, false, &x) ||
        !read_operand(args[1], type, true, &weight) || weight.ndim != 2)
        return NULL;
    addend added = NOTHING;
    if (args[2] != Py_None) {
        PyArrayObject *bias = (PyArrayObject *)args[2];
        if (native_array_type(args[2]) != type || PyArray_NDIM(bias) != 1 || PyArray_DIM(bias, 0) != weight.shape[1] ||
            !PyArray_IS_C_CONTIGUOUS(bias))
            return NULL;
        added.data = PyArray_DATA(bias);
    }
    return multiply(type, false, &x, &weight, &added);
}

/* What is added to a batch of products, row by row or broadcast. NULL without an exception where the two do not go together. */
static PyObject *batch_with(PyArrayObject *input, native_type type, operand *x, operand *y) {
    if (type == TYPE_BF16 || is_short(type) || native_array_type((PyObject *)input) != type || PyArray_NDIM(input) > 3)
        return NULL;
    const npy_intp shape[] = {x->shape[0], x->shape[1], y->shape[2]};
    for (int i = PyArray_NDIM(input), to = 2; i-- > 0; to--)
        if (PyArray_DIM(input, i) != 1 && PyArray_DIM(input, i) != shape[to])
            return NULL;
    PyObject *made = multiply(type, false, x, y, &NOTHING);
    if (made)
        Py_SETREF(made, PyNumber_InPlaceAdd(made, (PyObject *)input));
    return made;
}

/* alpha * matrix @ vector + beta * a vector or a number. NULL without an exception where it is not for us. */
static PyObject *add_vector(native_type type, PyObject *const *args, double alpha, double beta) {
    PyArrayObject *input = (PyArrayObject *)args[0];
    PyObject *made = gemm_small(type, args[1], args[2], beta != 0 ? input : NULL, alpha, beta);
    operand x, y;
    if (made || PyErr_Occurred() || !read_operand(args[1], type, false, &x) || !read_vector(args[2], type, false, &y))
        return made;
    addend added = {NULL, 0, 0, alpha, beta};
    if (beta != 0) {
        const int ndim = PyArray_NDIM(input);
        if (native_array_type(args[0]) != type || ndim > 1 ||
            (ndim && PyArray_DIM(input, 0) != 1 && (PyArray_DIM(input, 0) != x.shape[0] || PyArray_STRIDE(input, 0) % TYPE_SIZE[type])))
            return NULL;
        added.data = PyArray_DATA(input);
        added.row = ndim && PyArray_DIM(input, 0) != 1 ? PyArray_STRIDE(input, 0) / TYPE_SIZE[type] : 0;
    }
    return multiply(type, false, &x, &y, &added);
}

static bool complex_number(PyObject *object, Py_complex *number) {
    *number = PyComplex_AsCComplex(object);
    const bool good = !PyErr_Occurred();
    PyErr_Clear();
    return good;
}

static PyObject *complex_addmm(native_type type, PyObject *const *args, PyObject *const *given) {
    Py_complex alpha, beta;
    if (!complex_number(given[ALPHA], &alpha) || !complex_number(given[BETA], &beta))
        return NULL;
    return gemm_small_complex(type, args[1], args[2], beta.real || beta.imag ? (PyArrayObject *)args[0] : NULL, alpha, beta,
                              (gemm_turned){false, false});
}

/* alpha * matrices + beta * what is added. NULL without an exception where it is not for us. */
static PyObject *add_matrix(native_type type, PyObject *const *args, double alpha, double beta) {
    operand x, y;
    PyArrayObject *input = (PyArrayObject *)args[0];
    const bool plain = alpha == 1 && (beta == 0 || beta == 1) && read_operand(args[1], type, false, &x) &&
                       read_operand(args[2], type, false, &y) && x.ndim == y.ndim && x.ndim <= 3;
    if (!plain || x.ndim == 3) {
        PyObject *made = gemm_small(type, args[1], args[2], beta != 0 ? input : NULL, alpha, beta);
        if (made || PyErr_Occurred() || !plain || x.shape[0] != y.shape[0])
            return made;
        return beta == 0 ? multiply(type, false, &x, &y, &NOTHING) : batch_with(input, type, &x, &y);
    }
    if (beta == 0)
        return multiply(type, false, &x, &y, &NOTHING);
    if (native_array_type(args[0]) != type)
        return NULL;
    const int ndim = PyArray_NDIM(input);
    const npy_intp rows = ndim > 1 ? PyArray_DIM(input, ndim - 2) : 1;
    if (ndim < 1 || ndim > 2 || PyArray_DIM(input, ndim - 1) != y.shape[1] ||
        PyArray_STRIDE(input, ndim - 1) != TYPE_SIZE[type] || (rows != 1 && rows != x.shape[0]) ||
        (rows != 1 && PyArray_STRIDE(input, 0) % TYPE_SIZE[type]))
        return gemm_small(type, args[1], args[2], input, 1, 1);
    const addend added = {PyArray_DATA(input), rows == 1 ? 0 : PyArray_STRIDE(input, 0) / TYPE_SIZE[type], 1, 1, 1};
    return multiply(type, false, &x, &y, &added);
}

/* Integers of other sizes or with other factors: the product, which is scaled and added to. NULL without an exception where it is
   not for us. */
static PyObject *scaled_integers(native_type type, PyObject *const *args, PyObject *alpha, PyObject *beta) {
    operand x, y;
    if (is_short(type) || (beta && native_array_type(args[0]) != type) || !read_operand(args[1], type, false, &x) ||
        !read_side(args[2], type, false, false, &y) || x.ndim > 3 || (!y.vector && y.ndim != x.ndim) ||
        (x.ndim == 3 && x.shape[0] != y.shape[0]))
        return NULL;
    PyObject *made = multiply(type, false, &x, &y, &NOTHING), *scaled = NULL;
    if (made)
        Py_SETREF(made, PyNumber_InPlaceMultiply(made, alpha));
    if (made && beta && (scaled = PyNumber_Multiply(args[0], beta)))
        Py_SETREF(made, PyNumber_InPlaceAdd(made, scaled));
    else if (beta)
        Py_CLEAR(made);
    Py_XDECREF(scaled);
    return made;
}

static PyObject *addmm(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    native_type type;
    if (nargs != 3 || !native_options(args, nargs, kwnames, names, OPTIONS, given) || !given[ALPHA] || !given[BETA])
        return NULL;
    if ((type = native_complex_type(args[1])) != TYPE_NONE)
        return complex_addmm(type, args, given);
    if (!one_type(args[1], args[2], &type))
        return NULL;
    const double alpha = PyFloat_AsDouble(given[ALPHA]), beta = PyFloat_AsDouble(given[BETA]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    const bool vector = PyArray_NDIM((PyArrayObject *)args[1]) == 2 && PyArray_NDIM((PyArrayObject *)args[2]) == 1;
    if (is_integer(type) && (!PyLong_Check(given[ALPHA]) || !PyLong_Check(given[BETA]) || fabs(alpha) > WHOLE || fabs(beta) > WHOLE))
        return NULL;
    PyObject *made = vector ? add_vector(type, args, alpha, beta) : add_matrix(type, args, alpha, beta);
    return made || PyErr_Occurred() || !is_integer(type) ? made
                                                         : scaled_integers(type, args, given[ALPHA], beta != 0 ? given[BETA] : NULL);
}

int gemm_init(void) {
    static const char *const words[OPTIONS] = {"beta", "alpha"};
    return native_intern(names, words, OPTIONS);
}

const native_spec gemm_kernels[] = {
    {"matmul", run_product, &(const product){matmul, {false, false}}},
    {"matmul_nt", run_product, &(const product){matmul, {false, true}}},
    {"matmul_tn", run_product, &(const product){matmul, {true, false}}},
    {"linear", run_product, &(const product){linear}},
    {"addmm", run_product, &(const product){addmm}},
    {NULL, NULL, NULL},
};
