/* The loops of functions of complex numbers. Those of single precision that are no sums and products are computed in double. */
#include "../complex_formulas.h"
#include "isa.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>

typedef struct {
    float real, imaginary;
} pair_f32;
typedef struct {
    double real, imaginary;
} pair_f64;

ALWAYS_INLINE pair_f64 wide(pair_f32 x) { return (pair_f64){x.real, x.imaginary}; }
ALWAYS_INLINE pair_f32 narrow(pair_f64 x) { return (pair_f32){(float)x.real, (float)x.imaginary}; }

/* Arithmetic as NumPy has it, of which products are PyTorch's too */

#define ARITHMETIC(suffix)                                                                                    \
    ALWAYS_INLINE pair_##suffix plus_##suffix(pair_##suffix x, pair_##suffix y) {                             \
        return (pair_##suffix){x.real + y.real, x.imaginary + y.imaginary};                                   \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix minus_##suffix(pair_##suffix x, pair_##suffix y) {                            \
        return (pair_##suffix){x.real - y.real, x.imaginary - y.imaginary};                                   \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix times_##suffix(pair_##suffix x, pair_##suffix y) {                            \
        return (pair_##suffix){x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real}; \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix neg_of_##suffix(pair_##suffix x) { return (pair_##suffix){-x.real, -x.imaginary}; } \
    ALWAYS_INLINE pair_##suffix conj_physical_of_##suffix(pair_##suffix x) { return (pair_##suffix){x.real, -x.imaginary}; } \
    /* Whether they are one number, as a number of their own type. */                                         \
    ALWAYS_INLINE pair_##suffix same_##suffix(pair_##suffix x, pair_##suffix y) {                             \
        return (pair_##suffix){(x.real == y.real) & (x.imaginary == y.imaginary), 0};                         \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix differs_##suffix(pair_##suffix x, pair_##suffix y) {                          \
        return (pair_##suffix){(x.real != y.real) | (x.imaginary != y.imaginary), 0};                         \
    }
ARITHMETIC(f32)
ARITHMETIC(f64)

/* Smith's way: the part of the divisor that is larger is divided by first, so that no square leaves the range. */
#define QUOTIENT(suffix, type, size)                                                                          \
    ALWAYS_INLINE pair_##suffix over_##suffix(pair_##suffix x, pair_##suffix y) {                             \
        const type a = size(y.real), b = size(y.imaginary);                                                   \
        if (a >= b && a == 0 && b == 0)                                                                       \
            return (pair_##suffix){x.real / a, x.imaginary / a};                                              \
        if (a >= b) {                                                                                         \
            const type ratio = y.imaginary / y.real, scale = 1 / (y.real + y.imaginary * ratio);              \
            return (pair_##suffix){(x.real + x.imaginary * ratio) * scale, (x.imaginary - x.real * ratio) * scale}; \
        }                                                                                                     \
        const type ratio = y.real / y.imaginary, scale = 1 / (y.imaginary + y.real * ratio);                  \
        return (pair_##suffix){(x.real * ratio + x.imaginary) * scale, (x.imaginary * ratio - x.real) * scale}; \
    }
QUOTIENT(f32, float, fabsf)
QUOTIENT(f64, double, fabs)

/* sin(pi x) / (pi x) */

/* Of parts that are floats: the sine's grow to at most 5e303, so that a quotient that leaves their range does so here too. */
ALWAYS_INLINE pair_f32 sinc_of_f32(pair_f32 x) {
    if (x.real == 0 && x.imaginary == 0)
        return (pair_f32){1, 0};
    const double real = M_PI * x.real, imaginary = M_PI * x.imaginary;
    const double less = expm1(fabs(imaginary) > 700 ? 700 : fabs(imaginary)), half = less / (less + 1);
    const double grown = copysign(0.5 * (less + half), imaginary), sine = 0.5 * less * half + 1; /* its hyperbolic sine and cosine */
    const pair_f64 made = {sin(real) * sine, cos(real) * grown}, angle = {real, imaginary};
    return narrow(over_f64(isinf(imaginary) ? (pair_f64){NAN, NAN} : made, angle));
}

ALWAYS_INLINE pair_f64 sinc_of_f64(pair_f64 x) {
    if (x.real == 0 && x.imaginary == 0)
        return (pair_f64){1, 0};
    const pair_f64 angle = {M_PI * x.real, M_PI * x.imaginary};
    const double complex sine = csin(__builtin_complex(angle.real, angle.imaginary));
    return over_f64((pair_f64){creal(sine), cimag(sine)}, angle);
}

/* 1 / (1 + e^-x); before e^-x leaves the range, of which an infinity beside a zero would make a NaN, that is 0 to every digit. */
ALWAYS_INLINE pair_f64 sigmoid_of_f64(pair_f64 x) {
    const double size = exp(x.real < -700 ? 700 : -x.real);
    return over_f64((pair_f64){1, 0}, (pair_f64){1 + size * cos(x.imaginary), -size * sin(x.imaginary)});
}
ALWAYS_INLINE pair_f32 sigmoid_of_f32(pair_f32 x) { return narrow(sigmoid_of_f64(wide(x))); }
ALWAYS_INLINE pair_f64 silu_of_f64(pair_f64 x) { return times_f64(x, sigmoid_of_f64(x)); }
ALWAYS_INLINE pair_f32 silu_of_f32(pair_f32 x) { return narrow(silu_of_f64(wide(x))); }

/* By the larger real part; two equal infinities differ by NaN. */
ALWAYS_INLINE pair_f64 logaddexp_of_f64(pair_f64 x, pair_f64 y) {
    if (isinf(x.real) && x.real == y.real && x.imaginary == y.imaginary)
        return x;
    const bool first = x.real >= y.real;
    const pair_f64 top = first ? x : y, low = first ? y : x, less = minus_f64(low, top);
    const double size = exp(less.real);
    const double complex part = size == 0 ? 0 : __builtin_complex(size * cos(less.imaginary), size * sin(less.imaginary));
    const double real = 1 + creal(part), imaginary = cimag(part);
    return (pair_f64){top.real + log(hypot(real, imaginary)), top.imaginary + atan2(imaginary, real)};
}

ALWAYS_INLINE pair_f32 logaddexp_of_f32(pair_f32 x, pair_f32 y) { return narrow(logaddexp_of_f64(wide(x), wide(y))); }

/* Powers of two and roots below one. */
ALWAYS_INLINE pair_f64 exp2_of_f64(pair_f64 x) {
    const double complex made = cexp(__builtin_complex(x.real * M_LN2, x.imaginary * M_LN2));
    return (pair_f64){creal(made), cimag(made)};
}
ALWAYS_INLINE pair_f32 exp2_of_f32(pair_f32 x) { return narrow(exp2_of_f64(wide(x))); }
ALWAYS_INLINE pair_f64 rsqrt_of_f64(pair_f64 x) {
    const double complex root = csqrt(__builtin_complex(x.real, x.imaginary));
    return over_f64((pair_f64){1, 0}, (pair_f64){creal(root), cimag(root)});
}
ALWAYS_INLINE pair_f32 rsqrt_of_f32(pair_f32 x) { return narrow(rsqrt_of_f64(wide(x))); }

/* As NumPy has it: by products to a small whole power; zero has no power that is not positive, but the 0th. */
static pair_f64 pow_of_f64(pair_f64 x, pair_f64 y) {
    if (y.real == 0 && y.imaginary == 0)
        return (pair_f64){1, 0};
    if (x.real == 0 && x.imaginary == 0)
        return y.real > 0 ? (pair_f64){0, 0} : (pair_f64){NAN, NAN};
    if (y.imaginary == 0 && fabs(y.real) < 100 && y.real == floor(y.real)) {
        int n = (int)fabs(y.real);
        pair_f64 made = {1, 0}, power = x;
        for (bool first = true; n; n >>= 1, power = n ? times_f64(power, power) : power)
            if (n & 1) {
                made = first ? power : times_f64(made, power);
                first = false;
            }
        return y.real < 0 ? over_f64((pair_f64){1, 0}, made) : made;
    }
    const double complex made = cpow(__builtin_complex(x.real, x.imaginary), __builtin_complex(y.real, y.imaginary));
    return (pair_f64){creal(made), cimag(made)};
}
ALWAYS_INLINE pair_f32 pow_of_f32(pair_f32 x, pair_f32 y) { return narrow(pow_of_f64(wide(x), wide(y))); }

#define OF_ONE(name, suffix)                                                                                  \
    ALWAYS_INLINE pair_##suffix name##_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return name##_of_##suffix(x);                                                                         \
    }
#define OF_TWO(name, function, suffix)                                                                        \
    ALWAYS_INLINE pair_##suffix name##_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return function##_##suffix(x, y);                                                                     \
    }
#define FORMULAS_OF(suffix, type)                                                                             \
    OF_TWO(add, plus, suffix)                                                                                 \
    OF_TWO(sub, minus, suffix)                                                                                \
    OF_TWO(mul, times, suffix)                                                                                \
    OF_TWO(div, over, suffix)                                                                                 \
    OF_ONE(neg, suffix)                                                                                       \
    OF_ONE(conj_physical, suffix)                                                                             \
    OF_TWO(eq, same, suffix)                                                                                  \
    OF_TWO(ne, differs, suffix)                                                                               \
    OF_ONE(sinc, suffix)                                                                                      \
    OF_ONE(sigmoid, suffix)                                                                                   \
    OF_ONE(silu, suffix)                                                                                      \
    OF_ONE(exp2, suffix)                                                                                      \
    OF_ONE(rsqrt, suffix)                                                                                     \
    OF_TWO(pow, pow_of, suffix)                                                                               \
    OF_TWO(logaddexp, logaddexp_of, suffix)                                                                   \
    ALWAYS_INLINE pair_##suffix add_scaled_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return plus_##suffix(x, times_##suffix(y, by));                                                       \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix addcmul_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return plus_##suffix(x, times_##suffix(times_##suffix(y, by), z));                                    \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix addcdiv_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return plus_##suffix(x, over_##suffix(times_##suffix(y, by), z));                                     \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix lerp_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        const pair_##suffix difference = minus_##suffix(y, x), rest = {1 - z.real, 0 - z.imaginary};          \
        const bool near = z.real * z.real + z.imaginary * z.imaginary < (type)0.25;                           \
        return near ? plus_##suffix(x, times_##suffix(z, difference)) : minus_##suffix(y, times_##suffix(difference, rest)); \
    }

FORMULAS_OF(f32, float)
FORMULAS_OF(f64, double)

/* Operands that lie side by side, one of them perhaps a number, have loops whose steps are known. */
#define STEP(k, dense) ((dense) ? (ptrdiff_t)sizeof(by) : steps[k])
#define READ(k, at, suffix) *(const pair_##suffix *)(data[k] + (at))
#define ROW(name, suffix, inputs, dense, number)                                                              \
    {                                                                                                         \
        const pair_##suffix once = (number) < 0 || !count ? by : READ((number) < 0 ? 0 : (number), 0, suffix); \
        for (ptrdiff_t i = 0; i < count; i++) {                                                               \
            const pair_##suffix x = (number) == 0 ? once : READ(0, i * STEP(0, dense), suffix);               \
            const pair_##suffix y = inputs < 2 ? x : (number) == 1 ? once : READ(inputs > 1, i * STEP(inputs > 1, dense), suffix); \
            const pair_##suffix z = inputs < 3 ? x : (number) == 2 ? once : READ(inputs - 1, i * STEP(inputs - 1, dense), suffix); \
            *(pair_##suffix *)(data[inputs] + i * STEP(inputs, dense)) = name##_##suffix(by, x, y, z);        \
        }                                                                                                     \
    }

#define LOOP_OF(name, inputs, suffix, type)                                                                   \
    static void name##_loop_##suffix(const double *number, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { \
        const pair_##suffix by = {(type)number[0], (type)number[1]};                                          \
        int apart = steps[inputs] != (ptrdiff_t)sizeof by, at = -1, numbers = 0;                              \
        for (int k = 0; k < inputs; k++) {                                                                    \
            apart |= steps[k] && steps[k] != (ptrdiff_t)sizeof by;                                            \
            at = steps[k] ? at : k;                                                                           \
            numbers += !steps[k];                                                                             \
        }                                                                                                     \
        if (apart || numbers > 1)                                                                             \
            ROW(name, suffix, inputs, false, -1)                                                              \
        else if (at < 0)                                                                                      \
            ROW(name, suffix, inputs, true, -1)                                                               \
        else if (at == 0)                                                                                     \
            ROW(name, suffix, inputs, true, 0)                                                                \
        else if (at == 1)                                                                                     \
            ROW(name, suffix, inputs, true, (inputs > 1 ? 1 : 0))                                             \
        else                                                                                                  \
            ROW(name, suffix, inputs, true, inputs - 1)                                                       \
    }
#define LOOPS_OF(name, inputs) LOOP_OF(name, inputs, f32, float) LOOP_OF(name, inputs, f64, double)
COMPLEX_FORMULAS(LOOPS_OF)

/* Lines of three: x times y, across */
#define CROSS(suffix)                                                                                         \
    static void cross_##suffix(const void *one, const void *other, void *to, ptrdiff_t step, ptrdiff_t count) { \
        const pair_##suffix *x = one, *y = other;                                                             \
        pair_##suffix *made = to;                                                                             \
        for (ptrdiff_t i = 0; i < count; i++) {                                                               \
            const ptrdiff_t at = i / step * 3 * step + i % step;                                              \
            const pair_##suffix a = x[at], b = x[at + step], c = x[at + 2 * step];                            \
            const pair_##suffix d = y[at], e = y[at + step], f = y[at + 2 * step];                            \
            made[at] = minus_##suffix(times_##suffix(b, f), times_##suffix(c, e));                            \
            made[at + step] = minus_##suffix(times_##suffix(c, d), times_##suffix(a, f));                     \
            made[at + 2 * step] = minus_##suffix(times_##suffix(a, e), times_##suffix(b, d));                 \
        }                                                                                                     \
    }
CROSS(f32)
CROSS(f64)

/* Running, in double */
static void running_f32(const char *x, char *made, ptrdiff_t step, ptrdiff_t count) {
    pair_f64 sum = wide(*(const pair_f32 *)x);
    *(pair_f32 *)made = *(const pair_f32 *)x;
    for (ptrdiff_t i = 1; i < count; i++) {
        sum = logaddexp_of_f64(sum, wide(*(const pair_f32 *)(x + i * step)));
        *(pair_f32 *)(made + i * step) = narrow(sum);
    }
}

static void running_f64(const char *x, char *made, ptrdiff_t step, ptrdiff_t count) {
    pair_f64 sum = *(const pair_f64 *)x;
    *(pair_f64 *)made = sum;
    for (ptrdiff_t i = 1; i < count; i++)
        *(pair_f64 *)(made + i * step) = sum = logaddexp_of_f64(sum, *(const pair_f64 *)(x + i * step));
}

#define PRODUCTS(suffix, WIDE, NARROW)                                                                        \
    static void products_##suffix(const char *x, char *made, ptrdiff_t step, ptrdiff_t count) {               \
        pair_f64 product = {1, 0};                                                                            \
        for (ptrdiff_t i = 0; i < count; i++) {                                                               \
            const pair_f64 one = WIDE(*(const pair_##suffix *)(x + i * step));                                \
            product = i ? times_f64(product, one) : one;                                                      \
            *(pair_##suffix *)(made + i * step) = NARROW(product);                                            \
        }                                                                                                     \
    }
PRODUCTS(f32, wide, narrow)
PRODUCTS(f64, , )

#define ENTRY(name, inputs) [COMPLEX_##name] = {name##_loop_f32, name##_loop_f64},
const complex_formula_loops ISA(complex_formula_loops) = {.of = {COMPLEX_FORMULAS(ENTRY)}, .running = {running_f32, running_f64},
                                                          .products = {products_f32, products_f64},
                                                          .cross = {cross_f32, cross_f64}};
