/* The loops of convolutions that sum over one channel each, with square windows and steps of one or two, for one type; included
   after conv_of_real.h.

   Some rows are copied with their zeros to where they stay in the first cache. A vector that is loaded from there, once for
   each column of the window, serves all the outputs under it, which stay in registers: nine products take 3.75 loads where
   they took nine, most of which cross a cache line. With steps of two, even and odd columns lie in a half of the copied row each. */

static ptrdiff_t F(plane_half)(const conv_planes *job) { return job->counts[1] + job->kernel / 2 + LANES; }

static ptrdiff_t F(plane_row)(const conv_planes *job) {
    return job->step == 1 ? job->counts[1] + job->kernel - 1 : 2 * F(plane_half)(job);
}

static ptrdiff_t F(planes_room)(const conv_planes *job) {
    return ((PLANE_STRIP + job->kernel - 1) * F(plane_row)(job) + 2 * LANES) * (ptrdiff_t)sizeof(REAL);
}

/* The part of a row that windows reach; the zeros around it lie there already. Whole vectors up to `end` of what can be read: what
   is too much is made zeros again, or belongs to the next row, which comes later. */
static void F(copy_row)(const REAL *from, const REAL *end, ptrdiff_t count, REAL *to) {
    if (count >= LANES) {
        for (ptrdiff_t x = 0; x + LANES < count; x += LANES)
            F(store)(to + x, F(load)(from + x));
        F(store)(to + count - LANES, F(load)(from + count - LANES));
    } else if (from + LANES <= end) {
        F(store)(to, F(load)(from));
        F(store)(to + count, (V){0});
    } else {
        for (ptrdiff_t x = 0; x < count; x++)
            to[x] = from[x];
    }
}

/* The same with even and odd columns apart; `before` is where in the row the first one is. */
static void F(split_row)(const REAL *from, const REAL *end, ptrdiff_t count, ptrdiff_t before, ptrdiff_t half, REAL *row) {
    REAL *const even = row + before % 2 * half + before / 2, *const odd = row + (before + 1) % 2 * half + (before + 1) / 2;
    ptrdiff_t x = 0;
    for (; x < count && from + x + 2 * LANES <= end; x += 2 * LANES) {
        const V low = F(load)(from + x), high = F(load)(from + x + LANES);
        F(store)(even + x / 2, F(unzip)(low, high, 0));
        F(store)(odd + x / 2, F(unzip)(low, high, 1));
    }
    for (; x < count; x++)
        (x % 2 ? odd : even)[x / 2] = from[x];
    F(store)(even + (count + 1) / 2, (V){0});
    F(store)(odd + count / 2, (V){0});
}

/* PLANE_ROWS vectors of outputs, one under the other, of windows of `kernel` x `kernel`, which is a constant where it is called.
   Those of `rows` are written: whole vectors up to `end` where they lie behind each other, `length` elements elsewhere. */
ALWAYS_INLINE void F(plane_tile)(const REAL *from, ptrdiff_t row, ptrdiff_t half, const V *weight, REAL bias, REAL *to, ptrdiff_t to_row,
                                 ptrdiff_t rows, ptrdiff_t length, const REAL *end, int kernel, int step) {
    V sums[PLANE_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < PLANE_ROWS; r++)
        sums[r] = (V){0};
#pragma GCC unroll 32
    for (int y = 0; y < (PLANE_ROWS - 1) * step + kernel; y++)
#pragma GCC unroll 8
        for (int k = 0; k < kernel; k++) {
            const V found = F(load)(from + y * row + (step == 1 ? k : k % 2 * half + k / 2));
#pragma GCC unroll 8
            for (int r = 0; r < PLANE_ROWS; r++)
                if (y >= r * step && y < r * step + kernel)
                    sums[r] += found * weight[(y - r * step) * kernel + k];
        }
#pragma GCC unroll 8
    for (int r = 0; r < PLANE_ROWS; r++, to += to_row) {
        if (r == rows)
            return;
        if (to + LANES <= end) {
            F(store)(to, sums[r] + bias);
            continue;
        }
        REAL made[LANES];
        F(store)(made, sums[r] + bias);
        for (ptrdiff_t x = 0; x < length; x++)
            to[x] = made[x];
    }
}

