"""Images resized: each element of the result is a weighted sum of a few elements along each dim."""

from __future__ import annotations

import warnings
from functools import lru_cache
from math import floor
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConversionError,
    ShapeError,
    UnknownMode,
    UnsupportedDtype,
)
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.adaptive_pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tensorcore.ops.layers.pool import put_back, taken
from tensorcore.ops.linalg.products import matmul
from tensorcore.ops.operands import NARROW, once_rounded, plain
from tensorcore.ops.samples import resample as samples
from tensorcore.ops.shapes.convert import with_channels_of
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
_DIMS = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}
_SHARP = ("bilinear", "bicubic", "lanczos")


@operation(samples=samples.interpolate, method=False)
def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:  # fmt: skip
    """(batch, channels, *sizes) resized to ``size``, or by ``scale_factor``.

    Args:
        mode: ``nearest``, ``nearest-exact``, ``area``; ``linear``, ``bilinear``, ``trilinear`` for one, two, three
            sizes; ``bicubic`` or ``lanczos`` for two.
        align_corners: of the other than the first three modes: whether the centers of the corner elements stay in
            place, or their edges.
        recompute_scale_factor: take the scale from the rounded size instead of ``scale_factor``.
        antialias: widen the windows of ``bilinear``, ``bicubic`` and ``lanczos`` where the image gets smaller.

    The cubic is Keys' (1981) with a = -0.75, or -0.5 with ``antialias``, as in PyTorch.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"interpolate: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    sizes = tuple(input.native.shape[2:])
    ndim = len(sizes)
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ArgumentError(
            f"interpolate: align_corners option can only be set with the interpolating modes, got mode {mode!r}; leave it out"
        )
    wanted, scales = _wanted(sizes, size, scale_factor, bool(recompute_scale_factor) or mode == "area")
    if size is not None and recompute_scale_factor:
        raise ArgumentError(
            f"interpolate: recompute_scale_factor is not meaningful with an explicit size, got size={size}; leave it out"
        )
    if antialias and not (mode in _SHARP and ndim == 2):
        raise ArgumentError(
            f"interpolate: Anti-alias option is restricted to {', '.join(_SHARP)} modes and a 4-D input, got {mode!r} "
            f"and {ndim + 2} dims; leave it out"
        )
    if ndim not in (1, 2, 3) or mode not in ("nearest", "nearest-exact", "area", *_DIMS):
        raise UnknownMode(
            f"interpolate: Only 3D, 4D and 5D input Tensors supported for the modes nearest, linear, bilinear, bicubic, "
            f"trilinear, lanczos, area and nearest-exact, got {ndim + 2}D and {mode!r}; reshape it"
        )
    if mode in _DIMS and _DIMS[mode] != ndim + 2:
        raise UnknownMode(f"interpolate: Got {ndim + 2}D input, but {mode} mode needs {_DIMS[mode]}D input; reshape it")
    if mode == "lanczos" and (align_corners or not antialias):
        raise ArgumentError(
            f"interpolate: lanczos needs antialias=True and align_corners=False, got {antialias} and {align_corners}; pass them so"
        )
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[ndim - 1](input, wanted)
    if min(sizes) < 1 or min(wanted) < 1 or input.native.shape[1] < 1:
        raise ShapeError(
            f"interpolate: Input and output sizes should be greater than 0, got input (H, W, ...): {list(sizes)}, output: "
            f"{list(wanted)} and {input.native.shape[1]} channels; leave no dim but the batch empty"
        )
    kind = input.dtype.kind
    whole = kind == "integer" and input.dtype is dtypes.uint8 and mode not in ("linear", "trilinear")
    if not whole and kind != "floating":
        raise UnsupportedDtype(f'interpolate: "{mode}" not implemented for {input.dtype.name}, got one; use .float()')
    return _resized(input, mode, sizes, wanted, scales, bool(align_corners), antialias)


def _wanted(sizes: tuple[int, ...], size: Any, scale_factor: Any, recompute: bool) -> tuple[tuple[int, ...], list[Any]]:
    """The sizes of the result, and for each dim the factor that positions are computed with, None for the sizes' ratio."""
    ndim = len(sizes)
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            f"interpolate: only one of size or scale_factor should be defined, got {size} and {scale_factor}; pass one"
        )
    if type(scale_factor) in (int, float):
        by = None if recompute else scale_factor
        return tuple([_scaled(n, scale_factor) for n in sizes]), [by] * ndim
    if type(size) is int:
        return (size,) * ndim, [None] * ndim
    if type(size) is tuple and len(size) == ndim and {*map(type, size)} == _INTS:
        return size, [None] * ndim
    given = plain(scale_factor if size is None else size)
    each = [plain(one) for one in given] if isinstance(given, (list, tuple)) else [given] * ndim
    if len(each) != ndim:
        raise ArgumentError(
            f"interpolate: Input and output must have the same number of spatial dimensions, but got {list(sizes)} and "
            f"{given}; give one number per dim"
        )
    if size is not None:
        if not all(hasattr(one, "__index__") for one in each):
            raise ArgumentTypeError(
                f"interpolate: expected size to be one of int or Tuple[int], but got size with types "
                f"{[type(one).__name__ for one in each]}; round them"
            )
        return tuple([one.__index__() for one in each]), [None] * ndim
    if not all(isinstance(one, (int, float)) for one in each):
        raise ArgumentTypeError(
            f"interpolate: expected scale_factor to be a number or several, got {given!r}; pass e.g. 2.0"
        )
    return tuple(map(_scaled, sizes, each)), [None] * ndim if recompute else each


