/* The loops of losses for one type. */

static void F(squared_each)(const void *from, const void *target, void *to, ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target;
    REAL *out = to;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        REAL away = x[i] - y[i];
        out[i] = away * away;
    }
}

static double F(squared_total)(const void *from, const void *target, ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target;
    WIDE total = 0;
#define TERM(AT, i) (AT(x, i) - AT(y, i)) * (AT(x, i) - AT(y, i))
    ADD_UP(total, count, TERM)
#undef TERM
    return (double)total;
}

static void F(squared_back)(const void *from, const void *target, const void *gradient, bool one, double factor, void *to,
                            ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target, *g = gradient;
    REAL *out = to, by = 2 * (REAL)factor;
    if (one) {
        by = *g * by;
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
            out[i] = (x[i] - y[i]) * by;
    } else {
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
            out[i] = (x[i] - y[i]) * (g[i] * by);
    }
}

/* The sum of losses that were put to a buffer. */
#define TOTAL_OF(name)                                                                                        \
    static double F(name##_total)(const void *from, const void *target, ptrdiff_t count, loss_shape shape) {  \
        const REAL *x = from, *y = target;                                                                    \
        REAL space[PIECE];                                                                                    \
        WIDE total = 0;                                                                                       \
        for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {                                            \
            ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;                                  \
            F(name##_each)(x + begin, y + begin, space, piece, shape);                                        \
            total += F(row_sum)(space, piece);                                                                \
        }                                                                                                     \
        return (double)total;                                                                                 \
    }

/* Half the square over the limit of a difference below it, else the difference less half the limit. */
static void F(smooth_each)(const void *from, const void *target, void *to, ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target, limit = (REAL)shape.limit, scale = (REAL)shape.scale;
    const REAL half = limit > 0 ? (REAL)0.5 / limit : 0, less = (REAL)0.5 * limit;
    REAL *out = to;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const REAL away = F(abs_)(x[i] - y[i]), large = away - less, small = away * away * half;
        out[i] = scale * (away < limit ? small : large);
    }
}

TOTAL_OF(smooth)

static void F(smooth_back)(const void *from, const void *target, const void *gradient, bool one, double factor, void *to,
                           ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target, *g = gradient, limit = (REAL)shape.limit, by = (REAL)(factor * shape.scale);
    const REAL slope = limit > 0 ? 1 / limit : 0;
    REAL *out = to;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const REAL away = x[i] - y[i], sign = away > 0 ? 1 : away < 0 ? -1 : away, small = away * slope;
        out[i] = (F(abs_)(away) < limit ? small : sign) * ((one ? g[0] : g[i]) * by);
    }
}

/* max(x, 0) - x y + log(1 + e^-|x|), with one product, so that it is no difference of infinities */
static void F(logistic_each)(const void *from, const void *target, void *to, ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target;
    REAL *out = to;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
        out[i] = x[i] * ((x[i] < 0 ? 0 : 1) - y[i]) + F(log1p_)(F(exp_flushed)(-F(abs_)(x[i])));
}

TOTAL_OF(logistic)

static void F(logistic_back)(const void *from, const void *target, const void *gradient, bool one, double factor, void *to,
                             ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target, *g = gradient;
    REAL *out = to, by = (REAL)factor;
    if (one) {
        by = *g * by;
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
            out[i] = (F(sigmoid_)(x[i]) - y[i]) * by;
    } else {
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
            out[i] = (F(sigmoid_)(x[i]) - y[i]) * (g[i] * by);
    }
}

/* -(y log(x) + (1 - y) log(1 - x)), with logarithms of at least -100. */
static void F(chance_each)(const void *from, const void *target, void *to, ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target;
    REAL *out = to;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const REAL yes = F(log_)(x[i]), no = F(log_)(1 - x[i]);
        out[i] = (y[i] - 1) * (no < -100 ? -100 : no) - y[i] * (yes < -100 ? -100 : yes);
    }
}

TOTAL_OF(chance)

/* Of a chance that is 0 or 1 large, not infinite. */
static void F(chance_back)(const void *from, const void *target, const void *gradient, bool one, double factor, void *to,
                           ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target, *g = gradient;
    REAL *out = to, by = (REAL)factor;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const REAL slope = x[i] * (1 - x[i]);
        out[i] = (one ? g[0] : g[i]) * by * (x[i] - y[i]) / (slope < (REAL)1e-12 ? (REAL)1e-12 : slope);
    }
}

/* log(1 + e^(-x y)) */
static void F(margin_each)(const void *from, const void *target, void *to, ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target;
    REAL *out = to;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const REAL score = -y[i] * x[i];
        out[i] = (score < 0 ? 0 : score) + F(log1p_)(F(exp_flushed)(-F(abs_)(score)));
    }
}

TOTAL_OF(margin)

static void F(margin_back)(const void *from, const void *target, const void *gradient, bool one, double factor, void *to,
                           ptrdiff_t count, loss_shape shape) {
    const REAL *x = from, *y = target, *g = gradient;
    REAL *out = to, by = (REAL)factor;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
        out[i] = F(sigmoid_)(-y[i] * x[i]) * -y[i] * ((one ? g[0] : g[i]) * by);
}

#undef TOTAL_OF
