/* Special functions in double: Bessel's of imaginary arguments, and orthogonal polynomials. */
#ifndef TENSORCORE_NATIVE_SPECIAL_H
#define TENSORCORE_NATIVE_SPECIAL_H

#include "functions.h"

/* The ratios of tensorcore/ops/special/tables.py, the highest power first: of I0(x) and I1(x) / x in x^2 up to 18, and of
   sqrt(x) e^-x times either in 1 / x from there. */
static const double I0_SMALL_ABOVE[15] = {
    5.701673686682392e-34, 2.3484382326858006e-30, 4.9483907861711704e-27, 6.753905534163025e-24,
    6.475481287437474e-21, 4.504158300296508e-18, 2.2933853199418058e-15, 8.497395334419735e-13,
    2.24920350656472e-10, 4.1197687986819085e-08, 4.970178675533913e-06, 0.0003658992463102923,
    0.014506192433954504, 0.24548616222061165, 1.0};
static const double I0_SMALL_BELOW[9] = {
    1.0002382750387669e-25, -8.00506826163255e-22, 3.042018561087697e-18, -7.174526076826372e-15,
    1.1488352026526033e-11, -1.278586493376965e-08, 9.651878801572724e-06, -0.004513837779388321, 1.0};
static const double I0_LARGE_ABOVE[5] = {
    0.8964623289545952, -7.799450720879896, 10.241199037781458, -3.836712766779574, 0.3989422804014327};
static const double I0_LARGE_BELOW[5] = {
    3.7491781846650563, -22.290859441707145, 26.818343162003277, -9.742212702847246, 1.0};
static const double I1_SMALL_ABOVE[15] = {
    5.28059479512594e-35, 1.7763453725923107e-31, 3.3553544441773506e-28, 4.308291633435223e-25,
    4.030776813825498e-22, 2.821031555735483e-19, 1.4863494268050102e-16, 5.857409416261506e-14,
    1.697025260636429e-11, 3.5129868014947407e-09, 4.977164199165208e-07, 4.523941828872179e-05,
    0.002382038461944616, 0.06069954605620479, 0.5000000000000001};
static const double I1_SMALL_BELOW[7] = {
    1.5922348739194875e-19, -1.0562588913660193e-15, 3.170683868020825e-12, -5.5138487752536185e-09,
    5.857076504257261e-06, -0.0036009078875896463, 1.0};
static const double I1_LARGE_ABOVE[5] = {
    1.970660506652601, -8.72190956931243, 10.071987536888926, -3.7468106342877996, 0.39894228040143265};
static const double I1_LARGE_BELOW[5] = {
    1.2704513005918094, -14.573237101056908, 21.982593188461898, -9.016861475594153, 1.0};

/* I of order 0 or 1, times e^-|x| if scaled. */
ALWAYS_INLINE double bessel_i(double x, int order, bool scaled) {
    double size = abs__f64(x), near = size > 18 ? 18 : size, square = near * near, inverse = 1 / (size < 18 ? 18 : size);
    double low, high;
    if (order) {
        HORNER(above, square, I1_SMALL_ABOVE)
        HORNER(below, square, I1_SMALL_BELOW)
        HORNER(far_above, inverse, I1_LARGE_ABOVE)
        HORNER(far_below, inverse, I1_LARGE_BELOW)
        low = near * above / below;
        high = far_above / far_below;
    } else {
        HORNER(above, square, I0_SMALL_ABOVE)
        HORNER(below, square, I0_SMALL_BELOW)
        HORNER(far_above, inverse, I0_LARGE_ABOVE)
        HORNER(far_below, inverse, I0_LARGE_BELOW)
        low = above / below;
        high = far_above / far_below;
    }
    double bell = exp__f64(scaled ? -near : size);
    high = high / sqrt(size) * (scaled ? 1 : bell);
    high = !scaled && size > 713.98 && size < INFINITY ? INFINITY : high; /* as PyTorch does, NaN at infinity */
    low = scaled ? low * bell : low;
    double made = size <= 18 ? low : high;
    made = x != x ? x : made;
    return order ? signed_as_f64(made, x) : made;
}

/* Neighbours: the next number as bits is one more or one less. */
ALWAYS_INLINE float next_after_f32(float x, float y) {
    uint32_t bits = bits_f32(x);
    float stepped = real_f32((x < y) == (x > 0) ? bits + 1 : bits - 1);
    stepped = x == 0 ? signed_as_f32(real_f32(1), y) : stepped;
    return x == y || y != y ? y : x != x ? x : stepped;
}
ALWAYS_INLINE double next_after_f64(double x, double y) {
    uint64_t bits = bits_f64(x);
    double stepped = real_f64((x < y) == (x > 0) ? bits + 1 : bits - 1);
    stepped = x == 0 ? signed_as_f64(real_f64(1), y) : stepped;
    return x == y || y != y ? y : x != x ? x : stepped;
}
#define next_after(x, y) (sizeof(x) == 4 ? next_after_f32((float)(x), (float)(y)) : next_after_f64(x, y))

/* No square of a float leaves the range of double. */
ALWAYS_INLINE float hypot_f32_of(float x, float y) {
    double a = x, b = y;
    float made = (float)sqrt(a * a + b * b);
    return fabsf(x) == INFINITY || fabsf(y) == INFINITY ? INFINITY : made;
}

#endif
