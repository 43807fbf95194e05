/* Sorting by the digits of unsigned keys, for items of which a key is part or all.

   From the lowest digit (Knuth, The Art of Computer Programming, vol. 3, 5.2.5): stable, and each item is read once for each
   digit; a digit that all keys share is left out. Long keys mostly differ in their highest digits, by which they are sorted first:
   a few insertions do the rest, and where they are not a few all digits do. Many items are split by their highest digit
   before: what shares it is sorted in the caches, on several threads. */
#ifndef TENSORCORE_NATIVE_RADIX_H
#define TENSORCORE_NATIVE_RADIX_H

#include "native.h"

#include <string.h>

enum {
    RADIX_FEW = 32,            /* items up to which they are inserted */
    RADIX_MANY = 1 << 12,      /* items from which on digits are wide */
    RADIX_SCATTERED = 1 << 15, /* items from which on two digits leave many of them beside each other */
    RADIX_SPLIT = 1 << 19,     /* items with keys of 64 bits from which on they are split first */
    RADIX_NARROW = 8, RADIX_WIDE = 11, /* bits of a digit */
    RADIX_COUNTS = 6 << RADIX_WIDE,    /* at least the buckets of all digits of any key */
};

/* Keys with their places. */
typedef struct {
    uint32_t key, at;
} pair_u32;

typedef struct {
    uint64_t key, at;
} pair_u64;

#define PAIR_KEY(pair) ((pair).key)

