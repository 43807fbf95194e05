/* Broadcast loops. Dims are ordered as PyTorch orders them, so that results have its strides: a draw of random numbers
   runs in memory order, and so sees them. */
#include "plan.h"

#include "one_row.h"
#include "turn.h"

#include <string.h>

DECLARE_LOOPS(turn_loops, turn_loops);

static const turn_loops *turns;

enum { TILE_ROWS = 32, TILE_COLUMNS = 64, TURNED = 64 }; /* a tile; elements from which on turning pays */
enum { FEW = 8, FEW_BYTES = 2048 }; /* elements of a row that cost more to begin than to run; bytes of one that is not copied alone */

bool native_number(PyObject *value, native_type type, native_operand *operand) {
    operand->array = NULL;
    operand->data = (char *)&operand->number;
    if (type == TYPE_F32 || type == TYPE_F64) {
        double number;
        if (PyFloat_CheckExact(value)) {
            number = PyFloat_AS_DOUBLE(value);
        } else if (PyLong_CheckExact(value)) {
            number = PyLong_AsDouble(value);
            if (number == -1 && PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
        } else {
            return false;
        }
        float narrow = (float)number;
        memcpy(operand->data, type == TYPE_F32 ? (void *)&narrow : (void *)&number, TYPE_SIZE[type]);
        return true;
    }
    if (!PyLong_CheckExact(value) || type == TYPE_BF16 || type == TYPE_F16 || type == TYPE_BOOL)
        return false;
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    int bits = 8 * TYPE_SIZE[type];
    long long low = type == TYPE_U8 ? 0 : bits == 64 ? INT64_MIN : -(1LL << (bits - 1));
    long long high = type == TYPE_U8 ? 255 : bits == 64 ? INT64_MAX : (1LL << (bits - 1)) - 1;
    if (overflow || number < low || number > high)
        return false;
    operand->number = number; /* little-endian: the low bytes are the narrow number */
#if PY_BIG_ENDIAN
    return false;
#endif
    return true;
}

bool native_plan_inputs(native_plan *plan, const native_operand *operands, int inputs) {
    plan->operands = inputs + 1;
    plan->ndim = 0;
    plan->copies = false;
    for (int k = 0; k < inputs; k++)
        if (operands[k].array && PyArray_NDIM(operands[k].array) > plan->ndim)
            plan->ndim = PyArray_NDIM(operands[k].array);
    for (int i = 0; i < plan->ndim; i++)
        plan->shape[i] = 1;
    for (int k = 0; k < inputs; k++) {
        PyArrayObject *array = operands[k].array;
        plan->data[k] = array ? PyArray_BYTES(array) : operands[k].data;
        plan->sizes[k] = array ? (int)PyArray_ITEMSIZE(array) : 0;
        int missing = plan->ndim - (array ? PyArray_NDIM(array) : 0);
        for (int i = 0; i < plan->ndim; i++) {
            npy_intp size = i < missing ? 1 : PyArray_DIM(array, i - missing);
            plan->steps[k][i] = size == 1 ? 0 : PyArray_STRIDE(array, i - missing);
            if (size == 1)
                continue;
            if (plan->shape[i] == 1)
                plan->shape[i] = size;
            else if (plan->shape[i] != size)
                return false;
        }
    }
    plan->count = 1;
    for (int i = 0; i < plan->ndim; i++)
        plan->count *= plan->shape[i];
    return true;
}

bool native_plan_stretch(native_plan *plan, PyArrayObject *to) {
    int ndim = PyArray_NDIM(to), missing = ndim - plan->ndim;
    if (missing < 0)
        return false;
    for (int i = ndim - 1; i >= 0; i--) {
        npy_intp size = i < missing ? 1 : plan->shape[i - missing], wanted = PyArray_DIM(to, i);
        if (size != 1 && size != wanted)
            return false;
        for (int k = 0; k < plan->operands - 1; k++)
            plan->steps[k][i] = size == 1 ? 0 : plan->steps[k][i - missing];
        plan->shape[i] = wanted;
    }
    plan->ndim = ndim;
    plan->count = PyArray_SIZE(to);
    return true;
}

/* Whether dim `i` belongs outside dim `j`, which stands outside it in row-major order: -1 where no operand has both.
   The first operand that has both wins a dispute. */
static int belongs_outside(const native_plan *plan, int operands, int i, int j) {
    for (int k = 0; k < operands; k++) {
        npy_intp inner = plan->steps[k][i], outer = plan->steps[k][j];
        if (!inner || !outer)
            continue;
        inner = inner < 0 ? -inner : inner;
        outer = outer < 0 ? -outer : outer;
        return inner > outer;
    }
    return -1;
}

void native_plan_order(const native_plan *plan, int operands, int *axes) {
    for (int i = 0; i < plan->ndim; i++)
        axes[i] = i;
    /* Insertion from the innermost dim outwards. */
    for (int i = plan->ndim - 2; i >= 0; i--) {
        int axis = axes[i], place = i;
        for (int j = i + 1; j < plan->ndim; j++) {
            int swapped = belongs_outside(plan, operands, axes[j], axis);
            if (swapped < 0)
                continue;
            if (!swapped)
                break;
            place = j;
        }
        memmove(axes + i, axes + i + 1, (size_t)(place - i) * sizeof *axes);
        axes[place] = axis;
    }
}

/* Rows of a few elements are walked the other way. */
static void lengthen(native_plan *plan) {
    const int last = plan->ndim - 1;
    if (last < 1 || plan->shape[last] >= FEW || plan->shape[last - 1] <= plan->shape[last])
        return;
    npy_intp size = plan->shape[last];
    plan->shape[last] = plan->shape[last - 1];
    plan->shape[last - 1] = size;
    for (int k = 0; k < plan->operands; k++) {
        npy_intp step = plan->steps[k][last];
        plan->steps[k][last] = plan->steps[k][last - 1];
        plan->steps[k][last - 1] = step;
    }
}

/* Merges dims that lie behind one another for all operands, outermost first. */
static void merge(native_plan *plan, const int *axes) {
    native_plan merged = {.operands = plan->operands};
    for (int n = 0; n < plan->ndim; n++) {
        int i = axes[n], last = merged.ndim - 1;
        npy_intp size = plan->shape[i];
        if (size == 1)
            continue;
        bool fits = last >= 0;
        for (int k = 0; fits && k < plan->operands; k++)
            fits = merged.steps[k][last] == size * plan->steps[k][i];
        if (fits) {
            merged.shape[last] *= size;
        } else {
            last = merged.ndim++;
            merged.shape[last] = size;
        }
        for (int k = 0; k < plan->operands; k++)
            merged.steps[k][last] = plan->steps[k][i];
    }
    plan->ndim = merged.ndim;
    memcpy(plan->shape, merged.shape, sizeof plan->shape);
    memcpy(plan->steps, merged.steps, sizeof plan->steps);
    if (!native_spreads(plan))
        lengthen(plan);
}

static PyObject *result_of(native_plan *plan, const native_operand *operands, native_type type, bool pairs, PyObject *out) {
    int axes[NATIVE_DIMS], inputs = plan->operands - 1;
    PyArrayObject *made;
    if (out) {
        made = (PyArrayObject *)out;
        if ((pairs ? native_complex_type(out) : native_array_type(out)) != type || !PyArray_ISWRITEABLE(made) || PyArray_NDIM(made) != plan->ndim ||
            !PyArray_CompareLists(PyArray_DIMS(made), plan->shape, plan->ndim))
            return NULL;
        for (int k = 0; k < inputs; k++) {
            PyArrayObject *input = operands[k].array;
            bool same = input && PyArray_BYTES(input) == PyArray_BYTES(made) && PyArray_NDIM(input) == plan->ndim &&
                        PyArray_ITEMSIZE(input) == PyArray_ITEMSIZE(made) &&
                        PyArray_CompareLists(PyArray_DIMS(input), plan->shape, plan->ndim) &&
                        PyArray_CompareLists(PyArray_STRIDES(input), PyArray_STRIDES(made), plan->ndim);
            if (input && !same && native_overlap(input, made))
                return NULL;
        }
        Py_INCREF(made);
    } else {
        native_plan_order(plan, inputs, axes);
        made = pairs ? native_empty_complex_ordered(plan->ndim, plan->shape, type, axes)
                     : native_empty_ordered(plan->ndim, plan->shape, type, axes);
        if (!made)
            return NULL;
    }
    plan->data[inputs] = PyArray_BYTES(made);
    plan->sizes[inputs] = (pairs ? 2 : 1) * TYPE_SIZE[type];
    for (int i = 0; i < plan->ndim; i++)
        plan->steps[inputs][i] = plan->shape[i] == 1 ? 0 : PyArray_STRIDE(made, i);
    if (out)
        native_plan_order(plan, plan->operands, axes);
    merge(plan, axes);
    return (PyObject *)made;
}

PyObject *native_plan_result(native_plan *plan, const native_operand *operands, native_type type, PyObject *out) {
    return result_of(plan, operands, type, false, out);
}

PyObject *native_plan_complex_result(native_plan *plan, const native_operand *operands, native_type type, PyObject *out) {
    return result_of(plan, operands, type, true, out);
}

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
    spread_loop copy; /* of several rows in one call, or NULL */
} run_state;

