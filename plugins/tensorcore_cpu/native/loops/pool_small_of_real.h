/* Pools of small planes for one type: a vector holds the same element of as many planes. Sums and maxima have the order of the loops
   over one plane, and so their bits. */

/* The rows that an output row's windows have in common, joined; none of them where it answers false. */
#define JOIN_PLANES(name, WITH)                                                                               \
    ALWAYS_INLINE bool F(name)(const pool_windows *of, const V_U *x, ptrdiff_t od, ptrdiff_t oh, V_U *joined) { \
        bool any = false;                                                                                     \
        EACH_ROW(of, od, oh, {                                                                                \
            for (ptrdiff_t i = 0; i < of->size[2]; i++)                                                       \
                joined[i] = any ? WITH((V)joined[i], (V)x[at_row + i]) : (V)x[at_row + i];                    \
            any = true;                                                                                       \
        })                                                                                                    \
        return any;                                                                                           \
    }
ALWAYS_INLINE V F(maxima_of)(V x, V y) {
    const F(places) first = (x > y) | (x != x);
    return (V)(((F(places))x & first) | ((F(places))y & ~first));
}
#define SUM_OF(x, y) ((x) + (y))
JOIN_PLANES(join_maxima_of_planes, F(maxima_of))
JOIN_PLANES(join_sums_of_planes, SUM_OF)
#undef SUM_OF
#undef JOIN_PLANES

static void F(small_max)(const pool_windows *of, const V_U *x, V_U *made, V_U *joined) {
    const ptrdiff_t last = of->kernel[2] - 1;
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++) {
            const bool any = F(join_maxima_of_planes)(of, x, od, oh, joined);
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                V most = (V){0} - (REAL)INFINITY;
                /* The ends of a window come first. */
                for (ptrdiff_t k = 0; k <= last && any; k++) {
                    const ptrdiff_t kw = k == 0 ? 0 : k == 1 ? last : k - 1, at = ow * of->stride[2] - of->padding[2] + kw * of->dilation[2];
                    if (at >= 0 && at < of->size[2])
                        most = F(maxima_of)(most, joined[at]);
                }
                *made++ = most;
            }
        }
}

static void F(small_mean)(const pool_windows *of, const V_U *x, V_U *made, V_U *joined) {
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++) {
            const bool any = F(join_sums_of_planes)(of, x, od, oh, joined);
            const REAL height = F(height)(of, od, oh);
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                const REAL by = of->divisor ? (REAL)of->divisor : (REAL)window_length(of, 2, ow);
                const ptrdiff_t start = ow * of->stride[2] - of->padding[2];
                V sum = {0};
                for (ptrdiff_t at = start < 0 ? 0 : start; any && at < start + of->kernel[2] && at < of->size[2]; at++)
                    sum += joined[at];
                *made++ = sum / (by * height);
            }
        }
}

static void F(small_mean_back)(const pool_windows *of, const V_U *g, V_U *out, V_U *joined) {
    const ptrdiff_t width = of->size[2], elements = of->size[0] * of->size[1] * width;
    for (ptrdiff_t i = 0; i < elements; i++)
        out[i] = (V){0};
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++, g += of->count[2]) {
            const REAL height = F(height)(of, od, oh);
            for (ptrdiff_t i = 0; i < width; i++)
                joined[i] = (V){0};
            for (ptrdiff_t kw = 0; kw < of->kernel[2]; kw++)
                for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                    const REAL by = of->divisor ? (REAL)of->divisor : (REAL)window_length(of, 2, ow);
                    const ptrdiff_t at = ow * of->stride[2] - of->padding[2] + kw;
                    if (at >= 0 && at < width)
                        joined[at] += g[ow] / (by * height);
                }
            EACH_ROW(of, od, oh, {
                for (ptrdiff_t i = 0; i < width; i++)
                    out[at_row + i] += joined[i];
            })
        }
}

/* The first of the largest takes the gradient; false, and nothing that counts, where a NaN asks for the long way. */
static bool F(small_max_back)(const pool_windows *of, const V_U *g, const V_U *x, const V_U *made, V_U *out) {
    const ptrdiff_t elements = of->size[0] * of->size[1] * of->size[2], results = of->count[0] * of->count[1] * of->count[2];
    F(places) odd = {0};
    INT any = 0;
    for (ptrdiff_t i = 0; i < results; i++)
        odd |= made[i] != made[i];
    for (int i = 0; i < LANES; i++)
        any |= odd[i];
    if (any)
        return false;
    for (ptrdiff_t i = 0; i < elements; i++)
        out[i] = (V){0};
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++)
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++, g++, made++) {
                F(places) left = ~(F(places)){0};
                EACH_ROW(of, od, oh, {
                    for (ptrdiff_t kw = 0; kw < of->kernel[2]; kw++) {
                        const ptrdiff_t at = ow * of->stride[2] - of->padding[2] + kw * of->dilation[2];
                        if (at < 0 || at >= of->size[2])
                            continue;
                        const F(places) taken = (x[at_row + at] == *made) & left;
                        out[at_row + at] += (V)((F(places))*g & taken);
                        left &= ~taken;
                    }
                })
            }
    return true;
}

