/* Attention by thirds of bfloat16: what both ways share. */
#ifndef TENSORCORE_NATIVE_ATTENTION_THIRDS_H
#define TENSORCORE_NATIVE_ATTENTION_THIRDS_H

#include "attention_call.h"
#include "thirds.h"

#ifdef BF16_TILES
enum { ATTENTION_BLOCK = 128 }; /* columns of a block of scores, which stays in the first cache with its powers' thirds */

/* Gives each of these blocks its room, of so many bytes. */
static inline void attention_take_blocks(char *start, size_t *at, thirds_block *blocks, ptrdiff_t count, ptrdiff_t bytes) {
    for (ptrdiff_t i = 0; i < count; i++) {
        char *const thirds = attention_take(start, at, bytes, 1);
        if (start)
            blocks[i].thirds = thirds;
    }
}

/* Rows of `width` numbers that lie side by side, as columns of panels, with room for a panel that is turned over; and up to ATTENTION_BLOCK
   rows as rows of the inner dim. False where their numbers are not fit. */
bool attention_pack_turned(const float *rows, npy_intp count, npy_intp width, float *turned, thirds_block *made);
bool attention_pack_inner(const float *rows, npy_intp count, npy_intp width, thirds_block *made);
#endif

#endif
