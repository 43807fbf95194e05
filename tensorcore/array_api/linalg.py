"""Linear algebra under the standard's names."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import tensorcore
from tensorcore import linalg as _linalg
from tensorcore.array_api.promotion import array, pair, promoted
from tensorcore.array_api.reductions import sum as _sum
from tensorcore.errors import ArgumentError
from tensorcore.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    """What :func:`eigh` and :func:`eig` give."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What :func:`qr` gives."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What :func:`svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of vectors, matrices, or batches of matrices."""
    return tensorcore.matmul(*pair(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over the last and first ``axes`` axes, or over named ones of each array."""
    a, b = pair(x1, x2)
    return tensorcore.tensordot(a, b, axes if isinstance(axes, int) else tuple(map(list, axes)))  # type: ignore[no-any-return]


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum along an axis of the products, those of ``x1`` conjugated."""
    a, b = pair(x1, x2)
    if not -min(a.ndim, b.ndim) <= axis < 0:
        raise ArgumentError(
            f"vecdot: expected axis within [-{min(a.ndim, b.ndim)}, -1], got {axis}; count from the end"
        )
    if a.shape[axis] != b.shape[axis]:
        raise ArgumentError(f"vecdot: expected vectors of one size, got {a.shape[axis]} and {b.shape[axis]}")
    return _sum(a.conj() * b, axis=axis, dtype=a.dtype)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes swapped."""
    return array("matrix_transpose", x).mT  # type: ignore[attr-defined, no-any-return]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive-definite matrices."""
    return _linalg.cholesky(array("cholesky", x), upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis."""
    a, b = tensorcore.broadcast_tensors(*pair(x1, x2))
    return _linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix."""
    return _linalg.det(array("det", x))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of each matrix, ``offset`` above the main one."""
    return tensorcore.diagonal(array("diagonal", x), offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*_linalg.eigh(array("eigh", x)))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of Hermitian matrices."""
    return _linalg.eigvalsh(array("eigvalsh", x))


def eig(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of square matrices, as complex numbers."""
    return EighResult(*_linalg.eig(array("eig", x)))


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of square matrices, as complex numbers."""
    return _linalg.eigvals(array("eigvals", x))


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix."""
    return _linalg.inv(array("inv", x))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of each matrix: ``fro``, ``nuc``, 1, 2, infinity, or the smallest such with a minus."""
    return _linalg.matrix_norm(array("matrix_norm", x), ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Each matrix multiplied with itself."""
    return _linalg.matrix_power(array("matrix_power", x), n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values of each matrix are over ``rtol`` times the largest."""
    return _linalg.matrix_rank(array("matrix_rank", x), rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of the elements of two vectors."""
    return tensorcore.outer(*pair(x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of each matrix; singular values up to ``rtol`` times the largest count as zero."""
    return _linalg.pinv(array("pinv", x), rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal columns and an upper triangular factor of each matrix."""
    return QRResult(*_linalg.qr(array("qr", x), mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of each matrix's determinant, and the logarithm of its size."""
    return SlogdetResult(*_linalg.slogdet(array("slogdet", x)))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What ``x1`` must be multiplied with to give ``x2``, a vector where it has one dim and else matrices."""
    a, b = promoted(x1, x2)
    if b.ndim == 1:
        return _linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)  # type: ignore[attr-defined, no-any-return]
    batch = tensorcore.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _linalg.solve(a, b.expand((*batch, *b.shape[-2:])))  # type: ignore[attr-defined, no-any-return]


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular vectors and values of each matrix."""
    return SVDResult(*_linalg.svd(array("svd", x), full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix."""
    return _linalg.svdvals(array("svdvals", x))


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of each matrix."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """A norm of the elements, of all or along axes."""
    if axis == ():
        made = array("vector_norm", x).abs()  # type: ignore[attr-defined]
        return (made != 0).to(made.dtype) if ord == 0 else made  # type: ignore[no-any-return]
    return _linalg.vector_norm(array("vector_norm", x), inf if ord == inf else ord, axis, keepdims)
