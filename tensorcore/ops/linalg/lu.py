"""The LU factorisation with row swaps, what is made of its factors, and solutions from them."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, LinAlgError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.creation.create import arange
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.matrices import (
    LAPACKS,
    batch_of,
    check_matrix,
    check_same,
    check_sides,
    check_square,
    failure,
    identity,
    is_recorded,
    nothing,
    optional,
    stretched,
    way_of_matrices,
)
from tensorcore.ops.linalg.triangular import solved
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["lu", "lu_factor", "lu_factor_ex", "lu_solve", "lu_unpack"]

_Factor = return_type("linalg_lu_factor", "LU pivots")
_FactorEx = return_type("linalg_lu_factor_ex", "LU pivots info")
_Lu = return_type("linalg_lu", "P L U")
_Unpacked = return_type("lu_unpack", "P L U")


# Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum
# experimental design" (2010), and de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using
# triangular factorization" (2011), for the square part; the rest of a matrix that is not square is a triangular
# solve with that part's factor.


def _gradient(g: list[Tensor | None], out: tuple[Tensor, ...]) -> Tensor | None:
    if g[0] is None:
        return None
    lu, pivots, _ = out
    rows, columns = lu.native.shape[-2:]
    size = min(rows, columns)
    g_lower, g_upper = g[0].tril(-1), g[0].triu()  # type: ignore[attr-defined]
    lower, upper = lu.tril(-1) + identity(lu, rows, columns), lu.triu()  # type: ignore[attr-defined]
    square_lower, square_upper = lower[..., :size, :size], upper[..., :size, :size]
    from_lower = square_lower.mH @ g_lower[..., :size, :size]
    from_upper = g_upper[..., :size, :size] @ square_upper.mH
    if columns > size:
        from_lower = from_lower - g_upper[..., size:] @ upper[..., size:].mH
    if rows > size:
        from_upper = from_upper - lower[..., size:, :size].mH @ g_lower[..., size:, :size]
    inner = from_lower.tril(-1) + from_upper.triu()
    made = solved(square_upper.mH, inner, upper=False, left=False)
    if columns > size:
        made = cat([made, g_upper[..., size:]], -1)
    made = solved(square_lower.mH, made, upper=True, unitriangular=True)
    if rows > size:
        made = cat([made, solved(square_upper.mH, g_lower[..., size:, :size], upper=False, left=False)], -2)
    return rows_at(made, order_of(pivots, rows).argsort(-1))  # type: ignore[attr-defined]


_factor = Op("lu_factor", "A", "The factors in one matrix, the row swaps, and where a pivot is 0.", register=False,
             backward_name="LinalgLuFactorExBackward0", grads=dict(A=_gradient))  # fmt: skip


def factors_of(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, the swaps, and info; recorded."""
    return apply(_factor, (A,), dtype=(A.dtype, dtypes.int32, dtypes.int32))  # type: ignore[no-any-return]


