/* Picks by number. */
#include "loop.h"

#include "../index.h"

#include <string.h>

static bool inside(const int64_t *index, ptrdiff_t count, ptrdiff_t size) {
    int64_t outside = 0; /* negative as soon as a number or what it lacks to the last place is */
    for (ptrdiff_t i = 0; i < count; i++)
        outside |= index[i] | (size - 1 - index[i]);
    return outside >= 0;
}

static bool add_places(int64_t *at, ptrdiff_t count, const int64_t *index, ptrdiff_t size, bool first) {
    int64_t outside = 0;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const int64_t one = index[i] + (index[i] < 0 ? size : 0);
        outside |= one | (size - 1 - one);
        at[i] = first ? one : (int64_t)((uint64_t)at[i] * (uint64_t)size) + one; /* what is outside may be too large */
    }
    return outside >= 0;
}

/* Rows of one element: a run of them for each row around, for four rows at a time where a number is worth as much as that. */
#define EACH(type)                                                                                             \
    while (begin < end) {                                                                                      \
        const ptrdiff_t outer = begin / job->count, at = begin % job->count;                                   \
        const type *from = (const type *)job->data + outer * job->size;                                        \
        type *to = (type *)job->made + begin;                                                                  \
        const int64_t *index = job->index + at;                                                                \
        const ptrdiff_t count = job->count - at < end - begin ? job->count - at : end - begin;                 \
        if (!at && end - begin >= 4 * count) {                                                                 \
            const ptrdiff_t size = job->size;                                                                  \
            for (ptrdiff_t i = 0; i < count; i++) {                                                            \
                const type *one = from + index[i];                                                             \
                const type a = one[0], b = one[size], c = one[2 * size], d = one[3 * size];                    \
                to[i] = a;                                                                                     \
                to[i + count] = b;                                                                             \
                to[i + 2 * count] = c;                                                                         \
                to[i + 3 * count] = d;                                                                         \
            }                                                                                                  \
            begin += 4 * count;                                                                                \
            continue;                                                                                          \
        }                                                                                                      \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)                                                      \
            to[i] = from[index[i]];                                                                            \
        begin += count;                                                                                        \
    }

/* Of a table that does not fit the second cache rows are asked for early, and pass it by: what is made stays there. Of 512 bytes
   they took 0.94 of the time so in the third cache of a Zen 4 and 0.88 in memory; short ones come soon enough. Not on Intel's: on
   an Emerald Rapids this hint took 1.3 to 1.7 times as long, as a table that nearly fits the second cache never gets into it, and
   others gained nothing 2 to 32 rows ahead. */
enum {
    FAR_BYTES = 4 << 20, FAR_ROW = 256,
    AHEAD_BYTES = 6 << 10, ASKED_BYTES = 1 << 10, /* so far ahead, and so much of a row: the rest is foreseen */
    ALIGNED_ROW = 512,                            /* bytes that are worth a store more, which ends at a line */
    LONG_ROW = 16 << 10,                          /* from which on the start of memcpy does not count */
};

/* Two parts of one row, the second up to its end: what both have is copied twice. */
#define COPY_ENDS(size)                                                                                        \
    do {                                                                                                       \
        char first[size], last[size];                                                                          \
        memcpy(first, from, size);                                                                             \
        memcpy(last, from + bytes - (size), size);                                                             \
        memcpy(to, first, size);                                                                               \
        memcpy(to + bytes - (size), last, size);                                                               \
    } while (0)

/* Halves of lines: a call of memcpy for rows of 64 bytes took twice the time, and whole lines of 512 bytes 1.04 of it. Where a long
   row begins within a line of the result its first 64 bytes come first, and then no half lies across two: rows of 1264 bytes took
   0.89 of the time so on an Emerald Rapids. */
