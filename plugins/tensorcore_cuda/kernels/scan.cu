// Running sums, products and extremes along a dim, from the front or (BACK) from the end.
#include "types.cuh"
#include "block.cuh"

// As the operations of reduce.cu; sums and products of float32 are made in double, as their errors add up.
template <class T> struct running {
    typedef wide<T> type;
};
template <> struct running<float> {
    typedef double type;
};
template <class T> struct sum_of {
    typedef typename running<T>::type part;
    static __device__ part none() { return 0; }
    static __device__ part of(T x, int64) { return widen(x); }
    static __device__ part join(part a, part b) { return a + b; }
    template <class R> static __device__ void put(R *out, int64 *, int64 at, part a) { out[at] = narrow<R>(a); }
};
template <class T> struct prod_of : sum_of<T> {
    typedef typename running<T>::type part;
    static __device__ part none() { return 1; }
    static __device__ part join(part a, part b) { return a * b; }
};
template <class T> struct long_sum_of {
    typedef int64 part;
    static __device__ part none() { return 0; }
    static __device__ part of(T x, int64) { return (int64)x; }
    static __device__ part join(part a, part b) { return a + b; }
    template <class R> static __device__ void put(R *out, int64 *, int64 at, part a) { out[at] = (R)a; }
};
template <class T> struct long_prod_of : long_sum_of<T> {
    typedef int64 part;
    static __device__ part none() { return 1; }
    static __device__ part join(part a, part b) { return a * b; }
};
template <class W> struct found {
    W value;
    int64 at;
};
// The extreme so far and where it was met last; once NaN, the latest NaN.
template <class T, bool LARGEST> struct extreme_of {
    typedef found<wide<T>> part;
    static __device__ part none() { return {wide<T>(0), -1}; }
    static __device__ part of(T x, int64 i) { return {widen(x), i}; }
    static __device__ part join(part a, part b) {
        if (a.at < 0 || b.at < 0)
            return a.at < 0 ? b : a;
        if (is_nan(b.value) || is_nan(a.value))
            return is_nan(b.value) ? b : a;
        return (LARGEST ? b.value >= a.value : b.value <= a.value) ? b : a;
    }
    template <class R> static __device__ void put(R *out, int64 *places, int64 at, part a) {
        out[at] = narrow<R>(a.value);
        places[at] = a.at;
    }
};
template <class T> struct max_of : extreme_of<T, true> {};
template <class T> struct min_of : extreme_of<T, false> {};
template <class W> struct scaled {
    W top, sum;
};
template <class T> struct logsumexp_of {
    typedef wide<T> W;
    typedef scaled<W> part;
    static __device__ part none() { return {limits<W>::lowest(), 0}; }
    static __device__ part of(T x, int64) { return {widen(x), 1}; }
    static __device__ part join(part a, part b) {
        const W top = larger<W>()(a.top, b.top);
        if (top == limits<W>::lowest() || top == limits<W>::infinity())
            return {top, a.sum + b.sum};
        return {top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top)};
    }
    template <class R> static __device__ void put(R *out, int64 *, int64 at, part a) {
        const bool endless = a.top == limits<W>::lowest() || a.top == limits<W>::infinity();
        out[at] = narrow<R>(endless ? a.top : a.top + log(a.sum));
    }
};

template <class A> __device__ __forceinline__ A lane_up(A value, int by) {
    union {
        A value;
        unsigned words[(sizeof(A) + 3) / 4];
    } both;
    both.value = value;
#pragma unroll
    for (int i = 0; i < (int)sizeof(both.words) / 4; i++)
        both.words[i] = __shfl_up_sync(0xffffffffu, both.words[i], by);
    return both.value;
}

// A block for each row that lies densely.
template <class Op, class T, class R, bool BACK>
__global__ void __launch_bounds__(256) rows(const T *x, R *out, int64 *places, const int64 count, const int64 n) {
    typedef typename Op::part part;
    __shared__ part totals[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
        part carried = Op::none();
        for (int64 start = 0; start < n; start += blockDim.x) {
            const int64 i = start + threadIdx.x, at = BACK ? n - 1 - i : i;
            part mine = i < n ? Op::of(x[row * n + at], at) : Op::none();
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const part before = lane_up(mine, step);
                if (lane >= step)
                    mine = Op::join(before, mine);
            }
            __syncthreads();  // the totals of the tile before were read
            if (lane == 31)
                totals[warp] = mine;
            __syncthreads();
            part before = carried;
            for (int k = 0; k < warps; k++) {
                if (k == warp)
                    mine = Op::join(before, mine);
                before = Op::join(before, totals[k]);
            }
            carried = before;
            if (i < n)
                Op::put(out, places, row * n + at, mine);
        }
    }
}

// A thread for each column, neighbours side by side.
template <class Op, class T, class R, bool BACK>
__global__ void __launch_bounds__(256) columns(const T *x, R *out, int64 *places, const int64 count, const int64 n,
                                               const int64 inner) {
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 base = i / inner * n * inner + i % inner;
        typename Op::part mine = Op::none();
        for (int64 k = 0; k < n; k++) {
            const int64 at = BACK ? n - 1 - k : k;
            mine = Op::join(mine, Op::of(x[base + at * inner], at));
            Op::put(out, places, base + at * inner, mine);
        }
    }
}
