"""Reading and writing at places that other arrays name, by ``gather``, ``scatter`` and ``scatter_reduce``."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore import dtypes

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels

__all__ = [
    "add_rows", "bincount", "embedding", "embedding_gradient", "embedding_pick", "index_add", "index_copy", "index_fill",
    "index_select", "masked_scatter", "masked_select", "max_unpool", "max_unpool_gradient", "nonzero_by_dim", "put", "take",
    "take_rows",
]  # fmt: skip


# A vector of indices along a dim


def index_select(k: Kernels, x: Native, index: Native, *, dim: int) -> Native:
    if not x.shape:
        return k.reshape(k.gather(k.reshape(x, (1,)), k.reshape(index, (-1,)), dim=0), ())
    shape = (*x.shape[:dim], prod(index.shape), *x.shape[dim + 1 :])
    return k.gather(x, k.along(index, shape, dim), dim=dim)


def index_add(
    k: Kernels, x: Native, index: Native, source: Native, *, dim: int, alpha: Any = 1, out: Native | None = None
) -> Native:
    if k.kind(x) == "bool":
        source = source if alpha else k.zeros(tuple(source.shape), x)
    elif alpha != 1:
        source = k.cast(k.mul(source, alpha), dtype=k.dtype(x))
    if not x.shape:
        made = k.index_add(k.reshape(x, (1,)), index, k.reshape(source, (-1,)), dim=0)
        return k.placed(k.reshape(made, ()), out)
    return k.scatter_reduce(x, k.along(index, tuple(source.shape), dim), source, dim=dim, reduce="sum", out=out)


def index_copy(k: Kernels, x: Native, index: Native, source: Native, *, dim: int, out: Native | None = None) -> Native:
    if not x.shape:
        made = k.index_copy(k.reshape(x, (1,)), index, k.reshape(source, (-1,)), dim=0)
        return k.placed(k.reshape(made, ()), out)
    return k.scatter(x, k.along(index, tuple(source.shape), dim), source, dim=dim, out=out)


def index_fill(k: Kernels, x: Native, index: Native, value: Native, *, dim: int, out: Native | None = None) -> Native:
    if not x.shape:
        return k.placed(k.reshape(k.index_fill(k.reshape(x, (1,)), index, value, dim=0), ()), out)
    index = _from_the_front(k, index, x.shape[dim])
    shape = (*x.shape[:dim], prod(index.shape), *x.shape[dim + 1 :])
    return k.scatter(x, k.along(index, shape, dim), k.expand(k.reshape(value, ()), shape=shape), dim=dim, out=out)


def take_rows(k: Kernels, x: Native, *, dim: int, index: np.ndarray, size: int) -> Native:
    return k.index_select(x, k.host(index.astype(np.int64)), dim=dim)


def add_rows(k: Kernels, x: Native, *, dim: int, index: np.ndarray, size: int) -> Native:
    """Zeros, ``size`` of them along ``dim``, with the slices of ``x`` added up where ``index`` says."""
    made = k.zeros((*x.shape[:dim], size, *x.shape[dim + 1 :]), x)
    return k.index_add(made, k.host(index.astype(np.int64)), x, dim=dim)


def embedding(k: Kernels, weight: Native, indices: Native, *, padding: int | None, by_count: bool) -> Native:
    rows = k.index_select(weight, k.reshape(indices, (-1,)), dim=0)
    return k.reshape(rows, (*indices.shape, *weight.shape[1:]))


def embedding_gradient(
    k: Kernels, g: Native, indices: Native, *, rows: int, padding: int | None, by_count: bool
) -> Native:
    """Rows of ``g`` added up where their indices say; ``by_count`` makes that a mean."""
    flat = k.reshape(indices, (prod(indices.shape),))
    made = k.index_add(k.zeros((rows, g.shape[-1]), g), flat, k.reshape(g, (flat.shape[0], g.shape[-1])), dim=0)
    return _by_row(k, made, flat, padding, by_count)


def embedding_pick(k: Kernels, weight: Native, indices: Native, *, padding: int | None, by_count: bool) -> Native:
    """The rows at ``indices``: each row over its count first, the padding's as zeros."""
    flat = k.reshape(indices, (prod(indices.shape),))
    rows = _by_row(k, k.clone(weight), flat, padding, by_count)
    return k.embedding(rows, indices, padding=None, by_count=False)


