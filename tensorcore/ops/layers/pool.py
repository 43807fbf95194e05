"""Pools: the largest, the mean or the norm of each window of given size."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UnsupportedDtype, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.scatter import scatter_add
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.conv import spread
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import check_real
from tensorcore.ops.samples import nn as samples
from tensorcore.shortcuts import before
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

Ints = tuple[int, ...]

_NAMES = ("counts", "kernel", "stride", "padding", "dilation")


def _window(*values: Any) -> dict[str, Any]:
    return dict(zip(_NAMES, values, strict=True))


# The gradient finds the maxima from input and result: forward is one comparison a position. A result written over is remade.
_max = Op(
    "max_pool", "input", "The largest of each window.", backward_name="MaxPool2DWithIndicesBackward0", register=False,
    grads=dict(input=lambda g, input, unwritten_out, counts, kernel, stride, padding, dilation: apply(_max_gradient, (
        g, input, apply(_max, (input,), _window(counts, kernel, stride, padding, dilation)) if unwritten_out is None
        else unwritten_out), _window(counts, kernel, stride, padding, dilation))),
)  # fmt: skip
_max_gradient = Op(
    "max_pool_gradient", "sent input found", "A gradient put where the largest are.",
    backward_name="MaxPool2DWithIndicesBackwardBackward0", register=False,
    grads=dict(sent=lambda g, input, found, counts, kernel, stride, padding, dilation: apply(
        _max_pick, (g, input, found), _window(counts, kernel, stride, padding, dilation))),
)  # fmt: skip
_max_pick = Op(
    "max_pool_pick", "sent input found", "Values read where the largest are.", register=False,
    grads=dict(sent=lambda g, input, found, counts, kernel, stride, padding, dilation: apply(
        _max_gradient, (g, input, found), _window(counts, kernel, stride, padding, dilation))),
)  # fmt: skip
_max_indices = Op("max_pool_indices", "input found", "Where the largest are.", register=False)
_avg = Op(
    "avg_pool", "input", "The mean of each window.", backward_name="AvgPool2DBackward0", register=False,
    grads=dict(input=lambda g, input_shape, counts, kernel, stride, padding, count_padding, divisor: apply(
        _avg_gradient, (g,), {"shape": tuple(input_shape), "counts": counts, "kernel": kernel, "stride": stride,
                              "padding": padding, "count_padding": count_padding, "divisor": divisor})),
)  # fmt: skip
_avg_gradient = Op(
    "avg_pool_gradient", "input", "The adjoint of the mean of each window.", backward_name="AvgPool2DBackwardBackward0",
    register=False,
    grads=dict(input=lambda g, counts, kernel, stride, padding, count_padding, divisor: apply(
        _avg, (g,), {"counts": counts, "kernel": kernel, "stride": stride, "padding": padding,
                     "count_padding": count_padding, "divisor": divisor})),
)  # fmt: skip
take_rows = Op(
    "take_rows", "input", "Slices along a dim, by number.", backward_name="IndexSelectBackward0", register=False,
    grads=dict(input=lambda g, dim, index, size: apply(add_rows, (g,), {"dim": dim, "index": index, "size": size})),
)  # fmt: skip
add_rows = Op(
    "add_rows", "input", "Slices added up along a dim, by number.", register=False,
    grads=dict(input=lambda g, dim, index, size: apply(take_rows, (g,), {"dim": dim, "index": index, "size": size})),
)  # fmt: skip
_unpool = Op(
    "max_unpool", "input indices", "Values put at their indices.", register=False, backward_name="MaxUnpool2DBackward0",
    grads=dict(input=lambda g, indices: apply(_unpool_gradient, (g, indices), {})),
)  # fmt: skip
_unpool_gradient = Op(
    "max_unpool_gradient", "input indices", "Values read at their indices.", register=False,
    grads=dict(input=lambda g, indices, input_shape: apply(_unpool, (g, indices), {"shape": tuple(input_shape)})),
)  # fmt: skip


_placed_max = Op(
    "placed_max", "input", "The largest of windows at any places.", register=False, backward_name="AdaptiveMaxPool2DBackward0",
    grads=dict(input=lambda g, input_shape, at: scatter_add(
        g.new_zeros((*input_shape[:2], prod(input_shape[2:]))), 2, at.flatten(2), g.flatten(2)).reshape(input_shape)),
)  # fmt: skip


def placed(input: Tensor, found: Any, batched: bool) -> tuple[Tensor, Tensor]:
    """What a kernel found in (batch, channels, *sizes), as tensors: the largest values, recorded, and their flat indices."""
    recorded = input.node is not None and mode.enabled
    if not (batched or recorded):
        view, batched = input.device.kernels["view"], True
        found = [view(one, shape=one.shape[1:]) for one in found]
    made = new_tensor(found[0], input.dtype, input.device)
    at = new_tensor(found[1], dtypes.int64, input.device)
    if recorded:
        record(_placed_max, (input,), {"at": at}, made)
    return (made, at) if batched else (made.squeeze(0), at.squeeze(0))


def put_back(g: Tensor, dim: int, index: np.ndarray, size: int) -> Tensor:
    """The adjoint of :func:`taken` from ``size`` slices."""
    return apply(add_rows, (g,), {"dim": dim, "index": index, "size": size})  # type: ignore[no-any-return]


def taken(input: Tensor, dim: int, index: np.ndarray) -> Tensor:
    """The slices of ``input`` along ``dim`` (counted from the front) that a host array numbers."""
    return apply(take_rows, (input,), {"dim": dim, "index": index, "size": input.native.shape[dim]})  # type: ignore[no-any-return]


@before("batched")
def _batched(op: str, input: Any, ndim: int) -> tuple[Tensor, bool]:
    """The input with a batch dim, and whether it had one."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    shape = input.native.shape
    if len(shape) not in (ndim + 1, ndim + 2) or 0 in shape[-ndim - 1 :]:
        raise ShapeError(
            f"{op}: Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(shape)}"
        )
    batched = len(shape) == ndim + 2
    return (input if batched else input.unsqueeze(0)), batched


