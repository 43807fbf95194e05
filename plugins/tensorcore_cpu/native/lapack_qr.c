/* Reflections of large real matrices in blocks, so that most of their work is products of matrices: a panel of columns is reflected
   by loops of its own, and all columns behind it by two products with its vectors and one with a triangle (Golub and Van Loan,
   Matrix Computations, 5.2.3). Matrices lie column after column, and a product sees them turned over, row after row. */
#include "gemm.h"
#include "lapack.h"
#include "lapack_qr.h"

#include <string.h>

DECLARE_LOOPS(lapack_qr_loops, lapack_qr_loops);

enum {
    LEAST_COLUMNS = 16,  /* from which on this is faster, */
    MOST_WITH_BLAS = 48, /* rows and columns up to which it is where BLAS makes faster products than loops of ours */
    NEARBY = 1024,       /* bytes between columns, or any number of times so many, that make them fall on one another */
    LINE = 64,           /* bytes of a line of memory */
    FEW = 2,             /* right sides that a triangle is read for by itself */
};

typedef struct {
    const lapack_qr_real *loops;
    native_type type;
    npy_intp size, width;
    char *triangles, *r, *sums, *times, *panel; /* parts of the scratch */
} qr_work;

bool lapack_qr_pays(lapack_kind kind, npy_intp rows, npy_intp columns) {
    if (lapack_complex(kind) || at_most(rows, columns) < LEAST_COLUMNS)
        return false;
    return !gemm_real(lapack_type(kind))->slower_than_blas || (rows <= MOST_WITH_BLAS && columns <= MOST_WITH_BLAS);
}

/* The parts, in elements: triangles, a panel's R, its products with all columns, these times the triangle, and the panel. */
static npy_intp cut(qr_work *work, lapack_kind kind, npy_intp rows, npy_intp count, npy_intp wide, char *scratch) {
    work->loops = &PICK(lapack_qr_loops)->real[kind];
    work->type = lapack_type(kind);
    work->size = TYPE_SIZE[work->type];
    work->width = work->loops->width;
    const npy_intp width = work->width, line = LINE / work->size;
    const npy_intp sizes[] = {(count + width - 1) / width * width * width, width * width, wide * width, wide * width,
                              rows * width};
    char **const parts[] = {&work->triangles, &work->r, &work->sums, &work->times, &work->panel};
    npy_intp total = 0;
    scratch = scratch ? scratch + -(uintptr_t)scratch % LINE : NULL;
    for (int i = 0; i < 5; i++) {
        *parts[i] = scratch ? scratch + total * work->size : NULL;
        total += (sizes[i] + line - 1) / line * line;
    }
    return total * work->size + LINE;
}

npy_intp lapack_qr_scratch(lapack_kind kind, npy_intp rows, npy_intp count, npy_intp wide) {
    qr_work work;
    return cut(&work, kind, rows, count, wide > count ? wide : count, NULL);
}

/* Columns that fall on one another in the caches are packed by products, and turned over slowly. */
npy_intp lapack_qr_line(lapack_kind kind, npy_intp rows) {
    const npy_intp size = TYPE_SIZE[lapack_type(kind)];
    return rows + (rows * size % NEARBY ? 0 : LINE / size);
}

static char *triangle_at(const qr_work *work, npy_intp first) { return work->triangles + first * work->width * work->size; }

/* A matrix as products see it. */
typedef struct {
    const char *data;
    npy_intp row, column;
} side;

/* made = before + left times right; before may be made. */
static bool multiply(const qr_work *work, npy_intp rows, npy_intp columns, npy_intp inner, side left, side right,
                     const char *before, char *made, npy_intp line) {
    const gemm_job job = {.rows = rows, .columns = columns, .inner = inner,
                          .left = left.data, .left_row = left.row, .left_inner = left.column,
                          .right = right.data, .right_inner = right.row, .right_column = right.column,
                          .before = before, .before_row = line, .made = made, .made_row = line};
    return gemm_run(work->type, &job);
}

/* Of -T, column after column: itself, or turned over. */
static side triangle_of(const qr_work *work, npy_intp first, bool turned) {
    return turned ? (side){triangle_at(work, first), work->width, 1} : (side){triangle_at(work, first), 1, work->width};
}

