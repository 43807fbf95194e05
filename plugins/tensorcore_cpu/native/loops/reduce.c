/* Reductions of rows and of strips of columns. */
#include "loop.h"

#include "../reduce.h"

#include <string.h>

/* Adds with what the addition loses (Neumaier's form of Kahan's sum would compare; Knuth's needs no comparison). */
ALWAYS_INLINE void add_exactly(double *sum, double *lost, double x) {
    double before = *sum, after = before + x, part = after - before;
    *lost += (before - (after - part)) + (x - part);
    *sum = after;
}

/* Blocks of so many additions a lane, in four lanes of vectors; then the sum goes on in double. */
enum { FLUSH_f32 = 16, FLUSH_f64 = 8 };

/* Rows are read by 32 bytes at most, which two loads of a cycle do as one of 64 does, and half as often across a line of the
   cache: rows that begin anywhere then keep up with the second cache. */
enum { ROW_VECTOR = VECTOR < 32 ? VECTOR : 32, ROW_F32 = ROW_VECTOR / 4, ROW_F64 = ROW_VECTOR / 8, CHAINS = 8 };

/* The same for loops that the compiler makes vectors of. */
#if VECTOR > 32 && !defined(__clang__)
#define SHORT_VECTORS __attribute__((target("prefer-vector-width=256")))
#else
#define SHORT_VECTORS
#endif

typedef float row_f32 __attribute__((vector_size(ROW_VECTOR)));
typedef double row_f64 __attribute__((vector_size(ROW_VECTOR)));
typedef int32_t row_i32 __attribute__((vector_size(ROW_VECTOR)));
typedef int64_t row_i64 __attribute__((vector_size(ROW_VECTOR)));
typedef float half_f32 __attribute__((vector_size(ROW_VECTOR / 2)));

/* The sums of blocks, in double; for doubles with what the additions lose. */
typedef struct {
    row_f64 sum, lost;
} wide_sum;

ALWAYS_INLINE void add_block_f32(wide_sum *to, row_f32 block) {
    half_f32 halves[2];
    memcpy(halves, &block, sizeof block);
    to->sum += __builtin_convertvector(halves[0], row_f64) + __builtin_convertvector(halves[1], row_f64);
}

ALWAYS_INLINE void add_block_f64(wide_sum *to, row_f64 block) {
    row_f64 before = to->sum, after = before + block, part = after - before;
    to->lost += (before - (after - part)) + (block - part);
    to->sum = after;
}

ALWAYS_INLINE double total_f32(wide_sum of, double rest) {
    double lanes[ROW_F64];
    memcpy(lanes, &of.sum, sizeof lanes);
    for (int width = ROW_F64 / 2; width; width /= 2)
        for (int k = 0; k < width; k++)
            lanes[k] += lanes[k + width];
    return lanes[0] + rest;
}

ALWAYS_INLINE double total_f64(wide_sum of, double rest) {
    double sum = rest, lost = 0, lanes_lost = 0;
    for (int k = 0; k < ROW_F64; k++) {
        add_exactly(&sum, &lost, of.sum[k]);
        lanes_lost += of.lost[k];
    }
    lost += lanes_lost;
    return lost == lost ? sum + lost : sum; /* infinities lose a NaN */
}

/* All bits of the last `n` lanes are those from TAIL + n on. */
static const int32_t TAIL_f32[2 * ROW_F32] = {[ROW_F32 ... 2 * ROW_F32 - 1] = -1};
static const int64_t TAIL_f64[2 * ROW_F64] = {[ROW_F64 ... 2 * ROW_F64 - 1] = -1};

