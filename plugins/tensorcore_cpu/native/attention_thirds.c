/* Attention of floats, forward, by thirds of bfloat16 (thirds.h). Powers, which are at most one, are cut as they are: of those under 2^-100
   digits may be lost beside a one. */
#include "attention_thirds.h"
#include "native.h"
#include "turn.h"

#ifdef BF16_TILES
DECLARE_LOOPS(turn_loops, turn_loops);

enum {
    SIDE = THIRDS_SIDE, STEP = THIRDS_STEP,
    COLUMNS = ATTENTION_BLOCK,
    LEAST_COLUMNS = 64, LEAST_FEATURES = 32, WIDE_FEATURES = 64, /* from which on this pays, */
    CAUSAL = 128, CAUSAL_BACK = 256, /* and columns, where rows meet those up to their own, of whole blocks: our loops have smaller ones */
};

bool attention_takes_thirds(const attention *a, bool back) {
    const npy_intp columns = a->causal ? back ? CAUSAL_BACK : CAUSAL : a->features < WIDE_FEATURES ? COLUMNS : LEAST_COLUMNS;
    return a->real == TYPE_F32 && a->rows >= SIDE && a->columns >= columns && a->features >= LEAST_FEATURES &&
           a->width >= LEAST_FEATURES && thirds_wanted();
}

/* One head's keys and values as panels, and room for a block of rows. */
typedef struct {
    ptrdiff_t key_panels, value_panels; /* of the features and of the values' width */
    ptrdiff_t key_bytes, value_bytes;   /* of a panel of each, the latter for COLUMNS of them */
    thirds_block *keys, *values;        /* values: panels of each COLUMNS one after the other */
    thirds_block query, powers;
    float *scores, *sums, *top, *total, *wide, *made;
} rooms;

/* Lays the rooms out from `start` on, if it is given; answers how many bytes they take. */
static size_t lay_out(const attention *a, rooms *room, char *start) {
    size_t at = 0;
    const ptrdiff_t blocks = parts_of(a->columns, COLUMNS), wider = at_least(a->features, a->width);
    room->key_panels = parts_of(a->columns, SIDE);
    room->value_panels = parts_of(a->width, SIDE);
    room->key_bytes = parts_of(a->features, STEP) * THIRDS_BYTES;
    room->value_bytes = COLUMNS / STEP * THIRDS_BYTES;
    room->keys = attention_take(start, &at, room->key_panels, sizeof *room->keys);
    room->values = attention_take(start, &at, blocks * room->value_panels, sizeof *room->values);
    room->query.thirds = attention_take(start, &at, room->key_bytes, 1);
    room->powers.thirds = attention_take(start, &at, room->value_bytes, 1);
    room->scores = attention_take(start, &at, SIDE * COLUMNS, sizeof *room->scores);
    room->sums = attention_take(start, &at, THIRDS_SUMS, sizeof *room->sums);
    room->top = attention_take(start, &at, SIDE, sizeof *room->top);
    room->total = attention_take(start, &at, SIDE, sizeof *room->total);
    room->made = attention_take(start, &at, SIDE * a->width, sizeof *room->made);
    room->wide = attention_take(start, &at, (COLUMNS + SIDE) * wider, sizeof *room->wide);
    attention_take_blocks(start, &at, room->keys, room->key_panels, room->key_bytes);
    attention_take_blocks(start, &at, room->values, blocks * room->value_panels, room->value_bytes);
    return at;
}

bool attention_pack_turned(const float *rows, npy_intp count, npy_intp width, float *turned, thirds_block *made) {
    bool good = true;
    for (npy_intp first = 0; good && first < count; first += SIDE, made++) {
        const npy_intp some = at_most(SIDE, count - first);
        PICK(turn_loops)->turn[2]((const char *)(rows + first * width), width * (npy_intp)sizeof *rows, (char *)turned,
                                  SIDE * sizeof *turned, width, some);
        good = thirds_pack_columns(turned, SIDE, some, width, false, made);
    }
    return good;
}

bool attention_pack_inner(const float *rows, npy_intp count, npy_intp width, thirds_block *made) {
    bool good = true;
    for (npy_intp p = 0; good && p * SIDE < width; p++)
        good = thirds_pack_columns(rows + p * SIDE, width, at_most(SIDE, width - p * SIDE), count, false, &made[p]);
    return good;
}

