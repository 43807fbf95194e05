/* Fourier transforms in numbers of type T, ACROSS lanes of REAL: Stockham's passes, whose results come out in order.

   A pass splits what is left of the length, m p, by its factor p: element k of p parts, m apart, gives p elements side by side,
   each times a root of unity; `s` transforms lie interleaved (Stockham 1966; as in C. Van Loan, "Computational Frameworks for the
   Fast Fourier Transform", 1992, 1.7). Inverse transforms exchange real and imaginary parts on the way in and out. */

typedef struct {
    const T *re, *im;
    T *made_re, *made_im;
} N(lines);

/* Each of a pass's kernels: parts a0.. are `in` apart, what is made `s` apart; b_j is what comes out at j. */
#define PASS(name, p, BODY)                                                                                   \
    static void N(name)(N(lines) x, ptrdiff_t m, ptrdiff_t s, const REAL *twiddles) {                         \
        const ptrdiff_t in = m * s;                                                                           \
        for (ptrdiff_t k = 0; k < m; k++, x.re += s, x.im += s, x.made_re += p * s, x.made_im += p * s) {     \
            const REAL *w = twiddles + k * (p - 1) * 2;                                                       \
            const T *restrict re = x.re, *restrict im = x.im;                                                 \
            T *restrict to_re = x.made_re, *restrict to_im = x.made_im;                                       \
            if (k)                                                                                            \
                for (ptrdiff_t q = 0; q < s; q++) {                                                           \
                    BODY(TURNED)                                                                              \
                }                                                                                             \
            else                                                                                              \
                for (ptrdiff_t q = 0; q < s; q++) {                                                           \
                    BODY(STRAIGHT)                                                                            \
                }                                                                                             \
        }                                                                                                     \
    }
#define STRAIGHT(j, r, i)                                                                                     \
    to_re[q + j * s] = r;                                                                                     \
    to_im[q + j * s] = i;
#define TURNED(j, r, i)                                                                                       \
    {                                                                                                         \
        const T one = r, other = i;                                                                           \
        to_re[q + j * s] = one * w[2 * j - 2] - other * w[2 * j - 1];                                         \
        to_im[q + j * s] = one * w[2 * j - 1] + other * w[2 * j - 2];                                         \
    }
#define FIRST(r, i)                                                                                           \
    to_re[q] = r;                                                                                             \
    to_im[q] = i;

#define TWO(PUT)                                                                                              \
    const T r0 = re[q], i0 = im[q], r1 = re[q + in], i1 = im[q + in];                                         \
    FIRST(r0 + r1, i0 + i1)                                                                                   \
    PUT(1, r0 - r1, i0 - i1)
PASS(pass_two, 2, TWO)

#define THREE(PUT)                                                                                            \
    const T r0 = re[q], i0 = im[q];                                                                           \
    const T r = re[q + in] + re[q + 2 * in], i = im[q + in] + im[q + 2 * in];                                 \
    const T dr = (re[q + in] - re[q + 2 * in]) * (REAL)0.86602540378443864676;                                \
    const T di = (im[q + in] - im[q + 2 * in]) * (REAL)0.86602540378443864676;                                \
    const T mr = r0 - r * (REAL)0.5, mi = i0 - i * (REAL)0.5;                                                 \
    FIRST(r0 + r, i0 + i)                                                                                     \
    PUT(1, mr + di, mi - dr)                                                                                  \
    PUT(2, mr - di, mi + dr)
PASS(pass_three, 3, THREE)

#define FOUR(PUT)                                                                                             \
    const T ar = re[q] + re[q + 2 * in], ai = im[q] + im[q + 2 * in];                                         \
    const T br = re[q] - re[q + 2 * in], bi = im[q] - im[q + 2 * in];                                         \
    const T cr = re[q + in] + re[q + 3 * in], ci = im[q + in] + im[q + 3 * in];                               \
    const T dr = re[q + in] - re[q + 3 * in], di = im[q + in] - im[q + 3 * in];                               \
    FIRST(ar + cr, ai + ci)                                                                                   \
    PUT(1, br + di, bi - dr)                                                                                  \
    PUT(2, ar - cr, ai - ci)                                                                                  \
    PUT(3, br - di, bi + dr)
PASS(pass_four, 4, FOUR)