ALWAYS_INLINE void copy_row(char *to, const char *from, ptrdiff_t bytes) {
    typedef int64_t part __attribute__((vector_size(32), aligned(1), may_alias));
    if (bytes < 32) {
        if (bytes >= 16)
            COPY_ENDS(16);
        else if (bytes >= 8)
            COPY_ENDS(8);
        else if (bytes >= 4)
            COPY_ENDS(4);
        else if (bytes >= 2)
            COPY_ENDS(2);
        else if (bytes)
            *to = *from;
        return;
    }
    ptrdiff_t at = 0;
    if (bytes >= ALIGNED_ROW && (uintptr_t)to % 64) {
        at = 64 - (ptrdiff_t)((uintptr_t)to % 64);
        memcpy(to, from, 64);
    }
    for (; at + 64 <= bytes; at += 64) {
        const part low = *(const part *)(from + at), high = *(const part *)(from + at + 32);
        *(part *)(to + at) = low;
        *(part *)(to + at + 32) = high;
    }
    if (at + 32 <= bytes) {
        *(part *)(to + at) = *(const part *)(from + at);
        at += 32;
    }
    if (at < bytes)
        *(part *)(to + bytes - 32) = *(const part *)(from + bytes - 32);
}

/* `count` rows of a table one after the other; `rest` numbers may be read. */
static void copy_rows(const char *table, const int64_t *index, ptrdiff_t count, ptrdiff_t rest, ptrdiff_t bytes, bool early,
                      char *made) {
    const ptrdiff_t ahead = bytes < AHEAD_BYTES / 2 ? AHEAD_BYTES / (bytes + !bytes) : 2;
    const ptrdiff_t asked = early ? rest - ahead : 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        if (i < asked) { /* which row comes next is nothing that a processor can guess */
            const char *next = table + index[i + ahead] * bytes;
            for (ptrdiff_t line = 0; line < bytes && line < ASKED_BYTES; line += 64)
                __builtin_prefetch(next + line, 0, 0);
        }
        if (bytes < LONG_ROW)
            copy_row(made + i * bytes, table + index[i] * bytes, bytes);
        else
            memcpy(made + i * bytes, table + index[i] * bytes, (size_t)bytes);
    }
}

/* Rows of the result from `begin` to `end`. */
static void select_rows(const picked *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t bytes = job->inner * job->element, element = is_element(job->data, bytes) ? bytes : 0;
    if (element == 1) {
        EACH(uint8_t)
    } else if (element == 2) {
        EACH(uint16_t)
    } else if (element == 4) {
        EACH(uint32_t)
    } else if (element == 8) {
        EACH(uint64_t)
    } else {
        const bool early = job->size * bytes > FAR_BYTES && bytes >= FAR_ROW && !native_on_intel();
        for (ptrdiff_t outer = begin / job->count, at = begin % job->count; begin < end; outer++, at = 0) {
            const ptrdiff_t rest = job->count - at, count = rest < end - begin ? rest : end - begin;
            copy_rows(job->data + outer * job->size * bytes, job->index + at, count, rest, bytes, early, job->made + begin * bytes);
            begin += count;
        }
    }
}

/* Rows of one element of each part. */
#define WEAVE(type)                                                                                            \
    if (parts == 2) {                                                                                          \
        const type *a = (const type *)data[0], *b = (const type *)data[1];                                     \
        type *to = (type *)made;                                                                               \
        INDEPENDENT for (ptrdiff_t i = begin; i < end; i++) {                                                  \
            to[2 * i] = a[i];                                                                                  \
            to[2 * i + 1] = b[i];                                                                              \
        }                                                                                                      \
        return;                                                                                                \
    }                                                                                                          \
    for (ptrdiff_t first = begin; first < end; first += WOVEN)                                                 \
        for (int k = 0; k < parts; k++) {                                                                      \
            const type *from = (const type *)data[k];                                                          \
            type *to = (type *)made + k;                                                                       \
            for (ptrdiff_t i = first; i < end && i < first + WOVEN; i++)                                       \
                to[i * parts] = from[i];                                                                       \
        }

enum { WOVEN = 128 }; /* rows whose lines stay in the first cache until the last part has written to them */

static void weave(const char *const *data, int parts, ptrdiff_t element, char *made, ptrdiff_t begin, ptrdiff_t end) {
    switch (element) {
    case 1: WEAVE(uint8_t) break;
    case 2: WEAVE(uint16_t) break;
    case 4: WEAVE(uint32_t) break;
    default: WEAVE(uint64_t)
    }
}

/* Numbers are looked at some at a time, and then come from the first cache. */
enum { LOOKED_AT = 512 };

/* Gathers pay where each has to multiply as well, and not with AVX2's. Loads of single elements took two thirds of the time
   elsewhere, on a processor of AMD's. */
