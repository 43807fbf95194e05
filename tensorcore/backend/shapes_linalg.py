"""Shape rules of matrix factorisations and solutions; one of several results is LAPACK's answer for each matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore import dtypes

__all__ = ["FACTORISATIONS"]

Shape = tuple[int, ...]


def lu_factor(x: Shape, **options: Any) -> list[Shape]:
    """The factors in one matrix, and the rows swapped."""
    return [x, (*x[:-2], min(x[-2:])), x[:-2]]


def lu_solve(lu: Shape, pivots: Shape, b: Shape, **options: Any) -> Shape:
    """The right sides, for each matrix of the batch."""
    return solved(lu, b)


def solved(a: Shape, b: Shape, **options: Any) -> Shape:
    """The right sides, for each matrix of the batch."""
    return np.broadcast_shapes(a[:-2], b[:-2]) + b[-2:]


def svd(x: Shape, *, full: bool, vectors: bool) -> list[Shape]:
    """Singular values, LAPACK's answer, and perhaps left and right vectors."""
    batch, (rows, columns), size = x[:-2], x[-2:], min(x[-2:])
    sides = [(*batch, rows, rows if full else size), (*batch, columns if full else size, columns)]
    return [(*batch, size), batch, *(sides if vectors else [])]


def eigen(x: Shape, *, vectors: bool, **options: Any) -> list[Shape]:
    """Eigenvalues, LAPACK's answer, and perhaps eigenvectors."""
    return [x[:-1], x[:-2], *([x] if vectors else [])]


def lstsq(a: Shape, b: Shape, **options: Any) -> list[Shape]:
    """The solutions with as many rows as the longer of both, ranks, singular values."""
    return [(*a[:-2], max(a[-2:]), b[-1]), a[:-2], (*a[:-2], min(a[-2:])), a[:-2]]


def same(x: Shape, *others: Any, **options: Any) -> Shape:
    """The first array's."""
    return x


# The names of kernels, and what a Rule of ``shapes.py`` holds.
FACTORISATIONS: tuple[tuple[Any, ...], ...] = (
    ("lu_factor ldl_factor", lu_factor, (None, dtypes.int32, dtypes.int32), (0,)),
    ("lu_solve ldl_solve", lu_solve, None, (0,)),
    ("solve_triangular", solved, None, (0,)),
    ("unpack_pivots", lambda pivots, *, rows: (*pivots[:-1], rows), dtypes.int64),
    ("inverse cholesky", lambda x, **options: [x, x[:-2]], (None, dtypes.int32), (0,)),
    ("geqrf", lambda x: [x, (*x[:-2], min(x[-2:]))], None, (0,)),
    ("householder_product", same, None, (0,)),
    ("ormqr", lambda a, tau, c, **options: c, None, (0,)),
    ("svd", svd, ("real", dtypes.int32, None, None), (2, 3)),
    ("eigh", eigen, ("real", dtypes.int32, None), (2,)),
    ("eig", eigen, ("complex", dtypes.int32, "complex"), (2,)),
    ("lstsq", lstsq, (None, dtypes.int64, "real", dtypes.int32), (0,)),
)  # fmt: skip
