/* What happens to scores between the products of attention, in float and double. */
#include "../attention.h"
#include "functions.h"
#include "loop.h"

#include "as_f32.h"
#include "attention_of_real.h"
#include "as_f64.h"
#include "attention_of_real.h"

const attention_loops ISA(attention_loops) = {.real = {ATTENTION_LOOPS(f32), ATTENTION_LOOPS(f64)}};
