/* The cells of LSTM, GRU and Elman's network, both ways, in float and double. */
#include "../recurrent.h"
#include "functions.h"
#include "loop.h"

#include "recurrent_wide.h"
#define REAL float
#define F(name) name##_f32
#include "recurrent_of_real.h"
#undef REAL
#undef F
#undef LSTM_IS_WIDE
#define REAL double
#define F(name) name##_f64
#include "recurrent_of_real.h"

const recurrent_loops ISA(recurrent_loops) = {.real = {RECURRENT_LOOPS(f32), RECURRENT_LOOPS(f64)}};
