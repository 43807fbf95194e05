/* The loops of convolutions of pictures whose channels lie side by side, over few of them, for one type; included after
   conv_of_real.h. A row of outputs is a product: its rows are windows where they lie in a padded copy, its columns outs. */

/* The outputs of `height` windows beside each other, a constant where it is called, in two vectors of outs at a time. */
ALWAYS_INLINE void F(row_outs)(const conv_rows *job, const REAL *from, REAL *to, int height) {
    const REAL *weight = job->weight, *bias = job->bias;
    const ptrdiff_t next = job->stride[1] * job->channels, outs = job->outs;
    ptrdiff_t out = 0;
    for (; out + 2 * LANES <= outs; out += 2 * LANES)
        F(tile_in_order)(from, next, 1, weight + out, outs, job->inner, bias + out, 0, to + out, outs, NULL, job->places, true, height, 2);
    if (out < outs)
        F(tile_in_order)(from, next, 1, weight + out, outs, job->inner, bias + out, 0, to + out, outs, NULL, job->places, true, height, 1);
}

/* Counts rows of outputs; the room has one padded row for each row of a window. */
static void F(rows)(const conv_rows *job, void *room, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t channels = job->channels, width = job->counts[1], low = at_least(0, -job->before[1]);
    const ptrdiff_t high = at_most(job->sizes[1], job->row / channels - job->before[1]);
    REAL *const padded = room;
    for (ptrdiff_t i = begin; i < end; i++) {
        const ptrdiff_t first = i % job->counts[0] * job->stride[0] - job->before[0];
        const REAL *image = (const REAL *)job->from + i / job->counts[0] * job->sizes[0] * job->sizes[1] * channels;
        memset(padded, 0, (size_t)(job->kernel * job->row) * sizeof(REAL));
        for (ptrdiff_t k = 0; k < job->kernel && low < high; k++)
            if (first + k >= 0 && first + k < job->sizes[0])
                memcpy(padded + k * job->row + (job->before[1] + low) * channels,
                       image + ((first + k) * job->sizes[1] + low) * channels, (size_t)((high - low) * channels) * sizeof(REAL));
        REAL *const to = (REAL *)job->made + i * width * job->outs;
        const ptrdiff_t next = job->stride[1] * channels;
        for (ptrdiff_t x = 0; x < width && width >= ROW_HEIGHT; x += ROW_HEIGHT) {
            const ptrdiff_t at = at_most(x, width - ROW_HEIGHT); /* the last ones begin early */
            F(row_outs)(job, padded + at * next, to + at * job->outs, ROW_HEIGHT);
        }
        for (ptrdiff_t x = 0; x < width && width < ROW_HEIGHT; x++)
            F(row_outs)(job, padded + x * next, to + x * job->outs, 1);
    }
}
