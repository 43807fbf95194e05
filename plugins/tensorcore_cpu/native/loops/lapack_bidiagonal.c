/* The loops that make two diagonals of a matrix, by reflections from both sides. */
#include "../lapack_bidiagonal.h"
#include "lapack_lines.h"

enum {
    PANEL = 3 << 17, /* bytes of columns that are still in the second cache when they are read again */
    ROWS = 4,        /* rows that are multiplied at once */
    SPARE = 3,       /* rows of zeros below the last one, for that */
};

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_bidiagonal_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_bidiagonal_of_real.h"

const lapack_bidiagonal_loops ISA(lapack_bidiagonal_loops) = {
    .real = {{bidiagonal_room_f32, bidiagonal_f32}, {bidiagonal_room_f64, bidiagonal_f64}},
};
