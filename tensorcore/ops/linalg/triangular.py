"""Solutions of triangular systems."""

from __future__ import annotations

from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.matrices import check_matrix, check_same, check_sides, check_square
from tensorcore.ops.reductions.reduce import stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.tensor import Tensor

__all__ = ["solve_triangular"]


# Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008), 2.3.1.


def _right(g: Tensor, A: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    return solved(A.mH, g, upper=not upper, left=left, unitriangular=unitriangular)


def _factor(g: Tensor, A: Tensor, out: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    right = _right(g, A, upper, left, unitriangular)
    made = -(right @ out.mH) if left else -(out.mH @ right)
    return made.triu(int(unitriangular)) if upper else made.tril(-int(unitriangular))  # type: ignore[no-any-return, attr-defined]


_op = Op("solve_triangular", "A B", "The solutions of triangular systems.", register=False,
         backward_name="LinalgSolveTriangularBackward0", grads=dict(A=_factor, B=_right))  # fmt: skip


def solved(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """As ``solve_triangular``, of tensors that fit."""
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    return apply(_op, (A, B), options)  # type: ignore[no-any-return]


@operation(samples=samples.solve_triangular, method=False, name="linalg_solve_triangular")
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False,
                     out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The solutions X of A X = B (X A = B where not ``left``) for triangular A, whose other triangle is not read.

    Shapes: A (..., n, n), B (..., n, k) or (..., k, n); batches broadcast.

    Args:
        unitriangular: take the diagonal as ones without reading it.
    """
    op = "linalg.solve_triangular"
    shape = check_square(op, A)
    wide = check_matrix(op, B, "B")
    check_same(op, A, B)
    check_sides(op, shape, wide, left)
    made = apply(_op, (A, B), {"upper": bool(upper), "left": bool(left), "unitriangular": bool(unitriangular)})
    return made if out is None else stored(op, made, out)  # type: ignore[no-any-return]
