// Optimizer steps over many parameters in one launch.
#include "types.cuh"
#include "block.cuh"

// Arrays that go through a launch side by side: the addresses of ARRAYS kinds of them, their sizes, the first block of
// each, and two numbers of each. It travels as a parameter, of which there are at most 4 KB.
template <int ARRAYS> struct group {
    void *arrays[ARRAYS][32];
    int64 sizes[32];
    double numbers[2][32];
    int first[33];
    int count;
};

enum { CHUNK = 8192 };  // elements of a block

// Which array this block works on, and from which element.
template <int ARRAYS> __device__ __forceinline__ int mine(const group<ARRAYS> &all, int64 *start) {
    int low = 0, high = all.count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if ((int)blockIdx.x < all.first[middle])
            high = middle - 1;
        else
            low = middle;
    }
    *start = ((int)blockIdx.x - all.first[low]) * (int64)CHUNK;
    return low;
}

template <class T, int ARRAYS, int V, class F>
__device__ __forceinline__ void each(const group<ARRAYS> &all, const int at, const int64 start, F step) {
    const int64 size = all.sizes[at], end = start + CHUNK < size ? start + CHUNK : size;
    for (int64 i = start + threadIdx.x * V; i < end; i += blockDim.x * V) {
        pack<T, V> some[ARRAYS];
        if (V == 1 || i + V <= end) {
#pragma unroll
            for (int k = 0; k < ARRAYS; k++)
                some[k] = load<V>((const T *)all.arrays[k][at] + i);
#pragma unroll
            for (int j = 0; j < V; j++) {
                T *values[ARRAYS];
#pragma unroll
                for (int k = 0; k < ARRAYS; k++)
                    values[k] = &some[k].at[j];
                step(values);
            }
#pragma unroll
            for (int k = 0; k < ARRAYS; k++)
                if (k != 1)  // the gradient is read only
                    store<V>((T *)all.arrays[k][at] + i, some[k]);
        } else {
            for (int64 j = i; j < end; j++) {
                T one[ARRAYS], *values[ARRAYS];
                for (int k = 0; k < ARRAYS; k++) {
                    one[k] = ((const T *)all.arrays[k][at])[j];
                    values[k] = one + k;
                }
                step(values);
                for (int k = 0; k < ARRAYS; k++)
                    if (k != 1)
                        ((T *)all.arrays[k][at])[j] = one[k];
            }
        }
    }
}

// Parameters, gradients, averages, squares and (with MAXIMA) the largest squares; the numbers are the size of the step
// and the correction of the squares' root.
template <class T, int V, bool MAXIMA>
__global__ void __launch_bounds__(256) adam_step(const group<4 + MAXIMA> all, const double lr, const double beta1,
                                                 const double beta2, const double eps, const double weight_decay,
                                                 const int decoupled, const int maximize) {
    typedef wide<T> W;
    int64 start;
    const int at = mine(all, &start);
    const W size = W(all.numbers[0][at]), correction = W(all.numbers[1][at]);
    const W shrink = W(1.0 - lr * weight_decay), decay = W(weight_decay), floor = W(eps);
    const W new1 = W(1.0 - beta1), keep2 = W(beta2), new2 = W(1.0 - beta2);
    each<T, 4 + MAXIMA, V>(all, at, start, [=](T *const *values) {
        W p = widen(*values[0]), g = widen(*values[1]), m = widen(*values[2]), v = widen(*values[3]);
        if (maximize)
            g = -g;
        if (decoupled)
            p *= shrink;
        else
            g += p * decay;
        m += (g - m) * new1;
        v = v * keep2 + g * g * new2;
        W most = v;
        if (MAXIMA) {
            most = larger<W>()(widen(*values[4 - !MAXIMA]), v);
            *values[4 - !MAXIMA] = narrow<T>(most);
        }
        p -= m / (sqrt(most) / correction + floor) * size;
        *values[0] = narrow<T>(p);
        *values[2] = narrow<T>(m);
        *values[3] = narrow<T>(v);
    });
}

// Parameters, gradients and (with MOMENTA) a buffer each.
template <class T, int V, bool MOMENTA>
__global__ void __launch_bounds__(256) sgd_step(const group<2 + MOMENTA> all, const double lr, const double momentum,
                                                const double dampening, const double weight_decay, const int nesterov,
                                                const int maximize, const int first) {
    typedef wide<T> W;
    int64 start;
    const int at = mine(all, &start);
    const W rate = W(lr), keep = W(momentum), fresh = W(1.0 - dampening), decay = W(weight_decay);
    each<T, 2 + MOMENTA, V>(all, at, start, [=](T *const *values) {
        const W p = widen(*values[0]);
        W g = widen(*values[1]);
        if (maximize)
            g = -g;
        g += p * decay;
        if (MOMENTA) {
            T *const buffer = values[2 - !MOMENTA];
            const W b = first ? g : widen(*buffer) * keep + g * fresh;
            *buffer = narrow<T>(b);
            g = nesterov ? g + b * keep : b;
        }
        *values[0] = narrow<T>(p - g * rate);
    });
}

// Multiplies arrays (the first of two kinds; the second is the same) and notes whether any element is not finite.
template <class T, int V>
__global__ void __launch_bounds__(256) unscale(const group<1> all, bool *found, const double factor) {
    typedef wide<T> W;
    int64 start;
    const int at = mine(all, &start);
    bool wrong = false;
    each<T, 1, V>(all, at, start, [&](T *const *values) {
        const W value = widen(*values[0]);
        wrong = wrong || !(value - value == 0);
        *values[0] = narrow<T>(value * W(factor));
    });
    if (wrong)
        *found = true;  // whoever writes it writes the same
}
