"""Products with sparse matrices, by SciPy, or by the library that a namespace like CuPy has for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp

    def matrix(rows: Native, columns: Native, values: Native, shape: tuple[int, int], compressed: bool) -> Any:
        sparse = import_module("scipy.sparse" if xp is np else f"{xp.__name__}x.scipy.sparse")
        return sparse.csr_matrix((values, columns, rows) if compressed else (values, (rows, columns)), shape=shape)

    def spread(starts: Native) -> Native:
        return xp.repeat(xp.arange(starts.shape[0] - 1), xp.diff(starts))

    def line_starts(line: Native, *, count: int) -> Native:
        """Where each of ``count`` lines begins among the numbers of lines of all elements, in order, and the end of the last."""
        counts = xp.bincount(line, minlength=count)
        return xp.concatenate([xp.zeros(1, line.dtype), xp.cumsum(counts).astype(line.dtype)])

    def product(
        rows: Native, columns: Native, values: Native, dense: Native, *, count: int, compressed: bool
    ) -> Native:
        """The sparse matrix of ``count`` rows times a dense one; ``compressed``: ``rows`` says where each row starts."""
        wide = _wide(xp, dense.dtype)
        held = matrix(rows, columns, values.astype(wide), (count, dense.shape[0]), compressed)
        return (held @ dense.astype(wide)).astype(dense.dtype)

    def backward(
        g: Native, rows: Native, columns: Native, values: Native, dense: Native, *,
        needs: tuple[bool, ...], count: int, compressed: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """The gradients of the values, each that of its own element, and of the dense matrix."""
        wide = _wide(xp, dense.dtype)
        arrived = g.astype(wide)
        mine = other = None
        if needs[2]:
            of = spread(rows) if compressed else rows
            mine = xp.einsum("ij,ij->i", arrived[of], dense[columns].astype(wide).conj()).astype(values.dtype)
        if needs[3]:
            held = matrix(rows, columns, values.astype(wide).conj(), (count, dense.shape[0]), compressed)
            other = (held.T @ arrived).astype(dense.dtype)
        return None, None, mine, other

    def coalesce(indices: Native, values: Native, *, shape: tuple[int, ...]) -> tuple[Native, Native]:
        """Indices in order, each once, and the values, those of equal indices added up; sizes of the dims that have indices."""
        keys, places = xp.unique(xp.ravel_multi_index(tuple(indices), shape, "raise"), return_inverse=True)
        made = xp.zeros((keys.shape[0], *values.shape[1:]), values.dtype)
        made = backend.kernels["index_add"](made, places.reshape(-1), values, dim=0, out=made)
        return xp.stack(xp.unravel_index(keys, shape)).astype(indices.dtype), made

    def both(
        rows: Native, columns: Native, values: Native, rows_b: Native, columns_b: Native, values_b: Native, *,
        shape: tuple[int, int, int], compressed: tuple[bool, bool],
    ) -> tuple[Native, Native, Native]:  # fmt: skip
        """The product of matrices of ``shape`` (rows, inner, columns): its rows, as those of the first, columns and values, in order."""
        wide = _wide(xp, values.dtype)
        a = matrix(rows, columns, values.astype(wide), shape[:2], compressed[0])
        made = a @ matrix(rows_b, columns_b, values_b.astype(wide), shape[1:], compressed[1])
        made.sort_indices()
        starts, other = made.indptr.astype(rows.dtype), made.indices.astype(rows.dtype)
        return starts if compressed[0] else spread(starts), other, made.data.astype(values.dtype)

    def summed(x: Native, line: Native, count: int) -> Native:
        made = xp.zeros((count, *x.shape[1:]), x.dtype)
        return backend.kernels["index_add"](made, line, x, dim=0, out=made)[line]

    def softmax(values: Native, line: Native, *, count: int, log: bool) -> Native:
        """The softmax of those values that have one of ``count`` numbers, or its logarithm."""
        wide = values.astype(_wide(xp, values.dtype))
        most = xp.full((count, *wide.shape[1:]), -xp.inf, wide.dtype)
        at = xp.broadcast_to(line.reshape((-1,) + (1,) * (wide.ndim - 1)), wide.shape)
        away = wide - backend.kernels["scatter_reduce"](most, at, wide, dim=0, reduce="amax")[line]
        sums = summed(xp.exp(away), line, count)
        return (away - xp.log(sums) if log else xp.exp(away) / sums).astype(values.dtype)

    def softmax_backward(
        g: Native, values: Native, line: Native, *, needs: tuple[bool, ...], count: int, log: bool
    ) -> tuple[Any, ...]:
        wide = _wide(xp, values.dtype)
        made, sent = softmax(values.astype(wide), line, count=count, log=False), g.astype(wide)
        found = sent - made * summed(sent, line, count) if log else made * (sent - summed(sent * made, line, count))
        return found.astype(values.dtype), None

    return {
        "line_starts": line_starts, "sparse_matmul": product, "sparse_matmul_backward": backward, "sparse_product": both,
        "sparse_coalesce": coalesce,
        "sparse_softmax": softmax, "sparse_softmax_backward": softmax_backward,
    }  # fmt: skip


def _wide(xp: Any, dtype: Any) -> Any:
    """The dtype that the libraries compute in: they have no narrow floats."""
    return dtype if dtype.itemsize >= 4 or dtype.kind not in "fV" else xp.float32
