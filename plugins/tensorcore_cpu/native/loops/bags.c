/* The loops of rows of a table, bag by bag. */
#include "rows.h"

#include "../bags.h"

enum { COLUMNS = 4 }; /* vectors of a row whose sums stay in registers */

#include "as_f32.h"
#include "bags_of_real.h"
#include "as_f64.h"
#include "bags_of_real.h"

const bag_loops ISA(bag_loops) = {{bags_f32, bags_f64}, {bag_dots_f32, bag_dots_f64}};