/* Windows that cover the sizes evenly */

static bool F(small_even)(const pool_windows *of, const V_U *x, V_U *made, V_U *joined) {
    const ptrdiff_t width = of->size[2];
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++) {
            const REAL rows = F(even_rows)(of, od, oh);
            for (ptrdiff_t i = 0; i < width; i++)
                joined[i] = (V){0};
            EACH_EVEN_ROW(of, od, oh, {
                for (ptrdiff_t i = 0; i < width; i++)
                    joined[i] += x[at_row + i];
            })
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                const ptrdiff_t start = even_start(of, 2, ow), stop = even_stop(of, 2, ow);
                V sum = {0};
                if (stop - start >= F(EVEN_LONG)) /* which is a sum in double */
                    return false;
                for (ptrdiff_t i = start; i < stop; i++)
                    sum += joined[i];
                *made++ = sum / (rows * (REAL)(stop - start));
            }
        }
    return true;
}

static void F(small_even_back)(const pool_windows *of, const V_U *g, V_U *out, V_U *joined) {
    const ptrdiff_t width = of->size[2];
    for (ptrdiff_t i = 0; i < of->size[0] * of->size[1] * width; i++)
        out[i] = (V){0};
    for (ptrdiff_t od = 0; od < of->count[0]; od++)
        for (ptrdiff_t oh = 0; oh < of->count[1]; oh++) {
            const REAL rows = F(even_rows)(of, od, oh);
            for (ptrdiff_t i = 0; i < width; i++)
                joined[i] = (V){0};
            for (ptrdiff_t ow = 0; ow < of->count[2]; ow++) {
                const ptrdiff_t start = even_start(of, 2, ow), stop = even_stop(of, 2, ow);
                const V share = *g++ / (rows * (REAL)(stop - start));
                for (ptrdiff_t i = start; i < stop; i++)
                    joined[i] += share;
            }
            EACH_EVEN_ROW(of, od, oh, {
                for (ptrdiff_t i = 0; i < width; i++)
                    out[at_row + i] += joined[i];
            })
        }
}

static bool F(small)(const pool_windows *of, pool_small_op op, const void *const *in, void *out, ptrdiff_t planes, void *scratch) {
    const ptrdiff_t plane = of->size[0] * of->size[1] * of->size[2], results = of->count[0] * of->count[1] * of->count[2];
    const bool back = op == POOL_SMALL_MAX_BACK || op == POOL_SMALL_MEAN_BACK || op == POOL_SMALL_EVEN_BACK;
    const ptrdiff_t to = back ? plane : results, most = plane > results ? plane : results;
    V_U *turned[POOL_SMALL_SIDES];
    for (int k = 0; k < POOL_SMALL_SIDES; k++)
        turned[k] = (V_U *)scratch + k * most;
    V_U *const made = turned[3], *const joined = turned[4];
    for (ptrdiff_t done = 0; done < planes; done += LANES) {
        const ptrdiff_t some = planes - done < LANES ? planes - done : LANES;
        /* The input, or the gradient, which has the results' shape; the input and the maxima beside it. */
        F(turn_planes)((const REAL *)in[0] + done * (back ? results : plane), back ? results : plane, some, (REAL *)turned[0]);
        switch (op) {
        case POOL_SMALL_MAX:
            F(small_max)(of, turned[0], made, joined);
            break;
        case POOL_SMALL_MEAN:
            F(small_mean)(of, turned[0], made, joined);
            break;
        case POOL_SMALL_MEAN_BACK:
            F(small_mean_back)(of, turned[0], made, joined);
            break;
        case POOL_SMALL_EVEN:
            if (!F(small_even)(of, turned[0], made, joined))
                return false;
            break;
        case POOL_SMALL_EVEN_BACK:
            F(small_even_back)(of, turned[0], made, joined);
            break;
        default:
            F(turn_planes)((const REAL *)in[1] + done * plane, plane, some, (REAL *)turned[1]);
            F(turn_planes)((const REAL *)in[2] + done * results, results, some, (REAL *)turned[2]);
            if (!F(small_max_back)(of, turned[0], turned[1], turned[2], made))
                return false;
        }
        F(turn_out)((const REAL *)made, LANES, to, some, (REAL *)out + done * to, to);
    }
    return true;
}
