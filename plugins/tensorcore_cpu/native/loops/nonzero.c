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

const nonzero_loops ISA(nonzero_loops) = {
    {count_0, count_1, count_2, count_3}, {list_0, list_1, list_2, list_3}, {pick_0, pick_1, pick_2, pick_3}};
