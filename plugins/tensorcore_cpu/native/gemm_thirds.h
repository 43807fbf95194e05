/* Products of floats as sums of products of their three parts of bfloat16 each, by the processor's unit for tiles of these. */
#ifndef TENSORCORE_NATIVE_GEMM_THIRDS_H
#define TENSORCORE_NATIVE_GEMM_THIRDS_H

#include "gemm.h"

/* Whether this machine has them, and they pay for such a job of floats. */
bool gemm_takes_thirds(const gemm_job *job);

/* Runs a product as gemm_run does. Answers false where there is no memory, or numbers that are not finite, for which it is not made; what
   was written then is to be written again, so that `before` may not be what is made. */
bool gemm_run_thirds(const gemm_job *job);

#endif
