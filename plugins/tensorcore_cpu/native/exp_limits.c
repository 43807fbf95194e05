/* Between which numbers exp is computed: the bits of floating-point numbers, read by loops/functions.h. */
#include <stdint.h>

extern const int32_t exp_limits_f32[4];
extern const int64_t exp_limits_f64[3];

/* Below the first exp is 0, below the second it is denormal or 0, over the third infinite. */
const int32_t exp_limits_f32[4] = {
    (int32_t)0xc2d00000, /* -104 */
    (int32_t)0xc2af3333, /* -87.6 */
    0x42b20000, /* 89 */
    (int32_t)0xc2fe0000, /* -127: 2 to that power, as gelu computes it, is 0 */
};
const int64_t exp_limits_f64[3] = {
    (int64_t)0xc087500000000000, /* -746 */
    (int64_t)0xc08624cccccccccd, /* -708.6 */
    0x4086300000000000, /* 710 */
};
