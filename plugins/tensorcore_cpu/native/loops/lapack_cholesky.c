/* The loops of Cholesky factors of large matrices: what is done to a panel of columns. */
#include "../lapack_cholesky.h"
#include "rows.h"
#include "vector_ops.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 32, /* columns of a panel */
    STRIP = 4,  /* vectors of rows that go through a panel at once: they stay in the first cache */
};

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_cholesky_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_cholesky_of_real.h"

const lapack_cholesky_loops ISA(lapack_cholesky_loops) = {
    .real = {{WIDTH, STRIP * LANES_F32, cholesky_panel_f32}, {WIDTH, STRIP * LANES_F64, cholesky_panel_f64}}};
