/* The loops of images read at any places. */
#include "rows.h"

#include "../sample.h"

ALWAYS_INLINE float floor__f32(float x) { return __builtin_floorf(x); }
ALWAYS_INLINE double floor__f64(double x) { return __builtin_floor(x); }
ALWAYS_INLINE float round__f32(float x) { return __builtin_rintf(x); }
ALWAYS_INLINE double round__f64(double x) { return __builtin_rint(x); }

/* A product and a sum stay two roundings: between two elements the gradient of a place has a jump, and which side a place is on
   is as PyTorch rounds it. */
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

#include "as_f32.h"
#include "sample_places_of_real.h"
#include "as_f64.h"
#include "sample_places_of_real.h"

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC pop_options
#endif

#include "as_f32.h"
#include "sample_of_real.h"
#include "as_f64.h"
#include "sample_of_real.h"

const sample_loops ISA(sample_loops) = {{
    {read_f32, spread_f32, slope_f32},
    {read_f64, spread_f64, slope_f64},
}};
