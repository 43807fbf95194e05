/* Elementwise loops of the half types for what costs less than a buffer: each vector is widened, computed with and rounded once on
   its way through the registers. */
#include "half.h"

#include "../elementwise.h"

typedef vf (*vector_of)(vf x, vf y, vf z, vf a);
typedef vf_pair (*pair_load)(const void *from);
typedef void (*pair_store)(void *to, vf_pair x);

enum { PIECE = 512, HALF = sizeof(uint16_t), MOST = 4, TOGETHER = 2 * LANES_F32 };

ALWAYS_INLINE vf_pair computed(const vf_pair *x, vector_of of) {
    return (vf_pair){{of(x[0].x[0], x[1].x[0], x[2].x[0], x[3].x[0]), of(x[0].x[1], x[1].x[1], x[2].x[1], x[3].x[1])}};
}

/* `count` elements of rows of halves, or of floats that stand for all elements: those whose bit is set in `numbers`. */
ALWAYS_INLINE void vectors(const char *const *from, char *to, ptrdiff_t count, int inputs, int numbers, int size, pair_load load,
                           pair_store store, vector_of of) {
    vf_pair x[MOST] = {{{{0}}}};
    for (int k = 0; k < inputs; k++)
        for (int lane = 0; numbers >> k & 1 && lane < TOGETHER; lane++)
            memcpy((char *)&x[k] + lane * sizeof(float), from[k], sizeof(float));
    ptrdiff_t i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER) {
        for (int k = 0; k < inputs; k++)
            x[k] = numbers >> k & 1 ? x[k] : load(from[k] + i * HALF);
        store(to + i * size, computed(x, of));
    }
    if (i == count)
        return;
    const size_t rest = (size_t)(count - i);
    char last[TOGETHER * HALF];
    for (int k = 0; k < inputs; k++) {
        uint16_t some[TOGETHER] = {0};
        if (numbers >> k & 1)
            continue;
        memcpy(some, from[k] + i * HALF, rest * HALF);
        x[k] = load(some);
    }
    store(last, computed(x, of));
    memcpy(to + i * size, last, rest * (size_t)size);
}

/* The same of elements in steps: what does not lie in a row is copied to one, a single one once. All but the first three are constants
   where this is called. */
ALWAYS_INLINE void elements(char *const *data, const ptrdiff_t *steps, ptrdiff_t count, int inputs, int numbers, int size,
                            pair_load load, pair_store store, vector_of of) {
    uint16_t space[MOST][PIECE];
    char made[PIECE * HALF];
    bool dense = steps[inputs] == size;
    for (int k = 0; k < inputs; k++)
        dense &= numbers >> k & 1 || steps[k] == HALF;
    const ptrdiff_t most = dense ? count : PIECE;
    for (ptrdiff_t begin = 0; begin < count; begin += most) {
        const ptrdiff_t piece = count - begin < most ? count - begin : most;
        const char *from[MOST];
        for (int k = 0; k < inputs; k++) {
            from[k] = data[k] + begin * steps[k];
            if (numbers >> k & 1 || steps[k] == HALF)
                continue;
            for (ptrdiff_t i = 0; (steps[k] || !begin) && i < piece; i++)
                space[k][i] = *(const uint16_t *)(from[k] + i * steps[k]);
            from[k] = (const char *)space[k];
        }
        char *to = data[inputs] + begin * steps[inputs];
        vectors(from, steps[inputs] == size ? to : made, piece, inputs, numbers, size, load, store, of);
        for (ptrdiff_t i = 0; steps[inputs] != size && i < piece; i++)
            memcpy(to + i * steps[inputs], made + i * size, (size_t)size);
    }
}

/* Ops */

ALWAYS_INLINE vf chosen(vi condition, vf x, vf y) { return (vf)(((vi)x & condition) | ((vi)y & ~condition)); }

/* x where it is larger, or smaller; y where one is NaN. And what was made, or x where that is NaN. */
#if defined(__AVX512F__)
ALWAYS_INLINE vf larger(vf x, vf y) { return (vf)_mm512_max_ps((__m512)x, (__m512)y); }
ALWAYS_INLINE vf smaller(vf x, vf y) { return (vf)_mm512_min_ps((__m512)x, (__m512)y); }
ALWAYS_INLINE vf or_nan(vf made, vf x) {
    return (vf)_mm512_mask_mov_ps((__m512)made, _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q), (__m512)x);
}
#elif defined(__AVX2__)
ALWAYS_INLINE vf larger(vf x, vf y) { return (vf)_mm256_max_ps((__m256)x, (__m256)y); }
ALWAYS_INLINE vf smaller(vf x, vf y) { return (vf)_mm256_min_ps((__m256)x, (__m256)y); }
ALWAYS_INLINE vf or_nan(vf made, vf x) {
    return (vf)_mm256_blendv_ps((__m256)made, (__m256)x, _mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q));
}
#else
ALWAYS_INLINE vf larger(vf x, vf y) { return chosen(x > y, x, y); }
ALWAYS_INLINE vf smaller(vf x, vf y) { return chosen(x < y, x, y); }
ALWAYS_INLINE vf or_nan(vf made, vf x) { return chosen(x != x, x, made); }
#endif

