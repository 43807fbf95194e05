// The element types, what each is computed in, and packs of elements that move as one. No header of CUDA's is needed.
typedef long long int64;
typedef unsigned long long uint64;

struct float16 {
    unsigned short bits;
};
struct bfloat16 {
    unsigned short bits;
};

#ifdef TENSORCORE_EMULATED  // its own functions stand for these instructions
__device__ __forceinline__ float widen(float16 x) { return emulation::widen_half(x.bits); }
__device__ __forceinline__ unsigned short half_bits(float x) { return emulation::narrow_half(x); }
__device__ __forceinline__ unsigned short bfloat16_bits(float x) { return emulation::narrow_bfloat16(x); }
#else
__device__ __forceinline__ float widen(float16 x) {
    float made;
    asm("cvt.f32.f16 %0, %1;" : "=f"(made) : "h"(x.bits));
    return made;
}
__device__ __forceinline__ unsigned short half_bits(float x) {
    unsigned short made;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(made) : "f"(x));
    return made;
}
__device__ __forceinline__ unsigned short bfloat16_bits(float x) {
#if __CUDA_ARCH__ >= 800
    unsigned short made;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(made) : "f"(x));
    return made;
#else
    const unsigned all = __float_as_uint(x);
    if ((all & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (unsigned short)((all + 0x7fffu + (all >> 16 & 1u)) >> 16);
#endif
}
#endif

// What a type is computed in, and how a value of that goes back.
template <class T> struct computed {
    typedef T type;
    static __device__ __forceinline__ T narrow(T x) { return x; }
};
template <> struct computed<float16> {
    typedef float type;
    static __device__ __forceinline__ float16 narrow(float x) { return {half_bits(x)}; }
};
template <> struct computed<bfloat16> {
    typedef float type;
    static __device__ __forceinline__ bfloat16 narrow(float x) { return {bfloat16_bits(x)}; }
};
template <class T> using wide = typename computed<T>::type;

__device__ __forceinline__ float widen(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
template <class T> __device__ __forceinline__ T widen(T x) { return x; }
template <class T, class W> __device__ __forceinline__ T narrow(W x) { return computed<T>::narrow((wide<T>)x); }

template <class T> struct limits;
template <> struct limits<float> {
    static __device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }
    static __device__ __forceinline__ float nan() { return __uint_as_float(0x7fc00000u); }
    static __device__ __forceinline__ float lowest() { return -infinity(); }
    static __device__ __forceinline__ float highest() { return infinity(); }
};
template <> struct limits<double> {
    static __device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
    static __device__ __forceinline__ double nan() { return __longlong_as_double(0x7ff8000000000000ll); }
    static __device__ __forceinline__ double lowest() { return -infinity(); }
    static __device__ __forceinline__ double highest() { return infinity(); }
};
#define INTEGER_LIMITS(T, low, high)                                                                                   \
    template <> struct limits<T> {                                                                                     \
        static __device__ __forceinline__ T lowest() { return low; }                                                   \
        static __device__ __forceinline__ T highest() { return high; }                                                 \
    };
INTEGER_LIMITS(bool, false, true)
INTEGER_LIMITS(unsigned char, 0, 255)
INTEGER_LIMITS(signed char, -128, 127)
INTEGER_LIMITS(short, -32768, 32767)
INTEGER_LIMITS(int, -2147483647 - 1, 2147483647)
INTEGER_LIMITS(int64, -9223372036854775807ll - 1, 9223372036854775807ll)

// NaN is the only number that differs from itself; of integers none does.
template <class T> __device__ __forceinline__ bool is_nan(T x) { return x != x; }

// Elements that one instruction loads or stores; their address must be a multiple of their size.
template <class T, int N> struct __align__(sizeof(T) * N) pack {
    T at[N];
};
template <int N, class T> __device__ __forceinline__ pack<T, N> load(const T *from) {
    return *reinterpret_cast<const pack<T, N> *>(from);
}
template <int N, class T> __device__ __forceinline__ void store(T *to, const pack<T, N> &value) {
    *reinterpret_cast<pack<T, N> *>(to) = value;
}

// Where the elements of a strided array lie: sizes from the outermost dim in, strides in elements.
struct layout {
    int dims;
    unsigned sizes[6];
    int64 strides[6];
};
template <class I> __device__ __forceinline__ int64 place(const layout &of, I i) {
    int64 made = 0;
    for (int dim = of.dims - 1; dim > 0; dim--) {
        const I size = of.sizes[dim], above = i / size;
        made += (int64)(i - above * size) * of.strides[dim];
        i = above;
    }
    return of.dims ? made + (int64)i * of.strides[0] : 0;
}
