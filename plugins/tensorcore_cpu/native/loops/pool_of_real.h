/* The loops of pools for one type: the rows of a window are joined first, then elements of the joined row. */

/* Scratch: a joined row with its padding, its phases, and three rows of results. */
typedef struct {
    ptrdiff_t padded, phase, stride;
    REAL *joined, *inside, *phases, *row, *other, *third;
} F(pool_space);

ALWAYS_INLINE F(pool_space) F(space_of)(const pool_windows *of, void *scratch, REAL fill) {
    F(pool_space) made = {pool_padded(of), pool_phase(of), of->stride[2]};
    ptrdiff_t length = made.phase * made.stride;
    made.joined = scratch;
    made.inside = made.joined + of->padding[2];
    made.phases = made.stride == 1 ? made.joined : made.joined + length;
    made.row = made.joined + 2 * length;
    made.other = made.row + made.padded;
    made.third = made.other + made.padded;
    for (ptrdiff_t i = 0; i < length; i++)
        made.joined[i] = fill;
    return made;
}

/* The joined row into its phases. */
ALWAYS_INLINE void F(split)(const F(pool_space) *space) {
    REAL *even = space->phases, *odd = even + space->phase;
    const REAL *joined = space->joined;
    if (space->stride == 2) {
        INDEPENDENT for (ptrdiff_t i = 0; i < space->phase; i++) {
            even[i] = joined[2 * i];
            odd[i] = joined[2 * i + 1];
        }
    } else if (space->stride > 2) {
        for (ptrdiff_t k = 0; k < space->stride; k++)
            for (ptrdiff_t i = 0; i < space->phase; i++)
                even[k * space->phase + i] = joined[i * space->stride + k];
    }
}

/* And back. */
ALWAYS_INLINE void F(weave)(const F(pool_space) *space) {
    const REAL *even = space->phases, *odd = even + space->phase;
    REAL *joined = space->joined;
    if (space->stride == 2) {
        INDEPENDENT for (ptrdiff_t i = 0; i < space->phase; i++) {
            joined[2 * i] = even[i];
            joined[2 * i + 1] = odd[i];
        }
    } else if (space->stride > 2) {
        for (ptrdiff_t k = 0; k < space->stride; k++)
            for (ptrdiff_t i = 0; i < space->phase; i++)
                joined[i * space->stride + k] = even[k * space->phase + i];
    }
}

/* Where the elements of a position within the windows begin. */
ALWAYS_INLINE REAL *F(tap)(const pool_windows *of, const F(pool_space) *space, ptrdiff_t kw) {
    ptrdiff_t at = kw * of->dilation[2];
    return space->phases + at % space->stride * space->phase + at / space->stride;
}

/* A NaN on either side is the result. */
ALWAYS_INLINE REAL F(maximum_of)(REAL x, REAL y) { return ((x > y) | (x != x)) ? x : y; }

#define JOIN(name, WITH)                                                                                      \
    /* The rows that an output row's windows have in common, joined, and split. */                            \
    ALWAYS_INLINE void F(name)(const pool_windows *of, const F(pool_space) *space, const REAL *x, ptrdiff_t od, \
                               ptrdiff_t oh, REAL none) {                                                     \
        const REAL *first = NULL;                                                                             \
        REAL *inside = space->inside;                                                                         \
        ptrdiff_t width = of->size[2];                                                                        \
        bool several = false;                                                                                 \
        EACH_ROW(of, od, oh, {                                                                                \
            const REAL *one = x + at_row;                                                                        \
            if (!first) {                                                                                     \
                first = one;                                                                                  \
            } else if (!several) {                                                                            \
                several = true;                                                                               \
                INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)                                             \
                    inside[i] = WITH(first[i], one[i]);                                                       \
            } else {                                                                                          \
                INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)                                             \
                    inside[i] = WITH(inside[i], one[i]);                                                      \
            }                                                                                                 \
        })                                                                                                    \
        if (!several) {                                                                                       \
            for (ptrdiff_t i = 0; i < width; i++)                                                             \
                inside[i] = first ? first[i] : none;                                                          \
        }                                                                                                     \
        F(split)(space);                                                                                      \
    }
#define SUM_OF(x, y) ((x) + (y))
JOIN(join_maxima, F(maximum_of))
JOIN(join_sums, SUM_OF)
#undef SUM_OF
#undef JOIN

/* Maxima */

typedef INT F(places) __attribute__((vector_size(VECTOR)));

