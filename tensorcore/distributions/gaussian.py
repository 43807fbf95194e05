"""Determinants and distances of normal vectors, from triangular factors of covariances."""

from __future__ import annotations

from typing import Any

from tensorcore.ops.creation.grids import eye
from tensorcore.ops.linalg.cholesky import cholesky
from tensorcore.ops.linalg.triangular import solve_triangular

__all__ = [
    "capacitance",
    "half_log_det",
    "low_rank_log_det",
    "low_rank_mahalanobis",
    "mahalanobis",
    "scale_tril_of_precision",
]


def mahalanobis(factor: Any, x: Any) -> Any:
    """``x^T (L L^T)^-1 x`` for vectors x (..., n) and lower triangular factors L (..., n, n)."""
    if factor.dim() == 2:  # all vectors are right sides of one system
        solved = solve_triangular(factor, x.reshape(-1, x.shape[-1]).T, upper=False)
        return solved.square().sum(0).reshape(x.shape[:-1])
    return solve_triangular(factor, x.unsqueeze(-1), upper=False).square().sum((-2, -1))


def half_log_det(factor: Any) -> Any:
    """Half the logarithm of the determinant of ``L L^T``."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def scale_tril_of_precision(precision: Any) -> Any:
    """The lower triangular L with ``L L^T`` the inverse of a positive-definite matrix.

    Turned by 180 degrees, the factor of the turned matrix is the upper triangular one whose transpose inverts to L.
    """
    inverse = cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return solve_triangular(inverse, identity, upper=False)


# Of the covariance W W^T + diag(d), by the determinant lemma and the formula of Sherman, Morrison and Woodbury.


def capacitance(W: Any, d: Any) -> Any:
    """The lower triangular factor of ``I + W^T diag(d)^-1 W``."""
    inner = W.mT @ (W / d.unsqueeze(-1))
    return cholesky(inner + eye(W.shape[-1], dtype=W.dtype, device=W.device))


def low_rank_log_det(d: Any, factor: Any) -> Any:
    """The logarithm of the determinant, given that factor."""
    return 2 * half_log_det(factor) + d.log().sum(-1)


def low_rank_mahalanobis(W: Any, d: Any, x: Any, factor: Any) -> Any:
    """The squared distances of vectors x from 0, given that factor."""
    inner = (W.mT @ (x / d).unsqueeze(-1)).squeeze(-1)
    return (x.square() / d).sum(-1) - mahalanobis(factor, inner)
