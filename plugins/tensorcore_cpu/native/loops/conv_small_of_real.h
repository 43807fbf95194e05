/* The same for one type: a vector holds the same element of as many channels. */

ALWAYS_INLINE void F(clear)(V_U *to, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = (V){0};
}

static void F(small_sums)(const small_job *job, const V_U *x, const V_U *weight, V bias, V_U *y) {
    const small_pair *pair = job->pairs;
    for (ptrdiff_t o = 0; o < job->outputs; o++) {
        V sum = bias;
        for (const small_pair *end = job->pairs + job->ends[o]; pair < end; pair++)
            sum += x[pair->place] * weight[pair->tap];
        y[o] = sum;
    }
}

static void F(small_input)(const small_job *job, const V_U *g, const V_U *weight, V_U *made) {
    const small_pair *pair = job->pairs;
    F(clear)(made, job->plane);
    for (ptrdiff_t o = 0; o < job->outputs; o++) {
        const V sent = g[o];
        for (const small_pair *end = job->pairs + job->ends[o]; pair < end; pair++)
            made[pair->place] += sent * weight[pair->tap];
    }
}

static void F(small_weight)(const small_job *job, const V_U *g, const V_U *x, V_U *made) {
    const small_pair *pair = job->pairs;
    for (ptrdiff_t o = 0; o < job->outputs; o++) {
        const V sent = g[o];
        for (const small_pair *end = job->pairs + job->ends[o]; pair < end; pair++)
            made[pair->tap] += sent * x[pair->place];
    }
}

static void F(small)(const small_job *job, void *room, ptrdiff_t begin, ptrdiff_t end) {
    const convolution *c = job->c;
    V_U *const x = room, *const y = x + job->plane, *const weight = y + job->outputs, *const some = weight + c->taps;
    for (; begin < end; begin++) {
        const ptrdiff_t channel = begin * LANES, lanes = c->groups - channel < LANES ? c->groups - channel : LANES;
        V_U bias = {0};
        if (c->wanted != CONV_WEIGHT_GRADIENT)
            F(turn_planes)((const REAL *)c->weight + channel * c->taps, c->taps, lanes, (REAL *)weight);
        else
            F(clear)(weight, c->taps);
        for (ptrdiff_t i = 0; c->bias && i < lanes; i++)
            bias[i] = ((const REAL *)c->bias)[channel + i];
        for (ptrdiff_t image = 0; image < c->images; image++) {
            const ptrdiff_t first = image * c->groups + channel;
            REAL *const input = (REAL *)c->x + first * job->plane, *const output = (REAL *)c->y + first * job->outputs;
            if (c->wanted != CONV_INPUT_GRADIENT)
                F(turn_planes)(input, job->plane, lanes, (REAL *)x);
            if (c->wanted != CONV_SUMS)
                F(turn_planes)(output, job->outputs, lanes, (REAL *)y);
            if (c->wanted == CONV_SUMS) {
                F(small_sums)(job, x, weight, bias, y);
                F(turn_out)((const REAL *)y, LANES, job->outputs, lanes, output, job->outputs);
            } else if (c->wanted == CONV_INPUT_GRADIENT) {
                F(small_input)(job, y, weight, x);
                F(turn_out)((const REAL *)x, LANES, job->plane, lanes, input, job->plane);
            } else {
                if (image % IMAGES == 0)
                    F(clear)(some, c->taps);
                F(small_weight)(job, y, x, some);
                for (ptrdiff_t t = 0; (image % IMAGES == IMAGES - 1 || image == c->images - 1) && t < c->taps; t++)
                    weight[t] += some[t];
            }
        }
        if (c->wanted == CONV_WEIGHT_GRADIENT)
            F(turn_out)((const REAL *)weight, LANES, c->taps, lanes, (REAL *)c->weight + channel * c->taps, c->taps);
    }
}
