/* Functions of sixteen floats at a time, for AVX-512: where functions.h divides or takes a power of two apart, instructions
   of this set do it. What they give beside NaN, infinities and denormals is what functions.h gives.

   Each works on a few vectors in place, step by step for all of them: a step waits for the one before, and the processor
   does not look far enough ahead to find the next vector by itself. How many is a constant where they are called. */
#ifndef TENSORCORE_NATIVE_WIDE_H
#define TENSORCORE_NATIVE_WIDE_H

#include "functions.h"
#include "loop.h"

#ifdef __AVX512F__
#include <immintrin.h>

enum { WIDE_FEW = 4, WIDE_MOST = 8 };

#define EACH(x) _mm512_set1_ps(x)
#define WIDE_ALL _Pragma("GCC unroll 8") for (int k = 0; k < count; k++)

/* Horner's rule, the highest power first. */
ALWAYS_INLINE void wide_series(const __m512 *x, __m512 *made, int count, const float *factors, int terms) {
    WIDE_ALL made[k] = EACH(factors[0]);
#pragma GCC unroll 16
    for (int i = 1; i < terms; i++)
        WIDE_ALL made[k] = _mm512_fmadd_ps(made[k], x[k], EACH(factors[i]));
}
#define WIDE_SERIES(x, made, ...)                                                                             \
    wide_series(x, made, count, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

/* 2^(i / 16), and what rounding it to a float left out. */
static const float sixteenth_power[16] = {
    1.0f, 1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f, 1.29683959f, 1.35425556f,
    1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f, 1.68179286f, 1.75625217f, 1.8340081f, 1.91520655f};
static const float sixteenth_rest[16] = {
    0.0f, 4.8334702e-8f, -1.307754e-8f, 5.3862223e-8f, 3.7976353e-8f, 4.4968381e-8f, -4.0189995e-8f, -1.0123349e-8f,
    2.4203235e-8f, -4.5008989e-8f, 8.0709048e-9f, 9.8362172e-9f, -2.4755327e-8f, -9.2357704e-9f, -1.1239278e-8f, 9.8453281e-9f};

/* Of a table the one whose number the last four or five bits are. A Zen 4 does the former beside multiplications, the latter
   in their place. */
#define WIDE_OF_16(table, x) _mm512_permutexvar_ps(_mm512_castps_si512(x), _mm512_loadu_ps(table))
#define WIDE_OF_32(table, x)                                                                                  \
    _mm512_permutex2var_ps(_mm512_loadu_ps(table), _mm512_castps_si512(x), _mm512_loadu_ps((table) + 16))

/* The one closer to 0; the number, where the other is NaN. */
#define WIDE_SMALL(r) _mm512_range_ps(r, EACH(0.03f), 2)

/* e^x: x = n ln 2 + r, where n is a number of sixteenths, which adding `magic` rounds to and whose last four bits
   choose a factor. The exponent is made of n, so that infinities and NaN come from there; r, which they leave without
   meaning, need only be small. What the factor's rounding left out comes in where it is multiplied by r, in the same
   instruction. Exact to 0.57 units in the last place, and to 0.77 where that is a denormal's. With
   `rest`, which is what rounding left out, both are halved, and finite a little longer. */
ALWAYS_INLINE void wide_exp(__m512 *x, __m512 *rest, int count) {
    const __m512 magic = EACH(MAGIC_F32 / 16);
    __m512 n[WIDE_MOST], r[WIDE_MOST], factor[WIDE_MOST], part[WIDE_MOST];
    WIDE_ALL r[k] = _mm512_fmadd_ps(x[k], EACH(1.44269504088896340736f), magic);
    WIDE_ALL factor[k] = WIDE_OF_16(sixteenth_power, r[k]);
    WIDE_ALL part[k] = WIDE_OF_16(sixteenth_rest, r[k]);
    WIDE_ALL n[k] = _mm512_sub_ps(r[k], magic);
    WIDE_ALL r[k] = _mm512_fnmadd_ps(n[k], EACH(LN2_HIGH_F32), x[k]);
    WIDE_ALL r[k] = WIDE_SMALL(_mm512_fnmadd_ps(n[k], EACH(LN2_LOW_F32), r[k]));
    WIDE_ALL part[k] = _mm512_fmadd_ps(factor[k], r[k], part[k]);
    WIDE_SERIES(r, x, 0.16667047f, 0.50001626f, 1);
    WIDE_ALL {
        const __m512 made = _mm512_fmadd_ps(part[k], x[k], factor[k]), by = rest ? _mm512_sub_ps(n[k], EACH(1)) : n[k];
        if (rest)
            rest[k] = _mm512_scalef_ps(_mm512_fmadd_ps(part[k], x[k], _mm512_sub_ps(factor[k], made)), by);
        x[k] = _mm512_scalef_ps(made, by);
    }
}

ALWAYS_INLINE void exp_wide(__m512 *x, int count) { wide_exp(x, NULL, count); }

/* 2^(i / 32) times 1.0000012, with which the largest of their roundings is 3.7e-8 of its number and not 5.6e-8. */
static const float power_of_32[32] = {
    1.0000012f, 1.0218984f, 1.044275f, 1.0671417f, 1.090509f, 1.1143881f, 1.13879f, 1.1637262f,
    1.1892085f, 1.2152488f, 1.2418593f, 1.2690525f, 1.2968411f, 1.3252382f, 1.3542571f, 1.3839115f,
    1.4142152f, 1.4451826f, 1.4768279f, 1.5091662f, 1.5422126f, 1.5759827f, 1.6104922f, 1.6457574f,
    1.6817949f, 1.7186214f, 1.7562542f, 1.7947112f, 1.8340102f, 1.8741698f, 1.9152088f, 1.9571464f};

/* 1 / (1 + e^-x) as less / all. In thirty-seconds of ln 2, e^-x is scale * (c + r) / (d - r), so that one division serves
   both and nothing of a series is left; with these c and d, whose quotient takes the table's factor out again, that is
   e^r to 2.8e-8. To 3.42 units in the last place. */
ALWAYS_INLINE void wide_logistic(const __m512 *x, __m512 *less, __m512 *all, int count) {
    const __m512 magic = EACH(MAGIC_F32 / 32);
    __m512 n[WIDE_MOST], r[WIDE_MOST], scale[WIDE_MOST];
    WIDE_ALL r[k] = _mm512_fmadd_ps(x[k], EACH(-1.44269504088896340736f), magic);
    WIDE_ALL scale[k] = WIDE_OF_32(power_of_32, r[k]);
    WIDE_ALL n[k] = _mm512_sub_ps(r[k], magic);
    WIDE_ALL r[k] = _mm512_fnmsub_ps(n[k], EACH(LN2_HIGH_F32), x[k]);
    WIDE_ALL scale[k] = _mm512_scalef_ps(scale[k], n[k]);
    WIDE_ALL r[k] = WIDE_SMALL(_mm512_fnmadd_ps(n[k], EACH(LN2_LOW_F32), r[k]));
    WIDE_ALL less[k] = _mm512_sub_ps(EACH(2.000016f), r[k]);
    WIDE_ALL all[k] = _mm512_fmadd_ps(scale[k], _mm512_add_ps(EACH(2.0000136f), r[k]), less[k]);
}

ALWAYS_INLINE void sigmoid_wide(__m512 *x, int count) {
    __m512 less[WIDE_MOST], all[WIDE_MOST];
    wide_logistic(x, less, all, count);
    WIDE_ALL x[k] = _mm512_div_ps(less[k], all[k]);
}

ALWAYS_INLINE void silu_wide(__m512 *x, int count) {
    __m512 less[WIDE_MOST], all[WIDE_MOST];
    wide_logistic(x, less, all, count);
    WIDE_ALL x[k] = _mm512_mul_ps(x[k], _mm512_div_ps(less[k], all[k]));
}

/* As in functions.h. */
ALWAYS_INLINE void gelu_tanh_wide(__m512 *x, int count) {
    __m512 inner[WIDE_MOST], less[WIDE_MOST], all[WIDE_MOST];
    const __m512 twice = EACH(2 * 0.79788456080286535588f), cubic = EACH(2 * 0.79788456080286535588f * 0.044715f);
    WIDE_ALL inner[k] = _mm512_mul_ps(x[k], _mm512_fmadd_ps(cubic, _mm512_mul_ps(x[k], x[k]), twice));
    wide_logistic(inner, less, all, count);
    WIDE_ALL x[k] = _mm512_mul_ps(x[k], _mm512_div_ps(less[k], all[k]));
}

/* tanh(i / 2) */
static const float tanh_of_halves[32] = {
    0.0f, 0.46211717f, 0.7615942f, 0.90514827f, 0.9640276f, 0.9866143f, 0.9950548f, 0.9981779f,
    0.9993293f, 0.99975324f, 0.9999092f, 0.9999666f, 0.9999877f, 0.99999547f, 0.99999833f, 0.9999994f,
    0.99999976f, 0.99999994f, 1.0f, 1.0f};

/* tanh(c + u) = (q tanh c + u) / (q + u tanh c), c the nearest half, q = u / tanh u a series of u^2 exact to 2e-8. From 8.75
   on it is 1. All instructions are 14, of which a Zen 4 makes two of 512 bits a cycle and one that multiplies. To 2.93
   units in the last place. */
ALWAYS_INLINE void tanh_wide(__m512 *x, int count) {
    const __m512 sign = EACH(-0.0f), magic = EACH(MAGIC_F32 / 2);
    __m512 u[WIDE_MOST], at[WIDE_MOST], q[WIDE_MOST];
    /* The second operand is the result where one is NaN. */
    WIDE_ALL u[k] = _mm512_min_ps(EACH(9.25f), _mm512_andnot_ps(sign, x[k]));
    WIDE_ALL at[k] = _mm512_add_ps(u[k], magic);
    WIDE_ALL u[k] = _mm512_sub_ps(u[k], _mm512_sub_ps(at[k], magic));
    WIDE_ALL at[k] = WIDE_OF_32(tanh_of_halves, at[k]);
    WIDE_ALL q[k] = _mm512_mul_ps(u[k], u[k]);
    WIDE_ALL q[k] = _mm512_fmadd_ps(_mm512_fmadd_ps(q[k], EACH(-0.02203937f), EACH(0.33332981f)), q[k], EACH(1));
    WIDE_ALL u[k] = _mm512_div_ps(_mm512_fmadd_ps(at[k], q[k], u[k]), _mm512_fmadd_ps(at[k], u[k], q[k]));
    WIDE_ALL x[k] = _mm512_or_ps(u[k], _mm512_and_ps(sign, x[k]));
}

/* With x = 2^n (1 + f), f from -1/4 to 1/2: n ln 2 + f - f^2 / 2 + f^3 times a series in f. Of a negative number the
   mantissa is NaN, of 0 and infinity the exponent is what the logarithm is. */
ALWAYS_INLINE void log_wide(__m512 *x, int count) {
    __m512 n[WIDE_MOST], f[WIDE_MOST], series[WIDE_MOST];
    WIDE_ALL f[k] = _mm512_getmant_ps(x[k], _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    WIDE_ALL n[k] = _mm512_sub_ps(_mm512_getexp_ps(x[k]), _mm512_getexp_ps(f[k]));
    WIDE_ALL f[k] = _mm512_sub_ps(f[k], EACH(1));
    WIDE_SERIES(f, series, 0.042871978133916855f, -0.09561339765787125f, 0.11680682003498077f, -0.12639310956001282f,
                0.14268305897712708f, -0.16660816967487335f, 0.20000140368938446f, -0.25000056624412537f,
                0.3333333432674408f, -0.5f);
    WIDE_ALL series[k] = _mm512_mul_ps(_mm512_mul_ps(f[k], f[k]), series[k]);
    WIDE_ALL series[k] = _mm512_fmadd_ps(n[k], EACH(LN2_LOW_F32), series[k]);
    WIDE_ALL x[k] = _mm512_fmadd_ps(n[k], EACH(LN2_HIGH_F32), _mm512_add_ps(f[k], series[k]));
}

/* Rounded to the nearest as the instruction rounds, which takes twice as long: a test counts all floats of two
   binades. Denormals would lose digits on the way; 0, infinity, negative numbers and NaN have no inverse root to begin with. */
ALWAYS_INLINE __m512 sqrt_of_vector(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), least = _mm512_set1_epi32(0x0c800000); /* 2^-102: its last place is normal */
    if (_mm512_cmpge_epu32_mask(_mm512_sub_epi32(bits, least), _mm512_set1_epi32(0x7f800000 - 0x0c800000)))
        return _mm512_sqrt_ps(x);
    __m512 inverse = _mm512_rsqrt14_ps(x), root = _mm512_mul_ps(x, inverse), half = _mm512_mul_ps(inverse, EACH(0.5f));
    __m512 wrong = _mm512_fnmadd_ps(root, half, EACH(0.5f));
    root = _mm512_fmadd_ps(root, wrong, root);
    half = _mm512_fmadd_ps(half, wrong, half);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(root, root, x), half, root);
}

