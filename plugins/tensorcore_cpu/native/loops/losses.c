/* The loops of losses. */
#include "rows.h"

#include "../losses.h"

enum { PIECE = 512 }; /* losses that are summed after they were put to a buffer */

#include "as_f32.h"
#include "losses_of_real.h"
#include "as_f64.h"
#include "losses_of_real.h"

#define OF_LOSS(name)                                                                                         \
    {{name##_each_f32, name##_total_f32, name##_back_f32}, {name##_each_f64, name##_total_f64, name##_back_f64}}

const loss_loops ISA(loss_loops) = {
    {OF_LOSS(squared), OF_LOSS(logistic), OF_LOSS(smooth), OF_LOSS(chance), OF_LOSS(margin)}};
