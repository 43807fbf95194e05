/* The loops of normalisations for one type. */

/* Segments: elements in a row with one mean and one scale */

ALWAYS_INLINE WIDE F(squares_about)(const REAL *x, ptrdiff_t n, REAL middle) {
    WIDE total = 0;
#define TERM(AT, i) (AT(x, i) - middle) * (AT(x, i) - middle)
    ADD_UP(total, n, TERM)
#undef TERM
    return total;
}

/* Mean and variance of a long row; the memory of `out` is asked for meanwhile, if it is not NULL. In one way over the row, about the mean
   of some of it: what this differs from the row's own costs no digits up to a standard deviation, and where it is more, squares are added
   up about the mean itself (Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance"). */
ALWAYS_INLINE void F(moments)(const REAL *x, ptrdiff_t n, const REAL *out, REAL *mean, REAL *var) {
    V some = {0};
    for (ptrdiff_t k = 0; k < NORM_SAMPLES; k++)
        some += V_AT(x, k * (n / NORM_SAMPLES));
    const REAL guess = F(lanes_sum)(some) / (REAL)(NORM_SAMPLES * LANES);
    WIDE total = 0, squares = 0;
#define TERM(AT, i) AT(x, i) - guess
#define FIRST(AT, i) WRITING(out + i, AT(x, i) - guess)
#define OTHER(AT, i) (AT(x, i) - guess) * (AT(x, i) - guess)
    if (out) {
        ADD_UP_BOTH(total, n, FIRST, squares, OTHER)
    } else {
        ADD_UP_BOTH(total, n, TERM, squares, OTHER)
    }
#undef TERM
#undef FIRST
#undef OTHER
    const WIDE off = total / (WIDE)n;
    WIDE spread = squares / (WIDE)n - off * off;
    *mean = (REAL)((WIDE)guess + off);
    if (!(off * off <= spread) || spread - spread != 0) { /* or not finite */
        *mean = (REAL)(F(row_sum)(x, n) / (WIDE)n);
        spread = F(squares_about)(x, n, *mean) / (WIDE)n;
    }
    *var = (REAL)spread;
}

/* Adds g to *total, and g times the distance of x from the middle to *products; `out` may be NULL here. */
ALWAYS_INLINE void F(gradient_sums)(const REAL *g, const REAL *x, ptrdiff_t n, REAL middle, WIDE *total, WIDE *products, const REAL *out) {
    WIDE sum = 0, product = 0;
#define TERM(AT, i) AT(g, i)
#define FIRST(AT, i) WRITING(out + i, AT(g, i))
#define OTHER(AT, i) AT(g, i) * (AT(x, i) - middle)
    if (out) {
        ADD_UP_BOTH(sum, n, FIRST, product, OTHER)
    } else {
        ADD_UP_BOTH(sum, n, TERM, product, OTHER)
    }
#undef TERM
#undef FIRST
#undef OTHER
    *total += sum;
    *products += product;
}

/* The same with a weight for each element. */
ALWAYS_INLINE void F(weighted_sums)(const REAL *g, const REAL *w, const REAL *x, ptrdiff_t n, REAL middle, WIDE *total,
                                    WIDE *products) {
    WIDE sum = 0, product = 0;
#define TERM(AT, i) AT(g, i) * AT(w, i)
#define OTHER(AT, i) AT(g, i) * AT(w, i) * (AT(x, i) - middle)
    ADD_UP_BOTH(sum, n, TERM, product, OTHER)
#undef TERM
#undef OTHER
    *total += sum;
    *products += product;
}

/* `next` is what is read behind the segment, from memory, or NULL. */
ALWAYS_INLINE void F(scaled_segment)(const REAL *x, REAL *out, ptrdiff_t n, REAL middle, REAL scale, REAL shift, const REAL *next) {
    ptrdiff_t done = 0;
    for (; next && done + (ptrdiff_t)LANES <= n; done += LANES)
        *(V_U *)(out + done) = READING(next + done, (V_AT(x, done) - middle) * scale + shift);
    INDEPENDENT for (ptrdiff_t i = done; i < n; i++)
        out[i] = (x[i] - middle) * scale + shift;
}

