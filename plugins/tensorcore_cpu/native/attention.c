/* Attention over blocks of rows and columns, forward and backward: the scores never exist as a whole. */
#include "attention_call.h"
#include "halves.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(attention_loops, attention_loops);

static const attention_loops *loops;

enum { CAUSAL, SCALE, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    ROWS = 48,             /* of a block */
    STRIP = 1 << 17,       /* scores and slopes of a block in the backward kernel: rows x columns */
    WORK = 1 << 21,        /* multiplications that are worth a second thread */
    FETCHED = 1 << 17,     /* bytes of a head that are brought into the second cache while the one before is made */
};

/* A matrix of one head as the right side of products, `inner` cut into blocks as long as a part may be. */
typedef struct {
    npy_intp inner, columns;
    char *packed;
} panels;

static size_t panel_bytes(const attention *a, npy_intp inner, npy_intp columns) {
    return (size_t)(rounded_up(columns, a->gemm->width) * inner) * a->bytes;
}

static panels pack(const attention *a, const void *data, npy_intp inner_step, npy_intp column_step, npy_intp inner,
                   npy_intp columns, char *room) {
    gemm_job job = {.right = data, .right_inner = inner_step, .right_column = column_step};
    const npy_intp block = a->gemm->most_inner;
    for (npy_intp first = 0; first < inner; first += block) {
        gemm_part part = {0, 0, 0, columns, first, at_most(block, inner - first)};
        a->gemm->pack_right(&job, &part, room + panel_bytes(a, first, columns));
    }
    return (panels){inner, columns, room};
}

/* made = left times rows [first, first + some) of the panels, which begin a block; added to what is there if `more`. */
static void multiply(const attention *a, const void *left, npy_intp rows, const panels *right, npy_intp first,
                     npy_intp some, npy_intp column, npy_intp columns, void *made, npy_intp made_row, bool more) {
    const char *from = right->packed + panel_bytes(a, first, right->columns);
    const npy_intp inner = at_most(a->gemm->most_inner, right->inner - first);
    gemm_job job = {.made = made, .made_row = made_row};
    for (npy_intp j = 0; j < columns; j += a->gemm->width) {
        gemm_part part = {0, rows, j, at_most(a->gemm->width, columns - j), more, some};
        a->gemm->multiply(&job, &part, left, moved(from, (column + j) * inner, a->bytes), NULL, NULL);
    }
}

static void pack_rows(const attention *a, const void *data, npy_intp row_step, npy_intp step, npy_intp rows,
                      npy_intp inner, void *room) {
    gemm_job job = {.left = data, .left_row = row_step, .left_inner = step};
    gemm_part part = {0, rows, 0, 0, 0, inner};
    a->gemm->pack_left(&job, &part, room);
}

/* Rows [first, first + some) of a head, as many of them as there are, on their way from memory while another head is made: they
   lie far apart where heads lie side by side, which no processor foresees. */
static void fetch(const attention *a, const source *from, npy_intp batch, npy_intp head, npy_intp rows, npy_intp width,
                  npy_intp first, npy_intp some) {
    if (from->step[3] != 1 || (a->rows * width + a->columns * (a->features + a->width)) * (npy_intp)a->stored > FETCHED)
        return;
    const char *data = head_of(from, batch, head, a->stored);
    for (npy_intp r = first; r < at_most(first + some, rows); r++) {
        const char *row = data + r * from->step[2] * (npy_intp)a->stored, *last = row + width * (npy_intp)a->stored - 1;
        for (const char *line = row; line < last; line += 64)
            __builtin_prefetch(line, 0, 2);
        __builtin_prefetch(last, 0, 2);
    }
}

/* One allocation of rooms of those sizes, each of whole cache lines; NULL where there is no memory. */
static char *rooms(const size_t *sizes, int count, char **at) {
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += (sizes[i] + 63) / 64 * 64;
    char *room = aligned_alloc(64, total);
    for (int i = 0; room && i < count; i++)
        at[i] = i ? at[i - 1] + (sizes[i - 1] + 63) / 64 * 64 : room;
    return room;
}

