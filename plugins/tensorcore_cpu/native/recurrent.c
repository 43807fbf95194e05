/* LSTM, GRU and Elman's network over a whole sequence, forward and backward: one product and one cell for each step. */
#include "recurrent.h"

#include "blas.h"
#include "gemm.h"
#include "native.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LOOPS(recurrent_loops, recurrent_loops);

static const recurrent_loops *loops;

enum { SIZES, REVERSE, NONLINEARITY, NEEDS, OPTIONS };
static PyObject *names[OPTIONS];

enum {
    ROWS = 48,      /* whose products lie on the stack while the cell takes them */
    MOST_GATES = 4,
    STACK = 32768,  /* bytes: MOST_GATES x ROWS x the width of a tile */
    WORK = 1 << 20, /* multiplications of one step that are worth a second thread */
};

typedef enum { LSTM, GRU, RNN } network;
static const ptrdiff_t GATES[] = {4, 3, 1};

/* What a call says. Its arrays are new references, C-contiguous; NULL where there is none. */
typedef struct {
    network kind;
    native_type type;
    ptrdiff_t gates, rows, size, batch; /* rows of all steps together */
    ptrdiff_t steps, *first, *count;    /* of each step in the order in which they are taken */
    bool reverse, relu;
    PyArrayObject *x, *weight, *bias, *h0, *c0;
} call;

/* The work: units in chunks as wide as a tile, for which the products and the cell are made together. */
typedef struct {
    const call *of;
    const gemm_real_loops *real;
    recurrent_cell cell;
    size_t bytes;                       /* of an element */
    ptrdiff_t inner, at_once, blocks;   /* the inner dim of the products, and how it is cut */
    ptrdiff_t chunks, slot;             /* and elements of one packed panel */
    ptrdiff_t per_chunk;                /* products of a chunk: one for each gate, or one */
    char *packed, *left;                /* the weight in panels [chunk, product, block]; the rows of one step */
    gemm_job right;
    recurrent_part all;                 /* the arrays, at row and unit 0 */
    ptrdiff_t start, rows;              /* of the step whose cell runs; no cell runs where there are none */
    ptrdiff_t product_rows;             /* of the product before it */
    bool keep;                          /* whether the product is added to dh */
} work;

