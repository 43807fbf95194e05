/* sort, topk, kthvalue and median_dim: elements as unsigned keys in their order, which go through buckets digit by digit.

   The k-th element needs only the bucket that it lies in. Short rows are sorted side by side (loops/sort.c). */
#include "radix.h"
#include "sort.h"

#include "rows.h"

#include <string.h>

DECLARE_LOOPS(sort_loops, sort_loops);

enum { DIM, DESCENDING, STABLE, K, KEEPDIM, WITH_NAN, LARGEST, SORTED, OPTIONS };
static PyObject *names[OPTIONS];
static const char *const NAMES[OPTIONS] = {"dim", "descending", "stable", "k", "keepdim", "nan", "largest", "sorted"};

enum {
    FEW = RADIX_FEW, /* elements of rows that are sorted side by side, and where eight rows fill vectors more: */
    IN_ORDER = 128, PICKED = 64, /* to be put in order, to find one of them */
    GRAIN = 1 << 13, /* elements that are worth a second thread */
};

typedef struct {
    order_call of;
    npy_intp rows;
    bool side_by_side;
    _Atomic bool failed;
} order_run;

#define EACH_KEY(element, KEY)                                                                                \
    for (npy_intp i = begin; i < end; i++) {                                                                  \
        const element value = *(const element *)(row->x + i * step);                                          \
        pairs[i - begin].key = (KEY) ^ flip;                                                                  \
        pairs[i - begin].at = i;                                                                              \
    }                                                                                                         \
    break;

/* A row, and where its answer goes. */
typedef struct {
    const order_call *of;
    const char *x;
    char *values;
    int64_t *places;
    bool alone; /* there is no other row */
} order_row;

static void keys_u32(const void *context, npy_intp begin, npy_intp end, pair_u32 *pairs) {
    const order_row *row = context;
    const npy_intp step = row->of->inner * row->of->size;
    const uint32_t flip = row->of->descending ? UINT32_MAX : 0;
    switch (row->of->type) {
    case TYPE_F32:
        EACH_KEY(float, key_of_float(value))
    case TYPE_F16:
        EACH_KEY(uint16_t, key_of_f16(value))
    case TYPE_BF16:
        EACH_KEY(uint16_t, key_of_bf16(value))
    case TYPE_I8:
        EACH_KEY(int8_t, key_of_i8(value))
    case TYPE_I16:
        EACH_KEY(int16_t, key_of_i16(value))
    case TYPE_I32:
        EACH_KEY(int32_t, key_of_i32(value))
    case TYPE_BOOL:
        EACH_KEY(uint8_t, key_of_bool(value))
    default:
        EACH_KEY(uint8_t, key_of_u8(value))
    }
}

static void keys_u64(const void *context, npy_intp begin, npy_intp end, pair_u64 *pairs) {
    const order_row *row = context;
    const npy_intp step = row->of->inner * row->of->size;
    const uint64_t flip = row->of->descending ? UINT64_MAX : 0;
    switch (row->of->type) {
    case TYPE_F64:
        EACH_KEY(double, key_of_double(value))
    default:
        EACH_KEY(int64_t, key_of_i64(value))
    }
}

static inline void copy_element(char *to, const char *from, npy_intp size) {
    switch (size) {
    case 1:
        *to = *from;
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    default:
        memcpy(to, from, 8);
    }
}

/* Elements in their order. Their keys tell what they are, but for zeros' signs and NaN's bits. */
#define EACH_VALUE(element, value, known)                                                                     \
    for (npy_intp i = 0; i < count; i++) {                                                                    \
        element one = value(pairs[i].key ^ flip);                                                             \
        *(element *)(values + i * step) = (known) ? one : *(const element *)(row->x + (npy_intp)pairs[i].at * step); \
    }                                                                                                         \
    break;

static void values_u32(const order_row *row, const pair_u32 *pairs, npy_intp count, char *values) {
    const npy_intp step = row->of->inner * row->of->size;
    const uint32_t flip = row->of->descending ? UINT32_MAX : 0;
    switch (row->of->type) {
    case TYPE_F32:
        EACH_VALUE(float, float_of_key, one < 0 || one > 0)
    case TYPE_I32:
        EACH_VALUE(int32_t, i32_of_key, true)
    default:
        for (npy_intp i = 0; i < count; i++)
            copy_element(values + i * step, row->x + (npy_intp)pairs[i].at * step, row->of->size);
    }
}

