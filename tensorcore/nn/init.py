"""Initial values of parameters. The same seed draws PyTorch's numbers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import empty_like, from_numpy, tensor
from tensorcore.ops.creation.random import default_generator
from tensorcore.ops.pointwise.choice import where
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip

_LINEAR = frozenset(
    ["linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"]
)


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """How much larger initial weights must be for a nonlinearity.

    Args:
        param: of ``leaky_relu``, the slope below 0.
    """
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ArgumentError(f"negative_slope {param} not a valid number, got {param!r}; pass a float")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ArgumentError(f"Unsupported nonlinearity {nonlinearity}, expected e.g. relu, got {nonlinearity!r}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with numbers from [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)  # type: ignore[attr-defined]


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)  # type: ignore[attr-defined]


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with normal numbers from between ``a`` and ``b``; what falls outside is drawn again.

    Where most would fall outside, uniform numbers are drawn instead and kept with the probability that they are
    due (rejection sampling). Each round draws as many numbers as the tensor has, as PyTorch does.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    if tensor.is_meta:
        return tensor

    def below(bound: float) -> float:
        return (1.0 + math.erf((bound - mean) / std / math.sqrt(2.0))) / 2.0

    drawn: Any = tensor
    with no_grad():
        if below(b) - below(a) > 0.3:
            low, high = (drawn.new_tensor(bound).item() for bound in (a, b))
            drawn.normal_(mean, std, generator=generator)
            while bool((outside := (drawn < low) | (drawn > high)).any()):
                drawn.copy_(where(outside, empty_like(drawn).normal_(mean, std, generator=generator), drawn))
            return tensor
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

        def refused(values: Any) -> Any:
            chance = ((values - mean) / std) ** 2 * -0.5 - peak
            return empty_like(values).uniform_(generator=generator).log_() > chance  # type: ignore[attr-defined]

        pending = refused(drawn.uniform_(a, b, generator=generator))
        while bool(pending.any()):
            others = empty_like(drawn).uniform_(a, b, generator=generator)  # type: ignore[attr-defined]
            drawn.copy_(where(pending, others, drawn))
            pending = pending & refused(others)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    with no_grad():
        return tensor.fill_(val)  # type: ignore[attr-defined]


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity."""
    if tensor.ndim != 2:
        raise ArgumentError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}; pass a matrix")
    return _written(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make the weights of a convolution pass their input on, as far as there are channels."""
    if tensor.ndim not in (3, 4, 5):
        raise ArgumentError(f"Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.ndim}")
    shape = tuple(tensor.shape)
    if shape[0] % groups:
        raise ArgumentError(f"dim 0 must be divisible by groups, got {shape[0]} and {groups}")
    out = shape[0] // groups
    values = np.zeros(shape)
    middle = tuple(size // 2 for size in shape[2:])
    for group in range(groups):
        for channel in range(min(out, shape[1])):
            values[(group * out + channel, channel, *middle)] = 1.0
    return _written(tensor, values)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform, with the variance that suits fan-in and fan-out alike (Glorot and Bengio, AISTATS 2010)."""
    fan_in, fan_out = _fans(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal, with the variance that suits fan-in and fan-out alike (Glorot and Bengio, AISTATS 2010)."""
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform, with the variance that suits rectifiers (He et al., ICCV 2015).

    Args:
        a: the slope below 0 of the leaky rectifier that follows.
        mode: ``fan_in`` keeps the size of activations, ``fan_out`` that of gradients.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal, with the variance that suits rectifiers (He et al., ICCV 2015); arguments as ``kaiming_uniform_``."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A random matrix with orthonormal rows or columns, whichever are fewer (Saxe et al., arXiv:1312.6120)."""
    if tensor.ndim < 2:
        raise ArgumentError(f"Only tensors with 2 or more dimensions are supported, got {tensor.ndim}")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    drawn = normal_(tensor.new_empty(rows, columns), 0, 1, generator).numpy(force=True)  # type: ignore[attr-defined]
    q, r = np.linalg.qr(drawn.T if rows < columns else drawn)
    diagonal = np.diagonal(r)
    q = q * (diagonal / np.abs(diagonal))
    return _written(tensor, (q.T if rows < columns else q).reshape(tuple(tensor.shape)) * gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal, with a part ``sparsity`` of each column set to 0 (Martens, ICML 2010)."""
    if tensor.ndim != 2:
        raise ArgumentError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}; pass a matrix")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0, std, generator)
    dropped = np.zeros((rows, columns), bool)
    for column in range(columns):
        # PyTorch draws these from the default generator, whatever ``generator`` is.
        dropped[default_generator.host.permutation(rows)[:zeros], column] = True
    with no_grad():
        return tensor.masked_fill_(from_numpy(dropped).to(tensor.device), 0.0)  # type: ignore[attr-defined]


def _written(tensor_: Tensor, values: np.ndarray) -> Tensor:
    with no_grad():
        return tensor_.copy_(tensor(values, dtype=tensor_.dtype, device=tensor_.device))  # type: ignore[attr-defined]


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs one output has, and how many outputs one input."""
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ArgumentError(
            f"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got shape {list(shape)}"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


# The name that programs with layers of their own call it by.
_calculate_fan_in_and_fan_out = _fans


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """One of the two."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[mode == "fan_out"]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


# The names without the underscore, which PyTorch keeps with a warning.
_OLD = ("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse", "uniform",
        "xavier_normal", "xavier_uniform")  # fmt: skip


# The steps of PyTorch's own functions, which libraries with rules of their own call.
_no_grad_uniform_ = uniform_
_no_grad_normal_ = normal_
_no_grad_trunc_normal_ = trunc_normal_
_no_grad_fill_ = constant_
_no_grad_zero_ = zeros_


def __getattr__(name: str) -> Any:
    if name not in _OLD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    fill = globals()[f"{name}_"]

    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return fill(*args, **kwargs)

    return deprecated