_INTS = {int}


def _scaled(size: int, by: float) -> int:
    made = size * float(by)
    if not abs(made) < 2**63:
        raise ConversionError(
            f"interpolate: value cannot be converted to type int64_t without overflow, got {made} for a size of {size} by "
            f"scale_factor={by}; pass a smaller one"
        )
    return floor(made)


def _resized(
    input: Tensor, mode: str, sizes: Any, wanted: Any, scales: Any, align_corners: bool, antialias: bool
) -> Tensor:
    nearest = mode.startswith("nearest")
    if input.dtype in NARROW and not nearest:
        return once_rounded(  # type: ignore[no-any-return]
            _resized, input.dtype, input, mode, sizes, wanted, scales, align_corners, antialias
        )
    whole = not nearest and input.dtype is dtypes.uint8
    # Positions are computed in the precision of the elements, and never in less than single.
    real = np.float32 if input.dtype.is_floating_point and input.dtype.itemsize < 8 else np.float64
    made = input
    # Images of bytes are rounded after each pass, and the last dim goes first.
    for i in range(len(sizes) - 1, -1, -1):
        n, out, by, dim = sizes[i], wanted[i], scales[i], i + 2
        if nearest:
            find = _nearest_of_few if out <= _FEW else _nearest
            made = taken(made, dim, find(n, out, by, mode == "nearest-exact"))
            continue
        if out == n and (antialias or mode in _LINEAR.values()):
            continue
        find = _taps_of_few if out <= _FEW else _taps
        index, weights = find(mode, n, out, by, align_corners, antialias, real)
        made = (
            _bytes_product(made, dim, _as_matrix(index, weights, n)) if whole else _blended(made, dim, index, weights)
        )
    # A result of the input's own size is not the input.
    return made.clone() if made is input else with_channels_of(made, input)


def _step(n: int, out: int, by: Any, align_corners: bool, real: Any) -> Any:
    """How far apart the places of two neighbours of the result are in the input."""
    if align_corners:
        return real(n - 1) / real(out - 1) if out > 1 else real(0)
    return real(1.0 / by) if by is not None and by > 0 else real(n) / real(out)


def _nearest(n: int, out: int, by: Any, exact: bool) -> np.ndarray:
    """The number of the element that each one of the result is."""
    at = np.arange(out)
    if not exact and out in (n, 2 * n):
        return at * n // out
    step = _step(n, out, by, False, np.float32)
    where = (at.astype(np.float32) + np.float32(0.5)) * step if exact else at.astype(np.float32) * step
    return np.minimum(np.floor(where).astype(np.int64), n - 1)


_FEW = 4096  # numbers that are worth keeping for the next call
_nearest_of_few = lru_cache(maxsize=128)(_nearest)

Taps = tuple[np.ndarray, np.ndarray]


def _taps(mode: str, n: int, out: int, by: Any, align_corners: bool, antialias: bool, real: Any) -> Taps:
    """For each neighbour (row) of each element of the result (column) its number and its weight."""
    step = _step(n, out, by, align_corners, real)
    if antialias:
        return _antialiased(n, out, step, mode, real)
    return (_linear_taps if mode in _LINEAR.values() else _cubic_taps)(n, out, step, align_corners, real)


_taps_of_few = lru_cache(maxsize=128)(_taps)


def _linear_taps(n: int, out: int, step: Any, align_corners: bool, real: Any) -> Taps:
    at = np.arange(out, dtype=real)
    where = at * step if align_corners else np.maximum((at + real(0.5)) * step - real(0.5), real(0))
    low = np.minimum(where.astype(np.int64), n - 1)
    share = np.clip(where - low.astype(real), 0, 1)
    return np.stack([low, np.minimum(low + 1, n - 1)]), np.stack([1 - share, share])


def _cubic_taps(n: int, out: int, step: Any, align_corners: bool, real: Any) -> Taps:
    """Those over the edge are the edge's."""
    at = np.arange(out, dtype=real)
    where = at * step if align_corners else (at + real(0.5)) * step - real(0.5)
    low = np.floor(where)
    shifts = np.arange(-1, 3)[:, None]
    return np.clip(low.astype(np.int64) + shifts, 0, n - 1), _cubic(where - low - shifts, -0.75).astype(real)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel: a piecewise cubic over [-2, 2] that is 1 at 0 and 0 at the other whole numbers."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


