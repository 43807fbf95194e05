/* exp, log, tanh, erf and what is made of them, in float and double: one element at a time without branches, so that the
   compiler makes vectors of the loops around them. Polynomials are Chebyshev fits; the error that a user sees is in
   tests/cpu/test_native_elementwise.py. NaN passes through, infinities and denormals come out as from libm. */
#ifndef TENSORCORE_NATIVE_FUNCTIONS_H
#define TENSORCORE_NATIVE_FUNCTIONS_H

#include "isa.h"

#include <math.h>
#include <string.h>

/* exp_limits.c: for GCC a comparison with a constant it knows is a reason to write the rest of the function twice, with
   masks, where one with a number from memory becomes a maximum. As integers, because no result of type REAL can alias them. */
extern const int32_t exp_limits_f32[4];
extern const int64_t exp_limits_f64[3];
enum { EXP_LEAST, EXP_FLUSHED, EXP_MOST, POWER_FLUSHED };

/* Horner's rule, the highest power first. */
#define P1(x, a) (a)
#define P2(x, a, b) ((a) * (x) + (b))
#define P3(x, a, b, c) (P2(x, a, b) * (x) + (c))
#define P4(x, a, b, c, d) (P3(x, a, b, c) * (x) + (d))
#define P5(x, a, b, c, d, e) (P4(x, a, b, c, d) * (x) + (e))
#define P6(x, a, b, c, d, e, f) (P5(x, a, b, c, d, e) * (x) + (f))
#define P7(x, a, b, c, d, e, f, g) (P6(x, a, b, c, d, e, f) * (x) + (g))
#define P8(x, a, b, c, d, e, f, g, h) (P7(x, a, b, c, d, e, f, g) * (x) + (h))
/* Of a table. */
#define HORNER(made, x, table)                                                                                \
    double made = table[0];                                                                                   \
    for (size_t power_ = 1; power_ < sizeof table / sizeof *table; power_++)                                  \
        made = made * (x) + table[power_];

#define REAL float
#define INT int32_t
#define UINT uint32_t
#define F(name) name##_f32
#define FRACTION_BITS 23
#define EXPONENT_BIAS_F32 127
#define EXPONENT_BIAS EXPONENT_BIAS_F32
#define MAGIC_F32 12582912.0f
#define MAGIC MAGIC_F32 /* 1.5 * 2^23: adding it rounds to an integer, which its low bits then hold */
#define LN2_HIGH_F32 0.693145751953125f
#define LN2_LOW_F32 1.42860682030941723e-6f
#define LN2_HIGH LN2_HIGH_F32
#define LN2_LOW LN2_LOW_F32
#define TANH_ONE 10.0f
#define ERFC_ZERO 9.5f
#define ERFC_LEAST 11.0f
#define LEAST_NORMAL 1.17549435e-38f
#define RAISE 25
#define ROOT_HALF 0x3f3504f3
/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2 */
#define EXP_SERIES(r)                                                                                          \
    P5(r, 0.0013926250831497612f, 0.0083632328836826182f, 0.041666554212984150f, 0.16666576666119928f, 0.5f)
/* (log((1 + s) / (1 - s)) / s - 2) / z with z = s^2, for numbers between the roots of 1/2 and 2 */
#define LOG_SERIES(z)                                                                                          \
    P5(z, 0.193638849866332f, 0.22191337424065784f, 0.28571755535032942f, 0.39999998792441689f, 0.66666666667378686f)
/* erf(x) / x with y = x^2 <= 1 */
#define ERF_SERIES(y)                                                                                          \
    P8(y, -9.6670445714869964e-6f, 0.00011265959025606609f, -0.00084840804055351063f, 0.0052210318078580228f,  \
       -0.026865430727670243f, 0.11283782495236845f, -0.3761263846802871f, 1.1283791670615434f)
