/* The half types, one element at a time: to float and from it, rounded to even. */
#ifndef TENSORCORE_NATIVE_HALVES_LOOPS_H
#define TENSORCORE_NATIVE_HALVES_LOOPS_H

#include "isa.h"

#include <string.h>

/* bfloat16: the upper half of a float. */

ALWAYS_INLINE float bf16_value(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

ALWAYS_INLINE uint16_t bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)(x != x ? ((bits >> 16) & 0x8000) | 0x7fc0 : rounded);
}

/* float16; processors with F16C have instructions for it. */

ALWAYS_INLINE float f16_value(uint16_t half) {
    /* The bits in a float's place are the number times 2^-112, denormals included; infinity and NaN come out too small. */
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    float x;
    memcpy(&x, &bits, 4);
    x *= 0x1p112f;
    memcpy(&bits, &x, 4);
    bits = bits >= 0x47800000 ? bits | 0x7f800000 : bits;
    bits |= sign;
    memcpy(&x, &bits, 4);
    return x;
}

ALWAYS_INLINE uint16_t f16_of(float x) {
    uint32_t bits, sign;
    memcpy(&bits, &x, 4);
    sign = bits & 0x80000000;
    bits ^= sign;
    /* Adding a number whose last place is the half's last place rounds to it. */
    uint32_t place = (bits & 0x7f800000) + 0x06800000; /* 2^13 times the number's power of two */
    place = place < 0x3f000000 ? 0x3f000000 : place;   /* denormals of the half share one place: 2^-24 */
    float size, shift;
    memcpy(&size, &bits, 4);
    memcpy(&shift, &place, 4);
    float rounded = (size + shift) - shift, counted = rounded + 0.5f; /* whose last place is 2^-24 while it is under 1 */
    uint32_t normal, small;
    memcpy(&normal, &rounded, 4);
    memcpy(&small, &counted, 4);
    uint32_t made = rounded < 0x1p-14f ? small - 0x3f000000 : (normal - 0x38000000) >> 13;
    made = rounded >= 65536.0f ? 0x7c00 : made;
    made = bits > 0x7f800000 ? 0x7e00 | ((bits >> 13) & 0x3ff) : bits > 0x477fffff ? 0x7c00 : made;
    return (uint16_t)(made | (sign >> 16));
}

#endif