/* The larger of each pair of a row; the last vector may make some once more. */
ALWAYS_INLINE void F(max_pairs)(const REAL *x, REAL *made, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count && count >= LANES; i += LANES) {
        const ptrdiff_t at = i + LANES <= count ? i : count - LANES;
        const V low = V_AT(x, 2 * at), high = V_AT(x, 2 * at + LANES);
        const V even = F(unzip)(low, high, 0), odd = F(unzip)(low, high, 1);
        const F(places) first = (even > odd) | (even != even);
        *(V_U *)(made + at) = (V)(((F(places))even & first) | ((F(places))odd & ~first));
    }
    for (ptrdiff_t i = 0; i < count && count < LANES; i++)
        made[i] = F(maximum_of)(x[2 * i], x[2 * i + 1]);
}

/* Windows of two elements of one row each, side by side: nothing is joined or split. */
ALWAYS_INLINE bool F(has_pairs)(const pool_windows *of) {
    return of->kernel[2] == 2 && of->stride[2] == 2 && of->dilation[2] == 1 && 2 * of->count[2] <= of->size[2] &&
           of->kernel[0] == 1 && of->kernel[1] == 1 && !of->padding[0] && !of->padding[1] && !of->padding[2];
}

static void F(max_plane)(const pool_windows *of, const void *from, void *to, void *scratch) {
    REAL *made = to;
    if (F(has_pairs)(of)) {
        for (ptrdiff_t od = 0; od < of->count[0]; od++)
            for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, made += of->count[2])
                F(max_pairs)((const REAL *)from + (od * of->stride[0] * of->size[1] + oh * of->stride[1]) * of->size[2], made,
                             of->count[2]);
        return;
    }
    F(pool_space) space = F(space_of)(of, scratch, -(REAL)INFINITY);
    ptrdiff_t count = of->count[2];
    for (ptrdiff_t od = 0; od < of->count[0]; od++) {
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, made += count) {
            F(join_maxima)(of, &space, from, od, oh, -(REAL)INFINITY);
            const REAL *first = F(tap)(of, &space, 0), *last = F(tap)(of, &space, of->kernel[2] - 1);
            REAL *row = space.row;
            ptrdiff_t padded = space.padded & -POOL_LANES;
            INDEPENDENT for (ptrdiff_t i = 0; i < padded; i++)
                row[i] = F(maximum_of)(first[i], last[i]);
            for (ptrdiff_t kw = 1; kw < of->kernel[2] - 1; kw++) {
                const REAL *next = F(tap)(of, &space, kw);
                INDEPENDENT for (ptrdiff_t i = 0; i < padded; i++)
                    row[i] = F(maximum_of)(row[i], next[i]);
            }
            memcpy(made, row, (size_t)count * sizeof *row);
        }
    }
}

/* Where in a row the first of the largest is, or the last NaN where there is one. */
static ptrdiff_t F(largest)(const void *row, ptrdiff_t count) {
    const REAL *x = row, top = F(row_max)(x, count);
    F(places) at = {0}, odd = {0};
    INT lanes[2][LANES];
    ptrdiff_t found = count;
    for (ptrdiff_t i = count; i > 0; i -= LANES) { /* backwards: what is found first is written last */
        const ptrdiff_t begin = i > LANES ? i - LANES : 0;
        const V here = V_AT(x, begin);
        const F(places) same = here == top;
        at = (same & ((INT)begin + 1)) | (~same & at);
        odd |= here != here;
    }
    memcpy(lanes[0], &at, sizeof at);
    memcpy(lanes[1], &odd, sizeof odd);
    INT any = 0;
    for (int k = 0; k < LANES; k++)
        any |= lanes[1][k];
    for (ptrdiff_t i = count - 1; any && i >= 0; i--)
        if (x[i] != x[i])
            return i;
    for (int k = 0; k < LANES; k++) {
        const ptrdiff_t one = lanes[0][k] ? lanes[0][k] - 1 + k : count;
        found = one < found ? one : found;
    }
    return found;
}

