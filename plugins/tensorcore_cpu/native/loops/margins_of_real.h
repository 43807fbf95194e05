/* Losses by margins for one type. A difference that is NaN is not over 0 and counts for nothing, as in PyTorch. */

/* The sum of what is over 0 of top + x, or of the squares; in the elements' precision, 64 at a time. */
ALWAYS_INLINE double F(hinge_sum)(const REAL *x, REAL top, ptrdiff_t n, bool square) {
    double total = 0;
    for (ptrdiff_t begin = 0; begin < n; begin += 64) {
        const ptrdiff_t end = n - begin < 64 ? n : begin + 64;
        REAL space[64];
        INDEPENDENT for (ptrdiff_t i = begin; i < end; i++) {
            const REAL short_of = top + x[i], kept = short_of > 0 ? short_of : 0;
            space[i - begin] = square ? kept * kept : kept;
        }
        total += F(row_sum)(space, end - begin);
    }
    return total;
}

/* The labels of one row, which are marked; how many. */
ALWAYS_INLINE ptrdiff_t F(mark)(const int64_t *labels, ptrdiff_t n, unsigned char *marks) {
    ptrdiff_t count = 0;
    memset(marks, 0, (size_t)n);
    for (; count < n && labels[count] >= 0; count++)
        marks[labels[count]] = 1;
    return count;
}

static void F(margin_sums)(const margin_shape *of, const void *from, double *sums, ptrdiff_t begin, ptrdiff_t end,
                           unsigned char *marks) {
    const ptrdiff_t n = of->n;
    for (ptrdiff_t row = begin; row < end; row++) {
        const REAL *x = (const REAL *)from + row * n;
        double total = 0;
        if (of->p) {
            const int64_t t = of->target[row];
            const REAL top = (REAL)of->margin - x[t];
            total = of->p == 1 ? F(hinge_sum)(x, top, t, false) + F(hinge_sum)(x + t + 1, top, n - t - 1, false)
                               : F(hinge_sum)(x, top, t, true) + F(hinge_sum)(x + t + 1, top, n - t - 1, true);
            if (of->weight)
                total *= (double)((const REAL *)of->weight)[t];
        } else {
            const int64_t *labels = of->target + row * n;
            const ptrdiff_t count = F(mark)(labels, n, marks);
            for (ptrdiff_t k = 0; k < count; k++) {
                const REAL top = 1 - x[labels[k]];
                REAL sum = 0;
                for (ptrdiff_t i = 0; i < n; i++)
                    sum += top + x[i] > 0 && !marks[i] ? top + x[i] : 0;
                total += (double)sum;
            }
        }
        sums[row] = total / (double)n;
    }
}

static void F(margin_back)(const margin_shape *of, const void *from, const void *gradient, ptrdiff_t step, double factor,
                           void *to, ptrdiff_t begin, ptrdiff_t end, unsigned char *marks) {
    const ptrdiff_t n = of->n;
    for (ptrdiff_t row = begin; row < end; row++) {
        const REAL *x = (const REAL *)from + row * n;
        REAL *out = (REAL *)to + row * n, share = ((const REAL *)gradient)[row * step] * (REAL)factor;
        if (of->p) {
            const int64_t t = of->target[row];
            const REAL top = (REAL)of->margin - x[t];
            share = of->weight ? share * ((const REAL *)of->weight)[t] : share;
            if (of->p == 1)
                INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
                    out[i] = top + x[i] > 0 ? share : 0;
            else
                INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
                    out[i] = top + x[i] > 0 ? 2 * (top + x[i]) * share : 0;
            out[t] = 0;
            out[t] = (REAL)-F(row_sum)(out, n);
        } else {
            const int64_t *labels = of->target + row * n;
            const ptrdiff_t count = F(mark)(labels, n, marks);
            for (ptrdiff_t i = 0; i < n; i++)
                out[i] = 0;
            for (ptrdiff_t k = 0; k < count; k++) {
                const REAL top = 1 - x[labels[k]];
                REAL lost = 0;
                for (ptrdiff_t i = 0; i < n; i++) {
                    const REAL one = top + x[i] > 0 && !marks[i] ? share : 0;
                    out[i] += one;
                    lost += one;
                }
                out[labels[k]] -= lost;
            }
        }
    }
}
