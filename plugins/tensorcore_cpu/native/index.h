/* Picks by number: what each instruction set does for index_select and gather. */
#ifndef TENSORCORE_NATIVE_INDEX_H
#define TENSORCORE_NATIVE_INDEX_H

#include "types.h"

/* Whether a row of so many bytes at `data` can be read as one element of 1, 2, 4 or 8 bytes. */
static inline bool is_element(const char *data, ptrdiff_t bytes) {
    return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && !((uintptr_t)data & (uintptr_t)(bytes - 1));
}

typedef struct {
    const char *data;
    const int64_t *index;
    char *made;
    ptrdiff_t outer, size, count, inner; /* of the source: outer x size x inner; of the result: outer x count x inner */
    int element;                         /* bytes */
    bool one;                            /* `data` is a single value */
} picked;

/* Rows of `inner` real numbers added up: made[outer, index[i]] += data[outer, i], where made has `size` rows. */
typedef picked added;

typedef struct {
    /* Whether all of the numbers are at least 0 and under `size`. */
    bool (*inside)(const int64_t *index, ptrdiff_t count, ptrdiff_t size);
    /* at[i] = at[i] * size + index[i], without what stood there for the first dim; numbers below 0 count from the end. False where
       one is outside of `size`. */
    bool (*add_places)(int64_t *at, ptrdiff_t count, const int64_t *index, ptrdiff_t size, bool first);
    /* made[i * parts + k] = data[k][i] for i from `begin` to `end`; elements of so many bytes. */
    void (*weave)(const char *const *data, int parts, ptrdiff_t element, char *made, ptrdiff_t begin, ptrdiff_t end);
    /* Whole rows of the source, as rows of the result from `begin` to `end`; the numbers are inside. */
    void (*select_rows)(const picked *job, ptrdiff_t begin, ptrdiff_t end);
    /* Rows of `inner` elements with a number each; along the last dim, of `count` elements with a number each. They stop
       and answer false at numbers that are not inside. */
    bool (*gather_rows)(const picked *job, ptrdiff_t begin, ptrdiff_t end);
    bool (*gather_along)(const picked *job, ptrdiff_t begin, ptrdiff_t end);
    /* The other way round: rows of `count` elements to their numbers in rows of `size`; what stood before has been written. */
    bool (*scatter_along)(const picked *job, ptrdiff_t begin, ptrdiff_t end);
    /* One value of `size` bytes, up to 16, for the elements from `begin` to `end`. */
    void (*fill)(char *to, const char *value, int size, ptrdiff_t begin, ptrdiff_t end);
    /* For `outer` from `begin` to `end`: float, double. */
    void (*add_rows[2])(const added *job, ptrdiff_t begin, ptrdiff_t end);
} index_loops;

#endif
