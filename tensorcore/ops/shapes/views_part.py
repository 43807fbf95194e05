"""Views of a part of the elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore.backend.strides import may_overlap
from tensorcore.errors import DimensionError, GradientError, ShapeError
from tensorcore.formats import contiguous_format
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.kinds import view as view_op
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.samples import index as samples
from tensorcore.shortcuts import before
from tensorcore.tape.node import adding
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "as_strided", "as_strided_", "diagonal", "narrow", "narrow_copy", "select",
]  # fmt: skip


def _indexing(name: str) -> Op:
    return view_op(name, "A part of the elements.", kernel="index",
                   grad=_put_back)  # fmt: skip


def _put_back(g: Any, input_shape: Any, key: Any, arrived: Any) -> Any:
    """The gradient of a part: added to its place in what has arrived, or zeros around it."""
    if arrived is None:
        return apply(unindex, (g,), {"shape": input_shape, "key": key})
    kernels = arrived.device.kernels
    part = kernels["index"](arrived.native, key=key)
    with adding(arrived):
        kernels["add"](part, g.native, out=part)
    return None


select_op, slice_op = _indexing("select"), _indexing("slice")
unindex = Op("unindex", "input", "Zeros of a shape with the input in the place of a basic index.", register=False,
             grads=dict(input=lambda g, key: slice_op.view(g, {"key": key})))  # fmt: skip

diagonal_op = view_op(
    "diagonal", "The elements on a diagonal of two dims.", kernel="diagonal",
    grad=lambda g, input_shape, offset, dim1, dim2: apply(
        _undiagonal, (g,), {"shape": input_shape, "offset": offset, "dim1": dim1, "dim2": dim2}),
)  # fmt: skip
_undiagonal = Op(
    "undiagonal", "input", "Zeros of a shape with the input on "
        "a diagonal.", register=False, backward_name="DiagonalBackward0",
    grads=dict(input=lambda g, offset, dim1, dim2: diagonal_op.view(g, {"offset": offset, "dim1": dim1, "dim2": dim2})),
)  # fmt: skip
_unfold = view_op(
    "unfold", "Windows along a dim.", kernel="windows",
    grad=lambda g, input_shape, dim, size, step: apply(
        _fold, (g,), {"shape": input_shape, "dim": dim, "size": size, "step": step}),
)  # fmt: skip
_fold = Op(
    "fold", "input", "The sum of windows, each in its place.", kernel="unwindows", register=False, backward_name="UnfoldBackwardBackward0",
    grads=dict(input=lambda g, dim, size, step: _unfold.view(g, {"dim": dim, "size": size, "step": step})),
)  # fmt: skip
_as_strided = view_op(
    "as_strided", "The memory under a tensor with any sizes and strides.", kernel="as_strided",
    grad=lambda g, shape, strides, offset, own: _as_strided_grad(g, (shape, strides, offset), own),
)  # fmt: skip
# The geometry of the input is for the gradient alone; the kernel must not see it.
_kernel_view = _as_strided.view  # type: ignore[attr-defined]
_regather = Op(
    "regather", "input", "The sum of what lies in the same place, in another geometry.", register=False,
    grads=dict(input=lambda g, own, wanted: apply(_regather, (g,), {"own": wanted, "wanted": own})),
)  # fmt: skip
_shared = Op("shared", "input", "Each element divided by how many share its place.", register=False,
             grads=dict(input=lambda g, geometry: apply(_shared, (g,), {"geometry": geometry})))  # fmt: skip
_show_select, _show_slice = select_op.view, slice_op.view  # type: ignore[attr-defined]
_ALL = slice(None)


def key_at(dim: int, one: Any) -> tuple[Any, ...]:
    """A basic index along ``dim``."""
    return (_ALL,) * dim + (one,)


@operation(samples=samples.select)
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """The slice at ``index`` along ``dim``, which the result lacks."""
    if type(input) is not Tensor:
        check_tensors("select", input=input)
    shape = input.native.shape
    if (
        type(dim) is int
        and type(index) is int
        and -len(shape) <= dim < len(shape)
        and -shape[dim] <= index < shape[dim]
    ):
        key = (_ALL,) * (dim % len(shape)) + (index,)
        return _show_select(input, {"key": key})  # type: ignore[no-any-return]
    return select_op.view(input, {"key": select_key("select", input, dim, index)})


def select_key(op: str, input: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    shape = input.native.shape
    if not shape:
        raise DimensionError(f"{op}: select() cannot be applied to a 0-dim tensor, got one; use item()")
    at = rules.wrap_dim(op, dim, len(shape))
    index = rules.whole("select", "index", index, vectors=True)
    if not -shape[at] <= index < shape[at]:
        raise DimensionError(
            f"{op}: expected index in the range [{-shape[at]}, {shape[at] - 1}], got {index}; it is out of range for "
            f"dim {dim} of size {shape[at]}"
        )
    return key_at(at, index)


@operation(samples=samples.narrow)
@before("narrow", _show_slice)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """The part of ``length`` elements from ``start`` (an int or a 0-d integer tensor) along ``dim``."""
    if type(input) is not Tensor:
        check_tensors("narrow", input=input)
    shape = input.native.shape
    if (
        type(dim) is type(start) is type(length) is int
        and 0 <= dim < len(shape)
        and 0 <= start <= start + length <= shape[dim]
    ):
        return _show_slice(input, {"key": (_ALL,) * dim + (slice(start, start + length, 1),)})  # type: ignore[no-any-return]
    if not shape:
        raise ShapeError("narrow: narrow() cannot be applied to a 0-dim tensor, got one; use unsqueeze(0)")
    at = rules.wrap_dim("narrow", dim, len(shape))
    if isinstance(start, Tensor) and (start.native.shape or start.dtype.kind != "integer"):
        raise ShapeError(
            f"narrow: start must be an 0-dim integral Tensor, got {start.dtype} of shape {list(start.shape)}"
        )
    begin, size = rules.whole("narrow", "start", start, vectors=True), shape[at]
    if length < 0:
        raise ShapeError(f"narrow: narrow(): length must be non-negative, got {length}; take fewer from elsewhere")
    if not -size <= begin <= size:
        raise DimensionError(
            f"narrow: expected start in the range [{-size}, {size}], got {begin}; Dimension out of range"
        )
    begin = begin + size if begin < 0 else begin
    if begin > size - length:
        raise ShapeError(
            f"narrow: start ({begin}) + length ({length}) exceeds dimension size ({size}), got dim {dim}; take fewer"
        )
    return slice_op.view(input, {"key": key_at(at, slice(begin, begin + length, 1))})


@operation(samples=samples.narrow)
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None) -> Tensor:
    """A copy of the part of ``length`` elements from ``start`` along ``dim``."""
    if type(input) is not Tensor:
        check_tensors("narrow_copy", input=input)
    part = narrow(input, dim, start, length)
    if out is not None:
        return store("narrow_copy", part, out)
    if part.node is None and type(part) is Tensor:
        return new_tensor(part.device.kernels["contiguous"](part.native), part.dtype, part.device)
    return part.clone(memory_format=contiguous_format)  # type: ignore[attr-defined, no-any-return]


@operation(samples=samples.diagonal)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements whose indices along ``dim1`` and ``dim2`` differ by ``offset``, along a new last dim; a view."""
    if type(input) is not Tensor:
        check_tensors("diagonal", input=input)
    return diagonal_op.view(input, diagonal_options("diagonal", input.native.shape, offset, dim1, dim2))


