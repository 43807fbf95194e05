"""Norms of matrices, and what is told by their singular values: condition, rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DimensionError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.eigen import eigvalsh
from tensorcore.ops.linalg.matrices import LAPACKS, check_matrix, check_square, is_recorded, twin
from tensorcore.ops.linalg.solve import inverted
from tensorcore.ops.linalg.svd import decomposed, svdvals, tolerances
from tensorcore.ops.operands import anywhere, plain
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.reduce import Dims, over_dims, stored
from tensorcore.ops.reductions.statistics import as_dtype, vector_norm
from tensorcore.ops.samples import linalg as samples
from tensorcore.tensor import Tensor

__all__ = ["cond", "frobenius_norm", "matrix_norm", "matrix_rank", "norm", "nuclear_norm"]

_OF_VALUES = ("nuc", 2, -2)
_SIMPLE = ("fro", 1, -1, inf, -inf)
_ORDERS = (*_SIMPLE, *_OF_VALUES)
_KINDS = (str, int, float)


def _reduced(op: str, x: Tensor, dim: int, smallest: bool, keepdim: bool = False) -> Tensor:
    """The largest number along a dim, 0 of none; or the smallest, of none an error."""
    if x.native.shape[dim]:
        return x.amin(dim, keepdim) if smallest else x.amax(dim, keepdim)  # type: ignore[no-any-return, attr-defined]
    if smallest:
        raise DimensionError(f"{op}: Expected reduction dim {dim} to have non-zero size, got 0; use another ord")
    return x.sum(dim, keepdim)  # type: ignore[no-any-return, attr-defined]


@over_dims(samples=samples.matrix_norm, method=False, name="linalg_matrix_norm")
def matrix_norm(A: Tensor, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None,
                out: Tensor | None = None) -> Tensor:  # fmt: skip
    """A norm of the matrices in two dims.

    Args:
        ord: ``fro`` the root of the sum of squares, ``nuc`` the sum of the singular values, 2 and -2 the largest and
            the smallest of these, 1 and -1 the largest and smallest sum of a column's sizes, inf and -inf of a row's.
    """
    usual = type(ord) in _KINDS and ord in _SIMPLE and type(A) is Tensor and A.dtype in LAPACKS
    if usual and dtype is out is None and type(dim) is tuple and len(dim) == 2:
        ndim, (rows, columns) = len(A.native.shape), dim
        if (
            type(rows) is int is type(columns)
            and -ndim <= rows < ndim
            and -ndim <= columns < ndim
            and (rows - columns) % ndim
        ):
            if ord != "fro":
                return _of_sums("linalg.matrix_norm", A, ord, rows % ndim, columns % ndim, keepdim)
            return vector_norm(A) if ndim == 2 and not keepdim else vector_norm(A, 2, dim, keepdim)  # type: ignore[no-any-return]
    return stored("linalg.matrix_norm", _matrix_norm("linalg.matrix_norm", A, ord, dim, keepdim, dtype), out)  # type: ignore[no-any-return]


def _of_sums(op: str, A: Tensor, ord: float, rows: int, columns: int, keepdim: bool) -> Tensor:
    """The largest or smallest sum of a column's sizes, or of a row's."""
    along, over = (rows, columns) if ord in (1, -1) else (columns, rows)
    return _reduced(op, vector_norm(A, 1, along, keepdim), over - (along < over and not keepdim), ord < 0, keepdim)


def _matrix_norm(op: str, A: Tensor, ord: Any, dim: Sequence[int], keepdim: bool, dtype: Any = None) -> Tensor:
    shape = check_matrix(op, A, narrow=True)
    ord = plain(ord)
    if not isinstance(ord, (str, int, float)) or isinstance(ord, bool):
        raise ArgumentTypeError(
            f"{op}: expected ord to be a number or a str, got {ord!r}; pass 'fro', 'nuc', 1, 2 or inf"
        )
    if not isinstance(dim, (tuple, list)):
        raise ArgumentTypeError(f"{op}: expected dim to be a tuple of 2 ints, got {dim!r}; vector_norm takes one")
    if len(dim) != 2:
        raise ShapeError(f"{op}: dim must be a 2-tuple, got {len(dim)}: {tuple(dim)}; vector_norm takes other numbers")
    rows, columns = (rules.wrap_dim(op, one, len(shape)) for one in dim)
    if rows == columns:
        raise ShapeError(f"{op}: dims must be different, got {tuple(dim)}; name two")
    if ord not in _ORDERS:
        raise ShapeError(
            f"{op}: Order {ord} not supported, got ord={ord!r}; pass 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        )
    A = as_dtype(op, A, dtype)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in _OF_VALUES:
        check_matrix(op, A)
        if (rows, columns) != (len(shape) - 2, len(shape) - 1):
            rest = [i for i in range(len(shape)) if i not in (rows, columns)]
            A = A.permute(*rest, rows, columns)  # type: ignore[attr-defined]
        values = decomposed("linalg.svd", A, vectors=False)[0]
        made = values.sum(-1) if ord == "nuc" else _reduced(op, values, -1, ord < 0)  # type: ignore[attr-defined]
    else:
        return _of_sums(op, A, ord, rows, columns, keepdim)
    return made.reshape(rules.reduced(shape, (rows, columns), True)) if keepdim else made  # type: ignore[no-any-return]


@over_dims(samples=samples.norm, method=False, name="linalg_norm")
def norm(A: Tensor, ord: Any = None, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None,
         dtype: Any = None) -> Tensor:  # fmt: skip
    """``vector_norm`` or ``matrix_norm``, as ``ord`` and the number of dims tell.

    Without ``ord`` the 2-norm of all elements or along ``dim``; with one, a matrix norm over two dims (of a matrix, or
    those named), a vector norm along one. ``fro`` and ``nuc`` are matrix norms.
    """
    op = "linalg.norm"
    plain_vector = type(ord) in (int, float) and type(A) is Tensor and len(A.native.shape) == 1
    if plain_vector and dim is dtype is out is None:
        return vector_norm(A, ord, None, keepdim)  # type: ignore[no-any-return]
    if not isinstance(A, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'input' to be a Tensor, got {A!r}; wrap it in torch.tensor(...)"
        )
    dim = plain(dim)
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None and ord is not None and A.ndim not in (1, 2):
        raise ShapeError(
            f"{op}: If dim is not specified but ord is, the input must be 1D or 2D, got {A.ndim}D; name dim"
        )
    if isinstance(ord, str):
        return stored(op, _matrix_norm("linalg.matrix_norm", A, ord, dims or (-2, -1), keepdim, dtype), out)  # type: ignore[no-any-return]
    if dims is not None and ord is not None and len(dims) not in (1, 2):
        raise ShapeError(f"{op}: If dim is specified, it must be of length 1 or 2, got {list(dims)}; use vector_norm")
    if ord is not None and (len(dims) == 2 if dims is not None else A.ndim == 2):
        return stored(op, _matrix_norm("linalg.matrix_norm", A, ord, dims or (0, 1), keepdim, dtype), out)  # type: ignore[no-any-return, arg-type]
    return stored(op, vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype), out)  # type: ignore[no-any-return]


@operation(samples=samples.nuclear_norm, method=False)
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values of the matrices in two dims, the last two where none are named."""
    if isinstance(dim, bool):  # the form nuclear_norm(input, keepdim)
        dim, keepdim = None, dim
    dim = (dim, dim) if isinstance(dim, int) else dim
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, out=out)