#define C1 ((REAL)0.30901699437494742410)
#define C2 ((REAL)-0.80901699437494742410)
#define S1 ((REAL)0.95105651629515357212)
#define S2 ((REAL)0.58778525229247312917)
#define FIVE(PUT)                                                                                             \
    const T r0 = re[q], i0 = im[q];                                                                           \
    const T r1 = re[q + in] + re[q + 4 * in], i1 = im[q + in] + im[q + 4 * in];                               \
    const T r4 = re[q + in] - re[q + 4 * in], i4 = im[q + in] - im[q + 4 * in];                               \
    const T r2 = re[q + 2 * in] + re[q + 3 * in], i2 = im[q + 2 * in] + im[q + 3 * in];                       \
    const T r3 = re[q + 2 * in] - re[q + 3 * in], i3 = im[q + 2 * in] - im[q + 3 * in];                       \
    const T ar = r0 + r1 * C1 + r2 * C2, ai = i0 + i1 * C1 + i2 * C2;                                         \
    const T br = r4 * S1 + r3 * S2, bi = i4 * S1 + i3 * S2;                                                   \
    const T cr = r0 + r1 * C2 + r2 * C1, ci = i0 + i1 * C2 + i2 * C1;                                         \
    const T dr = r4 * S2 - r3 * S1, di = i4 * S2 - i3 * S1;                                                   \
    FIRST(r0 + r1 + r2, i0 + i1 + i2)                                                                         \
    PUT(1, ar + bi, ai - br)                                                                                  \
    PUT(2, cr + di, ci - dr)                                                                                  \
    PUT(3, cr - di, ci + dr)                                                                                  \
    PUT(4, ar - bi, ai + br)
PASS(pass_five, 5, FIVE)

/* Any other odd factor: elements j and p - j share their sums. */
static void N(pass_any)(N(lines) x, ptrdiff_t m, ptrdiff_t s, const REAL *twiddles, ptrdiff_t p, const REAL *roots) {
    const ptrdiff_t in = m * s, half = (p - 1) / 2;
    T sum_re[FFT_PRIME / 2 + 1], sum_im[FFT_PRIME / 2 + 1], gap_re[FFT_PRIME / 2 + 1], gap_im[FFT_PRIME / 2 + 1];
    for (ptrdiff_t k = 0; k < m; k++)
        for (ptrdiff_t q = 0; q < s; q++) {
            const T *re = x.re + k * s + q, *im = x.im + k * s + q;
            T *to_re = x.made_re + k * p * s + q, *to_im = x.made_im + k * p * s + q, all_re = re[0], all_im = im[0];
            for (ptrdiff_t i = 1; i <= half; i++) {
                all_re += sum_re[i] = re[i * in] + re[(p - i) * in];
                all_im += sum_im[i] = im[i * in] + im[(p - i) * in];
                gap_re[i] = re[i * in] - re[(p - i) * in];
                gap_im[i] = im[i * in] - im[(p - i) * in];
            }
            to_re[0] = all_re;
            to_im[0] = all_im;
            for (ptrdiff_t j = 1; j <= half; j++) {
                T even_re = re[0], even_im = im[0], odd_re = {0}, odd_im = {0};
                for (ptrdiff_t i = 1, at = j; i <= half; i++, at = at + j < p ? at + j : at + j - p) {
                    even_re += sum_re[i] * roots[2 * at];
                    even_im += sum_im[i] * roots[2 * at];
                    odd_re += gap_im[i] * roots[2 * at + 1];
                    odd_im += gap_re[i] * roots[2 * at + 1];
                }
                const T ends[2][2] = {{even_re - odd_re, even_im + odd_im}, {even_re + odd_re, even_im - odd_im}};
                for (int end = 0; end < 2; end++) {
                    const ptrdiff_t to = end ? p - j : j;
                    const REAL *w = twiddles + (k * (p - 1) + to - 1) * 2;
                    const T r = ends[end][0], i = ends[end][1];
                    to_re[to * s] = k ? r * w[0] - i * w[1] : r;
                    to_im[to * s] = k ? r * w[1] + i * w[0] : i;
                }
            }
        }
}