ALWAYS_INLINE void F(mixed_segment)(const REAL *g, const REAL *x, REAL *out, ptrdiff_t n, REAL middle, REAL of_g, REAL of_x,
                                    REAL shift) {
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
        out[i] = g[i] * of_g - ((x[i] - middle) * of_x + shift);
}

/* Segments of one vector to NORM_VECTORS of them: the last vector begins where a whole one fits. */

/* What the one before the last has not. */
ALWAYS_INLINE VI F(kept_lanes)(ptrdiff_t n) {
    const ptrdiff_t tail = n - (n - 1) / (ptrdiff_t)LANES * (ptrdiff_t)LANES;
    INT new[LANES];
    VI keep;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)LANES; i++)
        new[i] = i < (ptrdiff_t)LANES - tail ? 0 : -1;
    memcpy(&keep, new, sizeof keep);
    return keep;
}

/* gradient_sums of up to LANES segments, which are added up from lane to lane together; of half as many both sums at once. Zeros behind them. */
ALWAYS_INLINE void F(short_sums)(const REAL *g, const REAL *x, ptrdiff_t n, ptrdiff_t count, REAL middle, VI keep, REAL *totals,
                                 REAL *products) {
    enum { HALF = LANES / 2 };
    V sums[2 * LANES];
    const ptrdiff_t apart = count <= HALF ? HALF : LANES;
    for (ptrdiff_t s = count; s < apart; s++)
        sums[s] = sums[apart + s] = (V){0};
    for (ptrdiff_t s = 0; s < count; s++, g += n, x += n) {
        V sum = {0}, other = {0};
        for (ptrdiff_t i = 0; i + (ptrdiff_t)LANES < n; i += LANES) {
            sum += V_AT(g, i);
            other += V_AT(g, i) * (V_AT(x, i) - middle);
        }
        const V last = V_AT(g, n - LANES), product = last * (V_AT(x, n - LANES) - middle);
        sums[s] = sum + (V)((VI)last & keep);
        sums[apart + s] = other + (V)((VI)product & keep);
    }
    const V made = F(sums_of_lanes)(sums);
    *(V_U *)totals = made;
    if (apart == LANES) {
        *(V_U *)products = F(sums_of_lanes)(sums + LANES);
        return;
    }
    for (ptrdiff_t s = 0; s < LANES; s++)
        products[s] = s < HALF ? totals[HALF + s] : 0;
    for (ptrdiff_t s = HALF; s < LANES; s++)
        totals[s] = 0;
}

ALWAYS_INLINE void F(short_mixed)(const REAL *g, const REAL *x, REAL *out, ptrdiff_t n, REAL middle, REAL of_g, REAL of_x, REAL shift) {
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const ptrdiff_t at = i + (ptrdiff_t)LANES <= n ? i : n - (ptrdiff_t)LANES;
        *(V_U *)(out + at) = V_AT(g, at) * of_g - ((V_AT(x, at) - middle) * of_x + shift);
    }
}

/* Rows */

/* The row r, whose mean and scale are known. */
ALWAYS_INLINE void F(scaled_row)(const norm_rows *of, ptrdiff_t r, REAL middle, REAL scale, bool more) {
    const ptrdiff_t n = of->n, inner = of->inner, weights = n / inner, start = r % of->turns * weights;
    const REAL *x = (const REAL *)of->x + r * n, *w = of->weight ? (const REAL *)of->weight + start : NULL;
    const REAL *b = of->bias ? (const REAL *)of->bias + start : NULL;
    const REAL *next = of->far && more ? x + n : NULL;
    REAL *out = (REAL *)of->out + r * n;
    if (!w && !b) {
        F(scaled_segment)(x, out, n, middle, scale, 0, next);
    } else if (inner > 1) {
        for (ptrdiff_t k = 0; k < weights; k++)
            F(scaled_segment)(x + k * inner, out + k * inner, inner, middle, w ? scale * w[k] : scale, b ? b[k] : 0, next ? next + k * inner : NULL);
    } else if (w && b) {
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
            out[i] = (x[i] - middle) * scale * w[i] + b[i];
    } else if (w) {
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
            out[i] = (x[i] - middle) * scale * w[i];
    } else {
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
            out[i] = (x[i] - middle) * scale + b[i];
    }
}

