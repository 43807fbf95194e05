/* LAPACK as SciPy hands it out to C, routine by routine: found at the first call, and run over batches of matrices on threads. */
#include "lapack.h"
#include "turn.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(lapack_small_loops, lapack_small_loops);
DECLARE_LOOPS(turn_loops, turn_loops);

lapack_function lapack_functions[LAPACK_ROUTINES][LAPACK_KINDS];

static const struct {
    const char *of_reals, *of_complex; /* without the letter of the kind */
    int real_arguments, complex_arguments;
} ROUTINES[LAPACK_ROUTINES] = {
    [GETRF] = {"getrf", "getrf", 6, 6},    [GETRS] = {"getrs", "getrs", 9, 9},    [GETRI] = {"getri", "getri", 7, 7},
    [POTRF] = {"potrf", "potrf", 5, 5},    [POTRI] = {"potri", "potri", 5, 5},    [SYTRF] = {"sytrf", "sytrf", 8, 8},    [HETRF] = {NULL, "hetrf", 0, 8},
    [SYTRS] = {"sytrs", "sytrs", 9, 9},    [HETRS] = {NULL, "hetrs", 0, 9},       [TRSM] = {"trsm", "trsm", 11, 11},     [GEMM] = {"gemm", "gemm", 13, 13},
    [GEQRF] = {"geqrf", "geqrf", 8, 8},    [GEQP3] = {"geqp3", "geqp3", 9, 10},   [LAIC1] = {"laic1", "laic1", 9, 9},    [ORGQR] = {"orgqr", "ungqr", 9, 9},    [ORMQR] = {"ormqr", "unmqr", 13, 13},
    [GELS] = {"gels", "gels", 11, 11},     [GELSY] = {"gelsy", "gelsy", 13, 14},  [GELSD] = {"gelsd", "gelsd", 14, 15},
    [GELSS] = {"gelss", "gelss", 13, 14},  [GESDD] = {"gesdd", "gesdd", 14, 15},  [SYEVD] = {"syevd", "heevd", 11, 13},
    [SYTRD] = {"sytrd", NULL, 10, 0},      [STEDC] = {"stedc", NULL, 11, 0},      [LAED2] = {"laed2", NULL, 17, 0},      [LAED4] = {"laed4", NULL, 8, 0},
    [LAMRG] = {"lamrg", NULL, 6, 0},
    [GEEV] = {"geev", "geev", 14, 14},     [LASQ1] = {"lasq1", NULL, 5, 0},       [BDSDC] = {"bdsdc", NULL, 14, 0},
};

static PyObject *finder;
static bool asked, found;
static int (*get_threads)(void); /* of the BLAS behind the routines; NULL where it does not say, */
static void (*set_threads)(int); /* or may not be told */
static int running, before;      /* calls of its routines, under the GIL; its threads before it was given one, or 0 */

/* Loading */

static int pointers_in(const char *signature) {
    int count = 0;
    for (; *signature; signature++)
        count += *signature == '*';
    return count;
}

/* One function of a dict of capsules whose names are signatures; false where it is missing or is called in another way. */
static bool load_one(PyObject *capsules, const char *name, int arguments, lapack_function *into) {
    PyObject *capsule = PyDict_GetItemString(capsules, name); /* borrowed */
    const char *signature = capsule && PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
    if (!signature || pointers_in(signature) != arguments || !strstr(signature, "int *") || strstr(signature, "long"))
        return false;
    *(void **)into = PyCapsule_GetPointer(capsule, signature); /* ISO C has no cast from an object's address to a function's */
    return *into != NULL;
}

