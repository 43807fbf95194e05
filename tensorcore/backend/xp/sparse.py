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
            of = xp.repeat(xp.arange(count), xp.diff(rows)) if compressed else rows
            mine = xp.einsum("ij,ij->i", arrived[of], dense[columns].astype(wide).conj()).astype(values.dtype)
        if needs[3]:
            held = matrix(rows, columns, values.astype(wide).conj(), (count, dense.shape[0]), compressed)
            other = (held.T @ arrived).astype(dense.dtype)
        return None, None, mine, other

    return {"sparse_matmul": product, "sparse_matmul_backward": backward}


def _wide(xp: Any, dtype: Any) -> Any:
    """The dtype that the libraries compute in: they have no narrow floats."""
    return dtype if dtype.itemsize >= 4 or dtype.kind not in "fV" else xp.float32
