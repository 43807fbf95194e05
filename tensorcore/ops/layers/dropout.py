"""Dropout: elements, channels or whole activations zeroed at random, with PyTorch's numbers for a seed."""

from __future__ import annotations

from math import sqrt
from typing import Any

from tensorcore.backend.strides import memory_order
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, GradientError, ShapeError, not_bool
from tensorcore.ops import samples
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.ops.creation.random import draw
from tensorcore.ops.creation.random_fill import bernoulli_
from tensorcore.ops.inplace import check_writable, overwrite
from tensorcore.ops.kinds import operation
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "alpha_dropout", "alpha_dropout_", "dropout", "dropout1d", "dropout2d", "dropout3d", "dropout_", "feature_alpha_dropout",
    "feature_alpha_dropout_", "feature_dropout", "feature_dropout_",
]  # fmt: skip

# The value that SELU sends minus infinity to, negated: what alpha dropout writes in the place of a dropped element.
_ALPHA = 1.7580993408473766


class _Probability(ArgumentError, GradientError):
    """A probability outside [0, 1]; PyTorch raises ValueError from ``nn.functional`` and RuntimeError from ``torch``."""


def _dropped(op: str, input: Tensor, p: float, training: bool, inplace: bool, features: bool, alpha: bool) -> Tensor:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    if training is not True and training is not False:
        raise not_bool(op, "train", training)
    if not 0.0 <= p <= 1.0:
        raise _Probability(f"{op}: dropout probability has to be between 0 and 1, but got {p}")
    if inplace:
        check_writable(op, input)
    if p == 0 or not training or input.numel() == 0:
        return input
    if input.dtype.kind in ("bool", "integer"):
        raise DtypeError(
            f"{op}: result type Float can't be cast to the desired output type {input.dtype.name}, got it; use .float()"
        )
    if p == 1:
        made = input * 0.0
        return overwrite(op, input, made) if inplace else made
    shape = tuple(input.native.shape)
    if features:
        if len(shape) < 2:
            raise ShapeError(
                f"{op}: Feature dropout requires at least 2 dimensions in the input, got {len(shape)}; use dropout"
            )
        shape = (*shape[:2], *[1] * (len(shape) - 2))
    if not alpha and not inplace and input.dtype in PLAIN_FLOATS and (features or input.is_contiguous()):
        # Zeros and scaled ones in one draw; half types round the scale in another order.
        one = input.dtype.numpy.type
        scale = float(one(1) / one(1 - p))
        native = draw("bernoulli_", "bernoulli", shape, input.dtype, input.device, None, probability=1.0 - p, one=scale)
        return input * new_tensor(native, input.dtype, input.device)  # type: ignore[no-any-return]
    noise: Any = input.new_empty(shape)  # type: ignore[attr-defined]
    if not features and not input.is_contiguous():
        # The noise lies in memory as the input does, and is drawn in that order.
        order = memory_order(input.device.strides(input.native))
        noise = input.new_empty([shape[i] for i in order]).permute([order.index(i) for i in range(len(order))])  # type: ignore[attr-defined]
    bernoulli_(noise, 1 - p)
    if alpha:
        scale = 1.0 / sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
        shift = (noise - 1) * (_ALPHA * scale) + _ALPHA * scale * p
        made = input * (noise * scale) + shift
    else:
        made = input * (noise / (1 - p))
    return overwrite(op, input, made) if inplace else made


@operation(method=False, samples=samples.dropped)
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: bool | None = None
) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p); without ``training`` nothing changes."""
    return _dropped("dropout", input, p, training if train is None else train, inplace, False, False)


@operation(method=False, samples=samples.dropped)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *, train: bool | None = None
) -> Tensor:
    """Dropout that keeps mean and deviation of what SELU gives."""
    return _dropped("alpha_dropout", input, p, training if train is None else train, inplace, False, True)


@operation(method=False, samples=samples.dropped_channels)
def feature_dropout(input: Tensor, p: float = 0.5, train: bool = True) -> Tensor:
    """Dropout of whole channels: all elements behind the first two dims together."""
    return _dropped("feature_dropout", input, p, train, False, True, False)


@operation(method=False, samples=samples.dropped_channels)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *,
                          train: bool | None = None) -> Tensor:  # fmt: skip
    """Alpha dropout of whole channels."""
    return _dropped("feature_alpha_dropout", input, p, training if train is None else train, inplace, True, True)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`dropout`."""
    return _dropped("dropout_", input, p, train, True, False, False)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`alpha_dropout`."""
    return _dropped("alpha_dropout_", input, p, train, True, False, True)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`feature_dropout`."""
    return _dropped("feature_dropout_", input, p, train, True, True, False)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of :func:`feature_alpha_dropout`."""
    return _dropped("feature_alpha_dropout_", input, p, train, True, True, True)


def _channels(op: str, input: Any, p: float, training: bool, inplace: bool, batched: int | None) -> Tensor:
    if batched is not None and isinstance(input, Tensor) and len(input.native.shape) != batched:
        # Another number of dims than a batch has: a batch of one, in the same memory.
        made = _dropped(op, input.unsqueeze(0), p, training, inplace, True, False)
        return input if inplace else made.squeeze(0)
    return _dropped(op, input, p, training, inplace, True, False)


@operation(method=False, samples=samples.dropped_channels)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, length) or (channels, length)."""
    if isinstance(input, Tensor) and len(input.native.shape) not in (2, 3):
        raise ShapeError(f"dropout1d: Expected 2D or 3D input, but received a {len(input.native.shape)}D input")
    return _channels("dropout1d", input, p, training, inplace, 3)


@operation(method=False, samples=samples.dropped_images)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, height, width); three dims are (batch, channels, length), as in PyTorch."""
    return _channels("dropout2d", input, p, training, inplace, None)


@operation(method=False, samples=samples.dropped_volumes)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, depth, height, width) or (channels, depth, height, width)."""
    return _channels("dropout3d", input, p, training, inplace, 5)
