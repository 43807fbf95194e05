/* What loops over whole matrices of middle size share, for one type: rows that end in zeros and are gone through a few vectors at a
   time, and numbers divided by a power of two so that no square leaves the range. */

ALWAYS_INLINE ptrdiff_t F(wide)(int n) { return (n + LANES - 1) / LANES * LANES; }

/* Of rows that lie half a kilobyte apart, or a multiple of it, some share the low bits of their addresses, and the processor lets
   what is read from one wait for what is written to another: 256 rows of float64 took a sixth more. */
static ptrdiff_t F(line)(int n) {
    const ptrdiff_t wide = F(wide)(n);
    return wide * (ptrdiff_t)sizeof(REAL) % 512 ? wide : wide + LANES;
}

ALWAYS_INLINE REAL F(root)(REAL x) { return (REAL)(sizeof(REAL) == 4 ? sqrtf((float)x) : sqrt((double)x)); }

static const INT F(KEPT)[2 * LANES] = {[0 ... LANES - 1] = -1};

/* All bits of the first `n` lanes, of which there may be more or none. */
ALWAYS_INLINE VI F(first_lanes)(ptrdiff_t n) {
    n = n < 0 ? 0 : n > LANES ? LANES : n;
    VI made;
    memcpy(&made, F(KEPT) + LANES - n, sizeof made);
    return made;
}

ALWAYS_INLINE V F(only)(V x, VI where) { return (V)((VI)x & where); }

/* Divides whole vectors of numbers by `power`, a power of two about as large as the largest; false where one is not finite. */
static bool F(scale_to_one)(REAL *a, ptrdiff_t count, double *power) {
    V most = {0};
    VI inside = (VI){0} == 0;
    for (ptrdiff_t k = 0; k < count; k += LANES) {
        const V size = (V)(*(const VI *)(a + k) & WITHOUT_SIGN);
        inside &= size <= (REAL)(sizeof(REAL) == 4 ? FLT_MAX : DBL_MAX);
        most = F(larger)(most, size);
    }
    REAL largest = 0;
    for (int m = 0; m < LANES; m++) {
        if (!inside[m])
            return false;
        largest = most[m] > largest ? most[m] : largest;
    }
    int exponent = 0;
    if (largest > 0)
        frexp(largest, &exponent);
    const int limit = sizeof(REAL) == 4 ? 125 : 1021;
    exponent = exponent > limit ? limit : exponent < -limit ? -limit : exponent;
    *power = ldexp(1, exponent);
    const REAL by = (REAL)ldexp(1, -exponent);
    for (ptrdiff_t k = 0; k < count && exponent; k += LANES)
        *(V *)(a + k) *= by;
    return true;
}
