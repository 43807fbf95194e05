"""The singular value decomposition, and what rests on it: pseudo-inverses and least squares."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, LinAlgError, ShapeError, UnsupportedDtype, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.eigen import check_phase, differences, eigh, off_diagonal, on_diagonal
from tensorcore.ops.linalg.matrices import (
    LAPACKS,
    batch_of,
    check_matrix,
    check_same,
    check_square,
    failure,
    is_recorded,
    not_converged,
    nothing,
    optional,
    stretched,
    twin,
)
from tensorcore.ops.linalg.qr import qr
from tensorcore.ops.linalg.triangular import solved
from tensorcore.ops.operands import anywhere, check_tensors
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.tensor import Tensor

__all__ = ["lstsq", "pinv", "svd", "svdvals"]

EPSILONS = {one: dtypes.finfo(one).eps for one in LAPACKS}
_Svd = return_type("linalg_svd", "U S Vh")
_Lstsq = return_type("linalg_lstsq", "solution residuals rank singular_values")


# Townsend, "Differentiating the singular value decomposition" (2016); complex ones: Wan and Zhang, "Automatic
# differentiation for complex valued SVD" (2019).


def _gradient(g: list[Tensor | None], out: tuple[Tensor, ...], A_shape: tuple[int, ...]) -> Tensor | None:
    s, _, u, vh = out
    size = s.native.shape[-1]
    gs, gu, gvh = g[0], g[2], g[3]
    u, vh = u[..., :size], vh[..., :size, :]
    if gu is None and gvh is None:
        return None if gs is None else (u * gs.unsqueeze(-2)) @ vh  # type: ignore[attr-defined]
    inner: Any = 0.0 if gs is None else on_diagonal(gs)
    gaps = differences(s * s)
    row, column = s.unsqueeze(-2), s.unsqueeze(-1)  # type: ignore[attr-defined]
    phase: Any = 0.0
    if gu is not None:
        gu = gu[..., :size]
        turn = u.mH @ gu
        turn = turn - turn.mH
        inner = inner + off_diagonal(turn) / gaps * row
        phase = phase + turn.diagonal(0, -2, -1)
    if gvh is not None:
        gvh = gvh[..., :size, :]
        side = vh @ gvh.mH
        side = side - side.mH
        inner = inner + column * off_diagonal(side) / gaps
        phase = phase + side.diagonal(0, -2, -1)
    if s.dtype is not u.dtype:
        check_phase("linalg.svd", phase)
        if gu is not None and gvh is not None:
            inner = inner + on_diagonal(turn.diagonal(0, -2, -1) / (2.0 * s))
    rows, columns = A_shape[-2:]
    made = u @ inner
    if rows > size and gu is not None:
        outside = gu / row
        made = made + outside - u @ (u.mH @ outside)
    made = made @ vh
    if columns > size and gvh is not None:
        outside = gvh / column
        made = made + u @ (outside - (outside @ vh.mH) @ vh)
    return made


_op = Op("svd", "A", "Singular values, info, and the vectors of both sides.", register=False,
         backward_name="LinalgSvdBackward0", grads=dict(A=_gradient))  # fmt: skip


def decomposed(op: str, A: Tensor, full: bool = False, vectors: bool = True) -> tuple[Tensor, ...]:
    """Singular values and, with ``vectors``, those of both sides; recorded, and never without vectors on the tape."""
    vectors = vectors or (A.node is not None and is_recorded(A))
    made = apply(
        _op, (A,), {"full": full, "vectors": vectors}, dtype=(A.dtype.to_real(), dtypes.int32, A.dtype, A.dtype)
    )
    not_converged(op, made[1])
    return (made[0], *made[2:])


def _check_driver(op: str, driver: str | None) -> None:
    if driver is not None:
        raise UsageError(
            f"{op}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend, got {driver!r}; "
            "leave it out"
        )


@operation(samples=samples.svd, method=False, name="linalg_svd")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """``A = U diag(S) Vh`` with orthonormal columns of U and rows of Vh, and S from the largest on, as ``(U, S, Vh)``.

    Shapes: (..., m, n) gives (..., m, m), (..., k), (..., n, n), with k = min(m, n); k for m and n where not
    ``full_matrices``. The vectors are given up to a sign (a phase), so a gradient through them is defined for what does
    not depend on that; it is infinite where two singular values are equal.
    """
    check_matrix("linalg.svd", A)
    _check_driver("linalg.svd", driver)
    s, u, vh = decomposed("linalg.svd", A, bool(full_matrices))
    return _Svd(u, s, vh) if out is None else stored("linalg.svd", _Svd(u, s, vh), out)


@operation(samples=samples.matrices, method=False, name="linalg_svdvals")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values of each matrix (..., m, n), from the largest on."""
    check_matrix("linalg.svd", A)
    _check_driver("linalg.svdvals", driver)
    return stored("linalg.svdvals", decomposed("linalg.svd", A, vectors=False)[0], out)  # type: ignore[no-any-return]