static bool load(PyObject *capsules) {
    for (int routine = 0; routine < LAPACK_ROUTINES; routine++)
        for (int kind = 0; kind < LAPACK_KINDS; kind++) {
            const char *name = kind < LAPACK_C64 ? ROUTINES[routine].of_reals : ROUTINES[routine].of_complex;
            if (!name)
                continue;
            char whole[8] = {"sdcz"[kind]};
            strncat(whole, name, sizeof whole - 2);
            if (!load_one(capsules, whole, kind < LAPACK_C64 ? ROUTINES[routine].real_arguments : ROUTINES[routine].complex_arguments,
                          &lapack_functions[routine][kind]))
                return false;
        }
    return true;
}

static void *address_in(PyObject *found, const char *name) {
    PyObject *address = PyDict_GetItemString(found, name); /* borrowed */
    return address && PyLong_Check(address) ? PyLong_AsVoidPtr(address) : NULL;
}

/* Asks the finder, once: for the capsules by name, or None. */
static bool ready(void) {
    if (asked || !finder)
        return found;
    PyObject *answer = PyObject_CallNoArgs(finder);
    if (!answer)
        return false;
    asked = true;
    found = PyDict_Check(answer) && load(answer);
    *(void **)&get_threads = found ? address_in(answer, "get_threads") : NULL;
    *(void **)&set_threads = found ? address_in(answer, "set_threads") : NULL;
    Py_DECREF(answer);
    return found;
}

PyObject *native_lapack_finder(PyObject *module, PyObject *function) {
    Py_XSETREF(finder, Py_NewRef(function));
    asked = found = false;
    Py_RETURN_NONE;
}

/* Matrices */

static const int NUMBERS[] = {NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT, NPY_CDOUBLE};
static const npy_intp SIZES[] = {4, 8, 8, 16};

int lapack_number(lapack_kind kind) { return NUMBERS[kind]; }

/* How the matrices of an array with elements lie; false where it is not for LAPACK. */
static bool read_array(PyArrayObject *x, int inner, lapack_matrices *read) {
    const int ndim = PyArray_NDIM(x);
    if (ndim < inner || ndim > NATIVE_DIMS || !PyArray_SIZE(x) || !PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x))
        return false;
    const npy_intp *sizes = PyArray_DIMS(x), *steps = PyArray_STRIDES(x);
    *read = (lapack_matrices){.data = PyArray_BYTES(x), .batch = ndim - inner, .columns = 1};
    memcpy(read->sizes, sizes, (size_t)read->batch * sizeof *sizes);
    memcpy(read->steps, steps, (size_t)read->batch * sizeof *steps);
    read->rows = sizes[ndim - inner];
    read->row = steps[ndim - inner];
    if (inner == 2) {
        read->columns = sizes[ndim - 1];
        read->column = steps[ndim - 1];
    }
    return read->rows <= INT_MAX / 64 && read->columns <= INT_MAX / 64;
}

lapack_kind lapack_read(PyObject *object, int inner, lapack_matrices *read) {
    if (!PyArray_CheckExact(object))
        return LAPACK_NONE;
    lapack_kind kind = LAPACK_F32;
    while (kind < LAPACK_KINDS && NUMBERS[kind] != PyArray_TYPE((PyArrayObject *)object))
        kind++;
    return kind < LAPACK_KINDS && read_array((PyArrayObject *)object, inner, read) && ready() ? kind : LAPACK_NONE;
}

bool lapack_read_pivots(PyObject *object, lapack_matrices *read) {
    return PyArray_CheckExact(object) && PyArray_TYPE((PyArrayObject *)object) == NPY_INT32 &&
           read_array((PyArrayObject *)object, 1, read);
}

bool lapack_begin(lapack_job *job, PyObject *x) {
    job->kind = lapack_read(x, 2, &job->x);
    if (job->kind == LAPACK_NONE)
        return false;
    job->size = SIZES[job->kind];
    job->rows = (int)job->x.rows;
    job->columns = (int)job->x.columns;
    job->least = job->rows < job->columns ? job->rows : job->columns;
    return true;
}

npy_intp lapack_count(const lapack_matrices *x) {
    npy_intp count = 1;
    for (int i = 0; i < x->batch; i++)
        count *= x->sizes[i];
    return count;
}