def _of_one(op: Op, name: str, input: Any, *window: Any) -> Tensor | None:
    """The pool of an image of floats without a batch dim, which its array gets and loses again; None of all others.

    Args:
        window: what ``_placed`` takes behind the sizes.
    """
    if type(input) is not Tensor or not input.dtype.is_floating_point or (input.node is not None and mode.enabled):
        return None
    native, device = input.native, input.device
    shape = tuple(native.shape)
    if 0 in shape:
        return None
    options, view = _placed(name, shape[1:], *window), device.kernels["view"]
    whole = view(native, shape=(1, *shape))
    if whole is None:
        return None
    try:
        made = device.kernels[op.kernel](whole, **options)
    except MemoryError:  # tried once more, with the caches freed
        return None
    return new_tensor(view(made, shape=made.shape[1:]), input.dtype, device)


_INTS = {int}


def _placed(
    op: str, sizes: Ints, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, means: Any = None
) -> dict[str, Any]:
    """Checked window options, and how many windows there are; not to be changed, because others get the same.

    Args:
        means: of mean values, whether padding counts and what sums are divided by.
    """
    values = (kernel_size, stride, padding, dilation)
    for one in values:
        if type(one) is not int and one is not None and (type(one) is not tuple or {*map(type, one)} != _INTS):
            break
    else:
        if type(ceil_mode) is bool:
            return _checked(op, sizes, *values, ceil_mode, None, means)
    # 2.0 is equal to 2 and no size, so the types are part of the question.
    kinds = tuple([tuple([type(k) for k in one]) if isinstance(one, (tuple, list)) else type(one) for one in values])
    fixed = [tuple(one) if isinstance(one, list) else one for one in values]
    return _checked(op, sizes, *fixed, bool(ceil_mode), kinds, means)


