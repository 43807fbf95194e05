/* The gamma function's logarithm, its derivative, the incomplete gamma functions and Hurwitz' zeta function of floats, computed in
   double: the last two by the formulas of tensorcore/ops/special/gamma.py, with as many terms as a float has use for. */
#ifndef TENSORCORE_NATIVE_GAMMA_H
#define TENSORCORE_NATIVE_GAMMA_H

#include "angles.h"
#include "functions.h"
#include "loop.h"

#include <math.h>

#define PI 3.14159265358979323846

#define LARGE_SHAPE 1e4 /* from here on, and WITHIN that of a, Temme's expansion */
#define WITHIN 0.13
#define TERM_ENDS 1e-11 /* of the sum */

/* log of the gamma function of y >= 1/2, and of `product` in it: Stirling's series from 8 on, up to where the argument is multiplied. */
ALWAYS_INLINE double stirling(double y, double *product) {
    double raised = y * (y + 1) * (y + 2) * (y + 3) * (y + 4) * (y + 5) * (y + 6) * (y + 7);
    bool small = y < 8;
    double z = small ? y + 8 : y, u = 1 / z, v = u * u;
    double series = u * P6(v, -691. / 360360, 1. / 1188, -1. / 1680, 1. / 1260, -1. / 360, 1. / 12);
    *product = small ? raised : 1;
    return (z - 0.5) * log__f64(z) - z + 0.91893853320467274178 + series;
}

/* log of the absolute gamma function; under a half by reflection, the logarithms of both factors in one. */
ALWAYS_INLINE float lgamma_of_f32(float x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double size = abs__f64(x), off = size < 1e9 ? x - (((double)x + magic) - magic) : 0, square = off * off;
    double sine = off * SINE_OF_HALF_TURNS(square);
    bool low = x < 0.5f;
    double product, whole = stirling(low ? 1 - (double)x : x, &product);
    double part = log__f64(low ? PI * product / abs__f64(sine) : product);
    double made = low ? part - whole : whole - part;
    made = x == 1 || x == 2 ? 0 : made;
    return (float)(size == INFINITY ? INFINITY : made);
}

/* The derivative of that: the series from 8 on, up to where the reciprocals of what lies between are taken off, as one quotient of
   w = y (y + 7); under a half by reflection. */
ALWAYS_INLINE float digamma_of_f32(float x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double off = abs__f64(x) < 1e9 ? x - (((double)x + magic) - magic) : 0, rest = 0.5 - abs__f64(off);
    double sine = off * SINE_OF_HALF_TURNS(off * off), cosine = rest * SINE_OF_HALF_TURNS(rest * rest);
    bool low = x < 0.5f;
    double y = low ? 1 - (double)x : x, w = y * (y + 7);
    bool small = y < 8;
    double outer = w * (w + 6), inner = (w + 10) * (w + 12);
    double passed = (2 * y + 7) * ((2 * w + 6) * inner + (2 * w + 22) * outer) / (outer * inner);
    double z = small ? y + 8 : y, u = 1 / z, v = u * u;
    double series = v * P6(v, 691. / 32760, -1. / 132, 1. / 240, -1. / 252, 1. / 120, -1. / 12);
    double right = log__f64(z) - 0.5 * u + series - (small ? passed : 0), left = right - PI * cosine / sine;
    double made = low ? left : right;
    made = x < 0 ? (off == 0 ? NAN : made) : x == INFINITY ? INFINITY : made;
    return (float)made;
}

/* The derivative of that in turn: its own series from 8 on, and the squares of the reciprocals before that two by two. */
ALWAYS_INLINE float trigamma_of_f32(float x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double off = abs__f64(x) < 1e9 ? x - (((double)x + magic) - magic) : 0, sine = off * SINE_OF_HALF_TURNS(off * off);
    bool low = x < 0.5f;
    double y = low ? 1 - (double)x : x, passed = 0;
    bool small = y < 8;
    for (int k = 0; k < 8; k += 2) {
        double one = (y + k) * (y + k), next = (y + k + 1) * (y + k + 1);
        passed += (one + next) / (one * next);
    }
    double z = small ? y + 8 : y, u = 1 / z, v = u * u;
    double series = u + v / 2 + u * v * P6(v, -691. / 2730, 5. / 66, -1. / 30, 1. / 42, -1. / 30, 1. / 6);
    double right = series + (small ? passed : 0);
    double made = low ? PI * PI / (sine * sine) - right : right;
    return (float)(x == -INFINITY ? NAN : made);
}

