/* Broadcast loops as one row: operands that have less than the result are written out in the first cache. */
#include "one_row.h"

#include "beside.h"
#include "cast.h"
#include "elementwise.h"
#include "spread.h"

#include <string.h>

DECLARE_LOOPS(spread_loops, spread_loops);

DECLARE_LOOPS(cast_loops, cast_loops);

DECLARE_LOOPS(beside_loops, beside_loops);

static const spread_loops *loops;
static const cast_loops *casts;
static const beside_loops *beside;

enum {
    REPEATED = 8192, LINE = 64, SHORT = 128, /* bytes of an operand that are written out, of the cache's lines, of a short row */
    GAPS = 4, GAPS_BYTES = 1 << 22,          /* times the gap that a row has to be, and bytes of a result that is not too large */
    APART = 64,                              /* elements that are worth being put together */
    LONGEST = 1024,                          /* bytes of a row beside a number: longer ones are worth a call each */
};

/* Rows beside one that is the same for all */

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
    npy_intp width, period;         /* elements of a row, and of its repetitions */
    ptrdiff_t steps[PLAN_OPERANDS]; /* through all rows as one */
    char *again[PLAN_OPERANDS];     /* the row; NULL for operands that have one for each */
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

/* Each thread writes its own repetitions: those of another would come from that one's cache. */
static void run_repeated(void *argument, npy_intp begin, npy_intp end) {
    _Alignas(64) char space[PLAN_OPERANDS - 1][REPEATED];
    const repeated_run *run = argument;
    const npy_intp period = run->period;
    char *data[PLAN_OPERANDS];
    for (int k = 0; k < run->plan->operands - 1; k++) {
        const size_t row = (size_t)(run->width * run->plan->sizes[k]), whole = row * (size_t)(period / run->width);
        if (!run->again[k])
            continue;
        memcpy(space[k], run->again[k], row);
        for (size_t done = row; done < whole; done *= 2)
            memcpy(space[k] + done, space[k], done);
    }
    for (npy_intp count; begin < end; begin += count) {
        const npy_intp at = begin % period;
        count = period - at < end - begin ? period - at : end - begin;
        for (int k = 0; k < run->plan->operands; k++)
            data[k] = run->again[k] ? space[k] + at * run->steps[k] : run->plan->data[k] + begin * run->steps[k];
        run->rows(run->context, data, run->steps, count);
    }
}

/* Rows that are the same for all are repeated in the first cache, and all rows are one. */
bool native_run_repeated(const native_plan *plan, npy_intp piece, native_rows rows, void *context) {
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
    run.width = width;
    native_parallel(plan->count, piece, run_repeated, &run);
    return true;
}

/* Short rows */

static bool lies_in_one_row(const native_plan *plan, int k) {
    npy_intp step = plan->sizes[k];
    for (int i = plan->ndim - 1; i >= 0; i--) {
        if (plan->steps[k][i] != step)
            return false;
        step *= plan->shape[i];
    }
    return true;
}

static bool is_number(const native_plan *plan, int k) { return !plan->sizes[k]; }

bool native_spreads(const native_plan *plan) {
    const int last = plan->ndim - 1;
    if (last < 1 || !lies_in_one_row(plan, plan->operands - 1) || plan->sizes[plan->operands - 1] > 8) /* complex numbers are larger */
        return false;
    for (int k = 0; k < plan->operands - 1; k++) {
        const npy_intp step = plan->steps[k][last];
        if ((step && step != plan->sizes[k]) || plan->shape[last] * plan->sizes[k] > SHORT)
            return false;
    }
    return true;
}

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
    npy_intp period;                 /* elements that are written out at a time */
    ptrdiff_t steps[PLAN_OPERANDS];  /* along the one row */
    spread_loop spread[PLAN_OPERANDS]; /* NULL for operands that lie in one row, and for numbers */
} spread_run;

/* Writes out `count` elements of an operand from place `begin` of the one row on. */
static void write_out(const spread_run *run, int k, npy_intp begin, npy_intp count, char *to) {
    const native_plan *plan = run->plan;
    const int last = plan->ndim - 1;
    const npy_intp *shape = plan->shape, *steps = plan->steps[k];
    const char *from = plan->data[k];
    npy_intp at[NATIVE_DIMS], rest = begin;
    for (int i = last; i >= 0; i--) {
        at[i] = rest % shape[i];
        rest /= shape[i];
        from += at[i] * steps[i];
    }
    while (count) {
        npy_intp rows = 1, width = shape[last] - at[last];
        if (width > count) {
            width = count;
        } else if (!at[last]) {
            rows = shape[last - 1] - at[last - 1];
            rows = rows < count / width ? rows : count / width;
        }
        run->spread[k](from, steps[last - 1], steps[last], to, width * plan->sizes[k], rows, width);
        to += rows * width * plan->sizes[k];
        count -= rows * width;
        from += rows * steps[last - 1] - at[last] * steps[last];
        at[last] = 0;
        at[last - 1] += rows;
        for (int i = last - 1; i > 0 && at[i] == shape[i]; i--) {
            from += steps[i - 1] - shape[i] * steps[i];
            at[i] = 0;
            at[i - 1]++;
        }
    }
}

