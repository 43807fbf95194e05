"""What of an op's calls and results is defined, for ops whose results are so only up to a sign, a phase or an order.

Eigenvectors and singular vectors may be multiplied by any number of size 1, and two LAPACKs choose differently: in their
place stand their outer products. Where an op reads one triangle of a matrix, and its derivative is that of the whole, the
call gets a matrix whose triangles agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["REGULAR", "defined", "unique"]

# Functions that a matrix of equal rows is no argument for: it is singular, its singular values and eigenvalues are equal, and
# roundoff decides what comes out, of the function or of its derivative.
REGULAR = {
    "det", "geqrf", "inverse", "linalg_cholesky_ex", "linalg_cond", "linalg_eig", "linalg_eigvals", "linalg_inv",
    "linalg_inv_ex", "linalg_ldl_factor", "linalg_ldl_factor_ex",
    "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_matrix_norm", "linalg_norm",
    "linalg_qr", "linalg_solve", "linalg_solve_ex", "linalg_svd", "linalg_svdvals", "linalg_tensorinv",
    "linalg_tensorsolve", "logdet", "lu", "nuclear_norm", "pca_lowrank", "pinverse", "qr", "slogdet", "svd",
    "svd_lowrank",
}  # fmt: skip


def defined(name: str, function: Callable[..., Any], results: bool = True) -> Callable[..., Any]:
    """The function of either library with arguments that it is defined for, and what is defined of its results.

    Without ``results`` these are as they are: layouts can be compared where values cannot.
    """
    before = ARGUMENTS.get(name)
    if before is None and not (results and name in RESULTS):
        return function

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if before is not None and args:
            args = before(args, options)
        made = function(*args, **options)
        return unique(name, made) if results else made

    return call


def unique(name: str, made: Any) -> Any:
    """What is defined of a result of the op; an exception as it is."""
    return RESULTS[name](made) if name in RESULTS and not isinstance(made, Exception) else made


def _matrix(x: Any) -> bool:
    return (
        hasattr(x, "ndim") and x.ndim >= 2 and x.shape[-1] == x.shape[-2] and (x.is_floating_point() or x.is_complex())
    )


def _hermitian(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    return ((args[0] + args[0].mH) / 2, *args[1:]) if _matrix(args[0]) else args


def _hermitian_on_demand(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    return _hermitian(args, options) if options.get("hermitian") else args


def _triangular(at: int, default: bool = False) -> Callable[..., tuple[Any, ...]]:
    def made(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        if len(args) <= at or not _matrix(args[at]):
            return args
        upper = args[at + 1] if len(args) > at + 1 else options.get("upper", default)
        return (*args[:at], args[at].triu() if upper else args[at].tril(), *args[at + 1 :])

    return made


def _outer(vectors: Any) -> Any:
    """The outer products of the columns with themselves."""
    return vectors.unsqueeze(-2) * vectors.unsqueeze(-3).conj()


def _of_eigen(made: Any) -> Any:
    return made[0], _outer(made[1])


def _of_svd(made: Any) -> Any:
    """Values, and what the vectors that belong to them are; those that fill a basis up are anyone's."""
    u, s, v = made
    v = v.mH if type(made).__name__.startswith("linalg") else v
    size = s.shape[-1]
    return s, _outer(u[..., :size]), _outer(v[..., :size]), _sizes(u), _sizes(v)


def _sizes(x: Any) -> Any:
    return x.detach().abs().square().sum((-2, -1))


ARGUMENTS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "cholesky": _hermitian,
    "cholesky_inverse": _triangular(0),
    "cholesky_solve": _triangular(1),
    "linalg_cholesky": _hermitian,
    "linalg_cholesky_ex": _hermitian,
    "linalg_eigh": _hermitian,
    "linalg_eigvalsh": _hermitian,
    "linalg_ldl_factor": _hermitian,
    "linalg_ldl_factor_ex": _hermitian,
    "linalg_matrix_rank": _hermitian_on_demand,
    "linalg_pinv": _hermitian_on_demand,
    "triangular_solve": _triangular(1, True),
}
RESULTS: dict[str, Callable[[Any], Any]] = {
    "linalg_eig": _of_eigen,
    "linalg_eigh": _of_eigen,
    "linalg_svd": _of_svd,
    "pca_lowrank": _of_svd,
    "svd": _of_svd,
    "svd_lowrank": _of_svd,
}
