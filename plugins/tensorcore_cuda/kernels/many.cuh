// Many arrays of one dtype in one launch: where each block works, and a function called for each element.
#include "types.cuh"

// Arrays that go through a launch side by side: the addresses of ARRAYS kinds of them, their sizes, the first block of
// each, and two numbers of each. It travels as a parameter, of which there are at most 4 KB.
template <int ARRAYS> struct group {
    void *arrays[ARRAYS][32];
    int64 sizes[32];
    double numbers[2][32];
    int first[33];
    int count;
};

enum { CHUNK = 8192 };  // elements of a block

// Which array this block works on, and from which element.
template <int ARRAYS> __device__ __forceinline__ int mine(const group<ARRAYS> &all, int64 *start) {
    int low = 0, high = all.count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if ((int)blockIdx.x < all.first[middle])
            high = middle - 1;
        else
            low = middle;
    }
    *start = ((int)blockIdx.x - all.first[low]) * (int64)CHUNK;
    return low;
}

// Array 1 is stored only where ``scaled``: it is the gradient.
template <class T, int ARRAYS, int V, class F>
__device__ __forceinline__ void each(const group<ARRAYS> &all, const int at, const int64 start, const bool scaled, F step) {
    const int64 size = all.sizes[at], end = start + CHUNK < size ? start + CHUNK : size;
    for (int64 i = start + threadIdx.x * V; i < end; i += blockDim.x * V) {
        pack<T, V> some[ARRAYS];
        if (V == 1 || i + V <= end) {
#pragma unroll
            for (int k = 0; k < ARRAYS; k++)
                some[k] = load<V>((const T *)all.arrays[k][at] + i);
#pragma unroll
            for (int j = 0; j < V; j++) {
                T *values[ARRAYS];
#pragma unroll
                for (int k = 0; k < ARRAYS; k++)
                    values[k] = &some[k].at[j];
                step(values);
            }
#pragma unroll
            for (int k = 0; k < ARRAYS; k++)
                if (k != 1 || scaled)
                    store<V>((T *)all.arrays[k][at] + i, some[k]);
        } else {
            for (int64 j = i; j < end; j++) {
                T one[ARRAYS], *values[ARRAYS];
                for (int k = 0; k < ARRAYS; k++) {
                    one[k] = ((const T *)all.arrays[k][at])[j];
                    values[k] = one + k;
                }
                step(values);
                for (int k = 0; k < ARRAYS; k++)
                    if (k != 1 || scaled)
                        ((T *)all.arrays[k][at])[j] = one[k];
            }
        }
    }
}
