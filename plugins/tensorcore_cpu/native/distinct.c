/* Distinct elements: integers that lie near each other are counted or marked, the keys of others are sorted. */
#include "distinct.h"

#include "halves.h"
#include "nonzero.h"
#include "radix.h"
#include "rows.h"
#include "sort.h"

DECLARE_LOOPS(nonzero_loops, nonzero_loops);

static const nonzero_loops *loops;

enum { CONSECUTIVE, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    WAYS = 4, FEW_NUMBERS = 1 << 11, /* of few numbers, neighbours are counted apart: equal ones would wait for each other */
    NEAR = 1 << 10,                  /* so many numbers are near each other, and up to four for each element, */
    FAR = 1 << 22,                   /* but not more than fit the caches */
    PIECE = 1 << 14, BLOCK = 512,    /* elements of a thread's part, and numbers that are listed at a time */
};

/* The loops over integers of one type, counted from the least of them. */
typedef struct {
    void (*mark)(const void *x, npy_intp count, int64_t low, uint8_t *seen);
    void (*count)(const void *x, npy_intp count, int64_t low, npy_intp range, int ways, uint32_t *times);
    void (*place)(const void *x, npy_intp count, int64_t low, const uint32_t *places, int64_t *inverse);
    void (*value)(void *values, npy_intp i, int64_t number);
} number_loops;

#define NUMBERS(suffix, type)                                                                                 \
    static void mark_##suffix(const void *data, npy_intp count, int64_t low, uint8_t *seen) {                 \
        const type *x = data;                                                                                 \
        for (npy_intp i = 0; i < count; i++)                                                                  \
            seen[x[i] - low] = 1;                                                                             \
    }                                                                                                         \
    static void count_##suffix(const void *data, npy_intp count, int64_t low, npy_intp range, int ways, uint32_t *times) {\
        const type *x = data;                                                                                 \
        npy_intp i = 0;                                                                                       \
        for (; ways == WAYS && i + WAYS <= count; i += WAYS)                                                  \
            for (int way = 0; way < WAYS; way++)                                                              \
                times[way * range + x[i + way] - low]++;                                                      \
        for (; i < count; i++)                                                                                \
            times[x[i] - low]++;                                                                              \
    }                                                                                                         \
    static void place_##suffix(const void *data, npy_intp count, int64_t low, const uint32_t *places, int64_t *inverse) {\
        const type *x = data;                                                                                 \
        for (npy_intp i = 0; i < count; i++)                                                                  \
            inverse[i] = places[x[i] - low];                                                                  \
    }                                                                                                         \
    static void value_##suffix(void *values, npy_intp i, int64_t number) { ((type *)values)[i] = (type)number; }
NUMBERS(i8, int8_t)
NUMBERS(i16, int16_t)
NUMBERS(i32, int32_t)
NUMBERS(i64, int64_t)
NUMBERS(u8, uint8_t)
#define LOOPS_OF(suffix) {mark_##suffix, count_##suffix, place_##suffix, value_##suffix}
static const number_loops NUMBER_LOOPS[TYPES] = {
    [TYPE_I8] = LOOPS_OF(i8),   [TYPE_I16] = LOOPS_OF(i16), [TYPE_I32] = LOOPS_OF(i32),
    [TYPE_I64] = LOOPS_OF(i64), [TYPE_U8] = LOOPS_OF(u8),
};

PyObject *native_all_three(PyArrayObject *values, PyArrayObject *inverse, PyArrayObject *lengths) {
    if (values && inverse && lengths)
        return Py_BuildValue("NNN", values, inverse, lengths);
    Py_XDECREF(values);
    Py_XDECREF(inverse);
    Py_XDECREF(lengths);
    return NULL;
}

/* The least of the integers, and how many there are up to the largest; false where those are too many, or they are no integers. */
static bool are_near(PyArrayObject *x, native_type type, int64_t *low, npy_intp *range) {
    int64_t high;
    if (!NUMBER_LOOPS[type].mark || !native_integer_bounds(x, type, low, &high))
        return false;
    const npy_intp count = PyArray_SIZE(x), most = count < FAR / 4 ? 4 * count + NEAR : FAR;
    const uint64_t apart = (uint64_t)high - (uint64_t)*low;
    *range = (npy_intp)apart + 1;
    return apart < (uint64_t)most;
}

