/* Plans of Fourier transforms: factors, twiddles, chirps; the ones used last are kept. */
#include "fft_plans.h"

#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(fft_loops, fft_loops);

enum { KEPT = 32 };
static fft_kept *kept[KEPT];
static unsigned long clock_of_uses;

void fft_drop(fft_kept *one) {
    if (--one->users == 0) {
        for (int i = 0; i < 2; i++)
            if (one->parts[i])
                fft_drop(one->parts[i]);
        free(one->memory);
        free(one);
    }
}

bool fft_split(fft_plan *plan, ptrdiff_t n, int most) {
    plan->n = n;
    plan->count = 0;
    ptrdiff_t rest = n;
    for (int p = 3; p <= most && rest > 1; p += 2)
        for (; rest % p == 0; rest /= p) /* a product of smaller ones is gone by then */
            plan->factors[plan->count++] = p;
    for (int p = 4; p >= 2; p -= 2)
        for (; rest % p == 0; rest /= p)
            plan->factors[plan->count++] = p;
    if (rest != 1)
        plan->count = 0;
    return rest == 1;
}

ptrdiff_t fft_rows(ptrdiff_t n) {
    fft_plan plan;
    ptrdiff_t rows = (ptrdiff_t)sqrt((double)n);
    while (rows >= FFT_LANES && n % rows)
        rows--;
    const bool fit = rows >= FFT_LANES && n / rows <= FFT_MOST && fft_split(&plan, rows, FFT_PRIME);
    return fit && fft_split(&plan, n / rows, FFT_PRIME) ? rows : 0;
}

static bool has_loop(int p) { return p <= 5; }

/* The size of the transforms that make a convolution of n numbers with a chirp: of factors that have loops. */
static ptrdiff_t inner_size(ptrdiff_t n) {
    fft_plan plan;
    ptrdiff_t size = 2 * n - 1;
    while (!fft_split(&plan, size, 5))
        size++;
    return size;
}

/* e^(-2 pi i k / n) to the last place of both types: of an angle of at most an eighth of a turn. */
static void put_parts(char *re, char *im, bool wide, ptrdiff_t k, ptrdiff_t n) {
    k %= n;
    const ptrdiff_t eighth = 8 * k / n;
    const ptrdiff_t turned = eighth == 0 || eighth == 7 ? 0 : (eighth + 1) / 2; /* quarters of a turn that are taken off */
    const long double angle = 2 * 3.14159265358979323846264338327950288L * (4 * k - (eighth == 7 ? 4 : turned) * n) / (4 * n);
    const long double c = cosl(angle), s = -sinl(angle);
    const long double real[] = {c, s, -c, -s}, imaginary[] = {s, -c, -s, c};
    if (wide) {
        *(double *)re = (double)real[turned];
        *(double *)im = (double)imaginary[turned];
    } else {
        *(float *)re = (float)real[turned];
        *(float *)im = (float)imaginary[turned];
    }
}

static void put_root(char **to, bool wide, ptrdiff_t k, ptrdiff_t n) {
    const int size = wide ? 8 : 4;
    put_parts(*to, *to + size, wide, k, n);
    *to += 2 * size;
}

/* Those of first, first + step, ...: real parts for all lanes, and then imaginary ones. */
static void put_lanes(char **to, bool wide, int lanes, ptrdiff_t first, ptrdiff_t step, ptrdiff_t n) {
    const int size = wide ? 8 : 4;
    for (int lane = 0; lane < lanes; lane++)
        put_parts(*to + lane * size, *to + (lanes + lane) * size, wide, first + lane * step, n);
    *to += 2 * lanes * size;
}

/* The transform of a chirp's inverse over the inner size, in double, with `work` for two lines of that and what one needs. */
static void put_filter(char **to, bool wide, ptrdiff_t n, const fft_plan *inner, double *work) {
    double *line = work, *made = line + 2 * inner->n;
    memset(line, 0, (size_t)inner->n * 2 * sizeof *line);
    for (ptrdiff_t k = 0; k < n; k++) {
        char *at = (char *)(line + 2 * k);
        put_root(&at, true, k * k, 2 * n);
        line[2 * k + 1] = -line[2 * k + 1];
        if (k)
            memcpy(line + 2 * (inner->n - k), line + 2 * k, 2 * sizeof *line);
    }
    const fft_way way = {inner, FFT_COMPLEX, true, 1 / (double)inner->n, inner->n, 16, 16};
    const char *from = (const char *)line;
    char *into = (char *)made;
    PICK(fft_loops)->one[true](&way, &from, &into, 1, made + 2 * inner->n);
    for (ptrdiff_t k = 0; k < 2 * inner->n; k++, *to += wide ? 8 : 4) {
        if (wide)
            *(double *)*to = made[k];
        else
            *(float *)*to = (float)made[k];
    }
}

