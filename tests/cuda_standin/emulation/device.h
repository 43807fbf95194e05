// What CUDA C++ has and C++ lacks, for kernels compiled with g++: types, qualifiers, intrinsics, atomics, and the
// scheduler in threads.h that they wait in.
#pragma once
#include "threads.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define TENSORCORE_EMULATED 1
#define __CUDA_ARCH__ 900

#define __global__ static
#define __device__
#define __host__
#define __constant__ static
#define __managed__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// One section, so that the scheduler can spoil it before each block: shared memory starts undefined.
#define __shared__ static __attribute__((section("emulated_shared")))

#define threadIdx (emulation::thread_index())
#define blockIdx (emulation::block_index)
#define blockDim (emulation::block_size)
#define gridDim (emulation::grid_size)
#define warpSize 32

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

// Vector types

#define EMULATED_VECTORS(T, name)                                                                                      \
    struct name##1 { T x; };                                                                                           \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                                                 \
    struct name##3 { T x, y, z; };                                                                                     \
    struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };                                 \
    inline name##1 make_##name##1(T x) { return {x}; }                                                                 \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                                         \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                                 \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

EMULATED_VECTORS(signed char, char)
EMULATED_VECTORS(unsigned char, uchar)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(unsigned short, ushort)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(long long, longlong)
EMULATED_VECTORS(unsigned long long, ulonglong)
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
struct uint1 { unsigned x; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// 16-bit floats: bits, and conversions that round to nearest even

namespace emulation {

template <class To, class From> To bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    To made;
    memcpy(&made, &value, sizeof made);
    return made;
}

// A device loads and stores elements, and packs of them, at multiples of their alignment only; the host does anywhere.
template <class To, class From> To aligned_cast(From *from) {
    constexpr size_t alignment = alignof(std::remove_pointer_t<To>);
    if ((size_t)from % alignment)
        fail("the address of a pack of %d bytes is misaligned by %d", (int)alignment, (int)((size_t)from % alignment));
    return reinterpret_cast<To>(from);
}

inline float widen_half(unsigned short half) {
    const unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, mantissa = half & 1023u;
    if (exponent == 31)
        return bits<float>(sign | 0x7f800000u | mantissa << 13);
    if (exponent)
        return bits<float>(sign | (exponent + 112) << 23 | mantissa << 13);
    const float small = mantissa * 0x1p-24f;
    return sign ? -small : small;
}

inline unsigned short narrow_half(float value) {
    const unsigned all = bits<unsigned>(value), sign = all >> 16 & 0x8000u, size = all & 0x7fffffffu;
    if (size > 0x7f800000u)
        return 0x7fffu;
    if (size >= 0x477ff000u)  // rounds to 2^16 at least
        return (unsigned short)(sign | 0x7c00u);
    if (size < 0x38800000u)  // below the smallest normal: adding 2^-1 * 2^-23 * 2^10 rounds at the last bit
        return (unsigned short)(sign | (bits<unsigned>(bits<float>(size) + 0.5f) - 0x3f000000u));
    const unsigned odd = size >> 13 & 1u;
    return (unsigned short)(sign | (size - 0x38000000u + 0xfffu + odd) >> 13);
}

inline float widen_bfloat16(unsigned short value) { return bits<float>((unsigned)value << 16); }

inline unsigned short narrow_bfloat16(float value) {
    const unsigned all = bits<unsigned>(value);
    if ((all & 0x7fffffffu) > 0x7f800000u)
        return 0x7fffu;
    return (unsigned short)((all + 0x7fffu + (all >> 16 & 1u)) >> 16);
}

}  // namespace emulation

#define EMULATED_NARROW(name, widen, narrow)                                                                           \
    struct alignas(2) name {                                                                                           \
        unsigned short __x;                                                                                            \
        name() = default;                                                                                              \
        template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>                                     \
        name(T value) : __x(emulation::narrow((float)value)) {}                                                        \
        operator float() const { return emulation::widen(__x); }                                                       \
        name &operator+=(name other) { return *this = (float)*this + (float)other; }                                   \
        name &operator-=(name other) { return *this = (float)*this - (float)other; }                                   \
        name &operator*=(name other) { return *this = (float)*this * (float)other; }                                   \
        name &operator/=(name other) { return *this = (float)*this / (float)other; }                                   \
    };                                                                                                                 \
    inline name operator+(name a, name b) { return (float)a + (float)b; }                                              \
    inline name operator-(name a, name b) { return (float)a - (float)b; }                                              \
    inline name operator*(name a, name b) { return (float)a * (float)b; }                                              \
    inline name operator/(name a, name b) { return (float)a / (float)b; }                                              \
    inline name operator-(name a) { return -(float)a; }

EMULATED_NARROW(__half, widen_half, narrow_half)
EMULATED_NARROW(__nv_bfloat16, widen_bfloat16, narrow_bfloat16)
using half = __half;
using nv_bfloat16 = __nv_bfloat16;
inline float __half2float(__half x) { return x; }
inline __half __float2half(float x) { return x; }
inline __half __float2half_rn(float x) { return x; }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }

