"""ReduceOp: the ways of combining, and how each is carried out on transports that know four of them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError
from tensorcore.tensor import Tensor

__all__ = ["ReduceOp", "check_op", "fold"]


class ReduceOp(IntEnum):
    """How the values of the ranks become one. The names PRODUCT, MIN, ... are those of the transports or bitwise."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    @property
    def transport(self) -> str | None:
        """The name that transports know it by, None where they do not."""
        return _TRANSPORT.get(self)


# PyTorch's members are of a class inside this one, which programs name in annotations.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

_TRANSPORT = {
    ReduceOp.SUM: "sum", ReduceOp.AVG: "sum", ReduceOp.PRODUCT: "product", ReduceOp.MIN: "min", ReduceOp.MAX: "max",
}  # fmt: skip


def check_op(name: str, op: Any, tensor: Tensor) -> ReduceOp:
    """The ReduceOp, where the tensor's dtype has it."""
    if not isinstance(op, ReduceOp):
        raise ArgumentTypeError(f"{name}: expected op to be a ReduceOp, got {op!r}; use one of ReduceOp's names")
    if op is ReduceOp.PREMUL_SUM:
        raise ArgumentError(f"{name}: expected a ReduceOp without a factor, got PREMUL_SUM; multiply the tensor first")
    if tensor.dtype.is_complex and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise DtypeError(
            f"{name}: expected SUM or AVG of a complex tensor, got {op.name}: all_reduce does not support it"
        )
    if op.transport is None and (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        raise DtypeError(f"{name}: Cannot use ReduceOp.{op.name} with non-integral dtype, got {tensor.dtype}")
    return op


def fold(op: ReduceOp, parts: Tensor) -> Tensor:
    """The bits of all blocks (size, ...) combined."""
    total: Any = parts[0]  # type: ignore[index]
    for one in parts[1:]:  # type: ignore[index]
        total = total & one if op is ReduceOp.BAND else total | one if op is ReduceOp.BOR else total ^ one
    return total