/* One vector in four by the instruction: the unit for it works beside those that multiply. */
ALWAYS_INLINE void sqrt_wide(__m512 *x, int count) {
    WIDE_ALL x[k] = k % 4 ? sqrt_of_vector(x[k]) : _mm512_sqrt_ps(x[k]);
}

/* The share of the normal distribution below -y, of y around 0.2 n: a polynomial of y - 0.2 n, the lowest factor first.
   They are minimax fits of the relative error: 1.2e-7 with all rounding up to y = 3, 1.6e-6 at 6; from 6.1 on it is 0. */
static const float normal_tail[6][32] = {
    {0.5f, 0.42074028f, 0.34457827f, 0.2742531f, 0.2118554f, 0.15865526f, 0.115069665f, 0.08075666f, 0.05479929f,
     0.035930317f, 0.02275013f, 0.0139034465f, 0.008197535f, 0.0046611875f, 0.00255513f, 0.0013498978f, 0.0006871378f,
     0.0003369292f, 0.00015910856f, 7.234803e-5f, 3.1671236e-5f, 1.3345747e-5f, 5.412543e-6f, 2.1124545e-6f,
     7.933281e-7f, 2.8665158e-7f, 9.9644275e-8f, 3.3320454e-8f, 1.0717594e-8f, 3.3157477e-9f, 9.865884e-10f, 0.0f},
    {-0.3989423f, -0.39104268f, -0.36827013f, -0.3332246f, -0.28969154f, -0.24197072f, -0.19418605f, -0.14972746f,
     -0.11092083f, -0.07895015f, -0.053990964f, -0.03547459f, -0.022394529f, -0.013582968f, -0.00791545f,
     -0.004431848f, -0.0023840878f, -0.0012322188f, -0.0006119017f, -0.00029194678f, -0.00013383015f, -5.894302e-5f,
     -2.4942445e-5f, -1.0140838e-5f, -3.961292e-6f, -1.4867162e-6f, -5.36102e-7f, -1.8573552e-7f, -6.182592e-8f,
     -1.9773085e-8f, -6.0758407e-9f, 0.0f},
    {9.2889196e-11f, 0.039104182f, 0.07365388f, 0.099967204f, 0.11587646f, 0.12098525f, 0.11651158f, 0.10480924f,
     0.08873672f, 0.07105522f, 0.05399104f, 0.03902211f, 0.026873473f, 0.017657878f, 0.011081634f, 0.0066477656f,
     0.0038145303f, 0.0020947617f, 0.0011014143f, 0.00055469235f, 0.00026765588f, 0.0001237776f, 5.4871794e-5f,
     2.332307e-5f, 9.506664e-6f, 3.7165803e-6f, 1.3937696e-6f, 5.014447e-7f, 1.7309571e-7f, 5.733538e-8f,
     1.8225089e-8f, 0.0f},
    {0.06649027f, 0.062566616f, 0.051557563f, 0.035543706f, 0.017381297f, -1.02595806e-7f, -0.014240304f,
     -0.023956288f, -0.028839242f, -0.029474525f, -0.026995296f, -0.022703595f, -0.01776624f, -0.013039616f,
     -0.009023622f, -0.0059091635f, -0.0036715386f, -0.002168748f, -0.0012197604f, -0.00065398816f, -0.00033459425f,
     -0.00016348071f, -7.633108e-5f, -3.4077242e-5f, -1.4553267e-5f, -5.9479194e-6f, -2.3271791e-6f, -8.7194024e-7f,
     -3.129331e-7f, -1.07603434e-7f, -3.5456917e-8f, 0.0f},
    {-1.2189601e-8f, -0.009621896f, -0.017390182f, -0.021944715f, -0.02274549f, -0.020133916f, -0.015133488f,
     -0.009086728f, -0.003268606f, 0.0014006959f, 0.0044790255f, 0.0059671826f, 0.006170349f, 0.0055277166f,
     0.0044686887f, 0.0033255285f, 0.002304192f, 0.0014971321f, 0.00091661105f, 0.00053062645f, 0.00029119232f,
     0.00015177712f, 7.525472e-5f, 3.5538247e-5f, 1.6000324e-5f, 6.8737377e-6f, 2.8196264e-6f, 1.1050496e-6f,
     4.1398437e-7f, 1.4831626e-7f, 5.0834934e-8f, 0.0f},
    {-0.009952478f, -0.008971227f, -0.006312456f, -0.002672039f, 0.0010497634f, 0.0040328396f, 0.0057617645f,
     0.0061210445f, 0.0053487252f, 0.0038923009f, 0.0022359376f, 0.000764025f, -0.00030594267f, -0.0009213226f,
     -0.0011471321f, -0.0011044441f, -0.00091847416f, -0.00068749936f, -0.00047265604f, -0.00030194205f,
     -0.00018055156f, -0.000101566526f, -5.3942153e-5f, -2.7120344e-5f, -1.2934358e-5f, -5.8611486e-6f, -2.526839e-6f,
     -1.0375189e-6f, -4.0609424e-7f, -1.5163444e-7f, -5.404912e-8f, 0.0f},
};

