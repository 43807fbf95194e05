/* The loops of nonzero: without branches, because masks are hard to foresee. */
#include "loop.h"

#include "../nonzero.h"

#define COUNT(log, type)                                                                                      \
    static ptrdiff_t count_##log(const void *data, ptrdiff_t size, bool real) {                               \
        const type *x = data;                                                                                 \
        ptrdiff_t found = 0;                                                                                  \
        for (ptrdiff_t i = 0; i < size; i++)                                                                  \
            found += (type)(x[i] << real) != 0;                                                               \
        return found;                                                                                         \
    }
COUNT(1, uint16_t)
COUNT(2, uint32_t)
COUNT(3, uint64_t)

/* Bytes, none of which is a float, are counted in bytes, as often as these hold. */
static ptrdiff_t count_0(const void *data, ptrdiff_t size, bool real) {
    enum { LANES = 64, ROUNDS = 255 };
    typedef uint8_t lanes __attribute__((vector_size(LANES), aligned(1)));
    const uint8_t *x = data;
    ptrdiff_t found = 0;
    while (size >= LANES) {
        lanes sums = {0};
        for (int round = 0; round < ROUNDS && size >= LANES; round++, x += LANES, size -= LANES)
            sums -= (lanes)(*(const lanes *)x != 0);
        for (int lane = 0; lane < LANES; lane++)
            found += sums[lane];
    }
    for (; size; size--, x++)
        found += *x != 0;
    return found;
}

#define LOOPS(log, type)                                                                                      \
    static ptrdiff_t list_##log(const void *data, ptrdiff_t size, bool real, int64_t *places) {               \
        const type *x = data;                                                                                 \
        ptrdiff_t found = 0;                                                                                  \
        for (ptrdiff_t i = 0; i < size; i++) {                                                                \
            places[found] = i;                                                                                \
            found += (type)(x[i] << real) != 0;                                                               \
        }                                                                                                     \
        return found;                                                                                         \
    }                                                                                                         \
    static ptrdiff_t pick_##log(const void *data, const uint8_t *mask, ptrdiff_t size, void *picked) {        \
        const type *x = data;                                                                                 \
        type *made = picked;                                                                                  \
        ptrdiff_t found = 0;                                                                                  \
        for (ptrdiff_t i = 0; i < size; i++) {                                                                \
            made[found] = x[i];                                                                               \
            found += mask[i] != 0;                                                                            \
        }                                                                                                     \
        return found;                                                                                         \
    }
LOOPS(0, uint8_t)
LOOPS(1, uint16_t)
LOOPS(2, uint32_t)
LOOPS(3, uint64_t)

/* Mostly all of some neighbours are the first of their runs, or none: then they are copied, or left out, as one. */
#define CHANGES(suffix, type, OF)                                                                             \
    static ptrdiff_t count_changes_##suffix(const void *data, ptrdiff_t size) {                               \
        const type *x = data;                                                                                 \
        ptrdiff_t found = 0;                                                                                  \
        for (ptrdiff_t i = 0; i < size; i++)                                                                  \
            found += OF(x[i]) != OF(x[i - 1]);                                                                \
        return found;                                                                                         \
    }                                                                                                         \
    static ptrdiff_t pick_changes_##suffix(const void *data, ptrdiff_t size, void *picked) {                  \
        enum { SOME = 16 };                                                                                   \
        const type *x = data;                                                                                 \
        type *made = picked;                                                                                  \
        while (size) {                                                                                        \
            const ptrdiff_t some = size < SOME ? size : SOME;                                                 \
            int same = some < SOME;                                                                           \
            for (int k = 0; some == SOME && k < SOME; k++)                                                    \
                same += OF(x[k]) == OF(x[k - 1]);                                                             \
            if (!same) {                                                                                      \
                for (int k = 0; k < SOME; k++)                                                                \
                    made[k] = x[k];                                                                           \
                made += SOME;                                                                                 \
            } else if (same < SOME) {                                                                         \
                for (ptrdiff_t k = 0; k < some; k++)                                                          \
                    if (OF(x[k]) != OF(x[k - 1]))                                                             \
                        *made++ = x[k];                                                                       \
            }                                                                                                 \
            x += some;                                                                                        \
            size -= some;                                                                                     \
        }                                                                                                     \
        return made - (type *)picked;                                                                         \
    }
#define ITSELF(x) (x)
#define IS_FALSE(x) (!(x))
CHANGES(f32, float, ITSELF)
CHANGES(f64, double, ITSELF)
CHANGES(bool, uint8_t, IS_FALSE)
CHANGES(b8, uint8_t, ITSELF)
CHANGES(b16, uint16_t, ITSELF)
CHANGES(b32, uint32_t, ITSELF)
CHANGES(b64, uint64_t, ITSELF)
#define EACH_KIND(name) {name##_f32, name##_f64, name##_bool, name##_b8, name##_b16, name##_b32, name##_b64}

const nonzero_loops ISA(nonzero_loops) = {
    {count_0, count_1, count_2, count_3}, {list_0, list_1, list_2, list_3}, {pick_0, pick_1, pick_2, pick_3},
    EACH_KIND(count_changes), EACH_KIND(pick_changes)};
