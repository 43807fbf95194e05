/* The loops of LU of large matrices: what is done to a panel of columns, and to the rows behind it. */
#include "../lapack_lu.h"
#include "rows.h"
#include "vector_ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    WIDTH = 32,                   /* columns of a panel: more leave more to loops, and fewer more to products with short sums */
    GROUP = VECTOR == 64 ? 8 : 4, /* columns that are taken away from those behind them at once: two vectors of each in registers */
    PASS = 4,                     /* vectors of a column that a pass takes at once */
    STRIP = 4,                    /* vectors of a block row, which wait for nothing */
};

#define LEAST_f32 FLT_MIN
#define LEAST_f64 DBL_MIN

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_lu_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_lu_of_real.h"

#define LOOPS(suffix) \
    {WIDTH, LU_SPARE_##suffix, lu_panel_##suffix, lu_swap_##suffix, \
     {{lu_lower_##suffix, lu_lower_unit_##suffix}, {lu_upper_##suffix, lu_upper_unit_##suffix}}, lu_is_finite_##suffix}

const lapack_lu_loops ISA(lapack_lu_loops) = {.real = {LOOPS(f32), LOOPS(f64)}};
