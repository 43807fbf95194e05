/* Bessel functions of orders 0 and 1 of floats and Airy's function, computed in double: the formulas of
   tensorcore/ops/special/bessel.py and the ratios of tables.py there, near 0 and far from it apart, for a piece that lies on
   one side is spared the other. */
#ifndef TENSORCORE_NATIVE_BESSEL_H
#define TENSORCORE_NATIVE_BESSEL_H

#include "functions.h"
#include "loop.h"

#include <float.h>

static const double J0_SMALL_ABOVE[9] = {
    -4.048966507397294e-19, 5.518644994763173e-16, -3.4678701350168793e-13, 1.2675951303927082e-10,
    -2.8521416409303517e-08, 3.910941475209623e-06, -0.0003074859829729618, 0.01211921855097808,
    -0.17291506903064494};
static const double J0_SMALL_BELOW[5] = {
    2.8046767040602636e-11, 3.6340377952473664e-08, 2.1776262373799576e-05, 0.00699723636345437, 1.0};
static const double J1_SMALL_ABOVE[7] = {
    -3.5105352757593e-15, 3.15564039446239e-12, -1.2278072578890331e-09, 2.5524802014869926e-07,
    -2.886559174428264e-05, 0.0016232021310158137, -0.03405537391318949};
static const double J1_SMALL_BELOW[5] = {
    1.0281963908559718e-10, 9.08995765089417e-08, 3.888348306377372e-05, 0.00922564010600649, 1.0};
static const double Y0_SMALL_ABOVE[8] = {
    9.298822005944061e-14, -7.638726072836139e-11, 2.5600254065942457e-08, -4.303500215592291e-06,
    0.00036551905365689595, -0.014041029341580634, 0.1767592683662666, -0.07380429510868723};
static const double Y0_SMALL_BELOW[6] = {
    5.753381512659026e-13, 4.87435581364902e-10, 2.2073446337494242e-07, 6.389160043406492e-05, 0.011472889234341444,
    1.0};
static const double Y1_SMALL_ABOVE[9] = {
    -8.340558285298414e-18, 1.1777497604162577e-14, -7.142419490371018e-12, 2.35030484325304e-09,
    -4.4184810196784906e-07, 4.628932292663754e-05, -0.002455234876549697, 0.05251457858999227, -0.19605709064623894};
static const double Y1_SMALL_BELOW[7] = {
    2.0749045848965548e-16, 3.073230282355227e-13, 2.399045899363827e-10, 1.2286304609131157e-07,
    4.264200436119649e-05, 0.00935497698385925, 1.0};
static const double P0_ABOVE[7] = {
    0.00048682813573043673, 0.05414077587973698, 0.8750712877320224, 4.176648980286461, 7.311547813100546,
    4.844775403188489, 0.9999999999999999};
static const double P0_BELOW[7] = {
    0.000567712486560811, 0.05608311654598271, 0.8857213557463599, 4.196417321585549, 7.325002210720806,
    4.847587903188459, 1.0};
static const double Q0_ABOVE[8] = {
    -2.1120733772195763e-05, -0.0026577865586196866, -0.04522302626804388, -0.241157776050507, -0.5155747714116562,
    -0.4795829118041508, -0.18864431837763918, -0.024999999999999994};
static const double Q0_BELOW[8] = {
    0.0019259962970097054, 0.1355898763386044, 1.9979868238297755, 10.089724545569984, 21.05557063038488,
    19.357812854636105, 7.569210235105488, 1.0};
static const double P1_ABOVE[7] = {
    0.0004734416268471782, 0.04817818284471468, 0.799276038879058, 3.93054036635022, 7.053504443378413,
    4.767673114656768, 1.0};
static const double P1_BELOW[7] = {
    0.0003514366113704058, 0.04517700648707824, 0.7824347937152875, 3.898636218561763, 7.031408661198183,
    4.762985614656802, 1.0};