/* Forward: pieces are (batch, head, part of the rows). */
static void forward_body(void *context, npy_intp begin, npy_intp end) {
    attention *a = context;
    const npy_intp step = a->gemm->left_step, block = a->gemm->most_inner;
    const size_t of_rows = (size_t)(ROWS * step) * a->bytes, wider = (size_t)(a->features > a->width ? a->features : a->width);
    const bool half = native_is_half(a->type);
    const size_t sizes[] = {panel_bytes(a, a->features, a->columns), panel_bytes(a, a->columns, a->width), of_rows, of_rows,
                            ROWS * sizeof(double), ROWS * sizeof(double), half ? ROWS * (size_t)a->width * a->bytes : 0,
                            half ? wider * (size_t)(a->columns > ROWS ? a->columns : ROWS) * a->bytes : 0};
    enum { PARTS = sizeof sizes / sizeof *sizes };
    char *at[PARTS], *room = rooms(sizes, PARTS, at);
    if (!room) {
        a->failed = true;
        return;
    }
    char *query = at[2], *scores = at[3], *top = at[4], *total = at[5], *made_room = at[6], *wide = at[7];
    npy_intp packed = -1;
    panels keys = {0}, values = {0};
    for (npy_intp piece = begin; piece < end; piece++) {
        const npy_intp one = piece / a->splits, batch = one / a->heads, head = one % a->heads;
        const npy_intp group = head / (a->heads / a->groups), pair = batch * a->groups + group;
        const npy_intp share = rounded_up(parts_of(a->rows, a->splits), a->block_rows), first = piece % a->splits * share;
        if (packed != pair) {
            const lines key = lines_of(a, &a->key, batch, group, 0, a->columns, a->features, wide);
            keys = pack(a, key.data, key.step, key.row, a->features, a->columns, at[0]);
            const lines value = lines_of(a, &a->value, batch, group, 0, a->columns, a->width, wide);
            values = pack(a, value.data, value.row, value.step, a->columns, a->width, at[1]);
            packed = pair;
        }
        for (npy_intp row = first; row < at_most(first + share, a->rows); row += a->block_rows) {
            const npy_intp rows = at_most(a->block_rows, at_most(first + share, a->rows) - row);
            const npy_intp columns = a->causal ? at_most(a->columns, row + rows) : a->columns;
            const lines mine = lines_of(a, &a->query, batch, head, row, rows, a->features, wide);
            pack_rows(a, mine.data, mine.row, mine.step, rows, a->features, query);
            a->loops->scale(query, rows, a->features, step, a->scale);
            const npy_intp element = (one * a->rows + row) * a->width;
            char *made = place_of(a, a->made, element, made_room);
            for (npy_intp r = 0; r < rows; r++) {
                if (a->real == TYPE_F32)
                    ((float *)top)[r] = -(float)Py_HUGE_VAL, ((float *)total)[r] = 0;
                else
                    ((double *)top)[r] = -Py_HUGE_VAL, ((double *)total)[r] = 0;
            }
            if (a->splits == 1 && piece + 1 < end) {
                const npy_intp next = (one + 1) / a->heads, other = (one + 1) % a->heads, pairs = a->heads / a->groups;
                fetch(a, &a->query, next, other, a->rows, a->features, row, rows);
                fetch(a, &a->key, next, other / pairs, a->columns, a->features, row, rows);
                fetch(a, &a->value, next, other / pairs, a->columns, a->width, row, rows);
            }
            attention_part part = {0};
            for (npy_intp column = 0; column < columns; column += block) {
                const npy_intp some = at_most(block, columns - column);
                multiply(a, query, rows, &keys, 0, a->features, column, rounded_up(some, a->gemm->lanes), scores, step,
                         false);
                part = part_at(a, batch, head, row, column, rows, some, scores);
                part.top = top;
                part.total = total;
                part.made = column ? made : NULL;
                part.width = a->width;
                a->loops->powers(&part);
                multiply(a, scores, rows, &values, column, some, 0, a->width, made, a->width, column > 0);
            }
            part.made = made;
            part.dots = moved(a->sums, one * a->rows + row, a->bytes);
            a->loops->finish(&part);
            keep(a, made, a->made, element, rows * a->width);
        }
    }
    free(room);
}

