// Reading and writing at places that an array of indices names. An index that lies outside touches nothing and is
// reported in `fault`.
#include "types.cuh"
#include "inside.cuh"

// Units of `inner` behind the dim, which is `size` long in x: made[outer, i, inner] = x[outer, index[i], inner].
template <class T, class I>
__global__ void __launch_bounds__(256) select(const T *x, const I *index, T *made, report *fault, const int64 count,
                                              const int64 picked, const int64 inner, const int64 size,
                                              const int negative) {
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 above = i / inner, at = inside(index[above % picked], size, negative, fault);
        if (at >= 0)
            made[i] = x[(above / picked * size + at) * inner + i % inner];
    }
}

// made[outer, index[i], inner] += source[outer, i, inner] * alpha, in any order; what is `skipped` adds nothing.
template <class T, class A, class I>
__global__ void __launch_bounds__(256) add(A *made, const I *index, const T *source, report *fault, const int64 count,
                                           const int64 picked, const int64 inner, const int64 size, const int64 skipped,
                                           const int negative, const double alpha) {
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 above = i / inner, at = inside(index[above % picked], size, negative, fault);
        if (at >= 0 && at != skipped)
            atomicAdd(made + (above / picked * size + at) * inner + i % inner, (A)(widen(source[i]) * (wide<T>)alpha));
    }
}

// Indices in the shape of the result, along one dim of x: where[] is the layout of x with a step of 0 along the dim.
template <class T, class I>
__global__ void __launch_bounds__(256) gather(const T *x, const I *index, T *made, report *fault, const int64 count,
                                              const int64 size, const int64 step, const layout where) {
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 at = inside(index[i], size, false, fault);
        if (at >= 0)
            made[i] = x[place(where, (uint64)i) + at * step];
    }
}
// The other way; of equal indices any one counts.
template <class T, class I>
__global__ void __launch_bounds__(256) scatter(T *made, const I *index, const T *source, report *fault, const int64 count,
                                               const int64 size, const int64 step, const layout where,
                                               const layout from) {
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 at = inside(index[i], size, false, fault);
        if (at >= 0)
            made[place(where, (uint64)i) + at * step] = source[place(from, (uint64)i)];
    }
}
template <class T, class A, class I>
__global__ void __launch_bounds__(256) scatter_add(A *made, const I *index, const T *source, report *fault,
                                                   const int64 count, const int64 size, const int64 step,
                                                   const layout where, const layout from) {
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 at = inside(index[i], size, false, fault);
        if (at >= 0)
            atomicAdd(made + place(where, (uint64)i) + at * step, (A)widen(source[place(from, (uint64)i)]));
    }
}