#define ROW_SUM(name, suffix, type, mask, lanes, expression)                                                  \
    static double name(const void *row, ptrdiff_t count, double centre) {                                     \
        typedef row_##suffix anywhere __attribute__((aligned(1), may_alias));                                 \
        typedef row_##mask mask_anywhere __attribute__((aligned(1), may_alias));                              \
        const type *data = row, c = (type)centre;                                                             \
        wide_sum sum = {{0}, {0}};                                                                            \
        ptrdiff_t i = 0;                                                                                      \
        (void)c;                                                                                              \
        while (count - i >= lanes) {                                                                          \
            row_##suffix s[CHAINS] = {{0}}, x;                                                                \
            ptrdiff_t end = i + (count - i) / (CHAINS * lanes) * (CHAINS * lanes);                            \
            end = end - i > FLUSH_##suffix * CHAINS * lanes ? i + FLUSH_##suffix * CHAINS * lanes : end;      \
            for (; i < end; i += CHAINS * lanes)                                                              \
                for (int k = 0; k < CHAINS; k++) {                                                            \
                    x = *(const anywhere *)(data + i + k * lanes);                                            \
                    s[k] += expression;                                                                       \
                }                                                                                             \
            if (count - i < CHAINS * lanes) { /* what is left belongs to the last block: a short row has no other */ \
                for (int k = 0; k < CHAINS && count - i >= lanes; k++, i += lanes) {                          \
                    x = *(const anywhere *)(data + i);                                                        \
                    s[k] += expression;                                                                       \
                }                                                                                             \
                if (i < count) { /* the last vector but for what is counted already */                        \
                    x = *(const anywhere *)(data + count - lanes);                                            \
                    row_##suffix all = expression;                                                            \
                    s[CHAINS - 1] += (row_##suffix)((row_##mask)all & *(const mask_anywhere *)(TAIL_##suffix + (count - i))); \
                    i = count;                                                                                \
                }                                                                                             \
            }                                                                                                 \
            add_block_##suffix(&sum, ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));      \
        }                                                                                                     \
        double rest = 0;                                                                                      \
        for (; i < count; i++) {                                                                              \
            type x = data[i];                                                                                 \
            rest += expression;                                                                               \
        }                                                                                                     \
        return total_##suffix(sum, rest);                                                                     \
    }

/* The sum of so many of s. */
#define PAIRS_1(k) s[k]
#define PAIRS_4(k) ((s[k] + s[k + 1]) + (s[k + 2] + s[k + 3]))
#define PAIRS_8(k) (PAIRS_4(k) + PAIRS_4(k + 4))

/* Adds N rows to into[width]: what they are together in the elements' own precision. A function of its own keeps the places of
   eight rows in registers. Sixteen rows would be more lines than a set of the cache has places, where they lie 4 kB apart. */
#define STRIP_ROWS(N, name, type, EXACT, expression)                                                          \
    SHORT_VECTORS static __attribute__((noinline)) void name##_##N(const type *data, ptrdiff_t step, ptrdiff_t width, \
                                                                   const double *centre, double *into, double *lost) { \
        INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                                   \
            type c = (type)centre[j], s[N];                                                                   \
            (void)c;                                                                                          \
            for (int k = 0; k < N; k++) {                                                                     \
                type x = data[k * step + j];                                                                  \
                s[k] = expression;                                                                            \
            }                                                                                                 \
            if (EXACT)                                                                                        \
                add_exactly(&into[j], &lost[j], PAIRS_##N(0));                                                \
            else                                                                                              \
                into[j] += PAIRS_##N(0);                                                                      \
        }                                                                                                     \
    }

#define STRIP_SUM(name, type, EXACT, expression)                                                              \
    STRIP_ROWS(8, name, type, EXACT, expression)                                                             \
    STRIP_ROWS(4, name, type, EXACT, expression)                                                              \
    STRIP_ROWS(1, name, type, EXACT, expression)                                                              \
    static void name(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, const double *centre, \
                     double *into) {                                                                          \
        double lost[EXACT ? STRIP : 1] = {0};                                                                 \
        const type *at = data;                                                                                \
        ptrdiff_t row = 0;                                                                                    \
        for (; row + 8 <= rows; row += 8)                                                                   \
            name##_8(at + row * step, step, width, centre, into, lost);                                      \
        for (; row + 4 <= rows; row += 4)                                                                     \
            name##_4(at + row * step, step, width, centre, into, lost);                                       \
        for (; row < rows; row++)                                                                             \
            name##_1(at + row * step, step, width, centre, into, lost);                                       \
        for (ptrdiff_t j = 0; EXACT && j < width; j++)                                                        \
            into[j] += lost[j] == lost[j] ? lost[j] : 0;                                                      \
    }

/* The bits of a where the mask is set, else those of b. */
#define CHOOSE(vector, mask_vector, mask, a, b) \
    ((vector)(((mask_vector)(a) & (mask)) | ((mask_vector)(b) & ~(mask))))

