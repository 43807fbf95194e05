/* Sorting by the digits of unsigned keys, for items of which a key is part or all.

   Many items are split by the highest digit in which their keys differ, on several threads, and what shares it is sorted in the
   caches. Few go digit by digit from the lowest one (Knuth, The Art of Computer Programming, vol. 3, 5.2.5): stable, and each item
   is read once for each digit; a digit that all keys share is left out. Long keys mostly differ in their highest digits, by which
   they are sorted first: a few insertions do the rest, and where they are not a few, what shares these digits is sorted for itself. */
#ifndef TENSORCORE_NATIVE_RADIX_H
#define TENSORCORE_NATIVE_RADIX_H

#include "native.h"

#include <string.h>

enum {
    RADIX_FEW = 32,          /* items up to which they are inserted */
    RADIX_MANY = 1 << 12,    /* items from which on digits are wide */
    RADIX_SHARED = 1 << 17,  /* items from which on threads that are free share them */
    RADIX_SPLIT = 1 << 19,   /* items from which on they are split first: both arrays are more than the caches hold */
    RADIX_NARROW = 8, RADIX_WIDE = 11, /* bits of a digit */
    RADIX_COUNTS = 6 << RADIX_WIDE,    /* at least the buckets of all digits of any key */
    RADIX_BUCKET = 1 << 10, /* items of one that many are split into, */
    RADIX_BUCKETS = 1 << 9, /* where these are no more: as many lines as the first cache has */
    RADIX_PARTS = 16,       /* of the items that threads split, at most */
    RADIX_PIECE = 256,      /* items that are made at a time */
};

/* Keys with their places. */
typedef struct {
    uint32_t key, at;
} pair_u32;

typedef struct {
    uint64_t key, at;
} pair_u64;

#define PAIR_KEY(pair) ((pair).key)

/* How many of the lowest bits a number up to `apart` needs. */
static inline int radix_used(uint64_t apart) { return apart ? 64 - __builtin_clzll(apart) : 0; }

/* How many of the lowest `used` bits are left where so many items are split. */
static inline int radix_rest(npy_intp n, int used) {
    const int few = radix_used((uint64_t)n / RADIX_BUCKET), most = radix_used(RADIX_BUCKETS - 1), bits = few < most ? few : most;
    return used < bits ? 0 : used - bits;
}

/* Counts become the places where each part's items of a bucket begin, one part's behind those of the part before. */
static inline void radix_starts(uint32_t (*counts)[RADIX_BUCKETS], npy_intp parts, uint32_t *buckets) {
    uint32_t start = 0;
    for (int k = 0; k < RADIX_BUCKETS; k++) {
        buckets[k] = start;
        for (npy_intp part = 0; part < parts; part++) {
            const uint32_t count = counts[part][k];
            counts[part][k] = start;
            start += count;
        }
    }
    buckets[RADIX_BUCKETS] = start;
}

/* EACH, a statement about count items of each `part` from begin to end, a piece at a time. */
#define RADIX_EACH(item, EACH)                                                                                \
    for (npy_intp part = begin; part < end; part++)                                                           \
        for (npy_intp at = run->task->n * part / run->parts, last = run->task->n * (part + 1) / run->parts; at < last; at += RADIX_PIECE) { \
            const npy_intp count = last - at < RADIX_PIECE ? last - at : RADIX_PIECE;                         \
            item items[RADIX_PIECE];                                                                          \
            run->task->make(run->task->of, at, at + count, items);                                            \
            EACH;                                                                                             \
        }

