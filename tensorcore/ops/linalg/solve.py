"""Solutions of linear systems and inverses, of matrices and of tensors taken for matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import LinAlgError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.lu import factors_of, from_factors
from tensorcore.ops.linalg.matrices import (
    check_matrix,
    check_same,
    check_sides,
    check_square,
    failure,
    identity,
    is_recorded,
    optional,
    twin,
)
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.tensor import Tensor

__all__ = ["inv", "inv_ex", "inverse", "solve", "solve_ex", "tensorinv", "tensorsolve"]

_SolveEx, _InvEx = return_type("linalg_solve_ex", "result info"), return_type("linalg_inv_ex", "inverse info")


# Giles (2008), 2.3.1: the right side's gradient solves the system with the adjoint of A.


def _right(g: Tensor, A: Tensor, factors: Any) -> Tensor:
    return _with_adjoint(A, factors, g)


def _matrix(g: Tensor, A: Tensor, out: Tensor, factors: Any) -> Tensor:
    return -(_with_adjoint(A, factors, g) @ out.mH)


_solve = Op("solve", "A B", "The solutions of linear systems.", register=False,
            backward_name="LinalgSolveExBackward0", grads=dict(A=_matrix, B=_right))  # fmt: skip


def solution(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """The solutions of A X = B, recorded, and LAPACK's answer for each A."""
    lu, pivots, info = factors_of(A if A.node is None else twin(A))
    made = from_factors(lu, pivots, B if B.node is None else twin(B))
    if (A.node is not None or B.node is not None) and is_recorded(A, B):
        record(_solve, (A, B), {"factors": (lu, pivots)}, made)
    return made, info


def _with_adjoint(A: Tensor, factors: tuple[Tensor, Tensor], B: Tensor) -> Tensor:
    """The solutions with the adjoint of A: from the forward call's factors unless A's own derivatives are recorded."""
    return solution(A.mH, B)[0] if is_recorded(A) else from_factors(*factors, B, "C")