/* Of doubles: from 12 on the series has their digits. */
static void trigamma_f64(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i++) {
        const double x = AT(const double, 0);
        const bool low = x < 0.5, small = (low ? 1 - x : x) < 12;
        const double y = low ? 1 - x : x, z = small ? y + 12 : y, u = 1 / z, v = u * u;
        double passed = 0;
        for (int k = 11; small && k >= 0; k--) /* the least first */
            passed += 1 / ((y + k) * (y + k));
        const double series = u * v * P8(v, -3617. / 510, 7. / 6, -691. / 2730, 5. / 66, -1. / 30, 1. / 42, -1. / 30, 1. / 6);
        const double right = (passed + series) + v / 2 + u, sine = low ? sin(PI * (x - rint(x))) : 1;
        AT(double, 1) = x == -INFINITY ? NAN : low ? PI * PI / (sine * sine) - right : right;
    }
}

/* mu - log(1 + mu), whose two sides have many digits in common near 0 */
static double log_distance(double mu) {
    if (fabs(mu) > 0.3)
        return mu - log1p(mu);
    double power = mu * mu, sum = power / 2;
    for (int n = 3; n < 40 && fabs(power) > 1e-17 * sum; n++) {
        power *= -mu;
        sum += power / n;
    }
    return sum;
}

/* x^a e^-x / gamma(a + 1); from 20 on by Stirling's series about its peak. */
static double gamma_density(double a, double x) {
    if (a < 20) {
        double product;
        const double whole = stirling(a + 1, &product);
        return exp__f64(a * log__f64(x) - x - whole) * product;
    }
    const double u = 1 / a, v = u * u;
    const double series = u * (1. / 12 + v * (-1. / 360 + v * (1. / 1260 + v * (-1. / 1680 + v / 1188))));
    return exp(-a * log_distance((x - a) / a) - series) / sqrt(6.28318530717958647692 * a);
}

/* Temme's expansion of the upper function (DLMF 8.12), whose coefficients are power series in eta. */
static double gamma_about(double a, double x, bool upper) {
    static const double first[] = {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
                                   0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05};
    static const double second[] = {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454};
    const double mu = (x - a) / a, half = log_distance(mu), eta = copysign(sqrt(2 * half), mu);
    double total = 0, other = 0;
    for (int n = 6; n >= 0; n--)
        total = total * eta + first[n];
    for (int n = 2; n >= 0; n--)
        other = other * eta + second[n];
    const double rest = exp(-a * half) / sqrt(6.28318530717958647692 * a) * (total + other / a), scaled = eta * sqrt(a / 2);
    return upper ? 0.5 * erfc(scaled) + rest : 0.5 * erfc(-scaled) - rest;
}

/* The upper function where one less the lower one has few digits left: a under 1, x up to about that. */
static double upper_near_zero(double a, double x) {
    double term = 1, total = 0, factorial = 1;
    for (int n = 1; n < 30 && fabs(term) > TERM_ENDS * factorial; n++) { /* one quotient a term: numerators by themselves */
        term *= -x;
        factorial *= n;
        total += term / (factorial * (a + n));
    }
    /* Near 0 the logarithm of the gamma function by its power series: Euler's constant, zeta(2) / 2, -zeta(3) / 3, ... */
    double product, gamma = a * (-0.5772156649015329 + a * (0.8224670334241132 + a * (-0.40068563438653143 + a * 0.27058080842778454)));
    if (a >= 1e-3) {
        gamma = stirling(a + 1, &product);
        gamma -= log__f64(product);
    }
    const double less_one = expm1(a * log__f64(x) - gamma);
    return -less_one - (less_one + 1) * a * total;
}

