"""Shape rules of views of a part, joins, and the primitives that gather and scatter; see ``shapes.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorcore.backend.strides import contiguous_strides
from tensorcore.errors import ValuesMissing

__all__ = [
    "FROM_INDEX", "GIVEN", "LIKE_INDEX", "SAME", "UNKNOWN", "VIEW_PLACES", "as_diagonal", "as_unsqueeze", "as_windows",
    "each_repeated", "triangle", "turned", "turned_layout",
]  # fmt: skip

Shape = tuple[int, ...]
Place = tuple[Shape, Shape, int]


def as_unsqueeze(shape: Shape, strides: Shape, offset: int, *, dim: int, step: int | None = None) -> Place:
    """A dim of size 1 more."""
    if step is None:
        step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]), offset


def as_diagonal(own: Shape, strides: Shape, start: int, *, offset: int, dim1: int, dim2: int) -> Place:
    """The elements on a diagonal, along a new last dim."""
    rows, columns = own[dim1], own[dim2]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    if length:
        start += offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    others = [i for i in range(len(own)) if i not in (dim1, dim2)]
    shape = (*[own[i] for i in others], length)
    return shape, (*[strides[i] for i in others], strides[dim1] + strides[dim2]), start


def as_windows(shape: Shape, strides: Shape, offset: int, *, dim: int, size: int, step: int) -> Place:
    """Windows along a dim, their elements along a new last dim."""
    if not shape:
        return (size,), (1,), offset
    count = (shape[dim] - size) // step + 1
    return (
        (*shape[:dim], count, *shape[dim + 1 :], size),
        (*strides[:dim], step * strides[dim], *strides[dim + 1 :], strides[dim]),
        offset,
    )


def as_strided(own: Shape, own_strides: Shape, start: int, *, shape: Shape, strides: Shape, offset: int) -> Place:
    """Any sizes and strides; ``offset`` counts from the first element."""
    return shape, strides, start + offset


VIEW_PLACES = {"unsqueeze": as_unsqueeze, "diagonal": as_diagonal, "windows": as_windows, "as_strided": as_strided}


def indexed(x: Shape, *, indices: Sequence[Any]) -> Shape:
    """The indices' common shape, in their place if they are neighbours, else in front."""
    at = [i for i, one in enumerate(indices) if one is not None]
    common = np.broadcast_shapes(*[indices[i].shape for i in at])
    rest = [size for i, size in enumerate(x) if i not in at]
    front = at[0] if at[-1] - at[0] == len(at) - 1 else 0
    return (*rest[:front], *common, *rest[front:])


def stacked(xs: list[Shape], *, dim: int) -> Shape:
    """Tensors along a new dim."""
    return (*xs[0][:dim], len(xs), *xs[0][dim:])


def repeated(x: Shape, *, repeats: Shape) -> Shape:
    """Copies along each dim."""
    return tuple([count * size for count, size in zip(repeats, (1,) * (len(repeats) - len(x)) + x, strict=True)])


def turned(x: Shape, *, k: int, dims: tuple[int, int]) -> Shape:
    """Two dims swapped at every second quarter."""
    sizes = list(x)
    if k % 2:
        sizes[dims[0]], sizes[dims[1]] = sizes[dims[1]], sizes[dims[0]]
    return tuple(sizes)


def turned_layout(x: Shape, strides: Shape, options: dict[str, Any]) -> tuple[Shape, Shape]:
    """A flipped copy in row-major order, whose dims are swapped afterwards."""
    return turned(x, **options), turned(contiguous_strides(x), **options)


def triangle(rows: int, columns: int, offset: int, *, upper: bool, **options: Any) -> Shape:
    """A column for each element of a triangle."""
    lower = sum([min(max(i + offset + (not upper), 0), columns) for i in range(rows)])
    return (2, rows * columns - lower if upper else lower)


def each_repeated(x: Shape, *, repeats: Any, dim: int) -> Shape:
    """Each element so many times; how often in all, only an int tells."""
    if not isinstance(repeats, int):
        raise ValuesMissing("repeat_interleave: expected values of repeats, got a tensor on meta, which has none; pass an int")
    return (*x[:dim], x[dim] * repeats, *x[dim + 1 :])


def selected(x: Shape, index: Shape, *, dim: int) -> Shape:
    """As many slices as there are indices."""
    return (*x[:dim], index[0] if index else 1, *x[dim + 1 :]) if x else x


# Kernels by what their result is like: the first array, the second one (an index), the option ``shape``, or unknown.
SAME = "flip roll tri shared index_put scatter scatter_reduce index_add index_copy index_fill put masked_scatter"
LIKE_INDEX = "gather take"
GIVEN = "undiagonal unwindows cat"
FROM_INDEX = {"index_tensors": indexed, "stack": stacked, "repeat": repeated, "index_select": selected}
UNKNOWN = "masked_select nonzero nonzero_by_dim count_true bincount lowest highest"