ALWAYS_INLINE vf root(vf x) {
#if defined(__AVX512F__)
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < LANES_F32; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* Whether the condition holds, as bools. */
typedef uint8_t vb_u __attribute__((vector_size(VECTOR / 4), aligned(1), may_alias));
ALWAYS_INLINE void bools_join(void *to, vf_pair condition) {
    for (int half = 0; half < 2; half++)
        ((vb_u *)to)[half] = __builtin_convertvector((vu)condition.x[half] & 1, vb_u);
}

#define VECTOR_OF(name, expression)                                                                           \
    ALWAYS_INLINE vf name##_of(vf x, vf y, vf z, vf a) { return (vf)(expression); }
VECTOR_OF(square, x * x)
VECTOR_OF(cube, x * x * x)
VECTOR_OF(relu, chosen(x <= 0, (vf){0}, x)) /* NaN stays */
VECTOR_OF(reciprocal, 1 / x)
VECTOR_OF(sqrt, root(x))
VECTOR_OF(rsqrt, 1 / root(x))
VECTOR_OF(add, x + y)
VECTOR_OF(sub, x - y)
VECTOR_OF(mul, x * y)
VECTOR_OF(div, x / y)
VECTOR_OF(leaky_relu, chosen(x > 0, x, x * y))
/* A NaN on either side is the result. x stays between two bounds of its size, zeros of either sign. */
VECTOR_OF(maximum, or_nan(larger(x, y), x))
VECTOR_OF(minimum, or_nan(smaller(x, y), x))
VECTOR_OF(raised, or_nan(larger(y, x), y))
VECTOR_OF(lowered, or_nan(smaller(y, x), y))
VECTOR_OF(clamp, lowered_of(raised_of(x, y, z, a), z, z, a))
VECTOR_OF(add_scaled, x + y * z)
VECTOR_OF(addcmul, x + ((y * a) * z))
VECTOR_OF(addcdiv, x + (y * a) / z)
VECTOR_OF(lerp_near, x + (z * (y - x)))
VECTOR_OF(lerp_far, y - ((y - x) * z))
VECTOR_OF(copysign, ((vu)x & 0x7fffffff) | ((vu)y & 0x80000000))
VECTOR_OF(eq, x == y)
VECTOR_OF(ne, x != y)
VECTOR_OF(lt, x < y)
VECTOR_OF(le, x <= y)
VECTOR_OF(gt, x > y)
VECTOR_OF(ge, x >= y)

/* X(name, result, inputs, numbers, ...) for the operands that ops have: those of which a bit is set are numbers. */
#define UNARY(X, name, ...) X(name, half, 1, 0, __VA_ARGS__)
#define BINARY(X, name, ...) X(name, half, 2, 0, __VA_ARGS__) X(name, half, 2, 2, __VA_ARGS__)
#define ORDERED(X, name, ...) BINARY(X, name, __VA_ARGS__) X(name, half, 2, 1, __VA_ARGS__)
#define COMPARISON(X, name, ...) X(name, bool, 2, 0, __VA_ARGS__) X(name, bool, 2, 2, __VA_ARGS__)
#define HALF_OPS(X, ...)                                                                                      \
    UNARY(X, square, __VA_ARGS__) UNARY(X, cube, __VA_ARGS__) UNARY(X, relu, __VA_ARGS__)                     \
    UNARY(X, reciprocal, __VA_ARGS__) UNARY(X, sqrt, __VA_ARGS__) UNARY(X, rsqrt, __VA_ARGS__) X(copysign, half, 2, 0, __VA_ARGS__) ORDERED(X, add, __VA_ARGS__) ORDERED(X, sub, __VA_ARGS__)               \
    ORDERED(X, mul, __VA_ARGS__) ORDERED(X, div, __VA_ARGS__) BINARY(X, maximum, __VA_ARGS__)                 \
    BINARY(X, minimum, __VA_ARGS__) X(leaky_relu, half, 2, 2, __VA_ARGS__)                                    \
    COMPARISON(X, eq, __VA_ARGS__) COMPARISON(X, ne, __VA_ARGS__) COMPARISON(X, lt, __VA_ARGS__)              \
    COMPARISON(X, le, __VA_ARGS__) COMPARISON(X, gt, __VA_ARGS__) COMPARISON(X, ge, __VA_ARGS__)              \
    X(clamp, half, 3, 0, __VA_ARGS__) X(clamp, half, 3, 6, __VA_ARGS__)                                \
    X(add_scaled, half, 3, 4, __VA_ARGS__)
/* Whose products are rounded before they are added to, as those of formulas of floats are. */
#define STEPPED_OPS(X, ...)                                                                                   \
    X(addcmul, half, 4, 8, __VA_ARGS__) X(addcdiv, half, 4, 8, __VA_ARGS__) X(lerp_near, half, 3, 4, __VA_ARGS__) \
    X(lerp_far, half, 3, 4, __VA_ARGS__)

#define SIZE_half HALF
#define SIZE_bool 1
#define LOAD_half(type) type##_pair
#define LOAD_bool(type) type##_ordered
#define STORE_half(type) type##_join
#define STORE_bool(type) bools_join
#define DEFINE(name, result, inputs, numbers, type)                                                           \
    static void name##_##type##_##numbers(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {       \
        elements(data, steps, count, inputs, numbers, SIZE_##result, LOAD_##result(type), STORE_##result(type), name##_of); \
    }
HALF_OPS(DEFINE, bf16)
HALF_OPS(DEFINE, f16)
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
STEPPED_OPS(DEFINE, bf16)
STEPPED_OPS(DEFINE, f16)
#if !defined(__clang__)
#pragma GCC pop_options
#endif

#define ENTRY(name, result, inputs, numbers, type) [OP_##name][numbers] = name##_##type##_##numbers,
const half_loops ISA(half_loops) = {.bf16 = {HALF_OPS(ENTRY, bf16) STEPPED_OPS(ENTRY, bf16)},
                                      .f16 = {HALF_OPS(ENTRY, f16) STEPPED_OPS(ENTRY, f16)}};
