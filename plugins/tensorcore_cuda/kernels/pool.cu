// Pools over up to three dims, both ways; every element of a result belongs to one thread, so sums have one order.
#include "types.cuh"
#include "windows.cuh"

// The flat index within a channel of each window's largest element: the first of equal ones, the last NaN.
template <class T> __device__ __forceinline__ int64 largest(const T *x, const windows &of, int64 window, T *value) {
    const int w2 = window % of.counts[2], w1 = window / of.counts[2] % of.counts[1];
    const int w0 = (int)(window / of.counts[2] / of.counts[1]);
    wide<T> best = 0;
    int64 found = -1;
    for (int a = 0; a < of.kernel[0]; a++) {
        const int i = w0 * of.stride[0] - of.padding[0] + a * of.dilation[0];
        if (i < 0 || i >= of.sizes[0])
            continue;
        for (int b = 0; b < of.kernel[1]; b++) {
            const int j = w1 * of.stride[1] - of.padding[1] + b * of.dilation[1];
            if (j < 0 || j >= of.sizes[1])
                continue;
            for (int c = 0; c < of.kernel[2]; c++) {
                const int k = w2 * of.stride[2] - of.padding[2] + c * of.dilation[2];
                if (k < 0 || k >= of.sizes[2])
                    continue;
                const int64 at = ((int64)i * of.sizes[1] + j) * of.sizes[2] + k;
                const wide<T> one = widen(x[at]);
                if (found < 0 || one > best || is_nan(one)) {
                    best = one;
                    found = at;
                    *value = x[at];
                }
            }
        }
    }
    return found;
}

// VALUES: the largest elements, else where they are. Of a window in the padding: what `padded` says, and -1.
template <class T, bool VALUES>
__global__ void __launch_bounds__(256) max_pool(const T *x, T *made, int64 *places, const int64 count, const windows of) {
    const int64 each = (int64)of.counts[0] * of.counts[1] * of.counts[2];
    const int64 size = (int64)of.sizes[0] * of.sizes[1] * of.sizes[2];
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        T value = narrow<T>(limits<wide<T>>::lowest());
        const int64 at = largest(x + i / each * size, of, i % each, &value);
        if (VALUES)
            made[i] = value;
        else
            places[i] = at;
    }
}

// Which windows of a dim hold element i: those from `first` to below `end` whose distance from it is a whole dilation.
__device__ __forceinline__ void holding(const windows &of, int dim, int i, int *first, int *end) {
    const int reach = (of.kernel[dim] - 1) * of.dilation[dim], from = i + of.padding[dim];
    *first = from > reach ? (from - reach + of.stride[dim] - 1) / of.stride[dim] : 0;
    *end = from / of.stride[dim] + 1;
    if (*end > of.counts[dim])
        *end = of.counts[dim];
}

// The sum, over the windows whose largest element is this one, of their gradients.
template <class T>
__global__ void __launch_bounds__(256) max_pool_gradient(const T *g, const int64 *places, T *back, const int64 count,
                                                         const windows of) {
    const int64 each = (int64)of.counts[0] * of.counts[1] * of.counts[2];
    const int64 size = (int64)of.sizes[0] * of.sizes[1] * of.sizes[2];
    for (int64 e = blockIdx.x * (int64)blockDim.x + threadIdx.x; e < count; e += (int64)gridDim.x * blockDim.x) {
        const int64 channel = e / size, at = e % size;
        int first[3], end[3];
        holding(of, 0, (int)(at / of.sizes[2] / of.sizes[1]), first, end);
        holding(of, 1, (int)(at / of.sizes[2] % of.sizes[1]), first + 1, end + 1);
        holding(of, 2, (int)(at % of.sizes[2]), first + 2, end + 2);
        wide<T> sum = 0;
        for (int a = first[0]; a < end[0]; a++)
            for (int b = first[1]; b < end[1]; b++)
                for (int c = first[2]; c < end[2]; c++) {
                    const int64 window = channel * each + ((int64)a * of.counts[1] + b) * of.counts[2] + c;
                    if (places[window] == at)
                        sum += widen(g[window]);
                }
        back[e] = narrow<T>(sum);
    }
}
// The element of x where the largest of each window is.
template <class T>
__global__ void __launch_bounds__(256) max_pool_pick(const T *x, const int64 *places, T *made, const int64 count,
                                                     const windows of) {
    const int64 each = (int64)of.counts[0] * of.counts[1] * of.counts[2];
    const int64 size = (int64)of.sizes[0] * of.sizes[1] * of.sizes[2];
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x)
        made[i] = places[i] < 0 ? narrow<T>(0) : x[i / each * size + places[i]];
}