/* The triangle on and above the diagonal of a block. */
static void copy_triangle(const qr_work *work, const char *from, npy_intp from_line, npy_intp columns, char *to, npy_intp to_line) {
    for (npy_intp j = 0; j < columns; j++)
        memcpy(to + j * to_line * work->size, from + j * from_line * work->size, (size_t)((j + 1) * work->size));
}

bool lapack_qr_factor(lapack_kind kind, npy_intp rows, npy_intp columns, npy_intp count, char *a, npy_intp line, char *taus,
                      char *scratch) {
    qr_work work;
    cut(&work, kind, rows, count, columns, scratch);
    const npy_intp size = work.size, width = work.width;
    const side panel = {work.panel, width, 1}, sums = {work.sums, width, 1}, times = {work.times, width, 1};
    for (npy_intp k = 0; k < count; k += width) {
        const npy_intp own = at_most(width, count - k), down = rows - k, rest = columns - k - own;
        char *const block = a + (k * line + k) * size, *const others = block + own * line * size;
        if (!work.loops->reflect(block, line, down, own, work.panel, taus + k * size, triangle_at(&work, k), work.r))
            return false;
        if (rest && !(multiply(&work, rest, own, down, (side){others, line, 1}, panel, NULL, work.sums, width) &&
                      multiply(&work, rest, own, own, sums, triangle_of(&work, k, false), NULL, work.times, width) &&
                      multiply(&work, rest, down, own, times, (side){block, line, 1}, others, others, line)))
            return false;
        copy_triangle(&work, work.r, width, own, block, line);
    }
    for (npy_intp j = count; j < columns; j++) /* which are no panel's, so that nobody has looked at them */
        if (!work.loops->is_finite(a + j * line * size, rows))
            return false;
    return true;
}

/* What geqrf leaves out of the vectors of a block: ones, and zeros above them. */
static void put_units(const qr_work *work, char *block, npy_intp line, npy_intp columns) {
    for (npy_intp j = 0; j < columns; j++) {
        char *column = block + j * line * work->size;
        memset(column, 0, (size_t)(j * work->size));
        if (work->type == TYPE_F32)
            ((float *)column)[j] = 1;
        else
            ((double *)column)[j] = 1;
    }
}

bool lapack_qr_triangles(lapack_kind kind, npy_intp rows, npy_intp count, char *a, npy_intp line, const char *taus, char *scratch) {
    qr_work work;
    cut(&work, kind, rows, count, count, scratch);
    for (npy_intp k = 0; k < count; k += work.width) {
        const npy_intp columns = at_most(work.width, count - k);
        char *const block = a + (k * line + k) * work.size;
        put_units(&work, block, line, columns);
        if (!multiply(&work, columns, columns, rows - k, (side){block, line, 1}, (side){block, 1, line}, NULL, work.sums,
                      work.width))
            return false;
        work.loops->triangle_of(taus + k * work.size, columns, work.sums, triangle_at(&work, k));
    }
    return true;
}

/* From the last block to the first: its own columns were ones of the identity, whose products with its vectors are known, and those
   behind it have zeros in its first rows. */
