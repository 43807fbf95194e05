/* Blocks of floats as three parts of bfloat16 each, and their products by the processor's unit for tiles of these: what products of
   matrices share with attention. */
#ifndef TENSORCORE_NATIVE_THIRDS_H
#define TENSORCORE_NATIVE_THIRDS_H

#include "gemm_bf16.h"

/* Whether this machine has the unit, and products of floats may be its own. */
bool thirds_wanted(void);

#ifdef BF16_TILES
enum {
    THIRDS_SIDE = 32,                          /* rows of a block, columns of a panel: two tiles of */
    THIRDS_STEP = 32,                          /* numbers of the inner dim each */
    THIRDS_BYTES = 3 * THIRDS_SIDE * 64,       /* of a step of a block */
    THIRDS_LONG = 1024,
    THIRDS_SUMS = THIRDS_SIDE * THIRDS_SIDE,   /* floats */
};

/* A block of one side: the thirds of each step one after the other, from a cache line on, and the power of two that scales them. */
typedef struct {
    char *thirds;
    int power;
} thirds_block;

/* Where a product of a block and a panel goes, and what it is added to. */
typedef struct {
    ptrdiff_t rows, columns, before_row, made_row;
    const float *before; /* NULL for zeros */
    float *made;
    bool apart; /* it is summed by itself before it is added: sums of more than THIRDS_LONG numbers in one go would be less exact */
} thirds_place;

/* `rows` of a left side that lie `row` apart, and `count` of the inner dim in each side by side; as they are, or scaled. False where numbers
   are not finite, or too far apart to be scaled together: the block is of no use then. */
bool thirds_pack_rows(const float *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t count, thirds_block *made);

/* The same for numbers up to 2^58, of which those that are too small may lose digits, or become zeros under 2^-126. */
void thirds_pack_rows_as_they_are(const float *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t count, thirds_block *made);

/* Columns of a right side that lie side by side in each of `count` rows of the inner dim, or in half of them where they are pairs (gemm.h);
   those of the next panel come from memory meanwhile. */
bool thirds_pack_columns(const float *from, ptrdiff_t row, ptrdiff_t columns, ptrdiff_t count, bool pairs, thirds_block *made);

/* A product over so many steps, between a beginning and an end that one thread calls; `sums` is room for THIRDS_SUMS floats, from a
   cache line on. */
void thirds_begin(void);
void thirds_multiply(const thirds_block *left, const thirds_block *right, ptrdiff_t steps, const thirds_place *to, float *sums);
void thirds_end(void);
#endif

#endif
