/* Two vectors interleaved, which is a step of turning a block of a matrix, and the other way. */
#ifndef TENSORCORE_NATIVE_ZIP_H
#define TENSORCORE_NATIVE_ZIP_H

#include "isa.h"

/* The elements of two vectors by turns, from element x on. */
#define ZIP_2(a, b, x) __builtin_shufflevector(a, b, x, 2 + x)
#define ZIP_4(a, b, x) __builtin_shufflevector(a, b, x, 4 + x, 1 + x, 5 + x)
#define ZIP_8(a, b, x) __builtin_shufflevector(a, b, x, 8 + x, 1 + x, 9 + x, 2 + x, 10 + x, 3 + x, 11 + x)
#define ZIP_16(a, b, x)                                                                                         \
    __builtin_shufflevector(a, b, x, 16 + x, 1 + x, 17 + x, 2 + x, 18 + x, 3 + x, 19 + x, 4 + x, 20 + x, 5 + x, \
                            21 + x, 6 + x, 22 + x, 7 + x, 23 + x)
/* Two vectors of 16 bytes in one, and two vectors of 32 bytes interleaved within their halves, from element x of each half
   on: one instruction each. Their names end as those of the loops do. */
#define join_f32(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#define join_f64(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#define zip_halves_f32(a, b, x) __builtin_shufflevector(a, b, x, 8 + x, 1 + x, 9 + x, 4 + x, 12 + x, 5 + x, 13 + x)
#define zip_halves_f64(a, b, x) __builtin_shufflevector(a, b, x, 4 + x, 2 + x, 6 + x)
#define join_i32 join_f32
#define join_i64 join_f64
#define zip_halves_i32 zip_halves_f32
#define zip_halves_i64 zip_halves_f64
/* Every second element of two vectors, from element x on. */
#define UNZIP_2(a, b, x) __builtin_shufflevector(a, b, x, 2 + x)
#define UNZIP_4(a, b, x) __builtin_shufflevector(a, b, x, 2 + x, 4 + x, 6 + x)
#define UNZIP_8(a, b, x) __builtin_shufflevector(a, b, x, 2 + x, 4 + x, 6 + x, 8 + x, 10 + x, 12 + x, 14 + x)
#define UNZIP_16(a, b, x)                                                                                           \
    __builtin_shufflevector(a, b, x, 2 + x, 4 + x, 6 + x, 8 + x, 10 + x, 12 + x, 14 + x, 16 + x, 18 + x, 20 + x, 22 + x, \
                            24 + x, 26 + x, 28 + x, 30 + x)
#if VECTOR == 64
#define unzip_f32 UNZIP_16
#define unzip_f64 UNZIP_8
#elif VECTOR == 32
#define unzip_f32 UNZIP_8
#define unzip_f64 UNZIP_4
#else
#define unzip_f32 UNZIP_4
#define unzip_f64 UNZIP_2
#endif
#if VECTOR == 64
#define ZIP_FLOAT ZIP_16
#define ZIP_DOUBLE ZIP_8
#elif VECTOR == 32
#define ZIP_FLOAT ZIP_8
#define ZIP_DOUBLE ZIP_4
#else
#define ZIP_FLOAT ZIP_4
#define ZIP_DOUBLE ZIP_2
#endif

#endif
