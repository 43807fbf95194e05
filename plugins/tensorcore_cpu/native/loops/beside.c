/* Rows beside a number for each, or beside other rows. The last vector of a row lies over the one before it, and is read before that is written. */
#include "loop.h"

#include "../beside.h"

/* Half a line of the cache: of vectors that begin anywhere half as many cross one. */
typedef float part_f32 __attribute__((vector_size(BESIDE_VECTOR), aligned(1), may_alias));
typedef double part_f64 __attribute__((vector_size(BESIDE_VECTOR), aligned(1), may_alias));

#define BESIDE_LOOP(suffix, type, name, expression)                                                           \
    ALWAYS_INLINE void run_##name##_##suffix(const char *rows, ptrdiff_t down, const char *others, ptrdiff_t apart, char *made, \
                                             ptrdiff_t count, ptrdiff_t width, bool numbers) {                \
        const ptrdiff_t bytes = width * (ptrdiff_t)sizeof(type), end = bytes - BESIDE_VECTOR;                 \
        for (; count; count--, rows += down, others += apart, made += bytes) {                                \
            const part_##suffix number = *(const type *)others - (part_##suffix){0};                          \
            part_##suffix x = *(const part_##suffix *)(rows + end);                                           \
            part_##suffix y = numbers ? number : *(const part_##suffix *)(others + end);                      \
            const part_##suffix last = expression;                                                            \
            for (ptrdiff_t j = 0; j < end; j += BESIDE_VECTOR) {                                              \
                x = *(const part_##suffix *)(rows + j);                                                       \
                y = numbers ? number : *(const part_##suffix *)(others + j);                                  \
                *(part_##suffix *)(made + j) = expression;                                                    \
            }                                                                                                 \
            *(part_##suffix *)(made + end) = last;                                                            \
        }                                                                                                     \
    }                                                                                                         \
    static void name##_numbers_##suffix(const char *rows, ptrdiff_t down, const char *others, ptrdiff_t apart, char *made, \
                                        ptrdiff_t count, ptrdiff_t width) {                                   \
        run_##name##_##suffix(rows, down, others, apart, made, count, width, true);                           \
    }                                                                                                         \
    static void name##_rows_##suffix(const char *rows, ptrdiff_t down, const char *others, ptrdiff_t apart, char *made, \
                                     ptrdiff_t count, ptrdiff_t width) {                                      \
        run_##name##_##suffix(rows, down, others, apart, made, count, width, false);                          \
    }
FLOATS(BESIDE_LOOP, add, x + y)
FLOATS(BESIDE_LOOP, sub, x - y)
FLOATS(BESIDE_LOOP, mul, x * y)
FLOATS(BESIDE_LOOP, div, x / y)
FLOATS(BESIDE_LOOP, sub_from, y - x)
FLOATS(BESIDE_LOOP, div_into, y / x)

#define BESIDE_OP(name) {.numbers = {name##_numbers_f32, name##_numbers_f64}, .rows = {name##_rows_f32, name##_rows_f64}}

const beside_loops ISA(beside_loops) = {.ops = {
    [BESIDE_ADD] = BESIDE_OP(add), [BESIDE_SUB] = BESIDE_OP(sub), [BESIDE_MUL] = BESIDE_OP(mul), [BESIDE_DIV] = BESIDE_OP(div),
    [BESIDE_SUB_FROM] = BESIDE_OP(sub_from), [BESIDE_DIV_INTO] = BESIDE_OP(div_into),
}};