/* Backward: pieces are (batch, group); a few rows of scores and slopes at a time, in blocks of columns. */
static void backward_body(void *context, npy_intp begin, npy_intp end) {
    attention *a = context;
    const npy_intp step = a->gemm->left_step, block = a->gemm->most_inner, repeat = a->heads / a->groups;
    const npy_intp blocks = parts_of(a->columns, block), height = a->gemm->height;
    npy_intp most = STRIP / a->columns / height * height;
    most = most < height ? height : at_most(most, a->block_rows / height * height);
    const npy_intp each = most * step; /* elements of one block of scores */
    const size_t half = native_is_half(a->type), keys_bytes = (size_t)(a->columns * a->features) * a->bytes;
    const size_t values_bytes = (size_t)(a->columns * a->width) * a->bytes;
    const size_t rows_bytes = (size_t)(most * (a->features > a->width ? a->features : a->width)) * a->bytes;
    const size_t sizes[] = {panel_bytes(a, a->features, a->columns), panel_bytes(a, a->width, a->columns),
                            panel_bytes(a, a->columns, a->features), panel_bytes(a, most, a->features),
                            panel_bytes(a, most, a->width), (size_t)each * a->bytes, (size_t)each * a->bytes,
                            (size_t)(blocks * each) * a->bytes, (size_t)(blocks * each) * a->bytes,
                            (size_t)(block * step) * a->bytes, ROWS * sizeof(double),
                            half * keys_bytes, half * values_bytes, half * keys_bytes, half * values_bytes,
                            half * rows_bytes, half * rows_bytes};
    enum { PARTS = sizeof sizes / sizeof *sizes };
    char *at[PARTS], *room = rooms(sizes, PARTS, at);
    if (!room) {
        a->failed = true;
        return;
    }
    char *query = at[5], *sent = at[6], *scores = at[7], *slopes = at[8], *turned = at[9], *dots = at[10];
    for (npy_intp piece = begin; piece < end; piece++) {
        const npy_intp batch = piece / a->groups, group = piece % a->groups;
        const npy_intp key_first = piece * a->columns * a->features, value_first = piece * a->columns * a->width;
        const lines key = lines_of(a, &a->key, batch, group, 0, a->columns, a->features, at[11]);
        const lines value = lines_of(a, &a->value, batch, group, 0, a->columns, a->width, at[12]);
        const panels keys = pack(a, key.data, key.step, key.row, a->features, a->columns, at[0]);
        const panels values = pack(a, value.data, value.step, value.row, a->width, a->columns, at[1]);
        const panels down = pack(a, key.data, key.row, key.step, a->columns, a->features, at[2]);
        char *of_key = a->of_key ? place_of(a, a->of_key, key_first, at[13]) : NULL;
        char *of_value = a->of_value ? place_of(a, a->of_value, value_first, at[14]) : NULL;
        if (of_key)
            memset(of_key, 0, keys_bytes);
        if (of_value)
            memset(of_value, 0, values_bytes);
        for (npy_intp head = group * repeat; head < (group + 1) * repeat; head++) {
            for (npy_intp row = 0; row < a->rows; row += most) {
                const npy_intp rows = at_most(most, a->rows - row), one = (batch * a->heads + head) * a->rows + row;
                const npy_intp columns = a->causal ? at_most(a->columns, row + rows) : a->columns;
                const lines mine = lines_of(a, &a->query, batch, head, row, rows, a->features, at[15]);
                pack_rows(a, mine.data, mine.row, mine.step, rows, a->features, query);
                a->loops->scale(query, rows, a->features, step, a->scale);
                const panels queries = pack(a, mine.data, mine.row, mine.step, rows, a->features, at[3]);
                const lines arrived = lines_of(a, &a->sent, batch, head, row, rows, a->width, at[15]);
                pack_rows(a, arrived.data, arrived.row, arrived.step, rows, a->width, sent);
                const panels gradients = pack(a, arrived.data, arrived.row, arrived.step, rows, a->width, at[4]);
                char *const of_query = a->of_query ? place_of(a, a->of_query, one * a->features, at[16]) : NULL;
                memset(dots, 0, ROWS * sizeof(double));
                if (repeat == 1 && piece + 1 < end) {
                    const npy_intp next = (piece + 1) / a->groups, other = (piece + 1) % a->groups;
                    fetch(a, &a->query, next, other, a->rows, a->features, row, rows);
                    fetch(a, &a->sent, next, other, a->rows, a->width, row, rows);
                    fetch(a, &a->key, next, other, a->columns, a->features, row, rows);
                    fetch(a, &a->value, next, other, a->columns, a->width, row, rows);
                }
                for (npy_intp column = 0; column < columns; column += block) {
                    const npy_intp some = at_most(block, columns - column), whole = rounded_up(some, a->gemm->lanes);
                    attention_part part = part_at(a, batch, head, row, column, rows, some,
                                                  moved(scores, column / block * each, a->bytes));
                    part.slopes = moved(slopes, column / block * each, a->bytes);
                    part.dots = dots;
                    part.sums = moved(a->kept, one, a->bytes);
                    multiply(a, query, rows, &keys, 0, a->features, column, whole, part.scores, step, false);
                    a->loops->weights(&part);
                    multiply(a, sent, rows, &values, 0, a->width, column, whole, part.slopes, step, false);
                    a->loops->sum_slopes(&part);
                }
                for (npy_intp column = 0; column < columns; column += block) {
                    const npy_intp some = at_most(block, columns - column);
                    attention_part part = part_at(a, batch, head, row, column, rows, some,
                                                  moved(scores, column / block * each, a->bytes));
                    part.slopes = moved(slopes, column / block * each, a->bytes);
                    part.dots = dots;
                    if (of_value) {
                        pack_rows(a, part.scores, 1, step, some, rows, turned);
                        multiply(a, turned, some, &gradients, 0, rows, 0, a->width,
                                 moved(of_value, column * a->width, a->bytes), a->width, true);
                    }
                    if (!of_key && !of_query)
                        continue;
                    a->loops->slopes(&part);
                    if (of_key) {
                        pack_rows(a, part.slopes, 1, step, some, rows, turned);
                        multiply(a, turned, some, &queries, 0, rows, 0, a->features,
                                 moved(of_key, column * a->features, a->bytes), a->features, true);
                    }
                    if (of_query)
                        multiply(a, part.slopes, rows, &down, column, some, 0, a->features, of_query, a->features, column > 0);
                }
                if (of_query)
                    keep(a, of_query, a->of_query, one * a->features, rows * a->features);
            }
        }
        if (of_key)
            keep(a, of_key, a->of_key, key_first, a->columns * a->features);
        if (of_value)
            keep(a, of_value, a->of_value, value_first, a->columns * a->width);
    }
    free(room);
}