def _solved(op: str, A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    shape = check_square(op, A)
    if isinstance(B, Tensor) and len(B.native.shape) == 1:
        wide, vector = (*B.native.shape, 1), True
    else:
        wide = check_matrix(op, B, "B") if not isinstance(B, Tensor) or B.native.shape else ()
        vector = bool(wide) and wide[:-1] == shape[:-2] and wide[-1] == shape[-1] and len(wide) == len(shape) - 1
    if not wide:
        raise ShapeError(f"{op}: The input tensor B must have at least 2 dimensions, got a 0-d tensor; use unsqueeze")
    check_same(op, A, B)
    if vector:
        B = B.unsqueeze(-1)  # type: ignore[attr-defined]
    check_sides(op, shape, tuple(B.native.shape), left)
    if left:
        made, info = solution(A, B)
    else:
        made, info = solution(A.mT, B.mT)
        made = made.mT
    return (made.squeeze(-1) if vector else made), info  # type: ignore[attr-defined]


def _refuse_singular(op: str, info: Tensor, what: str) -> None:
    failed = failure(info)
    if failed is not None:
        raise LinAlgError(
            f"{op}: {failed[0]}expected a matrix with an inverse, got one whose diagonal element {failed[1]} is zero after the "
            f"factorisation: {what} because the input matrix is singular; use lstsq or pinv"
        )


@operation(samples=samples.solve, method=False, name="linalg_solve")
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The solution X of A X = B (X A = B where not ``left``).

    Shapes: A (..., n, n); B (..., n, k), (..., k, n) where not ``left``, (n), or (..., n) with the batch of A.
    Raises LinAlgError for a singular A.
    """
    made, info = _solved("linalg.solve", A, B, left)
    _refuse_singular("linalg.solve", info, "The solver failed")
    return made if out is None else stored("linalg.solve", made, out)  # type: ignore[no-any-return]


@operation(samples=samples.solve, method=False, name="linalg_solve_ex")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """As ``solve``, with the place of a zero pivot of each A (or 0), as ``(result, info)``; raises on demand only."""
    made, info = _solved("linalg.solve", A, B, left)
    if check_errors:
        _refuse_singular("linalg.solve_ex", info, "The solver failed")
    return stored("linalg.solve_ex", _SolveEx(made, info), out)


# Giles (2008), 2.2.3.
_inverse = Op("inverse", "A", "The inverse of each matrix, and info.", register=False,
              backward_name="LinalgInvExBackward0",
              grads=dict(A=lambda g, out: None if g[0] is None else -(out[0].mH @ g[0] @ out[0].mH)))  # fmt: skip


def _by_solving(A: Tensor) -> tuple[Tensor, Tensor]:
    return solution(A, identity(A, A.native.shape[-1]))


def inverted(A: Tensor) -> tuple[Tensor, Tensor]:
    """The inverses, recorded, and LAPACK's answers."""
    return optional(_inverse, _by_solving, (A,), {}, (A.dtype, dtypes.int32))  # type: ignore[no-any-return]


def _inv(op: str, A: Tensor, out: Any = None) -> Tensor:
    check_square(op, A)
    made, info = inverted(A)
    _refuse_singular(op, info, "the inversion could not be completed")
    return made if out is None else stored(op, made, out)  # type: ignore[no-any-return]


@operation(samples=samples.invertible, method=False, name="linalg_inv")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of each square matrix. Raises LinAlgError where there is none."""
    return _inv("linalg.inv", A, out)


@operation(samples=samples.invertible)
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Another name of ``linalg.inv``."""
    return _inv("inverse", input, out)


@operation(samples=samples.invertible, method=False, name="linalg_inv_ex")
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """As ``inv``, with the place of a zero pivot of each matrix (or 0), as ``(inverse, info)``; raises on demand only."""
    check_square("linalg.inv", A)
    made, info = inverted(A)
    if check_errors:
        _refuse_singular("linalg.inv_ex", info, "the inversion could not be completed")
    return stored("linalg.inv_ex", _InvEx(made, info), out)


@operation(samples=samples.tensorinv, method=False, name="linalg_tensorinv")
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse for ``tensordot``: the first ``ind`` dims are taken for rows, the others for columns.

    Shapes: (*r, *c) with as many elements in r as in c gives (*c, *r).
    """
    if type(A) is not Tensor:
        check_tensors("linalg.tensorinv", A=A)
    op = "linalg.tensorinv"
    if ind <= 0:
        raise ShapeError(f"{op}: Expected a strictly positive integer for 'ind', got {ind}; pass at least 1")
    shape = tuple(A.native.shape)
    rows, columns = shape[:ind], shape[ind:]
    if prod(rows) != prod(columns):
        raise ShapeError(
            f"{op}: Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), got "
            f"{prod(columns)} != {prod(rows)}; choose another ind"
        )
    made = _inv(op, A.reshape(prod(rows), prod(columns))).reshape(*columns, *rows)  # type: ignore[attr-defined]
    return stored(op, made, out)  # type: ignore[no-any-return]


@operation(samples=samples.tensorsolve, method=False, name="linalg_tensorsolve")
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """The solution X of ``tensordot(A, X, X.ndim) == B``.

    Shapes: A (*b, *x) and B (*b) with as many elements in both give (*x); ``dims`` of A are moved to its end first.
    """
    op = "linalg.tensorsolve"
    check_same(op, A, B)
    if dims is not None:
        ndim = len(A.native.shape)
        moved = rules.wrap_dims(op, tuple(dims), ndim)
        A = A.permute([i for i in range(ndim) if i not in moved] + list(moved))  # type: ignore[attr-defined]
    front = len(B.native.shape)
    rows, rest = tuple(A.native.shape[:front]), tuple(A.native.shape[front:])
    if prod(rows) != prod(rest):
        raise ShapeError(
            f"{op}: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"got {prod(rest)} != {prod(rows)}; name other dims"
        )
    size = prod(rest)
    flat = B.reshape(-1)  # type: ignore[attr-defined]
    if flat.native.shape[0] != size:
        raise ShapeError(f"{op}: expected B of {size} elements, got {list(B.shape)}; give it the first dims of A")
    A = A.reshape(size, size)  # type: ignore[attr-defined]
    check_square("linalg.solve", A)
    found, info = solution(A, flat.reshape(size, 1))  # type: ignore[attr-defined]
    _refuse_singular("linalg.solve", info, "The solver failed")
    made = found.reshape(rest)  # type: ignore[attr-defined]
    return made if out is None else stored(op, made, out)  # type: ignore[no-any-return]
