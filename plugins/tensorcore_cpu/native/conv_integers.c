/* Convolutions of integers and their adjoints in the input: planes of the result, shared out over threads. */
#include "conv_integers.h"

#include "native.h"

DECLARE_LOOPS(conv_integer_loops, conv_integer_loops);

enum { WORK = 1 << 16 }; /* multiplications that are worth a thread */

typedef struct {
    const convolution *c;
    integer_planes run;
} integer_work;

static void integer_body(void *context, npy_intp begin, npy_intp end) {
    const integer_work *work = context;
    work->run(work->c, begin, end);
}

/* Planes as one row each, where windows are single elements side by side. */
static convolution as_rows(const convolution *c) {
    convolution made = *c;
    bool plain = c->taps == 1;
    for (int d = 0; d < 3; d++)
        plain &= c->stride[d] == 1 && !c->padding[d] && c->counts[d] == c->sizes[d];
    for (int d = 0; plain && d < 3; d++)
        made.sizes[d] = made.counts[d] = d < 2 ? 1 : conv_product(c->sizes);
    return made;
}

void integers_run(const convolution *call) {
    const convolution rows = as_rows(call), *c = &rows;
    const conv_integer_loops *loops = PICK(conv_integer_loops);
    const bool sums = c->wanted == CONV_SUMS;
    const int size = native_log_size((int)c->size);
    const ptrdiff_t each = conv_product(c->counts) * c->taps * (sums ? c->channels : c->outs);
    native_parallel(c->images * c->groups * (sums ? c->outs : c->channels), WORK / each + 1, integer_body,
                    &(integer_work){c, sums ? loops->sums[size] : loops->gradients[size]});
}
