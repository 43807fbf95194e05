"""What sorting answers: largest elements, medians, modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorcore import dtypes

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels

__all__ = ["kthvalue", "median_dim", "mode_dim", "topk"]


def topk(
    k_: Kernels, x: Native, *, k: int, dim: int, largest: bool = True, sorted: bool = True
) -> tuple[Native, Native]:
    """The ``k`` largest (or smallest) elements, in order."""
    if not x.shape:
        x, dim = k_.reshape(x, (1,)), 0
        values, at = k_.topk(x, k=k, dim=0, largest=largest)
        return (k_.reshape(values, ()), k_.reshape(at, ())) if k else (values, at)
    made = k_.sort(x, dim=dim, descending=largest, stable=True)
    return tuple(k_.contiguous(k_.part(one, dim, 0, k)) for one in made)


def kthvalue(k_: Kernels, x: Native, *, k: int, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
    """The ``k``-th smallest element along ``dim``, counted from 1, and where it is."""
    if not x.shape:
        return k_.clone(x), k_.full((), 0, dtype=dtypes.int64)
    made = k_.sort(x, dim=dim, stable=True)
    return tuple(k_.contiguous(k_.part(one, dim, k - 1, k) if keepdim else k_.part(one, dim, k - 1)) for one in made)


def median_dim(k: Kernels, x: Native, *, dim: int, keepdim: bool = False, nan: bool = True) -> tuple[Native, Native]:
    """The lower of the middle elements along ``dim``; the first NaN if there is one and ``nan``, else without them."""
    if not x.shape:
        return k.clone(x), k.full((), 0, dtype=dtypes.int64)
    size = x.shape[dim]
    order = k.sort(x, dim=dim, stable=True)[1]  # NaN last
    if k.kind(x) != "floating":
        at = k.part(order, dim, (size - 1) // 2, (size - 1) // 2 + 1)
    else:
        missing = k.isnan(x)
        lost = k.sum(missing, dim=(dim,), keepdim=True, dtype=dtypes.int64)
        if nan:
            first = k.argmax(k.cast(missing, dtype=dtypes.int64), dim=dim, keepdim=True)
            at = k.where(k.lt(0, lost), first, k.part(order, dim, (size - 1) // 2, (size - 1) // 2 + 1))
        else:
            at = k.gather(order, k.floor_divide(k.maximum(k.sub(size - 1, lost), 0), 2), dim=dim)
    return _at(k, x, k.contiguous(at), dim, keepdim)


def mode_dim(k: Kernels, x: Native, *, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
    """The smallest of the most frequent elements along ``dim``, and its last position; all NaN count as one."""
    if not x.shape:
        return k.clone(x), k.full((), 0, dtype=dtypes.int64)
    size, shape = x.shape[dim], tuple(x.shape)
    values, order = k.sort(x, dim=dim, stable=True)
    before, here = k.part(values, dim, 0, size - 1), k.part(values, dim, 1, size)
    new = k.ne(before, here)
    if k.kind(x) == "floating":
        new = k.logical_and(new, k.logical_not(k.logical_and(k.isnan(before), k.isnan(here))))
    # How far each element is from the start of its run of equal ones: furthest at the end of the longest run.
    places = k.along(k.host(np.arange(size)), shape, dim)
    starts = k.joined([k.part(places, dim, 0, 1), k.where(new, k.part(places, dim, 1, size), 0)], dim)
    longest = k.argmax(k.sub(places, k.cummax(starts, dim=dim)[0]), dim=dim, keepdim=True)
    return _at(k, x, k.gather(order, longest, dim=dim), dim, keepdim)


def _at(k: Kernels, x: Native, at: Native, dim: int, keepdim: bool) -> tuple[Native, Native]:
    values = k.gather(x, at, dim=dim)
    if keepdim:
        return values, at
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return k.reshape(values, shape), k.reshape(at, shape)