#include "norm_short_of_real.h"

/* Rows that leave room for one another in the first cache go two by two: while the one's sum goes from lane to lane, the
   other's is made. */
static void F(norm_rows)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count) {
    const ptrdiff_t n = of->n, last = first + count, together = n * (ptrdiff_t)sizeof(REAL) > PAIR_BYTES ? 1 : 2;
    if (n <= NORM_NARROW && F(narrow_rows)(of, first, count))
        return;
    if (n >= LANES && n <= NORM_VECTORS * LANES) {
        F(short_rows)(of, first, count);
        return;
    }
    for (ptrdiff_t r = first, rows; r < last; r += rows) {
        const REAL *x = (const REAL *)of->x + r * n;
        REAL middle[2] = {0}, scale[2];
        rows = last - r < together ? 1 : together;
        const bool once = of->centre && n * (ptrdiff_t)sizeof(REAL) >= NORM_LONG;
        for (ptrdiff_t k = 0; once && k < rows; k++)
            F(moments)(x + k * n, n, of->far ? (const REAL *)of->out + (r + k) * n : NULL, &middle[k], (REAL *)of->var + r + k);
        for (ptrdiff_t k = 0; of->centre && k < rows; k++)
            ((REAL *)of->mean)[r + k] = middle[k] = once ? middle[k] : (REAL)(F(row_sum)(x + k * n, n) / (WIDE)n);
        for (ptrdiff_t k = 0; k < rows; k++) {
            REAL *const var = (REAL *)of->var + r + k;
            *var = once ? *var : (REAL)(F(squares_about)(x + k * n, n, middle[k]) / (WIDE)n);
            scale[k] = 1 / (REAL)sqrt(*var + (REAL)of->eps);
        }
        for (ptrdiff_t k = 0; k < rows; k++)
            F(scaled_row)(of, r + k, middle[k], scale[k], r + k + 1 < last);
    }
}

#include "norm_weighted_of_real.h"

