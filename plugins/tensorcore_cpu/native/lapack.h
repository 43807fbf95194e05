/* What the files of matrix factorisations share: LAPACK's routines, batches of matrices, and a routine's run over one. */
#ifndef TENSORCORE_NATIVE_LAPACK_H
#define TENSORCORE_NATIVE_LAPACK_H

#include "lapack_small.h"
#include "native.h"

typedef enum { LAPACK_F32, LAPACK_F64, LAPACK_C64, LAPACK_C128, LAPACK_KINDS, LAPACK_NONE = LAPACK_KINDS } lapack_kind;

typedef enum {
    GETRF, GETRS, GETRI, POTRF, POTRI, SYTRF, HETRF, SYTRS, HETRS, TRSM, GEMM, GEQRF, GEQP3, LAIC1, ORGQR, ORMQR, GELS, GELSY, GELSD, GELSS, GESDD,
    SYEVD, SYTRD, STEDC, LAED2, LAED4, LAMRG, GEEV, LASQ1, BDSDC, LAPACK_ROUTINES
} lapack_routine;

/* Fortran's: every argument is a pointer, so calls need no prototypes. */
typedef void (*lapack_function)();

extern lapack_function lapack_functions[LAPACK_ROUTINES][LAPACK_KINDS];
#define LAPACK(routine, kind) (lapack_functions[routine][kind])

/* A matrix, or a batch of them, wherever they lie; steps in bytes. */
typedef struct {
    char *data;
    int batch; /* dims in front of the matrices */
    npy_intp sizes[NATIVE_DIMS], steps[NATIVE_DIMS];
    npy_intp rows, columns, row, column;
} lapack_matrices;

/* How much a routine wants to work in: elements, real numbers beside complex ones, and ints. */
typedef struct {
    int sizes[4], work, reals, ints;
    bool known;
} lapack_room;

typedef struct lapack_job lapack_job;
struct lapack_job {
    /* One matrix of the batch, with `scratch` bytes of a thread's own. */
    void (*one)(const lapack_job *job, npy_intp i, char *scratch);
    /* `count` of them from i on side by side, but for those whose bits are in the answer; NULL where there is no such way. */
    unsigned (*together)(const lapack_job *job, npy_intp i, int count);
    lapack_kind kind;
    npy_intp size; /* bytes of an element */
    lapack_matrices x, y, z;
    char *made, *more, *values; /* the results, matrix behind matrix */
    int *pivots, *info;
    int64_t *ranks;
    int rows, columns, wide, least; /* `least` of rows and columns */
    char options[4];
    double number;
    lapack_routine routine;
    bool calls_none; /* of LAPACK's routines */
    bool by_products; /* reflections by lapack_qr.c, */
    bool by_blocks;   /* many right sides by lapack_sides.c, */
    bool by_diagonals; /* singular values by lapack_bidiagonal.c */
    bool shares_out;  /* and nothing by LAPACK: many matrices are shared out, and of few the products */
    const lapack_small_real *small; /* the loops over one matrix, NULL where LAPACK's routine runs, */
    const lapack_small_real *lanes; /* and over a group, where `together` is */
    lapack_room room;
    npy_intp scratch;
    bool failed;
};

/* The kind of an array of matrices (vectors with `inner` 1) that has elements, and how they lie; LAPACK_NONE with or without
   an exception where it is not for LAPACK, or there is none. */
lapack_kind lapack_read(PyObject *object, int inner, lapack_matrices *found);

/* The same of row swaps, vectors of int32; false where they are none. */
bool lapack_read_pivots(PyObject *object, lapack_matrices *found);

/* A job on matrices x, with its sizes; false, with or without an exception, where it is not for LAPACK. */
bool lapack_begin(lapack_job *job, PyObject *x);

/* Broadcasts two batches to one: how many matrices that are is in *count; false where they do not go together. */
bool lapack_join(lapack_matrices *one, lapack_matrices *other, npy_intp *count);

npy_intp lapack_count(const lapack_matrices *x);

/* New memory: matrices that lie column after column, or vectors of n (numbers where n is -1) of a dtype of NumPy, for the batch of
   `like`. NULL with an exception. */
PyArrayObject *lapack_new_matrices(const lapack_matrices *like, npy_intp rows, npy_intp columns, lapack_kind kind);
PyArrayObject *lapack_new_rows(const lapack_matrices *like, npy_intp rows, npy_intp columns, lapack_kind kind); /* row after row */
PyArrayObject *lapack_new_vectors(const lapack_matrices *like, npy_intp n, int number);
int lapack_number(lapack_kind kind); /* NumPy's of the kind */
static inline lapack_kind lapack_real(lapack_kind kind) { return kind & 1 ? LAPACK_F64 : LAPACK_F32; }
static inline native_type lapack_type(lapack_kind real) { return real == LAPACK_F32 ? TYPE_F32 : TYPE_F64; }
static inline bool lapack_complex(lapack_kind kind) { return kind >= LAPACK_C64; }