#ifdef __AVX512F__
#define GATHERED INDEPENDENT
#else
#define GATHERED
#endif

/* `expression` for j up to `length`, of a row whose numbers begin at `index`. */
#define PICK_ROW(length, expression)                                                                           \
    for (ptrdiff_t first = 0; first < (length); first += LOOKED_AT) {                                          \
        const ptrdiff_t last = (length) - first < LOOKED_AT ? (length) : first + LOOKED_AT;                    \
        if (!inside(index + first, last - first, job->size))                                                   \
            return false;                                                                                      \
        GATHERED for (ptrdiff_t j = first; j < last; j++)                                                      \
            to[j] = expression;                                                                                \
    }

/* Rows of the result from `begin` to `end`; a row has `inner` elements. */
#define PICK_EACH(type)                                                                                        \
    for (ptrdiff_t row = begin; row < end; row++) {                                                            \
        const type *from = (const type *)job->data + row / job->count * job->size * job->inner;                \
        const int64_t *index = job->index + row * job->inner;                                                  \
        type *to = (type *)job->made + row * job->inner;                                                       \
        PICK_ROW(job->inner, from[index[j] * job->inner + j])                                        \
    }

/* Short rows: numbers are looked at for many of them at a time. */
#define FEW_EACH(type, COUNT)                                                                                  \
    for (; row < last; row++, index += COUNT, to += COUNT)                                                     \
        for (ptrdiff_t j = 0; j < COUNT; j++)                                                                  \
            to[j] = from[index[j] * COUNT + j];

#define PICK_FEW(type)                                                                                         \
    for (ptrdiff_t row = begin; row < end;) {                                                                  \
        const ptrdiff_t inner = job->inner, outer = row / job->count, next = (outer + 1) * job->count;         \
        const type *from = (const type *)job->data + outer * job->size * inner;                                \
        const int64_t *index = job->index + row * inner;                                                       \
        type *to = (type *)job->made + row * inner;                                                            \
        ptrdiff_t last = row + LOOKED_AT / inner;                                                              \
        last = last < next ? last : next;                                                                      \
        last = last < end ? last : end;                                                                        \
        if (!inside(index, (last - row) * inner, job->size))                                                   \
            return false;                                                                                      \
        switch (inner) {                                                                                       \
        case 1: FEW_EACH(type, 1) break;                                                                       \
        case 2: FEW_EACH(type, 2) break;                                                                       \
        case 3: FEW_EACH(type, 3) break;                                                                       \
        case 4: FEW_EACH(type, 4) break;                                                                       \
        default: FEW_EACH(type, inner)                                                                         \
        }                                                                                                      \
    }

enum { FEW = 32 }; /* elements of a row that are not worth a look at their numbers alone */

static bool gather_rows(const picked *job, ptrdiff_t begin, ptrdiff_t end) {
    switch (job->element) {
    case 1: if (job->inner < FEW) PICK_FEW(uint8_t) else PICK_EACH(uint8_t) break;
    case 2: if (job->inner < FEW) PICK_FEW(uint16_t) else PICK_EACH(uint16_t) break;
    case 4: if (job->inner < FEW) PICK_FEW(uint32_t) else PICK_EACH(uint32_t) break;
    default: if (job->inner < FEW) PICK_FEW(uint64_t) else PICK_EACH(uint64_t)
    }
    return true;
}

/* Elements along the last dim. Numbers are checked some at a time, by vectors and just before they are used: a pass over
   more of them waits for memory that the picks could have used, and a check of each takes as long as its pick. The numbers
   to come, and the row that they will be of, are asked for early: the processor would go on only to the end of a page, and
   finds out late that the next row is next. 0.65 of the time in the second cache, 0.75 in memory. Single loads joined to a
   vector store faster than they gather, and than single stores. */

enum { CHECKED = 32, NUMBERS_AHEAD = 256 };

ALWAYS_INLINE bool checked(const int64_t *at, int64_t size) {
    int64_t outside = 0;
    for (int k = 0; k < CHECKED; k++)
        outside |= at[k] | (size - 1 - at[k]);
    return __builtin_expect(outside >= 0, 1);
}

ALWAYS_INLINE void fetch(const void *start, int bytes) {
    for (int line = 0; line < bytes; line += 64)
        __builtin_prefetch((const char *)start + line);
}