/* Which position of its window each maximum of an output row has. Positions are tried from the last to the first. */
ALWAYS_INLINE void F(find_row)(const pool_windows *of, const F(pool_space) *space, const REAL *x, const REAL *made,
                               ptrdiff_t od, ptrdiff_t oh, INT *where) {
    ptrdiff_t count = of->count[2], padded = space->padded & -POOL_LANES, tap = of->kernel[0] * of->kernel[1] * of->kernel[2];
    REAL *wanted = space->row;
    INT odd = 0;
    memcpy(wanted, made, (size_t)count * sizeof *wanted);
    for (ptrdiff_t i = 0; i < padded; i++) {
        where[i] = 0;
        odd |= wanted[i] != wanted[i] ? 1 : 0;
    }
    for (ptrdiff_t kd = of->kernel[0] - 1; kd >= 0; kd--) {
        ptrdiff_t depth = od * of->stride[0] - of->padding[0] + kd * of->dilation[0];
        for (ptrdiff_t kh = of->kernel[1] - 1; kh >= 0; kh--) {
            ptrdiff_t height = oh * of->stride[1] - of->padding[1] + kh * of->dilation[1];
            tap -= of->kernel[2];
            if (depth < 0 || depth >= of->size[0] || height < 0 || height >= of->size[1])
                continue;
            memcpy(space->inside, x + (depth * of->size[1] + height) * of->size[2], (size_t)of->size[2] * sizeof *x);
            F(split)(space);
            for (ptrdiff_t kw = of->kernel[2] - 1; kw >= 0; kw--) {
                const REAL *row = F(tap)(of, space, kw);
                INT number = (INT)(tap + kw);
                INDEPENDENT for (ptrdiff_t i = 0; i < padded; i++)
                    where[i] = row[i] == wanted[i] ? number : where[i];
            }
        }
    }
    for (ptrdiff_t i = 0; odd && i < count; i++) {
        if (made[i] == made[i])
            continue;
        EACH_ROW(of, od, oh, {
            for (ptrdiff_t kw = 0; kw < of->kernel[2]; kw++) {
                ptrdiff_t at = i * of->stride[2] - of->padding[2] + kw * of->dilation[2];
                if (at >= 0 && at < of->size[2] && x[at_row + at] != x[at_row + at])
                    where[i] = (INT)((kd * of->kernel[1] + kh) * of->kernel[2] + kw);
            }
        })
    }
}

/* An expression EACH in `index`, the flat index of the maximum of each output in turn. The padding is NaN, which equals
   nothing. */
#define EACH_PLACE(EACH)                                                                                      \
    {                                                                                                         \
        F(pool_space) space = F(space_of)(of, scratch, (REAL)NAN);                                            \
        INT *where = (INT *)space.other;                                                                      \
        ptrdiff_t *offsets = (ptrdiff_t *)scratch + pool_scratch(of) / 8 -                                    \
                             of->kernel[0] * of->kernel[1] * of->kernel[2];                                   \
        lay_out(of, offsets);                                                                                 \
        for (ptrdiff_t i = 0; i < space.padded; i++)                                                          \
            space.row[i] = 0;                                                                                 \
        for (ptrdiff_t od = 0; od < of->count[0]; od++) {                                                     \
            for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, made += of->count[2]) {                           \
                ptrdiff_t start = (od * of->stride[0] * of->size[1] + oh * of->stride[1]) * of->size[2];      \
                F(find_row)(of, &space, x, made, od, oh, where);                                              \
                for (ptrdiff_t i = 0; i < of->count[2]; i++, start += of->stride[2]) {                        \
                    ptrdiff_t index = start + offsets[where[i]];                                              \
                    EACH                                                                                      \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }

static void F(max_places)(const pool_windows *of, const void *from, const void *maxima, int64_t *indices, void *scratch) {
    const REAL *x = from, *made = maxima;
    EACH_PLACE(*indices++ = index;)
}

/* Windows of 2 by 2 that lie side by side, without a branch; false where a NaN asks for the long way. */
static bool F(max_back_quads)(const pool_windows *of, const REAL *g, const REAL *x, const REAL *made, REAL *out) {
    ptrdiff_t width = of->size[2], count = of->count[2], height = of->size[1];
    INT odd = 0;
    for (ptrdiff_t i = 0; i < of->count[1] * count; i++)
        odd |= made[i] != made[i] ? 1 : 0;
    if (odd)
        return false;
    for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, g += count, made += count) {
        const REAL *top = x + 2 * oh * width, *low = top + width;
        REAL *up = out + 2 * oh * width, *down = up + width;
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
            /* What no earlier one took goes on to the next. */
            REAL m = made[i], a = top[2 * i], b = top[2 * i + 1], c = low[2 * i], d = low[2 * i + 1], whole = g[i];
            REAL past_a = a == m ? 0 : whole, past_b = b == m ? 0 : past_a, past_c = c == m ? 0 : past_b;
            up[2 * i] = a == m ? whole : 0;
            up[2 * i + 1] = b == m ? past_a : 0;
            down[2 * i] = c == m ? past_b : 0;
            down[2 * i + 1] = d == m ? past_c : 0;
        }
        if (2 * count < width)
            up[width - 1] = down[width - 1] = 0;
    }
    if (2 * of->count[1] < height)
        memset(out + 2 * of->count[1] * width, 0, (size_t)width * sizeof *out);
    return true;
}