/* Arguments */

static bool read_source(PyObject *object, native_type type, source *made) {
    if (native_array_type(object) != type || PyArray_NDIM((PyArrayObject *)object) != 4)
        return false;
    PyArrayObject *array = (PyArrayObject *)object;
    made->data = PyArray_BYTES(array);
    for (int i = 0; i < 4; i++) {
        if (!PyArray_DIM(array, i) || PyArray_STRIDE(array, i) % TYPE_SIZE[type])
            return false;
        made->step[i] = PyArray_STRIDE(array, i) / TYPE_SIZE[type];
    }
    return true;
}

static bool has_shape(PyObject *object, npy_intp a, npy_intp b, npy_intp c, npy_intp d) {
    return PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)object), (npy_intp[]){a, b, c, d}, 4);
}

/* query, key, value, mask. False where the call is not for us. */
static bool read_call(attention *a, PyObject *const *natives, PyObject **given) {
    *a = (attention){.type = native_array_type(natives[0])};
    if ((a->type != TYPE_F32 && a->type != TYPE_F64 && !native_is_half(a->type)) || !given[CAUSAL] || !given[SCALE] ||
        !read_source(natives[0], a->type, &a->query) || !read_source(natives[1], a->type, &a->key) ||
        !read_source(natives[2], a->type, &a->value))
        return false;
    const npy_intp *query = PyArray_DIMS((PyArrayObject *)natives[0]), *key = PyArray_DIMS((PyArrayObject *)natives[1]);
    a->real = a->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
    a->bytes = TYPE_SIZE[a->real];
    a->stored = TYPE_SIZE[a->type];
    a->gemm = gemm_real(a->real);
    a->loops = &loops->real[a->real];
    a->batch = query[0];
    a->heads = query[1];
    a->rows = query[2];
    a->features = query[3];
    a->groups = key[1];
    a->columns = key[2];
    a->width = PyArray_DIM((PyArrayObject *)natives[2], 3);
    a->causal = given[CAUSAL] == Py_True;
    /* A block's rows meet the columns of its last one: small blocks waste less on that, which for long rows is little. */
    a->block_rows = a->causal && a->columns <= 2 * ROWS ? ROWS / 2 : ROWS;
    a->scale = PyFloat_AsDouble(given[SCALE]);
    if (PyErr_Occurred() || a->features > a->gemm->most_inner || a->width > a->gemm->most_inner ||
        a->heads % a->groups || !has_shape(natives[1], a->batch, a->groups, a->columns, a->features) ||
        !has_shape(natives[2], a->batch, a->groups, a->columns, a->width))
        return false;
    if (natives[3] == Py_None)
        return true;
    native_type masking = native_array_type(natives[3]);
    a->mask = (PyArrayObject *)natives[3];
    a->truth = masking == TYPE_BOOL;
    if ((masking != a->real && !a->truth) || PyArray_NDIM(a->mask) != 4)
        return false;
    const npy_intp full[4] = {a->batch, a->heads, a->rows, a->columns};
    for (int i = 0; i < 4; i++) {
        if (PyArray_DIM(a->mask, i) != full[i] && PyArray_DIM(a->mask, i) != 1)
            return false;
        a->mask_step[i] = PyArray_DIM(a->mask, i) == 1 ? 0 : PyArray_STRIDE(a->mask, i);
    }
    return true;
}