/* Counts strips of PLANE_STRIP rows of outputs, or half as many; those of one plane lie behind each other. */
ALWAYS_INLINE void F(strips)(const conv_planes *job, REAL *room, ptrdiff_t begin, ptrdiff_t end, int kernel, int step) {
    const ptrdiff_t width = job->counts[1], row = F(plane_row)(job), low = at_least(0, -job->before[1]), half = F(plane_half)(job);
    const ptrdiff_t reach = (width - 1) * step + kernel, strip = PLANE_STRIP / step;
    const ptrdiff_t high = at_most(job->sizes[1], reach - job->before[1]), length = at_most(width, LANES);
    const ptrdiff_t each = (job->counts[0] + strip - 1) / strip;
    memset(room, 0, (size_t)F(planes_room)(job));
    for (ptrdiff_t one = begin; one < end; one++) {
        const ptrdiff_t plane = one / each, channel = plane / job->depth % job->channels, first = one % each * strip;
        const ptrdiff_t rows = at_most(strip, job->counts[0] - first);
        const REAL *source = (const REAL *)job->from + plane * job->sizes[0] * job->sizes[1];
        const REAL *const behind = source + job->sizes[0] * job->sizes[1];
        const ptrdiff_t filled = ((rows + PLANE_ROWS - 1) / PLANE_ROWS * PLANE_ROWS - 1) * step + kernel;
        for (ptrdiff_t i = 0; i < filled && high > low; i++) {
            const ptrdiff_t y = first * step + i - job->before[0];
            if (y >= 0 && y < job->sizes[0] && step == 1)
                F(copy_row)(source + y * job->sizes[1] + low, behind, high - low, room + i * row + job->before[1] + low);
            else if (y >= 0 && y < job->sizes[0])
                F(split_row)(source + y * job->sizes[1] + low, behind, high - low, job->before[1] + low, half, room + i * row);
            else
                memset(room + i * row, 0, (size_t)row * sizeof(REAL));
        }
        for (ptrdiff_t o = 0; o < job->outs; o++) {
            const ptrdiff_t out = channel * job->outs + o;
            const REAL *by = (const REAL *)job->weight + out * kernel * kernel, bias = job->bias ? ((const REAL *)job->bias)[out] : 0;
            REAL *made = (REAL *)job->made + ((plane / job->depth * job->outs + o) * job->depth + plane % job->depth) * job->counts[0] * width;
            V weight[PLANE_KERNEL * PLANE_KERNEL];
#pragma GCC unroll 49
            for (int t = 0; t < kernel * kernel; t++)
                weight[t] = by[job->turned ? kernel * kernel - 1 - t : t] - (V){0};
            for (ptrdiff_t y = 0; y < rows; y += PLANE_ROWS)
                for (ptrdiff_t at = 0; at < width; at += LANES) {
                    const ptrdiff_t x = at_least(0, at_most(at, width - LANES));
                    F(plane_tile)(room + y * step * row + x, row, half, weight, bias, made + (first + y) * width + x, width, rows - y,
                                  length, made + (first + rows) * width, kernel, step);
                }
        }
    }
}

static void F(planes)(const conv_planes *job, void *room, ptrdiff_t begin, ptrdiff_t end) {
    if (job->kernel == 3 && job->step == 1)
        F(strips)(job, room, begin, end, 3, 1);
    else if (job->kernel == 3)
        F(strips)(job, room, begin, end, 3, 2);
    else if (job->kernel == 5 && job->step == 1)
        F(strips)(job, room, begin, end, 5, 1);
    else if (job->kernel == 5)
        F(strips)(job, room, begin, end, 5, 2);
    else if (job->step == 1)
        F(strips)(job, room, begin, end, PLANE_KERNEL, 1);
    else
        F(strips)(job, room, begin, end, PLANE_KERNEL, 2);
}
