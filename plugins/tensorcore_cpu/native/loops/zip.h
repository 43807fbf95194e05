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
/* Vectors of 16 bytes in one, and two vectors interleaved within their parts of 16 bytes, from element x of each part on:
   one instruction for each of two. Their names end as those of the loops do. */
#define JOIN_2(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#define JOIN_4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#define JOIN_8(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#if VECTOR == 64
#define join_f32(x) JOIN_8(JOIN_4(x[0], x[1]), JOIN_4(x[2], x[3]))
#define join_f64(x) JOIN_4(JOIN_2(x[0], x[1]), JOIN_2(x[2], x[3]))
#define zip_parts_f32(a, b, x)                                                                                        \
    __builtin_shufflevector(a, b, x, 16 + x, 1 + x, 17 + x, 4 + x, 20 + x, 5 + x, 21 + x, 8 + x, 24 + x, 9 + x, 25 + x, \
                            12 + x, 28 + x, 13 + x, 29 + x)
#define zip_parts_f64(a, b, x) __builtin_shufflevector(a, b, x, 8 + x, 2 + x, 10 + x, 4 + x, 12 + x, 6 + x, 14 + x)
#else
#define join_f32(x) JOIN_4(x[0], x[1])
#define join_f64(x) JOIN_2(x[0], x[1])
#define zip_parts_f32(a, b, x) __builtin_shufflevector(a, b, x, 8 + x, 1 + x, 9 + x, 4 + x, 12 + x, 5 + x, 13 + x)
#define zip_parts_f64(a, b, x) __builtin_shufflevector(a, b, x, 4 + x, 2 + x, 6 + x)
#endif
#define join_i32 join_f32
#define join_i64 join_f64
#define zip_parts_i32 zip_parts_f32
#define zip_parts_i64 zip_parts_f64
#define times_i_i32 times_i_f32
#define times_i_i64 times_i_f64
/* Every second element of two vectors, from element x on. */
#define UNZIP_2(a, b, x) __builtin_shufflevector(a, b, x, 2 + x)
#define UNZIP_4(a, b, x) __builtin_shufflevector(a, b, x, 2 + x, 4 + x, 6 + x)
#define UNZIP_8(a, b, x) __builtin_shufflevector(a, b, x, 2 + x, 4 + x, 6 + x, 8 + x, 10 + x, 12 + x, 14 + x)
#define UNZIP_16(a, b, x)                                                                                           \
    __builtin_shufflevector(a, b, x, 2 + x, 4 + x, 6 + x, 8 + x, 10 + x, 12 + x, 14 + x, 16 + x, 18 + x, 20 + x, 22 + x, \
                            24 + x, 26 + x, 28 + x, 30 + x)
/* Pairs a, b as complex numbers times i: -b, a. */
#define TIMES_I_2(a) __builtin_shufflevector(a, -(a), 3, 0)
#define TIMES_I_4(a) __builtin_shufflevector(a, -(a), 5, 0, 7, 2)
#define TIMES_I_8(a) __builtin_shufflevector(a, -(a), 9, 0, 11, 2, 13, 4, 15, 6)
#define TIMES_I_16(a) __builtin_shufflevector(a, -(a), 17, 0, 19, 2, 21, 4, 23, 6, 25, 8, 27, 10, 29, 12, 31, 14)
/* The elements of a vector from the last to the first. */
#define REVERSED_2(a) __builtin_shufflevector(a, a, 1, 0)
#define REVERSED_4(a) __builtin_shufflevector(a, a, 3, 2, 1, 0)
#define REVERSED_8(a) __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#define REVERSED_16(a) __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#if VECTOR == 64
#define reversed_f32 REVERSED_16
#define reversed_f64 REVERSED_8
#define times_i_f32 TIMES_I_16
#define times_i_f64 TIMES_I_8
#elif VECTOR == 32
#define reversed_f32 REVERSED_8
#define reversed_f64 REVERSED_4
#define times_i_f32 TIMES_I_8
#define times_i_f64 TIMES_I_4
#else
#define reversed_f32 REVERSED_4
#define reversed_f64 REVERSED_2
#define times_i_f32 TIMES_I_4
#define times_i_f64 TIMES_I_2
#endif
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
