"""Shapes, in which order their dims lie in memory, and the layouts that PyTorch tells apart."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from operator import index
from typing import Any

from tensorcore.errors import ArgumentTypeError, KernelMissing, ShapeError

__all__ = [
    "Size", "channels_last", "channels_last_3d", "contiguous_format", "is_sparse", "layout", "memory_format", "only_strided",
    "order_of", "preserve_format", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr",
    "strided",
]  # fmt: skip


_INTS = frozenset([int])


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that prints as PyTorch's does and counts its elements."""

    __slots__ = ()

    def __new__(cls, values: Iterable[Any] = ()) -> Size:
        made = tuple.__new__(cls, values)
        if _INTS.issuperset(map(type, made)):
            return made
        return tuple.__new__(cls, map(_size, range(len(made)), made))

    def numel(self) -> int:
        """The number of elements in a tensor of this shape."""
        return prod(self)

    def __getitem__(self, place: Any) -> Any:
        found = tuple.__getitem__(self, place)
        return tuple.__new__(Size, found) if isinstance(place, slice) else found

    def __add__(self, other: tuple[Any, ...]) -> Size:  # type: ignore[override]
        if not isinstance(other, tuple):
            raise ArgumentTypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size, got {other!r}; convert it with tuple()"
            )
        made = tuple.__add__(self, other)
        return tuple.__new__(Size, made) if type(other) is Size else Size(made)

    def __radd__(self, other: tuple[Any, ...]) -> Size:
        return Size(other) + self if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


def _size(place: int, one: Any) -> int:
    try:
        return index(one)
    except TypeError:
        raise ArgumentTypeError(
            f"torch.Size() takes an iterable of 'int' (item {place} is '{type(one).__name__}'), got {one!r}; convert it with int()"
        ) from None


class memory_format:
    """An order of dims in memory."""

    __slots__ = ("dims", "name")

    def __init__(self, name: str, dims: tuple[int, ...] | None = None) -> None:
        self.name = name
        self.dims = dims  # from the largest stride to the smallest, None where any number of dims will do

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout:
    """How elements are stored: all of them (``strided``), or those that are not zero with their indices."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


preserve_format = memory_format("preserve_format")
contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last", (0, 2, 3, 1))
channels_last_3d = memory_format("channels_last_3d", (0, 2, 3, 4, 1))
strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")


def order_of(op: str, format: object, ndim: int) -> tuple[int, ...] | None:
    """The dims in the order in which ``format`` lays them out; None for row-major order."""
    if not isinstance(format, memory_format):
        raise ArgumentTypeError(
            f"{op}: expected a memory_format, got {format!r}; pass torch.channels_last, for example"
        )
    if format.dims is not None and len(format.dims) != ndim:
        raise ShapeError(
            f"{op}: required rank {len(format.dims)} tensor to use {format.name} format, got one of {ndim} dims; "
            f"leave out memory_format"
        )
    return format.dims


def is_sparse(op: str, wanted: object) -> bool:
    """Whether the argument ``layout`` of ``op`` asks for a tensor that stores only some of its elements."""
    if wanted is None or wanted is strided:
        return False
    if not isinstance(wanted, layout):
        raise ArgumentTypeError(
            f"{op}: argument 'layout' must be torch.layout, got {wanted!r}; pass torch.strided, for example"
        )
    return True


def only_strided(op: str, wanted: object) -> None:
    """Raises KernelMissing where the argument ``layout`` asks for a sparse result of an op that fills all elements."""
    if is_sparse(op, wanted):
        raise KernelMissing(
            f"{op}: is not implemented for sparse layouts, got {wanted!r}; use .to_sparse() of the result"
        )
