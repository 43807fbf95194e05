/* Transforms of lines that are cut (fft_cut in fft.h): a block of columns, a block of rows, and real numbers in pairs. */

/* The lines of a block, of complex numbers side by side. */
ALWAYS_INLINE void N(neighbours)(const char *first, const char **lines) {
    for (int lane = 0; lane < ACROSS; lane++)
        lines[lane] = first + lane * 2 * (ptrdiff_t)sizeof(REAL);
}

/* An inverse transform exchanges real and imaginary parts on the way in and, with the rows, on the way out. */
static void N(columns)(const fft_cut *cut, bool forward, const char *from, void *made, ptrdiff_t block, void *work) {
    const ptrdiff_t number = 2 * sizeof(REAL), room = fft_room(cut->down), stride = 2 * (fft_blocks(cut->columns, ACROSS) + 1);
    const char *lines[ACROSS];
    T *re = work, *im = re + room;
    N(neighbours)(from + fft_begin(block, cut->columns, ACROSS) * number, lines);
    N(read)(lines, cut->columns * number, cut->rows, forward ? re : im, forward ? im : re);
    N(passes)(cut->down, &re, &im, im + room, im + 2 * room);
    const T *near = cut->near;
    const REAL *far = (const REAL *)cut->far + 2 * block * cut->rows;
    T *to = (T *)made + 2 * block;
    for (ptrdiff_t k = 0; k < cut->rows; k++, near += 2, far += 2, to += stride) {
        const T w_re = near[0] * far[0] - near[1] * far[1], w_im = near[0] * far[1] + near[1] * far[0];
        to[0] = re[k] * w_re - im[k] * w_im;
        to[1] = re[k] * w_im + im[k] * w_re;
    }
}

static void N(rows)(const fft_cut *cut, bool forward, double scale, const void *made, char *to, ptrdiff_t block, void *work) {
    const ptrdiff_t number = 2 * sizeof(REAL), room = fft_room(cut->along), blocks = fft_blocks(cut->columns, ACROSS);
    const ptrdiff_t first = fft_begin(block, cut->rows, ACROSS), stride = 2 * (blocks + 1);
    const T *from = (const T *)made + first * stride;
    T *re = work, *im = re + room;
    for (ptrdiff_t b = 0; b < blocks; b++, from += 2) {
        const ptrdiff_t at = fft_begin(b, cut->columns, ACROSS);
        for (int part = 0; part < 2; part++) {
            T tile[ACROSS], *into = (part ? im : re) + at;
#pragma GCC unroll 16
            for (int lane = 0; lane < ACROSS; lane++)
                tile[lane] = from[lane * stride + part];
            N(turn)(tile);
#pragma GCC unroll 16
            for (int j = 0; j < ACROSS; j++)
                into[j] = tile[j];
        }
    }
    N(passes)(cut->along, &re, &im, im + room, im + 2 * room);
    const char *lines[ACROSS];
    N(neighbours)(to + first * number, lines);
    N(write)((char *const *)lines, cut->rows * number, ACROSS, cut->columns, forward ? re : im, forward ? im : re, (REAL)scale,
             (REAL)scale);
}

/* Elements k and n - k of a spectrum of real numbers, or of that of their pairs, share their sums. */
typedef struct {
    T low_re, low_im, high_re, high_im;
} N(ends);

ALWAYS_INLINE N(ends) N(unpaired)(N(ends) z, T w_re, T w_im, REAL scale, REAL other) {
    const T even_re = (z.low_re + z.high_re) * (REAL)0.5, even_im = (z.low_im - z.high_im) * (REAL)0.5;
    const T odd_re = (z.low_im + z.high_im) * (REAL)0.5, odd_im = (z.high_re - z.low_re) * (REAL)0.5;
    const T turned_re = odd_re * w_re - odd_im * w_im, turned_im = odd_re * w_im + odd_im * w_re;
    return (N(ends)){(even_re + turned_re) * scale, (even_im + turned_im) * other, (even_re - turned_re) * scale,
                     (turned_im - even_im) * other};
}

ALWAYS_INLINE N(ends) N(paired)(N(ends) x, T w_re, T w_im, REAL other) {
    const T low_im = x.low_im * other, high_im = x.high_im * other;
    const T even_re = x.low_re + x.high_re, even_im = low_im - high_im, gap_re = x.low_re - x.high_re, gap_im = low_im + high_im;
    const T odd_re = gap_re * w_re + gap_im * w_im, odd_im = gap_im * w_re - gap_re * w_im;
    return (N(ends)){even_re - odd_im, even_im + odd_re, even_re + odd_im, odd_re - even_im};
}

