// Rows in order, and the first of them in order: a bitonic network over a part of the row that lies in shared memory.
#include "types.cuh"

enum { MOST = 2048 };  // elements in shared memory

template <class T> struct item {
    wide<T> value;
    int at;  // in the row; -1 for none, which comes behind all others
};

// NaN is larger than every number; equal elements stay in the order of their places.
template <class T> __device__ __forceinline__ bool before(const item<T> &a, const item<T> &b, bool descending) {
    if (a.at < 0 || b.at < 0)
        return b.at < 0 && a.at >= 0;
    const bool a_nan = is_nan(a.value), b_nan = is_nan(b.value);
    if (a_nan || b_nan) {
        if (a_nan && b_nan)
            return a.at < b.at;
        return a_nan == descending;
    }
    if (a.value == b.value)
        return a.at < b.at;
    return (a.value > b.value) == descending;
}

template <class T> __device__ __forceinline__ void in_order(item<T> *items, int size, bool descending) {
    for (int run = 2; run <= size; run *= 2) {
        for (int step = run / 2; step; step /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
                const int low = i / step * 2 * step + i % step, high = low + step;
                const item<T> a = items[low], b = items[high];
                if (before(b, a, descending) == !(low & run)) {
                    items[low] = b;
                    items[high] = a;
                }
            }
        }
    }
    __syncthreads();
}

// The first `wanted` of each row of n elements, `inner` apart; `size`, a power of 2, is how many are ordered at a time.
// What is left of the row takes the places behind the best so far, until nothing is left.
template <class T>
__global__ void __launch_bounds__(1024) first_in_order(const T *x, T *made, int64 *places, const int64 rows, const int n,
                                                       const int64 inner, const int wanted, const int size,
                                                       const int descending) {
    __shared__ item<T> items[MOST];
    for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *from = x + row / inner * n * inner + row % inner;
        int kept = 0;
        for (int start = 0; start < n; start += size - kept, kept = wanted) {
            __syncthreads();
            for (int i = kept + threadIdx.x; i < size; i += blockDim.x) {
                const int at = start + i - kept;
                item<T> one = {wide<T>(0), -1};
                if (at < n)
                    one = {widen(from[at * inner]), at};
                items[i] = one;
            }
            in_order(items, size, descending);
        }
        const int64 to = row / inner * wanted * inner + row % inner;
        for (int i = threadIdx.x; i < wanted; i += blockDim.x) {
            made[to + i * inner] = narrow<T>(items[i].value);
            places[to + i * inner] = items[i].at;
        }
    }
}
