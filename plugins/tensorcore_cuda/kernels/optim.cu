// Optimizer steps over many parameters in one launch, and what is done to their gradients before.
#include "many.cuh"
#include "block.cuh"
#include "functions.cuh"

// What a GradScaler gives a step: the gradients are divided by the one, and nothing happens where the other is not 0.
struct scaling {
    const float *grad_scale, *found_inf;
};

template <class W> __device__ __forceinline__ W scale_of(const scaling &given) {
    return given.grad_scale ? W(*given.grad_scale) : W(1);
}

__device__ __forceinline__ bool skipped(const scaling &given) { return given.found_inf && *given.found_inf != 0; }

// The counts of the arrays of one launch, and how many those are.
template <class T> struct counts {
    T *at[32];
    int64 size;
};

// Counts a step of each, and computes the two numbers that adam_step takes of it; a step that does not happen is not counted.
template <class T>
__global__ void __launch_bounds__(32) count_steps(const counts<T> all, double *numbers, const double lr, const double beta1,
                                                  const double beta2, const T *found_inf) {
    const int i = threadIdx.x;
    if (i >= all.size || (found_inf && *found_inf != 0))
        return;
    const T count = *all.at[i] + 1;
    *all.at[i] = count;
    numbers[2 * i] = lr / (1 - pow(beta1, (double)count));
    numbers[2 * i + 1] = sqrt(1 - pow(beta2, (double)count));
}

// Parameters, gradients, averages, squares and (with MAXIMA) the largest squares; the numbers are the size of the step
// and the correction of the squares' root, in ``counted`` if that is given.
template <class T, int V, bool MAXIMA>
__global__ void __launch_bounds__(256) adam_step(const group<4 + MAXIMA> all, const double lr, const double beta1,
                                                 const double beta2, const double eps, const double weight_decay,
                                                 const int decoupled, const int maximize, const double *counted,
                                                 const scaling given) {
    typedef wide<T> W;
    if (skipped(given))
        return;
    int64 start;
    const int at = mine(all, &start);
    const W size = W(counted ? counted[2 * at] : all.numbers[0][at]);
    const W correction = W(counted ? counted[2 * at + 1] : all.numbers[1][at]);
    const W scale = scale_of<W>(given);
    const bool scaled = given.grad_scale;
    const W shrink = W(1.0 - lr * weight_decay), decay = W(weight_decay), floor = W(eps);
    const W new1 = W(1.0 - beta1), keep2 = W(beta2), new2 = W(1.0 - beta2);
    each<T, 4 + MAXIMA, V>(all, at, start, scaled, [=](T *const *values) {
        W p = widen(*values[0]), g = widen(*values[1]), m = widen(*values[2]), v = widen(*values[3]);
        if (scaled) {
            g /= scale;
            *values[1] = narrow<T>(g);
        }
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
                                                const int maximize, const int first, const scaling given) {
    typedef wide<T> W;
    if (skipped(given))
        return;
    int64 start;
    const int at = mine(all, &start);
    const W scale = scale_of<W>(given);
    const bool scaled = given.grad_scale;
    const W rate = W(lr), keep = W(momentum), fresh = W(1.0 - dampening), decay = W(weight_decay);
    each<T, 2 + MOMENTA, V>(all, at, start, scaled, [=](T *const *values) {
        const W p = widen(*values[0]);
        W g = widen(*values[1]);
        if (scaled) {
            g /= scale;
            *values[1] = narrow<T>(g);
        }
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

// Multiplies arrays by the product of two factors, one of them on the device if it is given, and notes whether any
// element is not finite.
template <class T, int V>
__global__ void __launch_bounds__(256) unscale(const group<1> all, bool *found, const double factor, const float *there) {
    typedef wide<T> W;
    int64 start;
    const int at = mine(all, &start);
    const W by = W(there ? factor * *there : factor);
    bool wrong = false;
    each<T, 1, V>(all, at, start, false, [&](T *const *values) {
        const W value = widen(*values[0]);
        wrong = wrong || !(value - value == 0);
        *values[0] = narrow<T>(value * by);
    });
    if (wrong)
        *found = true;  // whoever writes it writes the same
}

// Powers of the sizes of a block's elements, joined: P is 1, 2, or 0 for the largest of them.
template <class W, int P> struct joining {
    __device__ __forceinline__ W operator()(W a, W b) const { return P ? a + b : larger<W>()(a, b); }
};
template <class T, int V, int P>
__global__ void __launch_bounds__(256) norm_parts(const group<1> all, wide<T> *parts) {
    typedef wide<T> W;
    int64 start;
    const int at = mine(all, &start);
    const T *const from = (const T *)all.arrays[0][at];
    const int64 size = all.sizes[at], end = start + CHUNK < size ? start + CHUNK : size;
    W sum = 0;
    for (int64 i = start + threadIdx.x * V; i < end; i += blockDim.x * V) {
        if (V == 1 || i + V <= end) {
            const auto some = load<V>(from + i);
#pragma unroll
            for (int k = 0; k < V; k++) {
                const W value = absolute(widen(some.at[k]));
                sum = joining<W, P>()(sum, P == 2 ? value * value : value);
            }
        } else {
            for (int64 j = i; j < end; j++) {
                const W value = absolute(widen(from[j]));
                sum = joining<W, P>()(sum, P == 2 ? value * value : value);
            }
        }
    }
    sum = block_reduce(sum, joining<W, P>());
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

// The norm of each array from the parts of its blocks, which lie between two of `first`; a warp each.
struct bounds {
    int first[33];
    int count;
};
template <class T, int P>
__global__ void __launch_bounds__(1024) join_norms(const bounds all, const wide<T> *parts, T *norms) {
    typedef wide<T> W;
    const int at = threadIdx.x / 32;
    if (at >= all.count)
        return;
    W sum = 0;
    for (int i = all.first[at] + threadIdx.x % 32; i < all.first[at + 1]; i += 32)
        sum = joining<W, P>()(sum, parts[i]);
    sum = warp_reduce(sum, joining<W, P>());
    if (threadIdx.x % 32 == 0)
        norms[at] = narrow<T>(P == 2 ? sqrt(sum) : sum);
}