typedef uint32_t picks_4 __attribute__((vector_size(32), aligned(4)));
typedef uint64_t picks_8 __attribute__((vector_size(32), aligned(8)));

/* A row of numbers, `together` at a time; what is left one by one. `next` is the row of `size` elements that comes next. */
#define ALONG(together, next, SOME, ONE)                                                                       \
    ptrdiff_t j = 0;                                                                                           \
    while (j + CHECKED <= job->count) {                                                                        \
        fetch(at + NUMBERS_AHEAD, CHECKED * (int)sizeof *at);                                                  \
        if (j < job->size)                                                                                     \
            fetch((next) + j, CHECKED * (int)sizeof *(next));                                                  \
        if (!checked(at, job->size))                                                                           \
            return false;                                                                                      \
        for (int k = 0; k < CHECKED; k += together, j += together, at += together)                             \
            SOME;                                                                                              \
    }                                                                                                          \
    for (; j < job->count; j++, at++) {                                                                        \
        if ((uint64_t)*at >= (uint64_t)job->size)                                                              \
            return false;                                                                                      \
        ONE;                                                                                                   \
    }

/* A row of the result from a row of the source. */
#define PICK_ALONG(type, together, SOME)                                                                       \
    for (ptrdiff_t row = begin; row < end; row++) {                                                            \
        const type *from = (const type *)job->data + row * job->size;                                          \
        const int64_t *at = job->index + row * job->count;                                                     \
        type *to = (type *)job->made + row * job->count;                                                       \
        ALONG(together, from + job->size, SOME, to[j] = from[*at])                                             \
    }

/* Short rows, of the index and what it goes with: numbers are looked at for many of them at a time. */
#define ROWS_OF(COUNT, ONE)                                                                                    \
    for (; row < last; row++, at += COUNT, from += from_step, to += to_step)                                   \
        for (ptrdiff_t j = 0; j < COUNT; j++)                                                                  \
            ONE;

#define FEW_ALONG(FROM_STEP, TO_STEP, ONE)                                                                     \
    const ptrdiff_t from_step = FROM_STEP, to_step = TO_STEP;                                                  \
    for (ptrdiff_t row = begin; row < end;) {                                                                  \
        const ptrdiff_t some = row + LOOKED_AT / job->count, last = some < end ? some : end;                   \
        if (!inside(at, (last - row) * job->count, job->size))                                                 \
            return false;                                                                                      \
        switch (job->count) {                                                                                  \
        case 1: ROWS_OF(1, ONE) break;                                                                         \
        case 2: ROWS_OF(2, ONE) break;                                                                         \
        case 3: ROWS_OF(3, ONE) break;                                                                         \
        case 4: ROWS_OF(4, ONE) break;                                                                         \
        default: ROWS_OF(job->count, ONE)                                                                      \
        }                                                                                                      \
    }

#define PICK_FEW_ALONG(type)                                                                                   \
    {                                                                                                          \
        const type *from = (const type *)job->data + begin * job->size;                                        \
        const int64_t *at = job->index + begin * job->count;                                                   \
        type *to = (type *)job->made + begin * job->count;                                                     \
        FEW_ALONG(job->size, job->count, to[j] = from[at[j]])                                                  \
    }

static bool gather_few_along(const picked *job, ptrdiff_t begin, ptrdiff_t end) {
    switch (job->element) {
    case 1: PICK_FEW_ALONG(uint8_t) break;
    case 2: PICK_FEW_ALONG(uint16_t) break;
    case 4: PICK_FEW_ALONG(uint32_t) break;
    default: PICK_FEW_ALONG(uint64_t)
    }
    return true;
}

static bool gather_along(const picked *job, ptrdiff_t begin, ptrdiff_t end) {
    if (job->count < FEW)
        return gather_few_along(job, begin, end);
    switch (job->element) {
    case 1: PICK_ALONG(uint8_t, 1, to[j] = from[*at]) break;
    case 2: PICK_ALONG(uint16_t, 1, to[j] = from[*at]) break;
    case 4:
        PICK_ALONG(uint32_t, 8,
                   *(picks_4 *)(to + j) = ((picks_4){from[at[0]], from[at[1]], from[at[2]], from[at[3]], from[at[4]],
                                                     from[at[5]], from[at[6]], from[at[7]]}))
        break;
    default:
        PICK_ALONG(uint64_t, 4,
                   *(picks_8 *)(to + j) = ((picks_8){from[at[0]], from[at[1]], from[at[2]], from[at[3]]}))
    }
    return true;
}

