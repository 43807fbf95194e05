"""The QR decomposition, Householder's reflections, and products with them."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentTypeError, GradientError, ShapeError, UsageError
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op, without_derivative
from tensorcore.ops.fused import Fused
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.matrices import check_matrix, check_same, identity, is_recorded, nothing, twin
from tensorcore.ops.linalg.triangular import solved
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["geqrf", "householder_product", "orgqr", "ormqr", "qr"]

_Qr, _Geqrf = return_type("linalg_qr", "Q R"), return_type("geqrf", "a tau")

_geqrf = Op("geqrf", "input", "R and Householder's vectors in one matrix, and their factors.", register=False,
            grads=dict(input=without_derivative("geqrf")))  # fmt: skip


@operation(samples=samples.matrices)
def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """R on and above the diagonal and the vectors of Householder's reflections below it, and their factors, as ``(a, tau)``.

    Shapes: (..., m, n) gives (..., m, n) and (..., min(m, n)).
    """
    check_matrix("geqrf", input, "input")
    made = _Geqrf(*apply(_geqrf, (input,)))
    return made if out is None else stored("geqrf", made, out)


# Products of reflections I - tau v v^H, where v has a 1 on the diagonal and the vectors of ``a`` below it.
# Schreiber and Van Loan, "A storage-efficient WY representation for products of Householder transformations" (1989): the product of
# all is I - V T V^H, and T the inverse of diag(1 / tau) + what V^H V has above its diagonal. That holds for any tau.


def _reflected(a: Tensor, tau: Tensor, c: Tensor, left: bool, transpose: bool) -> Tensor:
    """The product with all reflections at once."""
    rows, count = a.native.shape[-2], tau.native.shape[-1]
    vectors = a[..., :count].tril(-1) + identity(a, rows, count)
    if left:
        return c - _blocked(vectors, tau, vectors.mH @ c, transpose)
    return c - _blocked(vectors, tau, (c @ vectors).mH, not transpose).mH  # type: ignore[no-any-return]


def _blocked(vectors: Tensor, tau: Tensor, x: Tensor, adjoint: bool) -> Tensor:
    """V T x, or V T^H x, by the triangle diag(tau) T^-1, whose diagonal is 1: no tau is divided by."""
    factors = tau.unsqueeze(-1)  # type: ignore[attr-defined]
    triangle = factors * (vectors.mH @ vectors)
    if adjoint:
        return vectors @ (factors.conj() * solved(triangle.mH, x, upper=False, unitriangular=True))
    return vectors @ solved(triangle, factors * x, upper=True, unitriangular=True)  # type: ignore[no-any-return]


def _whole(a: Tensor, tau: Tensor) -> Tensor:
    rows, columns = a.native.shape[-2:]
    unit = identity(a, rows, columns)
    vectors = a[..., : tau.native.shape[-1]].tril(-1) + unit[:, : tau.native.shape[-1]]
    return unit - _blocked(vectors, tau, vectors.mH[..., :columns], False)  # type: ignore[no-any-return]


_product = Fused("householder_product", "input tau", "The product of Householder's reflections.", _whole,
                 backward_name="LinalgHouseholderProductBackward0")  # fmt: skip
_ormqr = Fused("ormqr", "input tau other", "A product with Householder's reflections.",
               lambda input, tau, other, left, transpose: _reflected(input, tau, other, left, transpose))  # fmt: skip


def _check_reflections(op: str, A: Any, tau: Any) -> tuple[int, ...]:
    shape = check_matrix(op, A, "input")
    if not isinstance(tau, Tensor):
        raise ArgumentTypeError(f"{op}: expected tau to be a Tensor, got {type(tau).__name__}; pass that of geqrf")
    check_same(op, A, tau, ("input", "tau"))
    if len(tau.native.shape) != len(shape) - 1 or tuple(tau.native.shape[:-1]) != shape[:-2]:
        raise ShapeError(
            f"{op}: Expected tau to have one dimension less than input and the same batch, got {list(tau.shape)} for "
            f"{list(shape)}; pass that of geqrf"
        )
    return shape


@operation(samples=samples.householder, method=False, name="linalg_householder_product")
def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of a product of k Householder reflections, as ``geqrf`` gives them.

    Shapes: (..., m, n) and (..., k) with m >= n >= k give (..., m, n).
    """
    op = "linalg.householder_product"
    shape = _check_reflections(op, input, tau)
    if shape[-2] < shape[-1] or tau.native.shape[-1] > shape[-1]:
        raise ShapeError(
            f"{op}: input.shape[-2] must be greater than or equal to input.shape[-1], which must be greater than or equal to "
            f"tau.shape[-1], got {list(shape)} and {list(tau.shape)}; cut off columns"
        )
    return stored(op, _product((input, tau), {}), out)  # type: ignore[no-any-return]


