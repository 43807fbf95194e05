/* Reductions of rows and of strips of columns: extremes, running sums, and the sums of sums.h. */
#include "sums.h"

#include <string.h>

/* The bits of a where the mask is set, else those of b. */
#define CHOOSE(vector, mask_vector, mask, a, b) \
    ((vector)(((mask_vector)(a) & (mask)) | ((mask_vector)(b) & ~(mask))))

#define ROW_EXTREME(name, type, vector, mask_vector, lanes, beats)                                            \
    ALWAYS_INLINE vector name##_of_two(vector x, vector best) {                                               \
        mask_vector mask = (x beats best) | (x != x);                                                         \
        return CHOOSE(vector, mask_vector, mask, x, best);                                                    \
    }                                                                                                         \
    static type name##_of_any(const type *data, ptrdiff_t count) {                                            \
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
    }                                                                                                         \
    /* One instruction, where neither is NaN. */                                                              \
    ALWAYS_INLINE vector name##_of_numbers(vector x, vector best) {                                           \
        vector made;                                                                                          \
        for (int k = 0; k < lanes; k++)                                                                       \
            made[k] = x[k] beats best[k] ? x[k] : best[k];                                                    \
        return made;                                                                                          \
    }                                                                                                         \
    /* The sums are NaN where an element is, or infinities meet: then all are looked at again, one by one. */ \
    static type name(const type *data, ptrdiff_t count) {                                                     \
        const ptrdiff_t step = 4 * lanes;                                                                     \
        if (count < 2 * step)                                                                                 \
            return name##_of_any(data, count);                                                                \
        vector best[4], sum[4];                                                                               \
        for (int k = 0; k < 4; k++)                                                                           \
            best[k] = sum[k] = *(const vector##_u *)(data + k * lanes);                                       \
        for (ptrdiff_t i = step; i <= count - step; i += step)                                                \
            for (int k = 0; k < 4; k++) {                                                                     \
                const vector x = *(const vector##_u *)(data + i + k * lanes);                                 \
                best[k] = name##_of_numbers(x, best[k]);                                                      \
                sum[k] += x;                                                                                  \
            }                                                                                                 \
        sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);                                                       \
        best[0] = name##_of_numbers(name##_of_numbers(best[0], best[1]), name##_of_numbers(best[2], best[3])); \
        type found[lanes + 1], total = 0;                                                                     \
        memcpy(found, &best[0], sizeof best[0]);                                                              \
        for (int k = 0; k < lanes; k++)                                                                       \
            total += sum[0][k];                                                                               \
        const ptrdiff_t rest = count % step;                                                                  \
        found[lanes] = rest ? name##_of_any(data + count - rest, rest) : found[0];                            \
        return total != total ? name##_of_any(data, count) : name##_of_any(found, lanes + 1);                 \
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

#define FAMILY(suffix, type, vector, mask_vector, lanes, index)                                               \
    ROW_EXTREME(largest_##suffix, type, vector, mask_vector, lanes, >)                                        \
    ROW_EXTREME(smallest_##suffix, type, vector, mask_vector, lanes, <)                                       \
    STRIP_EXTREME(largest_strip_##suffix, type, index, >)                                                     \
    STRIP_EXTREME(smallest_strip_##suffix, type, index, <)                                                    \
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

FAMILY(f32, float, vf, vi, LANES_F32, int32_t)
FAMILY(f64, double, vd, vl, LANES_F64, int64_t)

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

#define SUMS(from, columns)                                                                                   \
    .sum = sum_##from, .apart = apart_##from, .away = away_##from, .sum_strip = sum_##columns##_##from,       \
    .apart_strip = apart_strip_##from, .away_strip = away_strip_##from
#define FUNCTIONS(suffix)                                                                                     \
    {SUMS(suffix, columns), .extreme = extreme_##suffix, .place = place_##suffix, .extreme_strip = extreme_strip_##suffix, \
     .place_strip = place_strip_##suffix, .scan = scan_##suffix, .scan_strip = scan_strip_##suffix}

const reduce_loops ISA(reduce_loops) = {
    {[TYPE_F32] = FUNCTIONS(f32), [TYPE_F64] = FUNCTIONS(f64), [TYPE_BF16] = {SUMS(bf16, halves)}, [TYPE_F16] = {SUMS(f16, halves)}},
    any_byte, all_bytes,
};
