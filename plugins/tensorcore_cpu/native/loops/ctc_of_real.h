/* Sums over all paths of one sample, forward and backward in time, for one type. After "Connectionist temporal
   classification", Graves et al. 2006. */

/* The logarithm of the sum of three exponentials; minus infinity of three zeros. */
ALWAYS_INLINE REAL F(added)(REAL x, REAL y, REAL z) {
    REAL top = x > y ? x : y;
    top = z > top ? z : top;
    top = top == -INFINITY ? 0 : top;
    return F(log_)(F(exp_flushed)(x - top) + F(exp_flushed)(y - top) + F(exp_flushed)(z - top)) + top;
}

/* Where a frame of a sample begins. */
ALWAYS_INLINE const REAL *F(frame)(const ctc_what *of, ptrdiff_t t, ptrdiff_t sample) {
    return (const REAL *)of->x + (t * of->batch + sample) * of->classes;
}

ALWAYS_INLINE REAL F(loss_of)(const ctc_what *of, ptrdiff_t sample, const REAL *alpha) {
    const ptrdiff_t frames = of->frames[sample], last = of->lasts[sample];
    if (!frames)
        return last ? INFINITY : 0;
    const REAL *final = alpha + ((frames - 1) * of->batch + sample) * of->states;
    return -F(added)(final[last], last ? final[last - 1] : -INFINITY, -INFINITY);
}

/* Whole vectors of states: what stands behind the last state is made too, and nobody reads it but those behind. */
ALWAYS_INLINE ptrdiff_t F(padded)(ptrdiff_t states) { return (states + LANES - 1) / LANES * LANES; }

/* Of each state the sum of what is at it, one before it and, where that may be skipped to, two before it, in rows that begin there; `way` 1 or -1. */
ALWAYS_INLINE void F(paths)(const REAL *at, const INT *skips, ptrdiff_t way, ptrdiff_t states, REAL *made) {
    for (ptrdiff_t s = 0; s < states; s += LANES)
        for (ptrdiff_t k = s; k < s + LANES; k++)
            made[k] = F(added)(at[k], at[k + way], skips[k] ? at[k + 2 * way] : -INFINITY);
}

/* The exponentials of x + more + shift, times g. */
ALWAYS_INLINE void F(scaled_exps)(const REAL *x, const REAL *more, REAL shift, REAL g, ptrdiff_t count, REAL *made) {
    for (ptrdiff_t s = 0; s < count; s += LANES)
        for (ptrdiff_t k = s; k < s + LANES; k++)
            made[k] = F(exp_flushed)(x[k] + more[k] + shift) * g;
}

static void F(ctc_forward)(const ctc_what *of, ptrdiff_t sample, void *losses, void *to, void *scratch) {
    const ptrdiff_t states = of->states, frames = of->frames[sample], padded = F(padded)(states);
    const int64_t *labels = of->labels + sample * states;
    const bool *skips = of->skips + sample * states;
    /* The sums of the frame before, behind two of no paths; this frame's; and whether a state may be skipped to. */
    REAL *before = (REAL *)scratch + 2, *made = before + padded;
    INT *may_skip = (INT *)(made + padded);
    for (ptrdiff_t s = -2; s < padded; s++)
        before[s] = -INFINITY;
    for (ptrdiff_t s = 0; s < padded; s++)
        may_skip[s] = s < states && skips[s];
    for (ptrdiff_t t = 0; t < frames; t++) { /* nobody reads what would be behind them */
        REAL *alpha = (REAL *)to + (t * of->batch + sample) * states;
        const REAL *x = F(frame)(of, t, sample);
        if (!t) {
            for (ptrdiff_t s = 0; s < states; s++)
                made[s] = s == 0 || (s == 1 && of->lasts[sample]) ? 0 : -INFINITY;
        } else {
            F(paths)(before, may_skip, -1, padded, made);
        }
        for (ptrdiff_t s = 0; s < states; s++)
            alpha[s] = before[s] = made[s] + x[labels[s]];
    }
    ((REAL *)losses)[sample] = F(loss_of)(of, sample, to);
}

static void F(ctc_backward)(const ctc_what *of, ptrdiff_t sample, const void *gradients, const void *from, void *to, void *scratch) {
    const ptrdiff_t states = of->states, frames = of->frames[sample], last = of->lasts[sample], padded = F(padded)(states);
    const int64_t *labels = of->labels + sample * states;
    const bool *skips = of->skips + sample * states;
    const REAL loss = F(loss_of)(of, sample, from), g = ((const REAL *)gradients)[sample];
    const bool dropped = of->infinite && loss == INFINITY;
    /* The frame after's sums, before two of no paths; this frame's; those of the way there; what a state shares; whether it may be skipped from. */
    REAL *later = scratch, *beta = later + padded + 2, *alpha = beta + padded, *share = alpha + padded;
    INT *may_skip = (INT *)(share + padded);
    for (ptrdiff_t s = 0; s < padded + 2; s++)
        later[s] = -INFINITY;
    for (ptrdiff_t s = 0; s < padded; s++) {
        may_skip[s] = s + 2 < states && skips[s + 2];
        alpha[s] = -INFINITY;
    }
    for (ptrdiff_t t = of->length - 1; t >= 0; t--) {
        const REAL *x = F(frame)(of, t, sample);
        REAL *out = (REAL *)to + (t * of->batch + sample) * of->classes;
        if (t >= frames || dropped) {
            memset(out, 0, (size_t)of->classes * sizeof *out);
            continue;
        }
        if (t == frames - 1)
            for (ptrdiff_t s = 0; s < states; s++)
                beta[s] = s == last || (last && s == last - 1) ? 0 : -INFINITY;
        else
            F(paths)(later, may_skip, 1, padded, beta);
        memcpy(alpha, (const REAL *)from + (t * of->batch + sample) * states, (size_t)states * sizeof *alpha);
        F(scaled_exps)(alpha, beta, loss, g, padded, share);
        for (ptrdiff_t s = 0; s < states; s++)
            later[s] = beta[s] + x[labels[s]];
        const ptrdiff_t whole = of->classes / LANES * LANES;
        REAL rest[LANES] = {0};
        memcpy(rest, x + whole, (size_t)(of->classes - whole) * sizeof *x);
        for (ptrdiff_t c = 0; c < whole; c += LANES)
            for (ptrdiff_t k = c; k < c + LANES; k++)
                out[k] = F(exp_flushed)(x[k]) * g;
        for (ptrdiff_t k = 0; k < LANES && whole < of->classes; k++)
            rest[k] = F(exp_flushed)(rest[k]) * g;
        memcpy(out + whole, rest, (size_t)(of->classes - whole) * sizeof *x);
        for (ptrdiff_t s = 0; s < states; s++)
            out[labels[s]] -= share[s];
    }
}