@lru_cache(maxsize=512)
def _checked(
    op: str,
    sizes: Ints,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    kinds: Any,
    means: Any,
) -> dict[str, Any]:
    ndim = len(sizes)
    kernel = spread(op, "kernel_size", kernel_size, ndim)
    empty = stride is None or (isinstance(stride, (list, tuple)) and not stride)
    steps = kernel if empty else spread(op, "stride", stride, ndim)
    pads, gaps = spread(op, "padding", padding, ndim), spread(op, "dilation", dilation, ndim)
    for name, values in (("kernel size", kernel), ("stride", steps), ("dilation", gaps)):
        if min(values) < 1:
            raise UsageError(f"{op}: {name} should be greater than zero, but got {list(values)}")
    counts = []
    for n, k, s, p, d in zip(sizes, kernel, steps, pads, gaps, strict=True):
        if p < 0 or p > (d * (k - 1) + 1) // 2:
            raise UsageError(
                f"{op}: pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
            )
        free = n + 2 * p - d * (k - 1) - 1
        count = -(-free // s) + 1 if ceil_mode else free // s + 1
        # A window that ceil_mode adds must start inside the input or its left padding.
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        counts.append(count)
    if min(counts) < 1:
        raise ShapeError(
            f"{op}: Given input size: {list(sizes)}. Calculated output size: {counts}. Output size is too small"
        )
    if means is None:
        return _window(tuple(counts), kernel, steps, pads, gaps)
    if ndim == 3 and any([k > n for k, n in zip(kernel, sizes, strict=True)]):
        raise ShapeError(f"{op}: input image {list(sizes)} smaller than kernel size, got {list(kernel)}; pad it first")
    return {
        "counts": tuple(counts),
        "kernel": kernel,
        "stride": steps,
        "padding": pads,
        "count_padding": means[0],
        "divisor": means[1],
    }


def _max_pool(op: str, ndim: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
              return_indices: bool) -> Any:  # fmt: skip
    if not return_indices and isinstance(input, Tensor) and len(input.native.shape) == ndim + 1:
        one = _of_one(_max, op, input, kernel_size, stride, padding, dilation, ceil_mode)
        if one is not None:
            return one
    input, batched = _batched(op, input, ndim)
    check_real(op, input)
    kind = input.dtype.kind
    if kind == "bool" or (kind == "integer" and ndim == 1 and not return_indices):
        raise UnsupportedDtype(
            f'{op}: "{op}" not implemented for {input.dtype.name}, got a tensor of it; convert it with .float()'
        )
    options = _placed(op, tuple(input.native.shape[2:]), kernel_size, stride, padding, dilation, ceil_mode)
    made = apply(_max, (input,), options)
    indices = apply(_max_indices, (input, made), options, dtype=dtypes.int64) if return_indices else None
    if not batched:
        made, indices = made.squeeze(0), None if indices is None else indices.squeeze(0)
    return (made, indices) if return_indices else made


_WORDS = {"max": {"dilation": 1, "ceil_mode": False, "return_indices": False},
          "avg": {"ceil_mode": False, "count_include_pad": True, "divisor_override": None}}  # fmt: skip


def _way(op: Op, name: str, ndim: int) -> Any:
    """The short way of a pool: words that may be given by position, all but the first may be left out."""
    words = {"kernel_size": None, "stride": None, "padding": 0, **_WORDS[name[:3]]}
    if name == "avg_pool1d":
        del words["divisor_override"]
    return before("pool", _checked, op, op.kernel, apply, apply_into, name, ndim, tuple(words), tuple(words.values()))


@operation(samples=samples.pool1d, method=False, way=_way(_max, "max_pool1d", 1))
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:  # fmt: skip
    """The largest value of each window of (batch, channels, length); the batch may be missing.

    Args:
        stride: the step between windows; the kernel's size if None.
        padding: at both ends, of minus infinity.
        ceil_mode: also windows that reach over the end.
        return_indices: also where the largest values are, as flat indices within a channel.

    Raises UnsupportedDtype for bools and, without ``return_indices``, for integers, as in PyTorch.
    """
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@operation(samples=samples.pool2d, method=False, way=_way(_max, "max_pool2d", 2))
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:  # fmt: skip
    """As ``max_pool1d``, over (batch, channels, height, width)."""
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@operation(samples=samples.pool3d, method=False, way=_way(_max, "max_pool3d", 3))
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:  # fmt: skip
    """As ``max_pool1d``, over (batch, channels, depth, height, width)."""
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _avg_pool(op: str, ndim: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
              count_include_pad: bool, divisor: Any = None, out: Any = None) -> Tensor:  # fmt: skip
    if divisor is out is None and isinstance(input, Tensor) and len(input.native.shape) == ndim + 1:
        one = _of_one(_avg, op, input, kernel_size, stride, padding, 1, ceil_mode, (bool(count_include_pad), None))
        if one is not None:
            return one
    input, batched = _batched(op, input, ndim)
    if input.dtype.kind == "bool":
        raise UnsupportedDtype(
            f"{op}: expected numbers, got {input.dtype}: not implemented for it; convert it with .float()"
        )
    divisor = None if divisor is None else rules.whole(op, "divisor_override", divisor)
    if divisor == 0:
        raise UsageError(f"{op}: divisor must be not zero, got divisor_override=0; leave it out, or pass another")
    means = (bool(count_include_pad), divisor)
    options = _placed(op, tuple(input.native.shape[2:]), kernel_size, stride, padding, 1, ceil_mode, means)
    if batched and out is not None and (done := apply_into(_avg, (input,), options, input.dtype, out)) is not None:
        return done  # type: ignore[no-any-return]
    made = apply(_avg, (input,), options)
    made = made if batched else made.squeeze(0)
    return made if out is None else store(op, made, out)


@operation(samples=samples.pool1d, method=False, way=_way(_avg, "avg_pool1d", 1))
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:  # fmt: skip
    """The mean of each window of (batch, channels, length); see ``max_pool1d``.

    Args:
        count_include_pad: whether the zeros of the padding count.
    """
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@operation(samples=samples.pool2d, method=False, way=_way(_avg, "avg_pool2d", 2))
def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None, *,
               out: Tensor | None = None) -> Tensor:  # fmt: skip
    """As ``avg_pool1d``, over (batch, channels, height, width); ``divisor_override`` takes the place of the window's size."""
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out
    )


