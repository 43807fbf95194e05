/* Sorting: a call, elements as keys, and the loops over short rows that each instruction set fills. */
#ifndef TENSORCORE_NATIVE_SORT_H
#define TENSORCORE_NATIVE_SORT_H

#include "types.h"

#include <string.h>

typedef enum { SORT, TOP, KTH, MEDIAN } order_op; /* the first two answer with rows */

typedef struct {
    order_op op;
    native_type type;
    const char *x;
    char *values;
    int64_t *places;
    ptrdiff_t n, inner, size; /* elements along the dim, elements from one to the next, bytes of one */
    ptrdiff_t kept;           /* elements of a row that are answered with: all of a sorted one */
    ptrdiff_t rank;           /* from 0, of the k-th */
    bool descending, with_nan;
} order_call;

/* Where row number `row` begins; rows are counted over the dims before and after the one that is sorted. */
static inline ptrdiff_t order_start(const order_call *call, ptrdiff_t row) {
    return row / call->inner * call->inner * call->n + row % call->inner;
}

/* Where its answer goes. */
static inline ptrdiff_t order_target(const order_call *call, ptrdiff_t row) {
    return call->op > TOP ? row : row / call->inner * call->inner * call->kept + row % call->inner;
}

/* Keys: unsigned numbers in the order of the elements; zeros are equal, NaN is the largest. */

static inline uint32_t key_of_float(float value) {
    uint32_t bits;
    value += 0.0f; /* makes of both zeros one */
    memcpy(&bits, &value, sizeof bits);
    return value != value ? UINT32_MAX : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static inline uint64_t key_of_double(double value) {
    uint64_t bits;
    value += 0.0;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? UINT64_MAX : bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Of 16 bits, where those of infinity are given. */
static inline uint32_t key_of_half(uint16_t bits, uint16_t infinity) {
    if ((bits & 0x7fff) > infinity)
        return UINT16_MAX;
    return (uint16_t)(!(bits & 0x7fff) ? 0x8000 : bits & 0x8000 ? ~bits : bits | 0x8000);
}

static inline uint32_t key_of_f16(uint16_t bits) { return key_of_half(bits, 0x7c00); }
static inline uint32_t key_of_bf16(uint16_t bits) { return key_of_half(bits, 0x7f80); }
static inline uint32_t key_of_i8(int8_t value) { return (uint32_t)(value + 0x80); }
static inline uint32_t key_of_i16(int16_t value) { return (uint32_t)(value + 0x8000); }
static inline uint32_t key_of_i32(int32_t value) { return (uint32_t)value ^ 0x80000000u; }
static inline uint32_t key_of_u8(uint8_t value) { return value; }
static inline uint32_t key_of_bool(uint8_t value) { return value != 0; } /* of other bytes that are seen as bools several are true */
static inline uint64_t key_of_i64(int64_t value) { return (uint64_t)value ^ (uint64_t)1 << 63; }

/* What has such a key; of both zeros that without a sign. */

static inline float float_of_key(uint32_t key) {
    float value;
    key = key >> 31 ? key ^ 0x80000000u : ~key;
    memcpy(&value, &key, sizeof value);
    return value;
}

static inline double double_of_key(uint64_t key) {
    double value;
    key = key >> 63 ? key ^ (uint64_t)1 << 63 : ~key;
    memcpy(&value, &key, sizeof value);
    return value;
}

static inline int16_t i16_of_key(uint32_t key) { return (int16_t)(key - 0x8000); }
static inline int32_t i32_of_key(uint32_t key) { return (int32_t)(key ^ 0x80000000u); }
static inline int64_t i64_of_key(uint64_t key) { return (int64_t)(key ^ (uint64_t)1 << 63); }

/* The key of NaN. */
static inline uint64_t highest_key(native_type type) {
    return type == TYPE_F64 ? UINT64_MAX : type == TYPE_F32 ? UINT32_MAX : UINT16_MAX;
}

enum { SORT_PAIRS = 2048 }; /* keys with their places that lie in the first cache at a time: of rows of at most an eighth of that */

/* The rows from `first` on, `count` of them. */
typedef void (*short_rows)(const order_call *call, ptrdiff_t first, ptrdiff_t count);

typedef struct {
    short_rows rows[TYPES];
} sort_loops;

#endif
