/* The loops of optimizer steps for one type. An infinite parameter times no decay would be NaN, so that 0 is asked for. The switches are arguments that the compiler knows, so that each case is a loop
   of its own. */

ALWAYS_INLINE void F(sgd_case)(const step_numbers *with, REAL *p, const REAL *g, REAL *b, ptrdiff_t count, bool nesterov) {
    REAL lr = (REAL)with->lr, decay = (REAL)with->weight_decay, momentum = (REAL)with->momentum;
    REAL sign = with->maximize ? -1 : 1, share = (REAL)(1 - with->dampening);
    if (!b) {
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
            p[i] -= (decay != 0 ? g[i] * sign + p[i] * decay : g[i] * sign) * lr;
        return;
    }
    if (with->first) {
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
            REAL along = decay != 0 ? g[i] * sign + p[i] * decay : g[i] * sign;
            b[i] = along;
            p[i] -= (nesterov ? along * momentum + along : along) * lr;
        }
        return;
    }
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        REAL along = decay != 0 ? g[i] * sign + p[i] * decay : g[i] * sign, moved = b[i] * momentum + along * share;
        b[i] = moved;
        p[i] -= (nesterov ? moved * momentum + along : moved) * lr;
    }
}

static void F(sgd)(const step_numbers *with, const step_arrays *of, ptrdiff_t first, ptrdiff_t count) {
    REAL *p = (REAL *)of->param + first, *b = of->one ? (REAL *)of->one + first : NULL;
    const REAL *g = (const REAL *)of->grad + first;
    if (with->nesterov)
        F(sgd_case)(with, p, g, b, count, true);
    else
        F(sgd_case)(with, p, g, b, count, false);
}

ALWAYS_INLINE void F(adam_case)(const step_numbers *with, const step_arrays *of, ptrdiff_t first, ptrdiff_t count,
                                bool largest) {
    REAL *p = (REAL *)of->param + first, *m = (REAL *)of->one + first, *v = (REAL *)of->two + first;
    REAL *top = largest ? (REAL *)of->three + first : NULL;
    const REAL *g = (const REAL *)of->grad + first;
    REAL decay = with->decoupled ? 0 : (REAL)with->weight_decay, sign = with->maximize ? -1 : 1;
    REAL kept = with->decoupled ? (REAL)(1 - with->lr * with->weight_decay) : 1, eps = (REAL)with->eps;
    REAL new_m = (REAL)(1 - with->beta1), new_v = (REAL)(1 - with->beta2), old_v = (REAL)with->beta2;
    REAL size = (REAL)of->size, by = (REAL)(1 / of->correction);
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        REAL was = p[i] * kept, along = decay != 0 ? g[i] * sign + was * decay : g[i] * sign;
        REAL mean = m[i] + (along - m[i]) * new_m, square = v[i] * old_v + along * along * new_v;
        m[i] = mean;
        v[i] = square;
        if (largest)
            top[i] = square = ((top[i] > square) | (top[i] != top[i])) ? top[i] : square;
        p[i] = was - mean / (F(root)(square) * by + eps) * size;
    }
}

static void F(adam)(const step_numbers *with, const step_arrays *of, ptrdiff_t first, ptrdiff_t count) {
    if (of->three)
        F(adam_case)(with, of, first, count, true);
    else
        F(adam_case)(with, of, first, count, false);
}

static bool F(unscale)(void *grad, ptrdiff_t count, double factor) {
    REAL *g = grad, by = (REAL)factor;
    INT odd = 0;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        REAL was = g[i];
        g[i] = was * by;
        odd |= was - was != 0 ? 1 : 0;
    }
    return odd;
}