/* Number k of real ones. */
static inline double lapack_number_at(lapack_kind kind, const char *x, npy_intp k) {
    return kind == LAPACK_F32 ? ((const float *)x)[k] : ((const double *)x)[k];
}

/* Matrix (vector, number) i of a batch. */
char *lapack_at(const lapack_matrices *x, npy_intp i);
/* Copies matrix i to `to`, column after column, `line` elements from one to the next. */
void lapack_copy(const lapack_matrices *x, npy_intp i, npy_intp size, char *to, npy_intp line);
/* Matrix i column after column: where it lies, or copied to `scratch`; `line` is the distance of its columns. */
char *lapack_columns(const lapack_matrices *x, npy_intp i, npy_intp size, char *scratch, int *line);

/* The room for a routine at these sizes: true where it is known, else `room` is to be filled by asking the routine. */
bool lapack_room_known(lapack_job *job, int a, int b, int c, int d);
/* Keeps what a routine answered: in the first element of its work space, and elsewhere. */
void lapack_room_keep(lapack_job *job, const void *work, int reals, int ints);

/* Runs the job for `count` matrices where all arrays were made, and answers with the first `results` of them; takes the
   references. Small matrices are shared out over threads where BLAS has none; others go one after the other; without the GIL where
   they are worth it. */
PyObject *lapack_finish(lapack_job *job, npy_intp count, double work, PyArrayObject **made, int arrays, int results);

/* Reflections of a real matrix by products (lapack_qr.c): whether they are faster than LAPACK's; the bytes that `count` of them work
   in, where up to `wide` columns are made or changed; and how far apart the columns of a copy should lie, in elements. */
bool lapack_qr_pays(lapack_kind kind, npy_intp rows, npy_intp columns);
npy_intp lapack_qr_scratch(lapack_kind kind, npy_intp rows, npy_intp count, npy_intp wide);
npy_intp lapack_qr_line(lapack_kind kind, npy_intp rows);
/* geqrf with `count` reflections, which the other columns are multiplied by; their triangles are in the scratch then. False where the
   matrix is for LAPACK: something is not finite, squares leave the range of the type, or there is no memory; `a` is lost then. */
bool lapack_qr_factor(lapack_kind kind, npy_intp rows, npy_intp columns, npy_intp count, char *a, npy_intp line, char *taus,
                      char *scratch);
/* The triangles of reflections that were made elsewhere. What is on and above the diagonal of `a` is lost, there and below. */
bool lapack_qr_triangles(lapack_kind kind, npy_intp rows, npy_intp count, char *a, npy_intp line, const char *taus, char *scratch);
/* orgqr, from `a` to `wide` columns of q. False where there is no memory. */
bool lapack_qr_product(lapack_kind kind, npy_intp rows, npy_intp count, npy_intp wide, char *a, npy_intp line, char *q,
                       npy_intp q_line, char *scratch);
/* ormqr: c, of so many columns, times the product of the reflections, or its transpose; or c, of so many rows, from the right. */
bool lapack_qr_times(lapack_kind kind, bool left, bool transpose, npy_intp rows, npy_intp count, npy_intp others, char *a,
                     npy_intp line, char *c, npy_intp c_line, char *scratch);
/* trsm: the first n rows of b, of so many columns, by R as it lies in `a`. */
bool lapack_qr_solve(lapack_kind kind, npy_intp n, npy_intp others, const char *a, npy_intp line, char *b, npy_intp b_line,
                     char *scratch);
/* x by R, or by R turned over. */
void lapack_qr_by_r(lapack_kind kind, npy_intp n, const char *a, npy_intp line, bool turned, char *x);

/* LU of a real matrix by products (lapack_lu.c): whether it is faster than LAPACK's; the bytes it works in; and getrf of matrix i of a batch
   into columns that lie side by side. False where the matrix is for LAPACK: something is not finite, or there is no memory. */
bool lapack_lu_pays(lapack_kind kind, npy_intp rows, npy_intp columns);
npy_intp lapack_lu_scratch(lapack_kind kind, npy_intp rows, npy_intp columns, bool inverse);
bool lapack_lu_factor(lapack_kind kind, const lapack_matrices *x, npy_intp i, char *made, int *pivots, int *info, char *scratch);

/* The inverse of matrix i in the same way, where it has one; the pivots are room for it. */
bool lapack_lu_inverse(lapack_kind kind, const lapack_matrices *x, npy_intp i, char *made, int *pivots, char *scratch);

