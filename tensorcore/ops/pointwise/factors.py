"""Factors of scaled sums: which of them the one kernel takes."""

from __future__ import annotations

from typing import Any

from tensorcore.dtypes import dtype
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.ops.operands import NARROW, as_number
from tensorcore.tensor import Tensor

__all__ = ["minus", "one_pass"]


def one_pass(input: Any, other: Any, alpha: Any) -> bool:
    """Whether the factor and both tensors are such as the kernel of a scaled sum takes."""
    return (
        (type(alpha) is float or type(alpha) is int)
        and type(input) is Tensor is type(other)
        and other.dtype is input.dtype
        and (
            other.dtype in PLAIN_FLOATS
            or (other.dtype.kind == "integer" and type(alpha) is int and 0 <= alpha < 128)  # which each of them holds
            or _scales(other)
        )
    )


def _scales(one: Any) -> bool:
    """Whether that kernel takes the tensor, of a narrow dtype."""
    return one.dtype in NARROW and "add_scaled" in one.device.narrow_numbers


def minus(alpha: Any, dtype: dtype) -> Any:
    """A factor's negative, which wraps around where the dtype has none."""
    return -alpha if dtype.is_signed else as_number(-alpha, dtype)
