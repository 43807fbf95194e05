"""Shape rules: what a call's shapes must be, and what its result's shape is. Plain tuples in and out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from tensorcore.backend.strides import contiguous_strides, view_strides
from tensorcore.errors import ArgumentTypeError, DimensionError, ShapeError
from tensorcore.shortcuts import before

__all__ = [
    "as_dims",
    "as_shape",
    "broadcast",
    "chain_splits",
    "contiguous_strides",
    "counted",
    "infer_size",
    "matmul_shape",
    "reduced",
    "view_strides",
    "whole",
    "wrap_dim",
    "wrap_dims",
]

Shape = tuple[int, ...]


@before("whole")
def whole(op: str, name: str, value: Any, *, vectors: bool = False) -> int:
    """An argument that is an int, or a whole number of NumPy's or a tensor's; bool and float are refused, as in PyTorch.

    With ``vectors`` a tensor of one element may have dims: PyTorch takes it among sizes, and where a size or a place may be
    symbolic, but not as any other int.
    """
    if type(value) is int:
        return value
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or (getattr(value, "ndim", 0) and not vectors)
        or getattr(getattr(value, "dtype", None), "kind", None) == "bool"
    ):
        raise ArgumentTypeError(f"{op}: expected {name} to be an int, got {value!r}; pass an int such as 0 or -1")
    return int(value.__index__())


@before("wrap_dim")
def wrap_dim(op: str, dim: int, ndim: int) -> int:
    """``dim`` counted from the front; a 0-d tensor has the dims 0 and -1."""
    span = max(ndim, 1)
    if type(dim) is not int:
        dim = whole(op, "dim", dim)
    if -span <= dim < span:
        return dim % span
    raise DimensionError(
        f"{op}: expected dim in the range [{-span}, {span - 1}], got {dim}; "
        f"Dimension out of range for a tensor of {ndim} dims"
    )


@before("wrap_dims")
def wrap_dims(op: str, dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """A dim, several or none (which means all of them) as a tuple counted from the front, each once."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (int, str)) or hasattr(dim, "__index__") or not hasattr(dim, "__iter__"):
        return (wrap_dim(op, whole(op, "dim", dim, vectors=True), ndim),)
    dims = tuple([wrap_dim(op, one if type(one) is int else whole(op, "dim", one, vectors=True), ndim) for one in dim])
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{op}: expected each dim once, got dim={tuple(dim)}; leave out what appears multiple times")
    return dims


@before("as_shape")
def as_shape(op: str, sizes: Sequence[object]) -> Shape:
    """Sizes given as ``f(2, 3)`` or ``f((2, 3))`` as one tuple of ints."""
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = sizes[0]  # type: ignore[assignment]
    try:
        return tuple([size if type(size) is int else counted(size) for size in sizes])
    except (AttributeError, TypeError):
        first, *others = sizes if isinstance(sizes, (tuple, list)) and sizes else (None,)
        if type(first) is not bool and bool in map(type, others):  # PyTorch looks at the first alone
            return as_shape(op, (first, *[int(one) if type(one) is bool else one for one in others]))
        raise ArgumentTypeError(
            f"{op}: expected sizes as ints, got {sizes!r}; pass ints or one tuple of ints"
        ) from None


as_dims = as_shape


def counted(size: Any) -> int:
    """A size that is no int of Python's own: a whole number of NumPy's or a tensor's, and no bool."""
    if type(size) is bool:
        raise TypeError("a bool is no size")
    return int(size.__index__())


@before("broadcast")
def broadcast(op: str, *shapes: Shape) -> Shape:
    """The common shape: sizes are aligned at the last dim, and a 1 stretches."""
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    result: list[int] = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        shift = len(result) - len(shape)
        for i, size in enumerate(shape):
            have = result[shift + i]
            if have == 1:
                result[shift + i] = size
            elif size not in (1, have):
                texts = " and ".join(str(list(one)) for one in shapes)
                raise ShapeError(
                    f"{op}: expected shapes that broadcast, got {texts}; The size of tensor a ({have}) must match "
                    f"the size of tensor b ({size}) at non-singleton dimension {shift + i}"
                )
    return tuple(result)


def reduced(shape: Shape, dims: tuple[int, ...], keepdim: bool) -> Shape:
    """The shape after a reduction over ``dims``."""
    if keepdim:
        return tuple([1 if i in dims else size for i, size in enumerate(shape)])
    return tuple([size for i, size in enumerate(shape) if i not in dims])


def matmul_shape(op: str, a: Shape, b: Shape) -> Shape:
    """The shape of ``a @ b``: vectors, matrices, and batches of matrices that broadcast."""
    if not a or not b:
        raise ShapeError(f"{op}: both arguments to matmul need to be at least 1D, got {len(a)}D and {len(b)}D; use mul")
    inner_a, inner_b = a[-1], b[-2] if len(b) > 1 else b[0]
    if inner_a != inner_b:
        raise ShapeError(
            f"{op}: expected the last size of input to equal the {'second to last' if len(b) > 1 else 'only'} size of "
            f"other, got {_by(a)} and {_by(b)}; mat1 and mat2 shapes cannot be multiplied ({_by(a)} and {_by(b)})"
        )
    batch = broadcast(op, a[:-2], b[:-2])
    return batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


@before("infer_size")
def infer_size(op: str, sizes: Shape, numel: int) -> Shape:
    """``sizes`` with its one -1 replaced so that it holds ``numel`` elements."""
    if -1 in sizes:
        known = -prod(sizes)
        if sizes.count(-1) > 1:
            raise ShapeError(f"{op}: only one dimension can be inferred, got {list(sizes)}; give all sizes but one")
        if min(sizes) < -1 or known < 0:
            raise ShapeError(f"{op}: expected sizes of at least -1, got {list(sizes)}; invalid shape dimension")
        if known == 0:
            raise ShapeError(
                f"{op}: cannot reshape tensor of {numel} elements into shape {list(sizes)} because the unspecified "
                f"dimension size -1 can be any value and is ambiguous, got {list(sizes)}; give every size"
            )
        full = tuple([numel // known if size == -1 else size for size in sizes])
    else:
        full = sizes
        if sizes and min(sizes) < 0:
            raise ShapeError(f"{op}: expected sizes of at least -1, got {list(sizes)}; invalid shape dimension")
    if prod(full) != numel:
        raise ShapeError(
            f"{op}: expected {numel} elements in the new shape, got shape '{list(sizes)}'; it is invalid for input of "
            f"size {numel}"
        )
    return full


def _by(shape: Shape) -> str:
    return "x".join(map(str, shape))


def cannot_expand(op: str, small: Shape, large: Shape) -> None:
    """Raise for a shape that does not broadcast to another one."""
    raise ShapeError(
        f"{op}: expected a shape that expands to {list(large)}, got {list(small)}; "
        f"the size of each dim must be 1 or that of the target, aligned at the last dim"
    )


@lru_cache(256)
def chain_splits(sizes: tuple[int, ...]) -> list[list[int]]:
    """Behind which of a chain of matrices the product of those from the i-th to the j-th is split, for the fewest multiplications."""
    count = len(sizes) - 1
    best = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            best[i][j], split[i][j] = min(
                (best[i][k] + best[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split
