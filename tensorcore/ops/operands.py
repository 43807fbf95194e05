"""What a call's operands are: numbers or tensors, the dtype that they compute in, the device that they are on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.dtypes import PROMOTION, dtype, kind_of
from tensorcore.errors import ArgumentTypeError, DeviceError, DtypeError
from tensorcore.ops.placement import check_stored
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "HIGHEST", "LOWEST", "NARROW", "PLAIN_FLOATS", "PLAIN_INTEGERS", "alike", "anywhere", "arguments", "as_argument", "as_number",
    "check_number", "check_optional", "check_tensors", "common_device", "everywhere", "factor", "lifted", "minus",
    "once_rounded", "one_device", "one_pass", "plain", "result_type", "with_number",
]  # fmt: skip

NARROW = frozenset([dtypes.float16, dtypes.bfloat16])
# The dtypes for which a kernel may be handed a Python number as it is. Narrower ones compute with
# numbers in single precision, and integers beyond 32 bits wrap: both are the slow path's.
PLAIN_FLOATS = frozenset([dtypes.float32, dtypes.float64])
PLAIN_INTEGERS = frozenset([dtypes.int32, dtypes.int64])
LOWEST, HIGHEST = -(2**31), 2**31 - 1


@before("check_tensors")
def check_tensors(op: str, **given: Any) -> None:
    """Raise for an argument, given by its name, that is no tensor."""
    for name, one in given.items():
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op}: expected argument '{name}' to be a Tensor, got {type(one).__name__}; wrap it in torch.tensor(...)"
            )


@before("check_tensors", True)
def check_optional(op: str, **given: Any) -> None:
    """Raise for an argument, given by its name, that is neither a tensor nor None."""
    check_tensors(op, **{name: one for name, one in given.items() if one is not None})


def alike(input: Any, other: Any) -> bool:
    """Whether both are tensors of one device, one shape and one floating dtype, and are off the tape."""
    return (
        type(input) is Tensor
        and type(other) is Tensor
        and input.dtype is other.dtype
        and input.dtype.is_floating_point
        and input.device is other.device
        and input.node is None
        and other.node is None
        and input.native.shape == other.native.shape
    )


def with_number(input: Any, other: Any) -> tuple[Any, Any]:
    """A real tensor beside a number of Python's: with that as a 0-d tensor of its floating dtype, beside integers of the default one.

    Others, and those with a number that a dtype may not hold, as they are.
    """
    first = type(input) is float or type(input) is int
    like, number = (other, input) if first else (input, other)
    if not (first or type(number) is float or type(number) is int) or type(like) is not Tensor:
        return input, other
    dtype, device = like.dtype, like.device
    if dtype.is_complex or not -65504 <= number <= 65504:
        return input, other
    if not dtype.is_floating_point:
        dtype = dtypes.get_default_dtype()
    made = new_tensor(device.kernels["full"]((), float(number), dtype=dtype), dtype, device)
    return (made, like) if first else (like, made)


@before("common_device")
def common_device(op: str, inputs: Sequence[Any]) -> Any:
    """The one device that all tensors among ``inputs`` are on."""
    device = None
    for one in inputs:
        if isinstance(one, Tensor):
            if device is None:
                device = one.device
            elif one.device is not device:
                met = device.meet(one.device) or one.device.meet(device)
                if met is None:
                    raise DeviceError(
                        f"{op}: Expected all tensors to be on the same device, got {device} and {one.device}; "
                        f"move one with .to(device)"
                    )
                device = met
        elif one is not None and kind_of(one) is None:
            raise ArgumentTypeError(f"{op}: expected a Tensor, got {one!r}; wrap it in torch.tensor(...)")
    return device


@before("lifted")
def lifted(op: str, *inputs: Any) -> tuple[Any, ...]:
    """The inputs, and where one's backend wraps the others', all on that one."""
    first = inputs[0].device
    for one in inputs:
        if isinstance(one, Tensor) and one.device is not first:
            break
    else:
        return inputs
    if all(one.device.wraps is None for one in inputs if isinstance(one, Tensor)):
        return inputs
    device = common_device(op, inputs)
    return tuple([device.lift(one) if isinstance(one, Tensor) else one for one in inputs])


def one_device(op: str, inputs: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The device of an elementwise call; a 0-d tensor in host memory comes along to any other device."""
    tensors = [one for one in inputs if isinstance(one, Tensor)]
    device = next((one.device for one in tensors if one.native.shape), tensors[0].device)
    if all(one.device is device for one in tensors):
        return device, inputs
    if any(one.device.wraps is not None for one in tensors):
        return common_device(op, inputs), inputs
    moved = [
        _along(op, one, device, inputs)
        if isinstance(one, Tensor)
        and one.device is not device
        and not one.native.shape
        and one.device.capabilities.host
        else one
        for one in inputs
    ]
    return common_device(op, moved), moved


