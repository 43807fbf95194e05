/* The loops of random numbers. Products and sums that are rounded once are written as fused; all others have to stay two
   steps, and none of them is a product and a sum of its result, which the compiler would fuse too. */
#include "loop.h"

#include "../random.h"

#include <math.h>
#include <string.h>

enum {
    WORDS = 624, SHIFT = 397,
    PIECE = 1024, /* words that are drawn and used up at a time */
    BLOCK = 16,   /* normals that are made together: eight of radius and cosine, eight of radius and sine */
};

static inline uint32_t twisted(uint32_t here, uint32_t next, uint32_t far) {
    uint32_t mixed = (here & 0x80000000u) | (next & 0x7fffffffu);
    return far ^ (mixed >> 1) ^ (-(mixed & 1) & 0x9908b0dfu);
}

/* The next 624 words. Each depends on words far enough before it for vectors. */
static void renew(uint32_t *key) {
    INDEPENDENT for (int i = 0; i < WORDS - SHIFT; i++)
        key[i] = twisted(key[i], key[i + 1], key[i + SHIFT]);
    for (int i = WORDS - SHIFT; i < WORDS - 1;) {
        /* In pieces that are shorter than the way back. */
        int end = i + 192 < WORDS - 1 ? i + 192 : WORDS - 1;
        INDEPENDENT for (int k = i; k < end; k++)
            key[k] = twisted(key[k], key[k + 1], key[k + SHIFT - WORDS]);
        i = end;
    }
    key[WORDS - 1] = twisted(key[WORDS - 1], key[0], key[SHIFT - 1]);
}

static void draw(twister_state *state, uint32_t *out, ptrdiff_t count) {
    while (count) {
        if (state->position >= WORDS) {
            renew(state->key);
            state->position = 0;
        }
        ptrdiff_t piece = WORDS - state->position < count ? WORDS - state->position : count;
        const uint32_t *key = state->key + state->position;
        INDEPENDENT for (ptrdiff_t i = 0; i < piece; i++) {
            uint32_t word = key[i];
            word ^= word >> 11;
            word ^= (word << 7) & 0x9d2c5680u;
            word ^= (word << 15) & 0xefc60000u;
            out[i] = word ^ (word >> 18);
        }
        state->position += (int)piece;
        out += piece;
        count -= piece;
    }
}

#define EACH_PIECE(words_each, USE)                                                                           \
    _Alignas(64) uint32_t words[PIECE * words_each];                                                                   \
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {                                                \
        ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;                                      \
        draw(state, words, piece * words_each);                                                               \
        INDEPENDENT for (ptrdiff_t i = 0; i < piece; i++) {                                                   \
            USE                                                                                               \
        }                                                                                                     \
    }

#define UNIFORM_F32 ((float)(int32_t)(words[i] & 0xffffff) * 0x1p-24f)
/* The first word of two is the upper half; in memory it is the lower one. */
typedef uint64_t word_pair __attribute__((may_alias));
#define PAIR (((const word_pair *)words)[i])
#define BITS_64 ((PAIR << 32) | (PAIR >> 32))
#define BITS_53 (int64_t)(BITS_64 & ((1ULL << 53) - 1))
#define UNIFORM_F64 ((double)(BITS_53) * 0x1p-53)

static void plain_uniform_f32(twister_state *state, float *out, ptrdiff_t count) {
    EACH_PIECE(1, { out[begin + i] = UNIFORM_F32; })
}

static void uniform_f32(twister_state *state, float *out, ptrdiff_t count, float low, float high) {
    if (low == 0 && high == 1) {
        plain_uniform_f32(state, out, count);
        return;
    }
    float width = high - low;
    EACH_PIECE(1, {
        float made = __builtin_fmaf(UNIFORM_F32, width, low);
        out[begin + i] = made == high ? low : made;
    })
}

static void uniform_f64(twister_state *state, double *out, ptrdiff_t count, double low, double high) {
    double width = high - low;
    if (low == 0 && high == 1) {
        EACH_PIECE(2, { out[begin + i] = UNIFORM_F64; })
    } else {
        EACH_PIECE(2, {
            double made = __builtin_fma(UNIFORM_F64, width, low);
            out[begin + i] = made == high ? low : made;
        })
    }
}

static void bernoulli_f32(twister_state *state, float *out, ptrdiff_t count, double probability, float one) {
    int64_t limit = (int64_t)ceil(probability * 0x1p53); /* a comparison of integers in the place of one of uniforms */
    EACH_PIECE(2, { out[begin + i] = BITS_53 < limit ? one : 0; })
}