static const double Q1_ABOVE[8] = {
    6.975563235492575e-05, 0.007511415142850883, 0.1270639259055554, 0.686088346190861, 1.4891320169936733,
    1.4050889070373966, 0.5597339044452186, 0.075};
static const double Q1_BELOW[8] = {
    0.0013882578791689108, 0.11286699073918044, 1.7778485729740487, 9.34724111797211, 20.052372027391076,
    18.815081924300376, 7.474056225936219, 1.0};
static const double K0_SMALL_ABOVE[8] = {
    4.9241892075301924e-12, 8.818563640355968e-10, 1.1570362119527242e-07, 1.0214014083524546e-05,
    0.0005451899602702101, 0.01441850523591188, 0.10569608377461687, -0.5772156649015329};
static const double K0_LARGE_ABOVE[10] = {
    0.01796367282448994, 1.8761151419704891, 30.926993406611246, 173.944789261953, 432.98607449760806,
    537.5017608034103, 350.14571965360074, 119.49787088981059, 19.884671374299174, 1.2533141373155};
static const double K0_LARGE_BELOW[10] = {
    0.04932312411506137, 2.6660370225822723, 34.17771791751571, 168.41588732407556, 388.0308177514965,
    459.3943179667987, 290.4840152541561, 97.27402776760107, 15.990672286191764, 1.0};
static const double K1_SMALL_ABOVE[10] = {
    -1.2137166536221055e-15, -3.1149818492859936e-13, -6.54047500248146e-11, -1.0112901478345438e-08,
    -1.0892182678340606e-06, -7.493042904491131e-05, -0.0028371119837725905, -0.042049020943651316,
    0.03860783245076608, 1.0};
static const double K1_LARGE_ABOVE[8] = {
    0.8805132593627024, 16.616402922941877, 83.91410371642884, 171.93866852847358, 164.66232999285063,
    76.34862153813384, 16.26711931019003, 1.2533141373155008};
static const double K1_LARGE_BELOW[8] = {
    0.07986375894502667, 4.661989992963785, 38.01315933042335, 100.77234981143754, 111.64056839049239,
    56.3079676089151, 12.604283346339184, 1.0};
static const double AIRY_MIDDLE_ABOVE[15] = {
    -1.0748662282660608e-11, 1.461614755162338e-10, 1.0129479093284295e-09, -3.211930960247415e-08,
    1.7697020205925183e-07, 9.550983610699442e-07, -1.5087236771383702e-05, 4.049372576025396e-05,
    0.0002957088784080677, -0.002149792895247372, 0.0014097110611935506, 0.026861326500797943, -0.07155614838583968,
    -0.07207569748791498, 0.3550280538878172};
static const double AIRY_MIDDLE_BELOW[9] = {
    3.0562338822726917e-07, 6.722722719787845e-06, 9.861323545607502e-05, 0.0009663072426110573,
    0.007386184052426271, 0.041605299804460774, 0.18190701216715835, 0.5259970423742897, 1.0};
static const double AIRY_RIGHT_ABOVE[8] = {
    0.16236182813623537, 6.370956533085522, 45.62156323417409, 112.65047199992682, 119.27326886467257,
    58.34385266812044, 12.787660705240677, 0.9999999999999997};
static const double AIRY_RIGHT_BELOW[8] = {
    0.27116263747744085, 7.9356574106898945, 50.973372749129005, 119.42085829537356, 122.9449142730312,
    59.19957370479125, 12.85710514968485, 1.0};
static const double AIRY_P_ABOVE[12] = {
    1251390.0377367004, 36960324.95007414, 200931669.72276703, 381829767.7908368, 322726689.2572757,
    136638324.420427, 30839465.52733987, 3813781.5129446858, 258098.99761285685, 9229.307970077232,
    158.57883208507852, 0.9999999999999992};
static const double AIRY_P_BELOW[12] = {
    1499576.0811865039, 39775070.93420073, 208666548.49166158, 389979986.5303476, 326700075.607437,
    137622131.07125622, 30968784.278294567, 3822888.80794472, 258433.07808900255, 9235.140284888792,
    158.61596557272964, 1.0};