def _along(op: str, one: Any, device: Any, inputs: Sequence[Any]) -> Tensor:
    """A 0-d tensor on the device of the others; in the dtype of the result where the device does not store its own."""
    dtype = one.dtype
    if dtype.name not in device.capabilities.dtypes:
        dtype = result_type(*inputs)
        check_stored(op, dtype, device)
    return one.to(device, dtype)


@before("result_type", dtypes.bool_)
def result_type(*values: Any) -> dtype:
    """The dtype that an op of these tensors and numbers computes in.

    A tensor with dims outranks one without, which outranks a number, unless the lower one is of a
    higher kind (bool, integer, floating, complex).
    """
    dims = zero = None
    number = None
    for one in values:
        if isinstance(one, Tensor):
            if one.native.shape:
                dims = one.dtype if dims is None else PROMOTION[dims, one.dtype]
            else:
                zero = one.dtype if zero is None else PROMOTION[zero, one.dtype]
        elif isinstance(one, dtype):
            dims = one if dims is None else PROMOTION[dims, one]
        else:
            mine = dtypes.default_for(kind_of(one) or "floating")
            number = mine if number is None else PROMOTION[number, mine]
    result = _outranked(_outranked(dims, zero), number)
    if result is None:
        raise ArgumentTypeError("result_type: expected tensors, dtypes or numbers, got nothing; pass at least one")
    return result


