/* x to the power of y, of floats. NumPy's loop is fast where x is above 0 and the result is no corner; elsewhere it takes 20 to 400 ns
   an element, and takes along what stands beside. */
#ifndef TENSORCORE_NATIVE_POWER_H
#define TENSORCORE_NATIVE_POWER_H

#include "functions.h"
#include "loop.h"

#include "../elementwise.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Whether the size of an element is left to the formula below: by itself, so that its bits do not depend on its neighbours. The
   logarithm is off by less than half of it, and the result between 2^-125 and 2^125. */
ALWAYS_INLINE bool is_corner(float x, float y) {
    const float base = abs__f32(x), size = abs__f32(y), power = (float)(int32_t)(bits_f32(base) - 0x3f800000u) * 0x1p-23f * size;
    return !((base >= FLT_MIN) & (base <= FLT_MAX) & ((size >= FLT_MIN) | (size == 0)) & (power < 86) & (power > -86));
}

/* In double; powers of e that would be denormal numbers take long, and are 0 as floats. */
ALWAYS_INLINE float size_of_power(float x, float y) {
    const double base = abs__f64(x), power = log__f64(base) * y, least = power < -104 ? -104 : power;
    double size = exp__f64(least > 100 ? 100 : least);
    size = power < -104 ? 0 : size;
    return (float)((base == 1) & (y == y) ? 1 : size);
}

/* With the sign and the corners of IEEE 754. */
ALWAYS_INLINE float signed_power(float x, float y, float size) {
    const bool whole = floorf(y) == y, odd = whole & (floorf(0.5f * y) != 0.5f * y);
    const float turned = odd ? signed_as_f32(size, x) : size, made = (x < 0) & !whole & (x >= -FLT_MAX) ? NAN : turned;
    return (y == 0) | (x == 1) ? 1 : made;
}

enum { POWERS = 512 }; /* elements that go through a buffer at a time */

static void power_of_row(const float *x, const float *y, float *made, ptrdiff_t count) {
    static const ptrdiff_t dense[3] = {sizeof(float), sizeof(float), sizeof(float)};
    float own[POWERS], xs[POWERS], ys[POWERS];
    int corners = 0, negative = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        corners += is_corner(x[i], y[i]);
        negative += x[i] < 0;
    }
    if (!corners && !negative && numpy_power.loop) {
        char *data[3] = {(char *)x, (char *)y, (char *)made};
        numpy_power.loop(data, &count, dense, numpy_power.beside);
        return;
    }
    if (corners || !numpy_power.loop)
        for (ptrdiff_t i = 0; i < count; i++)
            own[i] = size_of_power(x[i], y[i]);
    if (corners < count && numpy_power.loop) {
        char *data[3] = {(char *)xs, (char *)ys, (char *)xs};
        for (ptrdiff_t i = 0; i < count; i++) {
            const bool corner = is_corner(x[i], y[i]);
            xs[i] = corner ? 1 : abs__f32(x[i]);
            ys[i] = corner ? 1 : y[i];
        }
        numpy_power.loop(data, &count, dense, numpy_power.beside);
        for (ptrdiff_t i = 0; i < count; i++)
            own[i] = is_corner(x[i], y[i]) ? own[i] : xs[i];
    }
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
        made[i] = signed_power(x[i], y[i], own[i]);
}

static void power_f32(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const bool dense = steps[0] == sizeof(float) && steps[1] == sizeof(float) && steps[2] == sizeof(float);
    float xs[POWERS], ys[POWERS];
    for (ptrdiff_t begin = 0; begin < count; begin += POWERS) {
        const ptrdiff_t piece = count - begin < POWERS ? count - begin : POWERS;
        const char *x = data[0] + begin * steps[0], *y = data[1] + begin * steps[1];
        char *made = data[2] + begin * steps[2];
        if (dense) {
            power_of_row((const float *)x, (const float *)y, (float *)made, piece);
            continue;
        }
        for (ptrdiff_t i = 0; i < piece; i++) {
            xs[i] = *(const float *)(x + i * steps[0]);
            ys[i] = *(const float *)(y + i * steps[1]);
        }
        power_of_row(xs, ys, xs, piece);
        for (ptrdiff_t i = 0; i < piece; i++)
            *(float *)(made + i * steps[2]) = xs[i];
    }
}

#endif
