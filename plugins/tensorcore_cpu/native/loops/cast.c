/* The loops of casts and copies. */
#include "half.h"
#include "loop.h"
#include "whole.h"

#include "../cast.h"

#include <string.h>

/* Between numbers. What an integer cannot hold is undefined, as in NumPy; to bool everything but zero is true. */

/* `value` is the number that an element x is, and `narrow` what it becomes on its way to a narrow integer. */
#define CASTS_OF(from, type, narrow, value)                                                                   \
    UNARY_LOOP(from##_to_f32, type, float, value) UNARY_LOOP(from##_to_f64, type, double, value)              \
    UNARY_LOOP(from##_to_i8, type, int8_t, (narrow)(value)) UNARY_LOOP(from##_to_i16, type, int16_t, (narrow)(value)) \
    UNARY_LOOP(from##_to_i32, type, int32_t, value) UNARY_LOOP(from##_to_i64, type, int64_t, value)           \
    UNARY_LOOP(from##_to_u8, type, uint8_t, (narrow)(value)) UNARY_LOOP(from##_to_bool, type, uint8_t, x != 0)
#define CASTS_FROM(from, type, narrow) CASTS_OF(from, type, narrow, x)

NARROW_VECTORS
CASTS_FROM(f32, float, int32_t)
CASTS_FROM(f64, double, int32_t)
CASTS_FROM(i8, int8_t, int8_t)
CASTS_FROM(i16, int16_t, int16_t)
CASTS_FROM(i32, int32_t, int32_t)
CASTS_FROM(i64, int64_t, int64_t)
CASTS_FROM(u8, uint8_t, uint8_t)
CASTS_OF(bool, uint8_t, uint8_t, x != 0) /* a view of other bytes as bools has more than 0 and 1 */
WIDE_VECTORS

/* Half types */

UNARY_LOOP(bf16_to_f32_rest, uint16_t, float, bf16_value(x))
UNARY_LOOP(f32_to_bf16_rest, float, uint16_t, bf16_of(x))

static void bf16_to_f32(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    ptrdiff_t i = 0;
    for (; steps[0] == 2 && steps[1] == 4 && i + 2 * LANES_F32 <= count; i += 2 * LANES_F32) {
        const vf_pair made = bf16_ordered(data[0] + i * 2);
        memcpy(data[1] + i * 4, &made, sizeof made);
    }
    char *const rest[2] = {data[0] + i * steps[0], data[1] + i * steps[1]};
    bf16_to_f32_rest(rest, steps, count - i);
}

static void f32_to_bf16(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    ptrdiff_t i = 0;
    for (; steps[0] == 4 && steps[1] == 2 && i + 2 * LANES_F32 <= count; i += 2 * LANES_F32) {
        const vf_u *from = (const vf_u *)(data[0] + i * 4);
        bf16_in_order(data[1] + i * 2, (vf_pair){{from[0], from[1]}});
    }
    char *const rest[2] = {data[0] + i * steps[0], data[1] + i * steps[1]};
    f32_to_bf16_rest(rest, steps, count - i);
}

/* A float that rounds to float16 as the double does: what it has no bits for makes its last one odd, so that nothing which was beside
   a tie becomes one. */
ALWAYS_INLINE float odd_float(double x) {
    const int64_t lost = (INT64_C(1) << 29) - 1; /* 52 bits behind the point, and 23 */
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits | ((bits & lost) + lost)) & ~lost;
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}
UNARY_LOOP(f64_to_odd_f32, double, float, odd_float(x))

#ifdef __F16C__
UNARY_LOOP(f16_to_f32_rest, uint16_t, float, f16_value(x))
UNARY_LOOP(f32_to_f16_rest, float, uint16_t, f16_of(x))

static void f16_to_f32(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const uint16_t *from = (const uint16_t *)data[0];
    float *to = (float *)data[1];
    ptrdiff_t i = 0;
    if (steps[0] == 2 && steps[1] == 4) {
#if defined(__AVX512F__)
        for (; i + 16 <= count; i += 16)
            _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#endif
        for (; i + 8 <= count; i += 8)
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    }
    char *const rest[2] = {data[0] + i * steps[0], data[1] + i * steps[1]};
    f16_to_f32_rest(rest, steps, count - i);
}

static void f32_to_f16(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const float *from = (const float *)data[0];
    uint16_t *to = (uint16_t *)data[1];
    ptrdiff_t i = 0;
    if (steps[0] == 4 && steps[1] == 2) {
#if defined(__AVX512F__)
        for (; i + 16 <= count; i += 16)
            _mm256_storeu_si256((__m256i *)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
        for (; i + 8 <= count; i += 8)
            _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
    char *const rest[2] = {data[0] + i * steps[0], data[1] + i * steps[1]};
    f32_to_f16_rest(rest, steps, count - i);
}
#else
UNARY_LOOP(f16_to_f32, uint16_t, float, f16_value(x))
UNARY_LOOP(f32_to_f16, float, uint16_t, f16_of(x))
#endif

/* Copies. To a row from every second place go halves of two vectors, and from others evenly apart four loads joined to one: 100,000
   floats in the second cache took 12 and 24 us so on an Emerald Rapids, and 42 one by one. */

#define FROM(type, k) *(const type *)(from + (k) * steps[0])
#define COPY_LOOP(size, type)                                                                                 \
    typedef type joined_##size __attribute__((vector_size(4 * size), aligned(size), may_alias));              \
    static void copy_##size(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                     \
        type *made = (type *)data[1];                                                                         \
        if (steps[0] == size && steps[1] == size) {                                                           \
            const intptr_t bytes = count * size, apart = (intptr_t)data[0] - (intptr_t)data[1];               \
            if (apart < bytes && -apart < bytes)                                                              \
                memmove(data[1], data[0], (size_t)bytes);                                                     \
            else                                                                                              \
                copy_whole(data[0], data[1], bytes);                                                          \
        } else if (steps[0] == 0 && steps[1] == size) {                                                       \
            type x = *(const type *)data[0];                                                                  \
            for (ptrdiff_t i = 0; i < count; i++)                                                             \
                made[i] = x;                                                                                  \
        } else if (steps[0] == -size && steps[1] == size) {                                                   \
            const type *from = (const type *)data[0];                                                         \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)                                                 \
                made[i] = from[-i];                                                                           \
        } else if (steps[0] == 2 * size && steps[1] == size) {                                                \
            const type *from = (const type *)data[0];                                                         \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)                                                 \
                made[i] = from[2 * i];                                                                        \
        } else if (steps[1] == size) {                                                                        \
            const char *from = data[0];                                                                       \
            ptrdiff_t i = 0;                                                                                  \
            for (; i + 4 <= count; i += 4, from += 4 * steps[0])                                              \
                *(joined_##size *)(made + i) =                                                                \
                    (joined_##size){FROM(type, 0), FROM(type, 1), FROM(type, 2), FROM(type, 3)};              \
            for (; i < count; i++, from += steps[0])                                                          \
                made[i] = FROM(type, 0);                                                                      \
        } else {                                                                                              \
            for (ptrdiff_t i = 0; i < count; i++)                                                             \
                AT(type, 1) = AT(const type, 0);                                                              \
        }                                                                                                     \
    }
COPY_LOOP(1, uint8_t)
COPY_LOOP(2, uint16_t)
COPY_LOOP(4, uint32_t)
COPY_LOOP(8, uint64_t)

/* The last vector of a row begins where a whole one still fits; bytes are not shuffled without AVX2. */
#define BACKWARDS(size, type)                                                                                 \
    ALWAYS_INLINE void turned_vector_##size(const type *from, type *to) {                                     \
        typedef type vector __attribute__((vector_size(VECTOR)));                                             \
        vector x, made;                                                                                       \
        memcpy(&x, from - (VECTOR / size - 1), sizeof x);                                                     \
        for (int k = 0; k < VECTOR / size; k++)                                                               \
            made[k] = x[VECTOR / size - 1 - k];                                                               \
        memcpy(to, &made, sizeof made);                                                                       \
    }                                                                                                         \
    static void backwards_##size(const char *from, ptrdiff_t from_step, char *to, ptrdiff_t to_step, ptrdiff_t rows, \
                                 ptrdiff_t count) {                                                           \
        const ptrdiff_t lanes = VECTOR == 16 && size == 1 ? PTRDIFF_MAX : VECTOR / size;                      \
        const ptrdiff_t few = count < lanes ? count : 0;                                                      \
        for (; rows; rows--, from += from_step, to += to_step) {                                              \
            const type *x = (const type *)from;                                                               \
            type *made = (type *)to;                                                                          \
            for (ptrdiff_t i = 0; i < few; i++)                                                               \
                made[i] = x[-i];                                                                              \
            for (ptrdiff_t i = 0; count >= lanes && i + lanes <= count; i += lanes)                                             \
                turned_vector_##size(x - i, made + i);                                                        \
            if (count > lanes && count % lanes)                                                               \
                turned_vector_##size(x - (count - lanes), made + (count - lanes));                            \
        }                                                                                                     \
    }
BACKWARDS(1, uint8_t)
BACKWARDS(2, uint16_t)
BACKWARDS(4, uint32_t)
BACKWARDS(8, uint64_t)

/* The line that is written is not fetched first. memcpy does so from a part of the last cache on that it takes for a core's own:
   from 250 MB on, on a machine whose last cache is that of many cores. */
static void stream(char *to, const char *from, ptrdiff_t bytes) {
    ptrdiff_t done = 0;
#if defined(__AVX2__)
    done = -(ptrdiff_t)((uintptr_t)to % VECTOR) & (VECTOR - 1);
    done = done < bytes ? done : bytes;
    memcpy(to, from, (size_t)done);
    for (; bytes - done >= VECTOR; done += VECTOR)
#if defined(__AVX512F__)
        _mm512_stream_si512((__m512i *)(to + done), _mm512_loadu_si512(from + done));
#else
        _mm256_stream_si256((__m256i *)(to + done), _mm256_loadu_si256((const __m256i *)(from + done)));
#endif
#endif
    memcpy(to + done, from + done, (size_t)(bytes - done));
}

#define ROW(from)                                                                                             \
    [TYPE_F32] = from##_to_f32, [TYPE_F64] = from##_to_f64, [TYPE_I8] = from##_to_i8, [TYPE_I16] = from##_to_i16, \
    [TYPE_I32] = from##_to_i32, [TYPE_I64] = from##_to_i64, [TYPE_U8] = from##_to_u8, [TYPE_BOOL] = from##_to_bool

const cast_loops ISA(cast_loops) = {.stream = stream, .odd = f64_to_odd_f32, .backwards = {backwards_1, backwards_2, backwards_4, backwards_8}, .cast = {
    [TYPE_F32] = {ROW(f32), [TYPE_F32] = copy_4, [TYPE_BF16] = f32_to_bf16, [TYPE_F16] = f32_to_f16},
    [TYPE_F64] = {ROW(f64), [TYPE_F64] = copy_8},
    [TYPE_BF16] = {[TYPE_F32] = bf16_to_f32, [TYPE_BF16] = copy_2},
    [TYPE_F16] = {[TYPE_F32] = f16_to_f32, [TYPE_F16] = copy_2},
    [TYPE_I8] = {ROW(i8), [TYPE_I8] = copy_1},
    [TYPE_I16] = {ROW(i16), [TYPE_I16] = copy_2},
    [TYPE_I32] = {ROW(i32), [TYPE_I32] = copy_4},
    [TYPE_I64] = {ROW(i64), [TYPE_I64] = copy_8},
    [TYPE_U8] = {ROW(u8), [TYPE_U8] = copy_1},
    [TYPE_BOOL] = {ROW(bool), [TYPE_BOOL] = copy_1},
}};
