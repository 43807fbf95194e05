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

/* sin and cos of pi x, of its distance to the nearest integer: within an eighth of a turn by their series, beyond it the one by that of
   the other. The sine has the sign of that distance. */
ALWAYS_INLINE double turned_f64(double x, double *cosine) {
    const double off = x - rint(x), size = abs__f64(off), rest = 0.5 - size;
    const bool far = size > 0.25;
    const double t = far ? rest : size, z = t * t;
    const double sine = t * P8(z, -2.1915353447830215827e-5, 4.6630280576761256442e-4, -0.0073704309457143507773, 0.082145886611128228799,
                               -0.59926452932079207689, 2.5501640398773454439, -5.1677127800499700292, 3.1415926535897932385);
    const double other = P8(z, P2(z, 4.3030695870329470073e-6, -1.0463810492484570712e-4), 0.0019295743094039230479,
                            -0.025806891390014060013, 0.23533063035889320454, -1.3352627688545894959, 4.0587121264167682182,
                            -4.9348022005446793094, 1);
    *cosine = far ? sine : other;
    return off < 0 ? -(far ? other : sine) : far ? other : sine;
}

/* What the logarithm of the gamma function is of 2 + t over t (t + 1), for |t| <= 1 (a Chebyshev fit): it keeps the digits about 1 and 2. */
#define LGAMMA_ABOUT_2(t)                                                                                     \
    P8(t, P8(t, P8(t, P7(t, -7.639292345836201e-10, 1.5746606982777302e-09, 2.0986002157033107e-09, \
        -4.3124957703508178e-09, -7.8425577205383561e-09, 1.6194359237484174e-08, -2.7296358592514825e-09), \
        5.9105658535078692e-09, -4.9827532071170234e-08, 1.042041826608264e-07, -1.8784426446437581e-07, \
        3.958940459367468e-07, -8.5456090897588297e-07, 1.8113906873056685e-06), -3.8468580915330142e-06, \
        8.2212344759429052e-06, -1.7661767658452517e-05, 3.816907658276081e-05, -8.3095114777095614e-05, \
        0.00018255261539826381, -0.00040570739837751511), 0.0009153769240386907, -0.0021081308339216706, \
        0.0049986411646271286, -0.012384192193371805, 0.032965000621156912, -0.10031730167435392, 0.42278433509846713)

/* log of the gamma function of doubles y >= 0: that fit from 1 to 3, to which up to 8 the factors between lead, and y itself under 1; then
   Stirling's series. */
ALWAYS_INLINE double lgamma_right_of_f64(double y) {
    double r = y < 1 ? y + 1 : y, product = 1;
#pragma GCC unroll 5
    for (int k = 0; k < 5; k++) {
        const double below = r - 1;
        product *= r >= 3 ? below : 1;
        r = r >= 3 ? below : r;
    }
    const double t = (y < 1 ? y : r - 1) - 1, u = 1 / y, v = u * u, factor = y < 1 ? y : product, logarithm = log__f64(y < 8 ? factor : y);
    const double series = u * P8(v, -3617. / 122400, 1. / 156, -691. / 360360, 1. / 1188, -1. / 1680, 1. / 1260, -1. / 360, 1. / 12);
    const double far = (y - 0.5) * logarithm - y + 0.91893853320467274178 + series;
    const double near = LGAMMA_ABOUT_2(t) * t * (t + 1) + (y < 1 ? -logarithm : logarithm);
    return y < 8 ? near : far;
}

/* log of the absolute gamma function of doubles, of negative numbers by reflection. Where that leaves few digits, near a root, and where a
   step leaves the range, the C library's, which takes its time. */
static void lgamma_f64(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    enum { PIECE = 256 };
    double from[PIECE], whole[PIECE], made[PIECE];
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        bool left = false;
        for (ptrdiff_t i = 0; i < piece; i++) {
            from[i] = *(const double *)(data[0] + (begin + i) * steps[0]);
            left |= from[i] < 0;
        }
        for (ptrdiff_t i = 0; i < piece; i++)
            made[i] = whole[i] = lgamma_right_of_f64(from[i] < 0 ? 1 - from[i] : from[i]);
        for (ptrdiff_t i = 0; left && i < piece; i++) {
            double unused;
            const double mirrored = log__f64(PI / abs__f64(turned_f64(from[i], &unused))) - whole[i];
            made[i] = from[i] < 0 ? mirrored : whole[i];
        }
        for (ptrdiff_t i = 0; i < piece; i++) {
            const bool hard = !(made[i] < INFINITY) || (from[i] < 0 && !(abs__f64(made[i]) * 32 > whole[i]));
            *(double *)(data[1] + (begin + i) * steps[1]) = hard ? lgamma(from[i]) : made[i];
        }
    }
}

/* Digamma of doubles under 0, given that of 1 - x: by reflection; about the root next to 0 by a polynomial (a Chebyshev fit) of what
   it is times x (x + 1) over the distance from that root, which keeps all digits. */
ALWAYS_INLINE double digamma_left_of_f64(double x, double right) {
    double cosine, sine = turned_f64(x, &cosine), d = x + 0.5040830082644554;
    double made = sine == 0 ? NAN : right - PI * cosine / sine;
    double fit = P8(d,
                    P8(d, P3(d, 0.001711526354042497703, -0.0025607591239320119903, 0.003132799805075916985), -0.0046890993432872320596,
                       0.0071388321294465219474, -0.010696218892483937306, 0.016033588731333016146, -0.024095868997838144768,
                       0.036332556254103178372, -0.055103270873779096146),
                    0.084459734065559794322, -0.13205928582655161125, 0.21490111461004497827, -0.38256261172024050964,
                    0.88230245223912751658, 0.12932033027344587062, -2.2348006047052519905);
    made = abs__f64(d) < 0.31 ? (d + 8.15428206243813e-18) * fit / (x * (x + 1)) : made;
    return x < 0 ? made : right;
}

/* Trigamma of doubles: from 12 on the series has their digits. */
ALWAYS_INLINE double trigamma_of_f64(double x) {
    const double y = x < 0.5 ? 1 - x : x, z = y < 12 ? y + 12 : y, u = 1 / z, v = u * u;
    double passed = 0, cosine;
#pragma GCC unroll 6
    for (int k = 10; k >= 0; k -= 2) { /* the least first */
        const double one = (y + k) * (y + k), next = (y + k + 1) * (y + k + 1);
        passed += (one + next) / (one * next);
    }
    const double series = u * v * P8(v, -3617. / 510, 7. / 6, -691. / 2730, 5. / 66, -1. / 30, 1. / 42, -1. / 30, 1. / 6);
    const double right = ((y < 12 ? passed : 0) + series) + v / 2 + u, part = PI / turned_f64(x, &cosine);
    return x < 0.5 ? part * part - right : right;
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