@operation(samples=samples.householder)
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Another name of ``linalg.householder_product``."""
    return householder_product(input, input2, out=out)


@operation(samples=samples.ormqr)
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False, *,
          out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The product of Q (its adjoint with ``transpose``) and ``input3`` (``input3`` and Q where not ``left``).

    Q is the whole square matrix that the reflections in ``input`` and their factors ``input2`` stand for.
    """
    shape = _check_reflections("ormqr", input, input2)
    wide = check_matrix("ormqr", input3, "other")
    check_same("ormqr", input, input3, ("input", "other"))
    side = -2 if left else -1
    if wide[:-2] != shape[:-2] or wide[side] != shape[-2]:
        raise ShapeError(
            f"ormqr: other.shape[{side}] must be equal to input.shape[-2] and the batches the same, got {list(wide)} and "
            f"{list(shape)}; transpose one"
        )
    if input2.native.shape[-1] != min(shape[-2:]):
        raise ShapeError(
            f"ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1]), got "
            f"{input2.native.shape[-1]} for {list(shape)}; pass that of geqrf"
        )
    made = _ormqr((input, input2, input3), {"left": bool(left), "transpose": bool(transpose)})
    return stored("ormqr", made, out)  # type: ignore[no-any-return]


# QR. Walter and Lehmann (2010); complex and wide ones: Roberts and Roberts, "QR and LQ decomposition matrix
# backpropagation algorithms for square, wide, and deep matrices" (2020).


def _gradient(g: list[Tensor | None], A: Tensor, out: tuple[Tensor, ...], mode: str) -> Tensor | None:
    q, r = out
    gq, gr = g
    if gq is None and gr is None:
        return None
    if mode == "r":
        raise GradientError(
            "linalg.qr: The derivative depends on Q, which is not computed with mode='r', got a backward walk through it; use "
            "mode='reduced'"
        )
    rows, columns = A.native.shape[-2:]
    if mode == "complete" and rows > columns:
        raise GradientError(
            f"linalg.qr: The derivative is not implemented with mode='complete' for more rows than columns, got {rows} by "
            f"{columns}; use mode='reduced'"
        )
    if rows >= columns:
        return _tall_gradient(gq, gr, q, r)
    # A = [X | Y], with X = Q U square and Y = Q V.
    rest = None if gr is None else gr[..., rows:]
    if rest is not None:
        gq = A[..., rows:] @ rest.mH if gq is None else gq + A[..., rows:] @ rest.mH
    made = _tall_gradient(gq, None if gr is None else gr[..., :rows], q, r[..., :rows])
    beside = A.new_zeros((*A.native.shape[:-1], columns - rows)) if rest is None else q @ rest  # type: ignore[attr-defined]
    return cat([made, beside], -1)


def _tall_gradient(gq: Tensor | None, gr: Tensor | None, q: Tensor, r: Tensor) -> Tensor:
    inner: Any = 0.0
    if gr is not None:
        inner = gr @ r.mH
    if gq is not None:
        inner = inner - q.mH @ gq
    inner = inner.triu()
    size = r.native.shape[-1]
    halves = 1.0 - 0.5 * identity(r.real if r.dtype.is_complex else r, size)  # type: ignore[attr-defined]
    inner = (inner + inner.mH) * halves
    made = q @ inner if gq is None else gq + q @ inner
    return solved(r.mH, made, upper=False, left=False)


_qr = Op("linalg_qr", "A", "Orthonormal columns and a triangle.", register=False, grads=dict(A=_gradient))


@operation(samples=samples.qr, method=False, name="linalg_qr")
def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """``A = Q R`` with orthonormal columns of Q and an upper triangle R, as ``(Q, R)``, by Householder's reflections.

    Shapes: (..., m, n) gives (..., m, k) and (..., k, n), where k = min(m, n) for ``reduced`` and m for ``complete``; for
    ``r`` Q has no elements and k = min(m, n). The signs of R's diagonal are LAPACK's.
    """
    rows, columns = check_matrix("linalg.qr", A)[-2:]
    if mode not in ("reduced", "complete", "r"):
        raise UsageError(
            f"linalg.qr: unrecognized mode, expected one of 'reduced' (default), 'r', or 'complete', got {mode!r}"
        )
    if mode != "r" and type(A) is Tensor and A.device.kernels["qr"] and rows and columns:
        native = A.device.kernels["qr"](A.native, complete=mode == "complete")
        made = [new_tensor(one, A.dtype, A.device) for one in native]
        if A.node is not None and is_recorded(A):
            record(_qr, (A,), {"mode": mode}, made)
        return _Qr(*made) if out is None else stored("linalg.qr", _Qr(*made), out)
    if mode == "r" and type(A) is Tensor and A.device.kernels["qr_triangle"] and rows and columns:
        triangle = new_tensor(A.device.kernels["qr_triangle"](A.native), A.dtype, A.device)
        made = [nothing(A, A.dtype), triangle]
        if A.node is not None and is_recorded(A):
            record(_qr, (A,), {"mode": mode}, made)
        return _Qr(*made) if out is None else stored("linalg.qr", _Qr(*made), out)
    a, tau = apply(_geqrf, (twin(A),))
    size = min(rows, columns)
    if mode == "r":
        made = [a.new_empty((0,)), a[..., :size, :].triu()]
    elif mode == "reduced" or rows <= columns:
        made = [_product((a[..., :size], tau), {}), a[..., :size, :].triu()]
    else:
        wide = cat([a, a.new_zeros((*a.native.shape[:-1], rows - columns))], -1)
        made = [_product((wide, tau), {}), a.triu()]
    if is_recorded(A):
        record(_qr, (A,), {"mode": mode}, made)
    return stored("linalg.qr", _Qr(*made), out)