static ptrdiff_t parts_of(ptrdiff_t count, ptrdiff_t most) { return (count + most - 1) / most; }
static ptrdiff_t at_most(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

static void *moved(const void *data, ptrdiff_t elements, size_t bytes) {
    return data ? (char *)data + elements * (ptrdiff_t)bytes : NULL;
}

static void pack_body(void *context, npy_intp begin, npy_intp end) {
    const work *w = context;
    const ptrdiff_t width = w->real->width, size = w->of->size;
    for (npy_intp chunk = begin; chunk < end; chunk++)
        for (ptrdiff_t p = 0; p < w->per_chunk; p++)
            for (ptrdiff_t b = 0; b < w->blocks; b++) {
                gemm_part part = {0, 0, p * size + chunk * width, at_most(width, size - chunk * width),
                                  b * w->at_once, at_most(w->at_once, w->inner - b * w->at_once)};
                char *to = w->packed + ((chunk * w->per_chunk + p) * w->blocks + b) * w->slot * (ptrdiff_t)w->bytes;
                w->real->pack_right(&w->right, &part, to);
            }
}

static bool begin_work(work *w, const call *of, bool backward) {
    const ptrdiff_t inner = backward ? of->gates * of->size : of->size, per_chunk = backward ? 1 : of->gates;
    w->of = of;
    w->real = gemm_real(of->type);
    w->bytes = TYPE_SIZE[of->type];
    w->inner = inner;
    w->blocks = parts_of(inner, w->real->most_inner);
    w->at_once = parts_of(inner, w->blocks);
    w->chunks = parts_of(of->size, w->real->width);
    w->slot = w->at_once * w->real->width;
    w->per_chunk = per_chunk;
    const npy_intp row = PyArray_STRIDE(of->weight, 0) / (npy_intp)w->bytes;
    const npy_intp column = PyArray_STRIDE(of->weight, 1) / (npy_intp)w->bytes;
    w->right = (gemm_job){.right = PyArray_DATA(of->weight), .right_inner = backward ? row : column,
                          .right_column = backward ? column : row};
    const size_t packed = (size_t)(w->chunks * per_chunk * w->blocks * w->slot) * w->bytes;
    const size_t left = (size_t)(of->batch * w->real->left_step * w->blocks) * w->bytes;
    w->packed = aligned_alloc(64, (packed + 63) / 64 * 64);
    w->left = aligned_alloc(64, (left + 63) / 64 * 64);
    if (!w->packed || !w->left)
        return false;
    native_parallel(w->chunks, inner * of->gates * of->size < WORK ? w->chunks : 1, pack_body, w);
    w->all.size = of->size;
    w->all.relu = of->relu;
    return true;
}

static void end_work(work *w) {
    free(w->packed);
    free(w->left);
}

/* The left side of the next products: rows of `inner` elements. */
static void set_left(work *w, const void *rows, ptrdiff_t count) {
    gemm_job job = {.left = rows, .left_row = w->inner, .left_inner = 1};
    for (ptrdiff_t b = 0; b < w->blocks; b++) {
        gemm_part part = {0, count, 0, 0, b * w->at_once, at_most(w->at_once, w->inner - b * w->at_once)};
        w->real->pack_left(&job, &part, w->left + b * w->of->batch * w->real->left_step * (ptrdiff_t)w->bytes);
    }
    w->product_rows = count;
}

/* Product p of a chunk for some rows. */
static void multiply(const work *w, ptrdiff_t chunk, ptrdiff_t p, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t columns,
                     void *made, ptrdiff_t made_row, const void *before) {
    gemm_job job = {.made = made, .made_row = made_row, .before = before, .before_row = made_row};
    for (ptrdiff_t b = 0; b < w->blocks; b++) {
        const ptrdiff_t inner = at_most(w->at_once, w->inner - b * w->at_once);
        gemm_part part = {0, rows, 0, columns, b, inner};
        const ptrdiff_t left = (b * w->of->batch + row) * w->real->left_step;
        w->real->multiply(&job, &part, moved(w->left, left, w->bytes),
                          moved(w->packed, ((chunk * w->per_chunk + p) * w->blocks + b) * w->slot, w->bytes), NULL);
    }
}

/* The arrays at a row of the sequence, a row of the batch and a unit. */
static recurrent_part part_at(const work *w, ptrdiff_t row, ptrdiff_t of_batch, ptrdiff_t unit) {
    recurrent_part part = w->all;
    const ptrdiff_t size = part.size, wide = row * w->of->gates * size + unit, narrow = row * size + unit;
    const ptrdiff_t state = of_batch * size + unit;
    part.x = moved(part.x, wide, w->bytes);
    part.acts = moved(part.acts, wide, w->bytes);
    part.dx = moved(part.dx, wide, w->bytes);
    part.dz = moved(part.dz, wide, w->bytes);
    part.made = moved(part.made, narrow, w->bytes);
    part.before = moved(part.before, narrow, w->bytes);
    part.inner = moved(part.inner, narrow, w->bytes);
    part.prev = moved(part.prev, narrow, w->bytes);
    part.grads = moved(part.grads, narrow, w->bytes);
    part.bias = moved(part.bias, unit, w->bytes);
    part.h = moved(part.h, state, w->bytes);
    part.c = moved(part.c, state, w->bytes);
    part.dh = moved(part.dh, state, w->bytes);
    part.dc = moved(part.dc, state, w->bytes);
    return part;
}

static void forward_body(void *context, npy_intp begin, npy_intp end) {
    const work *w = context;
    _Alignas(64) char products[STACK];
    const ptrdiff_t width = w->real->width, lanes = w->real->lanes;
    for (npy_intp chunk = begin; chunk < end; chunk++) {
        const ptrdiff_t unit = chunk * width, units = at_most(width, w->of->size - unit);
        for (ptrdiff_t row = 0; row < w->rows; row += ROWS) {
            recurrent_part part = part_at(w, w->start + row, row, unit);
            part.rows = at_most(ROWS, w->rows - row);
            part.width = units;
            part.z = products;
            part.z_row = width;
            part.z_gate = ROWS * width;
            for (ptrdiff_t gate = 0; gate < w->of->gates; gate++)
                multiply(w, chunk, gate, row, part.rows, parts_of(units, lanes) * lanes,
                         moved(products, gate * part.z_gate, w->bytes), width, NULL);
            w->cell(&part);
        }
    }
}

/* What the step before sends back through the weight, then the cell of this step. */
static void backward_body(void *context, npy_intp begin, npy_intp end) {
    const work *w = context;
    const ptrdiff_t width = w->real->width;
    for (npy_intp chunk = begin; chunk < end; chunk++) {
        const ptrdiff_t unit = chunk * width;
        recurrent_part part = part_at(w, w->start, 0, unit);
        part.width = at_most(width, w->of->size - unit);
        part.rows = w->rows;
        if (w->product_rows)
            multiply(w, chunk, 0, 0, w->product_rows, part.width, part.dh, part.size, w->keep ? part.dh : NULL);
        if (w->rows)
            w->cell(&part);
    }
}

static void run_step(work *w, native_body body) {
    const ptrdiff_t rows = w->rows > w->product_rows ? w->rows : w->product_rows;
    const bool much = rows * w->of->gates * w->of->size * w->of->size >= WORK;
    native_parallel(w->chunks, much ? 1 : w->chunks, body, w);
}

/* Arguments */

static PyArrayObject *contiguous(PyObject *object, native_type type) {
    if (!object || object == Py_None || native_array_type(object) != type)
        return NULL;
    return (PyArrayObject *)PyArray_GETCONTIGUOUS((PyArrayObject *)object);
}

static void end_call(call *of) {
    Py_CLEAR(of->x);
    Py_CLEAR(of->weight);
    Py_CLEAR(of->bias);
    Py_CLEAR(of->h0);
    Py_CLEAR(of->c0);
    free(of->first);
    of->first = NULL;
}

static bool read_steps(call *of, PyObject *sizes) {
    if (!sizes || !PyTuple_CheckExact(sizes))
        return false;
    of->steps = PyTuple_GET_SIZE(sizes);
    of->first = malloc((size_t)(2 * of->steps + 1) * sizeof *of->first);
    if (!of->first)
        return false;
    of->count = of->first + of->steps;
    ptrdiff_t start = 0;
    for (ptrdiff_t i = 0; i < of->steps; i++) {
        const ptrdiff_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i)), at = of->reverse ? of->steps - 1 - i : i;
        if (n < 1 || n > of->batch)
            return false;
        of->first[at] = start;
        of->count[at] = n;
        start += n;
    }
    return start == of->rows;
}

