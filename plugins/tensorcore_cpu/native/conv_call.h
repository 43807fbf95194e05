/* A call of convolutions: what it says, and what the ways to make one answer to it. */
#ifndef TENSORCORE_NATIVE_CONV_CALL_H
#define TENSORCORE_NATIVE_CONV_CALL_H

#include "types.h"

typedef enum { CONV_SUMS, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT } conv_wanted;

/* What a call says, with dims of size 1 in front where there are fewer than three. */
typedef struct {
    conv_wanted wanted;
    ptrdiff_t images, channels, outs, groups; /* channels and outs of a group */
    ptrdiff_t sizes[3], counts[3], kernel[3], stride[3], padding[3], dilation[3], taps;
    native_type type;
    size_t size;                              /* bytes of an element */
    const void *x, *weight, *bias, *y;        /* the input, the output or what was sent; the one that is wanted is written */
    ptrdiff_t steps[5];                       /* of x, or of y for the input's gradient; all else is C-contiguous */
} convolution;

enum { CONV_MOST_TAPS = 4096 }; /* windows with more of them are not for us */

/* How sums over taps are made: as their own rules say, with vectors of outs, with windows that are read where they lie, and with
   tiles whose windows are gathered. */
typedef enum { TAPS_BY_RULE, TAPS_WIDE, TAPS_DIRECT, TAPS_TILES } taps_way;

/* Which ways can make one, and where the fixed rules take them. All but sums over taps want everything C-contiguous. Answers of a
   run are false where there is no memory, and from winograd_run where something that was made is not finite: what lies there then
   is not what the sums over taps give, which make a NaN of fewer infinities and reach further before they overflow. Call them with
   the GIL. */
bool pointwise_fits(const convolution *c);
bool pointwise_pays(const convolution *c);
bool pointwise_run(const convolution *c);
bool winograd_fits(const convolution *c);
bool winograd_pays(const convolution *c);
bool winograd_run(const convolution *c);
bool depthwise_fits(const convolution *c);
bool depthwise_run(const convolution *c);
bool folded_fits(const convolution *c);
bool folded_pays(const convolution *c);
bool folded_run(const convolution *c);
bool small_fits(const convolution *c);
bool small_pays(const convolution *c);
bool small_run(const convolution *c);
bool wide_fits(const convolution *c);
double taps_gradient_cost(const convolution *c); /* of the input's gradient, as times of a sum whose vectors are full */
bool taps_run(const convolution *c, taps_way how);

/* The one way for what its windows lie in having its channels innermost, which `steps` say, as then does what is made; all else is
   C-contiguous. Of floats and doubles. */
bool channels_fits(const convolution *c);
bool channels_run(const convolution *c);

/* Those of bfloat16, whose type has no other way: whether this machine makes such a one so, and one, of what is C-contiguous but
   for what its windows lie in. All others are made in single precision. */
bool conv_takes_bf16(const convolution *c);
bool conv_run_bf16(const convolution *c);
bool conv_weight_bf16(const convolution *c);

/* Of integers, from arrays that are C-contiguous, outputs and the input's gradient: the only way for them. */
void integers_run(const convolution *c);

static inline const void *conv_at(const void *data, ptrdiff_t elements, size_t size) {
    return (const char *)data + elements * (ptrdiff_t)size;
}

/* Of three sizes. */
static inline ptrdiff_t conv_product(const ptrdiff_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

#endif
