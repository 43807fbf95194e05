/* The loops of sums at places and of the largest of rows. */
#include "half.h"
#include "rows.h"

#include "../scatter.h"

#include <string.h>

enum { TOP_BLOCK = 64 }; /* elements that are passed over together where none of them belongs to the largest */

enum { LOOKED_AT = 512, FEW = 12 }; /* numbers that are looked at together, of rows of a few */

static void bounds(const int64_t *index, ptrdiff_t count, int64_t *low, int64_t *high) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (ptrdiff_t i = 0; i < count; i++) {
        least = index[i] < least ? index[i] : least;
        most = index[i] > most ? index[i] : most;
    }
    *low = least;
    *high = most;
}

#define IS_NAN(a) ((a) != (a))
#define SUM(a, b) (REAL)((a) + (b))
#include "as_f32.h"
#include "scatter_of_real.h"
#include "as_f64.h"
#include "scatter_of_real.h"
#undef IS_NAN
#define IS_NAN(a) 0 /* of integers */
#include "as_i32.h"
#include "scatter_of_real.h"
#include "as_i64.h"
#include "scatter_of_real.h"
#include "as_i8.h"
#include "scatter_of_real.h"
#include "as_i16.h"
#include "scatter_of_real.h"
#include "as_u8.h"
#include "scatter_of_real.h"
#undef SUM
#define SUM(a, b) ((a) | (b)) /* of bools: whether one of them is true */
#include "as_bool.h"
#include "scatter_of_real.h"

/* add_listed of a half type: sums are floats, and rounded once; of `one` start all are that. */
#define LISTED_HALVES(type)                                                                                   \
    static void add_listed_##type(const slice_sums *of, const place_list *list, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last) { \
        enum { PIECE = 256 };                                                                                 \
        const ptrdiff_t after = of->after;                                                                    \
        const uint16_t *from = (const uint16_t *)of->from + batch * of->count * after;                        \
        float sums[PIECE];                                                                                    \
        for (ptrdiff_t place = first; place < last; place++) {                                                \
            const ptrdiff_t at = (batch * of->size + place) * after;                                          \
            uint16_t *row = (uint16_t *)of->into + at;                                                        \
            const uint16_t *start = list->start ? (const uint16_t *)list->start + (list->one ? 0 : at) : row; \
            if (list->one)                                                                                    \
                for (ptrdiff_t k = 0; k < after; k++)                                                         \
                    row[k] = *start;                                                                          \
            else if (start != row)                                                                            \
                memcpy(row, start, (size_t)after * sizeof *row);                                              \
            for (ptrdiff_t begin = 0; list->first[place] >= 0 && begin < after; begin += PIECE) {             \
                const ptrdiff_t piece = after - begin < PIECE ? after - begin : PIECE;                        \
                for (ptrdiff_t k = 0; k < piece; k++)                                                         \
                    sums[k] = type##_value(row[begin + k]);                                                   \
                for (int32_t i = list->first[place]; i >= 0; i = list->next[i])                               \
                    for (ptrdiff_t k = 0; k < piece; k++)                                                     \
                        sums[k] += type##_value(from[i * after + begin + k]);                                 \
                for (ptrdiff_t k = 0; k < piece; k++)                                                         \
                    row[begin + k] = type##_of(sums[k]);                                                      \
            }                                                                                                 \
        }                                                                                                     \
    }
LISTED_HALVES(bf16)
LISTED_HALVES(f16)

#define OF_ALL(name, ...)                                                                                          \
    {                                                                                                         \
        [TYPE_F32] = name##_f32, [TYPE_F64] = name##_f64, [TYPE_I8] = name##_i8, [TYPE_I16] = name##_i16,     \
        [TYPE_I32] = name##_i32, [TYPE_I64] = name##_i64, [TYPE_U8] = name##_u8, [TYPE_BOOL] = name##_bool, __VA_ARGS__ \
    }

const scatter_loops ISA(scatter_loops) = {
    OF_ALL(add_slices), OF_ALL(add_batches), OF_ALL(add_listed, [TYPE_BF16] = add_listed_bf16, [TYPE_F16] = add_listed_f16), OF_ALL(add_places), OF_ALL(add_along), OF_ALL(top), bounds,
};
