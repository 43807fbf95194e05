// Normalisation of rows, forward and backward, and the sums behind the gradients of weights and biases.
#include "types.cuh"
#include "block.cuh"
#include "rows.cuh"

// Element i of a row belongs to the weight row % groups * per_row + i / span.

// T is the type of x, P that of weight and bias; DENSE says that span is 1 and weights can be read in packs.
template <class T, class P, int V, int TEAM, bool DENSE>
__global__ void __launch_bounds__(1024) standardize(const T *x, const P *weight, const P *bias, T *y, wide<T> *means,
                                                    wide<T> *vars, const int64 rows, const int64 n, const int64 groups,
                                                    const int64 per_row, const int64 span, const double eps,
                                                    const int centre) {
    typedef wide<T> W;
    for (int64 row = team<TEAM>::first(); row < rows; row += team<TEAM>::step()) {
        const T *from = x + row * n;
        W mean = 0, var = 0;
        if (centre) {
            for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
                const auto some = load<V>(from + i * V);
#pragma unroll
                for (int k = 0; k < V; k++)
                    mean += widen(some.at[k]);
            }
            mean = team<TEAM>::reduce(mean, adding<W>()) / W(n);
        }
        for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
            const auto some = load<V>(from + i * V);
#pragma unroll
            for (int k = 0; k < V; k++)
                var += (widen(some.at[k]) - mean) * (widen(some.at[k]) - mean);
        }
        var = team<TEAM>::reduce(var, adding<W>()) / W(n);
        const W scale = W(1) / sqrt(var + W(eps));
        const int64 base = row % groups * per_row;
        for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
            const auto some = load<V>(from + i * V);
            pack<T, V> made;
            pack<P, V> factor, shift;
            if (DENSE && weight)
                factor = load<V>(weight + base + i * V);
            if (DENSE && bias)
                shift = load<V>(bias + base + i * V);
#pragma unroll
            for (int k = 0; k < V; k++) {
                W value = (widen(some.at[k]) - mean) * scale;
                if (weight)
                    value *= W(widen(DENSE ? factor.at[k] : weight[base + (i * V + k) / span]));
                if (bias)
                    value += W(widen(DENSE ? shift.at[k] : bias[base + (i * V + k) / span]));
                made.at[k] = narrow<T>(value);
            }
            store<V>(y + row * n + i * V, made);
        }
        if (team<TEAM>::rank() == 0) {
            if (centre)
                means[row] = mean;
            vars[row] = var;
        }
    }
}

template <class W> struct two {
    W first, second;
};
template <class W> struct adding_two {
    __device__ __forceinline__ two<W> operator()(two<W> a, two<W> b) const { return {a.first + b.first, a.second + b.second}; }
};

template <class T, class P, int V, int TEAM, bool DENSE>
__global__ void __launch_bounds__(1024) standardize_backward(const T *g, const T *x, const P *weight, const wide<T> *means,
                                                             const wide<T> *vars, T *back, const int64 rows, const int64 n,
                                                             const int64 groups, const int64 per_row, const int64 span,
                                                             const double eps, const int centre) {
    typedef wide<T> W;
    for (int64 row = team<TEAM>::first(); row < rows; row += team<TEAM>::step()) {
        const W mean = centre ? means[row] : W(0), scale = W(1) / sqrt(vars[row] + W(eps));
        const int64 base = row % groups * per_row;
        two<W> sums = {0, 0};  // of the weighted gradient, and of its product with the standardized x
        for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
            const auto gs = load<V>(g + row * n + i * V), xs = load<V>(x + row * n + i * V);
            pack<P, V> factor;
            if (DENSE && weight)
                factor = load<V>(weight + base + i * V);
#pragma unroll
            for (int k = 0; k < V; k++) {
                W value = widen(gs.at[k]);
                if (weight)
                    value *= W(widen(DENSE ? factor.at[k] : weight[base + (i * V + k) / span]));
                sums.first += value;
                sums.second += value * (widen(xs.at[k]) - mean) * scale;
            }
        }
        sums = team<TEAM>::reduce(sums, adding_two<W>());
        const W shift = centre ? sums.first / W(n) : W(0), slope = sums.second / W(n);
        for (int64 i = team<TEAM>::rank(); i < n / V; i += team<TEAM>::size()) {
            const auto gs = load<V>(g + row * n + i * V), xs = load<V>(x + row * n + i * V);
            pack<T, V> made;
            pack<P, V> factor;
            if (DENSE && weight)
                factor = load<V>(weight + base + i * V);
#pragma unroll
            for (int k = 0; k < V; k++) {
                W value = widen(gs.at[k]);
                if (weight)
                    value *= W(widen(DENSE ? factor.at[k] : weight[base + (i * V + k) / span]));
                made.at[k] = narrow<T>((value - shift - (widen(xs.at[k]) - mean) * scale * slope) * scale);
            }
            store<V>(back + row * n + i * V, made);
        }
    }
}