static void values_u64(const order_row *row, const pair_u64 *pairs, npy_intp count, char *values) {
    const npy_intp step = row->of->inner * row->of->size;
    const uint64_t flip = row->of->descending ? UINT64_MAX : 0;
    switch (row->of->type) {
    case TYPE_F64:
        EACH_VALUE(double, double_of_key, one < 0 || one > 0)
    default:
        EACH_VALUE(int64_t, i64_of_key, true)
    }
}

static bool is_real_type(native_type type) { return type <= TYPE_F16; }

/* The two widths. */
#define ORDER(pair, keys, write_values, sort, nth, top, take, run_row, BITS)                                        \
    RADIX(sort, pair, PAIR_KEY, BITS)                                                                         \
                                                                                                              \
    /* Where the element of a rank lies: from the highest digit on only its bucket is kept, in the order of places. */ \
    static npy_intp nth(pair *pairs, npy_intp n, npy_intp rank, uint32_t *counts) {                           \
        const int bits = n >= RADIX_MANY ? RADIX_WIDE : RADIX_NARROW;                               \
        const uint32_t mask = (1u << bits) - 1;                                                               \
        for (int d = (BITS + bits - 1) / bits - 1; d >= 0 && n > 1; d--) {                                    \
            memset(counts, 0, ((size_t)1 << bits) * sizeof *counts);                                          \
            for (npy_intp i = 0; i < n; i++)                                                                  \
                counts[pairs[i].key >> (d * bits) & mask]++;                                                  \
            uint32_t digit = 0;                                                                               \
            for (; rank >= (npy_intp)counts[digit]; digit++)                                                  \
                rank -= counts[digit];                                                                        \
            npy_intp kept = 0;                                                                                \
            for (npy_intp i = 0; i < n; i++) {                                                                \
                const pair one = pairs[i];                                                                    \
                pairs[kept] = one;                                                                            \
                kept += (one.key >> (d * bits) & mask) == digit;                                              \
            }                                                                                                 \
            n = kept;                                                                                         \
        }                                                                                                     \
        return (npy_intp)pairs[rank].at;                                                                      \
    }                                                                                                         \
                                                                                                              \
    /* Leaves the first `kept` of them in their order, in the order of places. */                             \
    static void top(pair *pairs, pair *other, npy_intp n, npy_intp kept, uint32_t *counts) {                  \
        memcpy(other, pairs, (size_t)n * sizeof *pairs);                                                      \
        const pair last = pairs[nth(other, n, kept - 1, counts)];                                             \
        npy_intp left = 0;                                                                                    \
        for (npy_intp i = 0; i < n; i++) {                                                                    \
            const pair one = pairs[i];                                                                        \
            pairs[left] = one;                                                                                \
            left += one.key < last.key || (one.key == last.key && one.at <= last.at);                         \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    static void take(const void *context, npy_intp first, npy_intp count, const pair *sorted) {               \
        const order_row *row = context;                                                                       \
        const npy_intp inner = row->of->inner;                                                                \
        for (npy_intp i = 0; i < count; i++)                                                                  \
            row->places[(first + i) * inner] = (npy_intp)sorted[i].at;                                        \
        write_values(row, sorted, count, row->values + first * inner * row->of->size);                        \
    }                                                                                                         \
                                                                                                              \
    static void run_row(const order_row *row, void *room, uint32_t *counts) {                                 \
        const order_call *run = row->of;                                                                      \
        pair *pairs = room;                                                                                   \
        if (run->op <= TOP && run->kept == run->n) {                                                          \
            sort(&(sort##_task){run->n, row->alone, keys, take, row}, pairs, counts);                         \
            return;                                                                                           \
        }                                                                                                     \
        keys(row, 0, run->n, pairs);                                                                          \
        if (run->op == TOP) {                                                                                 \
            top(pairs, pairs + run->n, run->n, run->kept, counts);                                            \
            take(row, 0, run->kept, sort##_here(pairs, pairs + run->n, run->kept, counts));                   \
            return;                                                                                           \
        }                                                                                                     \
                                                                                                              \
        npy_intp rank = run->rank, at = -1;                                                                   \
        if (run->op == MEDIAN) {                                                                              \
            npy_intp left = run->n;                                                                           \
            for (npy_intp i = run->n - 1; i >= 0 && is_real_type(run->type); i--)                             \
                if (pairs[i].key == highest_key(run->type)) {                                                 \
                    at = i;                                                                                   \
                    left--;                                                                                   \
                }                                                                                             \
            rank = left ? (left - 1) / 2 : 0;                                                                 \
            at = run->with_nan ? at : -1;                                                                     \
        }                                                                                                     \
        at = at < 0 ? nth(pairs, run->n, rank, counts) : at;                                                  \
        *row->places = at;                                                                                    \
        copy_element(row->values, row->x + at * run->inner * run->size, run->size);                           \
    }

ORDER(pair_u32, keys_u32, values_u32, sort_u32, nth_u32, top_u32, take_u32, run_row_u32, 32)
ORDER(pair_u64, keys_u64, values_u64, sort_u64, nth_u64, top_u64, take_u64, run_row_u64, 64)

static void run_rows(void *context, npy_intp begin, npy_intp end) {
    order_run *const state = context;
    const order_call *run = &state->of;
    if (state->side_by_side) {
        PICK(sort_loops)->rows[run->type](run, begin, end - begin);
        return;
    }
    const bool wide = run->size == 8;
    const size_t pairs = (size_t)run->n * (run->op <= TOP ? 2 : 1) * (wide ? sizeof(pair_u64) : sizeof(pair_u32));
    const size_t bytes = pairs + RADIX_COUNTS * sizeof(uint32_t);
    char *room = native_scratch(bytes);
    if (!room) {
        state->failed = true;
        return;
    }
    uint32_t *counts = (uint32_t *)(room + pairs);
    for (; begin < end; begin++) {
        const npy_intp from = order_start(run, begin), to = order_target(run, begin);
        const order_row row = {run, run->x + from * run->size, run->values + to * run->size, run->places + to, state->rows == 1};
        (wide ? run_row_u64 : run_row_u32)(&row, room, counts);
    }
    native_scratch_free(room, bytes);
}

static PyObject *run_order(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const order_op op = *(const order_op *)kernel->data;
    PyObject *options[OPTIONS], *answer = NULL;
    double dim, k = 1;
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, names, OPTIONS, options) ||
        !native_double(options[DIM], &dim) || ((op == TOP || op == KTH) && !native_double(options[K], &k)))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)args[0];
    const int ndim = PyArray_NDIM(array), at = (int)dim;
    const npy_intp n = native_has_dim(array, at) ? native_length(array, at) : 0;
    if (!PyArray_SIZE(array) || !n || n > UINT32_MAX / 2 || k < 1 || k > n)
        return NULL;
    PyArrayObject *x = native_dense(args[0]);
    if (!x)
        return NULL;
    npy_intp shape[NATIVE_DIMS], before, inner;
    int dims = 0;
    for (int i = 0; i < ndim; i++) {
        if (op <= TOP || i != at)
            shape[dims++] = op == TOP && i == at ? (npy_intp)k : PyArray_DIM(x, i);
        else if (options[KEEPDIM] && PyObject_IsTrue(options[KEEPDIM]) == 1)
            shape[dims++] = 1;
    }
    native_around(x, at, &before, &inner);
    PyArrayObject *values = native_empty(dims, shape, type), *places = native_empty(dims, shape, TYPE_I64);
    if (values && places) {
        order_run run = {{.op = op, .type = type, .x = PyArray_BYTES(x), .values = PyArray_BYTES(values),
                          .places = PyArray_DATA(places), .n = n, .inner = inner, .size = TYPE_SIZE[type],
                          .kept = op == TOP ? (npy_intp)k : n, .rank = (npy_intp)k - 1,
                          .descending = (op == SORT && options[DESCENDING] == Py_True) || (op == TOP && options[LARGEST] != Py_False),
                          .with_nan = options[WITH_NAN] != Py_False}};
        run.rows = before * inner;
        run.side_by_side = run.of.n <= FEW || (run.rows >= 8 && run.of.n <= (op <= TOP ? IN_ORDER : PICKED));
        native_evenly(run.rows, native_grain(GRAIN, run.of.n), run_rows, &run);
        answer = run.failed ? PyErr_NoMemory() : PyTuple_Pack(2, (PyObject *)values, (PyObject *)places);
    }
    Py_XDECREF(values);
    Py_XDECREF(places);
    Py_DECREF(x);
    return answer;
}

int sort_init(void) {
    return native_intern(names, NAMES, OPTIONS);
}

const native_spec sort_kernels[] = {
    {"sort", run_order, &(const order_op){SORT}},
    {"topk_beneath", run_order, &(const order_op){TOP}},
    {"kthvalue", run_order, &(const order_op){KTH}},
    {"median_dim", run_order, &(const order_op){MEDIAN}},
    {NULL, NULL, NULL},
};
