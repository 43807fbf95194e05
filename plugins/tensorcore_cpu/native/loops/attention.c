/* What happens to scores between the products of attention, in float and double. */
#include "../attention.h"
#include "functions.h"
#include "loop.h"

#define REAL float
#define V vf
#define V_U vf_u
#define VI vi
#define LANES LANES_F32
#define F(name) name##_f32
#include "attention_of_real.h"
#undef REAL
#undef V
#undef V_U
#undef VI
#undef LANES
#undef F
#define REAL double
#define V vd
#define V_U vd_u
#define VI vl
#define LANES LANES_F64
#define F(name) name##_f64
#include "attention_of_real.h"

const attention_loops ISA(attention_loops) = {.real = {ATTENTION_LOOPS(f32), ATTENTION_LOOPS(f64)}};
