/* Broadcast loops as one row: operands that have less than the result are written out in the first cache, some of it at a time. */
#ifndef TENSORCORE_NATIVE_ONE_ROW_H
#define TENSORCORE_NATIVE_ONE_ROW_H

#include "plan.h"
#include "spread.h"

/* For a plan of rows that lie one behind the other, where some operands have one row for all: it is repeated. False, and nothing
   done, where the plan is another. */
bool native_run_repeated(const native_plan *plan, npy_intp piece, native_rows rows, void *context);

/* Whether the result lies in one row, and what does not is a number for each of some short rows, or short rows themselves. */
bool native_spreads(const native_plan *plan);

/* For such a plan; false, and nothing done, where it is another. */
bool native_run_spread(const native_plan *plan, npy_intp piece, native_rows rows, void *context);

/* For a plan of one dim whose result lies side by side and some operands do not: those are put together in the first cache. False,
   and nothing done, where it is another. */
bool native_run_apart(const native_plan *plan, npy_intp piece, native_rows rows, void *context);

/* For a plan of short rows, of float or double, beside a number for each or beside other rows, and one of the elementwise ops, a sum, a
   difference, a product or a quotient; false, and nothing done, where it is another. */
bool native_run_beside(const native_plan *plan, npy_intp piece, int op);

/* For elements of so many bytes. */
spread_loop native_spread(int size);

#endif