static void F(max_back_plane)(const pool_windows *of, const void *gradient, const void *from, const void *maxima, void *to,
                              void *scratch) {
    const REAL *g = gradient, *x = from, *made = maxima;
    REAL *out = to;
    ptrdiff_t elements = of->size[0] * of->size[1] * of->size[2];
    bool quads = of->size[0] == 1 && of->padding[1] == 0 && of->padding[2] == 0;
    for (int i = 1; i < 3; i++)
        quads &= of->kernel[i] == 2 && of->stride[i] == 2 && of->dilation[i] == 1 && of->count[i] == of->size[i] / 2;
    if (quads && F(max_back_quads)(of, g, x, made, out))
        return;
    memset(out, 0, (size_t)elements * sizeof *out);
    /* An index beyond the plane can only come of maxima that are not those of x. */
    EACH_PLACE(if (index >= 0 && index < elements) out[index] += *g; g++;)
}
#undef EACH_PLACE

/* Means */

/* What the sums of an output row are divided by: a number for each output, times one for the row. */
ALWAYS_INLINE void F(widths)(const pool_windows *of, REAL *by, ptrdiff_t padded) {
    for (ptrdiff_t i = 0; i < padded; i++)
        by[i] = of->divisor ? (REAL)of->divisor : i < of->count[2] ? (REAL)window_length(of, 2, i) : 1;
}

ALWAYS_INLINE REAL F(height)(const pool_windows *of, ptrdiff_t od, ptrdiff_t oh) {
    return of->divisor ? 1 : (REAL)(window_length(of, 0, od) * window_length(of, 1, oh));
}

/* Few windows in a row, and small ones: element by element, in the order in which whole rows are summed. */
static void F(mean_narrow)(const pool_windows *of, const REAL *x, REAL *made) {
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++) {
            const REAL height = F(height)(of, od, oh);
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                const ptrdiff_t start = ow * of->stride[2] - of->padding[2];
                const REAL by = of->divisor ? (REAL)of->divisor : (REAL)window_length(of, 2, ow);
                REAL sum = 0;
                for (ptrdiff_t at = start < 0 ? 0 : start; at < start + of->kernel[2] && at < of->size[2]; at++) {
                    REAL rows = 0;
                    EACH_ROW(of, od, oh, { rows += x[at_row + at]; })
                    sum += rows;
                }
                *made++ = sum / (by * height);
            }
        }
}

static void F(mean_plane)(const pool_windows *of, const void *from, void *to, void *scratch) {
    const REAL *x = from;
    ptrdiff_t count = of->count[2], elements = of->size[0] * of->size[1] * of->size[2];
    REAL *made = to;
    if (of->kernel[0] == of->size[0] && of->kernel[1] == of->size[1] && of->kernel[2] == of->size[2] &&
        of->count[0] * of->count[1] * count == 1 && elements > POOL_FEW && !of->padding[0] && !of->padding[1] && !of->padding[2]) {
        *made = (REAL)(F(row_sum)(x, elements) / (of->divisor ? (WIDE)of->divisor : (WIDE)elements));
        return;
    }
    if (count < POOL_LANES / 2 && of->kernel[0] * of->kernel[1] * of->kernel[2] <= NARROW_TAPS) {
        F(mean_narrow)(of, x, made);
        return;
    }
    F(pool_space) space = F(space_of)(of, scratch, 0);
    ptrdiff_t padded = space.padded & -POOL_LANES;
    REAL *row = space.row, *by = space.other;
    F(widths)(of, by, padded);
    for (ptrdiff_t od = 0; od < of->count[0]; od++) {
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, made += count) {
            F(join_sums)(of, &space, x, od, oh, 0);
            const REAL *first = F(tap)(of, &space, 0);
            for (ptrdiff_t i = 0; i < padded; i++)
                row[i] = first[i];
            for (ptrdiff_t kw = 1; kw < of->kernel[2]; kw++) {
                const REAL *next = F(tap)(of, &space, kw);
                INDEPENDENT for (ptrdiff_t i = 0; i < padded; i++)
                    row[i] += next[i];
            }
            REAL height = F(height)(of, od, oh);
            INDEPENDENT for (ptrdiff_t i = 0; i < padded; i++)
                row[i] /= by[i] * height;
            memcpy(made, row, (size_t)count * sizeof *row);
        }
    }
}

