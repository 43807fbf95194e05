/* Many bytes side by side to memory that does not overlap theirs. */
#ifndef TENSORCORE_NATIVE_WHOLE_LOOPS_H
#define TENSORCORE_NATIVE_WHOLE_LOOPS_H

#include "loop.h"

#include <string.h>

/* From WHOLE bytes on; the result is BEHIND the source where it lies less than that further, but for whole pages. */
enum { PAGE = 4096, WHOLE = 1 << 14, BEHIND = 512 };

/* memcpy takes up to twice as long where the result does not begin with a line of the cache. On a Zen 4 it is one instruction for all
   bytes, which leaves what is not in the second cache outside of it: 100,000 floats copied again and again to one place took 8.1 or
   9 to 14 us, by what had been there before. Where the result is BEHIND, loads wait for the stores before them, which look as if they
   were to the same place; not so from the end on. */
static void copy_whole(const char *from, char *to, ptrdiff_t bytes) {
    typedef int64_t half __attribute__((vector_size(LINE / 2), may_alias)); /* see NARROW_VECTORS */
    typedef int64_t any_half __attribute__((vector_size(LINE / 2), aligned(1), may_alias));
    const size_t behind = ((uintptr_t)to - (uintptr_t)from) % PAGE;
    if (bytes < WHOLE) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    const ptrdiff_t head = -(ptrdiff_t)((uintptr_t)to % LINE) & (LINE - 1), lines = (bytes - head) / LINE * LINE, rest = head + lines;
    memcpy(to, from, (size_t)head);
    memcpy(to + rest, from + rest, (size_t)(bytes - rest));
    from += head;
    to += head;
    if (behind && behind < BEHIND)
        for (ptrdiff_t j = lines - LINE; j >= 0; j -= LINE) {
            __builtin_prefetch(to + (j < AHEAD ? 0 : j - AHEAD), 1);
            *(half *)(to + j + LINE / 2) = *(const any_half *)(from + j + LINE / 2);
            *(half *)(to + j) = *(const any_half *)(from + j);
        }
    else
        for (ptrdiff_t j = 0; j < lines; j += LINE) {
            __builtin_prefetch(to + (lines - j < AHEAD ? j : j + AHEAD), 1);
            *(half *)(to + j) = *(const any_half *)(from + j);
            *(half *)(to + j + LINE / 2) = *(const any_half *)(from + j + LINE / 2);
        }
}

#endif