/* exp(x^2) erfc(x) for 0 <= x <= 9.5 */
ALWAYS_INLINE float scaled_erfc_f32(float x) {
    float u = 1 / (x + 2);
    return u * P3(u,
                  P8(u, 20.630793665986527f, -84.192320340729623f, 133.58592270104566f, -100.87742439909498f,
                     32.909455954609282f, -4.6441908971917463f, 3.8493847206455087f, 1.8854280260280416f),
                  1.1327277741279913f, 0.56409890620585466f);
}
#include "functions_of_real.h"

#define REAL double
#define INT int64_t
#define UINT uint64_t
#define F(name) name##_f64
#define FRACTION_BITS 52
#define EXPONENT_BIAS 1023
#define MAGIC 6755399441055744.0
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#define TANH_ONE 20.0
#define ERFC_ZERO 28.0
#define ERFC_LEAST 28.0
#define LEAST_NORMAL 2.2250738585072014e-308
#define RAISE 54
#define ROOT_HALF 0x3fe6a09e667f3bcd
#define EXP_SERIES(r)                                                                                          \
    P4(r,                                                                                                      \
       P8(r, 2.09147553258932022e-9, 2.5105312729622101787e-8, 2.7557273478718580474e-7, 2.7557255170000887e-6,\
          2.48015873256774619e-5, 0.00019841269875002278793, 0.0013888888888883711, 0.0083333333333260831),    \
       0.041666666666666669783, 0.1666666666666667103, 0.5)
#define LOG_SERIES(z)                                                                                          \
    P8(z, 0.1308803485092755383, 0.13268638369266823879, 0.15386244737621666606, 0.18181795547521136235,       \
       0.22222222392581045097, 0.28571428570799785031, 0.40000000000000883236, 0.66666666666666666463)
#define ERF_SERIES_F64(y)                                                                                          \
    P6(y,                                                                                                      \
       P8(y, 5.9571761477489114044e-11, -1.137284885679167367e-9, 1.4659775274047435814e-8,                    \
          -1.6350312701054695011e-7, 1.6461000484121368033e-6, -0.000014925595266831181565,                    \
          0.00012055331111642710923, -0.00085483269808337899052),                                              \
       0.0052239776248180144673, -0.026866170645076793248, 0.11283791670954878666, -0.37612638903183748056,    \
       1.1283791670955125738)
#define ERF_SERIES ERF_SERIES_F64
/* The same for 1 <= x <= 28. */
ALWAYS_INLINE double scaled_erfc_f64(double x) {
    double t = (x - 2) / (x + 2);
    double made = P8(
        t,
        P8(t,
           P8(t, -6.3597180117585691903e-7, 3.8241337000816899393e-6, -7.7587075435898861322e-6,
              4.5867894846381528444e-6, 6.7433653351247118241e-7, 3.6392183280427977826e-6,
              4.7574124171981904015e-6, -0.000013514986813664592671),
           -0.000036619950073181110091, -1.4582473936529929262e-6, 0.00015105362882081400424,
           0.00020635989476808544526, -0.00045434109772237725543, -0.0014568134735918415704,
           0.0012713389462633985673),
        0.0087226538598402069204, -0.0080340150813629701487, -0.054220000991773280528, 0.16405128003342592861,
        -0.16603039761529113022, -0.09276382658574594675, 1.2769783815525287213);
    return made / (1 + 2 * x);
}
#include "functions_of_real.h"

/* The inverse of erf in double: the normal distribution's quantile of (1 + y) / 2 over the root of two, by the rational functions of
   M. J. Wichura, Algorithm AS 241 (Applied Statistics 37, 1988): of 0.85^2 - y^2 in the middle, beyond it of the root of minus the
   tail's logarithm, which 1 - |y| gives without a rounding. */
#define QUANTILE(x, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)                                              \
    (P8(x, a, b, c, d, e, f, g, h) / P8(x, i, j, k, l, m, n, o, 1))
