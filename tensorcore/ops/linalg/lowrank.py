"""Parts of the spectrum of large matrices: by random projections, and by iteration."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentError, ShapeError
from tensorcore.ops.creation.random import randn
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.cholesky import cholesky
from tensorcore.ops.linalg.eigen import eigh
from tensorcore.ops.linalg.matrices import check_matrix, check_square, is_recorded
from tensorcore.ops.linalg.qr import qr
from tensorcore.ops.linalg.svd import svd
from tensorcore.ops.linalg.triangular import solved
from tensorcore.ops.samples import linalg as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns that span nearly the same as the largest ``q`` left singular vectors of A - M.

    Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithm 4.4.
    """

    def times(x: Tensor) -> Tensor:
        return A @ x if M is None else A @ x - M @ x

    def adjoint_times(x: Tensor) -> Tensor:
        return A.mH @ x if M is None else A.mH @ x - M.mH @ x

    start = randn(A.native.shape[-1], q, dtype=A.dtype, device=A.device)
    made = qr(times(start)).Q
    for _ in range(niter):
        made = qr(times(qr(adjoint_times(made)).Q)).Q
    return made  # type: ignore[no-any-return]


def _low_rank(A: Tensor, q: int, niter: int, M: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = A.native.shape[-2:]
    if M is not None:
        M = M.expand(A.native.shape)  # type: ignore[attr-defined]
    turned = rows < columns
    if turned:
        A, M = A.mH, None if M is None else M.mH
    basis = _basis(A, q, niter, M)
    small = basis.mH @ A if M is None else basis.mH @ (A - M)
    u, s, vh = svd(small, full_matrices=False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if turned else (u, s, v)


@operation(samples=samples.low_rank, method=False)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The ``q`` largest singular values of A - M with their vectors, nearly, as ``(U, S, V)``, by random projections.

    Args:
        niter: passes over the matrix that make the result more exact.
        M: what is taken away first, of the shape of A or (..., 1, n).
    """
    check_matrix("svd_lowrank", A, narrow=True)
    return _low_rank(A, 6 if q is None else q, 2 if niter is None else niter, M)


@operation(samples=samples.components, method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The ``q`` principal components of the rows of A, nearly, as ``(U, S, V)``: ``svd_lowrank`` of the centred columns.

    ``q`` is ``min(6, m, n)`` where None.
    """
    rows, columns = check_matrix("pca_lowrank", A, narrow=True)[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ArgumentError(
            f"pca_lowrank: q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}, got {q}"
        )
    if niter < 0:
        raise ArgumentError(f"pca_lowrank: niter(={niter}) must be non-negative integer, got {niter}; pass 0 or more")
    return _low_rank(A - A.mean(-2, True) if center else A, q, niter, None)  # type: ignore[attr-defined]


def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: None = None, ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None, ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The ``k`` largest (or smallest) eigenvalues of A x = e B x with their vectors, for symmetric A and positive-definite B.

    Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient
    method" (2001), with an orthonormal basis of every search space.

    Args:
        A: (..., m, m), m at least 3 times k. Where A or B requires grad, all eigenvalues are computed.
        X: vectors to start from, (..., m, k); random ones where None. ``n`` of them where ``k`` is smaller.
        iK: a preconditioner, near the inverse of A.
        niter: at most so many steps; until ``tol`` is met where None or negative.
        tol: the relative size of a residual up to which a pair is found; the root of the dtype's epsilon where None.
        method, tracker, ortho_iparams, ortho_fparams, ortho_bparams: choices inside PyTorch's own iteration, of no
            consequence here.

    Returns:
        (..., k) values and (..., m, k) vectors, orthonormal with respect to B.
    """
    size = check_square("lobpcg", A)[-1]
    k = (1 if X is None else X.native.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.native.shape[-1]
    if size < 3 * n:
        raise ArgumentError(
            f"lobpcg: expected A of at least 3 * n = {3 * n} rows, got {size}; use linalg.eigh for few rows"
        )
    if B is not None and tuple(B.native.shape[-2:]) != (size, size):
        raise ShapeError(f"lobpcg: expected B of the size of A, got {list(B.shape)} and {list(A.shape)}; give it one")
    largest = True if largest is None else largest
    if is_recorded(A, *([] if B is None else [B])):
        return _all_values(A, B, k, largest)
    with no_grad():
        return _iterated(A, B, k, n, X, iK, niter, tol, largest)


def _all_values(A: Tensor, B: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    if B is None:
        values, vectors = eigh(A)
    else:
        lower = cholesky(B)
        inner = solved(lower, solved(lower.mH, A, upper=True, left=False), upper=False)
        values, vectors = eigh(inner)
        vectors = solved(lower.mH, vectors, upper=True)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]


def _iterated(A: Tensor, B: Any, k: int, n: int, X: Any, iK: Any, niter: Any, tol: Any, largest: bool) -> Any:
    from tensorcore import dtypes

    tol = dtypes.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    limit = 1000 if niter is None or niter < 0 else niter
    batch, size = A.native.shape[:-2], A.native.shape[-1]
    if X is None:
        X = randn(*batch, size, n, dtype=A.dtype, device=A.device)

    def by_b(x: Tensor) -> Tensor:
        return x if B is None else B @ x

    def orthonormal(x: Tensor) -> Tensor:
        x = qr(x).Q
        if B is None:
            return x
        lower = cholesky(x.mH @ (B @ x))
        return solved(lower.mH, x, upper=True, left=False)

    def rotated(basis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values, turn = eigh(basis.mH @ (A @ basis))
        if largest:
            values, turn = values.flip(-1), turn.flip(-1)
        return values[..., :n], basis @ turn[..., :n], turn[..., :n]

    values, X, _ = rotated(orthonormal(X))
    past = None
    for _ in range(limit):
        moved = A @ X
        residual = moved - by_b(X) * values.unsqueeze(-2)
        scale = moved.abs().square().sum(-2).sqrt() + values.abs() * by_b(X).abs().square().sum(-2).sqrt()
        if bool((residual.abs().square().sum(-2).sqrt()[..., :k] <= tol * scale[..., :k]).all()):
            break
        steps = residual if iK is None else iK @ residual
        basis = orthonormal(cat([X, steps] if past is None else [X, steps, past], -1))
        values, X, turn = rotated(basis)
        # The direction without its part along the old vectors.
        past = basis[..., n:] @ turn[..., n:, :]
    return values[..., :k], X[..., :k]