@operation(samples=samples.pool3d, method=False, way=_way(_avg, "avg_pool3d", 3))
def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None, *,
               out: Tensor | None = None) -> Tensor:  # fmt: skip
    """As ``avg_pool2d``, over (batch, channels, depth, height, width)."""
    return _avg_pool(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out
    )


def _lp_pool(
    op: str, ndim: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    check_tensors(op, input=input)
    kernel = spread(op, "kernel_size", kernel_size, ndim)
    power = (input**norm_type) if norm_type != 1 else input  # type: ignore[operator]
    mean = _avg_pool(op, ndim, power, kernel, stride, 0, ceil_mode, True, None)
    count = prod(kernel)
    # PyTorch's formula: where a sum is negative its root is 0.
    return (mean.sign() * mean.abs().relu() * count).pow(1.0 / norm_type)  # type: ignore[attr-defined,no-any-return]


@operation(samples=samples.lp_pool1d, method=False)
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The ``norm_type``-th root of each window's sum of powers."""
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@operation(samples=samples.lp_pool2d, method=False)
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """As ``lp_pool1d``, over (batch, channels, height, width)."""
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@operation(samples=samples.lp_pool3d, method=False)
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """As ``lp_pool1d``, over (batch, channels, depth, height, width)."""
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _unpooled(
    op: str, ndim: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    check_tensors(op, input=input, indices=indices)
    if indices.dtype is not dtypes.int64:
        raise DtypeError(f"{op}: elements in indices should be type int64 but got: {indices.dtype.name}")
    if tuple(indices.native.shape) != tuple(input.native.shape):
        raise ShapeError(
            f"{op}: Expected shape of indices to be same as that of the input tensor ({list(input.native.shape)}), got "
            f"{list(indices.native.shape)}"
        )
    kernel = spread(op, "kernel_size", kernel_size, ndim)
    steps = kernel if stride is None else spread(op, "stride", stride, ndim)
    pads = spread(op, "padding", padding, ndim)
    input, batched = _batched(op, input, ndim)
    if not batched:
        indices = indices.unsqueeze(0)
    sizes = tuple(
        [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input.native.shape[2:], steps, kernel, pads, strict=True)]
    )
    if output_size is not None:
        wanted = tuple(output_size)[-ndim:]
        for one, size, step in zip(wanted, sizes, steps, strict=True):
            if not size - step < one < size + step:
                raise UsageError(
                    f"{op}: invalid output_size {list(wanted)}: expected sizes within a stride of {list(sizes)}"
                )
        sizes = wanted
    if indices.device.capabilities.values:
        low, high = indices.device.kernels["index_bounds"](indices.native)
        if low < 0 or high >= prod(sizes):
            raise UsageError(f"{op}: found an invalid max index: {high} (output volumes are of size {list(sizes)})")
    made = apply(_unpool, (input, indices), {"shape": (*input.native.shape[:2], *sizes)})
    return made if batched else made.squeeze(0)  # type: ignore[no-any-return]


@operation(samples=samples.max_unpool1d, method=False)
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:  # fmt: skip
    """Zeros with each value where ``max_pool1d`` found it, by the indices that it returned."""
    return _unpooled("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@operation(samples=samples.max_unpool2d, method=False)
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:  # fmt: skip
    """As ``max_unpool1d``, of ``max_pool2d``."""
    return _unpooled("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@operation(samples=samples.max_unpool3d, method=False)
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:  # fmt: skip
    """As ``max_unpool1d``, of ``max_pool3d``."""
    return _unpooled("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
