/* The loops of conv_folded.c for one type: columns that are added up where their windows lie; included after
   conv_weight_of_real.h. */

/* Adds pairs [begin, end) of a channel and a tap to their planes: rows of products in whole vectors, of which the last one is
   zeros behind the row. */
ALWAYS_INLINE void F(fold_rows)(const conv_fold *job, const REAL *from, REAL *plane, VI mask, ptrdiff_t whole, bool rest) {
    const ptrdiff_t height = job->counts[1], width = job->counts[2], step = job->move[1];
    for (ptrdiff_t z = 0; z < job->counts[0]; z++) {
        REAL *row = plane + z * job->move[0];
        for (ptrdiff_t y = 0; y < height; y++, row += step, from += width) {
            for (ptrdiff_t x = 0; x < whole; x += LANES)
                F(store)(row + x, F(load)(row + x) + F(load)(from + x));
            if (rest)
                F(store)(row + whole, F(load)(row + whole) + F(first_of)(from + whole, mask));
        }
    }
}

static void F(fold)(const conv_fold *job, const void *products, void *planes, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t whole = job->counts[2] / LANES * LANES;
    VI mask;
    for (int i = 0; i < LANES; i++)
        mask[i] = i < job->counts[2] - whole ? -1 : 0;
    for (ptrdiff_t pair = begin; pair < end; pair++) {
        const REAL *from = (const REAL *)products + (pair - begin) * job->step;
        REAL *plane = (REAL *)planes + pair / job->taps * job->images * job->plane + job->offsets[pair % job->taps];
        for (ptrdiff_t image = 0; image < job->images; image++, from += job->positions, plane += job->plane)
            if (job->positions == 1)
                *plane += *from;
            else if (!whole)
                F(fold_rows)(job, from, plane, mask, 0, true);
            else if (whole == LANES && whole < job->counts[2])
                F(fold_rows)(job, from, plane, mask, LANES, true);
            else
                F(fold_rows)(job, from, plane, mask, whole, whole < job->counts[2]);
    }
}

/* The planes of an image's channels without what lies outside, and with each row's phases woven together. */
static void F(unfold_planes)(const conv_fold *job, const void *planes, ptrdiff_t image, ptrdiff_t channels, void *made) {
    REAL *to = made;
    for (ptrdiff_t channel = 0; channel < channels; channel++) {
        const REAL *plane = (const REAL *)planes + (channel * job->images + image) * job->plane;
        for (ptrdiff_t z = 0; z < job->sizes[0]; z++)
            for (ptrdiff_t y = 0; y < job->sizes[1]; y++, to += job->sizes[2]) {
                const REAL *row = plane + ((z + job->before[0]) * job->height + y + job->before[1]) * job->row;
                if (job->phases == 1) {
                    memcpy(to, row + job->before[2], (size_t)job->sizes[2] * sizeof(REAL));
                    continue;
                }
                for (ptrdiff_t first = 0; first < job->phases && first < job->sizes[2]; first++) {
                    const ptrdiff_t at = first + job->before[2], count = (job->sizes[2] - first - 1) / job->phases + 1;
                    const REAL *phase = row + at % job->phases * job->phase + at / job->phases;
                    for (ptrdiff_t x = 0; x < count; x++)
                        to[first + x * job->phases] = phase[x];
                }
            }
    }
}
