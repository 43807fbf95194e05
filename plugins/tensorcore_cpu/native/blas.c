/* oneMKL's matrix products in the place of our own, where blas.py finds that library: loaded at the first product. */
#define _GNU_SOURCE
#include "blas.h"

#include "native.h"
#include "turn.h"

#include <dlfcn.h>
#include <string.h>
#ifdef __linux__
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

enum { ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 }; /* CBLAS's numbers */
enum { SEQUENTIAL = 1 };                             /* oneMKL's */

enum {
    LEAST_WORK = 1 << 14,    /* multiplications: under this the calls cost more than they save */
    WORK = 1 << 20,          /* that are worth a second thread */
    ROWS = 8, COLUMNS = 16,  /* parts are whole multiples: what its tiles are made of */
    /* A right side of so many bytes is read where it lies by products of so many rows, and copied by larger ones: 256x256 took
       0.9 of its time in such parts (float64 0.87), 1024x128 by 128x512 0.8, and less than that of the smallest nothing. One whose
       columns lie along its rows is copied by all, so that with more rows it pays to turn it first. */
    LYING_BYTES = 1 << 20, LYING_ROWS = 128, LEAST_ROWS = 32, TURN_ROWS = 512,
    /* Of a left side whose rows lie side by side down its columns, as in gradients by weight, small ones alone: on a Xeon 1000x700 by 700x200 took
       1.13 of its time in such parts, 2048x1024 by 1024x64 1.2, 256x128 by 128x64 0.86. */
    TURNED_LYING_BYTES = 3 << 15,
    TURN_WORK = 1 << 14, /* elements whose turning is worth a thread */
    /* Bytes of a right side which each part may copy for itself: halves of rows of 256x256 complex numbers took 0.93 of halves of columns,
       of 512x512 doubles 0.95, of 1024x1024 floats 1.03. */
    NEAR_BYTES = 1 << 21,
};

typedef void (*product_f32)(int layout, int left, int right, int64_t rows, int64_t columns, int64_t inner, float alpha,
                            const float *x, int64_t x_row, const float *y, int64_t y_row, float beta, float *made,
                            int64_t made_row);
typedef void (*product_f64)(int layout, int left, int right, int64_t rows, int64_t columns, int64_t inner, double alpha,
                            const double *x, int64_t x_row, const double *y, int64_t y_row, double beta, double *made,
                            int64_t made_row);

typedef void (*product_pairs)(int layout, int left, int right, int64_t rows, int64_t columns, int64_t inner, const void *alpha,
                              const void *x, int64_t x_row, const void *y, int64_t y_row, const void *beta, void *made,
                              int64_t made_row);

typedef struct {
    product_f32 f32;
    product_f64 f64;
    product_pairs pairs[2]; /* of complex numbers of TYPE_F32 and of TYPE_F64 */
    int (*set_threads_here)(int count); /* NULL where the library makes no threads of its own */
} library;

DECLARE_LOOPS(turn_loops, turn_loops);

static library found;
static bool in_use, asked;
static PyObject *finder;

bool native_blas_ready(ptrdiff_t multiplications) {
    if (asked || !finder || multiplications < LEAST_WORK)
        return true;
    asked = true;
    PyObject *answer = PyObject_CallNoArgs(finder);
    asked = answer != NULL; /* what went wrong is said at each product */
    Py_XDECREF(answer);
    return asked;
}

/* One product in parts */

typedef struct {
    const gemm_job *job; /* in complex numbers where it has pairs */
    native_type type;
    ptrdiff_t size; /* bytes of one number */
    int left, right;              /* AS_IS or TURNED */
    ptrdiff_t left_row, right_row; /* the one step that is not 1 */
    bool by_rows;
    ptrdiff_t unit, most; /* rows or columns of the smallest part, and of one call */
} work;

/* How a matrix of steps lies for CBLAS: false where neither step is 1, or lines overlap. */
static bool read_side(ptrdiff_t row, ptrdiff_t column, ptrdiff_t rows, ptrdiff_t columns, int *turn, ptrdiff_t *line) {
    if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
        *turn = AS_IS;
        *line = rows == 1 ? columns : row;
        return true;
    }
    *turn = TURNED;
    *line = columns == 1 ? rows : column;
    return (row == 1 || rows == 1) && (column >= rows || columns == 1);
}

