/* Singular values of one real matrix: two diagonals by reflections of our own, their values by LAPACK's dqds, and their
   vectors by sweeps that turn the product of the reflections, or by LAPACK's divide and conquer, and the reflections by products
   of these (Golub and Van Loan, Matrix Computations, 8.6). */
#include "lapack.h"
#include "lapack_bidiagonal.h"

#include <string.h>

DECLARE_LOOPS(lapack_bidiagonal_loops, lapack_bidiagonal_loops);

enum {
    LINE = 64,           /* bytes of a line of memory */
    LEAST = 9,           /* rows or columns from which on this is faster, */
    LEAST_PRODUCTS = 16, /* those of reflections that are by products elsewhere, and here with fewer too, */
    FEW = 96,            /* reflections that are multiplied one by one */
    MOST_SWEPT = 192,    /* up to which vectors of float32 are found faster by sweeps than by divide and conquer, */
    MOST_SWEPT_F64 = 128,
    MOST_BYTES = 1 << 24 /* and of a matrix up to which: a larger one comes from memory for each column */
};

static const lapack_bidiagonal_real *loops_of(lapack_kind kind) { return &PICK(lapack_bidiagonal_loops)->real[kind]; }

static npy_intp size_of(lapack_kind kind) { return kind == LAPACK_F32 ? 4 : 8; }

bool lapack_bidiagonal_pays(lapack_kind kind, npy_intp rows, npy_intp columns, bool vectors) {
    if (lapack_complex(kind) || rows < LEAST || columns < LEAST || rows * columns * size_of(kind) > MOST_BYTES)
        return false;
    return !vectors || lapack_qr_pays(kind, at_least(rows, LEAST_PRODUCTS), at_least(columns, LEAST_PRODUCTS));
}

/* So many that the loops find whole vectors of rows. */
static npy_intp whole_rows(npy_intp n) { return (n + LAPACK_LANES - 1) / LAPACK_LANES * LAPACK_LANES; }

/* Whether vectors are found by sweeps; those that fill up a basis are left to products. */
static bool is_swept(lapack_kind kind, npy_intp n, npy_intp left, npy_intp right) {
    return n <= (kind == LAPACK_F32 ? MOST_SWEPT : MOST_SWEPT_F64) && left == n && right == n;
}

npy_intp lapack_bidiagonal_scratch(lapack_kind kind, npy_intp rows, npy_intp columns, bool vectors) {
    const npy_intp size = size_of(kind), most = at_least(rows, columns), n = rows + columns - most;
    const lapack_bidiagonal_room room = loops_of(kind)->room(most, n, vectors);
    const npy_intp matrix = LINE + rounded_up(room.total * size, LINE);
    if (!vectors)
        return matrix + rounded_up(4 * n * size, LINE);
    const npy_intp lapacks = rounded_up((3 * n + 4) * n * size, LINE) + rounded_up(8 * n * (npy_intp)sizeof(int), LINE);
    const npy_intp swept = rounded_up(whole_rows(n) * room.left_line * size, LINE) + rounded_up(whole_rows(n) * room.line * size, LINE);
    const npy_intp sorted = at_least(n * most * size, (2 * n + 1) * (npy_intp)sizeof(double));
    const npy_intp reflected = lapack_qr_scratch(kind, most, n, most);
    return matrix + (is_swept(kind, n, n, n) ? swept + at_least(sorted, reflected) : 0) + at_least(lapacks, reflected);
}

/* Ones on the diagonal of `columns` columns of `rows` each, and zeros elsewhere, but for the first n of both. */
static void put_identity(lapack_kind kind, npy_intp n, npy_intp rows, npy_intp columns, char *x) {
    const npy_intp size = size_of(kind);
    for (npy_intp j = 0; j < columns; j++) {
        char *const column = x + j * rows * size;
        if (j < n)
            memset(column + n * size, 0, (size_t)((rows - n) * size));
        else
            memset(column, 0, (size_t)(rows * size));
        if (j >= n && j < rows && kind == LAPACK_F32)
            ((float *)column)[j] = 1;
        else if (j >= n && j < rows)
            ((double *)column)[j] = 1;
    }
}

/* The vectors of one side, from those of the diagonals: the reflections by them (`left`), or them by the reflections' transpose.
   Reflections of the matrix's right side (`rights`) begin one element later. */
static bool reflect(lapack_kind kind, const lapack_bidiagonal_room *room, npy_intp rows, npy_intp n, bool rights, bool left,
                    char *x, npy_intp line, npy_intp others, char *matrix, char *scratch) {
    const npy_intp size = size_of(kind), first = rights, length = rights ? n - 1 : rows, count = n - first;
    const npy_intp vectors_line = rights ? room->line : room->left_line;
    char *const vectors = matrix + (rights ? 1 : room->left) * size;
    char *const taus = matrix + (rights ? room->right_taus : room->taus) * size;
    char *const from = x + first * (left ? 1 : line) * size;
    return lapack_qr_triangles(kind, length, count, vectors, vectors_line, taus, scratch) &&
           lapack_qr_times(kind, left, !left, length, count, others, vectors, vectors_line, from, line, scratch);
}

/* The product of the reflections of one side, whose columns are rows of whole vectors. */
static bool product(lapack_kind kind, const lapack_bidiagonal_room *room, npy_intp n, bool rights, const lapack_vectors *made,
                    char *matrix, char *scratch) {
    const npy_intp size = size_of(kind), first = rights, line = rights ? room->line : room->left_line, count = n - first;
    char *const vectors = matrix + (rights ? 1 : room->left) * size;
    char *const taus = matrix + (rights ? room->right_taus : room->taus) * size, *const rows = made->rows;
    memset(rows, 0, (size_t)(whole_rows(n) * made->line * size));
    if (n <= FEW) {
        loops_of(kind)->product(vectors - first * size, line, first, count, taus, made);
        return true;
    }
    if (rights)
        put_identity(kind, 0, made->line, 1, rows);
    return lapack_qr_triangles(kind, made->length - first, count, vectors, line, taus, scratch) &&
           lapack_qr_product(kind, made->length - first, count, count, vectors, line, rows + first * (made->line + 1) * size,
                             made->line, scratch);
}

