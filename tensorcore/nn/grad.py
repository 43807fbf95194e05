"""The gradients of convolutions in their input and in their weight, of the sizes alone of what they are of."""

from __future__ import annotations

from typing import Any

from tensorcore.autograd import grad
from tensorcore.nn import functional as F
from tensorcore.tape.mode import enable_grad, mode
from tensorcore.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _of_input(conv: Any) -> Any:
    def gradient(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1) -> Tensor:  # fmt: skip
        return _adjoint(lambda one: conv(one, weight, None, stride, padding, dilation, groups), input_size, grad_output)

    return _named(gradient, conv, "input")


def _of_weight(conv: Any) -> Any:
    def gradient(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1) -> Tensor:  # fmt: skip
        return _adjoint(lambda one: conv(input, one, None, stride, padding, dilation, groups), weight_size, grad_output)

    return _named(gradient, conv, "weight")


def _adjoint(linear: Any, size: Any, grad_output: Tensor) -> Tensor:
    """The gradient of a map that is linear, and so the same wherever it is taken: at zeros."""
    recorded = mode.enabled
    with enable_grad():
        at = grad_output.new_zeros(tuple(size)).requires_grad_()  # type: ignore[attr-defined]
        return grad(linear(at), at, grad_output, create_graph=recorded)[0]  # type: ignore[no-any-return]


def _named(gradient: Any, conv: Any, of: str) -> Any:
    gradient.__name__ = gradient.__qualname__ = f"{conv.__name__}_{of}"
    gradient.__doc__ = f"The gradient of ``{conv.__name__}`` in its {of}, which has the given size; differentiable."
    return gradient


conv1d_input, conv1d_weight = _of_input(F.conv1d), _of_weight(F.conv1d)
conv2d_input, conv2d_weight = _of_input(F.conv2d), _of_weight(F.conv2d)
conv3d_input, conv3d_weight = _of_input(F.conv3d), _of_weight(F.conv3d)
