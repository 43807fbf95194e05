/* Copies: what they cost is their bytes, not their rows; and past the caches where there are many. */
#ifndef TENSORCORE_NATIVE_COPIES_H
#define TENSORCORE_NATIVE_COPIES_H

#include "plan.h"

#include <stdatomic.h>

/* Rows of so many bytes, which lie `down` and `to_down` bytes apart; no more is read or written. */
void native_copy_rows(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, ptrdiff_t bytes);

/* to[i][j] = from[i][at[j]] for up to SHUFFLED elements of so many bytes in a row (shuffle.h); nothing is read outside of the
   rows. */
void native_pick_rows(const char *from, ptrdiff_t down, char *to, ptrdiff_t to_down, ptrdiff_t rows, const ptrdiff_t *at,
                      ptrdiff_t count, int size);

/* A plan of one input, whose elements are copied as they are. */
void native_plan_copy(native_plan *plan, npy_intp grain);

enum { NATIVE_PAST = 16 << 20 }; /* bytes, copied or converted, of which the last cache keeps little until somebody reads them */

/* Bytes to memory that does not overlap theirs, for a body of native_parallel: past the caches where all that is copied,
   `whole` bytes, is NATIVE_PAST or more. */
void native_move(char *to, const char *from, npy_intp bytes, npy_intp whole);

/* What was stored past the caches is in memory before what the thread stores next. Once behind all of it: a wait for each
   few kilobytes takes several times as long as the stores. */
static inline void native_streamed(void) { atomic_thread_fence(memory_order_seq_cst); }

#endif
