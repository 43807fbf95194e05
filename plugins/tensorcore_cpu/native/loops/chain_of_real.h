/* The chain of one type. */

#define TILED _Pragma("GCC unroll 8") for (int k = 0; k < vectors; k++)

#define ALONE(name, expression)                                                                               \
    case CHAIN_##name:                                                                                        \
        TILED {                                                                                               \
            V x = value[k];                                                                                   \
            value[k] = expression;                                                                            \
        }                                                                                                     \
        break;
#define BESIDE(name, expression)                                                                              \
    case CHAIN_##name:                                                                                        \
        if (step) {                                                                                           \
            TILED {                                                                                           \
                V x = value[k], y = ((const V_U *)at)[k];                                                     \
                value[k] = expression;                                                                        \
            }                                                                                                 \
        } else {                                                                                              \
            V y = *(const REAL *)at - (V){0};                                                                 \
            TILED {                                                                                           \
                V x = value[k];                                                                               \
                value[k] = expression;                                                                        \
            }                                                                                                 \
        }                                                                                                     \
        break;

/* Vectors side by side where wide.h has the function, else element by element, as elementwise.c has it. */
#ifdef WIDE_FUNCTIONS
#define FUNCTION(name)                                                                                        \
    case CHAIN_##name: {                                                                                      \
        __m512 x[TILE];                                                                                       \
        TILED x[k] = (__m512)value[k];                                                                        \
        if (vectors == 1)                                                                                     \
            name##_wide(x, 1);                                                                                \
        else                                                                                                  \
            _Pragma("GCC unroll 8") for (int k = 0; k < vectors; k += SIDE)                                   \
                name##_wide(x + k, SIDE);                                                                     \
        TILED value[k] = (V)x[k];                                                                             \
        break;                                                                                                \
    }
#else
#define OF_ELEMENTS(name)                                                                                     \
    static __attribute__((noinline)) void F(name##_of_elements)(REAL *x, int count) {                         \
        INDEPENDENT for (int i = 0; i < count; i++)                                                           \
            x[i] = F(name##_)(x[i]);                                                                          \
    }
CHAIN_FUNCTION(OF_ELEMENTS)
#undef OF_ELEMENTS
#define FUNCTION(name)                                                                                        \
    case CHAIN_##name: {                                                                                      \
        _Alignas(VECTOR) REAL space[TILE * LANES];                                                            \
        TILED ((V_U *)space)[k] = value[k];                                                                   \
        F(name##_of_elements)(space, vectors * LANES);                                                        \
        TILED value[k] = ((V_U *)space)[k];                                                                   \
        break;                                                                                                \
    }
#endif

/* So many vectors, a constant where this is called, through all ops; `offset` in bytes. */
ALWAYS_INLINE void F(chain_through)(const chain_op *ops, int count, const char *const *operands,
                                    const ptrdiff_t *steps, char *const *places, ptrdiff_t offset, int vectors) {
    const V zero = {0};
    V value[TILE];
    if (steps[0])
        TILED value[k] = ((const V_U *)(operands[0] + offset))[k];
    else
        TILED value[k] = *(const REAL *)operands[0] - zero;
    for (const chain_op *op = ops, *end = ops + count; op < end; op++) {
        if (chain_stores(op->code)) {
            V_U *to = (V_U *)(places[op->operand] + offset);
            if (op->code == CHAIN_stream && (uintptr_t)to % VECTOR == 0)
                TILED STREAM((REAL *)(to + k), value[k]);
            else
                TILED to[k] = value[k];
            continue;
        }
        ptrdiff_t step = steps[op->operand];
        const char *at = operands[op->operand] + (step ? offset : 0);
        switch (op->code) {
            VECTOR_UNARY(ALONE)
            CHAIN_FUNCTION(FUNCTION)
            VECTOR_BINARY(BESIDE)
        }
    }
}
#undef TILED
#undef ALONE
#undef BESIDE
#undef FUNCTION
#undef WIDE_FUNCTIONS

static void F(chain)(const chain_op *ops, int count, const char *const *operands, const ptrdiff_t *steps,
                     char *const *places, ptrdiff_t size) {
    const ptrdiff_t bytes = size * (ptrdiff_t)sizeof(REAL);
    ptrdiff_t done = 0;
    for (; bytes - done >= TILE * VECTOR; done += TILE * VECTOR)
        F(chain_through)(ops, count, operands, steps, places, done, TILE);
    for (; bytes - done >= VECTOR; done += VECTOR)
        F(chain_through)(ops, count, operands, steps, places, done, 1);
    if (done == bytes)
        return;
    /* The rest in vectors of their own. */
    char in[CHAIN_OPERANDS][VECTOR] = {{0}}, out[CHAIN_OPERANDS][VECTOR];
    const char *at[CHAIN_OPERANDS];
    char *to[CHAIN_OPERANDS];
    size_t rest = (size_t)(bytes - done);
    int most = 0;
    for (const chain_op *op = ops; op < ops + count; op++)
        most = !chain_stores(op->code) && op->operand > most ? op->operand : most;
    for (int k = 0; k <= most; k++) {
        at[k] = steps[k] ? in[k] : operands[k];
        if (steps[k])
            memcpy(in[k], operands[k] + done, rest);
    }
    for (int k = 0; k < CHAIN_OPERANDS; k++)
        to[k] = out[k];
    F(chain_through)(ops, count, at, steps, to, 0, 1);
    for (const chain_op *op = ops; op < ops + count; op++)
        if (chain_stores(op->code))
            memcpy(places[op->operand] + done, out[op->operand], rest);
}