static void run_pieces(void *argument, npy_intp begin, npy_intp end) {
    const spread_run *run = argument;
    const native_plan *plan = run->plan;
    _Alignas(LINE) char space[PLAN_OPERANDS - 1][REPEATED + SPREAD_VECTOR];
    char *data[PLAN_OPERANDS];
    for (npy_intp count; begin < end; begin += count) {
        const npy_intp whole = run->period - begin % run->period;
        count = whole < end - begin ? whole : end - begin;
        for (int k = 0; k < plan->operands; k++) {
            data[k] = run->spread[k] ? space[k] : plan->data[k] + begin * run->steps[k];
            if (run->spread[k])
                write_out(run, k, begin, count, space[k]);
        }
        run->rows(run->context, data, run->steps, count);
    }
}

/* Short rows that lie as far apart in all operands: what is between them is computed too, and the results are copied without it. */

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
    npy_intp down;                  /* elements from a row to the next */
    ptrdiff_t steps[PLAN_OPERANDS]; /* along a row */
} gap_run;

static bool has_narrow_gaps(const native_plan *plan, gap_run *run) {
    int apart = 0;
    if (plan->ndim != 2 || plan->count * plan->sizes[plan->operands - 1] > GAPS_BYTES)
        return false;
    for (int k = 0; k < plan->operands - 1; k++) {
        const npy_intp size = plan->sizes[k];
        run->steps[k] = size;
        if (is_number(plan, k))
            continue;
        if (plan->steps[k][1] != size || plan->steps[k][0] % size || (apart++ && plan->steps[k][0] / size != run->down))
            return false;
        run->down = plan->steps[k][0] / size;
    }
    run->steps[plan->operands - 1] = plan->sizes[plan->operands - 1];
    const npy_intp width = plan->shape[1], gap = run->down - width;
    return apart > 1 && gap > 0 && gap * GAPS <= width;
}

static void run_over_gaps(void *argument, npy_intp begin, npy_intp end) {
    const gap_run *run = argument;
    const native_plan *plan = run->plan;
    const int result = plan->operands - 1;
    const npy_intp size = plan->sizes[result], width = plan->shape[1], most = REPEATED / (run->down * size);
    _Alignas(LINE) char space[REPEATED];
    char *data[PLAN_OPERANDS];
    for (npy_intp rows; begin < end; begin += rows) {
        rows = most < end - begin ? most : end - begin;
        for (int k = 0; k < result; k++)
            data[k] = plan->data[k] + begin * run->down * run->steps[k];
        data[result] = space;
        run->rows(run->context, data, run->steps, (rows - 1) * run->down + width);
        loops->copy_rows(space, run->down * size, plan->data[result] + begin * width * size, width * size, rows, width * size);
    }
}

/* Elements evenly apart in one row */

typedef struct {
    const native_plan *plan;
    native_rows rows;
    void *context;
    native_loop copy[PLAN_OPERANDS]; /* of operands whose elements lie apart, or NULL */
    npy_intp period;
} apart_run;

static void run_apart(void *argument, npy_intp begin, npy_intp end) {
    const apart_run *run = argument;
    const native_plan *plan = run->plan;
    _Alignas(LINE) char space[PLAN_OPERANDS - 1][REPEATED];
    char *data[PLAN_OPERANDS];
    ptrdiff_t steps[PLAN_OPERANDS];
    for (npy_intp count; begin < end; begin += count) {
        count = run->period < end - begin ? run->period : end - begin;
        for (int k = 0; k < plan->operands; k++) {
            steps[k] = plan->steps[k][0];
            data[k] = plan->data[k] + begin * steps[k];
            if (!run->copy[k])
                continue;
            run->copy[k]((char *[]){data[k], space[k]}, (const ptrdiff_t[]){steps[k], plan->sizes[k]}, count);
            data[k] = space[k];
            steps[k] = plan->sizes[k];
        }
        run->rows(run->context, data, steps, count);
    }
}