static double incomplete_gamma(double a, double x, bool upper) {
    if (a < 0 || x < 0 || (a == 0 && !(x > 0)) || (a == INFINITY && x == INFINITY))
        return NAN;
    if (a == 0 || (x == INFINITY && a != INFINITY)) /* beside NaN one of the two decides where it can */
        return !upper;
    if (x == 0 || a == INFINITY)
        return upper;
    if (a != a || x != x)
        return NAN;
    if (a > LARGE_SHAPE && fabs(x - a) < WITHIN * a)
        return gamma_about(a, x, upper);
    if (upper && a < 1 && x < 1.1)
        return upper_near_zero(a, x);
    const double density = gamma_density(a, x);
    if (density == 0)
        return (x > a) != upper;
    if (x <= a + 1) { /* the lower one's power series */
        double term = 1, total = 1;
        for (double k = 1; term > TERM_ENDS * total; k++)
            total += term *= x / (a + k);
        return upper ? 1 - density * total : density * total;
    }
    /* Legendre's continued fraction for the upper one, by its numerators and denominators: a quotient in each step would be what
       the next one waits for. */
    double b = x + 1 - a, above = 1, below = b, above_before = 0, below_before = 1;
    for (double k = 1; k < 2000; k++) {
        const double factor = (a - k) * k;
        b += 2;
        const double above_next = b * above + factor * above_before, below_next = b * below + factor * below_before;
        const double one = above_next * below, other = above * below_next, scale = below_next > 1e100 ? 1e-100 : 1;
        above_before = above * scale;
        below_before = below * scale;
        above = above_next * scale;
        below = below_next * scale;
        if (fabs(one - other) <= TERM_ENDS * fabs(one))
            break;
    }
    const double made = density * a * above / below;
    return upper ? made : 1 - made;
}

/* Elements whose terms are made side by side: each takes as many as it needs alone, so that its neighbours change no bit of it. */
enum { GAMMAS = 16, GAMMA_VECTORS = GAMMAS / LANES_F64, TERMS_BETWEEN = 4 };

typedef union {
    vd vectors[GAMMA_VECTORS];
    double lanes[GAMMAS];
} gammas;

typedef struct {
    gammas a, x, made; /* the density, until it is multiplied */
    gammas live;       /* 0 of those that are made elsewhere */
} gamma_block;

ALWAYS_INLINE vd where_live(vl live, vd one, vd other) { return (vd)(((vl)one & live) | ((vl)other & ~live)); }

ALWAYS_INLINE bool any_live(vl live) {
    int64_t any = 0;
    for (int i = 0; i < LANES_F64; i++)
        any |= live[i];
    return any;
}

static void power_series(gamma_block *of) {
    vd term[GAMMA_VECTORS], total[GAMMA_VECTORS];
    vl open = {1};
    for (int p = 0; p < GAMMA_VECTORS; p++) {
        term[p] = of->live.vectors[p];
        total[p] = of->live.vectors[p] * 0 + 1;
    }
    for (double k = 1; any_live(open);)
        for (int j = 0; j < TERMS_BETWEEN; j++, k++) {
            open = (vl){0};
            for (int p = 0; p < GAMMA_VECTORS; p++) {
                const vl live = term[p] > TERM_ENDS * total[p];
                term[p] = (vd)((vl)(term[p] * (of->x.vectors[p] / (of->a.vectors[p] + k))) & live);
                total[p] += term[p];
                open |= live;
            }
        }
    for (int p = 0; p < GAMMA_VECTORS; p++)
        of->made.vectors[p] *= total[p];
}

static void continued_fraction(gamma_block *of) {
    vd b[GAMMA_VECTORS], above[GAMMA_VECTORS], below[GAMMA_VECTORS], above_before[GAMMA_VECTORS], below_before[GAMMA_VECTORS];
    vl live[GAMMA_VECTORS], open = {1};
    for (int p = 0; p < GAMMA_VECTORS; p++) {
        const vd zero = {0};
        b[p] = below[p] = of->x.vectors[p] + 1 - of->a.vectors[p];
        above[p] = below_before[p] = zero + 1;
        above_before[p] = zero;
        live[p] = of->live.vectors[p] != zero;
    }
    for (double k = 1; k < 2000 && any_live(open);)
        for (int j = 0; j < TERMS_BETWEEN; j++, k++) {
            open = (vl){0};
            for (int p = 0; p < GAMMA_VECTORS; p++) {
                const vd factor = (of->a.vectors[p] - k) * k;
                b[p] += 2;
                const vd above_next = b[p] * above[p] + factor * above_before[p];
                const vd below_next = b[p] * below[p] + factor * below_before[p];
                const vd one = above_next * below[p], gap = one - above[p] * below_next, most = TERM_ENDS * one;
                const vd scale = where_live(below_next > 1e100, gap * 0 + 1e-100, gap * 0 + 1);
                above_before[p] = where_live(live[p], above[p] * scale, above_before[p]);
                below_before[p] = where_live(live[p], below[p] * scale, below_before[p]);
                above[p] = where_live(live[p], above_next * scale, above[p]);
                below[p] = where_live(live[p], below_next * scale, below[p]);
                live[p] &= (vl)(gap * gap > most * most);
                open |= live[p];
            }
        }
    for (int p = 0; p < GAMMA_VECTORS; p++)
        of->made.vectors[p] *= of->a.vectors[p] * above[p] / below[p];
}

