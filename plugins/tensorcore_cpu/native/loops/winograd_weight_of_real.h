/* The weight's gradient of winograd_of_real.h: what was sent times the inputs, summed over tiles. */

static ptrdiff_t F(gradient_channels)(const winograd_job *job) { return F(widths)(job->channels); }
static ptrdiff_t F(sent_step)(const winograd_job *job) { return F(whole)(job->outs) + LANES; }

static ptrdiff_t F(gradient_inputs_size)(const winograd_job *job) {
    return F(widths)(job->channels) * places(WINOGRAD_TILES[job->kind].inputs) * job->tiles * F(WIDTH);
}

static ptrdiff_t F(gradient_sent_size)(const winograd_job *job) {
    return places(WINOGRAD_TILES[job->kind].sums) * job->tiles * F(sent_step)(job);
}

static ptrdiff_t F(gradient_sums_size)(const winograd_job *job) { return WEIGHTS * job->outs * F(WIDTH); }

static void F(gradient_inputs)(const winograd_job *job, void *made, void *spare, ptrdiff_t block) {
    F(transform)(job, made, spare, block, (F(layout)){F(WIDTH), F(WIDTH)});
}

ALWAYS_INLINE void F(gradient_sent_of)(winograd_kind kind, const winograd_job *job, REAL *made, REAL *zeros, ptrdiff_t block) {
    const winograd_tile t = WINOGRAD_TILES[kind];
    const ptrdiff_t outs = F(whole)(job->outs), step = F(sent_step)(job), place = job->tiles * step;
    memset(zeros, 0, (size_t)outs * sizeof(REAL));
    ptrdiff_t at = 0, tile = 0;
    for (piece piece; next_piece(job, block, &at, &piece);) {
        F(pixels) p = {.data = zeros + outs, .channels = outs, .low = 2 * piece.row, .left = 2 * piece.column};
        p.high = at_most(2 * piece.rows, job->made_height - p.low);
        p.wide = at_most(2 * piece.columns, job->made_width - p.left);
        F(read)((const REAL *)job->made + piece.image * job->made_image, job->outs, job->made_height, job->made_width, &p);
        for (ptrdiff_t i = 0; i < piece.rows * piece.columns; i++, tile++) {
            const ptrdiff_t y = p.low + 2 * (i / piece.columns), x = p.left + 2 * (i % piece.columns);
            const REAL *from[4];
            for (int n = 0; n < 4; n++)
                from[n] = F(pixel)(&p, zeros, y + n / 2, x + n % 2);
            for (ptrdiff_t o = 0; o < outs; o += LANES) {
                V sent[WINOGRAD_TERMS * WINOGRAD_TERMS];
                F(along_both)(F(SENT), kind, 2, t.sums, from, NULL, o, sent);
#pragma GCC unroll 16
                for (int n = 0; n < t.sums * t.sums; n++)
                    F(store)(made + n * place + tile * step + o, sent[n]);
            }
        }
    }
}

static void F(gradient_sent)(const winograd_job *job, void *made, void *spare, ptrdiff_t block) {
    if (job->kind == WINOGRAD_ONE)
        F(gradient_sent_of)(WINOGRAD_ONE, job, made, spare, block);
    else
        F(gradient_sent_of)(WINOGRAD_TWO, job, made, spare, block);
}

/* Counts sums of blocks of channels. */
static void F(gradient_products)(const winograd_job *job, const void *inputs, const void *sent, void *sums, ptrdiff_t sum,
                                 ptrdiff_t tiles, bool first) {
    const winograd_tile *t = &WINOGRAD_TILES[job->kind];
    const ptrdiff_t step = F(sent_step)(job);
    REAL *made = (REAL *)sums + sum % WEIGHTS * job->outs * F(WIDTH);
    for (int n = 0; n < places(t->terms); n++) {
        const int a = n / t->terms, b = n % t->terms;
        if (t->term[a].weight * WINOGRAD_WEIGHTS + t->term[b].weight != sum % WEIGHTS)
            continue;
        const ptrdiff_t input = sum / WEIGHTS * places(t->inputs) + t->term[a].input * t->inputs + t->term[b].input;
        const REAL *rows = (const REAL *)sent + (t->term[a].sum * t->sums + t->term[b].sum) * job->tiles * step;
        const REAL *columns = (const REAL *)inputs + input * job->tiles * F(WIDTH);
        for (ptrdiff_t o = 0, height; o < job->outs; o += height) {
            height = F(height)(job->outs - o);
            REAL *to = made + o * F(WIDTH);
            F(gradient_tiles)[height](rows + o, step, columns, tiles, first ? F(zeros) : to, first ? 0 : F(WIDTH), to);
        }
        first = false;
    }
}

ALWAYS_INLINE bool F(gradient_of)(winograd_kind kind, const winograd_job *job, const REAL *sums, ptrdiff_t block) {
    REAL odd = 0;
    for (ptrdiff_t o = 0; o < job->outs; o++)
        for (ptrdiff_t lane = 0; lane < F(WIDTH) && block * F(WIDTH) + lane < job->channels; lane += LANES) {
            const ptrdiff_t c = block * F(WIDTH) + lane, some = at_most(LANES, job->channels - c);
            V made[TAPS];
            REAL taps[TAPS][LANES] __attribute__((aligned(VECTOR)));
            F(along_both)(F(TAPS), kind, WINOGRAD_WEIGHTS, 3, NULL, sums + o * F(WIDTH) + lane, job->outs * F(WIDTH), made);
#pragma GCC unroll 9
            for (int t = 0; t < TAPS; t++)
                F(store)(taps[t], made[t]);
            REAL *to = (REAL *)job->gradient + (o * job->channels + c) * TAPS;
            for (ptrdiff_t i = 0; i < some; i++)
                for (int t = 0; t < TAPS; t++, to++) {
                    *to = taps[t][i];
                    odd += *to - *to;
                }
        }
    return odd == 0;
}

static bool F(gradient)(const winograd_job *job, const void *sums, ptrdiff_t block) {
    return job->kind == WINOGRAD_ONE ? F(gradient_of)(WINOGRAD_ONE, job, sums, block)
                                     : F(gradient_of)(WINOGRAD_TWO, job, sums, block);
}