/* All passes, to and fro between two pairs of arrays; where the result is, is written to re and im. */
static void N(passes)(const fft_plan *plan, T **re, T **im, T *other_re, T *other_im) {
    ptrdiff_t length = plan->n, s = 1;
    for (int i = 0; i < plan->count; i++) {
        const ptrdiff_t p = plan->factors[i], m = length / p;
        const N(lines) x = {*re, *im, other_re, other_im};
        const REAL *twiddles = plan->twiddles[i];
        if (p == 4)
            N(pass_four)(x, m, s, twiddles);
        else if (p == 2)
            N(pass_two)(x, m, s, twiddles);
        else if (p == 3)
            N(pass_three)(x, m, s, twiddles);
        else if (p == 5)
            N(pass_five)(x, m, s, twiddles);
        else
            N(pass_any)(x, m, s, twiddles, p, plan->roots[i]);
        other_re = *re;
        other_im = *im;
        *re = x.made_re;
        *im = x.made_im;
        length = m;
        s *= p;
    }
}

/* Times a list of pairs, element by element. */
static void N(times)(T *re, T *im, const REAL *pairs, ptrdiff_t count) {
    for (ptrdiff_t k = 0; k < count; k++) {
        const T r = re[k], i = im[k];
        re[k] = r * pairs[2 * k] - i * pairs[2 * k + 1];
        im[k] = r * pairs[2 * k + 1] + i * pairs[2 * k];
    }
}

/* The spectrum by passes, or as a convolution: j k = (j^2 + k^2 - (k - j)^2) / 2 (Bluestein 1970). */
static void N(spectrum)(const fft_plan *plan, T **re, T **im, T *other_re, T *other_im) {
    const fft_plan *inner = plan->inner;
    if (!inner) {
        N(passes)(plan, re, im, other_re, other_im);
        return;
    }
    T *const first_re = *re, *const first_im = *im;
    N(times)(first_re, first_im, plan->chirp, plan->n);
    memset(first_re + plan->n, 0, (size_t)(inner->n - plan->n) * sizeof(T));
    memset(first_im + plan->n, 0, (size_t)(inner->n - plan->n) * sizeof(T));
    N(passes)(inner, re, im, other_re, other_im);
    N(times)(*re, *im, plan->filter, inner->n);
    const bool moved = *re != first_re;
    N(passes)(inner, im, re, moved ? first_im : other_im, moved ? first_re : other_re);
    N(times)(*re, *im, plan->chirp, plan->n);
}

/* Lanes of lines that there are not repeat the last one: from[] has a pointer for each. */
#define LANE(x, j) ((REAL *)(x))[(j) * ACROSS + lane]

#ifdef ZIP
/* Lines that begin beside one another: their elements lie in rows of lanes, real and imaginary parts by turns. */
static bool N(beside)(const char *const *from, int lines) {
    for (int lane = 1; lane < lines; lane++)
        if (from[lane] != from[0] + lane * 2 * (ptrdiff_t)sizeof(REAL))
            return false;
    return lines == ACROSS;
}

/* Rows become columns: each step doubles how many elements of one column lie beside one another. */
ALWAYS_INLINE void N(turn)(T *block) {
    T other[ACROSS];
#pragma GCC unroll 4
    for (int width = 1; width < ACROSS; width *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < ACROSS / 2; i++) {
            other[2 * i] = ZIP(block[i], block[i + ACROSS / 2], 0);
            other[2 * i + 1] = ZIP(block[i], block[i + ACROSS / 2], ACROSS / 2);
        }
#pragma GCC unroll 16
        for (int i = 0; i < ACROSS; i++)
            block[i] = other[i];
    }
}
#endif

/* Complex numbers, also pairs of real ones. */
static void N(read)(const char *const *from, ptrdiff_t step, ptrdiff_t count, T *re, T *im) {
    ptrdiff_t first = 0;
#ifdef ZIP
    if (N(beside)(from, ACROSS)) {
        for (ptrdiff_t j = 0; j < count; j++) {
            const REAL *x = (const REAL *)(from[0] + j * step);
            const T low = *(const T_U *)x, high = *(const T_U *)(x + ACROSS);
            re[j] = UNZIP(low, high, 0);
            im[j] = UNZIP(low, high, 1);
        }
        return;
    }
    for (; step == 2 * sizeof(REAL) && first + ACROSS / 2 <= count; first += ACROSS / 2) {
        T block[ACROSS];
#pragma GCC unroll 16
        for (int lane = 0; lane < ACROSS; lane++)
            block[lane] = *(const T_U *)(from[lane] + first * step);
        N(turn)(block);
#pragma GCC unroll 8
        for (int j = 0; j < ACROSS / 2; j++) {
            re[first + j] = block[2 * j];
            im[first + j] = block[2 * j + 1];
        }
    }
#endif
    for (ptrdiff_t j = first; j < count; j++)
        for (int lane = 0; lane < ACROSS; lane++) {
            const REAL *x = (const REAL *)(from[lane] + j * step);
            LANE(re, j) = x[0];
            LANE(im, j) = x[1];
        }
}

