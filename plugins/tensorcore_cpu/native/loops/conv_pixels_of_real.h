/* The loops of convolutions that sum over one channel each, of pictures whose channels lie side by side, for one type; included after
   conv_of_real.h. Vectors are of channels, so that windows, steps and dilations may be any. */

/* The taps [low, high) of a window that begins at `start` which lie in a dim. */
static void F(taps_within)(ptrdiff_t start, ptrdiff_t size, ptrdiff_t kernel, ptrdiff_t dilation, ptrdiff_t *low, ptrdiff_t *high) {
    *low = start < 0 ? at_most(kernel, (-start - 1) / dilation + 1) : 0;
    *high = start >= size ? *low : at_least(*low, at_most(kernel, (size - start - 1) / dilation + 1));
}

/* The outputs of `count` pixels beside each other in `vectors` of channels, both constants where it is called; `from` is the first
   tap within the picture of the first one's window, and all of them have the same ones there. */
ALWAYS_INLINE void F(pixel_tile)(const conv_pixels *job, const REAL *from, const ptrdiff_t *low, const ptrdiff_t *high,
                                 ptrdiff_t channel, REAL *to, int count, int vectors) {
    const ptrdiff_t channels = job->channels, row = job->sizes[2] * channels, next = job->stride[2] * channels;
    const ptrdiff_t step = job->dilation[2] * channels;
    V sums[PIXEL_SUMS];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 8
        for (int p = 0; p < count; p++)
            sums[p * vectors + v] = job->bias ? F(load)((const REAL *)job->bias + channel + v * LANES) : (V){0};
    for (ptrdiff_t kz = low[0]; kz < high[0]; kz++)
        for (ptrdiff_t ky = low[1]; ky < high[1]; ky++) {
            const ptrdiff_t z = (kz - low[0]) * job->dilation[0], y = (ky - low[1]) * job->dilation[1];
            const REAL *at = from + (z * job->sizes[1] + y) * row + channel;
            const REAL *by = (const REAL *)job->weight + ((kz * job->kernel[1] + ky) * job->kernel[2] + low[2]) * channels + channel;
            for (ptrdiff_t kx = low[2]; kx < high[2]; kx++, at += step, by += channels)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++) {
                    const V weight = F(load)(by + v * LANES);
#pragma GCC unroll 8
                    for (int p = 0; p < count; p++)
                        sums[p * vectors + v] += F(load)(at + p * next + v * LANES) * weight;
                }
        }
#pragma GCC unroll 8
    for (int p = 0; p < count; p++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            F(store)(to + p * channels + channel + v * LANES, sums[p * vectors + v]);
}

/* Those of all channels, of which there are at least as many as a vector has. */
ALWAYS_INLINE void F(pixels_beside)(const conv_pixels *job, const REAL *from, const ptrdiff_t *low, const ptrdiff_t *high, REAL *to,
                                    int count) {
    const int vectors = PIXEL_SUMS / count;
    ptrdiff_t c = 0;
    for (; c + vectors * LANES <= job->channels; c += vectors * LANES)
        F(pixel_tile)(job, from, low, high, c, to, count, vectors);
    for (; c < job->channels; c += LANES) /* the last one begins early */
        F(pixel_tile)(job, from, low, high, at_most(c, job->channels - LANES), to, count, 1);
}

/* The same of fewer channels than a vector has. */
static void F(narrow_pixel)(const conv_pixels *job, const REAL *from, const ptrdiff_t *low, const ptrdiff_t *high, REAL *to) {
    const ptrdiff_t channels = job->channels, row = job->sizes[2] * channels;
    REAL sums[LANES] = {0};
    if (job->bias)
        memcpy(sums, job->bias, (size_t)channels * sizeof(REAL));
    for (ptrdiff_t kz = low[0]; kz < high[0]; kz++)
        for (ptrdiff_t ky = low[1]; ky < high[1]; ky++)
            for (ptrdiff_t kx = low[2]; kx < high[2]; kx++) {
                const ptrdiff_t z = (kz - low[0]) * job->dilation[0], y = (ky - low[1]) * job->dilation[1];
                const REAL *at = from + (z * job->sizes[1] + y) * row + (kx - low[2]) * job->dilation[2] * channels;
                const REAL *by = (const REAL *)job->weight + ((kz * job->kernel[1] + ky) * job->kernel[2] + kx) * channels;
                for (ptrdiff_t c = 0; c < channels; c++)
                    sums[c] += at[c] * by[c];
            }
    memcpy(to, sums, (size_t)channels * sizeof(REAL));
}

/* Counts rows of outputs. */
static void F(pixels)(const conv_pixels *job, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t channels = job->channels, plane = job->sizes[1] * job->sizes[2] * channels;
    for (ptrdiff_t i = begin; i < end; i++) {
        const ptrdiff_t at[2] = {i / job->counts[1] % job->counts[0], i % job->counts[1]}; /* depth and height */
        const REAL *image = (const REAL *)job->from + i / job->counts[1] / job->counts[0] * job->sizes[0] * plane;
        REAL *to = (REAL *)job->made + i * job->counts[2] * channels;
        ptrdiff_t start[3], low[3], high[3];
        for (int d = 0; d < 2; d++) {
            start[d] = at[d] * job->stride[d] - job->before[d];
            F(taps_within)(start[d], job->sizes[d], job->kernel[d], job->dilation[d], &low[d], &high[d]);
        }
        for (ptrdiff_t x = 0, beside; x < job->counts[2]; x += beside, to += beside * channels) {
            start[2] = x * job->stride[2] - job->before[2];
            F(taps_within)(start[2], job->sizes[2], job->kernel[2], job->dilation[2], &low[2], &high[2]);
            ptrdiff_t first[3]; /* of the taps within, anywhere where there are none */
            const bool none = low[0] == high[0] || low[1] == high[1] || low[2] == high[2];
            for (int d = 0; d < 3; d++)
                first[d] = none ? 0 : start[d] + low[d] * job->dilation[d];
            const REAL *from = image + first[0] * plane + (first[1] * job->sizes[2] + first[2]) * channels;
            const ptrdiff_t last = start[2] + (PIXELS - 1) * job->stride[2] + (job->kernel[2] - 1) * job->dilation[2];
            beside = channels >= LANES && start[2] >= 0 && last < job->sizes[2] && x + PIXELS <= job->counts[2] ? PIXELS : 1;
            if (beside == PIXELS)
                F(pixels_beside)(job, from, low, high, to, PIXELS);
            else if (channels >= LANES)
                F(pixels_beside)(job, from, low, high, to, 1);
            else
                F(narrow_pixel)(job, from, low, high, to);
        }
    }
}
