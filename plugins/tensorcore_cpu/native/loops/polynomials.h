/* Orthogonal polynomials by their recurrences (NIST Digital Library of Mathematical Functions, table 18.9.1), of several elements at
   once, each with its own order: 0 for orders below 0 and those beyond the 63 bits of an integer, as in PyTorch. No more steps are
   taken than to the highest order: the next one would wait for milliseconds. */
#ifndef TENSORCORE_NATIVE_POLYNOMIALS_H
#define TENSORCORE_NATIVE_POLYNOMIALS_H

#include "isa.h"
#include "loop.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { HIGHEST_ORDER = 1 << 20, ABREAST = 2 * LANES_F64 };

typedef union {
    vd vectors[2];
    double each[ABREAST];
} abreast;

ALWAYS_INLINE int whole_order(double n) { return !(n > -1 && n < 0x1p63) ? -1 : n > HIGHEST_ORDER ? HIGHEST_ORDER : (int)n; }

/* Chebyshev's where they have another form: on the edges, and within them from orders on of which the recurrence would be too long
   or, in double, not as near (18.5.1 to 18.5.4). */
ALWAYS_INLINE bool chebyshev_is_apart(double x, double order, int most) {
    return order >= 1 && (fabs(x) == 1 || (order > most && fabs(x) < 1));
}

static double chebyshev_apart(double x, double order, char kind) {
    const double whole = trunc(order);
    if (fabs(x) == 1) {
        const double large = kind == 'u' ? whole + 1 : 2 * whole + 1, sign = fmod(whole, 2) ? -1 : 1;
        const bool plain = kind == 't' || (x > 0 ? kind == 'v' : kind == 'w');
        return (x > 0 ? 1 : sign) * (plain ? 1 : large);
    }
    const double turn = acos(x);
    switch (kind) {
    case 't': return cos(whole * turn);
    case 'u': return sin((whole + 1) * turn) / sin(turn);
    case 'v': return cos((whole + 0.5) * turn) / cos(turn / 2);
    default: return sin((whole + 0.5) * turn) / sin(turn / 2);
    }
}

/* ABREAST points: `first` of x is that of order 1, `next` of x, `last`, `before` and k that of order k + 1. As many steps as the
   highest order takes; what has its own is kept. */
#define RECURRENCE(first, next)                                                                                         \
    vd before[2], last[2];                                                                                              \
    _Pragma("GCC unroll 2") for (int v = 0; v < 2; v++) {                                                               \
        const vd x = points.vectors[v];                                                                                 \
        before[v] = (vd){0} + 1;                                                                                        \
        last[v] = first;                                                                                                \
        const vd order = orders.vectors[v];                                                                             \
        const vl low = order < 1;                                                                                       \
        made.vectors[v] = (vd)((low & (vl)(order + 1)) | (~low & (vl)last[v]));                                         \
    }                                                                                                                   \
    for (int step = 1; step < highest; step++) {                                                                        \
        const double k = step;                                                                                          \
        _Pragma("GCC unroll 2") for (int v = 0; v < 2; v++) {                                                           \
            const vd x = points.vectors[v], after = next(x, last[v], before[v], k);                                     \
            const vl due = orders.vectors[v] > k;                                                                       \
            before[v] = last[v];                                                                                        \
            last[v] = after;                                                                                            \
            made.vectors[v] = (vd)((due & (vl)after) | (~due & (vl)made.vectors[v]));                                   \
        }                                                                                                               \
    }

/* The first of Chebyshev's four kinds. */
#define CHEBYSHEV_FIRST(kind) (kind == 't' ? x : kind == 'u' ? 2 * x : kind == 'v' ? 2 * x - 1 : 2 * x + 1)
#define CHEBYSHEV_NEXT(x, last, before, k) (2 * (x) * (last) - (before))
#define HERMITE_H_NEXT(x, last, before, k) (((x) * (last) - (k) * (before)) * 2)
#define HERMITE_HE_NEXT(x, last, before, k) ((x) * (last) - (k) * (before))
#define LAGUERRE_NEXT(x, last, before, k) (((2 * (k) + 1 - (x)) * (last) - (k) * (before)) / ((k) + 1))
#define LEGENDRE_NEXT(x, last, before, k) (((2 * (k) + 1) * (x) * (last) - (k) * (before)) / ((k) + 1))

/* Up to ABREAST numbers as doubles, and back; whole vectors where they lie side by side. */
#define ABREAST_OF(suffix, type, name)                                                                                  \
    ALWAYS_INLINE void from_##suffix(const char *from, ptrdiff_t step, int count, abreast *to) {                        \
        if (step == sizeof(type) && count == ABREAST)                                                                   \
            for (int j = 0; j < ABREAST; j++)                                                                           \
                to->each[j] = ((const type *)from)[j];                                                                  \
        else                                                                                                            \
            for (int j = 0; j < count; j++)                                                                             \
                to->each[j] = *(const type *)(from + j * step);                                                         \
    }                                                                                                                   \
    ALWAYS_INLINE void to_##suffix(const abreast *from, ptrdiff_t step, int count, char *to) {                          \
        if (step == sizeof(type) && count == ABREAST)                                                                   \
            for (int j = 0; j < ABREAST; j++)                                                                           \
                ((type *)to)[j] = (type)from->each[j];                                                                  \
        else                                                                                                            \
            for (int j = 0; j < count; j++)                                                                             \
                *(type *)(to + j * step) = (type)from->each[j];                                                         \
    }
FLOATS(ABREAST_OF, )

/* A loop over points and their orders. `kind` is that of Chebyshev's polynomials, 0 of others; single precision loses nothing by a
   recurrence in double. */
#define POLYNOMIAL_LOOP(suffix, type, name, kind, point, first, next)                                                   \
    static void name##_##suffix(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                           \
        const int most = sizeof(type) == 4 ? 64 : 6;                                                                    \
        abreast points = {0}, given = {0}, orders = {0}, made;                                                              \
        for (ptrdiff_t i = 0; i < count; i += ABREAST) {                                                                \
            const int here = count - i < ABREAST ? (int)(count - i) : ABREAST;                                          \
            from_##suffix(data[0] + i * steps[0], steps[0], here, &points);                                             \
            from_##suffix(data[1] + i * steps[1], steps[1], here, &given);                                              \
            bool is_apart[ABREAST] = {0}, some = false;                                                                 \
            int highest = 0; /* as a double it would be waited for */                                                   \
            for (int j = 0; j < here; j++) {                                                                            \
                const type x = (type)points.each[j];                                                                    \
                points.each[j] = point;                                                                                 \
                const int order = whole_order(given.each[j]);                                                           \
                orders.each[j] = order;                                                                                 \
                is_apart[j] = kind && chebyshev_is_apart(points.each[j], order, most);                                  \
                some |= is_apart[j];                                                                                    \
                highest = !is_apart[j] && order > highest ? order : highest;                                            \
            }                                                                                                           \
            RECURRENCE(first, next)                                                                                     \
            for (int j = 0; some && j < here; j++)                                                                      \
                if (is_apart[j])                                                                                        \
                    made.each[j] = chebyshev_apart(points.each[j], given.each[j], kind);                                \
            to_##suffix(&made, steps[2], here, data[2] + i * steps[2]);                                                 \
        }                                                                                                               \
    }
#define CHEBYSHEV_LOOP(suffix, type, name, kind, point)                                                                 \
    POLYNOMIAL_LOOP(suffix, type, name, kind, point, CHEBYSHEV_FIRST(kind), CHEBYSHEV_NEXT)

#endif