/* Vectors in the order of their values: column after column, or row after row. */
static void give(lapack_kind kind, npy_intp n, const lapack_vectors *from, const int *order, bool rows, char *to, char *scratch) {
    const npy_intp size = size_of(kind), length = from->length;
    const lapack_matrices sorted = {.data = scratch, .rows = n, .columns = length, .row = length * size, .column = size};
    char *const made = rows ? scratch : to;
    for (npy_intp k = 0; k < n; k++)
        memcpy(made + k * length * size, (char *)from->rows + order[k] * from->line * size, (size_t)(length * size));
    if (rows)
        lapack_copy(&sorted, 0, size, to, n);
}

/* Values and vectors by sweeps. */
static bool by_sweeps(lapack_kind kind, const lapack_bidiagonal_room *room, npy_intp most, npy_intp n, bool wide, char *matrix,
                      char *work, char *u, char *vh) {
    const npy_intp size = size_of(kind);
    char *const diagonal = matrix + room->diagonal * size, *const above = matrix + room->above * size;
    const lapack_vectors left = {work, room->left_line, most};
    const lapack_vectors right = {work + rounded_up(whole_rows(n) * room->left_line * size, LINE), room->line, n};
    char *const rest = (char *)right.rows + rounded_up(whole_rows(n) * room->line * size, LINE);
    int order[MOST_SWEPT];
    if (!product(kind, room, n, false, &left, matrix, rest) || !product(kind, room, n, true, &right, matrix, rest) ||
        !loops_of(kind)->sweeps(n, diagonal, above, rest, &left, &right))
        return false;
    for (int k = 0; k < n; k++) {
        const double value = lapack_number_at(kind, diagonal, k);
        int place = k;
        for (; place > 0 && lapack_number_at(kind, diagonal, order[place - 1]) < value; place--)
            order[place] = order[place - 1];
        order[place] = k;
    }
    for (npy_intp k = 0; k < n; k++) {
        const double value = lapack_number_at(kind, diagonal, order[k]);
        if (kind == LAPACK_F32)
            ((float *)above)[k] = (float)value;
        else
            ((double *)above)[k] = value;
    }
    memcpy(diagonal, above, (size_t)(n * size));
    give(kind, n, wide ? &right : &left, order, false, u, rest);
    give(kind, n, wide ? &left : &right, order, true, vh, rest);
    return true;
}

/* By divide and conquer. */
static bool by_parts(lapack_kind kind, const lapack_bidiagonal_room *room, npy_intp most, int n, bool wide, char *matrix,
                     char *work, char *u, npy_intp left, char *vh, npy_intp right) {
    const npy_intp size = size_of(kind), rows = wide ? n : most, columns = wide ? most : n;
    const int u_line = (int)rows, vh_line = (int)right;
    int info, unused;
    char *const diagonal = matrix + room->diagonal * size, *const above = matrix + room->above * size;
    int *const ints = (int *)(work + rounded_up((3 * (npy_intp)n + 4) * n * size, LINE));
    LAPACK(BDSDC, kind)(wide ? "L" : "U", "I", &n, diagonal, above, u, &u_line, vh, &vh_line, work, &unused, work, ints, &info);
    if (info)
        return false;
    put_identity(kind, n, rows, left, u);
    put_identity(kind, n, right, columns, vh);
    return reflect(kind, room, most, n, wide, true, u, rows, left, matrix, work) &&
           reflect(kind, room, most, n, !wide, false, vh, right, right, matrix, work);
}

bool lapack_bidiagonal_svd(lapack_kind kind, const lapack_matrices *x, npy_intp i, char *values, char *u, npy_intp left, char *vh,
                           npy_intp right, char *scratch) {
    const lapack_bidiagonal_real *loops = loops_of(kind);
    scratch += -(uintptr_t)scratch % LINE;
    const npy_intp size = size_of(kind), rows = x->rows, columns = x->columns, most = at_least(rows, columns);
    const int n = (int)(rows + columns - most);
    const lapack_bidiagonal_room room = loops->room(most, n, u != NULL);
    const bool wide = rows < columns; /* the adjoint is factored then */
    char *const diagonal = scratch + room.diagonal * size, *const work = scratch + rounded_up(room.total * size, LINE);
    lapack_matrices by_rows = *x;
    double power;
    int info;
    if (!wide) {
        by_rows.rows = columns;
        by_rows.columns = rows;
        by_rows.row = x->column;
        by_rows.column = x->row;
    }
    lapack_copy(&by_rows, i, size, scratch, room.line);
    if (!loops->bidiagonal(scratch, most, n, u != NULL, &power))
        return false;
    if (!u) {
        LAPACK(LASQ1, kind)(&n, diagonal, scratch + room.above * size, work, &info);
        if (info)
            return false;
    } else if (is_swept(kind, n, left, right) ? !by_sweeps(kind, &room, most, n, wide, scratch, work, u, vh)
                                        : !by_parts(kind, &room, most, n, wide, scratch, work, u, left, vh, right)) {
        return false;
    }
    for (npy_intp k = 0; k < n; k++)
        if (kind == LAPACK_F32)
            ((float *)values)[k] = (float)(((float *)diagonal)[k] * power);
        else
            ((double *)values)[k] = ((double *)diagonal)[k] * power;
    return true;
}