@before("diagonal_options")
def diagonal_options(op: str, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> dict[str, Any]:
    first, second = rules.wrap_dim(op, dim1, len(shape)), rules.wrap_dim(op, dim2, len(shape))
    if first == second:
        raise ShapeError(f"{op}: diagonal dimensions cannot be identical, got {dim1}, {dim2}; name two dims")
    return {"offset": rules.whole(op, "offset", offset), "dim1": first, "dim2": second}


@method
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of ``size`` elements along a dim, ``step`` apart; the windows' elements lie along a new last dim."""
    shape, at = input.native.shape, rules.wrap_dim("unfold", dimension, len(input.native.shape))
    have = shape[at] if shape else 1
    size, step = rules.whole("unfold", "size", size), rules.whole("unfold", "step", step)
    if size < 0 or size > have:
        raise ShapeError(
            f"unfold: maximum size for tensor at dimension {dimension} is {have}, got size {size}; take fewer"
        )
    if step <= 0:
        raise ShapeError(f"unfold: expected step > 0, got step {step}; pass a positive step")
    return _unfold.view(input, {"dim": at, "size": size, "step": step})


def window_sum(windows: Tensor, shape: tuple[int, ...], dim: int, size: int, step: int) -> Tensor:
    """The sum of windows, as ``unfold`` shows them, each in its place in a tensor of ``shape``."""
    return apply(_fold, (windows,), {"shape": shape, "dim": dim, "size": size, "step": step})


@before("strided_options")
def _strided_options(
    input: Tensor, size: Any, stride: Any, storage_offset: Any, op: str = "as_strided"
) -> dict[str, Any]:
    """What the kernel takes, and the input's own geometry, which the gradient asks for."""
    size, stride, start = _strided_arguments(op, input, size, stride, storage_offset)
    own_strides, own_start = input.device.layout(input.native)
    own = (tuple(input.native.shape), own_strides, 0)
    return {"shape": size, "strides": stride, "offset": start - own_start, "own": own}


@operation(samples=samples.as_strided)
@before("as_strided", _kernel_view, _strided_options)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of the storage under ``input`` with any sizes, strides and offset, all in elements.

    Args:
        storage_offset: from the start of the storage; that of ``input`` where None.
    """
    if type(input) is not Tensor:
        check_tensors("as_strided", input=input)
    return _strided_view(input, _strided_options(input, size, stride, storage_offset))


def _strided_native(input: Tensor, options: dict[str, Any]) -> Any:
    return input.device.kernels["as_strided"](
        input.native, shape=options["shape"], strides=options["strides"], offset=options["offset"]
    )


def _strided_view(input: Tensor, options: dict[str, Any]) -> Tensor:
    return _kernel_view(input, options, _strided_native(input, options))  # type: ignore[no-any-return]


_as_strided.view = _strided_view  # type: ignore[attr-defined]


def _strided_arguments(
    op: str, input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    shape, strides = rules.as_shape(op, (size,)), rules.as_shape(op, (stride,))
    if len(shape) != len(strides):
        raise ShapeError(
            f"{op}: mismatch in length of strides and shape, got {list(shape)} and {list(strides)}; give as many"
        )
    if strides and min(strides) < 0:
        raise ShapeError(
            f"{op}: Negative strides are not supported at the moment, got strides: {list(strides)}; use flip"
        )
    if shape and min(shape) < 0:
        raise ShapeError(f"{op}: expected sizes >= 0, got {list(shape)}; use sizes >= 0")
    own_strides, own_start = input.device.layout(input.native)
    start = own_start if storage_offset is None else rules.whole(op, "storage_offset", storage_offset, vectors=True)
    if start < 0:
        raise ShapeError(
            f"{op}: Tensor: invalid storage offset {start}, got a negative one; count from the storage's start"
        )
    span = 0 if 0 in shape else 1 + start + _reach(shape, strides)
    if own_start <= start and span <= own_start + 1 + _reach(input.native.shape, own_strides):
        return shape, strides, start  # between the tensor's own elements, which spares a look at the storage
    have = input.device.storage(input.native).shape[0]
    if span > have:
        raise ShapeError(
            f"{op}: setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset "
            f"{start} requiring a storage "
            f"size of {span} are out of bounds for storage of size {have}, got too large ones; stay inside"
        )
    return shape, strides, start


def _reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How far the last element is from the first; under 0 where there is none."""
    return -1 if 0 in shape else sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])


def _as_strided_grad(g: Tensor, wanted: tuple[Any, ...], own: tuple[Any, ...]) -> Tensor:
    """Each place of the memory gets the sum of its gradients, which the input's elements in that place share."""
    if not prod(own[0]) or not prod(wanted[0]):
        return g.new_zeros(own[0])  # type: ignore[attr-defined]
    grad = apply(_regather, (g,), {"own": wanted, "wanted": own})
    if may_overlap(own[0], own[1]):
        grad = apply(_shared, (grad,), {"geometry": own})
    return grad


def as_strided_(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Make this tensor, off the tape, show its storage with other sizes, strides and offset."""
    options = _strided_options(input, size, stride, storage_offset, "as_strided_")
    if input.node is not None or input.origin is not None:
        raise GradientError("as_strided_: expected a tensor off the tape that is no view, got one; use as_strided")
    input.native = _strided_native(input, options)
    return input


Tensor.as_strided_ = as_strided_  # type: ignore[attr-defined]
