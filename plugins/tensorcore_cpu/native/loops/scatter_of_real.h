/* The loops of scatter.h for one type. */

static void F(add_slices)(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last) {
    const ptrdiff_t after = of->after;
    const size_t places = (size_t)(last - first);
    REAL *into = (REAL *)of->into + (batch * of->size + first) * after;
    const REAL *from = (const REAL *)of->from + batch * of->count * after;
    if (after == 1 && places == (size_t)of->size) {
        for (ptrdiff_t i = 0; i < of->count; i++)
            into[of->index[i]] = SUM(into[of->index[i]], from[i]);
        return;
    }
    for (ptrdiff_t i = 0; i < of->count; i++, from += after) {
        const size_t place = (size_t)(of->index[i] - first);
        if (place >= places)
            continue;
        REAL *row = into + place * after;
        INDEPENDENT for (ptrdiff_t k = 0; k < after; k++)
            row[k] = SUM(row[k], from[k]);
    }
}

/* Where `after` is 1, four batches at a time, for each of which a number is the same. */
static void F(add_batches)(const slice_sums *of, ptrdiff_t first, ptrdiff_t last) {
    const ptrdiff_t size = of->size, count = of->count;
    REAL *into = (REAL *)of->into + first * size;
    const REAL *from = (const REAL *)of->from + first * count;
    for (; first + 4 <= last; first += 4, into += 4 * size, from += 4 * count)
        for (ptrdiff_t i = 0; i < count; i++) {
            REAL *to = into + of->index[i];
            const REAL a = from[i], b = from[count + i], c = from[2 * count + i], d = from[3 * count + i];
            to[0] = SUM(to[0], a);
            to[size] = SUM(to[size], b);
            to[2 * size] = SUM(to[2 * size], c);
            to[3 * size] = SUM(to[3 * size], d);
        }
    for (; first < last; first++, into += size, from += count)
        for (ptrdiff_t i = 0; i < count; i++)
            into[of->index[i]] = SUM(into[of->index[i]], from[i]);
}

/* What the list says is added to places from `first` to `last`, each of which is read and written once. */
static void F(add_listed)(const slice_sums *of, const place_list *list, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last) {
    const ptrdiff_t after = of->after, bytes = after * (ptrdiff_t)sizeof(REAL);
    const REAL *from = (const REAL *)of->from + batch * of->count * after;
    for (ptrdiff_t place = first; place < last; place++) {
        const ptrdiff_t at = (batch * of->size + place) * after;
        REAL *row = (REAL *)of->into + at;
        const REAL *start = list->start ? (const REAL *)list->start + (list->one ? 0 : at) : row;
        int32_t i = list->first[place];
        if (place + 1 < last && list->first[place + 1] >= 0) { /* where it lies cannot be guessed */
            const char *next = (const char *)(from + list->first[place + 1] * after);
            for (ptrdiff_t line = 0; line < bytes && line < 512; line += 64)
                __builtin_prefetch(next + line);
        }
        if (i >= 0) {
            const REAL *added = from + i * after, number = *start;
            if (list->one)
                INDEPENDENT for (ptrdiff_t k = 0; k < after; k++)
                    row[k] = SUM(number, added[k]);
            else
                INDEPENDENT for (ptrdiff_t k = 0; k < after; k++)
                    row[k] = SUM(start[k], added[k]);
            while ((i = list->next[i]) >= 0) {
                added = from + i * after;
                INDEPENDENT for (ptrdiff_t k = 0; k < after; k++)
                    row[k] = SUM(row[k], added[k]);
            }
        } else if (list->one) {
            const REAL number = *start;
            for (ptrdiff_t k = 0; k < after; k++)
                row[k] = number;
        } else if (start != row) {
            memcpy(row, start, (size_t)bytes);
        }
    }
}

/* Short rows: numbers are looked at for many of them at a time. */
#define ADD_FEW(COUNT)                                                                                        \
    for (; row < last; row++, into += of->size, from += COUNT, index += COUNT)                                \
        for (ptrdiff_t i = 0; i < COUNT; i++)                                                                 \
            into[index[i]] = SUM(into[index[i]], from[i]);

