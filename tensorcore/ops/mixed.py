"""Elementwise calls that are not the usual ones: operands of several dtypes, numbers, arrays of NumPy, a place for the result.

What dtype such operands meet in is worked out once: ``Op.promoted`` keeps it by their dtypes, and a short way in C looks there first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.dtypes import dtype, kind_of
from tensorcore.errors import ArgumentTypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.creation.arrays import from_numpy
from tensorcore.ops.define import Op
from tensorcore.ops.operands import HIGHEST, LOWEST, NARROW, PLAIN_INTEGERS, arguments, one_device
from tensorcore.ops.output import check_out, free_place, store, written, written_into
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["elementwise", "explain", "foreign", "remember", "strangers"]


def strangers(name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What inputs of classes that are no tensors make of a call; None if they have no say. ``overrides`` replaces it."""


def foreign(op: Op, inputs: Sequence[Any], *, out: Tensor | None = None) -> Any:
    """The slow path of an operator: operands that are neither tensors nor numbers get their own turn."""
    for one in inputs:
        if not isinstance(one, Tensor) and kind_of(one) is None and not (isinstance(one, np.ndarray) and not one.ndim):
            found = strangers(op.name, inputs, {})
            return NotImplemented if found is None else found
    return elementwise(op, inputs, out=out)


# Arithmetic that takes two of Python's numbers and gives a tensor.
_OF_NUMBERS = frozenset(["add", "div", "floor_divide", "mul", "sub", "trunc_divide"])


def elementwise(op: Op, inputs: Sequence[Any], *, out: Tensor | None = None, options: dict[str, Any] | None = None):
    """An elementwise call with numbers, several dtypes, or a result that has a place to go."""
    first = inputs[0]
    if (out is None or free_place(out, inputs)) and (made := _known(op, inputs, options)) is not None:
        return made if out is None else store(op.name, made, out)
    if out is None and type(first) is Tensor and first.dtype in op.quick:
        made = _uniform(op, first, inputs, options)
        if made is not None:
            return made
    elif type(first) is Tensor is type(out) and out.dtype in op.quick and written_into(op, inputs, out, options):
        return out
    for one in inputs:
        if hasattr(type(one), "instead"):  # a sparse tensor, which has no native array
            return one.instead(op.name, inputs, options)
    if any(type(one) is np.ndarray for one in inputs):  # tensor * array, in PyTorch by way of NumPy
        inputs = [from_numpy(one) if type(one) is np.ndarray else one for one in inputs]
    if not all([isinstance(one, Tensor) or kind_of(one) is not None for one in inputs]):
        found = strangers(op.name, inputs, {} if out is None else {"out": out})
        if found is not None:
            return found
    kind = kind_of(first)
    if kind is not None and op.name in _OF_NUMBERS and all([kind_of(one) is not None for one in inputs]):
        first = from_numpy(np.array(first, dtypes.default_for(kind).numpy))
        inputs = (first, *inputs[1:])
    if not isinstance(first, Tensor) and (op.tensor_first or not any([isinstance(one, Tensor) for one in inputs])):
        raise ArgumentTypeError(
            f"{op.name}: expected argument '{op.inputs[0]}' to be a Tensor, got {first!r}; wrap it in torch.tensor(...)"
        )
    for name, one in zip(op.inputs, inputs, strict=True):
        if not isinstance(one, Tensor) and kind_of(one) is None:
            raise ArgumentTypeError(
                f"{op.name}: expected argument '{name}' to be a Tensor or a number, got {type(one).__name__}; "
                f"wrap it in torch.tensor(...)"
            )
    device, inputs = one_device(op.name, inputs)
    compute, final = op.dtypes(op, inputs)  # type: ignore[attr-defined]
    if out is not None:
        check_out(op, inputs, out, final)
    natives, widened = arguments(op, device, inputs, compute)
    # The kernel writes into ``out`` where that is of the result's dtype and shape; else its result is copied there.
    there = out is not None and not widened and final is compute and _fits(op, out, device, final, inputs)
    options = {**(options or {}), "out": out.native} if there else options or {}  # type: ignore[union-attr]
    try:
        native = device.kernels[op.kernel](*natives, **options)
    except MemoryError as error:
        native = again(device, op.kernel, natives, options, error)
    except Exception as error:
        raise explain(op, inputs, error) from error
    if there:
        written(out)  # type: ignore[arg-type]
        return out
    if widened and final is compute:
        native = device.kernels["cast"](
            native if type(native) is device.array else device.as_native(native), dtype=final
        )
    made = new_tensor(native if type(native) is device.array else device.as_native(native), final, device)
    if not widened:
        remember(op, device, inputs, compute, final)
    if op.grads and mode.enabled and any([isinstance(one, Tensor) and one.node is not None for one in inputs]):
        record(op, inputs, options, made)
    return made if out is None else store(op.name, made, out)


