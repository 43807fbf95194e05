/* Another library's matrix products, where one was found: oneMKL's, one call for each part, on the threads of our pool. */
#ifndef TENSORCORE_NATIVE_BLAS_H
#define TENSORCORE_NATIVE_BLAS_H

#include "gemm.h"

/* Asks the finder for a library, before the first product of so many multiplications that are worth one; later calls cost a
   test. Call it with the GIL. Answers false with an exception. */
bool native_blas_ready(ptrdiff_t multiplications);

/* Runs a product by the library. Answers false where there is none, or where it does not read such steps or such sizes pay
   better in our own loops, nor of pairs; nothing has been written then. Call it as gemm_run. */
bool native_blas_run(native_type type, const gemm_job *job);

#endif