def _factored(op: str, A: Any, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    check_matrix(op, A)
    if not pivot:
        raise DtypeError(
            f"{op}: LU without pivoting is not implemented on the CPU, got pivot=False; leave it at True, which is accurate"
        )
    return factors_of(A)


def _refuse_zero(op: str, info: Tensor) -> None:
    failed = failure(info)
    if failed is not None:
        raise LinAlgError(
            f"{op}: {failed[0]}expected pivots other than 0, got U[{failed[1]},{failed[1]}] is zero and using it on lu_solve "
            "would result in a division by zero; for the factors alone call linalg.lu or linalg.lu_factor_ex"
        )


@operation(samples=samples.matrices, method=False, name="linalg_lu_factor")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The factors of (..., m, n) in one matrix and the row swaps (counted from 1), as ``(LU, pivots)``.

    Raises for a pivot of 0, which ``lu_factor_ex`` does not.
    """
    made = _factored("linalg.lu_factor", A, pivot)
    _refuse_zero("linalg.lu_factor", made[2])
    made = _Factor(made[0], made[1])
    return made if out is None else stored("linalg.lu_factor", made, out)


@operation(
    samples=samples.matrices, method=False, name="linalg_lu_factor_ex",
    way=way_of_matrices(_factor, LAPACKS, {"pivot": True, "check_errors": False}, untold=("pivot", "check_errors"),
                        result=(None, dtypes.int32, dtypes.int32), answer=_FactorEx),
)  # fmt: skip
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """As ``lu_factor``, with the place of the first zero pivot of each matrix (or 0) as ``(LU, pivots, info)``."""
    made = _factored("linalg.lu_factor_ex", A, pivot)
    if check_errors:
        _refuse_zero("linalg.lu_factor_ex", made[2])
    return _FactorEx(*made) if out is None else stored("linalg.lu_factor_ex", _FactorEx(*made), out)


@operation(samples=samples.matrices, method=False, name="linalg_lu")
def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """``A = P L U`` with a permutation, a unit lower and an upper triangular matrix, as ``(P, L, U)``.

    Shapes: (..., m, n) gives (..., m, m), (..., m, k), (..., k, n) with k = min(m, n).
    """
    made = _unpacked(*_factored("linalg.lu", A, pivot)[:2], True, True)
    return stored("linalg.lu", _Lu(*made), out)


@operation(samples=samples.lu_unpack, method=False)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """``(P, L, U)`` from what ``lu_factor`` gives; tensors without elements for what is not asked for."""
    check_tensors("lu_unpack", LU_data=LU_data, LU_pivots=LU_pivots)
    if LU_data.ndim < 2:
        raise ShapeError(
            f"lu_unpack: The input LU_data must have at least 2 dimensions, got {LU_data!r}; pass lu_factor's"
        )
    if unpack_pivots and not LU_pivots.native.shape:
        raise ShapeError(
            "lu_unpack: expected LU_pivots with a dim at least, got a tensor without; pass those of lu_factor"
        )
    if unpack_pivots:
        _check_swaps("lu_unpack", LU_data, LU_pivots)
        if LU_data.native.shape[:-2] != LU_pivots.native.shape[:-1]:
            batch = rules.broadcast("lu_unpack", batch_of(LU_data), tuple(LU_pivots.native.shape[:-1]))
            LU_pivots = stretched(LU_pivots, batch, 1)
    return stored("lu_unpack", _Unpacked(*_unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)), out)


def _check_swaps(op: str, LU: Tensor, pivots: Any) -> None:
    if pivots.dtype is not dtypes.int32:
        raise DtypeError(
            f"{op}: pivots should be a Tensor of scalar type torch.int32, got {pivots.dtype}; pass those of lu_factor"
        )
    check_pivots(op, pivots, LU.native.shape[-2])


def check_pivots(op: str, pivots: Tensor, rows: int, signed: bool = False) -> None:
    """Raise for a swap with a row that is not there, which would read other memory."""
    if pivots.device.capabilities.values and pivots.numel():
        values = pivots.device.all_values(pivots.native)
        values = abs(values) if signed else values
        few = values.ravel().tolist() if values.size <= 32 else [values.min(), values.max()]
        if min(few) < 1 or max(few) > rows:
            raise ShapeError(
                f"{op}: pivots must be between 1 and LU.size(-2) inclusive, got {int(min(few))} to {int(max(few))} for {rows} "
                "rows; pass the result of lu_factor"
            )


def _unpacked(lu: Tensor, pivots: Tensor, data: bool, swaps: bool) -> tuple[Tensor, Tensor, Tensor]:
    kernel = lu.device.kernels["unpack_lu"] if data and type(lu) is Tensor and not is_recorded(lu) else None
    if kernel:
        made = kernel(lu.native, pivots.native if swaps else None)
        return tuple([lu.new_empty((0,)) if one is None else new_tensor(one, lu.dtype, lu.device) for one in made])  # type: ignore[attr-defined, return-value]
    rows, columns = lu.native.shape[-2:]
    size = min(rows, columns)
    P = L = U = None
    if data:
        L = (lu if columns == size else lu[..., :size]).tril(-1) + identity(lu, rows, size)  # type: ignore[attr-defined]
        U = (lu if rows == size else lu[..., :size, :]).triu()  # type: ignore[attr-defined]
    if swaps:
        order = order_of(pivots, rows)
        if len(order.native.shape) == 1:  # the columns of the identity in that order
            P = identity(lu, rows, rows).index_select(1, order)  # type: ignore[attr-defined]
        else:
            P = (order.unsqueeze(-2) == arange(rows, device=order.device).unsqueeze(-1)).to(lu.dtype)  # type: ignore[attr-defined]
    return tuple([nothing(lu, lu.dtype) if one is None else one for one in (P, L, U)])  # type: ignore[return-value]


_order = Op("unpack_pivots", "pivots", "The order of the rows after all swaps.", register=False)


def order_of(pivots: Tensor, rows: int) -> Tensor:
    """The row of A that each row of ``L U`` is, as int64."""
    return optional(_order, _order_by_swaps, (pivots,), {"rows": rows}, dtypes.int64)  # type: ignore[no-any-return]


def _order_by_swaps(pivots: Tensor, rows: int) -> Tensor:
    made = arange(rows, device=pivots.device).expand((*pivots.native.shape[:-1], rows)).clone()  # type: ignore[attr-defined]
    for i in range(pivots.native.shape[-1]):
        other = pivots[..., i : i + 1].long() - 1
        here, there = made[..., i : i + 1].clone(), made.gather(-1, other)
        made = made.scatter(-1, other, here)
        made[..., i : i + 1] = there
    return made


def rows_at(x: Tensor, order: Tensor) -> Tensor:
    """The rows of each matrix in another order."""
    batch = rules.broadcast("lu_solve", batch_of(x), tuple(order.native.shape[:-1]))
    x, order = stretched(x, batch), stretched(order, batch, 1)
    return x.gather(-2, order.unsqueeze(-1).expand(x.native.shape))  # type: ignore[no-any-return, attr-defined]


# Solutions. ``way`` is N for A, T for its transpose, C for its adjoint.

_ADJOINT = {"N": "C", "C": "N"}


def _solve_by_triangles(LU: Tensor, pivots: Tensor, B: Tensor, way: str) -> Tensor:
    order = order_of(pivots, LU.native.shape[-2])
    if way == "N":
        made = solved(LU, rows_at(B, order), upper=False, unitriangular=True)
        return solved(LU, made, upper=True)
    turned = LU.mT if way == "T" else LU.mH
    made = solved(turned, solved(turned, B, upper=False), upper=True, unitriangular=True)
    return rows_at(made, order.argsort(-1))  # type: ignore[attr-defined]


def _solve_gradient(g: Tensor, LU: Tensor, pivots: Tensor, way: str) -> Tensor:
    if way == "T":  # the adjoint of a transpose is the conjugate
        return from_factors(LU, pivots, g.conj(), "N").conj()  # type: ignore[attr-defined]
    return from_factors(LU, pivots, g, _ADJOINT[way])


_solve = Op("lu_solve", "LU pivots B", "The solutions from the factors.", register=False,
            backward_name="LinalgLuSolveBackward0", grads=dict(B=_solve_gradient))  # fmt: skip


def from_factors(LU: Tensor, pivots: Tensor, B: Tensor, way: str = "N") -> Tensor:
    """The solutions X of A X = B from the factors of A; recorded."""
    if LU.node is not None and is_recorded(LU):
        return _solve_by_triangles(LU, pivots, B, way)
    if type(B) is Tensor and B.device is LU.device and B.device.kernels["lu_solve"]:
        return apply(_solve, (LU, pivots, B), {"way": way}, dtype=B.dtype)  # type: ignore[no-any-return]
    return optional(_solve, _solve_by_triangles, (LU, pivots, B), {"way": way}, B.dtype)  # type: ignore[no-any-return]


@operation(samples=samples.lu_solve, method=False, name="linalg_lu_solve")
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """The solutions X of A X = B (X A = B where not ``left``), from the factors of A; with its adjoint on demand.

    Shapes: LU (..., n, n), pivots (..., n), B (..., n, k) or (..., k, n).
    """
    op = "linalg.lu_solve"
    shape = check_square(op, LU, "LU")
    wide = check_matrix(op, B, "B")
    check_same(op, LU, B, ("LU", "B"))
    check_tensors(op, pivots=pivots)
    if tuple(pivots.native.shape) != shape[:-1]:
        raise ShapeError(
            f"{op}: Number of pivots per batch should be same as the dimension of the matrix, got {list(pivots.shape)} for "
            f"{list(shape)}; pass those of lu_factor"
        )
    _check_swaps(op, LU, pivots)
    check_sides(op, shape, wide, left)
    if left:
        made = from_factors(LU, pivots, B, "C" if adjoint else "N")
    elif adjoint:  # X A^H = B is A X^H = B^H
        made = from_factors(LU, pivots, B.mH, "N").mH
    else:  # X A = B is A^T X^T = B^T
        made = from_factors(LU, pivots, B.mT, "T").mT
    return stored(op, made, out)  # type: ignore[no-any-return]
