"""Joining and repeating: tensors after, on top of, and beside one another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, OutOfMemoryError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.creation.create import arange
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.operands import check_tensors, result_type
from tensorcore.ops.output import free_place, store, written
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.flat import grown
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "cat", "column_stack", "concat", "concatenate", "dstack", "hstack", "repeat_interleave", "row_stack", "stack", "tile",
    "vstack",
]  # fmt: skip

_cat = Op("cat", "tensors", "Tensors one after the other along a dim.", variadic=True, register=False,
          grads=dict(tensors=lambda g, dim, tensors_shape: _parts(g, dim, tensors_shape)))  # fmt: skip
_stack = Op("stack", "tensors", "Tensors along a new dim.", variadic=True, register=False,
            grads=dict(tensors=lambda g, dim: g.unbind(dim)))  # fmt: skip
_repeat = Op("repeat", "input", "Copies beside one another.", register=False,
             grads=dict(input=lambda g, input_shape, repeats: _fold_copies(g, input_shape, repeats)))  # fmt: skip


def _tensors(op: str, tensors: Any) -> list[Tensor]:
    if type(tensors) not in (list, tuple) and (isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__")):
        raise ArgumentTypeError(
            f"{op}: argument 'tensors' must be tuple of Tensors, got {type(tensors).__name__}; pass a list"
        )
    found = list(tensors)
    for i, one in enumerate(found):
        if type(one) is not Tensor and not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op}: expected Tensor as element {i} in argument 0, got {type(one).__name__}; "
                f"wrap it in torch.tensor(...)"
            )
    return found


def _alike(tensors: Any) -> list[Any] | None:
    """The natives of an ordinary list: tensors of one shape, dtype and device, none of them recorded; else None."""
    if (type(tensors) is not list and type(tensors) is not tuple) or not tensors or type(tensors[0]) is not Tensor:
        return None
    first = tensors[0]
    shape, dtype, device = first.native.shape, first.dtype, first.device
    natives = []
    for one in tensors:
        if type(one) is not Tensor or one.dtype is not dtype or one.device is not device or one.node is not None:
            return None
        native = one.native
        if native.shape != shape:
            return None
        natives.append(native)
    return natives


@before("fitting")
def _fitting(tensors: Any, dim: Any) -> tuple[list[Any], int, tuple[int, ...]] | None:
    """The natives of tensors of one dtype and device, of sizes that fit, none of them recorded; the dim from the front, and
    the shape of all of them. None where something is unusual."""
    if (type(tensors) is not list and type(tensors) is not tuple) or not tensors or type(dim) is not int:
        return None
    first = tensors[0]
    shape = first.native.shape if type(first) is Tensor else ()
    ndim = len(shape)
    if not -ndim <= dim < ndim:
        return None
    at, total, natives = dim % ndim, 0, []
    for one in tensors:
        if (
            type(one) is not Tensor
            or one.dtype is not first.dtype
            or one.device is not first.device
            or one.node is not None
        ):
            return None
        sizes = one.native.shape
        if sizes != shape and (len(sizes) != ndim or sizes[:at] != shape[:at] or sizes[at + 1 :] != shape[at + 1 :]):
            return None
        total += sizes[at]
        natives.append(one.native)
    if total > sys.maxsize:
        return None
    return natives, at, (*shape[:at], total, *shape[at + 1 :])


def _met(tensors: Any) -> list[Tensor] | None:
    """Tensors off the tape of several dtypes in the one that they meet in; None where there is another thing to look at."""
    first = tensors[0] if (type(tensors) is list or type(tensors) is tuple) and tensors else None
    if type(first) is not Tensor:
        return None
    common, device = first.dtype, first.device
    for one in tensors:
        if type(one) is not Tensor or one.node is not None or one.device is not device or not one.native.shape:
            return None
        if one.dtype is not common:
            common = dtypes.PROMOTION[common, one.dtype]
    cast = device.kernels["cast"]
    return [
        one if one.dtype is common else new_tensor(cast(one.native, dtype=common), common, device) for one in tensors
    ]


def _same_dtype(tensors: list[Tensor]) -> list[Tensor]:
    first = tensors[0].dtype
    if all(one.dtype is first for one in tensors):
        return tensors
    common = result_type(*tensors)
    return [one.to(common) for one in tensors]  # type: ignore[attr-defined]


def _stored(op: str, made: Tensor, out: Any, tensors: Sequence[Tensor]) -> Tensor:
    """Write the result into ``out``; PyTorch raises TypeError here for a dtype that cannot hold it."""
    if isinstance(out, Tensor) and not dtypes.can_cast(made.dtype, out.dtype):
        raise ArgumentTypeError(
            f"{op}: input types can't be cast to the desired output type {out.dtype.name}, got {made.dtype.name}; pass an out "
            f"of a wider dtype"
        )
    return store(op, made, out, *tensors, all_of_it=True)


def _into(out: Any, tensors: Any, shape: tuple[int, ...], name: str, natives: list[Any], options: Any) -> bool:
    """Have a kernel join tensors of one dtype in ``out``, where that is free and fits; whether it did."""
    first = tensors[0]
    if (
        not free_place(out, tensors)
        or out.dtype is not first.dtype
        or out.device is not first.device
        or out.native.shape != shape
    ):
        return False
    try:
        first.device.kernels[name](natives, **options, out=out.native)
    except Exception:
        return False  # of another house, which may not take ``out``
    written(out)
    return True


@operation(method=False, samples=samples.cat)
@before("joined", False)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None, axis: int | None = None) -> Tensor:
    """Tensors one after the other along ``dim``; their other sizes are equal. Empty vectors are left out."""
    if axis is not None:
        dim = axis
    found = _fitting(tensors, dim)
    if found is None and out is None and (together := _met(tensors)) is not None:
        tensors = together
        found = _fitting(tensors, dim)
    if found is not None:
        natives, at, shape = found
        device, options = tensors[0].device, {"dim": at, "shape": shape}
        if out is None:
            try:
                native = device.kernels["cat"](natives, **options)
            except MemoryError as error:
                native = again(device, "cat", (natives,), options, error)
            return new_tensor(native, tensors[0].dtype, device)  # type: ignore[no-any-return]
        if _into(out, tensors, shape, "cat", natives, options):
            return out
    given = _tensors("cat", tensors)
    if not given:
        raise ArgumentError("cat: expected a non-empty list of Tensors, got []; pass at least one")
    # Since its first releases PyTorch lets an empty vector stand for nothing at all.
    solid = [one for one in given if tuple(one.native.shape) != (0,)]
    made = _joined(given, solid, dim)
    return made if out is None else _stored("cat", made, out, tensors)


def _joined(found: list[Tensor], solid: list[Tensor], dim: int) -> Tensor:
    if not solid:
        solid = found[:1]
        rules.wrap_dim("cat", dim, 1)
        dim = 0
    first = solid[0].native.shape
    if not first:
        raise ShapeError("cat: zero-dimensional tensor (at position 0) cannot be concatenated, got one; use stack")
    at = rules.wrap_dim("cat", dim, len(first))
    total = 0
    for i, one in enumerate(solid):
        shape = one.native.shape
        if len(shape) != len(first):
            raise ShapeError(
                f"cat: Tensors must have same number of dimensions: got {len(first)} and "
                f"{len(shape)}, at position {i}; "
                f"unsqueeze or flatten one"
            )
        if shape[:at] != first[:at] or shape[at + 1 :] != first[at + 1 :]:
            raise ShapeError(
                f"cat: Sizes of tensors must match except in dimension {at}, got {list(first)} and "
                f"{list(shape)} at position "
                f"{i}; make the other sizes equal"
            )
        total += shape[at]
    if total > sys.maxsize:
        raise OutOfMemoryError(f"cat: expected fewer than 2**63 elements along dim {at}, got {total}; join fewer")
    found = _same_dtype(found)
    return apply(_cat, found, {"dim": at, "shape": (*first[:at], total, *first[at + 1 :])})


@operation(method=False, samples=samples.cat)
@before("joined", False)
def concat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None, axis: int | None = None) -> Tensor:
    """As :func:`cat`."""
    return cat(tensors, dim, out=out, axis=axis)


@before("joined", False)
def concatenate(
    tensors: Sequence[Tensor], axis: int = 0, out: Tensor | None = None, *, dim: int | None = None
) -> Tensor:
    """As :func:`cat`."""
    return cat(tensors, axis if dim is None else dim, out=out)


@operation(method=False, samples=samples.stack)
@before("joined", True)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None, axis: int | None = None) -> Tensor:
    """Tensors of one shape along a new dim at ``dim``."""
    if axis is not None:
        dim = axis
    natives = _alike(tensors)
    if natives is not None and type(dim) is int:
        given = natives[0].shape
        ndim = len(given) + 1
        if -ndim <= dim < ndim:
            first, at = tensors[0], dim + ndim if dim < 0 else dim
            if out is not None:
                shape = (*given[:at], len(natives), *given[at:])
                return out if _into(out, tensors, shape, "stack", natives, {"dim": at}) else _stacked(tensors, dim, out)
            try:
                return new_tensor(first.device.kernels["stack"](natives, dim=at), first.dtype, first.device)
            except MemoryError:
                pass
    return _stacked(tensors, dim, out)


def _stacked(tensors: Any, dim: int, out: Any) -> Tensor:
    found = _tensors("stack", tensors)
    if not found:
        raise ShapeError("stack: stack expects a non-empty TensorList, got []; pass at least one")
    shape = found[0].native.shape
    for i, one in enumerate(found):
        if one.native.shape != shape:
            raise ShapeError(
                f"stack: stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(one.native.shape)} at entry {i}; reshape one"
            )
    at = rules.wrap_dim("stack", dim, len(shape) + 1)
    made = apply(_stack, _same_dtype(found), {"dim": at})
    return made if out is None else _stored("stack", made, out, tensors)


def _fitted(tensors: Any, dim: int, least: int) -> Tensor | None:
    """Plain tensors of at least ``least`` dims, one after the other along ``dim``; None where something is unusual.

    Alike ones that lack the last of those dims, or the first ones too, are stacked where it would be.
    """
    found = _fitting(tensors, dim)
    if found is not None and len(found[2]) >= least:
        name, (natives, at, shape) = "cat", found
        options = {"dim": at, "shape": shape}
    else:
        natives = _alike(tensors)  # type: ignore[assignment]
        lacks = 0 if natives is None else least - len(natives[0].shape)
        if natives is None or least < 2 or not 0 < lacks < least:
            return None
        name, options = "stack", {"dim": dim - lacks + 1}
    try:
        kernels = tensors[0].device.kernels
        native = kernels[name](natives, **options)
        if len(native.shape) < least:  # vectors behind one another: a dim of size 1 stands in front
            native = kernels["view"](native, shape=(1,) * (least - len(native.shape)) + tuple(native.shape))
    except MemoryError:
        return None
    return new_tensor(native, tensors[0].dtype, tensors[0].device)  # type: ignore[no-any-return]


def _all(op: str, tensors: Any, dims: int, grow: Any) -> list[Tensor]:
    """The tensors as a list, those of fewer dims as what ``grow`` makes of them."""
    found = _tensors(op, tensors)
    if not found:
        raise ShapeError(f"{op}: {op} expects a non-empty TensorList, got []; pass at least one")
    for i, one in enumerate(found):
        if len(one.native.shape) < dims:
            found[i] = grow(one, dims)
    return found


@operation(method=False, samples=samples.stack_plain)
@before("beside", 1, 2, True)
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors beside one another: vectors end to end, others along their second dim."""
    if type(tensors) in (list, tuple) and tensors and type(tensors[0]) is Tensor:
        dim = min(len(tensors[0].native.shape), 2) - 1
        made = _fitted(tensors, dim, dim + 1) if dim >= 0 and out is None else None
        if made is not None:
            return made
    found = _all("hstack", tensors, 1, grown)
    return cat(found, 0 if found[0].ndim == 1 else 1, out=out)