static void F(norm_rows_back)(const norm_rows *of, ptrdiff_t first, ptrdiff_t count, double *weight_total,
                              double *bias_total, void *space) {
    ptrdiff_t n = of->n, inner = of->inner, weights = n / inner;
    const REAL *weight = of->weight;
    bool whole = inner == 1 && of->turns == 1; /* every row has all weights */
    const bool is_short = inner >= (ptrdiff_t)LANES && inner <= NORM_VECTORS * (ptrdiff_t)LANES && weights > 1;
    const VI keep = is_short ? F(kept_lanes)(inner) : (VI){0};
    REAL *weight_block = space, *bias_block = weight_block + norm_padded(n);
    for (ptrdiff_t i = 0; whole && i < 2 * norm_padded(n); i++)
        weight_block[i] = 0;
    if (whole && weight && of->out && (weight_total || bias_total)) {
        F(weighted_rows_back)(of, first, count, weight_total, bias_total, weight_block, bias_block);
        return;
    }
    for (ptrdiff_t r = first; r < first + count; r++) {
        const REAL *x = (const REAL *)of->x + r * n, *g = (const REAL *)of->g + r * of->g_step;
        REAL middle = of->centre ? ((const REAL *)of->mean)[r] : 0;
        REAL scale = 1 / (REAL)sqrt(((const REAL *)of->var)[r] + (REAL)of->eps);
        ptrdiff_t start = r % of->turns * weights;
        const REAL *w = weight ? weight + start : NULL;
        REAL *out = of->out ? (REAL *)of->out + r * n : NULL;
        const REAL *asked = of->far ? out : NULL;
        WIDE total = 0, products = 0;
        if (is_short) {
            for (ptrdiff_t k = 0, some; k < weights; k += some) {
                REAL ones[LANES], others[LANES];
                some = weights - k < (ptrdiff_t)LANES ? weights - k : (ptrdiff_t)LANES;
                F(short_sums)(g + k * inner, x + k * inner, inner, some, middle, keep, ones, others);
                INDEPENDENT for (ptrdiff_t s = 0; weight_total && s < some; s++)
                    weight_total[start + k + s] += (double)(others[s] * scale);
                INDEPENDENT for (ptrdiff_t s = 0; bias_total && s < some; s++)
                    bias_total[start + k + s] += (double)ones[s];
                for (ptrdiff_t s = 0; w && s < some; s++) {
                    ones[s] *= w[k + s];
                    others[s] *= w[k + s];
                }
                total += F(lanes_sum)(V_AT(ones, 0));
                products += F(lanes_sum)(V_AT(others, 0));
            }
        } else if (inner > 1) {
            for (ptrdiff_t k = 0; k < weights; k++) {
                WIDE one = 0, product = 0;
                F(gradient_sums)(g + k * inner, x + k * inner, inner, middle, &one, &product, asked ? asked + k * inner : NULL);
                total += w ? w[k] * one : one;
                products += w ? w[k] * product : product;
                if (weight_total)
                    weight_total[start + k] += (double)(product * scale);
                if (bias_total)
                    bias_total[start + k] += (double)one;
            }
        } else if (w) {
            F(weighted_sums)(g, w, x, n, middle, &total, &products);
        } else {
            F(gradient_sums)(g, x, n, middle, &total, &products, asked);
        }
        /* The share of the distance from the mean, and the mean of the gradient. */
        REAL mixed = (REAL)(products * scale / (WIDE)n) * scale * scale;
        REAL shift = of->centre ? (REAL)(total / (WIDE)n) * scale : 0;
        if (is_short && w) {
            for (ptrdiff_t k = 0; out && k < weights; k++)
                F(short_mixed)(g + k * inner, x + k * inner, out + k * inner, inner, middle, scale * w[k], mixed, shift);
        } else if (inner > 1 || !w) {
            for (ptrdiff_t k = 0; out && k < (w ? weights : 1); k++)
                F(mixed_segment)(g + k * inner, x + k * inner, out + k * inner, w ? inner : n, middle,
                                 w ? scale * w[k] : scale, mixed, shift);
        } else if (out) {
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
                out[i] = g[i] * w[i] * scale - ((x[i] - middle) * mixed + shift);
        }
        if (inner > 1 || (!weight_total && !bias_total))
            continue;
        if (whole) {
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {
                weight_block[i] += g[i] * ((x[i] - middle) * scale);
                bias_block[i] += g[i];
            }
            if ((r - first) % NORM_BLOCK == NORM_BLOCK - 1 || r == first + count - 1) {
                if (weight_total)
                    F(emptied)(weight_block, weight_total, n);
                if (bias_total)
                    F(emptied)(bias_block, bias_total, n);
            }
        } else {
            for (ptrdiff_t i = 0; i < n; i++) {
                if (weight_total)
                    weight_total[start + i] += g[i] * ((x[i] - middle) * scale);
                if (bias_total)
                    bias_total[start + i] += g[i];
            }
        }
    }
}

/* Channels */

/* Channels of so few elements that several lie in a row of columns, of single ones a column each. */

/* Makes each column's total that of its channel. */
ALWAYS_INLINE void F(of_channels)(double *total, ptrdiff_t count, ptrdiff_t inner) {
    for (ptrdiff_t c = 0; c < count && inner > 1; c++, total += inner) {
        double all = 0;
        for (ptrdiff_t j = 0; j < inner; j++)
            all += total[j];
        for (ptrdiff_t j = 0; j < inner; j++)
            total[j] = all;
    }
}

/* One number of each channel to each of its columns, `otherwise` where there are none. */
ALWAYS_INLINE void F(to_columns)(const REAL *from, ptrdiff_t count, ptrdiff_t inner, REAL otherwise, REAL *to) {
    if (!from || inner == 1) {
        for (ptrdiff_t i = 0; i < count * inner; i++)
            to[i] = from ? from[i] : otherwise;
        return;
    }
    for (ptrdiff_t c = 0; c < count; c++)
        for (ptrdiff_t j = 0; j < inner; j++)
            *to++ = from[c];
}

ALWAYS_INLINE const REAL *F(from_channel)(const void *numbers, ptrdiff_t first) {
    return numbers ? (const REAL *)numbers + first : NULL;
}

