// Reductions over the lanes of a warp and the threads of a block. Every thread gets the result, in one fixed order.
template <class A> __device__ __forceinline__ A lane_xor(A value, int with) {
    union {
        A value;
        unsigned words[(sizeof(A) + 3) / 4];
    } both;
    both.value = value;
#pragma unroll
    for (int i = 0; i < (int)sizeof(both.words) / 4; i++)
        both.words[i] = __shfl_xor_sync(0xffffffffu, both.words[i], with);
    return both.value;
}

template <class A, class F> __device__ __forceinline__ A warp_reduce(A value, F join) {
#pragma unroll
    for (int step = 16; step; step /= 2) {
        const A other = lane_xor(value, step);
        value = threadIdx.x & step ? join(other, value) : join(value, other);
    }
    return value;
}

// Blocks are rows of whole warps, at most 32.
template <class A, class F> __device__ __forceinline__ A block_reduce(A value, F join) {
    __shared__ A parts[32];
    value = warp_reduce(value, join);
    __syncthreads();  // the parts of an earlier call were read
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (unsigned i = 1; i < blockDim.x / 32; i++)
        value = join(value, parts[i]);
    return value;
}

template <class A> struct adding {
    __device__ __forceinline__ A operator()(A a, A b) const { return a + b; }
};
// NaN wins over every number.
template <class A> struct larger {
    __device__ __forceinline__ A operator()(A a, A b) const { return a >= b || is_nan(a) ? a : b; }
};
template <class A> __device__ __forceinline__ A block_sum(A value) { return block_reduce(value, adding<A>()); }
template <class A> __device__ __forceinline__ A block_max(A value) { return block_reduce(value, larger<A>()); }
