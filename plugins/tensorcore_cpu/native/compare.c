/* compare_over: whether a comparison holds, written over the first operand as a number of its own type. */
#include "compare.h"

#include "cast.h"
#include "halves.h"
#include "rows.h"

DECLARE_LOOPS(compare_loops, compare_loops);
DECLARE_LOOPS(cast_loops, cast_loops);

static const compare_loops *loops;
static const cast_loops *casts;

enum { GRAIN = 1 << 15, PIECE = 512 }; /* elements a thread, and halves that are converted at a time */

#define COMPARISON_NAME(name) #name,
static const char *const NAMES[COMPARISONS] = {COMPARE_OPS(COMPARISON_NAME)};
static PyObject *by_name, *words[COMPARISONS];

typedef struct {
    native_loop widen, compare, narrow;
} comparison;

/* Half types in single precision, which holds them as they are. */
static void compare_halves(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count) {
    const comparison *run = context;
    _Alignas(64) float wide[3][PIECE];
    for (ptrdiff_t begin = 0; begin < count; begin += PIECE) {
        const ptrdiff_t piece = count - begin < PIECE ? count - begin : PIECE;
        const ptrdiff_t inner[3] = {steps[0] ? sizeof(float) : 0, steps[1] ? sizeof(float) : 0, sizeof(float)};
        for (int k = 0; k < 2; k++)
            run->widen((char *const[2]){data[k] + begin * steps[k], (char *)wide[k]}, (const ptrdiff_t[2]){steps[k], inner[k]},
                       steps[k] ? piece : 1);
        run->compare((char *const[3]){(char *)wide[0], (char *)wide[1], (char *)wide[2]}, inner, piece);
        run->narrow((char *const[2]){(char *)wide[2], data[2] + begin * steps[2]}, (const ptrdiff_t[2]){sizeof(float), steps[2]}, piece);
    }
}

/* (x, other, by): an array and another one of its type, or a number that the type holds. */
static PyObject *run_compare(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *by = NULL;
    native_operand operands[2] = {{NULL}};
    const native_type type = nargs == 2 ? native_array_type(args[0]) : TYPE_NONE;
    if (type == TYPE_NONE || !kwnames || !native_options(args, nargs, kwnames, &by_name, 1, &by) || !by)
        return NULL;
    int op = 0;
    while (op < COMPARISONS && by != words[op])
        op++;
    const bool half = native_is_half(type), array = native_array_type(args[1]) == type;
    const native_loop loop = op < COMPARISONS ? loops->over[op][half ? TYPE_F32 : type] : NULL;
    if (!loop || (!array && !native_number(args[1], half ? TYPE_F32 : type, &operands[1])))
        return NULL;
    if (half && !array)
        native_retype_number(&operands[1], TYPE_F32, type); /* rounded, as PyTorch has it */
    operands[0].array = (PyArrayObject *)args[0];
    if (array)
        operands[1].array = (PyArrayObject *)args[1];
    PyObject *made = half ? NULL : native_dense_loop(operands, 2, type, args[0], GRAIN, loop, PTRDIFF_MAX);
    native_plan plan;
    if (made || PyErr_Occurred() || !native_plan_inputs(&plan, operands, 2) ||
        !(made = native_plan_result(&plan, operands, type, args[0])))
        return made;
    if (half)
        native_plan_run(&plan, GRAIN, compare_halves, &(comparison){casts->cast[type][TYPE_F32], loop, casts->cast[TYPE_F32][type]});
    else
        native_plan_loop(&plan, GRAIN, loop, PTRDIFF_MAX);
    return made;
}

int compare_init(void) {
    loops = PICK(compare_loops);
    casts = PICK(cast_loops);
    if (native_intern(words, NAMES, COMPARISONS))
        return -1;
    return (by_name = PyUnicode_InternFromString("by")) ? 0 : -1;
}

const native_spec compare_kernels[] = {{"compare_over", run_compare, NULL}, {NULL, NULL, NULL}};
