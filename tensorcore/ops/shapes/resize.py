"""Methods that change a tensor's shape in place, write along its diagonal, run Python functions, or say what it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DeviceError, GradientError, ShapeError, UsageError
from tensorcore.formats import only_strided
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange, empty, from_numpy
from tensorcore.ops.indexing.masked import nonzero
from tensorcore.ops.inplace import check_writable, inplace
from tensorcore.ops.kinds import method
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store, written
from tensorcore.tensor import Tensor

__all__ = ["empty_permuted", "nonzero_static", "resize_as_"]


@method
def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Give this tensor another shape, row by row over its memory; what is new is undefined.

    Where the memory is too small the tensor gets memory of its own, with its elements first: other tensors over the old
    memory keep that. Raises for a tensor that requires grad.
    """
    shape = rules.as_shape("resize_", sizes if size is None else (size,))
    if shape and min(shape) < 0:
        raise ShapeError(f"resize_: Trying to create tensor with negative dimension {min(shape)}, got {list(shape)}")
    if self.node is not None:
        raise GradientError("resize_: cannot resize variables that require grad, got one; detach() it first")
    if tuple(self.native.shape) == shape:
        return self
    device = self.device
    count, (_, offset) = prod(shape), device.layout(self.native)
    have = device.storage(self.native).shape[0] - offset
    if count > have:
        grown = device.allocate((count,), self.dtype)
        if have > 0:
            device.kernels["copy"](
                device.as_strided(grown, (have,), (1,), 0), device.as_strided(self.native, (have,), (1,), offset)
            )
        self.native, self.version, self.trail = grown, None, None
        offset = 0
    self.native = device.as_strided(self.native, shape, rules.contiguous_strides(shape), offset)
    written(self)
    return self


@method
def resize_as_(self: Tensor, other: Tensor, memory_format: Any = None) -> Tensor:
    """:meth:`resize_` to the shape of ``other``."""
    check_tensors("resize_as_", other=other)
    return resize_(self, tuple(other.native.shape))


@method
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number along the main diagonal, where all indices are equal; differentiable.

    Args:
        wrap: go on below a matrix's last column, after one row without an element.
    """
    shape = tuple(self.native.shape)
    if len(shape) < 2:
        raise ShapeError(f"fill_diagonal_: dimensions must larger than 1, got {len(shape)}; use fill_")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(
            f"fill_diagonal_: all dimensions of input must be of equal length, got {list(shape)}; take a square part"
        )
    step = sum(rules.contiguous_strides(shape)) if len(shape) == 2 or 0 not in shape else 1
    end = prod(shape) if wrap and len(shape) == 2 else step * min(shape) if min(shape) else 0
    places = np.arange(0, min(end, prod(shape)), step)
    mask: Any = np.zeros(prod(shape), bool)
    mask[places] = True
    mask = from_numpy(mask.reshape(shape)).to(self.device)  # type: ignore[attr-defined]
    return inplace("fill_diagonal_", lambda before: before.masked_fill(mask, fill_value))(self)  # type: ignore[attr-defined]


# Python functions over elements


def _on_host(op: str, *tensors: Tensor) -> list[Any]:
    """The values of each as an array of Python's numbers."""
    for one in tensors:
        if not one.device.capabilities.host or not one.device.capabilities.values:
            raise DeviceError(f"{op}: {op} is only implemented on CPU tensors, got one on {one.device}; use .cpu()")
        if one.node is not None:
            raise GradientError(f"{op}: Can't call {op} on a Variable that requires grad, got one; use .detach()")
    return [one.device.to_host(one.native) for one in tensors]


def _mapped(op: str, self: Tensor, others: Sequence[Tensor], function: Callable[..., Any]) -> Tensor:
    check_writable(op, self)
    for one in others:
        if not isinstance(one, Tensor) or one.dtype is not self.dtype:
            raise ArgumentTypeError(f"{op}: expected a Tensor of {self.dtype}, got {one!r}; convert it with .to(...)")
    values, *more = _on_host(op, self, *others)
    columns = [np.broadcast_to(one, values.shape).ravel().tolist() for one in (values, *more)]
    made = np.array([function(*row) for row in zip(*columns, strict=True)]).astype(values.dtype).reshape(values.shape)
    self.device.kernels["copy"](self.native, self.device.share_host(made))
    written(self)
    return self


@method
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write ``callable(element)`` over each element, on the host. Slow: for tests and oddities."""
    return _mapped("apply_", self, (), callable)


@method
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write ``callable(element, other)`` over each element, on the host; the other tensor broadcasts."""
    return _mapped("map_", self, (tensor,), callable)


@method
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Write ``callable(element, x, y)`` over each element, on the host; the others broadcast."""
    return _mapped("map2_", self, (x, y), callable)


# What a tensor is


@method
def to_dense(self: Tensor, dtype: Any = None) -> Tensor:
    """The tensor itself, which is dense. With ``dtype`` as that."""
    return self if dtype is None else self.to(dtype)  # type: ignore[attr-defined, no-any-return]


@method
def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, for readers."""
    return self.data_ptr()


# Order in memory


@method
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dims from the one with the largest step in memory to the one with the smallest.

    Args:
        ambiguity_check: raise where dims of size 1 or equal steps leave more than one order; a list of memory formats: where
            of them more than the row-major one fits, or none.
    """
    steps = self.stride()
    if ambiguity_check and (1 in self.native.shape or any([a == b for a, b in pairwise(steps)])):
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        if [one.dims for one in formats if self.is_contiguous(memory_format=one)] != [None]:
            raise UsageError(
                "dim_order: The tensor does not have unique dim order, or cannot map to exact one of the given memory formats, "
                f"got sizes {list(self.native.shape)} and strides {list(steps)}; leave out ambiguity_check"
            )
        return tuple(range(self.ndim))
    return tuple(sorted(range(self.ndim), key=lambda i: (-steps[i], i)))


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: Any = None, layout: Any = None,
                   device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """An uninitialised tensor of a shape whose dims lie in memory in the order ``physical_layout``, without gaps."""
    if layout is not None:
        only_strided("empty_permuted", layout)
    shape = rules.as_shape("empty_permuted", (size,))
    order = tuple(physical_layout)
    if sorted(order) != list(range(len(shape))):
        raise ShapeError(
            f"empty_permuted: Number of dimensions in size does not match the length of the physical_layout, or a dim is "
            f"missing, got {list(order)} for {list(shape)}; name each dim once"
        )
    back = [order.index(i) for i in range(len(shape))]
    made: Any = empty([shape[i] for i in order], dtype=dtype, device=device).permute(back)  # type: ignore[attr-defined]
    made = made.detach()
    return made.requires_grad_(requires_grad) if requires_grad else made  # type: ignore[no-any-return]


@method
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """The indices of the first ``size`` elements that are not zero, a row each; ``fill_value`` in rows without one."""
    if size < 0:
        raise UsageError(f"nonzero_static: 'size' must be an non-negative integer, got {size}; pass 0 or more")
    found: Any = nonzero(input)[:size]
    made: Any = input.new_full((size, input.ndim), fill_value, dtype=dtypes.int64)  # type: ignore[attr-defined]
    rows = arange(found.native.shape[0], device=input.device)
    made = made.index_copy(0, rows, found)
    return made if out is None else store("nonzero_static", made, out)