static void bernoulli_f64(twister_state *state, double *out, ptrdiff_t count, double probability, double one) {
    int64_t limit = (int64_t)ceil(probability * 0x1p53);
    EACH_PIECE(2, { out[begin + i] = BITS_53 < limit ? one : 0; })
}

/* As the other side of -log1p(-u) / rate has it: by the C library's function, in double precision. */
static void exponential_f32(twister_state *state, float *out, ptrdiff_t count, double factor) {
    EACH_PIECE(2, { out[begin + i] = (float)(log1p(-UNIFORM_F64) * factor); })
}

static void exponential_f64(twister_state *state, double *out, ptrdiff_t count, double factor) {
    EACH_PIECE(2, { out[begin + i] = log1p(-UNIFORM_F64) * factor; })
}

static void flips_f32(twister_state *state, const float *probability, float *out, ptrdiff_t count) {
    EACH_PIECE(1, { out[begin + i] = UNIFORM_F32 < probability[begin + i] ? 1 : 0; })
}

static void flips_f64(twister_state *state, const double *probability, double *out, ptrdiff_t count) {
    EACH_PIECE(2, { out[begin + i] = UNIFORM_F64 < probability[begin + i] ? 1 : 0; })
}

static void integers(twister_state *state, int64_t *out, ptrdiff_t count, int64_t low, uint32_t span) {
    EACH_PIECE(1, { out[begin + i] = low + (int64_t)(words[i] % span); })
}

static void integers_f32(twister_state *state, float *out, ptrdiff_t count, int32_t low, uint32_t span) {
    EACH_PIECE(1, { out[begin + i] = (float)(low + (int32_t)(words[i] % span)); })
}

static void random_f32(twister_state *state, float *out, ptrdiff_t count) {
    EACH_PIECE(1, { out[begin + i] = (float)(int32_t)(words[i] % ((1u << 24) + 1)); })
}

static void random_f64(twister_state *state, double *out, ptrdiff_t count) {
    EACH_PIECE(2, { out[begin + i] = (double)(int64_t)(BITS_64 % ((1ULL << 53) + 1)); })
}

static void random_i64(twister_state *state, int64_t *out, ptrdiff_t count) {
    EACH_PIECE(2, { out[begin + i] = (int64_t)(BITS_64 & INT64_MAX); })
}

static void cauchy_f32(twister_state *state, float *out, ptrdiff_t count, double median, double sigma) {
    EACH_PIECE(2, { out[begin + i] = (float)__builtin_fma(tan((UNIFORM_F64 - 0.5) * 3.141592653589793), sigma, median); })
}

static void cauchy_f64(twister_state *state, double *out, ptrdiff_t count, double median, double sigma) {
    EACH_PIECE(2, { out[begin + i] = __builtin_fma(tan((UNIFORM_F64 - 0.5) * 3.141592653589793), sigma, median); })
}

static void geometric_f32(twister_state *state, float *out, ptrdiff_t count, double divisor) {
    EACH_PIECE(2, { out[begin + i] = (float)ceil(log(UNIFORM_F64) / divisor); })
}

static void geometric_f64(twister_state *state, double *out, ptrdiff_t count, double divisor) {
    EACH_PIECE(2, { out[begin + i] = ceil(log(UNIFORM_F64) / divisor); })
}

static void shuffle(twister_state *state, int64_t *out, ptrdiff_t count) {
    const uint32_t size = (uint32_t)count--;
    for (uint32_t i = 0; i < size; i++)
        out[i] = i;
    uint32_t words[PIECE];
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        draw(state, words, piece);
        for (ptrdiff_t i = begin; i < begin + piece; i++) {
            const ptrdiff_t other = i + words[i - begin] % (size - (uint32_t)i);
            const int64_t held = out[i];
            out[i] = out[other];
            out[other] = held;
        }
    }
}

/* Normals */

ALWAYS_INLINE float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

ALWAYS_INLINE uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

#define FMA __builtin_fmaf