static void stretch(lapack_matrices *x, int batch) {
    const int shift = batch - x->batch;
    if (!shift)
        return;
    memmove(x->sizes + shift, x->sizes, (size_t)x->batch * sizeof *x->sizes);
    memmove(x->steps + shift, x->steps, (size_t)x->batch * sizeof *x->steps);
    for (int i = 0; i < shift; i++) {
        x->sizes[i] = 1;
        x->steps[i] = 0;
    }
    x->batch = batch;
}

bool lapack_join(lapack_matrices *one, lapack_matrices *other, npy_intp *count) {
    const int batch = one->batch > other->batch ? one->batch : other->batch;
    if (batch > NATIVE_DIMS - 2) /* vectors may have one more */
        return false;
    stretch(one, batch);
    stretch(other, batch);
    for (int i = 0; i < batch; i++) {
        const npy_intp size = one->sizes[i] == 1 ? other->sizes[i] : one->sizes[i];
        lapack_matrices *const both[] = {one, other};
        for (int k = 0; k < 2; k++) {
            if (both[k]->sizes[i] != size && both[k]->sizes[i] != 1)
                return false;
            both[k]->steps[i] = both[k]->sizes[i] == 1 ? 0 : both[k]->steps[i];
            both[k]->sizes[i] = size;
        }
    }
    *count = lapack_count(one);
    return true;
}

static PyArrayObject *new_array(int ndim, const npy_intp *shape, int number, const npy_intp *strides) {
    PyArray_Descr *descr = PyArray_DescrFromType(number);
    if (!descr)
        return NULL;
    npy_intp bytes = PyDataType_ELSIZE(descr);
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            bytes = 0; /* NumPy says what is wrong */
    if (bytes >= NATIVE_LINES)
        return native_memory_array(descr, ndim, shape, strides, (size_t)bytes);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, NULL, 0, NULL);
}

PyArrayObject *lapack_new_matrices(const lapack_matrices *like, npy_intp rows, npy_intp columns, lapack_kind kind) {
    npy_intp shape[NATIVE_DIMS], strides[NATIVE_DIMS], step = SIZES[kind];
    const int batch = like->batch;
    memcpy(shape, like->sizes, (size_t)batch * sizeof *shape);
    shape[batch] = rows;
    shape[batch + 1] = columns;
    strides[batch] = step;
    strides[batch + 1] = step *= rows;
    step *= columns;
    for (int i = batch - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape[i];
    }
    return new_array(batch + 2, shape, NUMBERS[kind], strides);
}

PyArrayObject *lapack_new_vectors(const lapack_matrices *like, npy_intp n, int number) {
    npy_intp shape[NATIVE_DIMS + 1];
    memcpy(shape, like->sizes, (size_t)like->batch * sizeof *shape);
    shape[like->batch] = n;
    return new_array(like->batch + (n >= 0), shape, number, NULL);
}

PyArrayObject *lapack_new_rows(const lapack_matrices *like, npy_intp rows, npy_intp columns, lapack_kind kind) {
    npy_intp shape[NATIVE_DIMS + 2];
    memcpy(shape, like->sizes, (size_t)like->batch * sizeof *shape);
    shape[like->batch] = rows;
    shape[like->batch + 1] = columns;
    return new_array(like->batch + 2, shape, NUMBERS[kind], NULL);
}

char *lapack_at(const lapack_matrices *x, npy_intp i) {
    if (x->batch == 1)
        return x->data + i * x->steps[0];
    char *at = x->data;
    for (int k = x->batch - 1; k >= 0 && i; k--) {
        at += i % x->sizes[k] * x->steps[k];
        i /= x->sizes[k];
    }
    return at;
}