#define ROW_EXTREME(name, type, vector, mask_vector, lanes, beats)                                            \
    ALWAYS_INLINE vector name##_of_two(vector x, vector best) {                                               \
        mask_vector mask = (x beats best) | (x != x);                                                         \
        return CHOOSE(vector, mask_vector, mask, x, best);                                                    \
    }                                                                                                         \
    static type name(const type *data, ptrdiff_t count) {                                                     \
        type best = data[0];                                                                                  \
        if (count < lanes) {                                                                                  \
            for (ptrdiff_t i = 1; i < count; i++)                                                             \
                best = ((data[i] beats best) | (data[i] != data[i])) ? data[i] : best;                        \
            return best;                                                                                      \
        }                                                                                                     \
        const vector##_u *at = (const vector##_u *)data;                                                      \
        ptrdiff_t vectors = count / lanes, i = 1;                                                             \
        vector m0 = at[0], m1 = m0, m2 = m0, m3 = m0;                                                         \
        for (; i + 4 <= vectors; i += 4) {                                                                    \
            m0 = name##_of_two(at[i], m0);                                                                    \
            m1 = name##_of_two(at[i + 1], m1);                                                                \
            m2 = name##_of_two(at[i + 2], m2);                                                                \
            m3 = name##_of_two(at[i + 3], m3);                                                                \
        }                                                                                                     \
        for (; i < vectors; i++)                                                                              \
            m0 = name##_of_two(at[i], m0);                                                                    \
        m1 = name##_of_two(*(const vector##_u *)(data + count - lanes), m1); /* the rest, some of it again */ \
        m0 = name##_of_two(name##_of_two(m0, m1), name##_of_two(m2, m3));                                     \
        type last[lanes];                                                                                     \
        memcpy(last, &m0, sizeof last);                                                                       \
        for (int width = lanes / 2; width; width /= 2)                                                        \
            for (int k = 0; k < width; k++)                                                                   \
                last[k] = ((last[k + width] beats last[k]) | (last[k + width] != last[k + width])) ? last[k + width] : last[k]; \
        best = last[0];                                                                                       \
        return best;                                                                                          \
    }

#define STRIP_EXTREME(name, type, index, beats)                                                               \
    static void name(const type *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, type *values) {       \
        for (ptrdiff_t row = 1; row < rows; row++) {                                                          \
            const type *at = data + row * step;                                                               \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                type x = at[j], best = values[j];                                                             \
                values[j] = ((x beats best) | (x != x)) ? x : best;                                           \
            }                                                                                                 \
        }                                                                                                     \
    }                                                                                                         \
    static void name##_place(const type *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, type *values, \
                             int64_t *places) {                                                               \
        index at_row[STRIP] = {0};                                                                            \
        for (ptrdiff_t row = 1; row < rows; row++) {                                                          \
            const type *at = data + row * step;                                                               \
            index here = (index)row;                                                                          \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                type x = at[j], best = values[j];                                                             \
                /* The first NaN stays. */                                                                    \
                bool better = (x beats best) | ((x != x) & (best == best));                                   \
                values[j] = better ? x : best;                                                                \
                at_row[j] = better ? here : at_row[j];                                                        \
            }                                                                                                 \
        }                                                                                                     \
        for (ptrdiff_t j = 0; j < width; j++)                                                                 \
            places[j] = at_row[j];                                                                            \
    }