bool native_run_apart(const native_plan *plan, npy_intp piece, native_rows rows, void *context) {
    const int result = plan->operands - 1;
    apart_run run = {.plan = plan, .rows = rows, .context = context};
    int largest = 0, apart = 0;
    bool pairs = false;
    if (plan->ndim != 1 || plan->copies || plan->count < APART || plan->steps[result][0] != plan->sizes[result])
        return false;
    for (int k = 0; k < result; k++) {
        const int size = plan->sizes[k];
        const native_type type = size == 8 ? TYPE_I64 : size == 4 ? TYPE_I32 : size == 2 ? TYPE_I16 : TYPE_U8;
        if (!plan->steps[k][0] || plan->steps[k][0] == size || TYPE_SIZE[type] != size)
            continue;
        run.copy[k] = casts->cast[type][type];
        largest = size > largest ? size : largest;
        pairs |= plan->steps[k][0] == 2 * size;
        apart++;
    }
    if (!largest || (apart > 1 && !pairs && largest == 8)) /* of doubles few go into a vector */
        return false;
    run.period = REPEATED / largest;
    native_parallel(plan->count, piece, run_apart, &run);
    return true;
}

spread_loop native_spread(int size) { return loops->spread[native_log_size(size)]; }

bool native_run_spread(const native_plan *plan, npy_intp piece, native_rows rows, void *context) {
    gap_run gaps;
    if (!native_spreads(plan))
        return false;
    if (has_narrow_gaps(plan, &gaps)) {
        gaps.plan = plan;
        gaps.rows = rows;
        gaps.context = context;
        native_parallel(plan->shape[0], 1 + piece / plan->shape[1], run_over_gaps, &gaps);
        return true;
    }
    spread_run run = {.plan = plan, .rows = rows, .context = context};
    int largest = 1;
    for (int k = 0; k < plan->operands; k++) {
        const int size = plan->sizes[k];
        run.steps[k] = size;
        if (is_number(plan, k) || lies_in_one_row(plan, k))
            continue;
        largest = size > largest ? size : largest;
        run.spread[k] = native_spread(size);
    }
    run.period = REPEATED / largest;
    native_parallel(plan->count, piece, run_pieces, &run);
    return true;
}

/* Short rows beside a number for each, or beside other rows */

typedef struct {
    const native_plan *plan;
    beside_loop loop;
    int others; /* which of the operands they are */
} beside_run;

static void run_rows(void *argument, npy_intp begin, npy_intp end) {
    const beside_run *run = argument;
    const native_plan *plan = run->plan;
    const int last = plan->ndim - 1, over = last - 1, others = run->others, rows = 1 - others;
    const npy_intp width = plan->shape[last];
    for (npy_intp count; begin < end; begin += count) {
        const npy_intp at = begin % plan->shape[over];
        count = plan->shape[over] - at < end - begin ? plan->shape[over] - at : end - begin;
        const char *data[2];
        for (int k = 0; k < 2; k++) {
            npy_intp rest = begin;
            data[k] = plan->data[k];
            for (int i = over; i >= 0; i--) {
                data[k] += rest % plan->shape[i] * plan->steps[k][i];
                rest /= plan->shape[i];
            }
        }
        run->loop(data[rows], plan->steps[rows][over], data[others], plan->steps[others][over],
                  plan->data[2] + begin * width * plan->sizes[2], count, width);
    }
}

bool native_run_beside(const native_plan *plan, npy_intp piece, int op) {
    static const int BOTH[][3] = {{OP_add, BESIDE_ADD, BESIDE_ADD}, {OP_sub, BESIDE_SUB, BESIDE_SUB_FROM},
                                  {OP_mul, BESIDE_MUL, BESIDE_MUL}, {OP_div, BESIDE_DIV, BESIDE_DIV_INTO}};
    const int last = plan->ndim - 1;
    if (last < 1 || plan->operands != 3 || !plan->count || !lies_in_one_row(plan, 2))
        return false;
    const npy_intp size = plan->sizes[2], width = plan->shape[last];
    if (width * size < BESIDE_VECTOR || width * size > LONGEST)
        return false;
    const int others = plan->steps[0][last] ? 1 : 0;
    const bool numbers = !plan->steps[others][last];
    if (plan->steps[1 - others][last] != size || (!numbers && plan->steps[others][last] != size))
        return false;
    if (!numbers && !(plan->steps[0][last - 1] && plan->steps[1][last - 1])) /* one row for all is repeated */
        return false;
    for (size_t i = 0; i < sizeof BOTH / sizeof *BOTH; i++)
        if (op == BOTH[i][0]) {
            const beside_op *ways = &beside->ops[BOTH[i][others ? 1 : 2]];
            beside_run run = {plan, (numbers ? ways->numbers : ways->rows)[size == 8], others};
            native_parallel(plan->count / width, 1 + piece / width, run_rows, &run);
            return true;
        }
    return false;
}

int one_row_init(void) {
    beside = PICK(beside_loops);
    loops = PICK(spread_loops);
    casts = PICK(cast_loops);
    return 0;
}
