/* The loops of scatter.h for one type. */

static void F(add_slices)(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last) {
    const ptrdiff_t after = of->after;
    const size_t places = (size_t)(last - first);
    REAL *into = (REAL *)of->into + (batch * of->size + first) * after;
    const REAL *from = (const REAL *)of->from + batch * of->count * after;
    if (after == 1 && places == (size_t)of->size) {
        for (ptrdiff_t i = 0; i < of->count; i++)
            into[of->index[i]] += from[i];
        return;
    }
    for (ptrdiff_t i = 0; i < of->count; i++, from += after) {
        const size_t place = (size_t)(of->index[i] - first);
        if (place >= places)
            continue;
        REAL *row = into + place * after;
        INDEPENDENT for (ptrdiff_t k = 0; k < after; k++)
            row[k] += from[k];
    }
}

static void F(add_places)(const slice_sums *of, ptrdiff_t batch, ptrdiff_t first, ptrdiff_t last) {
    ptrdiff_t after = of->after, start = batch * of->count * after;
    REAL *into = (REAL *)of->into + batch * of->size * after;
    const REAL *from = (const REAL *)of->from + start;
    const int64_t *index = of->index + start;
    if (after == 1) {
        for (ptrdiff_t i = 0; i < of->count; i++)
            into[index[i]] += from[i];
        return;
    }
    for (ptrdiff_t i = 0; i < of->count; i++, from += after, index += after)
        for (ptrdiff_t k = first; k < last; k++)
            into[index[k] * after + k] += from[k];
}

/* Whether a stands before b among the largest. */
ALWAYS_INLINE bool F(larger_one)(REAL a, REAL b) { return a > b || (a != a && b == b); }
ALWAYS_INLINE bool F(smaller_one)(REAL a, REAL b) { return a < b || (b != b && a == a); }

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