ALWAYS_INLINE double erfinv__f64(double y) {
    double size = abs__f64(y), inner = 0.180625 - 0.25 * size * size;
    double w = -log__f64((1 - size) * 0.5), root = w > 0 ? sqrt(w) : w, near = root - 1.6, far = root - 5;
    double middle = 0.5 * size *
                    QUANTILE(inner, 2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                             13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080,
                             5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
                             5394.1960214247511077, 687.18700749205790830, 42.313330701600911252);
    double tail = QUANTILE(near, 7.74545014278341407640e-4, 0.0227238449892691845833, 0.241780725177450611770, 1.27045825245236838258,
                           3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
                           1.05075007164441684324e-9, 5.47593808499534494600e-4, 0.0151986665636164571966, 0.148103976427480074590,
                           0.689767334985100004550, 1.67638483018380384940, 2.05319162663775882187);
    double end = QUANTILE(far, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.00124266094738807843860,
                          0.0265321895265761230930, 0.296560571828504891230, 1.78482653991729133580, 5.46378491116411436990,
                          6.65790464350110377720, 2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
                          7.86869131145613259100e-4, 0.0148753612908506148525, 0.136929880922735805310, 0.599832206555887937690);
    double x = 0.70710678118654752440 * (size <= 0.85 ? middle : root <= 5 ? tail : end);
    x = size < 1 ? x : size == 1 ? INFINITY : NAN;
    return signed_as_f64(x, y);
}

/* In float: y times a polynomial in log(1 - y^2), or in its root where that is large; to three units of the last place. */
ALWAYS_INLINE float erfinv__f32(float y) {
    float size = abs__f32(y), w = -log__f32((1 - size) * (1 + size)), near = w - 2.5f, far = sqrtf(w) - 3.118034f;
    float low = P3(near,
                   P8(near, -8.739831e-09f, 2.3285844e-08f, 4.6542874e-07f, -3.4633563e-06f, -4.9597434e-06f, 0.00021834692f,
                      -0.0012527484f, -0.0041773897f),
                   0.2466403f, 1.5014094f);
    float high = P3(far,
                    P8(far, 0.00012705722f, -0.00018217918f, -0.00030952744f, 0.0013267333f, -0.0025782213f, 0.0038701405f,
                       -0.0054071853f, 0.007160983f),
                    1.0036197f, 2.9513285f);
    float made = y * (w < 5 ? low : high);
    made = size < 1 ? made : size == 1 ? INFINITY : NAN;
    return signed_as_f32(made, y);
}

/* gelu: x times the normal distribution's share below x. The small tail on the left is no difference from 1. */

ALWAYS_INLINE double gelu__f64(double x) {
    double scaled = x * 0.70710678118654752440, size = abs__f64(scaled), tail = 0.5 * erfc__f64(size);
    double share = x > 0 ? 1 - tail : tail;
    return x * (size < 1 ? 0.5 + 0.5 * scaled * ERF_SERIES_F64(scaled * scaled) : share);
}

/* In float without a branch: the share below -y is 2^(-y^2 / (2 ln 2)) times a series in 1 / (y + 3). The power of two
   needs no second step of reduction here: what rounding costs it grows only as the tail itself becomes nothing. It is the
   bell e^(-y^2 / 2) too, which the slope wants. */
ALWAYS_INLINE float gelu_share_f32(float x, float *bell) {
    float y = abs__f32(x), u = 1 / (y + 3);
    float series = P2(u,
                      P8(u, -497.824033231f, 927.564951563f, -644.001873172f, 177.912247068f,
                         -16.9220121137f, 10.2350496735f, 2.9943214473f, 1.20391940991f),
                      0.398833890853f);
    float least = real_f32((uint32_t)exp_limits_f32[POWER_FLUSHED]), power = x * x * -0.72134752044448170368f;
    power = power < least ? least : power;
    float shifted = power + MAGIC_F32, r = power - (shifted - MAGIC_F32);
    float scale = real_f32((bits_f32(shifted) + EXPONENT_BIAS_F32) << 23);
    *bell = scale * (P6(r, 0.00133908633647f, 0.00967603191832f, 0.0555035711422f, 0.240221074853f, 0.693147188026f,
                        1.00000007545f));
    float tail = *bell * (u * series);
    return x > 0 ? 1 - tail : tail;
}

ALWAYS_INLINE float gelu__f32(float x) {
    float bell;
    return x * gelu_share_f32(x, &bell);
}

#endif