static void F(mean_back_plane)(const pool_windows *of, const void *gradient, void *to, void *scratch) {
    const REAL *g = gradient;
    F(pool_space) space = F(space_of)(of, scratch, 0);
    ptrdiff_t width = of->size[2], count = of->count[2], padded = space.padded & -POOL_LANES;
    REAL *out = to, *row = space.row, *by = space.other, *inside = space.inside;
    memset(out, 0, (size_t)(of->size[0] * of->size[1] * width) * sizeof *out);
    F(widths)(of, by, padded);
    for (ptrdiff_t i = 0; i < padded; i++)
        row[i] = 0;
    for (ptrdiff_t od = 0; od < of->count[0]; od++) {
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, g += count) {
            REAL height = F(height)(of, od, oh);
            memcpy(row, g, (size_t)count * sizeof *row);
            INDEPENDENT for (ptrdiff_t i = 0; i < padded; i++)
                row[i] /= by[i] * height;
            memset(row + count, 0, (size_t)(padded - count) * sizeof *row);
            memset(space.phases, 0, (size_t)(space.phase * space.stride) * sizeof *row);
            for (ptrdiff_t kw = 0; kw < of->kernel[2]; kw++) {
                REAL *next = F(tap)(of, &space, kw);
                INDEPENDENT for (ptrdiff_t i = 0; i < padded; i++)
                    next[i] += row[i];
            }
            F(weave)(&space);
            EACH_ROW(of, od, oh, {
                REAL *one = out + at_row;
                INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
                    one[i] += inside[i];
            })
        }
    }
}

/* Means of windows that cover the sizes evenly */

enum { F(EVEN_LONG) = 2 * LANES }; /* elements of a row of a window from which on they are summed in double */

ALWAYS_INLINE REAL F(even_rows)(const pool_windows *of, ptrdiff_t od, ptrdiff_t oh) {
    return (REAL)((even_stop(of, 0, od) - even_start(of, 0, od)) * (even_stop(of, 1, oh) - even_start(of, 1, oh)));
}

static void F(even_plane)(const pool_windows *of, const void *from, void *to, void *scratch) {
    const REAL *x = from;
    REAL *made = to, *row = scratch;
    const ptrdiff_t width = of->size[2];
    for (ptrdiff_t od = 0; od < of->count[0]; od++) {
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++) {
            const REAL rows = F(even_rows)(of, od, oh);
            const REAL *joined = row;
            memset(row, 0, rows > 1 ? (size_t)width * sizeof *row : 0);
            EACH_EVEN_ROW(of, od, oh, {
                const REAL *one = x + at_row;
                if (rows == 1)
                    joined = one;
                else
                    INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
                        row[i] += one[i];
            })
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                const ptrdiff_t start = even_start(of, 2, ow), stop = even_stop(of, 2, ow);
                REAL sum = 0;
                if (stop - start < F(EVEN_LONG))
                    for (ptrdiff_t i = start; i < stop; i++)
                        sum += joined[i];
                else
                    sum = (REAL)F(row_sum)(joined + start, stop - start);
                *made++ = sum / (rows * (REAL)(stop - start));
            }
        }
    }
}

static void F(even_back_plane)(const pool_windows *of, const void *gradient, void *to, void *scratch) {
    const REAL *g = gradient;
    REAL *out = to, *row = scratch;
    const ptrdiff_t width = of->size[2];
    memset(out, 0, (size_t)(of->size[0] * of->size[1] * width) * sizeof *out);
    for (ptrdiff_t od = 0; od < of->count[0]; od++) {
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++) {
            const REAL rows = F(even_rows)(of, od, oh);
            memset(row, 0, (size_t)width * sizeof *row);
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                const ptrdiff_t start = even_start(of, 2, ow), stop = even_stop(of, 2, ow);
                const REAL share = *g++ / (rows * (REAL)(stop - start));
                for (ptrdiff_t i = start; i < stop; i++)
                    row[i] += share;
            }
            EACH_EVEN_ROW(of, od, oh, {
                REAL *one = out + at_row;
                INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
                    one[i] += row[i];
            })
        }
    }
}
