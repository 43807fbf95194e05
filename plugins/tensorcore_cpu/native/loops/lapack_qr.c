/* The loops of reflections of large matrices: what is done to a panel of columns. */
#include "../lapack_qr.h"
#include "rows.h"
#include "vector_ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    VECTORS = 4,                   /* the most in a row of a panel, */
    WIDEST = 32,                   /* and the most columns: more leave more to loops, and fewer more to products with short sums */
    GROUP = VECTOR == 64 ? 16 : 8, /* columns whose products with a vector of others stay in registers */
    AT_ONCE = 4,                   /* rows of one vector, whose sums wait for nothing */
    CHUNK = 128,                   /* rows whose products are added up before their sum is added to the others: for exactness */
};

#define LEAST_f32 (FLT_MIN / FLT_EPSILON)
#define MOST_f32 (FLT_MAX / 16)
#define LEAST_f64 (DBL_MIN / DBL_EPSILON)
#define MOST_f64 (DBL_MAX / 16)

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_qr_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_qr_of_real.h"

#define LOOPS(suffix) {QR_WIDTH_##suffix, qr_reflect_##suffix, qr_triangle_of_##suffix, qr_is_finite_##suffix, qr_by_r_##suffix}

const lapack_qr_loops ISA(lapack_qr_loops) = {.real = {LOOPS(f32), LOOPS(f64)}};
