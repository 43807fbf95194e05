/* The loops of products of one row of integers. Sums of short integers have 16 bits: the last bits are those of the product. */
#include "../gemm_vectors.h"
#include "loop.h"

#include <string.h>

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

#define EACH(name)                                                                                            \
    {[TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16, [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8}

const gemm_vector_loops ISA(gemm_vector_loops) = {.by_rows = EACH(by_rows), .by_columns = EACH(by_columns)};
