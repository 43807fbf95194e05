/* Whole quotients of integers, and what is left: floor_divide, trunc_divide, remainder, fmod; and powers. Where a divisor is 0 or a
   power is a negative number, NumPy's kernel says so. */
#include "division.h"

#include "copies.h"
#include "plan.h"
#include "rows.h"

DECLARE_LOOPS(division_loops, division_loops);

static const division_loops *loops;
static PyObject *out_name;

enum { GRAIN = 1 << 13 }; /* elements a thread */

#define NO_ZERO(type)                                                                                         \
    for (npy_intp i = 0; i < count; i++)                                                                      \
        zero |= !((const type *)data)[i];

/* Whether no element is 0, wherever they lie. */
static bool no_zero(PyArrayObject *divisors) {
    PyArrayObject *dense = native_dense((PyObject *)divisors);
    const void *data = dense ? PyArray_DATA(dense) : NULL;
    const npy_intp count = dense ? PyArray_SIZE(dense) : 0;
    int zero = !dense;
    switch (PyArray_ITEMSIZE(divisors)) {
    case 1: NO_ZERO(uint8_t) break;
    case 2: NO_ZERO(uint16_t) break;
    case 4: NO_ZERO(uint32_t) break;
    default: NO_ZERO(uint64_t)
    }
    Py_XDECREF(dense);
    return !zero;
}

static PyObject *run_division(const native_kernel *kernel, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const int op = *(const int *)kernel->data;
    PyObject *out = NULL;
    if (nargs != 2 || (kwnames && !native_options(args, nargs, kwnames, &out_name, 1, &out)))
        return NULL;
    out = native_is_none(out) ? NULL : out;
    const native_type first = native_array_type(args[0]), second = native_array_type(args[1]);
    const native_type type = first == TYPE_NONE ? second : first;
    const native_loop loop = type == TYPE_NONE ? NULL : loops->of[op][type];
    if (!loop || (first != TYPE_NONE && second != TYPE_NONE && first != second))
        return NULL;
    native_operand operands[2];
    for (int k = 0; k < 2; k++) {
        operands[k].array = (PyArrayObject *)args[k];
        if ((k ? second : first) == TYPE_NONE && !native_number(args[k], type, &operands[k]))
            return NULL;
    }
    if (op == DIVISION_POWER ? !operands[1].array && PyLong_AsLongLong(args[1]) < 0
                             : operands[1].array ? !no_zero(operands[1].array) : !operands[1].number)
        return NULL;
    PyObject *made = native_dense_loop(operands, 2, type, out, GRAIN, loop, NATIVE_PAST);
    native_plan plan;
    if (made || PyErr_Occurred() || !native_plan_inputs(&plan, operands, 2))
        return made;
    if ((made = native_plan_result(&plan, operands, type, out)))
        native_plan_loop(&plan, GRAIN, loop, NATIVE_PAST);
    return made;
}

int division_init(void) {
    loops = PICK(division_loops);
    return out_name || (out_name = PyUnicode_InternFromString("out")) ? 0 : -1;
}

/* Those of floats are elementwise.c's. */
const native_spec division_kernels[] = {
    {"floor_divide_beneath", run_division, &(const int){DIVISION_FLOOR}, .ordered = true},
    {"trunc_divide", run_division, &(const int){DIVISION_TRUNC}, .ordered = true},
    {"remainder_beneath", run_division, &(const int){DIVISION_REMAINDER}, .ordered = true},
    {"fmod_beneath", run_division, &(const int){DIVISION_FMOD}, .ordered = true},
    {"pow_beneath", run_division, &(const int){DIVISION_POWER}, .ordered = true},
    {NULL, NULL, NULL},
};