// Functions

template <class A, class B> std::common_type_t<A, B> min(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point<C>::value)
        return std::fmin((C)a, (C)b);
    else
        return (C)b < (C)a ? (C)b : (C)a;
}
template <class A, class B> std::common_type_t<A, B> max(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point<C>::value)
        return std::fmax((C)a, (C)b);
    else
        return (C)a < (C)b ? (C)b : (C)a;
}
inline float rsqrtf(float x) { return (float)(1.0 / std::sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }
inline void sincospif(float x, float *sine, float *cosine) { *sine = (float)std::sin(M_PI * x), *cosine = (float)std::cos(M_PI * x); }
inline void sincospi(double x, double *sine, double *cosine) { *sine = std::sin(M_PI * x), *cosine = std::cos(M_PI * x); }
inline float exp10f(float x) { return (float)std::pow(10.0, (double)x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline int __float_as_int(float x) { return emulation::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulation::bits<unsigned>(x); }
inline float __int_as_float(int x) { return emulation::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulation::bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulation::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulation::bits<double>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline unsigned __brev(unsigned x) {
    unsigned made = 0;
    for (int i = 0; i < 32; i++)
        made |= (x >> i & 1u) << (31 - i);
    return made;
}
inline int __float2int_rn(float x) { return (int)rintf(x); }
inline float __int2float_rn(int x) { return (float)x; }
template <class T> T __ldg(const T *at) { return *at; }
template <class T> T __ldcs(const T *at) { return *at; }
template <class T> T __ldcg(const T *at) { return *at; }
template <class T> void __stcs(T *at, T value) { *at = value; }
template <class T> void __stcg(T *at, T value) { *at = value; }

// Waiting

inline void __syncthreads() { emulation::wait_block(); }
inline int __syncthreads_or(int flag) { return emulation::vote_block(flag) != 0; }
inline int __syncthreads_and(int flag) { return emulation::vote_block(!flag) == 0; }
inline int __syncthreads_count(int flag) { return emulation::vote_block(flag); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulation::wait_warp(mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline unsigned __activemask() { emulation::fail("__activemask: expected an explicit mask; what is active is not defined"); }
[[noreturn]] inline void __trap() { emulation::fail("__trap was called"); }

namespace emulation {

// The value of another lane, or of none where `source` lies outside the part of the warp that `width` names.
template <class T> T exchanged(unsigned mask, T value, int source, bool inside) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    memcpy(&slots[current], &value, sizeof value);
    wait_warp(mask);
    if (inside) {
        if (!(mask >> source & 1u))
            fail("a shuffle reads lane %d, which its mask %08x leaves out", source, mask);
        memcpy(&value, &slots[current / 32 * 32 + source], sizeof value);
    }
    wait_warp(mask);
    return value;
}

}  // namespace emulation

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const int lane = emulation::current % 32;
    return emulation::exchanged(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), true);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const int lane = emulation::current % 32, source = lane - (int)delta;
    return emulation::exchanged(mask, value, source, source >= (lane & ~(width - 1)));
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const int lane = emulation::current % 32, source = lane + (int)delta;
    return emulation::exchanged(mask, value, source, source <= (lane | (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
    const int lane = emulation::current % 32, source = lane ^ with;
    return emulation::exchanged(mask, value, source, source <= (lane | (width - 1)));
}
inline unsigned __ballot_sync(unsigned mask, int flag) {
    emulation::slots[emulation::current] = flag != 0;
    emulation::wait_warp(mask);
    unsigned made = 0;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1u && emulation::slots[emulation::current / 32 * 32 + lane])
            made |= 1u << lane;
    emulation::wait_warp(mask);
    return made;
}
inline int __any_sync(unsigned mask, int flag) { return __ballot_sync(mask, flag) != 0; }
inline int __all_sync(unsigned mask, int flag) { return __ballot_sync(mask, !flag) == 0; }

// Atomics: threads change only where they wait, so a plain update is one

#define EMULATED_ATOMIC(name, expression)                                                                              \
    template <class T, class U> T name(T *at, U given) {                                                               \
        const T old = *at, value = (T)given;                                                                           \
        (void)value;                                                                                                   \
        *at = (T)(expression);                                                                                         \
        return old;                                                                                                    \
    }
EMULATED_ATOMIC(atomicAdd, old + value)
EMULATED_ATOMIC(atomicSub, old - value)
EMULATED_ATOMIC(atomicMax, old < value ? value : old)
EMULATED_ATOMIC(atomicMin, value < old ? value : old)
EMULATED_ATOMIC(atomicExch, value)
EMULATED_ATOMIC(atomicAnd, old & value)
EMULATED_ATOMIC(atomicOr, old | value)
EMULATED_ATOMIC(atomicXor, old ^ value)
template <class T> T atomicCAS(T *at, T expected, T value) {
    const T old = *at;
    if (old == expected)
        *at = value;
    return old;
}