/* Natives gates, weight, (bias of a GRU,) h0, (c0 of an LSTM). False where the call is not for us. */
static bool read_call(call *of, network kind, PyObject *const *natives, PyObject **given) {
    const bool middle = kind == GRU;
    *of = (call){.kind = kind, .gates = GATES[kind], .type = native_array_type(natives[0])};
    if ((of->type != TYPE_F32 && of->type != TYPE_F64) || native_array_type(natives[1]) != of->type || !given[REVERSE])
        return false;
    of->reverse = given[REVERSE] == Py_True;
    if (kind == RNN) {
        if (!given[NONLINEARITY] || !PyUnicode_Check(given[NONLINEARITY]))
            return false;
        of->relu = PyUnicode_CompareWithASCIIString(given[NONLINEARITY], "relu") == 0;
    }
    of->weight = (PyArrayObject *)Py_NewRef(natives[1]);
    of->x = contiguous(natives[0], of->type);
    of->h0 = contiguous(natives[2 + middle], of->type);
    if (kind == LSTM)
        of->c0 = contiguous(natives[3], of->type);
    if (middle)
        of->bias = contiguous(natives[2], of->type);
    if (!of->x || !of->h0 || (kind == LSTM && !of->c0) || (middle && natives[2] != Py_None && !of->bias) ||
        PyArray_NDIM(of->x) != 2 || PyArray_NDIM(of->h0) != 2 || PyArray_NDIM(of->weight) != 2)
        return false;
    of->rows = PyArray_DIM(of->x, 0);
    of->batch = PyArray_DIM(of->h0, 0);
    of->size = PyArray_DIM(of->h0, 1);
    const npy_intp bytes = TYPE_SIZE[of->type];
    return of->size > 0 && of->rows > 0 && PyArray_DIM(of->x, 1) == of->gates * of->size &&
           PyArray_DIM(of->weight, 0) == of->gates * of->size && PyArray_DIM(of->weight, 1) == of->size &&
           PyArray_STRIDE(of->weight, 0) % bytes == 0 && PyArray_STRIDE(of->weight, 1) % bytes == 0 &&
           (!of->c0 || PyArray_SAMESHAPE(of->c0, of->h0)) &&
           (!of->bias || PyArray_SIZE(of->bias) == of->gates * of->size) && read_steps(of, given[SIZES]);
}

