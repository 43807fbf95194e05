/* The loops that make two diagonals of a matrix, by reflections from both sides, and one of these, by rotations. */
#include "../lapack_bidiagonal.h"
#include "lapack_lines.h"

enum {
    PANEL = 3 << 17, /* bytes of columns that are still in the second cache when they are read again */
    ROWS = 4,        /* rows that are multiplied at once */
    SPARE = 3,       /* rows of zeros below the last one, for that */
    GROUP = 4,       /* rotations that rows go through at once */
    SWEEPS = 30,     /* a row, at most */
};

/* Sweeps of QR over two diagonals, in double for both types. */
typedef struct {
    double f, g; /* the next rotation makes one number of these */
} sweep_state;

typedef struct {
    double cosine, sine;
} rotation;

ALWAYS_INLINE double smaller_of(double a, double b) { return a < b ? a : b; }
ALWAYS_INLINE double larger_of(double a, double b) { return a > b ? a : b; }

/* The rotation that leaves *length of f and g; none where their squares are out of range. */
ALWAYS_INLINE rotation rotation_of(double f, double g, double *length) {
    const double square = f * f + g * g, root = sqrt(square);
    if (__builtin_expect(square < DBL_MIN / DBL_EPSILON, 0)) {
        *length = f;
        return (rotation){1, 0};
    }
    *length = root;
    return (rotation){f / root, g / root};
}

/* The smaller singular value of the last two rows (LAPACK's las2), none of which is zero on the diagonal; or 0 where it is nothing
   beside the first row. */
ALWAYS_INLINE double sweep_shift(const double *d, const double *e, ptrdiff_t first, ptrdiff_t last) {
    const double a = fabs(d[last - 1]), b = fabs(d[last]), beside = fabs(e[last - 1]);
    const double least = smaller_of(a, b), most = larger_of(a, b);
    const double above = 1 + least / most, apart = (most - least) / most, ratio = beside / most;
    const double shift = 2 * least / (sqrt(above * above + ratio * ratio) + sqrt(apart * apart + ratio * ratio));
    const double part = shift / d[first];
    return part * part < DBL_EPSILON ? 0 : shift;
}

ALWAYS_INLINE sweep_state sweep_begin(const double *d, const double *e, ptrdiff_t first, double shift) {
    const double size = fabs(d[first]);
    return (sweep_state){shift > 0 ? (size - shift) * (copysign(1, d[first]) + shift / d[first]) : d[first], e[first]};
}

/* The rotations of columns i and i + 1, `right`, and of these rows. What is left of the first one belongs above the row before. */
ALWAYS_INLINE void sweep_step(sweep_state *at, double *d, double *e, ptrdiff_t i, rotation *right, rotation *left) {
    const rotation one = rotation_of(at->f, at->g, e + i - 1);
    const double f = one.cosine * d[i] + one.sine * e[i], above = one.cosine * e[i] - one.sine * d[i];
    const double below = one.cosine * d[i + 1];
    const rotation other = rotation_of(f, one.sine * d[i + 1], d + i);
    at->f = other.cosine * above + other.sine * below;
    at->g = other.sine * e[i + 1];
    d[i + 1] = other.cosine * below - other.sine * above;
    e[i + 1] *= other.cosine;
    *right = one;
    *left = other;
}

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_bidiagonal_of_real.h"
#include "lapack_sweeps_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_bidiagonal_of_real.h"
#include "lapack_sweeps_of_real.h"

const lapack_bidiagonal_loops ISA(lapack_bidiagonal_loops) = {
    .real = {{bidiagonal_room_f32, bidiagonal_f32, product_f32, sweeps_f32},
             {bidiagonal_room_f64, bidiagonal_f64, product_f64, sweeps_f64}},
};
