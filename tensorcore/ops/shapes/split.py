"""Views of several parts of a tensor, which together are all of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import sub
from typing import Any

import numpy as np

from tensorcore.errors import DimensionError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors, plain
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.ops.shapes.views import several_views
from tensorcore.ops.shapes.views_part import select_op, slice_op
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor

__all__ = [
    "chunk", "dsplit", "hsplit", "split", "split_with_sizes", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split", "vsplit",
]  # fmt: skip

_ALL = slice(None)
_show_slice = slice_op.view  # type: ignore[attr-defined]
_unbind = Op("unbind", "input", "Slices along a dim.", register=False,
             grads=dict(input=lambda g, dim, input_shape: _restack(g, dim, input_shape)))  # fmt: skip


def _splitting(name: str) -> Op:
    return Op(name, "input", "Parts along a dim.", register=False,
              grads=dict(input=lambda g, dim, sizes, input_shape: _rejoin(g, dim, sizes, input_shape)))  # fmt: skip


_split, _split_with_sizes = _splitting("split"), _splitting("split_with_sizes")


@operation(samples=samples.unbind)
def unbind(input: Tensor, dim: int = 0, *, axis: int | None = None) -> tuple[Tensor, ...]:
    """All slices along ``dim``, as views."""
    if axis is not None:
        dim = axis
    if type(input) is not Tensor:
        check_tensors("unbind", input=input)
    shape = input.native.shape
    if not shape:
        raise DimensionError(
            "unbind: Dimension specified as 0 but tensor has no dimensions, got a 0-d tensor; use item()"
        )
    at = rules.wrap_dim("unbind", dim, len(shape))
    return _slices(_unbind, input, at, shape[at])


def _even(input: Tensor, dim: int, size: int) -> tuple[Tensor, ...]:
    """Parts of one size along ``dim``, the last what is left."""
    have = input.native.shape[dim]
    return _slices(_split, input, dim, [*range(0, have, size), have] if have else [0, 0])


@before("slices", slice_op, select_op)
def _slices(op: Op | None, input: Tensor, dim: int, cuts: Any) -> tuple[Tensor, ...]:
    """The parts between each cut and the next, or so many slices, as results of one node of ``op``; without it each has its own."""
    if op is None:
        return tuple([_show_slice(input, key) for key in _keys(dim, cuts)])
    if type(cuts) is int:
        return several_views(op, input, {"dim": dim}, select_op, _keys(dim, cuts))
    sizes = tuple(map(sub, cuts[1:], cuts))
    return several_views(op, input, {"dim": dim, "sizes": sizes}, slice_op, _keys(dim, cuts))


@before("keys")
def _keys(dim: int, cuts: Any) -> list[dict[str, Any]]:
    """The options of the parts along ``dim`` between each cut and the next, which may be before it; of so many slices."""
    front = (_ALL,) * dim
    if type(cuts) is int:
        return [{"key": (*front, i)} for i in range(cuts)]
    return [{"key": (*front, slice(start, max(start, stop), 1))} for start, stop in itertools.pairwise(cuts)]


@operation(samples=samples.split)
@before("split", slice_op, select_op, _split, _split_with_sizes)
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Views of the parts along ``dim``: of one size (the last may be smaller), or of the sizes in a list."""
    if split_size is not None:
        split_size_or_sections = split_size  # what the method calls it
    if isinstance(split_size_or_sections, (Tensor, np.generic)):
        given = split_size_or_sections.tolist()
        split_size_or_sections = given[0] if isinstance(given, list) and len(given) == 1 else given
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    if type(tensor) is not Tensor:
        check_tensors("split", tensor=tensor)
    shape, size = tensor.native.shape, split_size_or_sections
    if not shape:
        raise ShapeError("split: split expects at least a 1-dimensional tensor, got a 0-d one; use unsqueeze(0)")
    at = rules.wrap_dim("split", dim, len(shape))
    have = shape[at]
    if size < 0:
        raise ShapeError(f"split: split expects split_size be non-negative, got split_size={size}; pass a size > 0")
    if size == 0 and have:
        raise ShapeError(
            f"split: split_size can only be 0 if dimension size is 0, got dimension size of {have}; pass a size > 0"
        )
    return _even(tensor, at, size) if size else _slices(_split, tensor, at, [0, have])


