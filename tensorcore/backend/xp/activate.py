"""Activations that are several ops in the frontend, and the slopes of activations, as one kernel each."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

_ROOT_2_OVER_PI, _CUBIC = 0.7978845608028654, 0.044715


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. Half types are computed in float32; a slope takes the gradient and the input or the result."""
    xp = backend.xp
    table = backend.kernels

    def narrowed(formula: Any) -> Kernel:
        """The formula, which takes its arrays in at least single precision."""

        @wraps(formula)
        def kernel(*arrays: Native, **options: Any) -> Native:
            first = arrays[0]
            wide = [one.astype(np.float32) for one in arrays] if first.dtype.itemsize <= 2 else arrays
            return xp.asarray(formula(*wide, **options)).astype(first.dtype, copy=False)

        return kernel

    def sigmoid(x: Native) -> Native:
        return 1.0 / (1.0 + xp.exp(-x))

    def below(x: Native) -> Native:
        return xp.minimum(x, x.dtype.type(0))

    def elu(x: Native, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Native:
        """``scale * x`` above 0, ``scale * alpha * (exp(input_scale * x) - 1)`` below."""
        return xp.where(x > 0, x * scale, xp.expm1(below(x) * input_scale) * (alpha * scale))

    def selu(x: Native) -> Native:
        return elu(x, alpha=1.6732632423543772, scale=1.0507009873554805)

    def celu(x: Native, *, alpha: float = 1.0) -> Native:
        return elu(x, alpha=alpha, input_scale=1.0 / alpha)

    def exponential_unit_backward(
        g: Native, x: Native, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
    ) -> Native:
        """The gradient of ``elu`` and its relatives."""
        low = xp.exp(below(x) * input_scale) * (alpha * scale * input_scale)
        return g * xp.where(x > 0, x.dtype.type(scale), low)

    def softplus(x: Native, *, beta: float = 1.0, threshold: float = 20.0) -> Native:
        scaled = x * beta
        return xp.where(scaled > threshold, x, xp.log1p(xp.exp(xp.minimum(scaled, threshold))) / beta)

    def softplus_backward(g: Native, x: Native, *, beta: float = 1.0, threshold: float = 20.0) -> Native:
        scaled = x * beta
        return g * xp.where(scaled > threshold, x.dtype.type(1), sigmoid(scaled))

    def mish(x: Native) -> Native:
        return x * xp.tanh(softplus(x))

    def mish_backward(g: Native, x: Native) -> Native:
        bent = xp.tanh(softplus(x))
        return g * (bent + x * sigmoid(x) * (1 - bent * bent))

    def log_sigmoid(x: Native) -> Native:
        return below(x) - xp.log1p(xp.exp(-xp.abs(x)))

    def log_sigmoid_backward(g: Native, x: Native) -> Native:
        return g * sigmoid(-x)

    def gelu_backward(g: Native, x: Native, *, approximate: str = "none") -> Native:
        if approximate == "tanh":
            square = x * x
            bent = xp.tanh(x * (square * (_ROOT_2_OVER_PI * _CUBIC) + _ROOT_2_OVER_PI))
            slope = (1 - bent * bent) * (square * (_ROOT_2_OVER_PI * 3 * _CUBIC) + _ROOT_2_OVER_PI) * x
            return g * ((bent + 1 + slope) * 0.5)
        share = (table["erf"](x * 0.7071067811865476) + 1) * 0.5
        return g * (share + x * (xp.exp(x * x * -0.5) * (_ROOT_2_OVER_PI * 0.5)))

    def silu_backward(g: Native, x: Native) -> Native:
        share = sigmoid(x)
        return g * (share * (x * (1 - share) + 1))

    def relu_backward(g: Native, out: Native) -> Native:
        """The gradient of ``relu``; ``out`` is its result."""
        return xp.where(out <= 0, g.dtype.type(0), g)

    def leaky_relu_backward(g: Native, x: Native, *, negative_slope: float = 0.01) -> Native:
        return xp.where(x > 0, g, g * negative_slope)

    def hardsigmoid_backward(g: Native, x: Native) -> Native:
        return xp.where((x > -3) & (x < 3), g * g.dtype.type(1 / 6), g.dtype.type(0))

    def hardswish_backward(g: Native, x: Native) -> Native:
        return xp.where(x <= -3, g.dtype.type(0), xp.where(x < 3, g * (x / 3 + g.dtype.type(0.5)), g))

    def tanh_backward(g: Native, out: Native) -> Native:
        """The gradient of ``tanh``; ``out`` is its result."""
        return g * (1 - out * out)

    def sigmoid_backward(g: Native, out: Native) -> Native:
        """The gradient of ``sigmoid``; ``out`` is its result."""
        return g * ((1 - out) * out)

    return {formula.__name__: narrowed(formula) for formula in (
        elu, selu, celu, exponential_unit_backward, softplus, softplus_backward, mish, mish_backward, log_sigmoid,
        log_sigmoid_backward, gelu_backward, silu_backward, relu_backward, leaky_relu_backward, tanh_backward,
        sigmoid_backward, hardsigmoid_backward, hardswish_backward,
    )}  # fmt: skip