static PyArrayObject *new_rows(const call *of, ptrdiff_t width) {
    return native_empty(2, (npy_intp[]){of->rows, width}, of->type);
}

static PyArrayObject *copy_of(PyArrayObject *array) { return (PyArrayObject *)PyArray_NewCopy(array, NPY_CORDER); }

/* A tuple that takes the references over, NULL meaning None; drops all of them where `failed`. */
static PyObject *results(PyArrayObject **made, int count, bool failed) {
    PyObject *tuple = failed ? NULL : PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        if (tuple)
            PyTuple_SET_ITEM(tuple, i, made[i] ? (PyObject *)made[i] : Py_NewRef(Py_None));
        else
            Py_XDECREF(made[i]);
    }
    if (!tuple && !PyErr_Occurred())
        PyErr_NoMemory();
    return tuple;
}

/* Entries */

static PyObject *run_forward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const network kind = *(const network *)kernel->data;
    PyObject *given[OPTIONS];
    call of = {0};
    if (nargs != (kind == RNN ? 3 : 4) || !native_options(args, nargs, kwnames, names, OPTIONS, given) ||
        !read_call(&of, kind, args, given)) {
        end_call(&of);
        PyErr_Clear();
        return NULL;
    }
    work w = {0};
    PyArrayObject *made = new_rows(&of, of.size), *h = copy_of(of.h0), *c = kind == LSTM ? copy_of(of.c0) : NULL;
    PyArrayObject *acts = new_rows(&of, of.gates * of.size), *prev = new_rows(&of, of.size);
    PyArrayObject *inner = kind == RNN ? NULL : new_rows(&of, of.size);
    PyArrayObject *before = kind == LSTM ? new_rows(&of, of.size) : NULL;
    bool done = made && h && acts && prev && (kind != LSTM || (c && before)) && (kind == RNN || inner) &&
                begin_work(&w, &of, false);
    if (done) {
        const recurrent_real_loops *cells = &loops->real[of.type];
        w.cell = kind == LSTM ? cells->lstm : kind == GRU ? cells->gru : cells->rnn;
        w.all.x = PyArray_DATA(of.x);
        w.all.bias = of.bias ? PyArray_DATA(of.bias) : NULL;
        w.all.acts = PyArray_DATA(acts);
        w.all.made = PyArray_DATA(made);
        w.all.h = PyArray_DATA(h);
        w.all.c = c ? PyArray_DATA(c) : NULL;
        w.all.inner = inner ? PyArray_DATA(inner) : NULL;
        w.all.before = before ? PyArray_DATA(before) : NULL;
        for (ptrdiff_t step = 0; step < of.steps; step++) {
            w.start = of.first[step];
            w.rows = of.count[step];
            char *entered = moved(PyArray_DATA(prev), w.start * of.size, w.bytes);
            memcpy(entered, PyArray_DATA(h), (size_t)(w.rows * of.size) * w.bytes);
            set_left(&w, entered, w.rows);
            run_step(&w, forward_body);
        }
    }
    end_work(&w);
    end_call(&of);
    if (kind == LSTM)
        return results((PyArrayObject *[]){made, h, c, acts, prev, before, inner}, 7, !done);
    if (kind == GRU)
        return results((PyArrayObject *[]){made, h, acts, prev, inner}, 5, !done);
    return results((PyArrayObject *[]){made, h, acts, prev}, 4, !done);
}

