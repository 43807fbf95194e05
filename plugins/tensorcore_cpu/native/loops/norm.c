/* The loops of normalisations. */
#include "rows.h"

#include "../norm.h"

enum {
    NORM_BLOCK = 32,      /* rows whose sums by column are taken in their own precision before they go to a wider one */
    NORM_NARROW = 16,     /* elements of rows that are turned over, and how many of those at a time */
    NORM_TURNED = 128,
    NORM_VECTORS = 8,     /* of rows whose sums are made side by side */
    NORM_SAMPLES = 8,     /* vectors of a long row by which its mean is guessed */
    PAIR_BYTES = 6 << 10, /* of a row: two of them, where they are written to and the weights fit the first cache */
};

/* x, while a line that is needed next is on its way into the second cache; or one that is written to. */
#define READING(line, x) (__builtin_prefetch(line, 0, 2), x)
#define WRITING(line, x) (__builtin_prefetch(line, 1), x)

#include "as_f32.h"
#include "norm_of_real.h"
#include "as_f64.h"
#include "norm_of_real.h"

const norm_loops ISA(norm_loops) = {{
    {norm_rows_f32, norm_rows_back_f32, row_sums_f32, columns_back_f32, norm_channels_f32, norm_channels_back_f32},
    {norm_rows_f64, norm_rows_back_f64, row_sums_f64, columns_back_f64, norm_channels_f64, norm_channels_back_f64},
}};