/* sqrt(-2 log(1 - u)) */
ALWAYS_INLINE float radius(float u) {
    uint32_t bits = bits_of(1 - u);
    int32_t n = (int32_t)(bits - 0x3f3504f3u) >> 23;
    float e = (float)n, x = float_of(bits - ((uint32_t)n << 23)) - 1, z = x * x;
    float series = 7.0376836292e-2f;
    series = FMA(series, x, -1.1514610310e-1f);
    series = FMA(series, x, 1.1676998740e-1f);
    series = FMA(series, x, -1.2420140846e-1f);
    series = FMA(series, x, 1.4249322787e-1f);
    series = FMA(series, x, -1.6668057665e-1f);
    series = FMA(series, x, 2.0000714765e-1f);
    series = FMA(series, x, -2.4999993993e-1f);
    series = FMA(series, x, 3.3333331174e-1f) * x;
    float y = FMA(series, z, e * -2.12194440e-4f);
    y = FMA(z, -0.5f, y);
    return sqrtf(FMA(e, 0.693359375f, x + y) * -2);
}

/* sin(2 pi u) and cos(2 pi u), times r. */
ALWAYS_INLINE void turn(float u, float r, float *sine, float *cosine) {
    float x = u * 6.283185307179586f;
    int32_t j = ((int32_t)(x * 1.2732395447351628f) + 1) & ~1;
    float e = (float)j;
    x = FMA(e, -0.78515625f, x);
    x = FMA(e, -2.4187564849853515625e-4f, x);
    x = FMA(e, -3.77489497744594108e-8f, x);
    float z = x * x;
    float c = FMA(FMA(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f) * z;
    c = FMA(c, z, z * -0.5f) + 1;
    float s = FMA(FMA(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f) * z;
    s = FMA(s, x, x);
    /* Bit 1 of j swaps the two, bit 2 turns the sine's sign, and bit 2 of 1 - j the cosine's. */
    uint32_t swap = (uint32_t)((int32_t)((uint32_t)j << 30) >> 31);
    uint32_t sine_bits = bits_of(s), cosine_bits = bits_of(c), both = (sine_bits ^ cosine_bits) & swap;
    *sine = r * float_of((sine_bits ^ both) ^ ((uint32_t)(j & 4) << 29));
    *cosine = r * float_of((cosine_bits ^ both) ^ ((uint32_t)((1 - j) & 4) << 29));
}

/* Whole blocks of uniforms into normals, in place. */
static void box_muller(float *values, ptrdiff_t count) {
    float radii[PIECE / 2], angles[PIECE / 2];
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        for (ptrdiff_t i = 0; i < piece / BLOCK; i++) {
            memcpy(radii + i * BLOCK / 2, values + begin + i * BLOCK, BLOCK / 2 * sizeof *values);
            memcpy(angles + i * BLOCK / 2, values + begin + i * BLOCK + BLOCK / 2, BLOCK / 2 * sizeof *values);
        }
        INDEPENDENT for (ptrdiff_t i = 0; i < piece / 2; i++)
            turn(angles[i], radius(radii[i]), &angles[i], &radii[i]);
        for (ptrdiff_t i = 0; i < piece / BLOCK; i++) {
            memcpy(values + begin + i * BLOCK, radii + i * BLOCK / 2, BLOCK / 2 * sizeof *values);
            memcpy(values + begin + i * BLOCK + BLOCK / 2, angles + i * BLOCK / 2, BLOCK / 2 * sizeof *values);
        }
    }
}

static void normal_f32(twister_state *state, float *out, ptrdiff_t count, float mean, float std) {
    ptrdiff_t whole = count & -(ptrdiff_t)BLOCK;
    for (ptrdiff_t begin = 0; begin < whole; begin += PIECE) {
        ptrdiff_t piece = whole - begin < PIECE ? whole - begin : PIECE;
        plain_uniform_f32(state, out + begin, piece);
        box_muller(out + begin, piece);
    }
    if (whole < count) {
        /* The rest is drawn, and then the last 16 are drawn anew. */
        float last[BLOCK];
        plain_uniform_f32(state, last, count - whole);
        plain_uniform_f32(state, last, BLOCK);
        box_muller(last, BLOCK);
        memcpy(out + count - BLOCK, last, sizeof last);
    }
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
        out[i] = FMA(out[i], std, mean);
}

const random_loops ISA(random_loops) = {
    uniform_f32,     uniform_f64,     normal_f32, bernoulli_f32, bernoulli_f64, integers,      integers_f32, random_f32, random_f64, random_i64,
    exponential_f32, exponential_f64, cauchy_f32, cauchy_f64,    geometric_f32, geometric_f64, flips_f32,    flips_f64,  shuffle,
};
