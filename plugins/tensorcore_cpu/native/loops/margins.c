/* The loops of losses by margins. */
#include "rows.h"

#include "../margins.h"

#include <string.h>

#include "as_f32.h"
#include "margins_of_real.h"
#include "as_f64.h"
#include "margins_of_real.h"

const margin_loops ISA(margin_loops) = {{{margin_sums_f32, margin_back_f32}, {margin_sums_f64, margin_back_f64}}};
