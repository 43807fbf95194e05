/* Short rows by whole vectors. The last one of a row lies over the one before it; one that is longer than the row goes on into the
   next row, which is written after it. */
#include "loop.h"

#include "../spread.h"

#include <string.h>

/* Not wider: of stores that begin anywhere half as many cross a line of the cache, and a Zen 4 makes two of one of 64 bytes. */
enum { WIDTH = VECTOR < SPREAD_VECTOR ? VECTOR : SPREAD_VECTOR };

#define SPREAD(name, type)                                                                                    \
    typedef type name##_vector __attribute__((vector_size(WIDTH), aligned(1), may_alias));                    \
    ALWAYS_INLINE void name##_row(char *to, ptrdiff_t bytes, name##_vector all) {                             \
        for (ptrdiff_t j = 0; j < bytes - WIDTH; j += WIDTH)                                                  \
            *(name##_vector *)(to + j) = all;                                                                 \
        *(name##_vector *)(to + bytes - WIDTH) = all;                                                         \
    }                                                                                                         \
    ALWAYS_INLINE void name##_copy(const char *from, char *to, ptrdiff_t bytes) {                             \
        const ptrdiff_t rest = bytes - WIDTH;                                                                 \
        for (ptrdiff_t j = 0; j < rest; j += WIDTH)                                                           \
            *(name##_vector *)(to + j) = *(const name##_vector *)(from + j);                                  \
        *(name##_vector *)(to + rest) = *(const name##_vector *)(from + rest);                                \
    }                                                                                                         \
    static void name(const char *from, ptrdiff_t down, ptrdiff_t along, const char *end, char *to, ptrdiff_t to_down, \
                     ptrdiff_t rows, ptrdiff_t width) {                                                       \
        const ptrdiff_t bytes = width * (ptrdiff_t)sizeof(type);                                              \
        char space[WIDTH];                                                                                    \
        if (along && !down && bytes < WIDTH) { /* one row for all, behind which there may be nothing to read */ \
            memcpy(space, from, (size_t)bytes);                                                               \
            from = space;                                                                                     \
            end = space + WIDTH;                                                                              \
        }                                                                                                     \
        if (!along && bytes <= WIDTH) {                                                                       \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                *(name##_vector *)(to + i * to_down) = (name##_vector){0} + *(const type *)(from + i * down); \
        } else if (!along) {                                                                                  \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                name##_row(to + i * to_down, bytes, (name##_vector){0} + *(const type *)(from + i * down));   \
        } else if (bytes >= WIDTH) {                                                                          \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                name##_copy(from + i * down, to + i * to_down, bytes);                                        \
        } else {                                                                                              \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                if (end - (from + i * down) >= WIDTH)                                                         \
                    *(name##_vector *)(to + i * to_down) = *(const name##_vector *)(from + i * down);         \
                else                                                                                          \
                    memcpy(to + i * to_down, from + i * down, (size_t)bytes);                                 \
        }                                                                                                     \
    }

SPREAD(spread_8, uint8_t)
SPREAD(spread_16, uint16_t)
SPREAD(spread_32, uint32_t)
SPREAD(spread_64, uint64_t)

const spread_loops ISA(spread_loops) = {{spread_8, spread_16, spread_32, spread_64}};
