/* Eigenvectors of a symmetric tridiagonal matrix by divide and conquer (Golub and Van Loan, Matrix Computations, 8.4; Cuppen 1981, "A divide
   and conquer method for the symmetric tridiagonal eigenproblem"). What is beside the diagonal is taken out here and there, which leaves
   small matrices for LAPACK, and two neighbours become one by an outer product: LAPACK finds what does not change thereby and the roots,
   one by one, which threads share, and the vectors are products of matrices. */
#include "lapack_divide.h"

#include "gemm.h"
#include "lapack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(lapack_divide_loops, lapack_divide_loops);

enum {
    LEAF = 128,      /* rows at most that are left to LAPACK */
    SPARE = 16,      /* elements behind a vector: what is next to it is another thread's */
    ROOTS_WORK = 1 << 10, /* roots times poles that are worth a thread */
    COPIED = 1 << 15,     /* elements that are */
};

typedef struct {
    lapack_kind kind;
    native_type type;
    npy_intp size, n;
    char *diagonal, *beside, *vectors, *other, *rows; /* `rows`, n of n elements, are the vectors of outer products */
    char *work;                                       /* three vectors of each part, and what LAPACK wants for a leaf */
    int *order, *ints;                                /* where the values from the smallest on are; four numbers for each row of a part */
    npy_intp leaves, leaf_work;
    _Atomic bool failed;
} divide_work;

/* Leaves are halves of halves, as many as leave none too large. */
static npy_intp leaves_of(npy_intp n) {
    npy_intp leaves = 1;
    while ((n + leaves - 1) / leaves > LEAF)
        leaves *= 2;
    return leaves;
}

static npy_intp edge(const divide_work *work, npy_intp leaf) { return work->n * leaf / work->leaves; }

static npy_intp leaf_numbers(npy_intp rows) { return 1 + 4 * rows + rows * rows; }

static npy_intp cut(divide_work *work, lapack_kind kind, npy_intp n, char *room) {
    work->kind = kind;
    work->type = lapack_type(kind);
    work->size = TYPE_SIZE[work->type];
    work->n = n;
    work->leaves = leaves_of(n);
    const npy_intp most = (n + work->leaves - 1) / work->leaves;
    work->leaf_work = rounded_up(leaf_numbers(most) * work->size, 64);
    const npy_intp leaf_ints = (3 + 5 * most) * work->leaves, ints = 4 * n > leaf_ints ? 4 * n : leaf_ints;
    const npy_intp vectors = 3 * (n + SPARE * work->leaves) * work->size, leaves = work->leaf_work * work->leaves;
    const npy_intp sizes[] = {rounded_up(n * n * work->size, 64), rounded_up(vectors > leaves ? vectors : leaves, 64),
                              rounded_up(n * (npy_intp)sizeof(int), 64), rounded_up(ints * (npy_intp)sizeof(int), 64)};
    char *parts[4];
    npy_intp total = 0;
    for (int i = 0; i < 4; i++) {
        parts[i] = room ? room + total : NULL;
        total += sizes[i];
    }
    work->rows = parts[0];
    work->work = parts[1];
    work->order = (int *)parts[2];
    work->ints = (int *)parts[3];
    return total;
}

npy_intp lapack_divide_room(lapack_kind kind, npy_intp n) {
    divide_work work;
    return cut(&work, kind, n, NULL);
}

static void put(const divide_work *work, char *x, npy_intp i, double value) {
    if (work->kind == LAPACK_F32)
        ((float *)x)[i] = (float)value;
    else
        ((double *)x)[i] = value;
}

static void scale(const divide_work *work, char *x, npy_intp count, double by) {
    for (npy_intp i = 0; i < count; i++)
        put(work, x, i, lapack_number_at(work->kind, x, i) * by);
}

/* Leaves [begin, end). */
static void leaves_body(void *context, npy_intp begin, npy_intp end) {
    divide_work *work = context;
    const int line = (int)work->n;
    for (npy_intp leaf = begin; leaf < end; leaf++) {
        const npy_intp first = edge(work, leaf), next = edge(work, leaf + 1), most = (work->n + work->leaves - 1) / work->leaves;
        const int rows = (int)(next - first), numbers = (int)leaf_numbers(most), int_room = (int)(3 + 5 * most);
        char *const vectors = work->vectors + first * work->n * work->size;
        int info;
        memset(vectors, 0, (size_t)(rows * work->n * work->size));
        LAPACK(STEDC, work->kind)("I", &rows, work->diagonal + first * work->size, work->beside + first * work->size,
                                  vectors + first * work->size, &line, work->work + leaf * work->leaf_work, &numbers,
                                  work->ints + leaf * int_room, &int_room, &info);
        for (int i = 0; i < rows; i++)
            work->order[first + i] = i + 1;
        if (info)
            work->failed = true;
    }
}