/* `counts` are RADIX_COUNTS. */
#define RADIX(sort, item, KEY, BITS)                                                                          \
    static inline __attribute__((always_inline)) item *sort##_by(item *items, item *other, npy_intp n,        \
                                                                 uint32_t *counts, uint64_t least, int low,   \
                                                                 int digits, int bits) {                      \
        const uint32_t mask = (1u << bits) - 1;                                                               \
        memset(counts, 0, ((size_t)digits << bits) * sizeof *counts);                                         \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            for (int d = 0; d < digits; d++)                                                                  \
                counts[(d << bits) + (int)((KEY(items[i]) - least) >> (low + d * bits) & mask)]++;            \
        for (int d = 0; d < digits; d++) {                                                                    \
            uint32_t *starts = counts + (d << bits), start = 0;                                               \
            if (starts[(KEY(items[0]) - least) >> (low + d * bits) & mask] == (uint32_t)n)                    \
                continue;                                                                                     \
            for (uint32_t k = 0; k <= mask; k++) {                                                            \
                const uint32_t count = starts[k];                                                             \
                starts[k] = start;                                                                            \
                start += count;                                                                               \
            }                                                                                                 \
            for (npy_intp i = 0; i < n; i++)                                                                  \
                other[starts[(KEY(items[i]) - least) >> (low + d * bits) & mask]++] = items[i];               \
            item *swap = items;                                                                               \
            items = other;                                                                                    \
            other = swap;                                                                                     \
        }                                                                                                     \
        return items;                                                                                         \
    }                                                                                                         \
                                                                                                              \
    /* Inserts each item where it belongs; false, and not all are, where that takes more than `most` steps. */\
    static bool sort##_settle(item *items, npy_intp n, npy_intp most) {                                       \
        for (npy_intp i = 1; i < n && most >= 0; i++) {                                                       \
            const item one = items[i];                                                                        \
            npy_intp at = i;                                                                                  \
            for (; at > 0 && KEY(items[at - 1]) > KEY(one); at--)                                             \
                items[at] = items[at - 1];                                                                    \
            items[at] = one;                                                                                  \
            most -= i - at;                                                                                   \
        }                                                                                                     \
        return most >= 0;                                                                                     \
    }                                                                                                         \
                                                                                                              \
    /* By the lowest `used` bits of what the keys are over `least`. */                                        \
    static item *sort##_low(item *items, item *other, npy_intp n, uint32_t *counts, uint64_t least, int used) {\
        if (n <= RADIX_FEW) {                                                                                 \
            sort##_settle(items, n, n * n);                                                                   \
            return items;                                                                                     \
        }                                                                                                     \
        const bool wide = n >= RADIX_MANY;                                                                    \
        const int bits = wide ? RADIX_WIDE : RADIX_NARROW, digits = (used + bits - 1) / bits;                 \
        const int highest = n >= RADIX_SCATTERED || (BITS > 32 && !wide && n > 512) ? 3 : 2;                  \
        if (digits > highest + 1) {                                                                           \
            const int low = used - highest * bits;                                                            \
            item *made = wide ? sort##_by(items, other, n, counts, least, low, highest, RADIX_WIDE)           \
                              : sort##_by(items, other, n, counts, least, low, highest, RADIX_NARROW);        \
            if (sort##_settle(made, n, 2 * n))                                                                \
                return made;                                                                                  \
            other = made == items ? other : items;                                                            \
            items = made;                                                                                     \
        }                                                                                                     \
        return wide ? sort##_by(items, other, n, counts, least, 0, digits, RADIX_WIDE)                        \
                    : sort##_by(items, other, n, counts, least, 0, digits, RADIX_NARROW);                     \
    }                                                                                                         \
                                                                                                              \
    typedef struct {                                                                                          \
        item *items, *other;                                                                                  \
        uint64_t least;                                                                                       \
        const uint32_t *ends;                                                                                 \
        int rest;                                                                                             \
    } sort##_split;                                                                                           \
                                                                                                              \
    /* What shares a highest digit, from one such digit to another; what is sorted lies in `other`. */        \
    static void sort##_buckets(void *context, npy_intp begin, npy_intp end) {                                 \
        const sort##_split *run = context;                                                                    \
        uint32_t counts[RADIX_COUNTS];                                                                        \
        for (; begin < end; begin++) {                                                                        \
            const uint32_t first = begin ? run->ends[begin - 1] : 0, count = run->ends[begin] - first;        \
            item *there = run->other + first;                                                                 \
            if (count && sort##_low(there, run->items + first, count, counts, run->least, run->rest) != there)\
                memcpy(there, run->items + first, count * sizeof *there);                                     \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    /* `other` has room for as many items; answers with the one of both arrays in which they lie then. */     \
    static item *sort(item *items, item *other, npy_intp n, uint32_t *counts) {                               \
        __typeof__(KEY(items[0])) least = KEY(items[0]), most = least;                                        \
        for (npy_intp i = 1; i < n; i++) {                                                                    \
            const __typeof__(least) key = KEY(items[i]);                                                      \
            least = key < least ? key : least;                                                                \
            most = key > most ? key : most;                                                                   \
        }                                                                                                     \
        const uint64_t apart = most - least;                                                                  \
        const int used = apart ? 64 - __builtin_clzll(apart) : 0, rest = used - RADIX_WIDE;                   \
        if (n < (BITS > 32 ? RADIX_SPLIT : 4 * RADIX_SPLIT) || rest <= RADIX_WIDE)                            \
            return sort##_low(items, other, n, counts, least, used);                                          \
        enum { BUCKETS = 1 << RADIX_WIDE };                                                                   \
        uint32_t ends[BUCKETS] = {0};                                                                         \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            ends[(KEY(items[i]) - least) >> rest & (BUCKETS - 1)]++;                                          \
        for (uint32_t k = 0, start = 0; k < BUCKETS; k++) {                                                   \
            const uint32_t count = ends[k];                                                                   \
            ends[k] = start;                                                                                  \
            start += count;                                                                                   \
        }                                                                                                     \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            other[ends[(KEY(items[i]) - least) >> rest & (BUCKETS - 1)]++] = items[i];                        \
        sort##_split run = {items, other, least, ends, rest};                                                 \
        native_parallel(BUCKETS, BUCKETS / 16, sort##_buckets, &run);                                         \
        return other;                                                                                         \
    }

#endif