// Sums of g and of g times the standardized x for each channel of (batch, channels, span), in pieces: parts is
// (pieces, channels, 2). The statistics of an element are number batch * per_batch + channel / share.

template <class T>
__global__ void __launch_bounds__(256) channel_sums(const T *g, const T *x, const wide<T> *means, const wide<T> *vars,
                                                    two<wide<T>> *parts, const int64 batch, const int64 channels,
                                                    const int64 span, const int64 per_batch, const int64 share,
                                                    const int pieces, const double eps) {
    typedef wide<T> W;
    for (int64 job = blockIdx.x; job < channels * pieces; job += gridDim.x) {
        const int64 channel = job / pieces, piece = job % pieces, length = (batch + pieces - 1) / pieces;
        two<W> mine = {0, 0};
        for (int64 one = piece * length; one < batch && one < (piece + 1) * length; one++) {
            const int64 of = one * per_batch + channel / share;
            const W mean = means ? means[of] : W(0), scale = W(1) / sqrt(vars[of] + W(eps));
            const int64 at = (one * channels + channel) * span;
            for (int64 i = threadIdx.x; i < span; i += blockDim.x) {
                const W value = widen(g[at + i]);
                mine.first += value;
                mine.second += value * (widen(x[at + i]) - mean) * scale;
            }
        }
        mine = block_reduce(mine, adding_two<W>());
        if (threadIdx.x == 0)
            parts[piece * channels + channel] = mine;
    }
}

// The same for a span of 1: neighbouring threads have neighbouring channels. Blocks are 32 x 8.
template <class T>
__global__ void __launch_bounds__(256) column_sums(const T *g, const T *x, const wide<T> *means, const wide<T> *vars,
                                                   two<wide<T>> *parts, const int64 batch, const int64 channels,
                                                   const int64 per_batch, const int64 share, const int pieces,
                                                   const double eps) {
    typedef wide<T> W;
    __shared__ two<W> shared[8][32];
    const int64 tiles = (channels + 31) / 32;
    for (int64 job = blockIdx.x; job < tiles * pieces; job += gridDim.x) {
        const int64 channel = job / pieces * 32 + threadIdx.x, piece = job % pieces;
        const int64 length = (batch + pieces - 1) / pieces;
        two<W> mine = {0, 0};
        if (channel < channels) {
            for (int64 one = piece * length + threadIdx.y; one < batch && one < (piece + 1) * length; one += 8) {
                const int64 of = one * per_batch + channel / share;
                const W mean = means ? means[of] : W(0), scale = W(1) / sqrt(vars[of] + W(eps));
                const W value = widen(g[one * channels + channel]);
                mine.first += value;
                mine.second += value * (widen(x[one * channels + channel]) - mean) * scale;
            }
        }
        __syncthreads();
        shared[threadIdx.y][threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.y == 0 && channel < channels) {
            for (int i = 1; i < 8; i++)
                mine = adding_two<W>()(mine, shared[i][threadIdx.x]);
            parts[piece * channels + channel] = mine;
        }
    }
}

// The pieces as gradients of weight and bias, either of which may be missing, and as sums that stay wide.
template <class W, class P>
__global__ void __launch_bounds__(256) join_channels(const two<W> *parts, P *weight, P *bias, W *sums, W *products,
                                                     const int64 channels, const int pieces) {
    for (int64 channel = blockIdx.x * (int64)blockDim.x + threadIdx.x; channel < channels;
         channel += (int64)gridDim.x * blockDim.x) {
        two<W> mine = {0, 0};
        for (int i = 0; i < pieces; i++)
            mine = adding_two<W>()(mine, parts[i * channels + channel]);
        if (weight)
            weight[channel] = narrow<P>(mine.second);
        if (bias)
            bias[channel] = narrow<P>(mine.first);
        if (sums) {
            sums[channel] = mine.first;
            products[channel] = mine.second;
        }
    }
}