def _outranked(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """What two ranks of operands become: the lower one changes the kind, never the precision within it."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex or (higher.is_floating_point and not lower.is_complex):
        return higher
    if higher.is_floating_point:
        return higher.to_complex()
    if higher.kind == "bool" or (lower.kind != "integer" and lower.kind != "bool"):
        return PROMOTION[higher, lower]
    return higher


def check_number(op: str, number: Any, compute: dtype) -> None:
    """Raise where a number does not fit the dtype of its op; negative ones wrap into uint8, as in PyTorch."""
    if compute.kind == "integer":
        limits = dtypes.iinfo(compute)
        low = limits.min if compute.is_signed else -limits.max
        if not low <= number <= limits.max:
            raise DtypeError(
                f"{op}: value cannot be converted to type {compute.name} without overflow, got {number}; use one within "
                f"[{limits.min}, {limits.max}]"
            )


def factor(op: str, name: str, number: Any, compute: dtype) -> Any:
    """A number that scales tensors of this dtype, cut off for integers; raises for what is no number or does not fit."""
    if compute.is_floating_point and (type(number) is float or type(number) is int):
        return number
    number = plain(number)
    kind = kind_of(number)
    if kind is None:
        raise ArgumentTypeError(f"{op}: expected {name} to be a number, got {number!r}; pass an int or a float")
    if kind == "complex" and compute.kind != "complex":
        real, fits = number.real, not number.imag
    else:
        # As an unsigned number a negative float is nothing, where an integer wraps.
        kept = kind != "floating" or compute.kind != "integer"
        real, fits = number, kept or (math.isfinite(number) and (number >= 0 or compute.is_signed))
    if not fits:
        raise DtypeError(
            f"{op}: value cannot be converted to type {compute.name} without overflow, got {name}={number}; convert the "
            f"tensors with .to(...)"
        )
    if compute.kind != "integer":
        return bool(real) if compute.kind == "bool" else real
    check_number(op, int(real), compute)
    return as_number(int(real), compute)


def one_pass(input: Any, other: Any, alpha: Any) -> bool:
    """Whether the factor and both tensors are such as the kernel of a scaled sum takes."""
    if not type(input) is Tensor is type(other) or other.dtype is not input.dtype:
        return False
    if type(alpha) is not float and type(alpha) is not int:
        return type(alpha) is complex and other.dtype.is_complex
    if other.dtype.kind == "integer":
        return type(alpha) is int and 0 <= alpha < 128  # which each of them holds
    return other.dtype in _WIDE or other.dtype.is_complex or _scales(other)


def _scales(one: Any) -> bool:
    """Whether that kernel takes the tensor, of a narrow dtype."""
    return one.dtype in NARROW and "add_scaled" in one.device.narrow_numbers


def minus(alpha: Any, compute: dtype) -> Any:
    """A factor's negative, which wraps around where the dtype has none."""
    return -alpha if compute.is_signed else as_number(-alpha, compute)


@before("plain")
def plain(value: Any) -> Any:
    """A number of NumPy's or a 0-d tensor as one of Python's; anything else as it is."""
    if isinstance(value, np.generic) or (isinstance(value, Tensor) and not value.native.shape):
        return value.item()  # type: ignore[attr-defined]
    return value


def as_number(number: Any, compute: dtype) -> Any:
    """A number as the Python number that a kernel of this dtype takes; integers wrap as PyTorch's do."""
    if compute.kind == "integer":
        if isinstance(number, int) and not -(2**63) <= number < 2**64:
            raise OverflowError(f"expected an int of 64 bits at most, got {number}; use a float")
        bits = 8 * compute.itemsize
        number = int(number) & ((1 << bits) - 1)
        return number - (1 << bits) if compute.is_signed and number >> (bits - 1) else number
    if compute.kind == "bool":
        return bool(number)
    return complex(number) if compute.kind == "complex" else float(number)


def as_argument(op: str, device: Any, one: Any, compute: dtype) -> Any:
    """A kernel argument in the dtype that the op computes in; raises where the device does not store that."""
    if isinstance(one, Tensor):
        if one.dtype is compute:
            return one.native
        check_stored(op, compute, device)
        return device.kernels["cast"](one.native, dtype=compute)
    return as_number(one, compute)


_WIDE = frozenset([dtypes.float32, dtypes.float64])


def arguments(op: Any, device: Any, inputs: Sequence[Any], compute: dtype) -> tuple[list[Any], bool]:
    """The kernel's arguments, and whether they were widened: then the result is rounded to the narrow dtype after it.

    A number beside a narrow float keeps single precision where ``op.widens`` says that PyTorch's does; else it is rounded
    first. Beside bfloat16 even that one goes in float32, because NumPy would make the result float32. Some kernels of some
    backends know all that (``narrow_numbers``). A 0-d tensor of more digits that stands second is such a number too.
    """
    if compute not in NARROW:
        return [as_argument(op.name, device, one, compute) for one in inputs], False
    known, last = op.kernel in device.narrow_numbers, inputs[-1]
    finer = op.widens and isinstance(last, Tensor) and not last.native.shape and last.dtype in _WIDE
    if finer and known and device.capabilities.values:
        inputs, finer = (*inputs[:-1], last.item()), False  # type: ignore[attr-defined]
    numbers = not known and not all([isinstance(one, Tensor) for one in inputs])
    if not finer and not (numbers and (op.widens or compute is dtypes.bfloat16)):
        return [as_argument(op.name, device, one, compute) for one in inputs], False
    made = [as_argument(op.name, device, one, dtypes.float32) for one in inputs]
    if not op.widens:
        made = [
            one if isinstance(given, Tensor) else float(compute.numpy.type(one))
            for one, given in zip(made, inputs, strict=True)
        ]
    return made, True


def once_rounded(function: Any, compute: Any, *inputs: Any, **options: Any) -> Any:
    """What ``function`` makes of narrow floats: computed in single precision and rounded once, as in PyTorch."""
    wide = [one.to(dtypes.float32) if isinstance(one, Tensor) else one for one in inputs]
    return function(*wide, **options).to(compute)


def anywhere(condition: Tensor) -> bool:
    """Whether a condition holds for any element, of any example; False where there are no values."""
    device = condition.device
    return device.capabilities.values and bool(device.all_values(condition.native).any())


def everywhere(condition: Tensor) -> bool:
    """Whether a condition holds for all elements, of all examples; True where there are no values.

    A replayed call looks again: where the answer is another one, it runs as it is.
    """
    device = condition.device
    return not device.capabilities.values or bool(device.all_values(condition.all().native).all())  # type: ignore[attr-defined]