static bool F(add_few_along)(const slice_sums *of, ptrdiff_t row, ptrdiff_t end) {
    REAL *into = (REAL *)of->into + row * of->size;
    const REAL *from = (const REAL *)of->from + row * of->count;
    const int64_t *index = of->index + row * of->count;
    while (row < end) {
        const ptrdiff_t some = row + LOOKED_AT / of->count, last = some < end ? some : end;
        int64_t low, high;
        bounds(index, (last - row) * of->count, &low, &high);
        if (low < 0 || high >= of->size)
            return false;
        switch (of->count) {
        case 1: ADD_FEW(1) break;
        case 2: ADD_FEW(2) break;
        case 3: ADD_FEW(3) break;
        default: ADD_FEW(of->count)
        }
    }
    return true;
}
#undef ADD_FEW

/* Four numbers are looked at and four summands read before the first is written to: what is written may be the next number,
   for all that the compiler knows. */
static bool F(add_along)(const slice_sums *of, ptrdiff_t begin, ptrdiff_t end) {
    const uint64_t size = (uint64_t)of->size;
    if (of->count && of->count < FEW)
        return F(add_few_along)(of, begin, end);
    for (ptrdiff_t row = begin; row < end; row++) {
        REAL *into = (REAL *)of->into + row * of->size;
        const REAL *from = (const REAL *)of->from + row * of->count;
        const int64_t *index = of->index + row * of->count;
        ptrdiff_t i = 0;
        for (; i + 4 <= of->count; i += 4) {
            uint64_t at[4];
            REAL added[4];
            bool outside = false;
            for (int k = 0; k < 4; k++) {
                at[k] = (uint64_t)index[i + k];
                added[k] = from[i + k];
                outside |= at[k] >= size;
            }
            if (__builtin_expect(outside, 0))
                return false;
            for (int k = 0; k < 4; k++)
                into[at[k]] = SUM(into[at[k]], added[k]);
        }
        for (; i < of->count; i++) {
            if ((uint64_t)index[i] >= size)
                return false;
            into[index[i]] = SUM(into[index[i]], from[i]);
        }
    }
    return true;
}

static void F(add_places)(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last) {
    ptrdiff_t after = of->after, start = batch * of->count * after;
    REAL *into = (REAL *)of->into + batch * of->size * after;
    const REAL *from = (const REAL *)of->from + start;
    const int64_t *index = of->index + start;
    for (ptrdiff_t i = 0; i < of->count; i++, from += after, index += after)
        for (ptrdiff_t k = first; k < last; k++)
            into[index[k] * after + k] = SUM(into[index[k] * after + k], from[k]);
}

/* Whether a stands before b among the largest. */
ALWAYS_INLINE bool F(larger_one)(REAL a, REAL b) { return a > b || (IS_NAN(a) && !IS_NAN(b)); }
ALWAYS_INLINE bool F(smaller_one)(REAL a, REAL b) { return a < b || (IS_NAN(b) && !IS_NAN(a)); }

ALWAYS_INLINE void F(top_case)(const REAL *x, ptrdiff_t n, ptrdiff_t k, bool largest, REAL *values, int64_t *places) {
    ptrdiff_t kept = 0;
    for (ptrdiff_t begin = 0; begin < n; begin += TOP_BLOCK) {
        ptrdiff_t end = n - begin < TOP_BLOCK ? n : begin + TOP_BLOCK;
        if (kept == k) {
            REAL worst = values[k - 1];
            INT any = 0;
            for (ptrdiff_t i = begin; i < end; i++)
                any |= (largest ? !(x[i] <= worst) : !(x[i] >= worst)) ? 1 : 0; /* a NaN is looked at below */
            if (!any)
                continue;
        }
        for (ptrdiff_t i = begin; i < end; i++) {
            REAL one = x[i];
            if (kept == k && !(largest ? F(larger_one)(one, values[k - 1]) : F(smaller_one)(one, values[k - 1])))
                continue;
            ptrdiff_t at = kept < k ? kept++ : k - 1;
            for (; at && (largest ? F(larger_one)(one, values[at - 1]) : F(smaller_one)(one, values[at - 1])); at--) {
                values[at] = values[at - 1];
                places[at] = places[at - 1];
            }
            values[at] = one;
            places[at] = i;
        }
    }
}

static void F(top)(const void *x, ptrdiff_t n, ptrdiff_t k, bool largest, void *values, int64_t *places) {
    if (largest)
        F(top_case)(x, n, k, true, values, places);
    else
        F(top_case)(x, n, k, false, values, places);
}
