// Negative log likelihood of classes, by itself and of a softmax as one, over (batch, classes, span).
#include "types.cuh"
#include "block.cuh"
#include "rows.cuh"

// What the class of one place costs; NaN where the class is none of those there are, as no kernel can raise.
template <class T> __device__ __forceinline__ wide<T> weight_of(const T *weight, int64 target, int64 classes, int64 ignored) {
    if (target == ignored)
        return 0;
    if (target < 0 || target >= classes)
        return limits<wide<T>>::nan();
    return weight ? widen(weight[target]) : wide<T>(1);
}

// For each place: log(sum(exp)) of its scores, the weight of its class, and the loss. A team has one row; span is 1.
template <class T, int V, int TEAM>
__global__ void __launch_bounds__(1024) entropy_rows(const T *x, const int64 *target, const T *weight, wide<T> *logs,
                                                     wide<T> *each, wide<T> *losses, const int64 batch,
                                                     const int64 classes, const int64 ignored) {
    typedef wide<T> W;
    for (int64 row = team<TEAM>::first(); row < batch; row += team<TEAM>::step()) {
        const soft<W> of = soft_of<TEAM, V>(x + row * classes, classes);
        if (team<TEAM>::rank() == 0) {
            const int64 wanted = target[row];
            const W amount = weight_of(weight, wanted, classes, ignored), log_sum = of.top + log(of.sum);
            logs[row] = log_sum;
            each[row] = amount;
            losses[row] = amount == 0 ? W(0) : amount != amount ? amount : amount * (log_sum - widen(x[row * classes + wanted]));
        }
    }
}
// The same with a thread for each place; LOGS says that x holds logarithms already.
template <class T, bool LOGS>
__global__ void __launch_bounds__(256) entropy_columns(const T *x, const int64 *target, const T *weight, wide<T> *logs,
                                                       wide<T> *each, wide<T> *losses, const int64 batch,
                                                       const int64 classes, const int64 span, const int64 ignored) {
    typedef wide<T> W;
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < batch * span; i += (int64)gridDim.x * blockDim.x) {
        const T *from = x + i / span * classes * span + i % span;
        W log_sum = 0;
        if (!LOGS) {
            soft<W> of = {limits<W>::lowest(), 0};
            for (int64 k = 0; k < classes; k++)
                of = more<1>(of, load<1>(from + k * span));
            log_sum = of.top + log(of.sum);
            logs[i] = log_sum;
        }
        const int64 wanted = target[i];
        const W amount = weight_of(weight, wanted, classes, ignored);
        each[i] = amount;
        losses[i] = amount == 0 ? W(0) : amount != amount ? amount : amount * (log_sum - widen(from[wanted * span]));
    }
}

// One block: the sum of the losses, over that of the weights for a mean, and the latter.
template <class T>
__global__ void __launch_bounds__(1024) entropy_total(const wide<T> *each, const wide<T> *losses, T *made, wide<T> *weights,
                                                      const int64 count, const int mean) {
    typedef wide<T> W;
    W total = 0, all = 0;
    for (int64 i = threadIdx.x; i < count; i += blockDim.x)
        total += losses[i], all += each[i];
    total = block_sum(total);
    all = block_sum(all);
    if (threadIdx.x == 0) {
        *made = narrow<T>(mean ? total / all : total);
        *weights = all;
    }
}

// The gradient of every score: g is one number (PER 0), or one of each place.
template <class T, bool LOGS, int PER>
__global__ void __launch_bounds__(256) entropy_backward(const T *g, const T *x, const int64 *target, const wide<T> *logs,
                                                        const wide<T> *each, const wide<T> *weights, T *back,
                                                        const int64 count, const int64 classes, const int64 span,
                                                        const int mean) {
    typedef wide<T> W;
    const W divisor = mean ? *weights : W(1);
    for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < count; i += (int64)gridDim.x * blockDim.x) {
        const int64 above = i / span, place = above / classes * span + i % span, k = above % classes;
        const W amount = each[place] * widen(g[PER ? place : 0]) / divisor, hit = target[place] == k ? amount : W(0);
        back[i] = narrow<T>(LOGS ? -hit : each[place] == 0 ? W(0) : amount * exp(widen(x[i]) - logs[place]) - hit);
    }
}
