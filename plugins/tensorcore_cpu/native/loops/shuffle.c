/* Rows of a few elements, picked by place: by shuffles where they lie within a vector, which takes as many rows as it has room for. */
#include "loop.h"

#include "../shuffle.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Single loads and stores, of a count that is known. */
#define PICK_COUNT(type, COUNT)                                                                               \
    for (; rows > 0; rows--, from += down, to += to_down)                                                     \
        for (ptrdiff_t j = 0; j < COUNT; j++)                                                                 \
            ((type *)to)[j] = ((const type *)from)[at[j]];

#define PICK_ALONE(name, type)                                                                                \
    static void name(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, const ptrdiff_t *places, \
                     ptrdiff_t count) {                                                                       \
        ptrdiff_t at[SHUFFLED];                                                                               \
        memcpy(at, places, (size_t)count * sizeof *at);                                                       \
        switch (count) {                                                                                      \
        case 1: PICK_COUNT(type, 1) break;                                                                    \
        case 2: PICK_COUNT(type, 2) break;                                                                    \
        case 3: PICK_COUNT(type, 3) break;                                                                    \
        case 4: PICK_COUNT(type, 4) break;                                                                    \
        default: PICK_COUNT(type, count)                                                                      \
        }                                                                                                     \
    }
PICK_ALONE(alone_1, uint8_t)
PICK_ALONE(alone_2, uint16_t)
PICK_ALONE(alone_4, uint32_t)
PICK_ALONE(alone_8, uint64_t)

#ifdef __AVX2__
enum { BYTES = 16 }; /* of a vector whose bytes are shuffled */

typedef struct {
    ptrdiff_t low;     /* bytes to the first element that is picked */
    ptrdiff_t reach;   /* bytes from there to the end of the last one */
    ptrdiff_t rows;    /* in a vector; 0 where it has no room for one */
    int32_t lanes[16]; /* words, or bytes, of the source for those of the result */
} shuffled;

/* How rows go through a vector of `width` bytes, in units of 1 or 4. What is written behind a row is overwritten by the next. */
static shuffled shuffle_of(ptrdiff_t down, ptrdiff_t to_down, const ptrdiff_t *at, ptrdiff_t count, int size, int width, int unit) {
    ptrdiff_t low = at[0], high = at[0];
    for (ptrdiff_t j = 1; j < count; j++) {
        low = at[j] < low ? at[j] : low;
        high = at[j] > high ? at[j] : high;
    }
    shuffled by = {.low = low * size, .reach = (high - low + 1) * size};
    if (to_down != count * size || down <= 0 || by.reach > width || to_down > width)
        return by;
    by.rows = down % unit ? 1 : 1 + (width - by.reach) / down;
    by.rows = by.rows < width / to_down ? by.rows : width / to_down;
    for (ptrdiff_t lane = 0; lane < by.rows * to_down / unit; lane++) {
        const ptrdiff_t byte = lane * unit, row = byte / to_down, j = byte % to_down / size;
        by.lanes[lane] = (int32_t)((row * down + (at[j] - low) * size + byte % size) / unit);
    }
    return by;
}

/* How many rows may be done by whole vectors, which read and write nothing outside. */
static ptrdiff_t whole_vectors(const shuffled *by, ptrdiff_t down, ptrdiff_t to_down, ptrdiff_t rows, ptrdiff_t width) {
    const ptrdiff_t read = (rows - 1) * down + by->reach - width, written = rows * to_down - width;
    if (!by->rows || read < 0 || written < 0)
        return 0;
    const ptrdiff_t most = read / down < written / to_down ? read / down : written / to_down;
    return (most / by->rows + 1) * by->rows;
}

#define SHUFFLED_ROWS(name, alone, size, WIDTH, unit, READY, ONE)                                             \
    static void name(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, const ptrdiff_t *at, \
                     ptrdiff_t count) {                                                                       \
        const shuffled by = shuffle_of(down, to_down, at, count, size, WIDTH, unit);                          \
        const ptrdiff_t whole = whole_vectors(&by, down, to_down, rows, WIDTH);                               \
        READY;                                                                                                \
        for (ptrdiff_t i = 0; i < whole; i += by.rows) {                                                      \
            const char *source = from + by.low + i * down;                                                    \
            char *made = to + i * to_down;                                                                    \
            ONE;                                                                                              \
        }                                                                                                     \
        alone(from + whole * down, down, to + whole * to_down, to_down, rows - whole, at, count);             \
    }

#if defined(__AVX512F__)
#define WORDS const __m512i lanes = _mm512_loadu_si512(by.lanes)
#define SHUFFLE_WORDS _mm512_storeu_si512(made, _mm512_permutexvar_epi32(lanes, _mm512_loadu_si512(source)))
#else
#define WORDS const __m256i lanes = _mm256_loadu_si256((const __m256i *)by.lanes)
#define SHUFFLE_WORDS                                                                                         \
    _mm256_storeu_si256((__m256i *)made, _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)source), lanes))
#endif

#define SMALL                                                                                                 \
    int8_t small[BYTES];                                                                                      \
    for (int k = 0; k < BYTES; k++)                                                                           \
        small[k] = (int8_t)by.lanes[k];                                                                       \
    const __m128i lanes = _mm_loadu_si128((const __m128i *)small)
#define SHUFFLE_SMALL _mm_storeu_si128((__m128i *)made, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)source), lanes))

SHUFFLED_ROWS(picked_1, alone_1, 1, BYTES, 1, SMALL, SHUFFLE_SMALL)
SHUFFLED_ROWS(picked_2, alone_2, 2, BYTES, 1, SMALL, SHUFFLE_SMALL)
SHUFFLED_ROWS(picked_4, alone_4, 4, VECTOR, 4, WORDS, SHUFFLE_WORDS)
SHUFFLED_ROWS(picked_8, alone_8, 8, VECTOR, 4, WORDS, SHUFFLE_WORDS)

const shuffle_loops ISA(shuffle_loops) = {{picked_1, picked_2, picked_4, picked_8}};
#else
const shuffle_loops ISA(shuffle_loops) = {{alone_1, alone_2, alone_4, alone_8}};
#endif
