"""Shape rules of matrix factorisations and solutions; one of several results is LAPACK's answer for each matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["eigen", "lstsq", "lu_factor", "lu_solve", "solved", "svd", "with_answer"]

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


def with_answer(x: Shape, **options: Any) -> list[Shape]:
    """A matrix for each one, and LAPACK's answers."""
    return [x, x[:-2]]