# Pseudo-inverses


def _pinv_gradient(g: Tensor, A: Tensor, out: Tensor) -> Tensor:
    """Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973)."""
    turned, adjoint = g.mH, out.mH
    made = -(adjoint @ g @ adjoint)
    inside = turned @ out @ adjoint
    made = made + inside - A @ (out @ inside)
    inside = adjoint @ out @ turned
    return made + inside - (inside @ out) @ A


_pinv = Op("linalg_pinv", "A", "The pseudo-inverse of each matrix.", register=False,
           backward_name="LinalgPinvBackward0", grads=dict(A=_pinv_gradient))  # fmt: skip


def tolerances(op: str, values: Tensor, shape: tuple[int, ...], atol: Any, rtol: Any) -> Tensor:
    """The size up to which a singular value counts as 0: the larger of ``atol`` and ``rtol`` times the largest value.

    Without either, ``rtol`` is ``max(m, n) * eps``; with ``atol`` alone it is 0 where that is over 0.
    """
    default = max(shape[-2:]) * EPSILONS[values.dtype]

    def column(one: Any) -> Any:
        if not isinstance(one, Tensor):
            if not hasattr(one, "__float__"):
                raise ArgumentTypeError(
                    f"{op}: expected atol and rtol to be numbers or tensors, got {one!r}; pass e.g. 1e-5"
                )
            return one
        if one.dtype.is_complex:
            raise UnsupportedDtype(f"{op}: atol and rtol tensors of complex type are not supported, got {one.dtype}")
        return one.unsqueeze(-1)  # type: ignore[attr-defined]

    if rtol is None:
        if isinstance(atol, Tensor):
            rtol = where(atol > 0, 0.0, default)
        else:
            rtol = 0.0 if atol is not None and column(atol) > 0 else default
    largest = values.amax(-1, True) if values.native.shape[-1] else values.new_zeros((*values.native.shape[:-1], 1))  # type: ignore[attr-defined]
    relative = (rtol if type(rtol) is float else column(rtol)) * largest
    if atol is None and type(rtol) is float and rtol >= 0:  # not negative, as singular values are not
        return relative  # type: ignore[no-any-return]
    atol = 0.0 if atol is None else column(atol)
    return relative.maximum(atol) if isinstance(atol, Tensor) else relative.clamp_min(atol)  # type: ignore[no-any-return, attr-defined]


