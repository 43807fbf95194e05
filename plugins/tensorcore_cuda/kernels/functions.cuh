// Functions of one element that CUDA C++ does not have, in the semantics of NumPy and PyTorch.
#define FUNCTION template <class W> __device__ __forceinline__ W

FUNCTION larger_of(W a, W b) { return a >= b || is_nan(a) ? a : b; }  // NaN wins
FUNCTION smaller_of(W a, W b) { return a <= b || is_nan(a) ? a : b; }
FUNCTION absolute(W a) { return a < W(0) ? (W)-a : a; }
__device__ __forceinline__ float absolute(float a) { return fabsf(a); }
__device__ __forceinline__ double absolute(double a) { return fabs(a); }
FUNCTION sign_of(W a) { return W((a > W(0)) - (a < W(0))); }
FUNCTION sign_or_nan(W a) { return is_nan(a) ? a : sign_of(a); }
FUNCTION sigmoid(W a) { return W(1) / (W(1) + exp(-a)); }
FUNCTION relu(W a) { return a <= W(0) ? W(0) : a; }

// Quotients rounded down and the remainders that go with them. An integer divided by 0 is undefined, but no trap.
FUNCTION floor_quotient(W a, W b) {
    const W quotient = b ? W(a / b) : W(0);
    return W(quotient - (b && quotient * b != a && (a < 0) != (b < 0)));
}
FUNCTION floor_remainder(W a, W b) {
    const W rest = b ? W(a % b) : W(0);
    return rest && (rest < 0) != (b < 0) ? W(rest + b) : rest;
}
template <class W> __device__ __forceinline__ W float_quotient(W a, W b) {
    if (b == 0)
        return a / b;
    const W rest = fmod(a, b);
    W quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= W(1);
    if (quotient == 0)
        return copysign(W(0), a / b);
    const W down = floor(quotient);
    return quotient - down > W(0.5) ? down + W(1) : down;
}
template <class W> __device__ __forceinline__ W float_remainder(W a, W b) {
    const W rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ __forceinline__ float floor_quotient(float a, float b) { return float_quotient(a, b); }
__device__ __forceinline__ double floor_quotient(double a, double b) { return float_quotient(a, b); }
__device__ __forceinline__ float floor_remainder(float a, float b) { return float_remainder(a, b); }
__device__ __forceinline__ double floor_remainder(double a, double b) { return float_remainder(a, b); }
FUNCTION cut_quotient(W a, W b) { return b ? W(a / b) : W(0); }
__device__ __forceinline__ float cut_quotient(float a, float b) { return trunc(a / b); }
__device__ __forceinline__ double cut_quotient(double a, double b) { return trunc(a / b); }
FUNCTION cut_remainder(W a, W b) { return b ? W(a % b) : W(0); }
__device__ __forceinline__ float cut_remainder(float a, float b) { return fmod(a, b); }
__device__ __forceinline__ double cut_remainder(double a, double b) { return fmod(a, b); }

FUNCTION log_add_exp(W a, W b) {
    if (a == b)
        return a + W(0.6931471805599453);  // two equal infinities too
    const W away = a - b;
    return away > 0 ? a + log1p(exp(-away)) : away <= 0 ? b + log1p(exp(away)) : away;
}
// As square, sqrt and the quotient have it, infinities and zeros too: of exponents that are one number for all elements.
FUNCTION power(W a, W b) {
    return b == W(2)      ? a * a
           : b == W(1)    ? a
           : b == W(3)    ? a * a * a
           : b == W(0.5)  ? sqrt(a)
           : b == W(-0.5) ? W(1) / sqrt(a)
           : b == W(-1)   ? W(1) / a
           : b == W(-2)   ? W(1) / (a * a)
                          : pow(a, b);
}

// Activations and their slopes: g is the gradient that arrives

FUNCTION gelu(W a) { return a * (W(0.5) * (W(1) + erf(a * W(0.7071067811865476)))); }
FUNCTION gelu_backward(W g, W a) {
    const W share = W(0.5) * (W(1) + erf(a * W(0.7071067811865476)));
    return g * (share + a * (exp(a * a * W(-0.5)) * W(0.3989422804014327)));
}
FUNCTION gelu_tanh(W a) {
    const W bent = tanh(a * (a * a * W(0.7978845608028654 * 0.044715) + W(0.7978845608028654)));
    return a * (W(0.5) * (W(1) + bent));
}
FUNCTION gelu_tanh_backward(W g, W a) {
    const W square = a * a, bent = tanh(a * (square * W(0.7978845608028654 * 0.044715) + W(0.7978845608028654)));
    const W slope = (W(1) - bent * bent) * (square * W(0.7978845608028654 * 3 * 0.044715) + W(0.7978845608028654)) * a;
    return g * (W(0.5) * (bent + W(1) + slope));
}
FUNCTION silu(W a) { return a / (W(1) + exp(-a)); }
FUNCTION silu_backward(W g, W a) {
    const W share = sigmoid(a);
    return g * (share * (a * (W(1) - share) + W(1)));
}
FUNCTION elu(W a, W alpha, W scale, W input_scale) {
    return a > 0 ? a * scale : expm1(a * input_scale) * (alpha * scale);
}
FUNCTION elu_backward(W g, W a, W alpha, W scale, W input_scale) {
    return g * (a > 0 ? scale : exp(a * input_scale) * (alpha * scale * input_scale));
}
FUNCTION softplus(W a, W beta, W threshold) {
    const W scaled = a * beta;
    return scaled > threshold ? a : log1p(exp(scaled)) / beta;
}
FUNCTION softplus_backward(W g, W a, W beta, W threshold) {
    const W scaled = a * beta;
    return scaled > threshold ? g : g * sigmoid(scaled);
}
FUNCTION mish(W a) { return a * tanh(softplus(a, W(1), W(20))); }
FUNCTION mish_backward(W g, W a) {
    const W bent = tanh(softplus(a, W(1), W(20)));
    return g * (bent + a * sigmoid(a) * (W(1) - bent * bent));
}
FUNCTION log_sigmoid(W a) { return (a < 0 ? a : is_nan(a) ? a : W(0)) - log1p(exp(-absolute(a))); }
FUNCTION log_sigmoid_backward(W g, W a) { return g * sigmoid(-a); }
