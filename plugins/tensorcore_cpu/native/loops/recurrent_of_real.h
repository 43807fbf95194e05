/* The cells of recurrent.h for one type, which REAL and F describe; included once for each. Gates stand in PyTorch's order. */

/* The rows of a part in turn: `row` and `gates`, from the part's start to this row in arrays of units and of gates. */
#define EACH_ROW(count)                                                                                        \
    const ptrdiff_t width = part->width, size = part->size;                                                    \
    for (ptrdiff_t r = 0, row = 0, gates = 0; r < part->rows; r++, row += size, gates += (count) * size)

/* Input, forget, cell and output gate: c = f c + i g, made = h = o tanh(c); the old c to `before`, tanh(c) to `inner`. */
#ifndef LSTM_IS_WIDE
static void F(lstm)(const recurrent_part *part) {
    EACH_ROW(4) {
        const REAL *x = (const REAL *)part->x + gates, *z0 = (const REAL *)part->z + r * part->z_row;
        const REAL *z1 = z0 + part->z_gate, *z2 = z1 + part->z_gate, *z3 = z2 + part->z_gate;
        REAL *acts = (REAL *)part->acts + gates, *made = (REAL *)part->made + row, *h = (REAL *)part->h + row;
        REAL *c = (REAL *)part->c + row, *before = (REAL *)part->before + row, *inner = (REAL *)part->inner + row;
        INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {
            const REAL in = F(sigmoid_)(z0[j] + x[j]), forget = F(sigmoid_)(z1[j] + x[size + j]);
            const REAL new = F(tanh_)(z2[j] + x[2 * size + j]), out = F(sigmoid_)(z3[j] + x[3 * size + j]);
            const REAL old = c[j], cell = forget * old + in * new, bent = F(tanh_)(cell);
            acts[j] = in;
            acts[size + j] = forget;
            acts[2 * size + j] = new;
            acts[3 * size + j] = out;
            before[j] = old;
            c[j] = cell;
            inner[j] = bent;
            made[j] = out * bent;
            h[j] = out * bent;
        }
    }
}
#endif

/* `sent`, whether the results of the layer have a gradient, is a constant: with a look at it the loop took longer. */
ALWAYS_INLINE void F(lstm_back)(const recurrent_part *part, bool sent) {
    EACH_ROW(4) {
        const REAL *acts = (const REAL *)part->acts + gates, *before = (const REAL *)part->before + row;
        const REAL *inner = (const REAL *)part->inner + row, *dh = (const REAL *)part->dh + row;
        const REAL *grads = sent ? (const REAL *)part->grads + row : NULL;
        REAL *dc = (REAL *)part->dc + row, *dz = (REAL *)part->dz + gates;
        INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {
            const REAL in = acts[j], forget = acts[size + j], new = acts[2 * size + j], out = acts[3 * size + j];
            const REAL bent = inner[j], back = sent ? dh[j] + grads[j] : dh[j];
            const REAL cell = dc[j] + back * out * (1 - bent * bent);
            dz[j] = cell * new * in * (1 - in);
            dz[size + j] = cell * before[j] * forget * (1 - forget);
            dz[2 * size + j] = cell * in * (1 - new * new);
            dz[3 * size + j] = back * bent * out * (1 - out);
            dc[j] = cell * forget;
        }
    }
}

static void F(lstm_backward)(const recurrent_part *part) {
    if (part->grads)
        F(lstm_back)(part, true);
    else
        F(lstm_back)(part, false);
}

