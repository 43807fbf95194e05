/* The loops of convolutions with fewer multiplications, in float and double. */
#include "../winograd.h"
#include "isa.h"
#include "zip.h"

#include <string.h>

/* Tiles of products: as many accumulators as leave registers for what is multiplied, and smaller heights for what remains. */
#if defined(__AVX512F__)
enum { HEIGHT = 12 };
#define HEIGHTS(X) X(12) X(8) X(4) X(2) X(1)
#elif defined(__AVX2__)
enum { HEIGHT = 6 };
#define HEIGHTS(X) X(6) X(4) X(2) X(1)
#else
enum { HEIGHT = 4 };
#define HEIGHTS(X) X(4) X(2) X(1)
#endif
enum {
    VECTORS = 2,
    TAPS = 9,
    WEIGHTS = WINOGRAD_WEIGHTS * WINOGRAD_WEIGHTS, /* of a channel and an out */
    INNER = 128,  /* channels whose weights stay in the first cache */
};

static ptrdiff_t places(int along) { return along * along; }

/* Tiles of one image that lie in one block. */
typedef struct {
    ptrdiff_t image, row, rows, column, columns;
} piece;

/* The pieces of a block, one after the other: the first one where `at` is 0. */
static bool next_piece(const winograd_job *job, ptrdiff_t block, ptrdiff_t *at, piece *made) {
    const ptrdiff_t first = block / job->parts * job->rows + *at;
    const ptrdiff_t end = at_most(block / job->parts * job->rows + job->rows, job->images * job->down);
    if (first >= end)
        return false;
    made->image = first / job->down;
    made->row = first % job->down;
    made->rows = at_most(end - first, job->down - made->row);
    made->column = block % job->parts * job->columns;
    made->columns = at_most(job->columns, job->across - made->column);
    *at += made->rows;
    return true;
}

#include "as_f32.h"
#include "winograd_of_real.h"
#include "as_f64.h"
#include "winograd_of_real.h"

const winograd_loops ISA(winograd_loops) = {.real = {WINOGRAD_LOOPS(f32), WINOGRAD_LOOPS(f64)}};
