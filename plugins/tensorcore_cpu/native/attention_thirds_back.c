/* Gradients of attention of floats by thirds of bfloat16 (thirds.h): weights and their gradients for some rows and all columns, in blocks
   that keep to the second cache, and what they give to values, keys and the query, whose sums have as many numbers as a block. */
#include "attention_thirds.h"
#include "native.h"
#include "turn.h"

#include <string.h>

#ifdef BF16_TILES
DECLARE_LOOPS(turn_loops, turn_loops);

enum {
    SIDE = THIRDS_SIDE, STEP = THIRDS_STEP,
    BLOCK = ATTENTION_BLOCK,
    SIDES = BLOCK / SIDE,
    STRIP = 1 << 17,  /* weights of some rows and all columns */
    BLOCK_BYTES = BLOCK / STEP * THIRDS_BYTES, /* of 32 rows, or columns, with a block's numbers of the inner dim each */
};

/* One head's keys and values, some rows of its query and gradient, and what is made of them. */
typedef struct {
    ptrdiff_t rows, columns; /* at most, of whole blocks */
    thirds_block *keys, *values;  /* columns that scores, and gradients of weights, are made of */
    thirds_block *down;           /* keys as rows of the inner dim, BLOCK of them after the other */
    thirds_block query[SIDES], sent[SIDES]; /* rows */
    thirds_block *queries, *gradients;      /* the same rows as rows of the inner dim */
    thirds_block left;
    float *scores, *slopes, *turned, *wide, *sums, *dots, *of_query, *of_key, *of_value;
} rooms;

/* Lays the rooms out from `start` on, if it is given; answers how many bytes they take. */
static size_t lay_out(const attention *a, rooms *room, char *start) {
    size_t at = 0;
    const ptrdiff_t columns = parts_of(a->columns, SIDE), blocks = parts_of(a->columns, BLOCK), wider = at_least(a->features, a->width);
    const ptrdiff_t of_features = parts_of(a->features, SIDE), of_width = parts_of(a->width, SIDE), half = native_is_half(a->type);
    room->columns = blocks * BLOCK;
    room->rows = at_most(BLOCK, at_least(SIDE, STRIP / room->columns / SIDE * SIDE));
    room->keys = attention_take(start, &at, columns, sizeof *room->keys);
    room->values = attention_take(start, &at, columns, sizeof *room->values);
    room->down = attention_take(start, &at, blocks * of_features, sizeof *room->down);
    room->queries = attention_take(start, &at, of_features, sizeof *room->queries);
    room->gradients = attention_take(start, &at, of_width, sizeof *room->gradients);
    room->left.thirds = attention_take(start, &at, BLOCK_BYTES, 1);
    room->scores = attention_take(start, &at, room->rows * room->columns, sizeof(float));
    room->slopes = attention_take(start, &at, room->rows * room->columns, sizeof(float));
    room->turned = attention_take(start, &at, BLOCK * BLOCK, sizeof(float));
    room->wide = attention_take(start, &at, 2 * BLOCK * wider, sizeof(float));
    room->sums = attention_take(start, &at, THIRDS_SUMS, sizeof(float));
    room->dots = attention_take(start, &at, BLOCK, sizeof(float));
    room->of_query = attention_take(start, &at, half * BLOCK * a->features, sizeof(float));
    room->of_key = attention_take(start, &at, half * a->columns * a->features, sizeof(float));
    room->of_value = attention_take(start, &at, half * a->columns * a->width, sizeof(float));
    attention_take_blocks(start, &at, room->keys, columns, of_features * THIRDS_BYTES);
    attention_take_blocks(start, &at, room->values, columns, of_width * THIRDS_BYTES);
    attention_take_blocks(start, &at, room->down, blocks * of_features, BLOCK_BYTES);
    attention_take_blocks(start, &at, room->queries, of_features, BLOCK_BYTES);
    attention_take_blocks(start, &at, room->gradients, of_width, BLOCK_BYTES);
    attention_take_blocks(start, &at, room->query, SIDES, of_features * THIRDS_BYTES);
    attention_take_blocks(start, &at, room->sent, SIDES, of_width * THIRDS_BYTES);
    return at;
}

