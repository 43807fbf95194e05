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

#define FORMULAS_OF(suffix, type)                                                                             \
    ALWAYS_INLINE pair_##suffix sinc_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return sinc_of_##suffix(x);                                                                           \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix add_scaled_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return plus_##suffix(x, times_##suffix(y, by));                                                       \
    }                                                                                                         \
    ALWAYS_INLINE pair_##suffix logaddexp_##suffix(pair_##suffix by, pair_##suffix x, pair_##suffix y, pair_##suffix z) { \
        return logaddexp_of_##suffix(x, y);                                                                   \
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

/* Operands that lie side by side have a loop whose steps are known. */
#define ROW(name, suffix, inputs, STEP)                                                                       \
    for (ptrdiff_t i = 0; i < count; i++) {                                                                   \
        const pair_##suffix x = *(const pair_##suffix *)(data[0] + i * STEP(0));                              \
        const pair_##suffix y = inputs > 1 ? *(const pair_##suffix *)(data[1] + i * STEP(1)) : x;             \
        const pair_##suffix z = inputs > 2 ? *(const pair_##suffix *)(data[inputs - 1] + i * STEP(inputs - 1)) : x; \
        *(pair_##suffix *)(data[inputs] + i * STEP(inputs)) = name##_##suffix(by, x, y, z);                   \
    }
#define GIVEN(k) steps[k]
#define SIDE_BY_SIDE(k) (ptrdiff_t)sizeof(by)

#define LOOP_OF(name, inputs, suffix, type)                                                                   \
    static void name##_loop_##suffix(const double *number, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) { \
        const pair_##suffix by = {(type)number[0], (type)number[1]};                                          \
        bool dense = true;                                                                                    \
        for (int k = 0; k <= inputs; k++)                                                                     \
            dense &= steps[k] == (ptrdiff_t)sizeof by;                                                        \
        if (dense) {                                                                                          \
            ROW(name, suffix, inputs, SIDE_BY_SIDE)                                                           \
        } else {                                                                                              \
            ROW(name, suffix, inputs, GIVEN)                                                                  \
        }                                                                                                     \
    }
#define LOOPS_OF(name, inputs) LOOP_OF(name, inputs, f32, float) LOOP_OF(name, inputs, f64, double)
COMPLEX_FORMULAS(LOOPS_OF)

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

#define ENTRY(name, inputs) [COMPLEX_##name] = {name##_loop_f32, name##_loop_f64},
const complex_formula_loops ISA(complex_formula_loops) = {.of = {COMPLEX_FORMULAS(ENTRY)}, .running = {running_f32, running_f64}};