/* Rows or columns [first, last) of a product, in one call. */
static void run_call(const work *w, ptrdiff_t first, ptrdiff_t last) {
    gemm_job job = *w->job;
    const ptrdiff_t size = w->size;
    *(w->by_rows ? &job.rows : &job.columns) = last - first;
    job.made = (char *)job.made + first * (w->by_rows ? job.made_row : 1) * size;
    if (w->by_rows)
        job.left = (const char *)job.left + first * job.left_row * size;
    else
        job.right = (const char *)job.right + first * job.right_column * size;
    if (job.before) {
        job.before = (const char *)job.before + first * (w->by_rows ? job.before_row : 1) * size;
        if (job.before != job.made)
            for (ptrdiff_t i = 0; i < job.rows; i++)
                memcpy((char *)job.made + i * job.made_row * size, (const char *)job.before + i * job.before_row * size,
                       (size_t)(job.columns * size));
    }
    static const double one[] = {1, 0}, zero[] = {0, 0};
    static const float one_f32[] = {1, 0};
    if (job.pairs)
        found.pairs[w->type](ROW_MAJOR, w->left, w->right, job.rows, job.columns, job.inner,
                             w->type == TYPE_F32 ? (const void *)one_f32 : one, job.left, w->left_row, job.right, w->right_row,
                             !job.before ? zero : w->type == TYPE_F32 ? (const void *)one_f32 : one, job.made, job.made_row);
    else if (w->type == TYPE_F32)
        found.f32(ROW_MAJOR, w->left, w->right, job.rows, job.columns, job.inner, 1, job.left, w->left_row, job.right,
                  w->right_row, job.before ? 1 : 0, job.made, job.made_row);
    else
        found.f64(ROW_MAJOR, w->left, w->right, job.rows, job.columns, job.inner, 1, job.left, w->left_row, job.right,
                  w->right_row, job.before ? 1 : 0, job.made, job.made_row);
}

static void run_part(void *context, npy_intp begin, npy_intp end) {
    const work *w = context;
    const ptrdiff_t extent = w->by_rows ? w->job->rows : w->job->columns;
    const ptrdiff_t last = end * w->unit < extent ? end * w->unit : extent;
    const int before = found.set_threads_here ? found.set_threads_here(1) : 0;
    for (ptrdiff_t first = begin * w->unit; first < last; first += w->most)
        run_call(w, first, first + w->most < last ? first + w->most : last);
    if (found.set_threads_here)
        found.set_threads_here(before);
}

/* A right side whose columns lie along its rows, turned over: rows [begin, end) of what is made. */
typedef struct {
    const gemm_job *job;
    char *made;
    turn_loop turn;
    ptrdiff_t size;
} turning;

static void turn_rows(void *context, npy_intp begin, npy_intp end) {
    const turning *t = context;
    const ptrdiff_t row = t->job->columns * t->size;
    t->turn((const char *)t->job->right + begin * t->size, t->job->right_column * t->size, t->made + begin * row, row, end - begin,
            t->job->columns);
}

/* A job of pairs of real numbers as one of complex numbers: false where they are not as far apart as whole numbers of these. */
static bool read_pairs(const gemm_job *pairs, gemm_job *made) {
    *made = *pairs;
    made->columns /= 2;
    made->inner /= 2;
    made->left_row /= 2;
    made->right_inner /= 2;
    made->right_column /= 2;
    made->made_row /= 2;
    made->before_row /= 2;
    return pairs->left_row % 2 == 0 && pairs->right_inner % 2 == 0 && pairs->before_row % 2 == 0;
}

