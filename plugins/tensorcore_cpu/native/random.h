/* Random numbers: the Mersenne Twister and what is made of its words, bit for bit as tensorcore.backend.distributions. */
#ifndef TENSORCORE_NATIVE_RANDOM_H
#define TENSORCORE_NATIVE_RANDOM_H

#include "types.h"

/* The state as NumPy's MT19937 holds it. */
typedef struct {
    uint32_t key[624];
    int position; /* of the next word; 624 where the key is used up */
} twister_state;

typedef struct {
    /* From low to high, high itself left out. */
    void (*uniform_f32)(twister_state *state, float *out, ptrdiff_t count, float low, float high);
    void (*uniform_f64)(twister_state *state, double *out, ptrdiff_t count, double low, double high);
    /* At least 16. */
    void (*normal_f32)(twister_state *state, float *out, ptrdiff_t count, float mean, float std);
    /* `one` with that probability, else 0. */
    void (*bernoulli_f32)(twister_state *state, float *out, ptrdiff_t count, double probability, float one);
    void (*bernoulli_f64)(twister_state *state, double *out, ptrdiff_t count, double probability, double one);
    /* From low on, less than `span` of them. */
    void (*integers)(twister_state *state, int64_t *out, ptrdiff_t count, int64_t low, uint32_t span);
    void (*integers_f32)(twister_state *state, float *out, ptrdiff_t count, int32_t low, uint32_t span);
    /* Whole numbers from 0 to the largest of the type, of floats to that up to which they have all. */
    void (*random_f32)(twister_state *state, float *out, ptrdiff_t count);
    void (*random_f64)(twister_state *state, double *out, ptrdiff_t count);
    void (*random_i64)(twister_state *state, int64_t *out, ptrdiff_t count);
    /* log1p(-uniform) times a factor, which is -1 / rate. */
    void (*exponential_f32)(twister_state *state, float *out, ptrdiff_t count, double factor);
    void (*exponential_f64)(twister_state *state, double *out, ptrdiff_t count, double factor);
    /* tan(pi * (uniform - 0.5)) times the half width, plus the median. */
    void (*cauchy_f32)(twister_state *state, float *out, ptrdiff_t count, double median, double sigma);
    void (*cauchy_f64)(twister_state *state, double *out, ptrdiff_t count, double median, double sigma);
    /* log(uniform) over a divisor, rounded up; the divisor is log1p(-probability). */
    void (*geometric_f32)(twister_state *state, float *out, ptrdiff_t count, double divisor);
    void (*geometric_f64)(twister_state *state, double *out, ptrdiff_t count, double divisor);
    /* Ones with a probability each, else zeros. */
    void (*flips_f32)(twister_state *state, const float *probability, float *out, ptrdiff_t count);
    void (*flips_f64)(twister_state *state, const double *probability, double *out, ptrdiff_t count);
    /* The numbers from 0 to count - 1, below 2**32 of them: number i changes places with one from i on, a word each. */
    void (*shuffle)(twister_state *state, int64_t *out, ptrdiff_t count);
} random_loops;

/* What NumPy's capsule holds begins with the state. */
typedef struct {
    void *state;
} bit_generator;

enum { MANY = 1 << 14 }; /* numbers for which it is worth letting go of the GIL */

#endif