/* Two neighbours that become one. */
typedef struct {
    divide_work *work;
    npy_intp rows, upper;                   /* of both, and of the first one */
    int kept;                               /* roots to find; the other values stay */
    char *diagonal, *vectors, *other, *found; /* their parts of the work's */
    char *z, *poles, *weights, *rho;
    int *order, *places, *counts;
} merger;

static void roots_body(void *context, npy_intp begin, npy_intp end) {
    merger *of = context;
    const npy_intp size = of->work->size;
    for (npy_intp j = begin; j < end; j++) {
        const int number = (int)j + 1;
        int info;
        LAPACK(LAED4, of->work->kind)(&of->kept, &number, of->poles, of->z, of->found + j * of->kept * size, of->rho,
                                      of->diagonal + j * size, &info);
        if (info)
            of->work->failed = true;
    }
}

static void weights_body(void *context, npy_intp begin, npy_intp end) {
    merger *of = context;
    PICK(lapack_divide_loops)->real[of->work->kind].weights(of->kept, of->found, of->poles, of->z, of->weights, begin, end);
}

static void vectors_body(void *context, npy_intp begin, npy_intp end) {
    merger *of = context;
    char *const room = malloc((size_t)(of->kept * of->work->size));
    if (room)
        PICK(lapack_divide_loops)->real[of->work->kind].vectors(of->kept, of->found, of->weights, of->places, room, begin, end);
    else
        of->work->failed = true;
    free(room);
}

/* LAPACK has the vectors of so few already, in another order. */
static void place_few(const merger *of) {
    const npy_intp size = of->work->size;
    char room[2 * sizeof(double)];
    for (int j = 0; j < of->kept; j++) {
        char *const row = of->found + j * of->kept * size;
        memcpy(room, row, (size_t)(of->kept * size));
        for (int p = 0; p < of->kept; p++)
            memcpy(row + p * size, room + (of->places[p] - 1) * size, (size_t)size);
    }
}

/* Rows [row, row + rows) of the vectors: those of one part, side by side in `from`, `count` of them, times what the outer product's
   vectors have at `at`. */
static void multiply(const merger *of, npy_intp row, npy_intp rows, npy_intp count, const char *from, npy_intp at) {
    divide_work *work = of->work;
    char *const made = of->vectors + row * work->size;
    const gemm_job job = {.rows = of->kept, .columns = rows, .inner = count, .left = of->found + at * work->size,
                          .left_row = of->kept, .left_inner = 1, .right = from, .right_inner = rows, .right_column = 1,
                          .made = made, .made_row = work->n};
    if (count && !gemm_run(work->type, &job))
        work->failed = true;
    for (int j = 0; j < of->kept && !count; j++)
        memset(made + j * work->n * work->size, 0, (size_t)(rows * work->size));
}

/* LAPACK's laed1, whose layout of what is kept laed2 decides: vectors with zeros below, then full ones, then those with zeros above. */
static void merge(merger *of) {
    divide_work *work = of->work;
    const npy_intp size = work->size, lower = of->rows - of->upper;
    const int rows = (int)of->rows, upper = (int)of->upper, line = (int)work->n, forwards = 1, backwards = -1;
    for (npy_intp j = 0; j < of->rows; j++) /* the last row of the one and the first row of the other */
        memcpy(of->z + j * size, of->vectors + (j * work->n + (j < upper ? upper - 1 : upper)) * size, (size_t)size);
    int *const indx = of->counts - 3 * of->rows, info;
    LAPACK(LAED2, work->kind)(&of->kept, &rows, &upper, of->diagonal, of->vectors, &line, of->order, of->rho, of->z, of->poles,
                              of->weights, of->other, indx, of->places, of->counts - of->rows, of->counts, &info);
    if (info) {
        work->failed = true;
        return;
    }
    if (!of->kept) {
        for (int i = 0; i < rows; i++)
            of->order[i] = i + 1;
        return;
    }
    memcpy(of->z, of->weights, (size_t)(of->kept * size));
    native_parallel(of->kept, ROOTS_WORK / of->kept + 1, roots_body, of);
    if (work->failed)
        return;
    if (of->kept > 2) {
        native_parallel(of->kept, (ROOTS_WORK * 16 / of->kept + SPARE) / SPARE * SPARE, weights_body, of);
        native_parallel(of->kept, ROOTS_WORK * 16 / of->kept + 1, vectors_body, of);
    } else {
        place_few(of);
    }
    const npy_intp above = of->counts[0] + of->counts[1], below = of->counts[1] + of->counts[2];
    multiply(of, 0, upper, above, of->other, 0);
    multiply(of, upper, lower, below, of->other + upper * above * size, of->counts[0]);
    const int rest = rows - of->kept;
    LAPACK(LAMRG, work->kind)(&of->kept, &rest, of->diagonal, &forwards, &backwards, of->order);
}

