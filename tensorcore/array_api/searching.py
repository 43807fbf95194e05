"""Where elements are, in what order, and which of them differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorcore
from tensorcore.array_api.promotion import array, pair
from tensorcore.errors import ArgumentError
from tensorcore.tensor import Tensor

__all__ = [
    "argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element is first met, in the flattened array or along an axis."""
    return tensorcore.argmax(array("argmax", x), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element is first met, in the flattened array or along an axis."""
    return tensorcore.argmin(array("argmin", x), axis, keepdims)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Where the elements in order along an axis come from."""
    return tensorcore.argsort(array("argsort", x), axis, descending, stable=stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return tensorcore.sort(array("sort", x), axis, descending, stable)[0]  # type: ignore[no-any-return]


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where elements are not zero: the indices along each axis."""
    if array("nonzero", x).ndim == 0:
        raise ArgumentError("nonzero: expected an array of at least one dim, got one of none; reshape it")
    return tuple(tensorcore.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where each element of ``x2`` would be put in the sorted vector ``x1``: before equal ones, or with ``right`` after."""
    a, b = pair(x1, x2)
    return tensorcore.searchsorted(a, b, side=side, sorter=sorter)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of ``x1`` is in ``x2``."""
    a, b = pair(x1, x2)
    return tensorcore.isin(a, b, invert=invert)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at ``indices`` along an axis, which a vector can leave out; negative ones count from the end."""
    if axis is None:
        if array("take", x).ndim != 1:
            raise ArgumentError(f"take: expected axis for an array of {x.ndim} dims, got None; name one")
        axis = 0
    at = axis if axis >= 0 else axis + x.ndim
    return x[(slice(None),) * at + (indices.long(),)]  # type: ignore[index, attr-defined, no-any-return]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The element at the index in each place along an axis; the other dims broadcast."""
    return tensorcore.take_along_dim(array("take_along_axis", x), indices.long(), axis)  # type: ignore[attr-defined]


class unique_all_result(NamedTuple):
    """What :func:`unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class unique_counts_result(NamedTuple):
    """What :func:`unique_counts` gives."""

    values: Tensor
    counts: Tensor


class unique_inverse_result(NamedTuple):
    """What :func:`unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


def _unique(op: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different elements in order, which of them each element is, and how often each is met."""
    if not array(op, x).dtype.is_complex:
        return tensorcore.unique(x, return_inverse=True, return_counts=True)  # type: ignore[no-any-return]
    if not x.numel():
        nothing = tensorcore.zeros((0,), dtype=tensorcore.int64, device=x.device)
        return x.reshape(-1), nothing.reshape(x.shape), nothing  # type: ignore[attr-defined]
    parts = tensorcore.view_as_real(x.reshape(-1))  # type: ignore[attr-defined]
    rows, inverse, counts = tensorcore.unique(parts, return_inverse=True, return_counts=True, dim=0)
    return tensorcore.view_as_complex(rows), inverse.reshape(x.shape), counts


def unique_all(x: Tensor, /) -> unique_all_result:
    """The different elements in order, where each is first met, which of them each element is, and how often each is met."""
    values, inverse, counts = _unique("unique_all", x)
    order = tensorcore.argsort(inverse.reshape(-1), stable=True)  # type: ignore[attr-defined]
    return unique_all_result(values, order[counts.cumsum(0) - counts], inverse, counts)  # type: ignore[attr-defined]


def unique_counts(x: Tensor, /) -> unique_counts_result:
    """The different elements in order, and how often each is met."""
    values, _, counts = _unique("unique_counts", x)
    return unique_counts_result(values, counts)


def unique_inverse(x: Tensor, /) -> unique_inverse_result:
    """The different elements in order, and which of them each element is."""
    values, inverse, _ = _unique("unique_inverse", x)
    return unique_inverse_result(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements in order."""
    return _unique("unique_values", x)[0]