#define FAMILY(suffix, type, row, mask, vector, mask_vector, lanes, index, EXACT)                                          \
    ROW_SUM(sum_of_##suffix, suffix, type, mask, row, x)                                             \
    ROW_SUM(away_##suffix, suffix, type, mask, row, ((x - c) * (x - c)))                             \
    STRIP_SUM(sum_strip_of_##suffix, type, EXACT, x)                                                            \
    STRIP_SUM(away_strip_##suffix, type, EXACT, ((x - c) * (x - c)))                                            \
    ROW_EXTREME(largest_##suffix, type, vector, mask_vector, lanes, >)                                        \
    ROW_EXTREME(smallest_##suffix, type, vector, mask_vector, lanes, <)                                       \
    STRIP_EXTREME(largest_strip_##suffix, type, index, >)                                                     \
    STRIP_EXTREME(smallest_strip_##suffix, type, index, <)                                                    \
    static double sum_##suffix(const void *row, ptrdiff_t count) { return sum_of_##suffix(row, count, 0); }   \
    static void sum_strip_##suffix(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width,         \
                                   double *into) {                                                            \
        static const double nothing[STRIP];                                                                   \
        sum_strip_of_##suffix(data, rows, step, width, nothing, into);                                        \
    }                                                                                                         \
    static double extreme_##suffix(const void *row, ptrdiff_t count, bool largest) {                          \
        return largest ? largest_##suffix(row, count) : smallest_##suffix(row, count);                        \
    }                                                                                                         \
    static ptrdiff_t place_##suffix(const void *row, ptrdiff_t count, bool largest) {                         \
        /* The block with the extreme is found first, so that only that one is searched. */                   \
        const type *data = row;                                                                               \
        type best = data[0];                                                                                  \
        ptrdiff_t found = 0;                                                                                  \
        for (ptrdiff_t i = 0; i < count && best == best; i += 1024) {                                         \
            type one = (type)extreme_##suffix(data + i, count - i < 1024 ? count - i : 1024, largest);        \
            if ((largest ? one > best : one < best) || one != one) {                                          \
                best = one;                                                                                   \
                found = i;                                                                                    \
            }                                                                                                 \
        }                                                                                                     \
        /* By 32 as long as it is not among them. */                                                          \
        for (int here = 0; !here && count - found >= 32; found += here ? 0 : 32)                              \
            for (int k = 0; k < 32; k++)                                                                      \
                here |= best == best ? data[found + k] == best : data[found + k] != data[found + k];          \
        /* Of the last 32 the first; what stands before `found` is no extreme. */                             \
        const ptrdiff_t few = count < 32 ? count : 32;                                                        \
        found = count - found < few ? count - few : found;                                                    \
        uint32_t bits = 0;                                                                                    \
        if (few == 32)                                                                                        \
            for (int k = 0; k < 32; k++)                                                                      \
                bits |= (uint32_t)(best == best ? data[found + k] == best : data[found + k] != data[found + k]) << k; \
        else                                                                                                  \
            for (ptrdiff_t k = 0; k < few; k++)                                                               \
                bits |= (uint32_t)(best == best ? data[k] == best : data[k] != data[k]) << k;                 \
        found += __builtin_ctz(bits);                                                                         \
        return found;                                                                                         \
    }                                                                                                         \
    static void extreme_strip_##suffix(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width,     \
                                       bool largest, void *values) {                                          \
        (largest ? largest_strip_##suffix : smallest_strip_##suffix)(data, rows, step, width, values);        \
    }                                                                                                         \
    static void place_strip_##suffix(const void *data, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width,       \
                                     bool largest, void *values, int64_t *places) {                           \
        (largest ? largest_strip_##suffix##_place : smallest_strip_##suffix##_place)(data, rows, step, width, \
                                                                                     values, places);         \
    }                                                                                                         \
    static void scan_##suffix(const void *row, void *result, ptrdiff_t count, double *carry) {                \
        const type *data = row;                                                                               \
        type *made = result;                                                                                  \
        double before = *carry;                                                                               \
        ptrdiff_t i = 0;                                                                                      \
        /* Sums within four do not wait for those before; one addition of four does. */                       \
        for (; i + 4 <= count; i += 4) {                                                                      \
            double a = data[i], b = a + data[i + 1], c = data[i + 2], d = c + data[i + 3];                    \
            made[i] = (type)(before + a);                                                                     \
            made[i + 1] = (type)(before + b);                                                                 \
            made[i + 2] = (type)(before + (b + c));                                                           \
            before += b + d;                                                                                  \
            made[i + 3] = (type)before;                                                                       \
        }                                                                                                     \
        for (; i < count; i++)                                                                                \
            made[i] = (type)(before += data[i]);                                                              \
        *carry = before;                                                                                      \
    }                                                                                                         \
    static void scan_strip_##suffix(const void *data, void *made, ptrdiff_t rows, ptrdiff_t step,             \
                                    ptrdiff_t width) {                                                        \
        double sums[STRIP] = {0};                                                                             \
        for (ptrdiff_t row = 0; row < rows; row++) {                                                          \
            const type *at = (const type *)data + row * step;                                                 \
            type *to = (type *)made + row * step;                                                             \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                               \
                double sum = sums[j] + at[j];                                                                 \
                sums[j] = sum;                                                                                \
                to[j] = (type)sum;                                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }

FAMILY(f32, float, ROW_F32, i32, vf, vi, LANES_F32, int32_t, false)
FAMILY(f64, double, ROW_F64, i64, vd, vl, LANES_F64, int64_t, true)

static bool any_byte(const uint8_t *row, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i += 4096) {
        uint8_t found = 0;
        for (ptrdiff_t k = i, end = count - i < 4096 ? count : i + 4096; k < end; k++)
            found |= row[k];
        if (found)
            return true;
    }
    return false;
}

static bool all_bytes(const uint8_t *row, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i += 4096) {
        uint8_t found = 1;
        for (ptrdiff_t k = i, end = count - i < 4096 ? count : i + 4096; k < end; k++)
            found &= row[k];
        if (!found)
            return false;
    }
    return true;
}

#define FUNCTIONS(suffix)                                                                                     \
    {sum_##suffix, away_##suffix, sum_strip_##suffix, away_strip_##suffix, extreme_##suffix, place_##suffix,  \
     extreme_strip_##suffix, place_strip_##suffix, scan_##suffix, scan_strip_##suffix}

const reduce_loops ISA(reduce_loops) = {{FUNCTIONS(f32), FUNCTIONS(f64)}, any_byte, all_bytes};
