"""Softmax and its kin as ``nn.functional`` has them: PyTorch chooses a ``dim`` where an old program names none."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore.ops.layers import norm
from tensorcore.tensor import Tensor

__all__ = ["log_softmax", "softmax", "softmin"]


@norm.softmax_way
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Exponentials along ``dim``, scaled to sum to one."""
    return norm.softmax(input, _chosen("softmax", input, _stacklevel) if dim is None else dim, dtype)


@norm.log_softmax_way
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of ``softmax``, computed without overflow."""
    return norm.log_softmax(input, _chosen("log_softmax", input, _stacklevel) if dim is None else dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``softmax`` of the negated input."""
    return norm.softmin(input, _chosen("softmin", input, _stacklevel) if dim is None else dim, dtype)


def _chosen(op: str, input: Tensor, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {op} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.ndim in (0, 1, 3) else 1
