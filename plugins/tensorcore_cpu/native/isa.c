/* Which instruction sets this processor has, and which one is in force. */
#include "native.h"

#include <string.h>
#ifdef NATIVE_X86
#include <cpuid.h>
#endif

native_isa native_chosen_isa = ISA_PLAIN;
static const char *const ISA_NAMES[] = {"plain", "avx2", "avx512"};

#ifdef NATIVE_X86
/* Not every compiler's __builtin_cpu_supports knows the name. That the system keeps the registers is known with AVX2. */
static bool has_f16c(void) {
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static native_isa best_isa(void) {
    native_isa found = ISA_PLAIN;
#ifdef NATIVE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        found = ISA_AVX2;
    if (found == ISA_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        found = ISA_AVX512;
#endif
    return found;
}

int native_isa_set(const char *name) {
    native_isa best = best_isa();
    native_isa isa = ISA_PLAIN;
    while (name && isa <= best && strcmp(name, ISA_NAMES[isa]))
        isa++;
    if (isa > best) {
        PyErr_Format(PyExc_ValueError, "native.isa: expected an instruction set of this machine, got '%s'; "
                     "its best is '%s'", name, ISA_NAMES[best]);
        return -1;
    }
    native_chosen_isa = name ? isa : best;
    return 0;
}

PyObject *native_isa_name(void) { return PyUnicode_FromString(ISA_NAMES[native_chosen_isa]); }

bool native_on_intel(void) {
#ifdef NATIVE_X86
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

PyObject *native_is_intel(PyObject *module, PyObject *unused) { return PyBool_FromLong(native_on_intel()); }