def pseudo_inverse(op: str, A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    """As ``pinv``, of a checked matrix; recorded."""
    off = A if A.node is None else twin(A)
    shape = A.native.shape
    if not off.numel():
        made = off.new_zeros((*shape[:-2], shape[-1], shape[-2]))  # type: ignore[attr-defined]
    elif hermitian:
        check_square(op, A)
        values, v = eigh(off)
        sizes = values.abs()
        inverse = where(sizes > tolerances(op, sizes, shape, atol, rtol), 1.0 / values, 0.0)
        made = (v * inverse.unsqueeze(-2)) @ v.mH
    else:
        s, u, vh = decomposed(op, off)
        inverse = where(s > tolerances(op, s, shape, atol, rtol), 1.0 / s, 0.0)
        made = (vh.mH * inverse.unsqueeze(-2)) @ u.mH
    if A.node is not None and is_recorded(A):
        record(_pinv, (A,), None, made)
    return made  # type: ignore[no-any-return]


@operation(samples=samples.pinv, method=False, name="linalg_pinv")
def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None,
         out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The pseudo-inverse (Moore and Penrose) of each matrix, (..., m, n) to (..., n, m).

    Args:
        rcond: an older name of ``rtol``.
        hermitian: take A for Hermitian, and read its lower triangle only.
        atol, rtol: numbers or tensors of the batch's shape; singular values up to the larger of ``atol`` and ``rtol``
            times the largest one count as 0. Without either, ``rtol`` is ``max(m, n)`` times the dtype's epsilon.
    """
    op = "linalg.pinv"
    check_matrix(op, A)
    return stored(op, pseudo_inverse(op, A, atol, rcond if rtol is None else rtol, hermitian), out)  # type: ignore[no-any-return]


# Least squares

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _by_triangle(A: Tensor, short: Tensor) -> tuple[Tensor, Tensor]:
    """The triangle R of A, or of its adjoint where that is taller, and the adjoint of A's pseudo-inverse times ``short``."""
    rows, columns = A.native.shape[-2:]
    q, r = qr(A if rows >= columns else A.mH)
    if rows >= columns:
        return r, q @ solved(r.mH, short, upper=False, left=True)
    return r, solved(r, q.mH @ short, upper=True, left=True)


def _is_full(A: Tensor, rank: Tensor, driver: str) -> bool:
    return driver == "gels" or not anywhere(rank != min(A.native.shape[-2:]))


def _of_solution(
    g: list[Tensor | None], A: Tensor, B: Tensor, out: tuple[Tensor, ...], rcond: float, driver: str
) -> Tensor | None:
    if g[0] is None:
        return None
    rows, columns = A.native.shape[-2:]
    short = g[0][..., :columns, :]
    if _is_full(A, out[1], driver):
        solution = out[0][..., :columns, :]
        r, turned = _by_triangle(A, short)
        made = -turned @ solution.mH
        if rows > columns:  # what is left of B, along the solutions with A^H A
            return made + (B - A @ solution) @ solved(r, solved(r.mH, short, upper=False), upper=True).mH
        if rows < columns:
            around = solved(r, solved(r.mH, B, upper=False), upper=True)
            return made + around @ (short - A.mH @ turned).mH
        return made
    inverse = pseudo_inverse("linalg.lstsq", A, None, rcond, False)
    return _pinv_gradient(short @ B.mH, A, inverse)


def _of_right(g: list[Tensor | None], A: Tensor, out: tuple[Tensor, ...], rcond: float, driver: str) -> Tensor | None:
    if g[0] is None:
        return None
    short = g[0][..., : A.native.shape[-1], :]
    if _is_full(A, out[1], driver):
        return _by_triangle(A, short)[1]
    return pseudo_inverse("linalg.lstsq", A, None, rcond, False).mH @ short


_lstsq = Op("lstsq", "A B", "Least-squares solutions in front, ranks, singular values, info.", register=False,
            backward_name="LinalgLstsqBackward0", grads=dict(A=_of_solution, B=_of_right))  # fmt: skip


def _by_values(A: Tensor, B: Tensor, driver: str, rcond: float) -> tuple[Tensor, ...]:
    rows, columns = A.native.shape[-2:]
    s, _, _ = decomposed("linalg.lstsq", A)
    made = pseudo_inverse("linalg.lstsq", A, None, rcond, False) @ B
    rank = (s > tolerances("linalg.lstsq", s, (rows, columns), None, rcond)).sum(-1)
    filler = A.new_zeros((*batch_of(A), max(rows - columns, 0), B.native.shape[-1]))  # type: ignore[attr-defined]
    from tensorcore.ops.shapes.join import cat

    full = cat([made, filler], -2)
    short = (rank < min(rows, columns)).int() * (driver == "gels")
    return full, rank, s, short


@operation(samples=samples.lstsq, method=False, name="linalg_lstsq")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Any = None) -> Any:
    """X for which the squares of ``A X - B`` have the smallest sum, as ``(solution, residuals, rank, singular_values)``.

    Shapes: A (..., m, n), B (..., m, k) or (..., m) give (..., n, k) or (..., n).

    Args:
        rcond: singular values up to this times the largest one count as 0; ``max(m, n)`` times epsilon where None.
        driver: LAPACK's ``gelsy`` (default), ``gels`` (A of full rank), ``gelsd`` or ``gelss``. Residuals, the sums of
            squares, come from all but ``gelsy`` where m > n and all ranks are full; the rank from all but ``gels``;
            singular values from the last two. What does not come has no elements.
    """
    op = "linalg.lstsq"
    shape = check_matrix(op, A, "input")
    check_tensors(op, B=B)
    if not B.native.shape:
        raise ShapeError(f"{op}: other must have at least 1 dimension, got {B!r}; pass a vector or a matrix")
    check_same(op, A, B, ("input", "other"))
    wide = tuple(B.native.shape)
    away = len(shape) - len(wide)
    if not 0 <= away <= 1:
        raise ShapeError(
            f"{op}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1, got "
            f"{list(shape)} and {list(wide)}; unsqueeze one"
        )
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise UsageError(f"{op}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver!r}")
    vector = len(wide) == 1 or wide == shape[:-1]
    right = B.unsqueeze(-1) if vector else B  # type: ignore[attr-defined]
    if right.native.shape[-2] != shape[-2]:
        raise ShapeError(
            f"{op}: input.size({'-2'}) should match other.size({'-1' if vector else '-2'}), got {shape[-2]} and "
            f"{right.native.shape[-2]}; give both as many rows"
        )
    batch = rules.broadcast(op, shape[:-2], tuple(right.native.shape[:-2]))
    rcond = max(shape[-2:]) * EPSILONS[A.dtype] if rcond is None else float(rcond)
    A, right = stretched(A, batch), stretched(right, batch)
    real = A.dtype.to_real()
    made, rank, values, info = optional(
        _lstsq, _by_values, (A, right), {"driver": driver, "rcond": rcond}, (A.dtype, dtypes.int64, real, dtypes.int32)
    )
    _refuse(op, info)
    solution = made if made.native.shape[-2] == shape[-1] else made[..., : shape[-1], :]
    residuals = _residuals(A, right, solution, rank, driver)
    if vector:
        solution = solution.squeeze(-1)
    rank = nothing(A, dtypes.int64) if driver == "gels" else rank
    values = twin(values) if driver in ("gelsd", "gelss") else nothing(A, real)
    found = _Lstsq(solution, residuals, rank, values)
    return found if out is None else stored(op, found, out)


def _refuse(op: str, info: Tensor) -> None:
    failed = failure(info)
    if failed is not None:
        raise LinAlgError(
            f"{op}: {failed[0]}The least squares solution could not be computed because the input matrix does not have full "
            f"rank, got error code {failed[1]}; use the driver gelsy, gelsd or gelss"
        )


def _residuals(A: Tensor, B: Tensor, solution: Tensor, rank: Tensor, driver: str) -> Tensor:
    rows, columns = A.native.shape[-2:]
    full = driver == "gels" or (driver != "gelsy" and not anywhere(rank != columns))
    if rows <= columns or not full:
        if solution.node is None:
            return nothing(solution, solution.dtype.to_real())
        # Recorded as PyTorch's is.
        none = solution.reshape(-1)[:0]  # type: ignore[attr-defined]
        return none.abs() if none.dtype.is_complex else none.clone()  # type: ignore[no-any-return]
    away = A @ solution - B
    return (away.abs() ** 2 if away.dtype.is_complex else away * away).sum(-2)  # type: ignore[no-any-return, attr-defined]
