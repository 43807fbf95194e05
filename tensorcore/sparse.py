"""Sparse tensors' own functions: ``torch.sparse``."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, KernelMissing, ShapeError, UsageError
from tensorcore.formats import sparse_coo, sparse_csr
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange, full
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.shapes.join import cat
from tensorcore.ops.sparse.arithmetic import log_softmax, matmul, softmax, total
from tensorcore.ops.sparse.base import Sparse
from tensorcore.ops.sparse.making import sparse_coo_tensor

__all__ = [
    "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "addmm", "check_sparse_tensor_invariants",
    "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum",
]  # fmt: skip


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """The product of two matrices one of which at least is sparse: sparse where both are.

    Args:
        reduce: what becomes of the products of a row's elements with those of a column: their ``sum``, or, of a CSR
            matrix and a dense one, their ``mean``, ``amax`` or ``amin``; of the elements that are stored alone, and 0
            where a row has none.
    """
    _sparse("mm", mat1, mat2)
    if reduce == "sum":
        return matmul(mat1, mat2)
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise UsageError(f"sparse.mm: reduce argument must be either sum, mean, amax or amin, got {reduce!r}")
    if not getattr(mat1, "is_sparse_csr", False) or isinstance(mat2, Sparse):
        raise KernelMissing(
            f"sparse.mm: expected a CSR matrix and a dense one for reduce={reduce!r}, got {mat1.layout} and {mat2.layout}; "
            "use to_sparse_csr() and to_dense()"
        )
    rules.matmul_shape("matmul", tuple(mat1.shape), tuple(mat2.shape))
    counts = mat1.parts[0].diff()
    if reduce == "mean":
        return matmul(mat1, mat2) / counts.clamp(min=1).to(mat2.dtype).unsqueeze(1)
    # Of equal products the first one counts, and has the gradient; a row without any picks the zeros behind all.
    rows, columns, values = _places(mat1)
    products = values.unsqueeze(1) * mat2.index_select(0, columns)
    held, shape = products.shape[0], (mat1.shape[0], mat2.shape[1])
    best = products.new_zeros(shape).index_reduce(0, rows, products.detach(), reduce, include_self=False)
    wanted = (products == best[rows]) | products.isnan()
    place = where(wanted, arange(held, device=mat1.device).unsqueeze(1), held)
    picked = full(shape, held, device=mat1.device).index_reduce(0, rows, place, "amin")
    return cat([products, products.new_zeros((1, shape[1]))]).gather(0, picked)


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """``alpha * (mat1 @ mat2) + beta * input`` in the places that ``input``, a CSR matrix, has; the others are not computed.

    Args:
        mat1, mat2: dense, of (rows, inner) and (inner, columns).
    """
    if not getattr(input, "is_sparse_csr", False) or isinstance(mat1, Sparse) or isinstance(mat2, Sparse):
        raise KernelMissing("sampled_addmm: expected a CSR matrix and two dense ones, got others; use to_sparse_csr()")
    if tuple(input.shape) != rules.matmul_shape("sampled_addmm", tuple(mat1.shape), tuple(mat2.shape)):
        raise ShapeError(
            f"sampled_addmm: expected input of the product's size, got {list(input.shape)} for {list(mat1.shape)} and "
            f"{list(mat2.shape)}"
        )
    rows, columns, values = _places(input)
    sampled = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return input.like(sampled * alpha + values * beta)


def _places(csr: Any) -> tuple[Any, Any, Any]:
    """The row, the column and the value of each stored element."""
    crow, columns, values = csr.parts
    return arange(csr.shape[0], device=csr.device).repeat_interleave(crow.diff()), columns.long(), values


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``."""
    made = matmul(_sparse("addmm", mat1, mat2)[0], mat2) * alpha
    return made + mat * beta if beta else made


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or of those along dims: dense where no dim with indices is left, else sparse."""
    return total(_sparse("sum", input)[0], dim, dtype)


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """The matrix of ``shape`` whose diagonal ``offsets[i]`` (0 the main one, above it positive) is row i of ``diagonals``.

    An element stands in the column that it has in its row. In COO where ``layout`` is None; ``torch.sparse_csr`` is the other one.
    """
    offsets = offsets.reshape(-1)
    if diagonals.dim() > 2 or len(shape) != 2:
        raise UsageError(
            f"spdiags: Diagonals must be vector or matrix and the shape 2-dimensional, got {list(diagonals.shape)} and "
            f"{list(shape)}"
        )
    rows = diagonals if diagonals.dim() == 2 else diagonals.reshape(1, -1)
    if rows.shape[0] != len(offsets):
        raise UsageError(
            f"spdiags: Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({len(offsets)}), got both"
        )
    if offsets.dtype is not dtypes.int64:
        raise UsageError(f"spdiags: Offset Tensor must have dtype Long but got {offsets.dtype}; use .long()")
    if len(offsets.unique()) != len(offsets):
        raise UsageError(f"spdiags: Offset tensor contains duplicate values, got {offsets.tolist()}")
    if layout not in (None, sparse_coo, sparse_csr):
        raise UsageError(
            f"spdiags: Only output layouts (Sparse, SparseCsr) are supported here, got {layout!r}; use torch.sparse_csr"
        )
    columns = arange(rows.shape[1], device=offsets.device).expand(rows.shape)
    lines = columns - offsets.unsqueeze(1)
    inside = (lines >= 0) & (lines < shape[0]) & (columns < shape[1])
    places = cat([lines[inside], columns[inside]]).reshape(2, -1)
    made = sparse_coo_tensor(places, rows[inside], tuple(shape))
    return made.to_sparse_csr() if layout is sparse_csr else made


def _typed(name: str, dtype: dtypes.dtype) -> Any:
    def make(*args: Any, device: Any = None) -> Any:
        return sparse_coo_tensor(*args, dtype=dtype, device=device)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"``sparse_coo_tensor`` of {dtype.name}, under the name that older programs have for it."
    return make


FloatTensor, DoubleTensor = _typed("FloatTensor", dtypes.float32), _typed("DoubleTensor", dtypes.float64)
HalfTensor = _typed("HalfTensor", dtypes.float16)
IntTensor, LongTensor = _typed("IntTensor", dtypes.int32), _typed("LongTensor", dtypes.int64)


def _sparse(op: str, *tensors: Any) -> tuple[Any, ...]:
    if not any(isinstance(one, Sparse) for one in tensors):
        raise ArgumentTypeError(f"sparse.{op}: expected a sparse tensor, got dense ones; use torch.{op}")
    return tensors


class check_sparse_tensor_invariants:
    """Accepted as in PyTorch, on or off: the indices of a new sparse tensor are checked always."""

    def __init__(self, enable: bool = True) -> None:
        self.on = enable

    @staticmethod
    def is_enabled() -> bool:
        """True."""
        return True

    @staticmethod
    def enable() -> None:
        """Nothing to switch."""

    @staticmethod
    def disable() -> None:
        """Nothing to switch."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        return function
