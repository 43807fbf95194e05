"""Factorisations of many small matrices, each step of an algorithm taken for all of them at once.

A call of LAPACK costs a microsecond and more, whatever the size. These take and give what the kernels of their names in
``lapack.py`` do, and None where one of the matrices is for LAPACK to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["MANY", "STEPS"]

Array = np.ndarray[Any, Any]


def lu_factor(x: Array) -> tuple[Array, Array, Array]:
    """Elimination with row swaps, column by column."""
    shape = x.shape
    a = x.reshape(-1, *shape[-2:]).copy()
    size, every = min(shape[-2:]), np.arange(len(a))
    pivots, info = np.empty((len(a), size), np.int32), np.zeros(len(a), np.int32)
    for k in range(size):
        column = a[:, k:, k]
        sizes = abs(column.real) + abs(column.imag) if a.dtype.kind == "c" else abs(column)
        at = sizes.argmax(1) + k
        pivots[:, k] = at + 1
        chosen = a[every, at]
        a[every, at] = a[:, k]
        a[:, k] = chosen
        pivot = chosen[:, k].copy()
        zero = pivot == 0
        if zero.any():
            info[zero & (info == 0)] = k + 1
            pivot[zero] = 1
        a[:, k + 1 :, k] /= pivot[:, None]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
    return _columns(a).reshape(shape), pivots.reshape(*shape[:-2], size), info.reshape(shape[:-2])


def lu_solve(lu: Array, pivots: Array, b: Array, *, way: str) -> Array:
    """Row swaps and two substitutions, or with the transpose or the adjoint in reverse."""
    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    lu = np.broadcast_to(lu, (*batch, *lu.shape[-2:])).reshape(-1, *lu.shape[-2:])
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1])).reshape(-1, pivots.shape[-1])
    made = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(-1, *b.shape[-2:]).copy()
    if way == "N":
        _swap(made, pivots, range(pivots.shape[-1]))
        _substitute(lu, made, False, True)
        _substitute(lu, made, True, False)
    else:
        turned = lu.swapaxes(-1, -2)
        turned = turned.conj() if way == "C" else turned
        _substitute(turned, made, False, False)
        _substitute(turned, made, True, True)
        _swap(made, pivots, reversed(range(pivots.shape[-1])))
    return _columns(made).reshape(*batch, *b.shape[-2:])


def _swap(b: Array, pivots: Array, order: Iterable[int]) -> None:
    every = np.arange(len(b))
    for i in order:
        at = pivots[:, i] - 1
        chosen = b[every, at]
        b[every, at] = b[:, i]
        b[:, i] = chosen


def solve_triangular(a: Array, b: Array, *, upper: bool, left: bool, unitriangular: bool) -> Array:
    """Row after row from the one with a single unknown."""
    if not left:
        turned = solve_triangular(
            a.swapaxes(-1, -2), b.swapaxes(-1, -2), upper=not upper, left=True, unitriangular=unitriangular
        )
        return _columns(np.ascontiguousarray(turned.swapaxes(-1, -2)))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    made = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(-1, *b.shape[-2:]).copy()
    _substitute(a, made, upper, unitriangular)
    return _columns(made).reshape(*batch, *b.shape[-2:])


def _substitute(a: Array, b: Array, upper: bool, unit: bool) -> None:
    size = a.shape[-1]
    for i in reversed(range(size)) if upper else range(size):
        known = slice(i + 1, size) if upper else slice(0, i)
        b[:, i] -= (a[:, i, known, None] * b[:, known]).sum(1)
        if not unit:
            b[:, i] /= a[:, i, i, None]


def inverse(x: Array) -> tuple[Array, Array] | None:
    """NumPy's, in double precision."""
    made = _regular(np.linalg.inv, x)
    return None if made is None else (_columns(made), np.zeros(x.shape[:-2], np.int32))


def cholesky(x: Array, *, upper: bool) -> tuple[Array, Array] | None:
    """NumPy's, in double precision."""
    made = _regular(np.linalg.cholesky, x, upper=upper)
    if made is None or np.isnan(np.diagonal(made, 0, -2, -1)).any():
        return None
    return _columns(made), np.zeros(x.shape[:-2], np.int32)


def geqrf(x: Array) -> tuple[Array, Array]:
    """NumPy's, in double precision."""
    made, tau = np.linalg.qr(x, mode="raw")
    return _columns(made.swapaxes(-1, -2)), tau


def svd(x: Array, *, full: bool, vectors: bool) -> Any:
    """NumPy's, in double precision."""
    if not np.isfinite(x).all():
        return None
    made = _regular(np.linalg.svd, x, full_matrices=full, compute_uv=vectors)
    if made is None:
        return None
    info = np.zeros(x.shape[:-2], np.int32)
    return (made[1], info, _columns(made[0]), _columns(made[2])) if vectors else (made, info)


def eigh(x: Array, *, upper: bool, vectors: bool) -> Any:
    """NumPy's, in double precision."""
    made = _regular(np.linalg.eigh if vectors else np.linalg.eigvalsh, x, UPLO="U" if upper else "L")
    if made is None:
        return None
    info = np.zeros(x.shape[:-2], np.int32)
    return (made[0], info, _columns(made[1])) if vectors else (made, info)


def eig(x: Array, *, vectors: bool) -> Any:
    """NumPy's, in double precision."""
    made = _regular(np.linalg.eig if vectors else np.linalg.eigvals, x)
    if made is None:
        return None
    info, kind = np.zeros(x.shape[:-2], np.int32), x.dtype.char.upper()
    return (made[0].astype(kind), info, _columns(made[1].astype(kind))) if vectors else (made.astype(kind), info)


def _regular(function: Callable[..., Any], x: Array, **options: Any) -> Any:
    """NumPy's result, or None where it finds a matrix that has none."""
    try:
        return function(x, **options)
    except np.linalg.LinAlgError:
        return None


def _columns(x: Array) -> Array:
    """The matrices column after column in memory."""
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


MANY: dict[str, Callable[..., Any]] = {function.__name__: function for function in (
    lu_factor, lu_solve, solve_triangular, inverse, cholesky, geqrf, svd, eigh, eig,
)}  # fmt: skip
# Those whose steps are taken here and not in NumPy.
STEPS = frozenset(["lu_factor", "lu_solve", "solve_triangular"])
