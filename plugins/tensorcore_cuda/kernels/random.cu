// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11), and distributions of
// its words. Block n of a call depends on the key, on where the call starts and on n alone; each makes 4 numbers, or 2 of
// 64 bits. `base` holds two numbers of the device that are added to the key and to the first block: a graph sets them anew.
#include "types.cuh"

struct words {
    unsigned at[4];
};
__device__ __forceinline__ words philox(uint64 key, uint64 counter) {
    unsigned c0 = (unsigned)counter, c1 = (unsigned)(counter >> 32), c2 = 0, c3 = 0;
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint64 p0 = (uint64)0xD2511F53u * c0, p1 = (uint64)0xCD9E8D57u * c2;
        const unsigned n0 = (unsigned)(p1 >> 32) ^ c1 ^ k0, n2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
        c1 = (unsigned)p1;
        c3 = (unsigned)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

extern "C" __global__ void __launch_bounds__(256) philox_words(unsigned *made, const uint64 count, const uint64 key,
                                                               const uint64 *base, const uint64 offset) {
    for (uint64 i = blockIdx.x * (uint64)blockDim.x + threadIdx.x; 4 * i < count; i += (uint64)gridDim.x * blockDim.x) {
        const words some = philox(base[0] + key, base[1] + offset + i);
        for (int k = 0; k < 4 && 4 * i + k < count; k++)
            made[4 * i + k] = some.at[k];
    }
}

// Uniform in [0, 1): 24 bits of a word, or 53 of two.
template <class W> struct units;
template <> struct units<float> {
    float at[4];
    __device__ __forceinline__ units(const words &some) {
        for (int k = 0; k < 4; k++)
            at[k] = (float)(some.at[k] >> 8) * 0x1p-24f;
    }
};
template <> struct units<double> {
    double at[2];
    __device__ __forceinline__ units(const words &some) {
        for (int k = 0; k < 2; k++)
            at[k] = (double)(((uint64)some.at[2 * k + 1] << 32 | some.at[2 * k]) >> 11) * 0x1p-53;
    }
};

// What each number of a block becomes; rounding may reach the upper bound, which is not in the range.
template <class T> struct uniform {
    wide<T> low, high;
    __device__ __forceinline__ void operator()(units<wide<T>> &u) const {
        for (int k = 0; k < (int)(sizeof u.at / sizeof *u.at); k++) {
            const T one = narrow<T>(u.at[k] * (high - low) + low);
            u.at[k] = widen(one) == widen(narrow<T>(high)) ? low : widen(one);
        }
    }
};
// Two from two, by Box and Muller.
template <class T> struct normal {
    wide<T> mean, deviation;
    __device__ __forceinline__ void operator()(units<wide<T>> &u) const {
        typedef wide<T> W;
        for (int k = 0; k < (int)(sizeof u.at / sizeof *u.at); k += 2) {
            const W radius = sqrt(log(W(1) - u.at[k]) * W(-2)), angle = u.at[k + 1] * W(6.283185307179586);
            u.at[k] = radius * cos(angle) * deviation + mean;
            u.at[k + 1] = radius * sin(angle) * deviation + mean;
        }
    }
};

template <class T, template <class> class F>
__global__ void __launch_bounds__(256) draw(T *made, const uint64 count, const uint64 key, const uint64 *base,
                                            const uint64 offset, const wide<T> first, const wide<T> second) {
    constexpr int N = sizeof(units<wide<T>>) / sizeof(wide<T>);
    const F<T> become = {first, second};
    for (uint64 i = blockIdx.x * (uint64)blockDim.x + threadIdx.x; N * i < count; i += (uint64)gridDim.x * blockDim.x) {
        units<wide<T>> some(philox(base[0] + key, base[1] + offset + i));
        become(some);
#pragma unroll
        for (int k = 0; k < N; k++)
            if (N * i + k < count)
                made[N * i + k] = narrow<T>(some.at[k]);
    }
}

// `one` with a probability, that of the number's place where `chances` is given, else 0.
template <class T>
__global__ void __launch_bounds__(256) bernoulli(T *made, const uint64 count, const uint64 key, const uint64 *base,
                                                 const uint64 offset, const float *chances, const float chance,
                                                 const wide<T> one) {
    for (uint64 i = blockIdx.x * (uint64)blockDim.x + threadIdx.x; 4 * i < count; i += (uint64)gridDim.x * blockDim.x) {
        const units<float> some(philox(base[0] + key, base[1] + offset + i));
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (4 * i + k < count)
                made[4 * i + k] = narrow<T>(some.at[k] < (chances ? chances[4 * i + k] : chance) ? one : wide<T>(0));
    }
}