/* max(x, 0) - |x| times the share below -|x|. The maximum of a negative number is -0, so that a tail of 0 keeps its sign; |x|
   of infinity is a number, which times 0 is 0, as it is for PyTorch; that of -infinity is not, nor is the result. A power
   of two and a division for the tail took 34 instructions in the place of 19, and a Xeon twice as long. */
ALWAYS_INLINE void gelu_wide(__m512 *x, int count) {
    const __m512 step = EACH(0.2f), magic = EACH(MAGIC_F32);
    __m512 size[WIDE_MOST], at[WIDE_MOST], v[WIDE_MOST], tail[WIDE_MOST];
    WIDE_ALL size[k] = _mm512_andnot_ps(EACH(-0.0f), _mm512_min_ps(EACH(1e30f), x[k]));
    WIDE_ALL v[k] = _mm512_min_ps(EACH(6.2f), size[k]);
    WIDE_ALL at[k] = _mm512_fmadd_ps(v[k], EACH(5), magic);
    WIDE_ALL v[k] = _mm512_fnmadd_ps(_mm512_sub_ps(at[k], magic), step, v[k]);
    WIDE_ALL tail[k] = WIDE_OF_32(normal_tail[5], at[k]);
#pragma GCC unroll 5
    for (int i = 4; i >= 0; i--)
        WIDE_ALL tail[k] = _mm512_fmadd_ps(tail[k], v[k], WIDE_OF_32(normal_tail[i], at[k]));
    WIDE_ALL x[k] = _mm512_fnmadd_ps(size[k], tail[k], _mm512_max_ps(EACH(-0.0f), x[k]));
}