def _by_row(k: Kernels, made: Native, indices: Native, padding: int | None, by_count: bool) -> Native:
    if by_count:
        counts = k.maximum(k.bincount(indices, weights=None, minlength=made.shape[0]), 1)
        made = k.div(made, k.reshape(k.cast(counts, dtype=k.dtype(made)), (made.shape[0], 1)))
    if padding is not None:
        k.copy(k.index(made, key=(padding,)), k.zeros((), made))
    return made


# The array as if it had one dim


def take(k: Kernels, x: Native, index: Native) -> Native:
    flat = _from_the_front(k, k.reshape(index, (-1,)), prod(x.shape))
    return k.reshape(k.gather(k.reshape(x, (-1,)), flat, dim=0), tuple(index.shape))


def put(
    k: Kernels, x: Native, index: Native, source: Native, *, accumulate: bool = False, out: Native | None = None
) -> Native:
    flat, values = k.reshape(x, (-1,)), k.reshape(source, (-1,))
    at = _from_the_front(k, k.reshape(index, (-1,)), prod(x.shape))
    made = k.scatter_reduce(flat, at, values, dim=0, reduce="sum") if accumulate else k.scatter(flat, at, values, dim=0)
    return k.placed(k.reshape(made, tuple(x.shape)), out)


def _from_the_front(k: Kernels, index: Native, size: int) -> Native:
    return k.where(k.lt(index, 0), k.add(index, size), index)


# Masks


def nonzero_by_dim(k: Kernels, x: Native) -> tuple[Native, ...]:
    rows = k.nonzero(x if x.shape else k.reshape(x, (1,)))
    return tuple(k.contiguous(k.index(rows, key=(slice(None), i))) for i in range(max(len(x.shape), 1)))


def masked_select(k: Kernels, x: Native, mask: Native) -> Native:
    shape = np.broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    places = k.nonzero_by_dim(k.reshape(k.expand(mask, shape=shape), (-1,)))[0]
    return k.gather(k.reshape(k.expand(x, shape=shape), (-1,)), places, dim=0)


def masked_scatter(k: Kernels, x: Native, mask: Native, source: Native, *, out: Native | None = None) -> Native:
    places = k.nonzero_by_dim(k.reshape(k.expand(mask, shape=tuple(x.shape)), (-1,)))[0]
    values = k.part(k.reshape(source, (-1,)), 0, 0, places.shape[0])
    made = k.scatter(k.reshape(x, (-1,)), places, values, dim=0)
    return k.placed(k.reshape(made, tuple(x.shape)), out)


# Counts, and values at flat indices within a channel


def bincount(k: Kernels, x: Native, *, weights: Native | None, minlength: int) -> Native:
    size = max(minlength, 0 if 0 in x.shape else k.highest(x) + 1)
    if weights is None:
        weights = k.expand(k.full((), 1, dtype=dtypes.int64), shape=tuple(x.shape))
    elif k.dtype(weights) is not dtypes.float32:
        weights = k.cast(weights, dtype=dtypes.float64)
    return k.index_add(k.zeros((size,), weights), k.cast(x, dtype=dtypes.int64), weights, dim=0)


def max_unpool(k: Kernels, x: Native, indices: Native, *, shape: tuple[int, ...]) -> Native:
    """Zeros of ``shape`` with each value at its flat index within a channel."""
    rows = (*shape[:2], prod(x.shape[2:]))
    made = k.zeros((*shape[:2], prod(shape[2:])), x)
    return k.reshape(k.scatter(made, k.reshape(indices, rows), k.reshape(x, rows), dim=2), tuple(shape))


def max_unpool_gradient(k: Kernels, g: Native, indices: Native) -> Native:
    flat = k.reshape(indices, (*g.shape[:2], prod(indices.shape[2:])))
    return k.reshape(k.gather(k.reshape(g, (*g.shape[:2], prod(g.shape[2:]))), flat, dim=2), tuple(indices.shape))
