/* The LSTM's cell in float for AVX-512, by the functions that the ops sigmoid and tanh are made of: the gates of two vectors of units
   side by side. One vector after the other, as the compiler makes them of functions of one element, took twice the time, most of
   it waiting. By an exact e^x in the place of `sigmoid_wide` the states' error is 0.99 of this and the cell takes 1.4 of its time. */
#ifdef __AVX512F__
#define LSTM_IS_WIDE
#include "wide.h"

ALWAYS_INLINE __m512 load_inside(const float *from, __mmask16 inside, bool whole) {
    return whole ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(inside, from);
}

ALWAYS_INLINE void store_inside(float *to, __m512 x, __mmask16 inside, bool whole) {
    if (whole)
        _mm512_storeu_ps(to, x);
    else
        _mm512_mask_storeu_ps(to, inside, x);
}

/* `count` vectors of a part's row r from unit j on; of one that is not `whole`, the units `inside`. Count and whole are constants. */
ALWAYS_INLINE void lstm_units(const recurrent_part *part, ptrdiff_t r, ptrdiff_t j, int count, __mmask16 inside, bool whole) {
    const ptrdiff_t size = part->size, row = r * size + j, gates = 4 * r * size + j;
    const float *x = (const float *)part->x + gates, *z = (const float *)part->z + r * part->z_row + j;
    float *acts = (float *)part->acts + gates, *c = (float *)part->c + row, *h = (float *)part->h + row;
    float *before = (float *)part->before + row, *inner = (float *)part->inner + row, *made = (float *)part->made + row;
    __m512 in[WIDE_MOST], *const forget = in + count, *const out = in + 2 * count, new[WIDE_MOST], bent[WIDE_MOST];
#define LSTM_GATE(gate)                                                                                       \
    _mm512_add_ps(load_inside(z + (gate) * part->z_gate + 16 * k, inside, whole),                             \
                  load_inside(x + (gate) * size + 16 * k, inside, whole))
    WIDE_ALL in[k] = LSTM_GATE(0);
    WIDE_ALL forget[k] = LSTM_GATE(1);
    WIDE_ALL new[k] = LSTM_GATE(2);
    WIDE_ALL out[k] = LSTM_GATE(3);
#undef LSTM_GATE
    sigmoid_wide(in, 3 * count);
    tanh_wide(new, count);
    WIDE_ALL {
        const __m512 old = load_inside(c + 16 * k, inside, whole);
        bent[k] = _mm512_fmadd_ps(forget[k], old, _mm512_mul_ps(in[k], new[k]));
        store_inside(before + 16 * k, old, inside, whole);
        store_inside(c + 16 * k, bent[k], inside, whole);
    }
    tanh_wide(bent, count);
    WIDE_ALL {
        const __m512 next = _mm512_mul_ps(out[k], bent[k]);
        store_inside(acts + 16 * k, in[k], inside, whole);
        store_inside(acts + size + 16 * k, forget[k], inside, whole);
        store_inside(acts + 2 * size + 16 * k, new[k], inside, whole);
        store_inside(acts + 3 * size + 16 * k, out[k], inside, whole);
        store_inside(inner + 16 * k, bent[k], inside, whole);
        store_inside(made + 16 * k, next, inside, whole);
        store_inside(h + 16 * k, next, inside, whole);
    }
}

static void lstm_f32(const recurrent_part *part) {
    for (ptrdiff_t r = 0; r < part->rows; r++) {
        ptrdiff_t j = 0;
        for (; j + 32 <= part->width; j += 32)
            lstm_units(part, r, j, 2, 0, true);
        for (; j < part->width; j += 16)
            lstm_units(part, r, j, 1, (__mmask16)(part->width - j < 16 ? (1u << (part->width - j)) - 1 : 0xffff), false);
    }
}
#endif