static void F(few_channels)(const norm_channels *of, ptrdiff_t first, ptrdiff_t count) {
    const ptrdiff_t inner = of->inner, width = count * inner, step = of->channels * inner;
    const double size = (double)(of->batch * inner);
    const REAL *x = (const REAL *)of->x + first * inner;
    REAL *out = (REAL *)of->out + first * inner, block[NORM_CHANNELS] = {0}, mean[NORM_CHANNELS] = {0}, scale[NORM_CHANNELS];
    REAL shift[NORM_CHANNELS], weight[NORM_CHANNELS];
    double total[NORM_CHANNELS] = {0};
    for (ptrdiff_t r = 0; of->centre && !of->given && r < of->batch; r++) {
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            block[i] += x[r * step + i];
        if (r % NORM_BLOCK == NORM_BLOCK - 1 || r == of->batch - 1)
            F(emptied)(block, total, width);
    }
    F(of_channels)(total, count, inner);
    if (of->given)
        F(to_columns)(F(from_channel)(of->mean, first), count, inner, 0, mean);
    for (ptrdiff_t i = 0; i < width; i++) {
        mean[i] = of->given ? mean[i] : (REAL)(total[i] / size);
        total[i] = 0;
    }
    for (ptrdiff_t c = 0; c < count && of->centre && !of->given; c++)
        ((REAL *)of->mean)[first + c] = mean[c * inner];
    for (ptrdiff_t r = 0; !of->given && r < of->batch; r++) {
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            block[i] += (x[r * step + i] - mean[i]) * (x[r * step + i] - mean[i]);
        if (r % NORM_BLOCK == NORM_BLOCK - 1 || r == of->batch - 1)
            F(emptied)(block, total, width);
    }
    F(of_channels)(total, count, inner);
    for (ptrdiff_t c = 0; c < count && !of->given; c++)
        ((REAL *)of->var)[first + c] = (REAL)(total[c * inner] / size);
    F(to_columns)(F(from_channel)(of->var, first), count, inner, 0, scale);
    F(to_columns)(F(from_channel)(of->weight, first), count, inner, 1, weight);
    F(to_columns)(F(from_channel)(of->bias, first), count, inner, 0, shift);
    for (ptrdiff_t i = 0; i < width; i++)
        scale[i] = 1 / (REAL)sqrt(scale[i] + (REAL)of->eps) * weight[i];
    for (ptrdiff_t r = 0; r < of->batch; r++, x += step, out += step)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            out[i] = (x[i] - mean[i]) * scale[i] + shift[i];
}

static void F(norm_channels)(const norm_channels *of, ptrdiff_t first, ptrdiff_t count) {
    if (of->inner <= NORM_INNER) {
        F(few_channels)(of, first, count);
        return;
    }
    const REAL *w = of->weight, *b = of->bias;
    ptrdiff_t n = of->inner, step = of->channels * n;
    for (ptrdiff_t c = first; c < first + count; c++) {
        const REAL *x = (const REAL *)of->x + c * n;
        REAL *out = (REAL *)of->out + c * n, middle = of->given ? ((REAL *)of->mean)[c] : 0;
        WIDE total = 0, squares = 0, size = (WIDE)(of->batch * n);
        for (ptrdiff_t r = 0; of->centre && !of->given && r < of->batch; r++)
            total += F(row_sum)(x + r * step, n);
        if (of->centre && !of->given)
            ((REAL *)of->mean)[c] = middle = (REAL)(total / size);
        for (ptrdiff_t r = 0; !of->given && r < of->batch; r++)
            squares += F(squares_about)(x + r * step, n, middle);
        if (!of->given)
            ((REAL *)of->var)[c] = (REAL)(squares / size);
        REAL var = ((REAL *)of->var)[c];
        REAL scale = 1 / (REAL)sqrt(var + (REAL)of->eps);
        for (ptrdiff_t r = 0; r < of->batch; r++)
            F(scaled_segment)(x + r * step, out + r * step, n, middle, w ? scale * w[c] : scale, b ? b[c] : 0, NULL);
    }
}

