/* Loops over one dim: dense ones that become vectors, and one for any steps. */
#ifndef TENSORCORE_NATIVE_LOOP_H
#define TENSORCORE_NATIVE_LOOP_H

#include "isa.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define INDEPENDENT_FEW INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep") /* an output may be an input, element by element */
#define INDEPENDENT_FEW INDEPENDENT _Pragma("GCC unroll 1") /* which are vectors first: a loop of a few turns is unrolled before that */
#endif

/* Loops between these two words, which wait for the second cache, go by vectors of 32 bytes where there are larger ones: stores of whole
   lines took a sum of 400 kB 14 % longer on an Intel Xeon, and a ReLU 7 %. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define NARROW_VECTORS _Pragma("GCC push_options") _Pragma("GCC target(\"prefer-vector-width=256\")")
#define WIDE_VECTORS _Pragma("GCC pop_options")
#else
#define NARROW_VECTORS
#define WIDE_VECTORS
#endif

enum { LINE = 64, AHEAD = 512, FROM_AFAR = 1 << 14 }; /* bytes */

/* Statements for each i; and FROM_AFAR, with each line of what is made, the one that is written AHEAD of it is asked for: stores wait for
   their lines from the second cache otherwise, which took a sum of 400 kB 8 % longer on that Xeon. */
#define EACH_ELEMENT(result, ...) INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {__VA_ARGS__}
#define EACH_AHEAD(result, ...)                                                                               \
    const ptrdiff_t line = LINE / (ptrdiff_t)sizeof(result), ahead = AHEAD / (ptrdiff_t)sizeof(result);       \
    ptrdiff_t first = 0;                                                                                      \
    for (; count >= FROM_AFAR / LINE * line && first + line + ahead <= count; first += line) {                     \
        __builtin_prefetch(made + first + ahead, 1);                                                          \
        INDEPENDENT_FEW for (ptrdiff_t i = first; i < first + line; i++) {__VA_ARGS__}                        \
    }                                                                                                         \
    INDEPENDENT for (ptrdiff_t i = first; i < count; i++) {__VA_ARGS__}

#define AT(type, k) (*(type *)(data[k] + i * steps[k]))

/* `expression` of x, of the type `type`, gives a `result`. */
#define UNARY_LOOP(name, type, result, expression) UNARY_BY(EACH_ELEMENT, name, type, result, expression)
#define UNARY_BY(LOOP, name, type, result, expression)                                                        \
    static void name(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                            \
        if (steps[0] == sizeof(type) && steps[1] == sizeof(result)) {                                         \
            const type *a = (const type *)data[0];                                                            \
            result *made = (result *)data[1];                                                                 \
            LOOP(result, type x = a[i]; made[i] = (result)(expression);)                                      \
        } else {                                                                                              \
            for (ptrdiff_t i = 0; i < count; i++) {                                                           \
                type x = AT(const type, 0);                                                                   \
                AT(result, 1) = (result)(expression);                                                         \
            }                                                                                                 \
        }                                                                                                     \
    }

/* Of x and y: both in a row, or one of them the same throughout, a number or a row that is broadcast. */
#define BINARY_LOOP(name, type, result, expression) BINARY_BY(EACH_ELEMENT, name, type, result, expression)
#define BINARY_BY(LOOP, name, type, result, expression)                                                       \
    static void name(char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {                            \
        const type *a = (const type *)data[0], *b = (const type *)data[1];                                    \
        result *made = (result *)data[2];                                                                     \
        const ptrdiff_t size = sizeof(type);                                                                  \
        bool dense = steps[2] == sizeof(result);                                                              \
        if (dense && steps[0] == size && steps[1] == size) {                                                  \
            LOOP(result, type x = a[i], y = b[i]; made[i] = (result)(expression);)                            \
        } else if (dense && steps[0] == size && steps[1] == 0) {                                              \
            type y = *b;                                                                                      \
            LOOP(result, type x = a[i]; made[i] = (result)(expression);)                                      \
        } else if (dense && steps[0] == 0 && steps[1] == size) {                                              \
            type x = *a;                                                                                      \
            LOOP(result, type y = b[i]; made[i] = (result)(expression);)                                      \
        } else {                                                                                              \
            for (ptrdiff_t i = 0; i < count; i++) {                                                           \
                type x = AT(const type, 0), y = AT(const type, 1);                                            \
                AT(result, 2) = (result)(expression);                                                         \
            }                                                                                                 \
        }                                                                                                     \
    }

/* Of two floats each, by a function of rows; what does not lie in a row is copied there, a number once. */
enum { ROW_PIECE = 512 };
ALWAYS_INLINE void loop_of_rows(char *const *data, const ptrdiff_t *steps, ptrdiff_t count,
                                void (*of_row)(const float *x, const float *y, float *made, ptrdiff_t count)) {
    float space[3][ROW_PIECE], *rows[3];
    for (ptrdiff_t begin = 0; begin < count; begin += ROW_PIECE) {
        const ptrdiff_t piece = count - begin < ROW_PIECE ? count - begin : ROW_PIECE;
        for (int k = 0; k < 3; k++) {
            char *at = data[k] + begin * steps[k];
            rows[k] = steps[k] == sizeof(float) ? (float *)at : space[k];
            if (k < 2 && rows[k] == space[k] && (steps[k] || !begin))
                for (ptrdiff_t i = 0; i < piece; i++)
                    space[k][i] = *(const float *)(at + i * steps[k]);
        }
        of_row(rows[0], rows[1], rows[2], piece);
        for (ptrdiff_t i = 0; rows[2] == space[2] && i < piece; i++)
            *(float *)(data[2] + (begin + i) * steps[2]) = rows[2][i];
    }
}

/* X(suffix, type, ...) for the types of a kind. */
#define FLOATS(X, ...) X(f32, float, __VA_ARGS__) X(f64, double, __VA_ARGS__)
#define INTEGERS(X, ...)                                                                                      \
    X(i8, int8_t, __VA_ARGS__) X(i16, int16_t, __VA_ARGS__) X(i32, int32_t, __VA_ARGS__)                      \
    X(i64, int64_t, __VA_ARGS__) X(u8, uint8_t, __VA_ARGS__)
#define REALS(X, ...) FLOATS(X, __VA_ARGS__) INTEGERS(X, __VA_ARGS__)

#endif
