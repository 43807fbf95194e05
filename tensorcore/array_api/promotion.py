"""What the operands of a function of the standard become together."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError
from tensorcore.ops.operands import result_type as _ranked
from tensorcore.tensor import Tensor

__all__ = ["array", "pair", "promoted", "result_type", "sum_dtype"]


def result_type(*arrays_and_dtypes: Any) -> dtypes.dtype:
    """The dtype that arrays, dtypes and Python numbers become together; arrays of no dims count as all others do."""
    found, numbers = None, []
    for one in arrays_and_dtypes:
        if isinstance(one, (Tensor, dtypes.dtype)):
            mine = one.dtype if isinstance(one, Tensor) else one
            found = mine if found is None else dtypes.promote_types(found, mine)
        else:
            numbers.append(one)
    if found is None:
        raise ArgumentTypeError(
            f"result_type: expected at least one array or dtype, got {arrays_and_dtypes!r}; use asarray"
        )
    return _ranked(found, *numbers)


def promoted(*arrays: Any) -> list[Tensor]:
    """Arrays and Python numbers as arrays of one dtype."""
    dtype = result_type(*arrays)
    device = next(one.device for one in arrays if isinstance(one, Tensor))
    return [
        (one if one.dtype is dtype else one.to(dtype))  # type: ignore[attr-defined]
        if isinstance(one, Tensor)
        else _number(one, dtype, device)
        for one in arrays
    ]


def pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands of one dtype; a number on the right stays one."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype:
        return x1, x2
    a, b = promoted(x1, x2)
    return a, b


def array(op: str, x: Any) -> Tensor:
    """The argument, which must be a tensor."""
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(f"{op}: expected an array, got {type(x).__name__}; wrap it in asarray(...)")
    return x


def sum_dtype(x: Tensor, dtype: dtypes.dtype | None) -> dtypes.dtype:
    """The dtype in which elements are added or multiplied: integers take 64 bits and keep their sign."""
    if dtype is not None:
        return dtype
    if x.dtype.kind == "integer":
        return dtypes.int64 if x.dtype.is_signed else dtypes.uint64
    return dtypes.int64 if x.dtype.kind == "bool" else x.dtype


def _number(value: Any, dtype: dtypes.dtype, device: Any) -> Tensor:
    from tensorcore.ops.creation.create import tensor

    if dtypes.kind_of(value) is None:
        raise ArgumentTypeError(f"array_api: expected arrays or Python numbers, got {type(value).__name__}")
    return tensor(value, dtype=dtype, device=device)
