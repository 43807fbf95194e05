/* The loops of symmetric eigenvalue problems of middle size: a tridiagonal matrix by reflections, its eigenvalues by rotations. */
#include "../lapack_eigen.h"
#include "lapack_lines.h"

enum { GROUP = 4, SWEEPS = 30 };

/* A sweep of QL over rows `last` to `first` of a tridiagonal matrix, of which `d` is the diagonal and `squares` those of what is
   beside it: Pal, Walker and Kahan's rotations without square roots (Parlett, The Symmetric Eigenvalue Problem, chapter 8; LAPACK's
   sterf). Each has to wait for the one before, and that is two products, two sums and a division here: of the pivot's square and of
   the pivot times the cosine, `along`, one quotient gives the next. In double for both types, where no square leaves the range. */
typedef struct {
    double shift, along, pivot2, cosine2, sine2;
    uint64_t sign, was_sign; /* of the pivot, and so of the next cosine, and of the last one */
} ql_state;

static const uint64_t SIGN = (uint64_t)1 << 63;
/* Squares below which a pivot, and what is beside the diagonal, count as zeros: products of two of them are in range. */
static const double NO_PIVOT = 1e-140, LEAST_SQUARE = 1e-130;

ALWAYS_INLINE uint64_t sign_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & SIGN;
}

ALWAYS_INLINE double with_sign(double x, uint64_t sign) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits |= sign;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Wilkinson's shift, from the first two rows. */
ALWAYS_INLINE ql_state ql_begin(const double *d, const double *squares, int first, int last) {
    const double beside = sqrt(squares[first]), half = (d[first + 1] - d[first]) / (2 * beside);
    const double shift = d[first] - beside / (half + copysign(sqrt(half * half + 1), half)), along = d[last] - shift;
    return (ql_state){shift, along, along * along, 1, 0, sign_of(along), 0};
}

/* The rotation of rows i + 1 and i: the square of its cosine, with the cosine's sign, and its sine's. */
ALWAYS_INLINE void ql_step(ql_state *at, double *d, double *squares, int i, double *cosine2, double *sine2) {
    const double beside = squares[i], pivot2 = at->pivot2, along = at->along;
    const uint64_t sign = at->sign;
    if (__builtin_expect(pivot2 < NO_PIVOT, 0)) { /* a right angle: the next pivot is what the last cosine left of `beside` */
        squares[i + 1] = at->sine2 * beside;
        d[i + 1] = d[i];
        at->pivot2 = at->cosine2 * beside;
        at->along = 0;
        at->sign = at->was_sign ^ SIGN;
        at->cosine2 = 0;
        at->sine2 = 1;
    } else {
        const double length = pivot2 + beside, inverse = 1 / length, turned = pivot2 * (d[i] - at->shift) - beside * along;
        const double by = turned / (length * pivot2), next = pivot2 * by;
        squares[i + 1] = at->sine2 * length; /* of the last row that is zero, and was so */
        d[i + 1] = along + (d[i] - next);
        at->pivot2 = turned * by;
        at->along = next;
        at->sign ^= sign_of(by);
        at->cosine2 = pivot2 * inverse;
        at->sine2 = beside * inverse;
    }
    at->was_sign = sign;
    *cosine2 = with_sign(at->cosine2, sign);
    *sine2 = at->sine2;
}

#include "as_f32.h"
#include "turn_of_real.h"
#include "lapack_eigen_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "lapack_eigen_of_real.h"

const lapack_eigen_loops ISA(lapack_eigen_loops) = {.real = {{line_f32, room_f32, eigen_f32}, {line_f64, room_f64, eigen_f64}}};
