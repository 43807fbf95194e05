/* What belongs to the normal distribution, of floats, computed in double. */
#ifndef TENSORCORE_NATIVE_NORMAL_H
#define TENSORCORE_NATIVE_NORMAL_H

#include "functions.h"

/* e^(a^2) erfc(a) of a >= 0: four terms of its series in 1 / a^2 are enough for a float from 28 on. */
ALWAYS_INLINE double scaled_tail(double a) {
    double near = a < 1 ? a : 1, far = a < 1 ? 1 : a < 28 ? a : 28, square = 1 / (a * a);
    double low = exp__f64(near * near) * (1 - near * ERF_SERIES_F64(near * near));
    double most = 0.56418958354775628695 / a * P4(square, -1.875, 0.75, -0.5, 1);
    return a < 1 ? low : a < 28 ? scaled_erfc_f64(far) : a >= 28 ? most : a;
}

ALWAYS_INLINE float erfcx_of_f32(float x) {
    double a = abs__f64(x), tail = scaled_tail(a);
    return (float)(x < 0 ? 2 * exp__f64(a * a) - tail : tail);
}

/* The logarithm of the share below x, which is half of erfc(a): of the scaled tail, less a^2, where that is less than a half, else of
   1 less the tail, with what that difference loses put back in. */
ALWAYS_INLINE float log_ndtr_of_f32(float x) {
    double a = abs__f64(x) * 0.70710678118654752440, half = 0.5 * scaled_tail(a), square = a * a;
    bool below = x < 0;
    double tail = -half * exp__f64(-square), share = 1 + tail, lost = (tail - (share - 1)) / share;
    double made = log__f64(below ? half : share);
    made += below ? -square : lost;
    return (float)(share == 1 && !below ? tail : made); /* -0 too */
}

/* The ratios of tensorcore/ops/special/tables.py, the highest power first, and the ranges of probability.py beside it. */
static const double NDTRI_MIDDLE_ABOVE[7] = {
    9.1577517812488, -127.18516203487016, 324.6142258603289, -317.9588117410021, 144.72835522357636,
    -30.912150886727787, 2.5066282746310007};
static const double NDTRI_MIDDLE_BELOW[7] = {
    18.876874364085698, -118.47669916508384, 217.7071136134116, -175.01012746500456, 69.4461869963407,
    -13.379361518060946, 1.0};
static const double NDTRI_TAIL_ABOVE[9] = {
    -570.0773435744024, -3833.369522965274, -4365.470712234273, 337.9755694598066, 3326.482395123664,
    1842.3197894177133, 493.9204815750857, 44.35518859863484, 0.9187750968281149};
static const double NDTRI_TAIL_BELOW[9] = {
    -142.0062283982555, -2052.99579305091, -4426.1281081356465, -710.4961840153017, 2829.5467408956183,
    1783.4018444328499, 525.900004464762, 48.212213660915715, 1.0};
static const double NDTRI_FAR_ABOVE[10] = {
    8083455439.063078, 17878762312.058323, 11542547298.064938, 4312198692.575129, 810322309.5297778,
    72586496.15585847, 3061576.39543548, 57932.21333490484, 433.1587612600629, 0.9189350465141659};
static const double NDTRI_FAR_BELOW[10] = {
    2529688911.3864055, 15125550293.01566, 10651108983.89618, 4370715906.981093, 859635737.836647,
    78346910.2694726, 3324336.275494449, 63016.86700824677, 471.35950503838677, 1.0};

ALWAYS_INLINE float ndtri_of_f32(float p) {
    double away = p - 0.5, square = away * away, share = away < 0 ? p : 1 - (double)p;
    square = square < 0.1335 ? square : 0.1335;
    HORNER(middle_above, square, NDTRI_MIDDLE_ABOVE)
    HORNER(middle_below, square, NDTRI_MIDDLE_BELOW)
    double z = sqrt(-2 * log__f64(share));
    z = z > 2 ? z : 2;
    double inverse = 1 / z, near = inverse > 0.125 ? inverse : 0.125, far = inverse < 0.125 ? inverse : 0.125;
    HORNER(near_above, near, NDTRI_TAIL_ABOVE)
    HORNER(near_below, near, NDTRI_TAIL_BELOW)
    HORNER(far_above, far, NDTRI_FAR_ABOVE)
    HORNER(far_below, far, NDTRI_FAR_BELOW)
    double tail = (z < 8 ? near_above : far_above) / (z < 8 ? near_below : far_below);
    double size = z - (log__f64(z) + tail) * inverse;
    double made = share > 0.13533528323661269189 ? middle_above / middle_below * away : signed_as_f64(size, away);
    made = share > 0 ? made : share == 0 ? signed_as_f64(INFINITY, away) : NAN;
    return (float)made;
}

#endif