/* Many right sides of matrix i by products (lapack_sides.c): whether that pays, the bytes it works in, and the answers, column after column: by
   LU's factors (getrs) or by them turned over, and by a triangle (trsm), which may be on the right. False where they are LAPACK's: one is
   not finite, or there is no memory. */
bool lapack_sides_pay(lapack_kind kind, npy_intp n, npy_intp wide);
npy_intp lapack_sides_scratch(lapack_kind kind, npy_intp n);
bool lapack_lu_solve(lapack_kind kind, const lapack_matrices *factors, npy_intp i, const int *pivots, bool turned,
                     const lapack_matrices *sides, char *made, char *scratch);
bool lapack_triangle_solve(lapack_kind kind, const lapack_matrices *x, npy_intp i, bool upper, bool unit, bool left,
                           const lapack_matrices *sides, char *made, char *scratch);

/* Cholesky's factor of matrix i by products (lapack_cholesky.c), whose other triangle is not written. False where it is for LAPACK: it
   is not positive definite, or there is no memory. */
bool lapack_cholesky_pays(lapack_kind kind, npy_intp n);
npy_intp lapack_cholesky_scratch(lapack_kind kind, npy_intp n);
bool lapack_cholesky_factor(lapack_kind kind, bool upper, const lapack_matrices *x, npy_intp i, char *made, char *scratch);

/* Right sides by a triangle of matrix i of x (lapack_triangular.c): whether so many are few enough; and `wide` of them, which lie column
   after column and become the answers, by the triangle or by it turned over, with room for a copy of the matrix. */
bool lapack_few_pay(lapack_kind kind, npy_intp wide);
void lapack_solve_few(const lapack_job *job, npy_intp i, bool upper, bool turned, bool unit, char *made, npy_intp wide,
                      char *scratch);

/* Singular values of a real matrix by reflections of our own (lapack_bidiagonal.c): whether they are faster than LAPACK's, and the bytes
   that are worked in. */
bool lapack_bidiagonal_pays(lapack_kind kind, npy_intp rows, npy_intp columns, bool vectors);
npy_intp lapack_bidiagonal_scratch(lapack_kind kind, npy_intp rows, npy_intp columns, bool vectors);
/* Of matrix i: values from the largest on, and with vectors U, of `left` columns, and the adjoint of V, of `right` rows; u is NULL without. False
   where the matrix is for LAPACK: something is not finite, it has no answer, or there is no memory. */
bool lapack_bidiagonal_svd(lapack_kind kind, const lapack_matrices *x, npy_intp i, char *values, char *u, npy_intp left, char *vh,
                           npy_intp right, char *scratch);

/* Whether LAPACK's routines that run now may have threads of their own. */
bool lapack_shares(void);

/* Eigenvectors of a symmetric tridiagonal matrix by divide and conquer (lapack_divide.c): the bytes that are worked in beside two matrices; and
   of a diagonal, and what is beside it, values from the smallest on in the place of the diagonal, and vectors, column after column. What is
   beside is lost, and `other` is room for as large a matrix. False where there is no answer, or no memory. */
npy_intp lapack_divide_room(lapack_kind kind, npy_intp n);
bool lapack_divide(lapack_kind kind, npy_intp n, void *diagonal, void *beside, char *made, char *other, char *room);

bool lapack_bool(PyObject *object, bool *value);
enum { LAPACK_UPPER, LAPACK_LEFT, LAPACK_UNIT, LAPACK_HERMITIAN, LAPACK_WAY, LAPACK_ROWS, LAPACK_TRANSPOSE, LAPACK_FULL,
       LAPACK_VECTORS, LAPACK_DRIVER, LAPACK_RCOND, LAPACK_COMPLETE, LAPACK_OPTIONS };
/* The options, all of which must be known; false without an exception where one is not. */
bool lapack_options(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values);

/* `count` matrices from i on as a group. */
lapack_group lapack_group_at(const lapack_matrices *x, npy_intp i, int count);

/* The loops for matrices so small that LAPACK's calls cost more than their work; else NULL. */
const lapack_small_real *lapack_small_of(const lapack_job *job, int rows);

/* The loops of a kind; NULL for complex numbers. */
const lapack_small_real *lapack_loops_of(lapack_kind kind);

/* Lets `count` matrices of so many rows and columns at most go side by side. Those that have loops of their own have the same bits there; of others
   all of a call go the same way, so that no bit depends on who shares a group. */
void lapack_side_by_side(lapack_job *job, unsigned (*together)(const lapack_job *job, npy_intp i, int count), int rows, npy_intp count);

/* The same for real matrices of which a vector's worth is rotated as fast as LAPACK takes one, up to 16 columns or rows: one by itself too, where it
   has up to 8, so that its vectors have the signs that they have in a batch. */
void lapack_by_rotations(lapack_job *job, unsigned (*together)(const lapack_job *job, npy_intp i, int count), npy_intp count);

#endif