static void N(read_real)(const char *const *from, ptrdiff_t step, ptrdiff_t every, ptrdiff_t count, T *re) {
    for (ptrdiff_t j = 0; j < count; j++)
        for (int lane = 0; lane < ACROSS; lane++)
            LANE(re, j) = *(const REAL *)(from[lane] + j * every * step);
}

static void N(write)(char *const *to, ptrdiff_t step, int lines, ptrdiff_t count, const T *re, const T *im, REAL scale,
                     REAL other) {
    ptrdiff_t first = 0;
#ifdef ZIP
    if (N(beside)((const char *const *)to, lines)) {
        for (ptrdiff_t j = 0; j < count; j++) {
            const T real = re[j] * scale, imaginary = im[j] * other;
            REAL *made = (REAL *)(to[0] + j * step);
            *(T_U *)made = ZIP(real, imaginary, 0);
            *(T_U *)(made + ACROSS) = ZIP(real, imaginary, ACROSS / 2);
        }
        return;
    }
    for (; step == 2 * sizeof(REAL) && first + ACROSS / 2 <= count; first += ACROSS / 2) {
        T block[ACROSS];
#pragma GCC unroll 8
        for (int j = 0; j < ACROSS / 2; j++) {
            block[2 * j] = re[first + j] * scale;
            block[2 * j + 1] = im[first + j] * other;
        }
        N(turn)(block);
#pragma GCC unroll 16
        for (int lane = 0; lane < ACROSS; lane++)
            if (lane < lines)
                *(T_U *)(to[lane] + first * step) = block[lane];
    }
#endif
    for (ptrdiff_t j = first; j < count; j++)
        for (int lane = 0; lane < lines; lane++) {
            REAL *made = (REAL *)(to[lane] + j * step);
            made[0] = LANE(re, j) * scale;
            made[1] = LANE(im, j) * other;
        }
}

static void N(write_real)(char *const *to, ptrdiff_t step, int lines, ptrdiff_t every, ptrdiff_t count, const T *re, REAL scale) {
    for (ptrdiff_t j = 0; j < count; j++)
        for (int lane = 0; lane < lines; lane++)
            *(REAL *)(to[lane] + j * every * step) = LANE(re, j) * scale;
}

/* Real numbers in pairs as complex ones: the transform of all of them from that of the pairs. */
static void N(unpair)(const fft_plan *plan, const T *re, const T *im, T *made_re, T *made_im) {
    const ptrdiff_t n = plan->n;
    const REAL *w = plan->halves;
    const T zero = {0};
    made_re[0] = re[0] + im[0];
    made_re[n] = re[0] - im[0];
    made_im[0] = made_im[n] = zero;
    for (ptrdiff_t k = 1; k < n; k++) {
        const T even_re = (re[k] + re[n - k]) * (REAL)0.5, even_im = (im[k] - im[n - k]) * (REAL)0.5;
        const T odd_re = (im[k] + im[n - k]) * (REAL)0.5, odd_im = (re[n - k] - re[k]) * (REAL)0.5;
        made_re[k] = even_re + odd_re * w[2 * k] - odd_im * w[2 * k + 1];
        made_im[k] = even_im + odd_re * w[2 * k + 1] + odd_im * w[2 * k];
    }
}

