/* The loops of the matrix products, in float and double. */
#include "../gemm.h"
#include "isa.h"
#include "zip.h"

#include <string.h>

/* Tiles: as many accumulators as leave registers for what is multiplied, and smaller heights for what remains. Left rows of
   any step are read where few of them are in a tile: each needs an address of its own. */
#if defined(__AVX512F__)
enum { HEIGHT = 12, VECTORS = 2, READS_LEFT = 0, ROWS = 192, SLOWER_THAN_BLAS = 0 };
#define TILES(X) X(12, 1) X(8, 1) X(4, 1) X(2, 1) X(1, 1) X(12, 2) X(8, 2) X(4, 2) X(2, 2) X(1, 2)
#elif defined(__AVX2__)
enum { HEIGHT = 6, VECTORS = 2, READS_LEFT = 1, ROWS = 144, SLOWER_THAN_BLAS = 0 };
#define TILES(X) X(6, 1) X(4, 1) X(2, 1) X(1, 1) X(6, 2) X(4, 2) X(2, 2) X(1, 2)
#else
enum { HEIGHT = 4, VECTORS = 2, READS_LEFT = 0, ROWS = 96, SLOWER_THAN_BLAS = 1 };
#define TILES(X) X(4, 1) X(2, 1) X(1, 1) X(4, 2) X(2, 2) X(1, 2)
#endif
enum { MANY_REGISTERS = VECTOR == 64 }; /* 32 of them: sixteen sums and what they are of */
enum { INNER = 256, FEW_TILES = 2 /* of rows, for which packing the right side does not pay */ };

#define REAL float
#define V vf
#define V_U vf_u
#define LANES LANES_F32
#define F(name) name##_f32
#define ZIP ZIP_FLOAT
#include "gemm_of_real.h"
#undef REAL
#undef V
#undef V_U
#undef LANES
#undef F
#undef ZIP
#define REAL double
#define V vd
#define V_U vd_u
#define LANES LANES_F64
#define F(name) name##_f64
#define ZIP ZIP_DOUBLE
#include "gemm_of_real.h"

const gemm_loops ISA(gemm_loops) = {.real = {GEMM_LOOPS(f32), GEMM_LOOPS(f64)}};