void lapack_copy(const lapack_matrices *x, npy_intp i, npy_intp size, char *to, npy_intp line) {
    const char *at = lapack_at(x, i);
    if (x->row == size)
        for (npy_intp column = 0; column < x->columns; column++)
            memcpy(to + column * line * size, at + column * x->column, (size_t)(x->rows * size));
    else if (x->column == size && size <= 8)
        PICK(turn_loops)->turn[size == 4 ? 2 : 3](at, x->row, to, line * size, x->columns, x->rows);
    else
        for (npy_intp column = 0; column < x->columns; column++)
            for (npy_intp row = 0; row < x->rows; row++) {
                const char *from = at + row * x->row + column * x->column;
                char *const here = to + (column * line + row) * size;
                if (size == 4)
                    *(float *)here = *(const float *)from;
                else if (size == 8)
                    *(double *)here = *(const double *)from;
                else
                    *(npy_cdouble *)here = *(const npy_cdouble *)from;
            }
}

lapack_group lapack_group_at(const lapack_matrices *x, npy_intp i, int count) {
    lapack_group group = {.row = x->row, .column = x->column, .count = count};
    for (int m = 0; m < LAPACK_LANES; m++)
        group.at[m] = m < count ? lapack_at(x, i + m) : group.at[count - 1];
    return group;
}

char *lapack_columns(const lapack_matrices *x, npy_intp i, npy_intp size, char *scratch, int *line) {
    if (x->row == size && x->column >= x->rows * size && x->column % size == 0 && x->column / size < INT_MAX) {
        *line = (int)(x->column / size);
        return lapack_at(x, i);
    }
    *line = (int)x->rows;
    lapack_copy(x, i, size, scratch, x->rows);
    return scratch;
}

/* Rooms: what was asked last for each routine and kind, under the GIL. */

static lapack_room rooms[LAPACK_ROUTINES][LAPACK_KINDS];

bool lapack_room_known(lapack_job *job, int a, int b, int c, int d) {
    const int sizes[] = {a, b, c, d};
    job->room = rooms[job->routine][job->kind];
    if (job->room.known && !memcmp(job->room.sizes, sizes, sizeof sizes))
        return true;
    job->room = (lapack_room){.sizes = {a, b, c, d}};
    return false;
}

void lapack_room_keep(lapack_job *job, const void *work, int reals, int ints) {
    const double most = job->kind & 1 ? *(const double *)work : *(const float *)work;
    job->room.work = most < 1 ? 1 : most > INT_MAX ? INT_MAX : (int)most;
    job->room.reals = reals < 1 ? 1 : reals;
    job->room.ints = ints < 1 ? 1 : ints;
    job->room.known = true;
    rooms[job->routine][job->kind] = job->room;
}

/* Running */

/* Bytes; multiplications that are worth a thread; and from which on other threads of Python may go on; the least that go side by side;
   multiplications of one matrix that are worth BLAS's own threads. These wait for each other in loops: where other programs want the
   processors, singular values of 256 rows took 1.8 s in the place of 6 ms, and where none does, two threads take as long as one up to
   256 rows and a tenth less for 512. */
enum { NEAR = 4096, WORK = 1 << 15, WHOLE = 1 << 20, FEWEST = 4, ROTATED_ALONE = 8 };
static const double SHARED = 1e9;

/* Before calls of routines for matrices of so much work each, and after them: how many threads BLAS has meanwhile. Its count is changed
   only where no call runs, because to change it takes memory from those that do. */
static int begin_calls(double work) {
    if (!running++ && work < SHARED && set_threads && get_threads() > 1) {
        before = get_threads();
        set_threads(1);
    }
    return get_threads();
}

static void end_calls(void) {
    if (!--running && before) {
        set_threads(before);
        before = 0;
    }
}

bool lapack_shares(void) { return get_threads && get_threads() > 1; }