/* Entries */

/* A new reference to the mask as scores take it: that of halves, the type of the query, as floats. */
static PyObject *mask_for_scores(PyObject *mask, PyObject *query) {
    const native_type type = native_array_type(mask);
    if (native_is_half(type) && type == native_array_type(query))
        return native_converted((PyArrayObject *)mask, type, TYPE_F32);
    return Py_NewRef(mask);
}

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    attention a;
    if (nargs != 4 || !native_options(args, nargs, kwnames, names, OPTIONS, given))
        return PyErr_Clear(), NULL;
    PyObject *natives[4] = {args[0], args[1], args[2], mask_for_scores(args[3], args[0])};
    if (!natives[3] || !read_call(&a, natives, given)) {
        Py_XDECREF(natives[3]);
        PyErr_Clear();
        return NULL;
    }
    PyArrayObject *made = native_empty(4, (npy_intp[]){a.batch, a.heads, a.rows, a.width}, a.type);
    PyArrayObject *sums = native_empty(3, (npy_intp[]){a.batch, a.heads, a.rows}, a.real);
    if (made && sums) {
        const npy_intp heads = a.batch * a.heads, work = a.rows * a.columns * (a.features + a.width);
        a.made = PyArray_BYTES(made);
        a.sums = PyArray_BYTES(sums);
        const npy_intp threads = native_threads(), wanted = threads > 1 && heads < 4 * threads ? 4 * threads : heads;
        a.splits = at_most(parts_of(wanted, heads), parts_of(a.rows, 2 * ROWS));
        const npy_intp grain = WORK / (work / a.splits + 1) + 1;
        const bool tiles = a.type == TYPE_BF16 && attention_takes_bf16(args[0]), thirds = !tiles && attention_takes_thirds(&a, false);
        native_parallel(heads * a.splits, grain, tiles ? attention_forward_bf16 : thirds ? attention_forward_thirds : forward_body, &a);
        if (a.unfit)
            native_parallel(heads * a.splits, grain, forward_body, &a);
        if (a.failed)
            PyErr_NoMemory();
    }
    PyObject *tuple = made && sums && !a.failed ? PyTuple_Pack(2, made, sums) : NULL;
    Py_DECREF(natives[3]);
    Py_XDECREF(made);
    Py_XDECREF(sums);
    return tuple;
}

