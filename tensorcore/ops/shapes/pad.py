"""Tensors made larger at their edges, and channels put into other orders or into space."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorcore.errors import ArgumentTypeError, ShapeError, UnknownMode, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.pool import taken
from tensorcore.ops.operands import check_tensors, factor
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.convert import contiguous, with_channels_of
from tensorcore.ops.shapes.views_part import slice_op
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["channel_shuffle", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle"]


@operation(samples=samples.pad, method=False)
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """More elements at the edges, or fewer.

    Args:
        pad: how many before and after the last dim, then before and after the one before it, ...;
            negative ones take away (mode ``constant``).
        mode: ``constant``, ``reflect`` (without the edge), ``replicate`` (the edge) or ``circular``.
        value: what ``constant`` fills with, 0 if None.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"pad: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    if not isinstance(pad, Iterable):
        raise ArgumentTypeError(f"pad: argument 'pad' must be tuple of ints, got {pad!r}; pass two for each dim")
    amounts = rules.as_shape("pad", (pad,) if isinstance(pad, (tuple, list)) else tuple(pad))
    shape = tuple(input.native.shape)
    if len(amounts) % 2:
        raise UsageError(f"pad: Padding length must be divisible by 2, got {len(amounts)}; pass pairs")
    if len(amounts) // 2 > len(shape):
        raise ShapeError(
            f"pad: Padding length should be less than or equal to two times the input dimension, got {amounts} for {list(shape)}"
        )
    pairs = [(0, 0)] * (len(shape) - len(amounts) // 2)
    pairs += zip(amounts[-2::-2], amounts[::-2], strict=True)  # the last dim's stand first
    if mode == "constant":
        return _constant(input, pairs, 0 if value is None else value)
    if mode not in _SOURCES:
        raise UnknownMode(f"pad: Unrecognised padding mode {mode}; pass constant, reflect, replicate or circular")
    if value is not None and value != 0:
        raise UsageError(f'pad: Padding mode "{mode}" doesn\'t take in value argument, got {value}')
    padded = len(amounts) // 2
    if padded not in (1, 2, 3) or len(shape) not in (padded + 1, padded + 2):
        raise UnknownMode(
            f"pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, got {amounts} for {list(shape)}"
        )
    least = 0 if mode == "circular" else 1
    around = list(zip(shape, pairs, strict=True))[-padded:]
    if (least and 0 in shape[-padded - 1 :]) or any(n + sum(pair) < least for n, pair in around):
        raise ShapeError(
            f"pad: input is too small for {mode} padding: a negative padding or an empty dim leaves nothing to repeat, got "
            f"{list(shape)} and {amounts}; take away less"
        )
    made = input
    for dim, (ahead, behind) in enumerate(pairs):
        if ahead or behind:
            made = taken(made, dim, _SOURCES[mode](dim, shape, ahead, behind))
    if mode == "circular":
        made = contiguous(made)
    return made.clone() if made is input else made  # type: ignore[attr-defined,no-any-return]


def _constant(input: Tensor, pairs: list[tuple[int, int]], value: Any) -> Tensor:
    shape = tuple(input.native.shape)
    key, whole, negative = [], [], False
    for n, (ahead, behind) in zip(shape, pairs, strict=True):
        if ahead < 0 or behind < 0:
            negative = True
            if n + ahead + behind < 0 or n + min(ahead, 0) + min(behind, 0) < 0:
                raise ShapeError(
                    f"pad: The input size {n}, plus negative padding {ahead} and {behind}, resulted in a negative output size, "
                    f"got {list(shape)}; take away less"
                )
        key.append(slice(ahead, ahead + n))
        whole.append(n + ahead + behind)
    if negative:
        left = tuple(
            [slice(max(-ahead, 0), n - max(-behind, 0)) for n, (ahead, behind) in zip(shape, pairs, strict=True)]
        )
        kept = slice_op.view(input, {"key": left})
        return _constant(kept, [(max(ahead, 0), max(behind, 0)) for ahead, behind in pairs], value)
    options = {"shape": tuple(whole), "key": tuple(key), "value": factor("pad", "value", value, input.dtype)}
    return apply(_pad, (input,), options)  # type: ignore[no-any-return]


_pad = Op("constant_pad", "input", "The input within a constant.", register=False, backward_name="ConstantPadNdBackward0",
          grads=dict(input=lambda g, key: slice_op.view(g, {"key": key})))  # fmt: skip


def _reflected(dim: int, shape: tuple[int, ...], before: int, after: int) -> np.ndarray:
    n = shape[dim]
    if max(before, after) >= n:
        raise ShapeError(
            f"pad: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at "
            f"dimension {dim} of input {list(shape)}"
        )
    at = np.abs(np.arange(-before, n + after))
    return np.where(at >= n, 2 * (n - 1) - at, at)


def _replicated(dim: int, shape: tuple[int, ...], before: int, after: int) -> np.ndarray:
    return np.clip(np.arange(-before, shape[dim] + after), 0, shape[dim] - 1)


def _circled(dim: int, shape: tuple[int, ...], before: int, after: int) -> np.ndarray:
    n = shape[dim]
    if max(before, after) > n:
        raise ShapeError(
            f"pad: Padding value causes wrapping around more than once, got ({before}, {after}) for a size of {n}"
        )
    # What is taken away is gone before the rest goes around.
    left = np.arange(max(-before, 0), n - max(-after, 0))
    return left[np.arange(-max(before, 0), len(left) + max(after, 0)) % max(len(left), 1)]


_SOURCES = {"reflect": _reflected, "replicate": _replicated, "circular": _circled}


@operation(samples=samples.pixel_shuffle, method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., channels * r**2, height, width) as (..., channels, height * r, width * r)."""
    return _pixel_shuffle(input, upscale_factor)


@before("pixel_shuffle", "contiguous")
def _pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    if type(input) is not Tensor:
        check_tensors("pixel_shuffle", input=input)
    shape, r = tuple(input.native.shape), rules.whole("pixel_shuffle", "upscale_factor", upscale_factor)
    if len(shape) < 3:
        raise ShapeError(
            f"pixel_shuffle: expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r < 1 or shape[-3] % (r * r):
        raise ShapeError(
            f"pixel_shuffle: expects its input's 'channel' dimension to be divisible by the square of upscale_factor, got "
            f"{shape[-3]} and {r}"
        )
    front, (c, h, w) = shape[:-3], shape[-3:]
    n = len(front)
    return _dealt(input, (*front, c // (r * r), r, r, h, w), (*range(n), n, n + 3, n + 1, n + 4, n + 2),
                  (*front, c // (r * r), h * r, w * r))  # fmt: skip


@operation(samples=samples.pixel_unshuffle, method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., channels, height * r, width * r) as (..., channels * r**2, height, width)."""
    return _pixel_unshuffle(input, downscale_factor)


@before("pixel_unshuffle", "contiguous")
def _pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    if type(input) is not Tensor:
        check_tensors("pixel_unshuffle", input=input)
    shape, r = tuple(input.native.shape), rules.whole("pixel_unshuffle", "downscale_factor", downscale_factor)
    if len(shape) < 3:
        raise ShapeError(
            f"pixel_unshuffle: expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r < 1 or shape[-2] % r or shape[-1] % r:
        raise ShapeError(
            f"pixel_unshuffle: expects height and width to be divisible by downscale_factor, got {list(shape[-2:])} and {r}"
        )
    front, (c, h, w) = shape[:-3], shape[-3:]
    n = len(front)
    return _dealt(input, (*front, c, h // r, r, w // r, r), (*range(n), n, n + 2, n + 4, n + 1, n + 3),
                  (*front, c * r * r, h // r, w // r))  # fmt: skip


def _dealt(input: Tensor, split: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """The elements seen in the shape ``split``, its dims in another order, as new memory of ``shape``."""
    if input.node is None and type(input) is Tensor:
        kernels = input.device.kernels
        native = kernels["view"](input.native, shape=split)
        if native is not None:
            turned = kernels["permute"](native, dims=order)
            native = kernels["contiguous"](turned)
            if native is turned:  # dims of one element changed places: that moves nothing
                native = kernels["clone"](native)
            made = new_tensor(kernels["view"](native, shape=shape), input.dtype, input.device)
            return with_channels_of(made, input)
    return with_channels_of(input.reshape(split).permute(order).reshape(shape), input)  # type: ignore[attr-defined]


@operation(samples=samples.channel_shuffle, method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (batch, channels, ...), in ``groups`` runs, dealt out one from each run in turn.

    From "ShuffleNet", Zhang et al. 2017.
    """
    return _channel_shuffle(input, groups)


@before("channel_shuffle", "contiguous")
def _channel_shuffle(input: Tensor, groups: int) -> Tensor:
    if type(input) is not Tensor:
        check_tensors("channel_shuffle", input=input)
    shape = tuple(input.native.shape)
    if len(shape) < 3:
        raise ShapeError(f"channel_shuffle: expected an input of more than 2 dims, got {list(shape)}; unsqueeze it")
    if groups < 1 or shape[1] % groups:
        raise ShapeError(
            f"channel_shuffle: Number of channels must be divisible by groups, got {shape[1]} channels and {groups} groups; "
            f"choose a divisor"
        )
    runs = (shape[0], groups, shape[1] // groups, *shape[2:])
    return _dealt(input, runs, (0, 2, 1, *range(3, len(runs))), shape)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The same as :func:`channel_shuffle`."""
    return channel_shuffle(input, groups)