typedef struct {
    divide_work *work;
    npy_intp leaves; /* of each pair */
} divide_level;

/* Pairs [begin, end) of a level. */
static void level_body(void *context, npy_intp begin, npy_intp end) {
    const divide_level *level = context;
    divide_work *work = level->work;
    for (npy_intp i = begin; i < end && !work->failed; i++) {
        const npy_intp leaf = i * level->leaves, first = edge(work, leaf), middle = edge(work, leaf + level->leaves / 2);
        const npy_intp rows = edge(work, leaf + level->leaves) - first, size = work->size, square = first * work->n * size;
        char *const numbers = work->work + 3 * (first + leaf * SPARE) * size;
        int *const ints = work->ints + 4 * first;
        merger of = {.work = work, .rows = rows, .upper = middle - first, .diagonal = work->diagonal + first * size,
                     .vectors = work->vectors + square + first * size, .other = work->other + square, .found = work->rows + square,
                     .z = numbers, .poles = numbers + (rows + SPARE) * size, .weights = numbers + 2 * (rows + SPARE) * size,
                     .rho = work->beside + (middle - 1) * size, .order = work->order + first,
                     .places = ints + rows, .counts = ints + 3 * rows};
        merge(&of);
    }
}

/* Columns [begin, end) in their order. */
static void sort_body(void *context, npy_intp begin, npy_intp end) {
    const divide_work *work = context;
    for (npy_intp j = begin; j < end; j++) {
        const npy_intp from = work->order[j] - 1;
        memcpy(work->other + j * work->n * work->size, work->vectors + from * work->n * work->size, (size_t)(work->n * work->size));
        put(work, work->work, j, lapack_number_at(work->kind, work->diagonal, from));
    }
}

bool lapack_divide(lapack_kind kind, npy_intp n, void *diagonal, void *beside, char *made, char *other, char *room) {
    divide_work work = {.diagonal = diagonal, .beside = beside, .vectors = other, .other = made};
    cut(&work, kind, n, room);
    double most = 0;
    int power;
    for (npy_intp i = 0; i < n; i++) {
        most = fmax(most, fabs(lapack_number_at(kind, diagonal, i)));
        most = i + 1 < n ? fmax(most, fabs(lapack_number_at(kind, beside, i))) : most;
    }
    frexp(most, &power);
    scale(&work, diagonal, n, ldexp(1, -power));
    scale(&work, beside, n - 1, ldexp(1, -power));
    for (npy_intp leaf = 1; leaf < work.leaves; leaf++) {
        const npy_intp at = edge(&work, leaf);
        const double taken = fabs(lapack_number_at(kind, beside, at - 1));
        put(&work, diagonal, at - 1, lapack_number_at(kind, diagonal, at - 1) - taken);
        put(&work, diagonal, at, lapack_number_at(kind, diagonal, at) - taken);
    }
    native_parallel(work.leaves, lapack_shares() ? work.leaves : 1, leaves_body, &work); /* threads that each ask for threads wait for one another */
    for (divide_level level = {&work, 2}; level.leaves <= work.leaves && !work.failed; level.leaves *= 2) {
        const npy_intp pairs = work.leaves / level.leaves;
        if (pairs < native_threads())
            level_body(&level, 0, pairs);
        else
            native_parallel(pairs, 1, level_body, &level);
    }
    if (work.failed)
        return false;
    native_parallel(n, COPIED / n + 1, sort_body, &work);
    memcpy(diagonal, work.work, (size_t)(n * work.size));
    scale(&work, diagonal, n, ldexp(1, power));
    return true;
}