static PyObject *near_numbers(PyArrayObject *x, native_type type, int64_t low, npy_intp range) {
    npy_intp found = 0;
    const number_loops *numbers = &NUMBER_LOOPS[type];
    const npy_intp count = PyArray_SIZE(x);
    const int ways = range <= FEW_NUMBERS && count > range ? WAYS : 1;
    const size_t bytes = (size_t)(range * ways) * sizeof(uint32_t);
    uint32_t *times = native_scratch(bytes);
    if (!times)
        return PyErr_NoMemory();
    memset(times, 0, bytes);
    numbers->count(PyArray_DATA(x), count, low, range, ways, times);
    for (npy_intp k = 0; k < range; k++) {
        for (int way = 1; way < ways; way++)
            times[k] += times[way * range + k];
        found += times[k] != 0;
    }
    PyArrayObject *values = native_empty(1, &found, type), *lengths = native_empty(1, &found, TYPE_I64);
    PyArrayObject *inverse = native_empty(PyArray_NDIM(x), PyArray_DIMS(x), TYPE_I64);
    if (values && lengths && inverse) {
        uint32_t at = 0;
        for (npy_intp k = 0; k < range; k++)
            if (times[k]) {
                numbers->value(PyArray_DATA(values), at, low + k);
                ((int64_t *)PyArray_DATA(lengths))[at] = times[k];
                times[k] = at++;
            }
        numbers->place(PyArray_DATA(x), count, low, times, PyArray_DATA(inverse));
    }
    native_scratch_free(times, bytes);
    return native_all_three(values, inverse, lengths);
}

/* The values by themselves */

static PyArrayObject *near_values(PyArrayObject *x, native_type type, int64_t low, npy_intp range) {
    uint8_t *seen = native_scratch((size_t)range);
    if (!seen)
        return (PyArrayObject *)PyErr_NoMemory();
    memset(seen, 0, (size_t)range);
    NUMBER_LOOPS[type].mark(PyArray_DATA(x), PyArray_SIZE(x), low, seen);
    npy_intp found = loops->count[0](seen, range, false), at = 0;
    PyArrayObject *values = native_empty(1, &found, type);
    int64_t places[BLOCK];
    for (npy_intp first = 0; values && first < range; first += BLOCK) {
        const npy_intp more = loops->list[0](seen + first, range - first < BLOCK ? range - first : BLOCK, false, places);
        for (npy_intp k = 0; k < more; k++)
            NUMBER_LOOPS[type].value(PyArray_DATA(values), at++, low + first + places[k]);
    }
    native_scratch_free(seen, (size_t)range);
    return values;
}

/* Which loops find the runs of elements of a type: floats are compared as such, other elements as the bits of their size. */
static int runs_of(native_type type) {
    return type == TYPE_F32    ? RUNS_F32
           : type == TYPE_F64  ? RUNS_F64
           : type == TYPE_BOOL ? RUNS_BOOL
                               : RUNS_BITS + native_log_size(TYPE_SIZE[type]);
}

typedef struct {
    const char *x;
    char *made;
    npy_intp *found; /* of each piece, where its first goes later */
    int runs, size;
} changes;

static void count_changes(void *context, npy_intp begin, npy_intp end) {
    const changes *run = context;
    for (npy_intp first = begin; first < end; first += PIECE) {
        const npy_intp from = first ? first : 1, some = (first + PIECE < end ? first + PIECE : end) - from;
        run->found[first / PIECE] = !first + loops->count_changes[run->runs](run->x + from * run->size, some);
    }
}

static void pick_changes(void *context, npy_intp begin, npy_intp end) {
    const changes *run = context;
    for (npy_intp first = begin; first < end; first += PIECE) {
        const npy_intp from = first ? first : 1, some = (first + PIECE < end ? first + PIECE : end) - from;
        if (!first)
            memcpy(run->made, run->x, (size_t)run->size);
        const npy_intp to = run->found[first / PIECE] + !first;
        loops->pick_changes[run->runs](run->x + from * run->size, some, run->made + to * run->size);
    }
}

static void pick_all(void *context, npy_intp begin, npy_intp end) {
    const changes *run = context;
    memcpy(run->made, run->x, (size_t)run->size);
    *run->found = 1 + loops->pick_changes[run->runs](run->x + run->size, end - 1, run->made + run->size);
}

/* On one thread, where nothing has to be counted first: into room for all of them. An array that fills most of it keeps it, since
   to read the elements twice takes longer than to make them. */
