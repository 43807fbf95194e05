"""Kernels that read and write at places which other arrays name: gather, scatter, masks.

Indices arrive as integer arrays. Every kernel checks them before it writes anything, and raises
IndexError naming the first one that lies outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.errors import UsageError

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# Below so many values ``add.at`` is faster than sorting the rows first.
FEW = 500

Indices = tuple[Any, ...]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. ``out`` is the array to write into, in place; else a copy is made."""
    xp, host = backend.xp, backend.capabilities.host

    def inside(index: Native, size: int, dim: int, negative: bool = False) -> None:
        if not index.size:
            return
        low, high = int(index.min()), int(index.max())
        if low < (-size if negative else 0) or high >= size:
            wrong = high if high >= size else low
            raise IndexError(f"index {wrong} is out of bounds for dimension {dim} with size {size}")

    def target_of(x: Native, out: Native | None) -> Native:
        if host and out is not None and not out.flags.writeable:  # ``ufunc.at`` of NumPy does not look
            raise ValueError("assignment destination is read-only")
        return xp.array(x, order="C") if out is None else out

    def parts(x: Native) -> Native:
        """The parts of complex numbers in row-major order, as a last dim: sums are those of parts."""
        return x.view(x.real.dtype).reshape((*x.shape, 2))

    # Tensors as indices, one for each dim or None for all of it

    def full_key(indices: Indices) -> tuple[Any, ...]:
        return tuple([slice(None) if one is None else one for one in indices])

    def index_tensors(x: Native, *, indices: Indices) -> Native:
        """The elements where arrays of indices say, which broadcast; None stands for a dim that is taken whole."""
        dims = [i for i, one in enumerate(indices) if one is not None]
        if len(dims) == 1:
            return xp.take(x, indices[dims[0]], axis=dims[0], out=None)
        made = x[full_key(indices)]
        return made if made.flags.c_contiguous else xp.ascontiguousarray(made)

    def index_put(
        x: Native, values: Native, *, indices: Indices, accumulate: bool = False, out: Native | None = None
    ) -> Native:
        for i, one in enumerate(indices):
            if one is not None:
                inside(one, x.shape[i], i, negative=True)
        target = target_of(x, out)
        if accumulate and x.dtype.kind == "c" and target.flags.c_contiguous:
            both = parts(target)
            key = (*indices, None) if len(indices) == x.ndim else indices
            backend.kernels["index_put"](
                both, parts(xp.ascontiguousarray(values)), indices=key, accumulate=True, out=both
            )
        elif accumulate:
            add_at(target, indices, values)
        else:
            target[full_key(indices)] = values
        return target

    def add_at(target: Native, indices: Indices, values: Native) -> None:
        """``target[indices] += values`` in which each of several equal indices counts."""
        dims = [i for i, one in enumerate(indices) if one is not None]
        if len(dims) > 1:
            xp.add.at(target, full_key(indices), values)
            return
        dim, index = dims[0], indices[dims[0]]
        if values.size < FEW and target.dtype.itemsize > 2:
            xp.add.at(target, full_key(indices), values)
            return
        shape = (*target.shape[:dim], *index.shape, *target.shape[dim + 1 :])
        values = xp.broadcast_to(values, shape)
        front = (*range(dim, dim + index.ndim), *range(dim), *range(dim + index.ndim, len(shape)))
        rest = target.shape[:dim] + target.shape[dim + 1 :]
        add_rows(xp.moveaxis(target, dim, 0), index.ravel(), values.transpose(front).reshape((index.size, *rest)))

    def add_rows(target: Native, rows: Native, values: Native) -> None:
        """``target[rows] += values``; sums the rows of equal index first, 10 times faster than ``add.at`` on rows."""
        if not values.size:
            return
        if target.dtype.itemsize > 2 and (target.ndim == 1 or values.size < FEW):
            xp.add.at(target, rows, values)
            return
        rows = rows % target.shape[0]
        order = xp.argsort(rows, kind="stable")
        ordered = rows[order]
        starts = xp.flatnonzero(xp.concatenate((xp.ones(1, bool), ordered[1:] != ordered[:-1])))
        wide = np.float32 if target.dtype.itemsize == 2 and target.dtype.kind not in "iu" else target.dtype
        sums = xp.add.reduceat(values[order].astype(wide, copy=False), starts, 0)
        target[ordered[starts]] = (target[ordered[starts]] + sums).astype(target.dtype)

    # One index of the result's shape along a dim

    def mesh(index: Native, dim: int) -> tuple[Native, ...]:
        """The full index of which ``index`` is the part along ``dim``."""
        n = index.ndim
        return tuple(
            [
                index if i == dim else xp.arange(size).reshape((-1,) + (1,) * (n - 1 - i))
                for i, size in enumerate(index.shape)
            ]
        )

    def gather(x: Native, index: Native, *, dim: int) -> Native:
        """The elements at ``index`` along ``dim``, in the index's shape: along other dims that may be smaller than that of ``x``."""
        if not x.ndim:
            inside(index, 1, 0)
            return xp.broadcast_to(x, index.shape).copy()
        if not index.ndim:
            index = index.reshape(1)
            inside(index, x.shape[dim], dim)
            return x[index].reshape(())
        inside(index, x.shape[dim], dim)
        return xp.ascontiguousarray(x[mesh(index, dim)])

    def scatter(x: Native, index: Native, src: Any, *, dim: int, out: Native | None = None) -> Native:
        """Write ``src``, an array or a number, where ``index`` says; of equal indices the last one counts."""
        target = target_of(x, None) if out is None else out
        flat, index, src = lifted(target, index, src)
        inside(index, flat.shape[dim], dim)
        flat[mesh(index, dim)] = part(src, index)
        return target

    def lifted(target: Native, index: Native, src: Any) -> tuple[Native, Native, Any]:
        """0-d arrays as vectors of one element."""
        if target.ndim and index.ndim:
            return target, index, src
        src = src.reshape(-1) if isinstance(src, xp.ndarray) else src
        return target.reshape(-1) if not target.ndim else target, index.reshape(-1), src

    def part(src: Any, index: Native) -> Any:
        return src[tuple([slice(n) for n in index.shape])] if isinstance(src, xp.ndarray) and src.ndim else src

    def scatter_reduce(
        x: Native,
        index: Native,
        src: Any,
        *,
        dim: int,
        reduce: str,
        include_self: bool = True,
        out: Native | None = None,
    ) -> Native:
        """Combine what lands in one place: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``."""
        made = xp.array(x, order="C")
        flat, index, src = lifted(made, index, src)
        inside(index, flat.shape[dim], dim)
        wide = np.float32 if made.dtype.itemsize == 2 and made.dtype.kind not in "iu" else made.dtype
        memory = flat.astype(wide).reshape(-1)
        strides = [1] * flat.ndim
        for i in range(flat.ndim - 2, -1, -1):
            strides[i] = strides[i + 1] * flat.shape[i + 1]
        at = sum(
            [one * step for one, step in zip(mesh(index, dim), strides, strict=True)], xp.zeros(index.shape, np.int64)
        )
        at = at.ravel()
        values = xp.broadcast_to(part(src, index), index.shape).astype(wide).ravel()
        if not include_self:
            memory[at] = identity(reduce, memory.dtype)
        {"sum": xp.add, "mean": xp.add, "prod": xp.multiply, "amax": xp.maximum, "amin": xp.minimum}[reduce].at(
            memory, at, values
        )
        if reduce == "mean":
            counts = xp.bincount(at, minlength=memory.size) + include_self
            counts[counts == 0] = 1
            memory = memory // counts if memory.dtype.kind in "iu" else memory / counts
        result = memory.astype(made.dtype).reshape(x.shape)
        if out is None:
            return result
        out[...] = result
        return out

    def identity(reduce: str, dtype: Any) -> Any:
        if reduce in ("sum", "mean", "prod"):
            return int(reduce == "prod")
        if dtype.kind == "b":
            return reduce == "amin"
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return limits.min if reduce == "amax" else limits.max
        return -np.inf if reduce == "amax" else np.inf

    # A vector of indices along a dim

    def along(target: Native, dim: int) -> tuple[Native, int]:
        return (target.reshape(1), 1) if not target.ndim else (target, target.shape[dim])

    def index_select(x: Native, index: Native, *, dim: int) -> Native:
        flat, size = along(x, dim)
        inside(index, size, dim)
        made = xp.take(flat, index.reshape(-1), axis=dim)
        return made if x.ndim else made.reshape(())

    def index_add(
        x: Native, index: Native, source: Native, *, dim: int, alpha: Any = 1, out: Native | None = None
    ) -> Native:
        target = target_of(x, out)
        flat, size = along(target, dim)
        inside(index, size, dim)
        if x.dtype.kind == "c" and x.ndim and target.flags.c_contiguous and not isinstance(alpha, complex):
            both = parts(target)
            backend.kernels["index_add"](
                both, index, parts(xp.ascontiguousarray(source)), dim=dim, alpha=alpha, out=both
            )
            return target
        source = source if alpha == 1 else (source * alpha).astype(x.dtype)
        source = source.reshape((1,)) if not source.ndim else source
        if dim:
            flat, source = flat.swapaxes(0, dim), source.swapaxes(0, dim)
        add_rows(flat, index.reshape(-1), source)
        return target

    def index_copy(x: Native, index: Native, source: Native, *, dim: int, out: Native | None = None) -> Native:
        target = target_of(x, out)
        flat, size = along(target, dim)
        inside(index, size, dim)
        source = source.reshape((1,)) if not source.ndim else source
        flat.swapaxes(0, dim)[index.reshape(-1)] = source.swapaxes(0, dim)
        return target

    def index_fill(x: Native, index: Native, value: Native, *, dim: int, out: Native | None = None) -> Native:
        target = target_of(x, out)
        flat, size = along(target, dim)
        inside(index, size, dim, negative=True)
        flat.swapaxes(0, dim)[index.reshape(-1)] = value
        return target

    # The tensor as if it had one dim

    def take(x: Native, index: Native) -> Native:
        inside(index, x.size, 0, negative=True)
        return xp.asarray(xp.take(x.reshape(-1), index))

    def put(x: Native, index: Native, source: Native, *, accumulate: bool = False, out: Native | None = None) -> Native:
        inside(index, x.size, 0, negative=True)
        flat = xp.array(x, order="C").reshape(-1)
        if accumulate:
            add_rows(flat, index.reshape(-1), source.reshape(-1))
        else:
            flat[index.reshape(-1)] = source.reshape(-1)
        if out is None:
            return flat.reshape(x.shape)
        out[...] = flat.reshape(x.shape)
        return out

    # Masks

    def masked_fill(x: Native, mask: Native, value: Native, *, out: Native | None = None) -> Native:
        if out is None:
            return xp.asarray(xp.where(mask, value, x))
        xp.copyto(out, value, where=mask)
        return out

    def masked_select(x: Native, mask: Native) -> Native:
        x, mask = xp.broadcast_arrays(x, mask)
        return x[mask]

    def masked_scatter(x: Native, mask: Native, source: Native, *, out: Native | None = None) -> Native:
        target = target_of(x, out)
        mask = xp.broadcast_to(mask, target.shape)
        target[mask] = source.reshape(-1)[: int(mask.sum())]
        return target

    def count_true(mask: Native) -> int:
        """How many elements of a mask are true, as a Python int."""
        return int(mask.sum())

    def nonzero(x: Native) -> Native:
        """The indices of the elements that are not zero, one row each; the columns lie next to each other in memory."""
        if not x.ndim:
            return xp.zeros((int(bool(x)), 0), np.int64)
        if backend.capabilities.host and x.dtype.kind == "c":
            return backend.kernels["nonzero"](either_part(x))
        return xp.stack(x.nonzero()).T

    def nonzero_by_dim(x: Native) -> tuple[Native, ...]:
        """``nonzero`` as an array for each dim."""
        if backend.capabilities.host and x.dtype.kind == "c":
            return tuple(backend.kernels["nonzero_by_dim"](either_part(x)))
        return tuple((x.reshape(1) if not x.ndim else x).nonzero())

    def either_part(x: Native) -> Native:
        """For each complex number two bytes, which are zero where both of its parts are."""
        parts = xp.ascontiguousarray(x).view(x.real.dtype)
        return backend.kernels["ne"](parts, 0).view(np.int16).reshape(x.shape)

    # Counts

    def bincount(x: Native, *, weights: Native | None, minlength: int) -> Native:
        # The length would overflow to none, and NumPy write before its result.
        if x.size and int(x.max()) == np.iinfo(np.int64).max:
            raise UsageError(
                f"bincount: maximum value of input overflowed, it should be < {np.iinfo(np.int64).max}, got that; shift them"
            )
        made = xp.bincount(x, weights, minlength)
        return made if weights is None or weights.dtype != np.float32 else made.astype(np.float32)

    def lowest(x: Native) -> int:
        """The smallest element, as a Python int."""
        return int(x.min())

    def highest(x: Native) -> int:
        """The largest element, as a Python int."""
        return int(x.max())

    return {function.__name__: function for function in (
        index_tensors, index_put, gather, scatter, scatter_reduce, index_select, index_add, index_copy, index_fill, take,
        put, masked_fill, masked_select, masked_scatter, count_true, nonzero, nonzero_by_dim, bincount, lowest,
        highest,
    )}  # fmt: skip