static void F(few_channels_back)(const norm_channels *of, ptrdiff_t first, ptrdiff_t count) {
    const ptrdiff_t inner = of->inner, width = count * inner, step = of->channels * inner;
    const double size = (double)(of->batch * inner);
    const REAL *x = (const REAL *)of->x + first * inner, *g = (const REAL *)of->g + first * of->g_channel;
    REAL block[NORM_CHANNELS] = {0}, other[NORM_CHANNELS] = {0}, mean[NORM_CHANNELS], scale[NORM_CHANNELS];
    REAL mixed[NORM_CHANNELS], shift[NORM_CHANNELS], weight[NORM_CHANNELS];
    double total[NORM_CHANNELS] = {0}, products[NORM_CHANNELS] = {0};
    F(to_columns)(of->centre ? F(from_channel)(of->mean, first) : NULL, count, inner, 0, mean);
    F(to_columns)(F(from_channel)(of->var, first), count, inner, 0, scale);
    F(to_columns)(F(from_channel)(of->weight, first), count, inner, 1, weight);
    for (ptrdiff_t r = 0; r < of->batch; r++) {
        const REAL *row = x + r * step, *grad = g + r * of->g_batch;
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++) {
            block[i] += grad[i];
            other[i] += grad[i] * (row[i] - mean[i]);
        }
        if (r % NORM_BLOCK == NORM_BLOCK - 1 || r == of->batch - 1) {
            F(emptied)(block, total, width);
            F(emptied)(other, products, width);
        }
    }
    F(of_channels)(total, count, inner);
    F(of_channels)(products, count, inner);
    for (ptrdiff_t i = 0; i < width; i++) {
        const REAL plain = 1 / (REAL)sqrt(scale[i] + (REAL)of->eps);
        scale[i] = plain * weight[i];
        weight[i] = (REAL)(products[i] * plain);
        mixed[i] = (REAL)(products[i] * plain / size) * plain * scale[i];
        shift[i] = of->centre ? (REAL)(total[i] / size) * scale[i] : 0;
    }
    for (ptrdiff_t c = 0; c < count && of->weight_gradient; c++)
        ((REAL *)of->weight_gradient)[first + c] = weight[c * inner];
    for (ptrdiff_t c = 0; c < count && of->bias_gradient; c++)
        ((REAL *)of->bias_gradient)[first + c] = (REAL)total[c * inner];
    REAL *out = (REAL *)of->out + first * inner;
    for (ptrdiff_t r = 0; of->out && r < of->batch; r++, x += step, g += of->g_batch, out += step)
        INDEPENDENT for (ptrdiff_t i = 0; i < width; i++)
            out[i] = g[i] * scale[i] - ((x[i] - mean[i]) * mixed[i] + shift[i]);
}

static void F(norm_channels_back)(const norm_channels *of, ptrdiff_t first, ptrdiff_t count) {
    if (of->inner <= NORM_INNER) {
        F(few_channels_back)(of, first, count);
        return;
    }
    ptrdiff_t n = of->inner, step = of->channels * n;
    const REAL *w = of->weight;
    for (ptrdiff_t c = first; c < first + count; c++) {
        const REAL *x = (const REAL *)of->x + c * n, *g = (const REAL *)of->g + c * of->g_channel;
        REAL middle = of->centre ? ((const REAL *)of->mean)[c] : 0;
        REAL plain = 1 / (REAL)sqrt(((const REAL *)of->var)[c] + (REAL)of->eps), scale = w ? plain * w[c] : plain;
        WIDE total = 0, products = 0, size = (WIDE)(of->batch * n);
        for (ptrdiff_t r = 0; r < of->batch; r++)
            F(gradient_sums)(g + r * of->g_batch, x + r * step, n, middle, &total, &products, NULL);
        if (of->weight_gradient)
            ((REAL *)of->weight_gradient)[c] = (REAL)(products * plain);
        if (of->bias_gradient)
            ((REAL *)of->bias_gradient)[c] = (REAL)total;
        if (!of->out)
            continue;
        REAL *out = (REAL *)of->out + c * n;
        REAL mixed = (REAL)(products * plain / size) * plain * scale;
        REAL shift = of->centre ? (REAL)(total / size) * scale : 0;
        for (ptrdiff_t r = 0; r < of->batch; r++)
            F(mixed_segment)(g + r * of->g_batch, x + r * step, out + r * step, n, middle, scale, mixed, shift);
    }
}