static PyArrayObject *firsts_in_one_pass(const void *x, npy_intp count, native_type type) {
    npy_intp found = 0;
    PyArrayObject *made = native_empty(1, &count, type);
    if (!made)
        return NULL;
    native_without_gil(count, pick_all, &(changes){x, PyArray_BYTES(made), &found, runs_of(type), TYPE_SIZE[type]});
    if (2 * found > count) {
        PyArray_DIMS(made)[0] = found;
        return made;
    }
    PyArrayObject *few = native_empty(1, &found, type);
    if (few)
        memcpy(PyArray_BYTES(few), PyArray_BYTES(made), (size_t)(found * TYPE_SIZE[type]));
    Py_DECREF(made);
    return few;
}

/* Each count becomes the sum of those before it; the sum of all. */
static npy_intp sums_before(npy_intp *counts, npy_intp count) {
    npy_intp all = 0;
    for (npy_intp i = 0; i < count; i++) {
        const npy_intp here = counts[i];
        counts[i] = all;
        all += here;
    }
    return all;
}

/* The first of each run of equal elements, and `more` elements of room behind them. */
static PyArrayObject *firsts_of_runs(const void *x, npy_intp count, native_type type, npy_intp more) {
    if (!count)
        return native_empty(1, &more, type);
    if (!more && count > PIECE && native_threads() == 1)
        return firsts_in_one_pass(x, count, type);
    const npy_intp pieces = (count + PIECE - 1) / PIECE;
    npy_intp few[8], *found = pieces <= 8 ? few : PyMem_Malloc((size_t)pieces * sizeof *found);
    if (!found)
        return (PyArrayObject *)PyErr_NoMemory();
    changes run = {x, NULL, found, runs_of(type), TYPE_SIZE[type]};
    native_parallel(count, PIECE, count_changes, &run);
    const npy_intp all = sums_before(found, pieces) + more;
    PyArrayObject *made = native_empty(1, &all, type);
    if (made) {
        run.made = PyArray_BYTES(made);
        native_parallel(count, PIECE, pick_changes, &run);
    }
    if (found != few)
        PyMem_Free(found);
    return made;
}

/* Keys, or pairs of them with their places, of an array, which are left one behind the other from `sorted` on. */
typedef struct {
    const void *x;
    void *sorted;
} ordered;

#define MAKE_AND_TAKE(name, item, type, ITEM)                                                                 \
    static void make_##name(const void *context, npy_intp begin, npy_intp end, item *made) {                  \
        const type *x = ((const ordered *)context)->x;                                                        \
        for (npy_intp i = begin; i < end; i++)                                                                \
            made[i - begin] = ITEM;                                                                           \
    }                                                                                                         \
    static void take_##name(const void *context, npy_intp first, npy_intp count, const item *sorted) {        \
        item *there = (item *)((const ordered *)context)->sorted + first;                                     \
        if (there != sorted)                                                                                  \
            memcpy(there, sorted, (size_t)count * sizeof *there);                                             \
    }

/* Sorted pairs of the elements of x, a piece at a time: how many runs begin in each, which becomes how many begin before it, and how
   many of its first pairs belong to a run that began earlier. */
typedef struct {
    const void *x, *sorted;
    npy_intp *before, *earlier;
    void *values;
    int64_t *inverse, *lengths;
} pieces_of_pairs;

#define ITSELF(key) (key)
RADIX(sort_u32, uint32_t, ITSELF, 32)
RADIX(sort_u64, uint64_t, ITSELF, 64)
RADIX(sort_pairs_u32, pair_u32, PAIR_KEY, 32)
RADIX(sort_pairs_u64, pair_u64, PAIR_KEY, 64)

/* Keys of the elements, sorted: the first of each run of them, or with their places all three. NaN has the largest key, and is
   there as often as it was. Of zeros the first one's sign counts. */
