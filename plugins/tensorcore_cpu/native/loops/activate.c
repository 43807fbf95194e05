/* The loops of activations and their slopes. */
#include "rows.h"

#include "../activate.h"

/* The normal distribution's share below x, and e^(-x^2 / 2). */
#define gelu_share_of_f32 gelu_share_f32
ALWAYS_INLINE double gelu_share_of_f64(double x, double *bell) {
    *bell = exp_flushed_f64(x * x * -0.5);
    return (erf__f64(x * 0.70710678118654752440) + 1) * 0.5;
}

#include "as_f32.h"
#include "activate_of_real.h"
#include "as_f64.h"
#include "activate_of_real.h"

#define BOTH(name) {name##_f32, name##_f64}

const activate_loops ISA(activate_loops) = {{
    BOTH(elu_all), BOTH(softplus_all), BOTH(mish_all), BOTH(log_sigmoid_all), BOTH(elu_slope), BOTH(softplus_slope),
    BOTH(mish_slope), BOTH(log_sigmoid_slope), BOTH(gelu_slope), BOTH(gelu_tanh_slope), BOTH(silu_slope),
}};
