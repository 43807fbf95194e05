/* The loops of products of one row. Sums of short integers have 16 bits: the last bits are those of the product. */
#include "../gemm_vectors.h"
#include "loop.h"
#include "rows.h"
#include "zip.h"

#include <string.h>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

enum { WIDTH = 1024 }; /* sums that stay in the first cache */

#define VECTOR_LOOPS(suffix, type, sum_type)                                                                  \
    static void by_rows_##suffix(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end) {                       \
        const ptrdiff_t step = job->right_inner;                                                              \
        for (; begin < end; begin += WIDTH) {                                                                 \
            const ptrdiff_t width = end - begin < WIDTH ? end - begin : WIDTH;                                \
            const type *left = job->left, *right = (const type *)job->right + begin;                          \
            type *made = (type *)job->made + begin;                                                           \
            sum_type sums[WIDTH];                                                                             \
            memset(sums, 0, (size_t)width * sizeof *sums);                                                    \
            ptrdiff_t k = 0;                                                                                  \
            for (; k + 4 <= job->inner; k += 4, left += 4 * job->left_inner, right += 4 * step) {             \
                const sum_type a = left[0], b = left[job->left_inner];                                        \
                const sum_type c = left[2 * job->left_inner], d = left[3 * job->left_inner];                  \
                for (ptrdiff_t j = 0; j < width; j++)                                                         \
                    sums[j] += (sum_type)(a * right[j] + b * right[step + j] + c * right[2 * step + j] +      \
                                          d * right[3 * step + j]);                                           \
            }                                                                                                 \
            for (; k < job->inner; k++, left += job->left_inner, right += step) {                             \
                const sum_type a = left[0];                                                                   \
                for (ptrdiff_t j = 0; j < width; j++)                                                         \
                    sums[j] += (sum_type)(a * right[j]);                                                      \
            }                                                                                                 \
            for (ptrdiff_t j = 0; j < width; j++)                                                             \
                made[j] = (type)sums[j];                                                                      \
        }                                                                                                     \
    }                                                                                                         \
    static void by_columns_##suffix(const gemm_job *job, ptrdiff_t begin, ptrdiff_t end) {                    \
        const type *left = job->left;                                                                         \
        for (; begin < end; begin++) {                                                                        \
            const type *right = (const type *)job->right + begin * job->right_column;                         \
            sum_type sum = 0;                                                                                 \
            for (ptrdiff_t k = 0; k < job->inner; k++)                                                        \
                sum += (sum_type)((sum_type)left[k] * (sum_type)right[k]);                                    \
            ((type *)job->made)[begin] = (type)sum;                                                           \
        }                                                                                                     \
    }

VECTOR_LOOPS(i8, int8_t, int16_t)
VECTOR_LOOPS(i16, int16_t, int16_t)
VECTOR_LOOPS(i32, int32_t, int32_t)
VECTOR_LOOPS(i64, int64_t, int64_t)
VECTOR_LOOPS(u8, uint8_t, int16_t)

/* Floats */

#ifdef __AVX512F__
/* Of `count` vectors, two to four, every count-th element from number k on. */
#define LANE_f32 _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define LANE_f64 _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)
#define EVERY(suffix, vector, width, kind, lanes)                                                             \
    ALWAYS_INLINE vector every_##suffix(const vector *x, int count, int k) {                                  \
        const __m512i at = _mm512_add_##width(_mm512_mullo_##width(LANE_##suffix, _mm512_set1_##width(count)), _mm512_set1_##width(k)); \
        const vector low = _mm512_permutex2var_##kind(x[0], at, x[1]);                                        \
        if (count == 2)                                                                                       \
            return low;                                                                                       \
        const vector high = count == 3 ? _mm512_permutexvar_##kind(at, x[2]) : _mm512_permutex2var_##kind(x[2], at, x[3]); \
        return _mm512_mask_blend_##kind(_mm512_cmpge_##width##_mask(at, _mm512_set1_##width(2 * lanes)), low, high); \
    }
EVERY(f32, __m512, epi32, ps, 16)
EVERY(f64, __m512d, epi64, pd, 8)
#undef EVERY
#endif

#include "as_f32.h"
#include "turn_of_real.h"
#include "gemm_vectors_of_real.h"
#include "gemm_short_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "gemm_vectors_of_real.h"
#include "gemm_short_of_real.h"

#define EACH(name)                                                                                            \
    {[TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16, [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8}

const gemm_vector_loops ISA(gemm_vector_loops) = {
    .by_rows = EACH(by_rows), .by_columns = EACH(by_columns),
    .by_short_columns = {by_short_columns_f32, by_short_columns_f64}, .by_long_columns = {by_long_columns_f32, by_long_columns_f64},
    .by_long_rows = {by_long_rows_f32, by_long_rows_f64}, .lanes = {LANES_F32, LANES_F64},
};