// How many elements the mean of a window is over.
template <class W> __device__ __forceinline__ W share_of(const windows &of, const int *window, int with_padding, double divisor) {
    if (divisor)
        return (W)divisor;
    int64 made = 1;
    for (int dim = 0; dim < 3; dim++) {
        int first = window[dim] * of.stride[dim] - of.padding[dim];
        int end = first + of.kernel[dim], most = of.sizes[dim] + (with_padding ? of.padding[dim] : 0);
        if (end > of.sizes[dim] + of.padding[dim])
            end = of.sizes[dim] + of.padding[dim];
        if (end > most)
            end = most;
        if (!with_padding && first < 0)
            first = 0;
        made *= end - first;
    }
    return (W)made;
}

template <class T>
__global__ void __launch_bounds__(256) avg_pool(const T *x, T *made, const int64 count, const int with_padding,
                                                const double divisor, const windows of) {
    typedef wide<T> W;
    const int64 each = (int64)of.counts[0] * of.counts[1] * of.counts[2];
    const int64 size = (int64)of.sizes[0] * of.sizes[1] * of.sizes[2];
    for (int64 e = blockIdx.x * (int64)blockDim.x + threadIdx.x; e < count; e += (int64)gridDim.x * blockDim.x) {
        const int64 w = e % each;
        const int window[3] = {(int)(w / of.counts[2] / of.counts[1]), (int)(w / of.counts[2] % of.counts[1]),
                               (int)(w % of.counts[2])};
        int first[3], end[3];
        for (int dim = 0; dim < 3; dim++) {
            first[dim] = window[dim] * of.stride[dim] - of.padding[dim];
            end[dim] = first[dim] + of.kernel[dim] < of.sizes[dim] ? first[dim] + of.kernel[dim] : of.sizes[dim];
            first[dim] = first[dim] < 0 ? 0 : first[dim];
        }
        W sum = 0;
        for (int i = first[0]; i < end[0]; i++)
            for (int j = first[1]; j < end[1]; j++)
                for (int k = first[2]; k < end[2]; k++)
                    sum += widen(x[e / each * size + ((int64)i * of.sizes[1] + j) * of.sizes[2] + k]);
        made[e] = narrow<T>(sum / share_of<W>(of, window, with_padding, divisor));
    }
}

template <class T>
__global__ void __launch_bounds__(256) avg_pool_gradient(const T *g, T *back, const int64 count, const int with_padding,
                                                         const double divisor, const windows of) {
    typedef wide<T> W;
    const int64 each = (int64)of.counts[0] * of.counts[1] * of.counts[2];
    const int64 size = (int64)of.sizes[0] * of.sizes[1] * of.sizes[2];
    for (int64 e = blockIdx.x * (int64)blockDim.x + threadIdx.x; e < count; e += (int64)gridDim.x * blockDim.x) {
        const int64 channel = e / size, at = e % size;
        int first[3], end[3], window[3];
        holding(of, 0, (int)(at / of.sizes[2] / of.sizes[1]), first, end);
        holding(of, 1, (int)(at / of.sizes[2] % of.sizes[1]), first + 1, end + 1);
        holding(of, 2, (int)(at % of.sizes[2]), first + 2, end + 2);
        W sum = 0;
        for (window[0] = first[0]; window[0] < end[0]; window[0]++)
            for (window[1] = first[1]; window[1] < end[1]; window[1]++)
                for (window[2] = first[2]; window[2] < end[2]; window[2]++) {
                    const int64 w = ((int64)window[0] * of.counts[1] + window[1]) * of.counts[2] + window[2];
                    sum += widen(g[channel * each + w]) / share_of<W>(of, window, with_padding, divisor);
                }
        back[e] = narrow<T>(sum);
    }
}