static bool pack_left(const float *rows, npy_intp count, npy_intp width, thirds_block *made) {
    bool good = true;
    for (npy_intp first = 0; good && first < count; first += SIDE, made++)
        good = thirds_pack_rows(rows + first * width, width, at_most(SIDE, count - first), width, made);
    return good;
}

static bool pack_head(const attention *a, const rooms *room, npy_intp batch, npy_intp group) {
    float *const turned = room->wide + BLOCK * at_least(a->features, a->width);
    bool good = true;
    for (npy_intp first = 0; good && first < a->columns; first += BLOCK) {
        const npy_intp some = at_most(BLOCK, a->columns - first);
        const float *keys = dense_rows(a, &a->key, batch, group, first, some, a->features, room->wide);
        good = attention_pack_turned(keys, some, a->features, turned, room->keys + first / SIDE) &&
               (!a->of_query || attention_pack_inner(keys, some, a->features, room->down + first / BLOCK * parts_of(a->features, SIDE)));
        if (good) {
            const float *values = dense_rows(a, &a->value, batch, group, first, some, a->width, room->wide);
            good = attention_pack_turned(values, some, a->width, turned, room->values + first / SIDE);
        }
    }
    return good;
}

/* A block of weights, or of their gradients: `rows` of the left side times the panels of `columns`. */
static void multiply_block(const rooms *room, const thirds_block *left, npy_intp rows, const thirds_block *right, npy_intp columns,
                           npy_intp inner, float *made) {
    for (npy_intp r = 0; r < rows; r += SIDE)
        for (npy_intp c = 0; c < columns; c += SIDE) {
            const thirds_place to = {at_most(SIDE, rows - r), rounded_up(at_most(SIDE, columns - c), 16), 0, BLOCK, NULL,
                                     made + r * BLOCK + c};
            thirds_multiply(&left[r / SIDE], &right[c / SIDE], parts_of(inner, STEP), &to, room->sums);
        }
}

/* made[i] += the sum over r of numbers[r][i] * right[r]: of a block of weights or their gradients. False where these are not fit. */
static bool add_turned(const rooms *room, const float *numbers, npy_intp rows, npy_intp columns, const thirds_block *right, npy_intp width,
                       bool weights, bool apart, float *made) {
    PICK(turn_loops)->turn[2]((const char *)numbers, BLOCK * sizeof *numbers, (char *)room->turned, BLOCK * sizeof *numbers, columns, rows);
    thirds_block left = room->left;
    for (npy_intp c = 0; c < columns; c += SIDE) {
        const npy_intp some = at_most(SIDE, columns - c);
        if (weights)
            thirds_pack_rows_as_they_are(room->turned + c * BLOCK, BLOCK, some, rows, &left);
        else if (!thirds_pack_rows(room->turned + c * BLOCK, BLOCK, some, rows, &left))
            return false;
        for (npy_intp p = 0; p * SIDE < width; p++) {
            float *const at = made + c * width + p * SIDE;
            const thirds_place to = {some, at_most(SIDE, width - p * SIDE), width, width, at, at, apart};
            thirds_multiply(&left, &right[p], parts_of(rows, STEP), &to, room->sums);
        }
    }
    return true;
}

