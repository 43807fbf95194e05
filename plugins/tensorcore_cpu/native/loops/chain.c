/* The loops of chains: a tile of vectors at a time, through all ops of the chain. */
#include "functions.h"
#include "vector_ops.h"
#include "wide.h"

#include "../chain.h"

#include <string.h>

enum {
    TILE = 8, /* vectors: with them a predicted jump for each op weighs little, and they fit the registers */
    SIDE = 4, /* of them that a function takes side by side: what it needs beside the tile fits too */
};

#include "as_f32.h"
#ifdef __AVX512F__
#define WIDE_FUNCTIONS
#endif
#include "chain_of_real.h"
#include "as_f64.h"
#include "chain_of_real.h"

const chain_loops ISA(chain_loops) = {{chain_f32, chain_f64}};