/* Where a plan copies rows that are worth no call each, what copies many. */
static spread_loop copying(const native_plan *plan) {
    const int last = plan->ndim - 1, size = plan->sizes[0];
    if (!plan->copies || plan->operands != 2 || last < 1 || plan->steps[1][last] != size || plan->shape[last] * size > FEW_BYTES ||
        (plan->steps[0][last] && plan->steps[0][last] != size))
        return NULL;
    return native_spread(size);
}

static void run_part(void *argument, npy_intp begin, npy_intp end) {
    const run_state *state = argument;
    const native_plan *plan = state->plan;
    npy_intp at[NATIVE_DIMS];
    ptrdiff_t steps[PLAN_OPERANDS];
    char *data[PLAN_OPERANDS];
    int last = plan->ndim - 1;
    npy_intp rest = begin;
    for (int i = last; i >= 0; i--) {
        at[i] = rest % plan->shape[i];
        rest /= plan->shape[i];
    }
    for (int k = 0; k < plan->operands; k++) {
        steps[k] = last < 0 ? 0 : plan->steps[k][last];
        data[k] = plan->data[k];
        for (int i = 0; i <= last; i++)
            data[k] += at[i] * plan->steps[k][i];
    }
    while (begin < end) {
        npy_intp row = last < 0 ? 1 : plan->shape[last] - at[last], rows = 1;
        if (row > end - begin) {
            row = end - begin;
        } else if (last > 0 && !at[last]) {
            rows = plan->shape[last - 1] - at[last - 1];
            rows = rows < (end - begin) / row ? rows : (end - begin) / row;
        }
        const bool copied = state->copy && row * plan->sizes[0] >= SPREAD_VECTOR;
        if (copied)
            state->copy(data[0], plan->steps[0][last - 1], steps[0], data[1], plan->steps[1][last - 1], rows, row);
        for (npy_intp i = 0; i < rows; i++) {
            for (int k = 0; i && k < plan->operands; k++)
                data[k] += plan->steps[k][last - 1];
            if (!copied)
                state->rows(state->context, data, steps, row);
        }
        begin += rows * row;
        if (begin >= end)
            return;
        for (int k = 0; k < plan->operands; k++)
            data[k] -= at[last] * steps[k];
        at[last] = 0;
        at[last - 1] += rows - 1;
        for (int i = last - 1; i >= 0; i--) {
            bool carry = ++at[i] == plan->shape[i];
            for (int k = 0; k < plan->operands; k++)
                data[k] += carry ? -(plan->shape[i] - 1) * plan->steps[k][i] : plan->steps[k][i];
            if (!carry)
                break;
            at[i] = 0;
        }
    }
}