/* Of one vector. */
#define WIDE_ONE(function)                                                                                    \
    ALWAYS_INLINE __m512 function##_one(__m512 x) {                                                           \
        function(&x, 1);                                                                                      \
        return x;                                                                                             \
    }
WIDE_ONE(exp_wide)
WIDE_ONE(log_wide)

/* A loop of the elementwise family over `function`; what does not lie in a row is joined to one vector. Written to memory and read as
   a vector from there, which waits for all of the sixteen stores, sqrt of every second of 100,000 floats took 4.5 times as long on an
   Emerald Rapids. */
#define WIDE_FROM(k) *(const float *)(from + (k) * steps[0])
#define WIDE_FROM_4(k) WIDE_FROM(k), WIDE_FROM(k + 1), WIDE_FROM(k + 2), WIDE_FROM(k + 3)
#define WIDE_LOOP(name, function)                                                                             \
    static void name(char *const *data, const ptrdiff_t *steps, ptrdiff_t size) {                             \
        if (steps[0] == 4 && steps[1] == 4) {                                                                 \
            const float *from = (const float *)data[0];                                                       \
            float *made = (float *)data[1];                                                                   \
            const int count = WIDE_FEW;                                                                       \
            __m512 x[WIDE_FEW];                                                                               \
            ptrdiff_t i = 0;                                                                                  \
            for (; i + 16 * count <= size; i += 16 * count) {                                                 \
                WIDE_ALL x[k] = _mm512_loadu_ps(from + i + 16 * k);                                           \
                function(x, count);                                                                           \
                WIDE_ALL _mm512_storeu_ps(made + i + 16 * k, x[k]);                                           \
            }                                                                                                 \
            for (; i < size; i += 16) {                                                                       \
                const __mmask16 rest = size - i < 16 ? (__mmask16)((1u << (size - i)) - 1) : (__mmask16)-1;   \
                x[0] = _mm512_mask_loadu_ps(EACH(1), rest, from + i);                                         \
                function(x, 1);                                                                               \
                _mm512_mask_storeu_ps(made + i, rest, x[0]);                                                  \
            }                                                                                                 \
            return;                                                                                           \
        }                                                                                                     \
        for (ptrdiff_t begin = 0; begin < size; begin += 16) {                                                \
            const char *from = data[0] + begin * steps[0];                                                    \
            char *made = data[1] + begin * steps[1];                                                          \
            const ptrdiff_t piece = size - begin < 16 ? size - begin : 16;                                    \
            float space[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};                               \
            for (ptrdiff_t i = 0; piece < 16 && i < piece; i++)                                               \
                space[i] = WIDE_FROM(i);                                                                      \
            __m512 x = piece < 16 ? _mm512_loadu_ps(space)                                                    \
                                  : (__m512){WIDE_FROM_4(0), WIDE_FROM_4(4), WIDE_FROM_4(8), WIDE_FROM_4(12)}; \
            function(&x, 1);                                                                                  \
            if (steps[1] == 4 && piece == 16) {                                                               \
                _mm512_storeu_ps((float *)made, x);                                                           \
                continue;                                                                                     \
            }                                                                                                 \
            _mm512_storeu_ps(space, x);                                                                       \
            for (ptrdiff_t i = 0; i < piece; i++)                                                             \
                *(float *)(made + i * steps[1]) = space[i];                                                   \
        }                                                                                                     \
    }

