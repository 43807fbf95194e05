/* The loops of nonzero: without branches, because masks are hard to foresee. */
#include "loop.h"

#include "../nonzero.h"

#define LOOPS(log, type)                                                                                      \
    static ptrdiff_t count_##log(const void *data, ptrdiff_t size, bool real) {                               \
        const type *x = data;                                                                                 \
        ptrdiff_t found = 0;                                                                                  \
        for (ptrdiff_t i = 0; i < size; i++)                                                                  \
            found += (type)(x[i] << real) != 0;                                                               \
        return found;                                                                                         \
    }                                                                                                         \
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
