/* The loops of optimizer steps. */
#include "rows.h"

#include "../optim.h"

#define root_f32 sqrtf
#define root_f64 sqrt

#include "as_f32.h"
#include "optim_of_real.h"
#include "as_f64.h"
#include "optim_of_real.h"

const optim_loops ISA(optim_loops) = {
    {sgd_f32, sgd_f64},
    {adam_f32, adam_f64},
    {unscale_f32, unscale_f64},
};
