/* The loops of connectionist temporal classification. */
#include "rows.h"

#include "../ctc.h"

#include <math.h>
#include <string.h>

#include "as_f32.h"
#include "ctc_of_real.h"
#include "as_f64.h"
#include "ctc_of_real.h"

const ctc_loops ISA(ctc_loops) = {{{ctc_forward_f32, ctc_backward_f32}, {ctc_forward_f64, ctc_backward_f64}}};