/* Reset, update and new gate: h = n + u (h - n); what the reset gate multiplies goes to `inner`. */
static void F(gru)(const recurrent_part *part) {
    const REAL *bias = part->bias;
    EACH_ROW(3) {
        const REAL *x = (const REAL *)part->x + gates, *z0 = (const REAL *)part->z + r * part->z_row;
        const REAL *z1 = z0 + part->z_gate, *z2 = z1 + part->z_gate;
        REAL *acts = (REAL *)part->acts + gates, *made = (REAL *)part->made + row, *h = (REAL *)part->h + row;
        REAL *inner = (REAL *)part->inner + row;
        INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {
            const REAL reset = F(sigmoid_)(z0[j] + (bias ? bias[j] : 0) + x[j]);
            const REAL update = F(sigmoid_)(z1[j] + (bias ? bias[size + j] : 0) + x[size + j]);
            const REAL hidden = z2[j] + (bias ? bias[2 * size + j] : 0);
            const REAL new = F(tanh_)(hidden * reset + x[2 * size + j]), next = (h[j] - new) * update + new;
            acts[j] = reset;
            acts[size + j] = update;
            acts[2 * size + j] = new;
            inner[j] = hidden;
            made[j] = next;
            h[j] = next;
        }
    }
}

/* dx is the gradient of the input's part, dz that of the state's; dh keeps what does not go through the product. */
static void F(gru_backward)(const recurrent_part *part) {
    EACH_ROW(3) {
        const REAL *acts = (const REAL *)part->acts + gates, *prev = (const REAL *)part->prev + row;
        const REAL *inner = (const REAL *)part->inner + row;
        const REAL *grads = part->grads ? (const REAL *)part->grads + row : NULL;
        REAL *dh = (REAL *)part->dh + row, *dx = (REAL *)part->dx + gates, *dz = (REAL *)part->dz + gates;
        if (grads)
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)
                dh[j] += grads[j];
        INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {
            const REAL reset = acts[j], update = acts[size + j], new = acts[2 * size + j], back = dh[j];
            const REAL slope = back * (1 - update) * (1 - new * new);
            const REAL of_reset = slope * inner[j] * reset * (1 - reset);
            const REAL of_update = back * (prev[j] - new) * update * (1 - update);
            dx[j] = of_reset;
            dx[size + j] = of_update;
            dx[2 * size + j] = slope;
            dz[j] = of_reset;
            dz[size + j] = of_update;
            dz[2 * size + j] = slope * reset;
            dh[j] = back * update;
        }
    }
}

static void F(rnn)(const recurrent_part *part) {
    EACH_ROW(1) {
        const REAL *x = (const REAL *)part->x + gates, *z = (const REAL *)part->z + r * part->z_row;
        REAL *acts = (REAL *)part->acts + gates, *made = (REAL *)part->made + row, *h = (REAL *)part->h + row;
        if (part->relu)
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {
                const REAL sum = z[j] + x[j], next = sum < 0 ? 0 : sum;
                acts[j] = made[j] = h[j] = next;
            }
        else
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {
                const REAL next = F(tanh_)(z[j] + x[j]);
                acts[j] = made[j] = h[j] = next;
            }
    }
}

static void F(rnn_backward)(const recurrent_part *part) {
    EACH_ROW(1) {
        const REAL *acts = (const REAL *)part->acts + gates;
        const REAL *grads = part->grads ? (const REAL *)part->grads + row : NULL;
        REAL *dh = (REAL *)part->dh + row, *dz = (REAL *)part->dz + gates;
        if (grads)
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)
                dh[j] += grads[j];
        if (part->relu)
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)
                dz[j] = acts[j] > 0 ? dh[j] : dh[j] * 0;
        else
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)
                dz[j] = dh[j] * (1 - acts[j] * acts[j]);
    }
}

#undef EACH_ROW

#ifndef RECURRENT_LOOPS
#define RECURRENT_LOOPS(suffix)                                                                               \
    {                                                                                                         \
        .lstm = lstm_##suffix, .gru = gru_##suffix, .rnn = rnn_##suffix,                                      \
        .lstm_backward = lstm_backward_##suffix, .gru_backward = gru_backward_##suffix,                       \
        .rnn_backward = rnn_backward_##suffix,                                                                \
    }
#endif