/* Tiles */

static bool turnable(int size) { return size == 1 || size == 2 || size == 4 || size == 8; }

/* Makes the dim along which the result's elements lie side by side the last one. Answers the dim along which those of all
   operands lie that are to be turned, -1 where none is. */
static int turned_dim(native_plan *plan) {
    const int last = plan->ndim - 1, result = plan->operands - 1;
    if (last < 1 || plan->count < TURNED)
        return -1;
    int dense = last;
    while (dense >= 0 && plan->steps[result][dense] != plan->sizes[result])
        dense--;
    if (dense < 0 || plan->shape[dense] < 4)
        return -1;
    if (dense < last) {
        npy_intp size = plan->shape[dense];
        plan->shape[dense] = plan->shape[last];
        plan->shape[last] = size;
        for (int k = 0; k <= result; k++) {
            npy_intp step = plan->steps[k][dense];
            plan->steps[k][dense] = plan->steps[k][last];
            plan->steps[k][last] = step;
        }
    }
    int found = -1;
    for (int k = 0; k < result; k++) {
        if (!plan->steps[k][last] || plan->steps[k][last] == plan->sizes[k])
            continue;
        for (int i = 0; i < last; i++)
            if (plan->steps[k][i] == plan->sizes[k] && plan->shape[i] > 1 && turnable(plan->sizes[k]) && (found < 0 || found == i)) {
                found = i;
                break;
            }
    }
    return found;
}

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
    int dim; /* that is walked by tiles together with the last one */
    npy_intp down, across; /* tiles */
} tile_run;

