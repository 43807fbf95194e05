"""Elementwise calls whose operands are of other dtypes than the op computes in: of integers where it computes in floats, of two dtypes.

What a call of such dtypes computes in is asked once: afterwards it is a look-up, the conversions and the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import dtype
from tensorcore.ops.calls import elementwise, explain, foreign, unary
from tensorcore.ops.define import Op
from tensorcore.ops.operands import NARROW
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import usual_way
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["leave", "leave_operator", "of_one"]

# What an op of these operands computes in and gives, None where it takes the slow path: such paths look at values too.
_known: dict[tuple[Any, ...], tuple[dtype, dtype] | None] = {}


def of_one(op: Op, accepts: frozenset[dtype], result: dtype | None) -> Callable[..., Tensor]:
    """The call of an op of one tensor that converts dtypes which it does not compute in; else :func:`calls.unary`."""
    usual, rest = usual_way(op, again, accepts, result), unary(op, accepts, result)

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if out is None:
            if (done := usual(input)) is not None:
                return done
            if type(input) is Tensor and input.dtype not in accepts and (done := _mixed(op, (input,))) is not None:
                return done
        return rest(input, out=out)

    return call


def leave(op: Op, inputs: Sequence[Any], *, out: Tensor | None = None) -> Any:
    """Where calls of several operands go that are not of one dtype."""
    if out is None and (made := _mixed(op, inputs)) is not None:
        return made
    return elementwise(op, inputs, out=out)


def leave_operator(op: Op, inputs: Sequence[Any], *, out: Tensor | None = None) -> Any:
    """``leave`` for operators, whose operands may be of classes that are no tensors."""
    if out is None and (made := _mixed(op, inputs)) is not None:
        return made
    return foreign(op, inputs, out=out)


def _mixed(op: Op, inputs: Sequence[Any]) -> Any:
    """The call with plain tensors of one device and plain numbers; None where anything else is unusual than their dtypes."""
    device, recorded, key = None, False, [op, dtypes.get_default_dtype()]
    for one in inputs:
        kind = type(one)
        if kind is Tensor:
            if one.device is not device:
                if device is not None:
                    return None
                device = one.device
            if one.node is not None:
                recorded = True
            key += one.dtype, not one.native.shape
        elif kind is float:
            key.append(kind)
        elif kind is int and -128 <= one <= 127:  # which each integer dtype holds, or each that has a sign
            key.append(one < 0)
        else:
            return None
    if device is None:
        return None
    found = tuple(key)
    try:
        plan = _known[found]
    except KeyError:
        plan = _known[found] = _plan(op, inputs)
    if plan is None:
        return None
    compute, final = plan
    natives: list[Any] = []
    for one in inputs:
        if type(one) is not Tensor:
            natives.append(one if compute.kind == "integer" else float(one))
        elif one.dtype is compute:
            natives.append(one.native)
        elif compute.name in device.capabilities.dtypes:
            natives.append(device.kernels["cast"](one.native, dtype=compute))
        else:
            return None
    try:
        native = device.kernels[op.kernel](*natives)
    except MemoryError as error:
        native = again(device, op.kernel, natives, {}, error)
    except Exception as error:
        raise explain(op, inputs, error) from error
    made = new_tensor(native if type(native) is device.array else device.as_native(native), final, device)
    if recorded and op.grads and mode.enabled:
        record(op, inputs, None, made)
    return made


def _plan(op: Op, inputs: Sequence[Any]) -> tuple[dtype, dtype] | None:
    """What the op computes in and gives; None for narrow floats, complex numbers, and errors, which the slow path raises."""
    if op.tensor_first and type(inputs[0]) is not Tensor:
        return None
    try:
        compute, final = op.dtypes(op, inputs)  # type: ignore[attr-defined]
    except Exception:
        return None
    numbers = [one for one in inputs if type(one) is not Tensor]
    if compute in NARROW or compute.is_complex or (numbers and compute is dtypes.bool_):
        return None
    if compute.kind == "integer" and not compute.is_signed and any(one < 0 for one in numbers):
        return None
    return compute, final