static void run(void *context, npy_intp begin, npy_intp end) {
    lapack_job *job = context;
    char near[NEAR] __attribute__((aligned(64))), *scratch = near;
    if (job->scratch > NEAR && !(scratch = native_scratch((size_t)job->scratch))) {
        __atomic_store_n(&job->failed, true, __ATOMIC_RELAXED);
        return;
    }
    const int most = job->together ? job->lanes->lanes : 1;
    for (npy_intp i = begin; i < end; i += most) {
        const int count = end - i < most ? (int)(end - i) : most;
        const bool alone = !job->together || (count == 1 && job->small);
        const unsigned odd = alone ? 1 : job->together(job, i, count);
        for (int m = 0; odd >> m; m++)
            if (odd >> m & 1)
                job->one(job, i + m, scratch);
    }
    if (scratch != near)
        native_scratch_free(scratch, (size_t)job->scratch);
}

PyObject *lapack_finish(lapack_job *job, npy_intp count, double work, PyArrayObject **made, int arrays, int results) {
    bool good = true;
    for (int i = 0; i < arrays; i++)
        good = good && made[i];
    const int threads = native_threads();
    const bool calls = good && !job->small && !job->lanes && !job->calls_none && !job->shares_out && get_threads;
    const bool shares = calls && begin_calls(work) > 1; /* threads that each ask for threads wait for one another */
    const bool whole = (count == 1 && work >= WHOLE) || (shares && work * (double)count >= WORK);
    const bool alone = job->shares_out ? threads == 1 || count < threads : whole;
    if (good && alone) {
        native_without_gil(count, run, job);
    } else if (good) {
        const npy_intp least = work >= WORK ? 1 : (npy_intp)(WORK / (work + 256)) + 1;
        native_parallel(count, job->together ? least * job->lanes->lanes / 2 : least, run, job);
    }
    if (calls)
        end_calls();
    if (good && job->failed) {
        PyErr_NoMemory();
        good = false;
    }
    PyObject *answer = good && results > 1 ? PyTuple_New(results) : NULL;
    for (int i = 0; i < arrays; i++)
        if (answer && i < results)
            PyTuple_SET_ITEM(answer, i, (PyObject *)made[i]);
        else if (good && results == 1 && !i)
            answer = (PyObject *)made[i];
        else
            Py_XDECREF(made[i]);
    return answer;
}

/* Options */

static PyObject *names[LAPACK_OPTIONS];
static const char *const NAMES[] = {"upper", "left", "unitriangular", "hermitian", "way", "rows", "transpose", "full",
                                    "vectors", "driver", "rcond", "complete"};

int lapack_init(void) {
    return native_intern(names, NAMES, LAPACK_OPTIONS);
}

bool lapack_options(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values) {
    return native_options(args, nargs, kwnames, names, LAPACK_OPTIONS, values);
}

bool lapack_bool(PyObject *object, bool *value) {
    *value = object == Py_True;
    return object == Py_True || object == Py_False;
}

const lapack_small_real *lapack_loops_of(lapack_kind kind) {
    return lapack_complex(kind) ? NULL : &PICK(lapack_small_loops)->real[kind];
}

const lapack_small_real *lapack_small_of(const lapack_job *job, int rows) { return rows <= LAPACK_SMALL ? lapack_loops_of(job->kind) : NULL; }

void lapack_side_by_side(lapack_job *job, unsigned (*together)(const lapack_job *job, npy_intp i, int count), int rows, npy_intp count) {
    job->lanes = rows <= LAPACK_TOGETHER && (count >= FEWEST || job->small) ? lapack_loops_of(job->kind) : NULL;
    job->together = job->lanes ? together : NULL;
}

void lapack_by_rotations(lapack_job *job, unsigned (*together)(const lapack_job *job, npy_intp i, int count), npy_intp count) {
    const int most = job->rows > job->columns ? job->rows : job->columns;
    const bool pays = job->least <= LAPACK_SMALL && most <= LAPACK_TOGETHER && (job->least <= ROTATED_ALONE || count >= FEWEST);
    job->lanes = pays ? lapack_loops_of(job->kind) : NULL;
    job->together = job->lanes ? together : NULL;
}