static const double AIRY_Q_ABOVE[12] = {
    144925.78748040774, 5622852.537242679, 30406621.708974596, 54436299.40798797, 42497643.68634509,
    16475581.548129877, 3391792.733174704, 382053.3743018502, 23550.73221344976, 767.732278466749,
    12.042314632134062, 0.06944444444443962};
static const double AIRY_Q_BELOW[12] = {
    9577631.238738606, 160420529.95102337, 643815975.7081974, 988343194.155783, 705499167.2952046,
    258873419.64671192, 51483176.40291596, 5673673.689879275, 344951.8906408624, 11148.84455584465,
    173.95643075389205, 1.0};
#define RATIO(made, x, name)                                                                                  \
    double made;                                                                                              \
    {                                                                                                         \
        HORNER(above_, x, name##_ABOVE)                                                                       \
        HORNER(below_, x, name##_BELOW)                                                                       \
        made = above_ / below_;                                                                               \
    }

/* Sine and cosine of an angle under ANGLE_MOST, by Taylor's series on an eighth of a turn; pi / 2 in two parts, the first of 33
   bits. */
#define ANGLE_MOST 1e5
ALWAYS_INLINE void turned(double angle, double *sine, double *cosine) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double shifted = angle * 0.63661977236758134308 + magic, n = shifted - magic;
    double r = (angle - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11, z = r * r;
    double s = r + r * z * P7(z, -1. / 1307674368000, 1. / 6227020800, -1. / 39916800, 1. / 362880, -1. / 5040, 1. / 120, -1. / 6);
    double c = 1 + z * P8(z, 1. / 20922789888000, -1. / 87178291200, 1. / 479001600, -1. / 3628800, 1. / 40320, -1. / 720,
                          1. / 24, -0.5);
    uint64_t quarter = bits_f64(shifted);
    double up = quarter & 1 ? c : s, across = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -up : up;
    *cosine = (quarter + 1) & 2 ? -across : across;
}

/* Of either order: near 0, with the first zero taken out, and Hankel's expansion from 5 on. */
#define BESSEL_NEAR 5
ALWAYS_INLINE double j_near(double x, int order) {
    double square = x * x;
    if (order) {
        RATIO(made, square, J1_SMALL)
        return made * (square - 14.681970642123893) * x;
    }
    RATIO(made, square, J0_SMALL)
    return made * (square - 5.783185962946784);
}
ALWAYS_INLINE double y_near(double x, int order) {
    double square = x * x, log = log__f64(x) * j_near(x, order), made;
    if (order) {
        RATIO(smooth, square, Y1_SMALL)
        made = smooth * x + (log - 1 / x) * 0.63661977236758134308;
    } else {
        RATIO(smooth, square, Y0_SMALL)
        made = smooth + log * 0.63661977236758134308;
    }
    return x > 0 ? made : x == 0 ? -INFINITY : NAN;
}
/* Of x with its sine and cosine, of which those of x - pi / 4 are made, a quarter of a turn further for order 1. */
ALWAYS_INLINE double hankel(double x, int order, bool second, double sine, double cosine) {
    double inverse = BESSEL_NEAR / x, square = inverse * inverse, p, q;
    if (order) {
        RATIO(first, square, P1)
        RATIO(other, square, Q1)
        p = first, q = other;
    } else {
        RATIO(first, square, P0)
        RATIO(other, square, Q0)
        p = first, q = other;
    }
    q *= inverse;
    double plus = (sine + cosine) * 0.70710678118654752440, minus = (sine - cosine) * 0.70710678118654752440;
    double c = order ? minus : plus, s = order ? -plus : minus;
    return (second ? p * s + q * c : p * c - q * s) * (0.79788456080286535588 / sqrt(x));
}

/* I of small numbers by its power series: in K these are the terms beside a logarithm. */
ALWAYS_INLINE double k_near(double x, int order, bool scaled) {
    double square = x * x, quarter = square * 0.25, half = log__f64(x * 0.5), made;
    if (order) {
        HORNER(smooth, square, K1_SMALL_ABOVE)
        double i = 0.5 * x * P4(quarter, P8(quarter, 1. / 144850083840000, 1. / 1316818944000, 1. / 14631321600, 1. / 203212800,
                                            1. / 3628800, 1. / 86400, 1. / 2880, 1. / 144), 1. / 12, 0.5, 1);
        made = smooth / x + half * i;
    } else {
        HORNER(smooth, square, K0_SMALL_ABOVE)
        made = smooth - half * P2(quarter, P8(quarter, 1. / 1625702400, 1. / 25401600, 1. / 518400, 1. / 14400, 1. / 576, 1. / 36,
                                              0.25, 1), 1);
    }
    made = scaled ? made * exp__f64(x) : made;
    return x > 0 ? made : x == 0 ? INFINITY : NAN;
}
ALWAYS_INLINE double k_far(double x, int order, bool scaled) {
    double inverse = 1 / x, made;
    if (order) {
        RATIO(corrected, inverse, K1_LARGE)
        made = corrected / sqrt(x);
    } else {
        RATIO(corrected, inverse, K0_LARGE)
        made = corrected / sqrt(x);
    }
    return scaled ? made : made * exp__f64(-x);
}

/* Airy's: a ratio up to 2 on either side, then a modulus and a phase on the left and an exponential on the right. */
#define AIRY_NEAR 2
ALWAYS_INLINE double airy_near(double x) {
    RATIO(made, x, AIRY_MIDDLE)
    return made;
}
ALWAYS_INLINE double airy_phase(double size) { return size * sqrt(size) * (2. / 3); }
ALWAYS_INLINE double airy_far(double x, double sine, double cosine, double most) {
    double size = abs__f64(x), root = sqrt(size), phase = airy_phase(size), inverse = 1 / phase, square = inverse * inverse;
    double tall = x > 0 ? inverse : 0.5; /* its ratio is for the right alone */
    RATIO(right, tall, AIRY_RIGHT)
    RATIO(p, square, AIRY_P)
    RATIO(q, square, AIRY_Q)
    double left = (p * (sine + cosine) + q * inverse * (sine - cosine)) * 0.70710678118654752440;
    double made = (x > 0 ? 0.5 * right * exp__f64(-phase) : left) / (sqrt(root) * 1.77245385090551602730);
    /* As PyTorch does, NaN at the infinities, and on the left where the phase is over the largest number. */
    return size == INFINITY || (x < 0 && phase > most) ? NAN : made;
}

/* A piece on its own side of the limit, or on both: `NEAR`, `FAR` (of angles that are not large) and `FURTHER` are expressions of
   x, a double. Its loops take whole vectors, as many as it has elements for: small tensors are a few. */
enum { BESSEL_PIECE = 256, BESSEL_STEP = 16 };
#define PIECES_LOOP(suffix, name, expression)                                                                 \
    static void name##_##suffix(const float *from, float *to, ptrdiff_t count) {                              \
        for (const float *end = from + count; from < end; from += BESSEL_STEP, to += BESSEL_STEP)             \
            INDEPENDENT for (int i = 0; i < BESSEL_STEP; i++) {                                               \
                double x = from[i];                                                                           \
                to[i] = (float)(expression);                                                                  \
            }                                                                                                 \
    }
#define NEAR_AND_FAR(name, limit, most, NEAR, FAR, FURTHER)                                                   \
    PIECES_LOOP(near, name, NEAR)                                                                             \
    PIECES_LOOP(far, name, FAR)                                                                               \
    static void name##_f32(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { \
        float line[BESSEL_PIECE], near[BESSEL_PIECE], far[BESSEL_PIECE];                                      \
        for (ptrdiff_t begin = 0; begin < count; begin += BESSEL_PIECE) {                                     \
            const ptrdiff_t piece = count - begin < BESSEL_PIECE ? count - begin : BESSEL_PIECE;              \
            const ptrdiff_t whole = (piece + BESSEL_STEP - 1) / BESSEL_STEP * BESSEL_STEP;                    \
            bool any_near = false, any_far = false, further = false;                                          \
            for (ptrdiff_t k = 0; k < piece; k++) {                                                           \
                const ptrdiff_t i = begin + k;                                                                \
                const float x = AT(const float, 0);                                                           \
                line[k] = x;                                                                                  \
                any_near |= abs__f32(x) <= (limit);                                                           \
                any_far |= !(abs__f32(x) <= (limit));                                                         \
                further |= !(abs__f32(x) < (most));                                                           \
            }                                                                                                 \
            for (ptrdiff_t k = piece; k < whole; k++)                                                         \
                line[k] = line[0];                                                                            \
            if (any_near)                                                                                     \
                name##_near(line, near, whole);                                                               \
            if (any_far && !further)                                                                          \
                name##_far(line, far, whole);                                                                 \
            for (ptrdiff_t k = 0; further && k < piece; k++) {                                                \
                double x = line[k];                                                                           \
                far[k] = (float)(FURTHER);                                                                    \
            }                                                                                                 \
            for (ptrdiff_t k = 0; k < piece; k++) {                                                           \
                const ptrdiff_t i = begin + k;                                                                \
                AT(float, 1) = !any_far || (any_near && abs__f32(line[k]) <= (limit)) ? near[k] : far[k];     \
            }                                                                                                 \
        }                                                                                                     \
    }