/* Keys as columns and values as rows of the inner dim; false where their numbers are not fit. */
static bool pack(const attention *a, const rooms *room, npy_intp batch, npy_intp group) {
    float *const turned = room->wide + COLUMNS * at_least(a->features, a->width);
    bool good = true;
    for (npy_intp first = 0; good && first < a->columns; first += COLUMNS) {
        const npy_intp some = at_most(COLUMNS, a->columns - first);
        const float *keys = dense_rows(a, &a->key, batch, group, first, some, a->features, room->wide);
        good = attention_pack_turned(keys, some, a->features, turned, room->keys + first / SIDE);
        const float *values = dense_rows(a, &a->value, batch, group, first, some, a->width, room->wide);
        good = good && attention_pack_inner(values, some, a->width, room->values + first / COLUMNS * room->value_panels);
    }
    return good;
}

/* Rows [row, row + rows) of a head. False where the query's numbers are not fit. */
static bool make_rows(const attention *a, rooms *room, npy_intp batch, npy_intp head, npy_intp row, npy_intp rows) {
    const npy_intp columns = a->causal ? at_most(a->columns, row + rows) : a->columns, one = batch * a->heads + head;
    const npy_intp element = (one * a->rows + row) * a->width;
    dense_rows(a, &a->query, batch, head, row, rows, a->features, room->wide);
    a->loops->scale(room->wide, rows, a->features, a->features, a->scale);
    if (!thirds_pack_rows(room->wide, a->features, rows, a->features, &room->query))
        return false;
    float *const made = (float *)place_of(a, a->made, element, (char *)room->made);
    for (npy_intp r = 0; r < rows; r++) {
        room->top[r] = -(float)Py_HUGE_VAL;
        room->total[r] = 0;
    }
    attention_part part = {0};
    for (npy_intp column = 0; column < columns; column += COLUMNS) {
        const npy_intp some = at_most(COLUMNS, columns - column);
        for (npy_intp j = 0; j < some; j += SIDE) {
            const thirds_place to = {rows, rounded_up(at_most(SIDE, some - j), 16), 0, COLUMNS, NULL, room->scores + j};
            thirds_multiply(&room->query, &room->keys[(column + j) / SIDE], parts_of(a->features, STEP), &to, room->sums);
        }
        part = part_at(a, batch, head, row, column, rows, some, room->scores);
        part.step = COLUMNS;
        part.top = room->top;
        part.total = room->total;
        part.made = column ? made : NULL;
        part.width = a->width;
        a->loops->powers(&part);
        thirds_pack_rows_as_they_are(room->scores, COLUMNS, rows, some, &room->powers);
        const thirds_block *values = room->values + column / COLUMNS * room->value_panels;
        for (npy_intp p = 0; p < room->value_panels; p++) {
            float *const at = made + p * SIDE;
            const thirds_place to = {rows, at_most(SIDE, a->width - p * SIDE), a->width, a->width, column ? at : NULL, at,
                                     columns > THIRDS_LONG};
            thirds_multiply(&room->powers, &values[p], parts_of(some, STEP), &to, room->sums);
        }
    }
    part.made = made;
    part.dots = moved(a->sums, one * a->rows + row, sizeof(float));
    a->loops->finish(&part);
    keep(a, (const char *)made, a->made, element, rows * a->width);
    return true;
}

/* Pieces are (batch, head, part of the rows). */
void attention_forward_thirds(void *context, npy_intp begin, npy_intp end) {
    attention *a = context;
    rooms room;
    const size_t bytes = lay_out(a, &room, NULL);
    char *const all = native_scratch(bytes);
    if (!all) {
        a->failed = true;
        return;
    }
    lay_out(a, &room, all);
    npy_intp packed = -1;
    thirds_begin();
    for (npy_intp piece = begin; piece < end && !a->unfit; piece++) {
        const npy_intp one = piece / a->splits, batch = one / a->heads, head = one % a->heads;
        const npy_intp group = head / (a->heads / a->groups), pair = batch * a->groups + group;
        const npy_intp share = rounded_up(parts_of(a->rows, a->splits), SIDE), first = piece % a->splits * share;
        if (packed != pair && !pack(a, &room, batch, group))
            a->unfit = true;
        packed = pair;
        const npy_intp last = at_most(first + share, a->rows);
        for (npy_intp row = first; row < last && !a->unfit; row += SIDE)
            if (!make_rows(a, &room, batch, head, row, at_most(SIDE, last - row)))
                a->unfit = true;
    }
    thirds_end();
    native_scratch_free(all, bytes);
}
#else
bool attention_takes_thirds(const attention *a, bool back) { return false; }
void attention_forward_thirds(void *context, npy_intp begin, npy_intp end) {}
#endif
