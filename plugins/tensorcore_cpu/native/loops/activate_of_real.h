/* The loops of activations for one type. */

#define LOOP(name, BODY)                                                                                      \
    static void F(name)(const double *numbers, const void *from, const void *gradient, void *to, ptrdiff_t count) { \
        const REAL *all = from, *gradients = gradient;                                                        \
        REAL *out = to, a = (REAL)numbers[0], b = (REAL)numbers[1], c = (REAL)numbers[2];                     \
        (void)gradients, (void)a, (void)b, (void)c;                                                           \
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {                                                   \
            REAL x = all[i], made;                                                                            \
            BODY                                                                                              \
            out[i] = made;                                                                                    \
        }                                                                                                     \
    }

/* log(1 + e^z), z itself over the threshold */
ALWAYS_INLINE REAL F(softplus_of)(REAL z, REAL threshold) {
    REAL low = (z > 0 ? z : 0) + F(log1p_near)(F(exp_)(-F(abs_)(z)));
    return z > threshold ? z : low;
}

LOOP(elu_any, {
    REAL low = F(expm1_)((x > 0 ? 0 : x) * b) * a;
    made = x > 0 ? x * c : low;
})
LOOP(elu_above, made = x * c;)

/* Some at a time, of which there may be none that needs an exponential. */
static void F(elu_all)(const double *numbers, const void *from, const void *gradient, void *to, ptrdiff_t count) {
    enum { SOME = 256 };
    const REAL *x = from;
    for (ptrdiff_t begin = 0, some; begin < count; begin += some) {
        int below = 0;
        some = count - begin < SOME ? count - begin : SOME;
        for (ptrdiff_t i = begin; i < begin + some; i++)
            below |= !(x[i] > 0);
        (below ? F(elu_any) : F(elu_above))(numbers, x + begin, gradient, (REAL *)to + begin, some);
    }
}

LOOP(elu_slope, {
    REAL low = F(exp_)((x > 0 ? 0 : x) * b) * (a * b);
    made = gradients[i] * (x > 0 ? c : low);
})
LOOP(softplus_all, {
    REAL z = x * a;
    REAL low = F(softplus_of)(z, b) / a;
    made = z > b ? x : low;
})
LOOP(softplus_slope, {
    REAL z = x * a;
    REAL low = F(sigmoid_)(z);
    made = gradients[i] * (z > b ? 1 : low);
})
LOOP(mish_all, made = x * F(tanh_)(F(softplus_of)(x, 20));)
LOOP(mish_slope, {
    REAL t = F(tanh_)(F(softplus_of)(x, 20));
    made = gradients[i] * (t + x * F(sigmoid_)(x) * (1 - t * t));
})
LOOP(log_sigmoid_all, made = (x > 0 ? 0 : x) - F(log1p_near)(F(exp_flushed)(-F(abs_)(x)));)
LOOP(log_sigmoid_slope, made = gradients[i] * F(sigmoid_)(-x);)
LOOP(gelu_slope, {
    REAL bell;
    REAL share = F(gelu_share_of)(x, &bell);
    made = gradients[i] * (share + x * (bell * (REAL)0.39894228040143267794));
})
LOOP(gelu_tanh_slope, {
    REAL k = (REAL)0.79788456080286535588;
    REAL square = x * x;
    REAL t = F(tanh_)(x * (square * (k * (REAL)0.044715) + k));
    REAL slope = (1 - t * t) * (square * (k * (REAL)0.134145) + k) * x;
    made = gradients[i] * ((t + 1 + slope) * (REAL)0.5);
})
LOOP(silu_slope, {
    REAL s = F(sigmoid_)(x);
    made = gradients[i] * (s * (x * (1 - s) + 1));
})
#undef LOOP
