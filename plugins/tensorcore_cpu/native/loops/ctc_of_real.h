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

static void F(ctc_forward)(const ctc_what *of, ptrdiff_t sample, void *losses, void *to, void *scratch) {
    const ptrdiff_t states = of->states, frames = of->frames[sample];
    const int64_t *labels = of->labels + sample * states;
    const bool *skips = of->skips + sample * states;
    REAL *before = scratch, *made = to; /* the sums of the frame before, behind two of no paths */
    for (ptrdiff_t i = 0; i < states + 2; i++)
        before[i] = -INFINITY;
    for (ptrdiff_t t = 0; t < of->length; t++) {
        REAL *alpha = made + (t * of->batch + sample) * states;
        const REAL *x = F(frame)(of, t, sample);
        if (t >= frames) {
            for (ptrdiff_t s = 0; s < states; s++)
                alpha[s] = -INFINITY;
        } else if (!t) {
            for (ptrdiff_t s = 0; s < states; s++)
                alpha[s] = s == 0 || (s == 1 && of->lasts[sample]) ? x[labels[s]] : -INFINITY;
        } else {
            INDEPENDENT for (ptrdiff_t s = 0; s < states; s++)
                alpha[s] = F(added)(before[s + 2], before[s + 1], skips[s] ? before[s] : -INFINITY);
            for (ptrdiff_t s = 0; s < states; s++)
                alpha[s] += x[labels[s]];
        }
        memcpy(before + 2, alpha, (size_t)states * sizeof *alpha);
    }
    ((REAL *)losses)[sample] = F(loss_of)(of, sample, made);
}

static void F(ctc_backward)(const ctc_what *of, ptrdiff_t sample, const void *gradients, const void *from, void *to, void *scratch) {
    const ptrdiff_t states = of->states, frames = of->frames[sample], last = of->lasts[sample];
    const int64_t *labels = of->labels + sample * states;
    const bool *skips = of->skips + sample * states;
    const REAL loss = F(loss_of)(of, sample, from), g = ((const REAL *)gradients)[sample];
    const bool dropped = of->infinite && loss == INFINITY;
    REAL *later = scratch, *beta = later + states + 2, *share = beta + states; /* the frame after's, before two of no paths */
    for (ptrdiff_t i = 0; i < states + 2; i++)
        later[i] = -INFINITY;
    for (ptrdiff_t t = of->length - 1; t >= 0; t--) {
        const REAL *x = F(frame)(of, t, sample), *alpha = (const REAL *)from + (t * of->batch + sample) * states;
        REAL *out = (REAL *)to + (t * of->batch + sample) * of->classes;
        if (t >= frames || dropped) {
            memset(out, 0, (size_t)of->classes * sizeof *out);
            continue;
        }
        if (t == frames - 1)
            for (ptrdiff_t s = 0; s < states; s++)
                beta[s] = s == last || (last && s == last - 1) ? 0 : -INFINITY;
        else
            for (ptrdiff_t s = 0; s < states; s++)
                beta[s] = F(added)(later[s], later[s + 1], s + 2 < states && skips[s + 2] ? later[s + 2] : -INFINITY);
        INDEPENDENT for (ptrdiff_t s = 0; s < states; s++)
            share[s] = F(exp_flushed)(alpha[s] + beta[s] + loss) * g;
        for (ptrdiff_t s = 0; s < states; s++)
            later[s] = beta[s] + x[labels[s]];
        INDEPENDENT for (ptrdiff_t c = 0; c < of->classes; c++)
            out[c] = F(exp_flushed)(x[c]) * g;
        for (ptrdiff_t s = 0; s < states; s++)
            out[labels[s]] -= share[s];
    }
}
