"""Factorisations of Hermitian matrices, positive-definite or not, and solutions from their factors."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DimensionError, DtypeError, LinAlgError, ShapeError
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op, without_derivative
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.lu import check_pivots
from tensorcore.ops.linalg.matrices import (
    LAPACKS,
    check_matrix,
    check_same,
    check_sides,
    check_square,
    failure,
    identity,
    is_recorded,
    way_of_matrices,
)
from tensorcore.ops.linalg.triangular import solved
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "ldl_factor", "ldl_factor_ex", "ldl_solve",
]  # fmt: skip

_CholeskyEx = return_type("linalg_cholesky_ex", "L info")
_Ldl, _LdlEx = return_type("linalg_ldl_factor", "LD pivots"), return_type("linalg_ldl_factor_ex", "LD pivots info")


# The gradient is that of Murray, "Differentiation of the Cholesky decomposition" (2016), and of Seeger, Hetzel, Dai,
# Meissner and Lawrence, "Auto-differentiating linear algebra" (2017).


def _gradient(g: list[Tensor | None], out: tuple[Tensor, ...], upper: bool) -> Tensor | None:
    if g[0] is None:
        return None
    lower, gl = (out[0].mH, g[0].mH) if upper else (out[0], g[0])
    halves = 1.0 - 0.5 * identity(lower, lower.native.shape[-1])
    inner = (lower.mH @ gl).tril() * halves  # type: ignore[attr-defined]
    made = solved(lower.mH, 0.5 * (inner + inner.mH), upper=True)
    return solved(lower, made, upper=False, left=False)


_factor = Op("cholesky", "A", "The triangular factor, and info.", register=False,
             backward_name="LinalgCholeskyExBackward0", grads=dict(A=_gradient))  # fmt: skip


def factored(op: str, A: Tensor, upper: bool, check: bool = True) -> tuple[Tensor, Tensor]:
    """The factors, recorded, and LAPACK's answers; an error for a matrix that has none on demand."""
    check_square(op, A)
    made, info = apply(_factor, (A,), {"upper": bool(upper)}, dtype=(A.dtype, dtypes.int32))
    failed = failure(info) if check else None
    if failed is not None:
        raise LinAlgError(
            f"{op}: {failed[0]}The factorization could not be completed because the input is not positive-definite, got one "
            f"where the leading minor of order {failed[1]} is not positive-definite; use ldl_factor or eigh"
        )
    return made, info


@operation(samples=samples.positive, method=False, name="linalg_cholesky")
def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangle L with ``A = L L^H`` for each positive-definite Hermitian matrix; ``upper``: U with ``A = U^H U``.

    Only that triangle of A is read; the gradient is that of the whole. Raises LinAlgError for any other matrix.
    """
    made = factored("linalg.cholesky", A, upper)[0]
    return made if out is None else stored("linalg.cholesky", made, out)  # type: ignore[no-any-return]


@operation(
    samples=samples.positive, method=False, name="linalg_cholesky_ex",
    way=way_of_matrices(_factor, LAPACKS, {"upper": False, "check_errors": False}, untold=("check_errors",), square=True,
                        result=(None, dtypes.int32), answer=_CholeskyEx),
)  # fmt: skip
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As ``cholesky``, with the order of the first minor that is not positive (or 0), as ``(L, info)``."""
    op = "linalg.cholesky_ex" if check_errors else "linalg.cholesky"
    made = _CholeskyEx(*factored(op, A, upper, check_errors))
    return made if out is None else stored(op, made, out)


@operation(samples=samples.cholesky_solve)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The solutions X of A X = B from B and the factor of A.

    Shapes: B (..., n, k), the factor (..., n, n); its other triangle is not read.
    """
    op = "cholesky_solve"
    wide, shape = check_matrix(op, input, "B"), check_square(op, input2, "u")
    check_same(op, input, input2, ("B", "A"))
    check_sides(op, shape, wide)
    return stored(op, _solution(input2, input, upper), out)  # type: ignore[no-any-return]


def _solution(L: Tensor, B: Tensor, upper: bool) -> Tensor:
    first, second = (L.mH, L) if upper else (L, L.mH)
    return solved(second, solved(first, B, upper=False), upper=True)


# With the inverse C of L L^H, dC = -C (dL L^H + L dL^H) C.


def _of_factor(g: Tensor, L: Tensor, out: Tensor, upper: bool) -> Tensor:
    inner = out @ (g + g.mH) @ out
    return -(L @ inner).triu() if upper else -(inner @ L).tril()


_inverse = Op("cholesky_inverse", "L", "The inverse from a factor.", register=False, backward_name="CholeskyInverseBackward0",
              grads=dict(L=_of_factor))  # fmt: skip


@operation(samples=samples.factor)
def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A from its factor. Raises LinAlgError for a zero on the diagonal."""
    op = "cholesky_inverse"
    size = check_square(op, L)[-1]
    kernel = L.device.kernels["cholesky_inverse"] if type(L) is Tensor else None
    if kernel:
        native, info = kernel(L.native, upper=bool(upper))
        made = new_tensor(native, L.dtype, L.device)
        _refuse_zero(op, new_tensor(info, dtypes.int32, L.device))
        if L.node is not None and is_recorded(L):
            record(_inverse, (L,), {"upper": bool(upper)}, made)
        return made if out is None else stored(op, made, out)  # type: ignore[no-any-return]
    if L.device.capabilities.values and size:
        zero = (L.detach().diagonal(0, -2, -1) == 0).int()  # type: ignore[attr-defined]
        _refuse_zero(op, ((zero.argmax(-1) + 1) * zero.amax(-1)).int())
    return stored(op, _solution(L, identity(L, size), upper), out)  # type: ignore[no-any-return]


