"""Maxima of windows of one size at random places, with PyTorch's places for a seed."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, UnsupportedDtype
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.random import rand
from tensorcore.ops.indexing.masked import take
from tensorcore.ops.indexing.scatter import gather
from tensorcore.ops.kinds import FLOATING, operation
from tensorcore.ops.layers.conv import spread
from tensorcore.ops.layers.pool import placed
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]  # fmt: skip

Ints = tuple[int, ...]
# Which of the random numbers places the windows along which dim.
_ORDER = {2: (1, 0), 3: (0, 1, 2)}


def _pooled(
    op: str, ndim: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, drawn: Tensor | None
) -> tuple[Tensor, Tensor]:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    shape = tuple(input.native.shape)
    if output_size is None and output_ratio is None:
        raise ArgumentError(
            f"{op}: requires specifying either an output_size or an output_ratio, got neither; pass one"
        )
    kernel = spread(op, "kernel_size", kernel_size, ndim)
    if len(shape) not in (ndim + 1, ndim + 2) or 0 in shape[-ndim - 1 :]:
        raise ShapeError(
            f"{op}: Expected {ndim + 1}D or {ndim + 2}D tensor with optional 0-dim batch size, but got: {list(shape)}"
        )
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(f'{op}: "{op}" not implemented for {input.dtype.name}, got one; use .float()')
    sizes = shape[-ndim:]
    if output_size is None:
        ratios = (output_ratio,) * ndim if isinstance(output_ratio, float) else tuple(output_ratio)
        if len(ratios) != ndim:
            raise ArgumentError(f"{op}: expected one output_ratio or {ndim}, got {output_ratio!r}; pass as many")
        counts = tuple([int(n * ratio) for n, ratio in zip(sizes, ratios, strict=True)])
    else:
        counts = spread(op, "output_size", output_size, ndim)
    for n, k, count in zip(sizes, kernel, counts, strict=True):
        if k < 1 or count < 0 or count + k - 1 > n:
            raise ShapeError(
                f"{op}: expected windows of {list(kernel)} to fit {list(counts)} times into {list(sizes)}, got pool size {k} "
                f"relative to input size {n}; make one of them smaller"
            )
    batched = len(shape) == ndim + 2
    planes = input if batched else input.unsqueeze(0)
    batch, channels = planes.native.shape[:2]
    if drawn is None:
        drawn = rand(batch, channels, ndim, dtype=input.dtype, device=input.device)
    else:
        check_tensors(op, _random_samples=drawn)
    if drawn.dtype is not input.dtype:
        raise DtypeError(
            f"{op}: Expect _random_samples to have the same dtype as input, got {drawn.dtype} and {input.dtype}; convert one"
        )
    if drawn.native.shape[:1] < (batch,) or drawn.native.shape[1:] != (channels, ndim):
        raise ShapeError(
            f"{op}: Expect _random_samples of (batch, channels, {ndim}), got {list(drawn.shape)} for {list(shape)}; make it fit"
        )
    front = shape[: len(shape) - ndim]
    if 0 in counts:
        none = input.new_empty((*front, *counts))
        return none, none.to(dtypes.int64)
    ready = batch and input.dtype in FLOATING and drawn.device is input.device
    search = input.device.kernels["fractional_max"] if ready else None
    if search:
        taken = drawn.native if drawn.native.shape[0] == batch else drawn.detach()[:batch].native
        return placed(planes, search(planes.native, taken, counts=counts, kernel=kernel), batched)
    # (batch, channels, windows, elements of one): where its largest is, and that value.
    values = planes.reshape(batch, channels, prod(sizes))
    flat = _places(planes, drawn.detach()[:batch], sizes, kernel, counts)
    starts = arange(0, batch * channels * prod(sizes), prod(sizes), device=input.device) if batch * channels else flat
    windows = take(values.detach(), flat + starts.reshape(batch, channels, 1, 1) if batch * channels else flat)
    at = gather(flat, 3, windows.argmax(3, True)).squeeze(3)
    found = gather(values, 2, at)
    return found.reshape(*front, *counts), at.reshape(*front, *counts)


def _places(planes: Tensor, drawn: Tensor, sizes: Ints, kernel: Ints, counts: Ints) -> Tensor:
    """The flat indices of each window's elements: (batch, channels, windows, elements)."""
    device, ndim = planes.device, len(sizes)
    batch, channels = planes.native.shape[:2]
    flat: Any = 0
    for i, (n, k, count) in enumerate(zip(sizes, kernel, counts, strict=True)):
        sample = drawn.select(2, _ORDER[ndim][i]).unsqueeze(2)
        last = sample.new_full((batch, channels, min(count, 1)), n - k, dtype=dtypes.int64)
        if count > 1:
            alpha = (n - k) / (count - 1)
            at = arange(count - 1, dtype=drawn.dtype, device=device)
            first = ((at + sample) * alpha).to(dtypes.int64) - (sample * alpha).to(dtypes.int64)
            last = cat([first, last], 2)
        reach = last.unsqueeze(3) + arange(k, device=device)
        shape = [batch, channels, *[1] * (2 * ndim)]
        shape[2 + i], shape[2 + ndim + i] = count, k
        flat = flat * n + reach.reshape(shape)
    return flat.reshape(batch, channels, prod(counts), prod(kernel))


@operation(samples=samples.fractional2d, method=False)
def fractional_max_pool2d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:  # fmt: skip
    """The largest value of windows at random places of (batch, channels, height, width); the batch may be missing.

    Args:
        kernel_size: of each window.
        output_size: how many windows.
        output_ratio: as many windows as that share of each size, between 0 and 1; instead of ``output_size``.
        return_indices: also where the largest values are, as flat indices within a channel.
        _random_samples: (batch, channels, 2), in [0, 1), in the place of random numbers.

    From "Fractional Max-Pooling", Graham 2014.
    """
    found = _pooled("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@operation(samples=samples.fractional3d, method=False)
def fractional_max_pool3d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:  # fmt: skip
    """As ``fractional_max_pool2d``, over (batch, channels, depth, height, width)."""
    found = _pooled("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                                       return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """``fractional_max_pool2d`` with the indices, whatever ``return_indices`` says."""
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                                       return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """``fractional_max_pool3d`` with the indices, whatever ``return_indices`` says."""
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)
