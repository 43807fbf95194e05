/* The loops of attention.h for one type, which REAL, V, VI, LANES and F describe; included once for each. Softmax over columns
   that come in blocks is that of Milakov and Gimelshein 2018, "Online normalizer calculation for softmax". */

typedef __typeof__(((VI){0})[0]) F(lane);
static const F(lane) F(lanes)[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

/* A vector whose lane i is lane i + by of another one, counted round. Clang has no shuffle by a vector and makes one of the loop, which
   GCC takes lane by lane. */
ALWAYS_INLINE V F(turned)(V x, int by) {
#if defined(__clang__)
    V made;
    for (int l = 0; l < LANES; l++)
        made[l] = x[(l + by) % LANES];
    return made;
#else
    VI from;
    __builtin_memcpy(&from, F(lanes) + by, sizeof from);
    return __builtin_shuffle(x, from);
#endif
}

ALWAYS_INLINE REAL F(largest)(const REAL *row, ptrdiff_t count) {
    V most = *(const V_U *)row;
    for (ptrdiff_t j = LANES; j < count; j += LANES) {
        const V x = *(const V_U *)(row + j);
        const VI more = x > most;
        most = (V)((more & (VI)x) | (~more & (VI)most));
    }
#pragma GCC unroll 4
    for (int half = LANES / 2; half; half /= 2) {
        const V x = F(turned)(most, half);
        const VI more = x > most;
        most = (V)((more & (VI)x) | (~more & (VI)most));
    }
    return most[0];
}

ALWAYS_INLINE REAL F(sum)(const REAL *row, const REAL *by, ptrdiff_t count) {
    V sum = {0}, next = {0};
    ptrdiff_t j = 0;
    for (; j + 2 * LANES <= count; j += 2 * LANES) {
        const V x = *(const V_U *)(row + j), y = *(const V_U *)(row + j + LANES);
        if (by) {
            sum += x * *(const V_U *)(by + j);
            next += y * *(const V_U *)(by + j + LANES);
        } else {
            sum += x;
            next += y;
        }
    }
    if (j < count) {
        const V x = *(const V_U *)(row + j);
        if (by)
            sum += x * *(const V_U *)(by + j);
        else
            sum += x;
    }
    sum += next;
#pragma GCC unroll 4
    for (int half = LANES / 2; half; half /= 2)
        sum += F(turned)(sum, half);
    return sum[0];
}

/* Puts the mask on a row, and minus infinity where it ends; answers how many columns the row meets, in whole vectors. */
ALWAYS_INLINE ptrdiff_t F(masked)(const attention_part *part, ptrdiff_t r) {
    REAL *row = (REAL *)part->scores + r * part->step;
    ptrdiff_t allowed = part->allowed + r;
    allowed = allowed < 0 ? 0 : allowed < part->columns ? allowed : part->columns;
    const ptrdiff_t met = allowed ? (allowed + LANES - 1) / LANES * LANES : LANES;
    if (part->mask) {
        const char *mask = (const char *)part->mask + r * part->mask_row;
        const ptrdiff_t step = part->mask_column;
        if (part->truth && step == 1)
            INDEPENDENT for (ptrdiff_t j = 0; j < allowed; j++)
                row[j] = mask[j] ? row[j] : -(REAL)INFINITY;
        else if (part->truth)
            for (ptrdiff_t j = 0; j < allowed; j++)
                row[j] = mask[j * step] ? row[j] : -(REAL)INFINITY;
        else if (step == sizeof(REAL))
            INDEPENDENT for (ptrdiff_t j = 0; j < allowed; j++)
                row[j] += ((const REAL *)mask)[j];
        else
            for (ptrdiff_t j = 0; j < allowed; j++)
                row[j] += *(const REAL *)(mask + j * step);
    }
    if (allowed < met) { /* a whole vector: one that is read after single numbers were written to it waits for them */
        V_U *last = (V_U *)(row + met - LANES);
        VI lane;
        __builtin_memcpy(&lane, F(lanes), sizeof lane);
        const VI inside = lane < (F(lane))(allowed - (met - LANES));
        *last = (V)((inside & (VI)*last) | (~inside & (VI)((V){0} - (REAL)INFINITY)));
    }
    return met;
}

/* The powers of a row relative to `base`, zeros behind the columns that it meets. */
ALWAYS_INLINE void F(raise)(REAL *row, ptrdiff_t met, ptrdiff_t columns, REAL base) {
    INDEPENDENT for (ptrdiff_t j = 0; j < met; j++)
        row[j] = F(exp_flushed)(row[j] - base);
    for (ptrdiff_t j = met; j < columns; j += LANES)
        *(V_U *)(row + j) = (V){0};
}

static void F(powers)(const attention_part *part) {
    REAL *tops = part->top, *totals = part->total;
    for (ptrdiff_t r = 0; r < part->rows; r++) {
        const ptrdiff_t met = F(masked)(part, r);
        REAL *row = (REAL *)part->scores + r * part->step;
        const REAL old = tops[r], found = F(largest)(row, met), top = found > old ? found : old;
        const REAL base = top == -(REAL)INFINITY ? 0 : top;
        F(raise)(row, met, part->columns, base);
        const REAL factor = old == -(REAL)INFINITY ? 0 : F(exp_flushed)(old - base);
        totals[r] = totals[r] * factor + F(sum)(row, NULL, met);
        tops[r] = top;
        REAL *made = part->made ? (REAL *)part->made + r * part->width : NULL;
        if (made && factor != 1)
            INDEPENDENT for (ptrdiff_t j = 0; j < part->width; j++)
                made[j] *= factor;
    }
}

static void F(finish)(const attention_part *part) {
    for (ptrdiff_t r = 0; r < part->rows; r++) {
        REAL *made = (REAL *)part->made + r * part->width;
        const REAL total = ((const REAL *)part->total)[r], top = ((const REAL *)part->top)[r];
        const REAL share = 1 / (total == 0 ? 1 : total);
        INDEPENDENT for (ptrdiff_t j = 0; j < part->width; j++)
            made[j] *= share;
        ((REAL *)part->dots)[r] = F(log_)(total) + (top == -(REAL)INFINITY ? 0 : top);
    }
}

static void F(weights)(const attention_part *part) {
    for (ptrdiff_t r = 0; r < part->rows; r++) {
        const ptrdiff_t met = F(masked)(part, r);
        REAL *row = (REAL *)part->scores + r * part->step;
        const REAL sum = ((const REAL *)part->sums)[r], base = sum == -(REAL)INFINITY ? 0 : sum;
        F(raise)(row, met, part->columns, base);
    }
}

static void F(sum_slopes)(const attention_part *part) {
    for (ptrdiff_t r = 0; r < part->rows; r++) {
        const REAL *row = (const REAL *)part->scores + r * part->step;
        REAL *slopes = (REAL *)part->slopes + r * part->step, sum = 0;
        ptrdiff_t whole = part->columns / LANES * LANES;
        if (whole)
            sum = F(sum)(slopes, row, whole);
        for (ptrdiff_t j = whole; j < part->columns; j++)
            sum += slopes[j] * row[j];
        ((REAL *)part->dots)[r] += sum;
    }
}

static void F(slopes)(const attention_part *part) {
    const REAL scale = (REAL)part->scale;
    for (ptrdiff_t r = 0; r < part->rows; r++) {
        const REAL *row = (const REAL *)part->scores + r * part->step;
        const REAL dot = ((const REAL *)part->dots)[r];
        REAL *slopes = (REAL *)part->slopes + r * part->step;
        INDEPENDENT for (ptrdiff_t j = 0; j < part->columns; j++)
            slopes[j] = (slopes[j] - dot) * row[j] * scale;
    }
}

static void F(scale)(void *rows, ptrdiff_t count, ptrdiff_t width, ptrdiff_t step, double factor) {
    for (ptrdiff_t r = 0; r < count; r++) {
        REAL *row = (REAL *)rows + r * step;
        for (ptrdiff_t j = 0; j < width; j++)
            row[j] *= (REAL)factor;
    }
}

#ifndef ATTENTION_LOOPS
#define ATTENTION_LOOPS(suffix)                                                                               \
    {                                                                                                         \
        .powers = powers_##suffix, .finish = finish_##suffix, .weights = weights_##suffix,                    \
        .sum_slopes = sum_slopes_##suffix, .slopes = slopes_##suffix, .scale = scale_##suffix,                \
    }
#endif
