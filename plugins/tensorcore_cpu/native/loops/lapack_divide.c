/* The loops of divide and conquer: vectors of a diagonal matrix and an outer product, from their roots. */
#include "../lapack_divide.h"
#include "rows.h"
#include "vector_ops.h"

#include <math.h>
#include <string.h>

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_divide_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_divide_of_real.h"

const lapack_divide_loops ISA(lapack_divide_loops) = {.real = {{weights_f32, vectors_f32}, {weights_f64, vectors_f64}}};