#define RADIX(sort, item, KEY, BITS)                                                                          \
    typedef uint##BITS##_t sort##_key;                                                                        \
                                                                                                              \
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
    /* Inserts each item where it belongs; false, and not all are, where that takes more than `most` steps. */ \
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
    static item *sort##_here(item *items, item *other, npy_intp n, uint32_t *counts);                         \
                                                                                                              \
    /* By the lowest `used` bits of what the keys are over `least`. */                                        \
    static item *sort##_few(item *items, item *other, npy_intp n, uint32_t *counts, uint64_t least, int used) { \
        if (n <= RADIX_FEW) {                                                                                 \
            sort##_settle(items, n, n * n);                                                                   \
            return items;                                                                                     \
        }                                                                                                     \
        const bool wide = n >= RADIX_MANY;                                                                    \
        const int bits = wide ? RADIX_WIDE : RADIX_NARROW, digits = (used + bits - 1) / bits, some = digits > 3 ? 2 : digits; \
        const int low = some < digits ? used - some * bits : 0;                                               \
        item *made = wide ? sort##_by(items, other, n, counts, least, low, some, RADIX_WIDE)                  \
                          : sort##_by(items, other, n, counts, least, low, some, RADIX_NARROW);               \
        if (some == digits || sort##_settle(made, n, 2 * n))                                                  \
            return made;                                                                                      \
        other = made == items ? other : items;                                                                \
        for (npy_intp first = 0, last; first < n; first = last) {                                             \
            const uint64_t top = (KEY(made[first]) - least) >> low;                                           \
            for (last = first + 1; last < n && (KEY(made[last]) - least) >> low == top; last++)               \
                continue;                                                                                     \
            item *there = made + first;                                                                       \
            if (last - first > 1 && sort##_here(there, other + first, last - first, counts) != there)         \
                memcpy(there, other + first, (size_t)(last - first) * sizeof *there);                         \
        }                                                                                                     \
        return made;                                                                                          \
    }                                                                                                         \
                                                                                                              \
    static void sort##_extremes(const item *items, npy_intp n, sort##_key *least, sort##_key *most) {         \
        sort##_key low = *least, high = *most;                                                                \
        for (npy_intp i = 0; i < n; i++) {                                                                    \
            const sort##_key key = KEY(items[i]);                                                             \
            low = key < low ? key : low;                                                                      \
            high = key > high ? key : high;                                                                   \
        }                                                                                                     \
        *least = low;                                                                                         \
        *most = high;                                                                                         \
    }                                                                                                         \
                                                                                                              \
    /* `other` has room for as many items, and counts are RADIX_COUNTS; answers with the one of both in which they lie then. */ \
    static item *sort##_here(item *items, item *other, npy_intp n, uint32_t *counts) {                        \
        sort##_key least = KEY(items[0]), most = least;                                                       \
        sort##_extremes(items, n, &least, &most);                                                             \
        const int used = radix_used(most - least), rest = radix_rest(n, used);                                \
        if (n < RADIX_SPLIT || !rest)                                                                         \
            return sort##_few(items, other, n, counts, least, used);                                          \
        uint32_t starts[1][RADIX_BUCKETS] = {{0}}, buckets[RADIX_BUCKETS + 1];                                \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            starts[0][(KEY(items[i]) - least) >> rest]++;                                                     \
        radix_starts(starts, 1, buckets);                                                                     \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            other[starts[0][(KEY(items[i]) - least) >> rest]++] = items[i];                                   \
        for (int k = 0; k < RADIX_BUCKETS; k++) {                                                             \
            const uint32_t first = buckets[k], count = buckets[k + 1] - first;                                \
            item *there = other + first;                                                                      \
            if (count > 1 && sort##_here(there, items + first, count, counts) != there)                       \
                memcpy(there, items + first, count * sizeof *there);                                          \
        }                                                                                                     \
        return other;                                                                                         \
    }                                                                                                         \
                                                                                                              \
    /* What is sorted: items that `make` makes, more than once, and that `take` gets in their order; each is called for some of them, \
       from any thread. */                                                                                    \
    typedef struct {                                                                                          \
        npy_intp n;                                                                                           \
        bool alone; /* no other thread is busy with the like */                                               \
        void (*make)(const void *of, npy_intp begin, npy_intp end, item *made);                               \
        void (*take)(const void *of, npy_intp first, npy_intp count, const item *sorted);                     \
        const void *of;                                                                                       \
    } sort##_task;                                                                                            \
                                                                                                              \
    typedef struct {                                                                                          \
        const sort##_task *task;                                                                              \
        item *items, *other;                                                                                  \
        npy_intp parts;                                                                                       \
        sort##_key least[RADIX_PARTS], most[RADIX_PARTS];                                                     \
        int rest;                                                                                             \
        uint32_t starts[RADIX_PARTS][RADIX_BUCKETS], buckets[RADIX_BUCKETS + 1];                              \
    } sort##_split;                                                                                           \
                                                                                                              \
    static void sort##_bounds(void *context, npy_intp begin, npy_intp end) {                                  \
        sort##_split *run = context;                                                                          \
        RADIX_EACH(item, sort##_extremes(items, count, &run->least[part], &run->most[part]))                  \
    }                                                                                                         \
                                                                                                              \
    static void sort##_count(void *context, npy_intp begin, npy_intp end) {                                   \
        sort##_split *run = context;                                                                          \
        const sort##_key least = run->least[0];                                                               \
        const int rest = run->rest;                                                                           \
        RADIX_EACH(item, for (npy_intp i = 0; i < count; i++) run->starts[part][(KEY(items[i]) - least) >> rest]++) \
    }                                                                                                         \
                                                                                                              \
    static void sort##_scatter(void *context, npy_intp begin, npy_intp end) {                                 \
        sort##_split *run = context;                                                                          \
        const sort##_key least = run->least[0];                                                               \
        const int rest = run->rest;                                                                           \
        RADIX_EACH(item, for (npy_intp i = 0; i < count; i++)                                                 \
                             run->other[run->starts[part][(KEY(items[i]) - least) >> rest]++] = items[i])     \
    }                                                                                                         \
                                                                                                              \
    static void sort##_buckets(void *context, npy_intp begin, npy_intp end) {                                 \
        const sort##_split *run = context;                                                                    \
        uint32_t counts[RADIX_COUNTS];                                                                        \
        for (; begin < end; begin++) {                                                                        \
            const uint32_t first = run->buckets[begin], count = run->buckets[begin + 1] - first;              \
            if (count)                                                                                        \
                run->task->take(run->task->of, first, count,                                                  \
                                sort##_here(run->other + first, run->items + first, count, counts));          \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    /* With room for twice as many items and RADIX_COUNTS. */                                                 \
    static void sort(const sort##_task *task, item *items, uint32_t *counts) {                                \
        const npy_intp n = task->n;                                                                           \
        const npy_intp least = task->alone && native_threads() > 1 ? RADIX_SHARED : RADIX_SPLIT;              \
        sort##_split *run = n < least ? NULL : native_scratch(sizeof *run);                                   \
        if (!run) { /* or no memory for it */                                                                 \
            task->make(task->of, 0, n, items);                                                                \
            task->take(task->of, 0, n, sort##_here(items, items + n, n, counts));                             \
            return;                                                                                           \
        }                                                                                                     \
        run->task = task;                                                                                     \
        run->items = items;                                                                                   \
        run->other = items + n;                                                                               \
        run->parts = native_threads() < RADIX_PARTS ? native_threads() : RADIX_PARTS;                         \
        memset(run->least, -1, sizeof run->least);                                                            \
        memset(run->most, 0, sizeof run->most);                                                               \
        native_parallel(run->parts, 1, sort##_bounds, run);                                                   \
        for (npy_intp part = 1; part < run->parts; part++) {                                                  \
            *run->least = run->least[part] < *run->least ? run->least[part] : *run->least;                    \
            *run->most = run->most[part] > *run->most ? run->most[part] : *run->most;                         \
        }                                                                                                     \
        const int used = radix_used(*run->most - *run->least);                                                \
        run->rest = radix_rest(n, used);                                                                      \
        memset(run->starts, 0, (size_t)run->parts * sizeof *run->starts);                                     \
        native_parallel(run->parts, 1, sort##_count, run);                                                    \
        radix_starts(run->starts, run->parts, run->buckets);                                                  \
        native_parallel(run->parts, 1, sort##_scatter, run);                                                  \
        native_parallel(RADIX_BUCKETS, RADIX_BUCKETS / 32, sort##_buckets, run);                              \
        native_scratch_free(run, sizeof *run);                                                                \
    }

#endif
