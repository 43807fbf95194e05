/* The element types that the C kernels know, shared by the entries and the loops; nothing of Python in here. */
#ifndef TENSORCORE_NATIVE_TYPES_H
#define TENSORCORE_NATIVE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define NATIVE_X86 1
#endif

typedef enum {
    TYPE_F32,
    TYPE_F64,
    TYPE_BF16,
    TYPE_F16,
    TYPE_I8,
    TYPE_I16,
    TYPE_I32,
    TYPE_I64,
    TYPE_U8,
    TYPE_BOOL,
    TYPES,
    TYPE_NONE = TYPES
} native_type;

static const unsigned char TYPE_SIZE[TYPES] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 1};

static inline bool native_is_half(native_type type) { return type == TYPE_BF16 || type == TYPE_F16; }
static inline bool native_is_floating(native_type type) { return type == TYPE_F32 || type == TYPE_F64 || native_is_half(type); }

static inline ptrdiff_t at_most(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t at_least(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }
static inline ptrdiff_t parts_of(ptrdiff_t count, ptrdiff_t most) { return (count + most - 1) / most; }
static inline ptrdiff_t rounded_up(ptrdiff_t count, ptrdiff_t unit) { return parts_of(count, unit) * unit; }

/* Whether the processor is one of Intel's (isa.c): for what was measured to be another choice there. */
bool native_on_intel(void);

/* A loop over one dim: pointers and steps in bytes of the inputs, then of the output. */
typedef void (*native_loop)(char *const *data, const ptrdiff_t *steps, ptrdiff_t count);

#endif