/* Rows [row, row + rows) of a head: what they give to keys and values, and their own gradients. */
static bool differentiate_rows(const attention *a, rooms *room, npy_intp batch, npy_intp head, npy_intp row, npy_intp rows, float *of_key,
                               float *of_value) {
    const npy_intp one = (batch * a->heads + head) * a->rows + row, panels = parts_of(a->features, SIDE);
    const npy_intp columns = a->causal ? at_most(a->columns, row + rows) : a->columns;
    float *const query = dense_rows(a, &a->query, batch, head, row, rows, a->features, room->wide);
    if (!attention_pack_inner(query, rows, a->features, room->queries))
        return false;
    a->loops->scale(query, rows, a->features, a->features, a->scale);
    if (!pack_left(query, rows, a->features, room->query))
        return false;
    const float *sent = dense_rows(a, &a->sent, batch, head, row, rows, a->width, room->wide);
    if (!pack_left(sent, rows, a->width, room->sent) || !attention_pack_inner(sent, rows, a->width, room->gradients))
        return false;
    float *const of_query = a->of_query ? (float *)place_of(a, a->of_query, one * a->features, (char *)room->of_query) : NULL;
    const bool apart = a->rows * (a->heads / a->groups) > THIRDS_LONG;
    memset(room->dots, 0, BLOCK * sizeof *room->dots);
    for (npy_intp column = 0; column < columns; column += BLOCK) {
        const npy_intp some = at_most(BLOCK, columns - column), at = column * room->rows;
        attention_part part = part_at(a, batch, head, row, column, rows, some, room->scores + at);
        part.step = BLOCK;
        part.slopes = room->slopes + at;
        part.dots = room->dots;
        part.sums = moved(a->kept, one, a->bytes);
        multiply_block(room, room->query, rows, room->keys + column / SIDE, some, a->features, part.scores);
        a->loops->weights(&part);
        multiply_block(room, room->sent, rows, room->values + column / SIDE, some, a->width, part.slopes);
        a->loops->sum_slopes(&part);
    }
    for (npy_intp column = 0; column < columns; column += BLOCK) {
        const npy_intp some = at_most(BLOCK, columns - column), at = column * room->rows;
        attention_part part = part_at(a, batch, head, row, column, rows, some, room->scores + at);
        part.step = BLOCK;
        part.slopes = room->slopes + at;
        part.dots = room->dots;
        if (of_value)
            add_turned(room, part.scores, rows, some, room->gradients, a->width, true, apart, of_value + column * a->width);
        if (!of_key && !of_query)
            continue;
        a->loops->slopes(&part);
        if (of_key && !add_turned(room, part.slopes, rows, some, room->queries, a->features, false, apart, of_key + column * a->features))
            return false;
        for (npy_intp r = 0; of_query && r < rows; r += SIDE) {
            const npy_intp high = at_most(SIDE, rows - r);
            if (!thirds_pack_rows((const float *)part.slopes + r * BLOCK, BLOCK, high, some, &room->left))
                return false;
            for (npy_intp p = 0; p < panels; p++) {
                float *const made = of_query + r * a->features + p * SIDE;
                const thirds_place to = {high, at_most(SIDE, a->features - p * SIDE), a->features, a->features, column ? made : NULL, made,
                                         columns > THIRDS_LONG};
                thirds_multiply(&room->left, &room->down[column / BLOCK * panels + p], parts_of(some, STEP), &to, room->sums);
            }
        }
    }
    if (of_query)
        keep(a, (const char *)of_query, a->of_query, one * a->features, rows * a->features);
    return true;
}

/* Pieces are (batch, group). */
void attention_backward_thirds(void *context, npy_intp begin, npy_intp end) {
    attention *a = context;
    rooms room;
    const npy_intp repeat = a->heads / a->groups;
    const size_t bytes = lay_out(a, &room, NULL);
    char *const all = native_scratch(bytes);
    if (!all) {
        a->failed = true;
        return;
    }
    lay_out(a, &room, all);
    thirds_begin();
    for (npy_intp piece = begin; piece < end && !a->unfit; piece++) {
        const npy_intp batch = piece / a->groups, group = piece % a->groups;
        const npy_intp key_first = piece * a->columns * a->features, value_first = piece * a->columns * a->width;
        float *const of_key = a->of_key ? (float *)place_of(a, a->of_key, key_first, (char *)room.of_key) : NULL;
        float *const of_value = a->of_value ? (float *)place_of(a, a->of_value, value_first, (char *)room.of_value) : NULL;
        if (of_key)
            memset(of_key, 0, (size_t)(a->columns * a->features) * sizeof *of_key);
        if (of_value)
            memset(of_value, 0, (size_t)(a->columns * a->width) * sizeof *of_value);
        bool good = pack_head(a, &room, batch, group);
        for (npy_intp head = group * repeat; good && head < (group + 1) * repeat; head++)
            for (npy_intp row = 0; good && row < a->rows; row += room.rows)
                good = differentiate_rows(a, &room, batch, head, row, at_most(room.rows, a->rows - row), of_key, of_value);
        if (!good)
            a->unfit = true;
        if (of_key)
            keep(a, (const char *)of_key, a->of_key, key_first, a->columns * a->features);
        if (of_value)
            keep(a, (const char *)of_value, a->of_value, value_first, a->columns * a->width);
    }
    thirds_end();
    native_scratch_free(all, bytes);
}
#else
void attention_backward_thirds(void *context, npy_intp begin, npy_intp end) {}
#endif