#define PUT_ALONG(type)                                                                                        \
    for (ptrdiff_t row = begin; row < end; row++) {                                                            \
        const type *from = (const type *)job->data + (job->one ? 0 : row * job->count);                        \
        const int64_t *at = job->index + row * job->count;                                                     \
        type *to = (type *)job->made + row * job->size;                                                        \
        ALONG(1, to + job->size, to[*at] = from[job->one ? 0 : j], to[*at] = from[job->one ? 0 : j])           \
    }

#define PUT_FEW_ALONG(type)                                                                                    \
    {                                                                                                          \
        const type *from = (const type *)job->data + (job->one ? 0 : begin * job->count);                      \
        const int64_t *at = job->index + begin * job->count;                                                   \
        type *to = (type *)job->made + begin * job->size;                                                      \
        const type one = *from;                                                                                \
        if (job->one) {                                                                                        \
            FEW_ALONG(0, job->size, to[at[j]] = one)                                                           \
        } else {                                                                                               \
            FEW_ALONG(job->count, job->size, to[at[j]] = from[j])                                              \
        }                                                                                                      \
    }

static bool scatter_few_along(const picked *job, ptrdiff_t begin, ptrdiff_t end) {
    switch (job->element) {
    case 1: PUT_FEW_ALONG(uint8_t) break;
    case 2: PUT_FEW_ALONG(uint16_t) break;
    case 4: PUT_FEW_ALONG(uint32_t) break;
    default: PUT_FEW_ALONG(uint64_t)
    }
    return true;
}

static bool scatter_along(const picked *job, ptrdiff_t begin, ptrdiff_t end) {
    if (job->count && job->count < FEW)
        return scatter_few_along(job, begin, end);
    switch (job->element) {
    case 1: PUT_ALONG(uint8_t) break;
    case 2: PUT_ALONG(uint16_t) break;
    case 4: PUT_ALONG(uint32_t) break;
    default: PUT_ALONG(uint64_t)
    }
    return true;
}

#define ADD_ROWS(name, type)                                                                                   \
    static void name(const added *job, ptrdiff_t begin, ptrdiff_t end) {                                        \
        const ptrdiff_t inner = job->inner;                                                                    \
        type *made = (type *)job->made + begin * job->size * inner;                                            \
        const type *from = (const type *)job->data + begin * job->count * inner;                               \
        memset(made, 0, (size_t)((end - begin) * job->size * inner) * sizeof *made);                           \
        for (ptrdiff_t outer = begin; outer < end; outer++, made += job->size * inner)                         \
            for (ptrdiff_t i = 0; i < job->count; i++, from += inner) {                                        \
                if (inner == 1) {                                                                              \
                    made[job->index[i]] += *from;                                                              \
                    continue;                                                                                  \
                }                                                                                              \
                type *to = made + job->index[i] * inner;                                                       \
                INDEPENDENT for (ptrdiff_t j = 0; j < inner; j++)                                              \
                    to[j] += from[j];                                                                          \
            }                                                                                                  \
    }
ADD_ROWS(add_rows_f32, float)
ADD_ROWS(add_rows_f64, double)

#define FILL(type)                                                                                             \
    {                                                                                                          \
        type one, *into = (type *)to;                                                                          \
        memcpy(&one, value, sizeof one);                                                                       \
        for (ptrdiff_t i = begin; i < end; i++)                                                                \
            into[i] = one;                                                                                     \
    }

static void fill(char *to, const char *value, int size, ptrdiff_t begin, ptrdiff_t end) {
    switch (size) {
    case 1: memset(to + begin, value[0], (size_t)(end - begin)); break;
    case 2: FILL(uint16_t) break;
    case 4: FILL(uint32_t) break;
    case 8: FILL(uint64_t) break;
    default: /* pairs */
        for (ptrdiff_t i = begin; i < end; i++)
            memcpy(to + i * size, value, (size_t)size);
    }
}

const index_loops ISA(index_loops) = {inside,       add_places,    weave, select_rows, gather_rows,
                                      gather_along, scatter_along, fill,  {add_rows_f32, add_rows_f64}};