bool native_blas_run(native_type type, const gemm_job *job) {
    const ptrdiff_t multiplications = job->rows * job->columns * job->inner, size = TYPE_SIZE[type] * (job->pairs ? 2 : 1);
    if (!in_use || (type != TYPE_F32 && type != TYPE_F64) ||
        multiplications < LEAST_WORK) /* the same limit, so that results do not depend on what ran before */
        return false;
    gemm_job numbers;
    if (job->pairs && !read_pairs(job, &numbers))
        return false;
    job = job->pairs ? &numbers : job;
    work w = {.job = job, .type = type, .size = size};
    if (!read_side(job->left_row, job->left_inner, job->rows, job->inner, &w.left, &w.left_row) ||
        !read_side(job->right_inner, job->right_column, job->inner, job->columns, &w.right, &w.right_row))
        return false;
    const ptrdiff_t threads = native_threads(), bytes = job->inner * job->columns * size;
    bool lies = !job->pairs && bytes <= (w.left == AS_IS ? LYING_BYTES : TURNED_LYING_BYTES) &&
                job->rows >= (w.right == AS_IS ? 2 * threads * LEAST_ROWS : TURN_ROWS);
    gemm_job turned = *job;
    void *room = NULL;
    if (lies && w.right == TURNED && (room = native_scratch((size_t)bytes))) {
        turning t = {job, room, PICK(turn_loops)->turn[type == TYPE_F32 ? 2 : 3], size};
        native_parallel(job->inner, TURN_WORK / job->columns + 1, turn_rows, &t);
        turned.right = room;
        turned.right_inner = w.right_row = job->columns;
        turned.right_column = 1;
        w.right = AS_IS;
        w.job = &turned;
    }
    lies = lies && w.right == AS_IS;
    const ptrdiff_t excess = job->rows - (w.right == AS_IS ? 1 : 2) * job->columns; /* each part copies what is turned */
    w.by_rows = lies || excess > 0 || (excess == 0 && w.right == AS_IS && bytes <= NEAR_BYTES);
    const ptrdiff_t extent = w.by_rows ? job->rows : job->columns;
    w.unit = lies ? LEAST_ROWS : w.by_rows ? ROWS : COLUMNS;
    w.most = lies ? LYING_ROWS : extent;
    const ptrdiff_t units = parts_of(extent, w.unit);
    native_parallel(units, multiplications < WORK ? units : lies ? 1 : parts_of(units, threads), run_part, &w);
    if (room)
        native_scratch_free(room, (size_t)bytes);
    return true;
}

/* The module's functions */

PyObject *native_blas_finder(PyObject *module, PyObject *function) {
    Py_XSETREF(finder, Py_NewRef(function));
    asked = false;
    in_use = false;
    Py_RETURN_NONE;
}

#ifdef __linux__
/* Gives back what the loader read of the library's files, its tables of symbols above all: 8 of 12 MB that are never read again. */
static int forget_pages(struct dl_phdr_info *object, size_t size, void *unused) {
    if (!strstr(object->dlpi_name, "libmkl_"))
        return 0;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_LOAD && !(part->p_flags & PF_W)) /* what may be written is no longer what the file has */
            madvise((void *)(begin & ~page), end - (begin & ~page), MADV_DONTNEED);
    }
    return 0;
}
#endif

PyObject *native_blas_load(PyObject *module, PyObject *path) {
    const char *name = PyUnicode_AsUTF8(path);
    if (!name)
        return NULL;
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return PyErr_Format(PyExc_OSError, "%s", dlerror());
    library one;
    /* ISO C has no cast from an object's address to a function's. */
    *(void **)&one.f32 = dlsym(handle, "cblas_sgemm_64");
    *(void **)&one.f64 = dlsym(handle, "cblas_dgemm_64");
    *(void **)&one.pairs[TYPE_F32] = dlsym(handle, "cblas_cgemm_64");
    *(void **)&one.pairs[TYPE_F64] = dlsym(handle, "cblas_zgemm_64");
    *(void **)&one.set_threads_here = dlsym(handle, "MKL_Set_Num_Threads_Local");
    int (*set_layer)(int layer);
    *(void **)&set_layer = dlsym(handle, "MKL_Set_Threading_Layer");
    if (!one.f32 || !one.f64 || !one.pairs[TYPE_F32] || !one.pairs[TYPE_F64] || !one.set_threads_here || !set_layer) {
        dlclose(handle);
        return PyErr_Format(PyExc_OSError, "%s: is no oneMKL with 64-bit interfaces", name);
    }
    /* Somebody else in this process may have set another layer before: then its threads are left out call by call. */
    if (set_layer(SEQUENTIAL) == SEQUENTIAL)
        one.set_threads_here = NULL;
    found = one;
    in_use = asked = true;
#ifdef __linux__
    float number = 1, made;
    found.f32(ROW_MAJOR, AS_IS, AS_IS, 1, 1, 1, 1, &number, 1, &number, 1, 0, &made, 1); /* loads the rest of the library */
    dl_iterate_phdr(forget_pages, NULL);
#endif
    Py_RETURN_NONE;
}

PyObject *native_blas_unload(PyObject *module, PyObject *unused) {
    in_use = false; /* the library stays: what it allocated may be in use */
    asked = true;
    Py_RETURN_NONE;
}

PyObject *native_blas_in_use(PyObject *module, PyObject *unused) {
    return native_blas_ready(LEAST_WORK) ? PyBool_FromLong(in_use) : NULL;
}