/* All elements k and n - k with 0 < k <= n / 2, a vector of k at a time: to what the pairs' spectrum is, or back from it. In the
   middle, where there are fewer or the two ends meet, they go through copies. */
ALWAYS_INLINE void N(both_ends)(const fft_cut *cut, bool back, const REAL *from, REAL *to, REAL scale, REAL other) {
    const ptrdiff_t n = cut->n;
    const T *near = cut->half_near;
    const REAL *far = cut->half_far;
    for (ptrdiff_t k = 1; 2 * k <= n; k += ACROSS, far += 2) {
        const T w_re = near[0] * far[0] - near[1] * far[1], w_im = near[0] * far[1] + near[1] * far[0];
        const ptrdiff_t left = n / 2 - k + 1, count = left < ACROSS ? left : ACROSS, high = n - k - count + 1;
        const size_t bytes = (size_t)count * 2 * sizeof(REAL);
        const bool whole = count == ACROSS && k + ACROSS <= high;
        REAL low_copy[2 * ACROSS], high_copy[2 * ACROSS], *const high_end = high_copy + 2 * (ACROSS - count);
        if (!whole) {
            memset(low_copy, 0, sizeof low_copy);
            memset(high_copy, 0, sizeof high_copy);
            memcpy(low_copy, from + 2 * k, bytes);
            memcpy(high_end, from + 2 * high, bytes);
        }
        const REAL *low_at = whole ? from + 2 * k : low_copy, *high_at = whole ? from + 2 * high : high_copy;
        const T a = *(const T_U *)low_at, b = *(const T_U *)(low_at + ACROSS);
        const T c = *(const T_U *)high_at, d = *(const T_U *)(high_at + ACROSS), re = UNZIP(c, d, 0), im = UNZIP(c, d, 1);
        const N(ends) x = {UNZIP(a, b, 0), UNZIP(a, b, 1), REVERSED(re), REVERSED(im)};
        const N(ends) y = back ? N(paired)(x, w_re, w_im, other) : N(unpaired)(x, w_re, w_im, scale, other);
        const T high_re = REVERSED(y.high_re), high_im = REVERSED(y.high_im);
        REAL *low_to = whole ? to + 2 * k : low_copy, *high_to = whole ? to + 2 * high : high_copy;
        *(T_U *)low_to = ZIP(y.low_re, y.low_im, 0);
        *(T_U *)(low_to + ACROSS) = ZIP(y.low_re, y.low_im, ACROSS / 2);
        *(T_U *)high_to = ZIP(high_re, high_im, 0);
        *(T_U *)(high_to + ACROSS) = ZIP(high_re, high_im, ACROSS / 2);
        if (!whole) {
            memcpy(to + 2 * high, high_end, bytes);
            memcpy(to + 2 * k, low_copy, bytes);
        }
    }
}

static void N(unpair_cut)(const fft_cut *cut, char *line, double scale, double other) {
    REAL *x = (REAL *)line;
    const REAL first = x[0], second = x[1];
    N(both_ends)(cut, false, x, x, (REAL)scale, (REAL)other);
    x[0] = (first + second) * (REAL)scale;
    x[2 * cut->n] = (first - second) * (REAL)scale;
    x[1] = x[2 * cut->n + 1] = 0;
}

static void N(pair_cut)(const fft_cut *cut, bool forward, const char *from, char *to) {
    const REAL *x = (const REAL *)from;
    const REAL first = x[0], last = x[2 * cut->n];
    REAL *made = (REAL *)to;
    N(both_ends)(cut, true, x, made, 1, forward ? -1 : 1);
    made[0] = first + last;
    made[1] = first - last;
}

static void N(widen)(const char *from, char *to, ptrdiff_t count) {
    for (ptrdiff_t j = count - 1; j >= 0; j--) { /* from the end: it may be the same place */
        const REAL x = ((const REAL *)from)[j];
        ((REAL *)to)[2 * j] = x;
        ((REAL *)to)[2 * j + 1] = 0;
    }
}

static void N(mirror)(char *line, ptrdiff_t n) {
    REAL *x = (REAL *)line;
    for (ptrdiff_t k = 1; k < n - k; k++) {
        x[2 * (n - k)] = x[2 * k];
        x[2 * (n - k) + 1] = -x[2 * k + 1];
    }
}
