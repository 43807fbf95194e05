/* Pools of integers for one type: a row of results at a time, tap by tap. */

/* What `COMBINE` makes of the elements of each window, `tap` one after the other with `made[i]`. */
#define EACH_TAP(of, x, made, od, oh, COMBINE)                                                                \
    EACH_ROW(of, od, oh, {                                                                                    \
        for (ptrdiff_t kw = 0; kw < (of)->kernel[2]; kw++) {                                                  \
            const ptrdiff_t shift = kw * (of)->dilation[2] - (of)->padding[2];                                \
            const ptrdiff_t step = (of)->stride[2];                                                           \
            const ptrdiff_t first = first_column(of, shift);                                                  \
            const ptrdiff_t last = last_column(of, shift);                                                    \
            const REAL *row = (x) + at_row + shift;                                                           \
            INDEPENDENT for (ptrdiff_t i = first; i < last; i++) {                                            \
                const REAL tap = row[i * step];                                                               \
                COMBINE                                                                                       \
            }                                                                                                 \
        }                                                                                                     \
    })

static void F(whole_max)(const pool_windows *of, const void *xs, void *values) {
    const REAL least = (REAL)-1 > 0 ? 0 : (REAL)(-(REAL)(UINT64_MAX >> (65 - 8 * sizeof(REAL))) - 1);
    REAL *made = values;
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, made += of->count[2]) {
            for (ptrdiff_t i = 0; i < of->count[2]; i++)
                made[i] = least;
            EACH_TAP(of, (const REAL *)xs, made, od, oh, made[i] = tap > made[i] ? tap : made[i];)
        }
}

/* The flat index of the first element of a window that is `most`. */
static int64_t F(whole_place)(const pool_windows *of, const REAL *x, ptrdiff_t od, ptrdiff_t oh, ptrdiff_t ow, REAL most) {
    EACH_ROW(of, od, oh, {
        for (ptrdiff_t kw = 0; kw < of->kernel[2]; kw++) {
            const ptrdiff_t column = ow * of->stride[2] + kw * of->dilation[2] - of->padding[2];
            if (column >= 0 && column < of->size[2] && x[at_row + column] == most)
                return at_row + column;
        }
    })
    return -1;
}

static void F(whole_places)(const pool_windows *of, const void *x, const void *values, int64_t *indices) {
    const REAL *made = values;
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++)
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++)
                *indices++ = F(whole_place)(of, x, od, oh, ow, *made++);
}

static void F(whole_mean)(const pool_windows *of, const void *xs, void *values) {
    REAL *made = values;
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, made += of->count[2]) {
            const ptrdiff_t rows = window_length(of, 0, od) * window_length(of, 1, oh);
            memset(made, 0, (size_t)of->count[2] * sizeof(REAL));
            EACH_TAP(of, (const REAL *)xs, made, od, oh, made[i] = (REAL)(made[i] + tap);)
            for (ptrdiff_t i = 0; i < of->count[2]; i++)
                made[i] = (REAL)(made[i] / (of->divisor ? (ptrdiff_t)of->divisor : rows * window_length(of, 2, i)));
        }
}
#undef EACH_TAP