#endif

/* out[i] = e^(x[i] - high - low) * by; out may be x. */
ALWAYS_INLINE void exp_times_f64(const double *x, double high, double low, double by, double *out, ptrdiff_t count) {
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
        out[i] = exp__f64(x[i] - high - low) * by;
}

ALWAYS_INLINE void exp_times_f32(const float *x, float high, float low, float by, float *out, ptrdiff_t size) {
    ptrdiff_t i = 0;
#ifdef __AVX512F__
    __m512 y[WIDE_FEW];
    for (; i + 16 * WIDE_FEW <= size; i += 16 * WIDE_FEW) {
        const int count = WIDE_FEW;
        WIDE_ALL y[k] = _mm512_loadu_ps(x + i + 16 * k) - EACH(high) - EACH(low);
        exp_wide(y, count);
        WIDE_ALL _mm512_storeu_ps(out + i + 16 * k, y[k] * EACH(by));
    }
    for (; i < size; i += 16) {
        const __mmask16 rest = size - i < 16 ? (__mmask16)((1u << (size - i)) - 1) : (__mmask16)-1;
        const __m512 z = _mm512_maskz_loadu_ps(rest, x + i) - EACH(high) - EACH(low);
        _mm512_mask_storeu_ps(out + i, rest, exp_wide_one(z) * EACH(by));
    }
#else
    INDEPENDENT for (; i < size; i++)
        out[i] = exp__f32(x[i] - high - low) * by;
#endif
}

/* out[i] = e^(x[i] - less); out may be x. */
ALWAYS_INLINE void exp_less_f64(const double *x, double less, double *out, ptrdiff_t count) {
    exp_times_f64(x, less, 0, 1, out, count);
}

ALWAYS_INLINE void exp_less_f32(const float *x, float less, float *out, ptrdiff_t count) {
    exp_times_f32(x, less, 0, 1, out, count);
}

#endif