/* The gradient that came for a result of the forward kernel. Answers false where it is none that we take. */
static bool read_gradient(PyObject *list, int at, PyArrayObject *like, native_type type, PyArrayObject **made) {
    PyObject *one = PyList_GET_ITEM(list, at);
    *made = contiguous(one, type);
    return one == Py_None || (*made && PyArray_SAMESHAPE(*made, like));
}

/* The state's gradient, to be changed. */
static PyArrayObject *begin_state(PyArrayObject *gradient, PyArrayObject *like, native_type type) {
    if (gradient)
        return copy_of(gradient);
    PyArrayObject *made = native_empty(2, PyArray_DIMS(like), type);
    if (made)
        memset(PyArray_DATA(made), 0, (size_t)PyArray_NBYTES(made));
    return made;
}

static PyArrayObject *sums_of_rows(PyArrayObject *x, native_type type) {
    const npy_intp rows = PyArray_DIM(x, 0), width = PyArray_DIM(x, 1);
    PyArrayObject *made = native_empty(1, &width, type);
    for (npy_intp j = 0; made && j < width; j++) {
        double sum = 0;
        for (npy_intp r = 0; r < rows; r++)
            sum += type == TYPE_F32 ? ((const float *)PyArray_DATA(x))[r * width + j]
                                    : ((const double *)PyArray_DATA(x))[r * width + j];
        if (type == TYPE_F32)
            ((float *)PyArray_DATA(made))[j] = (float)sum;
        else
            ((double *)PyArray_DATA(made))[j] = sum;
    }
    return made;
}

static bool is_saved(PyObject *object, const call *of, ptrdiff_t width) {
    return native_array_type(object) == of->type && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)object) &&
           PyArray_SIZE((PyArrayObject *)object) == of->rows * width;
}

