/* The loops of softmax, log_softmax and the losses of classes. */
#include "rows.h"
#include "wide.h"

#include "../softmax.h"

enum { SHORT_ROW = 256 }; /* elements of rows that go several together */

#include "as_f32.h"
#include "softmax_of_real.h"
#include "classes_of_real.h"
#include "as_f64.h"
#include "softmax_of_real.h"
#include "classes_of_real.h"

#define OF_REAL(suffix)                                                                                       \
    {{softmax_rows_##suffix, log_softmax_rows_##suffix, softmax_back_rows_##suffix, log_softmax_back_rows_##suffix}, \
     {softmax_columns_##suffix, log_softmax_columns_##suffix, softmax_back_columns_##suffix,                  \
      log_softmax_back_columns_##suffix},                                                                     \
     class_statistics_##suffix, class_losses_##suffix, class_backward_##suffix, class_total_##suffix}

const softmax_loops ISA(softmax_loops) = {{OF_REAL(f32), OF_REAL(f64)}};
