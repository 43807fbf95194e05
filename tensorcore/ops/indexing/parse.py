"""From an index to the views and the tensors that it stands for, by PyTorch's rules."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DimensionError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.creation.create import tensor
from tensorcore.ops.shapes.shape import _alias, _unsqueeze
from tensorcore.ops.shapes.views_part import select_op, slice_op
from tensorcore.shortcuts import before
from tensorcore.tape.memory import writes
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "ALL",
    "Indices",
    "Kept",
    "check_places",
    "check_scattered",
    "long",
    "masks",
    "new_dim",
    "parse",
    "simple",
    "whole",
]

Indices = tuple[Tensor | None, ...]
ALL = slice(None)
# What PyTorch takes a list with any of as a tuple, unless it is as long as this.
_APART = (slice, type(...), Tensor, list, tuple, range, str, np.ndarray)
_LONG = 32
_NONE = type(None)


class Kept:
    """Indices as a node keeps them: it can tell whether one was written since."""

    __slots__ = ("indices", "versions")

    def __init__(self, indices: Indices) -> None:
        self.indices = indices
        self.versions = [None if one is None else writes(one.version) for one in indices]

    def check(self, op: str) -> Indices:
        """The indices, for the formula of ``op``; GradientError where one was written since."""
        for one, version in zip(self.indices, self.versions, strict=True):
            if one is not None and writes(one.version) != version:
                raise GradientError(
                    f"backward: expected the indices of {op} as they were at the forward call, got "
                    f"one of the variables needed "
                    f"for gradient computation modified by an inplace operation; write it out of place"
                )
        return self.indices


def parse(self: Tensor, key: Any) -> tuple[Tensor, Indices | None]:
    """The view that ints, slices, None and Ellipsis make, and the tensors that index it then, if any."""
    if isinstance(key, list) and len(key) < _LONG and any(one is None or isinstance(one, _APART) for one in key):
        warnings.warn(
            "index: a list with more than numbers in it is taken as a tuple, an index for each dim, as in PyTorch 2.13; write "
            "x[tuple(indices)], or x[torch.tensor(indices)] for one index of several dims",
            stacklevel=3,
        )
        key = tuple(key)
    items: list[tuple[Any, int]] = []  # with how many dims of the tensor each stands for
    shape, named, stretches = self.native.shape, 0, False
    for one in key if isinstance(key, tuple) else (key,):
        kind = type(one)
        count = 1
        plain = kind is int or kind is slice or (kind is Tensor and one.dtype is dtypes.int64 and one.native.shape)
        if not plain:
            one = _item(one)
            count = _dims_of(one)
            stretches = stretches or one is None or type(one) is bool
        items.append((one, count))
        named += count
    if named > len(shape):
        raise DimensionError(
            f"index: too many indices for tensor of dimension {len(shape)}, got {named}; leave some out"
        )
    basic: list[Any] = []
    stretched: list[tuple[int, int]] = []  # the dims of the result that None and bools make, and the dims before which
    strides = self.device.strides(self.native) if stretches else ()
    indices: dict[int, Tensor] = {}
    last: Any = slice_op
    free = len(shape) - named
    at = dim = 0
    cuts = False
    for one, count in items:
        kind = type(one)
        if one is not Ellipsis and at + count > len(shape):
            raise DimensionError(
                f"index: Dimension out of range, got a second Ellipsis for {len(shape)} dims; leave it out"
            )
        if kind is int:
            size = shape[at]
            if not -size <= one < size:
                raise DimensionError(
                    f"index: index {one} is out of bounds for dimension {at} with size {size}, got that; stay inside"
                )
            basic.append(one)
            last, cuts = select_op, True
            at += 1
        elif kind is slice:
            basic.append(whole(one, shape[at]))
            if one != ALL:
                last, cuts = slice_op, True
            at += 1
            dim += 1
        elif one is Ellipsis:
            basic.extend([ALL] * min(free, len(shape) - len(basic)))
            at += free
            dim += free
        elif one is None or kind is bool:
            stretched.append((dim, at))
            if kind is bool:
                indices[dim] = new_tensor(
                    self.device.from_host(np.zeros(int(one), np.int64)), dtypes.int64, self.device
                )
            dim += 1
        else:
            indices[dim] = one
            basic.extend([ALL] * count)
            at += count
            dim += count
    view = self
    if cuts or (not indices and not stretched and any([one is not ALL for one in basic])):
        view = last.view(view, {"key": tuple(basic)})
    for dim, at in stretched:
        # PyTorch puts a new dim in before it looks at the indices that follow, which shows in the stride.
        step = shape[at] * strides[at] if at < len(shape) else 1
        view = _unsqueeze.view(view, {"dim": dim, "step": step})  # type: ignore[attr-defined]
    if not indices:
        return (_alias.view(self, {"key": ()}) if view is self else view), None  # type: ignore[attr-defined]
    spread: list[Tensor | None] = []
    for at, one in sorted(indices.items()):
        while len(spread) < at:
            spread.append(None)
        if one.dtype is dtypes.int64 and one.device is view.device:
            spread.append(one)
        else:
            spread.extend(masks(one, view, at))
    return view, tuple(spread)


def _item(one: Any) -> Any:
    """One index as an int, a slice, None, Ellipsis, a bool, or a tensor with dims."""
    kind = type(one)
    if kind is int or kind is slice or one is None or one is Ellipsis or kind is bool:
        return one
    if isinstance(one, np.bool_):
        return bool(one)
    if isinstance(one, np.ndarray):
        one = tensor(one)
    elif isinstance(one, str):
        raise ArgumentTypeError(f"index: new(): invalid data type 'str', got {one!r}; pass ints, slices or tensors")
    elif isinstance(one, (list, tuple, range)):
        one = tensor(list(one)) if len(one) else tensor([], dtype=dtypes.int64)
    if isinstance(one, Tensor):
        name = one.dtype.name
        number = one.dtype.kind == "integer" and not one.native.shape
        if name not in ("int64", "int32", "bool", "uint8") and not number:
            raise DimensionError(
                f"index: tensors used as indices must be long, int, byte or bool tensors, got "
                f"{one.dtype}; convert it with .long()"
            )
        if not one.native.shape:
            if name in ("bool", "uint8"):
                return bool(one.item())
            try:
                return int(one.item())
            except GradientError:  # vmap maps over it: each example has an index of its own
                return one
        return one
    if hasattr(one, "__index__"):
        return int(one.__index__())
    raise DimensionError(
        f"index: only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices, got "
        f"{type(one).__name__}; pass one of those"
    )


def _dims_of(one: Any) -> int:
    """How many dims of the tensor an index stands for."""
    if one is None or one is Ellipsis or type(one) is bool:
        return 0
    if isinstance(one, Tensor) and one.dtype.name in ("bool", "uint8"):
        return len(one.native.shape)
    return 1


def masks(one: Tensor | None, input: Tensor, at: int) -> list[Tensor | None]:
    """A mask as the indices of its true elements, one tensor for each of its dims; anything else as it is."""
    if one is None:
        return [None]
    device = input.device
    if one.device is not device:
        one = one.to(device)  # type: ignore[attr-defined]
    if one.dtype.name not in ("bool", "uint8"):
        return [one]
    shape = input.native.shape
    for i, size in enumerate(one.native.shape):
        if at + i >= len(shape) or shape[at + i] != size:
            raise DimensionError(
                f"index: The shape of the mask {list(one.native.shape)} at index {i} does not "
                f"match the shape of the indexed "
                f"tensor {list(shape)} at index {at + i}, got that; make the mask as large as what it masks"
            )
    return [new_tensor(native, dtypes.int64, device) for native in device.kernels["nonzero_by_dim"](one.native)]


@before("new_dim")
def new_dim(key: Any, ndim: int) -> int | None:
    """Where a key of whole slices, at most one Ellipsis and one None puts the new dim; None for every other key."""
    if key is None:
        return 0
    if type(key) is not tuple:
        return None
    if [type(one) for one in key if type(one) is not slice and one is not Ellipsis] != [_NONE]:
        return None
    if any([not one.start is one.stop is one.step is None for one in key if type(one) is slice]):
        return None
    rests = [i for i, one in enumerate(key) if one is Ellipsis]
    free = ndim - len(key) + 1 + len(rests)
    if len(rests) > 1 or free < 0:
        return None
    at = key.index(None)
    return at + free - 1 if rests and rests[0] < at else at


@before("simple")
def simple(key: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], bool] | None:
    """A key of ints, slices and one Ellipsis, inside ``shape``, dim by dim; and whether the last that leaves something out is a slice.

    None for every other key, and for a tuple that leaves nothing out.
    """
    kind = type(key)
    if kind is slice:
        return ((whole(key, shape[0]),), True) if shape else None
    if kind is int:
        return ((key,), False) if shape and -shape[0] <= key < shape[0] else None
    if kind is not tuple:
        return None
    rests = [one for one in key if one is Ellipsis]
    free = len(shape) - len(key) + 1 if rests else 0
    if len(rests) > 1 or free < 0 or len(key) + free - len(rests) > len(shape):
        return None
    if any([type(one) not in (int, slice) and one is not Ellipsis for one in key]):
        return None
    last = None
    found: list[Any] = []
    for one in key:
        if one is Ellipsis:
            found += [ALL] * free
            continue
        size = shape[len(found)]
        if type(one) is int:
            if not -size <= one < size:
                return None
            last = False
        elif one != ALL:
            one = whole(one, size)
            last = True
        found.append(one)
    return None if last is None else (tuple(found), last)


@before("whole_slice")
def whole(key: slice, size: int) -> slice:
    """A slice with every number filled in, inside ``size``."""
    start, stop = key.start, key.stop
    if key.step is None and type(start) is int and type(stop) is int and 0 <= start <= stop <= size:
        return slice(start, stop, 1)
    start, stop, step = key.indices(size)
    if step < 1:
        raise ArgumentError(f"index: step must be greater than zero, got {step}; use flip")
    return slice(start, stop if stop > start else start, step)


def long(op: str, index: Any, *, names: tuple[str, ...] = ("int64", "int32"), empty: bool = False) -> Tensor:
    """The index, once its dtype is checked; with ``empty`` one of no elements may have any."""
    if not isinstance(index, Tensor):
        raise ArgumentTypeError(f"{op}: expected index to be a Tensor, got {index!r}; wrap it in torch.tensor(...)")
    if empty and not prod(index.native.shape):
        return index.to(dtypes.int64)  # type: ignore[attr-defined, no-any-return]
    if index.dtype.name not in names:
        raise DtypeError(f"{op}: Expected dtype int64 for index, got {index.dtype}; convert it with .long()")
    return index


def check_places(op: str, input: Tensor, index: Tensor, src: Tensor | None, dim: int) -> int:
    """The rules that ``gather`` and ``scatter`` share; gives ``dim`` from the front."""
    shape, places = input.native.shape, index.native.shape
    at = rules.wrap_dim(op, dim, len(shape))
    if not prod(places):
        return at
    if max(len(places), 1) != max(len(shape), 1):
        raise ShapeError(
            f"{op}: Index tensor must have the same number of dimensions as input tensor, got "
            f"{len(places)} and {len(shape)}; "
            f"expand or unsqueeze it"
        )
    if src is not None and max(len(src.native.shape), 1) != max(len(places), 1):
        raise ShapeError(
            f"{op}: Index tensor must have the same number of dimensions as src tensor, got {len(places)} and "
            f"{len(src.native.shape)}; expand or unsqueeze it"
        )
    if src is not None and not places and not prod(src.native.shape):
        raise ShapeError(f"{op}: expected a source with an element for an index without dims, got none; pass a number")
    for i, size in enumerate(places):
        if shape and i != at and size > shape[i]:
            raise ShapeError(
                f"{op}: Expected index {list(places)} to be no larger than self {list(shape)} "
                f"apart from dimension {at}, got "
                f"{size} at dimension {i}; make it smaller"
            )
        if src is not None and src.native.shape and size > src.native.shape[i]:
            raise ShapeError(
                f"{op}: Expected index {list(places)} to be no larger than src "
                f"{list(src.native.shape)}, got {size} at dimension "
                f"{i}; make it smaller"
            )
    return at


def check_scattered(op: str, input: Tensor, index: Tensor, src: Any, dim: int) -> tuple[int, Tensor, Any]:
    """``dim`` from the front, the index, and the source: an empty index, which may be of any rank, in the input's."""
    at = check_places(op, input, index, src, dim)
    rank = max(len(input.native.shape), 1)
    if len(index.native.shape) != rank and not index.numel():
        nowhere = (0,) * rank
        index = index.reshape(nowhere)  # type: ignore[attr-defined]
        src = src if src is None else src.reshape(-1)[:0].reshape(nowhere)
    return at, index, src
