// A team of threads for each row: a warp (TEAM 32) or a whole block (TEAM 0). Blocks are one row of whole warps.
template <int TEAM> struct team;
template <> struct team<32> {
    static __device__ __forceinline__ int64 first() { return blockIdx.x * (int64)(blockDim.x / 32) + threadIdx.x / 32; }
    static __device__ __forceinline__ int64 step() { return gridDim.x * (int64)(blockDim.x / 32); }
    static __device__ __forceinline__ int rank() { return threadIdx.x % 32; }
    static __device__ __forceinline__ int size() { return 32; }
    template <class A, class F> static __device__ __forceinline__ A reduce(A value, F join) { return warp_reduce(value, join); }
};
template <> struct team<0> {
    static __device__ __forceinline__ int64 first() { return blockIdx.x; }
    static __device__ __forceinline__ int64 step() { return gridDim.x; }
    static __device__ __forceinline__ int rank() { return threadIdx.x; }
    static __device__ __forceinline__ int size() { return blockDim.x; }
    template <class A, class F> static __device__ __forceinline__ A reduce(A value, F join) { return block_reduce(value, join); }
};

// The largest so far, and the sum of exponentials relative to it.
template <class W> struct soft {
    W top, sum;
};
// No NaN where there are minus infinities only; one where there is an infinity, as its share is undefined.
template <class W> __device__ __forceinline__ W falling(W from, W top) {
    return top == limits<W>::lowest() ? W(1) : exp(from - top);
}
template <class W> struct softer {
    __device__ __forceinline__ soft<W> operator()(soft<W> a, soft<W> b) const {
        const W top = larger<W>()(a.top, b.top);
        return {top, a.sum * falling(a.top, top) + b.sum * falling(b.top, top)};
    }
};
template <int V, class T> __device__ __forceinline__ soft<wide<T>> more(soft<wide<T>> a, const pack<T, V> &some) {
    typedef wide<T> W;
    W top = a.top;
#pragma unroll
    for (int k = 0; k < V; k++)
        top = larger<W>()(top, widen(some.at[k]));
    if (top != a.top)
        a.sum *= falling(a.top, top);
#pragma unroll
    for (int k = 0; k < V; k++)
        a.sum += falling(widen(some.at[k]), top);
    return {top, a.sum};
}
// Of a row of n elements, V of which move as one.
template <int TEAM, int V, class T> __device__ __forceinline__ soft<wide<T>> soft_of(const T *row, int64 n) {
    typedef wide<T> W;
    soft<W> mine = {limits<W>::lowest(), 0};
    for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size())
        mine = more<V>(mine, load<V>(row + i * V));
    return team<TEAM>::reduce(mine, softer<W>());
}
