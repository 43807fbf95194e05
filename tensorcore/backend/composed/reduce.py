"""Reductions and scans."""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.composed.kernels import kept

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels

__all__ = [
    "all", "amin", "any", "argmin", "count_nonzero", "count_true", "cummax", "cummin", "cumprod", "cumsum_back",
    "highest", "index_bounds", "logcumsumexp", "logsumexp", "lowest", "max_dim", "mean", "min_dim", "nansum", "norm",
    "pick", "put_picked", "shifted", "ties", "var", "var_mean",
]  # fmt: skip

Dims = tuple[int, ...] | None


def _count(x: Native, dim: Dims) -> int:
    return prod(x.shape) if dim is None else prod([x.shape[i] for i in dim])


# Sums


def count_nonzero(k: Kernels, x: Native, *, dim: Dims = None) -> Native:
    return k.sum(k.ne(x, 0), dim=dim, dtype=dtypes.int64)


def nansum(k: Kernels, x: Native, **options: Any) -> Native:
    return k.sum(k.where(k.isnan(x), 0, x), **options)


def mean(k: Kernels, x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
    # 0 / 0 is the NaN that the mean of nothing is.
    return k.div(k.sum(x, dim=dim, keepdim=keepdim), float(_count(x, dim)))


def var_mean(
    k: Kernels, x: Native, *, dim: Dims, keepdim: bool, correction: float, root: bool
) -> tuple[Native, Native]:
    size = k.abs(k.sub(x, k.mean(x, dim=dim, keepdim=True)))
    var = k.div(k.sum(k.mul(size, size), dim=dim, keepdim=keepdim), float(max(_count(x, dim) - correction, 0.0)))
    return (k.sqrt(var) if root else var), k.mean(x, dim=dim, keepdim=keepdim)


def var(k: Kernels, x: Native, **options: Any) -> Native:
    return k.var_mean(x, **options)[0]


def any(k: Kernels, x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
    return k.ne(k.sum(k.ne(x, 0), dim=dim, keepdim=keepdim, dtype=dtypes.int64), 0)


def all(k: Kernels, x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
    return k.logical_not(k.any(k.eq(x, 0), dim=dim, keepdim=keepdim))


def logsumexp(k: Kernels, x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
    """Less the largest element, so that no exponential overflows."""
    if 0 in x.shape:
        return k.log(k.sum(x, dim=dim, keepdim=keepdim))
    top = k.amax(x, dim=dim, keepdim=True)
    top = k.where(k.isinf(top), 0, top)
    made = k.add(k.log(k.sum(k.exp(k.sub(x, top)), dim=dim, keepdim=True)), top)
    return made if keepdim else k.reshape(made, _reduced(x.shape, dim))


def norm(k: Kernels, x: Native, *, p: float, dim: Dims = None, keepdim: bool = False) -> Native:
    size = k.abs(x)
    kind, over = k.dtype(size), {"dim": dim, "keepdim": keepdim}
    if p in (inf, -inf):
        return (k.amax if p > 0 else k.amin)(size, **over)
    if p == 0:
        return k.cast(k.sum(k.ne(size, 0), dtype=dtypes.int64, **over), dtype=kind)
    if p == 1:
        return k.sum(size, **over)
    # Sixteen bits hold no sum of powers.
    wide = k.cast(size, dtype=dtypes.float32) if kind.itemsize <= 2 else size
    if p == 2:
        made = k.sqrt(k.sum(k.mul(wide, wide), **over))
    else:
        made = k.pow(k.sum(k.pow(wide, float(p)), **over), 1.0 / p)
    return made if wide is size else k.cast(made, dtype=kind)


def cumsum_back(k: Kernels, x: Native, *, dim: int) -> Native:
    if not x.shape:
        return k.clone(x)
    return k.flip(k.cumsum(k.flip(x, dims=(dim,)), dim=dim), dims=(dim,))


# Scans, in as many steps as the length has bits: each joins every element with what was joined before it


def _scanned(k: Kernels, arrays: tuple[Native, ...], dim: int, join: Any) -> tuple[Native, ...]:
    size, step = arrays[0].shape[dim], 1
    while step < size:
        before = [k.part(one, dim, 0, size - step) for one in arrays]
        here = [k.part(one, dim, step, size) for one in arrays]
        joined = join(*before, *here)
        arrays = tuple(
            [k.joined([k.part(one, dim, 0, step), new], dim) for one, new in zip(arrays, joined, strict=True)]
        )
        step *= 2
    return arrays


def cumprod(k: Kernels, x: Native, *, dim: int, dtype: Any = None) -> Native:
    x = k.clone(x) if dtype is None else k.cast(x, dtype=dtype)
    return _scanned(k, (x,), dim, lambda before, here: (k.mul(before, here),))[0] if x.shape else x


def logcumsumexp(k: Kernels, x: Native, *, dim: int) -> Native:
    x = k.clone(x)
    return _scanned(k, (x,), dim, lambda before, here: (k.logaddexp(before, here),))[0] if x.shape else x


def cummax(k: Kernels, x: Native, *, dim: int) -> tuple[Native, Native]:
    """The largest element so far, NaN above all, and where it was met last."""
    if not x.shape:
        return k.clone(x), k.full((), 0, dtype=dtypes.int64)

    def join(before: Native, at: Native, here: Native, where: Native) -> tuple[Native, Native]:
        later = k.ge(here, before)
        if k.kind(x) == "floating":
            later = k.logical_or(later, k.isnan(here))
        return k.where(later, here, before), k.where(later, where, at)

    places = k.along(k.host(np.arange(x.shape[dim])), tuple(x.shape), dim)
    return _scanned(k, (k.clone(x), k.contiguous(places)), dim, join)


# Extremes


def _turned(k: Kernels, x: Native) -> Native:
    """The same numbers in the opposite order: integers by their bits, which no negation can overflow."""
    return k.bitwise_not(x) if k.kind(x) in ("bool", "integer") else k.neg(x)


def amin(k: Kernels, x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
    return _turned(k, k.amax(_turned(k, x), dim=dim, keepdim=keepdim))


def argmin(k: Kernels, x: Native, *, dim: int | None = None, keepdim: bool = False) -> Native:
    return k.argmax(_turned(k, x), dim=dim, keepdim=keepdim)


def cummin(k: Kernels, x: Native, *, dim: int) -> tuple[Native, Native]:
    values, at = k.cummax(_turned(k, x), dim=dim)
    return _turned(k, values), at


def max_dim(k: Kernels, x: Native, *, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
    return _picked(k, x, k.argmax, dim, keepdim)


def min_dim(k: Kernels, x: Native, *, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
    return _picked(k, x, k.argmin, dim, keepdim)


def _picked(k: Kernels, x: Native, search: Any, dim: int, keepdim: bool) -> tuple[Native, Native]:
    if not x.shape:
        return k.clone(x), k.full((), 0, dtype=dtypes.int64)
    at = search(x, dim=dim, keepdim=True)
    values = k.gather(x, at, dim=dim)
    if keepdim:
        return values, at
    shape = _reduced(x.shape, (dim,))
    return k.reshape(values, shape), k.reshape(at, shape)


def ties(k: Kernels, x: Native, top: Native, *, dim: Dims = None, keepdim: bool = False, nan: bool = False) -> Native:
    """The weight of each element in its slice's extreme: 1 over the number of those that equal it, else 0."""
    if dim is not None and not keepdim:
        top = k.reshape(top, kept(x.shape, dim))
    same = k.eq(x, top)
    if nan:
        same = k.logical_or(same, k.logical_and(k.ne(x, x), k.ne(top, top)))
    kind = k.dtype(x)
    weights = k.cast(same, dtype=dtypes.float32 if kind.itemsize <= 2 else kind)
    return k.cast(k.div(weights, k.sum(weights, dim=dim, keepdim=True)), dtype=kind)


def pick(k: Kernels, x: Native, at: Native, *, dim: int) -> Native:
    """The elements at the positions ``at`` along ``dim``."""
    return k.gather(x, at, dim=dim) if x.shape else k.clone(x)


def put_picked(k: Kernels, x: Native, at: Native, *, dim: int, size: int, unique: bool = True) -> Native:
    """Zeros with ``size`` elements along ``dim``, and ``x`` added at the positions ``at``."""
    if not x.shape:
        return k.clone(x)
    made = k.zeros((*x.shape[:dim], size, *x.shape[dim + 1 :]), x)
    return k.scatter(made, at, x, dim=dim) if unique else k.scatter_reduce(made, at, x, dim=dim, reduce="sum")


# Answers that decide what runs next, as Python's numbers


def count_true(k: Kernels, mask: Native) -> int:
    return k.number(k.sum(mask, dtype=dtypes.int64))


def lowest(k: Kernels, x: Native) -> int:
    return k.number(k.amin(x))


def highest(k: Kernels, x: Native) -> int:
    return k.number(k.amax(x))


def index_bounds(k: Kernels, x: Native) -> tuple[int, int]:
    """The smallest and the largest of some indices; (0, -1) of none."""
    return (0, -1) if 0 in x.shape else (k.lowest(x), k.highest(x))


def _reduced(shape: tuple[int, ...], dim: Dims) -> tuple[int, ...]:
    return tuple([size for i, size in enumerate(shape) if dim is not None and i not in dim])


def shifted(k: Kernels, x: Native, *, dim: int, step: int) -> Native:
    """The elements moved along ``dim``, with zeros in the free places."""
    made, n = k.zeros(tuple(x.shape), x), x.shape[dim]
    if abs(step) < n:
        to, source = ((step, n), (0, n - step)) if step > 0 else ((0, n + step), (-step, n))
        k.copy(k.part(made, dim, *to), k.part(x, dim, *source))
    return made
