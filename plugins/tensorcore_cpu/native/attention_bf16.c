/* Attention of bfloat16, forward, by the processor's unit for tiles: scores and what is made of them are floats, and powers are
   rounded before they meet the values, as in PyTorch. */
#include "attention_call.h"
#include "gemm_bf16.h"
#include "halves.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

#ifdef BF16_PAIRS
enum {
    COLUMNS = 256, /* of a block of scores, which stays in the first cache */
    STEP = 2 * BF16_STEP,
};

bool attention_takes_bf16(PyObject *query) {
    return PyArray_NDIM((PyArrayObject *)query) == 4 && bf16_here() && bf16_tiles_take(PyArray_DIM((PyArrayObject *)query, 2));
}

/* One head's keys and values as panels, and room for a block of rows. */
typedef struct {
    ptrdiff_t features, columns, width; /* whole steps of them, */
    ptrdiff_t key_panels, value_panels;
    uint32_t *keys, *values;
    uint16_t *query, *powers;
    float *scores, *made, *top, *total;
} rooms;

/* Lays the rooms out from `start` on, if it is given; answers how many bytes they take. */
static size_t lay_out(const attention *a, rooms *room, char *start) {
    size_t at = 0;
    room->features = rounded_up(a->features, STEP);
    room->columns = rounded_up(a->columns, STEP);
    room->width = rounded_up(a->width, BF16_WIDTH);
    room->key_panels = parts_of(a->columns, BF16_WIDTH);
    room->value_panels = parts_of(a->width, BF16_WIDTH);
    room->keys = attention_take(start, &at, room->key_panels * room->features * BF16_WIDTH / 2, sizeof *room->keys);
    room->values = attention_take(start, &at, room->value_panels * room->columns * BF16_WIDTH / 2, sizeof *room->values);
    room->query = attention_take(start, &at, BF16_TALL * room->features, sizeof *room->query);
    room->powers = attention_take(start, &at, BF16_TALL * COLUMNS, sizeof *room->powers);
    room->scores = attention_take(start, &at, BF16_TALL * COLUMNS, sizeof *room->scores);
    room->made = attention_take(start, &at, BF16_TALL * room->width, sizeof *room->made);
    room->top = attention_take(start, &at, BF16_TALL, sizeof *room->top);
    room->total = attention_take(start, &at, BF16_TALL, sizeof *room->total);
    return at;
}

/* All panels of a matrix of one head, (inner, columns), with zeros to whole steps of `inner`. */
static void pack(const void *data, npy_intp inner_step, npy_intp column_step, npy_intp inner, npy_intp columns, uint32_t *panel) {
    const gemm_job job = {.right = data, .right_inner = inner_step, .right_column = column_step, .inner = inner};
    const ptrdiff_t pairs = (inner + 1) / 2, whole = bf16_whole_steps(pairs);
    for (npy_intp column = 0; column < columns; column += BF16_WIDTH, panel += whole * BF16_WIDTH) {
        bf16_pack_panel(&job, column, at_most(columns - column, BF16_WIDTH), 0, pairs, panel);
        memset(panel + pairs * BF16_WIDTH, 0, (size_t)((whole - pairs) * BF16_WIDTH) * sizeof *panel);
    }
}

static void copy_query(const attention *a, const uint16_t *from, npy_intp rows, const rooms *room) {
    const npy_intp step = a->query.step[3];
    for (npy_intp r = 0; r < rows; r++) {
        uint16_t *const to = room->query + r * room->features;
        for (npy_intp k = 0; step != 1 && k < a->features; k++)
            to[k] = from[r * a->query.step[2] + k * step];
        if (step == 1)
            memcpy(to, from + r * a->query.step[2], (size_t)a->features * sizeof *to);
        memset(to + a->features, 0, (size_t)(room->features - a->features) * sizeof *to);
    }
}

