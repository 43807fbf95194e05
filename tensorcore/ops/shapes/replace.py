"""Copies of a tensor with a part of it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore.errors import ArgumentTypeError, DimensionError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors, lifted
from tensorcore.ops.output import store
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.views_part import (
    as_strided,
    diagonal_op,
    diagonal_options,
    key_at,
    select_key,
    select_op,
    slice_op,
)
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter"]


def _replaced(name: str, op: Op, input: Tensor, src: Tensor, options: dict[str, Any]) -> Tensor:
    if (
        type(input) is type(src) is Tensor
        and input.node is src.node is None
        and input.dtype is src.dtype
        and input.device is src.device
        and not input.device.many
    ):
        try:
            return _written(op, input, src, options)
        except (MemoryError, ValueError):  # what is below frees the caches, and says which shapes do not fit
            pass
    wanted = op.view(input.detach(), options).native.shape  # type: ignore[attr-defined]
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"{name}: expected src to be a Tensor, got {src!r}; wrap it in torch.tensor(...)")
    if tuple(src.native.shape) != tuple(wanted):
        raise ShapeError(
            f"{name}: expected src to have a size equal to the slice of self, got src size = "
            f"{list(src.shape)}, slice size = "
            f"{list(wanted)}; give it that shape"
        )
    input, src = lifted(name, input, src)
    made = _copied(input)
    op.view(made, options).copy_(src)  # type: ignore[attr-defined]
    return made


def _written(op: Op, input: Tensor, src: Tensor, options: dict[str, Any]) -> Tensor:
    """What is not recorded, of one dtype and device; ValueError where the shapes do not fit."""
    device = input.device
    kernels = device.kernels
    native = kernels["clone"](input.native)
    part = kernels[op.kernel](native, **options)
    if tuple(part.shape) != tuple(src.native.shape):
        raise ValueError(f"expected {part.shape}, got {src.native.shape}")
    kernels["copy"](part, src.native)
    return new_tensor(native, input.dtype, device)


def _copied(input: Tensor) -> Tensor:
    """A copy to write to, also where what is written has more values than the input: one for each example of a vmap."""
    if not input.device.many:
        return input.clone()  # type: ignore[attr-defined, no-any-return]
    room = input.new_empty_strided(input.shape, input.stride())  # type: ignore[attr-defined]
    return room.copy_(input)  # type: ignore[no-any-return]


@operation(samples=samples.select_scatter)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``input`` with the slice at ``index`` along ``dim`` replaced by ``src``."""
    if type(input) is not Tensor:
        check_tensors("select_scatter", input=input)
    return _replaced("select_scatter", select_op, input, src, {"key": select_key("select_scatter", input, dim, index)})


@operation(samples=samples.slice_scatter)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A copy of ``input`` with the part ``start:end:step`` along ``dim`` replaced by ``src``."""
    if type(input) is not Tensor:
        check_tensors("slice_scatter", input=input)
    if step <= 0:
        raise ShapeError(f"slice_scatter: slice step must be positive, got {step}; pass at least 1")
    if not input.native.shape:
        raise DimensionError("slice_scatter: slice() cannot be applied to a 0-dim tensor, got one; unsqueeze it")
    at = rules.wrap_dim("slice_scatter", dim, len(input.native.shape))
    begin, stop, _ = slice(start, end).indices(input.native.shape[at])
    made = _replaced("slice_scatter", slice_op, input, src, {"key": key_at(at, slice(begin, max(begin, stop), step))})
    return made if out is None else store("slice_scatter", made, out)


@operation(samples=samples.diagonal_scatter)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of ``input`` with a diagonal replaced by ``src``."""
    if type(input) is not Tensor:
        check_tensors("diagonal_scatter", input=input)
    options = diagonal_options("diagonal_scatter", input.native.shape, offset, dim1, dim2)
    return _replaced("diagonal_scatter", diagonal_op, input, src, options)


@operation(samples=samples.as_strided_scatter)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of ``input`` with the elements that ``as_strided`` shows replaced by ``src``."""
    if type(input) is not Tensor or type(src) is not Tensor:
        check_tensors("as_strided_scatter", input=input, src=src)
    input, src = lifted("as_strided_scatter", input, src)
    made = _copied(input)
    part = as_strided(made, size, stride, storage_offset)
    if tuple(src.native.shape) != tuple(part.native.shape):
        raise ShapeError(
            f"as_strided_scatter: expected src to have a size equal to the slice of self, got "
            f"src size = {list(src.shape)}, "
            f"slice size = {list(part.shape)}; give it that shape"
        )
    part.copy_(src)  # type: ignore[attr-defined]
    return made
