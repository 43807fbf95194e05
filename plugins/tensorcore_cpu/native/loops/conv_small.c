/* The loops of convolutions of small planes that have a window of their own each. */
#include "rows.h"
#include "zip.h"

#include "../conv_small.h"

enum { IMAGES = 16 }; /* whose products are summed before they come to those of others */

#include "as_f32.h"
#include "turn_of_real.h"
#include "conv_small_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "conv_small_of_real.h"

const conv_small_loops ISA(conv_small_loops) = {{{LANES_F32, small_f32}, {LANES_F64, small_f64}}};