/* Rounds a block's powers; behind `some` of a row they are zeros. */
BF16_TARGET static void round_powers(const rooms *room, npy_intp rows, npy_intp some) {
    for (npy_intp r = 0; r < rows; r++) {
        const float *from = room->scores + r * COLUMNS;
        uint16_t *to = room->powers + r * COLUMNS;
        for (npy_intp j = 0; j < some; j += STEP) {
            const __mmask32 in = some - j < STEP ? (1u << (some - j)) - 1 : UINT32_MAX;
            const __m512 low = _mm512_loadu_ps(from + j), high = _mm512_loadu_ps(from + j + STEP / 2);
            _mm512_storeu_si512(to + j, _mm512_maskz_mov_epi16(in, (__m512i)_mm512_cvtne2ps_pbh(high, low)));
        }
    }
}

/* Rows [row, row + rows) of a head. */
static void make_rows(const attention *a, const rooms *room, npy_intp batch, npy_intp head, npy_intp row, npy_intp rows) {
    const npy_intp columns = a->causal ? at_most(a->columns, row + rows) : a->columns, one = batch * a->heads + head;
    copy_query(a, (const uint16_t *)head_of(&a->query, batch, head, a->stored) + row * a->query.step[2], rows, room);
    for (npy_intp r = 0; r < rows; r++) {
        room->top[r] = -(float)Py_HUGE_VAL;
        room->total[r] = 0;
    }
    attention_part part = {0};
    bf16_tiles_begin(rows);
    for (npy_intp column = 0; column < columns; column += COLUMNS) {
        const npy_intp some = at_most(COLUMNS, columns - column);
        for (npy_intp j = 0; j < some; j += BF16_WIDTH)
            bf16_tiles_add(rows, room->query, room->features, STEP, room->keys + (column + j) * room->features / 2,
                           room->features / 2, false, room->scores + j, COLUMNS);
        a->loops->scale(room->scores, rows, rounded_up(some, STEP / 2), COLUMNS, a->scale);
        part = part_at(a, batch, head, row, column, rows, some, room->scores);
        part.step = COLUMNS;
        part.top = room->top;
        part.total = room->total;
        part.made = column ? room->made : NULL;
        part.width = room->width;
        a->loops->powers(&part);
        round_powers(room, rows, some);
        for (npy_intp p = 0; p < room->value_panels; p++)
            bf16_tiles_add(rows, room->powers, COLUMNS, STEP, room->values + (p * room->columns + column) * BF16_WIDTH / 2,
                           rounded_up(some, STEP) / 2, column > 0, room->made + p * BF16_WIDTH, room->width);
    }
    bf16_tiles_end();
    part.made = room->made;
    part.dots = a->sums + (one * a->rows + row) * (npy_intp)sizeof(float);
    a->loops->finish(&part);
    for (npy_intp r = 0; r < rows; r++)
        native_narrow(TYPE_BF16, room->made + r * room->width, moved(a->made, (one * a->rows + row + r) * a->width, a->stored),
                      a->width);
}

/* Pieces are (batch, head, part of the rows). */
void attention_forward_bf16(void *context, npy_intp begin, npy_intp end) {
    attention *a = context;
    rooms room;
    char *const all = aligned_alloc(64, lay_out(a, &room, NULL));
    if (!all) {
        a->failed = true;
        return;
    }
    lay_out(a, &room, all);
    npy_intp packed = -1;
    for (npy_intp piece = begin; piece < end; piece++) {
        const npy_intp one = piece / a->splits, batch = one / a->heads, head = one % a->heads;
        const npy_intp group = head / (a->heads / a->groups), pair = batch * a->groups + group;
        const npy_intp share = rounded_up(parts_of(a->rows, a->splits), BF16_TALL), first = piece % a->splits * share;
        if (packed != pair) {
            pack(head_of(&a->key, batch, group, a->stored), a->key.step[3], a->key.step[2], a->features, a->columns, room.keys);
            pack(head_of(&a->value, batch, group, a->stored), a->value.step[2], a->value.step[3], a->columns, a->width, room.values);
            packed = pair;
        }
        const npy_intp last = at_most(first + share, a->rows);
        for (npy_intp row = first; row < last; row += BF16_TALL)
            make_rows(a, &room, batch, head, row, at_most(BF16_TALL, last - row));
    }
    free(all);
}
#else
bool attention_takes_bf16(PyObject *query) { return false; }
void attention_forward_bf16(void *context, npy_intp begin, npy_intp end) {}
#endif
