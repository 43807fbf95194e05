/* The loops of running sums and products: of floats in double, as PyTorch does it, and of integers in their own bits. */
#include "../scans.h"
#include "loop.h"

#include <string.h>

/* One column stays in a register. */
#define SCAN(name, type, wide, first, next)                                                                   \
    static void name(const void *from, void *to, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width) {           \
        const type *x = from;                                                                                 \
        type *made = to;                                                                                      \
        if (width == 1) {                                                                                     \
            wide one = first;                                                                                 \
            for (ptrdiff_t i = 0; i < rows; i++, x += step, made += step)                                     \
                *made = (type)(one = next(one, *x));                                                          \
        } else {                                                                                              \
            wide so_far[SCAN_STRIP];                                                                          \
            for (ptrdiff_t j = 0; j < width; j++)                                                             \
                so_far[j] = first;                                                                            \
            for (ptrdiff_t i = 0; i < rows; i++, x += step, made += step)                                     \
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                           \
                    const wide value = next(so_far[j], x[j]);                                                 \
                    so_far[j] = value;                                                                        \
                    made[j] = (type)value;                                                                    \
                }                                                                                             \
        }                                                                                                     \
    }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define SCANS(suffix, type, wide) SCAN(sum_##suffix, type, wide, 0, PLUS) SCAN(product_##suffix, type, wide, 1, TIMES)

SCANS(f32, float, double)
SCANS(f64, double, double)
SCANS(i8, int8_t, int8_t)
SCANS(i16, int16_t, int16_t)
SCANS(i32, int32_t, int32_t)
SCANS(i64, int64_t, int64_t)
SCANS(u8, uint8_t, uint8_t)

/* Integers side by side, which ask for no order of their additions: sums of eight from three rounds, and what stands before them.
   One by one, a row took 1.3 times as long. */
static void row_sum_i64(const void *from, void *to, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width) {
    typedef int64_t eight __attribute__((vector_size(64)));
    typedef int64_t eight_anywhere __attribute__((vector_size(64), aligned(8), may_alias));
    const int64_t *x = from;
    int64_t *made = to, before = 0;
    ptrdiff_t i = 0;
    if (step != 1 || width != 1) {
        sum_i64(from, to, rows, step, width);
        return;
    }
    for (; i + 8 <= rows; i += 8) {
        const eight none = {0};
        eight all = *(const eight_anywhere *)(x + i);
        all += __builtin_shufflevector(none, all, 0, 8, 9, 10, 11, 12, 13, 14);
        all += __builtin_shufflevector(none, all, 0, 0, 8, 9, 10, 11, 12, 13);
        all += __builtin_shufflevector(none, all, 0, 0, 0, 0, 8, 9, 10, 11);
        *(eight_anywhere *)(made + i) = all + before;
        before += all[7];
    }
    for (; i < rows; i++)
        made[i] = before += x[i];
}

/* The parts of complex numbers side by side: four sums from two rounds in double, in which no order of them overflows. */
static void pair_sum_f32(const void *from, void *to, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width) {
    typedef double eight __attribute__((vector_size(64)));
    typedef float narrow __attribute__((vector_size(32), aligned(4), may_alias));
    const float *x = from;
    float *made = to;
    eight before = {0};
    ptrdiff_t i = 0;
    if (step != 2 || width != 2) {
        sum_f32(from, to, rows, step, width);
        return;
    }
    for (; i + 4 <= rows; i += 4) {
        const eight none = {0};
        eight all = __builtin_convertvector(*(const narrow *)(x + 2 * i), eight);
        all += __builtin_shufflevector(none, all, 0, 1, 8, 9, 10, 11, 12, 13);
        all += __builtin_shufflevector(none, all, 0, 1, 2, 3, 8, 9, 10, 11);
        *(narrow *)(made + 2 * i) = __builtin_convertvector(all + before, narrow);
        before += __builtin_shufflevector(all, all, 6, 7, 6, 7, 6, 7, 6, 7);
    }
    for (; i < rows; i++)
        for (int k = 0; k < 2; k++)
            made[2 * i + k] = (float)(before[k] += x[2 * i + k]);
}

/* And of doubles: sums of four neighbours do not wait for those before them; one addition of four does. */
static void pair_sum_f64(const void *from, void *to, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width) {
    typedef double two __attribute__((vector_size(16), aligned(8), may_alias));
    const two *x = from;
    two *made = to, before = {0};
    ptrdiff_t i = 0;
    if (step != 2 || width != 2) {
        sum_f64(from, to, rows, step, width);
        return;
    }
    for (; i + 4 <= rows; i += 4) {
        const two a = x[i], b = a + x[i + 1], c = b + x[i + 2], d = c + x[i + 3];
        made[i] = before + a;
        made[i + 1] = before + b;
        made[i + 2] = before + c;
        made[i + 3] = before += d;
    }
    for (; i < rows; i++)
        made[i] = before += x[i];
}

/* The extreme so far, and where it was met last. One column stays in registers. */
#define SCAN_EXTREME(name, type, beats)                                                                       \
    static void name(const void *from, void *to, int64_t *places, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width) { \
        const type *x = from;                                                                                 \
        type *made = to, best[SCAN_STRIP];                                                                    \
        int64_t found[SCAN_STRIP] = {0};                                                                      \
        if (width == 1) {                                                                                     \
            type one = *x;                                                                                    \
            int64_t place = 0;                                                                                \
            for (ptrdiff_t i = 0; i < rows; i++, x += step, made += step, places += step) {                   \
                place = *x beats one ? i : place;                                                             \
                *made = one = *x beats one ? *x : one;                                                        \
                *places = place;                                                                              \
            }                                                                                                 \
            return;                                                                                           \
        }                                                                                                     \
        memcpy(best, x, (size_t)width * sizeof *x);                                                           \
        for (ptrdiff_t i = 0; i < rows; i++, x += step, made += step, places += step)                         \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                const type one = x[j], before = best[j];                                                      \
                made[j] = best[j] = one beats before ? one : before;                                          \
                places[j] = found[j] = one beats before ? i : found[j];                                       \
            }                                                                                                 \
    }
#define SCAN_EXTREMES(suffix, type, ...) SCAN_EXTREME(largest_##suffix, type, >=) SCAN_EXTREME(smallest_##suffix, type, <=)
INTEGERS(SCAN_EXTREMES, )

#define INTEGERS_OF(name)                                                                                     \
    [TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16, [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8
#define EACH(name) {[TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64, INTEGERS_OF(name)}

const scan_loops ISA(scan_loops) = {
    .sum = EACH(sum), .sum[TYPE_I64] = row_sum_i64, .sum[TYPE_F32] = pair_sum_f32, .sum[TYPE_F64] = pair_sum_f64,
    .product = EACH(product),
    .largest = {INTEGERS_OF(largest), [TYPE_BOOL] = largest_u8}, .smallest = {INTEGERS_OF(smallest), [TYPE_BOOL] = smallest_u8},
};