bool lapack_qr_product(lapack_kind kind, npy_intp rows, npy_intp count, npy_intp wide, char *a, npy_intp line, char *q,
                       npy_intp q_line, char *scratch) {
    qr_work work;
    cut(&work, kind, rows, count, wide, scratch);
    const npy_intp size = work.size, width = work.width;
    const side sums = {work.sums, width, 1}, times = {work.times, width, 1};
    for (npy_intp j = 0; j < wide; j++) {
        memset(q + j * q_line * size, 0, (size_t)(rows * size));
        if (j >= count)
            put_units(&work, q + j * (q_line + 1) * size, q_line, 1);
    }
    for (npy_intp k = (count - 1) / width * width; k >= 0; k -= width) {
        const npy_intp columns = at_most(width, count - k), down = rows - k, rest = wide - k - columns, below = down - columns;
        char *const block = a + (k * line + k) * size, *const made = q + (k * q_line + k) * size;
        char *const others = made + columns * q_line * size, *const other_sums = work.sums + columns * width * size;
        put_units(&work, block, line, columns);
        for (npy_intp i = 0; i < columns; i++)
            for (npy_intp j = 0; j < columns; j++)
                memcpy(work.sums + (i * width + j) * size, block + (j * line + i) * size, (size_t)size);
        if (rest && !multiply(&work, rest, columns, below, (side){others + columns * size, q_line, 1},
                              (side){block + columns * size, 1, line}, NULL, other_sums, width))
            return false;
        if (!multiply(&work, rest + columns, columns, columns, sums, triangle_of(&work, k, true), NULL, work.times, width) ||
            !multiply(&work, rest + columns, down, columns, times, (side){block, line, 1}, made, made, q_line))
            return false;
        for (npy_intp j = 0; j < columns; j++) {
            char *const at = made + j * (q_line + 1) * size;
            if (work.type == TYPE_F32)
                *(float *)at += 1;
            else
                *(double *)at += 1;
        }
    }
    return true;
}

bool lapack_qr_times(lapack_kind kind, bool left, bool transpose, npy_intp rows, npy_intp count, npy_intp others, char *a,
                     npy_intp line, char *c, npy_intp c_line, char *scratch) {
    qr_work work;
    cut(&work, kind, rows, count, others, scratch);
    const npy_intp size = work.size, width = work.width, last = (count - 1) / width * width;
    const bool forwards = left == transpose;
    for (npy_intp i = 0; i <= last; i += width) {
        const npy_intp k = forwards ? i : last - i, columns = at_most(width, count - k), down = rows - k;
        char *const block = a + (k * line + k) * size, *const here = c + (left ? k : k * c_line) * size;
        const side vectors = {block, line, 1}, turned = {block, 1, line}, triangle = triangle_of(&work, k, !transpose);
        put_units(&work, block, line, columns);
        if (left ? !(multiply(&work, others, columns, down, (side){here, c_line, 1}, turned, NULL, work.sums, width) &&
                     multiply(&work, others, columns, columns, (side){work.sums, width, 1}, triangle, NULL, work.times, width) &&
                     multiply(&work, others, down, columns, (side){work.times, width, 1}, vectors, here, here, c_line))
                 : !(multiply(&work, columns, others, down, vectors, (side){here, c_line, 1}, NULL, work.sums, others) &&
                     multiply(&work, columns, others, columns, triangle, (side){work.sums, others, 1}, NULL, work.times, others) &&
                     multiply(&work, down, others, columns, turned, (side){work.times, others, 1}, here, here, c_line)))
            return false;
    }
    return true;
}

/* Block by block from the last: its rows by substitution, and what they take from the rows above by a product. */
bool lapack_qr_solve(lapack_kind kind, npy_intp n, npy_intp others, const char *a, npy_intp line, char *b, npy_intp b_line,
                     char *scratch) {
    const lapack_small_real *small = lapack_loops_of(kind);
    qr_work work;
    cut(&work, kind, n, n, others, scratch);
    const npy_intp size = work.size, block = others > FEW ? work.width : n;
    for (npy_intp end = n, own; end > 0; end -= own) {
        own = at_most(block, end);
        const npy_intp first = end - own;
        for (npy_intp j = 0; j < others; j++) {
            char *const x = b + (j * b_line + first) * size, *const taken = work.sums + j * own * size;
            small->triangular_line(a + first * (line + 1) * size, line, (int)own, false, true, false, x);
            for (npy_intp i = 0; i < own && first; i++)
                if (kind == LAPACK_F32)
                    ((float *)taken)[i] = -((float *)x)[i];
                else
                    ((double *)taken)[i] = -((double *)x)[i];
        }
        if (first && !multiply(&work, others, first, own, (side){work.sums, own, 1}, (side){a + first * line * size, line, 1}, b, b,
                               b_line))
            return false;
    }
    return true;
}

void lapack_qr_by_r(lapack_kind kind, npy_intp n, const char *a, npy_intp line, bool turned, char *x) {
    PICK(lapack_qr_loops)->real[kind].by_r(a, line, n, turned, x);
}
