"""Reductions and scans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend
    from tensorcore.dtypes import dtype

__all__ = ["kernels"]

Dims = tuple[int, ...] | None

# Sums of up to this many elements go through BLAS: 0.3 us against 0.6 for ``add.reduce``.
FEW = 32
# Longer sums over an outer dim are made in blocks of this many rows, so that the error grows with the
# logarithm of the length, as it does along the innermost dim where NumPy sums pairwise.
BLOCK = 16


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. ``dim`` is a tuple of dims counted from the front, or None for all."""
    xp = backend.xp
    host = xp is np
    default = ... if host else None
    add, multiply = xp.add.reduce, xp.multiply.reduce
    largest, smallest = xp.maximum.reduce, xp.minimum.reduce
    empty, array = xp.empty, xp.array
    ones = {
        np.dtype(one): {n: np.ones(n, one) for n in range(FEW + 1)} for one in (np.float32, np.float64)
    } if host else {}  # fmt: skip

    def in_rows(x: Native) -> Native:
        """In row-major order, where the results of these lie in PyTorch; NumPy keeps the order of the argument."""
        return xp.ascontiguousarray(x) if x.ndim > 1 else x

    # Sums

    def sum(x: Native, *, dim: Dims = None, keepdim: bool = False, dtype: dtype | None = None) -> Native:
        kind = x.dtype
        if x.size <= FEW and kind in ones and not keepdim and dtype is None:
            if x.ndim == 1:
                made = empty((), kind)
                x.dot(ones[kind][x.size], made)
                return made
            if dim is None:
                made = empty((), kind)
                x.ravel().dot(ones[kind][x.size], made)
                return made
        if dtype is not None and (dtype.numpy != kind or kind.kind in "iu"):  # NumPy widens small integers
            if dtype.itemsize > 2 or dtype.numpy.kind in "iub":
                return add(x, dim, dtype.numpy, keepdims=keepdim, out=default)
            return sum(x.astype(dtype.numpy), dim=dim, keepdim=keepdim)
        if kind.itemsize <= 2 and kind.kind not in "iub":
            return total(x, dim, keepdim, np.float32).astype(kind)
        return total(x, dim, keepdim, None)

    def total(x: Native, dim: Dims, keepdim: bool, wide: Any) -> Native:
        if x.size > 1024 and x.dtype.kind not in "iub" and x.ndim > 1 and dim is not None:
            inner = min(range(x.ndim), key=lambda i: (abs(x.strides[i]) if x.shape[i] > 1 else 1 << 62, -i))
            longest = max(dim, key=lambda i: x.shape[i]) if dim else 0
            if dim and inner not in dim and x.shape[longest] > 2 * BLOCK:
                part = in_blocks(x, longest, wide)
                return add(part, dim, wide, keepdims=keepdim, out=default)
        return add(x, dim, wide, keepdims=keepdim, out=default)

    def in_blocks(x: Native, at: int, wide: Any) -> Native:
        """The sums of consecutive blocks along a dim, again and again until there are few; the dim stays."""
        while x.shape[at] > 2 * BLOCK:
            count = x.shape[at] // BLOCK
            head, tail = (slice(None),) * at, x.shape[at] - count * BLOCK
            blocks = x[(*head, slice(0, count * BLOCK))]
            blocks = blocks.reshape(*x.shape[:at], count, BLOCK, *x.shape[at + 1 :])
            made = empty((*x.shape[:at], count + (tail > 0), *x.shape[at + 1 :]), wide or x.dtype)
            add(blocks, at + 1, wide, out=made[(*head, slice(0, count))])
            if tail:
                add(x[(*head, slice(count * BLOCK, None))], at, wide, out=made[(*head, count)])
            x = made
        return x

    def mean(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
        kind = x.dtype
        if kind in ones and x.size <= FEW and (dim is None or x.ndim == 1) and not keepdim and x.size:
            return array(x.ravel().dot(ones[kind][x.size]) / x.size)
        narrow = kind.itemsize <= 2
        made = total(x, dim, keepdim, np.float32 if narrow else None)
        count = x.size // made.size if made.size and x.size else _count(x.shape, dim)
        if count == 0:
            made = xp.full_like(made, complex(np.nan, np.nan) if kind.kind == "c" else np.nan)
        else:
            made = xp.divide(made, made.dtype.type(count), out=made)
        return made.astype(kind) if narrow else made

    def prod(x: Native, *, dim: Dims = None, keepdim: bool = False, dtype: dtype | None = None) -> Native:
        kind = x.dtype if dtype is None else dtype.numpy
        if kind.itemsize <= 2 and kind.kind not in "iub":
            return multiply(x, dim, np.float32, keepdims=keepdim, out=default).astype(kind)
        return multiply(x, dim, kind, keepdims=keepdim, out=default)

    def nansum(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
        if backend.capabilities.host and x.dtype.kind in "fV":
            # A sum that is no number is the sign of one: mostly there is none, and a second pass is not needed.
            table = backend.kernels
            made = table["sum"](x, dim=dim, keepdim=keepdim)
            if not table["any"](table["isnan"](made)):
                return made
        return sum(xp.where(xp.isnan(x), x.dtype.type(0), x), dim=dim, keepdim=keepdim)

    def count_nonzero(x: Native, *, dim: Dims = None) -> Native:
        return in_rows(xp.asarray(xp.count_nonzero(x, axis=dim)).astype(np.int64))

    def var_mean(x: Native, *, dim: Dims, keepdim: bool, correction: float, root: bool) -> tuple[Native, Native]:
        """Variance (or its root) and mean: two passes, in float32 at least, of real or complex numbers."""
        kind = x.dtype
        if kind.kind == "c" and x.ndim:  # as PyTorch has it: both parts' variances in one
            parts, dims = xp.ascontiguousarray(x).view(x.real.dtype).reshape((*x.shape, 2)), dim or tuple(range(x.ndim))
            made, centre = var_mean(parts, dim=dims, keepdim=keepdim, correction=correction, root=False)
            made = xp.asarray(made[..., 0] + made[..., 1])
            return xp.sqrt(made, out=made) if root else made, centre.view(kind).reshape(made.shape)
        if kind.itemsize <= 2:
            x = x.astype(np.float32)
        count = _count(x.shape, dim)
        centre = mean(x, dim=dim, keepdim=True)
        away = x - centre
        if away.dtype.kind == "c":
            away = away.real**2 + away.imag**2
        else:
            away *= away
        made = total(away, dim, keepdim, None)
        free = max(count - correction, 0.0)
        made = xp.divide(made, made.dtype.type(free), out=made) if free or count else xp.full_like(made, np.nan)
        if root:
            made = xp.sqrt(made, out=made)
        centre = centre if keepdim else centre.reshape(made.shape)
        if kind.itemsize <= 2:
            made, centre = made.astype(kind), centre.astype(kind)
        return in_rows(made), in_rows(centre)

    def var(x: Native, *, dim: Dims, keepdim: bool, correction: float, root: bool) -> Native:
        """The variance, or its root, as ``var_mean`` has it."""
        return var_mean(x, dim=dim, keepdim=keepdim, correction=correction, root=root)[0]

    def logsumexp(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
        kind = x.dtype
        if kind.itemsize <= 2:
            x = x.astype(np.float32)
        if not x.size:
            return xp.log(add(x, dim, keepdims=keepdim, out=default)).astype(kind)[...]
        # Of complex numbers the real parts: a shift of the angle would come back as whole turns.
        top = largest(x.real if kind.kind == "c" else x, dim, keepdims=True, out=default)
        top[xp.isinf(top)] = 0
        away = xp.subtract(x, top, out=default)
        made = total(xp.exp(away, out=away), dim, True, None)
        made = xp.log(made, out=made)
        made += top
        return (made if keepdim else made.reshape(_reduced(x.shape, dim))).astype(kind, copy=False)

    def norm(x: Native, *, p: float, dim: Dims = None, keepdim: bool = False) -> Native:
        kind = x.dtype
        if kind.kind == "c" and p == 2 and x.flags.c_contiguous and x.size and x.ndim:
            # Of both parts: squares of sizes are sums of their squares.
            parts, dims = (
                x.view(x.real.dtype).reshape((*x.shape, 2)),
                (*(range(x.ndim) if dim is None else dim), x.ndim),
            )
            made = backend.kernels["norm"](parts, p=p, dim=dims, keepdim=keepdim)
            return made.reshape(made.shape[:-1]) if keepdim else made
        away = xp.abs(x.astype(np.float32) if kind.itemsize <= 2 else x)
        answer = np.dtype(away.dtype if kind.itemsize > 2 else kind)
        if p == np.inf:
            made = largest(away, dim, keepdims=keepdim, out=default)
        elif p == -np.inf:
            made = smallest(away, dim, keepdims=keepdim, out=default)
        elif p == 0:
            made = add(away != 0, dim, away.dtype, keepdims=keepdim, out=default)
        elif p == 1:
            made = total(away, dim, keepdim, None)
        elif p == 2:
            made = total(xp.multiply(away, away, out=away[...]), dim, keepdim, None)
            made = xp.sqrt(made, out=made)
        else:
            made = total(xp.power(away, away.dtype.type(p)), dim, keepdim, None)
            made = xp.power(made, made.dtype.type(1 / p), out=made)
        return made.astype(answer, copy=False)

    def spread(x: Native, *, shape: tuple[int, ...], dim: Dims = None, keepdim: bool = False) -> Native:
        """A reduced array over the shape from before the reduction, as memory of its own: the transpose of ``sum``."""
        made = empty(shape, x.dtype)
        if x.size == 1 and not host:
            made[...] = x.reshape(())  # a look at the number would make the device wait
        elif dim is None or not x.ndim:
            made.fill(x.item() if x.dtype.kind != "V" else x) if x.size == 1 else made.__setitem__(..., x)
        else:
            made[...] = x if keepdim else x.reshape(_kept(shape, dim))
        return made

    # Extremes

    def amax(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
        if dim is None and not keepdim and 0 < x.size <= FEW and x.dtype in ones:
            return array(
                (x if x.ndim == 1 else x.ravel())[x.argmax()]
            )  # 0.3 us against 0.65, and the first NaN wins as in ``maximum``
        return largest(x, dim, keepdims=keepdim, out=default)

    def amin(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
        if dim is None and not keepdim and 0 < x.size <= FEW and x.dtype in ones:
            return array((x if x.ndim == 1 else x.ravel())[x.argmin()])
        return smallest(x, dim, keepdims=keepdim, out=default)

    def argmax(x: Native, *, dim: int | None = None, keepdim: bool = False) -> Native:
        return xp.asarray(xp.argmax(ordered(x), axis=dim, keepdims=keepdim), np.int64)

    def argmin(x: Native, *, dim: int | None = None, keepdim: bool = False) -> Native:
        return xp.asarray(xp.argmin(ordered(x), axis=dim, keepdims=keepdim), np.int64)

    def max_dim(x: Native, *, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
        """The largest element of each slice along ``dim`` and where it is; the first NaN if there is one."""
        return picked(x, xp.argmax, largest, dim, keepdim)

    def min_dim(x: Native, *, dim: int, keepdim: bool = False) -> tuple[Native, Native]:
        """The smallest element of each slice along ``dim`` and where it is; the first NaN if there is one."""
        return picked(x, xp.argmin, smallest, dim, keepdim)

    def picked(x: Native, search: Any, extreme: Any, dim: int, keepdim: bool) -> tuple[Native, Native]:
        if not x.ndim:
            return xp.copy(x), xp.zeros((), np.int64)
        # Two passes, and still 3 us less than picking the values at the positions.
        return in_rows(extreme(x, dim, keepdims=keepdim, out=default)), xp.asarray(
            search(ordered(x), axis=dim, keepdims=keepdim), np.int64
        )

    def ordered(x: Native) -> Native:
        """In a dtype whose argmax knows NaN: that of ml_dtypes' types does not."""
        return x.astype(np.float32) if x.dtype.kind == "V" else x

    def ties(x: Native, top: Native, *, dim: Dims = None, keepdim: bool = False, nan: bool = False) -> Native:
        """The weight of each element in its slice's extreme: 1 over the number of those that equal it, else 0."""
        if dim is not None and not keepdim:
            top = top.reshape(_kept(x.shape, dim))
        mask = x == top
        if nan:
            mask |= (x != x) & (top != top)
        wide = np.float32 if x.dtype.itemsize <= 2 else x.dtype
        weights = mask.astype(wide)
        weights /= add(mask, dim, wide, keepdims=True, out=default)
        return weights.astype(x.dtype, copy=False)

    def all(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
        return in_rows(xp.logical_and.reduce(x, dim, keepdims=keepdim, out=default))

    def any(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
        return in_rows(xp.logical_or.reduce(x, dim, keepdims=keepdim, out=default))

    # Picking along a dim

    def pick(x: Native, at: Native, *, dim: int) -> Native:
        """The elements of ``x`` at the positions ``at`` along ``dim``; both of the same number of dims."""
        return xp.take_along_axis(x, at, axis=dim) if x.ndim else xp.copy(x)

    def put_picked(x: Native, at: Native, *, dim: int, size: int, unique: bool = True) -> Native:
        """Zeros with ``size`` elements along ``dim`` and ``x`` added at the positions ``at``: the transpose of
        ``pick``."""
        if not x.ndim:
            return xp.copy(x)
        half = not unique and x.dtype.itemsize == 2 and x.dtype.kind not in "iu"  # whose sums are rounded once
        made = xp.zeros((*x.shape[:dim], size, *x.shape[dim + 1 :]), np.float32 if half else x.dtype)
        if unique:
            xp.put_along_axis(made, at, x, axis=dim)
        else:
            place = [
                each.reshape([-1 if i == j else 1 for j in range(x.ndim)])
                for i, each in enumerate(map(xp.arange, x.shape))
            ]
            place[dim] = at
            xp.add.at(made, tuple(place), x.astype(made.dtype, copy=False))
        return made.astype(x.dtype, copy=False)

    # Scans

    def cumsum(x: Native, *, dim: int, dtype: dtype | None = None) -> Native:
        return scanned(xp.add, x, dim, dtype)

    def cumprod(x: Native, *, dim: int, dtype: dtype | None = None) -> Native:
        return scanned(xp.multiply, x, dim, dtype)

    def scanned(function: Any, x: Native, dim: int, dtype: dtype | None) -> Native:
        kind = x.dtype if dtype is None else dtype.numpy
        if not x.ndim:
            return x.astype(kind)
        if kind.itemsize <= 2 and kind.kind not in "iub":
            return in_rows(function.accumulate(x, dim, np.float32).astype(kind))
        if kind == np.float32:
            # In double precision, as PyTorch does: errors of a long chain add up, and a product may leave the range and return.
            return in_rows(function.accumulate(x, dim, np.float64).astype(kind))
        return in_rows(function.accumulate(x, dim, kind))

    def cumsum_back(x: Native, *, dim: int) -> Native:
        """Running sums from the end: the transpose of ``cumsum``."""
        return xp.ascontiguousarray(xp.flip(cumsum(xp.flip(x, dim), dim=dim), dim)) if x.ndim else xp.copy(x)

    def shifted(x: Native, *, dim: int, step: int) -> Native:
        """The elements moved ``step`` places along ``dim`` (back where negative), with zeros in the free places."""
        made = xp.zeros(x.shape, x.dtype)
        part, n = (slice(None),) * dim, x.shape[dim]
        to, source = (slice(step, None), slice(0, n - step)) if step > 0 else (slice(0, n + step), slice(-step, None))
        made[(*part, to)] = x[(*part, source)]
        return made

    def logcumsumexp(x: Native, *, dim: int) -> Native:
        if not x.ndim:
            return xp.copy(x)
        if x.dtype.itemsize <= 2:
            return in_rows(xp.logaddexp.accumulate(x.astype(np.float32), dim).astype(x.dtype))
        if x.dtype.kind == "c":
            made = xp.moveaxis(xp.array(x), dim, 0)
            for at in range(1, len(made)):  # slices: an element of a row is no place to write to
                made[at : at + 1] = backend.kernels["logaddexp"](made[at - 1 : at], made[at : at + 1])
            return xp.ascontiguousarray(xp.moveaxis(made, 0, dim))
        return in_rows(xp.logaddexp.accumulate(x, dim))

    def cummax(x: Native, *, dim: int) -> tuple[Native, Native]:
        return running(x, dim, xp.maximum, xp.greater_equal)

    def cummin(x: Native, *, dim: int) -> tuple[Native, Native]:
        return running(x, dim, xp.minimum, xp.less_equal)

    def running(x: Native, dim: int, function: Any, beats: Any) -> tuple[Native, Native]:
        """The extreme so far and where it was met last."""
        if not x.ndim:
            return xp.copy(x), xp.zeros((), np.int64)
        values = function.accumulate(x, dim)
        # An element is the extreme so far where it equals it; the latest such position wins, as in PyTorch.
        new = beats(x, values)
        if x.dtype.kind not in "iub":
            new |= x != x
        line = xp.arange(x.shape[dim]).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
        return in_rows(values), in_rows(xp.maximum.accumulate(xp.where(new, line, 0), dim))

    return {
        function.__name__: function
        for function in (
            sum,
            mean,
            prod,
            nansum,
            count_nonzero,
            var_mean,
            var,
            logsumexp,
            norm,
            spread,
            amax,
            amin,
            argmax,
            argmin,
            max_dim,
            min_dim,
            ties,
            all,
            any,
            pick,
            put_picked,
            cumsum,
            cumsum_back,
            shifted,
            logcumsumexp,
            cumprod,
            cummax,
            cummin,
        )
    }


def _count(shape: tuple[int, ...], dim: Dims) -> int:
    """How many elements go into each result of a reduction."""
    count = 1
    for i, size in enumerate(shape):
        if dim is None or i in dim:
            count *= size
    return count


def _reduced(shape: tuple[int, ...], dim: Dims) -> tuple[int, ...]:
    return () if dim is None else tuple([size for i, size in enumerate(shape) if i not in dim])


def _kept(shape: tuple[int, ...], dim: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([1 if i in dim else size for i, size in enumerate(shape)])
