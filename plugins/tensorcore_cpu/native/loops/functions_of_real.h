/* The functions of functions.h for one type, which REAL and the other names describe; included once for each. */

ALWAYS_INLINE UINT F(bits)(REAL x) {
    UINT bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

ALWAYS_INLINE REAL F(real)(UINT bits) {
    REAL x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for exponents of normal numbers. */
ALWAYS_INLINE REAL F(power_of_two)(INT n) { return F(real)((UINT)(n + EXPONENT_BIAS) << FRACTION_BITS); }

/* e^r - 1 where x = n ln 2 + r and |r| <= ln(2) / 2; x within EXP_LEAST and EXP_MOST, or NaN. */
ALWAYS_INLINE REAL F(exp_part)(REAL x, INT *n) {
    REAL shifted = x * (REAL)1.44269504088896340736 + MAGIC;
    *n = (INT)(F(bits)(shifted) - F(bits)(MAGIC));
    REAL whole = shifted - MAGIC;
    REAL r = x - whole * LN2_HIGH;
    r = r - whole * LN2_LOW;
    return r + r * r * EXP_SERIES(r);
}

/* x, but no less than the limit of that number and no more than EXP_MOST; NaN stays. */
ALWAYS_INLINE REAL F(within)(REAL x, int lower) {
    REAL least = F(real)((UINT)F(exp_limits)[lower]), most = F(real)((UINT)F(exp_limits)[EXP_MOST]);
    REAL y = x < least ? least : x;
    return y > most ? most : y;
}

/* n / 2 rounded down; a shift of negative 64-bit numbers has no vector form before AVX-512. */
ALWAYS_INLINE INT F(halved)(INT n) { return (INT)((UINT)(n + 4096) >> 1) - 2048; }

ALWAYS_INLINE REAL F(exp_)(REAL x) {
    INT n;
    REAL part = F(exp_part)(F(within)(x, EXP_LEAST), &n);
    /* In two steps, because 2^n alone may be no normal number. */
    INT half = F(halved)(n);
    return (part + 1) * F(power_of_two)(half) * F(power_of_two)(n - half);
}

/* exp with 0 in the place of denormal results: one multiplication less. */
ALWAYS_INLINE REAL F(exp_flushed)(REAL x) {
    INT n;
    REAL part = F(exp_part)(F(within)(x, EXP_FLUSHED), &n);
    return (part * 2 + 2) * F(power_of_two)(n - 1); /* doubled first, because 2^n may be infinite */
}

ALWAYS_INLINE REAL F(expm1_)(REAL x) {
    INT n;
    REAL part = F(exp_part)(F(within)(x, EXP_LEAST), &n);
    INT half = F(halved)(n);
    REAL first = F(power_of_two)(half), second = F(power_of_two)(n - half), inverse = F(power_of_two)(half - n);
    REAL made = (part * first + (first - inverse)) * second;
    return x == 0 ? x : made;
}

ALWAYS_INLINE REAL F(abs_)(REAL x) { return F(real)(F(bits)(x) & (~(UINT)0 >> 1)); }

ALWAYS_INLINE REAL F(signed_as)(REAL size, REAL sign) {
    return F(real)(F(bits)(size) | (F(bits)(sign) & ~(~(UINT)0 >> 1)));
}

ALWAYS_INLINE REAL F(tanh_)(REAL x) {
    INT n;
    REAL size = F(abs_)(x), twice = size > TANH_ONE ? 2 * TANH_ONE : 2 * size;
    REAL part = F(exp_part)(twice, &n), scale = F(power_of_two)(n);
    REAL less = part * scale + (scale - 1); /* e^2x - 1 */
    return F(signed_as)(less / (less + 2), x);
}

ALWAYS_INLINE REAL F(sigmoid_)(REAL x) { return 1 / (1 + F(exp_flushed)(-x)); }

ALWAYS_INLINE REAL F(silu_)(REAL x) { return x / (1 + F(exp_flushed)(-x)); }

ALWAYS_INLINE REAL F(log_)(REAL x) {
    bool denormal = x < LEAST_NORMAL;
    REAL y = denormal ? x * (REAL)((UINT)1 << (RAISE / 2)) * (REAL)((UINT)1 << (RAISE - RAISE / 2)) : x;
    UINT bits = F(bits)(y);
    UINT away = bits - (UINT)ROOT_HALF + ((UINT)(EXPONENT_BIAS + 1) << (FRACTION_BITS + 1));
    INT k = (INT)(away >> FRACTION_BITS) - 2 * (EXPONENT_BIAS + 1);
    REAL f = F(real)(bits - ((UINT)k << FRACTION_BITS)) - 1;
    REAL exponent = F(real)(F(bits)(MAGIC) + (UINT)k) - MAGIC;
    exponent = denormal ? exponent - RAISE : exponent;
    REAL s = f / (2 + f), z = s * s, half = (REAL)0.5 * f * f;
    REAL made = exponent * LN2_HIGH - ((half - (s * (half + z * LOG_SERIES(z)) + exponent * LN2_LOW)) - f);
    made = x < (REAL)INFINITY ? made : x;
    made = x == 0 ? -(REAL)INFINITY : made;
    return x < 0 ? (REAL)NAN : made;
}

ALWAYS_INLINE REAL F(log1p_)(REAL x) {
    /* What the sum loses goes back in: log(u) + (x - (u - 1)) / u. */
    REAL u = 1 + x, lost = (x - (u - 1)) / u, made = F(log_)(u);
    made = made + (made < (REAL)INFINITY && u > 0 ? lost : 0);
    return x == 0 ? x : made;
}

/* The same from 0 to 1, where nothing is lost and nothing needs to be told apart. */
ALWAYS_INLINE REAL F(log1p_near)(REAL x) {
    const bool far = x > (REAL)0.41421356237309504880; /* beyond it that of half of 1 + x, and of 2 */
    REAL f = far ? (x - 1) * (REAL)0.5 : x, exponent = far ? 1 : 0;
    REAL s = f / (2 + f), z = s * s, half = (REAL)0.5 * f * f;
    return exponent * LN2_HIGH - ((half - (s * (half + z * LOG_SERIES(z)) + exponent * LN2_LOW)) - f);
}

/* erfc from 1 on, in float from 0 on. */
ALWAYS_INLINE REAL F(erfc_)(REAL x) {
    return F(exp_flushed)(-x * x) * F(scaled_erfc)(x > ERFC_ZERO ? ERFC_ZERO : x);
}

ALWAYS_INLINE REAL F(erf_)(REAL x) {
    REAL size = F(abs_)(x);
    return size < 1 ? x * ERF_SERIES(size * size) : F(signed_as)(1 - F(erfc_)(size), x);
}

/* erfc of any number, with all digits: the square in two factors, of which the first is exact. */
ALWAYS_INLINE REAL F(whole_erfc)(REAL x) {
    REAL size = F(abs_)(x);
    size = size > ERFC_LEAST ? ERFC_LEAST : size;
    REAL head = F(real)(F(bits)(size) & ~(((UINT)1 << (FRACTION_BITS / 2 + 1)) - 1));
    REAL bell = F(exp_)(-head * head) * F(exp_)((head - size) * (head + size));
    REAL tail = bell * F(scaled_erfc)(size > ERFC_ZERO ? ERFC_ZERO : size);
    REAL near = 1 - size * ERF_SERIES(size * size);
    tail = size < (REAL)0.5 ? near : tail;
    tail = sizeof(REAL) == 8 && size < 1 ? near : tail;
    return x < 0 ? 2 - tail : tail;
}

/* log(e^(s x) + e^(s y)) / s, where `equal` is what two equal numbers are beyond their value. */
ALWAYS_INLINE REAL F(log_of_sum)(REAL x, REAL y, REAL scale, REAL equal, REAL back) {
    REAL away = F(abs_)(x - y), top = x > y ? x : y;
    REAL made = top + back * F(log1p_near)(F(exp_)(-away * scale));
    made = x == y ? x + equal : made;
    return made;
}

/* 0.5 (1 + tanh u) is 1 / (1 + e^-2u). */
ALWAYS_INLINE REAL F(gelu_tanh_)(REAL x) {
    REAL u = x * ((REAL)0.79788456080286535588 + (REAL)(0.79788456080286535588 * 0.044715) * x * x);
    return x / (1 + F(exp_flushed)(-2 * u));
}

#undef REAL
#undef INT
#undef UINT
#undef F
#undef FRACTION_BITS
#undef EXPONENT_BIAS
#undef MAGIC
#undef LN2_HIGH
#undef LN2_LOW
#undef TANH_ONE
#undef ERFC_ZERO
#undef ERFC_LEAST
#undef LEAST_NORMAL
#undef RAISE
#undef ROOT_HALF
#undef EXP_SERIES
#undef LOG_SERIES
#undef ERF_SERIES
