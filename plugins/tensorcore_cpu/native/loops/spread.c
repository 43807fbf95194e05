/* Short rows by whole vectors. The last one of a row lies over the one before it; one that is longer than the row goes on into the
   next row, which is written after it. */
#include "loop.h"
#include "whole.h"

#include "../spread.h"

#include <string.h>

/* Not wider: of stores that begin anywhere half as many cross a line of the cache, and a Zen 4 makes two of one of 64 bytes. */
enum { WIDTH = VECTOR < SPREAD_VECTOR ? VECTOR : SPREAD_VECTOR };

/* Rows of one move, or of two, the second up to the end: what both have is copied twice. */
#define ONE_MOVE(size)                                                                                        \
    for (; rows; rows--, from += down, to += to_down)                                                         \
        memcpy(to, from, size);

#define TWO_MOVES(size)                                                                                       \
    for (; rows > 0; rows--, from += down, to += to_down) {                                                   \
        char first[size], last[size];                                                                         \
        memcpy(first, from, size);                                                                            \
        memcpy(last, from + bytes - (size), size);                                                            \
        memcpy(to, first, size);                                                                              \
        memcpy(to + bytes - (size), last, size);                                                              \
        if (lies_behind) /* but for the last row one move that goes on into the next row, which is written after it */ \
            for (; rows > 2; rows--)                                                                          \
                memcpy(to += to_down, from += down, 2 * (size));                                              \
    }

enum { LONG_ROW = 2048 }; /* bytes from which on the start of memcpy does not count */

static void copy_rows(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, ptrdiff_t bytes) {
    const bool lies_behind = to_down == bytes && (down >= bytes || down <= -bytes);
    if (down == bytes && to_down == bytes) {
        copy_whole(from, to, rows * bytes);
    } else if (bytes <= 16) {
        switch (bytes) {
        case 1: ONE_MOVE(1) break;
        case 2: ONE_MOVE(2) break;
        case 3: TWO_MOVES(2) break;
        case 4: ONE_MOVE(4) break;
        case 8: ONE_MOVE(8) break;
        case 16: ONE_MOVE(16) break;
        default:
            if (bytes < 8)
                TWO_MOVES(4)
            else
                TWO_MOVES(8)
        }
    } else if (bytes == 32) {
        ONE_MOVE(32)
    } else if (bytes < 32) {
        TWO_MOVES(16)
    } else if (bytes <= 64) {
        TWO_MOVES(32)
    } else if (bytes <= 128) {
        TWO_MOVES(64)
    } else if (bytes < LONG_ROW) {
        for (; rows; rows--, from += down, to += to_down) {
            typedef int64_t part __attribute__((vector_size(32), aligned(1), may_alias));
            const part last = *(const part *)(from + bytes - 32);
            ptrdiff_t j = 0;
            for (; j + 64 <= bytes; j += 64) {
                const part low = *(const part *)(from + j), high = *(const part *)(from + j + 32);
                *(part *)(to + j) = low;
                *(part *)(to + j + 32) = high;
            }
            if (j + 32 <= bytes)
                *(part *)(to + j) = *(const part *)(from + j);
            *(part *)(to + bytes - 32) = last;
        }
    } else {
        for (; rows; rows--, from += down, to += to_down)
            memcpy(to, from, (size_t)bytes);
    }
}

#define SPREAD(name, type)                                                                                    \
    typedef type name##_vector __attribute__((vector_size(WIDTH), aligned(1), may_alias));                    \
    ALWAYS_INLINE void name##_row(char *to, ptrdiff_t bytes, name##_vector all) {                             \
        for (ptrdiff_t j = 0; j < bytes - WIDTH; j += WIDTH)                                                  \
            *(name##_vector *)(to + j) = all;                                                                 \
        *(name##_vector *)(to + bytes - WIDTH) = all;                                                         \
    }                                                                                                         \
    static void name(const char *from, ptrdiff_t down, ptrdiff_t along, char *to, ptrdiff_t to_down, ptrdiff_t rows, \
                     ptrdiff_t width) {                                                                       \
        const ptrdiff_t bytes = width * (ptrdiff_t)sizeof(type);                                              \
        if (along)                                                                                            \
            copy_rows(from, down, to, to_down, rows, bytes);                                                  \
        else if (bytes <= WIDTH)                                                                              \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                *(name##_vector *)(to + i * to_down) = (name##_vector){0} + *(const type *)(from + i * down); \
        else                                                                                                  \
            for (ptrdiff_t i = 0; i < rows; i++)                                                              \
                name##_row(to + i * to_down, bytes, (name##_vector){0} + *(const type *)(from + i * down));   \
    }

SPREAD(spread_8, uint8_t)
SPREAD(spread_16, uint16_t)
SPREAD(spread_32, uint32_t)
SPREAD(spread_64, uint64_t)

static void keep(const char *from, const char *mask, char *to, ptrdiff_t bytes) {
    INDEPENDENT for (ptrdiff_t i = 0; i < bytes; i++)
        to[i] = from[i] & mask[i];
}

const spread_loops ISA(spread_loops) = {{spread_8, spread_16, spread_32, spread_64}, copy_rows, keep};
