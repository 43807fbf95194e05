/* The loops of pools. */
#include "rows.h"
#include "zip.h"

#include "../pool.h"

#include <string.h>

enum { NARROW_TAPS = 16 }; /* windows of so many elements are summed one by one where a row has few of them */

/* The flat index of each position of the window of output (0, 0, 0), which may lie outside. */
static void lay_out(const pool_windows *of, ptrdiff_t *offsets) {
    for (ptrdiff_t kd = 0; kd < of->kernel[0]; kd++)
        for (ptrdiff_t kh = 0; kh < of->kernel[1]; kh++)
            for (ptrdiff_t kw = 0; kw < of->kernel[2]; kw++)
                *offsets++ = ((kd * of->dilation[0] - of->padding[0]) * of->size[1] + kh * of->dilation[1] -
                              of->padding[1]) * of->size[2] + kw * of->dilation[2] - of->padding[2];
}

/* The rows of the input that an output row's windows have, in turn: an expression ROW in `at_row`, where each begins. */
#define EACH_ROW(of, od, oh, ROW)                                                                             \
    for (ptrdiff_t kd = 0; kd < (of)->kernel[0]; kd++) {                                                      \
        ptrdiff_t depth = (od) * (of)->stride[0] - (of)->padding[0] + kd * (of)->dilation[0];                 \
        if (depth < 0 || depth >= (of)->size[0])                                                              \
            continue;                                                                                         \
        for (ptrdiff_t kh = 0; kh < (of)->kernel[1]; kh++) {                                                  \
            ptrdiff_t height = (oh) * (of)->stride[1] - (of)->padding[1] + kh * (of)->dilation[1];            \
            if (height < 0 || height >= (of)->size[1])                                                        \
                continue;                                                                                     \
            ptrdiff_t at_row = (depth * (of)->size[1] + height) * (of)->size[2];                                 \
            ROW                                                                                               \
        }                                                                                                     \
    }

/* How many elements a window has along one dim that counts for a mean. */
ALWAYS_INLINE ptrdiff_t window_length(const pool_windows *of, int dim, ptrdiff_t at) {
    ptrdiff_t start = at * of->stride[dim] - of->padding[dim], stop = start + of->kernel[dim];
    ptrdiff_t end = of->size[dim] + (of->count_padding ? of->padding[dim] : 0);
    start = start < 0 && !of->count_padding ? 0 : start;
    return (stop < end ? stop : end) - start;
}

/* The results of a row whose windows have the tap that lies `shift` columns behind their first one's place inside the input. */
ALWAYS_INLINE ptrdiff_t first_column(const pool_windows *of, ptrdiff_t shift) {
    return shift < 0 ? (of->stride[2] - 1 - shift) / of->stride[2] : 0;
}
ALWAYS_INLINE ptrdiff_t last_column(const pool_windows *of, ptrdiff_t shift) {
    const ptrdiff_t last = shift < of->size[2] ? (of->size[2] - shift - 1) / of->stride[2] + 1 : 0;
    return last < of->count[2] ? last : of->count[2];
}

/* Where window i of those that cover a dim evenly begins and ends. */
ALWAYS_INLINE ptrdiff_t even_start(const pool_windows *of, int dim, ptrdiff_t i) { return i * of->size[dim] / of->count[dim]; }
ALWAYS_INLINE ptrdiff_t even_stop(const pool_windows *of, int dim, ptrdiff_t i) {
    return ((i + 1) * of->size[dim] + of->count[dim] - 1) / of->count[dim];
}

/* The rows of the windows of an output row that cover the input evenly, in turn: an expression ROW in `at_row`, where each begins. */
#define EACH_EVEN_ROW(of, od, oh, ROW)                                                                        \
    for (ptrdiff_t depth = even_start(of, 0, od), deepest = even_stop(of, 0, od); depth < deepest; depth++)   \
        for (ptrdiff_t high = even_start(of, 1, oh), highest = even_stop(of, 1, oh); high < highest; high++) { \
            ptrdiff_t at_row = (depth * (of)->size[1] + high) * (of)->size[2];                                \
            ROW                                                                                               \
        }

#include "as_f32.h"
#include "turn_of_real.h"
#include "pool_of_real.h"
#include "pool_small_of_real.h"
#include "as_f64.h"
#include "turn_of_real.h"
#include "pool_of_real.h"
#include "pool_small_of_real.h"
#include "as_i8.h"
#include "pool_whole_of_real.h"
#include "as_i16.h"
#include "pool_whole_of_real.h"
#include "as_i32.h"
#include "pool_whole_of_real.h"
#include "as_i64.h"
#include "pool_whole_of_real.h"
#include "as_u8.h"
#include "pool_whole_of_real.h"

#define WHOLE(suffix) {whole_max_##suffix, whole_places_##suffix, whole_mean_##suffix}

const pool_loops ISA(pool_loops) = {{
    {max_plane_f32, max_places_f32, max_back_plane_f32, mean_plane_f32, mean_back_plane_f32,
     even_plane_f32, even_back_plane_f32, largest_f32, small_f32},
    {max_plane_f64, max_places_f64, max_back_plane_f64, mean_plane_f64, mean_back_plane_f64,
     even_plane_f64, even_back_plane_f64, largest_f64, small_f64},
}, {[TYPE_I8] = WHOLE(i8), [TYPE_I16] = WHOLE(i16), [TYPE_I32] = WHOLE(i32), [TYPE_I64] = WHOLE(i64), [TYPE_U8] = WHOLE(u8)}};
