"""Tensors made larger at their edges, and images resized or folded between channels and space."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, GradientError, KernelMissing, ShapeError, UnsupportedDtype
from tensorcore.ops import samples_nn as samples
from tensorcore.ops.calls import apply
from tensorcore.ops.conv import spread
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.pool import taken
from tensorcore.ops.views_part import slice_op
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["interpolate", "pad", "pixel_shuffle", "pixel_unshuffle"]


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
    amounts = [int(one) for one in pad]
    shape = tuple(input.native.shape)
    if len(amounts) % 2:
        raise GradientError(f"pad: Padding length must be divisible by 2, got {len(amounts)}; pass pairs")
    if len(amounts) // 2 > len(shape):
        raise ShapeError(
            f"pad: Padding length should be less than or equal to two times the input dimension, got {amounts} for {list(shape)}"
        )
    pairs = [(0, 0)] * (len(shape) - len(amounts) // 2)
    pairs += [(amounts[2 * i], amounts[2 * i + 1]) for i in range(len(amounts) // 2 - 1, -1, -1)]
    if mode == "constant":
        return _constant(input, pairs, 0 if value is None else value)
    if mode not in _SOURCES:
        raise _NotKnown(f"pad: Unrecognised padding mode {mode}; pass constant, reflect, replicate or circular")
    if value is not None and value != 0:
        raise GradientError(f'pad: Padding mode "{mode}" doesn\'t take in value argument, got {value}')
    padded = len(amounts) // 2
    if padded not in (1, 2, 3) or len(shape) not in (padded + 1, padded + 2):
        raise _NotKnown(
            f"pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, got {amounts} for {list(shape)}"
        )
    made = input
    for dim, (before, after) in enumerate(pairs):
        if before or after:
            made = taken(made, dim, _SOURCES[mode](dim, shape, before, after))
    return made.clone() if made is input else made  # type: ignore[attr-defined,no-any-return]


class _NotKnown(GradientError, KernelMissing):
    """A mode or a form that there is not; PyTorch raises NotImplementedError."""


def _constant(input: Tensor, pairs: list[tuple[int, int]], value: Any) -> Tensor:
    shape = tuple(input.native.shape)
    for n, (before, after) in zip(shape, pairs, strict=True):
        if n + before + after < 0 or n + min(before, 0) + min(after, 0) < 0:
            raise ShapeError(
                f"pad: The input size {n}, plus negative padding {before} and {after}, resulted in a negative output size, got "
                f"{list(shape)}; take away less"
            )
    if any(min(pair) < 0 for pair in pairs):
        key = tuple(
            [slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(shape, pairs, strict=True)]
        )
        input = slice_op.view(input, {"key": key})
        shape = tuple(input.native.shape)
        pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    key = tuple([slice(before, before + n) for n, (before, _) in zip(shape, pairs, strict=True)])
    whole = tuple([n + before + after for n, (before, after) in zip(shape, pairs, strict=True)])
    return apply(_pad, (input,), {"shape": whole, "key": key, "value": value})  # type: ignore[no-any-return]


_pad = Op("constant_pad", "input", "The input within a constant.", register=False, backward_name="ConstantPadNdBackward0",
          grads=dict(input=lambda g, key: slice_op.view(g, {"key": key})))  # fmt: skip


def _reflected(dim: int, shape: tuple[int, ...], before: int, after: int) -> np.ndarray:
    n = shape[dim]
    if max(before, after) >= n:
        raise GradientError(
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
        raise GradientError(
            f"pad: Padding value causes wrapping around more than once, got ({before}, {after}) for a size of {n}"
        )
    return np.arange(-before, n + after) % n


_SOURCES = {"reflect": _reflected, "replicate": _replicated, "circular": _circled}


@operation(samples=samples.pixel_shuffle, method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., channels * r**2, height, width) as (..., channels, height * r, width * r)."""
    shape, r = tuple(input.native.shape), upscale_factor
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
    split = input.reshape(*front, c // (r * r), r, r, h, w)
    return split.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*front, c // (r * r), h * r, w * r)  # type: ignore[no-any-return]


@operation(samples=samples.pixel_unshuffle, method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., channels, height * r, width * r) as (..., channels * r**2, height, width)."""
    shape, r = tuple(input.native.shape), downscale_factor
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
    split = input.reshape(*front, c, h // r, r, w // r, r)
    return split.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*front, c * r * r, h // r, w // r)  # type: ignore[no-any-return]


@operation(samples=samples.interpolate, method=False)
def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:  # fmt: skip
    """(batch, channels, *sizes) resized to ``size``, or by ``scale_factor``.

    Args:
        mode: ``nearest``, ``nearest-exact``, or ``linear``, ``bilinear``, ``trilinear`` for one, two, three sizes.
        align_corners: of the linear modes: whether the centers of the corner elements stay in place, or their edges.
        recompute_scale_factor: take the scale from the rounded size instead of ``scale_factor``.
    """
    sizes = tuple(input.native.shape[2:])
    ndim = len(sizes)
    for name, one in (("size", size), ("scale_factor", scale_factor)):
        if isinstance(one, (list, tuple)) and len(one) != ndim:
            raise _AlignError(
                f"interpolate: Input and output must have the same number of spatial dimensions, but got {list(sizes)} and "
                f"{name}={one}; give one number per dim"
            )
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}.get(ndim)
    if mode not in ("nearest", "nearest-exact", linear) or antialias:
        raise _NotKnown(
            f"interpolate: expected nearest, nearest-exact or {linear} without antialias for {ndim} sizes, got {mode!r}"
        )
    if align_corners is not None and mode.startswith("nearest"):
        raise _AlignError(
            f"interpolate: align_corners option can only be set with the interpolating modes, got mode {mode!r}"
        )
    if (size is None) == (scale_factor is None):
        raise _AlignError(
            f"interpolate: only one of size or scale_factor should be defined, got {size} and {scale_factor}"
        )
    scales: list[Any] = [None] * ndim
    if size is not None:
        wanted = spread("interpolate", "size", size, ndim)
    else:
        factors = (
            [float(scale_factor)] * ndim
            if isinstance(scale_factor, (int, float))
            else [float(one) for one in scale_factor]
        )
        wanted = tuple([floor(n * by) for n, by in zip(sizes, factors, strict=True)])
        scales = [None] * ndim if recompute_scale_factor else factors
    if mode == linear and input.dtype.kind in ("bool", "integer") and input.dtype is not dtypes.uint8:
        raise UnsupportedDtype(f'interpolate: "{mode}" not implemented for {input.dtype.name}, got one; use .float()')
    whole = mode == linear and input.dtype is dtypes.uint8
    made = input
    # Images of bytes are rounded after each pass, and the last dim goes first.
    for i, (n, out, by) in reversed(list(enumerate(zip(sizes, wanted, scales, strict=True)))):
        step = n / out if by is None else 1.0 / by
        at = np.arange(out)
        if mode == "nearest":
            made = taken(made, i + 2, np.minimum(np.floor(at * np.float32(step)).astype(np.int64), n - 1))
        elif mode == "nearest-exact":
            made = taken(made, i + 2, np.minimum(np.floor((at + 0.5) * step).astype(np.int64), n - 1))
        else:
            made = _lines(made.double() if whole else made, i + 2, at, n, out, step, bool(align_corners))  # type: ignore[attr-defined]
            made = (made + 0.5).floor().to(dtypes.uint8) if whole else made  # type: ignore[attr-defined]
    return made


class _AlignError(GradientError, ValueError):
    """Arguments that exclude one another; PyTorch raises ValueError."""


def _lines(input: Tensor, dim: int, at: np.ndarray, n: int, out: int, step: float, align_corners: bool) -> Tensor:
    """Along one dim, the mean of the two neighbours by nearness."""
    where = (
        at * ((n - 1) / (out - 1) if out > 1 else 0.0) if align_corners else np.maximum((at + 0.5) * step - 0.5, 0.0)
    )
    low = np.minimum(where.astype(np.int64), n - 1)
    high = np.minimum(low + 1, n - 1)
    shape = [1] * len(input.native.shape)
    shape[dim] = -1
    device = input.device
    weight = (where - low).reshape(shape)
    upper = new_tensor(device.from_host(weight.astype(input.dtype.numpy)), input.dtype, device)
    lower = new_tensor(device.from_host((1 - weight).astype(input.dtype.numpy)), input.dtype, device)
    return taken(input, dim, low) * lower + taken(input, dim, high) * upper
