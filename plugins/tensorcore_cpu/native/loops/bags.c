/* The loops of rows of a table, bag by bag. */
#include "rows.h"

#include "../bags.h"

enum { COLUMNS = 4 }; /* vectors of a row whose sums stay in registers */

#include "as_f32.h"
#include "bags_of_real.h"
#include "as_f64.h"
#include "bags_of_real.h"

/* Without a branch for each number, so that they are compared in vectors. */
static int64_t falls(const int64_t *line, ptrdiff_t begin, ptrdiff_t end) {
    int64_t wrong = 0;
    for (ptrdiff_t k = begin; k < end; k++)
        wrong |= line[k] | (int64_t)((uint64_t)line[k] - (uint64_t)line[k - 1]);
    return wrong;
}

const bag_loops ISA(bag_loops) = {{bags_f32, bags_f64}, {bag_dots_f32, bag_dots_f64}, falls};
