"""A product or a quotient of two tensors, added to a third."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import DtypeError
from tensorcore.ops.define import same
from tensorcore.ops.kinds import BOOL, COMPLEX, FLOATING, INTEGER, composite, not_taken
from tensorcore.ops.older import taking_older
from tensorcore.ops.operands import NARROW, check_tensors, factor, once_rounded, result_type
from tensorcore.ops.pointwise.arithmetic import _add, _div, mul
from tensorcore.ops.pointwise.complex import conjugate
from tensorcore.ops.samples import elementwise as samples
from tensorcore.tensor import Tensor

__all__ = ["addcdiv", "addcmul"]

_ONE_PASS = FLOATING | COMPLEX


@taking_older("value")
@composite(
    inputs="input tensor1 tensor2", quick=_ONE_PASS | INTEGER, takes=_ONE_PASS | INTEGER, writes=True, samples=samples.addcmul,
    grads=dict(input=same, tensor1=lambda g, tensor2, value: g * conjugate(tensor2 * value),
               tensor2=lambda g, tensor1, value: g * conjugate(tensor1 * value)),
)  # fmt: skip
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 * tensor2``, element by element."""
    check_tensors("addcmul", input=input, tensor1=tensor1, tensor2=tensor2)
    compute = result_type(input, tensor1, tensor2)
    if compute in BOOL:
        raise not_taken("addcmul", compute)
    value = factor("addcmul", "value", value, compute)
    if compute in NARROW:
        return once_rounded(addcmul, compute, input, tensor1, tensor2, value=value)
    tensor1 = tensor1.to(compute)  # type: ignore[attr-defined]
    # The factor comes first, as in PyTorch: which product overflows depends on it.
    return _add(input, mul(tensor1 if value == 1 else tensor1 * value, tensor2))


@taking_older("value")
@composite(
    inputs="input tensor1 tensor2", quick=_ONE_PASS, takes=_ONE_PASS, writes=True, samples=samples.addcdiv,
    grads=dict(input=same, tensor1=lambda g, tensor2, value: g * conjugate(value / tensor2),
               tensor2=lambda g, tensor1, tensor2, value: -g * conjugate(tensor1 / tensor2 / tensor2 * value)),
)  # fmt: skip
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 / tensor2``, element by element. Raises where both are of integers."""
    check_tensors("addcdiv", input=input, tensor1=tensor1, tensor2=tensor2)
    if all(one.dtype in BOOL | INTEGER for one in (tensor1, tensor2)):
        raise DtypeError(
            f"addcdiv: Integer division with addcdiv is no longer supported, got {tensor1.dtype.name} and "
            f"{tensor2.dtype.name}; convert one with .to(...)"
        )
    if (compute := result_type(input, tensor1, tensor2)) in NARROW:
        return once_rounded(addcdiv, compute, input, tensor1, tensor2, value=value)
    value = factor("addcdiv", "value", value, compute)
    tensor1, tensor2 = tensor1.to(compute), tensor2.to(compute)  # type: ignore[attr-defined]
    return _add(input, _div(tensor1 if value == 1 else tensor1 * value, tensor2))
