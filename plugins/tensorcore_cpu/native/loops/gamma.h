/* The gamma function's logarithm, its derivative, the incomplete gamma functions and Hurwitz' zeta function of floats, computed in
   double: the last two by the formulas of tensorcore/ops/special/gamma.py, with as many terms as a float has use for. */
#ifndef TENSORCORE_NATIVE_GAMMA_H
#define TENSORCORE_NATIVE_GAMMA_H

#include "functions.h"
#include "loop.h"

#include <math.h>

#define PI 3.14159265358979323846

#define LARGE_SHAPE 1e4 /* from here on, and WITHIN that of a, Temme's expansion */
#define WITHIN 0.13
#define TERM_ENDS 1e-11 /* of the sum */

/* sin(pi x) / x for |x| <= 1/2, of the square */
#define SINE_OF_HALF_TURNS(square)                                                                            \
    P8(square, -2.1915353447830204e-05, 0.00046630280576761234, -0.007370430945714348, 0.08214588661112819,   \
       -0.5992645293207919, 2.550164039877345, -5.167712780049969, 3.141592653589793)

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
