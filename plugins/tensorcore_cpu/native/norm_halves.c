/* Normalisations of half types. */
#include "norm_halves.h"

#include "halves.h"

#include <stdlib.h>

enum { ROOM = 1 << 12 }; /* elements of rows that are floats at a time */

typedef struct {
    const norm_of_real *of;
    const norm_rows *rows;
    const norm_channels *channels;
    native_type half;
    _Atomic bool out_of_memory;
} half_call;

/* `count` elements from number `first` on, of an array of halves. */
static void widen(const half_call *call, const void *from, npy_intp first, float *to, npy_intp count) {
    native_widen(call->half, (const char *)from + first * TYPE_SIZE[call->half], to, count);
}

static void narrow(const half_call *call, const float *from, void *to, npy_intp first, npy_intp count) {
    native_narrow(call->half, from, (char *)to + first * TYPE_SIZE[call->half], count);
}

/* Room for so many elements, and as many results behind them at *made. */
static float *room(half_call *call, npy_intp count, float **made) {
    float *space = aligned_alloc(64, (size_t)norm_padded(count) * 2 * sizeof *space);
    call->out_of_memory |= !space;
    *made = space ? space + norm_padded(count) : NULL;
    return space;
}

static const float *from_number(const void *array, npy_intp first) { return array ? (const float *)array + first : NULL; }

/* A few rows at a time, or one where its number decides about the weights. */
static void run_rows(void *context, npy_intp begin, npy_intp end) {
    half_call *call = context;
    const npy_intp n = call->rows->n, turns = call->rows->turns, most = turns > 1 || n > ROOM / 2 ? 1 : ROOM / n;
    float *made, *const space = room(call, most * n, &made);
    for (npy_intp rows; space && begin < end; begin += rows) {
        const npy_intp turn = begin % turns * (n / call->rows->inner);
        rows = end - begin < most ? end - begin : most;
        widen(call, call->rows->x, begin * n, space, rows * n);
        norm_rows some = *call->rows;
        some.turns = 1;
        some.x = space;
        some.out = made;
        some.weight = from_number(some.weight, turn);
        some.bias = from_number(some.bias, turn);
        some.mean = (float *)from_number(some.mean, begin);
        some.var = (float *)from_number(some.var, begin);
        call->of->rows(&some, 0, rows);
        narrow(call, made, call->rows->out, begin * n, rows * n);
    }
    free(space);
}

static void run_channels(void *context, npy_intp begin, npy_intp end) {
    half_call *call = context;
    const npy_intp batch = call->channels->batch, inner = call->channels->inner, step = call->channels->channels * inner;
    float *made, *const space = room(call, batch * inner, &made);
    for (; space && begin < end; begin++) {
        for (npy_intp r = 0; r < batch; r++)
            widen(call, call->channels->x, r * step + begin * inner, space + r * inner, inner);
        norm_channels one = *call->channels;
        one.channels = 1;
        one.x = space;
        one.out = made;
        one.weight = from_number(one.weight, begin);
        one.bias = from_number(one.bias, begin);
        one.mean = (float *)from_number(one.mean, begin);
        one.var = (float *)from_number(one.var, begin);
        call->of->channels(&one, 0, 1);
        for (npy_intp r = 0; r < batch; r++)
            narrow(call, made + r * inner, call->channels->out, r * step + begin * inner, inner);
    }
    free(space);
}

bool native_norm_half_rows(const norm_of_real *of, const norm_rows *rows, npy_intp count, native_type half, npy_intp grain) {
    half_call call = {.of = of, .rows = rows, .half = half};
    native_parallel(count, grain, run_rows, &call);
    return !call.out_of_memory;
}

bool native_norm_half_channels(const norm_of_real *of, const norm_channels *channels, native_type half, npy_intp grain) {
    half_call call = {.of = of, .channels = channels, .half = half};
    native_parallel(channels->channels, grain, run_channels, &call);
    return !call.out_of_memory;
}