static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given[OPTIONS];
    attention a;
    if (nargs != 6 || !native_options(args, nargs, kwnames, names, OPTIONS, given) || !given[NEEDS] ||
        !PyTuple_CheckExact(given[NEEDS]) || PyTuple_GET_SIZE(given[NEEDS]) != 4 ||
        (args[4] != Py_None && PyTuple_GET_ITEM(given[NEEDS], 3) == Py_True))
        return PyErr_Clear(), NULL;
    PyObject *natives[4] = {args[1], args[2], args[3], mask_for_scores(args[4], args[1])};
    if (!natives[3] || !read_call(&a, natives, given) ||
        !read_source(args[0], a.type, &a.sent) || !has_shape(args[0], a.batch, a.heads, a.rows, a.width) ||
        native_array_type(args[5]) != a.real || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[5]) ||
        PyArray_SIZE((PyArrayObject *)args[5]) != a.batch * a.heads * a.rows) {
        Py_XDECREF(natives[3]);
        PyErr_Clear();
        return NULL;
    }
    a.kept = PyArray_BYTES((PyArrayObject *)args[5]);
    char **into[] = {&a.of_query, &a.of_key, &a.of_value};
    PyObject *tuple = PyTuple_New(4);
    bool done = tuple != NULL;
    for (int i = 0; done && i < 4; i++) {
        PyObject *made = Py_NewRef(Py_None);
        if (i < 3 && PyTuple_GET_ITEM(given[NEEDS], i) == Py_True) {
            Py_DECREF(made);
            made = (PyObject *)native_empty(4, PyArray_DIMS((PyArrayObject *)args[1 + i]), a.type);
            if (!made) {
                done = false;
                break;
            }
            *into[i] = PyArray_BYTES((PyArrayObject *)made);
        }
        PyTuple_SET_ITEM(tuple, i, made);
    }
    if (done) {
        const npy_intp work = a.rows * a.columns * (a.features + a.width) * (a.heads / a.groups);
        native_parallel(a.batch * a.groups, WORK / work + 1, attention_takes_thirds(&a, true) ? attention_backward_thirds : backward_body, &a);
        if (a.unfit)
            native_parallel(a.batch * a.groups, WORK / work + 1, backward_body, &a);
        if (a.failed)
            PyErr_NoMemory();
    }
    Py_DECREF(natives[3]);
    if (!done || a.failed)
        Py_CLEAR(tuple);
    return tuple;
}

int attention_init(void) {
    static const char *const words[OPTIONS] = {"causal", "scale", "needs"};
    loops = PICK(attention_loops);
    return native_intern(names, words, OPTIONS);
}

const native_spec attention_kernels[] = {
    {"attention", run_forward, NULL},
    {"attention_backward", run_backward, NULL},
    {NULL, NULL, NULL},
};
