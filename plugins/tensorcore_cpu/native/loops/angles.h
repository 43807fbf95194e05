/* sin and cos of doubles and the length of two of them, to one unit in the last place; tan and sin of floats, in double. Without branches,
   so that the compiler makes vectors of the loops around them. */
#ifndef TENSORCORE_NATIVE_ANGLES_H
#define TENSORCORE_NATIVE_ANGLES_H

#include "functions.h"

#define TURNS_MOST 1e6 /* from where on angles are left to the C library: under it quarters of a turn are counted in 20 bits */

/* x = n pi / 2 + r, |r| <= pi / 4, where `rest` is what rounding r left out; the last two bits of `at` are those of n. pi / 2 is in
   four parts of 33 bits, whose products with n are exact, and so is what is lost by each difference (Knuth's two sums). */
ALWAYS_INLINE double turned_back(double x, uint64_t *at, double *rest) {
    const double magic = 6755399441055744.0, shifted = x * 0.63661977236758134308 + magic, n = shifted - magic; /* 1.5 * 2^52 */
    const double first = x - n * 1.57079632673412561417, w = n * 6.07710050630396597660e-11, second = first - w;
    const double moved = second - first, lost = (first - (second - moved)) - (w + moved);
    const double v = n * 2.02226624871116645580e-21, third = second - v, slid = third - second;
    const double left = (second - (third - slid)) - (v + slid) + lost - n * 8.47842766036889956997e-32, r = third + left;
    *at = bits_f64(shifted);
    *rest = (third - r) + left;
    return r;
}

/* The polynomials of fdlibm (Sun Microsystems, 1993), for |r| <= pi / 4. */
ALWAYS_INLINE double sine_of_part(double r, double rest) {
    const double z = r * r, v = z * r;
    const double series = P5(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                             -1.98412698298579493134e-04, 8.33333333332248946124e-03);
    return r - ((z * (0.5 * rest - v * series) - rest) - v * -1.66666666666666324348e-01);
}
ALWAYS_INLINE double cosine_of_part(double r, double rest) {
    const double z = r * r, half = 0.5 * z, less = 1 - half;
    const double series = P6(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                             2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02);
    return less + (((1 - less) - half) + (z * (z * series) - r * rest));
}

ALWAYS_INLINE double sine_of_f64(double x) {
    uint64_t at;
    double rest, r = turned_back(x, &at, &rest), sine = sine_of_part(r, rest), cosine = cosine_of_part(r, rest);
    double made = real_f64(bits_f64(at & 1 ? cosine : sine) ^ (at & 2) << 62);
    return x == 0 ? x : made;
}
ALWAYS_INLINE double cosine_of_f64(double x) {
    uint64_t at;
    double rest, r = turned_back(x, &at, &rest), sine = sine_of_part(r, rest), cosine = cosine_of_part(r, rest);
    return real_f64(bits_f64(at & 1 ? sine : cosine) ^ ((at + 1) & 2) << 62);
}

/* sin(pi x) / x for |x| <= 1/2, of the square */
#define SINE_OF_HALF_TURNS(square)                                                                            \
    P8(square, -2.1915353447830204e-05, 0.00046630280576761234, -0.007370430945714348, 0.08214588661112819,   \
       -0.5992645293207919, 2.550164039877345, -5.167712780049969, 3.141592653589793)

/* tan where x = n pi / 2 + r, |r| <= pi / 4, and |x| under TAN_MOST: pi / 2 in two parts, the first of 33 bits. */
ALWAYS_INLINE float tan_of_f32(float x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double shifted = x * 0.63661977236758134308 + magic, n = shifted - magic;
    double r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11, z = r * r;
    double sine = r + r * z * P5(z, -2.3889859e-8, 2.7525562e-6, -1.9840874e-4, 8.3333315e-3, -1.6666666641626524e-1);
    double cosine = 1 - 0.5 * z + z * z * P5(z, 2.08757e-9, -2.7557314e-7, 2.48015873e-5, -1.388888888885e-3, 4.16666666666e-2);
    bool odd = bits_f64(shifted) & 1;
    return (float)((odd ? -cosine : sine) / (odd ? sine : cosine));
}

/* sin where x = n pi + r, |r| <= pi / 2, and |x| under TAN_MOST: pi in two parts, the first of 33 bits. */
ALWAYS_INLINE double sine_of_f32(float x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double shifted = x * 0.31830988618379067154 + magic, n = shifted - magic;
    double off = ((x - n * 3.14159265346825122834) - n * 1.21542010130122438398e-10) * 0.31830988618379067154;
    double sine = off * SINE_OF_HALF_TURNS(off * off);
    return bits_f64(shifted) & 1 ? -sine : sine;
}

/* Where a square would leave the range both are multiplied by a power of two first. */
ALWAYS_INLINE double hypot_f64_of(double x, double y) {
    const double up = abs__f64(x), across = abs__f64(y), most = up > across ? up : across;
    const bool large = most > 0x1p500, small = most < 0x1p-450;
    const double by = large ? 0x1p-600 : small ? 0x1p600 : 1, back = large ? 0x1p600 : small ? 0x1p-600 : 1;
    const double a = x * by, b = y * by, made = sqrt(a * a + b * b) * back;
    return up == INFINITY || across == INFINITY ? INFINITY : made;
}

#endif