@operation(samples=samples.frobenius_norm, method=False)
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The root of the sum of squares along one or two dims."""
    if type(dim) is int:
        return vector_norm(input, 2, dim, keepdim, out=out)
    dim = plain(dim)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise ShapeError(f"frobenius_norm: Expected at most 2 dimensions, got {len(dims)}; use linalg.vector_norm")
    return vector_norm(input, 2, dims, keepdim, out=out)


@operation(samples=samples.cond, method=False, name="linalg_cond")
def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition of each matrix: its norm times that of its inverse, infinite where there is none.

    ``p`` is an ``ord`` of ``matrix_norm``. For None and 2 it is the largest singular value over the smallest, for -2 the
    smallest over the largest; only these take matrices that are not square.
    """
    op, p = "linalg.cond", plain(p)
    shape = check_matrix(op, A)
    if p is not None and p not in _ORDERS:
        if isinstance(p, str):
            check_square(f"{op}(ord={p})", A)
        raise ShapeError(f"{op}: got an invalid norm type: {p!r}; pass None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    if p in (None, 2, -2):
        if not prod(shape[-2:]):
            return stored(op, A.real.new_zeros(shape[:-2]) if A.dtype.is_complex else A.new_zeros(shape[:-2]), out)  # type: ignore[no-any-return, attr-defined]
        values = svdvals(A)
        first, last = values.select(-1, 0), values.select(-1, -1)  # type: ignore[attr-defined]
        return stored(op, last / first if p == -2 else first / last, out)  # type: ignore[no-any-return]
    check_square(f"{op}(ord={p})", A)
    if not prod(shape[-2:]):
        return stored(op, A.abs().sum((-2, -1)), out)  # type: ignore[no-any-return, attr-defined]
    other, info = inverted(A)
    singular = info != 0
    if not is_recorded(A) and not anywhere(singular):
        made = _matrix_norm(op, A, p, (-2, -1), False) * _matrix_norm(op, other, p, (-2, -1), False)
        return made if out is None else stored(op, made, out)  # type: ignore[no-any-return]
    column = singular.unsqueeze(-1).unsqueeze(-1)  # type: ignore[attr-defined]
    made = _matrix_norm(op, A, p, (-2, -1), False) * _matrix_norm(op, where(column, 0.0, other), p, (-2, -1), False)
    return stored(op, where(singular, inf, made), out)  # type: ignore[no-any-return]


@operation(samples=samples.matrix_rank, method=False, name="linalg_matrix_rank")
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None,
                out: Tensor | None = None) -> Tensor:  # fmt: skip
    """How many singular values of each matrix are over a tolerance, as int64.

    Args:
        tol: an older name of ``atol``, with ``rtol`` 0.
        hermitian: take A for Hermitian; only its lower triangle is read.
        atol, rtol: as those of ``pinv``.
    """
    op = "linalg.matrix_rank"
    shape = check_matrix(op, A, "input")
    if tol is not None:
        atol, rtol = tol, 0.0
    off = twin(A)
    if not off.numel():
        return stored(op, off.new_zeros(shape[:-2], dtype=dtypes.int64), out)  # type: ignore[no-any-return, attr-defined]
    values = eigvalsh(off).abs() if hermitian else decomposed(op, off, vectors=False)[0]  # type: ignore[attr-defined]
    made = (values > tolerances(op, values, shape, atol, rtol)).sum(-1)
    return stored(op, made.to(dtypes.int64), out)  # type: ignore[no-any-return]
