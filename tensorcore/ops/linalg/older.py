"""Matrix functions under their older names and signatures, beside those of ``linalg``."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import UsageError
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.cholesky import factored
from tensorcore.ops.linalg.lu import lu_factor_ex
from tensorcore.ops.linalg.lu import lu_solve as _lu_solve
from tensorcore.ops.linalg.matrices import check_matrix, check_same, check_sides, check_square, stretched
from tensorcore.ops.linalg.matrix_norm import matrix_norm
from tensorcore.ops.linalg.qr import qr as _qr
from tensorcore.ops.linalg.svd import decomposed, pseudo_inverse
from tensorcore.ops.linalg.triangular import solved
from tensorcore.ops.reductions.reduce import Dims, over_dims, return_type, stored
from tensorcore.ops.reductions.statistics import vector_norm
from tensorcore.ops.samples import linalg as samples
from tensorcore.ops.samples import norm as norms
from tensorcore.ops.shapes.order import transpose as swapped
from tensorcore.tensor import Tensor

__all__ = ["cholesky", "lu", "lu_solve", "norm", "pinverse", "qr", "svd", "triangular_solve"]

_Qr, _Svd = return_type("qr", "Q R"), return_type("svd", "U S V")
_Triangular = return_type("triangular_solve", "solution cloned_coefficient")


@operation(samples=samples.positive_old)
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """As ``linalg.cholesky``."""
    made = factored("cholesky", input, upper)[0]
    return made if out is None else stored("cholesky", made, out)  # type: ignore[no-any-return]


@operation(samples=samples.qr_old)
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """``linalg.qr`` with mode ``reduced``, or ``complete`` where not ``some``."""
    made = _Qr(*_qr(input, "reduced" if some else "complete"))
    return made if out is None else stored("qr", made, out)


@operation(samples=samples.svd_old)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """As ``linalg.svd``, with V itself as ``(U, S, V)``; zeros for U and V where they are not computed."""
    rows, columns = check_matrix("svd", input, "input")[-2:]
    if compute_uv:
        s, u, vh = decomposed("svd", input, not some)
        made = _Svd(u, s, vh.mH)
    else:
        batch = tuple(input.native.shape[:-2])
        s = decomposed("svd", input, vectors=False)[0]
        made = _Svd(
            input.detach().new_zeros((*batch, rows, rows)),
            s,
            input.detach().new_zeros((*batch, columns, columns)),  # type: ignore[attr-defined]
        )
    return stored("svd", made, out)


@operation(samples=samples.lu_old)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, *, out: Any = None) -> Any:
    """The factors in one matrix and the row swaps as ``(LU, pivots)``, and the place of a zero pivot with ``get_infos``."""
    made = tuple(lu_factor_ex(A, pivot=pivot))[: 3 if get_infos else 2]
    if out is None:
        return made
    return stored("lu", made, out)


@operation(samples=samples.lu_solve_old)
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The solutions X of A X = b from the factors of A; see ``linalg.lu_solve``."""
    return _lu_solve(LU_data, LU_pivots, b, out=out)


@operation(samples=samples.triangular_solve)
def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *,
                     out: Any = None) -> Any:  # fmt: skip
    """The solutions X of A X = b for triangular A (its transpose on demand), and a copy of A, as a pair."""
    op = "triangular_solve"
    wide, shape = check_matrix(op, b, "b"), check_square(op, A)
    check_same(op, b, A, ("b", "A"))
    batch = check_sides(op, shape, wide)
    turned = swapped(A, -2, -1) if transpose else A
    made = solved(turned, b, upper=upper != transpose, unitriangular=unitriangular)
    whole: Any = A if batch == shape[:-2] else stretched(A, batch)
    copy = whole.contiguous()
    found = _Triangular(made, copy.clone() if copy is whole else copy)
    return found if out is None else stored(op, found, out)


@operation(samples=samples.pinverse)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """As ``linalg.pinv`` with another default of ``rtol``."""
    check_matrix("linalg.pinv", input)
    return pseudo_inverse("linalg.pinv", input, None, rcond, False)


@over_dims(samples=norms)
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """The p-norm of the elements along ``dim``, or of all; ``"fro"`` is the 2-norm over any number of dims.

    ``"nuc"`` is the nuclear norm of the matrices in two dims, the last two where ``dim`` is None.
    """
    if p == "nuc":
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    if isinstance(p, str):
        if p != "fro":
            raise UsageError(f"norm: expected p to be a number or 'fro', got {p!r}; linalg.matrix_norm has others")
        p = 2
    return vector_norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype, out=out)
