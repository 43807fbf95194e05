/* The loops of small factorisations. */
#include "../lapack_small.h"
#include "rows.h"
#include "vector_ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_WIDE = LAPACK_SMALL, AT_ONCE = 4, RIGHT = 16, SWEEPS = 24 };
/* A body for each of the sizes that are met most, which it knows then, and one for columns of 8 or 16. */
#define EACH_SIZE(n, body, wide_body)     \
    switch (n) {                          \
    case 1: body(1); break;               \
    case 2: body(2); break;               \
    case 3: body(3); break;               \
    case 4: body(4); break;               \
    default:                              \
        if (n <= 8)                       \
            wide_body(8);                 \
        else                              \
            wide_body(MOST_WIDE);         \
    }

/* The same for groups of matrices. */
#define EACH_SIZE_TOGETHER(n, body) \
    switch (n) {                    \
    case 2: body(2); break;         \
    case 3: body(3); break;         \
    case 4: body(4); break;         \
    default: body(n);               \
    }
/* Element by element, of two vectors. */
#define PICKED(where, one, other) ((V)(((VI)(one) & (where)) | ((VI)(other) & ~(where))))

#include "as_f32.h"
#include "lapack_small_of_real.h"
#include "turn_of_real.h"
#include "lapack_lanes_of_real.h"
#include "lapack_jacobi_of_real.h"
#include "as_f64.h"
#include "lapack_small_of_real.h"
#include "turn_of_real.h"
#include "lapack_lanes_of_real.h"
#include "lapack_jacobi_of_real.h"

#define LOOPS(suffix, lanes)                                                                                                  \
    {lu_##suffix, lu_solve_##suffix, lu_inverse_##suffix, triangular_##suffix, triangular_line_##suffix, cholesky_##suffix, lanes, lu_together_##suffix, \
     inverse_together_##suffix, cholesky_together_##suffix, solve_together_##suffix, qr_together_##suffix, reflections_together_##suffix, product_together_##suffix, eigh_together_##suffix, svd_together_##suffix}

const lapack_small_loops ISA(lapack_small_loops) = {.real = {LOOPS(f32, LANES_F32), LOOPS(f64, LANES_F64)}};
