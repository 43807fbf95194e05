// A sparse matrix times a dense one of n columns. The sparse one's elements are three arrays: rows, columns and values, or
// with `starts`, where each row's elements begin, in the place of the rows. An index outside touches nothing.
#include "types.cuh"
#include "block.cuh"
#include "inside.cuh"
#include "rows.cuh"

// Row by row: TEAM lanes for each element of the result, 1 or a warp, whose lanes share the row's elements.
template <class T, class I, int TEAM>
__global__ void __launch_bounds__(256) product(const I *starts, const I *columns, const T *values, const T *dense, T *made,
                                               report *fault, const int64 count, const int64 n, const int64 size) {
    const int64 first = blockIdx.x * (int64)(blockDim.x / TEAM) + threadIdx.x / TEAM;
    const int64 step = gridDim.x * (int64)(blockDim.x / TEAM);
    for (int64 i = first; i < count; i += step) {
        const int64 row = i / n, column = i % n, end = starts[row + 1];
        wide<T> sum = 0;
        for (int64 e = (int64)starts[row] + threadIdx.x % TEAM; e < end; e += TEAM) {
            const int64 at = inside(columns[e], size, false, fault);
            if (at >= 0)
                sum += widen(values[e]) * widen(dense[at * n + column]);
        }
        if constexpr (TEAM == 32)
            sum = warp_reduce(sum, adding<wide<T>>());
        if (threadIdx.x % TEAM == 0)
            made[i] = narrow<T>(sum);
    }
}

// Element by element, in any order: made[to[e]] += values[e] * dense[from[e]].
template <class T, class A, class I>
__global__ void __launch_bounds__(256) add(const I *to, const I *from, const T *values, const T *dense, A *made,
                                           report *fault, const int64 count, const int64 n, const int64 rows,
                                           const int64 size) {
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 e = i / n, column = i % n, row = inside(to[e], rows, false, fault), at = inside(from[e], size, false, fault);
        if (row >= 0 && at >= 0)
            atomicAdd(made + row * n + column, (A)(widen(values[e]) * widen(dense[at * n + column])));
    }
}

// The gradient of each value: its row of g times its row of the dense matrix. A warp for each.
template <class T, class I>
__global__ void __launch_bounds__(256) pairs(const I *rows, const I *columns, const T *g, const T *dense, T *made,
                                             report *fault, const int64 count, const int64 n, const int64 size) {
    for (int64 e = team<32>::first(); e < count; e += team<32>::step()) {
        const int64 at = inside(columns[e], size, false, fault), row = rows[e];
        wide<T> sum = 0;
        for (int64 column = team<32>::rank(); at >= 0 && column < n; column += 32)
            sum += widen(g[row * n + column]) * widen(dense[at * n + column]);
        sum = team<32>::reduce(sum, adding<wide<T>>());
        if (team<32>::rank() == 0)
            made[e] = narrow<T>(sum);
    }
}

// The row of each element, from where the rows begin.
template <class I> __global__ void __launch_bounds__(256) expand(const I *starts, I *made, const int64 count) {
    for (int64 row = team<32>::first(); row < count; row += team<32>::step())
        for (int64 e = (int64)starts[row] + team<32>::rank(); e < starts[row + 1]; e += 32)
            made[e] = (I)row;
}

// Where each row begins, of rows in ascending order: how many elements have a smaller one.
template <class I>
__global__ void __launch_bounds__(256) begin(const I *rows, I *made, const int64 count, const int64 elements) {
    for (int64 row = blockIdx.x * (int64)blockDim.x + threadIdx.x; row < count; row += (int64)gridDim.x * blockDim.x) {
        int64 low = 0, high = elements;
        while (low < high) {
            const int64 middle = (low + high) / 2;
            if (rows[middle] < row)
                low = middle + 1;
            else
                high = middle;
        }
        made[row] = (I)low;
    }
}
