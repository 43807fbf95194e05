// Softmax and its logarithm, forward and backward, of rows that lie densely and of columns.
#include "types.cuh"
#include "block.cuh"
#include "rows.cuh"

enum operation { SOFTMAX, LOG_SOFTMAX };

template <int OP, class W> __device__ __forceinline__ W result(W x, soft<W> of, W log_sum) {
    return OP == LOG_SOFTMAX ? x - of.top - log_sum : exp(x - of.top) / of.sum;
}
// Of the gradient g and the result y, with the sum over the row of what `mixed` says.
template <int OP, class W> __device__ __forceinline__ W mixed(W g, W y) { return OP == LOG_SOFTMAX ? g : g * y; }
template <int OP, class W> __device__ __forceinline__ W slope(W g, W y, W sum) {
    return OP == LOG_SOFTMAX ? g - exp(y) * sum : g * y - y * sum;
}

template <int OP, class T, int V, int TEAM>
__global__ void __launch_bounds__(1024) rows(const T *x, T *y, const int64 count, const int64 n) {
    typedef wide<T> W;
    for (int64 row = team<TEAM>::first(); row < count; row += team<TEAM>::step()) {
        const soft<W> of = soft_of<TEAM, V>(x + row * n, n);
        const W log_sum = log(of.sum);
        for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
            const auto some = load<V>(x + row * n + i * V);
            pack<T, V> made;
#pragma unroll
            for (int k = 0; k < V; k++)
                made.at[k] = narrow<T>(result<OP>(widen(some.at[k]), of, log_sum));
            store<V>(y + row * n + i * V, made);
        }
    }
}

template <int OP, class T, int V, int TEAM>
__global__ void __launch_bounds__(1024) rows_backward(const T *g, const T *y, T *back, const int64 count, const int64 n) {
    typedef wide<T> W;
    for (int64 row = team<TEAM>::first(); row < count; row += team<TEAM>::step()) {
        W sum = 0;
        for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
            const auto gs = load<V>(g + row * n + i * V), ys = load<V>(y + row * n + i * V);
#pragma unroll
            for (int k = 0; k < V; k++)
                sum += mixed<OP>(widen(gs.at[k]), widen(ys.at[k]));
        }
        sum = team<TEAM>::reduce(sum, adding<W>());
        for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
            const auto gs = load<V>(g + row * n + i * V), ys = load<V>(y + row * n + i * V);
            pack<T, V> made;
#pragma unroll
            for (int k = 0; k < V; k++)
                made.at[k] = narrow<T>(slope<OP>(widen(gs.at[k]), widen(ys.at[k]), sum));
            store<V>(back + row * n + i * V, made);
        }
    }
}

// Along a dim with others behind it: a thread for each column, neighbours side by side.
template <int OP, class T>
__global__ void __launch_bounds__(256) columns(const T *x, T *y, const int64 count, const int64 n, const int64 inner) {
    typedef wide<T> W;
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 at = i / inner * n * inner + i % inner;
        soft<W> of = {limits<W>::lowest(), 0};
        for (int64 k = 0; k < n; k++)
            of = more<1>(of, load<1>(x + at + k * inner));
        const W log_sum = log(of.sum);
        for (int64 k = 0; k < n; k++)
            y[at + k * inner] = narrow<T>(result<OP>(widen(x[at + k * inner]), of, log_sum));
    }
}

template <int OP, class T>
__global__ void __launch_bounds__(256) columns_backward(const T *g, const T *y, T *back, const int64 count, const int64 n,
                                                        const int64 inner) {
    typedef wide<T> W;
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 at = i / inner * n * inner + i % inner;
        W sum = 0;
        for (int64 k = 0; k < n; k++)
            sum += mixed<OP>(widen(g[at + k * inner]), widen(y[at + k * inner]));
        for (int64 k = 0; k < n; k++)
            back[at + k * inner] = narrow<T>(slope<OP>(widen(g[at + k * inner]), widen(y[at + k * inner]), sum));
    }
}
