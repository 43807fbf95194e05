/* Matrices of middle size whose rows are gone through a few vectors at a time. */
#ifndef TENSORCORE_NATIVE_LAPACK_LINES_H
#define TENSORCORE_NATIVE_LAPACK_LINES_H

#include "rows.h"
#include "vector_ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CHUNK = VECTOR == 64 ? 4 : 2 };

/* DO(count) for vectors `at` of `all`, CHUNK at a time. */
#define EACH_CHUNK(all, DO)                           \
    {                                                 \
        ptrdiff_t at = 0, rest_of = all;              \
        for (; rest_of >= CHUNK; rest_of -= CHUNK) {  \
            DO(CHUNK);                                \
            at += CHUNK * LANES;                      \
        }                                             \
        switch (rest_of) {                            \
        case 3: DO(CHUNK > 3 ? 3 : 1); break;         \
        case 2: DO(CHUNK > 2 ? 2 : 1); break;         \
        case 1: DO(1); break;                         \
        default: break;                               \
        }                                             \
    }

#include "as_f32.h"
#include "lapack_lines_of_real.h"
#include "as_f64.h"
#include "lapack_lines_of_real.h"

#endif