@operation(samples=samples.split_with_sizes)
@before("split", slice_op, select_op, None, _split_with_sizes)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the parts of these sizes along ``dim``, which together are all of it."""
    if type(input) is not Tensor:
        check_tensors("split_with_sizes", input=input)
    shape = input.native.shape
    if not shape:
        raise ShapeError(
            "split_with_sizes: split expects at least a 1-dimensional tensor, got a 0-d one; use unsqueeze(0)"
        )
    at = rules.wrap_dim("split_with_sizes", dim, len(shape))
    sizes = rules.as_shape("split_with_sizes", (split_sizes,))
    cuts, end = [0], 0
    for size in sizes:
        end += size
        cuts.append(end)
    if end != shape[at] or (sizes and min(sizes) < 0):
        raise ShapeError(
            f"split_with_sizes: split_with_sizes expects split_sizes to sum exactly to "
            f"{shape[at]} (input tensor's size at "
            f"dimension {dim}), got split_sizes={list(sizes)}; give sizes >= 0 of that sum"
        )
    return _slices(_split_with_sizes, input, at, cuts)


@operation(samples=samples.chunk)
def chunk(input: Tensor, chunks: int, dim: int = 0, *, axis: int | None = None) -> tuple[Tensor, ...]:
    """Views of at most ``chunks`` parts of equal size along ``dim``; the last may be smaller."""
    if axis is not None:
        dim = axis
    if type(input) is not Tensor:
        check_tensors("chunk", input=input)
    shape = input.native.shape
    if not shape:
        raise ShapeError("chunk: chunk expects at least a 1-dimensional tensor, got a 0-d one; use unsqueeze(0)")
    if type(chunks) is not int:
        chunks = rules.whole("chunk", "chunks", chunks)
    if chunks <= 0:
        raise ShapeError(f"chunk: chunk expects `chunks` to be greater than 0, got: {chunks}; pass at least 1")
    at = rules.wrap_dim("chunk", dim, len(shape))
    size = -(-shape[at] // chunks)
    if not size:
        return _slices(_split_with_sizes, input, at, [0] * (chunks + 1))
    return _even(input, at, size)


def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """As :func:`split`."""
    return split(tensor, split_size, dim)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """As :func:`chunk`."""
    return chunk(input, chunks, dim)


Tensor.unsafe_split = unsafe_split  # type: ignore[attr-defined]
Tensor.unsafe_chunk = unsafe_chunk  # type: ignore[attr-defined]


@operation(samples=samples.tensor_split)
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the parts along ``dim``: as many as an int says, as equal as can be, or cut at each index of a list."""
    if type(input) is not Tensor:
        check_tensors("tensor_split", input=input)
    return _tensor_split("tensor_split", input, indices_or_sections, dim)


def _tensor_split(op: str, input: Tensor, indices_or_sections: Any, dim: int) -> tuple[Tensor, ...]:
    shape = input.native.shape
    if not shape:
        raise ShapeError(
            f"{op}: tensor_split expected at least a 1-dimensional tensor, got a 0-d one; use unsqueeze(0)"
        )
    at = rules.wrap_dim(op, dim, len(shape))
    size = shape[at]
    if type(indices_or_sections) is not int and isinstance(indices_or_sections, (Tensor, np.generic)):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        if n <= 0:
            raise ShapeError(f"{op}: number of sections must be larger than 0, got {n}; pass at least 1")
        each, more = divmod(size, n)
        cuts = [*range(0, size + 1, each)] if each and not more else [i * each + min(i, more) for i in range(n + 1)]
    else:
        cuts = [0, *rules.as_shape(op, (indices_or_sections,)), size]
        if not 0 <= min(cuts) <= max(cuts) <= size:
            cuts = [slice(one, None).indices(size)[0] for one in cuts]
    return _slices(None, input, at, cuts)


def _numpy_split(name: str, least: int, doc: str) -> Any:
    dims = {"hsplit": (0, 0, 1), "vsplit": (0, 0, 0), "dsplit": (0, 0, 0, 2)}[name]  # by the number of dims

    def call(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        if type(input) is not Tensor:
            check_tensors(name, input=input)
        ndim = len(input.native.shape)
        if ndim < least:
            raise ShapeError(
                f"{name}: torch.{name} requires a tensor with at least {least} dimension, got {ndim}; use unsqueeze"
            )
        dim = dims[ndim] if ndim < len(dims) else dims[-1]
        if type(indices_or_sections) is not int:
            indices_or_sections = plain(indices_or_sections)
        if (type(indices_or_sections) is int or isinstance(indices_or_sections, int)) and (
            indices_or_sections <= 0 or input.native.shape[dim] % indices_or_sections
        ):
            raise ShapeError(
                f"{name}: torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                f"{input.native.shape[dim]} is not divisible by the split_size "
                f"{indices_or_sections}, got that; use tensor_split"
            )
        return _tensor_split(name, input, indices_or_sections, dim)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return operation(samples=getattr(samples, name))(call)


hsplit = _numpy_split("hsplit", 1, "Views of the parts along the columns (of a vector, along its elements).")
vsplit = _numpy_split("vsplit", 2, "Views of the parts along the rows.")
dsplit = _numpy_split("dsplit", 3, "Views of the parts along the third dim.")


def _restack(g: list[Any], dim: int, shape: tuple[int, ...]) -> Tensor:
    one = next(each for each in g if each is not None)
    return stack([one.new_zeros(one.shape) if each is None else each for each in g], dim)


def _rejoin(g: list[Any], dim: int, sizes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    one = next(each for each in g if each is not None)
    return cat(
        [
            one.new_zeros((*shape[:dim], size, *shape[dim + 1 :])) if each is None else each
            for each, size in zip(g, sizes, strict=True)
        ],
        dim,
    )
