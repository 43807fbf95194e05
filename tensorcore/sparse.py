"""Sparse tensors' own functions: ``torch.sparse``."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError
from tensorcore.ops.sparse.arithmetic import log_softmax, matmul, softmax, total
from tensorcore.ops.sparse.base import Sparse
from tensorcore.ops.sparse.making import sparse_coo_tensor

__all__ = [
    "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "addmm", "check_sparse_tensor_invariants",
    "log_softmax", "mm", "softmax", "sum",
]  # fmt: skip


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """The product of two matrices one of which at least is sparse: sparse where both are."""
    if reduce != "sum":
        raise NotImplementedError(f"sparse.mm: expected reduce='sum', got {reduce!r}; use index_reduce")
    return matmul(_sparse("mm", mat1, mat2)[0], mat2)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``."""
    made = matmul(_sparse("addmm", mat1, mat2)[0], mat2) * alpha
    return made + mat * beta if beta else made


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or of those along dims: dense where no dim with indices is left, else sparse."""
    return total(_sparse("sum", input)[0], dim, dtype)


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
