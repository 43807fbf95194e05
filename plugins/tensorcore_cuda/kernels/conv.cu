// Windows of images copied side by side, and added back: convolutions in between are products of matrices.
#include "types.cuh"
#include "windows.cuh"

// columns[sample, channel * taps + tap, pixel] = x[sample, channel, where tap reads for pixel], 0 in the padding.
template <class T>
__global__ void __launch_bounds__(256) gather_windows(const T *x, T *columns, const int64 count, const windows of) {
    const int64 pixels = (int64)of.counts[0] * of.counts[1] * of.counts[2];
    const int64 size = (int64)of.sizes[0] * of.sizes[1] * of.sizes[2];
    const int taps = of.kernel[0] * of.kernel[1] * of.kernel[2];
    for (int64 e = blockIdx.x * (int64)blockDim.x + threadIdx.x; e < count; e += (int64)gridDim.x * blockDim.x) {
        const int pixel = (int)(e % pixels), tap = (int)(e / pixels % taps);
        const int64 plane = e / pixels / taps;  // of a sample and a channel
        const int i = pixel / of.counts[2] / of.counts[1] * of.stride[0] - of.padding[0] +
                      tap / of.kernel[2] / of.kernel[1] * of.dilation[0];
        const int j = pixel / of.counts[2] % of.counts[1] * of.stride[1] - of.padding[1] +
                      tap / of.kernel[2] % of.kernel[1] * of.dilation[1];
        const int k = pixel % of.counts[2] * of.stride[2] - of.padding[2] + tap % of.kernel[2] * of.dilation[2];
        const bool inside = i >= 0 && i < of.sizes[0] && j >= 0 && j < of.sizes[1] && k >= 0 && k < of.sizes[2];
        columns[e] = inside ? x[plane * size + ((int64)i * of.sizes[1] + j) * of.sizes[2] + k] : narrow<T>(0);
    }
}

// The adjoint: each element adds up, in one order, the taps of the windows that read it.
template <class T>
__global__ void __launch_bounds__(256) scatter_windows(const T *columns, T *x, const int64 count, const windows of) {
    const int64 pixels = (int64)of.counts[0] * of.counts[1] * of.counts[2];
    const int64 size = (int64)of.sizes[0] * of.sizes[1] * of.sizes[2];
    const int taps = of.kernel[0] * of.kernel[1] * of.kernel[2];
    for (int64 e = blockIdx.x * (int64)blockDim.x + threadIdx.x; e < count; e += (int64)gridDim.x * blockDim.x) {
        const int64 plane = e / size, at = e % size;
        const int place[3] = {(int)(at / of.sizes[2] / of.sizes[1]), (int)(at / of.sizes[2] % of.sizes[1]),
                              (int)(at % of.sizes[2])};
        wide<T> sum = 0;
        for (int tap = 0; tap < taps; tap++) {
            const int offset[3] = {tap / of.kernel[2] / of.kernel[1], tap / of.kernel[2] % of.kernel[1], tap % of.kernel[2]};
            int64 pixel = 0;
            bool reads = true;
#pragma unroll
            for (int dim = 0; dim < 3; dim++) {
                const int from = place[dim] + of.padding[dim] - offset[dim] * of.dilation[dim];
                const int window = from / of.stride[dim];
                reads = reads && from >= 0 && from % of.stride[dim] == 0 && window < of.counts[dim];
                pixel = pixel * of.counts[dim] + window;
            }
            if (reads)
                sum += widen(columns[(plane * taps + tap) * pixels + pixel]);
        }
        x[e] = narrow<T>(sum);
    }
}