/* g, what the forward kernel got, and what it kept: acts, prev, then before and inner of an LSTM, inner of a GRU. */
static PyObject *run_backward(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const network kind = *(const network *)kernel->data;
    PyObject *given[OPTIONS];
    const int inputs = kind == RNN ? 3 : 4, kept = kind == LSTM ? 4 : kind == GRU ? 3 : 2;
    call of = {0};
    PyArrayObject *grads = NULL, *of_h = NULL, *of_c = NULL;
    bool ours = nargs == 1 + inputs + kept && PyList_CheckExact(args[0]) &&
                PyList_GET_SIZE(args[0]) == (kind == LSTM ? 3 : 2) &&
                native_options(args, nargs, kwnames, names, OPTIONS, given) && given[NEEDS] &&
                PyTuple_CheckExact(given[NEEDS]) && PyTuple_GET_SIZE(given[NEEDS]) == inputs &&
                read_call(&of, kind, args + 1, given);
    PyObject *const *saved = args + 1 + inputs;
    for (int i = 0; ours && i < kept; i++)
        ours = is_saved(saved[i], &of, i ? of.size : of.gates * of.size);
    npy_intp shape[2] = {of.rows, of.size};
    PyArrayObject *like = ours ? (PyArrayObject *)saved[1] : NULL;
    ours = ours && PyArray_NDIM(like) == 2 && PyArray_CompareLists(PyArray_DIMS(like), shape, 2) &&
           read_gradient(args[0], 0, like, of.type, &grads) && read_gradient(args[0], 1, of.h0, of.type, &of_h) &&
           (kind != LSTM || read_gradient(args[0], 2, of.h0, of.type, &of_c));
    if (!ours) {
        end_call(&of);
        Py_XDECREF(grads);
        Py_XDECREF(of_h);
        Py_XDECREF(of_c);
        PyErr_Clear();
        return NULL;
    }
    work w = {.keep = kind == GRU};
    PyArrayObject *dh = begin_state(of_h, of.h0, of.type), *dc = kind == LSTM ? begin_state(of_c, of.c0, of.type) : NULL;
    PyArrayObject *dx = new_rows(&of, of.gates * of.size), *dz = kind == GRU ? new_rows(&of, of.gates * of.size) : NULL;
    PyArrayObject *dw = NULL, *db = NULL;
    bool done = dh && dx && (kind != LSTM || dc) && (kind != GRU || dz) && begin_work(&w, &of, true);
    if (done) {
        const recurrent_real_loops *cells = &loops->real[of.type];
        w.cell = kind == LSTM ? cells->lstm_backward : kind == GRU ? cells->gru_backward : cells->rnn_backward;
        w.all.acts = PyArray_DATA((PyArrayObject *)saved[0]);
        w.all.prev = PyArray_DATA(like);
        w.all.before = kind == LSTM ? PyArray_DATA((PyArrayObject *)saved[2]) : NULL;
        w.all.inner = kind == RNN ? NULL : PyArray_DATA((PyArrayObject *)saved[kept - 1]);
        w.all.grads = grads ? PyArray_DATA(grads) : NULL;
        w.all.dh = PyArray_DATA(dh);
        w.all.dc = dc ? PyArray_DATA(dc) : NULL;
        w.all.dx = PyArray_DATA(dx);
        w.all.dz = PyArray_DATA(dz ? dz : dx);
        for (ptrdiff_t step = of.steps - 1; step >= 0; step--) {
            w.start = of.first[step];
            w.rows = of.count[step];
            run_step(&w, backward_body);
            set_left(&w, moved(w.all.dz, w.start * of.gates * of.size, w.bytes), w.rows);
        }
        w.rows = 0;
        run_step(&w, backward_body);
    }
    end_work(&w);
    if (done && PyTuple_GET_ITEM(given[NEEDS], 1) == Py_True) {
        const ptrdiff_t wide = of.gates * of.size;
        dw = native_empty(2, (npy_intp[]){wide, of.size}, of.type);
        gemm_job job = {.rows = wide, .columns = of.size, .inner = of.rows, .left = w.all.dz, .left_row = 1,
                        .left_inner = wide, .right = w.all.prev, .right_inner = of.size, .right_column = 1,
                        .made = dw ? PyArray_DATA(dw) : NULL, .made_row = of.size};
        done = dw && native_blas_ready(wide * of.size * of.rows) && gemm_run(of.type, &job);
    }
    if (done && kind == GRU && PyTuple_GET_ITEM(given[NEEDS], 2) == Py_True) {
        db = sums_of_rows(dz, of.type);
        done = db != NULL;
    }
    Py_XDECREF(dz);
    Py_XDECREF(grads);
    Py_XDECREF(of_h);
    Py_XDECREF(of_c);
    end_call(&of);
    if (kind == LSTM)
        return results((PyArrayObject *[]){dx, dw, dh, dc}, 4, !done);
    if (kind == GRU)
        return results((PyArrayObject *[]){dx, dw, db, dh}, 4, !done);
    return results((PyArrayObject *[]){dx, dw, dh}, 3, !done);
}

int recurrent_init(void) {
    static const char *const words[OPTIONS] = {"sizes", "reverse", "nonlinearity", "needs"};
    loops = PICK(recurrent_loops);
    for (int i = 0; i < OPTIONS; i++)
        if (!(names[i] = PyUnicode_InternFromString(words[i])))
            return -1;
    return 0;
}

const native_spec recurrent_kernels[] = {
    {"lstm_steps", run_forward, &(const network){LSTM}},
    {"gru_steps", run_forward, &(const network){GRU}},
    {"rnn_steps", run_forward, &(const network){RNN}},
    {"lstm_steps_backward", run_backward, &(const network){LSTM}},
    {"gru_steps_backward", run_backward, &(const network){GRU}},
    {"rnn_steps_backward", run_backward, &(const network){RNN}},
    {NULL, NULL, NULL},
};