@before("known", again)
def _known(op: Op, inputs: Sequence[Any], options: dict[str, Any] | None) -> Tensor | None:
    """The call whose dtypes have met before, where nothing else is unusual; there is only the short way."""


# What a number becomes beside tensors of a kind of dtype; beside integers it stays what it is, and beside narrow ones only from 0 to
# 127 (True says so to the short way): others wrap.
_BESIDE = {"floating": float, "complex": complex, "integer": None}


def remember(op: Op, device: Any, inputs: Sequence[Any], compute: dtype, final: dtype) -> None:
    """Note the dtypes of a call that went well, for the short way: ``known`` asks by the device, and of each operand its dtype, or
    the class of a number, and whether it has no dims."""
    key, numbers = [device], False
    for one in inputs:
        kind = type(one)
        if kind is Tensor:
            key += (one.dtype, not one.native.shape)
        elif kind is float or (kind is int and LOWEST <= one <= HIGHEST):
            key += (kind, True)
            numbers = True
        else:
            return
    if compute in NARROW and True in key:
        return
    if numbers and (
        compute.kind not in _BESIDE or (compute.kind == "integer" and op.by_value and type(inputs[-1]) is not Tensor)
    ):
        return
    if op.kind == "elementwise":
        narrow = compute.kind == "integer" and compute not in PLAIN_INTEGERS
        op.promoted[tuple(key)] = compute, final, True if narrow else _BESIDE.get(compute.kind)


def _fits(op: Op, out: Tensor, device: Any, final: dtype, inputs: Sequence[Any]) -> bool:
    """Whether a kernel may write its result straight into ``out``, whose elements lie in places of their own."""
    shape = tuple(out.native.shape)
    return (
        op.kind == "elementwise"  # products come here too
        and out.device is device
        and out.dtype is final
        and out.origin is None
        and shape == rules.broadcast(op.name, *[tuple(one.native.shape) for one in inputs if isinstance(one, Tensor)])
    )


def _uniform(op: Op, first: Tensor, inputs: Sequence[Any], options: dict[str, Any] | None) -> Tensor | None:
    """The call where all tensors have the dtype and device of ``first`` and all numbers are plain; else None."""
    natives, recorded, device, same = [], False, first.device, first.dtype
    for one in inputs:
        kind = type(one)
        if kind is Tensor:
            if one.dtype is not same or one.device is not device:
                return None
            natives.append(one.native)
            if one.node is not None:
                recorded = True
        elif kind is float or kind is int:
            natives.append(one)
        else:
            return None
    try:
        native = device.kernels[op.kernel](*natives) if not options else device.kernels[op.kernel](*natives, **options)
    except MemoryError as error:
        native = again(device, op.kernel, natives, options or {}, error)
    except Exception as error:
        raise explain(op, inputs, error) from error
    made = new_tensor(native if type(native) is device.array else device.as_native(native), op.result or same, device)
    if recorded and op.grads and mode.enabled:
        record(op, inputs, options, made)
    return made


def explain(op: Op, inputs: Sequence[Any], error: Exception) -> Exception:
    """The frontend's own error for a kernel that failed, where the shapes are to blame; else the kernel's."""
    own = getattr(op, "explain", None)
    if own is not None:
        return own(inputs, error)  # type: ignore[no-any-return]
    shapes = [tuple(one.native.shape) for one in inputs if isinstance(one, Tensor)]
    try:
        rules.broadcast(op.name, *shapes)
    except ShapeError as clearer:
        return clearer
    return error
