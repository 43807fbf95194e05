/* Singular values of one real matrix: two diagonals by reflections of our own, their values by LAPACK's dqds, or their vectors by its
   divide and conquer, and these times the reflections by products (Golub and Van Loan, Matrix Computations, 8.6). */
#include "lapack.h"
#include "lapack_bidiagonal.h"

#include <string.h>

DECLARE_LOOPS(lapack_bidiagonal_loops, lapack_bidiagonal_loops);

enum {
    LINE = 64,           /* bytes of a line of memory */
    LEAST = 9,           /* rows or columns from which on this is faster, */
    LEAST_VECTORS = 48,  /* with vectors, */
    MOST_BYTES = 1 << 23 /* and of a matrix up to which: a larger one comes from memory for each column */
};

static const lapack_bidiagonal_real *loops_of(lapack_kind kind) { return &PICK(lapack_bidiagonal_loops)->real[kind]; }

static npy_intp size_of(lapack_kind kind) { return kind == LAPACK_F32 ? 4 : 8; }

static npy_intp rounded(npy_intp bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static npy_intp larger(npy_intp a, npy_intp b) { return a > b ? a : b; }

bool lapack_bidiagonal_pays(lapack_kind kind, npy_intp rows, npy_intp columns, bool vectors) {
    const npy_intp least = rows < columns ? rows : columns;
    if (lapack_complex(kind) || least < (vectors ? LEAST_VECTORS : LEAST) || rows * columns * size_of(kind) > MOST_BYTES)
        return false;
    return !vectors || lapack_qr_pays(kind, rows, columns);
}

npy_intp lapack_bidiagonal_scratch(lapack_kind kind, npy_intp rows, npy_intp columns, bool vectors) {
    const npy_intp size = size_of(kind), most = larger(rows, columns), n = rows + columns - most;
    const npy_intp matrix = LINE + rounded(loops_of(kind)->room(most, n, vectors).total * size);
    if (!vectors)
        return matrix + rounded(4 * n * size);
    const npy_intp lapacks = rounded((3 * n + 4) * n * size) + rounded(8 * n * (npy_intp)sizeof(int));
    return matrix + larger(lapacks, lapack_qr_scratch(kind, most, n, most));
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
static bool reflect(lapack_kind kind, const lapack_bidiagonal_room *room, npy_intp rows, npy_intp n, bool rights, bool left, char *x,
                    npy_intp line, npy_intp others, char *matrix, char *scratch) {
    const npy_intp size = size_of(kind), first = rights, length = rights ? n - 1 : rows, count = n - first;
    const npy_intp vectors_line = rights ? room->line : room->left_line;
    char *const vectors = matrix + (rights ? 1 : room->left) * size;
    char *const taus = matrix + (rights ? room->right_taus : room->taus) * size;
    char *const from = x + first * (left ? 1 : line) * size;
    return lapack_qr_triangles(kind, length, count, vectors, vectors_line, taus, scratch) &&
           lapack_qr_times(kind, left, !left, length, count, others, vectors, vectors_line, from, line, scratch);
}

bool lapack_bidiagonal_svd(lapack_kind kind, const lapack_matrices *x, npy_intp i, char *values, char *u, npy_intp left, char *vh,
                           npy_intp right, char *scratch) {
    const lapack_bidiagonal_real *loops = loops_of(kind);
    scratch += -(uintptr_t)scratch % LINE;
    const npy_intp size = size_of(kind), rows = x->rows, columns = x->columns, most = larger(rows, columns);
    const int n = (int)(rows + columns - most), u_line = (int)rows, vh_line = (int)right;
    const lapack_bidiagonal_room room = loops->room(most, n, u != NULL);
    const bool wide = rows < columns; /* the adjoint is factored then */
    char *const diagonal = scratch + room.diagonal * size, *const above = scratch + room.above * size;
    char *const work = scratch + rounded(room.total * size);
    lapack_matrices by_rows = *x;
    double power;
    int info, unused;
    if (!wide) {
        by_rows.rows = columns;
        by_rows.columns = rows;
        by_rows.row = x->column;
        by_rows.column = x->row;
    }
    lapack_copy(&by_rows, i, size, scratch, room.line);
    if (!loops->bidiagonal(scratch, most, n, u != NULL, &power))
        return false;
    if (!u)
        LAPACK(LASQ1, kind)(&n, diagonal, above, work, &info);
    else
        LAPACK(BDSDC, kind)(wide ? "L" : "U", "I", &n, diagonal, above, u, &u_line, vh, &vh_line, work, &unused, work,
                            (int *)(work + rounded((3 * (npy_intp)n + 4) * n * size)), &info);
    if (info)
        return false;
    for (npy_intp k = 0; k < n; k++)
        if (kind == LAPACK_F32)
            ((float *)values)[k] = (float)(((float *)diagonal)[k] * power);
        else
            ((double *)values)[k] = ((double *)diagonal)[k] * power;
    if (!u)
        return true;
    put_identity(kind, n, rows, left, u);
    put_identity(kind, n, right, columns, vh);
    return reflect(kind, &room, most, n, wide, true, u, rows, left, scratch, work) &&
           reflect(kind, &room, most, n, !wide, false, vh, right, right, scratch, work);
}
