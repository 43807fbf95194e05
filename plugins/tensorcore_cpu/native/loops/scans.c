/* The loops of running sums and products: of floats in double, as PyTorch does it, and of integers in their own bits. */
#include "../scans.h"
#include "loop.h"

#include <string.h>

enum { SCAN_FEW = 4, SCAN_APART = 8 }; /* columns up to which, and below which */

/* Lines of so few rows or columns, constants where this is called, that what is so far stays in registers. */
#define SCAN_LINES(name, type, wide, first, next)                                                             \
    ALWAYS_INLINE void name##_lines(const type *x, type *made, const scan_shape *of, ptrdiff_t rows, ptrdiff_t width) { \
        const ptrdiff_t start = of->back ? (rows - 1) * width : 0, by = of->back ? -width : width;            \
        for (ptrdiff_t line = 0; line < of->lines; line++, x += rows * width, made += rows * width) {         \
            wide so_far[SCAN_FEW];                                                                            \
            for (ptrdiff_t j = 0; j < width; j++)                                                             \
                so_far[j] = first;                                                                            \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                for (ptrdiff_t j = 0; j < width; j++)                                                         \
                    made[start + i * by + j] = (type)(so_far[j] = next(so_far[j], x[start + i * by + j]));    \
        }                                                                                                     \
    }                                                                                                         \
    /* Lines of single columns, four beside one another, so that none waits for its own last result. */       \
    static void name##_beside(const type *x, type *made, const scan_shape *of) {                              \
        const ptrdiff_t rows = of->rows, start = of->back ? rows - 1 : 0, by = of->back ? -1 : 1;             \
        ptrdiff_t line = 0;                                                                                   \
        for (; line + 4 <= of->lines; line += 4) {                                                            \
            wide a = first, b = first, c = first, d = first;                                                  \
            const type *at = x + line * rows + start;                                                         \
            type *to = made + line * rows + start;                                                            \
            for (ptrdiff_t i = 0; i < rows; i++, at += by, to += by) {                                        \
                to[0] = (type)(a = next(a, at[0]));                                                           \
                to[rows] = (type)(b = next(b, at[rows]));                                                     \
                to[2 * rows] = (type)(c = next(c, at[2 * rows]));                                             \
                to[3 * rows] = (type)(d = next(d, at[3 * rows]));                                             \
            }                                                                                                 \
        }                                                                                                     \
        const scan_shape rest = {of->lines - line, rows, 1, 1, of->back};                                     \
        name##_lines(x + line * rows, made + line * rows, &rest, rows, 1);                                    \
    }                                                                                                         \
    static bool name##_few(const type *x, type *made, const scan_shape *of) {                                 \
        if (of->step != of->width || of->width > SCAN_FEW)                                                    \
            return false;                                                                                     \
        if (of->width == 1 && of->rows == 2)                                                                  \
            name##_lines(x, made, of, 2, 1);                                                                  \
        else if (of->width == 1 && of->rows == 3)                                                             \
            name##_lines(x, made, of, 3, 1);                                                                  \
        else if (of->width == 1 && of->rows == 4)                                                             \
            name##_lines(x, made, of, 4, 1);                                                                  \
        else if (of->width == 1)                                                                              \
            name##_beside(x, made, of);                                                                       \
        else if (of->width == 2)                                                                              \
            name##_lines(x, made, of, of->rows, 2);                                                           \
        else if (of->width == 3)                                                                              \
            name##_lines(x, made, of, of->rows, 3);                                                           \
        else                                                                                                  \
            name##_lines(x, made, of, of->rows, 4);                                                           \
        return true;                                                                                          \
    }

