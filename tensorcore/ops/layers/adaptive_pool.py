"""Pools: the largest or the mean of each of as many windows as are asked for, spread evenly over the input."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.windows import even_windows
from tensorcore.errors import UnsupportedDtype, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import FLOATING, operation
from tensorcore.ops.layers.pool import _avg, _batched, _max, _max_indices, _window, placed, taken
from tensorcore.ops.operands import plain
from tensorcore.ops.reductions.reduce import check_real
from tensorcore.ops.samples import nn as samples
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]  # fmt: skip

Ints = tuple[int, ...]

_WIDE = 16  # from so many elements on a window is a sum of its own, and not one step of the sums of all
_MANY = 32  # elements of a window in which the largest is searched for by vectors, and its place kept for the gradient

_adaptive = Op(
    "adaptive_avg_pool", "input", "The mean of each of some windows spread evenly.", register=False,
    backward_name="AdaptiveAvgPool2DBackward0",
    grads=dict(input=lambda g, input_shape: apply(_adaptive_gradient, (g,), {"shape": tuple(input_shape)})),
)  # fmt: skip
_adaptive_gradient = Op(
    "adaptive_avg_pool_gradient", "input", "The adjoint of the mean of each of some windows spread evenly.", register=False,
    backward_name="AdaptiveAvgPool2DBackwardBackward0",
    grads=dict(input=lambda g, input_shape: apply(_adaptive, (g,), {"counts": tuple(input_shape[2:])})),
)  # fmt: skip


@before("wanted_sizes")
def _wanted(op: str, sizes: Ints, output_size: Any) -> Ints:
    ndim = len(sizes)
    output_size = plain(output_size)
    if output_size is None or type(output_size) is int:
        wanted = (output_size,) * ndim
    elif not hasattr(output_size, "__iter__"):
        wanted = (rules.whole(op, "output_size", output_size),) * ndim
    else:
        wanted = tuple(
            [None if one is None else rules.whole(op, "output_size", one, vectors=True) for one in output_size]
        )
    if len(wanted) == 1:
        wanted *= ndim
    if len(wanted) != ndim:
        raise UsageError(f"{op}: output_size must be one int or {ndim}, got {output_size!r}")
    wanted = tuple([n if one is None else one for one, n in zip(wanted, sizes, strict=True)])
    if min(wanted) < 0:
        raise UsageError(f"{op}: elements of output_size must be greater than or equal to 0, got {list(wanted)}")
    return wanted


@lru_cache(maxsize=512)
def _even(sizes: Ints, wanted: Ints) -> dict[str, Any] | None:
    """The options of a pool whose windows are those, where they are equal and short; not to be changed, because others get the same."""
    kernel = tuple([n // count if count and not n % count else 0 for n, count in zip(sizes, wanted, strict=True)])
    if 0 in kernel or kernel[-1] >= _WIDE:
        return None
    return _window(wanted, kernel, kernel, (0,) * len(kernel), (1,) * len(kernel))


@lru_cache(maxsize=512)
def _even_means(sizes: Ints, wanted: Ints) -> dict[str, Any] | None:
    """As ``_even``, of a pool of means."""
    found = _even(sizes, wanted)
    return found and {
        **{name: found[name] for name in found if name != "dilation"},
        "count_padding": True,
        "divisor": None,
    }


def _adaptive_avg(op: str, ndim: int, input: Tensor, output_size: Any) -> Tensor:
    if isinstance(input, Tensor):
        shape = input.native.shape
        if input.dtype.kind in ("bool", "integer"):
            raise UnsupportedDtype(f'{op}: "{op}" not implemented for {input.dtype.name}, got one; use .float()')
        if len(shape) in (ndim + 1, ndim + 2):
            wanted = _wanted(op, sizes := tuple(shape[-ndim:]), output_size)
            if set(wanted) == {1}:
                # The mean of nothing is NaN, where windows of nothing are an error.
                return input.mean(tuple(range(-ndim, 0)), True)  # type: ignore[attr-defined, no-any-return]
    input, batched = _batched(op, input, ndim)  # which refuses what has no `wanted`
    options = _even_means(sizes, wanted)
    made = apply(_avg, (input,), options) if options else apply(_adaptive, (input,), {"counts": wanted})
    return made if batched else made.squeeze(0)


def _adaptive_max(op: str, ndim: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    input, batched = _batched(op, input, ndim)
    check_real(op, input)
    sizes = tuple(input.native.shape[2:])
    wanted = _wanted(op, sizes, output_size)
    options = None if return_indices or prod(sizes) >= _MANY * prod(wanted) else _even(sizes, wanted)
    if options:
        made = apply(_max, (input,), options)
        return made if batched else made.squeeze(0)
    if input.dtype in FLOATING and 0 not in input.native.shape and 0 not in wanted:
        search = input.device.kernels["adaptive_max"]
        if search:
            made, indices = placed(input, search(input.native, counts=wanted), batched)
            return (made, indices) if return_indices else made
    index, kernel = [], []
    made = input
    for i, (n, count) in enumerate(zip(sizes, wanted, strict=True)):
        if count and n % count == 0:
            index.append(np.arange(n))
            kernel.append(n // count)
            continue
        # Windows of several lengths: each gets the length of the longest by repeating its last element.
        starts, stops = np.array(even_windows(n, count), np.int64).reshape(-1, 2).T
        longest = int((stops - starts).max(initial=1))
        at = np.minimum(starts[:, None] + np.arange(longest), stops[:, None] - 1).reshape(-1)
        made = taken(made, i + 2, at)
        index.append(at)
        kernel.append(longest)
    options = _window(wanted, tuple(kernel), tuple(kernel), (0,) * ndim, (1,) * ndim)
    source = made
    made = apply(_max, (source,), options)
    indices = None
    if return_indices:
        flat = source.device.to_host(apply(_max_indices, (source, made), options, dtype=dtypes.int64).native)
        found = np.zeros_like(flat)
        below = 1
        for i in range(ndim - 1, -1, -1):
            flat, at = np.divmod(flat, len(index[i]) or 1)
            found += index[i][at] * below if len(index[i]) else 0
            below *= sizes[i]
        indices = new_tensor(input.device.from_host(found), dtypes.int64, input.device)
    if not batched:
        made, indices = made.squeeze(0), None if indices is None else indices.squeeze(0)
    return (made, indices) if return_indices else made


@operation(samples=samples.adaptive1d, method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows of (batch, channels, length) as asked for, spread over the length evenly."""
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


@operation(samples=samples.adaptive2d, method=False)
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """As ``adaptive_avg_pool1d``, over (batch, channels, height, width); None keeps a size."""
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


@operation(samples=samples.adaptive3d, method=False)
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """As ``adaptive_avg_pool2d``, over (batch, channels, depth, height, width)."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


@operation(samples=samples.adaptive1d, method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest of as many windows of (batch, channels, length) as asked for, spread over the length evenly."""
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


@operation(samples=samples.adaptive2d, method=False)
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """As ``adaptive_max_pool1d``, over (batch, channels, height, width); None keeps a size."""
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@operation(samples=samples.adaptive3d, method=False)
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """As ``adaptive_max_pool2d``, over (batch, channels, depth, height, width)."""
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


# Norms, and maxima put back
