/* The loops of systems with a triangle and a few right sides. */
#include "../lapack_triangle.h"
#include "rows.h"
#include "vector_ops.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 16,                   /* rows that are solved at once: whole vectors of each type */
    ROWS = 2,                     /* of a triangle, or vectors of its columns, that meet */
    SIDES = VECTOR == 64 ? 8 : 4, /* so many right sides, whose sums fill the registers */
};

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_triangle_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_triangle_of_real.h"

const lapack_triangle_loops ISA(lapack_triangle_loops) = {
    .real = {{TRIANGLE_SIDES_f32, triangle_solve_f32}, {TRIANGLE_SIDES_f64, triangle_solve_f64}}};
