"""Activations that draw random numbers, with PyTorch's numbers for a seed."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore.errors import ArgumentTypeError, UnsupportedDtype, UsageError
from tensorcore.ops import rules
from tensorcore.ops.creation.random import draw
from tensorcore.ops.creation.random_fill import exponential_
from tensorcore.ops.inplace import check_writable, overwrite
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.activation import leaky_relu
from tensorcore.ops.layers.norm import softmax
from tensorcore.ops.samples import elementwise as samples
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["gumbel_softmax", "rrelu", "rrelu_"]


@operation(samples=samples.rrelu, method=False)
def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False, *,
          generator: Any = None) -> Tensor:  # fmt: skip
    """Each element, those up to 0 times a number: in training one drawn evenly from [lower, upper) for each, else their mean.

    From "Empirical Evaluation of Rectified Activations in Convolutional Network", Xu et al. 2015.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"rrelu: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    if lower > upper:
        raise UsageError(
            f"rrelu: Lower bound should be less than or equal to the upper bound, got {lower} and {upper}; swap"
        )
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(f'rrelu: "rrelu" not implemented for {input.dtype.name}, got one; use .float()')
    input = input if inplace else input.contiguous()  # type: ignore[attr-defined]  # as PyTorch's results lie
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    if inplace:
        check_writable("rrelu_", input)
    device, native = input.device, input.native
    options = {"input": device.to_host(native), "low": lower, "high": upper}
    slopes = draw("rrelu", "slopes", tuple(native.shape), input.dtype, device, generator, **options)
    made = input * new_tensor(slopes, input.dtype, device)
    return overwrite("rrelu_", input, made) if inplace else made


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, *, generator: Any = None
) -> Tensor:
    """In-place form of :func:`rrelu`."""
    return rrelu(input, lower, upper, training, True, generator=generator)


@operation(samples=samples.gumbel_softmax, method=False)
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample from the distribution over ``dim`` with these logits, softened so that it has a gradient.

    Args:
        tau: how soft: the nearer to 0, the nearer to one 1 among zeros.
        hard: one 1 among zeros, with the gradient of the soft sample.

    From "Categorical Reparameterization with Gumbel-Softmax", Jang, Gu, Poole 2017.
    """
    if not isinstance(logits, Tensor):
        raise ArgumentTypeError(
            f"gumbel_softmax: expected argument 'logits' to be a Tensor, got {type(logits).__name__}; use torch.tensor(...)"
        )
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -exponential_(logits.new_empty(logits.native.shape)).log()
    soft = softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    at = rules.wrap_dim("gumbel_softmax", dim, len(logits.native.shape))
    chosen = soft.detach().argmax(at, True)
    sharp = soft.new_zeros(soft.native.shape).scatter_(at, chosen, 1.0)
    return sharp - soft.detach() + soft
