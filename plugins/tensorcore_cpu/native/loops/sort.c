/* Short rows are sorted side by side: a network of comparisons, the same for all of them, puts the smaller of two elements first in
   each lane of a vector. One by one a row of four took 40 ns, most of it branches that nobody can foretell. */
#include "../sort.h"
#include "loop.h"

/* Of element k of row r: what orders it at [k][r], in rows of `wide`. Keys of 32 bits go with their places in one number. */
typedef struct {
    ptrdiff_t wide;
    _Alignas(VECTOR) int64_t key[SORT_PAIRS], at[SORT_PAIRS];
} sort_block;

ALWAYS_INLINE void exchange_narrow(sort_block *block, ptrdiff_t a, ptrdiff_t b) {
    INDEPENDENT for (ptrdiff_t r = 0; r < block->wide; r++) {
        const int64_t one = block->key[a + r], two = block->key[b + r];
        block->key[a + r] = one < two ? one : two;
        block->key[b + r] = one < two ? two : one;
    }
}

/* Equal keys keep the order of their places. */
ALWAYS_INLINE void exchange_wide(sort_block *block, ptrdiff_t a, ptrdiff_t b) {
    for (ptrdiff_t r = 0; r < block->wide; r += LANES_F64) {
        vl *one = (vl *)(block->key + a + r), *two = (vl *)(block->key + b + r);
        vl *first = (vl *)(block->at + a + r), *second = (vl *)(block->at + b + r);
        const vl over = (*one > *two) | ((*one == *two) & (*first > *second));
        const vl keys = (*one ^ *two) & over, places = (*first ^ *second) & over; /* what an exchange changes */
        *one ^= keys;
        *two ^= keys;
        *first ^= places;
        *second ^= places;
    }
}

/* Batcher's merge exchange, for any number of elements (Knuth, The Art of Computer Programming, vol. 3, 5.2.2, algorithm M). */
#define NETWORK(name, exchange)                                                                               \
    static void name(sort_block *block, ptrdiff_t n) {                                                        \
        ptrdiff_t half = 1;                                                                                   \
        while (2 * half < n)                                                                                  \
            half *= 2;                                                                                        \
        for (ptrdiff_t p = half; p > 0; p /= 2)                                                               \
            for (ptrdiff_t q = half, r = 0, d = p;; d = q - p, q /= 2, r = p) {                               \
                for (ptrdiff_t i = 0; i < n - d; i++)                                                         \
                    if ((i & p) == r)                                                                         \
                        exchange(block, i * block->wide, (i + d) * block->wide);                              \
                if (q == p)                                                                                   \
                    break;                                                                                    \
            }                                                                                                 \
    }
NETWORK(sort_narrow, exchange_narrow)
NETWORK(sort_wide, exchange_wide)

/* The key and the place of what lies at `i` of the block. */
#define KEY_narrow(block, i) ((uint64_t)(block)->key[i] >> 32 ^ 0x80000000u)
#define AT_narrow(i) (int64_t)(uint32_t)block.key[i]
#define KEY_wide(block, i) ((uint64_t)(block)->key[i] ^ (uint64_t)1 << 63)
#define AT_wide(i) block.at[i]
#define PUT_narrow(i, made, place) block.key[i] = (int64_t)((uint64_t)((made) ^ 0x80000000u) << 32 | (uint64_t)(place))
#define PUT_wide(i, made, place)                                                                              \
    block.key[i] = (int64_t)((made) ^ (uint64_t)1 << 63);                                                     \
    block.at[i] = place

/* The rank of what a call asks for in row r of a sorted block. */
#define RANK(width)                                                                                           \
    static ptrdiff_t rank_##width(const order_call *call, const sort_block *block, ptrdiff_t r) {             \
        const bool real = call->type <= TYPE_F16;                                                             \
        ptrdiff_t numbers = call->n;                                                                          \
        if (call->op != MEDIAN)                                                                               \
            return call->rank;                                                                                \
        while (real && numbers && KEY_##width(block, (numbers - 1) * block->wide + r) == highest_key(call->type)) \
            numbers--;                                                                                        \
        return call->with_nan && numbers < call->n ? numbers : numbers ? (numbers - 1) / 2 : 0;               \
    }
RANK(narrow)
RANK(wide)

#define SHORT_ROWS(name, element, unsigned_key, key_of, width)                                          \
    static void name(const order_call *call, ptrdiff_t first, ptrdiff_t count) {                              \
        const ptrdiff_t n = call->n, inner = call->inner, most = SORT_PAIRS / n / 8 * 8;                      \
        const element *x = (const element *)call->x;                                                          \
        element *values = (element *)call->values;                                                            \
        const unsigned_key flip = call->descending ? (unsigned_key)-1 : 0;                                    \
        sort_block block;                                                                                     \
        ptrdiff_t starts[SORT_PAIRS];                                                                         \
        for (ptrdiff_t end = first + count, rows; first < end; first += rows) {                               \
            rows = end - first < most ? end - first : most;                                                   \
            const ptrdiff_t wide = block.wide = (rows + 7) / 8 * 8;                                           \
            for (ptrdiff_t r = 0; r < wide; r++)                                                              \
                starts[r] = order_start(call, first + (r < rows ? r : 0));                                    \
            for (ptrdiff_t k = 0; k < n; k++)                                                                 \
                for (ptrdiff_t r = 0; r < wide; r++) {                                                        \
                    PUT_##width(k * wide + r, key_of(x[starts[r] + k * inner]) ^ flip, k);                    \
                }                                                                                             \
            sort_##width(&block, n);                                                                          \
            for (ptrdiff_t r = 0; r < rows; r++) {                                                            \
                ptrdiff_t to = order_target(call, first + r), rank = 0, last = call->kept;                    \
                if (call->op > TOP) {                                                                         \
                    rank = rank_##width(call, &block, r);                                                               \
                    last = rank + 1;                                                                          \
                }                                                                                             \
                for (; rank < last; rank++, to += inner) {                                                    \
                    const int64_t at = AT_##width(rank * wide + r);                                           \
                    call->places[to] = at;                                                                    \
                    values[to] = x[starts[r] + at * inner];                                                   \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }

SHORT_ROWS(rows_f32, float, uint32_t, key_of_float, narrow)
SHORT_ROWS(rows_f64, double, uint64_t, key_of_double, wide)
SHORT_ROWS(rows_f16, uint16_t, uint32_t, key_of_f16, narrow)
SHORT_ROWS(rows_bf16, uint16_t, uint32_t, key_of_bf16, narrow)
SHORT_ROWS(rows_i8, int8_t, uint32_t, key_of_i8, narrow)
SHORT_ROWS(rows_i16, int16_t, uint32_t, key_of_i16, narrow)
SHORT_ROWS(rows_i32, int32_t, uint32_t, key_of_i32, narrow)
SHORT_ROWS(rows_i64, int64_t, uint64_t, key_of_i64, wide)
SHORT_ROWS(rows_u8, uint8_t, uint32_t, key_of_u8, narrow)
SHORT_ROWS(rows_bool, uint8_t, uint32_t, key_of_bool, narrow)

const sort_loops ISA(sort_loops) = {{
    [TYPE_F32] = rows_f32, [TYPE_F64] = rows_f64, [TYPE_F16] = rows_f16, [TYPE_BF16] = rows_bf16, [TYPE_I8] = rows_i8,
    [TYPE_I16] = rows_i16, [TYPE_I32] = rows_i32, [TYPE_I64] = rows_i64, [TYPE_U8] = rows_u8, [TYPE_BOOL] = rows_bool,
}};
