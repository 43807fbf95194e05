/* Reductions of fused nests: rows, or pieces of them, to one number, and pieces to a row's. */
#include "fused_reduce.h"

#include "reduce.h"

DECLARE_LOOPS(reduce_loops, reduce_loops);

static const reduce_loops *reductions;

void fused_reduce_init(void) { reductions = PICK(reduce_loops); }

static double element(native_type type, const char *at) {
    return type == TYPE_F32 ? *(const float *)at : type == TYPE_F64 ? *(const double *)at : *(const uint8_t *)at;
}

static void store(native_type type, char *at, double value) {
    if (type == TYPE_F32)
        *(float *)at = (float)value;
    else if (type == TYPE_F64)
        *(double *)at = value;
    else
        *(uint8_t *)at = value != 0;
}

static double product(native_type type, const char *row, npy_intp count) {
    double lanes[4] = {1, 1, 1, 1};
    for (npy_intp i = 0; i < count; i++)
        lanes[i % 4] *= element(type, row + i * TYPE_SIZE[type]);
    return (lanes[0] * lanes[1]) * (lanes[2] * lanes[3]);
}

double fused_reduced(const fused_step *step, const char *row, ptrdiff_t stride, npy_intp count) {
    const reduce_functions *of = step->type <= TYPE_F64 ? &reductions->of[step->type] : NULL;
    double one = stride ? 0 : element(step->type, row);
    switch (step->op) {
    case REDUCE_SUM:
    case REDUCE_MEAN:
        return stride ? of->sum(row, count) : one * (double)count;
    case REDUCE_PROD:
        for (npy_intp i = 1; !stride && i < count; i++)
            one *= element(step->type, row);
        return stride ? product(step->type, row, count) : one;
    case REDUCE_ANY:
        return stride ? reductions->any((const uint8_t *)row, count) : one;
    case REDUCE_ALL:
        return stride ? reductions->all((const uint8_t *)row, count) : one;
    default:
        return stride ? of->extreme(row, count, step->op == REDUCE_AMAX) : one;
    }
}

void fused_add(fused_partial *sum, const fused_step *step, double value, double lost) {
    double before = sum->value;
    if (!sum->begun) {
        *sum = (fused_partial){value, lost, true};
        return;
    }
    switch (step->op) {
    case REDUCE_SUM:
    case REDUCE_MEAN: {
        double after = before + value, part = after - before;
        sum->lost += (before - (after - part)) + (value - part) + lost;
        sum->value = after;
        return;
    }
    case REDUCE_PROD:
        sum->value *= value;
        return;
    case REDUCE_ANY:
        sum->value = before != 0 || value != 0;
        return;
    case REDUCE_ALL:
        sum->value = before != 0 && value != 0;
        return;
    default: /* a NaN is the result */
        if ((step->op == REDUCE_AMAX ? value > before : value < before) || value != value)
            sum->value = before == before ? value : before;
    }
}

void fused_finish(const fused_nest *nest, const fused_step *step, char *to, double value) {
    native_type type = nest->values[step->made].type;
    if (step->op == REDUCE_MEAN)
        value = (type == TYPE_F32 ? (float)value : value) / (double)nest->width;
    store(type, to, value);
}