#define SCAN(name, type, wide, first, next)                                                                   \
    SCAN_LINES(name, type, wide, first, next)                                                                 \
    static void name(const void *from, void *to, const scan_shape *of) {                                      \
        const ptrdiff_t width = of->width, by = of->back ? -of->step : of->step, whole = of->rows * of->step; \
        const ptrdiff_t start = of->back ? whole - of->step : 0;                                              \
        if (name##_few(from, to, of))                                                                         \
            return;                                                                                           \
        for (ptrdiff_t line = 0; line < of->lines; line++) {                                                  \
            const type *x = (const type *)from + line * whole + start;                                        \
            type *made = (type *)to + line * whole + start;                                                   \
            wide so_far[SCAN_STRIP];                                                                          \
            for (ptrdiff_t j = 0; j < width; j++)                                                             \
                so_far[j] = first;                                                                            \
            for (ptrdiff_t i = 0; i < of->rows; i++, x += by, made += by)                                     \
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

/* Sums of neighbours first, which do not wait for those before them: of lines of a few rows that lie side by side. */
#define PAYS(of, columns) ((of)->width == (columns) && (of)->step == (columns) && (of)->rows >= 8 && !(of)->back)

/* Integers ask for no order of their additions: sums of eight from three rounds, and what stands before them. One by one, a row took
   1.3 times as long. */
static void row_sum_i64(const void *from, void *to, const scan_shape *of) {
    typedef int64_t eight __attribute__((vector_size(64)));
    typedef int64_t eight_anywhere __attribute__((vector_size(64), aligned(8), may_alias));
    const int64_t *x = from;
    int64_t *made = to;
    if (!PAYS(of, 1)) {
        sum_i64(from, to, of);
        return;
    }
    for (ptrdiff_t line = 0; line < of->lines; line++, x += of->rows, made += of->rows) {
        int64_t before = 0;
        ptrdiff_t i = 0;
        for (; i + 8 <= of->rows; i += 8) {
            const eight none = {0};
            eight all = *(const eight_anywhere *)(x + i);
            all += __builtin_shufflevector(none, all, 0, 8, 9, 10, 11, 12, 13, 14);
            all += __builtin_shufflevector(none, all, 0, 0, 8, 9, 10, 11, 12, 13);
            all += __builtin_shufflevector(none, all, 0, 0, 0, 0, 8, 9, 10, 11);
            *(eight_anywhere *)(made + i) = all + before;
            before += all[7];
        }
        for (; i < of->rows; i++)
            made[i] = before += x[i];
    }
}

/* Lines of two to four floats in double, in which no order of them overflows: `each` elements of them in a vector of eight. What it
   holds behind them is written too, and written over by the next one. */
typedef double eight_sums __attribute__((vector_size(64)));
typedef float eight_floats __attribute__((vector_size(32), aligned(4), may_alias));
#define ADD_BEFORE(all, ...) all += __builtin_shufflevector((eight_sums){0}, all, __VA_ARGS__)
#define SUMS_OF_EIGHT(name, each, ROUNDS)                                                                     \
    static ptrdiff_t name(const float *x, float *made, ptrdiff_t count) {                                     \
        ptrdiff_t i = 0;                                                                                      \
        for (; i + 8 <= count; i += each) {                                                                   \
            eight_sums all = __builtin_convertvector(*(const eight_floats *)(x + i), eight_sums);             \
            ROUNDS;                                                                                           \
            *(eight_floats *)(made + i) = __builtin_convertvector(all, eight_floats);                         \
        }                                                                                                     \
        return i;                                                                                             \
    }
SUMS_OF_EIGHT(sums_of_2, 8, ADD_BEFORE(all, 0, 8, 0, 10, 0, 12, 0, 14))
SUMS_OF_EIGHT(sums_of_3, 6, ADD_BEFORE(all, 0, 8, 9, 0, 11, 12, 0, 0); ADD_BEFORE(all, 0, 0, 8, 0, 0, 11, 0, 0))
SUMS_OF_EIGHT(sums_of_4, 8, ADD_BEFORE(all, 0, 8, 9, 10, 0, 12, 13, 14); ADD_BEFORE(all, 0, 0, 8, 9, 0, 0, 12, 13))

static void row_sum_f32(const void *from, void *to, const scan_shape *of) {
    const float *x = from;
    const ptrdiff_t rows = of->rows, count = of->lines * rows;
    ptrdiff_t done = 0;
    if (of->width == 1 && of->step == 1 && !of->back)
        done = rows == 2 ? sums_of_2(x, to, count) : rows == 3 ? sums_of_3(x, to, count) : rows == 4 ? sums_of_4(x, to, count) : 0;
    const scan_shape rest = {of->lines - (done ? done / rows : 0), rows, of->step, of->width, of->back};
    sum_f32(x + done, (float *)to + done, &rest);
}

/* The parts of complex numbers side by side: four sums from two rounds in double, in which no order of them overflows. */
static void pair_sum_f32(const void *from, void *to, const scan_shape *of) {
    typedef double eight __attribute__((vector_size(64)));
    typedef float narrow __attribute__((vector_size(32), aligned(4), may_alias));
    const float *x = from;
    float *made = to;
    if (!PAYS(of, 2)) {
        sum_f32(from, to, of);
        return;
    }
    for (ptrdiff_t line = 0; line < of->lines; line++, x += 2 * of->rows, made += 2 * of->rows) {
        eight before = {0};
        ptrdiff_t i = 0;
        for (; i + 4 <= of->rows; i += 4) {
            const eight none = {0};
            eight all = __builtin_convertvector(*(const narrow *)(x + 2 * i), eight);
            all += __builtin_shufflevector(none, all, 0, 1, 8, 9, 10, 11, 12, 13);
            all += __builtin_shufflevector(none, all, 0, 1, 2, 3, 8, 9, 10, 11);
            *(narrow *)(made + 2 * i) = __builtin_convertvector(all + before, narrow);
            before += __builtin_shufflevector(all, all, 6, 7, 6, 7, 6, 7, 6, 7);
        }
        for (; i < of->rows; i++)
            for (int k = 0; k < 2; k++)
                made[2 * i + k] = (float)(before[k] += x[2 * i + k]);
    }
}

/* And of doubles: one addition of four waits for what is before. */
static void pair_sum_f64(const void *from, void *to, const scan_shape *of) {
    typedef double two __attribute__((vector_size(16), aligned(8), may_alias));
    const two *x = from;
    two *made = to;
    if (!PAYS(of, 2)) {
        sum_f64(from, to, of);
        return;
    }
    for (ptrdiff_t line = 0; line < of->lines; line++, x += of->rows, made += of->rows) {
        two before = {0};
        ptrdiff_t i = 0;
        for (; i + 4 <= of->rows; i += 4) {
            const two a = x[i], b = a + x[i + 1], c = b + x[i + 2], d = c + x[i + 3];
            made[i] = before + a;
            made[i + 1] = before + b;
            made[i + 2] = before + c;
            made[i + 3] = before += d;
        }
        for (; i < of->rows; i++)
            made[i] = before += x[i];
    }
}

/* The extreme so far, and where it was met last. One column stays in registers, and each of a few does. */
#define SCAN_EXTREME(name, type, beats)                                                                       \
    static void name(const void *from, void *to, int64_t *places, const scan_shape *of) {                     \
        const ptrdiff_t rows = of->rows, step = of->step, width = of->width;                                  \
        const type *x = from;                                                                                 \
        type *made = to, best[SCAN_STRIP];                                                                    \
        int64_t found[SCAN_STRIP];                                                                            \
        for (ptrdiff_t line = 0; width < SCAN_APART && line < of->lines; line++)                              \
            for (ptrdiff_t j = 0; j < width; j++) {                                                           \
                ptrdiff_t at = line * rows * step + j;                                                        \
                type one = x[at];                                                                             \
                int64_t place = 0;                                                                            \
                for (ptrdiff_t i = 0; i < rows; i++, at += step) {                                            \
                    place = beats(x[at], one) ? i : place;                                                    \
                    made[at] = one = beats(x[at], one) ? x[at] : one;                                         \
                    places[at] = place;                                                                       \
                }                                                                                             \
            }                                                                                                 \
        for (ptrdiff_t line = 0; width >= SCAN_APART && line < of->lines; line++) {                           \
            memcpy(best, x, (size_t)width * sizeof *x);                                                       \
            memset(found, 0, (size_t)width * sizeof *found);                                                  \
            for (ptrdiff_t i = 0; i < rows; i++, x += step, made += step, places += step)                     \
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                           \
                    const type one = x[j], before = best[j];                                                  \
                    made[j] = best[j] = beats(one, before) ? one : before;                                    \
                    places[j] = found[j] = beats(one, before) ? i : found[j];                                 \
                }                                                                                             \
        }                                                                                                     \
    }
#define NO_LESS(a, b) (((a) >= (b)) | ((a) != (a))) /* nothing follows NaN but it */
#define NO_MORE(a, b) (((a) <= (b)) | ((a) != (a)))
#define SCAN_EXTREMES(suffix, type, ...)                                                                      \
    SCAN_EXTREME(largest_##suffix, type, NO_LESS) SCAN_EXTREME(smallest_##suffix, type, NO_MORE)
REALS(SCAN_EXTREMES, )
/* Where other bytes are seen as bools, all but 0 are alike. */
#define NO_FALSER(a, b) (((a) != 0) >= ((b) != 0))
#define NO_TRUER(a, b) (((a) != 0) <= ((b) != 0))
SCAN_EXTREME(largest_bool, uint8_t, NO_FALSER)
SCAN_EXTREME(smallest_bool, uint8_t, NO_TRUER)

#define INTEGERS_OF(name)                                                                                     \
    [TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16, [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8
#define EACH(name) {[TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64, INTEGERS_OF(name)}

const scan_loops ISA(scan_loops) = {
    .sum = EACH(sum), .sum[TYPE_I64] = row_sum_i64, .sum[TYPE_F32] = row_sum_f32, .pair_sum = {pair_sum_f32, pair_sum_f64},
    .product = EACH(product),
    .largest = EACH(largest), .largest[TYPE_BOOL] = largest_bool, .smallest = EACH(smallest), .smallest[TYPE_BOOL] = smallest_bool,
};
