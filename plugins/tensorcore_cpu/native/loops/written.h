/* What a generated file begins with (written.py of the plugin): loads, stores, and ops on vectors under the names of the elementwise
   family's. A group of ops goes over a tile of vectors at a time and keeps all values in registers.

   A value of a half type is a float that such a half can hold; a bool is a mask, each of whose lanes has all bits or none. */
#ifndef TENSORCORE_NATIVE_WRITTEN_H
#define TENSORCORE_NATIVE_WRITTEN_H

#include "functions.h"
#include "half.h"
#include "loop.h"
#include "vector_ops.h"
#include "wide.h"

#include "../chain.h"

#include <string.h>

/* Vectors of a tile, and those that a function works on side by side: with tiles of 4 functions one after the other took a tenth longer on
   a Zen 4, with 4 at a time a twentieth. */
enum { WRITTEN_TILE = 8, WRITTEN_SIDE = 2 };
#define TILED _Pragma("GCC unroll 8") for (int k = 0; k < vectors; k++)

/* Between two ops, so that the compiler does not make one instruction, and one rounding, of both. */
#if defined(__AVX512F__)
#define SEAL(x) __asm__("" : "+v"(x))
#elif defined(NATIVE_X86)
#define SEAL(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define SEAL(x) __asm__("" : "+w"(x))
#else
#define SEAL(x) __asm__("" : "+m"(x))
#endif

typedef uint8_t bytes_f32 __attribute__((vector_size(VECTOR / 4), aligned(1), may_alias));
typedef uint8_t bytes_f64 __attribute__((vector_size(VECTOR / 8), aligned(1), may_alias));

#include "as_f32.h"
#ifdef __AVX512F__
#define WIDE_FUNCTIONS
#endif
#include "written_of_real.h"
#include "as_f64.h"
#include "written_of_real.h"

/* Halves beside floats */

ALWAYS_INLINE vf load_bf16_f32(const char *from, int k) { return (vf)(__builtin_convertvector(((const vh_u *)from)[k], vu) << 16); }
ALWAYS_INLINE vf load_f16_f32(const char *from, int k) { return f16_load(from + k * (VECTOR / 2)); }
ALWAYS_INLINE vf number_bf16_f32(const char *from) { return bf16_value(*(const uint16_t *)from) - (vf){0}; }
ALWAYS_INLINE vf number_f16_f32(const char *from) { return f16_value(*(const uint16_t *)from) - (vf){0}; }
ALWAYS_INLINE void store_bf16_f32(char *to, int k, vf x) { ((vh_u *)to)[k] = __builtin_convertvector((vu)x >> 16, vh_u); }
ALWAYS_INLINE void store_f16_f32(char *to, int k, vf x) { f16_store(to + k * (VECTOR / 2), x); }
ALWAYS_INLINE vf to_bf16_f32(vf x) { return (vf)(bf16_rounded(x) & 0xffff0000); }
ALWAYS_INLINE vf to_f16_f32(vf x) {
    char halves[VECTOR / 2];
    f16_store(halves, x);
    return f16_load(halves);
}

/* Runs */

/* So many vectors, a constant where it is called, from element i on; of an operand that is one number `moves` is 0. */
typedef void written_part(const char *const *operands, const ptrdiff_t *moves, char *const *places, ptrdiff_t i, int vectors);

typedef struct {
    _Alignas(64) char space[CHAIN_OPERANDS][WRITTEN_TILE * VECTOR], out[CHAIN_OPERANDS][VECTOR];
    const char *at[CHAIN_OPERANDS];
    char *into[CHAIN_OPERANDS];
    ptrdiff_t moves[CHAIN_OPERANDS];
} written_room;

/* Operands and places as a part takes them: an operand that is the same in every place is written out for a tile. Of one whose bytes
   are 0 the part reads a number. */
static __attribute__((noinline)) void written_begin(written_room *room, const char *const *from, const ptrdiff_t *steps, const unsigned char *read,
                                                    int operands, char *const *to, int places, int lanes) {
    for (int k = 0; k < operands; k++) {
        const bool spread = !steps[k] && read[k];
        room->at[k] = spread ? room->space[k] : from[k];
        room->moves[k] = steps[k] ? -1 : 0;
        for (int n = 0; spread && n < WRITTEN_TILE * lanes; n++)
            memcpy(room->space[k] + n * read[k], from[k], read[k]);
    }
    for (int k = 0; k < places; k++)
        room->into[k] = to[k];
}

/* The last elements, from i on, in vectors of their own. */
static __attribute__((noinline)) void written_rest(written_room *room, written_part *one, const unsigned char *read, int operands,
                                                   const unsigned char *made, int places, ptrdiff_t i, size_t rest) {
    for (int k = 0; k < operands; k++)
        if (room->moves[k]) {
            memset(room->space[k], 0, VECTOR);
            memcpy(room->space[k], room->at[k] + i * read[k], rest * read[k]);
            room->at[k] = room->space[k];
        }
    char *to[CHAIN_OPERANDS];
    for (int k = 0; k < places; k++) {
        to[k] = room->into[k] + i * made[k];
        room->into[k] = room->out[k];
    }
    one(room->at, room->moves, room->into, 0, 1);
    for (int k = 0; k < places; k++)
        memcpy(to[k], room->out[k], rest * made[k]);
}

/* The function `name` over all elements, with the signature that fused.h says; `read` and `made` are the bytes of an element of each
   operand and place. */
#define WRITTEN(name, lanes, operands, read, places, made)                                                    \
    static __attribute__((noinline)) void name##_one(const char *const *at, const ptrdiff_t *moves, char *const *into, \
                                                     ptrdiff_t i, int vectors) {                              \
        name##_part(at, moves, into, i, 1);                                                                   \
    }                                                                                                         \
    __attribute__((visibility("default"))) void name(const char *const *from, const ptrdiff_t *steps, char *const *to, \
                                                     ptrdiff_t size) {                                        \
        static const unsigned char bytes_read[] = read, bytes_made[] = made;                                  \
        written_room room;                                                                                    \
        written_begin(&room, from, steps, bytes_read, operands, to, places, lanes);                           \
        ptrdiff_t i = 0;                                                                                      \
        for (; size - i >= WRITTEN_TILE * lanes; i += WRITTEN_TILE * lanes)                                   \
            name##_part(room.at, room.moves, room.into, i, WRITTEN_TILE);                                     \
        for (; size - i >= lanes; i += lanes)                                                                 \
            name##_one(room.at, room.moves, room.into, i, 1);                                                 \
        if (i < size)                                                                                         \
            written_rest(&room, name##_one, bytes_read, operands, bytes_made, places, i, (size_t)(size - i)); \
    }
#define LIST(...) {__VA_ARGS__}

#endif