# Each filter's half width, and the filter.
_FILTERS = {"bilinear": (1, _triangle), "bicubic": (2, lambda x: _cubic(x, -0.5)), "lanczos": (3, _lanczos)}


def _antialiased(n: int, out: int, step: Any, mode: str, real: Any) -> Taps:
    """By a filter as wide as a step; what is beyond it, or over the edge, weighs nothing."""
    half, kernel = _FILTERS[mode]
    support = real(half) * max(step, real(1))
    center = step * (np.arange(out, dtype=real) + real(0.5))
    start = np.maximum((center - support + real(0.5)).astype(np.int64), 0)
    stop = np.minimum((center + support + real(0.5)).astype(np.int64), n)
    at = start + np.arange((stop - start).max())[:, None]
    weights = kernel((at - center + 0.5) / max(step, real(1))) * (at < stop)
    return np.minimum(at, stop - 1), np.asarray(weights / weights.sum(0))


def _on_device(array: np.ndarray, like: Tensor, dtype: dtypes.dtype) -> Tensor:
    return new_tensor(like.device.from_host(array.astype(dtype.numpy)), dtype, like.device)


def _product(input: Tensor, dim: int, weights: np.ndarray) -> Tensor:
    by = _on_device(weights, input, input.dtype)
    if dim == len(input.native.shape) - 1:
        return matmul(input, by)
    return matmul(by.transpose(0, 1), input)


def _as_matrix(index: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
    """The weight of each of ``n`` elements (rows) in each of the result (columns)."""
    made = np.zeros((n, index.shape[1]))
    np.add.at(made, (index, np.arange(index.shape[1])), weights)
    return made


def _bytes_product(input: Tensor, dim: int, weights: np.ndarray) -> Tensor:
    """As PyTorch does with bytes: weights in whole 2**-bits, as many bits as fit into 16, and one rounding."""
    largest, bits = weights.max(), 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = np.trunc(weights * (1 << bits) + np.copysign(0.5, weights))
    made = _product(input.double(), dim, scaled) + float(1 << (bits - 1))
    return (made / float(1 << bits)).floor().clamp(0, 255).to(dtypes.uint8)


def _blended(input: Tensor, dim: int, index: np.ndarray, weights: np.ndarray) -> Tensor:
    """The elements along one dim that each row of ``index`` numbers, times those weights, added up: in one kernel where there is one."""
    device, dtype = input.device, input.dtype
    kernel = device.kernels["blend"]
    if kernel:
        # They are read alone, by the tape too, so that they may lie in the memory that is kept.
        taps = device.share_host(index), device.share_host(weights.astype(dtype.numpy, copy=False))
        if input.node is None or not mode.enabled:
            try:
                return new_tensor(kernel(input.native, *taps, dim=dim), dtype, device)
            except MemoryError:  # tried once more, with the caches freed
                pass
        made = (new_tensor(taps[0], dtypes.int64, device), new_tensor(taps[1], dtype, device))
        return apply(_blend, (input, *made), {"dim": dim})  # type: ignore[no-any-return]
    shape = [1] * len(input.native.shape)
    shape[dim] = -1
    parts = [
        taken(input, dim, at) * _on_device(weight.reshape(shape), input, input.dtype)
        for at, weight in zip(index, weights, strict=True)
    ]
    return sum(parts[1:], parts[0])


def _back_from_blend(g: Tensor, index: Tensor, weights: Tensor, dim: int, input_shape: tuple[int, ...]) -> Tensor:
    """The adjoint of what one kernel blended."""
    size = input_shape[dim]
    if g.device.kernels["blend_gradient"]:
        return apply(_blend_gradient, (g, index, weights), {"dim": dim, "size": size})  # type: ignore[no-any-return]
    shape = [1] * len(g.native.shape)
    shape[dim] = -1
    parts = [
        put_back(g * weights[i].reshape(shape), dim, at, size)
        for i, at in enumerate(index.device.to_host(index.native))
    ]
    return sum(parts[1:], parts[0])


_blend = Op("blend", "input index weights", "Sums of a few weighted slices.", register=False, backward_name="UpsampleBicubic2DBackward0",
            grads=dict(input=_back_from_blend))  # fmt: skip
_blend_gradient = Op(
    "blend_gradient", "input index weights", "The adjoint of sums of weighted slices.", register=False,
    grads=dict(input=lambda g, index, weights, dim: apply(_blend, (g, index, weights), {"dim": dim})),
)  # fmt: skip


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", FutureWarning, stacklevel=3
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The old name of :func:`interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The old form of :func:`interpolate` with ``mode="nearest"``."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The old form of :func:`interpolate` with ``mode="bilinear"`` and ``align_corners=True``."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)
