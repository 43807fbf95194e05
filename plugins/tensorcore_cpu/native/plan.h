/* A broadcast loop over some operands and one result: shape, order of the dims, steps; and its run on threads. */
#ifndef TENSORCORE_NATIVE_PLAN_H
#define TENSORCORE_NATIVE_PLAN_H

#include "native.h"

enum { PLAN_OPERANDS = 4 }; /* the result included, as the last one */

typedef struct {
    PyArrayObject *array; /* NULL where the operand is a number */
    char *data;
    int64_t number; /* the number's bits in the operands' type; `data` points to them */
} native_operand;

typedef struct {
    int operands;                /* with the result */
    int ndim;
    npy_intp shape[NATIVE_DIMS]; /* of the result; after plan_finish the dims of the loop, merged, outermost first */
    npy_intp steps[PLAN_OPERANDS][NATIVE_DIMS]; /* in bytes */
    char *data[PLAN_OPERANDS];
    int sizes[PLAN_OPERANDS]; /* bytes of an element */
    npy_intp count;           /* of elements */
    bool copies;              /* the rows copy elements as they are: set it before the run */
} native_plan;

/* A number of Python as an element of that type; false where it does not fit or is of another kind. */
bool native_number(PyObject *value, native_type type, native_operand *operand);

/* Fills shape, steps and data for `inputs` operands; false where the shapes do not go together. */
bool native_plan_inputs(native_plan *plan, const native_operand *operands, int inputs);

/* Broadcasts the inputs to the shape of an array; false where they do not go there. */
bool native_plan_stretch(native_plan *plan, PyArrayObject *to);

/* The result for the plan: `out` if it is given (an array of that type and of the plan's shape that shares no memory
   with an input, or all of it in the same order), else a new one whose dims lie in the order of the inputs'.
   NULL without an exception where `out` does not fit. */
PyObject *native_plan_result(native_plan *plan, const native_operand *operands, native_type type, PyObject *out);

/* The same of complex numbers with parts of that type. */
PyObject *native_plan_complex_result(native_plan *plan, const native_operand *operands, native_type type, PyObject *out);

/* The dims of the plan from the largest step of so many operands to the smallest, stable. */
void native_plan_order(const native_plan *plan, int operands, int *axes);

typedef void (*native_rows)(void *context, char *const *data, const ptrdiff_t *steps, ptrdiff_t count);

/* Calls `rows` for each row of the loop, on threads where there are more than `grain` elements. An operand whose elements lie
   side by side along another dim than the result's is turned over tile by tile, so that rows find it as they find the rest. */
void native_plan_run(native_plan *plan, npy_intp grain, native_rows rows, void *context);

#endif
