"""Determinants, their signs and logarithms."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.ops.define import Op
from tensorcore.ops.fused import differentiate
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.lu import factors_of, from_factors
from tensorcore.ops.linalg.matrices import check_square, identity, is_recorded, twin
from tensorcore.ops.linalg.solve import inverted
from tensorcore.ops.linalg.svd import decomposed
from tensorcore.ops.operands import anywhere
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["det", "logdet", "slogdet"]

_Slogdet = return_type("linalg_slogdet", "sign logabsdet")


def _factors(lu: Tensor, pivots: Tensor) -> Tensor:
    """Numbers whose product is the determinant: the diagonal of U, with a change of sign for each row swapped."""
    size = pivots.native.shape[-1]
    unmoved = new_tensor(lu.device.kernels["arange"](1, 1, size, dtype=dtypes.int32), dtypes.int32, lu.device)
    return lu.diagonal(0, -2, -1) * where(pivots == unmoved, 1.0, -1.0)  # type: ignore[no-any-return, attr-defined]


def _gradient(g: Tensor, A: Tensor, factors: tuple[Tensor, Tensor]) -> Tensor:
    """The adjoint of the adjugate: ``det * inverse`` where there is an inverse (Giles 2008, 2.2.4)."""
    lu, pivots = factors
    sizes = lu.diagonal(0, -2, -1).abs()  # type: ignore[attr-defined]
    eps = dtypes.finfo(A.dtype).eps
    if sizes.numel() and anywhere(sizes.amin(-1) <= 8 * eps * sizes.amax(-1)):
        if is_recorded(A):
            return differentiate(_without_division, (A,), g)[0]  # type: ignore[no-any-return]
        return _column(g) * _cofactors(twin(A))
    if not mode.enabled:
        weights = _column(g * _factors(lu, pivots).prod(-1).conj())  # type: ignore[attr-defined]
        return from_factors(lu, pivots, weights * identity(lu, lu.native.shape[-1]), "C")
    made = inverted(A)[0].mH
    return _column(g * det(A).conj()) * made  # type: ignore[attr-defined]


def _column(x: Tensor) -> Tensor:
    return x.unsqueeze(-1).unsqueeze(-1)  # type: ignore[no-any-return, attr-defined]


def _cofactors(A: Tensor) -> Tensor:
    """The conjugates of all cofactors, of singular matrices too: those of the singular values between both sides."""
    s, u, vh = decomposed("linalg.det", A)
    n = s.native.shape[-1]
    # The product of all values but each one.
    others = s.unsqueeze(-2).expand((*s.native.shape, n)).masked_fill(identity(s, n).bool(), 1.0).prod(-1)  # type: ignore[attr-defined]
    phase = (det(u) * det(vh)).conj()
    return _column(phase) * ((u * others.unsqueeze(-2)) @ vh)  # type: ignore[no-any-return]


def _without_division(A: Tensor) -> Tensor:
    """The determinant by sums and products alone, whose derivatives of any order hold for singular matrices too.

    Berkowitz, "On computing the determinant in small parallel time using a small number of processors" (1984): the
    characteristic polynomial as a product of Toeplitz matrices.
    """
    n = A.native.shape[-1]
    batch = tuple(A.native.shape[:-2])
    poly = A.new_ones((*batch, 1))  # type: ignore[attr-defined]
    for k in range(n - 1, -1, -1):
        row, column, rest = A[..., k : k + 1, k + 1 :], A[..., k + 1 :, k : k + 1], A[..., k + 1 :, k + 1 :]
        terms = [A.new_ones((*batch, 1)), -A[..., k, k : k + 1]]  # type: ignore[attr-defined]
        for _ in range(n - k - 1):
            terms.append(-(row @ column).squeeze(-1))
            column = rest @ column
        first = cat(terms, -1)
        # The Toeplitz matrix of these coefficients times the polynomial so far: a product of polynomials, cut off.
        made = [
            sum(
                (first[..., i - j] * poly[..., j] for j in range(1, min(i, n - k - 1) + 1)),
                first[..., i] * poly[..., 0],
            )
            for i in range(n - k + 1)
        ]
        poly = stack(made, -1)
    return poly[..., n] * (-1) ** n


_det = Op("linalg_det", "A", "The determinant of each matrix.", register=False, grads=dict(A=_gradient))


@operation(samples=samples.square)
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of each matrix (..., n, n), by its LU factorisation; its gradient holds for singular ones too."""
    check_square("linalg.det", A)
    lu, pivots, _ = factors_of(A if A.node is None else twin(A))
    kernel = A.device.kernels["determinant"]
    if kernel and type(lu) is Tensor:
        made = new_tensor(kernel(lu.native, pivots.native), A.dtype, A.device)
    else:
        made = _factors(lu, pivots).prod(-1)
    if A.node is not None and is_recorded(A):
        record(_det, (A,), {"factors": (lu, pivots)}, made)
    return stored("linalg.det", made, out)  # type: ignore[no-any-return]


def _log_gradient(g: list[Tensor | None], A: Tensor, out: tuple[Tensor, ...], factors: Any) -> Tensor | None:
    weight = g[1]
    if A.dtype.is_complex and g[0] is not None:
        # The sign turns with the imaginary part of the logarithm's derivative.
        turn = (g[0].conj() * out[0]).imag  # type: ignore[attr-defined]
        weight = turn * -1j if weight is None else weight - turn * 1j
    if weight is None:
        return None
    if is_recorded(A):
        return _column(weight) * inverted(A)[0].mH
    lu, pivots = factors
    return from_factors(lu, pivots, _column(weight) * identity(lu, lu.native.shape[-1]), "C")


_slogdet = Op("linalg_slogdet", "A", "Sign and logarithm of the determinant.", register=False,
              grads=dict(A=_log_gradient))  # fmt: skip


def _signed(op: str, A: Tensor) -> Any:
    check_square(op, A)
    lu, pivots, _ = factors_of(A if A.node is None else twin(A))
    kernel = A.device.kernels["log_determinant"]
    if kernel and type(lu) is Tensor:
        sign, size = kernel(lu.native, pivots.native)
        made = [new_tensor(sign, A.dtype, A.device), new_tensor(size, A.dtype.to_real(), A.device)]
    else:
        factors = _factors(lu, pivots)
        made = [factors.sgn().prod(-1), factors.abs().log().sum(-1)]  # type: ignore[attr-defined]
    if A.node is not None and is_recorded(A):
        record(_slogdet, (A,), {"factors": (lu, pivots)}, made)
    return _Slogdet(*made)


@operation(samples=samples.square)
def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """The sign (or phase) of the determinant and the logarithm of its size, as ``(sign, logabsdet)``."""
    return stored("linalg.slogdet", _signed("linalg.slogdet", A), out)


@operation(samples=samples.square)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where that is negative, -inf where it is 0."""
    sign, size = _signed("logdet", input)
    return size + sign.log()  # type: ignore[no-any-return]