/* Floats of two rows; what is no usual number, or has its own formula, goes by itself. */
static void incomplete_gammas(char *const *data, const ptrdiff_t *steps, ptrdiff_t count, bool upper) {
    for (ptrdiff_t begin = 0; begin < count; begin += GAMMAS) {
        const int some = count - begin < GAMMAS ? (int)(count - begin) : GAMMAS;
        float as[GAMMAS], xs[GAMMAS];
        bool usual[GAMMAS], right[GAMMAS];
        gamma_block left_side, right_side;
        for (int i = 0; i < GAMMAS; i++) {
            const ptrdiff_t at = begin + (i < some ? i : some - 1);
            const double a = as[i] = *(const float *)(data[0] + at * steps[0]);
            const double x = xs[i] = *(const float *)(data[1] + at * steps[1]);
            usual[i] = a > 0 && a < 20 && x > 0 && x < 300 && !(upper && a < 1 && x < 1.1);
            right[i] = x > a + 1;
            left_side.a.lanes[i] = usual[i] ? a : 1;
            left_side.x.lanes[i] = usual[i] ? x : 1;
        }
        for (int i = 0; i < GAMMAS; i++) {
            double product;
            const double a = left_side.a.lanes[i], x = left_side.x.lanes[i], whole = stirling(a + 1, &product);
            left_side.made.lanes[i] = exp__f64(a * log__f64(x) - x - whole) * product;
        }
        bool series = false, fraction = false;
        right_side = left_side;
        for (int i = 0; i < GAMMAS; i++) {
            usual[i] &= left_side.made.lanes[i] != 0;
            left_side.live.lanes[i] = usual[i] && !right[i];
            right_side.live.lanes[i] = usual[i] && right[i];
            series |= usual[i] && !right[i];
            fraction |= usual[i] && right[i];
        }
        if (series)
            power_series(&left_side);
        if (fraction)
            continued_fraction(&right_side);
        for (int i = 0; i < some; i++) {
            const double made = right[i] ? (upper ? right_side.made.lanes[i] : 1 - right_side.made.lanes[i])
                                         : upper ? 1 - left_side.made.lanes[i] : left_side.made.lanes[i];
            *(float *)(data[2] + (begin + i) * steps[2]) = (float)(usual[i] ? made : incomplete_gamma(as[i], xs[i], upper));
        }
    }
}

/* The sum of (k + q)^-s over k from 0 on: terms as long as q is small, the rest by Euler and Maclaurin. */
static double hurwitz_zeta(double s, double q) {
    static const double bernoulli[] = {1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160}; /* over factorials */
    if (s == 1)
        return INFINITY;
    if (s < 1 || q == INFINITY)
        return NAN;
    if (q <= 0 && q == floor(q))
        return INFINITY; /* a pole */
    if (s != s || q != q || (q <= 0 && s != floor(s)))
        return NAN;
    if (s == INFINITY)
        return q < 1 ? INFINITY : q == 1 ? 1 : NAN;
    double total = 0;
    for (; q < s + 10; q++) {
        const double term = pow(q, -s);
        total += term;
        if (q > 0 && term <= 1e-17 * total)
            return total;
    }
    double term = pow(q, -s);
    total += term * (q / (s - 1) + 0.5);
    term *= s / q;
    for (int j = 0; j < 5 && term != 0; j++) {
        total += term * bernoulli[j];
        term *= (s + 2 * j + 1) / q * ((s + 2 * j + 2) / q);
    }
    return total;
}

#endif