@operation(method=False, samples=samples.stack_plain)
@before("beside", 0, 2)
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors on top of one another: vectors as rows, others along their first dim."""
    made = _fitted(tensors, 0, 2) if out is None else None
    if made is not None:
        return made
    return cat(_all("vstack", tensors, 2, grown), 0, out=out)


def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """As :func:`vstack`."""
    return vstack(tensors, out=out)


@operation(method=False, samples=samples.stack_plain)
@before("beside", 2, 3)
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors behind one another, along their third dim."""
    made = _fitted(tensors, 2, 3) if out is None else None
    if made is not None:
        return made
    return cat(_all("dstack", tensors, 3, grown), 2, out=out)


@operation(method=False, samples=samples.stack_plain)
@before("beside", 1, 2)
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Vectors as the columns of a matrix, matrices beside one another."""
    made = _fitted(tensors, 1, 2) if out is None else None
    if made is not None:
        return made
    found = _all("column_stack", tensors, 2, lambda one, dims: one.reshape(one.numel(), 1))
    return cat(found, 1, out=out)


@method
def repeat(input: Tensor, *sizes: Any, repeats: Any = None) -> Tensor:
    """The tensor copied ``repeats`` times along each dim; new dims come in front."""
    counts = rules.as_shape("repeat", sizes if repeats is None else (repeats,))
    shape = input.native.shape
    if len(counts) < len(shape):
        raise ShapeError(
            f"repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor, got "
            f"{list(counts)} for {list(shape)}; name all dims"
        )
    if counts and min(counts) < 0:
        raise ShapeError(
            f"repeat: Trying to create tensor with negative dimension {min(counts)}, got "
            f"{list(counts)}; use counts >= 0"
        )
    return apply(_repeat, (input,), {"repeats": counts})


@operation(samples=samples.tile)
def tile(input: Tensor, *sizes: Any, dims: Any = None) -> Tensor:
    """The tensor copied ``dims`` times along its last dims."""
    if type(input) is not Tensor:
        check_tensors("tile", input=input)
    counts = rules.as_shape("tile", sizes if dims is None else (dims,))
    return repeat(input, (1,) * (len(input.native.shape) - len(counts)) + counts)


@operation(samples=samples.repeat_interleave)
def repeat_interleave(
    input: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element (or slice along ``dim``) ``repeats`` times, one after the other; of all elements in a row without ``dim``.

    Args:
        repeats: an int, or a tensor with a count for each. Without it ``input`` holds the counts, and
            the result the indices.
        output_size: the result's length along ``dim``, where the caller knows it.
    """
    if repeats is None:
        if input.ndim != 1 or input.dtype.kind != "integer":
            raise ShapeError(
                f"repeat_interleave: repeat_interleave only accept 1D vector as repeat, got "
                f"{list(input.shape)} of {input.dtype}"
            )
        return repeat_interleave(arange(input.numel(), device=input.device), input)
    check_tensors("repeat_interleave", input=input)
    if not isinstance(repeats, Tensor):
        repeats = rules.whole("repeat_interleave", "repeats", repeats, vectors=True)
    if dim is None:
        input, dim = input.reshape(-1), 0  # type: ignore[attr-defined]
    at = rules.wrap_dim("repeat_interleave", dim, input.ndim)
    if not input.ndim:
        input = input.reshape(1)  # type: ignore[attr-defined]
    size = input.native.shape[at]
    if isinstance(repeats, Tensor):
        if repeats.dtype.name not in ("int64", "int32"):
            raise ShapeError(
                f"repeat_interleave: repeats has to be Long or Int tensor, got {repeats.dtype}; convert it with .long()"
            )
        if repeats.ndim > 1 or (repeats.numel() not in (1, size)):
            raise ShapeError(
                f"repeat_interleave: repeats must have the same size as input along dim, got repeats.size(0) = "
                f"{repeats.numel()} and input.size({at}) = {size}; give one count for each"
            )
        if repeats.numel() and int(repeats.device.kernels["lowest"](repeats.native)) < 0:
            raise ShapeError("repeat_interleave: repeats can not be negative, got a negative one; use counts >= 0")
        counts: Any = repeats.native.reshape(-1) if repeats.ndim == 0 or repeats.numel() == 1 else repeats.native
        total = None
    else:
        if repeats < 0:
            raise ShapeError(f"repeat_interleave: Repeats must be non-negative, got {repeats}; use counts >= 0")
        counts, total = int(repeats), size * int(repeats)
    if input.node is None and type(input) is Tensor and type(counts) is int and output_size is None:
        native = input.device.kernels["repeat_interleave"](input.native, repeats=counts, dim=at)
        return new_tensor(native, input.dtype, input.device)
    source = arange(size, device=input.device)
    numbers = source.device.kernels["repeat_interleave"](source.native, repeats=counts, dim=0)
    index = new_tensor(numbers, dtypes.int64, source.device)
    if output_size is not None and (total if total is not None else index.numel()) != output_size:
        raise ShapeError(
            f"repeat_interleave: allocated size does not match required size, got "
            f"output_size={output_size}; leave it out"
        )
    return input.index_select(at, index)  # type: ignore[attr-defined]


def _parts(g: Tensor, dim: int, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    parts, start = [], 0
    for shape in shapes:
        if tuple(shape) == (0,):
            parts.append(g.new_zeros(0))  # type: ignore[attr-defined]
            continue
        parts.append(g.narrow(dim, start, shape[dim]))  # type: ignore[attr-defined]
        start += shape[dim]
    return parts


def _fold_copies(g: Tensor, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    """The sum over all copies of each element."""
    if not prod(repeats):
        return g.new_zeros(shape)  # type: ignore[attr-defined]
    extra = len(repeats) - len(shape)
    pairs: list[int] = []
    for count, size in zip(repeats, (1,) * extra + tuple(shape), strict=True):
        pairs += [count, size]
    summed = g.reshape(pairs).sum(tuple(range(0, len(pairs), 2)))  # type: ignore[attr-defined]
    return summed.reshape(shape)