/* The way back: half a spectrum of real numbers to the spectrum of their pairs. */
static void N(pair)(const fft_plan *plan, const T *re, const T *im, T *made_re, T *made_im) {
    const ptrdiff_t n = plan->n;
    const REAL *w = plan->halves;
    made_re[0] = re[0] + re[n];
    made_im[0] = re[0] - re[n];
    for (ptrdiff_t k = 1; k < n; k++) {
        const T even_re = re[k] + re[n - k], even_im = im[k] - im[n - k];
        const T gap_re = re[k] - re[n - k], gap_im = im[k] + im[n - k];
        const T odd_re = gap_re * w[2 * k] + gap_im * w[2 * k + 1], odd_im = gap_im * w[2 * k] - gap_re * w[2 * k + 1];
        made_re[k] = even_re - odd_im;
        made_im[k] = even_im + odd_re;
    }
}

static void N(transform)(const fft_way *way, const char *const *from, char *const *to, int lines, void *work) {
    const fft_plan *plan = way->plan;
    const ptrdiff_t n = plan->n, in = way->from_step, out = way->to_step, room = fft_room(plan);
    const bool pairs = plan->halves != NULL;
    const REAL scale = (REAL)way->scale;
    T *re = work, *im = re + room, *other_re = im + room, *other_im = other_re + room;
    if (way->kind == FFT_HALF_TO_REAL) {
        const ptrdiff_t half = way->size / 2 + 1;
        N(read)(from, in, half, re, im);
        for (ptrdiff_t k = 0; way->forward && k < half; k++)
            im[k] = -im[k];
        if (pairs) {
            N(pair)(plan, re, im, other_re, other_im);
            T *const held_re = re, *const held_im = im;
            re = other_re, im = other_im;
            N(spectrum)(plan, &im, &re, held_im, held_re);
            if (out == sizeof(REAL)) {
                N(write)(to, 2 * out, lines, n, re, im, scale, scale);
                return;
            }
            N(write_real)(to, out, lines, 2, n, re, scale);
            char *odd[ACROSS];
            for (int lane = 0; lane < lines; lane++)
                odd[lane] = to[lane] + out;
            N(write_real)(odd, out, lines, 2, n, im, scale);
            return;
        }
        im[0] = (T){0}; /* the spectrum's other half is the conjugate of this one, in reverse */
        for (ptrdiff_t k = 1; k < half; k++) {
            re[n - k] = re[k];
            im[n - k] = -im[k];
        }
        N(spectrum)(plan, &im, &re, other_im, other_re);
        N(write_real)(to, out, lines, 1, n, re, scale);
        return;
    }
    if (way->kind == FFT_COMPLEX)
        N(read)(from, in, n, re, im);
    else if (pairs && way->kind == FFT_REAL_TO_HALF && in == sizeof(REAL)) {
        N(read)(from, 2 * in, n, re, im);
    } else if (pairs && way->kind == FFT_REAL_TO_HALF) {
        N(read_real)(from, in, 2, n, re);
        const char *odd[ACROSS];
        for (int lane = 0; lane < ACROSS; lane++)
            odd[lane] = from[lane] + in;
        N(read_real)(odd, in, 2, n, im);
    } else {
        N(read_real)(from, in, 1, n, re);
        memset(im, 0, (size_t)n * sizeof *im);
    }
    if (way->kind == FFT_REAL_TO_HALF) {
        N(spectrum)(plan, &re, &im, other_re, other_im);
        if (pairs) {
            T *const first = work;
            other_re = re == first ? first + 2 * room : first;
            other_im = other_re + room;
            N(unpair)(plan, re, im, other_re, other_im);
            re = other_re, im = other_im;
        } else {
            im[0] = (T){0}; /* as it is behind passes; a convolution rounds */
        }
        N(write)(to, out, lines, way->size / 2 + 1, re, im, scale, way->forward ? scale : -scale);
        return;
    }
    if (way->forward)
        N(spectrum)(plan, &re, &im, other_re, other_im);
    else
        N(spectrum)(plan, &im, &re, other_im, other_re);
    if (way->kind == FFT_REAL_TO_COMPLEX)
        im[0] = (T){0};
    N(write)(to, out, lines, n, re, im, scale, scale);
}

#ifdef ZIP
#include "fft_cut_of_real.h"
#endif

#undef PASS
#undef STRAIGHT
#undef TURNED
#undef FIRST
#undef TWO
#undef THREE
#undef FOUR
#undef FIVE
#undef C1
#undef C2
#undef S1
#undef S2
#undef LANE
#undef REAL
#undef T
#undef T_U
#undef ZIP
#undef UNZIP
#undef REVERSED
#undef WIDTH
#undef ACROSS
