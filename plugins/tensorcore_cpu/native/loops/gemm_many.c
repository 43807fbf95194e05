/* The loops of batches of small matrix products. */
#include "../gemm_many.h"
#include "isa.h"
#include "zip.h"

enum { MOST_ROWS = 4 }; /* of a block: with two vectors of each, so many sums as do not wait for one another */
enum { MOST_UNROLLED = 4 }; /* columns of a product whose sums of two or three numbers have loops of their own */
#define EACH_WIDTH(X) X(1) X(2) X(4) X(8) X(16)
#define EACH_HEIGHT(X, width) X(width, 1) X(width, 2) X(width, 3) X(width, 4)

#include "as_f32.h"
#include "gemm_many_of_real.h"
#include "as_f64.h"
#include "gemm_many_of_real.h"
#include "as_i32.h"
#include "gemm_many_of_real.h"
#include "as_i64.h"
#include "gemm_many_of_real.h"

const gemm_many_loops ISA(gemm_many_loops) = {.pick = {pick_f32, pick_f64, pick_i32, pick_i64}};
