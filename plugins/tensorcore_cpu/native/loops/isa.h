/* What a file of loops starts with: it is compiled once for each instruction set, under other names each time. */
#ifndef TENSORCORE_NATIVE_ISA_H
#define TENSORCORE_NATIVE_ISA_H

#include "../types.h"

/* The build defines NATIVE_SUFFIX: plain, avx2 or avx512. ISA(name) is name_plain and so on. */
#define ISA_PASTE(name, suffix) name##_##suffix
#define ISA_NAME(name, suffix) ISA_PASTE(name, suffix)
#define ISA(name) ISA_NAME(name, NATIVE_SUFFIX)

#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX2__)
#define VECTOR 32
#else
#define VECTOR 16
#endif

/* Vectors as wide as the registers. The _u types may lie anywhere in memory: load and store through pointers to them. */
typedef float vf __attribute__((vector_size(VECTOR)));
typedef double vd __attribute__((vector_size(VECTOR)));
typedef int32_t vi __attribute__((vector_size(VECTOR)));
typedef int64_t vl __attribute__((vector_size(VECTOR)));
typedef float vf_u __attribute__((vector_size(VECTOR), aligned(1), may_alias));
typedef double vd_u __attribute__((vector_size(VECTOR), aligned(1), may_alias));
typedef int32_t vi_u __attribute__((vector_size(VECTOR), aligned(1), may_alias));
typedef int64_t vl_u __attribute__((vector_size(VECTOR), aligned(1), may_alias));

enum { LANES_F32 = VECTOR / 4, LANES_F64 = VECTOR / 8 };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#endif
