/* What generated files are written in, for one type. */

/* One vector of a row, the k-th from an address on; one number for all lanes; and one vector stored, past the caches too. */
ALWAYS_INLINE V F(load)(const char *from, int k) { return ((const V_U *)from)[k]; }
ALWAYS_INLINE V F(number)(const char *from) { return *(const REAL *)from - (V){0}; }
ALWAYS_INLINE void F(store)(char *to, int k, V x) { ((V_U *)to)[k] = x; }
ALWAYS_INLINE void F(stream)(char *to, int k, V x) {
    V_U *place = (V_U *)to + k;
    if ((uintptr_t)place % VECTOR == 0)
        STREAM((REAL *)place, x);
    else
        *place = x;
}
ALWAYS_INLINE VI F(load_bool)(const char *from, int k) { return __builtin_convertvector(((const F(bytes) *)from)[k], VI) != 0; }
ALWAYS_INLINE VI F(number_bool)(const char *from) { return (VI){0} - (*from != 0); }
ALWAYS_INLINE void F(store_bool)(char *to, int k, VI x) { ((F(bytes) *)to)[k] = __builtin_convertvector(x & 1, F(bytes)); }

/* Ops */

#define OF_ONE(name, expression)                                                                              \
    ALWAYS_INLINE V F(name)(V x) {                                                                            \
        const V zero = {0};                                                                                   \
        V made = expression;                                                                                  \
        (void)zero;                                                                                           \
        SEAL(made);                                                                                           \
        return made;                                                                                          \
    }
#define OF_TWO(name, expression)                                                                              \
    ALWAYS_INLINE V F(name)(V x, V y) {                                                                       \
        const V zero = {0};                                                                                   \
        V made = expression;                                                                                  \
        (void)zero;                                                                                           \
        SEAL(made);                                                                                           \
        return made;                                                                                          \
    }
#define TEST(name, expression)                                                                                \
    ALWAYS_INLINE VI F(name)(V x) {                                                                           \
        const V zero = {0};                                                                                   \
        (void)zero;                                                                                           \
        return expression;                                                                                    \
    }
#define COMPARE(name, expression)                                                                             \
    ALWAYS_INLINE VI F(name)(V x, V y) {                                                                      \
        const V zero = {0};                                                                                   \
        (void)zero;                                                                                           \
        return expression;                                                                                    \
    }
VECTOR_UNARY(OF_ONE)
VECTOR_BINARY(OF_TWO)
VECTOR_TESTS(TEST)
VECTOR_COMPARE(COMPARE)
#undef OF_ONE
#undef OF_TWO
#undef TEST
#undef COMPARE

ALWAYS_INLINE V F(sign)(V x) { return CHOOSE(x > 0, (V){0} + 1, CHOOSE(x < 0, (V){0} - 1, (V){0})); }
ALWAYS_INLINE V F(where)(VI chosen, V x, V y) { return CHOOSE(chosen, x, y); }
ALWAYS_INLINE V F(from_bool)(VI x) { return (V)(x & (VI)((V){0} + 1)); }
ALWAYS_INLINE VI F(to_bool)(V x) { return x != 0; }

/* Functions: vectors side by side where wide.h has them, else element by element, as elementwise.c has them. */

#define OF_ELEMENTS(name, expression)                                                                         \
    static __attribute__((noinline)) void F(name##_of_elements)(REAL *all, int count) {                       \
        INDEPENDENT for (int i = 0; i < count; i++) {                                                         \
            const REAL x = all[i];                                                                            \
            all[i] = expression;                                                                              \
        }                                                                                                     \
    }                                                                                                         \
    ALWAYS_INLINE void F(name)(V *value, int vectors) {                                                       \
        _Alignas(VECTOR) REAL space[WRITTEN_TILE * LANES];                                                    \
        TILED ((V_U *)space)[k] = value[k];                                                                     \
        F(name##_of_elements)(space, vectors * LANES);                                                        \
        TILED value[k] = ((V_U *)space)[k];                                                                    \
        TILED SEAL(value[k]);                                                                                  \
    }
#define ELEMENTWISE(name) OF_ELEMENTS(name, F(name##_)(x))
#ifdef WIDE_FUNCTIONS
#define SIDE_BY_SIDE(name)                                                                                          \
    ALWAYS_INLINE void F(name)(V *value, int vectors) {                                                       \
        __m512 x[WRITTEN_TILE];                                                                               \
        TILED x[k] = (__m512)value[k];                                                                         \
        if (vectors == 1)                                                                                     \
            name##_wide(x, 1);                                                                                \
        else                                                                                                  \
            _Pragma("GCC unroll 8") for (int k = 0; k < vectors; k += WRITTEN_SIDE)                           \
                name##_wide(x + k, WRITTEN_SIDE);                                                             \
        TILED value[k] = (V)x[k];                                                                              \
        TILED SEAL(value[k]);                                                                                  \
    }
CHAIN_FUNCTION(SIDE_BY_SIDE)
#undef SIDE_BY_SIDE
#undef WIDE_FUNCTIONS
#else
CHAIN_FUNCTION(ELEMENTWISE)
#endif
ELEMENTWISE(expm1)
ELEMENTWISE(log1p)
ELEMENTWISE(erf)
OF_ELEMENTS(floor, (REAL)floor(x))
OF_ELEMENTS(ceil, (REAL)ceil(x))
OF_ELEMENTS(trunc, (REAL)trunc(x))
OF_ELEMENTS(round, (REAL)rint(x))
#undef OF_ELEMENTS
#undef ELEMENTWISE
