/* Matrix products of float and double numbers in any layout, and batches of them: matmul, linear, addmm. */
#include "gemm.h"

#include "blas.h"
#include "gemm_small.h"
#include "native.h"

enum { BETA, ALPHA, OPTIONS };
static PyObject *names[OPTIONS];

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
    if (job->inner != y->shape[y->ndim - 2] || (type == TYPE_BF16 && !gemm_takes_bf16(job)))
        return NULL;
    if (type != TYPE_BF16 &&
        ((gemm_real(type)->slower_than_blas && work > 1 << 15) || (work > 1 << 12 && (job->columns < 4 || (job->rows == 1 && job->right_inner != 1)))))
        return NULL;
    if (type != TYPE_BF16 && !native_blas_ready(work))
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
        const npy_intp grain = work < GEMM_WORK ? GEMM_WORK / work : 1;
        native_parallel(count, work > 16 * GEMM_WORK && count < 2 * native_threads() ? count : grain, batch_body, &all);
    }
    if (all.failed) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return (PyObject *)made;
}

static bool one_type(PyObject *x, PyObject *y, native_type *type) {
    *type = native_array_type(x);
    return (*type == TYPE_F32 || *type == TYPE_F64 || *type == TYPE_BF16) && native_array_type(y) == *type;
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
        return type == TYPE_BF16 ? NULL : gemm_small(type, args[0], args[1], NULL, 1, 0);
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
        return type == TYPE_BF16 ? NULL : gemm_small(type, args[1], args[2], beta != 0 ? input : NULL, alpha, beta);
    if (beta == 0)
        return multiply(type, &x, &y, NULL, 0);
    if (native_array_type(args[0]) != type)
        return NULL;
    const int ndim = PyArray_NDIM(input);
    const npy_intp rows = ndim > 1 ? PyArray_DIM(input, ndim - 2) : 1;
    if (ndim < 1 || ndim > 2 || PyArray_DIM(input, ndim - 1) != y.shape[1] ||
        PyArray_STRIDE(input, ndim - 1) != TYPE_SIZE[type] || (rows != 1 && rows != x.shape[0]) ||
        (rows != 1 && PyArray_STRIDE(input, 0) % TYPE_SIZE[type]))
        return type == TYPE_BF16 ? NULL : gemm_small(type, args[1], args[2], input, 1, 1);
    return multiply(type, &x, &y, PyArray_DATA(input), rows == 1 ? 0 : PyArray_STRIDE(input, 0) / TYPE_SIZE[type]);
}

int gemm_init(void) {
    static const char *const words[OPTIONS] = {"beta", "alpha"};
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
