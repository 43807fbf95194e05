/* Fourier transforms of lines: one at a time, and as many side by side as a register has lanes. */
#include "zip.h"

#include "../fft.h"

#include <string.h>

#define PASTE_TWO(a, b) a##_##b
#define PASTE(a, b) PASTE_TWO(a, b)
#define N(name) PASTE(name, WIDTH)

#define REAL float
#define T float
#define WIDTH one_f32
#define ACROSS 1
#include "fft_of_real.h"
#define REAL float
#define T vf
#define T_U vf_u
#define ZIP ZIP_FLOAT
#define UNZIP unzip_f32
#define REVERSED reversed_f32
#define WIDTH many_f32
#define ACROSS LANES_F32
#include "fft_of_real.h"
#define REAL double
#define T double
#define WIDTH one_f64
#define ACROSS 1
#include "fft_of_real.h"
#define REAL double
#define T vd
#define T_U vd_u
#define ZIP ZIP_DOUBLE
#define UNZIP unzip_f64
#define REVERSED reversed_f64
#define WIDTH many_f64
#define ACROSS LANES_F64
#include "fft_of_real.h"

const fft_loops ISA(fft_loops) = {
    {transform_one_f32, transform_one_f64}, {transform_many_f32, transform_many_f64}, {LANES_F32, LANES_F64},
    {{columns_many_f32, rows_many_f32, unpair_cut_many_f32, pair_cut_many_f32, widen_many_f32,
      mirror_many_f32},
     {columns_many_f64, rows_many_f64, unpair_cut_many_f64, pair_cut_many_f64, widen_many_f64,
      mirror_many_f64}}};
