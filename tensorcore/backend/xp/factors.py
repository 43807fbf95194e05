"""What is made of a factorisation in one call on the host: Q and R, P, L and U, determinants, inverses.

Shapes and dtypes are those of ``lapack.py``. Backends that NumPy does not serve have none of these: there the ops are made of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.xp import lapack
from tensorcore.backend.xp.lapack import by_size, householder_product, unpack_pivots

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# As the ops that are made of several kernels call them: the bits are the same both ways.
_geqrf = by_size(lapack.geqrf, "geqrf")
_solve_triangular = by_size(lapack.solve_triangular, "solve_triangular")


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for a backend over NumPy; none for others."""
    return dict(_KERNELS) if backend.xp is np else {}


def qr(x: Native, *, complete: bool) -> tuple[Native, Native]:
    """Orthonormal columns Q, all of them with ``complete``, and the triangle R."""
    rows, columns = x.shape[-2:]
    a, tau = _geqrf(x)
    size = rows if complete else min(rows, columns)
    whole = np.zeros((*x.shape[:-1], size), x.dtype)
    whole[..., : min(size, columns)] = a[..., :size]
    return householder_product(whole, tau), np.triu(a[..., :size, :])


def qr_triangle(x: Native) -> Native:
    """The triangle R alone."""
    return np.triu(_geqrf(x)[0][..., : min(x.shape[-2:]), :])


def unpack_lu(lu: Native, pivots: Native | None) -> tuple[Native | None, Native, Native]:
    """P, L and U from both factors in one matrix and the rows that were swapped; P is None where those are."""
    rows, columns = lu.shape[-2:]
    size, swaps = min(rows, columns), None
    if pivots is not None:
        order = unpack_pivots(pivots, rows=rows)
        swaps = (order[..., None, :] == np.arange(rows)[:, None]).astype(lu.dtype)
    return swaps, np.tril(lu[..., :size], -1) + np.eye(rows, size, dtype=lu.dtype), np.triu(lu[..., :size, :])


def _signed(lu: Native, pivots: Native) -> Native:
    """Numbers whose product is the determinant."""
    moved = pivots != np.arange(1, pivots.shape[-1] + 1)
    found = np.diagonal(lu, 0, -2, -1).astype(np.complex128 if lu.dtype.kind == "c" else np.float64)
    return np.where(moved, -found, found)


def determinant(lu: Native, pivots: Native) -> Native:
    """The determinant from the factors of each matrix."""
    return np.asarray(_signed(lu, pivots).prod(-1)).astype(lu.dtype)


def log_determinant(lu: Native, pivots: Native) -> tuple[Native, Native]:
    """The sign or phase of the determinant, and the logarithm of its size."""
    factors = _signed(lu, pivots)
    sizes = np.abs(factors)
    signs = np.sign(factors).prod(-1)
    return np.asarray(signs).astype(lu.dtype), np.asarray(np.log(sizes).sum(-1)).astype(lu.dtype.char.lower())


def cholesky_inverse(x: Native, *, upper: bool) -> tuple[Native, Native]:
    """The inverses from triangular factors, and where the first zero of each one's diagonal is (0 where there is none)."""
    zero = np.diagonal(x, 0, -2, -1) == 0
    info = (
        np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32) if x.size else np.zeros(x.shape[:-2], np.int32)
    )
    unit = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    turned: Any = x.swapaxes(-1, -2).conj()
    first, second = (turned, x) if upper else (x, turned)
    half = _solve_triangular(first, unit, upper=False, left=True, unitriangular=False)
    return _solve_triangular(second, half, upper=True, left=True, unitriangular=False), info


_KERNELS: dict[str, Kernel] = {function.__name__: function for function in (
    qr, qr_triangle, unpack_lu, determinant, log_determinant, cholesky_inverse,
)}  # fmt: skip
