/* Rows beside a number for each. The last vector of a row lies over the one before it, and is read before that is written. */
#include "loop.h"

#include "../beside.h"

/* Half a line of the cache: of vectors that begin anywhere half as many cross one. */
typedef float part_f32 __attribute__((vector_size(BESIDE_VECTOR), aligned(1), may_alias));
typedef double part_f64 __attribute__((vector_size(BESIDE_VECTOR), aligned(1), may_alias));

#define BESIDE_LOOP(suffix, type, name, expression)                                                           \
    static void name##_##suffix(const char *rows, ptrdiff_t down, const char *numbers, ptrdiff_t apart, char *made, \
                                ptrdiff_t count, ptrdiff_t width) {                                           \
        const ptrdiff_t bytes = width * (ptrdiff_t)sizeof(type), end = bytes - BESIDE_VECTOR;                 \
        for (; count; count--, rows += down, numbers += apart, made += bytes) {                               \
            const part_##suffix y = *(const type *)numbers - (part_##suffix){0};                              \
            part_##suffix x = *(const part_##suffix *)(rows + end);                                           \
            const part_##suffix last = expression;                                                            \
            for (ptrdiff_t j = 0; j < end; j += BESIDE_VECTOR) {                                              \
                x = *(const part_##suffix *)(rows + j);                                                       \
                *(part_##suffix *)(made + j) = expression;                                                    \
            }                                                                                                 \
            *(part_##suffix *)(made + end) = last;                                                            \
        }                                                                                                     \
    }
FLOATS(BESIDE_LOOP, add, x + y)
FLOATS(BESIDE_LOOP, sub, x - y)
FLOATS(BESIDE_LOOP, mul, x * y)
FLOATS(BESIDE_LOOP, div, x / y)
FLOATS(BESIDE_LOOP, sub_from, y - x)
FLOATS(BESIDE_LOOP, div_into, y / x)

const beside_loops ISA(beside_loops) = {.loops = {
    [BESIDE_ADD] = {add_f32, add_f64}, [BESIDE_SUB] = {sub_f32, sub_f64}, [BESIDE_MUL] = {mul_f32, mul_f64},
    [BESIDE_DIV] = {div_f32, div_f64}, [BESIDE_SUB_FROM] = {sub_from_f32, sub_from_f64}, [BESIDE_DIV_INTO] = {div_into_f32, div_into_f64},
}};