def _refuse_zero(op: str, info: Tensor) -> None:
    failed = failure(info)
    if failed is not None:
        raise LinAlgError(
            f"{op}: {failed[0]}expected a factor with an inverse, got one whose diagonal element {failed[1]} is zero: the inversion "
            "could not be completed because the input matrix is singular"
        )


# Hermitian or symmetric matrices that are not positive-definite: Bunch and Kaufman, "Some stable methods for calculating
# inertia and solving symmetric linear systems" (1977). PyTorch has no derivative of the factors either.

_ldl = Op("ldl_factor", "A", "L and D in one triangle, the swaps, and info.", register=False,
          grads=dict(A=without_derivative("linalg_ldl_factor_ex")),
          backward_name="LinalgLdlFactorExBackward0")  # fmt: skip
_ldl_solve = Op("ldl_solve", "LD pivots B", "The solutions from the factors.", register=False,
                backward_name="LinalgLdlSolveBackward0", grads=dict(
    LD=without_derivative("linalg_ldl_solve"),
    # A symmetric matrix is its own transpose, and so has the conjugates of the solutions for conjugates.
    B=lambda g, LD, pivots, hermitian: _ldl_solved(LD, pivots, g, True) if hermitian or not LD.dtype.is_complex else
    _ldl_solved(LD, pivots, g.conj(), False).conj()))  # fmt: skip


def _ldl_solved(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
    return apply(_ldl_solve, (LD, pivots, B), {"hermitian": hermitian}, dtype=B.dtype)  # type: ignore[no-any-return]


def _ldl_factors(op: str, A: Tensor, hermitian: bool, check: bool) -> tuple[Tensor, Tensor, Tensor]:
    check_square(op, A)
    made = apply(_ldl, (A,), {"hermitian": bool(hermitian)}, dtype=(A.dtype, dtypes.int32, dtypes.int32))
    failed = failure(made[2]) if check else None
    if failed is not None:
        raise LinAlgError(
            f"{op}: {failed[0]}expected blocks of D with an inverse, got one that is singular at {failed[1]}; for the factors "
            "alone call ldl_factor_ex"
        )
    return made  # type: ignore[no-any-return]


@operation(samples=samples.hermitian_only, method=False, name="linalg_ldl_factor")
def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """The factors L and D of symmetric matrices (Hermitian ones on demand) in one triangle, as ``(LD, pivots)``.

    Only the lower triangle of A is read. Raises LinAlgError for a singular D.
    """
    made = _ldl_factors("linalg.ldl_factor", A, hermitian, True)
    return _Ldl(*made[:2]) if out is None else stored("linalg.ldl_factor", _Ldl(*made[:2]), out)


@operation(
    samples=samples.hermitian_only, method=False, name="linalg_ldl_factor_ex",
    way=way_of_matrices(_ldl, LAPACKS, {"hermitian": False, "check_errors": False}, untold=("check_errors",), square=True,
                        result=(None, dtypes.int32, dtypes.int32), answer=_LdlEx),
)  # fmt: skip
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As ``ldl_factor``, with the place where D is singular (or 0), as ``(LD, pivots, info)``."""
    made = _ldl_factors("linalg.ldl_factor_ex", A, hermitian, check_errors)
    return _LdlEx(*made) if out is None else stored("linalg.ldl_factor_ex", _LdlEx(*made), out)


@operation(samples=samples.ldl_solve, method=False, name="linalg_ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """The solutions X of A X = B from what ``ldl_factor`` gives for A.

    Shapes: LD (..., n, n), pivots (..., n), B (..., n, k).
    """
    op = "linalg.ldl_solve"
    shape = check_square(op, LD, "LD")
    if isinstance(B, Tensor) and len(B.native.shape) < 2:
        raise DimensionError(f"{op}: expected B of at least 2 dims, got {list(B.shape)}; use unsqueeze(-1)")
    wide = check_matrix(op, B, "B")
    check_same(op, LD, B, ("LD", "B"))
    check_tensors(op, pivots=pivots)
    if pivots.dtype.kind != "integer":
        raise DtypeError(f"{op}: Expected pivots to be integers, got {pivots.dtype}; pass ldl_factor's")
    if tuple(pivots.native.shape) != shape[:-1]:
        raise ShapeError(
            f"{op}: Expected pivots.shape[:-1] to match the batch of LD and as many as its rows, got {list(pivots.shape)} for "
            f"{list(shape)}; pass those of ldl_factor"
        )
    check_pivots(op, pivots, shape[-1], signed=True)
    check_sides(op, shape, wide)
    return stored(op, _ldl_solved(LD, pivots.to(dtypes.int32), B, bool(hermitian)), out)  # type: ignore[no-any-return]
