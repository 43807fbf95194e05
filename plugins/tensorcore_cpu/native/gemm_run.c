/* One matrix product: which of its loops or libraries makes it, how it is cut, and what is packed when. */
#include "gemm.h"

#include "blas.h"
#include "gemm_thirds.h"
#include "native.h"

#include <stdlib.h>

DECLARE_LOOPS(gemm_loops, gemm_loops);

enum {
    PACKED_BYTES = 4 << 20,  /* of the right side at a time: it stays in the last cache */
    WHOLE_BYTES = 300 << 10, /* rows of the left side that stay in one piece, and so in the second cache */
    PART_INNER = 16,         /* parts of the inner dim but the last are whole vectors: what is turned over leaves no rest */
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
    THIN_ROWS = 16,          /* short sums of so many rows are made of sides where they lie, or */
    THIN_MADE = 1 << 20,     /* so many results whose rows are whole vectors: tiles are as fast with more */
    THIN_PIECE = 1 << 14,    /* elements of the result that are one piece of such work, */
    THIN_PIECES = 4,         /* of which so many are worth a second thread */
};

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
    ptrdiff_t step; /* of thin ones: rows or columns of a piece */
} dots_work;

static void dots_body(void *context, npy_intp begin, npy_intp end) {
    const dots_work *work = context;
    work->real->dots(work->job, begin, end);
}

/* Pieces of the longer side of what is made. */
static void thin_body(void *context, npy_intp begin, npy_intp end) {
    const dots_work *work = context;
    const gemm_job *job = work->job;
    gemm_part part = {.rows = job->rows, .columns = job->columns, .inner = job->inner};
    if (job->rows > job->columns) {
        part.row = begin * work->step;
        part.rows = at_most(end * work->step, job->rows) - part.row;
    } else {
        part.column = begin * work->step;
        part.columns = at_most(end * work->step, job->columns) - part.column;
    }
    work->real->thin(job, &part);
}

static bool is_thin(const gemm_real_loops *real, const gemm_job *job) {
    const bool whole = job->columns % real->lanes == 0 && job->rows * job->columns <= THIN_MADE;
    const bool side = job->right_column == 1 || job->right_inner == 1;
    return job->inner <= GEMM_THIN && side && !job->pairs && (whole || job->rows <= THIN_ROWS);
}

/* Rows and columns of the pieces: those of all the ways to cut whose slowest thread is done first. Of two such ways the one
   that leaves the rows together, since nobody then waits until the right side is packed, else the one of more pieces, which
   leaves less to wait for when another program delays a thread. A left side that fits the second cache of each thread and is read
   where it lies costs none of them more for being read by all, nor for more pieces, but where each panel is fetched during the
   one before or zeros are looked for: of 256 columns in two halves the one took 165 us with a neighbour on its core, and the other 108. */
static void cut(product *all, ptrdiff_t columns, ptrdiff_t threads) {
    const gemm_real_loops *real = all->real;
    const bool whole = all->job->rows * all->part.inner * (ptrdiff_t)all->size <= WHOLE_BYTES;
    const bool free = whole && all->left_lies, fine = free && all->job->right_column != 1 && !all->zeros;
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
    switch (type) {
    case TYPE_F32: return ((const float *)job->left)[at] == 0;
    case TYPE_F64: return ((const double *)job->left)[at] == 0;
    case TYPE_I32: return ((const int32_t *)job->left)[at] == 0;
    default: return ((const int64_t *)job->left)[at] == 0;
    }
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

const gemm_real_loops *gemm_real(native_type type) {
    return &PICK(gemm_loops)->real[type == TYPE_I32 ? 2 : type == TYPE_I64 ? 3 : type];
}

bool gemm_run(native_type type, const gemm_job *job) {
    if (type == TYPE_BF16)
        return gemm_run_bf16(job);
    const gemm_real_loops *real = gemm_real(type);
    if (job->rows <= DOT_ROWS && job->inner >= DOT_INNER && job->left_inner == 1 && job->right_inner == 1) {
        dots_work work = {.job = job, .real = real};
        native_parallel(job->columns, rounded_up(DOT_WORK / (job->rows * job->inner) + 1, 4), dots_body, &work);
        return true;
    }
    if (is_thin(real, job)) {
        const ptrdiff_t longer = job->rows > job->columns ? job->rows : job->columns;
        dots_work work = {job, real, rounded_up(THIN_PIECE * longer / (job->rows * job->columns) + 1, real->width)};
        native_parallel(parts_of(longer, work.step), THIN_PIECES, thin_body, &work);
        return true;
    }
    if (type == TYPE_F32 && gemm_takes_thirds(job) && gemm_run_thirds(job))
        return true;
    if (native_blas_run(type, job))
        return true;
    product all = {.job = job, .real = real, .size = TYPE_SIZE[type]};
    const ptrdiff_t threads = job->rows * job->columns * job->inner < GEMM_WORK ? 1 : native_threads();
    const ptrdiff_t most_inner = job->pairs ? real->most_inner / 2 : real->most_inner; /* a part's sum has two products a pair */
    const ptrdiff_t parts = parts_of(job->inner, most_inner);
    const ptrdiff_t inner = parts > 1 ? rounded_up(parts_of(job->inner, parts), PART_INNER) : job->inner;
    const ptrdiff_t most = PACKED_BYTES / (inner * (ptrdiff_t)all.size) / real->width * real->width;
    const ptrdiff_t columns = at_most(rounded_up(job->columns, real->width), most);
    all.part.inner = inner;
    const bool zeros = has_zeros(type, job);
    all.lists = zeros && has_zero_rows(type, job);
    all.strips = !all.lists && job->left_row == 1 && job->left_inner != 1;
    const ptrdiff_t left_step = all.strips ? job->left_inner : job->left_row;
    const bool shared = job->rows * inner * (ptrdiff_t)all.size <= WHOLE_BYTES; /* then each thread meets the left side with its columns alone */
    all.left_lies = !all.lists && real->reads_left && (all.strips || job->left_inner == 1) &&
                    job->columns <= LEFT_COLUMNS * (shared ? threads : 1) &&
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
