/* Broadcast loops. Dims are ordered as PyTorch orders them, so that results have its strides: a draw of random numbers
   runs in memory order, and so sees them. */
#include "plan.h"

#include "turn.h"

#include <string.h>

DECLARE_LOOPS(turn_loops, turn_loops);

static const turn_loops *turns;

enum { TILE_ROWS = 32, TILE_COLUMNS = 64, TURNED = 64 }; /* a tile; elements from which on turning pays */
enum { REPEATED = 8192, LINE = 64 };                       /* bytes of rows that are the same for all, and of the cache's lines */

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
    /* Rows of a few elements cost more to begin than to run. */
    int last = merged.ndim - 1;
    if (last > 0 && merged.shape[last] < 8 && merged.shape[last - 1] > merged.shape[last]) {
        npy_intp size = merged.shape[last];
        merged.shape[last] = merged.shape[last - 1];
        merged.shape[last - 1] = size;
        for (int k = 0; k < merged.operands; k++) {
            npy_intp step = merged.steps[k][last];
            merged.steps[k][last] = merged.steps[k][last - 1];
            merged.steps[k][last - 1] = step;
        }
    }
    plan->ndim = merged.ndim;
    memcpy(plan->shape, merged.shape, sizeof plan->shape);
    memcpy(plan->steps, merged.steps, sizeof plan->steps);
}

PyObject *native_plan_result(native_plan *plan, const native_operand *operands, native_type type, PyObject *out) {
    int axes[NATIVE_DIMS], inputs = plan->operands - 1;
    PyArrayObject *made;
    if (out) {
        made = (PyArrayObject *)out;
        if (native_array_type(out) != type || !PyArray_ISWRITEABLE(made) || PyArray_NDIM(made) != plan->ndim ||
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
        made = native_empty_ordered(plan->ndim, plan->shape, type, axes);
        if (!made)
            return NULL;
    }
    plan->data[inputs] = PyArray_BYTES(made);
    plan->sizes[inputs] = TYPE_SIZE[type];
    for (int i = 0; i < plan->ndim; i++)
        plan->steps[inputs][i] = plan->shape[i] == 1 ? 0 : PyArray_STRIDE(made, i);
    if (out)
        native_plan_order(plan, plan->operands, axes);
    merge(plan, axes);
    return (PyObject *)made;
}

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
} run_state;

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
        npy_intp row = last < 0 ? 1 : plan->shape[last] - at[last];
        if (row > end - begin)
            row = end - begin;
        state->rows(state->context, data, steps, row);
        begin += row;
        if (begin >= end)
            return;
        for (int k = 0; k < plan->operands; k++)
            data[k] -= at[last] * steps[k];
        at[last] = 0;
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

/* Rows beside one that is the same for all */

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
    npy_intp period;                /* elements of a row and its repetitions */
    ptrdiff_t steps[PLAN_OPERANDS]; /* through all rows as one */
    char *again[PLAN_OPERANDS];     /* the repetitions; NULL for operands that have a row for each */
} repeated_run;

/* Whether the plan is rows along `dim` that lie one behind the other, where some operands have one for all of them. */
static bool is_repeated(const native_plan *plan, int dim, repeated_run *run) {
    bool found = false;
    for (int k = 0; k < plan->operands; k++) {
        const npy_intp step = plan->steps[k][dim], next = plan->steps[k][1 - dim];
        const bool again = step && !next && step == plan->sizes[k]; /* a number has neither step nor size */
        if (!again && next != plan->shape[dim] * step)
            return false;
        run->steps[k] = step;
        run->again[k] = again ? plan->data[k] : NULL;
        found |= again;
    }
    return found && plan->steps[plan->operands - 1][dim];
}

/* How often a row is repeated: to whole lines of the cache, so that vectors do not begin in the middle of one, then on while there
   is room; there are four times so many rows at least, of which 1 is worth nothing. */
static npy_intp repetitions(npy_intp bytes, npy_intp rows) {
    npy_intp times = 1;
    while (times * 4 <= rows && times * 2 * bytes <= REPEATED && (times * bytes % LINE || times * 4 * bytes <= REPEATED))
        times *= 2;
    return times;
}

static void run_repeated(void *argument, npy_intp begin, npy_intp end) {
    const repeated_run *run = argument;
    char *data[PLAN_OPERANDS];
    for (npy_intp count; begin < end; begin += count) {
        const npy_intp at = begin % run->period;
        count = run->period - at < end - begin ? run->period - at : end - begin;
        for (int k = 0; k < run->plan->operands; k++)
            data[k] = run->again[k] ? run->again[k] + at * run->steps[k] : run->plan->data[k] + begin * run->steps[k];
        run->rows(run->context, data, run->steps, count);
    }
}

/* Rows that are the same for all are repeated in the first cache, and all rows are one. False where the plan is another. */
static bool run_as_one(const native_plan *plan, npy_intp piece, native_rows rows, void *context) {
    _Alignas(64) char space[PLAN_OPERANDS - 1][REPEATED];
    repeated_run run = {.plan = plan, .rows = rows, .context = context};
    if (plan->ndim != 2)
        return false;
    const int dim = is_repeated(plan, 1, &run) ? 1 : 0;
    if (!dim && !is_repeated(plan, 0, &run))
        return false;
    npy_intp size = 0;
    for (int k = 0; k < plan->operands; k++)
        size = run.again[k] && plan->sizes[k] > size ? plan->sizes[k] : size;
    const npy_intp width = plan->shape[dim], times = repetitions(width * size, plan->shape[1 - dim]);
    if (times < 2)
        return false;
    run.period = times * width;
    for (int k = 0; k < plan->operands - 1; k++) {
        if (!run.again[k])
            continue;
        const size_t row = (size_t)(width * plan->sizes[k]), whole = row * (size_t)times;
        memcpy(space[k], run.again[k], row);
        for (size_t done = row; done < whole; done *= 2)
            memcpy(space[k] + done, space[k], done);
        run.again[k] = space[k];
    }
    native_parallel(plan->count, piece, run_repeated, &run);
    return true;
}

/* Tiles */

static int log_size(int size) { return size == 8 ? 3 : size == 4 ? 2 : size - 1; }

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
        turn_loop turn = turns->turn[log_size(size)];
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
    /* In small pieces, so that the threads end together. */
    const npy_intp piece = plan->count > grain ? grain / 4 : grain;
    if (run_as_one(plan, piece, rows, context))
        return;
    const int dim = turned_dim(plan), last = plan->ndim - 1;
    if (dim < 0) {
        run_state state = {plan, rows, context};
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