#define SORTED(name, bits, type, KEY, VALUE, NANS)                                                            \
    MAKE_AND_TAKE(name, uint##bits##_t, type, KEY(x[i]))                                                      \
    MAKE_AND_TAKE(pairs_##name, pair_u##bits, type, ((pair_u##bits){KEY(x[i]), (uint##bits##_t)i}))           \
                                                                                                              \
    static PyArrayObject *values_##name(PyArrayObject *array) {                                               \
        const type *x = PyArray_DATA(array);                                                                  \
        const npy_intp n = PyArray_SIZE(array);                                                               \
        const size_t bytes = 2 * (size_t)n * sizeof(uint##bits##_t) + RADIX_COUNTS * sizeof(uint32_t);        \
        uint##bits##_t *keys = native_scratch(bytes), *sorted;                                                \
        if (!keys)                                                                                            \
            return (PyArrayObject *)PyErr_NoMemory();                                                         \
        sorted = keys + n;                                                                                    \
        const ordered run = {x, sorted};                                                                      \
        sort_u##bits(&(sort_u##bits##_task){n, true, make_##name, take_##name, &run}, keys, (uint32_t *)(keys + 2 * n)); \
        npy_intp numbers = n;                                                                                 \
        while (NANS && numbers && !(uint##bits##_t)~sorted[numbers - 1])                                      \
            numbers--;                                                                                        \
        PyArrayObject *made = firsts_of_runs(sorted, numbers, TYPE_I##bits, n - numbers);                     \
        const npy_intp found = made ? PyArray_SIZE(made) : 0;                                                 \
        PyArrayObject *values = made ? native_empty(1, &found, TYPE_OF_##name) : NULL;                        \
        for (npy_intp i = 0, zero = 0; values && i < found; i++) {                                            \
            type value = VALUE(i < found - (n - numbers) ? ((uint##bits##_t *)PyArray_DATA(made))[i] : (uint##bits##_t)-1);\
            while (NANS && !value && x[zero])                                                                 \
                zero++;                                                                                       \
            ((type *)PyArray_DATA(values))[i] = NANS && !value ? x[zero] : value;                             \
        }                                                                                                     \
        Py_XDECREF(made);                                                                                     \
        native_scratch_free(keys, bytes);                                                                     \
        return values;                                                                                        \
    }                                                                                                         \
                                                                                                              \
    static inline bool begins_##name(const pair_u##bits *pairs, npy_intp i) {                                 \
        return !i || pairs[i].key != pairs[i - 1].key || (NANS && !(uint##bits##_t)~pairs[i].key);            \
    }                                                                                                         \
                                                                                                              \
    static void begin_##name(void *context, npy_intp begin, npy_intp end) {                                   \
        const pieces_of_pairs *run = context;                                                                 \
        const pair_u##bits *pairs = run->sorted;                                                              \
        for (npy_intp first = begin; first < end; first += PIECE) {                                           \
            const npy_intp last = first + PIECE < end ? first + PIECE : end;                                  \
            npy_intp begun = 0;                                                                               \
            for (npy_intp i = first; i < last; i++)                                                           \
                begun += begins_##name(pairs, i);                                                             \
            run->before[first / PIECE] = begun;                                                               \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    static void number_##name(void *context, npy_intp begin, npy_intp end) {                                  \
        const pieces_of_pairs *run = context;                                                                 \
        const pair_u##bits *pairs = run->sorted;                                                              \
        for (npy_intp first = begin, i = begin; first < end; first += PIECE) {                                \
            const npy_intp last = first + PIECE < end ? first + PIECE : end;                                  \
            npy_intp at = run->before[first / PIECE] - 1;                                                     \
            for (; i < last && !begins_##name(pairs, i); i++)                                                 \
                run->inverse[pairs[i].at] = at;                                                               \
            run->earlier[first / PIECE] = i - first;                                                          \
            for (; i < last; i++) {                                                                           \
                if (begins_##name(pairs, i)) {                                                                \
                    const type value = VALUE(pairs[i].key);                                                   \
                    ((type *)run->values)[++at] = NANS && !value ? ((const type *)run->x)[pairs[i].at] : value; \
                    run->lengths[at] = 0;                                                                     \
                }                                                                                             \
                run->lengths[at]++;                                                                           \
                run->inverse[pairs[i].at] = at;                                                               \
            }                                                                                                 \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    static PyObject *three_##name(PyArrayObject *array) {                                                     \
        const type *x = PyArray_DATA(array);                                                                  \
        const npy_intp n = PyArray_SIZE(array);                                                               \
        const size_t bytes = 2 * (size_t)n * sizeof(pair_u##bits) + RADIX_COUNTS * sizeof(uint32_t);          \
        pair_u##bits *pairs = native_scratch(bytes), *sorted;                                                 \
        if (!pairs)                                                                                           \
            return PyErr_NoMemory();                                                                          \
        sorted = pairs + n;                                                                                   \
        const ordered whole = {x, sorted};                                                                    \
        sort_pairs_u##bits(&(sort_pairs_u##bits##_task){n, true, make_pairs_##name, take_pairs_##name, &whole}, pairs, \
                           (uint32_t *)(pairs + 2 * n));                                                      \
        const npy_intp pieces = (n + PIECE - 1) / PIECE;                                                      \
        npy_intp *counts = PyMem_Malloc(2 * (size_t)pieces * sizeof *counts);                                 \
        pieces_of_pairs run = {x, sorted, counts, counts + pieces, NULL, NULL, NULL};                         \
        if (counts)                                                                                           \
            native_parallel(n, PIECE, begin_##name, &run);                                                    \
        const npy_intp found = counts ? sums_before(counts, pieces) : 0;                                      \
        PyArrayObject *values = counts ? native_empty(1, &found, TYPE_OF_##name) : (PyArrayObject *)PyErr_NoMemory(); \
        PyArrayObject *lengths = values ? native_empty(1, &found, TYPE_I64) : NULL;                           \
        PyArrayObject *inverse = lengths ? native_empty(PyArray_NDIM(array), PyArray_DIMS(array), TYPE_I64) : NULL; \
        if (inverse) {                                                                                        \
            run.values = PyArray_DATA(values);                                                                \
            run.inverse = PyArray_DATA(inverse);                                                              \
            run.lengths = PyArray_DATA(lengths);                                                              \
            native_parallel(n, PIECE, number_##name, &run);                                                   \
            for (npy_intp piece = 1; piece < pieces; piece++)                                                 \
                run.lengths[run.before[piece] - 1] += run.earlier[piece];                                     \
        }                                                                                                     \
        PyMem_Free(counts);                                                                                   \
        native_scratch_free(pairs, bytes);                                                                    \
        return native_all_three(values, inverse, lengths);                                                    \
    }
enum { TYPE_OF_f32 = TYPE_F32, TYPE_OF_f64 = TYPE_F64, TYPE_OF_i16 = TYPE_I16, TYPE_OF_i32 = TYPE_I32, TYPE_OF_i64 = TYPE_I64 };
SORTED(f32, 32, float, key_of_float, float_of_key, true)
SORTED(f64, 64, double, key_of_double, double_of_key, true)
SORTED(i16, 32, int16_t, key_of_i16, i16_of_key, false)
SORTED(i32, 32, int32_t, key_of_i32, i32_of_key, false)
SORTED(i64, 64, int64_t, key_of_i64, i64_of_key, false)
static PyArrayObject *(*const VALUES[TYPES])(PyArrayObject *) = {
    [TYPE_F32] = values_f32, [TYPE_F64] = values_f64, [TYPE_I16] = values_i16, [TYPE_I32] = values_i32, [TYPE_I64] = values_i64};
static PyObject *(*const THREES[TYPES])(PyArrayObject *) = {
    [TYPE_F32] = three_f32, [TYPE_F64] = three_f64, [TYPE_I16] = three_i16, [TYPE_I32] = three_i32, [TYPE_I64] = three_i64};

PyObject *native_distinct(PyArrayObject *x, native_type type) {
    int64_t low;
    npy_intp range;
    if (PyArray_SIZE(x) > UINT32_MAX / 2)
        return NULL;
    if (are_near(x, type, &low, &range))
        return near_numbers(x, type, low, range);
    return THREES[type] ? THREES[type](x) : NULL;
}

static PyArrayObject *values_of(PyArrayObject *x, native_type type, bool consecutive) {
    int64_t low;
    npy_intp range;
    if (PyArray_SIZE(x) > UINT32_MAX / 2)
        return NULL;
    if (consecutive)
        return firsts_of_runs(PyArray_DATA(x), PyArray_SIZE(x), type, 0);
    return are_near(x, type, &low, &range) ? near_values(x, type, low, range)
           : VALUES[type]                    ? VALUES[type](x)
                                             : NULL;
}

/* distinct(x, *, consecutive=False): of halves as floats, which have all of their values. */
static PyObject *run_distinct(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *options[OPTIONS] = {NULL};
    const native_type type = nargs == 1 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !PyArray_SIZE((PyArrayObject *)args[0]) ||
        (kwnames && !native_options(args, nargs, kwnames, names, OPTIONS, options)))
        return NULL;
    PyArrayObject *x = native_dense(args[0]), *made;
    if (x && native_is_half(type))
        Py_SETREF(x, (PyArrayObject *)native_converted(x, type, TYPE_F32));
    if (!x)
        return NULL;
    made = values_of(x, native_is_half(type) ? TYPE_F32 : type, options[CONSECUTIVE] == Py_True);
    if (made && native_is_half(type))
        Py_SETREF(made, (PyArrayObject *)native_converted(made, TYPE_F32, type));
    Py_DECREF(x);
    return (PyObject *)made;
}

int distinct_init(void) {
    loops = PICK(nonzero_loops);
    return native_intern(names, (const char *const[]){"consecutive"}, OPTIONS);
}

const native_spec distinct_kernels[] = {
    {"distinct", run_distinct, NULL},
    {NULL, NULL, NULL},
};
