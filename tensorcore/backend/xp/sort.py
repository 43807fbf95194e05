"""Sorting, and what sorting answers: order, largest elements, medians, distinct values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. ``dim`` is counted from the front; NaN counts as the largest number."""
    xp = backend.xp

    def wide(x: Native) -> Native:
        """In a dtype that NumPy sorts with NaN at the end, as it sorts no ml_dtypes' types, and bools as 0 and 1: other bytes may
        be seen as them."""
        if x.dtype.kind == "b":
            return x.view(np.uint8) != 0
        return x.astype(np.float32) if x.dtype.kind == "V" else x

    def along(x: Native, at: Native, dim: int) -> Native:
        return x[at] if x.ndim == 1 else xp.take_along_axis(x, at, axis=dim)  # the index alone is 3 us less

    def order(x: Native, dim: int, descending: bool, stable: bool = True) -> Native:
        kind = "stable" if stable else None
        x = wide(x)
        if not descending:
            return xp.argsort(x, axis=dim, kind=kind)
        # The reverse of a stable ascending sort of the reversed slice keeps equal elements in their order.
        turned = xp.flip(x, dim)
        return x.shape[dim] - 1 - xp.flip(xp.argsort(turned, axis=dim, kind="stable"), dim)

    def sort(x: Native, *, dim: int, descending: bool = False, stable: bool = False) -> tuple[Native, Native]:
        """The sorted elements, NaN the largest, and where they came from. Always stable: PyTorch's order of ties is not promised."""
        if not x.ndim:
            return xp.copy(x), xp.zeros((), np.int64)
        at = xp.ascontiguousarray(order(x, dim, descending))
        return along(x, at, dim), at

    def topk(x: Native, *, k: int, dim: int, largest: bool = True, sorted: bool = True) -> tuple[Native, Native]:
        """The ``k`` largest (or smallest) elements, in order."""
        if not x.ndim:
            return (xp.copy(x), xp.zeros((), np.int64)) if k else (x.reshape(1)[:0], xp.zeros(0, np.int64))
        n = x.shape[dim]
        part = (slice(None),) * dim
        full = wide(x)
        if 0 < k < n and n > 64:
            # Of many elements only the chosen are sorted: O(n) to part them from the rest. NaN parts as the largest.
            split = n - k if largest else k - 1
            at = xp.argpartition(full, split, axis=dim)[(*part, slice(n - k, None) if largest else slice(0, k))]
            at = xp.sort(at, axis=dim)
            chosen = xp.take_along_axis(full, at, axis=dim)
            at = xp.take_along_axis(at, order(chosen, dim, largest), axis=dim)
        else:
            at = order(full, dim, largest)[(*part, slice(0, k))]
        # Without elements a part counts as dense, whatever its strides.
        at = xp.ascontiguousarray(at) if k else xp.zeros(at.shape, np.int64)
        return along(x, at, dim), at

    def kthvalue(x: Native, *, k: int, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
        """The ``k``-th smallest element along ``dim``, counted from 1, and where it is."""
        if not x.ndim:
            return xp.copy(x), xp.zeros((), np.int64)
        part = (slice(None),) * dim
        at = xp.argpartition(wide(x), k - 1, axis=dim)[(*part, slice(k - 1, k))]
        return settled(x, xp.ascontiguousarray(at), dim, keepdim)

    def median_dim(x: Native, *, dim: int, keepdim: bool = False, nan: bool = True) -> tuple[Native, Native]:
        """The lower of the middle elements along ``dim``; the first NaN if there is one and ``nan``, else without
        them."""
        if not x.ndim:
            return xp.copy(x), xp.zeros((), np.int64)
        part = (slice(None),) * dim
        full = wide(x)
        n = x.shape[dim]
        if full.dtype.kind not in "iub":
            missing = full != full
            at = xp.argsort(full, axis=dim, kind="stable")
            if nan:
                middle = at[(*part, slice((n - 1) // 2, (n - 1) // 2 + 1))]
                first = xp.argmax(missing, axis=dim, keepdims=True)
                at = xp.where(missing.any(axis=dim, keepdims=True), first, middle)
            else:
                left = n - missing.sum(axis=dim, keepdims=True)
                at = xp.take_along_axis(at, xp.maximum(left - 1, 0) // 2, axis=dim)
        else:
            at = xp.argsort(full, axis=dim, kind="stable")[(*part, slice((n - 1) // 2, (n - 1) // 2 + 1))]
        return settled(x, xp.ascontiguousarray(at), dim, keepdim)

    def settled(x: Native, at: Native, dim: int, keepdim: bool) -> tuple[Native, Native]:
        values = along(x, at, dim)
        if keepdim:
            return values, at
        shape = (*x.shape[:dim], *x.shape[dim + 1 :])
        return values.reshape(shape), at.reshape(shape)

    def mode_dim(x: Native, *, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
        """The smallest of the most frequent elements along ``dim``, and its last position."""
        if not x.ndim:
            return xp.copy(x), xp.zeros((), np.int64)
        last = np.moveaxis(x, dim, -1)
        flat = last.reshape(-1, last.shape[-1])
        at = xp.empty(flat.shape[0], np.int64)
        for i, row in enumerate(flat):
            values, counts = np.unique(wide(row), return_counts=True)
            best = values[np.argmax(counts)]
            same = wide(row) == best if best == best else wide(row) != wide(row)
            at[i] = np.flatnonzero(same)[-1]
        at = np.expand_dims(at.reshape(last.shape[:-1]), dim)
        return settled(x, at, dim, keepdim)

    def unique(x: Native, *, dim: int | None = None) -> tuple[Native, Native, Native]:
        """Distinct values in order, where each element is among them, and how often each occurs; NaN equals nothing."""
        if dim is None and x.size and backend.capabilities.host and x.dtype.kind in "biuf":
            table = backend.kernels
            values, order = table["sort"](x.reshape(-1), dim=0, stable=True)
            values, runs, counts = table["unique_consecutive"](values)
            inverse = xp.empty(x.size, np.int64)
            inverse[order] = runs
            return values, inverse.reshape(x.shape), counts
        if dim is not None and x.size and backend.capabilities.host and x.dtype.kind in "biuf":
            lines = xp.moveaxis(x, dim, 0)
            order = _order_of_rows(lines.reshape(len(lines), -1))
            if order is not None:
                values, runs, counts = unique_consecutive(lines[order], dim=0)
                inverse = xp.empty(len(lines), np.int64)
                inverse[order] = runs
                return xp.ascontiguousarray(xp.moveaxis(values, 0, dim)), inverse, counts
        values, inverse, counts = np.unique(wide(x), return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
        shape = x.shape if dim is None else (x.shape[dim],)
        return values.astype(x.dtype), inverse.reshape(shape).astype(np.int64), counts.astype(np.int64)

    def unique_consecutive(x: Native, *, dim: int | None = None) -> tuple[Native, Native, Native]:
        """The first of each run of equal elements or slices, the run each belongs to, and the runs' lengths."""
        lines = x.reshape(-1) if dim is None else xp.moveaxis(x, dim, 0)
        n = lines.shape[0]
        flat = lines.reshape(n, -1) if n else lines
        new = xp.ones(n, bool)
        if n:
            new[1:] = (flat[1:] != flat[:-1]).any(axis=1)
        starts = xp.flatnonzero(new)
        counts = xp.diff(xp.append(starts, n))
        inverse = xp.cumsum(new) - 1
        values = lines[starts] if dim is None else xp.moveaxis(lines[starts], 0, dim)
        return xp.ascontiguousarray(values), inverse.reshape(x.shape if dim is None else (n,)), counts

    def distinct(x: Native, *, consecutive: bool = False) -> Native:
        """Distinct values in order, or the first of each run of equal elements; NaN equals nothing."""
        return backend.kernels["unique_consecutive" if consecutive else "unique"](x)[0]

    def searchsorted(x: Native, values: Native, *, right: bool = False) -> Native:
        """Where each value would go in a sorted sequence (its last dim; the other dims are shared with ``values``)."""
        side: Any = "right" if right else "left"
        if x.ndim == 1:
            return xp.asarray(xp.searchsorted(x, values, side=side), np.int64)
        made = xp.empty(values.shape, np.int64)
        for place in np.ndindex(*x.shape[:-1]):
            made[place] = xp.searchsorted(x[place], values[place], side=side)
        return made

    return {function.__name__: function for function in (
        sort, topk, kthvalue, median_dim, mode_dim, unique, unique_consecutive, distinct, searchsorted,
    )}  # fmt: skip


def _order_of_rows(rows: np.ndarray) -> np.ndarray | None:
    """The rows of a matrix in order, the first element counting most; None where there is a NaN, which has no place among others.

    As strings of bytes: those of unsigned numbers in the order of the elements, the highest first.
    """
    kind, bits = rows.dtype.kind, np.dtype(f"u{rows.dtype.itemsize}")
    keys = np.ascontiguousarray(rows)
    if kind == "f":
        keys = keys + keys.dtype.type(0)  # makes of both zeros one
        if np.isnan(keys).any():
            return None
    keys = keys.view(bits)
    sign = bits.type(1 << 8 * bits.itemsize - 1)
    if kind == "f":
        keys = np.where(keys & sign, ~keys, keys | sign)
    elif kind == "i":
        keys = keys ^ sign
    keys = keys.astype(bits.newbyteorder(">"))
    return np.argsort(keys.view(np.dtype((np.void, keys.shape[1] * bits.itemsize)))[:, 0], kind="stable")