/* A chirp and its filter. */
static bool put_chirp(fft_kept *made, char **to) {
    fft_plan *plan = &made->plan;
    const ptrdiff_t size = inner_size(plan->n);
    fft_kept *in_double = fft_find(size, false, true, 0);
    made->parts[0] = in_double ? fft_find(size, false, made->wide, 0) : NULL;
    double *work = made->parts[0] ? malloc((size_t)(4 * size + 4 * (size + 1)) * sizeof *work) : NULL;
    if (work) {
        plan->inner = &made->parts[0]->plan;
        plan->chirp = *to;
        for (ptrdiff_t k = 0; k < plan->n; k++)
            put_root(to, made->wide, k * k, 2 * plan->n);
        plan->filter = *to;
        put_filter(to, made->wide, plan->n, &in_double->plan, work);
        free(work);
    }
    if (in_double)
        fft_drop(in_double);
    return work != NULL;
}

static bool put_plan(fft_kept *made, ptrdiff_t n) {
    fft_plan *plan = &made->plan;
    const bool pairs = made->pairs, wide = made->wide, chirped = !fft_split(plan, n, FFT_PRIME);
    size_t count = (size_t)((pairs ? n : 0) + (chirped ? n + inner_size(n) : 0));
    for (ptrdiff_t i = 0, length = n; i < plan->count; length /= plan->factors[i++])
        count += (size_t)(length / plan->factors[i] * (plan->factors[i] - 1) + (has_loop(plan->factors[i]) ? 0 : plan->factors[i]));
    char *at = made->memory = malloc((count + 1) * (wide ? 16 : 8));
    if (!at || (chirped && !put_chirp(made, &at)))
        return false;
    for (ptrdiff_t i = 0, length = n; i < plan->count; length /= plan->factors[i++]) {
        const ptrdiff_t p = plan->factors[i];
        plan->twiddles[i] = at;
        for (ptrdiff_t k = 0; k < length / p; k++)
            for (ptrdiff_t j = 1; j < p; j++)
                put_root(&at, wide, j * k, length);
        plan->roots[i] = at;
        for (ptrdiff_t k = 0; k < p && !has_loop((int)p); k++)
            put_root(&at, wide, k, p);
    }
    plan->halves = pairs ? at : NULL;
    for (ptrdiff_t k = 0; k < n && pairs; k++)
        put_root(&at, wide, k, 2 * n);
    return true;
}

/* The tables of a line that is cut, for so many lanes, and the plans of its parts. */
static bool put_cut(fft_kept *made, ptrdiff_t n) {
    fft_cut *cut = &made->cut;
    const int lanes = made->lanes, size = made->wide ? 8 : 4;
    cut->n = n;
    cut->rows = fft_rows(n);
    cut->columns = n / cut->rows;
    const ptrdiff_t blocks = fft_blocks(cut->columns, lanes), halves = made->pairs ? fft_blocks(n / 2, lanes) : 0;
    made->parts[0] = fft_find(cut->rows, false, made->wide, 0);
    made->parts[1] = made->parts[0] ? fft_find(cut->columns, false, made->wide, 0) : NULL;
    if (!made->parts[1])
        return false;
    cut->down = &made->parts[0]->plan;
    cut->along = &made->parts[1]->plan;
    const size_t bytes = (size_t)(((cut->rows + 1) * lanes + blocks * cut->rows + halves) * 2 * size);
    char *at = made->memory = aligned_alloc(64, (bytes + 63) / 64 * 64); /* lanes are read as vectors */
    if (!at)
        return false;
    cut->near = at;
    for (ptrdiff_t k = 0; k < cut->rows; k++)
        put_lanes(&at, made->wide, lanes, 0, k, n);
    cut->half_near = made->pairs ? at : NULL;
    put_lanes(&at, made->wide, lanes, 1, 1, 2 * n);
    cut->far = at;
    for (ptrdiff_t block = 0; block < blocks; block++)
        for (ptrdiff_t k = 0; k < cut->rows; k++)
            put_root(&at, made->wide, k * fft_begin(block, cut->columns, lanes), n);
    cut->half_far = at;
    for (ptrdiff_t block = 0; block < halves; block++)
        put_root(&at, made->wide, block * lanes, 2 * n);
    return true;
}

static fft_kept *new_plan(ptrdiff_t n, bool pairs, bool wide, int lanes) {
    fft_kept *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (fft_kept){.n = n, .pairs = pairs, .wide = wide, .lanes = lanes, .users = 1};
    if (lanes ? put_cut(made, n) : put_plan(made, n))
        return made;
    fft_drop(made);
    return NULL;
}

fft_kept *fft_find(ptrdiff_t n, bool pairs, bool wide, int lanes) {
    int oldest = 0;
    fft_kept *one = NULL;
    for (int i = 0; i < KEPT && !one; i++) {
        if (kept[i] && kept[i]->n == n && kept[i]->pairs == pairs && kept[i]->wide == wide && kept[i]->lanes == lanes)
            one = kept[i];
        else if (!kept[i] || (kept[oldest] && kept[i]->used < kept[oldest]->used))
            oldest = i;
    }
    if (!one) {
        if (!(one = new_plan(n, pairs, wide, lanes)))
            return (fft_kept *)PyErr_NoMemory();
        if (kept[oldest])
            fft_drop(kept[oldest]);
        kept[oldest] = one;
    }
    one->used = ++clock_of_uses;
    one->users++;
    return one;
}