/* x, or what is made of its size. */
ALWAYS_INLINE double bessel_far(double x, int order, bool second, bool further) {
    double size = abs__f64(x), sine, cosine;
    if (further)
        sine = sin(size), cosine = cos(size);
    else
        turned(size, &sine, &cosine);
    double made = hankel(size, order, second, sine, cosine);
    made = order && !second && x < 0 ? -made : made;
    return second && x < 0 ? NAN : made;
}
ALWAYS_INLINE double airy_beyond(double x, bool further, double most) {
    double phase = airy_phase(abs__f64(x)), sine, cosine;
    phase = x < 0 ? phase : 0;
    if (further)
        sine = sin(phase), cosine = cos(phase);
    else
        turned(phase, &sine, &cosine);
    return airy_far(x, sine, cosine, most);
}
#define J_LOOPS(order) \
    NEAR_AND_FAR(bessel_j##order, BESSEL_NEAR, ANGLE_MOST, j_near(x, order), bessel_far(x, order, false, false), \
                 bessel_far(x, order, false, true))
#define Y_LOOPS(order) \
    NEAR_AND_FAR(bessel_y##order, BESSEL_NEAR, ANGLE_MOST, y_near(x, order), bessel_far(x, order, true, false), \
                 bessel_far(x, order, true, true))
J_LOOPS(0)
J_LOOPS(1)
Y_LOOPS(0)
Y_LOOPS(1)
#define K_BEYOND(order, scaled) (x < 0 ? NAN : k_far(x, order, scaled))
#define K_LOOPS(name, order, scaled) \
    NEAR_AND_FAR(name, (order) + 1, INFINITY, k_near(x, order, scaled), K_BEYOND(order, scaled), K_BEYOND(order, scaled))
K_LOOPS(modified_bessel_k0, 0, false)
K_LOOPS(modified_bessel_k1, 1, false)
K_LOOPS(scaled_modified_bessel_k0, 0, true)
K_LOOPS(scaled_modified_bessel_k1, 1, true)
NEAR_AND_FAR(airy_ai, AIRY_NEAR, 2800, airy_near(x), airy_beyond(x, false, FLT_MAX), airy_beyond(x, true, FLT_MAX))

/* Of doubles: the ratios have their digits. */
static void airy_ai_f64(const double *numbers, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i++) {
        const double x = AT(const double, 0);
        AT(double, 1) = abs__f64(x) <= AIRY_NEAR ? airy_near(x) : airy_beyond(x, !(abs__f64(x) < 2800), DBL_MAX);
    }
}

#endif
