/* The loops of sums at places and of the largest of rows. */
#include "rows.h"

#include "../scatter.h"

#include <string.h>

enum { TOP_BLOCK = 64 }; /* elements that are passed over together where none of them belongs to the largest */

enum { LOOKED_AT = 512, FEW = 12 }; /* numbers that are looked at together, of rows of a few */

static void bounds(const int64_t *index, ptrdiff_t count, int64_t *low, int64_t *high) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (ptrdiff_t i = 0; i < count; i++) {
        least = index[i] < least ? index[i] : least;
        most = index[i] > most ? index[i] : most;
    }
    *low = least;
    *high = most;
}

#include "as_f32.h"
#include "scatter_of_real.h"
#include "as_f64.h"
#include "scatter_of_real.h"

const scatter_loops ISA(scatter_loops) = {
    {add_slices_f32, add_slices_f64},
    {add_batches_f32, add_batches_f64},
    {add_listed_f32, add_listed_f64},
    {add_places_f32, add_places_f64},
    {add_along_f32, add_along_f64},
    {top_f32, top_f64},
    bounds,
};