static void run_tile(const tile_run *run, char *const *from, npy_intp rows, npy_intp columns) {
    const native_plan *plan = run->plan;
    const int last = plan->ndim - 1, result = plan->operands - 1;
    _Alignas(64) char space[PLAN_OPERANDS - 1][TILE_ROWS * TILE_COLUMNS * 8];
    ptrdiff_t steps[PLAN_OPERANDS], down[PLAN_OPERANDS];
    char *data[PLAN_OPERANDS];
    for (int k = 0; k <= result; k++) {
        const int size = plan->sizes[k];
        data[k] = from[k];
        steps[k] = plan->steps[k][last];
        down[k] = plan->steps[k][run->dim];
        if (down[k] != size || !steps[k] || steps[k] == size || k == result)
            continue;
        turn_loop turn = turns->turn[native_log_size(size)];
        if (plan->copies) {
            turn(from[k], steps[k], from[result], plan->steps[result][run->dim], rows, columns);
            return;
        }
        data[k] = space[k];
        down[k] = columns * size;
        turn(from[k], steps[k], space[k], down[k], rows, columns);
        steps[k] = size;
    }
    for (npy_intp i = 0; i < rows; i++) {
        run->rows(run->context, data, steps, columns);
        for (int k = 0; k <= result; k++)
            data[k] += down[k];
    }
}

static void run_tiles(void *argument, npy_intp begin, npy_intp end) {
    const tile_run *run = argument;
    const native_plan *plan = run->plan;
    const int last = plan->ndim - 1;
    for (; begin < end; begin++) {
        npy_intp column = begin % run->across * TILE_COLUMNS, row = begin / run->across % run->down * TILE_ROWS;
        npy_intp rest = begin / run->across / run->down, at[NATIVE_DIMS];
        for (int i = last - 1; i >= 0; i--) {
            at[i] = i == run->dim ? row : rest % plan->shape[i];
            rest = i == run->dim ? rest : rest / plan->shape[i];
        }
        at[last] = column;
        char *data[PLAN_OPERANDS];
        for (int k = 0; k < plan->operands; k++) {
            data[k] = plan->data[k];
            for (int i = 0; i <= last; i++)
                data[k] += at[i] * plan->steps[k][i];
        }
        npy_intp rows = plan->shape[run->dim] - row, columns = plan->shape[last] - column;
        run_tile(run, data, rows < TILE_ROWS ? rows : TILE_ROWS, columns < TILE_COLUMNS ? columns : TILE_COLUMNS);
    }
}

void native_plan_run(native_plan *plan, npy_intp grain, native_rows rows, void *context) {
    if (!plan->count)
        return;
    const npy_intp piece = native_even_grain(plan->count, grain);
    if (native_run_repeated(plan, piece, rows, context) || native_run_spread(plan, piece, rows, context) ||
        native_run_apart(plan, piece, rows, context))
        return;
    const int dim = turned_dim(plan), last = plan->ndim - 1;
    if (dim < 0) {
        run_state state = {plan, rows, context, copying(plan)};
        native_parallel(plan->count, piece, run_part, &state);
        return;
    }
    tile_run run = {plan, rows, context, dim, (plan->shape[dim] + TILE_ROWS - 1) / TILE_ROWS,
                    (plan->shape[last] + TILE_COLUMNS - 1) / TILE_COLUMNS};
    npy_intp tiles = run.down * run.across * (plan->count / (plan->shape[dim] * plan->shape[last]));
    native_parallel(tiles, 1 + piece / (plan->count / tiles), run_tiles, &run);
}

int plan_init(void) {
    turns = PICK(turn_loops);
    return 0;
}
