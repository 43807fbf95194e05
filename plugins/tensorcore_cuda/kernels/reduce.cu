// Reductions over any dims: each result is joined from many elements in an order that does not depend on the device.
#include "types.cuh"
#include "block.cuh"

// An operation has a type of parts, an empty part, the part with one element more, two parts as one, and the result.

template <class T> struct sum_of {
    typedef wide<T> part;
    static __device__ part none() { return 0; }
    static __device__ part with(part a, T x, int64) { return a + widen(x); }
    static __device__ part join(part a, part b) { return a + b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct long_sum_of {  // of integers and bools
    typedef int64 part;
    static __device__ part none() { return 0; }
    static __device__ part with(part a, T x, int64) { return a + (int64)x; }
    static __device__ part join(part a, part b) { return a + b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct mean_of : sum_of<T> {
    typedef wide<T> part;
    static __device__ part result(part a, int64 count, double) { return a / (part)count; }
};
template <class T> struct nansum_of : sum_of<T> {
    typedef wide<T> part;
    static __device__ part with(part a, T x, int64) { return is_nan(widen(x)) ? a : a + widen(x); }
};
template <class T> struct prod_of {
    typedef wide<T> part;
    static __device__ part none() { return 1; }
    static __device__ part with(part a, T x, int64) { return a * widen(x); }
    static __device__ part join(part a, part b) { return a * b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct long_prod_of {
    typedef int64 part;
    static __device__ part none() { return 1; }
    static __device__ part with(part a, T x, int64) { return a * (int64)x; }
    static __device__ part join(part a, part b) { return a * b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct amax_of {
    typedef wide<T> part;
    static __device__ part none() { return limits<part>::lowest(); }
    static __device__ part with(part a, T x, int64) { return join(a, widen(x)); }
    static __device__ part join(part a, part b) { return larger<part>()(a, b); }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct amin_of {
    typedef wide<T> part;
    static __device__ part none() { return limits<part>::highest(); }
    static __device__ part with(part a, T x, int64) { return join(a, widen(x)); }
    static __device__ part join(part a, part b) { return a <= b || is_nan(a) ? a : b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct all_of {
    typedef int part;
    static __device__ part none() { return 1; }
    static __device__ part with(part a, T x, int64) { return a && widen(x) != 0; }
    static __device__ part join(part a, part b) { return a && b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct any_of {
    typedef int part;
    static __device__ part none() { return 0; }
    static __device__ part with(part a, T x, int64) { return a || widen(x) != 0; }
    static __device__ part join(part a, part b) { return a || b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct count_nonzero_of {
    typedef int64 part;
    static __device__ part none() { return 0; }
    static __device__ part with(part a, T x, int64) { return a + (widen(x) != 0); }
    static __device__ part join(part a, part b) { return a + b; }
    static __device__ part result(part a, int64, double) { return a; }
};

// The extreme and where it is: the first of equal ones, the first NaN before all others.
template <class T> struct found {
    wide<T> value;
    int64 at;
};
template <class T, bool LARGEST> struct extreme_of {
    typedef found<T> part;
    static __device__ part none() { return {wide<T>(0), -1}; }
    static __device__ bool before(const part &a, const part &b) {
        if (a.at < 0 || b.at < 0)
            return b.at < 0;
        if (is_nan(a.value) || is_nan(b.value))
            return is_nan(a.value) && (!is_nan(b.value) || a.at < b.at);
        return a.value == b.value ? a.at < b.at : LARGEST ? a.value > b.value : a.value < b.value;
    }
    static __device__ part with(part a, T x, int64 i) { return join(a, part{widen(x), i}); }
    static __device__ part join(part a, part b) { return before(a, b) ? a : b; }
    static __device__ part result(part a, int64, double) { return a; }
};
template <class T> struct max_dim_of : extreme_of<T, true> {};
template <class T> struct min_dim_of : extreme_of<T, false> {};

// Mean and squared distances from it, joined as Chan, Golub and LeVeque do.
template <class A> struct moments {
    A mean, squares, count;
};
template <class T> struct var_mean_of {
    typedef moments<wide<T>> part;
    typedef wide<T> W;
    static __device__ part none() { return {0, 0, 0}; }
    static __device__ part with(part a, T x, int64) {
        const W value = widen(x), away = value - a.mean;
        a.count += W(1);
        a.mean += away / a.count;
        a.squares += away * (value - a.mean);
        return a;
    }
    static __device__ part join(part a, part b) {
        if (b.count == 0)
            return a;
        if (a.count == 0)
            return b;
        const W count = a.count + b.count, away = b.mean - a.mean, share = b.count / count;
        return {a.mean + away * share, a.squares + b.squares + away * away * a.count * share, count};
    }
    // The variance takes the place of the squares.
    static __device__ part result(part a, int64 count, double correction) {
        const double free = count > correction ? count - correction : 0;
        return {count ? a.mean : limits<W>::nan(), a.squares / W(free), 0};
    }
};
template <class T> struct std_mean_of : var_mean_of<T> {
    typedef moments<wide<T>> part;
    static __device__ part result(part a, int64 count, double correction) {
        a = var_mean_of<T>::result(a, count, correction);
        a.squares = sqrt(a.squares);
        return a;
    }
};

// Powers of sizes: p is 0, 1, 2 or any other number; the infinite ones are extremes.
template <class T, int P> struct norm_of {
    typedef wide<T> part;
    static __device__ part none() { return 0; }
    static __device__ part with(part a, T x, int64) {
        const part size = widen(x) < 0 ? -widen(x) : widen(x);
        return P == 0 ? a + part(size != 0) : P == 1 ? a + size : a + size * size;
    }
    static __device__ part join(part a, part b) { return a + b; }
    static __device__ part result(part a, int64, double) { return P == 2 ? sqrt(a) : a; }
};
template <class T> struct norm_0_of : norm_of<T, 0> {};
template <class T> struct norm_1_of : norm_of<T, 1> {};
template <class T> struct norm_2_of : norm_of<T, 2> {};
template <class T> struct size_max_of : amax_of<T> {
    typedef wide<T> part;
    static __device__ part with(part a, T x, int64) { return larger<part>()(a, widen(x) < 0 ? -widen(x) : widen(x)); }
};

// log(sum(exp(x))): the largest so far, and the sum relative to it.
template <class A> struct scaled_sum {
    A top, sum;
};
template <class T> struct logsumexp_of {
    typedef scaled_sum<wide<T>> part;
    typedef wide<T> W;
    static __device__ part none() { return {limits<W>::lowest(), 0}; }
    static __device__ part with(part a, T x, int64) { return join(a, {widen(x), W(1)}); }
    static __device__ part join(part a, part b) {
        const W top = larger<W>()(a.top, b.top);
        if (top == limits<W>::lowest() || top == limits<W>::infinity())
            return {top, a.sum + b.sum};
        return {top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top)};
    }
    static __device__ W result(part a, int64, double) {
        return a.top == limits<W>::lowest() || a.top == limits<W>::infinity() ? a.top : a.top + log(a.sum);
    }
};

// How results leave: one array, or two of which the second has a type of its own; either may be missing.
template <class R, class V> __device__ void put(R *out, void *, int64 at, V value) { out[at] = narrow<R>(value); }
template <class R, class T> __device__ void put(R *out, void *second, int64 at, found<T> value) {
    if (out)
        out[at] = narrow<R>(value.value);
    ((int64 *)second)[at] = value.at;
}
template <class R, class A> __device__ void put(R *out, void *second, int64 at, moments<A> value) {
    out[at] = narrow<R>(value.squares);
    if (second)
        ((R *)second)[at] = narrow<R>(value.mean);
}

// Threads of a block share one result: the elements lie in `along`, and are cut into `splits` pieces.
template <class Op, class T, class R, int V>
__global__ void __launch_bounds__(256) rows(const T *x, R *out, void *second, void *parts, const int64 count,
                                            const int64 results, const int splits, const double option,
                                            const layout kept, const layout along) {
    typedef typename Op::part part;
    for (int64 job = blockIdx.x; job < results * splits; job += gridDim.x) {
        const int64 row = job / splits, piece = job % splits;
        const int64 length = (count / V + splits - 1) / splits, first = piece * length;
        const int64 end = first + length < count / V ? first + length : count / V;
        const T *from = x + place(kept, (uint64)row);
        part mine = Op::none();
        if (V > 1) {  // `along` is one dim without gaps
            for (int64 i = first + threadIdx.x; i < end; i += blockDim.x) {
                const auto some = load<V>(from + i * V);
#pragma unroll
                for (int k = 0; k < V; k++)
                    mine = Op::with(mine, some.at[k], i * V + k);
            }
        } else if (count < 1ll << 31) {
            for (unsigned i = (unsigned)first + threadIdx.x; i < (unsigned)end; i += blockDim.x)
                mine = Op::with(mine, from[place(along, i)], i);
        } else {
            for (int64 i = first + threadIdx.x; i < end; i += blockDim.x)
                mine = Op::with(mine, from[place(along, (uint64)i)], i);
        }
        mine = block_reduce(mine, Op::join);
        if (threadIdx.x == 0) {
            if (splits > 1)
                ((part *)parts)[job] = mine;
            else
                put(out, second, row, Op::result(mine, count, option));
        }
    }
}

// Neighbouring threads have neighbouring results; 8 of them, each of its own piece, share one. Blocks are 32 x 8.
template <class Op, class T, class R>
__global__ void __launch_bounds__(256) columns(const T *x, R *out, void *second, void *parts, const int64 count,
                                               const int64 results, const int splits, const double option,
                                               const layout kept, const layout along) {
    typedef typename Op::part part;
    __shared__ part shared[8][32];
    const int64 tiles = (results + 31) / 32;
    for (int64 job = blockIdx.x; job < tiles * splits; job += gridDim.x) {
        const int64 column = job / splits * 32 + threadIdx.x, piece = job % splits;
        const int64 length = (count + splits - 1) / splits, first = piece * length;
        const int64 end = first + length < count ? first + length : count;
        part mine = Op::none();
        if (column < results) {
            const T *from = x + place(kept, (uint64)column);
            if (count < 1ll << 31)
                for (unsigned i = (unsigned)first + threadIdx.y; i < (unsigned)end; i += 8)
                    mine = Op::with(mine, from[place(along, i)], i);
            else
                for (int64 i = first + threadIdx.y; i < end; i += 8)
                    mine = Op::with(mine, from[place(along, (uint64)i)], i);
        }
        __syncthreads();
        shared[threadIdx.y][threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.y == 0 && column < results) {
            for (int i = 1; i < 8; i++)
                mine = Op::join(mine, shared[i][threadIdx.x]);
            if (splits > 1)
                ((part *)parts)[column * splits + piece] = mine;
            else
                put(out, second, column, Op::result(mine, count, option));
        }
    }
}

// The pieces of each result, joined by one warp.
template <class Op, class T, class R>
__global__ void __launch_bounds__(256) join_parts(R *out, void *second, const void *parts, const int64 count,
                                                  const int64 results, const int splits, const double option) {
    typedef typename Op::part part;
    for (int64 row = blockIdx.x * 8ll + threadIdx.x / 32; row < results; row += gridDim.x * 8ll) {
        part mine = Op::none();
        for (int i = threadIdx.x % 32; i < splits; i += 32)
            mine = Op::join(mine, ((const part *)parts)[row * splits + i]);
        mine = warp_reduce(mine, Op::join);
        if (threadIdx.x % 32 == 0)
            put(out, second, row, Op::result(mine, count, option));
    }
}
